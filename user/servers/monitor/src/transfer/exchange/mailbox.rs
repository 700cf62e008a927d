//! The mailbox holds transfers to processes of this core that have not been received yet, and the threads that wait for
//! one.
//!
//! A transfer begins as a reservation, by whose number its sender's core refers to it. Then it gets a name, under which
//! the capability will arrive, then the capability; then it is received. Name and capability may come in either order,
//! because the capability comes from the core that owns it, and the name from the core that sends it.
//!
//! Entries are limited by fair-share quotas of the senders' families ([`Quota`]): a sender that floods a receiver uses
//! up its own quota. A sender is given as a badge without powers.

use alloc::vec::Vec;

use tench_abi::CapAddress;
use tench_abi::power::identity;
use tench_monitor_interface::protocol::Error;
use tench_quota::cursors::look;
use tench_quota::{Client, Quota};
use tench_remote::{Core, RequestId};

use crate::message::MONITOR;
use crate::transfer::attachments::ATTACHMENT;

/// Maximum number of transfers on a core.
pub const MAX_TRANSFERS: usize = 256;
/// Maximum number of capabilities that have arrived before their names.
const EARLY: usize = 64;
/// Maximum number of threads that wait for a transfer.
const MAX_RECEIVERS: usize = 128;

/// Name of a request: the requesting core, and its number.
pub type Name = (Core, RequestId);

/// A capability for a process, with a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedTransfer {
    /// The sending process: a badge without powers.
    pub from: u64,
    /// Word by which the receiver recognizes the purpose.
    pub word: u64,
    /// The receiving process.
    pub process: u64,
    /// Slot of the capability.
    pub slot: CapAddress,
    reservation: u64,
    sender: Core,
}

/// A transfer on its way.
#[derive(Clone, Copy, Debug)]
struct PendingTransfer {
    reservation: u64,
    sender: Core,
    process: u64,
    /// The receiver's family, while something is to come.
    family: u64,
    from: u64,
    word: u64,
    /// The name and the core under which the capability will come.
    name: Option<(RequestId, Core)>,
    slot: Option<CapAddress>,
}

impl PendingTransfer {
    /// Returns whether this is an attachment of a message that follows.
    const fn is_attachment(&self) -> bool {
        self.process == MONITOR && self.word & ATTACHMENT != 0
    }

    /// Returns whether what comes under a name is for this transfer.
    fn waits_for(&self, (sender, request): Name) -> bool {
        self.sender == sender && self.slot.is_none() && self.name.is_some_and(|(name, _)| name == request)
    }
}

/// The mailbox. `P` is a waiting receiver.
pub struct Mailbox<P> {
    quota: Quota,
    transfers: Vec<PendingTransfer>,
    /// Capabilities that have arrived before their names, with their owners.
    early: Vec<(Name, Core, CapAddress)>,
    waiting_receivers: Vec<(u64, P)>,
    waiting: Quota,
    /// Position at which the next search for receivers that no longer wait begins.
    next_look: usize,
    last: u64,
}

impl<P> Mailbox<P> {
    /// Returns an empty mailbox.
    pub fn new() -> Mailbox<P> {
        Mailbox {
            quota: Quota::new(MAX_TRANSFERS),
            transfers: Vec::with_capacity(MAX_TRANSFERS),
            early: Vec::with_capacity(EARLY),
            waiting_receivers: Vec::with_capacity(MAX_RECEIVERS),
            waiting: Quota::new(MAX_RECEIVERS),
            next_look: 0,
            last: 0,
        }
    }

    /// Returns whether `from` may send one more transfer.
    pub fn has_capacity(&self, from: u64) -> bool {
        self.quota.may_take(Client::of_badge(from))
    }

    /// Makes a reservation for what `from` will send from the core `sender`.
    pub fn reserve(&mut self, sender: Core, from: u64, to: Client, word: u64) -> Result<u64, Error> {
        if !self.has_capacity(from) {
            return Err(Error::MailboxFull);
        }
        self.quota.take(Client::of_badge(from));
        self.last += 1;
        let reservation = self.last;
        let Client { process, family } = to;
        self.transfers.push(PendingTransfer {
            reservation,
            sender,
            process,
            family,
            from,
            word,
            name: None,
            slot: None,
        });
        Ok(reservation)
    }

