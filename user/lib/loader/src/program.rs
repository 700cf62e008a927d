//! What an ELF file asks to be loaded, checked until nothing in it can surprise the loader.

use arrayvec::ArrayVec;
use elf::ElfBytes;
use elf::abi::{EM_AARCH64, ET_EXEC, PF_R, PF_W, PF_X, PT_INTERP, PT_LOAD, PT_NOTE};
use elf::endian::LittleEndian;
use elf::file::Class;
use elf::note::Note;
use elf::segment::ProgramHeader;
use tench_abi::layout::address;
use tench_abi::memory::{MapFlags, PAGE_SIZE};
use tench_abi::process::{MAX_SEGMENTS, note};
use tench_procs_client::protocol::Defect;

const PAGE: u64 = PAGE_SIZE as u64;

/// A segment: whole pages with the same rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// First address, a multiple of the page size.
    pub address: u64,
    /// Bytes, a multiple of the page size, not 0.
    pub size: u64,
    /// Rights: `READ`, and at most one of `WRITE` and `EXECUTE`.
    pub flags: MapFlags,
    /// What the file has for it; the rest is zero.
    pub contents: &'a [u8],
    /// Where `contents` begins, from `address`; less than a page.
    pub lead: u64,
}

impl Segment<'_> {
    /// One past the last address.
    pub const fn end(&self) -> u64 {
        self.address + self.size
    }
}

/// A program that can be loaded.
#[derive(Clone, Debug)]
pub struct Program<'a> {
    /// Address of the first instruction.
    pub entry: u64,
    /// Its segments, by rising address, with no page in common.
    pub segments: ArrayVec<Segment<'a>, MAX_SEGMENTS>,
    /// Whether it makes its main thread's stack itself ([`note::OWN_STACK`]).
    pub makes_stack: bool,
}

impl<'a> Program<'a> {
    /// Reads an ELF file.
    pub fn parse(file: &'a [u8]) -> Result<Program<'a>, Defect> {
        let elf = ElfBytes::<LittleEndian>::minimal_parse(file).map_err(|error| match error {
            elf::parse::ParseError::UnsupportedElfEndianness(_) => Defect::WrongMachine,
            _ => Defect::NotElf,
        })?;
        if elf.ehdr.class != Class::ELF64 || elf.ehdr.e_machine != EM_AARCH64 {
            return Err(Defect::WrongMachine);
        }
        if elf.ehdr.e_type != ET_EXEC {
            return Err(Defect::NotExecutable);
        }
        let mut segments = ArrayVec::new();
        let mut makes_stack = false;
        for header in elf.segments().ok_or(Defect::NoSegments)?.iter() {
            match header.p_type {
                PT_INTERP => return Err(Defect::NeedsInterpreter),
                PT_LOAD if header.p_memsz > 0 => {
                    let segment = segment(file, &header)?;
                    segments.try_push(segment).map_err(|_| Defect::TooManySegments)?;
                }
                PT_NOTE => makes_stack |= has_note(&elf, &header),
                _ => {}
            }
        }
        segments.sort_unstable_by_key(|segment| segment.address);
        if segments.is_empty() {
            return Err(Defect::NoSegments);
        }
        if segments.windows(2).any(|pair| pair[0].end() > pair[1].address) {
            return Err(Defect::SegmentsOverlap);
        }
        let program = Program { entry: elf.ehdr.e_entry, segments, makes_stack };
        match program.segment_at(program.entry) {
            Some(segment) if segment.flags.contains(MapFlags::EXECUTE) && program.entry.is_multiple_of(4) => {
                Ok(program)
            }
            _ => Err(Defect::BadEntry),
        }
    }

    /// The segment that shows `address`.
    pub fn segment_at(&self, address: u64) -> Option<&Segment<'a>> {
        self.segments.iter().find(|segment| (segment.address..segment.end()).contains(&address))
    }

    /// Bytes of all segments.
    pub fn size(&self) -> u64 {
        self.segments.iter().map(|segment| segment.size).sum()
    }
}

/// Whether a part of the file has the note with which a program says that it makes its stack itself. What is no note, or
/// one of somebody else, says nothing: the program gets a stack that is there.
fn has_note(elf: &ElfBytes<LittleEndian>, header: &ProgramHeader) -> bool {
    elf.segment_data_as_notes(header).is_ok_and(|mut notes| {
        notes.any(|found| match found {
            Note::Unknown(found) if found.name == note::NAME && found.n_type == u64::from(note::KIND) => {
                let flags = found.desc.try_into().map_or(0, u32::from_le_bytes);
                flags & note::OWN_STACK != 0
            }
            _ => false,
        })
    })
}

/// Checks one program header.
fn segment<'a>(file: &'a [u8], header: &ProgramHeader) -> Result<Segment<'a>, Defect> {
    if header.p_filesz > header.p_memsz {
        return Err(Defect::BadSegmentSize);
    }
    let end = header.p_vaddr.checked_add(header.p_memsz).ok_or(Defect::BadSegmentSize)?;
    // The first page stays unmapped against null dereferences; from DYNAMIC on, addresses are given away at run time.
    if header.p_vaddr < PAGE || end > address::DYNAMIC {
        return Err(Defect::BadAddress);
    }
    let file_end = header.p_offset.checked_add(header.p_filesz).ok_or(Defect::SegmentOutsideFile)?;
    let range = usize::try_from(header.p_offset).ok().zip(usize::try_from(file_end).ok());
    let contents = range.and_then(|(start, end)| file.get(start..end)).ok_or(Defect::SegmentOutsideFile)?;
    let start = header.p_vaddr & !(PAGE - 1);
    Ok(Segment {
        address: start,
        size: end.next_multiple_of(PAGE) - start,
        flags: flags(header.p_flags)?,
        contents,
        lead: header.p_vaddr - start,
    })
}

/// Rights of a segment.
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
