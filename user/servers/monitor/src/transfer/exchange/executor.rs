//! The executor carries out the effects of the protocol's steps: on the kernel, on the mailbox, and on the queues of
//! events to be sent.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use tench_abi::power::identity;
use tench_abi::{CapAddress, Error as KernelError, Rights};
use tench_quota::{Client, Quota};
use tench_remote::{Core, Cores, Effects, Error, Kind, MAX_CORES, Message, ObjectId, RequestId, Shape, Token};

use super::mailbox::{Mailbox, Name};
use super::{Kernel, LIMITS, OutgoingTransfer, reason};
use crate::message::MONITOR;
use crate::message::carried::Carried;
use crate::message::line::Line;
use tench_monitor_interface::protocol::{Error as MonitorError, split_pid};

/// An exported capability: at the owner, it stands for the copies on other cores.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExportedCap {
    pub slot: CapAddress,
    pub shape: Shape,
    /// Badge of the process that first sent the object, with its core.
    pub granter: u64,
}

impl ExportedCap {
    /// Returns whether the monitor itself sent the object.
    pub const fn is_own(&self) -> bool {
        split_pid(self.granter).1 == MONITOR
    }
}

/// An imported capability, from which all copies here were made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Root {
    pub slot: CapAddress,
    pub shape: Shape,
    /// Set if the root stays while unused: memory given to this core, or a channel of the monitor itself.
    pub is_kept: bool,
    /// Set if the root is the monitor's own channel to this core.
    pub link: Option<Core>,
}

/// The purpose of a request to the protocol.
#[derive(Debug)]
pub(super) enum Purpose<P> {
    /// A transfer.
    Send(OutgoingTransfer<P>),
    /// A revocation, as one of a [`Recall`].
    Recall(u64),
}

/// Several objects that one client revokes.
#[derive(Debug)]
pub(super) struct Recall<P> {
    pub who: Option<P>,
    /// The requester: a badge without powers.
    pub from: u64,
    pub left: usize,
    pub result: Result<(), MonitorError>,
}

/// A reply to be sent.
#[derive(Debug)]
pub enum Done<P> {
    /// Completion or an error.
    Reply(P, Result<(), MonitorError>),
    /// A transfer.
    Transfer(P, super::mailbox::ReceivedTransfer),
}

/// State that the effects change.
pub(super) struct Executor<K, P> {
    pub core: Core,
    pub kernel: K,
    pub exported_caps: BTreeMap<ObjectId, ExportedCap>,
    pub roots: BTreeMap<ObjectId, Root>,
    pub requests: BTreeMap<u64, Purpose<P>>,
    pub recalls: BTreeMap<u64, Recall<P>>,
    /// Quota of requests, by requester.
    pub requesters: Quota,
    /// Quota of objects on other cores, by granter.
    pub granters: Quota,
    /// Memory that this monitor itself has given away, and that has come back.
    pub returned: Vec<u64>,
    pub mailbox: Mailbox<P>,
    pub done: VecDeque<Done<P>>,
    pub deletions: VecDeque<ObjectId>,
    /// Endpoints to be sent to other cores.
    pub leaving: VecDeque<OutgoingTransfer<P>>,
    /// Endpoints that have come from other cores, with reservations.
    pub arriving: VecDeque<(Core, u64, Carried)>,
    /// Pending unexports: exported capabilities that the kernel still keeps.
    pub pending_unexports: Vec<CapAddress>,
    /// Events queued for each core.
    pub lines: Vec<VecDeque<Line>>,
    /// Number of unsent events.
    pub unsent: usize,
    /// Set if a core has stopped since the last check.
    pub has_lost: bool,
    /// Cores to which there is a channel.
    pub connected: Cores,
    /// Cores that have stopped.
    pub closed: Cores,
    /// Cores to which a channel is needed.
    pub wanted: Cores,
    /// Requests for channels: from which core, and to which.
    pub links: VecDeque<(Core, Core)>,
    /// Overflowed cores: more events are queued for them than the protocol allows.
    pub overflowed: Cores,
    pub most_lines: usize,
    /// The request that the current step is about.
    pub current: Option<u64>,
    pub last: u64,
}

