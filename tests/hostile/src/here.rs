//! A server in the same process, the path to it, and the checks of every message on that path.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::rc::Rc;

use tench_abi::message::{MAX_CAPS, MAX_WORDS};
use tench_protocol::{
    Attachments, Caller, Context, DONE, Factory, Failure, Flow, Memory, Powers, Rejection, Replies, Shares, Transport,
};
use tench_sys::{Cap, CapAddress, Error, Frame, Message, Received, Reply};

use crate::{Dice, Outcome, Probe, SHARED, Tape, kind_of};

/// Memory that client and server share.
#[derive(Debug)]
pub struct Plain(pub RefCell<Vec<u8>>);

impl Memory for Plain {
    fn size(&self) -> usize {
        self.0.borrow().len()
    }

    fn read(&self, offset: usize, to: &mut [u8]) {
        to.copy_from_slice(&self.0.borrow()[offset..offset + to.len()]);
    }

    fn write(&self, offset: usize, from: &[u8]) {
        self.0.borrow_mut()[offset..offset + from.len()].copy_from_slice(from);
    }
}

/// The memory, shared with every caller.
#[derive(Debug)]
struct Everybody(Rc<Plain>);

impl Attachments for Everybody {
    fn attach(&mut self, _: Caller, bytes: u64) -> Result<(Cap<Frame>, u64), Error> {
        if bytes <= SHARED as u64 {
            Ok((Cap::new(CapAddress(9)), u64::from(SHARED.ilog2())))
        } else {
            Err(Error::OutOfMemory)
        }
    }

    fn memory(&self, _: Caller) -> Option<&dyn Memory> {
        Some(&*self.0)
    }
}

/// The server.
struct Here<P> {
    shared: Rc<Plain>,
    tape: Tape,
    /// Dice that decide what happens to messages on their way; without them, messages are unchanged.
    hostile: Option<Dice>,
    replies: Replies,
    /// Badge of the capability that is used.
    badge: u64,
    probe: PhantomData<P>,
}

/// Returns a message as it arrives with a badge; the kernel refuses messages that are too long.
fn arrive(message: &Message, badge: u64) -> Result<Received, Error> {
    let (words, caps) = (message.tag().length(), message.tag().caps());
    if words > MAX_WORDS || caps > MAX_CAPS {
        return Err(Error::MessageTooLong);
    }
    Ok(Received::from_message(message, badge))
}

/// Returns a reply object without a kernel.
fn make() -> Result<Cap<Reply>, Error> {
    Ok(Cap::new(CapAddress(7)))
}

impl<P: Probe> Here<P> {
    fn new(tape: Dice, hostile: Option<Dice>) -> Here<P> {
        let replies = Replies::new(Cap::new(CapAddress(1)), Factory { make, delete: |_| {}, refuse: |_| {} });
        let shared = Rc::new(Plain(RefCell::new(vec![0; SHARED])));
        Here { shared, tape: Tape::new(tape), hostile, replies, badge: 0, probe: PhantomData }
    }

    /// Carries a request to the server and its reply back.
    fn carry(&mut self, request: &Message) -> Result<Received, Error> {
        let disturbed = self.on_the_way(request, 3);
        let (flow, reply) = self.serve(&arrive(&disturbed, self.badge)?);
        if flow == Flow::Later {
            return Err(Error::Aborted);
        }
        let reply = self.on_the_way(&reply, 1);
        arrive(&reply, 0)
    }

    /// Returns the message as it arrives: with hostile dice, it is disturbed in `quarters` of four cases.
    fn on_the_way(&mut self, message: &Message, quarters: usize) -> Message {
        match &mut self.hostile {
            Some(dice) => {
                if dice.below(4) < quarters {
                    dice.disturbed(message)
                } else {
                    message.clone()
                }
            }
            None => message.clone(),
        }
    }

    /// Serves one request and checks it and its reply.
    fn serve(&mut self, request: &Received) -> (Flow, Message) {
        self.tape.clear();
        let mut reply = Message::with_words(77, &[7, 7, 7]);
        let mut everybody = Everybody(self.shared.clone());
        let mut context = Context::new(self.badge, &mut self.replies);
        context.kind_of = kind_of;
        context.attachments = Some(&mut everybody);
        let flow = P::dispatch(&mut self.tape, request, &mut context, &mut reply);
        let kept = context.kept.get();
        assert_eq!(kept, self.tape.kept, "what the server keeps is what is kept");
        assert_eq!(kept >> request.caps().len(), 0, "nothing is kept that has not come");
        self.check(request, flow, &reply);
        (flow, reply)
    }

