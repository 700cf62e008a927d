//! `/proc/PID/mem`, and other writes by force, as hostile programs use them.

mod support;

use support::Play;
use tench_linux_calls::Sysno;
use tench_linux_files::Errno;
use tench_linux_memory::MAX_AREAS;

/// Where paths and records lie in the program's data.
const PATH: u64 = 0x20_1100;
const RECORD: u64 = 0x20_1300;
const VECTORS: u64 = 0x20_1400;
/// The program's code, which it may only read.
const CODE: u64 = 0x20_0000;
/// The page that all programs share, until they write to it by force.
const SHARED_CODE: u64 = 0x7fff_ffff_f000;
const HERE: u64 = (-100i64).cast_unsigned();
const FORK: u64 = 17;
const SHARES_MEMORY: u64 = 0x100 | 17;
const PRIVATE: u64 = 0x22;
const ANYWHERE: u64 = u64::MAX;
const READ: u64 = 1;
const WRITE: u64 = 3;
/// The most that one call transfers.
const MOST: u64 = 1 << 20;

type Outcome = Result<u64, Errno>;

fn call(play: &mut Play, id: u32, call: Sysno, arguments: &[u64]) -> Outcome {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    let result = play.call(id, call as u64, all).expect("the call does not wait").cast_signed();
    if result < 0 { Err(Errno::new(-result as i32)) } else { Ok(result.cast_unsigned()) }
}

fn path(play: &mut Play, id: u32, path: &str) -> u64 {
    assert_eq!(play.write(id, PATH, path.as_bytes()), path.len());
    assert_eq!(play.write(id, PATH + path.len() as u64, &[0]), 1);
    PATH
}

fn open(play: &mut Play, id: u32, name: &str, flags: u64) -> Outcome {
    let path = path(play, id, name);
    call(play, id, Sysno::openat, &[HERE, path, flags, 0o777])
}

fn map(play: &mut Play, id: u32, length: u64, rights: u64) -> u64 {
    call(play, id, Sysno::mmap, &[0, length, rights, PRIVATE, ANYWHERE, 0]).unwrap()
}

fn bytes(play: &mut Play, id: u32, address: u64) -> [u8; 4] {
    let mut bytes = [0; 4];
    assert_eq!(play.read(id, address, &mut bytes), 4);
    bytes
}

fn areas(play: &mut Play, id: u32) -> usize {
    let space = play.process_of(id).unwrap().space;
    play.instance.system.spaces.get(space).space.areas().count()
}

#[test]
fn one_call_does_not_copy_for_long() {
    let mut play = Play::new(8192);
    let (from, to) = (map(&mut play, 1, 4 * MOST, WRITE), map(&mut play, 1, 4 * MOST, READ));
    let file = open(&mut play, 1, "/proc/self/mem", 2).unwrap();
    assert_eq!(call(&mut play, 1, Sysno::pread64, &[file, from, 4 * MOST, to]), Ok(MOST));
    assert_eq!(call(&mut play, 1, Sysno::pwrite64, &[file, from, 4 * MOST, to]), Ok(MOST));
    let vectors: Vec<u64> = [from, MOST / 4 - 1].repeat(8);
    play.put(1, VECTORS, &vectors);
    assert_eq!(call(&mut play, 1, Sysno::preadv, &[file, VECTORS, 8, to, 0]), Ok(MOST));
    assert_eq!(call(&mut play, 1, Sysno::pwritev, &[file, VECTORS, 8, to, 0]), Ok(MOST));
    assert_eq!(call(&mut play, 1, Sysno::lseek, &[file, to, 0]), Ok(to));
    assert_eq!(call(&mut play, 1, Sysno::writev, &[file, VECTORS, 8]), Ok(MOST));
    assert_eq!(call(&mut play, 1, Sysno::lseek, &[file, 0, 1]), Ok(to + MOST));
    // From a file.
    let source = open(&mut play, 1, "/tmp/file", 0o102).unwrap();
    assert_eq!(call(&mut play, 1, Sysno::ftruncate, &[source, 4 * MOST]), Ok(0));
    assert_eq!(call(&mut play, 1, Sysno::lseek, &[file, to, 0]), Ok(to));
    assert_eq!(call(&mut play, 1, Sysno::sendfile, &[file, source, 0, 4 * MOST]), Ok(MOST));
    // It tries once more, to learn whether the file has room.
    assert_eq!(call(&mut play, 1, Sysno::sendfile, &[source, file, 0, 8 * MOST]), Ok(2 * MOST));
    play.check();
    play.end();
}

