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
//! task that is preempted. Between levels nothing is lent.

use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::compiler_fence;

use tench::sys::{Message, Notification, Reply, ThreadBlock, Wait};

use super::life::{configure, retire};
use super::session::{NOBODY, Place, SESSION, Task};
use super::{Kept, events};
use crate::Tid;

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
    match SESSION.running() {
        Some(me) if SESSION.task(me).block.load(Relaxed) == own_block() => {
            if !shut_out_events(me) {
                enter_in_turn(me);
            }
            me
        }
        _ => {
            let Some(me) = SESSION.find(own_block()) else { panic!("only tasks can do this; see tench_srr::run") };
            enter_in_turn(me);
            me
        }
    }
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
#[cold]
#[inline(never)]
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
        None => idle(me),
    }
}

/// Switches from the running task to another; returns when it is the calling task's turn again.
#[inline]
pub fn switch(me: Tid, next: Tid) {
    let (own, other) = (SESSION.task(me), SESSION.task(next));
    // Preempted tasks have lower levels than the running one.
    if own.level.load(Relaxed) != other.level.load(Relaxed) {
        return switch_slowly(me, next);
    }
    if other.place() == Place::Endpoint {
        SESSION.running.store(next.0, Relaxed);
        other.is_busy.store(true, Relaxed);
        own.held.set(other.bound.get::<Reply>());
        own.set_place(Place::Hook);
        check(me, other.endpoint().call0(GO_ON).kept().label());
    } else if other.place() == Place::Hook && other.held.get::<Reply>() == own.bound.get() {
        SESSION.running.store(next.0, Relaxed);
        own.is_busy.store(false, Relaxed);
        own.set_place(Place::Endpoint);
        check(me, own.endpoint().reply_receive0(GO_ON).kept().label());
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
fn switch_slowly(me: Tid, mut next: Tid) {
    let own = SESSION.task(me);
    let level = own.level.load(Relaxed);
    // Before the other runs, which may call this one.
    let place = place_at_endpoint(own);
    own.set_place(place);
    if SESSION.task(next).preempted.load(Relaxed) {
        // It may be in its own code, and would not see an event that came before it continues.
        hold_off_events(me);
        if events::take_pending() && SESSION.table.is_outranked(next) {
            SESSION.table.queue_first(next);
            next = SESSION.table.take_next().unwrap_or(next);
        }
    }
    wake(next, level);
    receive_turn(me, place);
}

/// Lets no event's task run until the calling thread waits, since it has the priority of those that sleep until an
/// event, from now on. Whoever lets it go on takes that priority from it.
pub fn hold_off_events(me: Tid) {
    configure(me, SESSION.top.load(Relaxed));
}

/// Returns how a thread waits at its endpoint now.
fn place_at_endpoint(task: &Task) -> Place {
    if task.is_busy.load(Relaxed) { Place::EndpointWithSpare } else { Place::Endpoint }
}

/// Makes a task the running one, and its thread ready, at a level unless it was preempted at another. The calling
/// thread, whose priority is not lower, then waits.
pub fn wake(next: Tid, level: u32) {
    let task = SESSION.task(next);
    let own_level = task.level.load(Relaxed);
    let preempted = task.preempted.swap(false, Relaxed);
    let level = if preempted { own_level } else { level };
    SESSION.running.store(next.0, Relaxed);
    if own_level > level {
        configure(next, level);
    }
    let place = if preempted { task.replace_place(Place::Continuing) } else { task.place() };
    let_go_on(task, place, GO_ON);
    // Now its priority affects no thread that was preempted while it worked for this task.
    if own_level < level {
        configure(next, level);
    }
}

/// Ends the wait of a task's thread in a place, if it waits.
pub fn let_go_on(task: &Task, place: Place, label: u64) {
    match place {
        Place::Endpoint | Place::EndpointWithSpare => {
            task.endpoint().send(&Message::new(label), Wait::FOREVER).kept();
        }
        Place::Hook => {
            let held = task.held.get::<Reply>();
            SESSION.release(held);
            held.reply(&Message::new(label)).kept();
        }
        Place::Preempted | Place::Continuing => {}
    }
}

/// Lets nobody run, until an event comes or the session is over. Returns when it is the calling task's turn again.
#[cold]
#[inline(never)]
fn idle(me: Tid) {
    let task = SESSION.task(me);
    let level = task.level.load(Relaxed);
    let place = place_at_endpoint(task);
    task.set_place(place);
    hold_off_events(me);
    let_next_run(level);
    receive_turn(me, place);
}

/// Lets the next task run, at a level unless it was preempted at another, or nobody. The calling thread, which holds
/// off events, then waits or ends.
pub fn let_next_run(level: u32) {
    events::take_pending();
    if let Some(next) = SESSION.table.take_next() {
        return wake(next, level);
    }
    SESSION.running.store(NOBODY, Relaxed);
    if SESSION.table.awaits_events() {
        events::begin_idling();
    } else {
        // The session's caller has a lower priority.
        SESSION.over.store(true, Relaxed);
        SESSION.caller.get::<Notification>().signal().kept();
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
