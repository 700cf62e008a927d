//! Linux's asynchronous I/O (`io_submit`). Each operation is done when it is submitted, as on Linux for files in
//! memory; its result is read later.

use core::time::Duration;

use tench_linux_calls::Sysno;
use tench_linux_calls::numbers::{prot, watch};
use tench_linux_calls::records::{iocb, timespec, u16_at, u32_at, u64_at};
use tench_linux_files::{Errno, Kind, NodeId};

use super::transfer::{END, MAX_TRANSFER, check_end, total};
use crate::Machine;
use crate::caller::{Caller, Result, WAITS};
use crate::devices;
use crate::operations::{Context, MOST, RESULT};
use crate::specials::Special;
use crate::waiting::{Interruption, Key, Waiting};

/// The most operations for which a context can be made: it has room for twice as many results.
const MOST_WANTED: u64 = 0x1000_0000 / RESULT as u64 / 2;

/// Bytes and operations after which others are served.
const MOST_MOVED: u64 = 1 << 20;
const MOST_SUBMITTED: u64 = 256;

/// Kinds of operations.
mod kind {
    pub const READ: u16 = 0;
    pub const WRITE: u16 = 1;
    pub const SYNC: u16 = 2;
    pub const SYNC_DATA: u16 = 3;
    pub const READ_VECTORS: u16 = 7;
    pub const WRITE_VECTORS: u16 = 8;
}

/// An operation that a program submits.
struct Operation {
    record: [u8; iocb::SIZE],
    /// Address of the record in the program's memory.
    address: u64,
}

impl Operation {
    fn word(&self, offset: usize) -> u64 {
        u64_at(&self.record, offset)
    }

    fn descriptor(&self) -> u64 {
        u32_at(&self.record, iocb::DESCRIPTOR).into()
    }

    /// Returns the file descriptor of the eventfd to which the end of this operation is added, if there is one.
    fn counter(&self) -> Option<u64> {
        const COUNTED: u32 = 1;
        let flags = u32_at(&self.record, iocb::FLAGS);
        (flags & COUNTED != 0).then(|| u32_at(&self.record, iocb::COUNTER).into())
    }
}

