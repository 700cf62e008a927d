//! The locks of all files, and who waits for them.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::file::FileLocks;
use crate::{Kind, Owner, Range, Record};

/// Why somebody does not get a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Somebody else has one that is in the way.
    Held,
    /// There are as many locks as there may be.
    Full,
}

/// A lock for which somebody waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted<D> {
    /// A lock of a range.
    Record(Record<D>),
    /// A lock of the whole file.
    Whole,
}

/// Somebody who waits for a lock.
#[derive(Debug)]
struct Wait<F, D> {
    /// The place in the order of those that wait: lower numbers have waited longer.
    turn: u64,
    file: F,
    wanted: Wanted<D>,
}

/// The locks of all files, and who waits for them. `F` names files, and `D` open files.
#[derive(Debug)]
pub struct Locks<F, D> {
    /// The locks of each file that has some.
    files: BTreeMap<F, FileLocks<D>>,
    /// The number of all locks.
    count: usize,
    /// The threads that wait.
    waits: BTreeMap<u32, Wait<F, D>>,
    /// The turn of the thread that begins to wait next.
    next_turn: u64,
    /// Threads whose wait may be over, in order.
    woken: Vec<u32>,
}

impl<F, D> Default for Locks<F, D> {
    fn default() -> Locks<F, D> {
        Locks { files: BTreeMap::new(), count: 0, waits: BTreeMap::new(), next_turn: 0, woken: Vec::new() }
    }
}

impl<F: Copy + Ord, D: Copy + Eq> Locks<F, D> {
    /// The most locks of ranges that a file can have, and the most locks of the whole file.
    pub const MAX_OF_FILE: usize = 2048;
    /// The most locks of all files.
    pub const MAX: usize = 16_384;

    /// Returns whether no file has a lock.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns a lock of somebody else that is in the way of a lock of a range, if there is one.
    pub fn conflict(&self, file: F, wanted: &Record<D>) -> Option<Record<D>> {
        self.files.get(&file)?.conflicts(wanted).next().copied()
    }

    /// Gives an owner a lock of a range, in place of what it has there.
    ///
    /// # Errors
    /// Either [refusal](Refusal). Then nothing has changed.
    pub fn lock(&mut self, file: F, wanted: Record<D>) -> Result<(), Refusal> {
        if self.conflict(file, &wanted).is_some() {
            return Err(Refusal::Held);
        }
        self.set(file, wanted.owner, wanted.range, Some(wanted.kind))
    }

    /// Takes an owner's locks of a range away.
    ///
    /// # Errors
    /// `Full` if one lock would become two, which is one too many. Then nothing has changed.
    pub fn unlock(&mut self, file: F, owner: Owner<D>, range: Range) -> Result<(), Refusal> {
        if self.files.contains_key(&file) { self.set(file, owner, range, None) } else { Ok(()) }
    }

    fn set(&mut self, file: F, owner: Owner<D>, range: Range, kind: Option<Kind>) -> Result<(), Refusal> {
        let locks = self.files.entry(file).or_default();
        let (before, records) = (locks.count(), locks.records().len());
        let limit = Self::MAX_OF_FILE.min(records + (Self::MAX - self.count));
        let result = if locks.set(owner, range, kind, limit) { Ok(()) } else { Err(Refusal::Full) };
        self.count_again(file, before);
        if result.is_ok() && kind != Some(Kind::Exclusive) {
            self.wake(file, Some(range));
        }
        result
    }

    /// Gives an open file a lock of the whole file. One of another kind that it has is taken away before, whether or
    /// not it gets the new one.
    ///
    /// # Errors
    /// Either [refusal](Refusal).
    pub fn lock_whole(&mut self, file: F, description: D, kind: Kind) -> Result<(), Refusal> {
        if self.files.get(&file).is_some_and(|locks| locks.whole.contains(&(description, kind))) {
            return Ok(());
        }
        self.unlock_whole(file, description);
        let is_full = self.count >= Self::MAX;
        let locks = self.files.entry(file).or_default();
        let before = locks.count();
        let result = if locks.is_whole_held(description, kind) {
            Err(Refusal::Held)
        } else if is_full || locks.whole.len() >= Self::MAX_OF_FILE || locks.whole.try_reserve(1).is_err() {
            Err(Refusal::Full)
        } else {
            locks.whole.push((description, kind));
            Ok(())
        };
        self.count_again(file, before);
        result
    }

    /// Takes an open file's lock of the whole file away, if it has one.
    pub fn unlock_whole(&mut self, file: F, description: D) {
        let Some(locks) = self.files.get_mut(&file) else { return };
        let before = locks.count();
        if locks.remove_whole(description) {
            self.count_again(file, before);
            self.wake(file, None);
        }
    }

    /// Takes all locks of ranges of a file away that a process has.
    pub fn close_process(&mut self, file: F, process: u32) {
        self.remove(file, Owner::Process(process));
    }

    /// Takes all locks away that an open file has.
    pub fn close_description(&mut self, file: F, description: D) {
        self.remove(file, Owner::Description(description));
        self.unlock_whole(file, description);
    }

