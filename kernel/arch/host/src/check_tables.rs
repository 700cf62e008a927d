//! Checks that page tables, mappings and the translation cache agree.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use tench_abi::Kind;
use tench_abi::memory::entry_bits;
use tench_kernel::address_space::allowed_flags;
use tench_kernel::mapping::Mapping;
use tench_kernel::mapping::scattered::{self, Scattered};
use tench_kernel::object::Ref;
use tench_kernel::page_table::{PageTable, ShadowEntry};
use tench_kernel::page_table::{RESERVED, SHARED};
use tench_kernel::{Arch, Cap, Kernel, SlotRef};

use crate::check::{Checked, Inventory, ensure};
use crate::host::Host;
use crate::translation;

/// Checks every table and every mapping.
pub fn check_tables(k: &mut Kernel<Host>, inventory: &Inventory) -> Checked {
    let tables: Vec<Ref<PageTable>> = inventory.of(Kind::PageTable);
    let live: FxHashSet<usize> = tables.iter().map(|table| table.address()).collect();
    let (mut covered, mut scattered) = (FxHashMap::default(), FxHashSet::default());
    for (slot, cap) in inventory.slots.iter().filter(|(_, cap)| cap.kind == Kind::Mapping) {
        if let Some(mapping) = Scattered::of(cap) {
            check_scattered(k, inventory, &live, *slot, cap, &mapping).map_err(|wrong| format!("{slot:?}: {wrong}"))?;
            scattered.insert(*slot);
            continue;
        }
        check_mapping(k, inventory, &live, cap).map_err(|wrong| format!("{slot:?}: {wrong}"))?;
        let mapping = Mapping::of(cap);
        for index in mapping.first..mapping.first + mapping.count {
            let before = covered.insert((mapping.table, index), *slot);
            ensure!(before.is_none(), "{slot:?} and {before:?} cover entry {index} of {:x}", mapping.table);
        }
    }
    let boot = boot_tables(k, &tables);
    for table in &tables {
        check_table(k, *table, &live, &boot, &covered, &scattered).map_err(|wrong| format!("{table:?}: {wrong}"))?;
    }
    Ok(())
}

/// Returns the tables that the kernel made for the first process. No capability names them; they are found from their
/// parents.
fn boot_tables(k: &mut Kernel<Host>, tables: &[Ref<PageTable>]) -> FxHashSet<usize> {
    let mut found = FxHashSet::default();
    let mut pending: Vec<usize> = tables.iter().map(|table| table.address()).collect();
    let base = k.arch().base();
    while let Some(at) = pending.pop() {
        // SAFETY: a live table, or a child in its shadow entries.
        let Some(table) = (unsafe { Ref::<PageTable>::at(at) }) else { continue };
        for (_, _, shadow) in in_use(k, table) {
            if let ShadowEntry::Table(number) = ShadowEntry::unpack(shadow) {
                let child = base + ((number as usize) << 6);
                if found.insert(child) {
                    pending.push(child);
                }
            }
        }
    }
    found
}

/// Returns the index, entry and shadow entry of each entry of a table that is in use.
fn in_use(k: &mut Kernel<Host>, table: Ref<PageTable>) -> Vec<(usize, u64, u32)> {
    /// Number of entries that are tested together: most are empty.
    const RUN: usize = 32;
    let table = k.get(table);
    let mut found = Vec::new();
    for (run, (entries, shadows)) in table.entries.chunks(RUN).zip(table.shadows.chunks(RUN)).enumerate() {
        let any = entries.iter().fold(0, |sum, entry| sum | entry)
            | u64::from(shadows.iter().fold(0, |sum, shadow| sum | shadow));
        if any != 0 {
            let both = entries.iter().zip(shadows).enumerate();
            let both = both.map(|(i, (entry, shadow))| (run * RUN + i, *entry, *shadow));
            found.extend(both.filter(|(_, entry, shadow)| (*entry, *shadow) != (0, 0)));
        }
    }
    found
}

