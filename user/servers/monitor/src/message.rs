//! What monitors say to each other, as words. Whatever arrives is checked here: what is none of these messages is refused by name.
//!
//! ```text
//! request       words                                      answer
//! FORWARD       service, process, label, words…            what became of it, label, words…
//! about.rs      about processes                            what became of it, the answer in the words of its interface
//! PING                                                     nothing
//!
//! event
//! HELLO
//! CANCEL        place of the request
//! ALIVE
//! HERE
//! ```
//! The process is the one that asks, numbered as everywhere; who speaks for processes of other cores is refused.

use arrayvec::ArrayVec;
use tench_abi::Tag;
use tench_abi::message::MAX_WORDS;
use tench_monitor_client::protocol::{MAX_STRINGS, place};

/// What is asked or said.
pub mod operation {
    /// Event: this core runs.
    pub const HELLO: u16 = 1;
    /// Request without words; answered without words.
    pub const PING: u16 = 2;
    /// Request of a process to a server of the core that is asked.
    pub const FORWARD: u16 = 3;
    // Requests about processes: `about::Operation`.
    /// Event: nobody waits any more for the answer to a request, which is told by its place.
    pub const CANCEL: u16 = 9;
    /// Event: somebody waits for this core, of which nothing has been heard for a while. It says [`HERE`].
    pub const ALIVE: u16 = 17;
    /// Event: this core answers.
    pub const HERE: u16 = 18;
}

/// Words before those of the message that is forwarded.
const HEAD: usize = 3;
/// Words of the longest message between monitors.
pub const LONGEST: usize = HEAD + MAX_WORDS;
/// Servers for which requests can be forwarded.
pub const MAX_SERVICES: u64 = 64;

/// The words of a message.
pub type Words = ArrayVec<u64, LONGEST>;

tench_protocol::codes! {
    /// Why words are no message.
    pub enum Malformed {
        /// Fewer words than such a message has.
        TooShort = 1, "a message between monitors is too short";
        /// More words than such a message has.
        TooLong = 2, "a message between monitors is too long";
        /// More than can be the label of a message.
        Label = 3, "a label has more than 48 bits";
        /// A process of another core than the one that says so.
        Process = 4, "a process that asks is none of that core";
        /// More than there can be.
        Service = 5, "there is no server of that number";
        /// A string that does not end or is no UTF-8, or no program's name.
        Strings = 6, "a program's name and arguments are no strings";
        /// A number that means nothing.
        Outcome = 7, "no such outcome of a request";
        /// More than there are.
        Place = 8, "there is no request of that number";
        /// Another core than the one that is asked.
        Core = 9, "a process in question is none of this core";
        /// Neither yes nor no.
        Authority = 10, "whether a process manages others is 0 or 1";
    }
}

tench_protocol::codes! {
    /// What became of a request.
    pub enum Outcome {
        /// It was answered; the answer follows.
        Answered = 0;
        /// The server was started again.
        Restarted = 1;
        /// The server is gone, or whoever asked is.
        Gone = 2;
        /// The answer had capabilities, which do not travel.
        Capabilities = 3;
        /// Too many requests wait.
        Busy = 4;
        /// It was none; why follows, as a [`Malformed`].
        Malformed = 5;
        /// It was refused; why follows, as an error of the monitor's interface.
        Refused = 6;
    }
}

/// The first words, and the others. There may be at most `most` others.
pub(crate) fn split<const N: usize>(words: &[u64], most: usize) -> Result<([u64; N], &[u64]), Malformed> {
    let (head, rest) = words.split_first_chunk().ok_or(Malformed::TooShort)?;
    if rest.len() > most { Err(Malformed::TooLong) } else { Ok((*head, rest)) }
}

/// A request of a process to a server that runs on another core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forward<'a> {
    /// Which server: counted among those that run on the first core only, in the order of the system description.
    pub service: u64,
    /// Who asks; 0 for that core's process server, which speaks for all of its processes.
    pub process: u64,
    /// What is asked.
    pub label: u64,
    /// With which words.
    pub words: &'a [u64],
}

impl<'a> Forward<'a> {
    /// Its words.
    pub fn encode(&self) -> Words {
        [self.service, self.process, self.label].into_iter().chain(self.words.iter().copied()).take(LONGEST).collect()
    }

