//! Which slots of the capability space are free: one bit for each slot of each second-level node that is there.

use tench_abi::CapAddress;
use tench_abi::object::{NODE_BITS, NODE_SLOTS};

/// Second-level nodes that can be managed: 65,536 slots.
pub const MAX_NODES: usize = 256;
/// Bits of a word of the map.
const WORD_BITS: usize = u64::BITS as usize;
/// Words for one node.
const NODE_WORDS: usize = NODE_SLOTS / WORD_BITS;

/// Words that are looked at for slots side by side when others would do, too.
const NEARBY: usize = 2 * NODE_WORDS;

/// The free slots. A set bit is a free slot.
pub struct SlotMap {
    words: [u64; MAX_NODES * NODE_WORDS],
    /// Nodes that are there besides node 0. (An empty map is all zero, so that it takes no room in the program's file.)
    further_nodes: usize,
    free: usize,
    /// Where the last slot was found.
    hint: usize,
}

impl SlotMap {
    /// A map with node 0, of which no slot is free.
    pub const fn new() -> SlotMap {
        SlotMap { words: [0; MAX_NODES * NODE_WORDS], further_nodes: 0, free: 0, hint: 0 }
    }

    /// Makes the slots from `first` to before `end`, all of one node, free.
    pub fn add_range(&mut self, first: CapAddress, end: CapAddress) {
        for slot in first.0..end.0 {
            self.free(CapAddress(slot));
        }
    }

    /// Adds the next node, all of whose slots are free, and answers its first slot; `None` if there cannot be more.
    pub fn add_node(&mut self) -> Option<CapAddress> {
        let index = self.nodes();
        if index == MAX_NODES {
            return None;
        }
        let first = CapAddress::new(index as u32, 0);
        self.words[index * NODE_WORDS..][..NODE_WORDS].fill(u64::MAX);
        self.further_nodes += 1;
        self.free += NODE_SLOTS;
        Some(first)
    }

    /// Nodes that are there.
    const fn nodes(&self) -> usize {
        self.further_nodes + 1
    }

    /// Index of the next node to be added.
    pub const fn next_node(&self) -> u32 {
        self.nodes() as u32
    }

    /// Free slots.
    pub const fn count(&self) -> usize {
        self.free
    }

    /// Takes a free slot.
    pub fn take(&mut self) -> Option<CapAddress> {
        if self.words[self.hint] == 0 {
            let count = self.nodes() * NODE_WORDS;
            self.hint = (self.hint..count).chain(0..self.hint).find(|index| self.words[*index] != 0)?;
        }
        let word = self.words[self.hint];
        self.words[self.hint] = word & (word - 1);
        self.free -= 1;
        Some(CapAddress((self.hint * WORD_BITS) as u32 + word.trailing_zeros()))
    }

    /// Takes `count` free slots side by side in one node, and answers the first.
    pub fn take_run(&mut self, count: usize) -> Option<CapAddress> {
        if count == 0 || count > NODE_SLOTS {
            return None;
        }
        let mut length = 0;
        for slot in 0..(self.nodes() << NODE_BITS) as u32 {
            if slot.is_multiple_of(NODE_SLOTS as u32) {
                length = 0;
            }
            length = if self.is_free(CapAddress(slot)) { length + 1 } else { 0 };
            if length == count {
                let first = slot + 1 - count as u32;
                for taken in first..=slot {
                    self.words[taken as usize / WORD_BITS] &= !(1 << (taken as usize % WORD_BITS));
                }
                self.free -= count;
                return Some(CapAddress(first));
            }
        }
        None
    }

    /// Takes `count` free slots side by side in one word, if there are some near to where the last slot was found.
    pub fn take_run_nearby(&mut self, count: usize) -> Option<CapAddress> {
        if count == 0 || count > WORD_BITS {
            return None;
        }
        let end = (self.hint + NEARBY).min(self.nodes() * NODE_WORDS);
        for index in self.hint..end {
            let word = self.words[index];
            // A bit stays if it and those above it are set.
            let starts = (1..count).fold(word, |starts, above| starts & word >> above);
            if starts != 0 {
                let first = starts.trailing_zeros();
                self.words[index] = word & !((u64::MAX >> (WORD_BITS - count)) << first);
                self.free -= count;
                return Some(CapAddress((index * WORD_BITS) as u32 + first));
            }
        }
        None
    }

    /// Whether a slot is free.
    pub fn is_free(&self, slot: CapAddress) -> bool {
        let index = slot.0 as usize;
        self.words.get(index / WORD_BITS).is_some_and(|word| word & 1 << (index % WORD_BITS) != 0)
    }

    /// Makes a slot free. One that is free already, or of no managed node, stays as it is.
    pub fn free(&mut self, slot: CapAddress) {
        let index = slot.0 as usize;
        if index >> NODE_BITS < self.nodes() && !self.is_free(slot) && index != 0 {
            self.words[index / WORD_BITS] |= 1 << (index % WORD_BITS);
            self.free += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::collections::BTreeSet;

    fn map() -> SlotMap {
        let mut map = SlotMap::new();
        map.add_range(CapAddress(48), CapAddress(256));
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
    fn nodes_are_added_until_there_is_no_more_room() {
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
    }
}
