//! ELF files: one bad input per mistake, with its expected reason, and forms of accepted programs.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tench_abi::layout::address;
use tench_abi::memory::MapFlags;
use tench_corpus::elf::{Elf, Header, R, RW, RX};
use tench_corpus::good::{self, Movable};
use tench_loader::addresses::{Addresses, Randomness, StackSize};
use tench_loader::program::{Program, Relocation};
use tench_procs_interface::protocol::Defect;

/// Returns the good program, changed.
fn with(change: impl FnOnce(&mut Elf)) -> Elf {
    let mut elf = good::fixed();
    change(&mut elf);
    elf
}

#[test]
fn a_good_program_is_understood() {
    let file = good::fixed().write();
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
fn each_mistake_has_its_reason() {
    let mut names = BTreeSet::new();
    let mut reasons = BTreeSet::new();
    for mistake in tench_corpus::mistakes() {
        assert!(names.insert(mistake.name), "{} is there twice", mistake.name);
        assert_eq!(Program::parse(&mistake.file()).err(), Some(mistake.defect), "{}", mistake.name);
        reasons.insert(mistake.defect as u64);
    }
    assert!(names.len() >= 40);
    // Each reason has a file, except the one that no file can cause, and that of files which a parent transfers.
    let missing = (1..).map_while(Defect::from_code).filter(|defect| !reasons.contains(&(*defect as u64)));
    assert_eq!(missing.collect::<Vec<_>>(), [Defect::ArgumentsTooLong, Defect::TooLarge]);
}

#[test]
fn the_good_programs_are_accepted() {
    for (name, file) in tench_corpus::good() {
        assert!(Program::parse(&file).is_ok(), "{name}");
    }
}

#[test]
fn every_beginning_of_a_file_is_refused() {
    for file in [good::fixed().write(), Movable::new().write()] {
        for length in 0..file.len() {
            assert!(Program::parse(&file[..length]).is_err(), "{length} bytes");
        }
    }
}

#[test]
fn only_the_first_page_is_forbidden_to_programs() {
    let at = |address: u64| Program::parse(&with(|elf| elf.headers[2].address = address).write()).err();
    assert_eq!(at(0xff0), Some(Defect::FirstPage));
    assert_eq!(at(0x1000 - 1), Some(Defect::FirstPage));
    assert_eq!(at(0x1000), None);
    let last = address::DYNAMIC - 0x3000;
    assert_eq!(at(last), None);
    assert_eq!(at(last + 0x10), Some(Defect::BadAddress));
}

#[test]
fn sixteen_segments_are_the_most() {
    let many = |count: u64| {
        with(|elf| elf.headers.extend((3..count).map(|n| Header::load(R, 0x40_0000 + n * 0x1000, 8, b"x"))))
    };
    assert!(Program::parse(&many(16).write()).is_ok());
    assert_eq!(Program::parse(&many(17).write()).err(), Some(Defect::TooManySegments));
}

#[test]
fn a_program_that_can_be_moved_is_understood() {
    let file = Movable::new().write();
    let mut program = Program::parse(&file).unwrap();
    assert!(program.position_independent);
    // Parts that the linker calls constant after relocation are mapped read-only.
    let flags = [MapFlags::READ, MapFlags::READ | MapFlags::EXECUTE, MapFlags::READ, MapFlags::READ | MapFlags::WRITE];
    assert!(program.segments.iter().map(|segment| segment.flags).eq(flags));
    let relocations: Vec<Relocation> = program.relocations.words().collect();
    let relocation = |address, value| Relocation { address, value };
    assert_eq!(relocations, [relocation(0x2000, None), relocation(0x2018, None), relocation(0x3000, Some(0x2000))]);
    program.move_by(0x5000);
    assert_eq!((program.entry, program.bias, program.end()), (0x6000, 0x5000, 0xa000));
}

#[test]
fn constants_that_share_a_page_with_variables_stay_writable() {
    let mut movable = Movable::new();
    movable.elf.headers[4].memory_size = 0xfff;
    let file = movable.write();
    let program = Program::parse(&file).unwrap();
    assert_eq!(program.segments[2].flags, MapFlags::READ | MapFlags::WRITE);
}

#[test]
fn a_compact_relocation_can_speak_of_63_words() {
    let mut movable = Movable::new();
    movable.elf.headers[2].contents = vec![0; 0x800];
    // One word; then, by bit maps, the word after it and the 63rd, none of the next 63, and the first after those.
    movable.relocate(&[0x2000, 1 | 1 << 1 | 1 << 63, 1, 0b11], &[]);
    let file = movable.write();
    let program = Program::parse(&file).unwrap();
    let addresses: Vec<u64> = program.relocations.words().map(|word| word.address).collect();
    assert_eq!(addresses, [0x2000, 0x2008, 0x2008 + 62 * 8, 0x2008 + 126 * 8]);
}

/// Returns whether a program with these notes makes its stack itself.
fn makes_stack(notes: &[Header]) -> bool {
    let file = with(|elf| elf.headers.extend(notes.iter().cloned())).write();
    Program::parse(&file).unwrap().makes_stack
}

#[test]
fn a_note_says_that_a_program_makes_its_stack() {
    let note = || Header::note(b"Tench\0", 1, &[1, 0, 0, 0]);
    assert!(!makes_stack(&[]));
    assert!(makes_stack(&[note()]));
    // Among other notes, in the same part of the file and in another, with unknown flags.
    let others = Header::note(b"GNU\0", 3, b"an identifier 123456");
    let mut both = others.clone();
    both.contents.extend(Header::note(b"Tench\0", 1, &[0xff, 1, 0, 0]).contents);
    both.memory_size = both.contents.len() as u64;
    assert!(makes_stack(&[both]));
    assert!(makes_stack(&[others, note()]));
}

#[test]
fn other_notes_are_ignored() {
    let note = |name: &[u8], kind, description: &[u8]| makes_stack(&[Header::note(name, kind, description)]);
    assert!(!note(b"Trench\0", 1, &[1, 0, 0, 0]) && !note(b"Tench", 1, &[1, 0, 0, 0]), "another name");
    assert!(!note(b"Tench\0", 2, &[1, 0, 0, 0]), "another type");
    assert!(!note(b"Tench\0", 1, &[2, 0, 0, 0]), "another flag");
    assert!(!note(b"GNU\0", 1, &[1]), "somebody else's, of another size");
}

#[test]
fn a_note_can_begin_at_any_usual_alignment_and_end_anywhere() {
    let good = Header::note(b"Tench\0", 1, &[1, 0, 0, 0]);
    for alignment in [0, 1, 2, 4, 8] {
        let mut note = Header { alignment, ..good.clone() };
        if alignment == 8 {
            // The contents begin at a multiple of 8.
            note.contents.splice(20..20, [0; 4]);
        }
        assert!(makes_stack(&[note]), "{alignment}");
    }
    for length in 1..good.contents.len() as u64 {
        let file = with(|elf| elf.headers.push(Header { file_size: Some(length), ..good.clone() })).write();
        assert_eq!(Program::parse(&file).err(), Some(Defect::BadNote), "cut off at {length}");
    }
}

/// Checks the properties on which the rest of the loader relies, for a program moved to its addresses.
fn check(program: &Program) {
    assert!(!program.segments.is_empty());
    let mut end = 0x1000;
    for segment in &program.segments {
        assert!(segment.address >= end && segment.address.is_multiple_of(4096));
        assert!(segment.size > 0 && segment.size.is_multiple_of(4096));
        assert!(segment.lead < 4096);
        assert!(segment.lead + segment.contents.len() as u64 <= segment.size);
        assert!(segment.flags.contains(MapFlags::READ));
        assert!(!segment.flags.contains(MapFlags::WRITE | MapFlags::EXECUTE));
        end = segment.end();
    }
    assert!(end <= address::DYNAMIC);
    assert!(program.segment_at(program.entry).unwrap().flags.contains(MapFlags::EXECUTE));
    let mut next = 0;
    for word in program.relocations.words() {
        assert!(word.address >= next && word.address.is_multiple_of(8));
        let address = word.address + program.bias;
        let segment = program.segment_at(address).unwrap();
        let contents = segment.address + segment.lead..segment.address + segment.lead + segment.contents.len() as u64;
        assert!(contents.contains(&address) && contents.contains(&(address + 7)));
        assert!(!segment.flags.contains(MapFlags::EXECUTE));
        next = word.address + 8;
    }
}

/// Reads a program, moves it by the seed's displacement, and checks it.
fn read(file: &[u8], seed: u8) -> Result<(), Defect> {
    let mut program = Program::parse(file)?;
    let addresses =
        Addresses::choose(&program, StackSize::of(&program, 0), &mut Randomness::new([seed; 32]).sequence());
    program.move_by(addresses.bias);
    check(&program);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn damaged_files_are_refused_or_sound(
        movable in any::<bool>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<bool>()), 1..6),
        seed in any::<u8>(),
    ) {
        let mut file = if movable { Movable::new().write() } else { good::fixed().write() };
        for (position, value, in_headers) in changes {
            // The headers, where most mistakes can be, are changed as often as all the rest.
            let end = if in_headers { 64 + 7 * 56 } else { file.len() };
            file[position.index(end)] = value;
        }
        let _ = read(&file, seed);
    }

    #[test]
    fn a_file_of_any_mistakes_is_refused_or_sound(
        which in any::<prop::sample::Index>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mistakes: Vec<_> = tench_corpus::mistakes().collect();
        let mut file = mistakes[which.index(mistakes.len())].file();
        for (position, value) in changes.iter().filter(|_| !file.is_empty()).collect::<Vec<_>>() {
            let length = file.len();
            file[position.index(length)] = *value;
        }
        let _ = read(&file, 0);
    }

    #[test]
    fn any_dynamic_section_is_refused_or_sound(
        tags in proptest::collection::vec((0..40u64, prop_oneof![0..0x4000u64, any::<u64>()]), 0..12),
        relr in proptest::collection::vec(prop_oneof![0x1ff0..0x3010u64, any::<u64>()], 0..9),
    ) {
        let mut movable = Movable::new();
        movable.relocate(&relr, &[]);
        movable.tags.splice(1..1, tags);
        let _ = read(&movable.write(), 1);
    }

    #[test]
    fn any_note_is_read_or_refused(
        contents in proptest::collection::vec(prop_oneof![Just(0u8), 1..8u8, any::<u8>()], 0..60),
        alignment in prop_oneof![0..9u64, any::<u64>()],
        size in prop_oneof![Just(None), (0..99u64).prop_map(Some), any::<u64>().prop_map(Some)],
    ) {
        let note = Header { contents, alignment, file_size: size, ..Header::note(b"", 0, b"") };
        let refused = read(&with(|elf| elf.headers.push(note)).write(), 0).err();
        prop_assert!(refused.is_none_or(|defect| defect == Defect::BadNote));
    }

    #[test]
    fn arbitrary_headers_are_refused_or_sound(
        headers in proptest::collection::vec(
            (prop_oneof![Just(RW), Just(RX), Just(R), 0..8u32], 0..0x10_000u64, 0..0x9000u64, 0..600usize), 1..8),
        entry in 0..0x10_000u64,
    ) {
        let headers = headers.iter().map(|&(flags, at, size, bytes)| Header::load(flags, at, size, &vec![1; bytes]));
        let _ = read(&Elf::new(entry, headers.collect()).write(), 0);
    }
}
