//! Timers that count the CPU time of a process or a thread, and the limit of CPU time.
//!
//! No clock tells when a thread will have used so much CPU time. All such timers of a process are checked at the time
//! when the first could be due at the earliest, and if it is not, again when it could be due then.

use alloc::collections::BTreeMap;
use core::time::Duration;

use crate::limits::{Limit, resource};
use crate::process::{Process, SignalTimer, Timer};
use crate::processes::Processes;
use crate::signals::{Info, number};
use crate::waiting::Alarm;
use crate::{Machine, System};

/// The shortest time between two checks, as long as the tick of Linux's clock, at which Linux checks.
pub const LOOK: Duration = Duration::from_millis(4);

/// So many threads make the time between two looks longer by the shortest one.
const THREADS_PER_LOOK: u32 = 16;

/// Signals of the two timers that every process has.
const SIGNALS: [u32; 2] = [number::VTALRM, number::PROF];

/// A clock that counts how long something runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunningClock {
    /// All threads of a process.
    Process(u32),
    /// A thread of the process whose clock it is.
    Thread(u32),
}

/// The CPU-time timers that every process has, and when all of its CPU-time timers are checked.
#[derive(Debug, Default)]
pub struct RunningTimers {
    /// `ITIMER_VIRTUAL` and `ITIMER_PROF`, which are due at a CPU time of the process.
    pub timers: [Option<Timer>; 2],
    /// When the timers and the limit of the process are checked: time since the machine started.
    pub look: Option<Duration>,
}

impl<M: Machine> System<M> {
    /// Returns the reading of a clock; nothing if its process or thread has ended. `own` is not among the others.
    pub(crate) fn reading(&mut self, clock: RunningClock, own: &Process<M>, others: &Processes<M>) -> Option<Duration> {
        match clock {
            RunningClock::Process(id) => {
                let process = if id == own.id { own } else { others.find(id)? };
                (!process.has_ended()).then(|| self.time_of(process))
            }
            RunningClock::Thread(id) => Some(self.memory.hardware.used(&own.thread_of(id)?.machine)),
        }
    }

    /// Has the timers and the limit of a process checked soon, since they have changed.
    pub(crate) fn look_soon(&mut self, process: &mut Process<M>) {
        let soon = self.memory.hardware.monotonic().saturating_add(LOOK);
        // A look that is due is not put off.
        let next = process.running.look.map_or(soon, |look| look.min(soon));
        let before = process.running.look.replace(next);
        self.waiters.set_alarm(Alarm::Look, process.id, before, Some(next));
    }

    /// Sets when the timers of a process are checked again. Each check asks how long each of its threads has run, so a
    /// process with many threads is checked less often.
    fn look_after(&mut self, process: &mut Process<M>, time: Option<Duration>) {
        let now = self.memory.hardware.monotonic();
        let shortest = LOOK * (1 + process.threads.len() as u32 / THREADS_PER_LOOK);
        let next = time.map(|time| now.saturating_add(time.max(shortest)));
        let before = core::mem::replace(&mut process.running.look, next);
        self.waiters.set_alarm(Alarm::Look, process.id, before, next);
    }

    /// Checks the timers and the limit of a process, and sends the signals that are due.
    pub(crate) fn look(&mut self, process: &mut Process<M>, others: &Processes<M>) {
        let used = self.time_of(process);
        let (of_timers, of_limit) = (self.pass_intervals(process, used), self.pass_limit(process, used));
        let mut left = of_timers.into_iter().chain(of_limit).min();
        // Each process is asked once, however many timers count it.
        let mut readings = BTreeMap::from([(process.id, Some(used))]);
        let set = |(id, timer): (&u32, &SignalTimer)| Some((*id, timer.clock.filter(|_| timer.timer.next.is_some())?));
        let mut next = 0;
        while let Some((id, clock)) = process.timers.range(next..).find_map(set) {
            next = id + 1;
            let reading = match clock {
                RunningClock::Process(whose) => {
                    *readings.entry(whose).or_insert_with(|| self.reading(clock, process, others))
                }
                RunningClock::Thread(_) => self.reading(clock, process, others),
            };
            if let Some(reading) = reading {
                self.sound_timer(process, id, reading);
                let due = process.timers.get(&id).and_then(|timer| timer.timer.next);
                left = due.map(|due| due.saturating_sub(reading)).into_iter().chain(left).min();
            }
        }
        self.look_after(process, left);
    }

    /// Sends the signals of the interval timers that are due. Returns how much CPU time is left until the next.
    fn pass_intervals(&mut self, process: &mut Process<M>, used: Duration) -> Option<Duration> {
        for (index, signal) in SIGNALS.into_iter().enumerate() {
            if let Some(timer) = process.running.timers[index].filter(|timer| timer.deadline <= used) {
                process.running.timers[index] = timer.after(used);
                self.send(process, Info::from_system(signal));
            }
        }
        process.running.timers.iter().flatten().map(|timer| timer.deadline.saturating_sub(used)).min()
    }

    /// Sends the signal of the CPU limit if it is due. Returns how much CPU time is left until the next.
    fn pass_limit(&mut self, process: &mut Process<M>, used: Duration) -> Option<Duration> {
        let Limit { soft, hard } = process.limits.of(resource::CPU);
        if used.as_secs() >= hard {
            self.send(process, Info::from_system(number::KILL));
            return None;
        }
        if used.as_secs() >= soft {
            self.send(process, Info::from_system(number::XCPU));
            // As on Linux, which sends the signal again after each further second.
            process.limits.set(resource::CPU, Limit { soft: soft + 1, hard });
        }
        let next = process.limits.of(resource::CPU).soft.min(hard);
        (next != u64::MAX).then(|| Duration::from_secs(next).saturating_sub(used))
    }
}
