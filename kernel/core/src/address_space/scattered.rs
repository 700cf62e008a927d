//! Operations on scattered mappings: `FrameScatter`, `MappingSet`, `MappingClone`.

use tench_abi::memory::{MAX_SET, MapFlags, entry_bits};
use tench_abi::{Error, Kind, Rights};

use super::maintenance::{maintain, needs_maintenance};
use super::{allowed_entries, allowed_flags};
use crate::mapping;
use crate::mapping::scattered::{self, Scattered, count_entries};
use crate::object::Ref;
use crate::page_table::PageTable;
use crate::preemption_point::Passed;
use crate::slot::SlotRef;
use crate::syscall::{Outcome, argument, capability_at, capability_slot};
use crate::thread::Thread;
use crate::{Arch, Kernel, cspace, derivation, page_table, preemption_point};

/// Number of entries that are cloned together: most often all of them are to be copied, or none.
const GROUP: usize = 2 * HALF;
/// Number of entries whose shadow entries are compared at a time: the compiler makes two comparisons of them.
const HALF: usize = 4;
/// Number of entries that are cloned between two preemption points, if all of them go in groups.
const CLONE_STEP: usize = 12 * GROUP;
/// How many entries fewer these are for each group of which not all entries are copied: it takes longer.
const SINGLE_COST: usize = 6;

/// Performs `FrameScatter`.
pub fn make<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let source = capability_slot(k, thread, Kind::Frame, Rights::READ)?;
    let (address, destination) = (argument(k, thread, 1), argument(k, thread, 2));
    let table: Ref<PageTable> = capability_at(k, address, Rights::WRITE)?;
    let level = u32::from(k.get(table).level);
    let frame = k.slot(source).cap;
    if level == 0 || u32::from(frame.size_bits) < entry_bits(level) {
        return Err(Error::InvalidArgument);
    }
    let free = k.get(table).scattered.iter().position(|mapping| *mapping == 0).ok_or(Error::Busy)?;
    let slot = cspace::destination(k, 0, destination)?;
    // ── Point of no return ──
    let cap = scattered::cap(&frame, table, free + 1);
    derivation::insert_mapping(k, source, slot, &cap);
    k.get(table).scattered[free] = slot.number();
    Ok(Outcome::Done)
}

/// Returns the slot of the scattered mapping at an address in the running thread's CSpace, and the scattered mapping.
fn named<A: Arch>(k: &mut Kernel<A>, address: u64) -> Result<(SlotRef, Scattered), Error> {
    let slot = cspace::lookup(k, address)?;
    let cap = &k.slot(slot).cap;
    if cap.kind as u8 != Kind::Mapping as u8 {
        return Err(Error::WrongType);
    }
    if !scattered::is_scattered(cap) {
        return Err(Error::WrongType);
    }
    let mapping = Scattered::usable(cap).ok_or(Error::Aborted)?;
    Ok((slot, mapping))
}

/// The checked arguments of `MappingSet`.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Request {
    /// The slot of the mapping.
    slot: SlotRef,
    mapping: Scattered,
    /// First entry, and number of entries.
    entries: (usize, usize),
    /// Kernel virtual address of the memory that the first entry is to map.
    memory: usize,
    level: u32,
    /// Flags; empty if the entries are to be cleared.
    flags: MapFlags,
    /// Set if the memory must be made coherent before.
    maintain: bool,
}

/// Does all checks except those of the entries.
fn decode_set<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Request, Error> {
    let [address, first, count, offset, flags] = {
        let x = &k.get(thread).registers.x;
        [x[0], x[1], x[2], x[3], x[4]]
    };
    let (slot, mapping) = named(k, address)?;
    let entries = allowed_entries(first, count)?;
    if count > MAX_SET {
        return Err(Error::InvalidArgument);
    }
    let Some(table) = mapping.table() else { return Err(Error::Aborted) };
    let level = u32::from(k.get(table).level);
    if flags == 0 {
        let flags = MapFlags::empty();
        return Ok(Request { slot, mapping, entries, memory: 0, level, flags, maintain: false });
    }
    let cap = &k.slot(slot).cap;
    let flags = allowed_flags(flags, cap)?;
    let maintain = needs_maintenance(cap, flags);
    let (bits, size) = (entry_bits(level), 1 << mapping.size_bits);
    if offset & ((1 << bits) - 1) != 0 {
        return Err(Error::Misaligned);
    }
    if offset >= size || count << bits > size - offset {
        return Err(Error::InvalidArgument);
    }
    let flags = flags.difference(MapFlags::COHERENT);
    Ok(Request { slot, mapping, entries, memory: mapping.frame + offset as usize, level, flags, maintain })
}

