//! Endpoints: a message moves from sender to receiver when both are there. The first to arrive waits ([`queue`]).

mod ending;
pub mod queue;

use tench_abi::message::{IpcBuffer, MAX_CAPS, MAX_WORDS, REGISTER_WORDS};
use tench_abi::{Error, Kind, Rights, Tag};

use crate::helping::heights;
use crate::ipc_buffer::Buffer;
use crate::notification::Notification;
use crate::object::Ref;
use crate::reply::Reply;
use crate::slot::Named;
use crate::slot::SlotRef;
use crate::syscall::{Outcome, argument, clear};
use crate::thread::{Purpose, Thread, ThreadState, blocker};
use crate::{
    Arch, Kernel, cspace, derivation, fault, helping, notification, preemption_point, reply, scheduler, timers,
};
pub use ending::{cancel, cancel_and_suspend};
use queue::{Waiting, enqueue_receiver, enqueue_sender, first_sender, waiting};

/// A rendezvous point for messages: a queue of senders or a queue of receivers, never both.
///
/// `head` is 0 (no thread waits), the address of the first sender (the root of a [heap](crate::heap)), or the address
/// of the first receiver plus 1, so that the fast path tests one bit to find a receiver. `tail` is the address of the
/// last receiver, or of the sender behind which the next sender of the same rank is linked, or 0 if there is none. It
/// has no meaning while `head` is 0.
#[derive(Default)]
#[repr(C, align(32))]
pub struct Endpoint {
    /// Head of the queue, encoded as described for the type.
    pub head: usize,
    /// Tail of the queue, as described for the type.
    pub tail: usize,
    /// [Number](crate::Arch::number) of the thread that serves the endpoint and is helped by the first sender; 0 for
    /// none ([`queue::server`]).
    pub server: u32,
    /// Number of senders that help, by [height](crate::helping::heights): 0, 1, and 2 or more.
    pub helpers: [u32; 3],
}

const _: () = assert!(size_of::<Endpoint>() == 1 << tench_abi::object::ENDPOINT_BITS);

// SAFETY: retype makes an endpoint together with its first capability. It lives until its last capability is deleted.
unsafe impl Named for Endpoint {
    const KIND: Kind = Kind::Endpoint;
}

/// Checks a message on the sender's side, before anything is written.
pub fn check_message<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, tag: Tag, may_grant: bool) -> Result<(), Error> {
    if tag.0 & 0xffff <= REGISTER_WORDS as u64 {
        return Ok(());
    }
    if tag.length() > MAX_WORDS || tag.caps() > MAX_CAPS {
        return Err(Error::MessageTooLong);
    }
    if (tag.length() > REGISTER_WORDS || tag.caps() > 0) && k.get(thread).ipc_buffer == 0 {
        return Err(Error::NoIpcBuffer);
    }
    if tag.caps() > 0 && !may_grant {
        return Err(Error::MissingRights);
    }
    Ok(())
}

/// Takes the capabilities that a message moves out of their runs, which would take too long while the message is moved.
/// Passes a preemption point after each. Returns whether the thread still exists.
///
/// A capability that comes to one of these slots later, while the sender waits, is moved only if it is in no run.
#[cold]
#[inline(never)]
fn leave_runs<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, tag: Tag) -> bool {
    for i in 0..tag.caps().min(MAX_CAPS) {
        if let Some(slot) = moved(k, thread, i)
            && derivation::leave_run(k, slot)
            && preemption_point::pass(k).is_deleted()
        {
            return false;
        }
    }
    // Looking at them has taken long enough for so long an operation.
    !preemption_point::pass(k).is_deleted()
}

/// Returns whether a message moves a capability that is in a run.
#[cold]
#[inline(never)]
pub fn moves_out_of_run<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, tag: Tag) -> bool {
    (0..tag.caps().min(MAX_CAPS)).any(|i| moved(k, thread, i).is_some_and(|slot| derivation::is_in_run(k, slot)))
}

/// Returns whether any of the capabilities that a thread's IPC buffer names is to be moved.
pub fn moves<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> bool {
    Buffer::of(k, thread).is_some_and(Buffer::names_moves)
}

