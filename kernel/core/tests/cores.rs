//! Other cores: which ones exist, starting them, and notifying them by doorbells.

use std::mem::offset_of;

use tench_abi::boot::BootInfo;
use tench_abi::layout::address::PROCESS_INFO;
use tench_abi::layout::slot;
use tench_abi::object::{CorePower, DOORBELLS, Statistic, line_flags};
use tench_abi::{Error, Kind, Operation, Rights, Tag};
use tench_arch_host::Machine;
use tench_arch_host::host::{CORES, LEVEL_LINE, LINE_ELSEWHERE, TIMER_INTERRUPT};
use tench_arch_host::machine::{RAM, ResultRegisters, at};
use tench_arch_host::translation::walk;

use crate::common::{capabilities, check};

const CONTROL: u64 = at(slot::INTERRUPT_CONTROL);
const KERNEL: u64 = at(slot::KERNEL);
const READ: u64 = Rights::READ.bits() as u64;
const WRITE: u64 = Rights::WRITE.bits() as u64;

/// Calls `InterruptDoorbell` with the next free slot as the destination. Returns the result and the slot's address.
fn try_doorbell(m: &mut Machine, core: u64, line: u64) -> (ResultRegisters, u64) {
    let address = m.take_free();
    (m.call(Operation::InterruptDoorbell, &[CONTROL, core, line, address]), address)
}

/// Makes a doorbell. Returns its address.
#[track_caller]
fn make_doorbell(m: &mut Machine, core: u64, line: u64) -> u64 {
    let (result, address) = try_doorbell(m, core, line);
    result.ok();
    check(m);
    address
}

/// Makes a copy with these rights. Returns its address.
#[track_caller]
fn weak(m: &mut Machine, cap: u64, rights: u64) -> u64 {
    let address = m.take_free();
    m.call(Operation::Mint, &[0, cap, 0, address, rights, 0]).ok();
    address
}

/// Binds an edge-triggered line of this core to a new notification. Returns the capabilities to both.
#[track_caller]
fn listen(m: &mut Machine, number: u64, badge: u64) -> (u64, u64) {
    listen_as(m, number, badge, line_flags::EDGE)
}

/// Binds a line with these flags to a new notification. Returns the capabilities to both.
#[track_caller]
fn listen_as(m: &mut Machine, number: u64, badge: u64, flags: u64) -> (u64, u64) {
    let (notification, line) = (m.make(Kind::Notification, 0), m.take_free());
    let badged = m.take_free();
    m.call(Operation::Mint, &[0, notification, 0, badged, WRITE, badge]).ok();
    m.call(Operation::InterruptGet, &[CONTROL, number, flags, line]).ok();
    m.call(Operation::InterruptBind, &[line, badged]).ok();
    (line, notification)
}

/// Notifies a doorbell, and handles pending interrupts.
#[track_caller]
fn notify(m: &mut Machine, doorbell: u64) {
    m.call(Operation::Signal, &[doorbell]).ok();
    m.pass_time(0);
    check(m);
}

/// Takes a notification's signals. Returns their bits.
fn heard(m: &mut Machine, notification: u64) -> Result<u64, Error> {
    let result = m.call(Operation::TryReceive, &[notification]);
    result.error().map_or(Ok(result.x[10]), Err)
}

/// Returns the physical address of a virtual address of the first process.
#[track_caller]
fn mapped(m: &mut Machine, address: u64) -> u64 {
    let root = m.cap(at(slot::VSPACE)).object;
    let host = m.host();
    let root = (root - host.memory.base()) as u64;
    let page = walk(&host.memory, root, address).expect("the first process has it mapped");
    page.physical + (address - page.address)
}

/// Returns a word of the first process's boot information.
fn boot_word(m: &mut Machine, offset: usize) -> u64 {
    let address = mapped(m, PROCESS_INFO);
    m.host().memory.read(address + offset as u64)
}

#[test]
fn the_machine_says_how_many_cores_it_has_and_where_its_device_tree_is() {
    let mut m = Machine::new();
    let result = m.call(Operation::KernelMachine, &[KERNEL]).ok();
    let (tree, size) = m.kernel().state().device_tree;
    assert_eq!(result[1..6], [CORES, 0, tree, size, 0]);
    assert_eq!(boot_word(&mut m, offset_of!(BootInfo, core)), 0);
    assert_eq!(boot_word(&mut m, offset_of!(BootInfo, device_tree_size)), size);
    let shown = boot_word(&mut m, offset_of!(BootInfo, device_tree));
    assert_eq!(mapped(&mut m, shown), tree, "both name one device tree");
    let blind = weak(&mut m, KERNEL, WRITE);
    assert_eq!(m.call(Operation::KernelMachine, &[blind]).err(), Error::MissingRights);
    assert_eq!(m.call(Operation::KernelMachine, &[CONTROL]).err(), Error::WrongType);
}

