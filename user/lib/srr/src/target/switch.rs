//! Switching from one task's thread to another's, and entering and leaving primitives.
//!
//! Only the running task's thread is ready in the kernel; the others wait, each in its [`Place`]. Who runs next is the
//! table's decision, and the kernel's part is to stop one thread and let the other go on. Its fastest system calls that
//! do this are a call and the reply to a call:
//!
//! - If the next task's thread waits at its endpoint, the running one *calls* there. It then waits in the other's bound
//!   reply object.
//! - If the next task's thread waits in the running one's bound reply object, the running one *replies*, and in the
//!   same system call waits at its own endpoint.
//! - Otherwise the running one lets the next one go on by a message or a reply, and then waits at its own endpoint. If
//!   a thread still waits in its bound reply object, it takes a spare one there, and is let go on by a message. So two
//!   tasks that switch to each other come to the fast calls after a few switches, whatever was before.
//!
//! No message carries anything: the tasks share their memory, so the running task copies messages and replies into the
//! buffers of tasks that wait, and notes the rest in their [`Task`].
//!
//! Caller and receiver have the same kernel priority, so it does not matter that the kernel lends the one's to the
//! other. Only a task that an event has awakened has a higher one, and whoever runs on its account: a *level* for each
//! task that is preempted. Between levels nothing is lent. A called thread has its caller's priority *in place of* its
//! own, so a level is set for all threads that wait for one another ([`configure_chain`]), and a task that awaits an
//! event first leaves its caller aside.

use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::compiler_fence;

use tench::sys::{Message, Notification, ThreadBlock, Wait};

use super::life::{configure, retire};
use super::session::{NOBODY, Place, SESSION, Task};
use super::{Kept, events};
use crate::{MAX_TASKS, Tid};

/// Label of a message that lets a task go on.
pub const GO_ON: u64 = 0;
/// Label of a message that says that the session is over.
pub const END: u64 = 1;

/// Returns the address of the running thread's block.
#[inline]
pub fn own_block() -> usize {
    ThreadBlock::current().map_or(0, |block| core::ptr::from_ref(block).addr())
}

/// Begins a primitive of the calling task, which ends with [`leave`]. Meanwhile no event interferes.
///
/// # Panics
/// Panics if the caller is no task.
#[inline]
pub fn enter() -> Tid {
    // While nobody runs, this is some task whose turn it is not.
    let running = Tid(SESSION.running.load(Relaxed) % MAX_TASKS as u32);
    if SESSION.task(running).block.load(Relaxed) == own_block() && shut_out_events(running) {
        running
    } else {
        enter_later()
    }
}

/// Begins a primitive, as [`enter`] does, of a task whose turn it was not when it looked.
#[cold]
#[inline(never)]
fn enter_later() -> Tid {
    let Some(me) = SESSION.find(own_block()) else { panic!("only tasks can do this; see tench_srr::run") };
    enter_in_turn(me);
    me
}

/// From now on no event takes over from a task. Returns false if one did just before.
#[inline]
fn shut_out_events(me: Tid) -> bool {
    SESSION.task(me).inside.store(true, Relaxed);
    // The order of these matters to what runs on this core only.
    compiler_fence(SeqCst);
    SESSION.running.load(Relaxed) == me.0
}

/// Begins a primitive of a task that was preempted and that the kernel let go on although it is not its turn, because
/// those whose turn it is wait for something other than tasks, such as memory. So it waits for its turn.
fn enter_in_turn(me: Tid) {
    let task = SESSION.task(me);
    while !shut_out_events(me) {
        task.inside.store(false, Relaxed);
        let place = place_at_endpoint(task);
        if task.replace_place(place) != Place::Continuing {
            receive_turn(me, place);
        }
    }
}

/// Ends a primitive.
#[inline]
pub fn leave(me: Tid) {
    SESSION.task(me).inside.store(false, Relaxed);
    compiler_fence(SeqCst);
    if SESSION.pending.load(Relaxed) {
        leave_after_event(me);
    }
}

/// Ends a primitive during which an event came.
#[cold]
#[inline(never)]
fn leave_after_event(me: Tid) {
    while SESSION.pending.load(Relaxed) {
        // Another event may have taken over just now.
        enter_in_turn(me);
        events::take_pending();
        if SESSION.table.is_outranked(me) {
            SESSION.table.queue_first(me);
            switch_to_next(me);
        }
        SESSION.task(me).inside.store(false, Relaxed);
        compiler_fence(SeqCst);
    }
}

/// Ends a primitive of a task that is still ready: it goes behind its equals.
#[inline]
pub fn requeue(me: Tid) {
    if let Some(next) = SESSION.table.give_way(me) {
        switch(me, next);
    }
    leave(me);
}

/// Switches to the task that runs next; returns when it is the calling task's turn again.
#[inline]
pub fn switch_to_next(me: Tid) {
    match SESSION.table.take_next() {
        Some(next) => switch(me, next),
        None => step_aside(me),
    }
}

/// Switches from the running task to another; returns when it is the calling task's turn again.
#[inline(always)]
pub fn switch(me: Tid, next: Tid) {
    let (own, other) = (SESSION.task(me), SESSION.task(next));
    // Preempted tasks have lower levels than the running one.
    if own.level.load(Relaxed) != other.level.load(Relaxed) {
        return switch_slowly(me, next);
    }
    if own.guest() == Some(next) {
        SESSION.running.store(next.0, Relaxed);
        own.set_guest(None);
        own.set_place(Place::Endpoint);
        check(me, own.endpoint().reply_receive0(GO_ON).kept().label());
    } else if other.place() == Place::Endpoint {
        SESSION.running.store(next.0, Relaxed);
        other.set_guest(Some(me));
        own.set_place(Place::Hook(other.bound.get()));
        check(me, other.endpoint().call0(GO_ON).kept().label());
    } else {
        switch_slowly(me, next);
    }
}

