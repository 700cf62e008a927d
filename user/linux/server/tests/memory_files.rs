//! The file `/proc/PID/mem`. What hostile programs do with it is in `forced_writes.rs`.

mod support;

use support::Play;
use tench_linux_calls::Sysno;

/// Where paths lie in the program's data, and what calls read and write.
const PATH: u64 = 0x20_1100;
const RESULT: u64 = 0x20_2000;
/// The program's code, which it may only read.
const CODE: u64 = 0x20_0000;
/// Where the program's memory ends.
const END: u64 = 0x20_6000;

const HERE: u64 = (-100i64).cast_unsigned();
const TO_READ: u64 = 0;
const TO_READ_AND_WRITE: u64 = 2;
const FORK: u64 = 17;
const EIO: i64 = -5;
const EBADF: i64 = -9;
const EACCES: i64 = -13;

fn call(play: &mut Play, id: u32, call: Sysno, arguments: &[u64]) -> i64 {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    play.call(id, call as u64, all).expect("the call does not wait").cast_signed()
}

fn open(play: &mut Play, id: u32, path: &str, flags: u64) -> i64 {
    play.write(id, PATH, &[path.as_bytes(), &[0]].concat());
    call(play, id, Sysno::openat, &[HERE, PATH, flags, 0])
}

fn opened(play: &mut Play, id: u32, path: &str, flags: u64) -> u64 {
    u64::try_from(open(play, id, path, flags)).unwrap_or_else(|_| panic!("{path} cannot be opened"))
}

fn fork(play: &mut Play) -> u32 {
    call(play, 1, Sysno::clone, &[FORK]) as u32
}

/// Reads from an offset. Returns the call's result, and the bytes that were there to be read into.
fn read<const N: usize>(play: &mut Play, file: u64, offset: u64) -> (i64, [u8; N]) {
    let result = call(play, 1, Sysno::pread64, &[file, RESULT, N as u64, offset]);
    let mut bytes = [0; N];
    assert_eq!(play.read(1, RESULT, &mut bytes), N);
    (result, bytes)
}

fn write(play: &mut Play, file: u64, bytes: &[u8], offset: u64) -> i64 {
    assert_eq!(play.write(1, RESULT, bytes), bytes.len());
    call(play, 1, Sysno::pwrite64, &[file, RESULT, bytes.len() as u64, offset])
}

#[test]
fn a_process_reads_and_writes_the_memory_of_others_at_its_addresses() {
    let mut play = Play::new(1024);
    let child = fork(&mut play);
    for path in ["/proc/self/mem".to_owned(), format!("/proc/{child}/task/{child}/mem")] {
        let file = opened(&mut play, 1, &path, TO_READ_AND_WRITE);
        assert_eq!(read(&mut play, file, CODE), (4, *b"\x7fELF"));
        assert_eq!(write(&mut play, file, b"12345678", CODE + 4), 8);
        assert_eq!(read(&mut play, file, CODE), (12, *b"\x7fELF12345678"));
        // At the end of memory, the rest is not there; elsewhere, nothing is.
        assert_eq!(read::<0x100>(&mut play, file, END - 0x80).0, 0x80);
        for address in [0, END, 1 << 47, i64::MAX.cast_unsigned() - 15] {
            assert_eq!(read::<8>(&mut play, file, address).0, EIO, "{address:x}");
            assert_eq!(write(&mut play, file, b"8", address), EIO, "{address:x}");
        }
        assert_eq!(call(&mut play, 1, Sysno::lseek, &[file, CODE + 1, 0]), CODE as i64 + 1);
        assert_eq!(call(&mut play, 1, Sysno::read, &[file, RESULT, 3]), 3);
        assert_eq!(call(&mut play, 1, Sysno::lseek, &[file, 0, 1]), CODE as i64 + 4);
    }
    // What was written is seen by that process alone, and not by others that run the program.
    let file = opened(&mut play, 1, "/bin/program", TO_READ);
    assert_eq!(read(&mut play, file, 0), (8, *b"\x7fELF\x02\x01\x01\0"));
    play.check();
    play.end();
}

#[test]
fn only_who_may_trace_a_process_opens_its_memory() {
    let mut play = Play::new(1024);
    let (child, other) = (fork(&mut play), fork(&mut play));
    let file = opened(&mut play, 1, &format!("/proc/{other}/mem"), TO_READ);
    assert_eq!(call(&mut play, 1, Sysno::write, &[file, RESULT, 1]), EBADF);
    assert_eq!(call(&mut play, other, Sysno::setuid, &[7]), 0);
    assert_eq!(open(&mut play, other, &format!("/proc/{child}/mem"), TO_READ), EACCES);
    assert_eq!(open(&mut play, other, "/proc/self/mem", TO_READ), EACCES, "it is root's, since it was root");
    assert_eq!(read::<4>(&mut play, file, CODE).0, 4);
    play.call(other, Sysno::exit_group as u64, [0; 6]);
    assert_eq!(read::<4>(&mut play, file, CODE).0, 0, "it has ended");
    play.check();
    play.end();
}
