//! A mutex with data.

use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use super::{RawLock, raw_lock};

/// Data that one thread at a time can access, in the order of their requests.
///
/// A thread that panics while it holds the lock ends the process, so there is no poisoning.
pub struct Mutex<T: ?Sized> {
    raw: RawLock,
    data: UnsafeCell<T>,
}

// SAFETY: the lock lets one thread at a time access the data.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    /// Returns a free mutex with this data.
    pub const fn new(data: T) -> Mutex<T> {
        Mutex { raw: raw_lock(), data: UnsafeCell::new(data) }
    }

    /// Returns the data; nobody can hold the lock.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Takes the lock, after waiting if necessary. A thread that already holds it waits for ever.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.raw.lock();
        MutexGuard { mutex: self, not_send: PhantomData }
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.raw.try_lock().then(|| MutexGuard { mutex: self, not_send: PhantomData })
    }

    /// Returns the data; nobody can hold the lock.
    pub fn get_mut(&mut self) -> &mut T {
        self.data.get_mut()
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Mutex::new(T::default())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_lock() {
            Some(guard) => f.debug_tuple("Mutex").field(&&*guard).finish(),
            None => f.write_str("Mutex(locked)"),
        }
    }
}

/// Access to the data of a mutex, as long as the lock is held.
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    not_send: PhantomData<*const ()>,
}

// SAFETY: sharing a guard shares the data.
unsafe impl<T: ?Sized + Sync> Sync for MutexGuard<'_, T> {}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// Runs `wait`, which releases the lock and takes it again; afterwards the data may be different.
    pub(super) fn wait_with<R>(self, wait: impl FnOnce(&RawLock) -> R) -> (Self, R) {
        let result = wait(&self.mutex.raw);
        (self, result)
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this thread holds the lock.
        unsafe { &*self.mutex.data.get() }
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread holds the lock, and the guard is borrowed exclusively.
        unsafe { &mut *self.mutex.data.get() }
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the guard exists, so this thread holds the lock.
        unsafe { self.mutex.raw.unlock() };
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time() {
        let counter = Mutex::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..2_000 {
                        let mut guard = counter.lock();
                        let before = *guard;
                        if before % 97 == 0 {
                            std::thread::yield_now();
                        }
                        *guard = before + 1;
                    }
                });
            }
        });
        assert_eq!(counter.into_inner(), 16_000);
    }

    #[test]
    fn a_held_lock_is_not_taken() {
        let mut mutex = Mutex::new(1);
        {
            let guard = mutex.lock();
            assert!(mutex.try_lock().is_none());
            assert_eq!(format!("{mutex:?} {guard:?}"), "Mutex(locked) 1");
        }
        *mutex.try_lock().unwrap() += 1;
        *mutex.get_mut() += 1;
        assert_eq!(format!("{mutex:?}"), "Mutex(3)");
    }
}
