//! A slow, obvious specification of the kernel, and random tests of the kernel itself.
//!
//! ```text
//!   messages  what messages, signals and replies mean
//!   source   random choices: from a seed, or from a fuzzer's bytes
//!   player   every system call with every shape of argument, and a check of the whole state after each
//! ```

#![forbid(unsafe_code)]

pub mod messages;
pub mod player;
pub mod source;
