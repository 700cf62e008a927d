//! Errors of primitives.

use core::fmt;

/// Reason why a primitive failed. A failed call has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Error {
    /// No task has this identifier: it is out of range, or its task has ended.
    NoSuchTask,
    /// The transaction cannot be completed: the task to reply to does not wait for a reply, or the receiver ended while
    /// the sender was still in its queue.
    Incomplete,
    /// The priority is negative, or above the process's maximum.
    InvalidPriority,
    /// Every task identifier is in use, or there is no memory for another task.
    OutOfTasks,
    /// A message or reply is longer than [`MAX_MESSAGE`](crate::MAX_MESSAGE).
    MessageTooLong,
    /// There is no name server: the task with its identifier does not exist or sends invalid replies.
    NoNameServer,
    /// No task is registered under this name.
    NameUnknown,
    /// The name server has no room for another name.
    NamesFull,
    /// There is no such event.
    NoSuchEvent,
    /// Another task waits for this event.
    EventTaken,
    /// The task is no clock server: it does not exist, or sends invalid replies.
    NoClockServer,
    /// The delay or the time is negative.
    NegativeDelay,
    /// The name is empty or longer than [`MAX_NAME`](crate::names::MAX_NAME).
    BadName,
}

impl Error {
    /// Returns the number that the choochoos kernel returns in this case: -1 if something does not exist, -2 if it does
    /// but cannot be used.
    pub const fn code(self) -> i32 {
        match self {
            Error::NoSuchTask
            | Error::InvalidPriority
            | Error::NoNameServer
            | Error::NoSuchEvent
            | Error::NoClockServer => -1,
            Error::Incomplete
            | Error::OutOfTasks
            | Error::MessageTooLong
            | Error::NameUnknown
            | Error::NamesFull
            | Error::EventTaken
            | Error::NegativeDelay
            | Error::BadName => -2,
        }
    }

    /// Returns one sentence that says what was wrong.
    pub const fn text(self) -> &'static str {
        match self {
            Error::NoSuchTask => "no such task",
            Error::Incomplete => "the transaction cannot be completed",
            Error::InvalidPriority => "the priority is negative or above what this process may give",
            Error::OutOfTasks => "no room for another task",
            Error::MessageTooLong => "the message is longer than 512 bytes",
            Error::NoNameServer => "there is no name server",
            Error::NameUnknown => "nobody is registered under this name",
            Error::NamesFull => "the name server has no room for another name",
            Error::NoSuchEvent => "there is no such event",
            Error::EventTaken => "another task waits for this event",
            Error::NoClockServer => "the task is no clock server",
            Error::NegativeDelay => "the delay or the time is negative",
            Error::BadName => "a name has 1 to 255 bytes",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl core::error::Error for Error {}
