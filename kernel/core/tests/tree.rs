//! The derivation tree and its list against a sorted vector.

use proptest::prelude::*;
use tench_arch_host::check_tree::check_tree;
use tench_kernel::SlotRef;
use tench_kernel::slot::Links;
use tench_kernel::tree::{self, Gap, Nodes, runs};
use tench_random::Random;

/// Nodes in a vector, and the number of accesses to their links.
struct Arena {
    root: u32,
    tail: u32,
    links: Vec<Links>,
    ends: Vec<usize>,
    accesses: usize,
}

impl Arena {
    fn new(size: usize) -> Arena {
        Arena { root: 0, tail: 0, links: vec![Links::default(); size + 1], ends: vec![0; size + 1], accesses: 0 }
    }

    fn check(&mut self, expected: &[Entry]) {
        assert_eq!(check_tree(self), Ok(expected.len()));
        let mut at = tree::first(self);
        for entry in expected {
            assert_eq!(at, Some(entry.node));
            assert_eq!(tree::is_follower(self, entry.node), entry.place == Place::Follower);
            assert_eq!(runs::is_member(self, entry.node), entry.place == Place::Member);
            at = tree::next(self, entry.node);
        }
        assert_eq!(at, None);
        assert_eq!(tree::last(self), expected.last().map(|entry| entry.node));
    }
}

impl Nodes for Arena {
    fn root(&mut self) -> &mut u32 {
        &mut self.root
    }

    fn tail(&mut self) -> &mut u32 {
        &mut self.tail
    }

    fn links(&mut self, node: SlotRef) -> &mut Links {
        self.accesses += 1;
        &mut self.links[node.number() as usize]
    }

    fn end(&mut self, node: SlotRef) -> usize {
        self.ends[node.number() as usize]
    }
}

/// Where a node is linked.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Tree,
    /// In the list only, equal to the one before.
    Follower,
    /// In the list only, as part of the run of the last node in the tree.
    Member,
}

/// The vector's entry for a node.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Entry {
    node: SlotRef,
    place: Place,
}

/// Returns the nodes of the tree before position `position`, and from there on.
fn gap_at(model: &[Entry], position: usize) -> Gap {
    let in_tree = |entry: &&Entry| entry.place == Place::Tree;
    let before = model[..position].iter().rev().find(in_tree).map(|entry| entry.node);
    (before, model[position..].iter().find(in_tree).map(|entry| entry.node))
}

fn node(number: usize) -> SlotRef {
    SlotRef::new(number as u32).expect("not 0")
}

/// A step; positions are taken modulo the length.
#[derive(Clone, Debug)]
enum Step {
    Insert { position: usize, end: usize },
    Follow { position: usize },
    Remove { position: usize },
    Replace { position: usize },
    Reinsert { position: usize },
    Reaching { position: usize, address: usize },
    Search { position: usize },
    Run { position: usize, count: usize },
    Prepend { position: usize, count: usize },
    RemoveFirst { position: usize, most: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let end = prop_oneof![3 => Just(0), 1 => 0..64usize];
    prop_oneof![
        6 => (any::<usize>(), end).prop_map(|(position, end)| Step::Insert { position, end }),
        3 => any::<usize>().prop_map(|position| Step::Follow { position }),
        5 => any::<usize>().prop_map(|position| Step::Remove { position }),
        1 => any::<usize>().prop_map(|position| Step::Replace { position }),
        1 => any::<usize>().prop_map(|position| Step::Reinsert { position }),
        2 => (any::<usize>(), 0..64usize).prop_map(|(position, address)| Step::Reaching { position, address }),
        1 => any::<usize>().prop_map(|position| Step::Search { position }),
        3 => (any::<usize>(), 1..6usize).prop_map(|(position, count)| Step::Run { position, count }),
        2 => (any::<usize>(), 1..4usize).prop_map(|(position, count)| Step::Prepend { position, count }),
        2 => (any::<usize>(), 1..6usize).prop_map(|(position, most)| Step::RemoveFirst { position, most }),
    ]
}

/// The structure, the vector, and the next unused node.
struct Both {
    arena: Arena,
    model: Vec<Entry>,
    fresh: usize,
}

impl Both {
    fn fresh(&mut self, end: usize) -> SlotRef {
        self.fresh += 1;
        self.arena.ends[self.fresh] = end;
        node(self.fresh)
    }

