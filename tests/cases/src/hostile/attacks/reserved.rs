//! A thread with a reservation, which does a job in each period and notes how long each took.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use tench::reserve::{Reservation, Wish};
use tench::sys::Instant;
use tench::thread::Builder;
use tench::time::{self, Budget, frequency};

use super::{meter, said};
use crate::case::{Failure, Outcome};
use crate::reserve::server;

/// A job: so much processor time, every so often, within so long. Admission allows the servers 250 µs of it, and little
/// else.
const BUDGET: Duration = Duration::from_micros(200);
const PERIOD: Duration = Duration::from_millis(2);
const DEADLINE: Duration = Duration::from_micros(500);
/// Rounds of a loop that are a job: a third of its budget. The rest is for what is done around it.
const ROUNDS: u64 = 10_000;

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
        if meter::is_there() {
            // With other cores there are their turns on the budget, which have nothing to do with what the thread does.
            // It has its priority from the reservation then, and does what it does on one core.
            said(Budget::UNLIMITED.limit(context, None))?;
        }
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
    while BEGIN.load(Ordering::SeqCst) == 0 {
        time::sleep(PERIOD);
    }
    let (period, deadline) = (ticks(PERIOD), ticks(DEADLINE));
    let mut release = Instant::from_ticks(BEGIN.load(Ordering::SeqCst));
    loop {
        time::sleep_until(release);
        for round in 0..ROUNDS {
            core::hint::black_box(round);
        }
        let response = meter::passed_since(release.ticks());
        let is_late = response > deadline;
        JOBS.fetch_add(1, Ordering::SeqCst);
        LATE.fetch_add(u64::from(is_late), Ordering::SeqCst);
        LONGEST.fetch_max(response, Ordering::SeqCst);
        // Jobs that could not even begin were late, each of them, unless it was the others' turn for so long.
        release = release.after(period);
        while release.after(period) < Instant::now() {
            release = release.after(period);
            LATE.fetch_add(u64::from(is_late), Ordering::SeqCst);
        }
    }
}