impl<M: Machine> Caller<'_, M> {
    /// Makes a context, and stores its name at `into`.
    pub fn io_setup(&mut self, wanted: u64, into: u64) -> Result {
        let wanted = wanted as u32;
        let before: [u8; 8] = self.read_record(into)?;
        if before != [0; 8] || wanted == 0 || u64::from(wanted) > MOST_WANTED {
            return Err(Errno::EINVAL);
        }
        if self.operations_wanted() + u64::from(wanted) > MOST {
            return Err(Errno::EAGAIN);
        }
        let context = Context::new(wanted, |bytes| self.system.memory.check_room(bytes))?;
        const PRIVATE_ANONYMOUS: u64 = 0x22;
        let length = context.length;
        let address = self.mmap(0, length, (prot::READ | prot::WRITE).into(), PRIVATE_ANONYMOUS, u64::MAX, 0)?;
        if let Err(error) = self.write(into, &address.to_le_bytes()) {
            self.munmap(address, length)?;
            return Err(error);
        }
        self.system.spaces.get(self.process.space).operations.add(address, context);
        Ok(0)
    }

    /// Returns the number of operations for which all contexts of the instance were made.
    pub(crate) fn operations_wanted(&self) -> u64 {
        self.system.spaces.iter().map(|used| used.operations.wanted()).sum()
    }

    /// Removes a context, with the results in it.
    pub fn io_destroy(&mut self, name: u64) -> Result {
        let context = self.system.spaces.get(self.process.space).operations.remove(name).ok_or(Errno::EINVAL)?;
        // The program may have unmapped the ring already.
        let _ = self.munmap(name, context.length);
        self.system.waiters.wake(Key::Operations(name));
        Ok(0)
    }

    fn context(&mut self, name: u64) -> Result<&mut Context> {
        self.system.spaces.get(self.process.space).operations.get(name).ok_or(Errno::EINVAL)
    }

    /// Does operations one after another. Returns how many were accepted.
    pub fn io_submit(&mut self, name: u64, count: u64, operations: u64) -> Result {
        let room = self.context(name)?.room as u64;
        let count = u64::try_from(count.cast_signed()).map_err(|_| Errno::EINVAL)?;
        // Linux accepts no more operations in one call than the context has room for results.
        let count = count.min(room);
        let mut index = self.waiting().map_or(0, |waiting| waiting.messages);
        let (first, mut moved) = (index, 0);
        if let Some(waiting) = self.waiting_mut()
            && waiting.keys.is_empty()
        {
            // Others have been served. No operation has waited so long.
            waiting.deadline = None;
        }
        while index < count {
            if moved > MOST_MOVED || index - first == MOST_SUBMITTED {
                let error = self.let_others_be_served(0);
                self.note_submitted(index);
                return Err(error);
            }
            match self.submit(name, operations.wrapping_add(index * 8)) {
                Ok(result) => {
                    index += 1;
                    moved += result.unsigned_abs();
                    // What the call has done of this one is not done of the next.
                    if let Some(waiting) = self.waiting_mut() {
                        (waiting.done, waiting.deadline) = (0, None);
                    }
                }
                Err(WAITS) => {
                    self.note_submitted(index);
                    return Err(WAITS);
                }
                Err(_) if index > 0 => break,
                Err(error) => return Err(error),
            }
            // The next one has done nothing yet, and waits for itself.
            let thread = self.process.thread_mut();
            if let Some(waiting) = thread.waiting.take() {
                self.system.terminals.end_reads(thread.id, &waiting.keys);
            }
        }
        Ok(index)
    }

    /// Notes how many operations were taken, of a call that waits.
    fn note_submitted(&mut self, count: u64) {
        if let Some(waiting) = self.waiting_mut() {
            waiting.messages = count;
        }
    }

    /// Reads the operation to which the pointer at an address leads.
    fn operation(&mut self, pointer: u64) -> Result<Operation> {
        let address = u64::from_le_bytes(self.read_record(pointer)?);
        Ok(Operation { record: self.read_record(address)?, address })
    }

    /// Ends the operation for which a call waits that a handler interrupts, as Linux does: with what it has done, or
    /// with `EINTR`. So the call has taken it, and is not made again.
    pub(crate) fn end_operation(&mut self, waiting: &mut Waiting) {
        // Without a key, no operation waits: others are served between two.
        if waiting.number != Sysno::io_submit as u64 || waiting.keys.is_empty() {
            return;
        }
        let [name, _, operations, ..] = waiting.arguments;
        let result = match waiting.done {
            0 => -i64::from(Errno::EINTR.into_raw()),
            done => done.cast_signed(),
        };
        let ended = self
            .operation(operations.wrapping_add(waiting.messages * 8))
            .and_then(|operation| self.finish(name, &operation, result));
        if ended.is_ok() {
            waiting.messages += 1;
        }
    }

    /// Does the operation to which a pointer leads. Returns its result.
    fn submit(&mut self, name: u64, pointer: u64) -> Result<i64> {
        let operation = self.operation(pointer)?;
        let length = operation.word(iocb::LENGTH);
        if operation.word(iocb::RESERVED) != 0 || length.cast_signed() < 0 {
            return Err(Errno::EINVAL);
        }
        let context = self.context(name)?;
        if context.results.len() >= context.room {
            return Err(Errno::EAGAIN);
        }
        self.descriptor(operation.descriptor())?;
        if let Some(descriptor) = operation.counter() {
            self.check_counter(descriptor)?;
        }
        self.write(operation.address.wrapping_add(iocb::KEY as u64), &[0; 4])?;
        let result = match u16_at(&operation.record, iocb::KIND) {
            kind::READ | kind::WRITE | kind::READ_VECTORS | kind::WRITE_VECTORS => self.transfer(&operation)?,
            kind::SYNC | kind::SYNC_DATA => self.write_out(&operation)?,
            _ => return Err(Errno::EINVAL),
        };
        self.finish(name, &operation, result)?;
        Ok(result)
    }

    /// Reads or writes. Returns the operation's result: a number of bytes, or a negative error number. Fails if the
    /// operation is malformed, which is an error of the submission.
    fn transfer(&mut self, operation: &Operation) -> Result<i64> {
        let descriptor = operation.descriptor();
        let description = self.descriptor(descriptor)?;
        let kind = u16_at(&operation.record, iocb::KIND);
        let writes = matches!(kind, kind::WRITE | kind::WRITE_VECTORS);
        let open_file = self.system.descriptions.get(description);
        let (node, is_path) = (open_file.node, open_file.is_path());
        let may = if writes { open_file.writes() } else { open_file.reads() };
        if self.system.tree.mirror_of(node).is_some() {
            // The operation would have to wait for the file server.
            return Err(Errno::EINVAL);
        }
        let (place, length) = (operation.word(iocb::BUFFER), operation.word(iocb::LENGTH));
        let offset = operation.word(iocb::OFFSET);
        if !is_path {
            self.with_flags(descriptor, offset, u32_at(&operation.record, iocb::READ_WRITE_FLAGS).into())?;
        }
        may.then_some(()).ok_or(Errno::EBADF)?;
        self.check_transfers(node, writes)?;
        let are_vectors = matches!(kind, kind::READ_VECTORS | kind::WRITE_VECTORS);
        let whole = if are_vectors {
            total(&self.read_vectors(place, length)?)
        } else {
            let whole = length.min(MAX_TRANSFER);
            place.checked_add(whole).filter(|end| *end <= END).ok_or(Errno::EFAULT)?;
            whole
        };
        // Also of what has no positions.
        check_end(offset, whole)?;
        let offset = match self.system.tree.node(node).kind {
            Kind::Special(_) if offset != 0 && self.is_socket_node(node) => return result_of(Err(Errno::ESPIPE)),
            Kind::Fifo(_) | Kind::Socket | Kind::Special(_) => None,
            Kind::Character(device) if devices::is_terminal(device) => None,
            _ => Some(offset),
        };
        let result = match (writes, are_vectors) {
            (true, false) => self.write_file(descriptor, place, length, offset),
            (false, false) => self.read_file(descriptor, place, length, offset),
            (true, true) => self.writev(descriptor, place, length, offset),
            (false, true) => self.readv(descriptor, place, length, offset),
        };
        if matches!(result, Ok(1..)) && self.system.is_watching() {
            self.observe_transfer(descriptor, if writes { watch::MODIFY } else { watch::ACCESS });
        }
        result_of(result)
    }

    /// Checks that operations can read or write a file: Linux has none that write counters or read other events.
    fn check_transfers(&mut self, node: NodeId, writes: bool) -> Result<()> {
        let may = match self.system.tree.node(node).kind {
            Kind::Directory(_) => false,
            Kind::Special(number) => match self.system.specials.get(number) {
                Special::Socket(_) => true,
                Special::Counter(_) => !writes,
                _ => false,
            },
            _ => true,
        };
        may.then_some(()).ok_or(Errno::EINVAL)
    }

    /// Writes a file out, as `fsync` does.
    fn write_out(&mut self, operation: &Operation) -> Result<i64> {
        let rest = [iocb::BUFFER, iocb::LENGTH, iocb::OFFSET].map(|offset| operation.word(offset));
        if rest != [0; 3] || u32_at(&operation.record, iocb::READ_WRITE_FLAGS) != 0 {
            return Err(Errno::EINVAL);
        }
        self.fsync(operation.descriptor()).map(u64::cast_signed)
    }

    /// Adds an operation's result to its context, and counts it.
    fn finish(&mut self, name: u64, operation: &Operation, result: i64) -> Result<()> {
        let mut record = [0; RESULT];
        record[..8].copy_from_slice(&operation.record[..8]);
        record[8..16].copy_from_slice(&operation.address.to_le_bytes());
        record[16..24].copy_from_slice(&result.to_le_bytes());
        // Another thread may have removed the context while this one waited.
        self.context(name)?.results.push_back(record);
        self.system.waiters.wake(Key::Operations(name));
        if let Some(descriptor) = operation.counter() {
            self.count(descriptor);
        }
        Ok(())
    }

    /// Fails with `EINVAL` unless a file descriptor is that of an eventfd.
    fn check_counter(&mut self, descriptor: u64) -> Result<()> {
        let number = self.special(descriptor)?;
        match self.system.specials.get(number) {
            Special::Counter(_) => Ok(()),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Adds one to an eventfd.
    fn count(&mut self, descriptor: u64) {
        let Ok(description) = self.descriptor(descriptor) else { return };
        let node = self.system.descriptions.get(description).node;
        if let Kind::Special(number) = self.system.tree.node(node).kind
            && let Special::Counter(counter) = self.system.specials.get(number)
        {
            // As on Linux, a counter that is full stays as it is.
            counter.add(1);
            self.system.waiters.wake(Key::Readable(node));
        }
    }

    /// Takes at most `most` results; waits for `least` of them, at most for a time.
    pub fn io_getevents(&mut self, name: u64, least: u64, most: u64, into: u64, time: u64) -> Result {
        let deadline = self.read_lenient_deadline(time)?;
        self.read_results(name, [least, most], into, deadline)
    }

    /// Does what [`io_getevents`](Self::io_getevents) does, with another signal mask meanwhile.
    pub fn io_pgetevents(&mut self, name: u64, [least, most]: [u64; 2], into: u64, time: u64, mask: u64) -> Result {
        let deadline = self.read_lenient_deadline(time)?;
        if mask != 0 {
            let record: [u8; 16] = self.read_record(mask)?;
            self.block_meanwhile(u64_at(&record, 0), u64_at(&record, 8))?;
        }
        let result = self.read_results(name, [least, most], into, deadline);
        if !matches!(result, Err(WAITS | Errno::EINTR)) {
            self.process.thread_mut().signals.restore_blocked();
        }
        result
    }

    /// Returns the deadline of a wait, if it has one. Linux accepts any time here; a negative one has no end.
    fn read_lenient_deadline(&mut self, time: u64) -> Result<Option<Duration>> {
        if self.waiting().is_some() {
            return Ok(self.deadline());
        }
        if time == 0 {
            return Ok(None);
        }
        let record: [u8; timespec::SIZE] = self.read_record(time)?;
        let seconds = u64_at(&record, timespec::SECONDS).cast_signed();
        let nanoseconds = u64_at(&record, timespec::NANOSECONDS).cast_signed();
        let whole = i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
        let now = self.system.memory.hardware.monotonic();
        Ok(u64::try_from(whole).ok().map(|left| now.saturating_add(Duration::from_nanos(left))))
    }

    fn read_results(&mut self, name: u64, [least, most]: [u64; 2], into: u64, deadline: Option<Duration>) -> Result {
        let (least, most) = (least.cast_signed(), most.cast_signed());
        self.context(name)?;
        if least < 0 || least > most {
            return Err(Errno::EINVAL);
        }
        let mut done = self.done();
        while done < most.cast_unsigned()
            && let Some(record) = self.context(name)?.results.front().copied()
        {
            if let Err(error) = self.write(into.wrapping_add(done * RESULT as u64), &record) {
                return if done > 0 { Ok(done) } else { Err(error) };
            }
            self.context(name)?.results.pop_front();
            done += 1;
        }
        if done >= least.cast_unsigned() || self.has_passed(deadline) {
            return Ok(done);
        }
        if self.process.is_due() {
            return if done > 0 { Ok(done) } else { Err(Errno::EINTR) };
        }
        let result = self.wait(&[Key::Operations(name)], deadline, Interruption::Final);
        if let Some(waiting) = self.waiting_mut() {
            waiting.done = done;
        }
        Err(result)
    }

    /// Fails with `EINVAL` for every operation: each was done when it was submitted, and none is left to cancel.
    pub fn io_cancel(&mut self, name: u64, operation: u64) -> Result {
        let _key: [u8; 4] = self.read_record(operation.wrapping_add(iocb::KEY as u64))?;
        self.context(name)?;
        Err(Errno::EINVAL)
    }
}

/// Returns the call's result as that of an operation. Fails only if the call waits.
fn result_of(result: Result) -> Result<i64> {
    match result {
        Err(WAITS) => Err(WAITS),
        Err(error) => Ok((-error.into_raw()).into()),
        Ok(count) => Ok(count.cast_signed()),
    }
}
