//! Transports: how a client reaches its server.

use tench_sys::{
    Cap, CapAddress, Endpoint, Error, Instant, Message, Received, Tag, Wait, Words, offer_slots, offered_slots,
};

use crate::wire::{Encode, Registers};
use crate::{Code, DONE, Failure, RESTARTED, Rejection};

/// A connection to a server. Generated clients work with any transport; a client of a process on the same core uses an
/// endpoint.
pub trait Transport: Copy {
    /// Sends a message that travels in registers; the reply has at most as many words. A longer reply is cut.
    fn call_registers(self, label: u64, words: &Registers) -> Result<Words, Error> {
        self.call_short(label, words, 0, &[]).map(|reply| reply.words)
    }

    /// Returns the failure that an error of the kernel in a call means.
    #[cold]
    fn failed<E>(self, error: Error) -> Failure<E> {
        Failure::Lost(error)
    }

    /// Sends a message whose number of words, at most eight, is known only at run time, with `caps` attached
    /// capabilities; the reply has at most as many words. Capabilities of the reply go to the offered slots, which are
    /// empty.
    fn call_short(self, label: u64, request: &Registers, caps: usize, offered: &[CapAddress]) -> Result<Short, Error> {
        let words = request.words.get(..request.length()).ok_or(Error::MessageTooLong)?;
        let mut message = Message::with_words(label, words);
        request.caps(caps).iter().for_each(|cap| _ = message.carry(*cap));
        let mut reply = Received::new();
        self.call(&message, offered, &mut reply)?;
        let mut words = Words { tag: reply.tag(), badge: reply.badge(), words: [0; SHORT] };
        words.words.iter_mut().zip(reply.words()).for_each(|(place, word)| *place = *word);
        let mut caps = [CapAddress::NULL; CAPS];
        caps.iter_mut().zip(reply.caps()).for_each(|(place, cap)| *place = *cap);
        Ok(Short { words, caps })
    }

    /// Sends a message of any length. Capabilities of the reply go to the offered slots, which are empty. The reply
    /// goes to `reply`, because it is large.
    fn call(self, request: &Message, offered: &[CapAddress], reply: &mut Received) -> Result<(), Error>;

    /// Makes a [`call`](Self::call) that fails with `TimedOut` at a deadline. A transport that does
    /// not end in an endpoint waits until there is a reply.
    fn call_until(
        self,
        _deadline: Instant,
        request: &Message,
        offered: &[CapAddress],
        reply: &mut Received,
    ) -> Result<(), Error> {
        self.call(request, offered, reply)
    }
}

/// A transport that waits until a deadline, and no longer. A later reply is lost.
#[derive(Clone, Copy, Debug)]
pub struct Until<T>(pub T, pub Instant);

/// Number of ticks after a server's deadline at which its client gives up: 67 ms at 62.5 MHz, 4.2 at 1 GHz. A server
/// without an alarm may be late. A later reply is lost.
const MARGIN: u64 = 1 << 22;

impl<T> Until<T> {
    /// Returns a transport to a server that itself ends a wait at `deadline`, and may be a little late. A deadline in
    /// the past means now.
    pub fn with_margin(way: T, deadline: Instant) -> Until<T> {
        Until(way, deadline.max(Instant::now()).after(MARGIN))
    }
}

impl<T: Transport> Transport for Until<T> {
    #[cold]
    fn failed<E>(self, error: Error) -> Failure<E> {
        self.0.failed(error)
    }

    fn call(self, request: &Message, offered: &[CapAddress], reply: &mut Received) -> Result<(), Error> {
        self.0.call_until(self.1, request, offered, reply)
    }

    fn call_until(
        self,
        deadline: Instant,
        request: &Message,
        offered: &[CapAddress],
        reply: &mut Received,
    ) -> Result<(), Error> {
        self.0.call_until(deadline.min(self.1), request, offered, reply)
    }
}

/// A reply of at most eight words.
#[derive(Clone, Copy, Debug)]
pub struct Short {
    /// Words and tag of the reply.
    pub words: Words,
    /// Slots of its capabilities.
    pub caps: [CapAddress; CAPS],
}

impl Short {
    /// Returns the words within the reply's length; `None` if the reply was cut.
    #[inline(always)]
    pub fn words(&self) -> Option<&[u64]> {
        self.words.words.get(..self.words.tag.length())
    }

    /// Returns the slots of its capabilities.
    #[inline(always)]
    pub fn caps(&self) -> &[CapAddress] {
        &self.caps[..self.words.tag.caps().min(CAPS)]
    }
}

