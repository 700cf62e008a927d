//! Reading of ELF files: only what must be in memory.

use std::path::Path;

use miette::{IntoDiagnostic, Result, WrapErr, miette};
use object::elf::{self, FileHeader64, ProgramHeader64};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSymbol};
use tench_abi::layout::address;
use tench_abi::memory::{MapFlags, PAGE_SIZE};
use tench_loader::Program;
use tench_loader::relocate::Relocating;

use crate::workspace;

type Header = FileHeader64<Endianness>;

/// Offsets of the fields of an ELF header that say where the section table is.
const SECTION_TABLE_OFFSET: std::ops::Range<usize> = 0x28..0x30;
const SECTION_TABLE_COUNTS: std::ops::Range<usize> = 0x3c..0x40;
/// Offset of the field of an ELF header that says how many program headers there are.
const PROGRAM_HEADER_COUNT: std::ops::Range<usize> = 0x38..0x3a;
/// Offset in a program header of the first of its six long fields: offset, two addresses, two sizes, alignment.
const PROGRAM_HEADER_OFFSET: usize = 8;
const PAGE: u64 = PAGE_SIZE as u64;

/// A part of the file that must be in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Address in the program.
    pub virtual_address: u64,
    /// Address in the machine, which differs for the kernel.
    pub physical_address: u64,
    /// Content in the file; the rest up to `memory_size` is zero.
    pub content: Vec<u8>,
    /// Bytes in memory.
    pub memory_size: u64,
    /// Set if the segment is writable.
    pub writable: bool,
    /// Set if the segment is executable.
    pub executable: bool,
}

/// The parts of an executable that must be in memory, and its entry point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executable {
    /// Address of the first instruction.
    pub entry: u64,
    /// Segments.
    pub segments: Vec<Segment>,
}

impl Executable {
    /// Reads the executable at `path`.
    pub fn read(path: &Path) -> Result<Executable> {
        Self::parse(&workspace::read_file(path)?).wrap_err_with(|| format!("cannot use {}", path.display()))
    }

    /// Reads the kernel's executable at `path`, which corrects addresses in itself if it is not loaded where it was
    /// linked.
    pub fn read_kernel(path: &Path) -> Result<Executable> {
        Self::as_linked(&workspace::read_file(path)?).wrap_err_with(|| format!("cannot use {}", path.display()))
    }

    /// Reads an executable from its bytes. A position-independent one is moved to the lowest address at which programs
    /// can lie.
    pub fn parse(bytes: &[u8]) -> Result<Executable> {
        let (header, endian) = header(bytes)?;
        if header.e_type(endian) == elf::ET_DYN {
            return Self::moved(bytes, address::PROGRAM);
        }
        Self::as_linked(bytes)
    }

    /// Reads an executable at its linked address.
    fn as_linked(bytes: &[u8]) -> Result<Executable> {
        let (header, endian) = header(bytes)?;
        let mut segments = Vec::new();
        for segment in loadable(header, endian, bytes)? {
            let content = segment.data(endian, bytes).map_err(|()| miette!("a segment lies outside the file"))?;
            let flags = segment.p_flags(endian);
            segments.push(Segment {
                virtual_address: segment.p_vaddr(endian),
                physical_address: segment.p_paddr(endian),
                content: content.to_vec(),
                memory_size: segment.p_memsz(endian),
                writable: flags & elf::PF_W != 0,
                executable: flags & elf::PF_X != 0,
            });
        }
        if segments.is_empty() {
            return Err(miette!("it has nothing to load"));
        }
        Ok(Executable { entry: header.e_entry(endian), segments })
    }

    /// Relocates a position-independent program, as the loader does on the target.
    fn moved(bytes: &[u8], bias: u64) -> Result<Executable> {
        let mut program = Program::parse(bytes).map_err(|defect| miette!("{defect}"))?;
        program.move_by(bias);
        let mut relocating = Relocating::new(&program);
        let segments = program.segments.iter().map(|segment| {
            let address = segment.address + segment.lead;
            let mut content = segment.contents.to_vec();
            relocating.apply(address, &mut content);
            Segment {
                virtual_address: address,
                physical_address: address,
                content,
                memory_size: segment.size - segment.lead,
                writable: segment.flags.contains(MapFlags::WRITE),
                executable: segment.flags.contains(MapFlags::EXECUTE),
            }
        });
        Ok(Executable { entry: program.entry, segments: segments.collect() })
    }
}

