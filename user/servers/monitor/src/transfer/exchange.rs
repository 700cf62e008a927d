//! Capabilities that are sent to processes of any core: one monitor's ledger, around the state machine of the protocol
//! ([`tench_remote`]).
//!
//! ```text
//!      sender's core                         owner's core                    receiver's core
//!   give ──▶ ADMIT ─────────────────────────────────────────────────────────▶ does the process exist? reserve
//!         transfer ◀──────────────────────────────────────────────────────── reservation
//!            step(Send) ── ADDRESS (request, reservation) ──────────────────▶ mailbox
//!                       ── Ask ──────────────▶ export, Grant ───────────────▶ import ─▶ mailbox ─▶ take
//! ```
//! (Mostly the sender's core is also the owner's, and there is no `Ask`.) A receiver on the sender's own core gets the
//! capability without the protocol.
//!
//! Endpoints stay on their core: for them, [descriptions](crate::transfer::proxies) are sent instead of the protocol's
//! messages.
//!
//! For each object that has left this core the monitor holds an *exported capability*, and for each that has come a
//! *root*, the imported capability of which the clients' are copies. A root that is no longer used is found by asking
//! the kernel ([`poll`](Exchange::poll)).
//!
//! Every step here is short, except for deleting what another core revokes: such deletions are [handed
//! out](Exchange::deletion), to be done elsewhere. System calls are behind the trait [`Kernel`], and a waiting
//! requester has a type of the caller's choice.

mod executor;
pub mod mailbox;
mod others;

use alloc::vec::Vec;

use tench_abi::power::{Client, identity};
use tench_abi::{CapAddress, Error as KernelError, Rights};
use tench_monitor_interface::protocol::Error;
use tench_remote::{
    Core, Cores, Effects, Error as RemoteError, Input, Kind, Limits, Machine, ObjectId, Send, Sent, Shape, Stage, Token,
};

pub use executor::Done;
use executor::{Executor, Purpose, Recall};
use mailbox::ReceivedTransfer;

/// Limits of a monitor's ledger.
pub const LIMITS: Limits = Limits { exports: 1024, holders: 4096, copies: 1024, requests: 128 };
/// Maximum number of waiting requests for channels.
const MOST_LINKS: usize = 4096;

/// A slot's content that can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Memory.
    Memory {
        /// Kind and extent.
        shape: Shape,
        /// Rights of the capability.
        rights: Rights,
        /// Set if the capability is imported.
        is_borrowed: bool,
    },
    /// An endpoint or a notification: it stays on its core.
    Endpoint,
}

/// The kernel's operations on capabilities that leave their core. Slots are the monitor's own.
pub trait Kernel {
    /// Returns the content of a slot, or `None` if it cannot be sent.
    fn look(&self, slot: CapAddress) -> Option<Found>;
    /// Turns the slot's capability into an exported one.
    fn export(&mut self, slot: CapAddress) -> Result<(), KernelError>;
    /// Turns an exported capability into an ordinary one.
    fn unexport(&mut self, slot: CapAddress) -> Result<(), KernelError>;
    /// Makes the root of an object of another core. Returns its slot, which is newly taken.
    fn import(&mut self, shape: &Shape) -> Result<CapAddress, KernelError>;
    /// Makes a capability for a client from a slot's: a copy, or of untyped memory all of it.
    fn copy(&mut self, slot: CapAddress, kind: Kind, rights: Rights) -> Result<CapAddress, KernelError>;
    /// Returns whether others hold the object, or something was derived from it.
    fn is_used(&self, slot: CapAddress) -> bool;
    /// Returns whether revocation of an exported capability is requested: a deletion failed because of remote copies.
    fn is_revoke_requested(&self, slot: CapAddress) -> bool;
    /// Deletes the slot's capability, and frees the slot.
    fn delete(&mut self, slot: CapAddress);
    /// Returns whether another core is off: it executes nothing, and never will again.
    fn is_off(&self, core: Core) -> bool;
}

/// A transfer to a process, with a reservation at the receiving core.
#[derive(Debug)]
pub struct OutgoingTransfer<P> {
    /// The requester that gets the reply.
    pub who: Option<P>,
    /// Slot of the capability, which the exchange deletes in the end.
    pub slot: Option<CapAddress>,
    /// The sending process: a badge without powers.
    pub from: u64,
    /// The receiving core.
    pub to: Core,
    /// Number of the reservation there.
    pub reservation: u64,
    /// The kernel's error, if an operation has failed.
    kernel_error: Option<KernelError>,
}

