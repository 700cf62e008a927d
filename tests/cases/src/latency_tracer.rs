//! Tests of how long interrupts are off as the kernel measures it, or that the kernel reports that it does not measure.

use tench::abi::Operation;
use tench::abi::layout::slot;
use tench::abi::object::entry_path;
use tench::sys::{Error, Kind, Placement};

use crate::case::{Case, Outcome};
use crate::stage::{KERNEL, Stage, system_call};

pub const CASES: &[Case] = &[
    Case::new("LAT0001", "only kernels that measure report for how long interrupts were off", statistics),
    Case::new("LAT0002", "a system call's interrupts-off intervals are counted for it, with their lengths", counted),
];

/// Returns whether this kernel measures interrupts-off intervals.
fn measures() -> bool {
    KERNEL.reset_irq_off_intervals() != Err(Error::Unsupported)
}

fn statistics(_: &mut Stage) -> Outcome {
    let measures = measures();
    for path in 0..entry_path::LIMIT {
        let result = KERNEL.irq_off_intervals(path);
        equal!(result.is_ok(), measures);
        check!(measures || result == Err(Error::Unsupported));
    }
    let refusal = if measures { Error::InvalidArgument } else { Error::Unsupported };
    for path in [entry_path::LIMIT, 1 << 32, u64::MAX - 1] {
        let result = system_call(Operation::KernelIrqOff as u64, &[u64::from(slot::KERNEL.0), path]);
        equal!(result, Err(refusal));
    }
    Ok(())
}

fn counted(stage: &mut Stage) -> Outcome {
    if !measures() {
        return Ok(());
    }
    KERNEL.reset_irq_off_intervals()?;
    for _ in 0..5 {
        stage.pool.query()?;
    }
    refused!(system_call(120, &[]), UnknownOperation);
    let one = KERNEL.irq_off_intervals(Operation::UntypedQuery as u64)?;
    equal!(one.count, 5);
    check!(one.longest >= 50 && one.longest < 500);
    check!(one.sum <= 5 * one.longest && one.squares <= one.longest * one.sum);
    check!(one.address >= 0xffff_fff0_0000_0000);
    equal!(KERNEL.irq_off_intervals(entry_path::UNKNOWN)?.count, 1);
    equal!(KERNEL.irq_off_intervals(Operation::UntypedRetype as u64)?.count, 0);
    // The frame is zeroed in steps, so in a kernel with preemption points this is many intervals, none of them long.
    let place = stage.slot();
    stage.pool.retype_many(Kind::Frame, 21, 1, Placement::Watermark, tench::sys::OWN_CSPACE, place)?;
    let many = KERNEL.irq_off_intervals(Operation::UntypedRetype as u64)?;
    let preemptible = KERNEL.query(tench::abi::object::Statistic::Preemptible)? == 1;
    check!(if preemptible { many.count > 100 && many.longest < 2000 } else { many.longest > 10_000 });
    Ok(())
}
