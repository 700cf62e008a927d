//! Operations that give threads their bindings: `ThreadConfigure`, `ThreadBind`, `ThreadServe`, `ThreadFaults`.

use tench_abi::fault::Class;
use tench_abi::layout::UNBIND;
use tench_abi::message::IPC_BUFFER_SIZE;
use tench_abi::object::MAX_DEPTH;
use tench_abi::{Error, Kind, Rights};

use crate::endpoint::Endpoint;
use crate::notification::Notification;
use crate::object::Ref;
use crate::page_table::PageTable;
use crate::reply::Reply;
use crate::scheduling_context::SchedulingContext;
use crate::slot::{SlotRef, flag};
use crate::syscall::{Outcome, argument, slot_at};
use crate::thread::binding::{adopt, binding_slot};
use crate::thread::{Binding, FaultTarget, Thread, ThreadState, target};
use crate::{Arch, Kernel, account, delete, preemption_point, reply};

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
    if k.slot(root).cap.level() != 0 {
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
        let buffer = k.slot(frame).cap.object + offset;
        k.get(thread).set_ipc_buffer(buffer);
    }
    Ok(Outcome::Done)
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
        delete::delete(k, slot)?;
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
    let cap = k.slot(slot).cap;
    let taken = if let Some(context) = cap.named::<SchedulingContext>() {
        k.get(context).owner.is_some()
    } else if let Some(reply) = cap.named::<Reply>() {
        if k.get(reply).caller.is_some() {
            return Err(Error::Busy);
        }
        reply::is_taken(k, reply)
    } else {
        cap.named::<Notification>().is_none_or(|notification| k.get(notification).bound.is_some())
    };
    if taken { Err(Error::AlreadyBound) } else { Ok(()) }
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
    let endpoint = k.slot(slot).cap.named::<Endpoint>();
    let has_server = endpoint.is_none_or(|endpoint| k.get(endpoint).server != 0);
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
    let t = k.get(thread);
    t.has_upcalls = t.fault_targets.iter().any(|target| target.entry != 0).into();
    Ok(Outcome::Done)
}
