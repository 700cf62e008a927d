//! The main thread's part in capabilities and memory of other cores, and in the channels for them.

use alloc::vec::Vec;

use tench::println;
use tench_channel::{Request as Number, Side};
use tench_monitor::message::MONITOR;
use tench_monitor::message::line::Growth;
use tench_monitor::message::{Outcome, ended};
use tench_monitor::transfer::attachments::ATTACHMENT;
use tench_monitor::transfer::proxies;
use tench_monitor_interface::protocol::{Error, State, pid_base, split_pid};
use tench_protocol::{Arrived, Caller, Later, Port, Powers};
use tench_remote::Core;
use tench_sys::{Cap, CapAddress, Error as KernelError, OWN_CSPACE};

use super::Server;
use crate::cores::channel;
use crate::cores::links;
use crate::cores::peer::Peer;
use crate::kernel::{KERNEL, is_off, is_out_of_memory};
use crate::transfer::capabilities::{self, Grown, TransferRequest, Waiter};
use crate::transfer::endpoints::{Attachment, Outgoing};
use crate::transfer::tasks::{self, Task, Work};
use crate::work::dispatcher::Requester;

/// Reserves memory for the ledgers. A request that fails here is refused before anything is changed.
pub(super) fn ensure_capacity() -> Result<(), Error> {
    if is_out_of_memory() { Err(Error::Full) } else { Ok(()) }
}

impl Server {
    /// Handles a worker's result about capabilities.
    pub(super) fn worked(&mut self, work: Work, words: &[u64], port: &mut Port) {
        let Some(own) = capabilities::core(self.machine.core) else { return };
        match (work, words) {
            (Work::Growth(from, requester, bytes), words) => self.ask_for_memory(from, requester, bytes, words, port),
            (Work::MemoryGrant(core, number), words) => self.give_memory(core, number, words),
            (Work::Recall(granter, who), &[address, bytes]) => {
                self.ledger.recall(granter, address, bytes, Waiter::Done(who));
            }
            (Work::Recall(_, who), _) => port.finish(who, &Err(Error::NoSuchBlock)),
            (work, words) => self.finish(own, work, words),
        }
    }

    pub(super) fn finish(&mut self, own: Core, work: Work, words: &[u64]) {
        if let Some((core, number, reply)) = tasks::finish(&mut self.ledger, own, work, words)
            && let Some(peer) = self.peers.iter_mut().find(|peer| peer.core == core)
        {
            peer.reply(number, &reply);
        }
    }

    /// Sends the ledger's events and replies. Returns whether there was nothing at all.
    #[inline]
    pub(super) fn exchange(&mut self, port: &mut Port) -> bool {
        // Most of a monitor's work does not concern capabilities. (Everything else that makes work here is handled
        // below.)
        if self.is_ledger_quiet && !self.ledger.is_dirty() && self.refused.is_empty() {
            return true;
        }
        self.exchange_all(port);
        self.is_ledger_quiet
    }