#[test]
fn writes_by_force_leave_no_areas() {
    const PAGES: u64 = 64;
    let mut play = Play::new(4096);
    let place = map(&mut play, 1, PAGES << 12, READ);
    let stack = call(&mut play, 1, Sysno::mmap, &[0, 0x4000, READ, PRIVATE | 0x100, ANYWHERE, 0]).unwrap();
    let file = open(&mut play, 1, "/proc/self/mem", 2).unwrap();
    let count = areas(&mut play, 1);
    for page in (0..PAGES).step_by(2).chain((1..PAGES).step_by(2)) {
        let inside = if page == PAGES - 1 { 6 } else { 8 };
        assert_eq!(call(&mut play, 1, Sysno::pwrite64, &[file, CODE, 8, place + (page << 12) + 4090]), Ok(inside));
        assert_eq!(areas(&mut play, 1), count);
    }
    for page in 0..4 {
        assert_eq!(call(&mut play, 1, Sysno::pwrite64, &[file, CODE, 8, stack + (page << 12)]), Ok(8));
        assert_eq!(areas(&mut play, 1), count);
    }
    play.check();
    // With as many areas as there may be, nothing is divided any more.
    while areas(&mut play, 1) < MAX_AREAS - 2 {
        let place = areas(&mut play, 1) as u64 * 0x4000 + 0x10_0000_0000;
        assert_eq!(call(&mut play, 1, Sysno::mmap, &[place, 4096, READ, PRIVATE | 16, ANYWHERE, 0]), Ok(place));
    }
    assert_eq!(call(&mut play, 1, Sysno::pwrite64, &[file, CODE, 8, place + 0x2000]), Ok(8));
    for free in [1, 0] {
        let next = areas(&mut play, 1) as u64 * 0x4000 + 0x10_0000_0000;
        assert_eq!(call(&mut play, 1, Sysno::mmap, &[next, 4096, READ, PRIVATE | 16, ANYWHERE, 0]), Ok(next));
        assert_eq!(call(&mut play, 1, Sysno::pwrite64, &[file, CODE, 8, place + 0x2000]), Err(Errno::EIO), "{free}");
    }
    play.check();
    play.end();
}

#[test]
fn nobody_else_sees_what_is_written_by_force() {
    let mut play = Play::new(4096);
    let before = bytes(&mut play, 1, SHARED_CODE);
    assert_eq!(&before, b"\x7fELF");
    let child = call(&mut play, 1, Sysno::clone, &[FORK]).unwrap() as u32;
    let file = open(&mut play, child, "/proc/self/mem", 2).unwrap();
    for address in [SHARED_CODE, CODE] {
        assert_eq!(call(&mut play, child, Sysno::pwrite64, &[file, RECORD, 4, address]), Ok(4));
        assert_eq!(bytes(&mut play, child, address), [0; 4]);
    }
    // The rights of the page can be changed, too.
    let other = call(&mut play, 1, Sysno::clone, &[FORK]).unwrap() as u32;
    assert_eq!(call(&mut play, other, Sysno::mprotect, &[SHARED_CODE, 4096, WRITE]), Ok(0));
    assert_eq!(play.write(other, SHARED_CODE, b"1234"), 4);
    assert_eq!(bytes(&mut play, 1, SHARED_CODE), before);
    assert_eq!(&bytes(&mut play, 1, CODE), b"\x7fELF");
    // Nor a program that is started afterwards, by whoever has written.
    for id in [child, other] {
        let path = path(&mut play, id, "/bin/program");
        play.call(id, Sysno::execve as u64, [path, 0, 0, 0, 0, 0]);
        assert_eq!(bytes(&mut play, id, SHARED_CODE), before);
        assert_eq!(&bytes(&mut play, id, CODE), b"\x7fELF");
    }
    play.check();
    play.end();
}

