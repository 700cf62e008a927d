//! Capability spaces: where a program's capabilities lie, and what it can do with them wherever they point to.
//!
//! ```text
//!   address = index × 256 + slot        root node             second-level node (256 slots)
//!                                       ┌───────────┐  index  ┌──────────┐
//!   thread.space_root ────────────────► │ CapNode   │ ──────► │ slot     │
//!                                       ├───────────┤         ├──────────┤
//!                                       │ empty     │         │ slot     │
//! ```
//! Look-up takes two steps whatever the space contains. A node is used as a root or as a second-level node by how it is
//! reached, not by what it is: an entry of a root counts only while it holds a capability to a node of 256 slots, and
//! that is asked anew each time. Entries of the root change by `NodeInstall` and `NodeRemove`.
//!
//! Operations are documented in `tench_abi::Operation`. Changing a space through a capability to its root needs
//! `WRITE`, reading it (`Copy`, `Mint` from it, `Identify`) `READ`; the own space needs neither.

use tench_abi::object::{NODE_BITS, NODE_SLOTS, SLOT_SIZE};
use tench_abi::{Error, Kind, Rights};

use crate::entry::{Outcome, argument};
use crate::object::Ref;
use crate::slot::{Cap, SECOND_LEVEL, Slot, SlotRef, flag};
use crate::thread::Thread;
use crate::{Arch, Kernel, delete, derivation, mapping, power};

/// Log2 of a slot's size.
const SLOT_BITS: u32 = SLOT_SIZE.trailing_zeros();

/// The slots of a root node.
#[derive(Clone, Copy)]
struct Root {
    /// Kernel virtual address.
    address: usize,
    /// How many.
    slots: usize,
}

/// The slots of a second-level node.
type Node = [Slot; NODE_SLOTS];

impl Root {
    /// Entry `index`.
    #[inline(always)]
    fn entry(self, index: u64) -> Option<Ref<Slot>> {
        if index >= self.slots as u64 {
            return None;
        }
        // SAFETY: a root's address and slots are those of a live node: they come from a capability that is in use, or
        // from a binding, which is cleared when the node goes. The address of a node is not 0.
        Some(unsafe { Ref::at_unchecked(self.address.wrapping_add((index as usize) << SLOT_BITS)) })
    }

    /// The second-level node in which an address of this space lies.
    #[inline(always)]
    fn node<A: Arch>(self, k: &mut Kernel<A>, address: u64) -> Option<Ref<Node>> {
        let entry = self.entry(address >> NODE_BITS)?;
        let cap = &k.get(entry).cap;
        if address == 0 || !is_second_level(cap) {
            return None;
        }
        // SAFETY: the capability is to a live node of 256 slots.
        Some(unsafe { Ref::at_unchecked(cap.object) })
    }

    /// The slot with an address in this space. It can be empty.
    #[inline(always)]
    fn slot<A: Arch>(self, k: &mut Kernel<A>, address: u64) -> Option<SlotRef> {
        let node = self.node(k, address)?;
        k.slot_at(node.address() + (index_in_node(address) << SLOT_BITS))
    }
}

/// Which slot of its node an address names.
#[inline(always)]
const fn index_in_node(address: u64) -> usize {
    address as usize & (NODE_SLOTS - 1)
}

/// Whether a capability is to a node that can be a second-level node.
#[inline(always)]
pub fn is_second_level(cap: &Cap) -> bool {
    cap.aux & SECOND_LEVEL != 0
}

/// The root of a thread's space.
#[inline(always)]
fn root_of<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Root {
    let t = k.get(thread);
    Root { address: t.space_root, slots: t.space_slots }
}

/// The capability that a thread knows by this address. It is not empty and not being deleted.
///
/// # Errors
/// `InvalidCapability`.
#[inline]
pub fn lookup_of<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, address: u64) -> Result<SlotRef, Error> {
    let root = root_of(k, thread);
    let slot = root.slot(k, address).ok_or(Error::InvalidCapability)?;
    usable(k, slot)
}

/// The capability that the running thread knows by this address.
///
/// # Errors
/// `InvalidCapability`.
#[inline]
pub fn lookup<A: Arch>(k: &mut Kernel<A>, address: u64) -> Result<SlotRef, Error> {
    let thread = k.current();
    lookup_of(k, thread, address)
}

/// The slot, if what it holds can be used.
#[inline(always)]
fn usable<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) -> Result<SlotRef, Error> {
    let cap = &k.slot(slot).cap;
    if cap.kind as u8 == Kind::Null as u8 || cap.flags & flag::ZOMBIE != 0 {
        return Err(Error::InvalidCapability);
    }
    Ok(slot)
}

