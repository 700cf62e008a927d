//! Send, Receive, Reply: the choochoos interface (R4) as a library for the tasks of one process.
//!
//! A *session* ([`run`]) is to its tasks what R4's kernel is to its user programs: tasks have identifiers and fixed
//! priorities, send and wait for the reply, receive, and reply, and do not interact otherwise. When no task can run any
//! more, the session ends, as R4's kernel says goodbye.
//!
//! | R4 | here |
//! |---|---|
//! | `Create(priority, function)` | [`create`] |
//! | `MyTid()`, `MyParentTid()` | [`my_tid`], [`my_parent_tid`] |
//! | `Yield()`, `Exit()` | [`yield_now`], [`exit`] |
//! | `Send(tid, msg, len, reply, len)` | [`send`] |
//! | `Receive(&tid, msg, len)` | [`receive`] |
//! | `Reply(tid, reply, len)` | [`reply`] |
//! | `WhoIs(name)`, `RegisterAs(name)` | [`who_is`], [`register_as`]; the server is [`names::serve`] |
//! | `AwaitEvent(event)` | [`await_event`] |
//! | `Time(tid)`, `Delay(tid, ticks)`, `DelayUntil(tid, ticks)` | [`clock::time`], [`clock::delay`], [`clock::delay_until`]; the server is [`clock::start`]'s |
//! | `bwprintf`, `bwgetc` | [`say!`], [`wait_key`] |
//!
//! Errors are an [`Error`] each; [`Error::code`] returns R4's number for it. A message has at most [`MAX_MESSAGE`]
//! bytes, and is cut to the length of the buffer that receives it.
//!
//! # The order of events
//!
//! The order is R4's. Of the ready tasks, the one with the highest priority runs; of several, the one that became ready
//! first. Every primitive is a *kernel entry*: afterwards its caller is queued behind all tasks of its priority. So a
//! task that replies lets its equals run before it goes on, and so does one that asks for its own identifier.
//!
//! While a task waits for anything but tasks and events, for instance in [`wait_key`], no other runs. [`say!`] does not
//! wait unless much text was stored.
//!
//! # Where it runs
//!
//! On Tench each task is a thread, and the running one's lets the next one's go on (`target`). On the host each task is
//! a thread too, of which one at a time runs (`host.rs`). Both take every decision from the same [`table`], which is
//! R4's scheduler, so a program can be tested on the host, event by event.

#![no_std]

extern crate alloc;
#[cfg(not(target_os = "none"))]
extern crate std;

pub mod cases;
pub mod clock;
mod error;
#[cfg(not(target_os = "none"))]
mod host;
pub mod measure;
pub mod names;
pub mod table;
// On the host this module is only checked, and the tests of its parts run.
#[cfg_attr(not(target_os = "none"), allow(dead_code, unused_imports))]
mod target;

use alloc::boxed::Box;
use core::fmt;

#[cfg(not(target_os = "none"))]
use host as machine;
#[cfg(target_os = "none")]
use target as machine;

pub use error::Error;
pub use names::{NAME_SERVER, register_as, who_is};
pub use table::{MAX_TASKS, Tid};

/// Maximum length in bytes of a message or reply: the 64 words of a kernel message.
pub const MAX_MESSAGE: usize = 512;

/// The event that happens every 10 milliseconds of the session's time.
pub const CLOCK_EVENT: i32 = 0;

/// Number of events, which are numbered from 0.
pub const EVENTS: i32 = 1;

/// Number of [`CLOCK_EVENT`]s per second.
pub const TICKS_PER_SECOND: u64 = 100;

/// The terminal on which tasks print, and from which keys come.
pub trait Terminal: Send {
    /// Prints text.
    fn write(&mut self, text: &str);
    /// Waits until a key is pressed.
    fn wait_key(&mut self);
}

/// Result of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Number of tasks that still waited for others when no task could run any more; servers usually do.
    pub waiting: usize,
}

