//! Counters, timers and signals with descriptors.

use core::time::Duration;

use tench_linux_calls::numbers::open;
use tench_linux_calls::records::{signalfd_siginfo, timespec};
use tench_linux_files::{Errno, Kind, NodeId};

use crate::Machine;
use crate::caller::{Caller, Result};
use crate::descriptors::Descriptor;
use crate::signals::{Cause, Info};
use crate::specials::{Counter, Special, Timer};
use crate::waiting::{Alarm, Interruption, Key};

/// Size of a counter's value in bytes.
const NUMBER: usize = 8;
/// Size of the times of a timer in bytes: interval and first time.
const TIMES: usize = 2 * timespec::SIZE;

impl<M: Machine> Caller<'_, M> {
    /// Opens something without a name. Returns its descriptor.
    pub(crate) fn add_special(&mut self, special: Special, flags: u32, closes_on_exec: bool) -> Result {
        self.system.update_time();
        let number = self.system.specials.add(special);
        let node = self.system.tree.make_special(number);
        self.own(node);
        let description = self.system.open(node, flags);
        self.add_descriptor(Descriptor { description, closes_on_exec }, 0)
    }

    /// Makes a counter of events.
    pub fn eventfd2(&mut self, value: u64, flags: u64) -> Result {
        const SEMAPHORE: u32 = 1;
        let flags = flags as u32;
        if flags & !(SEMAPHORE | open::CLOEXEC | open::NONBLOCK) != 0 {
            return Err(Errno::EINVAL);
        }
        let counter = Counter { value: value as u32 as u64, counts_down: flags & SEMAPHORE != 0 };
        let kept = open::RDWR | flags & open::NONBLOCK;
        self.add_special(Special::Counter(counter), kept, flags & open::CLOEXEC != 0)
    }

    /// Makes a timer.
    pub fn timerfd_create(&mut self, clock: u64, flags: u64) -> Result {
        let flags = flags as u32;
        // CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME and the two that wake the machine.
        if flags & !(open::CLOEXEC | open::NONBLOCK) != 0 || !matches!(clock as u32, 0 | 1 | 7 | 8 | 9) {
            return Err(Errno::EINVAL);
        }
        let is_realtime = matches!(clock as u32, 0 | 8);
        let timer = Timer::unset(is_realtime);
        let kept = open::RDWR | flags & open::NONBLOCK;
        self.add_special(Special::Timer(timer), kept, flags & open::CLOEXEC != 0)
    }

    /// Returns the number of something without a name, by its descriptor.
    pub(crate) fn special(&mut self, descriptor: u64) -> Result<u32> {
        let description = self.descriptor(descriptor)?;
        let node = self.system.descriptions.get(description).node;
        match self.system.tree.node(node).kind {
            Kind::Special(number) => Ok(number),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Returns a timer.
    fn timer(&mut self, number: u32) -> Result<&mut Timer> {
        match self.system.specials.get(number) {
            Special::Timer(timer) => Ok(timer),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Sets when a timer is due, and reads when that was so far.
    pub fn timerfd_settime(&mut self, descriptor: u64, flags: u64, new: u64, old: u64) -> Result {
        const ABSOLUTE: u64 = 1;
        const CANCEL_ON_SET: u64 = 2;
        let (interval, first) = (self.read_time(new)?, self.read_time(new.wrapping_add(timespec::SIZE as u64))?);
        if flags & !(ABSOLUTE | CANCEL_ON_SET) != 0 {
            return Err(Errno::EINVAL);
        }
        let number = self.special(descriptor)?;
        let (now, realtime) = (self.system.memory.hardware.monotonic(), self.system.date());
        let timer = self.timer(number)?;
        let clock = if timer.is_realtime { realtime } else { now };
        let left = if flags & ABSOLUTE != 0 { first.saturating_sub(clock) } else { first };
        let alarm = timer.next;
        timer.pass(now);
        let before = *timer;
        timer.next = (!first.is_zero()).then(|| now.saturating_add(left));
        (timer.interval, timer.count, timer.skipped) = (interval, 0, 0);
        timer.is_by_date = timer.is_realtime && flags & ABSOLUTE != 0;
        let next = timer.next;
        self.system.waiters.set_alarm(Alarm::Timer, number, alarm, next);
        self.write_times(old, &before, now)
    }

    /// Reads when a timer is due.
    pub fn timerfd_gettime(&mut self, descriptor: u64, into: u64) -> Result {
        let number = self.special(descriptor)?;
        let now = self.system.memory.hardware.monotonic();
        let mut timer = *self.timer(number)?;
        timer.pass(now);
        self.write_times(into, &timer, now)
    }

    pub(crate) fn write_times(&mut self, into: u64, timer: &Timer, now: Duration) -> Result {
        let left = timer.next.map_or(Duration::ZERO, |next| next.saturating_sub(now).max(Duration::from_nanos(1)));
        let mut record = [0; TIMES];
        record[..timespec::SIZE].copy_from_slice(&super::time_record(timer.interval));
        record[timespec::SIZE..].copy_from_slice(&super::time_record(left));
        self.write_if_wanted(into, &record).map(|()| 0)
    }

    /// Makes something from which signals are read, or changes which.
    pub fn signalfd4(&mut self, descriptor: u64, set: u64, size: u64, flags: u64) -> Result {
        let flags = flags as u32;
        if flags & !(open::CLOEXEC | open::NONBLOCK) != 0 {
            return Err(Errno::EINVAL);
        }
        let set = self.read_set(set, size)?;
        if (descriptor as u32).cast_signed() == -1 {
            let kept = open::RDWR | flags & open::NONBLOCK;
            return self.add_special(Special::Signals(set), kept, flags & open::CLOEXEC != 0);
        }
        let number = self.special(descriptor)?;
        match self.system.specials.get(number) {
            Special::Signals(place) => *place = set,
            _ => return Err(Errno::EINVAL),
        }
        let id = self.process.id;
        self.system.waiters.wake(Key::Signal(id));
        Ok(descriptor as u32 as u64)
    }

    /// Reads from something without a name; waits if there is nothing.
    pub(crate) fn read_special(&mut self, number: u32, node: NodeId, flags: u32, into: &mut [u8]) -> Result<usize> {
        let (taken, key) = match self.system.specials.get(number) {
            // What a socket has received is read as a message.
            Special::Epoll(_) | Special::Socket(_) | Special::Queue(_) | Special::Process(_) => {
                return Err(Errno::EINVAL);
            }
            Special::Watches(instance) => {
                let instance = *instance;
                return self.read_watches(instance, flags, into);
            }
            Special::Signals(set) => {
                let set = *set;
                return self.read_signals(set, flags, into);
            }
            Special::Counter(_) | Special::Timer(_) if into.len() < NUMBER => return Err(Errno::EINVAL),
            Special::Counter(counter) => (counter.take(), Key::Readable(node)),
            Special::Timer(_) => {
                let now = self.system.memory.hardware.monotonic();
                let count = self.system.take_timer(number, now);
                ((count > 0).then_some(count), Key::Timer(number))
            }
        };
        match taken {
            Some(value) => {
                into[..NUMBER].copy_from_slice(&value.to_le_bytes());
                self.system.waiters.wake(Key::Writable(node));
                Ok(NUMBER)
            }
            None if flags & open::NONBLOCK != 0 => Err(Errno::EAGAIN),
            None => Err(self.wait(&[key], None, Interruption::Restartable)),
        }
    }

    /// Reads as many signals of a set as there is room for.
    fn read_signals(&mut self, set: u64, flags: u32, into: &mut [u8]) -> Result<usize> {
        if into.len() < signalfd_siginfo::SIZE {
            return Err(Errno::EINVAL);
        }
        let mut done = 0;
        for place in into.chunks_exact_mut(signalfd_siginfo::SIZE) {
            let Some(info) = self.process.take_signal_of(set) else { break };
            place.copy_from_slice(&signal_record(&info));
            done += signalfd_siginfo::SIZE;
        }
        let key = Key::Signal(self.process.id);
        match done {
            0 if flags & open::NONBLOCK != 0 => Err(Errno::EAGAIN),
            0 => Err(self.wait(&[key], None, Interruption::Restartable)),
            done => Ok(done),
        }
    }

    /// Writes to something without a name: adds to a counter, or sends. Waits if there is no room.
    pub(crate) fn write_special(&mut self, number: u32, node: NodeId, flags: u32, from: &[u8]) -> Result<usize> {
        let counter = match self.system.specials.get(number) {
            Special::Counter(counter) => counter,
            Special::Socket(socket) => {
                let socket = *socket;
                return self.send_bytes(&socket, flags, from);
            }
            _ => return Err(Errno::EINVAL),
        };
        let value = from.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)).ok_or(Errno::EINVAL)?;
        if value > Counter::MAX {
            return Err(Errno::EINVAL);
        }
        if counter.add(value) {
            self.system.waiters.wake(Key::Readable(node));
            return Ok(NUMBER);
        }
        if flags & open::NONBLOCK != 0 {
            return Err(Errno::EAGAIN);
        }
        Err(self.wait(&[Key::Writable(node)], None, Interruption::Restartable))
    }
}

/// Returns a signal as it is read.
fn signal_record(info: &Info) -> [u8; signalfd_siginfo::SIZE] {
    let mut record = [0; signalfd_siginfo::SIZE];
    let mut put = |offset: usize, bytes: &[u8]| record[offset..offset + bytes.len()].copy_from_slice(bytes);
    put(signalfd_siginfo::SIGNAL, &info.signal.to_le_bytes());
    put(signalfd_siginfo::CODE, &info.code.to_le_bytes());
    match info.cause {
        Cause::Child { id, user, status } => {
            put(signalfd_siginfo::PROCESS, &id.to_le_bytes());
            put(signalfd_siginfo::USER, &user.to_le_bytes());
            put(signalfd_siginfo::STATUS, &status.to_le_bytes());
        }
        Cause::Process { id, user, value } => {
            put(signalfd_siginfo::PROCESS, &id.to_le_bytes());
            put(signalfd_siginfo::USER, &user.to_le_bytes());
            put(signalfd_siginfo::NUMBER, &(value as u32).to_le_bytes());
            put(signalfd_siginfo::POINTER, &value.to_le_bytes());
        }
        Cause::Timer { id, value } => {
            put(signalfd_siginfo::TIMER, &id.to_le_bytes());
            put(signalfd_siginfo::NUMBER, &(value as u32).to_le_bytes());
            put(signalfd_siginfo::POINTER, &value.to_le_bytes());
        }
        Cause::File { descriptor, events } => {
            put(signalfd_siginfo::DESCRIPTOR, &descriptor.to_le_bytes());
            put(signalfd_siginfo::EVENTS, &events.to_le_bytes());
        }
        Cause::Fault { address } => put(signalfd_siginfo::ADDRESS, &address.to_le_bytes()),
        Cause::Call { instruction, .. } => put(signalfd_siginfo::ADDRESS, &instruction.to_le_bytes()),
        Cause::None => {}
    }
    record
}
