//! Map of the free slots of a CSpace: one bit for each slot of each existing second-level node.
//!
//! The lowest free slot is taken first, so that the last node eventually becomes free and can be returned.
//!
//! Every process uses this through the user library, and so does the memory server, which cannot use that library
//! because it has nobody to ask for memory. Nothing here makes a system call.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

use tench_abi::CapAddress;
use tench_abi::object::{NODE_BITS, NODE_SLOTS};

/// Maximum number of second-level nodes of a map without an extension: 65,536 slots.
pub const MAX_NODES: usize = 256;
/// Number of bits of a word of the map.
const WORD_BITS: usize = u64::BITS as usize;
/// Number of words of one node.
const NODE_WORDS: usize = NODE_SLOTS / WORD_BITS;
/// Number of words searched for adjacent slots when others would do, too.
const NEARBY: usize = 2 * NODE_WORDS;

/// The slots of one node.
type Node = [u64; NODE_WORDS];

/// The free slots of at most `NODES` second-level nodes, and those of an [extension](Self::extend). A set bit is a free
/// slot.
pub struct SlotMap<const NODES: usize = MAX_NODES> {
    nodes: [Node; NODES],
    /// A set bit for each of these nodes with a free slot.
    summary: [u64; MAX_NODES / WORD_BITS],
    /// The nodes after these.
    extension: Option<&'static mut [Part]>,
    /// Parts of the extension before this one have no free slot.
    first_part: usize,
    /// Number of nodes besides node 0. (An empty map is all zero, so that it takes no room in the program's file.)
    further_nodes: usize,
    free: usize,
}

/// A part of an extension: the slots of 64 nodes.
#[derive(Clone, Copy)]
pub struct Part {
    nodes: [Node; WORD_BITS],
    /// A set bit for each node with a free slot.
    summary: u64,
}

impl Part {
    /// Number of nodes of a part.
    pub const NODES: usize = WORD_BITS;
}

impl Default for Part {
    fn default() -> Self {
        Part { nodes: [[0; NODE_WORDS]; WORD_BITS], summary: 0 }
    }
}

impl<const NODES: usize> Default for SlotMap<NODES> {
    fn default() -> Self {
        SlotMap::new()
    }
}

impl<const NODES: usize> SlotMap<NODES> {
    /// Returns a map with node 0, none of whose slots is free.
    pub const fn new() -> Self {
        const { assert!(NODES > 0 && NODES <= MAX_NODES) };
        SlotMap {
            nodes: [[0; NODE_WORDS]; NODES],
            summary: [0; MAX_NODES / WORD_BITS],
            extension: None,
            first_part: 0,
            further_nodes: 0,
            free: 0,
        }
    }

    /// Adds room for more nodes, 64 for each part, once.
    pub fn extend(&mut self, parts: &'static mut [Part]) {
        self.extension.get_or_insert(parts);
    }

    /// Returns the number of nodes for which there is room.
    pub fn capacity(&self) -> usize {
        NODES + self.extension.as_ref().map_or(0, |parts| parts.len() * Part::NODES)
    }

    /// Returns the slots of a node, if there is room for it.
    fn node(&self, number: usize) -> Option<&Node> {
        match number.checked_sub(NODES) {
            None => self.nodes.get(number),
            Some(i) => self.extension.as_ref()?.get(i / Part::NODES)?.nodes.get(i % Part::NODES),
        }
    }

    /// Marks the slots from `first` to before `end`, all of one node, as free.
    pub fn add_range(&mut self, first: CapAddress, end: CapAddress) {
        for slot in first.0..end.0 {
            self.free(CapAddress(slot));
        }
    }

    /// Adds the next node, all of whose slots are free, and returns its first slot; `None` if there cannot be more.
    pub fn add_node(&mut self) -> Option<CapAddress> {
        let index = self.nodes();
        if index == self.capacity() {
            return None;
        }
        let first = CapAddress::new(index as u32, 0);
        (index * NODE_WORDS..(index + 1) * NODE_WORDS).for_each(|word| self.set(word, u64::MAX));
        self.further_nodes += 1;
        self.free += NODE_SLOTS;
        Some(first)
    }

