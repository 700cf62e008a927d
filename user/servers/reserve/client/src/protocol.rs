//! The reservation server's interface.

use tench_protocol::{Arrived, Caller, Words, interface};
use tench_sys::SchedulingContext;

/// Shares of the processor that are kept. A reservation is for jobs that begin at least a period apart, one at a time,
/// and use no more than a budget each. It gives their scheduling context the budget, and a priority above all programs
/// without a reservation, after the server has made sure that its jobs, and those of everybody who has one already,
/// have their budgets within their deadlines. Times are nanoseconds; shares are millionths of the processor. All of it
/// needs the power `reserve`, because a reservation takes from everybody else, and gives a priority above the ceiling
/// of whoever asks.
#[interface(client = Reserve, version = 1)]
pub trait ReserveService {
    /// Reserves `budget` in each `period` for whoever runs on a scheduling context, of which the server keeps a
    /// capability (`READ` and `WRITE`). A job has had its budget within `deadline` from its beginning; 0 stands for
    /// half of the period. The kernel lets the context use the budget once in any stretch of time as long as the period
    /// less the deadline, so that a job that was held up does not delay the next: that is the share that counts, and
    /// the shorter the deadline, the less it is. Answers the reservation; its times are those asked for, the budget
    /// rounded up to ticks of the system counter, the others down.
    /// Errors: `BudgetTooShort`, `PeriodTooShort`, `PeriodTooLong`, `DeadlineTooLong` (it leaves no budget's time of
    /// the period), `BudgetTooLong` (longer than the deadline, or than what that leaves of the period), `Overcommitted`
    /// (the share is not free), `Excessive` (the process would have more than it leaves to others), `Unschedulable`
    /// (the share is free, but somebody would miss a deadline), `Full`, `BadContext` (a right is missing, or the kernel
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

    /// Gives a reservation up. Its scheduling context has the priority and the time slice that it had before, and no
    /// budget. If any of it was used, its share is free a period less the deadline later.
    /// Errors: `Unknown`, `NotYours`.
    #[method(2, power(RESERVE))]
    fn release(&mut self, caller: Caller, id: u64) -> Result<(), Error>;

    /// The reservation with the next higher number. None after the last.
    #[method(3, power(RESERVE))]
    fn next(&mut self, after: u64) -> Result<Option<Reservation>, Error>;

    /// What the caller could reserve now with this period and deadline (0: half of the period).
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
    /// Its number, which is never used again.
    pub id: u64,
    /// The process that asked for it.
    pub process: u64,
    /// Nanoseconds in each period.
    pub budget: u64,
    /// The period in nanoseconds.
    pub period: u64,
    /// Nanoseconds from the beginning of a job in which it has had its budget.
    pub deadline: u64,
    /// The share that it can use, rounded up: the budget in each period less the deadline.
    pub share: u64,
    /// The priority that it gives. It changes when others with shorter or longer deadlines come.
    pub priority: u64,
    /// Longest time in nanoseconds from the beginning of a job until it has had its budget, with all reservations
    /// that there are.
    pub response: u64,
    /// Processor time in nanoseconds that the scheduling context has used since it was made.
    pub used: u64,
}

/// What could be reserved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Words)]
pub struct Possible {
    /// Share that is free for the caller.
    pub share: u64,
    /// Longest budget in nanoseconds with which nobody would miss a deadline; 0 if there is none.
    pub budget: u64,
}

/// The whole processor, in the unit of shares.
pub const WHOLE: u64 = 1_000_000;
/// What can be reserved in all. The rest is for servers and for whoever has no reservation.
pub const RESERVABLE: u64 = 800_000;
/// Nanoseconds of the shortest budget.
pub const SHORTEST_BUDGET: u64 = 20_000;
/// Nanoseconds of the shortest period.
pub const SHORTEST_PERIOD: u64 = 500_000;
/// Nanoseconds of the longest period.
pub const LONGEST_PERIOD: u64 = 10_000_000_000;
/// Reservations that there can be.
pub const MAX_RESERVATIONS: usize = 32;
/// Priorities that reservations give: this and those below [`LAST_PRIORITY`].
pub const FIRST_PRIORITY: u8 = 131;
/// The highest of them.
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
        /// A client may not have more than it leaves.
        Excessive = 7, "your family of processes would have more than it leaves to others; `possible` says what it may have";
        /// Somebody would miss a deadline.
        Unschedulable = 8, "a deadline could be missed; `possible` says which budget could be had";
        /// No place is free, or the client has more than are.
        Full = 9, "there are too many reservations; release one";
        /// The capability is no good.
        BadContext = 10, "the scheduling context cannot be read and written, or the kernel refuses the budget";
        /// There is a reservation for the context.
        Reserved = 11, "the scheduling context has a reservation; release it first";
        /// No such reservation.
        Unknown = 12, "there is no reservation with this number";
        /// It is another process's.
        NotYours = 13, "the reservation is another process's";
    }
}
