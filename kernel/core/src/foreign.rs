//! Capabilities that left their core, as far as one kernel knows of them.
//!
//! The monitors agree about them (`user/lib/foreign`); each kernel keeps its own core's part from being undone:
//!
//! ```text
//!            core that owns the object                     core that has a copy
//!
//!   Untyped ───┬─ Frame                                       (made of nothing)
//!              ├─ Frame   stand-in, *exported* ┄┄┄┄┄┄┄┄┄┄►  Frame     *borrowed*, the monitor's
//!              │                                             ├─ Frame     copies
//!              │                                             └─ Mapping
//!              └─ Untyped stand-in, *exported* ┄┄┄┄┄┄┄┄┄┄►  Untyped   *borrowed*, the monitor's
//!                    └─ Frame  borrowed back  ◄┄┄┄┄┄┄┄┄┄┄     └─ Frame   stand-in, *exported*
//! ```
//! A stand-in stays until the mark is taken away, and keeps its object: so memory is not used again while a copy of it
//! is on another core. Whatever deletes has to ask before it takes a stand-in away. It asks nothing new: a stand-in has
//! the flag that thread bindings have, which do not go without more ado either. That somebody asked in vain is
//! remembered in the stand-in, for the monitor, which then takes the copies back. In the same way an exported untyped
//! has no `WRITE`, and a retype that is refused for that looks why. A stand-in is the first of its equals in the order
//! of derivation, so there is one, and who walks over copies meets it in one place.
//!
//! A borrowed object is one like any other, made of nothing. It may overlap what was lent: the borrower has made
//! something of that, and sent it back. Then it counts as made of the stand-in, is deleted with the memory around it,
//! and keeps the mark there.
//!
//! Operations are documented in `tench_abi::Operation`. Invariants: docs/invariants.md, "Other cores".

use tench_abi::{Error, Kind, Rights};

use crate::entry::{Outcome, argument, capability_slot};
use crate::object::Ref;
use crate::slot::{BORROWED, Cap, EXPORTED, SlotRef, WANTED, flag};
use crate::thread::Thread;
use crate::{Arch, Kernel, derivation, power, space};

/// The untyped that `x0` names, to make something of.
#[inline(always)]
pub(crate) fn own_untyped<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<SlotRef, Error> {
    match capability_slot(k, thread, Kind::Untyped, Rights::WRITE) {
        Ok(slot) => Ok(slot),
        Err(error) => Err(reason(k, thread, error)),
    }
}

/// Why nothing can be made of what `x0` names.
#[cold]
#[inline(never)]
fn reason<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, error: Error) -> Error {
    match capability_slot(k, thread, Kind::Untyped, Rights::empty()) {
        Ok(slot) if k.slot(slot).cap.is_exported() => Error::Lent,
        _ => error,
    }
}

/// The capability that `x1` and `x2` name, if `x0` is the kernel's.
fn named<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, rights: Rights) -> Result<SlotRef, Error> {
    let kernel = argument(k, thread, 0);
    power::whole(k, kernel)?;
    let (space, address) = (argument(k, thread, 1), argument(k, thread, 2));
    space::lookup_in(k, space, address, rights)
}

/// `KernelExport`.
pub fn export<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let slot = named(k, thread, Rights::WRITE)?;
    let cap = k.slot(slot).cap;
    if !matches!(cap.kind, Kind::Untyped | Kind::Frame | Kind::Endpoint) {
        return Err(Error::WrongType);
    }
    if cap.is_exported() {
        return Err(Error::Lent);
    }
    if cap.is_borrowed() {
        return Err(Error::Borrowed);
    }
    if cap.flags & flag::DEVICE != 0 && !matches!(cap.kind, Kind::Endpoint) {
        return Err(Error::DeviceMemory);
    }
    if matches!(cap.kind, Kind::Untyped) {
        if derivation::first_child(k, slot).is_some() {
            return Err(Error::Busy);
        }
        // ── Point of no return ──
        let cap = &mut k.slot(slot).cap;
        cap.rights &= !Rights::WRITE.bits();
        cap.aux &= !WANTED;
    } else {
        if !derivation::lead(k, slot, Cap::is_exported) {
            return Err(Error::Lent);
        }
        // An ordinary one has nothing there.
        k.slot(slot).cap.extra = EXPORTED;
    }
    k.slot(slot).cap.flags |= flag::EMBEDDED;
    Ok(Outcome::Done)
}

/// `KernelUnexport`.
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
    cap.flags &= !flag::EMBEDDED;
    if is_untyped {
        // Nothing makes an untyped with fewer rights, so it had this one.
        cap.rights |= Rights::WRITE.bits();
        cap.aux &= !WANTED;
    } else {
        cap.extra = 0;
    }
    Ok(Outcome::Done)
}

/// What `KernelImport` is to make.
fn decode_import<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Cap, Error> {
    let kernel = argument(k, thread, 0);
    power::whole(k, kernel)?;
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
    let mut cap = Cap::new(kind, object, bits as u8);
    (cap.rights, cap.aux) = (rights.bits(), BORROWED);
    Ok(cap)
}

/// `KernelImport`.
pub fn import<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let cap = decode_import(k, thread)?;
    let (space, address) = (argument(k, thread, 5), argument(k, thread, 6));
    let destination = space::destination(k, space, address)?;
    let (gap, around) = derivation::room_outside(k, &cap, Cap::is_exported).ok_or(Error::Overlap)?;
    // ── Point of no return ──
    if let Some(around) = around {
        let end = derivation::end(&cap);
        let lent = &mut k.slot(around).cap;
        lent.extra = lent.extra.max((end - lent.object) as u64);
    }
    derivation::insert(k, gap, destination, &cap);
    Ok(Outcome::Done)
}

/// `KernelHolders`.
pub fn holders<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let slot = named(k, thread, Rights::READ)?;
    let cap = k.slot(slot).cap;
    let others = match cap.kind {
        Kind::Untyped => derivation::first_child(k, slot).is_some(),
        // One capability stands for it, and its neighbours are other mappings.
        Kind::Mapping => false,
        _ if derivation::badge(&cap) != 0 => derivation::has_equal(k, slot),
        _ => {
            let found = derivation::neighbours(k, slot);
            found.sibling || found.mapping
        }
    };
    let place = match cap.kind {
        Kind::Endpoint | Kind::Notification => k.physical(cap.object),
        _ => 0,
    };
    let stands_in = u64::from(cap.is_exported()) + u64::from(cap.is_wanted());
    let answer = [u64::from(others), stands_in, u64::from(cap.is_borrowed()), place];
    Ok(Outcome::results(k, thread, &answer))
}