    fn remove(&mut self, file: F, owner: Owner<D>) {
        let Some(locks) = self.files.get_mut(&file) else { return };
        let before = locks.count();
        if locks.remove(owner) {
            self.count_again(file, before);
            self.wake(file, Some(Range { first: 0, last: Range::END }));
        }
    }

    /// Counts the locks of a file of which there were so many, and forgets a file without locks.
    fn count_again(&mut self, file: F, before: usize) {
        let now = self.files.get(&file).map_or(0, FileLocks::count);
        self.count = self.count - before + now;
        if now == 0 {
            self.files.remove(&file);
        }
    }

    /// Wakes, in the order of their turns, those who wait for a lock of a range that has a byte of this one; without a
    /// range, those who wait for a lock of the whole file.
    fn wake(&mut self, file: F, range: Option<Range>) {
        if self.waits.is_empty() {
            return;
        }
        let concerns = |wait: &Wait<F, D>| match (range, wait.wanted) {
            (Some(range), Wanted::Record(record)) => range.overlaps(record.range),
            (None, Wanted::Whole) => true,
            (Some(_), Wanted::Whole) | (None, Wanted::Record(_)) => false,
        };
        let concerned = self.waits.iter().filter(|(_, wait)| wait.file == file && concerns(wait));
        let mut turns: Vec<(u64, u32)> = concerned.map(|(thread, wait)| (wait.turn, *thread)).collect();
        turns.sort_unstable();
        self.woken.extend(turns.iter().map(|(_, thread)| *thread));
    }

    /// Takes the threads for whose waits something has changed, in order.
    pub fn take_woken(&mut self) -> Vec<u32> {
        core::mem::take(&mut self.woken)
    }

    /// Records that a thread waits for a lock. One that has waited keeps its turn.
    pub fn wait(&mut self, thread: u32, file: F, wanted: Wanted<D>) {
        let turn = self.waits.get(&thread).map_or(self.next_turn, |wait| wait.turn);
        self.next_turn = self.next_turn.max(turn + 1);
        self.waits.insert(thread, Wait { turn, file, wanted });
    }

    /// Forgets that a thread waits, if it does.
    pub fn end_wait(&mut self, thread: u32) {
        self.waits.remove(&thread);
    }

    /// Returns all threads that wait.
    pub fn threads(&self) -> impl Iterator<Item = u32> {
        self.waits.keys().copied()
    }

    /// Returns whether a process that waits for a lock would wait for itself: whether somebody who is in the way waits,
    /// perhaps through others, for a lock of the process. Nobody knows for whom an open file waits, since any process
    /// may use it.
    pub fn is_deadlock(&self, file: F, wanted: &Record<D>) -> bool {
        let Owner::Process(own) = wanted.owner else { return false };
        let mut waits: Vec<(u32, F, Record<D>)> = Vec::new();
        waits.extend(self.waits.values().filter_map(|wait| match wait.wanted {
            Wanted::Record(record @ Record { owner: Owner::Process(process), .. }) => {
                Some((process, wait.file, record))
            }
            Wanted::Record(_) | Wanted::Whole => None,
        }));
        waits.sort_unstable_by_key(|(process, ..)| *process);
        let mut seen = BTreeSet::new();
        let mut searched = alloc::vec![(file, *wanted)];
        while let Some((file, wanted)) = searched.pop() {
            let in_the_way = self.files.get(&file).into_iter().flat_map(|locks| locks.conflicts(&wanted));
            for record in in_the_way {
                let Owner::Process(process) = record.owner else { continue };
                if process == own {
                    return true;
                }
                if seen.insert(process) {
                    let first = waits.partition_point(|(waiting, ..)| *waiting < process);
                    let theirs = waits[first..].iter().take_while(|(waiting, ..)| *waiting == process);
                    searched.extend(theirs.map(|(_, file, record)| (*file, *record)));
                }
            }
        }
        false
    }

    /// Returns all locks of ranges, with their files.
    pub fn records(&self) -> impl Iterator<Item = (F, Record<D>)> {
        self.files.iter().flat_map(|(file, locks)| locks.records().iter().map(|record| (*file, *record)))
    }

    /// Returns all locks of whole files, with the open files that have them.
    pub fn whole(&self) -> impl Iterator<Item = (F, D, Kind)> {
        self.files.iter().flat_map(|(file, locks)| locks.whole.iter().map(|(owner, kind)| (*file, *owner, *kind)))
    }

    /// Checks that the locks of each file are in order, and counted.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn check(&self) -> Result<(), &'static str> {
        for locks in self.files.values() {
            if locks.count() == 0 {
                return Err("a file without locks is remembered");
            }
            locks.check()?;
        }
        let count: usize = self.files.values().map(FileLocks::count).sum();
        if count != self.count {
            return Err("there is another number of locks than was counted");
        }
        if self.woken.is_empty() { Ok(()) } else { Err("somebody was not woken") }
    }
}
