//! Workloads of gigabytes of memory: zeroed, mapped, protected, moved, and tables deleted with all their mappings.

use tench::abi::memory::{MAX_SET, PAGE_BITS, TABLE_ENTRIES};
use tench::sys::{
    Cap, CapAddress, CapNode, Error, Frame, Kind, MapFlags, Mapping, OWN_CSPACE, PageTable, Placement, Untyped,
};

use super::Arena;

/// Readable and writable.
pub const RW: MapFlags = MapFlags::READ.union(MapFlags::WRITE);
/// Readable and executable.
const RX: MapFlags = MapFlags::READ.union(MapFlags::EXECUTE);
/// Readable and writable, not cached.
const UNCACHED: MapFlags = RW.union(MapFlags::UNCACHED);
/// Number of entries of a table.
const ALL: u64 = TABLE_ENTRIES as u64;

/// An address space from the root down to a table of each level.
struct Space {
    root: Cap<PageTable>,
    tables: [Cap<PageTable>; 3],
}

impl Arena {
    /// Makes an address space without mappings.
    fn address_space(&mut self) -> Result<Space, Error> {
        let root = self.make::<PageTable>(0)?;
        let tables = [self.make::<PageTable>(1)?, self.make::<PageTable>(2)?, self.make::<PageTable>(3)?];
        tables[0].install(root, 1)?;
        tables[1].install(tables[0], 1)?;
        tables[2].install(tables[1], 1)?;
        Ok(Space { root, tables })
    }
}

/// Zeroes a gigabyte for one frame, and then for smaller ones.
pub fn gigabyte(arena: &mut Arena) -> Result<(), Error> {
    let frame = arena.make::<Frame>(30)?;
    frame.delete()?;
    let memory = arena.make::<Untyped>(28)?;
    let first = arena.slots(64);
    memory.retype_many(Kind::Frame, 22, 64, Placement::Watermark, OWN_CSPACE, first)?;
    Ok(())
}

/// Maps all pages of a table, by one mapping and by many, with every change of flags.
pub fn pages(arena: &mut Arena) -> Result<(), Error> {
    let Space { tables, .. } = arena.address_space()?;
    let frame = arena.make::<Frame>(21)?;
    let slot = arena.slot();
    for flags in [RW, RX, UNCACHED, MapFlags::READ] {
        let mapping = frame.map(tables[2], 0, ALL, 0, flags, slot)?;
        for other in [MapFlags::READ, RX, RW, UNCACHED, RW, MapFlags::READ] {
            mapping.protect(other)?;
        }
        mapping.query()?;
        mapping.delete()?;
    }
    let slots = arena.slots(200);
    for entry in 0..200 {
        frame.map(tables[2], entry * 2, 1 + entry % 2, entry << 12, RW, CapAddress(slots.0 + entry as u32))?;
    }
    frame.revoke()?;
    let mapping = frame.map(tables[2], 0, ALL, 0, RW, slot)?;
    // The address space is removed above it: invalidation takes another path.
    tables[1].uninstall()?;
    mapping.protect(MapFlags::READ)?;
    frame.delete()?;
    Ok(())
}

/// Scatters pages over a table, clones them, and lets each object that they need go first.
pub fn scattered(arena: &mut Arena) -> Result<(), Error> {
    let Space { tables, .. } = arena.address_space()?;
    let (second, high) = (arena.make::<PageTable>(3)?, arena.make::<PageTable>(2)?);
    let slots = arena.slots(4);
    let at = |index| CapAddress(slots.0 + index);
    let group = MAX_SET;
    // All entries, every other, and two of four, which are cloned one by one; nobody shares memory that is executed.
    for (round, (step, count, flags)) in
        [(group, group, RW), (2, 1, RW), (4, 2, RW), (group, group, RX)].into_iter().enumerate()
    {
        let (frame, large) = (arena.make::<Frame>(21)?, arena.make::<Frame>(21)?);
        let (source, target) = (frame.scatter(tables[2], at(0))?, frame.scatter(second, at(1))?);
        for first in (0..ALL).step_by(step as usize) {
            // SAFETY: this program uses none of these addresses.
            unsafe { source.set(first, count, first << PAGE_BITS, flags)? };
            // SAFETY: likewise; the entries are set once more.
            unsafe { source.set(first, count, (ALL - first - count) << PAGE_BITS, flags)? };
        }
        source.clone_to(target, 0, ALL, MapFlags::READ, true)?;
        source.query()?;
        let huge = large.scatter(high, at(2))?;
        // SAFETY: likewise.
        unsafe { huge.set(3, 1, 0, RX)? };
        match round {
            0 => drop(target.delete()?),
            1 => drop(frame.revoke()?),
            2 => drop(frame.delete()?),
            _ => tables[2].delete().map(drop)?,
        }
        frame.revoke().map(drop).or(Ok::<(), Error>(()))?;
        large.delete()?;
    }
    Ok(())
}

