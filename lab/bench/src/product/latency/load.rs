//! Threads that run beside the measured one.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use tench::thread::{Builder, JoinHandle};

use super::problem;

/// Signal that says whether to go on.
#[derive(Clone)]
pub struct Signal(Arc<AtomicBool>);

impl Signal {
    /// Returns whether the measurement is over.
    pub fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Threads that run until they are stopped. Each returns its number of rounds of work.
pub struct Load {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<u64, String>>>,
}

/// Body of a load's thread.
pub type Body = Box<dyn FnOnce(Signal) -> Result<u64, String> + Send>;

impl Load {
    /// Starts the threads, each with its priority.
    pub fn start(bodies: Vec<(u8, Body)>) -> Result<Load, String> {
        let over = Arc::new(AtomicBool::new(false));
        let mut load = Load { over: Arc::clone(&over), threads: Vec::new() };
        for (priority, body) in bodies {
            let signal = Signal(Arc::clone(&over));
            let thread = Builder::new().priority(priority).spawn(move || body(signal));
            load.threads.push(thread.map_err(problem("a thread"))?);
        }
        Ok(load)
    }

    /// Ends the threads; returns the rounds of each.
    pub fn stop(self) -> Result<Vec<u64>, String> {
        self.over.store(true, Ordering::Relaxed);
        self.threads.into_iter().map(JoinHandle::join).collect()
    }
}

/// Computes `rounds` rounds of arithmetic, each of the same instructions.
#[inline(never)]
pub fn compute(mut state: u64, rounds: u32) -> u64 {
    for _ in 0..rounds {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    core::hint::black_box(state)
}

/// Starts the load that never enters the kernel by itself.
pub fn cpu() -> Result<Load, String> {
    const ROUNDS: u32 = 1000;
    let body: Body = Box::new(|signal| {
        let (mut state, mut count) = (1, 0);
        while !signal.is_over() {
            state = compute(state, ROUNDS);
            count += 1;
        }
        Ok(count)
    });
    Load::start(alloc::vec![(super::PRIORITY, body)])
}