impl<P> OutgoingTransfer<P> {
    /// Returns the transfer of a slot's capability to the holder of the reservation.
    pub const fn new(who: Option<P>, slot: CapAddress, from: u64, to: Core, reservation: u64) -> OutgoingTransfer<P> {
        OutgoingTransfer { who, slot: Some(slot), from, to, reservation, kernel_error: None }
    }
}

/// Converts an error of the protocol and of the kernel to one of the monitor's interface.
fn reason(error: RemoteError, kernel_error: Option<KernelError>) -> Error {
    match error {
        RemoteError::UnknownCore => Error::NoSuchCore,
        RemoteError::NotOwner | RemoteError::Borrowed => Error::Borrowed,
        RemoteError::BeingRevoked => Error::BeingRevoked,
        RemoteError::Lent => Error::Lent,
        RemoteError::InUse => Error::InUse,
        RemoteError::NotBorrowed | RemoteError::UnknownObject => Error::NotForeign,
        RemoteError::TooManyExports | RemoteError::TooManyHolders | RemoteError::TooManyCopies => Error::TooManyObjects,
        RemoteError::TooManyRequests => Error::Full,
        RemoteError::CoreLost | RemoteError::OwnerLost => Error::CoreLost,
        RemoteError::NoReceiver => Error::MailboxFull,
        RemoteError::Kernel if kernel_error == Some(KernelError::DeviceMemory) => Error::DeviceMemory,
        RemoteError::Kernel => Error::Refused,
        RemoteError::NotHolder | RemoteError::ToSelf | RemoteError::TooManyRights | RemoteError::MemoryWithdrawn => {
            Error::Internal
        }
    }
}

/// The ledger of one monitor. `P` is a waiting requester.
pub struct Exchange<K, P> {
    machine: Machine,
    executor: Executor<K, P>,
    malformed: u64,
}

impl<K: Kernel, P> Exchange<K, P> {
    /// Returns an empty ledger for this core among `cores`. `None` if there can be no such core.
    pub fn new(core: u64, cores: u64, kernel: K) -> Option<Exchange<K, P>> {
        let (core, count) = (Core::new(u8::try_from(core).ok()?)?, u8::try_from(cores).ok()?);
        // Each message can have an event before it that tells its receiver, or one after it that says that nothing will
        // come.
        let most = 2 * LIMITS.messages(usize::from(count)) + LIMITS.requests;
        let machine = Machine::new(core, count, &LIMITS)?;
        Some(Exchange { machine, executor: Executor::new(core, kernel, most), malformed: 0 })
    }

    fn step(&mut self, input: Input) {
        // Invalid input was counted by the machine and has no other effect.
        let _ = self.machine.step(input, &mut self.executor);
    }

    // ── Sending ──────────────────────────────────────────────────────────────────────────────────────────────────────

    /// Checks whether a slot's capability can be sent to another process.
    pub fn check(&self, slot: CapAddress) -> Result<(), Error> {
        self.executor.kernel.look(slot).map(drop).ok_or(Error::NotSendable)
    }

    /// Makes a reservation for what a process of a core will send to a process of this core.
    pub fn reserve(&mut self, sender: Core, from: u64, to: Client, word: u64) -> Result<u64, Error> {
        self.executor.mailbox.reserve(sender, from, to, word)
    }

    /// Returns whether `from` may have one more transfer to this core.
    pub fn has_capacity(&self, from: u64) -> bool {
        self.executor.mailbox.has_capacity(from)
    }

