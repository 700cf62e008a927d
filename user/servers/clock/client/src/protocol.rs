//! What travels between the clock server and its clients.
//!
//! A request's label says what is asked, its words are the arguments. A reply's label is 0 for success, otherwise an
//! [`Error`]; its words are the results. Time is counted in ticks of the system counter since the machine was started;
//! the process information page says how many there are per second.

/// What can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Label {
    /// **Time**. Answers ticks, ticks per second, nanoseconds.
    Time = 1,
    /// **Delay**: the answer comes after as many ticks. Words: ticks. Answers the time in ticks.
    /// Errors: `Full` (too many wait).
    Delay = 2,
    /// **Delay until** a time. Words: ticks. Answers the time in ticks, at once if it is past. Errors: `Full`.
    DelayUntil = 3,
    /// **Await** the next of the events. Words: [`Event`]. Answers the time in ticks.
    /// Errors: `NoSuchEvent`, `Full`.
    AwaitEvent = 4,
    /// **A process ended**: its waits are forgotten. Words: process. Needs the capability without a badge.
    ProcessEnded = 5,
}

impl Label {
    /// The request with this label.
    pub const fn from_code(code: u64) -> Option<Label> {
        Some(match code {
            1 => Label::Time,
            2 => Label::Delay,
            3 => Label::DelayUntil,
            4 => Label::AwaitEvent,
            5 => Label::ProcessEnded,
            _ => return None,
        })
    }
}

/// What can be awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Event {
    /// The next multiple of 10 milliseconds.
    Tick = 1,
}

impl Event {
    /// The event with this number.
    pub const fn from_code(code: u64) -> Option<Event> {
        match code {
            1 => Some(Event::Tick),
            _ => None,
        }
    }
}

/// [`Event::Tick`] happens this often in a second.
pub const TICKS_PER_SECOND: u64 = 100;

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Error {
    /// The label or the number of words is wrong.
    BadRequest = 1,
    /// Too many threads wait.
    Full = 2,
    /// There is no such event.
    NoSuchEvent = 3,
    /// The request needs the capability without a badge.
    NotAllowed = 4,
}

impl Error {
    /// The error with this code.
    pub const fn from_code(code: u64) -> Option<Error> {
        Some(match code {
            1 => Error::BadRequest,
            2 => Error::Full,
            3 => Error::NoSuchEvent,
            4 => Error::NotAllowed,
            _ => return None,
        })
    }

    /// One sentence that says what was wrong and what to do.
    pub const fn text(self) -> &'static str {
        match self {
            Error::BadRequest => "the clock server does not know this request; see its protocol",
            Error::Full => "too many threads wait at the clock server; try again later",
            Error::NoSuchEvent => "no such event; 1 is the tick of 10 milliseconds",
            Error::NotAllowed => "only the process server may do this",
        }
    }
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.text())
    }
}

impl core::error::Error for Error {}
