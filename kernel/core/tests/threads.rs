//! What a thread's buffer and registers may contain, and when its upcall runs.

use tench_abi::fault::{Class, Report};
use tench_abi::layout::slot;
use tench_abi::memory::PAGE_SIZE;
use tench_abi::{Error, Kind, Operation};
use tench_arch_host::Machine;
use tench_arch_host::machine::{RAM, at};
use tench_kernel::object::Ref;
use tench_kernel::thread::{Thread, ThreadState};

/// The bits of a processor's flags that hold the condition.
const CONDITION: u64 = 0xf000_0000;
/// Address of the code that handles faults.
const ENTRY: u64 = 0x20_0000;

/// Returns a machine with a second thread, stopped, which has a buffer, and the address of that thread.
fn begin() -> (Machine, Ref<Thread>, u64) {
    let mut m = Machine::new();
    let address = m.free;
    let thread = m.make_thread(255);
    m.call(Operation::ThreadSuspend, &[address]).ok();
    assert_eq!(m.thread_at(address), thread);
    (m, thread, address)
}

fn fault() -> Report {
    Report { class: Class::PageFault as u64, address: 0x1000, instruction: 4, syndrome: 0x9200_0046 }
}

#[test]
fn registers_that_a_program_writes_have_no_privilege() {
    let (mut m, thread, address) = begin();
    let first = m.first;
    m.buffer(first).registers.flags = u64::MAX;
    m.call(Operation::ThreadWriteRegisters, &[address, 0]).ok();
    assert_eq!(m.thread(thread).registers.flags, CONDITION);
    m.buffer(first).registers.flags = u64::MAX;
    m.call(Operation::UpcallReturn, &[]);
    assert_eq!(m.thread(first).registers.flags, CONDITION);
    m.check();
}

#[test]
fn an_upcall_is_not_interrupted_by_an_upcall() {
    let (mut m, thread, address) = begin();
    m.call(Operation::ThreadFaults, &[address, Class::PageFault as u64, 0, ENTRY, 0]).ok();
    m.call(Operation::ThreadResume, &[address]).ok();
    m.run(thread);
    m.fault(fault());
    assert_eq!(m.thread(thread).registers.pc, ENTRY);
    assert!(m.current() == thread && m.buffer(thread).upcall_running == 1);
    m.fault(fault());
    assert_eq!(m.thread(thread).state, ThreadState::Faulted, "nobody else handles it");
    m.check();
}

#[test]
fn a_buffer_lies_in_its_frame() {
    let (mut m, _, address) = begin();
    let frame = m.take_free();
    m.retype(RAM, Kind::Frame, 12, 1, frame).ok();
    let mut configure = |offset: u64| {
        let result = m.call(Operation::ThreadConfigure, &[address, at(slot::CSPACE), at(slot::VSPACE), frame, offset]);
        m.check();
        result.error()
    };
    let size = PAGE_SIZE as u64;
    assert_eq!(configure(size / 2), None);
    assert_eq!(configure(size / 2 + 8), Some(Error::Misaligned));
    assert_eq!(configure(size), Some(Error::InvalidArgument));
    assert_eq!(configure(2 * size), Some(Error::InvalidArgument));
}
