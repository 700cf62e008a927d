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

use tench_linux_calls::records::{u16_at, u32_at, u64_at};
use tench_linux_memory::{
    Backing, Errno, Hardware, MapRequest, Memory, ObjectId, PAGE_SIZE, Placement, Rights, Space, round_up,
};

/// Address behind the last one that a process may use: Tench's programs have 47 bits.
const END: u64 = 1 << 47;
/// Addresses that a process may use.
const LIMITS: core::ops::Range<u64> = 0x1_0000..END;
/// Where the stack ends.
const TOP: u64 = END - PAGE_SIZE;
/// Bytes of the stack that are an area from the beginning; it grows.
const STACK: u64 = 132 * 1024;
/// Where areas without an address are put, below the largest stack.
const ARENA: core::ops::Range<u64> = 0x1_0000..TOP - (64 << 20);
/// Where a program that can be anywhere is put.
const PROGRAM: u64 = 0x5555_5555_0000;
/// The longest strings together.
const MAX_STRINGS: usize = 128 * 1024;

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
    /// The page of [`TRAMPOLINE`].
    pub trampoline: ObjectId,
}

/// Address of code that ends a signal's handler, if the program has none: behind the stack.
pub const TRAMPOLINE: u64 = TOP;
/// That code: `mov x8, #139` (`rt_sigreturn`), `svc #0`.
pub static TRAMPOLINE_CODE: &[u8] = &[0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4];

/// The head of an ELF file.
struct Header {
    is_movable: bool,
    entry: u64,
    program_headers: u64,
    count: u16,
}

/// A program header.
#[derive(Clone, Copy)]
struct Segment {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    file_size: u64,
    memory_size: u64,
}

const LOAD: u32 = 1;
const INTERPRETER: u32 = 3;
const HEADER_SIZE: usize = 64;
const SEGMENT_SIZE: usize = 56;

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
    /// Path of the program that is to load the rest.
    interpreter: Option<Vec<u8>>,
}

fn read<H: Hardware>(memory: &mut Memory<H>, object: ObjectId, offset: u64, length: usize) -> Result<Vec<u8>, Errno> {
    let mut bytes = vec![0; length];
    let count = memory.objects.read(&mut memory.hardware, object, offset, &mut bytes);
    if count < length { Err(Errno::ENOEXEC) } else { Ok(bytes) }
}

fn header<H: Hardware>(memory: &mut Memory<H>, object: ObjectId) -> Result<Header, Errno> {
    let bytes = read(memory, object, 0, HEADER_SIZE)?;
    // 64 bits, little endian, version 1.
    let is_elf = bytes.starts_with(b"\x7fELF\x02\x01\x01");
    let (kind, machine) = (u16_at(&bytes, 16), u16_at(&bytes, 18));
    let is_program = (kind == 2 || kind == 3) && machine == 183 && u16_at(&bytes, 54) as usize == SEGMENT_SIZE;
    if !is_elf || !is_program {
        return Err(Errno::ENOEXEC);
    }
    let (entry, program_headers, count) = (u64_at(&bytes, 24), u64_at(&bytes, 32), u16_at(&bytes, 56));
    Ok(Header { is_movable: kind == 3, entry, program_headers, count })
}

fn segments<H: Hardware>(memory: &mut Memory<H>, object: ObjectId, header: &Header) -> Result<Vec<Segment>, Errno> {
    let bytes = read(memory, object, header.program_headers, header.count as usize * SEGMENT_SIZE)?;
    let segment = |record: &[u8]| Segment {
        kind: u32_at(record, 0),
        flags: u32_at(record, 4),
        offset: u64_at(record, 8),
        address: u64_at(record, 16),
        file_size: u64_at(record, 32),
        memory_size: u64_at(record, 40),
    };
    Ok(bytes.chunks_exact(SEGMENT_SIZE).map(segment).collect())
}

/// Maps a file's segments.
fn load<H: Hardware>(
    memory: &mut Memory<H>,
    space: &mut Space<H>,
    object: ObjectId,
    place: u64,
) -> Result<Loaded, Errno> {
    let header = header(memory, object)?;
    let segments = segments(memory, object, &header)?;
    let loads = || segments.iter().filter(|segment| segment.kind == LOAD);
    let first = loads().map(|segment| segment.address).min().ok_or(Errno::ENOEXEC)? & !(PAGE_SIZE - 1);
    let ends = loads().map(|segment| segment.address.checked_add(segment.memory_size).and_then(round_up));
    let last = ends.collect::<Option<Vec<u64>>>().and_then(|ends| ends.into_iter().max()).ok_or(Errno::ENOEXEC)?;
    let base = if header.is_movable {
        let length = last - first;
        let start = if space.areas().within(place..place.saturating_add(length)).next().is_none() {
            place
        } else {
            space.areas().find_free(length, ARENA).ok_or(Errno::ENOMEM)?
        };
        start.wrapping_sub(first)
    } else {
        0
    };
    for segment in loads() {
        map_segment(memory, space, object, segment, base)?;
    }
    let in_memory = loads().find(|segment| {
        segment.offset <= header.program_headers && header.program_headers - segment.offset < segment.file_size
    });
    let program_headers = in_memory
        .map_or(0, |segment| base.wrapping_add(segment.address).wrapping_add(header.program_headers - segment.offset));
    let interpreter = match segments.iter().find(|segment| segment.kind == INTERPRETER) {
        Some(segment) if segment.file_size <= 4096 => {
            let mut path = read(memory, object, segment.offset, segment.file_size as usize)?;
            path.retain(|byte| *byte != 0);
            Some(path)
        }
        Some(_) => return Err(Errno::ENOEXEC),
        None => None,
    };
    let entry = base.wrapping_add(header.entry);
    let end = base.wrapping_add(last);
    Ok(Loaded { base, entry, program_headers, count: header.count, end, interpreter })
}

