//! Tests of files and directories: against a slow model, and named cases for their users.

mod model;
mod times;

use std::collections::{BTreeMap, BTreeSet};
use tench_quota::Client;

use proptest::prelude::*;
use tench_files::contents::{BLOCK, MAX_SIZE};
use tench_files::ends::{Ends, Outcome};
use tench_files::tree::{Requester, Tree};
use tench_files_interface::protocol::{Error, How, Kind};
use tench_stream::protocol::{Error as StreamError, MAX_DATA};
use tench_sys::Instant;

const PROCESS: u64 = 5;
/// Ticks of the clock per second: one in 16 ns.
const FREQUENCY: u64 = 62_500_000;

/// Returns a requester that may change everything.
const fn entitled(process: u64) -> Requester {
    Requester { client: Client::alone(process), is_entitled: true }
}

/// Returns a requester that may change what it made.
const fn ordinary(process: u64) -> Requester {
    Requester { client: Client::alone(process), is_entitled: false }
}

/// Returns a tree with two files of the archive, and room for 40 more and for 20 blocks.
fn ends() -> Ends<()> {
    let mut tree = Tree::new(40, 20, FREQUENCY);
    tree.add_archive_file("bin/hello", b"hello program").unwrap();
    tree.add_archive_file("share/text/motd", b"welcome").unwrap();
    tree.add_common_directory("tmp").unwrap();
    Ends::new(tree)
}

fn write(ends: &mut Ends<()>, end: u64, bytes: &[u8]) -> Result<(), StreamError> {
    let Outcome::Now(result) = ends.write(end, bytes) else { panic!("files do not wait") };
    ends.check_invariants();
    result
}

fn read(ends: &mut Ends<()>, end: u64, max: usize) -> Result<Vec<u8>, StreamError> {
    let Outcome::Now(result) = ends.read(end, max) else { panic!("files do not wait") };
    result.map(|data| data.to_vec())
}

/// Returns the contents of a file.
fn contents(ends: &mut Ends<()>, path: &str) -> Result<Vec<u8>, Error> {
    let end = ends.open(entitled(PROCESS), path, How::Read)?;
    let mut all = Vec::new();
    loop {
        let part = read(ends, end, MAX_DATA).unwrap();
        if part.is_empty() {
            ends.close(end, |()| ()).unwrap();
            return Ok(all);
        }
        all.extend(part);
    }
}

/// Writes a file from its beginning.
fn put(ends: &mut Ends<()>, path: &str, how: How, bytes: &[u8]) -> Result<(), StreamError> {
    let end = ends.open(entitled(PROCESS), path, how).unwrap();
    let result = write(ends, end, bytes);
    ends.close(end, |()| ()).unwrap();
    result
}

fn names(ends: &Ends<()>, directory: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    while let Ok((_, name)) = ends.tree.next(directory, names.last().unwrap()) {
        names.push(name.into());
    }
    names.split_off(1)
}

#[test]
fn files_are_written_appended_read_and_made_empty() {
    let mut ends = ends();
    put(&mut ends, "/tmp/a", How::Write, b"one ").unwrap();
    put(&mut ends, "tmp/a", How::Append, b"two").unwrap();
    assert_eq!(contents(&mut ends, "tmp//./a"), Ok(b"one two".to_vec()));
    put(&mut ends, "tmp/a", How::Update, b"ONE").unwrap();
    assert_eq!(contents(&mut ends, "tmp/../tmp/a"), Ok(b"ONE two".to_vec()));
    assert_eq!(ends.open(entitled(PROCESS), "tmp/a", How::CreateNew), Err(Error::Exists));
    put(&mut ends, "tmp/a", How::Write, b"").unwrap();
    assert_eq!(contents(&mut ends, "tmp/a"), Ok(vec![]));
    assert_eq!(names(&ends, "/"), ["bin", "share", "tmp"]);
    assert_eq!(names(&ends, "tmp/"), ["a"]);
}

#[test]
fn the_archive_can_only_be_read() {
    let mut ends = ends();
    assert_eq!(contents(&mut ends, "/share/text/motd"), Ok(b"welcome".to_vec()));
    assert_eq!(ends.tree.status("bin/hello").map(|status| (status.kind, status.size)), Ok((Kind::ArchiveFile, 13)));
    for how in [How::Write, How::Append, How::Update] {
        assert_eq!(ends.open(entitled(PROCESS), "bin/hello", how), Err(Error::ReadOnly));
    }
    for path in ["bin/hello", "bin", "/", "tmp"] {
        assert_eq!(ends.tree.remove(entitled(PROCESS), path), Err(Error::ReadOnly));
        assert_eq!(ends.tree.rename(entitled(PROCESS), path, "tmp/x"), Err(Error::ReadOnly));
    }
    put(&mut ends, "bin/new", How::Write, b"x").unwrap();
    assert_eq!(ends.tree.rename(entitled(PROCESS), "bin/new", "bin/hello"), Err(Error::ReadOnly));
    let end = ends.open(entitled(PROCESS), "bin/hello", How::Read).unwrap();
    assert_eq!(write(&mut ends, end, b"x"), Err(StreamError::NotForWriting));
    assert_eq!(ends.truncate(end, 0), Err(StreamError::NotForWriting));
    ends.check_invariants();
}

