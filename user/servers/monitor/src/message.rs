//! Messages between monitors, as words. Everything that arrives is checked here; words that are no valid message are
//! refused with a reason.
//!
//! ```text
//! request       words                                      reply
//! FORWARD       target, badge, label, capabilities, words… outcome, label, capabilities, words…
//! MEMORY        no words                                   outcome, the figures in the words of the interface
//! PROCESSES     requesting process, its ceiling            outcome, the process server's endpoint for that process
//! PING                                                     no words
//!
//! event
//! HELLO
//! CANCEL        position of the request
//! RELEASE       number that is no longer needed: of a held capability, or of an attachment
//! SIGNAL        number of the notification, bits
//! ALIVE
//! HERE
//! ```
//! The target is a server's number; the badge is then the requesting process, and requests for processes of other cores
//! are refused. Or the target is the number of what the other monitor holds ([proxies](crate::transfer::proxies)); the
//! badge, if it is not 0, is then the one with which the call is made. A bit of the target says that no reply is
//! expected. The bits above the label are the number of capabilities, each of which takes two words ([`Carried`]).

pub mod carried;
pub mod line;

use arrayvec::ArrayVec;
use tench_abi::message::{MAX_CAPS, MAX_WORDS};
use tench_abi::power::Client;
use tench_abi::{Powers, Tag};
use tench_monitor_interface::protocol::split_pid;

use carried::Carried;

/// Numbers of requests and events.
pub mod operation {
    /// Event: this core runs.
    pub const HELLO: u16 = 1;
    /// Request without words; the reply has none.
    pub const PING: u16 = 2;
    /// Request of a process to a server of the addressed core, or to what is held there.
    pub const FORWARD: u16 = 3;
    /// Request without words for the core's use of memory.
    pub const MEMORY: u16 = 8;
    /// Event: the reply to the request at this position is no longer awaited.
    pub const CANCEL: u16 = 9;
    /// Event: a reply of this core is awaited, and nothing has come from it for a while. It replies with [`HERE`].
    pub const ALIVE: u16 = 17;
    /// Event: this core still runs.
    pub const HERE: u16 = 18;
    /// Event: what is held under a number, or has arrived under it, is no longer needed.
    pub const RELEASE: u16 = 19;
    /// Request of a process for the endpoint of a core's process server.
    pub const PROCESSES: u16 = 20;
    /// Event: the notification held under a number was signalled.
    pub const SIGNAL: u16 = 21;
}

/// Number of words before those of the forwarded message.
const HEAD: usize = 3;
/// Maximum number of words of a message between monitors.
pub const LONGEST: usize = HEAD + 2 * MAX_CAPS + MAX_WORDS;
/// Process number that stands for a core's monitor.
pub const MONITOR: u64 = 0;
/// Maximum number of servers to which requests can be forwarded.
pub const MAX_SERVICES: u64 = 64;

/// Bit of a target: the other bits are the number under which it is held.
const HELD: u64 = 1 << 63;
/// Bit of a target: no reply is expected.
const ONE_WAY: u64 = 1 << 62;

/// Descriptions of the capabilities of a message.
pub type Capabilities = ArrayVec<Carried, MAX_CAPS>;
/// Words of a message.
pub type Words = ArrayVec<u64, LONGEST>;

tench_protocol::codes! {
    /// Why words are not a valid message.
    pub enum Malformed {
        /// The message has too few words.
        TooShort = 1, "a message between monitors is too short";
        /// The message has too many words.
        TooLong = 2, "a message between monitors is too long";
        /// The label has more than 48 bits.
        Label = 3, "a label has more than 48 bits";
        /// The requesting process is not of the sending core.
        Process = 4, "a process that asks is none of that core";
        /// The server's number is too high.
        Service = 5, "there is no server of that number";
        /// The outcome is unknown.
        Outcome = 7, "no such outcome of a request";
        /// The position is too high.
        Index = 8, "there is no request of that number";
        /// The process in question is not of the addressed core.
        Core = 9, "a process in question is none of this core";
        /// The badge has an unknown power.
        Power = 10, "there is no such power";
        /// There are too many capabilities, or a description is invalid.
        Capability = 11, "a capability in a message between monitors is none";
        /// The signal has no bits.
        Signal = 12, "a signal has no bits";
        /// The priority is too high.
        Ceiling = 13, "there is no such priority";
        /// The event's operation is unknown.
        Event = 14, "there is no such event between monitors";
    }
}