    #[inline(never)]
    fn exchange_all(&mut self, port: &mut Port) {
        self.ledger.clear_dirty();
        let has_own = self.links.waiting() > 0 || !self.refused.is_empty() || !self.returned.is_empty();
        self.is_ledger_quiet = self.ledger.is_quiet() && self.rounds.is_over() && !has_own;
        if self.is_ledger_quiet {
            return;
        }
        if !self.ledger.is_idle() {
            // If there is no memory, the rest of the reserve is used.
            let _ = ensure_capacity();
        }
        for (work, task) in self.rounds.pass(&mut self.ledger).into_iter().flatten() {
            // If no worker is free, the task comes again.
            let _ = self.dispatcher.work(work, task);
        }
        let has_lost = self.ledger.has_lost();
        for peer in self.peers.iter_mut().filter(|_| has_lost) {
            let has_stopped = capabilities::core(peer.core).is_some_and(|core| self.ledger.is_closed(core));
            if has_stopped && (peer.channel.is_some() || peer.is_awaited() || matches!(peer.state, State::Broken)) {
                peer.close(&mut self.endpoints, &mut self.ledger, port);
                if self.machine.core == 0 && matches!(peer.state, State::Stopped) {
                    println!("monitor: core {} has stopped", peer.core);
                }
            }
        }
        while let Some(core) = self.ledger.overflowed() {
            let peer = self.peers.iter_mut().find(|peer| peer.core == core.index() as u64);
            peer.into_iter().for_each(|peer| peer.close(&mut self.endpoints, &mut self.ledger, port));
        }
        while let Some((object, slot, link)) = self.ledger.deletion() {
            // The frame of the channel is about to be deleted, so nothing may read it any more.
            let peer = self.peers.iter_mut().find(|peer| link.is_some_and(|core| peer.core == core.index() as u64));
            peer.into_iter().for_each(|peer| peer.close(&mut self.endpoints, &mut self.ledger, port));
            if self.dispatcher.work(Work::Deletion(object), Task::Delete(slot)).is_err() {
                self.ledger.postpone(object);
                break;
            }
        }
        self.pass_endpoints();
        self.link(port);
        self.refused.drain(..).for_each(|requester| requester.refuse(port, Error::Full));
        let own = capabilities::reply_to_waiters(&mut self.ledger, port);
        own.links.into_iter().for_each(|(to, other, result)| self.links.sent(to, other, result));
        self.report_grants(own.grown);
        own.attachments.into_iter().for_each(|(number, result)| self.attachment_done(number, result));
        for peer in &mut self.peers {
            peer.say(&mut self.ledger);
        }
    }

    /// Sends endpoints to processes of other cores, and makes proxies of those that have come.
    fn pass_endpoints(&mut self) {
        while let Some(mut transfer) = self.ledger.leaving() {
            let to = transfer.to;
            let is_closed = self.ledger.is_closed(to);
            let sent = match transfer.slot.take_if(|_| !is_closed) {
                Some(slot) => self.endpoints.send_one(slot, to.index() as u64).map_err(|why| match why {
                    proxies::Error::NotSendable => Error::NotSendable,
                    proxies::Error::Full => Error::TooManyObjects,
                    proxies::Error::Gone => Error::BeingRevoked,
                }),
                None => Err(Error::CoreLost),
            };
            self.ledger.sent(transfer, sent);
        }
        while let Some((from, reservation, receiver, carried)) = self.ledger.arriving() {
            let core = from.index() as u64;
            let made = match receiver {
                Some(receiver) => self.endpoints.receive_one(&carried, core, receiver).ok(),
                None => {
                    self.endpoints.refuse_one(&carried, core);
                    None
                }
            };
            self.ledger.arrived(from, reservation, made);
        }
    }

    /// Sends the attachments of messages that wait for them.
    pub(super) fn send_attachments(&mut self) {
        while let Some(Attachment { core, number, slot, from }) = self.endpoints.next_attachment() {
            let who = Waiter::Message(number);
            let (peer, to) = (self.peers.iter_mut().find(|peer| peer.core == core), capabilities::core(core));
            match (peer, to) {
                (Some(peer), Some(to)) => {
                    let (from, word) = ((self.machine.core, from), ATTACHMENT | number);
                    peer.admit(TransferRequest::new(who, slot, from, (to, MONITOR), word), &mut self.ledger);
                }
                _ => self.ledger.refuse(Some(who), slot, Error::NotConnected),
            }
        }
    }

    /// Handles an attachment that has arrived or has failed: if its message waits for no other, it is sent now.
    fn attachment_done(&mut self, number: u64, result: Result<(), Error>) {
        let Some((core, message)) = self.endpoints.attachment_done(number, result) else { return };
        let peer = self.peers.iter_mut().find(|peer| peer.core == core);
        // All cores to which something was sent are known.
        let Some(peer) = peer else { return };
        match message {
            Outgoing::Reply(number, words) => peer.reply(number, &words),
            Outgoing::Request(None, words) => self.endpoints.not_sent(core, &words),
            // A process that has ended meanwhile makes no requests: the server may have been told of its end already.
            Outgoing::Request(Some(waiting), words) if waiting.has_gone(self.watch) => {
                self.endpoints.not_sent(core, &words);
                self.endpoints.refuse(waiting);
                self.make_up_for_missed();
            }
            Outgoing::Request(Some(waiting), words) => {
                peer.forward(waiting, words, &mut self.endpoints);
                self.make_up_for_missed();
            }
        }
    }

