//! The loaded address space, compared page by page with a model of the machine.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tench_abi::layout::address;
use tench_abi::memory::MapFlags;
use tench_abi::object::{FRAME_MAX_BITS, FRAME_MIN_BITS};
use tench_abi::process::{Info, MAGIC};
use tench_abi::{CapAddress, Kind};
use tench_corpus::elf::{Elf, Header, R, RW, RX};
use tench_corpus::good::{self, Movable};
use tench_loader::addresses::{Addresses, Randomness, StackSize};
use tench_loader::information::{BLOCK_SIZE, Description, Stack, TEXT_SIZE};
use tench_loader::pages::{Run, chunks, runs};
use tench_loader::space::Origin;
use tench_loader::{Builder, LoadError, Program, space};
use tench_procs_interface::protocol::Defect;

/// A model of the machine for the loader: objects by number, tables with entries.
#[derive(Default)]
struct Model {
    objects: Vec<Object>,
    /// Number of objects that can still be made.
    limit: Option<usize>,
    /// A file that lies in two frames: its address, the offset of the second frame, and the first frame's number.
    shown: Option<(*const u8, usize, usize)>,
}

/// Offset of the file in its first frame.
const SHOWN_OFFSET: usize = 0x3000;

enum Object {
    Frame(Vec<u8>),
    Table { level: u64, entries: BTreeMap<u64, Entry>, installed: bool },
}

#[derive(Clone, Copy)]
enum Entry {
    Table(usize),
    Page { frame: usize, offset: u64, flags: MapFlags },
}

impl Builder for Model {
    fn origin(&self, contents: &[u8]) -> Option<Origin> {
        let (start, middle, frame) = self.shown?;
        let offset_in_file = contents.as_ptr().addr() - start.addr();
        let (frame, offset, end) = if offset_in_file < middle {
            (frame, offset_in_file + SHOWN_OFFSET, middle + SHOWN_OFFSET)
        } else {
            (frame + 1, offset_in_file - middle, usize::MAX)
        };
        let bytes = contents.len().min(end - offset) as u64 & !4095;
        let is_page = offset_in_file.is_multiple_of(4096) && bytes > 0;
        is_page.then_some(Origin { frame: CapAddress(frame as u32 + 1), offset: offset as u64, bytes })
    }

    fn make(&mut self, kind: Kind, size: u64) -> Result<CapAddress, LoadError> {
        if let Some(limit) = &mut self.limit {
            *limit = limit.checked_sub(1).ok_or(LoadError::OutOfMemory)?;
        }
        self.objects.push(match kind {
            Kind::Frame => {
                assert!((FRAME_MIN_BITS as u64..=FRAME_MAX_BITS as u64).contains(&size));
                Object::Frame(vec![0; 1 << size])
            }
            Kind::PageTable => Object::Table { level: size, entries: BTreeMap::new(), installed: false },
            other => panic!("{other:?}"),
        });
        Ok(CapAddress(self.objects.len() as u32))
    }

