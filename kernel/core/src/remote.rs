//! Remote capabilities: export to and import from other cores, as far as one kernel is concerned. Only memory is
//! exported, as frames and untypeds; endpoints and notifications have proxies on other cores, which the monitors make.
//!
//! The monitors keep the copies on all cores consistent (`user/lib/remote`); each kernel prevents that its own core's
//! part is undone:
//!
//! ```text
//!            core that owns the object                     core that has a copy
//!
//!   Untyped ───┬─ Frame                                       (derived from nothing)
//!              ├─ Frame   *exported*  ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄►  Frame     *imported*, the monitor's
//!              │                                             ├─ Frame     copies
//!              │                                             └─ Mapping
//!              └─ Untyped *exported*  ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄►  Untyped   *imported*, the monitor's
//!                    └─ Frame  imported back  ◄┄┄┄┄┄┄┄┄┄┄     └─ Frame   *exported*
//! ```
//! An exported capability stays until it is unexported, and keeps its object: so memory is not reused while a copy of
//! it is on another core. Deletion has to test for this, without a test of its own: exported capabilities have the flag
//! of thread bindings, `EMBEDDED`, which also need more work. A deletion in vain sets the mark "revoke requested" in
//! the exported capability, for the monitor, which then revokes the copies. Similarly, an exported untyped has no
//! `WRITE`, and a retype that is refused for that looks for the reason. An exported capability is the first of its
//! equals in derivation order, so there is only one, and a walk over copies meets it in one place.
//!
//! An imported object is like any other, derived from nothing. It may overlap exported memory: the importing core has
//! retyped that memory, and sent an object back. Then it counts as derived from the exported untyped, is deleted with
//! the memory around it, and keeps the watermark there.
//!
//! Operations are documented in `tench_abi::Operation`. Invariants: docs/invariants.md, "Other cores".

use tench_abi::{Error, Kind, Rights};

use crate::object::Ref;
use crate::slot::payload::Marks;
use crate::slot::{Cap, SlotRef, flag};
use crate::syscall::{Outcome, argument};
use crate::thread::Thread;
use crate::{Arch, Kernel, cspace, derivation, syscall};

/// Returns the capability that `x1` and `x2` name, if `x0` names the kernel's.
fn named<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, rights: Rights) -> Result<SlotRef, Error> {
    let kernel = argument(k, thread, 0);
    syscall::whole(k, kernel)?;
    let (cspace, address) = (argument(k, thread, 1), argument(k, thread, 2));
    cspace::lookup_in(k, cspace, address, rights)
}

/// Performs `KernelExport`.
pub fn export<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let slot = named(k, thread, Rights::WRITE)?;
    let cap = k.slot(slot).cap;
    if !matches!(cap.kind, Kind::Untyped | Kind::Frame) {
        return Err(Error::WrongType);
    }
    if cap.is_exported() {
        return Err(Error::Lent);
    }
    if cap.is_borrowed() {
        return Err(Error::Borrowed);
    }
    if cap.flags & flag::DEVICE != 0 {
        return Err(Error::DeviceMemory);
    }
    if matches!(cap.kind, Kind::Untyped) {
        if derivation::first_child(k, slot).is_some() {
            return Err(Error::Busy);
        }
        // ── Point of no return ──
        k.slot(slot).cap.rights &= !Rights::WRITE.bits();
    } else if !derivation::lead(k, slot, Cap::is_exported) {
        return Err(Error::Lent);
    }
    k.slot(slot).cap.set_exported(true);
    Ok(Outcome::Done)
}

/// Performs `KernelUnexport`.
pub fn unexport<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let slot = named(k, thread, Rights::WRITE)?;
    let cap = &k.slot(slot).cap;
    if !cap.is_exported() {
        return Err(Error::NotExported);
    }
    let is_untyped = matches!(cap.kind, Kind::Untyped);
    if is_untyped && derivation::first_child(k, slot).is_some() {
        return Err(Error::Busy);
    }
    // ── Point of no return ──
    let cap = &mut k.slot(slot).cap;
    cap.set_exported(false);
    if is_untyped {
        // Every untyped that is not exported has all rights, so this one had `WRITE`.
        cap.rights |= Rights::WRITE.bits();
    }
    Ok(Outcome::Done)
}

/// Returns the capability that `KernelImport` makes.
fn decode_import<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Cap, Error> {
    let kernel = argument(k, thread, 0);
    syscall::whole(k, kernel)?;
    let [_, kind, physical, bits, rights, ..] = k.get(thread).registers.x;
    let kind = match Kind::from_code(kind) {
        Some(kind @ (Kind::Untyped | Kind::Frame)) => kind,
        _ => return Err(Error::InvalidArgument),
    };
    let bits = kind.object_bits(bits).ok_or(Error::InvalidArgument)?;
    let known = u8::try_from(rights).ok().and_then(Rights::from_bits);
    let rights = known.ok_or(Error::InvalidArgument)?;
    if matches!(kind, Kind::Untyped) && !rights.is_all() {
        return Err(Error::InvalidArgument);
    }
    let size = 1u64 << bits;
    if physical & (size - 1) != 0 {
        return Err(Error::Misaligned);
    }
    k.arch().check_import(physical, size)?;
    let object = k.arch().base().wrapping_add(physical as usize);
    let mut cap = Cap::new(kind, object, bits as u8).borrowed();
    cap.rights = rights.bits();
    Ok(cap)
}

/// Performs `KernelImport`.
pub fn import<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let cap = decode_import(k, thread)?;
    let (cspace, address) = (argument(k, thread, 5), argument(k, thread, 6));
    let destination = cspace::destination(k, cspace, address)?;
    let (gap, around) = derivation::find_gap_outside(k, &cap, Cap::is_exported).ok_or(Error::Overlap)?;
    // ── Point of no return ──
    if let Some(around) = around {
        let end = derivation::end_address(&cap);
        let lent = &mut k.slot(around).cap;
        let mut marks = Marks::of(lent);
        marks.placed = marks.placed.max((end - lent.object) as u64);
        marks.write(lent);
    }
    derivation::insert(k, gap, destination, &cap);
    Ok(Outcome::Done)
}

/// Performs `KernelHolders`.
pub fn holders<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let slot = named(k, thread, Rights::READ)?;
    let cap = k.slot(slot).cap;
    let others = match cap.kind {
        Kind::Untyped => derivation::first_child(k, slot).is_some(),
        // A mapping has one capability only, and its neighbours are other mappings.
        Kind::Mapping => false,
        _ if cap.badge_if_any() != 0 => derivation::has_equal(k, slot),
        _ => {
            let found = derivation::neighbours(k, slot);
            found.sibling || found.mapping
        }
    };
    let physical = match cap.kind {
        Kind::Endpoint | Kind::Notification => k.physical(cap.object),
        _ => 0,
    };
    let exported = u64::from(cap.is_exported()) + u64::from(cap.is_revoke_requested());
    let results = [u64::from(others), exported, u64::from(cap.is_borrowed()), physical];
    Ok(Outcome::results(k, thread, &results))
}
