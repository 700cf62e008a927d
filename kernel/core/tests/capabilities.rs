//! Retype, split, copy, mint, move, delete and revoke against a slow, obvious model: a table of capabilities and a table of
//! objects that know what they were made of.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tench_abi::layout::WATERMARK;
use tench_abi::{Error, Kind, Operation, Rights};
use tench_arch_host::Machine;
use tench_arch_host::machine::{ARCHIVE, DEVICE, RAM_SMALL};
use tench_kernel::derivation;

/// Slots that the test uses.
const SLOTS: std::ops::Range<u64> = 136..184;
/// All slots that its calls can name besides; the others are the first process's own.
const OWN: std::ops::Range<u64> = 130..220;

/// What everything is made of.
const UNTYPED: [u64; 3] = [RAM_SMALL, ARCHIVE, DEVICE];

/// An object: what it is and what it was made of.
#[derive(Clone, Debug)]
struct Object {
    kind: Kind,
    start: u64,
    bits: u32,
    parent: Option<usize>,
    watermark: u64,
    kept: bool,
}

/// The smallest untyped.
const MIN_BITS: u32 = 4;

impl Object {
    fn end(&self) -> u64 {
        self.start + (1 << self.bits)
    }
}

/// A capability.
#[derive(Clone, Debug)]
struct Known {
    object: usize,
    rights: u8,
    badge: u64,
    original: bool,
    badge_origin: bool,
}

/// The model.
#[derive(Default)]
struct Model {
    objects: BTreeMap<usize, Object>,
    caps: BTreeMap<u64, Known>,
    made: usize,
}

/// What a call answers: an error or `x1`...
type Answer = Result<Vec<u64>, Error>;

impl Model {
    fn add(&mut self, object: Object, address: u64) {
        self.made += 1;
        self.objects.insert(self.made, object);
        let known =
            Known { object: self.made, rights: Rights::all().bits(), badge: 0, original: true, badge_origin: false };
        self.caps.insert(address, known);
    }

    fn cap(&self, address: u64) -> Result<&Known, Error> {
        self.caps.get(&address).ok_or(Error::InvalidCapability)
    }

    fn object(&self, known: &Known) -> &Object {
        &self.objects[&known.object]
    }

    fn destination(&self, address: u64) -> Result<(), Error> {
        if address >= 256 {
            return Err(Error::NoSuchSlot);
        }
        if self.caps.contains_key(&address) { Err(Error::SlotOccupied) } else { Ok(()) }
    }

    fn retype(&mut self, from: u64, kind: Kind, size: u64, count: u64, place: u64, first: u64) -> Answer {
        let untyped = self.cap(from)?.clone();
        let source = self.object(&untyped).clone();
        if source.kind != Kind::Untyped {
            return Err(Error::WrongType);
        }
        if untyped.rights & Rights::WRITE.bits() == 0 {
            return Err(Error::MissingRights);
        }
        let bits = kind.object_bits(size).ok_or(Error::InvalidArgument)?;
        if source.kept && !matches!(kind, Kind::Untyped | Kind::Frame) {
            return Err(Error::DeviceMemory);
        }
        if count == 0 || count > 256 {
            return Err(Error::InvalidArgument);
        }
        let one = 1u64 << bits;
        let offset = if place == WATERMARK { source.watermark.next_multiple_of(one) } else { place };
        if offset % one != 0 {
            return Err(Error::Misaligned);
        }
        if u128::from(offset) + u128::from(count) * u128::from(one) > 1 << source.bits {
            return Err(Error::OutOfMemory);
        }
        let (start, end) = (source.start + offset, source.start + offset + count * one);
        let children = self.objects.values().filter(|child| child.parent == Some(untyped.object));
        if children.into_iter().any(|child| child.start < end && child.end() > start) {
            return Err(Error::Overlap);
        }
        if first >= 256 || (first & 255) + count > 256 {
            return Err(Error::NoSuchSlot);
        }
        (first..first + count).try_for_each(|address| self.destination(address))?;
        if place == WATERMARK {
            self.objects.get_mut(&untyped.object).expect("it exists").watermark = offset + count * one;
        }
        for i in 0..count {
            let parent = Some(untyped.object);
            let object = Object { kind, start: start + i * one, bits, parent, watermark: 0, kept: source.kept };
            self.add(object, first + i);
        }
        Ok(vec![offset])
    }