    /// Returns the number of nodes.
    const fn nodes(&self) -> usize {
        self.further_nodes + 1
    }

    /// Returns the index of the next node to be added.
    pub const fn next_node(&self) -> u32 {
        self.nodes() as u32
    }

    /// Returns the number of free slots.
    pub const fn count(&self) -> usize {
        self.free
    }

    /// Removes the last node if all its slots are free, and returns its index. Node 0 stays.
    pub fn remove_last_node(&mut self) -> Option<u32> {
        let last = self.last_node_if_free()?;
        let first = last as usize * NODE_WORDS;
        (first..first + NODE_WORDS).for_each(|word| self.set(word, 0));
        self.further_nodes -= 1;
        self.free -= NODE_SLOTS;
        Some(last)
    }

    /// Returns the last node if all its slots are free and it is not node 0.
    pub fn last_node_if_free(&self) -> Option<u32> {
        let words = self.node(self.further_nodes)?;
        let is_free = self.further_nodes > 0 && words.iter().all(|word| *word == u64::MAX);
        is_free.then_some(self.further_nodes as u32)
    }

    /// Returns a word of the map; 0 if there is no room for its node.
    fn word(&self, index: usize) -> u64 {
        self.node(index / NODE_WORDS).map_or(0, |node| node[index % NODE_WORDS])
    }

    /// Changes a word of the map.
    fn set(&mut self, index: usize, word: u64) {
        let number = index / NODE_WORDS;
        let (node, summary, bit) = match number.checked_sub(NODES) {
            None => (&mut self.nodes[number], &mut self.summary[number / WORD_BITS], number % WORD_BITS),
            Some(i) => {
                let (part, i) = (i / Part::NODES, i % Part::NODES);
                let Some(found) = self.extension.as_mut().and_then(|parts| parts.get_mut(part)) else { return };
                self.first_part = self.first_part.min(part);
                (&mut found.nodes[i], &mut found.summary, i)
            }
        };
        node[index % NODE_WORDS] = word;
        let is_full = node.iter().all(|word| *word == 0);
        *summary = if is_full { *summary & !(1 << bit) } else { *summary | 1 << bit };
    }

    /// Takes the lowest free slot.
    pub fn take(&mut self) -> Option<CapAddress> {
        let index = self.lowest_word()?;
        let word = self.word(index);
        self.set(index, word & (word - 1));
        if let Some(i) = (index / NODE_WORDS).checked_sub(NODES) {
            self.first_part = i / Part::NODES;
        }
        self.free -= 1;
        Some(CapAddress((index * WORD_BITS) as u32 + word.trailing_zeros()))
    }

    /// Returns the lowest node with a free slot.
    fn lowest_node(&self) -> Option<usize> {
        if let Some((i, summary)) = self.summary.iter().enumerate().find(|(_, summary)| **summary != 0) {
            return Some(i * WORD_BITS + summary.trailing_zeros() as usize);
        }
        let mut parts = self.extension.as_ref()?.iter().enumerate().skip(self.first_part);
        let (part, found) = parts.find(|(_, part)| part.summary != 0)?;
        Some(NODES + part * Part::NODES + found.summary.trailing_zeros() as usize)
    }

    /// Returns the lowest word with a free slot.
    fn lowest_word(&self) -> Option<usize> {
        let number = self.lowest_node()?;
        Some(number * NODE_WORDS + self.node(number)?.iter().position(|word| *word != 0)?)
    }

    /// Takes `count` adjacent free slots in one word, if there are some near the lowest free slot.
    pub fn take_run_nearby(&mut self, count: usize) -> Option<CapAddress> {
        if count == 0 || count > WORD_BITS {
            return None;
        }
        let lowest = self.lowest_word()?;
        for index in lowest..(lowest + NEARBY).min(self.nodes() * NODE_WORDS) {
            let word = self.word(index);
            if let Some(first) = run_in(word, count) {
                self.set(index, word & !((u64::MAX >> (WORD_BITS - count)) << first));
                self.free -= count;
                return Some(CapAddress((index * WORD_BITS + first) as u32));
            }
        }
        None
    }

