//! Calls about time.

use alloc::vec::Vec;
use core::time::Duration;

use tench_linux_calls::numbers::capability;
use tench_linux_calls::records::{timespec, u64_at};
use tench_linux_files::Errno;

use crate::Machine;
use crate::caller::{Caller, Result};
use crate::process::Timer;
use crate::running::{LOOK, RunningClock};
use crate::waiting::Interruption;

/// The clock that shows the date.
pub(super) const REALTIME: u32 = 0;
/// The clock that counts from the machine's start.
const MONOTONIC: u64 = 1;

/// The clock that counts how long the calling thread runs.
const OWN_THREAD: u32 = 3;

/// Timers of a process: by the time that passes, and two by the time that the process runs.
const REAL: u32 = 0;
const VIRTUAL: u32 = 1;
const PROFILE: u32 = 2;

/// Returns the time in a record of seconds and microseconds.
fn micros(record: &[u8]) -> Result<Duration> {
    let (seconds, micros) = (u64_at(record, 0), u64_at(record, 8));
    if seconds.cast_signed() < 0 || micros >= 1_000_000 {
        return Err(Errno::EINVAL);
    }
    Ok(Duration::from_secs(seconds).saturating_add(Duration::from_micros(micros)))
}

/// Returns the record of a time.
pub(crate) fn record(time: Duration) -> [u8; 16] {
    let mut record = [0; timespec::SIZE];
    record[..8].copy_from_slice(&time.as_secs().to_le_bytes());
    record[8..].copy_from_slice(&u64::from(time.subsec_nanos()).to_le_bytes());
    record
}

