//! Operations on capabilities to objects of any kind: `Copy`, `Move`, `Mint`, `Identify`, and those that give a CSpace
//! several nodes.

use tench_abi::{Error, Kind, Rights};

use crate::cspace::{check_empty, copy_to, copyable, destination, lookup, lookup_in, move_to, root_entry, slot_in};
use crate::object::Ref;
use crate::slot::{SlotRef, flag};
use crate::syscall::{Outcome, argument, may_see_addresses};
use crate::thread::Thread;
use crate::{Arch, Kernel, delete, derivation, mapping};

/// Performs `Copy`.
pub fn copy_call<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let (source, destination) = source_and_destination(k, thread, Rights::READ)?;
    copy_to(k, source, destination)?;
    Ok(Outcome::Done)
}

/// Performs `Move`.
pub fn move_call<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let (source, destination) = source_and_destination(k, thread, Rights::WRITE)?;
    move_to(k, source, destination)?;
    Ok(Outcome::Done)
}

/// Decodes the arguments that `Copy`, `Mint` and `Move` share.
fn source_and_destination<A: Arch>(
    k: &mut Kernel<A>,
    thread: Ref<Thread>,
    rights: Rights,
) -> Result<(SlotRef, SlotRef), Error> {
    let [source_cspace, source, destination_cspace, destination_address, ..] = k.get(thread).registers.x;
    let source = lookup_in(k, source_cspace, source, rights)?;
    let destination = destination(k, destination_cspace, destination_address)?;
    Ok((source, destination))
}

/// Performs `Mint`.
pub fn mint_call<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let (source, destination) = source_and_destination(k, thread, Rights::READ)?;
    let (mask, badge) = (argument(k, thread, 4), argument(k, thread, 5));
    let mut cap = copyable(k, source)?;
    cap.rights &= mask as u8;
    cap.update_flags();
    if badge == 0 {
        derivation::insert_equal(k, source, destination, &cap);
        return Ok(Outcome::Done);
    }
    if !matches!(cap.kind, Kind::Endpoint | Kind::Notification | Kind::Kernel) || cap.badge() != 0 {
        return Err(Error::InvalidArgument);
    }
    cap.set_badge(badge);
    cap.flags |= flag::BADGE_ORIGIN;
    derivation::insert_child(k, destination, cap);
    Ok(Outcome::Done)
}

/// Performs `Identify`.
pub fn identify<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let (cspace, address) = (argument(k, thread, 0), argument(k, thread, 1));
    let is_reported = may_see_addresses(k, thread, 2)?;
    let slot = slot_in(k, cspace, address, Rights::READ)?;
    let cap = k.slot(slot).cap;
    let rights = if cap.flags & flag::ZOMBIE == 0 { cap.rights } else { 0 };
    let physical = match cap.kind {
        Kind::Untyped | Kind::Frame if is_reported => k.physical(cap.object),
        Kind::Mapping if is_reported && rights != 0 => mapping::physical(k, &cap),
        Kind::Interrupt | Kind::Doorbell => cap.object as u64,
        _ => 0,
    };
    let bits = if matches!(cap.kind, Kind::Mapping) { 0 } else { cap.size_bits };
    let results = [cap.kind as u64, rights.into(), bits.into(), cap.badge_if_any(), physical];
    Ok(Outcome::results(k, thread, &results))
}

/// Performs `NodeInstall`.
pub fn node_install<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let (cspace, index) = (argument(k, thread, 0), argument(k, thread, 1));
    let entry = root_entry(k, cspace, index)?;
    let address = argument(k, thread, 2);
    let node = lookup(k, address)?;
    let cap = &k.slot(node).cap;
    if !cap.is_second_level() {
        return Err(Error::WrongType);
    }
    if !cap.allows(Rights::WRITE) {
        return Err(Error::MissingRights);
    }
    check_empty(k, Some(entry))?;
    derivation::replace(k, node, entry);
    Ok(Outcome::Done)
}

/// Performs `NodeRemove`. A node whose deletion was interrupted can be removed as well, so that its deletion can be
/// completed.
pub fn node_remove<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let (cspace, index) = (argument(k, thread, 0), argument(k, thread, 1));
    let entry = root_entry(k, cspace, index)?;
    let cap = &k.slot(entry).cap;
    let (kind, zombie) = (cap.kind, cap.flags & flag::ZOMBIE != 0);
    match kind {
        Kind::CapNode => {}
        Kind::Null => return Err(Error::NoSuchSlot),
        _ => return Err(Error::WrongType),
    }
    let address = argument(k, thread, 2);
    let destination = destination(k, 0, address)?;
    if zombie {
        delete::containers::relocate(k, entry, destination);
    } else {
        derivation::replace(k, entry, destination);
    }
    Ok(Outcome::Done)
}
