//! What was asked of another core, and what it asks.

use alloc::boxed::Box;
use alloc::vec::Vec;

use tench_channel::Request as Number;
use tench_monitor::about::{About, Operation};
use tench_monitor::exchange::line::{Admission, Growth, operation as exchange};
use tench_monitor::message::{Forward, Outcome, Words, decode_asker, ended, operation};
use tench_monitor_client::protocol::{Error, first};
use tench_places::{Client, Places};
use tench_protocol::{Given, Pending, Port, Sent};
use tench_sys::{Cap, Endpoint, Instant};

use crate::capabilities::{self, Books, Gift, Task, Work};
use crate::channel::IN_FLIGHT;
use crate::desk::{Asker, Desk, malformed};
use crate::endpoints::Endpoints;
use crate::forward::Waiting;
use crate::slots::discard;

/// What was asked of another core. It is small, because it is moved with each request and each answer.
pub enum Asked {
    /// Whether it answers; since when, and who is answered, if somebody is.
    Ping(Instant, Option<Pending<u64, Error>>),
    /// Something about processes, by whom; whether it waits for the end of one; and who is answered, if somebody is.
    Processes(u64, bool, Option<Asker>),
    /// Something of a server there.
    Forward(Waiting),
    /// Its process server, for this process, if it could be kept.
    Endpoint(Client, Option<Pending<ToProcesses, Error>>),
    /// Whether a process there takes what somebody here sends.
    Gift(Box<Gift>),
}

/// What a core was asked and has not answered, at the places of the requests in the channel. The channel lets in only
/// answers to what is in flight, so what is at the place of an answer is what it answers, or nothing if nobody waits
/// any more.
pub struct Table {
    /// As many as can be in flight, from the first request on.
    places: Vec<Option<Asked>>,
    count: usize,
}

impl Table {
    /// Nothing was asked.
    pub const fn new() -> Table {
        Table { places: Vec::new(), count: 0 }
    }

    /// How many.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether nobody waits for an answer.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// To be called before something is asked. Errors: `OutOfMemory`.
    #[inline]
    pub fn make_room(&mut self) -> Result<(), Error> {
        if self.places.is_empty() { self.make_places() } else { Ok(()) }
    }

    #[cold]
    fn make_places(&mut self) -> Result<(), Error> {
        self.places.try_reserve_exact(IN_FLIGHT as usize).map_err(|_| Error::OutOfMemory)?;
        self.places.resize_with(IN_FLIGHT as usize, || None);
        Ok(())
    }

    /// Keeps what was asked until it is answered.
    #[inline]
    pub fn put(&mut self, number: Number, asked: Asked) {
        // There is such a place: no channel has more.
        if let Some(place) = self.places.get_mut(number.place()) {
            self.count += usize::from(place.is_none());
            *place = Some(asked);
        }
    }

    /// Takes out what was answered, unless nobody waits for it any more.
    #[inline]
    pub fn take(&mut self, number: Number) -> Option<Asked> {
        let asked = self.places.get_mut(number.place())?.take()?;
        self.count -= 1;
        Some(asked)
    }

    /// Everything, with its place.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut Asked)> {
        (0..).zip(&mut self.places).filter_map(|(place, asked)| Some((place, asked.as_mut()?)))
    }

    /// Takes everything out.
    pub fn drain(&mut self) -> impl Iterator<Item = Asked> {
        self.count = 0;
        self.places.iter_mut().filter_map(Option::take)
    }
}

/// The capability to a process server.
pub type ToProcesses = Sent<Endpoint, Given>;

/// Carries out a request of another core: answers it at once, or hands it to somebody who does later.
pub fn carry_out(
    core: u64,
    number: Number,
    words: &[u64],
    desk: &mut Desk,
    endpoints: &mut Endpoints,
    books: &mut Books,
) -> Option<Words> {
    let at_once = |why| (why, 0);
    let accepted = match number.operation() {
        operation::PING => return Some(Words::new()),
        operation::FORWARD => Forward::decode(words, core)
            .map_err(malformed)
            .and_then(|forward| endpoints.request(core, &forward, books))
            .and_then(|request| desk.serve(core, number, request).map_err(at_once)),
        operation::PROCESSES => decode_asker(words, core)
            .map_err(malformed)
            .and_then(|(badge, ceiling)| desk.admit(core, number, badge, ceiling).map_err(at_once)),
        exchange::ADMIT => Admission::decode(words, core, desk.core).map_err(malformed).and_then(|admission| {
            let task = capabilities::look(books, first(core) | admission.asker, admission.process);
            desk.work(Work::There(core, number, admission), task).map_err(|_| (Outcome::Busy, 0))
        }),
        exchange::GROW => Growth::decode(words)
            .map_err(malformed)
            .and_then(|growth| desk.work(Work::Gift(core, number), Task::Take(growth)).map_err(|_| (Outcome::Busy, 0))),
        other => match Operation::from_code(u64::from(other)) {
            Some(operation) => About::decode(operation, words, core, desk.core)
                .map_err(malformed)
                .and_then(|about| desk.ask_for(core, number, about).map_err(at_once)),
            None => Err((Outcome::Malformed, 0)),
        },
    };
    accepted.err().map(|(outcome, about)| ended(outcome, about))
}

impl Asked {
    /// It was answered.
    pub fn finish(
        self,
        from: u64,
        words: &[u64],
        places: &mut Places,
        endpoints: &mut Endpoints,
        books: &mut Books,
        port: &mut Port,
    ) {
        match self {
            Asked::Ping(since, pending) => {
                let passed = Instant::now().ticks() - since.ticks();
                pending.into_iter().for_each(|pending| port.finish(pending, &Ok(passed)));
            }
            Asked::Processes(process, waits, asker) => {
                if waits {
                    places.give_back(process);
                }
                if let Some(asker) = asker {
                    asker.finish(port, words);
                }
            }
            Asked::Forward(waiting) => endpoints.finish(waiting, from, words, books),
            Asked::Endpoint(asker, pending) => {
                let made = endpoints.made(words, from, asker);
                if let Some(pending) = pending {
                    // At once: whoever has gone, or has no slot for it, leaves it here. Nobody else is to be told.
                    let _ = port.replies.answer(pending, &made.map(|slot| Sent::new(Cap::new(slot))));
                }
                made.iter().for_each(|slot| discard(&[*slot]));
            }
            Asked::Gift(gift) => gift.admitted(books, words),
        }
    }

    /// It will not be answered.
    pub fn refuse(
        self,
        why: Error,
        places: &mut Places,
        endpoints: &mut Endpoints,
        books: &mut Books,
        port: &mut Port,
    ) {
        match self {
            Asked::Ping(_, pending) => pending.into_iter().for_each(|pending| port.finish(pending, &Err(why))),
            Asked::Processes(..) => {
                self.finish(0, &ended(Outcome::Refused, why as u64), places, endpoints, books, port);
            }
            Asked::Forward(waiting) => endpoints.refuse(waiting),
            Asked::Endpoint(_, pending) => {
                pending.into_iter().for_each(|pending| port.finish(pending, &Err(why)));
            }
            Asked::Gift(gift) => gift.refuse(books, why),
        }
    }
}