#[test]
fn a_core_is_started_once_and_the_own_one_runs_already() {
    let mut m = Machine::new();
    let start = |m: &mut Machine, cap, core| m.call(Operation::KernelStartCore, &[cap, core, 0x4020_0000, 0x4040_1000]);
    for core in [CORES, CORES + 1, 1 << 32, u64::MAX] {
        assert_eq!(start(&mut m, KERNEL, core).err(), Error::NoSuchCore);
    }
    assert_eq!(start(&mut m, KERNEL, 0).err(), Error::CoreRunning);
    let weak = weak(&mut m, KERNEL, READ);
    assert_eq!(start(&mut m, weak, 1).err(), Error::MissingRights);
    assert_eq!(start(&mut m, CONTROL, 1).err(), Error::WrongType);
    assert!(m.host().started.is_empty(), "whatever was refused has started nothing");
    for core in 1..CORES {
        start(&mut m, KERNEL, core).ok();
        assert_eq!(start(&mut m, KERNEL, core).err(), Error::CoreRunning);
    }
    let started: Vec<_> = m.host().started.iter().map(|(core, addresses)| (*core, *addresses)).collect();
    assert_eq!(started, [1, 2, 3].map(|core| (core, (0x4020_0000, 0x4040_1000))));
    check(&mut m);
}

#[test]
fn a_core_is_on_from_its_start_until_it_stops() {
    let mut m = Machine::new();
    let power = |m: &mut Machine, cap, core| m.call(Operation::KernelCorePower, &[cap, core]);
    let known =
        |m: &mut Machine, core| CorePower::from_code(power(m, KERNEL, core).ok()[1]).expect("one of the states");
    for core in [CORES, CORES + 1, 1 << 32, u64::MAX] {
        assert_eq!(power(&mut m, KERNEL, core).err(), Error::NoSuchCore);
    }
    let blind = weak(&mut m, KERNEL, WRITE);
    assert_eq!(power(&mut m, blind, 1).err(), Error::MissingRights);
    assert_eq!(power(&mut m, CONTROL, 1).err(), Error::WrongType);
    assert_eq!(known(&mut m, 0), CorePower::On, "it runs this");
    assert_eq!(known(&mut m, 1), CorePower::Off, "nobody has started it");
    m.call(Operation::KernelStartCore, &[KERNEL, 1, 0x4020_0000, 0x4040_1000]).ok();
    assert_eq!([1, 2].map(|core| known(&mut m, core)), [CorePower::On, CorePower::Off]);
    m.host().stopped.insert(1);
    let sight = weak(&mut m, KERNEL, READ);
    assert_eq!(power(&mut m, sight, 1).ok()[1], CorePower::Off as u64, "to read is enough");
    assert_eq!(known(&mut m, 0), CorePower::On);
    check(&mut m);
}

#[test]
fn a_doorbell_is_made_for_cores_and_lines_that_exist_and_in_an_empty_slot() {
    let mut m = Machine::new();
    let before = capabilities(&mut m);
    for core in [CORES, 1 << 60, u64::MAX / DOORBELLS + 2, u64::MAX] {
        assert_eq!(try_doorbell(&mut m, core, 0).0.err(), Error::NoSuchCore);
    }
    for line in [DOORBELLS, DOORBELLS + 1, TIMER_INTERRUPT.into(), 40, 1 << 32, u64::MAX] {
        assert_eq!(try_doorbell(&mut m, 1, line).0.err(), Error::InvalidArgument);
    }
    let make = |m: &mut Machine, cap, address| m.call(Operation::InterruptDoorbell, &[cap, 1, 0, address]);
    assert_eq!(make(&mut m, CONTROL, KERNEL).err(), Error::SlotOccupied);
    assert_eq!(make(&mut m, CONTROL, 256).err(), Error::NoSuchSlot);
    let address = m.take_free();
    assert_eq!(make(&mut m, KERNEL, address).err(), Error::WrongType);
    assert_eq!(capabilities(&mut m), before);
    let weak = weak(&mut m, CONTROL, READ);
    assert_eq!(make(&mut m, weak, address).err(), Error::MissingRights);
    make(&mut m, CONTROL, address).ok();
    assert_eq!(make(&mut m, CONTROL, address).err(), Error::SlotOccupied);
    assert_eq!(m.call(Operation::Identify, &[0, address]).ok()[1], Kind::Doorbell as u64);
    check(&mut m);
}

