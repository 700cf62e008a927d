//! What monitors say to each other about capabilities: events of at most seven words, one line of the channel each.
//!
//! ```text
//! event      words                       says
//! AGREE      the words of a Message      what the protocol says (tench_foreign)
//! ADDRESS    request, ticket, owner      what comes from its owner under this name of a request of the sender's is for who
//!                                        holds the ticket
//! DROP       ticket                      nothing will come for it
//! LOST       core                        the first core's monitor says that this core has stopped
//! LINK       core                        to the first core's monitor: the sender needs a channel to this core
//! ENDPOINT   ticket, a capability        an endpoint or a notification for who holds the ticket (crate::proxies)
//!
//! request    words                       answer
//! ADMIT      asker, process, word        what became of it, ticket
//! GROW       bytes, free bytes there     what became of it, bytes that were given
//! ```
//! A *ticket* is a place in the mail of the receiving core: it is asked for before anything is sent, so that whoever
//! sends learns first that the process exists and has room.

use arrayvec::ArrayVec;
use tench_abi::power::{self, identity};
use tench_foreign::{Core, Message, RequestId, WORDS};
use tench_monitor_client::protocol::place;

use super::MONITOR;
use crate::message::Malformed;
use crate::proxies::Carried;

/// What is asked or said.
pub mod operation {
    /// Event: a message of the protocol.
    pub const AGREE: u16 = 32;
    /// Event: for whom a capability is that was asked for under a name.
    pub const ADDRESS: u16 = 33;
    /// Event: a ticket is not needed any more.
    pub const DROP: u16 = 34;
    /// Request: whether a process takes a capability.
    pub const ADMIT: u16 = 35;
    /// Event: a core has stopped.
    pub const LOST: u16 = 36;
    /// Request: whether the core gives memory.
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
    /// What comes from this core under the name of this request of the sender's is for who holds the ticket.
    Address(RequestId, u64, Core),
    /// Nothing will come for this ticket.
    Drop(u64),
    /// This core has stopped.
    Lost(Core),
    /// The sender needs a channel to this core.
    Link(Core),
    /// This endpoint or notification is for who holds the ticket.
    Endpoint(u64, Carried),
}

impl Line {
    /// Its operation and words.
    pub fn encode(&self) -> (u16, ArrayVec<u64, WORDS>) {
        let words = |words: &[u64]| words.iter().copied().collect();
        match self {
            Line::Agree(message) => (operation::AGREE, words(&message.encode())),
            Line::Address(request, ticket, owner) => {
                (operation::ADDRESS, words(&[request.0, *ticket, owner.index() as u64]))
            }
            Line::Drop(ticket) => (operation::DROP, words(&[*ticket])),
            Line::Lost(core) => (operation::LOST, words(&[core.index() as u64])),
            Line::Link(core) => (operation::LINK, words(&[core.index() as u64])),
            Line::Endpoint(ticket, carried) => {
                let [first, second] = carried.encode();
                (operation::ENDPOINT, words(&[*ticket, first, second]))
            }
        }
    }

    /// What an event says. `None` if it is none of these.
    pub fn decode(operation: u16, words: &[u64]) -> Option<Line> {
        match (operation, words) {
            (operation::AGREE, words) => Message::decode(words.try_into().ok()?).ok().map(Line::Agree),
            (operation::ADDRESS, &[request, ticket, owner]) => {
                Some(Line::Address(RequestId(request), ticket, core(owner)?))
            }
            (operation::DROP, &[ticket]) => Some(Line::Drop(ticket)),
            (operation::LOST, &[number]) => Some(Line::Lost(core(number)?)),
            (operation::LINK, &[number]) => Some(Line::Link(core(number)?)),
            (operation::ENDPOINT, &[ticket, first, second]) => {
                Some(Line::Endpoint(ticket, Carried::decode([first, second]).ok()?))
            }
            _ => None,
        }
    }
}

/// The core of this number, if there can be one.
fn core(number: u64) -> Option<Core> {
    Core::new(u8::try_from(number).ok()?)
}

/// A core that wants memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// How much it wants, in bytes.
    pub bytes: u64,
    /// How much it has free.
    pub free: u64,
}

impl Growth {
    /// Its words.
    pub const fn encode(&self) -> [u64; 2] {
        [self.bytes, self.free]
    }

    /// What words say.
    pub fn decode(words: &[u64]) -> Result<Growth, Malformed> {
        match *words {
            [bytes, free] => Ok(Growth { bytes, free }),
            ref words => Err(if words.len() < 2 { Malformed::TooShort } else { Malformed::TooLong }),
        }
    }
}

/// Who wants to send a capability to whom, with which word. A monitor is [`MONITOR`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// Who sends: the badge of the process, without powers.
    pub asker: u64,
    /// Who is to have it.
    pub process: u64,
    /// What it is for.
    pub word: u64,
}

impl Admission {
    /// Its words.
    pub const fn encode(&self) -> [u64; 3] {
        [self.asker, self.process, self.word]
    }

    /// What words say that have come from a core to `own`.
    pub fn decode(words: &[u64], from: u64, own: u64) -> Result<Admission, Malformed> {
        let &[asker, process, word] = words else {
            return Err(if words.len() < 3 { Malformed::TooShort } else { Malformed::TooLong });
        };
        let is_of = |process: u64, core| process == MONITOR || place(process).0 == core;
        if !is_of(identity(asker), from) || asker >> power::SHIFT != 0 {
            return Err(Malformed::Process);
        }
        if !is_of(process, own) {
            return Err(Malformed::Core);
        }
        Ok(Admission { asker, process, word })
    }
}
