//! Threads whose budget is used up: they wait for the refill, other threads run meanwhile, and timeout handlers are
//! told.

mod servers;

use servers::handler;
use tench_abi::fault::{Class, reply, timeout};
use tench_abi::layout::{UNBIND, slot};
use tench_abi::object::{MAX_PERIOD, MIN_BUDGET};
use tench_abi::{Error, Kind, Operation, Tag};
use tench_arch_host::Machine;
use tench_arch_host::machine::RAM;
use tench_kernel::thread::{Thread, ThreadState, blocker};
use tench_kernel::timers::CLASSES;
use tench_kernel::{Ref, account, entry};

/// A machine with a running thread, of a priority above the first thread's, on a limited budget.
struct Stage {
    machine: Machine,
    thread: Ref<Thread>,
    /// Addresses of the capabilities to the thread (here) and to its scheduling context (`time`).
    address: u64,
    time: u64,
}

/// Returns the address of the capability to the thread made last; those of its context and reply object follow it.
fn thread_of(machine: &Machine) -> u64 {
    machine.free - 4
}

const BUDGET: u64 = 300;
const PERIOD: u64 = 1000;

impl Stage {
    fn new() -> Stage {
        let mut machine = Machine::new();
        machine.fast = true;
        let first = machine.first;
        machine.call(Operation::SchedulingConfigure, &[u64::from(slot::SCHEDULING.0), 100, 255, 0]).ok();
        let thread = machine.make_thread(200);
        let address = thread_of(&machine);
        let time = address + 1;
        machine.call_as(first, Operation::SchedulingConfigure, &[time, 200, 255, 0]).ok();
        machine.call_as(first, Operation::SchedulingReserve, &[time, BUDGET, PERIOD, 0]).ok();
        machine.reschedule();
        let mut stage = Stage { machine, thread, address, time };
        stage.check_current(true);
        stage
    }

    #[track_caller]
    fn check_current(&mut self, is_it: bool) {
        self.machine.check();
        let current = self.machine.current();
        assert_eq!(current == self.thread, is_it, "{current:?} runs");
    }

    /// Advances the time; the first thread runs when no other can.
    #[track_caller]
    fn pass(&mut self, ticks: u64, runs_then: bool) {
        self.machine.pass_time(ticks);
        self.check_current(runs_then);
    }

    fn is_depleted(&mut self) -> bool {
        let context = self.machine.thread(self.thread).base.context.expect("it has time");
        self.machine.kernel().get(context).is_used_up
    }

    /// Checks that no thread waits for a time.
    #[track_caller]
    fn check_no_timer(&mut self) {
        assert_eq!(self.machine.kernel().state().timers.roots(), [0; CLASSES]);
    }

    /// Returns budget, period, usable budget and time of the next refill.
    fn query(&mut self) -> [u64; 4] {
        let first = self.machine.first;
        let result = self.machine.call_as(first, Operation::SchedulingQuery, &[self.time]).ok();
        [result[5], result[6], result[7], result[8]]
    }
}

#[test]
fn a_budget_consumed_at_once_is_refilled_a_period_later() {
    let mut stage = Stage::new();
    let start = stage.machine.host().time;
    stage.pass(BUDGET - 1, true);
    stage.pass(1, false);
    assert!(stage.is_depleted());
    assert_eq!(stage.query(), [BUDGET, PERIOD, 0, start + PERIOD]);
    stage.pass(PERIOD - BUDGET - 1, false);
    stage.pass(1, true);
    assert!(!stage.is_depleted());
    stage.pass(BUDGET, false);
}

#[test]
fn a_busy_machine_gives_exactly_the_share() {
    let mut stage = Stage::new();
    let mut ran = 0;
    for _ in 0..20 * PERIOD / 10 {
        let current = stage.machine.current();
        ran += if current == stage.thread { 10 } else { 0 };
        stage.machine.pass_time(10);
        stage.machine.check();
    }
    assert_eq!(ran, 20 * BUDGET);
}

#[test]
fn an_overrun_is_paid_back() {
    let mut stage = Stage::new();
    let start = stage.machine.host().time;
    // The kernel did not look at the clock meanwhile: the overrun of 50 ticks comes off the next period.
    stage.pass(BUDGET + 50, false);
    stage.pass(PERIOD - BUDGET - 50, false);
    assert_eq!(stage.query()[2..], [0, start + PERIOD + 50]);
    stage.pass(50, true);
    stage.pass(BUDGET - 50, false);
}

