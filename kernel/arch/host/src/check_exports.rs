//! Checks the flags of remote capabilities: those that were imported from other cores or exported to them.

use tench_abi::object::SLOT_SIZE;
use tench_abi::{Kind, Rights};
use tench_kernel::slot::{Payload, flag};
use tench_kernel::thread::{BINDINGS, Thread};
use tench_kernel::{Arch, Cap, Kernel, Ref, SlotRef, derivation};

use crate::check::{Checked, Inventory, ensure};
use crate::host::Host;

/// Checks that exported and imported capabilities are where they can be.
pub fn check_exports(k: &mut Kernel<Host>, inventory: &Inventory) -> Checked {
    let mut before: Option<Cap> = None;
    // Untyped memory that contains the following capabilities' objects, the outermost first.
    let mut around: Vec<Cap> = Vec::new();
    for (slot, cap) in &inventory.slots {
        around.retain(|outer| cap.object < derivation::end_address(outer));
        check_marks(k, inventory, *slot, cap).map_err(|wrong| format!("{slot:?}: {wrong}: {cap:x?}"))?;
        let equal = before.is_some_and(|before| is_equal(&before, cap));
        ensure!(!equal || !cap.is_exported(), "{slot:?} is exported and not the first of its equals: {cap:x?}");
        let is_in_own = around.last().is_some_and(|outer| !outer.is_exported());
        ensure!(!cap.is_borrowed() || !is_in_own, "{slot:?} is borrowed and lies in own memory: {cap:x?}");
        if cap.kind == Kind::Untyped && !derivation::is_reservation(cap) {
            around.push(*cap);
        }
        before = Some(*cap);
    }
    Ok(())
}

/// Returns true if two capabilities are equal in the derivation tree's order.
fn is_equal(a: &Cap, b: &Cap) -> bool {
    derivation::same_object(a, b) && a.kind != Kind::Untyped
}

/// Checks the flags of one capability by themselves.
fn check_marks(k: &mut Kernel<Host>, inventory: &Inventory, slot: SlotRef, cap: &Cap) -> Checked {
    let is_exported = cap.is_exported();
    let address = k.arch().base() + ((slot.number() as usize) << 6);
    let is_binding = |thread: &Ref<Thread>| {
        let first = thread.address() + core::mem::offset_of!(Thread, bindings);
        (first..first + BINDINGS * SLOT_SIZE).contains(&address)
    };
    if cap.flags & flag::EMBEDDED != 0 {
        let is_binding = inventory.threads.iter().any(is_binding);
        ensure!(is_binding != is_exported, "marked, but neither a binding nor an exported capability, or both");
    }
    ensure!(!is_exported || !cap.is_borrowed(), "an exported capability to what is borrowed");
    ensure!(!is_exported || cap.flags & flag::ZOMBIE == 0, "an exported capability that is being deleted");
    match cap.payload() {
        Payload::Untyped(..) => {
            let can_make = cap.allows(Rights::WRITE);
            ensure!(can_make != is_exported, "an untyped that is lent and can be retyped, or neither");
        }
        Payload::Frame(sharing) => ensure!(is_exported == sharing.exported, "half of a mark"),
        _ => {}
    }
    Ok(())
}
