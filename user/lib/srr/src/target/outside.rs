//! Waiting for something other than tasks: a key, the console, memory.
//!
//! In R4 a task that waits for a device polls, and no other runs. Here a task that waits lets others run, whatever
//! their priority, which would change the order of events. So a task makes a request to the session's caller, whose
//! thread runs only when no task can:
//!
//! 1. The task sets `held`, stores its request, and waits.
//! 2. Every ready task runs, still in the library, sees `held`, and waits in turn ([`leave_primitive`]).
//! 3. When no task can run, the caller executes the request, and wakes the task.
//! 4. The task clears `held` and wakes the others in the order in which they stopped. That is the order in which they
//!    were ready, and none has a higher priority than the task. So every task is where it was. (A task to which an
//!    event comes meanwhile stops like the others, and continues with them.)

use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use alloc::string::String;

use tench::sync::Mutex;

use super::Kept;
use super::events::INSIDE;
use super::session::SESSION;
use crate::{MAX_TASKS, Tid};

/// Request of a task to the session's caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Print the buffered text.
    Flush,
    /// Print the buffered text, and wait for a key.
    Key,
    /// Make the resources of a new task with this identifier.
    Prepare(Tid),
}

/// Number of bytes of text that can be buffered before they have to be printed.
const BUFFER: usize = 4096;

/// Text that tasks have printed.
pub static SAID: Mutex<String> = Mutex::new(String::new());

/// Set while a task waits for the session's caller, so that no other task may go on.
static HELD: AtomicBool = AtomicBool::new(false);

/// The pending request, and its task.
static REQUEST: Mutex<Option<(Request, Tid)>> = Mutex::new(None);

/// Tasks that wait until nothing is held, in order.
static STOPPED: [AtomicU32; MAX_TASKS] = [const { AtomicU32::new(0) }; MAX_TASKS];
/// Number of these tasks.
static STOPPED_COUNT: AtomicU32 = AtomicU32::new(0);

/// Ends a task's primitive. If it has waited in the kernel, it continues as soon as no task waits for the session's
/// caller.
#[inline]
pub fn leave_primitive(me: Tid) {
    while HELD.load(Relaxed) {
        // No event interferes before this task waits.
        INSIDE.store(me.0 + 1, Relaxed);
        let count = STOPPED_COUNT.load(Relaxed);
        STOPPED[count as usize % MAX_TASKS].store(me.0, Relaxed);
        STOPPED_COUNT.store(count + 1, Relaxed);
        SESSION.notification(me).wait().kept();
    }
    INSIDE.store(0, Relaxed);
}

/// Makes the session's caller execute a request, while no other task runs.
pub fn ask(me: Tid, request: Request) {
    INSIDE.store(me.0 + 1, Relaxed);
    HELD.store(true, Relaxed);
    *REQUEST.lock() = Some((request, me));
    SESSION.notification(me).wait().kept();
    INSIDE.store(me.0 + 1, Relaxed);
    HELD.store(false, Relaxed);
    // One of them may have a higher priority, run at once, and make a request itself: then others stop, and are
    // recorded again.
    let stopped: [u32; MAX_TASKS] = core::array::from_fn(|index| STOPPED[index].load(Relaxed));
    for stopped in &stopped[..STOPPED_COUNT.swap(0, Relaxed) as usize] {
        SESSION.notification(Tid(*stopped)).signal().kept();
    }
    leave_primitive(me);
}

/// Returns the pending request. For the session's caller, which then [`grant`]s it.
pub fn wanted() -> Option<(Request, Tid)> {
    REQUEST.lock().take()
}

/// Completes a task's request.
pub fn grant(tid: Tid) {
    SESSION.notification(tid).signal().kept();
}

/// A writer that buffers a task's text, and has it printed when the buffer is full.
struct Say(Tid);

impl fmt::Write for Say {
    fn write_str(&mut self, mut text: &str) -> fmt::Result {
        loop {
            let mut said = SAID.lock();
            if said.capacity() == 0 {
                said.reserve_exact(BUFFER);
            }
            let fits = text.floor_char_boundary((BUFFER - said.len()).min(text.len()));
            said.push_str(&text[..fits]);
            text = &text[fits..];
            drop(said);
            if text.is_empty() {
                return Ok(());
            }
            ask(self.0, Request::Flush);
        }
    }
}

pub fn print(text: fmt::Arguments<'_>) {
    // Writing never fails; a failing `Display` only loses its own output.
    let _ = fmt::Write::write_fmt(&mut Say(SESSION.me()), text);
}

pub fn wait_key() {
    ask(SESSION.me(), Request::Key);
}
