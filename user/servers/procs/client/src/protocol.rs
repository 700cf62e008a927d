//! What travels between the process server and its clients.
//!
//! A request's label says what is asked, its words are the arguments. A reply's label is 0 for success, otherwise an
//! [`Error`]; its words are the results. *Text* in a message is one word with its length in bytes, and then its bytes,
//! eight to a word, the first in the lowest bits. *Strings* are text in which each string ends with a zero byte.
//!
//! Starting a program takes at least two calls: `Prepare` makes a record and answers its process identifier, `Append`
//! adds to arguments and environment, `Give` passes capabilities along, and `Start` loads the program and lets it run.

tench_protocol::codes! {
    /// What can be asked.
    pub enum Label {
        /// **Prepare** a process. Words: text: the program, by its path in the boot archive or by its base name (which
        /// is looked for in `bin/`). Its first argument is the text as it was given. Answers the process identifier.
        /// Errors: `NoSuchProgram`, `TooManyProcesses`, `TextTooLong`, `OutOfMemory`.
        Prepare = 1;
        /// **Append** to the arguments or the environment of a process in preparation. Words: process, [`List`], text.
        /// The text is appended as it is; the strings in it end with zero bytes, and one string can be spread over
        /// several calls. Errors: `NoSuchProcess`, `NotYours`, `WrongState`, `TextTooLong`, `OutOfMemory`.
        Append = 2;
        /// **Give** capabilities to a process in preparation. Words: process, then for each capability the slot for it:
        /// one of `EXTRA` to `EXTRA + EXTRA_COUNT - 1`, `NAMES`, `CONSOLE`, `KERNEL`, `INTERRUPT_CONTROL`, `SERVICE`.
        /// An original that is moved to `SERVICE` is revoked when the process ends.
        /// Errors: `NoSuchProcess`, `NotYours`, `WrongState`, `BadSlot`, `OutOfMemory`.
        Give = 3;
        /// **Set** how a process in preparation will run. Words: process, priority, ceiling, bytes of stack (0: as
        /// usual), flags ([`FLAG_MANAGER`]). Errors: `NoSuchProcess`, `NotYours`, `WrongState`, `PriorityTooHigh`,
        /// `NotAllowed`, `BadRequest` (a stack of more than [`MAX_STACK`]).
        Configure = 4;
        /// **Start** a process in preparation. Words: process. Errors: `NoSuchProcess`, `NotYours`, `WrongState`,
        /// `OutOfMemory`, `BadProgram` (with a word, [`Defect`]); the record is then gone.
        Start = 5;
        /// **Exit**. Words: exit code. The process and all its threads end; there is no answer.
        Exit = 6;
        /// **Kill** a process. Words: process. Errors: `NoSuchProcess`, `NotAllowed`, `WrongState` (it has ended).
        Kill = 7;
        /// **Wait** until a process has ended. Words: process. Answers as `Status` does. Errors: `NoSuchProcess`,
        /// `Full`, `OutOfMemory`.
        Wait = 8;
        /// **Status**. Words: process. Answers [`State`], what belongs to it (exit code, [`FaultKind`]), parent,
        /// priority, ticks of processor time of its main thread, size of the program in bytes, text: name.
        /// Errors: `NoSuchProcess`.
        Status = 9;
        /// **Next process**. Words: a number. Answers the process with the next higher number: the number, then as
        /// `Status`. Errors: `NoSuchProcess` when there is none.
        Next = 10;
        /// **Find** processes by name. Words: a number, text: path or base name. Answers the living process of that
        /// name with the next higher number. Errors: `NoSuchProcess` when there is none.
        Find = 11;
        /// **Suspend** the main thread. Words: process. Errors: `NoSuchProcess`, `NotAllowed`, `WrongState`.
        Suspend = 12;
        /// **Resume** the main thread. Words: process. Errors: `NoSuchProcess`, `NotAllowed`, `WrongState`.
        Resume = 13;
        /// **Capabilities** of a process. Words: process, capability address to begin at. Answers the address to go on
        /// at (0: that was all), and for each capability, at most [`CAPABILITIES_PER_ANSWER`], six words: address,
        /// kind, rights, log2 of size, badge, physical address or interrupt number. Errors: `NoSuchProcess`,
        /// `NotAllowed`, `WrongState`.
        Capabilities = 14;
        /// **List** the boot archive. Words: index of a file. Answers its size in bytes, and text: its path.
        /// Errors: `NoSuchFile` when there are no more.
        File = 15;
        /// **Read** a file of the boot archive. Words: offset in bytes, text: path. Answers the size of the file in
        /// bytes, and text: what lies at the offset, at most [`MAX_FILE_TEXT`] bytes, none at the end. Errors:
        /// `NoSuchFile`.
        ReadFile = 16;
        /// **Abandon** a process in preparation. Words: process. Errors: `NoSuchProcess`, `NotYours`, `WrongState`.
        Abandon = 17;
        /// **Limit** the memory of a process, in preparation or running. Words: process, bytes (all ones: no limit). What
        /// it has beyond the limit it keeps. A child may have as much as its parent unless this is said.
        /// Errors: `NoSuchProcess`, `NotAllowed` (also for more than the caller may have), `WrongState`.
        Limit = 18;
        /// **Fault**: end as after a fault for which the process itself found no remedy. Words: class, address, instruction,
        /// syndrome (as in a fault message of the kernel), [`FaultKind`], [`RegionKind`], first address of the region and
        /// its size in bytes (three zeros: what lies there is known here). There is no answer.
        Fault = 19;
    }
}

