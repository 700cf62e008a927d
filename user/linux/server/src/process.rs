//! Processes.

mod receiving;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use tench_linux_files::{NodeId, Time, Tree};

use crate::Machine;
use crate::descriptors::Descriptors;
use crate::exec::Layout;
use crate::identity::Identity;
use crate::limits::Limits;
use crate::running::{RunningClock, RunningTimers};
use crate::signals::{Info, Signals};
use crate::spaces::SpaceId;
use crate::specials::{self, SHORTEST};
use crate::terminals::TerminalId;
use crate::thread::{State, Thread};

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

impl Timer {
    /// Returns when the process gets the next signal, now that it gets one.
    pub(crate) fn after(self, now: Duration) -> Option<Timer> {
        (!self.interval.is_zero()).then(|| {
            // Times that have passed meanwhile do not come later.
            let missed = (now.saturating_sub(self.deadline).as_nanos() / self.interval.as_nanos()) as u32;
            let next = self.deadline + self.interval * missed.saturating_add(1);
            Timer { deadline: next.max(now + SHORTEST), ..self }
        })
    }
}

/// A timer that sends the process a signal.
#[derive(Clone, Copy, Debug)]
pub struct SignalTimer {
    /// Number of the timer among those of all processes.
    pub name: u32,
    /// The CPU-time clock that it counts, if it does.
    pub clock: Option<RunningClock>,
    /// When it is due; with such a clock, at which reading of it.
    pub timer: specials::Timer,
    /// The signal, if it sends one.
    pub signal: Option<Info>,
    /// The thread that gets it; without one, the process does.
    pub thread: Option<u32>,
    /// How often it was due while its last signal had not been taken.
    pub overrun: u64,
}

/// Timers of all processes, by the numbers that alarms have.
#[derive(Debug, Default)]
pub struct TimerNames {
    /// The process of each, and its number there.
    all: BTreeMap<u32, (u32, u32)>,
    next: u32,
}

impl TimerNames {
    /// Adds a process's timer. Returns its number among all.
    pub fn add(&mut self, process: u32, id: u32) -> u32 {
        while self.all.contains_key(&self.next) {
            self.next = self.next.wrapping_add(1);
        }
        let name = self.next;
        self.next = self.next.wrapping_add(1);
        self.all.insert(name, (process, id));
        name
    }

    /// Removes a timer.
    pub fn remove(&mut self, name: u32) {
        self.all.remove(&name);
    }

    /// Returns the process of a timer, and its number there.
    pub fn get(&self, name: u32) -> Option<(u32, u32)> {
        self.all.get(&name).copied()
    }
}

/// A process.
#[derive(Debug)]
pub struct Process<M: Machine> {
    /// Number of the process.
    pub id: u32,
    /// Number of its parent; 0 for the first process.
    pub parent: u32,
    /// The thread of the parent that made the process. Kept up to date only if some process wants a signal for its end.
    pub made_by: u32,
    /// Number of its group.
    pub group: u32,
    /// Number of its session.
    pub session: u32,
    /// Set if its parent has ended, and the first process is its parent instead.
    pub is_orphan: bool,
    /// Name of its controlling terminal, which is that of its session.
    pub terminal: Option<TerminalId>,
    /// For the leader of a session whose terminal has hung up: the group that used it. It gets signals when the leader
    /// ends.
    pub abandoned_group: Option<u32>,
    /// How it has ended, if it has.
    pub ended: Option<Status>,
    /// A signal has stopped it. Its calls may wait all the same.
    pub is_stopped: bool,
    /// The signal that has stopped it last.
    pub stopped_by: u32,
    /// A signal lets it go on.
    pub is_continued: bool,
    /// News that the parent can learn.
    pub news: Option<News>,
    /// The process whose thread has traced it, if that learns of its end before the parent does.
    pub owed_to: Option<u32>,
    /// The signal that its parent gets when it ends; 0 for none.
    pub end_signal: u32,
    /// The threads: the first has the process's number, and stays as long as the process; the others follow by their
    /// numbers. A process that has ended has none.
    pub threads: Vec<Box<Thread<M>>>,
    /// Index of the thread that is being served.
    pub present: usize,
    /// Memory of the process, until it ends.
    pub space: SpaceId,
    /// How many programs the process has started since it was made.
    pub programs: u64,
    /// How programs run, as `personality` has it.
    pub personality: u32,
    /// Descriptors of the process.
    pub descriptors: Descriptors,
    /// The directory from which relative paths lead.
    pub directory: NodeId,
    /// The root directory: paths that begin with a slash start here, and `..` does not lead out of it.
    pub root: NodeId,
    /// Permissions that new files do not get.
    pub mask: u32,
    /// The memory may be looked into by the process's user.
    pub is_dumpable: bool,
    /// The identity of its first thread, once the process has ended.
    pub last_identity: Identity,
    /// Signals.
    pub signals: Signals,
    /// When it gets a signal.
    pub timer: Option<Timer>,
    /// All other timers.
    pub timers: BTreeMap<u32, SignalTimer>,
    /// Number of the next timer.
    pub next_timer: u32,
    /// Timers that count how long it runs.
    pub running: RunningTimers,
    /// Limits of what it may use.
    pub limits: Limits,
    /// How long those of its threads have run that have ended.
    pub used: Duration,
    /// How long those of its children, and theirs, have run of whose end it has learnt.
    pub children_used: Duration,
    /// The name that its first thread had at the process's end.
    pub last_name: [u8; 16],
    /// Path of its program.
    pub program: Vec<u8>,
    /// Where the parts of its program are.
    pub layout: Layout,
    /// When it was made.
    pub started: Time,
    /// How often numbers had begun anew when it was made: who has had its number before has another one.
    pub round: u16,
    /// How much sooner it is to be ended than others if there is no memory. Nothing depends on it.
    pub score_adjustment: i16,
    /// How little it may say itself. Less needs the capability for it.
    pub least_adjustment: i16,
}