/// Performs `MappingSet`.
pub fn set<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let request = decode_set(k, thread)?;
    if !request.maintain {
        return set_entries(k, &request);
    }
    if !prepare(k, thread, &request)? {
        return Ok(Outcome::Written);
    }
    let request = decode_set(k, thread)?;
    set_entries(k, &request)
}

/// Sets or clears the entries of a request, whose memory is coherent.
fn set_entries<A: Arch>(k: &mut Kernel<A>, request: &Request) -> Result<Outcome, Error> {
    let Some(table) = request.mapping.table() else { return Err(Error::Aborted) };
    let (first, count) = request.entries;
    let own = request.mapping.shadow();
    let shadows = k.get(table).shadows.get(first..first + count).unwrap_or(&[]);
    let mut used = 0;
    for shadow in shadows {
        if *shadow != 0 {
            if *shadow != own {
                return Err(Error::AlreadyMapped);
            }
            used += 1;
        }
    }
    // ── Point of no return ──
    if used > 0 {
        // No address may have two translations at a time.
        mapping::write_entries(k, table, (first, count), (0, 0), 0);
        if let Some(location) = page_table::locate(k, table, first) {
            k.arch().invalidate(location.asid, location.address, request.level, count);
        }
    }
    let mut added = -used;
    if !request.flags.is_empty() {
        let physical = k.physical(request.memory);
        let entry = k.arch().page_entry(physical, request.level, request.flags);
        mapping::write_entries(k, table, (first, count), (entry, 1 << entry_bits(request.level)), own);
        k.arch().publish_entries();
        added += count as isize;
    }
    count_entries(k, request.slot, &request.mapping, added);
    Ok(Outcome::Done)
}

/// Makes the memory coherent, in steps with preemption points in between. Returns whether the thread still exists.
#[cold]
#[inline(never)]
fn prepare<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, request: &Request) -> Result<bool, Error> {
    let range = (request.memory, request.entries.1 << entry_bits(request.level));
    maintain(k, range, request.flags, |k| {
        // Entries that others have set or cleared meanwhile make no difference.
        let now = decode_set(k, thread)?;
        Ok(now == Request { slot: now.slot, mapping: now.mapping, ..*request }
            && now.mapping == Scattered { count: now.mapping.count, ..request.mapping })
    })
}

/// The checked arguments of `MappingClone`.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Copying {
    source: SlotRef,
    target: SlotRef,
    /// First entry, and number of entries.
    entries: (usize, usize),
    /// Flags that the copies may have.
    mask: MapFlags,
    /// Set if the source keeps only these flags as well.
    restrict: bool,
}

/// Does all checks. Returns the two scattered mappings, too.
fn decode_clone<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<(Copying, [Scattered; 2]), Error> {
    const ACCESS: MapFlags = MapFlags::READ.union(MapFlags::WRITE).union(MapFlags::EXECUTE);
    let [from, to, first, count, mask, restrict] = {
        let x = &k.get(thread).registers.x;
        [x[0], x[1], x[2], x[3], x[4], x[5]]
    };
    let ((source, shown), (target, copy)) = (named(k, from)?, named(k, to)?);
    let entries = allowed_entries(first, count)?;
    let Some(mask) = MapFlags::from_bits(mask) else { return Err(Error::InvalidArgument) };
    let same = (shown.frame, shown.size_bits, level(k, &shown)) == (copy.frame, copy.size_bits, level(k, &copy));
    if !mask.contains(MapFlags::READ) || !ACCESS.contains(mask) || restrict > 1 || !same {
        return Err(Error::InvalidArgument);
    }
    let cap = &k.slot(target).cap;
    if mask.contains(MapFlags::WRITE) && !cap.allows(Rights::WRITE)
        || mask.contains(MapFlags::EXECUTE) && !cap.allows(Rights::EXECUTE)
    {
        return Err(Error::MissingRights);
    }
    Ok((Copying { source, target, entries, mask, restrict: restrict != 0 }, [shown, copy]))
}

/// Returns the level of the table in which a scattered mapping lies.
fn level<A: Arch>(k: &mut Kernel<A>, mapping: &Scattered) -> u8 {
    mapping.table().map_or(0, |table| k.get(table).level)
}

