//! How many of those whose time has come are answered at a time.
//!
//! A server answers them at its own priority, which is a high one, whatever theirs are. If everybody who can wait had
//! the same deadline, all the answers together would hold up whatever runs at a lower priority than the server. So
//! there are a few answers, and then a pause in which others run and requests are served.

/// Answers without a pause.
pub const ANSWERS: u32 = 8;
/// For how many answers a request counts during which an alarm went off: what was left of it was done at the server's
/// priority, too.
pub const URGENT: u32 = 4;

/// Counts answers.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Ticks of a pause.
    pause: u64,
    /// Answers until the next one.
    left: u32,
    /// When a pause would end that began with the last answer.
    end: u64,
}

impl Pace {
    /// Nobody was answered yet. A pause takes so many nanoseconds from when the last answer is begun.
    pub const fn new(pause: u64, frequency: u64) -> Pace {
        let pause = (pause as u128 * frequency as u128).div_ceil(1_000_000_000) as u64;
        Pace { pause, left: ANSWERS, end: 0 }
    }

    /// Returns whether somebody may be answered at this time.
    pub const fn admits(&self, now: u64) -> bool {
        self.left > 0 || now >= self.end
    }

    /// Somebody is answered.
    pub const fn count(&mut self, now: u64) {
        self.count_as(1, now);
    }

    /// A request has been carried out, in the middle of which an alarm went off.
    pub const fn count_urgent(&mut self, now: u64) {
        self.count_as(URGENT, now);
    }

    const fn count_as(&mut self, answers: u32, now: u64) {
        if now >= self.end {
            self.left = ANSWERS;
        }
        self.left = self.left.saturating_sub(answers);
        self.end = now.saturating_add(self.pause);
    }

    /// Returns when those whose deadline this is can be answered.
    pub const fn earliest(&self, deadline: u64) -> u64 {
        if self.left == 0 && deadline < self.end { self.end } else { deadline }
    }
}
