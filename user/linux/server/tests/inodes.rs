//! Numbers of files, and what is refused to files that keep nothing.

mod support;

use support::Play;
use tench_linux_calls::Sysno;
use tench_linux_files::Errno;

/// Addresses in the program's data.
const PATH: u64 = 0x20_1100;
const DATA: u64 = 0x20_1300;
const HERE: u64 = (-100i64).cast_unsigned();
const CREATE: u64 = 0o102;
const PATH_ONLY: u64 = 0o1000_0000;

fn call(play: &mut Play, call: Sysno, arguments: &[u64]) -> i64 {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    play.call(1, call as u64, all).unwrap().cast_signed()
}

fn open(play: &mut Play, path: &str, flags: u64) -> u64 {
    play.write(1, PATH, path.as_bytes());
    play.write(1, PATH + path.len() as u64, &[0]);
    call(play, Sysno::openat, &[HERE, PATH, flags, 0o600]).cast_unsigned()
}

fn inode(play: &mut Play, file: u64) -> u64 {
    assert_eq!(call(play, Sysno::fstat, &[file, DATA]), 0);
    let mut number = [0; 8];
    play.read(1, DATA + 8, &mut number);
    u64::from_le_bytes(number)
}

/// The C library tells semaphores by the numbers of their files, of which it keeps nothing but the memory.
#[test]
fn a_file_that_is_only_mapped_has_its_number_for_itself() {
    let mut play = Play::new(4096);
    let file = open(&mut play, "/tmp/f", CREATE);
    let first = inode(&mut play, file);
    assert_eq!(call(&mut play, Sysno::ftruncate, &[file, 4096]), 0);
    assert!(call(&mut play, Sysno::mmap, &[0, 4096, 3, 1, file, 0]) > 0);
    assert_eq!(call(&mut play, Sysno::close, &[file]), 0);
    assert_eq!(call(&mut play, Sysno::unlinkat, &[HERE, PATH, 0]), 0);
    let file = open(&mut play, "/tmp/f", CREATE);
    assert_ne!(inode(&mut play, file), first);
    assert_ne!(first, 0);
    play.check();
    play.end();
}

#[test]
fn only_files_that_keep_what_is_written_can_be_told_to() {
    let mut play = Play::new(4096);
    let refused = |error: Errno| i64::from(-error.into_raw());
    for (path, flags, expected) in [
        ("/tmp/f", CREATE, 0),
        ("/tmp", 0, 0),
        ("/dev/null", 0, refused(Errno::EINVAL)),
        ("/proc/version", 0, refused(Errno::EINVAL)),
        ("/tmp/f", PATH_ONLY, refused(Errno::EBADF)),
    ] {
        let file = open(&mut play, path, flags);
        for keeps in [Sysno::fsync, Sysno::fdatasync] {
            assert_eq!(call(&mut play, keeps, &[file]), expected, "{path}");
        }
    }
    assert_eq!(call(&mut play, Sysno::pipe2, &[DATA, 0]), 0);
    let mut pipe = [0; 4];
    play.read(1, DATA, &mut pipe);
    assert_eq!(call(&mut play, Sysno::fsync, &[u32::from_le_bytes(pipe).into()]), refused(Errno::EINVAL));
    assert_eq!(call(&mut play, Sysno::fsync, &[99]), refused(Errno::EBADF));
}
