//! Tests of the tree against a sorted list.

use proptest::prelude::*;
use tench_tree::{Id, Links, Nodes, Tree, View};

/// A node with a value and the largest value of its subtree.
#[derive(Clone, Default)]
struct Node {
    links: Links,
    value: u32,
    largest: u32,
}

#[derive(Default)]
struct Arena(Vec<Node>);

impl View for Arena {
    fn links(&self, id: Id) -> &Links {
        &self.0[id.index()].links
    }
}

impl Nodes for Arena {
    fn links_mut(&mut self, id: Id) -> &mut Links {
        &mut self.0[id.index()].links
    }

    fn summarise(&mut self, id: Id, left: Option<Id>, right: Option<Id>) -> bool {
        let children = [left, right].into_iter().flatten().map(|child| self.0[child.index()].largest);
        let largest = children.chain([self.0[id.index()].value]).max().unwrap_or_default();
        std::mem::replace(&mut self.0[id.index()].largest, largest) != largest
    }

    fn summarise_added(&mut self, id: Id, leaf: Id, _: u32) -> u32 {
        let added = self.0[leaf.index()].largest;
        let largest = &mut self.0[id.index()].largest;
        if std::mem::replace(largest, added.max(*largest)) < added { u32::MAX } else { 0 }
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// Insert a node with this value.
    Insert(u32),
    /// Remove the node at this index of the order.
    Remove(prop::sample::Index),
    /// Give the node at this index the value of its neighbour, or one in between: the order stays.
    Change(prop::sample::Index),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..1000_u32).prop_map(Step::Insert),
        3 => any::<prop::sample::Index>().prop_map(Step::Remove),
        1 => any::<prop::sample::Index>().prop_map(Step::Change),
    ]
}

fn check(tree: &Tree, arena: &Arena, order: &[Id]) {
    let mut seen = Vec::new();
    let count = tree.check_invariants(arena, |arena, previous, at| {
        let node = &arena.0[at.index()];
        assert!(previous.is_none_or(|previous| arena.0[previous.index()].value <= node.value));
        let children = [node.links.left(), node.links.right()].into_iter().flatten();
        let largest = children.map(|child| arena.0[child.index()].largest).chain([node.value]).max();
        assert_eq!(Some(node.largest), largest);
        seen.push(at);
    });
    assert_eq!(count, order.len());
    assert_eq!(seen, order);
    let mut back = tree.last(arena);
    for &id in order.iter().rev() {
        assert_eq!(back, Some(id));
        back = tree.previous(arena, id);
    }
    assert_eq!(back, None);
}

fn play(steps: &[Step]) {
    let (mut tree, mut arena, mut order) = (Tree::new(), Arena::default(), Vec::<Id>::new());
    for step in steps {
        match step {
            Step::Insert(value) => {
                let id = Id::new(arena.0.len() as u32);
                arena.0.push(Node { value: *value, ..Node::default() });
                tree.insert(&mut arena, id, |arena, other| arena.0[other.index()].value <= *value);
                let position = order.partition_point(|other| arena.0[other.index()].value <= *value);
                order.insert(position, id);
            }
            Step::Remove(index) if !order.is_empty() => {
                let id = order.remove(index.index(order.len()));
                tree.remove(&mut arena, id);
                assert!(!arena.0[id.index()].links.is_linked());
            }
            Step::Change(index) if !order.is_empty() => {
                let chosen = index.index(order.len());
                let next = order.get(chosen + 1).map_or(2000, |next| arena.0[next.index()].value);
                arena.0[order[chosen].index()].value = next;
                // The value has become larger, or is the same.
                if chosen % 2 == 0 {
                    tree.changed(&mut arena, order[chosen]);
                } else {
                    tree.enlarged(&mut arena, order[chosen]);
                }
            }
            Step::Remove(_) | Step::Change(_) => {}
        }
        check(&tree, &arena, &order);
    }
    for value in [0, 1, 500, 999, 3000] {
        let is_before = |arena: &Arena, id: Id| arena.0[id.index()].value < value;
        let position = order.partition_point(|id| is_before(&arena, *id));
        assert_eq!(tree.lower_bound(&arena, is_before), order.get(position).copied());
        assert_eq!(tree.last_before(&arena, is_before), position.checked_sub(1).map(|position| order[position]));
    }
}

proptest! {
    #[test]
    fn the_tree_behaves_as_a_sorted_list(steps in prop::collection::vec(step(), 0..120)) {
        play(&steps);
    }
}

#[test]
fn rising_and_falling_values_stay_balanced() {
    let rising: Vec<Step> = (0..300).map(Step::Insert).collect();
    play(&rising);
    let falling: Vec<Step> = (0..300).rev().map(Step::Insert).collect();
    play(&falling);
}
