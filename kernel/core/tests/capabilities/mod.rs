//! Retype, split, copy, mint, move, delete and revoke, and the operations on remote capabilities, against a slow,
//! obvious model: a table of capabilities and a table of objects that know what they were made of.

mod model;

use std::collections::BTreeSet;

use model::{CallResult, Known, Model, Object};
use proptest::prelude::*;
use tench_abi::layout::{WATERMARK, slot};
use tench_abi::{Kind, Operation};
use tench_arch_host::Machine;
use tench_arch_host::machine::{ARCHIVE, DEVICE, RAM_SMALL, at};
use tench_arch_host::memory::RAM_START;

/// Slots that the test uses.
const SLOTS: std::ops::Range<u64> = 136..184;
/// All slots that the test's calls can name; slots outside are the first process's own.
const OWN: std::ops::Range<u64> = 130..220;

/// Address of the kernel capability.
const KERNEL: u64 = at(slot::KERNEL);
/// Address of RAM that is in no boot untyped.
const HOLE: u64 = RAM_START + (8 << 20) + (64 << 10);

/// The untypeds that all objects are made of.
const UNTYPED: [u64; 3] = [RAM_SMALL, ARCHIVE, DEVICE];

/// The capabilities with which the test begins, and which it keeps.
const KEPT: [u64; 4] = [RAM_SMALL, ARCHIVE, DEVICE, KERNEL];

/// Returns a strategy for slots, mostly with untyped memory.
fn untyped() -> impl Strategy<Value = At> {
    prop_oneof![6 => any::<usize>().prop_map(At::Untyped), 1 => held()]
}

