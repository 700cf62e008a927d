//! `/proc` and `/sys`, as programs see them.

mod support;

use std::collections::{BTreeMap, BTreeSet};

use procfs_core::FromRead;
use procfs_core::process::{MMapPath, MemoryMaps, Stat, StatM, Status};
use support::Play;
use tench_linux_calls::Sysno;
use tench_linux_files::Errno;
use tench_random::Random;

/// Where paths lie in the program's data, what calls write, and a second path.
const PATH: u64 = 0x20_1100;
const RESULT: u64 = 0x20_2000;
const OTHER_PATH: u64 = 0x20_1300;
/// Number of bytes that calls may write.
const RESULT_SIZE: u64 = 0x3000;

const HERE: u64 = (-100i64).cast_unsigned();
const PATH_ONLY: u64 = 0o1000_0000;
const DIRECTORY: u64 = 0o4_0000;
const NO_FOLLOW: u64 = 0o10_0000;

type Outcome<T = u64> = Result<T, Errno>;

/// A process in a play.
struct Actor<'a> {
    play: &'a mut Play,
    id: u32,
}

impl Actor<'_> {
    fn call(&mut self, call: Sysno, arguments: &[u64]) -> Outcome {
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        let result = self.play.call(self.id, call as u64, all).expect("the call does not wait").cast_signed();
        if result < 0 { Err(Errno::new(-result as i32)) } else { Ok(result.cast_unsigned()) }
    }

    fn put(&mut self, address: u64, bytes: &[u8]) {
        let space = self.play.process_of(self.id).unwrap().space;
        let system = &mut self.play.instance.system;
        assert_eq!(system.write(space, address, bytes), bytes.len());
    }

    fn path(&mut self, path: &str) -> u64 {
        self.put(PATH, path.as_bytes());
        self.put(PATH + path.len() as u64, &[0]);
        PATH
    }

    fn result(&mut self, length: u64) -> Vec<u8> {
        let mut bytes = vec![0; length as usize];
        let space = self.play.process_of(self.id).unwrap().space;
        let system = &mut self.play.instance.system;
        assert_eq!(system.read(space, RESULT, &mut bytes), bytes.len());
        bytes
    }

    fn open(&mut self, path: &str, flags: u64) -> Outcome {
        let path = self.path(path);
        self.call(Sysno::openat, &[HERE, path, flags, 0o644])
    }

    fn close(&mut self, file: u64) {
        assert_eq!(self.call(Sysno::close, &[file]), Ok(0));
    }

    /// Reads a file from where it is in parts of so many bytes.
    fn read_on(&mut self, file: u64, part: u64) -> Outcome<Vec<u8>> {
        let mut all = Vec::new();
        loop {
            let count = self.call(Sysno::read, &[file, RESULT, part])?;
            if count == 0 {
                return Ok(all);
            }
            all.extend(self.result(count));
        }
    }

    fn read(&mut self, path: &str) -> Outcome<Vec<u8>> {
        let file = self.open(path, 0)?;
        let contents = self.read_on(file, RESULT_SIZE);
        self.close(file);
        contents
    }

    fn text(&mut self, path: &str) -> String {
        let contents = self.read(path).unwrap_or_else(|error| panic!("{path}: {error}"));
        String::from_utf8(contents).unwrap()
    }

    fn write(&mut self, path: &str, text: &[u8]) -> Outcome {
        let file = self.open(path, 1)?;
        self.put(RESULT, text);
        let result = self.call(Sysno::write, &[file, RESULT, text.len() as u64]);
        self.close(file);
        result
    }

    fn link(&mut self, path: &str) -> Outcome<String> {
        let path = self.path(path);
        let length = self.call(Sysno::readlinkat, &[HERE, path, RESULT, RESULT_SIZE])?;
        Ok(String::from_utf8(self.result(length)).unwrap())
    }

    /// Returns device, inode, mode, links, length.
    fn status(&mut self, path: &str, follows: bool) -> Outcome<[u64; 5]> {
        let path = self.path(path);
        self.call(Sysno::fstatat, &[HERE, path, RESULT, if follows { 0 } else { 0x100 }])?;
        let record = self.result(128);
        let word = |at: usize| u64::from_le_bytes(*record[at..].first_chunk().unwrap());
        let half = |at: usize| u64::from(u32::from_le_bytes(*record[at..].first_chunk().unwrap()));
        Ok([word(0), word(8), half(16), half(20), word(48)])
    }

    /// Returns the names, inodes and types of a directory's entries, read with buffers of so many bytes.
    fn entries(&mut self, path: &str, buffer: u64) -> Outcome<Vec<(String, u64, u8)>> {
        let file = self.open(path, DIRECTORY)?;
        let mut all = Vec::new();
        loop {
            let count = match self.call(Sysno::getdents64, &[file, RESULT, buffer]) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) => {
                    self.close(file);
                    return Err(error);
                }
            };
            let records = self.result(count);
            let mut at = 0;
            while at < records.len() {
                let length = u16::from_le_bytes([records[at + 16], records[at + 17]]) as usize;
                let name = records[at + 19..at + length].split(|byte| *byte == 0).next().unwrap();
                let inode = u64::from_le_bytes(*records[at..].first_chunk().unwrap());
                all.push((String::from_utf8(name.to_vec()).unwrap(), inode, records[at + 18]));
                at += length;
            }
        }
        self.close(file);
        Ok(all)
    }

    fn names(&mut self, path: &str) -> Vec<String> {
        self.entries(path, RESULT_SIZE).unwrap().into_iter().map(|(name, ..)| name).collect()
    }

    fn fork(&mut self) -> u32 {
        self.call(Sysno::clone, &[17]).unwrap() as u32
    }
}