    /// What words say that have come from a core.
    pub fn decode(words: &'a [u64], from: u64) -> Result<Forward<'a>, Malformed> {
        let ([service, process, label], words) = split::<HEAD>(words, MAX_WORDS)?;
        if service >= MAX_SERVICES {
            return Err(Malformed::Service);
        }
        if process != 0 && place(process).0 != from {
            return Err(Malformed::Process);
        }
        Ok(Forward { service, process, label: self::label(label)?, words })
    }
}

fn label(word: u64) -> Result<u64, Malformed> {
    if word >> Tag::LABEL_BITS == 0 { Ok(word) } else { Err(Malformed::Label) }
}

/// The answer to a request that was forwarded, as words: a label and words.
pub fn answered(label: u64, words: &[u64]) -> Words {
    [Outcome::Answered as u64, label].into_iter().chain(words.iter().copied()).take(LONGEST).collect()
}

/// An answer that says no more than what became of a request, with one word about it.
pub fn ended(outcome: Outcome, about: u64) -> Words {
    [outcome as u64, about].into_iter().collect()
}

/// What an answer to a request that was forwarded says.
pub fn decode_answer(words: &[u64]) -> Result<(Outcome, u64, &[u64]), Malformed> {
    let ([outcome, about], rest) = split::<2>(words, MAX_WORDS)?;
    match Outcome::from_code(outcome).ok_or(Malformed::Outcome)? {
        Outcome::Answered => Ok((Outcome::Answered, label(about)?, rest)),
        _ if !rest.is_empty() => Err(Malformed::TooLong),
        outcome => Ok((outcome, about, rest)),
    }
}

/// What an answer about processes says: the words of the answer, or why there is none.
pub fn decode_result(words: &[u64]) -> Result<(Outcome, &[u64]), Malformed> {
    let ([outcome], rest) = split::<1>(words, MAX_WORDS)?;
    Ok((Outcome::from_code(outcome).ok_or(Malformed::Outcome)?, rest))
}

/// Which request is cancelled.
pub fn decode_place(words: &[u64]) -> Result<usize, Malformed> {
    let ([place], _) = split::<1>(words, 0)?;
    usize::try_from(place).ok().filter(|place| *place < tench_channel::MOST as usize).ok_or(Malformed::Place)
}

/// A program's name and arguments, each with a zero byte behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strings(ArrayVec<u8, MAX_STRINGS>);

impl Strings {
    /// Checks them.
    pub fn new(bytes: &[u8]) -> Result<Strings, Malformed> {
        let text = core::str::from_utf8(bytes).map_err(|_| Malformed::Strings)?;
        if !text.ends_with('\0') || text.starts_with('\0') {
            return Err(Malformed::Strings);
        }
        ArrayVec::try_from(bytes).map(Strings).map_err(|_| Malformed::TooLong)
    }

    /// The program's name, and the strings behind it.
    pub fn parts(&self) -> (&str, &[u8]) {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        let (name, rest) = self.0.split_at(end);
        (core::str::from_utf8(name).unwrap_or(""), rest.get(1..).unwrap_or(&[]))
    }

