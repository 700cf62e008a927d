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
use tench_abi::layout::UNBIND;
use tench_abi::message::AREA_SIZE;
use tench_abi::object::{THREAD_BITS, ThreadState as State};
use tench_abi::{Error, Kind, Rights};

use crate::area::Area;
use crate::entry::{Outcome, argument, capability_slot};
use crate::object::{Endpoint, Notification, Ref, Reply, SchedulingContext};
use crate::slot::{Cap, Slot, SlotRef, flag};
use crate::{Arch, Kernel, account, endpoint, scheduler, scheduling, space};

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
    /// 1: all of `registers` are to be restored (interrupt, fault); 0: what a system call preserves and answers. 0 while
    /// the thread runs in user mode, so that the fast path need not write it.
    pub full_restore: u64,
    /// Not zero: the thread was switched away from in a window and continues in the kernel, on this stack.
    pub kernel_stack_pointer: usize,
    /// Kernel virtual address of the root node's slots; with `space_slots` 0 there is none.
    pub space_root: usize,
    /// Slots in the root node.
    pub space_slots: usize,
    /// The reply object for a call that may take the fast path, or `None` if it may not (the receive has a deadline,
    /// or the reply object is not the bound one). Meaningful in state `Receiving` only.
    pub fast_reply: Option<Ref<Reply>>,
    /// The reply object for the receive it waits in. Meaningful in state `Receiving` only.
    pub receive_reply: Option<Ref<Reply>>,
    /// The reply object bound to the thread.
    pub bound_reply: Option<Ref<Reply>>,
    /// Reasons against the fast path.
    pub slow: u32,
    /// Priority it runs at: that of `scheduling`, or -1 without one or while parked, which no fast path prefers to anybody.
    pub priority: i32,
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
    /// Whether its account is suspended: its priority is -1, whatever it runs on.
    pub parked: bool,
    /// Kernel virtual address of the message area; 0 for none.
    pub message_area: usize,
    /// The bound notification.
    pub notification: Option<Ref<Notification>>,
    /// When its wait ends.
    pub deadline: u64,
    /// Links in the timer queue.
    pub timer: crate::timers::TimerLinks,
    /// Its account, and its neighbours there.
    pub membership: crate::account::Membership,
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

/// The thread that contains the binding slot at this kernel virtual address, and which binding it is.
fn owner_of_binding<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) -> Option<(Ref<Thread>, Binding)> {
    let address = core::ptr::from_mut(k.slot(slot)).addr();
    let object = address & !(OBJECT_SIZE - 1);
    // SAFETY: only slots with the `EMBEDDED` flag come here, and those lie in a live thread object, which is aligned to
    // its size.
    let thread = unsafe { Ref::<Thread>::at(object + THREAD_OFFSET) }?;
    let first = object + THREAD_OFFSET + core::mem::offset_of!(Thread, bindings);
    let binding = *Binding::ALL.get(address.wrapping_sub(first) / size_of::<Slot>())?;
    Some((thread, binding))
}

/// The slot of a binding.
fn binding_slot<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, binding: Binding) -> Option<SlotRef> {
    let address = thread.address() + core::mem::offset_of!(Thread, bindings) + binding as usize * size_of::<Slot>();
    k.slot_at(address)
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
    // SAFETY: the lowest words of the object are the end of its kernel stack.
    unsafe { (object as *mut u64).write(CANARY) };
}

