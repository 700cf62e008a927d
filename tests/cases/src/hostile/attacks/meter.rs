//! Measurement of the time that the first core itself took, where the emulator lets other cores run in between.
//!
//! With several cores the emulator runs one after the other, while time goes on for all: another core's turn looks like
//! time that passed here. `tools/meter`, with which such a machine is started, counts whose turns those were, and
//! writes that into a page of this program whenever the page's first instruction is executed. Exactly the instructions
//! that other cores executed while this core could have run are subtracted; no share is estimated. On a machine with
//! one core the page is never written, and all time counts.

use core::time::Duration;

use tench::sys::Instant;
use tench::time::frequency;

core::arch::global_asm!(
    ".pushsection .text.meter, \"ax\"",
    ".balign 4096",
    ".global tench_meter",
    "tench_meter:",
    "mov xzr, xzr",
    "ret",
    ".balign 64",
    ".zero 4096 - 64",
    ".popsection",
);

unsafe extern "C" {
    /// The page; its first instruction is executed by this call.
    safe fn tench_meter();
}

/// Offsets of the page's words, and the number of turns that are remembered: `tools/meter/src/counters.rs`.
const WRITTEN: usize = 8;
const TOTAL: usize = 9;
const RESUMED: usize = 10;
const STOLEN: usize = 11;
const TURNS: usize = 12;
const LAST: usize = 16;
const REMEMBERED: u64 = 240;

/// Reads a word of the page.
fn word(index: usize) -> u64 {
    let page = (tench_meter as unsafe extern "C" fn() as *const u64).wrapping_add(index);
    // SAFETY: the page belongs to that function, is readable, and is longer than any index in this file. Its only
    // writer is outside of this machine.
    unsafe { page.read_volatile() }
}

/// Returns whether the meter is there.
pub fn is_there() -> bool {
    let before = word(WRITTEN);
    tench_meter();
    word(WRITTEN) != before
}

/// Calls `look`, which reads the time and the page, until no turn of another core lies between the two.
fn at_once<T>(look: impl Fn(u64) -> T) -> T {
    loop {
        tench_meter();
        let turns = word(TURNS);
        let seen = look(Instant::now().ticks());
        tench_meter();
        if word(TURNS) == turns {
            return seen;
        }
    }
}

/// Returns the ticks in which this many instructions are executed.
fn ticks(instructions: u64) -> u64 {
    tench::sys::time::ticks(Duration::from_nanos(instructions), frequency())
}

/// A moment of the first core.
#[derive(Clone, Copy)]
pub struct Moment {
    /// Time in ticks.
    time: u64,
    /// Instructions of other cores before it, while this core could have run.
    stolen: u64,
}

impl Moment {
    /// Returns the present moment.
    pub fn now() -> Moment {
        at_once(|time| Moment { time, stolen: word(STOLEN) })
    }

    /// Returns the ticks that have passed for this core since then, as if there were no others.
    pub fn passed(self) -> u64 {
        let now = Moment::now();
        (now.time - self.time).saturating_sub(ticks(now.stolen - self.stolen))
    }
}

/// Returns the ticks that have passed for this core since a time in ticks from which on it had something to do. Turns
/// before it last waited, and turns no longer remembered, are not subtracted: so the result is not too small.
pub fn passed_since(time: u64) -> u64 {
    at_once(|now| {
        let passed = now.saturating_sub(time);
        let begin = word(TOTAL).saturating_sub(passed * (1_000_000_000 / frequency())).max(word(RESUMED));
        let turns = word(TURNS);
        let stolen = (turns.saturating_sub(REMEMBERED)..turns).map(|turn| {
            let index = LAST + 2 * (turn % REMEMBERED) as usize;
            word(index + 1).saturating_sub(word(index).max(begin))
        });
        passed.saturating_sub(ticks(stolen.sum()))
    })
}
