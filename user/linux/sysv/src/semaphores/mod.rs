//! Sets of semaphores.

mod set;

pub use set::{Operation, Set};

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;

use tench_linux_calls::{Errno, ipc};

use crate::table::{By, Entry, Found, Owner, Table, index_of};
use crate::waits::Waits;
use set::{MAX_VALUE, Obstacle, Semaphore, Waiting};

/// The outcome of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// The operations are done.
    Now,
    /// The operations are kept, and done later.
    Waits,
}

/// Bytes beside those of the values that a set or what is undone takes at most.
const BESIDE: usize = 1024;

/// All sets.
#[derive(Debug)]
pub struct Semaphores {
    all: Table<Set>,
    waits: Waits<()>,
    /// The processes that want something to be undone, with the indices of the sets.
    undoing: BTreeSet<(u32, u32)>,
    /// Number of semaphores of all sets.
    used: u64,
}

impl Default for Semaphores {
    fn default() -> Semaphores {
        let all = Table::new(Semaphores::MAX_SETS);
        Semaphores { all, waits: Waits::new(), undoing: BTreeSet::new(), used: 0 }
    }
}

impl Semaphores {
    /// The most sets.
    pub const MAX_SETS: usize = 32_000;
    /// The most semaphores of a set.
    pub const MAX_COUNT: u64 = 32_000;
    /// The most semaphores of all sets.
    pub const MAX_ALL: u64 = 1_024_000_000;
    /// The most operations at once.
    pub const MAX_OPERATIONS: usize = 500;
    /// The highest value.
    pub const MAX_VALUE: u32 = MAX_VALUE as u32;

    /// Returns the identifier of a set, which is made if that is wanted. `room` checks that there is memory for so many
    /// bytes.
    ///
    /// # Errors
    /// `EINVAL` if the set is smaller or none can have so many, `ENOENT`, `EEXIST`, `EACCES`, `ENOSPC` if there are too
    /// many, and those of `room`.
    pub fn get(
        &mut self,
        by: &By<'_>,
        key: i32,
        count: u64,
        flags: u32,
        room: impl FnOnce(usize) -> Result<(), Errno>,
    ) -> Result<i32, Errno> {
        if count > Self::MAX_COUNT {
            return Err(Errno::EINVAL);
        }
        let fits = |set: &Set| if (set.count() as u64) < count { Err(Errno::EINVAL) } else { Ok(()) };
        if let Some(id) = self.all.find(by, key, flags, fits)? {
            return Ok(id);
        }
        if count == 0 {
            return Err(Errno::EINVAL);
        }
        if self.used + count > Self::MAX_ALL {
            return Err(Errno::ENOSPC);
        }
        room(count as usize * size_of::<Semaphore>() + BESIDE)?;
        self.all.check_count()?;
        self.used += count;
        Ok(self.all.add(by, key, flags, Set::new(count as usize, by.now)))
    }

    /// Does operations, all or none, or keeps them for the thread. `room` checks that there is memory for what the
    /// process wants to be undone.
    ///
    /// # Errors
    /// `EINVAL` if the set is not there, `EFBIG` if a semaphore is not, `EACCES`, `EAGAIN` if they would have to wait
    /// and must not, `ERANGE` if a value or what is undone would be too high, and those of `room`.
    pub fn operate(
        &mut self,
        by: &By<'_>,
        id: i32,
        operations: &[Operation],
        room: impl FnOnce(usize) -> Result<(), Errno>,
    ) -> Result<Done, Errno> {
        let index = index_of(id);
        let entry = self.all.get_mut(id)?;
        let set = &mut entry.value;
        if operations.iter().any(|operation| operation.is_undone()) && !set.undo.contains_key(&by.process) {
            room(set.count() * size_of::<i16>() + BESIDE)?;
            set.undo.insert(by.process, vec![0; set.count()].into_boxed_slice());
            self.undoing.insert((by.process, index));
        }
        if operations.iter().any(|operation| usize::from(operation.number) >= set.count()) {
            return Err(Errno::EFBIG);
        }
        let changes = operations.iter().any(|operation| operation.change != 0);
        entry.permissions.check(&by.user, if changes { 0o222 } else { 0o444 })?;
        match set.perform(by.process, operations) {
            Ok(()) => {
                set.operated = by.now;
                self.advance(by, index);
                Ok(Done::Now)
            }
            Err(Obstacle::Never(error)) => Err(error),
            Err(Obstacle::Blocks(blocking)) if u32::from(operations[blocking].flags) & ipc::NOWAIT != 0 => {
                Err(Errno::EAGAIN)
            }
            Err(Obstacle::Blocks(blocking)) => {
                let operations: Box<[Operation]> = operations.into();
                set.waiting.push_back(Waiting { thread: by.thread, process: by.process, operations, blocking });
                self.waits.begin(by.thread, index);
                Ok(Done::Waits)
            }
        }
    }