/// Returns the slot of capability `i` of a thread's message, if the message moves it.
fn moved<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, i: usize) -> Option<SlotRef> {
    let source = Buffer::of(k, thread)?.sent_cap(i);
    if source & IpcBuffer::MOVE == 0 {
        return None;
    }
    cspace::lookup_of(k, thread, u64::from(source & !IpcBuffer::MOVE)).ok()
}

/// Prepares a message for being moved, before anything is decided. Returns whether the thread still exists: there can
/// be a preemption point.
pub fn prepare_message<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, tag: Tag) -> bool {
    tag.0 & 0xf00 == 0 || leave_runs(k, thread, tag)
}

/// Returns the deadline of a call, if its tag says that there is one.
pub fn deadline<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, tag: Tag) -> Option<u64> {
    if tag.0 & Tag::DEADLINE != 0 { Some(k.get(thread).registers.x[12]) } else { None }
}

/// Returns whether a receiver's tag marks the deadline as an alarm.
const fn is_alarm(tag: Tag) -> bool {
    tag.0 & (Tag::DEADLINE | Tag::ALARM) == Tag::DEADLINE | Tag::ALARM
}

/// Performs `Call`.
pub fn call<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    send(k, thread, Purpose::Call, true)
}

/// Performs `Send`.
pub fn send_call<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    send(k, thread, Purpose::Send, true)
}

/// Performs `TrySend`.
pub fn try_send<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    send(k, thread, Purpose::Send, false)
}

/// Performs `Call`, `Send` and `TrySend`.
fn send<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, purpose: Purpose, blocking: bool) -> Result<Outcome, Error> {
    let tag = Tag(argument(k, thread, 1));
    if !prepare_message(k, thread, tag) {
        return Ok(Outcome::Written);
    }
    let address = argument(k, thread, 0);
    let slot = cspace::lookup(k, address)?;
    let cap = &k.slot(slot).cap;
    let endpoint = cap.named::<Endpoint>().ok_or(Error::WrongType)?;
    let needed = if purpose == Purpose::Call { Rights::WRITE.union(Rights::CALL) } else { Rights::WRITE };
    if !cap.allows(needed) {
        return Err(Error::MissingRights);
    }
    let (badge, may_grant) = (cap.badge(), cap.allows(Rights::GRANT));
    if purpose == Purpose::Send && k.get(endpoint).server != 0 {
        return Err(Error::CallsOnly);
    }
    check_message(k, thread, tag, may_grant)?;
    let deadline = deadline(k, thread, tag);
    if !blocking && !matches!(waiting(k, endpoint), Waiting::Receiver(_)) {
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

/// Delivers the message of `sender`, whose badge and purpose are set, to the first receiver, or queues the sender.
pub fn rendezvous<A: Arch>(k: &mut Kernel<A>, sender: Ref<Thread>, endpoint: Ref<Endpoint>, deadline: Option<u64>) {
    match waiting(k, endpoint) {
        Waiting::Receiver(receiver) => {
            let r = k.get(receiver);
            let (object, is_alarm) = (r.receive_reply, is_alarm(Tag(r.registers.x[1])));
            queue::leave(k, receiver);
            hand_over(k, sender, receiver, object);
            if k.get(receiver).blockers & blocker::DEADLINE != 0 {
                keep_alarm(k, receiver, is_alarm);
            }
            if !matches!(k.get(sender).state, ThreadState::Ready) {
                timers::wait_until(k, sender, deadline);
                let helped = k.get(receiver).scheduling;
                if helped == k.get(sender).scheduling {
                    return scheduler::go_on_with(k, receiver);
                }
            }
            scheduler::make_ready(k, receiver);
        }
        _ => {
            let server = queue::server(k, endpoint);
            heights::look_ahead(k, sender, server);
            k.get(sender).state = ThreadState::Sending(endpoint);
            enqueue_sender(k, endpoint, sender);
            timers::wait_until(k, sender, deadline);
            if let Some(server) = server {
                heights::join(k, sender, server);
            }
        }
    }
}

/// Clears the deadline of a receiver that has received, unless the deadline is an alarm and the receiver now works for
/// another thread.
#[cold]
fn keep_alarm<A: Arch>(k: &mut Kernel<A>, receiver: Ref<Thread>, is_alarm: bool) {
    let works = helping::caller_of(k, receiver).is_some() || k.get(receiver).blockers & blocker::CAPPED != 0;
    if is_alarm && works {
        k.get(receiver).blockers |= blocker::ALARM;
    } else {
        timers::disarm(k, receiver);
    }
}

/// Delivers a message. A caller then waits for the reply; a sender of `Send` is done. Neither thread is in a queue.
fn hand_over<A: Arch>(k: &mut Kernel<A>, sender: Ref<Thread>, receiver: Ref<Thread>, object: Option<Ref<Reply>>) {
    transfer(k, sender, receiver);
    if k.get(sender).purpose == Purpose::Send {
        helping::limit_unhelped(k, receiver, sender);
        return;
    }
    if let Some(object) = object {
        reply::hold(k, object, sender, receiver);
    }
}

/// Performs `Receive`.
pub fn receive_call<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    receive_from_named(k, thread, true)
}

/// Performs `TryReceive`.
pub fn try_receive<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    receive_from_named(k, thread, false)
}

