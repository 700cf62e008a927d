//! What happens once.

use core::ffi::c_int;
use core::sync::atomic::{AtomicUsize, Ordering};

use tench::sync::RawLock;

/// Whether something has happened.
#[repr(C)]
pub struct Once {
    done: AtomicUsize,
    running: RawLock,
}

const _: () = assert!(size_of::<Once>() == 24);

/// Calls a function unless that has happened. When this returns, it has.
///
/// # Safety
/// `once` points to one, and `function` can be called.
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
        // SAFETY: it was taken above.
        unsafe { once.running.unlock() };
    }
    0
}