fn first(play: &mut Play) -> Actor<'_> {
    Actor { play, id: 1 }
}

fn parsed<T: FromRead>(text: &[u8]) -> T {
    T::from_read(text).unwrap_or_else(|error| panic!("{}: {error:?}", String::from_utf8_lossy(text)))
}

#[test]
fn a_process_finds_itself() {
    let mut play = Play::new(1024);
    let mut one = first(&mut play);
    assert_eq!(one.link("/proc/self"), Ok("1".into()));
    assert_eq!(one.link("/proc/thread-self"), Ok("1/task/1".into()));
    assert_eq!(one.link("/proc/self/exe"), Ok("/bin/program".into()));
    assert_eq!(one.link("/proc/1/cwd"), Ok("/".into()));
    assert_eq!(one.link("/proc/mounts"), Ok("self/mounts".into()));
    assert_eq!(one.read("/proc/self/cmdline"), Ok(b"program\0".to_vec()));
    assert_eq!(one.read("/proc/thread-self/environ"), Ok(b"A=b\0".to_vec()));
    assert_eq!(one.text("/proc/self/comm"), "program\n");
    let auxiliary = one.read("/proc/self/auxv").unwrap();
    assert_eq!(auxiliary.len() % 16, 0);
    assert!(auxiliary.ends_with(&[0; 16]) && auxiliary.starts_with(&16u64.to_le_bytes()), "AT_HWCAP … AT_NULL");
    let child = one.fork();
    let mut other = Actor { play: &mut play, id: child };
    assert_eq!(other.link("/proc/self"), Ok(child.to_string()));
    let stat: Stat = parsed(&other.read("/proc/self/stat").unwrap());
    assert_eq!((stat.pid, stat.ppid, stat.pgrp, stat.tty_nr), (child as i32, 1, 1, 0x501));
    assert_eq!((&*stat.comm, stat.state, stat.flags, stat.num_threads), ("program", 'R', 0x40, 1));
    assert_eq!(stat.exit_signal, Some(17));
    assert_eq!((stat.startcode, stat.endcode), (0x20_0000, 0x20_1000));
    assert_eq!((stat.start_data, stat.end_data), (Some(0x20_1000), Some(0x20_1800)));
    assert_eq!(other.names("/proc"), {
        let mut all = first(&mut play).names("/proc");
        assert_eq!(all.pop(), Some(child.to_string()));
        assert_eq!(all.last().map(String::as_str), Some("1"));
        all.push(child.to_string());
        all
    });
    play.end();
}

