//! Capabilities in messages between monitors: descriptions of objects that stay on their core, and names of proxies for
//! them.

use tench_abi::Rights;
use tench_abi::power;
use tench_quota::Client;

use super::Malformed;

/// Number of low bits in a proxy's name that are a badge without powers; the name's counter is above them.
pub const NAME_SHIFT: u32 = power::SHIFT - 1;
/// Mask of those low bits.
pub const REQUESTER: u64 = (1 << NAME_SHIFT) - 1;
/// Rights to an endpoint of another core: everything but receiving.
pub const RIGHTS: Rights = Rights::WRITE.union(Rights::CALL).union(Rights::GRANT);

/// Class of an object that is reached from other cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectClass {
    /// An endpoint, to be called.
    Endpoint,
    /// A notification, to be signalled.
    Notification,
}

impl ObjectClass {
    /// Returns the rights that other cores can have.
    pub const fn rights(self) -> Rights {
        match self {
            ObjectClass::Endpoint => RIGHTS,
            ObjectClass::Notification => Rights::WRITE,
        }
    }
}

/// A capability's description in a message between monitors, in two words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// A capability to an object of the sending core, where it is held under a number.
    Held {
        /// Class of the object.
        class: ObjectClass,
        /// Number under which the sender holds it.
        number: u64,
        /// Rights of the capability.
        rights: Rights,
        /// Set if it has no badge, so that its holder can give it one.
        is_plain: bool,
        /// The server whose endpoint it is, if the sending core has told the other of it.
        server: Option<Server>,
    },
    /// A capability to an object of the receiving core, under the number that the receiver gave it.
    Returned {
        /// Number under which the receiver holds it.
        number: u64,
        /// Rights of the capability.
        rights: Rights,
        /// Badge given to it since, or 0.
        badge: u64,
    },
    /// Memory that has arrived before the message, as an [attachment](crate::transfer::attachments) of this number.
    Memory {
        /// Number of the attachment.
        number: u64,
    },
}

/// A server that cores know by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server {
    /// Number of the server between monitors.
    pub number: u8,
    /// Set if the badge is the process for which it was made. Otherwise, only the server knows its holder.
    pub is_personal: bool,
}

/// Number of the core's process server.
pub const PROCESSES: u8 = u8::MAX;
/// Pseudo server number: it is unknown whose endpoint it is.
pub const NO_SERVER: u64 = u64::MAX - 2;
/// Number of bits of a number under which something is held.
const NUMBER: u32 = 48;

impl Carried {
    /// Returns the description's words.
    pub const fn encode(&self) -> [u64; 2] {
        match *self {
            Carried::Held { class, number, rights, is_plain, server } => {
                let kind = match class {
                    ObjectClass::Endpoint => 1 + is_plain as u64,
                    ObjectClass::Notification => 5 + is_plain as u64,
                };
                let server = match server {
                    Some(Server { number, is_personal }) => (1 + number as u64) | (is_personal as u64) << 16,
                    None => 0,
                };
                [number | (rights.bits() as u64) << NUMBER | kind << 56, server]
            }
            Carried::Returned { number, rights, badge } => [number | (rights.bits() as u64) << NUMBER | 3 << 56, badge],
            Carried::Memory { number } => [number | 4 << 56, 0],
        }
    }

    /// Decodes two words.
    pub fn decode([first, second]: [u64; 2]) -> Result<Carried, Malformed> {
        let number = first & ((1 << NUMBER) - 1);
        let rights = Rights::from_bits((first >> NUMBER) as u8).filter(|rights| RIGHTS.contains(*rights));
        let (rights, kind) = (rights.ok_or(Malformed::Capability)?, first >> 56);
        let server = match (second & 0xffff, second >> 16) {
            (0, 0) => None,
            (server @ 1..=0x100, personal @ 0..=1) if kind < 3 => {
                Some(Server { number: (server - 1) as u8, is_personal: personal == 1 })
            }
            _ if kind == 3 => None,
            _ => return Err(Malformed::Capability),
        };
        match kind {
            1 | 2 => Ok(Carried::Held { class: ObjectClass::Endpoint, number, rights, is_plain: kind == 2, server }),
            5 | 6 if ObjectClass::Notification.rights().contains(rights) => {
                Ok(Carried::Held { class: ObjectClass::Notification, number, rights, is_plain: kind == 6, server })
            }
            3 => Ok(Carried::Returned { number, rights, badge: second }),
            4 if rights.is_empty() && second == 0 => Ok(Carried::Memory { number }),
            _ => Err(Malformed::Capability),
        }
    }
}

/// Returns the client that requested the proxy of this name.
pub const fn requester_of(name: u64) -> Client {
    Client::of_badge(name & REQUESTER)
}