    fn fill(&mut self, frame: CapAddress, size_bits: u32, offset: u64, bytes: &[u8]) -> Result<(), LoadError> {
        let Object::Frame(contents) = &mut self.objects[frame.0 as usize - 1] else { panic!("no frame") };
        assert_eq!(contents.len(), 1 << size_bits);
        contents[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn install(&mut self, table: CapAddress, parent: CapAddress, entry: u64) -> Result<(), LoadError> {
        let (table, parent) = (table.0 as usize - 1, parent.0 as usize - 1);
        let Object::Table { level: below, installed, .. } = &mut self.objects[table] else { panic!("no table") };
        assert!(!std::mem::replace(installed, true));
        let below = *below;
        let Object::Table { level, entries, .. } = &mut self.objects[parent] else { panic!("no table") };
        assert_eq!(*level + 1, below);
        assert!(entry < 512 && entries.insert(entry, Entry::Table(table)).is_none());
        Ok(())
    }

    fn map(
        &mut self,
        frame: CapAddress,
        table: CapAddress,
        first: u64,
        count: u64,
        offset: u64,
        flags: MapFlags,
    ) -> Result<(), LoadError> {
        let (frame, table) = (frame.0 as usize - 1, table.0 as usize - 1);
        let Object::Frame(contents) = &self.objects[frame] else { panic!("no frame") };
        assert!(count > 0 && offset + count * 4096 <= contents.len() as u64);
        let Object::Table { level: 3, entries, .. } = &mut self.objects[table] else { panic!("not of level 3") };
        for n in 0..count {
            let page = Entry::Page { frame, offset: offset + n * 4096, flags };
            assert!(first + n < 512 && entries.insert(first + n, page).is_none());
        }
        Ok(())
    }
}

impl Model {
    /// Returns the page mapped at `address`.
    fn page(&self, root: CapAddress, address: u64) -> Option<(&[u8], MapFlags)> {
        let mut table = root.0 as usize - 1;
        for shift in [39, 30, 21, 12] {
            let Object::Table { entries, .. } = &self.objects[table] else { panic!("no table") };
            match *entries.get(&(address >> shift & 511))? {
                Entry::Table(next) => table = next,
                Entry::Page { frame, offset, flags } => {
                    let Object::Frame(contents) = &self.objects[frame] else { panic!("no frame") };
                    return Some((&contents[offset as usize..][..4096], flags));
                }
            }
        }
        None
    }

    fn pages(&self) -> usize {
        let tables = self.objects.iter().filter_map(|object| match object {
            Object::Table { entries, .. } => Some(entries),
            Object::Frame(_) => None,
        });
        tables.flat_map(|entries| entries.values()).filter(|entry| matches!(entry, Entry::Page { .. })).count()
    }
}

const DESCRIPTION: Description = Description {
    pid: 7,
    name: "bin/hello",
    arguments: b"one\0two words\0",
    environment: b"COLOUR=no\0",
    extra_count: 2,
    counter_frequency: 62_500_000,
    addresses: ADDRESSES,
};

const ADDRESSES: Addresses = Addresses {
    bias: 0,
    information: 0x7fff_0000_0000,
    messages: 0x7fff_0010_0000,
    stack: Stack { bottom: 0x7ffd_ffff_0000, top: 0x7ffe_0000_0000, own: 0 },
    dynamic: 0x1000_4020_0000,
    metadata: 0x5000_4000_0000,
    random: [11, 12, 13, 14],
};

/// Returns a program moved to addresses chosen with a seed, and the addresses.
fn placed<'a>(file: &'a [u8], stack_size: u64, seed: u8) -> (Program<'a>, Addresses) {
    let mut program = Program::parse(file).unwrap();
    let stack = StackSize::of(&program, stack_size);
    let addresses = Addresses::choose(&program, stack, &mut Randomness::new([seed; 32]).sequence());
    program.move_by(addresses.bias);
    (program, addresses)
}

/// Compares every page of a loaded program with the file, at various addresses.
fn check(elf: &Elf) {
    for seed in 0..4 {
        check_with(&elf.write(), 0, seed);
    }
}

/// Returns the expected contents of a segment, after relocation.
fn wanted(program: &Program, segment: &tench_loader::program::Segment<'_>) -> Vec<u8> {
    let mut wanted = vec![0; segment.size as usize];
    wanted[segment.lead as usize..][..segment.contents.len()].copy_from_slice(segment.contents);
    for word in program.relocations.words() {
        let address = word.address + program.bias;
        if (segment.address..segment.end()).contains(&address) {
            let bytes = &mut wanted[(address - segment.address) as usize..][..8];
            let value = word.value.unwrap_or(u64::from_le_bytes(bytes.try_into().unwrap()));
            bytes.copy_from_slice(&(value + program.bias).to_le_bytes());
        }
    }
    wanted
}

/// Checks a program as [`check`] does, with a stack size and a seed. Returns the model of the machine, the address
/// space, and the addresses.
fn check_with(file: &[u8], stack_size: u64, seed: u8) -> (Model, CapAddress, Addresses) {
    let (program, addresses) = placed(file, stack_size, seed);
    let mut model = Model::default();
    let image = space::image(&mut model, &program, &Description { addresses, ..DESCRIPTION }).unwrap();
    let root = image.space.root();

    let stack = addresses.stack;
    let mut pages = stack.size() as usize / 4096 + BLOCK_SIZE / 4096 + 1;
    for segment in &program.segments {
        pages += segment.size as usize / 4096;
        for (n, wanted) in wanted(&program, segment).chunks(4096).enumerate() {
            let (found, flags) = model.page(root, segment.address + n as u64 * 4096).unwrap();
            assert!(found == wanted && flags == segment.flags);
        }
    }
    assert_eq!(model.pages(), pages, "nothing else is mapped");
    assert!(model.page(root, 0).is_none());
    assert!(model.page(root, stack.bottom - 4096).is_none(), "guard page");
    let area = |address| model.page(root, address).map(|(_, flags)| flags);
    for page in (stack.bottom..stack.top).step_by(4096).chain([addresses.messages]) {
        assert_eq!(area(page), Some(MapFlags::READ | MapFlags::WRITE));
    }
    for page in (addresses.information..addresses.information + BLOCK_SIZE as u64).step_by(4096) {
        assert_eq!(area(page), Some(MapFlags::READ));
    }
    for (address, size) in [(addresses.dynamic, 1 << 30), (addresses.metadata, address::METADATA_SIZE)] {
        assert!((address..address + size).step_by(4096 * 511).all(|page| model.page(root, page).is_none()));
    }
    (model, root, addresses)
}

/// Returns the information block's words in a range.
fn words(model: &Model, root: CapAddress, addresses: &Addresses, range: std::ops::Range<usize>) -> Vec<u64> {
    let (page, _) = model.page(root, addresses.information).unwrap();
    range.map(|n| u64::from_le_bytes(page[n * 8..][..8].try_into().unwrap())).collect()
}

/// Returns the number of tables of a model.
fn tables(model: &Model) -> usize {
    model.objects.iter().filter(|object| matches!(object, Object::Table { .. })).count()
}

#[test]
fn a_program_that_makes_its_stack_begins_on_a_small_one() {
    let mut elf = good::fixed();
    elf.headers.push(Header::note(b"Tench\0", 1, &1u32.to_le_bytes()));
    for (asked, own) in [(0, 1 << 20), (0x3000, 0x3000), (16 << 20, 16 << 20)] {
        for seed in 0..20 {
            let (model, root, addresses) = check_with(&elf.write(), asked, seed);
            assert_eq!(addresses.stack.size(), 0x8000);
            let said = words(&model, root, &addresses, 8..11);
            assert_eq!(said, [addresses.stack.bottom, addresses.stack.top, own]);
            // The block lies where tables exist anyway: those of the segments, and those of all else.
            assert_eq!(tables(&model), 1 + 3 + 3);
        }
    }
}

#[test]
fn a_program_that_does_not_gets_all_of_its_stack() {
    for (asked, size) in [(0, 0x1_0000), (0x3000, 0x3000), (16 << 20, 16 << 20)] {
        let mut counts = std::collections::BTreeSet::new();
        for seed in 0..20 {
            let (model, root, addresses) = check_with(&good::fixed().write(), asked, seed);
            let said = words(&model, root, &addresses, 8..11);
            assert_eq!(said, [addresses.stack.top - size, addresses.stack.top, 0]);
            counts.insert(tables(&model));
        }
        assert_eq!(counts.len(), 1, "as many tables wherever it lies");
    }
}

#[test]
fn a_program_that_can_be_moved_finds_itself_relocated() {
    let mut counts = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let (model, ..) = check_with(&Movable::new().write(), 0, seed);
        counts.insert((tables(&model), model.objects.len()));
    }
    assert_eq!(counts.len(), 1, "as many tables and frames wherever it lies");
}