    fn split(&mut self, address: u64, to: u64) -> Answer {
        let known = self.cap(address)?.clone();
        let mut lower = self.object(&known).clone();
        if lower.kind != Kind::Untyped {
            return Err(Error::WrongType);
        }
        if lower.bits == MIN_BITS {
            return Err(Error::InvalidArgument);
        }
        let half = 1u64 << (lower.bits - 1);
        let middle = lower.start + half;
        let children: Vec<usize> =
            self.objects.iter().filter(|(_, child)| child.parent == Some(known.object)).map(|(id, _)| *id).collect();
        if children.iter().any(|id| self.objects[id].start < middle && self.objects[id].end() > middle) {
            return Err(Error::Overlap);
        }
        self.destination(to)?;
        let (below, above): (Vec<usize>, Vec<usize>) =
            children.into_iter().partition(|id| self.objects[id].start < middle);
        lower.bits -= 1;
        let mut upper = Object { start: middle, ..lower.clone() };
        upper.watermark = if above.is_empty() { 0 } else { lower.watermark.saturating_sub(half) };
        lower.watermark = if below.is_empty() { 0 } else { lower.watermark.min(half) };
        self.objects.insert(known.object, lower);
        self.add(upper, to);
        for id in above {
            self.objects.get_mut(&id).expect("it exists").parent = Some(self.made);
        }
        Ok(vec![])
    }

    fn children(&self, address: u64) -> Answer {
        let known = self.cap(address)?;
        if self.object(known).kind != Kind::Untyped {
            return Err(Error::WrongType);
        }
        if known.rights & Rights::READ.bits() == 0 {
            return Err(Error::MissingRights);
        }
        let children = self.objects.values().filter(|child| child.parent == Some(known.object));
        let sizes: Vec<u64> = children.map(|child| 1 << child.bits).collect();
        Ok(vec![sizes.len() as u64, sizes.iter().sum()])
    }

    fn mint(&mut self, from: u64, to: u64, mask: u64, badge: u64) -> Answer {
        let mut known = self.cap(from)?.clone();
        self.destination(to)?;
        let kind = self.object(&known).kind;
        if matches!(kind, Kind::Untyped | Kind::Mapping) {
            return Err(Error::NotCopyable);
        }
        known.original = false;
        known.badge_origin = false;
        known.rights &= mask as u8;
        if badge != 0 {
            if !matches!(kind, Kind::Endpoint | Kind::Notification) || known.badge != 0 {
                return Err(Error::InvalidArgument);
            }
            known.badge = badge;
            known.badge_origin = true;
        }
        self.caps.insert(to, known);
        Ok(vec![])
    }

    fn shift(&mut self, from: u64, to: u64) -> Answer {
        let known = self.cap(from)?.clone();
        self.destination(to)?;
        self.caps.remove(&from);
        self.caps.insert(to, known);
        Ok(vec![])
    }

    /// Removes a capability, and its object if it was the last. Answers that object, unless its children remain.
    fn remove(&mut self, address: u64) -> Option<Object> {
        let known = self.caps.remove(&address).expect("it exists");
        if self.caps.values().any(|other| other.object == known.object) {
            return None;
        }
        let object = self.objects.remove(&known.object).expect("it exists");
        let mut has_children = false;
        for child in self.objects.values_mut().filter(|child| child.parent == Some(known.object)) {
            child.parent = object.parent;
            has_children = true;
        }
        if let Some(parent) = object.parent
            && !self.objects.values().any(|sibling| sibling.parent == Some(parent))
            && let Some(parent) = self.objects.get_mut(&parent)
        {
            parent.watermark = 0;
        }
        if has_children { None } else { Some(object) }
    }

