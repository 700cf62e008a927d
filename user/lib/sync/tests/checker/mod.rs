//! Words, data and threads of the checker.

#![allow(dead_code)] // Each test file uses what it needs.

use std::sync::atomic::Ordering;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, fence};
use loom::thread;
use tench_sync::Word;

/// The checker's words.
///
/// For sequentially consistent accesses the checker supports only fences, so such a load has one before it and such a
/// store one after it.
pub struct Checked(AtomicUsize);

impl Word for Checked {
    fn new(value: usize) -> Self {
        Checked(AtomicUsize::new(value))
    }

    fn load(&self, order: Ordering) -> usize {
        if order == Ordering::SeqCst {
            fence(Ordering::SeqCst);
        }
        self.0.load(order)
    }

    fn store(&self, value: usize, order: Ordering) {
        self.0.store(value, order);
        if order == Ordering::SeqCst {
            fence(Ordering::SeqCst);
        }
    }

    fn swap(&self, value: usize, order: Ordering) -> usize {
        self.0.swap(value, order)
    }

    fn replace(&self, current: usize, new: usize, success: Ordering, failure: Ordering) -> Result<usize, usize> {
        self.0.compare_exchange(current, new, success, failure)
    }

    fn add(&self, value: usize, order: Ordering) -> usize {
        self.0.fetch_add(value, order)
    }

    fn subtract(&self, value: usize, order: Ordering) -> usize {
        self.0.fetch_sub(value, order)
    }

    fn set_bits(&self, bits: usize, order: Ordering) -> usize {
        let before = self.0.fetch_or(bits, order);
        if order == Ordering::SeqCst {
            fence(Ordering::SeqCst);
        }
        before
    }

    fn clear_bits(&self, bits: usize, order: Ordering) -> usize {
        self.0.fetch_and(!bits, order)
    }
}

/// Tries all orders with at most `preemptions` preemptions of threads.
pub fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// Data that the checker watches: concurrent accesses are an error, and so is one that does not see the last change.
pub struct Guarded(UnsafeCell<usize>);

// SAFETY: the checker finds every unordered access, which is its purpose.
unsafe impl Sync for Guarded {}
// SAFETY: as above.
unsafe impl Send for Guarded {}

impl Guarded {
    pub fn new() -> Guarded {
        Guarded(UnsafeCell::new(0))
    }

    pub fn increment(&self) {
        // SAFETY: the checker reports any concurrent access.
        self.0.with_mut(|value| unsafe { *value += 1 });
    }

    pub fn get(&self) -> usize {
        // SAFETY: the checker reports a concurrent write.
        self.0.with(|value| unsafe { *value })
    }
}

/// Runs `function` in `count` threads, one of which is the caller.
pub fn together<T: Send + Sync + 'static>(count: usize, shared: &Arc<T>, function: fn(usize, &T)) {
    let handles: Vec<_> = (1..count)
        .map(|number| {
            let shared = Arc::clone(shared);
            thread::spawn(move || function(number, &shared))
        })
        .collect();
    function(0, shared);
    handles.into_iter().for_each(|handle| handle.join().unwrap());
}
