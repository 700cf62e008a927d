//! An interface with every feature of interfaces, tested from the client through a message to the server and back.

#![allow(clippy::type_complexity, reason = "a method returns what it returns")]

use std::cell::RefCell;

use tench_protocol::sys::{Cap, CapAddress, Endpoint, Error as KernelError, Message, Notification, Received};
use tench_protocol::{
    Any, Arrived, Bytes, Caller, Context, Factory, Failure, Flow, Given, Later, List, Pending, Rejection, Replies,
    Sent, Text, Transport, Words, interface, transport,
};

tench_protocol::codes! {
    /// Reasons for which a request was refused.
    pub enum Error {
        /// A reason.
        No = 1, "no";
        /// Another reason.
        Never = 2, "never";
    }
}

/// A pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Words)]
pub struct Pair {
    left: u8,
    right: i64,
}

/// A service with a method for every feature.
#[interface(client = Everything, version = 3)]
pub trait EverythingService {
    /// Replies the sum.
    #[method(1)]
    fn add(&mut self, left: u32, right: u32) -> Result<u64, Error>;
    /// Replies the pair with its parts exchanged.
    #[method(2)]
    fn turn(&mut self, pair: Pair, twice: bool) -> Result<(Pair, bool), Error>;
    /// Replies many words.
    #[method(3)]
    fn many(&mut self, words: [u64; 12]) -> Result<[u64; 12], Error>;
    /// Replies text.
    #[method(4)]
    fn echo(&mut self, text: Text<'_, 100>, bytes: Bytes<'_, 100>) -> Result<(Text<'_, 100>, Bytes<'_, 100>), Error>;
    /// Replies a list.
    #[method(5)]
    fn list(&mut self, pairs: List<Pair, 20>) -> Result<List<Pair, 20>, Error>;
    /// Replies the caller.
    #[method(6)]
    fn caller(&mut self, caller: Caller) -> Result<u64, Error>;
    /// Replies only to callers without a badge.
    #[method(7, authority)]
    fn secret(&mut self) -> Result<(), Error>;
    /// Replies later, or now.
    #[method(8)]
    fn wait(&mut self, later: Later<'_, u64, Error>, now: bool) -> Result<Option<u64>, Error>;
    /// Sends a capability each way.
    #[method(9)]
    fn exchange(
        &mut self,
        any: Arrived<'_, Any>,
        given: Arrived<'_, Any, Given>,
    ) -> Result<(u64, Sent<Endpoint>, Sent<Notification, Given>), Error>;
    /// Fails with the given error.
    #[method(10)]
    fn refuse(&mut self, error: Error) -> Result<u64, Error>;
}

#[derive(Default)]
struct Server {
    text: String,
    bytes: Vec<u8>,
    calls: usize,
    waiting: Vec<Pending<u64, Error>>,
}

impl EverythingService for Server {
    fn add(&mut self, left: u32, right: u32) -> Result<u64, Error> {
        self.calls += 1;
        Ok(u64::from(left) + u64::from(right))
    }

    fn turn(&mut self, pair: Pair, twice: bool) -> Result<(Pair, bool), Error> {
        self.calls += 1;
        Ok((Pair { left: pair.left.wrapping_neg(), right: -pair.right }, !twice))
    }

    fn many(&mut self, words: [u64; 12]) -> Result<[u64; 12], Error> {
        self.calls += 1;
        Ok(words.map(|word| !word))
    }

    fn echo(&mut self, text: Text<'_, 100>, bytes: Bytes<'_, 100>) -> Result<(Text<'_, 100>, Bytes<'_, 100>), Error> {
        self.calls += 1;
        self.text = text.to_uppercase();
        self.bytes = bytes.iter().rev().copied().collect();
        Ok((Text::new(&self.text).ok_or(Error::No)?, Bytes::first_of(&self.bytes)))
    }

    fn list(&mut self, pairs: List<Pair, 20>) -> Result<List<Pair, 20>, Error> {
        self.calls += 1;
        Ok(pairs.into_iter().rev().collect())
    }

    fn caller(&mut self, caller: Caller) -> Result<u64, Error> {
        self.calls += 1;
        Ok(caller.process)
    }

    fn secret(&mut self) -> Result<(), Error> {
        self.calls += 1;
        Ok(())
    }

    fn wait(&mut self, later: Later<'_, u64, Error>, now: bool) -> Result<Option<u64>, Error> {
        self.calls += 1;
        if now {
            return Ok(Some(1));
        }
        self.waiting.push(later.keep().map_err(|_| Error::No)?);
        Ok(None)
    }

    fn exchange(
        &mut self,
        any: Arrived<'_, Any>,
        given: Arrived<'_, Any, Given>,
    ) -> Result<(u64, Sent<Endpoint>, Sent<Notification, Given>), Error> {
        self.calls += 1;
        let first = u64::from(any.cap().address().0);
        Ok((first, Sent::new(Cap::new(CapAddress(5))), Sent::new(Cap::new(given.keep().address()))))
    }

