//! Bindings of a thread: its CSpace and address space, IPC buffer, scheduling context, reply object, notification, the
//! endpoint that it serves, and its fault endpoints.
//!
//! Each is a capability in a slot of the thread, and goes when its object goes. The fields of the thread that repeat a
//! binding, for the fast paths, are written by `take_up` and cleared by [`unbind`].

use tench_abi::fault::Class;
use tench_abi::layout::UNBIND;
use tench_abi::message::IPC_BUFFER_SIZE;
use tench_abi::object::MAX_DEPTH;
use tench_abi::{Error, Kind, Rights};

use super::{Binding, FaultTarget, OBJECT_SIZE, THREAD_OFFSET, Thread, ThreadState, blocker, target};
use crate::entry::{Outcome, argument, slot_at};
use crate::helping::heights;
use crate::object::{Endpoint, Notification, PageTable, Ref, Reply, SchedulingContext};
use crate::slot::{Cap, Slot, SlotRef, flag};
use crate::{
    Arch, Kernel, account, cspace, endpoint, helping, page_table, preemption_point, reply, scheduling_context,
};

/// Returns the thread that contains a binding slot, and which binding the slot holds.
fn owner_of_binding<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) -> Option<(Ref<Thread>, Binding)> {
    let address = core::ptr::from_mut(k.slot(slot)).addr();
    let object = address & !(OBJECT_SIZE - 1);
    // SAFETY: this function is called for slots with the `EMBEDDED` flag only, and those lie in a live thread object,
    // which is aligned to its size.
    let thread = unsafe { Ref::<Thread>::at(object + THREAD_OFFSET) }?;
    let first = object + THREAD_OFFSET + core::mem::offset_of!(Thread, bindings);
    let binding = *Binding::ALL.get(address.wrapping_sub(first) / size_of::<Slot>())?;
    Some((thread, binding))
}

/// Returns the slot of a binding.
fn binding_slot<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, binding: Binding) -> Option<SlotRef> {
    let address = thread.address() + core::mem::offset_of!(Thread, bindings) + binding as usize * size_of::<Slot>();
    k.slot_at(address)
}

/// The checked arguments of `ThreadConfigure`. The slots are invalid after a preemption point.
struct Configuration {
    thread: Ref<Thread>,
    cspace: SlotRef,
    root: SlotRef,
    /// The account to which the thread will belong.
    account: Option<Ref<PageTable>>,
    /// Frame of the IPC buffer, and the offset there in bytes.
    buffer: Option<(SlotRef, usize)>,
}

/// Does all checks of `ThreadConfigure`.
fn decode_configuration<A: Arch>(k: &mut Kernel<A>, caller: Ref<Thread>) -> Result<Configuration, Error> {
    let thread = target(k, caller, Rights::WRITE)?;
    if !matches!(k.get(thread).state, ThreadState::Suspended | ThreadState::Faulted) {
        return Err(Error::WrongState);
    }
    let [cspace_address, root_address, frame_address, offset] = core::array::from_fn(|i| argument(k, caller, i + 1));
    let cspace = slot_at(k, cspace_address, Kind::CapNode, Rights::WRITE)?;
    let root = slot_at(k, root_address, Kind::PageTable, Rights::WRITE)?;
    if k.slot(root).cap.aux != 0 {
        return Err(Error::WrongType);
    }
    let account = account::of_configured(k, caller, thread, root)?;
    if frame_address == 0 {
        return Ok(Configuration { thread, cspace, root, account, buffer: None });
    }
    let frame = slot_at(k, frame_address, Kind::Frame, Rights::READ.union(Rights::WRITE))?;
    let cap = &k.slot(frame).cap;
    if cap.flags & flag::DEVICE != 0 {
        return Err(Error::DeviceMemory);
    }
    if offset % IPC_BUFFER_SIZE as u64 != 0 {
        return Err(Error::Misaligned);
    }
    if offset >= cap.size() as u64 {
        return Err(Error::InvalidArgument);
    }
    Ok(Configuration { thread, cspace, root, account, buffer: Some((frame, offset as usize)) })
}

