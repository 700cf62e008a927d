//! A thread with a reservation, which does a job in each period and records how long each took.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use tench::reserve::{Request, Reservation};
use tench::sys::Instant;
use tench::thread::Builder;
use tench::time::{self, Budget, frequency};

use super::{meter, said};
use crate::case::{Failure, Outcome};
use crate::reserve::server;

/// Budget, period and deadline of the reservation. Admission allows the servers 250 µs of the period, and little else.
const BUDGET: Duration = Duration::from_micros(200);
const PERIOD: Duration = Duration::from_millis(2);
const DEADLINE: Duration = Duration::from_micros(500);
/// Rounds of a loop in a job: a third of its budget. The rest is for the overhead around it.
const ROUNDS: u64 = 10_000;

/// Start of the first job, in ticks; 0 before that is known.
static BEGIN: AtomicU64 = AtomicU64::new(0);
/// Records since the last query.
static JOBS: AtomicU64 = AtomicU64::new(0);
static LATE: AtomicU64 = AtomicU64::new(0);
static LONGEST: AtomicU64 = AtomicU64::new(0);

/// The thread's reservation.
pub struct Reserved {
    /// The reservation as the server describes it.
    pub reservation: Reservation,
}

/// Records of the thread's jobs.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Number of jobs done.
    pub jobs: u64,
    /// Number of jobs not done in time.
    pub late: u64,
    /// Microseconds of the longest job from its release to its end.
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
        let request = Request { deadline: DEADLINE, ..Request::new(BUDGET, PERIOD) };
        let reservation = said(server()?.request(context, &request))?;
        if meter::is_there() {
            // With other cores, their turns would be charged to the budget, although they have nothing to do with this
            // thread. So the context has only its priority from the reservation, and the thread works on one core.
            said(Budget::UNLIMITED.limit(context, None))?;
        }
        thread.detach();
        BEGIN.store(Instant::now().after(ticks(PERIOD)).ticks(), Ordering::SeqCst);
        Ok(Reserved { reservation })
    }

    /// Returns the records since the last call.
    pub fn seen(&self) -> Seen {
        let take = |value: &AtomicU64| value.swap(0, Ordering::SeqCst);
        Seen { jobs: take(&JOBS), late: take(&LATE), longest: take(&LONGEST) * 1_000_000 / frequency() }
    }
}

/// The thread's body.
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
        // Each job that could not even begin was late, unless it was the other cores' turn for so long.
        release = release.after(period);
        while release.after(period) < Instant::now() {
            release = release.after(period);
            LATE.fetch_add(u64::from(is_late), Ordering::SeqCst);
        }
    }
}
