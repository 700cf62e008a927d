//! Executions: bytes become system calls, interrupts and faults, always from a state that was prepared once.
//!
//! A fuzzer's executions begin on a new machine ([`play`]). Those of the tests ([`execute`]) need no fuzzer: execution
//! `n` has bytes that follow from `n`, and begins in a state that follows from its batch, to which up to 400 random
//! events have led. Between executions an image of the state is restored, which takes some microseconds; making
//! a new machine takes milliseconds.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use tench_arch_host::check::Inventory;
use tench_arch_host::image::{Image, Regions};

use crate::panic_message;
use crate::player::Player;
use crate::source::{Bytes, Seeded, Source};

/// Number of executions that begin in the same state.
pub const BATCH: u64 = 1000;
/// Maximum number of random events that lead to that state.
const EVENTS: u64 = 400;
/// Length of the longest execution in bytes.
const LENGTH: u64 = 2000;

/// A machine in a state that can be restored.
pub struct Prepared {
    /// The player that makes the calls.
    pub player: Player,
    regions: Regions,
    image: Image,
}

impl Prepared {
    /// Prepares the current state of a player's machine. Operations that its threads have begun in the kernel are
    /// forgotten, as if their registers had been written.
    pub fn new(mut player: Player) -> Prepared {
        let m = &mut player.machine;
        m.forget_suspended();
        let threads = Inventory::take(m.kernel()).map_or(Vec::new(), |inventory| inventory.threads);
        for thread in threads {
            m.thread(thread).kernel_stack_pointer = 0;
        }
        let (regions, image) = m.save_all();
        Prepared { player, regions, image }
    }

    /// Prepares the state in which a batch of executions begins: that of a new machine after random events, or after
    /// fewer if no thread could do anything any more.
    ///
    /// # Errors
    /// Fails with a description of what is wrong with the kernel's state.
    pub fn batch(number: u64) -> Result<Prepared, String> {
        let mut events = Seeded::new(!number).below(EVENTS + 1);
        loop {
            let mut player = Player::new(number, number.is_multiple_of(2));
            player.is_silent = true;
            let mut source = Seeded::new(number);
            let mut made = 0;
            while made < events && player.step(&mut source)? {
                made += 1;
            }
            if made == events {
                return Ok(Prepared::new(player));
            }
            events = made / 2;
        }
    }

    /// Restores the state.
    pub fn restore(&mut self) {
        self.player.machine.restore_all(&self.regions, &self.image);
    }

    /// Plays bytes to their end. The first byte chooses whether the fast path is taken, and what happens at preemption
    /// points. Returns the number of calls made.
    ///
    /// # Errors
    /// Fails with a description of what is wrong with the kernel's state.
    pub fn execute(&mut self, bytes: &[u8]) -> Result<u64, String> {
        self.restore();
        let (first, rest) = bytes.split_first().unwrap_or((&0, &[]));
        self.player.start(u64::from(first >> 1), first & 1 != 0);
        self.player.refusals.start(bytes.len() as u64);
        let mut source = Bytes(rest);
        while !source.exhausted() {
            let goes_on = self.player.step(&mut source)?;
            self.player.machine.mark_ipc_buffers();
            if !goes_on {
                break;
            }
        }
        Ok(self.player.calls)
    }
}

thread_local! {
    /// A new machine.
    static FRESH: RefCell<Option<Prepared>> = const { RefCell::new(None) };
}

/// Plays a fuzzer's bytes from the state of a new machine, which each thread makes once. Returns the number of calls
/// made.
///
/// # Errors
/// Fails with a description of what is wrong with the kernel's state.
pub fn play(bytes: &[u8]) -> Result<u64, String> {
    let make = || {
        let mut player = Player::new(0, false);
        player.is_silent = true;
        Prepared::new(player)
    };
    let mut fresh = FRESH.take().unwrap_or_else(make);
    let result = fresh.execute(bytes);
    FRESH.set(Some(fresh));
    result
}

/// Returns the bytes of an execution.
pub fn bytes(execution: u64) -> Vec<u8> {
    let mut source = Seeded::new(execution);
    let length = 1 + source.below(LENGTH) as usize;
    let words = length.div_ceil(8);
    let mut bytes: Vec<u8> = (0..words).flat_map(|_| source.word().to_le_bytes()).collect();
    bytes.truncate(length);
    bytes
}

/// Totals over executions.
#[derive(Clone, Copy, Debug)]
pub struct Sum {
    /// Number of executions that were played to their ends.
    pub executions: u64,
    /// Number of system calls made in them.
    pub calls: u64,
    /// Number of calls that succeeded, by operation number, also those of the preparations.
    pub succeeded: [u64; 128],
    /// Number of calls that failed, by operation number.
    pub refused: [u64; 128],
    /// Number of calls that failed and after which the state was compared with that before.
    pub compared: u64,
}

impl Sum {
    const NOTHING: Sum = Sum { executions: 0, calls: 0, succeeded: [0; 128], refused: [0; 128], compared: 0 };

