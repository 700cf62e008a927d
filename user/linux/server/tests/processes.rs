//! Processes: single sequences of calls that went wrong, or easily could.

mod support;

use std::time::Duration;

use support::{Doing, Play};
use tench_linux_calls::Sysno;

/// Address in the program's data.
const DATA: u64 = 0x20_1300;
/// Code of the program, which handles signals.
const HANDLER: u64 = 0x20_0100;
const RESTART: u64 = 0x1000_0000;
const FORK: u64 = 17;
const VFORK: u64 = 0x4111;
const KILL: u64 = 9;

fn call(play: &mut Play, id: u32, call: Sysno, arguments: &[u64]) -> Option<i64> {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    play.call(id, call as u64, all).map(u64::cast_signed)
}

/// Writes a text of at most 16 bytes.
fn put_text(play: &mut Play, id: u32, text: &str) {
    let mut bytes = [0; 16];
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    let words: Vec<u64> = bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
    play.put(id, DATA, &words);
}

#[test]
fn a_call_keeps_its_result_if_a_signal_comes_with_its_answer() {
    let mut play = Play::new(4096);
    play.put(1, DATA, &[HANDLER, RESTART, 0, 0]);
    assert_eq!(call(&mut play, 1, Sysno::rt_sigaction, &[17, DATA, 0, 8]), Some(0));
    assert_eq!(call(&mut play, 1, Sysno::clone, &[FORK]), Some(2));
    call(&mut play, 1, Sysno::kill, &[2, KILL]);
    let frame = play.thread(1).registers.sp;
    let mut kept = [1; 8];
    // Behind the signal and the head of the context, and the fault's address.
    play.read(1, frame + 128 + 176 + 8, &mut kept);
    assert_eq!(kept, [0; 8], "what `kill` returns after the handler");
    play.end();
}

#[test]
fn a_process_goes_on_once_its_child_was_killed_though_another_one_has_its_memory() {
    let mut play = Play::new(4096);
    assert_eq!(call(&mut play, 1, Sysno::clone, &[VFORK]), None);
    assert_eq!(call(&mut play, 2, Sysno::clone, &[VFORK]), None);
    call(&mut play, 3, Sysno::kill, &[2, KILL]);
    assert_eq!((play.doing(1), play.doing(2)), (Some(Doing::Runs), None));
    assert_eq!(play.thread(1).registers.x[0], 2);
    assert_eq!(call(&mut play, 1, Sysno::getpid, &[]), Some(1));
    play.check();
    play.end();
}

#[test]
fn orphans_cannot_end_the_first_process_by_a_signal_that_it_does_not_handle() {
    const ALARM: u64 = 14;
    let mut play = Play::new(4096);
    call(&mut play, 1, Sysno::clone, &[FORK]);
    call(&mut play, 2, Sysno::clone, &[FORK]);
    call(&mut play, 3, Sysno::clone, &[FORK]);
    call(&mut play, 2, Sysno::exit, &[]);
    assert_eq!(call(&mut play, 3, Sysno::getppid, &[]), Some(1));
    // Neither the orphan nor its child, whatever the call.
    for own in [3, 4] {
        assert_eq!(call(&mut play, own, Sysno::kill, &[1, ALARM]), Some(0));
        assert_eq!(call(&mut play, own, Sysno::tgkill, &[1, 1, KILL]), Some(0));
        assert_eq!(play.doing(1), Some(Doing::Runs));
    }
    let action = [DATA, 0, 0, 0];
    play.put(1, DATA, &action);
    call(&mut play, 1, Sysno::rt_sigaction, &[ALARM, DATA, 0, 8]);
    call(&mut play, 3, Sysno::kill, &[1, ALARM]);
    assert_eq!(play.thread(1).registers.x[0], ALARM, "a handler runs");
    // A child whose parent lives can.
    call(&mut play, 1, Sysno::clone, &[FORK]);
    call(&mut play, 5, Sysno::kill, &[1, KILL]);
    assert!(play.instance.status().is_some());
}

#[test]
fn the_child_of_vfork_moves_the_end_of_the_heap_that_both_have() {
    let mut play = Play::new(4096);
    let end = call(&mut play, 1, Sysno::brk, &[0]).unwrap();
    call(&mut play, 1, Sysno::clone, &[VFORK]);
    assert_eq!(call(&mut play, 2, Sysno::brk, &[(end + 0x3000).cast_unsigned()]), Some(end + 0x3000));
    call(&mut play, 2, Sysno::exit, &[]);
    assert_eq!(call(&mut play, 1, Sysno::brk, &[0]), Some(end + 0x3000));
    assert_eq!(call(&mut play, 1, Sysno::brk, &[(end + 0x8000).cast_unsigned()]), Some(end + 0x8000));
    play.end();
}

