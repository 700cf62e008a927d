//! The system as the shell uses it, behind a trait, so that the shell can be tested without one.
//!
//! `live.rs` implements it with the servers and the kernel; the tests use a fake system.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use tench_abi::Powers;
use tench_abi::object::{IrqOffIntervals, Statistic};
use tench_mem_interface::{Account, Extent, Totals};
use tench_procs_interface::Capability;
use tench_procs_interface::protocol::{FaultKind, State};
use tench_reserve_interface::Reservation;

use crate::parse::Standard;

pub use tench::io::BROKEN;

/// Why the system refused a request, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemError(pub String);

impl<E: core::error::Error> From<E> for SystemError {
    fn from(error: E) -> SystemError {
        SystemError(error.to_string())
    }
}

/// Input from the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// A byte.
    Byte(u8),
    /// Ctrl-C, from a terminal that edits lines itself.
    Interrupted,
    /// The end of the input.
    End,
}

/// Ownership of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terminal {
    /// The shell's, which edits lines on it.
    Ours,
    /// Another process's; it edits lines itself.
    Others,
    /// There is no terminal; input comes from elsewhere.
    None,
}

/// End of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The process has ended by itself, with this code.
    Exited(i32),
    /// The process was killed.
    Killed,
    /// A fault ended the process.
    Crashed(FaultKind),
}

impl End {
    /// Returns the end that a state and its detail describe, if the process has ended.
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
    /// Number of the process.
    pub pid: u64,
    /// Number of its parent.
    pub parent: u64,
    /// State of the process.
    pub state: State,
    /// Exit code or kind of fault, in the states that have one.
    pub detail: u64,
    /// Priority of its main thread.
    pub priority: u64,
    /// Processor time of its main thread, in ticks.
    pub ticks: u64,
    /// Size of its program in bytes.
    pub size: u64,
    /// Path or name by which it was started.
    pub name: String,
}

impl Process {
    /// Returns what follows the last `/` of its name.
    pub fn base_name(&self) -> &str {
        base_name(&self.name)
    }

    /// Returns how it ended, if it has.
    pub fn end(&self) -> Option<End> {
        End::of(self.state, self.detail)
    }
}

/// Returns what follows the last `/` of a path.
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

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Name of the entry in the directory.
    pub name: String,
    /// Size in bytes; 0 for a directory.
    pub size: u64,
    /// Set if it is a directory.
    pub is_directory: bool,
}

/// An end of a byte stream that the shell holds, by its name in [`System`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream(pub u32);

/// A person's settings for a process that is to be started. Missing ones are taken from the system description, and
/// otherwise are the defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Memory quota in bytes.
    pub quota: Option<u64>,
    /// Number of slots for capabilities.
    pub slots: Option<u64>,
    /// Priority of its main thread.
    pub priority: Option<u8>,
    /// Highest priority that it may assign.
    pub ceiling: Option<u8>,
    /// Powers that the shell passes on.
    pub powers: Powers,
}

/// Mode in which a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Reading.
    Read,
    /// Writing from its beginning; its old contents are dropped.
    Replace,
    /// Writing at its end.
    Append,
}

/// Why writing to a stream failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unwritten {
    /// Nobody reads any more.
    Broken,
    /// Any other refusal.
    Refused(SystemError),
}

/// Result of waiting for processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waited {
    /// All have ended, in this way; `None` for those that ended so long ago that their records are gone.
    Ended(Vec<Option<End>>),
    /// All have ended, after Ctrl-C was typed: they were killed, or ended when they were told to.
    EndedEarly(Vec<Option<End>>),
    /// Ctrl-C was typed, and no process was killed.
    Interrupted,
    /// Ctrl-Z was typed, and all were suspended.
    Suspended,
}

/// Effect of keys while processes are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnKey {
    /// Ctrl-C kills the processes, or tells those that want to end by themselves; Ctrl-Z suspends them: they are in the
    /// foreground.
    Handle,
    /// Ctrl-C ends the waiting.
    StopWaiting,
}

/// The system around the shell.
pub trait System {
    /// Writes on the terminal.
    fn write(&mut self, text: &[u8]);
    /// Returns whether the terminal's output, by whatever process, is at the start of a line.
    fn is_at_line_start(&mut self) -> bool;
    /// Waits for input.
    fn read(&mut self) -> Input;
    /// Waits for input until a time, in ticks since the machine was started.
    fn read_until(&mut self, deadline: u64) -> Option<Input>;
    /// Takes the terminal, to edit lines on it. Returns who owns it then.
    fn take_terminal(&mut self) -> Terminal;