#[test]
fn titles_that_programs_give_themselves_are_shown() {
    let mut play = Play::new(1024);
    let mut one = first(&mut play);
    let stat: Stat = parsed(&one.read("/proc/1/stat").unwrap());
    let (arguments, environment) = (stat.arg_start.unwrap(), stat.env_end.unwrap());
    assert_eq!((stat.arg_end, environment - arguments), (stat.env_start, 12));
    one.put(arguments, b"longtitle\0");
    assert_eq!(one.read("/proc/1/cmdline"), Ok(b"longtitle".to_vec()));
    play.end();
}

#[test]
fn files_are_made_anew_at_their_beginning() {
    let mut play = Play::new(1024);
    let mut one = first(&mut play);
    let file = one.open("/proc/uptime", 0).unwrap();
    assert_eq!(one.call(Sysno::read, &[file, RESULT, 2]), Ok(2));
    one.play.instance.system.memory.hardware.time += std::time::Duration::from_secs(98);
    assert_eq!(one.read_on(file, 3), Ok(b"00 1.00\n".to_vec()), "the rest of what was read");
    assert_eq!(one.call(Sysno::lseek, &[file, 0, 0]), Ok(0));
    assert_eq!(one.read_on(file, 3), Ok(b"99.00 99.00\n".to_vec()));
    one.play.instance.system.memory.hardware.time += std::time::Duration::from_secs(1);
    assert_eq!(one.call(Sysno::pread64, &[file, RESULT, 5, 0]), Ok(5));
    one.play.instance.system.memory.hardware.time += std::time::Duration::from_secs(1);
    assert_eq!(one.call(Sysno::pread64, &[file, RESULT, 3, 5]), Ok(3));
    assert_eq!(one.result(3), b"0 1", "it goes on behind what was read last");
    assert_eq!(one.call(Sysno::pread64, &[file, RESULT, 100, 7]), Ok(7));
    assert_eq!(one.result(7), b"101.00\n", "elsewhere it is made anew");
    assert_eq!(one.call(Sysno::pread64, &[file, RESULT, 1, 0]), Ok(1));
    one.play.instance.system.memory.hardware.time += std::time::Duration::from_secs(1);
    assert_eq!(one.call(Sysno::pread64, &[file, RESULT, 100, 7]), Ok(7));
    assert_eq!(one.result(7), b"102.00\n", "farther on, too");
    assert_eq!(one.call(Sysno::lseek, &[file, 0, 2]), Err(Errno::EINVAL));
    assert_eq!(one.call(Sysno::mmap, &[0, 4096, 1, 2, file, 0]), Err(Errno::ENODEV));
    play.end();
}