/// The root that a *space* argument of the running thread names.
#[inline]
fn named_root<A: Arch>(k: &mut Kernel<A>, space: u64, rights: Rights) -> Result<Root, Error> {
    if space == 0 {
        let thread = k.current();
        return Ok(root_of(k, thread));
    }
    let slot = lookup(k, space)?;
    let cap = &k.slot(slot).cap;
    if cap.kind as u8 != Kind::CapNode as u8 {
        return Err(Error::WrongType);
    }
    if !cap.allows(rights) {
        return Err(Error::MissingRights);
    }
    Ok(Root { address: cap.object, slots: cap.slots() })
}

/// The slot at an address in a space that the running thread names. It can be empty, or be being deleted.
///
/// # Errors
/// `InvalidCapability` if there is none; those of the space argument.
#[inline]
pub fn slot_in<A: Arch>(k: &mut Kernel<A>, space: u64, address: u64, rights: Rights) -> Result<SlotRef, Error> {
    let root = named_root(k, space, rights)?;
    root.slot(k, address).ok_or(Error::InvalidCapability)
}

/// The capability at an address in a space that the running thread names.
///
/// # Errors
/// `InvalidCapability`; those of the space argument.
#[inline]
pub fn lookup_in<A: Arch>(k: &mut Kernel<A>, space: u64, address: u64, rights: Rights) -> Result<SlotRef, Error> {
    let slot = slot_in(k, space, address, rights)?;
    usable(k, slot)
}

/// The slot, if it is empty.
#[inline(always)]
fn empty<A: Arch>(k: &mut Kernel<A>, slot: Option<SlotRef>) -> Result<SlotRef, Error> {
    let slot = slot.ok_or(Error::NoSuchSlot)?;
    if k.slot(slot).cap.kind as u8 == Kind::Null as u8 { Ok(slot) } else { Err(Error::SlotOccupied) }
}

/// An empty slot of a space that the running thread names.
///
/// # Errors
/// `NoSuchSlot`, `SlotOccupied`; those of the space argument.
#[inline]
pub fn destination<A: Arch>(k: &mut Kernel<A>, space: u64, address: u64) -> Result<SlotRef, Error> {
    let root = named_root(k, space, Rights::WRITE)?;
    let slot = root.slot(k, address);
    empty(k, slot)
}

/// An empty slot of a thread's own space.
///
/// # Errors
/// `NoSuchSlot`, `SlotOccupied`.
#[inline]
pub fn destination_of<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, address: u64) -> Result<SlotRef, Error> {
    let root = root_of(k, thread);
    let slot = root.slot(k, address);
    empty(k, slot)
}

/// The first of `count` empty slots side by side in one node.
///
/// # Errors
/// Those of [`destination`]; `NoSuchSlot` also if the node ends before the run.
#[inline]
pub fn destinations<A: Arch>(k: &mut Kernel<A>, space: u64, first: u64, count: usize) -> Result<SlotRef, Error> {
    let root = named_root(k, space, Rights::WRITE)?;
    let node = root.node(k, first).ok_or(Error::NoSuchSlot)?;
    let index = index_in_node(first);
    let slots = k.get(node).get(index..index + count).ok_or(Error::NoSuchSlot)?;
    // Eight at a time: there can be 256, and interrupts are off.
    let (eights, rest) = slots.as_chunks::<8>();
    let kinds = |slots: &[Slot]| slots.iter().fold(Kind::Null as u8, |all, slot| all | slot.cap.kind as u8);
    if eights.iter().any(|eight| kinds(eight) != Kind::Null as u8) || kinds(rest) != Kind::Null as u8 {
        return Err(Error::SlotOccupied);
    }
    k.slot_at(node.address() + (index << SLOT_BITS)).ok_or(Error::NoSuchSlot)
}

/// The slot `i` places behind another in the same node.
#[inline(always)]
pub fn neighbour(slot: SlotRef, i: usize) -> Option<SlotRef> {
    SlotRef::new(slot.number().wrapping_add(i as u32))
}

/// A capability like `cap` that is not the one that it was made from.
#[inline(always)]
fn duplicate(cap: &Cap) -> Cap {
    let kept = flag::CALLABLE | flag::RECEIVABLE | flag::DEVICE | flag::PRESERVED;
    Cap { flags: cap.flags & kept, extra: 0, ..*cap }
}

/// What can be copied from a slot.
#[inline(always)]
fn copyable<A: Arch>(k: &mut Kernel<A>, source: SlotRef) -> Result<Cap, Error> {
    let cap = &k.slot(source).cap;
    if matches!(cap.kind, Kind::Untyped | Kind::Mapping) {
        return Err(Error::NotCopyable);
    }
    Ok(duplicate(cap))
}

