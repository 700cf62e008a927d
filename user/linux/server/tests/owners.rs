//! Open files that send signals to their owners.

mod support;

use support::Play;
use tench_linux_calls::Sysno;

const DATA: u64 = 0x20_1300;
const FORK: u64 = 17;
const SIGIO: u64 = 29;
const SET_FLAGS: u64 = 4;
const SET_OWNER: u64 = 8;
const OWNER: u64 = 9;
const SET_OWNER_BY_KIND: u64 = 15;
const OWNER_BY_KIND: u64 = 16;
const ASYNC: u64 = 0o20000;
const SET_SIGNAL: u64 = 10;
const NOTIFY: u64 = 1026;
const FIOASYNC: u64 = 0x5452;

fn call(play: &mut Play, id: u32, call: Sysno, arguments: &[u64]) -> Option<i64> {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    play.call(id, call as u64, all).map(u64::cast_signed)
}

/// Makes a pipe or a pair of sockets. Returns the descriptors to be read and to be written.
fn ends(play: &mut Play, is_pipe: bool) -> [u64; 2] {
    let made = match is_pipe {
        true => call(play, 1, Sysno::pipe2, &[DATA, 0]),
        false => call(play, 1, Sysno::socketpair, &[1, 1, 0, DATA]),
    };
    assert_eq!(made, Some(0));
    let mut ends = [0; 8];
    play.read(1, DATA, &mut ends);
    [0, 4].map(|at| u64::from(ends[at]))
}

/// Blocks the signal, so that it stays where the test sees it.
fn block(play: &mut Play, id: u32) {
    play.put(id, DATA, &[1 << (SIGIO - 1)]);
    assert_eq!(call(play, id, Sysno::rt_sigprocmask, &[0, DATA, 0, 8]), Some(0));
}

/// Returns whether the signal has come since the last time.
fn has_come(play: &mut Play, id: u32) -> bool {
    play.put(id, DATA, &[1 << (SIGIO - 1), 0, 0]);
    match call(play, id, Sysno::rt_sigtimedwait, &[DATA, 0, DATA + 8, 8]) {
        Some(number) => number == SIGIO as i64,
        None => panic!("it waits"),
    }
}

#[test]
fn the_owner_of_what_becomes_readable_gets_a_signal() {
    for is_pipe in [true, false] {
        let mut play = Play::new(1024);
        let [read, write] = ends(&mut play, is_pipe);
        block(&mut play, 1);
        assert_eq!(call(&mut play, 1, Sysno::fcntl, &[read, SET_OWNER, 1]), Some(0));
        assert_eq!(call(&mut play, 1, Sysno::write, &[write, DATA, 1]), Some(1));
        assert!(!has_come(&mut play, 1), "nobody asked for one");
        play.put(1, DATA, &[1]);
        assert_eq!(call(&mut play, 1, Sysno::ioctl, &[read, FIOASYNC, DATA]), Some(0));
        assert_eq!(call(&mut play, 1, Sysno::write, &[write, DATA, 1]), Some(1));
        assert!(has_come(&mut play, 1), "pipe: {is_pipe}");
        assert!(!has_come(&mut play, 1), "once");
        // A copy of the descriptor is the same file.
        let copy = call(&mut play, 1, Sysno::dup, &[read]).unwrap() as u64;
        assert_eq!(call(&mut play, 1, Sysno::close, &[read]), Some(0));
        assert_eq!(call(&mut play, 1, Sysno::write, &[write, DATA, 1]), Some(1));
        assert!(has_come(&mut play, 1));
        assert_eq!(call(&mut play, 1, Sysno::fcntl, &[copy, SET_FLAGS, 0]), Some(0));
        assert_eq!(call(&mut play, 1, Sysno::write, &[write, DATA, 1]), Some(1));
        assert!(!has_come(&mut play, 1), "not any more");
        assert_eq!(call(&mut play, 1, Sysno::fcntl, &[copy, SET_FLAGS, ASYNC]), Some(0));
        assert_eq!(call(&mut play, 1, Sysno::fcntl, &[copy, SET_OWNER, 0]), Some(0));
        assert_eq!(call(&mut play, 1, Sysno::write, &[write, DATA, 1]), Some(1));
        assert!(!has_come(&mut play, 1), "to nobody");
        play.end();
    }
}

