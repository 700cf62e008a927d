//! Kernel objects: kinds, sizes, rights, and capability addresses.

use bitflags::bitflags;

/// Address of a capability: first-level index × 256 + slot. Address 0 is never a capability.
///
/// A CSpace has two levels: a root node of up to 2¹⁶ entries, which are second-level nodes of 256 slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[repr(transparent)]
pub struct CapAddress(pub u32);

impl CapAddress {
    /// The null address: no capability. As a *CSpace* argument, it means the caller's own CSpace.
    pub const NULL: CapAddress = CapAddress(0);

    /// Returns the address of `slot` in the node at `index` of the root.
    pub const fn new(index: u32, slot: u32) -> CapAddress {
        CapAddress(index << NODE_BITS | slot & (NODE_SLOTS as u32 - 1))
    }
}

/// Log2 of the number of slots of a second-level node.
pub const NODE_BITS: u32 = 8;
/// Number of slots of a second-level node.
pub const NODE_SLOTS: usize = 1 << NODE_BITS;
/// Log2 of the largest number of entries of a root node: a CSpace has up to 2²⁴ slots.
pub const ROOT_MAX_BITS: u32 = 16;
/// Size of a slot in bytes.
pub const SLOT_SIZE: usize = 64;
/// Properties of an interrupt line, as flags of `InterruptGet`.
pub mod line_flags {
    /// Edge-triggered: the line fires when it goes high. Without this flag, it fires as long as it is high.
    pub const EDGE: u64 = 1;
    /// Taking the line's signal acknowledges it. Only for doorbell lines.
    pub const AUTOMATIC: u64 = 2;
}

/// Maximum depth of a thread that serves an endpoint: how many servers deep its own calls go while it serves
/// (`ThreadServe`).
pub const MAX_DEPTH: u64 = 2;

/// Number of doorbell lines of a core, the first of its interrupt lines.
pub const DOORBELLS: u64 = 16;
/// First interrupt line of devices; those below are private to each core.
pub const FIRST_DEVICE_LINE: usize = 32;
/// Number of interrupt lines that a kernel can serve.
pub const LINES: usize = 320;

/// Type of a capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// An empty slot.
    Null = 0,
    /// Memory that can be retyped.
    Untyped = 1,
    /// A node of 2ⁿ slots, 1 ≤ n ≤ 16. A root may have any number of them; a second-level node has 256.
    CapNode = 2,
    /// Memory that can be mapped, 2ⁿ bytes, 12 ≤ n ≤ 30.
    Frame = 3,
    /// A page table of level 0 (an address space) to 3 (4 KiB entries).
    PageTable = 4,
    /// Up to 512 entries of one page table that map one frame. Unique; deleting it unmaps.
    Mapping = 5,
    /// A thread with its kernel stack.
    Thread = 6,
    /// A priority, time slice and budget.
    SchedulingContext = 7,
    /// A rendezvous point for messages.
    Endpoint = 8,
    /// The object that holds a caller to whom a server has to reply.
    Reply = 9,
    /// A word of bits for which threads can wait.
    Notification = 10,
    /// One interrupt line.
    Interrupt = 11,
    /// The authority to make [`Interrupt`](Kind::Interrupt) capabilities.
    InterruptControl = 12,
    /// The kernel itself: power, early output, statistics, the other cores.
    Kernel = 13,
    /// A line on which another core can be interrupted. Signalling it interrupts that core.
    Doorbell = 14,
}

impl Kind {
    /// Every kind, in order of its number.
    pub const ALL: [Kind; 15] = [
        Kind::Null,
        Kind::Untyped,
        Kind::CapNode,
        Kind::Frame,
        Kind::PageTable,
        Kind::Mapping,
        Kind::Thread,
        Kind::SchedulingContext,
        Kind::Endpoint,
        Kind::Reply,
        Kind::Notification,
        Kind::Interrupt,
        Kind::InterruptControl,
        Kind::Kernel,
        Kind::Doorbell,
    ];

    /// Returns the kind with this number.
    pub const fn from_code(code: u64) -> Option<Kind> {
        if code < Self::ALL.len() as u64 { Some(Self::ALL[code as usize]) } else { None }
    }

