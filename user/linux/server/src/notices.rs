//! Signals about changes in directories (`F_NOTIFY`), which came before `inotify`.
//!
//! A notice belongs to an open file, which keeps the directory alive; closing the file descriptor ends the notice. The
//! signal is the open file's, and goes to the file's owner, as with [`O_ASYNC`](crate::owners).

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use tench_linux_calls::numbers::watch;
use tench_linux_files::{Errno, NodeId};

use crate::descriptors::DescriptionId;
use crate::owners::{Owner, Reason};
use crate::signals::Info;
use crate::{Machine, System};

/// An event that `inotify` does not have: an entry has a new name in the same directory.
pub const RENAMED: u32 = 0x1000;
/// A flag: the notice stays after its first event.
pub const MULTISHOT: u32 = 1 << 31;

/// The most notices of an instance.
pub const MOST: usize = 1024;
/// The most signals that one call prepares; further ones are lost.
const MOST_DUE: usize = 2 * MOST;

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

/// A process's request for signals about a directory.
#[derive(Clone, Copy, Debug)]
pub struct Notice {
    /// The directory's open file.
    pub description: DescriptionId,
    /// The process that made the request.
    pub process: u32,
    /// The file descriptor by which it did.
    pub descriptor: u32,
    /// The events, as `inotify` has them, and [`RENAMED`].
    pub wanted: u32,
    /// Set if the notice stays after its first event.
    pub stays: bool,
}

/// A signal to send at the end of the call.
#[derive(Clone, Copy, Debug)]
pub struct Due {
    /// The receiver.
    pub owner: Owner,
    /// The real and the effective user who named the receiver.
    pub by: [u32; 2],
    /// The signal.
    pub info: Info,
}

/// All notices of an instance.
#[derive(Debug, Default)]
pub struct Notices {
    /// The notices of each directory, at most one for each process and open file.
    all: BTreeMap<NodeId, Vec<Notice>>,
    /// Number of notices.
    count: usize,
    due: VecDeque<Due>,
}

impl Notices {
    /// Returns whether there are no notices.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the number of notices.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Returns whether a directory has notices.
    pub fn has(&self, directory: NodeId) -> bool {
        self.all.contains_key(&directory)
    }

    /// Adds a notice, or its events to the process's notice by the same open file.
    ///
    /// # Errors
    /// `ENOMEM`: there are too many.
    pub fn add(&mut self, directory: NodeId, new: Notice) -> Result<(), Errno> {
        let is_same = |old: &&mut Notice| (old.description, old.process) == (new.description, new.process);
        if let Some(old) = self.all.get_mut(&directory).and_then(|here| here.iter_mut().find(is_same)) {
            old.descriptor = new.descriptor;
            old.wanted |= new.wanted;
            old.stays |= new.stays;
            return Ok(());
        }
        if self.count >= MOST {
            return Err(Errno::ENOMEM);
        }
        self.count += 1;
        self.all.entry(directory).or_default().push(new);
        Ok(())
    }

    /// Removes a process's notice of a file, which need not be a directory, by an open file; or those of all processes.
    pub fn end(&mut self, file: NodeId, description: DescriptionId, process: Option<u32>) {
        let Some(here) = self.all.get_mut(&file) else { return };
        let before = here.len();
        here.retain(|old| old.description != description || process.is_some_and(|id| id != old.process));
        self.count -= before - here.len();
        if here.is_empty() {
            self.all.remove(&file);
        }
    }

    /// Takes the next signal to send.
    pub fn take_due(&mut self) -> Option<Due> {
        self.due.pop_front()
    }
}

impl<M: Machine> System<M> {
    /// Prepares the signals about events in a directory.
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
                && due.len() < MOST_DUE
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
