//! How long something took the first core itself, where the emulator lets other cores run in between.
//!
//! With several cores the emulator runs one after the other, while the time goes on for all: what another core does in
//! its turn seems to be time that passed here. `tools/meter`, with which such a machine is started, counts whose turns
//! those were, and writes it into a page of this program whenever that executes the page's first instruction. What is
//! subtracted are the instructions that others executed while this core could have run, to the instruction, and nothing
//! else: there is no share that is let pass. On a machine with one core nobody writes there, and all that passed
//! counts.

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
    /// The page.
    safe fn tench_meter();
}

/// Where its words lie, and how many turns are remembered: `tools/meter/src/book.rs`.
const WRITTEN: usize = 8;
const TOTAL: usize = 9;
const RESUMED: usize = 10;
const STOLEN: usize = 11;
const TURNS: usize = 12;
const LAST: usize = 16;
const REMEMBERED: u64 = 240;

/// A word of the page.
fn word(index: usize) -> u64 {
    let page = (tench_meter as unsafe extern "C" fn() as *const u64).wrapping_add(index);
    // SAFETY: the page is that function's, readable, and longer than what any index of this file names. Whoever writes
    // to it does so outside of this machine.
    unsafe { page.read_volatile() }
}

/// Whether somebody counts.
pub fn is_there() -> bool {
    let before = word(WRITTEN);
    tench_meter();
    word(WRITTEN) != before
}

/// What something answers that looks at the time and at the page, when no turn lay between the two.
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

/// Ticks in which so many instructions are executed.
fn ticks(instructions: u64) -> u64 {
    tench::sys::time::ticks(Duration::from_nanos(instructions), frequency())
}

/// A moment of the first core.
#[derive(Clone, Copy)]
pub struct Moment {
    /// In ticks.
    time: u64,
    /// Instructions of others before it, while this core could have run.
    stolen: u64,
}

impl Moment {
    /// Now.
    pub fn now() -> Moment {
        at_once(|time| Moment { time, stolen: word(STOLEN) })
    }

    /// Ticks that have passed for this core since then, as if there were no others.
    pub fn passed(self) -> u64 {
        let now = Moment::now();
        (now.time - self.time).saturating_sub(ticks(now.stolen - self.stolen))
    }
}

/// The same since a time in ticks from which on this core had something to do. What was stolen before it waited last is
/// not subtracted, and what is remembered no more is not, either: so it is not too little.
pub fn passed_since(time: u64) -> u64 {
    at_once(|now| {
        let passed = now.saturating_sub(time);
        let begin = word(TOTAL).saturating_sub(passed * (1_000_000_000 / frequency())).max(word(RESUMED));
        let turns = word(TURNS);
        let stolen = (turns.saturating_sub(REMEMBERED)..turns).map(|turn| {
            let place = LAST + 2 * (turn % REMEMBERED) as usize;
            word(place + 1).saturating_sub(word(place).max(begin))
        });
        passed.saturating_sub(ticks(stolen.sum()))
    })
}
