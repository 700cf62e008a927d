//! Calls about semaphores of System V.

use core::time::Duration;

use tench_linux_calls::ipc::{command, semid64_ds};
use tench_linux_calls::records::{timespec, u64_at};
use tench_linux_files::Errno;
use tench_linux_sysv::{Done, Operation, Semaphores};

use super::ipc::{found, identifier, owner, put, put_permissions};
use crate::Machine;
use crate::caller::{Caller, Result};

/// Size of a value in the array of all values of a set.
const VALUE: usize = 2;
/// Size of an undo record, as Linux reports it.
const UNDO_SIZE: u32 = 20;

impl<M: Machine> Caller<'_, M> {
    /// Returns the identifier of a set, or makes it.
    pub fn semget(&mut self, key: u64, count: u64, flags: u64) -> Result {
        let identity = self.identity().clone();
        let (by, key) = (self.by(&identity), (key as u32).cast_signed());
        // A negative number of semaphores is too high.
        let count = (count as u32).into();
        let memory = &mut self.system.memory;
        let room = |bytes| memory.check_room(bytes);
        let id = self.system.ipc.semaphores.get(&by, key, count, flags as u32, room)?;
        Ok(id.cast_unsigned().into())
    }

    /// Does all operations or none. Waits until they can be done, for a limited time if one is given.
    pub fn semtimedop(&mut self, id: u64, from: u64, count: u64, time: u64) -> Result {
        let thread = self.process.thread().id;
        if let Some(result) = self.system.ipc.semaphores.take_result(thread) {
            return result.map(|()| 0);
        }
        if self.system.ipc.semaphores.is_kept(thread) {
            return Err(self.wait_for_ipc(self.deadline(), Errno::EAGAIN));
        }
        let time: Option<[u8; timespec::SIZE]> = if time == 0 { None } else { Some(self.read_record(time)?) };
        let count = count as u32 as usize;
        if count > Semaphores::MAX_OPERATIONS {
            return Err(Errno::E2BIG);
        }
        if count == 0 {
            return Err(Errno::EINVAL);
        }
        let bytes = self.read(from, count * Operation::SIZE)?;
        let (records, _) = bytes.as_chunks();
        let operations: alloc::vec::Vec<Operation> = records.iter().map(|one| Operation::from_bytes(*one)).collect();
        let id = identifier(id)?;
        let deadline = self.time_limit_of(time.as_ref())?;
        let identity = self.identity().clone();
        let (by, memory) = (self.by(&identity), &mut self.system.memory);
        let done = self.system.ipc.semaphores.operate(&by, id, &operations, |bytes| memory.check_room(bytes))?;
        self.system.wake_for_ipc();
        match done {
            Done::Now => Ok(0),
            Done::Waits => Err(self.wait_for_ipc(deadline, Errno::EAGAIN)),
        }
    }

    /// Returns the deadline of a call, if it has the record of a time.
    fn time_limit_of(&self, record: Option<&[u8; timespec::SIZE]>) -> Result<Option<Duration>> {
        let Some(record) = record else { return Ok(None) };
        let (seconds, nanoseconds) = (u64_at(record, timespec::SECONDS), u64_at(record, timespec::NANOSECONDS));
        if seconds.cast_signed() < 0 || nanoseconds >= 1_000_000_000 {
            return Err(Errno::EINVAL);
        }
        let time = Duration::new(seconds, nanoseconds as u32);
        Ok(Some(self.system.memory.hardware.monotonic().saturating_add(time)))
    }

    /// Tells or changes what is known of a set, or of all.
    pub fn semctl(&mut self, id: u64, index: u64, number: u64, argument: u64) -> Result {
        let identity = self.identity().clone();
        let (id, by) = (identifier(id)?, self.by(&identity));
        let (index, number) = ((index as u32).cast_signed(), number as u32);
        let semaphores = &mut self.system.ipc.semaphores;
        let result = match number {
            command::INFO | command::SEM_INFO => self.limits_of_semaphores(number, argument),
            command::STAT | command::SEM_STAT | command::SEM_STAT_ANY => {
                let (record, result) = self.status_of_set(id, number)?;
                self.write(argument, &record).map(|()| result)
            }
            command::GETVAL => semaphores.value(&by, id, index),
            command::GETPID => semaphores.last(&by, id, index),
            command::GETNCNT => semaphores.waiting(&by, id, index, false),
            command::GETZCNT => semaphores.waiting(&by, id, index, true),
            command::SETVAL => {
                let value = (argument as u32).cast_signed();
                semaphores.set_value(&by, id, index, value).map(|()| 0)
            }
            command::GETALL => {
                let values = semaphores.values(&by, id)?;
                self.write(argument, &values).map(|()| 0)
            }
            command::SETALL => {
                let count = semaphores.settable(&by, id)?;
                let values = self.read(argument, count * VALUE)?;
                self.system.ipc.semaphores.set_values(&by, id, &values).map(|()| 0)
            }
            command::SET => {
                let record: [u8; semid64_ds::SIZE] = self.read_record(argument)?;
                self.system.ipc.semaphores.give(&by, id, &owner(&record)).map(|()| 0)
            }
            command::REMOVE => semaphores.remove(&by, id).map(|()| 0),
            _ => Err(Errno::EINVAL),
        };
        self.system.wake_for_ipc();
        result
    }

    /// Returns the record of a set, and what the call returns.
    fn status_of_set(&self, id: i32, number: u32) -> Result<([u8; semid64_ds::SIZE], u64)> {
        let how = found(number, command::SEM_STAT);
        let identity = self.identity().clone();
        let (entry, result) = self.system.ipc.semaphores.look(&self.by(&identity), id, how)?;
        let mut record = [0; semid64_ds::SIZE];
        put_permissions(&mut record, entry);
        put(&mut record, semid64_ds::OPERATED, entry.value.operated);
        put(&mut record, semid64_ds::CHANGED, entry.value.changed);
        put(&mut record, semid64_ds::COUNT, entry.value.count() as u64);
        Ok((record, result))
    }

    /// Writes the limits, and how many there are.
    fn limits_of_semaphores(&mut self, number: u32, into: u64) -> Result {
        let semaphores = &self.system.ipc.semaphores;
        let (operations, most) = (Semaphores::MAX_OPERATIONS as u32, Semaphores::MAX_ALL as u32);
        let (size, value) = match number {
            command::INFO => (UNDO_SIZE, Semaphores::MAX_VALUE),
            _ => (semaphores.count() as u32, semaphores.used() as u32),
        };
        let (sets, count) = (Semaphores::MAX_SETS as u32, Semaphores::MAX_COUNT as u32);
        // struct seminfo: semmap, semmni, semmns, semmnu, semmsl, semopm, semume, semusz, semvmx, semaem
        let highest = semaphores.highest();
        let words = [most, sets, most, most, count, operations, operations, size, Semaphores::MAX_VALUE, value];
        self.write(into, words.map(u32::to_le_bytes).as_flattened()).map(|()| highest)
    }
}
