//! Executions as a fuzzer would make them, without a fuzzer: random bytes become system calls, from states to which
//! random calls have led, and the kernel's whole state is checked after each call.
//!
//! `TENCH_EXECUTION=n` plays execution `n` alone, and prints what happened in it.

use std::time::Instant;

use tench_abi::Operation;
use tench_kernel::latency_tracer::MEASURING;
use tench_kernel::preemption_point::PREEMPTIBLE;
use tench_model::executions::{BATCH, Finding, Sum, execute, history};

/// Number of batches of the short test.
const SHORT: u64 = 20;
/// Number of system calls in these batches, with preemption points and without. docs/manual/proof.md has the first.
/// The number changes with the kernel; far fewer would mean that the executions end too soon.
const CALLS: u64 = if PREEMPTIBLE { 230_116 } else { 219_845 };
/// Number of batches of the long test: 10⁷ executions.
const LONG: u64 = 10_000;

/// Plays batches. Reports any failure with the execution's number.
fn played(batches: u64, report: impl Fn(u64) + Sync) -> Sum {
    execute(0, batches, 2, report).unwrap_or_else(|Finding { execution, wrong, history }| {
        panic!(
            "execution {execution}: {wrong}; the last events:\n  {}\nreplay with TENCH_EXECUTION={execution}",
            history.join("\n  ")
        );
    })
}

#[test]
fn twenty_batches() {
    if let Ok(number) = std::env::var("TENCH_EXECUTION") {
        let number = number.parse().expect("TENCH_EXECUTION is a number");
        eprintln!("execution {number}:\n  {}", history(number).join("\n  "));
        return;
    }
    let sum = played(SHORT, |_| {});
    println!("{} executions, {} calls, {} refused ones compared", sum.executions, sum.calls, sum.compared);
    assert_eq!((sum.executions, sum.calls), (SHORT * BATCH, CALLS));
    assert!(sum.compared > 0, "no refused call was compared");
}

#[test]
#[ignore = "takes long: ./tench test --long"]
fn one_million() {
    play(LONG / 10);
}

#[test]
#[ignore = "takes very long: ./tench test --long"]
fn ten_million() {
    play(LONG);
}

/// Plays so many batches, in which each operation must both succeed and be refused.
fn play(batches: u64) {
    let start = Instant::now();
    let sum = played(batches, |ended| {
        if ended.is_multiple_of(batches / 100) {
            eprintln!("{} of {} executions, {:.0?}", ended * BATCH, batches * BATCH, start.elapsed());
        }
    });
    println!("{} executions, {} calls, {} refused ones compared", sum.executions, sum.calls, sum.compared);
    assert_eq!(sum.executions, batches * BATCH);
    assert!(sum.compared > 0, "no refused call was compared");
    for operation in Operation::ALL {
        let number = *operation as usize;
        let (succeeded, refused) = (sum.succeeded[number], sum.refused[number]);
        println!("{:>22}: {succeeded:>9} succeeded, {refused:>9} refused", operation.name());
        // Most kernels do not measure interrupts-off intervals.
        let can_succeed = *operation != Operation::KernelIrqOff || MEASURING;
        assert!((succeeded > 0) == can_succeed, "{operation} succeeded {succeeded} times: the test has gone blind");
        assert!(refused > 0 || *operation == Operation::Yield, "{operation} was never refused");
    }
}
