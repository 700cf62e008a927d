//! Count of the entries of each server's table that a program without any can get, as a check that what others had is
//! free again.
//!
//! A server may have more memory after an attack than before, and more reply objects: it keeps them for later requests.
//! A table that stays full looks the same, since it does not grow any more; but the next program gets less of it.
//!
//! ```text
//! at the beginning     a program of its own family fills all tables, and so counts the entries
//! after an attack      another one does, if anything has grown, and after all attacks: it gets as many
//! ```

use alloc::boxed::Box;
use alloc::format;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use tench::abi::Powers;
use tench::abi::layout::slot;
use tench::abi::process::DEFAULT_PRIORITY;
use tench::clock::Clock;
use tench::console::protocol::Console;
use tench::memory::make;
use tench::names::Names;
use tench::procs::{Procs, pid};
use tench::sys::{Cap, CapAddress, Frame, Instant};
use tench::thread::Builder;
use tench::time::sleep;

use super::{empty, said, soon, window};
use crate::case::{Failure, Outcome};

/// Tables in which threads wait.
const TABLES: [&str; 4] = ["clock", "console", "names", "procs"];
/// Offset in the page, behind the counts, of the word that says that the entries were counted.
const DONE: usize = TABLES.len() * 8;
/// Stack of a waiting thread, in bytes.
const STACK: usize = 8 << 10;
/// Number of attempts of a thread that is refused: a server looks for threads that have given up, some with each
/// request.
const TRIES: usize = 512;
/// More threads than can wait at a server.
const MOST: u64 = 4096;
/// Microseconds that counting may take.
const PATIENCE: u64 = 10_000_000;

/// Number of entries that a program gets in each table.
#[derive(Clone, Copy)]
pub struct Capacity([u64; TABLES.len()]);

impl Capacity {
    /// Counts the entries at the beginning, with which all later counts are [compared](Self::check): some of each
    /// table.
    pub fn first() -> Outcome<Capacity> {
        let capacity = Capacity::count()?;
        check!(capacity.0.iter().all(|count| *count > 0));
        Ok(capacity)
    }

    /// Lets a program count them that is a family of its own.
    fn count() -> Outcome<Capacity> {
        let procs = Procs::STANDARD;
        let frame = make::<Frame>(12)?;
        let page = window(frame.cap(), 12)?;
        let mut child = procs.prepare("cases")?;
        child.give(frame.cap())?;
        child.argument("attack")?;
        child.argument("take-capacity")?;
        // Its waiting threads have a higher priority than the one that counts them.
        child.configure(DEFAULT_PRIORITY - 1, DEFAULT_PRIORITY, 0, Powers::empty())?;
        let child = child.start()?;
        let end = soon(PATIENCE);
        while page.read64(DONE) == 0 && Instant::now() < end {
            sleep(Duration::from_millis(1));
        }
        let is_done = page.read64(DONE) == 1;
        let _ = procs.kill(child);
        said(procs.wait(child))?;
        check!(is_done);
        Ok(Capacity(core::array::from_fn(|table| page.read64(8 * table))))
    }

    /// Fails if there are fewer entries now.
    pub fn check(self) -> Outcome {
        let now = Capacity::count()?;
        for ((table, before), now) in TABLES.iter().zip(self.0).zip(now.0) {
            if now < before {
                return Err(Failure::new(format!("{table} has {now} entries for a program without any, of {before}")));
            }
        }
        Ok(())
    }
}

/// Runs a part that waits with as many threads as each server admits, and reports their number.
pub fn take_capacity() -> Outcome {
    let page = window(Cap::new(slot::EXTRA), 12)?;
    let clock = Clock::at(said(Names::STANDARD.look_up(Clock::NAME, empty()?))?);
    let counts = [
        fill(move || clock.delay(u64::MAX >> 2).is_err())?,
        fill(|| Console::STANDARD.get(1).is_err())?,
        fill(|| Names::STANDARD.wait_for("capacity/never", CapAddress(16_000)).is_err())?,
        // Waits for a process that does not end.
        fill(|| Procs::STANDARD.wait(pid::INIT).is_err())?,
    ];
    counts.into_iter().enumerate().for_each(|(table, count)| page.write64(8 * table, count));
    page.write64(DONE, 1);
    loop {
        sleep(Duration::from_secs(1));
    }
}

/// Starts threads that wait for ever, until one is refused. Returns how many wait.
fn fill(wait: impl Fn() -> bool + Copy + Send + 'static) -> Outcome<u64> {
    let refused: &'static AtomicU64 = Box::leak(Box::new(AtomicU64::new(0)));
    let mut started = 0;
    while refused.load(Ordering::Relaxed) == 0 && started < MOST {
        let waiting = move || {
            if (0..TRIES).all(|_| wait()) {
                refused.fetch_add(1, Ordering::Relaxed);
            }
        };
        // The new thread runs before this one goes on.
        said(Builder::new().stack_size(STACK).priority(DEFAULT_PRIORITY).spawn(waiting))?.detach();
        started += 1;
    }
    check!(started < MOST);
    Ok(started - refused.load(Ordering::Relaxed))
}
