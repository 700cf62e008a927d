//! Locks, condition variables and semaphores in memory that several processes share, any of which may end at any
//! moment.
//!
//! There are no pointers here, and no step leaves anything half done: a process ends between two states that the others
//! understand. A [`Crowd`] has at most [`MEMBERS`] members, each a thread that can be woken.
//!
//! ```text
//!   crowd     order of waiters: a counter of tickets; for each member the ticket with which it waits
//!   gate      the waiters: a bit for each member
//!   lock      owner: 0, or a member's number plus 1                  + gate
//!   permits   number of free permits                                 + gate
//!   condition                                                          gate
//! ```
//! A member that has to wait takes a ticket, sets its bit, and checks again. The lock, or a permit, is reserved for the
//! waiting member with the lowest ticket: so all are served in the order in which they came. A member that has ended is
//! passed over. Waking a member is only a hint to check again; a waiter that is not woken checks after a while by
//! itself, so if a member ends between changing a state and waking another, only time is lost.

mod condition;
mod lock;
mod permits;

pub use condition::Condition;
pub use lock::{Error, Lock, Taken};
pub use permits::Permits;

use core::sync::atomic::Ordering::{Relaxed, SeqCst};

use crate::platform::Word;

/// Maximum number of members of a crowd.
pub const MEMBERS: usize = 64;

/// Reason why a member's sleep has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slept {
    /// The member was woken, or perhaps was.
    Woken,
    /// The member has slept so long that it should check whether the others still live.
    Long,
    /// The deadline has passed.
    TimedOut,
}

/// The running thread as one of the members that share memory.
pub trait Crowd {
    /// Type of a word in memory.
    type Word: Word;

    /// Returns its number, below [`MEMBERS`].
    fn me(&self) -> usize;

    /// Returns the table that all members share.
    fn table(&self) -> &Table<Self::Word>;

    /// Sleeps until it is woken, or for a while, or at most until a deadline in ticks of the system's counter.
    fn sleep(&self, deadline: Option<u64>) -> Slept;

    /// Wakes a member. Returns false if it has ended.
    fn wake(&self, member: usize) -> bool;

    /// Returns whether a member's process still lives.
    fn is_alive(&self, member: usize) -> bool;
}

/// Data that the members of a crowd share. All words are initially 0.
#[repr(C)]
pub struct Table<W> {
    /// The last ticket taken.
    tickets: W,
    /// The ticket of each member.
    ticket: [W; MEMBERS],
}

impl<W: Word> Table<W> {
    /// Returns an unused table.
    pub fn new() -> Table<W> {
        Table { tickets: W::new(0), ticket: core::array::from_fn(|_| W::new(0)) }
    }

    /// Queues a member behind all that wait already.
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

/// The waiters for one object.
#[repr(transparent)]
pub(crate) struct Gate<W> {
    waiting: W,
}

impl<W: Word> Gate<W> {
    fn new() -> Gate<W> {
        Gate { waiting: W::new(0) }
    }

    /// Returns whether no member waits.
    #[inline]
    fn is_empty(&self) -> bool {
        self.waiting.load(SeqCst) == 0
    }

    /// Makes the running member a waiter.
    fn enter(&self, crowd: &impl Crowd<Word = W>) {
        crowd.table().take_ticket(crowd.me());
        self.waiting.set_bits(1 << crowd.me(), SeqCst);
    }

    /// Removes a waiter. Returns whether it was one.
    fn remove(&self, member: usize) -> bool {
        self.waiting.clear_bits(1 << member, SeqCst) >> member & 1 != 0
    }

    /// Returns whether a member waits.
    fn has(&self, member: usize) -> bool {
        self.waiting.load(SeqCst) >> member & 1 != 0
    }

    /// Returns the member that has waited longest.
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

    /// Wakes the member that has waited longest, and removes those that have ended.
    fn wake_first(&self, crowd: &impl Crowd<Word = W>) {
        while let Some(first) = self.first(crowd) {
            if first == crowd.me() || crowd.wake(first) {
                return;
            }
            self.remove(first);
        }
    }

    /// Waits until `take` has taken what this gate is for, at most until a deadline if there is one.
    ///
    /// Only the member that has waited longest tries `take`, which is told whether to check whether others have ended.
    /// `free` says whether there is something to take. Returns the result of `take`, or `None` if the deadline has
    /// passed.
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
                    // The rest is for the next.
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
                    // This member may have been woken at the same moment; then the next has to be woken.
                    self.pass_on(crowd, free);
                    return None;
                }
            }
        }
    }

    /// Wakes the first waiter if there is something for it.
    fn pass_on(&self, crowd: &impl Crowd<Word = W>, free: impl Fn() -> bool) {
        if !self.is_empty() && free() {
            self.wake_first(crowd);
        }
    }
}