/// Checks that a mapping's table and frame are alive, and that its entries map what it says.
fn check_mapping(k: &mut Kernel<Host>, inventory: &Inventory, live: &FxHashSet<usize>, cap: &Cap) -> Checked {
    let mapping = Mapping::of(cap);
    ensure!(live.contains(&mapping.table), "its table {:x} does not live", mapping.table);
    let frame = inventory.objects.get(&cap.object).filter(|frame| frame.kind == Kind::Frame);
    let Some(frame) = frame else { return Err(format!("its frame {:x} does not live", cap.object)) };
    ensure!(mapping.count > 0 && mapping.first + mapping.count <= 512, "{mapping:x?}");
    // SAFETY: `live` contains the table.
    let table = unsafe { Ref::<PageTable>::at(mapping.table) }.ok_or("no table")?;
    let level = u32::from(k.get(table).level);
    let size = 1usize << entry_bits(level);
    let end = mapping.memory + mapping.count * size;
    ensure!(mapping.memory >= frame.object && end <= frame.object + frame.size(), "beyond its frame: {mapping:x?}");
    let allowed = allowed_flags(mapping.flags.bits(), cap);
    ensure!(allowed == Ok(mapping.flags), "its flags {:?} are not allowed: {allowed:?}", mapping.flags);
    for i in 0..mapping.count {
        let entry = k.get(table).entries[mapping.first + i];
        let physical = k.physical(mapping.memory + i * size);
        let expected = translation::page_entry(physical, mapping.flags);
        let same = entry == expected || mapping.protecting && entry & !0x7f == expected & !0x7f;
        ensure!(same, "entry {} is {entry:x}, not {expected:x}", mapping.first + i);
    }
    Ok(())
}

/// Checks that a scattered mapping's table and frame are alive, that the table names it, and that its entries map pages
/// of the frame with flags that it allows.
fn check_scattered(
    k: &mut Kernel<Host>,
    inventory: &Inventory,
    live: &FxHashSet<usize>,
    slot: SlotRef,
    cap: &Cap,
    mapping: &Scattered,
) -> Checked {
    ensure!(live.contains(&mapping.table), "its table {:x} does not live", mapping.table);
    let frame = inventory.objects.get(&cap.object).filter(|frame| frame.kind == Kind::Frame);
    let Some(frame) = frame else { return Err(format!("its frame {:x} does not live", cap.object)) };
    // SAFETY: `live` contains the table.
    let table = unsafe { Ref::<PageTable>::at(mapping.table) }.ok_or("no table")?;
    let place = k.get(table).scattered.get(mapping.number as usize - 1).copied();
    ensure!(place == Some(slot.number()), "its table names {place:?} as scattered mapping {}", mapping.number);
    let size = 1 << entry_bits(u32::from(k.get(table).level));
    let (start, end) = (k.physical(frame.object), k.physical(frame.object) + frame.size() as u64);
    let mut count = 0;
    for (index, entry, word) in in_use(k, table) {
        if ShadowEntry::unpack(word) != ShadowEntry::Scattered(mapping.number) {
            continue;
        }
        count += 1;
        ensure!(index < scattered::end(cap), "entry {index} is beyond what is left of it");
        let (physical, flags) = translation::page(entry);
        ensure!(physical % size == 0 && physical >= start && physical + size <= end, "entry {index} is {entry:x}");
        let allowed = allowed_flags(flags.bits(), cap);
        ensure!(allowed == Ok(flags), "the flags {flags:?} of entry {index} are not allowed: {allowed:?}");
    }
    ensure!(mapping.count == count, "{count} entries are in use, not {}", mapping.count);
    Ok(())
}

