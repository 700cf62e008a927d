//! One set, and what an operation does with it.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;

use tench_linux_calls::{Errno, ipc};

use crate::table::By;

/// The highest value of a semaphore, and of what is undone.
pub(crate) const MAX_VALUE: i32 = 32_767;

/// A change of a semaphore, or a wait until it is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Index of the semaphore.
    pub number: u16,
    /// The number that is added to the value. With 0, the operation waits until the value is 0.
    pub change: i16,
    /// Flags: `IPC_NOWAIT`, `SEM_UNDO`.
    pub flags: u16,
}

impl Operation {
    /// Size of an operation's record in bytes.
    pub const SIZE: usize = 6;

    /// Reads a record.
    pub const fn from_bytes(bytes: [u8; Operation::SIZE]) -> Operation {
        let [a, b, c, d, e, f] = bytes;
        Operation {
            number: u16::from_le_bytes([a, b]),
            change: i16::from_le_bytes([c, d]),
            flags: u16::from_le_bytes([e, f]),
        }
    }

    const fn has(self, flag: u32) -> bool {
        self.flags as u32 & flag != 0
    }

    /// Returns whether it is undone when its process ends.
    pub(crate) const fn is_undone(self) -> bool {
        self.has(ipc::sem::UNDO)
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Semaphore {
    pub value: u16,
    /// The process that has changed it last.
    pub process: u32,
}

/// Operations that wait, together.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub thread: u32,
    pub process: u32,
    pub operations: Box<[Operation]>,
    /// Index of the operation that cannot be done.
    pub blocking: usize,
}

impl Waiting {
    /// Returns whether none changes a semaphore.
    fn only_looks(&self) -> bool {
        self.operations.iter().all(|operation| operation.change == 0)
    }

    /// Returns whether it waits for a semaphore to become zero, or to become larger.
    fn waits_for(&self, number: u16, zero: bool) -> bool {
        let operation = self.operations[self.blocking];
        operation.number == number && (operation.change == 0) == zero
    }
}

/// A set of semaphores.
#[derive(Debug)]
pub struct Set {
    pub(crate) semaphores: Box<[Semaphore]>,
    /// When an operation was done last, in seconds; 0 for never.
    pub operated: u64,
    /// When the set was made or set, in seconds.
    pub changed: u64,
    /// In the order in which they came.
    pub(crate) waiting: VecDeque<Waiting>,
    /// Numbers that are added to the values when a process ends, by the process.
    pub(crate) undo: BTreeMap<u32, Box<[i16]>>,
}

/// Why operations are not done.
pub(crate) enum Obstacle {
    /// The one with this index cannot be done now.
    Blocks(usize),
    /// The operations can never be done.
    Never(Errno),
}

impl Set {
    pub(crate) fn new(count: usize, now: u64) -> Set {
        let semaphores = vec![Semaphore { value: 0, process: 0 }; count].into_boxed_slice();
        Set { semaphores, operated: 0, changed: now, waiting: VecDeque::new(), undo: BTreeMap::new() }
    }

    /// Returns the number of semaphores.
    pub fn count(&self) -> usize {
        self.semaphores.len()
    }

    /// Does operations of a process, all or none.
    pub(crate) fn perform(&mut self, process: u32, operations: &[Operation]) -> Result<(), Obstacle> {
        for (index, operation) in operations.iter().enumerate() {
            if let Err(obstacle) = self.step(process, index, *operation) {
                // Those that were done are taken back, the last one first.
                for done in operations[..index].iter().rev() {
                    self.take_back(process, *done);
                }
                return Err(obstacle);
            }
        }
        for operation in operations {
            self.semaphores[usize::from(operation.number)].process = process;
        }
        Ok(())
    }

    fn step(&mut self, process: u32, index: usize, operation: Operation) -> Result<(), Obstacle> {
        let number = usize::from(operation.number);
        let semaphore = &mut self.semaphores[number];
        let (value, change) = (i32::from(semaphore.value), i32::from(operation.change));
        let new = value + change;
        if change == 0 && value != 0 || new < 0 {
            return Err(Obstacle::Blocks(index));
        }
        let new = u16::try_from(new).ok().filter(|_| new <= MAX_VALUE).ok_or(Obstacle::Never(Errno::ERANGE))?;
        if operation.is_undone()
            && let Some(undo) = self.undo.get_mut(&process)
        {
            let undone = i16::try_from(i32::from(undo[number]) - change);
            undo[number] = undone.map_err(|_| Obstacle::Never(Errno::ERANGE))?;
        }
        semaphore.value = new;
        Ok(())
    }