#[test]
fn a_waiting_thread_uses_no_budget() {
    let mut stage = Stage::new();
    let endpoint = {
        let first = stage.machine.first;
        stage.machine.run(first);
        stage.machine.make(Kind::Notification, 0)
    };
    stage.machine.reschedule();
    stage.pass(100, true);
    stage.machine.call(Operation::Receive, &[endpoint, 0]);
    stage.check_current(false);
    stage.pass(5 * PERIOD, false);
    assert_eq!(stage.query()[2], BUDGET);
    stage.machine.call(Operation::Signal, &[endpoint]).ok();
    stage.check_current(true);
    stage.pass(BUDGET - 1, true);
    stage.pass(1, false);
}

#[test]
fn a_budget_can_be_changed_while_it_is_used_up() {
    let mut stage = Stage::new();
    stage.pass(BUDGET, false);
    stage.machine.call(Operation::SchedulingReserve, &[stage.time, 100, 500, 0]).ok();
    stage.check_current(true);
    stage.pass(100, false);
    // The limit is taken off.
    stage.machine.call(Operation::SchedulingReserve, &[stage.time, 0, 0, 0]).ok();
    stage.check_current(true);
    stage.pass(100 * PERIOD, true);
    assert_eq!(stage.query(), [0; 4]);
}

#[test]
fn a_thread_can_limit_itself() {
    let mut stage = Stage::new();
    stage.machine.call(Operation::SchedulingReserve, &[stage.time, 0, 0, 0]).ok();
    stage.check_current(true);
    stage.machine.call(Operation::SchedulingReserve, &[stage.time, 200, 400, 0]).ok();
    stage.check_current(true);
    stage.pass(200, false);
    stage.pass(200, true);
}

#[test]
fn refusals() {
    let mut stage = Stage::new();
    let first = stage.machine.first;
    stage.machine.run(first);
    let mut refused = |arguments: [u64; 3], error| {
        let [budget, period, authority] = arguments;
        let result = stage.machine.call(Operation::SchedulingReserve, &[stage.time, budget, period, authority]);
        assert_eq!(result.err(), error, "{arguments:?}");
        stage.machine.check();
    };
    refused([0, PERIOD, 0], Error::InvalidArgument);
    refused([BUDGET, 0, 0], Error::InvalidArgument);
    refused([PERIOD + 1, PERIOD, 0], Error::InvalidArgument);
    refused([MIN_BUDGET - 1, PERIOD, 0], Error::InvalidArgument);
    refused([BUDGET, MAX_PERIOD + 1, 0], Error::InvalidArgument);
    refused([u64::MAX, u64::MAX, 0], Error::InvalidArgument);
    refused([BUDGET, PERIOD, 5000], Error::InvalidCapability);
    refused([BUDGET, PERIOD, stage.address], Error::WrongType);
    let low = stage.machine.make(Kind::SchedulingContext, 0);
    stage.machine.call(Operation::SchedulingConfigure, &[low, 10, 199, 0]).ok();
    let result = stage.machine.call(Operation::SchedulingReserve, &[stage.time, BUDGET, PERIOD, low]);
    assert_eq!(result.err(), Error::PriorityTooHigh);
    stage.machine.call(Operation::SchedulingReserve, &[low, MIN_BUDGET, MAX_PERIOD, 0]).ok();
    assert_eq!(stage.query()[..2], [BUDGET, PERIOD]);
}

/// Runs `then` on a depleted thread, and checks that it leaves nothing in the timer queue that should not be there.
fn while_depleted(then: impl FnOnce(&mut Stage)) {
    let mut stage = Stage::new();
    stage.pass(BUDGET, false);
    assert!(stage.is_depleted());
    then(&mut stage);
    stage.machine.check();
    stage.pass(3 * PERIOD, false);
}

#[test]
fn suspended_while_depleted() {
    while_depleted(|stage| {
        stage.machine.call(Operation::ThreadSuspend, &[stage.address]).ok();
        stage.machine.check();
        // After being resumed, the thread is as depleted as before.
        stage.machine.call(Operation::ThreadResume, &[stage.address]).ok();
        stage.pass(0, false);
        assert!(stage.is_depleted());
        stage.machine.call(Operation::ThreadSuspend, &[stage.address]).ok();
    });
}

#[test]
fn deleted_while_depleted() {
    while_depleted(|stage| {
        stage.machine.call(Operation::Delete, &[0, stage.address]).ok();
    });
}

