//! The thread object.
//!
//! ```text
//!  object (4 KiB, aligned)
//!  ┌──────────────┬───────────────────────────────────────────┬───────────────────────────────┐
//!  │ canary       │ kernel stack, grows down                ◄─│ Thread: registers first       │
//!  └──────────────┴───────────────────────────────────────────┴───────────────────────────────┘
//!                                                              ▲ stack pointer while in user mode
//! ```
//! Its two halves are about the same size. That a stack of 2 KiB suffices for every path through the kernel is what
//! `./tench test stack` proves.
//!
//! While a thread runs in user mode, the kernel's stack pointer is the address of its [`Thread`]. So an exception finds
//! the thread, the place to save registers and an empty private kernel stack in one register.

pub mod binding;
pub mod control;

use core::mem::offset_of;

use tench_abi::fault::{Class, Registers, Report};
use tench_abi::message::IpcBuffer;
use tench_abi::object::THREAD_BITS;
use tench_abi::{Error, Kind, Rights};

use crate::endpoint::Endpoint;
use crate::heap::Node;
use crate::helping::{UNCAPPED, heights};
use crate::notification::Notification;
use crate::object::Ref;
use crate::reply::Reply;
use crate::scheduling_context::SchedulingContext;
use crate::slot::{Named, Slot};
use crate::syscall::capability;
use crate::{Arch, Kernel, account, helping, preemption_point, timers};

/// Size of a thread object in bytes.
pub const OBJECT_SIZE: usize = 1 << THREAD_BITS;
/// Offset of the [`Thread`] in its object.
pub const THREAD_OFFSET: usize = OBJECT_SIZE - size_of::<Thread>();
/// Value of the lowest word of a kernel stack. A changed word means that the stack has overflowed. (One instruction
/// makes this pattern: the kernel checks it after every operation.)
pub const CANARY: u64 = 0x5555_5555_5555_5555;
/// Offset of a kernel stack in its object: above the canary, and aligned as a stack must be.
pub const STACK_BOTTOM: usize = 16;

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

/// A thread's state. Each waiting state holds the object that the thread waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C, u64)]
pub enum ThreadState {
    /// Running, or in the ready queue of its priority.
    Ready = 0,
    /// Never started, or suspended.
    Suspended = 1,
    /// In an endpoint's queue of senders. The message is in the registers and the IPC buffer.
    Sending(Ref<Endpoint>) = 2,
    /// In an endpoint's queue of receivers.
    Receiving(Ref<Endpoint>) = 3,
    /// Waiting for the reply to a call whose message was received.
    AwaitingReply(Ref<Reply>) = 4,
    /// In a notification's queue.
    Waiting(Ref<Notification>) = 5,
    /// Stopped by a fault without a handler; see [`Thread::fault`].
    Faulted = 6,
}

/// The origin of a message in `Sending` or `AwaitingReply`, which decides how the thread continues after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Purpose {
    /// `Send`.
    #[default]
    Send,
    /// `Call`.
    Call,
    /// A call by the kernel on behalf of a thread with a fault; the reply resumes the thread where it was.
    Fault,
}

/// Bits of [`Thread::blockers`], the fast-path blockers: each is a reason why a system call of this thread must not
/// take the fast path.
pub mod blocker {
    /// The thread uses the floating-point unit, which is on while the thread runs ([`float`](crate::float)).
    pub const FLOAT: u32 = 1;
    /// The bound notification has a signal for the thread.
    pub const SIGNALLED: u32 = 128;
    /// The thread waits with a deadline and is in the timer queue.
    pub const DEADLINE: u32 = 4;
    /// A fault began the wait.
    pub const FAULT: u32 = 8;
    /// The thread was deleted while it was running.
    pub const DELETED: u32 = 16;
    /// A sender waits at the endpoint that the thread serves, and may help it.
    pub const HELPED: u32 = 32;
    /// The thread's own context counts only up to the priority [`Thread::cap`](super::Thread::cap).
    pub const CAPPED: u32 = 64;
    /// The scheduling context on which the thread runs has a budget, which is timed while it runs.
    pub const BUDGETED: u32 = 2;
    /// The thread's deadline is an alarm: the thread has received a request since it set the alarm, and works on that.
    pub const ALARM: u32 = 256;
    /// The alarm has expired.
    pub const ALARMED: u32 = 2048;
    /// The thread waits for another without helping it: the chain would get too long or form a ring.
    pub const HELPLESS: u32 = 4096;
    /// The budget was used up at a preemption point: the kernel raises the timeout fault when the thread leaves the
    /// kernel.
    pub const TIMEOUT: u32 = 512;
    /// The timeout fault was raised, and the thread has not run since.
    pub const REPORTED: u32 = 1024;

