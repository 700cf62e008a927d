//! Code that every program finds in its memory, as an ELF image: the virtual dynamic shared object (vDSO).
//!
//! ```text
//!  header │ segments │ symbols │ hash table │ dynamic section │ symbols' versions │ versions │ names │ code │ sections
//! ```
//!
//! C libraries, and Go's programs, look up functions there that read clocks. All functions have the version that
//! Linux gives them: Go reads the table of versions without asking whether there is one. Clocks that count since the
//! machine's start are read without a call, since programs may read the processor's counter; for all others the
//! functions make the call.

/// Offsets of the parts.
const SEGMENTS: usize = 0x40;
const SYMBOLS: usize = 0xb0;
const HASHES: usize = 0x128;
const DYNAMIC: usize = 0x148;
const SYMBOL_VERSIONS: usize = 0x1d8;
const VERSIONS: usize = 0x1e8;
const NAMES: usize = 0x220;
const CODE: usize = 0x2a0;
/// Names of sections, and the sections, by which debuggers find the functions.
const SECTION_NAMES: usize = CODE + 4 * INSTRUCTIONS.len();
const SECTIONS: usize = (SECTION_NAMES + SECTION_TEXT.len()).next_multiple_of(8);
/// Size of the image in bytes.
const SIZE: usize = SECTIONS + 64 * (DESCRIBED.len() + 1);

/// Names of the sections, each with a zero behind it.
const SECTION_TEXT: &[u8] = b"\0.dynsym\0.dynstr\0.text\0.shstrtab\0";
/// The sections behind the first, which is none: place of the name, type, flags, offset, size, the section to which it
/// belongs and something about it, alignment, size of an entry.
const DESCRIBED: [[usize; 9]; 4] = [
    [1, 11, 2, SYMBOLS, 24 * (FUNCTIONS.len() + 1), 2, 1, 8, 24],
    [9, 3, 2, NAMES, TEXT.len(), 0, 0, 1, 0],
    [17, 1, 6, CODE, 4 * INSTRUCTIONS.len(), 0, 0, 4, 0],
    [23, 3, 0, SECTION_NAMES, SECTION_TEXT.len(), 0, 0, 1, 0],
];
/// Index of the section with the code.
const CODE_SECTION: usize = 3;

/// Names of the functions and of the image, each with a zero behind it.
const TEXT: &[u8] = b"\0__kernel_clock_gettime\0__kernel_clock_getres\0__kernel_gettimeofday\0__kernel_rt_sigreturn\0\
      linux-vdso.so.1\0LINUX_2.6.39\0";
/// Place of the image's name among the names.
const OWN_NAME: usize = 90;
/// Versions: flags, number, hash of the name, and its place among the names. The first stands for the image itself.
const DEFINED: [(u16, u16, u32, usize); 2] = [(1, 1, 0x0dee_bfa1, OWN_NAME), (0, 2, 0x075f_cb89, 106)];

/// The functions: the place of each name, its code's first instruction and their number.
const FUNCTIONS: [(usize, usize, usize); 4] = [(1, 0, 25), (24, 25, 3), (46, 28, 3), (68, 31, 2)];

/// The code of all functions.
const INSTRUCTIONS: [u32; 33] = [
    // `clock_gettime`: the clocks 1, 4 and 7 count since the start, in the same way as in `Clock`.
    0x7100_041f, // cmp w0, #1
    0x5400_00a0, // b.eq 6
    0x7100_101f, // cmp w0, #4
    0x5400_0060, // b.eq 6
    0x7100_1c1f, // cmp w0, #7
    0x5400_0221, // b.ne 22
    0xd53b_e003, // 6: mrs x3, cntfrq_el0
    0xb400_01e3, // cbz x3, 22
    0xd299_4006, // mov x6, #51712
    0xf2a7_7346, // movk x6, #15258, lsl #16
    0xd360_7cc5, // lsl x5, x6, #32
    0x9ac3_08a5, // udiv x5, x5, x3
    0xd503_3fdf, // isb
    0xd53b_e042, // mrs x2, cntvct_el0
    0x9bc5_7c44, // umulh x4, x2, x5
    0x9b05_7c43, // mul x3, x2, x5
    0x93c3_8083, // extr x3, x4, x3, #32
    0x9ac6_0864, // udiv x4, x3, x6
    0x9b06_8c85, // msub x5, x4, x6, x3
    0xa900_1424, // stp x4, x5, [x1]
    0xd280_0000, // mov x0, #0
    0xd65f_03c0, // ret
    0xd280_0e28, // 22: mov x8, #113
    0xd400_0001, // svc #0
    0xd65f_03c0, // ret
    // `clock_getres`
    0xd280_0e48, // mov x8, #114
    0xd400_0001, // svc #0
    0xd65f_03c0, // ret
    // `gettimeofday`
    0xd280_1528, // mov x8, #169
    0xd400_0001, // svc #0
    0xd65f_03c0, // ret
    // `rt_sigreturn`
    0xd280_1168, // mov x8, #139
    0xd400_0001, // svc #0
];

