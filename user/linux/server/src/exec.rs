//! Starting a program: its file, its memory, and what it finds on its stack.
//!
//! ```text
//!   TOP ┌──────────────────────┐
//!       │ name of the file     │  strings: arguments, environment, 16 random bytes, platform
//!       │ strings              │
//!       ├──────────────────────┤
//!       │ auxiliary vector     │  pairs that end with AT_NULL
//!       │ environment, 0       │
//!       │ arguments, 0         │
//!       │ number of arguments  │ ◀─ sp, a multiple of 16
//!       └──────────────────────┘  grows downwards
//! ```

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use elf::abi::{EM_AARCH64, ET_DYN, ET_EXEC, PF_R, PF_W, PF_X, PT_INTERP, PT_LOAD};
use elf::endian::LittleEndian;
use elf::file::{Class, FileHeader, parse_ident};
use elf::parse::ParseAt;
use elf::segment::ProgramHeader;
use tench_linux_files::MAX_PATH;
use tench_linux_memory::{
    Backing, Errno, Hardware, MapRequest, Memory, ObjectId, PAGE_SIZE, Placement, Rights, Space, round_up,
};

/// Address behind the last one that a process may use: Tench's programs have 47 bits.
const END: u64 = 1 << 47;
/// Addresses that a process may use.
const LIMITS: Range<u64> = 0x1_0000..END;
/// Where the stack ends.
const TOP: u64 = END - PAGE_SIZE;
/// Bytes of the stack that are an area from the beginning; it grows.
const STACK: u64 = 132 * 1024;
/// Where areas without an address are put, below the largest stack.
const ARENA: Range<u64> = 0x1_0000..TOP - (64 << 20);
/// Where a program that can be anywhere is put.
const PROGRAM: u64 = 0x5555_5555_0000;
/// The most bytes of arguments and environment, with their pointers.
pub(crate) const MAX_STRINGS: usize = 2 << 20;

/// A program that is ready to run.
#[derive(Debug)]
pub struct Image<H: Hardware> {
    /// Memory of the program.
    pub space: Space<H>,
    /// Address of the first instruction.
    pub entry: u64,
    /// Stack pointer.
    pub stack: u64,
    /// Address behind the program, where the heap begins.
    pub heap: u64,
    /// Addresses of its parts.
    pub layout: Layout,
}

/// Addresses of the parts of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Code of the program's file.
    pub code: Range<u64>,
    /// Data of that file.
    pub data: Range<u64>,
    /// The stack pointer with which it begins.
    pub stack: u64,
    /// The strings of its arguments.
    pub arguments: Range<u64>,
    /// The strings of its environment.
    pub environment: Range<u64>,
    /// The auxiliary vector.
    pub auxiliary: Range<u64>,
}

/// Everything with which a program is started.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// Path of the file.
    pub path: &'a [u8],
    /// Arguments; the first is the program's name.
    pub arguments: &'a [Vec<u8>],
    /// Environment.
    pub environment: &'a [Vec<u8>],
    /// Random bytes, for the program's own use.
    pub random: [u8; 16],
    /// Identity of the program.
    pub identity: Identity,
    /// The page of [`TRAMPOLINE`].
    pub trampoline: ObjectId,
}

/// The identity that a program is told in its auxiliary vector.
#[derive(Clone, Copy, Debug, Default)]
pub struct Identity {
    /// The real and the effective user.
    pub users: [u32; 2],
    /// The real and the effective group.
    pub groups: [u32; 2],
    /// The program must not trust its caller (`AT_SECURE`).
    pub distrusts: bool,
}

/// Address of code that a program finds in its memory: behind the stack.
const SHARED_CODE: u64 = TOP;
/// Address of code that ends a signal's handler, if the program has none.
pub const TRAMPOLINE: u64 = SHARED_CODE + crate::vdso::END_OF_HANDLER;

/// Size in bytes of the part of an ELF file's header that says how to read the rest, and of the header.
const IDENTIFICATION_SIZE: usize = 16;
const HEADER_SIZE: usize = 64;
/// Size of a program header in bytes.
const SEGMENT_SIZE: usize = 56;
/// The largest alignment that a file that can be anywhere gets, in bytes.
const MAX_ALIGNMENT: u64 = 2 << 20;
/// The most bytes of all program headers.
const MAX_SEGMENTS: usize = 64 * 1024;