    /// Returns log2 of the size in bytes of an object that `UntypedRetype` makes, or `None` if it cannot make one of
    /// this size.
    ///
    /// `size` is what the operation calls `size_bits`: log2 of bytes for untyped memory and frames, log2 of slots for
    /// a capability node, the level for a page table, and ignored for objects of fixed size.
    pub const fn object_bits(self, size: u64) -> Option<u32> {
        match self {
            Kind::Untyped if size >= UNTYPED_MIN_BITS as u64 && size <= UNTYPED_MAX_BITS as u64 => Some(size as u32),
            Kind::Frame if size >= FRAME_MIN_BITS as u64 && size <= FRAME_MAX_BITS as u64 => Some(size as u32),
            Kind::CapNode if size >= 1 && size <= ROOT_MAX_BITS as u64 => {
                Some(size as u32 + SLOT_SIZE.trailing_zeros())
            }
            Kind::PageTable if size <= 3 => Some(PAGE_TABLE_BITS),
            Kind::Thread => Some(THREAD_BITS),
            Kind::SchedulingContext => Some(SCHEDULING_CONTEXT_BITS),
            Kind::Endpoint => Some(ENDPOINT_BITS),
            Kind::Reply => Some(REPLY_BITS),
            Kind::Notification => Some(NOTIFICATION_BITS),
            _ => None,
        }
    }
}

/// Log2 of the smallest untyped's size in bytes.
pub const UNTYPED_MIN_BITS: u32 = 4;
/// Log2 of the largest untyped's size in bytes.
pub const UNTYPED_MAX_BITS: u32 = 47;
/// Log2 of the smallest frame's size in bytes.
pub const FRAME_MIN_BITS: u32 = 12;
/// Log2 of the largest frame's size in bytes.
pub const FRAME_MAX_BITS: u32 = 30;
/// Log2 of a page table's size in bytes: 4 KiB that the hardware walks, and 4 KiB of the kernel's shadow entries.
pub const PAGE_TABLE_BITS: u32 = 13;
/// Log2 of a thread's size in bytes, kernel stack included.
pub const THREAD_BITS: u32 = 12;
/// Log2 of a scheduling context's size in bytes.
pub const SCHEDULING_CONTEXT_BITS: u32 = 8;
/// Log2 of an endpoint's size in bytes.
pub const ENDPOINT_BITS: u32 = 5;
/// Log2 of a reply object's size in bytes.
pub const REPLY_BITS: u32 = 5;
/// Log2 of a notification's size in bytes.
pub const NOTIFICATION_BITS: u32 = 6;
/// Number of priorities: 0 (lowest) to 255.
pub const PRIORITIES: usize = 256;
/// Shortest budget of a scheduling context, in ticks of the counter: a shorter one would be used up by interrupts and
/// switches alone.
pub const MIN_BUDGET: u64 = 64;
/// Longest period of a scheduling context, in ticks of the counter.
pub const MAX_PERIOD: u64 = 1 << 40;

bitflags! {
    /// Rights of a capability. Each operation lists the rights that it needs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Rights: u8 {
        /// Endpoint: receive. Notification: wait. Frame: map readable. Thread, scheduling context: query.
        const READ = 1;
        /// Endpoint: send. Notification: signal. Frame: map writable. Others: every changing operation.
        const WRITE = 2;
        /// Endpoint: transfer capabilities along with a message. Page table of level 0: decide which threads belong to
        /// its account, and whether they run.
        const GRANT = 4;
        /// Endpoint: call, that is, let the receiver reply once. Frame: map executable.
        const CALL = 8;
    }
}

impl Rights {
    /// Frame: map executable (shares its bit with [`CALL`](Self::CALL)).
    pub const EXECUTE: Rights = Rights::CALL;
}

/// State of a thread, as `ThreadQuery` returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u64)]
pub enum ThreadState {
    /// Never started, or suspended.
    Suspended = 0,
    /// Running or ready to run.
    Ready = 1,
    /// Waits to send or call on an endpoint.
    Sending = 2,
    /// Waits to receive from an endpoint.
    Receiving = 3,
    /// Waits for a reply.
    AwaitingReply = 4,
    /// Waits for a notification.
    Waiting = 5,
    /// Stopped by a fault that nobody handles.
    Faulted = 6,
}

impl ThreadState {
    /// Returns the state with this number.
    pub const fn from_code(code: u64) -> Option<ThreadState> {
        match code {
            0 => Some(Self::Suspended),
            1 => Some(Self::Ready),
            2 => Some(Self::Sending),
            3 => Some(Self::Receiving),
            4 => Some(Self::AwaitingReply),
            5 => Some(Self::Waiting),
            6 => Some(Self::Faulted),
            _ => None,
        }
    }
}

