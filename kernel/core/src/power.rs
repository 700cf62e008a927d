//! The kernel as an object: power, early output, statistics, and the other cores.

use tench_abi::object::Statistic;
use tench_abi::{Error, Kind, Rights};

use crate::entry::{Outcome, argument, capability_slot};
use crate::object::Ref;
use crate::thread::Thread;
use crate::window::PREEMPTIBLE;
use crate::{Arch, Kernel, scheduler, watch, window};

/// `KernelPowerOff`.
pub fn power_off<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    capability_slot(k, thread, Kind::Kernel, Rights::WRITE)?;
    let status = argument(k, thread, 1) as u8;
    k.arch().power_off(status)
}

/// Bytes that are printed between two windows.
const PRINT_STEP: usize = 16;

/// `KernelPrint`. Passes windows.
pub fn print<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    capability_slot(k, thread, Kind::Kernel, Rights::WRITE)?;
    let length = argument(k, thread, 1);
    if length > 64 {
        return Err(Error::InvalidArgument);
    }
    let mut i = 0;
    let mut left = PRINT_STEP;
    while i < length as usize {
        if left > 0 && k.arch().print_has_room() {
            let byte = (argument(k, thread, 2 + i / 8) >> (i % 8 * 8)) as u8;
            k.arch().print(byte);
            i += 1;
            left -= 1;
            continue;
        }
        // Also while the device is busy, for as long as that lasts.
        if !window::pass(k) {
            return Ok(Outcome::Written);
        }
        capability_slot(k, thread, Kind::Kernel, Rights::WRITE)?;
        left = PRINT_STEP;
    }
    Ok(Outcome::Done)
}

/// `KernelQuery`.
pub fn query<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    capability_slot(k, thread, Kind::Kernel, Rights::READ)?;
    let Some(which) = Statistic::from_code(argument(k, thread, 1)) else { return Err(Error::InvalidArgument) };
    if which == Statistic::DeepestStack {
        let Some(depth) = crate::thread::stack_depth(k, |_| Ok(thread))? else { return Ok(Outcome::Written) };
        let s = &mut k.state().statistics;
        s.deepest_stack = s.deepest_stack.max(depth);
    }
    scheduler::charge(k);
    let s = &k.state().statistics;
    let value = match which {
        Statistic::DeepestStack => s.deepest_stack,
        Statistic::Windows => s.windows,
        Statistic::Preemptions => s.preemptions,
        Statistic::Interrupts => s.interrupts,
        Statistic::Switches => s.switches,
        Statistic::Preemptible => u64::from(PREEMPTIBLE),
        Statistic::BootInstructions => s.boot_instructions,
        Statistic::IdleTicks => s.idle_ticks,
        // Only those that interrupt others are counted as such when they come.
        Statistic::DeepestNesting => u64::from(s.deepest_nesting).max(s.interrupts.min(1)),
        Statistic::NestedInterrupts => s.nested_interrupts,
    };
    Ok(Outcome::results(k, thread, &[value]))
}

/// `KernelMachine`.
pub fn machine<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    capability_slot(k, thread, Kind::Kernel, Rights::READ)?;
    let (tree, size) = k.state().device_tree;
    let answer = [k.arch().cores(), k.arch().core(), tree, size];
    Ok(Outcome::results(k, thread, &answer))
}

/// `KernelStartCore`.
pub fn start_core<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    capability_slot(k, thread, Kind::Kernel, Rights::WRITE)?;
    let [core, image, boot] = core::array::from_fn(|i| argument(k, thread, i + 1));
    if core >= k.arch().cores() {
        return Err(Error::NoSuchCore);
    }
    k.arch().start_core(core, image, boot)?;
    Ok(Outcome::Done)
}

/// `KernelCorePower`.
pub fn core_power<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    capability_slot(k, thread, Kind::Kernel, Rights::READ)?;
    let core = argument(k, thread, 1);
    if core >= k.arch().cores() {
        return Err(Error::NoSuchCore);
    }
    let power = k.arch().core_power(core)?;
    Ok(Outcome::results(k, thread, &[power as u64]))
}

/// `KernelStretches`.
pub fn stretches<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    capability_slot(k, thread, Kind::Kernel, Rights::READ)?;
    if !watch::WATCHING {
        return Err(Error::Unsupported);
    }
    let path = argument(k, thread, 1);
    let answer = watch::answer(k, path).ok_or(Error::InvalidArgument)?;
    Ok(Outcome::results(k, thread, &answer))
}
