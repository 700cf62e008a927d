//! Processes.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use tench_linux_calls::Trace;
use tench_linux_files::{NodeId, Tree};
use tench_linux_memory::Space;

use crate::Machine;
use crate::descriptors::Descriptors;
use crate::instance::FIRST;
use crate::signals::Signals;
use crate::thread::Registers;
use crate::waiting::Waiting;

/// How a process has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The process has ended itself, with this code.
    Exited(u8),
    /// This signal has ended it.
    Killed(u32),
}

impl Status {
    /// Returns the word that `wait4` returns.
    pub fn word(self) -> u32 {
        match self {
            Status::Exited(code) => u32::from(code) << 8,
            Status::Killed(signal) => signal,
        }
    }
}

/// Activity of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The process's thread runs, or its call is being served.
    Runs,
    /// The process's call waits.
    Waits,
    /// The process has ended, and its parent does not know yet.
    Ended(Status),
}

/// Something that the parent can learn by waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// A signal has stopped the process.
    Stopped(u32),
    /// The process goes on.
    Continued,
}

/// When a process gets `SIGALRM`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    /// The next time.
    pub deadline: Duration,
    /// How long after each time the next one is; zero if there is none.
    pub interval: Duration,
}

/// A process.
#[derive(Debug)]
pub struct Process<M: Machine> {
    /// Number of the process.
    pub id: u32,
    /// Number of its parent; 0 for the first process.
    pub parent: u32,
    /// Number of its group.
    pub group: u32,
    /// Number of its session.
    pub session: u32,
    /// Activity of the process.
    pub state: State,
    /// A signal has stopped it. Its call may wait all the same.
    pub is_stopped: bool,
    /// A signal lets it go on.
    pub is_continued: bool,
    /// The registers with which it goes on, if it was stopped while it ran.
    pub stopped_at: Option<Registers>,
    /// News that the parent can learn.
    pub news: Option<News>,
    /// The signal that its parent gets when it ends; 0 for none.
    pub end_signal: u32,
    /// The call that waits or is made again.
    pub waiting: Option<Waiting>,
    /// The line of the call that waits, if calls are traced.
    pub trace: Option<Trace>,
    /// The thread, until it ends.
    pub thread: Option<M::Thread>,
    /// Memory of the process, until it ends or while it has lent it.
    pub space: Option<Space<M>>,
    /// The process that has lent it the memory, and waits for it.
    pub lender: Option<u32>,
    /// The process has started a program since it was made.
    pub has_executed: bool,
    /// Descriptors of the process.
    pub descriptors: Descriptors,
    /// The directory from which relative paths lead.
    pub directory: NodeId,
    /// Permissions that new files do not get.
    pub mask: u32,
    /// Where the heap begins.
    pub heap: u64,
    /// Where the heap ends, to the byte.
    pub heap_end: u64,
    /// Signals.
    pub signals: Signals,
    /// When it gets a signal.
    pub timer: Option<Timer>,
    /// The name of its program.
    pub name: [u8; 16],
    /// Address of a word that becomes zero when the thread ends.
    pub clear_at_end: u64,
    /// Path of its program.
    pub program: Vec<u8>,
}

impl<M: Machine> Process<M> {
    /// Returns a process of a group and a session of its own, which runs a program in the root.
    pub fn new(id: u32, thread: M::Thread, space: Space<M>, descriptors: Descriptors) -> Process<M> {
        Process {
            id,
            parent: 0,
            group: id,
            session: id,
            state: State::Runs,
            is_stopped: false,
            is_continued: false,
            stopped_at: None,
            news: None,
            end_signal: 0,
            waiting: None,
            trace: None,
            thread: Some(thread),
            space: Some(space),
            lender: None,
            has_executed: true,
            descriptors,
            directory: Tree::ROOT,
            mask: 0o22,
            heap: 0,
            heap_end: 0,
            signals: Signals::default(),
            timer: None,
            name: [0; 16],
            clear_at_end: 0,
            program: Vec::new(),
        }
    }

    /// Returns the memory of a process that runs.
    ///
    /// # Panics
    /// Panics if the process has ended or lent its memory: it makes no calls then.
    pub fn space(&mut self) -> &mut Space<M> {
        match &mut self.space {
            Some(space) => space,
            None => panic!("a process without memory makes no calls"),
        }
    }

    /// Sets the name, of which 15 bytes count.
    pub fn set_name(&mut self, name: &[u8]) {
        let length = name.len().min(15);
        self.name = [0; 16];
        self.name[..length].copy_from_slice(&name[..length]);
    }

    /// Sets the path of its program, and the name.
    pub fn set_program(&mut self, path: &[u8]) {
        self.set_name(path.rsplit(|byte| *byte == b'/').next().unwrap_or(path));
        self.program = path.to_vec();
    }

    /// Returns whether the process has ended.
    pub const fn has_ended(&self) -> bool {
        matches!(self.state, State::Ended(_))
    }
}

/// All processes of an instance, but the one whose call is being served.
#[derive(Debug)]
pub struct Processes<M: Machine> {
    all: BTreeMap<u32, Option<Box<Process<M>>>>,
    /// The number that was given away last.
    last: u32,
}

impl<M: Machine> Processes<M> {
    /// The highest number of a process.
    const MAX: u32 = 32_767;
    /// The most processes at once.
    const MAX_COUNT: usize = 4096;

    /// Returns no processes.
    pub const fn new() -> Processes<M> {
        Processes { all: BTreeMap::new(), last: FIRST }
    }

    /// Returns the next free number, which neither a process nor a group nor a session has, if there may be a further
    /// process. `own` is the one whose call is being served.
    pub fn next_id(&mut self, own: &Process<M>) -> Option<u32> {
        if self.all.len() >= Processes::<M>::MAX_COUNT {
            return None;
        }
        let candidates = (self.last + 1..=Processes::<M>::MAX).chain(2..=self.last);
        let id = candidates.into_iter().find(|id| {
            let names = |process: &Process<M>| process.group == *id || process.session == *id;
            !self.all.contains_key(id) && !self.iter().any(names) && !names(own)
        })?;
        self.last = id;
        Some(id)
    }

    /// Takes a process to serve its call. Its number stays its own.
    pub fn take(&mut self, id: u32) -> Option<Box<Process<M>>> {
        self.all.get_mut(&id)?.take()
    }

    /// Puts a process back, or adds it.
    pub fn put(&mut self, process: Box<Process<M>>) {
        match self.all.get_mut(&process.id) {
            Some(place) => *place = Some(process),
            None => {
                self.all.insert(process.id, Some(process));
            }
        }
    }

    /// Removes the number of a process that was taken, or the process.
    pub fn remove(&mut self, id: u32) {
        self.all.remove(&id);
    }

    /// Returns a process.
    pub fn get(&mut self, id: u32) -> Option<&mut Process<M>> {
        self.all.get_mut(&id)?.as_deref_mut()
    }

    /// Returns a process, to be read.
    pub fn find(&self, id: u32) -> Option<&Process<M>> {
        self.all.get(&id)?.as_deref()
    }

    /// Returns all processes.
    pub fn iter(&self) -> impl Iterator<Item = &Process<M>> {
        self.all.values().filter_map(Option::as_deref)
    }

    /// Returns all processes, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Process<M>> {
        self.all.values_mut().filter_map(Option::as_deref_mut)
    }

    /// Returns the number of processes, with the one whose call is being served.
    pub fn count(&self) -> usize {
        self.all.len()
    }
}

impl<M: Machine> Default for Processes<M> {
    fn default() -> Processes<M> {
        Processes::new()
    }
}