    /// Checks what must be true of every request and its reply.
    fn check(&mut self, request: &Received, flow: Flow, reply: &Message) {
        let method = P::METHODS.iter().find(|method| method.label == request.label());
        let label = reply.label();
        let received = arrive(reply, 0).expect("the reply can be sent");
        match self.tape.seen.as_slice() {
            [] => {
                assert_eq!(flow, Flow::Reply, "what nobody saw gets a reply");
                let rejection = Rejection::from_code(label, received.word(0)).expect("what nobody saw is rejected");
                assert_eq!((received.words().len(), received.caps().len()), (1, 0));
                match rejection {
                    Rejection::BadArguments => assert!(method.is_some()),
                    Rejection::NotAllowed => {
                        assert!(method.is_some_and(|method| !method.permits(self.badge)), "everybody may do this");
                    }
                    Rejection::OtherVersion(version) => assert!(method.is_none() && version == P::VERSION),
                    Rejection::NoSuchMethod | Rejection::OtherInterface(_) => assert!(method.is_none()),
                    Rejection::Busy => panic!("there are reply objects enough"),
                    Rejection::NotAttached | Rejection::NoBuffer => panic!("everybody shares memory"),
                    Rejection::OtherCore | Rejection::Unreachable => panic!("everybody is on this core"),
                }
            }
            [seen] => {
                let method = method.expect("only requests of the interface reach the server");
                let seen = Received::from_message(seen, 0);
                assert_eq!(seen.label(), request.label(), "the method that was asked for");
                // Bits behind a text in its last word are ignored.
                let mut words = request.words().to_vec();
                self.tape.tails.iter().for_each(|(word, bits)| words[*word] &= (1 << bits) - 1);
                assert_eq!(seen.words(), words, "every word is an argument's, or part of one");
                assert_eq!(seen.caps(), request.caps(), "all capabilities belong to arguments");
                assert!(method.permits(self.badge), "not everybody may do this");
                assert!(flow == Flow::Reply || method.later, "this gets a reply at once");
                assert!(flow == Flow::Later || label == DONE || P::is_error(label), "a reply of the interface");
                assert_eq!(flow == Flow::Reply, self.tape.reply.is_some(), "the server knows what becomes of it");
            }
            _ => panic!("one request was carried out twice"),
        }
    }
}

/// The path to the server.
struct Way<'h, P>(&'h RefCell<Here<P>>);

impl<P> Clone for Way<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Way<'_, P> {}

impl<P: Probe> Transport for Way<'_, P> {
    fn call(self, request: &Message, _: &[CapAddress], reply: &mut Received) -> Result<(), Error> {
        *reply = self.0.borrow_mut().carry(request)?;
        Ok(())
    }
}

impl<P: Probe> Shares for Way<'_, P> {
    fn share<T>(self, with: impl FnOnce(&dyn Memory) -> T) -> T {
        let shared = self.0.borrow().shared.clone();
        with(&*shared)
    }
}

/// Splits bytes into dice for client, server and path.
fn parts(bytes: &[u8]) -> [Dice; 3] {
    let third = bytes.len() / 3;
    [Dice::new(&bytes[..third]), Dice::new(&bytes[third..2 * third]), Dice::new(&bytes[2 * third..])]
}

/// Returns a badge: none, or that of a process with some, all, or no powers.
fn badge(dice: &mut Dice) -> u64 {
    let process = u64::from(dice.byte() % 4);
    let powers = match dice.byte() % 4 {
        _ if process == 0 => Powers::empty(),
        0 => Powers::empty(),
        1 => Powers::all(),
        _ => Powers::from_bits_truncate(u16::from_le_bytes([dice.byte(), dice.byte()])),
    };
    powers.badge(process)
}

/// Fails unless two messages have the same content.
fn assert_equal(one: &Message, other: &Message) {
    let (one, other) = (Received::from_message(one, 0), Received::from_message(other, 0));
    assert_eq!((one.label(), one.words(), one.caps()), (other.label(), other.words(), other.caps()));
}

/// Makes random requests until the bytes run out, and checks that they arrive as they were sent, and the replies as
/// they were made. Returns the labels of the methods that were reached.
pub fn round_trip<P: Probe>(bytes: &[u8]) -> BTreeSet<u64> {
    let [mut client, server, mut callers] = parts(bytes);
    let here = RefCell::new(Here::<P>::new(server, None));
    let mut reached = BTreeSet::new();
    while !client.is_done() {
        let method = P::METHODS[client.below(P::METHODS.len())];
        let badge = badge(&mut callers);
        here.borrow_mut().badge = badge;
        let (sent, outcome) = P::call(method.label, &mut client, Way(&here));
        let tape = &here.borrow().tape;
        if !method.permits(badge) {
            assert!(matches!(outcome, Outcome::Failed(Failure::Rejected(Rejection::NotAllowed))), "{outcome:?}");
            continue;
        }
        let [seen] = tape.seen.as_slice() else { panic!("{} was not reached: {outcome:?}", method.label) };
        assert_equal(seen, &sent);
        reached.insert(method.label);
        match (&tape.reply, &outcome) {
            (Some(reply), Outcome::Replied(got)) => assert_equal(reply, got),
            (Some(reply), Outcome::Failed(Failure::Refused(error))) => assert_eq!(reply.label(), *error),
            (None, Outcome::Failed(Failure::Lost(Error::Aborted))) => assert!(method.later),
            (reply, outcome) => panic!("{reply:?} became {outcome:?}"),
        }
    }
    reached
}

/// Sends random messages, and disturbed requests of the client; replies are disturbed too. Returns the number of
/// requests that have reached the server.
pub fn hostile<P: Probe>(bytes: &[u8]) -> usize {
    let [mut client, server, way] = parts(bytes);
    let here = RefCell::new(Here::<P>::new(server, Some(way)));
    let labels: Vec<u64> = P::METHODS.iter().map(|method| method.label).collect();
    let mut reached = 0;
    while !client.is_done() {
        let badge = badge(&mut client);
        here.borrow_mut().badge = badge;
        if client.byte().is_multiple_of(2) {
            let message = client.message(&labels);
            if let Ok(request) = arrive(&message, 0) {
                // The reply is checked there.
                let _ = here.borrow_mut().serve(&request);
            }
        } else {
            let label = labels[client.below(labels.len())];
            // Whatever the client makes of it, it does not panic.
            let _ = P::call(label, &mut client, Way(&here));
        }
        reached += here.borrow().tape.seen.len();
    }
    reached
}