/// Maps and unmaps a gigabyte in large pages.
pub fn large_pages(arena: &mut Arena) -> Result<(), Error> {
    let Space { tables, .. } = arena.address_space()?;
    let frame = arena.make::<Frame>(30)?;
    let slot = arena.slot();
    for flags in [RW, MapFlags::READ] {
        let mapping = frame.map(tables[0], 5, 1, 0, flags, slot)?;
        mapping.protect(RW)?;
        mapping.delete()?;
        let mapping = frame.map(tables[1], 2, ALL - 2, 0, flags, slot)?;
        mapping.protect(MapFlags::READ)?;
        mapping.protect(RW)?;
        mapping.delete()?;
    }
    Ok(())
}

/// Maps memory whose caches must be written back first.
pub fn caches(arena: &mut Arena) -> Result<(), Error> {
    let Space { tables, .. } = arena.address_space()?;
    let frame = arena.make::<Frame>(27)?;
    let slot = arena.slot();
    for flags in [RX, UNCACHED] {
        let mapping = frame.map(tables[1], 2, 64, 0, flags, slot)?;
        mapping.delete()?;
        let mapping = frame.map(tables[1], 2, 64, 0, MapFlags::READ, slot)?;
        mapping.protect(flags)?;
        mapping.delete()?;
    }
    Ok(())
}

/// Deletes installed tables: with a mapping for every entry, with one for all, with children, and empty.
pub fn tables(arena: &mut Arena) -> Result<(), Error> {
    let cspace = arena.cspace(4)?;
    let frame = arena.make::<Frame>(21)?;
    let crowd = arena.crowd_slots()?;
    let mut crowd = crowd.skip(1);
    let child = arena.slot();
    for shape in 0..3 {
        let Space { root, tables } = arena.address_space()?;
        let table = tables[2];
        match shape {
            0 => {
                for (entry, slot) in (0..ALL).zip(&mut crowd) {
                    frame.map(table, entry, 1, entry << 12, RW, slot)?;
                }
            }
            1 => {
                for (entry, slot) in (0..ALL / 4).zip(&mut crowd) {
                    frame.map(table, entry * 4, 4, entry << 12, RW, slot)?;
                }
            }
            _ => {
                let Some(slot) = crowd.next() else { return Err(Error::NoSuchSlot) };
                frame.map(table, ALL - 1, 1, 0, RW, slot)?;
            }
        }
        // Children of a table of level 2.
        for (node, first) in [(1, 2_u64), (2, 258)] {
            let address = CapAddress::new(node, 0);
            let count = 254;
            arena.pool.retype_many(Kind::PageTable, 3, count, Placement::Watermark, cspace, address)?;
            for i in 0..count {
                OWN_CSPACE.move_from(child, cspace, CapAddress::new(node, i as u32))?;
                Cap::<PageTable>::new(child).install(tables[1], first + i)?;
                cspace.move_from(CapAddress::new(node, i as u32), OWN_CSPACE, child)?;
            }
        }
        match shape {
            0 => drop(table.delete()?),
            1 => drop(root.delete()?),
            _ => drop(tables[1].delete()?),
        }
        tables[1].delete().ok();
        tables[0].delete()?;
        for node in [1, 2] {
            for i in 0..254 {
                cspace.delete_at(CapAddress::new(node, i))?;
            }
        }
    }
    Ok(())
}

/// Moves capabilities to mappings of a whole table to and fro.
pub fn moves(arena: &mut Arena) -> Result<(), Error> {
    let Space { tables, .. } = arena.address_space()?;
    let frame = arena.make::<Frame>(21)?;
    let (here, there) = (arena.slot(), arena.slot());
    let mapping: Cap<Mapping> = frame.map(tables[2], 0, ALL, 0, RW, here)?;
    for _ in 0..10 {
        mapping.move_to(there)?;
        Cap::<Mapping>::new(there).move_to(here)?;
    }
    // The capability to the node in which it lies is deleted.
    let node = arena.cspace(2)?;
    OWN_CSPACE.identify_at(here)?;
    node.move_from(CapAddress::new(1, 3), OWN_CSPACE, here)?;
    Cap::<CapNode>::new(node.address()).delete()?;
    Ok(())
}
