//! Frames, page tables and mappings: the kernel against the model, step by step, through a translation cache.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tench_abi::layout::{self, WATERMARK};
use tench_abi::memory::{USER_END, entry_bits};
use tench_abi::object::Rights;
use tench_abi::{Error, Kind, Operation};
use tench_arch_host::machine::{DEVICE, LARGE_DEVICE, RAM, at};
use tench_arch_host::{Machine, ResultRegisters};
use tench_kernel::page_table::PageTable;
use tench_kernel::{Arch, Ref, page_table};
use tench_model::mappings::{Frame, Object, World};
use tench_model::source::{Bytes, Source};

/// Number of slots that the test uses.
const SLOTS: u64 = 48;

/// Kernel and model.
struct Pair {
    machine: Machine,
    world: World,
    /// Addresses that were ever looked up: what is cached for them must not be used wrongly later.
    visited: BTreeSet<u64>,
    /// Objects' kernel virtual addresses, for the tables of the model.
    objects: BTreeMap<usize, Ref<PageTable>>,
    log: Vec<String>,
}

impl Pair {
    fn new() -> Pair {
        let mut machine = Machine::new();
        let first = machine.take_free();
        let world = World::new(first..first + SLOTS);
        let mut pair = Pair { machine, world, visited: BTreeSet::new(), objects: BTreeMap::new(), log: Vec::new() };
        for (slot, (untyped, kind, size)) in (first..).zip([
            (RAM, Kind::PageTable, 0),
            (RAM, Kind::PageTable, 1),
            (RAM, Kind::PageTable, 2),
            (RAM, Kind::PageTable, 3),
            (RAM, Kind::PageTable, 0),
            (RAM, Kind::Frame, 21),
            (RAM, Kind::Frame, 12),
            (DEVICE, Kind::Frame, 12),
            (LARGE_DEVICE, Kind::Frame, 30),
        ]) {
            pair.make(untyped, kind, size, slot);
        }
        pair
    }

    /// Makes a second table of the last level, installs the first, and makes a scattered mapping of the same frame in
    /// each.
    fn prepare_scattered(&mut self) {
        let first = self.world.slots.start;
        let ([one, two], frame) = ([first + 3, first + 9], first + 5);
        self.make(RAM, Kind::PageTable, 3, two);
        for (table, slot) in [(one, first + 10), (two, first + 11)] {
            let arguments = [frame, table, slot];
            let found = self.call(Operation::FrameScatter, &arguments);
            agree(found, self.world.scatter(arguments).map(|()| [0; 5]));
        }
        for level in 1..4 {
            let arguments = [first + level, first + level - 1, 1];
            let found = self.call(Operation::PageTableMap, &arguments);
            let [table, parent, index] = arguments;
            agree(found, self.world.install(table, parent, index).map(|()| [0; 5]));
        }
    }

    /// Makes an object in both worlds, if there is room.
    fn make(&mut self, untyped: u64, kind: Kind, size: u64, slot: u64) {
        if self.world.kind(slot) != Kind::Null {
            return;
        }
        let arguments = [untyped, kind as u64, size, 1, WATERMARK, 0, slot];
        if self.machine.call(Operation::UntypedRetype, &arguments).error().is_some() {
            return;
        }
        self.log.push(format!("{kind:?} of {size} is made at {slot}"));
        let physical = self.machine.physical(slot);
        match kind {
            Kind::Frame => {
                let device = untyped == DEVICE || untyped == LARGE_DEVICE;
                self.world.add_frame(slot, Frame { physical, bits: size as u32, device });
            }
            _ => {
                self.world.add_table(slot, size as u32);
                let Object::Table(number) = self.world.cspace[&slot].object else { unreachable!() };
                self.objects.insert(number, self.machine.cap(slot).named().expect("a table"));
            }
        }
    }

    /// Returns mostly a slot with a capability of a kind.
    fn filled(&self, kind: Kind, source: &mut Bytes<'_>) -> u64 {
        let able: Vec<u64> = self.world.slots.clone().filter(|slot| self.world.kind(*slot) == kind).collect();
        if able.is_empty() || source.one_in(24) { self.any(source) } else { source.pick(&able) }
    }