/// Runs `first` as the first task, with identifier 0, and every task that it creates, until none can run. Tasks that
/// still wait then are ended.
/// Errors: those of [`create`].
///
/// # Panics
/// On the host, if a task panics. (On Tench, the process ends.)
pub fn run(
    terminal: impl Terminal + 'static,
    priority: i32,
    first: impl FnOnce() + Send + 'static,
) -> Result<Ending, Error> {
    machine::run(Box::new(terminal), priority, Box::new(first))
}

/// Creates a task, which ends when its function returns. Returns its identifier: the lowest that is free.
/// Errors: `InvalidPriority` (-1), `OutOfTasks` (-2).
pub fn create(priority: i32, function: impl FnOnce() + Send + 'static) -> Result<Tid, Error> {
    machine::create(priority, Box::new(function))
}

/// Returns the highest priority that a task can have here.
pub fn max_priority() -> i32 {
    machine::max_priority()
}

/// Returns the calling task's identifier.
pub fn my_tid() -> Tid {
    machine::my_tid()
}

/// Returns the identifier of the task that created the calling one; `None` for the first.
pub fn my_parent_tid() -> Option<Tid> {
    machine::my_parent_tid()
}

/// Yields to the other tasks of the same priority.
pub fn yield_now() {
    machine::yield_now();
}

/// Ends the calling task. Senders in its queue get `Incomplete`. Values on the task's stack are not dropped, and its
/// memory is used again.
pub fn exit() -> ! {
    machine::exit()
}

/// Sends a message and waits for the reply. Returns the length of the reply, cut to the buffer.
/// Errors: `NoSuchTask` (-1), `Incomplete` (-2, the receiver ended without receiving it), `MessageTooLong` (-2).
///
/// A receiver that ends between receiving and replying leaves its sender waiting, unless another task replies.
pub fn send(receiver: Tid, message: &[u8], reply: &mut [u8]) -> Result<usize, Error> {
    machine::send(receiver, message, reply)
}

/// Waits for a message. Returns its sender and its length, cut to the buffer.
pub fn receive(message: &mut [u8]) -> (Tid, usize) {
    machine::receive(message)
}

/// Replies to a task whose message was received, by any task. Returns the length of the reply, cut to the sender's
/// buffer.
/// Errors: `NoSuchTask` (-1), `Incomplete` (-2, it does not wait for a reply), `MessageTooLong` (-2).
pub fn reply(sender: Tid, message: &[u8]) -> Result<usize, Error> {
    machine::reply(sender, message)
}

/// Waits for an event. Returns the session's time in ticks of 10 milliseconds, which may have advanced by several since
/// the last event, if tasks of higher priority ran. An event that happens while no task waits for it is lost.
/// Errors: `NoSuchEvent` (-1), `EventTaken` (-2).
///
/// On Tench the task continues as soon as the event happens, and preempts a task of lower priority anywhere. On the
/// host time passes only when no task can run, so a program always behaves the same.
pub fn await_event(event: i32) -> Result<u64, Error> {
    machine::await_event(event)
}

/// Returns the session's time in ticks of 10 milliseconds. Not a kernel entry.
pub fn ticks() -> u64 {
    machine::ticks()
}

/// Returns the fraction, in thousandths, of the session's time so far in which no task could run. Not a kernel entry.
pub fn idle_share() -> u32 {
    machine::idle_share()
}

/// Prints text. Use [`say!`].
pub fn print(text: fmt::Arguments<'_>) {
    machine::print(text);
}

/// Waits for a key. No other task runs meanwhile, whatever its priority: R4 waits for keys by polling.
pub fn wait_key() {
    machine::wait_key();
}

/// Prints a line, without giving up the processor.
#[macro_export]
macro_rules! say {
    ($($argument:tt)*) => { $crate::print(format_args!("{}\n", format_args!($($argument)*))) };
}