#[test]
fn links_of_descriptors_lead_to_what_is_open() {
    let mut play = Play::new(1024);
    let mut one = first(&mut play);
    let file = one.open("/tmp/a", 0o102).unwrap();
    let path = format!("/proc/self/fd/{file}");
    assert_eq!(one.link("/proc/self/fd/0"), Ok("/dev/console".into()));
    assert_eq!(one.link(&path), Ok("/tmp/a".into()));
    assert_eq!(one.status(&path, false).unwrap()[2..], [0o12_0700, 1, 64]);
    assert_eq!(one.status(&path, true), one.status("/tmp/a", true));
    one.put(RESULT, b"hello");
    assert_eq!(one.call(Sysno::write, &[file, RESULT, 5]), Ok(5));
    assert_eq!(one.read(&path), Ok(b"hello".to_vec()), "it is opened anew, with a position of its own");
    assert_eq!(one.read(&format!("/dev/fd/{file}")), Ok(b"hello".to_vec()));
    assert_eq!(one.text(&format!("/proc/self/fdinfo/{file}")).lines().next(), Some("pos:\t5"));
    // The file gets another name, and none.
    one.put(OTHER_PATH, b"/tmp/b\0");
    let old = one.path("/tmp/a");
    assert_eq!(one.call(Sysno::renameat, &[HERE, old, HERE, OTHER_PATH]), Ok(0));
    assert_eq!(one.link(&path), Ok("/tmp/b".into()));
    assert_eq!(one.call(Sysno::unlinkat, &[HERE, OTHER_PATH, 0]), Ok(0));
    assert_eq!(one.link(&path), Ok("/tmp/b (deleted)".into()));
    assert_eq!(one.read(&path), Ok(b"hello".to_vec()), "it is still there");
    // Pipes, directories, and files of /proc itself.
    assert_eq!(one.call(Sysno::pipe2, &[RESULT, 0]), Ok(0));
    let ends = one.result(8);
    let [reader, writer] = [ends[0], ends[4]];
    let inode = one.status(&format!("/proc/self/fd/{reader}"), true).unwrap()[1];
    assert_eq!(one.link(&format!("/proc/self/fd/{reader}")), Ok(format!("pipe:[{inode}]")));
    assert_eq!(one.status(&format!("/proc/self/fd/{writer}"), false).unwrap()[2], 0o12_0300);
    // A pipe without a name is opened at once, even if nobody else has it open.
    one.close(writer.into());
    let reader_too = one.open(&format!("/dev/fd/{reader}"), 0).unwrap();
    assert_eq!(one.read_on(reader_too, 10), Ok(Vec::new()));
    let directory = one.open("/proc/self/task", DIRECTORY).unwrap();
    assert_eq!(one.link(&format!("/proc/self/fd/{directory}")), Ok("/proc/1/task".into()));
    assert_eq!(one.read(&format!("/proc/self/fd/{directory}/1/comm")), Ok(b"program\n".to_vec()));
    for path in ["/proc/uptime", "/proc/self/stat", "/proc/self/fdinfo/0"] {
        let file = one.open(path, 0).unwrap();
        assert_eq!(one.call(Sysno::getdents64, &[file, RESULT, 100]), Err(Errno::ENOTDIR), "{path}");
    }
    assert_eq!(one.link("/proc/self/fd/99"), Err(Errno::ENOENT));
    assert_eq!(one.link("/proc/self/fd/00"), Err(Errno::ENOENT), "numbers are written in one way only");
    play.end();
}

#[test]
fn one_call_reads_a_mebibyte_at_most() {
    const MEBIBYTE: u64 = 1 << 20;
    let mut play = Play::new(4096);
    let mut one = first(&mut play);
    let memory = one.call(Sysno::mmap, &[0, 3 * MEBIBYTE, 3, 0x22, u64::MAX, 0]).unwrap();
    let file = one.open("/proc/self/pagemap", 0).unwrap();
    assert_eq!(one.call(Sysno::pread64, &[file, memory, MEBIBYTE - 8, 0]), Ok(MEBIBYTE - 8));
    assert_eq!(one.call(Sysno::pread64, &[file, memory, 2 * MEBIBYTE, 0]), Ok(MEBIBYTE));
    play.check();
}

