//! The kernel as an object: power, early output, statistics, and the other cores.
//!
//! The module [`syscall`] says what a kernel capability permits.

use tench_abi::object::Statistic;
use tench_abi::{Error, Powers, Rights};

use crate::object::Ref;
use crate::preemption_point::{PREEMPTIBLE, Passed};
use crate::syscall::{Outcome, argument};
use crate::thread::Thread;
use crate::{Arch, Kernel, latency_tracer, preemption_point, scheduler, syscall};

/// Checks the kernel capability that `x0` names. Returns its badge.
///
/// # Errors
/// `MissingRights` if it lacks one of `rights`, or has a badge with none of `powers`; those of [`syscall::slot_at`].
fn authority<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, rights: Rights, powers: Powers) -> Result<u64, Error> {
    let address = argument(k, thread, 0);
    syscall::permitted(k, address, rights, powers)
}

/// Performs `KernelPowerOff`.
pub fn power_off<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    authority(k, thread, Rights::WRITE, Powers::POWER)?;
    let status = argument(k, thread, 1) as u8;
    k.arch().power_off(status)
}

/// Bytes printed between two preemption points.
const PRINT_STEP: usize = 16;

/// Performs `KernelPrint`. Contains preemption points.
pub fn print<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    authority(k, thread, Rights::WRITE, Powers::empty())?;
    let length = argument(k, thread, 1);
    if length > 64 {
        return Err(Error::InvalidArgument);
    }
    let mut i = 0;
    let mut left = PRINT_STEP;
    while i < length as usize {
        if left > 0 && k.arch().can_print() {
            let byte = (argument(k, thread, 2 + i / 8) >> (i % 8 * 8)) as u8;
            k.arch().print(byte);
            i += 1;
            left -= 1;
            continue;
        }
        // Also passed while the device is busy, for as long as that lasts.
        match preemption_point::pass(k) {
            Passed::Undisturbed => {}
            Passed::Disturbed => authority(k, thread, Rights::WRITE, Powers::empty()).map(|_| ())?,
            Passed::Deleted => return Ok(Outcome::Written),
        }
        left = PRINT_STEP;
    }
    Ok(Outcome::Done)
}

/// Performs `KernelQuery`.
pub fn query<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    authority(k, thread, Rights::READ, Powers::COUNTERS)?;
    let Some(which) = Statistic::from_code(argument(k, thread, 1)) else { return Err(Error::InvalidArgument) };
    if which == Statistic::DeepestStack {
        let Some(depth) = crate::thread::stack_depth(k, |_| Ok(thread))? else { return Ok(Outcome::Written) };
        let s = &mut k.state().statistics;
        s.deepest_stack = s.deepest_stack.max(depth);
    }
    scheduler::charge(k);
    let instructions = k.arch().instructions();
    let s = &k.state().statistics;
    let value = match which {
        Statistic::DeepestStack => s.deepest_stack,
        Statistic::PreemptionPoints => s.preemption_points,
        Statistic::Preemptions => s.preemptions,
        Statistic::Interrupts => s.interrupts,
        Statistic::Switches => s.switches,
        Statistic::Preemptible => u64::from(PREEMPTIBLE),
        Statistic::BootInstructions => s.boot_instructions,
        Statistic::IdleTicks => s.idle_ticks,
        // `deepest_nesting` counts only nested interrupts, so a single one is added here.
        Statistic::DeepestNesting => u64::from(s.deepest_nesting).max(s.interrupts.min(1)),
        Statistic::NestedInterrupts => s.nested_interrupts,
        Statistic::Instructions => instructions,
    };
    Ok(Outcome::results(k, thread, &[value]))
}

/// Performs `KernelCounters`.
pub fn counters<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    authority(k, thread, Rights::WRITE, Powers::COUNTERS)?;
    let readable = match argument(k, thread, 1) {
        0 => false,
        1 => true,
        _ => return Err(Error::InvalidArgument),
    };
    k.arch().let_count(readable);
    Ok(Outcome::Done)
}

/// Performs `KernelMachine`.
pub fn machine<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let badge = authority(k, thread, Rights::READ, Powers::all())?;
    let (tree, size) = if badge == 0 { k.state().device_tree } else { (0, 0) };
    let results = [k.arch().cores(), k.arch().core(), tree, size];
    Ok(Outcome::results(k, thread, &results))
}

/// Performs `KernelStartCore`.
pub fn start_core<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    authority(k, thread, Rights::WRITE, Powers::empty())?;
    let [core, image, boot] = core::array::from_fn(|i| argument(k, thread, i + 1));
    if core >= k.arch().cores() {
        return Err(Error::NoSuchCore);
    }
    k.arch().start_core(core, image, boot)?;
    Ok(Outcome::Done)
}

/// Performs `KernelCorePower`.
pub fn core_power<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    authority(k, thread, Rights::READ, Powers::CORES)?;
    let core = argument(k, thread, 1);
    if core >= k.arch().cores() {
        return Err(Error::NoSuchCore);
    }
    let power = k.arch().core_power(core)?;
    Ok(Outcome::results(k, thread, &[power as u64]))
}

/// Performs `KernelIrqOff`.
pub fn irq_off_intervals<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    authority(k, thread, Rights::READ, Powers::COUNTERS)?;
    if !latency_tracer::MEASURING {
        return Err(Error::Unsupported);
    }
    let path = argument(k, thread, 1);
    let results = latency_tracer::results(k, path).ok_or(Error::InvalidArgument)?;
    Ok(Outcome::results(k, thread, &results))
}
