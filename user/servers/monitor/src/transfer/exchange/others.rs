//! The part of the ledger that concerns the monitors of other cores.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use tench_abi::CapAddress;
use tench_remote::{Core, Cores, Input, Kind, Shape};

use tench_monitor_interface::protocol::Error;
use tench_quota::Client;

use super::mailbox::ReceivedTransfer;
use super::{Exchange, Found, Kernel, MOST_LINKS, OutgoingTransfer};
use crate::message::carried::Carried;
use crate::message::line::Line;

impl<K: Kernel, P> Exchange<K, P> {
    /// Notes that there is a channel to a core.
    pub fn connect(&mut self, core: Core) {
        self.executor.connected = self.executor.connected.with(core);
        self.executor.wanted = self.executor.wanted.without(Cores::NONE.with(core));
    }

    /// Returns whether a core is known to have stopped.
    pub fn is_closed(&self, core: Core) -> bool {
        self.executor.closed.has(core)
    }

    /// Returns a core to which events are queued but no channel exists. Each core is returned once, until its channel
    /// [is requested](Self::want) again.
    pub fn wanted(&mut self) -> Option<Core> {
        let core = self.executor.wanted.iter().next()?;
        self.executor.wanted = self.executor.wanted.without(Cores::NONE.with(core));
        Some(core)
    }

    /// Requests a channel to a core from the first core's monitor.
    pub fn want(&mut self, core: Core) {
        if let Some(first) = Core::new(0) {
            self.executor.say(first, Line::Link(core));
        }
    }

    /// Returns a core that wants a channel, and the core to which it wants it.
    pub fn link(&mut self) -> Option<(Core, Core)> {
        self.executor.links.pop_front()
    }

    /// Keeps the channel to a core that a transfer to the monitor itself brought, and that is mapped; the slot has a
    /// copy of its frame.
    pub fn keep_link(&mut self, slot: CapAddress, core: Core) {
        let Some(Found::Memory { shape, .. }) = self.executor.kernel.look(slot) else { return };
        for root in self.executor.roots.values_mut().filter(|root| root.shape == shape) {
            (root.is_kept, root.link) = (true, Some(core));
        }
    }

    /// Notes that untyped memory at an address was given to this core for good.
    pub fn keep_memory(&mut self, base: u64) {
        let is_it = |shape: &Shape| shape.kind == Kind::Untyped && shape.base == base;
        for root in self.executor.roots.values_mut().filter(|root| is_it(&root.shape)) {
            root.is_kept = true;
        }
    }

    /// Deletes what a slot contains.
    pub fn discard(&mut self, slot: CapAddress) {
        self.executor.kernel.delete(slot);
    }

    /// Returns the next transfer to the monitor itself.
    pub fn own_transfer(&mut self) -> Option<ReceivedTransfer> {
        self.executor.mailbox.take_own()
    }

    /// Removes an attachment that a core has sent, by its number.
    pub fn claim(&mut self, sender: Core, number: u64) -> Option<CapAddress> {
        self.executor.mailbox.claim(sender, number)
    }

    /// Returns whether there is a channel to a core.
    pub fn is_connected(&self, core: Core) -> bool {
        self.executor.connected.has(core)
    }

    /// Handles a core's event. Violations are counted, and have no other effect.
    pub fn receive(&mut self, from: Core, operation: u16, words: &[u64]) {
        // The first core's monitor may have reported that the core has stopped before all its events were read.
        if self.executor.closed.has(from) {
            return;
        }
        match Line::decode(operation, words) {
            Some(Line::Agree(message)) => self.step(Input::Message { from, message }),
            Some(Line::Address(request, reservation, owner))
                if self.executor.mailbox.address(
                    (from, request),
                    reservation,
                    owner,
                    self.executor.closed.has(owner),
                ) => {}
            Some(Line::Drop(reservation)) => self.executor.mailbox.drop(from, reservation),
            // The first core's monitor is trusted; what another one reports is checked with the own kernel.
            Some(Line::Lost(core))
                if core != from
                    && core != self.executor.core
                    && (from.index() == 0 || self.executor.closed.has(core) || self.executor.kernel.is_off(core)) =>
            {
                self.lose(core);
            }
            // Each core has at most one request for each other core at a time.
            Some(Line::Link(core)) if self.executor.core.index() == 0 && self.executor.links.len() < MOST_LINKS => {
                self.executor.links.push_back((from, core));
            }
            Some(Line::Endpoint(reservation, carried)) => {
                self.executor.arriving.push_back((from, reservation, carried))
            }
            _ => self.malformed += 1,
        }
    }

