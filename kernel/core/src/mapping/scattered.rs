//! Scattered mappings: their entries are set one by one, and each shows any page of the frame.
//!
//! A scattered mapping is one capability, however many entries it has, so pages of one large frame can be mapped
//! anywhere in a table without a slot and a derivation for each. The shadow entries of a table name its scattered
//! mappings by their number there, and the table names their slots. So moving the capability takes the same time for
//! any number of entries.
//!
//! ```text
//!  small  31      16 15       0      second 31          12 11  10        9      8   0
//!        ┌──────────┬──────────┐           ┌──────────────┬───┬─────────┬──────┬─────┐
//!        │ count    │ number   │           │ to be cleared│ 0 │SCATTERED│ENDING│ 0   │
//!        └──────────┴──────────┘           └──────────────┴───┴─────────┴──────┴─────┘
//! ```
//! Deletion clears the entries from the last to the first. Once it has begun, no entry can be set.

use tench_abi::memory::{MapFlags, TABLE_ENTRIES};
use tench_abi::{Kind, Rights};

use super::{extent, set_extent};
use crate::object::Ref;
use crate::page_table::{PageTable, ShadowEntry};
use crate::slot::payload::Raw;
use crate::slot::{Cap, SlotRef, flag};
use crate::{Arch, Kernel, derivation, page_table};

/// Bit of the second word: the mapping is scattered.
const SCATTERED: u64 = 1 << 10;

/// Bit of the second word: the scattered mapping's deletion has begun.
const ENDING: u64 = 1 << 9;

/// Number of entries of the table that one step of a scattered mapping's end visits.
const CLEAR_STEP: usize = 32;

/// Position, in the second word, of the number of the table's entries that the deletion has not yet passed.
const REST_SHIFT: u32 = 12;

/// A decoded capability to a scattered mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scattered {
    /// Kernel virtual address of the table.
    pub table: usize,
    /// The scattered mapping's number in the table, from 1.
    pub number: u32,
    /// Number of entries in use.
    pub count: usize,
    /// Kernel virtual address of the frame.
    pub frame: usize,
    /// Log2 of the frame's size in bytes.
    pub size_bits: u8,
}

impl Scattered {
    /// Decodes a capability, if it is to a scattered mapping.
    pub const fn of(cap: &Cap) -> Option<Scattered> {
        if !is_scattered(cap) {
            return None;
        }
        let raw = cap.raw();
        Some(Scattered {
            table: raw.words[0] as usize,
            number: raw.small & 0xffff,
            count: (raw.small >> 16) as usize,
            frame: cap.object,
            size_bits: cap.size_bits,
        })
    }

    /// Decodes a capability, if it is to a scattered mapping whose deletion has not begun.
    #[inline(always)]
    pub const fn usable(cap: &Cap) -> Option<Scattered> {
        if cap.raw().words[1] == SCATTERED { Scattered::of(cap) } else { None }
    }

    /// Returns the table.
    pub(crate) fn table(&self) -> Option<Ref<PageTable>> {
        // SAFETY: a table that is deleted first removes the scattered mappings in it.
        unsafe { Ref::at(self.table) }
    }

    /// Returns the shadow entry of this scattered mapping's entries.
    pub const fn shadow(&self) -> u32 {
        ShadowEntry::Scattered(self.number).pack()
    }
}

/// Returns the capability to a scattered mapping without entries, of a frame in a table.
pub const fn cap(frame: &Cap, table: Ref<PageTable>, number: usize) -> Cap {
    let flags = frame.flags & (flag::DEVICE | flag::PRESERVED);
    let raw = Raw { small: extent(number, 0), words: [table.address() as u64, SCATTERED] };
    let mut cap = frame.with(raw);
    (cap.kind, cap.flags) = (Kind::Mapping, flags);
    cap
}

/// Counts one more entry in use.
#[inline(always)]
pub const fn count_one(cap: &mut Cap) {
    cap.set_small(cap.raw().small + extent(0, 1));
}

