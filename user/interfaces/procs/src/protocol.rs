//! The process server's interface.
//!
//! *Strings* are text in which each string ends with a zero byte. `run` starts a program with arguments. To give it
//! more, `create` makes a record and returns its process number (or `create_of` and `write`, for a program from outside
//! the boot archive), `append` adds arguments and environment, `lend` and `give_away` pass capabilities, and `start`
//! loads the program and runs it.

use tench_abi::fault::Report;
use tench_abi::{CapAddress, Kind, Rights};
use tench_protocol::{
    Any, ArrayString, Arrived, Bytes, Caller, Given, Later, List, Powers, Sent, Text, Words, interface,
};
use tench_sys::{Endpoint, Instant, Notification};

/// Processes.
#[expect(clippy::too_many_arguments, reason = "how a process runs is said at once, and who says it is checked first")]
#[interface(client = Procs, version = 3)]
pub trait ProcsService {
    /// Prepares a process from the program of this path in the boot archive, or of this base name, which is looked up
    /// in `bin/`. Its first argument is the text as given. Returns the process's number. Nothing follows from the
    /// program's name: the process will have what is set before its start; the defaults are the usual priority, or its
    /// parent's ceiling if that is lower, and no powers.
    /// Errors: `NoSuchProgram`, `TooManyProcesses`, `OutOfMemory`; `NoSuchProcess`, `WrongState` if the process to
    /// which the capability was given has ended.
    #[method(1)]
    fn create(&mut self, caller: Caller, powers: Powers, program: Text<'_, MAX_NAME>) -> Result<u64, Error>;

    /// Prepares a process, as `create` does, from a program that the caller hands over with [`write`](Self::write): a
    /// file of at most `size` bytes. The name is shown to others, and is the first argument. The file is charged to the
    /// process's own account, rounded up to a power of two of bytes.
    /// Errors: as `create` (without `NoSuchProgram`), `TooLarge` (more than `MAX_FILE`), `BadName`, `Internal`.
    #[method(32)]
    fn create_of(&mut self, caller: Caller, powers: Powers, name: Text<'_, MAX_NAME>, size: u64) -> Result<u64, Error>;

    /// Appends to the file of a program that is handed over. It is checked when the process is started: what has not
    /// been handed over by then is missing.
    /// Errors: `NoSuchProcess`, `NotYours`, `WrongState` (also if the program is from the boot archive), `TooLarge`
    /// (more than announced), `Internal`.
    #[method(33)]
    fn write(&mut self, caller: Caller, process: u64, content: Bytes<'_, MAX_APPEND>) -> Result<(), Error>;

    /// Appends text to the arguments or the environment of a process in preparation: each string in it ends with a zero
    /// byte, and one string can be spread over several requests. Until the process runs, the text is in this server's
    /// memory, of which each family has a share.
    /// Errors: `NoSuchProcess`, `NotYours`, `WrongState`, `TextTooLong`, `TooMuchText`, `OutOfMemory`.
    #[method(2)]
    fn append(&mut self, caller: Caller, process: u64, to: Strings, text: Bytes<'_, MAX_APPEND>) -> Result<(), Error>;

    /// Passes a copy of a capability along to a process in preparation, in a slot of its own: one of `EXTRA` to `EXTRA
    /// + EXTRA_COUNT - 1`, `NAMES`, `CONSOLE`, `FILES`, `STDIN`, `STDOUT`, `STDERR`, `KERNEL`, `INTERRUPT_CONTROL`,
    /// `SERVICE`.
    /// Errors: `NoSuchProcess`, `NotYours`, `WrongState`, `BadSlot`, `TooManyCapabilities`, `OutOfMemory`.
    #[method(3)]
    fn lend(&mut self, caller: Caller, process: u64, slot: CapAddress, cap: Arrived<'_, Any>) -> Result<(), Error>;

    /// Gives a capability as `lend` does, but the caller does not keep it. An endpoint given in `SERVICE` is revoked
    /// when the server ends: its clients are refused from then on instead of waiting for ever.
    /// Errors: `NoSuchProcess`, `NotYours`, `WrongState`, `BadSlot`, `TooManyCapabilities`, `OutOfMemory`.
    #[method(4)]
    fn give_away(
        &mut self,
        caller: Caller,
        process: u64,
        slot: CapAddress,
        cap: Arrived<'_, Any, Given>,
    ) -> Result<(), Error>;

    /// Sets how a process in preparation will run: priority, ceiling, bytes of stack (0 for the usual size), and its
    /// powers, a bit for each ([`tench_abi::Powers`]), which its capabilities to servers carry. With some of them it
    /// gets a capability to the kernel, with the corresponding rights. The ceiling is at most the caller's own, and the
    /// powers are among those of the capability that is used.
    /// Errors: `NoSuchProcess`, `NotYours`, `WrongState`, `PriorityTooHigh`, `NotAllowed`, `StackTooLarge`.
    #[method(5)]
    fn set_up(
        &mut self,
        caller: Caller,
        powers: Powers,
        process: u64,
        priority: u8,
        ceiling: u8,
        stack: u64,
        given: u64,
    ) -> Result<(), Error>;

    /// Sets how many slots for capabilities a process in preparation can have, 16,384 if this is not called. The number
    /// is rounded up to a power of two. The root of its CSpace takes a quarter of a byte for each from the process's
    /// own account; the slots themselves, 64 bytes each, are made when they are needed.
    /// Errors: `NoSuchProcess`, `NotYours`, `WrongState`, `TooManySlots`.
    #[method(38)]
    fn set_slots(&mut self, caller: Caller, process: u64, slots: u64) -> Result<(), Error>;

    /// Makes a process in preparation, which has a capability in `SERVICE`, the server of this name: when it ends, it
    /// is restarted, at most `attempts` times within a minute, `delay` milliseconds after its end and twice as many
    /// each further time. Each time it gets the same memory of `keep` bytes (0: none) and `nodes` nodes of slots.
    /// Errors: `NoSuchProcess`, `WrongState` (also if its program is not from the boot archive), `BadSlot` (it has no
    /// capability in `SERVICE`), `Exists`, `OutOfMemory`, `TextTooLong`.
    #[method(30, authority)]
    fn supervise(
        &mut self,
        process: u64,
        name: Text<'_, MAX_SERVICE>,
        attempts: u32,
        delay: u32,
        keep: u64,
        nodes: u32,
    ) -> Result<(), Error>;

    /// Makes this process the core's link to others. If it ends, the core stops, unless it is the first: nobody could
    /// reach it, and nobody on it the servers of other cores. Processes of other cores can neither end nor suspend it.
    /// Errors: `NoSuchProcess`, `WrongState`.
    #[method(31, authority)]
    fn set_link(&mut self, process: u64) -> Result<(), Error>;

    /// Starts a process in preparation; if this fails, its record is removed. Returns the defect of the program's file,
    /// if that is the cause.
    /// Errors: `NoSuchProcess`, `NotYours`, `WrongState`, `OutOfMemory`, `Internal`.
    #[method(6)]
    fn start(&mut self, caller: Caller, process: u64) -> Result<Option<Defect>, Error>;

    /// Starts a program from the boot archive with arguments and nothing else: `create`, `append` and `start` in one
    /// request. `strings` are the program's path or base name and its arguments. If this fails, nothing is left of it.
    /// Errors: `BadStrings`, `BadProgram`, and those of `create`, `append` and `start`.
    #[method(37)]
    fn run(&mut self, caller: Caller, powers: Powers, strings: Bytes<'_, MAX_APPEND>) -> Result<u64, Error>;

    /// Ends the calling process and all its threads. There is no reply.
    #[method(7)]
    fn exit(&mut self, caller: Caller, code: u64) -> Result<(), Error>;

    /// Kills a process. If it is in preparation, nothing is left of it then, not even its record.
    /// Errors: `NoSuchProcess`, `NotAllowed`, `WrongState` (it has ended), `Essential` (also for the monitor, from
    /// another core).
    #[method(8)]
    fn kill(
        &mut self,
        caller: Caller,
        powers: Powers,
        later: Later<'_, (), Error>,
        process: u64,
    ) -> Result<Option<()>, Error>;

    /// Sets the notification by which the next `interrupt` tells the calling process to end by itself, instead of
    /// killing it. It replaces the one set before.
    /// Errors: `NoSuchProcess`, `WrongState`.
    #[method(24)]
    fn on_interrupt(&mut self, caller: Caller, signal: Arrived<'_, Notification>) -> Result<(), Error>;

    /// Ends a process as Ctrl-C does: one that wants to end by itself is told so, once; any other is killed, and so is
    /// that one the next time. Returns whether it was killed.
    /// Errors: as `kill`.
    #[method(25)]
    fn interrupt(
        &mut self,
        caller: Caller,
        powers: Powers,
        later: Later<'_, bool, Error>,
        process: u64,
    ) -> Result<Option<bool>, Error>;

    /// Waits until a process has ended.
    /// Errors: `NoSuchProcess`, `Full`, `OutOfMemory`.
    #[method(9)]
    fn wait(&mut self, caller: Caller, later: Later<'_, Status, Error>, process: u64) -> Result<Option<Status>, Error>;

    /// Waits as `wait` does, but no longer than until a time. The reply may come later if the server is busy with other
    /// requests at that time.
    /// Errors: `NoSuchProcess`, `TimedOut`, `Full`, `OutOfMemory`.
    #[method(22)]
    fn wait_limited(
        &mut self,
        caller: Caller,
        later: Later<'_, Status, Error>,
        process: u64,
        deadline: Instant,
    ) -> Result<Option<Status>, Error>;

    /// Returns the status of a process.
    /// Errors: `NoSuchProcess`.
    #[method(10)]
    fn status(&mut self, process: u64) -> Result<Status, Error>;

    /// Returns the status of the process with the next higher number.
    /// Errors: `NoSuchProcess` when there is none.
    #[method(11)]
    fn next(&mut self, after: u64) -> Result<Status, Error>;

    /// Returns the child of `parent` with the next higher number than `after`, while its record is kept. Children stay
    /// when their parent ends; its number stays in their `Status`.
    /// Errors: `NoSuchProcess` when there is none.
    #[method(23)]
    fn child(&mut self, parent: u64, after: u64) -> Result<u64, Error>;

    /// Returns the process of this path or base name with the next higher number that has not ended.
    /// Errors: `NoSuchProcess` when there is none.
    #[method(12)]
    fn find(&mut self, name: Text<'_, MAX_NAME>, after: u64) -> Result<u64, Error>;

    /// Suspends a process: none of its threads runs, nor any that it makes. Its waits go on; requests to it wait.
    /// Errors: `NoSuchProcess`, `NotAllowed`, `WrongState`, `Essential`.
    #[method(13)]
    fn suspend(&mut self, caller: Caller, powers: Powers, process: u64) -> Result<(), Error>;

    /// Resumes a suspended process.
    /// Errors: `NoSuchProcess`, `NotAllowed`, `WrongState`, `Essential`.
    #[method(14)]
    fn resume(&mut self, caller: Caller, powers: Powers, process: u64) -> Result<(), Error>;

    /// Returns capabilities of a process from an address on, in order, and the address at which to continue (`NULL`:
    /// that was all).
    /// Errors: `NoSuchProcess`, `NotAllowed`, `WrongState`.
    #[method(15)]
    fn capabilities(
        &mut self,
        caller: Caller,
        powers: Powers,
        process: u64,
        from: CapAddress,
    ) -> Result<(CapAddress, List<Capability, CAPABILITIES_PER_REPLY>), Error>;

    /// Discards a process in preparation.
    /// Errors: `NoSuchProcess`, `NotYours`, `WrongState`.
    #[method(18)]
    fn abandon(&mut self, caller: Caller, process: u64) -> Result<(), Error>;

    /// Limits the memory of a process, in preparation or running, in bytes (all ones: no limit). Memory in use beyond
    /// the limit stays. By default, a child may have as much as its parent.
    /// Errors: `NoSuchProcess`, `NotAllowed` (also for more than the caller may have), `WrongState`, `OutOfMemory`.
    #[method(19)]
    fn limit(&mut self, caller: Caller, powers: Powers, process: u64, bytes: u64) -> Result<(), Error>;

    /// Returns the capability to the server that every process gets in this slot, after the server was restarted; it
    /// goes to the empty slot on offer. The reply comes when the server runs.
    /// Errors: `BadSlot` (no such server, or another process gave that capability), `GivenUp`, `Full`.
    #[method(21)]
    fn reconnect(
        &mut self,
        caller: Caller,
        later: Later<'_, Sent<Endpoint, Given>, Error>,
        slot: CapAddress,
    ) -> Result<Option<Sent<Endpoint, Given>>, Error>;

    /// Returns the unbadged endpoint of a server that `init` has started: it confers full authority over the server. It
    /// goes to the empty slot on offer, and is revoked when the server ends.
    /// Errors: `NotRunning` (also if there is no such server).
    #[method(26, authority)]
    fn server(&mut self, name: Text<'_, MAX_NAME>) -> Result<Sent<Endpoint, Given>, Error>;

    /// Returns the powers that a process was given, a bit for each ([`tench_abi::Powers`]).
    /// Errors: `NoSuchProcess`, `WrongState` (it has ended).
    #[method(27)]
    fn powers(&mut self, process: u64) -> Result<u64, Error>;

    /// Returns how many bytes of memory a process uses; `None` if the memory server has no account of it.
    /// Errors: `NoSuchProcess`, `Internal`.
    #[method(36)]
    fn memory(&mut self, process: u64) -> Result<Option<u64>, Error>;

    /// Returns how many processes run, neither suspended nor ended; `init` and those that it has started do not count.
    #[method(28)]
    fn load(&mut self) -> Result<u64, Error>;

    /// Removes one of the ways in which a process of another core can make requests here, for each of which it was
    /// admitted (`admit`). After the last, its process builders are discarded.
    #[method(29, authority)]
    fn forget(&mut self, process: u64) -> Result<(), Error>;

    /// Returns the facts about a process of this core that other cores need: its family, the highest priority that it
    /// may assign, and whether its memory is limited.
    /// Errors: `NoSuchProcess`, `WrongState` (it has ended).
    #[method(34, authority)]
    fn vouch(&mut self, process: u64) -> Result<(u64, u8, bool), Error>;

    /// Admits a process of another core: it may start processes here until as many calls of `forget`, with priorities
    /// up to this ceiling, which is its own there. `client` is its badge, which contains its family.
    /// Errors: `Full`, `OutOfMemory`, `NotAllowed` (it is a process of this core).
    #[method(35, authority)]
    fn admit(&mut self, client: u64, ceiling: u8) -> Result<(), Error>;

    /// Ends the calling process as after a fault that it could not handle itself. There is no reply.
    #[method(20)]
    fn fault(&mut self, caller: Caller, report: OwnFault) -> Result<(), Error>;
}

/// Status of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Words)]
pub struct Status {
    /// Number of the process.
    pub process: u64,
    /// State of the process.
    pub state: State,
    /// Exit code, or number of a [`FaultKind`], in the states that have one.
    pub detail: u64,
    /// Number of its parent.
    pub parent: u64,
    /// Priority of its main thread.
    pub priority: u64,
    /// Ticks of processor time of all its threads, including ended ones. Unknown for `init` and `mem`: 0.
    pub ticks: u64,
    /// Size of its program in bytes.
    pub size: u64,
    /// The path or name by which it was started.
    pub name: ArrayString<MAX_NAME>,
}

/// A capability in a process's CSpace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Words)]
pub struct Capability {
    /// Address of the capability.
    pub address: CapAddress,
    /// Kind of its object.
    pub kind: Kind,
    /// Rights of the capability.
    pub rights: Rights,
    /// Log2 of the object's size in bytes.
    pub size_bits: u32,
    /// Badge of the capability.
    pub badge: u64,
    /// Physical address of memory, for those with the power `memory`; number of an interrupt; otherwise 0.
    pub object: u64,
}

/// A process's report of its own fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Words)]
pub struct OwnFault {
    /// Class, address, instruction, syndrome, as in a fault message of the kernel.
    pub report: [u64; 4],
    /// Kind of the fault.
    pub kind: FaultKind,
    /// The region that contains the address, if the process made that itself.
    pub region: Option<Region>,
}

impl OwnFault {
    /// Returns the kernel's report together with the process's diagnosis.
    pub const fn new(report: &Report, kind: FaultKind, region: Option<Region>) -> OwnFault {
        OwnFault { report: [report.class, report.address, report.instruction, report.syndrome], kind, region }
    }

    /// Returns the kernel's report.
    pub const fn report(&self) -> Report {
        let [class, address, instruction, syndrome] = self.report;
        Report { class, address, instruction, syndrome }
    }
}

/// A part of an address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Words)]
pub struct Region {
    /// Purpose of the region.
    pub kind: RegionKind,
    /// First address.
    pub start: u64,
    /// Size in bytes.
    pub size: u64,
}

tench_protocol::codes! {
    /// Purpose of a part of an address space that a process made itself.
    pub enum RegionKind {
        /// Memory for any purpose.
        Anonymous = 1, "anonymous memory";
        /// The heap.
        Heap = 2, "heap";
        /// A thread's stack.
        Stack = 3, "thread's stack";
        /// The page below a stack, or another that is never mapped.
        Guard = 4, "guard page";
        /// A mapped frame.
        Frame = 5, "mapped frame";
    }
}

tench_protocol::codes! {
    /// A list of strings with which a process is started.
    pub enum Strings {
        /// Arguments after the program's name.
        Arguments = 0;
        /// Environment: `NAME=value`. Nothing is inherited.
        Environment = 1;
    }
}

/// Largest stack of a main thread, in bytes.
pub const MAX_STACK: u64 = 16 << 20;
/// Size of the largest program file that can be handed over, in bytes.
pub const MAX_FILE: usize = 8 << 20;
/// Maximum size of all segments together of a program that is handed over, in bytes.
pub const MAX_LOADED: u64 = 16 << 20;
/// Maximum length of a program name in bytes.
pub const MAX_NAME: usize = 255;
/// Maximum length of a server's name in bytes.
pub const MAX_SERVICE: usize = 32;
/// Maximum number of bytes of text in one `append`.
pub const MAX_APPEND: usize = 448;
/// Maximum number of capabilities in one reply.
pub const CAPABILITIES_PER_REPLY: usize = 10;

tench_protocol::codes! {
    /// State of a process.
    pub enum State {
        /// The process has not started yet.
        Preparing = 0, "preparing";
        /// Started and not ended.
        Running = 1, "running";
        /// The process has been suspended: none of its threads runs.
        Suspended = 2, "suspended";
        /// The process has ended by itself; the detail is its exit code.
        Exited = 3, "exited";
        /// The process was killed.
        Killed = 4, "killed";
        /// A fault ended it; the detail is a [`FaultKind`].
        Faulted = 5, "faulted";
    }
}

impl State {
    /// Returns whether the process has ended.
    pub const fn has_ended(self) -> bool {
        matches!(self, State::Exited | State::Killed | State::Faulted)
    }
}

tench_protocol::codes! {
    /// Kind of a fault.
    pub enum FaultKind {
        /// An access to the first page.
        NullDereference = 1, "null dereference";
        /// An access to the page below a stack.
        GuardPage = 2, "guard page";
        /// An access to an address of the kernel's half.
        KernelAddress = 3, "kernel address";
        /// An access that the mapping does not allow.
        RightsViolation = 4, "rights violation";
        /// An access where nothing is.
        NeverAllocated = 5, "never allocated";
        /// An instruction that does not exist.
        UndefinedInstruction = 6, "undefined instruction";
        /// An instruction that programs may not execute.
        PrivilegedInstruction = 7, "privileged instruction";
        /// An access, program counter or stack pointer that is not aligned as it must be.
        Misaligned = 8, "misaligned access";
        /// A breakpoint that no debugger handles.
        Breakpoint = 9, "breakpoint";
        /// A system call of another system.
        ForeignCall = 10, "foreign system call";
        /// Any other exception.
        Other = 11, "exception";
        /// An access to memory on demand, when no memory is left.
        OutOfMemory = 12, "out of memory";
        /// A page fault in memory of the process's own while one of its threads handled a fault or a foreign system
        /// call: page faults are not handled then.
        InHandler = 13, "page fault in a fault handler";
        /// The budget of the scheduling context was used up, and the thread's faults of that kind come to the process
        /// server.
        Timeout = 14, "budget used up";
    }
}

tench_protocol::codes! {
    /// Defect of a program's file.
    pub enum Defect {
        /// The file does not begin with the four bytes of ELF.
        NotElf = 1, "not an ELF file";
        /// The file ends within the header with which it begins.
        HeaderCutOff = 15, "the file ends within its ELF header";
        /// For a machine of 32 bits, or an unknown class.
        WrongClass = 16, "not a 64-bit program";
        /// Big-endian, or an unknown order of bytes.
        WrongByteOrder = 17, "not a little-endian program";
        /// A version of ELF other than 1.
        WrongVersion = 18, "an unknown version of ELF";
        /// For another kind of processor.
        WrongMachine = 2, "not an AArch64 program";
        /// An object file, a memory dump or an unknown type.
        NotExecutable = 3, "not an executable; was it linked?";
        /// A shared library: position-independent, and not marked as a program.
        SharedLibrary = 19, "a shared library, not a program";
        /// The entries of the table of program headers have another size than ELF says.
        BadHeaderSize = 20, "the program headers have a wrong size";
        /// The table of program headers lies outside the file.
        HeadersOutsideFile = 21, "the program headers lie outside the file";
        /// No loadable segment.
        NoSegments = 4, "nothing to load";
        /// More loadable segments than the process information page describes.
        TooManySegments = 5, "too many segments";
        /// A segment's bytes lie outside the file.
        SegmentOutsideFile = 6, "a segment lies outside the file";
        /// A segment's size in the file exceeds its size in memory.
        BadSegmentSize = 7, "a segment is larger in the file than in memory";
        /// A segment's address or offset in the file and its size exceed 64 bits together.
        SizeOverflow = 22, "a segment's size overflows";
        /// A segment lies in the first page, which stays unmapped against null dereferences.
        FirstPage = 23, "a segment lies in the first page, which stays unmapped";
        /// A segment lies where the loader and libraries put things.
        BadAddress = 8, "a segment lies above the addresses for programs";
        /// A segment's alignment is no power of two, or contradicts its address and its place in the file, or is more
        /// than 2 MiB in a position-independent program.
        BadAlignment = 24, "a segment's alignment contradicts its address";
        /// Two segments share a page.
        SegmentsOverlap = 9, "two segments share a page";
        /// A segment is both writable and executable.
        WritableAndExecutable = 10, "a segment is writable and executable";
        /// A segment is not readable.
        NotReadable = 11, "a segment is not readable";
        /// The program asks for a stack on which it can execute.
        ExecutableStack = 25, "it wants an executable stack";
        /// The first instruction lies in no segment.
        BadEntry = 12, "the entry point lies in no segment";
        /// The first instruction lies in a segment that is not executable.
        EntryNotExecutable = 26, "the entry point lies in a segment that is not executable";
        /// The first instruction's address is no multiple of 4.
        EntryMisaligned = 27, "the entry point is not aligned";
        /// The program needs a dynamic linker.
        NeedsInterpreter = 13, "it needs a dynamic linker; link it statically";
        /// The program needs shared libraries.
        NeedsLibraries = 28, "it needs shared libraries; link it statically";
        /// A program with fixed addresses has a dynamic section.
        DynamicAtFixedAddress = 29, "it has a dynamic section and fixed addresses; link it statically or with -pie";
        /// The dynamic section, or a table that it names, lies outside the file, has no end, or has entries of a wrong
        /// size.
        BadDynamicSection = 30, "its dynamic section is damaged";
        /// A relocation other than by the distance from where the program was linked.
        UnknownRelocation = 31, "it has a relocation of an unknown kind; link it with -static -pie";
        /// A relocation of what the file has no bytes for.
        RelocationOutside = 32, "a relocation lies outside the program's data";
        /// A relocation of code or constants, which cannot be shared then.
        RelocationOfConstant = 33, "a relocation changes code or constants; compile with position-independent code";
        /// Relocations out of order, two of one word, or one of a word that is not aligned.
        BadRelocation = 34, "its relocations are out of order or not aligned";
        /// Variables of each thread that the linker lays out, which threads here do not have.
        ThreadLocal = 35, "it has thread-local variables of the linker; use those of the library";
        /// A note that does not end where its part of the file ends, or Tench's own with other contents.
        BadNote = 36, "a note in it is damaged";
        /// The program is handed over, and has more than [`MAX_LOADED`].
        TooLarge = 37, "its segments have more than 16 MiB together, which only programs of the boot archive may have";
        /// Arguments and environment do not fit into the process information block.
        ArgumentsTooLong = 14, "arguments and environment are too long";
    }
}

tench_protocol::codes! {
    /// Why a request was refused.
    pub enum Error {
        /// A stack of more than [`MAX_STACK`].
        StackTooLarge = 1, "a main thread's stack has at most 16 MiB";
        /// There is no such process.
        NoSuchProcess = 2, "no such process; `ps` lists them";
        /// Another process prepares the process.
        NotYours = 3, "another process prepares this one";
        /// The process is not in a state for this.
        WrongState = 4, "the process's state does not allow this";
        /// The archive has no such program.
        NoSuchProgram = 5, "no such program in the boot archive";
        /// The program's file has a [`Defect`].
        BadProgram = 6, "the program cannot be loaded";
        /// There is not enough memory.
        OutOfMemory = 7, "not enough memory";
        /// The table of processes is full.
        TooManyProcesses = 8, "the table of processes is full";
        /// A name, the arguments or the environment are too long.
        TextTooLong = 9, "the text is too long";
        /// A capability cannot be given in this slot.
        BadSlot = 10, "a capability cannot be given in this slot, or it is taken";
        /// The priority exceeds the caller's ceiling.
        PriorityTooHigh = 11, "the priority exceeds your ceiling";
        /// The process is no descendant, and the capability used does not permit managing others; or a power or a quota
        /// is to be passed on that the caller does not have.
        NotAllowed = 12, "this takes a power that you do not have; `caps` shows which you have";
        /// Too many threads wait.
        Full = 13, "too many threads wait; try again later";
        /// The kernel refused what should be possible.
        Internal = 15, "the kernel contradicts the process server's records; this is a defect";
        /// The server ended too often and is not started again.
        GivenUp = 17, "the server ended too often and is not started again";
        /// The process has not ended in time.
        TimedOut = 18, "the process has not ended in time";
        /// The process is `init`, `mem` or `procs`; or the monitor, and the caller is of another core.
        Essential = 16, "nothing would go on without it";
        /// The server does not run now.
        NotRunning = 19, "the server does not run; it may be about to be started again";
        /// A server of this name is started again when it ends.
        Exists = 20, "a server of this name is supervised already";
        /// A family of processes prepares others with more text than its share of the server's memory.
        TooMuchText = 21, "too many processes are prepared with too much text; start some, or give them up";
        /// A family of processes has given more capabilities to processes in preparation than its share of the server's
        /// slots.
        TooManyCapabilities = 24, "too many capabilities were given to processes in preparation; start some, or give them up";
        /// The file of a program that is handed over is larger than [`MAX_FILE`], or than was said.
        TooLarge = 22, "a program's file has at most 8 MiB, and no more bytes than were announced";
        /// A program that is handed over has no name, or one with a control character.
        BadName = 23, "a program's name is not empty and has no control characters";
        /// The program's name is not UTF-8, or the last string is not terminated.
        BadStrings = 25, "a program's name is UTF-8, and it and each argument end with a zero byte";
        /// A process is to have more slots than a CSpace can have.
        TooManySlots = 26, "a process has at most 16,777,216 slots";
    }
}
