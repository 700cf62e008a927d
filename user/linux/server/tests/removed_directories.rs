//! Directories that are removed while somebody is in them. What is expected here is what Linux does.

mod support;

use support::Play;
use tench_linux_calls::Sysno;

const PATH: u64 = 0x20_1300;
const RECORD: u64 = 0x20_1500;
const HERE: u64 = (-100i64).cast_unsigned();
const ENOENT: i64 = -2;

fn call(play: &mut Play, call: Sysno, path: &str, rest: &[u64]) -> i64 {
    play.write(1, PATH, path.as_bytes());
    play.write(1, PATH + path.len() as u64, &[0]);
    let mut all = [HERE, PATH, 0, 0, 0, 0];
    all[2..2 + rest.len()].copy_from_slice(rest);
    if call == Sysno::chdir {
        all[0] = PATH;
    }
    let result = play.call(1, call as u64, all).unwrap().cast_signed();
    play.check();
    result
}

/// Returns the number of a directory, and that of its links.
fn directory(play: &mut Play, path: &str) -> (u64, u32) {
    assert_eq!(call(play, Sysno::fstatat, path, &[RECORD, 0]), 0, "{path}");
    let mut record = [0; 32];
    play.read(1, RECORD, &mut record);
    (u64::from_le_bytes(record[8..16].try_into().unwrap()), u32::from_le_bytes(record[20..24].try_into().unwrap()))
}

fn remove(play: &mut Play, path: &str) {
    assert_eq!(call(play, Sysno::unlinkat, path, &[0x200]), 0, "{path}");
}

#[test]
fn the_way_up_leads_where_it_led() {
    let mut play = Play::new(4096);
    for path in ["/tmp/a", "/tmp/a/b", "/tmp/a/b/c"] {
        assert_eq!(call(&mut play, Sysno::mkdirat, path, &[0o755]), 0);
    }
    let numbers = ["/tmp", "/tmp/a", "/tmp/a/b"].map(|path| directory(&mut play, path).0);
    assert_eq!(call(&mut play, Sysno::chdir, "/tmp/a/b/c", &[]), 0);
    for path in ["/tmp/a/b/c", "/tmp/a/b", "/tmp/a"] {
        remove(&mut play, path);
    }
    assert_eq!(directory(&mut play, ".."), (numbers[2], 0));
    assert_eq!(directory(&mut play, "../.."), (numbers[1], 0));
    assert_eq!(directory(&mut play, "../../..").0, numbers[0]);
    assert_eq!(play.call(1, Sysno::getcwd as u64, [RECORD, 100, 0, 0, 0, 0]).map(u64::cast_signed), Some(ENOENT));
    assert_eq!(call(&mut play, Sysno::mkdirat, "../d", &[0o755]), ENOENT);
    assert_eq!(call(&mut play, Sysno::chdir, "..", &[]), 0);
    assert_eq!(call(&mut play, Sysno::chdir, "../..", &[]), 0);
    assert_eq!(directory(&mut play, ".").0, numbers[0]);
    play.end();
}

#[test]
fn many_that_lie_in_each_other_end_together() {
    const DEPTH: usize = 1000;
    let mut play = Play::new(4096);
    let mut make = |path: &str, number: Sysno, arguments: [u64; 3]| {
        play.write(1, PATH, format!("{path}\0").as_bytes());
        let [a, b, c] = arguments;
        assert_eq!(play.call(1, number as u64, [a, b, c, 0, 0, 0]), Some(0), "{path}");
    };
    for _ in 0..DEPTH {
        make("d", Sysno::mkdirat, [HERE, PATH, 0o755]);
        make("d", Sysno::chdir, [PATH, 0, 0]);
    }
    for up in 1..=DEPTH {
        make(&("../".repeat(up) + "d"), Sysno::unlinkat, [HERE, PATH, 0x200]);
    }
    make("/", Sysno::chdir, [PATH, 0, 0]);
    play.check();
    play.end();
}
