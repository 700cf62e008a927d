//! A read-write lock with data.

use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::AtomicUsize;

use tench_sys::Instant;

use super::{RawReadWrite, line};

/// Data that many threads read at a time, or one changes. Readers and writers wait in one queue, so neither starve: a
/// thread that comes while a writer waits queues behind it. A thread that reads must therefore not lock for reading
/// again.
pub struct RwLock<T: ?Sized> {
    raw: RawReadWrite,
    data: UnsafeCell<T>,
}

// SAFETY: the lock owns the data.
unsafe impl<T: ?Sized + Send> Send for RwLock<T> {}
// SAFETY: many threads read at a time, or one changes; the data may be sent through any of them.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}

impl<T> RwLock<T> {
    /// Returns a free lock with this data.
    pub const fn new(data: T) -> RwLock<T> {
        RwLock { raw: RawReadWrite::of(AtomicUsize::new(0), line()), data: UnsafeCell::new(data) }
    }

    /// Returns the data; nobody can hold the lock.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Takes the lock for reading, after waiting if necessary.
    #[inline]
    pub fn read(&self) -> ReadGuard<'_, T> {
        self.raw.read(None);
        ReadGuard { lock: self, not_send: PhantomData }
    }

    /// Takes the lock for writing, after waiting if necessary. A thread that already holds it waits for ever.
    #[inline]
    pub fn write(&self) -> WriteGuard<'_, T> {
        self.raw.write(None);
        WriteGuard { lock: self, not_send: PhantomData }
    }

    /// Takes the lock for reading, if no writer holds it or waits for it.
    #[inline]
    pub fn try_read(&self) -> Option<ReadGuard<'_, T>> {
        self.raw.try_read().then(|| ReadGuard { lock: self, not_send: PhantomData })
    }

    /// Takes the lock for writing, if nobody holds it.
    #[inline]
    pub fn try_write(&self) -> Option<WriteGuard<'_, T>> {
        self.raw.try_write().then(|| WriteGuard { lock: self, not_send: PhantomData })
    }

    /// Takes the lock for reading, waiting at most until a deadline.
    pub fn read_until(&self, deadline: Instant) -> Option<ReadGuard<'_, T>> {
        self.raw.read(Some(deadline.ticks())).then(|| ReadGuard { lock: self, not_send: PhantomData })
    }

    /// Takes the lock for writing, waiting at most until a deadline.
    pub fn write_until(&self, deadline: Instant) -> Option<WriteGuard<'_, T>> {
        self.raw.write(Some(deadline.ticks())).then(|| WriteGuard { lock: self, not_send: PhantomData })
    }

    /// Returns the number of waiters. Panics if the state is inconsistent.
    pub fn check_invariants(&self) -> usize {
        self.raw.check_invariants()
    }
}

/// Read access to the data of a read-write lock.
pub struct ReadGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    not_send: PhantomData<*const ()>,
}

// SAFETY: sharing a guard shares the data.
unsafe impl<T: ?Sized + Sync> Sync for ReadGuard<'_, T> {}

impl<T: ?Sized> Deref for ReadGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this thread holds the lock to read, so nobody writes.
        unsafe { &*self.lock.data.get() }
    }
}

impl<T: ?Sized> Drop for ReadGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the guard exists, so this thread holds the lock to read.
        unsafe { self.lock.raw.unlock_read() };
    }
}

/// Write access to the data of a read-write lock.
pub struct WriteGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    not_send: PhantomData<*const ()>,
}

// SAFETY: sharing a guard shares the data.
unsafe impl<T: ?Sized + Sync> Sync for WriteGuard<'_, T> {}

impl<T: ?Sized> Deref for WriteGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this thread holds the lock to write.
        unsafe { &*self.lock.data.get() }
    }
}

impl<T: ?Sized> DerefMut for WriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread holds the lock to write, and the guard is borrowed exclusively.
        unsafe { &mut *self.lock.data.get() }
    }
}

impl<T: ?Sized> Drop for WriteGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the guard exists, so this thread holds the lock to write.
        unsafe { self.lock.raw.unlock_write() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_never_see_half_a_change() {
        let pair = RwLock::new((0, 0));
        std::thread::scope(|scope| {
            for number in 0..6 {
                let pair = &pair;
                scope.spawn(move || {
                    for _ in 0..500 {
                        if number < 2 {
                            let mut pair = pair.write();
                            pair.0 += 1;
                            std::thread::yield_now();
                            pair.1 += 1;
                        } else {
                            let pair = pair.read();
                            assert_eq!(pair.0, pair.1);
                        }
                    }
                });
            }
        });
        assert_eq!((pair.check_invariants(), pair.into_inner()), (0, (1000, 1000)));
    }

    #[test]
    fn a_held_lock_is_not_taken() {
        let lock = RwLock::new(1);
        let (one, two) = (lock.read(), lock.try_read().unwrap());
        assert!(lock.try_write().is_none() && lock.write_until(Instant::from_ticks(0)).is_none());
        drop((one, two));
        let writer = lock.write();
        assert!(lock.try_read().is_none() && lock.read_until(Instant::from_ticks(0)).is_none());
        drop(writer);
        assert!(lock.try_write().is_some() && lock.check_invariants() == 0);
    }
}
