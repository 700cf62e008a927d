//! Endpoints: a message moves from one thread to another when both are there.
//!
//! Queues are first in, first out. A thread that waits is unlinked in constant time, whatever ends its wait.

use tench_abi::message::{MAX_CAPS, MAX_WORDS, MessageArea, REGISTER_WORDS};
use tench_abi::{Error, Kind, Rights, Tag};

use crate::area::Area;
use crate::entry::{Outcome, argument, clear};
use crate::object::{Endpoint, Notification, Ref, Reply};
use crate::thread::{Purpose, Thread, ThreadState, slow};
use crate::{Arch, Kernel, fault, inherit, notification, reply, scheduler, space, timers};

/// First queued thread and whether it is a receiver.
#[inline]
fn head<A: Arch>(k: &mut Kernel<A>, endpoint: Ref<Endpoint>) -> Option<(Ref<Thread>, bool)> {
    let head = k.get(endpoint).head;
    // SAFETY: the head of a queue is a live thread (queues are left before a thread goes).
    unsafe { Ref::at(head & !1) }.map(|thread| (thread, head & 1 != 0))
}

/// Appends a thread. The queue is empty or of the same direction.
pub fn enqueue<A: Arch>(k: &mut Kernel<A>, endpoint: Ref<Endpoint>, thread: Ref<Thread>, receiver: bool) {
    let queue = k.get(endpoint);
    let tail = if queue.head == 0 {
        queue.head = thread.address() | usize::from(receiver);
        None
    } else {
        // SAFETY: a queue that is not empty has a live last thread.
        unsafe { Ref::<Thread>::at(queue.tail) }
    };
    queue.tail = thread.address();
    if let Some(last) = tail {
        k.get(last).next = Some(thread);
    }
    let t = k.get(thread);
    t.next = None;
    t.previous = tail;
}

/// Takes a sending or receiving thread out of its endpoint's queue.
pub fn leave_queue<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    let t = k.get(thread);
    let (ThreadState::Sending(endpoint) | ThreadState::Receiving(endpoint)) = t.state else { return };
    let receiver = matches!(t.state, ThreadState::Receiving(_));
    let (next, previous) = (t.next.take(), t.previous.take());
    t.fast_reply = None;
    if receiver {
        release_reply(k, thread);
    }
    match previous {
        Some(previous) => k.get(previous).next = next,
        None => k.get(endpoint).head = next.map_or(0, |next| next.address() | usize::from(receiver)),
    }
    match next {
        Some(next) => k.get(next).previous = previous,
        None => k.get(endpoint).tail = previous.map_or(0, Ref::address),
    }
}

/// The reply object with which a thread waited is free for others again, unless it is bound or holds a caller.
fn release_reply<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    if let Some(object) = k.get(thread).receive_reply.take() {
        let r = k.get(object);
        if !r.bound && r.caller.is_none() {
            r.claimed = None;
        }
    }
}

/// What a message needs of its sender; checked before anything is written.
pub fn check_message<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, tag: Tag, may_grant: bool) -> Result<(), Error> {
    if tag.0 & 0xffff <= REGISTER_WORDS as u64 {
        return Ok(());
    }
    if tag.length() > MAX_WORDS || tag.caps() > MAX_CAPS {
        return Err(Error::MessageTooLong);
    }
    if (tag.length() > REGISTER_WORDS || tag.caps() > 0) && k.get(thread).message_area == 0 {
        return Err(Error::NoMessageArea);
    }
    if tag.caps() > 0 && !may_grant {
        return Err(Error::MissingRights);
    }
    Ok(())
}

/// The deadline that a call names, if its tag says so.
#[inline]
pub fn deadline<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, tag: Tag) -> Option<u64> {
    if tag.0 & Tag::DEADLINE != 0 { Some(k.get(thread).registers.x[12]) } else { None }
}

/// `Call`.
pub fn call<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    send(k, thread, Purpose::Call, true)
}

/// `Send`.
pub fn send_call<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    send(k, thread, Purpose::Send, true)
}

/// `TrySend`.
pub fn try_send<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    send(k, thread, Purpose::Send, false)
}

