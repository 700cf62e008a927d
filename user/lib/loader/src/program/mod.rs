//! ELF files: parsed, and checked so thoroughly that the loader can rely on every field.
//!
//! ```text
//! header      the file's header, and its table of program headers
//! dynamic     the dynamic section of a position-independent program, which names its relocations
//! relocation  the relocations
//! note        the program's note about itself
//! ```
//! Each mistake has a [`Defect`] of its own, because "not loadable" helps nobody. A position-independent program lies
//! where it was linked, from address 0 on, until it is [moved](Program::move_by).

mod dynamic;
mod header;
mod note;
mod relocation;

use arrayvec::ArrayVec;
use elf::abi::{ET_DYN, PF_R, PF_W, PF_X, PT_DYNAMIC, PT_GNU_RELRO, PT_GNU_STACK, PT_INTERP, PT_LOAD, PT_NOTE, PT_TLS};
use elf::segment::ProgramHeader;
use tench_abi::layout::address;
use tench_abi::memory::{MapFlags, PAGE_SIZE};
use tench_abi::process::MAX_SEGMENTS;
use tench_procs_interface::protocol::Defect;

pub use relocation::{Relocation, Relocations, Words};

const PAGE: u64 = PAGE_SIZE as u64;
/// Maximum alignment of a program that can be moved: the bytes that a table of level 3 maps.
pub const MAX_ALIGNMENT: u64 = 2 << 20;

/// A segment: whole pages with the same rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// First address, a multiple of the page size.
    pub address: u64,
    /// Size in bytes, a multiple of the page size, not 0.
    pub size: u64,
    /// Rights: `READ`, and at most one of `WRITE` and `EXECUTE`.
    pub flags: MapFlags,
    /// Contents from the file; the rest is zero.
    pub contents: &'a [u8],
    /// Offset of `contents` from `address` in bytes; less than a page.
    pub lead: u64,
}

impl Segment<'_> {
    /// Returns one past the last address.
    pub const fn end(&self) -> u64 {
        self.address + self.size
    }

    /// Returns whether the file contains the word at `address`.
    fn has_word(&self, address: u64) -> bool {
        let offset = address.checked_sub(self.address + self.lead);
        offset.is_some_and(|offset| offset.saturating_add(8) <= self.contents.len() as u64)
    }
}

/// A program that can be loaded.
#[derive(Clone, Debug)]
pub struct Program<'a> {
    /// Address of the first instruction.
    pub entry: u64,
    /// Segments in ascending order of addresses; no two have a page in common.
    pub segments: ArrayVec<Segment<'a>, MAX_SEGMENTS>,
    /// Set if the program makes its main thread's stack itself
    /// ([`note::OWN_STACK`](tench_abi::process::note::OWN_STACK)).
    pub makes_stack: bool,
    /// Set if the program can be moved.
    pub position_independent: bool,
    /// Distance in bytes from its linked addresses to its addresses.
    pub bias: u64,
    /// Alignment of `bias`, at least a page.
    pub alignment: u64,
    /// The words to which `bias` is added. All lie in contents of segments that were writable in the file.
    pub relocations: Relocations<'a>,
}

impl<'a> Program<'a> {
    /// Reads an ELF file.
    pub fn parse(file: &'a [u8]) -> Result<Program<'a>, Defect> {
        let header = header::read(file)?;
        let position_independent = header.e_type == ET_DYN;
        let mut parts = Parts { position_independent, alignment: PAGE, ..Parts::default() };
        for program_header in header::program_headers(file, &header)? {
            parts.add(file, &program_header?)?;
        }
        let Parts { mut segments, makes_stack, alignment, dynamic, relro, .. } = parts;
        segments.sort_unstable_by_key(|segment| segment.address);
        if segments.is_empty() {
            return Err(Defect::NoSegments);
        }
        if segments.windows(2).any(|pair| pair[0].end() > pair[1].address) {
            return Err(Defect::SegmentsOverlap);
        }
        let relocations = match (position_independent, dynamic) {
            (true, Some(section)) => dynamic::relocations(section, &segments)?,
            (true, None) => return Err(Defect::SharedLibrary),
            (false, Some(_)) => return Err(Defect::DynamicAtFixedAddress),
            (false, None) => Relocations::default(),
        };
        relocations.check(&segments)?;
        if let Some((start, end)) = relro {
            let constant = segments.iter_mut().filter(|segment| start <= segment.address + segment.lead);
            // A segment that shares its last page with variables stays writable.
            constant.filter(|segment| segment.end() <= end).for_each(|segment| segment.flags.remove(MapFlags::WRITE));
        }
        let entry = header.e_entry;
        let program = Program { entry, segments, makes_stack, position_independent, bias: 0, alignment, relocations };
        program.check_entry()?;
        Ok(program)
    }

    fn check_entry(&self) -> Result<(), Defect> {
        let segment = self.segment_at(self.entry).ok_or(Defect::BadEntry)?;
        if !segment.flags.contains(MapFlags::EXECUTE) {
            return Err(Defect::EntryNotExecutable);
        }
        if self.entry.is_multiple_of(4) { Ok(()) } else { Err(Defect::EntryMisaligned) }
    }

    /// Moves a position-independent program up by `bias` bytes, a multiple of its alignment, so that it ends below
    /// [`address::DYNAMIC`]; one with fixed addresses stays where it is.
    pub fn move_by(&mut self, bias: u64) {
        if self.position_independent {
            debug_assert!(bias.is_multiple_of(self.alignment));
            self.bias += bias;
            self.entry += bias;
            self.segments.iter_mut().for_each(|segment| segment.address += bias);
        }
    }

    /// Returns the segment that contains `address`.
    pub fn segment_at(&self, address: u64) -> Option<&Segment<'a>> {
        self.segments.iter().find(|segment| (segment.address..segment.end()).contains(&address))
    }