#[test]
fn relocation_goes_across_pages_and_leaves_the_others_alone() {
    let mut movable = Movable::new();
    // Constants of three pages: the end of the first and the start of the second are relocated, nothing of the third.
    movable.elf.headers[2] = Header::load(RW, 0x2008, 0x3000 - 8, &[0x55; 0x2f00]);
    movable.elf.headers[3].address = 0x6000;
    movable.relocate(&[0x2ff8, 0b11], &[[0x6008, good::RELATIVE, 3]]);
    for seed in 0..8 {
        check_with(&movable.write(), 0, seed);
    }
}

#[test]
fn a_program_finds_what_its_file_says() {
    check(&good::fixed());
}

/// Loads a program whose file lies in two frames whose pages may be mapped into processes; the second begins at offset
/// `middle` of the file. Returns the addresses of the pages that are mapped from there.
fn check_shown(file: &[u8], middle: usize, seed: u8) -> Vec<u64> {
    let (program, addresses) = placed(file, 0, seed);
    let mut first = vec![0xee; SHOWN_OFFSET];
    first.extend(&file[..middle]);
    let objects = vec![Object::Frame(first), Object::Frame(file[middle..].to_vec())];
    let mut model = Model { objects, limit: None, shown: Some((file.as_ptr(), middle, 0)) };
    let image = space::image(&mut model, &program, &Description { addresses, ..DESCRIPTION }).unwrap();
    let mut shown = Vec::new();
    for segment in &program.segments {
        for (n, wanted) in wanted(&program, segment).chunks(4096).enumerate() {
            let address = segment.address + n as u64 * 4096;
            let (found, flags) = model.page(image.space.root(), address).unwrap();
            assert!(found == wanted && flags == segment.flags);
            let in_file = |object: &Object| match object {
                Object::Frame(bytes) => bytes.as_ptr_range().contains(&found.as_ptr()),
                Object::Table { .. } => false,
            };
            if model.objects[..2].iter().any(in_file) {
                shown.push(address - program.bias);
            }
        }
    }
    shown
}