#[test]
fn a_signal_reaches_a_process_a_group_or_ends_a_wait() {
    let mut play = Play::new(1024);
    let [read, write] = ends(&mut play, true);
    let child = call(&mut play, 1, Sysno::clone, &[FORK]).unwrap() as u32;
    block(&mut play, child);
    block(&mut play, 1);
    let set = |play: &mut Play, owner: i64| call(play, 1, Sysno::fcntl, &[read, SET_OWNER, owner.cast_unsigned()]);
    assert_eq!(set(&mut play, child.into()), Some(0));
    assert_eq!(call(&mut play, 1, Sysno::fcntl, &[read, SET_FLAGS, ASYNC]), Some(0));
    assert_eq!(call(&mut play, 1, Sysno::write, &[write, DATA, 1]), Some(1));
    assert_eq!([1, child].map(|id| has_come(&mut play, id)), [false, true]);
    assert_eq!(set(&mut play, -1), Some(0));
    assert_eq!(call(&mut play, child, Sysno::write, &[write, DATA, 1]), Some(1));
    assert_eq!([1, child].map(|id| has_come(&mut play, id)), [true, true]);
    // Who waits for something else is killed by the signal, which has no handler.
    assert_eq!(set(&mut play, child.into()), Some(0));
    play.put(child, DATA, &[0]);
    assert_eq!(call(&mut play, child, Sysno::rt_sigsuspend, &[DATA, 8]), None);
    assert_eq!(call(&mut play, 1, Sysno::write, &[write, DATA, 1]), Some(1));
    assert_eq!(play.running(), [1]);
    play.end();
}

#[test]
fn an_owner_must_exist_and_is_told() {
    let mut play = Play::new(1024);
    let [read, _] = ends(&mut play, true);
    let file = |play: &mut Play, command: u64, argument: i64| {
        call(play, 1, Sysno::fcntl, &[read, command, argument.cast_unsigned()])
    };
    assert_eq!(file(&mut play, OWNER, 0), Some(0));
    for nobody in [9, -9] {
        assert_eq!(file(&mut play, SET_OWNER, nobody), Some(-3));
    }
    assert_eq!(file(&mut play, SET_OWNER, i64::from(i32::MIN)), Some(-22));
    assert_eq!(file(&mut play, SET_OWNER, -1), Some(0));
    assert_eq!(file(&mut play, OWNER, 0), Some(-1));
    for kind in 0..3u64 {
        play.put(1, DATA, &[1 << 32 | kind]);
        assert_eq!(file(&mut play, SET_OWNER_BY_KIND, DATA as i64), Some(0));
        play.put(1, DATA, &[0]);
        assert_eq!(file(&mut play, OWNER_BY_KIND, DATA as i64), Some(0));
        let mut record = [0; 8];
        play.read(1, DATA, &mut record);
        assert_eq!(u64::from_le_bytes(record), 1 << 32 | kind);
    }
    play.put(1, DATA, &[1 << 32 | 3]);
    assert_eq!(file(&mut play, SET_OWNER_BY_KIND, DATA as i64), Some(-22));
    play.put(1, DATA, &[9 << 32]);
    assert_eq!(file(&mut play, SET_OWNER_BY_KIND, DATA as i64), Some(-3));
    assert_eq!(file(&mut play, SET_OWNER_BY_KIND, 8), Some(-14));
    assert_eq!(
        (file(&mut play, 11, 0), file(&mut play, 10, 0), file(&mut play, 10, 65)),
        (Some(0), Some(0), Some(-22))
    );
    // What has no such events cannot send signals.
    play.put(1, DATA, &[1]);
    let counter = call(&mut play, 1, Sysno::eventfd2, &[0, 0]).unwrap() as u64;
    assert_eq!(call(&mut play, 1, Sysno::ioctl, &[counter, FIOASYNC, DATA]), Some(-25));
    assert_eq!(call(&mut play, 1, Sysno::ioctl, &[read, FIOASYNC, 8]), Some(-14));
    play.end();
}

/// Makes a directory. Returns the call's result.
fn make_directory(play: &mut Play, path: &[u8; 8]) -> Option<i64> {
    play.put(1, DATA + 64, &[u64::from_le_bytes(*path)]);
    call(play, 1, Sysno::mkdirat, &[0, DATA + 64, 0o700])
}

