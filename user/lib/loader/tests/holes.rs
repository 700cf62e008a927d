//! Properties of holes: taken parts are aligned and apart, and all memory can be taken.

use proptest::prelude::*;
use tench_loader::holes::Holes;

#[test]
fn no_memory_is_lost_to_alignment() {
    let mut holes = Holes::default();
    assert_eq!(holes.take(4), None);
    holes.add('a', 17);
    // Large after small after large, which a watermark handles badly.
    let taken: Vec<_> =
        [13, 16, 4, 15, 14, 13].iter().map(|bits| holes.take(*bits).map(|(_, offset)| offset)).collect();
    assert_eq!(taken, [Some(0), Some(0x1_0000), Some(0x2000), Some(0x8000), Some(0x4000), None]);
    holes.check_invariants();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn allocations_are_aligned_and_disjoint(
        blocks in prop::collection::vec(12..20u32, 1..5),
        sizes in prop::collection::vec(4..18u32, 0..60),
    ) {
        let mut holes = Holes::default();
        for (block, bits) in blocks.iter().enumerate() {
            holes.add(block, *bits);
        }
        let mut taken: Vec<(usize, u64, u64)> = Vec::new();
        for bits in sizes {
            let left = |taken: &[(usize, u64, u64)]| {
                let used: u64 = taken.iter().map(|(_, start, end)| end - start).sum();
                blocks.iter().map(|bits| 1u64 << bits).sum::<u64>() - used
            };
            match holes.take(bits) {
                Some((block, offset)) => {
                    let end = offset + (1 << bits);
                    prop_assert!(offset % (1 << bits) == 0 && end <= 1 << blocks[block]);
                    prop_assert!(taken.iter().all(|(other, from, to)| *other != block || *to <= offset || end <= *from));
                    taken.push((block, offset, end));
                }
                // Then no part is that large: parts of one block have different sizes, so less than twice that is left
                // of each.
                None => prop_assert!(left(&taken) < (blocks.len() as u64 * 2) << bits),
            }
            holes.check_invariants();
        }
    }
}
