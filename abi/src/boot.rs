//! Layouts of what the host tool hands to the kernel and the kernel to `init`.
//!
//! The initial RAM disk is one file:
//!
//! ```text
//! 0                  Header (one page)
//! segment offsets    the pages of init's segments, each page-aligned
//! archive_offset     the boot archive: an ordinary tar file, page-aligned
//! ```
//! The kernel maps init's pages where they lie; nothing is copied.
//!
//! Every further core has a kernel and an `init` of its own, copied from the files [`KERNEL_FILE`] and [`INIT_FILE`] of
//! the boot archive. The program that starts the core lays them out in memory that belongs to the new core from then
//! on, and describes the rest in a [`CoreBoot`].

use crate::object::LINES;

/// First word of a [`CoreBoot`]: "TENCHCOR" in little-endian order.
pub const CORE_MAGIC: u64 = u64::from_le_bytes(*b"TENCHCOR");
/// File of the boot archive with the kernel as the boot loader gets it: an arm64 `Image`. The word at byte 16 is the
/// number of bytes of memory that the kernel needs; the kernel itself zeroes those that the file does not contain.
pub const KERNEL_FILE: &str = "boot/kernel";
/// File of the boot archive with a [`Header`] and the pages of `init`'s segments, as at the start of the RAM disk. The
/// header's archive is empty.
pub const INIT_FILE: &str = "boot/init";
/// Maximum number of memory blocks with which a core can be started.
pub const MAX_CORE_MEMORY: usize = 96;
/// First word of a [`Header`]: "TENCHIMG" in little-endian order.
pub const MAGIC: u64 = u64::from_le_bytes(*b"TENCHIMG");
/// Version of the layouts in this file.
pub const VERSION: u64 = 2;
/// Maximum number of segments of `init`.
pub const MAX_SEGMENTS: usize = 8;
/// Maximum number of untyped capabilities that the kernel hands over.
pub const MAX_UNTYPED: usize = 160;

/// A run of pages of `init`'s image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Segment {
    /// First virtual address, page-aligned.
    pub address: u64,
    /// Offset of its pages from the start of the RAM disk, page-aligned.
    pub offset: u64,
    /// Size in bytes, a multiple of the page size. Zero-initialised memory is stored, not implied.
    pub size: u64,
    /// [`MapFlags`](crate::memory::MapFlags).
    pub flags: u64,
}

/// Start of the RAM disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: u64,
    /// [`VERSION`].
    pub version: u64,
    /// Address of `init`'s first instruction.
    pub entry: u64,
    /// Number of segments in use.
    pub segment_count: u64,
    /// `init`'s segments.
    pub segments: [Segment; MAX_SEGMENTS],
    /// Offset of the archive, page-aligned.
    pub archive_offset: u64,
    /// Size of the archive in bytes.
    pub archive_size: u64,
    /// Number of the core to which each interrupt line belongs, with its device; 0 is the first core. All kernels read
    /// the same table, so no line has two owners.
    pub line_owners: [u8; LINES],
}

impl Header {
    /// Returns whether this is a header, and of this version.
    pub const fn is_valid(&self) -> bool {
        self.magic == MAGIC && self.version == VERSION
    }

    /// Returns the core to which an interrupt line belongs. A device without a line, and a line that no kernel serves,
    /// belong to the first core.
    pub fn owner(&self, line: Option<u32>) -> u64 {
        line.and_then(|line| self.line_owners.get(line as usize)).map_or(0, |core| u64::from(*core))
    }
}

/// Memory that one untyped capability of `init` covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct UntypedInfo {
    /// Physical address.
    pub address: u64,
    /// Log2 of the size in bytes.
    pub size_bits: u32,
    /// [`MemoryKind`] as a number.
    pub kind: u32,
}

/// Kind of the memory of an untyped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum MemoryKind {
    /// Free memory.
    Ram = 0,
    /// Device registers. Retyping does not zero it.
    Device = 1,
    /// The boot archive. Retyping does not zero it; frames of it are ordinary cached memory.
    Archive = 2,
    /// A frame that this core shares with the one that started it. Retyping does not zero it.
    Channel = 3,
}

/// Boot page of a core that user code on another core has started. `x0` holds its physical address at entry. The page
/// lies in the same naturally aligned 2 MiB as the kernel's image. All addresses in it are physical.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct CoreBoot {
    /// [`CORE_MAGIC`].
    pub magic: u64,
    /// [`VERSION`].
    pub version: u64,
    /// Number of this core: its position in the device tree.
    pub core: u64,
    /// Address of the device tree.
    pub device_tree: u64,
    /// Size of the device tree in bytes.
    pub device_tree_size: u64,
    /// Address of `init`'s [`Header`], from which the offsets of its segments count.
    pub init: u64,
    /// Address of the boot archive.
    pub archive: u64,
    /// Size of the boot archive in bytes.
    pub archive_size: u64,
    /// Address of the frame that this core shares with the core that started it.
    pub channel: u64,
    /// Log2 of that frame's size in bytes.
    pub channel_bits: u64,
    /// Number of entries of `memory` in use.
    pub memory_count: u64,
    /// The core's RAM, in naturally aligned powers of two.
    pub memory: [UntypedInfo; MAX_CORE_MEMORY],
}

/// Information from the kernel for `init`, in the page at [`PROCESS_INFO`](crate::layout::address::PROCESS_INFO).
///
/// The capability to entry `n` of `untyped` lies in slot
/// [`BOOT_UNTYPED`](crate::layout::slot::BOOT_UNTYPED)` + n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct BootInfo {
    /// [`MAGIC`].
    pub magic: u64,
    /// [`VERSION`].
    pub version: u64,
    /// Number of entries of `untyped` in use.
    pub untyped_count: u64,
    /// Physical address of the archive.
    pub archive_address: u64,
    /// Size of the archive in bytes.
    pub archive_size: u64,
    /// Virtual address of the device tree (mapped read-only), or 0.
    pub device_tree: u64,
    /// Size of the device tree in bytes.
    pub device_tree_size: u64,
    /// Ticks of the system counter per second.
    pub counter_frequency: u64,
    /// Number of this core.
    pub core: u64,
    /// Memory covered by each untyped capability.
    pub untyped: [UntypedInfo; MAX_UNTYPED],
}

const _: () = assert!(core::mem::size_of::<BootInfo>() <= crate::memory::PAGE_SIZE);
const _: () = assert!(core::mem::size_of::<CoreBoot>() <= crate::memory::PAGE_SIZE);
const _: () = assert!(core::mem::size_of::<Header>() <= crate::memory::PAGE_SIZE);
