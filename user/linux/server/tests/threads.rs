//! Threads: single sequences of calls that went wrong, or easily could.

mod support;

use support::{Doing, Play};
use tench_linux::Status;
use tench_linux::process::News;
use tench_linux::signals::Info;
use tench_linux_calls::Sysno;

/// Address in the program's data.
const DATA: u64 = 0x20_1300;
/// A word there, which is 0.
const WORD: u64 = 0x20_1400;
/// Code of the program, which handles signals.
const HANDLER: u64 = 0x20_0100;
const RESTART: u64 = 0x1000_0000;
const THREAD: u64 = 0x5_0f00;
const FORK: u64 = 17;
const VFORK: u64 = 0x4111;
const WAIT: u64 = 0x80;
const WAKE: u64 = 0x81;
const USR1: u64 = 10;

fn call(play: &mut Play, id: u32, call: Sysno, arguments: &[u64]) -> Option<i64> {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    play.call(id, call as u64, all).map(u64::cast_signed)
}

/// Makes a thread. Returns its number.
fn thread(play: &mut Play, id: u32) -> u32 {
    u32::try_from(call(play, id, Sysno::clone, &[THREAD, 0x20_5000]).unwrap()).unwrap()
}

fn handle(play: &mut Play, signal: u64, flags: u64) {
    play.put(1, DATA, &[HANDLER, flags, 0, 0]);
    assert_eq!(call(play, 1, Sysno::rt_sigaction, &[signal, DATA, 0, 8]), Some(0));
}

fn block(play: &mut Play, id: u32, signal: u64) {
    play.put(id, DATA, &[1 << (signal - 1)]);
    assert_eq!(call(play, id, Sysno::rt_sigprocmask, &[0, DATA, 0, 8]), Some(0));
}

fn put_path(play: &mut Play, id: u32) {
    play.write(id, DATA, b"/bin/program\0");
}

#[test]
fn a_thread_has_a_number_and_its_process_another() {
    let mut play = Play::new(4096);
    let thread = thread(&mut play, 1);
    assert_eq!(call(&mut play, thread, Sysno::gettid, &[]), Some(thread.into()));
    assert_eq!(call(&mut play, thread, Sysno::getpid, &[]), Some(1));
    assert_eq!(play.thread(thread).registers.sp, 0x20_5000);
    assert_eq!(call(&mut play, 1, Sysno::exit, &[3]), None);
    assert_eq!(play.instance.status(), None, "one is left");
    assert_eq!(play.doing(thread), Some(Doing::Runs));
    play.check();
    call(&mut play, thread, Sysno::exit, &[4]);
    assert_eq!(play.instance.status(), Some((Status::Exited(4), None)));
    play.end();
}

#[test]
fn a_program_that_a_thread_runs_has_the_number_of_the_process() {
    let mut play = Play::new(4096);
    let (one, other) = (thread(&mut play, 1), thread(&mut play, 1));
    assert_eq!(call(&mut play, other, Sysno::futex, &[WORD, WAIT, 0]), None);
    call(&mut play, 1, Sysno::exit, &[]);
    put_path(&mut play, one);
    call(&mut play, one, Sysno::execve, &[DATA, 0, 0]);
    assert_eq!((play.doing(one), play.doing(other)), (None, None));
    assert_eq!(play.running(), [1], "the machine's thread with the process's number");
    assert_eq!(play.thread(1).registers.pc, 0x20_0100);
    assert_eq!(call(&mut play, 1, Sysno::gettid, &[]), Some(1));
    play.check();
    assert_eq!(thread(&mut play, 1), 4, "numbers go on");
    play.end();
}

#[test]
fn who_is_woken_learns_that_even_if_a_signal_comes() {
    let mut play = Play::new(4096);
    handle(&mut play, USR1, 0);
    let thread = thread(&mut play, 1);
    block(&mut play, 1, USR1);
    assert_eq!(call(&mut play, thread, Sysno::futex, &[WORD, WAIT, 0]), None);
    // Both in one call: a signal, and the end of the wait.
    let process = play.instance.processes.get(1).unwrap();
    play.instance.system.send(process, Info::from_process(10, 1, 0));
    assert_eq!(call(&mut play, 1, Sysno::futex, &[WORD, WAKE, 1]), Some(1));
    let registers = play.thread(thread).registers;
    assert_eq!(registers.pc, HANDLER);
    let mut kept = [1; 8];
    play.read(thread, registers.sp + 128 + 176 + 8, &mut kept);
    assert_eq!(kept, [0; 8], "what the call returns after the handler");
    play.end();
}

