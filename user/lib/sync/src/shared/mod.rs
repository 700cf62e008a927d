//! The same for memory that several processes share, any of which may end at any moment.
//!
//! Nothing here is a pointer, and no step leaves anything half done: whoever ends, ends between two states that the
//! others understand. A [`Crowd`] has at most [`MEMBERS`] members, each a thread that can be woken.
//!
//! ```text
//!   crowd     who is next: a counter of tickets; for each member the ticket with which it waits
//!   gate      who waits here: a bit for each member
//!   lock      owner: 0, or a member's number and 1                   + gate
//!   permits   how many nobody has                                    + gate
//!   condition                                                          gate
//! ```
//! Whoever has to wait takes a ticket, sets its bit, and looks again. The lock, or a permit, is for the waiting member
//! with the lowest ticket, and while anybody waits, for nobody else: so all are served in the order in which they came.
//! A member that has ended is passed over. Waking somebody is only a hint to look again; a waiter that nobody wakes
//! looks after a while by itself, so what is lost when somebody ends between changing a state and waking another costs
//! time and no more.

mod condition;
mod lock;
mod permits;

pub use condition::Condition;
pub use lock::{Error, Lock, Taken};
pub use permits::Permits;

use core::sync::atomic::Ordering::{Relaxed, SeqCst};

use crate::platform::Word;

/// Members of a crowd, at most.
pub const MEMBERS: usize = 64;

/// Why a member's sleep has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slept {
    /// It was woken, or perhaps was.
    Woken,
    /// It has slept so long that it should see whether the others are still there.
    Long,
    /// The time is up.
    TimedOut,
}

/// The running thread as one of those that share memory.
pub trait Crowd {
    /// A word in memory.
    type Word: Word;

    /// Its number, below [`MEMBERS`].
    fn me(&self) -> usize;

    /// What all members share.
    fn table(&self) -> &Table<Self::Word>;

    /// Sleeps until it is woken, for a while, or until a time at most, in ticks of the system's counter.
    fn sleep(&self, deadline: Option<u64>) -> Slept;

    /// Wakes a member. Answers false if it has ended.
    fn wake(&self, member: usize) -> bool;

    /// Whether a member's process is still there.
    fn is_alive(&self, member: usize) -> bool;
}

/// What the members of a crowd share. All words are 0 at first.
#[repr(C)]
pub struct Table<W> {
    /// The last ticket that was taken.
    tickets: W,
    /// The ticket of each member.
    ticket: [W; MEMBERS],
}

impl<W: Word> Table<W> {
    /// An unused table.
    pub fn new() -> Table<W> {
        Table { tickets: W::new(0), ticket: core::array::from_fn(|_| W::new(0)) }
    }

    /// Lets a member wait behind all that wait already.
    fn take_ticket(&self, member: usize) {
        let ticket = self.tickets.add(1, Relaxed) + 1;
        if let Some(place) = self.ticket.get(member) {
            place.store(ticket, Relaxed);
        }
    }

    fn ticket_of(&self, member: usize) -> usize {
        self.ticket.get(member).map_or(usize::MAX, |ticket| ticket.load(Relaxed))
    }
}

impl<W: Word> Default for Table<W> {
    fn default() -> Self {
        Self::new()
    }
}

/// Who waits for something.
#[repr(transparent)]
pub(crate) struct Gate<W> {
    waiting: W,
}

impl<W: Word> Gate<W> {
    fn new() -> Gate<W> {
        Gate { waiting: W::new(0) }
    }

    /// Whether nobody waits.
    #[inline]
    fn is_empty(&self) -> bool {
        self.waiting.load(SeqCst) == 0
    }

    /// The running member waits from now on.
    fn enter(&self, crowd: &impl Crowd<Word = W>) {
        crowd.table().take_ticket(crowd.me());
        self.waiting.set_bits(1 << crowd.me(), SeqCst);
    }

    /// A member does not wait any more. Answers whether it did.
    fn remove(&self, member: usize) -> bool {
        self.waiting.clear_bits(1 << member, SeqCst) >> member & 1 != 0
    }

    /// Whether a member waits.
    fn has(&self, member: usize) -> bool {
        self.waiting.load(SeqCst) >> member & 1 != 0
    }

    /// The member that has waited longest.
    fn first(&self, crowd: &impl Crowd<Word = W>) -> Option<usize> {
        let mut left = self.waiting.load(SeqCst);
        let mut first = None;
        while left != 0 {
            let member = left.trailing_zeros() as usize;
            left &= left - 1;
            let ticket = crowd.table().ticket_of(member);
            if first.is_none_or(|(lowest, _)| ticket < lowest) {
                first = Some((ticket, member));
            }
        }
        first.map(|(_, member)| member)
    }

    /// Wakes the member that has waited longest, and forgets those that have ended.
    fn wake_first(&self, crowd: &impl Crowd<Word = W>) {
        while let Some(first) = self.first(crowd) {
            if first == crowd.me() || crowd.wake(first) {
                return;
            }
            self.remove(first);
        }
    }

    /// Waits until `take` has taken what this gate is for; until a time if there is one.
    ///
    /// `take` is tried only by the member that has waited longest, and is told whether to see whether others have
    /// ended. `free` says whether there is something to take. Answers what `take` has, or `None` when the time is up.
    fn pass<T>(
        &self,
        crowd: &impl Crowd<Word = W>,
        deadline: Option<u64>,
        take: impl Fn(bool) -> Option<T>,
        free: impl Fn() -> bool,
    ) -> Option<T> {
        self.enter(crowd);
        let mut look = false;
        loop {
            let first = self.first(crowd);
            if first == Some(crowd.me()) {
                if let Some(taken) = take(look) {
                    self.remove(crowd.me());
                    // What is left is for the next.
                    self.pass_on(crowd, free);
                    return Some(taken);
                }
            } else if let Some(first) = first.filter(|first| look && !crowd.is_alive(*first)) {
                self.remove(first);
                continue;
            }
            match crowd.sleep(deadline) {
                Slept::Woken => look = false,
                Slept::Long => look = true,
                Slept::TimedOut => {
                    self.remove(crowd.me());
                    // It may have been woken in the same moment; then the next has to be.
                    self.pass_on(crowd, free);
                    return None;
                }
            }
        }
    }

    /// Wakes the first if there is something for it.
    fn pass_on(&self, crowd: &impl Crowd<Word = W>, free: impl Fn() -> bool) {
        if !self.is_empty() && free() {
            self.wake_first(crowd);
        }
    }
}
