//! Untyped memory, of which all other objects are made.
//!
//! A retype is decoded and checked in full; then it cannot fail, except that long ones pass preemption points. For
//! those the range is first reserved by a zombie in the first destination slot, so that no other thread can take it
//! while it is zeroed:
//!
//! ```text
//!   checked     reserved          zeroed, in steps     objects, last first             done
//!   ┌────────┐  ┌─zombie───────┐  ┌─zombie───────┐     ┌─zombie──┬───┬───┐   ┌───┬───┬───┬───┐
//!   │ free   │  │              │  │000000        │     │         │ 2 │ 3 │   │ 0 │ 1 │ 2 │ 3 │
//!   └────────┘  └──────────────┘  └──────────────┘     └─────────┴───┴───┘   └───┴───┴───┴───┘
//! ```
//! After each preemption point the zombie is looked up again; if it is gone, or a destination slot has been taken, the
//! call ends, and the objects made so far stay. If the thread is deleted at a preemption point, the zombie remains;
//! `Delete` and `Revoke` remove it like any capability. The objects are made from the last to the first because each
//! then comes directly after the zombie in derivation order.
//!
//! An untyped has two [marks](Marks): the *watermark*, above which objects are placed if no offset is named, and the
//! end of the highest object that was placed by offset. Above both all memory is free, which is all that most requests
//! need to know. Both return to 0 when the last child is deleted.
//!
//! [`split`] divides an untyped, [`children`] counts its children. Operations are documented in `tench_abi::Operation`.

pub(crate) mod children;
pub(crate) mod split;

use tench_abi::layout::WATERMARK;
use tench_abi::object::NODE_SLOTS;
use tench_abi::{Error, Kind, Rights};

use crate::object::Ref;
use crate::preemption_point::Passed;
use crate::slot::payload::{Marks, Reservation};
use crate::slot::{Cap, SlotRef, flag};
use crate::syscall::{Outcome, argument, capability_slot};
use crate::thread::Thread;
use crate::tree::Gap;
use crate::{Arch, Kernel, cspace, derivation, page_table, preemption_point, thread, tree};

/// Maximum number of objects made without a preemption point.
const DIRECT_OBJECTS: usize = 4;
/// Maximum number of bytes zeroed without a preemption point: enough for a thread or a page table.
const DIRECT_BYTES: usize = 8192;
/// Bytes zeroed between two preemption points.
const ZERO_STEP: usize = 4096;
/// Number of objects made between two preemption points: of the expensive kinds, of frames, and of the others.
const DEAR_OBJECT_STEP: usize = 4;
const FRAME_STEP: usize = 32;
const OBJECT_STEP: usize = 6;

/// The checked arguments of `UntypedRetype`.
struct Request {
    /// Kernel virtual address of the range.
    start: usize,
    /// Length of the range in bytes.
    length: usize,
    count: usize,
    /// Capability of the first object.
    cap: Cap,
    /// Set if the memory has to be zeroed.
    zero: bool,
}

/// The destination of a checked request. Invalid after a preemption point.
struct Destination {
    untyped: SlotRef,
    /// Gap in derivation order for the new objects.
    gap: Gap,
    /// First destination slot.
    first: SlotRef,
}

impl Request {
    /// Returns the number of objects made between two preemption points.
    fn step(&self) -> usize {
        match self.cap.kind {
            Kind::Untyped | Kind::Thread | Kind::PageTable => DEAR_OBJECT_STEP,
            Kind::Frame => FRAME_STEP,
            _ => OBJECT_STEP,
        }
    }

    /// Returns the size of one object in bytes.
    #[inline(always)]
    fn size(&self) -> usize {
        self.length / self.count
    }
}

/// Returns the capability to the first object that a retype makes.
fn decode_cap(untyped: &Cap, kind: u64, size: u64) -> Result<Cap, Error> {
    let kind = Kind::from_code(kind).ok_or(Error::InvalidArgument)?;
    let bits = kind.object_bits(size).ok_or(Error::InvalidArgument)?;
    let inherited = untyped.flags & (flag::DEVICE | flag::PRESERVED);
    if inherited != 0 && !matches!(kind, Kind::Untyped | Kind::Frame) {
        return Err(Error::DeviceMemory);
    }
    let mut cap = Cap::new(kind, untyped.object, bits as u8);
    cap.flags |= inherited;
    // The argument is the level of a page table, or log2 of a node's slots.
    if matches!(kind, Kind::PageTable | Kind::CapNode) {
        cap = cap.with_number(size as u32);
    }
    Ok(cap)
}

/// Returns the offset of the range in its untyped.
fn decode_offset(untyped: &Cap, placement: u64, bits: u8, count: u64) -> Result<u64, Error> {
    let mask = (1u64 << bits) - 1;
    let offset = if placement == WATERMARK { (Marks::of(untyped).watermark + mask) & !mask } else { placement };
    if offset & mask != 0 {
        return Err(Error::Misaligned);
    }
    let total = untyped.size() as u64;
    if offset > total || (total - offset) >> bits < count {
        return Err(Error::OutOfMemory);
    }
    Ok(offset)
}

