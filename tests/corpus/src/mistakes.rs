//! The mistakes in the files.

use alloc::vec::Vec;

use tench_procs_interface::protocol::Defect;

use crate::Mistake;
use crate::elf::{ENTRY_SIZE, Elf, HEADER_SIZE, Header, R, RWX, kind};
use crate::good::{CONSTANTS, DATA, Movable, RELATIVE, fixed, tag};

/// Returns a mistake.
const fn no(name: &'static str, defect: Defect, make: fn() -> Vec<u8>) -> Mistake {
    Mistake { name, defect, make }
}

/// Returns the valid program with fixed addresses, changed.
fn with(change: impl FnOnce(&mut Elf)) -> Vec<u8> {
    let mut elf = fixed();
    change(&mut elf);
    elf.write()
}

/// Returns the valid position-independent program, changed.
fn movable(change: impl FnOnce(&mut Movable)) -> Vec<u8> {
    let mut program = Movable::new();
    change(&mut program);
    program.write()
}

/// Returns the beginning of the valid program.
fn cut(length: usize) -> Vec<u8> {
    let mut file = fixed().write();
    file.truncate(length);
    file
}

/// All mistakes.
pub const ALL: [&[Mistake]; 6] = [&IDENTITY, &TABLE, &SEGMENTS, &PROGRAM, &DYNAMIC, &RELOCATIONS];

/// Files that are not programs, or not for this machine.
const IDENTITY: [Mistake; 17] = [
    no("empty", Defect::NotElf, Vec::new),
    no("script", Defect::NotElf, || b"#!/bin/sh\nexit 0\n".to_vec()),
    no("magic", Defect::NotElf, || {
        let mut file = fixed().write();
        file[3] = b'E';
        file
    }),
    no("magic-alone", Defect::HeaderCutOff, || cut(4)),
    no("header-cut-off", Defect::HeaderCutOff, || cut(HEADER_SIZE - 1)),
    no("class-32", Defect::WrongClass, || with(|elf| elf.class = 1)),
    no("class-unknown", Defect::WrongClass, || with(|elf| elf.class = 9)),
    no("big-endian", Defect::WrongByteOrder, || with(|elf| elf.endianness = 2)),
    no("order-unknown", Defect::WrongByteOrder, || with(|elf| elf.endianness = 0)),
    no("version-0", Defect::WrongVersion, || with(|elf| elf.versions.0 = 0)),
    no("version-2", Defect::WrongVersion, || with(|elf| elf.versions.1 = 2)),
    no("machine-x86-64", Defect::WrongMachine, || with(|elf| elf.machine = 62)),
    no("machine-riscv", Defect::WrongMachine, || with(|elf| elf.machine = 243)),
    no("object-file", Defect::NotExecutable, || with(|elf| elf.kind = 1)),
    no("memory-dump", Defect::NotExecutable, || with(|elf| elf.kind = 4)),
    no("shared-library", Defect::SharedLibrary, || movable(|program| program.set(tag::FLAGS, 0))),
    no("movable-without-dynamic-section", Defect::SharedLibrary, || {
        movable(|program| program.elf.headers.retain(|header| header.kind != kind::DYNAMIC))
    }),
];

/// Mistakes in the table of program headers.
const TABLE: [Mistake; 8] = [
    no("headers-outside", Defect::HeadersOutsideFile, || with(|elf| elf.table_offset = Some(1 << 40))),
    no("headers-overflow", Defect::HeadersOutsideFile, || with(|elf| elf.table_offset = Some(u64::MAX))),
    no("headers-cut-off", Defect::HeadersOutsideFile, || cut(HEADER_SIZE + 2 * ENTRY_SIZE)),
    no("headers-countless", Defect::HeadersOutsideFile, || with(|elf| elf.count = Some(u16::MAX))),
    no("header-size", Defect::BadHeaderSize, || with(|elf| elf.entry_size = 32)),
    no("no-headers", Defect::NoSegments, || with(|elf| elf.headers.clear())),
    no("nothing-to-load", Defect::NoSegments, || {
        with(|elf| elf.headers.iter_mut().for_each(|header| header.kind = kind::HEADERS))
    }),
    no("seventeen-segments", Defect::TooManySegments, || {
        with(|elf| elf.headers.extend((3..17).map(|n| Header::load(R, 0x40_0000 + n * 0x1000, 8, b"x"))))
    }),
];

