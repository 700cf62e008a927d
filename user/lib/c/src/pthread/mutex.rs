//! Mutexes.

use core::cell::Cell;
use core::ffi::c_int;
use core::sync::atomic::{AtomicUsize, Ordering};

use tench::sync::RawReadWrite;
use tench::sync::shared::Member;

use super::attributes::{Attributes, ERROR_CHECK, RECURSIVE, ROBUST};
use super::me;
use super::shared::SharedMutex;
use crate::errno::{EAGAIN, EBUSY, EDEADLK, EINVAL, ENOTSUP, EPERM, ETIMEDOUT};
use crate::shared::region;
use crate::time::{TimeSpec, deadline};

/// Kind of a mutex that checks nothing.
const NORMAL: c_int = 0;

/// A mutex: a read-write lock held for writing, because that supports deadlines.
#[repr(C)]
pub struct Mutex {
    kind: Cell<c_int>,
    lock: RawReadWrite,
    /// Number of the thread that holds it, or 0.
    owner: AtomicUsize,
    /// Number of recursive acquisitions; only its owner reads and writes it.
    depth: Cell<usize>,
}

const _: () = assert!(size_of::<Mutex>() == 64);

impl Mutex {
    fn new(kind: c_int) -> Mutex {
        Mutex { kind: Cell::new(kind), lock: RawReadWrite::new(), owner: AtomicUsize::new(0), depth: Cell::new(0) }
    }

    fn is_mine(&self) -> bool {
        self.owner.load(Ordering::Relaxed) == me()
    }

    /// Handles a repeated acquisition by the owner, if the mutex's kind treats that specially.
    fn again(&self) -> Option<c_int> {
        if self.kind.get() == NORMAL || !self.is_mine() {
            return None;
        }
        if self.kind.get() != RECURSIVE {
            return Some(EDEADLK);
        }
        let Some(depth) = self.depth.get().checked_add(1) else { return Some(EAGAIN) };
        self.depth.set(depth);
        Some(0)
    }

    fn taken(&self) -> c_int {
        self.owner.store(me(), Ordering::Relaxed);
        0
    }

    /// Takes the mutex, after waiting if necessary, at most until a deadline if there is one.
    pub fn lock(&self, deadline: Option<u64>) -> c_int {
        if self.lock.try_write() {
            return self.taken();
        }
        match self.again() {
            Some(result) => result,
            None if self.lock.write(deadline) => self.taken(),
            None => ETIMEDOUT,
        }
    }

    fn try_lock(&self) -> c_int {
        if self.lock.try_write() {
            return self.taken();
        }
        match self.again() {
            Some(0) => 0,
            _ => EBUSY,
        }
    }

    /// Releases the mutex. A normal one may be released by another thread than its owner.
    fn unlock(&self) -> c_int {
        let held = if self.kind.get() == NORMAL { self.owner.load(Ordering::Relaxed) != 0 } else { self.is_mine() };
        if !held {
            return EPERM;
        }
        match self.depth.get() {
            0 => {
                self.owner.store(0, Ordering::Relaxed);
                // SAFETY: the lock is held, by the caller or by a thread that lets the caller release it.
                unsafe { self.lock.unlock_write() };
            }
            depth => self.depth.set(depth - 1),
        }
        0
    }

    /// Prepares a wait: checks that the running thread may release the mutex, and returns a function that releases it
    /// completely and returns its depth.
    pub fn release(&self) -> Result<impl FnOnce() -> usize, c_int> {
        if self.kind.get() != NORMAL && !self.is_mine() || self.owner.load(Ordering::Relaxed) == 0 {
            return Err(EPERM);
        }
        Ok(|| {
            let depth = self.depth.replace(0);
            self.owner.store(0, Ordering::Relaxed);
            // SAFETY: the running thread holds it.
            unsafe { self.lock.unlock_write() };
            depth
        })
    }

    /// Takes the mutex again after a wait, with its former depth.
    pub fn take_again(&self, depth: usize) {
        self.lock.write(None);
        self.taken();
        self.depth.set(depth);
    }
}

/// Runs `own` on a mutex of this process, or `shared` on one in memory that processes share, with the running thread
/// as a member and the number of locks that it holds there.
///
/// # Safety
/// `mutex` must point to one.
unsafe fn on(
    mutex: *const Mutex,
    own: impl FnOnce(&Mutex) -> c_int,
    shared: impl FnOnce(&SharedMutex, &Member<'static>, &Cell<usize>) -> c_int,
) -> c_int {
    match region(mutex) {
        // SAFETY: the caller guarantees it.
        None => own(unsafe { &*mutex }),
        Some(region) => {
            // SAFETY: the caller guarantees it, and in shared memory a mutex is one of this type.
            let mutex = unsafe { &*mutex.cast::<SharedMutex>() };
            region.with(|member, held| shared(mutex, member, held)).unwrap_or_else(|error| error)
        }
    }
}

/// Takes a mutex, after waiting if necessary, at most until a deadline if there is one.
///
/// # Safety
/// `mutex` must point to one.
unsafe fn lock(mutex: *const Mutex, deadline: Option<u64>) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { on(mutex, |mutex| mutex.lock(deadline), |mutex, member, held| mutex.lock(member, held, deadline)) }
}

