//! Mappings: up to 512 adjacent entries of one table that map consecutive pages of one frame.
//!
//! A mapping consists of its capability alone, which is unique: it names the frame, the table and the entries, and at
//! every preemption point it agrees with the entries that are mapped. The table's shadow entries name the capability's
//! slot, so that deleting a table finds the mappings in it. In derivation order a mapping comes after the frame's
//! capabilities, so that deleting a frame finds its mappings, too.
//!
//! ```text
//!  small  31      16 15       0      second 31          12 11        10     5 4   0
//!        ┌──────────┬──────────┐           ┌──────────────┬──────────┬───────┬─────┐
//!        │ count    │ first    │           │ offset       │PROTECTING│ 0     │flags│
//!        └──────────┴──────────┘           └──────────────┴──────────┴───────┴─────┘
//! ```
//! The capability's rights are those of the frame capability from which it was made: no flags can exceed them.

pub mod scattered;

use tench_abi::Kind;
use tench_abi::memory::{MapFlags, PAGE_SIZE};

use crate::object::Ref;
use crate::page_table::{PageTable, ShadowEntry};
use crate::slot::payload::Raw;
use crate::slot::{Cap, SlotRef, flag};
use crate::{Arch, Kernel, page_table};

/// Number of entries changed between two preemption points.
pub const STEP: usize = 64;
/// Bit of the second word: a change of the flags has begun and not ended, so entries may differ in their flags.
const PROTECTING: u64 = 1 << 11;
/// Mask of the flags in the second word.
const FLAGS: u64 = 0x1f;
/// Mask of the offset in the second word.
const OFFSET: u64 = !(PAGE_SIZE as u64 - 1);
/// Flags for the memory type of an entry.
pub(crate) const MEMORY_TYPE: MapFlags = MapFlags::DEVICE.union(MapFlags::UNCACHED);

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
        let Raw { small, words: [table, about] } = cap.raw();
        Mapping {
            table: table as usize,
            first: (small & 0xffff) as usize,
            count: (small >> 16) as usize,
            memory: cap.object + (about & OFFSET) as usize,
            flags: MapFlags::from_bits_truncate(about & FLAGS),
            protecting: about & PROTECTING != 0,
        }
    }

    /// Returns the table, which is alive as long as the mapping is not empty.
    pub(crate) fn table(&self) -> Option<Ref<PageTable>> {
        // SAFETY: a table that is deleted first removes the mappings in it.
        unsafe { Ref::at(self.table) }
    }
}

/// Encodes the entries of a mapping.
const fn extent(first: usize, count: usize) -> u32 {
    first as u32 | (count as u32) << 16
}

/// Returns the capability to a mapping of a frame, from an offset on: `count` entries of a table, from `first` on. A
/// mapping has no flag [`COHERENT`](MapFlags::COHERENT).
#[inline(always)]
pub const fn cap(
    frame: &Cap,
    table: Ref<PageTable>,
    (first, count): (usize, usize),
    (offset, flags): (u64, MapFlags),
) -> Cap {
    let raw = Raw { small: extent(first, count), words: [table.address() as u64, offset | flags.bits()] };
    let mut cap = frame.with(raw);
    (cap.kind, cap.flags) = (Kind::Mapping, frame.flags & (flag::DEVICE | flag::PRESERVED));
    cap
}

/// Changes the entries that a mapping has.
#[inline(always)]
pub const fn set_extent(cap: &mut Cap, first: usize, count: usize) {
    cap.set_small(extent(first, count));
}

/// Changes the flags that a mapping has. `protecting` says that the entries are being changed.
#[inline(always)]
pub const fn set_flags(cap: &mut Cap, flags: MapFlags, protecting: bool) {
    let [_, about] = cap.raw().words;
    let mark = if protecting { PROTECTING } else { 0 };
    cap.set_second_word(about & OFFSET | flags.bits() | mark);
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
    set_extent(&mut k.slot(slot).cap, mapping.first, rest);
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

/// Returns the physical address of the memory that a mapping maps.
pub fn physical<A: Arch>(k: &mut Kernel<A>, cap: &Cap) -> u64 {
    let memory = if scattered::is_scattered(cap) { cap.object } else { Mapping::of(cap).memory };
    k.physical(memory)
}
