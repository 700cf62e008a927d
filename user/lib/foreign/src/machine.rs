//! The state of one core's monitor, and its step: an input in, effects out.

use tench_abi::Rights;

use crate::asks::Asks;
use crate::copies::{Copies, Copy};
use crate::error::{Error, Fault, Why};
use crate::exports::{Export, Exports, Holder};
use crate::losses::Losses;
use crate::message::Message;
use crate::object::{Core, Cores, MAX_CORES, ObjectId, RequestId, Send, Sent, Shape, Token};
use crate::requests::{Purpose, Requests};

/// How much a monitor keeps books of. All memory is allocated at the start. Objects are found by name in constant or
/// logarithmic time; sending one's own object looks through the exports for its shape, and a withdrawal for what was
/// made of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Objects of this core of which there are copies elsewhere, at most 2²⁴.
    pub exports: usize,
    /// Pairs of such an object and a core with copies of it.
    pub holders: usize,
    /// Objects of other cores with copies here.
    pub copies: usize,
    /// Requests of clients that are not answered.
    pub requests: usize,
}

impl Limits {
    /// How many messages there can be at most on the way from one core to another, if all have these limits and there
    /// are `cores` of them: as long a queue the monitor keeps for what does not fit into a channel.
    ///
    /// Each request has at most one `Ask`, `Grant`, `Taken` or `Answer` under way, and each grant at most one `Release`
    /// that was not read when it was sent. The rest is one per entry of a table.
    pub const fn messages(&self, cores: usize) -> usize {
        let asked = 2 * self.requests;
        let granted = 3 * cores * self.requests;
        asked + granted + self.exports + 2 * self.copies + cores
    }
}

/// What happens to a monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// A client wants a capability to be sent to another core. Answered when it has arrived.
    Send {
        /// What to call the request.
        token: Token,
        /// What is asked for.
        send: Send,
    },
    /// A client whose kernel answered `ForeignCopies` wants an object of this core to disappear from all others.
    /// Answered when no core has a copy, nor anything that was made of one.
    Revoke {
        /// What to call the request.
        token: Token,
        /// Which object: the stand-in capability that the kernel met names it.
        object: ObjectId,
    },
    /// A client gives borrowed memory back before it is revoked. Answered at once.
    GiveBack {
        /// What to call the request.
        token: Token,
        /// Which memory.
        object: ObjectId,
    },
    /// The kernel says that a foreign object has no copies left but the monitor's own.
    Unused {
        /// Which object.
        object: ObjectId,
    },
    /// The kernel has done what [`Effects::delete`] told it to.
    Deleted {
        /// Which object.
        object: ObjectId,
    },
    /// A message came.
    Message {
        /// From whom: the channel says so, not the message.
        from: Core,
        /// What it says.
        message: Message,
    },
    /// A core has stopped for good. Each core that is alive hears it at some time.
    Lost {
        /// Which.
        core: Core,
    },
}

/// What a monitor does in a step. All are done in order and at once, but [`delete`](Effects::delete), which takes its
/// time.
pub trait Effects {
    /// Sends `message` to `to`, behind all that was sent there before. There is room: [`Limits::messages`].
    fn send(&mut self, to: Core, message: Message);

    /// Answers a client.
    fn answer(&mut self, token: Token, result: Result<(), Error>);

    /// Has the kernel make a stand-in of the capability that came with the request `token`. While that exists the
    /// object lives, its memory is not reused, and a revocation that meets it is refused.
    ///
    /// # Errors
    ///
    /// [`Error::Lent`] for untyped memory that has a stand-in already, [`Error::InUse`] for untyped memory of which
    /// something was made, [`Error::Kernel`] if the kernel refuses for another reason.
    fn export(&mut self, object: ObjectId, shape: &Shape, token: Token) -> Result<(), Error>;

    /// Has the kernel delete the stand-in. If it was the last capability to the object, its memory is free.
    fn unexport(&mut self, object: ObjectId);

