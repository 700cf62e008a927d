//! Signals that come for a process or for one of its threads.
//!
//! A signal for the process goes to whichever thread first looks for one that it does not block: the first thread, if
//! it runs or waits, and then the others by their numbers.

use alloc::vec::Vec;

use super::Process;
use crate::Machine;
use crate::signals::{Action, Cause, Disposition, Info, STOPPING, Set, number, only};
use crate::thread::State;

impl<M: Machine> Process<M> {
    /// Adds a signal for the process, or for the thread with an index, unless the signal is ignored.
    pub fn send(&mut self, info: Info, thread: Option<usize>) {
        let signal = info.signal;
        if signal == number::CONT {
            self.drop_signals(STOPPING);
        } else if only(signal) & STOPPING != 0 {
            self.drop_signals(only(number::CONT));
        }
        let receiver = &self.threads[thread.unwrap_or(0)];
        // A tracer learns also of signals that are ignored.
        let is_told = receiver.signals.blocks(signal) || receiver.tracing.is_some() && signal != number::KILL;
        if !is_told && self.signals.is_ignored(signal) {
            return;
        }
        match thread {
            Some(thread) => self.threads[thread].signals.pending.add(info),
            None => self.signals.pending.add(info),
        }
    }

    /// Drops the signals of a set that have come.
    fn drop_signals(&mut self, set: Set) {
        self.signals.pending.drop_all(set);
        for thread in &mut self.threads {
            thread.signals.pending.drop_all(set);
        }
    }

    /// Adds a signal that an instruction of the present thread has caused. It cannot be put off: if it is blocked or
    /// ignored, it ends the process.
    pub fn force(&mut self, info: Info) {
        let signals = &mut self.threads[self.present].signals;
        if signals.blocked & only(info.signal) != 0 || self.signals.action(info.signal).ignores() {
            signals.blocked &= !only(info.signal);
            self.signals.set_action(info.signal, Action::DEFAULT);
        }
        signals.pending.add_first(info);
    }

    /// Sets the action for a signal. If it ignores the signal, those that have come are dropped.
    pub fn set_action(&mut self, signal: u32, action: Action) {
        self.signals.set_action(signal, action);
        if self.signals.is_ignored(signal) {
            self.drop_signals(only(signal));
        }
    }

    /// Returns the signals that have come for the present thread or for all.
    pub fn pending(&self) -> Set {
        self.signals.pending.set() | self.thread().signals.pending.set()
    }

    /// Returns whether a signal has come that a thread does not block.
    fn is_due_for(&self, thread: usize) -> bool {
        let signals = &self.threads[thread].signals;
        signals.pending.has(!signals.blocked) || self.signals.pending.has(!signals.blocked)
    }

    /// Returns whether a signal has come that the present thread does not block.
    pub fn is_due(&self) -> bool {
        self.is_due_for(self.present)
    }

    /// Returns the numbers of the threads for which signals have come that they do not block.
    pub fn due_threads(&self) -> Vec<u32> {
        let living = self.threads.iter().enumerate().filter(|(_, thread)| thread.state != State::Ended);
        living.filter(|(at, _)| self.is_due_for(*at)).map(|(_, thread)| thread.id).collect()
    }

    /// Returns whether the signal of a timer has come and was not taken yet.
    pub fn has_timer_signal(&self, timer: u32) -> bool {
        let is_meant = |info: &Info| matches!(info.cause, Cause::Timer { id, .. } if id == timer);
        self.signals.pending.any(is_meant) || self.threads.iter().any(|thread| thread.signals.pending.any(is_meant))
    }

    /// Returns whether a signal has come that ends the process at once, whatever it waits for.
    pub fn is_killed(&self) -> bool {
        let kill = only(number::KILL);
        self.signals.pending.has(kill) || self.threads.iter().any(|thread| thread.signals.pending.has(kill))
    }

    /// Takes the next signal of a set that has come for the present thread, or else for all.
    pub fn take_signal_of(&mut self, set: Set) -> Option<Info> {
        let own = self.threads[self.present].signals.pending.take_of(set);
        own.or_else(|| self.signals.pending.take_of(set))
    }

    /// Takes the next signal that the present thread does not block and at which something happens.
    pub fn take_signal(&mut self) -> Option<(Info, Disposition)> {
        loop {
            let info = self.take_signal_of(!self.thread().signals.blocked)?;
            if let Some(disposition) = self.signals.dispose(info.signal) {
                return Some((info, disposition));
            }
        }
    }
}
