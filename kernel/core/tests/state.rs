//! Short sequences of calls after which only the kernel's state is checked, not what the calls return. So it is a check
//! of the state, and nothing else, that finds a mistake here. Mutants (`tests/mutants`) that one check alone finds name
//! these tests.

use tench_abi::layout::slot;
use tench_abi::memory::MapFlags;
use tench_abi::object::line_flags;
use tench_abi::{Kind, Operation, Tag};
use tench_arch_host::Machine;
use tench_arch_host::machine::{RAM_SMALL, at};
use tench_kernel::float;
use tench_kernel::object::Ref;
use tench_kernel::thread::Thread;

/// Address of a page that only its own address space has.
const ADDRESS: u64 = 0x20_3000;
/// An interrupt line.
const LINE: u32 = 1;
/// A time after all others.
const LATE: u64 = 1 << 40;

/// Makes a thread of priority 50 in the address space of a root table. Returns the address of its capability, and it.
fn thread_in(m: &mut Machine, root: u64) -> (u64, Ref<Thread>) {
    let (address, time) = (m.make(Kind::Thread, 0), m.make(Kind::SchedulingContext, 0));
    m.call(Operation::SchedulingConfigure, &[time, 50, 50, 0]).ok();
    m.call(Operation::ThreadConfigure, &[address, at(slot::CSPACE), root, 0, 0]).ok();
    m.call(Operation::ThreadBind, &[address, time, 0, 0]).ok();
    m.call(Operation::ThreadResume, &[address]).ok();
    (address, m.thread_at(address))
}

/// Makes a root table with an account.
fn account(m: &mut Machine) -> u64 {
    let root = m.make(Kind::PageTable, 0);
    m.call(Operation::AccountOpen, &[root, at(slot::KERNEL)]).ok();
    root
}

/// Makes a thread wait for a signal until a time that does not come.
fn wait(m: &mut Machine, thread: Ref<Thread>) {
    let first = m.first;
    let notification = m.make(Kind::Notification, 0);
    let mut x = [0; 13];
    (x[0], x[1], x[12]) = (notification, Tag::DEADLINE, LATE);
    m.run(thread);
    m.system_call(Operation::Receive as u64, &x);
    m.run(first);
    m.check();
}

#[test]
fn what_was_moved_is_in_one_place() {
    let mut m = Machine::new();
    let (endpoint, to) = (m.make(Kind::Endpoint, 0), m.take_free());
    m.call(Operation::Move, &[0, endpoint, 0, to]);
    m.check();
}

#[test]
fn a_copy_agrees_with_its_source() {
    let mut m = Machine::new();
    let (table, to) = (m.make(Kind::PageTable, 3), m.take_free());
    m.call(Operation::Copy, &[0, table, 0, to]);
    m.check();
}

#[test]
fn nothing_is_left_in_a_node_that_is_deleted() {
    let mut m = Machine::new();
    let (endpoint, node) = (m.make(Kind::Endpoint, 0), m.make(Kind::CapNode, 8));
    m.call(Operation::NodeInstall, &[0, 1, node]).ok();
    m.call(Operation::Move, &[0, endpoint, 0, 2 * 256 - 1]).ok();
    m.call(Operation::NodeRemove, &[0, 1, node]).ok();
    m.call(Operation::Delete, &[0, node]);
    m.check();
}

#[test]
fn nothing_can_be_made_from_memory_that_is_lent() {
    let mut m = Machine::new();
    m.call(Operation::KernelExport, &[at(slot::KERNEL), 0, RAM_SMALL]);
    m.check();
}

#[test]
fn nothing_is_cached_of_a_table_that_is_unmapped() {
    let mut m = Machine::new();
    let root = m.make(Kind::PageTable, 0);
    let mut table = root;
    for level in 1..4 {
        let lower = m.make(Kind::PageTable, level);
        m.call(Operation::PageTableMap, &[lower, table, ADDRESS >> (12 + 9 * (4 - level)) & 511]).ok();
        table = lower;
    }
    let (frame, mapping) = (m.make(Kind::Frame, 12), m.take_free());
    let entry = ADDRESS >> 12 & 511;
    m.call(Operation::FrameMap, &[frame, table, entry, 1, 0, MapFlags::READ.bits(), mapping]).ok();
    let (first, (_, thread)) = (m.first, thread_in(&mut m, root));
    m.run(thread);
    m.access(ADDRESS);
    m.check();
    m.call_as(first, Operation::PageTableUnmap, &[table]);
    m.check();
}

#[test]
fn who_is_deleted_is_no_member_of_an_account() {
    for which in 0..3 {
        for waits in [false, true] {
            let mut m = Machine::new();
            let root = account(&mut m);
            let members = [0; 3].map(|_| thread_in(&mut m, root));
            if waits {
                wait(&mut m, members[which].1);
            }
            m.call(Operation::Delete, &[0, members[which].0]);
            m.check();
        }
    }
}

#[test]
fn who_waits_no_more_has_no_deadline() {
    let mut m = Machine::new();
    let (address, thread) = thread_in(&mut m, at(slot::VSPACE));
    wait(&mut m, thread);
    m.call(Operation::ThreadSuspend, &[address]);
    m.check();
}

#[test]
fn who_is_deleted_has_no_registers_in_the_floating_point_unit() {
    let mut m = Machine::new();
    let (first, (address, thread)) = (m.first, thread_in(&mut m, at(slot::VSPACE)));
    m.run(thread);
    float::trap(m.kernel());
    m.check();
    m.call(Operation::Yield, &[]);
    m.reschedule();
    m.check();
    assert!(m.current() == first);
    m.call(Operation::Delete, &[0, address]);
    m.check();
}

#[test]
fn no_budget_is_timed_of_who_waits() {
    let mut m = Machine::new();
    let notification = m.make(Kind::Notification, 0);
    let address = m.free;
    let thread = m.make_thread(50);
    m.call(Operation::SchedulingReserve, &[address + 1, 300, 1000, 0]).ok();
    m.run(thread);
    m.check();
    m.call(Operation::Receive, &[notification, 0]);
    m.check();
}

#[test]
fn who_is_preempted_goes_before_its_equals() {
    let mut m = Machine::new();
    let [preempted, _, _] = [0; 3].map(|_| m.make_thread(100));
    m.run(preempted);
    m.reschedule();
    m.check();
}

#[test]
fn the_idle_thread_is_ready_for_nobody() {
    let mut m = Machine::new();
    let (line, notification) = (m.take_free(), m.make(Kind::Notification, 0));
    m.call(Operation::InterruptGet, &[at(slot::INTERRUPT_CONTROL), LINE.into(), line_flags::EDGE, line]).ok();
    m.call(Operation::InterruptBind, &[line, notification]).ok();
    m.call(Operation::Receive, &[notification, 0]);
    m.check();
    assert!(m.idle());
    m.raise(LINE);
    m.check();
}

#[test]
fn a_reply_object_that_is_deleted_is_used_by_nobody() {
    let mut m = Machine::new();
    let (first, thread) = (m.first, m.make_thread(100));
    let (endpoint, reply) = (m.make(Kind::Endpoint, 0), m.make(Kind::Reply, 0));
    let mut x = [0; 13];
    (x[0], x[1], x[11]) = (endpoint, Tag::REPLY, reply);
    m.run(thread);
    m.system_call(Operation::Receive as u64, &x);
    m.check();
    m.call_as(first, Operation::Delete, &[0, reply]);
    m.check();
}
