//! One-time initialisation.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

use super::mutex::Mutex;

/// An action that runs once, in the first thread that comes; the others wait until it is done.
pub struct Once {
    done: AtomicBool,
    running: Mutex<()>,
}

impl Once {
    /// Returns an action that has not run.
    pub const fn new() -> Once {
        Once { done: AtomicBool::new(false), running: Mutex::new(()) }
    }

    /// Returns whether the action has run.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    /// Runs `action` unless an action has run. When this returns, one has. `action` must not use this object.
    #[inline]
    pub fn call_once(&self, action: impl FnOnce()) {
        if !self.is_done() {
            self.call_slowly(action);
        }
    }

    #[cold]
    fn call_slowly(&self, action: impl FnOnce()) {
        let _running = self.running.lock();
        if !self.is_done() {
            action();
            self.done.store(true, Ordering::Release);
        }
    }
}

impl Default for Once {
    fn default() -> Self {
        Self::new()
    }
}

/// A value that is made once, when it is first needed.
pub struct OnceLock<T> {
    once: Once,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: the value is written once, before any thread sees that it exists.
unsafe impl<T: Send> Send for OnceLock<T> {}
// SAFETY: as above; any thread may make the value, and all see it.
unsafe impl<T: Send + Sync> Sync for OnceLock<T> {}

impl<T> OnceLock<T> {
    /// Returns a cell without a value.
    pub const fn new() -> OnceLock<T> {
        OnceLock { once: Once::new(), value: UnsafeCell::new(None) }
    }

    /// Returns the value, if there is one.
    pub fn get(&self) -> Option<&T> {
        if !self.once.is_done() {
            return None;
        }
        // SAFETY: the value was written before `once` was done, and is not written any more.
        unsafe { &*self.value.get() }.as_ref()
    }

    /// Returns the value, made by `make` if there is none. `make` must not use this object.
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        self.once.call_once(|| {
            let value = make();
            // SAFETY: this runs once, and nobody reads before it is done.
            unsafe { *self.value.get() = Some(value) };
        });
        match self.get() {
            Some(value) => value,
            None => unreachable!("the value was just made"),
        }
    }
}

impl<T> Default for OnceLock<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn the_value_is_made_once() {
        let (made, lock) = (AtomicUsize::new(0), OnceLock::new());
        assert!(lock.get().is_none());
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let value = lock.get_or_init(|| {
                        std::thread::yield_now();
                        made.fetch_add(1, Ordering::Relaxed) + 5
                    });
                    assert_eq!(*value, 5);
                });
            }
        });
        assert_eq!((made.into_inner(), lock.get()), (1, Some(&5)));
    }
}
