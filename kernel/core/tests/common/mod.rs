//! Helpers of the capability tests.

#![allow(dead_code, reason = "each test file uses a part")]

use tench_abi::layout::slot;
use tench_abi::{Kind, Operation};
use tench_arch_host::Machine;
use tench_arch_host::check_order::check_order;
use tench_arch_host::machine::{RAM_MEDIUM, at};
use tench_kernel::object::Ref;
use tench_kernel::scheduler;
use tench_kernel::thread::Thread;

/// Panics unless the state is consistent.
#[track_caller]
pub fn check(machine: &mut Machine) {
    if let Err(wrong) = check_order(machine.kernel()) {
        panic!("{wrong}");
    }
    machine.check();
}

/// Returns the number of capabilities.
pub fn capabilities(machine: &mut Machine) -> usize {
    check_order(machine.kernel()).expect("consistent")
}

/// Returns an untyped's watermark.
pub fn watermark(machine: &mut Machine, untyped: u64) -> u64 {
    machine.call(Operation::UntypedQuery, &[untyped]).ok()[2]
}

/// Arranges that `other` becomes ready at the `n`th preemption point from now, and runs if its priority is higher.
pub fn interrupt_at(machine: &mut Machine, other: Ref<Thread>, n: usize) {
    let mut left = n;
    machine.host().hook = Some(Box::new(move |k| {
        if left == 0 {
            return;
        }
        left -= 1;
        if left == 0 && k.current() != other && !k.get(other).queued {
            scheduler::make_ready(k, other);
        }
    }));
}

/// Makes a thread of priority 50 from `RAM_MEDIUM`, ready to run in the first thread's CSpace. Returns its address and
/// it.
pub fn worker(machine: &mut Machine) -> (u64, Ref<Thread>) {
    let (address, time) = (machine.take_free(), machine.take_free());
    machine.retype(RAM_MEDIUM, Kind::Thread, 0, 1, address).ok();
    machine.retype(RAM_MEDIUM, Kind::SchedulingContext, 0, 1, time).ok();
    machine.call(Operation::SchedulingConfigure, &[time, 50, 50, 0]).ok();
    machine.call(Operation::ThreadConfigure, &[address, at(slot::CSPACE), at(slot::VSPACE), 0, 0]).ok();
    machine.call(Operation::ThreadBind, &[address, time, 0, 0]).ok();
    machine.call(Operation::ThreadResume, &[address]).ok();
    (address, machine.thread_at(address))
}

/// Suspends the first thread, so that the worker runs.
#[track_caller]
pub fn let_work(machine: &mut Machine, worker: Ref<Thread>) {
    machine.call(Operation::ThreadSuspend, &[at(slot::THREAD)]);
    assert!(machine.current() == worker);
}

/// Makes the first thread run again, wherever the worker is.
pub fn take_over(machine: &mut Machine) {
    let first = machine.first;
    machine.host().hook = None;
    if machine.current() != first {
        if !machine.kernel().get(first).queued {
            scheduler::make_ready(machine.kernel(), first);
        }
        machine.run(first);
    }
}
