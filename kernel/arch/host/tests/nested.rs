//! Interrupts that arrive while the handler of another runs: they are handled at once, and no thread runs before the
//! outermost handler is left.

use std::cell::RefCell;
use std::rc::Rc;

use proptest::prelude::*;
use tench_abi::layout::slot;
use tench_abi::object::Statistic;
use tench_abi::{Error, Kind, Operation, Tag};
use tench_arch_host::Machine;
use tench_arch_host::check::check;
use tench_arch_host::host::Host;
use tench_arch_host::machine::{RAM, at};
use tench_kernel::thread::{Thread, ThreadState};
use tench_kernel::{Kernel, Ref};

/// Number of deadlines that one batch handles.
const BATCH: usize = 2;
/// A line that programs may own.
const LINE: u32 = 40;

/// A machine in which the first thread runs at priority 100, with waiting threads, and a driver that waits for its
/// line.
struct World {
    m: Machine,
    /// Threads that wait for a deadline.
    sleepers: Vec<Ref<Thread>>,
    /// The thread that waits for line [`LINE`].
    driver: Ref<Thread>,
    /// The notification that the line signals.
    notification: u64,
}

/// Lets a thread wait, with a deadline or without; the first thread runs again.
fn wait(m: &mut Machine, thread: Ref<Thread>, notification: u64, deadline: Option<u64>) {
    let first = m.first;
    let tag = if deadline.is_some() { Tag::DEADLINE } else { 0 };
    let deadline = deadline.unwrap_or(0);
    m.call_as(thread, Operation::Receive, &[notification, tag, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, deadline]);
    m.run(first);
    m.check();
}

/// Takes a line and binds it to a notification.
fn bind(m: &mut Machine, number: u32, notification: u64) -> u64 {
    let line = m.take_free();
    m.call(Operation::InterruptGet, &[at(slot::INTERRUPT_CONTROL), number.into(), 0, line]).ok();
    m.call(Operation::InterruptBind, &[line, notification]).ok();
    m.check();
    line
}

/// Returns a world with sleepers of the given priorities (of the same class as the first thread's or as the driver's,
/// so that none needs to wait for a pause), whose deadlines all pass at time 1,000, and a driver of priority 200 that
/// waits until time 1,000 at most if `impatient`.
fn world(priorities: &[u64], impatient: bool) -> World {
    let mut m = Machine::new();
    let (never, notification) = (m.make(Kind::Notification, 0), m.make(Kind::Notification, 0));
    let mut sleepers = Vec::new();
    for priority in priorities {
        let thread = m.make_thread(*priority);
        wait(&mut m, thread, never, Some(1000));
        sleepers.push(thread);
    }
    let driver = m.make_thread(200);
    wait(&mut m, driver, notification, impatient.then_some(999));
    bind(&mut m, LINE, notification);
    m.call(Operation::SchedulingConfigure, &[at(slot::SCHEDULING), 100, 255, 0]).ok();
    World { m, sleepers, driver, notification }
}

/// Observations at the preemption points of handlers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seen {
    /// Number of handlers that had been entered.
    depths: Vec<u32>,
    /// Number of sleepers that had been woken.
    woken: Vec<usize>,
    /// True if the driver could have run.
    driver_ready: Vec<bool>,
}

/// Checks at each preemption point of a handler that the kernel's state is consistent and the same thread is still
/// current, and then runs `what`.
fn observe(w: &mut World, mut what: impl FnMut(&mut Kernel<Host>, usize) + 'static) -> Rc<RefCell<Seen>> {
    let seen = Rc::new(RefCell::new(Seen::default()));
    let (sleepers, driver) = (w.sleepers.clone(), w.driver);
    let notes = seen.clone();
    let mut outside = None;
    w.m.host().nested_hook = Some(Box::new(move |k| {
        let (current, s) = (k.current(), k.state().statistics);
        // The number of this outermost handler, and the state when it began.
        let (handler, now) = (s.interrupts - s.nested_interrupts, (current, s.switches));
        let (_, then) = *outside.insert(outside.filter(|(before, _)| *before == handler).unwrap_or((handler, now)));
        assert!(then == now, "somebody else ran before the handler was left");
        check(k).expect("consistent at a handler's preemption point");
        let mut notes = notes.borrow_mut();
        notes.depths.push(k.state().nesting);
        let ready = |k: &mut Kernel<Host>, thread: Ref<Thread>| matches!(k.get(thread).state, ThreadState::Ready);
        notes.woken.push(sleepers.iter().filter(|thread| ready(k, **thread)).count());
        notes.driver_ready.push(ready(k, driver));
        what(k, notes.depths.len());
    }));
    seen
}

/// Raises a line.
fn raise(k: &mut Kernel<Host>, number: u32) {
    k.arch().pending.insert(number);
}

/// Returns one of the kernel's statistics.
fn statistic(m: &mut Machine, which: Statistic) -> u64 {
    let first = m.first;
    m.run(first);
    m.call(Operation::KernelQuery, &[at(slot::KERNEL), which as u64]).ok()[1]
}