#[test]
fn wrong_paths_say_what_is_wrong() {
    let mut ends = ends();
    let long = "x".repeat(241);
    let cases = [
        ("", Error::BadPath),
        ("a\nb", Error::BadPath),
        (&long, Error::BadPath),
        ("nothing", Error::NoSuchFile),
        ("nothing/more", Error::NoSuchFile),
        ("bin/hello/more", Error::NotADirectory),
        ("bin/hello/", Error::NotADirectory),
        ("bin", Error::IsDirectory),
        ("/", Error::IsDirectory),
        ("nothing/..", Error::NoSuchFile),
    ];
    for (path, error) in cases {
        assert_eq!(ends.open(entitled(PROCESS), path, How::Read), Err(error), "{path}");
    }
    assert_eq!(ends.open(entitled(PROCESS), "tmp/new/", How::Write), Err(Error::IsDirectory));
    assert_eq!(ends.tree.make_directory(entitled(PROCESS), "bin"), Err(Error::Exists));
    assert_eq!(ends.tree.make_directory(entitled(PROCESS), "a/b"), Err(Error::NoSuchFile));
    assert_eq!(ends.tree.next("bin/hello", ""), Err(Error::NotADirectory));
    assert_eq!(ends.tree.next("tmp", ""), Err(Error::NoMoreEntries));
    ends.check_invariants();
}

#[test]
fn a_removed_file_stays_as_long_as_it_is_open() {
    let mut ends = ends();
    put(&mut ends, "a", How::Write, b"still here").unwrap();
    let end = ends.open(entitled(PROCESS), "a", How::Read).unwrap();
    let shared = ends.share(end, 6).unwrap();
    ends.tree.remove(entitled(PROCESS), "a").unwrap();
    assert_eq!(ends.tree.remove(entitled(PROCESS), "a"), Err(Error::NoSuchFile));
    ends.process_ended(PROCESS, PROCESS, |()| ());
    assert_eq!(read(&mut ends, shared, 5), Ok(b"still".to_vec()));
    assert_eq!(ends.usage().bytes, BLOCK as u64);
    ends.process_ended(6, 6, |()| ());
    assert_eq!((ends.usage().bytes, ends.usage().nodes), (0, 0));
    ends.check_invariants();
}

#[test]
fn without_space_nothing_is_written_and_what_is_removed_can_be_used_again() {
    let mut ends = ends();
    let end = ends.open(entitled(PROCESS), "big", How::Write).unwrap();
    let mut written = 0;
    while write(&mut ends, end, &[9; MAX_DATA]).is_ok() {
        written += MAX_DATA;
    }
    assert_eq!(write(&mut ends, end, &[9; MAX_DATA]), Err(StreamError::NoSpace));
    assert_eq!(ends.info(end).unwrap().size, written as u64);
    // This is half of them, the quota of one process.
    assert_eq!(ends.usage().bytes, 10 * BLOCK as u64);
    assert_eq!(put(&mut ends, "other", How::Write, b"x"), Err(StreamError::NoSpace));
    ends.close(end, |()| ()).unwrap();
    ends.tree.remove(entitled(PROCESS), "big").unwrap();
    put(&mut ends, "other", How::Write, b"x").unwrap();
    for number in 0..19 {
        ends.tree.make_directory(entitled(PROCESS), &format!("d{number}")).unwrap();
    }
    assert_eq!(ends.tree.make_directory(entitled(PROCESS), "one more"), Err(Error::NoSpace));
    assert_eq!(ends.open(entitled(PROCESS), "one more", How::Write), Err(Error::NoSpace));
    ends.check_invariants();
}

