//! What can go wrong, and whose fault it is.

use core::error::Error;
use core::fmt;

/// Memory that cannot hold a channel: the fault of whoever opens it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unfit {
    /// A frame has a power of two of bytes, from 4 KiB to 64 KiB; this one has so many.
    Size(usize),
    /// A frame begins at a multiple of 64; this is where it begins.
    Alignment(usize),
    /// Two halves of a control line and at least one other need four lines, or more in equal parts; there are so many.
    Lines(usize),
    /// So many requests in flight were asked for; 1 to 64 are possible.
    Limit(u32),
}

/// Why a message was not accepted. Nothing of it was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// There is no room now: the peer has to take lines in first. Not a fault.
    Full,
    /// As many requests as there may be wait for their answers. Not a fault.
    TooMany,
    /// The message has more words than one can have: the fault of the caller.
    TooLong(usize),
    /// There is no such request to be answered, or it was answered before: the fault of the caller.
    NotAsked,
    /// The peer has broken the rules, now or earlier.
    Broken(Broken),
}

/// How the peer has broken the rules. The channel is closed: from then on every operation answers the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Broken {
    /// A line belongs neither to this lap through the ring nor to the one before.
    Lap {
        /// The lap that is due.
        due: u16,
        /// The lap that the line claims.
        found: u16,
    },
    /// A message begins with a line of a kind that does not exist, or that does not begin messages.
    Kind(u8),
    /// A message claims to have so many words, more than one can have.
    Length(u16),
    /// A message of several lines goes on with this header, which does not continue it.
    Rest(u64),
    /// The peer claims to have taken in so many lines in all: fewer than it said before, or more than were sent.
    Credits(u64),
    /// An answer to something that was not asked.
    Unasked {
        /// The request that it claims to answer.
        id: u16,
        /// The operation that it claims to have done.
        operation: u16,
    },
    /// A request with a number that cannot be, or is that of a request without an answer.
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
            Refused::TooMany => write!(f, "too many requests without an answer"),
            Refused::TooLong(words) => write!(f, "a message of {words} words is too long"),
            Refused::NotAsked => write!(f, "no such request to be answered"),
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
                write!(f, "answered operation {operation} of request {id}, which was not asked")
            }
            Broken::Request(id) => write!(f, "sent a request with number {id}, which is not free"),
            Broken::Closed => Ok(()),
        }
    }
}

impl Error for Unfit {}
impl Error for Refused {}
impl Error for Broken {}
