//! The valid programs, from which the others are made.

use alloc::vec;
use alloc::vec::Vec;

use crate::elf::{Elf, Header, R, RW, RX, kind};

/// A breakpoint.
const BRK: u32 = 0xd420_0000;
/// Loads a word from the beginning of the next page, and jumps where that says.
const JUMP_THROUGH_NEXT_PAGE: [u32; 3] = [0xb000_0000, 0xf940_0000, 0xd61f_0000];

fn code(instructions: &[u32]) -> Vec<u8> {
    instructions.iter().flat_map(|instruction| instruction.to_le_bytes()).collect()
}

/// Returns a program with fixed addresses: constants, code, data. It begins at its second instruction.
pub fn fixed() -> Elf {
    let headers = vec![
        Header::load(R, 0x20_0000, 0x120, b"constants"),
        Header::load(RX, 0x20_1000, 0x1800, &code(&[BRK; 0x600])),
        Header::load(RW, 0x20_4010, 0x3000, b"data"),
    ];
    Elf::new(0x20_1004, headers)
}

/// Returns a program at the lowest possible address: only the first page is forbidden.
pub fn second_page() -> Elf {
    Elf::new(0x1000, vec![Header::load(RX, 0x1000, 4, &code(&[BRK]))])
}

/// Tags of a dynamic section.
pub mod tag {
    /// Marks the end.
    pub const END: u64 = 0;
    /// Names a shared library.
    pub const NEEDED: u64 = 1;
    /// Relocations in the long form: address, total bytes, bytes of one.
    pub const RELA: [u64; 3] = [7, 8, 9];
    /// Relocations in a form that this architecture does not have.
    pub const REL: u64 = 17;
    /// Says that code is relocated.
    pub const TEXT: u64 = 22;
    /// Relocations of jumps to libraries.
    pub const JUMPS: u64 = 23;
    /// Relocations in the compact form: total bytes, address, bytes of one.
    pub const RELR: [u64; 3] = [35, 36, 37];
    /// Flags of the file.
    pub const FLAGS: u64 = 0x6fff_fffb;
}

/// Flag of a program.
pub const PROGRAM: u64 = 0x0800_0000;
/// Kind of relocation that adds the distance from the linked address.
pub const RELATIVE: u64 = 1027;

/// Addresses of the compact relocations and of the long ones.
const TABLES: (u64, u64) = (0x10, 0x200);
/// Address of the part that is constant after relocation.
pub const CONSTANTS: u64 = 0x2000;
/// Address of the part that stays writable.
pub const DATA: u64 = 0x3000;

/// A position-independent program: tables, code, constants with addresses, data. The code jumps through the first word
/// of the constants.
#[derive(Clone, Debug)]
pub struct Movable {
    /// The file without the relocation tables. The headers are those of tables, code, constants and data, then others.
    pub elf: Elf,
    /// Compact relocations.
    pub relr: Vec<u64>,
    /// Long relocations: address, kind, value.
    pub rela: Vec<[u64; 3]>,
    /// The dynamic section.
    pub tags: Vec<(u64, u64)>,
}

impl Movable {
    /// Makes the valid program. Its first constant is the address of the breakpoint, its second that of the data; its
    /// data begin with the address of the constants.
    pub fn new() -> Movable {
        let mut jump = JUMP_THROUGH_NEXT_PAGE.to_vec();
        jump.push(BRK);
        let words = |words: &[u64]| -> Vec<u8> { words.iter().flat_map(|word| word.to_le_bytes()).collect() };
        let headers = vec![
            Header::load(R, 0, 0x800, &[]),
            Header::load(RX, 0x1000, 16, &code(&jump)),
            Header::load(RW, CONSTANTS, 0x1000, &words(&[0x100c, 7, 0, DATA])),
            Header::load(RW, DATA, 0x2000, &words(&[0, 8])),
            Header { address: CONSTANTS, memory_size: 0x1000, ..Header::other(kind::RELRO, &[]) },
            Header::other(kind::STACK, &[]),
            Header::other(kind::DYNAMIC, &[]),
        ];
        let elf = Elf { kind: 3, ..Elf::new(0x1000, headers) };
        // The constants' words 0 and 3 in the compact form, the data's word 0 in the long form.
        let relr = vec![CONSTANTS, 0b1001];
        let rela = vec![[DATA, RELATIVE, CONSTANTS]];
        let ([rela_address, rela_size, rela_entry], [relr_size, relr_address, relr_entry]) = (tag::RELA, tag::RELR);
        let tags = vec![
            (tag::FLAGS, PROGRAM),
            (relr_address, TABLES.0),
            (relr_size, 16),
            (relr_entry, 8),
            (rela_address, TABLES.1),
            (rela_size, 24),
            (rela_entry, 24),
            (tag::END, 0),
        ];
        Movable { elf, relr, rela, tags }
    }

    /// Sets a tag's value.
    pub fn set(&mut self, tag: u64, value: u64) {
        self.tags.iter_mut().filter(|(found, _)| *found == tag).for_each(|(_, old)| *old = value);
    }

    /// Sets the relocations.
    pub fn relocate(&mut self, relr: &[u64], rela: &[[u64; 3]]) {
        (self.relr, self.rela) = (relr.to_vec(), rela.to_vec());
        self.set(tag::RELR[0], 8 * relr.len() as u64);
        self.set(tag::RELA[1], 24 * rela.len() as u64);
    }

    /// Returns the file's contents.
    pub fn write(&self) -> Vec<u8> {
        let mut elf = self.elf.clone();
        let mut tables = vec![0; TABLES.0 as usize];
        tables.extend(self.relr.iter().flat_map(|word| word.to_le_bytes()));
        tables.resize(TABLES.1 as usize, 0);
        tables.extend(self.rela.iter().flatten().flat_map(|word| word.to_le_bytes()));
        let section: Vec<u8> =
            self.tags.iter().flat_map(|(tag, value)| [*tag, *value]).flat_map(u64::to_le_bytes).collect();
        for header in &mut elf.headers {
            if header.kind == kind::LOAD && header.address == 0 {
                header.contents.clone_from(&tables);
            }
            if header.kind == kind::DYNAMIC {
                header.contents.clone_from(&section);
                header.memory_size = section.len() as u64;
            }
        }
        elf.write()
    }
}

impl Default for Movable {
    fn default() -> Movable {
        Movable::new()
    }
}