#[test]
fn nothing_can_be_changed_but_what_may() {
    let mut play = Play::new(1024);
    let mut one = first(&mut play);
    let child = one.fork();
    assert_eq!(one.write("/proc/self/comm", b"a new name which is long"), Ok(24));
    assert_eq!(one.text("/proc/self/comm"), "a new name whic\n");
    assert_eq!(one.write(&format!("/proc/{child}/comm"), b"x"), Err(Errno::EINVAL));
    assert_eq!(one.write(&format!("/proc/{child}/oom_score_adj"), b"-17\n"), Ok(4));
    assert_eq!(one.text(&format!("/proc/{child}/oom_score_adj")), "-17\n");
    for bad in [&b"1001"[..], b" ", b"x", b"-1001", b"99999999999999999999"] {
        assert_eq!(one.write("/proc/self/oom_score_adj", bad), Err(Errno::EINVAL));
    }
    assert_eq!(one.text("/proc/self/oom_score_adj"), "0\n");
    for (path, error) in [
        ("/proc/cpuinfo", Errno::EIO),
        ("/proc/self/stat", Errno::EINVAL),
        ("/proc/self/fdinfo/0", Errno::EINVAL),
        ("/proc/sys/kernel/osrelease", Errno::EACCES),
        ("/sys/devices/system/cpu/online", Errno::EACCES),
        ("/proc/self", Errno::EISDIR),
    ] {
        assert_eq!(one.write(path, b"x"), Err(error), "{path}");
    }
    let call = |one: &mut Actor<'_>, call, path: &str, rest: &[u64]| {
        let path = one.path(path);
        one.call(call, &[&[HERE, path][..], rest].concat())
    };
    one.put(OTHER_PATH, b"/proc/x\0");
    assert_eq!(one.open("/proc/x", 0o101), Err(Errno::ENOENT));
    assert_eq!(call(&mut one, Sysno::mkdirat, "/proc/x", &[0o755]), Err(Errno::ENOENT));
    assert_eq!(call(&mut one, Sysno::mkdirat, "/proc/self", &[0o755]), Err(Errno::EEXIST));
    assert_eq!(call(&mut one, Sysno::unlinkat, "/proc/cpuinfo", &[0]), Err(Errno::EPERM));
    assert_eq!(call(&mut one, Sysno::unlinkat, "/proc/1", &[0x200]), Err(Errno::EPERM));
    assert_eq!(call(&mut one, Sysno::unlinkat, "/proc/self", &[0x200]), Err(Errno::ENOTDIR));
    assert_eq!(call(&mut one, Sysno::unlinkat, "/proc", &[0x200]), Err(Errno::EBUSY));
    assert_eq!(call(&mut one, Sysno::renameat, "/proc", &[HERE, OTHER_PATH]), Err(Errno::EXDEV));
    assert_eq!(call(&mut one, Sysno::renameat, "/proc/cpuinfo", &[HERE, OTHER_PATH]), Err(Errno::ENOENT));
    assert_eq!(call(&mut one, Sysno::linkat, "/bin/program", &[HERE, OTHER_PATH, 0]), Err(Errno::EXDEV));
    assert_eq!(call(&mut one, Sysno::fchmodat, "/proc/1/stat", &[0o777]), Err(Errno::EPERM));
    assert_eq!(call(&mut one, Sysno::fchownat, "/proc/1/stat", &[5, 5, 0]), Err(Errno::EPERM));
    assert_eq!(call(&mut one, Sysno::utimensat, "/proc/1/stat", &[0, 0]), Err(Errno::EPERM));
    one.put(OTHER_PATH, b"/y\0");
    assert_eq!(call(&mut one, Sysno::renameat, "/sys", &[HERE, OTHER_PATH]), Err(Errno::EBUSY));
    assert_eq!(call(&mut one, Sysno::faccessat, "/proc/sys/vm/max_map_count", &[2]), Err(Errno::EACCES));
    assert_eq!(call(&mut one, Sysno::faccessat, "/proc/cpuinfo", &[2]), Ok(0));
    play.check();
    play.end();
}

#[test]
fn what_an_ended_process_leaves_is_found_by_nobody_else() {
    let mut play = Play::new(1024);
    let mut one = first(&mut play);
    let child = one.fork();
    let directory = one.open(&format!("/proc/{child}"), DIRECTORY).unwrap();
    let file = one.open(&format!("/proc/{child}/stat"), 0).unwrap();
    let kept = one.open(&format!("/proc/{child}/statm"), 0).unwrap();
    let path = one.path(&format!("/proc/{child}"));
    assert_eq!(one.call(Sysno::chdir, &[path]), Ok(0));
    assert_eq!(one.call(Sysno::read, &[kept, RESULT, 1]), Ok(1));
    play.call(child, Sysno::exit_group as u64, [3, 0, 0, 0, 0, 0]);
    let mut one = first(&mut play);
    let zombie: Stat = parsed(&one.read_on(file, RESULT_SIZE).unwrap());
    assert_eq!((zombie.state, zombie.vsize, zombie.exit_code), ('Z', 0, Some(3 << 8)));
    assert_eq!(one.read(&format!("/proc/{child}/cmdline")), Ok(Vec::new()));
    assert_eq!(one.link(&format!("/proc/{child}/exe")), Err(Errno::ENOENT));
    assert_eq!(one.names(&format!("/proc/{child}/fd")), [".", ".."]);
    assert_eq!(one.call(Sysno::wait4, &[u64::MAX, 0, 0, 0]), Ok(child.into()));
    assert_eq!(one.read(&format!("/proc/{child}/stat")), Err(Errno::ENOENT));
    assert_eq!(one.call(Sysno::pread64, &[file, RESULT, 100, 0]), Err(Errno::ESRCH));
    assert!(!one.read_on(kept, 100).unwrap().is_empty(), "what was read before stays");
    assert_eq!(one.call(Sysno::getdents64, &[directory, RESULT, RESULT_SIZE]), Err(Errno::ENOENT));
    let path = one.path("stat");
    assert_eq!(one.call(Sysno::openat, &[directory, path, 0, 0]), Err(Errno::ESRCH));
    assert_eq!(one.call(Sysno::fchdir, &[directory]), Err(Errno::ESRCH));
    assert_eq!(one.call(Sysno::getcwd, &[RESULT, 100]), Err(Errno::ENOENT));
    assert_eq!(one.link("cwd"), Err(Errno::ESRCH), "its own directory is gone");
    // Numbers begin anew, until another process has the same one.
    loop {
        let next = first(&mut play).fork();
        if next == child {
            break;
        }
        play.call(next, Sysno::exit_group as u64, [0; 6]);
        assert_eq!(first(&mut play).call(Sysno::wait4, &[u64::MAX, 0, 0, 0]), Ok(next.into()));
    }
    let mut one = first(&mut play);
    assert!(one.read(&format!("/proc/{child}/stat")).is_ok());
    assert_eq!(one.call(Sysno::pread64, &[file, RESULT, 100, 0]), Err(Errno::ESRCH), "that is somebody else");
    assert_eq!(one.open("stat", 0), Err(Errno::ESRCH));
    play.end();
}

