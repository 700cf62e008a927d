//! The client's measured functions. Each takes what it sends from memory, calls, and stores the reply in memory, so
//! that they differ in the call alone. They are compiled once each and have names of their own, by which the host tool
//! finds their sizes.

use tench::sys::{Cap, CapAddress, Carried, Endpoint, Message, Notification};
use tench_protocol::{DONE, call};

use super::interface::{Error, Measured, TASK, TaskInfo};

/// Data that is sent.
pub struct Given {
    /// Endpoint of the server.
    pub endpoint: Cap<Endpoint>,
    /// Words.
    pub words: [u64; 8],
    /// Text of 16 bytes.
    pub text: &'static str,
    /// A capability.
    pub cap: Cap<Notification>,
}

/// Data that came back.
#[derive(Default)]
pub struct Got {
    /// Words.
    pub words: [u64; 8],
    /// Text.
    pub text: [u8; 16],
    /// Result of `task_info`.
    pub info: TaskInfo,
}

impl Got {
    /// Returns whether the data that `what` sends came back unchanged.
    pub fn is_right(&self, given: &Given, what: &str) -> bool {
        let (_, case) = what.rsplit_once('_').unwrap_or(("", what));
        let count = match case {
            "text" => return self.text == given.text.as_bytes(),
            "stub" | "port" => return self.info == TaskInfo::SAMPLE,
            digits => digits.parse().unwrap_or(0),
        };
        self.words[..count] == given.words[..count]
    }
}

/// A measured function. Returns whether all went well.
pub type Function = fn(&Given, &mut Got) -> bool;

/// Defines functions that are compiled once each, under names of their own.
macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident ($given:ident, $got:ident) $body:block)*) => { $(
        $(#[$doc])*
        #[inline(never)]
        #[unsafe(no_mangle)]
        fn $name($given: &Given, $got: &mut Got) -> bool $body
    )* };
}

/// Function whose cost is subtracted.
pub const NOTHING: Function = lab_stubs_nothing;
/// Calls written by hand.
pub const BARE: [Function; 6] =
    [lab_stubs_bare_0, lab_stubs_bare_1, lab_stubs_bare_4, lab_stubs_bare_8, lab_stubs_bare_text, lab_stubs_bare_cap];
/// Calls by generated stubs.
pub const STUB: [Function; 6] =
    [lab_stubs_stub_0, lab_stubs_stub_1, lab_stubs_stub_4, lab_stubs_stub_8, lab_stubs_stub_text, lab_stubs_stub_cap];
/// Calls by the generic builder.
pub const MESSAGE: [Function; 6] = [
    lab_stubs_message_0,
    lab_stubs_message_1,
    lab_stubs_message_4,
    lab_stubs_message_8,
    lab_stubs_message_text,
    lab_stubs_message_cap,
];
/// `task_info` by the generated stub.
pub const TASK_INFO: Function = lab_stubs_task_info_stub;

