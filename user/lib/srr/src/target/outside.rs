//! Waiting for something that is no task: a key, the console, memory.
//!
//! In R4 a task that waits for a device polls, and nobody else runs. Here a task that waits lets others run, whatever
//! their priority, which would change the order of events. So a task that wants something from outside asks the
//! session's caller, whose thread runs only when no task can:
//!
//! 1. The task sets `held`, leaves its request, and waits.
//! 2. Every task that is ready gets its turn, is still in the library then, sees `held`, and waits in turn
//!    ([`settle`]).
//! 3. Nobody can run: the caller does what was asked, and wakes the task.
//! 4. The task clears `held` and wakes the others, in the order in which they stopped. That is the order in which they
//!    were ready, and none has a higher priority than the task. So everybody is where they were. (A task to which an
//!    event comes meanwhile stops like the others, and goes on with them.)

use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use alloc::string::String;

use tench::sync::Mutex;

use super::Kept;
use super::events::INSIDE;
use super::session::SESSION;
use crate::{MAX_TASKS, Tid};

/// What a task can want from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Print what was said.
    Flush,
    /// Print what was said, and wait for a key.
    Key,
    /// Make what a new task with this identifier needs.
    Prepare(Tid),
}

/// Bytes that can be said before they have to be printed.
const BUFFER: usize = 4096;

/// What tasks have said.
pub static SAID: Mutex<String> = Mutex::new(String::new());

/// A task waits for something outside: nobody else may go on.
static HELD: AtomicBool = AtomicBool::new(false);

/// What is wanted, and by whom.
static REQUEST: Mutex<Option<(Request, Tid)>> = Mutex::new(None);

/// Tasks that wait until nothing is held, in order.
static STOPPED: [AtomicU32; MAX_TASKS] = [const { AtomicU32::new(0) }; MAX_TASKS];
/// How many.
static STOPPED_COUNT: AtomicU32 = AtomicU32::new(0);

/// A task ends its primitive. If it has waited in the kernel, it goes on as soon as nobody waits for something outside.
#[inline]
pub fn settle(me: Tid) {
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

/// Lets the session's caller do something, and nobody anything else meanwhile.
pub fn ask(me: Tid, request: Request) {
    INSIDE.store(me.0 + 1, Relaxed);
    HELD.store(true, Relaxed);
    *REQUEST.lock() = Some((request, me));
    SESSION.notification(me).wait().kept();
    INSIDE.store(me.0 + 1, Relaxed);
    HELD.store(false, Relaxed);
    // One of them may be more important, run at once, and want something itself: then others stop, in new places.
    let stopped: [u32; MAX_TASKS] = core::array::from_fn(|index| STOPPED[index].load(Relaxed));
    for stopped in &stopped[..STOPPED_COUNT.swap(0, Relaxed) as usize] {
        SESSION.notification(Tid(*stopped)).signal().kept();
    }
    settle(me);
}

/// What somebody wants from outside. For the session's caller, who then [`grant`]s it.
pub fn wanted() -> Option<(Request, Tid)> {
    REQUEST.lock().take()
}

/// What a task wanted is done.
pub fn grant(tid: Tid) {
    SESSION.notification(tid).signal().kept();
}

/// Writes what a task says to the buffer, and has it printed when it is full.
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
    // Writing never fails; a `Display` that does has itself to blame for its missing output.
    let _ = fmt::Write::write_fmt(&mut Say(SESSION.me()), text);
}

pub fn wait_key() {
    ask(SESSION.me(), Request::Key);
}
