//! The operation on frames: `FrameMap`.
//!
//! Mapping is a loop whose length the program chooses, so it contains preemption points. The mapping capability is made
//! with the first entries and grows with the number of entries mapped. After each preemption point at which another
//! thread ran, the call is decoded again, and continues only if the result is the same. If the thread is deleted at a
//! preemption point, a mapping of the entries mapped so far remains.

use tench_abi::memory::{MapFlags, entry_bits};
use tench_abi::{Error, Kind, Rights};

use super::maintenance::{maintain, needs_maintenance};
use super::{allowed_entries, allowed_flags};
use crate::mapping::{self, Mapping, STEP};
use crate::object::Ref;
use crate::page_table::{PageTable, ShadowEntry};
use crate::slot::{Cap, SlotRef};
use crate::syscall::{Outcome, argument, capability_at, capability_slot};
use crate::thread::Thread;
use crate::{Arch, Kernel, cspace, derivation, preemption_point};

/// The checked arguments of `FrameMap`.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Request {
    table: Ref<PageTable>,
    level: u32,
    /// First entry, and number of entries.
    entries: (usize, usize),
    /// Capability of the complete mapping.
    cap: Cap,
    /// Set if the memory must be made coherent before.
    maintain: bool,
}

/// Does all checks except those of the entries and the destination. Returns the frame's slot and the request.
fn decode<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<(SlotRef, Request), Error> {
    let slot = capability_slot(k, thread, Kind::Frame, Rights::READ)?;
    let [address, first, count, offset, flags] = {
        let x = &k.get(thread).registers.x;
        [x[1], x[2], x[3], x[4], x[5]]
    };
    let table: Ref<PageTable> = capability_at(k, address, Rights::WRITE)?;
    let level = u32::from(k.get(table).level);
    let frame = k.slot(slot).cap;
    let flags = allowed_flags(flags, &frame)?;
    let entries = allowed_entries(first, count)?;
    let frame_size = frame.size() as u64;
    if level == 0 || offset >= frame_size {
        return Err(Error::InvalidArgument);
    }
    let bits = entry_bits(level);
    if (k.physical(frame.object) | offset) & ((1 << bits) - 1) != 0 {
        return Err(Error::Misaligned);
    }
    if count << bits > frame_size - offset {
        return Err(Error::InvalidArgument);
    }
    let cap = mapping::cap(&frame, table, entries, (offset, flags.difference(MapFlags::COHERENT)));
    let maintain = needs_maintenance(&cap, flags);
    Ok((slot, Request { table, level, entries, cap, maintain }))
}

/// Checks that `count` entries from `first` on are free.
fn check_free<A: Arch>(k: &mut Kernel<A>, table: Ref<PageTable>, first: usize, count: usize) -> Result<(), Error> {
    if count == 1 {
        let is_free = k.get(table).shadows.get(first).is_some_and(|shadow| *shadow == 0);
        return if is_free { Ok(()) } else { Err(Error::AlreadyMapped) };
    }
    let shadows = k.get(table).shadows.get(first..first + count).unwrap_or(&[]);
    // Four at a time: mapping many entries spends much of its time here.
    let (fours, rest) = shadows.as_chunks::<4>();
    let is_free = fours.iter().all(|[a, b, c, d]| a | b | c | d == 0) && rest.iter().all(|shadow| *shadow == 0);
    if is_free { Ok(()) } else { Err(Error::AlreadyMapped) }
}

/// Fills `step` entries, from entry `done` of the mapping in `slot` on.
fn fill<A: Arch>(k: &mut Kernel<A>, r: &Request, slot: SlotRef, done: usize, step: usize) {
    let size = 1u64 << entry_bits(r.level);
    let mapping = Mapping::of(&r.cap);
    let physical = k.physical(mapping.memory) + done as u64 * size;
    let entry = k.arch().page_entry(physical, r.level, mapping.flags);
    let shadow = ShadowEntry::Mapping(slot).pack();
    mapping::write_entries(k, r.table, (mapping.first + done, step), (entry, size), shadow);
    k.get(r.table).used += step as u16;
    k.arch().publish_entries();
}

/// Performs `FrameMap`.
///
/// If an object that the call names changes at a preemption point, the call ends with `Aborted`, or with the error that
/// follows from the change, and the mapping keeps the entries mapped so far.
pub fn map_call<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let (mut source, request) = decode(k, thread)?;
    let (first, count) = request.entries;
    check_free(k, request.table, first, count)?;
    let address = argument(k, thread, 6);
    let mut slot = cspace::destination(k, 0, address)?;
    let flags = Mapping::of(&request.cap).flags;
    if request.maintain {
        if !prepare(k, thread, &request, flags)? {
            return Ok(Outcome::Written);
        }
        (source, _) = decode(k, thread)?;
        check_free(k, request.table, first, count)?;
        slot = cspace::destination(k, 0, address)?;
    }
    let mut is_checked = true;
    if count > STEP {
        // Checking so many entries has taken long. Those beyond the first step are checked again before they are
        // filled, if another thread has run by then.
        let passed = preemption_point::pass(k);
        if passed.is_deleted() {
            return Ok(Outcome::Written);
        }
        is_checked = !passed.is_disturbed();
        if !is_checked {
            let now;
            (source, now) = decode(k, thread)?;
            if now != request {
                return Err(Error::Aborted);
            }
            check_free(k, request.table, first, STEP)?;
            slot = cspace::destination(k, 0, address)?;
        }
    }
    // ── Point of no return ──
    let mut done = count.min(STEP);
    let mut cap = request.cap;
    mapping::set_extent(&mut cap, first, done);
    derivation::insert_mapping(k, source, slot, &cap);
    fill(k, &request, slot, 0, done);
    while done < count {
        let passed = preemption_point::pass(k);
        if passed.is_deleted() {
            return Ok(Outcome::Written);
        }
        if passed.is_disturbed() || !is_checked {
            slot = look_again(k, thread, &request, address, done)?;
            check_free(k, request.table, first + done, count - done)?;
            is_checked = true;
        }
        let step = STEP.min(count - done);
        fill(k, &request, slot, done, step);
        done += step;
        mapping::set_extent(&mut k.slot(slot).cap, first, done);
    }
    Ok(Outcome::Done)
}

/// Makes the memory coherent, in steps with preemption points in between. Returns whether the thread still exists.
#[cold]
#[inline(never)]
fn prepare<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, r: &Request, flags: MapFlags) -> Result<bool, Error> {
    let range = (Mapping::of(&r.cap).memory, r.entries.1 << entry_bits(r.level));
    maintain(k, range, flags, |k| decode(k, thread).map(|(_, now)| now == *r))
}

/// Returns the mapping, which has grown to `done` entries, after a preemption point, if the call still decodes to the
/// same request.
fn look_again<A: Arch>(
    k: &mut Kernel<A>,
    thread: Ref<Thread>,
    r: &Request,
    address: u64,
    done: usize,
) -> Result<SlotRef, Error> {
    if decode(k, thread)?.1 != *r {
        return Err(Error::Aborted);
    }
    let slot = cspace::lookup(k, address)?;
    let mut cap = r.cap;
    mapping::set_extent(&mut cap, r.entries.0, done);
    if k.slot(slot).cap != cap {
        return Err(Error::Aborted);
    }
    Ok(slot)
}
