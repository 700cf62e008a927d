//! The one-shot timer: a thread of the highest priority waits for one deadline after another.

use alloc::string::String;
use alloc::vec::Vec;

use tench::abi::layout::slot;
use tench::memory::{Made, make};
use tench::sys::{Cap, Notification, SchedulingContext};
use tench::time::Instant;
use tench_random::Random;

use super::phase::Phase;
use super::problem;

/// The highest priority that there is.
const HIGHEST: u64 = 255;
/// Samples that do not count: the load reaches its usual pace.
const WARM_UP: usize = 16;

/// Distances of the deadlines.
#[derive(Clone, Copy)]
pub struct Spacing {
    /// Minimum distance of a deadline from when it is set, in ticks of the counter. By then the load has gone on.
    pub least: u64,
    /// Maximum of the random part of the distance.
    pub more: u64,
    /// Number of samples.
    pub samples: usize,
}

/// A reader of something besides the latency in each sample.
pub trait Also {
    /// Called right after the thread has woken, with the deadline.
    fn woken(&mut self, phase: &Phase, deadline: u64) -> Result<(), String>;
}

impl Also for () {
    fn woken(&mut self, _: &Phase, _: u64) -> Result<(), String> {
        Ok(())
    }
}

/// Raises the main thread to the highest priority until dropped.
struct Raised {
    before: (u64, u64, u64),
}

/// Scheduling context of the main thread.
const OWN: Cap<SchedulingContext> = Cap::new(slot::SCHEDULING);

impl Raised {
    fn new() -> Result<Raised, String> {
        let info = OWN.query().map_err(problem("the own scheduling context"))?;
        OWN.configure(HIGHEST, info.ceiling, info.slice, None).map_err(problem("the highest priority"))?;
        Ok(Raised { before: (info.priority, info.ceiling, info.slice) })
    }
}

impl Drop for Raised {
    fn drop(&mut self) {
        let (priority, ceiling, slice) = self.before;
        // This is the priority that the thread had.
        let _ = OWN.configure(priority, ceiling, slice, None);
    }
}

/// Takes samples in the main thread while other threads run at lower priorities. Returns the latencies in instructions,
/// from the deadline to the thread's first instruction after it.
pub fn sample(spacing: Spacing, seed: u64, also: &mut impl Also) -> Result<Vec<u32>, String> {
    // All memory is allocated before the measurement.
    let mut latencies = alloc::vec![0_u32; spacing.samples];
    let timer = make::<Notification>(0).map_err(problem("a notification"))?;
    let mut random = Random::new(seed);
    let _raised = Raised::new()?;
    let mut one = || -> Result<(u64, u64), String> {
        let deadline = Instant::now().ticks() + spacing.least + random.below(spacing.more);
        Ok((deadline, wait_until(&timer, deadline)?))
    };
    for _ in 0..WARM_UP {
        one()?;
    }
    let phase = Phase::find().ok_or("the counters are not tied to each other")?;
    for latency in &mut latencies {
        let (deadline, count) = one()?;
        *latency = phase.latency(deadline, count);
        also.woken(&phase, deadline)?;
    }
    // If the machine had idled, time would be ahead of the instructions now.
    if Phase::find() == Some(phase) { Ok(latencies) } else { Err("the machine has slept, or was stopped".into()) }
}

/// A pause in which other threads run.
pub struct Pause(Made<Notification>);

impl Pause {
    /// Allocates all that is needed, so that the pause itself makes nothing.
    pub fn new() -> Result<Pause, String> {
        Ok(Pause(make::<Notification>(0).map_err(problem("a notification"))?))
    }

    /// Lets other threads run for `ticks`.
    pub fn pass(&self, ticks: u64) -> Result<(), String> {
        wait_until(&self.0, Instant::now().after(ticks).ticks()).map(|_| ())
    }
}

/// Waits until a deadline in ticks. Returns the count of retired instructions, read by the first instruction after the
/// wait.
fn wait_until(timer: &Made<Notification>, deadline: u64) -> Result<u64, String> {
    let (code, count) = wait_and_count(timer.cap(), deadline);
    if code == tench::abi::Error::TimedOut as u64 {
        Ok(count)
    } else {
        Err("a wait did not end at its deadline".into())
    }
}

/// Waits, and returns the error's code and the count.
#[cfg(all(target_arch = "aarch64", target_os = "none"))]
fn wait_and_count(timer: Cap<Notification>, deadline: u64) -> (u64, u64) {
    use tench::abi::{Operation, Tag};

    let (code, count): (u64, u64);
    // SAFETY: a receive from a notification changes no memory of the program. The registers are declared as the kernel
    // treats them: results, or cleared, or preserved; `x13` is read into after it has been cleared.
    unsafe {
        core::arch::asm!(
            "svc #1",
            "mrs x13, pmevcntr0_el0",
            inlateout("x0") u64::from(timer.address().0) => code,
            inlateout("x1") Tag::DEADLINE => _,
            inlateout("x10") Operation::Receive as u64 => _,
            inlateout("x11") 0_u64 => _,
            inlateout("x12") deadline => _,
            lateout("x2") _,
            lateout("x3") _,
            lateout("x4") _,
            lateout("x5") _,
            lateout("x6") _,
            lateout("x7") _,
            lateout("x8") _,
            lateout("x9") _,
            lateout("x13") count,
            lateout("x14") _,
            lateout("x15") _,
            lateout("x16") _,
            lateout("x17") _,
            lateout("x18") _,
            options(nostack)
        );
    }
    (code, count)
}

/// Returns nothing useful: on the host there is no kernel.
#[cfg(not(all(target_arch = "aarch64", target_os = "none")))]
fn wait_and_count(_: Cap<Notification>, _: u64) -> (u64, u64) {
    (0, 0)
}