    /// Requests memory from a core for a local requester, when the free memory here is known.
    pub(super) fn ask_for_memory(
        &mut self,
        from: u64,
        requester: Requester,
        bytes: u64,
        words: &[u64],
        port: &mut Port,
    ) {
        let peer = self.peers.iter_mut().find(|peer| peer.core == from);
        match (words, peer) {
            (&[free], Some(peer)) => peer.grow(requester, &Growth { bytes, free }, port),
            (_, None) => requester.refuse(port, Error::NotConnected),
            _ => requester.refuse(port, Error::Internal),
        }
    }

    /// Gives memory to a core, for its request, if there was some to give: its slot, address and size. Otherwise the
    /// words are the reason.
    pub(super) fn give_memory(&mut self, core: u64, number: Number, words: &[u64]) {
        let cap_address = |slot: u64| u32::try_from(slot).ok().map(CapAddress);
        let (Some(to), Some(peer)) = (capabilities::core(core), self.peers.iter_mut().find(|peer| peer.core == core))
        else {
            return;
        };
        match *words {
            [slot, address, bytes] if let Some(slot) = cap_address(slot) => {
                let who = Waiter::Grown { core, number, block: (address, bytes) };
                let own = (self.machine.core, MONITOR);
                peer.admit(TransferRequest::new(who, slot, own, (to, MONITOR), links::MEMORY), &mut self.ledger);
            }
            [why] => peer.reply(number, &ended(Outcome::Refused, why)),
            _ => peer.reply(number, &ended(Outcome::Refused, Error::Internal as u64)),
        }
    }

    /// Reports the outcome for memory that was given to others, and frees what has come back.
    pub(super) fn report_grants(&mut self, grown: Vec<Grown>) {
        for (core, number, (address, bytes), result) in grown {
            let words = match result {
                Ok(()) => [Outcome::Replied as u64, bytes].into_iter().collect(),
                Err(why) => ended(Outcome::Refused, why as u64),
            };
            if result.is_err() {
                self.returned.push(address);
            }
            let peer = self.peers.iter_mut().find(|peer| peer.core == core);
            if let Some(peer) = peer {
                peer.reply(number, &words);
            }
        }
        self.returned.extend(core::iter::from_fn(|| self.ledger.returned()));
        while let Some(address) = self.returned.pop() {
            if self.dispatcher.work(Work::Return, Task::Return(address)).is_err() {
                self.returned.push(address);
                return;
            }
        }
    }

    /// Requests channels, makes them for others, and opens those that come.
    pub(super) fn link(&mut self, port: &mut Port) {
        while let Some(core) = self.ledger.wanted() {
            let _ = self.reach(core.index() as u64);
        }
        while let Some((one, other)) = self.ledger.link() {
            self.links.want(one, other);
        }
        for _ in 0..self.links.waiting() {
            let Some(pair) = self.links.next() else { break };
            let is_up = |core: Core| {
                let peer = self.peers.iter().find(|peer| peer.core == core.index() as u64);
                peer.is_some_and(|peer| matches!(peer.state, State::Running))
            };
            // A stopped core gets no channel, and its own request is void.
            if self.ledger.is_closed(pair.0) || self.ledger.is_closed(pair.1) {
                continue;
            }
            match (is_up(pair.0) && is_up(pair.1)).then(|| self.links.transfer_request(pair)) {
                Some(Ok(request)) => {
                    if let Some(peer) = self.peers.iter_mut().find(|peer| peer.core == pair.0.index() as u64) {
                        peer.admit(request, &mut self.ledger);
                    }
                }
                Some(Err(_)) | None => self.links.postpone(pair),
            }
        }
        while let Some(transfer) = self.ledger.own_transfer() {
            if transfer.word == links::MEMORY {
                // If there is no worker, the memory goes back.
                let slot = transfer.slot;
                let base = OWN_CSPACE.locate_at(KERNEL, slot).map_or(0, |found| found.address);
                if self.dispatcher.work(Work::Donation(slot, base), Task::Donate(slot)).is_err() {
                    self.ledger.discard(slot);
                }
                continue;
            }
            match links::read(&transfer) {
                Some((core, is_second)) => self.open(core, is_second, transfer.slot, port),
                None => self.ledger.discard(transfer.slot),
            }
        }
    }

