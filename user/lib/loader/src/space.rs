//! Construction of a new process's address space: tables, segments, stack, information block, IPC buffer.
//!
//! Everything that touches the machine goes through [`Builder`], so that the same code runs against the kernel and,
//! in tests, against a model that records what a program would see.

use arrayvec::ArrayVec;
use tench_abi::memory::{MapFlags, PAGE_SIZE};
use tench_abi::{CapAddress, Error, Kind};
use tench_procs_interface::protocol::Defect;

use crate::information::{self, BLOCK_SIZE, Description};
use crate::pages::{chunks, entry, runs, table_start};
use crate::program::{Program, Segment};
use crate::relocate::Relocating;

/// Maximum number of page tables that the loader makes for one process: enough for some 50 tables of 2 MiB.
const MAX_TABLES: usize = 64;

/// Reason why a program could not be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// The file has a defect.
    Defect(Defect),
    /// There was not enough memory, or there were not enough slots.
    OutOfMemory,
    /// The kernel refused an operation that should be possible.
    Kernel(Error),
}

impl From<Defect> for LoadError {
    fn from(defect: Defect) -> LoadError {
        LoadError::Defect(defect)
    }
}

impl From<Error> for LoadError {
    fn from(error: Error) -> LoadError {
        LoadError::Kernel(error)
    }
}

impl core::fmt::Display for LoadError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            LoadError::Defect(defect) => defect.fmt(f),
            LoadError::OutOfMemory => f.write_str("not enough memory"),
            LoadError::Kernel(error) => write!(f, "the kernel refused a step of loading: {error}"),
        }
    }
}

impl core::error::Error for LoadError {}

/// Position of pages of a program's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The frame.
    pub frame: CapAddress,
    /// Offset in the frame in bytes.
    pub offset: u64,
    /// Size of the pages in bytes, a multiple of the page size.
    pub bytes: u64,
}

/// Executor of the loader's decisions. Capabilities are addresses in the loader's own CSpace.
pub trait Builder {
    /// Returns the position of the pages with which `contents`, a part of a program's file, begins, if they may be
    /// mapped into the process for reading and executing.
    fn origin(&self, contents: &[u8]) -> Option<Origin> {
        let _ = contents;
        None
    }

    /// Makes an object from the new process's memory, which is zero. `size` is that of `UntypedRetype`.
    fn make(&mut self, kind: Kind, size: u64) -> Result<CapAddress, LoadError>;

    /// Writes into a frame of `size_bits`, from `offset` on.
    fn fill(&mut self, frame: CapAddress, size_bits: u32, offset: u64, bytes: &[u8]) -> Result<(), LoadError>;

    /// Installs a table in an entry of its parent.
    fn install(&mut self, table: CapAddress, parent: CapAddress, entry: u64) -> Result<(), LoadError>;

    /// Maps `count` pages of a frame from `offset` on into a table of level 3, from entry `first` on.
    fn map(
        &mut self,
        frame: CapAddress,
        table: CapAddress,
        first: u64,
        count: u64,
        offset: u64,
        flags: MapFlags,
    ) -> Result<(), LoadError>;
}

/// An address space under construction.
pub struct Space {
    root: CapAddress,
    tables: ArrayVec<Table, MAX_TABLES>,
}

/// A table below the root.
#[derive(Clone, Copy)]
struct Table {
    level: u32,
    start: u64,
    cap: CapAddress,
}

impl Space {
    /// Makes a new, empty address space.
    pub fn new(builder: &mut impl Builder) -> Result<Space, LoadError> {
        Ok(Space { root: builder.make(Kind::PageTable, 0)?, tables: ArrayVec::new() })
    }

    /// Returns an address space with an existing table of level 0, which must be empty where this one will map.
    pub const fn over(root: CapAddress) -> Space {
        Space { root, tables: ArrayVec::new_const() }
    }

    /// Returns the table of level 0.
    pub const fn root(&self) -> CapAddress {
        self.root
    }

    /// Returns the table of `level` that maps `address`, and makes it if necessary.
    pub fn table(&mut self, builder: &mut impl Builder, address: u64, level: u32) -> Result<CapAddress, LoadError> {
        if level == 0 {
            return Ok(self.root);
        }
        let start = table_start(address, level);
        if let Some(table) = self.tables.iter().find(|table| table.level == level && table.start == start) {
            return Ok(table.cap);
        }
        let parent = self.table(builder, address, level - 1)?;
        if self.tables.is_full() {
            return Err(LoadError::OutOfMemory);
        }
        let cap = builder.make(Kind::PageTable, u64::from(level))?;
        builder.install(cap, parent, entry(address, level - 1))?;
        self.tables.push(Table { level, start, cap });
        Ok(cap)
    }

