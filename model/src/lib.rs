//! A slow, obvious specification of the kernel, and random tests of the kernel itself.
//!
//! ```text
//!   messages      what messages, signals and replies mean
//!   inheritance   who runs at whose priority meanwhile
//!   mappings      what frames, page tables and mappings mean
//!   player        every system call with every shape of argument, and a check of the whole state after each
//!   arguments     what it makes them with
//!   source        random choices: from a seed, or from a fuzzer's bytes
//! ```

#![forbid(unsafe_code)]

pub mod arguments;
mod inheritance;
pub mod mappings;
pub mod messages;
pub mod player;
pub mod source;
