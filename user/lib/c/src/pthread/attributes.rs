//! Attributes: how a thread, a lock or a condition is to be.

use core::ffi::{c_int, c_uint};

use crate::errno::{EINVAL, ENOTSUP, done_or};

/// Smallest stack of a thread, in bytes.
const STACK_MIN: usize = 16 * 1024;

/// How a thread is to be.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadAttributes {
    /// Bytes of its stack; 0 for the usual size.
    pub stack: usize,
    /// Whether nobody joins it: 0 or 1.
    pub detached: c_uint,
}

/// How something else is to be.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Attributes {
    /// Of a mutex its kind, of a condition its clock.
    pub kind: c_int,
}

/// Functions that set an attributes object up and take it down.
macro_rules! lifetimes {
    ($($type:ident $init:ident $destroy:ident;)*) => { $(
        /// Sets the attributes to what is usual.
        ///
        /// # Safety
        /// `attributes` is a place for them.
        #[cfg_attr(target_os = "none", unsafe(no_mangle))]
        unsafe extern "C" fn $init(attributes: *mut $type) -> c_int {
            // SAFETY: the caller guarantees it.
            unsafe { attributes.write($type::default()) };
            0
        }

        /// The attributes are not used any more.
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

/// Functions that choose with whom something is shared: with the threads of the process alone.
macro_rules! sharing {
    ($($set:ident)*) => { $(
        /// Only 0, with the threads of the process, is provided.
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

/// Bytes of the stack.
///
/// # Safety
/// `attributes` points to some.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_attr_setstacksize(attributes: *mut ThreadAttributes, size: usize) -> c_int {
    if size >= STACK_MIN {
        // SAFETY: the caller guarantees it.
        unsafe { (*attributes).stack = size };
    }
    done_or(size >= STACK_MIN, EINVAL)
}

/// Whether nobody joins it.
///
/// # Safety
/// `attributes` points to some.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_attr_setdetachstate(attributes: *mut ThreadAttributes, detached: c_int) -> c_int {
    let good = (0..=1).contains(&detached);
    if good {
        // SAFETY: the caller guarantees it.
        unsafe { (*attributes).detached = detached as c_uint };
    }
    done_or(good, EINVAL)
}

/// The kind of a mutex.
///
/// # Safety
/// `attributes` points to some.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_mutexattr_settype(attributes: *mut Attributes, kind: c_int) -> c_int {
    let good = (0..=2).contains(&kind);
    if good {
        // SAFETY: the caller guarantees it.
        unsafe { (*attributes).kind = kind };
    }
    done_or(good, EINVAL)
}

/// The kind of a mutex.
///
/// # Safety
/// `attributes` points to some, and `kind` to a place for a number.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_mutexattr_gettype(attributes: *const Attributes, kind: *mut c_int) -> c_int {
    // SAFETY: the caller guarantees it.
    let found = unsafe { (*attributes).kind };
    // SAFETY: as above.
    unsafe { *kind = found };
    0
}

/// The clock of a condition; all show the same.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn pthread_condattr_setclock(_attributes: *mut Attributes, clock: c_int) -> c_int {
    done_or((0..=1).contains(&clock), EINVAL)
}
