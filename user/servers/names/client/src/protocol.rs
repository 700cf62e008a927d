//! What travels between the name server and its clients.
//!
//! A request's label says what is asked, its words are the arguments. A reply's label is 0 for success, otherwise an
//! [`Error`]; its words are the results. A *name* in a message is one word with its length in bytes, and then its bytes,
//! eight to a word, the first in the lowest bits.

/// What can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Label {
    /// **Register** a name. Words: name. One capability, to an endpoint; whoever looks the name up gets a copy of it.
    /// Errors: `BadName`, `Taken`, `Full`, `NoCapability`.
    Register = 1,
    /// **Look up** a name. Words: name. Answers one capability. Errors: `BadName`, `Unknown`.
    LookUp = 2,
    /// **Look up** a name, and wait until it is registered. Otherwise as `LookUp`. Errors: `BadName`, `Full` (too
    /// many wait).
    Await = 3,
    /// **Unregister** a name. Words: name. Errors: `BadName`, `Unknown`, `NotYours`.
    Unregister = 4,
    /// **Next name**. Words: a name, or an empty one. Answers the next one in alphabetical order: the process that
    /// registered it, name. Errors: `Unknown` when there is none.
    Next = 5,
    /// **A process ended**: its names and waits are forgotten. Words: process. Needs the capability without a badge.
    ProcessEnded = 6,
}

impl Label {
    /// The request with this label.
    pub const fn from_code(code: u64) -> Option<Label> {
        Some(match code {
            1 => Label::Register,
            2 => Label::LookUp,
            3 => Label::Await,
            4 => Label::Unregister,
            5 => Label::Next,
            6 => Label::ProcessEnded,
            _ => return None,
        })
    }
}

/// Bytes of the longest name.
pub const MAX_NAME: usize = 255;

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Error {
    /// The label or the number of words is wrong.
    BadRequest = 1,
    /// A name is empty, longer than [`MAX_NAME`], not UTF-8, or has control characters in it.
    BadName = 2,
    /// Somebody has registered this name.
    Taken = 3,
    /// The table of names or of waiting threads is full.
    Full = 4,
    /// Nobody has registered this name.
    Unknown = 5,
    /// Somebody else has registered this name.
    NotYours = 6,
    /// No capability came with the message.
    NoCapability = 7,
    /// The request needs the capability without a badge.
    NotAllowed = 8,
}

impl Error {
    /// The error with this code.
    pub const fn from_code(code: u64) -> Option<Error> {
        Some(match code {
            1 => Error::BadRequest,
            2 => Error::BadName,
            3 => Error::Taken,
            4 => Error::Full,
            5 => Error::Unknown,
            6 => Error::NotYours,
            7 => Error::NoCapability,
            8 => Error::NotAllowed,
            _ => return None,
        })
    }

    /// One sentence that says what was wrong and what to do.
    pub const fn text(self) -> &'static str {
        match self {
            Error::BadRequest => "the name server does not know this request; see its protocol",
            Error::BadName => "a name has 1 to 255 bytes of UTF-8 without control characters",
            Error::Taken => "the name is taken; choose another",
            Error::Full => "the name server is full; unregister a name first",
            Error::Unknown => "nobody has registered this name",
            Error::NotYours => "another process registered this name; only that one can unregister it",
            Error::NoCapability => "no capability came with the name; send the endpoint along",
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
