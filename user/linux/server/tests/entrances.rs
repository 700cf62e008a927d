//! Calls that programs send as messages, directly or from upcalls.

mod support;

use support::{Doing, Play, RESULT_TAG};
use tench_linux::thread::Entrance;
use tench_linux_calls::Sysno;

/// Address in the program's data.
const DATA: u64 = 0x20_1300;
/// Address of the program's signal handler.
const HANDLER: u64 = 0x20_0100;
const RESTART: u64 = 0x1000_0000;
const SET_ENTRANCE: u64 = 0x5465_6e63;
const FORK: u64 = 17;
const USR1: u64 = 10;
const CONT: u64 = 18;
const STOP: u64 = 19;
const EINTR: i64 = -4;
const EINVAL: i64 = -22;
const ENOSYS: i64 = -38;
const AGAIN: i64 = -512;

fn all(arguments: &[u64]) -> [u64; 6] {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    all
}

fn call(play: &mut Play, id: u32, call: Sysno, arguments: &[u64]) -> Option<i64> {
    play.call(id, call as u64, all(arguments)).map(u64::cast_signed)
}

fn send(play: &mut Play, id: u32, call: Sysno, arguments: &[u64]) -> Option<i64> {
    play.send(id, call as u64, all(arguments)).map(u64::cast_signed)
}

/// Makes a child that sends a call to read from an empty pipe. Returns the child and the pipe's ends.
fn waiting_child(play: &mut Play, flags: u64) -> (u32, u64, u64) {
    assert_eq!(call(play, 1, Sysno::pipe2, &[DATA, 0]), Some(0));
    let mut ends = [0; 8];
    play.read(1, DATA, &mut ends);
    let [read, write] = [0, 4].map(|at| u64::from(ends[at]));
    play.put(1, DATA, &[HANDLER, flags, 0, 0]);
    assert_eq!(call(play, 1, Sysno::rt_sigaction, &[USR1, DATA, 0, 8]), Some(0));
    let child = call(play, 1, Sysno::clone, &[FORK]).unwrap() as u32;
    assert_eq!(call(play, child, Sysno::prctl, &[SET_ENTRANCE, 1]), Some(1));
    assert_eq!(send(play, child, Sysno::read, &[read, DATA, 1]), None);
    (child, read, write)
}

#[test]
fn a_thread_sends_what_needs_no_registers() {
    let mut play = Play::new(4096);
    assert_eq!(call(&mut play, 1, Sysno::prctl, &[SET_ENTRANCE, 3]), Some(EINVAL));
    assert_eq!(play.thread(1).entrance, Entrance::Exceptions);
    assert_eq!(call(&mut play, 1, Sysno::prctl, &[SET_ENTRANCE, 1]), Some(1));
    assert_eq!(play.thread(1).entrance, Entrance::Messages);
    assert_eq!(send(&mut play, 1, Sysno::getpid, &[]), Some(1));
    assert_eq!(play.thread(1).registers.x[..2], [0, RESULT_TAG]);
    for refused in [Sysno::clone, Sysno::execve, Sysno::execveat, Sysno::rt_sigreturn, Sysno::sigaltstack, Sysno::prctl]
    {
        assert_eq!(send(&mut play, 1, refused, &[FORK]), Some(ENOSYS), "{refused:?}");
    }
    assert_eq!(play.send(1, u64::MAX, [0; 6]).map(u64::cast_signed), Some(ENOSYS));
    // A child makes its calls by exceptions at first.
    let child = call(&mut play, 1, Sysno::clone, &[FORK]).unwrap() as u32;
    assert_eq!(play.thread(child).entrance, Entrance::Exceptions);
    assert_eq!(send(&mut play, 1, Sysno::exit_group, &[3]), None);
    play.end();
}

#[test]
fn a_handler_interrupts_a_call_that_was_sent() {
    for (flags, result) in [(0, EINTR), (RESTART, AGAIN)] {
        let mut play = Play::new(4096);
        let (child, read, write) = waiting_child(&mut play, flags);
        let stack = play.thread(child).registers.sp;
        assert_eq!(call(&mut play, 1, Sysno::kill, &[child.into(), USR1]), Some(0));
        let thread = play.thread(child);
        assert_eq!((thread.doing, thread.registers.pc), (Doing::Runs, HANDLER));
        assert!(thread.registers.sp < stack);
        // The handler returns to where the message was sent, and the program finds the reply.
        assert_eq!(call(&mut play, child, Sysno::getppid, &[]), Some(1));
        call(&mut play, child, Sysno::rt_sigreturn, &[]);
        let registers = play.thread(child).registers;
        assert_eq!(registers.x[..3], [0, RESULT_TAG, result.cast_unsigned()]);
        assert_eq!(registers.sp, stack);
        assert_eq!(send(&mut play, child, Sysno::read, &[read, DATA, 1]), None);
        assert_eq!(call(&mut play, 1, Sysno::write, &[write, DATA, 1]), Some(1));
        assert_eq!(play.thread(child).registers.x[2], 1);
        play.check();
        play.end();
    }
}

