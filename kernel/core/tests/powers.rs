//! Powers of kernel capabilities: without a badge, a capability permits everything; with one, what the badge's powers
//! say.

use tench_abi::layout::slot;
use tench_abi::memory::MapFlags;
use tench_abi::{Error, Kind, Operation, Powers, Rights, power};
use tench_arch_host::Machine;
use tench_arch_host::machine::{RAM_SMALL, at};

use crate::common::{capabilities, check};

const KERNEL: u64 = at(slot::KERNEL);
const ALL: u64 = Rights::all().bits() as u64;
/// Process number in the badges.
const PROCESS: u64 = 7;

/// Makes a copy of the kernel capability with a badge. Returns its address.
#[track_caller]
fn badged(m: &mut Machine, badge: u64) -> u64 {
    let to = m.take_free();
    m.call(Operation::Mint, &[0, KERNEL, 0, to, ALL, badge]).ok();
    to
}

/// The operations on the kernel, each with the powers that permit it. An empty set permits it to no badged capability.
const OPERATIONS: [(Operation, Powers); 13] = [
    (Operation::AccountOpen, Powers::empty()),
    (Operation::KernelExport, Powers::empty()),
    (Operation::KernelUnexport, Powers::empty()),
    (Operation::KernelImport, Powers::empty()),
    (Operation::KernelHolders, Powers::empty()),
    (Operation::KernelPowerOff, Powers::POWER),
    (Operation::KernelPrint, Powers::empty()),
    (Operation::KernelQuery, Powers::COUNTERS),
    (Operation::KernelIrqOff, Powers::COUNTERS),
    (Operation::KernelMachine, Powers::all()),
    (Operation::KernelStartCore, Powers::empty()),
    (Operation::KernelCorePower, Powers::CORES),
    (Operation::KernelCounters, Powers::COUNTERS),
];

/// Attempts an operation. Returns its error.
fn attempt(m: &mut Machine, operation: Operation, kernel: u64) -> Option<Error> {
    let arguments = match operation {
        Operation::AccountOpen => [m.make(Kind::PageTable, 0), kernel, 0],
        Operation::KernelExport | Operation::KernelUnexport | Operation::KernelHolders => [kernel, 0, RAM_SMALL],
        Operation::KernelPowerOff => [kernel, 3, 0],
        _ => [kernel, 0, 0],
    };
    let result = m.call(operation, &arguments);
    // A call that powers the machine off does not return.
    if m.powered_off.is_some() { None } else { result.error() }
}

#[test]
fn a_badge_permits_what_its_powers_say_and_nothing_else() {
    let kernels = Operation::ALL.iter().filter(|operation| operation.name().starts_with("Kernel"));
    assert!(kernels.into_iter().all(|operation| OPERATIONS.iter().any(|(known, _)| known == operation)));
    let single = (0..u64::BITS - power::SHIFT).map(|bit| Powers::from_bits_retain(1 << bit));
    for powers in single.chain([Powers::empty(), Powers::OF_KERNEL, Powers::all()]) {
        for (operation, needed) in OPERATIONS {
            let mut m = Machine::new();
            let kernel = badged(&mut m, powers.badge(PROCESS));
            let refused = attempt(&mut m, operation, kernel) == Some(Error::MissingRights);
            assert_eq!(refused, !powers.intersects(needed), "{operation} with {powers:?}");
            assert_eq!(m.powered_off.is_some(), operation == Operation::KernelPowerOff && !refused);
            if m.powered_off.is_none() {
                check(&mut m);
            }
        }
    }
    for (operation, _) in OPERATIONS {
        assert_ne!(attempt(&mut Machine::new(), operation, KERNEL), Some(Error::MissingRights), "{operation}");
    }
}

