//! CSpaces: the capabilities of a program, and the operations on them whatever their objects.
//!
//! ```text
//!   address = index × 256 + slot        root node             second-level node (256 slots)
//!                                       ┌───────────┐  index  ┌──────────┐
//!   thread.cspace_root ────────────────► │ CapNode   │ ──────► │ slot     │
//!                                       ├───────────┤         ├──────────┤
//!                                       │ empty     │         │ slot     │
//! ```
//! Look-up takes two steps, whatever the CSpace contains. Whether a node serves as a root or as a second-level node
//! depends on how it is reached, not on its kind: an entry of a root counts only while it holds a capability to a node
//! of 256 slots, which each look-up checks. `NodeInstall` and `NodeRemove` change the entries of a root.
//!
//! No operation fills the slot at address 0, since 0 stands for "none" in many arguments. If its node is reached at
//! another entry as well, a capability can come to be there, and can be used.
//!
//! Operations are documented in `tench_abi::Operation`. To change a CSpace through a capability to its root takes
//! `WRITE`, to read it (`Copy`, `Mint` from it, `Identify`) `READ`; the thread's own CSpace takes neither.

use tench_abi::object::{NODE_BITS, NODE_SLOTS, SLOT_SIZE};
use tench_abi::{Error, Kind, Rights};

use crate::object::Ref;
use crate::slot::{Cap, Slot, SlotRef, flag};
use crate::thread::Thread;
use crate::{Arch, Kernel, derivation, mapping};

const _: () = assert!(Kind::Null as u8 == 0);

/// Log2 of a slot's size in bytes.
const SLOT_BITS: u32 = SLOT_SIZE.trailing_zeros();

/// The slots of a root node.
#[derive(Clone, Copy)]
struct Root {
    /// Kernel virtual address.
    address: usize,
    /// Number of slots.
    slots: usize,
}

/// The slots of a second-level node.
type Node = [Slot; NODE_SLOTS];

impl Root {
    /// Returns entry `index`.
    #[inline(always)]
    fn entry(self, index: u64) -> Option<Ref<Slot>> {
        if index >= self.slots as u64 {
            return None;
        }
        // SAFETY: a root's address and slots are those of a live node: they come from a capability that is in use, or
        // from a binding, which is cleared before the node is deleted. The address of a node is not 0.
        Some(unsafe { Ref::at_unchecked(self.address.wrapping_add((index as usize) << SLOT_BITS)) })
    }

    /// Returns the second-level node for an address of this CSpace.
    #[inline(always)]
    fn node<A: Arch>(self, k: &mut Kernel<A>, address: u64) -> Option<Ref<Node>> {
        let entry = self.entry(address >> NODE_BITS)?;
        let cap = &k.get(entry).cap;
        if !cap.is_second_level() {
            return None;
        }
        // SAFETY: the capability is to a live node of 256 slots.
        Some(unsafe { Ref::at_unchecked(cap.object) })
    }

    /// Returns the slot at an address of this CSpace, which may be empty.
    #[inline(always)]
    fn slot<A: Arch>(self, k: &mut Kernel<A>, address: u64) -> Option<SlotRef> {
        let node = self.node(k, address)?;
        k.slot_at(node.address() + (index_in_node(address) << SLOT_BITS))
    }
}

/// Returns the index that an address has in its node.
#[inline(always)]
const fn index_in_node(address: u64) -> usize {
    address as usize & (NODE_SLOTS - 1)
}

/// Returns the root of a thread's CSpace.
#[inline(always)]
fn root_of<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Root {
    let t = k.get(thread);
    Root { address: t.cspace_root, slots: t.cspace_slots }
}

/// Returns the slot at an address of a thread's own CSpace, which may be empty.
#[inline(always)]
pub fn own_slot<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, address: u64) -> Option<SlotRef> {
    root_of(k, thread).slot(k, address)
}

/// Returns the capability at an address in a thread's CSpace. It is not empty and not being deleted.
///
/// # Errors
/// `InvalidCapability`.
pub fn lookup_of<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, address: u64) -> Result<SlotRef, Error> {
    find(k, thread, address)
}

