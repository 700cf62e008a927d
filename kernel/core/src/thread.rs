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

pub mod binding;
pub mod control;

use core::mem::offset_of;

use tench_abi::fault::{Class, Registers, Report};
use tench_abi::object::THREAD_BITS;
use tench_abi::{Error, Kind, Rights};

use crate::area::Area;
use crate::entry::capability_slot;
use crate::heap::Node;
use crate::helping::{UNCAPPED, heights};
use crate::object::{Endpoint, Notification, Ref, Reply, SchedulingContext};
use crate::slot::Slot;
use crate::{Arch, Kernel, account, helping, timers, window};

/// Bytes of a thread object.
pub const OBJECT_SIZE: usize = 1 << THREAD_BITS;
/// Offset of the [`Thread`] in its object.
pub const THREAD_OFFSET: usize = OBJECT_SIZE - size_of::<Thread>();
/// Marks the lowest word of a kernel stack; found changed, the stack has overflowed. (A pattern that one instruction
/// makes: it is looked at after every operation.)
pub const CANARY: u64 = 0x5555_5555_5555_5555;

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
    /// Somebody waits at the endpoint that the thread serves, and may help it.
    pub const HELPED: u32 = 32;
    /// Its own time counts up to a priority alone ([`Thread::cap`](super::Thread::cap)).
    pub const CAPPED: u32 = 64;
    /// The scheduling context that the thread runs on has a budget, which is timed while it runs.
    pub const BUDGETED: u32 = 128;
    /// The deadline is the thread's alarm: it has received a request before, and works on that.
    pub const ALARM: u32 = 256;
    /// The alarm has gone off.
    pub const ALARMED: u32 = 2048;
    /// The thread waits for another without helping it: too many would wait for each other, or it waits for itself.
    pub const HELPLESS: u32 = 4096;
    /// The budget was used up in a window: the timeout fault is raised when the thread leaves the kernel.
    pub const TIMEOUT: u32 = 512;
    /// The timeout was reported, and the thread has not run since.
    pub const REPORTED: u32 = 1024;

    /// What a thread loses with the scheduling context that it runs on.
    pub const OF_BUDGET: u32 = BUDGETED | TIMEOUT | REPORTED;
    /// The thread has something of its own to do.
    pub const URGENT: u32 = SIGNALLED | ALARMED;
    /// What a thread runs on depends on more than its caller.
    pub const OF_HELPING: u32 = HELPED | CAPPED | URGENT;
    /// All of it: somebody is being told that the budget is used up.
    pub const TOLD: u32 = FAULT | REPORTED;
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
    /// See `Fault0`.
    Fault3 = 9,
    /// The endpoint that it serves.
    Served = 10,
}