    /// Takes a given slot, if it is free.
    pub fn remove(&mut self, slot: CapAddress) {
        if self.is_free(slot) {
            let index = slot.0 as usize;
            self.set(index / WORD_BITS, self.word(index / WORD_BITS) & !(1 << (index % WORD_BITS)));
            self.free -= 1;
        }
    }

    /// Takes `count` adjacent free slots in one node, and returns the first.
    pub fn take_run(&mut self, count: usize) -> Option<CapAddress> {
        let first = self.find_run(count)?;
        for taken in first..first + count as u32 {
            let index = taken as usize / WORD_BITS;
            self.set(index, self.word(index) & !(1 << (taken as usize % WORD_BITS)));
        }
        self.free -= count;
        Some(CapAddress(first))
    }

    /// Returns whether one node has `count` adjacent free slots.
    pub fn has_run(&self, count: usize) -> bool {
        self.find_run(count).is_some()
    }

    /// Returns the first of `count` adjacent free slots in one node.
    fn find_run(&self, count: usize) -> Option<u32> {
        if count == 0 || count > NODE_SLOTS {
            return None;
        }
        // Number of free slots right before the current word, in the same node.
        let mut before = 0;
        for index in self.lowest_node()? * NODE_WORDS..self.nodes() * NODE_WORDS {
            let word = self.word(index);
            if index.is_multiple_of(NODE_WORDS) {
                before = 0;
            }
            let start = index * WORD_BITS;
            if before + word.trailing_ones() as usize >= count {
                return Some((start - before) as u32);
            }
            if let Some(bit) = run_in(word, count) {
                return Some((start + bit) as u32);
            }
            before = if word == u64::MAX { before + WORD_BITS } else { word.leading_ones() as usize };
        }
        None
    }

    /// Returns whether a slot is free.
    pub fn is_free(&self, slot: CapAddress) -> bool {
        let index = slot.0 as usize;
        self.word(index / WORD_BITS) & 1 << (index % WORD_BITS) != 0
    }

    /// Frees a slot. A slot that is free already, or of no managed node, stays as it is.
    pub fn free(&mut self, slot: CapAddress) {
        let index = slot.0 as usize;
        if index >> NODE_BITS < self.nodes() && !self.is_free(slot) && index != 0 {
            self.set(index / WORD_BITS, self.word(index / WORD_BITS) | 1 << (index % WORD_BITS));
            self.free += 1;
        }
    }
}

