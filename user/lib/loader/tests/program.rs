//! ELF files: one bad input per mistake, with the reason it must be given.

mod common;

use common::{Elf, Header, INTERPRETER, R, RW, RWX, RX};
use proptest::prelude::*;
use tench_abi::memory::MapFlags;
use tench_loader::Program;
use tench_procs_client::protocol::Defect;

fn defect(elf: &Elf) -> Defect {
    Program::parse(&elf.write()).err().expect("must be refused")
}

/// The good program, changed.
fn with(change: impl FnOnce(&mut Elf)) -> Elf {
    let mut elf = Elf::good();
    change(&mut elf);
    elf
}

#[test]
fn a_good_program_is_understood() {
    let file = Elf::good().write();
    let program = Program::parse(&file).unwrap();
    assert_eq!(program.entry, 0x20_1004);
    let found: Vec<_> = program.segments.iter().map(|s| (s.address, s.size, s.flags, s.lead)).collect();
    assert_eq!(
        found,
        [
            (0x20_0000, 0x1000, MapFlags::READ, 0),
            (0x20_1000, 0x2000, MapFlags::READ | MapFlags::EXECUTE, 0),
            (0x20_4000, 0x4000, MapFlags::READ | MapFlags::WRITE, 0x10),
        ]
    );
    assert_eq!(program.segments[0].contents, b"constants");
    assert_eq!(program.size(), 0x7000);
}

#[test]
fn what_is_not_elf_is_refused() {
    assert_eq!(Program::parse(b"").err(), Some(Defect::NotElf));
    assert_eq!(Program::parse(b"#!/bin/sh\n").err(), Some(Defect::NotElf));
    let file = Elf::good().write();
    for length in 0..64 + 3 * 56 {
        assert_eq!(Program::parse(&file[..length]).err(), Some(Defect::NotElf), "{length} bytes");
    }
}

#[test]
fn another_machine_is_refused() {
    assert_eq!(defect(&with(|elf| elf.machine = 62)), Defect::WrongMachine);
    assert_eq!(defect(&with(|elf| elf.endianness = 2)), Defect::WrongMachine);
}

#[test]
fn another_class_is_refused() {
    assert!(matches!(defect(&with(|elf| elf.class = 1)), Defect::WrongMachine | Defect::NotElf));
}

#[test]
fn objects_and_shared_libraries_are_refused() {
    assert_eq!(defect(&with(|elf| elf.kind = 1)), Defect::NotExecutable);
    assert_eq!(defect(&with(|elf| elf.kind = 3)), Defect::NotExecutable);
}

#[test]
fn a_program_without_segments_is_refused() {
    assert_eq!(defect(&with(|elf| elf.headers.clear())), Defect::NoSegments);
    assert_eq!(defect(&with(|elf| elf.headers.iter_mut().for_each(|h| h.kind = 6))), Defect::NoSegments);
}

#[test]
fn a_seventeenth_segment_is_refused() {
    let many = |count: u64| {
        with(|elf| elf.headers.extend((3..count).map(|n| Header::load(R, 0x40_0000 + n * 0x1000, 8, b"x"))))
    };
    assert!(Program::parse(&many(16).write()).is_ok());
    assert_eq!(defect(&many(17)), Defect::TooManySegments);
}

#[test]
fn contents_outside_the_file_are_refused() {
    assert_eq!(defect(&with(|elf| elf.headers[0].offset = Some(1 << 40))), Defect::SegmentOutsideFile);
    assert_eq!(defect(&with(|elf| elf.headers[0].offset = Some(u64::MAX))), Defect::SegmentOutsideFile);
    let file = Elf::good().write();
    assert_eq!(Program::parse(&file[..file.len() - 1]).err(), Some(Defect::SegmentOutsideFile));
}

#[test]
fn contradicting_sizes_are_refused() {
    assert_eq!(defect(&with(|elf| elf.headers[0].memory_size = 1)), Defect::BadSegmentSize);
    assert_eq!(defect(&with(|elf| elf.headers[2].memory_size = u64::MAX)), Defect::BadSegmentSize);
}

#[test]
fn addresses_that_are_not_for_programs_are_refused() {
    for address in [0, 0xfff, 0x1000_0000_0000, 0x7fff_0000_0000, 0xffff_0000_0000_0000] {
        assert_eq!(defect(&with(|elf| elf.headers[2].address = address)), Defect::BadAddress, "{address:x}");
    }
    let last = 0x1000_0000_0000 - 0x3000;
    assert!(Program::parse(&with(|elf| elf.headers[2].address = last).write()).is_ok());
    assert_eq!(defect(&with(|elf| elf.headers[2].address = last + 1)), Defect::BadAddress);
}

#[test]
fn segments_in_one_page_are_refused() {
    assert_eq!(defect(&with(|elf| elf.headers[2].address = 0x20_2ff0)), Defect::SegmentsOverlap);
    assert_eq!(defect(&with(|elf| elf.headers[2].address = 0x20_0200)), Defect::SegmentsOverlap);
}

#[test]
fn writable_and_executable_is_refused() {
    assert_eq!(defect(&with(|elf| elf.headers[1].flags = RWX)), Defect::WritableAndExecutable);
}