#[test]
fn directories_of_processes_can_be_worked_in() {
    let mut play = Play::new(1024);
    let mut one = first(&mut play);
    let path = one.path("/proc/self/fd");
    assert_eq!(one.call(Sysno::chdir, &[path]), Ok(0));
    assert_eq!(one.call(Sysno::getcwd, &[RESULT, 100]), Ok(11));
    assert_eq!(one.result(11), b"/proc/1/fd\0");
    assert_eq!(one.link("../cwd"), Ok("/proc/1/fd".into()));
    assert_eq!(one.link("0"), Ok("/dev/console".into()));
    assert_eq!(one.read("../../../proc/self/comm"), Ok(b"program\n".to_vec()));
    let child = one.fork();
    let directory = one.open(&format!("/proc/{child}"), PATH_ONLY).unwrap();
    let name = one.path("cwd");
    let length = one.call(Sysno::readlinkat, &[directory, name, RESULT, 100]).unwrap();
    assert_eq!(one.result(length), b"/proc/1/fd");
    let link = one.open("/proc/self/exe", PATH_ONLY | NO_FOLLOW).unwrap();
    let empty = one.path("");
    assert_eq!(one.call(Sysno::readlinkat, &[link, empty, RESULT, 100]), Ok(12));
    assert_eq!(one.result(12), b"/bin/program");
    assert_eq!(one.open("/proc/self/exe", NO_FOLLOW), Err(Errno::ELOOP));
    assert_eq!(one.call(Sysno::fstatfs, &[directory, RESULT]), Ok(0));
    assert_eq!(one.result(8), 0x9fa0u64.to_le_bytes());
    let path = one.path("/sys");
    assert_eq!(one.call(Sysno::statfs, &[path, RESULT]), Ok(0));
    assert_eq!(one.result(8), 0x6265_6572u64.to_le_bytes());
    // A program is started by a link to it, and knows its path.
    let path = one.path("/proc/self/exe");
    assert_eq!(one.call(Sysno::execve, &[path, 0, 0]), Ok(0));
    assert_eq!(one.link("/proc/self/exe"), Ok("/bin/program".into()));
    play.end();
}

