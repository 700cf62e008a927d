//! Fast paths. The two that matter most are a call to a waiting server, and the reply that waits for the next call.
//!
//! The others are small: a signal, with or without a waiting thread; waiting for a signal or a message; `Yield` to an
//! equal; a call through an empty slot; operations on [capabilities], [mappings] and the registers of [threads].
//!
//! Each function does all checks first and writes nothing meanwhile; then it commits. [`Fast::Slow`] means "take the
//! slow path", which handles every case; a fast path handles the commonest one, in few instructions. It requires that
//! the message has no deadline and names no reply object (a wait that sends nothing may name one), and that the partner
//! is in the expected state and can run at once. Words beyond the registers, and capabilities, are delivered at the
//! end.

pub mod capabilities;
pub mod faults;
pub mod float_users;
pub mod mappings;
pub mod named;
pub mod signals;
pub mod special;
pub mod threads;

use core::hint::cold_path;

use tench_abi::message::{MAX_CAPS, MAX_WORDS, REGISTER_WORDS};
use tench_abi::object::{NODE_BITS, NODE_SLOTS};
use tench_abi::{Error, Kind, Rights, Tag};

use crate::endpoint::Endpoint;
use crate::helping::heights;
use crate::object::Ref;
use crate::reply::Reply;
use crate::slot::{Slot, flag};
use crate::syscall::clear;
use crate::thread::{HEIGHT_UNIT, Thread, ThreadState, blocker};
use crate::{Arch, Kernel, endpoint, fault, float, helping, scheduler};

/// The thread that runs next, with its message.
#[derive(Clone, Copy, Debug)]
pub struct Handoff {
    /// The partner, which waited in a system call. The message's words are in the previous thread's `x2`..`x9`.
    pub next: Ref<Thread>,
    /// Tag for the partner's `x1`.
    pub tag: u64,
    /// Badge for the partner's `x10`.
    pub badge: u64,
}

/// The result of a fast path.
#[derive(Clone, Copy, Debug)]
pub enum Fast {
    /// The partner runs next.
    HandOff(Handoff),
    /// The thread continues with this in `x0` (0 or an error code) and zeroes in `x1`..`x10`.
    Return(u64),
    /// The thread continues with 0 in `x0`, these in `x1`..`x3`, and zeroes in `x4`..`x10`.
    Results([u64; 3]),
    /// This thread runs next, with the registers saved in it; those of the previous thread are saved, too.
    Resume(Ref<Thread>),
    /// Like `Resume`, but the thread has to [begin](scheduler::begin) before it runs.
    Begin(Ref<Thread>),
    /// Nothing was written. The slot holds an object of a less common kind, or the case is a less common one, so
    /// another function decides: [`signals::notify`], [`receive_message`], or one of [`special`].
    Other(Ref<Slot>),
    /// Nothing was written. The running thread or its partner may use the floating-point unit, so a function of
    /// [`float_users`] decides.
    Float(Ref<Slot>),
    /// Nothing was written; the slow path decides.
    Slow,
}

/// Result of a call through a slot that is empty or does not exist.
const INVALID: Fast = Fast::Return(Error::InvalidCapability as u64);

impl Fast {
    /// Success without results.
    pub const DONE: Fast = Fast::Return(0);
}

/// Returns the slot at `address` in the CSpace of `thread`, if it exists.
#[inline(always)]
fn slot<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, address: u64) -> Option<Ref<Slot>> {
    let t = k.get(thread);
    let (root, slots) = (t.cspace_root, t.cspace_slots);
    let index = (address >> NODE_BITS) as usize;
    if index >= slots {
        return None;
    }
    // SAFETY: a thread's root node is a live node of `cspace_slots` slots.
    let entry = unsafe { Ref::<Slot>::at_unchecked(root + (index << 6)) };
    let cap = &k.get(entry).cap;
    if !cap.is_second_level() {
        return None;
    }
    let node = cap.object;
    // SAFETY: a capability to a node that is not being deleted names a live node, and this one has 256 slots.
    Some(unsafe { Ref::<Slot>::at_unchecked(node + ((address as usize & (NODE_SLOTS - 1)) << 6)) })
}

