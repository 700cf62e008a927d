//! I/O priorities: they are recorded and inherited, and have no effect, since files are in memory.

use tench_linux_calls::numbers::{capability, io_priority, schedule};
use tench_linux_files::Errno;

use crate::Machine;
use crate::caller::{Caller, Result};
use crate::thread::Thread;

/// Names one thread.
const THREAD: u64 = 1;

/// Returns the class of a priority.
fn class(priority: u32) -> u32 {
    priority >> io_priority::SHIFT & io_priority::CLASSES
}

/// Fails if a priority does not exist.
fn check(priority: u32) -> Result<()> {
    let number = priority & ((1 << io_priority::SHIFT) - 1);
    let is_allowed = match class(priority) {
        io_priority::REAL_TIME | io_priority::BEST_EFFORT => number < io_priority::LEVELS,
        io_priority::IDLE => true,
        io_priority::NONE => number == 0,
        _ => false,
    };
    if is_allowed { Ok(()) } else { Err(Errno::EINVAL) }
}

/// Returns the priority that a thread has: if none was set, the one that follows from how it is scheduled.
fn effective<M: Machine>(thread: &Thread<M>) -> u32 {
    let wanted = u32::from(thread.io_priority);
    if class(wanted) != io_priority::NONE {
        return wanted;
    }
    let class = match thread.scheduling.policy {
        schedule::IDLE => io_priority::IDLE,
        schedule::FIFO | schedule::RR => io_priority::REAL_TIME,
        _ => io_priority::BEST_EFFORT,
    };
    let level = (thread.nice + 20).cast_unsigned() / 5;
    class << io_priority::SHIFT | level
}

impl<M: Machine> Caller<'_, M> {
    /// Sets the priorities of threads: of one, of a group's, or of a user's.
    pub(crate) fn ioprio_set(&mut self, which: u64, who: u64, priority: u64) -> Result {
        check(priority as u32)?;
        let own = self.identity().clone();
        let is_privileged = own.has(capability::SYS_NICE);
        if class(priority as u32) == io_priority::REAL_TIME && !is_privileged && !own.has(capability::SYS_ADMIN) {
            return Err(Errno::EPERM);
        }
        // `IOPRIO_WHO_PROCESS` is 1, where `PRIO_PROCESS` of `setpriority` is 0.
        let which = (which as u32).wrapping_sub(THREAD as u32);
        self.for_each_thread(which.into(), who, |_, thread| {
            if !is_privileged && !own.is_owner_of(&thread.identity) {
                return Err(Errno::EPERM);
            }
            thread.io_priority = priority as u16;
            Ok(())
        })?;
        Ok(0)
    }

    /// Returns the priority that a thread wants, or the best that several have.
    pub(crate) fn ioprio_get(&mut self, which: u64, who: u64) -> Result {
        let is_one = which as u32 == THREAD as u32;
        let which = (which as u32).wrapping_sub(THREAD as u32);
        let mut best = u32::MAX;
        self.for_each_thread(which.into(), who, |_, thread| {
            best = best.min(if is_one { thread.io_priority.into() } else { effective(thread) });
            Ok(())
        })?;
        Ok(best.into())
    }
}