/// Copies a capability that can be used to an empty slot.
///
/// # Errors
/// `NotCopyable`.
#[inline]
pub fn copy_to<A: Arch>(k: &mut Kernel<A>, source: SlotRef, destination: SlotRef) -> Result<(), Error> {
    let cap = copyable(k, source)?;
    derivation::insert_equal(k, source, destination, &cap);
    Ok(())
}

/// Moves a capability that can be used to an empty slot.
#[inline]
pub fn move_to<A: Arch>(k: &mut Kernel<A>, source: SlotRef, destination: SlotRef) -> Result<(), Error> {
    derivation::replace(k, source, destination);
    if k.slot(destination).cap.kind as u8 == Kind::Mapping as u8 {
        mapping::moved(k, destination);
    }
    Ok(())
}

/// Puts a copy of a capability into an empty binding slot of a thread. What cannot be copied is not bound either.
pub fn embed<A: Arch>(k: &mut Kernel<A>, source: SlotRef, binding: SlotRef) {
    if let Ok(mut cap) = copyable(k, source) {
        cap.flags |= flag::EMBEDDED;
        derivation::insert_equal(k, source, binding, &cap);
    }
}

/// `Copy`.
pub fn copy_call<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let (source, destination) = source_and_destination(k, thread, Rights::READ)?;
    copy_to(k, source, destination)?;
    Ok(Outcome::Done)
}

/// `Move`.
pub fn move_call<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let (source, destination) = source_and_destination(k, thread, Rights::WRITE)?;
    move_to(k, source, destination)?;
    Ok(Outcome::Done)
}

/// The arguments that `Copy`, `Mint` and `Move` share.
#[inline]
fn source_and_destination<A: Arch>(
    k: &mut Kernel<A>,
    thread: Ref<Thread>,
    rights: Rights,
) -> Result<(SlotRef, SlotRef), Error> {
    let [source_space, source, destination_space, destination_address, ..] = k.get(thread).registers.x;
    let source = lookup_in(k, source_space, source, rights)?;
    let destination = destination(k, destination_space, destination_address)?;
    Ok((source, destination))
}

/// `Mint`.
pub fn mint_call<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let (source, destination) = source_and_destination(k, thread, Rights::READ)?;
    let (mask, badge) = (argument(k, thread, 4), argument(k, thread, 5));
    let mut cap = copyable(k, source)?;
    cap.rights &= mask as u8;
    cap.settle();
    if badge == 0 {
        derivation::insert_equal(k, source, destination, &cap);
        return Ok(Outcome::Done);
    }
    if !matches!(cap.kind, Kind::Endpoint | Kind::Notification | Kind::Kernel) || cap.badge != 0 {
        return Err(Error::InvalidArgument);
    }
    cap.badge = badge;
    cap.flags |= flag::BADGE_ORIGIN;
    derivation::insert_child(k, destination, cap);
    Ok(Outcome::Done)
}

/// `Identify`.
pub fn identify<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let (space, address) = (argument(k, thread, 0), argument(k, thread, 1));
    let is_told = power::tells_addresses(k, thread, 2)?;
    let slot = slot_in(k, space, address, Rights::READ)?;
    let cap = k.slot(slot).cap;
    let rights = if cap.flags & flag::ZOMBIE == 0 { cap.rights } else { 0 };
    let place = match cap.kind {
        Kind::Untyped | Kind::Frame if is_told => k.physical(cap.object),
        Kind::Mapping if is_told && rights != 0 => mapping::physical(k, &cap),
        Kind::Interrupt | Kind::Doorbell => cap.object as u64,
        _ => 0,
    };
    let bits = if matches!(cap.kind, Kind::Mapping) { 0 } else { cap.size_bits };
    let answer = [cap.kind as u64, rights.into(), bits.into(), derivation::badge(&cap), place];
    Ok(Outcome::results(k, thread, &answer))
}

/// The entry of a root that `x0` and `x1` name.
fn root_entry<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<SlotRef, Error> {
    let (space, index) = (argument(k, thread, 0), argument(k, thread, 1));
    let root = named_root(k, space, Rights::WRITE)?;
    let entry = root.entry(index).ok_or(Error::InvalidArgument)?;
    k.slot_at(entry.address()).ok_or(Error::InvalidArgument)
}

/// `NodeInstall`.
pub fn node_install<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let entry = root_entry(k, thread)?;
    let address = argument(k, thread, 2);
    let node = lookup(k, address)?;
    let cap = &k.slot(node).cap;
    if !is_second_level(cap) {
        return Err(Error::WrongType);
    }
    if !cap.allows(Rights::WRITE) {
        return Err(Error::MissingRights);
    }
    empty(k, Some(entry))?;
    derivation::replace(k, node, entry);
    Ok(Outcome::Done)
}

/// `NodeRemove`. A node whose deletion was interrupted can be taken out as well, so that it can be finished.
pub fn node_remove<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let entry = root_entry(k, thread)?;
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
