//! Page tables for a case, in a part of the address space that nothing else uses.

use tench::abi::layout::slot;
use tench::abi::memory::entry_bits;
use tench::sys::{Cap, CapAddress, Frame, MapFlags, Mapping, PageTable};

use crate::case::Outcome;
use crate::stage::Stage;

/// First address: above the addresses that libraries use, below the first processes' fixed ones.
pub const BASE: u64 = 0x5800_0000_0000;
/// Readable and writable.
pub const RW: MapFlags = MapFlags::READ.union(MapFlags::WRITE);

/// A chain of tables from the root down.
#[derive(Clone, Copy)]
pub struct Tables {
    /// Level 1: 1 GiB an entry.
    pub level1: Cap<PageTable>,
    /// Level 2: 2 MiB an entry, from [`BASE`] on.
    pub level2: Cap<PageTable>,
    /// Level 3: 4 KiB an entry, from [`BASE`] on.
    pub level3: Cap<PageTable>,
}

/// This program's address space.
pub const ROOT: Cap<PageTable> = Cap::new(slot::VSPACE);

/// Returns the root's entry for [`BASE`].
pub const fn root_entry() -> u64 {
    BASE >> entry_bits(0)
}

impl Stage {
    /// Makes the tables for [`BASE`].
    pub fn tables(&mut self) -> Outcome<Tables> {
        let tables = Tables { level1: self.make(1)?, level2: self.make(2)?, level3: self.make(3)? };
        tables.level3.install(tables.level2, 0)?;
        tables.level2.install(tables.level1, 0)?;
        tables.level1.install(ROOT, root_entry())?;
        Ok(tables)
    }

    /// Maps a whole frame from an entry of a level-3 table on.
    pub fn map(
        &mut self,
        frame: Cap<Frame>,
        table: Cap<PageTable>,
        entry: u64,
        flags: MapFlags,
    ) -> Outcome<Cap<Mapping>> {
        let count = 1 << (frame.identify()?.size_bits - 12);
        let slot: CapAddress = self.slot();
        Ok(frame.map(table, entry, count, 0, flags, slot)?)
    }
}

/// Reads a word that a case has mapped.
pub fn read(address: u64) -> u64 {
    // SAFETY: cases read only what they have mapped, or in a worker whose fault is handled.
    unsafe { core::ptr::with_exposed_provenance::<u64>(address as usize).read_volatile() }
}

/// Writes a word that a case has mapped.
pub fn write(address: u64, value: u64) {
    // SAFETY: as for `read`, and nothing else lies there.
    unsafe { core::ptr::with_exposed_provenance_mut::<u64>(address as usize).write_volatile(value) };
}