    /// Returns the position of the first node that is no follower, from a position on.
    fn after_followers(&self, position: usize) -> usize {
        let behind = self.model[position..].iter().position(|entry| entry.place != Place::Follower);
        behind.map_or(self.model.len(), |behind| position + behind)
    }

    /// Returns whether the node at a position, no follower, has a member behind it.
    fn continues(&self, position: usize) -> bool {
        let behind = self.after_followers(position + 1);
        self.model.get(behind).is_some_and(|entry| entry.place == Place::Member)
    }

    /// Returns the first node of a run, and the node of the tree behind the run.
    fn gap_around_run(&self, position: usize) -> Gap {
        let first = (0..=position).rev().find(|i| self.model[*i].place == Place::Tree).expect("a run has a first node");
        (Some(self.model[first].node), gap_at(&self.model, position + 1).1)
    }

    /// Takes a node out of its run, if it is in one: it and the member behind it come into the tree.
    fn stand_alone(&mut self, position: usize) {
        let node = self.model[position].node;
        if !runs::is_in_run(&mut self.arena, node) {
            return;
        }
        let gap = self.gap_around_run(position);
        runs::stand_alone(&mut self.arena, node, gap);
        self.divide(position);
        assert!(!runs::is_in_run(&mut self.arena, node));
    }

    /// Divides a run in the vector: a node and the member behind it come into the tree.
    fn divide(&mut self, position: usize) {
        if self.continues(position) {
            let behind = self.after_followers(position + 1);
            self.model[behind].place = Place::Tree;
        }
        self.model[position].place = Place::Tree;
    }

    /// Removes a node from the vector; the node behind can take its place in the tree.
    fn forget(&mut self, position: usize) -> Entry {
        let gone = self.model.remove(position);
        if gone.place == Place::Tree
            && let Some(next) = self.model.get_mut(position)
        {
            next.place = Place::Tree;
        }
        gone
    }

    fn apply(&mut self, step: Step) {
        let count = self.model.len();
        match step {
            Step::Insert { position, end } => {
                let new = self.fresh(end);
                let position = self.tree_position(position);
                tree::insert(&mut self.arena, new, gap_at(&self.model, position));
                self.model.insert(position, Entry { node: new, place: Place::Tree });
            }
            Step::Run { position, count } => {
                let first = self.fresh(0);
                let position = self.tree_position(position);
                tree::insert(&mut self.arena, first, gap_at(&self.model, position));
                runs::extend(&mut self.arena, first, count - 1);
                self.model.insert(position, Entry { node: first, place: Place::Tree });
                for i in 1..count {
                    let node = self.fresh(0);
                    self.model.insert(position + i, Entry { node, place: Place::Member });
                }
            }
            _ if count == 0 => {}
            Step::Follow { position } => {
                let leader = self.model[position % count];
                if self.arena.ends[leader.node.number() as usize] == 0 {
                    let new = self.fresh(0);
                    tree::follow(&mut self.arena, new, leader.node);
                    self.model.insert(position % count + 1, Entry { node: new, place: Place::Follower });
                }
            }
            Step::Remove { position } => {
                let position = position % count;
                let node = self.model[position].node;
                let has_followers = self.model.get(position + 1).is_some_and(|next| next.place == Place::Follower);
                let expected = match self.model[position].place {
                    Place::Follower => true,
                    Place::Tree => !has_followers || !self.continues(position),
                    Place::Member => !has_followers && !self.continues(position),
                };
                assert_eq!(runs::is_removable(&mut self.arena, node), expected);
                let mut is_linked = true;
                if !expected {
                    let gap = self.gap_around_run(position);
                    is_linked = runs::prepare_removal(&mut self.arena, node, gap);
                    self.divide(position);
                }
                self.forget(position);
                if is_linked {
                    tree::remove(&mut self.arena, node);
                }
                assert_eq!(*self.arena.links(node), Links::default());
            }
            Step::Replace { position } => {
                let position = position % count;
                self.stand_alone(position);
                let old = self.model[position].node;
                let new = self.fresh(self.arena.ends[old.number() as usize]);
                self.model[position].node = new;
                tree::replace(&mut self.arena, old, new);
                assert_eq!(*self.arena.links(old), Links::default());
            }
            Step::Reinsert { position } => self.reinsert(position % count),
            Step::Reaching { position, address } => {
                let position = position % count;
                if self.model[position].place == Place::Tree {
                    let found = tree::next_reaching(&mut self.arena, self.model[position].node, address);
                    let ends = &self.arena.ends;
                    let reaches = |entry: &&Entry| ends[entry.node.number() as usize] > address;
                    assert_eq!(found, self.model[position + 1..].iter().find(reaches).map(|entry| entry.node));
                }
            }
            Step::Search { position } => {
                let before = self.tree_position(position);
                let model = &self.model;
                let wanted = |node: SlotRef| model[..before].iter().any(|entry| entry.node == node);
                assert_eq!(tree::gap(&mut self.arena, |_, node| wanted(node)), gap_at(model, before));
            }
            Step::Prepend { position, count } => self.prepend(position, count),
            Step::RemoveFirst { position, most } => self.remove_first(position, most),
        }
    }

