//! Whether each thread runs at the priority of whoever waits for it, and nobody at one that nobody gives.

use tench_abi::Kind;
use tench_kernel::inherit::FEW;
use tench_kernel::object::{Endpoint, Ref};
use tench_kernel::thread::{Thread, ThreadState, slow};
use tench_kernel::{Kernel, scheduling};

use crate::check::{Checked, Inventory, ensure};
use crate::host::Host;

/// Who waits for a thread: the caller in its bound reply object first, then those at the endpoint that it serves, in their order.
/// From the threads' states alone.
pub fn waiting_for(k: &mut Kernel<Host>, inventory: &Inventory, server: Ref<Thread>) -> Vec<Ref<Thread>> {
    let (reply, served) = (k.get(server).bound_reply, k.get(server).served);
    let calls = |k: &mut Kernel<Host>, thread: &Ref<Thread>| matches!(k.get(*thread).state, ThreadState::AwaitingReply(object) if Some(object) == reply);
    let mut found: Vec<Ref<Thread>> = inventory.threads.iter().copied().filter(|thread| calls(k, thread)).collect();
    let head = served.map_or(1, |endpoint| k.get(endpoint).head);
    // SAFETY: an even head is that of a queue of senders, whose threads live (`check_queues`).
    let mut at = if head & 1 == 0 { unsafe { Ref::<Thread>::at(head) } } else { None };
    while let Some(sender) = at {
        found.push(sender);
        at = k.get(sender).next;
    }
    found
}

/// Checks every thread.
pub fn check_inheritance(k: &mut Kernel<Host>, inventory: &Inventory) -> Checked {
    for endpoint in inventory.of::<Endpoint>(Kind::Endpoint) {
        if let Some(server) = k.get(endpoint).server {
            ensure!(inventory.threads.contains(&server), "{endpoint:?} is served by {server:?}, which does not live");
            let served = k.get(server).served;
            ensure!(served == Some(endpoint), "{endpoint:?} is served by {server:?}, which serves {served:?}");
        }
    }
    for thread in &inventory.threads {
        check_thread(k, inventory, *thread).map_err(|wrong| format!("{thread:?}: {wrong}"))?;
    }
    Ok(())
}

/// Checks one thread: nobody for whom it runs has a higher priority, and what it inherited somebody gives.
fn check_thread(k: &mut Kernel<Host>, inventory: &Inventory, thread: Ref<Thread>) -> Checked {
    let own = scheduling::own_priority(k, thread);
    let t = k.get(thread);
    let (inherited, flags, served, priority) = (t.inherited, t.slow, t.served, t.priority);
    ensure!(inherited == 0 || inherited > own, "it inherited {inherited}, but has {own} itself");
    ensure!(inherited == 0 || flags & slow::INHERITS != 0, "it inherited {inherited}, and could answer fast");
    ensure!(flags & slow::CUT == 0 || inherited != 0, "it does not pass on what it has not");
    ensure!(priority <= own.max(inherited), "it runs at {priority}, with {own} and {inherited}");
    if let Some(endpoint) = served {
        ensure!(k.get(endpoint).server == Some(thread), "it serves {endpoint:?}, which is another's");
    }
    let waiting = waiting_for(k, inventory, thread);
    ensure!(inherited == 0 || !waiting.is_empty(), "it inherited {inherited} of nobody");
    for waiter in waiting.into_iter().take(FEW) {
        let w = k.get(waiter);
        let gives = w.priority.max(w.inherited);
        let enough = own.max(inherited) >= gives || w.slow & slow::CUT != 0;
        ensure!(enough, "it has {own} and {inherited}, and {waiter:?} waits for it with {gives}");
    }
    Ok(())
}
