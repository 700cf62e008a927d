//! Common parts of all servers' protocols.
//!
//! A request's label names the method, its words are the arguments. A reply's label is 0 for success, otherwise an
//! error's code; its words are the results. An interface is a trait with the attribute [`interface`], which generates
//! client, checks and dispatch. [`codes!`] defines enumerations; [`Words`](derive@Words) makes a structure encodable.
//!
//! ```text
//! client ── Transport ──────────────────────────────▶ Port ── dispatch ──▶ the server's methods
//!   values ▶ words, capabilities   (wire)   words, capabilities ▶ values, checked
//! ```
//! The label of a request has the interface's number in bits 32 to 47, its version in bits 16 to 31 and the method's
//! number in bits 0 to 15. So a server can tell a client of another version or of another server what is wrong, and
//! recognising a valid request costs one comparison.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod caps;
pub mod port;
pub mod replies;
pub mod shared;
pub mod text;
pub mod transport;
pub mod wire;

use core::fmt;

pub use arrayvec::{ArrayString, ArrayVec};
pub use port::{Caller, Context, Event, Flow, Port, Slots};
pub use replies::{Factory, Held, Later, Pending, Replies, Waiter};
pub use shared::{Attachments, Memory, Region, Shared, SharedMut, Shares};
pub use tench_abi::Powers;
pub use tench_protocol_macros::{Words, interface, probe};
pub use tench_sys as sys;
use tench_sys::{Cap, Endpoint, Error, Message, Received, Tag};
pub use transport::{Transport, again};
pub use wire::{Any, Arrived, Bytes, Decode, Encode, Given, Lent, List, Sent, Text};

/// Label of a reply that reports success.
pub const DONE: u64 = 0;

