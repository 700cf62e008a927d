//! Threads that others trace.

mod support;

use std::time::Duration;

use support::tracer::*;
use support::{Doing, Play};
use tench_linux_calls::Sysno;
use tench_linux_memory::Access;

#[test]
fn calls_stop_before_and_after() {
    let mut play = Play::new(4096);
    let child = traced(&mut play);
    assert_eq!(trace(&mut play, SETOPTIONS, child, 0, 1 << 30), EINVAL);
    assert_eq!(trace(&mut play, SETOPTIONS, child, 0, MARK_CALLS), 0);
    assert_eq!(trace(&mut play, SYSCALL, child, 0, 0), 0);
    assert_eq!(trace(&mut play, SYSCALL, child, 0, 0), ESRCH, "it runs");
    assert_eq!(call(&mut play, child, Sysno::getppid, &[5, 6]), None);
    stopped(&mut play, child, TRAP | 0x80, 0);
    let found = registers(&mut play, child);
    assert_eq!((found[0], found[1], found[7], found[8]), (5, 6, 0, Sysno::getppid as u64));
    assert_eq!(trace(&mut play, GET_SYSCALL_INFO, child, 88, DATA), 80);
    assert_eq!((word(&mut play, DATA), word(&mut play, DATA + 24)), (0xc000_00b7 << 32 | 1, Sysno::getppid as u64));
    assert_eq!((word(&mut play, DATA + 8), word(&mut play, DATA + 32)), (found[32], 5));
    assert_eq!(trace(&mut play, SYSCALL, child, 0, 0), 0);
    stopped(&mut play, child, TRAP | 0x80, 0);
    let found = registers(&mut play, child);
    assert_eq!((found[0], found[7]), (1, 1));
    assert_eq!(trace(&mut play, GET_SYSCALL_INFO, child, 88, DATA), 33);
    assert_eq!((word(&mut play, DATA) & 0xff, word(&mut play, DATA + 24)), (2, 1));
    assert_eq!(trace(&mut play, CONT, child, 0, 0), 0);
    assert_eq!(play.thread(child).registers.x[0], 1);
    assert_eq!(call(&mut play, child, Sysno::getppid, &[]), Some(1), "calls are not watched any more");
    play.end();
}

#[test]
fn a_tracer_changes_calls_and_results() {
    let mut play = Play::new(4096);
    let child = traced(&mut play);
    assert_eq!(trace(&mut play, SYSCALL, child, 0, 0), 0);
    assert_eq!(call(&mut play, child, Sysno::getppid, &[7]), None);
    stopped(&mut play, child, TRAP, 0);
    set_call(&mut play, child, Sysno::getpid as u32);
    assert_eq!(trace(&mut play, SYSCALL, child, 0, 0), 0);
    stopped(&mut play, child, TRAP, 0);
    let mut found = registers(&mut play, child);
    assert_eq!(found[0], child.into());
    found[0] = 77;
    set_registers(&mut play, child, &found);
    assert_eq!(trace(&mut play, SYSCALL, child, 0, 0), 0);
    assert_eq!(play.thread(child).registers.x[0], 77);
    // With the number -1, no call is made.
    assert_eq!(call(&mut play, child, Sysno::exit_group, &[7]), None);
    let mut found = registers(&mut play, child);
    (found[0], found[8]) = (3, Sysno::getpid as u64);
    set_registers(&mut play, child, &found);
    set_call(&mut play, child, u32::MAX);
    assert_eq!(trace(&mut play, CONT, child, 0, 0), 0);
    assert_eq!(play.thread(child).registers.x[0], 3);
    play.end();
}

