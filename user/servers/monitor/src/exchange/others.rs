//! What the books of one monitor have to do with the monitors of other cores.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use tench_abi::CapAddress;
use tench_foreign::{Core, Cores, Input, Kind, Shape};

use tench_monitor_client::protocol::Error;
use tench_places::Client;

use super::line::Line;
use super::mail::Letter;
use super::{Exchange, Kernel, MOST_LINKS, Parcel};
use crate::proxies::Carried;

impl<K: Kernel, P> Exchange<K, P> {
    /// There is a channel to a core.
    pub fn connect(&mut self, core: Core) {
        self.hands.connected = self.hands.connected.with(core);
        self.hands.wanted = self.hands.wanted.without(Cores::NONE.with(core));
    }

    /// Whether a core has stopped, as far as is known here.
    pub fn is_closed(&self, core: Core) -> bool {
        self.hands.closed.has(core)
    }

    /// Something is to be said to a core to which there is no channel: which. Each is told once, until [it is asked
    /// for](Self::want) again.
    pub fn wanted(&mut self) -> Option<Core> {
        let core = self.hands.wanted.iter().next()?;
        self.hands.wanted = self.hands.wanted.without(Cores::NONE.with(core));
        Some(core)
    }

    /// Asks the first core's monitor for a channel to a core.
    pub fn want(&mut self, core: Core) {
        if let Some(first) = Core::new(0) {
            self.hands.say(first, Line::Link(core));
        }
    }

    /// Which core wants a channel, and to which.
    pub fn link(&mut self) -> Option<(Core, Core)> {
        self.hands.links.pop_front()
    }

    /// A letter to the monitor itself had the channel to a core, which it has mapped: the frame in this slot is a copy.
    pub fn keep_link(&mut self, slot: CapAddress, core: Core) {
        let Some(found) = self.hands.kernel.look(slot) else { return };
        for root in self.hands.roots.values_mut().filter(|root| root.shape == found.shape) {
            (root.is_kept, root.link) = (true, Some(core));
        }
    }

    /// Untyped memory at an address was given to this core for good.
    pub fn keep_memory(&mut self, base: u64) {
        let is_it = |shape: &Shape| shape.kind == Kind::Untyped && shape.base == base;
        for root in self.hands.roots.values_mut().filter(|root| is_it(&root.shape)) {
            root.is_kept = true;
        }
    }

    /// Deletes what lies in a slot.
    pub fn discard(&mut self, slot: CapAddress) {
        self.hands.kernel.delete(slot);
    }

    /// The next letter to the monitor itself.
    pub fn own_letter(&mut self) -> Option<Letter> {
        self.hands.mail.take_own()
    }

    /// Takes out what a core has sent for a message of its, under a number.
    pub fn claim(&mut self, sender: Core, number: u64) -> Option<CapAddress> {
        self.hands.mail.claim(sender, number)
    }

    /// Whether there is.
    pub fn is_connected(&self, core: Core) -> bool {
        self.hands.connected.has(core)
    }

    /// A core says something. What it says wrongly is counted, and nothing else.
    pub fn receive(&mut self, from: Core, operation: u16, words: &[u64]) {
        // The first core's monitor may have said that it has stopped before all was read that it had said.
        if self.hands.closed.has(from) {
            return;
        }
        match Line::decode(operation, words) {
            Some(Line::Agree(message)) => self.step(Input::Message { from, message }),
            Some(Line::Address(request, ticket, owner))
                if self.hands.mail.address((from, request), ticket, owner, self.hands.closed.has(owner)) => {}
            Some(Line::Drop(ticket)) => self.hands.mail.drop(from, ticket),
            // The first core's monitor is believed; of what another one says, the own kernel knows whether it is so.
            Some(Line::Lost(core))
                if core != from
                    && core != self.hands.core
                    && (from.index() == 0 || self.hands.closed.has(core) || self.hands.kernel.is_off(core)) =>
            {
                self.lose(core);
            }
            // Each has one wish for each other core at a time.
            Some(Line::Link(core)) if self.hands.core.index() == 0 && self.hands.links.len() < MOST_LINKS => {
                self.hands.links.push_back((from, core));
            }
            Some(Line::Endpoint(ticket, carried)) => self.hands.arriving.push_back((from, ticket, carried)),
            _ => self.malformed += 1,
        }
    }