/// Performs `Receive` and `TryReceive`.
fn receive_from_named<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, blocking: bool) -> Result<Outcome, Error> {
    let tag = Tag(argument(k, thread, 1));
    let deadline = deadline(k, thread, tag);
    match source(k, thread)? {
        // The thread keeps working for the same caller.
        Source::Notification(notification) => notification::wait(k, notification, thread, deadline, blocking),
        Source::Endpoint(endpoint) => {
            let reply = reply::named(k, thread, tag)?;
            if k.get(reply.0).caller.is_some() {
                return Err(Error::ReplyInUse);
            }
            let before = k.get(thread).blockers;
            let received = receive(k, thread, endpoint, reply, deadline, blocking);
            helping::update_receiver(k, thread, before);
            received
        }
    }
}

/// Performs `ReplyReceive`.
pub fn reply_receive<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Outcome, Error> {
    let tag = Tag(argument(k, thread, 1));
    if !prepare_message(k, thread, tag) {
        return Ok(Outcome::Written);
    }
    let before = k.get(thread).blockers;
    let deadline = deadline(k, thread, tag);
    let source = source(k, thread)?;
    let (object, deferred) = reply::named(k, thread, tag)?;
    check_message(k, thread, tag, true)?;
    let caller = k.get(object).caller;
    fault::check_reply(k, caller, thread, tag)?;
    let goes_on =
        if is_handed_back(k, thread, caller, &source) { scheduler::go_on_with } else { scheduler::make_ready };
    reply::send(k, object, thread, tag, goes_on);
    if helping::current_reply(k, thread) == Some(object) {
        helping::start_afresh(k, thread);
    }
    let received = match source {
        Source::Notification(notification) => notification::wait(k, notification, thread, deadline, true),
        Source::Endpoint(endpoint) => receive(k, thread, endpoint, (object, deferred), deadline, true),
    };
    helping::update_receiver(k, thread, before);
    received
}

/// Returns whether `caller`, to which `thread` replies, continues in its place, since the thread has worked on the
/// caller's context, and waits now.
fn is_handed_back<A: Arch>(
    k: &mut Kernel<A>,
    thread: Ref<Thread>,
    caller: Option<Ref<Thread>>,
    source: &Source,
) -> bool {
    let Source::Endpoint(endpoint) = *source else { return false };
    let worked_on = k.get(thread).scheduling;
    let is_own = caller.is_some_and(|caller| k.get(caller).scheduling == worked_on);
    is_own && worked_on.is_some() && !matches!(waiting(k, endpoint), Waiting::Sender(_))
}

/// An object from which a thread can receive.
enum Source {
    /// Source of messages.
    Endpoint(Ref<Endpoint>),
    /// Source of signals.
    Notification(Ref<Notification>),
}

