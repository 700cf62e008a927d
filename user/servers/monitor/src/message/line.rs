//! Events about capabilities between monitors: at most seven words each, which fit in one line of the channel.
//!
//! ```text
//! event      words                            meaning
//! AGREE      the words of a Message           a message of the protocol (tench_remote)
//! ADDRESS    request, reservation, owner      what comes from the owner under the name of this request of the sender's
//!                                             is for the holder of the reservation
//! DROP       reservation                      nothing will come for the reservation
//! LOST       core                             the first core's monitor reports that this core has stopped
//! LINK       core                             to the first core's monitor: the sender needs a channel to this core
//! ENDPOINT   reservation, a capability        an endpoint or notification for the reservation
//!
//! request    words                            reply
//! ADMIT      requester, process, word         outcome, reservation
//! GROW       bytes, free bytes there          outcome, bytes given
//! ```
//! A *reservation* is an entry in the mailbox of the receiving core. It is requested before anything is sent, so the
//! sender learns first that the process exists and has room.

use arrayvec::ArrayVec;
use tench_abi::power::{self, identity};
use tench_monitor_interface::protocol::split_pid;
use tench_remote::{Core, Message, RequestId, WORDS};

use super::carried::Carried;
use super::{MONITOR, Malformed};

/// Numbers of events and requests.
pub mod operation {
    /// Event: a message of the protocol.
    pub const AGREE: u16 = 32;
    /// Event: the receiver of a capability that was requested under a name.
    pub const ADDRESS: u16 = 33;
    /// Event: a reservation is no longer needed.
    pub const DROP: u16 = 34;
    /// Request: a reservation for a process.
    pub const ADMIT: u16 = 35;
    /// Event: a core has stopped.
    pub const LOST: u16 = 36;
    /// Request: memory from a core.
    pub const GROW: u16 = 38;
    /// Event: a channel to another core is needed.
    pub const LINK: u16 = 37;
    /// Event: an endpoint or a notification for a process.
    pub const ENDPOINT: u16 = 39;
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// A message of the protocol.
    Agree(Message),
    /// The capability that this core, the owner, grants for this request of the sender's is for the holder of the
    /// reservation.
    Address(RequestId, u64, Core),
    /// This reservation ends: nothing will come for it.
    Drop(u64),
    /// This core has stopped.
    Lost(Core),
    /// The sender needs a channel to this core.
    Link(Core),
    /// This endpoint or notification is for the holder of the reservation.
    Endpoint(u64, Carried),
}

impl Line {
    /// Returns the event's number and words.
    pub fn encode(&self) -> (u16, ArrayVec<u64, WORDS>) {
        let words = |words: &[u64]| words.iter().copied().collect();
        match self {
            Line::Agree(message) => (operation::AGREE, words(&message.encode())),
            Line::Address(request, reservation, owner) => {
                (operation::ADDRESS, words(&[request.0, *reservation, owner.index() as u64]))
            }
            Line::Drop(reservation) => (operation::DROP, words(&[*reservation])),
            Line::Lost(core) => (operation::LOST, words(&[core.index() as u64])),
            Line::Link(core) => (operation::LINK, words(&[core.index() as u64])),
            Line::Endpoint(reservation, carried) => {
                let [first, second] = carried.encode();
                (operation::ENDPOINT, words(&[*reservation, first, second]))
            }
        }
    }

    /// Returns the event that the words describe, or `None` if they describe none.
    pub fn decode(operation: u16, words: &[u64]) -> Option<Line> {
        match (operation, words) {
            (operation::AGREE, words) => Message::decode(words.try_into().ok()?).ok().map(Line::Agree),
            (operation::ADDRESS, &[request, reservation, owner]) => {
                Some(Line::Address(RequestId(request), reservation, core(owner)?))
            }
            (operation::DROP, &[reservation]) => Some(Line::Drop(reservation)),
            (operation::LOST, &[number]) => Some(Line::Lost(core(number)?)),
            (operation::LINK, &[number]) => Some(Line::Link(core(number)?)),
            (operation::ENDPOINT, &[reservation, first, second]) => {
                Some(Line::Endpoint(reservation, Carried::decode([first, second]).ok()?))
            }
            _ => None,
        }
    }
}

/// Returns the core of this number, if there can be one.
fn core(number: u64) -> Option<Core> {
    Core::new(u8::try_from(number).ok()?)
}

/// A core's request for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// Bytes that it wants.
    pub bytes: u64,
    /// Bytes that it has free.
    pub free: u64,
}

impl Growth {
    /// Returns the request's words.
    pub const fn encode(&self) -> [u64; 2] {
        [self.bytes, self.free]
    }

    /// Returns the request that the words describe.
    pub fn decode(words: &[u64]) -> Result<Growth, Malformed> {
        match *words {
            [bytes, free] => Ok(Growth { bytes, free }),
            ref words => Err(if words.len() < 2 { Malformed::TooShort } else { Malformed::TooLong }),
        }
    }
}

/// A request for a reservation: a sender, a receiver and a word. A monitor is [`MONITOR`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// The sending process: a badge without powers.
    pub requester: u64,
    /// The receiving process.
    pub process: u64,
    /// Word by which the receiver recognizes the purpose.
    pub word: u64,
}

impl Admission {
    /// Returns the request's words.
    pub const fn encode(&self) -> [u64; 3] {
        [self.requester, self.process, self.word]
    }

    /// Returns the request in words that core `from` has sent to core `own`.
    pub fn decode(words: &[u64], from: u64, own: u64) -> Result<Admission, Malformed> {
        let &[requester, process, word] = words else {
            return Err(if words.len() < 3 { Malformed::TooShort } else { Malformed::TooLong });
        };
        let is_of = |process: u64, core| process == MONITOR || split_pid(process).0 == core;
        if !is_of(identity(requester), from) || requester >> power::SHIFT != 0 {
            return Err(Malformed::Process);
        }
        if !is_of(process, own) {
            return Err(Malformed::Core);
        }
        Ok(Admission { requester, process, word })
    }
}