    /// Opens the channel to a core in a slot's frame.
    pub(super) fn open(&mut self, core: Core, is_second: bool, slot: CapAddress, port: &mut Port) {
        let (number, side) = (core.index() as u64, if is_second { Side::Second } else { Side::First });
        let is_known = self.peers.iter().any(|peer| peer.core == number && !peer.is_awaited());
        let channel =
            if is_known { Err(KernelError::SlotOccupied) } else { channel::open(Cap::new(slot), side, number) };
        let Ok(channel) = channel else {
            // If there is no memory for the channel, it is given up.
            self.ledger.discard(slot);
            let awaited = self.peers.iter_mut().find(|peer| peer.core == number && peer.is_awaited());
            return awaited.into_iter().for_each(|peer| peer.close(&mut self.endpoints, &mut self.ledger, port));
        };
        self.ledger.keep_link(slot, core);
        self.ledger.connect(core);
        if !self.peers.iter().any(|peer| peer.core == number) {
            self.peers.push(Peer::awaited(number));
        }
        if let Some(peer) = self.peers.iter_mut().find(|peer| peer.core == number) {
            peer.open(channel, &mut self.ledger, port);
        }
    }

    /// Makes sure that there is a channel to a core, or that one has been requested.
    #[inline]
    pub(super) fn reach(&mut self, core: u64) -> Result<(), Error> {
        if self.peers.iter().any(|peer| peer.core == core) { Ok(()) } else { self.reach_out(core) }
    }

    /// Requests a channel to a core that has none yet, unless it is this core.
    #[cold]
    fn reach_out(&mut self, core: u64) -> Result<(), Error> {
        if core >= self.machine.cores {
            return Err(Error::NoSuchCore);
        }
        let name = capabilities::core(core).ok_or(Error::NoSuchCore)?;
        if core == self.machine.core {
            return Ok(());
        }
        if self.machine.core == 0 || self.ledger.is_closed(name) {
            return Err(if is_off(core) { Error::Stopped } else { Error::NotConnected });
        }
        self.peers.push(Peer::awaited(core));
        self.ledger.want(name);
        Ok(())
    }

    /// Starts the transfer of a request's capability to a process.
    pub(super) fn offer<T, How>(
        &mut self,
        caller: Caller,
        later: Later<'_, (), Error>,
        (process, word): (u64, u64),
        cap: Arrived<'_, T, How>,
    ) -> Result<Option<()>, Error> {
        let (core, number) = split_pid(process);
        let requester = caller.badge(Powers::empty());
        if caller.process == MONITOR {
            return Err(Error::NotAllowed);
        }
        if number == MONITOR {
            return Err(Error::NoSuchProcess);
        }
        ensure_capacity()?;
        self.ledger.check(cap.cap().address())?;
        let is_own = core == self.machine.core;
        self.reach(core)?;
        let to = capabilities::core(core).ok_or(Error::NoSuchCore)?;
        let who = Waiter::Done(later.keep().map_err(|_| Error::Full)?);
        let request =
            TransferRequest::new(who, cap.keep().address(), (self.machine.core, requester), (to, process), word);
        if !is_own {
            let ledger = &mut self.ledger;
            if let Some(peer) = self.peers.iter_mut().find(|peer| peer.core == core) {
                peer.admit(request, ledger);
            }
            return Ok(None);
        }
        let look = tasks::look(&self.ledger, pid_base(core) | requester, process);
        if let Err(Work::Here(request)) = self.dispatcher.work(Work::Here(request), look) {
            request.refuse(&mut self.ledger, Error::Full);
        }
        Ok(None)
    }
}
