//! What monitors say to each other, and how it lies in the seven words of a channel's line.
//!
//! ```text
//!             word 0, from bit 0                1        2         3       4         5       6
//! Ask         1 · to · rights                   object   request
//! Answer      2 · to · result                   object   request
//! Grant       3 · asker · rights · kind         object   request   count   base      bytes   badge
//! Taken       4 · asker · result                object   request   count
//! Release     5                                 object             count
//! Withdraw    6                                 object             count
//! Withdrawn   7                                 object             count   tainted
//! Gone        8 · core                                                     tainted
//! ```
//! Each part of word 0 has eight bits; a result is 0 or the number of an error. What is not used is 0.

use tench_abi::Rights;

use crate::error::Error;
use crate::object::{Core, Cores, Kind, ObjectId, RequestId, Shape};

/// Words of a message.
pub const WORDS: usize = 7;

/// What one monitor says to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// To the owner: send the object to another core.
    Ask {
        /// Of which the sender has a copy.
        object: ObjectId,
        /// To which core.
        to: Core,
        /// With which rights.
        rights: Rights,
        /// What the sender calls this.
        request: RequestId,
    },
    /// From the owner: what became of an [`Ask`](Message::Ask).
    Answer {
        /// Of this object,
        object: ObjectId,
        /// to this core,
        to: Core,
        /// under this name.
        request: RequestId,
        /// Whether the copy has arrived.
        result: Result<(), Error>,
    },
    /// From the owner: have a copy.
    Grant {
        /// Of this object,
        object: ObjectId,
        /// which is this,
        shape: Shape,
        /// with these rights.
        rights: Rights,
        /// How many copies of the object the owner has sent there, with this one, since there was none.
        count: u64,
        /// Who asked for it,
        asker: Core,
        /// and under which name.
        request: RequestId,
    },
    /// To the owner: a [`Grant`](Message::Grant) came.
    Taken {
        /// Of this object.
        object: ObjectId,
        /// Its count.
        count: u64,
        /// Who asked for it,
        asker: Core,
        /// and under which name.
        request: RequestId,
        /// Whether there is a copy now.
        result: Result<(), Error>,
    },
    /// To the owner: nothing is left of the copies up to `count`.
    Release {
        /// Of this object.
        object: ObjectId,
        /// How many had come.
        count: u64,
    },
    /// From the owner: delete all copies, and all that was made of them.
    Withdraw {
        /// Of this object.
        object: ObjectId,
        /// How many were sent.
        count: u64,
    },
    /// To the owner: that is done.
    Withdrawn {
        /// Of this object.
        object: ObjectId,
        /// As in the [`Withdraw`](Message::Withdraw).
        count: u64,
        /// Lost cores to which parts of the memory were lent, so that more may be left of it.
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

/// Words that are no message.
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
    /// The words of this message.
    pub fn encode(&self) -> [u64; WORDS] {
        match *self {
            Message::Ask { object, to, rights, request } => {
                [head(1, to.number(), rights.bits(), 0), object.to_word(), request.0, 0, 0, 0, 0]
            }
            Message::Answer { object, to, request, result } => {
                [head(2, to.number(), code(result), 0), object.to_word(), request.0, 0, 0, 0, 0]
            }
            Message::Grant { object, shape, rights, count, asker, request } => {
                let head = head(3, asker.number(), rights.bits(), shape.kind as u8);
                [head, object.to_word(), request.0, count, shape.base, shape.bytes, shape.badge]
            }
            Message::Taken { object, count, asker, request, result } => {
                [head(4, asker.number(), code(result), 0), object.to_word(), request.0, count, 0, 0, 0]
            }
            Message::Release { object, count } => [head(5, 0, 0, 0), object.to_word(), 0, count, 0, 0, 0],
            Message::Withdraw { object, count } => [head(6, 0, 0, 0), object.to_word(), 0, count, 0, 0, 0],
            Message::Withdrawn { object, count, tainted } => {
                [head(7, 0, 0, 0), object.to_word(), 0, count, tainted.0, 0, 0]
            }
            Message::Gone { core, tainted } => [head(8, core.number(), 0, 0), 0, 0, 0, tainted.0, 0, 0],
        }
    }

    /// The message that `words` are.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if some part of it means nothing, or some word that is not used is not 0.
    pub fn decode(words: &[u64; WORDS]) -> Result<Message, Malformed> {
        let message = Message::parse(words)?;
        // One message has one form, so whatever was not looked at shows here.
        if message.encode() == *words { Ok(message) } else { Err(Malformed) }
    }

    fn parse(&[word, object, request, count, base, bytes, badge]: &[u64; WORDS]) -> Result<Message, Malformed> {
        let [tag, first, second, third, ..] = word.to_le_bytes();
        let named = ObjectId::from_word(object).ok_or(Malformed);
        let request = RequestId(request);
        Ok(match tag {
            1 => Message::Ask { object: named?, to: core(first)?, rights: rights(second)?, request },
            2 => Message::Answer { object: named?, to: core(first)?, request, result: result(second)? },
            3 => {
                let shape = Shape { kind: Kind::new(third).ok_or(Malformed)?, base, bytes, badge };
                let (rights, asker) = (rights(second)?, core(first)?);
                Message::Grant { object: named?, shape, rights, count, asker, request }
            }
            4 => Message::Taken { object: named?, count, asker: core(first)?, request, result: result(second)? },
            5 => Message::Release { object: named?, count },
            6 => Message::Withdraw { object: named?, count },
            7 => Message::Withdrawn { object: named?, count, tainted: Cores(base) },
            8 => Message::Gone { core: core(first)?, tainted: Cores(base) },
            _ => return Err(Malformed),
        })
    }
}
