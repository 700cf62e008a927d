//! Semaphores.

use core::ffi::{c_int, c_uint};

use tench::sync::RawPermits;
use tench::sync::shared::SharedPermits;

use crate::errno::{EAGAIN, EBUSY, EINVAL, EOVERFLOW, ETIMEDOUT, fail};
use crate::shared::{Region, region};
use crate::time::{TimeSpec, deadline};

/// Maximum value of a semaphore.
const MAX: usize = c_int::MAX as usize;

/// A semaphore.
#[repr(C)]
pub struct Semaphore {
    raw: RawPermits,
}

const _: () = assert!(size_of::<Semaphore>() == 40 && size_of::<SharedPermits>() <= 40);

/// A semaphore, by where it lies.
enum Place<'s> {
    /// The semaphore is this process's.
    Own(&'s RawPermits),
    /// The semaphore lies in memory that processes share.
    Shared(&'s SharedPermits, &'static Region),
}

/// Returns 0, or sets `errno` and returns -1.
fn status(error: Option<c_int>) -> c_int {
    error.map_or(0, fail)
}

/// Returns where a semaphore lies.
///
/// # Safety
/// `semaphore` must point to one for as long as the result is used.
unsafe fn find<'s>(semaphore: *const Semaphore) -> Place<'s> {
    match region(semaphore) {
        // SAFETY: the caller guarantees it.
        None => Place::Own(&unsafe { &*semaphore }.raw),
        // SAFETY: as above, and in shared memory a semaphore is one of this type.
        Some(region) => Place::Shared(unsafe { &*semaphore.cast() }, region),
    }
}

impl Place<'_> {
    fn available(&self) -> usize {
        match self {
            Place::Own(raw) => raw.available(),
            Place::Shared(permits, _) => permits.available().min(MAX),
        }
    }

    fn waiting(&self) -> usize {
        match self {
            Place::Own(raw) => raw.check_invariants(),
            Place::Shared(permits, _) => permits.waiting() as usize,
        }
    }

    /// Takes a permit, after waiting if necessary, at most until a deadline if there is one.
    fn acquire(&self, deadline: Option<u64>) -> c_int {
        let taken = match (self, deadline) {
            (Place::Own(raw), None) => {
                raw.acquire();
                Ok(true)
            }
            (Place::Own(raw), Some(deadline)) => Ok(raw.acquire_until(deadline)),
            (Place::Shared(permits, region), _) => region.with(|member, _| permits.acquire(member, deadline)),
        };
        status(taken.map_or_else(Some, |taken| (!taken).then_some(ETIMEDOUT)))
    }

    fn release(&self) -> c_int {
        if self.available() >= MAX {
            return fail(EOVERFLOW);
        }
        let released = match self {
            Place::Own(raw) => Ok(raw.release()),
            Place::Shared(permits, region) => region.with(|member, _| permits.release(member)),
        };
        status(released.map_or_else(Some, |released| released.err().map(|_| EOVERFLOW)))
    }
}

/// Makes a semaphore. It is shared if it lies in memory that processes share, whatever `shared` says.
///
/// # Safety
/// `semaphore` must point to memory for one.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn sem_init(semaphore: *mut Semaphore, _shared: c_int, value: c_uint) -> c_int {
    if value as usize > MAX {
        return fail(EINVAL);
    }
    if region(semaphore).is_some() {
        // SAFETY: the caller guarantees it; one of this type is not larger.
        unsafe { semaphore.cast::<SharedPermits>().write(SharedPermits::new(value as usize)) };
    } else {
        // SAFETY: the caller guarantees it.
        unsafe { semaphore.write(Semaphore { raw: RawPermits::new(value as usize) }) };
    }
    0
}

/// Ends the use of a semaphore.
///
/// # Safety
/// `semaphore` must point to one.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn sem_destroy(semaphore: *const Semaphore) -> c_int {
    // SAFETY: the caller guarantees it.
    let waiting = unsafe { find(semaphore) }.waiting();
    status((waiting > 0).then_some(EBUSY))
}

/// Takes a permit, after waiting if necessary. Fails with `EAGAIN` if no further thread can use the shared memory.
///
/// # Safety
/// `semaphore` must point to one.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn sem_wait(semaphore: *const Semaphore) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { find(semaphore) }.acquire(None)
}

/// Takes a permit if there is one.
///
/// # Safety
/// `semaphore` must point to one.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn sem_trywait(semaphore: *const Semaphore) -> c_int {
    // SAFETY: the caller guarantees it.
    let taken = match unsafe { find(semaphore) } {
        Place::Own(raw) => raw.try_acquire(),
        Place::Shared(permits, _) => permits.try_acquire(),
    };
    status((!taken).then_some(EAGAIN))
}

/// Takes a permit, waiting at most until a deadline.
///
/// # Safety
/// Both must point to valid objects.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn sem_timedwait(semaphore: *const Semaphore, time: *const TimeSpec) -> c_int {
    // SAFETY: the caller guarantees it.
    match unsafe { deadline(time) } {
        // SAFETY: as above.
        Ok(deadline) => unsafe { find(semaphore) }.acquire(Some(deadline)),
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
    unsafe { find(semaphore) }.release()
}

/// Stores the number of permits in `value`.
///
/// # Safety
/// `semaphore` must point to one, and `value` to memory for a number.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn sem_getvalue(semaphore: *const Semaphore, value: *mut c_int) -> c_int {
    // SAFETY: the caller guarantees it.
    let available = unsafe { find(semaphore) }.available();
    // SAFETY: as above.
    unsafe { *value = available as c_int };
    0
}
