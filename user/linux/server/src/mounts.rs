//! Mounts: directories of the instance's tree that show directories of Tench's file server.
//!
//! ```text
//!   a thread's call ── needs to know ──▶ Need ──▶ Errand ──▶ worker ──▶ file server
//!        ▲                                                     │
//!        └── is made again, and finds ── Inquiry ◀── Finding ───┘
//! ```
//!
//! The tree mirrors only files that somebody has looked at. Each call compares the entries on its paths, and the files
//! that it reads, with those of the server, so that programs at once see what other programs have changed. Changes that
//! a call makes are written to the server before the call returns. A call that needs a reply of the server waits, and
//! is made again when the reply has come. The call's [`Inquiry`] keeps all replies until the call is over, so that no
//! call requests anything twice, however often it is made again.

pub mod errand;
mod inquiries;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::ops::Range;

use tench_files_interface::protocol::{Kind as OriginalKind, MAX_PATH, Status, Usage};
use tench_linux_files::{Errno, Last, NodeId, Seen, Time, Tree, Version};
use tench_linux_memory::ObjectId;

use crate::caller::{Result, WAITS};
use crate::descriptors::DescriptionId;
use crate::waiting::Waiting;
use crate::{Machine, System};
use errand::{Errand, Finding, Removed};

/// Device number of the first mount, as programs see it. Those of the next mounts follow.
pub(crate) const FIRST_DEVICE: u32 = 32;
/// Maximum number of bytes that one errand reads or writes.
const PART: usize = 256 * 1024;
/// Permissions of files and directories. The server records none, so all may be executed.
const PERMISSIONS: u32 = 0o755;
/// Permissions in read-only mounts, and of files of the boot archive.
const FIXED: u32 = 0o555;

/// A mount to be made: a directory of a file server, and where programs are to see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Path of the directory at the server, without a slash at its end.
    pub directory: String,
    /// Path of the mount point, from the root.
    pub mount_point: String,
    /// Set if nothing may be changed through this mount.
    pub is_read_only: bool,
}

/// A mount that has been made.
#[derive(Debug)]
pub(crate) struct Mounted {
    pub mount: Mount,
    /// The mount point.
    pub node: NodeId,
}

/// An entry: a directory, and a name in it.
type Entry = (NodeId, Box<[u8]>);

/// Information that a call needs from a server, or an operation that the server is to do for the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Status of the original to which an entry leads.
    Entry(NodeId, Box<[u8]>),
    /// All entries of a directory.
    Entries(NodeId),
    /// The contents of a file.
    Contents(NodeId),
    /// Permission to write a file.
    Access(NodeId),
    /// Resources that the server of a node uses.
    Usage(NodeId),
    /// Creation of a file with this entry.
    Create(NodeId, Box<[u8]>),
    /// Creation of a directory with this entry.
    MakeDirectory(NodeId, Box<[u8]>),
    /// Removal of an entry, which leads to a node of this kind.
    Remove(NodeId, Box<[u8]>, Removed),
    /// Renaming of a file or directory, from the first entry to the second.
    Rename(Entry, Entry),
    /// Writing of the call's first change that is not written yet.
    Write,
}

impl Need {
    const fn changes_something(&self) -> bool {
        matches!(self, Need::Create(..) | Need::MakeDirectory(..) | Need::Remove(..) | Need::Rename(..))
    }

    /// Returns the nodes that the need names.
    fn nodes(&self) -> [Option<NodeId>; 2] {
        match self {
            Need::Entry(node, _)
            | Need::Entries(node)
            | Need::Contents(node)
            | Need::Access(node)
            | Need::Usage(node)
            | Need::Create(node, _)
            | Need::MakeDirectory(node, _)
            | Need::Remove(node, ..) => [Some(*node), None],
            Need::Rename((from, _), (to, _)) => [Some(*from), Some(*to)],
            Need::Write => [None, None],
        }
    }
}

/// A change of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    /// Bytes in this range were written.
    Bytes(Range<u64>),
    /// The length was set to this.
    Length(u64),
    /// The length was set to at least this. A file that was long enough has only a new time of its last change.
    Least(u64),
}

/// A change of a file's contents that is not written to its server yet.
#[derive(Debug)]
struct Change {
    node: NodeId,
    /// The contents that have the change, even if the file has got others since.
    object: ObjectId,
    what: Changed,
    /// Number of changes of all files before this one.
    order: u64,
}

