//! Watched files: what is left of watches, and who learns of what. Which events come of which calls,
//! `tests/linux/watches.c` compares with Linux.

mod support;

use support::{Doing, Play};
use tench_linux_calls::Sysno;
use tench_linux_calls::numbers::watch;

/// Addresses in the program's data.
const PATH: u64 = 0x20_1300;
const BYTES: u64 = 0x20_1400;
const HERE: u64 = (-100i64).cast_unsigned();
const NONBLOCK: u64 = 0o4000;
const MAKE: u64 = 0o102;
const REMOVE_DIRECTORY: u64 = 0x200;
const FORK: u64 = 17;
const DONE: Option<i64> = Some(0);
const AGAIN: Option<i64> = Some(-11);

fn call(play: &mut Play, id: u32, call: Sysno, arguments: &[u64]) -> Option<i64> {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    play.call(id, call as u64, all).map(u64::cast_signed)
}

fn path(play: &mut Play, id: u32, path: &str) -> u64 {
    play.write(id, PATH, format!("{path}\0").as_bytes());
    PATH
}

fn make(play: &mut Play, id: u32, name: &str) -> u64 {
    let path = path(play, id, name);
    call(play, id, Sysno::openat, &[HERE, path, MAKE, 0o600]).unwrap().cast_unsigned()
}

fn remove(play: &mut Play, name: &str, flags: u64) {
    let path = path(play, 1, name);
    assert_eq!(call(play, 1, Sysno::unlinkat, &[HERE, path, flags]), DONE);
}

fn instance(play: &mut Play) -> u64 {
    call(play, 1, Sysno::inotify_init1, &[NONBLOCK]).unwrap().cast_unsigned()
}

fn watch(play: &mut Play, instance: u64, name: &str, mask: u32) -> i64 {
    let path = path(play, 1, name);
    call(play, 1, Sysno::inotify_add_watch, &[instance, path, mask.into()]).unwrap()
}

/// Reads all events: their watches and masks.
fn events(play: &mut Play, instance: u64) -> Vec<(i32, u32)> {
    let Some(count @ 0..) = call(play, 1, Sysno::read, &[instance, BYTES, 4096]) else { return Vec::new() };
    let mut bytes = vec![0; usize::try_from(count).unwrap()];
    play.read(1, BYTES, &mut bytes);
    let (mut events, mut rest) = (Vec::new(), &bytes[..]);
    while !rest.is_empty() {
        let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
        events.push((word(0).cast_signed(), word(4)));
        rest = &rest[16 + word(12) as usize..];
    }
    events
}

#[test]
fn a_watch_ends_with_its_file_and_means_no_other_one() {
    let mut play = Play::new(2048);
    let instance = instance(&mut play);
    let file = make(&mut play, 1, "/tmp/file");
    assert_eq!(watch(&mut play, instance, "/tmp/file", watch::ALL), 1);
    remove(&mut play, "/tmp/file", 0);
    assert_eq!(events(&mut play, instance), [(1, watch::ATTRIB)]);
    assert_eq!(call(&mut play, 1, Sysno::close, &[file]), DONE);
    let expected = [(1, watch::CLOSE_WRITE), (1, watch::DELETE_SELF), (1, watch::IGNORED)];
    assert_eq!(events(&mut play, instance), expected);
    assert!(play.instance.system.watches.is_empty());
    // The next file has the name of the one that has ended.
    let file = make(&mut play, 1, "/tmp/other");
    assert_eq!(call(&mut play, 1, Sysno::write, &[file, BYTES, 1]), Some(1));
    assert_eq!(call(&mut play, 1, Sysno::read, &[instance, BYTES, 4096]), AGAIN);
    play.end();
}

#[test]
fn the_end_of_whoever_works_in_a_directory_ends_its_watch() {
    let mut play = Play::new(2048);
    let instance = instance(&mut play);
    let directory = path(&mut play, 1, "/tmp/directory");
    assert_eq!(call(&mut play, 1, Sysno::mkdirat, &[HERE, directory, 0o700]), DONE);
    assert_eq!(watch(&mut play, instance, "/tmp/directory", watch::DELETE_SELF), 1);
    let child = u32::try_from(call(&mut play, 1, Sysno::clone, &[FORK]).unwrap()).unwrap();
    assert_eq!(call(&mut play, child, Sysno::chdir, &[directory]), DONE);
    remove(&mut play, "/tmp/directory", REMOVE_DIRECTORY);
    assert_eq!(events(&mut play, instance), []);
    call(&mut play, child, Sysno::exit_group, &[0]);
    assert_eq!(events(&mut play, instance), [(1, watch::DELETE_SELF), (1, watch::IGNORED)]);
    play.end();
}

#[test]
fn an_event_ends_the_wait_of_another_process() {
    let mut play = Play::new(2048);
    let instance = call(&mut play, 1, Sysno::inotify_init1, &[0]).unwrap().cast_unsigned();
    watch(&mut play, instance, "/tmp", watch::CREATE);
    let child = u32::try_from(call(&mut play, 1, Sysno::clone, &[FORK]).unwrap()).unwrap();
    assert_eq!(call(&mut play, child, Sysno::read, &[instance, BYTES, 4096]), None);
    assert_eq!(play.doing(child), Some(Doing::Waits));
    make(&mut play, 1, "/tmp/file");
    assert_eq!(play.doing(child), Some(Doing::Runs));
    assert_eq!(play.thread(child).registers.x[0], 32);
    play.end();
}

#[test]
fn nothing_is_remembered_while_nothing_is_watched() {
    let mut play = Play::new(2048);
    let instance = instance(&mut play);
    for end in 0..3u64 {
        make(&mut play, 1, "/tmp/file");
        let mask = if end == 0 { watch::OPEN | watch::ONESHOT } else { watch::OPEN };
        let number = watch(&mut play, instance, "/tmp/file", mask);
        match end {
            0 => drop(make(&mut play, 1, "/tmp/file")),
            1 => assert_eq!(call(&mut play, 1, Sysno::inotify_rm_watch, &[instance, number.cast_unsigned()]), DONE),
            _ => assert_eq!(call(&mut play, 1, Sysno::close, &[instance]), DONE),
        }
        assert!(play.instance.system.watches.is_empty());
        for file in 4..8 {
            call(&mut play, 1, Sysno::close, &[file]);
        }
        remove(&mut play, "/tmp/file", 0);
        assert_eq!(play.instance.system.tree.take_ended(), [], "after way {end}");
    }
    play.end();
}

#[test]
fn instances_and_watches_end_with_the_program() {
    let mut play = Play::new(2048);
    for _ in 0..100 {
        let instance = instance(&mut play);
        for name in ["/tmp", "/dev", "/proc", "/proc/self/maps", "/dev/null", "/bin/program"] {
            assert!(watch(&mut play, instance, name, watch::ALL) > 0);
        }
    }
    for _ in 0..20 {
        make(&mut play, 1, "/tmp/file");
        make(&mut play, 1, "/dev/null");
    }
    assert!(play.instance.system.watches.bytes() > 0);
    play.end();
}