impl Transport for Cap<Endpoint> {
    #[inline(always)]
    fn call_registers(self, label: u64, words: &Registers) -> Result<Words, Error> {
        let [a, b, c, d, e, f, g, h] = words.words;
        // The length is known where this is inlined, so only one of these is generated.
        match words.length() {
            0 => self.call0(label),
            1 => self.call1(label, a),
            2 => self.call2(label, a, b),
            3 => self.call3(label, a, b, c),
            4 => self.call4(label, a, b, c, d),
            5 => self.call5(label, a, b, c, d, e),
            6 => self.call6(label, a, b, c, d, e, f),
            7 => self.call7(label, a, b, c, d, e, f, g),
            8 => self.call8(label, a, b, c, d, e, f, g, h),
            _ => Err(Error::MessageTooLong),
        }
    }

    #[inline(always)]
    fn call_short(self, label: u64, request: &Registers, caps: usize, offered: &[CapAddress]) -> Result<Short, Error> {
        if offered.is_empty() {
            let carried = request.caps(caps);
            let mut words = Cap::<Endpoint>::call_short(self, label, request.length(), &request.words, carried)?;
            if words.tag.caps() > 0 {
                words.tag = unwanted(words.tag);
            }
            return Ok(Short { words, caps: [CapAddress::NULL; CAPS] });
        }
        // The program may be about to receive another message in slots that it offered.
        let others = offered_slots();
        offer_slots(offered);
        let reply = Cap::<Endpoint>::call_short(self, label, request.length(), &request.words, request.caps(caps));
        let reply = reply.map(|words| Short { words, caps: words.take_caps() });
        offer_slots(&others);
        reply
    }

    fn call(self, request: &Message, offered: &[CapAddress], reply: &mut Received) -> Result<(), Error> {
        with_offered(offered, || self.call_into(request, reply))
    }

    fn call_until(
        self,
        deadline: Instant,
        request: &Message,
        offered: &[CapAddress],
        reply: &mut Received,
    ) -> Result<(), Error> {
        with_offered(offered, || self.call_into_with(request, Wait::until(deadline), reply))
    }
}

/// Makes a call in which received capabilities go to these slots.
#[inline(always)]
fn with_offered<T>(offered: &[CapAddress], call: impl FnOnce() -> T) -> T {
    if offered.is_empty() {
        return call();
    }
    // The program may be about to receive another message in slots that it offered.
    let others = offered_slots();
    offer_slots(offered);
    let outcome = call();
    offer_slots(&others);
    outcome
}

/// Handles a reply with unexpected capabilities. They occupy slots that the program offered for others, which are no
/// longer on offer. The returned tag only says that capabilities came, so that the decoder finds the reply malformed.
#[cold]
#[inline(never)]
fn unwanted(tag: Tag) -> Tag {
    let tag = Tag::new(DONE, 0).with_caps(tag.caps());
    Words { tag, badge: 0, words: [0; SHORT] }.take_caps();
    tag
}

/// Returns whether values of this type travel in registers alone.
pub const fn is_short<T: Encode>() -> bool {
    T::WORDS <= tench_abi::message::REGISTER_WORDS && T::CAPS == 0
}

/// Returns success, or the failure that a reply reports.
#[inline(always)]
pub fn check<E: Code>(tag: Tag, word: impl FnOnce() -> u64) -> Result<(), Failure<E>> {
    if tag.label() == DONE { Ok(()) } else { Err(failure(tag.label(), word())) }
}

/// Returns the failure that a reply with this code reports.
#[cold]
fn failure<E: Code>(code: u64, word: u64) -> Failure<E> {
    if let Some(error) = E::from_code(code) {
        return Failure::Refused(error);
    }
    if code == RESTARTED {
        return Failure::Restarted;
    }
    Rejection::from_code(code, word).map_or(Failure::Malformed, Failure::Rejected)
}

/// Makes an idempotent request, and repeats it whenever the server was restarted.
pub fn again<T, E>(mut request: impl FnMut() -> Result<T, Failure<E>>) -> Result<T, Failure<E>> {
    loop {
        match request() {
            Err(Failure::Restarted) => {}
            reply => return reply,
        }
    }
}

/// Number of words that travel in registers.
pub const SHORT: usize = tench_abi::message::REGISTER_WORDS;
/// Number of words of the longest message.
pub const LONG: usize = tench_abi::message::MAX_WORDS;
/// Maximum number of capabilities of a message.
pub const CAPS: usize = tench_abi::message::MAX_CAPS;
