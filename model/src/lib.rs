//! A slow, obvious specification of the kernel, and random tests of the kernel itself.
//!
//! ```text
//!   messages      the meaning of messages, signals and replies
//!   helping       on which scheduling context each thread runs, and at which priority
//!   mappings      the meaning of frames, page tables and mappings
//!   player        every system call with every shape of argument, and a check of the whole state after each
//!   refusals      that a call which fails has changed nothing
//!   executions    many short plays, each from a prepared state
//!   small_scope   every sequence of system calls in a small universe, and a check of each state
//!   arguments     the arguments that the player uses
//!   source        random choices: from a seed, or from a fuzzer's bytes
//! ```

#![forbid(unsafe_code)]

pub mod arguments;
pub mod executions;
pub mod helping;
pub mod mappings;
pub mod messages;
pub mod player;
pub mod refusals;
pub mod small_scope;
pub mod source;

/// Returns the message of a panic.
fn panic_message(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".to_owned())
}
