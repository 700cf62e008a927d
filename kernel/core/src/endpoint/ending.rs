//! How a wait of any kind ends with an error: because it is cancelled, its time is up, or its object is deleted.

use tench_abi::Error;

use super::queue::{self, unqueue_receiver};
use super::update_server;
use crate::object::Ref;
use crate::syscall::clear;
use crate::thread::{Thread, ThreadState, blocker};
use crate::{Arch, Kernel, fault, helping, notification, reply, scheduler, step, timers};

/// Ends a thread's wait of any kind with an error. A thread that waited in a fault stays stopped.
pub fn cancel<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, error: Error) {
    end_wait(k, thread, error, scheduler::make_ready);
}

/// Ends a thread's wait of any kind with an error, and suspends the thread, unless it waited in a fault: then it stays
/// stopped.
#[inline(always)]
pub fn cancel_and_suspend<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, error: Error) {
    end_wait(k, thread, error, |k, thread| k.get(thread).state = ThreadState::Suspended);
}

/// Ends a thread's wait of any kind with an error. `goes_on` says what becomes of a thread that did not wait in a
/// fault.
fn end_wait<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, error: Error, goes_on: fn(&mut Kernel<A>, Ref<Thread>)) {
    match k.get(thread).state {
        ThreadState::Ready | ThreadState::Suspended | ThreadState::Faulted => {}
        ThreadState::Receiving(endpoint) => {
            unqueue_receiver(k, endpoint, thread);
            wake(k, thread, error, goes_on);
        }
        ThreadState::Waiting(object) => {
            notification::unqueue(k, object, thread);
            wake(k, thread, error, goes_on);
        }
        ThreadState::Sending(_) | ThreadState::AwaitingReply(_) => end_wait_for_server(k, thread, error, goes_on),
    }
}

/// Ends a wait as [`end_wait`] does, for a thread that may help another. (A function of its own, because only this case
/// needs to store registers.)
#[inline(never)]
fn end_wait_for_server<A: Arch>(
    k: &mut Kernel<A>,
    thread: Ref<Thread>,
    error: Error,
    goes_on: fn(&mut Kernel<A>, Ref<Thread>),
) {
    match k.get(thread).state {
        ThreadState::Sending(endpoint) => {
            queue::leave(k, thread);
            wake(k, thread, error, goes_on);
            update_server(k, endpoint);
        }
        ThreadState::AwaitingReply(object) => {
            let server = helping::server_of(k, thread);
            reply::forget_caller(k, object);
            wake(k, thread, error, goes_on);
            if let Some(server) = server {
                helping::abandon(k, server, thread);
            }
        }
        _ => {}
    }
}

/// Wakes a thread whose wait has ended with an error.
#[inline(never)]
fn wake<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, error: Error, goes_on: fn(&mut Kernel<A>, Ref<Thread>)) {
    if k.get(thread).blockers & (blocker::DEADLINE | blocker::FAULT | blocker::HELPLESS) != 0 {
        wake_specially(k, thread, error, goes_on);
    } else {
        fail(k, thread, error, goes_on);
    }
}

/// Wakes a thread as [`wake`] does, after a wait with a deadline, in a fault, or without helping.
#[inline(never)]
fn wake_specially<A: Arch>(
    k: &mut Kernel<A>,
    thread: Ref<Thread>,
    error: Error,
    goes_on: fn(&mut Kernel<A>, Ref<Thread>),
) {
    timers::end_wait(k, thread);
    let t = k.get(thread);
    t.blockers &= !blocker::HELPLESS;
    if t.blockers & blocker::FAULT != 0 {
        fault::forget(t);
        step::raise_again(t);
        t.state = ThreadState::Faulted;
    } else {
        fail(k, thread, error, goes_on);
    }
}

/// Makes the system call in which a thread waited fail.
#[inline(never)]
fn fail<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, error: Error, goes_on: fn(&mut Kernel<A>, Ref<Thread>)) {
    let t = k.get(thread);
    clear(&mut t.registers.x);
    t.registers.x[0] = error as u64;
    goes_on(k, thread);
}