#[test]
#[cfg_attr(not(feature = "preemption"), ignore = "preemption points let nobody in")]
fn many_deadlines_let_interrupts_in_between_batches() {
    let mut w = world(&[70; 5 * BATCH - 1], false);
    let seen = observe(&mut w, |_, _| {});
    w.m.pass_time(1000);
    w.m.check();
    assert_eq!(seen.borrow().depths, [1; 4], "five batches");
    assert_eq!(seen.borrow().woken, [BATCH, 2 * BATCH, 3 * BATCH, 4 * BATCH]);
    for sleeper in w.sleepers.clone() {
        assert_eq!(w.m.results(sleeper).err(), Error::TimedOut);
    }
    assert_eq!(w.m.host().timer.unwrap_or(u64::MAX), u64::MAX, "no deadline is left");
    assert_eq!(statistic(&mut w.m, Statistic::DeepestNesting), 1, "nothing came at the preemption points");
    assert_eq!(statistic(&mut w.m, Statistic::Interrupts), 1, "the timer did not have to fire again");
}

#[test]
fn a_single_batch_passes_no_preemption_point() {
    let mut w = world(&[70; BATCH], false);
    let seen = observe(&mut w, |_, _| {});
    w.m.pass_time(1000);
    w.m.check();
    assert_eq!(*seen.borrow(), Seen::default());
}

#[test]
#[cfg_attr(not(feature = "preemption"), ignore = "preemption points let nobody in")]
fn no_thread_runs_before_the_outermost_handler_returns() {
    let mut w = world(&[195; 3 * BATCH], false);
    let seen = observe(&mut w, |k, n| {
        if n == 1 {
            raise(k, LINE);
        }
    });
    w.m.pass_time(1000);
    w.m.check();
    assert_eq!(
        seen.borrow().driver_ready,
        [false, true],
        "it was woken at the first preemption point, and waited for the last"
    );
    assert!(w.m.current() == w.driver, "then it ran, before the others");
    assert_eq!(w.m.results(w.driver).ok()[10], 1);
    for sleeper in w.sleepers.clone() {
        assert!(!w.m.waits(sleeper));
    }
    assert_eq!(statistic(&mut w.m, Statistic::DeepestNesting), 2);
    assert_eq!(statistic(&mut w.m, Statistic::NestedInterrupts), 1);
    assert_eq!(statistic(&mut w.m, Statistic::Interrupts), 2);
}

#[test]
#[cfg_attr(not(feature = "preemption"), ignore = "preemption points let nobody in")]
fn an_interrupt_handler_at_a_preemption_point_nests_and_leaves_switching_to_the_operation() {
    let mut w = world(&[70; 3 * BATCH], false);
    let seen = observe(&mut w, |k, n| {
        if n == 2 {
            raise(k, LINE);
        }
    });
    let (driver, first, notification) = (w.driver, w.m.first, w.notification);
    // The first preemption point of a long operation lets the timer in.
    w.m.host().time = 1000;
    let frame = w.m.take_free();
    w.m.retype(RAM, Kind::Frame, 20, 1, frame);
    assert_eq!(seen.borrow().depths, [1, 1], "one handler, counted once");
    assert!(w.m.current() == driver, "it preempted the operation");
    assert!(w.m.thread(first).kernel_stack_pointer != 0, "which waits at its preemption point");
    assert_eq!(w.m.kernel().state().statistics.preemptions, 1);
    assert_eq!(w.m.kernel().state().statistics.deepest_nesting, 2);
    w.m.check();
    // The retype continues when the driver waits again.
    w.m.call(Operation::Receive, &[notification, 0]);
    assert!(w.m.current() == first);
    assert_eq!(w.m.thread(first).kernel_stack_pointer, 0);
    assert_eq!(w.m.cap(frame).kind, Kind::Frame);
    w.m.check();
}

#[test]
#[cfg_attr(not(feature = "preemption"), ignore = "preemption points let nobody in")]
fn interrupts_nest_while_nobody_runs() {
    let mut w = world(&[195; 3 * BATCH], false);
    let seen = observe(&mut w, |k, n| {
        if n == 1 {
            raise(k, LINE);
        }
    });
    let first = at(slot::THREAD);
    w.m.call(Operation::ThreadSuspend, &[first]);
    assert!(w.m.idle());
    w.m.idle_turn();
    assert!(w.m.idle(), "nothing came");
    w.m.host().time = 1000;
    w.m.idle_turn();
    assert_eq!(seen.borrow().depths, [1, 1]);
    assert!(w.m.current() == w.driver);
    assert_eq!(w.m.kernel().state().statistics.deepest_nesting, 2);
    w.m.check();
}

#[test]
#[cfg_attr(not(feature = "preemption"), ignore = "preemption points let nobody in")]
fn the_timer_does_not_interrupt_its_own_handler() {
    // The driver's wait has the first deadline; its end sets the timer to the next, which has passed, too.
    let mut w = world(&[195; 3 * BATCH], true);
    let seen = observe(&mut w, |k, n| {
        k.arch().time += 1;
        assert!(!k.arch().interrupted(), "preemption point {n}: the timer is being served");
    });
    w.m.pass_time(1000);
    w.m.check();
    assert_eq!(seen.borrow().depths, [1; 3]);
    assert_eq!(statistic(&mut w.m, Statistic::DeepestNesting), 1);
}