    /// The thread executes one instruction and is stopped by an exception ([`step`](crate::step)).
    pub const STEP: u32 = 1 << 31;

    /// Blockers of a thread for which something has to be done before it runs
    /// ([`scheduler::begin`](crate::scheduler::begin)).
    pub const TO_BEGIN: u32 = BUDGETED | FLOAT | STEP;
    /// Blockers that a thread loses with the scheduling context on which it runs.
    pub const OF_BUDGET: u32 = BUDGETED | TIMEOUT | REPORTED;
    /// Events of the thread's own, because of which its own context counts.
    pub const URGENT: u32 = SIGNALLED | ALARMED;
    /// Reasons why the thread's scheduling context depends on more than its caller.
    pub const OF_HELPING: u32 = HELPED | CAPPED | URGENT;
    /// Blockers that a receiver must not lose, so that no fast path may give it those of its caller.
    pub const NOT_REPLACED: u32 = OF_HELPING | STEP;
    /// Both set: the thread waits for the reply to its timeout fault.
    pub const FAULT_REPORTED: u32 = FAULT | REPORTED;
}

/// The upcall for faults of one class.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct FaultTarget {
    /// Upcall entry point; 0 for none.
    pub entry: u64,
    /// Stack pointer for the upcall; 0 to keep the current one.
    pub stack: u64,
}

/// The bindings of a thread, each a capability in an embedded slot of the thread. A binding goes when its object goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Binding {
    /// Root node of the CSpace.
    CSpace = 0,
    /// Root page table.
    AddressSpace = 1,
    /// Frame with the IPC buffer.
    IpcBuffer = 2,
    /// The thread's own scheduling context.
    Scheduling = 3,
    /// Bound reply object.
    Reply = 4,
    /// Bound notification.
    Notification = 5,
    /// Fault endpoint for class 0. There is one for each class.
    Fault0 = 6,
    /// Fault endpoint for class 1.
    Fault1 = 7,
    /// Fault endpoint for class 2.
    Fault2 = 8,
    /// Fault endpoint for class 3.
    Fault3 = 9,
    /// The endpoint that the thread serves.
    Served = 10,
}

/// Number of bindings.
pub const BINDINGS: usize = 11;

impl Binding {
    /// Every binding.
    pub const ALL: [Binding; BINDINGS] = [
        Binding::CSpace,
        Binding::AddressSpace,
        Binding::IpcBuffer,
        Binding::Scheduling,
        Binding::Reply,
        Binding::Notification,
        Binding::Fault0,
        Binding::Fault1,
        Binding::Fault2,
        Binding::Fault3,
        Binding::Served,
    ];

    /// Returns the binding for a class of faults.
    pub const fn fault(class: Class) -> Binding {
        match class {
            Class::PageFault => Binding::Fault0,
            Class::Exception => Binding::Fault1,
            Class::ForeignCall => Binding::Fault2,
            Class::Timeout => Binding::Fault3,
        }
    }
}