#[test]
fn a_tracer_decides_of_signals() {
    let mut play = Play::new(4096);
    let child = traced(&mut play);
    assert_eq!(trace(&mut play, CONT, child, 0, 0), 0);
    play.put(1, DATA, &[HANDLER, 0, 0, 0]);
    play.put(child, DATA, &[HANDLER, 0, 0, 0]);
    assert_eq!(call(&mut play, child, Sysno::rt_sigaction, &[USR1, DATA, 0, 8]), Some(0));
    let pc = play.thread(child).registers.pc;
    for (chosen, runs_at) in [(0, pc), (USR1, HANDLER)] {
        assert_eq!(call(&mut play, 1, Sysno::kill, &[child.into(), USR1]), Some(0));
        stopped(&mut play, child, USR1, 0);
        assert_eq!(trace(&mut play, CONT, child, 0, chosen), 0);
        assert_eq!(play.thread(child).registers.pc, runs_at);
    }
    // Those that do nothing are told, too.
    assert_eq!(call(&mut play, 1, Sysno::kill, &[child.into(), CHLD]), Some(0));
    stopped(&mut play, child, CHLD, 0);
    assert_eq!(trace(&mut play, CONT, child, 0, 65), EIO);
    assert_eq!(trace(&mut play, CONT, child, 0, KILL), 0);
    assert_eq!(news(&mut play, -1, 0), (child.into(), KILL));
    play.end();
}

#[test]
fn a_wait_ends_for_a_signal_and_begins_again() {
    for flags in [0, 0x1000_0000] {
        let mut play = Play::new(4096);
        assert_eq!(call(&mut play, 1, Sysno::pipe2, &[DATA, 0]), Some(0));
        let ends = word(&mut play, DATA);
        let child = traced(&mut play);
        assert_eq!(trace(&mut play, SYSCALL, child, 0, 0), 0);
        assert_eq!(call(&mut play, child, Sysno::read, &[ends & 0xff, DATA, 1]), None);
        stopped(&mut play, child, TRAP, 0);
        let pc = registers(&mut play, child)[32];
        assert_eq!(trace(&mut play, SYSCALL, child, 0, 0), 0);
        assert_eq!(news(&mut play, -1, NOHANG), (0, 0), "it waits");
        assert_eq!(call(&mut play, 1, Sysno::kill, &[child.into(), USR1]), Some(0));
        stopped(&mut play, child, TRAP, 0);
        assert_eq!(registers(&mut play, child)[0], AGAIN.cast_unsigned());
        assert_eq!(trace(&mut play, SYSCALL, child, 0, 0), 0);
        stopped(&mut play, child, USR1, 0);
        // Without a signal, it is made again.
        assert_eq!(trace(&mut play, SYSCALL, child, 0, 0), 0);
        let found = play.thread(child).registers;
        assert_eq!((found.pc, found.x[0]), (pc - 4, ends & 0xff));
        assert_eq!(call(&mut play, child, Sysno::rt_sigaction, &[USR1, DATA, 0, 8]), None);
        set_call(&mut play, child, u32::MAX);
        play.put(child, DATA, &[HANDLER, flags, 0, 0]);
        assert_eq!(trace(&mut play, CONT, child, 0, 0), 0);
        assert_eq!(call(&mut play, child, Sysno::rt_sigaction, &[USR1, DATA, 0, 8]), Some(0));
        assert_eq!(call(&mut play, child, Sysno::read, &[ends & 0xff, DATA, 1]), None);
        let pc = play.thread(child).registers.pc;
        assert_eq!(call(&mut play, 1, Sysno::kill, &[child.into(), USR1]), Some(0));
        stopped(&mut play, child, USR1, 0);
        assert_eq!(trace(&mut play, CONT, child, 0, USR1), 0);
        assert_eq!(play.thread(child).registers.pc, HANDLER);
        call(&mut play, child, Sysno::rt_sigreturn, &[]);
        let found = play.thread(child).registers;
        let expected = if flags == 0 { (pc, EINTR.cast_unsigned()) } else { (pc - 4, ends & 0xff) };
        assert_eq!((found.pc, found.x[0]), expected);
        play.end();
    }
}

#[test]
fn a_seized_thread_stops_when_it_is_interrupted() {
    let mut play = Play::new(4096);
    let child = seized(&mut play, 0);
    assert_eq!(trace(&mut play, SEIZE, child, 0, 0), EPERM);
    assert_eq!(news(&mut play, -1, NOHANG), (0, 0), "it runs");
    assert_eq!(trace(&mut play, PEEK, child, DATA, DATA), ESRCH);
    assert_eq!(trace(&mut play, INTERRUPT, child, 0, 0), 0);
    stopped(&mut play, child, TRAP, EVENT_STOP);
    assert_eq!(trace(&mut play, CONT, child, 0, 0), 0);
    assert_eq!(play.doing(child), Some(Doing::Runs));
    // One that waits is interrupted, and waits anew.
    assert_eq!(call(&mut play, child, Sysno::ppoll, &[0, 0, 0, 0, 8]), None);
    let pc = play.thread(child).registers.pc;
    assert_eq!(trace(&mut play, INTERRUPT, child, 0, 0), 0);
    stopped(&mut play, child, TRAP, EVENT_STOP);
    assert_eq!(trace(&mut play, DETACH, child, 0, 0), 0);
    assert_eq!((play.doing(child), play.thread(child).registers.pc), (Some(Doing::Runs), pc - 4));
    assert_eq!(trace(&mut play, INTERRUPT, child, 0, 0), ESRCH);
    play.end();
}