#[test]
fn files_that_may_only_be_read_are_not_written_by_force() {
    const SHARED: u64 = 1;
    let mut play = Play::new(4096);
    let file = open(&mut play, 1, "/proc/self/mem", 2).unwrap();
    let program = open(&mut play, 1, "/bin/program", 0).unwrap();
    let place = call(&mut play, 1, Sysno::mmap, &[0, 0x2000, READ, SHARED, program, 0]).unwrap();
    for address in [place, place + 0xffc] {
        assert_eq!(call(&mut play, 1, Sysno::pwrite64, &[file, RECORD, 8, address]), Err(Errno::EIO));
    }
    // Memory that is sealed after it was mapped, and memory that is shared and was made unwritable.
    let name = path(&mut play, 1, "name");
    let sealed = call(&mut play, 1, Sysno::memfd_create, &[name, 2]).unwrap();
    assert_eq!(call(&mut play, 1, Sysno::ftruncate, &[sealed, 0x1000]), Ok(0));
    assert_eq!(call(&mut play, 1, Sysno::fcntl, &[sealed, 1033, 8]), Ok(0));
    let of_sealed = call(&mut play, 1, Sysno::mmap, &[0, 0x1000, READ, SHARED, sealed, 0]).unwrap();
    let shared = call(&mut play, 1, Sysno::mmap, &[0, 0x1000, READ, SHARED | 0x20, ANYWHERE, 0]).unwrap();
    for address in [of_sealed, shared] {
        assert_eq!(call(&mut play, 1, Sysno::pwrite64, &[file, CODE, 4, address]), Err(Errno::EIO));
        assert_eq!(bytes(&mut play, 1, address), [0; 4]);
    }
    // Between what may be written and what may not, a write ends.
    let both = map(&mut play, 1, 0x3000, WRITE);
    call(&mut play, 1, Sysno::mmap, &[both + 0x1000, 0x1000, READ, SHARED | 0x30, ANYWHERE, 0]).unwrap();
    assert_eq!(call(&mut play, 1, Sysno::pwrite64, &[file, CODE, 0x1000, both + 0x800]), Ok(0x800));
    // A private copy belongs to the process; beyond the end of its file is nothing.
    let private = call(&mut play, 1, Sysno::mmap, &[0, 0x4000, READ, 2, program, 0]).unwrap();
    assert_eq!(call(&mut play, 1, Sysno::pwrite64, &[file, RECORD, 8, private]), Ok(8));
    assert_eq!(call(&mut play, 1, Sysno::pwrite64, &[file, RECORD, 8, private + 0x2000]), Err(Errno::EIO));
    assert_eq!(&bytes(&mut play, 1, place), b"\x7fELF");
    play.check();
    play.end();
}

#[test]
fn offsets_and_lengths_at_their_limits_are_harmless() {
    let mut play = Play::new(4096);
    let file = open(&mut play, 1, "/proc/self/mem", 2).unwrap();
    let other = open(&mut play, 1, "/tmp/file", 0o102).unwrap();
    let last = i64::MAX.cast_unsigned();
    play.put(1, VECTORS, &[RECORD, last, RECORD, 0, 1 << 47, 1]);
    for offset in [0, 1, CODE, (1 << 47) - 1, 1 << 47, 1 << 62, last - 1, last, last + 1, u64::MAX - 1, u64::MAX] {
        for length in [0, 1, 8, 1 << 31, last, u64::MAX] {
            for transfer in [Sysno::pread64, Sysno::pwrite64] {
                _ = call(&mut play, 1, transfer, &[file, RECORD, length, offset]);
            }
            _ = call(&mut play, 1, Sysno::lseek, &[file, offset, 0]);
            _ = call(&mut play, 1, Sysno::write, &[file, RECORD, length]);
            _ = call(&mut play, 1, Sysno::lseek, &[file, offset, 0]);
            _ = call(&mut play, 1, Sysno::read, &[file, RECORD, length.min(8)]);
            play.put(1, VECTORS, &[RECORD, length, RECORD, 0, 1 << 47, 1, offset]);
            for transfer in [Sysno::preadv2, Sysno::pwritev2] {
                _ = call(&mut play, 1, transfer, &[file, VECTORS, 3, offset, 0, 0]);
            }
            _ = call(&mut play, 1, Sysno::sendfile, &[other, file, VECTORS + 48, length.min(0x1_0000)]);
            _ = call(&mut play, 1, Sysno::sendfile, &[file, other, 0, length]);
            _ = call(&mut play, 1, Sysno::copy_file_range, &[file, VECTORS + 48, other, 0, length, 0]);
            _ = call(&mut play, 1, Sysno::mmap, &[0, 4096, READ, 2, file, offset & !0xfff]);
        }
    }
    for refused in [Sysno::ftruncate, Sysno::fallocate, Sysno::fsync] {
        _ = call(&mut play, 1, refused, &[file, 0, 0, 8]);
    }
    play.check();
    play.end();
}

