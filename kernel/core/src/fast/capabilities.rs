//! Fast paths of operations on capabilities in the running thread's own CSpace: copying one, deleting one.

use tench_abi::Kind;

use crate::entry::argument;
use crate::fast::Fast;
use crate::mapping::{self, Mapping};
use crate::object::Ref;
use crate::slot::{Cap, SlotRef, flag};
use crate::thread::Thread;
use crate::{Arch, Kernel, cspace, derivation, scattered};

/// Returns the slot at an address in the CSpace that an argument names, if that is the thread's own.
#[inline(always)]
fn own_slot<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, cspace: u64, address: u64) -> Option<SlotRef> {
    if cspace == 0 { cspace::own_slot(k, thread, address) } else { None }
}

/// Fast path of `Copy`.
#[inline(always)]
pub fn copy<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, cspace: u64, address: u64) -> Fast {
    let Some(source) = own_slot(k, thread, cspace, address) else { return Fast::Slow };
    let (cspace, place) = (argument(k, thread, 2), argument(k, thread, 3));
    let Some(destination) = own_slot(k, thread, cspace, place) else { return Fast::Slow };
    let cap = &k.slot(source).cap;
    if matches!(cap.kind, Kind::Null | Kind::Untyped | Kind::Mapping) || cap.flags & flag::ZOMBIE != 0 {
        return Fast::Slow;
    }
    let copy = cspace::duplicate(cap);
    if k.slot(destination).cap.kind != Kind::Null || place == 0 {
        return Fast::Slow;
    }
    // ── Point of no return ──
    derivation::insert_equal(k, source, destination, &copy);
    Fast::DONE
}

/// Fast path of `Delete`: of a mapping of one page, one of several capabilities to an object, or the only one to a
/// frame that is not mapped.
#[inline(always)]
pub fn delete<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, cspace: u64, address: u64) -> Fast {
    let Some(slot) = own_slot(k, thread, cspace, address) else { return Fast::Slow };
    let asks_for_address = argument(k, thread, 2) != 0;
    let Cap { kind, flags, size_bits, .. } = k.slot(slot).cap;
    let is_rare = matches!(kind, Kind::Null | Kind::Untyped) || flags & (flag::EMBEDDED | flag::ZOMBIE) != 0;
    if is_rare || asks_for_address || address == 0 {
        return Fast::Slow;
    }
    if kind == Kind::Mapping {
        let cap = &k.slot(slot).cap;
        if scattered::is_scattered(cap) || Mapping::of(cap).count != 1 {
            return Fast::Slow;
        }
        // ── Point of no return ──
        mapping::finalise_page(k, slot);
        derivation::remove_follower(k, slot);
        return Fast::Results([1, 0, 0]);
    }
    let found = derivation::neighbours(k, slot);
    if !found.sibling && (kind != Kind::Frame || found.mapping) {
        return Fast::Slow;
    }
    // ── Point of no return ──
    derivation::remove_fast(k, slot);
    if found.sibling { Fast::DONE } else { Fast::Results([1, 0, size_bits.into()]) }
}