tench_protocol::codes! {
    /// What a process calls a part of its address space that it made itself.
    pub enum RegionKind {
        /// Memory for whatever.
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
    /// The lists of strings that a process is started with.
    pub enum List {
        /// Arguments after the program's name.
        Arguments = 0;
        /// Environment: `NAME=value`. A process that is given none inherits nothing.
        Environment = 1;
    }
}

/// Processes that the process server did not start itself.
pub mod pid {
    /// `init`, which the kernel starts.
    pub const INIT: u64 = 1;
    /// The memory server, which `init` starts.
    pub const MEM: u64 = 2;
    /// The process server, which `init` starts.
    pub const PROCS: u64 = 3;
}

/// In `Configure`: the process may kill, suspend, resume and inspect every other one, not only its descendants. Only a
/// process that may do so itself can pass it on.
pub const FLAG_MANAGER: u64 = 1;
/// Largest stack of a main thread, in bytes.
pub const MAX_STACK: u64 = 16 << 20;
/// Bytes of the longest program name.
pub const MAX_NAME: usize = 255;
/// Bytes of text in one `Append`.
pub const MAX_APPEND: usize = 448;
/// Bytes of text in one answer to `ReadFile`.
pub const MAX_FILE_TEXT: usize = 448;
/// Capabilities described in one answer.
pub const CAPABILITIES_PER_ANSWER: usize = 10;
/// Words per capability in an answer to `Capabilities`.
pub const WORDS_PER_CAPABILITY: usize = 6;

tench_protocol::codes! {
    /// What became of a process.
    pub enum State {
        /// Not started yet.
        Preparing = 0;
        /// Started and not ended.
        Running = 1;
        /// Its main thread is suspended.
        Suspended = 2;
        /// It has ended by itself; its exit code belongs to the state.
        Exited = 3;
        /// Somebody killed it.
        Killed = 4;
        /// A fault ended it; a [`FaultKind`] belongs to the state.
        Faulted = 5;
    }
}

impl State {
    /// Whether the process has ended.
    pub const fn has_ended(self) -> bool {
        matches!(self, State::Exited | State::Killed | State::Faulted)
    }
}

tench_protocol::codes! {
    /// What a fault was.
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
        /// A breakpoint with nobody who waits for it.
        Breakpoint = 9, "breakpoint";
        /// A system call of another system.
        ForeignCall = 10, "foreign system call";
        /// Any other exception.
        Other = 11, "exception";
        /// An access to memory that comes on demand, and none is left.
        OutOfMemory = 12, "out of memory";
        /// A page fault in memory of the process's own while one of its threads handled a fault or a foreign system
        /// call: page faults are not handled then.
        InHandler = 13, "page fault in a fault handler";
    }
}

tench_protocol::codes! {
    /// What is wrong with a program's file.
    pub enum Defect {
        /// Not an ELF file, or cut off.
        NotElf = 1, "not an ELF file, or a damaged one";
        /// For another machine or another class.
        WrongMachine = 2, "not a 64-bit little-endian AArch64 program";
        /// Not an executable file with fixed addresses.
        NotExecutable = 3, "not a statically linked executable";
        /// No loadable segment.
        NoSegments = 4, "nothing to load";
        /// More loadable segments than the process information page describes.
        TooManySegments = 5, "too many segments";
        /// A segment's bytes lie outside the file.
        SegmentOutsideFile = 6, "a segment lies outside the file";
        /// A segment's size in the file exceeds its size in memory, or the sizes overflow.
        BadSegmentSize = 7, "a segment's sizes contradict each other";
        /// A segment lies outside what programs can use, or where the loader puts things.
        BadAddress = 8, "a segment lies outside the addresses for programs";
        /// Two segments share a page.
        SegmentsOverlap = 9, "two segments share a page";
        /// A segment is both writable and executable.
        WritableAndExecutable = 10, "a segment is writable and executable";
        /// A segment is not readable.
        NotReadable = 11, "a segment is not readable";
        /// The first instruction lies in no executable segment.
        BadEntry = 12, "the entry point lies in no executable segment";
        /// The program needs a dynamic linker.
        NeedsInterpreter = 13, "it needs a dynamic linker; link it statically";
        /// Arguments and environment do not fit into the process information block.
        ArgumentsTooLong = 14, "arguments and environment are too long";
    }
}

tench_protocol::codes! {
    /// Why a request was refused.
    pub enum Error {
        /// The label, the number of words or the text is wrong.
        BadRequest = 1, "the process server does not know this request; see its protocol";
        /// There is no such process.
        NoSuchProcess = 2, "no such process; `ps` lists them";
        /// Somebody else prepares the process.
        NotYours = 3, "another process prepares this one";
        /// The process is not in a state for this.
        WrongState = 4, "the process's state does not allow this";
        /// The archive has no such program.
        NoSuchProgram = 5, "no such program in the boot archive";
        /// The program cannot be loaded.
        BadProgram = 6, "the program cannot be loaded";
        /// There is not enough memory.
        OutOfMemory = 7, "not enough memory";
        /// The table of processes is full.
        TooManyProcesses = 8, "the table of processes is full";
        /// A name, the arguments or the environment are too long.
        TextTooLong = 9, "the text is too long";
        /// A capability cannot be given in this slot.
        BadSlot = 10, "a capability cannot be given in this slot, or it is taken";
        /// The priority exceeds the ceiling of whoever asks.
        PriorityTooHigh = 11, "the priority exceeds your ceiling";
        /// The process is neither a descendant nor may the caller manage others.
        NotAllowed = 12, "not one of your processes, and you may not manage others";
        /// Too many threads wait.
        Full = 13, "too many threads wait; try again later";
        /// There is no such file.
        NoSuchFile = 14, "no such file in the boot archive";
        /// The kernel refused what should be possible.
        Internal = 15, "the kernel contradicts the process server's books; this is a defect";
        /// The process is `init`, `mem` or `procs`.
        Essential = 16, "nothing would go on without it";
    }
}
