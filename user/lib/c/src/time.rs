//! Points in time as C has them.

use core::ffi::{c_int, c_long};

use tench::sys::Instant;
use tench::sys::time::ticks;
use tench::time::{self, Duration};

use crate::errno::{EINVAL, fail};

/// Seconds and nanoseconds.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TimeSpec {
    /// Seconds.
    pub seconds: c_long,
    /// Nanoseconds, below 10⁹.
    pub nanoseconds: c_long,
}

impl TimeSpec {
    /// As a duration, if it is one.
    pub fn duration(self) -> Option<Duration> {
        let nanoseconds = u32::try_from(self.nanoseconds).ok().filter(|nanoseconds| *nanoseconds < 1_000_000_000)?;
        Some(Duration::new(u64::try_from(self.seconds).ok()?, nanoseconds))
    }

    /// As a point in time: so long after the machine was started.
    pub fn instant(self) -> Option<Instant> {
        Some(Instant::from_ticks(ticks(self.duration()?, time::frequency())))
    }
}

/// What a caller passes as a deadline.
///
/// # Safety
/// `time` points to a time.
pub unsafe fn deadline(time: *const TimeSpec) -> Result<u64, c_int> {
    // SAFETY: the caller says so.
    unsafe { *time }.instant().map(Instant::ticks).ok_or(EINVAL)
}

/// The time since the machine was started, on every clock.
///
/// # Safety
/// `time` is a place for a time.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn clock_gettime(clock: c_int, place: *mut TimeSpec) -> c_int {
    if !(0..=1).contains(&clock) {
        return fail(EINVAL);
    }
    let now = time::uptime();
    // SAFETY: the caller says so.
    unsafe { *place = TimeSpec { seconds: now.as_secs() as c_long, nanoseconds: now.subsec_nanos().into() } };
    0
}

/// Lets others run for a while. Nothing ends it early.
///
/// # Safety
/// `duration` points to a time, and `left` is null or a place for one.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn nanosleep(duration: *const TimeSpec, _left: *mut TimeSpec) -> c_int {
    // SAFETY: the caller says so.
    match unsafe { *duration }.duration() {
        Some(duration) => {
            time::sleep(duration);
            0
        }
        None => fail(EINVAL),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_times_are_times() {
        let of = |seconds, nanoseconds| TimeSpec { seconds, nanoseconds }.duration();
        assert_eq!(of(2, 999_999_999), Some(Duration::new(2, 999_999_999)));
        assert_eq!((of(-1, 0), of(0, -1), of(0, 1_000_000_000)), (None, None, None));
    }
}
