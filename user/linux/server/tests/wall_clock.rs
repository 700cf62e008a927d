//! The date, as programs see it: clocks, times of files, and what is said about the start.

mod support;

use std::time::Duration;

use support::{Doing, Play, START};
use tench_linux_calls::Sysno;
use tench_linux_files::Errno;

/// Addresses in the program's data.
const PATH: u64 = 0x20_1100;
const DATA: u64 = 0x20_1300;
const HERE: u64 = (-100i64).cast_unsigned();
const CREATE: u64 = 0o101;
/// Clocks that show the date: the usual one, its coarse one, the one of alarms, and atomic time.
const OF_DATE: [u64; 4] = [0, 5, 8, 11];
const MONOTONIC: u64 = 1;
const ABSOLUTE: u64 = 1;

fn call(play: &mut Play, call: Sysno, arguments: &[u64]) -> Option<i64> {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    play.call(1, call as u64, all).map(u64::cast_signed)
}

fn let_pass(play: &mut Play, time: Duration) {
    play.instance.system.memory.hardware.time += time;
}

fn words<const N: usize>(play: &mut Play, address: u64) -> [u64; N] {
    let mut bytes = vec![0; 8 * N];
    assert_eq!(play.read(1, address, &mut bytes), bytes.len());
    core::array::from_fn(|index| u64::from_le_bytes(*bytes[8 * index..].first_chunk().unwrap()))
}

fn clock(play: &mut Play, clock: u64) -> Duration {
    assert_eq!(call(play, Sysno::clock_gettime, &[clock, DATA]), Some(0));
    let [seconds, nanoseconds] = words(play, DATA);
    Duration::new(seconds, nanoseconds as u32)
}

fn path(play: &mut Play, path: &str) {
    play.write(1, PATH, path.as_bytes());
    play.write(1, PATH + path.len() as u64, &[0]);
}

/// Returns when a file was read, written and changed last.
fn times(play: &mut Play, of: &str) -> [Duration; 3] {
    path(play, of);
    assert_eq!(call(play, Sysno::fstatat, &[HERE, PATH, DATA, 0]), Some(0));
    let all: [u64; 6] = words(play, DATA + 72);
    [0, 2, 4].map(|at| Duration::new(all[at], all[at + 1] as u32))
}

fn text(play: &mut Play, of: &str) -> String {
    path(play, of);
    let file = call(play, Sysno::openat, &[HERE, PATH, 0]).unwrap().cast_unsigned();
    let length = call(play, Sysno::read, &[file, DATA, 0x800]).unwrap();
    let mut bytes = vec![0; length as usize];
    play.read(1, DATA, &mut bytes);
    assert_eq!(call(play, Sysno::close, &[file]), Some(0));
    String::from_utf8(bytes).unwrap()
}

#[test]
fn clocks_show_the_date_or_the_time_since_the_start() {
    let mut play = Play::new(4096);
    let_pass(&mut play, Duration::from_nanos(4_200_000_007));
    let since_start = Duration::from_nanos(5_200_000_007);
    for of_date in OF_DATE {
        assert_eq!(clock(&mut play, of_date), START + since_start, "clock {of_date}");
    }
    assert_eq!(clock(&mut play, MONOTONIC), since_start);
    assert_eq!(call(&mut play, Sysno::gettimeofday, &[DATA]), Some(0));
    assert_eq!(words(&mut play, DATA), [START.as_secs() + 5, 200_000]);
}

/// Makes another process, which goes on with the same program. Returns its number.
fn fork(play: &mut Play) -> u32 {
    const CHILD: u64 = 17;
    u32::try_from(call(play, Sysno::clone, &[CHILD]).unwrap()).unwrap()
}

/// Sets the clock with the date.
fn set(play: &mut Play, time: Duration) -> Option<i64> {
    play.put(1, DATA, &[time.as_secs(), time.subsec_nanos().into()]);
    call(play, Sysno::clock_settime, &[OF_DATE[0], DATA])
}

