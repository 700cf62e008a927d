//! Attacks that have succeeded once.

mod support;

use support::Play;
use tench_linux_calls::Sysno;

/// Addresses in the program's data.
const DATA: u64 = 0x20_1300;
const EVENT: u64 = 0x20_1380;
const RECORD: u64 = 0x20_1400;
const POINTERS: u64 = 0x20_1500;
const BYTES: u64 = 0x20_1600;
const FORK: u64 = 17;
const ADD: u64 = 1;
const READABLE: u64 = 1;
const ELOOP: i64 = -40;

fn call(play: &mut Play, id: u32, call: Sysno, arguments: &[u64]) -> Option<i64> {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    play.call(id, call as u64, all).map(u64::cast_signed)
}

/// Makes a pipe. Returns its ends.
fn pipe(play: &mut Play, flags: u64) -> [u64; 2] {
    assert_eq!(call(play, 1, Sysno::pipe2, &[DATA, flags]), Some(0));
    let mut ends = [0; 8];
    play.read(1, DATA, &mut ends);
    [0, 4].map(|at| u64::from(ends[at]))
}

fn set(play: &mut Play) -> u64 {
    call(play, 1, Sysno::epoll_create1, &[0]).unwrap().cast_unsigned()
}

fn watch(play: &mut Play, set: u64, file: u64) -> Option<i64> {
    play.put(1, EVENT, &[READABLE, file]);
    call(play, 1, Sysno::epoll_ctl, &[set, ADD, file, EVENT])
}

/// Returns how many of the descriptors have an event.
fn poll(play: &mut Play, file: u64) -> Option<i64> {
    play.put(1, RECORD, &[READABLE << 32 | file]);
    play.put(1, RECORD + 8, &[0, 0]);
    call(play, 1, Sysno::ppoll, &[RECORD, 1, RECORD + 8, 0, 8])
}

#[test]
fn sets_that_watch_each_other_in_millions_of_ways_cost_nothing() {
    const WIDTH: usize = 20;
    let mut play = Play::new(4096);
    let [read, write] = pipe(&mut play, 0o4000);
    let mut below = vec![read];
    for _ in 0..4 {
        let level: Vec<u64> = (0..WIDTH).map(|_| set(&mut play)).collect();
        for above in &level {
            for file in &below {
                assert_eq!(watch(&mut play, *above, *file), Some(0));
            }
        }
        below = level;
    }
    let top = below[0];
    assert_eq!(poll(&mut play, top), Some(0));
    assert_eq!(call(&mut play, 1, Sysno::write, &[write, BYTES, 1]), Some(1));
    assert_eq!(poll(&mut play, top), Some(1));
    assert_eq!(call(&mut play, 1, Sysno::read, &[read, BYTES, 1]), Some(1));
    assert_eq!(poll(&mut play, top), Some(0));
    assert_eq!(call(&mut play, 1, Sysno::epoll_pwait, &[top, BYTES, 8, 0, 0, 8]), Some(0));
    play.check();
    play.end();
}

#[test]
fn a_pile_of_sets_is_no_deeper_for_having_been_begun_above() {
    let mut play = Play::new(4096);
    let mut sets = vec![set(&mut play)];
    let refused = loop {
        let (last, next) = (sets[sets.len() - 1], set(&mut play));
        match watch(&mut play, last, next) {
            Some(0) if sets.len() < 100 => sets.push(next),
            other => break other,
        }
    };
    assert_eq!((refused, sets.len()), (Some(ELOOP), 5));
    // Nor for being joined in its middle.
    let other = set(&mut play);
    let another = set(&mut play);
    assert_eq!(watch(&mut play, other, another), Some(0));
    assert_eq!(watch(&mut play, sets[3], other), Some(ELOOP));
    assert_eq!(watch(&mut play, sets[2], other), Some(0));
    play.end();
}

#[test]
fn what_is_done_of_one_operation_is_not_done_of_the_next() {
    let mut play = Play::new(4096);
    let ([full, into], [other, second]) = (pipe(&mut play, 0o4000), pipe(&mut play, 0));
    // Larger than the pipe, so that the first operation waits when it has done a part.
    let place = call(&mut play, 1, Sysno::mmap, &[0, 0x2_0000, 3, 0x22, u64::MAX, 0]).unwrap().cast_unsigned();
    assert_eq!(call(&mut play, 1, Sysno::fcntl, &[into, 4, 1]), Some(0));
    play.put(1, RECORD, &[0]);
    assert_eq!(call(&mut play, 1, Sysno::io_setup, &[8, RECORD]), Some(0));
    let mut name = [0; 8];
    play.read(1, RECORD, &mut name);
    let name = u64::from_le_bytes(name);
    let operation = |file: u64, length: u64| [0, 0, 1 | file << 32, place, length, 0, 0, 0];
    play.put(1, BYTES, &operation(into, 0x1_8000));
    play.put(1, BYTES + 64, &operation(second, 5));
    play.put(1, POINTERS, &[BYTES, BYTES + 64]);
    let child = call(&mut play, 1, Sysno::clone, &[FORK]).unwrap() as u32;
    assert_eq!(call(&mut play, 1, Sysno::io_submit, &[name, 2, POINTERS]), None);
    assert_eq!(call(&mut play, child, Sysno::read, &[full, place, 0x1_8000]), Some(0x1_0000));
    assert_eq!(play.thread(1).registers.x[0], 2);
    assert_eq!(call(&mut play, 1, Sysno::io_getevents, &[name, 2, 2, BYTES, 0]), Some(2));
    let mut results = [0; 64];
    play.read(1, BYTES, &mut results);
    assert_eq!([16, 48].map(|at| i64::from_le_bytes(results[at..at + 8].try_into().unwrap())), [0x1_8000, 5]);
    assert_eq!(call(&mut play, child, Sysno::read, &[other, place, 100]), Some(5));
    play.check();
    play.end();
}