/// Entry paths into the kernel, as `KernelIrqOff` names them. Numbers below these are those of operations.
pub mod entry_path {
    /// An interrupt while a thread ran in user mode.
    pub const USER_INTERRUPT: u64 = 120;
    /// A fault: a page fault, an exception, or the first use of the floating-point unit.
    pub const FAULT: u64 = 121;
    /// A foreign system call.
    pub const FOREIGN_CALL: u64 = 122;
    /// An interrupt in the kernel, at a preemption point.
    pub const KERNEL_INTERRUPT: u64 = 123;
    /// The idle loop.
    pub const IDLE: u64 = 124;
    /// A system call with a number that no operation has.
    pub const UNKNOWN: u64 = 125;
    /// Not a path: asks when the last timer interrupt came.
    pub const TIMER: u64 = 126;
    /// One more than the largest path number.
    pub const LIMIT: u64 = 127;
    /// Not a path: resets all measurements.
    pub const RESET: u64 = u64::MAX;

    /// Returns the name of a path; `None` if it does not exist.
    pub const fn name(path: u64) -> Option<&'static str> {
        match path {
            USER_INTERRUPT => Some("interrupt of a program"),
            FAULT => Some("fault"),
            FOREIGN_CALL => Some("foreign call"),
            KERNEL_INTERRUPT => Some("interrupt in the kernel"),
            IDLE => Some("idle"),
            UNKNOWN => Some("unknown call"),
            _ => match crate::Operation::from_code(path) {
                Some(operation) => Some(operation.name()),
                None => None,
            },
        }
    }
}

/// Lengths of the interrupts-off intervals of one path, in retired instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IrqOffIntervals {
    /// Length of the longest interval.
    pub longest: u64,
    /// Kernel address at which the longest interval began.
    pub address: u64,
    /// Number of intervals.
    pub count: u64,
    /// Sum of their lengths.
    pub sum: u64,
    /// Sum of the squares of their lengths.
    pub squares: u64,
}

/// Statistic that `KernelQuery` returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u64)]
pub enum Statistic {
    /// Deepest use of a kernel stack so far, in bytes, among the threads that asked for a statistic or were the subject
    /// of a `ThreadQuery`.
    DeepestStack = 0,
    /// Number of preemption points passed.
    PreemptionPoints = 1,
    /// Number of preemption points at which the kernel switched to another thread.
    Preemptions = 2,
    /// Number of interrupts taken.
    Interrupts = 3,
    /// Number of thread switches.
    Switches = 4,
    /// 1 if the kernel was built with preemption points that let interrupts in.
    Preemptible = 5,
    /// Retired instructions from the kernel's entry to the first user instruction.
    BootInstructions = 6,
    /// Ticks spent idle.
    IdleTicks = 7,
    /// Most interrupts in progress at the same moment so far: 1, unless some came while another was being handled.
    DeepestNesting = 8,
    /// Number of interrupts taken while another was being handled.
    NestedInterrupts = 9,
    /// Retired instructions of kernel and programs on this core since the kernel's first.
    Instructions = 10,
}

impl Statistic {
    /// Every statistic, in order of its number.
    pub const ALL: [Statistic; 11] = [
        Self::DeepestStack,
        Self::PreemptionPoints,
        Self::Preemptions,
        Self::Interrupts,
        Self::Switches,
        Self::Preemptible,
        Self::BootInstructions,
        Self::IdleTicks,
        Self::DeepestNesting,
        Self::NestedInterrupts,
        Self::Instructions,
    ];

    /// Returns the statistic with this number.
    pub const fn from_code(code: u64) -> Option<Statistic> {
        if code < Self::ALL.len() as u64 { Some(Self::ALL[code as usize]) } else { None }
    }
}

/// Power state of a core, according to the firmware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum CorePower {
    /// The core is on. Whether it does anything is not said.
    On = 0,
    /// The core is off: it executes nothing.
    Off = 1,
    /// The core was started and will be on.
    Starting = 2,
}

impl CorePower {
    /// Every state, in order of its number.
    pub const ALL: [CorePower; 3] = [Self::On, Self::Off, Self::Starting];

    /// Returns the state with this number.
    pub const fn from_code(code: u64) -> Option<CorePower> {
        if code < Self::ALL.len() as u64 { Some(Self::ALL[code as usize]) } else { None }
    }
}
