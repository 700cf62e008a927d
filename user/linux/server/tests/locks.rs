//! Locks of files: single sequences of calls that went wrong, or easily could.

mod support;

use support::{Doing, Play};
use tench_linux::signals::Info;
use tench_linux_calls::Sysno;

/// Addresses in the program's data.
const PATH: u64 = 0x20_1300;
const RECORD: u64 = 0x20_1400;
/// Code of the program, which handles signals.
const HANDLER: u64 = 0x20_0100;
const RESTART: u64 = 0x1000_0000;
const THREAD: u64 = 0x5_0f00;
const FORK: u64 = 17;
const USR1: u64 = 10;

const GET: u64 = 5;
const SET: u64 = 6;
const WAIT: u64 = 7;
const OPEN_FILE_SET: u64 = 37;
const OPEN_FILE_WAIT: u64 = 38;
const READ: u64 = 0;
const WRITE: u64 = 1;
const UNLOCK: u64 = 2;
/// Operations of `flock`: exclusive, at once, unlock.
const EXCLUSIVE: u64 = 2;
const AT_ONCE: u64 = 4;
const REMOVE: u64 = 8;

const AGAIN: Option<i64> = Some(-11);
const INTERRUPTED: Option<i64> = Some(-4);
const DEADLOCK: Option<i64> = Some(-35);
const FULL: Option<i64> = Some(-37);
const DONE: Option<i64> = Some(0);

/// A way to close the first process's descriptor.
type Close = &'static dyn Fn(&mut Play, u64);

fn call(play: &mut Play, id: u32, call: Sysno, arguments: &[u64]) -> Option<i64> {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    play.call(id, call as u64, all).map(u64::cast_signed)
}

fn open(play: &mut Play, id: u32) -> u64 {
    play.write(id, PATH, b"/tmp/file\0");
    let file = call(play, id, Sysno::openat, &[0, PATH, 0o2 | 0o100, 0o600]).unwrap();
    file.cast_unsigned()
}

/// Makes a call about a lock of some bytes.
fn lock(play: &mut Play, id: u32, file: u64, command: u64, kind: u64, bytes: std::ops::Range<u64>) -> Option<i64> {
    play.put(id, RECORD, &[kind, bytes.start, bytes.end - bytes.start, 0]);
    call(play, id, Sysno::fcntl, &[file, command, RECORD])
}

fn fork(play: &mut Play, id: u32) -> u32 {
    u32::try_from(call(play, id, Sysno::clone, &[FORK]).unwrap()).unwrap()
}

/// Makes a thread. Returns its number.
fn thread(play: &mut Play, id: u32) -> u32 {
    u32::try_from(call(play, id, Sysno::clone, &[THREAD, 0x20_5000]).unwrap()).unwrap()
}

fn handle(play: &mut Play, flags: u64) {
    play.put(1, RECORD, &[HANDLER, flags, 0, 0]);
    assert_eq!(call(play, 1, Sysno::rt_sigaction, &[USR1, RECORD, 0, 8]), DONE);
}

fn send(play: &mut Play, id: u32, signal: u32) {
    let process = play.instance.processes.get(id).unwrap();
    play.instance.system.send(process, Info::from_process(signal, 1, 0));
    play.instance.pass_time();
}

/// Returns an instance in which the first process has a lock for which a child waits.
fn with_a_waiter() -> (Play, u64, u32) {
    let mut play = Play::new(4096);
    let file = open(&mut play, 1);
    assert_eq!(lock(&mut play, 1, file, SET, WRITE, 0..10), DONE);
    let child = fork(&mut play, 1);
    assert_eq!(lock(&mut play, child, file, WAIT, WRITE, 5..6), None);
    assert_eq!(play.doing(child), Some(Doing::Waits));
    play.check();
    (play, file, child)
}

/// Returns the result of a call that has waited.
fn result(play: &mut Play, id: u32) -> i64 {
    assert_eq!(play.doing(id), Some(Doing::Runs));
    play.thread(id).registers.x[0].cast_signed()
}

