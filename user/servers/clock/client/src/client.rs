//! Typed requests to the clock server.

use tench_protocol::call_words;
use tench_sys::{Cap, Endpoint, Instant};

use crate::Failure;
use crate::protocol::{Event, Label};

/// The clock server.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    endpoint: Cap<Endpoint>,
}

impl Clock {
    /// The name under which the server is registered.
    pub const NAME: &'static str = "clock";

    /// The clock server behind an endpoint.
    pub const fn at(endpoint: Cap<Endpoint>) -> Clock {
        Clock { endpoint }
    }

    fn ask(self, label: Label, word: u64) -> Result<Instant, Failure> {
        Ok(Instant::from_ticks(call_words(self.endpoint, label as u64, [word, 0, 0, 0])?[0]))
    }

    /// The time, ticks per second, and the time in nanoseconds.
    pub fn time(self) -> Result<(Instant, u64, u64), Failure> {
        let [ticks, frequency, nanoseconds, ..] = call_words(self.endpoint, Label::Time as u64, [0; 4])?;
        Ok((Instant::from_ticks(ticks), frequency, nanoseconds))
    }

    /// Waits for as many ticks. Answers the time.
    pub fn delay(self, ticks: u64) -> Result<Instant, Failure> {
        self.ask(Label::Delay, ticks)
    }

    /// Waits until a time. Answers the time.
    pub fn delay_until(self, time: Instant) -> Result<Instant, Failure> {
        self.ask(Label::DelayUntil, time.ticks())
    }

    /// Waits for the next of the events. Answers the time.
    pub fn await_event(self, event: Event) -> Result<Instant, Failure> {
        self.ask(Label::AwaitEvent, event as u64)
    }

    /// A process has ended. Needs the capability without a badge.
    pub fn process_ended(self, process: u64) -> Result<(), Failure> {
        self.ask(Label::ProcessEnded, process).map(drop)
    }
}
