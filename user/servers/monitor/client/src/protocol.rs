//! The monitor's interface.

use tench_protocol::{Any, ArrayString, Arrived, Bytes, Caller, Given, Later, Powers, Sent, Text, Words, interface};
use tench_sys::{Endpoint, Untyped};

pub use tench_procs_client::pid::{CORE_SHIFT, first, place};

/// The cores of the machine, each with a kernel and a monitor of its own.
#[expect(clippy::type_complexity, reason = "an answer later, of words and a capability")]
#[interface(client = Monitor, version = 1)]
pub trait MonitorService {
    /// How many cores the machine has, and which of them this is.
    #[method(1)]
    fn cores(&mut self) -> Result<(u64, u64), Error>;

    /// What is known of a core.
    /// Errors: `NoSuchCore`.
    #[method(2)]
    fn core(&mut self, core: u64) -> Result<Core, Error>;

    /// Sends a message to the monitor of another core, which answers it. Answers how many ticks of the system counter
    /// that took.
    /// Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `Silent`, `Stopped`.
    #[method(3)]
    fn ping(&mut self, later: Later<'_, u64, Error>, core: u64) -> Result<Option<u64>, Error>;

    /// Starts a program on a core, with nothing but arguments. `strings` are the program's path or base name and its
    /// arguments, each of which ends with a zero byte. Answers the process's number, which no process of any core has
    /// besides. Its parent is the process that asks, of whichever core.
    /// Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `Silent`, `Stopped`, `BadStrings`; `NoSuchProgram`,
    /// `BadProgram`, `OutOfMemory`, `TooManyProcesses`, `TextTooLong` as on the caller's own core.
    #[method(4)]
    fn spawn(
        &mut self,
        caller: Caller,
        later: Later<'_, u64, Error>,
        core: u64,
        strings: Bytes<'_, MAX_STRINGS>,
    ) -> Result<Option<u64>, Error>;

    /// Waits until a process has ended, on whichever core. Answers what became of it.
    /// Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `Silent`, `Stopped`, `NoSuchProcess`.
    #[method(5)]
    fn wait(
        &mut self,
        caller: Caller,
        later: Later<'_, Process, Error>,
        process: u64,
    ) -> Result<Option<Process>, Error>;

    /// Kills a process, on whichever core. A process may kill its descendants, and one that manages others of its own
    /// core those of all cores.
    /// Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `Silent`, `Stopped`, `NoSuchProcess`, `WrongState`,
    /// `NotAllowed`, `Essential`.
    #[method(6)]
    fn kill(
        &mut self,
        caller: Caller,
        powers: Powers,
        later: Later<'_, (), Error>,
        process: u64,
    ) -> Result<Option<()>, Error>;

    /// What is known about the process with the next higher number. Those of one core are numbered one after another;
    /// the search ends with the last of the core to which `after` belongs, so a list of all begins anew with each
    /// core's [`first`].
    /// Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `Silent`, `Stopped`, `NoSuchProcess` when there is none.
    #[method(7)]
    fn next(&mut self, caller: Caller, later: Later<'_, Process, Error>, after: u64) -> Result<Option<Process>, Error>;

    /// How much memory a core's memory server has, in bytes, and how much of that is free.
    /// Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `Silent`, `Stopped`.
    #[method(8)]
    fn memory(&mut self, caller: Caller, later: Later<'_, Memory, Error>, core: u64) -> Result<Option<Memory>, Error>;

    /// Suspends a process, on whichever core: none of its threads runs, nor any that it makes.
    /// Errors: as `kill`.
    #[method(9)]
    fn suspend(
        &mut self,
        caller: Caller,
        powers: Powers,
        later: Later<'_, (), Error>,
        process: u64,
    ) -> Result<Option<()>, Error>;

    /// Lets a suspended process go on, on whichever core.
    /// Errors: as `kill`.
    #[method(10)]
    fn resume(
        &mut self,
        caller: Caller,
        powers: Powers,
        later: Later<'_, (), Error>,
        process: u64,
    ) -> Result<Option<()>, Error>;

    /// What is known about a process, on whichever core.
    /// Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `NoSuchProcess`.
    #[method(11)]
    fn status(
        &mut self,
        caller: Caller,
        later: Later<'_, Process, Error>,
        process: u64,
    ) -> Result<Option<Process>, Error>;

    /// Kills every process of this path or base name on a core, also those that are started meanwhile, and answers how
    /// many. That one ends by itself is no error; and if one may not be killed, the others are nevertheless, and that
    /// is the answer.
    /// Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `NotAllowed`, `Essential`, `BadStrings`.
    #[method(12)]
    fn kill_all(
        &mut self,
        caller: Caller,
        powers: Powers,
        later: Later<'_, u64, Error>,
        core: u64,
        name: Text<'_, MAX_NAME>,
    ) -> Result<Option<u64>, Error>;

    /// Ends a process as Ctrl-C does, on whichever core: one that wants to end by itself is told so, once; any other is
    /// killed, and so is that one the next time. Answers whether it was killed.
    /// Errors: as `kill`.
    #[method(13)]
    fn interrupt(
        &mut self,
        caller: Caller,
        powers: Powers,
        later: Later<'_, bool, Error>,
        process: u64,
    ) -> Result<Option<bool>, Error>;

    /// How many processes run on a core, neither suspended nor ended; `init` and those that it has started do not
    /// count.
    /// Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`.
    #[method(14)]
    fn load(&mut self, caller: Caller, later: Later<'_, u64, Error>, core: u64) -> Result<Option<u64>, Error>;

    /// The living process of this path or base name with the next higher number. The search ends with the last of the
    /// core to which `after` belongs.
    /// Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `BadStrings`, `NoSuchProcess` when there is none.
    #[method(15)]
    fn find(
        &mut self,
        caller: Caller,
        later: Later<'_, u64, Error>,
        name: Text<'_, MAX_NAME>,
        after: u64,
    ) -> Result<Option<u64>, Error>;
    /// Sends a copy of a capability to a frame, an endpoint or a notification to a process of any core, with a word
    /// that says what it is for. Answered when it lies there, or is on its way there, for the process to `take`. The
    /// copy allows what the caller's allows; on another core, an endpoint can be called and sent to, not received at,
    /// and a notification be signalled, not waited for.
    /// Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `NoSuchProcess`; `NotSendable`, `DeviceMemory`,
    /// `MailboxFull`, `BeingRevoked`, `TooManyObjects`, `CoreLost`, `Refused`; `NotAllowed` for who is no process.
    #[method(20)]
    fn give(
        &mut self,
        caller: Caller,
        later: Later<'_, (), Error>,
        process: u64,
        word: u64,
        capability: Arrived<'_, Any>,
    ) -> Result<Option<()>, Error>;

    /// Lends untyped memory of which nothing was made to a process of any core, which makes of it what it likes. The
    /// capability leaves the caller, also if that is refused: the memory is again part of what it was made of, when it
    /// has come back (`recall`).
    /// Errors: as `give`, and `Lent`, `InUse`.
    #[method(21)]
    fn lend(
        &mut self,
        caller: Caller,
        later: Later<'_, (), Error>,
        process: u64,
        word: u64,
        memory: Arrived<'_, Untyped, Given>,
    ) -> Result<Option<()>, Error>;

    /// Waits for the next capability that was sent to the caller. Answers which process sent it, and the word.
    /// Errors: `Full` (too many threads wait), `NotAllowed` for who is no process.
    #[method(22)]
    fn take(
        &mut self,
        caller: Caller,
        later: Later<'_, (Letter, Sent<Any, Given>), Error>,
    ) -> Result<Option<(Letter, Sent<Any, Given>)>, Error>;

    /// Takes back what a capability is to from all other cores, for whoever has sent it there and is refused by the
    /// kernel to revoke or delete it because there are foreign copies. Answered when no other core has a copy, nor
    /// anything that was made of one.
    /// Errors: `NotSendable`, `Borrowed` (it is another core's), `NotAllowed` (somebody else has sent it; whose memory
    /// it is has it taken back by trying to revoke it), `Full`.
    #[method(23)]
    fn revoke(
        &mut self,
        caller: Caller,
        later: Later<'_, (), Error>,
        capability: Arrived<'_, Any>,
    ) -> Result<Option<()>, Error>;

    /// Takes back from all other cores what the caller has sent or lent there of a block that the memory server gave
    /// it, and that has this number. Answered when nothing is left of it there.
    /// Errors: `Full`, `NoSuchBlock`.
    #[method(24)]
    fn recall(&mut self, caller: Caller, later: Later<'_, (), Error>, block: u16) -> Result<Option<()>, Error>;

    /// Gives what begins at a physical address back to the core that it came from, whose capabilities here were
    /// deleted. It goes back after a moment in any case.
    /// Errors: `NotForeign`, `InUse`.
    #[method(25, power(MEMORY))]
    fn give_back(&mut self, address: u64) -> Result<(), Error>;

    /// What this core's monitor keeps books of: objects of this core that others have, objects of others that this one
    /// has, capabilities that were sent and not taken, how often another monitor said what none says, and endpoints and
    /// notifications that are used from other cores.
    #[method(26)]
    fn exchanged(&mut self) -> Result<Exchanged, Error>;

    /// Asks another core for memory, which is given for good: about so many bytes, a power of two of at least 1 MiB. A
    /// core gives only what leaves it as much free memory as the one that asks has then, and 32 MiB. Answers how many
    /// bytes were given; this core's memory server has them a moment later.
    /// Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`; `NothingToSpare`, `NoRicher` if that core gives nothing,
    /// `OutOfMemory` if it has nothing in one piece; `CoreLost`, `Refused`.
    #[method(27)]
    fn grow(
        &mut self,
        caller: Caller,
        later: Later<'_, u64, Error>,
        from: u64,
        bytes: u64,
    ) -> Result<Option<u64>, Error>;

    /// The process server of any core, as it is for processes of its own: it sees who asks, and what the caller
    /// prepares there and starts has it as its parent. What is prepared is given up when the caller has deleted the
    /// capability. The capability goes to the empty slot.
    /// Errors: `NoSuchCore`, `NotConnected`, `Full`, `Broken`, `Silent`; `NotAllowed` for who is no process.
    #[method(28)]
    fn processes(
        &mut self,
        caller: Caller,
        powers: Powers,
        later: Later<'_, Sent<Endpoint, Given>, Error>,
        core: u64,
    ) -> Result<Option<Sent<Endpoint, Given>>, Error>;
}

/// What a capability comes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Words)]
pub struct Letter {
    /// The process that sent it, of whichever core.
    pub from: u64,
    /// What it is for.
    pub word: u64,
}

/// What a monitor keeps books of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Words)]
pub struct Exchanged {
    /// Objects of this core that others have.
    pub exports: u64,
    /// Objects of other cores that this one has.
    pub copies: u64,
    /// Capabilities that were sent to processes of this core, and not taken.
    pub letters: u64,
    /// What other monitors said and none says.
    pub faults: u64,
    /// Capabilities to endpoints and notifications that other cores have, as they were sent.
    pub endpoints: u64,
    /// The same of other cores that this one has.
    pub proxies: u64,
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
        /// Its monitor did not answer in time, and does not. If it does later, the core runs again.
        Silent = 6, "silent";
        /// Its monitor wrote what no monitor writes; nothing of it is believed any more.
        Broken = 7, "broken channel";
        /// This core has no channel to it.
        Unconnected = 8, "not connected";
        /// It is off, as the firmware says: it has stopped, or it was never started.
        Stopped = 9, "stopped";
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
        /// The core's monitor does not answer; what it was asked may have been done or not.
        Silent = 7, "that core does not answer";
        /// The core has stopped.
        Stopped = 8, "that core has stopped";
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
        NotAllowed = 39, "this takes a power that you do not have; `caps` shows which you have";
        /// What a process with a limit would start on another core would count in no limit.
        Limited = 41, "your memory is limited, which counts on your own core alone: who has no limit can start that there, with a limit";
        /// The process is `init`, `mem`, `procs` or the monitor of its core.
        Essential = 40, "nothing would go on without it";
        /// Only memory, endpoints and notifications can be sent.
        NotSendable = 64, "only frames, untyped memory, endpoints to call and notifications to signal can be sent to a process";
        /// Memory of devices stays on its core.
        DeviceMemory = 65, "memory of devices stays on its core";
        /// Too much lies at that core that was sent by the caller and not taken, or that nobody expects.
        MailboxFull = 66, "too much was sent there that nobody has taken; try again later";
        /// The object is being taken back, or was.
        BeingRevoked = 67, "it is being taken back from other cores";
        /// The memory is lent already.
        Lent = 68, "the memory is lent to a core already";
        /// Something was made of the memory, or somebody uses it.
        InUse = 69, "something was made of the memory; delete that first";
        /// It belongs to another core.
        Borrowed = 70, "it belongs to another core, and only there can this be asked";
        /// A table of the monitors is full.
        TooManyObjects = 71, "too many objects are on other cores; take some back first";
        /// A core that was needed has stopped.
        CoreLost = 72, "a core that was needed has stopped";
        /// The kernel of one of the cores refused.
        Refused = 73, "the kernel of one of the cores refused";
        /// Nothing of another core's is there.
        NotForeign = 74, "nothing of another core's begins there";
        /// The memory server gave the caller no such block.
        NoSuchBlock = 77, "you have no block with that number from the memory server";
        /// A core is asked for memory that needs all that it has free.
        NothingToSpare = 75, "that core gives nothing: it keeps 32 MiB free for itself, and has less than 1 MiB more";
        /// A core is asked for memory by one that has as much free, or by itself.
        NoRicher = 76, "that core gives nothing: it would have less free memory than this one then";
    }
}