#[test]
fn a_doorbell_interrupts_the_core_and_line_that_it_names() {
    let mut m = Machine::new();
    let mut expected = Vec::new();
    for core in 1..CORES {
        for line in [0, 7, DOORBELLS - 1] {
            let doorbell = make_doorbell(&mut m, core, line);
            notify(&mut m, doorbell);
            expected.push((core, line as u32));
        }
    }
    assert_eq!(m.host().notified, expected);
    assert!(m.host().pending.is_empty(), "the own core was not notified");
    // With and without the fast path for signals.
    let doorbell = make_doorbell(&mut m, 2, 3);
    m.fast = true;
    notify(&mut m, doorbell);
    assert_eq!(m.host().notified.pop(), Some((2, 3)));
}

#[test]
fn a_doorbell_without_the_right_interrupts_nobody() {
    let mut m = Machine::new();
    let doorbell = make_doorbell(&mut m, 1, 2);
    let weak = weak(&mut m, doorbell, READ);
    for fast in [false, true] {
        m.fast = fast;
        assert_eq!(m.call(Operation::Signal, &[weak]).err(), Error::MissingRights);
        assert_eq!(m.call(Operation::Receive, &[doorbell]).err(), Error::WrongType);
        assert_eq!(m.call(Operation::Call, &[doorbell]).err(), Error::WrongType);
    }
    assert!(m.host().notified.is_empty());
}

#[test]
fn the_own_core_receives_its_doorbell_on_its_line() {
    let mut m = Machine::new();
    let ((line, notification), doorbell) = (listen(&mut m, 5, 0x50), make_doorbell(&mut m, 0, 5));
    let other = make_doorbell(&mut m, 0, 6);
    assert_eq!(heard(&mut m, notification), Err(Error::WouldBlock));
    notify(&mut m, doorbell);
    assert_eq!(heard(&mut m, notification), Ok(0x50));
    // Until the line is acknowledged, notifications of the doorbell are kept as one.
    notify(&mut m, doorbell);
    notify(&mut m, doorbell);
    assert_eq!(heard(&mut m, notification), Err(Error::WouldBlock));
    m.call(Operation::InterruptAcknowledge, &[line]).ok();
    m.pass_time(0);
    assert_eq!(heard(&mut m, notification), Ok(0x50));
    m.call(Operation::InterruptAcknowledge, &[line]).ok();
    notify(&mut m, other);
    assert_eq!(heard(&mut m, notification), Err(Error::WouldBlock), "another line");
    notify(&mut m, doorbell);
    assert_eq!(heard(&mut m, notification), Ok(0x50));
    assert!(m.host().notified.is_empty());
}

#[test]
fn a_doorbell_interrupt_that_nobody_receives_waits_for_whoever_takes_the_line() {
    let mut m = Machine::new();
    let doorbell = make_doorbell(&mut m, 0, 9);
    notify(&mut m, doorbell);
    let (_, notification) = listen(&mut m, 9, 1);
    m.pass_time(0);
    assert_eq!(heard(&mut m, notification), Ok(1));
}

/// Flags of a line that is acknowledged when its signal is taken.
const DOORBELL: u64 = line_flags::EDGE | line_flags::AUTOMATIC;

/// Returns the number of interrupts that the kernel has taken.
fn interrupts(m: &mut Machine) -> u64 {
    m.call(Operation::KernelQuery, &[KERNEL, Statistic::Interrupts as u64]).ok()[1]
}

