//! Linux's own asynchronous I/O. What is expected here is what Linux did with the same calls.

mod support;

use support::Play;
use tench_linux_calls::Sysno;

const DATA: u64 = 0x20_1300;
/// The name of the context.
const CONTEXT: u64 = DATA;
/// Pointers to operations, and the operations.
const POINTERS: u64 = DATA + 0x100;
const OPERATIONS: u64 = DATA + 0x200;
/// Results that were read.
const RESULTS: u64 = DATA + 0x400;
/// Code of the program, which handles signals.
const HANDLER: u64 = 0x20_0100;
const FORK: u64 = 17;
const USR1: u64 = 10;
const RESTART: u64 = 0x1000_0000;
/// Capacity of a pipe.
const PIPE: u64 = 65_536;

const READ: u64 = 0;
const WRITE: u64 = 1;
const READ_VECTORS: u64 = 7;

const EINTR: i64 = -4;
const EBADF: i64 = -9;
const EAGAIN: i64 = -11;
const EFAULT: i64 = -14;
const EINVAL: i64 = -22;
const ESPIPE: i64 = -29;
const EOPNOTSUPP: i64 = -95;

/// An operation: kind, descriptor, address, length, offset, flags.
type Operation = (u64, u64, u64, u64, u64, u64);

fn call(play: &mut Play, id: u32, call: Sysno, arguments: &[u64]) -> Option<i64> {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    play.call(id, call as u64, all).map(u64::cast_signed)
}

fn word(play: &mut Play, id: u32, address: u64) -> u64 {
    let mut word = [0; 8];
    assert_eq!(play.read(id, address, &mut word), 8);
    u64::from_le_bytes(word)
}

/// Makes a context.
fn set_up(play: &mut Play, id: u32, wanted: u64) {
    play.put(id, CONTEXT, &[0]);
    assert_eq!(call(play, id, Sysno::io_setup, &[wanted, CONTEXT]), Some(0));
}

/// Submits operations, of which each has its number as data.
fn submit(play: &mut Play, id: u32, operations: &[Operation]) -> Option<i64> {
    for (number, &(kind, descriptor, address, length, offset, flags)) in (0..).zip(operations) {
        let place = OPERATIONS + 64 * number;
        play.put(id, POINTERS + 8 * number, &[place]);
        play.put(id, place, &[number, flags << 32, descriptor << 32 | kind, address, length, offset, 0, 0]);
    }
    let name = word(play, id, CONTEXT);
    call(play, id, Sysno::io_submit, &[name, operations.len() as u64, POINTERS])
}

/// Takes the results that are there: the operations' numbers, and what they say.
fn results(play: &mut Play, id: u32) -> Vec<(u64, i64)> {
    let name = word(play, id, CONTEXT);
    let count = call(play, id, Sysno::io_getevents, &[name, 0, 8, RESULTS, 0]).unwrap().cast_unsigned();
    (0..count)
        .map(|index| RESULTS + 32 * index)
        .map(|place| (word(play, id, place), word(play, id, place + 16).cast_signed()))
        .collect()
}

/// Makes a pipe. Returns its ends.
fn pipe(play: &mut Play) -> [u64; 2] {
    assert_eq!(call(play, 1, Sysno::pipe2, &[RESULTS, 0]), Some(0));
    let ends = word(play, 1, RESULTS);
    [ends & 0xffff_ffff, ends >> 32]
}

/// Maps memory for many bytes.
fn large(play: &mut Play, id: u32) -> u64 {
    call(play, id, Sysno::mmap, &[0, 4 * PIPE, 3, 0x22, u64::MAX, 0]).unwrap().cast_unsigned()
}

#[test]
fn an_operation_after_one_that_has_waited_begins_at_its_own_beginning() {
    let mut play = Play::new(4096);
    let [read, write] = pipe(&mut play);
    let child = call(&mut play, 1, Sysno::clone, &[FORK]).unwrap() as u32;
    set_up(&mut play, child, 8);
    let memory = large(&mut play, child);
    let length = PIPE + 4096;
    // Both have to wait, and neither knows of the bytes of the other.
    let both = [(WRITE, write, memory, length, 0, 0), (WRITE, write, memory, length, 0, 0)];
    assert_eq!(submit(&mut play, child, &both), None);
    let place = large(&mut play, 1);
    let mut taken = 0;
    while taken < 2 * length {
        taken += call(&mut play, 1, Sysno::read, &[read, place, PIPE]).unwrap().cast_unsigned();
    }
    assert_eq!(results(&mut play, child), [(0, length as i64), (1, length as i64)]);
    assert_eq!(taken, 2 * length);
    play.check();
    play.end();
}

#[test]
fn a_handler_ends_an_operation_that_waits_and_the_call_has_taken_it() {
    for flags in [0, RESTART] {
        let mut play = Play::new(4096);
        let [read, write] = pipe(&mut play);
        play.put(1, RESULTS, &[HANDLER, flags, 0, 0]);
        assert_eq!(call(&mut play, 1, Sysno::rt_sigaction, &[USR1, RESULTS, 0, 8]), Some(0));
        let child = call(&mut play, 1, Sysno::clone, &[FORK]).unwrap() as u32;
        set_up(&mut play, child, 8);
        let memory = large(&mut play, child);
        let interrupt = |play: &mut Play| {
            assert_eq!(call(play, 1, Sysno::kill, &[child.into(), USR1]), Some(0));
            assert_eq!(play.thread(child).registers.pc, HANDLER);
            call(play, child, Sysno::rt_sigreturn, &[]);
            play.thread(child).registers.x[0].cast_signed()
        };
        assert_eq!(submit(&mut play, child, &[(WRITE, write, memory, PIPE + 9, 0, 0)]), None);
        assert_eq!((interrupt(&mut play), results(&mut play, child)), (1, vec![(0, PIPE as i64)]));
        assert_eq!(call(&mut play, 1, Sysno::read, &[read, DATA, 3]), Some(3));
        let [empty, _] = pipe(&mut play);
        // The child does not have the new pipe: it waits for the old one, which is read to its end first.
        assert_eq!(call(&mut play, 1, Sysno::close, &[empty]), Some(0));
        let place = large(&mut play, 1);
        assert_eq!(call(&mut play, 1, Sysno::read, &[read, place, PIPE]), Some(PIPE as i64 - 3));
        let both = [(WRITE, write, memory, 1, 0, 0), (READ, read, memory, 1, 0, 0), (READ, read, memory, 1, 0, 0)];
        assert_eq!(submit(&mut play, child, &both), None);
        assert_eq!((interrupt(&mut play), results(&mut play, child)), (3, vec![(0, 1), (1, 1), (2, EINTR)]));
        play.check();
        play.end();
    }
}