/// A step's choice of a slot, made so that most calls have an effect.
#[derive(Clone, Copy, Debug)]
enum At {
    Address(u64),
    /// The nth slot that holds a capability.
    Held(usize),
    /// The nth slot that holds untyped memory.
    Untyped(usize),
    /// The nth slot that holds an exported capability.
    Exported(usize),
    /// The nth empty slot.
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
            At::Exported(i) => {
                of(model.caps.iter().filter(|(_, known)| known.exported).map(|(at, _)| *at).collect(), i)
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
    Retype { from: At, kind: Kind, size: u64, count: u64, placement: u64, first: At },
    Mint { from: At, to: At, mask: u64, badge: u64 },
    Move { from: At, to: At },
    Split { address: At, to: At },
    Delete(At),
    Revoke(At),
    Export(At),
    Unexport(At),
    Import { kind: Kind, physical: Physical, size: u64, rights: u64, to: At },
}

/// The address from which memory is imported.
#[derive(Clone, Copy, Debug)]
enum Physical {
    /// A physical address.
    Address(u64),
    /// An offset in the nth exported untyped, in units of the imported size.
    Lent(usize, u64),
}

impl Physical {
    fn address(self, model: &Model, size: u64) -> u64 {
        match self {
            Physical::Address(address) => address,
            Physical::Lent(i, units) => {
                let lent = |known: &&Known| known.exported && model.object(known).kind == Kind::Untyped;
                let lent: Vec<u64> = model.caps.values().filter(lent).map(|known| model.object(known).start).collect();
                let start = if lent.is_empty() { HOLE } else { lent[i % lent.len()] };
                start + (units << size.min(20))
            }
        }
    }
}

impl Plan {
    fn step(&self, model: &Model) -> Step {
        let at = |at: At| at.address(model);
        match *self {
            Plan::Retype { from, kind, size, count, placement, first } => {
                Step::Retype { from: at(from), kind, size, count, placement, first: at(first) }
            }
            Plan::Mint { from, to, mask, badge } => Step::Mint { from: at(from), to: at(to), mask, badge },
            Plan::Move { from, to } => Step::Move { from: at(from), to: at(to) },
            Plan::Split { address, to } => Step::Split { address: at(address), to: at(to) },
            Plan::Delete(address) => Step::Delete(at(address)),
            Plan::Revoke(address) => Step::Revoke(at(address)),
            Plan::Export(address) => Step::Export(at(address)),
            Plan::Unexport(address) => Step::Unexport(at(address)),
            Plan::Import { kind, physical, size, rights, to } => {
                Step::Import { kind, physical: physical.address(model, size), size, rights, to: at(to) }
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Retype { from: u64, kind: Kind, size: u64, count: u64, placement: u64, first: u64 },
    Mint { from: u64, to: u64, mask: u64, badge: u64 },
    Move { from: u64, to: u64 },
    Split { address: u64, to: u64 },
    Delete(u64),
    Revoke(u64),
    Export(u64),
    Unexport(u64),
    Import { kind: Kind, physical: u64, size: u64, rights: u64, to: u64 },
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
        let placement = prop_oneof![
            8 => Just(WATERMARK),
            8 => (0..64u64).prop_map(|i| i * 512),
            4 => (0..4u64).prop_map(|i| i * 4096),
            1 => any::<u64>(),
        ];
        (from, size_of(kind), count, placement, empty()).prop_map(move |(from, size, count, placement, first)| {
            Plan::Retype { from, kind, size, count, placement, first }
        })
    })
}

/// Returns a strategy for slots, mostly with exported capabilities.
fn exported() -> impl Strategy<Value = At> {
    prop_oneof![12 => any::<usize>().prop_map(At::Exported), 1 => held()]
}

fn import() -> impl Strategy<Value = Plan> {
    let kind = prop_oneof![10 => Just(Kind::Frame), 10 => Just(Kind::Untyped), 1 => Just(Kind::Endpoint)];
    let physical = prop_oneof![
        8 => (0..32u64).prop_map(|i| Physical::Address(HOLE + i * 2048)),
        8 => (any::<usize>(), 0..3u64).prop_map(|(i, units)| Physical::Lent(i, units)),
        1 => prop::sample::select(vec![0, RAM_START, RAM_START + (32 << 20)]).prop_map(Physical::Address),
    ];
    let rights = prop_oneof![10 => Just(15), 3 => 0..18u64];
    (kind, physical, rights, empty()).prop_flat_map(|(kind, physical, rights, to)| {
        size_of(kind).prop_map(move |size| Plan::Import { kind, physical, size, rights, to })
    })
}

fn plan() -> impl Strategy<Value = Plan> {
    let mask = prop_oneof![3 => Just(u64::MAX), 1 => 0..16u64];
    let badge = prop_oneof![3 => Just(0), 2 => 1..4u64, 1 => (0..3u64).prop_map(|bit| 1 << (48 + 4 * bit) | 1)];
    let minted = prop_oneof![9 => held(), 1 => Just(At::Address(KERNEL))];
    prop_oneof![
        8 => retype(),
        9 => (minted, empty(), mask, badge).prop_map(|(from, to, mask, badge)| Plan::Mint { from, to, mask, badge }),
        2 => (held(), empty()).prop_map(|(from, to)| Plan::Move { from, to }),
        3 => (untyped(), empty()).prop_map(|(address, to)| Plan::Split { address, to }),
        4 => held().prop_map(Plan::Delete),
        2 => held().prop_map(Plan::Revoke),
        1 => Just(Plan::Revoke(At::Address(KERNEL))),
        4 => prop_oneof![held(), untyped()].prop_map(Plan::Export),
        2 => exported().prop_map(Plan::Unexport),
        3 => import(),
    ]
}

/// Makes a call. Returns its result in the model's form, with the first `results` registers.
fn call(machine: &mut Machine, operation: Operation, arguments: &[u64], results: usize) -> CallResult {
    let result = machine.call(operation, arguments);
    match result.error() {
        Some(error) => {
            assert_eq!(result.x[1..], [0; 10], "a refusal returns nothing else");
            Err(error)
        }
        None => Ok(result.x[1..=results].to_vec()),
    }
}

/// Applies a step to kernel and model, and compares the results.
fn apply(machine: &mut Machine, model: &mut Model, step: &Step) {
    let (operation, arguments, expected) = match *step {
        Step::Retype { from, kind, size, count, placement, first } => {
            let arguments = vec![from, kind as u64, size, count, placement, 0, first];
            (Operation::UntypedRetype, arguments, model.retype(from, kind, size, count, placement, first))
        }
        Step::Mint { from, to, mask: u64::MAX, badge: 0 } => {
            (Operation::Copy, vec![0, from, 0, to], model.mint(from, to, u64::MAX, 0))
        }
        Step::Mint { from, to, mask, badge } => {
            (Operation::Mint, vec![0, from, 0, to, mask, badge], model.mint(from, to, mask, badge))
        }
        Step::Move { from, to } => (Operation::Move, vec![0, from, 0, to], model.shift(from, to)),
        Step::Split { address, to } => (Operation::UntypedSplit, vec![address, 0, to], model.split(address, to)),
        Step::Export(address) => (Operation::KernelExport, vec![KERNEL, 0, address], model.export(address)),
        Step::Unexport(address) => (Operation::KernelUnexport, vec![KERNEL, 0, address], model.unexport(address)),
        Step::Import { kind, physical, size, rights, to } => {
            let arguments = vec![KERNEL, kind as u64, physical, size, rights, 0, to];
            (Operation::KernelImport, arguments, model.import(kind, physical, size, rights, to))
        }
        Step::Delete(address) => (Operation::Delete, vec![0, address, KERNEL], model.delete(address)),
        Step::Revoke(address) => (Operation::Revoke, vec![0, address], model.revoke(address)),
    };
    let results = expected.as_ref().map_or(0, Vec::len);
    let result = call(machine, operation, &arguments, results);
    assert_eq!(result, expected, "{step:?}");
}

/// Compares every slot, and every untyped's watermark and children.
fn compare(machine: &mut Machine, model: &Model, addresses: &BTreeSet<u64>) {
    for address in addresses {
        assert_eq!(
            call(machine, Operation::Identify, &[0, *address, KERNEL], 5),
            model.identify(*address),
            "slot {address}"
        );
        assert_eq!(call(machine, Operation::UntypedQuery, &[*address], 2), model.query(*address), "slot {address}");
        let holders = call(machine, Operation::KernelHolders, &[KERNEL, 0, *address], 4);
        assert_eq!(holders, model.holders(*address), "slot {address}");
        let counted = call(machine, Operation::UntypedChildren, &[*address], 2);
        assert_eq!(counted, model.children(*address), "slot {address}");
    }
}

/// Returns a machine and its model, which knows only the untyped capabilities with which the test begins and the kernel
/// capability.
fn begin() -> (Machine, Model) {
    let mut machine = Machine::new();
    let mut model = Model::default();
    for address in UNTYPED {
        let result = machine.call(Operation::Identify, &[0, address, KERNEL]).ok();
        let (bits, start) = (result[3] as u32, result[5]);
        let (kept, device) = (address != RAM_SMALL, address == DEVICE);
        let kind = Kind::Untyped;
        model.add(Object { kind, start, bits, parent: None, watermark: 0, kept, device, borrowed: false }, address);
    }
    let kind = Kind::Kernel;
    let kernel =
        Object { kind, start: 0, bits: 0, parent: None, watermark: 0, kept: false, device: false, borrowed: false };
    model.add(kernel, KERNEL);
    (machine, model)
}

/// Returns true if a step touches capabilities that the model does not know (the first process's own), or deletes what
/// all other steps need.
fn is_out_of_scope(step: &Step) -> bool {
    let ours = |address: u64| OWN.contains(&address) || KEPT.contains(&address);
    let nowhere = |address: u64| address >= 256 || ours(address);
    match *step {
        Step::Retype { from, count, first, .. } => {
            !nowhere(from) || !nowhere(first) || (count <= 256 && first < 256 && !ours(first + count))
        }
        Step::Mint { from, to, .. } => !nowhere(from) || !nowhere(to),
        Step::Move { from, to } => !nowhere(from) || !nowhere(to) || KEPT.contains(&from),
        Step::Split { address, to } => !nowhere(address) || !nowhere(to),
        Step::Delete(address) => !nowhere(address) || KEPT.contains(&address),
        Step::Revoke(address) => !nowhere(address),
        Step::Export(address) | Step::Unexport(address) => !nowhere(address) || KEPT.contains(&address),
        Step::Import { to, .. } => !nowhere(to),
    }
}

fn run(plans: &[Plan]) {
    let (mut machine, mut model) = begin();
    let mut used: BTreeSet<u64> = OWN.collect();
    used.extend(KEPT);
    for plan in plans {
        let step = plan.step(&model);
        if is_out_of_scope(&step) {
            continue;
        }
        apply(&mut machine, &mut model, &step);
        if let Err(wrong) = tench_arch_host::check_order::check_order(machine.kernel()) {
            panic!("{step:?}: {wrong}");
        }
        machine.check();
        compare(&mut machine, &model, &used);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_kernel_is_the_model(plans in prop::collection::vec(plan(), 1..150)) {
        run(&plans);
    }
}