/// Bits of a tag that say how a message is sent or received.
const FLAGS: u64 = 0xf000;

/// Bits of a tag for the length of a message, its number of capabilities, and how it is sent.
pub const SHAPE: u64 = 0xffff;

/// Returns whether a message does not fit into registers.
#[inline(always)]
pub const fn is_long(tag: u64) -> bool {
    tag & SHAPE > REGISTER_WORDS as u64
}

/// Returns whether a message has more than words, or too many.
#[inline(always)]
pub const fn is_special(tag: u64) -> bool {
    tag & SHAPE > MAX_WORDS as u64
}

/// Returns whether a reply names its reply object. Such a message is also [special](is_special).
#[inline(always)]
pub const fn names_reply(tag: u64) -> bool {
    tag & Tag::REPLY != 0
}

/// Returns whether a thread has an IPC buffer.
#[inline(always)]
fn has_buffer<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> bool {
    k.get(thread).ipc_buffer != 0
}

/// Returns whether a message has no flags, no excess of words and capabilities, and its thread an IPC buffer if it has
/// capabilities.
#[inline(always)]
fn is_plain<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, tag: u64) -> bool {
    let caps = tag >> 8 & 0xff;
    tag & 0xff <= MAX_WORDS as u64 && caps <= MAX_CAPS as u64 && has_buffer(k, thread)
}

/// Moves the words of a long message beyond the registers, and hands over to its receiver.
#[inline(always)]
fn deliver<A: Arch>(k: &mut Kernel<A>, from: Ref<Thread>, handoff: Handoff) -> Fast {
    let Tag(tag) = endpoint::transfer_words(k, from, handoff.next, Tag(handoff.tag));
    Fast::HandOff(Handoff { tag, ..handoff })
}

/// [`flag::CALLABLE`] in a capability's [head](crate::slot::Cap::head).
const CALLABLE: u32 = (flag::CALLABLE as u32) << 24;

/// Returns the slot at `address` if it holds a capability with which an endpoint can be called. The error is the result
/// of the fast path.
#[inline(always)]
fn callable<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, address: u64) -> Result<Ref<Slot>, Fast> {
    let slot = slot(k, thread, address).ok_or(INVALID)?;
    let head = k.get(slot).cap.head();
    if head & CALLABLE != 0 {
        Ok(slot)
    } else if head == 0 {
        Err(INVALID)
    } else {
        Err(Fast::Slow)
    }
}

/// Returns the endpoint that a callable capability names, at `object`, and the first thread that waits there.
#[inline(always)]
fn receiver<A: Arch>(k: &mut Kernel<A>, object: usize) -> Option<(Ref<Endpoint>, Ref<Thread>)> {
    // SAFETY: a live endpoint capability names a live endpoint.
    let endpoint = unsafe { Ref::<Endpoint>::at_unchecked(object) };
    let head = k.get(endpoint).head;
    if head & 1 == 0 {
        return None;
    }
    // SAFETY: an odd head is a live receiver's address plus 1.
    Some((endpoint, unsafe { Ref::<Thread>::at_unchecked(head & !1) }))
}

/// Fast path of `Call` to a waiting server, with words only. `LONG` is the value of [`is_long`] for the tag.
#[inline(always)]
pub fn call<A: Arch, const LONG: bool>(k: &mut Kernel<A>, thread: Ref<Thread>, address: u64, tag: u64) -> Fast {
    let slot = match callable(k, thread, address) {
        Ok(slot) => slot,
        Err(fast) => return fast,
    };
    let (object, badge) = k.get(slot).cap.object_and_badge::<A>();
    let Some((endpoint, receiver)) = receiver(k, object) else { return Fast::Slow };
    let r = k.get(receiver);
    let next = r.next;
    let fast_reply = r.fast_reply;
    if LONG && !has_buffer(k, thread) {
        return Fast::Slow;
    }
    let Some(reply) = fast_reply else { return Fast::Float(slot) };
    let Some(standing) = help(k, thread) else { return Fast::Slow };
    // ── Point of no return ──
    k.get(receiver).set_standing(standing);
    meet(k, thread, endpoint, receiver, (reply, next));
    let handoff = Handoff { next: receiver, tag, badge };
    if LONG { deliver(k, thread, handoff) } else { Fast::HandOff(handoff) }
}