/// A thread. The assembly knows the offsets of the first fields (by `offset_of!`).
#[repr(C, align(64))]
pub struct Thread {
    /// User registers. After a system call only `x0`..`x10` and the registers that the procedure-call standard
    /// preserves are meaningful.
    pub registers: Registers,
    /// Translation-table base register for the thread's address space.
    pub space_register: u64,
    /// Selects the registers to restore: all of `registers` (1, after an interrupt or fault), or only those that a
    /// system call preserves or returns (0). The value is 0 while the thread runs in user mode, so that the fast path
    /// need not write it.
    pub full_restore: u64,
    /// Kernel stack pointer with which the thread continues in the kernel, if it was preempted at a preemption point;
    /// else 0.
    pub kernel_stack_pointer: usize,
    /// Kernel virtual address of the slots of the CSpace's root node. Meaningless if `cspace_slots` is 0.
    pub cspace_root: usize,
    /// Number of slots in the root node; 0 without a CSpace.
    pub cspace_slots: usize,
    /// The reply object with which the fast path may deliver a call, or `None` if it must not: if the receive has a
    /// deadline, if the caller is not all that decides the thread's scheduling context, or if the thread makes a step.
    /// Meaningful in state `Receiving` only.
    pub fast_reply: Option<Ref<Reply>>,
    /// The reply object of the receive in which the thread waits. Meaningful in state `Receiving` only.
    pub receive_reply: Option<Ref<Reply>>,
    /// The reply object bound to the thread.
    pub bound_reply: Option<Ref<Reply>>,
    /// Priority at which the thread runs: that of `scheduling`, or less ([`cap`](Self::cap)). -1 without a context,
    /// while the account is suspended and while the budget is used up; no fast path prefers -1 to any other thread.
    pub priority: i16,
    /// Bound on the length of the chains of threads that wait for this thread ([`heights`]); 0 if no thread waits for
    /// it.
    pub height: u8,
    /// Always 0.
    pub spare: u8,
    /// Fast-path blockers, bits of [`blocker`].
    pub blockers: u32,
    /// The scheduling context on which the thread runs: its own, or that of a thread that waits for it
    /// ([`helping`]).
    pub scheduling: Option<Ref<SchedulingContext>>,
    /// The values of `priority` to `scheduling` while the thread works for no caller.
    pub base: Base,
    /// The thread's state.
    pub state: ThreadState,
    /// Next thread in the queue that `state` implies.
    pub next: Option<Ref<Thread>>,
    /// Previous thread in that queue.
    pub previous: Option<Ref<Thread>>,
    /// Badge of the capability through which the thread sends.
    pub badge: u64,
    /// Set if the capability through which the thread sends may transfer capabilities.
    pub may_grant: bool,
    /// Origin of the message that the thread sends.
    pub purpose: Purpose,
    /// Set while the thread is in a ready queue.
    pub queued: bool,
    /// Set if callers received with `other_reply` are deferred: then the thread works for no caller.
    pub deferred: bool,
    /// Set while the thread's account is suspended: the thread's priority is then -1, whatever its context.
    pub account_suspended: bool,
    /// Number of servers deep that the thread's own calls go while it serves its endpoint, as declared with
    /// `ThreadServe` ([`heights`]).
    pub depth: u8,
    /// Highest priority at which the thread's own context counts, while the thread completes a request of a client that
    /// cannot help.
    pub cap: i16,
    /// Kernel virtual address of the IPC buffer; 0 for none.
    pub ipc_buffer: usize,
    /// Kernel virtual address of the registers in the IPC buffer; 0 for none.
    pub upcall_registers: usize,
    /// The bound notification.
    pub notification: Option<Ref<Notification>>,
    /// Ticks left of the time slice when the thread was preempted; 0 if it begins a new one.
    pub slice_left: u64,
    /// The thread's last fault.
    pub fault: Report,
    /// The thread's node in the timer queue, where its wait ends.
    pub timer: Node,
    /// The thread's node among the senders at an endpoint.
    pub sending: Node,
    /// The reply object with which the thread received last, unless it is the bound one.
    pub other_reply: Option<Ref<Reply>>,
    /// The thread's account, and its neighbours there.
    pub membership: crate::account::Membership,
    /// The endpoint that the thread serves.
    pub served: Option<Ref<Endpoint>>,
    /// Not 0 if the thread has an upcall for a class of faults ([`fault_targets`](Self::fault_targets)).
    pub has_upcalls: u64,
    /// Upcalls, by class of faults.
    pub fault_targets: [FaultTarget; Class::COUNT],
    /// Slots of the thread's bindings ([`Binding`]).
    pub bindings: [Slot; BINDINGS],
    /// Floating-point registers while they are not in the unit.
    pub float: FloatState,
}

