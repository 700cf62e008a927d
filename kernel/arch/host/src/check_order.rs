//! Checks of the derivation structure: the order of all capabilities, and what it says of their memory.

use tench_abi::Kind;
use tench_kernel::derivation::{end_address, equal, in_order, is_reservation, same_object};
use tench_kernel::slot::payload::Marks;
use tench_kernel::slot::{Payload, Slot, flag};
use tench_kernel::tree::{self, runs};
use tench_kernel::{Arch, Cap, Kernel, SlotRef};

use crate::check_tree::check_tree;
use crate::host::Host;

/// Maximum nesting of objects: one for each bit of an address.
const DEPTH: usize = 64;

/// Checks the tree, the order, and that objects are nested only as retype nests them. Returns the number of
/// capabilities. Takes O(n log n).
///
/// # Errors
/// The violated invariant.
pub fn check_order(k: &mut Kernel<Host>) -> Result<usize, &'static str> {
    let count = check_tree(k)?;
    // Ends of the untypeds that contain the current object, outermost first.
    let mut around = [0; DEPTH];
    let mut depth = 0;
    let mut before: Option<Cap> = None;
    let mut at = tree::first(k);
    while let Some(node) = at {
        let cap = k.slot(node).cap;
        let base = k.arch().base();
        check_cap(&cap, base)?;
        check_run(k, node)?;
        let sibling = match &before {
            Some(before) => {
                if !in_order(before, &cap) {
                    return Err("two capabilities are in the wrong order");
                }
                if tree::is_follower(k, node) != (equal(before, &cap) || matches!(cap.kind, Kind::Mapping)) {
                    return Err("a capability stands in the tree beside its equal, or follows another");
                }
                check_neighbours(before, &cap)?
            }
            None => false,
        };
        while depth > 0 && around.get(depth - 1).is_some_and(|end| *end <= cap.object) {
            depth -= 1;
        }
        if !sibling && has_memory(&cap) {
            let enclosing = if depth == 0 { usize::MAX } else { *around.get(depth - 1).unwrap_or(&0) };
            if end_address(&cap) > enclosing {
                return Err("an object reaches beyond what it was made of");
            }
            if end_address(&cap) < enclosing {
                *around.get_mut(depth).ok_or("objects are nested too deeply")? = end_address(&cap);
                depth += 1;
            }
        }
        before = Some(cap);
        at = tree::next(k, node);
    }
    match before {
        Some(last) if has_stale_watermark(&last) => Err("an untyped without children has a watermark"),
        _ => Ok(count),
    }
}

/// Checks that the slot behind a capability in a run holds the frame behind.
fn check_run(k: &mut Kernel<Host>, node: SlotRef) -> Result<(), &'static str> {
    let Slot { cap, links } = *k.slot(node);
    if links.continues == 0 {
        return Ok(());
    }
    let next = runs::after(node).map(|next| k.slot(next).cap);
    match next {
        Some(next)
            if matches!((cap.kind, next.kind), (Kind::Frame, Kind::Frame))
                && next.size_bits == cap.size_bits
                && next.object == end_address(&cap) =>
        {
            Ok(())
        }
        _ => Err("a run's next capability is not to the frame behind"),
    }
}

/// Returns whether an untyped without children has a watermark.
fn has_stale_watermark(cap: &Cap) -> bool {
    matches!(cap.payload(), Payload::Untyped(marks, _) if marks != Marks::default())
}

/// Returns whether a capability has memory of its own.
fn has_memory(cap: &Cap) -> bool {
    !matches!(cap.kind, Kind::Mapping | Kind::Interrupt | Kind::InterruptControl | Kind::Kernel | Kind::Doorbell)
}

/// Checks the fields of one capability.
fn check_cap(cap: &Cap, base: usize) -> Result<(), &'static str> {
    if matches!(cap.kind, Kind::Null) {
        return Err("an empty slot is in the tree");
    }
    let mut updated = *cap;
    updated.update_flags();
    if updated != *cap {
        return Err("a capability's call and receive flags do not follow from its rights");
    }
    if has_memory(cap) && !is_reservation(cap) && cap.object.wrapping_sub(base) & (cap.size() - 1) != 0 {
        return Err("an object is not aligned to its size");
    }
    if matches!(cap.payload(), Payload::Untyped(marks, _) if marks.watermark > cap.size() as u64) {
        return Err("a watermark lies beyond the end");
    }
    Ok(())
}

/// Checks two neighbours in order. Returns whether they name the same object.
fn check_neighbours(before: &Cap, cap: &Cap) -> Result<bool, &'static str> {
    if same_object(before, cap) && !matches!(cap.kind, Kind::Untyped | Kind::Mapping) {
        if (before.flags | cap.flags) & flag::ZOMBIE != 0 {
            return Err("an object that is being deleted has a second capability");
        }
        if before.size_bits != cap.size_bits {
            return Err("two capabilities to one object differ in size");
        }
        return Ok(true);
    }
    if matches!(cap.kind, Kind::Mapping) {
        if before.object != cap.object || !matches!(before.kind, Kind::Frame | Kind::Mapping) {
            return Err("a mapping does not follow a capability to its frame");
        }
        return Ok(false);
    }
    if cap.object < end_address(before) {
        if !matches!(before.kind, Kind::Untyped) || is_reservation(before) {
            return Err("something lies in an object that is not untyped");
        }
    } else if has_stale_watermark(before) {
        return Err("an untyped without children has a watermark");
    }
    Ok(false)
}
