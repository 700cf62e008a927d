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

/// Attributes of another object.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Attributes {
    /// Kind of a mutex, or clock of a condition.
    pub kind: c_int,
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

/// Functions for the sharing of an object: only between the threads of the process.
macro_rules! sharing {
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

sharing! {
    pthread_mutexattr_setpshared pthread_condattr_setpshared pthread_rwlockattr_setpshared
    pthread_barrierattr_setpshared
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
    let good = (0..=2).contains(&kind);
    if good {
        // SAFETY: the caller guarantees it.
        unsafe { (*attributes).kind = kind };
    }
    done_or(good, EINVAL)
}

/// Stores the kind of a mutex in `kind`.
///
/// # Safety
/// `attributes` must point to some, and `kind` to memory for a number.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_mutexattr_gettype(attributes: *const Attributes, kind: *mut c_int) -> c_int {
    // SAFETY: the caller guarantees it.
    let found = unsafe { (*attributes).kind };
    // SAFETY: as above.
    unsafe { *kind = found };
    0
}

/// Sets the clock of a condition; all clocks show the same time.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn pthread_condattr_setclock(_attributes: *mut Attributes, clock: c_int) -> c_int {
    done_or((0..=1).contains(&clock), EINVAL)
}