    /// Starts a transfer.
    pub fn send(&mut self, mut transfer: OutgoingTransfer<P>) {
        let slot = transfer.slot;
        let Some((slot, found)) = slot.and_then(|slot| Some((slot, self.executor.kernel.look(slot)?))) else {
            // The capability was revoked meanwhile.
            return self.executor.finish(transfer, Err(Error::BeingRevoked));
        };
        if transfer.to == self.executor.core {
            transfer.slot = None;
            self.executor.mailbox.put(transfer.to, transfer.reservation, slot);
            return self.executor.finish(transfer, Ok(()));
        }
        let Found::Memory { shape, rights, is_borrowed } = found else {
            return self.executor.leaving.push_back(transfer);
        };
        let what = match is_borrowed {
            false => Sent::Own(shape),
            true => match self.root_of(&shape) {
                Some(object) => Sent::Remote(object),
                None => return self.executor.finish(transfer, Err(Error::BeingRevoked)),
            },
        };
        if !self.executor.requesters.may_take(Client::of_badge(transfer.from)) {
            return self.executor.finish(transfer, Err(Error::Full));
        }
        self.executor.requesters.take(Client::of_badge(transfer.from));
        let rights = if shape.kind == Kind::Untyped { Rights::empty() } else { rights };
        let (token, to) = (self.executor.name(), transfer.to);
        self.executor.requests.insert(token, Purpose::Send(transfer));
        self.executor.current = Some(token);
        self.step(Input::Send { token: Token(token), send: Send { what, to, rights } });
        self.executor.current = None;
    }

    /// Fails a transfer that has no reservation.
    pub fn refuse(&mut self, who: Option<P>, slot: CapAddress, why: Error) {
        self.executor.kernel.delete(slot);
        if let Some(who) = who {
            self.executor.done.push_back(Done::Reply(who, Err(why)));
        }
    }

    fn root_of(&self, shape: &Shape) -> Option<ObjectId> {
        self.executor.roots.iter().find(|(_, root)| root.shape == *shape).map(|(object, _)| *object)
    }

    // ── Taking ───────────────────────────────────────────────────────────────────────────────────────────────────────

    /// Queues a receiver for its next transfer. It is refused if too many are queued.
    pub fn take(&mut self, client: Client, who: P) {
        if let Err(who) = self.executor.mailbox.wait(client, who) {
            self.executor.done.push_back(Done::Reply(who, Err(Error::Full)));
        }
    }

    /// Returns whether one more thread of a client may wait for a transfer.
    pub fn may_wait(&self, client: Client) -> bool {
        self.executor.mailbox.may_wait(client)
    }

    /// Removes receivers that no longer wait. Checks at most `looks`, and others the next time.
    pub fn forget(&mut self, looks: usize, has_gone: impl Fn(&P) -> bool) -> Vec<P> {
        self.executor.mailbox.forget(looks, has_gone)
    }

    /// Returns whether threads wait for transfers.
    pub fn has_receivers(&self) -> bool {
        self.executor.mailbox.count().2 > 0
    }

    /// Returns a transfer to the mailbox, because the receiver has gone.
    pub fn put_back(&mut self, transfer: ReceivedTransfer) {
        self.executor.mailbox.put_back(transfer);
    }

    /// Returns the processes that have transfers in the mailbox.
    pub fn receivers(&self) -> Vec<u64> {
        self.executor.mailbox.receivers()
    }

    /// Discards what the mailbox has for an ended process.
    pub fn discard_for(&mut self, process: u64) {
        for slot in self.executor.mailbox.remove_for(process) {
            self.executor.kernel.delete(slot);
        }
    }

    /// Returns the next reply to be sent.
    pub fn done(&mut self) -> Option<Done<P>> {
        while let Some(slot) = self.executor.mailbox.peek() {
            if self.executor.kernel.look(slot).is_some() {
                break;
            }
            // The sender has revoked the capability meanwhile.
            self.executor.mailbox.discard(slot);
            self.executor.kernel.delete(slot);
        }
        let transfer = || self.executor.mailbox.hand_out().map(|(who, transfer)| Done::Transfer(who, transfer));
        self.executor.done.pop_front().or_else(transfer)
    }

    // ── Taking back ──────────────────────────────────────────────────────────────────────────────────────────────────

    /// Revokes, from all other cores, the object of a slot's capability, if the requester has sent it there. Holding a
    /// capability is not enough: the requester may have been given a copy, as the other cores were. (The owner shows
    /// that by a revoke in the kernel, after which [`poll`](Self::poll) revokes from the other cores, too.) Endpoints
    /// and notifications have no copies elsewhere, so nothing is left to do for them.
    pub fn revoke(&mut self, from: u64, slot: CapAddress, who: P) {
        let Some(found) = self.executor.kernel.look(slot) else {
            return self.executor.done.push_back(Done::Reply(who, Err(Error::NotSendable)));
        };
        let Found::Memory { shape: found, is_borrowed, .. } = found else {
            return self.executor.done.push_back(Done::Reply(who, Ok(())));
        };
        if is_borrowed {
            return self.executor.done.push_back(Done::Reply(who, Err(Error::Borrowed)));
        }
        let is_others = |granter, shape: &Shape| *shape == found && identity(granter) != identity(from);
        if !self.given(is_others).is_empty() {
            return self.executor.done.push_back(Done::Reply(who, Err(Error::NotAllowed)));
        }
        let objects = self.given(|_, shape| *shape == found);
        self.take_back(from, Some(who), objects);
    }