impl<K: Kernel, P> Executor<K, P> {
    pub fn new(core: Core, kernel: K, most_lines: usize) -> Executor<K, P> {
        Executor {
            core,
            kernel,
            exported_caps: BTreeMap::new(),
            roots: BTreeMap::new(),
            requests: BTreeMap::new(),
            recalls: BTreeMap::new(),
            requesters: Quota::new(LIMITS.requests),
            granters: Quota::new(LIMITS.exports),
            returned: Vec::new(),
            mailbox: Mailbox::new(),
            done: VecDeque::new(),
            deletions: VecDeque::new(),
            leaving: VecDeque::new(),
            arriving: VecDeque::new(),
            pending_unexports: Vec::new(),
            lines: (0..MAX_CORES).map(|_| VecDeque::new()).collect(),
            unsent: 0,
            has_lost: false,
            connected: Cores::NONE,
            closed: Cores::NONE,
            wanted: Cores::NONE,
            links: VecDeque::new(),
            overflowed: Cores::NONE,
            most_lines,
            current: None,
            last: 0,
        }
    }

    /// Returns a new name for a request.
    pub fn name(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Queues an event for another core. Events are sent in the order in which they are queued.
    pub fn say(&mut self, to: Core, line: Line) {
        if self.closed.has(to) {
            return;
        }
        if !self.connected.has(to) {
            self.wanted = self.wanted.with(to);
        }
        let Some(lines) = self.lines.get_mut(to.index()) else { return };
        if lines.len() < self.most_lines {
            lines.push_back(line);
            self.unsent += 1;
        } else {
            self.overflowed = self.overflowed.with(to);
        }
    }

    /// Ends a transfer: sends the reply to the sender, and keeps nothing.
    pub fn finish(&mut self, transfer: OutgoingTransfer<P>, result: Result<(), MonitorError>) {
        if let Some(slot) = transfer.slot {
            self.kernel.delete(slot);
        }
        if result.is_err() {
            self.return_reservation(transfer.to, transfer.reservation);
        }
        if let Some(who) = transfer.who {
            self.done.push_back(Done::Reply(who, result));
        }
    }

    fn return_reservation(&mut self, to: Core, reservation: u64) {
        if to == self.core {
            self.mailbox.drop(to, reservation);
        } else {
            self.say(to, Line::Drop(reservation));
        }
    }

    /// Notes that one of several objects has been revoked.
    fn recalled(&mut self, number: u64, result: Result<(), MonitorError>) {
        let Some(recall) = self.recalls.get_mut(&number) else { return };
        self.requesters.give_back(identity(recall.from));
        recall.left = recall.left.saturating_sub(1);
        recall.result = recall.result.and(result);
        if recall.left == 0
            && let Some(Recall { who: Some(who), result, .. }) = self.recalls.remove(&number)
        {
            self.done.push_back(Done::Reply(who, result));
        }
    }

    /// Unexports and deletes a capability. Returns whether the kernel permitted that.
    pub fn release(&mut self, slot: CapAddress) -> bool {
        let is_free = self.kernel.unexport(slot).is_ok();
        if is_free {
            self.kernel.delete(slot);
        }
        is_free
    }

    /// Returns whether a reservation matches a name. Requests of a core that has stopped match none.
    fn may_arrive(&self, name: Name) -> bool {
        !self.closed.has(name.0) && self.mailbox.may_arrive(name)
    }

    /// Makes a copy for a local process from the capability in a slot.
    fn deliver(
        &mut self,
        object: ObjectId,
        (slot, kind): (CapAddress, Kind),
        rights: Rights,
        name: Name,
    ) -> Result<(), Error> {
        let copy = self.kernel.copy(slot, kind, rights).map_err(|_| Error::Kernel)?;
        self.mailbox.arrive(name, object.owner, copy);
        Ok(())
    }
}

impl<K: Kernel, P> Effects for Executor<K, P> {
    fn send(&mut self, to: Core, message: Message) {
        // The other core has to know the receiver. A channel keeps the order, so the event is sent before the message.
        let named = match message {
            Message::Grant { requester, request, .. } if requester == self.core => Some((to, request, self.core)),
            Message::Ask { to: receiver, request, .. } => Some((receiver, request, to)),
            _ => None,
        };
        if let Some((receiver, request, owner)) = named
            && let Some(Purpose::Send(transfer)) = self.current.and_then(|current| self.requests.get(&current))
        {
            let reservation = transfer.reservation;
            self.say(receiver, Line::Address(request, reservation, owner));
        }
        self.say(to, Line::Agree(message));
    }

