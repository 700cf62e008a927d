//! Messages between monitors, and their encoding in six words, which fit in a channel's line.
//!
//! ```text
//!             word 0, from bit 0                1        2         3       4         5
//! Ask         1 · to · rights                   object   request
//! Reply       2 · to · result                   object   request
//! Grant       3 · requester · rights · kind     object   request   count   base      bytes
//! Taken       4 · requester · result            object   request   count
//! Release     5                                 object             count
//! Withdraw    6                                 object             count
//! Withdrawn   7                                 object             count   tainted
//! Gone        8 · core                                                     tainted
//! ```
//! Each part of word 0 has eight bits; a result is 0 or the number of an error. Unused parts are 0. In `Grant` and
//! `Taken`, `requester` is the requester.

use tench_abi::Rights;

use crate::error::Error;
use crate::object::{Core, Cores, Kind, ObjectId, RequestId, Shape};

/// Number of words of a message.
pub const WORDS: usize = 6;

/// A message from one monitor to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// To the owner: request to send the object to another core.
    Ask {
        /// The object, of which the sender has a copy.
        object: ObjectId,
        /// The receiving core.
        to: Core,
        /// Rights of the copy to send.
        rights: Rights,
        /// The sender's name of the request.
        request: RequestId,
    },
    /// From the owner: reply to an [`Ask`](Message::Ask).
    Reply {
        /// The object.
        object: ObjectId,
        /// The receiving core.
        to: Core,
        /// The requester's name of the request.
        request: RequestId,
        /// Success if the copy has arrived.
        result: Result<(), Error>,
    },
    /// From the owner: transfer of a copy.
    Grant {
        /// The object.
        object: ObjectId,
        /// Shape of the object.
        shape: Shape,
        /// Rights of the copy.
        rights: Rights,
        /// Number of copies of the object that the owner has sent there, including this one, since there was none.
        count: u64,
        /// The requester.
        requester: Core,
        /// The requester's name of the request.
        request: RequestId,
    },
    /// To the owner: a [`Grant`](Message::Grant) has arrived.
    Taken {
        /// The object.
        object: ObjectId,
        /// Count of the grant.
        count: u64,
        /// The requester.
        requester: Core,
        /// The requester's name of the request.
        request: RequestId,
        /// Success if there is a copy now.
        result: Result<(), Error>,
    },
    /// To the owner: nothing is left of the copies up to `count`.
    Release {
        /// The object.
        object: ObjectId,
        /// Number of copies that had arrived.
        count: u64,
    },
    /// From the owner: request to delete all copies, and everything made from them.
    Withdraw {
        /// The object.
        object: ObjectId,
        /// Number of copies that were sent.
        count: u64,
    },
    /// To the owner: the deletion is done.
    Withdrawn {
        /// The object.
        object: ObjectId,
        /// Count of the [`Withdraw`](Message::Withdraw).
        count: u64,
        /// Lost cores to which parts of the memory were lent, so that more of it may be left.
        tainted: Cores,
    },
    /// To all: the sender knows that `core` is lost and has nothing of that core's objects.
    Gone {
        /// The lost core.
        core: Core,
        /// Lost cores to which parts of its objects were lent.
        tainted: Cores,
    },
}

/// Error for words that are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl core::fmt::Display for Malformed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("not a message between monitors")
    }
}

impl core::error::Error for Malformed {}

const fn head(tag: u8, first: u8, second: u8, third: u8) -> u64 {
    u32::from_le_bytes([tag, first, second, third]) as u64
}

fn code(result: Result<(), Error>) -> u8 {
    result.map_or_else(|error| error as u8, |()| 0)
}

fn result(code: u8) -> Result<Result<(), Error>, Malformed> {
    if code == 0 { Ok(Ok(())) } else { Error::new(code).map(Err).ok_or(Malformed) }
}

fn rights(bits: u8) -> Result<Rights, Malformed> {
    Rights::from_bits(bits).ok_or(Malformed)
}

fn core(number: u8) -> Result<Core, Malformed> {
    Core::new(number).ok_or(Malformed)
}

impl Message {
    /// Returns the words of this message.
    pub fn encode(&self) -> [u64; WORDS] {
        match *self {
            Message::Ask { object, to, rights, request } => {
                [head(1, to.number(), rights.bits(), 0), object.to_word(), request.0, 0, 0, 0]
            }
            Message::Reply { object, to, request, result } => {
                [head(2, to.number(), code(result), 0), object.to_word(), request.0, 0, 0, 0]
            }
            Message::Grant { object, shape, rights, count, requester, request } => {
                let head = head(3, requester.number(), rights.bits(), shape.kind as u8);
                [head, object.to_word(), request.0, count, shape.base, shape.bytes]
            }
            Message::Taken { object, count, requester, request, result } => {
                [head(4, requester.number(), code(result), 0), object.to_word(), request.0, count, 0, 0]
            }
            Message::Release { object, count } => [head(5, 0, 0, 0), object.to_word(), 0, count, 0, 0],
            Message::Withdraw { object, count } => [head(6, 0, 0, 0), object.to_word(), 0, count, 0, 0],
            Message::Withdrawn { object, count, tainted } => {
                [head(7, 0, 0, 0), object.to_word(), 0, count, tainted.0, 0]
            }
            Message::Gone { core, tainted } => [head(8, core.number(), 0, 0), 0, 0, 0, tainted.0, 0],
        }
    }

    /// Returns the message that `words` encode.
    ///
    /// # Errors
    ///
    /// Fails with [`Malformed`] if some part has no meaning, or some unused word is not 0.
    pub fn decode(words: &[u64; WORDS]) -> Result<Message, Malformed> {
        let message = Message::parse(words)?;
        // One message has one form, so any part that was not decoded shows here.
        if message.encode() == *words { Ok(message) } else { Err(Malformed) }
    }

    fn parse(&[word, object, request, count, base, bytes]: &[u64; WORDS]) -> Result<Message, Malformed> {
        let [tag, first, second, third, ..] = word.to_le_bytes();
        let named = ObjectId::from_word(object).ok_or(Malformed);
        let request = RequestId(request);
        Ok(match tag {
            1 => Message::Ask { object: named?, to: core(first)?, rights: rights(second)?, request },
            2 => Message::Reply { object: named?, to: core(first)?, request, result: result(second)? },
            3 => {
                let shape = Shape { kind: Kind::new(third).ok_or(Malformed)?, base, bytes };
                let (rights, requester) = (rights(second)?, core(first)?);
                Message::Grant { object: named?, shape, rights, count, requester, request }
            }
            4 => Message::Taken { object: named?, count, requester: core(first)?, request, result: result(second)? },
            5 => Message::Release { object: named?, count },
            6 => Message::Withdraw { object: named?, count },
            7 => Message::Withdrawn { object: named?, count, tainted: Cores(base) },
            8 => Message::Gone { core: core(first)?, tainted: Cores(base) },
            _ => return Err(Malformed),
        })
    }
}
