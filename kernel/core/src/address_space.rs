//! Address spaces: the operations by which programs build them from page tables, frames and mappings.
//!
//! The modules [`page_table`](crate::page_table) and [`mapping`](crate::mapping) say what tables and mappings are, and
//! how each changes on its own.

pub mod frames;
mod maintenance;
pub mod protection;
pub mod scattered;
pub mod tables;

use tench_abi::memory::MapFlags;
use tench_abi::{Error, Rights};

use crate::mapping::MEMORY_TYPE;
use crate::slot::{Cap, flag};

/// Returns the flags that a program named, if a capability with these rights to this memory allows them. A mapping does
/// not keep [`COHERENT`](MapFlags::COHERENT).
pub fn allowed_flags(alleged: u64, cap: &Cap) -> Result<MapFlags, Error> {
    let Some(mut flags) = MapFlags::from_bits(alleged) else { return Err(Error::InvalidArgument) };
    if !flags.contains(MapFlags::READ) || flags.contains(MapFlags::WRITE.union(MapFlags::EXECUTE)) {
        return Err(Error::InvalidArgument);
    }
    let is_plain = flags.contains(MapFlags::EXECUTE) && !flags.intersects(MEMORY_TYPE);
    if flags.contains(MapFlags::COHERENT) && !is_plain {
        return Err(Error::InvalidArgument);
    }
    if flags.contains(MapFlags::WRITE) && !cap.allows(Rights::WRITE)
        || flags.contains(MapFlags::EXECUTE) && !cap.allows(Rights::EXECUTE)
        || !cap.allows(Rights::READ)
    {
        return Err(Error::MissingRights);
    }
    if cap.flags & flag::DEVICE != 0 {
        flags = flags.union(MapFlags::DEVICE);
    }
    Ok(flags)
}

/// Returns the entries that a program named, first and count, if they lie within one table.
pub fn allowed_entries(first: u64, count: u64) -> Result<(usize, usize), Error> {
    let entries = tench_abi::memory::TABLE_ENTRIES as u64;
    if count == 0 || first >= entries || count > entries - first {
        return Err(Error::InvalidArgument);
    }
    Ok((first as usize, count as usize))
}
