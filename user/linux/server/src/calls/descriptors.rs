//! Calls about descriptors.

use tench_linux_calls::numbers::{lock, open};
use tench_linux_files::{Errno, Kind, NodeId};

use crate::Machine;
use crate::caller::{Caller, MAX_SMALL, Result};
use crate::calls::owners::command;
use crate::descriptors::{DescriptionId, Descriptor, Place};
use crate::devices;
use crate::waiting::Key;

/// A file may be longer than 2 GiB. Programs of 64 bits always get this flag.
pub(super) const LARGE: u32 = open::LARGEFILE;
/// Flags of an open file that can be changed later.
const CHANGEABLE: u32 = open::APPEND | open::NONBLOCK | open::ASYNC | open::DIRECT | open::NOATIME;
/// Flags that matter only while the file is opened.
pub(super) const MOMENTARY: u32 = open::CREAT | open::EXCL | open::NOCTTY | open::TRUNC | open::CLOEXEC;
/// All flags that exist.
const KNOWN: u32 = open::ACCESS
    | MOMENTARY
    | CHANGEABLE
    | open::SYNC
    | open::DIRECTORY
    | open::NOFOLLOW
    | LARGE
    | open::PATH
    | open::TMPFILE;

impl<M: Machine> Caller<'_, M> {
    /// Returns the open file of a descriptor.
    pub(crate) fn descriptor(&self, number: u64) -> Result<DescriptionId> {
        self.process.descriptors.get(number).map(|descriptor| descriptor.description)
    }

    /// Opens a file.
    pub fn openat(&mut self, directory: u64, path: u64, flags: u64, mode: u64) -> Result {
        let mut flags = flags as u32 & KNOWN;
        if flags & open::PATH != 0 {
            flags &= open::PATH | open::DIRECTORY | open::NOFOLLOW | open::CLOEXEC;
        }
        if flags & open::TMPFILE == open::TMPFILE {
            return Err(Errno::EOPNOTSUPP);
        }
        let closes_on_exec = flags & open::CLOEXEC != 0;
        if let Some(opening) = self.opening() {
            return self.add_descriptor(Descriptor { description: opening?, closes_on_exec }, 0);
        }
        if flags & open::CREAT != 0 {
            self.system.update_time();
        }
        let (from, path) = self.path(directory, path)?;
        // Without a number, nothing is made or cut off.
        self.process.descriptors.free(0)?;
        let permissions = mode as u32 & 0o7777 & !self.process.mask;
        let places = (self.process.root, from);
        let found = self.system.tree.walk_to_open(&self.view(), places, &path, flags)?;
        if flags & (open::CREAT | open::PATH) == open::CREAT {
            self.may_create(&found)?;
        }
        self.may_open(&found, flags)?;
        let flags = self.open_in_mount(&found, flags)?;
        let node = self.system.tree.open_found(&mut self.system.memory, &found, flags, permissions)?;
        if found.node.is_none() {
            self.own_in(found.parent, node);
            self.adopt(&found, node);
        }
        if self.system.is_watching() {
            self.system.tell_of_opening(&found, node, flags);
        }
        let is_path = flags & open::PATH != 0;
        let kept = if is_path { flags } else { flags | LARGE } & !MOMENTARY;
        let description = match self.system.tree.node(node).kind {
            Kind::Fifo(_) if !is_path => self.open_pipe(node, kept)?,
            Kind::Regular(_) if flags & open::TRUNC != 0 => {
                self.empty(node)?;
                self.system.open(node, kept)
            }
            Kind::Generated(_) => {
                self.may_open_generated(node, kept)?;
                let programs = self.programs_of(node);
                let description = self.system.open(node, kept);
                self.system.descriptions.get(description).programs = programs;
                description
            }
            Kind::Character(device) if !is_path && devices::is_terminal(device) => {
                self.open_terminal(node, device, flags, kept)?
            }
            _ => self.system.open(node, kept),
        };
        if found.is_named() {
            let place = Place { directory: found.parent, name: found.name };
            self.system.descriptions.get(description).place = Some(place);
        }
        self.add_descriptor(Descriptor { description, closes_on_exec }, 0)
    }

    /// Cuts the contents off a file that is being opened, and which otherwise loses the user that it got for that.
    fn empty(&mut self, node: NodeId) -> Result {
        let result = self.set_length(node, 0);
        if result.is_err() {
            self.system.tree.release(&mut self.system.memory, node);
        }
        result
    }

    /// Lets the lowest free number from `from` on mean something.
    pub(super) fn use_free_number(&mut self, descriptor: Descriptor, from: u32) -> Result<u32> {
        let number = self.process.descriptors.free(from)?;
        self.prepare_number(number)?;
        self.process.descriptors.set(number, Some(descriptor));
        Ok(number)
    }

    /// Checks that there is memory for a number to mean something.
    fn prepare_number(&mut self, number: u32) -> Result<()> {
        match self.process.descriptors.growth(number) {
            Some(bytes) if bytes > MAX_SMALL => self.system.memory.check_room(bytes),
            _ => Ok(()),
        }
    }

    /// Adds a descriptor, or closes its open file.
    pub(crate) fn add_descriptor(&mut self, descriptor: Descriptor, from: u32) -> Result {
        match self.use_free_number(descriptor, from) {
            Ok(number) => Ok(number.into()),
            Err(error) => {
                self.system.close(descriptor.description);
                Err(error)
            }
        }
    }

    /// Closes a descriptor.
    pub fn close(&mut self, number: u64) -> Result {
        let descriptor = self.process.descriptors.get(number)?;
        self.process.descriptors.set(number as u32, None);
        self.system.close_descriptor(self.process.id, descriptor.description);
        Ok(0)
    }

    /// Closes all descriptors in a range, or lets them be closed when the process starts another program.
    pub fn close_range(&mut self, first: u64, last: u64, flags: u64) -> Result {
        const CLOSE_ON_EXEC: u64 = 4;
        let (first, last) = (first as u32, last as u32);
        if flags & !CLOSE_ON_EXEC != 0 || first > last {
            return Err(Errno::EINVAL);
        }
        let mut next = first;
        while let Some((number, descriptor)) = self.process.descriptors.next(next).filter(|(number, _)| *number <= last)
        {
            next = number + 1;
            if flags & CLOSE_ON_EXEC != 0 {
                self.process.descriptors.set(number, Some(Descriptor { closes_on_exec: true, ..descriptor }));
            } else {
                self.process.descriptors.set(number, None);
                self.system.close_descriptor(self.process.id, descriptor.description);
            }
        }
        Ok(0)
    }

    /// Duplicates a descriptor to the lowest free number from `from` on.
    fn duplicate(&mut self, number: u64, from: u32, closes_on_exec: bool) -> Result {
        let description = self.descriptor(number)?;
        self.system.descriptions.share(description);
        self.add_descriptor(Descriptor { description, closes_on_exec }, from)
    }

    /// Duplicates a descriptor.
    pub fn dup(&mut self, number: u64) -> Result {
        self.duplicate(number, 0, false)
    }

    /// Duplicates a descriptor to a number, in place of what that means.
    pub fn dup3(&mut self, old: u64, new: u64, flags: u64) -> Result {
        let (flags, new) = (flags as u32, new as u32);
        if flags & !open::CLOEXEC != 0 || old as u32 == new {
            return Err(Errno::EINVAL);
        }
        if new >= self.process.descriptors.limit {
            return Err(Errno::EBADF);
        }
        let description = self.descriptor(old)?;
        self.prepare_number(new)?;
        self.system.descriptions.share(description);
        let closes_on_exec = flags & open::CLOEXEC != 0;
        if let Some(replaced) = self.process.descriptors.set(new, Some(Descriptor { description, closes_on_exec })) {
            self.system.close_descriptor(self.process.id, replaced.description);
        }
        Ok(new.into())
    }

    /// Lets what was written to a file stay, as it does anyway. What keeps nothing is refused.
    pub fn fsync(&mut self, number: u64) -> Result {
        let description = self.descriptor(number)?;
        let open_file = self.system.descriptions.get(description);
        if open_file.is_path() {
            return Err(Errno::EBADF);
        }
        match self.system.tree.node(open_file.node).kind {
            Kind::Regular(_) | Kind::Directory(_) | Kind::Block(_) => Ok(0),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Checks its arguments and does nothing else: no file has anything that is not written out.
    pub fn sync_file_range(&mut self, number: u64, offset: u64, length: u64, flags: u64) -> Result {
        const KNOWN: u32 = 7;
        let description = self.descriptor(number)?;
        let open_file = self.system.descriptions.get(description);
        if open_file.is_path() {
            return Err(Errno::EBADF);
        }
        let end = offset.cast_signed().wrapping_add(length.cast_signed());
        if flags as u32 & !KNOWN != 0 || offset.cast_signed() < 0 || end < offset.cast_signed() {
            return Err(Errno::EINVAL);
        }
        match self.system.tree.node(open_file.node).kind {
            Kind::Regular(_) | Kind::Directory(_) | Kind::Block(_) | Kind::Link(_) | Kind::Generated(_) => Ok(0),
            _ => Err(Errno::ESPIPE),
        }
    }

    /// Controls a descriptor or its open file.
    pub fn fcntl(&mut self, number: u64, command: u64, argument: u64) -> Result {
        let descriptor = self.process.descriptors.get(number)?;
        let open_file = self.system.descriptions.get(descriptor.description);
        let is_path = open_file.is_path();
        match command as u32 {
            command @ (0 | 1030) => {
                let from = argument as u32;
                if from >= self.process.descriptors.limit {
                    return Err(Errno::EINVAL);
                }
                self.duplicate(number, from, command == 1030)
            }
            1 => Ok(descriptor.closes_on_exec.into()),
            2 => {
                let changed = Descriptor { closes_on_exec: argument & 1 != 0, ..descriptor };
                self.process.descriptors.set(number as u32, Some(changed));
                Ok(0)
            }
            3 => Ok(open_file.flags.into()),
            _ if is_path => Err(Errno::EBADF),
            4 => {
                let (node, before) = (open_file.node, open_file.flags);
                let wants_no_times = argument as u32 & !before & open::NOATIME != 0;
                if wants_no_times && !self.identity().for_files().owns(&self.attributes(node)) {
                    return Err(Errno::EPERM);
                }
                let flags = before & !CHANGEABLE | argument as u32 & CHANGEABLE;
                self.set_flags(descriptor.description, number, flags)
            }
            1033 => self.add_seals(descriptor.description, argument),
            1034 => self.seals(descriptor.description),
            1031 => {
                let node = open_file.node;
                self.resize_pipe(node, argument)
            }
            1032 => {
                let pipe = self.system.tree.pipe_mut(open_file.node).ok_or(Errno::EBADF)?;
                Ok(pipe.capacity() as u64)
            }
            command::NOTIFY => self.notify(descriptor.description, number, argument as u32),
            command @ (lock::GETLK..=lock::SETLKW | lock::OFD_GETLK..=lock::OFD_SETLKW) => {
                self.lock_range(descriptor.description, command, argument)
            }
            command => self.control_owner(descriptor.description, command, argument),
        }
    }

    /// Sets the capacity of a pipe, and wakes its writers, for which there may be room now. Returns the capacity.
    fn resize_pipe(&mut self, node: NodeId, wanted: u64) -> Result {
        let pipe = self.system.tree.pipe_mut(node).ok_or(Errno::EBADF)?;
        let capacity = pipe.resize(wanted as u32 as usize)?;
        self.system.waiters.wake(Key::Writable(node));
        Ok(capacity as u64)
    }
}
