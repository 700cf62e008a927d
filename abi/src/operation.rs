//! The table of system calls. Each entry lists an operation's arguments, required rights, effects, results and errors.
//!
//! Notation: `cap` is `x0`; further arguments are listed from `x1` on. *Space* arguments name the root node of a
//! CSpace, or 0 for the caller's own; *address* arguments are [`CapAddress`](crate::CapAddress)es in it. Every
//! operation can fail with `InvalidCapability`, `WrongType` and `MissingRights` for its capability, and with
//! `InvalidArgument` for a number outside its range; only further errors are listed.
//!
//! An unbadged capability to the kernel permits every operation for which it has the right. A badged one permits those
//! for which a power is named beside the right, if its badge has that power ([`Powers`](crate::Powers)); the others
//! fail with `MissingRights`.

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

            /// Returns the operation with this number.
            pub const fn from_code(code: u64) -> Option<Operation> {
                match code { $($code => Some(Operation::$name),)* _ => None }
            }

            /// Returns the operation's name, as the manual and traces spell it.
            pub const fn name(self) -> &'static str {
                match self { $(Operation::$name => stringify!($name),)* }
            }
        }
    };
}

operations! {
    // ── Messages ─────────────────────────────────────────────────────────────────────────────────────────────────
    /// **Call** an endpoint and wait for the reply. `cap` endpoint (`WRITE` and `CALL`; `GRANT` to send capabilities),
    /// tag, words; `x12` deadline if tag `D`. While the caller waits, the receiver's reply object holds it.
    /// Returns the reply's tag and words.
    /// Errors: `MessageTooLong`, `NoIpcBuffer`, `TimedOut`, `Aborted` (endpoint, reply object or server deleted).
    Call = 0;
    /// **Reply** to the caller held in the reply object **and receive** the next message. `cap` endpoint (`READ`), tag
    /// and words of the reply; `x11` reply object if tag `R`, else the bound one; `x12` deadline of the receive if tag
    /// `D`; the deadline is an alarm if tag `A`. An empty reply object is no error: its caller has given up, so there
    /// is nobody to reply to. The same reply object then holds the next caller, which helps the receiver unless `x11`
    /// lacks `CALL`.
    /// Returns badge, tag and words.
    /// Errors: those of `Receive`, and `MessageTooLong`, `NoIpcBuffer`.
    ReplyReceive = 1;
    /// **Receive** from an endpoint, or wait for a notification. `cap` endpoint or notification (`READ`), tag (flags
    /// `D`, `A`, `R` only); `x11`, `x12` as in `ReplyReceive`. A signal to the notification bound to the thread ends
    /// the wait too.
    /// Returns badge, tag and words; for a signal of the bound notification, tag `N` and badge = its word, which
    /// becomes 0.
    /// Errors: `NoReplyObject` (none is bound or named; an endpoint needs one), `ReplyInUse` (it holds a caller, or
    /// another thread uses it), `TimedOut`, `Aborted`.
    Receive = 2;
    /// **Return from an upcall**: load all registers from the caller's IPC buffer and clear `upcall_running`.
    /// Errors: `NoIpcBuffer`.
    UpcallReturn = 3;
    /// **Send if a receiver waits**; otherwise fail with `WouldBlock`. All else as `Send`.
    TrySend = 4;
    /// **Receive if a message or signal is waiting**; otherwise fail with `WouldBlock`. All else as `Receive`.
    TryReceive = 5;
    /// **Reply** without receiving. `cap` reply object (`WRITE`), or 0 for the bound one; tag, words.
    /// Errors: `NoCaller`, `NoReplyObject`, `MessageTooLong`, `NoIpcBuffer`.
    Reply = 6;
    /// **Yield** to the next thread of equal priority. No arguments, no errors.
    Yield = 7;
    /// **Signal** a notification: its word is OR-ed with the capability's badge (1 if the badge is 0), and a waiter or
    /// the bound receiver wakes. `cap` notification (`WRITE`), or a doorbell (`WRITE`), whose core is interrupted on
    /// the doorbell's line. Never waits.
    Signal = 8;
    /// **Send** a message and wait until it is received; there is no reply. `cap` endpoint (`WRITE`; `GRANT` to send
    /// capabilities), tag, words; `x12` deadline if tag `D`.
    /// Errors: `CallsOnly` (a thread serves the endpoint), `MessageTooLong`, `NoIpcBuffer`, `TimedOut`, `Aborted`.
    Send = 9;

    // ── Untyped memory ───────────────────────────────────────────────────────────────────────────────────────────
    /// **Retype** part of an untyped into `count` objects side by side. `cap` untyped (`WRITE`), x1
    /// [`Kind`](crate::Kind), x2 size (see `Kind::object_bits`), x3 count (1 to 256), x4 placement (offset in bytes, or
    /// [`WATERMARK`](crate::layout::WATERMARK)), x5 destination CSpace, x6 address of the first of `count` empty slots
    /// of one node. The memory of the new objects is zeroed unless it is device memory.
    /// Returns x1 = the offset of the first object.
    /// Errors: `OutOfMemory` (beyond the end), `Overlap` (the range is in use), `Misaligned`, `DeviceMemory`,
    /// `SlotOccupied`, `NoSuchSlot`, `Lent` (to another core).
    UntypedRetype = 16;
    /// **Describe** an untyped. `cap` untyped (`READ`).
    /// Returns x1 log2 of size in bytes, x2 watermark in bytes, x3 flags (bit 0: device memory).
    UntypedQuery = 17;
    /// **Split** an untyped in two. `cap` untyped (`WRITE`), x1 destination CSpace, x2 address of an empty slot there.
    /// The named capability becomes one to the lower half; a capability to the upper half goes to the slot. Objects
    /// made from the untyped stay and belong to the half in which they lie; a half without objects has watermark 0. A
    /// `Revoke` of the untyped that is under way ends.
    /// Errors: `Overlap` (an object made from it lies in both halves), `InvalidArgument` (a half would be smaller than
    /// the smallest untyped), `SlotOccupied`, `NoSuchSlot`, `Lent` (to another core).
    UntypedSplit = 18;
    /// **Count** the objects made directly from an untyped. `cap` untyped (`READ`). An object counts once, however many
    /// capabilities to it there are; objects made from an untyped among them do not count; memory that a retype
    /// prepares counts as one object. Has preemption points: if others change the untyped meanwhile, each part is
    /// counted at some moment during the call.
    /// Returns x1 number of objects, x2 their size in bytes.
    /// Errors: `Aborted` (the untyped was deleted, moved or split meanwhile).
    UntypedChildren = 19;

    // ── CSpaces ────────────────────────────────────────────────────────────────────────────────────────
    /// **Copy** a capability. `cap` source CSpace, x1 source address, x2 destination CSpace, x3 destination address.
    /// Errors: `NotCopyable`, `SlotOccupied`, `NoSuchSlot`.
    Copy = 32;
    /// **Mint**: copy with fewer rights and, for endpoints, notifications and the kernel, if the badge is 0, with a
    /// badge. Bits 48 to 63 of a badge of the kernel say what the copy permits ([`Powers`](crate::Powers)). Arguments
    /// as `Copy`, then x4 mask of rights, x5 badge (0 keeps it; must be 0 for other kinds).
    /// Errors: as `Copy`; `InvalidArgument` for a badge on a badged capability.
    Mint = 33;
    /// **Move** a capability. Arguments and errors as `Copy`, except `NotCopyable`.
    Move = 34;
    /// **Delete** the capability in a slot; the last capability to an object deletes the object. `cap` CSpace, x1
    /// address, x2 a capability to the kernel with the power `memory`, or 0. Has preemption points.
    /// Returns x1 = 0 if other capabilities to the object remain; else x1 = 1, x2 physical address (0 if argument x2
    /// was 0) and x3 log2 of size of the memory that became free (0: the object had none).
    /// Errors: `MissingRights` (x2 does not permit learning addresses; nothing was deleted); `RemoteCopies`: the
    /// capability is exported, or the last one to a node that contains such. In the latter case all other
    /// capabilities in the node are deleted. The rest cannot be used or named any more, and its memory stays in use for
    /// the kernel's lifetime, because nobody can say what became of the copies.
    Delete = 35;
    /// **Revoke**: delete everything derived from the capability (its copies, and what was retyped from it or maps it),
    /// but not the capability itself. `cap` CSpace, x1 address. Has preemption points.
    /// Returns x1 = number of capabilities deleted.
    /// Errors: `RemoteCopies` (there are copies on other cores; everything on this core that could be deleted is).
    Revoke = 36;
    /// **Identify** the capability in a slot. `cap` CSpace, x1 address, x2 a capability to the kernel with the power
    /// `memory`, or 0.
    /// Returns x1 kind, x2 rights, x3 log2 of size in bytes, x4 badge, x5 physical address of an untyped, a frame or
    /// the frame that a mapping maps (0 if argument x2 was 0), interrupt number for interrupts, otherwise 0; kind
    /// `Null` for an empty slot.
    /// Errors: `MissingRights` (x2 does not permit learning addresses).
    Identify = 37;
    /// **Install** a second-level node: moves the capability to a node of 256 slots into entry x1 of the root. `cap`
    /// CSpace, x1 index, x2 address of the node's capability in the caller's CSpace.
    /// Errors: `SlotOccupied`, `WrongType`.
    NodeInstall = 38;
    /// **Remove** the second-level node from entry x1 of the root. `cap` CSpace, x1 index, x2 destination address in
    /// the caller's own CSpace.
    /// Errors: `SlotOccupied`, `NoSuchSlot`.
    NodeRemove = 39;
    /// **Delete in parts**: as `Delete`, but x2 is the maximum number of preemption points to pass. Between two of them
    /// it deletes as much as `Delete` does, so a part takes a bounded time, and a server that is asked to delete can
    /// serve others between two parts.
    /// Returns as `Delete` without an address.
    /// Errors: as `Delete`; `Unfinished` (there is more to delete; the only thing that can be done with the rest is to
    /// delete more of it).
    DeletePart = 40;
    /// **Revoke in parts**: as `Revoke`, but x2 is the maximum number of preemption points to pass, not counting those
    /// at which it finds only exported capabilities. Each part deletes something.
    /// Returns as `Revoke`, and x2 = number of preemption points passed.
    /// Errors: as `Revoke`; `Unfinished` (there is more to delete).
    RevokePart = 41;

    // ── Mappings ─────────────────────────────────────────────────────────────────────────────────────────────────
    /// **Map** part of a frame into `count` neighbouring entries of one page table. `cap` frame (`READ`; `WRITE`,
    /// `EXECUTE` as the flags ask), x1 page table, x2 first entry, x3 count, x4 offset in the frame in bytes, x5
    /// [`MapFlags`](crate::memory::MapFlags), x6 empty slot for the mapping. A table of level 3, 2, 1 maps pages of 4
    /// KiB, 2 MiB, 1 GiB. Has preemption points.
    /// Errors: `AlreadyMapped`, `Misaligned`, `SlotOccupied`, `NoSuchSlot`.
    FrameMap = 48;
    /// **Protect**: change the rights of a mapping's entries, at most to those with which it was made. `cap` mapping,
    /// x1 flags. Has preemption points.
    /// Errors: `WrongType` (a scattered mapping: its entries' flags are set with `MappingSet`).
    MappingProtect = 49;
    /// **Describe** a mapping.
    /// Returns x1 first entry, x2 count, x3 flags, x4 virtual address, or all ones if its page table is in no address
    /// space. For a scattered mapping these are 0, the number of entries in use, the flags that they may have, and the
    /// address of the table's first entry.
    MappingQuery = 50;
    /// **Install** a page table in an entry of a table one level up. `cap` table (`WRITE`), x1 parent table, x2 entry.
    /// Errors: `AlreadyMapped` (the entry or this table).
    PageTableMap = 51;
    /// **Remove** a page table from its parent. `cap` table (`WRITE`).
    /// Errors: `NotMapped`.
    PageTableUnmap = 52;
    /// **Make a scattered mapping**: a mapping that has no entries yet, each of which `MappingSet` sets. `cap` frame
    /// (`READ`), x1 page table (`WRITE`), x2 empty slot for the scattered mapping. Its entries can have the rights of
    /// `cap`.
    /// Errors: `InvalidArgument` (a table of level 0, or a frame smaller than a page of the table), `Busy` (the
    /// table has [`MAX_SCATTERED`](crate::memory::MAX_SCATTERED)), `SlotOccupied`, `NoSuchSlot`.
    FrameScatter = 53;
    /// **Set** neighbouring entries of a scattered mapping's table, which are free or the scattered mapping's, to map
    /// neighbouring pages of its frame. `cap` scattered mapping, x1 first entry, x2 count (at most
    /// [`MAX_SET`](crate::memory::MAX_SET)), x3 offset in the frame in bytes, x4 [`MapFlags`](crate::memory::MapFlags)
    /// (0: frees the entries). Has preemption points.
    /// Errors: `AlreadyMapped` (an entry is not the scattered mapping's; nothing is changed), `Misaligned`, `WrongType`
    /// (a mapping that is no scattered mapping), `Aborted` (the scattered mapping is being deleted).
    MappingSet = 54;
    /// **Clone** entries of a scattered mapping into another of the same frame and level, at the same places. `cap`
    /// scattered mapping to be copied from, x1 scattered mapping to be copied to, x2 first entry, x3 count, x4 mask of
    /// `READ`, `WRITE`, `EXECUTE`: the copies have only flags in it; x5 1 if the scattered mapping that is copied from
    /// keeps only these, too, else 0. Skips entries that are free there, and places where the other table has
    /// something. Has preemption points.
    /// Returns x1 number of entries copied.
    /// Errors: `WrongType`, `Aborted` (a scattered mapping is deleted or moved).
    MappingClone = 55;

    // ── Threads ──────────────────────────────────────────────────────────────────────────────────────────────────
    /// **Configure** a thread's CSpace, address space and IPC buffer. `cap` thread (`WRITE`), x1 root node of its
    /// CSpace, x2 page table of level 0, x3 frame with its IPC buffer (0: none), x4 offset of the buffer in the frame
    /// (multiple of 1,024). The thread must be suspended. It keeps copies of these capabilities. A thread that belongs
    /// to no account joins the caller's account. If x2 has another account, x2 needs `GRANT`, and the thread joins that
    /// account; without `GRANT` the call fails with `MissingRights`.
    /// Errors: `WrongState`, `Misaligned`, `DeviceMemory`.
    ThreadConfigure = 64;
    /// **Bind** a scheduling context, reply object and notification to a thread; 0 leaves the binding as it is, all
    /// ones unbinds. `cap` thread (`WRITE`), x1 scheduling context, x2 reply object, x3 notification (`READ`).
    /// Errors: `AlreadyBound`, `Busy` (reply object holds a caller).
    ThreadBind = 65;
    /// **Direct** a class of faults to a handler. `cap` thread (`WRITE`), x1 [`Class`](crate::fault::Class), x2
    /// endpoint (`WRITE` and `CALL`; 0: none), x3 upcall entry point (0: none), x4 upcall stack pointer (0: the stack
    /// in use). With neither, a fault stops the thread in state `Faulted`, and after a timeout the thread waits for
    /// budget.
    /// Errors: none further.
    ThreadFaults = 66;
    /// **Resume** a suspended, faulted or new thread. `cap` thread (`WRITE`).
    /// Errors: `NotConfigured`.
    ThreadResume = 67;
    /// **Suspend** a thread in any state; a wait ends with `Aborted`. `cap` thread (`WRITE`).
    ThreadSuspend = 68;
    /// **Read** the registers of a thread that is suspended, faulted, or waits for its fault handler's reply, into the
    /// caller's IPC buffer. `cap` thread (`READ`), x1 flags (bit 0: suspend it first).
    /// Errors: `NoIpcBuffer`, `WrongState`.
    ThreadReadRegisters = 69;
    /// **Write** the registers of such a thread from the caller's IPC buffer. `cap` thread (`WRITE`), x1 flags (bit 0:
    /// resume it afterwards; a thread that waits for a reply goes on waiting; bit 1: it executes one instruction when
    /// it goes on, and raises an exception of the class 0x32, [`STEP_CLASS`](crate::fault::STEP_CLASS)).
    /// Errors: `NoIpcBuffer`, `WrongState`, `NotConfigured`.
    ThreadWriteRegisters = 70;
    /// **Describe** a thread. `cap` thread (`READ`).
    /// Returns x1 [`ThreadState`](crate::object::ThreadState), x2 the priority at which it runs (0 also if it cannot
    /// run), x3 ticks that its own scheduling context has consumed, x4 deepest use of its kernel stack in bytes, x5 the
    /// fault address if it is `Faulted`, x6 the address of the faulting instruction, x7 syndrome.
    ThreadQuery = 71;
    /// **Serve** an endpoint: from now on the first sender in the endpoint's queue helps the thread, as does the caller
    /// whose message the thread has received last: the thread runs on that sender's scheduling context if it has a
    /// higher priority. `cap` thread (`WRITE`), x1 endpoint (`READ`; 0: none), x2 depth: how many servers deep its own
    /// calls go while it serves (0 to [`MAX_DEPTH`](crate::object::MAX_DEPTH)). The kernel reserves room for that many
    /// threads behind it in a chain of threads that help each other: a caller with a chain too long for the remaining
    /// room stops helping. A thread serves one endpoint, and an endpoint has one serving thread.
    /// Errors: `AlreadyBound` (the thread serves one, or the endpoint has a thread), `InvalidArgument` (the depth).
    ThreadServe = 73;
    /// **Read** the floating-point registers of a thread, like `ThreadReadRegisters`, into the words of the
    /// caller's IPC buffer: `q0` to `q31`, two words each, the low one first. `cap` thread (`READ`).
    /// Returns x1 `FPSR`, x2 `FPCR`.
    /// Errors: `NoIpcBuffer`, `WrongState`.
    ThreadReadFloat = 74;
    /// **Write** the floating-point registers of a thread, like `ThreadWriteRegisters`, from there. `cap` thread
    /// (`WRITE`), x1 `FPSR`, x2 `FPCR`.
    /// Errors: `NoIpcBuffer`, `WrongState`.
    ThreadWriteFloat = 75;

    // ── Time ─────────────────────────────────────────────────────────────────────────────────────────────────────
    /// **Configure** a scheduling context. `cap` scheduling context (`WRITE`), x1 priority, x2 ceiling, x3 time slice
    /// in ticks (0: none, so a thread that runs on it makes room for threads of equal priority only when it waits or
    /// yields), x4 scheduling context (`WRITE`) that authorises it (0: the caller's own): priority and ceiling may not
    /// exceed its ceiling. If one of them equals that ceiling, the slice may not be longer than the authority's, where
    /// no slice counts as longer than any; if both are below, it may be. A new scheduling context has priority 0,
    /// ceiling 0 and a slice of one tick.
    /// Errors: `InvalidArgument` (a priority or ceiling above 255), `PriorityTooHigh`, `SliceTooLong`.
    SchedulingConfigure = 80;
    /// **Describe** a scheduling context (`READ`).
    /// Returns x1 priority, x2 ceiling, x3 time slice, x4 ticks consumed, x5 budget, x6 period (both 0 without one), x7
    /// ticks of the budget that can be used now, x8 time of the next refill (a reading of the counter; 0 if none is
    /// outstanding).
    SchedulingQuery = 81;
    /// **Limit** a scheduling context to a budget in each period: in any interval as long as the period, threads run on
    /// it for no longer than the budget. `cap` scheduling context (`WRITE`), x1 budget in ticks, x2 period in ticks (0,
    /// 0 removes the limit), x3 scheduling context (`WRITE`) that authorises it (0: the caller's own): the priority may
    /// not exceed its ceiling. All of the new budget is usable at once.
    /// Errors: `InvalidArgument` (one of the two is 0, the budget is longer than the period or shorter than
    /// [`MIN_BUDGET`](crate::object::MIN_BUDGET), the period longer than [`MAX_PERIOD`](crate::object::MAX_PERIOD)),
    /// `PriorityTooHigh`.
    SchedulingReserve = 82;

    // ── Accounts ─────────────────────────────────────────────────────────────────────────────────────────────────
    /// **Open** the account of an address space without threads: threads that are configured with it later belong to
    /// the account, and so do threads that one of them configures with an address space without an account. `cap` page
    /// table of level 0 (`WRITE`), x1 kernel (`WRITE`, no badge).
    /// Errors: `AlreadyBound`, `Busy` (the address space has a thread).
    AccountOpen = 88;
    /// **Describe** an account. `cap` page table of level 0 (`READ`). Has preemption points.
    /// Returns x1 ticks that the scheduling contexts of its threads have consumed, including those of deleted threads,
    /// x2 number of threads, x3 1 if it is suspended.
    /// Errors: `NotConfigured` (it has no account).
    AccountQuery = 89;
    /// **Suspend** an account, or resume it: while it is suspended, none of its threads runs, nor any that joins it.
    /// Their waits continue: a thread can receive a message or a reply or time out, and runs when the account is
    /// resumed. `cap` page table of level 0 (`GRANT`), x1 1 or 0. Has preemption points.
    /// Errors: `NotConfigured` (it has no account).
    AccountSuspend = 90;

    // ── Interrupts ───────────────────────────────────────────────────────────────────────────────────────────────
    /// **Make** the capability to one interrupt line of this core, and route the line to this core. `cap` interrupt
    /// control, x1 number, x2 flags (bit 0: edge; bit 1: acknowledged by taking its signal, for lines below
    /// [`DOORBELLS`](crate::object::DOORBELLS)), x3 empty slot. Only the first core's kernel changes what triggers a
    /// line; on other cores, bit 0 must be as the device tree says.
    /// Errors: `InvalidInterrupt` (also if the line is another core's), `InvalidArgument` (no such flags, or not for
    /// this line), `Busy` (made already), `SlotOccupied`, `NoSuchSlot`.
    InterruptGet = 96;
    /// **Bind** an interrupt to a notification, which is signalled with the badge of the given capability. `cap`
    /// interrupt (`WRITE`), x1 notification (`WRITE`; 0 unbinds). Enables the line.
    /// Errors: `AlreadyBound`.
    InterruptBind = 97;
    /// **Acknowledge** an interrupt: lets the next interrupt of the line in. `cap` interrupt (`WRITE`). Does nothing if
    /// the line is acknowledged by taking its signal: then the next interrupt is let in when a thread receives the
    /// notification's word, or at once if a thread already waits for it.
    InterruptAcknowledge = 98;
    /// **Make** the capability to a doorbell of another core or of this one: `Signal` with it interrupts that core on
    /// the line; `InterruptGet` on that core makes the capability to listen to the line. All doorbell capabilities for
    /// the same core and line are to one object, so a `Revoke` with any of them deletes the others. `cap` interrupt
    /// control (`WRITE`), x1 core, x2 line (below [`DOORBELLS`](crate::object::DOORBELLS)), x3 empty slot.
    /// Errors: `NoSuchCore`, `InvalidArgument` (no such line), `SlotOccupied`, `NoSuchSlot`.
    InterruptDoorbell = 99;

    // ── Other cores' capabilities ────────────────────────────────────────────────────────────────────────────────
    /// **Export**: mark a capability as exported, on behalf of its copies on other cores. `cap` kernel (`WRITE`, no
    /// badge), x1 CSpace (`WRITE`), x2 address of a capability to a frame, or to an untyped from which nothing was
    /// made. While it is marked it cannot be deleted; an untyped has no `WRITE` and cannot be retyped or split; and a
    /// `Revoke` that would delete it, or is of it, deletes all else and then fails with `RemoteCopies`. It can be
    /// moved, and copies made from it are not marked. An object has one exported capability. The mark keeps its memory
    /// in use even if the node in which it lies is deleted (see `Delete`).
    /// Errors: `WrongType` (x2 is neither a frame nor an untyped: only memory is exported), `Lent` (there is an
    /// exported capability already), `Busy` (something was made from the untyped), `Borrowed` (x2 was imported, or is
    /// a copy of an imported capability), `DeviceMemory`.
    KernelExport = 104;
    /// **Unexport**: remove the mark from an exported capability. `cap` kernel (`WRITE`, no badge), x1 CSpace
    /// (`WRITE`), x2 address of the exported capability.
    /// Errors: `NotExported`, `Busy` (part of the untyped was imported and is still here).
    KernelUnexport = 105;
    /// **Import**: make the capability to memory of another core. `cap` kernel (`WRITE`, no badge), x1 kind (frame or
    /// untyped), x2 physical address, x3 log2 of size in bytes, x4 [`Rights`](crate::Rights) (all of them for an
    /// untyped), x5 destination CSpace, x6 address of an empty slot there. The capability is derived from none on this
    /// core; the memory's contents stay as they are. It is used like any other, and revoking it deletes its copies, its
    /// mappings and the objects made from it. It cannot be exported itself; objects made from it can. The kernel does
    /// not know whether such memory belongs to another core and stays so for as long as the capability exists here: the
    /// holder of the kernel's capability is responsible for that.
    /// Errors: `Overlap` (part of it is memory of this kernel that is not lent, or was imported already), `Misaligned`,
    /// `InvalidArgument` (also if not all of it is RAM), `SlotOccupied`, `NoSuchSlot`.
    KernelImport = 106;
    /// **Query the holders** of an object. `cap` kernel (`WRITE`, no badge), x1 CSpace (`READ`), x2 address. Takes the
    /// same time in every case.
    /// Returns x1 = 1 if the object is otherwise referenced: by another capability (if this one has a badge, by another
    /// with that badge), by a mapping, or, for an untyped, by an object made from it; else 0. x2 = 1 if argument x2 is
    /// an exported capability, 2 if since the export a `Delete` or `Revoke` has also tried to delete it, else 0. x3 = 1
    /// if it was imported or is a copy of an imported capability, else 0. x4 = for an endpoint or a notification, the
    /// physical address of the object, which identifies it; else 0.
    KernelHolders = 107;

    // ── Kernel ───────────────────────────────────────────────────────────────────────────────────────────────────
    /// **Power off** with an exit status; on a core that another core has started, stop only that core. `cap` kernel
    /// (`WRITE`, `POWER`), x1 status (low 8 bits).
    KernelPowerOff = 112;
    /// **Print** up to 64 bytes on the kernel's early output. `cap` kernel (`WRITE`, no badge), x1 length, x2..x9
    /// bytes.
    KernelPrint = 113;
    /// **Query** a statistic. `cap` kernel (`READ`, `COUNTERS`), x1 which [`Statistic`](crate::object::Statistic).
    /// Returns x1.
    KernelQuery = 114;
    /// **Query interrupts-off intervals.** `cap` kernel (`READ`, `COUNTERS`), x1 path
    /// ([`entry_path`](crate::object::entry_path)): an operation's number or one of the other entry paths into the
    /// kernel; `u64::MAX` resets all measurements. An interval begins where interrupts are disabled (an exception, the
    /// end of a preemption point) and ends where they are enabled (user mode, a preemption point, waiting for an
    /// interrupt); it counts for the path on which it began. Returns x1 = the longest interval in retired instructions,
    /// x2 = the kernel address where that interval began, x3 = number of intervals, x4 = sum of their lengths, x5 = sum
    /// of the squares of their lengths. For [`entry_path::TIMER`](crate::object::entry_path::TIMER), only x1 = the
    /// number of retired instructions when the last timer interrupt entered the kernel.
    /// Errors: `Unsupported` (the kernel does not measure: only measuring kernels, named `measuring`, do).
    KernelIrqOff = 115;
    /// **Describe the machine.** `cap` kernel (`READ`, any power).
    /// Returns x1 = number of cores that the device tree names, x2 = number of this core, x3 = the device tree's
    /// physical address, x4 = its size in bytes; both are 0 if the capability has a badge.
    KernelMachine = 116;
    /// **Start a core** that has not been started. `cap` kernel (`WRITE`, no badge), x1 core, x2 physical address of
    /// its kernel's image, x3 physical address of its [`CoreBoot`](crate::boot::CoreBoot). The holder of this
    /// capability is responsible for the contents of that memory: the core runs it as a kernel, so this is the
    /// authority for everything, and no power permits it.
    /// Errors: `NoSuchCore`, `CoreRunning`, `CoreRefused` (the firmware refused).
    KernelStartCore = 117;
    /// **Query a core's power state** at the firmware. `cap` kernel (`READ`, `CORES`), x1 core. A core that was never
    /// started or has stopped is off: it executes nothing until it is started.
    /// Returns x1 = a [`CorePower`](crate::object::CorePower).
    /// Errors: `NoSuchCore`, `CoreRefused` (the firmware does not say).
    KernelCorePower = 118;
    /// **Permit counters** to programs. `cap` kernel (`WRITE`, `COUNTERS`), x1 1 or 0: whether all programs on this
    /// core may read the processor's counters of events and cycles, which reveal what other programs do. Initially they
    /// may not: a program that reads one gets an exception. Every program may read the system counter (`CNTVCT_EL0`),
    /// and `KernelQuery` returns the count of instructions.
    KernelCounters = 119;
}

impl core::fmt::Display for Operation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}
