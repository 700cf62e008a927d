//! A thread of the usual priority that is always busy: its progress shows how much of the first core's time was left to
//! it.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tench::abi::process::DEFAULT_PRIORITY;
use tench::thread::{Builder, JoinHandle};

use super::meter::Moment;
use super::said;
use crate::case::Outcome;

/// Rounds of a loop between two counts.
const ROUNDS: u64 = 1000;
/// Number of counts measured to calibrate.
const SAMPLES: u64 = 20;
/// Priority at which only the clock and the memory server run meanwhile.
const ALONE: u8 = 199;

/// Set while the thread is to go on.
static GOES_ON: AtomicBool = AtomicBool::new(false);
/// Number of counts done.
static DONE: AtomicU64 = AtomicU64::new(0);

/// The bystander's thread.
pub struct Bystander {
    thread: JoinHandle<()>,
    /// Ticks that the calibration took.
    samples: u64,
    start: Moment,
}

fn step() {
    for round in 0..ROUNDS {
        core::hint::black_box(round);
    }
}

impl Bystander {
    /// Starts the thread.
    pub fn start() -> Outcome<Bystander> {
        let sample = || {
            let start = Moment::now();
            (0..SAMPLES).for_each(|_| step());
            start.passed()
        };
        let samples = said(Builder::new().priority(ALONE).spawn(sample))?.join();
        GOES_ON.store(true, Ordering::SeqCst);
        DONE.store(0, Ordering::SeqCst);
        let work = || {
            while GOES_ON.load(Ordering::SeqCst) {
                step();
                DONE.fetch_add(1, Ordering::SeqCst);
            }
        };
        let thread = said(Builder::new().priority(DEFAULT_PRIORITY).spawn(work))?;
        Ok(Bystander { thread, samples, start: Moment::now() })
    }

    /// Ends the thread. Returns the time it had, in percent of the core's time.
    pub fn end(self) -> u64 {
        let (passed, done) = (self.start.passed(), DONE.load(Ordering::SeqCst));
        GOES_ON.store(false, Ordering::SeqCst);
        self.thread.join();
        done * self.samples * 100 / (SAMPLES * passed.max(1))
    }
}
