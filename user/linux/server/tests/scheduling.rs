//! Wishes of threads for how they are scheduled: recorded, inherited, and the reason who is woken first.

mod support;

use support::{Doing, Play};
use tench_linux_calls::Sysno;
use tench_linux_calls::numbers::schedule;
use tench_linux_files::Errno;

/// Addresses in the program's data.
const DATA: u64 = 0x20_1300;
const WORD: u64 = 0x20_1400;
const THREAD: u64 = 0x5_0f00;
const FORK: u64 = 17;
const WAIT: u64 = 0x80;
const WAKE: u64 = 0x81;

fn call(play: &mut Play, id: u32, call: Sysno, arguments: &[u64]) -> Option<i64> {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    play.call(id, call as u64, all).map(u64::cast_signed)
}

fn refused(error: Errno) -> Option<i64> {
    Some((-error.into_raw()).into())
}

/// Sets the policy and priority of a thread, as process 1.
fn set(play: &mut Play, thread: u32, policy: u32, priority: u32) -> Option<i64> {
    play.put(1, DATA, &[priority.into()]);
    call(play, 1, Sysno::sched_setscheduler, &[thread.into(), policy.into(), DATA])
}

/// Returns the policy and the priority of a thread, as it asks itself.
fn own(play: &mut Play, thread: u32) -> (u32, u32) {
    let policy = call(play, thread, Sysno::sched_getscheduler, &[0]).unwrap();
    assert_eq!(call(play, thread, Sysno::sched_getparam, &[0, DATA]), Some(0));
    let mut priority = [0; 4];
    play.read(thread, DATA, &mut priority);
    (policy as u32, u32::from_le_bytes(priority))
}

#[test]
fn policies_and_priorities_are_recorded_and_inherited() {
    let mut play = Play::new(4096);
    assert_eq!(own(&mut play, 1), (schedule::OTHER, 0));
    assert_eq!(set(&mut play, 1, schedule::FIFO, 99), Some(0));
    play.put(1, DATA, &[7]);
    assert_eq!(call(&mut play, 1, Sysno::sched_setparam, &[1, DATA]), Some(0));
    assert_eq!(own(&mut play, 1), (schedule::FIFO, 7));
    let thread = call(&mut play, 1, Sysno::clone, &[THREAD, 0x20_5000]).unwrap() as u32;
    let child = call(&mut play, 1, Sysno::clone, &[FORK]).unwrap() as u32;
    for other in [thread, child] {
        assert_eq!(own(&mut play, other), (schedule::FIFO, 7));
        assert_eq!(set(&mut play, other, schedule::RR, 3), Some(0));
        assert_eq!(own(&mut play, other), (schedule::RR, 3));
        assert_eq!(call(&mut play, 1, Sysno::sched_getscheduler, &[other.into()]), Some(schedule::RR.into()));
    }
    assert_eq!(own(&mut play, 1), (schedule::FIFO, 7));
    play.end();
}

#[test]
fn a_child_is_scheduled_in_the_usual_way_if_its_parent_wants_that() {
    let mut play = Play::new(4096);
    let policy = schedule::RR | schedule::RESET_ON_FORK;
    assert_eq!(set(&mut play, 1, policy, 5), Some(0));
    assert_eq!(own(&mut play, 1), (policy, 5));
    let child = call(&mut play, 1, Sysno::clone, &[FORK]).unwrap() as u32;
    assert_eq!(own(&mut play, child), (schedule::OTHER, 0));
    assert_eq!(set(&mut play, 1, schedule::BATCH | schedule::RESET_ON_FORK, 0), Some(0));
    let child = call(&mut play, 1, Sysno::clone, &[FORK]).unwrap() as u32;
    assert_eq!(own(&mut play, child), (schedule::BATCH, 0));
    play.end();
}

#[test]
fn what_no_policy_has_is_refused() {
    let mut play = Play::new(4096);
    for (policy, priority) in [(0, 1), (1, 0), (2, 100), (3, 1), (4, 0), (6, 1), (77, 0)] {
        assert_eq!(set(&mut play, 1, policy, priority), refused(Errno::EINVAL), "{policy} {priority}");
    }
    assert_eq!(set(&mut play, 99, schedule::FIFO, 1), refused(Errno::ESRCH));
    assert_eq!(set(&mut play, u32::MAX, schedule::FIFO, 1), refused(Errno::EINVAL));
    play.put(1, DATA, &[1]);
    assert_eq!(call(&mut play, 1, Sysno::sched_setparam, &[0, DATA]), refused(Errno::EINVAL), "the policy has none");
    assert_eq!(call(&mut play, 1, Sysno::sched_setparam, &[0, 0]), refused(Errno::EINVAL));
    assert_eq!(call(&mut play, 1, Sysno::sched_setparam, &[0, 8]), refused(Errno::EFAULT));
    assert_eq!(own(&mut play, 1), (schedule::OTHER, 0));
}

#[test]
fn who_has_a_higher_priority_is_woken_first_and_equals_in_order() {
    let mut play = Play::new(4096);
    let priorities = [0, 5, 9, 5, 0];
    let threads = priorities.map(|priority| {
        let thread = call(&mut play, 1, Sysno::clone, &[THREAD, 0x20_5000]).unwrap() as u32;
        let policy = if priority > 0 { schedule::FIFO } else { schedule::OTHER };
        assert_eq!(set(&mut play, thread, policy, priority), Some(0));
        assert_eq!(call(&mut play, thread, Sysno::futex, &[WORD, WAIT, 0]), None);
        thread
    });
    for next in [2, 1, 3, 0, 4] {
        assert_eq!(play.doing(threads[next]), Some(Doing::Waits));
        assert_eq!(call(&mut play, 1, Sysno::futex, &[WORD, WAKE, 1]), Some(1));
        assert_eq!(play.doing(threads[next]), Some(Doing::Runs), "{next}");
        play.check();
    }
}