#[test]
fn to_take_the_signal_acknowledges_a_line_that_says_so() {
    let mut m = Machine::new();
    let ((line, notification), doorbell) = (listen_as(&mut m, 5, 0x50, DOORBELL), make_doorbell(&mut m, 0, 5));
    for _ in 0..3 {
        notify(&mut m, doorbell);
        assert!(!m.host().enabled.contains(&5), "nobody waited, so it is held");
        // However many notifications follow, the machine keeps one, which interrupts nothing before the signal is
        // taken.
        let before = interrupts(&mut m);
        (0..4).for_each(|_| notify(&mut m, doorbell));
        m.call(Operation::InterruptAcknowledge, &[line]).ok();
        m.pass_time(0);
        assert_eq!(interrupts(&mut m), before);
        assert_eq!(heard(&mut m, notification), Ok(0x50));
        m.pass_time(0);
        assert_eq!(interrupts(&mut m), before + 1);
        assert_eq!(heard(&mut m, notification), Ok(0x50), "the one that was kept");
        assert!(m.host().enabled.contains(&5), "nothing is held any more");
        assert_eq!(heard(&mut m, notification), Err(Error::WouldBlock));
        check(&mut m);
    }
}

/// Checks that a thread that waits in one of these ways is woken at once, and that the line is never masked.
#[test]
fn a_line_that_somebody_waits_for_is_not_masked() {
    for (fast, busy, bound) in (0..8).map(|i| (i & 1 != 0, i & 2 != 0, i & 4 != 0)) {
        let mut m = Machine::new();
        m.fast = fast;
        let ((_, notification), doorbell) = (listen_as(&mut m, 7, 0x70, DOORBELL), make_doorbell(&mut m, 0, 7));
        let (first, thread) = (m.first, m.free);
        let waiter = m.make_thread(255);
        let endpoint = m.make(Kind::Endpoint, 0);
        if bound {
            m.call(Operation::ThreadBind, &[thread, 0, 0, notification]).ok();
        }
        for _ in 0..3 {
            let from = if bound { endpoint } else { notification };
            m.call_as(waiter, Operation::Receive, &[from]);
            m.check();
            assert!(m.waits(waiter));
            if busy {
                notify(&mut m, doorbell);
            } else {
                // The core is idle.
                m.call_as(first, Operation::ThreadSuspend, &[at(slot::THREAD)]);
                assert!(m.idle());
                m.raise(7);
            }
            m.check();
            assert!(m.host().enabled.contains(&7));
            assert!(m.current() == waiter || busy, "fast {fast}, busy {busy}, bound {bound}");
            m.run(waiter);
            let result = m.results(waiter);
            assert_eq!((result.ok()[1], result.x[10]), (Tag::NOTIFICATION, 0x70));
            assert_eq!(result.x[2..10], [0; 8]);
            // The next notification arrives before the thread waits again, and is kept for it.
            notify(&mut m, doorbell);
            assert!(!m.host().enabled.contains(&7));
            assert_eq!(m.call(Operation::Receive, &[from]).x[10], 0x70);
            assert!(m.host().enabled.contains(&7));
            if !busy {
                m.call(Operation::ThreadResume, &[at(slot::THREAD)]).ok();
            }
            check(&mut m);
        }
    }
}

/// Checks that taking one notification's signal leaves the signal of another, which is bound to the thread.
#[test]
fn a_bound_signal_is_not_forgotten_for_another() {
    for (fast, reply) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut m = Machine::new();
        m.fast = fast;
        let (bound, other, endpoint) =
            (m.make(Kind::Notification, 0), m.make(Kind::Notification, 0), m.make(Kind::Endpoint, 0));
        let address = m.free;
        let server = m.make_thread(255);
        let client = m.make_thread(255);
        m.call(Operation::ThreadBind, &[address, 0, 0, bound]).ok();
        if reply {
            // A caller waits for a reply, so that the reply can take the fast path.
            m.call_as(server, Operation::Receive, &[endpoint]);
            m.call_as(client, Operation::Call, &[endpoint]);
        }
        let first = m.first;
        m.run(first);
        m.call(Operation::Signal, &[bound]).ok();
        m.call(Operation::Signal, &[other]).ok();
        m.call_as(server, Operation::Receive, &[other]).ok();
        let operation = if reply { Operation::ReplyReceive } else { Operation::Receive };
        let result = m.call_as(server, operation, &[endpoint]);
        assert_eq!((result.ok()[1], m.waits(server)), (Tag::NOTIFICATION, false), "fast {fast}, reply {reply}");
        check(&mut m);
    }
}