/// Offset of the code that ends a signal's handler.
pub const END_OF_HANDLER: u64 = (CODE + 4 * FUNCTIONS[3].1) as u64;

/// The image.
pub static IMAGE: &[u8] = &image();

/// Writes some lowest bytes of a number.
const fn put(image: &mut [u8; SIZE], at: usize, number: u64, count: usize) {
    let bytes = number.to_le_bytes();
    let mut index = 0;
    while index < count {
        image[at + index] = bytes[index];
        index += 1;
    }
}

/// Returns the image.
const fn image() -> [u8; SIZE] {
    let mut image = [0; SIZE];
    let all = &mut image;
    // 64 bits, little endian; a shared object for AArch64.
    put(all, 0, 0x0001_0102_464c_457f, 8);
    put(all, 16, 0x0000_0001_00b7_0003, 8);
    put(all, 32, SEGMENTS as u64, 8);
    put(all, 40, SECTIONS as u64, 8);
    put(all, 52, 0x0002_0038_0040, 6);
    put(all, 58, 64 | (DESCRIBED.len() as u64 + 1) << 16 | (DESCRIBED.len() as u64) << 32, 6);
    segment(all, SEGMENTS, 0x0005_0000_0001, 0, SIZE);
    segment(all, SEGMENTS + 56, 0x0004_0000_0002, DYNAMIC, SYMBOL_VERSIONS - DYNAMIC);
    let mut index = 0;
    // All symbols are in one bucket of the hash table, in a chain.
    put(all, HASHES, 5 << 32 | 1, 8);
    put(all, HASHES + 8, 1, 4);
    versions(all);
    while index < FUNCTIONS.len() {
        let (name, first, count) = FUNCTIONS[index];
        let at = SYMBOLS + 24 * (index + 1);
        // A global function.
        put(all, at, (CODE_SECTION as u64) << 48 | 0x12 << 32 | name as u64, 8);
        put(all, at + 8, (CODE + 4 * first) as u64, 8);
        put(all, at + 16, 4 * count as u64, 8);
        let next = if index + 1 < FUNCTIONS.len() { index + 2 } else { 0 };
        put(all, HASHES + 16 + 4 * index, next as u64, 4);
        put(all, SYMBOL_VERSIONS + 2 * (index + 1), DEFINED[1].1 as u64, 2);
        index += 1;
    }
    sections(all);
    let entries = [
        (4, HASHES),
        (5, NAMES),
        (6, SYMBOLS),
        (10, TEXT.len()),
        (14, OWN_NAME),
        (0x6fff_fff0, SYMBOL_VERSIONS),
        (0x6fff_fffc, VERSIONS),
        (0x6fff_fffd, DEFINED.len()),
        (0, 0),
    ];
    index = 0;
    while index < entries.len() {
        put(all, DYNAMIC + 16 * index, entries[index].0, 8);
        put(all, DYNAMIC + 16 * index + 8, entries[index].1 as u64, 8);
        index += 1;
    }
    index = 0;
    while index < TEXT.len() {
        all[NAMES + index] = TEXT[index];
        index += 1;
    }
    index = 0;
    while index < INSTRUCTIONS.len() {
        put(all, CODE + 4 * index, INSTRUCTIONS[index] as u64, 4);
        index += 1;
    }
    image
}

/// Writes the sections and their names.
const fn sections(image: &mut [u8; SIZE]) {
    let mut index = 0;
    while index < SECTION_TEXT.len() {
        image[SECTION_NAMES + index] = SECTION_TEXT[index];
        index += 1;
    }
    index = 0;
    while index < DESCRIBED.len() {
        let [name, kind, flags, offset, size, link, about, alignment, entry] = DESCRIBED[index];
        let at = SECTIONS + 64 * (index + 1);
        put(image, at, name as u64 | (kind as u64) << 32, 8);
        put(image, at + 8, flags as u64, 8);
        let address = if flags == 0 { 0 } else { offset };
        put(image, at + 16, address as u64, 8);
        put(image, at + 24, offset as u64, 8);
        put(image, at + 32, size as u64, 8);
        put(image, at + 40, link as u64 | (about as u64) << 32, 8);
        put(image, at + 48, alignment as u64, 8);
        put(image, at + 56, entry as u64, 8);
        index += 1;
    }
}

