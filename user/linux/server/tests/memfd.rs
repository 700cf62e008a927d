//! Files in memory without a path: what is left of them. What their calls return, `tests/linux/memfd.c` compares with
//! Linux.

mod support;

use support::Play;
use tench_linux::exec::TRAMPOLINE;
use tench_linux_calls::Sysno;
use tench_linux_files::Kind;

/// Addresses in the program's data.
const NAME: u64 = 0x20_1300;
const BYTES: u64 = 0x20_1400;
const DONE: Option<i64> = Some(0);
const REFUSED: Option<i64> = Some(-1);
const ALLOW_SEALING: u64 = 2;
const ADD_SEALS: u64 = 1033;
const SHRINK: u64 = 2;
const EMPTY_PATH: u64 = 0x1000;
/// `O_RDWR | O_TRUNC`
const CUT_OFF: u64 = 0o1002;

fn call(play: &mut Play, id: u32, call: Sysno, arguments: &[u64]) -> Option<i64> {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    play.call(id, call as u64, all).map(u64::cast_signed)
}

/// Makes a file of so many bytes. Returns its descriptor.
fn make(play: &mut Play, length: u64) -> u64 {
    play.write(1, NAME, b"name\0");
    let file = call(play, 1, Sysno::memfd_create, &[NAME, ALLOW_SEALING]).unwrap().cast_unsigned();
    assert_eq!(call(play, 1, Sysno::ftruncate, &[file, length]), DONE);
    file
}

/// Opens a file of the first process anew.
fn reopen(play: &mut Play, file: u64, flags: u64) -> Option<i64> {
    play.write(1, NAME, format!("/proc/self/fd/{file}\0").as_bytes());
    call(play, 1, Sysno::openat, &[0, NAME, flags, 0])
}

fn nodes(play: &Play) -> usize {
    play.instance.system.tree.nodes().filter(|node| matches!(node.kind, Kind::Regular(_))).count()
}

#[test]
fn a_file_ends_with_its_last_descriptor_and_its_contents_with_the_last_area() {
    let mut play = Play::new(2048);
    let before = nodes(&play);
    let file = make(&mut play, 8192);
    let place = call(&mut play, 1, Sysno::mmap, &[0, 8192, 3, 1, file, 0]).unwrap().cast_unsigned();
    assert_eq!(call(&mut play, 1, Sysno::pwrite64, &[file, NAME, 4, 4096]), Some(4));
    assert_eq!(call(&mut play, 1, Sysno::close, &[file]), DONE);
    assert_eq!(nodes(&play), before, "the file has ended");
    let mut bytes = [0; 4];
    play.read(1, place + 4096, &mut bytes);
    assert_eq!(&bytes, b"name", "its contents have not");
    play.check();
    assert_eq!(call(&mut play, 1, Sysno::munmap, &[place, 8192]), DONE);
    play.end();
}

#[test]
fn a_file_whose_opening_is_refused_has_no_further_user() {
    let mut play = Play::new(2048);
    let file = make(&mut play, 10);
    assert_eq!(call(&mut play, 1, Sysno::fcntl, &[file, ADD_SEALS, SHRINK]), DONE);
    assert_eq!(reopen(&mut play, file, CUT_OFF), REFUSED);
    // The file ends with its only descriptor all the same.
    play.end();
}

#[test]
fn a_program_runs_from_its_descriptor_and_nothing_of_a_failed_one_is_left() {
    let mut play = Play::new(2048);
    let file = make(&mut play, 0);
    play.write(1, NAME, b"/bin/program\0");
    let program = call(&mut play, 1, Sysno::openat, &[0, NAME, 0, 0]).unwrap().cast_unsigned();
    let run = |play: &mut Play, flags: u64| {
        play.write(1, BYTES, &[0]);
        call(play, 1, Sysno::execveat, &[file, BYTES, 0, 0, flags])
    };
    assert_eq!(run(&mut play, EMPTY_PATH), Some(-8), "an empty file is no program");
    assert_eq!(call(&mut play, 1, Sysno::sendfile, &[file, program, 0, 100]), Some(100));
    assert_eq!(run(&mut play, EMPTY_PATH), Some(-8), "neither is its beginning");
    play.check();
    call(&mut play, 1, Sysno::sendfile, &[file, program, 0, 1 << 20]).unwrap();
    run(&mut play, EMPTY_PATH);
    assert_eq!(play.thread(1).registers.pc, 0x20_0100, "it runs from its beginning");
    assert_ne!(play.thread(1).registers.x[30], TRAMPOLINE);
    assert_eq!(&play.process_of(1).unwrap().program, b"/memfd:name (deleted)");
    play.end();
}

#[test]
fn what_is_no_file_is_not_opened_anew_and_stays_while_it_is_a_path() {
    const PATH_ONLY: u64 = 0o1000_0000;
    let mut play = Play::new(2048);
    let counter = call(&mut play, 1, Sysno::eventfd2, &[5, 0]).unwrap().cast_unsigned();
    assert_eq!(reopen(&mut play, counter, 2), Some(-6));
    let path = reopen(&mut play, counter, PATH_ONLY).unwrap().cast_unsigned();
    let other = reopen(&mut play, counter, PATH_ONLY).unwrap().cast_unsigned();
    assert_eq!(call(&mut play, 1, Sysno::close, &[path]), DONE);
    assert_eq!(call(&mut play, 1, Sysno::read, &[counter, BYTES, 8]), Some(8), "it is there still");
    assert_eq!(call(&mut play, 1, Sysno::close, &[counter]), DONE);
    play.put(1, BYTES, &[other | 1 << 32]);
    assert_eq!(call(&mut play, 1, Sysno::ppoll, &[BYTES, 1, 0, 0, 0]), Some(1), "a path is no open file");
    play.end();
}
