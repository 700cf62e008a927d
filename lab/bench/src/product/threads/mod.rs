//! Measurements of a shared counter with turn-taking: R2's table 8.2.
//!
//! Each of N threads takes a lock of its own (its turn), takes the counter's lock, increments the counter, releases
//! that lock, and releases the next thread's turn. So each increment takes two locks acquired and released, one of them
//! after a wait.
//!
//! | key | the locks |
//! |---|---|
//! | `local_N` | of this library, between threads of one process |
//! | `server_N` | of a server in another address space: a call to acquire a lock, and one to release it |
//! | `shared_N` | of this library, in memory shared by two processes with half of the threads each |
//! | `…_uncontended` | acquiring and releasing an uncontended lock |
//! | `local_9_percent` | `local_9` in percent of `server_9` |
//! | `local_64_percent` | `local_64` in percent of `local_2` |
//! | `calls_64` | 64 threads of one process, all blocked in a call to the server: instructions from the first reply until all have gone on, for each |
//!
//! Instructions for each increment, the kernel's included, from one turn of the first thread to a later one.

mod server;
mod shared;

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tench::sync::{RawLock, raw_lock};
use tench::thread::{self, JoinHandle};
use tench::time::instructions;

use crate::support::{decimal, figure, point, problem};

pub use server::serve;
pub use shared::child;

/// Numbers of threads.
const COUNTS: [usize; 11] = [2, 3, 4, 5, 6, 7, 8, 9, 16, 32, 64];
/// Turns of each thread before those that count, and until the last that counts.
const WARM_UP: u64 = 4;
const TURNS: u64 = 36;
/// Number of pairs of the uncontended measurement.
const PAIRS: u64 = 256;

/// Locks that may be released by another thread than acquired them.
trait Locks {
    fn lock(&self, index: usize);
    fn unlock(&self, index: usize);
}

/// State that the threads share besides the locks: all but the first turn are held at the beginning. The counter's lock
/// comes last.
struct Counter {
    value: AtomicU64,
    before: AtomicU64,
    after: AtomicU64,
}

impl Counter {
    const fn new() -> Counter {
        Counter { value: AtomicU64::new(0), before: AtomicU64::new(0), after: AtomicU64::new(0) }
    }

    /// Returns the instructions for each increment, with one decimal.
    fn result(&self, threads: usize) -> Result<String, String> {
        let increments = (TURNS - WARM_UP) * threads as u64;
        if self.value.load(Ordering::Relaxed) != (TURNS + 1) * threads as u64 {
            return Err(format!("the counter is {} in the end", self.value.load(Ordering::Relaxed)));
        }
        let cost = self.after.load(Ordering::Relaxed).wrapping_sub(self.before.load(Ordering::Relaxed));
        Ok(decimal(cost, increments))
    }
}

/// Takes the turns of thread `number` of `threads`.
fn take_turns(locks: &impl Locks, counter: &Counter, number: usize, threads: usize) {
    let next = (number + 1) % threads;
    for turn in 0..=TURNS {
        locks.lock(number);
        if number == 0 && turn == WARM_UP {
            counter.before.store(instructions(), Ordering::Relaxed);
        }
        if number == 0 && turn == TURNS {
            counter.after.store(instructions(), Ordering::Relaxed);
        }
        locks.lock(threads);
        // Only the holder of the lock changes the counter.
        counter.value.store(counter.value.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        locks.unlock(threads);
        locks.unlock(next);
    }
}

/// Runs the threads of one process; the caller is the first.
fn in_one_process<L: Locks + Send + Sync + 'static>(locks: L, threads: usize) -> Result<String, String> {
    let shared = Arc::new((locks, Counter::new()));
    for number in 1..threads {
        shared.0.lock(number);
    }
    let others = (1..threads).map(|number| {
        let shared = Arc::clone(&shared);
        let body = move || take_turns(&shared.0, &shared.1, number, threads);
        thread::Builder::new().spawn(body).map_err(problem("a thread"))
    });
    let others: Vec<JoinHandle<()>> = others.collect::<Result<_, _>>()?;
    take_turns(&shared.0, &shared.1, 0, threads);
    others.into_iter().for_each(JoinHandle::join);
    shared.1.result(threads)
}

/// The library's locks.
struct Local(Vec<RawLock>);

impl Locks for Local {
    fn lock(&self, index: usize) {
        self.0[index].lock();
    }

    fn unlock(&self, index: usize) {
        // SAFETY: every lock is held by its user or, at the beginning, on its behalf, and protects nothing else.
        unsafe { self.0[index].unlock() };
    }
}

/// Returns a value as a number of tenths.
fn tenths(value: &str) -> u64 {
    value.bytes().filter(u8::is_ascii_digit).fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'))
}

/// Measures acquiring and releasing an uncontended lock.
fn uncontended(kind: &str, mut pair: impl FnMut()) {
    pair();
    let before = instructions();
    for _ in 0..PAIRS {
        pair();
    }
    figure(&format!("{kind}_uncontended"), decimal(instructions() - before, PAIRS));
}

/// Runs all measurements.
pub fn run() -> Result<(), String> {
    let locks = Local((0..2).map(|_| raw_lock()).collect());
    uncontended("local", || {
        locks.lock(0);
        locks.unlock(0);
    });
    let (mut of_two, mut of_nine, mut of_many) = (0, 0, 0);
    for threads in COUNTS {
        let value = in_one_process(Local((0..=threads).map(|_| raw_lock()).collect()), threads)?;
        point("local", threads, &value);
        match threads {
            2 => of_two = tenths(&value),
            9 => of_nine = tenths(&value),
            64 => of_many = tenths(&value),
            _ => {}
        }
    }
    figure("local_64_percent", decimal(of_many * 100, of_two));
    let server = server::Server::start()?;
    uncontended("server", || {
        server.locks().lock(0);
        server.locks().unlock(0);
    });
    for threads in COUNTS {
        let value = in_one_process(server.locks(), threads)?;
        point("server", threads, &value);
        server.check(threads)?;
        if threads == 9 {
            figure("local_9_percent", decimal(of_nine * 100, tenths(&value)));
        }
    }
    blocked_calls(&server)?;
    server.stop()?;
    shared::run()
}

/// Measures threads that wait in a call at the same time.
fn blocked_calls(server: &server::Server) -> Result<(), String> {
    const THREADS: usize = 64;
    let (arrived, passed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    server.locks().lock(0);
    let threads = (0..THREADS).map(|_| {
        let (locks, arrived, passed) = (server.locks(), Arc::clone(&arrived), Arc::clone(&passed));
        let body = move || {
            arrived.fetch_add(1, Ordering::Relaxed);
            locks.lock(0);
            passed.fetch_add(1, Ordering::Relaxed);
            locks.unlock(0);
        };
        thread::Builder::new().spawn(body).map_err(problem("a thread"))
    });
    let threads: Vec<JoinHandle<()>> = threads.collect::<Result<_, _>>()?;
    while arrived.load(Ordering::Relaxed) < THREADS || server.waiting()? < THREADS as u64 {
        thread::yield_now();
    }
    if passed.load(Ordering::Relaxed) != 0 {
        return Err("a call returned that should wait".into());
    }
    let before = instructions();
    server.locks().unlock(0);
    while passed.load(Ordering::Relaxed) < THREADS {
        thread::yield_now();
    }
    let cost = instructions() - before;
    threads.into_iter().for_each(JoinHandle::join);
    figure("calls_64", decimal(cost, THREADS as u64));
    Ok(())
}
