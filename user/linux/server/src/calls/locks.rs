//! Calls that lock files. The locks are advice: reading and writing do not look at them.

use tench_linux_calls::numbers::lock;
use tench_linux_calls::records::{flock, u16_at, u32_at, u64_at};
use tench_linux_files::{Errno, Kind as NodeKind, NodeId};
use tench_linux_locks::{Kind, Owner, Range, Record, Refusal, Wanted};

use crate::Machine;
use crate::caller::{Caller, Result};
use crate::descriptors::DescriptionId;
use crate::waiting::{Interruption, Key};

/// Stands in `l_pid` for a lock that an open file has.
const NO_PROCESS: i32 = -1;

/// A command of `fcntl` about locks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Command {
    /// Says what is in the way.
    Get,
    /// Locks or unlocks at once, or not at all.
    Set,
    /// Waits until that is possible.
    Wait,
}

impl<M: Machine> Caller<'_, M> {
    /// Asks for a lock of a range of a file, or sets one: of the process, or, with `F_OFD_…`, of the open file.
    pub(super) fn lock_range(&mut self, description: DescriptionId, command: u32, address: u64) -> Result {
        let is_of_process = command < lock::OFD_GETLK;
        let command = match command {
            lock::GETLK | lock::OFD_GETLK => Command::Get,
            lock::SETLK | lock::OFD_SETLK => Command::Set,
            _ => Command::Wait,
        };
        let owner = if is_of_process { Owner::Process(self.process.id) } else { Owner::Description(description) };
        self.lock_range_of(owner, description, command, address)
    }

    fn lock_range_of(
        &mut self,
        owner: Owner<DescriptionId>,
        description: DescriptionId,
        command: Command,
        address: u64,
    ) -> Result {
        let mut record: [u8; flock::SIZE] = self.read_record(address)?;
        let kind = match u16_at(&record, flock::TYPE) {
            lock::READ => Ok(Some(Kind::Shared)),
            lock::WRITE => Ok(Some(Kind::Exclusive)),
            lock::UNLOCK if command != Command::Get => Ok(None),
            _ => Err(Errno::EINVAL),
        };
        if command == Command::Get {
            kind?;
        }
        let range = self.locked_range(description, &record)?;
        let kind = kind?;
        let open_file = self.system.descriptions.get(description);
        let node = open_file.node;
        let is_open_for_it = match kind {
            Some(Kind::Shared) => open_file.reads(),
            Some(Kind::Exclusive) => open_file.writes(),
            None => true,
        };
        if command != Command::Get && !is_open_for_it {
            return Err(Errno::EBADF);
        }
        if matches!(owner, Owner::Description(_)) && u32_at(&record, flock::PROCESS) != 0 {
            return Err(Errno::EINVAL);
        }
        let Some(kind) = kind else {
            let result = self.system.locks.unlock(node, owner, range);
            self.system.wake_lockers();
            return result.map(|()| 0).map_err(|_| Errno::ENOLCK);
        };
        let wanted = Record { owner, kind, range };
        if command == Command::Get {
            describe(self.system.locks.conflict(node, &wanted), &mut record);
            return self.write(address, &record).map(|()| 0);
        }
        self.set_lock(node, wanted, command == Command::Wait)
    }

    /// Gives somebody a lock of a range, for which the call may wait.
    fn set_lock(&mut self, node: NodeId, wanted: Record<DescriptionId>, waits: bool) -> Result {
        let result = self.system.locks.lock(node, wanted);
        self.system.wake_lockers();
        match result {
            Ok(()) => Ok(0),
            Err(Refusal::Full) => Err(Errno::ENOLCK),
            Err(Refusal::Held) if !waits => Err(Errno::EAGAIN),
            Err(Refusal::Held) if self.system.locks.is_deadlock(node, &wanted) => Err(Errno::EDEADLK),
            Err(Refusal::Held) => Err(self.wait_for_lock(node, Wanted::Record(wanted))),
        }
    }

    /// Returns the range that a record of a program names.
    fn locked_range(&mut self, description: DescriptionId, record: &[u8]) -> Result<Range> {
        let open_file = self.system.descriptions.get(description);
        let base = match u16_at(record, flock::WHENCE) {
            0 => 0,
            1 => open_file.position,
            2 => match self.system.tree.node(open_file.node).kind {
                NodeKind::Regular(object) => self.system.memory.objects.get(object).length(),
                _ => 0,
            },
            _ => return Err(Errno::EINVAL),
        };
        let (start, length) = (u64_at(record, flock::START), u64_at(record, flock::LENGTH));
        Range::new(base, start.cast_signed(), length.cast_signed())
    }

    /// Gives an open file a lock of the whole file, or takes it away.
    pub fn flock(&mut self, descriptor: u64, operation: u64) -> Result {
        let operation = operation as u32;
        if operation & lock::MANDATORY != 0 {
            // As Linux, where nobody needs them any more.
            return Ok(0);
        }
        let kind = match operation & !lock::NONBLOCK {
            lock::SHARED => Some(Kind::Shared),
            lock::EXCLUSIVE => Some(Kind::Exclusive),
            lock::REMOVE => None,
            _ => return Err(Errno::EINVAL),
        };
        let description = self.descriptor(descriptor)?;
        let open_file = self.system.descriptions.get(description);
        let node = open_file.node;
        if open_file.is_path() {
            return Err(Errno::EBADF);
        }
        let result = match kind {
            Some(kind) => self.system.locks.lock_whole(node, description, kind),
            None => {
                self.system.locks.unlock_whole(node, description);
                Ok(())
            }
        };
        self.system.wake_lockers();
        match result {
            Ok(()) => Ok(0),
            Err(Refusal::Full) => Err(Errno::ENOLCK),
            Err(Refusal::Held) if operation & lock::NONBLOCK != 0 => Err(Errno::EAGAIN),
            Err(Refusal::Held) => Err(self.wait_for_lock(node, Wanted::Whole)),
        }
    }

    /// Lets the call wait until the lock that it wants may be free.
    fn wait_for_lock(&mut self, node: NodeId, wanted: Wanted<DescriptionId>) -> Errno {
        let thread = self.process.thread().id;
        self.system.locks.wait(thread, node, wanted);
        self.wait(&[Key::Lock(thread)], None, Interruption::Restartable)
    }
}

/// Says which lock is in the way, or that none is.
fn describe(found: Option<Record<DescriptionId>>, record: &mut [u8; flock::SIZE]) {
    let mut put = |offset: usize, bytes: &[u8]| record[offset..offset + bytes.len()].copy_from_slice(bytes);
    let Some(Record { owner, kind, range }) = found else {
        return put(flock::TYPE, &lock::UNLOCK.to_le_bytes());
    };
    let kind = match kind {
        Kind::Shared => lock::READ,
        Kind::Exclusive => lock::WRITE,
    };
    let process = match owner {
        Owner::Process(process) => process.cast_signed(),
        Owner::Description(_) => NO_PROCESS,
    };
    put(flock::TYPE, &kind.to_le_bytes());
    put(flock::WHENCE, &0u16.to_le_bytes());
    put(flock::START, &range.first.to_le_bytes());
    put(flock::LENGTH, &range.length().to_le_bytes());
    put(flock::PROCESS, &process.to_le_bytes());
}
