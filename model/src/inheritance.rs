//! Priority inheritance, said plainly: who waits for a thread, what each gives, and when that is looked at again.
//!
//! It rises at once along the whole chain (there are not so many threads that the kernel would cut it), and falls when a thread answers or
//! receives, or somebody stops waiting for it.

use crate::messages::{Doing, World};

impl World {
    /// Priority of the context on which a thread runs; 0 without one.
    fn own(&self, thread: usize) -> u64 {
        self.threads[thread].time.map_or(0, |time| self.priorities[time])
    }

    /// The priority at which a thread runs, if it has time.
    pub fn priority(&self, thread: usize) -> Option<u64> {
        self.threads[thread].time.map(|_| self.own(thread).max(self.threads[thread].inherited))
    }

    /// What a thread gives to whom it waits for: with time or without.
    fn gives(&self, thread: usize) -> u64 {
        self.own(thread).max(self.threads[thread].inherited)
    }

    /// The thread that inherits from one that waits.
    pub(crate) fn heir(&self, thread: usize) -> Option<usize> {
        match self.threads[thread].doing {
            Doing::AwaitingReply { reply } => self.threads.iter().position(|other| other.bound_reply == Some(reply)),
            Doing::Sending { endpoint, .. } => self.threads.iter().position(|other| other.serves == Some(endpoint)),
            _ => None,
        }
    }

    /// A thread has begun to wait.
    pub(crate) fn pass_on(&mut self, mut thread: usize) {
        let gives = self.gives(thread);
        while let Some(heir) = self.heir(thread).filter(|heir| gives > self.gives(*heir)) {
            self.threads[heir].inherited = gives;
            thread = heir;
        }
    }

    /// What a thread inherits is worked out anew.
    pub(crate) fn settle(&mut self, thread: usize) {
        let waiting = (0..self.threads.len()).filter(|other| self.heir(*other) == Some(thread));
        let most = waiting.map(|other| self.gives(other)).max().unwrap_or(0);
        self.threads[thread].inherited = if most > self.own(thread) { most } else { 0 };
    }

    /// A thread has got time, and may need nothing that it has inherited.
    pub(crate) fn outgrow(&mut self, thread: usize) {
        if self.own(thread) >= self.threads[thread].inherited {
            self.threads[thread].inherited = 0;
        }
    }
}