    /// Returns the next endpoint to be sent to another core. The protocol does not apply to it: the object stays here.
    pub fn leaving(&mut self) -> Option<OutgoingTransfer<P>> {
        self.executor.leaving.pop_front()
    }

    /// Queues the event with the endpoint's description, or fails the transfer.
    pub fn sent(&mut self, transfer: OutgoingTransfer<P>, carried: Result<Carried, Error>) {
        if let Ok(carried) = carried {
            self.executor.say(transfer.to, Line::Endpoint(transfer.reservation, carried));
        }
        self.executor.finish(transfer, carried.map(drop));
    }

    /// Returns the next endpoint that has come from a core: the core, the reservation, its receiver if it exists, and
    /// the description.
    pub fn arriving(&mut self) -> Option<(Core, u64, Option<Client>, Carried)> {
        let (from, reservation, carried) = self.executor.arriving.pop_front()?;
        Some((from, reservation, self.executor.mailbox.receiver(from, reservation), carried))
    }

    /// Puts an endpoint's capability into the mailbox, or ends the reservation.
    pub fn arrived(&mut self, from: Core, reservation: u64, slot: Option<CapAddress>) {
        match slot {
            Some(slot) => self.executor.mailbox.put(from, reservation, slot),
            None => self.executor.mailbox.drop(from, reservation),
        }
    }

    /// Handles a core that has stopped, or whose messages are no longer trusted.
    pub fn lose(&mut self, core: Core) {
        if self.executor.closed.has(core) {
            return;
        }
        self.executor.connected = self.executor.connected.without(Cores::NONE.with(core));
        self.executor.wanted = self.executor.wanted.without(Cores::NONE.with(core));
        self.executor.closed = self.executor.closed.with(core);
        if let Some(lines) = self.executor.lines.get_mut(core.index()) {
            self.executor.unsent -= lines.len();
            lines.clear();
        }
        self.executor.has_lost = true;
        for slot in self.executor.mailbox.lose(core) {
            self.executor.kernel.delete(slot);
        }
        self.step(Input::Lost { core });
        if self.executor.core.index() == 0 {
            self.report_lost(core);
        }
    }

    /// Returns the cores of which something is awaited: a silent one may [have stopped](Self::stop).
    pub fn awaited(&self) -> Cores {
        self.machine.awaited()
    }

    /// Checks whether a core is off. If so, handles that it has stopped, and tells all other cores, which check for
    /// themselves. Returns whether the core is off.
    pub fn stop(&mut self, core: Core) -> bool {
        if core == self.executor.core || !self.executor.kernel.is_off(core) {
            return false;
        }
        if !self.executor.closed.has(core) {
            self.lose(core);
            if self.executor.core.index() != 0 {
                self.report_lost(core);
            }
        }
        true
    }

    fn report_lost(&mut self, core: Core) {
        for other in self.executor.connected.iter().collect::<Vec<_>>() {
            self.executor.say(other, Line::Lost(core));
        }
    }

    /// Returns an overflowed core, which accepts nothing: more events are queued than there can be if it keeps to the
    /// protocol.
    pub fn overflowed(&mut self) -> Option<Core> {
        let core = self.executor.overflowed.iter().next()?;
        self.executor.overflowed = self.executor.overflowed.without(Cores::NONE.with(core));
        Some(core)
    }

    /// Returns the next event for a core.
    pub fn next_line(&self, core: Core) -> Option<Line> {
        self.executor.lines.get(core.index())?.front().copied()
    }

    /// Marks the next event as sent.
    pub fn said(&mut self, core: Core) {
        let said = self.executor.lines.get_mut(core.index()).and_then(VecDeque::pop_front);
        self.executor.unsent -= usize::from(said.is_some());
    }
}
