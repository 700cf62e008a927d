//! Directories of whose changes processes learn by signals: `F_NOTIFY`, the way before `inotify`.
//!
//! A process that asks for that has the directory open, so the directory stays; closing the descriptor ends it. The
//! signal is that of the open file, and goes to its owner, as with [`O_ASYNC`](crate::owners).

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use tench_linux_calls::numbers::watch;
use tench_linux_files::NodeId;

use crate::descriptors::DescriptionId;
use crate::owners::{Owner, Reason};
use crate::signals::Info;
use crate::{Machine, System};

/// An event beside those of `inotify`: something has another name in the same directory.
pub const RENAMED: u32 = 0x1000;
/// A flag: more than the first event counts.
pub const MULTISHOT: u32 = 1 << 31;

/// Returns the events for which a program's flags ask.
pub fn wanted(flags: u32) -> u32 {
    const EVENTS: [u32; 6] = [
        watch::ACCESS,
        watch::MODIFY,
        watch::CREATE | watch::MOVED_TO,
        watch::DELETE | watch::MOVED_FROM,
        RENAMED,
        watch::ATTRIB,
    ];
    let is_set = |bit: usize| flags & 1 << bit != 0;
    EVENTS.iter().enumerate().filter(|(bit, _)| is_set(*bit)).fold(0, |all, (_, events)| all | events)
}

/// An entry of a process that learns of what happens in a directory.
#[derive(Clone, Copy, Debug)]
pub struct Notice {
    /// The directory's open file.
    pub description: DescriptionId,
    /// The process that has asked.
    pub process: u32,
    /// The descriptor that it has named.
    pub descriptor: u32,
    /// The events.
    pub wanted: u32,
    /// Each event counts, and not only the first.
    pub stays: bool,
}

/// A signal that is to be sent at the end of the call.
#[derive(Clone, Copy, Debug)]
pub struct Due {
    /// The receiver.
    pub owner: Owner,
    /// The real and the effective user who has said that it be sent.
    pub by: [u32; 2],
    /// The signal.
    pub info: Info,
}

/// All that processes want to learn of directories by signals.
#[derive(Debug, Default)]
pub struct Notices {
    /// Entries by directories. There is at most one for each open file of a process.
    all: BTreeMap<NodeId, Vec<Notice>>,
    /// Number of entries.
    count: usize,
    due: VecDeque<Due>,
}

impl Notices {
    /// Returns whether nobody wants to learn of anything.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the number of entries.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Returns whether somebody wants to learn of a directory.
    pub fn has(&self, directory: NodeId) -> bool {
        self.all.contains_key(&directory)
    }

    /// Adds an entry, or its events to those for which the process has asked already by the same open file.
    pub fn add(&mut self, directory: NodeId, new: Notice) {
        let here = self.all.entry(directory).or_default();
        let is_same = |old: &&mut Notice| (old.description, old.process) == (new.description, new.process);
        match here.iter_mut().find(is_same) {
            Some(old) => {
                old.descriptor = new.descriptor;
                old.wanted |= new.wanted;
                old.stays |= new.stays;
            }
            None => {
                here.push(new);
                self.count += 1;
            }
        }
    }

    /// Ends what a process, or everybody, wants to learn of a file, which may be no directory, by an open file.
    pub fn end(&mut self, file: NodeId, description: DescriptionId, process: Option<u32>) {
        let Some(here) = self.all.get_mut(&file) else { return };
        let before = here.len();
        here.retain(|old| old.description != description || process.is_some_and(|id| id != old.process));
        self.count -= before - here.len();
        if here.is_empty() {
            self.all.remove(&file);
        }
    }

    /// Takes a signal that is to be sent.
    pub fn take_due(&mut self) -> Option<Due> {
        self.due.pop_front()
    }
}

impl<M: Machine> System<M> {
    /// Prepares the signals that tell of something that has happened to a directory or in it.
    pub(crate) fn notify(&mut self, directory: NodeId, events: u32) {
        let System { notices: Notices { all, count, due }, owners, waiters, .. } = self;
        let Some(here) = all.get_mut(&directory) else { return };
        *count -= here.len();
        here.retain(|notice| {
            if notice.wanted & events == 0 {
                return true;
            }
            if let Some(owned) = owners.get(&notice.description)
                && let Some(owner) = owned.owner
            {
                due.push_back(Due { owner, by: owned.by, info: owned.info(Reason::Message, notice.descriptor) });
                waiters.make_files_ready();
            }
            notice.stays
        });
        *count += here.len();
        if here.is_empty() {
            all.remove(&directory);
        }
    }
}
