//! How long processes and threads have run.

use core::time::Duration;

use tench_linux_calls::records::rusage;
use tench_linux_files::Errno;

use crate::caller::{Caller, Result};
use crate::process::Process;
use crate::running::RunningClock;
use crate::{Machine, System};

/// Ticks per second of what `times` returns.
const TICKS: u128 = 100;

/// Returns the record of what was used: the time, and zeros for what is not counted.
pub(crate) fn usage_record(used: Duration) -> [u8; rusage::SIZE] {
    let mut record = [0; rusage::SIZE];
    record[rusage::SECONDS..][..8].copy_from_slice(&used.as_secs().to_le_bytes());
    record[rusage::MICROSECONDS..][..8].copy_from_slice(&u64::from(used.subsec_micros()).to_le_bytes());
    record
}

impl<M: Machine> System<M> {
    /// Returns how long a process's threads have run, those that have ended among them.
    pub(crate) fn time_of(&mut self, process: &Process<M>) -> Duration {
        let hardware = &mut self.memory.hardware;
        process.threads.iter().fold(process.used, |sum, thread| sum.saturating_add(hardware.used(&thread.machine)))
    }
}

impl<M: Machine> Caller<'_, M> {
    /// Returns how long the process has run.
    fn own_time(&mut self) -> Duration {
        self.system.time_of(self.process)
    }

    /// Returns how long the thread has run.
    fn thread_time(&mut self) -> Duration {
        self.system.memory.hardware.used(&self.process.thread().machine)
    }

    /// Returns the clock with a number that counts how long a process or a thread of the own process runs.
    pub(crate) fn running_clock(&self, clock: u64) -> Result<RunningClock> {
        const PROCESS: u32 = 2;
        const THREAD: u32 = 3;
        // In the others are a number, inverted, and whether it is a thread's.
        const OF_THREAD: u32 = 4;
        let clock = clock as u32;
        let whose = !(clock.cast_signed() >> 3).cast_unsigned();
        match clock {
            PROCESS => Ok(RunningClock::Process(self.process.id)),
            THREAD => Ok(RunningClock::Thread(self.process.thread().id)),
            _ if clock.cast_signed() >= 0 || clock & 3 == 3 => Err(Errno::EINVAL),
            _ if clock & OF_THREAD != 0 => {
                let thread = if whose == 0 { self.process.thread().id } else { whose };
                self.process.index_of(thread).map(|_| RunningClock::Thread(thread)).map_err(|_| Errno::EINVAL)
            }
            _ if whose == 0 || whose == self.process.id => Ok(RunningClock::Process(self.process.id)),
            _ => self.others.find(whose).map(|_| RunningClock::Process(whose)).ok_or(Errno::EINVAL),
        }
    }

    /// Returns the reading of a clock that counts how long a process or a thread has run.
    pub(crate) fn running_time(&mut self, clock: u64) -> Result<Duration> {
        let clock = self.running_clock(clock)?;
        self.system.reading(clock, self.process, self.others).ok_or(Errno::EINVAL)
    }

    /// Reads what the process, its children or the thread have used.
    pub fn getrusage(&mut self, who: u64, into: u64) -> Result {
        const SELF: i32 = 0;
        const CHILDREN: i32 = -1;
        const THREAD: i32 = 1;
        let used = match (who as u32).cast_signed() {
            SELF => self.own_time(),
            CHILDREN => self.process.children_used,
            THREAD => self.thread_time(),
            _ => return Err(Errno::EINVAL),
        };
        self.write(into, &usage_record(used)).map(|()| 0)
    }

    /// Reads how long the process and its children have run. Returns the time in ticks.
    pub fn times(&mut self, into: u64) -> Result {
        let ticks = |time: Duration| (time.as_millis() * TICKS / 1000) as u64;
        let (own, children) = (self.own_time(), self.process.children_used);
        self.write_if_wanted(into, &[ticks(own), 0, ticks(children), 0].map(u64::to_le_bytes).concat())?;
        Ok(ticks(self.system.memory.hardware.monotonic()))
    }
}