    /// Returns the size of all segments in bytes.
    pub fn size(&self) -> u64 {
        self.segments.iter().map(|segment| segment.size).sum()
    }

    /// Returns one past the last address.
    pub fn end(&self) -> u64 {
        self.segments.last().map_or(0, Segment::end)
    }
}

/// The parts collected from the program headers.
#[derive(Default)]
struct Parts<'a> {
    position_independent: bool,
    segments: ArrayVec<Segment<'a>, MAX_SEGMENTS>,
    makes_stack: bool,
    alignment: u64,
    /// Contents of the dynamic section.
    dynamic: Option<&'a [u8]>,
    /// Range that is constant after relocation: first address, and one past the last.
    relro: Option<(u64, u64)>,
}

impl<'a> Parts<'a> {
    /// Adds one program header.
    fn add(&mut self, file: &'a [u8], header: &ProgramHeader) -> Result<(), Defect> {
        match header.p_type {
            PT_INTERP => return Err(Defect::NeedsInterpreter),
            PT_TLS if header.p_memsz > 0 => return Err(Defect::ThreadLocal),
            PT_GNU_STACK if header.p_flags & PF_X != 0 => return Err(Defect::ExecutableStack),
            PT_LOAD if header.p_memsz > 0 || header.p_filesz > 0 => {
                let segment = self.segment(file, header)?;
                self.segments.try_push(segment).map_err(|_| Defect::TooManySegments)?;
            }
            PT_NOTE => self.makes_stack |= note::makes_stack(file, header)?,
            PT_DYNAMIC => self.dynamic = Some(contents(file, header).map_err(|_| Defect::BadDynamicSection)?),
            PT_GNU_RELRO => self.relro = header.p_vaddr.checked_add(header.p_memsz).map(|end| (header.p_vaddr, end)),
            _ => {}
        }
        Ok(())
    }

    /// Checks a segment, and returns it.
    fn segment(&mut self, file: &'a [u8], header: &ProgramHeader) -> Result<Segment<'a>, Defect> {
        if header.p_filesz > header.p_memsz {
            return Err(Defect::BadSegmentSize);
        }
        let end = header.p_vaddr.checked_add(header.p_memsz).ok_or(Defect::SizeOverflow)?;
        if !self.position_independent && header.p_vaddr < PAGE {
            return Err(Defect::FirstPage);
        }
        // From that limit on, addresses are allocated at run time; a program that is moved needs room for its
        // displacement, too.
        let limit = if self.position_independent { address::DYNAMIC - address::PROGRAM } else { address::DYNAMIC };
        if end > limit {
            return Err(Defect::BadAddress);
        }
        self.check_alignment(header)?;
        let start = header.p_vaddr & !(PAGE - 1);
        Ok(Segment {
            address: start,
            size: end.next_multiple_of(PAGE) - start,
            flags: flags(header.p_flags)?,
            contents: contents(file, header)?,
            lead: header.p_vaddr - start,
        })
    }

    /// Checks a segment's alignment, and records it.
    fn check_alignment(&mut self, header: &ProgramHeader) -> Result<(), Defect> {
        let alignment = header.p_align.max(1);
        let agrees = alignment.is_power_of_two() && header.p_offset % alignment == header.p_vaddr % alignment;
        if !agrees || self.position_independent && alignment > MAX_ALIGNMENT {
            return Err(Defect::BadAlignment);
        }
        self.alignment = self.alignment.max(alignment);
        Ok(())
    }
}

/// Returns the contents of the file for a program header.
fn contents<'a>(file: &'a [u8], header: &ProgramHeader) -> Result<&'a [u8], Defect> {
    let end = header.p_offset.checked_add(header.p_filesz).ok_or(Defect::SizeOverflow)?;
    let range = usize::try_from(header.p_offset).ok().zip(usize::try_from(end).ok());
    range.and_then(|(start, end)| file.get(start..end)).ok_or(Defect::SegmentOutsideFile)
}

/// Returns the rights of a segment.
fn flags(flags: u32) -> Result<MapFlags, Defect> {
    if flags & PF_R == 0 {
        return Err(Defect::NotReadable);
    }
    match (flags & PF_W != 0, flags & PF_X != 0) {
        (true, true) => Err(Defect::WritableAndExecutable),
        (true, false) => Ok(MapFlags::READ | MapFlags::WRITE),
        (false, true) => Ok(MapFlags::READ | MapFlags::EXECUTE),
        (false, false) => Ok(MapFlags::READ),
    }
}