    /// Has the kernel make a foreign copy, under the root for this object, which it makes if there is none; and hands
    /// it to whom `request` of the core `asker` is meant for.
    ///
    /// # Errors
    ///
    /// [`Error::Kernel`] if the kernel refuses, [`Error::NoReceiver`] if nobody can have it; then nothing has changed.
    fn import(
        &mut self,
        object: ObjectId,
        shape: &Shape,
        rights: Rights,
        asker: (Core, RequestId),
    ) -> Result<(), Error>;

    /// Makes a copy of the stand-in on the owner's own core, and hands it to whom `request` of the core `asker` is
    /// meant for.
    ///
    /// # Errors
    ///
    /// As [`import`](Self::import).
    fn hand_over(&mut self, object: ObjectId, rights: Rights, asker: (Core, RequestId)) -> Result<(), Error>;

    /// Has the kernel delete the root, all copies below it and all that was made of them, also what is made while it
    /// does so, and stand-ins that it meets (of objects that are [given up](Export::given_up)). [`Input::Deleted`]
    /// follows.
    fn delete(&mut self, object: ObjectId);

    /// Has the kernel delete the root if nothing lies below it.
    ///
    /// # Errors
    ///
    /// [`Error::InUse`] if something does.
    fn close(&mut self, object: ObjectId) -> Result<(), Error>;

    /// Has the kernel delete borrowed memory and its root if nothing was made of it.
    ///
    /// # Errors
    ///
    /// [`Error::InUse`] if something was.
    fn give_back(&mut self, object: ObjectId) -> Result<(), Error>;
}

/// The books of one core's monitor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Machine {
    pub(crate) core: Core,
    pub(crate) cores: Cores,
    pub(crate) exports: Exports,
    pub(crate) copies: Copies,
    pub(crate) requests: Requests,
    pub(crate) losses: Losses,
    pub(crate) asks: Asks,
    faults: u64,
}

impl Machine {
    /// The monitor of `core`, one of `cores`, with empty books. `None` if there is no such core.
    pub fn new(core: Core, cores: u8, limits: &Limits) -> Option<Machine> {
        if cores as usize > MAX_CORES || core.number() >= cores {
            return None;
        }
        Some(Machine {
            core,
            cores: Cores::first(cores),
            exports: Exports::new(core, limits.exports, limits.holders),
            copies: Copies::new(limits.copies),
            requests: Requests::new(limits.requests),
            losses: Losses::new(cores),
            asks: Asks::new(cores, limits.requests),
            faults: 0,
        })
    }

    /// Takes in `input`.
    ///
    /// # Errors
    ///
    /// A [`Fault`] if the input is nothing that a monitor or kernel in its right mind would say. It was counted, and is
    /// over.
    pub fn step(&mut self, input: Input, effects: &mut impl Effects) -> Result<(), Fault> {
        let done = match input {
            Input::Send { token, send } => {
                if let Err(error) = self.send(token, &send, effects) {
                    effects.answer(token, Err(error));
                }
                Ok(())
            }
            Input::Revoke { token, object } => {
                self.revoke(token, object, effects);
                Ok(())
            }
            Input::GiveBack { token, object } => {
                let result = self.give_back(object, effects);
                effects.answer(token, result);
                Ok(())
            }
            Input::Unused { object } => self.unused(object, effects),
            Input::Deleted { object } => self.deleted(object, effects),
            Input::Message { from, message } => self.message(from, message, effects),
            Input::Lost { core } => self.lose(core, effects),
        };
        done.map_err(|why| {
            self.faults = self.faults.saturating_add(1);
            let from = if let Input::Message { from, .. } = input { from } else { self.core };
            Fault { from, why }
        })
    }

