//! Signals that have come and that nobody has taken yet.

use alloc::collections::VecDeque;

use super::{Info, Set, number, only};

/// Signals that have come, in order.
#[derive(Clone, Debug, Default)]
pub struct Queue(VecDeque<Info>);

impl Queue {
    /// The most signals that wait. A further one is lost if it is a real-time signal, of which each counts.
    pub const MAX: usize = 1024;

    /// Returns a queue without signals.
    pub const fn new() -> Queue {
        Queue(VecDeque::new())
    }

    /// Returns which signals have come.
    pub fn set(&self) -> Set {
        self.0.iter().fold(0, |set, info| set | only(info.signal))
    }

    /// Returns whether one of a set of signals has come.
    pub fn has(&self, set: Set) -> bool {
        self.0.iter().any(|info| only(info.signal) & set != 0)
    }

    /// Returns how many signals have come.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns whether something is true of a signal that has come.
    pub fn any(&self, is_meant: impl Fn(&Info) -> bool) -> bool {
        self.0.iter().any(is_meant)
    }

    /// Adds a signal that, unless it is a real-time signal, has not come already.
    pub fn add(&mut self, info: Info) {
        let is_counted = info.signal >= number::RT_MIN;
        let is_lost = if is_counted { self.0.len() >= Queue::MAX } else { self.has(only(info.signal)) };
        if !is_lost {
            self.0.push_back(info);
        }
    }

    /// Adds a signal before all others, in place of an equal one.
    pub fn add_first(&mut self, info: Info) {
        self.drop_all(only(info.signal));
        self.0.push_front(info);
    }

    /// Drops all signals of a set.
    pub fn drop_all(&mut self, set: Set) {
        self.0.retain(|info| only(info.signal) & set == 0);
    }

    /// Takes the next signal of a set: a fault's first, then the lowest number.
    pub fn take_of(&mut self, set: Set) -> Option<Info> {
        let faults = set & (only(number::ILL) | only(number::BUS) | only(number::SEGV));
        let candidates = |set: Set| {
            let infos = self.0.iter().enumerate();
            infos.filter(|(_, info)| only(info.signal) & set != 0).min_by_key(|(_, info)| info.signal)
        };
        let (index, _) = candidates(faults).or_else(|| candidates(set))?;
        self.0.remove(index)
    }
}
