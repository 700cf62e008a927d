//! A plug-in for the emulator that tells a core's own time from the turns of the others.
//!
//! With several cores and time that is counted in instructions, the emulator lets one core run after the other, and the
//! time goes on for all of them: while the second core executes an instruction, a nanosecond passes for the first. A
//! turn lasts until the next timer of any core, or until the core sets its own timer. So who has a deadline on the
//! first core is late by what the second did, which on a real machine it would have done at the same time. The counters
//! that programs can read do not tell the two apart: in this emulator `INST_RETIRED` is that of all cores together.
//!
//! ```text
//! core 0   ██████──────████──────██████         runs ██, could run but has to wait ──, waits for an interrupt (blank)
//! core 1         ██████    ██████      ███████
//!                stolen    stolen      not stolen: core 0 has nothing to do
//! ```
//! This counts what each core executes, and writes it where a program reads it ([`book`]): into the program's own page,
//! behind an instruction that does nothing else. The program subtracts from the time that something took what was
//! stolen meanwhile. Nothing that the machine executes is changed, nor is its time.

mod book;
#[cfg(not(test))]
mod plugin;