#[test]
fn a_program_sets_the_date_of_its_instance() {
    let mut play = Play::new(4096);
    let_pass(&mut play, Duration::from_secs(2));
    let date = Duration::new(1_000_000_000, 7);
    assert_eq!(set(&mut play, date), Some(0));
    for of_date in OF_DATE {
        assert_eq!(clock(&mut play, of_date), date, "clock {of_date}");
    }
    assert_eq!(clock(&mut play, MONOTONIC), Duration::from_secs(3));
    let_pass(&mut play, Duration::from_secs(5));
    assert_eq!(clock(&mut play, OF_DATE[0]), date + Duration::from_secs(5));
    path(&mut play, "/tmp/f");
    call(&mut play, Sysno::openat, &[HERE, PATH, CREATE, 0o644]);
    assert_eq!(times(&mut play, "/tmp/f"), [date + Duration::from_secs(5); 3]);
    let refused = Some((-Errno::EINVAL.into_raw()).into());
    assert_eq!(set(&mut play, Duration::from_secs(7)), refused, "the machine was on for 8 seconds then");
    play.put(1, DATA, &[1_000_000_000, 0]);
    for other in [MONOTONIC, 2, 5, 77] {
        assert_eq!(call(&mut play, Sysno::clock_settime, &[other, DATA]), refused, "clock {other}");
    }
    assert_eq!(clock(&mut play, OF_DATE[0]), date + Duration::from_secs(5));
}

#[test]
fn what_waits_for_a_date_waits_for_it_by_the_clock_that_was_set() {
    let mut play = Play::new(4096);
    let child = fork(&mut play);
    let due = START + Duration::from_secs(100);
    play.put(child, DATA, &[due.as_secs(), 0]);
    let sleep = [OF_DATE[0], ABSOLUTE, DATA, 0, 0, 0];
    assert_eq!(play.call(child, Sysno::clock_nanosleep as u64, sleep), None);
    assert_eq!(play.instance.deadline(), Some(Duration::from_secs(100)));
    assert_eq!(set(&mut play, START + Duration::from_secs(31)), Some(0));
    assert_eq!(play.instance.deadline(), Some(Duration::from_secs(70)));
    assert_eq!(set(&mut play, START + Duration::from_secs(11)), Some(0));
    assert_eq!(play.instance.deadline(), Some(Duration::from_secs(90)));
    assert_eq!(set(&mut play, due), Some(0));
    play.instance.pass_time();
    assert_eq!(play.doing(child), Some(Doing::Runs));
    // Who waits for so long waits for so long.
    play.put(child, DATA, &[50, 0]);
    assert_eq!(play.call(child, Sysno::clock_nanosleep as u64, [OF_DATE[0], 0, DATA, 0, 0, 0]), None);
    assert_eq!(set(&mut play, due + Duration::from_secs(1000)), Some(0));
    assert_eq!(play.instance.deadline(), Some(Duration::from_secs(51)));
    play.check();
}