#[test]
#[cfg_attr(not(feature = "preemption"), ignore = "preemption points let nobody in")]
fn deadlines_that_pass_in_a_handler_are_met_by_it() {
    let mut w = world(&[70; 6], false);
    let late = w.m.make_thread(90);
    let never = w.m.make(Kind::Notification, 0);
    wait(&mut w.m, late, never, Some(2000));
    observe(&mut w, |k, _| k.arch().time = 2000);
    w.m.pass_time(1000);
    w.m.check();
    assert_eq!(w.m.results(late).err(), Error::TimedOut);
    assert_eq!(statistic(&mut w.m, Statistic::Interrupts), 1);
}

#[test]
#[cfg_attr(not(feature = "preemption"), ignore = "preemption points let nobody in")]
fn a_slice_that_ends_in_a_handler_ends_when_it_is_left() {
    let mut w = world(&[70; 3 * BATCH], false);
    let rival = w.m.make_thread(100);
    let (first, time) = (w.m.first, at(slot::SCHEDULING));
    w.m.call(Operation::SchedulingConfigure, &[time, 100, 255, 600]).ok();
    w.m.reschedule();
    assert!(w.m.current() == first);
    // From now on the rival waits for its turn, until time 1,000 or so.
    w.m.call(Operation::Yield, &[]);
    assert!(w.m.current() == rival);
    w.m.call(Operation::Yield, &[]);
    assert!(w.m.current() == first);
    let seen = observe(&mut w, |_, _| {});
    w.m.pass_time(1000);
    assert_eq!(seen.borrow().depths, [1, 1]);
    assert!(w.m.current() == rival, "its turn came with the end of the slice");
    w.m.check();
}

#[test]
fn lines_of_one_notification_are_unbound_in_any_order() {
    let mut m = Machine::new();
    let notification = m.make(Kind::Notification, 0);
    let lines: Vec<u64> = (32..64).map(|number| bind(&mut m, number, notification)).collect();
    for (turn, stride) in [1usize, 3, 5, 31].into_iter().enumerate() {
        for i in 0..lines.len() {
            let line = lines[(i * stride + turn) % lines.len()];
            m.call(Operation::InterruptBind, &[line, 0]).ok();
            m.check();
        }
        for line in &lines {
            m.call(Operation::InterruptBind, &[*line, notification]).ok();
            m.check();
        }
    }
    // Deleting the notification takes them from the front.
    assert_eq!(m.call(Operation::Delete, &[0, notification]).ok()[1], 1);
    m.check();
}

/// An event at one preemption point of a handler.
#[derive(Clone, Debug)]
enum Step {
    /// Raises a line.
    Raise(u32),
    /// Advances the time.
    Pass(u64),
}

/// Returns a strategy for steps of any kind.
fn step() -> impl Strategy<Value = Step> {
    prop_oneof![(40..44u32).prop_map(Step::Raise), (1..700u64).prop_map(Step::Pass)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Checks for any events at handlers' preemption points: no other thread runs in one, at most two handlers are
    /// nested, all that was due has happened when the outermost is left, and then the first thread of the highest
    /// priority runs.
    #[test]
    fn any_interrupts_may_arrive_in_handlers(
        sleepers in prop::collection::vec((1..250u64, 1..3000u64), 1..13),
        steps in prop::collection::vec(step(), 0..12),
        fast in any::<bool>(),
    ) {
        let mut w = world(&[], false);
        w.m.fast = fast;
        for number in 41..44 {
            bind(&mut w.m, number, w.notification);
        }
        let never = w.m.make(Kind::Notification, 0);
        let mut deadlines = Vec::new();
        for (priority, deadline) in sleepers {
            let thread = w.m.make_thread(priority);
            wait(&mut w.m, thread, never, Some(deadline));
            deadlines.push((thread, deadline));
            w.sleepers.push(thread);
        }
        let mut left = steps.into_iter();
        let seen = observe(&mut w, move |k, _| match left.next() {
            Some(Step::Raise(number)) => raise(k, number),
            Some(Step::Pass(ticks)) => k.arch().time += ticks,
            None => {}
        });
        for _ in 0..6 {
            w.m.pass_time(600);
            w.m.check();
            prop_assert!(seen.borrow().depths.iter().all(|depth| *depth == 1));
            let now = w.m.host().time;
            for (thread, deadline) in &deadlines {
                prop_assert_eq!(w.m.waits(*thread), *deadline > now);
            }
            let current = w.m.current();
            let k = w.m.kernel();
            let (highest, priority) = (k.state().highest_ready, k.get(current).priority);
            prop_assert!(highest <= priority.into(), "{} waits while {} runs", highest, priority);
            prop_assert!(k.state().statistics.deepest_nesting <= 2);
        }
    }
}