/// As [`lookup_of`], without a call.
#[inline(always)]
pub fn find<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, address: u64) -> Result<SlotRef, Error> {
    let slot = own_slot(k, thread, address).ok_or(Error::InvalidCapability)?;
    usable(k, slot)
}

/// Returns the capability at an address in the running thread's CSpace.
///
/// # Errors
/// `InvalidCapability`.
pub fn lookup<A: Arch>(k: &mut Kernel<A>, address: u64) -> Result<SlotRef, Error> {
    let thread = k.current();
    lookup_of(k, thread, address)
}

/// Returns the slot if its capability can be used.
#[inline(always)]
fn usable<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) -> Result<SlotRef, Error> {
    let cap = &k.slot(slot).cap;
    if cap.kind as u8 == Kind::Null as u8 || cap.flags & flag::ZOMBIE != 0 {
        return Err(Error::InvalidCapability);
    }
    Ok(slot)
}

/// Returns the root that a *CSpace* argument of the running thread names.
fn named_root<A: Arch>(k: &mut Kernel<A>, cspace: u64, rights: Rights) -> Result<Root, Error> {
    if cspace == 0 {
        let thread = k.current();
        return Ok(root_of(k, thread));
    }
    let slot = lookup(k, cspace)?;
    let cap = &k.slot(slot).cap;
    if cap.kind as u8 != Kind::CapNode as u8 {
        return Err(Error::WrongType);
    }
    if !cap.allows(rights) {
        return Err(Error::MissingRights);
    }
    Ok(Root { address: cap.object, slots: cap.slots() })
}

/// Returns the slot at an address in a CSpace that the running thread names. It can be empty, or its capability be in
/// deletion.
///
/// # Errors
/// `InvalidCapability` if there is no slot; those of the CSpace argument.
pub fn slot_in<A: Arch>(k: &mut Kernel<A>, cspace: u64, address: u64, rights: Rights) -> Result<SlotRef, Error> {
    let root = named_root(k, cspace, rights)?;
    root.slot(k, address).filter(|_| address != 0).ok_or(Error::InvalidCapability)
}

/// Returns the capability at an address in a CSpace that the running thread names.
///
/// # Errors
/// `InvalidCapability`; those of the CSpace argument.
pub fn lookup_in<A: Arch>(k: &mut Kernel<A>, cspace: u64, address: u64, rights: Rights) -> Result<SlotRef, Error> {
    let root = named_root(k, cspace, rights)?;
    let slot = root.slot(k, address).ok_or(Error::InvalidCapability)?;
    usable(k, slot)
}

/// Returns an entry of a root node that the running thread names.
///
/// # Errors
/// `InvalidArgument` if there is no such entry; those of the CSpace argument.
pub fn root_entry<A: Arch>(k: &mut Kernel<A>, cspace: u64, index: u64) -> Result<SlotRef, Error> {
    let root = named_root(k, cspace, Rights::WRITE)?;
    let entry = root.entry(index).ok_or(Error::InvalidArgument)?;
    k.slot_at(entry.address()).ok_or(Error::InvalidArgument)
}

/// Returns the slot if it is empty.
#[inline(always)]
pub(crate) fn check_empty<A: Arch>(k: &mut Kernel<A>, slot: Option<SlotRef>) -> Result<SlotRef, Error> {
    let slot = slot.ok_or(Error::NoSuchSlot)?;
    if k.slot(slot).cap.kind as u8 == Kind::Null as u8 { Ok(slot) } else { Err(Error::SlotOccupied) }
}

/// Returns an empty slot of a CSpace that the running thread names.
///
/// # Errors
/// `NoSuchSlot`, `SlotOccupied`; those of the CSpace argument.
pub fn destination<A: Arch>(k: &mut Kernel<A>, cspace: u64, address: u64) -> Result<SlotRef, Error> {
    let root = named_root(k, cspace, Rights::WRITE)?;
    let slot = root.slot(k, address).filter(|_| address != 0);
    check_empty(k, slot)
}

