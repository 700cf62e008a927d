//! More address spaces than identifiers (ASIDs): they can be made, and each thread sees its own memory.

use tench_abi::layout::slot;
use tench_abi::memory::MapFlags;
use tench_abi::{Kind, Operation};
use tench_arch_host::machine::at;
use tench_arch_host::{Host, Machine};
use tench_kernel::Arch;
use tench_kernel::object::Ref;
use tench_kernel::thread::Thread;

use crate::common::check;

/// Address of each space's page.
const ADDRESS: u64 = 0x20_3000;

/// An address space with one page of its own, and a thread in it.
#[derive(Clone, Copy)]
struct Space {
    root: u64,
    mapping: u64,
    physical: u64,
    capability: u64,
    thread: Ref<Thread>,
}

/// Makes an address space with its page and thread.
#[track_caller]
fn space(m: &mut Machine) -> Space {
    let root = m.make(Kind::PageTable, 0);
    let mut table = root;
    for level in 1..4 {
        let lower = m.make(Kind::PageTable, level);
        let index = ADDRESS >> (12 + 9 * (4 - level)) & 511;
        m.call(Operation::PageTableMap, &[lower, table, index]).ok();
        table = lower;
    }
    let (frame, mapping) = (m.make(Kind::Frame, 12), m.take_free());
    let flags = MapFlags::READ.bits();
    m.call(Operation::FrameMap, &[frame, table, ADDRESS >> 12 & 511, 1, 0, flags, mapping]).ok();
    let physical = m.physical(mapping);
    let (capability, time) = (m.make(Kind::Thread, 0), m.make(Kind::SchedulingContext, 0));
    m.call(Operation::SchedulingConfigure, &[time, 50, 50, 0]).ok();
    m.call(Operation::ThreadConfigure, &[capability, at(slot::CSPACE), root, 0, 0]).ok();
    m.call(Operation::ThreadBind, &[capability, time, 0, 0]).ok();
    m.call(Operation::ThreadResume, &[capability]).ok();
    check(m);
    Space { root, mapping, physical, capability, thread: m.thread_at(capability) }
}

/// Returns the physical address that a space's thread sees at [`ADDRESS`].
fn seen(m: &mut Machine, space: Space) -> Option<u64> {
    m.run(space.thread);
    let page = m.access(ADDRESS);
    check(m);
    page.map(|page| page.physical)
}

/// Makes three more spaces than there are identifiers, counting the first process's.
fn too_many(m: &mut Machine) -> Vec<Space> {
    (0..Host::ASIDS + 1).map(|_| space(m)).collect()
}

#[test]
fn each_process_sees_its_own_memory() {
    let mut m = Machine::new();
    let spaces = too_many(&mut m);
    for turn in 0..3 {
        for space in spaces.iter().chain(spaces.iter().rev()) {
            assert_eq!(seen(&mut m, *space), Some(space.physical), "turn {turn}");
        }
    }
}

#[test]
fn unmapped_memory_is_visible_to_no_thread() {
    let mut m = Machine::new();
    let spaces = too_many(&mut m);
    let [.., one, two] = spaces[..] else { panic!("there are more") };
    assert_eq!((seen(&mut m, one), seen(&mut m, two)), (Some(one.physical), Some(two.physical)));
    // While the shared identifier belongs to the other space, and while it belongs to this one.
    for (gone, stays) in [(one, two), (two, one)] {
        let first = m.first;
        m.run(first);
        m.call(Operation::Delete, &[0, gone.mapping]).ok();
        check(&mut m);
        assert_eq!(seen(&mut m, gone), None);
        if stays.root == two.root {
            assert_eq!(seen(&mut m, stays), Some(stays.physical));
        }
    }
}

#[test]
fn a_fault_in_a_shared_space_is_reported() {
    let mut m = Machine::new();
    let last = *too_many(&mut m).last().expect("some");
    m.run(last.thread);
    let mut missing = || tench_kernel::entry::space_was_missing(m.kernel());
    assert!(missing(), "the first instruction finds no space");
    assert!(!missing(), "and the second a fault of its own");
    let first = m.first;
    m.run(first);
    assert!(!tench_kernel::entry::space_was_missing(m.kernel()), "its space is not shared");
}

#[test]
fn identifiers_come_back() {
    let mut m = Machine::new();
    let before = m.kernel().state().asids_used;
    let spaces = too_many(&mut m);
    assert_eq!(m.kernel().state().asids_used, Host::ASIDS - 2);
    for space in spaces {
        assert_eq!(seen(&mut m, space), Some(space.physical));
        let first = m.first;
        m.run(first);
        m.call(Operation::Delete, &[0, space.capability]).ok();
        m.call(Operation::Delete, &[0, space.root]).ok();
        check(&mut m);
    }
    assert_eq!((m.kernel().state().asids_used, m.kernel().state().shared_space), (before, 0));
    m.make(Kind::PageTable, 0);
    assert_eq!(m.kernel().state().asids_used, before + 1);
}
