//! Threads that wait for words in memory.
//!
//! A word is a place in an object if processes can share it, and an address in one memory otherwise. Whoever waits for
//! it stands in the word's queue until somebody wakes it, or its call ends in another way.

use alloc::collections::{BTreeMap, VecDeque};

use tench_linux_calls::numbers::futex::{OWNER, OWNER_DIED, WAITERS};
use tench_linux_calls::records::{robust_list, u64_at};
use tench_linux_memory::Backing;

use crate::spaces::SpaceId;
use crate::{Machine, System};

/// A word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Word {
    /// An address that only one memory has.
    Own(SpaceId, u64),
    /// An offset in the object with a number. A thread may wait for it when nobody has the object any more, and must
    /// not then wait for a word of another one.
    Shared(u64, u64),
}

/// A thread that waits for a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiter {
    /// Number of the thread.
    pub thread: u32,
    /// The thread is woken only for one of these bits.
    pub bits: u32,
    /// The thread waits to own the word, which is a lock.
    pub is_locker: bool,
    /// Priority of the thread when it began to wait: the higher ones are woken first.
    pub priority: u32,
}

/// Threads that wait for words.
#[derive(Debug, Default)]
pub struct Futexes {
    /// The queue of each word for which somebody waits.
    queues: BTreeMap<Word, VecDeque<Waiter>>,
    /// The word for which each thread waits.
    words: BTreeMap<u32, Word>,
}

impl Futexes {
    /// Adds a thread to a word's queue, behind all that have its priority or a higher one.
    pub fn add(&mut self, word: Word, waiter: Waiter) {
        self.words.insert(waiter.thread, word);
        let queue = self.queues.entry(word).or_default();
        let place = queue.partition_point(|other| other.priority >= waiter.priority);
        queue.insert(place, waiter);
    }

    /// Returns whether a thread stands in a queue.
    pub fn has(&self, thread: u32) -> bool {
        self.words.contains_key(&thread)
    }

    /// Returns all threads that wait.
    pub fn threads(&self) -> impl Iterator<Item = u32> {
        self.words.keys().copied()
    }

    /// Checks that each thread stands in the queue of its word, and nowhere else.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn check(&self) -> Result<(), &'static str> {
        let mut count = 0;
        for (word, queue) in &self.queues {
            if queue.is_empty() {
                return Err("a queue is empty");
            }
            if queue.iter().any(|waiter| self.words.get(&waiter.thread) != Some(word)) {
                return Err("a thread stands in the queue of another word");
            }
            if !queue.iter().is_sorted_by(|one, next| one.priority >= next.priority) {
                return Err("a thread stands before one of a higher priority");
            }
            count += queue.len();
        }
        if count == self.words.len() { Ok(()) } else { Err("a thread stands in no queue") }
    }

    /// Removes a thread from the queue in which it stands, if it does.
    pub fn remove(&mut self, thread: u32) {
        let Some(word) = self.words.remove(&thread) else { return };
        let Some(queue) = self.queues.get_mut(&word) else { return };
        queue.retain(|waiter| waiter.thread != thread);
        self.drop_empty(word);
    }

    fn drop_empty(&mut self, word: Word) {
        if self.queues.get(&word).is_some_and(VecDeque::is_empty) {
            self.queues.remove(&word);
        }
    }

    /// Returns who waits first for a word.
    pub fn first(&self, word: Word) -> Option<Waiter> {
        self.queues.get(&word)?.front().copied()
    }

    /// Takes the first thread that waits for a word with one of these bits.
    pub fn take(&mut self, word: Word, bits: u32) -> Option<u32> {
        let queue = self.queues.get_mut(&word)?;
        let index = queue.iter().position(|waiter| waiter.bits & bits != 0)?;
        let waiter = queue.remove(index)?;
        self.words.remove(&waiter.thread);
        self.drop_empty(word);
        Some(waiter.thread)
    }

    /// Lets the first threads that wait for a word wait for another one instead. Returns their number.
    pub fn requeue(&mut self, from: Word, to: Word, count: usize) -> usize {
        let Some(queue) = self.queues.get_mut(&from) else { return 0 };
        let moved: VecDeque<Waiter> = queue.drain(..count.min(queue.len())).collect();
        self.drop_empty(from);
        let count = moved.len();
        for waiter in moved {
            self.add(to, waiter);
        }
        count
    }
}