#[test]
fn a_full_queue_of_signals_does_not_protect() {
    let mut play = Play::new(4096);
    assert_eq!(call(&mut play, 1, Sysno::clone, &[FORK]), Some(2));
    play.put(2, DATA, &[u64::MAX]);
    assert_eq!(call(&mut play, 2, Sysno::rt_sigprocmask, &[0, DATA, 0, 8]), Some(0));
    for _ in 0..1025 {
        assert_eq!(call(&mut play, 2, Sysno::kill, &[2, 40]), Some(0));
    }
    assert_eq!(call(&mut play, 1, Sysno::kill, &[2, KILL]), Some(0));
    assert_eq!(play.doing(2), None);
    play.end();
}

#[test]
fn a_timer_leaves_time_for_others() {
    let mut play = Play::new(4096);
    play.put(1, DATA, &[1, 0, 0, 0]);
    call(&mut play, 1, Sysno::rt_sigaction, &[14, DATA, 0, 8]);
    // An interval of a microsecond.
    play.put(1, DATA, &[0, 1, 0, 1]);
    assert_eq!(call(&mut play, 1, Sysno::setitimer, &[0, DATA]), Some(0));
    for _ in 0..5 {
        let now = play.instance.deadline().unwrap() + Duration::from_micros(7);
        play.instance.system.memory.hardware.time = now;
        play.instance.pass_time();
        assert!(play.instance.deadline().unwrap() >= now + Duration::from_millis(1));
    }
    play.end();
}

#[test]
fn a_pipe_without_a_first_writer_has_not_ended() {
    let mut play = Play::new(4096);
    put_text(&mut play, 1, "/tmp/f");
    let here = (-100i64).cast_unsigned();
    assert_eq!(call(&mut play, 1, Sysno::mknodat, &[here, DATA, 0o010644]), Some(0));
    let reader = call(&mut play, 1, Sysno::openat, &[here, DATA, 0o4000]).unwrap().cast_unsigned();
    let poll = |play: &mut Play| {
        play.put(1, DATA + 64, &[reader | 1 << 32, 0, 0]);
        call(play, 1, Sysno::ppoll, &[DATA + 64, 1, DATA + 72]).unwrap()
    };
    assert_eq!(poll(&mut play), 0);
    let writer = call(&mut play, 1, Sysno::openat, &[here, DATA, 0o4001]).unwrap();
    assert_eq!(poll(&mut play), 0);
    call(&mut play, 1, Sysno::close, &[writer.cast_unsigned()]);
    assert_eq!(poll(&mut play), 1, "the end");
    play.end();
}

#[test]
fn a_call_that_waits_need_not_tell_how_much_time_was_left() {
    let mut play = Play::new(4096);
    // The time lies in the program's code.
    assert_eq!(call(&mut play, 1, Sysno::ppoll, &[0, 0, 0x20_0800]), Some(0));
    play.end();
}

#[test]
fn arguments_are_counted_while_they_are_read() {
    let mut play = Play::new(32768);
    let area = call(&mut play, 1, Sysno::mmap, &[0, 1 << 20, 3, 0x22, u64::MAX, 0]).unwrap().cast_unsigned();
    let vector = area + (512 << 10);
    play.put(1, area, &vec![0x6161_6161_6161_6161; 16383]);
    put_text(&mut play, 1, "/bin/program");
    play.put(1, vector, &[area; 4000]);
    assert_eq!(call(&mut play, 1, Sysno::execve, &[DATA, vector, 0]), Some(-7));
    // Long ones may be several.
    play.put(1, vector, &[area, area, area, 0]);
    call(&mut play, 1, Sysno::execve, &[DATA, vector, 0]);
    assert_eq!(play.thread(1).registers.pc, 0x20_0100, "the new program begins");
    play.end();
}

#[test]
fn a_child_that_has_ended_can_still_be_moved_to_a_group() {
    let mut play = Play::new(4096);
    let child = call(&mut play, 1, Sysno::clone, &[FORK]).unwrap().cast_unsigned();
    call(&mut play, 2, Sysno::exit, &[]);
    assert_eq!(call(&mut play, 1, Sysno::setpgid, &[child, child]), Some(0));
    play.end();
}

#[test]
fn stopped_processes_that_nobody_would_let_go_on_get_two_signals() {
    let mut play = Play::new(4096);
    call(&mut play, 1, Sysno::clone, &[FORK]);
    call(&mut play, 2, Sysno::setsid, &[]);
    call(&mut play, 2, Sysno::clone, &[FORK]);
    assert_eq!(call(&mut play, 3, Sysno::setpgid, &[]), Some(0));
    call(&mut play, 2, Sysno::kill, &[3, 19]);
    call(&mut play, 2, Sysno::exit, &[]);
    assert_eq!(play.doing(3), None, "SIGHUP ends it");
    play.end();
}
