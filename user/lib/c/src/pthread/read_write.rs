//! Read-write locks.

use core::ffi::c_int;
use core::sync::atomic::{AtomicUsize, Ordering};

use tench::sync::RawReadWrite;

use super::attributes::Attributes;
use super::me;
use crate::errno::{EBUSY, EDEADLK, ENOTSUP, EPERM, ETIMEDOUT, done_or};
use crate::shared::region;
use crate::time::{TimeSpec, deadline};

/// A read-write lock.
#[repr(C)]
pub struct ReadWrite {
    raw: RawReadWrite,
    /// Number of the thread that holds it for writing, or 0.
    writer: AtomicUsize,
    /// Number of threads that hold it for reading.
    readers: AtomicUsize,
}

const _: () = assert!(size_of::<ReadWrite>() == 56);

impl ReadWrite {
    fn new() -> ReadWrite {
        ReadWrite { raw: RawReadWrite::new(), writer: AtomicUsize::new(0), readers: AtomicUsize::new(0) }
    }

    fn is_mine(&self) -> bool {
        self.writer.load(Ordering::Relaxed) == me()
    }

    /// Records the new holder.
    fn taken(&self, to_write: bool) -> c_int {
        if to_write {
            self.writer.store(me(), Ordering::Relaxed);
        } else {
            self.readers.fetch_add(1, Ordering::Relaxed);
        }
        0
    }

    fn try_take(&self, to_write: bool) -> bool {
        if to_write { self.raw.try_write() } else { self.raw.try_read() }
    }

    fn take(&self, to_write: bool, deadline: Option<u64>) -> c_int {
        if self.is_mine() {
            return EDEADLK;
        }
        let taken = if to_write { self.raw.write(deadline) } else { self.raw.read(deadline) };
        if taken { self.taken(to_write) } else { ETIMEDOUT }
    }

    fn unlock(&self) -> c_int {
        if self.is_mine() {
            self.writer.store(0, Ordering::Relaxed);
            // SAFETY: the running thread holds it for writing.
            unsafe { self.raw.unlock_write() };
            return 0;
        }
        let one_less = |readers: usize| readers.checked_sub(1);
        if self.readers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_err() {
            return EPERM;
        }
        // SAFETY: a thread holds it for reading, and the program guarantees that this is the caller.
        unsafe { self.raw.unlock_read() };
        0
    }
}

/// Makes a lock. Returns `ENOTSUP` in memory that processes share.
///
/// # Safety
/// `lock` must point to memory for one.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_rwlock_init(lock: *mut ReadWrite, _attributes: *const Attributes) -> c_int {
    if region(lock).is_some() {
        return ENOTSUP;
    }
    // SAFETY: the caller guarantees it.
    unsafe { lock.write(ReadWrite::new()) };
    0
}

/// Ends the use of a lock. Returns `EBUSY` if it is held.
///
/// # Safety
/// `lock` must point to one.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_rwlock_destroy(lock: *const ReadWrite) -> c_int {
    // SAFETY: the caller guarantees it.
    let lock = unsafe { &*lock };
    done_or(lock.writer.load(Ordering::Relaxed) == 0 && lock.readers.load(Ordering::Relaxed) == 0, EBUSY)
}

/// Functions that take the lock.
macro_rules! lock_functions {
    ($($plain:ident $try:ident $timed:ident $to_write:literal $what:literal;)*) => { $(
        #[doc = concat!("Takes a lock to ", $what, ", and waits if need be. `EDEADLK` if the caller has it to write.")]
        ///
        /// # Safety
        /// `lock` must point to one.
        #[cfg_attr(target_os = "none", unsafe(no_mangle))]
        unsafe extern "C" fn $plain(lock: *const ReadWrite) -> c_int {
            // SAFETY: the caller guarantees it.
            unsafe { &*lock }.take($to_write, None)
        }

        #[doc = concat!("Takes a lock to ", $what, " if that needs no waiting, or returns `EBUSY`.")]
        ///
        /// # Safety
        /// `lock` must point to one.
        #[cfg_attr(target_os = "none", unsafe(no_mangle))]
        unsafe extern "C" fn $try(lock: *const ReadWrite) -> c_int {
            // SAFETY: the caller guarantees it.
            let lock = unsafe { &*lock };
            if lock.try_take($to_write) { lock.taken($to_write) } else { EBUSY }
        }

        #[doc = concat!("Takes a lock to ", $what, ", or returns `ETIMEDOUT` at a time.")]
        ///
        /// # Safety
        /// Both must point to valid objects.
        #[cfg_attr(target_os = "none", unsafe(no_mangle))]
        unsafe extern "C" fn $timed(lock: *const ReadWrite, time: *const TimeSpec) -> c_int {
            // SAFETY: the caller guarantees it.
            match unsafe { deadline(time) } {
                // SAFETY: as above.
                Ok(deadline) => unsafe { &*lock }.take($to_write, Some(deadline)),
                Err(error) => error,
            }
        }
    )* };
}

lock_functions! {
    pthread_rwlock_rdlock pthread_rwlock_tryrdlock pthread_rwlock_timedrdlock false "read";
    pthread_rwlock_wrlock pthread_rwlock_trywrlock pthread_rwlock_timedwrlock true "write";
}

/// Releases a lock. Returns `EPERM` if neither the caller holds it for writing nor any thread for reading.
///
/// # Safety
/// `lock` must point to one.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_rwlock_unlock(lock: *const ReadWrite) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { &*lock }.unlock()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misuse_is_seen() {
        let lock = ReadWrite::new();
        assert_eq!(lock.unlock(), EPERM);
        assert_eq!((lock.take(false, None), lock.take(false, None), lock.take(true, Some(0))), (0, 0, ETIMEDOUT));
        assert_eq!((lock.unlock(), lock.unlock(), lock.unlock()), (0, 0, EPERM));
        assert_eq!((lock.take(true, None), lock.take(true, None), lock.take(false, None)), (0, EDEADLK, EDEADLK));
        assert_eq!((lock.unlock(), lock.unlock()), (0, EPERM));
    }
}