fn header(bytes: &[u8]) -> Result<(&Header, Endianness)> {
    let header = Header::parse(bytes).into_diagnostic()?;
    let endian = header.endian().into_diagnostic()?;
    if header.e_machine(endian) != elf::EM_AARCH64 || !matches!(header.e_type(endian), elf::ET_EXEC | elf::ET_DYN) {
        return Err(miette!("it is not an executable for AArch64"));
    }
    Ok((header, endian))
}

fn loadable<'a>(header: &Header, endian: Endianness, bytes: &'a [u8]) -> Result<Vec<&'a ProgramHeader64<Endianness>>> {
    let all = header.program_headers(endian, bytes).into_diagnostic()?;
    Ok(all.iter().filter(|one| one.p_type(endian) == elf::PT_LOAD && one.p_memsz(endian) != 0).collect())
}

/// Returns the executable as it lies in the boot archive: without symbols and debugging information, and laid out so
/// that processes can map the file's own pages. A read-only part begins at a page of the file and ends with one, filled
/// up with zeros; a writable one is copied anyway, and keeps its size.
pub fn lay_out(bytes: &[u8]) -> Result<Vec<u8>> {
    let (header, endian) = header(bytes)?;
    let can_move = header.e_type(endian) == elf::ET_DYN;
    let table = header.e_phoff(endian) as usize;
    let headers = header.program_headers(endian, bytes).into_diagnostic()?;
    let table_end = table + size_of_val(headers);
    let outside = || miette!("a segment lies outside the file");
    let mut file = bytes.get(..table_end).ok_or_else(outside)?.to_vec();
    // New place of each loadable part of the old file: first byte, bytes, first byte in the new file.
    let mut moved = Vec::new();
    for (index, one) in headers.iter().enumerate().filter(|(_, one)| one.p_type(endian) == elf::PT_LOAD) {
        let content = one.data(endian, bytes).map_err(|()| outside())?;
        let (address, physical) = (one.p_vaddr(endian), one.p_paddr(endian));
        let lead = address % PAGE;
        // A position-independent program's address is aligned as its parts require; a fixed one has its own.
        let alignment = if can_move { one.p_align(endian).max(PAGE) } else { PAGE };
        let start = (file.len() as u64).next_multiple_of(alignment) + (address - lead) % alignment;
        file.resize(start as usize, 0);
        file.resize((start + lead) as usize, 0);
        file.extend(content);
        moved.push((one.p_offset(endian), content.len() as u64, start + lead));
        let is_constant = one.p_flags(endian) & elf::PF_W == 0 && one.p_memsz(endian) == content.len() as u64;
        let fields = if is_constant && !content.is_empty() {
            file.resize(file.len().next_multiple_of(PAGE as usize), 0);
            let size = file.len() as u64 - start;
            [start, address - lead, physical.saturating_sub(lead), size, size, alignment]
        } else {
            [start + lead, address, physical, content.len() as u64, one.p_memsz(endian), alignment]
        };
        let place = table + index * size_of_val(one) + PROGRAM_HEADER_OFFSET;
        for (number, field) in fields.into_iter().enumerate() {
            file[place + 8 * number..][..8].copy_from_slice(&field.to_le_bytes());
        }
    }
    // The other headers refer to bytes in a loadable part, or before them.
    for (index, one) in headers.iter().enumerate().filter(|(_, one)| one.p_type(endian) != elf::PT_LOAD) {
        let (offset, size) = (one.p_offset(endian), one.p_filesz(endian));
        let part = moved.iter().find(|(from, length, _)| offset >= *from && offset + size <= from + length);
        let place = match part {
            _ if size == 0 => 0,
            Some((from, _, to)) => offset - from + to,
            None => {
                let content = one.data(endian, bytes).map_err(|()| outside())?;
                file.resize(file.len().next_multiple_of(8), 0);
                file.extend(content);
                (file.len() - content.len()) as u64
            }
        };
        file[table + index * size_of_val(one) + PROGRAM_HEADER_OFFSET..][..8].copy_from_slice(&place.to_le_bytes());
    }
    file[SECTION_TABLE_OFFSET].fill(0);
    file[SECTION_TABLE_COUNTS].fill(0);
    Ok(file)
}