#[test]
fn a_held_line_is_let_go_with_its_notification() {
    for delete in [false, true] {
        let mut m = Machine::new();
        let ((line, notification), doorbell) = (listen_as(&mut m, 2, 4, DOORBELL), make_doorbell(&mut m, 0, 2));
        let (other, _) = listen_as(&mut m, 3, 8, DOORBELL);
        m.call(Operation::InterruptBind, &[other, 0]).ok();
        m.call(Operation::InterruptBind, &[other, notification]).ok();
        notify(&mut m, doorbell);
        m.raise(3);
        check(&mut m);
        if delete {
            m.call(Operation::Revoke, &[0, notification]).ok();
            m.call(Operation::Delete, &[0, notification]).ok();
        } else {
            m.call(Operation::InterruptBind, &[line, 0]).ok();
            check(&mut m);
            assert_eq!(heard(&mut m, notification), Ok(4 | 1), "what was signalled stays");
            assert!(m.host().enabled.contains(&3) && !m.host().enabled.contains(&2));
        }
        check(&mut m);
        let again = m.make(Kind::Notification, 0);
        m.call(Operation::InterruptBind, &[line, again]).ok();
        notify(&mut m, doorbell);
        assert_eq!(heard(&mut m, again), Ok(1));
    }
}

#[test]
fn lines_of_devices_are_acknowledged_by_their_drivers() {
    let mut m = Machine::new();
    let address = m.take_free();
    for (number, flags) in [(DOORBELLS - 1, 4), (40, 2), (40, 3), (40, 4), (40, u64::MAX)] {
        assert_eq!(m.call(Operation::InterruptGet, &[CONTROL, number, flags, address]).err(), Error::InvalidArgument);
    }
    // The flags of a line are those that `InterruptGet` passes, each time.
    let get = |m: &mut Machine, flags| m.call(Operation::InterruptGet, &[CONTROL, 1, flags, address]).ok();
    get(&mut m, DOORBELL);
    m.call(Operation::Delete, &[0, address]).ok();
    check(&mut m);
    get(&mut m, line_flags::EDGE);
    let notification = m.make(Kind::Notification, 0);
    m.call(Operation::InterruptBind, &[address, notification]).ok();
    m.raise(1);
    assert_eq!(heard(&mut m, notification), Ok(1));
    assert!(!m.host().enabled.contains(&1), "it waits for its driver");
    check(&mut m);
}

#[test]
fn a_line_of_a_device_is_masked_from_its_interrupt_until_its_driver_acknowledges_that() {
    let mut m = Machine::new();
    let (line, notification) = listen_as(&mut m, 40, 4, 0);
    for _ in 0..2 {
        m.raise(40);
        assert!(!m.host().enabled.contains(&40), "it would interrupt the driver, too");
        assert_eq!(heard(&mut m, notification), Ok(4));
        assert!(!m.host().enabled.contains(&40), "to take the signal says nothing about the device");
        m.call(Operation::InterruptAcknowledge, &[line]).ok();
        assert!(m.host().enabled.contains(&40));
        check(&mut m);
    }
}

#[test]
fn a_line_of_another_core_is_not_given() {
    let mut m = Machine::new();
    let slot = m.take_free();
    for flags in [0, line_flags::EDGE] {
        let result = m.call(Operation::InterruptGet, &[CONTROL, LINE_ELSEWHERE.into(), flags, slot]);
        assert_eq!(result.err(), Error::InvalidInterrupt);
        check(&mut m);
    }
    m.call(Operation::InterruptGet, &[CONTROL, u64::from(LINE_ELSEWHERE) - 1, 0, slot]).ok();
    check(&mut m);
}

#[test]
fn a_line_is_not_given_with_a_trigger_that_the_kernel_cannot_set() {
    let mut m = Machine::new();
    let slot = m.take_free();
    let get = |m: &mut Machine, flags| m.call(Operation::InterruptGet, &[CONTROL, LEVEL_LINE.into(), flags, slot]);
    assert_eq!(get(&mut m, line_flags::EDGE).err(), Error::InvalidArgument);
    check(&mut m);
    get(&mut m, 0).ok();
    check(&mut m);
}

#[test]
fn the_lines_of_a_notification_are_unbound_in_any_order() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut m = Machine::new();
        let (first, notification) = listen(&mut m, 1, 1);
        let mut lines = vec![first];
        for number in [2, 3] {
            let address = m.take_free();
            m.call(Operation::InterruptGet, &[CONTROL, number, line_flags::EDGE, address]).ok();
            m.call(Operation::InterruptBind, &[address, notification]).ok();
            lines.push(address);
        }
        check(&mut m);
        for i in order {
            m.call(Operation::InterruptBind, &[lines[i], 0]).ok();
            check(&mut m);
        }
    }
}