    /// Returns the number of the shell's own process.
    fn own_pid(&self) -> u64;
    /// Returns a process of any core, also one that has ended recently.
    fn process(&mut self, pid: u64) -> Result<Process, SystemError>;
    /// Returns the process with the next higher number; those of other cores follow those of the first.
    fn next_process(&mut self, after: u64) -> Option<Process>;
    /// Returns how many bytes of memory a process of any core uses, if it has an account.
    fn memory_of(&mut self, pid: u64) -> Option<u64>;
    /// Returns the powers of the shell's capabilities, which it can pass on.
    fn powers(&self) -> Powers;
    /// Prepares a process of a program, with arguments, on a core; the first word is its name. It has the shell's
    /// input, output and errors unless others are given. Returns `None` if there is no such program.
    fn prepare(&mut self, core: u64, words: &[String], settings: Settings) -> Result<Option<u64>, SystemError>;
    /// Returns the core on which the fewest processes run.
    fn least_loaded(&mut self) -> Result<u64, SystemError>;
    /// Gives a prepared process an end of a stream. The shell keeps its own.
    fn give(&mut self, pid: u64, standard: Standard, stream: Stream) -> Result<(), SystemError>;
    /// Starts a prepared process. If this is refused, the process is discarded.
    fn start(&mut self, pid: u64) -> Result<(), SystemError>;
    /// Discards a prepared process.
    fn abandon(&mut self, pid: u64);
    /// Gives these processes the terminal, and sets the effect of its keys on them, until the next `wait` has returned.
    /// `reader`, which is one of them or the shell, gets what is typed.
    fn set_foreground(&mut self, pids: &[u64], reader: u64, on_key: OnKey);
    /// Lends the terminal to the process that reads from it in the foreground that was set.
    fn lend(&mut self, pid: u64) -> Result<(), SystemError>;
    /// Waits until processes have ended, in the foreground that was set.
    fn wait(&mut self, pids: &[u64]) -> Result<Waited, SystemError>;
    /// Kills a process.
    fn kill(&mut self, pid: u64) -> Result<(), SystemError>;
    /// Suspends a process.
    fn suspend(&mut self, pid: u64) -> Result<(), SystemError>;
    /// Resumes a suspended process.
    fn resume(&mut self, pid: u64) -> Result<(), SystemError>;
    /// Returns all capabilities of a process.
    fn capabilities(&mut self, pid: u64) -> Result<Vec<Capability>, SystemError>;

    /// Returns the sums over all memory.
    fn memory(&mut self) -> Result<Totals, SystemError>;
    /// Returns the first few extents from a physical address on, and none after the last.
    fn extents(&mut self, from: u64) -> Result<Vec<Extent>, SystemError>;
    /// Returns the account with the next higher number.
    fn next_account(&mut self, after: u64) -> Option<Account>;
    /// Returns the registered name after this one in alphabetical order.
    fn next_name(&mut self, after: &str) -> Option<Name>;

    /// Returns the processor reservation with the next higher number.
    fn next_reservation(&mut self, after: u64) -> Result<Option<Reservation>, SystemError>;

    /// Returns the entries of a directory.
    fn entries(&mut self, directory: &str) -> Result<Vec<Entry>, SystemError>;
    /// Returns the entry at a path.
    fn entry(&mut self, path: &str) -> Result<Entry, SystemError>;
    /// Makes a directory.
    fn make_directory(&mut self, path: &str) -> Result<(), SystemError>;
    /// Removes a file or an empty directory.
    fn remove(&mut self, path: &str) -> Result<(), SystemError>;
    /// Moves a file or directory to another path.
    fn rename(&mut self, from: &str, to: &str) -> Result<(), SystemError>;

    /// Makes a pipe. Returns its end for reading, and its end for writing.
    fn pipe(&mut self) -> Result<(Stream, Stream), SystemError>;
    /// Opens a file.
    fn open(&mut self, path: &str, how: How) -> Result<Stream, SystemError>;
    /// Returns the next bytes of a stream; none at its end.
    fn read_stream(&mut self, stream: Stream) -> Result<Vec<u8>, SystemError>;
    /// Writes all bytes to a stream.
    fn write_stream(&mut self, stream: Stream, bytes: &[u8]) -> Result<(), Unwritten>;
    /// Closes an end of a stream.
    fn close(&mut self, stream: Stream);

    /// Returns the ticks since the machine was started.
    fn ticks(&mut self) -> u64;
    /// Returns the ticks in a second.
    fn ticks_per_second(&mut self) -> u64;
    /// Returns the wall-clock time: since the beginning of 1970, in UTC.
    fn wall_clock(&mut self) -> Result<Duration, SystemError>;
    /// Returns how many instructions this processor has executed.
    fn instructions(&mut self) -> u64;
    /// Returns a statistic of the kernel.
    fn statistic(&mut self, which: Statistic) -> Result<u64, SystemError>;
    /// Returns the interrupts-off intervals on a path of the kernel.
    fn irq_off_intervals(&mut self, path: u64) -> Result<IrqOffIntervals, SystemError>;
    /// Switches the machine off once everything written is on the terminal. Returns only if that is refused.
    fn power_off(&mut self, status: u8) -> SystemError;
}