impl<M: Machine> Caller<'_, M> {
    /// Returns the reading of a clock.
    #[inline]
    fn clock(&mut self, clock: u64) -> Result<Duration> {
        match clock as u32 {
            REALTIME | 5 | 8 | 11 => Ok(self.system.date()),
            1 | 4 | 6 | 7 | 9 => Ok(self.system.memory.hardware.monotonic()),
            _ => self.running_time(clock),
        }
    }

    /// Sets the clock with the date, as it is for this instance. What is to happen at a date happens by the new one.
    pub fn clock_settime(&mut self, clock: u64, time: u64) -> Result {
        let time = self.read_time(time)?;
        if clock as u32 != REALTIME {
            return Err(Errno::EINVAL);
        }
        self.check_date(time)?;
        if !self.identity().has(capability::SYS_TIME) {
            return Err(Errno::EPERM);
        }
        self.set_date(time).map(|()| 0)
    }

    /// Returns the date of the machine's start if `time` is the present date. As on Linux, a date less than the time
    /// since the start is refused.
    fn check_date(&self, time: Duration) -> Result<Duration> {
        time.checked_sub(self.system.memory.hardware.monotonic()).ok_or(Errno::EINVAL)
    }

    /// Sets the real-time clock.
    pub(super) fn set_date(&mut self, time: Duration) -> Result<()> {
        let now = self.system.memory.hardware.monotonic();
        let start = self.check_date(time)?;
        let before = self.system.date();
        self.system.date_at_start = Some(start);
        let moved = |due: Duration| due.saturating_add(before).saturating_sub(time).max(now);
        for process in self.others.iter_mut().chain([&mut *self.process]) {
            self.system.move_timers(process, moved);
        }
        self.system.move_date_timers(moved);
        Ok(())
    }

    /// Returns the reading of a clock.
    pub(super) fn read_clock(&mut self, clock: u64) -> Result<Duration> {
        self.clock(clock)
    }

    /// Reads a clock.
    pub fn clock_gettime(&mut self, clock: u64, into: u64) -> Result {
        let time = self.clock(clock)?;
        self.write(into, &record(time)).map(|()| 0)
    }

    /// Reads the resolution of a clock.
    pub fn clock_getres(&mut self, clock: u64, into: u64) -> Result {
        self.clock(clock)?;
        let is_coarse = clock == 5 || clock == 6;
        let resolution = Duration::from_nanos(if is_coarse { 4_000_000 } else { 1 });
        self.write_if_wanted(into, &record(resolution)).map(|()| 0)
    }

    /// Reads the time of day.
    pub fn gettimeofday(&mut self, into: u64, zone: u64) -> Result {
        let now = self.system.date();
        let words = [now.as_secs(), now.subsec_micros().into()];
        self.write_if_wanted(into, &words.map(u64::to_le_bytes).concat())?;
        self.write_if_wanted(zone, &[0; 8]).map(|()| 0)
    }

    /// Reads a span of time.
    pub(crate) fn read_time(&mut self, address: u64) -> Result<Duration> {
        let record: [u8; timespec::SIZE] = self.read_record(address)?;
        let (seconds, nanoseconds) = (u64_at(&record, timespec::SECONDS), u64_at(&record, timespec::NANOSECONDS));
        if seconds.cast_signed() < 0 || nanoseconds >= 1_000_000_000 {
            return Err(Errno::EINVAL);
        }
        Ok(Duration::new(seconds, nanoseconds as u32))
    }

    /// Returns until when a call waits: since its first attempt for so long, or for ever without a time.
    pub(crate) fn read_deadline(&mut self, time: u64) -> Result<Option<Duration>> {
        if self.waiting().is_some() {
            return Ok(self.deadline());
        }
        if time == 0 {
            return Ok(None);
        }
        let time = self.read_time(time)?;
        Ok(Some(self.system.memory.hardware.monotonic().saturating_add(time)))
    }

    /// Returns whether the time until which a call waits is over.
    pub(crate) fn has_passed(&self, deadline: Option<Duration>) -> bool {
        deadline.is_some_and(|deadline| deadline <= self.system.memory.hardware.monotonic())
    }

    /// Waits for so long. If a signal ends that, tells how much time was left.
    pub fn nanosleep(&mut self, time: u64, left: u64) -> Result {
        self.clock_nanosleep(MONOTONIC, 0, time, left)
    }

    /// Waits for so long, or until a clock shows a time. If a signal ends that, tells how much time was left.
    pub fn clock_nanosleep(&mut self, clock: u64, flags: u64, time: u64, left: u64) -> Result {
        const ABSOLUTE: u64 = 1;
        let now = self.clock(clock)?;
        if self.counts_running_time(clock) {
            return self.sleep_while_running(clock, flags & ABSOLUTE != 0, time, left);
        }
        if self.waiting().is_none() {
            let time = self.read_time(time)?;
            let time = if flags & ABSOLUTE != 0 { time.saturating_sub(now) } else { time };
            let deadline = self.system.memory.hardware.monotonic().saturating_add(time);
            self.wait(&[], Some(deadline), Interruption::Final);
        }
        let deadline = self.deadline();
        if self.has_passed(deadline) {
            return Ok(0);
        }
        if flags & ABSOLUTE == 0
            && let Some(waiting) = self.waiting_mut()
        {
            waiting.time_left = left;
        }
        let result = self.wait(&[], deadline, Interruption::Final);
        self.wait_by_date(flags & ABSOLUTE != 0 && clock as u32 == REALTIME);
        Err(result)
    }

    /// Returns whether a clock counts how long something runs.
    fn counts_running_time(&self, clock: u64) -> bool {
        matches!(clock as u32, 2 | 3) || (clock as u32).cast_signed() < 0
    }

    /// Waits until a process has run for so long, or until its clock shows a time.
    fn sleep_while_running(&mut self, clock: u64, is_absolute: bool, time: u64, left: u64) -> Result {
        let (own, counted) = (self.process.thread().id, self.running_clock(clock)?);
        if counted == RunningClock::Thread(own) {
            return Err(if clock as u32 == OWN_THREAD { Errno::EOPNOTSUPP } else { Errno::EINVAL });
        }
        let now = self.running_time(clock)?;
        let is_first = self.waiting().is_none();
        let until = if is_first {
            let time = self.read_time(time)?;
            if is_absolute { time } else { now.saturating_add(time) }
        } else {
            self.waiting().and_then(|waiting| waiting.until_run).map_or(now, |(_, until)| until)
        };
        if until <= now {
            return Ok(0);
        }
        let soonest = self.system.memory.hardware.monotonic().saturating_add((until - now).max(LOOK));
        let result = self.wait(&[], Some(soonest), Interruption::Final);
        if let Some(waiting) = self.waiting_mut() {
            waiting.until_run = Some((counted, until));
            waiting.time_left = if is_absolute { 0 } else { left };
        }
        Err(result)
    }

    /// Reads and sets when the process gets a signal.
    pub fn setitimer(&mut self, which: u64, new: u64, old: u64) -> Result {
        let now = self.interval_time(which)?;
        let mut timer = None;
        if new != 0 {
            let record: [u8; 32] = self.read_record(new)?;
            let (interval, first) = (micros(&record)?, micros(&record[16..])?);
            timer = (!first.is_zero()).then(|| Timer { deadline: now.saturating_add(first), interval });
        }
        let before = core::mem::replace(self.interval_timer(which), timer);
        if which as u32 == REAL {
            let [old_time, new_time] = [before, timer].map(|timer| timer.map(|timer| timer.deadline));
            self.system.waiters.set_signal(self.process.id, old_time, new_time);
        } else {
            self.system.look_soon(self.process);
        }
        self.write_timer(old, before, now)
    }

    /// Reads when the process gets a signal.
    pub fn getitimer(&mut self, which: u64, into: u64) -> Result {
        let now = self.interval_time(which)?;
        let timer = *self.interval_timer(which);
        self.write_timer(into, timer, now)
    }

    /// Returns the time that one of the three timers of the process counts.
    fn interval_time(&mut self, which: u64) -> Result<Duration> {
        match which as u32 {
            REAL => Ok(self.system.memory.hardware.monotonic()),
            VIRTUAL | PROFILE => Ok(self.system.time_of(self.process)),
            _ => Err(Errno::EINVAL),
        }
    }

    fn interval_timer(&mut self, which: u64) -> &mut Option<Timer> {
        match which as u32 {
            VIRTUAL => &mut self.process.running.timers[0],
            PROFILE => &mut self.process.running.timers[1],
            _ => &mut self.process.timer,
        }
    }

    fn write_timer(&mut self, into: u64, timer: Option<Timer>, now: Duration) -> Result {
        let (interval, left) = timer.map_or((Duration::ZERO, Duration::ZERO), |timer| {
            // A timer that is set never shows that no time is left.
            let left = timer.deadline.saturating_sub(now).max(Duration::from_micros(1));
            (timer.interval, left)
        });
        let words = [interval, left].map(|time| [time.as_secs(), time.subsec_micros().into()]);
        self.write_if_wanted(
            into,
            &words.as_flattened().iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>(),
        )
        .map(|()| 0)
    }
}