    /// Returns a position at which a node can be inserted into the tree.
    fn tree_position(&self, position: usize) -> usize {
        let position = position % (self.model.len() + 1);
        let behind = self.model[position..].iter().position(|entry| entry.place == Place::Tree);
        behind.map_or(self.model.len(), |behind| position + behind)
    }

    /// Puts nodes with the numbers before it in front of a run that was made with room for them.
    fn prepend(&mut self, position: usize, count: usize) {
        let position = self.tree_position(position);
        let first = self.fresh(0);
        (1..count).for_each(|_| _ = self.fresh(0));
        let old = self.fresh(0);
        tree::insert(&mut self.arena, old, gap_at(&self.model, position));
        tree::replace(&mut self.arena, old, first);
        runs::extend(&mut self.arena, first, count);
        for i in 0..=count {
            let place = if i == 0 { Place::Tree } else { Place::Member };
            self.model.insert(position + i, Entry { node: node(first.number() as usize + i), place });
        }
    }

    /// Removes the first nodes of a run. One node in three stays.
    fn remove_first(&mut self, position: usize, most: usize) {
        let position = self.tree_position(position);
        let Some(first) = self.model.get(position).copied() else { return };
        let follower = |entry: Option<&Entry>| entry.is_some_and(|entry| entry.place == Place::Follower);
        if self.arena.ends[first.node.number() as usize] != 0 || !runs::is_removable(&mut self.arena, first.node) {
            return;
        }
        let stays = |node: SlotRef| node.number().is_multiple_of(3);
        let mut expected = 1;
        while expected < most
            && self.model.get(position + expected).is_some_and(|entry| entry.place == Place::Member)
            && !follower(self.model.get(position + expected + 1))
            && !stays(self.model[position + expected].node)
        {
            expected += 1;
        }
        assert_eq!(runs::remove_first(&mut self.arena, first.node, most, |_, node| stays(node)), expected);
        for _ in 0..expected {
            let gone = self.forget(position);
            assert_eq!(*self.arena.links(gone.node), Links::default());
        }
    }

