//! Writes small ELF files, right ones and wrong ones.

#![allow(dead_code, reason = "each test uses its part")]

/// A program header to write.
#[derive(Clone, Debug)]
pub struct Header {
    pub kind: u32,
    pub flags: u32,
    pub address: u64,
    pub memory_size: u64,
    pub contents: Vec<u8>,
    /// Instead of the size of `contents`.
    pub file_size: Option<u64>,
    /// Instead of where `contents` lies.
    pub offset: Option<u64>,
    pub alignment: u64,
}

pub const LOAD: u32 = 1;
pub const INTERPRETER: u32 = 3;
pub const NOTE: u32 = 4;
pub const R: u32 = 4;
pub const RW: u32 = 6;
pub const RX: u32 = 5;
pub const RWX: u32 = 7;

impl Header {
    pub fn load(flags: u32, address: u64, memory_size: u64, contents: &[u8]) -> Header {
        let contents = contents.to_vec();
        Header { kind: LOAD, flags, address, memory_size, contents, file_size: None, offset: None, alignment: 4096 }
    }

    /// A note.
    pub fn note(name: &[u8], kind: u32, description: &[u8]) -> Header {
        let mut contents = Vec::new();
        for word in [name.len() as u32, description.len() as u32, kind] {
            contents.extend(word.to_le_bytes());
        }
        for part in [name, description] {
            contents.extend(part);
            contents.resize(contents.len().next_multiple_of(4), 0);
        }
        Header { kind: NOTE, alignment: 4, ..Header::load(R, 0x20_0100, contents.len() as u64, &contents) }
    }
}

/// An ELF file; its fields can be changed before it is written.
#[derive(Clone, Debug)]
pub struct Elf {
    pub class: u8,
    pub endianness: u8,
    pub kind: u16,
    pub machine: u16,
    pub entry: u64,
    pub headers: Vec<Header>,
}

impl Elf {
    /// A program that can be loaded.
    pub fn good() -> Elf {
        Elf {
            class: 2,
            endianness: 1,
            kind: 2,
            machine: 183,
            entry: 0x20_1004,
            headers: vec![
                Header::load(R, 0x20_0000, 0x120, b"constants"),
                Header::load(RX, 0x20_1000, 0x1800, &[0x1f; 0x1800]),
                Header::load(RW, 0x20_4010, 0x3000, b"data"),
            ],
        }
    }

    pub fn write(&self) -> Vec<u8> {
        let mut file = vec![0x7f, b'E', b'L', b'F', self.class, self.endianness, 1, 0];
        file.resize(16, 0);
        file.extend(self.kind.to_le_bytes());
        file.extend(self.machine.to_le_bytes());
        file.extend(1u32.to_le_bytes());
        for word in [self.entry, 64, 0] {
            file.extend(word.to_le_bytes());
        }
        file.extend(0u32.to_le_bytes());
        for half in [64u16, 56, self.headers.len() as u16, 64, 0, 0] {
            file.extend(half.to_le_bytes());
        }
        let mut offset = 64 + 56 * self.headers.len() as u64;
        for header in &self.headers {
            file.extend(header.kind.to_le_bytes());
            file.extend(header.flags.to_le_bytes());
            let size = header.contents.len() as u64;
            let words = [
                header.offset.unwrap_or(offset),
                header.address,
                header.address,
                header.file_size.unwrap_or(size),
                header.memory_size,
                header.alignment,
            ];
            for word in words {
                file.extend(word.to_le_bytes());
            }
            offset += size;
        }
        for header in &self.headers {
            file.extend(&header.contents);
        }
        file
    }
}
