//! Lengths of files, holes in them, and how much memory there is.

mod support;

use support::Play;
use tench_linux_calls::Sysno;

/// Address in the program's data.
const DATA: u64 = 0x20_1300;
const HOLE: u64 = 3;

fn call(play: &mut Play, call: Sysno, arguments: &[u64]) -> i64 {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    play.call(1, call as u64, all).unwrap().cast_signed()
}

fn open(play: &mut Play, path: &[u8], flags: u64) -> u64 {
    play.write(1, DATA, path);
    let here = (-100i64).cast_unsigned();
    u64::try_from(call(play, Sysno::openat, &[here, DATA, flags, 0o644])).unwrap()
}

#[test]
fn a_hole_in_a_file_without_end_takes_no_memory_and_no_time() {
    let mut play = Play::new(4096);
    let file = open(&mut play, b"/tmp/f\0", 0o102);
    assert_eq!(call(&mut play, Sysno::ftruncate, &[file, 1 << 60]), 0);
    assert_eq!(call(&mut play, Sysno::pwrite64, &[file, DATA, 6, (1 << 50) - 3]), 6);
    let free = play.instance.system.memory.pool.free();
    assert_eq!(call(&mut play, Sysno::fallocate, &[file, HOLE, 1 << 20, (1 << 50) - (1 << 20)]), 0);
    assert_eq!(call(&mut play, Sysno::fallocate, &[file, HOLE, 0, 1 << 50]), 0);
    assert_eq!(play.instance.system.memory.pool.free(), free);
    assert_eq!(call(&mut play, Sysno::pread64, &[file, DATA + 64, 6, (1 << 50) - 3]), 6);
    let mut bytes = [1; 6];
    play.read(1, DATA + 64, &mut bytes);
    assert_eq!(&bytes, b"\0\0\0p/f");
    play.check();
    play.end();
}

#[test]
fn a_hole_in_what_a_file_has_had_from_the_beginning_is_zero() {
    let mut play = Play::new(4096);
    let file = open(&mut play, b"/bin/program\0", 2);
    assert_eq!(call(&mut play, Sysno::fallocate, &[file, HOLE, 1, 0x1000]), 0);
    assert_eq!(call(&mut play, Sysno::pread64, &[file, DATA + 64, 8, 0xffd]), 8);
    let mut bytes = [1; 8];
    play.read(1, DATA + 64, &mut bytes);
    assert_eq!(&bytes, b"\0\0\0\0ata\0", "the file's data begin at 0x1000");
    play.end();
}

#[test]
fn memory_counts_that_the_instance_can_still_get() {
    let mut play = Play::new(4096);
    let pool = &play.instance.system.memory.pool;
    let pages = [pool.total(), pool.free()].map(|count| count as u64 + 100);
    assert_eq!(call(&mut play, Sysno::sysinfo, &[DATA]), 0);
    let mut words = [0; 16];
    play.read(1, DATA + 32, &mut words);
    let bytes = [0, 8].map(|at| u64::from_le_bytes(words[at..at + 8].try_into().unwrap()));
    assert_eq!(bytes, pages.map(|count| count * 4096));
    play.end();
}