/// `Call`, `Send` and `TrySend`.
fn send<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, purpose: Purpose, blocking: bool) -> Result<Outcome, Error> {
    let address = argument(k, thread, 0);
    let slot = space::lookup(k, address)?;
    let cap = &k.slot(slot).cap;
    if cap.kind != Kind::Endpoint {
        return Err(Error::WrongType);
    }
    let needed = if purpose == Purpose::Call { Rights::WRITE.union(Rights::CALL) } else { Rights::WRITE };
    if !cap.allows(needed) {
        return Err(Error::MissingRights);
    }
    let (object, badge, may_grant) = (cap.object, cap.badge, cap.allows(Rights::GRANT));
    // SAFETY: a live capability of this kind names such an object.
    let Some(endpoint) = (unsafe { Ref::<Endpoint>::at(object) }) else { return Err(Error::InvalidCapability) };
    let tag = Tag(argument(k, thread, 1));
    check_message(k, thread, tag, may_grant)?;
    let deadline = deadline(k, thread, tag);
    if !blocking && !matches!(head(k, endpoint), Some((_, true))) {
        return Err(Error::WouldBlock);
    }
    let t = k.get(thread);
    t.badge = badge;
    t.may_grant = may_grant;
    t.purpose = purpose;
    rendezvous(k, thread, endpoint, deadline);
    Ok(if purpose == Purpose::Send && matches!(k.get(thread).state, ThreadState::Ready) {
        Outcome::Done
    } else {
        Outcome::Written
    })
}

/// Hands the message of `sender` (whose badge and purpose are set) to the first receiver, or queues the sender.
pub fn rendezvous<A: Arch>(k: &mut Kernel<A>, sender: Ref<Thread>, endpoint: Ref<Endpoint>, deadline: Option<u64>) {
    match head(k, endpoint) {
        Some((receiver, true)) => {
            let object = k.get(receiver).receive_reply;
            leave_queue(k, receiver);
            if k.get(receiver).slow & slow::DEADLINE != 0 {
                timers::remove(k, receiver);
            }
            hand_over(k, sender, receiver, object);
            // A caller that has lent its time waits without a deadline (see `reply::hold`).
            let s = k.get(sender);
            if !matches!(s.state, ThreadState::Ready) && s.scheduling.is_some() {
                timers::wait_until(k, sender, deadline);
            }
            scheduler::make_ready(k, receiver);
        }
        _ => {
            k.get(sender).state = ThreadState::Sending(endpoint);
            enqueue(k, endpoint, sender, false);
            timers::wait_until(k, sender, deadline);
            inherit::pass_on(k, sender);
        }
    }
}

/// Moves a message to a receiver, and the sender on: a caller now waits for the reply. Neither is in a queue.
fn hand_over<A: Arch>(k: &mut Kernel<A>, sender: Ref<Thread>, receiver: Ref<Thread>, object: Option<Ref<Reply>>) {
    transfer(k, sender, receiver);
    if k.get(sender).purpose == Purpose::Send {
        return;
    }
    if let Some(object) = object {
        reply::hold(k, object, sender, receiver);
    }
}

/// `Receive`.
pub fn receive_call<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    receive_from_named(k, thread, true)
}

/// `TryReceive`.
pub fn try_receive<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    receive_from_named(k, thread, false)
}

/// `Receive` and `TryReceive`.
fn receive_from_named<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, blocking: bool) -> Result<Outcome, Error> {
    let tag = Tag(argument(k, thread, 1));
    let deadline = deadline(k, thread, tag);
    let received = match source(k, thread)? {
        Source::Notification(notification) => notification::wait(k, notification, thread, deadline, blocking),
        Source::Endpoint(endpoint) => {
            let object = reply::named(k, thread, tag)?;
            if k.get(object).caller.is_some() {
                return Err(Error::ReplyInUse);
            }
            receive(k, thread, endpoint, object, deadline, blocking)
        }
    };
    inherit::settle(k, thread);
    received
}