    fn message(&mut self, from: Core, message: Message, effects: &mut impl Effects) -> Result<(), Why> {
        if !self.cores.has(from) || from == self.core {
            return Err(Why::UnknownCore);
        }
        if self.losses.has(from) {
            // It was on its way when its sender stopped. What was between the two has been cleared up.
            return Ok(());
        }
        match message {
            Message::Ask { object, to, rights, request } => self.asked(from, object, to, rights, request, effects),
            Message::Answer { object, to, request, result } => {
                self.answered(from, object, to, request, result, effects)
            }
            Message::Grant { object, shape, rights, count, asker, request } => {
                self.granted(from, object, &shape, rights, count, (asker, request), effects)
            }
            Message::Taken { object, count, asker, request, result } => {
                self.taken(from, object, count, (asker, request), result, effects)
            }
            Message::Release { object, count } => self.released(from, object, count, effects),
            Message::Withdraw { object, count } => self.withdraw(from, object, count, effects),
            Message::Withdrawn { object, count, tainted } => self.withdrawn(from, object, count, tainted, effects),
            Message::Gone { core, tainted } => self.gone(from, core, tainted, effects),
        }
    }

    /// Sends a message, unless to a core that has stopped.
    pub(crate) fn tell(&self, to: Core, message: Message, effects: &mut impl Effects) {
        if !self.losses.has(to) {
            effects.send(to, message);
        }
    }

    /// Whether a copy can go to `to` from here.
    pub(crate) fn check_receiver(&self, to: Core) -> Result<(), Error> {
        if !self.cores.has(to) {
            Err(Error::UnknownCore)
        } else if self.losses.has(to) {
            Err(Error::CoreLost)
        } else {
            Ok(())
        }
    }

    fn send(&mut self, token: Token, send: &Send, effects: &mut impl Effects) -> Result<(), Error> {
        self.check_receiver(send.to)?;
        if send.to == self.core {
            return Err(Error::ToSelf);
        }
        match send.what {
            Sent::Own(shape) => self.send_own(token, shape, send.to, send.rights, effects),
            Sent::Foreign(object) => self.send_foreign(token, object, send.to, send.rights, effects),
        }
    }

    /// The core that these books are of.
    pub fn core(&self) -> Core {
        self.core
    }

    /// How many inputs were senseless.
    pub fn faults(&self) -> u64 {
        self.faults
    }

    /// The objects of this core that have left it.
    pub fn exports(&self) -> impl Iterator<Item = (ObjectId, &Export)> {
        self.exports.iter()
    }

    /// The cores that may have copies of an object of this core.
    pub fn holders(&self, object: ObjectId) -> &[Holder] {
        self.exports.holders(object)
    }

    /// The foreign objects of which there are copies here.
    pub fn copies(&self) -> impl Iterator<Item = &Copy> {
        self.copies.iter()
    }

    /// How many requests of clients are not answered.
    pub fn requests(&self) -> usize {
        self.requests.len()
    }

    /// The other cores that have to say something, or to stop, before what is under way here goes on: what a client of
    /// this core waits for, and what this core takes back because another one does. Who may have stopped is to be
    /// looked for among these.
    pub fn awaited(&self) -> Cores {
        let sent = self.requests.purposes().fold(Cores::NONE, |sum, purpose| match purpose {
            Purpose::Send { object, to } => sum.with(to).with(object.owner),
            // These are among the objects that are being withdrawn.
            Purpose::Revoke { .. } => sum,
        });
        let withdrawn = self.exports.iter().filter(|(_, export)| export.withdrawing && !export.given_up);
        let all = withdrawn.fold(sent, |sum, (object, export)| {
            let holders = self.exports.holders(object).iter();
            holders.fold(sum.and(self.losses.unsettled(export.tainted)), |sum, holder| sum.with(holder.core))
        });
        all.without(Cores::NONE.with(self.core))
    }

    /// Answers all who wait for the end of a withdrawal.
    pub(crate) fn answer_revokes(&mut self, ended: ObjectId, result: Result<(), Error>, effects: &mut impl Effects) {
        let waits = |purpose: &Purpose| matches!(*purpose, Purpose::Revoke { object } if object == ended);
        while let Some(token) = self.requests.take(waits) {
            effects.answer(token, result);
        }
    }
}
