//! Parts that the calls about System V shared memory, semaphores and message queues have in common.

use core::time::Duration;

use tench_linux_calls::ipc::{command, ipc64_perm};
use tench_linux_calls::numbers::capability;
use tench_linux_calls::records::u32_at;
use tench_linux_files::Errno;
use tench_linux_sysv::{By, Entry, Found, Owner, User};

use crate::Machine;
use crate::caller::{Caller, Result};
use crate::identity::Identity;
use crate::waiting::{Interruption, Key};

/// Writes a word to a record.
pub(super) fn put(record: &mut [u8], offset: usize, word: u64) {
    record[offset..offset + 8].copy_from_slice(&word.to_le_bytes());
}

/// Writes half a word to a record.
pub(super) fn put_half(record: &mut [u8], offset: usize, half: u32) {
    record[offset..offset + 4].copy_from_slice(&half.to_le_bytes());
}

/// Writes an entry's permissions to a record.
pub(super) fn put_permissions<T>(record: &mut [u8], entry: &Entry<T>) {
    let permissions = entry.permissions;
    put_half(record, ipc64_perm::KEY, permissions.key.cast_unsigned());
    put_half(record, ipc64_perm::USER, permissions.user);
    put_half(record, ipc64_perm::GROUP, permissions.group);
    put_half(record, ipc64_perm::MAKER_USER, permissions.maker_user);
    put_half(record, ipc64_perm::MAKER_GROUP, permissions.maker_group);
    put_half(record, ipc64_perm::MODE, permissions.mode);
    put_half(record, ipc64_perm::SEQUENCE, entry.sequence().into());
}

/// Reads a new owner and permissions from a record.
pub(super) fn owner(record: &[u8]) -> Owner {
    Owner {
        user: u32_at(record, ipc64_perm::USER),
        group: u32_at(record, ipc64_perm::GROUP),
        mode: u32_at(record, ipc64_perm::MODE),
    }
}

/// Returns how a `STAT` command finds its object, given the command of its kind that does so by index.
pub(super) const fn found(number: u32, by_index: u32) -> Found {
    match number {
        command::STAT => Found::ById,
        number if number == by_index => Found::ByIndex,
        _ => Found::ByAnybody,
    }
}

/// Returns an identifier, which is not negative.
pub(super) fn identifier(argument: u64) -> Result<i32> {
    let id = (argument as u32).cast_signed();
    if id < 0 { Err(Errno::EINVAL) } else { Ok(id) }
}

impl<M: Machine> Caller<'_, M> {
    /// Returns by whom the call is made.
    pub(super) fn by<'a>(&self, identity: &'a Identity) -> By<'a> {
        let user = User {
            user: identity.user.effective,
            group: identity.group.effective,
            groups: identity.groups.as_deref().unwrap_or_default(),
            may_access_all: identity.has(capability::IPC_OWNER),
            may_change_all: identity.has(capability::SYS_ADMIN),
            may_raise_limits: identity.has(capability::SYS_RESOURCE),
        };
        By { user, ..self.system.by(self.process.id, self.process.thread().id) }
    }

    /// Lets the call, which was kept, wait; `late` is its error when the deadline has passed.
    pub(super) fn wait_for_ipc(&mut self, deadline: Option<Duration>, late: Errno) -> Errno {
        let thread = self.process.thread().id;
        if self.has_passed(deadline) {
            self.system.ipc.end_wait(thread);
            return late;
        }
        self.wait(&[Key::Ipc(thread)], deadline, Interruption::Final)
    }
}
