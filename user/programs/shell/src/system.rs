//! What the shell asks of the system, so that it can be tested without one.
//!
//! `live.rs` answers with the servers and the kernel; the tests answer with a made-up system.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use tench_abi::Powers;
use tench_abi::object::{Statistic, Stretches};
use tench_mem_client::{Account, Extent, Totals};
use tench_procs_client::Capability;
use tench_procs_client::protocol::{FaultKind, State};
use tench_reserve_client::Reservation;

use crate::parse::Standard;

pub use tench::io::BROKEN;

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

/// Whose the terminal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terminal {
    /// The shell's, which edits lines on it.
    Ours,
    /// Another process's; it edits lines itself.
    Others,
    /// Input comes from somewhere else.
    None,
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
    /// Bytes of memory that it costs, of a process of another core, where the memory server is another.
    pub memory: Option<u64>,
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

/// What lies in a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Its name in the directory.
    pub name: String,
    /// Bytes; 0 for a directory.
    pub size: u64,
    /// Whether it is a directory.
    pub is_directory: bool,
}

/// An end of a byte stream that the shell holds, as [`System`] calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream(pub u32);

/// What a person says about a process that is to be started. What is not said, the system description says of that
/// program, and what that does not say is as usual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Bytes of memory that it may have.
    pub quota: Option<u64>,
    /// Priority of its main thread.
    pub priority: Option<u8>,
    /// Highest priority that it may give.
    pub ceiling: Option<u8>,
    /// What the shell passes on of what it may do.
    pub powers: Powers,
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// To read it.
    Read,
    /// To write it from its beginning; what it held is gone.
    Replace,
    /// To write at its end.
    Append,
}

/// Why writing to a stream had no success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unwritten {
    /// Nobody reads any more.
    Broken,
    /// Something else.
    Refused(Refusal),
}

/// How waiting for processes ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waited {
    /// All have ended, in this way; not known of those that ended so long ago that nothing is known of them.
    Ended(Vec<Option<End>>),
    /// The same, after Ctrl-C was typed: they were killed, or ended when they were told to.
    EndedEarly(Vec<Option<End>>),
    /// Ctrl-C was typed, and nobody was killed.
    Interrupted,
    /// Ctrl-Z was typed, and all were suspended.
    Suspended,
}

/// What keys do while processes are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnKey {
    /// Ctrl-C kills the processes, or tells those that want to end by themselves; Ctrl-Z suspends them: they are in the
    /// foreground.
    Obey,
    /// Ctrl-C ends the waiting.
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
    /// Waits for input until a time, in ticks since the machine was started.
    fn read_until(&mut self, deadline: u64) -> Option<Input>;
    /// Takes the terminal, to edit lines on it.
    fn take_terminal(&mut self) -> Terminal;

    /// The shell's own process.
    fn own_pid(&self) -> u64;
    /// A process of any core, also one that has ended not long ago.
    fn process(&mut self, pid: u64) -> Result<Process, Refusal>;
    /// The process with the next higher identifier; those of other cores follow those of the first.
    fn next_process(&mut self, after: u64) -> Option<Process>;
    /// What the shell's capabilities permit beyond what everybody's do: it can pass that on.
    fn powers(&self) -> Powers;
    /// Prepares a process of a program, with arguments, on a core; the first word is its name. It has the shell's
    /// input, output and errors unless others are given. Answers `None` if there is no such program.
    fn prepare(&mut self, core: u64, words: &[String], settings: Settings) -> Result<Option<u64>, Refusal>;
    /// The core on which the fewest processes run.
    fn least_loaded(&mut self) -> Result<u64, Refusal>;
    /// Gives a prepared process an end of a stream. The shell keeps its own.
    fn give(&mut self, pid: u64, standard: Standard, stream: Stream) -> Result<(), Refusal>;
    /// Lets a prepared process run. It is gone if this is refused.
    fn start(&mut self, pid: u64) -> Result<(), Refusal>;
    /// Gives a prepared process up.
    fn abandon(&mut self, pid: u64);
    /// Gives these processes the terminal, and lets its keys do with them what is said, until the next `wait` has come
    /// back. `reader`, which is one of them or the shell, gets what is typed.
    fn set_foreground(&mut self, pids: &[u64], reader: u64, on_key: OnKey);
    /// Waits until processes have ended, in the foreground that was set.
    fn wait(&mut self, pids: &[u64]) -> Result<Waited, Refusal>;
    /// Kills a process.
    fn kill(&mut self, pid: u64) -> Result<(), Refusal>;
    /// Stops a process.
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

    /// The reservation of the processor with the next higher number.
    fn next_reservation(&mut self, after: u64) -> Result<Option<Reservation>, Refusal>;

    /// What lies in a directory.
    fn entries(&mut self, directory: &str) -> Result<Vec<Entry>, Refusal>;
    /// What lies at a path.
    fn entry(&mut self, path: &str) -> Result<Entry, Refusal>;
    /// Makes a directory.
    fn make_directory(&mut self, path: &str) -> Result<(), Refusal>;
    /// Removes a file or an empty directory.
    fn remove(&mut self, path: &str) -> Result<(), Refusal>;
    /// Gives a file or directory another path.
    fn rename(&mut self, from: &str, to: &str) -> Result<(), Refusal>;

    /// Makes a pipe: its end for reading, and its end for writing.
    fn pipe(&mut self) -> Result<(Stream, Stream), Refusal>;
    /// Opens a file.
    fn open(&mut self, path: &str, how: How) -> Result<Stream, Refusal>;
    /// The next bytes of a stream; none at its end.
    fn read_stream(&mut self, stream: Stream) -> Result<Vec<u8>, Refusal>;
    /// Writes all bytes to a stream.
    fn write_stream(&mut self, stream: Stream, bytes: &[u8]) -> Result<(), Unwritten>;
    /// Gives an end of a stream up.
    fn close(&mut self, stream: Stream);

    /// Ticks since the machine was started.
    fn ticks(&mut self) -> u64;
    /// Ticks in a second.
    fn ticks_per_second(&mut self) -> u64;
    /// Instructions that this processor has executed.
    fn instructions(&mut self) -> u64;
    /// A statistic of the kernel.
    fn statistic(&mut self, which: Statistic) -> Result<u64, Refusal>;
    /// How long interrupts were off on a path of the kernel's.
    fn stretches(&mut self, path: u64) -> Result<Stretches, Refusal>;
    /// Switches the machine off once everything written is on the terminal. Comes back only if that is refused.
    fn power_off(&mut self, status: u8) -> Refusal;
}