    fn reply(&mut self, Token(token): Token, result: Result<(), Error>) {
        match self.requests.remove(&token) {
            Some(Purpose::Send(transfer)) => {
                let why = transfer.kernel_error;
                self.requesters.give_back(identity(transfer.from));
                self.finish(transfer, result.map_err(|error| reason(error, why)));
            }
            Some(Purpose::Recall(number)) => {
                // The memory around it is being revoked, and the rest goes with it.
                let result = if result == Err(Error::MemoryWithdrawn) { Ok(()) } else { result };
                self.recalled(number, result.map_err(|error| reason(error, None)));
            }
            None => {}
        }
    }

    fn export(&mut self, object: ObjectId, shape: &Shape, Token(token): Token) -> Result<(), Error> {
        let Some(Purpose::Send(transfer)) = self.requests.get_mut(&token) else { return Err(Error::Kernel) };
        let slot = transfer.slot.ok_or(Error::Kernel)?;
        if !self.granters.may_take(Client::of_badge(transfer.from)) {
            return Err(Error::TooManyExports);
        }
        if let Err(kernel_error) = self.kernel.export(slot) {
            transfer.kernel_error = Some(kernel_error);
            return Err(match kernel_error {
                KernelError::Lent => Error::Lent,
                KernelError::Busy => Error::InUse,
                KernelError::Borrowed => Error::Borrowed,
                _ => Error::Kernel,
            });
        }
        transfer.slot = None;
        self.granters.take(Client::of_badge(transfer.from));
        self.exported_caps.insert(object, ExportedCap { slot, shape: *shape, granter: transfer.from });
        Ok(())
    }

    fn unexport(&mut self, object: ObjectId) {
        let Some(exported_cap) = self.exported_caps.remove(&object) else { return };
        self.granters.give_back(identity(exported_cap.granter));
        if !self.release(exported_cap.slot) {
            self.pending_unexports.push(exported_cap.slot);
        } else if exported_cap.is_own() && exported_cap.shape.kind == Kind::Untyped {
            self.returned.push(exported_cap.shape.base);
        }
    }

    fn import(&mut self, object: ObjectId, shape: &Shape, rights: Rights, requester: Name) -> Result<(), Error> {
        if !self.may_arrive(requester) {
            return Err(Error::NoReceiver);
        }
        if let Some(root) = self.roots.get(&object) {
            let (slot, kind) = (root.slot, root.shape.kind);
            return self.deliver(object, (slot, kind), rights, requester);
        }
        let slot = self.kernel.import(shape).map_err(|_| Error::Kernel)?;
        if let Err(error) = self.deliver(object, (slot, shape.kind), rights, requester) {
            self.kernel.delete(slot);
            return Err(error);
        }
        self.roots.insert(object, Root { slot, shape: *shape, is_kept: false, link: None });
        Ok(())
    }

    fn hand_over(&mut self, object: ObjectId, rights: Rights, requester: (Core, RequestId)) -> Result<(), Error> {
        if !self.may_arrive(requester) {
            return Err(Error::NoReceiver);
        }
        let exported_cap = self.exported_caps.get(&object).ok_or(Error::Kernel)?;
        let (slot, kind) = (exported_cap.slot, exported_cap.shape.kind);
        self.deliver(object, (slot, kind), rights, requester)
    }

    fn delete(&mut self, object: ObjectId) {
        self.deletions.push_back(object);
    }

    fn close(&mut self, object: ObjectId) -> Result<(), Error> {
        let root = self.roots.get(&object).ok_or(Error::Kernel)?;
        if self.kernel.is_used(root.slot) {
            return Err(Error::InUse);
        }
        let slot = root.slot;
        self.roots.remove(&object);
        self.kernel.delete(slot);
        Ok(())
    }

    fn give_back(&mut self, object: ObjectId) -> Result<(), Error> {
        self.close(object)
    }
}