/// Where a file was loaded.
struct Loaded {
    /// Number that was added to the file's addresses.
    base: u64,
    entry: u64,
    /// Address of the program headers.
    program_headers: u64,
    count: u16,
    /// Address behind the last segment.
    end: u64,
    /// Addresses of code and of data.
    code: Range<u64>,
    data: Range<u64>,
    /// Path of the program that is to load the rest.
    interpreter: Option<Vec<u8>>,
}

fn read<H: Hardware>(memory: &mut Memory<H>, object: ObjectId, offset: u64, length: usize) -> Result<Vec<u8>, Errno> {
    let mut bytes = vec![0; length];
    let count = memory.objects.read(&mut memory.hardware, object, offset, &mut bytes);
    if count < length { Err(Errno::ENOEXEC) } else { Ok(bytes) }
}

fn header<H: Hardware>(memory: &mut Memory<H>, object: ObjectId) -> Result<FileHeader<LittleEndian>, Errno> {
    let bytes = read(memory, object, 0, HEADER_SIZE)?;
    let (identification, rest) = bytes.split_at(IDENTIFICATION_SIZE);
    let identification = parse_ident::<LittleEndian>(identification).map_err(|_| Errno::ENOEXEC)?;
    let is_wide = identification.1 == Class::ELF64;
    let header = is_wide.then(|| FileHeader::parse_tail(identification, rest).ok()).flatten();
    let header = header.ok_or(Errno::ENOEXEC)?;
    let is_program = matches!(header.e_type, ET_EXEC | ET_DYN) && header.e_machine == EM_AARCH64;
    if is_program && usize::from(header.e_phentsize) == SEGMENT_SIZE { Ok(header) } else { Err(Errno::ENOEXEC) }
}

fn segments<H: Hardware>(
    memory: &mut Memory<H>,
    object: ObjectId,
    header: &FileHeader<LittleEndian>,
) -> Result<Vec<ProgramHeader>, Errno> {
    let length = usize::from(header.e_phnum) * SEGMENT_SIZE;
    // As on Linux. More would also be more than what is small.
    if length > MAX_SEGMENTS {
        return Err(Errno::ENOEXEC);
    }
    let bytes = read(memory, object, header.e_phoff, length)?;
    let segment = |record| ProgramHeader::parse_at(LittleEndian, Class::ELF64, &mut 0, record);
    bytes.chunks_exact(SEGMENT_SIZE).map(|record| segment(record).map_err(|_| Errno::ENOEXEC)).collect()
}

/// Returns the number that is added to the addresses of a file that can be anywhere: so that it begins at `place` if
/// that is given and free, or else as high as possible, and is aligned as its segments ask for.
fn base<H: Hardware>(
    space: &Space<H>,
    segments: &[ProgramHeader],
    (first, last): (u64, u64),
    place: Option<u64>,
) -> Result<u64, Errno> {
    let alignments = segments.iter().filter(|segment| segment.p_type == PT_LOAD).map(|segment| segment.p_align);
    let wanted = alignments.filter(|alignment| alignment.is_power_of_two()).max().unwrap_or(PAGE_SIZE);
    let alignment = wanted.clamp(PAGE_SIZE, MAX_ALIGNMENT);
    let (lead, length) = (first % alignment, last - first);
    let is_free = |place: &u64| space.areas().within(*place..place.saturating_add(lead + length)).next().is_none();
    let start = match place.filter(is_free) {
        Some(place) => place,
        None => {
            let length = length.checked_add(2 * alignment).ok_or(Errno::ENOMEM)?;
            space.areas().find_free(length, ARENA).ok_or(Errno::ENOMEM)?.next_multiple_of(alignment)
        }
    };
    Ok((start + lead).wrapping_sub(first))
}

