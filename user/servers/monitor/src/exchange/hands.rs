//! What the protocol's steps do: to the kernel, to the mail, and to the lines that wait to be sent.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use tench_abi::power::identity;
use tench_abi::{CapAddress, Error as Refusal, Rights};
use tench_foreign::{Core, Cores, Effects, Error, Kind, MAX_CORES, Message, ObjectId, RequestId, Shape, Token};
use tench_places::{Client, Places};

use super::line::Line;
use super::mail::{Mail, Name};
use super::{Kernel, LIMITS, MONITOR, Parcel, reason};
use crate::proxies::Carried;
use tench_monitor_client::protocol::{Error as Why, place};

/// The original's side: what stands for copies on other cores.
#[derive(Clone, Copy, Debug)]
pub(super) struct StandIn {
    pub slot: CapAddress,
    pub shape: Shape,
    /// Who sent it first: core and process.
    pub giver: u64,
}

impl StandIn {
    /// Whether the monitor itself sent it.
    pub const fn is_own(&self) -> bool {
        place(self.giver).1 == MONITOR
    }
}

/// The copy's side: what all copies here were made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Root {
    pub slot: CapAddress,
    pub shape: Shape,
    /// It stays, whoever uses it: memory that this core was given, or a channel of the monitor itself.
    pub is_kept: bool,
    /// It is the channel of the monitor itself to this core.
    pub link: Option<Core>,
}

/// What a request to the protocol is about.
#[derive(Debug)]
pub(super) enum Purpose<P> {
    /// Something is sent.
    Send(Parcel<P>),
    /// Something is taken back, as one of a [`Recall`].
    Recall(u64),
}

/// Several objects that one client takes back.
#[derive(Debug)]
pub(super) struct Recall<P> {
    pub who: Option<P>,
    /// Who takes it back: a badge without powers.
    pub from: u64,
    pub left: usize,
    pub result: Result<(), Why>,
}

/// Somebody is to be answered.
#[derive(Debug)]
pub enum Done<P> {
    /// With nothing, or with why not.
    Answer(P, Result<(), Why>),
    /// With a letter.
    Letter(P, super::mail::Letter),
}

/// Everything that effects change.
pub(super) struct Hands<K, P> {
    pub core: Core,
    pub kernel: K,
    pub stand_ins: BTreeMap<ObjectId, StandIn>,
    pub roots: BTreeMap<ObjectId, Root>,
    pub requests: BTreeMap<u64, Purpose<P>>,
    pub recalls: BTreeMap<u64, Recall<P>>,
    /// Whose the requests are.
    pub askers: Places,
    /// Whose the objects are that are on other cores.
    pub givers: Places,
    /// Memory that this monitor itself has given away, and that has come back.
    pub returned: Vec<u64>,
    pub mail: Mail<P>,
    pub done: VecDeque<Done<P>>,
    pub deletions: VecDeque<ObjectId>,
    /// Endpoints that go to other cores.
    pub leaving: VecDeque<Parcel<P>>,
    /// Endpoints that came from others, with tickets.
    pub arriving: VecDeque<(Core, u64, Carried)>,
    /// Stand-ins that the kernel did not let go yet.
    pub stubborn: Vec<CapAddress>,
    /// Lines for each core.
    pub lines: Vec<VecDeque<Line>>,
    /// How many that are.
    pub unsaid: usize,
    /// A core has stopped since it was looked.
    pub has_lost: bool,
    /// To which of them there is a channel.
    pub connected: Cores,
    /// Which of them have stopped.
    pub closed: Cores,
    /// To which there should be one.
    pub wanted: Cores,
    /// Which cores want one: who, and to whom.
    pub links: VecDeque<(Core, Core)>,
    /// For which more waits than there can be.
    pub overdue: Cores,
    pub most_lines: usize,
    /// The request that the step at hand is about.
    pub current: Option<u64>,
    pub last: u64,
}

impl<K: Kernel, P> Hands<K, P> {
    pub fn new(core: Core, kernel: K, most_lines: usize) -> Hands<K, P> {
        Hands {
            core,
            kernel,
            stand_ins: BTreeMap::new(),
            roots: BTreeMap::new(),
            requests: BTreeMap::new(),
            recalls: BTreeMap::new(),
            askers: Places::new(LIMITS.requests),
            givers: Places::new(LIMITS.exports),
            returned: Vec::new(),
            mail: Mail::new(),
            done: VecDeque::new(),
            deletions: VecDeque::new(),
            leaving: VecDeque::new(),
            arriving: VecDeque::new(),
            stubborn: Vec::new(),
            lines: (0..MAX_CORES).map(|_| VecDeque::new()).collect(),
            unsaid: 0,
            has_lost: false,
            connected: Cores::NONE,
            closed: Cores::NONE,
            wanted: Cores::NONE,
            links: VecDeque::new(),
            overdue: Cores::NONE,
            most_lines,
            current: None,
            last: 0,
        }
    }

