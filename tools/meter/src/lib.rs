//! A plug-in for the emulator, which counts one of two things: the instructions of each core, to separate a core's own
//! time from the turns of the others; or, with the argument `lines=FILE`, the [`lines`] that the kernel touches while
//! interrupts are off. Neither the machine's execution nor its time is changed.
//!
//! With several cores and time that is counted in instructions, the emulator lets one core run after the other, and the
//! time goes on for all of them: while the second core executes an instruction, a nanosecond passes for the first. A
//! turn lasts until the next timer of any core, or until the core sets its own timer. So a thread with a deadline on
//! the first core is late by the second core's turn, which on a real machine would have run at the same time. The
//! counters that programs can read do not distinguish the two: in this emulator `INST_RETIRED` is that of all cores
//! together.
//!
//! ```text
//! core 0   ██████──────████──────██████         runs ██, could run but has to wait ──, waits for an interrupt (blank)
//! core 1         ██████    ██████      ███████
//!                stolen    stolen      not stolen: core 0 has nothing to do
//! ```
//! The plug-in counts the instructions of each core, and writes the counts into a program's own page, behind a marking
//! instruction ([`counters`]). The program subtracts the stolen instructions from a measured time.

#[cfg(not(test))]
mod count_lines;
#[cfg(not(test))]
mod count_turns;
mod counters;
#[cfg(not(test))]
mod emulator;
mod lines;
#[cfg(not(test))]
mod plugin;