#[test]
fn constant_pages_are_shown_where_the_file_has_them() {
    let pages = |byte: u8, pages: usize| vec![byte; pages * 4096];
    let elf = Elf::new(
        0x20_3000,
        vec![
            Header::load(R, 0x20_0000, 0x2000, &pages(1, 2)),
            Header::load(RX, 0x20_3000, 0x4000, &pages(2, 4)),
            Header::load(RW, 0x20_8000, 0x1000, &pages(3, 1)),
            // Not whole pages, or not all in the file.
            Header::load(R, 0x20_a010, 0xff0, &pages(4, 1)[..0xff0]),
            Header::load(R, 0x20_c000, 0x2000, &pages(5, 1)),
        ],
    );
    // The second frame begins in the middle of the code.
    let shown = check_shown(&elf.write(), 0x5000, 0);
    assert_eq!(shown, [0x20_0000, 0x20_1000, 0x20_3000, 0x20_4000, 0x20_5000, 0x20_6000]);
}

#[test]
fn relocated_pages_are_copies_even_if_they_are_constant_afterwards() {
    let mut movable = Movable::new();
    movable.elf.headers[2] = Header::load(RW, 0x2000, 0x1000, &[0x55; 0x1000]);
    movable.relocate(&[0x2ff8], &[]);
    let file = movable.write();
    let constant = Program::parse(&file).unwrap().segments.iter().any(|segment| {
        segment.address == 0x2000 && segment.contents.len() == 0x1000 && !segment.flags.contains(MapFlags::WRITE)
    });
    assert!(constant, "it fills a page and is not written");
    for seed in 0..8 {
        assert!(!check_shown(&file, 0x1000, seed).contains(&0x2000));
    }
}

#[test]
fn a_segment_across_tables_is_mapped_whole() {
    let mut elf = good::fixed();
    elf.headers[2] = Header::load(RW, 0x3f_e123, 0x40_5000, &[7; 0x20_3003]);
    check(&elf);
}

