//! Bounds on chains of helpers. A change propagates from a waiting thread to the thread that it waits for, and on, so
//! the length of such a chain has to be bounded.
//!
//! A thread's *height* is greater than that of each thread that helps it, 0 without helpers, and at most
//! [`MAX_HEIGHT`]. So heights grow along each chain, no chain is longer than that, and none is a ring. The kernel
//! checks this whenever a thread begins to help: when a wait begins ([`look_ahead`], [`lower`]), and when a deferred
//! caller becomes a caller again ([`rejoin`]). A thread that may not help waits as [`blocker::HELPLESS`] until that
//! wait ends, behind those that help.
//!
//! If a chain gets too long, the client at its beginning stops helping, and no server does: a client with a chain of
//! its own threads could otherwise keep a server from helping the next one, on behalf of all its clients. So a server
//! declares how many servers deep its own calls go, its *depth* (`ThreadServe`); when it calls, its height plus its
//! depth is to be at most [`MAX_HEIGHT`]. The kernel refuses the help of senders that would make it higher. The fast
//! path admits callers of any height; when a thread is about to wait and its callers have made it too high, one of them
//! stops helping ([`excess_caller`]).

use super::{abandon, caller_of, can_help, propagate, server_of};
use crate::endpoint::Endpoint;
use crate::endpoint::queue;
use crate::object::Ref;
use crate::thread::{Thread, ThreadState, blocker};
use crate::{Arch, Kernel};

/// Maximum length of a chain of helpers, which is also how many times a context is copied.
pub const MAX_HEIGHT: u8 = 4;

/// Maximum height of a helper.
pub const MAX_HELPER: u8 = MAX_HEIGHT - 1;

/// Maximum height of a sender that helps if it came before a thread served the endpoint: it leaves room for any depth.
const MAX_EARLY: u8 = MAX_HELPER - tench_abi::object::MAX_DEPTH as u8;

/// Returns the maximum height with which a sender helps at an endpoint that `server` serves.
fn max_sender<A: Arch>(k: &mut Kernel<A>, server: Option<Ref<Thread>>) -> u8 {
    server.map_or(MAX_EARLY, |server| MAX_HELPER - k.get(server).depth)
}

/// Returns whether `thread` may help `server`, which would get this height: if that makes no thread further along the
/// chain too high, and if the chain does not lead back to `thread`.
fn may_help<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, server: Ref<Thread>, height: u8) -> bool {
    let (mut at, mut height) = (server, height);
    loop {
        if at == thread || height > MAX_HEIGHT {
            return false;
        }
        if height <= k.get(at).height {
            return true;
        }
        let next = server_of(k, at);
        if matches!(k.get(at).state, ThreadState::Sending(_)) && can_help(k, at) {
            if height > max_sender(k, next) {
                return false;
            }
            height = next.map_or(0, |next| queue::height_by_sender(height, k.get(next).depth));
        } else {
            height += 1;
        }
        let Some(next) = next else { return true };
        at = next;
    }
}

/// Prepares a thread to wait at an endpoint, which `server` may serve. If the thread is too high to help the server,
/// callers of the thread stop helping; if it still may not help, it is marked `HELPLESS`.
pub fn look_ahead<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, server: Option<Ref<Thread>>) {
    if !can_help(k, thread) {
        return;
    }
    let most = max_sender(k, server);
    if k.get(thread).height > most && server.is_some() {
        lower(k, thread, most);
    }
    let height = k.get(thread).height;
    let may = height <= most
        && server.is_none_or(|server| {
            let given = queue::height_by_sender(height, k.get(server).depth);
            may_help(k, thread, server, given)
        });
    if !may {
        k.get(thread).blockers |= blocker::HELPLESS;
    }
}

/// Lowers a thread that is about to help another to a height of at most `most`: its callers stop helping, one after
/// another, until the height is reached or none of them is the cause.
#[cold]
#[inline(never)]
pub fn lower<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, most: u8) {
    while let Some(caller) = excess_caller(k, thread, most) {
        stop_helping(k, caller);
    }
}

/// Returns the caller that makes a thread higher than `most` allows. If the thread's own caller is a server that is
/// itself higher than its depth allows, the search continues with that server's caller, and so on.
fn excess_caller<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, most: u8) -> Option<Ref<Thread>> {
    let (mut found, mut at, mut most) = (None, thread, most);
    while let Some(caller) = caller_of(k, at) {
        let c = k.get(caller);
        if c.height < most {
            break;
        }
        (found, at, most) = (Some(caller), caller, MAX_HEIGHT - c.depth.max(1));
    }
    found
}

/// Makes a thread that has begun to wait at an endpoint help the endpoint's server.
pub fn join<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, server: Ref<Thread>) {
    let t = k.get(thread);
    let (priority, height) = (t.priority, t.height);
    let s = k.get(server);
    if priority > s.priority || queue::height_by_sender(height, s.depth) > s.height {
        propagate(k, server);
    }
}

/// Makes the senders that wait at an endpoint help a thread that begins to serve it. If there are any, the server
/// itself helps no other thread until its next wait, so that no search is needed for rings among them.
pub fn serve<A: Arch>(k: &mut Kernel<A>, server: Ref<Thread>, endpoint: Ref<Endpoint>) {
    if k.get(endpoint).helpers[2] != 0 {
        // For senders that waited while the endpoint was last served, the kernel knows only that some have height 2 or
        // 3. Those of height 3 leave no room for a depth.
        k.get(server).depth = 0;
    }
    if k.get(server).blockers & blocker::HELPED != 0 {
        stop_helping(k, server);
    }
    propagate(k, server);
}

/// Ends a waiting thread's help until its next wait.
#[cold]
fn stop_helping<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    let server = server_of(k, thread);
    if let ThreadState::Sending(endpoint) = k.get(thread).state {
        // Also at an endpoint that is not served: the thread would help whichever thread begins to serve it.
        if can_help(k, thread) {
            queue::stop_helping(k, endpoint, thread);
        }
        server.map(|server| propagate(k, server));
    } else if let Some(server) = server {
        k.get(thread).blockers |= blocker::HELPLESS;
        abandon(k, server, thread);
    }
}

/// Makes the caller in a thread's current reply object help again, if it may, after that reply object has changed
/// without a receive.
pub fn rejoin<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    if let Some(caller) = caller_of(k, thread) {
        if k.get(caller).height > MAX_HELPER {
            lower(k, caller, MAX_HELPER);
        }
        let height = k.get(caller).height + 1;
        if !may_help(k, caller, thread, height) {
            stop_helping(k, caller);
        }
    }
    propagate(k, thread);
}

/// Returns the height that follows from the threads that help a thread.
fn height_of<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> u8 {
    let by_caller = caller_of(k, thread).map_or(0, |caller| k.get(caller).height + 1);
    let t = k.get(thread);
    let depth = t.depth;
    match t.served.filter(|_| t.blockers & blocker::HELPED != 0) {
        Some(endpoint) => by_caller.max(queue::height_above(k, endpoint, depth)),
        None => by_caller,
    }
}

/// Updates a thread's height. Returns whether it has changed.
pub(super) fn take_height<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> bool {
    let height = height_of(k, thread);
    let t = k.get(thread);
    let (before, state) = (core::mem::replace(&mut t.height, height), t.state);
    if before == height {
        return false;
    }
    if let ThreadState::Sending(endpoint) = state
        && can_help(k, thread)
    {
        queue::change_height(k, endpoint, before, height);
    }
    true
}