/// Maps a file's segments.
fn load<H: Hardware>(
    memory: &mut Memory<H>,
    space: &mut Space<H>,
    object: ObjectId,
    place: Option<u64>,
) -> Result<Loaded, Errno> {
    let header = header(memory, object)?;
    let segments = segments(memory, object, &header)?;
    let loads = || segments.iter().filter(|segment| segment.p_type == PT_LOAD);
    let first = loads().map(|segment| segment.p_vaddr).min().ok_or(Errno::ENOEXEC)? & !(PAGE_SIZE - 1);
    let ends = loads().map(|segment| segment.p_vaddr.checked_add(segment.p_memsz).and_then(round_up));
    let last = ends.collect::<Option<Vec<u64>>>().and_then(|ends| ends.into_iter().max()).ok_or(Errno::ENOEXEC)?;
    let base = if header.e_type == ET_DYN { base(space, &segments, (first, last), place)? } else { 0 };
    for segment in loads() {
        map_segment(memory, space, object, segment, base)?;
    }
    let table = header.e_phoff;
    let in_memory = loads().find(|segment| segment.p_offset <= table && table - segment.p_offset < segment.p_filesz);
    let program_headers =
        in_memory.map_or(0, |segment| base.wrapping_add(segment.p_vaddr).wrapping_add(table - segment.p_offset));
    let interpreter = interpreter(memory, object, &segments)?;
    let entry = base.wrapping_add(header.e_entry);
    let end = base.wrapping_add(last);
    let (code, data) = (extent(&segments, base, PF_X), extent(&segments, base, PF_W));
    Ok(Loaded { base, entry, program_headers, count: header.e_phnum, end, code, data, interpreter })
}

/// Returns the addresses of the contents of all segments with a flag.
fn extent(segments: &[ProgramHeader], base: u64, flag: u32) -> Range<u64> {
    let all = || segments.iter().filter(|segment| segment.p_type == PT_LOAD && segment.p_flags & flag != 0);
    let start = all().map(|segment| segment.p_vaddr).min().unwrap_or(0);
    let end = all().map(|segment| segment.p_vaddr.saturating_add(segment.p_filesz)).max().unwrap_or(start);
    base.wrapping_add(start)..base.wrapping_add(end)
}

/// Returns the path of the program that is to load the rest of a file, if the file names one.
fn interpreter<H: Hardware>(
    memory: &mut Memory<H>,
    object: ObjectId,
    segments: &[ProgramHeader],
) -> Result<Option<Vec<u8>>, Errno> {
    let Some(segment) = segments.iter().find(|segment| segment.p_type == PT_INTERP) else { return Ok(None) };
    if segment.p_filesz > MAX_PATH as u64 + 1 {
        return Err(Errno::ENOEXEC);
    }
    let mut path = read(memory, object, segment.p_offset, segment.p_filesz as usize)?;
    // A zero ends it.
    if path.pop() != Some(0) || path.is_empty() || path.contains(&0) { Err(Errno::ENOEXEC) } else { Ok(Some(path)) }
}

/// Returns the rights of a segment.
fn rights(flags: u32) -> Rights {
    let mut rights = Rights::empty();
    rights.set(Rights::EXECUTE, flags & PF_X != 0);
    rights.set(Rights::WRITE, flags & PF_W != 0);
    rights.set(Rights::READ, flags & (PF_R | PF_W | PF_X) != 0);
    rights
}

fn map_segment<H: Hardware>(
    memory: &mut Memory<H>,
    space: &mut Space<H>,
    object: ObjectId,
    segment: &ProgramHeader,
    base: u64,
) -> Result<(), Errno> {
    let (address, offset, memory_size, file_size) =
        (segment.p_vaddr, segment.p_offset, segment.p_memsz, segment.p_filesz);
    if file_size > memory_size || address % PAGE_SIZE != offset % PAGE_SIZE {
        return Err(Errno::ENOEXEC);
    }
    let within = address % PAGE_SIZE;
    let start = base.wrapping_add(address - within);
    let (rights, allowed) = (rights(segment.p_flags), Rights::all());
    let request = MapRequest {
        placement: Placement::FixedIfFree(start),
        length: within + file_size,
        rights,
        allowed,
        shared: false,
        backing: Backing::Object(object, offset - within),
        grows: false,
    };
    let from_file = round_up(within + file_size).ok_or(Errno::ENOEXEC)?;
    if file_size > 0 {
        space.map(memory, &request)?;
    }
    let all = round_up(within + memory_size).ok_or(Errno::ENOEXEC)?;
    let from_file = if file_size > 0 { from_file } else { 0 };
    if all > from_file {
        let placement = Placement::FixedIfFree(start + from_file);
        let rest = MapRequest { placement, length: all - from_file, backing: Backing::Anonymous, ..request };
        space.map(memory, &rest)?;
    }
    // What lies behind the contents in their last page comes from the file, and has to be zero.
    let end = within + file_size;
    if memory_size > file_size && file_size > 0 && !end.is_multiple_of(PAGE_SIZE) && rights.contains(Rights::WRITE) {
        let zeros = vec![0; (PAGE_SIZE - end % PAGE_SIZE) as usize];
        if space.write(memory, start + end, &zeros) < zeros.len() {
            return Err(Errno::ENOMEM);
        }
    }
    Ok(())
}