    /// Returns mostly a table of a level.
    fn table(&self, level: u32, source: &mut Bytes<'_>) -> u64 {
        let fits = |slot: &u64| match self.world.cspace.get(slot).map(|capability| capability.object) {
            Some(Object::Table(number)) => self.world.tables[&number].level == level,
            _ => false,
        };
        let able: Vec<u64> = self.world.slots.clone().filter(fits).collect();
        if able.is_empty() || source.one_in(24) { self.any(source) } else { source.pick(&able) }
    }

    fn empty(&self, source: &mut Bytes<'_>) -> u64 {
        let able: Vec<u64> = self.world.slots.clone().filter(|slot| self.world.kind(*slot) == Kind::Null).collect();
        if able.is_empty() || source.one_in(24) { self.any(source) } else { source.pick(&able) }
    }

    fn any(&self, source: &mut Bytes<'_>) -> u64 {
        self.world.slots.start + source.below(SLOTS)
    }

    /// Makes a call in the kernel, and logs it.
    fn call(&mut self, operation: Operation, arguments: &[u64]) -> ResultRegisters {
        self.log.push(format!("{operation} {arguments:?}"));
        // The fast path, and the next time the slow one.
        self.machine.fast = !self.machine.fast;
        self.machine.call(operation, arguments)
    }

    /// Makes one step in both worlds, and compares the results.
    fn step(&mut self, source: &mut Bytes<'_>) {
        match source.below(16) {
            0 => {
                let (kind, size) = source.pick(&[
                    (Kind::PageTable, 0),
                    (Kind::PageTable, 1),
                    (Kind::PageTable, 2),
                    (Kind::PageTable, 3),
                    (Kind::Frame, 12),
                    (Kind::Frame, 16),
                ]);
                let slot = self.empty(source);
                self.make(RAM, kind, size, slot);
            }
            1..4 => self.map(source),
            4 | 5 => self.scattered(source),
            6..9 => {
                let level = 1 + source.below(3) as u32;
                let (table, parent) = (self.table(level, source), self.table(level - 1, source));
                let index = if source.one_in(12) { source.below(520) } else { source.below(4) };
                let found = self.call(Operation::PageTableMap, &[table, parent, index]);
                agree(found, self.world.install(table, parent, index).map(|()| [0; 5]));
            }
            9 => {
                let level = 1 + source.below(3) as u32;
                let table = self.table(level, source);
                let found = self.call(Operation::PageTableUnmap, &[table]);
                agree(found, self.world.take_out(table).map(|()| [0; 5]));
            }
            10 | 11 => {
                let mapping = self.filled(Kind::Mapping, source);
                let flags = source.pick(&[1, 3, 5, 1, 3, 37, 9, 17, 7, 35, 0, 1 << 9]);
                let found = self.call(Operation::MappingProtect, &[mapping, flags]);
                agree(found, self.world.protect(mapping, flags).map(|()| [0; 5]));
                let found = self.call(Operation::MappingQuery, &[mapping]);
                agree(found, self.world.query(mapping));
            }
            12 => {
                let (from, to) = (self.any(source), self.empty(source));
                let rights =
                    if source.one_in(2) { Rights::all() } else { Rights::from_bits_truncate(source.below(16) as u8) };
                let found = self.call(Operation::Mint, &[0, from, 0, to, rights.bits().into(), 0]);
                agree(found, self.world.mint(from, to, rights).map(|()| [0; 5]));
            }
            13 => {
                let (from, to) = (self.filled(Kind::Mapping, source), self.empty(source));
                let found = self.call(Operation::Move, &[0, from, 0, to]);
                agree(found, self.world.relocate(from, to).map(|()| [0; 5]));
            }
            14 => self.delete(source),
            _ => {
                let slot = self.any(source);
                let found = self.call(Operation::Revoke, &[0, slot]);
                agree(found, self.world.revoke(slot).map(|count| [count, 0, 0, 0, 0]));
            }
        }
    }