tench_protocol::codes! {
    /// The outcome of a request.
    pub enum Outcome {
        /// The request has a reply, which follows.
        Replied = 0;
        /// The server was restarted.
        Restarted = 1;
        /// The server or the requester has ended.
        Gone = 2;
        /// The reply had capabilities that cannot be sent, or not now.
        Capabilities = 3;
        /// Too many requests wait.
        Busy = 4;
        /// The request was invalid; the reason follows, as a [`Malformed`].
        Malformed = 5;
        /// The request was refused; the reason follows, as an error of the monitor's interface.
        Refused = 6;
        /// The target was revoked, before or meanwhile.
        Revoked = 7;
    }
}

/// Splits words into the first `N` and the rest, of which there may be at most `most`.
pub(crate) fn split<const N: usize>(words: &[u64], most: usize) -> Result<([u64; N], &[u64]), Malformed> {
    let (head, rest) = words.split_first_chunk().ok_or(Malformed::TooShort)?;
    if rest.len() > most { Err(Malformed::TooLong) } else { Ok((*head, rest)) }
}

/// The target of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The server of this number (the servers that run on the first core only, in the order of the system description),
    /// called with this badge of a process; or with badge 0 by that core's process server, which may act for all of its
    /// processes.
    Server(u64, u64),
    /// The object [held](crate::transfer::proxies) under a number, called with a badge or 0.
    Held(u64, u64),
}

/// A forwarded request of a process, to a server or an endpoint of another core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward<'a> {
    /// The target.
    pub to: Target,
    /// Set if no reply is expected.
    pub is_one_way: bool,
    /// Label of the forwarded message.
    pub label: u64,
    /// Capabilities of the forwarded message.
    pub caps: Capabilities,
    /// Words of the forwarded message.
    pub words: &'a [u64],
}

impl<'a> Forward<'a> {
    /// Returns the request's words.
    pub fn encode(&self) -> Words {
        let (target, badge) = match self.to {
            Target::Server(server, process) => (server, process),
            Target::Held(number, badge) => (number | HELD, badge),
        };
        let target = if self.is_one_way { target | ONE_WAY } else { target };
        [target, badge].into_iter().chain(body(self.label, &self.caps, self.words)).collect()
    }

    /// Returns the request in words that have come from a core.
    pub fn decode(words: &'a [u64], from: u64) -> Result<Forward<'a>, Malformed> {
        let ([target, badge, label], rest) = split::<HEAD>(words, 2 * MAX_CAPS + MAX_WORDS)?;
        let (is_one_way, target) = (target & ONE_WAY != 0, target & !ONE_WAY);
        let to = if target & HELD != 0 { Target::Held(target & !HELD, badge) } else { Target::Server(target, badge) };
        if let Target::Server(server, process) = to {
            if server >= MAX_SERVICES {
                return Err(Malformed::Service);
            }
            if process != 0 {
                decode_badge(process, from)?;
            }
        }
        let (label, caps, words) = decode_body(label, rest)?;
        Ok(Forward { to, is_one_way, label, caps, words })
    }
}

/// Returns whether a forwarded request is for what the other core holds under a number.
pub fn is_for(words: &[u64], number: u64) -> bool {
    words.first().is_some_and(|target| target & !ONE_WAY == number | HELD)
}

/// Returns the capabilities of a forwarded request, from whatever core.
pub fn capabilities(words: &[u64]) -> Result<Capabilities, Malformed> {
    let ([_, _, label], rest) = split::<HEAD>(words, 2 * MAX_CAPS + MAX_WORDS)?;
    decode_body(label, rest).map(|(_, caps, _)| caps)
}

/// Returns a label with the number of capabilities above it, the capabilities, and words.
fn body<'a>(label: u64, caps: &'a [Carried], words: &'a [u64]) -> impl Iterator<Item = u64> + 'a {
    let head = label | (caps.len().min(MAX_CAPS) as u64) << Tag::LABEL_BITS;
    let caps = caps.iter().take(MAX_CAPS).flat_map(Carried::encode);
    core::iter::once(head).chain(caps).chain(words.iter().copied().take(MAX_WORDS))
}

/// Splits a message body into its label, capabilities and words.
fn decode_body(head: u64, rest: &[u64]) -> Result<(u64, Capabilities, &[u64]), Malformed> {
    let (count, label) = (head >> Tag::LABEL_BITS, head & ((1 << Tag::LABEL_BITS) - 1));
    let count = usize::try_from(count).ok().filter(|count| *count <= MAX_CAPS).ok_or(Malformed::Label)?;
    let (caps, words) = rest.split_at_checked(2 * count).ok_or(Malformed::TooShort)?;
    if words.len() > MAX_WORDS {
        return Err(Malformed::TooLong);
    }
    let caps = caps.as_chunks().0.iter().map(|words| Carried::decode(*words)).collect::<Result<_, _>>()?;
    Ok((label, caps, words))
}

/// Returns the reply to a forwarded request: a label, capabilities and words.
pub fn encode_reply(label: u64, caps: &[Carried], words: &[u64]) -> Words {
    core::iter::once(Outcome::Replied as u64).chain(body(label, caps, words)).collect()
}

/// Returns a reply that is only an outcome, with one word of detail.
pub fn ended(outcome: Outcome, detail: u64) -> Words {
    [outcome as u64, detail].into_iter().collect()
}

/// The reply to a forwarded request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    /// A label, capabilities and words.
    Message(u64, Capabilities, &'a [u64]),
    /// An outcome without reply, with one word of detail.
    Ended(Outcome, u64),
}

/// Decodes the reply to a forwarded request.
pub fn decode_reply(words: &[u64]) -> Result<Reply<'_>, Malformed> {
    let ([outcome, detail], rest) = split::<2>(words, 2 * MAX_CAPS + MAX_WORDS)?;
    match Outcome::from_code(outcome).ok_or(Malformed::Outcome)? {
        Outcome::Replied => decode_body(detail, rest).map(|(label, caps, words)| Reply::Message(label, caps, words)),
        _ if !rest.is_empty() => Err(Malformed::TooLong),
        outcome => Ok(Reply::Ended(outcome, detail)),
    }
}