/// Writes the table of versions, each with its name.
const fn versions(image: &mut [u8; SIZE]) {
    let mut index = 0;
    while index < DEFINED.len() {
        let (flags, number, hash, name) = DEFINED[index];
        let (at, next) = (VERSIONS + 28 * index, if index + 1 < DEFINED.len() { 28 } else { 0 });
        put(image, at, 1 | (flags as u64) << 16 | (number as u64) << 32 | 1 << 48, 8);
        put(image, at + 8, hash as u64 | 20 << 32, 8);
        put(image, at + 16, next, 4);
        put(image, at + 20, name as u64, 8);
        index += 1;
    }
}

/// Writes the header of a segment.
const fn segment(image: &mut [u8; SIZE], at: usize, kind: u64, start: usize, size: usize) {
    put(image, at, kind, 8);
    let mut index = 1;
    // Offset, address and physical address.
    while index <= 3 {
        put(image, at + 8 * index, start as u64, 8);
        index += 1;
    }
    put(image, at + 32, size as u64, 8);
    put(image, at + 40, size as u64, 8);
    put(image, at + 48, 8, 8);
}

#[cfg(test)]
mod tests {
    extern crate std;

    use elf::ElfBytes;
    use elf::endian::LittleEndian;
    use std::string::{String, ToString};
    use std::vec::Vec;

    use super::*;

    #[test]
    fn the_image_has_its_functions_where_they_are() {
        let file = ElfBytes::<LittleEndian>::minimal_parse(IMAGE).unwrap();
        let segments = file.segments().unwrap();
        assert_eq!(segments.iter().map(|segment| segment.p_type).collect::<Vec<u32>>(), [1, 2]);
        let names = &IMAGE[NAMES..];
        let name = |at: usize| names[at..].iter().take_while(|byte| **byte != 0).map(|byte| *byte as char).collect();
        let all: Vec<String> = FUNCTIONS.iter().map(|function| name(function.0)).chain([name(OWN_NAME)]).collect();
        let expected = ["clock_gettime", "clock_getres", "gettimeofday", "rt_sigreturn"]
            .map(|name| "__kernel_".to_string() + name);
        assert_eq!(all[..4], expected);
        assert_eq!(all[4], "linux-vdso.so.1");
        let versions: Vec<String> = DEFINED.iter().map(|version| name(version.3)).collect();
        assert_eq!(versions, ["linux-vdso.so.1", "LINUX_2.6.39"]);
        for (index, version) in DEFINED.iter().enumerate() {
            assert_eq!(version.2, elf::hash::sysv_hash(versions[index].as_bytes()));
        }
        assert!(NAMES + TEXT.len() <= CODE);
        assert_eq!(IMAGE[END_OF_HANDLER as usize..][..8], [0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4]);
        let mut next = 0;
        for (_, first, count) in FUNCTIONS {
            assert_eq!(first, next);
            next += count;
        }
        assert_eq!(next, INSTRUCTIONS.len());
        assert!(IMAGE.len() <= 4096);
    }

    #[test]
    fn debuggers_find_the_functions() {
        let file = ElfBytes::<LittleEndian>::minimal_parse(IMAGE).unwrap();
        let (headers, names) = file.section_headers_with_strtab().unwrap();
        let (headers, names) = (headers.unwrap(), names.unwrap());
        let found: Vec<&str> = headers.iter().map(|header| names.get(header.sh_name as usize).unwrap()).collect();
        assert_eq!(found, ["", ".dynsym", ".dynstr", ".text", ".shstrtab"]);
        let code = headers.get(CODE_SECTION).unwrap();
        let (symbols, names) = file.dynamic_symbol_table().unwrap().unwrap();
        let all: Vec<_> = symbols.iter().skip(1).collect();
        assert_eq!(all.len(), FUNCTIONS.len());
        for (symbol, function) in all.iter().zip(FUNCTIONS) {
            assert!(names.get(symbol.st_name as usize).unwrap().starts_with("__kernel_"));
            assert_eq!((symbol.st_shndx as usize, symbol.st_size), (CODE_SECTION, 4 * function.2 as u64));
            assert!((code.sh_addr..code.sh_addr + code.sh_size).contains(&symbol.st_value));
        }
    }
}