/// Deepest use of a thread's kernel stack so far, in bytes: the stack was zero when it was made.
pub fn stack_depth<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> u64 {
    let _ = k.get(thread);
    let bottom = thread.address() - THREAD_OFFSET;
    for offset in (8..THREAD_OFFSET).step_by(8) {
        // SAFETY: the words below a thread are its kernel stack, part of the live object; another part of it is in use
        // by this very function, hence the volatile read.
        if unsafe { ((bottom + offset) as *const u64).read_volatile() } != 0 {
            return (THREAD_OFFSET - offset) as u64;
        }
    }
    0
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

/// A capability argument: its slot, if it is of this kind with these rights.
fn bindable<A: Arch>(k: &mut Kernel<A>, address: u64, kind: Kind, rights: Rights) -> Result<SlotRef, Error> {
    let slot = space::lookup(k, address)?;
    let cap = &k.slot(slot).cap;
    if cap.kind != kind {
        return Err(Error::WrongType);
    }
    if !cap.allows(rights) {
        return Err(Error::MissingRights);
    }
    Ok(slot)
}

/// A valid `ThreadConfigure`. The slots mean nothing after a window.
struct Configuration {
    thread: Ref<Thread>,
    space: SlotRef,
    root: SlotRef,
    /// Frame and offset of the message area.
    area: Option<(SlotRef, usize)>,
}

/// All checks.
fn decode_configuration<A: Arch>(k: &mut Kernel<A>, caller: Ref<Thread>) -> Result<Configuration, Error> {
    let thread = target(k, caller, Rights::WRITE)?;
    if !matches!(k.get(thread).state, ThreadState::Suspended | ThreadState::Faulted) {
        return Err(Error::WrongState);
    }
    let [space_address, root_address, frame_address, offset] = core::array::from_fn(|i| argument(k, caller, i + 1));
    let space = bindable(k, space_address, Kind::CapNode, Rights::WRITE)?;
    let root = bindable(k, root_address, Kind::PageTable, Rights::WRITE)?;
    if k.slot(root).cap.aux != 0 {
        return Err(Error::WrongType);
    }
    if frame_address == 0 {
        return Ok(Configuration { thread, space, root, area: None });
    }
    let frame = bindable(k, frame_address, Kind::Frame, Rights::READ.union(Rights::WRITE))?;
    let cap = &k.slot(frame).cap;
    if cap.flags & flag::DEVICE != 0 {
        return Err(Error::DeviceMemory);
    }
    if offset % AREA_SIZE as u64 != 0 {
        return Err(Error::Misaligned);
    }
    if offset >= cap.size() as u64 {
        return Err(Error::InvalidArgument);
    }
    Ok(Configuration { thread, space, root, area: Some((frame, offset as usize)) })
}

/// `ThreadConfigure`.
pub fn configure<A: Arch>(k: &mut Kernel<A>, caller: Ref<Thread>) -> Result<Outcome, Error> {
    let mut c = decode_configuration(k, caller)?;
    let thread = c.thread;
    let bindings = [Binding::Space, Binding::AddressSpace, Binding::MessageFrame];
    for binding in bindings {
        if clear_binding(k, thread, binding)? {
            c = decode_configuration(k, caller)?;
            if c.thread != thread {
                return Err(Error::Aborted);
            }
        }
    }
    if bindings.iter().any(|binding| is_bound(k, thread, *binding)) {
        return Err(Error::Aborted);
    }
    let root = k.slot(c.root).cap.object;
    let account = account::of_new_thread(k, caller, root);
    account::join(k, thread, account);
    adopt(k, thread, Binding::Space, c.space);
    adopt(k, thread, Binding::AddressSpace, c.root);
    if let Some((frame, offset)) = c.area {
        adopt(k, thread, Binding::MessageFrame, frame);
        k.get(thread).message_area = k.slot(frame).cap.object + offset;
    }
    Ok(Outcome::Done)
}

/// Puts a copy of a capability, which was checked, into an empty binding slot, and makes it effective.
pub fn adopt<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, binding: Binding, source: SlotRef) {
    let Some(slot) = binding_slot(k, thread, binding) else { return };
    space::embed(k, source, slot);
    let cap = k.slot(source).cap;
    take_up(k, thread, binding, &cap);
}

/// Whether a binding slot holds something.
fn is_bound<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, binding: Binding) -> bool {
    k.get(thread).bindings[binding as usize].cap.kind != Kind::Null
}

/// Empties a binding slot. The object stays: whoever calls this holds another capability to what replaces it, and an
/// object whose last capability was a binding is finalised like any other. That passes windows. Answers whether anything
/// was there; then everything that was known has to be looked up again, the thread included.
///
/// # Errors
/// `Aborted` if the running thread has deleted itself.
fn clear_binding<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, binding: Binding) -> Result<bool, Error> {
    if !is_bound(k, thread, binding) {
        return Ok(false);
    }
    if let Some(slot) = binding_slot(k, thread, binding) {
        crate::delete::delete(k, slot)?;
    }
    Ok(true)
}

/// What `ThreadBind` can bind, in the order of its arguments.
const BINDABLE: [(Binding, Kind, Rights); 3] = [
    (Binding::Scheduling, Kind::SchedulingContext, Rights::WRITE),
    (Binding::Reply, Kind::Reply, Rights::WRITE),
    (Binding::Notification, Kind::Notification, Rights::READ),
];

