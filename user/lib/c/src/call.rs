//! Requests to servers, for the headers that the interface compiler generates: `include/tench/message.h`.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ffi::{CStr, c_char, c_int};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use tench::abi::layout::slot;
use tench::abi::message::{MAX_CAPS, MAX_WORDS};
use tench::memory;
use tench::sys::{Cap, CapAddress, Endpoint, Error, Message, OWN_CSPACE, Received};
use tench_protocol::{Rejection, Transport};

/// `TENCH_TOO_LONG`.
const TOO_LONG: c_int = -1000;
/// `TENCH_MALFORMED`.
const MALFORMED: c_int = -1001;

/// `struct tench_message`.
#[repr(C)]
struct CMessage {
    label: u64,
    length: u32,
    cap_count: u32,
    given: u32,
    slot_count: u32,
    caps: [u32; MAX_CAPS],
    slots: [u32; MAX_CAPS],
    words: [u64; MAX_WORDS],
}

impl CMessage {
    /// Returns the message in the form in which it can be sent; `None` if it has too many words or capabilities.
    fn request(&self) -> Option<Message> {
        let words = self.words.get(..self.length as usize)?;
        let caps = self.caps.get(..self.cap_count as usize)?;
        let mut message = Message::with_words(self.label, words);
        for (index, cap) in caps.iter().enumerate() {
            let cap = CapAddress(*cap);
            if self.given >> index & 1 != 0 {
                message.move_cap(cap)
            } else {
                message.copy_cap(cap)
            };
        }
        Some(message)
    }

    /// Copies a reply into this message, and returns its result.
    fn take(&mut self, reply: &Received) -> c_int {
        (self.length, self.cap_count) = (reply.words().len() as u32, reply.caps().len() as u32);
        self.words.iter_mut().zip(reply.words()).for_each(|(place, word)| *place = *word);
        self.caps.iter_mut().zip(reply.caps()).for_each(|(place, cap)| *place = cap.0);
        match reply.label() {
            code @ 0..Rejection::FIRST => code as c_int,
            code => match Rejection::from_code(code, reply.word(0)) {
                Some(_) => code as c_int,
                None => MALFORMED,
            },
        }
    }
}

/// Sends a message and waits for the reply, which replaces it.
///
/// # Safety
/// `message` must point to a message whose words and capabilities exist as far as its lengths say.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
unsafe extern "C" fn tench_call(server: u32, message: *mut CMessage) -> c_int {
    // SAFETY: the caller guarantees that it points to a message, and C passes it to nobody else meanwhile. Words that
    // were never written lie beyond the lengths, and are only written to.
    let message = unsafe { &mut *message };
    let Some(request) = message.request() else { return TOO_LONG };
    let slots = message.slots.map(CapAddress);
    let offered = &slots[..(message.slot_count as usize).min(MAX_CAPS)];
    let mut reply = Received::new();
    match Transport::call(Cap::<Endpoint>::new(CapAddress(server)), &request, offered, &mut reply) {
        Ok(()) => message.take(&reply),
        Err(error) => -(error as c_int),
    }
}

/// Texts returned so far. They are never freed, so that C can keep them.
static TEXTS: [AtomicPtr<c_char>; 64] = [const { AtomicPtr::new(null_mut()) }; 64];

/// Returns the text for a code and the index at which it is kept.
fn text(code: c_int) -> Option<(usize, String)> {
    match code {
        0 => Some((0, "no error".into())),
        TOO_LONG => Some((1, "a text or list is longer than the interface allows".into())),
        MALFORMED => Some((2, "the server's reply is not one of its protocol".into())),
        code if code > 0 => {
            let rejection = Rejection::from_code(code as u64, 0)?;
            let text = match rejection {
                // The version and the interface were in the reply, which is gone.
                Rejection::OtherVersion(_) => "the server speaks another version of its interface".into(),
                Rejection::OtherInterface(_) => "another server replied; check who was given which capability".into(),
                other => format!("{other}"),
            };
            Some((3 + (code as u64 - Rejection::FIRST) as usize, text))
        }
        code => {
            let error = Error::from_code(u64::from(code.unsigned_abs()))?;
            Some((13 + error as usize, format!("the server was not reached: {error}")))
        }
    }
}

/// Returns the text of a request's failure.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn tench_failure(code: c_int) -> *const c_char {
    const UNKNOWN: &CStr = c"an error that this library does not know";
    let Some((index, text)) = text(code) else { return UNKNOWN.as_ptr() };
    let Some(place) = TEXTS.get(index) else { return UNKNOWN.as_ptr() };
    let known = place.load(Ordering::Acquire);
    if !known.is_null() {
        return known;
    }
    let mut bytes = Vec::from(text);
    bytes.push(0);
    // If two threads request a text for the first time at once, one of two equal texts is leaked.
    let made = bytes.leak().as_mut_ptr().cast();
    place.store(made, Ordering::Release);
    made
}

