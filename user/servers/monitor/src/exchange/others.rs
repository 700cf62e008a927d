//! The part of the ledger that concerns the monitors of other cores.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use tench_abi::CapAddress;
use tench_remote::{Core, Cores, Input, Kind, Shape};

use tench_monitor_client::protocol::Error;
use tench_quota::Client;

use super::line::Line;
use super::mail::Letter;
use super::{Exchange, Kernel, MOST_LINKS, Parcel};
use crate::proxies::Carried;

impl<K: Kernel, P> Exchange<K, P> {
    /// Notes that there is a channel to a core.
    pub fn connect(&mut self, core: Core) {
        self.hands.connected = self.hands.connected.with(core);
        self.hands.wanted = self.hands.wanted.without(Cores::NONE.with(core));
    }

    /// Returns whether a core is known to have stopped.
    pub fn is_closed(&self, core: Core) -> bool {
        self.hands.closed.has(core)
    }

    /// Returns a core to which events are queued but no channel exists. Each core is returned once, until its channel
    /// [is requested](Self::want) again.
    pub fn wanted(&mut self) -> Option<Core> {
        let core = self.hands.wanted.iter().next()?;
        self.hands.wanted = self.hands.wanted.without(Cores::NONE.with(core));
        Some(core)
    }

    /// Requests a channel to a core from the first core's monitor.
    pub fn want(&mut self, core: Core) {
        if let Some(first) = Core::new(0) {
            self.hands.say(first, Line::Link(core));
        }
    }

    /// Returns a core that wants a channel, and the core to which it wants it.
    pub fn link(&mut self) -> Option<(Core, Core)> {
        self.hands.links.pop_front()
    }

    /// Keeps the channel to a core that a transfer to the monitor itself brought, and that is mapped; the slot has a
    /// copy of its frame.
    pub fn keep_link(&mut self, slot: CapAddress, core: Core) {
        let Some(found) = self.hands.kernel.look(slot) else { return };
        for root in self.hands.roots.values_mut().filter(|root| root.shape == found.shape) {
            (root.is_kept, root.link) = (true, Some(core));
        }
    }

    /// Notes that untyped memory at an address was given to this core for good.
    pub fn keep_memory(&mut self, base: u64) {
        let is_it = |shape: &Shape| shape.kind == Kind::Untyped && shape.base == base;
        for root in self.hands.roots.values_mut().filter(|root| is_it(&root.shape)) {
            root.is_kept = true;
        }
    }

    /// Deletes what a slot contains.
    pub fn discard(&mut self, slot: CapAddress) {
        self.hands.kernel.delete(slot);
    }

    /// Returns the next transfer to the monitor itself.
    pub fn own_letter(&mut self) -> Option<Letter> {
        self.hands.mail.take_own()
    }

    /// Removes an attachment that a core has sent, by its number.
    pub fn claim(&mut self, sender: Core, number: u64) -> Option<CapAddress> {
        self.hands.mail.claim(sender, number)
    }

    /// Returns whether there is a channel to a core.
    pub fn is_connected(&self, core: Core) -> bool {
        self.hands.connected.has(core)
    }

    /// Handles a core's event. Violations are counted, and have no other effect.
    pub fn receive(&mut self, from: Core, operation: u16, words: &[u64]) {
        // The first core's monitor may have reported that the core has stopped before all its events were read.
        if self.hands.closed.has(from) {
            return;
        }
        match Line::decode(operation, words) {
            Some(Line::Agree(message)) => self.step(Input::Message { from, message }),
            Some(Line::Address(request, ticket, owner))
                if self.hands.mail.address((from, request), ticket, owner, self.hands.closed.has(owner)) => {}
            Some(Line::Drop(ticket)) => self.hands.mail.drop(from, ticket),
            // The first core's monitor is trusted; what another one reports is checked with the own kernel.
            Some(Line::Lost(core))
                if core != from
                    && core != self.hands.core
                    && (from.index() == 0 || self.hands.closed.has(core) || self.hands.kernel.is_off(core)) =>
            {
                self.lose(core);
            }
            // Each core has at most one request for each other core at a time.
            Some(Line::Link(core)) if self.hands.core.index() == 0 && self.hands.links.len() < MOST_LINKS => {
                self.hands.links.push_back((from, core));
            }
            Some(Line::Endpoint(ticket, carried)) => self.hands.arriving.push_back((from, ticket, carried)),
            _ => self.malformed += 1,
        }
    }

    /// Returns the next endpoint to be sent to another core. The protocol does not apply to it: the object stays here.
    pub fn leaving(&mut self) -> Option<Parcel<P>> {
        self.hands.leaving.pop_front()
    }

    /// Queues the event with the endpoint's description, or fails the transfer.
    pub fn sent(&mut self, parcel: Parcel<P>, carried: Result<Carried, Error>) {
        if let Ok(carried) = carried {
            self.hands.say(parcel.to, Line::Endpoint(parcel.ticket, carried));
        }
        self.hands.finish(parcel, carried.map(drop));
    }

    /// Returns the next endpoint that has come from a core: the core, the reservation, its receiver if it exists, and
    /// the description.
    pub fn arriving(&mut self) -> Option<(Core, u64, Option<Client>, Carried)> {
        let (from, ticket, carried) = self.hands.arriving.pop_front()?;
        Some((from, ticket, self.hands.mail.receiver(from, ticket), carried))
    }

    /// Puts an endpoint's capability into the mailbox, or ends the reservation.
    pub fn arrived(&mut self, from: Core, ticket: u64, slot: Option<CapAddress>) {
        match slot {
            Some(slot) => self.hands.mail.put(from, ticket, slot),
            None => self.hands.mail.drop(from, ticket),
        }
    }

    /// Handles a core that has stopped, or whose messages are no longer trusted.
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

    /// Returns the cores of which something is awaited: a silent one may [have stopped](Self::stop).
    pub fn awaited(&self) -> Cores {
        self.machine.awaited()
    }

    /// Checks whether a core is off. If so, handles that it has stopped, and tells all other cores, which check for
    /// themselves. Returns whether the core is off.
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

    /// Returns an overflowed core, which accepts nothing: more events are queued than there can be if it keeps to the
    /// protocol.
    pub fn overdue(&mut self) -> Option<Core> {
        let core = self.hands.overdue.iter().next()?;
        self.hands.overdue = self.hands.overdue.without(Cores::NONE.with(core));
        Some(core)
    }

    /// Returns the next event for a core.
    pub fn next_line(&self, core: Core) -> Option<Line> {
        self.hands.lines.get(core.index())?.front().copied()
    }

    /// Marks the next event as sent.
    pub fn said(&mut self, core: Core) {
        let said = self.hands.lines.get_mut(core.index()).and_then(VecDeque::pop_front);
        self.hands.unsaid -= usize::from(said.is_some());
    }
}
