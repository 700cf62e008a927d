//! What travels between the clock server and its clients.
//!
//! A request's label says what is asked, its words are the arguments. A reply's label is 0 for success, otherwise an
//! [`Error`]; its words are the results. Time is counted in ticks of the system counter since the machine was started;
//! the process information page says how many there are per second.

tench_protocol::codes! {
    /// What can be asked.
    pub enum Label {
        /// **Time**. Answers ticks, ticks per second, nanoseconds.
        Time = 1;
        /// **Delay**: the answer comes after as many ticks. Words: ticks. Answers the time in ticks.
        /// Errors: `Full` (too many wait).
        Delay = 2;
        /// **Delay until** a time. Words: ticks. Answers the time in ticks, at once if it is past. Errors: `Full`.
        DelayUntil = 3;
        /// **Await** the next of the events. Words: [`Event`]. Answers the time in ticks.
        /// Errors: `NoSuchEvent`, `Full`.
        AwaitEvent = 4;
        /// **A process ended**: its waits are forgotten. Words: process. Needs the capability without a badge.
        ProcessEnded = 5;
    }
}

tench_protocol::codes! {
    /// What can be awaited.
    pub enum Event {
        /// The next multiple of 10 milliseconds.
        Tick = 1;
    }
}

/// [`Event::Tick`] happens this often in a second.
pub const TICKS_PER_SECOND: u64 = 100;

tench_protocol::codes! {
    /// Why a request was refused.
    pub enum Error {
        /// The label or the number of words is wrong.
        BadRequest = 1, "the clock server does not know this request; see its protocol";
        /// Too many threads wait.
        Full = 2, "too many threads wait at the clock server; try again later";
        /// There is no such event.
        NoSuchEvent = 3, "no such event; 1 is the tick of 10 milliseconds";
        /// The request needs the capability without a badge.
        NotAllowed = 4, "only the process server may do this";
    }
}