#[test]
fn unbound_while_depleted() {
    while_depleted(|stage| {
        stage.machine.call(Operation::ThreadBind, &[stage.address, UNBIND, 0, 0]).ok();
        // An unbound context gets its refill, too, and can be bound again before.
        stage.machine.call(Operation::ThreadBind, &[stage.address, stage.time, 0, 0]).ok();
        assert!(stage.is_depleted());
        stage.machine.call(Operation::ThreadBind, &[stage.address, UNBIND, 0, 0]).ok();
    });
}

#[test]
fn the_context_deleted_while_depleted() {
    while_depleted(|stage| {
        // Deleting the context removes the binding.
        stage.machine.call(Operation::Revoke, &[0, stage.time]).ok();
        stage.machine.call(Operation::Delete, &[0, stage.time]).ok();
        stage.check_no_timer();
    });
}

#[test]
fn registers_read_while_depleted() {
    while_depleted(|stage| {
        stage.machine.call(Operation::ThreadReadRegisters, &[stage.address, 1]).ok();
    });
}

#[test]
fn an_upcall_tells_the_thread_itself_once_there_is_budget() {
    let mut stage = Stage::new();
    let first = stage.machine.first;
    stage.machine.run(first);
    let class = Class::Timeout as u64;
    stage.machine.call(Operation::ThreadFaults, &[stage.address, class, 0, 0x20_0000, 0]).ok();
    stage.machine.reschedule();
    stage.check_current(true);
    stage.machine.thread(stage.thread).registers.pc = 0x1234;
    stage.pass(BUDGET, false);
    assert!(stage.is_depleted());
    stage.pass(PERIOD - BUDGET, true);
    let thread = stage.thread;
    let registers = stage.machine.thread(thread).registers;
    assert_eq!((registers.pc, registers.x[0], registers.x[2]), (0x20_0000, class, 0x1234));
    assert_eq!(stage.machine.thread(thread).full_restore, 1);
    stage.machine.call(Operation::UpcallReturn, &[]);
    stage.check_current(true);
    assert_eq!(stage.machine.thread(thread).registers.pc, 0x1234);
}

#[test]
fn a_budget_ends_before_the_slice_does() {
    let mut stage = Stage::new();
    let first = stage.machine.first;
    stage.machine.run(first);
    let equal = stage.machine.make_thread(200);
    stage.machine.call(Operation::SchedulingConfigure, &[stage.time, 200, 200, 100]).ok();
    stage.machine.call(Operation::Yield, &[]);
    assert_eq!(stage.machine.current(), equal);
    stage.machine.call(Operation::Yield, &[]);
    stage.check_current(true);
    // Slices of 100 alternate with an equal without a budget; the budget is used up in the third slice.
    stage.pass(100, false);
    assert_eq!(stage.machine.current(), equal);
    stage.machine.call(Operation::Yield, &[]);
    stage.check_current(true);
    stage.pass(100, false);
    stage.machine.call(Operation::Yield, &[]);
    stage.check_current(true);
    stage.pass(100, false);
    assert!(stage.is_depleted());
    stage.machine.call(Operation::Yield, &[]);
    stage.check_current(false);
}

/// Advances the time at each preemption point of the kernel, where the timer may fire.
fn let_time_pass_at_preemption_points(machine: &mut Machine, ticks: u64) {
    machine.host().hook = Some(Box::new(move |k| {
        k.arch().time += ticks;
        while k.arch().interrupted() {
            entry::kernel_interrupt(k);
        }
    }));
}

/// Lets the thread make a large frame, which passes preemption points, each after a third of its budget. Returns the
/// address of the frame's slot.
fn long_operation(stage: &mut Stage) -> u64 {
    let slot = stage.machine.take_free();
    let_time_pass_at_preemption_points(&mut stage.machine, BUDGET / 3);
    stage.machine.retype(RAM, Kind::Frame, 16, 1, slot);
    slot
}

#[test]
#[cfg_attr(not(feature = "preemption"), ignore = "preemption points let nobody in")]
fn a_budget_ends_at_a_preemption_point_and_the_operation_continues_later() {
    let mut stage = Stage::new();
    long_operation(&mut stage);
    stage.check_current(false);
    assert!(stage.is_depleted());
    let thread = stage.thread;
    assert!(stage.machine.thread(thread).kernel_stack_pointer != 0, "it waits in the middle of the operation");
    let mut refills = 0;
    while stage.machine.thread(thread).kernel_stack_pointer != 0 {
        stage.machine.pass_time(PERIOD);
        stage.machine.check();
        refills += 1;
    }
    assert!(refills > 1, "it took several budgets");
    assert_eq!(stage.machine.results(thread).x[0], 0);
}

