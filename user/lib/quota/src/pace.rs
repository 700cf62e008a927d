//! Limit to the number of waiters that a server wakes at a time.
//!
//! A server replies to waiters at its own, high priority, whatever theirs are. If all possible waiters had the same
//! deadline, all the replies together would hold up everything of lower priority than the server. So there are a few
//! replies, and then a pause in which others run and requests are served.

/// Number of replies without a pause.
pub const REPLIES: u32 = 8;
/// Number of replies for which a request counts during which an alarm went off, because the rest of it was done at the
/// server's priority, too.
pub const URGENT: u32 = 4;

/// A counter of replies.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Duration of a pause in ticks.
    pause: u64,
    /// Number of replies until the next pause.
    left: u32,
    /// End of a pause that began with the last reply.
    end: u64,
}

impl Pace {
    /// Returns a counter without replies. A pause takes `pause` nanoseconds from the start of the last reply.
    pub const fn new(pause: u64, frequency: u64) -> Pace {
        let pause = (pause as u128 * frequency as u128).div_ceil(1_000_000_000) as u64;
        Pace { pause, left: REPLIES, end: 0 }
    }

    /// Returns whether a reply is permitted at this time.
    pub const fn admits(&self, now: u64) -> bool {
        self.left > 0 || now >= self.end
    }

    /// Counts a reply.
    pub const fn count(&mut self, now: u64) {
        self.count_as(1, now);
    }

    /// Counts a request in the middle of which an alarm went off.
    pub const fn count_urgent(&mut self, now: u64) {
        self.count_as(URGENT, now);
    }

    const fn count_as(&mut self, replies: u32, now: u64) {
        if now >= self.end {
            self.left = REPLIES;
        }
        self.left = self.left.saturating_sub(replies);
        self.end = now.saturating_add(self.pause);
    }

    /// Returns when waiters with this deadline can get their replies.
    pub const fn earliest(&self, deadline: u64) -> u64 {
        if self.left == 0 && deadline < self.end { self.end } else { deadline }
    }
}
