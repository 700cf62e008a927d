//! Watching files (`inotify`), and what calls do to those that are watched.

use tench_linux_calls::Sysno;
use tench_linux_calls::numbers::{AT_FDCWD, at, open, permission, watch};
use tench_linux_calls::records::{timespec, u64_at};
use tench_linux_files::{Errno, Found, Kind, Last, NodeId};
use tench_linux_watches::InstanceId;

use crate::Machine;
use crate::caller::{Caller, Result};
use crate::descriptors::Place;
use crate::specials::Special;
use crate::waiting::{Interruption, Key};

/// Stands for a time that is not to be set.
const KEEP: u64 = 0x3fff_fffe;

impl<M: Machine> Caller<'_, M> {
    /// Makes an instance, which watches files.
    pub fn inotify_init1(&mut self, flags: u64) -> Result {
        let flags = flags as u32;
        if flags & !(open::CLOEXEC | open::NONBLOCK) != 0 {
            return Err(Errno::EINVAL);
        }
        let instance = self.system.watches.open()?;
        let kept = open::RDONLY | flags & open::NONBLOCK;
        self.add_special(Special::Watches(instance), kept, flags & open::CLOEXEC != 0)
    }

    /// Returns the instance of a descriptor.
    fn instance(&mut self, descriptor: u64) -> Result<InstanceId> {
        let number = self.special(descriptor)?;
        match self.system.specials.get(number) {
            Special::Watches(instance) => Ok(*instance),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Fails if a descriptor is none of an open file.
    fn require_open(&mut self, descriptor: u64) -> Result<()> {
        let description = self.descriptor(descriptor)?;
        if self.system.descriptions.get(description).is_path() { Err(Errno::EBADF) } else { Ok(()) }
    }

    /// Lets an instance watch a file, or changes what it wants to know of it. Returns the number of the watch.
    pub fn inotify_add_watch(&mut self, descriptor: u64, path: u64, mask: u64) -> Result {
        let mask = mask as u32;
        if mask & !watch::KNOWN != 0 || mask & watch::KNOWN == 0 {
            return Err(Errno::EINVAL);
        }
        self.require_open(descriptor)?;
        if mask & watch::MASK_ADD != 0 && mask & watch::MASK_CREATE != 0 {
            return Err(Errno::EINVAL);
        }
        let instance = self.instance(descriptor)?;
        let last = if mask & watch::DONT_FOLLOW != 0 { Last::Keep } else { Last::Follow };
        let node = self.find(AT_FDCWD as u64, path, last)?;
        if mask & watch::ONLYDIR != 0 && !self.system.tree.node(node).is_directory() {
            return Err(Errno::ENOTDIR);
        }
        self.may_access(node, permission::READ)?;
        let memory = &mut self.system.memory;
        let number = self.system.watches.add(instance, node, mask, |bytes| memory.check_room(bytes).is_ok());
        self.system.settle_watches();
        Ok(number?.cast_unsigned().into())
    }

    /// Ends a watch.
    pub fn inotify_rm_watch(&mut self, descriptor: u64, number: u64) -> Result {
        self.require_open(descriptor)?;
        let instance = self.instance(descriptor)?;
        let memory = &mut self.system.memory;
        let number = (number as u32).cast_signed();
        self.system.watches.remove(instance, number, &mut |bytes| memory.check_room(bytes).is_ok())?;
        self.system.settle_watches();
        Ok(0)
    }

    /// Reads events of an instance; waits until there are some.
    pub(crate) fn read_watches(&mut self, instance: InstanceId, flags: u32, into: &mut [u8]) -> Result<usize> {
        match self.system.watches.read(instance, into) {
            Err(Errno::EAGAIN) if flags & open::NONBLOCK == 0 => {
                Err(self.wait(&[Key::Watch(instance)], None, Interruption::Restartable))
            }
            result => result,
        }
    }

    /// Tells those who watch files what a call has done that was successful.
    #[cold]
    pub(crate) fn observe(&mut self, call: Sysno, &[a, b, c, d, e, _]: &[u64; 6], result: &Result) {
        let Ok(count) = *result else { return };
        const HERE: u64 = AT_FDCWD as u64;
        match call {
            Sysno::openat => self.observe_descriptor(count, watch::OPEN),
            Sysno::read | Sysno::pread64 if count == 0 => {}
            Sysno::read | Sysno::pread64 | Sysno::readv | Sysno::preadv | Sysno::preadv2 | Sysno::getdents64 => {
                self.observe_transfer(a, watch::ACCESS);
            }
            Sysno::write | Sysno::pwrite64 | Sysno::writev | Sysno::pwritev | Sysno::pwritev2 if count == 0 => {}
            Sysno::write | Sysno::pwrite64 | Sysno::writev | Sysno::pwritev | Sysno::pwritev2 => {
                self.observe_transfer(a, watch::MODIFY);
            }
            Sysno::sendfile if count > 0 => self.observe_copy(b, a),
            Sysno::copy_file_range if count > 0 => self.observe_copy(a, c),
            Sysno::ftruncate | Sysno::fallocate => self.observe_descriptor(a, watch::MODIFY),
            Sysno::truncate => self.observe_path(HERE, a, 0, watch::MODIFY),
            Sysno::fchmod => self.observe_descriptor(a, watch::ATTRIB),
            Sysno::fchmodat => self.observe_path(a, b, 0, watch::ATTRIB),
            Sysno::fchown if is_owner(b, c) => self.observe_descriptor(a, watch::ATTRIB),
            Sysno::fchownat if is_owner(c, d) => self.observe_path(a, b, e as u32, watch::ATTRIB),
            Sysno::utimensat => match self.mask_of_times(c) {
                0 => {}
                mask if b == 0 => self.observe_descriptor(a, mask),
                mask => self.observe_path(a, b, d as u32, mask),
            },
            Sysno::mkdirat | Sysno::mknodat => self.observe_new(a, b, false),
            Sysno::symlinkat => self.observe_new(b, c, false),
            Sysno::linkat => self.observe_new(c, d, true),
            _ => {}
        }
    }

    /// Returns what it is to set times: those of reading, of writing, or both.
    fn mask_of_times(&mut self, times: u64) -> u32 {
        if times == 0 {
            return watch::ATTRIB;
        }
        let Ok(record) = self.read_record::<{ 2 * timespec::SIZE }>(times) else { return 0 };
        let is_set = |at: usize| u64_at(&record, at + timespec::NANOSECONDS) != KEEP;
        match (is_set(0), is_set(timespec::SIZE)) {
            (true, true) => watch::ATTRIB,
            (true, false) => watch::ACCESS,
            (false, true) => watch::MODIFY,
            (false, false) => 0,
        }
    }

    /// Tells that an open file was read or written. Of pipes, as on Linux, nobody learns that.
    pub(super) fn observe_transfer(&mut self, descriptor: u64, mask: u32) {
        let Ok(description) = self.descriptor(descriptor) else { return };
        let node = self.system.descriptions.get(description).node;
        if !matches!(self.system.tree.node(node).kind, Kind::Fifo(_) | Kind::Special(_)) {
            self.observe_descriptor(descriptor, mask);
        }
    }

    /// Tells that bytes of one file were copied to another. As on Linux, it is said twice that the other was written.
    fn observe_copy(&mut self, from: u64, to: u64) {
        self.observe_transfer(to, watch::MODIFY);
        self.observe_transfer(from, watch::ACCESS);
        self.observe_transfer(to, watch::MODIFY);
    }

    /// Tells what has happened to an open file.
    fn observe_descriptor(&mut self, descriptor: u64, mask: u32) {
        let Ok(description) = self.descriptor(descriptor) else { return };
        let open_file = self.system.descriptions.get(description);
        if !open_file.is_path() {
            let (node, place) = (open_file.node, open_file.place.clone());
            self.system.tell_of(node, place.as_ref(), mask);
        }
    }

    /// Returns where a path leads that a call has taken.
    fn found(&mut self, directory: u64, path: u64, last: Last) -> Option<Found> {
        let (from, path) = self.path(directory, path).ok()?;
        self.system.tree.walk_with(&self.view(), (self.process.root, from), &path, last).ok()
    }

    /// Tells what has happened to a file that a call has named by a path; with an empty one, by its descriptor.
    fn observe_path(&mut self, directory: u64, path: u64, flags: u32, mask: u32) {
        let is_empty = matches!(self.read_record(path), Ok([0]));
        if is_empty && flags & at::EMPTY_PATH != 0 {
            return self.observe_descriptor(directory, mask);
        }
        let last = if flags & at::SYMLINK_NOFOLLOW != 0 { Last::Keep } else { Last::Follow };
        let Some(found) = self.found(directory, path, last) else { return };
        let (is_named, node): (bool, Option<NodeId>) = (found.is_named(), found.node);
        let place = is_named.then_some(Place { directory: found.parent, name: found.name });
        if let Some(node) = node {
            self.system.tell_of(node, place.as_ref(), mask);
        }
    }

    /// Tells that a call has made an entry.
    fn observe_new(&mut self, directory: u64, path: u64, is_another: bool) {
        if let Some(found) = self.found(directory, path, Last::Name) {
            self.system.tell_of_making(&found, is_another);
        }
    }
}

/// Returns whether a user or a group is given, so that the owner is set.
fn is_owner(user: u64, group: u64) -> bool {
    user as u32 != u32::MAX || group as u32 != u32::MAX
}
