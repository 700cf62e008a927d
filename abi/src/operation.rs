//! The table of system calls. Each entry says what it takes, needs, does and answers.
//!
//! Notation: `cap` is `x0`; further arguments are listed from `x1` on. *Space* arguments name the root node of a
//! capability space, or 0 for the caller's own; *address* arguments are [`CapAddress`](crate::CapAddress)es in it.
//! Every operation can answer `InvalidCapability`, `WrongType` and `MissingRights` for its capability, and
//! `InvalidArgument` for a number outside its range; only further errors are listed.
//!
//! A capability to the kernel that has no badge permits every operation for which it has the right. One that has a
//! badge permits those for which a power is named beside the right, if its badge has that ([`Powers`](crate::Powers));
//! the others answer `MissingRights`.

/// Defines [`Operation`] and its conversions from one list.
macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        /// Operation numbers; travel in `x10`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u64)]
        pub enum Operation { $($(#[$doc])* $name = $code,)* }

        impl Operation {
            /// Every operation, in order of its number.
            pub const ALL: &'static [Operation] = &[$(Operation::$name,)*];

            /// One more than the largest number.
            pub const LIMIT: usize = Self::ALL[Self::ALL.len() - 1] as usize + 1;

            /// The operation with this number.
            pub const fn from_code(code: u64) -> Option<Operation> {
                match code { $($code => Some(Operation::$name),)* _ => None }
            }

            /// Its name, as the manual and traces spell it.
            pub const fn name(self) -> &'static str {
                match self { $(Operation::$name => stringify!($name),)* }
            }
        }
    };
}