#[test]
fn who_waits_in_memory_that_has_gone_takes_no_wake_of_others() {
    const THREAD: u64 = 0x1_0f00;
    const WAIT: u64 = 0;
    const WAKE: u64 = 1;
    let mut play = Play::new(4096);
    let shared = |play: &mut Play, id: u32| {
        call(play, id, Sysno::mmap, &[0, 4096, 3, 0x21, u64::MAX, 0]).unwrap().cast_unsigned()
    };
    let enemy = call(&mut play, 1, Sysno::clone, &[FORK]).unwrap() as u32;
    let place = shared(&mut play, enemy);
    let thread = call(&mut play, enemy, Sysno::clone, &[THREAD]).unwrap() as u32;
    assert_eq!(call(&mut play, thread, Sysno::futex, &[place, WAIT, 0, 0]), None);
    assert_eq!(call(&mut play, enemy, Sysno::munmap, &[place, 4096]), Some(0));
    // The object of this memory is where the other was.
    let place = shared(&mut play, 1);
    let child = call(&mut play, 1, Sysno::clone, &[FORK]).unwrap() as u32;
    assert_eq!(call(&mut play, child, Sysno::futex, &[place, WAIT, 0, 0]), None);
    assert_eq!(call(&mut play, 1, Sysno::futex, &[place, WAKE, 1, 0]), Some(1));
    assert_eq!(play.doing(child), Some(support::Doing::Runs));
    assert_eq!(play.doing(thread), Some(support::Doing::Waits));
    play.check();
    play.end();
}

#[test]
fn long_calls_let_others_be_served() {
    const CALLS: u64 = 600;
    let mut play = Play::new(4096);
    let place = call(&mut play, 1, Sysno::mmap, &[0, 8 << 20, 3, 0x22, u64::MAX, 0]).unwrap().cast_unsigned();
    assert_eq!(call(&mut play, 1, Sysno::getrandom, &[place, 3 << 20, 0]), None);
    play.instance.pass_time();
    assert_eq!(play.doing(1), Some(support::Doing::Waits));
    play.instance.pass_time();
    play.instance.pass_time();
    assert_eq!(play.thread(1).registers.x[0], 3 << 20);
    // A signal that is handled ends it between two parts.
    play.put(1, DATA, &[0x20_0100, 0x1000_0000, 0, 0]);
    assert_eq!(call(&mut play, 1, Sysno::rt_sigaction, &[10, DATA, 0, 8]), Some(0));
    let child = call(&mut play, 1, Sysno::clone, &[FORK]).unwrap() as u32;
    assert_eq!(call(&mut play, child, Sysno::getrandom, &[place, 3 << 20, 0]), None);
    assert_eq!(call(&mut play, 1, Sysno::kill, &[child.into(), 10]), Some(0));
    call(&mut play, child, Sysno::rt_sigreturn, &[]);
    assert_eq!(play.thread(child).registers.x[0], 1 << 20);
    // As many operations as there is room for.
    play.put(1, RECORD, &[0]);
    assert_eq!(call(&mut play, 1, Sysno::io_setup, &[CALLS, RECORD]), Some(0));
    let mut name = [0; 8];
    play.read(1, RECORD, &mut name);
    let [_, write] = pipe(&mut play, 0o4000);
    play.put(1, BYTES, &[0, 0, 1 | write << 32, place, 1, 0, 0, 0]);
    let list: Vec<u64> = vec![BYTES; CALLS as usize];
    play.put(1, place, &list);
    assert_eq!(call(&mut play, 1, Sysno::io_submit, &[u64::from_le_bytes(name), CALLS, place]), None);
    play.instance.pass_time();
    play.instance.pass_time();
    assert_eq!(play.thread(1).registers.x[0], CALLS);
    play.check();
    play.end();
}

#[test]
fn the_first_process_makes_no_siblings() {
    const SIBLING: u64 = 0x8000 | 17;
    let mut play = Play::new(4096);
    assert_eq!(call(&mut play, 1, Sysno::clone, &[SIBLING]), Some(-22));
    let child = call(&mut play, 1, Sysno::clone, &[17]).unwrap() as u32;
    let sibling = call(&mut play, child, Sysno::clone, &[SIBLING]).unwrap() as u32;
    assert_eq!(call(&mut play, sibling, Sysno::getppid, &[]), Some(1));
    play.end();
}

