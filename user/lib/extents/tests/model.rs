//! The manager, compared with a sorted list of extents that is searched linearly.

use proptest::prelude::*;
use tench_extents::{
    ALLOCATIONS_PER_REFILL, Error, Extent, Freed, Manager, NODES_PER_ALLOC, NODES_PER_FREE, Node, PAGE,
};
use tench_random::Random;

/// Number of extents that the manager promises to try in order of size.
const TRIED: usize = 8;

/// The slow, obvious manager: all extents in order of addresses, each with its region.
#[derive(Default)]
struct Model {
    extents: Vec<(Extent, usize)>,
    regions: usize,
}

/// A request to the manager.
#[derive(Clone, Copy, Debug)]
struct Request {
    base: u64,
    limit: u64,
    size: u64,
    align: u64,
}

impl Model {
    fn add(&mut self, base: u64, size: u64) -> Result<(), Error> {
        if self.extents.iter().any(|(one, _)| one.base < base + size && base < one.base + one.size) {
            return Err(Error::Overlap);
        }
        let index = self.extents.partition_point(|(one, _)| one.base < base);
        self.extents.insert(index, (Extent { base, size, tag: None }, self.regions));
        self.regions += 1;
        Ok(())
    }

    /// Returns where a block fits in each free extent, with the extent's size and address: the best fit first.
    fn fits(&self, request: &Request) -> Vec<(u64, u64, u64)> {
        let mut fits: Vec<_> = self
            .extents
            .iter()
            .filter(|(one, _)| one.tag.is_none())
            .filter_map(|(one, _)| {
                let address = one.base.max(request.base).next_multiple_of(request.align);
                let end = address + request.size;
                (end <= one.base + one.size && end <= request.limit).then_some((one.size, one.base, address))
            })
            .collect();
        fits.sort_unstable();
        fits
    }

    /// Checks where the manager has put a block, or that it has refused it: a block is found if it fits anywhere, and
    /// it lies in the best fit. Only if more than [`TRIED`] smaller extents were large enough, and alignment or range
    /// kept it out of each, the manager may take another: no larger than the smallest in which such a block fits
    /// wherever the extent begins, and with a range, or where there is no such extent, the lowest address. Returns
    /// whether it is the best fit.
    fn judge(&self, request: &Request, found: Result<u64, Error>) -> bool {
        let fits = self.fits(request);
        let Some(best) = fits.first() else {
            assert_eq!(found, Err(Error::OutOfMemory), "{request:x?} fits nowhere");
            return true;
        };
        let address = found.unwrap_or_else(|error| panic!("{request:x?} fits at {:x}: {error:?}", best.2));
        if address == best.2 {
            return true;
        }
        let free = || self.extents.iter().map(|(one, _)| one).filter(|one| one.tag.is_none());
        let smaller = free().filter(|one| one.size >= request.size && (one.size, one.base) < (best.0, best.1));
        assert!(smaller.count() >= TRIED, "{request:x?} lies at {address:x}, and {:x} is better", best.2);
        let taken = fits.iter().find(|fit| fit.2 == address);
        let taken = taken.unwrap_or_else(|| panic!("{request:x?} lies at {address:x}, where it does not fit"));
        let is_anywhere = request.base == 0 && request.limit == u64::MAX;
        let certain = free().map(|one| one.size).filter(|size| *size >= request.size + request.align - PAGE).min();
        match certain.filter(|_| is_anywhere) {
            Some(size) => assert!(taken.0 <= size, "{request:x?} lies in {:x} bytes, where {size:x} do", taken.0),
            None => assert_eq!(Some(address), fits.iter().map(|fit| fit.2).min(), "{request:x?}"),
        }
        false
    }

    fn give(&mut self, address: u64, size: u64, tag: u64) {
        let at = self.extents.iter().position(|(one, _)| one.base <= address && address < one.base + one.size).unwrap();
        let (one, region) = self.extents.remove(at);
        let parts = [
            Extent { base: one.base, size: address - one.base, tag: None },
            Extent { base: address, size, tag: Some(tag) },
            Extent { base: address + size, size: one.base + one.size - (address + size), tag: None },
        ];
        for part in parts.into_iter().rev().filter(|part| part.size > 0) {
            self.extents.insert(at, (part, region));
        }
    }