operations! {
    // ── Messages ─────────────────────────────────────────────────────────────────────────────────────────────────
    /// **Call** an endpoint and wait for the reply.
    /// `cap` endpoint (`WRITE` and `CALL`; `GRANT` to send capabilities), tag, words; `x12` deadline if tag `D`.
    /// Answers the reply's tag and words. A receiver waits with a reply object that now holds the caller.
    /// Errors: `MessageTooLong`, `NoMessageArea`, `TimedOut`, `Aborted` (endpoint, reply object or server deleted).
    Call = 0;
    /// **Reply** to the caller held in the reply object **and receive** the next message. `cap` endpoint (`READ`), tag
    /// and words of the reply; `x11` reply object if tag `R`, else the bound one; `x12` deadline of the receive if tag
    /// `D`, which is an alarm if tag `A`. Answers badge, tag and words. An empty reply object is no error: there is
    /// nothing to answer (the caller gave up). The same reply object then holds the next caller, who helps, unless
    /// `x11` lacks `CALL`.
    /// Errors: those of `Receive`, and `MessageTooLong`, `NoMessageArea`.
    ReplyReceive = 1;
    /// **Receive** from an endpoint, or wait for a notification.
    /// `cap` endpoint or notification (`READ`), tag (flags `D`, `A`, `R` only); `x11`, `x12` as in `ReplyReceive`.
    /// Answers badge, tag and words. If a notification is bound to the thread, its signal ends the wait too: tag `N`,
    /// badge = its word, which becomes 0.
    /// Errors: `NoReplyObject` (none is bound or named; an endpoint needs one), `ReplyInUse` (it holds a caller, or
    /// another thread uses it), `TimedOut`, `Aborted`.
    Receive = 2;
    /// **Send** a message and wait until it is taken; no reply.
    /// `cap` endpoint (`WRITE`; `GRANT` to send capabilities), tag, words; `x12` deadline if tag `D`.
    /// Errors: `CallsOnly` (a thread serves the endpoint), `MessageTooLong`, `NoMessageArea`, `TimedOut`, `Aborted`.
    Send = 3;
    /// **Send if somebody waits** to receive; otherwise `WouldBlock`. Otherwise as `Send`.
    TrySend = 4;
    /// **Receive if something is there**; otherwise `WouldBlock`. Otherwise as `Receive`.
    TryReceive = 5;
    /// **Reply** without receiving. `cap` reply object (`WRITE`), or 0 for the bound one; tag, words.
    /// Errors: `NoCaller`, `NoReplyObject`, `MessageTooLong`, `NoMessageArea`.
    Reply = 6;
    /// **Yield** to the next thread of equal priority. No arguments, no errors.
    Yield = 7;
    /// **Signal** a notification: its word is OR-ed with the capability's badge (1 if the badge is 0), and a waiter or
    /// the bound receiver wakes. `cap` notification (`WRITE`), or a doorbell (`WRITE`): its core is interrupted on its
    /// line. Never waits.
    Signal = 8;

    // ── Untyped memory ───────────────────────────────────────────────────────────────────────────────────────────
    /// **Retype** part of an untyped into `count` objects side by side.
    /// `cap` untyped (`WRITE`), x1 [`Kind`](crate::Kind), x2 size (see `Kind::object_bits`), x3 count (1 to 256),
    /// x4 place (offset in bytes, or [`WATERMARK`](crate::layout::WATERMARK)), x5 destination space, x6 address of
    /// the first of `count` empty slots of one node.
    /// Answers x1 = the offset of the first object. Memory that is not device memory is zero in the new objects.
    /// Errors: `OutOfMemory` (beyond the end), `Overlap` (`place` is in use), `Misaligned`, `DeviceMemory`,
    /// `SlotOccupied`, `NoSuchSlot`, `Lent` (to another core).
    UntypedRetype = 16;
    /// **Account** of an untyped. `cap` untyped (`READ`).
    /// Answers x1 log2 of size, x2 watermark in bytes, x3 flags (bit 0: device memory).
    UntypedQuery = 17;
    /// **Split** an untyped in two. `cap` untyped (`WRITE`), x1 destination space, x2 address of an empty slot there.
    /// The capability named becomes one to the lower half, that to the upper half goes to the slot. What was made of
    /// the untyped stays and belongs to the half in which it lies; a half in which nothing lies has watermark 0. A
    /// `Revoke` of the untyped that is under way ends.
    /// Errors: `Overlap` (something made of it lies in both halves), `InvalidArgument` (a half would be smaller than
    /// the smallest untyped), `SlotOccupied`, `NoSuchSlot`, `Lent` (to another core).
    UntypedSplit = 18;
    /// **Count** what was made directly of an untyped. `cap` untyped (`READ`).
    /// Answers x1 objects, x2 their bytes. An object counts once, however many capabilities to it there are; what was
    /// made of an untyped among them does not count; memory that a retype prepares counts as one object.
    /// Passes windows: if others change the untyped meanwhile, each part is counted at some moment during the call.
    /// Errors: `Aborted` (the untyped was deleted, moved or split meanwhile).
    UntypedChildren = 19;

    // ── Capability spaces ────────────────────────────────────────────────────────────────────────────────────────
    /// **Copy** a capability. `cap` source space, x1 source address, x2 destination space, x3 destination address.
    /// Errors: `NotCopyable`, `SlotOccupied`, `NoSuchSlot`.
    Copy = 32;
    /// **Mint**: copy with fewer rights and, for endpoints, notifications and the kernel, if the badge is 0, a badge.
    /// That of the kernel says in bits 48 to 63 what the copy permits ([`Powers`](crate::Powers)). Arguments as `Copy`,
    /// then x4 mask of rights, x5 badge (0 keeps it; must be 0 for other kinds).
    /// Errors: as `Copy`; `InvalidArgument` for a badge on a badged capability.
    Mint = 33;
    /// **Move** a capability. Arguments and errors as `Copy`, except `NotCopyable`.
    Move = 34;
    /// **Delete** the capability in a slot; the object goes with its last one. `cap` space, x1 address, x2 a capability
    /// to the kernel with the power `memory`, or 0. Answers x1 = 0 if other capabilities to the object remain, else 1
    /// and x2 physical address (0 if x2 was), x3 log2 of size of the memory that became free (size 0: the object had
    /// none). Passes windows.
    /// Errors: `MissingRights` (x2 does not permit to be told addresses; nothing was deleted); `ForeignCopies`: the
    /// capability is a stand-in for copies on other cores; or it is the last to a node in which such lie. Then all else
    /// in that is deleted. What is left cannot be used or named any more, and its memory stays in use until the
    /// kernel's end: nobody can say what became of the copies.
    Delete = 35;
    /// **Revoke**: delete everything derived from the capability (copies made from it, and what was retyped from it
    /// or mapped of it), not itself. `cap` space, x1 address. Answers x1 = capabilities deleted. Passes windows.
    /// Errors: `ForeignCopies` (there are copies on other cores; all on this core that could go is gone).
    Revoke = 36;
    /// **Identify** what is in a slot. `cap` space, x1 address, x2 a capability to the kernel with the power `memory`,
    /// or 0. Answers x1 kind, x2 rights, x3 log2 of size in bytes, x4 badge, x5 physical address of untyped memory, a
    /// frame or what a mapping shows (0 if x2 was), interrupt number for interrupts, otherwise 0; a `Null` kind for an
    /// empty slot.
    /// Errors: `MissingRights` (x2 does not permit to be told addresses).
    Identify = 37;
    /// **Install** a second-level node: moves the capability to a node of 256 slots into entry x1 of the root.
    /// `cap` space, x1 index, x2 address of the node's capability in the caller's space.
    /// Errors: `SlotOccupied`, `WrongType`.
    NodeInstall = 38;
    /// **Take out** the second-level node at entry x1. `cap` space, x1 index, x2 destination address in the caller's
    /// own space. Errors: `SlotOccupied`, `NoSuchSlot`.
    NodeRemove = 39;
    /// **Delete in parts**: as `Delete`, and x2 is how many windows it passes at most. Before the first and after each
    /// it deletes as much as `Delete` does there, so a part takes a bounded time, and a server that is asked to delete
    /// answers others between two parts. Answers as `Delete` without an address.
    /// Errors: as `Delete`; `Unfinished` (there is more to do: what is left can only be deleted further).
    DeletePart = 40;
    /// **Revoke in parts**: as `Revoke`, and x2 is how many windows it passes at most, not counting those in which it
    /// finds nothing but stand-ins. Each part deletes something. Answers x2 = windows passed, besides.
    /// Errors: as `Revoke`; `Unfinished` (there is more to delete).
    RevokePart = 41;

    // ── Mappings ─────────────────────────────────────────────────────────────────────────────────────────────────
    /// **Map** part of a frame into `count` neighbouring entries of one table.
    /// `cap` frame (`READ`; `WRITE`, `EXECUTE` as the flags ask), x1 page table, x2 first entry, x3 count, x4 offset
    /// in the frame in bytes, x5 [`MapFlags`](crate::memory::MapFlags), x6 empty slot for the mapping.
    /// A table of level 3, 2, 1 takes pages of 4 KiB, 2 MiB, 1 GiB. Passes windows.
    /// Errors: `AlreadyMapped`, `Misaligned`, `SlotOccupied`, `NoSuchSlot`.
    FrameMap = 48;
    /// **Protect**: give the entries of a mapping other rights, at most those it was made with. `cap` mapping,
    /// x1 flags. Passes windows.
    MappingProtect = 49;
    /// **Describe** a mapping. Answers x1 first entry, x2 count, x3 flags, x4 virtual address, or all ones if its table
    /// is in no address space.
    MappingQuery = 50;
    /// **Hang** a table into an entry of a table one level up. `cap` table (`WRITE`), x1 parent table, x2 entry.
    /// Errors: `AlreadyMapped` (the entry or this table).
    PageTableMap = 51;
    /// **Take** a table out of its parent. `cap` table (`WRITE`). Errors: `NotMapped`.
    PageTableUnmap = 52;

    // ── Threads ──────────────────────────────────────────────────────────────────────────────────────────────────
    /// **Configure** where a thread lives. `cap` thread (`WRITE`), x1 root node of its capability space, x2 table of
    /// level 0, x3 frame with its message area (0: none), x4 offset of the area in the frame (multiple of 1,024). The
    /// thread must be suspended. The thread keeps copies of these capabilities. If it belongs to no account it belongs
    /// to the caller's from now on. If x2 has an account and that is another, x2 has to have `GRANT`, and the thread
    /// belongs to that; otherwise it is refused with `MissingRights`.
    /// Errors: `WrongState`, `Misaligned`, `DeviceMemory`.
    ThreadConfigure = 64;
    /// **Bind** a scheduling context, reply object and notification to a thread; 0 leaves as it is, all ones unbinds.
    /// `cap` thread (`WRITE`), x1 scheduling context, x2 reply object, x3 notification (`READ`).
    /// Errors: `AlreadyBound`, `Busy` (reply object holds a caller).
    ThreadBind = 65;
    /// **Direct** a class of faults. `cap` thread (`WRITE`), x1 [`Class`](crate::fault::Class), x2 endpoint (`WRITE`
    /// and `CALL`; 0: none), x3 upcall entry point (0: none), x4 upcall stack pointer (0: the stack in use). With
    /// neither, a fault stops the thread in state `Faulted`, and after a timeout it waits for budget. Errors: none
    /// further.
    ThreadFaults = 66;
    /// **Resume** a suspended, faulted or new thread. `cap` thread (`WRITE`). Errors: `NotConfigured`.
    ThreadResume = 67;
    /// **Suspend** a thread, whatever it does; a wait ends with `Aborted`. `cap` thread (`WRITE`).
    ThreadSuspend = 68;
    /// **Read** a suspended thread's registers into the caller's message area. `cap` thread (`READ`), x1 flags
    /// (bit 0: suspend it first). Errors: `NoMessageArea`, `WrongState`.
    ThreadReadRegisters = 69;
    /// **Write** a suspended thread's registers from the caller's message area. `cap` thread (`WRITE`), x1 flags
    /// (bit 0: resume it afterwards). Errors: `NoMessageArea`, `WrongState`, `NotConfigured`.
    ThreadWriteRegisters = 70;
    /// **Describe** a thread. `cap` thread (`READ`). Answers x1 [`ThreadState`](crate::object::ThreadState), x2 the
    /// priority at which it runs (0 also if it cannot), x3 ticks that its own scheduling context has consumed, x4
    /// deepest use of its kernel stack in bytes, x5 the fault address if it is `Faulted`, x6 the fault's instruction,
    /// x7 syndrome.
    ThreadQuery = 71;
    /// **Return from an upcall**: loads all registers from the caller's message area and clears `upcall_running`.
    /// Errors: `NoMessageArea`.
    UpcallReturn = 72;
    /// **Serve**: says that a thread serves an endpoint. From now on the first who waits there to be received helps it:
    /// it runs on his scheduling context, if that has a higher priority, as it does on that of the caller whose message
    /// it has taken last. `cap` thread (`WRITE`), x1 endpoint (`READ`; 0: none), x2 depth: how many servers deep its
    /// own calls go while it serves (0 to [`MAX_DEPTH`](crate::object::MAX_DEPTH)). The kernel keeps room for so many
    /// behind it in a chain of threads that help each other: a caller who comes with a longer chain than that leaves
    /// stops helping. A thread serves one endpoint, and an endpoint has one thread.
    /// Errors: `AlreadyBound` (the thread serves one, or the endpoint has a thread), `InvalidArgument` (the depth).
    ThreadServe = 73;

    // ── Time ─────────────────────────────────────────────────────────────────────────────────────────────────────
    /// **Configure** a scheduling context. `cap` scheduling context (`WRITE`), x1 priority, x2 ceiling, x3 time slice
    /// in ticks (0: none, so whoever runs on it makes room for equals only when it waits or yields), x4 scheduling
    /// context (`WRITE`) that authorises it (0: the caller's own): priority and ceiling may not exceed its ceiling. If
    /// one of them is equal to that, the slice may not be longer than the authority's, and none is longer than any; if
    /// both are below, it may be. A new scheduling context has priority 0, ceiling 0 and a slice of one tick. Errors:
    /// `InvalidArgument` (a priority or ceiling above 255), `PriorityTooHigh`, `SliceTooLong`.
    SchedulingConfigure = 80;
    /// **Describe** a scheduling context (`READ`). Answers x1 priority, x2 ceiling, x3 time slice, x4 ticks consumed,
    /// x5 budget, x6 period (both 0 without one), x7 ticks of the budget that can be used now, x8 when more comes (a
    /// reading of the counter; 0 if none is outstanding).
    SchedulingQuery = 81;
    /// **Limit** a scheduling context to a budget in each period: in any stretch of time as long as the period, whoever
    /// runs on it gets no more than the budget. `cap` scheduling context (`WRITE`), x1 budget in ticks, x2 period in
    /// ticks (0, 0 takes the limit off), x3 scheduling context (`WRITE`) that authorises it (0: the caller's own): the
    /// priority may not exceed its ceiling. All of the new budget can be used at once. Errors: `InvalidArgument` (one
    /// of the two is 0, the budget is longer than the period or shorter than [`MIN_BUDGET`](crate::object::MIN_BUDGET),
    /// the period longer than [`MAX_PERIOD`](crate::object::MAX_PERIOD)), `PriorityTooHigh`.
    SchedulingReserve = 82;

    // ── Accounts ─────────────────────────────────────────────────────────────────────────────────────────────────
    /// **Open** the account of an address space where nobody lives yet: whoever does later belongs to it, and so do
    /// those whom one of them configures to live in a space without an account. `cap` table of level 0 (`WRITE`), x1
    /// kernel (`WRITE`, no badge). Errors: `AlreadyBound`, `Busy` (a thread lives there).
    AccountOpen = 88;
    /// **Describe** an account. `cap` table of level 0 (`READ`). Answers x1 ticks that the scheduling contexts of its
    /// threads have used, those of threads that are gone included, x2 threads, x3 1 if it is suspended. Passes windows.
    /// Errors: `NotConfigured` (it has no account).
    AccountQuery = 89;
    /// **Suspend** an account, or let it go on: none of its threads runs, nor any that joins it, until then. What they
    /// wait for goes on: a thread can be sent a message, answered, or time out, and runs when it may again. `cap` table
    /// of level 0 (`GRANT`), x1 1 or 0. Passes windows. Errors: `NotConfigured` (it has no account).
    AccountSuspend = 90;

    // ── Interrupts ───────────────────────────────────────────────────────────────────────────────────────────────
    /// **Make** the capability to one interrupt line. `cap` interrupt control, x1 number, x2 flags (bit 0: edge; bit 1:
    /// acknowledged by taking its signal, for lines below [`DOORBELLS`](crate::object::DOORBELLS)), x3 empty slot.
    /// Errors: `InvalidInterrupt`, `InvalidArgument` (no such flags, or not for this line), `Busy` (made already),
    /// `SlotOccupied`, `NoSuchSlot`.
    InterruptGet = 96;
    /// **Bind** an interrupt to a notification, which is signalled with the badge of the capability given. `cap`
    /// interrupt (`WRITE`), x1 notification (`WRITE`; 0 unbinds). Enables the line. Errors: `AlreadyBound`.
    InterruptBind = 97;
    /// **Acknowledge**: lets the next interrupt of the line in. `cap` interrupt (`WRITE`). Does nothing if the line is
    /// acknowledged by taking its signal: then it is let in when a thread receives the notification's word, or is
    /// waiting for that already.
    InterruptAcknowledge = 98;
    /// **Make** the capability to ring another core (or the own one): `Signal` with it interrupts that core on the
    /// line, where `InterruptGet` makes the capability to hear it. Those that were made for one core and line are to
    /// one object, so a `Revoke` with any of them deletes the others. `cap` interrupt control (`WRITE`), x1 core, x2
    /// line (below [`DOORBELLS`](crate::object::DOORBELLS)), x3 empty slot. Errors: `NoSuchCore`, `InvalidArgument` (no
    /// such line), `SlotOccupied`, `NoSuchSlot`.
    InterruptDoorbell = 99;

    // ── Other cores' capabilities ────────────────────────────────────────────────────────────────────────────────
    /// **Export**: marks a capability as the stand-in of copies on other cores. `cap` kernel (`WRITE`, no badge), x1
    /// space (`WRITE`), x2 address of a capability to a frame, to an endpoint, or to an untyped of which nothing was
    /// made. While it is marked it cannot be deleted; an untyped has no `WRITE` and cannot be retyped or split; and a
    /// `Revoke` that would delete it, or is of it, deletes all else and then answers `ForeignCopies`. It can be moved,
    /// and copies made of it are not marked. An object has one stand-in, an endpoint one for each badge. The mark keeps
    /// its memory in use even if the node in which it lies is deleted (see `Delete`).
    /// Errors: `WrongType` (x2 is of another kind), `Lent` (there is a stand-in already), `Busy` (something was made of
    /// the untyped), `Borrowed` (x2 was imported, or is a copy of what was), `DeviceMemory`.
    KernelExport = 104;
    /// **Take the mark away.** `cap` kernel (`WRITE`, no badge), x1 space (`WRITE`), x2 address of the stand-in.
    /// Errors: `NotExported`, `Busy` (part of the untyped was imported and is here still).
    KernelUnexport = 105;
    /// **Import**: makes the capability to memory of another core's. `cap` kernel (`WRITE`, no badge), x1 kind (frame
    /// or untyped), x2 physical address, x3 log2 of size in bytes, x4 [`Rights`](crate::Rights) (all of them for an
    /// untyped), x5 destination space, x6 address of an empty slot there. It was made of nothing here; what lies in it
    /// stays as it is. It is used like any other, and revoking it deletes its copies, its mappings and what was made of
    /// it, but it cannot be exported; what was made of it can. Whether such memory is another core's and stays so for
    /// as long as the capability is here is not known to the kernel: who has its capability answers for that.
    /// Errors: `Overlap` (part of it is memory of this kernel's that is not lent, or was imported already),
    /// `Misaligned`, `InvalidArgument` (also if not all of it is RAM), `SlotOccupied`, `NoSuchSlot`.
    KernelImport = 106;
    /// **Ask who else has an object.** `cap` kernel (`WRITE`, no badge), x1 space (`READ`), x2 address. Answers x1 = 1
    /// if there is anything else to the same object: another capability (if this one has a badge, another with that
    /// badge), a mapping, for an untyped something made of it; else 0. x2 = 1 if x2 is a stand-in, 2 if somebody has
    /// also tried to delete it, as `Delete` or what a `Revoke` comes to, since it was exported, else 0. x3 = 1 if it
    /// was imported or is a copy of what was, else 0. x4 = for an endpoint or a notification, the physical address of
    /// the object, by which it is told from others; else 0. Takes the same time whatever there is.
    KernelHolders = 107;

    // ── Kernel ───────────────────────────────────────────────────────────────────────────────────────────────────
    /// **Power off** with an exit status; on a core that another has started, stop that core alone. `cap` kernel
    /// (`WRITE`, `POWER`), x1 status (low 8 bits).
    KernelPowerOff = 112;
    /// **Print** up to 64 bytes on the kernel's early output. `cap` kernel (`WRITE`, no badge), x1 length, x2..x9
    /// bytes.
    KernelPrint = 113;
    /// **Statistics**. `cap` kernel (`READ`, `COUNTERS`), x1 which [`Statistic`](crate::object::Statistic). Answers x1.
    KernelQuery = 114;
    /// **How long interrupts were off.** `cap` kernel (`READ`, `COUNTERS`), x1 path
    /// ([`stretch`](crate::object::stretch)): an operation's number or one of the other ways into the kernel;
    /// `u64::MAX` forgets everything so far. A stretch begins where interrupts go off (an exception, the end of a
    /// window) and ends where they come on (user mode, a window, waiting for one); it counts for the path on which it
    /// began. Answers x1 = the longest in retired instructions, x2 = the kernel's address where that began, x3 = how
    /// many there were, x4 = the sum of their lengths, x5 = the sum of their squares. For
    /// [`stretch::TIMER`](crate::object::stretch::TIMER), x1 = the number of retired instructions when the last timer
    /// interrupt entered the kernel, and nothing else.
    /// Errors: `Unsupported` (the kernel does not measure: only those called `watching` do).
    KernelStretches = 115;
    /// **The machine.** `cap` kernel (`READ`, any power). Answers x1 = how many cores the device tree names, x2 = which
    /// of them this is, x3 = the device tree's physical address, x4 = its size in bytes; both are 0 if the capability
    /// has a badge.
    KernelMachine = 116;
    /// **Start a core** that has not been started. `cap` kernel (`WRITE`, no badge), x1 core, x2 physical address of
    /// its kernel's image, x3 physical address of its [`CoreBoot`](crate::boot::CoreBoot). Who has this capability
    /// answers for what lies there: the core runs it as a kernel, so this comes to the authority for everything, and no
    /// power stands for it. Errors: `NoSuchCore`, `CoreRunning`, `CoreRefused` (the firmware said no).
    KernelStartCore = 117;
    /// **Whether a core is on**, as the firmware says. `cap` kernel (`READ`, `CORES`), x1 core. Answers x1 = a
    /// [`CorePower`](crate::object::CorePower). A core that was never started is off, and so is one that has stopped:
    /// it executes nothing until somebody starts it. Errors: `NoSuchCore`, `CoreRefused` (the firmware does not say).
    KernelCorePower = 118;
    /// **Let programs count.** `cap` kernel (`WRITE`, `COUNTERS`), x1 1 or 0: whether all programs on this core may
    /// read the processor's counters of events and cycles, which tell them what others do. Until somebody says so they
    /// may not: a program that reads one has an exception. The system counter (`CNTVCT_EL0`) is everybody's, and
    /// `KernelQuery` tells the count of instructions.
    KernelCounters = 119;
}

impl core::fmt::Display for Operation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}