#[test]
fn a_call_that_was_sent_keeps_its_result_if_a_signal_comes_with_the_reply() {
    let mut play = Play::new(4096);
    let (child, ..) = waiting_child(&mut play, 0);
    play.give_up(child);
    // The handler changes the registers, and its return restores them.
    assert!(send(&mut play, child, Sysno::kill, &[child.into(), USR1]).is_some());
    assert_eq!(play.thread(child).registers.pc, HANDLER);
    call(&mut play, child, Sysno::rt_sigreturn, &[]);
    assert_eq!(play.thread(child).registers.x[..3], [0, RESULT_TAG, 0]);
    play.end();
}

#[test]
fn a_thread_need_not_wait_for_the_reply() {
    let mut play = Play::new(4096);
    let (child, read, write) = waiting_child(&mut play, 0);
    play.give_up(child);
    assert_eq!(call(&mut play, child, Sysno::getppid, &[]), Some(1));
    // No call waits for this byte any more.
    assert_eq!(call(&mut play, 1, Sysno::write, &[write, DATA, 1]), Some(1));
    assert_eq!(send(&mut play, child, Sysno::read, &[read, DATA, 1]), Some(1));
    assert_eq!(send(&mut play, child, Sysno::read, &[read, DATA, 1]), None);
    play.give_up(child);
    assert_eq!(send(&mut play, child, Sysno::getppid, &[]), Some(1));
    assert_eq!(send(&mut play, child, Sysno::read, &[read, DATA, 1]), None);
    play.give_up(child);
    play.fault(child, DATA, tench_linux_memory::Access::Write);
    assert_eq!(play.doing(child), Some(Doing::Runs));
    play.check();
    play.end();
}

#[test]
fn a_stopped_process_does_not_go_on_by_giving_up() {
    let mut play = Play::new(4096);
    let (child, read, write) = waiting_child(&mut play, 0);
    assert_eq!(call(&mut play, 1, Sysno::kill, &[child.into(), STOP]), Some(0));
    assert_eq!(play.doing(child), Some(Doing::Stopped));
    assert_eq!(call(&mut play, 1, Sysno::write, &[write, DATA, 1]), Some(1));
    assert_eq!(play.doing(child), Some(Doing::Stopped));
    assert_eq!(call(&mut play, 1, Sysno::kill, &[child.into(), CONT]), Some(0));
    assert_eq!(play.doing(child), Some(Doing::Runs));
    assert_eq!(play.thread(child).registers.x[..3], [0, RESULT_TAG, AGAIN.cast_unsigned()]);
    assert_eq!(send(&mut play, child, Sysno::read, &[read, DATA, 1]), Some(1));
    // One that has given up before is stopped, too.
    assert_eq!(send(&mut play, child, Sysno::read, &[read, DATA, 1]), None);
    play.give_up(child);
    assert_eq!(call(&mut play, 1, Sysno::kill, &[child.into(), STOP]), Some(0));
    assert_eq!(play.doing(child), Some(Doing::Stopped));
    assert_eq!(call(&mut play, 1, Sysno::kill, &[child.into(), CONT]), Some(0));
    assert_eq!(play.doing(child), Some(Doing::Runs));
    play.check();
    play.end();
}

#[test]
fn a_page_for_upcalls_stays_as_long_as_its_thread() {
    let mut play = Play::new(4096);
    let child = call(&mut play, 1, Sysno::clone, &[FORK]).unwrap() as u32;
    let free = play.instance.system.memory.pool.free();
    let address = call(&mut play, child, Sysno::prctl, &[SET_ENTRANCE, 2, HANDLER]).unwrap().cast_unsigned();
    let other = call(&mut play, child, Sysno::clone, &[FORK]).unwrap() as u32;
    play.put(child, address, &[7]);
    let mut bytes = [0; 8];
    play.read(other, address, &mut bytes);
    assert_eq!(bytes, [0; 8], "a child has a copy of its parent's page");
    play.put(other, address, &[8]);
    play.read(child, address, &mut bytes);
    assert_eq!(bytes, 7u64.to_le_bytes());
    call(&mut play, other, Sysno::exit_group, &[]);
    let Entrance::Upcalls { entry: HANDLER, buffer } = play.thread(child).entrance else { panic!("no upcalls") };
    play.put(child, address, &[7]);
    assert_eq!(call(&mut play, child, Sysno::munmap, &[address, 4096]), Some(0));
    assert_eq!(play.instance.system.memory.pool.users(buffer), 1, "the thread's");
    assert_eq!(call(&mut play, child, Sysno::prctl, &[SET_ENTRANCE, 2, 0]).map(|address| address > 0), Some(true));
    assert_eq!(play.instance.system.memory.pool.users(buffer), 0);
    assert_eq!(call(&mut play, child, Sysno::prctl, &[SET_ENTRANCE, 0]), Some(0));
    assert_eq!(play.thread(child).entrance, Entrance::Exceptions);
    assert!(call(&mut play, child, Sysno::prctl, &[SET_ENTRANCE, 2, HANDLER]).unwrap() > 0);
    play.check();
    call(&mut play, child, Sysno::exit_group, &[]);
    assert!(play.instance.system.memory.pool.free() >= free);
    play.end();
}