/// Defines enumerations whose values travel in messages as numbers, optionally with texts.
///
/// ```
/// tench_protocol::codes! {
///     /// What can be asked.
///     pub enum Label {
///         /// Adds two words.
///         Add = 1;
///     }
///     /// Why it was refused.
///     pub enum Error {
///         /// The sum does not fit.
///         Overflow = 1, "the sum does not fit; add smaller numbers";
///     }
/// }
/// assert_eq!(Label::from_code(1), Some(Label::Add));
/// assert_eq!(Error::from_code(2), None);
/// assert!(Error::Overflow.to_string().contains("fit"));
/// ```
#[macro_export]
macro_rules! codes {
    () => {};
    (
        $(#[$outer:meta])* pub enum $type:ident { $($(#[$doc:meta])* $name:ident = $code:literal;)+ }
        $($rest:tt)*
    ) => {
        $crate::codes! { @enum $(#[$outer])* $type { $($(#[$doc])* $name = $code;)+ } }
        $crate::codes! { $($rest)* }
    };
    (
        $(#[$outer:meta])* pub enum $type:ident { $($(#[$doc:meta])* $name:ident = $code:literal, $text:literal;)+ }
        $($rest:tt)*
    ) => {
        $crate::codes! { @enum $(#[$outer])* $type { $($(#[$doc])* $name = $code;)+ } }

        impl $type {
            /// Returns the value's text.
            pub const fn text(self) -> &'static str {
                match self { $($type::$name => $text,)+ }
            }
        }

        impl core::fmt::Display for $type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(self.text())
            }
        }

        impl core::error::Error for $type {}

        $crate::codes! { $($rest)* }
    };
    (@enum $(#[$outer:meta])* $type:ident { $($(#[$doc:meta])* $name:ident = $code:literal;)+ }) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u64)]
        pub enum $type { $($(#[$doc])* $name = $code,)+ }

        impl $type {
            /// All values, in order of their numbers.
            pub const ALL: &'static [$type] = &[$($type::$name,)+];

            /// Returns the value with this number.
            pub const fn from_code(code: u64) -> Option<$type> {
                match code { $($code => Some($type::$name),)+ _ => None }
            }
        }

        impl $crate::Code for $type {
            fn code(self) -> u64 {
                self as u64
            }

            fn from_code(code: u64) -> Option<$type> {
                $type::from_code(code)
            }
        }

        impl $crate::Encode for $type {
            const WORDS: usize = 1;

            #[inline(always)]
            fn encode(&self, to: &mut impl $crate::wire::Sink) {
                to.word(*self as u64);
            }
        }

        impl $crate::Decode<'_> for $type {
            #[inline]
            fn decode(from: &mut $crate::wire::Source<'_>) -> Option<$type> {
                $type::from_code(from.word()?)
            }
        }
    };
}

/// An enumeration made by [`codes!`].
pub trait Code: Copy {
    /// Returns the value's number.
    fn code(self) -> u64;

    /// Returns the value with this number.
    fn from_code(code: u64) -> Option<Self>;
}

/// Reason why a request was refused before the server's own code saw it. These codes are the same for all servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The arguments are not those of the method: too few, too many, out of their range, or a capability of another
    /// kind.
    BadArguments,
    /// The interface has no such method.
    NoSuchMethod,
    /// The server implements the given other version of the interface.
    OtherVersion(u16),
    /// The server implements another interface, with the given number.
    OtherInterface(u16),
    /// The method requires the unbadged capability or a power that this capability lacks; or the process to which the
    /// capability belongs has ended.
    NotAllowed,
    /// The server cannot store one more pending request.
    Busy,
    /// The method's arguments lie in shared memory, and this client shares none with the server.
    NotAttached,
    /// The server refuses this buffer: it is too large, or the server has no memory or too many clients.
    NoBuffer,
    /// The server runs on another core, to which capabilities of this kind cannot be sent.
    OtherCore,
    /// The server runs on another core, which does not reply.
    Unreachable,
}

/// Code of a reply that says that the server was restarted. The process that replies in its place on another core sends
/// it, because there the capability to that process itself has not gone.
pub const RESTARTED: u64 = Rejection::FIRST + 10;

impl Rejection {
    /// Lowest code of a rejection. Codes of a server's own errors lie below.
    pub const FIRST: u64 = 1 << 16;

    /// Returns the code and the word of a reply with this rejection.
    const fn parts(self) -> (u64, u64) {
        match self {
            Rejection::BadArguments => (Self::FIRST, 0),
            Rejection::NoSuchMethod => (Self::FIRST + 1, 0),
            Rejection::OtherVersion(version) => (Self::FIRST + 2, version as u64),
            Rejection::OtherInterface(number) => (Self::FIRST + 3, number as u64),
            Rejection::NotAllowed => (Self::FIRST + 4, 0),
            Rejection::Busy => (Self::FIRST + 5, 0),
            Rejection::NotAttached => (Self::FIRST + 6, 0),
            Rejection::NoBuffer => (Self::FIRST + 7, 0),
            Rejection::OtherCore => (Self::FIRST + 8, 0),
            Rejection::Unreachable => (Self::FIRST + 9, 0),
        }
    }

    /// Returns the rejection in the label and the first word of a reply, if any.
    pub fn from_code(code: u64, word: u64) -> Option<Rejection> {
        let rejections = [
            Rejection::BadArguments,
            Rejection::NoSuchMethod,
            Rejection::OtherVersion(word as u16),
            Rejection::OtherInterface(word as u16),
            Rejection::NotAllowed,
            Rejection::Busy,
            Rejection::NotAttached,
            Rejection::NoBuffer,
            Rejection::OtherCore,
            Rejection::Unreachable,
        ];
        rejections.into_iter().find(|rejection| rejection.parts().0 == code)
    }

    /// Returns whether a reply has this rejection.
    pub fn is(self, message: &Message) -> bool {
        message.label() == self.parts().0
    }

    /// Writes the reply with this rejection.
    #[cold]
    pub fn write(self, message: &mut Message) -> Flow {
        let (code, word) = self.parts();
        message.restart(code);
        message.push(word);
        Flow::Reply
    }

    /// Returns the rejection of a request whose label is not one of the interface's.
    #[cold]
    pub fn of_label(label: u64, interface: u16, version: u16) -> Rejection {
        if (label >> 32) as u16 != interface {
            Rejection::OtherInterface(interface)
        } else if (label >> 16) as u16 != version {
            Rejection::OtherVersion(version)
        } else {
            Rejection::NoSuchMethod
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rejection::BadArguments => f.write_str("the server refuses these arguments; see its interface"),
            Rejection::NoSuchMethod => f.write_str("the server has no such method; see its interface"),
            Rejection::OtherVersion(version) => {
                write!(f, "the server speaks version {version} of its interface; build the program anew")
            }
            Rejection::OtherInterface(number) => {
                write!(f, "another server replied, with interface {number:#06x}; check who was given which capability")
            }
            Rejection::NotAllowed => f.write_str(
                "this needs a power that the program was not given; start it with that power, if you have it",
            ),
            Rejection::Busy => f.write_str("too many requests wait at the server; try again later"),
            Rejection::NotAttached => f.write_str("no memory is shared with the server; attach a buffer first"),
            Rejection::NoBuffer => f.write_str("the server shares no such buffer; ask for a smaller one, or later"),
            Rejection::OtherCore => f.write_str(
                "the server runs on another core, to which only endpoints, notifications and memory can be sent; run the program there",
            ),
            Rejection::Unreachable => f.write_str("the server runs on another core, which does not reply"),
        }
    }
}

/// Reason why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure<E> {
    /// The server refused the request.
    Refused(E),
    /// The request was refused before the server's own code saw it.
    Rejected(Rejection),
    /// A text or list is longer than the interface allows; nothing was sent.
    TooLong,
    /// The kernel could not deliver the request, or the server is gone.
    Lost(Error),
    /// The server was restarted. It has lost its non-persistent state, and may or may not have carried out the request,
    /// which can be repeated.
    Restarted,
    /// The reply is not one of this protocol.
    Malformed,
}

impl<E> Failure<E> {
    /// Returns the failure with the server's error converted by `of`.
    pub fn map<F>(self, of: impl FnOnce(E) -> F) -> Failure<F> {
        match self {
            Failure::Refused(error) => Failure::Refused(of(error)),
            Failure::Rejected(rejection) => Failure::Rejected(rejection),
            Failure::TooLong => Failure::TooLong,
            Failure::Lost(error) => Failure::Lost(error),
            Failure::Restarted => Failure::Restarted,
            Failure::Malformed => Failure::Malformed,
        }
    }
}

impl<E: fmt::Display> fmt::Display for Failure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Refused(error) => error.fmt(f),
            Failure::Rejected(rejection) => rejection.fmt(f),
            Failure::TooLong => f.write_str("a text or list is longer than the interface allows"),
            Failure::Lost(error) => write!(f, "the server was not reached: {error}"),
            Failure::Restarted => f.write_str("the server was started again meanwhile; ask again"),
            Failure::Malformed => f.write_str("the server's reply is not one of its protocol"),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for Failure<E> {}

/// Makes a request, and returns the reply.
pub fn call<E: Code>(endpoint: Cap<Endpoint>, message: &Message) -> Result<Received, Failure<E>> {
    let reply = endpoint.call(message).map_err(Failure::Lost)?;
    check(reply.tag())?;
    Ok(reply)
}

/// Returns the result that a reply's tag reports.
fn check<E: Code>(tag: Tag) -> Result<(), Failure<E>> {
    match tag.label() {
        DONE => Ok(()),
        code => Err(E::from_code(code).map_or(Failure::Malformed, Failure::Refused)),
    }
}

/// Returns the label of a method.
pub const fn label(interface: u16, version: u16, method: u16) -> u64 {
    (interface as u64) << 32 | (version as u64) << 16 | method as u64
}
