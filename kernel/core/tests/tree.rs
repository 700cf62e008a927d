//! The balanced tree against a sorted vector.

use proptest::prelude::*;
use tench_kernel::SlotRef;
use tench_kernel::slot::Links;
use tench_kernel::tree::{self, Nodes};

/// Nodes in a vector, and how often their links were asked for.
struct Arena {
    root: u32,
    links: Vec<Links>,
    ends: Vec<usize>,
    accesses: usize,
}

impl Arena {
    fn new(size: usize) -> Arena {
        Arena { root: 0, links: vec![Links::default(); size + 1], ends: vec![0; size + 1], accesses: 0 }
    }

    fn check(&mut self, expected: &[SlotRef]) {
        assert_eq!(tree::check_invariants(self), Ok(expected.len()));
        let mut at = tree::first(self);
        for node in expected {
            assert_eq!(at, Some(*node));
            at = tree::next(self, *node);
        }
        assert_eq!(at, None);
        assert_eq!(tree::last(self), expected.last().copied());
    }
}

impl Nodes for Arena {
    fn root(&mut self) -> &mut u32 {
        &mut self.root
    }

    fn links(&mut self, node: SlotRef) -> &mut Links {
        self.accesses += 1;
        &mut self.links[node.number() as usize]
    }

    fn end(&mut self, node: SlotRef) -> usize {
        self.ends[node.number() as usize]
    }
}

fn node(number: usize) -> SlotRef {
    SlotRef::new(number as u32).expect("not 0")
}

/// What to do with the tree; positions are taken modulo what there is.
#[derive(Clone, Debug)]
enum Step {
    Insert { position: usize, end: usize },
    Remove { position: usize },
    Replace { position: usize },
    Reaching { position: usize, address: usize },
    Search { position: usize },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (any::<usize>(), 0..64usize).prop_map(|(position, end)| Step::Insert { position, end }),
        4 => any::<usize>().prop_map(|position| Step::Remove { position }),
        1 => any::<usize>().prop_map(|position| Step::Replace { position }),
        2 => (any::<usize>(), 0..64usize).prop_map(|(position, address)| Step::Reaching { position, address }),
        1 => any::<usize>().prop_map(|position| Step::Search { position }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn the_tree_is_the_vector(steps in prop::collection::vec(step(), 1..400)) {
        let mut arena = Arena::new(1000);
        let mut model: Vec<SlotRef> = Vec::new();
        let mut fresh = 0;
        for step in steps {
            match step {
                Step::Insert { position, end } => {
                    fresh += 1;
                    let new = node(fresh);
                    arena.ends[fresh] = end;
                    let position = position % (model.len() + 1);
                    let predecessor = position.checked_sub(1).map(|before| model[before]);
                    tree::insert_after(&mut arena, new, predecessor);
                    model.insert(position, new);
                }
                _ if model.is_empty() => continue,
                Step::Remove { position } => {
                    let gone = model.remove(position % model.len());
                    tree::remove(&mut arena, gone);
                    prop_assert_eq!(*arena.links(gone), Links::default());
                }
                Step::Replace { position } => {
                    fresh += 1;
                    let new = node(fresh);
                    let position = position % model.len();
                    let old = std::mem::replace(&mut model[position], new);
                    arena.ends[fresh] = arena.ends[old.number() as usize];
                    tree::replace(&mut arena, old, new);
                    prop_assert_eq!(*arena.links(old), Links::default());
                }
                Step::Reaching { position, address } => {
                    let position = position % model.len();
                    let found = tree::next_reaching(&mut arena, model[position], address);
                    let ends = &arena.ends;
                    let mut later = model[position + 1..].iter();
                    let expected = later.find(|later| ends[later.number() as usize] > address).copied();
                    prop_assert_eq!(found, expected);
                }
                Step::Search { position } => {
                    let before = position % (model.len() + 1);
                    let wanted = |node: SlotRef| model[..before].contains(&node);
                    let found = tree::last_where(&mut arena, |_, node| wanted(node));
                    prop_assert_eq!(found, before.checked_sub(1).map(|last| model[last]));
                }
            }
            arena.check(&model);
        }
    }
}

/// A tree of `size` nodes in random order of insertion, by a fixed sequence of pseudo-random numbers.
fn grown(size: usize) -> (Arena, Vec<usize>) {
    let mut arena = Arena::new(size);
    let mut state = 88172645463325252u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize
    };
    let mut order: Vec<usize> = vec![1];
    tree::insert_after(&mut arena, node(1), None);
    for new in 2..=size {
        arena.ends[new] = random() % 1_000_000;
        let predecessor = 1 + random() % (new - 1);
        tree::insert_after(&mut arena, node(new), Some(node(predecessor)));
        order.push(new);
    }
    for i in (1..size).rev() {
        order.swap(i, random() % (i + 1));
    }
    (arena, order)
}

/// Average accesses to links for removing `count` random nodes of `size`.
fn removal_cost(size: usize, count: usize) -> f64 {
    let (mut arena, order) = grown(size);
    assert_eq!(tree::check_invariants(&mut arena), Ok(size));
    arena.accesses = 0;
    for gone in &order[..count] {
        tree::remove(&mut arena, node(*gone));
    }
    let cost = arena.accesses as f64 / count as f64;
    assert_eq!(tree::check_invariants(&mut arena), Ok(size - count));
    cost
}

#[test]
fn removing_costs_the_same_in_a_large_tree() {
    let (small, large) = (removal_cost(1000, 500), removal_cost(100_000, 500));
    assert!(large < small * 1.3, "{large} accesses instead of {small}");
}

#[test]
fn a_run_is_inserted_and_removed_in_constant_time_each() {
    for backwards in [false, true] {
        let (mut arena, _) = grown(100_000);
        arena.links.resize(200_001, Links::default());
        arena.ends.resize(200_001, 0);
        let anchor = node(50_000);
        arena.accesses = 0;
        let mut predecessor = anchor;
        for new in 100_001..=101_000 {
            tree::insert_after(&mut arena, node(new), Some(predecessor));
            if !backwards {
                predecessor = node(new);
            }
        }
        let inserted = arena.accesses as f64 / 1000.0;
        arena.accesses = 0;
        for _ in 0..1000 {
            let next = tree::next(&mut arena, anchor).expect("the run is there");
            tree::remove(&mut arena, next);
        }
        let removed = arena.accesses as f64 / 1000.0;
        assert!(inserted < 45.0, "{inserted} accesses to insert one");
        assert!(removed < 60.0, "{removed} accesses to remove one");
        assert_eq!(tree::check_invariants(&mut arena), Ok(100_000));
    }
}

#[test]
fn the_depth_stays_logarithmic_for_sorted_insertions() {
    let mut arena = Arena::new(1 << 16);
    tree::insert_after(&mut arena, node(1), None);
    for new in 2..=1 << 16 {
        tree::insert_after(&mut arena, node(new), Some(node(new - 1)));
    }
    let mut deepest = 0;
    for leaf in 1..=1 << 16 {
        let mut depth = 0;
        let mut at = Some(node(leaf));
        while let Some(up) = at {
            depth += 1;
            at = SlotRef::new(arena.links(up).parent);
        }
        deepest = deepest.max(depth);
    }
    assert!(deepest <= 34, "{deepest}");
}
