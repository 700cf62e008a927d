//! The primitives on Tench: each task is a thread, and messages go through the kernel's endpoints.
//!
//! | part | file |
//! |---|---|
//! | encoding of a message's label | `label.rs` |
//! | the session: the tasks' resources, and which reply objects hold them | `session.rs` |
//! | the life of a task's thread, from one task to the next | `life.rs` |
//! | waiting for something other than tasks | `outside.rs` |
//! | events, and the time in which no task runs | `events.rs` |
//! | the primitives | here |
//!
//! # Order
//!
//! The kernel's ready queues are R4's: a thread that becomes ready goes behind its equals. Two things differ: a thread
//! that enters the kernel and can go on does not go behind its equals, and one that is preempted because it has woken a
//! thread of higher priority goes before them. [`requeue`] corrects the first, and the waking call corrects the second
//! (see [`reply`] and [`create`]): it makes the waker wait, and the woken thread, which runs at once, makes it ready
//! again. `docs/manual/srr.md` has the whole table.
//!
//! # Why nothing needs a lock
//!
//! Only one task runs at a time, and another takes over only in a system call of a primitive: tasks have no time slice,
//! and the only other thing that wakes one is an event. An event's task preempts a task of lower priority at any
//! moment, but while that is in a primitive it waits before it touches any state ([`enter`], and `events`). Each
//! primitive changes all its state *before* the call, and after it none that another task could miss.
//!
//! The kernel refuses no call of this file as long as the library is correct, since it owns every object it uses; so a
//! refusal is a defect, and [`Kept::kept`] ends the program with a message that says so.

mod events;
mod label;
mod life;
mod outside;
mod session;

use core::sync::atomic::Ordering::Relaxed;

use tench::sys::{Cap, Endpoint, Message, Received, Wait};
use tench::thread::yield_now as kernel_yield;

use crate::table::Arrival;
use crate::{Error, MAX_MESSAGE, Tid};

pub use events::{await_event, idle_share, ticks};
use label::Label;
use life::retire;
use session::SESSION;

pub use life::{create, exit, max_priority, run};
pub use outside::{print, wait_key};

/// Result of a call that the kernel cannot refuse.
trait Kept<T> {
    /// Returns the result, or ends the program.
    fn kept(self) -> T;
}

impl<T> Kept<T> for Result<T, tench::sys::Error> {
    #[inline]
    fn kept(self) -> T {
        match self {
            Ok(value) => value,
            Err(error) => panic!("tench-srr: the kernel refused: {error}"),
        }
    }
}

/// Begins a primitive of the calling task, which ends with [`outside::leave_primitive`] or [`requeue`]: no event
/// interferes meanwhile.
#[inline]
fn enter() -> Tid {
    let me = SESSION.me();
    events::INSIDE.store(me.0 + 1, Relaxed);
    me
}

/// Queues the calling task behind its equals, as after every kernel entry.
#[inline]
fn requeue(me: Tid) {
    events::INSIDE.store(0, Relaxed);
    // A task to which an event has come is not known to be ready before it has run.
    if SESSION.table.has_ready_equals(me) || SESSION.table.awaits_events() {
        kernel_yield();
        outside::leave_primitive(me);
    }
}

/// Fails with an error, which is a kernel entry too.
fn refuse<T>(me: Tid, error: Error) -> Result<T, Error> {
    requeue(me);
    Err(error)
}

/// Returns a message with these bytes.
#[inline]
fn pack(label: Label, bytes: &[u8]) -> Message {
    let mut message = Message::new(label.pack());
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        message.push(u64::from_le_bytes(*word));
    }
    if !rest.is_empty() {
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        message.push(u64::from_le_bytes(word));
    }
    message
}

