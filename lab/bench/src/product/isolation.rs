//! An experiment on whether a thread that overruns its budget can make others miss their deadlines.
//!
//! Four threads work in periods of their own, rate-monotonically: the shorter the period, the higher the priority.
//! Beside them a thread of the highest priority never stops working, although it declared that it needs only a share,
//! and below them two threads use up all that is left. Each set of periods is measured twice: `limited`, where every
//! thread with a period has a budget, and `unlimited`, where none has.
//!
//! | key | what |
//! |---|---|
//! | `missed_others` | deadlines that the four missed, of all sets, with budgets |
//! | `missed_unlimited` | these deadlines without budgets: not 0, or the experiment shows nothing |
//! | `releases` | number of releases of the four, in each of the two |
//! | `SET_missed_N`, `SET_unlimited_missed_N` | deadlines that thread N missed; SET is `harmonic` or `mixed` |
//! | `SET_worst_N`, `SET_unlimited_worst_N` | its longest response time, in percent of its period, which is its deadline |
//! | `SET_overrun`, `SET_unlimited_overrun` | processor time of the overrunning thread, in percent |
//! | `SET_idle_share`, `SET_unlimited_idle_share` | processor time left to the two below, in percent |
//!
//! A response time is from a thread's release to the end of its work; a sample `SET_N` is one of them, over the time.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use tench::println;
use tench::sys::Instant;
use tench::thread::{Builder, JoinHandle};
use tench::time::{Budget, sleep_until};

use crate::support::{figure, problem};

/// Length of each measurement in ticks (of 16 instructions): twice a common multiple of all periods of a set.
const LENGTH: u64 = 640_000;
/// Priorities: of the overrunning thread, of the thread with the shortest period, and of those that use up the rest.
const HIGHEST: u8 = 149;
const FIRST: u8 = 145;
const LOWEST: u8 = 100;
/// Budget that the overrunning thread declares.
const OVERRUNNER: Budget = Budget::from_ticks(1_200, 8_000);
/// Ticks between the start of the threads and the first release.
const LEAD: u64 = 20_000;

/// Returns the budget for some work: an eighth more, plus the costs of its release and of its end. A preempted thread
/// pays for being switched to and from.
const fn budget_for((period, work): Task) -> Budget {
    Budget::from_ticks(work + work / 8 + 300, period)
}

/// A thread that works in periods: the ticks of a period, and those that its work takes.
type Task = (u64, u64);

/// Sets of tasks. The overrunning thread has 15 % of the processor.
const SETS: [(&str, [Task; 4]); 2] = [
    ("harmonic", [(10_000, 1_500), (20_000, 3_000), (40_000, 6_000), (80_000, 12_000)]),
    ("mixed", [(10_000, 1_100), (16_000, 1_800), (20_000, 2_200), (32_000, 3_600)]),
];

/// Iterations of the work loop for a tick: of five instructions each, so that the work takes no more than it should.
const ITERATIONS_PER_TICK: u64 = 3;

/// Works for about `ticks` of the thread's own time.
fn work(ticks: u64) {
    for i in 0..ticks * ITERATIONS_PER_TICK {
        core::hint::black_box(i);
    }
}

/// Works once in each period from `start` until `end`. Returns the response times.
fn periodic((period, ticks): Task, start: Instant, end: Instant) -> Vec<u64> {
    let mut responses = Vec::with_capacity((end.since(start) / period) as usize);
    let mut release = start;
    while release < end {
        sleep_until(release);
        work(ticks);
        responses.push(Instant::now().since(release));
        release = release.after(period);
    }
    responses
}

/// Spawns a thread, and limits it to a budget.
fn thread<T: Send + 'static>(
    priority: u8,
    budget: Option<Budget>,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, String> {
    let builder = Builder::new().priority(priority).budget(budget.unwrap_or(Budget::UNLIMITED));
    builder.spawn(body).map_err(problem("a thread"))
}

/// Returns the time that a thread has used.
fn used<T>(of: &JoinHandle<T>) -> Result<u64, String> {
    let context = of.scheduling().ok_or("a thread without a scheduling context")?;
    Ok(context.query().map_err(problem("a scheduling context"))?.consumed)
}

/// Prints a thread's results; returns how often it missed its deadline.
fn report(key: &str, number: usize, (period, _): Task, responses: &[u64]) -> u64 {
    let percent = |response: u64| response * 100 / period;
    for (release, response) in responses.iter().enumerate() {
        println!("sample: {key}_{number} {} {}", release as u64 * period, percent(*response));
    }
    let missed = responses.iter().filter(|response| **response > period).count() as u64;
    figure(&format!("{key}_missed_{number}"), missed);
    figure(&format!("{key}_worst_{number}"), responses.iter().copied().map(percent).max().unwrap_or(0));
    missed
}

/// Runs a set. Returns the numbers of missed deadlines and of deadlines.
fn measure(key: &str, tasks: [Task; 4], is_limited: bool) -> Result<(u64, u64), String> {
    let limit = |budget| is_limited.then_some(budget);
    let start = Instant::now().after(LEAD);
    let end = start.after(LENGTH);
    let over = Arc::new(AtomicBool::new(false));
    let mut hogs = Vec::new();
    for _ in 0..2 {
        let over = Arc::clone(&over);
        hogs.push(thread(LOWEST, None, move || {
            while !over.load(Ordering::Relaxed) {
                work(1);
            }
        })?);
    }
    let mut threads = Vec::new();
    for (index, task) in tasks.into_iter().enumerate() {
        let budget = budget_for(task);
        let body = move || periodic(task, start, end);
        threads.push(thread(FIRST - index as u8, limit(budget), body)?);
    }
    let overrunner = thread(HIGHEST, limit(OVERRUNNER), move || {
        sleep_until(start);
        while Instant::now() < end {
            work(1);
        }
    })?;
    sleep_until(end);
    let overrun = used(&overrunner)?;
    let rest = hogs.iter().map(used).sum::<Result<u64, String>>()?;
    over.store(true, Ordering::Relaxed);
    overrunner.join();
    hogs.into_iter().for_each(JoinHandle::join);
    let (mut missed, mut releases) = (0, 0);
    for (index, thread) in threads.into_iter().enumerate() {
        let responses = thread.join();
        missed += report(key, index + 1, tasks[index], &responses);
        releases += responses.len() as u64;
    }
    figure(&format!("{key}_overrun"), overrun * 100 / LENGTH);
    figure(&format!("{key}_idle_share"), rest * 100 / LENGTH);
    Ok((missed, releases))
}

/// Runs all measurements.
pub fn run() -> Result<(), String> {
    let (mut limited, mut unlimited) = ((0, 0), (0, 0));
    for (name, tasks) in SETS {
        let (missed, releases) = measure(name, tasks, true)?;
        limited = (limited.0 + missed, limited.1 + releases);
        let (missed, releases) = measure(&format!("{name}_unlimited"), tasks, false)?;
        unlimited = (unlimited.0 + missed, unlimited.1 + releases);
    }
    figure("missed_others", limited.0);
    figure("missed_unlimited", unlimited.0);
    figure("releases", limited.1);
    if unlimited.0 == 0 {
        return Err("without budgets nobody missed a deadline, so nothing is shown".into());
    }
    if limited.1 != unlimited.1 {
        return Err("not as many releases without budgets as with them".into());
    }
    Ok(())
}