/// Makes a mutex. Returns `ENOTSUP` for a robust mutex outside memory that processes share.
///
/// # Safety
/// `mutex` must point to memory for one; `attributes` must be null or point to some.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_mutex_init(mutex: *mut Mutex, attributes: *const Attributes) -> c_int {
    // SAFETY: the caller guarantees it.
    let kind = unsafe { attributes.as_ref() }
        .map_or(NORMAL, |attributes| attributes.kind & (ERROR_CHECK | RECURSIVE | ROBUST));
    if region(mutex).is_some() {
        // SAFETY: as above; a mutex of this type is not larger.
        unsafe { mutex.cast::<SharedMutex>().write(SharedMutex::new(kind)) };
        return 0;
    }
    if kind & ROBUST != 0 {
        return ENOTSUP;
    }
    // SAFETY: as above.
    unsafe { mutex.write(Mutex::new(kind)) };
    0
}

/// Ends the use of a mutex. Returns `EBUSY` if it is held.
///
/// # Safety
/// `mutex` must point to one.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_mutex_destroy(mutex: *mut Mutex) -> c_int {
    let is_held = match region(mutex) {
        // SAFETY: the caller guarantees it.
        None => unsafe { &*mutex }.owner.load(Ordering::Relaxed) != 0,
        // SAFETY: as above.
        Some(_) => unsafe { &*mutex.cast::<SharedMutex>() }.is_held(),
    };
    if is_held { EBUSY } else { 0 }
}

/// Takes a mutex. Returns `EDEADLK` if it checks for errors and the caller holds it. For a shared mutex, returns
/// `EOWNERDEAD` if its owner has died and the caller holds it now, `ENOTRECOVERABLE` if its data were not made
/// consistent after that, and `EAGAIN` if no further thread can use the memory.
///
/// # Safety
/// `mutex` must point to one.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_mutex_lock(mutex: *const Mutex) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { lock(mutex, None) }
}

/// Takes a mutex without waiting, or returns `EBUSY`, or an error as `pthread_mutex_lock` does.
///
/// # Safety
/// `mutex` must point to one.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_mutex_trylock(mutex: *const Mutex) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { on(mutex, Mutex::try_lock, |mutex, member, held| mutex.try_lock(member, held)) }
}

/// Takes a mutex, or returns `ETIMEDOUT` at a deadline, or an error as `pthread_mutex_lock` does.
///
/// # Safety
/// `mutex` must point to one, and `time` to a time.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_mutex_timedlock(mutex: *const Mutex, time: *const TimeSpec) -> c_int {
    // SAFETY: the caller guarantees it.
    match unsafe { deadline(time) } {
        // SAFETY: as above.
        Ok(deadline) => unsafe { lock(mutex, Some(deadline)) },
        Err(error) => error,
    }
}

/// Releases a mutex. Returns `EPERM` if it is not held, or if the caller does not hold it, unless it is a normal one
/// of this process.
///
/// # Safety
/// `mutex` must point to one.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_mutex_unlock(mutex: *const Mutex) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { on(mutex, Mutex::unlock, |mutex, member, held| mutex.unlock(member, held)) }
}

/// Records that the data that a mutex protects are consistent, after its owner has died. Returns `EINVAL` if the caller
/// does not hold the mutex, or did not get it with `EOWNERDEAD`.
///
/// # Safety
/// `mutex` must point to one.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_mutex_consistent(mutex: *const Mutex) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { on(mutex, |_| EINVAL, |mutex, member, _| mutex.make_consistent(member)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_differ_when_a_mutex_is_taken_again() {
        let normal = Mutex::new(NORMAL);
        assert_eq!((normal.lock(None), normal.try_lock(), normal.lock(Some(0))), (0, EBUSY, ETIMEDOUT));
        assert_eq!((normal.unlock(), normal.unlock()), (0, EPERM));
        let checking = Mutex::new(ERROR_CHECK);
        assert_eq!((checking.lock(None), checking.lock(None), checking.try_lock()), (0, EDEADLK, EBUSY));
        assert_eq!((checking.unlock(), checking.unlock()), (0, EPERM));
        let recursive = Mutex::new(RECURSIVE);
        assert_eq!((recursive.lock(None), recursive.lock(None), recursive.try_lock()), (0, 0, 0));
        for _ in 0..3 {
            assert_eq!(recursive.unlock(), 0);
        }
        assert_eq!((recursive.unlock(), recursive.try_lock()), (EPERM, 0));
    }

    #[test]
    fn a_wait_gives_a_mutex_up_altogether() {
        let recursive = Mutex::new(RECURSIVE);
        assert!(recursive.release().is_err());
        assert_eq!((recursive.lock(None), recursive.lock(None)), (0, 0));
        let depth = recursive.release().map(|release| release()).unwrap();
        assert_eq!((depth, recursive.unlock()), (1, EPERM));
        recursive.take_again(depth);
        assert_eq!((recursive.unlock(), recursive.unlock(), recursive.unlock()), (0, 0, EPERM));
    }
}
