//! Priority inheritance: a thread for which somebody waits runs at no lower a priority than he who waits.
//!
//! ```text
//!   H, 200 ── Sending ──► endpoint ── server ──► S, 50, runs at 200 ── AwaitingReply ──► reply object ── claimed ──► T, 40,
//!                                                                                                            runs at 200
//! ```
//! A thread inherits from the caller that waits in the reply object bound to it, and from those who wait to send to the endpoint
//! that it serves ([`Binding::Served`](crate::thread::Binding::Served)). Inheritance gives priority, not time: a thread without
//! processor time does not run, whatever it has inherited, but whoever it waits for inherits it in turn.
//!
//! The fast paths know nothing of all this, and need not: a call takes them only if the server's priority is at least the caller's,
//! and the answer only if the server has inherited nothing ([`slow::INHERITS`]). So what is written down is only what exceeds
//! a thread's own priority, and whenever that falls, what it had made superfluous to write down is looked for ([`settle`]).
//!
//! A priority rises at once along the whole chain ([`pass_on`]), but at most [`LINKS`] threads far. It falls, one thread at a time, when the
//! thread answers or receives, or somebody for whom it ran stops waiting. So it can for some time be higher than it need be, and is lower
//! only beyond the end of a chain that is too long.

use crate::object::{Endpoint, Ref};
use crate::thread::{Thread, ThreadState, slow};
use crate::{Arch, Kernel, scheduling};

/// Threads that a rise reaches, one waiting for the other: so many that chains of real systems fit, so few that the time is short.
pub const LINKS: usize = 8;
/// So many of those who wait at an endpoint are looked at when its server's priority is worked out.
pub const WAITING: usize = 32;
/// And so many where something else has to be done in the same stretch: then more often it stays as it was.
pub const FEW: usize = 8;

/// What a thread gives to whoever it waits for.
#[inline(always)]
fn urgency<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> i32 {
    let t = k.get(thread);
    t.priority.max(t.inherited)
}

/// What a thread has already, with time and if it is not parked.
#[inline]
fn cover<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> i32 {
    scheduling::own_priority(k, thread).max(k.get(thread).inherited)
}

/// Whoever inherits from a thread, because that waits for it.
#[inline]
pub fn heir<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Option<Ref<Thread>> {
    match k.get(thread).state {
        ThreadState::AwaitingReply(object) => {
            let r = k.get(object);
            // While it is being answered, its state still says that it waits.
            if r.bound && r.caller == Some(thread) { r.claimed } else { None }
        }
        ThreadState::Sending(endpoint) => k.get(endpoint).server,
        _ => None,
    }
}

/// Writes down what a thread inherits, and it runs at the priority that follows.
fn set<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, inherited: i32) {
    let t = k.get(thread);
    t.inherited = inherited;
    if inherited == 0 {
        t.slow &= !(slow::INHERITS | slow::CUT);
    } else {
        t.slow |= slow::INHERITS;
    }
    scheduling::apply(k, thread);
}

/// A thread waits, or its priority has risen while it does: so does that of whoever it waits for, and so on. Answers how many threads
/// that were. It costs next to nothing where nobody waits or nothing rises.
#[inline]
pub fn pass_on<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> usize {
    match heir(k, thread) {
        Some(heir) => pass_to(k, thread, heir),
        None => 0,
    }
}

/// The same, for a thread that waits for `heir_of_it`. Not inlined: it is seldom called, from many places.
#[inline(never)]
fn pass_to<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, heir_of_it: Ref<Thread>) -> usize {
    let urgency = urgency(k, thread);
    let (mut at, mut next) = (thread, heir_of_it);
    for link in 0..LINKS {
        k.get(at).slow &= !slow::CUT;
        if urgency <= cover(k, next) {
            return link;
        }
        set(k, next, urgency);
        at = next;
        match heir(k, at) {
            Some(heir) => next = heir,
            None => return link + 1,
        }
    }
    if urgency > cover(k, next) {
        k.get(at).slow |= slow::CUT;
    }
    LINKS
}

