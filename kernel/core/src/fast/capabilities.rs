//! Fast paths of operations on capabilities in the running thread's own CSpace: copying one, deleting one.

use tench_abi::Kind;

use crate::delete::{self, Deleted};
use crate::fast::Fast;
use crate::object::Ref;
use crate::slot::{SlotRef, flag};
use crate::syscall::argument;
use crate::thread::Thread;
use crate::{Arch, Kernel, cspace, derivation};

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

/// Fast path of `Delete`, if it can be done [at once](delete::at_once).
#[inline(always)]
pub fn delete<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, cspace: u64, address: u64) -> Fast {
    let Some(slot) = own_slot(k, thread, cspace, address) else { return Fast::Slow };
    let asks_for_address = argument(k, thread, 2) != 0;
    if asks_for_address || address == 0 {
        return Fast::Slow;
    }
    match delete::at_once::<_, true>(k, slot) {
        Some(Deleted::NotLast) => Fast::DONE,
        Some(Deleted::Freed { size_bits, .. }) => Fast::Results([1, 0, size_bits.into()]),
        None => Fast::Slow,
    }
}