    fn delete(&mut self, address: u64) -> Answer {
        self.cap(address)?;
        Ok(match self.remove(address) {
            Some(object) => vec![1, object.start, object.bits.into()],
            None => vec![0],
        })
    }

    fn descends(&self, object: usize, ancestor: usize) -> bool {
        let mut at = self.objects[&object].parent;
        while let Some(parent) = at {
            if parent == ancestor {
                return true;
            }
            at = self.objects[&parent].parent;
        }
        false
    }

    fn revoke(&mut self, address: u64) -> Answer {
        let known = self.cap(address)?.clone();
        let untyped = self.object(&known).kind == Kind::Untyped;
        let goes = |other: &Known| {
            if untyped {
                self.descends(other.object, known.object)
            } else {
                known.original && other.object == known.object
                    || known.badge_origin && other.object == known.object && other.badge == known.badge
            }
        };
        let victims: Vec<u64> =
            self.caps.iter().filter(|(at, other)| **at != address && goes(other)).map(|(at, _)| *at).collect();
        for victim in &victims {
            self.remove(*victim);
        }
        Ok(vec![victims.len() as u64])
    }

    fn identify(&self, address: u64) -> Answer {
        let Ok(known) = self.cap(address) else { return Ok(vec![0; 5]) };
        let object = self.object(known);
        let place = if matches!(object.kind, Kind::Untyped | Kind::Frame) { object.start } else { 0 };
        Ok(vec![object.kind as u64, known.rights.into(), object.bits.into(), known.badge, place])
    }

    fn query(&self, address: u64) -> Answer {
        let known = self.cap(address)?;
        let object = self.object(known);
        if object.kind != Kind::Untyped {
            return Err(Error::WrongType);
        }
        if known.rights & Rights::READ.bits() == 0 {
            return Err(Error::MissingRights);
        }
        Ok(vec![object.bits.into(), object.start, object.watermark])
    }
}

/// Mostly untyped memory.
fn untyped() -> impl Strategy<Value = At> {
    prop_oneof![6 => any::<usize>().prop_map(At::Untyped), 1 => held()]
}

/// How a step names a slot: so that most calls do something.
#[derive(Clone, Copy, Debug)]
enum At {
    Address(u64),
    /// One that holds something, counted from the beginning.
    Held(usize),
    /// One that holds untyped memory, counted likewise.
    Untyped(usize),
    /// One that is empty.
    Empty(usize),
}

impl At {
    fn address(self, model: &Model) -> u64 {
        let of = |mut addresses: Vec<u64>, i: usize| {
            let count = addresses.len().max(1);
            if addresses.is_empty() { SLOTS.start } else { addresses.swap_remove(i % count) }
        };
        match self {
            At::Address(address) => address,
            At::Held(i) => of(model.caps.keys().copied().collect(), i),
            At::Untyped(i) => {
                let untyped = |known: &Known| model.object(known).kind == Kind::Untyped;
                of(model.caps.iter().filter(|(_, known)| untyped(known)).map(|(at, _)| *at).collect(), i)
            }
            At::Empty(i) => of(SLOTS.filter(|address| !model.caps.contains_key(address)).collect(), i),
        }
    }
}

fn held() -> impl Strategy<Value = At> {
    prop_oneof![12 => any::<usize>().prop_map(At::Held), 1 => (0..3u64 * 256).prop_map(At::Address)]
}

fn empty() -> impl Strategy<Value = At> {
    prop_oneof![
        12 => any::<usize>().prop_map(At::Empty),
        1 => any::<usize>().prop_map(At::Held),
        1 => (0..3u64 * 256).prop_map(At::Address),
    ]
}

#[derive(Clone, Debug)]
enum Plan {
    Retype { from: At, kind: Kind, size: u64, count: u64, place: u64, first: At },
    Mint { from: At, to: At, mask: u64, badge: u64 },
    Move { from: At, to: At },
    Split { address: At, to: At },
    Delete(At),
    Revoke(At),
}