#[test]
fn memory_is_described() {
    let mut play = Play::new(1024);
    let mut one = first(&mut play);
    let file = one.open("/tmp/f", 0o102).unwrap();
    assert_eq!(one.call(Sysno::ftruncate, &[file, 0x3000]), Ok(0));
    let shared = one.call(Sysno::mmap, &[0, 0x2000, 3, 1, file, 0x1000]).unwrap();
    let anonymous = one.call(Sysno::mmap, &[0, 0x5000, 3, 0x21, u64::MAX, 0]).unwrap();
    let heap = one.call(Sysno::brk, &[0]).unwrap();
    assert_eq!(one.call(Sysno::brk, &[heap + 0x1800]), Ok(heap + 0x1800));
    // The first time, what was read makes a page of the program's own.
    one.read("/proc/self/statm").unwrap();
    let before: StatM = parsed(&one.read("/proc/self/statm").unwrap());
    one.put(shared, b"x");
    one.put(heap, b"y");
    let after: StatM = parsed(&one.read("/proc/self/statm").unwrap());
    assert_eq!((after.resident - before.resident, after.shared - before.shared), (2, 1));
    let text = one.read("/proc/self/maps").unwrap();
    let maps: MemoryMaps = parsed(&text);
    let maps: BTreeMap<u64, _> = maps.into_iter().map(|map| (map.address.0, map)).collect();
    let inode = one.status("/tmp/f", true).unwrap()[1];
    let found = &maps[&shared];
    assert_eq!((found.address.1, found.offset, found.inode), (shared + 0x2000, 0x1000, inode));
    assert_eq!((&found.pathname, found.dev), (&MMapPath::Path("/tmp/f".into()), (0, 1)));
    assert_eq!(found.perms.as_str(), "rw-s");
    assert_eq!(maps[&anonymous].pathname, MMapPath::Path("/dev/zero (deleted)".into()));
    // What is zero in the program lies before the heap, and is one area with it.
    let end = maps.values().find(|map| map.pathname == MMapPath::Heap).map(|map| map.address.1);
    assert_eq!(end, Some(heap + 0x2000));
    assert_eq!(maps[&0x20_0000].pathname, MMapPath::Path("/bin/program".into()));
    assert_eq!(maps[&0x20_0000].perms.as_str(), "r-xp");
    let stacks = maps.values().filter(|map| map.pathname == MMapPath::Stack).count();
    let codes = maps.values().filter(|map| map.pathname == MMapPath::Vdso).count();
    assert_eq!((stacks, codes), (1, 1));
    let size: u64 = maps.values().map(|map| (map.address.1 - map.address.0) / 4096).sum();
    assert_eq!(size, after.size);
    let status: Status = parsed(&one.read("/proc/self/status").unwrap());
    assert_eq!(status.vmsize, Some(4 * size));
    assert_eq!(status.vmrss, Some(4 * after.resident));
    // A file that is gone while it is mapped.
    let path = one.path("/tmp/f");
    assert_eq!(one.call(Sysno::unlinkat, &[HERE, path, 0]), Ok(0));
    assert!(String::from_utf8(one.read("/proc/self/maps").unwrap()).unwrap().contains(" (deleted)\n"));
    // Who has lent its memory still has it; a child of `vfork` has its parent's.
    let path = one.path("/proc/1/maps");
    let arguments = [0x4111, 0, 0, 0, 0, 0];
    assert_eq!(one.play.call(1, Sysno::clone as u64, arguments), None, "it waits");
    let child = play.running()[0];
    let mut other = Actor { play: &mut play, id: child };
    let file = other.call(Sysno::openat, &[HERE, path, 0, 0]).unwrap();
    let lent = other.read_on(file, RESULT_SIZE).unwrap();
    assert_eq!(lent, other.read("/proc/self/maps").unwrap());
    assert!(!lent.is_empty());
    play.call(child, Sysno::exit_group as u64, [0; 6]);
    play.end();
}

/// Sums over a walk.
#[derive(Debug, Default)]
struct Seen {
    files: usize,
    directories: usize,
    links: usize,
    gone: usize,
    inodes: BTreeMap<(u64, u64), String>,
}

/// Processes that come and go.
fn change(play: &mut Play, random: &mut Random) {
    let running = play.running();
    let who = running[random.below(running.len() as u64) as usize];
    match random.below(4) {
        0 if who != 1 && running.len() > 3 => drop(play.call(who, Sysno::exit_group as u64, [0; 6])),
        1 if running.len() < 6 => drop(play.call(who, Sysno::clone as u64, [17, 0, 0, 0, 0, 0])),
        2 => drop(play.call(1, Sysno::wait4 as u64, [u64::MAX, 0, 1, 0, 0, 0])),
        _ => drop(play.call(who, Sysno::dup as u64, [random.below(3), 0, 0, 0, 0, 0])),
    }
}