#[test]
fn a_directory_signals_new_entries_once_or_each_time() {
    const MULTISHOT: u64 = 1 << 31;
    const CREATE: u64 = 4;
    let mut play = Play::new(1024);
    block(&mut play, 1);
    assert_eq!(make_directory(&mut play, b"/seen\0\0\0"), Some(0));
    let open = |play: &mut Play| call(play, 1, Sysno::openat, &[0, DATA + 64, 0]).unwrap() as u64;
    let directory = open(&mut play);
    let file = |play: &mut Play, command, argument| call(play, 1, Sysno::fcntl, &[directory, command, argument]);
    assert_eq!(file(&mut play, SET_SIGNAL, SIGIO), Some(0));
    assert_eq!(file(&mut play, NOTIFY, CREATE), Some(0));
    assert_eq!(file(&mut play, OWNER, 0), Some(1));
    assert_eq!(make_directory(&mut play, b"/other\0\0"), Some(0));
    assert!(!has_come(&mut play, 1), "the other directory is not watched");
    for (path, is_told) in [(b"/seen/a\0", true), (b"/seen/b\0", false)] {
        assert_eq!(make_directory(&mut play, path), Some(0));
        assert_eq!(has_come(&mut play, 1), is_told);
    }
    assert_eq!(file(&mut play, NOTIFY, CREATE | MULTISHOT), Some(0));
    for path in [b"/seen/c\0", b"/seen/d\0"] {
        assert_eq!(make_directory(&mut play, path), Some(0));
        play.put(1, DATA, &[1 << (SIGIO - 1), 0, 0]);
        let taken = call(&mut play, 1, Sysno::rt_sigtimedwait, &[DATA, DATA + 64, DATA + 8, 8]);
        assert_eq!(taken, Some(SIGIO as i64));
        let mut information = [0; 32];
        play.read(1, DATA + 64, &mut information);
        let word = |at: usize| u32::from_le_bytes(information[at..at + 4].try_into().unwrap());
        assert_eq!((word(8), word(16), u64::from(word(24))), (3, 0x441, directory));
    }
    assert_eq!(call(&mut play, 1, Sysno::close, &[directory]), Some(0));
    assert_eq!(make_directory(&mut play, b"/seen/e\0"), Some(0));
    assert!(!has_come(&mut play, 1), "the descriptor is closed");
    play.end();
}

#[test]
fn directories_tell_a_limited_number_of_processes() {
    const MULTISHOT: u64 = 1 << 31;
    const CREATE: u64 = 4;
    const ENOMEM: i64 = -12;
    let mut play = Play::new(8192);
    assert_eq!(make_directory(&mut play, b"/seen\0\0\0"), Some(0));
    block(&mut play, 1);
    let files: Vec<u64> =
        (0..256).map(|_| call(&mut play, 1, Sysno::openat, &[0, DATA + 64, 0]).unwrap() as u64).collect();
    let children: Vec<u32> = (0..5).map(|_| call(&mut play, 1, Sysno::clone, &[FORK]).unwrap() as u32).collect();
    let notify = |play: &mut Play, id, file| call(play, id, Sysno::fcntl, &[file, NOTIFY, CREATE | MULTISHOT]);
    for child in &children[..4] {
        for file in &files {
            assert_eq!(notify(&mut play, *child, *file), Some(0));
        }
    }
    assert_eq!(notify(&mut play, children[4], files[0]), Some(ENOMEM));
    assert_eq!(notify(&mut play, children[0], files[0]), Some(0), "no further one");
    assert_eq!(make_directory(&mut play, b"/seen/a\0"), Some(0));
    assert!(has_come(&mut play, children[0]), "who has asked first owns the files");
    // There is room for as many as give up, by closing a file or because they have learnt of something once.
    assert_eq!(call(&mut play, children[1], Sysno::close, &[files[0]]), Some(0));
    assert_eq!(notify(&mut play, children[4], files[0]), Some(0));
    assert_eq!(notify(&mut play, children[4], files[1]), Some(ENOMEM));
    assert_eq!(call(&mut play, children[2], Sysno::exit_group, &[]), None);
    for _ in 0..3 {
        for file in &files {
            assert_eq!(call(&mut play, children[4], Sysno::fcntl, &[*file, NOTIFY, CREATE]), Some(0));
        }
        assert_eq!(call(&mut play, children[4], Sysno::fcntl, &[files[0], NOTIFY, 0]), Some(0));
        assert_eq!(make_directory(&mut play, b"/seen/b\0"), Some(0));
        assert_eq!(call(&mut play, 1, Sysno::unlinkat, &[0, DATA + 64, 0x200]), Some(0));
    }
    play.check();
    play.end();
}

#[test]
fn an_owner_is_whatever_has_the_number() {
    const THREAD: u64 = 0x50f00;
    let mut play = Play::new(1024);
    let [read, _] = ends(&mut play, true);
    let thread = call(&mut play, 1, Sysno::clone, &[THREAD, DATA + 0x800]).unwrap();
    let child = call(&mut play, 1, Sysno::clone, &[FORK]).unwrap();
    for id in [thread, child] {
        for owner in [id, -id] {
            assert_eq!(call(&mut play, 1, Sysno::fcntl, &[read, SET_OWNER, owner.cast_unsigned()]), Some(0));
            assert_eq!(call(&mut play, 1, Sysno::fcntl, &[read, OWNER, 0]), Some(owner));
        }
    }
    call(&mut play, child as u32, Sysno::exit_group, &[]);
    assert_eq!(
        call(&mut play, 1, Sysno::fcntl, &[read, SET_OWNER, child.cast_unsigned()]),
        Some(0),
        "it can be awaited"
    );
    assert_eq!(call(&mut play, 1, Sysno::wait4, &[child.cast_unsigned(), 0, 0, 0]), Some(child));
    assert_eq!(call(&mut play, 1, Sysno::fcntl, &[read, SET_OWNER, child.cast_unsigned()]), Some(-3));
    play.end();
}
