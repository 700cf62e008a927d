//! Status of generated nodes, and which of them may be written.

use tench_linux_calls::numbers::open;
use tench_linux_files::{Class, Errno, NodeId, Time, Tree};

use super::fixed::{self, FIXED, Made};
use super::process::{ENTRIES, Entry};
use super::view::threads;
use super::{PROC_DEVICE, SYS_DEVICE, What};
use crate::Machine;
use crate::caller::{Caller, Result};
use crate::process::Process;

/// Length that Linux shows for a link of a descriptor, and for a file of `/sys`.
const LINK_LENGTH: u64 = 64;
const SYS_LENGTH: u64 = 4096;
/// Sizes of a block in `/proc` and in `/sys`.
const PROC_BLOCK: u32 = 1024;
const SYS_BLOCK: u32 = 4096;

/// Facts about a generated node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Number of the file system.
    pub device: u32,
    /// Permissions.
    pub permissions: u32,
    /// The owner.
    pub user: u32,
    /// The owner's group.
    pub group: u32,
    /// Number of entries.
    pub links: u32,
    /// Length.
    pub length: u64,
    /// Size of a block.
    pub block: u32,
    /// When it was made.
    pub time: Time,
}

impl<M: Machine> Caller<'_, M> {
    /// Returns what is recorded of a generated node.
    pub(crate) fn generated_facts(&self, node: NodeId) -> Option<Facts> {
        let what = What::of(node)?;
        let (device, block) = if what.is_in_sys() { (SYS_DEVICE, SYS_BLOCK) } else { (PROC_DEVICE, PROC_BLOCK) };
        let process = what.owner().and_then(|owner| self.viewer().process(owner));
        let time = process.map_or_else(|| self.time_of_start(), |process| process.started);
        let (permissions, links, length) = match what {
            What::Fixed(index) => self.fixed_facts(index, what.is_in_sys()),
            What::Process(_) => (0o555, directory_links(ENTRIES.iter().map(|line| line.entry)), 0),
            What::Thread(..) => (0o555, 2, 0),
            What::Entry(_, index) if ENTRIES[index].entry == Entry::Threads => {
                (0o555, 2 + process.map_or(0, |process| threads(process).count() as u32), 0)
            }
            What::Entry(_, index) | What::ThreadEntry(_, _, index) => {
                let line = &ENTRIES[index];
                (line.permissions, if line.entry.class() == Class::Directory { 2 } else { 1 }, 0)
            }
            What::Descriptor(owner, number) => {
                let flags = self.view().description(owner, number).map(|file| (file.reads(), file.writes()));
                let (reads, writes) = flags.unwrap_or_default();
                let permissions = if reads { 0o500 } else { 0 } | if writes { 0o300 } else { 0 };
                (permissions, 1, LINK_LENGTH)
            }
            What::DescriptorFacts(..) => (0o444, 1, 0),
        };
        let (user, group) = process.map_or((0, 0), |process| owner_of(process, permissions, what.class()));
        Some(Facts { device, permissions, user, group, links, length, block, time })
    }

    fn fixed_facts(&self, index: usize, is_in_sys: bool) -> (u32, u32, u64) {
        match FIXED[index].made {
            Made::Directory => {
                let below = fixed::children(index).filter(|(_, fixed)| fixed.made == Made::Directory).count();
                let processes = if index == fixed::PROC { self.viewer().processes().len() } else { 0 };
                (if is_in_sys && index != fixed::SYS { 0o755 } else { 0o555 }, (2 + below + processes) as u32, 0)
            }
            Made::Link(path) => (0o777, 1, path.len() as u64),
            Made::Own | Made::OwnThread => (0o777, 1, 0),
            Made::Text(_) | Made::File(_) => (0o444, 1, if is_in_sys { SYS_LENGTH } else { 0 }),
        }
    }

    /// Returns when the machine started.
    fn time_of_start(&self) -> Time {
        let start = self.system.memory.hardware.start();
        Time { seconds: start.as_secs().cast_signed(), nanoseconds: start.subsec_nanos() }
    }

    /// Checks whether a generated node may be opened with these flags.
    ///
    /// # Errors
    /// `EACCES` if it is a setting, and would be written; if its permissions forbid it; or if it tells of the memory of
    /// another user's process.
    pub(crate) fn may_open_generated(&self, node: NodeId, flags: u32) -> Result<()> {
        let is_setting = What::of(node).is_some_and(What::is_setting);
        if is_setting && flags & open::ACCESS != open::RDONLY {
            return Err(Errno::EACCES);
        }
        if flags & open::PATH != 0 {
            return Ok(());
        }
        match What::of(node) {
            Some(What::Entry(owner, index) | What::ThreadEntry(owner, _, index))
                if ENTRIES[index].entry == Entry::Memory =>
            {
                self.check_attachment(owner)
            }
            Some(What::Entry(owner, index) | What::ThreadEntry(owner, _, index))
                if ENTRIES[index].entry.is_private() =>
            {
                self.view().check_inspection(owner)
            }
            Some(What::DescriptorFacts(owner, _)) => self.view().check_inspection(owner),
            _ => Ok(()),
        }
    }

    /// Returns the magic number of the file system of a generated node; nothing for those of the tree.
    pub(crate) fn generated_magic(node: NodeId) -> Option<u64> {
        const PROC: u64 = 0x9fa0;
        const SYS: u64 = 0x6265_6572;
        What::of(node).map(|what| if what.is_in_sys() { SYS } else { PROC })
    }
}

/// Returns to whom a generated node of a process belongs.
fn owner_of<M: Machine>(process: &Process<M>, permissions: u32, class: Class) -> (u32, u32) {
    const OPEN: u32 = 0o555;
    let identity = process.identity();
    let is_open = class == Class::Directory && permissions == OPEN;
    if process.is_dumpable || is_open { (identity.user.effective, identity.group.effective) } else { (0, 0) }
}

fn directory_links(entries: impl Iterator<Item = Entry>) -> u32 {
    2 + entries.filter(|entry| entry.class() == Class::Directory).count() as u32
}

impl<M: Machine> crate::System<M> {
    /// Adds `/proc`, `/sys`, and the links and directories of `/dev` that belong to them.
    pub(crate) fn add_generated(&mut self) -> core::result::Result<(), Errno> {
        for index in [fixed::PROC, fixed::SYS] {
            self.tree.enter_generated(FIXED[index].name.as_bytes(), What::Fixed(index).node())?;
        }
        let links: [(&[u8], &[u8]); 4] = [
            (b"/dev/fd", b"/proc/self/fd"),
            (b"/dev/stdin", b"/proc/self/fd/0"),
            (b"/dev/stdout", b"/proc/self/fd/1"),
            (b"/dev/stderr", b"/proc/self/fd/2"),
        ];
        for (path, target) in links {
            let place = self.tree.walk(Tree::ROOT, Tree::ROOT, path, tench_linux_files::Last::Name)?;
            self.tree.make(&mut self.memory, &place, tench_linux_files::NewNode::Link(target), 0o777)?;
        }
        for (path, permissions) in [(&b"/dev/shm"[..], 0o1777), (b"/dev/pts", 0o755)] {
            let directory = self.tree.make_directories(&mut self.memory, path)?;
            self.tree.node_mut(directory).attributes.permissions = permissions;
        }
        Ok(())
    }
}
