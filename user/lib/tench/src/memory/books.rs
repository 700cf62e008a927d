//! Memory for the books of the address space.
//!
//! It lies in a part of the address space that no other code uses, below an entry of its own of the table of level 0.
//! So the tables that show it need no shadow, and the books never need themselves in order to grow. One table of level
//! 2 shows all of it.

use tench_abi::Kind;
use tench_abi::layout::address::BOOKS_SIZE;
use tench_abi::layout::slot;
use tench_abi::memory::{MapFlags, PAGE_SIZE, TABLE_ENTRIES, entry_bits};
use tench_sys::{Cap, Frame, PageTable};

use super::Error;
use super::resources::Resources;
use crate::process;

/// Log2 of the smallest piece.
const MIN_BITS: u32 = 14;

/// How far it has grown, and the tables that show the end.
pub struct Books {
    /// Bytes in use.
    used: u64,
    level2: Option<Cap<PageTable>>,
    /// Which 2 MiB the last table of level 3 shows, and the table.
    level3: Option<(u64, Cap<PageTable>)>,
}

impl Books {
    /// As it lies in zeroed memory.
    pub const fn new() -> Books {
        Books { used: 0, level2: None, level3: None }
    }

    /// Maps at least `size` more bytes, and answers where. What fails midway is used by the next attempt.
    pub fn grow(resources: &mut Resources, size: usize) -> Result<usize, Error> {
        let bits = size.next_power_of_two().ilog2().max(MIN_BITS);
        let start = resources.books().used.next_multiple_of(1 << bits);
        if start + (1 << bits) > BOOKS_SIZE {
            return Err(Error::NoAddresses);
        }
        let address = process::books() + start;
        let level = if bits < entry_bits(2) { 3 } else { 2 };
        let table = if level == 3 { Self::level3(resources, address)? } else { Self::level2(resources)? };
        let place = resources.make_lasting(Kind::Frame, u64::from(bits))?;
        let first = (address >> entry_bits(level)) % TABLE_ENTRIES as u64;
        let count = 1 << (bits - entry_bits(level));
        let mapped = resources.slot().and_then(|slot| {
            let flags = MapFlags::READ | MapFlags::WRITE;
            Cap::<Frame>::new(place).map(table, first, count, 0, flags, slot).map_err(|error| {
                resources.free_slot(slot);
                Error::Kernel(error)
            })
        });
        // What cannot be shown stays as it is: there is too little of everything then, and it is rare.
        mapped?;
        resources.books().used = start + (1 << bits);
        Ok(address as usize)
    }

    /// The table that shows all of it.
    fn level2(resources: &mut Resources) -> Result<Cap<PageTable>, Error> {
        if let Some(table) = resources.books().level2 {
            return Ok(table);
        }
        let upper = Self::table(resources, 1, Cap::new(slot::VSPACE), process::books())?;
        let table = Self::table(resources, 2, upper, process::books())?;
        resources.books().level2 = Some(table);
        Ok(table)
    }

    /// The table that shows the pages around an address.
    fn level3(resources: &mut Resources, address: u64) -> Result<Cap<PageTable>, Error> {
        let part = address >> entry_bits(2);
        match resources.books().level3 {
            Some((shown, table)) if shown == part => Ok(table),
            _ => {
                let upper = Self::level2(resources)?;
                let table = Self::table(resources, 3, upper, address)?;
                resources.books().level3 = Some((part, table));
                Ok(table)
            }
        }
    }

    /// Makes a table and hangs it where it shows an address.
    fn table(
        resources: &mut Resources,
        level: u32,
        parent: Cap<PageTable>,
        address: u64,
    ) -> Result<Cap<PageTable>, Error> {
        let table = Cap::<PageTable>::new(resources.make_lasting(Kind::PageTable, u64::from(level))?);
        table.hang(parent, (address >> entry_bits(level - 1)) % TABLE_ENTRIES as u64)?;
        Ok(table)
    }
}

/// Makes nodes of new memory.
///
/// # Safety
/// `place` is a multiple of the page size; `count` times the size of a node from there on are mapped, readable and
/// writable for ever, and nobody else knows of them.
pub unsafe fn nodes<T: Copy + Default + 'static>(place: usize, count: usize) -> &'static mut [T] {
    const { assert!(align_of::<T>() <= PAGE_SIZE) };
    let first = core::ptr::with_exposed_provenance_mut::<T>(place);
    for index in 0..count {
        // SAFETY: it lies in the memory that the caller answers for.
        unsafe { first.wrapping_add(index).write(T::default()) };
    }
    // SAFETY: all of them were just written, and the caller answers for the rest.
    unsafe { core::slice::from_raw_parts_mut(first, count) }
}
