//! Operations on page tables, `PageTableMap` and `PageTableUnmap`, and a table's end.

use tench_abi::memory::TABLE_ENTRIES;
use tench_abi::{Error, Rights};

use crate::mapping::scattered;
use crate::object::Ref;
use crate::page_table::{PageTable, ShadowEntry, detach, install, user_entries};
use crate::slot::SLOT_SHIFT;
use crate::syscall::{Outcome, argument, capability, capability_at};
use crate::thread::Thread;
use crate::{Arch, Kernel, account, derivation, mapping, page_table};

/// Performs `PageTableMap`.
pub fn map<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let table = capability::<A, PageTable>(k, thread, Rights::WRITE)?;
    let (address, index) = (argument(k, thread, 1), argument(k, thread, 2));
    let upper: Ref<PageTable> = capability_at(k, address, Rights::WRITE)?;
    let (level, upper_level) = (k.get(table).level, k.get(upper).level);
    if upper_level + 1 != level || index >= user_entries(u32::from(upper_level)) {
        return Err(Error::InvalidArgument);
    }
    let index = index as usize;
    if k.get(table).parent != 0 || k.get(upper).shadows[index] != 0 {
        return Err(Error::AlreadyMapped);
    }
    // ── Point of no return ──
    install(k, table, upper, index);
    Ok(Outcome::Done)
}

/// Performs `PageTableUnmap`.
pub fn unmap<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let table = capability::<A, PageTable>(k, thread, Rights::WRITE)?;
    if k.get(table).parent == 0 {
        return Err(Error::NotMapped);
    }
    detach(k, table);
    Ok(Outcome::Done)
}

/// Work of one step of [`finalise`], where a free entry counts 1.
const STEP: usize = 128;

/// Additional cost of a child table.
const TABLE_COST: usize = 8;

/// Additional cost of emptying a mapping's slot.
const MAPPING_COST: usize = 64;

/// Does one step of the end of a table that no capability names any more: uninstalls it from its parent, deletes its
/// mappings with their capabilities, uninstalls its children, and frees a root's identifier. Returns whether that was
/// the last step. No thread uses a root table then, since each thread holds a capability to its own.
pub fn finalise<A: Arch>(k: &mut Kernel<A>, table: Ref<PageTable>) -> bool {
    detach(k, table);
    if !account::close(k, table) {
        return false;
    }
    if !scattered::finalise_all(k, table) {
        return false;
    }
    if k.get(table).level == 0 && k.get(table).cleared == 0 {
        let asid = k.get(table).asid;
        k.arch().invalidate_space(asid);
    }
    let mut done = 0;
    while done < STEP && k.get(table).used > 0 {
        let t = k.get(table);
        let index = usize::from(t.cleared);
        let limit = TABLE_ENTRIES.min(index + STEP - done);
        let free =
            t.shadows.get(index..limit).map_or(0, |shadows| shadows.iter().take_while(|shadow| **shadow == 0).count());
        if free > 0 {
            t.cleared += free as u16;
            done += free;
            continue;
        }
        let Some(word) = t.shadows.get(index) else { break };
        let shadow = ShadowEntry::unpack(*word);
        done += match shadow {
            ShadowEntry::Mapping(slot) => {
                let count = mapping::Mapping::of(&k.slot(slot).cap).count;
                if !mapping::finalise(k, slot) {
                    return false;
                }
                derivation::remove(k, slot);
                count + MAPPING_COST
            }
            ShadowEntry::Free => break,
            ShadowEntry::Boot | ShadowEntry::Table(_) | ShadowEntry::Scattered(_) => {
                forget(k, table, index, shadow);
                TABLE_COST
            }
        };
        if !matches!(shadow, ShadowEntry::Mapping(_)) {
            k.get(table).cleared += 1;
        }
    }
    let t = k.get(table);
    if t.used > 0 && usize::from(t.cleared) < TABLE_ENTRIES {
        return false;
    }
    let (level, asid) = (t.level, t.asid);
    if level == 0 {
        page_table::return_identifier(k, table.address(), asid);
    }
    true
}

/// Clears an entry with a child table, which is then installed nowhere, or with a page of the first process.
fn forget<A: Arch>(k: &mut Kernel<A>, table: Ref<PageTable>, index: usize, shadow: ShadowEntry) {
    let t = k.get(table);
    t.shadows[index] = 0;
    t.used -= 1;
    // SAFETY: `table` is live until its last step and `index` is below 512, since there is a shadow entry for it.
    unsafe { k.arch().write_entry(table.address(), index, 0) };
    if let ShadowEntry::Table(number) = shadow {
        let address = k.arch().locate(number, SLOT_SHIFT);
        // SAFETY: a table that is deleted first leaves its parent's shadow entries, so a child found there is alive.
        if let Some(child) = unsafe { Ref::<PageTable>::at(address) } {
            let c = k.get(child);
            c.parent = 0;
            c.index = 0;
        }
    }
}
