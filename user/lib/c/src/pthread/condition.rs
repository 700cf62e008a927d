//! Condition variables.

use core::ffi::c_int;

use tench::sync::RawCondition;
use tench::sync::shared::SharedCondition;

use super::attributes::Attributes;
use super::mutex::Mutex;
use super::shared::SharedMutex;
use crate::errno::{EBUSY, EINVAL, ETIMEDOUT, done_or};
use crate::shared::region;
use crate::time::{TimeSpec, deadline};

/// A condition variable.
#[repr(C)]
pub struct Condition {
    raw: RawCondition,
}

const _: () = assert!(size_of::<Condition>() == 40 && size_of::<SharedCondition>() <= 40);

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

/// Waits at a condition, at most until a deadline if there is one. Both objects must be this process's, or lie in the
/// same shared memory.
///
/// # Safety
/// Both must point to valid objects.
unsafe fn wait(condition: *const Condition, mutex: *const Mutex, deadline: Option<u64>) -> c_int {
    match (region(condition), region(mutex)) {
        (None, None) => {
            // SAFETY: the caller guarantees it.
            let mutex = unsafe { &*mutex };
            // SAFETY: as above.
            unsafe { &*condition }.wait(mutex, deadline)
        }
        (Some(region), _) if region.contains(mutex) => {
            // SAFETY: as above, and in shared memory a mutex is one of this type.
            let mutex = unsafe { &*mutex.cast::<SharedMutex>() };
            // SAFETY: the same holds for a condition.
            let condition = unsafe { &*condition.cast::<SharedCondition>() };
            let waited = region.with(|member, held| mutex.wait(condition, member, held, deadline));
            waited.unwrap_or_else(|error| error)
        }
        _ => EINVAL,
    }
}

/// Wakes all threads that wait at a condition, or the one that has waited longest.
///
/// # Safety
/// `condition` must point to one.
unsafe fn notify(condition: *const Condition, all: bool) -> c_int {
    let Some(region) = region(condition) else {
        // SAFETY: the caller guarantees it.
        let raw = &unsafe { &*condition }.raw;
        if all {
            raw.notify_all()
        } else {
            raw.notify_one()
        };
        return 0;
    };
    // SAFETY: as above, and in shared memory a condition is one of this type.
    let condition = unsafe { &*condition.cast::<SharedCondition>() };
    let notified = region.with(|member, _| match all {
        true => condition.notify_all(member),
        false => condition.notify_one(member),
    });
    notified.err().unwrap_or(0)
}

/// Makes a condition variable.
///
/// # Safety
/// `condition` must point to memory for one.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_cond_init(condition: *mut Condition, _attributes: *const Attributes) -> c_int {
    if region(condition).is_some() {
        // SAFETY: the caller guarantees it; one of this type is not larger.
        unsafe { condition.cast::<SharedCondition>().write(SharedCondition::new()) };
    } else {
        // SAFETY: the caller guarantees it.
        unsafe { condition.write(Condition { raw: RawCondition::new() }) };
    }
    0
}

/// Ends the use of a condition variable. Returns `EBUSY` if a thread waits.
///
/// # Safety
/// `condition` must point to one.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_cond_destroy(condition: *const Condition) -> c_int {
    let waiting = match region(condition) {
        // SAFETY: the caller guarantees it.
        None => unsafe { &*condition }.raw.check_invariants(),
        // SAFETY: as above, and in shared memory a condition is one of this type.
        Some(_) => unsafe { &*condition.cast::<SharedCondition>() }.waiting() as usize,
    };
    done_or(waiting == 0, EBUSY)
}

/// Releases the mutex, waits, and takes it again. Returns `EPERM` if the caller does not hold it, and `EINVAL` unless
/// both objects belong to this process or lie in the same shared memory.
///
/// # Safety
/// Both must point to valid objects.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_cond_wait(condition: *const Condition, mutex: *const Mutex) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { wait(condition, mutex, None) }
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
    match unsafe { deadline(time) } {
        // SAFETY: as above.
        Ok(deadline) => unsafe { wait(condition, mutex, Some(deadline)) },
        Err(error) => error,
    }
}

/// Wakes the thread that has waited longest.
///
/// # Safety
/// `condition` must point to one.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_cond_signal(condition: *const Condition) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { notify(condition, false) }
}

/// Wakes all threads that wait.
///
/// # Safety
/// `condition` must point to one.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn pthread_cond_broadcast(condition: *const Condition) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { notify(condition, true) }
}