#[test]
fn a_sleep_goes_on_after_a_stop() {
    let mut play = Play::new(4096);
    let child = seized(&mut play, 0);
    play.put(child, DATA, &[10, 0]);
    assert_eq!(call(&mut play, child, Sysno::nanosleep, &[DATA, 0]), None);
    for _ in 0..2 {
        play.instance.system.memory.hardware.time += Duration::from_secs(4);
        let pc = play.thread(child).registers.pc;
        assert_eq!(trace(&mut play, INTERRUPT, child, 0, 0), 0);
        stopped(&mut play, child, TRAP, EVENT_STOP);
        let found = registers(&mut play, child);
        assert_eq!((found[32], found[0]), (pc - 4, DATA), "it has been put back to its call");
        assert_eq!(trace(&mut play, CONT, child, 0, 0), 0);
        let found = play.thread(child).registers;
        assert_eq!((found.pc, found.x[0], found.x[8]), (pc - 4, DATA, Sysno::restart_syscall as u64));
        assert_eq!(call(&mut play, child, Sysno::restart_syscall, &[DATA, 0]), None);
    }
    play.instance.system.memory.hardware.time += Duration::from_secs(2);
    play.instance.pass_time();
    assert_eq!((play.doing(child), play.thread(child).registers.x[0]), (Some(Doing::Runs), 0));
    assert_eq!(call(&mut play, 1, Sysno::restart_syscall, &[]), Some(EINTR));
    // Outside of a call, a number that looks like such a result is none.
    play.thread(child).registers.x[0] = AGAIN.cast_unsigned();
    let pc = play.thread(child).registers.pc;
    assert_eq!(trace(&mut play, INTERRUPT, child, 0, 0), 0);
    stopped(&mut play, child, TRAP, EVENT_STOP);
    assert_eq!(trace(&mut play, CONT, child, 0, 0), 0);
    assert_eq!(play.thread(child).registers.pc, pc);
    play.end();
}

/// A debugger lets a program that waits call one of its functions.
#[test]
fn a_call_is_made_again_after_another_function_has_run() {
    for waits in [Sysno::nanosleep, Sysno::ppoll, Sysno::read] {
        let mut play = Play::new(4096);
        assert_eq!(call(&mut play, 1, Sysno::pipe2, &[DATA, 0]), Some(0));
        let end = word(&mut play, DATA) & 0xff;
        let child = seized(&mut play, 0);
        play.put(child, DATA, &[10, 0]);
        let arguments = match waits {
            Sysno::read => [end, DATA, 1, 0],
            Sysno::ppoll => [0; 4],
            _ => [DATA, 0, 0, 0],
        };
        assert_eq!(call(&mut play, child, waits, &arguments), None);
        let pc = play.thread(child).registers.pc;
        assert_eq!(trace(&mut play, INTERRUPT, child, 0, 0), 0);
        stopped(&mut play, child, TRAP, EVENT_STOP);
        let kept = registers(&mut play, child);
        assert_eq!((kept[32], kept[0]), (pc - 4, arguments[0]));
        let mut other = kept;
        (other[32], other[0]) = (HANDLER, 10);
        set_registers(&mut play, child, &other);
        assert_eq!(trace(&mut play, CONT, child, 0, 0), 0);
        let found = play.thread(child).registers;
        assert_eq!((found.pc, found.x[0], found.x[8]), (HANDLER, 10, waits as u64));
        assert_eq!(trace(&mut play, INTERRUPT, child, 0, 0), 0);
        stopped(&mut play, child, TRAP, EVENT_STOP);
        set_registers(&mut play, child, &kept);
        assert_eq!(trace(&mut play, DETACH, child, 0, 0), 0);
        let found = play.thread(child).registers;
        assert_eq!((found.pc, found.x[0], found.x[8]), (pc - 4, arguments[0], waits as u64));
        play.end();
    }
}