#[test]
fn a_family_has_what_it_made_and_wrote_and_leaves_it_to_nobody() {
    let mut ends = ends();
    let blocks = |ends: &Ends<()>| [PROCESS, 6, 8].map(|process| ends.tree.space.held(process));
    let fill = |ends: &mut Ends<()>, end: u64| {
        let mut at = 0;
        loop {
            ends.seek(end, at).unwrap();
            if write(ends, end, b"x").is_err() {
                return;
            }
            at += BLOCK as u64;
        }
    };
    let first = ends.open(entitled(PROCESS), "mine", How::Write).unwrap();
    fill(&mut ends, first);
    assert_eq!(blocks(&ends), [10, 0, 0]);
    // Other processes write to a file that is not theirs, and pay for it.
    let second = ends.open(entitled(6), "mine", How::Update).unwrap();
    ends.seek(second, 0).unwrap();
    write(&mut ends, second, b"written over").unwrap();
    assert_eq!(blocks(&ends), [10, 0, 0]);
    let append = ends.open(entitled(6), "mine", How::Append).unwrap();
    while write(&mut ends, append, &[1; MAX_DATA]).is_ok() {}
    assert_eq!(blocks(&ends), [10, 5, 0]);
    ends.process_ended(PROCESS, PROCESS, |()| ());
    assert_eq!((blocks(&ends), ends.tree.space.used()), ([0, 5, 0], 15), "what is left is nobody's, and there");
    let other = ends.open(entitled(8), "other", How::Write).unwrap();
    write(&mut ends, other, b"x").unwrap();
    ends.truncate(second, 11 * BLOCK as u64).unwrap();
    ends.check_invariants();
    assert_eq!((blocks(&ends), ends.tree.space.used()), ([0, 1, 1], 12));
    ends.process_ended(6, 6, |()| ());
    ends.tree.remove(entitled(PROCESS), "mine").unwrap();
    ends.check_invariants();
    assert_eq!((blocks(&ends), ends.tree.space.used()), ([0, 0, 1], 1));
    assert_eq!(ends.tree.made(), 1, "and so are the names");
}

#[test]
fn children_that_fill_the_files_one_after_another_leave_them_to_their_family() {
    const FAMILY: u64 = 7 << 38;
    let mut ends = ends();
    let fill = |ends: &mut Ends<()>, process, family| {
        let by = Requester { client: Client { process, family }, is_entitled: false };
        let mut made = Vec::new();
        for number in 0.. {
            let path = format!("tmp/{process}-{number}");
            let Ok(end) = ends.open(by, &path, How::CreateNew) else { break };
            made.push(path);
            if write(ends, end, b"x").is_err() {
                break;
            }
        }
        made
    };
    let held = |ends: &Ends<()>| (ends.tree.space.held(FAMILY), ends.tree.space.used(), ends.tree.made());
    for child in 100..120 {
        fill(&mut ends, child, FAMILY);
        ends.process_ended(child, 0, |()| ());
        ends.check_invariants();
    }
    // Each makes an empty file, until no more can be made.
    assert_eq!(held(&ends), (10, 10, 20));
    let made = fill(&mut ends, 8, 8);
    assert_eq!((made.len(), held(&ends)), (6, (10, 15, 26)), "others get half of what is free");
    // The last process of the family, which made nothing, ends with it; the next family of its number begins with
    // nothing.
    ends.process_ended(120, FAMILY, |()| ());
    assert_eq!(held(&ends), (0, 15, 26));
    let mine = fill(&mut ends, 200, FAMILY);
    assert_eq!(held(&ends), (3, 18, 30));
    ends.tree.remove(entitled(1), "tmp/100-0").unwrap();
    assert_eq!(held(&ends), (3, 17, 29), "what others of its number left is not its own");
    mine.iter().for_each(|path| ends.tree.remove(entitled(1), path).unwrap());
    ends.check_invariants();
}

#[test]
fn holes_are_zeros_and_so_is_what_was_cut_off() {
    let mut ends = ends();
    let end = ends.open(entitled(PROCESS), "a", How::CreateNew).unwrap();
    ends.seek(end, 3 * BLOCK as u64 - 1).unwrap();
    write(&mut ends, end, b"xy").unwrap();
    assert_eq!((ends.info(end).unwrap().size, ends.usage().bytes), (3 * BLOCK as u64 + 1, 2 * BLOCK as u64));
    ends.truncate(end, 3 * BLOCK as u64 - 1).unwrap();
    ends.truncate(end, 3 * BLOCK as u64).unwrap();
    ends.check_invariants();
    assert!(contents(&mut ends, "a").unwrap().iter().all(|byte| *byte == 0));
    assert_eq!(ends.truncate(end, MAX_SIZE + 1), Err(StreamError::TooLarge));
    assert_eq!(ends.seek(end, u64::MAX), Err(StreamError::TooLarge));
    ends.seek(end, MAX_SIZE).unwrap();
    assert_eq!(write(&mut ends, end, b"x"), Err(StreamError::TooLarge));
}