/// `ReplyReceive`.
pub fn reply_receive<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let tag = Tag(argument(k, thread, 1));
    let deadline = deadline(k, thread, tag);
    let source = source(k, thread)?;
    let object = reply::named(k, thread, tag)?;
    check_message(k, thread, tag, true)?;
    reply::answer(k, object, thread, tag);
    let received = match source {
        Source::Notification(notification) => notification::wait(k, notification, thread, deadline, true),
        Source::Endpoint(endpoint) => receive(k, thread, endpoint, object, deadline, true),
    };
    inherit::settle(k, thread);
    received
}

/// What a thread can receive from.
enum Source {
    /// Messages.
    Endpoint(Ref<Endpoint>),
    /// Signals.
    Notification(Ref<Notification>),
}

/// What `x0` names, with the right to receive from it.
fn source<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Source, Error> {
    let address = argument(k, thread, 0);
    let slot = space::lookup(k, address)?;
    let cap = &k.slot(slot).cap;
    let (kind, object, allowed) = (cap.kind, cap.object, cap.allows(Rights::READ));
    if !matches!(kind, Kind::Endpoint | Kind::Notification) {
        return Err(Error::WrongType);
    }
    if !allowed {
        return Err(Error::MissingRights);
    }
    let source = if kind == Kind::Endpoint {
        // SAFETY: a live capability of this kind names such an object.
        unsafe { Ref::at(object) }.map(Source::Endpoint)
    } else {
        // SAFETY: as above.
        unsafe { Ref::at(object) }.map(Source::Notification)
    };
    source.ok_or(Error::InvalidCapability)
}

/// Takes the first waiting message or signal, or queues the thread as a receiver.
fn receive<A: Arch>(
    k: &mut Kernel<A>,
    thread: Ref<Thread>,
    endpoint: Ref<Endpoint>,
    object: Ref<Reply>,
    deadline: Option<u64>,
    blocking: bool,
) -> Result<Outcome, Error> {
    if notification::take_bound(k, thread) {
        return Ok(Outcome::Written);
    }
    if let Some((sender, false)) = head(k, endpoint) {
        leave_queue(k, sender);
        if k.get(sender).slow & slow::DEADLINE != 0 && k.get(sender).purpose == Purpose::Send {
            timers::remove(k, sender);
        }
        // First: the sender may inherit from it in turn, and what it inherits is worked out if its time is lent.
        if let Some(other) = k.get(endpoint).server.filter(|server| *server != thread) {
            inherit::settle_soon(k, other);
        }
        hand_over(k, sender, thread, Some(object));
        if k.get(sender).purpose == Purpose::Send {
            finish(k, sender);
            scheduler::make_ready(k, sender);
        }
        return Ok(Outcome::Written);
    }
    if !blocking {
        return Err(Error::WouldBlock);
    }
    k.get(object).claimed = Some(thread);
    // The fast path leaves `claimed` as it is, which is right for a bound reply object only.
    let fast = deadline.is_none() && k.get(object).bound && k.get(thread).slow & slow::BUDGETED == 0;
    let t = k.get(thread);
    t.state = ThreadState::Receiving(endpoint);
    t.receive_reply = Some(object);
    t.fast_reply = if fast { Some(object) } else { None };
    enqueue(k, endpoint, thread, true);
    timers::wait_until(k, thread, deadline);
    Ok(Outcome::Written)
}

/// The system call in which a thread waited succeeds without an answer.
fn finish<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    clear(&mut k.get(thread).registers.x);
}

/// Ends a thread's wait, whatever it is, with an error. A thread that waited in a fault stays stopped.
pub fn cancel<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, error: Error) {
    let t = k.get(thread);
    let (state, fault) = (t.state, t.slow & slow::FAULT != 0);
    let heir = inherit::heir(k, thread);
    match state {
        ThreadState::Ready | ThreadState::Suspended | ThreadState::Faulted => return,
        ThreadState::Sending(_) | ThreadState::Receiving(_) => leave_queue(k, thread),
        ThreadState::AwaitingReply(object) => reply::forget_caller(k, object),
        ThreadState::Waiting(object) => notification::unqueue(k, object, thread),
    }
    if k.get(thread).slow & slow::DEADLINE != 0 {
        timers::remove(k, thread);
    }
    let t = k.get(thread);
    if fault {
        t.slow &= !slow::FAULT;
        t.state = ThreadState::Faulted;
    } else {
        clear(&mut t.registers.x);
        t.registers.x[0] = error as u64;
        scheduler::make_ready(k, thread);
    }
    if let Some(heir) = heir {
        inherit::settle(k, heir);
    }
}