/// Returns the untyped that `x0` names, if it can be retyped.
#[inline(always)]
pub(crate) fn own_untyped<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<SlotRef, Error> {
    match capability_slot(k, thread, Kind::Untyped, Rights::WRITE) {
        Ok(slot) => Ok(slot),
        Err(error) => Err(reason(k, thread, error)),
    }
}

/// Returns the error that says why the untyped that `x0` names cannot be retyped.
#[cold]
#[inline(never)]
fn reason<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, error: Error) -> Error {
    match capability_slot(k, thread, Kind::Untyped, Rights::empty()) {
        Ok(slot) if k.slot(slot).cap.is_exported() => Error::Lent,
        _ => error,
    }
}

/// Does all checks.
fn decode<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<(Request, Destination), Error> {
    let untyped = own_untyped(k, thread)?;
    let [_, kind, size, count, placement, cspace, address, ..] = k.get(thread).registers.x;
    let source = &k.slot(untyped).cap;
    let mut cap = decode_cap(source, kind, size)?;
    if count == 0 || count > NODE_SLOTS as u64 {
        return Err(Error::InvalidArgument);
    }
    let offset = decode_offset(source, placement, cap.size_bits, count)?;
    let start = source.object + offset as usize;
    let count = count as usize;
    let length = count << cap.size_bits;
    cap.object = start;
    let gap = derivation::find_gap(k, untyped, start, start + length).ok_or(Error::Overlap)?;
    let first = cspace::destinations(k, cspace, address, count)?;
    let zero = !matches!(cap.kind, Kind::Untyped) && cap.flags & (flag::DEVICE | flag::PRESERVED) == 0;
    Ok((Request { start, length, count, cap, zero }, Destination { untyped, gap, first }))
}

/// Performs `UntypedRetype`.
pub fn retype<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let (request, destination) = decode(k, thread)?;
    let watermark = argument(k, thread, 4) == WATERMARK;
    let source = &mut k.slot(destination.untyped).cap;
    let offset = (request.start - source.object) as u64;
    // ── Point of no return ──
    let mark = offset + request.length as u64;
    let mut marks = Marks::of(source);
    if watermark {
        marks.watermark = mark;
    } else {
        marks.placed = marks.placed.max(mark);
    }
    marks.write(source);
    let bytes = if request.zero { request.length } else { 0 };
    if request.count <= DIRECT_OBJECTS && bytes <= DIRECT_BYTES {
        make_at_once(k, &request, &destination)?;
    } else if !make_in_steps(k, thread, &request, &destination)? {
        return Ok(Outcome::Written);
    }
    Ok(Outcome::results(k, thread, &[offset]))
}

/// Makes all objects without a preemption point.
fn make_at_once<A: Arch>(k: &mut Kernel<A>, request: &Request, destination: &Destination) -> Result<(), Error> {
    if request.zero {
        // SAFETY: the range lies in an untyped and no object lies in it (`derivation::room`).
        unsafe { k.arch().zero(request.start, request.length) };
    }
    if request.count > 1 && matches!(request.cap.kind, Kind::Frame) {
        derivation::insert_run(k, destination.gap, (destination.first, request.count), &request.cap);
        return Ok(());
    }
    let (before, mut after) = destination.gap;
    let mut i = request.count;
    while i > 0 {
        i -= 1;
        after = Some(make(k, request, i, (before, after), destination.first)?);
    }
    Ok(())
}

/// Makes object `i` of zeroed memory, with its capability in slot `i` from `first` on. Returns that slot.
#[inline(always)]
fn make<A: Arch>(k: &mut Kernel<A>, request: &Request, i: usize, gap: Gap, first: SlotRef) -> Result<SlotRef, Error> {
    let destination = cspace::neighbour(first, i).ok_or(Error::NoSuchSlot)?;
    let cap = request.cap.at(request.start + (i << request.cap.size_bits));
    initialise(k, &cap);
    derivation::insert(k, gap, destination, &cap);
    Ok(destination)
}

/// Makes zeroed memory an object. For most kinds there is nothing to do.
#[inline(always)]
fn initialise<A: Arch>(k: &mut Kernel<A>, cap: &Cap) {
    match cap.kind {
        Kind::Thread => thread::initialise(k, cap.object),
        Kind::PageTable => page_table::initialise(k, cap.object, cap.level().into()),
        _ => {}
    }
}