/// Decodes the reply to any other request: an outcome, and its words.
pub fn decode_result(words: &[u64]) -> Result<(Outcome, &[u64]), Malformed> {
    let ([outcome], rest) = split::<1>(words, MAX_WORDS)?;
    Ok((Outcome::from_code(outcome).ok_or(Malformed::Outcome)?, rest))
}

/// An event that a monitor sends, other than the lines about capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The monitor has started.
    Hello,
    /// The request with this index is cancelled.
    Cancel(usize),
    /// The object of this number is no longer needed.
    Release(u64),
    /// The notification of this number is signalled with these bits.
    Signal(u64, u64),
    /// The monitor asks for a sign of life.
    Alive,
    /// The sign of life.
    Here,
}

impl Event {
    /// Decodes an event's operation and words.
    ///
    /// # Errors
    /// No monitor sends that.
    pub fn decode(operation: u16, words: &[u64]) -> Result<Event, Malformed> {
        Ok(match operation {
            operation::HELLO => Event::Hello,
            operation::CANCEL => Event::Cancel(decode_index(words)?),
            operation::RELEASE => Event::Release(decode_number(words)?),
            operation::SIGNAL => {
                let (number, bits) = decode_signal(words)?;
                Event::Signal(number, bits)
            }
            operation::ALIVE => Event::Alive,
            operation::HERE => Event::Here,
            _ => return Err(Malformed::Event),
        })
    }
}

/// Decodes the number that is no longer needed.
fn decode_number(words: &[u64]) -> Result<u64, Malformed> {
    let ([number], _) = split::<1>(words, 0)?;
    Ok(number)
}

/// Decodes the number of the signalled notification, and the bits.
fn decode_signal(words: &[u64]) -> Result<(u64, u64), Malformed> {
    let ([number, bits], _) = split::<2>(words, 0)?;
    if bits == 0 { Err(Malformed::Signal) } else { Ok((number, bits)) }
}

/// Decodes the badge of the requesting process, which is of core `from`, and the highest priority that it may assign.
pub fn decode_requester(words: &[u64], from: u64) -> Result<(u64, u8), Malformed> {
    let ([badge, ceiling], _) = split::<2>(words, 0)?;
    let (requester, powers) = decode_badge(badge, from)?;
    Ok((requester.badge(powers), decode_ceiling(ceiling)?))
}

