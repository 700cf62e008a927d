//! Page tables: the hardware's entries, and the kernel's shadow entry for each.
//!
//! ```text
//!   level 0 (512 GiB an entry) ─► 1 (1 GiB) ─► 2 (2 MiB) ─► 3 (4 KiB)
//!                                 pages        pages        pages
//! ```
//! A table is installed in at most one parent, so every table has at most one virtual address, found by walking up. Of
//! capabilities, tables know only the slots of the mappings in them ([`mapping`]), which are deleted with the table.
//!
//! Each root has an address-space identifier (ASID) for as long as it lives: one of its own, or, if all are taken, one
//! that it shares. So no program can keep others from making address spaces. The TLB holds only one address space at a
//! time under the shared identifier. The code that switches threads need not know: the translation-table base register
//! of a thread in such an address space is that of the empty one, so its first instruction fetch fails, and then
//! [`load_shared`] loads its own.

use tench_abi::memory::{TABLE_ENTRIES, USER_END, entry_bits};
use tench_abi::{Error, Kind, Rights};

use crate::entry::{Outcome, argument, capability, capability_at};
use crate::object::{PageTable, Ref, ShadowEntry};
use crate::slot::{SLOT_SHIFT, flag};
use crate::thread::{Binding, Thread};
use crate::{Arch, Kernel, account, derivation, mapping, scattered};

/// Identifier shared by the roots for which no other was free.
pub const SHARED: u16 = 1;
/// Bitmap of the identifiers that no root has for its own: that of the empty address space, and the shared one.
pub const RESERVED: u64 = 1 | 1 << SHARED;

/// The position of an entry in an address space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Location {
    /// Identifier of the address space.
    pub asid: u16,
    /// First virtual address that the entry maps.
    pub address: u64,
}

/// Returns the number of entries of a table of `level` that user programs may fill.
pub const fn user_entries(level: u32) -> u64 {
    if level == 0 { USER_END >> entry_bits(0) } else { TABLE_ENTRIES as u64 }
}

/// Returns the table that a program named, if the capability has these rights.
pub fn named<A: Arch>(k: &mut Kernel<A>, address: u64, rights: Rights) -> Result<Ref<PageTable>, Error> {
    capability_at(k, address, Kind::PageTable, rights)
}

/// Returns the table in which `table` is installed.
#[inline(always)]
fn parent<A: Arch>(k: &mut Kernel<A>, table: Ref<PageTable>) -> Option<Ref<PageTable>> {
    let address = k.get(table).parent;
    // SAFETY: a table that is deleted clears the `parent` of every table that is installed in it.
    unsafe { Ref::at(address) }
}

/// Returns the position of an entry of a table; `None` if the table is in no address space.
#[inline(always)]
pub fn locate<A: Arch>(k: &mut Kernel<A>, table: Ref<PageTable>, index: usize) -> Option<Location> {
    let mut at = table;
    let mut bits = entry_bits(u32::from(k.get(at).level));
    let mut address = (index as u64) << bits;
    while let Some(parent) = parent(k, at) {
        bits += TABLE_ENTRIES.trailing_zeros();
        address |= u64::from(k.get(at).index) << bits;
        at = parent;
    }
    let root = k.get(at);
    if root.level == 0 { Some(Location { asid: root.asid, address }) } else { None }
}

/// Returns the first virtual address that an entry of a table maps; `None` if the table is in no address space.
pub fn virtual_address<A: Arch>(k: &mut Kernel<A>, table: Ref<PageTable>, index: usize) -> Option<u64> {
    locate(k, table, index).map(|location| location.address)
}

/// Returns the translation-table base register for threads in the address space of the root table at `object`.
pub fn space_register<A: Arch>(k: &mut Kernel<A>, object: usize) -> u64 {
    let physical = k.physical(object);
    // SAFETY: the caller has it from a live capability to a table.
    match unsafe { Ref::<PageTable>::at(object) } {
        Some(root) if k.get(root).asid != SHARED => {
            let asid = k.get(root).asid;
            k.arch().space_register(physical, asid)
        }
        _ => k.arch().empty_space_register(),
    }
}

/// Loads the running thread's address space if that has the shared identifier and is not loaded. Returns whether it did
/// so.
#[cold]
pub fn load_shared<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> bool {
    let empty = k.arch().empty_space_register();
    let cap = &k.get(thread).bindings[Binding::AddressSpace as usize].cap;
    let (object, is_bound) = (cap.object, cap.flags & flag::EMBEDDED != 0);
    if k.arch().space() != empty || k.get(thread).space_register != empty || !is_bound {
        return false;
    }
    let register = share(k, object);
    k.arch().load_space(register);
    true
}

/// Gives the shared identifier's TLB entries to the address space of the root table at `object`. Returns the
/// translation-table base register for it.
pub fn share<A: Arch>(k: &mut Kernel<A>, object: usize) -> u64 {
    if k.state().shared_space != object {
        k.arch().invalidate_space(SHARED);
        k.state().shared_space = object;
    }
    let physical = k.physical(object);
    k.arch().space_register(physical, SHARED)
}

