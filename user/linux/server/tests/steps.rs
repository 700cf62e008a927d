//! Threads that make single steps for their tracers.

mod support;

use std::time::Duration;

use support::tracer::*;
use support::{Doing, Play};
use tench_linux_calls::Sysno;

/// Checks that a thread has stopped for a step, with a code and an address that belong to the signal.
fn stepped(play: &mut Play, id: u32, code: u64, address: Option<u64>) {
    stopped(play, id, TRAP, 0);
    assert_eq!(trace(play, GETSIGINFO, id, 0, DATA), 0);
    assert_eq!((word(play, DATA) as u32, word(play, DATA + 8) as u32), (TRAP as u32, code as u32));
    if let Some(address) = address {
        assert_eq!(word(play, DATA + 16), address);
    }
}

#[test]
fn a_tracer_makes_single_steps() {
    const FROM_PROCESS: u64 = 0;
    const TRACE: u64 = 2;
    let mut play = Play::new(4096);
    let child = traced(&mut play);
    for _ in 0..3 {
        let pc = registers(&mut play, child)[32];
        assert_eq!(trace(&mut play, SINGLESTEP, child, 0, 0), 0);
        assert_eq!(news(&mut play, -1, NOHANG), (0, 0), "it runs");
        play.make_step(child);
        stepped(&mut play, child, TRACE, Some(pc + 4));
        assert_eq!(registers(&mut play, child)[32], pc + 4);
    }
    // A call is a step.
    assert_eq!(trace(&mut play, SINGLESTEP, child, 0, 0), 0);
    assert_eq!(call(&mut play, child, Sysno::getppid, &[]), None);
    stepped(&mut play, child, FROM_PROCESS, Some(0));
    assert_eq!(registers(&mut play, child)[0], 1);
    // As on Linux, the next one ends at once, unless the tracer has set registers.
    let found = registers(&mut play, child);
    assert_eq!(trace(&mut play, SINGLESTEP, child, 0, 0), 0);
    stepped(&mut play, child, TRACE, Some(found[32]));
    assert_eq!(trace(&mut play, SINGLESTEP, child, 0, 0), 0);
    play.make_step(child);
    stepped(&mut play, child, TRACE, Some(found[32] + 4));
    assert_eq!(trace(&mut play, SINGLESTEP, child, 0, 0), 0);
    assert_eq!(call(&mut play, child, Sysno::getppid, &[]), None);
    stepped(&mut play, child, FROM_PROCESS, Some(0));
    let found = registers(&mut play, child);
    set_registers(&mut play, child, &found);
    assert_eq!(trace(&mut play, SINGLESTEP, child, 0, 0), 0);
    play.make_step(child);
    stepped(&mut play, child, TRACE, Some(found[32] + 4));
    // One that is left over is not told.
    assert_eq!(trace(&mut play, CONT, child, 0, 0), 0);
    play.thread(child).steps = true;
    play.make_step(child);
    assert_eq!((news(&mut play, -1, NOHANG), play.doing(child)), ((0, 0), Some(Doing::Runs)));
    // A wait is a step, too, when it is over.
    assert_eq!(call(&mut play, child, Sysno::kill, &[child.into(), STOP]), None);
    stopped(&mut play, child, STOP, 0);
    assert_eq!(trace(&mut play, SINGLESTEP, child, 0, 0), 0);
    play.put(child, DATA, &[10, 0]);
    assert_eq!(call(&mut play, child, Sysno::nanosleep, &[DATA, 0]), None);
    assert_eq!(news(&mut play, -1, NOHANG), (0, 0), "it sleeps");
    play.instance.system.memory.hardware.time += Duration::from_secs(10);
    play.instance.pass_time();
    stepped(&mut play, child, FROM_PROCESS, Some(0));
    play.end();
}

#[test]
fn a_step_into_a_handler_stops_before_its_first_instruction() {
    let mut play = Play::new(4096);
    let child = traced(&mut play);
    assert_eq!(trace(&mut play, CONT, child, 0, 0), 0);
    play.put(child, DATA, &[HANDLER, 0, 0, 0]);
    assert_eq!(call(&mut play, child, Sysno::rt_sigaction, &[USR1, DATA, 0, 8]), Some(0));
    assert_eq!(call(&mut play, 1, Sysno::kill, &[child.into(), USR1]), Some(0));
    stopped(&mut play, child, USR1, 0);
    assert_eq!(trace(&mut play, SINGLESTEP, child, 0, USR1), 0);
    stepped(&mut play, child, TRAP, None);
    assert_eq!(registers(&mut play, child)[32], HANDLER);
    assert_eq!(trace(&mut play, SINGLESTEP, child, 0, 0), 0);
    play.make_step(child);
    stepped(&mut play, child, 2, Some(HANDLER + 4));
    assert_eq!(trace(&mut play, DETACH, child, 0, 0), 0);
    assert_eq!(play.doing(child), Some(Doing::Runs));
    // What a forked process does is no step.
    let child = traced(&mut play);
    assert_eq!(trace(&mut play, SINGLESTEP, child, 0, 0), 0);
    assert_eq!(call(&mut play, child, Sysno::clone, &[FORK]), None);
    stepped(&mut play, child, 0, Some(0));
    let grandchild = registers(&mut play, child)[0] as u32;
    assert_eq!((play.doing(grandchild), play.thread(grandchild).steps), (Some(Doing::Runs), false));
    play.end();
}

