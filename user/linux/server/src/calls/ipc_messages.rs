//! Calls about message queues of System V.

use alloc::vec::Vec;

use tench_linux_calls::ipc::{NOWAIT, command, msg, msqid64_ds};
use tench_linux_calls::records::u64_at;
use tench_linux_files::Errno;
use tench_linux_sysv::{Filter, Message, Queues, Received, Wanted};

use super::ipc::{found, identifier, owner, put, put_half, put_permissions};
use crate::Machine;
use crate::caller::{Caller, Result};

/// Bytes of a message's type, which lie before it.
const TYPE: usize = 8;
/// Longest message in bytes after which there is no check whether memory is short.
const LARGE_MESSAGE: usize = 4096;
/// The unit of a limit that Linux does not have any more.
const SEGMENT: u32 = 16;

impl<M: Machine> Caller<'_, M> {
    /// Returns the identifier of a queue, or makes it.
    pub fn msgget(&mut self, key: u64, flags: u64) -> Result {
        let identity = self.identity().clone();
        let by = self.by(&identity);
        let id = self.system.ipc.queues.get(&by, (key as u32).cast_signed(), flags as u32)?;
        Ok(id.cast_unsigned().into())
    }

    /// Returns the result of a call that was kept, if it is over, or lets it wait on.
    fn kept(&mut self) -> Option<Result<Received>> {
        let thread = self.process.thread().id;
        if let Some(result) = self.system.ipc.queues.take_result(thread) {
            return Some(result);
        }
        self.system.ipc.queues.is_kept(thread).then(|| Err(self.wait_for_ipc(None, Errno::EAGAIN)))
    }

    /// Sends a message. Waits until there is room.
    pub fn msgsnd(&mut self, id: u64, from: u64, length: u64, flags: u64) -> Result {
        if let Some(result) = self.kept() {
            return result.map(|_| 0);
        }
        let kind = i64::from_le_bytes(self.read_record(from)?);
        if length > Queues::MAX_MESSAGE {
            return Err(Errno::EINVAL);
        }
        let id = identifier(id)?;
        if kind < 1 {
            return Err(Errno::EINVAL);
        }
        let length = length as usize;
        if length > LARGE_MESSAGE {
            self.system.memory.check_room(length)?;
            self.system.calls_left = 0;
        }
        let bytes = self.read(from.wrapping_add(TYPE as u64), length)?.into_boxed_slice();
        let identity = self.identity().clone();
        let (by, waits) = (self.by(&identity), flags as u32 & NOWAIT == 0);
        let sent = self.system.ipc.queues.send(&by, id, Message { kind, bytes }, waits)?;
        self.system.wake_for_ipc();
        match sent {
            Received::Waits => Err(self.wait_for_ipc(None, Errno::EAGAIN)),
            Received::Sent | Received::Message(_) => Ok(0),
        }
    }

    /// Receives a message. Waits until there is one.
    pub fn msgrcv(&mut self, id: u64, into: u64, length: u64, kind: u64, flags: u64) -> Result {
        let flags = flags as u32;
        let received = match self.kept() {
            Some(result) => result?,
            None => self.receive_or_keep(id, into, length, kind.cast_signed(), flags)?,
        };
        match received {
            Received::Message(message) => self.deliver(&message, into, length),
            Received::Waits => Err(self.wait_for_ipc(None, Errno::EAGAIN)),
            Received::Sent => Ok(0),
        }
    }

    fn receive_or_keep(&mut self, id: u64, into: u64, length: u64, kind: i64, flags: u32) -> Result<Received> {
        let id = identifier(id)?;
        if length.cast_signed() < 0 {
            return Err(Errno::EINVAL);
        }
        let identity = self.identity().clone();
        let by = self.by(&identity);
        if flags & msg::COPY != 0 {
            if flags & msg::EXCEPT != 0 || flags & NOWAIT == 0 {
                return Err(Errno::EINVAL);
            }
            // As on Linux, which fills its copy from the process's buffer first.
            self.read(into, length.min(Queues::MAX_MESSAGE) as usize)?;
            let cuts = flags & msg::NOERROR != 0;
            return self.system.ipc.queues.copy(&by, id, kind, length, cuts).cloned().map(Received::Message);
        }
        let filter = Filter::new(kind, flags & msg::EXCEPT != 0);
        let (cuts, waits) = (flags & msg::NOERROR != 0, flags & NOWAIT == 0);
        let received = self.system.ipc.queues.receive(&by, id, Wanted { filter, bytes: length, cuts, waits })?;
        self.system.wake_for_ipc();
        Ok(received)
    }

    /// Writes a message to the process. Returns how many bytes it has, or were wanted.
    fn deliver(&mut self, message: &Message, into: u64, length: u64) -> Result {
        self.write(into, &message.kind.to_le_bytes())?;
        let count = message.bytes.len().min(usize::try_from(length).unwrap_or(usize::MAX));
        self.write(into.wrapping_add(TYPE as u64), &message.bytes[..count])?;
        Ok(count as u64)
    }

    /// Tells or changes what is known of a queue, or of all.
    pub fn msgctl(&mut self, id: u64, number: u64, buffer: u64) -> Result {
        let identity = self.identity().clone();
        let (id, number, by) = (identifier(id)?, number as u32, self.by(&identity));
        let result = match number {
            command::INFO | command::MSG_INFO => {
                let record = self.limits_of_queues(number);
                self.write(buffer, &record).map(|()| self.system.ipc.queues.highest())
            }
            command::STAT | command::MSG_STAT | command::MSG_STAT_ANY => {
                let (record, result) = self.status_of_queue(id, number)?;
                self.write(buffer, &record).map(|()| result)
            }
            command::SET => {
                let record: [u8; msqid64_ds::SIZE] = self.read_record(buffer)?;
                let limit = u64_at(&record, msqid64_ds::MOST_BYTES);
                self.system.ipc.queues.give(&by, id, &owner(&record), limit).map(|()| 0)
            }
            command::REMOVE => self.system.ipc.queues.remove(&by, id).map(|()| 0),
            _ => Err(Errno::EINVAL),
        };
        self.system.wake_for_ipc();
        result
    }

    /// Returns the record of a queue, and what the call returns.
    fn status_of_queue(&self, id: i32, number: u32) -> Result<([u8; msqid64_ds::SIZE], u64)> {
        let how = found(number, command::MSG_STAT);
        let identity = self.identity().clone();
        let (entry, result) = self.system.ipc.queues.look(&self.by(&identity), id, how)?;
        let queue = &entry.value;
        let mut record = [0; msqid64_ds::SIZE];
        put_permissions(&mut record, entry);
        put(&mut record, msqid64_ds::SENT, queue.sent);
        put(&mut record, msqid64_ds::RECEIVED, queue.received);
        put(&mut record, msqid64_ds::CHANGED, queue.changed);
        put(&mut record, msqid64_ds::BYTES, queue.bytes);
        put(&mut record, msqid64_ds::COUNT, queue.count());
        put(&mut record, msqid64_ds::MOST_BYTES, queue.limit);
        put_half(&mut record, msqid64_ds::SENDER, queue.sender);
        put_half(&mut record, msqid64_ds::RECEIVER, queue.receiver);
        Ok((record, result))
    }

    /// Returns the record of the limits, and how much there is.
    fn limits_of_queues(&self, number: u32) -> Vec<u8> {
        let queues = &self.system.ipc.queues;
        let (most, bytes, usual) = (Queues::MAX_COUNT as u32, Queues::MAX_MESSAGE as u32, Queues::USUAL_LIMIT as u32);
        let (pool, map, all) = match number {
            command::INFO => (most * (usual / 1024), usual, usual),
            _ => {
                let sum = |of: fn(&tench_linux_sysv::Queue) -> u64| -> u64 {
                    queues.iter().map(|entry| of(&entry.value)).sum()
                };
                (queues.count() as u32, sum(|queue| queue.count()) as u32, sum(|queue| queue.bytes) as u32)
            }
        };
        // struct msginfo: msgpool, msgmap, msgmax, msgmnb, msgmni, msgssz, msgtql, and in half a word msgseg
        let words = [pool, map, bytes, usual, most, SEGMENT, all, u16::MAX.into()];
        words.map(u32::to_le_bytes).concat()
    }
}
