//! Hostile requests to the file server, at ends of streams and with files.

use alloc::format;
use alloc::string::String;

use tench::files::Files;
use tench::process;
use tench::stream::Stream;
use tench::sys::{Cap, CapAddress, Endpoint, Message, OWN_CSPACE};
use tench_protocol::label;
use tench_random::Random;

use crate::child::{self, Arguments};

/// Slots in which ends arrive.
const ENDS: u32 = child::OBJECTS + 64;
/// Number of these slots. Ends beyond them are no longer known to the client.
const END_SLOTS: u32 = 60;
/// Last slot that the library must not use.
pub const LAST_SLOT: CapAddress = CapAddress(ENDS + END_SLOTS - 1);
/// Number of different names of files and directories, at any depth.
const NAMES: u64 = 300;
/// Range of blocks written: more than there are.
const BLOCKS: u64 = 5000;

/// Methods of an end.
const READ: u16 = 1;
const WRITE: u16 = 2;
const SHARE: u16 = 3;
const SEEK: u16 = 6;
/// Methods of the file server.
const PIPE: u16 = 1;
const OPEN: u16 = 2;
const RENAME: u16 = 7;

/// Returns a slot for an end, which may hold one.
fn slot(random: &mut Random) -> CapAddress {
    CapAddress(ENDS + random.below(u64::from(END_SLOTS)) as u32)
}

/// Returns a path that this client has made, or will make.
fn path(random: &mut Random) -> String {
    let mut path = String::from("/tmp");
    for _ in 0..=random.below(3) {
        path += &format!("/hostile{}", random.below(NAMES));
    }
    path
}

/// Returns a request to an end: mostly one that waits or takes memory.
fn to_an_end(random: &mut Random) -> Message {
    // Any number, of a method or not.
    let method = match random.below(20) {
        0..=4 => READ,
        5..=9 => WRITE,
        10..=13 => SHARE,
        14..=17 => SEEK,
        _ => random.below(10) as u16,
    };
    let mut message = Message::new(label(Stream::<()>::INTERFACE, Stream::<()>::VERSION, method));
    match method {
        READ => message.push(random.below(600)),
        WRITE => message.push_text(&[b'h'; 500][..random.below(500) as usize]),
        // Shares with itself, with processes started at the same time, and with processes that do not exist yet, or
        // never will.
        SHARE => message.push(process::id() + random.below(8) * random.below(90)),
        SEEK => message.push(random.below(BLOCKS) << 12),
        _ => message.push(random.argument() % (1 << 32)),
    };
    message
}

/// Returns a request to the file server: mostly for an end or a name.
fn to_the_server(random: &mut Random) -> Message {
    let method = [PIPE, PIPE, OPEN, OPEN, OPEN, 3, 4, 5, 6, RENAME][random.below(10) as usize];
    let mut message = Message::new(label(Files::<()>::INTERFACE, Files::<()>::VERSION, method));
    if method == PIPE {
        return message;
    }
    message.push_text(path(random).as_bytes());
    match method {
        OPEN => _ = message.push(1 + random.below(5)),
        RENAME => _ = message.push_text(path(random).as_bytes()),
        4 => _ = message.push_text(b""),
        _ => {}
    }
    message
}

/// Returns a request and its target, with empty slots for the capabilities that arrive.
pub fn request(server: Cap<Endpoint>, random: &mut Random) -> (Cap<Endpoint>, Message, [CapAddress; 2]) {
    let offered = [slot(random), slot(random)];
    let at_an_end = random.below(3) > 0;
    if !at_an_end || random.below(4) == 0 {
        // The end that was there stays open, without a capability.
        for slot in offered {
            let _ = OWN_CSPACE.delete_at(slot);
        }
    }
    if at_an_end {
        return (Cap::new(slot(random)), to_an_end(random), offered);
    }
    (server, to_the_server(random), offered)
}