/// Checks that a table's shadow entries, hardware entries and links agree.
fn check_table(
    k: &mut Kernel<Host>,
    table: Ref<PageTable>,
    live: &FxHashSet<usize>,
    boot: &FxHashSet<usize>,
    covered: &FxHashMap<(usize, usize), SlotRef>,
    scattered: &FxHashSet<SlotRef>,
) -> Checked {
    let base = k.arch().base();
    let level = k.get(table).level;
    let mut used = 0;
    // An empty shadow entry says that its entry is free, and then the entry is empty.
    ensure!(ShadowEntry::unpack(0) == ShadowEntry::Free, "an empty shadow entry is {:?}", ShadowEntry::unpack(0));
    for (index, entry, word) in in_use(k, table) {
        let shadow = ShadowEntry::unpack(word);
        used += u16::from(shadow != ShadowEntry::Free);
        ensure!(
            (entry == 0) == (shadow == ShadowEntry::Free),
            "entry {index} is {entry:x}, its shadow entry {shadow:?}"
        );
        // A free entry is empty, and each entry that a mapping covers was found not to be, so it need not be looked up.
        let cover = if shadow == ShadowEntry::Free { None } else { covered.get(&(table.address(), index)).copied() };
        let named = if let ShadowEntry::Mapping(slot) = shadow { Some(slot) } else { None };
        ensure!(cover.is_some() == named.is_some(), "entry {index} names {named:?}, {cover:?} covers it");
        // Only a mapping's first entry moves with its capability.
        let first = cover.is_some_and(|slot| Mapping::of(&k.slot(slot).cap).first == index);
        ensure!(!first || cover == named, "entry {index} names {named:?}, but {cover:?} begins there");
        if let ShadowEntry::Scattered(number) = shadow {
            let slot = SlotRef::new(k.get(table).scattered[number as usize - 1]);
            ensure!(slot.is_some(), "entry {index} is in scattered mapping {number}, which the table does not have");
        }
        if let ShadowEntry::Table(number) = shadow {
            let child = base + ((number as usize) << 6);
            // SAFETY: a table in a shadow entry is alive (`live` and `boot` check that).
            let child = unsafe { Ref::<PageTable>::at(child) }.ok_or("no table")?;
            let c = k.get(child);
            let linked = (c.parent, usize::from(c.index), c.level) == (table.address(), index, level + 1);
            ensure!(linked, "the table in entry {index} is installed in {:x}, {}", c.parent, c.index);
            ensure!(entry == translation::table_entry(k.physical(child.address())), "entry {index} is {entry:x}");
        }
    }
    for (number, slot) in (1..).zip(k.get(table).scattered) {
        let mapping =
            SlotRef::new(slot).map(|slot| Scattered::of(&k.slot(slot).cap).filter(|_| scattered.contains(&slot)));
        let is_here = |mapping: Scattered| (mapping.table, mapping.number) == (table.address(), number);
        ensure!(
            mapping.is_none_or(|mapping| mapping.is_some_and(is_here)),
            "scattered mapping {number} is {mapping:?}"
        );
    }
    let (parent, index) = (k.get(table).parent, usize::from(k.get(table).index));
    ensure!(k.get(table).used == used, "used is {}, not {used}", k.get(table).used);
    if parent != 0 {
        ensure!(live.contains(&parent) || boot.contains(&parent), "its parent {parent:x} does not live");
        // SAFETY: `live` or `boot` contains the parent.
        let parent = unsafe { Ref::<PageTable>::at(parent) }.ok_or("no table")?;
        let number = ((table.address() - base) >> 6) as u32;
        let shadow = ShadowEntry::unpack(k.get(parent).shadows[index]);
        ensure!(shadow == ShadowEntry::Table(number), "its parent's shadow entry is {shadow:?}");
    }
    Ok(())
}

/// Checks that each root has an identifier of its own, or the shared one if no other was free, and that no other
/// identifier is taken.
pub fn check_identifiers(k: &mut Kernel<Host>, inventory: &Inventory) -> Checked {
    let tables: Vec<Ref<PageTable>> = inventory.of(Kind::PageTable);
    let mut taken = BTreeMap::new();
    for table in &tables {
        let (level, asid) = (k.get(*table).level, k.get(*table).asid);
        ensure!((level == 0) == (asid != 0), "{table:?} of level {level} has identifier {asid}");
        if asid != 0 && asid != SHARED {
            let before = taken.insert(asid, *table);
            ensure!(before.is_none(), "{table:?} and {before:?} share identifier {asid}");
        }
    }
    let s = k.state();
    ensure!(s.asids_used == taken.len(), "{} identifiers are in use, not {}", taken.len(), s.asids_used);
    for (word, used) in s.asids.iter().enumerate() {
        let full = s.asids_full[word / 64] >> (word % 64) & 1 != 0;
        ensure!(full == (*used == u64::MAX), "identifiers {word} × 64: full is {full}");
        let mut rest = *used;
        while rest != 0 {
            let asid = (word * 64) as u16 + rest.trailing_zeros() as u16;
            let is_reserved = asid < 64 && RESERVED >> asid & 1 != 0;
            ensure!(is_reserved != taken.contains_key(&asid), "identifier {asid} is taken by nobody");
            rest &= rest - 1;
        }
    }
    Ok(())
}

/// Checks that no cached translation is stale.
pub fn check_cache(k: &mut Kernel<Host>, inventory: &Inventory) -> Checked {
    let tables: Vec<Ref<PageTable>> = inventory.of(Kind::PageTable);
    let mut roots = FxHashMap::default();
    for table in &tables {
        let (level, asid) = (k.get(*table).level, k.get(*table).asid);
        if level == 0 && (asid != SHARED || k.state().shared_space == table.address()) {
            roots.insert(asid, k.physical(table.address()));
        }
    }
    let host = k.arch();
    match host.cache.stale(&host.memory, |asid| roots.get(&asid).copied()) {
        None => Ok(()),
        Some(stale) => Err(format!("a translation was not invalidated: {stale}")),
    }
}