#[test]
fn files_and_directories_are_renamed() {
    let mut ends = ends();
    ends.tree.make_directory(entitled(PROCESS), "tmp/d").unwrap();
    put(&mut ends, "tmp/d/f", How::Write, b"f").unwrap();
    put(&mut ends, "tmp/g", How::Write, b"g").unwrap();
    assert_eq!(ends.tree.rename(entitled(PROCESS), "tmp/d", "tmp/d/x"), Err(Error::IntoItself));
    assert_eq!(ends.tree.rename(entitled(PROCESS), "tmp/d", "tmp/g"), Err(Error::NotADirectory));
    assert_eq!(ends.tree.rename(entitled(PROCESS), "tmp/g", "tmp/d"), Err(Error::IsDirectory));
    assert_eq!(ends.tree.remove(entitled(PROCESS), "tmp/d"), Err(Error::NotEmpty));
    ends.tree.rename(entitled(PROCESS), "tmp/d", "moved").unwrap();
    ends.tree.rename(entitled(PROCESS), "tmp/g", "moved/f").unwrap();
    ends.tree.rename(entitled(PROCESS), "moved/f", "moved/f").unwrap();
    assert_eq!(contents(&mut ends, "moved/f"), Ok(b"g".to_vec()));
    assert_eq!((names(&ends, "moved"), names(&ends, "tmp")), (vec!["f".into()], vec![]));
    ends.tree.make_directory(entitled(PROCESS), "moved/d").unwrap();
    assert_eq!(ends.tree.rename(entitled(PROCESS), "moved/d/..", "x"), Err(Error::BadPath));
    assert_eq!(ends.tree.remove(entitled(PROCESS), "moved/d/../d/."), Ok(()));
    ends.check_invariants();
}

#[test]
fn only_its_maker_changes_a_file() {
    let mut ends = ends();
    let (mine, others) = (ordinary(1), ordinary(2));
    let end = ends.open(mine, "tmp/a", How::Write).unwrap();
    write(&mut ends, end, b"mine").unwrap();
    for how in [How::Write, How::Append, How::Update] {
        assert_eq!(ends.open(others, "tmp/a", how), Err(Error::NotAllowed));
        assert!(ends.open(mine, "tmp/a", how).is_ok());
    }
    write(&mut ends, end, b"mine").unwrap();
    let reader = ends.open(others, "tmp/a", How::Read).unwrap();
    assert_eq!(write(&mut ends, reader, b"x"), Err(StreamError::NotForWriting));
    assert_eq!(ends.truncate(reader, 0), Err(StreamError::NotForWriting));
    ends.open(others, "tmp/b", How::CreateNew).unwrap();
    for (from, to) in [("tmp/a", "tmp/c"), ("tmp/b", "tmp/a")] {
        assert_eq!(ends.tree.rename(others, from, to), Err(Error::NotAllowed), "{from} to {to}");
    }
    assert_eq!(ends.tree.remove(others, "tmp/a"), Err(Error::NotAllowed));
    // When the maker has ended, no process has its number.
    ends.process_ended(1, 1, |()| ());
    assert_eq!(ends.tree.remove(others, "tmp/a"), Err(Error::NotAllowed));
    ends.open(entitled(3), "tmp/a", How::Append).unwrap();
    ends.tree.remove(entitled(3), "tmp/a").unwrap();
    ends.tree.rename(others, "tmp/b", "tmp/a").unwrap();
    ends.tree.remove(others, "tmp/a").unwrap();
    ends.check_invariants();
}

#[test]
fn files_are_made_in_shared_directories() {
    let mut ends = ends();
    let (mine, others) = (ordinary(1), ordinary(2));
    for path in ["a", "bin/a", "share/text/a"] {
        assert_eq!(ends.open(mine, path, How::Write), Err(Error::NotAllowed));
        assert_eq!(ends.open(mine, path, How::CreateNew), Err(Error::NotAllowed));
        assert_eq!(ends.tree.make_directory(mine, path), Err(Error::NotAllowed));
    }
    assert_eq!(ends.open(mine, "bin/hello", How::Write), Err(Error::ReadOnly));
    // A process's own directory, and one that a process with the power made for all processes.
    ends.tree.make_directory(mine, "tmp/mine").unwrap();
    ends.tree.make_directory(entitled(3), "all").unwrap();
    ends.open(mine, "tmp/mine/a", How::Write).unwrap();
    ends.open(others, "all/a", How::Write).unwrap();
    ends.open(mine, "all/b", How::Write).unwrap();
    assert_eq!(ends.open(others, "tmp/mine/b", How::Write), Err(Error::NotAllowed));
    for (from, to) in [("all/a", "tmp/mine/b"), ("all/a", "bin/b"), ("tmp/mine", "tmp/yours"), ("all", "tmp/all")] {
        assert_eq!(ends.tree.rename(others, from, to), Err(Error::NotAllowed), "{from} to {to}");
    }
    assert_eq!(ends.tree.remove(others, "tmp/mine"), Err(Error::NotAllowed));
    ends.tree.rename(mine, "tmp/mine/a", "all/c").unwrap();
    ends.tree.rename(mine, "tmp/mine", "all/mine").unwrap();
    // A process with the power has moved it there; its maker may change it, but put nothing else in its place.
    ends.tree.rename(entitled(3), "all/c", "bin/c").unwrap();
    assert_eq!(ends.tree.rename(mine, "all/b", "bin/c"), Err(Error::NotAllowed));
    ends.open(mine, "bin/c", How::Write).unwrap();
    ends.tree.remove(mine, "all/mine").unwrap();
    ends.check_invariants();
}

