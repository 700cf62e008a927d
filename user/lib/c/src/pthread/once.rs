//! One-time initialisation.

use core::ffi::c_int;
use core::sync::atomic::{AtomicUsize, Ordering};

use tench::sync::RawLock;

/// State of a one-time initialisation.
#[repr(C)]
pub struct Once {
    done: AtomicUsize,
    running: RawLock,
}

const _: () = assert!(size_of::<Once>() == 24);

/// Calls a function unless one was called before. When this returns, one has been called.
///
/// # Safety
/// `once` must point to one, and `function` can be called.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_once(once: *const Once, function: extern "C" fn()) -> c_int {
    // SAFETY: the caller guarantees it.
    let once = unsafe { &*once };
    if once.done.load(Ordering::Acquire) == 0 {
        once.running.lock();
        if once.done.load(Ordering::Relaxed) == 0 {
            function();
            once.done.store(1, Ordering::Release);
        }
        // SAFETY: the lock was taken above.
        unsafe { once.running.unlock() };
    }
    0
}