/// Fast path of `Call` with a [special](is_special) tag: [`special::call`] decides if there is a server that waits.
#[inline(always)]
pub fn call_specially<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, address: u64, tag: u64) -> Fast {
    match callable(k, thread, address) {
        Ok(slot) => {
            if is_plain(k, thread, tag) {
                Fast::Other(slot)
            } else {
                Fast::Slow
            }
        }
        Err(fast) => fast,
    }
}

/// Bound below which the first word of [`Thread::standing`] contains no fast-path blocker: the blockers are the bits
/// above the height.
const REASON: u64 = HEIGHT_UNIT * 2 * heights::MAX_HEIGHT as u64;
const _: () = assert!(heights::MAX_HEIGHT.is_power_of_two());

/// Bound below which the first word of [`Thread::standing`] has no fast-path blocker, and a height that can grow.
const HEIGHT_LIMIT: u64 = HEIGHT_UNIT * heights::MAX_HEIGHT as u64;

/// [`blocker::FLOAT`] in the first word of [`Thread::standing`].
const FLOAT: u64 = (blocker::FLOAT as u64) << 32;

/// Returns the scheduling state for the thread that `thread` begins to wait for, a copy of its own, if `thread` has no
/// fast-path blockers. The caller has made all other checks, because this switches the floating-point unit off if
/// `thread` uses it.
#[inline(always)]
fn help<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Option<[u64; 2]> {
    let [mut standing, context] = k.get(thread).standing();
    if standing >= HEIGHT_LIMIT {
        cold_path();
        standing ^= FLOAT;
        if standing >= HEIGHT_LIMIT {
            return None;
        }
        float::stop(k);
    }
    Some([standing + HEIGHT_UNIT, context])
}

/// Returns whether the use of the floating-point unit is the only fast-path blocker in the first word of a thread's
/// standing.
#[inline(always)]
const fn uses_float_only(standing: u64) -> bool {
    standing >> 32 == blocker::FLOAT as u64
}

/// Makes a caller wait for its reply in `reply`, and takes the first receiver out of the queue. `next` is the second
/// receiver.
#[inline(always)]
fn meet<A: Arch>(
    k: &mut Kernel<A>,
    caller: Ref<Thread>,
    endpoint: Ref<Endpoint>,
    receiver: Ref<Thread>,
    (reply, next): (Ref<Reply>, Option<Ref<Thread>>),
) {
    k.get(caller).state = ThreadState::AwaitingReply(reply);
    k.get(reply).caller = Some(caller);
    k.get(receiver).state = ThreadState::Ready;
    match next {
        None => k.get(endpoint).head = 0,
        Some(next) => {
            k.get(endpoint).head = next.address() | 1;
            k.get(next).previous = None;
            k.get(receiver).next = None;
        }
    }
}

/// Fast path of `ReplyReceive` with words only to a caller that can run at once, if no message waits. `LONG` is the
/// value of [`is_long`] for the tag.
#[inline(always)]
pub fn reply_receive<A: Arch, const LONG: bool>(
    k: &mut Kernel<A>,
    thread: Ref<Thread>,
    address: u64,
    tag: u64,
) -> Fast {
    let Some(slot) = slot(k, thread, address) else { return INVALID };
    let Some(reply) = k.get(thread).bound_reply else { return Fast::Slow };
    if LONG && !has_buffer(k, thread) {
        return Fast::Slow;
    }
    reply_and_wait::<A, LONG>(k, thread, slot, reply, tag)
}