/// Returns an empty slot of a thread's own CSpace.
///
/// # Errors
/// `NoSuchSlot`, `SlotOccupied`.
#[inline(always)]
pub fn destination_of<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, address: u64) -> Result<SlotRef, Error> {
    let root = root_of(k, thread);
    let slot = root.slot(k, address).filter(|_| address != 0);
    check_empty(k, slot)
}

/// Returns the first of `count` empty adjacent slots in one node.
///
/// # Errors
/// Those of [`destination`]; `NoSuchSlot` also if the node ends before the last of them.
pub fn destinations<A: Arch>(k: &mut Kernel<A>, cspace: u64, first: u64, count: usize) -> Result<SlotRef, Error> {
    if count == 1 {
        return destination(k, cspace, first);
    }
    let root = named_root(k, cspace, Rights::WRITE)?;
    let node = root.node(k, first).filter(|_| first != 0).ok_or(Error::NoSuchSlot)?;
    let index = index_in_node(first);
    let slots = k.get(node).get(index..index + count).ok_or(Error::NoSuchSlot)?;
    // Eight at a time: there can be 256 slots, and interrupts are off. `Kind::Null` is 0.
    let (eights, rest) = slots.as_chunks::<8>();
    let is_empty = |[a, b, c, d, e, f, g, h]: &[Slot; 8]| {
        let first = a.cap.kind as u8 | b.cap.kind as u8 | c.cap.kind as u8 | d.cap.kind as u8;
        first | e.cap.kind as u8 | f.cap.kind as u8 | g.cap.kind as u8 | h.cap.kind as u8 == 0
    };
    if !eights.iter().all(is_empty) || !rest.iter().all(|slot| slot.cap.kind == Kind::Null) {
        return Err(Error::SlotOccupied);
    }
    k.slot_at(node.address() + (index << SLOT_BITS)).ok_or(Error::NoSuchSlot)
}

/// Returns the slot `i` places behind another in the same node.
#[inline(always)]
pub fn neighbour(slot: SlotRef, i: usize) -> Option<SlotRef> {
    SlotRef::new(slot.number().wrapping_add(i as u32))
}

/// Returns a copy of `cap` that is marked as derived.
#[inline(always)]
pub fn duplicate(cap: &Cap) -> Cap {
    let kept = flag::CALLABLE | flag::RECEIVABLE | flag::DEVICE | flag::PRESERVED;
    cap.copy_with(cap.flags & kept)
}

/// Returns a copy of the capability in a slot, if it can be copied.
#[inline(always)]
pub(crate) fn copyable<A: Arch>(k: &mut Kernel<A>, source: SlotRef) -> Result<Cap, Error> {
    let cap = &k.slot(source).cap;
    if matches!(cap.kind, Kind::Untyped | Kind::Mapping) {
        return Err(Error::NotCopyable);
    }
    Ok(duplicate(cap))
}

/// Copies a usable capability to an empty slot.
///
/// # Errors
/// `NotCopyable`.
#[inline(always)]
pub fn copy_to<A: Arch>(k: &mut Kernel<A>, source: SlotRef, destination: SlotRef) -> Result<(), Error> {
    let cap = copyable(k, source)?;
    derivation::insert_equal(k, source, destination, &cap);
    Ok(())
}

/// Moves a usable capability to an empty slot.
#[inline(always)]
pub fn move_to<A: Arch>(k: &mut Kernel<A>, source: SlotRef, destination: SlotRef) -> Result<(), Error> {
    derivation::replace_fast(k, source, destination);
    if k.slot(destination).cap.kind as u8 == Kind::Mapping as u8 {
        mapping::moved(k, destination);
    }
    Ok(())
}

/// Copies a capability into an empty binding slot of a thread. A capability that cannot be copied is not bound either.
pub fn embed<A: Arch>(k: &mut Kernel<A>, source: SlotRef, binding: SlotRef) {
    if let Ok(mut cap) = copyable(k, source) {
        cap.flags |= flag::EMBEDDED;
        derivation::insert_equal(k, source, binding, &cap);
    }
}