const _: () = assert!(size_of::<Thread>() < 2048);

// SAFETY: retype makes a thread together with its first capability. It lives until its last capability is deleted.
unsafe impl Named for Thread {
    const KIND: Kind = Kind::Thread;
    const OFFSET: usize = THREAD_OFFSET;
}

/// The values of [`Thread`]'s fields from `priority` to `scheduling` while the thread works for no caller. The layout
/// is the same, so that the fast path restores them all at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Base {
    /// The context's priority; -1 without a context, and while its budget is used up.
    pub priority: i16,
    /// Always 0.
    pub height: u8,
    /// Always 0.
    pub spare: u8,
    /// `BUDGETED`, if the context is limited.
    pub blockers: u32,
    /// The scheduling context that is bound to the thread.
    pub context: Option<Ref<SchedulingContext>>,
}

impl Base {
    /// The value for a thread without a context.
    pub const NONE: Base = Base { priority: -1, height: 0, spare: 0, blockers: 0, context: None };

    /// Returns the fields as two words, like [`Thread::standing`].
    #[inline(always)]
    pub fn standing(&self) -> [u64; 2] {
        // SAFETY: a valid reference to 16 bytes without padding.
        unsafe { core::ptr::from_ref(self).cast::<[u64; 2]>().read() }
    }
}

/// One unit of height in the first word of [`Thread::standing`].
pub const HEIGHT_UNIT: u64 = 1 << 16;

const _: () = {
    let start = offset_of!(Thread, priority);
    assert!(start.is_multiple_of(8) && size_of::<Base>() == 16 && align_of::<Base>() == 8);
    assert!(offset_of!(Thread, height) - start == offset_of!(Base, height) && offset_of!(Base, height) == 2);
    assert!(offset_of!(Thread, blockers) - start == offset_of!(Base, blockers) && offset_of!(Base, blockers) == 4);
    assert!(offset_of!(Thread, scheduling) - start == offset_of!(Base, context));
};

impl Thread {
    /// Returns the thread's scheduling state as two words: priority, height and, in the high half, the fast-path
    /// blockers; then the context.
    #[inline(always)]
    pub fn standing(&self) -> [u64; 2] {
        // SAFETY: the offset of a field, in a valid reference.
        let first = unsafe { core::ptr::from_ref(self).byte_add(offset_of!(Thread, priority)) };
        // SAFETY: `priority`, `height`, `spare`, `blockers` and `scheduling` lie there without padding (asserted
        // above).
        unsafe { first.cast::<[u64; 2]>().read() }
    }

    /// As [`Thread::standing`], where both words are needed.
    #[inline(always)]
    pub fn standing_at_once<A: crate::Arch>(&self) -> [u64; 2] {
        // SAFETY: as above.
        unsafe { A::pair::<Thread, { offset_of!(Thread, priority) }>(self) }
    }

    /// Sets the address of the thread's IPC buffer; 0 for none.
    pub const fn set_ipc_buffer(&mut self, address: usize) {
        self.ipc_buffer = address;
        self.upcall_registers = if address == 0 { 0 } else { address + offset_of!(IpcBuffer, registers) };
    }

    /// Sets the thread's scheduling state. `standing` comes from [`Thread::standing`] or from [`Base::standing`].
    #[inline(always)]
    pub fn set_standing(&mut self, standing: [u64; 2]) {
        // SAFETY: the offset of a field, in a valid reference.
        let first = unsafe { core::ptr::from_mut(self).byte_add(offset_of!(Thread, priority)) };
        // SAFETY: as in `standing`; any such words are valid in these fields, the context being that of a live thread.
        unsafe { first.cast::<[u64; 2]>().write(standing) };
    }
}

