//! The measuring threads, and the thread that watches them.
//!
//! A thread waits at its gate: first for the signal to begin, then for each of its times, which is the deadline of that
//! wait. Any other signal ends it. It makes no system call between its times but this one, so that nothing but the wait
//! is measured.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use tench::abi::layout::slot;
use tench::memory::{self, Made, make};
use tench::names::protocol::Error::Unknown;
use tench::names::{Failure, Names};
use tench::procs::Procs;
use tench::reserve::{Request, Reserve};
use tench::runtime::text;
use tench::sys::{Cap, Endpoint, Error, Instant, Kind, Notification, OWN_CSPACE, Rights, SchedulingContext};
use tench::thread::{Builder, JoinHandle};
use tench::time::{self, Duration};
use tench::{again, fs, print, println};
use tench_cyclic::live::Live;
use tench_cyclic::{Figures, Histogram, Options, Statistics, drawing, period, report};

/// Signals to the watching thread: a thread has ended, Ctrl-C was typed.
const ENDED: u64 = 1;
const INTERRUPTED: u64 = 2;
/// Time from the signal to begin to the start of all threads' periods: by then each of them waits.
const LEAD: Duration = Duration::from_millis(1);
/// Interval at which the lines on the terminal are updated.
const RENEWAL: Duration = Duration::from_millis(250);

/// Maximum time for which a server that does not run is looked up, and the pause between attempts.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(10);

/// State that all threads share.
#[derive(Default)]
struct Course {
    /// Start and end of the measurement, in ticks.
    start: AtomicU64,
    end: AtomicU64,
    is_over: AtomicBool,
    /// Time at which the measurement was over, in ticks.
    over_at: AtomicU64,
    ended: AtomicUsize,
}

/// The parameters of a thread.
struct Task {
    course: Arc<Course>,
    live: Arc<Live>,
    gate: Cap<Notification>,
    watcher: Cap<Notification>,
    /// Interval in ticks.
    interval: u64,
    loops: u64,
    /// Limit in nanoseconds.
    limit: u64,
    frequency: u64,
}

/// A thread that was started.
struct Worker {
    live: Arc<Live>,
    gate: Made<Notification>,
    thread: JoinHandle<Statistics>,
}

impl Task {
    /// Runs until something ends the thread.
    fn run(&self, mut statistics: Statistics) -> Statistics {
        if self.gate.wait().is_ok() {
            self.turns(&mut statistics);
        }
        self.course.ended.fetch_add(1, Ordering::Release);
        // The watcher also polls at the terminal's update interval.
        let _ = self.watcher.signal();
        statistics
    }

    fn turns(&self, statistics: &mut Statistics) {
        let end = self.course.end.load(Ordering::Relaxed);
        let mut time = self.course.start.load(Ordering::Relaxed).saturating_add(self.interval);
        while time <= end && (self.loops == 0 || statistics.figures.cycles < self.loops) {
            let waited = self.gate.wait_until(Instant::from_ticks(time));
            let now = Instant::now().ticks();
            if waited != Err(Error::TimedOut) || self.course.is_over.load(Ordering::Acquire) {
                // The thread may not have run for a long time.
                statistics.miss(period::due(time, self.interval, now.min(self.course.over_at.load(Ordering::Relaxed))));
                return;
            }
            statistics.record(nanoseconds(now.saturating_sub(time), self.frequency));
            let (next, missed) = period::next(time, self.interval, now);
            statistics.miss(missed);
            self.live.publish(&statistics.figures);
            if statistics.figures.last > self.limit {
                return;
            }
            time = next;
        }
    }
}

/// Returns ticks in nanoseconds.
fn nanoseconds(ticks: u64, frequency: u64) -> u64 {
    tench::sys::time::duration(ticks, frequency).as_nanos().min(u128::from(u64::MAX)) as u64
}

/// Mints a copy of the watcher's notification that signals these bits.
fn badged(signals: Cap<Notification>, bits: u64) -> Result<Cap<Notification>, String> {
    signals.mint_to(memory::take_slot().map_err(text)?, Rights::WRITE, bits).map_err(text)
}

