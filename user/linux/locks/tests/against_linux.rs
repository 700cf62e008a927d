//! Random locks of open files and of a process, compared with what the Linux under these tests does with a file of its
//! own. What several processes do, and what a lock needs of its descriptor, programs compare (`tests/linux/locks.c`).

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Seek, SeekFrom};
use std::path::Path;

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use tench_linux_locks::{Errno, Kind, Locks, Owner, Range, Record, Refusal};
use tench_random::Random;

/// Length of the file.
const LENGTH: u64 = 60;

struct Both {
    locks: Locks<u8, u32>,
    files: Vec<(u32, File)>,
    next: u32,
    random: Random,
    log: Vec<String>,
}

/// A lock, as a program writes it into a record.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    kind: Option<Kind>,
    whence: i16,
    start: i64,
    length: i64,
    is_of_process: bool,
}

impl Wanted {
    fn record(self) -> libc::flock {
        let kind = match self.kind {
            Some(Kind::Shared) => libc::F_RDLCK,
            Some(Kind::Exclusive) => libc::F_WRLCK,
            None => libc::F_UNLCK,
        };
        let (l_whence, l_start, l_len) = (self.whence, self.start, self.length);
        libc::flock { l_type: kind as i16, l_whence, l_start, l_len, l_pid: 0 }
    }
}

fn number(random: &mut Random) -> i64 {
    match random.below(24) {
        0 => i64::MAX,
        1 => i64::MIN,
        2 => i64::MAX - random.below(80) as i64,
        3..7 => -(random.below(40) as i64),
        7..10 => 0,
        _ => random.below(50) as i64,
    }
}

fn own_process() -> u32 {
    std::process::id()
}

impl Both {
    fn open(&mut self, path: &Path) {
        let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
        self.files.push((self.next, file));
        self.next += 1;
    }

    fn wanted(&mut self) -> Wanted {
        let random = &mut self.random;
        let kind = [None, Some(Kind::Shared), Some(Kind::Exclusive)][random.index(3)];
        Wanted {
            kind,
            whence: random.below(3) as i16,
            start: number(random),
            length: number(random),
            is_of_process: random.once_in(3),
        }
    }

    /// Returns the range that a record means here.
    fn range(&mut self, index: usize, wanted: Wanted) -> Result<Range, Errno> {
        let base = match wanted.whence {
            0 => 0,
            1 => self.files[index].1.stream_position().unwrap(),
            _ => LENGTH,
        };
        Range::new(base, wanted.start, wanted.length)
    }

    fn owner(&self, index: usize, wanted: Wanted) -> Owner<u32> {
        if wanted.is_of_process { Owner::Process(own_process()) } else { Owner::Description(self.files[index].0) }
    }