impl Plan {
    fn step(&self, model: &Model) -> Step {
        let at = |at: At| at.address(model);
        match *self {
            Plan::Retype { from, kind, size, count, place, first } => {
                Step::Retype { from: at(from), kind, size, count, place, first: at(first) }
            }
            Plan::Mint { from, to, mask, badge } => Step::Mint { from: at(from), to: at(to), mask, badge },
            Plan::Move { from, to } => Step::Move { from: at(from), to: at(to) },
            Plan::Split { address, to } => Step::Split { address: at(address), to: at(to) },
            Plan::Delete(address) => Step::Delete(at(address)),
            Plan::Revoke(address) => Step::Revoke(at(address)),
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Retype { from: u64, kind: Kind, size: u64, count: u64, place: u64, first: u64 },
    Mint { from: u64, to: u64, mask: u64, badge: u64 },
    Move { from: u64, to: u64 },
    Split { address: u64, to: u64 },
    Delete(u64),
    Revoke(u64),
}

fn size_of(kind: Kind) -> BoxedStrategy<u64> {
    match kind {
        Kind::Untyped => (4..14u64).boxed(),
        Kind::Frame => prop_oneof![8 => Just(12), 1 => 11..15u64].boxed(),
        Kind::CapNode => (0..5u64).boxed(),
        Kind::PageTable => (1..5u64).boxed(),
        _ => (0..2u64).boxed(),
    }
}

fn retype() -> impl Strategy<Value = Plan> {
    let kinds = vec![
        Kind::Untyped,
        Kind::Untyped,
        Kind::Untyped,
        Kind::Frame,
        Kind::Frame,
        Kind::CapNode,
        Kind::PageTable,
        Kind::Thread,
        Kind::SchedulingContext,
        Kind::Endpoint,
        Kind::Endpoint,
        Kind::Endpoint,
        Kind::Reply,
        Kind::Notification,
        Kind::Notification,
        Kind::Mapping,
    ];
    prop::sample::select(kinds).prop_flat_map(|kind| {
        let from = prop_oneof![4 => prop::sample::select(UNTYPED.to_vec()).prop_map(At::Address), 6 => held()];
        let count = prop_oneof![20 => 1..4u64, 3 => 4..20u64, 1 => prop::sample::select(vec![0, 257, u64::MAX])];
        let place = prop_oneof![
            8 => Just(WATERMARK),
            8 => (0..64u64).prop_map(|i| i * 512),
            4 => (0..4u64).prop_map(|i| i * 4096),
            1 => any::<u64>(),
        ];
        (from, size_of(kind), count, place, empty()).prop_map(move |(from, size, count, place, first)| Plan::Retype {
            from,
            kind,
            size,
            count,
            place,
            first,
        })
    })
}

fn plan() -> impl Strategy<Value = Plan> {
    let mask = prop_oneof![3 => Just(u64::MAX), 1 => 0..16u64];
    let badge = prop_oneof![3 => Just(0), 2 => 1..4u64];
    prop_oneof![
        8 => retype(),
        9 => (held(), empty(), mask, badge).prop_map(|(from, to, mask, badge)| Plan::Mint { from, to, mask, badge }),
        2 => (held(), empty()).prop_map(|(from, to)| Plan::Move { from, to }),
        3 => (untyped(), empty()).prop_map(|(address, to)| Plan::Split { address, to }),
        4 => held().prop_map(Plan::Delete),
        2 => held().prop_map(Plan::Revoke),
    ]
}

/// Makes a call and answers like the model, with as many results.
fn call(machine: &mut Machine, operation: Operation, arguments: &[u64], results: usize) -> Answer {
    let answer = machine.call(operation, arguments);
    match answer.error() {
        Some(error) => {
            assert_eq!(answer.x[1..], [0; 10], "a refusal answers nothing else");
            Err(error)
        }
        None => Ok(answer.x[1..=results].to_vec()),
    }
}

/// Applies a step to both, and compares what they answer.
fn apply(machine: &mut Machine, model: &mut Model, step: &Step) {
    let (operation, arguments, expected) = match *step {
        Step::Retype { from, kind, size, count, place, first } => {
            let arguments = vec![from, kind as u64, size, count, place, 0, first];
            (Operation::UntypedRetype, arguments, model.retype(from, kind, size, count, place, first))
        }
        Step::Mint { from, to, mask: u64::MAX, badge: 0 } => {
            (Operation::Copy, vec![0, from, 0, to], model.mint(from, to, u64::MAX, 0))
        }
        Step::Mint { from, to, mask, badge } => {
            (Operation::Mint, vec![0, from, 0, to, mask, badge], model.mint(from, to, mask, badge))
        }
        Step::Move { from, to } => (Operation::Move, vec![0, from, 0, to], model.shift(from, to)),
        Step::Split { address, to } => (Operation::UntypedSplit, vec![address, 0, to], model.split(address, to)),
        Step::Delete(address) => (Operation::Delete, vec![0, address], model.delete(address)),
        Step::Revoke(address) => (Operation::Revoke, vec![0, address], model.revoke(address)),
    };
    let results = expected.as_ref().map_or(0, Vec::len);
    let answer = call(machine, operation, &arguments, results);
    assert_eq!(answer, expected, "{step:?}");
}

/// Compares every slot, and every untyped's account.
fn compare(machine: &mut Machine, model: &Model, addresses: &BTreeSet<u64>) {
    for address in addresses {
        assert_eq!(call(machine, Operation::Identify, &[0, *address], 5), model.identify(*address), "slot {address}");
        assert_eq!(call(machine, Operation::UntypedQuery, &[*address], 3), model.query(*address), "slot {address}");
        let counted = call(machine, Operation::UntypedChildren, &[*address], 2);
        assert_eq!(counted, model.children(*address), "slot {address}");
    }
}

/// Only the untyped capabilities that the test begins with are in the model.
fn begin() -> (Machine, Model) {
    let mut machine = Machine::new();
    let mut model = Model::default();
    for address in UNTYPED {
        let answer = machine.call(Operation::Identify, &[0, address]).ok();
        let (bits, start) = (answer[3] as u32, answer[5]);
        let object =
            Object { kind: Kind::Untyped, start, bits, parent: None, watermark: 0, kept: address != RAM_SMALL };
        model.add(object, address);
    }
    (machine, model)
}

/// Whether a step touches capabilities that the model does not know (the first process's own), or takes away what all
/// others need.
fn foreign(step: &Step) -> bool {
    let ours = |address: u64| OWN.contains(&address) || UNTYPED.contains(&address);
    let nowhere = |address: u64| address >= 256 || ours(address);
    match *step {
        Step::Retype { from, count, first, .. } => {
            !nowhere(from) || !nowhere(first) || (count <= 256 && first < 256 && !ours(first + count))
        }
        Step::Mint { from, to, .. } => !nowhere(from) || !nowhere(to),
        Step::Move { from, to } => !nowhere(from) || !nowhere(to) || UNTYPED.contains(&from),
        Step::Split { address, to } => !nowhere(address) || !nowhere(to),
        Step::Delete(address) => !nowhere(address) || UNTYPED.contains(&address),
        Step::Revoke(address) => !nowhere(address),
    }
}

fn run(plans: &[Plan]) {
    let (mut machine, mut model) = begin();
    let mut used: BTreeSet<u64> = OWN.collect();
    used.extend(UNTYPED);
    for plan in plans {
        let step = plan.step(&model);
        if foreign(&step) {
            continue;
        }
        apply(&mut machine, &mut model, &step);
        if let Err(wrong) = derivation::check_invariants(&mut machine.kernel()) {
            panic!("{step:?}: {wrong}");
        }
        machine.check();
        compare(&mut machine, &model, &used);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(250) })]

    #[test]
    fn the_kernel_is_the_model(plans in prop::collection::vec(plan(), 1..150)) {
        run(&plans);
    }
}