/// The most locks in the list of a thread that ends.
const MAX_LOCKS: usize = 2048;

impl<M: Machine> System<M> {
    /// Returns the word at an address of a memory.
    pub(crate) fn word(&mut self, space: SpaceId, address: u64) -> Word {
        match self.spaces.get(space).space.areas().at(address) {
            Some((start, area)) if area.shared => match area.backing {
                Backing::Object(object, offset) => {
                    Word::Shared(self.memory.objects.get(object).serial(), offset + (address - start))
                }
                Backing::Anonymous => Word::Own(space, address),
            },
            _ => Word::Own(space, address),
        }
    }

    /// Wakes so many threads at the most that wait for the word at an address. Returns their number.
    pub(crate) fn wake_at(&mut self, space: SpaceId, address: u64, count: usize) -> usize {
        let word = self.word(space, address);
        self.wake_word(word, count, u32::MAX)
    }

    /// Wakes so many threads at the most that wait for a word with one of these bits. Returns their number.
    pub(crate) fn wake_word(&mut self, word: Word, count: usize, bits: u32) -> usize {
        for woken in 0..count {
            let Some(thread) = self.futexes.take(word, bits) else { return woken };
            self.waiters.make_ready(thread);
        }
        count
    }

    /// Gives a lock to the first thread that waits for it, or to nobody. Returns false if the word cannot be written.
    pub(crate) fn pass_on(&mut self, space: SpaceId, address: u64, flags: u32) -> bool {
        let word = self.word(space, address);
        let next = self.futexes.take(word, u32::MAX);
        let waits = self.futexes.first(word).map_or(0, |_| WAITERS);
        let value = next.map_or(flags, |next| next | waits | flags);
        next.into_iter().for_each(|next| self.waiters.make_ready(next));
        self.write(space, address, &value.to_le_bytes()) == 4
    }

    /// Marks the locks in the list of a thread that ends, and wakes who waits for them.
    pub(crate) fn release_locks(&mut self, space: SpaceId, thread: u32, list: u64) {
        let mut head = [0; robust_list::SIZE];
        if list == 0 || self.read(space, list, &mut head) < head.len() {
            return;
        }
        let offset = u64_at(&head, robust_list::OFFSET);
        let pending = u64_at(&head, robust_list::PENDING);
        let mut entry = u64_at(&head, robust_list::NEXT);
        for _ in 0..MAX_LOCKS {
            if entry & !1 == list {
                break;
            }
            let mut next = [0; 8];
            let is_next = self.read(space, entry & !1, &mut next) == next.len();
            // One that is being added or removed is looked at below.
            if entry & !1 != pending & !1 {
                self.release_lock(space, thread, entry, offset, false);
            }
            if !is_next {
                break;
            }
            entry = u64::from_le_bytes(next);
        }
        if pending & !1 != 0 {
            self.release_lock(space, thread, pending, offset, true);
        }
    }

    /// Marks a lock if a thread that ends has it. Bit 0 of its entry's address says that the next thread gets it.
    fn release_lock(&mut self, space: SpaceId, thread: u32, entry: u64, offset: u64, is_pending: bool) {
        let address = (entry & !1).wrapping_add(offset);
        let mut word = [0; 4];
        if !address.is_multiple_of(4) || self.read(space, address, &mut word) < word.len() {
            return;
        }
        let value = u32::from_le_bytes(word);
        let passes_on = entry & 1 != 0;
        if is_pending && !passes_on && value == 0 {
            // It has been released, and perhaps nobody was woken.
            self.wake_at(space, address, 1);
        }
        if value & OWNER != thread {
            return;
        }
        if passes_on && value & WAITERS != 0 {
            self.pass_on(space, address, OWNER_DIED);
            return;
        }
        let marked = value & WAITERS | OWNER_DIED;
        self.write(space, address, &marked.to_le_bytes());
        if value & WAITERS != 0 {
            self.wake_at(space, address, 1);
        }
    }
}
