//! What was asked of another core, and what it asks.

use tench_channel::Request as Number;
use tench_monitor::about::{About, Operation};
use tench_monitor::exchange::line::{Admission, Growth, operation as exchange};
use tench_monitor::message::{Forward, Outcome, Words, answered, decode_asker, ended, operation};
use tench_monitor_client::protocol::{Error, first};
use tench_places::Places;
use tench_protocol::{Given, Pending, Port, Sent};
use tench_sys::{Cap, Endpoint, Instant};

use crate::capabilities::{self, Books, Gift, Task, Work};
use crate::desk::{Desk, Origin, malformed};
use crate::endpoints::Endpoints;
use crate::forward::Waiting;
use crate::slots::discard;

/// What was asked of another core.
pub enum Asked {
    /// Whether it answers; since when.
    Ping(Instant, Pending<u64, Error>),
    /// Something about processes, by whom; whether it waits for the end of one; and who is answered.
    Processes(u64, bool, Origin),
    /// Something of a server there.
    Forward(Waiting),
    /// Its process server, for this process, if it could be kept.
    Endpoint(u64, Option<Pending<ToProcesses, Error>>),
    /// Whether a process there takes what somebody here sends.
    Gift(Gift),
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
        operation::PROCESSES => {
            let made = decode_asker(words, core)
                .map_err(malformed)
                .and_then(|asker| endpoints.processes(asker, core).map_err(|_| (Outcome::Busy, 0)));
            return Some(made.map_or_else(|(why, about)| ended(why, about), |made| answered(0, &[made], &[])));
        }
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
            Asked::Ping(since, pending) => port.finish(pending, &Ok(Instant::now().ticks() - since.ticks())),
            Asked::Processes(asker, waits, origin) => {
                if waits {
                    places.give_back(asker);
                }
                if let Origin::Here(asker) = origin {
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
            Asked::Ping(_, pending) => port.finish(pending, &Err(why)),
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
