//! Timers that send signals.

use core::time::Duration;

use tench_linux_calls::records::{sigevent, timespec, u32_at, u64_at};
use tench_linux_files::Errno;

use crate::caller::{Caller, Result};
use crate::process::{Process, SignalTimer};
use crate::signals::{Cause, Info, SIGNALS, number};
use crate::specials::Timer;
use crate::waiting::Alarm;
use crate::{Machine, System};

/// The most timers of a process.
const MAX: usize = 1024;

/// Ways to tell that a timer is due.
mod notify {
    pub const SIGNAL: u32 = 0;
    pub const NONE: u32 = 1;
    /// A signal, too: the C library does the rest.
    pub const THREAD: u32 = 2;
    pub const THREAD_ID: u32 = 4;
}

impl<M: Machine> Caller<'_, M> {
    /// Makes a timer, which is not set yet, and writes its number.
    pub fn timer_create(&mut self, clock: u64, event: u64, into: u64) -> Result {
        let (is_realtime, clock) = match clock as u32 {
            0 | 8 | 11 => (true, None),
            1 | 7 | 9 => (false, None),
            // Clocks that have no timers, and those of files.
            4..=6 => return Err(Errno::EOPNOTSUPP),
            other if other.cast_signed() < 0 && other & 7 == 3 => return Err(Errno::EOPNOTSUPP),
            other if other.cast_signed() < 0 || matches!(other, 2 | 3) => (false, Some(self.running_clock(clock))),
            _ => return Err(Errno::EINVAL),
        };
        if self.process.timers.len() >= MAX {
            return Err(Errno::EAGAIN);
        }
        // As Linux, which uses each number only once, whatever comes of it.
        let id = self.process.next_timer;
        if self.process.timers.contains_key(&id) {
            return Err(Errno::EAGAIN);
        }
        self.process.next_timer = id.wrapping_add(1);
        let (signal, thread) = self.read_event(event, id)?;
        self.write(into, &id.to_le_bytes())?;
        let clock = clock.transpose()?;
        let name = self.system.timers.add(self.process.id, id);
        let timer = Timer::unset(is_realtime);
        self.process.timers.insert(id, SignalTimer { name, clock, timer, signal, thread, overrun: 0 });
        Ok(0)
    }

    /// Reads which signal a timer sends, if it sends one, and to which thread.
    fn read_event(&mut self, event: u64, id: u32) -> Result<(Option<Info>, Option<u32>)> {
        const BY_TIMER: i32 = -2;
        let signal = |signal, value| Info { signal, code: BY_TIMER, cause: Cause::Timer { id, value } };
        if event == 0 {
            return Ok((Some(signal(number::ALRM, id.into())), None));
        }
        let record: [u8; sigevent::USED] = self.read_record(event)?;
        let value = u64_at(&record, sigevent::VALUE);
        let wanted = u32_at(&record, sigevent::SIGNAL);
        let thread = u32_at(&record, sigevent::THREAD);
        let is_signal = (1..=SIGNALS as u32).contains(&wanted);
        match u32_at(&record, sigevent::NOTIFY) {
            notify::NONE => Ok((None, None)),
            notify::SIGNAL | notify::THREAD if is_signal => Ok((Some(signal(wanted, value)), None)),
            notify::THREAD_ID if is_signal && self.process.index_of(thread).is_ok() => {
                Ok((Some(signal(wanted, value)), Some(thread)))
            }
            _ => Err(Errno::EINVAL),
        }
    }

    fn signal_timer(&mut self, id: u64) -> Result<&mut SignalTimer> {
        self.process.timers.get_mut(&(id as u32)).ok_or(Errno::EINVAL)
    }

    /// Returns the reading of a timer's clock.
    fn time_for(&mut self, id: u64) -> Result<Duration> {
        match self.signal_timer(id)?.clock {
            None => Ok(self.system.memory.hardware.monotonic()),
            Some(clock) => self.system.reading(clock, self.process, self.others).ok_or(Errno::ESRCH),
        }
    }

    /// Sets when a timer is due, and reads when that was so far.
    pub fn timer_settime(&mut self, id: u64, flags: u64, new: u64, old: u64) -> Result {
        const ABSOLUTE: u64 = 1;
        if new == 0 {
            return Err(Errno::EINVAL);
        }
        let (interval, first) = (self.read_time(new)?, self.read_time(new.wrapping_add(timespec::SIZE as u64))?);
        let realtime = self.system.date();
        let now = self.time_for(id)?;
        let signal_timer = self.signal_timer(id)?;
        let before = signal_timer.timer;
        let shown = if before.is_realtime { realtime } else { now };
        let left = if flags & ABSOLUTE != 0 { first.saturating_sub(shown) } else { first };
        let next = (!first.is_zero()).then(|| now.saturating_add(left));
        let is_by_date = before.is_realtime && flags & ABSOLUTE != 0;
        signal_timer.timer = Timer { next, interval, count: 0, skipped: 0, is_by_date, ..before };
        signal_timer.overrun = 0;
        if signal_timer.clock.is_some() {
            self.system.look_soon(self.process);
        } else {
            let name = signal_timer.name;
            self.system.waiters.set_alarm(Alarm::SignalTimer, name, before.next, next);
        }
        self.write_times(old, &before, now)
    }

    /// Reads when a timer is due.
    pub fn timer_gettime(&mut self, id: u64, into: u64) -> Result {
        let now = self.time_for(id)?;
        let timer = self.signal_timer(id)?.timer;
        if into == 0 {
            return Err(Errno::EFAULT);
        }
        self.write_times(into, &timer, now)
    }

    /// Returns how often a timer was due while its last signal had not been taken.
    pub fn timer_getoverrun(&mut self, id: u64) -> Result {
        Ok(self.signal_timer(id)?.overrun.min(i32::MAX as u64))
    }

    /// Ends a timer.
    pub fn timer_delete(&mut self, id: u64) -> Result {
        let timer = self.process.timers.remove(&(id as u32)).ok_or(Errno::EINVAL)?;
        self.system.end_timer(&timer);
        Ok(0)
    }
}

