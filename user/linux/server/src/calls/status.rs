//! Calls about what is recorded of files.

use tench_linux_calls::numbers::{AT_FDCWD, at, file_type, permission};
use tench_linux_calls::records::{stat, timespec, u64_at};
use tench_linux_files::{Attributes, Errno, Kind, Last, Node, NodeId, Time, Tree};

use super::slaves::{SLAVES_DEVICE, SLAVES_MAGIC};
use super::users::given;
use crate::Machine;
use crate::caller::{Caller, Result};

/// The file system's number, as programs see it.
pub(crate) const DEVICE: u64 = 1;
/// Size of a block, in bytes.
const BLOCK: u32 = 4096;

/// A time that a file is to have.
#[derive(Clone, Copy)]
enum When {
    /// The present.
    Now,
    /// Another time.
    At(Time),
}

impl When {
    /// Returns the time, which may be the present.
    const fn at(self, now: Time) -> Time {
        match self {
            When::Now => now,
            When::At(time) => time,
        }
    }
}

/// Writes a number into a record.
fn put<const N: usize>(record: &mut [u8], offset: usize, bytes: [u8; N]) {
    record[offset..offset + N].copy_from_slice(&bytes);
}

fn put_time(record: &mut [u8], offset: usize, time: Time) {
    put(record, offset + timespec::SECONDS, time.seconds.to_le_bytes());
    put(record, offset + timespec::NANOSECONDS, u64::from(time.nanoseconds).to_le_bytes());
}

