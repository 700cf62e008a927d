//! Checks of the capabilities: their tree and order, their slots, and the objects that they name.

use std::mem::offset_of;

use rustc_hash::FxHashSet;
use tench_abi::Kind;
use tench_abi::object::SLOT_SIZE;
use tench_kernel::slot::Payload;
use tench_kernel::slot::payload::Marks;
use tench_kernel::thread::{BINDINGS, THREAD_OFFSET, Thread};
use tench_kernel::{Cap, Kernel, SlotRef, derivation};

use crate::check::{Checked, Inventory, ensure, has_object};
use crate::check_order::check_order;
use crate::host::Host;

/// Checks tree and order of the capabilities.
pub fn check_derivation(k: &mut Kernel<Host>, inventory: &Inventory) -> Checked {
    let count = check_order(k)?;
    ensure!(count == inventory.slots.len(), "the tree has {count} nodes, its list {}", inventory.slots.len());
    Ok(())
}

/// Checks that what was made from an untyped ends at one of its watermarks or below.
pub fn check_watermarks(inventory: &Inventory) -> Checked {
    // Untyped memory that contains the following capabilities' objects, the outermost first.
    let mut around: Vec<Cap> = Vec::new();
    for (slot, cap) in &inventory.slots {
        around.retain(|outer| cap.object < derivation::end_address(outer));
        if let Some(outer) = around.last() {
            let (end, mark) = (derivation::end_address(cap), outer.object + Marks::of(outer).end() as usize);
            ensure!(end <= mark, "{slot:?} ends at {end:x}, above {mark:x}, the watermarks of what it was made from");
        }
        if cap.kind == Kind::Untyped && !derivation::is_reservation(cap) {
            around.push(*cap);
        }
    }
    Ok(())
}

/// Checks that each slot that holds a capability is in the tree, and that the tree holds no other slots.
pub fn check_slots(k: &mut Kernel<Host>, inventory: &Inventory) -> Checked {
    let listed: FxHashSet<SlotRef> = inventory.slots.iter().map(|(slot, _)| *slot).collect();
    let mut found = 0;
    for cap in inventory.objects.values() {
        let (first, count) = match cap.kind {
            Kind::CapNode => (cap.object, cap.slots()),
            Kind::Thread => (cap.object + THREAD_OFFSET + offset_of!(Thread, bindings), BINDINGS),
            _ => continue,
        };
        for i in 0..count {
            let slot = k.slot_at(first + i * SLOT_SIZE).ok_or("a slot at address 0")?;
            let kind = k.slot(slot).cap.kind;
            ensure!(kind == Kind::Null || listed.contains(&slot), "{slot:?} holds {kind:?}, but is not in the tree");
            found += usize::from(kind != Kind::Null);
        }
    }
    // Objects do not overlap, so each slot was counted once.
    let count = listed.len();
    ensure!(found == count, "the tree has {count} slots, but {found} in live nodes and threads hold something");
    Ok(())
}

/// Checks that capabilities to one object agree, that objects do not overlap, and that they lie in RAM if the kernel
/// writes them.
pub fn check_objects(inventory: &Inventory) -> Checked {
    for (slot, cap) in &inventory.slots {
        let Some(object) = inventory.objects.get(&cap.object) else { continue };
        if !has_object(cap.kind) {
            continue;
        }
        // The part of the payload in which all capabilities to an object agree.
        let about = |cap: &Cap| match cap.payload() {
            Payload::Node(number) | Payload::PageTable(number) => number,
            _ => u32::from(cap.is_borrowed()),
        };
        let same = (cap.kind, cap.size_bits, about(cap)) == (object.kind, object.size_bits, about(object));
        ensure!(same, "{slot:?}: {cap:x?} and {object:x?} share an address");
        ensure!(cap.object.trailing_zeros() >= u32::from(cap.size_bits).min(21), "{slot:?}: misaligned {cap:x?}");
    }
    let mut end = 0;
    for cap in inventory.objects.values() {
        ensure!(cap.object >= end, "{cap:x?} overlaps the object before it, which ends at {end:x}");
        end = cap.object + cap.size();
    }
    Ok(())
}
