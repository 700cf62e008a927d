//! Who helps: not everybody who waits, since a change goes from one who waits to the one that is waited for, and on.
//!
//! A thread's *height* is more than that of each who helps it, 0 where nobody does, and at most [`MAX_HEIGHT`]. So heights grow along each chain, no
//! chain is longer than that, and none is a ring. Whether that would still be so is asked whenever somebody begins to help: when a wait begins
//! ([`look_ahead`], [`lower`]), and when a caller who was laid aside is one again ([`rejoin`]). Who may not waits without helping ([`slow::HELPLESS`]) until that wait ends,
//! and behind those who do.
//!
//! If a chain would be too long, who began it stops helping, and not a server in it: otherwise a client that brings a chain of his own threads would keep a server from helping
//! the next, for all its clients. A server says for how many others it waits meanwhile, one behind the other: its
//! *depth* (`ThreadServe`). So much below `MAX_HEIGHT` its height has to be. Senders that would be too high wait without helping; and callers, whom a fast path lets in,
//! stop helping as soon as somebody begins to wait who is too high because of them ([`surplus`]).

use super::{abandon, caller_of, can_help, server_of, settle};
use crate::endpoint::queue;
use crate::object::{Endpoint, Ref};
use crate::thread::{Thread, ThreadState, slow};
use crate::{Arch, Kernel};

/// How many threads that help wait for each other at most, which is also how many times a context is copied.
pub const MAX_HEIGHT: u8 = 4;

/// The greatest height of a thread that helps one for which it waits.
pub const MAX_HELPER: u8 = MAX_HEIGHT - 1;

/// The greatest height of a sender that helps whoever begins to serve its endpoint, whatever depth that has.
const MAX_EARLY: u8 = 1;

const _: () = assert!(MAX_HELPER as u64 == tench_abi::object::MAX_DEPTH);

/// Returns the greatest height with which a sender helps at an endpoint, which this thread serves.
#[inline]
fn most_of_senders<A: Arch>(k: &mut Kernel<A>, server: Option<Ref<Thread>>) -> u8 {
    server.map_or(MAX_EARLY, |server| MAX_HELPER - k.get(server).depth)
}

/// Returns whether a thread that waits for another may help it, to which it would give this height: if that waits for nobody who would get too high by
/// that, and not for the thread itself.
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
            if height > most_of_senders(k, next) {
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

/// A thread is about to wait at an endpoint, which perhaps another serves. If it may not help that one, it is marked.
#[inline]
pub fn look_ahead<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, server: Option<Ref<Thread>>) {
    if !can_help(k, thread) {
        return;
    }
    let most = most_of_senders(k, server);
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

/// A thread is about to help another, and its height is more than `most`, with which it may: callers stop helping until it is not, or there is none
/// who could.
#[cold]
#[inline(never)]
pub fn lower<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, most: u8) {
    while let Some(caller) = surplus(k, thread, most) {
        stop_helping(k, caller);
    }
}

/// Returns the caller who makes a thread higher than `most`: its own, unless that is a server itself which is higher than it should be while it waits; then that one's, and so
/// on.
fn surplus<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, most: u8) -> Option<Ref<Thread>> {
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

/// A thread serves an endpoint from now on, where others may wait: they help. It helps nobody itself any more until its next wait, so that nobody
/// has to look who among them waits for whom.
pub fn serve<A: Arch>(k: &mut Kernel<A>, server: Ref<Thread>, endpoint: Ref<Endpoint>) {
    if k.get(endpoint).helpers[2] != 0 {
        // They came when another served it, or the same with a smaller depth: they may have any height.
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

/// A thread's current reply object is another than before, without its having received: whoever is the caller in it helps again, if he may.
pub fn rejoin<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    if let Some(caller) = caller_of(k, thread) {
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