/// Makes a thread of zeroed memory at `object`. The thread is suspended and has no bindings.
pub fn initialise<A: Arch>(k: &mut Kernel<A>, object: usize) {
    let empty = k.arch().empty_space_register();
    // SAFETY: the caller has just made this memory a thread object; it is zero, which is valid for every field but
    // those written here, and aligned to its size.
    let Some(thread) = (unsafe { Ref::<Thread>::at(object + THREAD_OFFSET) }) else { return };
    let state = (thread.address() + core::mem::offset_of!(Thread, state)) as *mut ThreadState;
    // SAFETY: a field of the thread. The state's enum has explicit tags; writing it first makes all of it valid.
    unsafe { state.write(ThreadState::Suspended) };
    let t = k.get(thread);
    t.space_register = empty;
    t.full_restore = 1;
    t.priority = -1;
    t.base = Base::NONE;
    t.cap = UNCAPPED;
    // SAFETY: the lowest words of the object are the end of its kernel stack.
    unsafe { (object as *mut u64).write(CANARY) };
}

/// Bytes of a kernel stack that are examined between two preemption points.
const STACK_STEP: usize = 1024;

/// Returns the deepest use of a thread's kernel stack so far in bytes, or `None` if the running thread was deleted. The
/// stack was zeroed when the thread was made. Contains preemption points; `find` looks the thread up again after each.
///
/// # Errors
/// Those of `find`.
pub fn stack_depth<A: Arch>(
    k: &mut Kernel<A>,
    mut find: impl FnMut(&mut Kernel<A>) -> Result<Ref<Thread>, Error>,
) -> Result<Option<u64>, Error> {
    // The lowest word is the canary, so the search begins above it.
    let mut offset = 8;
    loop {
        let bottom = find(k)?.address() - THREAD_OFFSET;
        let end = THREAD_OFFSET.min(offset + STACK_STEP);
        // SAFETY: the words below a thread are its kernel stack, part of the live object that was just found; another
        // part of it may be in use by this very function, hence the volatile read.
        let word = |offset: usize| unsafe { ((bottom + offset) as *const u64).read_volatile() };
        // Eight at a time while they are zero: that is most of the stack.
        while offset + 64 <= end && (0..8).fold(0, |all, i| all | word(offset + i * 8)) == 0 {
            offset += 64;
        }
        while offset < end {
            if word(offset) != 0 {
                return Ok(Some((THREAD_OFFSET - offset) as u64));
            }
            offset += 8;
        }
        if offset >= THREAD_OFFSET {
            return Ok(Some(0));
        }
        if preemption_point::pass(k).is_deleted() {
            return Ok(None);
        }
    }
}

/// Returns whether the lowest word of a thread's kernel stack is intact.
pub fn canary_intact(thread: Ref<Thread>) -> bool {
    // SAFETY: the lowest word of a live thread object.
    unsafe { ((thread.address() - THREAD_OFFSET) as *const u64).read_volatile() == CANARY }
}

/// Returns the thread that `x0` names.
#[inline(always)]
pub(crate) fn target<A: Arch>(k: &mut Kernel<A>, caller: Ref<Thread>, rights: Rights) -> Result<Ref<Thread>, Error> {
    capability(k, caller, rights)
}

/// Does one step of a thread's end after its last capability is deleted: stops the thread and removes every reference
/// to it. Returns whether that was the last step. The caller empties the bindings.
pub fn finalise<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> bool {
    let has_deadline = k.get(thread).blockers & blocker::DEADLINE != 0;
    control::suspend(k, thread);
    timers::disarm(k, thread);
    if has_deadline {
        // Leaving the timer queue takes long if it holds many deadlines. The rest follows after a preemption point.
        return false;
    }
    helping::leave_other_reply(k, thread);
    // Before the bindings are empty, another thread may run and delete the caller's context on which this thread runs.
    heights::rejoin(k, thread);
    k.get(thread).state = ThreadState::Suspended;
    k.get(thread).kernel_stack_pointer = 0;
    if k.state().float_owner == Some(thread) {
        k.state().float_owner = None;
    }
    account::leave(k, thread);
    if thread == k.current() {
        k.get(thread).blockers |= blocker::DELETED;
    }
    true
}
