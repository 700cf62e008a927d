//! Mappings: up to 512 adjacent entries of one table that map consecutive pages of one frame.
//!
//! A mapping consists of its capability alone, which is unique: it names the frame, the table and the entries, and at
//! every preemption point it agrees with the entries that are mapped. The table's shadow entries name the capability's
//! slot, so that deleting a table finds the mappings in it. In derivation order a mapping comes after the frame's
//! capabilities, so that deleting a frame finds its mappings, too.
//!
//! ```text
//!  aux    31      16 15       0      extra  31          12 11        10     5 4   0
//!        ┌──────────┬──────────┐           ┌──────────────┬──────────┬───────┬─────┐
//!        │ count    │ first    │           │ offset       │PROTECTING│ 0     │flags│
//!        └──────────┴──────────┘           └──────────────┴──────────┴───────┴─────┘
//! ```
//! The capability's rights are those of the frame capability from which it was made: no flags can exceed them.

use tench_abi::memory::{MapFlags, PAGE_SIZE, entry_bits};
use tench_abi::{Error, Kind, Rights};

use crate::entry::{Outcome, argument, capability_slot};
use crate::object::{PageTable, Ref, ShadowEntry};
use crate::preemption_point::Passed;
use crate::scattered::{self, Scattered};
use crate::slot::{Cap, SlotRef, flag};
use crate::thread::Thread;
use crate::{Arch, Kernel, page_table, preemption_point};

/// Number of entries changed between two preemption points.
pub const STEP: usize = 64;
/// Bit of `extra`: a change of the flags has begun and not ended, so entries differ in their flags.
const PROTECTING: u64 = 1 << 11;
/// Mask of the flags in `extra`.
const FLAGS: u64 = 0x1f;
/// Mask of the offset in `extra`.
const OFFSET: u64 = !(PAGE_SIZE as u64 - 1);
/// Flags for the memory type of an entry.
const MEMORY_TYPE: MapFlags = MapFlags::DEVICE.union(MapFlags::UNCACHED);
/// Bytes for which caches are maintained between two preemption points: 256 lines of 64 bytes.
const MAINTENANCE_STEP: usize = 16 * 1024;

/// A decoded mapping capability.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// Kernel virtual address of the table.
    pub table: usize,
    /// Index of the first entry.
    pub first: usize,
    /// Number of entries.
    pub count: usize,
    /// Kernel virtual address of the memory that the first entry maps.
    pub memory: usize,
    /// Rights and memory type.
    pub flags: MapFlags,
    /// Set while a change of the flags is under way; stays set if its thread is deleted meanwhile.
    pub protecting: bool,
}

impl Mapping {
    /// Decodes a capability.
    pub const fn of(cap: &Cap) -> Mapping {
        Mapping {
            table: cap.badge as usize,
            first: (cap.aux & 0xffff) as usize,
            count: (cap.aux >> 16) as usize,
            memory: cap.object + (cap.extra & OFFSET) as usize,
            flags: MapFlags::from_bits_truncate(cap.extra & FLAGS),
            protecting: cap.extra & PROTECTING != 0,
        }
    }

    /// Returns the table, which is alive as long as the mapping is not empty.
    fn table(&self) -> Option<Ref<PageTable>> {
        // SAFETY: a table that is deleted first removes the mappings in it.
        unsafe { Ref::at(self.table) }
    }
}

/// Encodes `aux`.
pub const fn extent(first: usize, count: usize) -> u32 {
    first as u32 | (count as u32) << 16
}

/// Returns the flags that a program named, if a capability with these rights to this memory allows them. A mapping does
/// not keep [`COHERENT`](MapFlags::COHERENT).
pub fn allowed_flags(alleged: u64, cap: &Cap) -> Result<MapFlags, Error> {
    let Some(mut flags) = MapFlags::from_bits(alleged) else { return Err(Error::InvalidArgument) };
    if !flags.contains(MapFlags::READ) || flags.contains(MapFlags::WRITE.union(MapFlags::EXECUTE)) {
        return Err(Error::InvalidArgument);
    }
    let is_plain = flags.contains(MapFlags::EXECUTE) && !flags.intersects(MEMORY_TYPE);
    if flags.contains(MapFlags::COHERENT) && !is_plain {
        return Err(Error::InvalidArgument);
    }
    if flags.contains(MapFlags::WRITE) && !cap.allows(Rights::WRITE)
        || flags.contains(MapFlags::EXECUTE) && !cap.allows(Rights::EXECUTE)
        || !cap.allows(Rights::READ)
    {
        return Err(Error::MissingRights);
    }
    if cap.flags & flag::DEVICE != 0 {
        flags = flags.union(MapFlags::DEVICE);
    }
    Ok(flags)
}

