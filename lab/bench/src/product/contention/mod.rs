//! Calls of many threads of one process over one connection: what a call costs, and whether each thread gets its turn.
//!
//! | key | what |
//! |---|---|
//! | `at_once_N` | N threads make 100 calls each; the server replies to each at once |
//! | `below_N` | the server has a lower priority than its clients, who help it |
//! | `turns_N` | it gives up its turn once in each call as well, so that the calls of all N wait for it |
//! | `together_N` | the server keeps requests until it has one of each of the N threads, and replies to the last first |
//! | `spread_N` | of the threads of `turns_N`: calls by which the fastest is ahead of the slowest when it has made 100 |
//!
//! Instructions for each call, both sides and the kernel. Every reply is one more than the number sent, and no two
//! threads send the same numbers: so a reply that reaches the wrong thread is detected, and ends the experiment.

mod server;

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tench::thread::{self, JoinHandle};
use tench::time::instructions;

use crate::support::{Child, point, problem};
use server::Meeting;
pub use server::serve;

/// Numbers of threads.
const COUNTS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Calls of each thread.
const CALLS: u64 = 100;
/// Priority of a server above its clients, and of one below them.
const ABOVE: u8 = 130;
const BELOW: u8 = 60;

/// A way to call: takes the connection, the number to send, and the number of threads.
type Call = fn(Meeting, u64, u64) -> Result<u64, String>;

/// State that the threads share.
struct Race {
    /// Number of threads that are ready.
    ready: AtomicU64,
    begun: AtomicBool,
    /// Set once a thread has made all its calls; after that, no other thread begins a call.
    over: AtomicBool,
    /// Calls of all threads, and instructions, at that time.
    calls: AtomicU64,
    counted: AtomicU64,
    end: AtomicU64,
}

impl Race {
    const fn new() -> Race {
        Race {
            ready: AtomicU64::new(0),
            begun: AtomicBool::new(false),
            over: AtomicBool::new(false),
            calls: AtomicU64::new(0),
            counted: AtomicU64::new(0),
            end: AtomicU64::new(0),
        }
    }

    /// Makes one thread's calls: all of them, or in a race until another thread has made all. Returns their number.
    fn run(&self, client: Meeting, call: Call, thread: u64, threads: u64, is_race: bool) -> Result<u64, String> {
        self.ready.fetch_add(1, Ordering::Relaxed);
        while !self.begun.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        for number in 0..CALLS {
            if is_race && self.over.load(Ordering::Relaxed) {
                return Ok(number);
            }
            let sent = thread << 32 | number;
            if call(client, sent, threads)? != sent + 1 {
                return Err("a reply has reached the wrong thread".into());
            }
            self.calls.fetch_add(1, Ordering::Relaxed);
            // Taken after the last call of the first thread, or of all.
            if number + 1 == CALLS && (!is_race || !self.over.swap(true, Ordering::Relaxed)) {
                self.counted.store(self.calls.load(Ordering::Relaxed), Ordering::Relaxed);
                self.end.store(instructions(), Ordering::Relaxed);
            }
        }
        Ok(CALLS)
    }
}

/// Runs `threads` threads. Returns the instructions of a call and the calls of each thread.
fn run_threads(client: Meeting, call: Call, threads: usize, is_race: bool) -> Result<(u64, Vec<u64>), String> {
    let race = Arc::new(Race::new());
    let handles = (0..threads as u64).map(|number| {
        let race = Arc::clone(&race);
        let body = move || race.run(client, call, number, threads as u64, is_race);
        thread::Builder::new().spawn(body).map_err(problem("a thread"))
    });
    let handles: Vec<JoinHandle<Result<u64, String>>> = handles.collect::<Result<_, _>>()?;
    while race.ready.load(Ordering::Relaxed) < threads as u64 {
        thread::yield_now();
    }
    let before = instructions();
    race.begun.store(true, Ordering::Relaxed);
    let calls = handles.into_iter().map(JoinHandle::join).collect::<Result<Vec<u64>, String>>()?;
    let cost = race.end.load(Ordering::Relaxed) - before;
    Ok((cost / race.counted.load(Ordering::Relaxed).max(1), calls))
}

/// Runs all measurements.
pub fn run() -> Result<(), String> {
    let at_once: Call = |client, number, _| client.at_once(number).map_err(problem("a call"));
    let in_turn: Call = |client, number, _| client.in_turn(number).map_err(problem("a call"));
    let together: Call = |client, number, threads| client.together(number, threads).map_err(problem("a call"));
    let server = Child::start("contention-server", ABOVE)?;
    let client = Meeting::at(server.endpoint());
    for threads in COUNTS {
        point("at_once", threads, run_threads(client, at_once, threads, false)?.0);
        point("together", threads, run_threads(client, together, threads, false)?.0);
    }
    server.stop()?;
    let server = Child::start("contention-server", BELOW)?;
    let client = Meeting::at(server.endpoint());
    for threads in COUNTS {
        point("below", threads, run_threads(client, at_once, threads, false)?.0);
        let (cost, calls) = run_threads(client, in_turn, threads, true)?;
        point("turns", threads, cost);
        let (slowest, fastest) = (calls.iter().min().copied(), calls.iter().max().copied());
        point("spread", threads, fastest.unwrap_or(0) - slowest.unwrap_or(0));
    }
    server.stop()
}