/// Mistakes in segments.
const SEGMENTS: [Mistake; 21] = [
    no("contents-outside", Defect::SegmentOutsideFile, || with(|elf| elf.headers[0].offset = Some(1 << 40))),
    no("contents-cut-off", Defect::SegmentOutsideFile, || cut(fixed().write().len() - 1)),
    no("offset-overflow", Defect::SizeOverflow, || with(|elf| elf.headers[1].offset = Some(!0xfff))),
    no("address-overflow", Defect::SizeOverflow, || with(|elf| elf.headers[2].memory_size = u64::MAX)),
    no("larger-in-file", Defect::BadSegmentSize, || with(|elf| elf.headers[0].memory_size = 1)),
    no("in-file-alone", Defect::BadSegmentSize, || with(|elf| elf.headers[0].memory_size = 0)),
    no("address-zero", Defect::FirstPage, || with(|elf| elf.headers[0].address = 0)),
    no("end-of-first-page", Defect::FirstPage, || {
        with(|elf| (elf.headers[0].address, elf.headers[0].alignment) = (0xff8, 8))
    }),
    no("too-high", Defect::BadAddress, || with(|elf| elf.headers[2].address = 0x1000_0000_0010)),
    no("end-too-high", Defect::BadAddress, || with(|elf| elf.headers[2].address = 0x1000_0000_0010 - 0x2000)),
    no("kernel-half", Defect::BadAddress, || with(|elf| elf.headers[2].address = 0xffff_0000_0000_0010)),
    no("movable-too-large", Defect::BadAddress, || {
        movable(|program| program.elf.headers[3].memory_size = 0x1000_0000_0000 - 0x20_0000 - DATA + 1)
    }),
    no("alignment-no-power", Defect::BadAlignment, || with(|elf| elf.headers[0].alignment = 24)),
    no("alignment-contradicts", Defect::BadAlignment, || with(|elf| elf.headers[0].offset = Some(8))),
    no("alignment-too-large", Defect::BadAlignment, || movable(|program| program.elf.headers[0].alignment = 4 << 20)),
    no("same-page", Defect::SegmentsOverlap, || with(|elf| elf.headers[2].address = 0x20_2010)),
    no("inside-another", Defect::SegmentsOverlap, || with(|elf| elf.headers[2].address = 0x20_0010)),
    no("writable-and-executable", Defect::WritableAndExecutable, || with(|elf| elf.headers[1].flags = RWX)),
    no("no-rights", Defect::NotReadable, || with(|elf| elf.headers[0].flags = 0)),
    no("execute-only", Defect::NotReadable, || with(|elf| elf.headers[1].flags = 1)),
    no("write-only", Defect::NotReadable, || with(|elf| elf.headers[2].flags = 2)),
];

/// Mistakes of the program as a whole.
const PROGRAM: [Mistake; 14] = [
    no("entry-zero", Defect::BadEntry, || with(|elf| elf.entry = 0)),
    no("entry-between", Defect::BadEntry, || with(|elf| elf.entry = 0x20_3000)),
    no("entry-in-constants", Defect::EntryNotExecutable, || with(|elf| elf.entry = 0x20_0000)),
    no("entry-in-data", Defect::EntryNotExecutable, || with(|elf| elf.entry = 0x20_4010)),
    no("entry-misaligned", Defect::EntryMisaligned, || with(|elf| elf.entry += 2)),
    no("interpreter", Defect::NeedsInterpreter, || {
        with(|elf| elf.headers.push(Header::other(kind::INTERPRETER, b"/lib/ld.so\0")))
    }),
    no("executable-stack", Defect::ExecutableStack, || {
        with(|elf| elf.headers.push(Header { flags: RWX, ..Header::other(kind::STACK, &[]) }))
    }),
    no("thread-local", Defect::ThreadLocal, || {
        with(|elf| elf.headers.push(Header { memory_size: 8, ..Header::other(kind::THREAD_LOCAL, &[]) }))
    }),
    no("note-outside", Defect::BadNote, || with(|elf| elf.headers.push(Header { offset: Some(1 << 40), ..note() }))),
    no("note-head-cut-off", Defect::BadNote, || with(|elf| elf.headers.push(Header { file_size: Some(8), ..note() }))),
    no("note-cut-off", Defect::BadNote, || with(|elf| elf.headers.push(Header { file_size: Some(23), ..note() }))),
    no("note-name-endless", Defect::BadNote, || {
        let mut endless = note();
        endless.contents[..4].fill(0xff);
        with(|elf| elf.headers.push(endless))
    }),
    no("note-alignment", Defect::BadNote, || with(|elf| elf.headers.push(Header { alignment: 16, ..note() }))),
    no("note-contents", Defect::BadNote, || with(|elf| elf.headers.push(Header::note(b"Tench\0", 1, &[1; 8])))),
];