/// Starts a thread, which waits to begin.
fn start(options: &Options, number: u64, course: &Arc<Course>, watcher: Cap<Notification>) -> Result<Worker, String> {
    let frequency = time::frequency();
    let gate = make::<Notification>(0).map_err(text)?;
    let live = Arc::new(Live::default());
    let task = Task {
        course: course.clone(),
        live: live.clone(),
        gate: gate.cap(),
        watcher,
        interval: tench::sys::time::ticks(Duration::from_nanos(options.interval_of(number)), frequency).max(1),
        loops: options.loops,
        limit: options.limit.unwrap_or(u64::MAX),
        frequency,
    };
    let histogram = options.histogram.map(|(width, buckets)| Histogram::new(width, buckets));
    if let Some(histogram) = &histogram {
        // The demand fault of a page that is first touched would be measured.
        let counts = histogram.counts();
        memory::make_present(counts.as_ptr().addr(), size_of_val(counts)).map_err(text)?;
    }
    let statistics = Statistics::new(histogram);
    let builder = Builder::new().name(&format!("T{number}")).priority(options.priority_of(number));
    let thread = builder.spawn(move || task.run(statistics)).map_err(|error| format!("thread {number}: {error}"))?;
    Ok(Worker { live, gate, thread })
}

/// Returns the reservation server of this core. Waits for one that is being started again.
fn reservation_server() -> Result<Reserve<Cap<Endpoint>>, String> {
    let slot = memory::take_slot().map_err(text)?;
    let given_up = time::deadline(PATIENCE);
    loop {
        match again(|| Names::STANDARD.look_up(Reserve::NAME, slot)) {
            Ok(found) => return Ok(Reserve::at(found)),
            Err(Failure::Refused(Unknown)) if Instant::now() < given_up => time::sleep(PAUSE),
            Err(Failure::Refused(Unknown)) => return Err("no reservation server runs on this core".into()),
            Err(failure) => return Err(text(failure)),
        }
    }
}

/// Makes a reservation for each thread. It ends with this process.
fn reserve(options: &Options, budget: u64, workers: &[Worker]) -> Result<(), String> {
    let server = reservation_server()?;
    for (number, worker) in (0..).zip(workers) {
        let context = worker.thread.scheduling().ok_or_else(|| format!("thread {number} has ended"))?;
        let request = Request::new(Duration::from_nanos(budget), Duration::from_nanos(options.interval_of(number)));
        server.request(context, &request).map_err(|refusal| format!("thread {number}: {refusal}"))?;
    }
    Ok(())
}

/// Measures, and prints the results.
pub fn measure(options: &Options) -> Result<(), String> {
    let signals = make::<Notification>(0).map_err(text)?;
    let (watcher, interrupt) = (badged(signals.cap(), ENDED)?, badged(signals.cap(), INTERRUPTED)?);
    Procs::STANDARD.on_interrupt(interrupt).map_err(text)?;
    let course = Arc::new(Course::default());
    let workers: Vec<Worker> =
        (0..options.threads).map(|number| start(options, number, &course, watcher)).collect::<Result<_, _>>()?;
    options.reserve.map_or(Ok(()), |budget| reserve(options, budget, &workers))?;
    let start = time::deadline(LEAD);
    let end = options.duration.map(|duration| start.after(tench::sys::time::ticks(duration, time::frequency())));
    course.start.store(start.ticks(), Ordering::Relaxed);
    course.end.store(end.map_or(u64::MAX, Instant::ticks), Ordering::Relaxed);
    workers.iter().try_for_each(|worker| worker.gate.cap().signal()).map_err(text)?;
    let renewed = watch(options, &course, &workers, signals.cap(), end);
    let over_at = end.map_or(Instant::now(), |end| end.min(Instant::now()));
    course.over_at.store(over_at.ticks(), Ordering::Relaxed);
    course.is_over.store(true, Ordering::Release);
    workers.iter().try_for_each(|worker| dismiss(worker).map_err(text))?;
    let statistics: Vec<Statistics> = workers.into_iter().map(|worker| worker.thread.join()).collect();
    report(options, &statistics, renewed)
}