/// Adds read-only contents to an executable that is [laid out](lay_out), as a segment of its own behind the others.
/// They begin at a page and are filled up with zeros to the next.
pub fn with_segment(mut file: Vec<u8>, contents: &[u8]) -> Result<Vec<u8>> {
    let (header, endian) = header(&file)?;
    let headers = header.program_headers(endian, &*file).into_diagnostic()?;
    let table_end = header.e_phoff(endian) as usize + size_of_val(headers);
    let count = header.e_phnum(endian) + 1;
    let has_content =
        |one: &&ProgramHeader64<Endianness>| one.p_filesz(endian) > 0 && one.p_type(endian) != elf::PT_PHDR;
    let first = headers.iter().filter(has_content).map(|one| one.p_offset(endian)).min().unwrap_or(0);
    let end = headers.iter().map(|one| one.p_vaddr(endian).saturating_add(one.p_memsz(endian))).max().unwrap_or(0);
    let place = table_end..table_end + size_of::<ProgramHeader64<Endianness>>();
    if place.end as u64 > first {
        return Err(miette!("there is no room for another program header"));
    }
    let address = end.next_multiple_of(PAGE);
    file.resize(file.len().next_multiple_of(PAGE_SIZE), 0);
    let (start, size) = (file.len() as u64, contents.len().next_multiple_of(PAGE_SIZE) as u64);
    file.extend(contents);
    file.resize(file.len().next_multiple_of(PAGE_SIZE), 0);
    let words = [start, address, address, size, size, PAGE].map(u64::to_le_bytes).concat();
    let added = [&elf::PT_LOAD.to_le_bytes()[..], &elf::PF_R.to_le_bytes(), &words].concat();
    file[place].copy_from_slice(&added);
    file[PROGRAM_HEADER_COUNT].copy_from_slice(&count.to_le_bytes());
    Ok(file)
}

/// Returns the address of a function of an executable.
pub fn function(path: &Path, name: &str) -> Result<u64> {
    let bytes = workspace::read_file(path)?;
    let file = object::File::parse(&*bytes).into_diagnostic()?;
    let symbol = file.symbol_by_name(name).ok_or_else(|| miette!("{} has no function {name}", path.display()))?;
    Ok(symbol.address())
}

/// Returns names, without `prefix`, and sizes in bytes of the functions whose names begin with `prefix`.
pub fn functions(path: &Path, prefix: &str) -> Result<Vec<(String, u64)>> {
    let bytes = workspace::read_file(path)?;
    let file = object::File::parse(&*bytes).into_diagnostic()?;
    let named = |symbol: object::Symbol<'_, '_>| {
        let name = symbol.name().ok()?.strip_prefix(prefix)?;
        (symbol.size() > 0).then(|| (name.to_owned(), symbol.size()))
    };
    Ok(file.symbols().filter_map(named).collect())
}