/// Number of embedded slots.
pub const BINDINGS: usize = 11;

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
        Binding::Fault3,
        Binding::Served,
    ];

    /// The binding for a class of faults.
    pub const fn fault(class: Class) -> Binding {
        match class {
            Class::PageFault => Binding::Fault0,
            Class::Exception => Binding::Fault1,
            Class::ForeignCall => Binding::Fault2,
            Class::Timeout => Binding::Fault3,
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
    /// 1: all of `registers` are to be restored (interrupt, fault); 0: what a system call preserves and answers. 0
    /// while the thread runs in user mode, so that the fast path need not write it.
    pub full_restore: u64,
    /// Not zero: the thread was switched away from in a window and continues in the kernel, on this stack.
    pub kernel_stack_pointer: usize,
    /// Kernel virtual address of the root node's slots; with `space_slots` 0 there is none.
    pub space_root: usize,
    /// Slots in the root node.
    pub space_slots: usize,
    /// The reply object for a call that may take the fast path, or `None` if it may not (the receive has a deadline, or
    /// the call is not all that counts for what the thread then runs on). Meaningful in state `Receiving` only.
    pub fast_reply: Option<Ref<Reply>>,
    /// The reply object for the receive it waits in. Meaningful in state `Receiving` only.
    pub receive_reply: Option<Ref<Reply>>,
    /// The reply object bound to the thread.
    pub bound_reply: Option<Ref<Reply>>,
    /// Priority it runs at: that of `scheduling`, or less ([`cap`](Self::cap)); -1 without such, while parked and while
    /// its budget is used up, which no fast path prefers to anybody.
    pub priority: i16,
    /// How many threads wait for each other behind it at most ([`heights`]); 0: nobody waits for it.
    pub height: u8,
    /// Always 0.
    pub spare: u8,
    /// Reasons against the fast path.
    pub slow: u32,
    /// The scheduling context it runs on: its own, or that of somebody who waits for it ([`helping`](crate::helping)).
    pub scheduling: Option<Ref<SchedulingContext>>,
    /// What it runs on when it works for nobody.
    pub base: Base,
    /// What it is doing.
    pub state: ThreadState,
    /// Next in the queue that `state` names.
    pub next: Option<Ref<Thread>>,
    /// Previous in that queue.
    pub previous: Option<Ref<Thread>>,
    /// Badge of the capability that it sends through.
    pub badge: u64,
    /// Whether that capability may transfer capabilities.
    pub may_grant: bool,
    /// Why it sends.
    pub purpose: Purpose,
    /// Whether it is in the ready queue.
    pub queued: bool,
    /// Whether it works for nobody when it receives with `other_reply`: callers in that are laid aside.
    pub aside: bool,
    /// Whether its account is suspended: its priority is -1, whatever it runs on.
    pub parked: bool,
    /// How many servers deep its own calls go while it serves the endpoint, as it has said
    /// ([`heights`](crate::helping::heights)).
    pub depth: u8,
    /// Highest priority at which its own context counts: it finishes what it has begun for somebody who cannot help.
    pub cap: i16,
    /// Kernel virtual address of the message area; 0 for none.
    pub message_area: usize,
    /// The bound notification.
    pub notification: Option<Ref<Notification>>,
    /// Ticks of its time slice that were left when it was switched away from against its will; 0: the next is a new
    /// one.
    pub slice_left: u64,
    /// The last fault.
    pub fault: Report,
    /// Its place in the timer queue, where its wait ends.
    pub timer: Node,
    /// Its place among the senders at an endpoint.
    pub sending: Node,
    /// The reply object with which it has received last, if that is not the bound one.
    pub other_reply: Option<Ref<Reply>>,
    /// Its account, and its neighbours there.
    pub membership: crate::account::Membership,
    /// The endpoint that it serves.
    pub served: Option<Ref<Endpoint>>,
    /// Upcalls by class.
    pub fault_targets: [FaultTarget; Class::COUNT],
    /// Bindings. See [`Binding`].
    pub bindings: [Slot; BINDINGS],
    /// Floating-point registers while the unit is not the thread's.
    pub float: FloatState,
}

const _: () = assert!(size_of::<Thread>() < 2048);

/// What a thread runs on when it works for nobody: the fields are those of [`Thread`] from `priority` on, so that the
/// fast path restores them at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Base {
    /// The context's priority; -1 without one, and while it is used up.
    pub priority: i16,
    /// Always 0.
    pub height: u8,
    /// Always 0.
    pub spare: u8,
    /// `BUDGETED`, if the context is limited.
    pub slow: u32,
    /// The scheduling context that is bound to the thread.
    pub context: Option<Ref<SchedulingContext>>,
}

impl Base {
    /// Nothing is bound.
    pub const NONE: Base = Base { priority: -1, height: 0, spare: 0, slow: 0, context: None };

    /// As two words, as [`Thread::standing`].
    #[inline(always)]
    pub fn standing(&self) -> [u64; 2] {
        // SAFETY: a valid reference to 16 bytes without padding.
        unsafe { core::ptr::from_ref(self).cast::<[u64; 2]>().read() }
    }
}

/// One more of height, in the first word of [`Thread::standing`].
pub const HEIGHT_UNIT: u64 = 1 << 16;

const _: () = {
    let start = offset_of!(Thread, priority);
    assert!(start.is_multiple_of(8) && size_of::<Base>() == 16 && align_of::<Base>() == 8);
    assert!(offset_of!(Thread, height) - start == offset_of!(Base, height) && offset_of!(Base, height) == 2);
    assert!(offset_of!(Thread, slow) - start == offset_of!(Base, slow) && offset_of!(Base, slow) == 4);
    assert!(offset_of!(Thread, scheduling) - start == offset_of!(Base, context));
};

impl Thread {
    /// What the thread runs on, as two words: priority, height and, in the high half, reasons against the fast path;
    /// the context.
    #[inline(always)]
    pub fn standing(&self) -> [u64; 2] {
        // SAFETY: the offset of a field, in a valid reference.
        let first = unsafe { core::ptr::from_ref(self).byte_add(offset_of!(Thread, priority)) };
        // SAFETY: `priority`, `height`, `spare`, `slow` and `scheduling` lie there without padding (asserted above).
        unsafe { first.cast::<[u64; 2]>().read() }
    }