#[test]
fn a_sleep_goes_on_after_its_tracer_has_gone() {
    let mut play = Play::new(4096);
    let child = seized(&mut play, 0);
    play.put(child, DATA, &[10, 0]);
    assert_eq!(call(&mut play, child, Sysno::nanosleep, &[DATA, 0]), None);
    play.instance.system.memory.hardware.time += Duration::from_secs(9);
    assert_eq!(trace(&mut play, INTERRUPT, child, 0, 0), 0);
    stopped(&mut play, child, TRAP, EVENT_STOP);
    assert_eq!(trace(&mut play, DETACH, child, 0, 0), 0);
    assert_eq!(play.thread(child).registers.x[8], Sysno::restart_syscall as u64);
    assert_eq!(call(&mut play, child, Sysno::restart_syscall, &[DATA, 0]), None);
    play.instance.system.memory.hardware.time += Duration::from_secs(1);
    play.instance.pass_time();
    assert_eq!((play.doing(child), play.thread(child).registers.x[0]), (Some(Doing::Runs), 0));
    play.end();
}

#[test]
fn a_process_that_stops_tells_its_tracer() {
    let mut play = Play::new(4096);
    let child = seized(&mut play, 0);
    assert_eq!(call(&mut play, 1, Sysno::kill, &[child.into(), STOP]), Some(0));
    stopped(&mut play, child, STOP, 0);
    assert_eq!(trace(&mut play, LISTEN, child, 0, 0), EIO, "its signal was not delivered yet");
    assert_eq!(trace(&mut play, CONT, child, 0, STOP), 0);
    stopped(&mut play, child, STOP, EVENT_STOP);
    assert_eq!(trace(&mut play, LISTEN, child, 0, 0), 0);
    assert_eq!(trace(&mut play, CONT, child, 0, 0), ESRCH, "it listens");
    assert_eq!(call(&mut play, 1, Sysno::kill, &[child.into(), SIGCONT]), Some(0));
    stopped(&mut play, child, TRAP, EVENT_STOP);
    assert_eq!(trace(&mut play, CONT, child, 0, 0), 0);
    stopped(&mut play, child, SIGCONT, 0);
    assert_eq!(trace(&mut play, CONT, child, 0, SIGCONT), 0);
    assert_eq!(play.doing(child), Some(Doing::Runs));
    // One that is stopped already stops for its tracer at once.
    let other = self::child(&mut play);
    assert_eq!(call(&mut play, 1, Sysno::kill, &[other.into(), STOP]), Some(0));
    assert_eq!(trace(&mut play, SEIZE, other, 0, 0), 0);
    stopped(&mut play, other, STOP, EVENT_STOP);
    assert_eq!(trace(&mut play, DETACH, other, 0, 0), 0);
    assert_eq!(play.doing(other), Some(Doing::Stopped));
    assert_eq!(call(&mut play, 1, Sysno::kill, &[other.into(), SIGCONT]), Some(0));
    assert_eq!(play.doing(other), Some(Doing::Runs));
    play.end();
}

#[test]
fn attached_threads_stop_by_a_signal() {
    let mut play = Play::new(4096);
    let child = child(&mut play);
    assert_eq!(trace(&mut play, ATTACH, child, 0, 0), 0);
    stopped(&mut play, child, STOP, 0);
    assert_eq!(trace(&mut play, ATTACH, 1, 0, 0), EPERM);
    assert_eq!(trace(&mut play, ATTACH, 99, 0, 0), ESRCH);
    assert_eq!(trace(&mut play, 9999, child, 0, 0), EIO);
    assert_eq!(trace(&mut play, DETACH, child, 0, 0), 0);
    assert_eq!(play.doing(child), Some(Doing::Runs));
    // A stop that the tracer lets happen lasts until it lets the thread go on.
    assert_eq!(trace(&mut play, ATTACH, child, 0, 0), 0);
    assert_eq!(trace(&mut play, CONT, child, 0, STOP), 0);
    stopped(&mut play, child, STOP, 0);
    assert_eq!(trace(&mut play, CONT, child, 0, 0), 0);
    assert_eq!(play.doing(child), Some(Doing::Runs));
    play.end();
}