    fn map(&mut self, source: &mut Bytes<'_>) {
        let frame = self.filled(Kind::Frame, source);
        let bits = match self.world.cspace.get(&frame).map(|capability| capability.object) {
            Some(Object::Frame(number)) => self.world.frames[&number].bits,
            _ => 12,
        };
        let level = match bits {
            30 => 1 + source.below(3) as u32,
            21 => 2 + source.below(2) as u32,
            _ => 3,
        };
        let level = if source.one_in(16) { source.below(4) as u32 } else { level };
        let table = self.table(level, source);
        let first = if source.one_in(8) { source.below(520) } else { source.below(6) };
        let most = 1 << bits.saturating_sub(entry_bits(level));
        let count = match source.below(8) {
            0 => source.below(520),
            1 => most.min(512 - first.min(511)),
            _ => 1 + source.below(3).min(most - 1),
        };
        let page = 1 << entry_bits(level);
        let offset = match source.below(8) {
            0 => source.below(4) << 11,
            1 => source.below(600) * page,
            2 => source.below(3) * page,
            _ => 0,
        };
        let flags = source.pick(&[1, 1, 3, 3, 3, 5, 37, 9, 17, 19, 7, 2, 33, 53, 64]);
        let arguments = [frame, table, first, count, offset, flags, self.empty(source)];
        let found = self.call(Operation::FrameMap, &arguments);
        agree(found, self.world.map(arguments).map(|()| [0; 5]));
    }

    /// Returns mostly a scattered mapping.
    fn some_scattered(&self, source: &mut Bytes<'_>) -> u64 {
        let able: Vec<u64> = self.world.slots.clone().filter(|slot| self.world.is_scattered(*slot)).collect();
        if able.is_empty() || source.one_in(24) { self.any(source) } else { source.pick(&able) }
    }

    /// Makes a scattered mapping, sets entries of one, or clones some.
    fn scattered(&mut self, source: &mut Bytes<'_>) {
        let first = if source.one_in(8) { source.below(520) } else { source.below(6) };
        match source.below(8) {
            0 => {
                let table = if source.one_in(4) { self.table(2, source) } else { self.table(3, source) };
                // Often of a frame that has one, so that entries can be cloned.
                let known: Vec<u64> =
                    self.world.slots.clone().filter(|slot| self.world.is_scattered_already(*slot)).collect();
                let is_known = !known.is_empty() && source.one_in(2);
                let frame = if is_known { source.pick(&known) } else { self.filled(Kind::Frame, source) };
                let arguments = [frame, table, self.empty(source)];
                let found = self.call(Operation::FrameScatter, &arguments);
                agree(found, self.world.scatter(arguments).map(|()| [0; 5]));
            }
            1..6 => {
                let mapping = self.some_scattered(source);
                let pages = self.world.pages(mapping).unwrap_or(1);
                let count = if source.one_in(8) { source.below(40) } else { 1 + source.below(3.min(pages)) };
                let offset = match source.below(16) {
                    0 => source.below(4) << 11,
                    1 => source.below(600) << 12,
                    _ => self.world.page(mapping).unwrap_or(0) * source.below(4.min(pages)),
                };
                let flags = source.pick(&[1, 1, 3, 3, 3, 5, 0, 37, 9, 17, 19, 64]);
                let arguments = [mapping, first, count, offset, flags];
                let found = self.call(Operation::MappingSet, &arguments);
                agree(found, self.world.set_entries(arguments).map(|()| [0; 5]));
            }
            _ => {
                let (mut first, mut count) = (0, source.pick(&[1, 3, 8, 65, 512, 512]));
                let (mut mask, mut restrict) = (source.pick(&[1, 1, 3, 5, 7]), source.below(2));
                match source.below(16) {
                    0 => first = source.below(520),
                    1 => count = source.pick(&[0, 513]),
                    2 => mask = source.pick(&[0, 2, 9, 64]),
                    3 => restrict = 2,
                    _ => {}
                }
                let from = self.some_scattered(source);
                let slots = self.world.slots.clone();
                let alike: Vec<u64> = slots.filter(|to| *to != from && self.world.are_alike(from, *to)).collect();
                let is_random = alike.is_empty() || source.one_in(8);
                let to = if is_random { self.some_scattered(source) } else { source.pick(&alike) };
                let arguments = [from, to, first, count, mask, restrict];
                let found = self.call(Operation::MappingClone, &arguments);
                agree(found, self.world.clone_entries(arguments).map(|copied| [copied, 0, 0, 0, 0]));
            }
        }
    }

