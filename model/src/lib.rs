//! A slow, obvious specification of the kernel, and random tests of the kernel itself.
//!
//! ```text
//!   mappings  what frames, page tables and mappings mean
//!   messages  what messages, signals and replies mean
//!   source    random choices: from a seed, or from a fuzzer's bytes
//!   player    every system call with every shape of argument, and a check of the whole state after each
//! ```

#![forbid(unsafe_code)]

pub mod mappings;
pub mod messages;
pub mod player;
pub mod source;