impl<M: Machine> System<M> {
    fn end_timer(&mut self, timer: &SignalTimer) {
        self.waiters.set_alarm(Alarm::SignalTimer, timer.name, timer.timer.next, None);
        self.timers.remove(timer.name);
    }

    /// Ends all timers of a process.
    pub(crate) fn end_timers(&mut self, process: &mut Process<M>) {
        for timer in core::mem::take(&mut process.timers).into_values() {
            self.end_timer(&timer);
        }
    }

    /// Sends the signal of a process's timer that is due, unless that has not been taken since it was last due.
    pub(crate) fn sound_timer(&mut self, process: &mut Process<M>, id: u32, now: Duration) {
        let is_pending = process.has_timer_signal(id);
        let Some(signal_timer) = process.timers.get_mut(&id) else { return };
        signal_timer.timer.pass(now);
        let count = core::mem::take(&mut signal_timer.timer.count);
        let (name, is_alarm) = (signal_timer.name, signal_timer.clock.is_none());
        let next = signal_timer.timer.next.filter(|_| is_alarm);
        if count == 0 {
            return;
        }
        if is_pending {
            signal_timer.overrun += count;
        } else {
            signal_timer.overrun = count.saturating_sub(1);
        }
        let (signal, thread) = (signal_timer.signal.filter(|_| !is_pending), signal_timer.thread);
        self.waiters.set_alarm(Alarm::SignalTimer, name, None, next);
        let index = thread.map(|thread| process.index_of(thread));
        match (signal, index) {
            (Some(signal), None) => self.send(process, signal),
            (Some(signal), Some(Ok(index))) => self.send_to(process, signal, Some(index)),
            // The thread has ended.
            (Some(_), Some(Err(_))) | (None, _) => {}
        }
    }
}