/// Performs `ThreadConfigure`.
pub fn configure<A: Arch>(k: &mut Kernel<A>, caller: Ref<Thread>) -> Result<Outcome, Error> {
    let mut c = decode_configuration(k, caller)?;
    let thread = c.thread;
    let bindings = [Binding::CSpace, Binding::AddressSpace, Binding::IpcBuffer];
    let mut cleared = 0;
    for binding in bindings {
        cleared += 1;
        if clear_binding(k, thread, binding)? {
            c = decode_configuration(k, caller)?;
            // If another thread has configured this one meanwhile, the other configuration stays.
            if c.thread != thread || bindings.iter().take(cleared).any(|binding| is_bound(k, thread, *binding)) {
                return Err(Error::Aborted);
            }
        }
    }
    account::join(k, thread, c.account);
    adopt(k, thread, Binding::CSpace, c.cspace);
    adopt(k, thread, Binding::AddressSpace, c.root);
    if let Some((frame, offset)) = c.buffer {
        adopt(k, thread, Binding::IpcBuffer, frame);
        k.get(thread).ipc_buffer = k.slot(frame).cap.object + offset;
    }
    Ok(Outcome::Done)
}

/// Copies a capability, which was checked, into an empty binding slot, and makes the binding effective.
pub fn adopt<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, binding: Binding, source: SlotRef) {
    let Some(slot) = binding_slot(k, thread, binding) else { return };
    cspace::embed(k, source, slot);
    let cap = k.slot(source).cap;
    take_up(k, thread, binding, &cap);
}

/// Returns whether a binding slot holds a capability.
fn is_bound<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, binding: Binding) -> bool {
    k.get(thread).bindings[binding as usize].cap.kind != Kind::Null
}

/// Empties a binding slot. An object whose last capability was the binding is finalised like any other, which contains
/// preemption points. Returns whether the slot held a capability; if so, the caller has to look up everything again,
/// the thread included.
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
    // One system call can empty several bindings, and each can be the last capability of an object.
    if preemption_point::pass(k).is_deleted() { Err(Error::Aborted) } else { Ok(true) }
}

/// Bindings that `ThreadBind` can bind, in the order of its arguments.
const BINDABLE: [(Binding, Kind, Rights); 3] = [
    (Binding::Scheduling, Kind::SchedulingContext, Rights::WRITE),
    (Binding::Reply, Kind::Reply, Rights::WRITE),
    (Binding::Notification, Kind::Notification, Rights::READ),
];

/// Does all checks of `ThreadBind`. The slots are invalid after a preemption point.
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
        let slot = slot_at(k, address, kind, rights)?;
        if is_bound(k, thread, binding) {
            return Err(Error::AlreadyBound);
        }
        check_free(k, slot)?;
        sources[i] = Some(slot);
    }
    Ok((thread, sources))
}

/// Performs `ThreadBind`. Unbinding comes first.
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

/// Checks that the object in `slot` is bound to no thread and in use by none.
fn check_free<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) -> Result<(), Error> {
    let (kind, object) = (k.slot(slot).cap.kind, k.slot(slot).cap.object);
    let taken = match kind {
        Kind::SchedulingContext => {
            // SAFETY: a live capability of this kind names such an object (also in the two below).
            unsafe { Ref::<SchedulingContext>::at(object) }.is_some_and(|o| k.get(o).owner.is_some())
        }
        // SAFETY: see above.
        Kind::Reply => match unsafe { Ref::<Reply>::at(object) } {
            Some(o) if k.get(o).caller.is_some() => return Err(Error::Busy),
            Some(o) => reply::is_taken(k, o),
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
        Binding::CSpace => {
            let t = k.get(thread);
            t.cspace_root = object;
            t.cspace_slots = cap.slots();
        }
        Binding::AddressSpace => {
            let register = page_table::enter(k, object);
            k.get(thread).space_register = register;
            if thread == k.current() {
                k.arch().load_space(register);
            }
        }
        Binding::Scheduling => {
            // SAFETY: `object` comes from a live capability of the kind that goes with the binding (also below).
            let Some(context) = (unsafe { Ref::<SchedulingContext>::at(object) }) else { return };
            scheduling_context::bind(k, context, thread);
        }
        Binding::Reply => {
            // SAFETY: as above.
            let Some(reply) = (unsafe { Ref::<Reply>::at(object) }) else { return };
            helping::release(k, reply);
            let r = k.get(reply);
            r.claimed = Some(thread);
            r.bound = true;
            k.get(thread).bound_reply = Some(reply);
            heights::rejoin(k, thread);
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
                t.blockers |= blocker::SIGNALLED;
                t.fast_reply = None;
                helping::propagate(k, thread);
            }
        }
        Binding::Served => {
            // SAFETY: as above.
            let Some(endpoint) = (unsafe { Ref::<Endpoint>::at(object) }) else { return };
            endpoint::queue::set_server(k, endpoint, Some(thread));
            k.get(thread).served = Some(endpoint);
            endpoint::queue::note_senders(k, endpoint);
            heights::serve(k, thread, endpoint);
        }
        _ => {}
    }
}

