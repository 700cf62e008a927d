//! Threads that run beside the one that is measured.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use tench::thread::{Builder, JoinHandle};

use super::problem;

/// Whether to go on.
#[derive(Clone)]
pub struct Signal(Arc<AtomicBool>);

impl Signal {
    /// Whether the measuring is over.
    pub fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Threads until somebody has enough. Each answers how many rounds of its work it did.
pub struct Load {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<u64, String>>>,
}

/// What a thread of a load does.
pub type Body = Box<dyn FnOnce(Signal) -> Result<u64, String> + Send>;

impl Load {
    /// Starts them, each with its priority.
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

    /// Ends them; answers the rounds of each.
    pub fn stop(self) -> Result<Vec<u64>, String> {
        self.over.store(true, Ordering::Relaxed);
        self.threads.into_iter().map(JoinHandle::join).collect()
    }
}

/// Arithmetic and nothing else: `rounds` rounds, each of the same instructions.
#[inline(never)]
pub fn compute(mut state: u64, rounds: u32) -> u64 {
    for _ in 0..rounds {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    core::hint::black_box(state)
}

/// The load that never enters the kernel by itself.
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