/// All checks of `ThreadBind`. The slots mean nothing after a window.
fn decode_bindings<A: Arch>(
    k: &mut Kernel<A>,
    caller: Ref<Thread>,
) -> Result<(Ref<Thread>, [Option<SlotRef>; 3]), Error> {
    let thread = target(k, caller, Rights::WRITE)?;
    let mut sources = [None; 3];
    for (i, (binding, kind, rights)) in BINDABLE.into_iter().enumerate() {
        let address = argument(k, caller, i + 1);
        if address == 0 || address == UNBIND {
            continue;
        }
        let slot = bindable(k, address, kind, rights)?;
        if is_bound(k, thread, binding) {
            return Err(Error::AlreadyBound);
        }
        check_free(k, thread, slot)?;
        sources[i] = Some(slot);
    }
    Ok((thread, sources))
}

/// `ThreadBind`. What is to be unbound goes first.
pub fn bind<A: Arch>(k: &mut Kernel<A>, caller: Ref<Thread>) -> Result<Outcome, Error> {
    let (thread, mut sources) = decode_bindings(k, caller)?;
    for (i, (binding, ..)) in BINDABLE.into_iter().enumerate() {
        if argument(k, caller, i + 1) == UNBIND && clear_binding(k, thread, binding)? {
            let again;
            (again, sources) = decode_bindings(k, caller)?;
            if again != thread {
                return Err(Error::Aborted);
            }
        }
    }
    for ((binding, ..), source) in BINDABLE.into_iter().zip(sources) {
        if let Some(slot) = source {
            adopt(k, thread, binding, slot);
        }
    }
    Ok(Outcome::Done)
}

/// Whether the object in `slot` can be bound to `thread`: nobody else has it.
fn check_free<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, slot: SlotRef) -> Result<(), Error> {
    let (kind, object) = (k.slot(slot).cap.kind, k.slot(slot).cap.object);
    let taken = match kind {
        // SAFETY: a live capability of this kind names such an object (also in the two below).
        Kind::SchedulingContext => unsafe { Ref::<SchedulingContext>::at(object) }
            .is_some_and(|o| k.get(o).thread.is_some() || k.get(thread).scheduling.is_some()),
        // SAFETY: see above.
        Kind::Reply => match unsafe { Ref::<Reply>::at(object) } {
            Some(o) if k.get(o).caller.is_some() => return Err(Error::Busy),
            Some(o) => k.get(o).claimed.is_some(),
            None => true,
        },
        // SAFETY: see above.
        _ => unsafe { Ref::<Notification>::at(object) }.is_none_or(|o| k.get(o).bound.is_some()),
    };
    if taken { Err(Error::AlreadyBound) } else { Ok(()) }
}

/// Makes a new binding effective.
fn take_up<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, binding: Binding, cap: &Cap) {
    let object = cap.object;
    match binding {
        Binding::Space => {
            let t = k.get(thread);
            t.space_root = object;
            t.space_slots = cap.slots();
        }
        Binding::AddressSpace => {
            let register = crate::table::space_register(k, object);
            k.get(thread).space_register = register;
            if thread == k.current() {
                k.arch().load_space(register);
            }
        }
        Binding::Scheduling => {
            // SAFETY: `object` comes from a live capability of the kind that goes with the binding (also below).
            let Some(context) = (unsafe { Ref::<SchedulingContext>::at(object) }) else { return };
            let c = k.get(context);
            c.accounted = c.consumed;
            scheduling::give(k, context, thread);
            if matches!(k.get(thread).state, ThreadState::Ready) {
                scheduler::make_ready(k, thread);
            }
        }
        Binding::Reply => {
            // SAFETY: as above.
            let Some(reply) = (unsafe { Ref::<Reply>::at(object) }) else { return };
            let r = k.get(reply);
            r.claimed = Some(thread);
            r.bound = true;
            k.get(thread).bound_reply = Some(reply);
        }
        Binding::Notification => {
            // SAFETY: as above.
            let Some(notification) = (unsafe { Ref::<Notification>::at(object) }) else { return };
            let n = k.get(notification);
            n.bound = Some(thread);
            let pending = n.word != 0;
            let t = k.get(thread);
            t.notification = Some(notification);
            if pending {
                t.slow |= slow::SIGNALLED;
            }
        }
        _ => {}
    }
}

