//! Events, and the time in which no task can run.
//!
//! A task that waits for the clock's event sleeps in the kernel until the tick, with a higher priority than all others.
//! Then it decides what happens, because nothing else of the session runs until it waits again:
//!
//! - If all tasks wait, or the running task has a lower priority and is in its own code, the task continues at once.
//!   The thread of the preempted task stays ready in the kernel, where it stands before its equals in the table. So it
//!   may release a lock that the new task needs; but it begins no primitive before its turn has come.
//! - If the running task is in a primitive, whose changes may be half done, it is left to record the event as its last
//!   step ([`take_pending`]).
//! - Otherwise the event's task is ready, and waits for its turn like others.
//!
//! So an event may come between any two instructions. A task shuts events out for its primitive, and looks *then*
//! whether it is still its turn. A preempted task that continues looks for no event, and if no task continues, nobody
//! does. So the task that gives away its turn looks *afterwards* whether an event came before, and if so takes the turn
//! back.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tench::sys::{Error as SystemError, Instant, Wait};
use tench::time;

use super::Kept;
use super::life::configure;
use super::session::{Place, SESSION, Task};
use super::switch::{enter, leave, let_next_run, receive_turn, requeue};
use crate::{CLOCK_EVENT, Error, TICKS_PER_SECOND, Tid};

/// Start of the session, in ticks of the system counter.
static BEGAN: AtomicU64 = AtomicU64::new(0);
/// Time since when no task can run, in ticks of the system counter; 0 while one can.
static IDLE_SINCE: AtomicU64 = AtomicU64::new(0);
/// Duration for which no task could run before that, in ticks of the system counter.
static IDLE: AtomicU64 = AtomicU64::new(0);

/// Resets the state for a new session.
pub fn reset() {
    BEGAN.store(Instant::now().ticks(), Relaxed);
    IDLE.store(0, Relaxed);
    IDLE_SINCE.store(0, Relaxed);
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

/// Begins an interval in which no task can run.
pub fn begin_idling() {
    IDLE_SINCE.store(Instant::now().ticks(), Relaxed);
}

/// Ends an interval in which no task could run, if there was one.
pub fn end_idling() {
    let since = IDLE_SINCE.swap(0, Relaxed);
    if since != 0 {
        IDLE.store(IDLE.load(Relaxed) + (Instant::now().ticks() - since), Relaxed);
    }
}

/// Waits until a time at a task's endpoint, where nobody calls meanwhile, with its spare reply object. Afterwards the
/// thread has its own priority: it has that of who waits in the reply object with which it has received last.
fn wait_with_spare(task: &Task, deadline: Instant) {
    match task.endpoint().receive(Wait::until(deadline).with_reply(task.spare())) {
        Err(SystemError::TimedOut) => {}
        other => drop(other.kept()),
    }
}

pub fn await_event(event: i32) -> Result<u64, Error> {
    let me = enter();
    let next = instant_of(ticks() + 1);
    if let Err(error) = SESSION.table.await_event(me, event) {
        requeue(me);
        return Err(error);
    }
    let task = SESSION.task(me);
    let level = task.level.load(Relaxed);
    task.set_place(Place::EndpointWithSpare);
    configure(me, SESSION.top.load(Relaxed));
    if task.guest().is_some() {
        // Nobody preempts it from here until it sleeps.
        wait_with_spare(task, Instant::from_ticks(0));
    }
    let_next_run(me, level);
    while Instant::now() < next {
        wait_with_spare(task, next);
    }
    end_idling();
    if !take_over(me) {
        // Not with the bound reply object: another task may be about to let the one go on that waits there.
        receive_turn(me, Place::EndpointWithSpare);
    }
    leave(me);
    Ok(ticks())
}

/// Records that the event has come for which a task has waited, and makes that task the running one if it may. The
/// thread keeps its high priority until then or until it is woken.
fn take_over(me: Tid) -> bool {
    let level = match SESSION.running() {
        None => 0,
        Some(running) if SESSION.task(running).inside.load(Relaxed) => {
            SESSION.pending.store(true, Relaxed);
            return false;
        }
        Some(running) => {
            let task = SESSION.task(running);
            let level = task.level.load(Relaxed) + 1;
            let may = SESSION.table.priority(me) > SESSION.table.priority(running);
            // Without a level for the task, one of higher priority than the running one may be ready already.
            if !may || level >= SESSION.top.load(Relaxed) || SESSION.table.is_outranked(running) {
                SESSION.table.event_comes(CLOCK_EVENT);
                return false;
            }
            task.set_place(Place::Preempted);
            task.preempted.store(true, Relaxed);
            SESSION.table.queue_first(running);
            level
        }
    };
    SESSION.table.event_comes(CLOCK_EVENT);
    // Nobody who is ready has its priority.
    SESSION.table.take_next();
    SESSION.running.store(me.0, Relaxed);
    configure(me, level);
    true
}

/// Records an event that came during a primitive. Returns whether one did.
pub fn take_pending() -> bool {
    SESSION.pending.swap(false, Relaxed) && SESSION.table.event_comes(CLOCK_EVENT).is_some()
}

pub fn idle_share() -> u32 {
    (u128::from(IDLE.load(Relaxed)) * 1000 / u128::from(lasted().max(1))) as u32
}