/// Returns the entries that a program named, first and count, if they lie within one table.
pub fn allowed_entries(first: u64, count: u64) -> Result<(usize, usize), Error> {
    let entries = tench_abi::memory::TABLE_ENTRIES as u64;
    if count == 0 || first >= entries || count > entries - first {
        return Err(Error::InvalidArgument);
    }
    Ok((first as usize, count as usize))
}

/// Returns whether memory must be made coherent before it is mapped with these flags: because instructions are to be
/// fetched that were written as data (unless the program says that they were not written since), or because caches are
/// to be bypassed that hold contents.
pub fn needs_maintenance(cap: &Cap, flags: MapFlags) -> bool {
    let may_need = flags.intersects(MEMORY_TYPE.union(MapFlags::EXECUTE)) && !flags.contains(MapFlags::COHERENT);
    may_need && cap.flags & flag::DEVICE == 0
}

/// Makes `length` bytes of memory from `address` on coherent for a mapping with `flags`.
///
/// Contains preemption points, before anything is changed. `same` decodes the operation again and returns whether the
/// result is the same. Returns whether the thread that performs the operation still exists.
pub fn maintain<A: Arch>(
    k: &mut Kernel<A>,
    (address, length): (usize, usize),
    flags: MapFlags,
    mut same: impl FnMut(&mut Kernel<A>) -> Result<bool, Error>,
) -> Result<bool, Error> {
    let mut done = 0;
    // The checks before have taken long.
    if !pass_unchanged(k, &mut same)? {
        return Ok(false);
    }
    while done < length {
        let step = MAINTENANCE_STEP.min(length - done);
        if flags.intersects(MEMORY_TYPE) {
            k.arch().clean_memory(address + done, step);
        } else {
            k.arch().synchronise_instructions(address + done, step);
        }
        done += step;
        // Also after the last step: what follows takes as long.
        if !pass_unchanged(k, &mut same)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Passes a preemption point. Returns whether the running thread still exists. Fails if `same` does not hold any more.
fn pass_unchanged<A: Arch>(
    k: &mut Kernel<A>,
    same: &mut impl FnMut(&mut Kernel<A>) -> Result<bool, Error>,
) -> Result<bool, Error> {
    match preemption_point::pass(k) {
        Passed::Undisturbed => Ok(true),
        Passed::Disturbed => same(k)?.then_some(true).ok_or(Error::Aborted),
        Passed::Deleted => Ok(false),
    }
}

/// Writes one entry of a table, with its shadow entry.
#[inline(always)]
pub fn write_entry<A: Arch>(k: &mut Kernel<A>, table: Ref<PageTable>, index: usize, entry: u64, shadow: u32) {
    // SAFETY: the caller names an entry of a live table, below 512.
    unsafe { k.arch().write_entry(table.address(), index, entry) };
    if let Some(one) = k.get(table).shadows.get_mut(index) {
        *one = shadow;
    }
}

/// Writes `count` entries of a table from `first` on: `entry`, `entry + size` and so on, each with the shadow entry
/// `shadow`.
pub fn write_entries<A: Arch>(
    k: &mut Kernel<A>,
    table: Ref<PageTable>,
    (first, count): (usize, usize),
    (entry, size): (u64, u64),
    shadow: u32,
) {
    // Four at a time, here and below: mapping many pages spends most of its time here.
    let (fours, mut index, mut entry) = (count / 4, first, entry);
    let mut write = |index, entry| {
        // SAFETY: the caller names entries of a live table, all below 512.
        unsafe { k.arch().write_entry(table.address(), index, entry) };
    };
    for _ in 0..fours {
        write(index, entry);
        write(index + 1, entry.wrapping_add(size));
        write(index + 2, entry.wrapping_add(2 * size));
        write(index + 3, entry.wrapping_add(3 * size));
        (index, entry) = (index + 4, entry.wrapping_add(4 * size));
    }
    while index < first + count {
        write(index, entry);
        (index, entry) = (index + 1, entry.wrapping_add(size));
    }
    if let Some(shadows) = k.get(table).shadows.get_mut(first..first + count) {
        let (fours, rest) = shadows.as_chunks_mut::<4>();
        fours.iter_mut().for_each(|four| *four = [shadow; 4]);
        rest.iter_mut().for_each(|one| *one = shadow);
    }
}

/// Does one step of the end of a mapping: unmaps its last entries, and takes them off the capability. Returns whether
/// none is left; then the caller empties the slot.
pub fn finalise<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) -> bool {
    if scattered::is_scattered(&k.slot(slot).cap) { scattered::finalise(k, slot) } else { finalise_row(k, slot) }
}

/// As [`finalise`], of a mapping that is not scattered.
#[inline(never)]
pub fn finalise_row<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) -> bool {
    let mapping = Mapping::of(&k.slot(slot).cap);
    let step = mapping.count.min(STEP);
    let rest = mapping.count - step;
    let Some(table) = mapping.table() else { return true };
    let from = mapping.first + rest;
    write_entries(k, table, (from, step), (0, 0), 0);
    let t = k.get(table);
    t.used -= step as u16;
    let level = u32::from(t.level);
    if let Some(location) = page_table::locate(k, table, from) {
        k.arch().invalidate(location.asid, location.address, level, step);
    }
    k.slot(slot).cap.aux = extent(mapping.first, rest);
    rest == 0
}