/// Returns the object that `x0` names, if the capability has the right to receive from it.
fn source<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Result<Source, Error> {
    let address = argument(k, thread, 0);
    let slot = cspace::lookup(k, address)?;
    let cap = &k.slot(slot).cap;
    let source = match cap.kind {
        Kind::Endpoint => cap.named().map(Source::Endpoint),
        _ => cap.named().map(Source::Notification),
    };
    let source = source.ok_or(Error::WrongType)?;
    if cap.allows(Rights::READ) { Ok(source) } else { Err(Error::MissingRights) }
}

/// Takes a signal of the bound notification or the first sender's message, or else queues the thread as a receiver.
fn receive<A: Arch>(
    k: &mut Kernel<A>,
    thread: Ref<Thread>,
    endpoint: Ref<Endpoint>,
    (object, deferred): (Ref<Reply>, bool),
    deadline: Option<u64>,
    blocking: bool,
) -> Result<Outcome, Error> {
    let sender = first_sender(k, endpoint);
    if !blocking && sender.is_none() && !notification::has_bound(k, thread) {
        return Err(Error::WouldBlock);
    }
    helping::receive_with(k, thread, (object, deferred));
    helping::start_afresh(k, thread);
    timers::disarm(k, thread);
    if notification::take_bound(k, thread) {
        return Ok(Outcome::Written);
    }
    if let Some(sender) = sender {
        let alarm = deadline.filter(|_| is_alarm(Tag(k.get(thread).registers.x[1])));
        take(k, thread, endpoint, sender, object, alarm);
        return Ok(Outcome::Written);
    }
    // The fast path makes the receiver run on the caller's context without comparing, and replaces its blockers.
    let fast = deadline.is_none() && !deferred && k.get(thread).blockers & blocker::NOT_REPLACED == 0;
    let t = k.get(thread);
    t.state = ThreadState::Receiving(endpoint);
    t.receive_reply = Some(object);
    t.fast_reply = if fast { Some(object) } else { None };
    enqueue_receiver(k, endpoint, thread);
    timers::wait_until(k, thread, deadline);
    Ok(Outcome::Written)
}

/// Takes the message of the first sender. An alarm is set only if the thread then works for the sender.
fn take<A: Arch>(
    k: &mut Kernel<A>,
    thread: Ref<Thread>,
    endpoint: Ref<Endpoint>,
    sender: Ref<Thread>,
    object: Ref<Reply>,
    alarm: Option<u64>,
) {
    queue::leave_as_sender(k, endpoint, sender);
    if k.get(sender).purpose == Purpose::Send {
        timers::end_wait(k, sender);
    }
    hand_over(k, sender, thread, Some(object));
    if queue::server(k, endpoint) != Some(thread) {
        update_server(k, endpoint);
    }
    if k.get(sender).purpose == Purpose::Send {
        finish(k, sender);
        scheduler::make_ready(k, sender);
    }
    if alarm.is_some() {
        timers::wait_until(k, thread, alarm);
        keep_alarm(k, thread, true);
    }
}

/// Completes the system call in which a thread waited: it succeeds without results.
fn finish<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    clear(&mut k.get(thread).registers.x);
}

/// Chooses again what an endpoint's server runs on, after the first sender has changed.
fn update_server<A: Arch>(k: &mut Kernel<A>, endpoint: Ref<Endpoint>) {
    if let Some(server) = queue::server(k, endpoint) {
        helping::propagate(k, server);
    }
}

/// Does one step of an endpoint's end: wakes one waiting thread with `Aborted`. Returns whether none is left.
pub fn finalise<A: Arch>(k: &mut Kernel<A>, endpoint: Ref<Endpoint>) -> bool {
    match waiting(k, endpoint) {
        Waiting::Sender(thread) | Waiting::Receiver(thread) => {
            cancel(k, thread, Error::Aborted);
            false
        }
        Waiting::Nobody => true,
    }
}

