//! Fast paths of mapping one page of 4 KiB in a free entry, to be read or written: as a mapping, or in a scattered one.

use tench_abi::memory::{MapFlags, PAGE_SIZE, TABLE_ENTRIES};
use tench_abi::{Kind, Rights};

use super::{Fast, INVALID, slot};
use crate::cspace;
use crate::mapping::scattered::{self, Scattered};
use crate::mapping::{self};
use crate::object::Ref;
use crate::page_table::{PageTable, ShadowEntry};
use crate::slot::{Cap, Slot, flag};
use crate::syscall::argument;
use crate::thread::Thread;
use crate::{Arch, Kernel, derivation};

const WRITABLE: MapFlags = MapFlags::READ.union(MapFlags::WRITE);

// A flag and the right that it needs are the same bit.
const _: () = assert!(MapFlags::READ.bits() == Rights::READ.bits() as u64);
const _: () = assert!(MapFlags::WRITE.bits() == Rights::WRITE.bits() as u64);

/// Returns whether a page at `offset` of a frame of `1 << size_bits` bytes can be mapped in entry `index` with these
/// flags, of which the capability has `rights`.
#[inline(always)]
fn is_plain(index: u64, offset: u64, flags: u64, rights: u8, size_bits: u8) -> bool {
    let is_allowed = flags | MapFlags::WRITE.bits() == WRITABLE.bits() && flags & !u64::from(rights) == 0;
    let is_inside = offset.is_multiple_of(PAGE_SIZE as u64) && offset >> size_bits == 0;
    is_allowed && is_inside && index < TABLE_ENTRIES as u64
}

/// Returns whether an entry of a table of pages is free.
#[inline(always)]
fn is_free<A: Arch>(k: &mut Kernel<A>, table: Ref<PageTable>, index: u64) -> bool {
    let t = k.get(table);
    t.level == 3 && t.shadows.get(index as usize) == Some(&0)
}

/// Fills a free entry of a table of pages.
#[inline(always)]
fn fill<A: Arch>(k: &mut Kernel<A>, (table, index): (Ref<PageTable>, u64), memory: usize, flags: u64, shadow: u32) {
    let physical = k.physical(memory);
    let entry = k.arch().page_entry(physical, 3, WRITABLE);
    let entry = k.arch().restrict_entry(entry, MapFlags::from_bits_truncate(flags));
    mapping::write_entry(k, table, index as usize, entry, shadow);
    k.get(table).used += 1;
    k.arch().publish_entries();
}

/// Fast path of `MappingSet`.
#[inline(always)]
pub fn set_entry<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, address: u64, index: u64) -> Fast {
    let Some(slot) = slot(k, thread, address) else { return INVALID };
    let [count, offset, flags] = {
        let x = &k.get(thread).registers.x;
        [x[2], x[3], x[4]]
    };
    let cap = &k.get(slot).cap;
    let rights = cap.rights;
    if cap.kind != Kind::Mapping || cap.flags & (flag::ZOMBIE | flag::DEVICE) != 0 {
        return Fast::Slow;
    }
    let Some(mapping) = Scattered::usable(cap) else { return Fast::Slow };
    if count != 1 || !is_plain(index, offset, flags, rights, mapping.size_bits) {
        return Fast::Slow;
    }
    let Some(table) = mapping.table() else { return Fast::Slow };
    if !is_free(k, table, index) {
        return Fast::Slow;
    }
    // ── Point of no return ──
    fill(k, (table, index), mapping.frame + offset as usize, flags, mapping.shadow());
    scattered::count_one(&mut k.get(slot).cap);
    Fast::DONE
}

/// Returns the table of the capability in a slot, if it may be changed.
#[inline(always)]
fn table<A: Arch>(k: &mut Kernel<A>, slot: Ref<Slot>) -> Option<Ref<PageTable>> {
    let cap = &k.get(slot).cap;
    if cap.flags & flag::ZOMBIE != 0 || !cap.allows(Rights::WRITE) {
        return None;
    }
    cap.named()
}

/// Fast path of `FrameMap`.
#[inline(always)]
pub fn map<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, address: u64, table_address: u64) -> Fast {
    let Some(frame) = cspace::own_slot(k, thread, address) else { return Fast::Slow };
    let Some(table_slot) = slot(k, thread, table_address) else { return Fast::Slow };
    let Some(table) = table(k, table_slot) else { return Fast::Slow };
    let [index, count, offset, flags] = {
        let x = &k.get(thread).registers.x;
        [x[2], x[3], x[4], x[5]]
    };
    let Cap { kind, rights, size_bits, flags: about, object, .. } = k.slot(frame).cap;
    if kind != Kind::Frame || about & (flag::ZOMBIE | flag::DEVICE) != 0 || count != 1 {
        return Fast::Slow;
    }
    if !is_plain(index, offset, flags, rights, size_bits) || !is_free(k, table, index) {
        return Fast::Slow;
    }
    let place = argument(k, thread, 6);
    let Some(destination) = cspace::own_slot(k, thread, place) else { return Fast::Slow };
    if k.slot(destination).cap.kind != Kind::Null || place == 0 {
        return Fast::Slow;
    }
    // ── Point of no return ──
    let about = (offset, MapFlags::from_bits_retain(flags));
    let cap = mapping::cap(&k.slot(frame).cap, table, (index as usize, 1), about);
    derivation::insert_mapping(k, frame, destination, &cap);
    fill(k, (table, index), object + offset as usize, flags, ShadowEntry::Mapping(destination).pack());
    Fast::DONE
}
