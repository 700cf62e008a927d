//! The counts.

use std::sync::atomic::{AtomicU64, Ordering};

/// A word. All cores' turns run in one thread of the emulator, so there is no other writer.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Word(AtomicU64);

impl Word {
    const fn new(value: u64) -> Word {
        Word(AtomicU64::new(value))
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}

/// Number of turns that are remembered.
const TURNS: usize = 240;
/// Value in place of a turn's beginning.
const NONE: u64 = u64::MAX;

/// Page that a program reads, `tests/cases/src/hostile/attacks/meter.rs`. All values are in instructions that any core
/// has executed.
#[derive(Debug)]
#[repr(C)]
pub struct Page {
    /// Number of updates.
    written: Word,
    /// Total number of instructions.
    total: Word,
    /// Total when the first core last began to run after it had waited for an interrupt.
    resumed: Word,
    /// Instructions that other cores executed while the first core could have run.
    stolen: Word,
    /// Number of turns of these.
    turns: Word,
    spare: [Word; 3],
    /// Beginning and end of the last of these turns; turn number n is at index n modulo the number of entries.
    last: [[Word; 2]; TURNS],
}

/// Counts of a machine.
pub struct Counters {
    page: Page,
    /// Set while the first core waits for an interrupt.
    waits: Word,
    /// Beginning of the turn that other cores now have.
    since: Word,
}

impl Counters {
    /// Makes the counts of a machine that was just started.
    pub const fn new() -> Counters {
        let page = Page {
            written: Word::new(0),
            total: Word::new(0),
            resumed: Word::new(0),
            stolen: Word::new(0),
            turns: Word::new(0),
            spare: [const { Word::new(0) }; 3],
            last: [const { [const { Word::new(0) }; 2] }; TURNS],
        };
        Counters { page, waits: Word::new(0), since: Word::new(NONE) }
    }

    /// Records that a core is about to execute some instructions.
    pub fn runs(&self, is_first: bool, instructions: u64) {
        let (page, total) = (&self.page, self.page.total.get());
        if is_first {
            if self.waits.get() != 0 {
                self.waits.set(0);
                page.resumed.set(total);
            }
            let since = self.since.get();
            if since != NONE {
                self.since.set(NONE);
                let turn = page.turns.get();
                if let Some([begin, end]) = page.last.get(turn as usize % TURNS) {
                    begin.set(since);
                    end.set(total);
                }
                page.turns.set(turn + 1);
                page.stolen.set(page.stolen.get() + total - since);
            }
        } else if self.since.get() == NONE && self.waits.get() == 0 {
            self.since.set(total);
        }
        page.total.set(total + instructions);
    }

    /// Records that the first core waits for an interrupt from now on: other cores' turns do not hold it up any more.
    pub fn first_waits(&self) {
        self.waits.set(1);
    }

    /// Writes the counts to the page.
    pub fn write(&self, to: &Page) {
        let page = &self.page;
        for (to, from) in to.last.iter().zip(&page.last) {
            to.iter().zip(from).for_each(|(to, from)| to.set(from.get()));
        }
        to.total.set(page.total.get());
        to.resumed.set(page.resumed.get());
        to.stolen.set(page.stolen.get());
        to.turns.set(page.turns.get());
        to.written.set(to.written.get() + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns total, resumed, stolen, and the turns.
    fn seen(counters: &Counters) -> (u64, u64, u64, Vec<(u64, u64)>) {
        let to = Counters::new().page;
        counters.write(&to);
        let turns = to.last[..to.turns.get() as usize].iter().map(|[begin, end]| (begin.get(), end.get()));
        assert_eq!(to.written.get(), 1);
        (to.total.get(), to.resumed.get(), to.stolen.get(), turns.collect())
    }

    #[test]
    fn turns_of_others_are_told_from_own_time() {
        let counters = Counters::new();
        counters.runs(true, 10);
        counters.runs(false, 5);
        counters.runs(false, 2);
        // That turn is not over.
        assert_eq!(seen(&counters), (17, 0, 0, vec![]));
        counters.runs(true, 3);
        assert_eq!(seen(&counters), (20, 0, 7, vec![(10, 17)]));
    }

    #[test]
    fn a_waiting_thread_is_delayed_by_nobody() {
        let counters = Counters::new();
        counters.runs(true, 10);
        counters.first_waits();
        counters.runs(false, 50);
        counters.runs(true, 1);
        assert_eq!(seen(&counters), (61, 60, 0, vec![]));
        counters.runs(false, 4);
        counters.runs(true, 1);
        assert_eq!(seen(&counters), (66, 60, 4, vec![(61, 65)]));
    }

    #[test]
    fn the_last_turns_are_remembered() {
        let counters = Counters::new();
        for _ in 0..TURNS + 3 {
            counters.runs(true, 1);
            counters.runs(false, 1);
        }
        counters.runs(true, 1);
        let to = Counters::new().page;
        counters.write(&to);
        assert_eq!((to.turns.get(), to.stolen.get()), (TURNS as u64 + 3, TURNS as u64 + 3));
        let last = &to.last[(TURNS + 2) % TURNS];
        assert_eq!((last[0].get(), last[1].get()), (to.total.get() - 2, to.total.get() - 1));
    }
}
