//! Times of the last changes of files and directories. That all of them are recorded is compared with the
//! [model](super::model).

use super::*;

/// Sets the time, in ticks of 16 ns.
fn at(ends: &mut Ends<()>, ticks: u64) {
    ends.tree.now = Instant::from_ticks(ticks);
}

fn modified(ends: &Ends<()>, path: &str) -> u64 {
    ends.tree.status(path).unwrap().modified
}

#[test]
fn what_has_not_changed_since_the_start_has_the_time_0() {
    let mut ends = ends();
    at(&mut ends, 1);
    for path in ["/", "bin", "bin/hello", "share", "share/text", "share/text/motd", "tmp"] {
        assert_eq!(modified(&ends, path), 0, "{path}");
    }
    assert_eq!(ends.tree.next("/", "share").map(|(status, name)| (status.modified, name)), Ok((0, "tmp")));
    put(&mut ends, "tmp/a", How::CreateNew, b"").unwrap();
    assert_eq!(ends.tree.next("/", "share").map(|(status, name)| (status.modified, name)), Ok((16, "tmp")));
    assert_eq!(ends.tree.next("tmp", "").map(|(status, name)| (status.modified, name)), Ok((16, "a")));
    assert_eq!(["/", "bin"].map(|path| modified(&ends, path)), [0, 0], "directories above do not change");
}

#[test]
fn what_fails_changes_no_time() {
    let mut ends = ends();
    at(&mut ends, 1);
    let end = ends.open(ordinary(1), "tmp/a", How::CreateNew).unwrap();
    ends.tree.make_directory(ordinary(1), "tmp/d").unwrap();
    while write(&mut ends, end, &[9; MAX_DATA]).is_ok() {}
    at(&mut ends, 2);
    assert_eq!(write(&mut ends, end, &[9; MAX_DATA]), Err(StreamError::NoSpace));
    assert_eq!(ends.truncate(end, MAX_SIZE + 1), Err(StreamError::TooLarge));
    assert_eq!(ends.open(ordinary(2), "tmp/a", How::Write), Err(Error::NotAllowed));
    assert_eq!(ends.open(ordinary(1), "tmp/a", How::CreateNew), Err(Error::Exists));
    assert_eq!(ends.open(ordinary(2), "tmp/d/b", How::CreateNew), Err(Error::NotAllowed));
    assert_eq!(ends.tree.make_directory(ordinary(1), "tmp/d"), Err(Error::Exists));
    assert_eq!(ends.tree.remove(ordinary(2), "tmp/a"), Err(Error::NotAllowed));
    assert_eq!(ends.tree.rename(ordinary(2), "tmp/a", "tmp/b"), Err(Error::NotAllowed));
    assert_eq!(ends.tree.rename(ordinary(1), "tmp/d", "tmp/a"), Err(Error::NotADirectory));
    assert_eq!(ends.open(entitled(1), "bin/hello", How::Write), Err(Error::ReadOnly));
    assert_eq!(["tmp", "tmp/a", "tmp/d"].map(|path| modified(&ends, path)), [16; 3]);
    assert_eq!(["bin", "bin/hello"].map(|path| modified(&ends, path)), [0; 2]);
}

#[test]
fn a_change_through_an_end_counts_as_long_as_the_file_has_a_name() {
    let mut ends = ends();
    at(&mut ends, 1);
    let end = ends.open(entitled(PROCESS), "a", How::CreateNew).unwrap();
    let shared = ends.share(end, 6).unwrap();
    at(&mut ends, 2);
    ends.tree.rename(entitled(PROCESS), "a", "tmp/b").unwrap();
    assert_eq!(["/", "tmp", "tmp/b"].map(|path| modified(&ends, path)), [32, 32, 16]);
    at(&mut ends, 3);
    write(&mut ends, shared, b"x").unwrap();
    assert_eq!(["/", "tmp", "tmp/b"].map(|path| modified(&ends, path)), [32, 32, 48]);
    ends.tree.remove(entitled(PROCESS), "tmp/b").unwrap();
    at(&mut ends, 4);
    write(&mut ends, shared, b"x").unwrap();
    ends.close(end, |()| ()).unwrap();
    ends.close(shared, |()| ()).unwrap();
    assert_eq!(["/", "tmp"].map(|path| modified(&ends, path)), [32, 48], "closing is no change");
}

#[test]
fn ticks_are_told_in_nanoseconds() {
    for (frequency, ticks, nanoseconds) in [
        (62_500_000, 3, 48),
        (54_000_000, 1, 18),
        (24_000_000, 24_000_000 * 1_000_000 + 1, 1_000_000_000_000_041),
        (1_000_000_000, u64::MAX, u64::MAX),
    ] {
        let mut ends: Ends<()> = Ends::new(Tree::new(8, 8, frequency));
        at(&mut ends, ticks);
        put(&mut ends, "a", How::Write, b"x").unwrap();
        assert_eq!(modified(&ends, "a"), nanoseconds, "{ticks} at {frequency} Hz");
    }
}