impl<M: Machine> Caller<'_, M> {
    /// Returns what is recorded of a node, as programs read it.
    fn status(&self, id: NodeId) -> [u8; stat::SIZE] {
        let node = self.system.tree.node(id);
        let (length, special) = match &node.kind {
            Kind::Regular(object) => (self.system.memory.objects.get(*object).length(), 0),
            Kind::Directory(directory) => (20 * (directory.len() as u64 + 2), 0),
            Kind::Link(path) => (path.len() as u64, 0),
            Kind::Character(device) | Kind::Block(device) => (0, device.0.into()),
            Kind::Fifo(_) | Kind::Socket | Kind::Special(_) => (0, 0),
            Kind::Generated(_) => return self.generated_status(id),
        };
        let blocks = match &node.kind {
            Kind::Regular(_) => length.div_ceil(u64::from(BLOCK)) * u64::from(BLOCK / 512),
            _ => 0,
        };
        let mut record = [0; stat::SIZE];
        let file_system = match self.system.device_of(id) {
            Some(device) => device.into(),
            None if self.system.is_of_slaves(id) => SLAVES_DEVICE.into(),
            None => DEVICE,
        };
        put(&mut record, stat::DEVICE, file_system.to_le_bytes());
        put(&mut record, stat::INODE, self.system.tree.inode(id).to_le_bytes());
        put(&mut record, stat::MODE, self.mode(node).to_le_bytes());
        put(&mut record, stat::LINKS, node.links().to_le_bytes());
        put(&mut record, stat::USER, node.attributes.user.to_le_bytes());
        put(&mut record, stat::GROUP, node.attributes.group.to_le_bytes());
        put(&mut record, stat::SPECIAL_DEVICE, u64::to_le_bytes(special));
        put(&mut record, stat::LENGTH, length.to_le_bytes());
        put(&mut record, stat::BLOCK_SIZE, BLOCK.to_le_bytes());
        put(&mut record, stat::BLOCKS, blocks.to_le_bytes());
        put_time(&mut record, stat::ACCESSED, node.attributes.accessed);
        put_time(&mut record, stat::MODIFIED, node.attributes.modified);
        put_time(&mut record, stat::CHANGED, node.attributes.changed);
        record
    }

    /// Returns the mode of a node: type and permissions.
    fn mode(&self, node: &Node) -> u32 {
        const SOCKET: u32 = file_type::SOCKET | 0o777;
        match node.kind {
            Kind::Special(number) if self.system.specials.is_socket(number) => SOCKET,
            Kind::Special(number) => match self.system.specials.queue(number) {
                Some(queue) => file_type::REGULAR | self.system.queues.owned(queue).permissions,
                None => node.mode(),
            },
            _ => node.mode(),
        }
    }

    /// Returns what is recorded of a generated node, as programs read it.
    fn generated_status(&self, id: NodeId) -> [u8; stat::SIZE] {
        let mut record = [0; stat::SIZE];
        let Some(facts) = self.generated_facts(id) else { return record };
        let mode = self.system.tree.node(id).kind.file_type() | facts.permissions;
        put(&mut record, stat::DEVICE, u64::from(facts.device).to_le_bytes());
        put(&mut record, stat::INODE, Tree::number(id).to_le_bytes());
        put(&mut record, stat::MODE, mode.to_le_bytes());
        put(&mut record, stat::LINKS, facts.links.to_le_bytes());
        put(&mut record, stat::USER, facts.user.to_le_bytes());
        put(&mut record, stat::GROUP, facts.group.to_le_bytes());
        put(&mut record, stat::LENGTH, facts.length.to_le_bytes());
        put(&mut record, stat::BLOCK_SIZE, facts.block.to_le_bytes());
        for offset in [stat::ACCESSED, stat::MODIFIED, stat::CHANGED] {
            put_time(&mut record, offset, facts.time);
        }
        record
    }

    /// Reads what is recorded of an open file.
    pub fn fstat(&mut self, descriptor: u64, into: u64) -> Result {
        let description = self.descriptor(descriptor)?;
        let node = self.system.descriptions.get(description).node;
        let record = self.status(node);
        self.write(into, &record).map(|()| 0)
    }

    /// Reads what is recorded of a file.
    pub fn newfstatat(&mut self, directory: u64, path: u64, into: u64, flags: u64) -> Result {
        if flags as u32 & !(at::SYMLINK_NOFOLLOW | at::NO_AUTOMOUNT | at::EMPTY_PATH) != 0 {
            return Err(Errno::EINVAL);
        }
        let node = self.find_at(directory, path, flags)?;
        // A path was compared with what the server has; an open file was not.
        self.look_in_mount(node)?;
        let record = self.status(node);
        self.write(into, &record).map(|()| 0)
    }

    /// Reads what is recorded of the file system of a path.
    pub fn statfs(&mut self, path: u64, into: u64) -> Result {
        let node = self.find(AT_FDCWD as u64, path, Last::Follow)?;
        self.write_file_system(node, into)
    }

    /// Reads what is recorded of the file system of an open file.
    pub fn fstatfs(&mut self, descriptor: u64, into: u64) -> Result {
        let description = self.descriptor(descriptor)?;
        let node = self.system.descriptions.get(description).node;
        self.write_file_system(node, into)
    }

    fn write_file_system(&mut self, node: NodeId, into: u64) -> Result {
        const TMPFS: u64 = 0x0102_1994;
        // A file system that a server provides.
        const FUSE: u64 = 0x6573_5546;
        let (magic, total, free) = match Self::generated_magic(node) {
            Some(magic) => (magic, 0, 0),
            None if self.system.is_of_slaves(node) => (SLAVES_MAGIC, 0, 0),
            None if self.system.tree.mirror_of(node).is_some() => {
                let (total, free) = self.usage_of_mount(node)?;
                (FUSE, total, free)
            }
            None => {
                let (total, free) = self.system.count_pages();
                (TMPFS, total, free)
            }
        };
        let flags = u64::from(self.system.is_read_only(node));
        let words = [magic, u64::from(BLOCK), total, free, free, 0, 0, 0, 255, u64::from(BLOCK), flags, 0, 0, 0, 0];
        let record: alloc::vec::Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.write(into, &record).map(|()| 0)
    }

    /// Checks whether what is recorded of a node can be changed.
    fn may_change(node: NodeId) -> Result<()> {
        if node.is_generated() { Err(Errno::EPERM) } else { Ok(()) }
    }

    /// Returns the node of a descriptor that is not only a path.
    fn open_node(&mut self, descriptor: u64) -> Result<NodeId> {
        let description = self.descriptor(descriptor)?;
        let open_file = self.system.descriptions.get(description);
        if open_file.is_path() { Err(Errno::EBADF) } else { Ok(open_file.node) }
    }

    fn set_permissions(&mut self, node: NodeId, mode: u64) -> Result {
        Self::may_change(node)?;
        let permissions = self.permitted_mode(node, mode as u32)?;
        self.may_set_in_mount(node, |attributes| attributes.permissions == permissions)?;
        self.system.update_time();
        let now = self.system.tree.now;
        let attributes = &mut self.system.tree.node_mut(node).attributes;
        attributes.permissions = permissions;
        attributes.changed = now;
        Ok(0)
    }

    /// Changes the permissions of an open file.
    pub fn fchmod(&mut self, descriptor: u64, mode: u64) -> Result {
        let node = self.open_node(descriptor)?;
        self.set_permissions(node, mode)
    }

    /// Changes the permissions of a file.
    pub fn fchmodat(&mut self, directory: u64, path: u64, mode: u64) -> Result {
        let node = self.find(directory, path, Last::Follow)?;
        self.set_permissions(node, mode)
    }

    fn set_owner(&mut self, node: NodeId, user: u64, group: u64) -> Result {
        Self::may_change(node)?;
        let new = self.permitted_owner(node, given(user), given(group))?;
        self.may_set_in_mount(node, |old| old.user == new.user && old.group == new.group)?;
        self.system.update_time();
        let changed = self.system.tree.now;
        self.system.tree.node_mut(node).attributes = Attributes { changed, ..new };
        Ok(0)
    }

    /// Changes the owner of an open file.
    pub fn fchown(&mut self, descriptor: u64, user: u64, group: u64) -> Result {
        let node = self.open_node(descriptor)?;
        self.set_owner(node, user, group)
    }

    /// Changes the owner of a file.
    pub fn fchownat(&mut self, directory: u64, path: u64, user: u64, group: u64, flags: u64) -> Result {
        if flags as u32 & !(at::SYMLINK_NOFOLLOW | at::EMPTY_PATH) != 0 {
            return Err(Errno::EINVAL);
        }
        let node = self.find_at(directory, path, flags)?;
        self.set_owner(node, user, group)
    }

    /// Changes the times that are recorded of a file.
    pub fn utimensat(&mut self, directory: u64, path: u64, times: u64, flags: u64) -> Result {
        self.system.update_time();
        if flags as u32 & !(at::SYMLINK_NOFOLLOW | at::EMPTY_PATH) != 0 {
            return Err(Errno::EINVAL);
        }
        let (accessed, modified) = if times == 0 {
            (Some(When::Now), Some(When::Now))
        } else {
            let record: [u8; 2 * timespec::SIZE] = self.read_record(times)?;
            (Self::time_to_set(&record)?, Self::time_to_set(&record[timespec::SIZE..])?)
        };
        if accessed.is_none() && modified.is_none() {
            return Ok(0);
        }
        let is_touch = [accessed, modified].iter().all(|time| matches!(time, Some(When::Now)));
        let node = if path == 0 {
            let description = self.descriptor(directory)?;
            self.system.descriptions.get(description).node
        } else {
            self.find_at(directory, path, flags)?
        };
        Self::may_change(node)?;
        if self.must_own(node).is_err() {
            // Setting both times to the present needs no more than permission to write.
            if !is_touch {
                return Err(Errno::EPERM);
            }
            self.may_access(node, permission::WRITE)?;
        }
        if self.system.tree.mirror_of(node).is_some() {
            return self.touch_in_mount(node, is_touch);
        }
        let now = self.system.tree.now;
        let [accessed, modified] = [accessed, modified].map(|time| time.map(|time| time.at(now)));
        self.system.tree.set_times(node, accessed, modified);
        Ok(0)
    }

    /// Returns the time that a record asks for, or none if it is to stay.
    fn time_to_set(record: &[u8]) -> Result<Option<When>> {
        const NOW: u64 = 0x3fff_ffff;
        const KEEP: u64 = 0x3fff_fffe;
        let seconds = u64_at(record, timespec::SECONDS).cast_signed();
        match u64_at(record, timespec::NANOSECONDS) {
            NOW => Ok(Some(When::Now)),
            KEEP => Ok(None),
            nanoseconds if nanoseconds < 1_000_000_000 => {
                Ok(Some(When::At(Time { seconds, nanoseconds: nanoseconds as u32 })))
            }
            _ => Err(Errno::EINVAL),
        }
    }

    /// Sets which permissions new files do not get. Returns what was set before.
    pub fn umask(&mut self, mask: u64) -> Result {
        Ok(core::mem::replace(&mut self.process.mask, mask as u32 & 0o777).into())
    }
}