#[test]
fn children_of_traced_threads_are_traced() {
    let mut play = Play::new(4096);
    let options = TRACE_FORK | TRACE_VFORK | TRACE_CLONE | TRACE_VFORK_DONE | TRACE_EXIT;
    let child = seized(&mut play, options);
    for (flags, event) in [(FORK, 1), (VFORK, 2), (THREAD, 3)] {
        let made = call(&mut play, child, Sysno::clone, &[flags, if flags == THREAD { 0x20_4000 } else { 0 }]);
        assert_eq!(made, None);
        stopped(&mut play, child, TRAP, event);
        assert_eq!(trace(&mut play, GETEVENTMSG, child, 0, DATA), 0);
        let made = word(&mut play, DATA) as u32;
        stopped(&mut play, made, TRAP, EVENT_STOP);
        assert_eq!(trace(&mut play, CONT, made, 0, 0), 0);
        if flags == THREAD {
            assert_eq!(trace(&mut play, CONT, child, 0, 0), 0);
            assert_eq!(call(&mut play, made, Sysno::exit, &[4]), None);
            stopped(&mut play, made, TRAP, 6);
            assert_eq!(trace(&mut play, CONT, made, 0, 0), 0);
            assert_eq!(news(&mut play, made.into(), 0), (made.into(), 4 << 8));
            continue;
        }
        // It ends before its parent goes on.
        assert_eq!(call(&mut play, made, Sysno::exit_group, &[3]), None);
        stopped(&mut play, made, TRAP, 6);
        assert_eq!(trace(&mut play, GETEVENTMSG, made, 0, DATA), 0);
        assert_eq!(word(&mut play, DATA), 3 << 8);
        assert_eq!(trace(&mut play, CONT, made, 0, 0), 0);
        assert_eq!(trace(&mut play, CONT, child, 0, 0), 0);
        if flags == VFORK {
            stopped(&mut play, child, TRAP, 5);
            assert_eq!(trace(&mut play, CONT, child, 0, 0), 0);
        }
        assert_eq!(play.doing(child), Some(Doing::Runs));
        assert_eq!(play.thread(child).registers.x[0], made.into());
        // The tracer learns of the end first, and then the parent.
        assert_eq!(call(&mut play, child, Sysno::wait4, &[made.into(), 0, NOHANG, 0]), Some(0));
        assert_eq!(news(&mut play, made.into(), 0), (made.into(), 3 << 8));
        assert_eq!(news(&mut play, made.into(), NOHANG), (ECHILD, 0));
        stopped(&mut play, child, CHLD, 0);
        assert_eq!(trace(&mut play, CONT, child, 0, 0), 0);
        assert_eq!(call(&mut play, child, Sysno::wait4, &[made.into(), 0, NOHANG, 0]), Some(made.into()));
    }
    play.end();
}

#[test]
fn programs_begin_stopped() {
    let mut play = Play::new(4096);
    let path = |play: &mut Play, id: u32| {
        assert_eq!(play.write(id, DATA, b"/bin/program\0"), 13);
    };
    let child = traced(&mut play);
    assert_eq!(trace(&mut play, CONT, child, 0, 0), 0);
    path(&mut play, child);
    assert_eq!(call(&mut play, child, Sysno::execve, &[DATA, 0, 0]), None);
    stopped(&mut play, child, TRAP, 0);
    assert_eq!(trace(&mut play, SETOPTIONS, child, 0, TRACE_EXEC), 0);
    assert_eq!(trace(&mut play, SYSCALL, child, 0, 0), 0);
    path(&mut play, child);
    assert_eq!(call(&mut play, child, Sysno::execve, &[DATA, 0, 0]), None);
    stopped(&mut play, child, TRAP, 0);
    assert_eq!(trace(&mut play, SYSCALL, child, 0, 0), 0);
    stopped(&mut play, child, TRAP, 4);
    assert_eq!(trace(&mut play, SYSCALL, child, 0, 0), 0);
    stopped(&mut play, child, TRAP, 0);
    assert_eq!(registers(&mut play, child)[32], HANDLER, "where the program begins");
    assert_eq!(trace(&mut play, CONT, child, 0, 0), 0);
    assert_eq!(play.doing(child), Some(Doing::Runs));
    play.end();
}

