//! Filters of system calls.

mod support;

use support::Play;
use tench_linux_calls::Sysno;

const DATA: u64 = 0x20_1300;
const FORK: u64 = 17;
const THREAD: u64 = 0x50f00;
const SET_FILTER: u64 = 1;
const ALLOW: u64 = 0x7fff_0000;
const LOG: u64 = 0x7ffc_0000;
const READ_LOG: u64 = 2;

fn call(play: &mut Play, id: u32, call: Sysno, arguments: &[u64]) -> Option<i64> {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    play.call(id, call as u64, all).map(u64::cast_signed)
}

/// Gives a process a filter that says something of one call, and allows all others.
fn filter(play: &mut Play, id: u32, filtered: Sysno, result: u64) {
    let number = filtered as u64;
    let program = [0x20, number << 32 | 1 << 24 | 0x15, result << 32 | 6, ALLOW << 32 | 6];
    play.put(id, DATA, &[4, DATA + 16]);
    play.put(id, DATA + 16, &program);
    assert_eq!(call(play, id, Sysno::seccomp, &[SET_FILTER, 0, DATA]), Some(0));
}

#[test]
fn a_strict_thread_ends_alone_unless_it_is_the_last() {
    let mut play = Play::new(1024);
    let child = call(&mut play, 1, Sysno::clone, &[FORK]).unwrap() as u32;
    let thread = call(&mut play, child, Sysno::clone, &[THREAD, DATA + 0x800]).unwrap() as u32;
    assert_eq!(call(&mut play, thread, Sysno::seccomp, &[0, 0, 0]), Some(0));
    assert_eq!(call(&mut play, thread, Sysno::getuid, &[]), None);
    assert_eq!(play.running(), [1, child]);
    assert_eq!(call(&mut play, child, Sysno::seccomp, &[0, 0, 0]), Some(0));
    assert_eq!(call(&mut play, child, Sysno::getuid, &[]), None);
    assert_eq!(play.running(), [1]);
    assert_eq!(call(&mut play, 1, Sysno::wait4, &[child.into(), DATA, 0, 0]), Some(child.into()));
    let mut status = [0; 4];
    play.read(1, DATA, &mut status);
    assert_eq!(u32::from_le_bytes(status), 9);
    play.check();
    play.end();
}

#[test]
fn who_waits_for_the_log_reads_of_a_call_that_is_logged() {
    let mut play = Play::new(1024);
    let child = call(&mut play, 1, Sysno::clone, &[FORK]).unwrap() as u32;
    filter(&mut play, child, Sysno::getuid, LOG);
    assert_eq!(call(&mut play, 1, Sysno::syslog, &[READ_LOG, DATA, 256]), None);
    assert_eq!(call(&mut play, child, Sysno::getpid, &[]), Some(child.into()));
    assert_eq!(play.running(), [child]);
    assert_eq!(call(&mut play, child, Sysno::getuid, &[]), Some(0));
    let mut text = [0; 256];
    play.read(1, DATA, &mut text);
    let length = play.thread(1).registers.x[0] as usize;
    let expected = format!("seccomp: pid={child} syscall={}\n", Sysno::getuid as u64);
    assert!(String::from_utf8_lossy(&text[..length]).ends_with(&expected));
    play.end();
}

#[test]
fn filters_are_bounded_in_all() {
    const INSTRUCTIONS: u64 = 4096;
    const ENOMEM: i64 = -12;
    let mut play = Play::new(1024);
    let program =
        call(&mut play, 1, Sysno::mmap, &[0, 8 * INSTRUCTIONS, 3, 0x22, u64::MAX, 0]).unwrap().cast_unsigned();
    play.put(1, program + 8 * (INSTRUCTIONS - 1), &[ALLOW << 32 | 6]);
    play.put(1, DATA, &[INSTRUCTIONS, program]);
    // As with Linux, each counts as four instructions more.
    for _ in 0..7 {
        assert_eq!(call(&mut play, 1, Sysno::seccomp, &[SET_FILTER, 0, DATA]), Some(0));
    }
    assert_eq!(call(&mut play, 1, Sysno::seccomp, &[SET_FILTER, 0, DATA]), Some(ENOMEM));
    assert_eq!(call(&mut play, 1, Sysno::getpid, &[]), Some(1));
    play.check();
    play.end();
}