impl<M: Machine> Process<M> {
    /// Returns a process of a group and a session of its own, which runs a program in the root.
    pub fn new(thread: Thread<M>, space: SpaceId, descriptors: Descriptors) -> Process<M> {
        let id = thread.id;
        Process {
            id,
            parent: 0,
            made_by: 0,
            group: id,
            session: id,
            terminal: None,
            abandoned_group: None,
            ended: None,
            is_stopped: false,
            stopped_by: 0,
            is_continued: false,
            is_orphan: false,
            news: None,
            owed_to: None,
            end_signal: 0,
            threads: vec![Box::new(thread)],
            present: 0,
            space,
            programs: 1,
            personality: 0,
            descriptors,
            directory: Tree::ROOT,
            root: Tree::ROOT,
            mask: 0o22,
            is_dumpable: true,
            last_identity: Identity::SUPER_USER,
            signals: Signals::default(),
            timer: None,
            timers: BTreeMap::new(),
            next_timer: 0,
            running: RunningTimers::default(),
            limits: Limits::default(),
            used: Duration::ZERO,
            children_used: Duration::ZERO,
            last_name: [0; 16],
            program: Vec::new(),
            layout: Layout::default(),
            started: Time::default(),
            round: 0,
            score_adjustment: 0,
            least_adjustment: 0,
        }
    }

    /// Returns the thread that is being served.
    pub fn thread(&self) -> &Thread<M> {
        &self.threads[self.present]
    }

    /// Returns the thread that is being served, to be changed.
    pub fn thread_mut(&mut self) -> &mut Thread<M> {
        &mut self.threads[self.present]
    }

    /// Returns a thread, if it exists.
    pub fn thread_of(&self, thread: u32) -> Option<&Thread<M>> {
        self.index_of(thread).ok().map(|index| &*self.threads[index])
    }

    /// Returns the name of a thread; of one that does not exist any more, the last name of the process.
    pub fn name_of(&self, thread: u32) -> &[u8; 16] {
        self.thread_of(thread).map_or(&self.last_name, |thread| &thread.name)
    }

    /// Returns the identity of the process for others: that which its first thread has or had.
    pub fn identity(&self) -> &Identity {
        self.threads.first().map_or(&self.last_identity, |thread| &thread.identity)
    }

    /// Returns the index of a thread, or where one with this number belongs.
    ///
    /// # Errors
    /// That there is no thread with this number.
    pub fn index_of(&self, thread: u32) -> Result<usize, usize> {
        if thread == self.id {
            return if self.threads.is_empty() { Err(0) } else { Ok(0) };
        }
        let rest = self.threads.get(1..).unwrap_or(&[]);
        rest.binary_search_by_key(&thread, |thread| thread.id).map(|at| at + 1).map_err(|at| at + 1)
    }

    /// Returns the number of threads that have not ended.
    pub fn living(&self) -> usize {
        self.threads.iter().filter(|thread| thread.state != State::Ended).count()
    }

    /// Sets the path of its program, and the name.
    pub fn set_program(&mut self, path: &[u8]) {
        self.thread_mut().set_name(path.rsplit(|byte| *byte == b'/').next().unwrap_or(path));
        self.program = path.to_vec();
    }

    /// Returns whether the process has ended.
    pub const fn has_ended(&self) -> bool {
        self.ended.is_some()
    }
}

/// Returns the name without the zeros behind it.
pub(crate) fn trimmed(name: &[u8; 16]) -> &[u8] {
    name.split(|byte| *byte == 0).next().unwrap_or(&[])
}
