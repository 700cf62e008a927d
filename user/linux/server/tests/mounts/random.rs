//! Random calls on files in a mount, each made on files in memory as well: both must have the same effects. Between the
//! calls, another program changes the files in the mount, and the program itself changes those in memory in the same
//! way.

use super::support::{Files, Play};
use super::{BUFFER, HERE, OTHER_PATH, PATH, RECORD, ROOM};
use tench_files::tree::Requester;
use tench_files_interface::protocol::How;
use tench_linux::mounts::errand::FileServer;
use tench_linux_calls::Sysno;
use tench_quota::Client;
use tench_random::Random;

const WRONLY_TRUNC: u64 = 0o1001;
/// Flags with which files are opened.
const FLAGS: [u64; 9] = [0, 2, 0o102, 0o302, 0o1002, 0o1102, 0o2001, 0o2102, 0o101];
const NAMES: [&str; 8] = ["a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "e"];
/// The other program counts as the instance itself, so that the server refuses nothing because of who has made it.
const OWN: Requester = Requester { client: Client::alone(5), is_entitled: true };

/// A program with the same files in a mount and in memory.
struct Both {
    play: Play,
    /// Descriptors of the same file in the mount and in memory.
    open: Vec<[u64; 2]>,
}

/// The directories with the files: the mount, and one in memory.
const PLACES: [&str; 2] = ["/mnt", "/ram"];

impl Both {
    fn new() -> Both {
        let mut play = Play::new(8192);
        play.mount("tmp", "/mnt", false);
        let mut both = Both { play, open: Vec::new() };
        let path = both.path(PATH, "", "/ram");
        assert_eq!(both.call(Sysno::mkdirat, &[HERE, path, 0o755]), 0);
        both
    }

    fn call(&mut self, call: Sysno, arguments: &[u64]) -> i64 {
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        self.play.call_outside(1, call as u64, all)
    }

    fn path(&mut self, at: u64, place: &str, name: &str) -> u64 {
        let path = if place.is_empty() { name.to_owned() } else { format!("{place}/{name}") };
        self.play.write(1, at, path.as_bytes());
        self.play.write(1, at + path.len() as u64, &[0]);
        at
    }

    fn bytes(&mut self, at: u64, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        assert_eq!(self.play.read(1, at, &mut bytes), count);
        bytes
    }

    fn files(&mut self) -> &mut Files {
        &mut self.play.instance.system.memory.hardware.files
    }

    /// Makes a call with a path in both directories, checks that the results are equal, and returns the result.
    fn at_both(&mut self, call: Sysno, name: &str, rest: &[u64]) -> i64 {
        let [outside, inside] = PLACES.map(|place| {
            let path = self.path(PATH, place, name);
            self.call(call, &[&[HERE, path], rest].concat())
        });
        assert_eq!(outside, inside, "{call:?} {name} {rest:?}");
        outside
    }

    fn rename(&mut self, from: &str, to: &str) {
        let [outside, inside] = PLACES.map(|place| {
            let (from, to) = (self.path(PATH, place, from), self.path(OTHER_PATH, place, to));
            self.call(Sysno::renameat2, &[HERE, from, HERE, to, 0])
        });
        assert_eq!(outside, inside, "rename {from} {to}");
    }

    fn open(&mut self, name: &str, flags: u64) {
        let both = PLACES.map(|place| {
            let path = self.path(PATH, place, name);
            self.call(Sysno::openat, &[HERE, path, flags, 0o644])
        });
        if both[0].min(both[1]) < 0 {
            assert_eq!(both[0], both[1], "open {name} {flags:o}");
        } else {
            self.open.push(both.map(i64::cast_unsigned));
        }
    }

    /// Makes a call with both descriptors of a file, and compares the results and the bytes in memory after it.
    fn with_open(&mut self, index: usize, call: Sysno, rest: &[u64], seen: Option<(u64, usize)>) {
        let all = self.open[index].map(|file| {
            let result = self.call(call, &[&[file], rest].concat());
            let count = usize::try_from(result).unwrap_or(0);
            (result, seen.map(|(at, least)| self.bytes(at, least.max(count))))
        });
        assert_eq!(all[0], all[1], "{call:?} {rest:?}");
    }

    /// Compares the types of both files with a name, and the sizes if they are regular files.
    fn status(&mut self, name: &str) {
        let all = PLACES.map(|place| {
            let path = self.path(PATH, place, name);
            let result = self.call(Sysno::fstatat, &[HERE, path, RECORD, 0]);
            let record = self.bytes(RECORD, 128);
            let kind = record[17] >> 4;
            (result, (result == 0).then_some(kind), (kind == 8).then(|| record[48..56].to_vec()))
        });
        assert_eq!(all[0], all[1], "status of {name}");
    }

    fn names(&mut self, name: &str) {
        let all = PLACES.map(|place| {
            let path = self.path(PATH, place, name);
            let directory = self.call(Sysno::openat, &[HERE, path, 0o40000, 0]);
            if directory < 0 {
                return Err(directory);
            }
            let count = self.call(Sysno::getdents64, &[directory.cast_unsigned(), BUFFER, ROOM]);
            let records = self.bytes(BUFFER, usize::try_from(count).unwrap_or(0));
            self.call(Sysno::close, &[directory.cast_unsigned()]);
            let mut names = Vec::new();
            let mut rest = &records[..];
            while !rest.is_empty() {
                let size = usize::from(u16::from_le_bytes([rest[16], rest[17]]));
                names.push((rest[19..size].split(|byte| *byte == 0).next().unwrap().to_vec(), rest[18]));
                rest = &rest[size..];
            }
            names.sort();
            Ok(names)
        });
        assert_eq!(all[0], all[1], "names in {name}");
    }

    /// Lets another program change something in the mount, and makes the same change in memory.
    fn change_outside(&mut self, random: &mut Random, name: &str) {
        let outside = format!("tmp/{name}");
        let ends = std::rc::Rc::clone(&self.files().ends);
        let nobody_has_it_open = self.open.is_empty();
        match random.below(4) {
            0 | 1 => {
                let contents = vec![random.below(256) as u8; random.below(2000) as usize];
                let Ok(mut file) = self.files().open_for(OWN, &outside, How::Update) else { return };
                self.files().resize(&mut file, 0).unwrap();
                self.files().write_all(&mut file, 0, &contents);
                let path = self.path(PATH, "/ram", name);
                let file = self.call(Sysno::openat, &[HERE, path, WRONLY_TRUNC, 0]).cast_unsigned();
                self.play.write(1, BUFFER, &contents);
                assert_eq!(self.call(Sysno::write, &[file, BUFFER, contents.len() as u64]), contents.len() as i64);
                self.call(Sysno::close, &[file]);
            }
            2 if nobody_has_it_open => {
                let is_directory = ends.borrow().tree.status(&outside).is_ok_and(|status| status.kind as u64 == 3);
                let removed = ends.borrow_mut().tree.remove(OWN, &outside).is_ok();
                let path = self.path(PATH, "/ram", name);
                let flags = if is_directory { 0x200 } else { 0 };
                assert_eq!(self.call(Sysno::unlinkat, &[HERE, path, flags]) == 0, removed);
            }
            _ if nobody_has_it_open => {
                let made = ends.borrow_mut().tree.make_directory(OWN, &outside).is_ok();
                let path = self.path(PATH, "/ram", name);
                assert_eq!(self.call(Sysno::mkdirat, &[HERE, path, 0o755]) == 0, made);
            }
            _ => {}
        }
    }

    fn step(&mut self, random: &mut Random) {
        let name = NAMES[random.below(NAMES.len() as u64) as usize];
        let other = NAMES[random.below(NAMES.len() as u64) as usize];
        let (offset, length) = (random.below(9000), random.below(1000));
        if !self.open.is_empty() && random.below(2) == 0 {
            let index = random.below(self.open.len() as u64) as usize;
            let second = random.below(self.open.len() as u64) as usize;
            self.play.write(1, BUFFER, &[random.below(256) as u8; 1000]);
            match random.below(12) {
                0 => self.with_open(index, Sysno::read, &[BUFFER, length], Some((BUFFER, 0))),
                1 => self.with_open(index, Sysno::pread64, &[BUFFER, length, offset], Some((BUFFER, 0))),
                2 | 3 => self.with_open(index, Sysno::write, &[BUFFER, length], None),
                4 => self.with_open(index, Sysno::pwrite64, &[BUFFER, length, offset], None),
                5 => self.with_open(index, Sysno::lseek, &[offset % 3000, random.below(5)], None),
                6 => self.with_open(index, Sysno::ftruncate, &[offset], None),
                7 => self.with_open(
                    index,
                    Sysno::fallocate,
                    &[[0, 1, 3][random.below(3) as usize], offset, length],
                    None,
                ),
                8 => {
                    let results = [0, 1].map(|place| {
                        let (to, from) = (self.open[second][place], self.open[index][place]);
                        self.call(Sysno::sendfile, &[to, from, 0, length])
                    });
                    assert_eq!(results[0], results[1], "sendfile");
                }
                9 => {
                    let results = [0, 1].map(|place| {
                        let (to, from) = (self.open[second][place], self.open[index][place]);
                        self.call(Sysno::copy_file_range, &[from, 0, to, 0, length, 0])
                    });
                    assert_eq!(results[0], results[1], "copy_file_range");
                }
                _ => {
                    let both = self.open.swap_remove(index);
                    assert_eq!(both.map(|file| self.call(Sysno::close, &[file])), [0, 0]);
                }
            }
            return;
        }
        match random.below(12) {
            0..3 if self.open.len() < 5 => self.open(name, FLAGS[random.below(FLAGS.len() as u64) as usize]),
            0..4 => _ = self.at_both(Sysno::mkdirat, name, &[0o755]),
            4 => _ = self.at_both(Sysno::unlinkat, name, &[0]),
            5 => _ = self.at_both(Sysno::unlinkat, name, &[0x200]),
            6 => self.rename(name, other),
            7 | 8 => self.status(name),
            9 => self.names(if random.below(2) == 0 { "" } else { name }),
            10 => {
                let results = PLACES.map(|place| {
                    let path = self.path(PATH, place, name);
                    self.call(Sysno::truncate, &[path, offset])
                });
                assert_eq!(results[0], results[1], "truncate {name}");
            }
            _ => self.change_outside(random, name),
        }
    }
}

#[test]
fn files_in_a_mount_behave_like_those_in_memory() {
    for seed in 1..=40 {
        let mut random = Random::new(seed);
        let mut both = Both::new();
        for _ in 0..400 {
            both.step(&mut random);
            both.play.check();
            assert_eq!(both.play.instance.system.mounts.inquiries(), 0);
        }
        for name in NAMES {
            both.status(name);
            both.names(name);
        }
        // The files in memory, which equal those that the program sees in the mount, equal those of the server.
        for name in NAMES {
            let there = both.files().contents(&format!("tmp/{name}"));
            let path = both.path(PATH, "/ram", name);
            let file = both.call(Sysno::openat, &[HERE, path, 0, 0]).cast_unsigned();
            let count = both.call(Sysno::read, &[file, BUFFER, ROOM]);
            let in_memory = (count >= 0).then(|| both.bytes(BUFFER, count as usize));
            assert_eq!(there.ok(), in_memory, "{name}, seed {seed}");
        }
        both.play.end();
    }
}

/// Lets a running process make a random call about files in the mount.
fn call_of(both: &mut Both, random: &mut Random, process: u32) {
    let some = |random: &mut Random| NAMES[random.below(NAMES.len() as u64) as usize];
    for (at, name) in [(PATH, some(random)), (OTHER_PATH, some(random))] {
        both.play.write(process, at, format!("/mnt/{name}\0").as_bytes());
    }
    let (file, length) = (3 + random.below(4), random.below(3000));
    let (call, arguments) = match random.below(20) {
        0..4 => (Sysno::openat, [HERE, PATH, FLAGS[random.below(FLAGS.len() as u64) as usize], 0o644, 0]),
        4 => (Sysno::mkdirat, [HERE, PATH, 0o755, 0, 0]),
        5 => (Sysno::unlinkat, [HERE, PATH, random.below(2) * 0x200, 0, 0]),
        6 => (Sysno::renameat2, [HERE, PATH, HERE, OTHER_PATH, 0]),
        7 => (Sysno::fstatat, [HERE, PATH, RECORD, 0, 0]),
        8 => (Sysno::read, [file, BUFFER, length, 0, 0]),
        9 | 10 => (Sysno::write, [file, BUFFER, length, 0, 0]),
        11 => (Sysno::ftruncate, [file, length, 0, 0, 0]),
        12 => (Sysno::getdents64, [file, BUFFER, ROOM, 0, 0]),
        13 => (Sysno::chdir, [PATH, 0, 0, 0, 0]),
        14 => (Sysno::execve, [PATH, 0, 0, 0, 0]),
        15 => (Sysno::truncate, [PATH, length, 0, 0, 0]),
        16 => (Sysno::sendfile, [file, 3 + random.below(4), 0, length, 0]),
        17 => (Sysno::fallocate, [file, 0, length, 500, 0]),
        18 => (Sysno::mmap, [0, length + 1, 1, 2, file]),
        19 => (Sysno::utimensat, [HERE, PATH, 0, 0, 0]),
        _ => (Sysno::close, [file, 0, 0, 0, 0]),
    };
    let mut all = [0; 6];
    all[..5].copy_from_slice(&arguments);
    let _ = both.play.call(process, call as u64, all);
}

#[test]
fn errands_of_several_processes_at_once_leave_nothing() {
    let mut most_at_once = 0;
    for seed in 1..=40 {
        let mut random = Random::new(seed);
        let mut both = Both::new();
        for step in 0..600 {
            let running = both.play.running();
            match random.below(8) {
                0..3 if !running.is_empty() => {
                    let process = running[random.below(running.len() as u64) as usize];
                    call_of(&mut both, &mut random, process);
                }
                3 if running.contains(&1) && both.play.instance.processes.count() < 6 => {
                    let _ = both.play.call(1, Sysno::clone as u64, [17, 0, 0, 0, 0, 0]);
                }
                4 if running.contains(&1) => {
                    let signal = [9, 19, 18, 18][random.below(4) as usize];
                    let _ = both.play.call(1, Sysno::kill as u64, [2 + random.below(8), signal, 0, 0, 0, 0]);
                }
                5 if random.once_in(4) => {
                    let name = NAMES[random.below(NAMES.len() as u64) as usize];
                    let ends = std::rc::Rc::clone(&both.files().ends);
                    let _ = ends.borrow_mut().tree.remove(OWN, &format!("tmp/{name}"));
                }
                6 if random.once_in(4) => {
                    let path = format!("tmp/{}", NAMES[random.below(NAMES.len() as u64) as usize]);
                    if let Ok(mut file) = both.files().open_for(OWN, &path, How::Append) {
                        both.files().write_all(&mut file, 100, b"others");
                    }
                }
                _ => _ = both.play.do_errand(),
            }
            most_at_once = most_at_once.max(both.play.instance.system.mounts.inquiries());
            if step % 8 == 0 {
                both.play.check();
            }
        }
        both.play.end();
    }
    assert!(most_at_once > 3, "{most_at_once} calls had inquiries at once");
}
