//! What the protocols of all servers have in common.
//!
//! A request's label says what is asked, its words are the arguments. A reply's label is 0 for success, otherwise the
//! code of an error; its words are the results. [`codes!`] defines the enumerations of a protocol, [`call`] makes a
//! request, [`Replies`] keeps the reply objects of a server that answers later.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod replies;

use core::fmt;

pub use replies::Replies;
use tench_sys::{Cap, Endpoint, Error, Message, Received, Tag};

/// Label of a reply that says that all went well.
pub const DONE: u64 = 0;

/// Defines enumerations whose values travel in messages: numbers, and where there are texts also texts.
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
            /// It in words.
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
            /// All of them, in order of their numbers.
            pub const ALL: &'static [$type] = &[$($type::$name,)+];

            /// The one with this number.
            pub const fn from_code(code: u64) -> Option<$type> {
                match code { $($code => Some($type::$name),)+ _ => None }
            }
        }

        impl $crate::Code for $type {
            fn from_code(code: u64) -> Option<$type> {
                $type::from_code(code)
            }
        }
    };
}

/// An enumeration made by [`codes!`].
pub trait Code: Copy {
    /// The value with this number.
    fn from_code(code: u64) -> Option<Self>;
}

/// Why a request had no success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure<E> {
    /// The server refused it.
    Refused(E),
    /// The kernel could not deliver it, or the server is gone.
    Lost(Error),
    /// The answer is not one of this protocol.
    Malformed,
}

impl<E: fmt::Display> fmt::Display for Failure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Refused(error) => error.fmt(f),
            Failure::Lost(error) => write!(f, "the server was not reached: {error}"),
            Failure::Malformed => f.write_str("the server's answer is not one of its protocol"),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for Failure<E> {}

/// Makes a request.
pub fn call<E: Code>(endpoint: Cap<Endpoint>, message: &Message) -> Result<Received, Failure<E>> {
    let reply = endpoint.call(message).map_err(Failure::Lost)?;
    check(reply.tag())?;
    Ok(reply)
}

/// Makes a request of at most eight words, whose answer has at most eight.
#[inline]
pub fn call_words<E: Code>(
    endpoint: Cap<Endpoint>,
    label: u64,
    words: [u64; 4],
) -> Result<[u64; tench_abi::message::REGISTER_WORDS], Failure<E>> {
    let [a, b, c, d] = words;
    let reply = endpoint.call4(label, a, b, c, d).map_err(Failure::Lost)?;
    check(reply.tag)?;
    Ok(reply.words)
}

/// What a reply's tag says.
fn check<E: Code>(tag: Tag) -> Result<(), Failure<E>> {
    match tag.label() {
        DONE => Ok(()),
        code => Err(E::from_code(code).map_or(Failure::Malformed, Failure::Refused)),
    }
}

/// The reply to a request that was refused.
pub fn refusal(code: u64) -> Message {
    Message::new(code)
}
