//! Flags and sizes of mappings.

use bitflags::bitflags;

bitflags! {
    /// Rights and attributes of a mapping.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct MapFlags: u64 {
        /// Loads are allowed. Every mapping needs it.
        const READ = 1;
        /// Stores are allowed. Excludes `EXECUTE`.
        const WRITE = 2;
        /// Instruction fetches are allowed. Excludes `WRITE`.
        const EXECUTE = 4;
        /// Device memory: no caching, no reordering. Frames of device memory are always mapped this way.
        const DEVICE = 8;
        /// Ordinary memory without caching.
        const UNCACHED = 16;
        /// With `EXECUTE` alone: nothing was written to the memory since it was mapped executable last, so caches need
        /// no maintenance. If that is wrong, programs that execute it may execute what it contained before.
        const COHERENT = 32;
    }
}

/// Log2 of a page's size in bytes.
pub const PAGE_BITS: u32 = 12;
/// Bytes of a page.
pub const PAGE_SIZE: usize = 1 << PAGE_BITS;
/// Number of entries of a page table of any level.
pub const TABLE_ENTRIES: usize = 512;
/// Maximum number of scattered mappings in one page table.
pub const MAX_SCATTERED: usize = 8;
/// Maximum number of entries that one `MappingSet` sets.
pub const MAX_SET: u64 = 32;

/// Returns log2 of the number of bytes that one entry of a page table of `level` maps: 39, 30, 21, 12.
pub const fn entry_bits(level: u32) -> u32 {
    PAGE_BITS + 9 * (3 - level)
}

/// First address above those that a program can use.
pub const USER_END: u64 = 1 << 47;
