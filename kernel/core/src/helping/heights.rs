//! How long chains of helpers get: a change goes from a thread that waits to the one that it waits for, and on, so
//! there has to be a bound.
//!
//! A thread's *height* is greater than that of each helper, 0 without helpers, and at most [`MAX_HEIGHT`]. So heights
//! grow along each chain, no chain is longer than that, and none is a ring. The kernel asks whether that stays true
//! whenever a thread begins to help: when a wait begins ([`look_ahead`], [`lower`]), and when a caller who was laid
//! aside is one again ([`rejoin`]). A thread that may not help waits as [`slow::HELPLESS`] until that wait ends, behind
//! those who help.
//!
//! If a chain gets too long, the client at its beginning has to stop helping, and no server: a client who brings a
//! chain of his own threads could otherwise keep a server from helping the next one, on behalf of all its clients. So a
//! server says how many servers deep its own calls go, its *depth* (`ThreadServe`), and its height plus its depth is to
//! be at most [`MAX_HEIGHT`] when it calls. The kernel refuses the help of senders that would make it higher. The fast
//! path admits callers of any height; when a thread is about to wait and is too high because of its callers, one of
//! them stops helping ([`excess_caller`]).

use super::{abandon, caller_of, can_help, server_of, settle};
use crate::endpoint::queue;
use crate::object::{Endpoint, Ref};
use crate::thread::{Thread, ThreadState, slow};
use crate::{Arch, Kernel};

/// How many threads that help wait for each other at most, which is also how many times a context is copied.
pub const MAX_HEIGHT: u8 = 4;

/// Greatest height of a helper.
pub const MAX_HELPER: u8 = MAX_HEIGHT - 1;

/// Greatest height of a sender that came before a thread served the endpoint: whichever depth that has, it leaves room
/// for it.
const MAX_EARLY: u8 = MAX_HELPER - tench_abi::object::MAX_DEPTH as u8;

/// Returns the greatest height with which a sender helps at an endpoint that this thread serves.
#[inline]
fn max_sender<A: Arch>(k: &mut Kernel<A>, server: Option<Ref<Thread>>) -> u8 {
    server.map_or(MAX_EARLY, |server| MAX_HELPER - k.get(server).depth)
}

/// Returns whether a thread that waits for another may help it, to which it would give this height: if that waits for
/// nobody who would get too high by that, and not for the thread itself.
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

/// A thread is about to wait at an endpoint, which perhaps another serves. If it is too high to help that one, callers
/// of its stop helping; if it still may not help, it is marked.
#[inline]
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
        k.get(thread).slow |= slow::HELPLESS;
    }
}

/// A thread is about to help another, and may do so with a height of at most `most`: callers stop helping until it has
/// no more than that, or until none of them is the cause.
#[cold]
#[inline(never)]
pub fn lower<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, most: u8) {
    while let Some(caller) = excess_caller(k, thread, most) {
        stop_helping(k, caller);
    }
}

/// Returns the caller because of whom a thread is higher than `most`. If the thread's own caller is a server that is
/// itself higher than its depth allows, the search goes on with that server's caller, and so on.
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

/// A thread waits at an endpoint that another serves, from now on: it helps.
#[inline]
pub fn join<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, server: Ref<Thread>) {
    let t = k.get(thread);
    let (priority, height) = (t.priority, t.height);
    let s = k.get(server);
    if priority > s.priority || queue::height_by_sender(height, s.depth) > s.height {
        settle(k, server);
    }
}

/// A thread serves an endpoint from now on, where others may wait: they help. It helps nobody itself any more until its
/// next wait, so that nobody has to look who among them waits for whom.
pub fn serve<A: Arch>(k: &mut Kernel<A>, server: Ref<Thread>, endpoint: Ref<Endpoint>) {
    if k.get(endpoint).helpers[2] != 0 {
        // Of senders that waited while it was last served, only that some are of height 2 or 3 is known. Those of
        // height 3 leave no room.
        k.get(server).depth = 0;
    }
    if k.get(server).slow & slow::HELPED != 0 {
        stop_helping(k, server);
    }
    settle(k, server);
}

/// A thread that waits helps no more in this wait.
#[cold]
fn stop_helping<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    let server = server_of(k, thread);
    if let ThreadState::Sending(endpoint) = k.get(thread).state {
        // Where nobody serves the endpoint yet, too: whoever does would be helped.
        if can_help(k, thread) {
            queue::stop_helping(k, endpoint, thread);
        }
        server.map(|server| settle(k, server));
    } else if let Some(server) = server {
        k.get(thread).slow |= slow::HELPLESS;
        abandon(k, server, thread);
    }
}

/// A thread's current reply object is another than before, without its having received: whoever is the caller in it
/// helps again, if he may.
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
    settle(k, thread);
}

/// Returns a thread's height, from those of the threads that help it.
fn height_of<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> u8 {
    let by_caller = caller_of(k, thread).map_or(0, |caller| k.get(caller).height + 1);
    let t = k.get(thread);
    let depth = t.depth;
    match t.served.filter(|_| t.slow & slow::HELPED != 0) {
        Some(endpoint) => by_caller.max(queue::height_above(k, endpoint, depth)),
        None => by_caller,
    }
}

/// A thread has the height that follows from who helps it. Returns whether that is another than before.
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