/// Kinds of entries of the auxiliary vector.
mod auxiliary {
    pub const NULL: u64 = 0;
    pub const PROGRAM_HEADERS: u64 = 3;
    pub const PROGRAM_HEADER_SIZE: u64 = 4;
    pub const PROGRAM_HEADER_COUNT: u64 = 5;
    pub const PAGE_SIZE: u64 = 6;
    pub const BASE: u64 = 7;
    pub const FLAGS: u64 = 8;
    pub const ENTRY: u64 = 9;
    pub const USER: u64 = 11;
    pub const EFFECTIVE_USER: u64 = 12;
    pub const GROUP: u64 = 13;
    pub const EFFECTIVE_GROUP: u64 = 14;
    pub const PLATFORM: u64 = 15;
    pub const CAPABILITIES: u64 = 16;
    pub const CLOCK_TICKS: u64 = 17;
    pub const SECURE: u64 = 23;
    pub const RANDOM: u64 = 25;
    pub const CAPABILITIES_2: u64 = 26;
    pub const FILE_NAME: u64 = 31;
    pub const SHARED_CODE: u64 = 33;
    pub const MIN_SIGNAL_STACK: u64 = 51;
}

/// Features of the processor that programs may use: floating point, vectors, AES, SHA-1 and SHA-2, CRC-32.
pub(crate) const FEATURES: u64 = 0b1111_1011;

impl<H: Hardware> Image<H> {
    /// Loads a program from a file. `open` returns the contents of the program that loads the rest, if the file names
    /// one.
    ///
    /// # Errors
    /// - `ENOEXEC`: the file is no program for this machine.
    /// - `E2BIG`: arguments and environment are too long.
    /// - `ENOMEM`, and what `open` returns.
    pub fn load(
        memory: &mut Memory<H>,
        object: ObjectId,
        start: &Start<'_>,
        open: impl FnOnce(&[u8]) -> Result<ObjectId, Errno>,
    ) -> Result<Image<H>, Errno> {
        // Before anything is made, which then would have to be ended.
        header(memory, object)?;
        let mut space = Space::new(memory, LIMITS, ARENA)?;
        match Image::fill(memory, &mut space, object, start, open) {
            Ok((entry, heap, layout)) => Ok(Image { space, entry, stack: layout.stack, heap, layout }),
            Err(error) => {
                space.end(memory);
                Err(error)
            }
        }
    }

    fn fill(
        memory: &mut Memory<H>,
        space: &mut Space<H>,
        object: ObjectId,
        start: &Start<'_>,
        open: impl FnOnce(&[u8]) -> Result<ObjectId, Errno>,
    ) -> Result<(u64, u64, Layout), Errno> {
        let program = load(memory, space, object, Some(PROGRAM))?;
        let loader = match &program.interpreter {
            Some(path) => {
                let object = open(path)?;
                Some(load(memory, space, object, None)?)
            }
            None => None,
        };
        let request = MapRequest {
            placement: Placement::FixedIfFree(TOP - STACK),
            length: STACK,
            rights: Rights::READ | Rights::WRITE,
            allowed: Rights::all(),
            shared: false,
            backing: Backing::Anonymous,
            grows: true,
        };
        space.map(memory, &request)?;
        let trampoline = MapRequest {
            placement: Placement::FixedIfFree(SHARED_CODE),
            length: PAGE_SIZE,
            rights: Rights::READ | Rights::EXECUTE,
            backing: Backing::Object(start.trampoline, 0),
            grows: false,
            ..request
        };
        space.map(memory, &trampoline)?;
        let layout = fill_stack(memory, space, &program, loader.as_ref(), start)?;
        Ok((loader.map_or(program.entry, |loader| loader.entry), program.end, layout))
    }
}

