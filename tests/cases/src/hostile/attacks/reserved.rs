//! A thread with a reservation, which does a job in each period and notes how long each took.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use tench::reserve::{Reservation, Wish};
use tench::sys::Instant;
use tench::thread::{Builder, current_thread};
use tench::time::{self, frequency};

use super::said;
use crate::case::{Failure, Outcome};
use crate::reserve::server;

/// A job: so much processor time, every so often, within so long. Admission allows the servers 250 µs of it, and little else.
const BUDGET: Duration = Duration::from_micros(200);
const PERIOD: Duration = Duration::from_millis(2);
const DEADLINE: Duration = Duration::from_micros(500);
/// Of a job's budget, what it needs is one part of so many. The rest is for what the loop itself takes, and in a machine with several cores
/// for the others, which the emulator runs in turns while the time goes on.
const PARTS: u64 = 5;

/// When the first job begins, in ticks; 0 before that is known.
static BEGIN: AtomicU64 = AtomicU64::new(0);
/// What was seen since it was asked last.
static JOBS: AtomicU64 = AtomicU64::new(0);
static LATE: AtomicU64 = AtomicU64::new(0);
static LONGEST: AtomicU64 = AtomicU64::new(0);

/// The thread's reservation.
pub struct Reserved {
    /// As the server has it.
    pub reservation: Reservation,
}

/// What was seen of its jobs.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// How many were done.
    pub jobs: u64,
    /// How many were not done in time.
    pub late: u64,
    /// Microseconds of the longest from its beginning to its end.
    pub longest: u64,
}

fn ticks(duration: Duration) -> u64 {
    tench::sys::time::ticks(duration, frequency())
}

impl Reserved {
    /// Starts the thread.
    pub fn start() -> Outcome<Reserved> {
        let thread = said(Builder::new().name("reserved").spawn(work))?;
        let context = thread.scheduling().ok_or_else(|| Failure::new("the thread has no context"))?;
        let wish = Wish { deadline: DEADLINE, ..Wish::new(BUDGET, PERIOD) };
        let reservation = said(server()?.wish(context, &wish))?;
        thread.detach();
        BEGIN.store(Instant::now().after(ticks(PERIOD)).ticks(), Ordering::SeqCst);
        Ok(Reserved { reservation })
    }

    /// What was seen since this was asked last.
    pub fn seen(&self) -> Seen {
        let take = |value: &AtomicU64| value.swap(0, Ordering::SeqCst);
        Seen { jobs: take(&JOBS), late: take(&LATE), longest: take(&LONGEST) * 1_000_000 / frequency() }
    }
}

/// What the thread does.
fn work() {
    let used = || current_thread().query().map_or(0, |info| info.ticks);
    while BEGIN.load(Ordering::SeqCst) == 0 {
        time::sleep(PERIOD);
    }
    let (share, period, deadline) = (ticks(BUDGET) / PARTS, ticks(PERIOD), ticks(DEADLINE));
    let mut release = Instant::from_ticks(BEGIN.load(Ordering::SeqCst));
    loop {
        time::sleep_until(release);
        let end = used() + share;
        while used() < end {}
        let response = Instant::now().since(release);
        JOBS.fetch_add(1, Ordering::SeqCst);
        LATE.fetch_add(u64::from(response > deadline), Ordering::SeqCst);
        LONGEST.fetch_max(response, Ordering::SeqCst);
        // Jobs that could not even begin were late, each of them.
        release = release.after(period);
        while release.after(period) < Instant::now() {
            release = release.after(period);
            LATE.fetch_add(1, Ordering::SeqCst);
        }
    }
}