    /// Sets a lock, or takes it away.
    fn set(&mut self, index: usize, wanted: Wanted) -> &'static str {
        let owner = self.owner(index, wanted);
        let ours = self.range(index, wanted).and_then(|range| {
            let result = match wanted.kind {
                Some(kind) => self.locks.lock(0, Record { owner, kind, range }),
                None => self.locks.unlock(0, owner, range),
            };
            result.map_err(|refusal| if refusal == Refusal::Held { Errno::EAGAIN } else { Errno::ENOLCK })
        });
        let record = wanted.record();
        let arg = if wanted.is_of_process { FcntlArg::F_SETLK(&record) } else { FcntlArg::F_OFD_SETLK(&record) };
        let theirs = fcntl(&self.files[index].1, arg);
        self.log.push(format!("set {index} {wanted:?} is {ours:?}"));
        assert_eq!(ours.map_err(Errno::into_raw), theirs.map(drop).map_err(|error| error as i32), "{:#?}", self.log);
        match ours {
            Ok(()) => "set",
            Err(Errno::EAGAIN) => "refused",
            Err(_) => "wrong",
        }
    }

    /// Asks which lock is in the way.
    fn get(&mut self, index: usize, wanted: Wanted) -> &'static str {
        let (owner, kind) = (self.owner(index, wanted), wanted.kind.unwrap_or(Kind::Exclusive));
        let wanted = Wanted { kind: Some(kind), ..wanted };
        let range = self.range(index, wanted);
        let ours = range.map(|range| self.locks.conflict(0, &Record { owner, kind, range }));
        let mut record = wanted.record();
        let is_of_process = wanted.is_of_process;
        let arg = if is_of_process { FcntlArg::F_GETLK(&mut record) } else { FcntlArg::F_OFD_GETLK(&mut record) };
        let theirs = fcntl(&self.files[index].1, arg);
        self.log.push(format!("get {index} {wanted:?} is {ours:?}"));
        let found = theirs.map_err(|error| error as i32).map(|_| {
            let kind = match i32::from(record.l_type) {
                libc::F_UNLCK => return None,
                libc::F_RDLCK => Kind::Shared,
                _ => Kind::Exclusive,
            };
            Some((kind, record.l_start, record.l_len, record.l_pid, record.l_whence))
        });
        let shown = |record: Record<u32>| {
            let process = match record.owner {
                Owner::Process(process) => process.cast_signed(),
                Owner::Description(_) => -1,
            };
            let (start, length) = (record.range.first.cast_signed(), record.range.length().cast_signed());
            (record.kind, start, length, process, 0)
        };
        assert_eq!(ours.map(|found| found.map(shown)).map_err(Errno::into_raw), found, "{:#?}", self.log);
        if matches!(ours, Ok(Some(_))) { "found" } else { "nothing found" }
    }

    /// Sets or removes a lock of the whole file.
    fn whole(&mut self, index: usize) -> &'static str {
        let (description, file) = (self.files[index].0, &self.files[index].1);
        let (ours, theirs) = match self.random.below(3) {
            0 => (self.locks.lock_whole(0, description, Kind::Shared), file.try_lock_shared()),
            1 => (self.locks.lock_whole(0, description, Kind::Exclusive), file.try_lock()),
            _ => {
                self.locks.unlock_whole(0, description);
                (Ok(()), file.unlock().map_err(TryLockError::Error))
            }
        };
        self.log.push(format!("whole {index} is {ours:?}"));
        match (ours, theirs) {
            (Ok(()), Ok(())) => "whole",
            (Err(Refusal::Held), Err(TryLockError::WouldBlock)) => "whole refused",
            (ours, theirs) => panic!("{ours:?}, but {theirs:?} {:#?}", self.log),
        }
    }

    fn step(&mut self, path: &Path) -> &'static str {
        let (index, wanted) = (self.random.index(self.files.len()), self.wanted());
        let what = match self.random.below(20) {
            0..9 => self.set(index, wanted),
            9..14 => self.get(index, wanted),
            14..18 => self.whole(index),
            18 => {
                let to = self.random.below(70);
                self.files[index].1.seek(SeekFrom::Start(to)).unwrap();
                "moved"
            }
            _ => {
                let (description, file) = self.files.swap_remove(index);
                drop(file);
                self.locks.close_process(0, own_process());
                self.locks.close_description(0, description);
                self.log.push(format!("close {index}"));
                self.open(path);
                "closed"
            }
        };
        self.locks.check().unwrap();
        what
    }
}

/// One test, since a process has one set of locks, which another test's thread would share.
#[test]
fn locks_are_those_of_linux() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in 0..150 {
        std::fs::write(&path, [0; LENGTH as usize]).unwrap();
        let (files, log) = (Vec::new(), Vec::new());
        let mut both = Both { locks: Locks::default(), files, next: 0, random: Random::new(seed), log };
        (0..4).for_each(|_| both.open(&path));
        for _ in 0..300 {
            *counts.entry(both.step(&path)).or_default() += 1;
        }
    }
    println!("{counts:?}");
    assert!(counts.len() == 9 && counts.values().all(|count| *count > 500), "{counts:?}");
}
