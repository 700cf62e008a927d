//! Semaphores.

use core::ffi::{c_int, c_uint};

use tench::sync::RawPermits;

use crate::errno::{EAGAIN, EBUSY, EINVAL, ENOTSUP, EOVERFLOW, ETIMEDOUT, fail};
use crate::time::{TimeSpec, deadline};

/// Maximum value of a semaphore.
const MAX: usize = c_int::MAX as usize;

/// A semaphore.
#[repr(C)]
pub struct Semaphore {
    raw: RawPermits,
}

const _: () = assert!(size_of::<Semaphore>() == 40);

/// Returns 0, or sets `errno` and returns -1.
fn status(error: Option<c_int>) -> c_int {
    error.map_or(0, fail)
}

/// Makes a semaphore for the threads of this process.
///
/// # Safety
/// `semaphore` must point to memory for one.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn sem_init(semaphore: *mut Semaphore, shared: c_int, value: c_uint) -> c_int {
    if shared != 0 {
        return fail(ENOTSUP);
    }
    if value as usize > MAX {
        return fail(EINVAL);
    }
    // SAFETY: the caller guarantees it.
    unsafe { semaphore.write(Semaphore { raw: RawPermits::new(value as usize) }) };
    0
}

/// Ends the use of a semaphore.
///
/// # Safety
/// `semaphore` must point to one.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn sem_destroy(semaphore: *const Semaphore) -> c_int {
    // SAFETY: the caller guarantees it.
    let waiting = unsafe { &*semaphore }.raw.check_invariants();
    status((waiting > 0).then_some(EBUSY))
}

/// Takes a permit, after waiting if necessary.
///
/// # Safety
/// `semaphore` must point to one.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn sem_wait(semaphore: *const Semaphore) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { &*semaphore }.raw.acquire();
    0
}

/// Takes a permit if there is one.
///
/// # Safety
/// `semaphore` must point to one.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn sem_trywait(semaphore: *const Semaphore) -> c_int {
    // SAFETY: the caller guarantees it.
    let taken = unsafe { &*semaphore }.raw.try_acquire();
    status((!taken).then_some(EAGAIN))
}

/// Takes a permit, waiting at most until a deadline.
///
/// # Safety
/// Both must point to valid objects.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn sem_timedwait(semaphore: *const Semaphore, time: *const TimeSpec) -> c_int {
    // SAFETY: the caller guarantees it.
    let semaphore = unsafe { &*semaphore };
    // SAFETY: as above.
    match unsafe { deadline(time) } {
        Ok(deadline) => status((!semaphore.raw.acquire_until(deadline)).then_some(ETIMEDOUT)),
        Err(error) => fail(error),
    }
}

/// Returns a permit, or adds one.
///
/// # Safety
/// `semaphore` must point to one.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn sem_post(semaphore: *const Semaphore) -> c_int {
    // SAFETY: the caller guarantees it.
    let raw = &unsafe { &*semaphore }.raw;
    let room = raw.available() < MAX;
    status((!room || raw.release().is_err()).then_some(EOVERFLOW))
}

/// Stores the number of permits in `value`.
///
/// # Safety
/// `semaphore` must point to one, and `value` to memory for a number.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn sem_getvalue(semaphore: *const Semaphore, value: *mut c_int) -> c_int {
    // SAFETY: the caller guarantees it.
    let available = unsafe { &*semaphore }.raw.available();
    // SAFETY: as above.
    unsafe { *value = available as c_int };
    0
}