/// Contents that are being read from a server.
#[derive(Debug)]
struct Fetch {
    node: NodeId,
    object: ObjectId,
    /// Number of bytes that have been read.
    done: u64,
    size: u64,
    /// Version of the file when its first bytes were read.
    version: Option<Version>,
    /// Number of times that reading has begun again because others had changed the file.
    attempts: u32,
}

/// An errand under way.
#[derive(Debug)]
struct Pending {
    number: u64,
    need: Need,
    /// Path at the server of the file or directory that the errand is about, if it is about one.
    path: Option<String>,
}

/// Everything that a call needs from servers and has got from them, until the call is over.
#[derive(Debug, Default)]
struct Inquiry {
    /// The errand under way.
    pending: Option<Pending>,
    /// Needs to which servers have replied, with the results.
    answered: Vec<(Need, Result<()>)>,
    /// Nodes that are kept until the call is over.
    kept: Vec<NodeId>,
    fetch: Option<Fetch>,
    /// Entries of a directory that is being listed, as far as they have come.
    listed: BTreeMap<Box<[u8]>, Seen>,
    /// The original that the server has made for the call.
    made: Option<Seen>,
    usage: Option<Usage>,
    /// Result of the call, set when only its changes are left to be written.
    result: Option<u64>,
    changes: VecDeque<Change>,
    /// Open file whose position the call has moved by its changes.
    moved: Option<DescriptionId>,
    /// The wait of the call before it waited for an errand, such as that for room in a pipe.
    before: Option<Waiting>,
}

/// All mounts of an instance.
#[derive(Debug, Default)]
pub struct Mounts {
    pub(crate) all: Vec<Mounted>,
    /// Inquiries of the calls that are not over, by their threads.
    inquiries: BTreeMap<u32, Inquiry>,
    /// The need to which the present call has no reply, and for which it has to wait.
    wanted: RefCell<Option<Need>>,
    /// Changes that the present call has made.
    pub(crate) changes: Vec<(NodeId, ObjectId, Changed)>,
    /// Number of errands so far.
    errands: u64,
    /// Number of changes so far.
    changes_made: u64,
}

impl Mounts {
    /// Returns whether there are no mounts.
    pub const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the number of mounts.
    pub const fn count(&self) -> usize {
        self.all.len()
    }

    /// Checks that a server has met a need of a thread's call.
    ///
    /// # Errors
    /// The error that the server has replied. If there is no reply yet: `WAITS`; the call is to wait for the reply, and
    /// is then made again.
    pub(crate) fn need(&self, thread: u32, need: Need) -> Result<()> {
        let answered = self.inquiries.get(&thread).and_then(|inquiry| {
            let found = inquiry.answered.iter().find(|(other, _)| *other == need)?;
            Some(found.1)
        });
        answered.unwrap_or_else(|| {
            self.want(need);
            Err(WAITS)
        })
    }

    /// Notes a need for which the present call has to wait.
    pub(crate) fn want(&self, need: Need) {
        self.wanted.replace(Some(need));
    }

    /// Takes the need for which the present call has to wait.
    pub(crate) fn take_wanted(&self) -> Option<Need> {
        self.wanted.take()
    }

    /// Checks that the length of a file here is that of its original.
    ///
    /// # Errors
    /// Those of [`need`](Self::need), and `ESTALE` if the original is lost.
    pub(crate) fn need_state(&self, tree: &Tree, thread: u32, node: NodeId) -> Result<()> {
        let Some(mirror) = tree.mirror_of(node) else { return Ok(()) };
        if mirror.is_lost {
            return Err(Errno::ESTALE);
        }
        if tree.node(node).is_directory() {
            return Ok(());
        }
        let (directory, name) = mirror.place.clone();
        self.need(thread, Need::Entry(directory, name))
    }

    /// Checks that a file has the contents of its original.
    ///
    /// # Errors
    /// Those of [`need`](Self::need), and `ESTALE` if the original is lost and its contents are not here.
    pub(crate) fn need_contents(&self, tree: &Tree, thread: u32, node: NodeId) -> Result<()> {
        let Some(mirror) = tree.mirror_of(node).filter(|_| !tree.node(node).is_directory()) else { return Ok(()) };
        let has_all = mirror.version.is_some();
        match self.need_state(tree, thread, node) {
            Err(Errno::ESTALE) if has_all => Ok(()),
            Ok(()) if !has_all => self.need(thread, Need::Contents(node)),
            result => result,
        }
    }