/// Returns whether the capability to a mapping is to a scattered mapping.
pub const fn is_scattered(cap: &Cap) -> bool {
    cap.raw().words[1] & SCATTERED != 0
}

/// Returns below which entry of its table a scattered mapping may have entries in use.
pub const fn end(cap: &Cap) -> usize {
    let [_, word] = cap.raw().words;
    if word & ENDING == 0 { TABLE_ENTRIES } else { (word >> REST_SHIFT) as usize }
}

/// Returns the flags that entries of a scattered mapping may have at most.
pub fn possible_flags(cap: &Cap) -> MapFlags {
    let mut flags = MapFlags::READ;
    flags.set(MapFlags::WRITE, cap.allows(Rights::WRITE));
    flags.set(MapFlags::EXECUTE, cap.allows(Rights::EXECUTE));
    flags.set(MapFlags::DEVICE, cap.flags & flag::DEVICE != 0);
    flags
}

/// Changes the number of entries in use.
pub(crate) fn count_entries<A: Arch>(k: &mut Kernel<A>, slot: SlotRef, mapping: &Scattered, added: isize) {
    let number = mapping.number as usize;
    set_extent(&mut k.slot(slot).cap, number, mapping.count.wrapping_add_signed(added));
    if let Some(table) = mapping.table() {
        let t = k.get(table);
        t.used = t.used.wrapping_add_signed(added as i16);
    }
}

/// Does one step of the end of a scattered mapping: clears those of its entries that are among the last of the table.
/// Returns whether none is left; then the caller empties the slot.
pub fn finalise<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) -> bool {
    let cap = k.slot(slot).cap;
    let Some(mapping) = Scattered::of(&cap) else { return true };
    let Some(table) = mapping.table() else { return true };
    let end = end(&cap);
    let first = end.saturating_sub(CLEAR_STEP);
    let mut cleared = 0;
    if mapping.count > 0 {
        let own = mapping.shadow();
        for index in first..end.min(TABLE_ENTRIES) {
            if k.get(table).shadows[index] == own {
                k.get(table).shadows[index] = 0;
                // SAFETY: the table lives and the index is below 512.
                unsafe { k.arch().write_entry(table.address(), index, 0) };
                cleared += 1;
            }
        }
    }
    if cleared > 0 {
        count_entries(k, slot, &mapping, -cleared);
        let level = u32::from(k.get(table).level);
        if let Some(location) = page_table::locate(k, table, first) {
            k.arch().invalidate(location.asid, location.address, level, end - first);
        }
    }
    let cap = &mut k.slot(slot).cap;
    cap.set_second_word(SCATTERED | ENDING | (first as u64) << REST_SHIFT);
    let is_done = mapping.count as isize == cleared;
    if is_done && let Some(place) = k.get(table).scattered.get_mut(mapping.number as usize - 1) {
        *place = 0;
    }
    is_done
}

/// Does one step of the end of a table's scattered mappings. Returns whether none is left. No entry can be set in a
/// scattered mapping whose turn has come, and those of the others are cleared when their turn comes.
pub fn finalise_all<A: Arch>(k: &mut Kernel<A>, table: Ref<PageTable>) -> bool {
    let slots = k.get(table).scattered;
    let Some(slot) = slots.into_iter().find_map(SlotRef::new) else { return true };
    if finalise(k, slot) {
        derivation::remove(k, slot);
    }
    false
}

/// Records in the table that a scattered mapping's capability was moved to `slot`.
pub fn moved<A: Arch>(k: &mut Kernel<A>, slot: SlotRef) {
    let Some(mapping) = Scattered::of(&k.slot(slot).cap) else { return };
    let Some(table) = mapping.table() else { return };
    if let Some(place) = k.get(table).scattered.get_mut(mapping.number as usize - 1) {
        *place = slot.number();
    }
}
