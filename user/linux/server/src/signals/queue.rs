//! Signals that have come and that nobody has taken yet.

use alloc::collections::VecDeque;

use super::{Info, Set, number, only};

/// Signals that have come, in order.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    infos: VecDeque<Info>,
    /// The signals that are among them.
    set: Set,
}

impl Queue {
    /// The most signals that wait. A further one is lost if it is a real-time signal, of which each counts.
    pub const MAX: usize = 1024;

    /// Returns a queue without signals.
    pub const fn new() -> Queue {
        Queue { infos: VecDeque::new(), set: 0 }
    }

    /// Returns which signals have come.
    pub const fn set(&self) -> Set {
        self.set
    }

    /// Returns whether one of a set of signals has come.
    pub const fn has(&self, set: Set) -> bool {
        self.set & set != 0
    }

    /// Returns how many signals have come.
    pub fn count(&self) -> usize {
        self.infos.len()
    }

    /// Returns whether something is true of a signal that has come.
    pub fn any(&self, is_meant: impl Fn(&Info) -> bool) -> bool {
        self.infos.iter().any(is_meant)
    }

    /// Adds a signal that, unless it is a real-time signal, has not come already.
    pub fn add(&mut self, info: Info) {
        let is_counted = info.signal >= number::RT_MIN;
        let is_lost = if is_counted { self.infos.len() >= Queue::MAX } else { self.has(only(info.signal)) };
        if !is_lost {
            self.infos.push_back(info);
            self.set |= only(info.signal);
        }
    }

    /// Adds a signal before all others, in place of an equal one.
    pub fn add_first(&mut self, info: Info) {
        self.drop_all(only(info.signal));
        self.infos.push_front(info);
        self.set |= only(info.signal);
    }

    /// Drops all signals of a set.
    pub fn drop_all(&mut self, set: Set) {
        self.infos.retain(|info| only(info.signal) & set == 0);
        self.set &= !set;
    }

    /// Takes the next signal of a set: a fault's first, then the lowest number.
    pub fn take_of(&mut self, set: Set) -> Option<Info> {
        let come = self.set & set;
        let faults = come & (only(number::ILL) | only(number::BUS) | only(number::SEGV));
        let signal = 1 + if faults != 0 { faults } else { come }.trailing_zeros();
        let index = self.infos.iter().position(|info| info.signal == signal)?;
        let taken = self.infos.remove(index)?;
        if !self.infos.iter().any(|info| info.signal == signal) {
            self.set &= !only(signal);
        }
        Some(taken)
    }
}
