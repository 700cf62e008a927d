//! A thread's numbers while they change.
//!
//! The measuring thread must wait for no other thread, least of all for a reader of lower priority. So there is no
//! lock: the only writer makes a version odd before it writes and even again afterwards, and a reader that sees an odd
//! version, or another version afterwards, reads again.

use core::sync::atomic::{AtomicU64, Ordering, fence};

use crate::statistics::Figures;

/// [`Figures`] that one thread writes and others read, each time as a whole.
#[derive(Debug, Default)]
pub struct Live {
    /// Version of the numbers; odd while they are written.
    version: AtomicU64,
    /// The numbers, in the order of [`Figures`].
    words: [AtomicU64; 6],
}

impl Live {
    /// Writes the numbers. Only one thread may do so.
    pub fn publish(&self, figures: &Figures) {
        let Figures { cycles, overruns, least, last, most, sum } = *figures;
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(1), Ordering::Relaxed);
        // Stops words from being written before the odd version.
        fence(Ordering::Release);
        for (word, value) in self.words.iter().zip([cycles, overruns, least, last, most, sum]) {
            word.store(value, Ordering::Relaxed);
        }
        self.version.store(version.wrapping_add(2), Ordering::Release);
    }

    /// Reads the numbers.
    pub fn read(&self) -> Figures {
        loop {
            let before = self.version.load(Ordering::Acquire);
            let [cycles, overruns, least, last, most, sum] =
                core::array::from_fn(|index| self.words[index].load(Ordering::Relaxed));
            // Stops words from being read after the version is read again.
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == before {
                return Figures { cycles, overruns, least, last, most, sum };
            }
            core::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::sync::Arc;
    use std::thread;

    /// Returns numbers that are all equal.
    fn alike(value: u64) -> Figures {
        Figures { cycles: value, overruns: value, least: value, last: value, most: value, sum: value }
    }

    #[test]
    fn records_are_read_whole() {
        const LAST: u64 = 200_000;
        let live = Arc::new(Live::default());
        let shared = live.clone();
        let writer = thread::spawn(move || (1..=LAST).for_each(|value| shared.publish(&alike(value))));
        let mut seen = 0;
        while seen < LAST {
            let figures = live.read();
            assert_eq!(figures, alike(figures.cycles));
            assert!(figures.cycles >= seen, "nothing older follows");
            seen = figures.cycles;
        }
        writer.join().unwrap();
    }
}