    /// Gives a reservation its name: the capability will come under this name from the core that owns it. Returns
    /// whether there is such a reservation. If the owner [has stopped](Self::lose), the reservation ends.
    pub fn address(&mut self, (sender, request): Name, reservation: u64, owner: Core, has_stopped: bool) -> bool {
        let early = self.early.iter().position(|(name, ..)| *name == (sender, request));
        let Some(transfer) = self.find(sender, reservation) else { return false };
        if transfer.name.is_some() {
            return false;
        }
        transfer.name = Some((request, owner));
        if let Some(early) = early {
            let (.., slot) = self.early.swap_remove(early);
            self.put(sender, reservation, slot);
        } else if has_stopped {
            self.drop(sender, reservation);
        }
        true
    }

    fn find(&mut self, sender: Core, reservation: u64) -> Option<&mut PendingTransfer> {
        let mut transfers = self.transfers.iter_mut();
        transfers.find(|transfer| {
            transfer.reservation == reservation && transfer.sender == sender && transfer.slot.is_none()
        })
    }

    /// Returns the receiver of a reservation, if nothing has come for it yet.
    pub fn receiver(&mut self, sender: Core, reservation: u64) -> Option<Client> {
        let transfer = self.find(sender, reservation).filter(|transfer| transfer.name.is_none())?;
        Some(Client { process: transfer.process, family: transfer.family })
    }

    /// Returns whether something can arrive under a name.
    pub fn may_arrive(&self, (sender, request): Name) -> bool {
        self.transfers.iter().any(|transfer| transfer.waits_for((sender, request))) || self.early.len() < EARLY
    }

    /// Takes in a capability that [may arrive](Self::may_arrive).
    pub fn arrive(&mut self, name: Name, owner: Core, slot: CapAddress) {
        match self.transfers.iter().find(|transfer| transfer.waits_for(name)).map(|transfer| transfer.reservation) {
            Some(reservation) => self.put(name.0, reservation, slot),
            None => self.early.push((name, owner, slot)),
        }
    }

    /// Gives a reservation its capability.
    pub fn put(&mut self, sender: Core, reservation: u64, slot: CapAddress) {
        if let Some(transfer) = self.find(sender, reservation) {
            transfer.slot = Some(slot);
        }
    }

    /// Ends a reservation for which nothing will come.
    pub fn drop(&mut self, sender: Core, reservation: u64) {
        let is_it = |transfer: &PendingTransfer| {
            transfer.reservation == reservation && transfer.sender == sender && transfer.slot.is_none()
        };
        if let Some(index) = self.transfers.iter().position(is_it) {
            self.remove(index);
        }
    }

    fn remove(&mut self, index: usize) -> PendingTransfer {
        // The order is kept, so that a process receives first what was sent first.
        let transfer = self.transfers.remove(index);
        self.quota.give_back(identity(transfer.from));
        transfer
    }

    /// Ends what a stopped core would still send, or owns. Returns the capabilities that had arrived without names or
    /// as attachments of the core's messages.
    pub fn lose(&mut self, core: Core) -> Vec<CapAddress> {
        let comes_from_there = |transfer: &PendingTransfer| {
            transfer.sender == core || transfer.name.is_some_and(|(_, owner)| owner == core)
        };
        while let Some(index) =
            self.transfers.iter().position(|transfer| transfer.slot.is_none() && comes_from_there(transfer))
        {
            self.remove(index);
        }
        let gone = self.early.extract_if(.., |((sender, _), owner, _)| *sender == core || *owner == core);
        let mut slots: Vec<CapAddress> = gone.map(|(.., slot)| slot).collect();
        while let Some(index) =
            self.transfers.iter().position(|transfer| transfer.is_attachment() && transfer.sender == core)
        {
            slots.extend(self.remove(index).slot);
        }
        slots
    }

    /// Queues a receiver. Returns it if too many are queued.
    pub fn wait(&mut self, client: Client, who: P) -> Result<(), P> {
        if !self.waiting.may_take(client) {
            return Err(who);
        }
        self.waiting.take(client);
        self.waiting_receivers.push((client.process, who));
        Ok(())
    }

    /// Returns whether one more thread of a client may wait.
    pub fn may_wait(&self, client: Client) -> bool {
        self.waiting.may_take(client)
    }

    /// Returns the number of transfers that count against their senders' quotas.
    pub const fn charged(&self) -> usize {
        self.quota.taken()
    }

    /// Removes receivers that no longer wait. Checks at most `looks`, and others the next time.
    pub fn forget(&mut self, looks: usize, has_gone: impl Fn(&P) -> bool) -> Vec<P> {
        let count = self.waiting_receivers.len();
        // A search of all begins with the first.
        let from = (looks < count).then_some(self.next_look);
        let (gone, next) = look(from, looks.min(count), self.waiting_receivers.iter().map(|(_, who)| who), has_gone);
        self.next_look = next;
        let mut index = 0..;
        let is_gone = |_: &mut (u64, P)| index.next().is_some_and(|index| gone.contains(&index));
        let waiting = &mut self.waiting;
        self.waiting_receivers
            .extract_if(.., is_gone)
            .map(|(process, who)| {
                waiting.give_back(process);
                who
            })
            .collect()
    }

