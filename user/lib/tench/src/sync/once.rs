//! What happens once.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

use super::mutex::Mutex;

/// Runs something once, whoever comes first; the others wait until it is done.
pub struct Once {
    done: AtomicBool,
    running: Mutex<()>,
}

impl Once {
    /// Not yet.
    pub const fn new() -> Once {
        Once { done: AtomicBool::new(false), running: Mutex::new(()) }
    }

    /// Whether it has happened.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    /// Runs `action` unless that has happened. When this returns, it has. `action` must not come back here.
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

// SAFETY: the value is written once, before anybody sees that it is there.
unsafe impl<T: Send> Send for OnceLock<T> {}
// SAFETY: as above; any thread may make the value, and all see it.
unsafe impl<T: Send + Sync> Sync for OnceLock<T> {}

impl<T> OnceLock<T> {
    /// No value yet.
    pub const fn new() -> OnceLock<T> {
        OnceLock { once: Once::new(), value: UnsafeCell::new(None) }
    }

    /// The value, if there is one.
    pub fn get(&self) -> Option<&T> {
        if !self.once.is_done() {
            return None;
        }
        // SAFETY: it was written before `once` was done, and is not written any more.
        unsafe { &*self.value.get() }.as_ref()
    }

    /// The value, made by `make` if there is none. `make` must not come back here.
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
