//! Tests of the user library's routines that copy and fill memory, against loops.

use core::hint::black_box;

use crate::case::{Case, Outcome};
use crate::stage::Stage;

pub const CASES: &[Case] = &[
    Case::new("BYT0001", "memory is copied whatever the length and alignment, and no byte more", copies),
    Case::new("BYT0002", "memory is moved over itself in both directions", moves),
    Case::new("BYT0003", "memory is filled whatever the length and alignment, and no byte more", fills),
];

/// Bytes in a buffer: more than the longest length and the largest offset.
const SIZE: usize = 192;
/// Longest length: three rounds of the routines' main loops, and some bytes.
const LENGTH: usize = 131;
/// Offsets from an aligned address.
const OFFSETS: usize = 17;

/// Returns bytes that differ from their neighbours and from those a power of two away.
fn pattern() -> [u8; SIZE] {
    core::array::from_fn(|i| (i * 37 + i / 7) as u8)
}

/// Returns all lengths at a few offsets, and all offsets at a few lengths, of source and destination.
fn shapes() -> impl Iterator<Item = (usize, usize, usize)> {
    let lengths = (0..=LENGTH).flat_map(|length| [(0, 0), (1, 8), (7, 3)].map(|(from, to)| (length, from, to)));
    let offsets = (0..OFFSETS).flat_map(|from| (0..OFFSETS).map(move |to| (from, to)));
    let offsets = offsets.flat_map(|(from, to)| [15, 33, 64, 95].map(|length| (length, from, to)));
    lengths.chain(offsets)
}

fn copies(_: &mut Stage) -> Outcome {
    let source = pattern();
    for (length, from, to) in shapes() {
        let mut copied = [0xee; SIZE];
        copied[to..to + black_box(length)].copy_from_slice(&source[from..from + length]);
        for (i, byte) in copied.into_iter().enumerate() {
            let expected = if (to..to + length).contains(&i) { source[i - to + from] } else { 0xee };
            check!(byte == expected);
        }
    }
    Ok(())
}

fn moves(_: &mut Stage) -> Outcome {
    for (length, from, to) in shapes() {
        let source = pattern();
        let mut moved = source;
        moved.copy_within(from..from + black_box(length), to);
        for (i, byte) in moved.into_iter().enumerate() {
            let expected = if (to..to + length).contains(&i) { source[i - to + from] } else { source[i] };
            check!(byte == expected);
        }
    }
    Ok(())
}

fn fills(_: &mut Stage) -> Outcome {
    for (length, _, to) in shapes() {
        let mut filled = pattern();
        filled[to..to + black_box(length)].fill(0xa5);
        for (i, byte) in filled.into_iter().enumerate() {
            let expected = if (to..to + length).contains(&i) { 0xa5 } else { pattern()[i] };
            check!(byte == expected);
        }
    }
    Ok(())
}
