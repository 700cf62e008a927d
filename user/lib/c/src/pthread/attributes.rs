//! Attributes of threads, locks and conditions.

use core::ffi::{c_int, c_uint};

use crate::errno::{EINVAL, ENOTSUP, done_or};

/// Minimum size of a thread's stack in bytes.
const STACK_MIN: usize = 16 * 1024;

/// Attributes of a thread.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadAttributes {
    /// Size of its stack in bytes; 0 for the default.
    pub stack: usize,
    /// Detach state: 1 if the thread is detached, else 0.
    pub detached: c_uint,
}

/// Kind of a mutex that checks for errors; a normal one is 0.
pub const ERROR_CHECK: c_int = 1;
/// A mutex that its owner can take again.
pub const RECURSIVE: c_int = 2;
/// Bit of a mutex that reports its owner's death.
pub const ROBUST: c_int = 0x10;
/// Bit of an object that is to be shared by processes. Only stored: an object is shared if it lies in memory that
/// processes share, and otherwise not.
const SHARED: c_int = 0x20;

/// Attributes of another object.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Attributes {
    /// Kind of a mutex, with the bits [`ROBUST`] and [`SHARED`].
    pub kind: c_int,
}

impl Attributes {
    /// Sets a bit to 0 or 1. Returns `EINVAL` for another number.
    fn set_bit(&mut self, bit: c_int, set: c_int) -> c_int {
        let good = (0..=1).contains(&set);
        if good {
            self.kind = self.kind & !bit | (bit * set);
        }
        done_or(good, EINVAL)
    }

    const fn has(&self, bit: c_int) -> bool {
        self.kind & bit != 0
    }

    fn set_kind(&mut self, kind: c_int) -> c_int {
        let good = (0..=RECURSIVE).contains(&kind);
        if good {
            self.kind = self.kind & (ROBUST | SHARED) | kind;
        }
        done_or(good, EINVAL)
    }

    const fn kind(&self) -> c_int {
        self.kind & !(ROBUST | SHARED)
    }
}

/// Functions that initialise and destroy an attributes object.
macro_rules! lifetimes {
    ($($type:ident $init:ident $destroy:ident;)*) => { $(
        /// Sets the attributes to their defaults.
        ///
        /// # Safety
        /// `attributes` must point to memory for them.
        #[cfg_attr(target_os = "none", unsafe(no_mangle))]
        unsafe extern "C" fn $init(attributes: *mut $type) -> c_int {
            // SAFETY: the caller guarantees it.
            unsafe { attributes.write($type::default()) };
            0
        }

        /// Ends the use of the attributes.
        #[cfg_attr(target_os = "none", unsafe(no_mangle))]
        extern "C" fn $destroy(_attributes: *mut $type) -> c_int {
            0
        }
    )* };
}

lifetimes! {
    ThreadAttributes pthread_attr_init pthread_attr_destroy;
    Attributes pthread_mutexattr_init pthread_mutexattr_destroy;
    Attributes pthread_condattr_init pthread_condattr_destroy;
    Attributes pthread_rwlockattr_init pthread_rwlockattr_destroy;
    Attributes pthread_barrierattr_init pthread_barrierattr_destroy;
}

/// Defines functions that set and return a bit of the attributes.
macro_rules! bits {
    ($($bit:ident $set:ident $get:ident $what:literal;)*) => { $(
        #[doc = concat!("Sets ", $what, ": 0 or 1.")]
        ///
        /// # Safety
        /// `attributes` must point to some.
        #[cfg_attr(target_os = "none", unsafe(no_mangle))]
        unsafe extern "C" fn $set(attributes: *mut Attributes, set: c_int) -> c_int {
            // SAFETY: the caller guarantees it.
            unsafe { &mut *attributes }.set_bit($bit, set)
        }

        #[doc = concat!("Stores ", $what, " in `set`.")]
        ///
        /// # Safety
        /// `attributes` must point to some, and `set` to memory for a number.
        #[cfg_attr(target_os = "none", unsafe(no_mangle))]
        unsafe extern "C" fn $get(attributes: *const Attributes, set: *mut c_int) -> c_int {
            // SAFETY: the caller guarantees it.
            let found = unsafe { &*attributes }.has($bit);
            // SAFETY: as above.
            unsafe { *set = found.into() };
            0
        }
    )* };
}

bits! {
    SHARED pthread_mutexattr_setpshared pthread_mutexattr_getpshared "whether a mutex is shared by processes";
    SHARED pthread_condattr_setpshared pthread_condattr_getpshared "whether a condition is shared by processes";
    ROBUST pthread_mutexattr_setrobust pthread_mutexattr_getrobust "whether a mutex reports its owner's death";
}

/// Defines functions for the sharing of objects that processes cannot share.
macro_rules! unshared {
    ($($set:ident)*) => { $(
        /// Sets the sharing, which must be 0: between the threads of the process.
        #[cfg_attr(target_os = "none", unsafe(no_mangle))]
        extern "C" fn $set(_attributes: *mut Attributes, shared: c_int) -> c_int {
            match shared {
                0 => 0,
                1 => ENOTSUP,
                _ => EINVAL,
            }
        }
    )* };
}

unshared! {
    pthread_rwlockattr_setpshared pthread_barrierattr_setpshared
}

/// Sets the size of the stack in bytes.
///
/// # Safety
/// `attributes` must point to some.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_attr_setstacksize(attributes: *mut ThreadAttributes, size: usize) -> c_int {
    if size >= STACK_MIN {
        // SAFETY: the caller guarantees it.
        unsafe { (*attributes).stack = size };
    }
    done_or(size >= STACK_MIN, EINVAL)
}

/// Sets whether the thread is detached.
///
/// # Safety
/// `attributes` must point to some.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_attr_setdetachstate(attributes: *mut ThreadAttributes, detached: c_int) -> c_int {
    let good = (0..=1).contains(&detached);
    if good {
        // SAFETY: the caller guarantees it.
        unsafe { (*attributes).detached = detached as c_uint };
    }
    done_or(good, EINVAL)
}

/// Sets the kind of a mutex.
///
/// # Safety
/// `attributes` must point to some.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_mutexattr_settype(attributes: *mut Attributes, kind: c_int) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { &mut *attributes }.set_kind(kind)
}

/// Stores the kind of a mutex in `kind`.
///
/// # Safety
/// `attributes` must point to some, and `kind` to memory for a number.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_mutexattr_gettype(attributes: *const Attributes, kind: *mut c_int) -> c_int {
    // SAFETY: the caller guarantees it.
    let found = unsafe { &*attributes }.kind();
    // SAFETY: as above.
    unsafe { *kind = found };
    0
}

/// Sets the clock of a condition; all clocks show the same time.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn pthread_condattr_setclock(_attributes: *mut Attributes, clock: c_int) -> c_int {
    done_or((0..=1).contains(&clock), EINVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_do_not_disturb_each_other() {
        let mut attributes = Attributes::default();
        assert_eq!((attributes.set_bit(ROBUST, 1), attributes.set_bit(SHARED, 1)), (0, 0));
        assert_eq!((attributes.set_kind(RECURSIVE), attributes.set_kind(ROBUST)), (0, EINVAL));
        assert_eq!((attributes.set_bit(ROBUST, 2), attributes.set_bit(SHARED, 0)), (EINVAL, 0));
        assert_eq!((attributes.kind(), attributes.has(ROBUST), attributes.has(SHARED)), (RECURSIVE, true, false));
        assert_eq!(pthread_rwlockattr_setpshared(&raw mut attributes, 1), ENOTSUP);
    }
}