#[test]
fn what_is_wrong_with_an_operation_itself_is_not_submitted() {
    const MOST: u64 = i64::MAX.cast_unsigned();
    const WRONG: u64 = (-5_i64).cast_unsigned();
    let mut play = Play::new(4096);
    set_up(&mut play, 1, 16);
    let [read, write] = pipe(&mut play);
    play.put(1, RESULTS, &[u64::from_le_bytes(*b"/file\0\0\0")]);
    let file = call(&mut play, 1, Sysno::openat, &[0, RESULTS, 0o102, 0o600]).unwrap().cast_unsigned();
    let writing = call(&mut play, 1, Sysno::openat, &[0, RESULTS, 1, 0]).unwrap().cast_unsigned();
    let path = call(&mut play, 1, Sysno::openat, &[0, RESULTS, 0o10_000_000, 0]).unwrap().cast_unsigned();
    play.put(1, RESULTS, &[u64::from_le_bytes(*b"/tmp\0\0\0\0")]);
    let directory = call(&mut play, 1, Sysno::openat, &[0, RESULTS, 0, 0]).unwrap().cast_unsigned();
    let counter = call(&mut play, 1, Sysno::eventfd2, &[3, 0]).unwrap().cast_unsigned();
    let watches = call(&mut play, 1, Sysno::inotify_init1, &[0]).unwrap().cast_unsigned();
    let timer = call(&mut play, 1, Sysno::timerfd_create, &[1, 0]).unwrap().cast_unsigned();
    assert_eq!(call(&mut play, 1, Sysno::write, &[write, DATA, 8]), Some(8));
    for (operation, error) in [
        ((READ, writing, DATA, 8, 0, 0x8000), EOPNOTSUPP),
        ((READ, writing, DATA, 8, 0, 0), EBADF),
        ((READ, path, DATA, 8, 0, 0x8000), EBADF),
        ((READ, read, DATA, 2, WRONG, 0), EINVAL),
        ((READ, read, DATA, 2, MOST, 0), EINVAL),
        ((READ, file, DATA, 2, MOST, 0), EINVAL),
        ((READ, directory, DATA, 8, 0, 0), EINVAL),
        ((WRITE, counter, DATA, 8, 0, 0), EINVAL),
        ((READ, watches, DATA, 64, 0, 0), EINVAL),
        ((READ, timer, DATA, 8, 0, 0), EINVAL),
        ((READ_VECTORS, file, 0, 2, 0, 0), EFAULT),
        ((READ_VECTORS, file, DATA, 2000, 0, 0), EINVAL),
        ((READ, file, 1 << 48, 1, 0, 0), EFAULT),
    ] {
        assert_eq!(submit(&mut play, 1, &[operation]), Some(error), "{operation:x?}");
    }
    assert_eq!(results(&mut play, 1), []);
    assert_eq!(call(&mut play, 1, Sysno::socketpair, &[1, 1, 0, RESULTS]), Some(0));
    let ends = word(&mut play, 1, RESULTS);
    assert_eq!(call(&mut play, 1, Sysno::write, &[ends >> 32, DATA, 5]), Some(5));
    for (operation, result) in [
        ((READ, counter, DATA + 8, 8, 0, 0), 8),
        ((READ, file, DATA + 8, 1, 1 << 40, 0), 0),
        ((READ, ends & 0xffff, DATA + 8, 8, 7, 0), ESPIPE),
        ((READ, ends & 0xffff, DATA + 8, 8, 0, 0), 5),
    ] {
        assert_eq!(submit(&mut play, 1, &[operation]), Some(1), "{operation:x?}");
        assert_eq!(results(&mut play, 1), [(0, result)]);
    }
    play.end();
}

#[test]
fn contexts_of_impossible_sizes_are_not_made() {
    let mut play = Play::new(1024);
    let mut set_up = |wanted: u64, before: u64, place: u64| {
        play.put(1, CONTEXT, &[before]);
        call(&mut play, 1, Sysno::io_setup, &[wanted, place])
    };
    for (wanted, before, place, error) in [
        (0, 0, 8, EFAULT),
        (0, 0, CONTEXT, EINVAL),
        (1, 5, CONTEXT, EINVAL),
        (65_537, 0, CONTEXT, EAGAIN),
        (4_194_304, 0, CONTEXT, EAGAIN),
        (4_194_305, 0, CONTEXT, EINVAL),
        (u64::MAX, 0, CONTEXT, EINVAL),
        (1 << 32, 0, CONTEXT, EINVAL),
    ] {
        assert_eq!(set_up(wanted, before, place), Some(error), "{wanted}");
    }
    assert_eq!(set_up(1 << 32 | 1, 0, CONTEXT), Some(0));
    play.end();
}