/// Fast path of `ReplyReceive` with a [special](is_special) tag: [`special`] decides if no message waits.
#[inline(always)]
pub fn reply_receive_specially<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, address: u64, tag: u64) -> Fast {
    if !is_plain(k, thread, tag) {
        return Fast::Slow;
    }
    let Some(slot) = slot(k, thread, address) else { return INVALID };
    if free_endpoint(k, slot).is_some() { Fast::Other(slot) } else { Fast::Slow }
}

/// Returns the endpoint in a slot if the capability has the right to receive, and no message waits there.
#[inline(always)]
fn free_endpoint<A: Arch>(k: &mut Kernel<A>, slot: Ref<Slot>) -> Option<Ref<Endpoint>> {
    let cap = &k.get(slot).cap;
    if cap.flags & flag::RECEIVABLE == 0 {
        return None;
    }
    let object = cap.object;
    // SAFETY: a live endpoint capability names a live endpoint.
    let endpoint = unsafe { Ref::<Endpoint>::at_unchecked(object) };
    (k.get(endpoint).head == 0).then_some(endpoint)
}

/// Replies to the caller in `reply`, and waits for the next at the endpoint in `slot`, if no message waits there.
#[inline(always)]
fn reply_and_wait<A: Arch, const LONG: bool>(
    k: &mut Kernel<A>,
    thread: Ref<Thread>,
    slot: Ref<Slot>,
    reply: Ref<Reply>,
    tag: u64,
) -> Fast {
    let Some(endpoint) = free_endpoint(k, slot) else { return Fast::Slow };
    let [standing, context] = k.get(thread).standing_at_once::<A>();
    if standing >= REASON {
        return Fast::Float(slot);
    }
    let Some(caller) = k.get(reply).caller else { return Fast::Slow };
    let c = k.get(caller);
    let ([_, helping], blockers) = (c.standing(), c.blockers);
    // If the server runs on the caller's context, the caller can continue at once: no ready thread has a higher
    // priority.
    if helping != context {
        return Fast::Other(slot);
    }
    if blockers != 0 {
        // A long reply would resume nothing.
        return if !LONG && resumes_fault(blockers, tag) {
            resume_fault(k, thread, endpoint, (caller, reply), tag)
        } else {
            Fast::Other(slot)
        };
    }
    // ── Point of no return ──
    wait_again(k, thread, endpoint, (caller, reply));
    let handoff = Handoff { next: caller, tag, badge: 0 };
    if LONG { deliver(k, thread, handoff) } else { Fast::HandOff(handoff) }
}

/// Returns whether a reply with this tag lets a caller go on that waits after a fault, and has these blockers.
#[inline(always)]
fn resumes_fault(blockers: u32, tag: u64) -> bool {
    blockers == blocker::FAULT && fault::lets_go_on(Tag(tag))
}

/// Lets the caller in `reply` go on after its fault, and makes its server wait.
#[inline(always)]
fn resume_fault<A: Arch>(
    k: &mut Kernel<A>,
    server: Ref<Thread>,
    endpoint: Ref<Endpoint>,
    (caller, reply): (Ref<Thread>, Ref<Reply>),
    tag: u64,
) -> Fast {
    fault::apply_resuming_reply(k, caller, server, Tag(tag));
    wait_again(k, server, endpoint, (caller, reply));
    Fast::Resume(caller)
}

/// Ends the wait of the caller in `reply`, and makes its server wait at an endpoint with an empty queue.
#[inline(always)]
fn wait_again<A: Arch>(
    k: &mut Kernel<A>,
    server: Ref<Thread>,
    endpoint: Ref<Endpoint>,
    (caller, reply): (Ref<Thread>, Ref<Reply>),
) {
    wait_with(k, server, endpoint, (caller, reply), 0);
}

