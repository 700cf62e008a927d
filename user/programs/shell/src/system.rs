//! What the shell asks of the system, so that it can be tested without one.
//!
//! `live.rs` answers with the servers and the kernel; the tests answer with a made-up system.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use tench_abi::object::Statistic;
use tench_mem_client::{Account, Extent, Totals};
use tench_procs_client::Capability;
use tench_procs_client::protocol::{FaultKind, State};

/// Why the system did not do what it was asked, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub String);

impl<E: core::error::Error> From<E> for Refusal {
    fn from(error: E) -> Refusal {
        Refusal(error.to_string())
    }
}

/// What the terminal has to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// A byte.
    Byte(u8),
    /// Ctrl-C, from a terminal that edits lines itself.
    Interrupted,
    /// There is no more.
    End,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself.
    Exited(i32),
    /// Somebody killed it.
    Killed,
    /// A fault.
    Crashed(FaultKind),
}

impl End {
    /// What a state and its detail say about the end, if there was one.
    pub fn of(state: State, detail: u64) -> Option<End> {
        match state {
            State::Preparing | State::Running | State::Suspended => None,
            State::Exited => Some(End::Exited(detail as u32 as i32)),
            State::Killed => Some(End::Killed),
            State::Faulted => Some(End::Crashed(FaultKind::from_code(detail).unwrap_or(FaultKind::Other))),
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Exited(code) => write!(f, "exited with {code}"),
            End::Killed => f.write_str("killed"),
            End::Crashed(kind) => write!(f, "crashed: {kind}"),
        }
    }
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its identifier.
    pub pid: u64,
    /// The process that started it.
    pub parent: u64,
    /// What it does.
    pub state: State,
    /// What belongs to the state.
    pub detail: u64,
    /// Priority of its main thread.
    pub priority: u64,
    /// Processor time of its main thread.
    pub ticks: u64,
    /// Bytes of its program.
    pub size: u64,
    /// Path or name by which it was started.
    pub name: String,
}

impl Process {
    /// What follows the last `/` of its name.
    pub fn base_name(&self) -> &str {
        base_name(&self.name)
    }

    /// How it ended, if it has.
    pub fn end(&self) -> Option<End> {
        End::of(self.state, self.detail)
    }
}

/// What follows the last `/` of a path.
pub fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A registered name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The process that registered it.
    pub pid: u64,
    /// The name.
    pub name: String,
}

/// A file of the boot archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Path without a leading `/`.
    pub path: String,
    /// Bytes.
    pub size: u64,
}

/// How waiting for a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// The process ended.
    Ended(End),
    /// Ctrl-C was typed.
    Interrupted,
}

/// What Ctrl-C does while a process is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnInterrupt {
    /// Kills the process, which has the terminal meanwhile.
    Kill,
    /// Ends the waiting.
    StopWaiting,
}

/// The system around the shell.
pub trait System {
    /// Writes on the terminal.
    fn write(&mut self, text: &[u8]);
    /// Whether the last thing on the terminal, whoever wrote it, is the start of a line.
    fn is_at_line_start(&mut self) -> bool;
    /// Waits for input.
    fn read(&mut self) -> Input;
    /// Takes the terminal, to edit lines on it. Answers false if it belongs to another process, and edits itself.
    fn take_terminal(&mut self) -> bool;

    /// The shell's own process.
    fn own_pid(&self) -> u64;
    /// A process, also one that has ended not long ago.
    fn process(&mut self, pid: u64) -> Result<Process, Refusal>;
    /// The process with the next higher identifier.
    fn next_process(&mut self, after: u64) -> Option<Process>;
    /// Starts a program with arguments; the first word is its name. It may have `quota` bytes of memory, or as much as
    /// the shell. Answers `None` if there is no such program.
    fn spawn(&mut self, words: &[String], quota: Option<u64>) -> Result<Option<u64>, Refusal>;
    /// Waits until a process ends.
    fn wait(&mut self, pid: u64, on_interrupt: OnInterrupt) -> Result<Waited, Refusal>;
    /// Kills a process.
    fn kill(&mut self, pid: u64) -> Result<(), Refusal>;
    /// Stops a process's main thread.
    fn suspend(&mut self, pid: u64) -> Result<(), Refusal>;
    /// Lets a suspended process run.
    fn resume(&mut self, pid: u64) -> Result<(), Refusal>;
    /// All capabilities of a process.
    fn capabilities(&mut self, pid: u64) -> Result<Vec<Capability>, Refusal>;

    /// What there is of memory.
    fn memory(&mut self) -> Result<Totals, Refusal>;
    /// What lies from a physical address on: the first few extents, none after the last.
    fn extents(&mut self, from: u64) -> Result<Vec<Extent>, Refusal>;
    /// The account with the next higher number.
    fn next_account(&mut self, after: u64) -> Option<Account>;
    /// The registered name after this one in alphabetical order.
    fn next_name(&mut self, after: &str) -> Option<Name>;

    /// A file of the boot archive by its number.
    fn file(&mut self, index: u64) -> Option<File>;
    /// The next bytes of a file of the boot archive from an offset on; none at its end.
    fn read_file(&mut self, path: &str, offset: u64) -> Result<Vec<u8>, Refusal>;

    /// Ticks since the machine was started.
    fn ticks(&mut self) -> u64;
    /// Ticks in a second.
    fn ticks_per_second(&mut self) -> u64;
    /// Instructions that this processor has executed.
    fn instructions(&mut self) -> u64;
    /// A statistic of the kernel.
    fn statistic(&mut self, which: Statistic) -> Result<u64, Refusal>;
    /// Switches the machine off once everything written is on the terminal. Comes back only if that is refused.
    fn power_off(&mut self, status: u8) -> Refusal;
}