    fn delete(&mut self, source: &mut Bytes<'_>) {
        let slot = if source.one_in(3) { self.any(source) } else { self.filled(Kind::Mapping, source) };
        let found = self.call(Operation::Delete, &[0, slot, at(layout::slot::KERNEL)]);
        let expected = self.world.delete(slot).map(|freed| match freed {
            None => [0; 5],
            // The model does not know where tables lie.
            Some((u64::MAX, bits)) => [1, found.x[2], bits.into(), 0, 0],
            Some((physical, bits)) => [1, physical, bits.into(), 0, 0],
        });
        agree(found, expected);
    }

    /// Looks addresses up in both worlds: mapped ones, those looked up before, and some others.
    fn compare(&mut self, source: &mut Bytes<'_>) {
        for slot in self.world.slots.clone() {
            if let Ok(shown) = self.world.shown(slot) {
                assert_eq!(self.machine.physical(slot), shown);
            }
            if let Ok([_, count, _, address, _]) = self.world.query(slot)
                && address != u64::MAX
            {
                self.visited.insert(address);
                self.visited.insert(address + (source.below(count.max(4)) << 12));
            }
        }
        let some = (0..4).fold(0, |address, level| address | source.below(8) << entry_bits(level));
        self.visited.insert(some & (USER_END - 1));
        if self.visited.len() > 64 {
            self.visited.pop_first();
        }
        let roots: Vec<usize> = self.world.tables.iter().filter(|(_, t)| t.level == 0).map(|(n, _)| *n).collect();
        for root in roots {
            let (k, object) = (self.machine.kernel(), self.objects[&root]);
            let register = match page_table::space_register(k, object) {
                register if register == k.arch().empty_space_register() => page_table::share(k, object),
                register => register,
            };
            for address in &self.visited {
                let host = self.machine.host();
                let found = host.cache.access(&host.memory, register, *address);
                let found = found.map(|page| (page.physical + (address - page.address), page.flags));
                assert_eq!(found, self.world.translate(root, *address), "address {address:#x} in space {root}");
            }
        }
        for slot in self.world.slots.clone() {
            let kind = self.machine.call(Operation::Identify, &[0, slot]).ok()[1];
            assert_eq!(kind, self.world.kind(slot) as u64, "slot {slot}");
        }
        self.machine.check();
    }
}

/// Panics unless the kernel returned what the model says.
#[track_caller]
fn agree(found: ResultRegisters, expected: Result<[u64; 5], Error>) {
    let found = match found.error() {
        Some(error) => Err(error),
        None => Ok([found.x[1], found.x[2], found.x[3], found.x[4], found.x[5]]),
    };
    assert_eq!(found, expected);
}

/// The choices of one step. The log shows the step that they lead to, so a failure does not print them.
#[derive(Clone)]
struct Step([u8; 40]);

impl std::fmt::Debug for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("step")
    }
}

/// Plays steps on both sides, and compares after each. If asked to, three of four are about scattered mappings.
fn play(steps: &[Step], scattered: bool) {
    let mut pair = Pair::new();
    if scattered {
        pair.prepare_scattered();
    }
    for step in steps {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut source = Bytes(&step.0);
            if scattered && !source.one_in(4) {
                pair.scattered(&mut source);
            } else {
                pair.step(&mut source);
            }
            pair.compare(&mut source);
        }));
        if let Err(payload) = result {
            eprintln!("the steps:\n  {}", pair.log.join("\n  "));
            std::panic::resume_unwind(payload);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_kernel_maps_what_the_model_says(steps in prop::collection::vec(any::<[u8; 40]>().prop_map(Step), 1..120)) {
        play(&steps, false);
    }

    #[test]
    fn scattered_mappings_show_what_the_model_says(steps in prop::collection::vec(any::<[u8; 40]>().prop_map(Step), 1..120)) {
        play(&steps, true);
    }
}
