//! Why a function of the library has failed. A C program has one thread, so there is one.

use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, Ordering};

/// There is no memory.
pub const ENOMEM: c_int = 12;
/// An argument is none.
pub const EINVAL: c_int = 22;

/// The last reason.
static ERRNO: AtomicI32 = AtomicI32::new(0);

/// Sets the reason.
pub fn set(reason: c_int) {
    ERRNO.store(reason, Ordering::Relaxed);
}

/// The reason.
#[cfg(test)]
pub fn get() -> c_int {
    ERRNO.load(Ordering::Relaxed)
}

/// Where it lies: `errno` is what this points to. The program may set it.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn tench_errno() -> *mut c_int {
    ERRNO.as_ptr()
}