#[test]
fn a_signal_for_the_process_reaches_a_thread_that_does_not_block_it() {
    let mut play = Play::new(4096);
    handle(&mut play, USR1, RESTART);
    let thread = thread(&mut play, 1);
    block(&mut play, 1, USR1);
    call(&mut play, 1, Sysno::kill, &[1, USR1]);
    assert_eq!(play.thread(thread).registers.pc, HANDLER);
    assert_eq!(call(&mut play, 1, Sysno::rt_sigpending, &[DATA, 8]), Some(0));
    let mut pending = [1; 8];
    play.read(1, DATA, &mut pending);
    assert_eq!(pending, [0; 8]);
    // Its handler blocks the signal. The next one waits until somebody does not, and a thread's own for that thread.
    call(&mut play, 1, Sysno::kill, &[1, USR1]);
    call(&mut play, 1, Sysno::tgkill, &[1, thread.into(), USR1]);
    call(&mut play, thread, Sysno::exit, &[]);
    play.put(1, DATA, &[0]);
    call(&mut play, 1, Sysno::rt_sigprocmask, &[2, DATA, 0, 8]);
    assert_eq!(play.thread(1).registers.pc, HANDLER);
    let pending = play.process_of(1).unwrap().pending();
    assert_eq!(pending, 0, "what was for the thread has gone with it");
    play.end();
}

#[test]
fn a_signal_for_a_thread_reaches_no_other() {
    let mut play = Play::new(4096);
    handle(&mut play, USR1, 0);
    let (one, other) = (thread(&mut play, 1), thread(&mut play, 1));
    call(&mut play, 1, Sysno::tgkill, &[1, other.into(), USR1]);
    let handles = |play: &mut Play, id: u32| play.thread(id).registers.pc == HANDLER;
    assert_eq!([1, one, other].map(|id| handles(&mut play, id)), [false, false, true]);
    assert_eq!(call(&mut play, 1, Sysno::tgkill, &[2, one.into(), USR1]), Some(-3));
    assert_eq!(call(&mut play, 1, Sysno::tkill, &[one.into(), USR1]), Some(0));
    assert!(handles(&mut play, one));
    play.end();
}

#[test]
fn all_threads_stop_and_go_on_together() {
    let mut play = Play::new(4096);
    let child = call(&mut play, 1, Sysno::clone, &[FORK]).unwrap() as u32;
    let (runs, waits) = (thread(&mut play, child), thread(&mut play, child));
    let runs_too = thread(&mut play, child);
    assert_eq!(call(&mut play, waits, Sysno::futex, &[WORD, WAIT, 0]), None);
    call(&mut play, 1, Sysno::kill, &[child.into(), 19]);
    assert_eq!(play.running(), [1]);
    assert_eq!(play.process_of(child).unwrap().news, Some(News::Stopped(19)));
    play.check();
    let stopped_at = play.thread(runs).registers;
    call(&mut play, 1, Sysno::kill, &[child.into(), 18]);
    assert_eq!(play.running(), [1, child, runs, runs_too]);
    assert_eq!(play.thread(runs).registers, stopped_at);
    assert_eq!(call(&mut play, runs, Sysno::futex, &[WORD, WAKE, 5]), Some(1));
    assert_eq!(play.doing(waits), Some(Doing::Runs));
    play.check();
    call(&mut play, 1, Sysno::kill, &[child.into(), 9]);
    assert_eq!(play.running(), [1]);
    play.end();
}