    fn refuse(&mut self, error: Error) -> Result<u64, Error> {
        self.calls += 1;
        Err(error)
    }
}

/// A server in the same process.
struct Here {
    server: Server,
    replies: Replies,
    caller: u64,
    kept: u8,
    /// Change made to the request on its way.
    disturb: fn(&mut Message),
}

impl Default for Here {
    fn default() -> Here {
        let replies = Replies::new(Cap::new(CapAddress(1)), Factory::NONE);
        Here { server: Server::default(), replies, caller: 9, kept: 0, disturb: |_| {} }
    }
}

impl Here {
    fn carry(&mut self, request: &Message) -> Result<Message, KernelError> {
        let mut request = request.clone();
        (self.disturb)(&mut request);
        let request = Received::from_message(&request, self.caller);
        let mut reply = Message::new(0);
        let mut context = Context::new(self.caller, &mut self.replies);
        let flow = Everything::dispatch(&mut self.server, &request, &mut context, &mut reply);
        self.kept = context.kept.get();
        if flow == Flow::Reply { Ok(reply) } else { Err(KernelError::Aborted) }
    }
}

/// The transport to the server.
#[derive(Clone, Copy)]
struct Way<'a>(&'a RefCell<Here>);

impl Transport for Way<'_> {
    fn call(self, request: &Message, _: &[CapAddress], reply: &mut Received) -> Result<(), KernelError> {
        *reply = Received::from_message(&self.0.borrow_mut().carry(request)?, 0);
        Ok(())
    }
}

#[test]
fn values_reach_the_server_and_come_back() {
    let here = RefCell::new(Here::default());
    let client = Everything::at(Way(&here));
    assert_eq!(client.add(u32::MAX, 1), Ok(1 << 32));
    assert_eq!(client.turn(Pair { left: 1, right: 2 }, true), Ok((Pair { left: 255, right: -2 }, false)));
    assert_eq!(client.many([7; 12]), Ok([!7; 12]));
    let (text, bytes) = client.echo("hé", &[1, 2, 3]).unwrap();
    assert_eq!((&*text, &*bytes), ("HÉ", [3, 2, 1].as_slice()));
    let pairs = [Pair { left: 1, right: 1 }, Pair { left: 2, right: 2 }];
    assert_eq!(client.list(&pairs).unwrap().as_slice(), [pairs[1], pairs[0]]);
    assert_eq!(client.caller(), Ok(9));
    assert_eq!(client.wait(true), Ok(1));
    assert_eq!(client.refuse(Error::Never), Err(Failure::Refused(Error::Never)));
    let (any, given) = (Cap::new(CapAddress(3)), Cap::new(CapAddress(4)));
    let (first, endpoint, notification) = client.exchange(any, given, CapAddress(20), CapAddress(21)).unwrap();
    assert_eq!((first, endpoint.address(), notification.address()), (3, CapAddress(5), CapAddress(4)));
    assert_eq!(here.borrow().kept, 0b10, "the second was kept");
}

#[test]
fn malformed_requests_do_not_reach_the_server() {
    let here = RefCell::new(Here::default());
    let client = Everything::at(Way(&here));
    assert_eq!(client.secret(), Err(Failure::Rejected(Rejection::NotAllowed)));
    assert_eq!(client.echo(&"x".repeat(101), &[]).unwrap_err(), Failure::TooLong);
    assert_eq!(client.list(&[Pair::default(); 21]).unwrap_err(), Failure::TooLong);
    let refused = |disturb, rejection| {
        here.borrow_mut().disturb = disturb;
        assert_eq!(client.add(1, 2), Err(Failure::Rejected(rejection)));
    };
    refused(|request| _ = request.push(0), Rejection::BadArguments);
    refused(|request| _ = request.copy_cap(CapAddress(1)), Rejection::BadArguments);
    refused(|request| *request = Message::with_words(request.label(), &[1]), Rejection::BadArguments);
    refused(|request| *request = Message::with_words(request.label(), &[1 << 32, 1]), Rejection::BadArguments);
    refused(|request| *request = Message::with_words(request.label() + 100, &[1, 2]), Rejection::NoSuchMethod);
    refused(|request| *request = Message::with_words(request.label() + (1 << 16), &[]), Rejection::OtherVersion(3));
    let number = Everything::INTERFACE;
    refused(
        |request| *request = Message::with_words(request.label() ^ 1 << 32, &[]),
        Rejection::OtherInterface(number),
    );
    assert_eq!(here.borrow().server.calls, 0);
    here.borrow_mut().caller = 0;
    here.borrow_mut().disturb = |_| {};
    assert_eq!(client.secret(), Ok(()));
}

#[test]
fn a_reply_foreign_to_the_interface_is_malformed() {
    assert_eq!(transport::check::<Error>(Message::new(0).tag(), || 0), Ok(()));
    assert_eq!(transport::check::<Error>(Message::new(1).tag(), || 0), Err(Failure::Refused(Error::No)));
    assert_eq!(transport::check::<Error>(Message::new(77).tag(), || 0), Err(Failure::Malformed));
}
