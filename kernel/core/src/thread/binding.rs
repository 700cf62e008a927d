//! Bindings of a thread: its CSpace and address space, IPC buffer, scheduling context, reply object, notification, the
//! endpoint that it serves, and its fault endpoints.
//!
//! Each is a capability in a slot of the thread, and goes when its object goes. The fields of the thread that repeat a
//! binding, for the fast paths, are written by `take_up` and cleared by [`unbind`].

use tench_abi::Error;

use super::{Binding, OBJECT_SIZE, THREAD_OFFSET, Thread, ThreadState, blocker};
use crate::endpoint::Endpoint;
use crate::helping::heights;
use crate::notification::Notification;
use crate::object::Ref;
use crate::reply::Reply;
use crate::scheduling_context::SchedulingContext;
use crate::slot::{Cap, Slot, SlotRef};
use crate::{Arch, Kernel, account, cspace, endpoint, helping, page_table, scheduling_context};

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
pub(crate) fn binding_slot<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, binding: Binding) -> Option<SlotRef> {
    let address = thread.address() + core::mem::offset_of!(Thread, bindings) + binding as usize * size_of::<Slot>();
    k.slot_at(address)
}

/// Copies a capability, which was checked, into an empty binding slot, and makes the binding effective.
pub fn adopt<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, binding: Binding, source: SlotRef) {
    let Some(slot) = binding_slot(k, thread, binding) else { return };
    cspace::embed(k, source, slot);
    let cap = k.slot(source).cap;
    take_up(k, thread, binding, &cap);
}

/// Makes a new binding effective.
fn take_up<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, binding: Binding, cap: &Cap) {
    match binding {
        Binding::CSpace => {
            let t = k.get(thread);
            t.cspace_root = cap.object;
            t.cspace_slots = cap.slots();
        }
        Binding::AddressSpace => {
            let Some(root) = cap.named() else { return };
            let register = page_table::enter(k, root);
            k.get(thread).space_register = register;
            if thread == k.current() {
                k.arch().load_space(register);
            }
        }
        Binding::Scheduling => {
            let Some(context) = cap.named::<SchedulingContext>() else { return };
            scheduling_context::bind(k, context, thread);
        }
        Binding::Reply => {
            let Some(reply) = cap.named::<Reply>() else { return };
            helping::release(k, reply);
            let r = k.get(reply);
            r.claimed = Some(thread);
            r.bound = true;
            k.get(thread).bound_reply = Some(reply);
            heights::rejoin(k, thread);
        }
        Binding::Notification => {
            let Some(notification) = cap.named::<Notification>() else { return };
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
            let Some(endpoint) = cap.named::<Endpoint>() else { return };
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
    let cap = k.slot(slot).cap;
    match binding {
        Binding::CSpace => {
            let t = k.get(thread);
            t.cspace_root = 0;
            t.cspace_slots = 0;
        }
        Binding::AddressSpace => {
            if let Some(root) = cap.named() {
                page_table::leave(k, root);
            }
            let empty = k.arch().empty_space_register();
            k.get(thread).space_register = empty;
            if thread == k.current() {
                k.arch().load_space(empty);
            }
        }
        Binding::IpcBuffer => k.get(thread).set_ipc_buffer(0),
        Binding::Scheduling => {
            account::transfer_time(k, thread);
            if let Some(context) = cap.named::<SchedulingContext>() {
                scheduling_context::unbind(k, context);
            }
        }
        Binding::Reply => unbind_reply(k, thread, &cap),
        Binding::Notification => {
            if let Some(notification) = cap.named::<Notification>() {
                k.get(notification).bound = None;
            }
            let t = k.get(thread);
            t.notification = None;
            t.blockers &= !blocker::SIGNALLED;
            helping::propagate(k, thread);
        }
        Binding::Served => {
            if let Some(endpoint) = cap.named::<Endpoint>() {
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
fn unbind_reply<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, cap: &Cap) {
    let Some(reply) = cap.named::<Reply>() else { return };
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
