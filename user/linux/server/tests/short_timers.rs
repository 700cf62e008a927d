//! Timers that are due more often than they can be looked at.

mod support;

use std::time::Duration;

use support::Play;
use tench_linux::specials::{SHORTEST, Timer};
use tench_linux_calls::Sysno;

const fn timer(next: u64, interval: u64) -> Timer {
    let (next, interval) = (Some(Duration::from_nanos(next)), Duration::from_nanos(interval));
    Timer { next, interval, ..Timer::unset(false) }
}

#[test]
fn a_timer_is_looked_at_again_after_a_while_and_counts_what_was_between() {
    let mut short = timer(1000, 2);
    short.pass(Duration::from_nanos(999));
    assert_eq!((short.count, short.next), (0, Some(Duration::from_nanos(1000))));
    short.pass(Duration::from_nanos(1005));
    assert_eq!(short.count, 3, "at 1000, 1002, 1004");
    let next = short.next.unwrap();
    assert!(next >= Duration::from_nanos(1005) + SHORTEST && next < Duration::from_nanos(1008) + SHORTEST, "{next:?}");
    short.pass(next);
    let all = u64::try_from((next.as_nanos() - 1000) / 2).unwrap() + 1;
    assert_eq!(short.count, all);
    let later = Duration::from_secs(1000);
    short.pass(later);
    assert_eq!(short.count, (1_000_000_000_000 - 1000) / 2 + 1, "more than a number of 32 bits counts");
    assert!(short.next.unwrap() >= later + SHORTEST);
}

#[test]
fn a_timer_that_is_due_rarely_is_due_in_time() {
    let mut usual = timer(1_000_000_000, 5_000_000);
    usual.pass(Duration::from_nanos(1_000_000_100));
    assert_eq!((usual.count, usual.next), (1, Some(Duration::from_nanos(1_005_000_000))));
    usual.pass(Duration::from_nanos(1_014_500_000));
    assert_eq!(
        (usual.count, usual.next),
        (3, Some(Duration::from_nanos(1_020_000_000))),
        "1015 ms would be too soon to look"
    );
    let mut once = timer(5, 0);
    once.pass(Duration::from_nanos(7));
    assert_eq!((once.count, once.next), (1, None));
}

#[test]
fn the_instance_does_not_look_at_a_short_timer_all_the_time() {
    const DATA: u64 = 0x20_1300;
    let mut play = Play::new(4096);
    // It sends no signal: struct sigevent with SIGEV_NONE.
    play.put(1, DATA, &[0, 1 << 32, 0]);
    assert_eq!(play.call(1, Sysno::timer_create as u64, [1, DATA, DATA + 64, 0, 0, 0]), Some(0));
    play.put(1, DATA, &[0, 2, 0, 2]);
    assert_eq!(play.call(1, Sysno::timer_settime as u64, [0, 0, DATA, 0, 0, 0]), Some(0));
    let start = play.instance.deadline().unwrap();
    play.instance.system.memory.hardware.time = start;
    play.instance.pass_time();
    assert!(play.instance.deadline().unwrap() >= start + SHORTEST);
    play.check();
}

#[test]
fn a_timer_gets_no_alarm_until_it_is_read() {
    const DATA: u64 = 0x20_1300;
    let mut play = Play::new(4096);
    let timer = play.call(1, Sysno::timerfd_create as u64, [1, 0, 0, 0, 0, 0]).unwrap();
    play.put(1, DATA, &[0, 1, 0, 1]);
    assert_eq!(play.call(1, Sysno::timerfd_settime as u64, [timer, 0, DATA, 0, 0, 0]), Some(0));
    let due = play.instance.deadline().unwrap();
    play.instance.system.memory.hardware.time = due;
    play.instance.pass_time();
    assert_eq!(play.instance.deadline(), None);
    let later = due + Duration::from_secs(1);
    play.instance.system.memory.hardware.time = later;
    assert_eq!(play.call(1, Sysno::read as u64, [timer, DATA, 8, 0, 0, 0]), Some(8));
    let mut count = [0; 8];
    play.instance.system.read(play.instance.processes.find(1).unwrap().space, DATA, &mut count);
    assert_eq!(u64::from_le_bytes(count), 1_000_000_001, "expiries without an alarm are counted, too");
    assert!(play.instance.deadline().unwrap() >= later + SHORTEST, "an alarm is set again");
    play.check();
}