#[test]
fn an_open_file_gives_no_power_over_other_users() {
    let mut play = Play::new(4096);
    let victim = call(&mut play, 1, Sysno::clone, &[FORK]).unwrap() as u32;
    let enemy = call(&mut play, 1, Sysno::clone, &[FORK]).unwrap() as u32;
    // A file that the enemy has from its days as the super-user.
    let old = open(&mut play, enemy, &format!("/proc/{victim}/mem"), 2).unwrap();
    assert_eq!(call(&mut play, enemy, Sysno::setuid, &[7]), Ok(0));
    assert_eq!(call(&mut play, enemy, Sysno::pwrite64, &[old, RECORD, 4, CODE]), Err(Errno::EACCES));
    assert_eq!(call(&mut play, enemy, Sysno::pread64, &[old, RECORD, 4, CODE]), Err(Errno::EACCES));
    for flags in [0, 1, 2] {
        assert!(open(&mut play, enemy, &format!("/proc/{victim}/mem"), flags).is_err());
        assert!(open(&mut play, enemy, &format!("/proc/{victim}/task/{victim}/mem"), flags).is_err());
    }
    // A path gives none, nor does opening it again.
    let only_path = open(&mut play, enemy, &format!("/proc/{victim}/task/{victim}/mem"), 0o1000_0000);
    if let Ok(only_path) = only_path {
        assert!(open(&mut play, enemy, &format!("/proc/self/fd/{only_path}"), 2).is_err());
        assert_eq!(call(&mut play, enemy, Sysno::pread64, &[only_path, RECORD, 4, CODE]), Err(Errno::EBADF));
    }
    assert_eq!(&bytes(&mut play, victim, CODE), b"\x7fELF");
    // One that shares its memory with a process of more power has that process's, and is not dumpable.
    let shares = call(&mut play, victim, Sysno::clone, &[SHARES_MEMORY, 0x20_4000]).unwrap() as u32;
    assert_eq!(call(&mut play, shares, Sysno::setuid, &[7]), Ok(0));
    assert!(open(&mut play, enemy, &format!("/proc/{shares}/mem"), 2).is_err());
    // What has ended has no memory.
    play.call(victim, Sysno::exit_group as u64, [0; 6]);
    for id in [1, enemy] {
        if let Ok(ended) = open(&mut play, id, &format!("/proc/{victim}/mem"), 2) {
            assert_eq!(call(&mut play, id, Sysno::pread64, &[ended, RECORD, 4, CODE]), Ok(0));
        }
    }
    assert_eq!(&bytes(&mut play, shares, CODE), b"\x7fELF");
    play.check();
    play.end();
}

#[test]
fn an_open_file_does_not_outlive_its_program() {
    let mut play = Play::new(4096);
    let child = call(&mut play, 1, Sysno::clone, &[FORK]).unwrap() as u32;
    let file = open(&mut play, 1, &format!("/proc/{child}/mem"), 2).unwrap();
    let own = open(&mut play, child, "/proc/self/mem", 2).unwrap();
    let copy = call(&mut play, child, Sysno::dup, &[own]).unwrap();
    for round in 0..3 {
        let path = path(&mut play, child, "/bin/program");
        play.call(child, Sysno::execve as u64, [path, 0, 0, 0, 0, 0]);
        play.put(child, RECORD, &[0]);
        for name in [own, copy] {
            assert_eq!(call(&mut play, child, Sysno::pwrite64, &[name, RECORD, 4, CODE]), Ok(0), "{round}");
        }
        assert_eq!(call(&mut play, 1, Sysno::pwrite64, &[file, RECORD, 4, CODE]), Ok(0));
        assert_eq!(&bytes(&mut play, child, CODE), b"\x7fELF");
    }
    // Another process that gets the number has nothing to do with it.
    play.call(child, Sysno::exit_group as u64, [0; 6]);
    assert_eq!(call(&mut play, 1, Sysno::wait4, &[child.into(), 0, 0, 0]), Ok(child.into()));
    let mut tries = 0;
    while call(&mut play, 1, Sysno::clone, &[FORK]).unwrap() as u32 != child && tries < 40 {
        tries += 1;
    }
    assert_eq!(call(&mut play, 1, Sysno::pwrite64, &[file, RECORD, 4, CODE]), Ok(0));
    play.check();
    play.end();
}

#[test]
fn writes_by_force_end_when_memory_is_short() {
    let mut play = Play::new(1024);
    let place = map(&mut play, 1, 8 << 20, READ);
    let file = open(&mut play, 1, "/proc/self/mem", 2).unwrap();
    let count = areas(&mut play, 1);
    let mut done = 0;
    let error = loop {
        let length = (8 << 20) - done;
        match call(&mut play, 1, Sysno::pwrite64, &[file, place, length.min(0x3_0000), place + done]) {
            Ok(0) | Err(_) if length == 0 => panic!("there is memory"),
            Ok(written) => done += written,
            Err(error) => break error,
        }
        play.check();
    };
    assert_eq!((error, areas(&mut play, 1)), (Errno::EIO, count));
    assert!(!play.touch(1, place, tench_linux_memory::Access::Write), "it still may only be read");
    play.instance.system.memory.hardware.set_can_allocate(|_| false);
    assert_eq!(call(&mut play, 1, Sysno::pwrite64, &[file, RECORD, 8, place + done]), Err(Errno::EIO));
    assert_eq!(call(&mut play, 1, Sysno::pwrite64, &[file, RECORD, 8, place]), Ok(8), "what is there stays");
    assert_eq!(areas(&mut play, 1), count);
    play.check();
    play.end();
}
