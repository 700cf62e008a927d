//! Tests of the counting allocator.

use tench_counting::{Counting, peak};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn the_most_at_a_time_counts() {
    assert_eq!(peak(|| drop(Vec::<u8>::with_capacity(100))).1, 128);
    let both = peak(|| (Vec::<u8>::with_capacity(100), Vec::<u8>::with_capacity(16)));
    assert_eq!(both.1, 128 + 32);
    let before = vec![1_u8; 1000];
    assert_eq!(peak(|| drop(before)).1, 0);
    let mut grows = Vec::<u8>::with_capacity(48);
    assert_eq!(peak(|| grows.reserve_exact(80)).1, 96, "the new one is counted while the old one is there");
}