/// A thread's own priority has risen: it may have no need any more of what it inherited.
#[inline]
pub fn outgrow<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    if k.get(thread).slow & slow::INHERITS != 0 && scheduling::own_priority(k, thread) >= k.get(thread).inherited {
        // The bit stays until the thread answers: more may wait than were looked at.
        let t = k.get(thread);
        t.inherited = 0;
        t.slow &= !slow::CUT;
    }
}

/// What a thread had before it is worked out what it inherits.
struct Before {
    /// What it keeps if more wait than are looked at.
    kept: i32,
    /// Nobody gives more: it would have been written down, or the thread's own priority was as high.
    most: i32,
}

/// Somebody from whom a thread may have inherited waits for it no more, or it has answered or received.
#[inline]
pub fn settle<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    if k.get(thread).slow & slow::INHERITS != 0 {
        let had = k.get(thread).inherited;
        work_out(k, thread, Before { kept: had, most: had }, WAITING);
    }
}

/// The same in the middle of something else.
#[inline]
pub fn settle_soon<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    if k.get(thread).slow & slow::INHERITS != 0 {
        let had = k.get(thread).inherited;
        work_out(k, thread, Before { kept: had, most: had }, FEW);
    }
}

/// A thread has a lower priority of its own, or others from whom it inherits.
pub fn begin<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    let had = k.get(thread).inherited;
    work_out(k, thread, Before { kept: had, most: i32::MAX }, WAITING);
}

/// The processor time on which a thread ran, at `own` priority, was taken away. If many wait for it, it keeps that until it answers.
pub fn time_has_gone<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, own: i32) {
    let t = k.get(thread);
    if t.served.is_some() || t.bound_reply.is_some() {
        let had = t.inherited.max(own);
        work_out(k, thread, Before { kept: had, most: had }, FEW);
    }
}

/// Works out what a thread inherits: from the caller in its bound reply object, and the first `limit` of those who wait at the
/// endpoint that it serves. If more wait, it keeps what it had, and this is done again when it answers.
fn work_out<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, before: Before, limit: usize) {
    let (reply, served) = (k.get(thread).bound_reply, k.get(thread).served);
    let (mut most, mut are_more) = (0, false);
    if let Some(caller) = reply.and_then(|reply| k.get(reply).caller) {
        most = urgency(k, caller);
    }
    if let Some(endpoint) = served {
        (most, are_more) = highest_waiting(k, endpoint, most, before, limit);
    }
    let had = k.get(thread).inherited;
    let inherited = if most > scheduling::own_priority(k, thread) { most } else { 0 };
    if inherited != had {
        set(k, thread, inherited);
        if inherited > had {
            pass_on(k, thread);
        }
    }
    if are_more {
        k.get(thread).slow |= slow::INHERITS;
    } else if inherited == 0 {
        k.get(thread).slow &= !slow::INHERITS;
    }
}

/// The highest of `most` and what the first senders at an endpoint give, and whether there are others who could give more.
fn highest_waiting<A: Arch>(
    k: &mut Kernel<A>,
    endpoint: Ref<Endpoint>,
    mut most: i32,
    before: Before,
    limit: usize,
) -> (i32, bool) {
    let head = k.get(endpoint).head;
    if head & 1 != 0 {
        return (most, false);
    }
    // SAFETY: an even head that is not 0 is the address of a live sender.
    let mut at = unsafe { Ref::<Thread>::at(head) };
    let mut left = limit;
    while let Some(sender) = at {
        if most == before.most {
            return (most, false);
        }
        if left == 0 {
            return (most.max(before.kept), true);
        }
        left -= 1;
        let t = k.get(sender);
        most = most.max(t.priority.max(t.inherited));
        at = t.next;
    }
    (most, false)
}