    /// Maps a segment: whole read-only pages from the file in place if possible, the rest as a copy.
    pub fn segment(
        &mut self,
        builder: &mut impl Builder,
        segment: &Segment,
        relocating: &mut Relocating<'_>,
    ) -> Result<(), LoadError> {
        let Segment { mut address, mut size, flags, mut contents, lead } = *segment;
        let is_constant = !flags.contains(MapFlags::WRITE) && !relocating.changes_below(segment.end());
        if is_constant && lead == 0 && contents.len() as u64 == size {
            while let Some(origin) = builder.origin(contents) {
                self.map_part(builder, (origin.frame, origin.offset), address, origin.bytes, flags)?;
                (address, size) = (address + origin.bytes, size - origin.bytes);
                contents = &contents[origin.bytes as usize..];
            }
        }
        self.region(builder, Region { address, size, flags, contents, lead }, relocating)
    }

    /// Maps `bytes` of a frame, from its beginning, at `address`.
    pub fn map(
        &mut self,
        builder: &mut impl Builder,
        frame: CapAddress,
        address: u64,
        bytes: u64,
        flags: MapFlags,
    ) -> Result<(), LoadError> {
        self.map_part(builder, (frame, 0), address, bytes, flags)
    }

    /// Maps `bytes` of a frame, from an offset on, at `address`.
    fn map_part(
        &mut self,
        builder: &mut impl Builder,
        (frame, offset): (CapAddress, u64),
        address: u64,
        bytes: u64,
        flags: MapFlags,
    ) -> Result<(), LoadError> {
        for run in runs(address, bytes) {
            let table = self.table(builder, run.address, 3)?;
            builder.map(frame, table, run.first, run.count, offset + run.offset, flags)?;
        }
        Ok(())
    }

    /// Makes memory for `size` bytes at `address`, copies `contents` into it from `lead` on, and maps it.
    pub fn region(
        &mut self,
        builder: &mut impl Builder,
        region: Region,
        relocating: &mut Relocating<'_>,
    ) -> Result<(), LoadError> {
        for chunk in chunks(region.size) {
            let frame = builder.make(Kind::Frame, u64::from(chunk.size_bits))?;
            // Offsets, from the region's start, of the contents that lie in this chunk.
            let from = region.lead.max(chunk.offset);
            let to = (region.lead + region.contents.len() as u64).min(chunk.offset + chunk.size());
            if from < to {
                let bytes = &region.contents[(from - region.lead) as usize..(to - region.lead) as usize];
                let frame = (frame, chunk.size_bits);
                relocating.fill(builder, frame, from - chunk.offset, region.address + from, bytes)?;
            }
            self.map(builder, frame, region.address + chunk.offset, chunk.size(), region.flags)?;
        }
        Ok(())
    }
}

/// Pages with contents.
#[derive(Clone, Copy, Debug)]
pub struct Region<'a> {
    /// First address.
    pub address: u64,
    /// Size in bytes, a multiple of the page size.
    pub size: u64,
    /// Rights.
    pub flags: MapFlags,
    /// The contents; the rest is zero.
    pub contents: &'a [u8],
    /// Offset of `contents` from `address` in bytes.
    pub lead: u64,
}

/// An address space with everything with which a process starts.
pub struct Image {
    /// The address space.
    pub space: Space,
    /// The frame with the information block.
    pub information: CapAddress,
    /// The frame with the main thread's IPC buffer.
    pub message: CapAddress,
}

/// Builds the address space of a process.
pub fn image(builder: &mut impl Builder, program: &Program, description: &Description) -> Result<Image, LoadError> {
    let mut block = [0; BLOCK_SIZE];
    let used = information::write(&mut block, program, description)?;

    let mut space = Space::new(builder)?;
    let mut relocating = Relocating::new(program);
    for segment in &program.segments {
        space.segment(builder, segment, &mut relocating)?;
    }
    let stack = Region {
        address: description.addresses.stack.bottom,
        size: description.addresses.stack.size(),
        flags: MapFlags::READ | MapFlags::WRITE,
        contents: &[],
        lead: 0,
    };
    space.region(builder, stack, &mut relocating)?;

    let information = builder.make(Kind::Frame, u64::from(BLOCK_SIZE.ilog2()))?;
    builder.fill(information, BLOCK_SIZE.ilog2(), 0, &block[..used])?;
    space.map(builder, information, description.addresses.information, BLOCK_SIZE as u64, MapFlags::READ)?;

    let message = builder.make(Kind::Frame, u64::from(PAGE_SIZE.ilog2()))?;
    space.map(builder, message, description.addresses.messages, PAGE_SIZE as u64, MapFlags::READ | MapFlags::WRITE)?;
    Ok(Image { space, information, message })
}
