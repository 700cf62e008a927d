//! Deadlines by the thousand: which threads they delay, and which they do not.

use std::cell::Cell;
use std::rc::Rc;

use tench_abi::layout::slot;
use tench_abi::{Kind, Operation, Tag};
use tench_arch_host::machine::at;
use tench_arch_host::{Machine, check};
use tench_kernel::object::Ref;
use tench_kernel::preemption_point::PREEMPTIBLE;
use tench_kernel::thread::Thread;

/// Time of all deadlines.
const DEADLINE: u64 = 1000;
/// Ticks that each reading of the clock takes here, so that a batch takes time.
const LOOK: u64 = 3;

/// Returns a machine whose first thread has this priority, and `count` threads of another that wait for the same time.
fn sleepers(priority: u64, count: usize, of_sleepers: u64) -> (Machine, Vec<Ref<Thread>>) {
    let mut machine = Machine::new();
    let never = machine.make(Kind::Notification, 0);
    let sleepers: Vec<Ref<Thread>> = (0..count).map(|_| machine.make_thread(of_sleepers)).collect();
    for sleeper in &sleepers {
        wait(&mut machine, *sleeper, never, DEADLINE);
    }
    machine.call(Operation::SchedulingConfigure, &[at(slot::SCHEDULING), priority, 255, 0]).ok();
    machine.host().look = LOOK;
    (machine, sleepers)
}

/// Makes a thread wait until a time.
fn wait(machine: &mut Machine, thread: Ref<Thread>, notification: u64, deadline: u64) {
    let mut x = [0; 13];
    (x[0], x[1], x[12]) = (notification, Tag::DEADLINE, deadline);
    machine.run(thread);
    machine.system_call(Operation::Receive as u64, &x);
    machine.check();
}

/// Returns how many threads still wait for the time.
fn waiting(machine: &mut Machine, sleepers: &[Ref<Thread>]) -> usize {
    sleepers.iter().filter(|sleeper| machine.thread(**sleeper).timer.is_queued()).count()
}

#[test]
fn timers_of_the_running_class_expire_at_once() {
    let (mut machine, sleepers) = sleepers(60, 20, 50);
    let points = Rc::new(Cell::new(0));
    let passed = points.clone();
    machine.host().nested_hook = Some(Box::new(move |k| {
        passed.set(passed.get() + 1);
        if let Err(wrong) = check::check(k) {
            panic!("{wrong}");
        }
    }));
    machine.pass_time(DEADLINE);
    machine.check();
    assert_eq!(points.get() > 5, PREEMPTIBLE, "{} preemption points of the handler", points.get());
    assert_eq!(waiting(&mut machine, &sleepers), 0);
}

#[test]
fn timers_of_lower_classes_expire_a_few_at_a_time() {
    let (mut machine, sleepers) = sleepers(200, 20, 50);
    machine.pass_time(DEADLINE);
    let left = waiting(&mut machine, &sleepers);
    assert!((16..20).contains(&left), "{left} of 20 wait after the first batch");
    // Then one batch ends in each interval 33 times as long as a batch takes.
    machine.pass_time(20 * LOOK);
    assert_eq!(waiting(&mut machine, &sleepers), left);
    machine.pass_time(40 * LOOK);
    assert!(waiting(&mut machine, &sleepers) < left);
}

#[test]
fn timers_expire_at_once_when_no_thread_is_ready() {
    let (mut machine, sleepers) = sleepers(200, 20, 50);
    machine.pass_time(DEADLINE);
    assert!(waiting(&mut machine, &sleepers) > 0);
    let never = machine.make(Kind::Notification, 0);
    let first = machine.first;
    machine.call_as(first, Operation::Receive, &[never, 0]);
    // Threads that have been woken wait again, until none is woken.
    loop {
        machine.pass_time(0);
        if machine.idle() {
            break;
        }
        let current = machine.current();
        machine.call_as(current, Operation::Receive, &[never, 0]);
        machine.check();
    }
    assert_eq!(waiting(&mut machine, &sleepers), 0);
}