fn path() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["a", "b", "c"]);
    prop::collection::vec(name, 1..4).prop_map(|names| names.join("/"))
}

/// A node as others see it: its directory, its name there, and if it is a file, its contents and when they were
/// changed.
type Seen = (u64, String, Option<(Vec<u8>, u64)>);

/// Collects everything in a directory and below it, by identity.
fn see(ends: &mut Ends<()>, directory: &str, identity: u64, seen: &mut BTreeMap<u64, Seen>) {
    for name in names(ends, directory) {
        let path = format!("{directory}/{name}");
        let status = ends.tree.status(&path).unwrap();
        let is_directory = status.kind == Kind::Directory;
        let bytes = if is_directory { None } else { Some((contents(ends, &path).unwrap(), status.modified)) };
        seen.insert(status.identity, (identity, name, bytes));
        if is_directory {
            see(ends, &path, status.identity, seen);
        }
    }
}

/// Tries something for a process; it may be allowed or not.
fn attempt(ends: &mut Ends<()>, by: Requester, number: u8, from: &str, to: &str) {
    let how = [How::Write, How::Append, How::Update, How::CreateNew, How::Read];
    match number {
        0 => drop(ends.tree.remove(by, from)),
        1 => drop(ends.tree.rename(by, from, to)),
        2 => drop(ends.tree.make_directory(by, from)),
        number => {
            if let Ok(end) = ends.open(by, from, how[usize::from(number - 3)]) {
                let _ = write(ends, end, to.as_bytes());
                let _ = ends.truncate(end, 1 + number as u64);
                ends.close(end, |()| ()).unwrap();
            }
        }
    }
}

proptest! {
    #[test]
    fn no_process_changes_files_of_others(
        steps in prop::collection::vec((0..4u64, 0..8u8, path(), path(), any::<bool>()), 1..80)
    ) {
        let mut ends = ends();
        let mut makers: BTreeMap<u64, u64> = BTreeMap::new();
        // Directories in which every process may make something.
        let mut common = BTreeSet::from([ends.tree.status("tmp").unwrap().identity]);
        for (process, number, from, to, is_below) in steps {
            let place = |path: &str| if is_below { format!("tmp/{path}") } else { path.replacen('a', "bin", 1) };
            let (from, to) = (place(&from), place(&to));
            let root = ends.tree.status("/").unwrap().identity;
            let (mut before, mut after) = (BTreeMap::new(), BTreeMap::new());
            see(&mut ends, "", root, &mut before);
            ends.tree.now = Instant::from_ticks(ends.tree.now.ticks() + 1);
            // The process 0 has the power.
            let by = Requester { client: Client::alone(process), is_entitled: process == 0 };
            attempt(&mut ends, by, number, &from, &to);
            ends.check_invariants();
            see(&mut ends, "", root, &mut after);
            for (identity, seen) in &before {
                let is_own = makers.get(identity) == Some(&process);
                prop_assert!(by.is_entitled || is_own || after.get(identity) == Some(seen), "{from} {to} {seen:?}");
            }
            for (identity, (directory, name, bytes)) in &after {
                let is_there = before.get(identity).is_some_and(|(old, known, _)| (old, known) == (directory, name));
                let may_add = common.contains(directory) || makers.get(directory) == Some(&process);
                prop_assert!(by.is_entitled || is_there || may_add, "{from} {to} {name}");
                if !before.contains_key(identity) {
                    makers.insert(*identity, process);
                    if by.is_entitled && bytes.is_none() {
                        common.insert(*identity);
                    }
                }
            }
        }
    }
}
