//! Memory, doorbells and threads of a checker that tries every order of steps, and lets loads see old values where the
//! orderings permit it.

#![allow(dead_code)] // Each test file uses what it needs.

use std::sync::Arc;
use std::sync::atomic::Ordering::{self, Relaxed, SeqCst};

use loom::cell::UnsafeCell;
use loom::sync::Notify;
use loom::sync::atomic::{AtomicU64, fence};
use loom::thread;
use tench_channel::{Idle, Memory, Notifier, WORDS, Word};

/// Deliberate mistakes, to check that the checker finds them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mistake {
    Nothing,
    /// The header is written and read without ordering with respect to the words after it.
    Header,
    /// Credits are written and read without ordering with respect to the words of the lines.
    Credits,
}

/// A word of the control lines or a header is atomic. A word of a message is never written and read at the same time if
/// the channel is correct, so it is plain data, for which the checker reports that case.
pub enum Checked {
    Atomic(AtomicU64, bool),
    Plain(UnsafeCell<u64>),
}

// SAFETY: the checker finds every unordered access to plain data, which is its purpose.
unsafe impl Sync for Checked {}
// SAFETY: as above.
unsafe impl Send for Checked {}

impl Word for Checked {
    fn load(&self, order: Ordering) -> u64 {
        match self {
            Checked::Atomic(word, relaxed) => word.load(if *relaxed { Relaxed } else { order }),
            // SAFETY: the checker reports a concurrent write.
            Checked::Plain(word) => word.with(|word| unsafe { *word }),
        }
    }

    fn store(&self, value: u64, order: Ordering) {
        match self {
            Checked::Atomic(word, relaxed) => word.store(value, if *relaxed { Relaxed } else { order }),
            // SAFETY: the checker reports any concurrent access.
            Checked::Plain(word) => word.with_mut(|word| unsafe { *word = value }),
        }
    }
}

/// A frame of the checker.
#[derive(Clone)]
pub struct Lines(Arc<Vec<[Checked; WORDS]>>, bool);

impl Lines {
    /// Returns a frame with `ring` lines in each direction.
    pub fn new(ring: usize, mistake: Mistake) -> Lines {
        let word = |line: usize, word: usize| match (line % (ring + 1), word) {
            (0, _) => Checked::Atomic(AtomicU64::new(0), mistake == Mistake::Credits),
            (_, 0) => Checked::Atomic(AtomicU64::new(0), mistake == Mistake::Header),
            _ => Checked::Plain(UnsafeCell::new(0)),
        };
        let lines = (0..2 * (ring + 1)).map(|line| std::array::from_fn(|index| word(line, index)));
        Lines(Arc::new(lines.collect()), true)
    }

    /// Returns the same memory for a side that omits its fences.
    pub fn without_fences(&self) -> Lines {
        Lines(Arc::clone(&self.0), false)
    }
}

impl Memory for Lines {
    type Word = Checked;

    fn lines(&self) -> usize {
        self.0.len()
    }

    fn line(&self, index: usize) -> &[Checked; WORDS] {
        &self.0[index]
    }

    fn fence(&self) {
        if self.1 {
            fence(SeqCst);
        }
    }
}

/// The notification of one side. The checker reports a sleeper that is never woken.
#[derive(Clone)]
pub struct Signal(pub Arc<Notify>);

impl Signal {
    pub fn new() -> Signal {
        Signal(Arc::new(Notify::new()))
    }
}

impl Notifier for Signal {
    fn notify(&self) {
        self.0.notify();
    }
}

impl Idle for Signal {
    fn polls(&self) -> u32 {
        0
    }

    fn pause(&mut self) {
        thread::yield_now();
    }

    fn sleep(&mut self) {
        self.0.wait();
    }
}

/// Doorbell for sides that never sleep: it must not be notified.
#[derive(Clone)]
pub struct Silent;

impl Notifier for Silent {
    fn notify(&self) {
        panic!("a peer that polls was notified");
    }
}

/// Tries all orders with at most `preemptions` preemptions of threads.
pub fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}