/// Unmaps a mapping of one page, which is not scattered. The caller empties the slot.
#[inline(always)]
pub fn finalise_page<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) {
    let mapping = Mapping::of(&k.slot(slot).cap);
    let Some(table) = mapping.table() else { return };
    write_entry(k, table, mapping.first, 0, 0);
    let t = k.get(table);
    t.used -= 1;
    let level = u32::from(t.level);
    if let Some(location) = page_table::locate(k, table, mapping.first) {
        k.arch().invalidate(location.asid, location.address, level, 1);
    }
}

/// Updates the shadow entry of a mapping's first entry after its capability was moved to `slot`. Those of the other
/// entries say only that some mapping covers them, so moving takes the same time for any number of entries.
pub fn moved<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) {
    if scattered::is_scattered(&k.slot(slot).cap) {
        return scattered::moved(k, slot);
    }
    let mapping = Mapping::of(&k.slot(slot).cap);
    let Some(table) = mapping.table() else { return };
    if let Some(shadow) = k.get(table).shadows.get_mut(mapping.first) {
        *shadow = ShadowEntry::Mapping(slot).pack();
    }
}

/// Performs `MappingProtect`.
///
/// If the mapping changes at a preemption point, the call ends with `Aborted`; if its thread is deleted there, each
/// entry has the old flags or the new ones.
pub fn protect<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let (mut slot, named) = decode_protect(k, thread)?;
    let flags = named.difference(MapFlags::COHERENT);
    let cap = k.slot(slot).cap;
    let mapping = Mapping::of(&cap);
    let size = 1usize << entry_bits(level(k, &mapping));
    let gains = !mapping.flags.contains(flags) || mapping.protecting;
    if gains && needs_maintenance(&cap, named) {
        let range = (mapping.memory, mapping.count * size);
        let same = |k: &mut Kernel<A>| decode_protect(k, thread).map(|(s, f)| (k.slot(s).cap, f) == (cap, named));
        if !maintain(k, range, flags, same)? {
            return Ok(Outcome::Written);
        }
        (slot, ..) = decode_protect(k, thread)?;
    }
    // ── Point of no return ──
    let extra = cap.extra & OFFSET | flags.bits();
    k.slot(slot).cap.extra = extra | PROTECTING;
    let mut done = 0;
    loop {
        let step = STEP.min(mapping.count - done);
        protect_step(k, &mapping, (done, step), flags);
        done += step;
        if done == mapping.count {
            break;
        }
        match preemption_point::pass(k) {
            Passed::Undisturbed => continue,
            Passed::Disturbed => {}
            Passed::Deleted => return Ok(Outcome::Written),
        }
        (slot, _) = decode_protect(k, thread)?;
        if k.slot(slot).cap != (Cap { extra: extra | PROTECTING, ..cap }) {
            return Err(Error::Aborted);
        }
    }
    k.slot(slot).cap.extra = extra;
    Ok(Outcome::Done)
}

