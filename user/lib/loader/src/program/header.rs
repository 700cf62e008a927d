//! The ELF header of a file, and its table of program headers.

use elf::abi::{EM_AARCH64, ET_DYN, ET_EXEC, EV_CURRENT};
use elf::endian::LittleEndian;
use elf::file::{Class, FileHeader, parse_ident};
use elf::parse::{ParseAt, ParseError};
use elf::segment::ProgramHeader;
use tench_procs_interface::protocol::Defect;

/// Size in bytes of the part of the header that says how to read the rest.
const IDENTIFICATION: usize = 16;
/// Size of the header in bytes.
const SIZE: usize = 64;
/// Size of a program header in bytes.
const ENTRY_SIZE: usize = 56;
/// The first bytes of every ELF file.
const MAGIC: &[u8] = b"\x7fELF";

/// Reads the header of a file, which must be a program for this machine.
pub fn read(file: &[u8]) -> Result<FileHeader<LittleEndian>, Defect> {
    if !file.starts_with(MAGIC) {
        return Err(Defect::NotElf);
    }
    let (identification, rest) = file.split_at_checked(IDENTIFICATION).ok_or(Defect::HeaderCutOff)?;
    let identification = parse_ident::<LittleEndian>(identification).map_err(|error| match error {
        ParseError::UnsupportedElfClass(_) => Defect::WrongClass,
        ParseError::UnsupportedElfEndianness(_) => Defect::WrongByteOrder,
        ParseError::UnsupportedVersion(_) => Defect::WrongVersion,
        _ => Defect::NotElf,
    })?;
    if identification.1 != Class::ELF64 {
        return Err(Defect::WrongClass);
    }
    let rest = rest.get(..SIZE - IDENTIFICATION).ok_or(Defect::HeaderCutOff)?;
    let header = FileHeader::parse_tail(identification, rest).map_err(|_| Defect::HeaderCutOff)?;
    if header.version != u32::from(EV_CURRENT) {
        return Err(Defect::WrongVersion);
    }
    if header.e_machine != EM_AARCH64 {
        return Err(Defect::WrongMachine);
    }
    if !matches!(header.e_type, ET_EXEC | ET_DYN) {
        return Err(Defect::NotExecutable);
    }
    Ok(header)
}

/// Returns the program headers of a file.
pub fn program_headers(
    file: &[u8],
    header: &FileHeader<LittleEndian>,
) -> Result<impl Iterator<Item = Result<ProgramHeader, Defect>>, Defect> {
    if header.e_phnum == 0 {
        return Err(Defect::NoSegments);
    }
    if usize::from(header.e_phentsize) != ENTRY_SIZE {
        return Err(Defect::BadHeaderSize);
    }
    let size = usize::from(header.e_phnum) * ENTRY_SIZE;
    let table = usize::try_from(header.e_phoff).ok().and_then(|start| file.get(start..)?.get(..size));
    let table = table.ok_or(Defect::HeadersOutsideFile)?;
    Ok(table.chunks_exact(ENTRY_SIZE).map(|entry| {
        let read = ProgramHeader::parse_at(LittleEndian, Class::ELF64, &mut 0, entry);
        read.map_err(|_| Defect::HeadersOutsideFile)
    }))
}
