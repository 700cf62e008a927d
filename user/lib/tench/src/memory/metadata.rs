//! Memory for the metadata of the address space.
//!
//! It lies in a part of the address space that no other code uses, below an entry of its own of the table of level 0.
//! So the page tables that map it need no shadow entries, and growing the metadata never needs more metadata. One table
//! of level 2 maps all of it.

use tench_abi::Kind;
use tench_abi::layout::address::METADATA_SIZE;
use tench_abi::layout::slot;
use tench_abi::memory::{MapFlags, PAGE_SIZE, TABLE_ENTRIES, entry_bits};
use tench_sys::{Cap, Frame, PageTable};

use super::Error;
use super::resources::Resources;
use crate::process;

/// Log2 of the smallest part by which it grows, in bytes.
const MIN_BITS: u32 = 14;

/// Size of the metadata, and the page tables at its end.
pub struct Metadata {
    /// Number of bytes in use.
    used: u64,
    level2: Option<Cap<PageTable>>,
    /// Index of the 2 MiB that the last table of level 3 maps, and the table.
    level3: Option<(u64, Cap<PageTable>)>,
}

impl Metadata {
    /// Returns the initial value, which is the same as zeroed memory.
    pub const fn new() -> Metadata {
        Metadata { used: 0, level2: None, level3: None }
    }

    /// Maps at least `size` more bytes, and returns their address. After a failure midway, the next attempt uses what
    /// exists.
    pub fn grow(resources: &mut Resources, size: usize) -> Result<usize, Error> {
        let bits = size.next_power_of_two().ilog2().max(MIN_BITS);
        let start = resources.metadata().used.next_multiple_of(1 << bits);
        if start + (1 << bits) > METADATA_SIZE {
            return Err(Error::NoAddresses);
        }
        let address = process::metadata() + start;
        let level = if bits < entry_bits(2) { 3 } else { 2 };
        let table = if level == 3 { Self::level3(resources, address)? } else { Self::level2(resources)? };
        let frame = resources.make_lasting(Kind::Frame, u64::from(bits))?;
        let first = (address >> entry_bits(level)) % TABLE_ENTRIES as u64;
        let count = 1 << (bits - entry_bits(level));
        let mapped = resources.slot().and_then(|slot| {
            let flags = MapFlags::READ | MapFlags::WRITE;
            Cap::<Frame>::new(frame).map(table, first, count, 0, flags, slot).map_err(|error| {
                resources.free_slot(slot);
                Error::Kernel(error)
            })
        });
        // Memory that cannot be mapped is left as it is: it happens rarely, when everything is short.
        mapped?;
        resources.metadata().used = start + (1 << bits);
        Ok(address as usize)
    }

    /// Returns the table of level 2 that maps all of it.
    fn level2(resources: &mut Resources) -> Result<Cap<PageTable>, Error> {
        if let Some(table) = resources.metadata().level2 {
            return Ok(table);
        }
        let upper = Self::table(resources, 1, Cap::new(slot::VSPACE), process::metadata())?;
        let table = Self::table(resources, 2, upper, process::metadata())?;
        resources.metadata().level2 = Some(table);
        Ok(table)
    }

    /// Returns the table that maps the pages around an address.
    fn level3(resources: &mut Resources, address: u64) -> Result<Cap<PageTable>, Error> {
        let part = address >> entry_bits(2);
        match resources.metadata().level3 {
            Some((shown, table)) if shown == part => Ok(table),
            _ => {
                let upper = Self::level2(resources)?;
                let table = Self::table(resources, 3, upper, address)?;
                resources.metadata().level3 = Some((part, table));
                Ok(table)
            }
        }
    }

    /// Makes a page table and installs it so that it maps an address.
    fn table(
        resources: &mut Resources,
        level: u32,
        parent: Cap<PageTable>,
        address: u64,
    ) -> Result<Cap<PageTable>, Error> {
        let table = Cap::<PageTable>::new(resources.make_lasting(Kind::PageTable, u64::from(level))?);
        table.install(parent, (address >> entry_bits(level - 1)) % TABLE_ENTRIES as u64)?;
        Ok(table)
    }
}

/// Makes nodes in new memory.
///
/// # Safety
/// `address` must be a multiple of the page size; the memory of `count` nodes from there on must be mapped, readable
/// and writable for ever, and nobody else may refer to it.
pub unsafe fn nodes<T: Copy + Default + 'static>(address: usize, count: usize) -> &'static mut [T] {
    const { assert!(align_of::<T>() <= PAGE_SIZE) };
    let first = core::ptr::with_exposed_provenance_mut::<T>(address);
    for index in 0..count {
        // SAFETY: the node lies in the memory that the caller guarantees.
        unsafe { first.wrapping_add(index).write(T::default()) };
    }
    // SAFETY: all of them were just written, and the caller guarantees the rest.
    unsafe { core::slice::from_raw_parts_mut(first, count) }
}
