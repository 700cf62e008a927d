//! Points in time in C's form.

use core::ffi::{c_int, c_long};
use core::sync::atomic::{AtomicU64, Ordering};

use tench::memory;
use tench::sys::time::ticks;
use tench::sys::{Cap, CapAddress, Error, Instant, Notification};
use tench::time::{self, Duration};

use crate::errno::{EINVAL, fail};

/// A time in seconds and nanoseconds.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TimeSpec {
    /// Seconds.
    pub seconds: c_long,
    /// Nanoseconds, less than 10⁹.
    pub nanoseconds: c_long,
}

impl TimeSpec {
    /// Returns the time as a duration, if it is valid.
    pub fn duration(self) -> Option<Duration> {
        let nanoseconds = u32::try_from(self.nanoseconds).ok().filter(|nanoseconds| *nanoseconds < 1_000_000_000)?;
        Some(Duration::new(u64::try_from(self.seconds).ok()?, nanoseconds))
    }

    /// Returns the time as an instant. A time of the wall clock before the machine was started is taken for one of the
    /// other clock: this long after that.
    pub fn instant(self) -> Option<Instant> {
        let time = self.duration()?;
        let since_start = time.checked_sub(wall_clock_at_start()).unwrap_or(time);
        Some(Instant::from_ticks(ticks(since_start, time::frequency())))
    }
}

impl From<Duration> for TimeSpec {
    fn from(time: Duration) -> TimeSpec {
        TimeSpec { seconds: time.as_secs() as c_long, nanoseconds: time.subsec_nanos().into() }
    }
}

/// Clock of [`clock_gettime`] that shows the time since 1970.
const REALTIME: c_int = 0;
/// Clock that shows the time since the machine was started.
const MONOTONIC: c_int = 1;

/// Returns the wall-clock time at which the machine was started, or zero if nobody knows the date: then the wall clock
/// counts from there. The clock server is asked once.
fn wall_clock_at_start() -> Duration {
    /// Reply of the server in nanoseconds, and 1 more; 0 before. Of threads that ask at the same time, the one with
    /// the latest date counts.
    static KNOWN: AtomicU64 = AtomicU64::new(0);
    if let Some(known) = KNOWN.load(Ordering::Relaxed).checked_sub(1) {
        return Duration::from_nanos(known);
    }
    let asked = time::wall_clock_at_start().unwrap_or_default().as_nanos() as u64 + 1;
    Duration::from_nanos(KNOWN.fetch_max(asked, Ordering::Relaxed).max(asked) - 1)
}

/// Returns a caller's deadline in ticks.
///
/// # Safety
/// `time` must point to a time.
pub unsafe fn deadline(time: *const TimeSpec) -> Result<u64, c_int> {
    // SAFETY: the caller guarantees it.
    unsafe { *time }.instant().map(Instant::ticks).ok_or(EINVAL)
}

/// Stores the time that a clock shows.
///
/// # Safety
/// `pointer` must point to memory for a time.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn clock_gettime(clock: c_int, pointer: *mut TimeSpec) -> c_int {
    let start = match clock {
        REALTIME => wall_clock_at_start(),
        MONOTONIC => Duration::ZERO,
        _ => return fail(EINVAL),
    };
    // SAFETY: the caller guarantees it.
    unsafe { *pointer = start.saturating_add(time::uptime()).into() };
    0
}

/// Returns the wall clock's seconds since 1970, and stores them as well unless the pointer is null.
///
/// # Safety
/// `pointer` must be null or point to memory for a number of seconds.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn time(pointer: *mut c_long) -> c_long {
    let seconds = wall_clock_at_start().saturating_add(time::uptime()).as_secs() as c_long;
    if !pointer.is_null() {
        // SAFETY: the caller guarantees it.
        unsafe { *pointer = seconds };
    }
    seconds
}

/// Sleeps for a duration. Nothing ends the sleep early.
///
/// # Safety
/// `duration` must point to a time, and `left` must be null or point to memory for one.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn nanosleep(duration: *const TimeSpec, _left: *mut TimeSpec) -> c_int {
    // SAFETY: the caller guarantees it.
    match unsafe { *duration }.duration() {
        Some(duration) => {
            time::sleep(duration);
            0
        }
        None => fail(EINVAL),
    }
}

/// Returns the nanoseconds since the machine was started. They last for 584 years.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn tench_time() -> u64 {
    u64::try_from(time::uptime().as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the instant this many nanoseconds after the machine was started, or the first after it that the counter can
/// represent.
fn instant(nanoseconds: u64) -> Instant {
    Instant::from_ticks(ticks(Duration::from_nanos(nanoseconds), time::frequency()))
}

/// Sleeps for a number of nanoseconds.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn tench_delay(nanoseconds: u64) {
    time::sleep(Duration::from_nanos(nanoseconds));
}

/// Sleeps until a time.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn tench_delay_until(nanoseconds: u64) {
    time::sleep_until(instant(nanoseconds));
}

/// Returns a kernel's result in C's form.
fn code(result: Result<(), Error>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(error) => -(error as c_int),
    }
}

/// Returns the slot of a new notification; 0 if there is no memory for one.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn tench_notification() -> u32 {
    memory::make::<Notification>(0).map_or(0, |made| made.leak().address().0)
}

/// Signals a notification.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn tench_signal(notification: u32) -> c_int {
    code(Cap::<Notification>::new(CapAddress(notification)).signal())
}

/// Waits for a notification, at most until a deadline if that is not 0.
///
/// # Safety
/// `bits` must be null or point to memory for a number.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn tench_await_event(notification: u32, nanoseconds: u64, bits: *mut u64) -> c_int {
    let deadline = (nanoseconds != 0).then(|| instant(nanoseconds));
    let result = time::await_event(Cap::new(CapAddress(notification)), deadline);
    if let Ok(found) = result
        && !bits.is_null()
    {
        // SAFETY: the caller guarantees it.
        unsafe { *bits = found };
    }
    code(result.map(drop))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_the_numbers_of_the_header() {
        let header = include_str!("../include/tench.h");
        assert!(header.contains(&format!("#define TENCH_TIMED_OUT ({})\n", code(Err(Error::TimedOut)))));
        assert_eq!(code(Ok(())), 0);
    }

    #[test]
    fn only_times_are_times() {
        let of = |seconds, nanoseconds| TimeSpec { seconds, nanoseconds }.duration();
        assert_eq!(of(2, 999_999_999), Some(Duration::new(2, 999_999_999)));
        assert_eq!((of(-1, 0), of(0, -1), of(0, 1_000_000_000)), (None, None, None));
    }
}
