//! A writer of small ELF files, valid and invalid ones.

use alloc::vec;
use alloc::vec::Vec;

/// Types of program headers.
pub mod kind {
    /// A loadable segment.
    pub const LOAD: u32 = 1;
    /// The dynamic section.
    pub const DYNAMIC: u32 = 2;
    /// Name of a dynamic linker.
    pub const INTERPRETER: u32 = 3;
    /// Notes.
    pub const NOTE: u32 = 4;
    /// The table of program headers itself.
    pub const HEADERS: u32 = 6;
    /// Thread-local variables.
    pub const THREAD_LOCAL: u32 = 7;
    /// Required rights of the stack.
    pub const STACK: u32 = 0x6474_e551;
    /// Part that is constant after relocation.
    pub const RELRO: u32 = 0x6474_e552;
}

/// Readable.
pub const R: u32 = 4;
/// Readable and writable.
pub const RW: u32 = 6;
/// Readable and executable.
pub const RX: u32 = 5;
/// Readable, writable and executable.
pub const RWX: u32 = 7;

/// Bytes of a file's header.
pub const HEADER_SIZE: usize = 64;
/// Bytes of a program header.
pub const ENTRY_SIZE: usize = 56;
const PAGE: u64 = 4096;

/// A program header to write.
#[derive(Clone, Debug)]
pub struct Header {
    /// Type of the program header.
    pub kind: u32,
    /// Rights of the segment.
    pub flags: u32,
    /// Virtual and physical address.
    pub address: u64,
    /// Bytes in memory.
    pub memory_size: u64,
    /// Contents of the segment, placed in the file as the alignment requires.
    pub contents: Vec<u8>,
    /// File size to write instead of the size of `contents`.
    pub file_size: Option<u64>,
    /// File offset to write instead of that of `contents`.
    pub offset: Option<u64>,
    /// Alignment: address and offset are congruent modulo this.
    pub alignment: u64,
}

impl Header {
    /// Returns the header of a loadable segment.
    pub fn load(flags: u32, address: u64, memory_size: u64, contents: &[u8]) -> Header {
        let contents = contents.to_vec();
        let kind = kind::LOAD;
        Header { kind, flags, address, memory_size, contents, file_size: None, offset: None, alignment: PAGE }
    }

    /// Returns the header of a part that is not loaded.
    pub fn other(kind: u32, contents: &[u8]) -> Header {
        Header { kind, alignment: 8, ..Header::load(R, 0, contents.len() as u64, contents) }
    }

    /// Returns the contents of a note.
    pub fn note(name: &[u8], kind: u32, description: &[u8]) -> Header {
        let mut contents = Vec::new();
        for word in [name.len() as u32, description.len() as u32, kind] {
            contents.extend(word.to_le_bytes());
        }
        for part in [name, description] {
            contents.extend(part);
            contents.resize(contents.len().next_multiple_of(4), 0);
        }
        Header { alignment: 4, ..Header::other(kind::NOTE, &contents) }
    }

    /// Returns the first offset from `end` on at which the contents can lie.
    fn offset_from(&self, end: u64) -> u64 {
        let alignment = if self.alignment.is_power_of_two() { self.alignment.min(PAGE) } else { 1 };
        end + self.address.wrapping_sub(end) % alignment
    }
}

/// An ELF file; its fields can be changed before it is written.
#[derive(Clone, Debug)]
pub struct Elf {
    /// Word size: 2 for 64 bits.
    pub class: u8,
    /// Byte order: 1 for little-endian.
    pub endianness: u8,
    /// Versions: 1, twice.
    pub versions: (u8, u32),
    /// Type: 2 for fixed addresses, 3 for position-independent.
    pub kind: u16,
    /// Machine: 183 for AArch64.
    pub machine: u16,
    /// Address of the first instruction.
    pub entry: u64,
    /// Offset to write instead of that of the program headers.
    pub table_offset: Option<u64>,
    /// Bytes of a program header.
    pub entry_size: u16,
    /// Number to write instead of that of the program headers.
    pub count: Option<u16>,
    /// The program headers.
    pub headers: Vec<Header>,
}

impl Elf {
    /// Returns a file for fixed addresses with these program headers that begins at `entry`.
    pub const fn new(entry: u64, headers: Vec<Header>) -> Elf {
        Elf {
            class: 2,
            endianness: 1,
            versions: (1, 1),
            kind: 2,
            machine: 183,
            entry,
            table_offset: None,
            entry_size: ENTRY_SIZE as u16,
            count: None,
            headers,
        }
    }

    /// Returns the file's contents.
    pub fn write(&self) -> Vec<u8> {
        let mut file = vec![0x7f, b'E', b'L', b'F', self.class, self.endianness, self.versions.0, 0];
        file.resize(16, 0);
        file.extend(self.kind.to_le_bytes());
        file.extend(self.machine.to_le_bytes());
        file.extend(self.versions.1.to_le_bytes());
        for word in [self.entry, self.table_offset.unwrap_or(HEADER_SIZE as u64), 0] {
            file.extend(word.to_le_bytes());
        }
        file.extend(0u32.to_le_bytes());
        let count = self.count.unwrap_or(self.headers.len() as u16);
        for half in [HEADER_SIZE as u16, self.entry_size, count, 64, 0, 0] {
            file.extend(half.to_le_bytes());
        }
        let mut contents = vec![0; ENTRY_SIZE * self.headers.len()];
        for header in &self.headers {
            let offset = header.offset_from((HEADER_SIZE + contents.len()) as u64);
            file.extend(header.kind.to_le_bytes());
            file.extend(header.flags.to_le_bytes());
            let words = [
                header.offset.unwrap_or(offset),
                header.address,
                header.address,
                header.file_size.unwrap_or(header.contents.len() as u64),
                header.memory_size,
                header.alignment,
            ];
            words.iter().for_each(|word| file.extend(word.to_le_bytes()));
            if !header.contents.is_empty() {
                contents.resize(offset as usize - HEADER_SIZE, 0);
                contents.extend(&header.contents);
            }
        }
        file.extend(&contents[ENTRY_SIZE * self.headers.len()..]);
        file
    }
}