#[test]
fn who_waits_for_a_lock_gets_it_when_its_bytes_are_free() {
    let (mut play, file, child) = with_a_waiter();
    assert_eq!(lock(&mut play, 1, file, SET, UNLOCK, 0..5), DONE);
    assert_eq!(play.doing(child), Some(Doing::Waits), "others are not enough");
    assert_eq!(lock(&mut play, 1, file, SET, READ, 0..10), DONE);
    assert_eq!(play.doing(child), Some(Doing::Waits), "nor is a shared lock");
    assert_eq!(lock(&mut play, 1, file, SET, UNLOCK, 5..6), DONE);
    assert_eq!(result(&mut play, child), 0);
    play.check();
    assert_eq!(lock(&mut play, 1, file, SET, READ, 5..6), AGAIN);
    play.end();
}

#[test]
fn every_way_in_which_a_lock_goes_wakes_who_waits_for_it() {
    let closes: [Close; 4] = [
        &|play, file| assert_eq!(call(play, 1, Sysno::close, &[file]), DONE),
        &|play, file| {
            let copy = call(play, 1, Sysno::dup, &[file]).unwrap().cast_unsigned();
            assert_eq!(call(play, 1, Sysno::close, &[copy]), DONE);
        },
        &|play, file| assert_eq!(call(play, 1, Sysno::dup3, &[1, file, 0]), Some(file.cast_signed())),
        &|play, file| assert_eq!(call(play, 1, Sysno::close_range, &[file, file, 0]), DONE),
    ];
    for close in closes {
        let (mut play, file, child) = with_a_waiter();
        close(&mut play, file);
        assert_eq!(result(&mut play, child), 0);
        play.end();
    }
    // The end of a process, and another program in it.
    let mut play = Play::new(4096);
    let file = open(&mut play, 1);
    for ends in [true, false] {
        let child = fork(&mut play, 1);
        assert_eq!(lock(&mut play, child, file, SET, WRITE, 0..10), DONE);
        call(&mut play, child, Sysno::fcntl, &[file, 2, 1]);
        assert_eq!(lock(&mut play, 1, file, WAIT, WRITE, 5..6), None);
        if ends {
            send(&mut play, child, 9);
        } else {
            play.write(child, PATH, b"/bin/program\0");
            call(&mut play, child, Sysno::execve, &[PATH, 0, 0]);
        }
        assert_eq!(result(&mut play, 1), 0);
        assert_eq!(lock(&mut play, 1, file, SET, UNLOCK, 0..10), DONE);
    }
    play.end();
}

#[test]
fn a_waiter_that_ends_leaves_nothing() {
    let (mut play, file, child) = with_a_waiter();
    send(&mut play, child, 9);
    assert_eq!(play.instance.system.locks.threads().count(), 0);
    play.check();
    assert_eq!(lock(&mut play, 1, file, SET, UNLOCK, 0..10), DONE);
    assert!(play.instance.system.locks.is_empty());
    play.end();
}

#[test]
fn a_signal_ends_the_wait_for_a_lock_or_lets_the_call_be_made_again() {
    for (flags, is_again) in [(0, false), (RESTART, true)] {
        let mut play = Play::new(4096);
        handle(&mut play, flags);
        let file = open(&mut play, 1);
        assert_eq!(lock(&mut play, 1, file, SET, WRITE, 0..10), DONE);
        let child = fork(&mut play, 1);
        let before = play.thread(child).registers.pc;
        assert_eq!(lock(&mut play, child, file, WAIT, WRITE, 5..6), None);
        send(&mut play, child, 10);
        let registers = play.thread(child).registers;
        assert_eq!(registers.pc, HANDLER);
        assert_eq!(play.instance.system.locks.threads().count(), 0);
        let mut kept = [[0; 8]; 2];
        play.read(child, registers.sp + 128 + 176 + 8, &mut kept[0]);
        play.read(child, registers.sp + 128 + 176 + 8 + 32 * 8, &mut kept[1]);
        let [x0, pc] = kept.map(i64::from_le_bytes);
        let expected = if is_again { before } else { before + 4 };
        assert_eq!(pc, expected.cast_signed(), "where it goes on");
        assert!(is_again || Some(x0) == INTERRUPTED);
        play.check();
        play.end();
    }
}

