//! Page tables: the hardware's entries, and the kernel's shadow entry for each.
//!
//! ```text
//!   level 0 (512 GiB an entry) ─► 1 (1 GiB) ─► 2 (2 MiB) ─► 3 (4 KiB)
//!                                 pages        pages        pages
//! ```
//! A table is installed in at most one parent, so every table has at most one virtual address, found by walking up. Of
//! capabilities, tables know only the slots of the mappings in them ([`mapping`](crate::mapping)), which are deleted
//! with the table.
//!
//! Each root has an address-space identifier (ASID) for as long as it lives: one of its own, or, if all are taken, one
//! that it shares. So no program can keep others from making address spaces. The TLB holds only one address space at a
//! time under the shared identifier. The code that switches threads need not know: the translation-table base register
//! of a thread in such an address space is that of the empty one, so its first instruction fetch fails, and then
//! [`load_shared`] loads its own.

use tench_abi::Kind;
use tench_abi::memory::{MAX_SCATTERED, TABLE_ENTRIES, USER_END, entry_bits};

use crate::account::Account;
use crate::object::Ref;
use crate::slot::Named;
use crate::slot::{SLOT_SHIFT, SlotRef, flag};
use crate::thread::{Binding, Thread};
use crate::{Arch, Kernel};

/// A page table: the hardware's entries, and the kernel's shadow entry for each of them.
///
/// `shadows[i]` is 0 (entry free), the slot of the [`Mapping`](tench_abi::Kind::Mapping) that covers entry `i` (its
/// number shifted left by one), or the slot-sized number of the child table shifted left by one, plus 1, or likewise
/// the number of the scattered mapping in which it is set.
#[repr(C, align(8192))]
pub struct PageTable {
    /// The hardware's entries.
    pub entries: [u64; 512],
    /// The shadow entries, encoded as described for the type.
    pub shadows: [u32; 512],
    /// Level, 0 (root) to 3.
    pub level: u8,
    /// Address-space identifier, never 0 while the table lives. Root tables only.
    pub asid: u16,
    /// Address of the parent table in which this table is installed; 0 if it is not installed.
    pub parent: usize,
    /// Index of the parent's entry.
    pub index: u16,
    /// Entries in use.
    pub used: u16,
    /// Progress of the table's deletion: entries below this index are free.
    pub cleared: u16,
    /// Number of threads in the address space. Root tables only.
    pub residents: u32,
    /// By its number minus 1, the number of the slot of each scattered mapping in the table; 0 for none.
    pub scattered: [u32; MAX_SCATTERED],
    /// Account of the process whose address space this is. Root tables only.
    pub account: Account,
}

const _: () = assert!(size_of::<PageTable>() == 1 << tench_abi::object::PAGE_TABLE_BITS);

// SAFETY: retype makes a page table together with its first capability. It lives until its last capability is deleted.
unsafe impl Named for PageTable {
    const KIND: Kind = Kind::PageTable;
}

/// A decoded shadow entry, from [`PageTable::shadows`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShadowEntry {
    /// The entry is free.
    Free,
    /// A page that the kernel mapped for the first process. No capability names it, and it stays as long as the table.
    /// Its memory never becomes a kernel object.
    Boot,
    /// Covered by a mapping. Its capability lies in this slot if this is the mapping's first entry; otherwise it lay
    /// there once.
    Mapping(SlotRef),
    /// Set in the scattered mapping with this number in the table, 1 to [`MAX_SCATTERED`].
    Scattered(u32),
    /// A child table, whose address has this [number](crate::Arch::number) in units of a slot's size.
    Table(u32),
}

/// Returns the number in a packed word. Packing drops its highest bit, which equals the one below.
const fn number_in(word: u32) -> u32 {
    (word as i32 >> 1) as u32
}

impl ShadowEntry {
    /// Decodes a packed shadow entry.
    pub const fn unpack(word: u32) -> ShadowEntry {
        match word {
            0 => ShadowEntry::Free,
            1 => ShadowEntry::Boot,
            // A table has more than one slot's alignment, so no table has such a number.
            w if w & 1 != 0 && w >> 1 <= MAX_SCATTERED as u32 => ShadowEntry::Scattered(w >> 1),
            w if w & 1 != 0 => ShadowEntry::Table(number_in(w)),
            w => match SlotRef::new(number_in(w)) {
                Some(slot) => ShadowEntry::Mapping(slot),
                None => ShadowEntry::Free,
            },
        }
    }

    /// Encodes a shadow entry.
    pub const fn pack(self) -> u32 {
        match self {
            ShadowEntry::Free => 0,
            ShadowEntry::Boot => 1,
            ShadowEntry::Mapping(slot) => slot.number() << 1,
            ShadowEntry::Table(number) | ShadowEntry::Scattered(number) => number << 1 | 1,
        }
    }
}

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

/// Returns the translation-table base register for threads in the address space of a root table.
pub fn space_register<A: Arch>(k: &mut Kernel<A>, root: Ref<PageTable>) -> u64 {
    let physical = k.physical(root.address());
    match k.get(root).asid {
        SHARED => k.arch().empty_space_register(),
        asid => k.arch().space_register(physical, asid),
    }
}

/// Loads the running thread's address space if that has the shared identifier and is not loaded. Returns whether it did
/// so.
#[cold]
pub fn load_shared<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> bool {
    let empty = k.arch().empty_space_register();
    let cap = &k.get(thread).bindings[Binding::AddressSpace as usize].cap;
    let Some(root) = cap.named().filter(|_| cap.flags & flag::EMBEDDED != 0) else { return false };
    if k.arch().space() != empty || k.get(thread).space_register != empty {
        return false;
    }
    let register = share(k, root);
    k.arch().load_space(register);
    true
}

/// Gives the shared identifier's TLB entries to the address space of a root table. Returns the translation-table base
/// register for it.
pub fn share<A: Arch>(k: &mut Kernel<A>, root: Ref<PageTable>) -> u64 {
    if k.state().shared_space != root.address() {
        k.arch().invalidate_space(SHARED);
        k.state().shared_space = root.address();
    }
    let physical = k.physical(root.address());
    k.arch().space_register(physical, SHARED)
}

/// Counts a thread as resident in the address space of a root table. Returns the translation-table base register.
pub fn enter<A: Arch>(k: &mut Kernel<A>, root: Ref<PageTable>) -> u64 {
    k.get(root).residents += 1;
    space_register(k, root)
}

/// Stops counting a thread as resident in the address space of a root table.
pub fn leave<A: Arch>(k: &mut Kernel<A>, root: Ref<PageTable>) {
    k.get(root).residents -= 1;
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
pub(crate) fn return_identifier<A: Arch>(k: &mut Kernel<A>, root: usize, asid: u16) {
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

/// Uninstalls a table from its parent, if it has one.
///
/// The TLB can hold everything below the table, and the walk caches the tables themselves, so the whole address space
/// is invalidated.
pub(crate) fn detach<A: Arch>(k: &mut Kernel<A>, table: Ref<PageTable>) {
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