#[test]
#[cfg_attr(not(feature = "preemption"), ignore = "preemption points let nobody in")]
fn depletion_found_at_a_preemption_point_is_reported_at_the_end_of_the_operation() {
    let mut stage = Stage::new();
    let address = stage.address;
    let (handler, _) = handler(&mut stage, address);
    let slot = long_operation(&mut stage);
    let thread = stage.thread;
    assert!(stage.is_depleted());
    while stage.machine.current() != handler {
        assert!(stage.machine.thread(thread).kernel_stack_pointer != 0, "nothing is reported before");
        stage.machine.pass_time(PERIOD);
        stage.machine.check();
    }
    assert!(matches!(stage.machine.thread(thread).state, ThreadState::AwaitingReply(_)));
    assert_eq!(stage.machine.thread(thread).kernel_stack_pointer, 0);
    assert_eq!(stage.machine.cap(slot).kind, Kind::Frame);
}

#[test]
#[cfg_attr(not(feature = "preemption"), ignore = "preemption points let nobody in")]
fn a_depleted_thread_is_deleted_at_a_preemption_point() {
    let mut stage = Stage::new();
    long_operation(&mut stage);
    stage.machine.host().hook = None;
    assert!(stage.is_depleted());
    stage.machine.call(Operation::Delete, &[0, stage.address]).ok();
    stage.machine.check();
}

#[test]
fn a_depleted_thread_whose_account_is_suspended_waits_for_both() {
    let mut stage = Stage::new();
    let thread = stage.thread;
    stage.pass(BUDGET, false);
    account::set_suspended(stage.machine.kernel(), thread, true);
    stage.machine.check();
    // The refill comes, and does not make the suspended thread run.
    stage.pass(PERIOD, false);
    assert!(!stage.is_depleted());
    account::set_suspended(stage.machine.kernel(), thread, false);
    stage.machine.reschedule();
    stage.check_current(true);
    // In the opposite order.
    stage.pass(BUDGET, false);
    account::set_suspended(stage.machine.kernel(), thread, true);
    account::set_suspended(stage.machine.kernel(), thread, false);
    stage.machine.reschedule();
    stage.check_current(false);
    stage.pass(PERIOD - BUDGET, true);
}

#[test]
fn a_running_thread_whose_account_is_suspended_loses_no_budget() {
    let mut stage = Stage::new();
    let thread = stage.thread;
    stage.pass(100, true);
    account::set_suspended(stage.machine.kernel(), thread, true);
    stage.machine.reschedule();
    stage.check_current(false);
    assert_eq!(stage.query()[2], BUDGET - 100);
    account::set_suspended(stage.machine.kernel(), thread, false);
    stage.machine.reschedule();
    stage.check_current(true);
    stage.pass(BUDGET - 100, false);
}

#[test]
fn many_unimportant_deadlines_keep_no_important_thread_waiting() {
    let mut machine = Machine::new();
    let first = machine.first;
    let notification = machine.make(Kind::Notification, 0);
    let sleepers: Vec<Ref<Thread>> = (0..18).map(|_| machine.make_thread(100)).collect();
    let important = machine.make_thread(200);
    machine.call(Operation::SchedulingConfigure, &[u64::from(slot::SCHEDULING.0), 150, 255, 0]).ok();
    let mut x = [0; 13];
    (x[0], x[1], x[12]) = (notification, Tag::DEADLINE, machine.host().time + 1000);
    for thread in sleepers.iter().chain([&important]) {
        machine.run(*thread);
        machine.system_call(Operation::Receive as u64, &x);
    }
    assert_eq!(machine.current(), first);
    // The interrupt wakes the important thread first, and leaves the others for later.
    machine.host().time += 1000;
    machine.interrupt_once();
    assert_eq!(machine.current(), important);
    let awake = |machine: &mut Machine| {
        sleepers.iter().filter(|thread| matches!(machine.thread(**thread).state, ThreadState::Ready)).count()
    };
    assert!(awake(&mut machine) <= 2, "{} were woken while somebody more important runs", awake(&mut machine));
    machine.check();
    // All others are woken.
    machine.pass_time(1);
    while !machine.idle() {
        machine.call(Operation::ThreadSuspend, &[u64::from(slot::THREAD.0)]);
        let current = machine.current();
        tench_kernel::thread::control::suspend(machine.kernel(), current);
        machine.pass_time(1);
        machine.reschedule();
        machine.check();
    }
    assert_eq!(machine.kernel().state().timers.roots(), [0; CLASSES]);
}