/// Clears the fields of the thread that repeat a binding, before its slot is emptied.
pub fn unbind<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) {
    let Some((thread, binding)) = owner_of_binding(k, slot) else { return };
    let object = k.slot(slot).cap.object;
    match binding {
        Binding::CSpace => {
            let t = k.get(thread);
            t.cspace_root = 0;
            t.cspace_slots = 0;
        }
        Binding::AddressSpace => {
            page_table::leave(k, object);
            let empty = k.arch().empty_space_register();
            k.get(thread).space_register = empty;
            if thread == k.current() {
                k.arch().load_space(empty);
            }
        }
        Binding::IpcBuffer => k.get(thread).ipc_buffer = 0,
        Binding::Scheduling => {
            account::transfer_time(k, thread);
            // SAFETY: the binding's capability is still alive, so is its object (also below).
            if let Some(context) = unsafe { Ref::<SchedulingContext>::at(object) } {
                scheduling_context::unbind(k, context);
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
            t.blockers &= !blocker::SIGNALLED;
            helping::propagate(k, thread);
        }
        Binding::Served => {
            // SAFETY: as above.
            if let Some(endpoint) = unsafe { Ref::<Endpoint>::at(object) } {
                endpoint::queue::set_server(k, endpoint, None);
            }
            let t = k.get(thread);
            (t.served, t.depth) = (None, 0);
            t.blockers &= !blocker::HELPED;
            helping::propagate(k, thread);
        }
        Binding::Fault0 | Binding::Fault1 | Binding::Fault2 | Binding::Fault3 => {}
    }
}

/// Unbinds a reply object from its thread. A thread that waits to receive with it gets `Aborted`.
fn unbind_reply<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, object: usize) {
    // SAFETY: see `unbind`.
    let Some(reply) = (unsafe { Ref::<Reply>::at(object) }) else { return };
    let caller = k.get(reply).caller;
    let caller = caller.filter(|caller| helping::server_of(k, *caller) == Some(thread));
    let t = k.get(thread);
    t.bound_reply = None;
    let waits = t.receive_reply == Some(reply) && matches!(t.state, ThreadState::Receiving(_));
    let r = k.get(reply);
    r.bound = false;
    r.claimed = None;
    if waits {
        endpoint::cancel(k, thread, Error::Aborted);
    }
    match caller {
        Some(caller) => helping::abandon(k, thread, caller),
        None => heights::rejoin(k, thread),
    }
}

/// Does all checks of `ThreadServe`. The slot is invalid after a preemption point.
fn decode_serve<A: Arch>(k: &mut Kernel<A>, caller: Ref<Thread>) -> Result<(Ref<Thread>, Option<SlotRef>), Error> {
    let thread = target(k, caller, Rights::WRITE)?;
    let address = argument(k, caller, 1);
    if address == 0 {
        return Ok((thread, None));
    }
    if argument(k, caller, 2) > MAX_DEPTH {
        return Err(Error::InvalidArgument);
    }
    let slot = slot_at(k, address, Kind::Endpoint, Rights::READ)?;
    let object = k.slot(slot).cap.object;
    // SAFETY: a live capability of this kind names such an object.
    let has_server = unsafe { Ref::<Endpoint>::at(object) }.is_none_or(|endpoint| k.get(endpoint).server != 0);
    if has_server || is_bound(k, thread, Binding::Served) { Err(Error::AlreadyBound) } else { Ok((thread, Some(slot))) }
}

/// Performs `ThreadServe`.
pub fn serve<A: Arch>(k: &mut Kernel<A>, caller: Ref<Thread>) -> Result<Outcome, Error> {
    match decode_serve(k, caller)? {
        (thread, Some(slot)) => {
            k.get(thread).depth = argument(k, caller, 2) as u8;
            adopt(k, thread, Binding::Served, slot);
        }
        (thread, None) => {
            clear_binding(k, thread, Binding::Served)?;
        }
    }
    Ok(Outcome::Done)
}

/// Does all checks of `ThreadFaults`. The slot is invalid after a preemption point.
fn decode_faults<A: Arch>(
    k: &mut Kernel<A>,
    caller: Ref<Thread>,
) -> Result<(Ref<Thread>, Class, Option<SlotRef>), Error> {
    let thread = target(k, caller, Rights::WRITE)?;
    let Some(class) = Class::from_code(argument(k, caller, 1)) else { return Err(Error::InvalidArgument) };
    let source = match argument(k, caller, 2) {
        0 => None,
        address => Some(slot_at(k, address, Kind::Endpoint, Rights::WRITE.union(Rights::CALL))?),
    };
    Ok((thread, class, source))
}

/// Performs `ThreadFaults`.
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