/// A binding slot is about to be emptied: whatever the thread remembers of it is cleared.
pub fn unbind<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) {
    let Some((thread, binding)) = owner_of_binding(k, slot) else { return };
    let object = k.slot(slot).cap.object;
    match binding {
        Binding::Space => {
            let t = k.get(thread);
            t.space_root = 0;
            t.space_slots = 0;
        }
        Binding::AddressSpace => {
            let empty = k.arch().empty_space_register();
            k.get(thread).space_register = empty;
            if thread == k.current() {
                k.arch().load_space(empty);
            }
        }
        Binding::MessageFrame => k.get(thread).message_area = 0,
        Binding::Scheduling => {
            account::settle(k, thread);
            // SAFETY: the binding's capability is still alive, so is its object (also below).
            if let Some(context) = unsafe { Ref::<SchedulingContext>::at(object) } {
                scheduling::take(k, context);
            }
        }
        Binding::Reply => unbind_reply(k, thread, object),
        Binding::Notification => {
            // SAFETY: as above.
            if let Some(notification) = unsafe { Ref::<Notification>::at(object) } {
                k.get(notification).bound = None;
            }
            let t = k.get(thread);
            t.notification = None;
            t.slow &= !slow::SIGNALLED;
        }
        Binding::Fault0 | Binding::Fault1 | Binding::Fault2 => {}
    }
}

/// Takes a reply object off its thread. A thread that waits with it gets `Aborted`.
fn unbind_reply<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, object: usize) {
    // SAFETY: see `unbind`.
    let Some(reply) = (unsafe { Ref::<Reply>::at(object) }) else { return };
    let t = k.get(thread);
    t.bound_reply = None;
    let waits = t.receive_reply == Some(reply) && matches!(t.state, ThreadState::Receiving(_));
    let r = k.get(reply);
    r.bound = false;
    r.claimed = None;
    if waits {
        endpoint::cancel(k, thread, Error::Aborted);
    }
}

/// All checks of `ThreadFaults`. The slot means nothing after a window.
fn decode_faults<A: Arch>(
    k: &mut Kernel<A>,
    caller: Ref<Thread>,
) -> Result<(Ref<Thread>, Class, Option<SlotRef>), Error> {
    let thread = target(k, caller, Rights::WRITE)?;
    let Some(class) = Class::from_code(argument(k, caller, 1)) else { return Err(Error::InvalidArgument) };
    let source = match argument(k, caller, 2) {
        0 => None,
        address => Some(bindable(k, address, Kind::Endpoint, Rights::WRITE.union(Rights::CALL))?),
    };
    Ok((thread, class, source))
}

/// `ThreadFaults`.
pub fn faults<A: Arch>(k: &mut Kernel<A>, caller: Ref<Thread>) -> Result<Outcome, Error> {
    let (thread, class, mut source) = decode_faults(k, caller)?;
    if clear_binding(k, thread, Binding::fault(class))? {
        let again;
        (again, _, source) = decode_faults(k, caller)?;
        if again != thread || is_bound(k, thread, Binding::fault(class)) {
            return Err(Error::Aborted);
        }
    }
    if let Some(slot) = source {
        adopt(k, thread, Binding::fault(class), slot);
    }
    let target = FaultTarget { entry: argument(k, caller, 3), stack: argument(k, caller, 4) };
    if let Some(place) = k.get(thread).fault_targets.get_mut(class as usize) {
        *place = target;
    }
    Ok(Outcome::Done)
}

/// Lets a suspended or faulted thread run.
fn resume<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<(), Error> {
    let t = k.get(thread);
    if t.space_slots == 0 || t.bindings[Binding::AddressSpace as usize].cap.kind == Kind::Null {
        return Err(Error::NotConfigured);
    }
    if matches!(t.state, ThreadState::Suspended | ThreadState::Faulted) {
        scheduler::make_ready(k, thread);
    }
    Ok(())
}

/// `ThreadResume`.
pub fn resume_call<A: Arch>(k: &mut Kernel<A>, caller: Ref<Thread>) -> Result<Outcome, Error> {
    let thread = target(k, caller, Rights::WRITE)?;
    resume(k, thread)?;
    Ok(Outcome::Done)
}