/// Copies `length` bytes out of a message, or as many as fit. Returns their number.
#[inline]
fn unpack(received: &Received, length: usize, buffer: &mut [u8]) -> usize {
    let length = length.min(buffer.len());
    let (chunks, rest) = buffer[..length].as_chunks_mut::<8>();
    let words = received.words();
    for (chunk, word) in chunks.iter_mut().zip(words) {
        *chunk = word.to_le_bytes();
    }
    if !rest.is_empty() {
        let word = words.get(chunks.len()).map_or([0; 8], |word| word.to_le_bytes());
        rest.copy_from_slice(&word[..rest.len()]);
    }
    length
}

pub fn my_tid() -> Tid {
    let me = enter();
    requeue(me);
    me
}

pub fn my_parent_tid() -> Option<Tid> {
    let me = enter();
    requeue(me);
    SESSION.table.parent(me)
}

pub fn yield_now() {
    requeue(enter());
}

pub fn send(receiver: Tid, message: &[u8], reply: &mut [u8]) -> Result<usize, Error> {
    let me = enter();
    if message.len() > MAX_MESSAGE {
        return refuse(me, Error::MessageTooLong);
    }
    let meeting = match SESSION.table.send(me, receiver) {
        Ok(meeting) => meeting,
        Err(error) => return refuse(me, error),
    };
    SESSION.expect_reply(me, receiver, meeting, reply.len());
    let label = Label::Message { from: me, length: message.len() };
    // Received in place, which avoids copying the whole buffer.
    let mut received = Received::new();
    SESSION.endpoint(receiver).call_into(&pack(label, message), &mut received).kept();
    match Label::unpack(received.label()) {
        Label::Reply { length, wake } => {
            if let Some(replier) = wake {
                SESSION.notification(replier).signal().kept();
            }
            outside::leave_primitive(me);
            Ok(unpack(&received, length, reply))
        }
        Label::Aborted => {
            outside::leave_primitive(me);
            Err(Error::Incomplete)
        }
        _ => retire(me),
    }
}

pub fn receive(message: &mut [u8]) -> (Tid, usize) {
    let me = enter();
    let number = SESSION.take_reply();
    let arrival = SESSION.table.receive(me);
    SESSION.wait_with(me, number);
    let mut received = Received::new();
    SESSION.endpoint(me).receive_into(Wait::FOREVER.with_reply(SESSION.reply(number)), &mut received).kept();
    let Label::Message { from, length } = Label::unpack(received.label()) else {
        SESSION.give_reply(number);
        retire(me)
    };
    let length = unpack(&received, length, message);
    match arrival {
        Arrival::Waiting => {
            SESSION.table.take(me, from);
            SESSION.hold(from, number);
            requeue(me);
        }
        // The sender has recorded all this already, so that others can reply before this task runs.
        Arrival::Nobody => outside::leave_primitive(me),
    }
    (from, length)
}

pub fn reply(sender: Tid, message: &[u8]) -> Result<usize, Error> {
    let me = enter();
    if message.len() > MAX_MESSAGE {
        return refuse(me, Error::MessageTooLong);
    }
    if let Err(error) = SESSION.table.reply(sender) {
        return refuse(me, error);
    }
    let (number, capacity) = SESSION.held(sender);
    SESSION.give_reply(number);
    let length = message.len().min(capacity);
    let message = &message[..length];
    let reply = SESSION.reply(number);
    if SESSION.table.priority(sender) <= SESSION.table.priority(me) {
        reply.reply(&pack(Label::Reply { length, wake: None }, message)).kept();
        requeue(me);
    } else if SESSION.table.has_ready_equals(me) {
        // The sender runs at once, so it makes this task ready before any other task can become ready.
        let sleep = Cap::<Endpoint>::new(SESSION.notification(me).address());
        let message = pack(Label::Reply { length, wake: Some(me) }, message);
        sleep.reply_receive(&message, Wait::FOREVER.with_reply(reply)).kept();
        outside::leave_primitive(me);
    } else {
        // When it is preempted, this task goes before its equals; but there are none, so that makes no difference.
        reply.reply(&pack(Label::Reply { length, wake: None }, message)).kept();
        outside::leave_primitive(me);
    }
    Ok(length)
}
