//! The primitives on Tench: each task is a thread, and the running task's thread lets the next one go on.
//!
//! | part | file |
//! |---|---|
//! | the tasks, their threads' resources, and the session | `session.rs` |
//! | switching between tasks, and entering and leaving primitives | `switch.rs` |
//! | the life of a task's thread, from one task to the next | `life.rs` |
//! | events, and the time in which no task runs | `events.rs` |
//! | what tasks print, and keys | `terminal.rs` |
//! | the primitives | here |
//!
//! # Messages
//!
//! All tasks share their memory. A task that waits has lent its buffers ([`session::Buffer`]), and the running task
//! copies between them and its own: the sender into the buffer of a receiver that waits, the receiver out of that of a
//! sender in its queue, the replier into the sender's. Each message is copied once, and no system call carries it.
//!
//! # Why nothing needs a lock
//!
//! Only one task's thread runs at a time, and another takes over only in a system call of a primitive: the threads have
//! no time slice, and the only other thing that wakes one is an event. An event's task preempts a task of lower
//! priority, but none in a primitive (`events.rs`). Each primitive changes all its state *before* it switches, and
//! after it none that another task could miss. A task can end only itself, so the owner of a lent buffer cannot end.
//!
//! The kernel refuses no call of these files as long as the library is correct, since it owns every object it uses; so
//! a refusal is a defect, and [`Kept::kept`] ends the program with a message that says so.

mod events;
mod life;
mod session;
mod switch;
mod terminal;

use core::sync::atomic::Ordering::Relaxed;

use crate::table::Meeting;
use crate::{Error, MAX_MESSAGE, Tid};

use session::{ABORTED, SESSION};
use switch::{enter, leave, requeue, switch_to_next};

pub use events::{await_event, idle_share, ticks};
pub use life::{create, exit, max_priority, run};
pub use terminal::{print, wait_key};

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
            Err(error) => refused(error),
        }
    }
}

/// Ends the program.
#[cold]
#[inline(never)]
fn refused(error: tench::sys::Error) -> ! {
    panic!("tench-srr: the kernel refused: {error}")
}

/// Fails with an error, which is a kernel entry too.
#[cold]
#[inline(never)]
fn refuse<T>(me: Tid, error: Error) -> Result<T, Error> {
    requeue(me);
    Err(error)
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
    let task = SESSION.task(me);
    task.incoming.lend_mut(reply);
    match SESSION.table.send(me, receiver) {
        Ok(Meeting::Delivered) => {
            let to = SESSION.task(receiver);
            to.sender.store(me.0, Relaxed);
            // SAFETY: a task that waits for a message has lent its buffer for one.
            unsafe { to.give(message) };
            switch::switch(me, SESSION.table.hand_over(receiver));
        }
        Ok(Meeting::Queued) => {
            task.outgoing.lend(message);
            switch_to_next(me);
        }
        Err(error) => return refuse(me, error),
    }
    leave(me);
    match task.length.load(Relaxed) {
        ABORTED => Err(Error::Incomplete),
        length => Ok(length),
    }
}

pub fn receive(message: &mut [u8]) -> (Tid, usize) {
    let me = enter();
    if let Some(sender) = SESSION.table.receive(me) {
        // SAFETY: a sender in a queue has lent its message.
        let length = unsafe { SESSION.task(sender).outgoing.read(message) };
        requeue(me);
        return (sender, length);
    }
    let task = SESSION.task(me);
    task.incoming.lend_mut(message);
    switch_to_next(me);
    leave(me);
    (Tid(task.sender.load(Relaxed)), task.length.load(Relaxed))
}

pub fn reply(sender: Tid, message: &[u8]) -> Result<usize, Error> {
    let me = enter();
    if message.len() > MAX_MESSAGE {
        return refuse(me, Error::MessageTooLong);
    }
    if let Err(error) = SESSION.table.reply(sender) {
        return refuse(me, error);
    }
    // SAFETY: a sender that waits for a reply has lent its buffer for one.
    let length = unsafe { SESSION.task(sender).give(message) };
    requeue(me);
    Ok(length)
}