    /// Does what waits for a set that has changed.
    fn advance(&mut self, by: &By<'_>, index: u32) {
        let Some(entry) = self.all.at(index) else { return };
        let mut from = 0;
        while let Some((thread, result)) = entry.value.advance(by, &mut from) {
            self.waits.finish(thread, result);
        }
    }

    /// Returns whether a thread's operations are kept.
    pub fn is_kept(&self, thread: u32) -> bool {
        self.waits.is_kept(thread)
    }

    /// Takes the result of a thread's operations that were kept, if they are over.
    pub fn take_result(&mut self, thread: u32) -> Option<Result<(), Errno>> {
        self.waits.take_result(thread)
    }

    /// Takes a thread whose operations are over.
    pub fn take_woken(&mut self) -> Option<u32> {
        self.waits.take_woken()
    }

    /// Forgets the operations of a thread that waits no longer.
    pub fn end_wait(&mut self, thread: u32) {
        if let Some(entry) = self.waits.end(thread).and_then(|index| self.all.at(index)) {
            entry.value.waiting.retain(|waiting| waiting.thread != thread);
        }
    }

    /// Undoes what a process that has ended wanted to be undone.
    pub fn end_process(&mut self, by: &By<'_>) {
        while let Some((process, index)) = self.undoing.range((by.process, 0)..).next().copied()
            && process == by.process
        {
            self.undoing.remove(&(process, index));
            if self.all.at(index).is_some_and(|entry| entry.value.undo(by)) {
                self.advance(by, index);
            }
        }
    }

    /// Returns a set and the index of a semaphore for a user who may have what some permissions say.
    fn semaphore(&mut self, by: &By<'_>, id: i32, number: i32, wanted: u32) -> Result<(&mut Set, usize), Errno> {
        let entry = self.all.get_mut(id)?;
        entry.permissions.check(&by.user, wanted)?;
        let number = usize::try_from(number).ok().filter(|number| *number < entry.value.count());
        Ok((&mut entry.value, number.ok_or(Errno::EINVAL)?))
    }

    /// Returns a semaphore's value.
    ///
    /// # Errors
    /// `EINVAL` if it is not there, `EACCES`.
    pub fn value(&mut self, by: &By<'_>, id: i32, number: i32) -> Result<u64, Errno> {
        let (set, number) = self.semaphore(by, id, number, 0o444)?;
        Ok(set.semaphores[number].value.into())
    }

    /// Returns the process that has changed a semaphore last.
    ///
    /// # Errors
    /// As those of [`value`](Self::value).
    pub fn last(&mut self, by: &By<'_>, id: i32, number: i32) -> Result<u64, Errno> {
        let (set, number) = self.semaphore(by, id, number, 0o444)?;
        Ok(set.semaphores[number].process.into())
    }

    /// Returns how many threads wait for a semaphore, to become zero or to become larger.
    ///
    /// # Errors
    /// As those of [`value`](Self::value).
    pub fn waiting(&mut self, by: &By<'_>, id: i32, number: i32, zero: bool) -> Result<u64, Errno> {
        let (set, number) = self.semaphore(by, id, number, 0o444)?;
        Ok(set.count_waiting(number as u16, zero))
    }

    /// Sets a semaphore's value. Nothing of it is undone any more.
    ///
    /// # Errors
    /// `ERANGE` if none can have the value, `EINVAL` if the semaphore is not there, `EACCES`.
    pub fn set_value(&mut self, by: &By<'_>, id: i32, number: i32, value: i32) -> Result<(), Errno> {
        if id < 0 {
            return Err(Errno::EINVAL);
        }
        if !(0..=MAX_VALUE).contains(&value) {
            return Err(Errno::ERANGE);
        }
        let entry = self.all.get(id)?;
        // As Linux, which looks for the semaphore first here.
        usize::try_from(number).ok().filter(|number| *number < entry.value.count()).ok_or(Errno::EINVAL)?;
        let (set, number) = self.semaphore(by, id, number, 0o222)?;
        set.semaphores[number] = Semaphore { value: value as u16, process: by.process };
        set.undo.values_mut().for_each(|undo| undo[number] = 0);
        set.changed = by.now;
        self.advance(by, index_of(id));
        Ok(())
    }

    /// Returns all values of a set.
    ///
    /// # Errors
    /// `EINVAL` if it is not there, `EACCES`.
    pub fn values(&self, by: &By<'_>, id: i32) -> Result<Vec<u8>, Errno> {
        let entry = self.all.get(id)?;
        entry.permissions.check(&by.user, 0o444)?;
        Ok(entry.value.semaphores.iter().flat_map(|semaphore| semaphore.value.to_le_bytes()).collect())
    }

