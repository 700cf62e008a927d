//! Errors of channels, and who causes them.

use core::error::Error;
use core::fmt;

/// Reason why memory cannot hold a channel, caused by the user that opens it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unfit {
    /// The frame's size in bytes, which is not a power of two from 4 KiB to 64 KiB.
    Size(usize),
    /// The frame's address, which is not a multiple of 64.
    Alignment(usize),
    /// The number of lines, which cannot be divided into two halves with a control line and at least one other line
    /// each.
    Lines(usize),
    /// The requested limit of requests in flight, which is not from 1 to 64.
    Limit(u32),
}

/// Reason why a message was not accepted. Nothing of it was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// There is no room now: the peer has to receive lines first. Not a fault.
    Full,
    /// The maximum number of requests wait for their replies. Not a fault.
    TooMany,
    /// The message has too many words: the fault of the caller.
    TooLong(usize),
    /// There is no such request, or it got a reply before: the fault of the caller.
    NotAsked,
    /// The peer has broken the rules, now or earlier.
    Broken(Broken),
}

/// Violation of the protocol by the peer. The channel is closed: from then on every operation fails in the same way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Broken {
    /// A line belongs neither to this lap through the ring nor to the one before.
    Lap {
        /// The expected lap.
        due: u16,
        /// The line's lap.
        found: u16,
    },
    /// A message begins with a line of an unknown kind, or of one that does not begin messages.
    Kind(u8),
    /// A message's length in words, which exceeds the maximum.
    Length(u16),
    /// A message of several lines continues with this header, which does not belong to it.
    Rest(u64),
    /// The peer's total number of received lines, which is less than before, or more than were sent.
    Credits(u64),
    /// A reply to a request that was not made.
    Unasked {
        /// The number of the request in the reply.
        id: u16,
        /// The operation in the reply.
        operation: u16,
    },
    /// A request with an impossible number, or with that of a request without a reply.
    Request(u16),
    /// This side has closed the channel by itself.
    Closed,
}

impl From<Broken> for Refused {
    fn from(broken: Broken) -> Refused {
        Refused::Broken(broken)
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::Size(bytes) => {
                write!(f, "a channel's frame has a power of two from 4 KiB to 64 KiB, not {bytes} bytes")
            }
            Unfit::Alignment(start) => write!(f, "a channel's frame begins at a multiple of 64, not at {start:#x}"),
            Unfit::Lines(lines) => write!(f, "a channel has two equal halves of two lines at least, not {lines} lines"),
            Unfit::Limit(limit) => write!(f, "a channel has 1 to 64 requests in flight, not {limit}"),
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Full => write!(f, "no room in the channel"),
            Refused::TooMany => write!(f, "too many requests without a reply"),
            Refused::TooLong(words) => write!(f, "a message of {words} words is too long"),
            Refused::NotAsked => write!(f, "no such request to reply to"),
            Refused::Broken(broken) => broken.fmt(f),
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Broken::Closed {
            return write!(f, "channel closed by this side");
        }
        write!(f, "channel closed: the peer ")?;
        match self {
            Broken::Lap { due, found } => write!(f, "wrote a line of lap {found} where lap {due} is due"),
            Broken::Kind(kind) => write!(f, "began a message with a line of kind {kind}"),
            Broken::Length(words) => write!(f, "began a message of {words} words, which is too long"),
            Broken::Rest(header) => write!(f, "did not continue a message, with header {header:#x}"),
            Broken::Credits(lines) => write!(f, "claims to have taken in {lines} lines, which cannot be"),
            Broken::Unasked { id, operation } => {
                write!(f, "replied to operation {operation} of request {id}, which was not asked")
            }
            Broken::Request(id) => write!(f, "sent a request with number {id}, which is not free"),
            Broken::Closed => Ok(()),
        }
    }
}

impl Error for Unfit {}
impl Error for Refused {}
impl Error for Broken {}
