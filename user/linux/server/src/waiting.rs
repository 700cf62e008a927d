//! Waits of processes.
//!
//! A call that has to wait is made again when what it waits for may have happened. A process that waits has its
//! [`Waiting`], in which a call keeps what it must know then.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use tench_linux_files::NodeId;

use crate::descriptors::DescriptionId;

/// Something for which processes wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// A pipe has bytes, or nobody writes any more.
    Readable(NodeId),
    /// A pipe has room, or nobody reads any more.
    Writable(NodeId),
    /// A pipe is opened.
    Opened(NodeId),
    /// The terminal has input.
    Terminal,
    /// The terminal's output goes on.
    TerminalOutput,
    /// A child of a process has ended, stopped or gone on.
    Children(u32),
    /// A process runs another program, or has ended.
    Program(u32),
    /// A signal comes for a process.
    Signal(u32),
}

/// How a signal ends a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// With `EINTR`, unless the handler wants interrupted calls to be made again.
    Restartable,
    /// With `EINTR`.
    Final,
    /// Not at all, unless the process ends.
    Never,
}

/// A call that waits.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// Number of the call.
    pub number: u64,
    /// Arguments of the call.
    pub arguments: [u64; 6],
    /// Events that may end the wait.
    pub keys: Vec<Key>,
    /// When the wait ends at the latest: time since the machine started.
    pub deadline: Option<Duration>,
    /// How a signal ends it.
    pub interruption: Interruption,
    /// How much of what was asked for has been done.
    pub done: u64,
    /// Where to write how much time was left if a signal ends the wait; 0 for nowhere.
    pub time_left: u64,
    /// An open file that is not yet anybody's.
    pub opening: Option<(DescriptionId, u32)>,
}

/// Why a process is woken by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Alarm {
    /// The process's call waits no longer.
    Wait,
    /// The process has asked for a signal.
    Signal,
}

/// Processes that wait, what for, and whose wait is over.
#[derive(Debug, Default)]
pub struct Waiters {
    by_key: BTreeSet<(Key, u32)>,
    by_time: BTreeSet<(Duration, Alarm, u32)>,
    /// Processes whose calls are to be made again, in order.
    ready: VecDeque<u32>,
}

impl Waiters {
    /// Adds a process for everything that it waits for.
    pub fn add(&mut self, process: u32, waiting: &Waiting) {
        self.by_key.extend(waiting.keys.iter().map(|key| (*key, process)));
        self.by_time.extend(waiting.deadline.map(|deadline| (deadline, Alarm::Wait, process)));
    }

    /// Removes a process from everything that it waits for.
    pub fn remove(&mut self, process: u32, waiting: &Waiting) {
        for key in &waiting.keys {
            self.by_key.remove(&(*key, process));
        }
        if let Some(deadline) = waiting.deadline {
            self.by_time.remove(&(deadline, Alarm::Wait, process));
        }
    }

    /// Sets when a process is to get a signal, in place of when that was so far.
    pub fn set_signal(&mut self, process: u32, old: Option<Duration>, new: Option<Duration>) {
        if let Some(old) = old {
            self.by_time.remove(&(old, Alarm::Signal, process));
        }
        self.by_time.extend(new.map(|new| (new, Alarm::Signal, process)));
    }

    /// Ends the wait of all who wait for something.
    pub fn wake(&mut self, key: Key) {
        while let Some((found, process)) = self.by_key.range((key, 0)..=(key, u32::MAX)).next().copied() {
            self.by_key.remove(&(found, process));
            self.ready.push_back(process);
        }
    }

    /// Returns when the next wait ends.
    pub fn next_deadline(&self) -> Option<Duration> {
        self.by_time.first().map(|(time, ..)| *time)
    }

    /// Takes a process that is to be woken by now.
    pub fn take_due(&mut self, now: Duration) -> Option<(Alarm, u32)> {
        let (time, alarm, process) = *self.by_time.first()?;
        if time > now {
            return None;
        }
        self.by_time.remove(&(time, alarm, process));
        Some((alarm, process))
    }

    /// Adds a process whose call is to be made again.
    pub fn make_ready(&mut self, process: u32) {
        self.ready.push_back(process);
    }

    /// Takes a process whose call is to be made again.
    pub fn take_ready(&mut self) -> Option<u32> {
        self.ready.pop_front()
    }

    /// Returns whether nobody waits for anything, for tests. Those whose calls were to be made again may have ended.
    pub fn is_over(&self) -> bool {
        self.by_key.is_empty() && self.by_time.is_empty()
    }
}