    /// Exchanges a node with another, which stands alone anywhere.
    fn reinsert(&mut self, position: usize) {
        self.stand_alone(position);
        let alone = |i: &usize| {
            let stands = |entry: Option<&Entry>| entry.is_none_or(|entry| entry.place == Place::Tree);
            *i != position && stands(self.model.get(*i)) && stands(self.model.get(i + 1))
        };
        let Some(other) = (0..self.model.len()).find(alone) else { return };
        let (here, there) = (self.model[position], self.model[other].node);
        let (old, new) = (here.node, there);
        let (end, other_end) = (self.arena.ends[old.number() as usize], self.arena.ends[new.number() as usize]);
        // The ends belong to the node that moves.
        let between = |arena: &mut Arena| {
            arena.ends[old.number() as usize] = other_end;
            tree::replace(arena, new, old);
            arena.ends[new.number() as usize] = end;
        };
        tree::reinsert(&mut self.arena, old, new, between, |node| if node == new { old } else { node });
        self.model[other].node = old;
        let next_follows = self.model.get(position + 1).is_some_and(|next| next.place == Place::Follower);
        if here.place == Place::Tree && next_follows {
            // The first follower becomes the leader.
            self.model[position] = Entry { node: self.model[position + 1].node, place: Place::Tree };
            self.model[position + 1] = Entry { node: new, place: Place::Follower };
        } else {
            self.model[position].node = new;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_structure_is_the_vector(steps in prop::collection::vec(step(), 1..400)) {
        let mut both = Both { arena: Arena::new(3000), model: Vec::new(), fresh: 0 };
        for step in steps {
            both.apply(step);
            both.arena.check(&both.model);
        }
    }
}

/// Makes a tree of `size` nodes in random order of insertion, by a fixed sequence of pseudo-random numbers.
fn grown(size: usize) -> (Arena, Vec<usize>) {
    let mut arena = Arena::new(size);
    let mut random = Random::new(1);
    let mut order: Vec<usize> = vec![1];
    tree::insert(&mut arena, node(1), (None, None));
    for new in 2..=size {
        arena.ends[new] = random.index(1_000_000) * random.index(2);
        let before = node(1 + random.index(new - 1));
        let after = tree::next(&mut arena, before);
        tree::insert(&mut arena, node(new), (Some(before), after));
        order.push(new);
    }
    for i in (1..size).rev() {
        order.swap(i, random.index(i + 1));
    }
    (arena, order)
}

/// Returns the average number of accesses to links for removing `count` random nodes of `size`.
fn removal_cost(size: usize, count: usize) -> f64 {
    let (mut arena, order) = grown(size);
    assert_eq!(check_tree(&mut arena), Ok(size));
    arena.accesses = 0;
    for gone in &order[..count] {
        tree::remove(&mut arena, node(*gone));
    }
    let cost = arena.accesses as f64 / count as f64;
    assert_eq!(check_tree(&mut arena), Ok(size - count));
    cost
}

#[test]
fn removing_costs_the_same_in_a_large_tree() {
    let (small, large) = (removal_cost(1000, 500), removal_cost(100_000, 500));
    assert!(large < small * 1.3, "{large} accesses instead of {small}");
}

#[test]
fn one_of_many_equals_goes_as_fast_as_one_of_two() {
    for count in [2, 100_000] {
        let mut arena = Arena::new(count + 1);
        tree::insert(&mut arena, node(1), (None, None));
        for new in 2..=count {
            tree::follow(&mut arena, node(new), node(1));
        }
        for gone in [1, count / 2 + 1] {
            arena.accesses = 0;
            tree::remove(&mut arena, node(gone));
            assert!(arena.accesses <= 6, "{} accesses for one of {count}", arena.accesses);
            if count == 2 {
                break;
            }
        }
        assert!(check_tree(&mut arena).is_ok());
    }
}

#[test]
fn a_run_is_inserted_and_removed_in_constant_time_each() {
    for backwards in [false, true] {
        let (mut arena, _) = grown(100_000);
        arena.links.resize(200_001, Links::default());
        arena.ends.resize(200_001, 0);
        let anchor = node(50_000);
        arena.accesses = 0;
        let (mut before, mut after) = (anchor, tree::next(&mut arena, anchor));
        for new in 100_001..=101_000 {
            tree::insert(&mut arena, node(new), (Some(before), after));
            if backwards {
                after = Some(node(new));
            } else {
                before = node(new);
            }
        }
        let inserted = arena.accesses as f64 / 1000.0;
        arena.accesses = 0;
        for _ in 0..1000 {
            let next = tree::next(&mut arena, anchor).expect("the run is there");
            tree::remove(&mut arena, next);
        }
        let removed = arena.accesses as f64 / 1000.0;
        assert!(inserted < 35.0, "{inserted} accesses to insert one");
        assert!(removed < 35.0, "{removed} accesses to remove one");
        assert_eq!(check_tree(&mut arena), Ok(100_000));
    }
}

#[test]
fn the_depth_stays_logarithmic_for_sorted_insertions() {
    let mut arena = Arena::new(1 << 16);
    tree::insert(&mut arena, node(1), (None, None));
    for new in 2..=1 << 16 {
        tree::insert(&mut arena, node(new), (Some(node(new - 1)), None));
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