    fn free(&mut self, base: u64, size: u64) -> Result<Freed, Error> {
        let holds = |one: &Extent| one.base <= base && base + size <= one.base + one.size && one.tag.is_some();
        let at = self.extents.iter().position(|(one, _)| holds(one)).ok_or(Error::NotGiven)?;
        let (one, region) = self.extents.remove(at);
        let parts = [
            Extent { base: one.base, size: base - one.base, tag: one.tag },
            Extent { base, size, tag: None },
            Extent { base: base + size, size: one.base + one.size - (base + size), tag: one.tag },
        ];
        for part in parts.into_iter().rev().filter(|part| part.size > 0) {
            self.extents.insert(at, (part, region));
        }
        let mut at = 0;
        while at + 1 < self.extents.len() {
            let ((one, region), (two, other)) = (self.extents[at], self.extents[at + 1]);
            if region == other && one.tag.is_none() && two.tag.is_none() {
                self.extents[at].0.size += two.size;
                self.extents.remove(at + 1);
            } else {
                at += 1;
            }
        }
        Ok(if one.size == size { Freed::Whole } else { Freed::Part })
    }
}

/// Manager and model side by side.
struct Pair {
    manager: Manager<Vec<Node>>,
    model: Model,
    /// Maximum numbers of nodes that an allocation and a free operation took.
    most: (usize, usize),
    /// Number of blocks that do not lie in the best fit.
    others: usize,
}

impl Pair {
    fn new(nodes: usize) -> Pair {
        Pair { manager: Manager::new(vec![Node::EMPTY; nodes]), model: Model::default(), most: (0, 0), others: 0 }
    }

    fn add(&mut self, base: u64, size: u64) {
        assert_eq!(self.manager.add(base, size), self.model.add(base, size));
    }

    /// Allocates a block, and checks that it lies where it must.
    fn alloc(&mut self, request: Request, tag: u64) -> Option<u64> {
        let Request { base, limit, size, align } = request;
        let left = self.manager.nodes_left();
        let address = self.manager.alloc_from_range_aligned(base, limit, size, align, tag);
        self.most.0 = self.most.0.max(left.saturating_sub(self.manager.nodes_left()));
        self.others += usize::from(!self.model.judge(&request, address));
        self.model.give(address.ok()?, size, tag);
        address.ok()
    }

    fn free(&mut self, base: u64, size: u64) {
        let left = self.manager.nodes_left();
        assert_eq!(self.manager.free(base, size), self.model.free(base, size), "{base:x} {size:x}");
        self.most.1 = self.most.1.max(left.saturating_sub(self.manager.nodes_left()));
    }

    fn check(&self) {
        self.manager.check_invariants();
        let expected: Vec<Extent> = self.model.extents.iter().map(|(one, _)| *one).collect();
        assert_eq!(self.manager.extents(0).collect::<Vec<_>>(), expected);
    }
}

/// Returns a random request for memory of regions that lie below `end`.
fn request(random: &mut Random, end: u64) -> Request {
    let size = PAGE * if random.below(4) == 0 { 1 << random.below(8) } else { 1 + random.below(20) };
    let align = if random.below(2) == 0 { PAGE } else { PAGE << random.below(9) };
    let (mut base, mut limit) = (0, u64::MAX);
    if random.below(3) == 0 {
        base = PAGE * random.below(end / PAGE);
        limit = base + PAGE * (1 + random.below(600));
    }
    Request { base, limit, size, align }
}