/// One step of the end of an endpoint: wakes one waiting thread with `Aborted`. Answers whether none is left.
pub fn finalise<A: Arch>(k: &mut Kernel<A>, endpoint: Ref<Endpoint>) -> bool {
    match head(k, endpoint) {
        Some((thread, _)) => {
            cancel(k, thread, Error::Aborted);
            false
        }
        None => true,
    }
}

/// Moves a message: registers, message area, capabilities. The receiver's system call succeeds with it.
fn transfer<A: Arch>(k: &mut Kernel<A>, sender: Ref<Thread>, receiver: Ref<Thread>) {
    let badge = k.get(sender).badge;
    if k.get(sender).purpose == Purpose::Fault {
        fault::transfer(k, sender, receiver);
    } else {
        let tag = Tag(k.get(sender).registers.x[1]);
        transfer_message(k, sender, receiver, tag);
    }
    let x = &mut k.get(receiver).registers.x;
    x[0] = 0;
    x[10] = badge;
}

/// Moves words and capabilities, and writes the receiver's tag.
pub fn transfer_message<A: Arch>(k: &mut Kernel<A>, sender: Ref<Thread>, receiver: Ref<Thread>, tag: Tag) {
    let mut length = tag.length();
    if length < REGISTER_WORDS {
        let words: [u64; REGISTER_WORDS] = core::array::from_fn(|i| k.get(sender).registers.x[i + 2]);
        let x = &mut k.get(receiver).registers.x;
        for (i, word) in words.iter().enumerate() {
            x[i + 2] = if i < length { *word } else { 0 };
        }
    } else {
        let from = (&raw const k.get(sender).registers.x[2]).addr();
        let to = (&raw mut k.get(receiver).registers.x[2]).addr();
        // SAFETY: eight registers in each of two threads, or in one; nobody has a reference to them.
        unsafe { k.arch().copy(from, to, REGISTER_WORDS) };
    }
    let mut arrived = 0;
    if tag.0 & 0xfff > REGISTER_WORDS as u64 {
        match (Area::of(k, sender), Area::of(k, receiver)) {
            (Some(from), Some(to)) => {
                from.copy_words(k, to, length);
                arrived = transfer_caps(k, (sender, from), (receiver, to), tag.caps());
            }
            (None, Some(_)) => {}
            (_, None) => length = length.min(REGISTER_WORDS),
        }
    }
    k.get(receiver).registers.x[1] = Tag::new(tag.label(), length).with_caps(arrived).0;
}

/// Copies or moves the message's capabilities into the slots that the receiver offers, in order; stops at the first
/// that cannot be transferred. Answers how many arrived.
fn transfer_caps<A: Arch>(
    k: &mut Kernel<A>,
    (sender, from): (Ref<Thread>, Area),
    (receiver, to): (Ref<Thread>, Area),
    count: usize,
) -> usize {
    let count = count.min(MAX_CAPS);
    for i in 0..count {
        if transfer_cap(k, sender, receiver, from.sent_cap(i), to.receive_slot(i)).is_err() {
            return i;
        }
    }
    count
}

/// Transfers one capability.
fn transfer_cap<A: Arch>(
    k: &mut Kernel<A>,
    sender: Ref<Thread>,
    receiver: Ref<Thread>,
    source: u32,
    offered: u32,
) -> Result<(), Error> {
    let source_slot = space::lookup_of(k, sender, u64::from(source & !MessageArea::MOVE))?;
    if offered == 0 {
        return Err(Error::NoSuchSlot);
    }
    let destination = space::destination_of(k, receiver, u64::from(offered))?;
    if source & MessageArea::MOVE != 0 {
        space::move_to(k, source_slot, destination)
    } else {
        space::copy_to(k, source_slot, destination)
    }
}