/// Returns a word of text.
fn word(text: &str, start: usize) -> u64 {
    text.as_bytes().get(start..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

functions! {
    lab_stubs_nothing(_given, _got) {
        true
    }

    lab_stubs_bare_0(given, _got) {
        given.endpoint.call0(Measured::ZERO).is_ok_and(|reply| reply.label() == DONE)
    }

    lab_stubs_bare_1(given, got) {
        let Ok(reply) = given.endpoint.call1(Measured::ONE, given.words[0]) else { return false };
        got.words[0] = reply.words[0];
        reply.label() == DONE
    }

    lab_stubs_bare_4(given, got) {
        let [a, b, c, d, ..] = given.words;
        let Ok(reply) = given.endpoint.call4(Measured::FOUR, a, b, c, d) else { return false };
        got.words[..4].copy_from_slice(&reply.words[..4]);
        reply.label() == DONE
    }

    lab_stubs_bare_8(given, got) {
        let [a, b, c, d, e, f, g, h] = given.words;
        let Ok(reply) = given.endpoint.call8(Measured::EIGHT, a, b, c, d, e, f, g, h) else { return false };
        got.words = reply.words;
        reply.label() == DONE
    }

    lab_stubs_bare_text(given, got) {
        let (first, second) = (word(given.text, 0), word(given.text, 8));
        let Ok(reply) = given.endpoint.call3(Measured::TEXT, 16, first, second) else { return false };
        got.text[..8].copy_from_slice(&reply.words[1].to_le_bytes());
        got.text[8..].copy_from_slice(&reply.words[2].to_le_bytes());
        reply.label() == DONE && reply.words[0] == 16
    }

    lab_stubs_bare_cap(given, _got) {
        let cap = [Carried::copy(given.cap.address())];
        given.endpoint.call_short(Measured::CAP, 0, &[0; 8], &cap).is_ok_and(|reply| reply.label() == DONE)
    }

    lab_stubs_stub_0(given, _got) {
        Measured::at(given.endpoint).zero().is_ok()
    }

    lab_stubs_stub_1(given, got) {
        let Ok(word) = Measured::at(given.endpoint).one(given.words[0]) else { return false };
        got.words[0] = word;
        true
    }

    lab_stubs_stub_4(given, got) {
        let [a, b, c, d, ..] = given.words;
        let Ok((a, b, c, d)) = Measured::at(given.endpoint).four(a, b, c, d) else { return false };
        got.words[..4].copy_from_slice(&[a, b, c, d]);
        true
    }

    lab_stubs_stub_8(given, got) {
        let Ok(words) = Measured::at(given.endpoint).eight(given.words) else { return false };
        got.words = words;
        true
    }

    lab_stubs_stub_text(given, got) {
        let Ok(text) = Measured::at(given.endpoint).text(given.text) else { return false };
        let Some(bytes) = text.as_bytes().first_chunk() else { return false };
        got.text = *bytes;
        true
    }

    lab_stubs_stub_cap(given, _got) {
        Measured::at(given.endpoint).cap(given.cap).is_ok()
    }

    lab_stubs_message_0(given, _got) {
        let reply = call::<Error>(given.endpoint, &Message::new(Measured::ZERO));
        reply.is_ok_and(|reply| reply.words().is_empty())
    }

    lab_stubs_message_1(given, got) {
        words(given, got, Measured::ONE, 1)
    }

    lab_stubs_message_4(given, got) {
        words(given, got, Measured::FOUR, 4)
    }

    lab_stubs_message_8(given, got) {
        words(given, got, Measured::EIGHT, 8)
    }

    lab_stubs_message_text(given, got) {
        let mut message = Message::new(Measured::TEXT);
        message.push_text(given.text.as_bytes());
        let Ok(reply) = call::<Error>(given.endpoint, &message) else { return false };
        let mut reader = reply.reader();
        let text = reader.text().and_then(|text| core::str::from_utf8(text).ok());
        let Some(bytes) = text.and_then(|text| text.as_bytes().first_chunk()) else { return false };
        got.text = *bytes;
        reader.rest().is_empty()
    }

    lab_stubs_message_cap(given, _got) {
        let mut message = Message::new(Measured::CAP);
        message.copy_cap(CapAddress::from(given.cap));
        call::<Error>(given.endpoint, &message).is_ok_and(|reply| reply.words().is_empty())
    }

    lab_stubs_task_info_stub(given, got) {
        let Ok(info) = Measured::at(given.endpoint).task_info(TASK) else { return false };
        got.info = info;
        true
    }
}

/// Calls with `count` words by the builder.
#[inline(always)]
fn words(given: &Given, got: &mut Got, label: u64, count: usize) -> bool {
    let mut message = Message::new(label);
    for word in &given.words[..count] {
        message.push(*word);
    }
    let Ok(reply) = call::<Error>(given.endpoint, &message) else { return false };
    let mut reader = reply.reader();
    for place in &mut got.words[..count] {
        let Some(word) = reader.word() else { return false };
        *place = word;
    }
    reader.rest().is_empty()
}
