//! Tracing of threads by others: `ptrace`.
//!
//! ```text
//!   call ──▶ [Entry] ──▶ the call ──▶ [Event] ──▶ [Exit] ──▶ [Signal]… ──▶ [Trap] ──▶ the thread runs
//! ```
//! At each point in brackets a traced thread may stop. Then its tracer learns of it by waiting, reads and writes its
//! registers and memory, and lets it go on to the next point.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use tench_linux_calls::numbers::trace::{event, option};

use crate::process::Status;
use crate::signals::{Info, number};
use crate::thread::{Registers, Rest};

/// How a thread is traced.
#[derive(Clone, Debug)]
pub struct Tracing {
    /// The thread that traces it.
    pub tracer: u32,
    /// The process of that thread.
    pub tracer_process: u32,
    /// The tracer has seized the thread (`PTRACE_SEIZE`): it can tell kinds of stops apart, and interrupt the thread.
    pub is_seized: bool,
    /// Events of which the tracer wants to learn, as `PTRACE_SETOPTIONS` has it.
    pub options: u32,
    /// The thread stops at its next call, or at the end of the present one.
    pub watches_calls: bool,
    /// The thread stops after its next instruction or call, and before the first instruction of a handler.
    pub steps: bool,
    /// The last step was a call. Linux then ends the next one, if it follows at once, before its instruction.
    pub has_stepped_over_call: bool,
    /// The thread stops when it would run next.
    pub is_interrupted: bool,
    /// The thread stays stopped with its process, and stops anew when that goes on.
    pub listens: bool,
    /// A number about the last event: that of a new process or thread, or how one ends.
    pub message: u64,
    /// An event of the present call, of which the tracer has not learnt yet.
    pub event: Option<u32>,
    /// Number of the present call, if the thread has stopped before it.
    pub call: Option<u32>,
    /// Where the thread has stopped, if it has. A stop takes no further memory: many may come at once.
    pub stop: Option<Stop>,
    /// How the thread is to go on.
    pub resume: Option<Resume>,
}

/// A stop of a thread.
#[derive(Clone, Debug)]
pub struct Stop {
    /// Where it is.
    pub point: Point,
    /// The thread's registers.
    pub registers: Registers,
    /// The reason why the thread does not run.
    pub rest: Rest,
    /// Number of the call, at or within one: what is in `x8` does not change it any more.
    pub call: u32,
    /// The tracer has not learnt of it yet.
    pub is_news: bool,
}

/// A point at which a thread stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Before a call.
    Entry,
    /// After a call.
    Exit,
    /// Before a signal is delivered.
    Signal(Info),
    /// Within a call, with the number of an event, and what follows.
    Event(u32, After),
    /// Before the thread goes on, because its tracer has interrupted it or it begins.
    Trap,
    /// Before the first instruction of a handler, since it makes single steps.
    Handler,
    /// With its process, which a signal has stopped.
    Stopped(u32),
}

/// The step that follows an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// The call is over.
    Return,
    /// The call waits.
    Wait,
    /// The thread ends.
    EndThread(Status),
    /// The process ends.
    EndProcess(Status),
}

/// How a thread goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resume {
    /// The signal that it gets; 0 for none.
    pub signal: u32,
    /// Nobody traces it any more.
    pub is_detached: bool,
}

impl Tracing {
    /// Returns the beginning of tracing.
    pub const fn new(tracer: u32, tracer_process: u32, is_seized: bool, options: u32) -> Tracing {
        Tracing {
            tracer,
            tracer_process,
            is_seized,
            options,
            watches_calls: false,
            steps: false,
            has_stepped_over_call: false,
            is_interrupted: false,
            listens: false,
            message: 0,
            event: None,
            call: None,
            stop: None,
            resume: None,
        }
    }

    /// Returns how a thread is traced that a traced one has made.
    pub const fn inherited(&self) -> Tracing {
        let mut new = Tracing::new(self.tracer, self.tracer_process, self.is_seized, self.options);
        new.is_interrupted = self.is_seized;
        new
    }

    /// Returns whether the tracer wants to learn of an event.
    pub const fn wants(&self, event: u32) -> bool {
        self.options & 1 << event != 0
    }

    /// Returns what the tracer learns of a stop, as `WSTOPSIG` has it: a signal, with the number of an event above it.
    pub const fn code(&self, point: Point) -> u32 {
        let call = if self.options & option::MARK_CALLS != 0 { 0x80 } else { 0 };
        let trap = event::STOP << 8;
        match point {
            Point::Entry | Point::Exit => number::TRAP | call,
            Point::Signal(info) => info.signal,
            Point::Event(event, _) => number::TRAP | event << 8,
            Point::Handler => number::TRAP,
            Point::Trap => number::TRAP | trap,
            Point::Stopped(signal) if self.is_seized => signal | trap,
            Point::Stopped(signal) => signal,
        }
    }
}

/// A traced thread that has ended while its process goes on, of which its tracer has not learnt yet.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// The tracer's process.
    pub tracer: u32,
    /// Group of the thread's process.
    pub group: u32,
    /// The user.
    pub user: u32,
    /// How it has ended.
    pub status: Status,
}

/// The most threads that have ended without their tracers having learnt of it, before there are no new ones.
pub const MOST_ENDED: usize = 1024;

/// Tracing in an instance, beside what each traced thread has.
#[derive(Debug, Default)]
pub struct Traces {
    /// Some thread is traced, or was.
    pub is_used: bool,
    /// Threads that have ended, by their numbers.
    pub ended: BTreeMap<u32, Ended>,
    /// Ended processes of which their tracers have learnt, so that their parents may.
    pub paid: Vec<u32>,
    /// Threads that are to go on, or whose tracer has asked for a stop.
    pub touched: VecDeque<u32>,
}