/// Returns an empty slot, or 0.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn tench_slot() -> u32 {
    memory::take_slot().unwrap_or(CapAddress::NULL).0
}

/// Deletes the capability in a slot from `tench_slot`, and frees the slot.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn tench_drop(slot: u32) {
    // The slot may be empty already, because nothing arrived or because the capability was moved away.
    let _ = OWN_CSPACE.delete_at(CapAddress(slot));
    memory::free_slot(CapAddress(slot));
}

/// Returns the name server.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn tench_server_names() -> u32 {
    slot::NAMES.0
}

/// Returns the process server.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn tench_server_procs() -> u32 {
    slot::PROCS.0
}

/// Returns the console server.
#[cfg_attr(target_os = "none", unsafe(no_mangle))]
extern "C" fn tench_server_console() -> u32 {
    slot::CONSOLE.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = include_str!("../include/tench/message.h");

    fn message() -> CMessage {
        CMessage {
            label: 7,
            length: 0,
            cap_count: 0,
            given: 0,
            slot_count: 0,
            caps: [0; MAX_CAPS],
            slots: [0; MAX_CAPS],
            words: [0; MAX_WORDS],
        }
    }

    #[test]
    fn the_header_has_the_numbers_of_rust() {
        for line in [
            format!("#define TENCH_MESSAGE_WORDS {MAX_WORDS}\n"),
            format!("#define TENCH_MESSAGE_CAPS {MAX_CAPS}\n"),
            format!("#define TENCH_REJECTED {:#x}\n", Rejection::FIRST),
            format!("#define TENCH_TOO_LONG ({TOO_LONG})\n"),
            format!("#define TENCH_MALFORMED ({MALFORMED})\n"),
        ] {
            assert!(HEADER.contains(&line), "{line}");
        }
        let known = (0..100).filter(|code| Rejection::from_code(Rejection::FIRST + code, 0).is_some()).count();
        assert_eq!(
            HEADER.split("enum tench_rejection {").nth(1).unwrap().split('}').next().unwrap().matches(',').count(),
            known
        );
    }

    #[test]
    fn a_reply_replaces_the_request() {
        let mut message = message();
        (message.words[0], message.length) = (5, 1);
        (message.caps[0], message.caps[1], message.cap_count, message.given) = (20, 21, 2, 0b10);
        let request = message.request().unwrap();
        let arrived = Received::from_message(&request, 0);
        assert_eq!(
            (arrived.label(), arrived.words(), arrived.caps()),
            (7, &[5][..], &[CapAddress(20), CapAddress(21)][..])
        );
        let reply = |label: u64, words: &[u64]| Received::from_message(&Message::with_words(label, words), 0);
        assert_eq!(message.take(&reply(0, &[8, 9])), 0);
        assert_eq!((message.length, message.cap_count, &message.words[..2]), (2, 0, &[8, 9][..]));
        assert_eq!(message.take(&reply(3, &[])), 3);
        assert_eq!(message.take(&reply(Rejection::FIRST + 2, &[4])), 0x1_0002);
        assert_eq!(message.take(&reply(Rejection::FIRST + 50, &[])), MALFORMED);
        assert_eq!(message.take(&reply(1 << 40, &[])), MALFORMED);
    }

    #[test]
    fn too_much_is_not_sent() {
        let mut message = message();
        message.length = MAX_WORDS as u32 + 1;
        assert!(message.request().is_none());
        (message.length, message.cap_count) = (0, MAX_CAPS as u32 + 1);
        assert!(message.request().is_none());
    }

    #[test]
    fn every_code_has_a_text_of_its_own_that_stays() {
        let codes = (-1001..=0).chain(0x1_0000..0x1_0010);
        let known: Vec<_> = codes.filter_map(|code| text(code).map(|(index, _)| (code, index))).collect();
        assert_eq!(known.len(), 3 + 10 + Error::ALL.len());
        let mut indices: Vec<_> = known.iter().map(|(_, index)| *index).collect();
        indices.sort_unstable();
        indices.dedup();
        assert_eq!(indices.len(), known.len());
        assert!(indices.last().is_some_and(|last| *last < TEXTS.len()));
        for (code, _) in known {
            assert_eq!(tench_failure(code), tench_failure(code));
        }
        // SAFETY: the text ends with a zero byte and stays.
        let text = unsafe { CStr::from_ptr(tench_failure(0x1_0000)) };
        assert!(text.to_str().unwrap().contains("arguments"));
        assert_eq!(tench_failure(99), tench_failure(98), "unknown ones share a text");
    }
}