/// Returns whether the bytes begin like an ELF file.
pub fn is_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(&elf::ELFMAG)
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A part of a made-up executable: address, flags, content, bytes in memory.
    pub type Part<'a> = (u64, u32, &'a [u8], u64);

    /// Returns an executable with these parts, and garbage after them in place of debugging information.
    pub fn executable(entry: u64, parts: &[Part]) -> Vec<u8> {
        let mut content: Vec<u8> = Vec::new();
        let mut headers = Vec::new();
        let first = 64 + 56 * parts.len();
        for &(address, flags, bytes, memory_size) in parts {
            let offset = (first + content.len()) as u64;
            headers.extend(elf::PT_LOAD.to_le_bytes());
            headers.extend(flags.to_le_bytes());
            for field in [offset, address, address & 0xffff_ffff, bytes.len() as u64, memory_size, 16] {
                headers.extend(field.to_le_bytes());
            }
            content.extend(bytes);
        }
        let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        file.extend([2u8, 0, 183, 0, 1, 0, 0, 0]);
        for field in [entry, 64, (first + content.len()) as u64] {
            file.extend(field.to_le_bytes());
        }
        file.extend([0u8; 4]);
        for field in [64, 56, parts.len() as u16, 64, 3, 2] {
            file.extend(field.to_le_bytes());
        }
        file.extend(headers);
        file.extend(content);
        file.extend(b"section headers and debugging information");
        file
    }

    #[test]
    fn segments_are_read() {
        let parts: [Part; 2] =
            [(0x20_0000, elf::PF_R | elf::PF_X, b"code", 4), (0x20_1000, elf::PF_R | elf::PF_W, b"data", 100)];
        let file = executable(0x20_0000, &parts);
        let read = Executable::parse(&file).unwrap();
        assert_eq!(read.entry, 0x20_0000);
        assert_eq!(read.segments.len(), 2);
        assert!(read.segments[0].executable && !read.segments[0].writable);
        assert_eq!((&read.segments[1].content[..], read.segments[1].memory_size), (&b"data"[..], 100));
    }

    #[test]
    fn read_only_data_fills_whole_pages_of_the_file() {
        let note = (0x20_0010, elf::PF_R, &b"a note"[..], 6);
        let parts: [Part; 4] = [
            (0x20_0010, elf::PF_R, b"a note and constants", 20),
            (0x20_1ff0, elf::PF_R | elf::PF_X, &[0x1f; 0x1010], 0x1010),
            (0x20_4010, elf::PF_R | elf::PF_W, b"data", 100),
            note,
        ];
        let mut file = executable(0x20_2000, &parts);
        // The last header is a note's, which lies in the first part.
        let last = 64 + 3 * 56;
        file[last..last + 4].copy_from_slice(&elf::PT_NOTE.to_le_bytes());
        let first = u64::from_le_bytes(file[64 + 8..][..8].try_into().unwrap());
        file[last + 8..last + 16].copy_from_slice(&first.to_le_bytes());

        let laid_out = lay_out(&file).unwrap();
        let read = Executable::parse(&laid_out).unwrap();
        assert_eq!(read.entry, 0x20_2000);
        let ranges: Vec<_> = read.segments.iter().map(|one| (one.virtual_address, one.memory_size)).collect();
        assert_eq!(ranges, [(0x20_0000, 0x1000), (0x20_1000, 0x2000), (0x20_4010, 100)]);
        let mut code = vec![0; 0x2000];
        code[0xff0..].fill(0x1f);
        assert_eq!(read.segments[1].content, code);
        assert_eq!(&read.segments[0].content[0x10..0x24], b"a note and constants");
        assert_eq!(read.segments[2].content, b"data");
        let offsets: Vec<u64> =
            (0..4).map(|n| u64::from_le_bytes(laid_out[64 + n * 56 + 8..][..8].try_into().unwrap())).collect();
        assert_eq!(offsets, [0x1000, 0x2000, 0x4010, 0x1010]);
        assert_eq!(laid_out.len(), 0x4014, "nothing follows");
    }

    #[test]
    fn contents_are_added_as_a_segment() {
        let file = lay_out(&tench_corpus::good::Movable::new().write()).unwrap();
        let before = Executable::parse(&file).unwrap();
        let contents = [7; PAGE_SIZE + 1];
        let more = with_segment(file, &contents).unwrap();
        let program = Program::parse(&more).unwrap();
        let last = program.segments.last().unwrap();
        assert_eq!((last.lead, last.size, last.flags), (0, 2 * PAGE, MapFlags::READ));
        assert_eq!((&last.contents[..PAGE_SIZE + 1], last.contents.len()), (&contents[..], 2 * PAGE_SIZE));
        assert_eq!((last.contents.as_ptr().addr() - more.as_ptr().addr()) % PAGE_SIZE, 0);
        let after = Executable::parse(&more).unwrap();
        assert_eq!(after.segments[..after.segments.len() - 1], before.segments, "the others are as before");
        // A table that other contents follow at once has no room.
        assert!(with_segment(executable(0, &[(0, elf::PF_R, b"x", 1)]), &contents).is_err());
    }

    #[test]
    fn position_independent_programs_are_relocated() {
        let file = tench_corpus::good::Movable::new().write();
        let read = Executable::parse(&lay_out(&file).unwrap()).unwrap();
        assert_eq!(read.entry, address::PROGRAM + 0x1000);
        let constants = &read.segments[2];
        assert!(!constants.writable && constants.virtual_address == address::PROGRAM + 0x2000);
        let words: Vec<u64> =
            constants.content.chunks(8).map(|word| word.try_into().map(u64::from_le_bytes).unwrap()).collect();
        assert_eq!(words, [address::PROGRAM + 0x100c, 7, 0, address::PROGRAM + 0x3000]);
    }

    #[test]
    fn files_that_are_no_executables_are_refused() {
        let mut shared = executable(0, &[(0, elf::PF_R, b"x", 1)]);
        shared[16] = 3;
        let mut cut = executable(0, &[(0, elf::PF_R, b"x", 1)]);
        cut.truncate(100);
        // Nothing marks these as programs.
        for bytes in [&b"#!/bin/sh"[..], &[], &shared, &cut, &executable(0, &[])] {
            assert!(Executable::parse(bytes).is_err());
        }
    }
}