    /// What is to be sent next to another core and is an endpoint, to which the protocol does not apply: it stays here.
    pub fn leaving(&mut self) -> Option<Parcel<P>> {
        self.hands.leaving.pop_front()
    }

    /// This is to be said about it, or it cannot be sent.
    pub fn sent(&mut self, parcel: Parcel<P>, carried: Result<Carried, Error>) {
        if let Ok(carried) = carried {
            self.hands.say(parcel.to, Line::Endpoint(parcel.ticket, carried));
        }
        self.hands.finish(parcel, carried.map(drop));
    }

    /// What came next of a core and is an endpoint: from where, for which ticket, and for which process that is, if
    /// there is one.
    pub fn arriving(&mut self) -> Option<(Core, u64, Option<Client>, Carried)> {
        let (from, ticket, carried) = self.hands.arriving.pop_front()?;
        Some((from, ticket, self.hands.mail.receiver(from, ticket), carried))
    }

    /// It lies in a slot now; or nothing comes for the ticket.
    pub fn arrived(&mut self, from: Core, ticket: u64, slot: Option<CapAddress>) {
        match slot {
            Some(slot) => self.hands.mail.put(from, ticket, slot),
            None => self.hands.mail.drop(from, ticket),
        }
    }

    /// A core has stopped, or nothing that it says is believed any more.
    pub fn lose(&mut self, core: Core) {
        if self.hands.closed.has(core) {
            return;
        }
        self.hands.connected = self.hands.connected.without(Cores::NONE.with(core));
        self.hands.wanted = self.hands.wanted.without(Cores::NONE.with(core));
        self.hands.closed = self.hands.closed.with(core);
        if let Some(lines) = self.hands.lines.get_mut(core.index()) {
            self.hands.unsaid -= lines.len();
            lines.clear();
        }
        self.hands.has_lost = true;
        for slot in self.hands.mail.lose(core) {
            self.hands.kernel.delete(slot);
        }
        self.step(Input::Lost { core });
        if self.hands.core.index() == 0 {
            self.tell_lost(core);
        }
    }

    /// The cores of which something is awaited here: one that says nothing may [have stopped](Self::stop).
    pub fn awaited(&self) -> Cores {
        self.machine.awaited()
    }

    /// Looks whether a core is off. If it is, it has stopped, and all others hear of it, who look themselves. Answers
    /// whether it is.
    pub fn stop(&mut self, core: Core) -> bool {
        if core == self.hands.core || !self.hands.kernel.is_off(core) {
            return false;
        }
        if !self.hands.closed.has(core) {
            self.lose(core);
            if self.hands.core.index() != 0 {
                self.tell_lost(core);
            }
        }
        true
    }

    fn tell_lost(&mut self, core: Core) {
        for other in self.hands.connected.iter().collect::<Vec<_>>() {
            self.hands.say(other, Line::Lost(core));
        }
    }

    /// A core that takes in nothing: more waits for it than there can be if it keeps to the protocol.
    pub fn overdue(&mut self) -> Option<Core> {
        let core = self.hands.overdue.iter().next()?;
        self.hands.overdue = self.hands.overdue.without(Cores::NONE.with(core));
        Some(core)
    }

    /// What is to be said next to a core.
    pub fn next_line(&self, core: Core) -> Option<Line> {
        self.hands.lines.get(core.index())?.front().copied()
    }

    /// It was said.
    pub fn said(&mut self, core: Core) {
        let said = self.hands.lines.get_mut(core.index()).and_then(VecDeque::pop_front);
        self.hands.unsaid -= usize::from(said.is_some());
    }
}