/// Returns the lowest of `count` adjacent set bits in a word.
fn run_in(word: u64, count: usize) -> Option<usize> {
    if word.count_ones() < count as u32 {
        return None;
    }
    // A bit stays set if it and those above it, twice as many each time, are set.
    let (mut starts, mut length) = (word, 1);
    while length < count && starts != 0 {
        let more = length.min(count - length);
        starts &= starts >> more;
        length += more;
    }
    (starts != 0).then(|| starts.trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::collections::BTreeSet;
    use tench_random::Random;

    fn map() -> SlotMap {
        let mut map = SlotMap::new();
        map.add_range(CapAddress(48), CapAddress(256));
        map
    }

    /// Returns a map all of whose nodes but the first lie in its extension.
    fn extended() -> SlotMap<1> {
        let mut map = SlotMap::new();
        map.add_range(CapAddress(48), CapAddress(256));
        map.extend(std::vec![Part::default(); 4].leak());
        map
    }

    #[test]
    fn every_slot_is_given_once() {
        let mut map = map();
        let mut seen = BTreeSet::new();
        while let Some(slot) = map.take() {
            assert!((48..256).contains(&slot.0));
            assert!(seen.insert(slot.0));
        }
        assert_eq!((seen.len(), map.count()), (208, 0));
        map.free(CapAddress(77));
        assert_eq!(map.take(), Some(CapAddress(77)));
        assert_eq!(map.take(), None);
    }

    #[test]
    fn nodes_are_added_until_the_table_is_full() {
        let mut map = map();
        assert_eq!(map.next_node(), 1);
        assert_eq!(map.add_node(), Some(CapAddress(256)));
        assert_eq!(map.count(), 208 + 256);
        for _ in 2..MAX_NODES {
            assert!(map.add_node().is_some());
        }
        assert_eq!(map.add_node(), None);
        while map.take().is_some() {}
        assert_eq!(map.count(), 0);
    }

    #[test]
    fn the_lowest_slot_is_taken_and_the_last_node_goes_when_it_is_free() {
        let mut map = map();
        assert_eq!(map.remove_last_node(), None, "node 0 stays");
        map.add_node();
        map.add_node();
        let taken: std::vec::Vec<_> = core::iter::from_fn(|| map.take()).collect();
        assert!(taken.is_sorted() && taken.len() == 208 + 512);
        for slot in taken.iter().rev().take(512) {
            assert_eq!(map.last_node_if_free(), None);
            map.free(*slot);
            if slot.0 == 512 {
                assert_eq!(map.remove_last_node(), Some(2));
                assert_eq!((map.next_node(), map.count()), (2, 0));
            }
        }
        assert_eq!((map.take(), map.remove_last_node()), (Some(CapAddress(256)), None));
        map.free(CapAddress(256));
        assert_eq!((map.remove_last_node(), map.take()), (Some(1), None));
        assert_eq!((map.add_node(), map.take()), (Some(CapAddress(256)), Some(CapAddress(256))));
    }

    #[test]
    fn runs_lie_in_one_node() {
        let mut map = map();
        map.add_node();
        for _ in 0..198 {
            map.take();
        }
        // Ten slots are left at the end of node 0; a run of eleven would cross into node 1.
        assert_eq!(map.take_run(11), Some(CapAddress(256)));
        assert_eq!(map.take_run(10), Some(CapAddress(246)));
        assert_eq!(map.take_run(0), None);
        assert_eq!(map.take_run(257), None);
        assert_eq!(map.take_run(245), Some(CapAddress(267)));
        assert_eq!((map.take(), map.count()), (None, 0));
    }

    #[test]
    fn runs_are_those_that_a_search_slot_by_slot_finds() {
        search_runs(map());
        search_runs(extended());
    }

    fn search_runs<const NODES: usize>(mut map: SlotMap<NODES>) {
        map.add_node();
        let mut random = Random::new(1);
        for round in 0..20_000 {
            let count = 1 + random.index(100);
            let free = |first: u32| (first..first + count as u32).all(|slot| map.is_free(CapAddress(slot)));
            let in_node = |first: u32| first / 256 == (first + count as u32 - 1) / 256;
            let expected = (0..512 - count as u32 + 1).find(|first| in_node(*first) && free(*first));
            assert_eq!(map.has_run(count), expected.is_some(), "{round}: {count}");
            assert_eq!(map.take_run(count).map(|first| first.0), expected, "{round}: {count}");
            // Holes of every size appear where slots are freed one by one.
            let (holes, first) = (random.below(90), random.below(464));
            for slot in 0..holes {
                map.free(CapAddress(48 + (first + slot * 7) as u32 % 464));
            }
        }
    }

    #[test]
    fn a_million_operations_are_those_of_a_set() {
        operate(map());
        operate(extended());
    }

    fn operate<const NODES: usize>(mut map: SlotMap<NODES>) {
        let mut free = (48..256).collect::<BTreeSet<u32>>();
        let mut taken = std::vec::Vec::new();
        let mut random = Random::new(3);
        let mut below = |limit| random.below(limit);
        for step in 0..1_000_000 {
            // Phases of growing and of shrinking, so that nodes are added and removed.
            let grows = if step / 20_000 % 2 == 0 { 6 } else { 3 };
            if below(10) < grows || taken.is_empty() {
                if free.is_empty()
                    && let Some(first) = map.add_node()
                {
                    free.extend(first.0..first.0 + 256);
                }
                let slot = map.take().map(|slot| slot.0);
                assert_eq!(slot, free.pop_first());
                taken.extend(slot);
            } else {
                let slot = taken.swap_remove(below(taken.len() as u64) as usize);
                map.free(CapAddress(slot));
                free.insert(slot);
            }
            if step % 997 == 0
                && let Some(node) = map.remove_last_node()
            {
                assert_eq!(free.split_off(&(node * 256)).len(), 256);
            }
            assert_eq!(map.count(), free.len());
        }
        assert!(map.nodes() > 3);
    }

    #[test]
    fn an_extension_has_room_for_a_million_slots() {
        let parts = std::vec![Part::default(); 60].leak();
        let mut map = map();
        while map.add_node().is_some() {}
        assert_eq!((map.capacity(), map.next_node()), (MAX_NODES, 256));
        map.extend(parts);
        assert_eq!(map.capacity(), 4096);
        while map.add_node().is_some() {}
        assert_eq!((map.count(), map.next_node()), ((1 << 20) - 48, 4096));
        assert!((48..1 << 20).all(|slot| map.take() == Some(CapAddress(slot))));
        assert_eq!((map.take(), map.take_run(1), map.take_run_nearby(1)), (None, None, None));
        // Freed in any order, the lowest is taken first, and runs are found.
        for slot in [1_000_000, 70_000, 500_000, 300_000] {
            (0..100).for_each(|i| map.free(CapAddress(slot + i)));
        }
        assert!(map.is_free(CapAddress(500_099)) && !map.is_free(CapAddress(500_100)));
        assert_eq!(map.take(), Some(CapAddress(70_000)));
        assert_eq!(map.take_run(100), Some(CapAddress(500_000)), "from 300,000 on they lie in two nodes");
        assert_eq!(map.take_run(100), Some(CapAddress(1_000_000)));
        map.free(CapAddress(100));
        assert_eq!((map.take(), map.take()), (Some(CapAddress(100)), Some(CapAddress(70_001))));
        assert_eq!(map.remove_last_node(), None);
        (0..256).for_each(|i| map.free(CapAddress(4095 * 256 + i)));
        assert_eq!((map.remove_last_node(), map.next_node()), (Some(4095), 4095));
    }

    #[test]
    fn runs_nearby_lie_in_one_word() {
        let mut map = map();
        assert_eq!((map.take(), map.take()), (Some(CapAddress(48)), Some(CapAddress(49))));
        map.free(CapAddress(48));
        assert_eq!(map.take_run_nearby(8), Some(CapAddress(50)));
        assert_eq!(map.take_run_nearby(8), Some(CapAddress(64)), "six are left in the first word, and one before");
        assert_eq!(map.take_run_nearby(6), Some(CapAddress(58)));
        assert_eq!((map.take_run_nearby(0), map.take_run_nearby(65)), (None, None));
        assert_eq!(map.take_run_nearby(64), Some(CapAddress(128)));
        assert_eq!(map.take_run_nearby(57), Some(CapAddress(192)));
        assert_eq!(map.take_run_nearby(57), None, "56 are left in one word, and seven in another");
        assert_eq!((map.count(), map.take()), (1 + 56 + 7, Some(CapAddress(48))));
        let rest = (72..128).chain(249..256).map(|slot| Some(CapAddress(slot)));
        assert!(rest.eq((0..63).map(|_| map.take())));
        assert_eq!((map.take(), map.take_run_nearby(1)), (None, None));
    }

    #[test]
    fn nonsense_is_not_freed() {
        let mut map = map();
        map.free(CapAddress(0));
        map.free(CapAddress(300));
        map.free(CapAddress(u32::MAX));
        map.free(CapAddress(50));
        assert_eq!(map.count(), 208);
        assert!(!map.is_free(CapAddress(47)));
        map.remove(CapAddress(47));
        map.remove(CapAddress(50));
        map.remove(CapAddress(50));
        assert!(map.count() == 207 && !map.is_free(CapAddress(50)));
    }
}