    /// Returns how many values a user may set.
    ///
    /// # Errors
    /// `EINVAL` if the set is not there, `EACCES`.
    pub fn settable(&self, by: &By<'_>, id: i32) -> Result<usize, Errno> {
        let entry = self.all.get(id)?;
        entry.permissions.check(&by.user, 0o222)?;
        Ok(entry.value.count())
    }

    /// Sets all values of a set, two bytes each. Nothing of it is undone any more.
    ///
    /// # Errors
    /// `ERANGE` if a semaphore cannot have its value, `EINVAL` if the set is not there, `EACCES`.
    pub fn set_values(&mut self, by: &By<'_>, id: i32, values: &[u8]) -> Result<(), Errno> {
        let entry = self.all.get_mut(id)?;
        entry.permissions.check(&by.user, 0o222)?;
        let (values, _) = values.as_chunks::<2>();
        let values = values.iter().map(|bytes| u16::from_le_bytes(*bytes));
        if values.clone().any(|value| i32::from(value) > MAX_VALUE) {
            return Err(Errno::ERANGE);
        }
        let set = &mut entry.value;
        for (semaphore, value) in set.semaphores.iter_mut().zip(values) {
            *semaphore = Semaphore { value, process: by.process };
        }
        set.undo.values_mut().for_each(|undo| undo.fill(0));
        set.changed = by.now;
        self.advance(by, index_of(id));
        Ok(())
    }

    /// Removes a set. The operations that wait for it fail with `EIDRM`.
    ///
    /// # Errors
    /// `EINVAL` if it is not there, `EPERM` if it belongs to another.
    pub fn remove(&mut self, by: &By<'_>, id: i32) -> Result<(), Errno> {
        self.all.own(by, id)?;
        let Some(set) = self.all.remove(index_of(id)) else { return Ok(()) };
        self.used -= set.count() as u64;
        for process in set.undo.keys() {
            self.undoing.remove(&(*process, index_of(id)));
        }
        for waiting in set.waiting {
            self.waits.finish(waiting.thread, Err(Errno::EIDRM));
        }
        Ok(())
    }

    /// Gives a set to somebody.
    ///
    /// # Errors
    /// `EINVAL` if it is not there or nobody has such a number, `EPERM` if it belongs to another.
    pub fn give(&mut self, by: &By<'_>, id: i32, owner: &Owner) -> Result<(), Errno> {
        self.all.give(by, id, owner)?.changed = by.now;
        Ok(())
    }

    /// Returns what is known of a set, and what a call that asks for it returns.
    ///
    /// # Errors
    /// `EINVAL` if it is not there, `EACCES`.
    pub fn look(&self, by: &By<'_>, id: i32, how: Found) -> Result<(&Entry<Set>, u64), Errno> {
        self.all.look(by, id, how)
    }

    /// Returns the number of sets.
    pub fn count(&self) -> usize {
        self.all.count()
    }

    /// Returns the number of semaphores of all sets.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Returns the highest index of a set; 0 if there is none.
    pub fn highest(&self) -> u64 {
        self.all.highest()
    }

    /// Returns all sets, by their indices.
    pub fn iter(&self) -> impl Iterator<Item = &Entry<Set>> {
        self.all.iter()
    }

    /// Returns the threads that wait, or whose operations are over and that do not know it.
    pub fn threads(&self) -> impl Iterator<Item = u32> {
        self.waits.threads()
    }

    /// Returns the processes that want something to be undone.
    pub fn processes(&self) -> impl Iterator<Item = u32> {
        self.undoing.iter().map(|(process, _)| *process)
    }

    /// Checks sets, and that threads, processes and sets know each other.
    ///
    /// # Errors
    /// A sentence about the first invariant that does not hold.
    pub fn check(&self) -> Result<(), &'static str> {
        self.all.check()?;
        let (mut used, mut kept, mut undoing) = (0, Vec::new(), Vec::new());
        for entry in self.iter() {
            entry.value.check()?;
            used += entry.value.count() as u64;
            let index = index_of(entry.id);
            kept.extend(entry.value.waiting.iter().map(|waiting| (waiting.thread, index)));
            undoing.extend(entry.value.undo.keys().map(|process| (*process, index)));
        }
        kept.sort_unstable();
        undoing.sort_unstable();
        if !self.waits.kept().eq(kept) {
            return Err("a thread and the set for which it waits do not know each other");
        }
        if !self.undoing.iter().copied().eq(undoing) {
            return Err("a process and the set that it wants to be undone do not know each other");
        }
        if used == self.used { Ok(()) } else { Err("semaphores are counted wrongly") }
    }
}