/// Returns the rights of a segment.
fn rights(flags: u32) -> Rights {
    let mut rights = Rights::empty();
    rights.set(Rights::EXECUTE, flags & 1 != 0);
    rights.set(Rights::WRITE, flags & 2 != 0);
    rights.set(Rights::READ, flags != 0);
    rights
}

fn map_segment<H: Hardware>(
    memory: &mut Memory<H>,
    space: &mut Space<H>,
    object: ObjectId,
    segment: &Segment,
    base: u64,
) -> Result<(), Errno> {
    let Segment { flags, offset, address, file_size, memory_size, .. } = *segment;
    if file_size > memory_size || address % PAGE_SIZE != offset % PAGE_SIZE {
        return Err(Errno::ENOEXEC);
    }
    let within = address % PAGE_SIZE;
    let start = base.wrapping_add(address - within);
    let (rights, allowed) = (rights(flags), Rights::all());
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
    pub const MIN_SIGNAL_STACK: u64 = 51;
}

/// Features of the processor that programs may use: floating point, vectors, AES, SHA-1 and SHA-2, CRC-32.
const FEATURES: u64 = 0b1111_1011;

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
            Ok((entry, stack, heap)) => Ok(Image { space, entry, stack, heap }),
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
    ) -> Result<(u64, u64, u64), Errno> {
        let program = load(memory, space, object, PROGRAM)?;
        let loader = match &program.interpreter {
            Some(path) => {
                let object = open(path)?;
                let place = space.areas().find_free(32 << 20, ARENA).ok_or(Errno::ENOMEM)?;
                Some(load(memory, space, object, place)?)
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
            placement: Placement::FixedIfFree(TRAMPOLINE),
            length: PAGE_SIZE,
            rights: Rights::READ | Rights::EXECUTE,
            allowed: Rights::READ | Rights::EXECUTE,
            backing: Backing::Object(start.trampoline, 0),
            grows: false,
            ..request
        };
        space.map(memory, &trampoline)?;
        let stack = fill_stack(memory, space, &program, loader.as_ref(), start)?;
        Ok((loader.map_or(program.entry, |loader| loader.entry), stack, program.end))
    }
}

/// Writes what a program finds on its stack. Returns the stack pointer.
fn fill_stack<H: Hardware>(
    memory: &mut Memory<H>,
    space: &mut Space<H>,
    program: &Loaded,
    loader: Option<&Loaded>,
    start: &Start<'_>,
) -> Result<u64, Errno> {
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
    let pairs = [
        (auxiliary::CAPABILITIES, FEATURES),
        (auxiliary::PAGE_SIZE, PAGE_SIZE),
        (auxiliary::CLOCK_TICKS, 100),
        (auxiliary::PROGRAM_HEADERS, program.program_headers),
        (auxiliary::PROGRAM_HEADER_SIZE, SEGMENT_SIZE as u64),
        (auxiliary::PROGRAM_HEADER_COUNT, program.count.into()),
        (auxiliary::BASE, loader.map_or(0, |loader| loader.base)),
        (auxiliary::FLAGS, 0),
        (auxiliary::ENTRY, program.entry),
        (auxiliary::USER, 0),
        (auxiliary::EFFECTIVE_USER, 0),
        (auxiliary::GROUP, 0),
        (auxiliary::EFFECTIVE_GROUP, 0),
        (auxiliary::SECURE, 0),
        (auxiliary::RANDOM, bottom + random),
        (auxiliary::CAPABILITIES_2, 0),
        (auxiliary::FILE_NAME, bottom + name),
        (auxiliary::PLATFORM, bottom + platform),
        (auxiliary::MIN_SIGNAL_STACK, 4720),
        (auxiliary::NULL, 0),
    ];
    words.extend(pairs.iter().flat_map(|(kind, value)| [*kind, *value]));
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let stack = (bottom - bytes.len() as u64) & !15;
    let written = space.write(memory, stack, &bytes) + space.write(memory, bottom, &strings);
    if written < bytes.len() + strings.len() { Err(Errno::ENOMEM) } else { Ok(stack) }
}
