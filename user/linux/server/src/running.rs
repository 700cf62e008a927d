//! Timers that count how long a process or a thread runs, and the limit of that.
//!
//! No clock tells when a thread will have run for so long. All such timers of a process are looked at as soon as the
//! first could be due, and again when it could be due then.

use core::time::Duration;

use crate::limits::{Limit, resource};
use crate::process::{Process, Timer};
use crate::processes::Processes;
use crate::signals::{Info, number};
use crate::waiting::Alarm;
use crate::{Machine, System};

/// The shortest time between two looks. Linux looks at each tick of its clock; these are as far apart.
pub const LOOK: Duration = Duration::from_millis(4);

/// Signals of the two timers that every process has.
const SIGNALS: [u32; 2] = [number::VTALRM, number::PROF];

/// A clock that counts how long something runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunningClock {
    /// All threads of a process.
    Process(u32),
    /// A thread.
    Thread(u32),
}

/// The timers that every process has, and when all that count are looked at.
#[derive(Debug, Default)]
pub struct RunningTimers {
    /// `ITIMER_VIRTUAL` and `ITIMER_PROF`, which are due when the process will have run for so long.
    pub timers: [Option<Timer>; 2],
    /// When the timers and the limit of the process are looked at: time since the machine started.
    pub look: Option<Duration>,
}

impl<M: Machine> System<M> {
    /// Returns the reading of a clock for a process, which is not among the others; nothing if what it counts has ended.
    pub(crate) fn reading(&mut self, clock: RunningClock, own: &Process<M>, others: &Processes<M>) -> Option<Duration> {
        match clock {
            RunningClock::Process(id) => {
                let process = if id == own.id { own } else { others.find(id)? };
                (!process.has_ended()).then(|| self.time_of(process))
            }
            RunningClock::Thread(id) => {
                let process = if own.index_of(id).is_ok() { own } else { others.find(others.owner(id)?)? };
                Some(self.memory.hardware.used(&process.thread_of(id)?.machine))
            }
        }
    }

    /// Lets the timers and the limit of a process be looked at soon, since they have changed.
    pub(crate) fn look_soon(&mut self, process: &mut Process<M>) {
        self.look_after(process, Some(LOOK));
    }

    fn look_after(&mut self, process: &mut Process<M>, time: Option<Duration>) {
        let now = self.memory.hardware.monotonic();
        let next = time.map(|time| now.saturating_add(time.max(LOOK)));
        let before = core::mem::replace(&mut process.running.look, next);
        self.waiters.set_alarm(Alarm::Look, process.id, before, next);
    }

    /// Looks at the timers and the limit of a process: what is due is told by signals.
    pub(crate) fn look(&mut self, process: &mut Process<M>, others: &Processes<M>) {
        let used = self.time_of(process);
        let (of_timers, of_limit) = (self.pass_intervals(process, used), self.pass_limit(process, used));
        let mut left = of_timers.into_iter().chain(of_limit).min();
        let mut next = 0;
        while let Some((id, clock)) = process.timers.range(next..).find_map(|(id, timer)| Some((*id, timer.clock?))) {
            next = id + 1;
            if let Some(reading) = self.reading(clock, process, others) {
                self.sound_timer(process, id, reading);
                let due = process.timers.get(&id).and_then(|timer| timer.timer.next);
                left = due.map(|due| due.saturating_sub(reading)).into_iter().chain(left).min();
            }
        }
        self.look_after(process, left);
    }

    /// Lets the two timers of a process that has run for so long be due. Returns after how long one can be again.
    fn pass_intervals(&mut self, process: &mut Process<M>, used: Duration) -> Option<Duration> {
        for (index, signal) in SIGNALS.into_iter().enumerate() {
            if let Some(timer) = process.running.timers[index].filter(|timer| timer.deadline <= used) {
                process.running.timers[index] = timer.after(used);
                self.send(process, Info::from_system(signal));
            }
        }
        process.running.timers.iter().flatten().map(|timer| timer.deadline.saturating_sub(used)).min()
    }

    /// Tells a process that has run for so long whether that is more than it may. Returns after how long it can be.
    fn pass_limit(&mut self, process: &mut Process<M>, used: Duration) -> Option<Duration> {
        let Limit { soft, hard } = process.limits.of(resource::CPU);
        if used.as_secs() >= hard {
            self.send(process, Info::from_system(number::KILL));
            return None;
        }
        if used.as_secs() >= soft {
            self.send(process, Info::from_system(number::XCPU));
            // As Linux, which tells it again after each further second.
            process.limits.set(resource::CPU, Limit { soft: soft + 1, hard });
        }
        let next = process.limits.of(resource::CPU).soft.min(hard);
        (next != u64::MAX).then(|| Duration::from_secs(next).saturating_sub(used))
    }
}
