//! How a client reaches its server.

use tench_sys::{
    Cap, CapAddress, Endpoint, Error, Instant, Message, Received, Tag, Wait, Words, offer_slots, offered_slots,
};

use crate::wire::{Encode, Registers};
use crate::{Code, DONE, Failure, RESTARTED, Rejection};

/// The way to a server and back. Clients are written for any of them; a client of a process on the same core has an
/// endpoint.
pub trait Transport: Copy {
    /// A message that travels in registers; at most as many words come back. A longer answer is cut.
    fn call_registers(self, label: u64, words: &Registers) -> Result<Words, Error> {
        self.call_short(label, words, 0, &[]).map(|answer| answer.words)
    }

    /// What it means that a call ended with an error of the kernel's.
    #[cold]
    fn failed<E>(self, error: Error) -> Failure<E> {
        Failure::Lost(error)
    }

    /// A message of which nobody knows beforehand how many of at most eight words it has, and with the `caps`
    /// capabilities that it carries; at most as many words come back. Capabilities that come back go to the offered
    /// slots, which are empty.
    fn call_short(self, label: u64, request: &Registers, caps: usize, offered: &[CapAddress]) -> Result<Short, Error> {
        let words = request.words.get(..request.length()).ok_or(Error::MessageTooLong)?;
        let mut message = Message::with_words(label, words);
        request.caps(caps).iter().for_each(|cap| _ = message.carry(*cap));
        let mut answer = Received::new();
        self.call(&message, offered, &mut answer)?;
        let mut words = Words { tag: answer.tag(), badge: answer.badge(), words: [0; SHORT] };
        words.words.iter_mut().zip(answer.words()).for_each(|(place, word)| *place = *word);
        let mut caps = [CapAddress::NULL; CAPS];
        caps.iter_mut().zip(answer.caps()).for_each(|(place, cap)| *place = *cap);
        Ok(Short { words, caps })
    }

    /// A message of any length. Capabilities that come back go to the offered slots, which are empty. The answer goes
    /// where the caller wants it, because it is large.
    fn call(self, request: &Message, offered: &[CapAddress], answer: &mut Received) -> Result<(), Error>;

    /// Makes such a call, which ends at a deadline with `TimedOut`. Where the way does not end in an endpoint, it goes
    /// on until there is an answer.
    fn call_until(
        self,
        _deadline: Instant,
        request: &Message,
        offered: &[CapAddress],
        answer: &mut Received,
    ) -> Result<(), Error> {
        self.call(request, offered, answer)
    }
}

/// A way to a server that is waited for until a deadline, and no longer. What it says after that is lost.
#[derive(Clone, Copy, Debug)]
pub struct Until<T>(pub T, pub Instant);

/// Ticks after a server's deadline at which its client gives up: 67 ms at 62.5 MHz, 4.2 at 1 GHz. A server without an
/// alarm may be late. An answer that comes later still is lost.
const GRACE: u64 = 1 << 22;

impl<T> Until<T> {
    /// A way to a server that ends a wait at `deadline` by itself, and may be a little late. A time that has passed
    /// means now.
    pub fn with_grace(way: T, deadline: Instant) -> Until<T> {
        Until(way, deadline.max(Instant::now()).after(GRACE))
    }
}

impl<T: Transport> Transport for Until<T> {
    #[cold]
    fn failed<E>(self, error: Error) -> Failure<E> {
        self.0.failed(error)
    }

    fn call(self, request: &Message, offered: &[CapAddress], answer: &mut Received) -> Result<(), Error> {
        self.0.call_until(self.1, request, offered, answer)
    }

    fn call_until(
        self,
        deadline: Instant,
        request: &Message,
        offered: &[CapAddress],
        answer: &mut Received,
    ) -> Result<(), Error> {
        self.0.call_until(deadline.min(self.1), request, offered, answer)
    }
}

/// An answer of at most eight words.
#[derive(Clone, Copy, Debug)]
pub struct Short {
    /// Its words, and what describes them.
    pub words: Words,
    /// Where its capabilities lie.
    pub caps: [CapAddress; CAPS],
}

impl Short {
    /// Its words, without those that are none; `None` if it was cut.
    #[inline(always)]
    pub fn words(&self) -> Option<&[u64]> {
        self.words.words.get(..self.words.tag.length())
    }

    /// Its capabilities.
    #[inline(always)]
    pub fn caps(&self) -> &[CapAddress] {
        &self.caps[..self.words.tag.caps().min(CAPS)]
    }
}

impl Transport for Cap<Endpoint> {
    #[inline(always)]
    fn call_registers(self, label: u64, words: &Registers) -> Result<Words, Error> {
        let [a, b, c, d, e, f, g, h] = words.words;
        // The length is known where this is inlined, so one of these remains.
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
        // The program may be about to receive something else in slots that it offered.
        let others = offered_slots();
        offer_slots(offered);
        let answer = Cap::<Endpoint>::call_short(self, label, request.length(), &request.words, request.caps(caps));
        let answer = answer.map(|words| Short { words, caps: words.take_caps() });
        offer_slots(&others);
        answer
    }

    fn call(self, request: &Message, offered: &[CapAddress], answer: &mut Received) -> Result<(), Error> {
        with_offered(offered, || self.call_into(request, answer))
    }

    fn call_until(
        self,
        deadline: Instant,
        request: &Message,
        offered: &[CapAddress],
        answer: &mut Received,
    ) -> Result<(), Error> {
        with_offered(offered, || self.call_into_with(request, Wait::until(deadline), answer))
    }
}

/// A call in which capabilities go to these slots.
#[inline(always)]
fn with_offered<T>(offered: &[CapAddress], call: impl FnOnce() -> T) -> T {
    if offered.is_empty() {
        return call();
    }
    // The program may be about to receive something else in slots that it offered.
    let others = offered_slots();
    offer_slots(offered);
    let outcome = call();
    offer_slots(&others);
    outcome
}

/// An answer with capabilities that nobody waited for: they lie where the program wanted others, which are offered no
/// more. Only that they came is answered, so that whoever reads the answer finds it malformed.
#[cold]
#[inline(never)]
fn unwanted(tag: Tag) -> Tag {
    let tag = Tag::new(DONE, 0).with_caps(tag.caps());
    Words { tag, badge: 0, words: [0; SHORT] }.take_caps();
    tag
}

/// Whether values of this type travel in registers alone.
pub const fn is_short<T: Encode>() -> bool {
    T::WORDS <= tench_abi::message::REGISTER_WORDS && T::CAPS == 0
}

/// Whether an answer says that all went well; otherwise why not.
#[inline(always)]
pub fn check<E: Code>(tag: Tag, word: impl FnOnce() -> u64) -> Result<(), Failure<E>> {
    if tag.label() == DONE { Ok(()) } else { Err(failure(tag.label(), word())) }
}

/// What an answer that refuses says.
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

/// Makes a request that may be made twice, and makes it again as often as the server is started again.
pub fn again<T, E>(mut request: impl FnMut() -> Result<T, Failure<E>>) -> Result<T, Failure<E>> {
    loop {
        match request() {
            Err(Failure::Restarted) => {}
            answer => return answer,
        }
    }
}

/// Words that travel in registers.
pub const SHORT: usize = tench_abi::message::REGISTER_WORDS;
/// Words of the longest message.
pub const LONG: usize = tench_abi::message::MAX_WORDS;
/// Capabilities of a message.
pub const CAPS: usize = tench_abi::message::MAX_CAPS;