#[test]
fn there_are_no_points_by_hardware() {
    let mut play = Play::new(4096);
    let child = traced(&mut play);
    for set in [0x402, 0x403] {
        play.put(1, DATA, &[DATA + 16, 264]);
        assert_eq!(trace(&mut play, GETREGSET, child, set, DATA), 0);
        assert_eq!(
            (word(&mut play, DATA + 8), word(&mut play, DATA + 16), word(&mut play, DATA + 24)),
            (264, 0x600, 0)
        );
        assert_eq!(trace(&mut play, SETREGSET, child, set, DATA), ENOSPC);
    }
    play.end();
}

#[test]
fn a_step_over_the_end_of_a_handler_is_followed_by_an_instruction() {
    let mut play = Play::new(4096);
    let child = traced(&mut play);
    assert_eq!(trace(&mut play, CONT, child, 0, 0), 0);
    play.put(child, DATA, &[HANDLER, 0, 0, 0]);
    assert_eq!(call(&mut play, child, Sysno::rt_sigaction, &[USR1, DATA, 0, 8]), Some(0));
    let pc = play.thread(child).registers.pc;
    assert_eq!(call(&mut play, 1, Sysno::kill, &[child.into(), USR1]), Some(0));
    stopped(&mut play, child, USR1, 0);
    assert_eq!(trace(&mut play, SINGLESTEP, child, 0, USR1), 0);
    stepped(&mut play, child, TRAP, None);
    assert_eq!(trace(&mut play, SINGLESTEP, child, 0, 0), 0);
    assert_eq!(call(&mut play, child, Sysno::rt_sigreturn, &[]), None);
    stepped(&mut play, child, 0, Some(0));
    assert_eq!(registers(&mut play, child)[32], pc);
    assert_eq!(trace(&mut play, SINGLESTEP, child, 0, 0), 0);
    play.make_step(child);
    stepped(&mut play, child, 2, Some(pc + 4));
    play.end();
}

#[test]
fn a_step_is_an_instruction_again_after_another_request() {
    let mut play = Play::new(4096);
    let child = traced(&mut play);
    assert_eq!(trace(&mut play, SINGLESTEP, child, 0, 0), 0);
    assert_eq!(call(&mut play, child, Sysno::getppid, &[]), None);
    stepped(&mut play, child, 0, Some(0));
    assert_eq!(call(&mut play, 1, Sysno::kill, &[child.into(), USR1]), Some(0));
    assert_eq!(trace(&mut play, CONT, child, 0, 0), 0);
    stopped(&mut play, child, USR1, 0);
    let pc = registers(&mut play, child)[32];
    assert_eq!(trace(&mut play, SINGLESTEP, child, 0, 0), 0);
    play.make_step(child);
    stepped(&mut play, child, 2, Some(pc + 4));
    play.end();
}

#[test]
fn who_is_let_go_of_before_a_handler_stays_stopped_with_its_process() {
    let mut play = Play::new(4096);
    let child = traced(&mut play);
    assert_eq!(trace(&mut play, CONT, child, 0, 0), 0);
    play.put(child, DATA, &[HANDLER, 0, 0, 0]);
    assert_eq!(call(&mut play, child, Sysno::rt_sigaction, &[USR1, DATA, 0, 8]), Some(0));
    let other = call(&mut play, child, Sysno::clone, &[THREAD, DATA + 0x800]).unwrap() as u32;
    let tkill = [child.into(), USR1];
    assert_eq!(call(&mut play, 1, Sysno::tkill, &tkill), Some(0));
    stopped(&mut play, child, USR1, 0);
    assert_eq!(trace(&mut play, SINGLESTEP, child, 0, USR1), 0);
    stepped(&mut play, child, TRAP, None);
    assert_eq!(call(&mut play, 1, Sysno::tkill, &[other.into(), STOP]), Some(0));
    assert_eq!(play.doing(other), Some(Doing::Stopped));
    assert_eq!(trace(&mut play, DETACH, child, 0, 0), 0);
    assert_eq!(play.doing(child), Some(Doing::Stopped));
    assert_eq!(call(&mut play, 1, Sysno::kill, &[child.into(), SIGCONT]), Some(0));
    assert_eq!((play.doing(child), play.doing(other)), (Some(Doing::Runs), Some(Doing::Runs)));
    assert_eq!(play.thread(child).registers.pc, HANDLER);
    play.end();
}
