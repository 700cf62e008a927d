//! The journal of reservations, in memory that persists when the server is restarted.
//!
//! ```text
//! 0        the highest number that was given to a reservation
//! then an entry of 9 words for each position
//! 0   the reservation's number; 0: the entry is free. Written last, and cleared first.
//! 1   the requester's badge, without powers
//! 2   budget, 3 period, 4 deadline: ticks
//! 5   priority; may change
//! 6   before: priority (bits 0 to 7) and ceiling (8 to 15)
//! 7   before: time slice
//! 8   0; when it has ended: the tick until which its share is not free
//! ```
//! The capability of an entry is in the persistent slot with the entry's number. The journal contains what is granted:
//! it is written before the kernel is configured for more, and after it is configured for less, and a restarted server
//! configures the kernel again.

use tench::server::Lasting;
use tench_protocol::Powers;
use tench_quota::Client;
use tench_reserve_interface::protocol::{FIRST_PRIORITY, LAST_PRIORITY, MAX_RESERVATIONS};

use crate::analysis::Task;

/// Number of words of an entry.
const ENTRY: usize = 9;
/// Number of words in all.
pub const WORDS: usize = 1 + ENTRY * MAX_RESERVATIONS;

/// Parameters of a scheduling context before its reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Before {
    /// Priority of the context.
    pub priority: u8,
    /// Ceiling of the context, the highest priority that it authorises; not changed.
    pub ceiling: u8,
    /// Time slice of the context in ticks.
    pub slice: u64,
}

/// A granted reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Number of the reservation.
    pub id: u64,
    /// The requester.
    pub owner: Client,
    /// The granted task, in ticks.
    pub task: Task,
    /// The granted priority.
    pub level: u8,
    /// The scheduling context's parameters before.
    pub before: Before,
    /// 0 while it is in use. After its end: the tick until which its share is not free, because its budget may have
    /// been used just before.
    pub ends: u64,
}

/// The entries, in persistent memory.
pub struct Journal<M> {
    memory: M,
}

impl<M: Lasting> Journal<M> {
    /// Returns the journal in this memory.
    ///
    /// # Panics
    /// If it has fewer than [`WORDS`] words.
    pub fn new(memory: M) -> Journal<M> {
        assert!(memory.size() >= WORDS, "too little memory for reservations");
        Journal { memory }
    }

    /// Returns the highest number that was given.
    pub fn last_id(&self) -> u64 {
        self.memory.read(0)
    }

    /// Returns the entry at a position; `None` if it is free or invalid.
    pub fn entry(&self, position: usize) -> Option<Entry> {
        let at = 1 + position % MAX_RESERVATIONS * ENTRY;
        let word = |index: usize| self.memory.read(at + index);
        let (id, before) = (word(0), word(6));
        let level = u8::try_from(word(5)).ok().filter(|level| (FIRST_PRIORITY..=LAST_PRIORITY).contains(level))?;
        let task = Task { budget: word(2), period: word(3), deadline: word(4) };
        let is_task = 0 < task.budget && task.budget <= task.deadline && task.budget <= task.window();
        let before = Before { priority: before as u8, ceiling: (before >> 8) as u8, slice: word(7) };
        (id != 0 && id <= self.last_id() && is_task).then(|| Entry {
            id,
            owner: Client::of_badge(word(1)),
            task,
            level,
            before,
            ends: word(8),
        })
    }

    /// Writes an entry, which was free.
    pub fn write(&mut self, position: usize, entry: &Entry) {
        let at = 1 + position % MAX_RESERVATIONS * ENTRY;
        // An invalid entry counts as free, but is not zero.
        self.clear(position);
        self.memory.write(0, self.last_id().max(entry.id));
        let Task { budget, period, deadline } = entry.task;
        let before = u64::from(entry.before.priority) | u64::from(entry.before.ceiling) << 8;
        let level = entry.level.into();
        let words = [
            entry.owner.badge(Powers::empty()),
            budget,
            period,
            deadline,
            level,
            before,
            entry.before.slice,
            entry.ends,
        ];
        for (index, word) in words.into_iter().enumerate() {
            self.memory.write(at + 1 + index, word);
        }
        self.memory.write(at, entry.id);
    }

    /// Changes an entry's priority.
    pub fn set_level(&mut self, position: usize, level: u8) {
        self.memory.write(1 + position % MAX_RESERVATIONS * ENTRY + 5, level.into());
    }

    /// Marks an entry as ended; its share is not free before the tick.
    pub fn set_end(&mut self, position: usize, tick: u64) {
        self.memory.write(1 + position % MAX_RESERVATIONS * ENTRY + 8, tick);
    }

    /// Frees an entry.
    pub fn clear(&mut self, position: usize) {
        self.memory.write(1 + position % MAX_RESERVATIONS * ENTRY, 0);
    }
}