fn note() -> Header {
    Header::note(b"Tench\0", 1, &[1, 0, 0, 0])
}

/// Mistakes in dynamic sections.
const DYNAMIC: [Mistake; 9] = [
    no("dynamic-at-fixed-address", Defect::DynamicAtFixedAddress, || {
        movable(|program| {
            program.elf.kind = 2;
            program.elf.entry += 0x20_0000;
            program
                .elf
                .headers
                .iter_mut()
                .filter(|header| header.kind == kind::LOAD)
                .for_each(|header| header.address += 0x20_0000);
        })
    }),
    no("dynamic-outside", Defect::BadDynamicSection, || {
        movable(|program| program.elf.headers[6].offset = Some(1 << 40))
    }),
    no("dynamic-endless", Defect::BadDynamicSection, || movable(|program| _ = program.tags.pop())),
    no("dynamic-table-outside", Defect::BadDynamicSection, || movable(|program| program.set(tag::RELR[1], 1 << 40))),
    no("dynamic-table-overflow", Defect::BadDynamicSection, || {
        movable(|program| program.set(tag::RELA[1], u64::MAX / 24 * 24))
    }),
    no("dynamic-half-entry", Defect::BadDynamicSection, || movable(|program| program.set(tag::RELR[0], 12))),
    no("dynamic-entry-size", Defect::BadDynamicSection, || movable(|program| program.set(tag::RELA[2], 16))),
    no("libraries", Defect::NeedsLibraries, || movable(|program| program.tags.insert(0, (tag::NEEDED, 1)))),
    no("text-relocations", Defect::RelocationOfConstant, || movable(|program| program.tags.insert(0, (tag::TEXT, 0)))),
];

/// Mistakes in relocations.
const RELOCATIONS: [Mistake; 13] = [
    no("relocation-of-symbol", Defect::UnknownRelocation, || {
        movable(|program| program.relocate(&[], &[[CONSTANTS, 1 << 32 | RELATIVE, 0]]))
    }),
    no("relocation-unknown", Defect::UnknownRelocation, || {
        movable(|program| program.relocate(&[], &[[CONSTANTS, 257, 0]]))
    }),
    no("relocation-of-jump", Defect::UnknownRelocation, || {
        movable(|program| program.tags.insert(0, (tag::JUMPS, 0x200)))
    }),
    no("relocation-without-value", Defect::UnknownRelocation, || {
        movable(|program| program.tags.insert(0, (tag::REL, 0x200)))
    }),
    no("relocation-outside", Defect::RelocationOutside, || movable(|program| program.relocate(&[0x8000], &[]))),
    no("relocation-overflow", Defect::RelocationOutside, || {
        movable(|program| program.relocate(&[], &[[u64::MAX - 7, RELATIVE, 0]]))
    }),
    no("relocation-of-zeros", Defect::RelocationOutside, || {
        movable(|program| program.relocate(&[], &[[DATA + 16, RELATIVE, 0]]))
    }),
    no("relocation-by-map-outside", Defect::RelocationOutside, || {
        movable(|program| program.relocate(&[CONSTANTS, 1 | 1 << 63], &[]))
    }),
    no("relocation-of-code", Defect::RelocationOfConstant, || movable(|program| program.relocate(&[0x1000], &[]))),
    no("relocation-of-table", Defect::RelocationOfConstant, || {
        movable(|program| program.relocate(&[], &[[0x10, RELATIVE, 0]]))
    }),
    no("relocation-order", Defect::BadRelocation, || movable(|program| program.relocate(&[DATA, CONSTANTS], &[]))),
    no("relocation-twice", Defect::BadRelocation, || {
        movable(|program| program.relocate(&[CONSTANTS], &[[CONSTANTS, RELATIVE, 0]]))
    }),
    no("relocation-misaligned", Defect::BadRelocation, || {
        movable(|program| program.relocate(&[], &[[CONSTANTS + 4, RELATIVE, 0]]))
    }),
];
