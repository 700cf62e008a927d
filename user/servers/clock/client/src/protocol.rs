//! The clock server's interface.

use tench_protocol::{Caller, Later, Replies, interface};
use tench_sys::Instant;

/// Time, and waiting for it. Time is counted in ticks of the system counter since the machine was started.
#[interface(client = Clock, version = 2)]
pub trait ClockService {
    /// The time, ticks per second, and the time in nanoseconds.
    #[method(1)]
    fn time(&mut self) -> Result<(Instant, u64, u64), Error>;

    /// Waits for as many ticks. Answers the time.
    /// Errors: `Full`.
    #[method(2)]
    fn delay(&mut self, caller: Caller, later: Later<'_, Instant, Error>, ticks: u64)
    -> Result<Option<Instant>, Error>;

    /// Waits until a time. Answers the time, at once if it is past.
    /// Errors: `Full`.
    #[method(3)]
    fn delay_until(
        &mut self,
        caller: Caller,
        later: Later<'_, Instant, Error>,
        time: Instant,
    ) -> Result<Option<Instant>, Error>;

    /// Waits for the next of the events. Answers the time.
    /// Errors: `Full`.
    #[method(4)]
    fn await_event(
        &mut self,
        caller: Caller,
        later: Later<'_, Instant, Error>,
        event: Event,
    ) -> Result<Option<Instant>, Error>;

    /// A process has ended: some of its waits are forgotten. Replies whether there are more.
    #[method(5, authority)]
    fn process_ended(&mut self, replies: &mut Replies, process: u64) -> Result<bool, Error>;
}

impl Clock<()> {
    /// The name under which the server is registered.
    pub const NAME: &'static str = "clock";
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
        /// Too many threads wait.
        Full = 1, "too many threads wait at the clock server; try again later";
    }
}