/// Stops a thread, whatever it does.
pub fn suspend<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    endpoint::cancel(k, thread, Error::Aborted);
    scheduler::dequeue(k, thread);
    let t = k.get(thread);
    if !matches!(t.state, ThreadState::Faulted) {
        t.state = ThreadState::Suspended;
    }
}

/// `ThreadSuspend`.
pub fn suspend_call<A: Arch>(k: &mut Kernel<A>, caller: Ref<Thread>) -> Result<Outcome, Error> {
    let thread = target(k, caller, Rights::WRITE)?;
    suspend(k, thread);
    Ok(Outcome::Done)
}

/// Whether a thread's registers are at rest.
fn at_rest<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> bool {
    matches!(k.get(thread).state, ThreadState::Suspended | ThreadState::Faulted)
}

/// `ThreadReadRegisters`.
pub fn read_registers<A: Arch>(k: &mut Kernel<A>, caller: Ref<Thread>) -> Result<Outcome, Error> {
    let thread = target(k, caller, Rights::READ)?;
    let flags = argument(k, caller, 1);
    if flags > 1 {
        return Err(Error::InvalidArgument);
    }
    let area = Area::of(k, caller).ok_or(Error::NoMessageArea)?;
    if flags & 1 != 0 && thread != caller {
        suspend(k, thread);
    }
    if !at_rest(k, thread) {
        return Err(Error::WrongState);
    }
    area.store_registers(k, thread);
    Ok(Outcome::Done)
}

/// `ThreadWriteRegisters`. An operation that the thread was suspended in, in a window, is forgotten.
pub fn write_registers<A: Arch>(k: &mut Kernel<A>, caller: Ref<Thread>) -> Result<Outcome, Error> {
    let thread = target(k, caller, Rights::WRITE)?;
    let flags = argument(k, caller, 1);
    if flags > 1 {
        return Err(Error::InvalidArgument);
    }
    let area = Area::of(k, caller).ok_or(Error::NoMessageArea)?;
    if !at_rest(k, thread) {
        return Err(Error::WrongState);
    }
    if flags & 1 != 0 {
        resume(k, thread)?;
    }
    load_registers(k, thread, area);
    k.get(thread).kernel_stack_pointer = 0;
    Ok(Outcome::Done)
}

/// `ThreadQuery`.
pub fn query<A: Arch>(k: &mut Kernel<A>, caller: Ref<Thread>) -> Result<Outcome, Error> {
    let thread = target(k, caller, Rights::READ)?;
    scheduler::charge(k);
    let depth = stack_depth(k, thread);
    let s = &mut k.state().statistics;
    s.deepest_stack = s.deepest_stack.max(depth);
    let t = k.get(thread);
    let state = match t.state {
        ThreadState::Suspended => State::Suspended,
        ThreadState::Ready => State::Ready,
        ThreadState::Sending(_) => State::Sending,
        ThreadState::Receiving(_) => State::Receiving,
        ThreadState::AwaitingReply(_) => State::AwaitingReply,
        ThreadState::Waiting(_) => State::Waiting,
        ThreadState::Faulted => State::Faulted,
    };
    let (priority, fault, scheduling) = (t.priority.max(0) as u64, t.fault, t.scheduling);
    let consumed = scheduling.map_or(0, |context| k.get(context).consumed);
    let answers = [state as u64, priority, consumed, depth, fault.address, fault.instruction, fault.syndrome];
    Ok(Outcome::results(k, caller, &answers))
}

/// The last capability to a thread goes: it stops, and nothing refers to it any more. Its bindings are emptied by the
/// caller. `object` is the address of the thread object.
pub fn finalise<A: Arch>(k: &mut Kernel<A>, object: usize) -> bool {
    // SAFETY: the caller finalises a live thread object.
    let Some(thread) = (unsafe { Ref::<Thread>::at(object + THREAD_OFFSET) }) else { return true };
    suspend(k, thread);
    k.get(thread).state = ThreadState::Suspended;
    k.get(thread).kernel_stack_pointer = 0;
    if k.state().float_owner == Some(thread) {
        k.state().float_owner = None;
    }
    if let Some(context) = k.get(thread).scheduling {
        scheduling::take(k, context);
    }
    account::leave(k, thread);
    if thread == k.current() {
        k.get(thread).slow |= slow::DELETED;
    }
    true
}