    fn take_back(&mut self, process: u32, operation: Operation) {
        let number = usize::from(operation.number);
        let semaphore = &mut self.semaphores[number];
        semaphore.value = semaphore.value.wrapping_add_signed(operation.change.wrapping_neg());
        if operation.is_undone()
            && let Some(undo) = self.undo.get_mut(&process)
        {
            undo[number] = undo[number].wrapping_add(operation.change);
        }
    }

    /// Does the next waiting operations that can be done, and takes them out: those that change nothing before others,
    /// each in the order in which they came. None of the others can be done before the index `from`.
    pub(crate) fn advance(&mut self, by: &By<'_>, from: &mut usize) -> Option<(u32, Result<(), Errno>)> {
        let looks = (0..self.waiting.len()).find_map(|index| Some((index, self.try_waiting(index, true)?)));
        let found = looks.or_else(|| (*from..self.waiting.len()).find_map(|i| Some((i, self.try_waiting(i, false)?))));
        let (index, result) = found?;
        let done = self.waiting.remove(index)?;
        // If each thread waits with one operation, doing one cannot help those before it. Otherwise it may.
        let is_simple = done.operations.len() == 1 && self.waiting.iter().all(|other| other.operations.len() == 1);
        *from = if is_simple { index.max(*from) } else { 0 };
        if result.is_ok() {
            self.operated = by.now;
        }
        Some((done.thread, result))
    }

    /// Tries waiting operations, if they only look, or if they do not. Returns their result, if they are over.
    fn try_waiting(&mut self, index: usize, only_looks: bool) -> Option<Result<(), Errno>> {
        if self.waiting[index].only_looks() != only_looks {
            return None;
        }
        let process = self.waiting[index].process;
        let operations = core::mem::take(&mut self.waiting[index].operations);
        let result = self.perform(process, &operations);
        let waiting = &mut self.waiting[index];
        waiting.operations = operations;
        match result {
            Ok(()) => Some(Ok(())),
            Err(Obstacle::Never(error)) => Some(Err(error)),
            Err(Obstacle::Blocks(blocking)) if waiting.operations[blocking].has(ipc::NOWAIT) => {
                Some(Err(Errno::EAGAIN))
            }
            Err(Obstacle::Blocks(blocking)) => {
                waiting.blocking = blocking;
                None
            }
        }
    }

    /// Returns how many threads wait for a semaphore, to become zero or to become larger.
    pub(crate) fn count_waiting(&self, number: u16, zero: bool) -> u64 {
        self.waiting.iter().filter(|waiting| waiting.waits_for(number, zero)).count() as u64
    }

    /// Undoes what a process wanted to be undone. Returns whether there was anything.
    pub(crate) fn undo(&mut self, by: &By<'_>) -> bool {
        let Some(undo) = self.undo.remove(&by.process) else { return false };
        for (semaphore, change) in self.semaphores.iter_mut().zip(undo).filter(|(_, change)| *change != 0) {
            let value = (i32::from(semaphore.value) + i32::from(change)).clamp(0, MAX_VALUE);
            *semaphore = Semaphore { value: value as u16, process: by.process };
        }
        self.operated = by.now;
        true
    }

    pub(crate) fn check(&self) -> Result<(), &'static str> {
        if self.semaphores.iter().any(|semaphore| i32::from(semaphore.value) > MAX_VALUE) {
            return Err("a semaphore has a value that none can have");
        }
        if self.undo.values().any(|undo| undo.len() != self.semaphores.len()) {
            return Err("what is undone has another number of semaphores than the set");
        }
        let count = self.semaphores.len();
        let is_wrong = |operation: &Operation| usize::from(operation.number) >= count;
        if self.waiting.iter().any(|waiting| waiting.operations.iter().any(is_wrong)) {
            return Err("an operation waits for a semaphore that is not there");
        }
        for waiting in &self.waiting {
            let operation = waiting.operations[waiting.blocking];
            let value = i32::from(self.semaphores[usize::from(operation.number)].value);
            let change = i32::from(operation.change);
            let blocks = if change == 0 { value != 0 } else { value + change < 0 };
            // One of several may fail because of those before it.
            if waiting.operations.len() == 1 && !blocks {
                return Err("an operation waits that could be done");
            }
        }
        Ok(())
    }
}
