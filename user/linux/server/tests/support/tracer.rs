//! The first process as a tracer: requests, and what it learns of stops.

use tench_linux_calls::Sysno;

use super::{Doing, Play};

/// Address in the program's data.
pub const DATA: u64 = 0x20_1300;
/// Address in the data at which `wait4` says what has happened.
pub const STATUS: u64 = 0x20_1400;
/// Address of the program's signal handler.
pub const HANDLER: u64 = 0x20_0100;
pub const FORK: u64 = 17;
pub const VFORK: u64 = 0x4111;
pub const THREAD: u64 = 0x5_0f00;
pub const ALL: u64 = 0x4000_0000;
pub const NOHANG: u64 = 1;

pub const TRACEME: u64 = 0;
pub const PEEK: u64 = 1;
pub const POKE: u64 = 4;
pub const CONT: u64 = 7;
pub const SINGLESTEP: u64 = 9;
pub const ATTACH: u64 = 16;
pub const DETACH: u64 = 17;
pub const SYSCALL: u64 = 24;
pub const SETOPTIONS: u64 = 0x4200;
pub const GETSIGINFO: u64 = 0x4202;
pub const GETEVENTMSG: u64 = 0x4201;
pub const GETREGSET: u64 = 0x4204;
pub const SETREGSET: u64 = 0x4205;
pub const SEIZE: u64 = 0x4206;
pub const INTERRUPT: u64 = 0x4207;
pub const LISTEN: u64 = 0x4208;
pub const GET_SYSCALL_INFO: u64 = 0x420e;

pub const MARK_CALLS: u64 = 1;
pub const TRACE_FORK: u64 = 2;
pub const TRACE_VFORK: u64 = 4;
pub const TRACE_CLONE: u64 = 8;
pub const TRACE_EXEC: u64 = 16;
pub const TRACE_VFORK_DONE: u64 = 32;
pub const TRACE_EXIT: u64 = 64;
pub const KILL_AT_END: u64 = 1 << 20;

pub const TRAP: u64 = 5;
pub const KILL: u64 = 9;
pub const USR1: u64 = 10;
pub const CHLD: u64 = 17;
pub const SIGCONT: u64 = 18;
pub const STOP: u64 = 19;
pub const EVENT_STOP: u64 = 128;

pub const EPERM: i64 = -1;
pub const ESRCH: i64 = -3;
pub const EINTR: i64 = -4;
pub const EIO: i64 = -5;
pub const EAGAIN: i64 = -11;
pub const ECHILD: i64 = -10;
pub const EINVAL: i64 = -22;
pub const ENOSPC: i64 = -28;
pub const AGAIN: i64 = -512;

pub fn call(play: &mut Play, id: u32, call: Sysno, arguments: &[u64]) -> Option<i64> {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    let result = play.call(id, call as u64, all).map(u64::cast_signed);
    play.check();
    result
}

pub fn trace(play: &mut Play, request: u64, id: u32, address: u64, data: u64) -> i64 {
    call(play, 1, Sysno::ptrace, &[request, id.into(), address, data]).unwrap()
}

/// Waits for a thread without waiting. Returns its number, and the word that says what has happened.
pub fn news(play: &mut Play, id: i64, options: u64) -> (i64, u64) {
    play.put(1, STATUS, &[0]);
    let found = call(play, 1, Sysno::wait4, &[id.cast_unsigned(), STATUS, options | ALL, 0]).unwrap();
    let mut word = [0; 4];
    play.read(1, STATUS, &mut word);
    (found, u32::from_le_bytes(word).into())
}

/// Checks that a thread has stopped with a signal, and with an event above it.
pub fn stopped(play: &mut Play, id: u32, signal: u64, event: u64) {
    assert_eq!(news(play, id.into(), NOHANG), (id.into(), event << 16 | signal << 8 | 0x7f));
    assert_eq!(news(play, id.into(), NOHANG), (0, 0), "it learns once");
    assert_ne!(play.doing(id), Some(Doing::Runs));
}

pub fn word(play: &mut Play, address: u64) -> u64 {
    let mut word = [0; 8];
    assert_eq!(play.read(1, address, &mut word), 8);
    u64::from_le_bytes(word)
}

/// Returns the general registers of a stopped thread.
pub fn registers(play: &mut Play, id: u32) -> [u64; 34] {
    play.put(1, DATA, &[DATA + 16, 34 * 8]);
    assert_eq!(trace(play, GETREGSET, id, 1, DATA), 0);
    assert_eq!(word(play, DATA + 8), 34 * 8);
    std::array::from_fn(|index| word(play, DATA + 16 + 8 * index as u64))
}

pub fn set_registers(play: &mut Play, id: u32, registers: &[u64; 34]) {
    play.put(1, DATA, &[DATA + 16, 34 * 8]);
    play.put(1, DATA + 16, registers);
    assert_eq!(trace(play, SETREGSET, id, 1, DATA), 0);
}

/// Sets the number of the call before which a thread has stopped.
pub fn set_call(play: &mut Play, id: u32, number: u32) {
    play.put(1, DATA, &[DATA + 16, 4, number.into()]);
    assert_eq!(trace(play, SETREGSET, id, 0x404, DATA), 0);
}

pub fn child(play: &mut Play) -> u32 {
    call(play, 1, Sysno::clone, &[FORK]).unwrap() as u32
}

/// Returns a child that lets itself be traced, and has stopped.
pub fn traced(play: &mut Play) -> u32 {
    let child = child(play);
    assert_eq!(call(play, child, Sysno::ptrace, &[TRACEME]), Some(0));
    assert_eq!(call(play, child, Sysno::ptrace, &[TRACEME]), Some(EPERM));
    assert_eq!(call(play, child, Sysno::kill, &[child.into(), STOP]), None);
    stopped(play, child, STOP, 0);
    child
}

/// Returns a child that is seized with options.
pub fn seized(play: &mut Play, options: u64) -> u32 {
    let child = child(play);
    assert_eq!(trace(play, SEIZE, child, 0, options), 0);
    child
}