#[test]
fn memory_is_read_and_written_also_where_the_program_may_not_write() {
    let mut play = Play::new(4096);
    let child = traced(&mut play);
    play.put(child, DATA, &[5]);
    assert_eq!(trace(&mut play, PEEK, child, DATA, DATA + 8), 0);
    assert_eq!((word(&mut play, DATA + 8), word(&mut play, DATA)), (5, 0));
    assert_eq!(trace(&mut play, PEEK, child, 0x1000, DATA), EIO);
    assert_eq!(trace(&mut play, POKE, child, 0x1000, DATA), EIO);
    // Code, over the end of a page, of the child alone.
    assert!(!play.touch(child, 0x20_0ff8, Access::Write));
    assert_eq!(trace(&mut play, POKE, child, 0x20_0ffc, 0x1122_3344_5566_7788), 0);
    assert_eq!(trace(&mut play, PEEK, child, 0x20_0ffc, DATA), 0);
    assert_eq!(word(&mut play, DATA), 0x1122_3344_5566_7788);
    assert!(!play.touch(child, 0x20_0ff8, Access::Write));
    assert!(play.touch(child, 0x20_0ff8, Access::Execute));
    assert_ne!(word(&mut play, 0x20_0ff8) >> 32, 0x5566_7788);
    play.end();
}

#[test]
fn the_end_of_a_tracer_ends_tracing() {
    for (options, lives) in [(0, true), (KILL_AT_END, false)] {
        let mut play = Play::new(4096);
        let (child, tracer) = (child(&mut play), child(&mut play));
        assert_eq!(call(&mut play, tracer, Sysno::ptrace, &[SEIZE, child.into(), 0, options]), Some(0));
        assert_eq!(trace(&mut play, INTERRUPT, child, 0, 0), ESRCH, "it is another's");
        assert_eq!(call(&mut play, tracer, Sysno::ptrace, &[INTERRUPT, child.into()]), Some(0));
        assert_eq!(play.doing(child), Some(Doing::Stopped));
        assert_eq!(news(&mut play, child.into(), NOHANG), (0, 0), "its parent does not learn of that");
        assert_eq!(call(&mut play, tracer, Sysno::exit_group, &[0]), None);
        assert_eq!(play.doing(child), lives.then_some(Doing::Runs));
        play.end();
    }
}

#[test]
fn only_who_may_inspect_a_process_traces_it() {
    let mut play = Play::new(4096);
    let (child, other) = (child(&mut play), child(&mut play));
    assert_eq!(call(&mut play, other, Sysno::setuid, &[5]), Some(0));
    for request in [ATTACH, SEIZE] {
        assert_eq!(call(&mut play, other, Sysno::ptrace, &[request, child.into(), 0, 0]), Some(EPERM));
    }
    // A parent without power does not trace a child with it.
    let grandchild = call(&mut play, child, Sysno::clone, &[FORK]).unwrap() as u32;
    assert_eq!(call(&mut play, child, Sysno::setuid, &[5]), Some(0));
    assert_eq!(call(&mut play, grandchild, Sysno::ptrace, &[TRACEME]), Some(EPERM));
    play.end();
}

#[test]
fn ends_of_threads_of_which_no_tracer_learns_are_bounded() {
    let mut play = Play::new(4096);
    let child = seized(&mut play, TRACE_CLONE);
    for _ in 0..1024 {
        assert_eq!(play.call(child, Sysno::clone as u64, [THREAD, 0x20_4000, 0, 0, 0, 0]), None);
        assert_eq!(play.call(1, Sysno::ptrace as u64, [GETEVENTMSG, child.into(), 0, DATA, 0, 0]), Some(0));
        let made = word(&mut play, DATA) as u32;
        for id in [child, made] {
            assert_eq!(play.call(1, Sysno::ptrace as u64, [CONT, id.into(), 0, 0, 0, 0]), Some(0));
        }
        assert_eq!(play.call(made, Sysno::exit as u64, [0; 6]), None);
    }
    assert_eq!(call(&mut play, child, Sysno::clone, &[THREAD, 0x20_4000]), Some(EAGAIN));
    assert_eq!(news(&mut play, -1, 0).1, 0);
    assert_eq!(call(&mut play, child, Sysno::clone, &[THREAD, 0x20_4000]), None);
    play.end();
}