/// Returns the auxiliary vector of a program. The addresses are those of random bytes, of the file's name and of the
/// platform's.
fn auxiliary_vector(
    program: &Loaded,
    loader: Option<&Loaded>,
    identity: Identity,
    [random, name, platform]: [u64; 3],
) -> [(u64, u64); 21] {
    [
        (auxiliary::CAPABILITIES, FEATURES),
        (auxiliary::PAGE_SIZE, PAGE_SIZE),
        (auxiliary::CLOCK_TICKS, 100),
        (auxiliary::PROGRAM_HEADERS, program.program_headers),
        (auxiliary::PROGRAM_HEADER_SIZE, SEGMENT_SIZE as u64),
        (auxiliary::PROGRAM_HEADER_COUNT, program.count.into()),
        (auxiliary::BASE, loader.map_or(0, |loader| loader.base)),
        (auxiliary::FLAGS, 0),
        (auxiliary::ENTRY, program.entry),
        (auxiliary::USER, identity.users[0].into()),
        (auxiliary::EFFECTIVE_USER, identity.users[1].into()),
        (auxiliary::GROUP, identity.groups[0].into()),
        (auxiliary::EFFECTIVE_GROUP, identity.groups[1].into()),
        (auxiliary::SECURE, identity.distrusts.into()),
        (auxiliary::RANDOM, random),
        (auxiliary::CAPABILITIES_2, 0),
        (auxiliary::FILE_NAME, name),
        (auxiliary::PLATFORM, platform),
        (auxiliary::MIN_SIGNAL_STACK, 4720),
        (auxiliary::SHARED_CODE, SHARED_CODE),
        (auxiliary::NULL, 0),
    ]
}

/// Writes what a program finds on its stack. Returns where that is.
fn fill_stack<H: Hardware>(
    memory: &mut Memory<H>,
    space: &mut Space<H>,
    program: &Loaded,
    loader: Option<&Loaded>,
    start: &Start<'_>,
) -> Result<Layout, Errno> {
    let mut strings = Vec::new();
    let mut push = |string: &[u8]| {
        let offset = strings.len() as u64;
        strings.extend_from_slice(string);
        strings.push(0);
        offset
    };
    let arguments: Vec<u64> = start.arguments.iter().map(|argument| push(argument)).collect();
    let environment: Vec<u64> = start.environment.iter().map(|variable| push(variable)).collect();
    let (name, platform, random) = (push(start.path), push(b"aarch64"), push(&start.random));
    if strings.len() > MAX_STRINGS {
        return Err(Errno::E2BIG);
    }
    let bottom = (TOP - strings.len() as u64) & !15;
    let mut words = vec![arguments.len() as u64];
    words.extend(arguments.iter().map(|offset| bottom + offset));
    words.push(0);
    words.extend(environment.iter().map(|offset| bottom + offset));
    words.push(0);
    let strings_at = [random, name, platform].map(|offset| bottom + offset);
    let pairs = auxiliary_vector(program, loader, start.identity, strings_at);
    words.extend(pairs.iter().flat_map(|(kind, value)| [*kind, *value]));
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let stack = (bottom - bytes.len() as u64) & !15;
    let written = space.write(memory, stack, &bytes) + space.write(memory, bottom, &strings);
    if written < bytes.len() + strings.len() {
        return Err(Errno::ENOMEM);
    }
    let auxiliary = stack + (bytes.len() - 16 * pairs.len()) as u64..stack + bytes.len() as u64;
    // The environment's strings lie behind those of the arguments, and the file's name behind them.
    let middle = bottom + environment.first().unwrap_or(&name);
    let (arguments, environment) = (bottom..middle, middle..bottom + name);
    let (code, data) = (program.code.clone(), program.data.clone());
    Ok(Layout { code, data, stack, arguments, environment, auxiliary })
}
