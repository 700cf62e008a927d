//! The files in `/proc` about groups of a process and about pages that it shares with others.

mod support;

use procfs_core::FromRead;
use procfs_core::process::{MemoryMaps, StatM, Status};
use support::Play;
use tench_linux_calls::Sysno;
use tench_linux_files::Errno;

/// Where paths lie in the program's data, and what calls write.
const PATH: u64 = 0x20_1100;
const RESULT: u64 = 0x20_2000;
/// Number of bytes that calls may write.
const RESULT_SIZE: u64 = 0x3000;

const HERE: u64 = (-100i64).cast_unsigned();

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
        assert_eq!(self.play.write(self.id, address, bytes), bytes.len());
    }

    fn result(&mut self, length: u64) -> Vec<u8> {
        let mut bytes = vec![0; length as usize];
        assert_eq!(self.play.read(self.id, RESULT, &mut bytes), bytes.len());
        bytes
    }

    fn read(&mut self, path: &str) -> Outcome<Vec<u8>> {
        self.put(PATH, format!("{path}\0").as_bytes());
        let file = self.call(Sysno::openat, &[HERE, PATH, 0, 0])?;
        let mut all = Vec::new();
        let result = loop {
            match self.call(Sysno::read, &[file, RESULT, RESULT_SIZE]) {
                Ok(0) => break Ok(all),
                Ok(count) => all.extend(self.result(count)),
                Err(error) => break Err(error),
            }
        };
        assert_eq!(self.call(Sysno::close, &[file]), Ok(0));
        result
    }
}

fn first(play: &mut Play) -> Actor<'_> {
    Actor { play, id: 1 }
}

fn parsed<T: FromRead>(text: &[u8]) -> T {
    T::from_read(text).unwrap_or_else(|error| panic!("{}: {error:?}", String::from_utf8_lossy(text)))
}

#[test]
fn groups_are_kept_and_inherited() {
    let mut play = Play::new(1024);
    let mut one = first(&mut play);
    let groups = |one: &mut Actor<'_>| parsed::<Status>(&one.read("/proc/self/status").unwrap()).groups;
    assert_eq!((one.call(Sysno::getgroups, &[0, 0]), groups(&mut one)), (Ok(0), vec![]));
    one.put(RESULT, &[100u32, 0, 7].map(u32::to_le_bytes).concat());
    assert_eq!(one.call(Sysno::setgroups, &[3, RESULT]), Ok(0));
    assert_eq!((one.call(Sysno::getgroups, &[0, 0]), groups(&mut one)), (Ok(3), vec![0, 7, 100]));
    assert_eq!(one.call(Sysno::getgroups, &[2, RESULT]), Err(Errno::EINVAL));
    assert_eq!(one.call(Sysno::getgroups, &[u64::MAX, RESULT]), Err(Errno::EINVAL));
    assert_eq!(one.call(Sysno::getgroups, &[3, 8]), Err(Errno::EFAULT));
    let child = one.call(Sysno::clone, &[17]).unwrap() as u32;
    assert_eq!(one.call(Sysno::setgroups, &[65_537, RESULT]), Err(Errno::EINVAL));
    assert_eq!(one.call(Sysno::setgroups, &[1, 8]), Err(Errno::EFAULT));
    one.put(RESULT, &u32::MAX.to_le_bytes());
    assert_eq!(one.call(Sysno::setgroups, &[1, RESULT]), Err(Errno::EINVAL));
    assert_eq!(one.call(Sysno::setgroups, &[0, 0]), Ok(0));
    assert_eq!(groups(&mut one), []);
    let mut other = Actor { play: &mut play, id: child };
    assert_eq!(other.call(Sysno::getgroups, &[65_536, RESULT]), Ok(3));
    assert_eq!(other.result(12), [0u32, 7, 100].map(u32::to_le_bytes).concat());
    play.end();
}

#[test]
fn pages_that_processes_share_are_told_from_their_own() {
    const SIGNAL: u64 = 17;
    let mut play = Play::new(1024);
    let mut one = first(&mut play);
    let own = one.call(Sysno::mmap, &[0, 0x3000, 3, 0x22, u64::MAX, 0]).unwrap();
    let shared = one.call(Sysno::mmap, &[0, 0x2000, 3, 0x21, u64::MAX, 0]).unwrap();
    one.put(own, b"a");
    one.put(own + 0x1000, b"b");
    one.put(shared, b"c");
    let sizes = |one: &mut Actor<'_>, start: u64| {
        let maps: MemoryMaps = parsed(&one.read("/proc/self/smaps").unwrap());
        let map = maps.into_iter().find(|map| (map.address.0..map.address.1).contains(&start)).unwrap();
        let names = ["Rss", "Pss", "Shared_Dirty", "Private_Dirty", "Anonymous"];
        names.map(|name| map.extension.map[name] / 1024)
    };
    assert_eq!(sizes(&mut one, own), [8, 8, 0, 8, 8]);
    assert_eq!(sizes(&mut one, shared), [4, 4, 0, 4, 0]);
    let child = one.call(Sysno::clone, &[SIGNAL]).unwrap() as u32;
    assert_eq!(sizes(&mut one, own), [8, 4, 8, 0, 8]);
    let mut other = Actor { play: &mut play, id: child };
    assert_eq!(sizes(&mut other, own), [8, 4, 8, 0, 8]);
    other.put(own, b"d");
    other.put(shared, b"e");
    assert_eq!(sizes(&mut other, own), [8, 6, 4, 4, 8]);
    assert_eq!(sizes(&mut other, shared), [4, 2, 4, 0, 0]);
    let maps: MemoryMaps = parsed(&other.read("/proc/self/smaps").unwrap());
    let sums: MemoryMaps = parsed(&other.read("/proc/thread-self/smaps_rollup").unwrap());
    for name in ["Rss", "Shared_Dirty", "Private_Dirty", "Private_Clean", "Shared_Clean", "Anonymous"] {
        let all: u64 = maps.iter().map(|map| map.extension.map[name]).sum();
        assert_eq!(sums.0[0].extension.map[name], all, "{name}");
    }
    let size: StatM = parsed(&other.read("/proc/self/statm").unwrap());
    assert_eq!(size.resident * 4096, sums.0[0].extension.map["Rss"]);
    play.call(child, Sysno::exit_group as u64, [0; 6]);
    let mut one = first(&mut play);
    assert_eq!(sizes(&mut one, own), [8, 8, 0, 8, 8]);
    assert_eq!(one.read(&format!("/proc/{child}/smaps")), Ok(Vec::new()));
    assert_eq!(one.read(&format!("/proc/{child}/smaps_rollup")), Err(Errno::ESRCH));
    play.end();
}