/// Ends the thread's task if the session is over.
#[inline]
fn check(me: Tid, label: u64) {
    if label != GO_ON {
        retire(me);
    }
}

/// As [`switch`], in two steps.
#[cold]
#[inline(never)]
fn switch_slowly(me: Tid, next: Tid) {
    SESSION.table.queue_first(next);
    step_aside(me);
}

/// Switches to the task that runs next, or to nobody until an event comes or the session is over, in two steps. Returns
/// when it is the calling task's turn again.
#[cold]
#[inline(never)]
fn step_aside(me: Tid) {
    let task = SESSION.task(me);
    // Before another task runs, which may call this one.
    let place = place_at_endpoint(task);
    task.set_place(place);
    let_next_run(me, task.level.load(Relaxed));
    receive_turn(me, place);
}

/// Returns how a thread waits at its endpoint now.
fn place_at_endpoint(task: &Task) -> Place {
    if task.guest().is_none() { Place::Endpoint } else { Place::EndpointWithSpare }
}

/// Gives the turn of the calling task to the next one, at a level unless that was preempted at another, or to nobody.
/// The calling thread, whose priority is not lower, then waits or ends.
pub fn let_next_run(me: Tid, level: u32) {
    loop {
        events::take_pending();
        let is_given = match SESSION.table.take_next() {
            Some(next) if SESSION.task(next).preempted.load(Relaxed) => give_back(me, next),
            Some(next) => {
                wake(next, level);
                true
            }
            None => give_to_nobody(me),
        };
        if is_given {
            break;
        }
    }
}

/// Makes a task the running one that waits in a primitive, and its thread ready, at a level.
pub fn wake(next: Tid, level: u32) {
    let task = SESSION.task(next);
    let before = task.level.load(Relaxed);
    SESSION.running.store(next.0, Relaxed);
    if before > level {
        configure_chain(next, level);
    }
    let_go_on(task, task.place(), GO_ON);
    // Now its priority affects no thread that was preempted while it worked for this task.
    if before < level {
        configure_chain(next, level);
    }
}

/// Sets the level of a task's thread, of the thread that waits in its bound reply object, of the one in that one's, and
/// so on: while they wait, it has their priority.
fn configure_chain(tid: Tid, level: u32) {
    let mut next = Some(tid);
    while let Some(tid) = next {
        configure(tid, level);
        next = SESSION.task(tid).guest();
    }
}

/// Gives the turn back to a task that was preempted. Returns false if the turn came back, because of an event.
fn give_back(me: Tid, next: Tid) -> bool {
    let task = SESSION.task(next);
    task.preempted.store(false, Relaxed);
    let place = task.replace_place(Place::Continuing);
    SESSION.running.store(next.0, Relaxed);
    if take_turn_from(next.0, me) {
        // Its thread, whose priority is lower, has not run meanwhile.
        task.set_place(place);
        task.preempted.store(true, Relaxed);
        SESSION.table.queue_first(next);
        return false;
    }
    let_go_on(task, place, GO_ON);
    true
}

/// Gives the turn to nobody until an event comes, or ends the session if none is awaited. Returns false if the turn
/// came back, because of an event.
fn give_to_nobody(me: Tid) -> bool {
    let awaits = SESSION.table.awaits_events();
    if awaits {
        events::begin_idling();
    }
    SESSION.running.store(NOBODY, Relaxed);
    if awaits {
        if take_turn_from(NOBODY, me) {
            events::end_idling();
            return false;
        }
    } else {
        // The session's caller has a lower priority.
        SESSION.over.store(true, Relaxed);
        SESSION.caller.get::<Notification>().signal().kept();
    }
    true
}

/// Takes the turn back from whoever would not see that an event came before the turn was given away. Returns false if
/// none came; then the next event's task takes over by itself.
fn take_turn_from(holder: u32, me: Tid) -> bool {
    // The order of these matters to what runs on this core only.
    compiler_fence(SeqCst);
    SESSION.pending.load(Relaxed) && SESSION.running.compare_exchange(holder, me.0, Relaxed, Relaxed).is_ok()
}

/// Ends the wait of a task's thread in a place, if it waits.
pub fn let_go_on(task: &Task, place: Place, label: u64) {
    match place {
        Place::Endpoint | Place::EndpointWithSpare => {
            task.endpoint().send(&Message::new(label), Wait::FOREVER).kept();
        }
        Place::Hook(held) => {
            SESSION.release(held);
            held.reply(&Message::new(label)).kept();
        }
        Place::Preempted | Place::Continuing => {}
    }
}

/// Waits at the endpoint of a task until it is its turn.
pub fn wait_for_turn(me: Tid) {
    let task = SESSION.task(me);
    let place = place_at_endpoint(task);
    task.set_place(place);
    receive_turn(me, place);
}

/// As [`wait_for_turn`], in a place that was recorded.
pub fn receive_turn(me: Tid, place: Place) {
    let task = SESSION.task(me);
    let wait = match place {
        Place::EndpointWithSpare => Wait::FOREVER.with_reply(task.spare()),
        _ => Wait::FOREVER,
    };
    check(me, task.endpoint().receive(wait).kept().label());
}
