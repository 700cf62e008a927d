//! Condition variables.

use core::ffi::c_int;

use tench::sync::RawCondition;

use super::attributes::Attributes;
use super::mutex::Mutex;
use crate::errno::{EBUSY, ETIMEDOUT, done_or};
use crate::time::{TimeSpec, deadline};

/// A condition variable.
#[repr(C)]
pub struct Condition {
    raw: RawCondition,
}

const _: () = assert!(size_of::<Condition>() == 40);

impl Condition {
    fn wait(&self, mutex: &Mutex, deadline: Option<u64>) -> c_int {
        let release = match mutex.release() {
            Ok(release) => release,
            Err(error) => return error,
        };
        let mut depth = 0;
        let notified = self.raw.wait_with(deadline, || depth = release());
        mutex.take_again(depth);
        done_or(notified, ETIMEDOUT)
    }
}

/// Makes a condition variable.
///
/// # Safety
/// `condition` must point to memory for one.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_cond_init(condition: *mut Condition, _attributes: *const Attributes) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { condition.write(Condition { raw: RawCondition::new() }) };
    0
}

/// Ends the use of a condition variable. Returns `EBUSY` if a thread waits.
///
/// # Safety
/// `condition` must point to one.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_cond_destroy(condition: *const Condition) -> c_int {
    // SAFETY: the caller guarantees it.
    done_or(unsafe { &*condition }.raw.check_invariants() == 0, EBUSY)
}

/// Releases the mutex, waits, and takes it again. Returns `EPERM` if the caller does not hold it.
///
/// # Safety
/// Both must point to valid objects.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_cond_wait(condition: *const Condition, mutex: *const Mutex) -> c_int {
    // SAFETY: the caller guarantees it.
    let mutex = unsafe { &*mutex };
    // SAFETY: as above.
    unsafe { &*condition }.wait(mutex, None)
}

/// As `pthread_cond_wait`, with a deadline, at which it returns `ETIMEDOUT`.
///
/// # Safety
/// All must point to valid objects.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_cond_timedwait(
    condition: *const Condition,
    mutex: *const Mutex,
    time: *const TimeSpec,
) -> c_int {
    // SAFETY: the caller guarantees it.
    let time = unsafe { deadline(time) };
    // SAFETY: as above.
    let condition = unsafe { &*condition };
    // SAFETY: as above.
    let mutex = unsafe { &*mutex };
    time.map_or_else(|error| error, |deadline| condition.wait(mutex, Some(deadline)))
}

/// Wakes the thread that has waited longest.
///
/// # Safety
/// `condition` must point to one.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_cond_signal(condition: *const Condition) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { &*condition }.raw.notify_one();
    0
}

/// Wakes all threads that wait.
///
/// # Safety
/// `condition` must point to one.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_cond_broadcast(condition: *const Condition) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { &*condition }.raw.notify_all();
    0
}
