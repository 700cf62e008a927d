//! Turns bytes into a program's file, which is rejected, or is valid and loaded: never anything writable and
//! executable, never the first page, never outside of the addresses that programs may have. The first byte chooses the
//! addresses.
//!
//! `cargo fuzz run programs`; the corpus of malformed files is a good start.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tench_abi::layout::address;
use tench_abi::memory::{MapFlags, PAGE_SIZE};
use tench_loader::addresses::{Addresses, Randomness, StackSize};
use tench_loader::relocate::Relocating;
use tench_loader::Program;

fuzz_target!(|bytes: &[u8]| {
    let Some((seed, file)) = bytes.split_first() else { return };
    let Ok(mut program) = Program::parse(file) else { return };
    let stack = StackSize::of(&program, 0);
    let addresses = Addresses::choose(&program, stack, &mut Randomness::new([*seed; 32]).sequence());
    program.move_by(addresses.bias);
    let mut end = PAGE_SIZE as u64;
    let mut relocating = Relocating::new(&program);
    for segment in &program.segments {
        assert!(segment.address >= end && segment.end() <= address::DYNAMIC);
        assert!(!segment.flags.contains(MapFlags::WRITE | MapFlags::EXECUTE));
        let mut contents = segment.contents.to_vec();
        relocating.apply(segment.address + segment.lead, &mut contents);
        assert!(contents == segment.contents || !segment.flags.contains(MapFlags::EXECUTE));
        end = segment.end();
    }
    assert!(program.segment_at(program.entry).is_some_and(|segment| segment.flags.contains(MapFlags::EXECUTE)));
});
