//! Threads whose operations wait, and results of those that are over.

use alloc::collections::{BTreeMap, VecDeque};

use tench_linux_calls::Errno;

#[derive(Debug)]
enum State<R> {
    /// The operation is kept by what has this index.
    For(u32),
    /// The operation is over.
    Over(Result<R, Errno>),
}

/// All of them, by the numbers of the threads.
#[derive(Debug)]
pub(crate) struct Waits<R> {
    all: BTreeMap<u32, State<R>>,
    woken: VecDeque<u32>,
}

impl<R> Waits<R> {
    pub const fn new() -> Waits<R> {
        Waits { all: BTreeMap::new(), woken: VecDeque::new() }
    }

    /// Notes that a thread's operation is kept by what has an index.
    pub fn begin(&mut self, thread: u32, index: u32) {
        self.all.insert(thread, State::For(index));
    }

    /// Notes that a thread's operation is over.
    pub fn finish(&mut self, thread: u32, result: Result<R, Errno>) {
        self.all.insert(thread, State::Over(result));
        self.woken.push_back(thread);
    }

    /// Returns whether a thread's operation is kept.
    pub fn is_kept(&self, thread: u32) -> bool {
        matches!(self.all.get(&thread), Some(State::For(_)))
    }

    /// Takes the result of a thread's operation, if it is over.
    pub fn take_result(&mut self, thread: u32) -> Option<Result<R, Errno>> {
        if !matches!(self.all.get(&thread)?, State::Over(_)) {
            return None;
        }
        match self.all.remove(&thread) {
            Some(State::Over(result)) => Some(result),
            _ => None,
        }
    }

    /// Forgets a thread. Returns the index of what keeps its operation.
    pub fn end(&mut self, thread: u32) -> Option<u32> {
        match self.all.remove(&thread)? {
            State::For(index) => Some(index),
            State::Over(_) => None,
        }
    }

    /// Takes a thread whose operation is over.
    pub fn take_woken(&mut self) -> Option<u32> {
        self.woken.pop_front()
    }

    /// Returns the threads whose operations are kept, with the indices of what keeps them.
    pub fn kept(&self) -> impl Iterator<Item = (u32, u32)> {
        self.all.iter().filter_map(|(thread, state)| match state {
            State::For(index) => Some((*thread, *index)),
            State::Over(_) => None,
        })
    }

    /// Returns all threads.
    pub fn threads(&self) -> impl Iterator<Item = u32> {
        self.all.keys().copied()
    }
}