/// Performs `steps` random operations, with a full check every `every` steps.
fn play(seed: u64, steps: usize, every: usize, regions: &[(u64, u64)], most: usize) -> Pair {
    let mut random = Random::new(seed);
    let mut pair = Pair::new(4 * most + 64);
    for &(base, size) in regions {
        pair.add(base * PAGE, size * PAGE);
    }
    let end = regions.iter().map(|(base, size)| (base + size) * PAGE).max().unwrap();
    let mut blocks: Vec<(u64, u64)> = Vec::new();
    for step in 0..steps {
        let wants = if blocks.len() >= most { 0 } else { random.below(100) };
        if wants >= 45 {
            let request = request(&mut random, end);
            if let Some(address) = pair.alloc(request, step as u64) {
                blocks.push((address, request.size));
            }
        } else if wants >= 2 && !blocks.is_empty() {
            let (base, size) = blocks.swap_remove(random.below(blocks.len() as u64) as usize);
            // All of it, or a part; the rest can be freed later.
            let pages = size / PAGE;
            let from = if random.below(4) == 0 { random.below(pages) } else { 0 };
            let length = if random.below(4) == 0 { 1 + random.below(pages - from) } else { pages - from };
            let (start, bytes) = (base + from * PAGE, length * PAGE);
            pair.free(start, bytes);
            let rest = [(base, from * PAGE), (start + bytes, base + size - (start + bytes))];
            blocks.extend(rest.into_iter().filter(|(_, bytes)| *bytes > 0));
        } else {
            // Mostly memory that was not allocated, or not as one block.
            let base = PAGE * random.below(end / PAGE + 10);
            let size = PAGE * (1 + random.below(8));
            let before = pair.manager.totals();
            let result = pair.manager.free(base, size);
            assert_eq!(result, pair.model.free(base, size));
            if result.is_ok() {
                blocks.retain(|&(other, bytes)| other + bytes <= base || base + size <= other);
                let used = pair.manager.extents(0).filter(|extent| extent.tag.is_some());
                blocks = used.map(|extent| (extent.base, extent.size)).collect();
            } else {
                assert_eq!(pair.manager.totals(), before);
            }
        }
        if step % every == 0 {
            pair.check();
        }
    }
    // In the end everything is free again.
    for extent in pair.manager.extents(0).filter(|extent| extent.tag.is_some()).collect::<Vec<_>>() {
        pair.free(extent.base, extent.size);
    }
    pair.check();
    assert_eq!((pair.manager.totals().used, pair.manager.totals().extents), (0, regions.len()));
    pair
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn allocation_is_best_fit(seed in 1..u64::MAX) {
        play(seed, 150, 1, &[(16, 300), (316, 64), (512, 1024)], 24);
    }
}

#[test]
fn a_million_operations() {
    let pair = play(42, 1_000_000, 10_007, &[(0, 256), (256, 128), (1024, 600)], 60);
    assert_eq!(pair.most, (NODES_PER_ALLOC, NODES_PER_FREE), "the worst cases are those that are documented");
}

#[test]
fn many_extents_keep_every_fit_findable() {
    let pair = play(7, 30_000, 997, &[(1, 20_000)], 2_000);
    assert!(pair.others > 0, "with so many extents the manager gives up before the best fit");
}

#[test]
fn free_has_three_outcomes() {
    let mut pair = Pair::new(64);
    pair.add(0x10_0000, 64 * PAGE);
    let all = Request { base: 0, limit: u64::MAX, size: 8 * PAGE, align: PAGE };
    let block = pair.alloc(all, 5).unwrap();
    // Part of it, in the middle; the rest keeps its tag, and is freed in another order.
    assert_eq!(pair.manager.free(block + 2 * PAGE, PAGE), Ok(Freed::Part));
    pair.model.free(block + 2 * PAGE, PAGE).unwrap();
    assert_eq!(pair.manager.find(block + 7 * PAGE).map(|used| (used.size, used.tag)), Some((5 * PAGE, 5)));
    assert_eq!(pair.manager.find(block + 2 * PAGE), None);
    pair.check();
    // Freeing memory that was never allocated, or is free again, or lies in two blocks, fails.
    for (base, size) in [
        (block + 2 * PAGE, PAGE),
        (block, 8 * PAGE),
        (block + 7 * PAGE, 2 * PAGE),
        (0x10_0000 + 63 * PAGE, PAGE),
        (0, PAGE),
        (1 << 60, PAGE),
    ] {
        assert_eq!(pair.manager.free(base, size), Err(Error::NotGiven), "{base:x}");
    }
    for (base, size) in [(block + 1, PAGE), (block, 0), (block, 100)] {
        assert_eq!(pair.manager.free(base, size), Err(Error::BadSize));
    }
    pair.check();
    pair.free(block + 3 * PAGE, 5 * PAGE);
    assert_eq!(pair.manager.free(block, 2 * PAGE), Ok(Freed::Whole));
    assert_eq!(pair.manager.totals().largest, 64 * PAGE);
}