#[test]
fn threads_go_on_while_a_child_has_the_memory() {
    let mut play = Play::new(4096);
    let other = thread(&mut play, 1);
    assert_eq!(call(&mut play, 1, Sysno::clone, &[VFORK]), None);
    assert_eq!(play.running(), [other, 3]);
    play.put(3, WORD, &[7]);
    let mut word = [0; 8];
    play.read(other, WORD, &mut word);
    assert_eq!(u64::from_le_bytes(word), 7, "they have the same memory");
    assert!(call(&mut play, other, Sysno::mmap, &[0, 4096, 3, 0x22, u64::MAX, 0]).unwrap() > 0);
    // The process ends while its child still has the memory.
    let area = call(&mut play, 3, Sysno::mmap, &[0, 4096, 3, 0x22, u64::MAX, 0]).unwrap();
    put_path(&mut play, other);
    call(&mut play, other, Sysno::execve, &[DATA, 0, 0]);
    play.put(3, area.cast_unsigned(), &[1]);
    assert_eq!(play.running(), [1, 3]);
    play.check();
    play.end();
}

#[test]
fn the_end_of_a_thread_is_told_where_it_wants() {
    let mut play = Play::new(4096);
    let cleared = THREAD | 0x20_0000;
    let thread = call(&mut play, 1, Sysno::clone, &[cleared, 0x20_5000, 0, 0, WORD]).unwrap() as u32;
    play.put(1, WORD, &[5]);
    assert_eq!(call(&mut play, 1, Sysno::futex, &[WORD, 0, 5]), None);
    call(&mut play, thread, Sysno::exit, &[]);
    assert_eq!(play.doing(1), Some(Doing::Runs), "woken");
    let mut word = [1; 4];
    play.read(1, WORD, &mut word);
    assert_eq!(word, [0; 4]);
    play.end();
}

#[test]
fn a_list_of_locks_that_leads_nowhere_ends() {
    let mut play = Play::new(4096);
    // A lock of another thread, and then an own one, which is its own next one; and an entry outside of the memory.
    for (next, left) in [(DATA + 32, 0x4000_0000), (1 << 40, 3)] {
        let thread = thread(&mut play, 1);
        play.put(thread, DATA, &[next, 8, 0]);
        play.put(thread, DATA + 32, &[DATA + 64, 1]);
        play.put(thread, DATA + 64, &[DATA + 64, thread.into()]);
        assert_eq!(call(&mut play, thread, Sysno::set_robust_list, &[DATA, 24]), Some(0));
        call(&mut play, thread, Sysno::exit, &[]);
        let mut word = [0; 4];
        play.read(1, DATA + 72, &mut word);
        assert_eq!(u32::from_le_bytes(word), left, "the lock of {thread}");
        play.read(1, DATA + 40, &mut word);
        assert_eq!(u32::from_le_bytes(word), 1, "another's lock");
        play.check();
    }
    play.end();
}

#[test]
fn nice_threads_have_shorter_turns_and_so_do_those_that_they_make() {
    let mut play = Play::new(4096);
    let other = thread(&mut play, 1);
    let set = |play: &mut Play, which: u64, who: u64, nice: i64| {
        call(play, 1, Sysno::setpriority, &[which, who, nice.cast_unsigned()])
    };
    assert_eq!(set(&mut play, 0, other.into(), 2), Some(0));
    assert_eq!((play.thread(1).turn, play.thread(other).turn), (1024, 655));
    assert_eq!(call(&mut play, 1, Sysno::getpriority, &[0, other.into()]), Some(18));
    let made = thread(&mut play, other);
    assert_eq!(play.thread(made).turn, 655);
    let child = call(&mut play, other, Sysno::clone, &[FORK]).unwrap();
    assert_eq!(call(&mut play, 1, Sysno::getpriority, &[0, child.cast_unsigned()]), Some(18));
    assert_eq!(set(&mut play, 0, 0, -100), Some(0));
    assert_eq!(play.thread(1).turn, 1024, "not longer");
    assert_eq!(call(&mut play, 1, Sysno::getpriority, &[1, 0]), Some(40), "the least nice of the group");
    assert_eq!(set(&mut play, 0, 999, 0), Some(-3));
    assert_eq!(set(&mut play, 3, 0, 0), Some(-22));
    assert_eq!(set(&mut play, 2, 0, 19), Some(0), "all");
    assert_eq!(play.thread(child as u32).turn, 12);
    play.end();
}