    /// Appends them to a message: how many bytes, and the bytes.
    pub fn encode_into(&self, words: &mut Words) {
        words.push(self.0.len() as u64);
        words.extend(self.0.chunks(size_of::<u64>()).map(|chunk| {
            let mut bytes = [0; size_of::<u64>()];
            bytes[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(bytes)
        }));
    }

    /// What the last words of a message say.
    pub fn decode(words: &[u64]) -> Result<Strings, Malformed> {
        let ([length], words) = split::<1>(words, MAX_STRINGS.div_ceil(size_of::<u64>()))?;
        let length = usize::try_from(length).ok().filter(|length| *length <= MAX_STRINGS).ok_or(Malformed::TooLong)?;
        if words.len() != length.div_ceil(size_of::<u64>()) {
            return Err(Malformed::Strings);
        }
        let bytes: ArrayVec<u8, MAX_STRINGS> = words.iter().flat_map(|word| word.to_le_bytes()).take(length).collect();
        Strings::new(&bytes)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;

    #[test]
    fn messages_arrive_as_they_were_sent() {
        let words: Vec<u64> = (0..64).collect();
        for length in [0, 1, 8, 63, 64] {
            let forward = Forward { service: 3, process: 2 << 32 | 77, label: (1 << 48) - 1, words: &words[..length] };
            assert_eq!(Forward::decode(&forward.encode(), 2), Ok(forward));
            let answer = answered(5, &words[..length]);
            assert_eq!(decode_answer(&answer), Ok((Outcome::Answered, 5, &words[..length])));
        }
        assert_eq!(decode_answer(&ended(Outcome::Busy, 9)), Ok((Outcome::Busy, 9, &[][..])));
        let longest = [&[b'x'; MAX_STRINGS - 1][..], &[0]].concat();
        for bytes in [&b"hello\0"[..], b"cat\0a b\0\0", "grün\0".as_bytes(), &longest] {
            let strings = Strings::new(bytes).unwrap();
            let mut words = Words::new();
            strings.encode_into(&mut words);
            assert_eq!(Strings::decode(&words), Ok(strings));
        }
        assert_eq!(Strings::new(b"cat\0a b\0\0").unwrap().parts(), ("cat", &b"a b\0\0"[..]));
        assert_eq!(Strings::new(b"cat\0").unwrap().parts(), ("cat", &b""[..]));
    }

    #[test]
    fn what_is_no_message_is_refused_by_name() {
        assert_eq!(Forward::decode(&[1, 2], 1), Err(Malformed::TooShort));
        assert_eq!(Forward::decode(&[0; 68], 1), Err(Malformed::TooLong));
        assert_eq!(Forward::decode(&[64, 0, 0], 1), Err(Malformed::Service));
        for process in [5, 2 << 32 | 5, u64::MAX] {
            assert_eq!(Forward::decode(&[0, process, 0], 1), Err(Malformed::Process), "{process:#x}");
        }
        assert_eq!(Forward::decode(&[0, 0, 1 << 48], 1), Err(Malformed::Label));
        assert_eq!(decode_answer(&[0]), Err(Malformed::TooShort));
        assert_eq!(decode_answer(&[7, 0]), Err(Malformed::Outcome));
        assert_eq!(decode_answer(&[0, u64::MAX]), Err(Malformed::Label));
        assert_eq!(decode_answer(&[4, 0, 0]), Err(Malformed::TooLong));
        assert_eq!(decode_answer(&[0; 67]), Err(Malformed::TooLong));
        assert_eq!((decode_place(&[63]), decode_place(&[64])), (Ok(63), Err(Malformed::Place)));
        assert_eq!((decode_place(&[]), decode_place(&[1, 1])), (Err(Malformed::TooShort), Err(Malformed::TooLong)));
        for bytes in [&b""[..], b"\0", b"\0x\0", b"hello", b"\xff\0"] {
            assert_eq!(Strings::new(bytes), Err(Malformed::Strings), "{bytes:?}");
        }
        assert_eq!(Strings::new(&[b'x'; MAX_STRINGS + 1]), Err(Malformed::Strings));
        assert_eq!(Strings::decode(&[]), Err(Malformed::TooShort));
        assert_eq!(Strings::decode(&[u64::MAX]), Err(Malformed::TooLong));
        assert_eq!(Strings::decode(&[6]), Err(Malformed::Strings));
        assert_eq!(Strings::decode(&[1, 0, 0]), Err(Malformed::Strings));
    }

    /// Whoever is refused on another core reads what he would read on his own, for every error that has a name here.
    #[test]
    fn errors_say_the_same_on_every_core() {
        use tench_monitor_client::protocol::Error;
        use tench_procs_client::protocol::Error as Local;

        let pairs = [
            (Error::WrongState, Local::WrongState),
            (Error::NoSuchProgram, Local::NoSuchProgram),
            (Error::BadProgram, Local::BadProgram),
            (Error::OutOfMemory, Local::OutOfMemory),
            (Error::TooManyProcesses, Local::TooManyProcesses),
            (Error::TextTooLong, Local::TextTooLong),
            (Error::NotAllowed, Local::NotAllowed),
            (Error::Essential, Local::Essential),
        ];
        assert!(pairs.iter().all(|(here, there)| here.text() == there.text()));
    }

    /// Words that a hostile monitor could send: whatever they are, they are refused or mean the same when they are sent again.
    #[test]
    fn whatever_arrives_is_a_message_or_refused() {
        let mut state = 1_u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 20
        };
        let (mut accepted, mut refused) = (0, 0);
        for _ in 0..50_000 {
            let length = random() as usize % 80;
            let shift = random() % 64;
            let mut words: Vec<u64> = (0..length).map(|_| random() >> shift.min(43)).collect();
            if let Some(word) = words.first_mut().filter(|_| shift % 2 == 0) {
                *word = (length as u64).saturating_sub(1) * 8;
            }
            let mut count = |ok: bool| if ok { accepted += 1 } else { refused += 1 };
            if let Some(word) = words.get_mut(1).filter(|_| shift % 4 != 0) {
                *word = 1 << 32 | length as u64;
            }
            let forward = Forward::decode(&words, 1);
            count(forward.is_ok());
            assert!(forward.is_ok_and(|forward| forward.encode()[..] == words[..]) || forward.is_err());
            let strings = Strings::decode(&words);
            count(strings.is_ok());
            if let Ok(strings) = strings {
                let mut again = Words::new();
                strings.encode_into(&mut again);
                assert_eq!(Strings::decode(&again), Ok(strings));
            }
            count(decode_answer(&words).is_ok());
            count(decode_result(&words).is_ok());
        }
        assert!(accepted > 1000 && refused > 1000, "{accepted} accepted, {refused} refused");
    }
}