    /// Takes the errand with a number, and returns it with the thread whose call waits for it.
    fn take_pending(&mut self, number: u64) -> Option<(u32, Pending)> {
        self.inquiries.iter_mut().find_map(|(thread, inquiry)| {
            let pending = inquiry.pending.take_if(|pending| pending.number == number)?;
            Some((*thread, pending))
        })
    }

    /// Returns the original that a server has made for a thread's call.
    pub(crate) fn made(&self, thread: u32) -> Option<Seen> {
        self.inquiries.get(&thread)?.made
    }

    /// Returns the usage that a server has reported to a thread's call.
    pub(crate) fn usage(&self, thread: u32) -> Option<Usage> {
        self.inquiries.get(&thread)?.usage
    }

    /// Returns whether a server has changed something for a thread's call.
    pub(crate) fn has_acted(&self, thread: u32) -> bool {
        let mut answered = self.inquiries.get(&thread).into_iter().flat_map(|inquiry| &inquiry.answered);
        answered.any(|(need, result)| need.changes_something() && result.is_ok())
    }

    /// Returns whether a server has met a need of a thread's call.
    pub(crate) fn has_done(&self, thread: u32, need: &Need) -> bool {
        let mut answered = self.inquiries.get(&thread).into_iter().flat_map(|inquiry| &inquiry.answered);
        answered.any(|(other, result)| other == need && result.is_ok())
    }

    /// Returns the number of the errand for which a thread's call waits.
    pub(crate) fn pending(&self, thread: u32) -> Option<u64> {
        self.inquiries.get(&thread)?.pending.as_ref().map(|pending| pending.number)
    }

    /// Returns the result of a thread's call, if only its changes are left to be written.
    pub(crate) fn result(&self, thread: u32) -> Option<u64> {
        self.inquiries.get(&thread)?.result
    }

    /// Returns the file whose change is to be written next for a thread's call.
    pub(crate) fn next_changed(&self, thread: u32) -> Option<NodeId> {
        self.inquiries.get(&thread)?.changes.front().map(|change| change.node)
    }

    /// Returns the error for which the changes of a thread's call cannot be written.
    pub(crate) fn failure(&self, thread: u32) -> Option<Errno> {
        let mut answered = self.inquiries.get(&thread)?.answered.iter();
        answered.find(|(need, _)| *need == Need::Write).and_then(|(_, result)| result.err())
    }

    /// Returns the number of calls that have an inquiry, for tests.
    pub fn inquiries(&self) -> usize {
        self.inquiries.len()
    }
}

/// Returns the names on the path of a mount point, or nothing if no mount point can have this path.
fn names_of(mount_point: &str) -> Option<Vec<&str>> {
    let names: Vec<&str> = mount_point.strip_prefix('/')?.split('/').filter(|name| !name.is_empty()).collect();
    let is_possible = !names.is_empty() && names.iter().all(|name| !matches!(*name, "." | ".."));
    is_possible.then_some(names)
}