#[test]
fn a_circle_of_processes_that_wait_is_refused() {
    let mut play = Play::new(4096);
    let file = open(&mut play, 1);
    let (second, third) = (fork(&mut play, 1), fork(&mut play, 1));
    for (id, byte) in [(1, 0), (second, 1), (third, 2)] {
        assert_eq!(lock(&mut play, id, file, SET, WRITE, byte..byte + 1), DONE);
    }
    assert_eq!(lock(&mut play, second, file, WAIT, READ, 0..1), None);
    assert_eq!(lock(&mut play, third, file, WAIT, READ, 1..2), None);
    assert_eq!(lock(&mut play, 1, file, SET, READ, 2..3), AGAIN);
    assert_eq!(lock(&mut play, 1, file, WAIT, READ, 2..3), DEADLOCK);
    // Nobody knows whom an open file's lock is for.
    let child = fork(&mut play, 1);
    assert_eq!(lock(&mut play, child, file, OPEN_FILE_WAIT, WRITE, 0..1), None);
    assert_eq!(lock(&mut play, 1, file, SET, UNLOCK, 0..1), DONE);
    assert_eq!(result(&mut play, second), 0);
    assert_eq!(play.doing(child), Some(Doing::Waits));
    play.end();
}

#[test]
fn the_threads_of_a_process_are_one_owner() {
    let (mut play, file, child) = with_a_waiter();
    let thread = thread(&mut play, 1);
    assert_eq!(lock(&mut play, thread, file, SET, UNLOCK, 0..9), DONE);
    assert_eq!(result(&mut play, child), 0);
    assert_eq!(lock(&mut play, thread, file, WAIT, WRITE, 5..6), None);
    let program = open(&mut play, 1);
    play.write(1, PATH, b"/bin/program\0");
    // The other thread ends with its wait; the process has the lock still, if it keeps its descriptors.
    call(&mut play, 1, Sysno::execve, &[PATH, 0, 0]);
    assert_eq!(play.instance.system.locks.threads().count(), 0);
    assert_eq!(lock(&mut play, child, file, GET, WRITE, 9..10), DONE);
    let mut record = [0; 32];
    play.read(child, RECORD, &mut record);
    assert_eq!((record[0], record[8], record[24]), (1, 9, 1), "an exclusive lock of byte 9 that process 1 has");
    assert_eq!(call(&mut play, 1, Sysno::close, &[program]), DONE);
    assert!(
        play.instance.system.locks.records().all(|(_, record)| record.range.first == 5),
        "only the child's is left"
    );
    play.check();
    play.end();
}

#[test]
fn a_waiter_that_is_stopped_gets_the_lock_when_it_goes_on() {
    let (mut play, file, child) = with_a_waiter();
    send(&mut play, child, 19);
    assert_eq!(lock(&mut play, 1, file, SET, UNLOCK, 0..10), DONE);
    assert_eq!(play.doing(child), Some(Doing::Waits));
    play.check();
    send(&mut play, child, 18);
    assert_eq!(result(&mut play, child), 0);
    assert_eq!(lock(&mut play, 1, file, SET, READ, 5..6), AGAIN);
    play.end();
}

#[test]
fn who_has_waited_longest_gets_the_lock() {
    let mut play = Play::new(4096);
    let file = open(&mut play, 1);
    let (second, third) = (fork(&mut play, 1), fork(&mut play, 1));
    lock(&mut play, 1, file, SET, WRITE, 0..10);
    for id in [third, second] {
        assert_eq!(lock(&mut play, id, file, WAIT, WRITE, 5..6), None);
    }
    // One that tries in vain keeps its turn.
    lock(&mut play, 1, file, SET, READ, 0..10);
    lock(&mut play, 1, file, SET, UNLOCK, 0..10);
    assert_eq!(result(&mut play, third), 0);
    assert_eq!(play.doing(second), Some(Doing::Waits));
    play.end();
}

