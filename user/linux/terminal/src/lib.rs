//! The terminals of Linux processes.
//!
//! A [`Terminal`] is Linux's line discipline `N_TTY` as a state machine, between a device (the console, or the other
//! side of a pseudo-terminal) and the processes that have it open:
//!
//! ```text
//!  device → input → [received] → editing, signals → [lines] → read → processes
//!                                   ↓ echo
//!  device ← take_output ← [output] ← tabs, newlines ← write ← processes
//! ```
//!
//! Nothing here waits, measures time or knows processes. Who calls says when time is up ([`Reading::end`]), delivers
//! the [signals](Terminal::take_signals), takes the [output](Terminal::take_output) away, and decides whether a
//! process may read or write in the background.
//!
//! Programs see the difference of a single byte of echo, and so behaviour that looks strange is kept: it is that of
//! Linux, with whose pseudo-terminals the tests compare this crate. `IMAXBEL`, for instance, is without effect there.
//! Errors that a device reports of its line have no place here, nor have modes that only a serial line needs.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

mod characters;
mod echo;
mod edit;
mod input;
mod lines;
mod modes;
mod output;
mod read;
mod ring;
mod terminal;

pub use modes::{MODES_SIZE, Modes, control, index, input as input_modes, local, output as output_modes};
pub use read::{Ending, Progress, Reading};
pub use tench_linux_calls::Errno;
pub use terminal::{Flow, Readiness, Signal, Terminal, WindowSize};
