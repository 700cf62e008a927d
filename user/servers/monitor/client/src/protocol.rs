//! The monitor's interface.

use tench_protocol::{ArrayString, Bytes, Caller, Later, Text, Words, interface};

pub use tench_procs_client::pid::{CORE_SHIFT, first, place};

/// The cores of the machine, each with a kernel and a monitor of its own.
#[interface(client = Monitor, version = 1)]
pub trait MonitorService {
    /// How many cores the machine has, and which of them this is.
    #[method(1)]
    fn cores(&mut self) -> Result<(u64, u64), Error>;

    /// What is known of a core.
    /// Errors: `NoSuchCore`.
    #[method(2)]
    fn core(&mut self, core: u64) -> Result<Core, Error>;

    /// Sends a message to the monitor of another core, which answers it. Answers how many ticks of the system counter that took.
    /// Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`.
    #[method(3)]
    fn ping(&mut self, later: Later<'_, u64, Error>, core: u64) -> Result<Option<u64>, Error>;

    /// Starts a program on a core, with nothing but arguments. `strings` are the program's path or base name and its arguments, each of
    /// which ends with a zero byte. Answers the process's number, which no process of any core has besides. Its parent is the
    /// process that asks, of whichever core.
    /// Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `BadStrings`; `NoSuchProgram`, `BadProgram`, `OutOfMemory`,
    /// `TooManyProcesses`, `TextTooLong` as on the caller's own core.
    #[method(4)]
    fn spawn(
        &mut self,
        caller: Caller,
        later: Later<'_, u64, Error>,
        core: u64,
        strings: Bytes<'_, MAX_STRINGS>,
    ) -> Result<Option<u64>, Error>;

    /// Waits until a process has ended, on whichever core. Answers what became of it.
    /// Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `NoSuchProcess`.
    #[method(5)]
    fn wait(
        &mut self,
        caller: Caller,
        later: Later<'_, Process, Error>,
        process: u64,
    ) -> Result<Option<Process>, Error>;

    /// Kills a process, on whichever core. A process may kill its descendants, and one that manages others of its own core those of
    /// all cores.
    /// Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `NoSuchProcess`, `WrongState`, `NotAllowed`, `Essential`.
    #[method(6)]
    fn kill(&mut self, caller: Caller, later: Later<'_, (), Error>, process: u64) -> Result<Option<()>, Error>;

    /// What is known about the process with the next higher number. Those of one core are numbered one after another; the search ends
    /// with the last of the core to which `after` belongs, so a list of all begins anew with each core's [`first`].
    /// Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `NoSuchProcess` when there is none.
    #[method(7)]
    fn next(&mut self, caller: Caller, later: Later<'_, Process, Error>, after: u64) -> Result<Option<Process>, Error>;

    /// How much memory a core's memory server has, in bytes, and how much of that is free.
    /// Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`.
    #[method(8)]
    fn memory(&mut self, caller: Caller, later: Later<'_, Memory, Error>, core: u64) -> Result<Option<Memory>, Error>;

    /// Suspends a process, on whichever core: none of its threads runs, nor any that it makes.
    /// Errors: as `kill`.
    #[method(9)]
    fn suspend(&mut self, caller: Caller, later: Later<'_, (), Error>, process: u64) -> Result<Option<()>, Error>;

    /// Lets a suspended process go on, on whichever core.
    /// Errors: as `kill`.
    #[method(10)]
    fn resume(&mut self, caller: Caller, later: Later<'_, (), Error>, process: u64) -> Result<Option<()>, Error>;

    /// What is known about a process, on whichever core.
    /// Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `NoSuchProcess`.
    #[method(11)]
    fn status(
        &mut self,
        caller: Caller,
        later: Later<'_, Process, Error>,
        process: u64,
    ) -> Result<Option<Process>, Error>;

    /// Kills every process of this path or base name on a core, also those that are started meanwhile, and answers how many. That one
    /// ends by itself is no error; and if one may not be killed, the others are nevertheless, and that is the answer.
    /// Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `NotAllowed`, `Essential`, `BadStrings`.
    #[method(12)]
    fn kill_all(
        &mut self,
        caller: Caller,
        later: Later<'_, u64, Error>,
        core: u64,
        name: Text<'_, MAX_NAME>,
    ) -> Result<Option<u64>, Error>;

    /// Ends a process as Ctrl-C does, on whichever core: one that wants to end by itself is told so, once; any other is killed, and so
    /// is that one the next time. Answers whether it was killed.
    /// Errors: as `kill`.
    #[method(13)]
    fn interrupt(&mut self, caller: Caller, later: Later<'_, bool, Error>, process: u64)
    -> Result<Option<bool>, Error>;

    /// How many processes run on a core, neither suspended nor ended; `init` and those that it has started do not count.
    /// Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`.
    #[method(14)]
    fn load(&mut self, caller: Caller, later: Later<'_, u64, Error>, core: u64) -> Result<Option<u64>, Error>;

    /// The living process of this path or base name with the next higher number. The search ends with the last of the core to which
    /// `after` belongs.
    /// Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `BadStrings`, `NoSuchProcess` when there is none.
    #[method(15)]
    fn find(
        &mut self,
        caller: Caller,
        later: Later<'_, u64, Error>,
        name: Text<'_, MAX_NAME>,
        after: u64,
    ) -> Result<Option<u64>, Error>;
}

/// Bytes of a program's name and arguments together, with the zero bytes.
pub const MAX_STRINGS: usize = 448;
/// Bytes of a process's name that are told.
pub const MAX_NAME: usize = 255;
/// A process, on whichever core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Words)]
pub struct Process {
    /// Its number.
    pub process: u64,
    /// The process that started it, on whichever core.
    pub parent: u64,
    /// What it does.
    pub state: Condition,
    /// What belongs to the state: exit code, or number of a kind of fault.
    pub detail: u64,
    /// Priority of its main thread.
    pub priority: u64,
    /// Ticks of processor time.
    pub ticks: u64,
    /// Bytes of its program.
    pub size: u64,
    /// Bytes of memory that it costs; 0 if it has none any more.
    pub memory: u64,
    /// The path or name by which it was started.
    pub name: ArrayString<MAX_NAME>,
}

/// A core's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Words)]
pub struct Memory {
    /// Bytes in all.
    pub total: u64,
    /// Free bytes.
    pub free: u64,
}

tench_protocol::codes! {
    /// What became of a process.
    pub enum Condition {
        /// Not started yet.
        Preparing = 0, "preparing";
        /// Started and not ended.
        Running = 1, "running";
        /// None of its threads runs.
        Suspended = 2, "suspended";
        /// It has ended by itself; its exit code belongs to the state.
        Exited = 3, "exited";
        /// Somebody killed it.
        Killed = 4, "killed";
        /// A fault ended it.
        Faulted = 5, "faulted";
    }
}

impl Monitor<()> {
    /// The name under which it is registered.
    pub const NAME: &'static str = "monitor";
}

/// A core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Words)]
pub struct Core {
    /// How far it is.
    pub state: State,
    /// Bytes of memory that it was given; 0 for the core that gives it.
    pub memory: u64,
    /// Ticks of the system counter from its start until its monitor answered; 0 if it has not.
    pub start: u64,
}

tench_protocol::codes! {
    /// How far a core is.
    pub enum State {
        /// It is this one.
        Here = 1, "here";
        /// Its kernel was started; its monitor has not answered yet.
        Starting = 2, "starting";
        /// Its monitor answers.
        Running = 3, "running";
        /// The firmware refused to start it.
        Refused = 4, "refused by the firmware";
        /// There was no memory for it.
        NoMemory = 5, "no memory";
        /// Its monitor did not answer in time.
        Silent = 6, "silent";
        /// Its monitor wrote what no monitor writes; nothing of it is believed any more.
        Broken = 7, "broken channel";
        /// This core has no channel to it.
        Unconnected = 8, "not connected";
    }
}

tench_protocol::codes! {
    /// Why a request was refused.
    pub enum Error {
        /// The machine has no such core.
        NoSuchCore = 1, "the machine has no such core; cores are counted from 0";
        /// There is no channel to this core.
        NotConnected = 2, "this core's monitor has no channel to that one; ask from the first core";
        /// Too many requests wait for answers of that core.
        Full = 3, "too many requests wait for that core; try again later";
        /// The channel is closed, because its other side wrote what no monitor writes.
        Broken = 4, "that core's monitor wrote something impossible, and its channel is closed";
        /// The program's name is missing, or a string does not end or is no UTF-8.
        BadStrings = 5, "a program's name and arguments are strings of UTF-8 that end with zero bytes";
        /// That core's servers answered what they never answer.
        Internal = 6, "that core's process server refused what should be possible";
        /// There is no such process.
        NoSuchProcess = 32, "no such process; `ps` lists them";
        /// The process is not in a state for this.
        WrongState = 33, "the process's state does not allow this";
        /// The archive has no such program.
        NoSuchProgram = 34, "no such program in the boot archive";
        /// The program's file cannot be loaded.
        BadProgram = 35, "the program cannot be loaded";
        /// There is not enough memory.
        OutOfMemory = 36, "not enough memory";
        /// The table of processes is full.
        TooManyProcesses = 37, "the table of processes is full";
        /// Arguments are too long.
        TextTooLong = 38, "the text is too long";
        /// The caller has not started the process.
        NotAllowed = 39, "not one of your processes, and you may not manage others";
        /// The process is `init`, `mem`, `procs` or the monitor of its core.
        Essential = 40, "nothing would go on without it";
    }
}