#[test]
fn blocks_are_divided() {
    let mut manager = Manager::new(vec![Node::EMPTY; 16]);
    manager.add(0, 16 * PAGE).unwrap();
    let base = manager.alloc(8 * PAGE, 1).unwrap();
    assert_eq!(manager.split(base, 8 * PAGE, 2), Err(Error::BadSize));
    assert_eq!(manager.split(base + PAGE, PAGE, 2), Err(Error::NotGiven));
    assert_eq!(manager.split(base + 9 * PAGE, PAGE, 2), Err(Error::NotGiven));
    manager.split(base, 3 * PAGE, 2).unwrap();
    manager.check_invariants();
    assert_eq!(manager.find(base + 3 * PAGE).map(|used| (used.base, used.tag)), Some((base + 3 * PAGE, 2)));
    assert_eq!(manager.free(base, 8 * PAGE), Err(Error::NotGiven));
    assert_eq!(manager.free(base + 3 * PAGE, 5 * PAGE), Ok(Freed::Whole));
}

#[test]
fn whole_blocks_are_freed_when_no_node_is_left() {
    for nodes in 3..40 {
        let mut manager = Manager::new(vec![Node::EMPTY; nodes]);
        manager.add(0, 4096 * PAGE).unwrap();
        let mut given = Vec::new();
        // Each leaves a hole before it.
        while let Ok(address) =
            manager.alloc_from_range_aligned(2 * given.len() as u64 * PAGE + PAGE, u64::MAX, PAGE, PAGE, 7)
        {
            given.push(address);
        }
        assert!(manager.nodes_left() < NODES_PER_ALLOC && !given.is_empty());
        // From the middle, so that some have no free neighbour to join, and others two.
        while !given.is_empty() {
            let address = given.remove(given.len() / 2);
            assert_eq!(manager.free(address, PAGE), Ok(tench_extents::Freed::Whole));
            manager.check_invariants();
        }
        assert_eq!(manager.totals().largest, 4096 * PAGE);
    }
}

#[test]
fn without_nodes_nothing_changes() {
    for nodes in 0..8 {
        let mut manager = Manager::new(vec![Node::EMPTY; nodes]);
        let mut given = Vec::new();
        let mut refused = 0;
        for step in 0..6 {
            let before: Vec<Extent> = manager.extents(0).collect();
            let result = match step {
                0 => manager.add(0, 64 * PAGE),
                1 | 2 => manager.alloc_from_range_aligned(8 * PAGE, u64::MAX, 4 * PAGE, PAGE, 0).map(|address| {
                    given.push(address);
                }),
                3 => given.first().map_or(Ok(()), |address| manager.free(address + PAGE, PAGE).map(drop)),
                4 => given.last().map_or(Ok(()), |address| manager.split(*address, PAGE, 1)),
                _ => manager.alloc(1 << 40, 0).map(drop),
            };
            if let Err(error) = result {
                let none = step == 5 || (nodes == 0 && step > 0);
                assert!(error == Error::NeedsNodes || (none && error == Error::OutOfMemory), "{step} {error:?}");
                assert_eq!(manager.extents(0).collect::<Vec<_>>(), before);
                refused += 1;
            }
            manager.check_invariants();
        }
        assert!(nodes > 6 || refused > 1);
    }
}