/// As [`wait_again`]; the server keeps these blockers, [`FLOAT`] or none. With any, the next call takes another path
/// than [`call`].
#[inline(always)]
fn wait_with<A: Arch>(
    k: &mut Kernel<A>,
    server: Ref<Thread>,
    endpoint: Ref<Endpoint>,
    (caller, reply): (Ref<Thread>, Ref<Reply>),
    kept: u64,
) {
    k.get(caller).state = ThreadState::Ready;
    k.get(reply).caller = None;
    let [base, context] = k.get(server).base.standing();
    k.get(server).set_standing([base | kept, context]);
    await_message(k, server, endpoint, reply, kept == 0);
}

/// Makes a thread wait at an endpoint with an empty queue, with a reply object of its own. `helps` says whether callers
/// help, so that a call may take the fast path.
#[inline(always)]
fn await_message<A: Arch>(
    k: &mut Kernel<A>,
    server: Ref<Thread>,
    endpoint: Ref<Endpoint>,
    reply: Ref<Reply>,
    helps: bool,
) {
    let queue = k.get(endpoint);
    queue.head = server.address() | 1;
    queue.tail = server.address();
    let t = k.get(server);
    t.state = ThreadState::Receiving(endpoint);
    t.fast_reply = if helps { Some(reply) } else { None };
    t.receive_reply = Some(reply);
}

/// Fast path of `Receive` from an endpoint, if the slot holds one, without senders, with the bound reply object or with
/// another empty one. (A signal of the bound notification would be a fast-path blocker.)
#[inline(always)]
pub fn receive_message<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, slot: Ref<Slot>, tag: u64) -> Fast {
    let Some(endpoint) = free_endpoint(k, slot) else { return Fast::Slow };
    let t = k.get(thread);
    let (bound, flags, named) = (t.bound_reply, t.blockers, t.registers.x[11]);
    if flags != 0 {
        return Fast::Slow;
    }
    let reply = match tag & FLAGS {
        0 => bound.map(|bound| (bound, false)),
        Tag::REPLY => reply_at(k, thread, named),
        _ => None,
    };
    let Some((reply, deferred)) = reply else { return Fast::Slow };
    let deferred = deferred && bound != Some(reply);
    let r = k.get(reply);
    if r.caller.is_some() || r.claimed.is_some_and(|other| other != thread) {
        return Fast::Slow;
    }
    // ── Point of no return ──
    helping::receive_with(k, thread, (reply, deferred));
    await_message(k, thread, endpoint, reply, !deferred);
    let next = scheduler::leave_to_first(k, thread);
    if k.get(thread).height != 0 {
        // The thread works for no caller any more.
        let base = k.get(thread).base.standing();
        k.get(thread).set_standing(base);
    }
    if k.get(next).blockers & blocker::TO_BEGIN == 0 { Fast::Resume(next) } else { Fast::Begin(next) }
}

/// Returns the reply object at an address in the CSpace of `thread`, if it can be used, and whether callers in it are
/// deferred.
#[inline(always)]
fn reply_at<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, address: u64) -> Option<(Ref<Reply>, bool)> {
    let slot = slot(k, thread, address)?;
    let cap = &k.get(slot).cap;
    let is_usable = cap.kind == Kind::Reply && cap.allows(Rights::WRITE) && cap.flags & flag::ZOMBIE == 0;
    if !is_usable {
        return None;
    }
    let (object, deferred) = (cap.object, !cap.allows(Rights::CALL));
    // SAFETY: a live capability of this kind names a live reply object.
    unsafe { Ref::at(object) }.map(|reply| (reply, deferred))
}

/// Fast path of `Yield`: the first thread of the same priority runs, and the caller goes behind the last.
#[inline(always)]
pub fn give_way<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Fast {
    let t = k.get(thread);
    let (flags, priority) = (t.blockers, t.priority);
    if flags != 0 || priority < 0 {
        return Fast::Slow;
    }
    if i32::from(priority) != k.state().highest_ready {
        return Fast::DONE;
    }
    let Some(first) = scheduler::first_unlimited(k, priority) else { return Fast::Slow };
    // ── Point of no return ──
    clear(&mut k.get(thread).registers.x);
    Fast::Resume(scheduler::exchange_with_first(k, thread, first))
}
