//! Threads: what one is.
//!
//! ```text
//!  object (8 KiB, aligned)
//!  ┌──────────────┬───────────────────────────────────────────┬───────────────────────────────┐
//!  │ canary       │ kernel stack, grows down                ◄─│ Thread: registers first       │
//!  └──────────────┴───────────────────────────────────────────┴───────────────────────────────┘
//!                                                              ▲ stack pointer while in user mode
//! ```
//! While a thread runs in user mode, the kernel's stack pointer is the address of its [`Thread`], so an exception finds
//! the thread, the place to save registers and an empty private kernel stack in one register.

use tench_abi::fault::{Class, Registers};
use tench_abi::object::THREAD_BITS;

use crate::object::{Endpoint, Notification, Ref, Reply, SchedulingContext};
use crate::slot::Slot;

/// Bytes of a thread object.
pub const OBJECT_SIZE: usize = 1 << THREAD_BITS;
/// Offset of the [`Thread`] in its object.
pub const THREAD_OFFSET: usize = OBJECT_SIZE - size_of::<Thread>();
/// Marks the lowest words of a kernel stack; found changed, the stack has overflowed.
pub const CANARY: u64 = 0x7e0c_5ac8_0dd5_7ac8;

/// Saved floating-point and vector registers.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub struct FloatState {
    /// `q0`..`q31`.
    pub registers: [[u64; 2]; 32],
    /// Status register.
    pub status: u64,
    /// Control register.
    pub control: u64,
}

/// What a thread is doing. A waiting state holds what it waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C, u64)]
pub enum ThreadState {
    /// Running, or in the ready queue of its priority.
    Ready = 0,
    /// Never started, or suspended.
    Suspended = 1,
    /// In an endpoint's queue of senders. The message lies in the registers and the message area.
    Sending(Ref<Endpoint>) = 2,
    /// In an endpoint's queue of receivers.
    Receiving(Ref<Endpoint>) = 3,
    /// Called, and its message was taken.
    AwaitingReply(Ref<Reply>) = 4,
    /// In a notification's queue.
    Waiting(Ref<Notification>) = 5,
    /// Stopped by a fault that nobody handles; see [`Thread::fault`].
    Faulted = 6,
}

/// How a message in `Sending` or `AwaitingReply` came about, and so what its end means to the thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Purpose {
    /// `Send`.
    #[default]
    Send,
    /// `Call`.
    Call,
    /// The kernel called on the thread's behalf because of a fault; a reply resumes it where it was.
    Fault,
}

/// Bits of [`Thread::slow`]: why a system call of this thread cannot take the fast path.
pub mod slow {
    /// The thread has the floating-point unit switched on.
    pub const FLOAT: u32 = 1;
    /// The bound notification has a signal for it.
    pub const SIGNALLED: u32 = 2;
    /// The thread waits with a deadline and is in the timer queue.
    pub const DEADLINE: u32 = 4;
    /// The wait was begun by a fault.
    pub const FAULT: u32 = 8;
    /// The thread was deleted while it runs.
    pub const DELETED: u32 = 16;
}

/// Where faults of one class go.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct FaultTarget {
    /// Upcall entry point; 0 for none.
    pub entry: u64,
    /// Stack for the upcall; 0 for the one in use.
    pub stack: u64,
}

/// Embedded slots of a thread: its bindings are capabilities like any other, and go when what they name goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Binding {
    /// Root node of the capability space.
    Space = 0,
    /// Root page table.
    AddressSpace = 1,
    /// Frame with the message area.
    MessageFrame = 2,
    /// Own scheduling context.
    Scheduling = 3,
    /// Bound reply object.
    Reply = 4,
    /// Bound notification.
    Notification = 5,
    /// Fault endpoints, one for each class.
    Fault0 = 6,
    /// See `Fault0`.
    Fault1 = 7,
    /// See `Fault0`.
    Fault2 = 8,
}

/// Number of embedded slots.
pub const BINDINGS: usize = 9;

impl Binding {
    /// Every binding.
    pub const ALL: [Binding; BINDINGS] = [
        Binding::Space,
        Binding::AddressSpace,
        Binding::MessageFrame,
        Binding::Scheduling,
        Binding::Reply,
        Binding::Notification,
        Binding::Fault0,
        Binding::Fault1,
        Binding::Fault2,
    ];

    /// The binding for a class of faults.
    pub const fn fault(class: Class) -> Binding {
        match class {
            Class::PageFault => Binding::Fault0,
            Class::Exception => Binding::Fault1,
            Class::ForeignCall => Binding::Fault2,
        }
    }
}

/// A thread. The order of the first fields is known to the assembly (by `offset_of!`).
#[repr(C, align(64))]
pub struct Thread {
    /// User registers. After a system call only those that the procedure-call standard preserves are meaningful,
    /// besides `x0`..`x10`.
    pub registers: Registers,
    /// Value of the translation register for this thread's address space.
    pub space_register: u64,
    /// Whether all of `registers` are to be restored (interrupt, fault), or only what a system call preserves.
    pub full_restore: u64,
    /// Not zero: the thread was switched away from in a window and continues in the kernel, on this stack.
    pub kernel_stack_pointer: usize,
    /// Kernel virtual address of the root node's slots; with `space_slots` 0 there is none.
    pub space_root: usize,
    /// Slots in the root node.
    pub space_slots: usize,
    /// The reply object that a call to this thread may use without further checks: it waits in `Receiving`, has a
    /// reply object, and none of [`slow`] applies. Otherwise `None`.
    pub fast_reply: Option<Ref<Reply>>,
    /// The reply object bound to the thread.
    pub bound_reply: Option<Ref<Reply>>,
    /// Reasons against the fast path.
    pub slow: u32,
    /// Priority it runs at: that of `scheduling`, or 0.
    pub priority: u32,
    /// What it is doing.
    pub state: ThreadState,
    /// Next in the queue that `state` names.
    pub next: Option<Ref<Thread>>,
    /// Previous in that queue.
    pub previous: Option<Ref<Thread>>,
    /// The scheduling context it runs on: its own, or one lent by a caller.
    pub scheduling: Option<Ref<SchedulingContext>>,
    /// Badge of the capability that it sends through.
    pub badge: u64,
    /// Whether that capability may transfer capabilities.
    pub may_grant: bool,
    /// Why it sends.
    pub purpose: Purpose,
    /// Whether it is in the ready queue.
    pub queued: bool,
    /// The reply object for the receive it waits in.
    pub receive_reply: Option<Ref<Reply>>,
    /// Kernel virtual address of the message area; 0 for none.
    pub message_area: usize,
    /// The bound notification.
    pub notification: Option<Ref<Notification>>,
    /// When its wait ends.
    pub deadline: u64,
    /// Links in the timer queue.
    pub timer: crate::slot::Links,
    /// The last fault.
    pub fault: tench_abi::fault::Report,
    /// Upcalls by class.
    pub fault_targets: [FaultTarget; Class::COUNT],
    /// Bindings. See [`Binding`].
    pub bindings: [Slot; BINDINGS],
    /// Floating-point registers while the unit is not the thread's.
    pub float: FloatState,
}

const _: () = assert!(size_of::<Thread>() < 2048);