    /// Revokes, from all other cores, what `granter` has sent of a range of memory.
    pub fn recall(&mut self, granter: u64, base: u64, bytes: u64, who: P) {
        let end = base.saturating_add(bytes);
        let lies_in = |shape: &Shape| base <= shape.base && shape.base.saturating_add(shape.bytes) <= end;
        let objects = self.given(|sender, shape| identity(sender) == identity(granter) && lies_in(shape));
        self.take_back(granter, Some(who), objects);
    }

    /// Returns the exported objects that match, by granter and shape. The granter's family may not have been known, so
    /// compare only the process.
    fn given(&self, is_it: impl Fn(u64, &Shape) -> bool) -> Vec<ObjectId> {
        let all = self.executor.exported_caps.iter();
        all.filter(|(_, exported_cap)| is_it(exported_cap.granter, &exported_cap.shape))
            .map(|(object, _)| *object)
            .collect()
    }

    fn take_back(&mut self, from: u64, who: Option<P>, objects: Vec<ObjectId>) {
        let number = self.executor.name();
        let left = objects.len();
        if left == 0 {
            self.executor.done.extend(who.map(|who| Done::Reply(who, Ok(()))));
            return;
        }
        self.executor.recalls.insert(number, Recall { who, from, left, result: Ok(()) });
        for object in objects {
            let token = self.executor.name();
            // A requester that revokes more than its quota allows is refused the rest, and asks again.
            let may = from == 0 || self.executor.requesters.may_take(Client::of_badge(from));
            self.executor.requesters.take(Client::of_badge(from));
            self.executor.requests.insert(token, Purpose::Recall(number));
            if may {
                self.step(Input::Revoke { token: Token(token), object });
            } else {
                self.executor.reply(Token(token), Err(RemoteError::TooManyRequests));
            }
        }
    }

    /// Gives a range that begins at an address back to the core that owns it, because nothing of it is used here any
    /// more.
    pub fn give_back(&mut self, base: u64) -> Result<(), Error> {
        let roots = self.executor.roots.iter();
        let objects: Vec<ObjectId> =
            roots.filter(|(_, root)| root.shape.base == base).map(|(object, _)| *object).collect();
        if objects.is_empty() {
            return Err(Error::NotForeign);
        }
        for object in &objects {
            self.step(Input::Unused { object: *object });
        }
        if objects.iter().any(|object| self.executor.roots.contains_key(object)) { Err(Error::InUse) } else { Ok(()) }
    }

    // ── The kernel ───────────────────────────────────────────────────────────────────────────────────────────────────

    /// Polls the kernel: gives back roots that are no longer used, and revokes from other cores what a local process
    /// wanted to delete.
    pub fn poll(&mut self) {
        let kernel = &self.executor.kernel;
        let unused = |copy: &&tench_remote::Copy| {
            let root = self.executor.roots.get(&copy.object);
            copy.stage == Stage::Held && root.is_some_and(|root| !root.is_kept && !kernel.is_used(root.slot))
        };
        let objects: Vec<ObjectId> = self.machine.copies().filter(unused).map(|copy| copy.object).collect();
        for object in objects {
            self.step(Input::Unused { object });
        }
        let kernel = &self.executor.kernel;
        let requested = self
            .executor
            .exported_caps
            .iter()
            .filter(|(_, exported_cap)| kernel.is_revoke_requested(exported_cap.slot));
        let requested = requested.map(|(object, _)| *object).collect();
        self.take_back(0, None, requested);
        for slot in core::mem::take(&mut self.executor.pending_unexports) {
            if !self.executor.release(slot) {
                self.executor.pending_unexports.push(slot);
            }
        }
    }

    /// Returns whether there is nothing to [`poll`](Self::poll) for, and no transfer whose receiver may end.
    pub fn is_idle(&self) -> bool {
        self.roots() == 0
            && !self.has_exports()
            && self.executor.pending_unexports.is_empty()
            && !self.executor.mailbox.has_transfers()
    }