#[test]
fn a_lock_of_the_whole_file_goes_with_the_last_descriptor_of_an_open_file() {
    let mut play = Play::new(4096);
    let file = open(&mut play, 1);
    assert_eq!(call(&mut play, 1, Sysno::flock, &[file, EXCLUSIVE]), DONE);
    assert_eq!(lock(&mut play, 1, file, OPEN_FILE_SET, WRITE, 0..10), DONE);
    let (child, waiter, ranger) = (fork(&mut play, 1), fork(&mut play, 1), fork(&mut play, 1));
    for id in [waiter, ranger] {
        let own = open(&mut play, id);
        assert_eq!(call(&mut play, id, Sysno::close, &[file]), DONE);
        assert_eq!(call(&mut play, id, Sysno::flock, &[own, EXCLUSIVE | AT_ONCE]), AGAIN);
        let result = if id == waiter {
            call(&mut play, id, Sysno::flock, &[own, EXCLUSIVE])
        } else {
            lock(&mut play, id, own, OPEN_FILE_WAIT, READ, 0..1)
        };
        assert_eq!(result, None);
    }
    assert_eq!(call(&mut play, 1, Sysno::close, &[file]), DONE);
    assert_eq!((play.doing(waiter), play.doing(ranger)), (Some(Doing::Waits), Some(Doing::Waits)));
    play.check();
    send(&mut play, child, 9);
    assert_eq!((result(&mut play, waiter), result(&mut play, ranger)), (0, 0));
    play.check();
    play.end();
}

#[test]
fn a_conversion_of_a_lock_of_the_whole_file_lets_others_have_it() {
    let mut play = Play::new(4096);
    let file = open(&mut play, 1);
    assert_eq!(call(&mut play, 1, Sysno::flock, &[file, 1]), DONE);
    let child = fork(&mut play, 1);
    let own = open(&mut play, child);
    assert_eq!(call(&mut play, child, Sysno::flock, &[own, 1]), DONE);
    assert_eq!(call(&mut play, child, Sysno::flock, &[own, EXCLUSIVE]), None, "it has lost the shared one meanwhile");
    assert_eq!(call(&mut play, 1, Sysno::flock, &[file, EXCLUSIVE | AT_ONCE]), DONE);
    assert_eq!(call(&mut play, 1, Sysno::flock, &[file, REMOVE]), DONE);
    assert_eq!(result(&mut play, child), 0);
    play.end();
}

#[test]
fn a_descriptor_that_is_closed_while_its_lock_is_waited_for_gets_none() {
    let mut play = Play::new(4096);
    let file = open(&mut play, 1);
    assert_eq!(lock(&mut play, 1, file, SET, WRITE, 0..10), DONE);
    let child = fork(&mut play, 1);
    let thread = thread(&mut play, child);
    assert_eq!(lock(&mut play, child, file, WAIT, WRITE, 5..6), None);
    assert_eq!(call(&mut play, thread, Sysno::close, &[file]), DONE);
    assert_eq!(lock(&mut play, 1, file, SET, UNLOCK, 0..10), DONE);
    assert_eq!(result(&mut play, child), -9);
    assert!(play.instance.system.locks.is_empty());
    play.check();
    play.end();
}

#[test]
fn a_program_cannot_have_any_number_of_locks() {
    let mut play = Play::new(4096);
    let file = open(&mut play, 1);
    let mut count = 0;
    let last = loop {
        match lock(&mut play, 1, file, SET, WRITE, 2 * count..2 * count + 1) {
            DONE => count += 1,
            other => break other,
        }
    };
    assert_eq!((last, count), (FULL, 2048));
    assert_eq!(lock(&mut play, 1, file, SET, UNLOCK, 0..1 << 40), DONE);
    assert!(play.instance.system.locks.is_empty());
    play.end();
}
