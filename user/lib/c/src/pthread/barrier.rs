//! Barriers.

use core::ffi::{c_int, c_uint};

use tench::sync::RawBarrier;

use super::attributes::Attributes;
use crate::errno::{EBUSY, EINVAL, ENOTSUP, done_or};
use crate::shared::region;

/// Result of one of the threads that pass a barrier.
const SERIAL_THREAD: c_int = -1;

/// A barrier.
#[repr(C)]
pub struct Barrier {
    raw: RawBarrier,
}

const _: () = assert!(size_of::<Barrier>() == 48);

/// Makes a barrier for `count` threads. Returns `ENOTSUP` in memory that processes share.
///
/// # Safety
/// `barrier` must point to memory for one.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_barrier_init(
    barrier: *mut Barrier,
    _attributes: *const Attributes,
    count: c_uint,
) -> c_int {
    if region(barrier).is_some() {
        return ENOTSUP;
    }
    if count > 0 {
        // SAFETY: the caller guarantees it.
        unsafe { barrier.write(Barrier { raw: RawBarrier::new(count as usize) }) };
    }
    done_or(count > 0, EINVAL)
}

/// Ends the use of a barrier. Returns `EBUSY` if a thread waits.
///
/// # Safety
/// `barrier` must point to one.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_barrier_destroy(barrier: *const Barrier) -> c_int {
    // SAFETY: the caller guarantees it.
    done_or(unsafe { &*barrier }.raw.check_invariants() == 0, EBUSY)
}

/// Waits until all threads have arrived. One of them gets `PTHREAD_BARRIER_SERIAL_THREAD`.
///
/// # Safety
/// `barrier` must point to one.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_barrier_wait(barrier: *const Barrier) -> c_int {
    // SAFETY: the caller guarantees it.
    if unsafe { &*barrier }.raw.wait() { SERIAL_THREAD } else { 0 }
}
