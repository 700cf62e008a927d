//! The reservation server's interface.

use tench_protocol::{Arrived, Caller, Words, interface};
use tench_sys::SchedulingContext;

/// Reserved shares of the processor. A reservation is for jobs that are released at least a period apart, one at a
/// time, and use no more than a budget each. It gives their scheduling context the budget, and a priority above all
/// programs without a reservation, after the server has made sure that its jobs, and those of all existing
/// reservations, have their budgets within their deadlines. Times are nanoseconds; shares are millionths of the
/// processor. All requests need the power `reserve`, because a reservation takes time from all others, and gives a
/// priority above the caller's ceiling.
#[interface(client = Reserve, version = 1)]
pub trait ReserveService {
    /// Reserves `budget` in each `period` for the threads that run on a scheduling context, of which the server keeps a
    /// capability (`READ` and `WRITE`). A job has had its budget within `deadline` from its release; 0 stands for half
    /// of the period. The kernel lets the context use the budget once in any interval as long as the period less the
    /// deadline, so that a delayed job does not delay the next: that share counts, and the shorter the deadline, the
    /// smaller it is. Returns the reservation; its times are those requested, the budget rounded up to ticks of the
    /// system counter, the others down.
    /// Errors: `BudgetTooShort`, `PeriodTooShort`, `PeriodTooLong`, `DeadlineTooLong` (it leaves no budget's time of
    /// the period), `BudgetTooLong` (longer than the deadline, or than what that leaves of the period), `Overcommitted`
    /// (the share is not free), `Excessive` (the process would have more than it leaves to others), `Unschedulable`
    /// (the share is free, but a deadline would be missed), `Full`, `BadContext` (a right is missing, or the kernel
    /// refuses), `Reserved` (the context has a reservation already).
    #[method(1, power(RESERVE))]
    fn reserve(
        &mut self,
        caller: Caller,
        context: Arrived<'_, SchedulingContext>,
        budget: u64,
        period: u64,
        deadline: u64,
    ) -> Result<Reservation, Error>;

    /// Ends a reservation. Its scheduling context gets back its previous priority and time slice, and has no budget. If
    /// any of the budget was used, the share is free a period less the deadline later.
    /// Errors: `Unknown`, `NotYours`.
    #[method(2, power(RESERVE))]
    fn release(&mut self, caller: Caller, id: u64) -> Result<(), Error>;

    /// Returns the reservation with the next higher number, or none after the last.
    #[method(3, power(RESERVE))]
    fn next(&mut self, after: u64) -> Result<Option<Reservation>, Error>;

    /// Returns what the caller could reserve now with this period and deadline (0: half of the period).
    /// Errors: `PeriodTooShort`, `PeriodTooLong`, `DeadlineTooLong`.
    #[method(4, power(RESERVE))]
    fn possible(&mut self, caller: Caller, period: u64, deadline: u64) -> Result<Possible, Error>;
}

impl Reserve<()> {
    /// The name under which the server is registered.
    pub const NAME: &'static str = "reserve";
}

/// A reservation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Words)]
pub struct Reservation {
    /// Number of the reservation, which is never used again.
    pub id: u64,
    /// The process that requested it.
    pub process: u64,
    /// Budget in each period, in nanoseconds.
    pub budget: u64,
    /// The period in nanoseconds.
    pub period: u64,
    /// Time from the release of a job within which it has had its budget, in nanoseconds.
    pub deadline: u64,
    /// The share that it can use, rounded up: the budget in each period less the deadline.
    pub share: u64,
    /// The priority that it gives. It changes when reservations with shorter or longer deadlines are added.
    pub priority: u64,
    /// Maximum time in nanoseconds from the release of a job until it has had its budget, with all existing
    /// reservations.
    pub response: u64,
    /// Processor time in nanoseconds that the scheduling context has used since it was made.
    pub used: u64,
}

/// A possible reservation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Words)]
pub struct Possible {
    /// Share that is free for the caller.
    pub share: u64,
    /// Longest budget in nanoseconds with which no deadline would be missed; 0 if there is none.
    pub budget: u64,
}

/// The whole processor, in the unit of shares.
pub const WHOLE: u64 = 1_000_000;
/// Maximum share of all reservations. The rest is for servers and for threads without a reservation.
pub const RESERVABLE: u64 = 800_000;
/// Shortest budget in nanoseconds.
pub const SHORTEST_BUDGET: u64 = 20_000;
/// Shortest period in nanoseconds.
pub const SHORTEST_PERIOD: u64 = 500_000;
/// Longest period in nanoseconds.
pub const LONGEST_PERIOD: u64 = 10_000_000_000;
/// Maximum number of reservations.
pub const MAX_RESERVATIONS: usize = 32;
/// Lowest priority of reservations; they have this and those up to [`LAST_PRIORITY`].
pub const FIRST_PRIORITY: u8 = 131;
/// Highest priority of reservations.
pub const LAST_PRIORITY: u8 = 180;

tench_protocol::codes! {
    /// Why a request was refused.
    pub enum Error {
        /// The budget is shorter than the shortest.
        BudgetTooShort = 1, "the budget is shorter than 20 microseconds";
        /// The budget does not fit into the deadline, or into what that leaves of the period.
        BudgetTooLong = 2, "the budget is longer than the deadline, or than what that leaves of the period; ask for less";
        /// The period is shorter than the shortest.
        PeriodTooShort = 3, "the period is shorter than 500 microseconds";
        /// The period is longer than the longest.
        PeriodTooLong = 4, "the period is longer than 10 seconds";
        /// The deadline leaves too little of the period.
        DeadlineTooLong = 5, "the deadline leaves less than 20 microseconds of the period";
        /// The share is not free.
        Overcommitted = 6, "so large a share is not free; `possible` says what is";
        /// A client may not have more than it leaves to others.
        Excessive = 7, "your family of processes would have more than it leaves to others; `possible` says what it may have";
        /// A deadline would be missed.
        Unschedulable = 8, "a deadline could be missed; `possible` says which budget could be had";
        /// No entry is free, or the client has more than are free.
        Full = 9, "there are too many reservations; release one";
        /// The scheduling context's capability lacks a right, or the kernel refuses.
        BadContext = 10, "the scheduling context cannot be read and written, or the kernel refuses the budget";
        /// There is a reservation for the context.
        Reserved = 11, "the scheduling context has a reservation; release it first";
        /// No such reservation.
        Unknown = 12, "there is no reservation with this number";
        /// The reservation is another process's.
        NotYours = 13, "the reservation is another process's";
    }
}