    /// Sets it. `standing` comes from another thread's, or from [`Base::standing`].
    #[inline(always)]
    pub fn set_standing(&mut self, standing: [u64; 2]) {
        // SAFETY: the offset of a field, in a valid reference.
        let first = unsafe { core::ptr::from_mut(self).byte_add(offset_of!(Thread, priority)) };
        // SAFETY: as in `standing`; any such words are valid in these fields, the context being that of a live thread.
        unsafe { first.cast::<[u64; 2]>().write(standing) };
    }
}

/// Makes a thread of zeroed memory at `object`. It is suspended, and nothing is bound.
pub fn initialise<A: Arch>(k: &mut Kernel<A>, object: usize) {
    let empty = k.arch().empty_space_register();
    // SAFETY: the caller has just made this memory a thread object; it is zero, which is valid for every field but
    // those written here, and aligned to 8 KiB.
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

/// Bytes of a kernel stack that are looked at between two windows.
const STACK_STEP: usize = 1024;

/// Deepest use of a thread's kernel stack so far, in bytes: the stack was zero when it was made. Passes windows; `find`
/// looks the thread up again after each. Answers `None` if the running thread was deleted.
///
/// # Errors
/// Those of `find`.
pub fn stack_depth<A: Arch>(
    k: &mut Kernel<A>,
    mut find: impl FnMut(&mut Kernel<A>) -> Result<Ref<Thread>, Error>,
) -> Result<Option<u64>, Error> {
    // The lowest word is the canary.
    let mut offset = 8;
    loop {
        let bottom = find(k)?.address() - THREAD_OFFSET;
        let end = THREAD_OFFSET.min(offset + STACK_STEP);
        while offset < end {
            // SAFETY: the words below a thread are its kernel stack, part of the live object that was just found;
            // another part of it may be in use by this very function, hence the volatile read.
            if unsafe { ((bottom + offset) as *const u64).read_volatile() } != 0 {
                return Ok(Some((THREAD_OFFSET - offset) as u64));
            }
            offset += 8;
        }
        if offset >= THREAD_OFFSET {
            return Ok(Some(0));
        }
        if !window::pass(k) {
            return Ok(None);
        }
    }
}

/// Whether the end of a thread's kernel stack is intact.
pub fn canary_intact(thread: Ref<Thread>) -> bool {
    // SAFETY: the lowest word of a live thread object.
    unsafe { ((thread.address() - THREAD_OFFSET) as *const u64).read_volatile() == CANARY }
}

/// Copies user registers from a message area into a thread: general registers, stack pointer, program counter, flags.
pub fn load_registers<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, area: Area) {
    area.load_registers(k, thread);
    let t = k.get(thread);
    t.registers.flags &= 0xf000_0000;
    t.full_restore = 1;
}
/// The thread that `x0` names.
fn target<A: Arch>(k: &mut Kernel<A>, caller: Ref<Thread>, rights: Rights) -> Result<Ref<Thread>, Error> {
    let slot = capability_slot(k, caller, Kind::Thread, rights)?;
    let object = k.slot(slot).cap.object;
    // SAFETY: a live capability of this kind names a thread object.
    unsafe { Ref::at(object + THREAD_OFFSET) }.ok_or(Error::InvalidCapability)
}
/// One step of the end of a thread, whose last capability goes: it stops, and nothing refers to it any more. Answers
/// whether that was the last step. Its bindings are emptied by the caller. `object` is the address of the thread
/// object.
pub fn finalise<A: Arch>(k: &mut Kernel<A>, object: usize) -> bool {
    // SAFETY: the caller finalises a live thread object.
    let Some(thread) = (unsafe { Ref::<Thread>::at(object + THREAD_OFFSET) }) else { return true };
    let has_deadline = k.get(thread).slow & slow::DEADLINE != 0;
    control::suspend(k, thread);
    timers::disarm(k, thread);
    if has_deadline {
        // Leaving a wait takes long among many deadlines; the rest comes after a window.
        return false;
    }
    helping::leave_other_reply(k, thread);
    // Between here and the end of its bindings somebody else may run, and delete the context that it ran on for its
    // caller.
    heights::rejoin(k, thread);
    k.get(thread).state = ThreadState::Suspended;
    k.get(thread).kernel_stack_pointer = 0;
    if k.state().float_owner == Some(thread) {
        k.state().float_owner = None;
    }
    account::leave(k, thread);
    if thread == k.current() {
        k.get(thread).slow |= slow::DELETED;
    }
    true
}