/// Returns the slot of the mapping, and the flags that the call names.
///
/// After a preemption point, the whole capability in the slot has to be unchanged. Equal entries and memory do not
/// imply that it is the same mapping: another can map the same memory as part of another frame, and `extra` counts from
/// the frame's beginning.
fn decode_protect<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<(SlotRef, MapFlags), Error> {
    let slot = capability_slot(k, thread, Kind::Mapping, Rights::empty())?;
    let alleged = argument(k, thread, 1);
    if scattered::is_scattered(&k.slot(slot).cap) {
        return Err(Error::WrongType);
    }
    let flags = allowed_flags(alleged, &k.slot(slot).cap)?;
    Ok((slot, flags))
}

/// Returns the level of the table in which a mapping lies.
fn level<A: Arch>(k: &mut Kernel<A>, mapping: &Mapping) -> u32 {
    match mapping.table() {
        Some(table) => u32::from(k.get(table).level),
        None => 3,
    }
}

/// Rewrites `step` entries of a mapping, from its entry `done` on.
///
/// Rights change in place, but the memory type does not: the old entries must have left the TLB before others can be
/// cached for the same addresses.
fn protect_step<A: Arch>(k: &mut Kernel<A>, mapping: &Mapping, (done, step): (usize, usize), flags: MapFlags) {
    let Some(table) = mapping.table() else { return };
    let level = u32::from(k.get(table).level);
    let size = 1u64 << entry_bits(level);
    let first = mapping.first + done;
    let location = page_table::locate(k, table, first);
    let same_type = (mapping.flags ^ flags).intersection(MEMORY_TYPE).is_empty() && !mapping.protecting;
    if !same_type {
        rewrite(k, table, (first, step), (0, 0));
        if let Some(location) = location {
            k.arch().invalidate(location.asid, location.address, level, step);
        }
    }
    let physical = k.physical(mapping.memory) + done as u64 * size;
    let entry = k.arch().page_entry(physical, level, flags);
    rewrite(k, table, (first, step), (entry, size));
    match location {
        Some(location) if same_type => k.arch().invalidate(location.asid, location.address, level, step),
        _ => k.arch().publish_entries(),
    }
}

/// Writes entries without changing their shadow entries: `entry`, `entry + size` and so on.
fn rewrite<A: Arch>(
    k: &mut Kernel<A>,
    table: Ref<PageTable>,
    (first, count): (usize, usize),
    (entry, size): (u64, u64),
) {
    let mut entry = entry;
    for index in first..first + count {
        // SAFETY: a live mapping's entries lie in a live table, below 512.
        unsafe { k.arch().write_entry(table.address(), index, entry) };
        entry = entry.wrapping_add(size);
    }
}

/// Returns the physical address of the memory that a mapping maps.
pub fn physical<A: Arch>(k: &mut Kernel<A>, cap: &Cap) -> u64 {
    let memory = if scattered::is_scattered(cap) { cap.object } else { Mapping::of(cap).memory };
    k.physical(memory)
}

/// Performs `MappingQuery`.
pub fn query<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let slot = capability_slot(k, thread, Kind::Mapping, Rights::empty())?;
    let cap = k.slot(slot).cap;
    let mapping = Mapping::of(&cap);
    if let Some(scattered) = Scattered::of(&cap) {
        let address = mapping.table().and_then(|table| page_table::virtual_address(k, table, 0));
        let (count, flags) = (scattered.count as u64, scattered::possible_flags(&cap).bits());
        return Ok(Outcome::results(k, thread, &[0, count, flags, address.unwrap_or(u64::MAX)]));
    }
    let address = mapping.table().and_then(|table| page_table::virtual_address(k, table, mapping.first));
    let (first, count) = (mapping.first as u64, mapping.count as u64);
    Ok(Outcome::results(k, thread, &[first, count, mapping.flags.bits(), address.unwrap_or(u64::MAX)]))
}
