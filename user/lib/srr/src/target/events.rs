//! Events, and the time in which no task can run.
//!
//! A task that waits for the clock's event sleeps in the kernel until the tick. Then it continues at once, if it has a
//! higher priority than the running task, which stays where it is, before its equals.
//!
//! # Consistency
//!
//! The running task may be in the middle of a primitive that has only partly changed the session's state. [`INSIDE`]
//! names the task that has begun a primitive and not ended it. If that task is ready, it was interrupted there, and the
//! task to which the event has come sleeps a little more, so that the other can finish; that takes some hundred
//! instructions. If it is not ready, it waits in the kernel, with consistent state, and needs no waiting for.
//!
//! # Idling
//!
//! The session's caller runs when no task can. While a task waits for an event the session is not over: the caller
//! sleeps and notes the time, and is woken by the first task to which an event comes, which also counts how long that
//! was.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use tench::abi::object::ThreadState;
use tench::sys::{Cap, Instant, Notification};
use tench::{thread, time};

use super::session::{Later, SESSION};
use super::{Kept, enter, outside, refuse};
use crate::{CLOCK_EVENT, Error, TICKS_PER_SECOND, Tid};

/// The task that is in a primitive: its identifier plus 1; 0 for none.
pub static INSIDE: AtomicU32 = AtomicU32::new(0);

/// Fraction of a second for which a task sleeps that finds another in a primitive: 20 microseconds.
const CHECKS_PER_SECOND: u64 = 50_000;

/// Start of the session, in ticks of the system counter.
static BEGAN: AtomicU64 = AtomicU64::new(0);
/// Time since when no task can run, in ticks of the system counter; 0 while one can.
static IDLE_SINCE: AtomicU64 = AtomicU64::new(0);
/// Duration for which no task could run before that, in ticks of the system counter.
static IDLE: AtomicU64 = AtomicU64::new(0);
/// Notification for which the session's caller waits.
static CALLER: Later = Later::none();

/// Resets the state for a new session.
pub fn reset() {
    BEGAN.store(Instant::now().ticks(), Relaxed);
    IDLE.store(0, Relaxed);
    IDLE_SINCE.store(0, Relaxed);
    INSIDE.store(0, Relaxed);
    match thread::own_notification() {
        Some(notification) => CALLER.set(notification),
        None => CALLER.clear(),
    }
}

/// Returns how long the session has lasted, in ticks of the system counter.
fn lasted() -> u64 {
    Instant::now().ticks() - BEGAN.load(Relaxed)
}

pub fn ticks() -> u64 {
    (u128::from(lasted()) * u128::from(TICKS_PER_SECOND) / u128::from(time::frequency())) as u64
}

/// Returns the instant of a tick.
fn instant_of(tick: u64) -> Instant {
    // Rounded up, so that the tick is over by then.
    let after = (u128::from(tick) * u128::from(time::frequency())).div_ceil(u128::from(TICKS_PER_SECOND));
    Instant::from_ticks(BEGAN.load(Relaxed)).after(after as u64)
}

/// Ends an interval in which no task could run, if there was one.
fn end_idling() {
    let since = IDLE_SINCE.swap(0, Relaxed);
    if since != 0 {
        IDLE.store(IDLE.load(Relaxed) + (Instant::now().ticks() - since), Relaxed);
    }
}

/// Waits for an event because no task can run, if any task waits for one; the session's caller calls this. Returns
/// false if the session is over.
pub fn idle() -> bool {
    // Noted first: a task to which an event comes from now on wakes the caller.
    IDLE_SINCE.store(Instant::now().ticks(), Relaxed);
    let goes_on = SESSION.table.awaits_events();
    if goes_on {
        if CALLER.is_made() {
            CALLER.get::<Notification>().wait().kept();
        } else {
            // Without memory for a notification, the caller can only poll.
            thread::yield_now();
        }
    }
    end_idling();
    goes_on
}

/// Returns whether a task was interrupted in a primitive.
fn is_somebody_inside() -> bool {
    let Some(tid) = INSIDE.load(Relaxed).checked_sub(1).map(Tid) else { return false };
    SESSION.thread(tid).query().is_ok_and(|info| info.state == ThreadState::Ready)
}

/// Sleeps until a time, on the notification of a task.
fn sleep(notification: Cap<Notification>, deadline: Instant) {
    while Instant::now() < deadline {
        // Nobody signals the notification; a signal would end the sleep early.
        let _ = notification.wait_until(deadline);
    }
}

pub fn await_event(event: i32) -> Result<u64, Error> {
    let me = enter();
    let next = instant_of(ticks() + 1);
    if let Err(error) = SESSION.table.await_event(me, event) {
        return refuse(me, error);
    }
    INSIDE.store(0, Relaxed);
    let notification = SESSION.notification(me);
    sleep(notification, next);
    while is_somebody_inside() {
        sleep(notification, Instant::now().after(time::frequency() / CHECKS_PER_SECOND));
    }
    SESSION.table.event_comes(CLOCK_EVENT);
    let was_idle = IDLE_SINCE.load(Relaxed) != 0;
    end_idling();
    if was_idle && CALLER.is_made() {
        // The caller runs when no task can any more.
        CALLER.get::<Notification>().signal().kept();
    }
    outside::leave_primitive(me);
    Ok(ticks())
}

pub fn idle_share() -> u32 {
    (u128::from(IDLE.load(Relaxed)) * 1000 / u128::from(lasted().max(1))) as u32
}