/// Reserves the range, zeroes it and makes the objects, with preemption points. Returns whether the running thread
/// still exists.
#[cold]
#[inline(never)]
fn make_in_steps<A: Arch>(
    k: &mut Kernel<A>,
    thread: Ref<Thread>,
    request: &Request,
    destination: &Destination,
) -> Result<bool, Error> {
    let reservation = Reservation { owner: thread.address(), length: request.length };
    let reservation = reservation.cap(request.start, request.cap.flags & (flag::DEVICE | flag::PRESERVED));
    derivation::insert(k, destination.gap, destination.first, &reservation);
    let mut slot = destination.first;
    let mut done = if request.zero { 0 } else { request.length };
    loop {
        // The checks have taken long.
        match preemption_point::pass(k) {
            Passed::Undisturbed => {}
            Passed::Disturbed => slot = reserved(k, thread, request, request.length)?,
            Passed::Deleted => return Ok(false),
        }
        if done == request.length {
            return make_from_last(k, thread, request, slot);
        }
        let step = ZERO_STEP.min(request.length - done);
        // SAFETY: the zombie that has just been found reserves the range.
        unsafe { k.arch().zero(request.start + done, step) };
        done += step;
    }
}

/// Returns the slot of the reservation after a preemption point, if it still covers `length` bytes.
fn reserved<A: Arch>(
    k: &mut Kernel<A>,
    thread: Ref<Thread>,
    request: &Request,
    length: usize,
) -> Result<SlotRef, Error> {
    let (cspace, address) = (argument(k, thread, 5), argument(k, thread, 6));
    let slot = cspace::slot_in(k, cspace, address, Rights::WRITE).map_err(|_| Error::Aborted)?;
    let cap = &k.slot(slot).cap;
    let ours =
        cap.object == request.start && Reservation::of(cap) == Some(Reservation { owner: thread.address(), length });
    if ours { Ok(slot) } else { Err(Error::Aborted) }
}

/// Turns a zeroed reservation into objects, with preemption points. Returns whether the running thread still exists.
fn make_from_last<A: Arch>(
    k: &mut Kernel<A>,
    thread: Ref<Thread>,
    request: &Request,
    reservation: SlotRef,
) -> Result<bool, Error> {
    let mut slot = reservation;
    // All but the first, whose slot holds the reservation meanwhile.
    let mut left = request.count - 1;
    while left > 0 {
        let step = left.min(request.step());
        left -= step;
        make_step(k, request, slot, (left + 1, left + 1 + step))?;
        if left == 0 {
            break;
        }
        match preemption_point::pass(k) {
            Passed::Undisturbed => {}
            Passed::Disturbed => slot = reserved(k, thread, request, (left + 1) * request.size())?,
            Passed::Deleted => return Ok(false),
        }
    }
    make_first(k, request, slot);
    Ok(true)
}

/// Makes the objects in `first..end`, which are the last of the reservation in `slot`.
fn make_step<A: Arch>(
    k: &mut Kernel<A>,
    request: &Request,
    slot: SlotRef,
    (first, end): (usize, usize),
) -> Result<(), Error> {
    let mut begin = end;
    while begin > first && is_empty(k, slot, begin - 1) {
        begin -= 1;
    }
    Reservation::shorten(&mut k.slot(slot).cap, begin * request.size());
    let (before, mut after) = (Some(slot), tree::next(k, slot));
    if !matches!(request.cap.kind, Kind::Frame) {
        for i in (begin..end).rev() {
            after = Some(make(k, request, i, (before, after), slot)?);
        }
    } else if begin < end {
        let cap = request.cap.at(request.start + begin * request.size());
        let destination = cspace::neighbour(slot, begin).ok_or(Error::NoSuchSlot)?;
        derivation::insert_run(k, (before, after), (destination, end - begin), &cap);
    }
    if begin == first {
        return Ok(());
    }
    derivation::remove(k, slot);
    Err(Error::SlotOccupied)
}

/// Returns whether the slot `i` places behind another is empty.
fn is_empty<A: Arch>(k: &mut Kernel<A>, slot: SlotRef, i: usize) -> bool {
    cspace::neighbour(slot, i).is_some_and(|slot| k.slot(slot).cap.kind as u8 == Kind::Null as u8)
}

/// Turns a reservation of which only the first object is left into that object.
fn make_first<A: Arch>(k: &mut Kernel<A>, request: &Request, slot: SlotRef) {
    initialise(k, &request.cap);
    if matches!(request.cap.kind, Kind::Frame) {
        derivation::turn_into_run(k, slot, &request.cap);
    } else {
        k.slot(slot).cap = request.cap;
        tree::raised(k, slot);
    }
}

/// Performs `UntypedQuery`.
pub fn query<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let slot = capability_slot(k, thread, Kind::Untyped, Rights::READ)?;
    let cap = k.slot(slot).cap;
    let device = u64::from(cap.flags & flag::DEVICE != 0);
    Ok(Outcome::results(k, thread, &[cap.size_bits.into(), Marks::of(&cap).watermark, device]))
}
