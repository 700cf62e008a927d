//! Calls about the owners of open files, who get `SIGIO`.

use tench_linux_calls::numbers::open;
use tench_linux_calls::records::u32_at;
use tench_linux_files::{Errno, Kind};

use crate::Machine;
use crate::caller::{Caller, Result};
use crate::descriptors::DescriptionId;
use crate::devices;
use crate::identity::Ids;
use crate::notices::{self, Notice};
use crate::owners::Owner;
use crate::process::Process;
use crate::signals::SIGNALS;
use crate::specials::Special;

/// Commands of `fcntl`.
pub mod command {
    pub const SETOWN: u32 = 8;
    pub const GETOWN: u32 = 9;
    pub const SETSIG: u32 = 10;
    pub const GETSIG: u32 = 11;
    pub const SETOWN_EX: u32 = 15;
    pub const GETOWN_EX: u32 = 16;
    pub const NOTIFY: u32 = 1026;
}

/// Kinds of owners, in the record of an owner.
const THREAD: u32 = 0;
const PROCESS: u32 = 1;
const GROUP: u32 = 2;

impl<M: Machine> Caller<'_, M> {
    /// Lets an open file send its owner signals or not, by `ioctl`.
    pub(super) fn set_signals(&mut self, description: DescriptionId, number: u64, argument: u64) -> Result {
        let is_on = u32::from_le_bytes(self.read_record(argument)?) != 0;
        let flags = self.system.descriptions.get(description).flags;
        if (flags & open::ASYNC != 0) == is_on {
            return Ok(0);
        }
        if !self.sends_signals(description) {
            return Err(Errno::ENOTTY);
        }
        self.set_flags(description, number, flags & !open::ASYNC | if is_on { open::ASYNC } else { 0 })
    }

    /// Sets the flags of an open file. Whether it sends signals may change with them.
    pub(super) fn set_flags(&mut self, description: DescriptionId, number: u64, flags: u32) -> Result {
        if flags & open::ASYNC != 0 {
            self.system.prepare_to_watch()?;
        }
        let old = core::mem::replace(&mut self.system.descriptions.get(description).flags, flags);
        if (old ^ flags) & open::ASYNC != 0 && self.sends_signals(description) {
            self.system.owned(description).descriptor = number as u32;
            self.watch_for_owner(description);
        }
        Ok(0)
    }

    /// Lets an open file watch its events, if it sends signals.
    pub(crate) fn watch_for_owner(&mut self, description: DescriptionId) {
        let mut keys = alloc::vec::Vec::new();
        if self.system.descriptions.get(description).flags & open::ASYNC != 0 {
            self.events(description, &mut keys);
        }
        self.system.watch_for_owner(description, keys);
    }

    /// Returns whether an open file can send signals: a pipe, a socket or a terminal.
    fn sends_signals(&mut self, description: DescriptionId) -> bool {
        let node = self.system.descriptions.get(description).node;
        match self.system.tree.node(node).kind {
            Kind::Fifo(_) => true,
            Kind::Character(device) => devices::is_terminal(device),
            Kind::Special(number) => matches!(self.system.specials.get(number), Special::Socket(_)),
            _ => false,
        }
    }

    /// Sets or tells the owner of an open file, by `fcntl`.
    pub(super) fn control_owner(&mut self, description: DescriptionId, command: u32, argument: u64) -> Result {
        match command {
            command::SETOWN => match (argument as u32).cast_signed() {
                i32::MIN => Err(Errno::EINVAL),
                0 => self.set_file_owner(description, None),
                group @ ..0 => self.set_file_owner(description, Some(Owner::Group(group.unsigned_abs()))),
                process => self.set_file_owner(description, Some(Owner::Process(process.unsigned_abs()))),
            },
            command::GETOWN => Ok(match self.owner(description) {
                None => 0,
                Some(Owner::Thread(id) | Owner::Process(id)) => id.into(),
                Some(Owner::Group(id)) => (-i64::from(id)).cast_unsigned(),
            }),
            command::SETOWN_EX => {
                let record: [u8; 8] = self.read_record(argument)?;
                let id = u32_at(&record, 4);
                let owner = match u32_at(&record, 0) {
                    THREAD => Owner::Thread(id),
                    PROCESS => Owner::Process(id),
                    GROUP => Owner::Group(id),
                    _ => return Err(Errno::EINVAL),
                };
                self.set_file_owner(description, (id != 0).then_some(owner))
            }
            command::GETOWN_EX => {
                let (kind, id) = match self.owner(description) {
                    None => (THREAD, 0),
                    Some(Owner::Thread(id)) => (THREAD, id),
                    Some(Owner::Process(id)) => (PROCESS, id),
                    Some(Owner::Group(id)) => (GROUP, id),
                };
                let record = u64::from(id) << 32 | u64::from(kind);
                self.write(argument, &record.to_le_bytes()).map(|()| 0)
            }
            command::GETSIG => Ok(self.system.owners.get(&description).map_or(0, |owned| owned.signal.into())),
            command::SETSIG if argument <= SIGNALS as u64 => {
                self.system.owned(description).signal = argument as u32;
                Ok(0)
            }
            _ => Err(Errno::EINVAL),
        }
    }

    /// Has signals sent when an open directory changes: at the first of the given events, or at each. No events end
    /// that. The signals go to the open file's owner, which becomes the process if there is none.
    pub(super) fn notify(&mut self, description: DescriptionId, number: u64, flags: u32) -> Result {
        let process = self.process.id;
        // As on Linux, unknown events are accepted, but never happen.
        let node = self.system.descriptions.get(description).node;
        if flags & !notices::MULTISHOT == 0 {
            self.system.notices.end(node, description, Some(process));
            return Ok(0);
        }
        if !self.system.tree.node(node).is_directory() {
            return Err(Errno::ENOTDIR);
        }
        self.system.prepare_to_watch()?;
        let (wanted, stays) = (notices::wanted(flags), flags & notices::MULTISHOT != 0);
        self.system.notices.add(node, Notice { description, process, descriptor: number as u32, wanted, stays })?;
        if self.owner(description).is_none() {
            self.set_file_owner(description, Some(Owner::Process(process)))?;
        }
        Ok(0)
    }

    fn owner(&self, description: DescriptionId) -> Option<Owner> {
        self.system.owners.get(&description).and_then(|owned| owned.owner)
    }

    /// Gives an open file an owner. As with Linux, something must have the number, of whatever kind that is.
    fn set_file_owner(&mut self, description: DescriptionId, owner: Option<Owner>) -> Result {
        if let Some(Owner::Thread(id) | Owner::Process(id) | Owner::Group(id)) = owner {
            let is_named = |process: &Process<M>| [process.id, process.group, process.session].contains(&id);
            let has_thread = self.process.index_of(id).is_ok() || self.others.owner(id).is_some();
            if !has_thread && !is_named(self.process) && !self.others.iter().any(is_named) {
                return Err(Errno::ESRCH);
            }
        }
        let Ids { real, effective, .. } = self.identity().user;
        let owned = self.system.owned(description);
        (owned.owner, owned.by) = (owner, [real, effective]);
        Ok(0)
    }
}