/// The points at which a tracer keeps a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Point {
    Entry,
    Exit,
    Event,
    Signal,
    Handler,
}

/// Makes a traced process of two threads. Returns the numbers of the one that is traced, and of the other.
fn traced(play: &mut Play, tracer: u32) -> [u32; 2] {
    const SEIZE: u64 = 0x4206;
    const FORKS: u64 = 2;
    let process = call(play, 1, Sysno::clone, &[FORK]).unwrap() as u32;
    let thread = call(play, process, Sysno::clone, &[0x5_0f00, 0x20_4000]).unwrap() as u32;
    play.put(process, DATA, &[0x20_0100, 0x1000_0000, 0, 0]);
    assert_eq!(call(play, process, Sysno::rt_sigaction, &[10, DATA, 0, 8]), Some(0));
    assert_eq!(call(play, tracer, Sysno::ptrace, &[SEIZE, process.into(), 0, FORKS]), Some(0));
    [process, thread]
}

/// Brings a traced thread to a point.
fn bring(play: &mut Play, tracer: u32, thread: u32, point: Point) {
    const SYSCALL: u64 = 24;
    const STEP: u64 = 9;
    const INTERRUPT: u64 = 0x4207;
    let go_on = |play: &mut Play, request: u64, signal: u64| {
        assert_eq!(call(play, tracer, Sysno::ptrace, &[request, thread.into(), 0, signal]), Some(0), "{point:?}");
    };
    match point {
        Point::Entry | Point::Exit => {
            go_on(play, INTERRUPT, 0);
            go_on(play, SYSCALL, 0);
            assert_eq!(call(play, thread, Sysno::getppid, &[]), None);
            if point == Point::Exit {
                go_on(play, SYSCALL, 0);
            }
        }
        Point::Event => assert_eq!(call(play, thread, Sysno::clone, &[FORK]), None),
        Point::Signal | Point::Handler => {
            assert_eq!(call(play, thread, Sysno::tkill, &[thread.into(), 10]), None);
            if point == Point::Handler {
                go_on(play, STEP, 10);
            }
        }
    }
}

#[test]
fn threads_do_not_go_on_in_a_stopped_process_when_their_tracer_leaves() {
    const DETACH: u64 = 17;
    const STOP: u64 = 19;
    const CONTINUE: u64 = 18;
    for point in [Point::Entry, Point::Exit, Point::Event, Point::Signal, Point::Handler] {
        for is_end in [false, true] {
            let mut play = Play::new(4096);
            let tracer = call(&mut play, 1, Sysno::clone, &[FORK]).unwrap() as u32;
            let [thread, other] = traced(&mut play, tracer);
            bring(&mut play, tracer, thread, point);
            assert_eq!(call(&mut play, 1, Sysno::kill, &[thread.into(), STOP]), Some(0));
            assert_eq!(play.doing(other), Some(support::Doing::Stopped), "{point:?}");
            if is_end {
                assert_eq!(call(&mut play, tracer, Sysno::exit_group, &[0]), None);
            } else {
                assert_eq!(call(&mut play, tracer, Sysno::ptrace, &[DETACH, thread.into(), 0, 0]), Some(0));
            }
            assert_eq!(play.doing(thread), Some(support::Doing::Stopped), "{point:?}");
            play.check();
            assert_eq!(call(&mut play, 1, Sysno::kill, &[thread.into(), CONTINUE]), Some(0));
            for thread in [thread, other] {
                assert_eq!(play.doing(thread), Some(support::Doing::Runs), "{point:?}");
            }
            play.check();
            play.end();
        }
    }
}

#[test]
fn a_tracer_does_not_see_a_program_that_may_not_be_read() {
    const STOP: u64 = 19;
    const EIO: i64 = -5;
    const CODE: u64 = 0x20_0000;
    let mut play = Play::new(4096);
    play.instance.system.add_file(b"/bin/secret", support::program().leak(), 0o711).unwrap();
    let enemy = call(&mut play, 1, Sysno::clone, &[FORK]).unwrap() as u32;
    assert_eq!(call(&mut play, enemy, Sysno::setuid, &[7]), Some(0));
    for (path, may) in [(&b"/bin/program\0"[..], true), (b"/bin/secret\0", false)] {
        let child = call(&mut play, enemy, Sysno::clone, &[FORK]).unwrap() as u32;
        assert_eq!(call(&mut play, child, Sysno::ptrace, &[0]), Some(0));
        play.write(child, DATA, path);
        assert_eq!(call(&mut play, child, Sysno::execve, &[DATA, 0, 0]), None);
        assert_eq!(call(&mut play, enemy, Sysno::wait4, &[child.into(), 0, 0, 0]), Some(child.into()));
        let result = if may { 0 } else { EIO };
        for request in [1, 2, 4, 5] {
            let asked = [request, child.into(), CODE, DATA];
            assert_eq!(call(&mut play, enemy, Sysno::ptrace, &asked), Some(result), "{request}");
        }
        assert_eq!(call(&mut play, enemy, Sysno::kill, &[child.into(), STOP]), Some(0));
    }
    play.check();
    play.end();
}