#[test]
fn a_refill_does_not_nest_and_finds_what_it_needs() {
    let mut manager = Manager::new(vec![Node::EMPTY; 64]);
    manager.add(0, 1 << 30).unwrap();
    assert!(!manager.begin_refill(), "it is not time yet");
    while !manager.wants_refill() {
        manager.alloc_from_range_aligned(PAGE, u64::MAX, PAGE, 8 * PAGE, 0).unwrap();
    }
    // The operation at hand, when there are just not enough nodes for another one and the refill.
    assert!(manager.begin_refill());
    assert!(!manager.begin_refill() && !manager.wants_refill(), "one is under way");
    for _ in 0..ALLOCATIONS_PER_REFILL {
        manager.alloc_from_range_aligned(PAGE, u64::MAX, PAGE, 8 * PAGE, 0).unwrap();
    }
    let length = manager.storage().len();
    manager.storage().resize(length + 64, Node::EMPTY);
    manager.end_refill();
    assert!(!manager.wants_refill());
    manager.check_invariants();
}

#[test]
fn sizes_beyond_the_summaries_are_found_too() {
    let mut manager = Manager::new(vec![Node::EMPTY; 64]);
    let size = (u64::from(u32::MAX) + 1) * PAGE;
    for number in 1..12_u64 {
        // All of the maximum size of summaries; the ninth and tenth in order of size are large enough.
        manager.add(number * (1 << 46) + PAGE, size + number * PAGE).unwrap();
    }
    manager.check_invariants();
    let address = manager.alloc_aligned(size, 16 * PAGE, 0);
    assert_eq!(address, Err(Error::OutOfMemory));
    assert_eq!(manager.alloc_aligned(size - 5 * PAGE, 16 * PAGE, 0), Ok(10 * (1 << 46) + 16 * PAGE));
    assert_eq!(manager.alloc(size + 9 * PAGE, 0), Ok(9 * (1 << 46) + PAGE));
    manager.check_invariants();
}

#[test]
fn storage_grows_in_place() {
    let mut manager = Manager::new(vec![Node::EMPTY; 16]);
    manager.add(0, 1 << 30).unwrap();
    for count in 0..2000 {
        if manager.wants_refill() {
            let length = manager.storage().len();
            manager.storage().resize(length + 16, Node::EMPTY);
        }
        manager.alloc(PAGE, count).unwrap();
    }
    manager.check_invariants();
    assert_eq!(manager.totals().blocks, 2000);
}

#[test]
fn nonsense_is_refused() {
    let mut manager = Manager::new(vec![Node::EMPTY; 16]);
    for (base, size) in [(0, 0), (1, PAGE), (0, 100), (u64::MAX - 4095, PAGE), (1 << 62, PAGE)] {
        assert_eq!(manager.add(base, size), Err(Error::BadSize), "{base:x}");
    }
    manager.add(PAGE, 8 * PAGE).unwrap();
    for (base, size) in [(0, 2 * PAGE), (8 * PAGE, PAGE), (2 * PAGE, PAGE), (0, 64 * PAGE)] {
        assert_eq!(manager.add(base, size), Err(Error::Overlap), "{base:x}");
    }
    assert_eq!(manager.alloc(0, 0), Err(Error::BadSize));
    assert_eq!(manager.alloc(u64::MAX - 4095, 0), Err(Error::OutOfMemory));
    assert_eq!(manager.alloc_aligned(PAGE, 3 * PAGE, 0), Err(Error::BadSize));
    assert_eq!(manager.alloc_aligned(PAGE, 1 << 63, 0), Err(Error::OutOfMemory));
    assert_eq!(manager.alloc_from_range_aligned(PAGE, PAGE, PAGE, 1, 0), Err(Error::BadSize));
    manager.check_invariants();
}

#[test]
fn alignments_beyond_a_gigabyte_are_found_too() {
    let mut manager = Manager::new(vec![Node::EMPTY; 4096]);
    // Many extents in which only 1 GiB is aligned, and then one with 8 GiB.
    for number in 0..400_u64 {
        manager.add((2 * number + 1) << 30, PAGE).unwrap();
    }
    manager.add(1024 << 30, 3 * PAGE).unwrap();
    assert_eq!(manager.alloc_aligned(PAGE, 8 << 30, 0), Ok(1024 << 30));
    assert_eq!(manager.alloc_aligned(PAGE, 8 << 30, 0), Err(Error::OutOfMemory));
    assert_eq!(manager.alloc_aligned(PAGE, 1 << 30, 0), Ok(1 << 30));
    manager.check_invariants();
}