/// Performs `MappingClone`.
///
/// If one of the scattered mappings changes its place or ends at a preemption point, the call ends with `Aborted`, or
/// with the error that follows from the change; the entries before stay copied, as they do if the thread is deleted
/// there.
pub fn clone<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let mut begun = None;
    let (mut next, mut copied) = (0, 0);
    loop {
        let now = decode_clone(k, thread)?;
        let (request, mappings) = now;
        let (first, count) = request.entries;
        match begun {
            None => next = first,
            Some(before) if is_same_clone(&now, &before) => {}
            Some(_) => return Err(Error::Aborted),
        }
        begun = Some((request, mappings));
        loop {
            copied += clone_step(k, &request, &mut next, first + count);
            if next == first + count {
                return Ok(Outcome::results(k, thread, &[copied as u64]));
            }
            match preemption_point::pass(k) {
                Passed::Undisturbed => {}
                Passed::Disturbed => break,
                Passed::Deleted => return Ok(Outcome::Written),
            }
        }
    }
}

/// Returns whether two decoded calls are the same. Others may have set or cleared entries between them.
fn is_same_clone(now: &(Copying, [Scattered; 2]), before: &(Copying, [Scattered; 2])) -> bool {
    let is_same = |(now, before): (Scattered, Scattered)| now == Scattered { count: now.count, ..before };
    now.0 == before.0 && now.1.into_iter().zip(before.1).all(is_same)
}

/// Copies what the source shows in the entries from `next` on, as many as one step may, up to `end`, where the target's
/// table has nothing. Returns the number of entries copied.
fn clone_step<A: Arch>(k: &mut Kernel<A>, request: &Copying, next: &mut usize, end: usize) -> usize {
    let caps = (k.slot(request.source).cap, k.slot(request.target).cap);
    let (Some(source), Some(target)) = (Scattered::of(&caps.0), Scattered::of(&caps.1)) else { return 0 };
    let (Some(from), Some(to)) = (source.table(), target.table()) else { return 0 };
    let (own, copy) = (source.shadow(), target.shadow());
    let first = *next;
    let (mut index, mut copied, mut limit) = (first, 0, end.min(first + CLONE_STEP));
    while index < limit {
        let group = GROUP.min(end - index);
        if group == GROUP && shows(k, from, index, own) && shows(k, to, index, 0) {
            // Not a loop, which would take a quarter longer.
            copy_two(k, request, (from, to), index);
            copy_two(k, request, (from, to), index + 2);
            copy_two(k, request, (from, to), index + 4);
            copy_two(k, request, (from, to), index + 6);
            if let Some((group, _)) = k.get(to).shadows[index..].split_first_chunk_mut::<GROUP>() {
                group[..HALF].copy_from_slice(&[copy; HALF]);
                group[HALF..].copy_from_slice(&[copy; HALF]);
            }
            copied += GROUP;
        } else {
            for index in index..index + group {
                if k.get(from).shadows[index] == own && k.get(to).shadows[index] == 0 {
                    copy_entry(k, request, (from, to), index);
                    k.get(to).shadows[index] = copy;
                    copied += 1;
                }
            }
            limit -= SINGLE_COST.min(limit);
        }
        index += group;
    }
    *next = index;
    if request.restrict
        && copied > 0
        && let Some(location) = page_table::locate(k, from, first)
    {
        let level = u32::from(k.get(from).level);
        k.arch().invalidate(location.asid, location.address, level, index - first);
    }
    k.arch().publish_entries();
    count_entries(k, request.target, &target, copied as isize);
    copied
}

/// Returns whether a whole group of entries of a table has this shadow entry.
#[inline(always)]
fn shows<A: Arch>(k: &mut Kernel<A>, table: Ref<PageTable>, index: usize, shadow: u32) -> bool {
    let group = k.get(table).shadows.get(index..).and_then(|rest| rest.first_chunk::<GROUP>());
    group.is_some_and(|group| group[..HALF] == [shadow; HALF] && group[HALF..] == [shadow; HALF])
}

/// Copies two entries as [`copy_entry`] does.
#[inline(always)]
fn copy_two<A: Arch>(k: &mut Kernel<A>, request: &Copying, tables: (Ref<PageTable>, Ref<PageTable>), index: usize) {
    copy_entry(k, request, tables, index);
    copy_entry(k, request, tables, index + 1);
}

/// Copies one entry from table to table, with the flags in the mask, and not its shadow entry.
#[inline(always)]
fn copy_entry<A: Arch>(
    k: &mut Kernel<A>,
    request: &Copying,
    (from, to): (Ref<PageTable>, Ref<PageTable>),
    index: usize,
) {
    let arch = k.arch();
    // SAFETY: the table lives and the index is below 512.
    let entry = unsafe { arch.read_entry(from.address(), index) };
    let entry = arch.restrict_entry(entry, request.mask);
    // SAFETY: as above.
    unsafe { arch.write_entry(to.address(), index, entry) };
    if request.restrict {
        // SAFETY: as above.
        unsafe { arch.write_entry(from.address(), index, entry) };
    }
}