    /// A name for a request.
    pub fn name(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Says something to another core, in the order in which it is said.
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
            self.unsaid += 1;
        } else {
            self.overdue = self.overdue.with(to);
        }
    }

    /// Ends a parcel's way: answers whoever sent it, and keeps nothing of it.
    pub fn finish(&mut self, parcel: Parcel<P>, result: Result<(), Why>) {
        if let Some(slot) = parcel.slot {
            self.kernel.delete(slot);
        }
        if result.is_err() {
            self.return_ticket(parcel.to, parcel.ticket);
        }
        if let Some(who) = parcel.who {
            self.done.push_back(Done::Answer(who, result));
        }
    }

    fn return_ticket(&mut self, to: Core, ticket: u64) {
        if to == self.core {
            self.mail.drop(to, ticket);
        } else {
            self.say(to, Line::Drop(ticket));
        }
    }

    /// One of several objects has been taken back.
    fn recalled(&mut self, number: u64, result: Result<(), Why>) {
        let Some(recall) = self.recalls.get_mut(&number) else { return };
        self.askers.give_back(identity(recall.from));
        recall.left = recall.left.saturating_sub(1);
        recall.result = recall.result.and(result);
        if recall.left == 0
            && let Some(Recall { who: Some(who), result, .. }) = self.recalls.remove(&number)
        {
            self.done.push_back(Done::Answer(who, result));
        }
    }

    /// Takes a stand-in's mark away, and the stand-in. Answers whether the kernel let it go.
    pub fn release(&mut self, slot: CapAddress) -> bool {
        let is_free = self.kernel.unexport(slot).is_ok();
        if is_free {
            self.kernel.delete(slot);
        }
        is_free
    }

    /// Whether somebody here is meant by a name. What a core has asked for that has stopped is nobody's: it names
    /// nobody any more.
    fn may_arrive(&self, name: Name) -> bool {
        !self.closed.has(name.0) && self.mail.may_arrive(name)
    }

    /// A copy for somebody here of what lies in a slot.
    fn deliver(
        &mut self,
        object: ObjectId,
        (slot, kind): (CapAddress, Kind),
        rights: Rights,
        name: Name,
    ) -> Result<(), Error> {
        let copy = self.kernel.copy(slot, kind, rights).map_err(|_| Error::Kernel)?;
        self.mail.arrive(name, object.owner, copy);
        Ok(())
    }
}

impl<K: Kernel, P> Effects for Hands<K, P> {
    fn send(&mut self, to: Core, message: Message) {
        // For whom it is has to be known there; a channel is in order, so at once or before.
        let named = match message {
            Message::Grant { asker, request, .. } if asker == self.core => Some((to, request, self.core)),
            Message::Ask { to: receiver, request, .. } => Some((receiver, request, to)),
            _ => None,
        };
        if let Some((receiver, request, owner)) = named
            && let Some(Purpose::Send(parcel)) = self.current.and_then(|current| self.requests.get(&current))
        {
            let ticket = parcel.ticket;
            self.say(receiver, Line::Address(request, ticket, owner));
        }
        self.say(to, Line::Agree(message));
    }

    fn answer(&mut self, Token(token): Token, result: Result<(), Error>) {
        match self.requests.remove(&token) {
            Some(Purpose::Send(parcel)) => {
                let why = parcel.refusal;
                self.askers.give_back(identity(parcel.from));
                self.finish(parcel, result.map_err(|error| reason(error, why)));
            }
            Some(Purpose::Recall(number)) => {
                // The memory around it is being taken back, and with it what is left.
                let result = if result == Err(Error::MemoryWithdrawn) { Ok(()) } else { result };
                self.recalled(number, result.map_err(|error| reason(error, None)));
            }
            None => {}
        }
    }

    fn export(&mut self, object: ObjectId, shape: &Shape, Token(token): Token) -> Result<(), Error> {
        let Some(Purpose::Send(parcel)) = self.requests.get_mut(&token) else { return Err(Error::Kernel) };
        let slot = parcel.slot.ok_or(Error::Kernel)?;
        if !self.givers.may_take(Client::of_badge(parcel.from)) {
            return Err(Error::TooManyExports);
        }
        if let Err(refusal) = self.kernel.export(slot) {
            parcel.refusal = Some(refusal);
            return Err(match refusal {
                Refusal::Lent => Error::Lent,
                Refusal::Busy => Error::InUse,
                Refusal::Borrowed => Error::Borrowed,
                _ => Error::Kernel,
            });
        }
        parcel.slot = None;
        self.givers.take(Client::of_badge(parcel.from));
        self.stand_ins.insert(object, StandIn { slot, shape: *shape, giver: parcel.from });
        Ok(())
    }

    fn unexport(&mut self, object: ObjectId) {
        let Some(stand_in) = self.stand_ins.remove(&object) else { return };
        self.givers.give_back(stand_in.giver);
        if !self.release(stand_in.slot) {
            self.stubborn.push(stand_in.slot);
        } else if stand_in.is_own() && stand_in.shape.kind == Kind::Untyped {
            self.returned.push(stand_in.shape.base);
        }
    }

    fn import(&mut self, object: ObjectId, shape: &Shape, rights: Rights, asker: Name) -> Result<(), Error> {
        if !self.may_arrive(asker) {
            return Err(Error::NoReceiver);
        }
        if let Some(root) = self.roots.get(&object) {
            let (slot, kind) = (root.slot, root.shape.kind);
            return self.deliver(object, (slot, kind), rights, asker);
        }
        let slot = self.kernel.import(shape).map_err(|_| Error::Kernel)?;
        if let Err(error) = self.deliver(object, (slot, shape.kind), rights, asker) {
            self.kernel.delete(slot);
            return Err(error);
        }
        self.roots.insert(object, Root { slot, shape: *shape, is_kept: false, link: None });
        Ok(())
    }

    fn hand_over(&mut self, object: ObjectId, rights: Rights, asker: (Core, RequestId)) -> Result<(), Error> {
        if !self.may_arrive(asker) {
            return Err(Error::NoReceiver);
        }
        let stand_in = self.stand_ins.get(&object).ok_or(Error::Kernel)?;
        let (slot, kind) = (stand_in.slot, stand_in.shape.kind);
        self.deliver(object, (slot, kind), rights, asker)
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