/// Ends a thread. A thread that others do not let run ends all the same: it gets the highest priority that this program
/// may give.
fn dismiss(worker: &Worker) -> Result<(), Error> {
    if let Some(context) = worker.thread.scheduling() {
        let main = Cap::<SchedulingContext>::new(slot::SCHEDULING);
        let like = main.query()?;
        context.configure(like.ceiling, like.ceiling, like.slice, Some(main))?;
    }
    worker.gate.cap().signal()
}

/// Returns true if the program writes on the terminal itself.
fn has_terminal() -> bool {
    OWN_CSPACE.identify_at(slot::STDOUT).is_ok_and(|found| found.kind != Kind::Endpoint)
}

/// Watches the threads until the measurement ends. Returns how many lines on the terminal the last lines replace.
fn watch(
    options: &Options,
    course: &Course,
    workers: &[Worker],
    signals: Cap<Notification>,
    end: Option<Instant>,
) -> usize {
    let shows = !options.quiet && options.svg.as_deref() != Some("-") && has_terminal();
    let mut shown = 0;
    let mut renewal = time::deadline(RENEWAL);
    loop {
        let waited = match [shows.then_some(renewal), end].into_iter().flatten().min() {
            Some(deadline) => signals.wait_until(deadline),
            None => signals.wait(),
        };
        let figures: Vec<Figures> = workers.iter().map(|worker| worker.live.read()).collect();
        let is_too_late = options.limit.is_some_and(|limit| figures.iter().any(|figures| figures.most > limit));
        let is_interrupted = matches!(waited, Ok(bits) if bits & INTERRUPTED != 0);
        let has_ended = course.ended.load(Ordering::Acquire) == workers.len();
        if is_too_late || is_interrupted || has_ended || end.is_some_and(|end| Instant::now() >= end) {
            // After typed input, the last lines are new text.
            return if is_interrupted { 0 } else { shown };
        }
        if shows && Instant::now() >= renewal {
            print!("{}{}\n", back(shown), report::lines(options, &figures));
            shown = workers.len();
            renewal = time::deadline(RENEWAL);
        }
    }
}

/// Returns the control sequence that moves the cursor up by `lines` lines.
fn back(lines: usize) -> String {
    if lines == 0 { String::new() } else { format!("\x1b[{lines}A\r") }
}

/// Prints the results.
fn report(options: &Options, statistics: &[Statistics], renewed: usize) -> Result<(), String> {
    statistics.iter().for_each(Statistics::check_invariants);
    let figures: Vec<Figures> = statistics.iter().map(|one| one.figures).collect();
    let drawn: Vec<(Figures, &Histogram)> =
        statistics.iter().filter_map(|one| Some((one.figures, one.histogram.as_ref()?))).collect();
    if options.svg.as_deref() == Some("-") {
        print!("{}", drawing::draw(options, &drawn));
    } else {
        println!("{}{}", back(renewed), report::lines(options, &figures));
        if !drawn.is_empty() {
            let histograms: Vec<&Histogram> = drawn.iter().map(|(_, histogram)| *histogram).collect();
            print!("{}", report::table(options.unit, &histograms));
        }
    }
    if let Some(path) = options.svg.as_deref().filter(|path| *path != "-") {
        fs::write(path, drawing::draw(options, &drawn).as_bytes()).map_err(|error| format!("{path}: {error}"))?;
    }
    let late = (0..).zip(&figures).find(|(_, figures)| options.limit.is_some_and(|limit| figures.most > limit));
    match (late, options.limit) {
        (Some((number, figures)), Some(limit)) => {
            let (count, name) = (|value| options.unit.count(value), options.unit.name());
            Err(format!("thread {number} ran {} {name} late; {} were allowed", count(figures.most), count(limit)))
        }
        _ => Ok(()),
    }
}
