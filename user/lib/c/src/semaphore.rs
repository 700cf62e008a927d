//! Semaphores.

use core::ffi::{c_int, c_uint};

use tench::sync::RawPermits;

use crate::errno::{EAGAIN, EBUSY, EINVAL, ENOTSUP, EOVERFLOW, ETIMEDOUT, fail};
use crate::time::{TimeSpec, deadline};

/// The most that a semaphore can have.
const MAX: usize = c_int::MAX as usize;

/// A semaphore.
#[repr(C)]
pub struct Semaphore {
    raw: RawPermits,
}

const _: () = assert!(size_of::<Semaphore>() == 40);

/// 0, or -1 and the error in `errno`.
fn answer(error: Option<c_int>) -> c_int {
    error.map_or(0, fail)
}

/// Makes a semaphore for the threads of this process.
///
/// # Safety
/// `semaphore` is a place for one.
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

/// The semaphore is not used any more.
///
/// # Safety
/// `semaphore` points to one.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn sem_destroy(semaphore: *const Semaphore) -> c_int {
    // SAFETY: the caller guarantees it.
    let waiting = unsafe { &*semaphore }.raw.check_invariants();
    answer((waiting > 0).then_some(EBUSY))
}

/// Takes one, and waits for it if need be.
///
/// # Safety
/// `semaphore` points to one.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn sem_wait(semaphore: *const Semaphore) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { &*semaphore }.raw.acquire();
    0
}

/// Takes one if there is one.
///
/// # Safety
/// `semaphore` points to one.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn sem_trywait(semaphore: *const Semaphore) -> c_int {
    // SAFETY: the caller guarantees it.
    let taken = unsafe { &*semaphore }.raw.try_acquire();
    answer((!taken).then_some(EAGAIN))
}

/// Takes one, and waits for it until a time at most.
///
/// # Safety
/// Both point to what they should.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn sem_timedwait(semaphore: *const Semaphore, time: *const TimeSpec) -> c_int {
    // SAFETY: the caller guarantees it.
    let semaphore = unsafe { &*semaphore };
    // SAFETY: as above.
    match unsafe { deadline(time) } {
        Ok(deadline) => answer((!semaphore.raw.acquire_until(deadline)).then_some(ETIMEDOUT)),
        Err(error) => fail(error),
    }
}

/// Gives one back, or one more.
///
/// # Safety
/// `semaphore` points to one.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn sem_post(semaphore: *const Semaphore) -> c_int {
    // SAFETY: the caller guarantees it.
    let raw = &unsafe { &*semaphore }.raw;
    let room = raw.available() < MAX;
    answer((!room || raw.release().is_err()).then_some(EOVERFLOW))
}

/// How many there are.
///
/// # Safety
/// `semaphore` points to one, and `value` to a place for a number.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn sem_getvalue(semaphore: *const Semaphore, value: *mut c_int) -> c_int {
    // SAFETY: the caller guarantees it.
    let available = unsafe { &*semaphore }.raw.available();
    // SAFETY: as above.
    unsafe { *value = available as c_int };
    0
}