impl<M: Machine> System<M> {
    /// Mounts a directory of a file server.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn mount(&mut self, mount: Mount) -> core::result::Result<(), String> {
        const BAD_MOUNT_POINT: &str =
            "the mount point must be a path from the root without . and .., such as /mnt, and not the root itself";
        let problem = |what: &str| alloc::format!("--mount {}={}: {what}", mount.directory, mount.mount_point);
        let names = names_of(&mount.mount_point).ok_or_else(|| problem(BAD_MOUNT_POINT))?;
        self.check_mount_point(&names).map_err(problem)?;
        let directory = if mount.directory.is_empty() { "/" } else { &mount.directory };
        let status = match self.memory.hardware.run_errand(Errand::Look(directory.into())) {
            Ok(Finding::Status(Some(status))) if status.kind == OriginalKind::Directory => status,
            Ok(Finding::Status(Some(_))) => return Err(problem("that is a file; name the directory that contains it")),
            Ok(_) => return Err(problem("there is no such directory among Tench's files; ls shows what there is")),
            Err(_) => return Err(problem("the file server does not reply; try again")),
        };
        let no_memory = |_| problem("there is not enough memory; end other programs, and try again");
        self.memory.hardware.begin_errands().map_err(no_memory)?;
        let mount_point = ["/", &names.join("/")].concat();
        let node = self.tree.make_directories(&mut self.memory, mount_point.as_bytes()).map_err(no_memory)?;
        let seen = self.seen(&status, mount.is_read_only);
        self.tree.mount(node, seen.original, self.mounts.all.len() as u32);
        self.tree.note_seen(&mut self.memory, node, &seen);
        self.tree.share(node);
        self.mounts.all.push(Mounted { mount: Mount { mount_point, ..mount }, node });
        self.inspects_calls = true;
        Ok(())
    }

    /// Checks that there can be a mount point at a path.
    fn check_mount_point(&self, names: &[&str]) -> core::result::Result<(), &'static str> {
        let mut here = Tree::ROOT;
        for name in names {
            if self.tree.mirror_of(here).is_some() {
                return Err("the mount point lies in another mount; name one outside of it");
            }
            match self.tree.find((Tree::ROOT, here), name.as_bytes(), Last::Follow) {
                Ok(node) => here = node,
                Err(Errno::ENOENT) => return Ok(()),
                Err(_) => return Err("the path leads through something that is no directory; name another path"),
            }
        }
        let is_free = self.tree.node(here).directory().is_some_and(|directory| directory.is_empty());
        if is_free && self.tree.mirror_of(here).is_none() && here != self.terminals.directory() {
            Ok(())
        } else {
            Err("there is something at the mount point; name an empty directory, or a path that does not exist yet")
        }
    }

    /// Returns the mount in which a node lies.
    pub(crate) fn mount_of(&self, node: NodeId) -> Option<&Mounted> {
        self.mounts.all.get(self.tree.mirror_of(node)?.mount as usize)
    }

    /// Returns whether a node is a mount point.
    pub(crate) fn is_mount_point(&self, node: NodeId) -> bool {
        self.mount_of(node).is_some_and(|mounted| mounted.node == node)
    }

    /// Returns whether a node lies in a read-only mount.
    pub(crate) fn is_read_only(&self, node: NodeId) -> bool {
        self.mount_of(node).is_some_and(|mounted| mounted.mount.is_read_only)
    }

    /// Returns the device number of the mount in which a node lies.
    pub(crate) fn device_of(&self, node: NodeId) -> Option<u32> {
        self.tree.mirror_of(node).map(|mirror| FIRST_DEVICE + mirror.mount)
    }

    /// Returns the path of an entry at its server; that of the directory itself if the name is empty.
    fn path_at_server(&self, directory: NodeId, name: &[u8]) -> Result<String> {
        let mirror = self.tree.mirror_of(directory).filter(|mirror| !mirror.is_lost).ok_or(Errno::ENOENT)?;
        let mounted = self.mounts.all.get(mirror.mount as usize).ok_or(Errno::ENOENT)?;
        let below = if name.is_empty() {
            self.tree.path_of(mounted.node, directory)
        } else {
            self.tree.path_of_entry(mounted.node, directory, name)
        };
        let below = below.ok_or(Errno::ENOENT)?;
        let below = core::str::from_utf8(&below).map_err(|_| Errno::EINVAL)?;
        let path = [&mounted.mount.directory, below].concat();
        if path.len() > MAX_PATH { Err(Errno::ENAMETOOLONG) } else { Ok(path) }
    }

    /// Returns the status of an original in the form that the tree takes.
    fn seen(&self, status: &Status, is_read_only: bool) -> Seen {
        let is_fixed = is_read_only || status.kind == OriginalKind::ArchiveFile;
        let start = self.date_at_start.unwrap_or_else(|| self.memory.hardware.start());
        let modified = start.saturating_add(core::time::Duration::from_nanos(status.modified));
        Seen {
            original: status.identity,
            is_directory: status.kind == OriginalKind::Directory,
            permissions: if is_fixed { FIXED } else { PERMISSIONS },
            size: status.size,
            version: version(status),
            modified: Time { seconds: modified.as_secs().cast_signed(), nanoseconds: modified.subsec_nanos() },
        }
    }
}

/// Returns the version of a file's contents.
const fn version(status: &Status) -> Version {
    Version { changes: status.changes, modified: status.modified }
}