/// Reads everything below a directory, of which some may end meanwhile.
fn walk(play: &mut Play, random: &mut Random, directory: &str, seen: &mut Seen, depth: usize) {
    let mut one = first(play);
    let entries = match one.entries(directory, [200, RESULT_SIZE][random.below(2) as usize]) {
        Ok(entries) => entries,
        Err(Errno::ENOENT) => return seen.gone += 1,
        Err(error) => panic!("{directory}: {error}"),
    };
    let names: BTreeSet<&String> = entries.iter().map(|(name, ..)| name).collect();
    assert_eq!(names.len(), entries.len(), "{directory} has each name once");
    seen.directories += 1;
    for (name, inode, kind) in &entries {
        if name == "." || name == ".." {
            continue;
        }
        change(play, random);
        let path = format!("{directory}/{name}");
        let mut one = first(play);
        let [device, own_inode, mode, ..] = match one.status(&path, false) {
            Ok(status) => status,
            Err(Errno::ENOENT) => {
                seen.gone += 1;
                continue;
            }
            Err(error) => panic!("{path}: {error}"),
        };
        assert_eq!((own_inode, mode >> 12), (*inode, u64::from(*kind)), "{path}");
        let other = seen.inodes.insert((device, *inode), path.clone());
        assert!(other.is_none_or(|other| other == path), "{path} has the number of another file");
        match kind {
            4 if depth < 8 => walk(play, random, &path, seen, depth + 1),
            4 => panic!("{path} is deep"),
            10 => match one.link(&path) {
                Ok(target) => {
                    assert!(!target.is_empty(), "{path}");
                    seen.links += 1;
                }
                Err(Errno::ENOENT) => seen.gone += 1,
                Err(error) => panic!("{path}: {error}"),
            },
            // These files cover all addresses, and are too long to be read as a whole.
            8 if name == "pagemap" || name == "mem" => {}
            8 => read_in_parts(&mut one, random, &path, seen),
            other => panic!("{path} is of type {other}"),
        }
    }
}

/// Reads a file at once and in parts.
fn read_in_parts(one: &mut Actor<'_>, random: &mut Random, path: &str, seen: &mut Seen) {
    let file = match one.open(path, 0) {
        Ok(file) => file,
        Err(Errno::ENOENT) => return seen.gone += 1,
        Err(error) => panic!("{path}: {error}"),
    };
    let whole = one.read_on(file, RESULT_SIZE).unwrap_or_else(|error| panic!("{path}: {error}"));
    assert_eq!(one.call(Sysno::lseek, &[file, 0, 0]), Ok(0));
    // Reading may have touched memory, which shows.
    let mut again = one.read_on(file, RESULT_SIZE).unwrap();
    let is_random = path.ends_with("/uuid");
    assert!(is_random || whole == again || path.contains("stat"), "{path}");
    let part = 1 + random.below(40);
    assert_eq!(one.call(Sysno::lseek, &[file, 0, 0]), Ok(0));
    let parts = one.read_on(file, part).unwrap();
    if path.contains("stat") {
        assert_eq!(one.call(Sysno::lseek, &[file, 0, 0]), Ok(0));
        again = one.read_on(file, RESULT_SIZE).unwrap();
    }
    assert_eq!(String::from_utf8_lossy(&parts), String::from_utf8_lossy(&again), "{path} in parts of {part}");
    one.close(file);
    seen.files += 1;
}

#[test]
fn everything_can_be_read_while_processes_come_and_go() {
    let mut seen = Seen::default();
    for seed in 0..8 {
        let mut random = Random::new(seed);
        let mut play = Play::new(4096);
        for _ in 0..6 {
            first(&mut play).fork();
        }
        for directory in ["/proc", "/sys", "/proc"] {
            walk(&mut play, &mut random, directory, &mut seen, 0);
        }
        play.check();
        play.end();
        seen.inodes.clear();
    }
    println!("{seen:?}");
    assert!(seen.files > 1000 && seen.directories > 200 && seen.links > 200 && seen.gone > 10, "{seen:?}");
}