/// Counts a thread as resident in the address space of the root table at `object`. Returns the translation-table base
/// register for it.
pub fn enter<A: Arch>(k: &mut Kernel<A>, object: usize) -> u64 {
    // SAFETY: the caller has it from a live capability to a table.
    if let Some(root) = unsafe { Ref::<PageTable>::at(object) } {
        k.get(root).residents += 1;
    }
    space_register(k, object)
}

/// Stops counting a thread as resident in the address space of the root table at `object`.
pub fn leave<A: Arch>(k: &mut Kernel<A>, object: usize) {
    // SAFETY: the caller has it from the thread's capability to the table, which still exists.
    if let Some(root) = unsafe { Ref::<PageTable>::at(object) } {
        k.get(root).residents -= 1;
    }
}

/// Makes a page table of zeroed memory at `object`. A root table takes an identifier, or shares one.
pub fn initialise<A: Arch>(k: &mut Kernel<A>, object: usize, level: u64) {
    let asid = if level == 0 { take_identifier(k).unwrap_or(SHARED) } else { 0 };
    // SAFETY: the caller has just made this memory a table; zero is valid for every field.
    if let Some(table) = unsafe { Ref::<PageTable>::at(object) } {
        let t = k.get(table);
        t.level = level as u8;
        t.asid = asid;
    }
}

/// Takes the lowest free identifier, if there is one. Never takes a reserved one.
fn take_identifier<A: Arch>(k: &mut Kernel<A>) -> Option<u16> {
    let s = k.state();
    let (group, full) = s.asids_full.iter().enumerate().find(|(_, full)| **full != u64::MAX)?;
    let word = group * 64 + full.trailing_ones() as usize;
    let used = s.asids.get_mut(word)?;
    if word == 0 {
        *used |= RESERVED;
    }
    let bit = used.trailing_ones();
    if word * 64 + bit as usize >= A::ASIDS {
        return None;
    }
    *used |= 1 << bit;
    if *used == u64::MAX {
        s.asids_full[group] |= 1 << (word % 64);
    }
    s.asids_used += 1;
    Some((word * 64) as u16 + bit as u16)
}

/// Frees a root's identifier, after its TLB entries have been invalidated.
fn return_identifier<A: Arch>(k: &mut Kernel<A>, root: usize, asid: u16) {
    let word = usize::from(asid) / 64;
    let s = k.state();
    if asid == SHARED {
        if s.shared_space == root {
            s.shared_space = 0;
        }
        return;
    }
    s.asids[word] &= !(1 << (asid % 64));
    s.asids_full[word / 64] &= !(1 << (word % 64));
    s.asids_used -= 1;
}

/// Performs `PageTableMap`.
pub fn map<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let table = capability::<A, PageTable>(k, thread, Kind::PageTable, Rights::WRITE)?;
    let (address, index) = (argument(k, thread, 1), argument(k, thread, 2));
    let upper = named(k, address, Rights::WRITE)?;
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

/// Installs a table in a free entry of a table one level up.
pub fn install<A: Arch>(k: &mut Kernel<A>, table: Ref<PageTable>, upper: Ref<PageTable>, index: usize) {
    let physical = k.physical(table.address());
    let number = k.arch().number(table.address(), SLOT_SHIFT);
    let t = k.get(table);
    t.parent = upper.address();
    t.index = index as u16;
    let u = k.get(upper);
    u.shadows[index] = ShadowEntry::Table(number).pack();
    u.used += 1;
    let arch = k.arch();
    let entry = arch.table_entry(physical);
    // SAFETY: `upper` is a live table and the index is below 512.
    unsafe { arch.write_entry(upper.address(), index, entry) };
    arch.publish_entries();
}

/// Performs `PageTableUnmap`.
pub fn unmap<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let table = capability::<A, PageTable>(k, thread, Kind::PageTable, Rights::WRITE)?;
    if k.get(table).parent == 0 {
        return Err(Error::NotMapped);
    }
    detach(k, table);
    Ok(Outcome::Done)
}

/// Uninstalls a table from its parent, if it has one.
///
/// The TLB can hold everything below the table, and the walk caches the tables themselves, so the whole address space
/// is invalidated.
fn detach<A: Arch>(k: &mut Kernel<A>, table: Ref<PageTable>) {
    let Some(upper) = parent(k, table) else { return };
    let space = locate(k, table, 0);
    let t = k.get(table);
    let index = usize::from(core::mem::take(&mut t.index));
    t.parent = 0;
    let u = k.get(upper);
    u.shadows[index] = 0;
    u.used -= 1;
    // SAFETY: `upper` is a live table and `index` was below 512 when it was written.
    unsafe { k.arch().write_entry(upper.address(), index, 0) };
    if let Some(space) = space {
        k.arch().invalidate_space(space.asid);
    }
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
        return_identifier(k, table.address(), asid);
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