/// Decodes the highest priority that a process may assign.
fn decode_ceiling(ceiling: u64) -> Result<u8, Malformed> {
    u8::try_from(ceiling).map_err(|_| Malformed::Ceiling)
}

/// Decodes a badge of a process of core `core`, and its powers.
fn decode_badge(badge: u64, core: u64) -> Result<(Client, Powers), Malformed> {
    let client = Client::of_badge(badge);
    let (of, number) = split_pid(client.process);
    let powers = Powers::of_badge(badge);
    if of != core || number == 0 {
        return Err(Malformed::Process);
    }
    if Powers::all().contains(powers) { Ok((client, powers)) } else { Err(Malformed::Power) }
}

/// Decodes the position of the cancelled request.
fn decode_index(words: &[u64]) -> Result<usize, Malformed> {
    let ([index], _) = split::<1>(words, 0)?;
    usize::try_from(index).ok().filter(|index| *index < tench_channel::MOST as usize).ok_or(Malformed::Index)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use tench_abi::Rights;
    use tench_abi::power::{OBJECT, family_of};
    use tench_random::Random;

    use super::carried::{ObjectClass, Server};
    use super::*;

    /// Returns capabilities of each kind.
    fn carried() -> impl Iterator<Item = Carried> {
        let rights = Rights::WRITE | Rights::CALL;
        let server = Some(Server { number: 63, is_personal: true });
        let held = [(true, None), (false, server), (false, Some(Server { number: 0, is_personal: false }))];
        let class = ObjectClass::Endpoint;
        let held = held.map(|(is_plain, server)| Carried::Held { class, number: 5, rights, is_plain, server });
        let returned = Carried::Returned { number: (1 << 48) - 1, rights: Rights::WRITE, badge: u64::MAX };
        let (class, rights) = (ObjectClass::Notification, Rights::WRITE);
        let signalled = Carried::Held { class, number: 6, rights, is_plain: true, server: None };
        [returned, signalled].into_iter().chain(held)
    }

    #[test]
    fn messages_arrive_as_they_were_sent() {
        let words: Vec<u64> = (0..64).collect();
        for length in [0, 1, 8, 63, 64] {
            for (count, to) in [
                (0, Target::Server(3, 2 << 32 | 77)),
                (0, Target::Server(3, Powers::all().badge(2 << 32 | 77))),
                (2, Target::Held(1, 0)),
                (4, Target::Held(77, u64::MAX)),
                (1, Target::Held(0, 0)),
            ] {
                let caps: Capabilities = carried().take(count).collect();
                let is_one_way = length % 2 == 1;
                let forward =
                    Forward { to, is_one_way, label: (1 << 48) - 1, caps: caps.clone(), words: &words[..length] };
                assert_eq!(Forward::decode(&forward.clone().encode(), 2), Ok(forward));
                let reply = encode_reply(5, &caps, &words[..length]);
                assert_eq!(decode_reply(&reply), Ok(Reply::Message(5, caps, &words[..length])));
            }
        }
        assert_eq!(decode_reply(&ended(Outcome::Busy, 9)), Ok(Reply::Ended(Outcome::Busy, 9)));
    }

    #[test]
    fn words_that_are_no_message_are_refused_by_name() {
        assert_eq!(Forward::decode(&[1, 2], 1), Err(Malformed::TooShort));
        assert_eq!(Forward::decode(&[0; 68], 1), Err(Malformed::TooLong));
        assert_eq!(Forward::decode(&[0; 76], 1), Err(Malformed::TooLong));
        assert_eq!(Forward::decode(&[64, 0, 0], 1), Err(Malformed::Service));
        // The last two would be process 0, which has full authority, to a server.
        for process in [5, 2 << 32 | 5, u64::MAX, 1 << 32, Powers::all().badge(1 << 32)] {
            assert_eq!(Forward::decode(&[0, process, 0], 1), Err(Malformed::Process), "{process:#x}");
        }
        assert_eq!(Forward::decode(&[0, Powers::NAMES.badge(0), 0], 0), Err(Malformed::Process));
        assert_eq!(Forward::decode(&[0, 1 << 62 | 1 << 32 | 5, 0], 1), Err(Malformed::Power));
        assert_eq!(Forward::decode(&[0, 0, 5 << 48], 1), Err(Malformed::Label));
        assert_eq!(Forward::decode(&[0, 0, 1 << 48, 0], 1), Err(Malformed::TooShort));
        // Unknown kinds, rights and server; a badge of an unknown server; memory with rights; a notification that is
        // called, and one of a server's.
        for words in [
            [7 << 56, 0],
            [4 << 56, 1],
            [4 << 56 | 2 << 48, 0],
            [1 << 56 | 1 << 48, 0],
            [1 << 56 | 16 << 48, 0],
            [2 << 56, 0x101],
            [1 << 56, 2 << 16 | 1],
            [5 << 56 | u64::from(Rights::CALL.bits()) << 48, 0],
            [6 << 56, 1],
        ] {
            let message = [0, 0, 1 << 48, words[0], words[1]];
            assert_eq!(Forward::decode(&message, 1), Err(Malformed::Capability), "{words:x?}");
        }
        assert_eq!(decode_reply(&[0]), Err(Malformed::TooShort));
        assert_eq!(decode_reply(&[8, 0]), Err(Malformed::Outcome));
        assert_eq!(decode_reply(&[0, u64::MAX]), Err(Malformed::Label));
        assert_eq!(decode_reply(&[4, 0, 0]), Err(Malformed::TooLong));
        assert_eq!(decode_reply(&[0; 67]), Err(Malformed::TooLong));
        assert_eq!(decode_reply(&[0; 75]), Err(Malformed::TooLong));
        let requester = 2 << 32 | 5;
        assert_eq!(decode_requester(&[requester, 50], 2), Ok((requester, 50)));
        let client = Client { process: requester, family: family_of(2, 7) };
        let badge = client.badge(Powers::FILES);
        assert_eq!(decode_requester(&[badge, 255], 2), Ok((badge, 255)));
        assert_eq!(decode_requester(&[requester, 256], 2), Err(Malformed::Ceiling));
        assert_eq!(decode_requester(&[OBJECT | requester, 0], 2), Err(Malformed::Process));
        assert_eq!(decode_requester(&[requester, 0], 1), Err(Malformed::Process));
        assert_eq!(decode_requester(&[1 << 63 | requester, 0], 2), Err(Malformed::Power));
        assert_eq!(
            (
                decode_requester(&[2 << 32, 0], 2),
                decode_requester(&[requester, 0, 0], 2),
                decode_requester(&[requester], 2)
            ),
            (Err(Malformed::Process), Err(Malformed::TooLong), Err(Malformed::TooShort))
        );
        assert_eq!((decode_number(&[7]), decode_number(&[])), (Ok(7), Err(Malformed::TooShort)));
        assert_eq!((decode_signal(&[7, 5]), decode_signal(&[7])), (Ok((7, 5)), Err(Malformed::TooShort)));
        assert_eq!(
            (decode_signal(&[7, 0]), decode_signal(&[7, 1, 0])),
            (Err(Malformed::Signal), Err(Malformed::TooLong))
        );
        assert_eq!((decode_index(&[63]), decode_index(&[64])), (Ok(63), Err(Malformed::Index)));
        assert_eq!((decode_index(&[]), decode_index(&[1, 1])), (Err(Malformed::TooShort), Err(Malformed::TooLong)));
    }

    /// A requester that is refused on another core gets the same text as on its own, for every error that has a name
    /// here.
    #[test]
    fn errors_say_the_same_on_every_core() {
        use tench_monitor_interface::protocol::Error;
        use tench_procs_interface::protocol::Error as ProcsError;

        let pairs = [
            (Error::WrongState, ProcsError::WrongState),
            (Error::OutOfMemory, ProcsError::OutOfMemory),
            (Error::NotAllowed, ProcsError::NotAllowed),
        ];
        assert!(pairs.iter().all(|(here, there)| here.text() == there.text()));
    }

    /// Any words that a hostile monitor could send are refused, or decode to a message that encodes to the same
    /// meaning.
    #[test]
    fn any_words_are_a_message_or_refused() {
        let mut numbers = Random::new(1);
        let mut random = || numbers.next() >> 20;
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
            assert!(
                forward.is_ok_and(|forward| forward.encode()[..] == words[..]) || Forward::decode(&words, 1).is_err()
            );
            count(decode_reply(&words).is_ok());
            count(decode_result(&words).is_ok());
        }
        assert!(accepted > 1000 && refused > 1000, "{accepted} accepted, {refused} refused");
    }
}
