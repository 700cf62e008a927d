//! Client and protocol of the reservation server. Behaviour of the server: docs/manual/time.md.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

use core::fmt;
use core::time::Duration;

use tench_protocol::Transport;
use tench_sys::{Cap, SchedulingContext};

pub mod protocol;

pub use protocol::{Error, Possible, Reservation, Reserve};

/// Why a request failed.
pub type Failure = tench_protocol::Failure<Error>;

/// A wanted reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Processor time of a job.
    pub budget: Duration,
    /// Minimum time between the releases of two jobs.
    pub period: Duration,
    /// Time from a job's release within which it has to have had its budget; zero for half of the period. The shorter
    /// it is, the less of the processor is taken.
    pub deadline: Duration,
}

impl Request {
    /// Returns a budget in each period, within half of it.
    pub const fn new(budget: Duration, period: Duration) -> Request {
        Request { budget, period, deadline: Duration::ZERO }
    }
}

/// Why there is no reservation, and what would be possible.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReservationError {
    /// The share is not free; the field says how much is, in millionths.
    Overcommitted {
        /// Free share.
        free: u64,
    },
    /// The process would have more than it leaves to others; the field says how much more it may have, in millionths.
    Excessive {
        /// Share that it may have.
        free: u64,
    },
    /// A deadline would be missed; with the given budget none would.
    Unschedulable {
        /// The longest possible budget.
        budget: Duration,
    },
    /// Any other failure.
    Other(Failure),
}

impl fmt::Display for ReservationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: u64| (share / 10_000, share / 1000 % 10);
        match *self {
            ReservationError::Overcommitted { free } => {
                let (whole, tenth) = percent(free);
                write!(f, "only {whole}.{tenth} % of the processor can be reserved still")
            }
            ReservationError::Excessive { free } => {
                let (whole, tenth) = percent(free);
                write!(f, "this process may reserve only {whole}.{tenth} % of the processor, so that others can, too")
            }
            ReservationError::Unschedulable { budget } => {
                write!(f, "a deadline could be missed; a budget of {} us would be possible", budget.as_micros())
            }
            ReservationError::Other(failure) => failure.fmt(f),
        }
    }
}

impl core::error::Error for ReservationError {}

/// Returns the nanoseconds, saturating: larger values are too long anyway.
fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl<Way: Transport> Reserve<Way> {
    /// Makes the reservation for the threads that run on a scheduling context. If it is refused, returns what would be
    /// possible.
    pub fn request(&self, context: Cap<SchedulingContext>, request: &Request) -> Result<Reservation, ReservationError> {
        let [budget, period, deadline] = [request.budget, request.period, request.deadline].map(nanoseconds);
        let failure = match self.reserve(context, budget, period, deadline) {
            Ok(reservation) => return Ok(reservation),
            Err(failure) => failure,
        };
        let possible = || self.possible(period, deadline).map_err(ReservationError::Other);
        Err(match failure {
            Failure::Refused(Error::Overcommitted) => ReservationError::Overcommitted { free: possible()?.share },
            Failure::Refused(Error::Excessive) => ReservationError::Excessive { free: possible()?.share },
            Failure::Refused(Error::Unschedulable) => {
                ReservationError::Unschedulable { budget: Duration::from_nanos(possible()?.budget) }
            }
            failure => ReservationError::Other(failure),
        })
    }
}