    fn add(&mut self, other: &Sum) {
        self.executions += other.executions;
        self.calls += other.calls;
        self.compared += other.compared;
        for i in 0..128 {
            self.succeeded[i] += other.succeeded[i];
            self.refused[i] += other.refused[i];
        }
    }
}

/// An error that was found.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Number of the execution; the first of its batch also stands for the preparation.
    pub execution: u64,
    /// Description of the error.
    pub wrong: String,
    /// The last events before the error.
    pub history: Vec<String>,
}

/// Plays `batches` batches from `first` on, by `workers` threads. Calls `report` with the number that have ended.
///
/// # Errors
/// Fails with the first error that a worker found.
pub fn execute(first: u64, batches: u64, workers: usize, report: impl Fn(u64) + Sync) -> Result<Sum, Finding> {
    let (next, ended) = (AtomicU64::new(0), AtomicU64::new(0));
    let work = || {
        let mut sum = Sum::NOTHING;
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= batches {
                return Ok(sum);
            }
            let part = execute_batch(first + number).inspect_err(|_| next.store(batches, Ordering::Relaxed))?;
            sum.add(&part);
            report(ended.fetch_add(1, Ordering::Relaxed) + 1);
        }
    };
    let parts = std::thread::scope(|threads| {
        let workers: Vec<_> = (0..workers).map(|_| threads.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().expect("panics are caught")).collect::<Vec<_>>()
    });
    let mut sum = Sum::NOTHING;
    for part in parts {
        sum.add(&part?);
    }
    Ok(sum)
}

/// Plays one batch.
fn execute_batch(number: u64) -> Result<Sum, Finding> {
    let first = number * BATCH;
    let finding = |execution, wrong| Finding { execution, wrong, history: Vec::new() };
    let mut prepared = caught(|| Prepared::batch(number)).map_err(|wrong| finding(first, wrong))?;
    let mut sum = Sum::NOTHING;
    for execution in first..first + BATCH {
        match caught(|| prepared.execute(&bytes(execution))) {
            Ok(calls) => sum.add(&Sum { executions: 1, calls, ..Sum::NOTHING }),
            Err(wrong) => {
                // Suspended entries may unwind through broken state.
                std::mem::forget(prepared);
                return Err(Finding { history: history(execution), ..finding(execution, wrong) });
            }
        }
    }
    (sum.succeeded, sum.refused) = (prepared.player.succeeded, prepared.player.refused);
    sum.compared = prepared.player.refusals.compared;
    Ok(sum)
}

/// Plays an execution again. Returns its last events.
pub fn history(execution: u64) -> Vec<String> {
    let Ok(mut prepared) = caught(|| Prepared::batch(execution / BATCH)) else { return Vec::new() };
    prepared.player.is_silent = false;
    let result = caught(|| prepared.execute(&bytes(execution)));
    let mut history = std::mem::take(&mut prepared.player.history);
    history.push(format!("{result:?}"));
    std::mem::forget(prepared);
    history
}

/// Turns panics into errors.
fn caught<T>(job: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(job)).unwrap_or_else(|payload| Err(panic_message(payload.as_ref())))
}

#[cfg(test)]
mod tests {
    use tench_arch_host::Machine;
    use tench_arch_host::memory::RAM_START;

    use super::*;

    /// Returns a hash of all of the memory.
    fn memory(m: &mut Machine) -> u64 {
        let memory = &m.host().memory;
        let words = (RAM_START..RAM_START + memory.size() as u64).step_by(8).map(|address| memory.read(address));
        words.fold(0, |sum: u64, word| sum.rotate_left(7).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ word)
    }

    #[test]
    fn all_of_the_memory_is_put_back() {
        for batch in 0..4 {
            let mut prepared = Prepared::batch(batch).expect("the kernel is sound");
            let before = memory(&mut prepared.player.machine);
            let mut changed = 0;
            for round in 0..4 {
                for execution in 0..25 {
                    prepared.execute(&bytes(100 * batch + 25 * round + execution)).expect("the kernel is sound");
                }
                changed += u64::from(memory(&mut prepared.player.machine) != before);
                prepared.restore();
                assert_eq!(memory(&mut prepared.player.machine), before, "batch {batch}, round {round}");
            }
            assert!(changed > 0, "nothing was ever written");
        }
    }

    #[test]
    fn an_execution_depends_on_nothing_before_it() {
        let figures = |prepared: &mut Prepared, execution| {
            let calls = prepared.execute(&bytes(execution));
            let current = prepared.player.machine.current();
            (calls, prepared.player.machine.results(current), memory(&mut prepared.player.machine))
        };
        let mut one = Prepared::batch(1).expect("the kernel is sound");
        let first = figures(&mut one, 1000);
        for execution in 1001..1020 {
            one.execute(&bytes(execution)).expect("the kernel is sound");
        }
        assert_eq!(figures(&mut one, 1000), first);
    }
}