    /// Returns whether there is no work either: no replies, events, deletions or requests.
    pub fn is_quiet(&self) -> bool {
        let executor = &self.executor;
        executor.unsent == 0
            && executor.done.is_empty()
            && executor.deletions.is_empty()
            && executor.leaving.is_empty()
            && executor.arriving.is_empty()
            && executor.links.is_empty()
            && executor.returned.is_empty()
            && executor.wanted.and(executor.overflowed) == Cores::NONE
            && !executor.has_lost
            && self.is_idle()
    }

    /// Returns whether a core has stopped since the last call.
    pub fn has_lost(&mut self) -> bool {
        core::mem::take(&mut self.executor.has_lost)
    }

    /// Returns the address of memory that this monitor itself gave to another core and that has come back.
    pub fn returned(&mut self) -> Option<u64> {
        self.executor.returned.pop()
    }

    /// Returns the number of entries that count against senders' quotas: one for each object on another core, each
    /// request under way, and each transfer that has not been received.
    pub fn charged(&self) -> usize {
        self.executor.granters.taken() + self.executor.requesters.taken() + self.executor.mailbox.charged()
    }

    /// Returns whether objects of this core are on others.
    pub fn has_exports(&self) -> bool {
        self.exported_caps() > 0
    }

    /// Returns the number of exported capabilities, without the monitors' own channels.
    fn exported_caps(&self) -> usize {
        if self.executor.exported_caps.is_empty() {
            return 0;
        }
        self.executor.exported_caps.values().filter(|exported_cap| !exported_cap.is_own()).count()
    }

    fn roots(&self) -> usize {
        if self.executor.roots.is_empty() {
            return 0;
        }
        self.executor.roots.values().filter(|root| !root.is_kept).count()
    }

    /// Returns the next deletion: of everything derived or copied from the root in this slot.
    /// [`deleted`](Self::deleted) reports when it is done.
    ///
    /// If the root was the monitor's own channel to a core, that core is returned, too; the channel must not be used
    /// from then on.
    pub fn deletion(&mut self) -> Option<(ObjectId, CapAddress, Option<Core>)> {
        let object = self.executor.deletions.pop_front()?;
        // Parts that were lent on to a core that has stopped go with the root.
        let exports = self.machine.exports();
        let given_up: Vec<ObjectId> =
            exports.filter(|(_, export)| export.given_up && export.within == Some(object)).map(|(id, _)| id).collect();
        for export in given_up {
            // The kernel keeps the exported capability until what was lent back from there is gone.
            if let Some(exported_cap) = self.executor.exported_caps.remove(&export) {
                self.executor.granters.give_back(identity(exported_cap.granter));
                if !self.executor.release(exported_cap.slot) {
                    self.executor.pending_unexports.push(exported_cap.slot);
                }
            }
        }
        self.executor.roots.get(&object).map(|root| (object, root.slot, root.link))
    }

    /// Queues a deletion again that could not be begun.
    pub fn postpone(&mut self, object: ObjectId) {
        self.executor.deletions.push_front(object);
    }

    /// Returns whether a deletion is queued.
    pub fn has_deletions(&self) -> bool {
        !self.executor.deletions.is_empty()
    }

    /// Notes that only the root itself is left.
    pub fn deleted(&mut self, object: ObjectId) {
        if let Some(root) = self.executor.roots.remove(&object) {
            self.executor.kernel.delete(root.slot);
        }
        self.step(Input::Deleted { object });
    }

    // ── Ledger ───────────────────────────────────────────────────────────────────────────────────────────────────────

    /// Returns the number of objects of this core on others, of objects of others here, and of transfers.
    pub fn count(&self) -> (usize, usize, usize) {
        (self.exported_caps(), self.roots(), self.executor.mailbox.count().0)
    }

    /// Returns the number of protocol violations, by other monitors or found by the state machine.
    pub fn faults(&self) -> u64 {
        self.malformed + self.machine.faults()
    }

    /// Returns the number of requests without a reply.
    pub fn requests(&self) -> usize {
        self.executor.requests.len()
    }

    /// Returns the kernel.
    pub fn kernel(&mut self) -> &mut K {
        &mut self.executor.kernel
    }
}
