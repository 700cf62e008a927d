//! Operations on existing mappings: `MappingProtect`, `MappingQuery`.

use tench_abi::memory::{MapFlags, entry_bits};
use tench_abi::{Error, Kind, Rights};

use super::allowed_flags;
use super::maintenance::{maintain, needs_maintenance};
use crate::mapping::scattered::{self, Scattered};
use crate::mapping::{self, MEMORY_TYPE, Mapping, STEP};
use crate::object::Ref;
use crate::page_table::PageTable;
use crate::preemption_point::Passed;
use crate::slot::SlotRef;
use crate::syscall::{Outcome, argument, capability_slot};
use crate::thread::Thread;
use crate::{Arch, Kernel, page_table, preemption_point};

/// Performs `MappingProtect`.
///
/// If the mapping changes at a preemption point, the call ends with `Aborted`; if its thread is deleted there, each
/// entry has the old flags or the new ones.
pub fn protect<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let (mut slot, named) = decode_protect(k, thread)?;
    let flags = named.difference(MapFlags::COHERENT);
    let mut cap = k.slot(slot).cap;
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
    mapping::set_flags(&mut cap, flags, true);
    k.slot(slot).cap = cap;
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
        if k.slot(slot).cap != cap {
            return Err(Error::Aborted);
        }
    }
    mapping::set_flags(&mut k.slot(slot).cap, flags, false);
    Ok(Outcome::Done)
}

/// Returns the slot of the mapping, and the flags that the call names.
///
/// After a preemption point, the whole capability in the slot has to be unchanged. Equal entries and memory do not
/// imply that it is the same mapping: another can map the same memory as part of another frame, from whose beginning
/// its offset counts.
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
