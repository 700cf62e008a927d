//! Requests to another core, and requests from it.

use alloc::boxed::Box;
use alloc::vec::Vec;

use tench_channel::Request as Number;
use tench_monitor::message::line::{Admission, Growth, operation as exchange};
use tench_monitor::message::{Forward, Outcome, Words, decode_requester, ended, operation};
use tench_monitor_interface::protocol::{Error, pid_base};
use tench_protocol::{Given, Pending, Port, Replies, Sent};
use tench_quota::Client;
use tench_sys::{Cap, Endpoint, Instant};

use crate::cores::channel::IN_FLIGHT;
use crate::requests::dispatcher::{Requester, malformed, refusal};
use crate::requests::forward::Waiting;
use crate::slots::discard;
use crate::transfer::capabilities::TransferRequest;
use crate::transfer::home::Home;
use crate::transfer::tasks::{self, Task, Work};

/// A request to another core. The type is small, because it is moved with each request and each reply.
pub enum Asked {
    /// A ping: its start, and the requester that gets the reply.
    Ping(Instant, Pending<u64, Error>),
    /// A request to the other monitor itself, for the requester that gets the words of its reply.
    Words(Requester),
    /// A request to a server there.
    Forward(Waiting),
    /// A request for the core's process server, for this process.
    Endpoint(Client, Pending<Sent<Endpoint, Given>, Error>),
    /// A request for a reservation for a transfer.
    Transfer(Box<TransferRequest>),
}

/// Requests to a core without replies, at their positions in the channel. The channel accepts only replies to requests
/// in flight, so the entry at a reply's position is its request, or empty if the reply is no longer awaited.
pub struct Table {
    /// From the first request on, as many entries as requests can be in flight.
    entries: Vec<Option<Asked>>,
    count: usize,
}

impl Table {
    /// Returns an empty table.
    pub const fn new() -> Table {
        Table { entries: Vec::new(), count: 0 }
    }

    /// Returns whether no reply is awaited.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Allocates the table; called before a request is sent. Fails with `OutOfMemory`.
    #[inline]
    pub fn ensure_capacity(&mut self) -> Result<(), Error> {
        if self.entries.is_empty() { self.allocate() } else { Ok(()) }
    }

    #[cold]
    fn allocate(&mut self) -> Result<(), Error> {
        self.entries.try_reserve_exact(IN_FLIGHT as usize).map_err(|_| Error::OutOfMemory)?;
        self.entries.resize_with(IN_FLIGHT as usize, || None);
        Ok(())
    }

    /// Stores a request until its reply comes.
    #[inline]
    pub fn put(&mut self, number: Number, asked: Asked) {
        // The entry exists: no channel has more positions.
        if let Some(entry) = self.entries.get_mut(number.index()) {
            self.count += usize::from(entry.is_none());
            *entry = Some(asked);
        }
    }

    /// Removes the request of a reply, unless that is no longer awaited.
    #[inline]
    pub fn take(&mut self, number: Number) -> Option<Asked> {
        let asked = self.entries.get_mut(number.index())?.take()?;
        self.count -= 1;
        Some(asked)
    }

    /// Returns all requests, with their positions.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut Asked)> {
        (0..).zip(&mut self.entries).filter_map(|(index, asked)| Some((index, asked.as_mut()?)))
    }

    /// Removes all requests.
    pub fn drain(&mut self) -> impl Iterator<Item = Asked> {
        self.count = 0;
        self.entries.iter_mut().filter_map(Option::take)
    }
}

/// Carries out a request of another core: replies at once, or passes it to a worker, which replies later.
pub fn carry_out(core: u64, number: Number, words: &[u64], home: &mut Home) -> Option<Words> {
    let at_once = |why| (why, 0);
    let accepted = match number.operation() {
        operation::PING => return Some(Words::new()),
        operation::FORWARD => Forward::decode(words, core)
            .map_err(malformed)
            .and_then(|forward| home.endpoints.request(core, &forward, &mut home.ledger))
            .and_then(|request| home.dispatcher.serve(core, number, request).map_err(at_once)),
        operation::PROCESSES => decode_requester(words, core)
            .map_err(malformed)
            .and_then(|(badge, ceiling)| home.dispatcher.admit(core, number, badge, ceiling).map_err(at_once)),
        exchange::ADMIT => {
            Admission::decode(words, core, home.dispatcher.core).map_err(malformed).and_then(|admission| {
                let task = tasks::look(&home.ledger, pid_base(core) | admission.requester, admission.process);
                home.dispatcher.work(Work::There(core, number, admission), task).map_err(|_| (Outcome::Busy, 0))
            })
        }
        exchange::GROW => Growth::decode(words).map_err(malformed).and_then(|growth| {
            home.dispatcher.work(Work::MemoryGrant(core, number), Task::Take(growth)).map_err(|_| (Outcome::Busy, 0))
        }),
        operation::MEMORY if words.is_empty() => home.dispatcher.memory_for(core, number).map_err(at_once),
        _ => Err((Outcome::Malformed, 0)),
    };
    accepted.err().map(|(outcome, detail)| ended(outcome, detail))
}

impl Asked {
    /// Returns the program that waits for a forwarded request's reply.
    pub const fn waiting(&self) -> Option<&Waiting> {
        match self {
            Asked::Forward(waiting) => Some(waiting),
            _ => None,
        }
    }

    /// Makes the requester current again, because its request, just received, was not sent: the refusal is its reply.
    pub fn return_requester(self, replies: &mut Replies) {
        match self {
            Asked::Ping(_, pending) => replies.make_current(pending),
            Asked::Words(requester) => replies.make_current(requester),
            Asked::Endpoint(_, pending) => replies.make_current(pending),
            // These are not sent while the requester's request is being handled.
            Asked::Forward(_) | Asked::Transfer(_) => {}
        }
    }

    /// Handles a reply.
    pub fn finish(self, from: u64, words: &[u64], home: &mut Home, port: &mut Port) {
        match self {
            Asked::Ping(since, pending) => {
                let passed = Instant::now().ticks() - since.ticks();
                port.finish(pending, &Ok(passed));
            }
            Asked::Words(requester) => port.finish_waiter(requester, words),
            Asked::Forward(waiting) => home.endpoints.finish(waiting, from, words, &mut home.ledger),
            Asked::Endpoint(requester, pending) => {
                let made = home.endpoints.made(words, from, requester);
                // This reply is sent at once: if the requester has gone or has no slot, the capability stays here, and
                // no other core need be told.
                let _ = port.replies.send(pending, &made.map(|slot| Sent::new(Cap::new(slot))));
                made.iter().for_each(|slot| discard(&[*slot]));
            }
            Asked::Transfer(request) => request.admitted(&mut home.ledger, words),
        }
    }

    /// Handles that there will be no reply.
    pub fn refuse(self, why: Error, home: &mut Home, port: &mut Port) {
        match self {
            Asked::Ping(_, pending) => port.finish(pending, &Err(why)),
            Asked::Words(requester) => port.finish_waiter(requester, &refusal(why)),
            Asked::Forward(waiting) => home.endpoints.refuse(waiting),
            Asked::Endpoint(_, pending) => port.finish(pending, &Err(why)),
            Asked::Transfer(request) => request.refuse(&mut home.ledger, why),
        }
    }
}
