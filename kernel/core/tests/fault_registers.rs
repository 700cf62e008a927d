//! Registers of threads that wait for their fault handler's reply.

use tench_abi::fault::{Class, Registers, Report, reply};
use tench_abi::{Error, Kind, Operation, Tag};
use tench_arch_host::Machine;
use tench_kernel::float;
use tench_kernel::object::Ref;
use tench_kernel::thread::{Thread, ThreadState, blocker};

/// A thread that has made a foreign call, which its handler, the running thread, has received.
struct Stage {
    m: Machine,
    program: Ref<Thread>,
    /// The manager's capabilities to the program and the handler.
    thread: u64,
    handler: u64,
}

impl Stage {
    fn new() -> Stage {
        let mut m = Machine::new();
        let thread = m.free;
        let program = m.make_thread(255);
        let handler = m.free;
        let server = m.make_thread(255);
        let endpoint = m.make(Kind::Endpoint, 0);
        m.call(Operation::ThreadFaults, &[thread, Class::ForeignCall as u64, endpoint, 0, 0]).ok();
        m.run(server);
        m.call(Operation::Receive, &[endpoint, 0]);
        m.run(program);
        float::trap(m.kernel());
        m.host().float().expect("on").registers[31] = [7, 8];
        m.thread(program).registers.x[30] = 30;
        let report = Report { class: Class::ForeignCall as u64, address: 0, instruction: 400, syndrome: 0 };
        m.fault(report);
        assert_eq!(m.current(), server);
        Stage { m, program, thread, handler }
    }
}

#[test]
fn a_handler_reads_and_writes_registers_and_replies_with_others() {
    let Stage { mut m, program, thread, .. } = Stage::new();
    let server = m.current();
    m.call(Operation::ThreadReadRegisters, &[thread, 0]).ok();
    assert_eq!(m.buffer(server).registers.x[30], 30);
    m.buffer(server).registers = Registers { x: [9; 31], ..Registers::ZERO };
    m.call(Operation::ThreadWriteRegisters, &[thread, 1]).ok();
    assert!(matches!(m.thread(program).state, ThreadState::AwaitingReply(_)), "it goes on waiting");
    assert_eq!(m.thread(program).registers.x, [9; 31]);
    m.buffer(server).registers = Registers { x: [5; 31], flags: !0, ..Registers::ZERO };
    m.call(Operation::Reply, &[0, Tag::new(reply::REGISTERS, 0).0]).ok();
    m.check();
    let t = m.thread(program);
    assert_eq!((t.state, t.registers.x, t.registers.flags), (ThreadState::Ready, [5; 31], 0xf000_0000));
    assert_eq!(t.blockers & blocker::FAULT, 0);
    assert_eq!(m.call(Operation::ThreadReadRegisters, &[thread, 0]).err(), Error::WrongState);
}

#[test]
fn floating_point_registers_are_read_from_the_unit_and_written_past_it() {
    let Stage { mut m, program, thread, .. } = Stage::new();
    let server = m.current();
    m.call(Operation::ThreadReadFloat, &[thread]).ok();
    assert_eq!(m.buffer(server).words[62..], [7, 8]);
    m.check();
    m.buffer(server).words = [6; 64];
    m.call(Operation::ThreadWriteFloat, &[thread, 1, 2]).ok();
    m.check();
    m.call(Operation::Reply, &[0, Tag::new(reply::RESUME, 0).0]).ok();
    m.run(program);
    float::trap(m.kernel());
    let unit = m.host().float().expect("on");
    assert_eq!((unit.registers, unit.status, unit.control), ([[6; 2]; 32], 1, 2));
    m.check();
    let running = m.call(Operation::ThreadReadFloat, &[thread]).err();
    assert_eq!(running, Error::WrongState);
}

#[test]
fn a_reply_with_registers_needs_an_ipc_buffer() {
    for operation in [Operation::Reply, Operation::ReplyReceive] {
        let Stage { mut m, program, thread, handler } = Stage::new();
        let server = m.current();
        // The frame of its IPC buffer was made after thread, context and reply object.
        m.call(Operation::Revoke, &[0, handler + 3]).ok();
        let endpoint = m.free - 1;
        let at = if operation == Operation::Reply { 0 } else { endpoint };
        assert_eq!(m.call(operation, &[at, Tag::new(reply::REGISTERS, 0).0]).err(), Error::NoIpcBuffer);
        assert!(matches!(m.thread(program).state, ThreadState::AwaitingReply(_)), "nothing is lost");
        assert_eq!(m.call(Operation::ThreadReadFloat, &[thread]).err(), Error::NoIpcBuffer);
        assert_eq!(m.call(Operation::ThreadWriteFloat, &[thread]).err(), Error::NoIpcBuffer);
        assert_eq!(m.current(), server);
        m.check();
    }
}