#[test]
fn doorbell_lines_are_given_like_those_of_devices() {
    let mut m = Machine::new();
    let get = |m: &mut Machine, number| {
        let address = m.take_free();
        m.call(Operation::InterruptGet, &[CONTROL, number, 1, address])
    };
    for number in (DOORBELLS..32).chain([64, u64::MAX]) {
        assert_eq!(get(&mut m, number).err(), Error::InvalidInterrupt, "line {number}");
    }
    for number in 0..DOORBELLS {
        get(&mut m, number).ok();
        assert_eq!(get(&mut m, number).err(), Error::Busy);
    }
    check(&mut m);
}

#[test]
fn doorbells_are_copied_moved_deleted_and_revoked() {
    let mut m = Machine::new();
    let before = capabilities(&mut m);
    let (doorbell, beside) = (make_doorbell(&mut m, 1, 4), make_doorbell(&mut m, 1, 5));
    let [copy, second, moved] = [(); 3].map(|()| m.take_free());
    m.call(Operation::Copy, &[0, doorbell, 0, copy]).ok();
    m.call(Operation::Copy, &[0, copy, 0, second]).ok();
    m.call(Operation::Move, &[0, copy, 0, moved]).ok();
    check(&mut m);
    notify(&mut m, moved);
    assert_eq!(m.host().notified, [(1, 4)]);
    // A doorbell has no badge.
    let address = m.take_free();
    assert_eq!(m.call(Operation::Mint, &[0, doorbell, 0, address, 15, 7]).err(), Error::InvalidArgument);

    assert_eq!(m.call(Operation::Delete, &[0, second]).ok()[1], 0, "others remain");
    assert_eq!(m.call(Operation::Revoke, &[0, moved]).ok()[1], 0, "nothing was derived from a copy");
    assert_eq!(m.call(Operation::Revoke, &[0, doorbell]).ok()[1], 1);
    check(&mut m);
    assert_eq!(m.call(Operation::Signal, &[moved]).err(), Error::InvalidCapability);
    notify(&mut m, doorbell);
    notify(&mut m, beside);
    assert_eq!(m.host().notified, [(1, 4), (1, 4), (1, 5)], "another line's doorbell stays");

    for last in [doorbell, beside] {
        assert_eq!(m.call(Operation::Delete, &[0, last]).ok()[1..4], [1, 0, 0], "no memory becomes free");
    }
    assert_eq!(capabilities(&mut m), before);
    // After its last capability was deleted, a doorbell can be made again.
    make_doorbell(&mut m, 1, 4);
}

#[test]
fn two_doorbells_that_were_made_for_one_line_are_one_object() {
    let mut m = Machine::new();
    let (first, second) = (make_doorbell(&mut m, 3, 1), make_doorbell(&mut m, 3, 1));
    assert_eq!(m.call(Operation::Revoke, &[0, second]).ok()[1], 1);
    assert_eq!(m.call(Operation::Signal, &[first]).err(), Error::InvalidCapability);
    notify(&mut m, second);
    assert_eq!(m.host().notified, [(3, 1)]);
}

#[test]
fn doorbells_and_lines_of_equal_numbers_are_told_apart() {
    let mut m = Machine::new();
    let ((line, notification), doorbell) = (listen(&mut m, 3, 2), make_doorbell(&mut m, 0, 3));
    assert_eq!(m.cap(line).object, m.cap(doorbell).object);
    assert_eq!(m.call(Operation::Revoke, &[0, doorbell]).ok()[1], 0);
    assert_eq!(m.call(Operation::Revoke, &[0, line]).ok()[1], 0);
    m.call(Operation::Delete, &[0, line]).ok();
    check(&mut m);
    notify(&mut m, doorbell);
    assert_eq!(heard(&mut m, notification), Err(Error::WouldBlock), "nobody has the line");
}

#[test]
fn doorbells_go_with_the_node_that_they_lie_in() {
    let mut m = Machine::new();
    let before = capabilities(&mut m);
    let node = m.make(Kind::CapNode, 8);
    m.call(Operation::NodeInstall, &[0, 1, node]).ok();
    for line in 0..DOORBELLS {
        m.call(Operation::InterruptDoorbell, &[CONTROL, 2, line, 256 + line * 3]).ok();
    }
    check(&mut m);
    m.call(Operation::Revoke, &[0, RAM]).ok();
    assert_eq!(capabilities(&mut m), before);
    check(&mut m);
}