#[test]
fn unreadable_segments_are_refused() {
    for flags in [0, 1, 2] {
        assert_eq!(defect(&with(|elf| elf.headers[0].flags = flags)), Defect::NotReadable);
    }
}

#[test]
fn an_entry_outside_the_code_is_refused() {
    for entry in [0, 0x20_0000, 0x20_4010, 0x20_3000, 0x20_1002, u64::MAX] {
        assert_eq!(defect(&with(|elf| elf.entry = entry)), Defect::BadEntry, "{entry:x}");
    }
}

#[test]
fn a_program_for_a_dynamic_linker_is_refused() {
    let elf = with(|elf| elf.headers.push(Header { kind: INTERPRETER, ..Header::load(R, 0, 4, b"/ld\0") }));
    assert_eq!(defect(&elf), Defect::NeedsInterpreter);
}

/// Whether a program with these notes makes its stack itself.
fn makes_stack(notes: &[Header]) -> bool {
    let file = with(|elf| elf.headers.extend(notes.iter().cloned())).write();
    Program::parse(&file).unwrap().makes_stack
}

#[test]
fn a_note_says_that_a_program_makes_its_stack() {
    let note = || Header::note(b"Tench\0", 1, &[1, 0, 0, 0]);
    assert!(!makes_stack(&[]));
    assert!(makes_stack(&[note()]));
    // Among others, in the same part of the file and in another, with flags that are not known here.
    let others = Header::note(b"GNU\0", 3, b"an identifier 123456");
    let mut both = others.clone();
    both.contents.extend(Header::note(b"Tench\0", 1, &[0xff, 1, 0, 0]).contents);
    both.memory_size = both.contents.len() as u64;
    assert!(makes_stack(&[both]));
    assert!(makes_stack(&[others, note()]));
}

#[test]
fn what_is_no_such_note_says_nothing() {
    let note = |name: &[u8], kind, description: &[u8]| makes_stack(&[Header::note(name, kind, description)]);
    assert!(!note(b"Trench\0", 1, &[1, 0, 0, 0]) && !note(b"Tench", 1, &[1, 0, 0, 0]), "another name");
    assert!(!note(b"Tench\0", 2, &[1, 0, 0, 0]), "another type");
    assert!(!note(b"Tench\0", 1, &[2, 0, 0, 0]), "another flag");
    assert!(!note(b"Tench\0", 1, &[1]) && !note(b"Tench\0", 1, &[1; 5]), "no word");
    let good = Header::note(b"Tench\0", 1, &[1, 0, 0, 0]);
    assert!(!makes_stack(&[Header { offset: Some(u64::MAX), ..good.clone() }]), "outside of the file");
    assert!(!makes_stack(&[Header { alignment: 0, ..good.clone() }]), "no alignment");
    for length in 0..good.contents.len() {
        assert!(!makes_stack(&[Header { file_size: Some(length as u64), ..good.clone() }]), "cut off at {length}");
    }
}

/// What the rest of the loader relies on.
fn check(program: &Program) {
    assert!(!program.segments.is_empty());
    let mut end = 0x1000;
    for segment in &program.segments {
        assert!(segment.address >= end && segment.address.is_multiple_of(4096));
        assert!(segment.size > 0 && segment.size.is_multiple_of(4096));
        assert!(segment.lead < 4096);
        assert!(segment.lead + segment.contents.len() as u64 <= segment.size);
        assert!(!segment.flags.contains(MapFlags::WRITE | MapFlags::EXECUTE));
        end = segment.end();
    }
    assert!(end <= 0x1000_0000_0000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn damaged_files_are_refused_or_sound(changes in proptest::collection::vec((0usize..300, any::<u8>()), 1..6)) {
        let mut file = Elf::good().write();
        for (position, value) in changes {
            file[position] = value;
        }
        if let Ok(program) = Program::parse(&file) {
            check(&program);
        }
    }

    #[test]
    fn any_note_is_read_or_ignored(
        contents in proptest::collection::vec(prop_oneof![Just(0u8), 1..8u8, any::<u8>()], 0..60),
        alignment in prop_oneof![0..9u64, any::<u64>()],
        size in prop_oneof![Just(None), (0..99u64).prop_map(Some), any::<u64>().prop_map(Some)],
    ) {
        let note = Header { contents, alignment, file_size: size, ..Header::note(b"", 0, b"") };
        let file = with(|elf| elf.headers.push(note)).write();
        check(&Program::parse(&file).unwrap());
    }

    #[test]
    fn arbitrary_headers_are_refused_or_sound(
        headers in proptest::collection::vec(
            (prop_oneof![Just(RW), Just(RX), Just(R), 0..8u32], 0..0x10_000u64, 0..0x9000u64, 0..600usize), 1..8),
        entry in 0..0x10_000u64,
    ) {
        let headers = headers.iter().map(|&(flags, at, size, bytes)| Header::load(flags, at, size, &vec![1; bytes]));
        let elf = Elf { headers: headers.collect(), entry, ..Elf::good() };
        if let Ok(program) = Program::parse(&elf.write()) {
            check(&program);
        }
    }
}
