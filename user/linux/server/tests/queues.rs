//! Message queues beside the ends of those who use them.

mod support;

use support::{Doing, Play};
use tench_linux_calls::Sysno;
use tench_linux_files::Errno;

/// Addresses in the program's data.
const NAME: u64 = 0x20_1100;
const DATA: u64 = 0x20_1300;
const FORK: u64 = 17;
const CREATE: u64 = 0o102;
const USUAL: u64 = 8192;
const USR1: u64 = 10;

fn call(play: &mut Play, id: u32, call: Sysno, arguments: &[u64]) -> Option<i64> {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    play.call(id, call as u64, all).map(u64::cast_signed)
}

fn refused(error: Errno) -> Option<i64> {
    Some((-error.into_raw()).into())
}

fn open(play: &mut Play) -> u64 {
    play.write(1, NAME, b"queue\0");
    call(play, 1, Sysno::mq_open, &[NAME, CREATE, 0o600, 0]).unwrap().cast_unsigned()
}

fn receive(play: &mut Play, id: u32, queue: u64) -> Option<i64> {
    call(play, id, Sysno::mq_timedreceive, &[queue, DATA, USUAL, 0, 0])
}

fn send(play: &mut Play, id: u32, queue: u64) -> Option<i64> {
    call(play, id, Sysno::mq_timedsend, &[queue, DATA, 1, 0, 0])
}

#[test]
fn a_queue_ends_with_its_name_and_its_last_user() {
    let mut play = Play::new(4096);
    let queue = open(&mut play);
    let child = call(&mut play, 1, Sysno::clone, &[FORK]).unwrap() as u32;
    assert_eq!(call(&mut play, 1, Sysno::mq_unlink, &[NAME]), Some(0));
    assert_eq!(call(&mut play, 1, Sysno::close, &[queue]), Some(0));
    assert_eq!(play.instance.system.queues.queues(), 1, "the child has it");
    call(&mut play, child, Sysno::exit_group, &[0]);
    assert_eq!(play.instance.system.queues.queues(), 0);
    play.check();
    play.end();
}

#[test]
fn a_queue_with_a_name_stays_with_its_messages() {
    let mut play = Play::new(4096);
    let queue = open(&mut play);
    assert_eq!(send(&mut play, 1, queue), Some(0));
    assert_eq!(call(&mut play, 1, Sysno::close, &[queue]), Some(0));
    let queue = open(&mut play);
    assert_eq!(receive(&mut play, 1, queue), Some(1));
    play.check();
}

#[test]
fn who_waits_gets_the_message_and_a_signal_ends_the_wait() {
    let mut play = Play::new(4096);
    let queue = open(&mut play);
    let child = call(&mut play, 1, Sysno::clone, &[FORK]).unwrap() as u32;
    assert_eq!(receive(&mut play, child, queue), None);
    assert_eq!(send(&mut play, 1, queue), Some(0));
    assert_eq!((play.doing(child), play.thread(child).registers.x[0]), (Some(Doing::Runs), 1));
    for _ in 0..10 {
        assert_eq!(send(&mut play, 1, queue), Some(0));
    }
    assert_eq!(send(&mut play, child, queue), None, "it is full");
    assert_eq!(receive(&mut play, 1, queue), Some(1));
    assert_eq!((play.doing(child), play.thread(child).registers.x[0]), (Some(Doing::Runs), 0));
    assert_eq!(send(&mut play, child, queue), None);
    call(&mut play, 1, Sysno::kill, &[child.into(), 9]);
    assert_eq!(play.doing(child), None);
    play.check();
    play.end();
}

#[test]
fn who_has_ended_is_told_nothing() {
    let mut play = Play::new(4096);
    let queue = open(&mut play);
    let child = call(&mut play, 1, Sysno::clone, &[FORK]).unwrap() as u32;
    // struct sigevent: the value, and in one word the signal with SIGEV_SIGNAL.
    play.put(child, DATA, &[0, USR1, 0]);
    assert_eq!(call(&mut play, child, Sysno::mq_notify, &[queue, DATA]), Some(0));
    play.put(1, DATA, &[0, USR1, 0]);
    assert_eq!(call(&mut play, 1, Sysno::mq_notify, &[queue, DATA]), refused(Errno::EBUSY));
    call(&mut play, child, Sysno::exit_group, &[0]);
    assert_eq!(call(&mut play, 1, Sysno::mq_notify, &[queue, DATA]), Some(0));
    assert_eq!(call(&mut play, 1, Sysno::mq_notify, &[queue, 0]), Some(0));
    assert_eq!(send(&mut play, 1, queue), Some(0));
    assert_eq!(play.doing(1), Some(Doing::Runs), "no signal has ended it");
    play.check();
}