#[test]
fn physical_addresses_are_returned_only_with_the_power_for_it() {
    let mut m = Machine::new();
    let (memory, able) = (m.physical(RAM_SMALL), badged(&mut m, Powers::MEMORY.badge(PROCESS)));
    let [_, frame, copy] = [m.take_free(), m.make(Kind::Frame, 12), m.take_free()];
    m.call(Operation::Copy, &[0, frame, 0, copy]).ok();
    let physical = m.physical(frame);
    let (mapped, table, mapping) = (m.make(Kind::Frame, 12), m.make(Kind::PageTable, 3), m.take_free());
    m.call(Operation::FrameMap, &[mapped, table, 0, 1, 0, MapFlags::READ.bits(), mapping]).ok();
    let mapped = m.physical(mapped);
    assert!(memory != 0 && physical != 0 && mapped != 0);
    let shown = |m: &mut Machine, address, kernel| {
        let result = m.call(Operation::Identify, &[0, address, kernel]);
        result.error().map_or(Ok(result.x[5]), Err)
    };
    let all = [memory, physical, mapped, 0];
    for (kernel, expected) in [(0, [0; 4]), (KERNEL, all), (able, all)] {
        assert_eq!([RAM_SMALL, copy, mapping, KERNEL].map(|address| shown(&mut m, address, kernel)), expected.map(Ok));
    }
    // A capability that does not permit the operation is an error, and nothing is deleted.
    let unable = badged(&mut m, Powers::OF_KERNEL.difference(Powers::MEMORY).badge(PROCESS));
    let weak = m.take_free();
    m.call(Operation::Mint, &[0, able, 0, weak, Rights::WRITE.bits().into(), 0]).ok();
    let empty = m.take_free();
    let refused = [
        (unable, Error::MissingRights),
        (weak, Error::MissingRights),
        (frame, Error::WrongType),
        (empty, Error::InvalidCapability),
    ];
    for (kernel, error) in refused {
        assert_eq!(shown(&mut m, frame, kernel), Err(error));
        assert_eq!(m.call(Operation::Delete, &[0, frame, kernel]).err(), error);
        assert_eq!(shown(&mut m, frame, able), Ok(physical));
    }
    // The thread that deletes the last capability learns which memory became free, and its address if it may know
    // addresses.
    assert_eq!(m.call(Operation::Delete, &[0, copy, able]).ok()[1], 0);
    assert_eq!(m.call(Operation::Delete, &[0, frame, able]).ok()[1..4], [1, physical, 12]);
    let frame = m.make(Kind::Frame, 12);
    assert_eq!(m.call(Operation::Delete, &[0, frame]).ok()[1..4], [1, 0, 12]);
    // Other results do not contain the address either.
    let frame = m.make(Kind::Frame, 12);
    assert_eq!(m.call(Operation::DeletePart, &[0, frame, 1]).ok()[1..4], [1, 0, 12]);
    check(&mut m);
}

#[test]
fn programs_count_only_when_they_are_let() {
    let mut m = Machine::new();
    assert!(!m.host().may_count, "not at first");
    for (argument, readable) in [(1, true), (0, false), (1, true)] {
        m.call(Operation::KernelCounters, &[KERNEL, argument]).ok();
        assert_eq!(m.host().may_count, readable);
    }
    assert_eq!(m.call(Operation::KernelCounters, &[KERNEL, 2]).err(), Error::InvalidArgument);
    assert!(m.host().may_count);
}

#[test]
fn the_device_tree_is_returned_to_the_original_alone() {
    let mut m = Machine::new();
    m.kernel().state().device_tree = (0x4800_0000, 0x1_0000);
    let whole = m.call(Operation::KernelMachine, &[KERNEL]).ok();
    assert_eq!(whole[3..5], [0x4800_0000, 0x1_0000]);
    let kernel = badged(&mut m, Powers::CORES.badge(PROCESS));
    let part = m.call(Operation::KernelMachine, &[kernel]).ok();
    assert_eq!((&part[1..3], &part[3..5]), (&whole[1..3], &[0, 0][..]));
}

#[test]
fn powers_are_copied_and_never_gained() {
    let mut m = Machine::new();
    let before = capabilities(&mut m);
    let badge = Powers::POWER.badge(PROCESS);
    let narrow = badged(&mut m, badge);
    let to = m.take_free();
    for wider in [Powers::all().badge(PROCESS), badge, 1] {
        assert_eq!(m.call(Operation::Mint, &[0, narrow, 0, to, ALL, wider]).err(), Error::InvalidArgument);
    }
    m.call(Operation::Mint, &[0, narrow, 0, to, ALL, 0]).ok();
    assert_eq!(m.call(Operation::Identify, &[0, to]).ok()[4], badge, "a copy has the same powers");
    assert_eq!(m.call(Operation::KernelPrint, &[to, 0]).err(), Error::MissingRights);
    // Rights are needed besides powers.
    let weak = m.take_free();
    m.call(Operation::Mint, &[0, narrow, 0, weak, Rights::READ.bits().into(), 0]).ok();
    assert_eq!(m.call(Operation::KernelPowerOff, &[weak]).err(), Error::MissingRights);
    check(&mut m);
    // Revoking a capability deletes all copies that were made of it, and no others with the same power.
    let other = badged(&mut m, Powers::POWER.badge(PROCESS + 1));
    assert_eq!(m.call(Operation::Revoke, &[0, narrow]).ok()[1], 2);
    assert_eq!(m.call(Operation::KernelPowerOff, &[to]).err(), Error::InvalidCapability);
    assert_eq!(m.call(Operation::Identify, &[0, other]).ok()[1], Kind::Kernel as u64);
    assert_eq!(m.call(Operation::Revoke, &[0, KERNEL]).ok()[1], 2);
    assert_eq!(capabilities(&mut m), before);
    assert_eq!(power::identity(badge), PROCESS);
    check(&mut m);
}
