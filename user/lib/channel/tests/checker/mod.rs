//! Memory, bells and threads of a checker that tries every order of steps, and lets loads see old values where the
//! orderings allow it.

#![allow(dead_code)] // Each test file uses what it needs.

use std::sync::Arc;
use std::sync::atomic::Ordering::{self, Relaxed, SeqCst};

use loom::cell::UnsafeCell;
use loom::sync::Notify;
use loom::sync::atomic::{AtomicU64, fence};
use loom::thread;
use tench_channel::{Bell, Idle, Memory, WORDS, Word};

/// What is wrong on purpose, to see that the checker finds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mistake {
    Nothing,
    /// The header is written, and read, without an order to the words behind it.
    Header,
    /// Credits are given, and taken, without an order to the words of the lines.
    Credits,
}

/// A word of the control lines or a header is atomic. A word of a message is never written and read at the same time if
/// the channel does what it should, so it is data of which the checker says when that happens.
pub enum Checked {
    Atomic(AtomicU64, bool),
    Plain(UnsafeCell<u64>),
}

// SAFETY: the checker finds every unordered access to plain data; that is what it is for.
unsafe impl Sync for Checked {}
// SAFETY: as above.
unsafe impl Send for Checked {}

impl Word for Checked {
    fn load(&self, order: Ordering) -> u64 {
        match self {
            Checked::Atomic(word, relaxed) => word.load(if *relaxed { Relaxed } else { order }),
            // SAFETY: the checker finds it if anybody writes.
            Checked::Plain(word) => word.with(|word| unsafe { *word }),
        }
    }

    fn store(&self, value: u64, order: Ordering) {
        match self {
            Checked::Atomic(word, relaxed) => word.store(value, if *relaxed { Relaxed } else { order }),
            // SAFETY: the checker finds it if anybody else is here.
            Checked::Plain(word) => word.with_mut(|word| unsafe { *word = value }),
        }
    }
}

/// A frame of the checker.
#[derive(Clone)]
pub struct Lines(Arc<Vec<[Checked; WORDS]>>, bool);

impl Lines {
    /// With so many lines in each direction.
    pub fn new(ring: usize, mistake: Mistake) -> Lines {
        let word = |line: usize, word: usize| match (line % (ring + 1), word) {
            (0, _) => Checked::Atomic(AtomicU64::new(0), mistake == Mistake::Credits),
            (_, 0) => Checked::Atomic(AtomicU64::new(0), mistake == Mistake::Header),
            _ => Checked::Plain(UnsafeCell::new(0)),
        };
        let lines = (0..2 * (ring + 1)).map(|line| std::array::from_fn(|index| word(line, index)));
        Lines(Arc::new(lines.collect()), true)
    }

    /// The same memory for a side that leaves its fences out.
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

/// The notification of one side. Whoever sleeps on it and is not woken is found by the checker.
#[derive(Clone)]
pub struct Signal(pub Arc<Notify>);

impl Signal {
    pub fn new() -> Signal {
        Signal(Arc::new(Notify::new()))
    }
}

impl Bell for Signal {
    fn ring(&self) {
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

/// For sides that never sleep: nobody may ring.
#[derive(Clone)]
pub struct Silent;

impl Bell for Silent {
    fn ring(&self) {
        panic!("a peer that polls was rung");
    }
}

/// Tries all orders with at most `preemptions` of them against a thread's will.
pub fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}