/// Moves a message: registers, IPC buffer, capabilities. The receiver's system call succeeds with it.
fn transfer<A: Arch>(k: &mut Kernel<A>, sender: Ref<Thread>, receiver: Ref<Thread>) {
    let badge = k.get(sender).badge;
    if k.get(sender).purpose == Purpose::Fault {
        fault::receive(k, sender, receiver);
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
    if tag.0 & 0xfff > REGISTER_WORDS as u64 {
        return transfer_long(k, sender, receiver, tag);
    }
    let length = tag.length();
    transfer_registers(k, sender, receiver, length);
    k.get(receiver).registers.x[1] = Tag::new(tag.label(), length).0;
}

/// Moves a message of which a part lies in the IPC buffer.
#[inline(never)]
pub fn transfer_long<A: Arch>(k: &mut Kernel<A>, sender: Ref<Thread>, receiver: Ref<Thread>, tag: Tag) {
    transfer_registers(k, sender, receiver, tag.length());
    k.get(receiver).registers.x[1] = transfer_rest(k, sender, receiver, tag).0;
}

/// Moves the words of a message beyond the registers, and its capabilities. Returns the tag of what has arrived.
#[inline(never)]
pub fn transfer_rest<A: Arch>(k: &mut Kernel<A>, sender: Ref<Thread>, receiver: Ref<Thread>, tag: Tag) -> Tag {
    let arrived = Tag::new(tag.label(), tag.length());
    match (Buffer::of(k, sender), Buffer::of(k, receiver)) {
        (Some(from), Some(to)) => {
            from.copy_words(k, to, tag.length());
            arrived.with_caps(transfer_caps(k, (sender, from), (receiver, to), tag.caps()))
        }
        _ => without_rest(arrived),
    }
}

/// Moves the words of a message beyond the registers. Returns the tag of what has arrived.
#[inline(always)]
pub fn transfer_words<A: Arch>(k: &mut Kernel<A>, sender: Ref<Thread>, receiver: Ref<Thread>, tag: Tag) -> Tag {
    match (Buffer::of(k, sender), Buffer::of(k, receiver)) {
        (Some(from), Some(to)) => {
            from.copy_words(k, to, tag.length());
            tag
        }
        _ => without_rest(tag),
    }
}

/// Returns the tag of a message between threads of which one has no IPC buffer. (The rest of the other's buffer would
/// hold words of an earlier message.)
const fn without_rest(tag: Tag) -> Tag {
    let length = tag.length();
    Tag::new(tag.label(), if length < REGISTER_WORDS { length } else { REGISTER_WORDS })
}

/// Moves the words in registers. Registers beyond the message's length become 0.
fn transfer_registers<A: Arch>(k: &mut Kernel<A>, sender: Ref<Thread>, receiver: Ref<Thread>, length: usize) {
    let from = (&raw const k.get(sender).registers.x[2]).addr();
    let to = (&raw mut k.get(receiver).registers.x[2]).addr();
    // SAFETY: eight registers in each of two threads, or in one; nobody has a reference to them.
    unsafe { k.arch().copy(from, to, REGISTER_WORDS) };
    let words = &mut k.get(receiver).registers.x[2..2 + REGISTER_WORDS];
    words.iter_mut().skip(length).for_each(|word| *word = 0);
}

/// Copies or moves the message's capabilities into the slots that the receiver offers, in order. Stops at the first
/// that cannot be transferred. Returns the number transferred.
fn transfer_caps<A: Arch>(
    k: &mut Kernel<A>,
    (sender, from): (Ref<Thread>, Buffer),
    (receiver, to): (Ref<Thread>, Buffer),
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
#[inline(always)]
fn transfer_cap<A: Arch>(
    k: &mut Kernel<A>,
    sender: Ref<Thread>,
    receiver: Ref<Thread>,
    source: u32,
    offered: u32,
) -> Result<(), Error> {
    let source_slot = cspace::find(k, sender, u64::from(source & !IpcBuffer::MOVE))?;
    if offered == 0 {
        return Err(Error::NoSuchSlot);
    }
    let destination = cspace::destination_of(k, receiver, u64::from(offered))?;
    if source & IpcBuffer::MOVE != 0 {
        if derivation::is_in_run(k, source_slot) {
            return Err(Error::Aborted);
        }
        cspace::move_to(k, source_slot, destination)
    } else {
        cspace::copy_to(k, source_slot, destination)
    }
}
