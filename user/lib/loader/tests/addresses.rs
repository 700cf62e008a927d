//! Layouts: parts lie apart from each other, in their ranges, and differently each time.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tench_abi::layout::address;
use tench_abi::memory::USER_END;
use tench_corpus::elf::{Header, RW};
use tench_corpus::good::{self, Movable};
use tench_loader::addresses::{self, Addresses, Randomness, StackSize};
use tench_loader::program::Program;

const PAGE: u64 = 4096;
const TABLE: u64 = 2 << 20;

/// Number of tables of each level below the first that map a range.
fn tables(start: u64, end: u64) -> [u64; 3] {
    [39, 30, 21].map(|shift| ((end - 1) >> shift) - (start >> shift) + 1)
}

/// Checks the properties of every layout.
fn check(program: &Program, stack: StackSize, chosen: &Addresses) {
    let program_start = program.segments[0].address + chosen.bias;
    let size = match stack {
        StackSize::Whole(size) => size,
        StackSize::Own(_) => address::FIRST_STACK_SIZE,
    };
    assert_eq!(chosen.stack.size(), size);
    let mut parts = [
        (program_start, program.end() + chosen.bias),
        (chosen.dynamic, address::DYNAMIC_END),
        (chosen.metadata, chosen.metadata + address::METADATA_SIZE),
        (chosen.information, chosen.information + 4 * PAGE),
        (chosen.messages, chosen.messages + PAGE),
        // With the guard page.
        (chosen.stack.bottom - PAGE, chosen.stack.top),
    ];
    assert!(parts.iter().all(|(start, end)| start % PAGE == 0 && end % PAGE == 0 && *end <= USER_END));
    parts.sort_unstable();
    assert!(parts[0].0 >= PAGE);
    assert!(parts.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{parts:x?}");
    assert!(chosen.dynamic < address::DYNAMIC_END / 2, "there is room for all that a process can allocate");
    assert!(chosen.metadata >> 39 << 39 >= address::DYNAMIC_END, "an entry of level 0 of its own");
    if program.position_independent {
        assert!(chosen.bias.is_multiple_of(program.alignment) && chosen.bias >= address::PROGRAM);
        assert!(program.end() + chosen.bias <= address::DYNAMIC);
    } else {
        assert_eq!(chosen.bias, 0);
    }
    if let StackSize::Own(own) = stack {
        assert_eq!(chosen.stack.own, own);
        let small = [chosen.information, chosen.messages, chosen.stack.bottom - PAGE, chosen.stack.top - 1];
        assert!(small.iter().all(|address| address / TABLE == small[0] / TABLE), "one table shows them all");
    }
}

#[test]
fn two_processes_of_a_program_share_no_address() {
    let file = Movable::new().write();
    let program = Program::parse(&file).unwrap();
    let mut random = Randomness::new([1; 32]);
    let mut seen: [BTreeSet<u64>; 7] = Default::default();
    for stack in [StackSize::Whole(0x1_0000), StackSize::Own(1 << 20)] {
        for _ in 0..500 {
            let chosen = Addresses::choose(&program, stack, &mut random.sequence());
            check(&program, stack, &chosen);
            let classes = [
                chosen.bias,
                chosen.information,
                chosen.messages,
                chosen.stack.top,
                chosen.dynamic,
                chosen.metadata,
                chosen.random[0],
            ];
            seen.iter_mut().zip(classes).for_each(|(seen, class)| _ = seen.insert(class));
        }
    }
    // Lower bounds on different values in a thousand draws; the metadata has the fewest bits, 13.
    let fewest = [1000, 1000, 1000, 1000, 990, 900, 1000];
    for (class, (seen, fewest)) in seen.iter().zip(fewest).enumerate() {
        assert!(seen.len() >= fewest, "class {class}: {} of 1000 differ", seen.len());
    }
}

#[test]
fn a_seed_says_everything() {
    let file = Movable::new().write();
    let program = Program::parse(&file).unwrap();
    let draw = |seed: u8| {
        let mut random = Randomness::new([seed; 32]);
        [(); 3].map(|()| Addresses::choose(&program, StackSize::Own(1 << 20), &mut random.sequence()))
    };
    assert_eq!(draw(1), draw(1));
    let (one, two) = (draw(1), draw(2));
    for (one, two) in one.iter().zip(&two) {
        assert_ne!(one.bias, two.bias);
        assert_ne!(one.information, two.information);
        assert_ne!(one.dynamic, two.dynamic);
        assert_ne!(one.random, two.random);
    }
    // A process's random numbers seed a source of its own.
    assert_ne!(Randomness::from_words([1; 4]).sequence(), Randomness::from_words([2; 4]).sequence());
}

#[test]
fn each_core_makes_something_else_of_a_seed() {
    let file = Movable::new().write();
    let program = Program::parse(&file).unwrap();
    let draw = |mut random: Randomness| Addresses::choose(&program, StackSize::Own(1 << 20), &mut random.sequence());
    let seed = [1; 32];
    assert_eq!(draw(Randomness::of_core(seed, 0)), draw(Randomness::new(seed)), "the first takes it as it is");
    assert_eq!(draw(Randomness::of_core(seed, 5)), draw(Randomness::of_core(seed, 5)));
    let chosen: Vec<Addresses> = (0..64).map(|core| draw(Randomness::of_core(seed, core))).collect();
    let distinct: BTreeSet<(u64, u64, u64)> = chosen.iter().map(|one| (one.bias, one.dynamic, one.stack.top)).collect();
    assert_eq!(distinct.len(), 64);
    assert_eq!(chosen.iter().map(|one| one.bias).collect::<BTreeSet<u64>>().len(), 64);
    assert_eq!(chosen.iter().map(|one| one.random).collect::<BTreeSet<[u64; 4]>>().len(), 64);
}

#[test]
fn every_position_in_the_first_table_is_chosen() {
    let file = Movable::new().write();
    let program = Program::parse(&file).unwrap();
    let mut random = Randomness::new([9; 32]);
    let pages: BTreeSet<u64> = (0..20_000)
        .map(|_| Addresses::choose(&program, StackSize::Own(1 << 20), &mut random.sequence()).bias % TABLE / PAGE)
        .collect();
    // The program has 5 pages.
    assert!(pages.iter().copied().eq(0..=512 - 5));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_program_and_stack_get_addresses(
        seed in any::<u8>(),
        size in prop_oneof![1..0x40_0000u64, 1..0xfff_0000_0000u64],
        alignment in 12..=21u32,
        stack in 0..=4096u64,
        own in any::<bool>(),
    ) {
        let mut movable = Movable::new();
        movable.elf.headers.insert(4, Header { alignment: 1 << alignment, offset: Some(0), ..Header::load(RW, 0x20_0000, size, &[]) });
        let file = movable.write();
        let program = Program::parse(&file).unwrap();
        let stack = if own { StackSize::Own(PAGE * stack) } else { StackSize::Whole(PAGE * stack.max(1)) };
        let mut random = Randomness::new([seed; 32]);
        let first = Addresses::choose(&program, stack, &mut random.sequence());
        for _ in 0..20 {
            let chosen = Addresses::choose(&program, stack, &mut random.sequence());
            check(&program, stack, &chosen);
            // As many tables of level 3 as anywhere else.
            let counts = |chosen: &Addresses| {
                let program = tables(program.segments[0].address + chosen.bias, program.end() + chosen.bias);
                let stack = tables(chosen.stack.bottom, chosen.stack.top);
                (program[2], if own { 0 } else { stack[2] })
            };
            prop_assert_eq!(counts(&chosen), counts(&first));
        }
    }

    #[test]
    fn the_loaders_own_parts_lie_apart(seed in any::<u8>(), size in 1..0x4_0000u64) {
        let mut random = Randomness::new([seed; 32]).sequence();
        let (window, archive) = (addresses::window(&mut random), addresses::archive(&mut random, size * PAGE));
        prop_assert!(window.is_multiple_of(TABLE) && archive.is_multiple_of(PAGE));
        prop_assert!((0x5800_0000_0000..0x6000_0000_0000 - TABLE + 1).contains(&window));
        prop_assert!((0x6000_0000_0000..=0x6800_0000_0000 - size * PAGE).contains(&archive));
    }
}

#[test]
fn a_program_with_fixed_addresses_stays_where_it_is() {
    let file = good::fixed().write();
    let mut program = Program::parse(&file).unwrap();
    let chosen = Addresses::choose(&program, StackSize::whole(0), &mut Randomness::new([0; 32]).sequence());
    program.move_by(chosen.bias);
    check(&program, StackSize::whole(0), &chosen);
    assert_eq!((program.entry, program.bias), (0x20_1004, 0));
}
