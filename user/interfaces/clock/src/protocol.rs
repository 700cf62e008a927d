//! The clock server's interface.

use tench_protocol::{Caller, Later, Replies, interface};
use tench_sys::Instant;

/// Time and delays. Time is counted in ticks of the system counter since the machine was started. The date is known,
/// too, on a machine with a clock that has it.
#[interface(client = Clock, version = 2)]
pub trait ClockService {
    /// Returns the time, the ticks per second, and the time in nanoseconds.
    #[method(1)]
    fn time(&mut self) -> Result<(Instant, u64, u64), Error>;

    /// Waits for a number of ticks. Returns the time.
    /// Errors: `Full`.
    #[method(2)]
    fn delay(&mut self, caller: Caller, later: Later<'_, Instant, Error>, ticks: u64)
    -> Result<Option<Instant>, Error>;

    /// Waits until a time. Returns the time, at once if it is past.
    /// Errors: `Full`.
    #[method(3)]
    fn delay_until(
        &mut self,
        caller: Caller,
        later: Later<'_, Instant, Error>,
        time: Instant,
    ) -> Result<Option<Instant>, Error>;

    /// Waits for the next event of a kind. Returns the time.
    /// Errors: `Full`.
    #[method(4)]
    fn await_event(
        &mut self,
        caller: Caller,
        later: Later<'_, Instant, Error>,
        event: Event,
    ) -> Result<Option<Instant>, Error>;

    /// Reports that a process has ended: some of its waits are removed. Returns whether there are more.
    #[method(5, authority)]
    fn process_ended(&mut self, replies: &mut Replies, process: u64) -> Result<bool, Error>;

    /// Returns the wall-clock time at which the machine was started, when the system counter was 0: in nanoseconds
    /// since the beginning of 1970 (UTC). The wall-clock time at an instant is that and the instant's nanoseconds. It
    /// may be off by up to a second, and differ by a second after the server was started again.
    /// Errors: `NoWallClock`.
    #[method(6)]
    fn wall_clock_at_start(&mut self) -> Result<u64, Error>;
}

impl Clock<()> {
    /// The name under which the server is registered.
    pub const NAME: &'static str = "clock";
}

tench_protocol::codes! {
    /// An event that can be awaited.
    pub enum Event {
        /// The next multiple of 10 milliseconds.
        Tick = 1;
    }
}

/// Number of [`Event::Tick`] in a second.
pub const TICKS_PER_SECOND: u64 = 100;

tench_protocol::codes! {
    /// Why a request was refused.
    pub enum Error {
        /// Too many threads wait.
        Full = 1, "too many threads wait at the clock server; try again later";
        /// The machine has no clock that knows the date, or the server was not given it.
        NoWallClock = 2, "nobody knows the date here: the machine has no real-time clock that was set, or the system \
                          description does not give it to the clock server; count from the machine's start instead";
    }
}