    /// Returns the next transfer that has a waiting receiver.
    pub fn hand_out(&mut self) -> Option<(P, ReceivedTransfer)> {
        let waiting_receiver = |transfer: &PendingTransfer| {
            self.waiting_receivers.iter().position(|(process, _)| *process == transfer.process)
        };
        let mut transfers = self.transfers.iter().enumerate();
        let (index, receiver, slot) =
            transfers.find_map(|(index, transfer)| Some((index, waiting_receiver(transfer)?, transfer.slot?)))?;
        let (process, who) = self.waiting_receivers.remove(receiver);
        self.waiting.give_back(process);
        let PendingTransfer { reservation, sender, from, word, .. } = self.remove(index);
        Some((who, ReceivedTransfer { from, word, process, slot, reservation, sender }))
    }

    /// Returns the next transfer to the monitor itself.
    pub fn take_own(&mut self) -> Option<ReceivedTransfer> {
        let mut transfers = self.transfers.iter().enumerate();
        let is_own = |transfer: &PendingTransfer| transfer.process == MONITOR && !transfer.is_attachment();
        let (index, slot) =
            transfers.find_map(|(index, transfer)| Some((index, transfer.slot.filter(|_| is_own(transfer))?)))?;
        let PendingTransfer { reservation, sender, from, word, process, .. } = self.remove(index);
        Some(ReceivedTransfer { from, word, process, slot, reservation, sender })
    }

    /// Removes an attachment that a core has sent, by its number.
    pub fn claim(&mut self, sender: Core, number: u64) -> Option<CapAddress> {
        let is_it = |transfer: &PendingTransfer| {
            transfer.is_attachment() && (transfer.sender, transfer.word) == (sender, ATTACHMENT | number)
        };
        let index = self.transfers.iter().position(|transfer| transfer.slot.is_some() && is_it(transfer))?;
        self.remove(index).slot
    }

    /// Returns the slot of the next transfer that has a waiting receiver.
    pub fn peek(&self) -> Option<CapAddress> {
        let waiting_receiver = |transfer: &&PendingTransfer| {
            self.waiting_receivers.iter().any(|(process, _)| *process == transfer.process)
        };
        self.transfers.iter().filter(|transfer| transfer.slot.is_some()).find(waiting_receiver)?.slot
    }

    /// Removes the transfer in a slot, whose capability was revoked.
    pub fn discard(&mut self, slot: CapAddress) {
        if let Some(index) = self.transfers.iter().position(|transfer| transfer.slot == Some(slot)) {
            self.remove(index);
        }
    }

    /// Puts a transfer back in front, because the receiver had gone.
    pub fn put_back(&mut self, transfer: ReceivedTransfer) {
        let ReceivedTransfer { from, word, process, slot, reservation, sender } = transfer;
        self.quota.take(Client::of_badge(from));
        let family = process;
        self.transfers.insert(
            0,
            PendingTransfer { reservation, sender, process, family, from, word, name: None, slot: Some(slot) },
        );
    }

    /// Returns the processes that have transfers here.
    pub fn receivers(&self) -> Vec<u64> {
        let mut all: Vec<u64> = self.transfers.iter().map(|transfer| transfer.process).collect();
        all.retain(|process| *process != MONITOR);
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Removes the transfers to an ended process, and returns their slots. Reservations stay until their capability has
    /// come.
    pub fn remove_for(&mut self, process: u64) -> Vec<CapAddress> {
        let mut slots = Vec::new();
        let is_its = |transfer: &PendingTransfer| transfer.process == process && transfer.slot.is_some();
        while let Some(index) = self.transfers.iter().position(is_its) {
            slots.extend(self.remove(index).slot);
        }
        slots
    }

    /// Returns whether there are transfers or reservations.
    pub fn has_transfers(&self) -> bool {
        !self.transfers.is_empty() || !self.early.is_empty()
    }

    /// Returns the number of transfers, of early capabilities and of waiting receivers.
    pub fn count(&self) -> (usize, usize, usize) {
        (self.transfers.len(), self.early.len(), self.waiting_receivers.len())
    }
}

impl<P> Default for Mailbox<P> {
    fn default() -> Mailbox<P> {
        Mailbox::new()
    }
}