#[test]
fn timers_that_are_due_at_a_date_are_due_by_the_clock_that_was_set() {
    let mut play = Play::new(4096);
    assert_eq!(call(&mut play, Sysno::timer_create, &[OF_DATE[0], 0, DATA]), Some(0));
    let file = call(&mut play, Sysno::timerfd_create, &[OF_DATE[0], 0]).unwrap().cast_unsigned();
    let arm = |play: &mut Play, flags: u64, first: u64| {
        play.put(1, DATA, &[0, 0, first, 0]);
        assert_eq!(call(play, Sysno::timer_settime, &[0, flags, DATA, 0]), Some(0));
        play.put(1, DATA, &[0, 0, first + 1, 0]);
        assert_eq!(call(play, Sysno::timerfd_settime, &[file, flags, DATA, 0]), Some(0));
    };
    let left = |play: &mut Play| {
        assert_eq!(call(play, Sysno::timer_gettime, &[0, DATA]), Some(0));
        let [_, _, one, _] = words(play, DATA);
        assert_eq!(call(play, Sysno::timerfd_gettime, &[file, DATA]), Some(0));
        let [_, _, other, _]: [u64; 4] = words(play, DATA);
        [one, other]
    };
    arm(&mut play, ABSOLUTE, START.as_secs() + 100);
    assert_eq!(set(&mut play, START + Duration::from_secs(40)), Some(0));
    assert_eq!((left(&mut play), play.instance.deadline()), ([60, 61], Some(Duration::from_secs(61))));
    arm(&mut play, 0, 100);
    assert_eq!(set(&mut play, START + Duration::from_secs(80)), Some(0));
    assert_eq!((left(&mut play), play.instance.deadline()), ([100, 101], Some(Duration::from_secs(101))));
    play.check();
}

#[test]
fn files_have_the_date_of_their_changes() {
    let mut play = Play::new(4096);
    let at = |seconds| START + Duration::from_secs(seconds);
    let_pass(&mut play, Duration::from_secs(1));
    path(&mut play, "/tmp/f");
    let file = call(&mut play, Sysno::openat, &[HERE, PATH, CREATE, 0o644]).unwrap().cast_unsigned();
    assert_eq!(times(&mut play, "/tmp/f"), [at(2); 3]);
    assert_eq!(times(&mut play, "/tmp")[1..], [at(2); 2]);
    let_pass(&mut play, Duration::from_secs(1));
    assert_eq!(call(&mut play, Sysno::write, &[file, DATA, 5]), Some(5));
    assert_eq!(times(&mut play, "/tmp/f"), [at(2), at(3), at(3)]);
    let_pass(&mut play, Duration::from_secs(1));
    assert_eq!(call(&mut play, Sysno::utimensat, &[HERE, PATH, 0, 0]), Some(0));
    assert_eq!(times(&mut play, "/tmp/f"), [at(4); 3]);
}

#[test]
fn a_wait_until_a_date_ends_then() {
    let mut play = Play::new(4096);
    let_pass(&mut play, Duration::from_secs(2));
    play.put(1, DATA, &[START.as_secs() + 10, 500]);
    assert_eq!(call(&mut play, Sysno::clock_nanosleep, &[OF_DATE[0], ABSOLUTE, DATA, 0]), None);
    let deadline = Duration::from_nanos(10_000_000_500);
    assert_eq!(play.instance.deadline(), Some(deadline));
    play.instance.system.memory.hardware.time = deadline;
    play.instance.pass_time();
    assert_eq!((play.doing(1), play.thread(1).registers.x[0]), (Some(Doing::Runs), 0));
    play.put(1, DATA, &[START.as_secs() + 10, 500]);
    let again = call(&mut play, Sysno::clock_nanosleep, &[OF_DATE[0], ABSOLUTE, DATA, 0]);
    assert_eq!(again, Some(0), "what is past is not waited for");
}

/// Each reading of the clock takes time here, so a difference of two would change.
#[test]
fn what_is_said_about_the_start_stays_the_same() {
    let mut play = Play::new(4096);
    let started = |play: &mut Play| {
        let statistics = text(play, "/proc/stat");
        let machine = statistics.lines().find_map(|line| line.strip_prefix("btime ")).unwrap().to_owned();
        let process = text(play, "/proc/1/stat").split(' ').nth(21).unwrap().to_owned();
        (machine, process)
    };
    let expected = (START.as_secs().to_string(), "100".to_owned());
    assert_eq!((started(&mut play), times(&mut play, "/proc")), (expected.clone(), [START; 3]));
    play.instance.system.memory.hardware.passes = Duration::from_millis(1500);
    for _ in 0..20 {
        assert_eq!((started(&mut play), times(&mut play, "/proc")), (expected.clone(), [START; 3]));
    }
}
