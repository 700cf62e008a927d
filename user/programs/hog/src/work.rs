//! The threads, their turns, and their end.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use tench::abi::layout::slot;
use tench::mem::Mem;
use tench::memory::{self, make};
use tench::procs::Procs;
use tench::runtime::text;
use tench::sys::{Cap, Instant, Notification, PageTable, Rights};
use tench::thread::{Builder, JoinHandle, yield_now};
use tench::time::{self, Duration};
use tench::{println, process};
use tench_hog::report::{self, Work};
use tench_hog::turns::{Turn, Turns};
use tench_hog::{Load, Options};

use crate::loads::make_load;

/// Number of periods per second that are divided among the threads.
const PERIODS: u64 = 100;
/// Number of times per second that a thread yields to the others, if no thread waits otherwise.
const TURNS: u64 = 1000;
/// Signals to the main thread: a thread has ended, Ctrl-C was typed.
const ENDED: u64 = 1;
const INTERRUPTED: u64 = 2;

/// State that all threads share.
struct Course {
    is_over: AtomicBool,
    /// Time at which the work ends, in ticks.
    end: AtomicU64,
    ended: AtomicUsize,
}

impl Course {
    const fn until(end: u64) -> Course {
        Course { is_over: AtomicBool::new(false), end: AtomicU64::new(end), ended: AtomicUsize::new(0) }
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed) || Instant::now().ticks() >= self.end.load(Ordering::Relaxed)
    }
}

/// The parameters of a thread.
struct Task {
    course: Arc<Course>,
    load: Load,
    priority: u8,
    rivals: u64,
    turns: Turns,
    /// Set if no thread waits, so that threads of equal priority have to yield.
    yields: bool,
    /// Minimum number of rounds.
    least: u64,
    watcher: Cap<Notification>,
}

impl Task {
    /// Works in its turns until the end. Returns the number of rounds.
    fn run(&self) -> Result<u64, String> {
        let outcome = self.rounds();
        self.course.ended.fetch_add(1, Ordering::Release);
        // The main thread also ends by the clock.
        let _ = self.watcher.signal();
        outcome.map_err(|error| format!("{}: {error}", self.load.name()))
    }

    fn rounds(&self) -> Result<u64, String> {
        let mut load = make_load(self.load, self.priority, self.rivals)?;
        let mut count = 0;
        while count < self.least || !self.course.is_over() {
            match self.turns.at(Instant::now().ticks()) {
                Turn::Wait(until) => time::sleep_until(Instant::from_ticks(until)),
                Turn::Work(until) => {
                    load.round()?;
                    count += 1;
                    while Instant::now().ticks() < until && !self.course.is_over() {
                        load.round()?;
                        count += 1;
                    }
                    if self.yields {
                        // The end of a time slice does not suffice: a slice begins anew whenever a thread comes back to
                        // the processor, and the load of interrupts takes it away all the time.
                        yield_now();
                    }
                }
            }
        }
        Ok(count)
    }
}

/// The threads, each with its load.
type Threads = Vec<(Load, JoinHandle<Result<u64, String>>)>;

/// Starts the threads.
fn start(options: &Options, course: &Arc<Course>, least: u64, watcher: Cap<Notification>) -> Result<Threads, String> {
    let all = options.loads.len() as u64 * options.threads;
    let yields = options.share == 100;
    let period = (time::frequency() / if yields { TURNS } else { PERIODS }).max(1);
    let loads = options.loads.iter().flat_map(|load| (0..options.threads).map(move |_| *load));
    let start_one = |(number, load): (u64, Load)| {
        let priority = options.priority_of(load);
        let rivals = if options.loads.len() > 1 { options.threads } else { 0 };
        let turns = Turns::new(period, options.share, number, all);
        let task = Task { course: course.clone(), load, priority, rivals, turns, yields, least, watcher };
        let thread = Builder::new().name(load.name()).priority(priority).spawn(move || task.run());
        Ok((load, thread.map_err(|error| format!("thread {number}: {error}"))?))
    };
    (0..).zip(loads).map(start_one).collect()
}

/// Waits for the threads, and adds up their rounds.
fn finish(options: &Options, threads: Threads) -> Result<Vec<Work>, String> {
    let mut done = Vec::new();
    for (load, thread) in threads {
        done.push((load, thread.join()?));
    }
    let sum = |load: Load| done.iter().filter(|one| one.0 == load).map(|one| one.1).sum();
    Ok(options.loads.iter().map(|&load| Work { load, threads: options.threads, rounds: sum(load) }).collect())
}

/// Returns the number of bytes on this process's account.
fn on_account() -> Result<u64, String> {
    let account = Mem::STANDARD.next_account(process::id().saturating_sub(1)).map_err(text)?;
    Ok(account.used)
}

/// Returns the number of ticks that all threads of this process have used.
fn used_ticks() -> Result<u64, String> {
    Cap::<PageTable>::new(slot::VSPACE).account().map(|account| account.ticks).map_err(text)
}

/// Works, and prints the report.
pub fn work(options: &Options) -> Result<(), String> {
    let signals = make::<Notification>(0).map_err(text)?;
    let badged = |bits| -> Result<Cap<Notification>, String> {
        signals.cap().mint_to(memory::take_slot().map_err(text)?, Rights::WRITE, bits).map_err(text)
    };
    let (watcher, interrupt) = (badged(ENDED)?, badged(INTERRUPTED)?);
    // Two rounds of each load first: after them the library has cached what it keeps, and the accounts can be compared.
    // One does not suffice: a small block that is free after it can be replaced by a larger one, as later blocks are.
    for _ in 0..2 {
        finish(options, start(options, &Arc::new(Course::until(0)), 1, watcher)?)?;
    }
    let _ = signals.cap().poll();
    Procs::STANDARD.on_interrupt(interrupt).map_err(text)?;
    if options.duration.is_none() {
        println!("Ctrl-C ends it");
    }
    let (bytes, ticks, begin) = (on_account()?, used_ticks()?, Instant::now());
    let end = options.duration.map(time::deadline);
    let course = Arc::new(Course::until(end.map_or(u64::MAX, Instant::ticks)));
    let threads = start(options, &course, 0, watcher)?;
    watch(&course, threads.len(), signals.cap(), end);
    course.is_over.store(true, Ordering::Relaxed);
    let done = finish(options, threads)?;
    let (now, used) = (Instant::now(), used_ticks()?.saturating_sub(ticks));
    report(&done, now.since(begin), used);
    match on_account()? {
        after if after == bytes => {
            println!("memory as before: {bytes} bytes");
            Ok(())
        }
        after => Err(format!("it had {bytes} bytes of memory before, and has {after} now")),
    }
}

/// Waits for the end: Ctrl-C, the time, or a thread that has ended early.
fn watch(course: &Course, threads: usize, signals: Cap<Notification>, end: Option<Instant>) {
    loop {
        let waited = match end {
            Some(end) => signals.wait_until(end),
            None => signals.wait(),
        };
        let is_interrupted = matches!(waited, Ok(bits) if bits & INTERRUPTED != 0);
        let has_ended = threads > 0 && course.ended.load(Ordering::Acquire) > 0;
        if is_interrupted || has_ended || end.is_some_and(|end| Instant::now() >= end) {
            return;
        }
    }
}

/// Prints the report.
fn report(done: &[Work], ticks: u64, used: u64) {
    let elapsed: Duration = tench::sys::time::duration(ticks, time::frequency());
    for work in done {
        println!("{}", report::line(work, elapsed));
    }
    println!("{}", report::time(elapsed, used, ticks));
}