#[test]
fn the_information_block_says_what_was_given() {
    let file = good::fixed().write();
    let program = Program::parse(&file).unwrap();
    let mut model = Model::default();
    let image = space::image(&mut model, &program, &DESCRIPTION).unwrap();
    let root = image.space.root();
    let said = words(&model, root, &ADDRESSES, 0..23);
    let text = size_of::<Info>() as u64;
    let environment = text + 10 + 14;
    assert_eq!(said[..4], [MAGIC, 7, 3, text]);
    assert_eq!(said[4..11], [1, environment, 2, 62_500_000, 0x7ffd_ffff_0000, 0x7ffe_0000_0000, 0]);
    assert_eq!(said[11..15], [ADDRESSES.messages, ADDRESSES.dynamic, ADDRESSES.metadata, 0]);
    assert_eq!(said[15..19], ADDRESSES.random);
    assert_eq!(said[19..], [3, 0x20_0000, 0x1000, MapFlags::READ.bits()]);
    let (page, _) = model.page(root, ADDRESSES.information).unwrap();
    assert!(page[text as usize..].starts_with(b"bin/hello\0one\0two words\0COLOUR=no\0\0"));
}

#[test]
fn a_program_is_told_by_how_much_it_was_moved() {
    let (model, root, addresses) = check_with(&Movable::new().write(), 0, 5);
    assert!(addresses.bias >= 0x20_0000);
    assert_eq!(words(&model, root, &addresses, 14..15), [addresses.bias]);
}

#[test]
fn arguments_that_do_not_fit_are_refused() {
    let file = good::fixed().write();
    let program = Program::parse(&file).unwrap();
    let with = |bytes: usize| {
        let arguments = vec![b'x'; bytes];
        let description = Description { arguments: &arguments, environment: b"", ..DESCRIPTION };
        space::image(&mut Model::default(), &program, &description).err()
    };
    assert_eq!(with(TEXT_SIZE - 11), None);
    assert_eq!(with(TEXT_SIZE - 10), Some(LoadError::Defect(Defect::ArgumentsTooLong)));
}

#[test]
fn running_out_of_memory_at_any_point_is_an_error() {
    let file = good::fixed().write();
    let program = Program::parse(&file).unwrap();
    let mut model = Model::default();
    space::image(&mut model, &program, &DESCRIPTION).unwrap();
    for limit in 0..model.objects.len() {
        let mut model = Model { limit: Some(limit), ..Model::default() };
        let error = space::image(&mut model, &program, &DESCRIPTION).err();
        assert_eq!(error, Some(LoadError::OutOfMemory));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_program_finds_what_its_file_says(
        start in 0x1000..0x60_0000u64,
        gap in 0x1000..0x20_0000u64,
        code in 1..0x3000usize,
        data in 0..0x2_0000usize,
        zero in 1..0x20_0000u64,
    ) {
        let start = start & !3;
        let mut elf = good::fixed();
        elf.entry = start;
        let after = start + code as u64 + gap;
        elf.headers = vec![
            Header::load(RX, start, code as u64 + 4, &vec![3; code]),
            Header::load(RW, after + 0x1000, data as u64 + zero, &vec![5; data]),
        ];
        check(&elf);
    }

    #[test]
    fn chunks_cover_a_range_without_gaps(pages in 0..1_000_000u64) {
        let mut end = 0;
        let mut previous = u32::MAX;
        for chunk in chunks(pages * 4096) {
            prop_assert_eq!(chunk.offset, end);
            prop_assert!(chunk.size_bits < previous || chunk.size_bits == FRAME_MAX_BITS);
            previous = chunk.size_bits;
            end += chunk.size();
        }
        prop_assert_eq!(end, pages * 4096);
    }

    #[test]
    fn runs_stay_within_tables(start in 0..0x800_0000u64, pages in 0..3000u64) {
        let start = start * 4096;
        let mut done = 0;
        for Run { address, first, count, offset } in runs(start, pages * 4096) {
            prop_assert_eq!(offset, done * 4096);
            prop_assert_eq!(address, start + offset);
            prop_assert_eq!(first, address >> 12 & 511);
            prop_assert!(count > 0 && first + count <= 512);
            done += count;
        }
        prop_assert_eq!(done, pages);
    }
}
