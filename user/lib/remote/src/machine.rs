//! The state of one core's monitor, and its step function: an input in, effects out.

use tench_abi::Rights;

use crate::asks::Asks;
use crate::copies::{Copies, Copy};
use crate::error::{Error, Fault, FaultKind};
use crate::exports::{Export, Exports, Holder};
use crate::losses::Losses;
use crate::message::Message;
use crate::object::{Core, Cores, MAX_CORES, ObjectId, RequestId, Send, Sent, Shape, Token};
use crate::requests::{Purpose, Requests};

/// Sizes of a monitor's tables. All memory is allocated at the start. Objects are found by name in constant or
/// logarithmic time; sending an own object searches the exports for its shape, and a withdrawal searches for objects
/// made from the withdrawn one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Maximum number of objects of this core with copies on other cores, at most 2²⁴.
    pub exports: usize,
    /// Maximum number of pairs of such an object and a core with copies of it.
    pub holders: usize,
    /// Maximum number of objects of other cores with copies here.
    pub copies: usize,
    /// Maximum number of pending requests of clients.
    pub requests: usize,
}

impl Limits {
    /// Returns the maximum number of messages on the way from one core to another, if all `cores` cores have these
    /// limits. The monitor's queue for messages that do not fit into a channel has this length.
    ///
    /// Each request has at most one `Ask`, `Grant`, `Taken` or `Reply` under way, and each grant at most one `Release`
    /// that was not read when it was sent. The rest is one per entry of a table.
    pub const fn messages(&self, cores: usize) -> usize {
        let asked = 2 * self.requests;
        let granted = 3 * cores * self.requests;
        asked + granted + self.exports + 2 * self.copies + cores
    }
}

/// Input of a monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// A client wants a capability to be sent to another core. The reply is due when it has arrived.
    Send {
        /// Name of the request.
        token: Token,
        /// The transfer request.
        send: Send,
    },
    /// A client whose revocation failed with `RemoteCopies` wants an object of this core to be withdrawn from all
    /// others. The reply is due when no core has a copy, or an object made from one.
    Revoke {
        /// Name of the request.
        token: Token,
        /// The object, which is named by the exported capability that the kernel met.
        object: ObjectId,
    },
    /// A client gives borrowed memory back before it is revoked. The reply is immediate.
    GiveBack {
        /// Name of the request.
        token: Token,
        /// The memory.
        object: ObjectId,
    },
    /// The kernel reports that a remote object has no copies left but the monitor's own.
    Unused {
        /// The object.
        object: ObjectId,
    },
    /// The kernel has completed [`Effects::delete`].
    Deleted {
        /// The object.
        object: ObjectId,
    },
    /// A message has arrived.
    Message {
        /// The sender, as known from the channel, not from the message.
        from: Core,
        /// The message.
        message: Message,
    },
    /// A core has stopped for good. Each live core gets this input eventually.
    Lost {
        /// The lost core.
        core: Core,
    },
}

/// Executor of a monitor's effects in a step. All take place in order and at once, except [`delete`](Effects::delete),
/// which takes time.
pub trait Effects {
    /// Sends `message` to `to`, after all messages sent there before. There is room: [`Limits::messages`].
    fn send(&mut self, to: Core, message: Message);

    /// Replies to a client.
    fn reply(&mut self, token: Token, result: Result<(), Error>);

    /// Makes the kernel export the capability that came with the request `token`. While it is exported, the object
    /// lives, its memory is not reused, and a revocation that meets it fails.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::Lent`] if untyped memory is already exported, with [`Error::InUse`] if something was made
    /// from untyped memory, and with [`Error::Kernel`] if the kernel refuses for another reason.
    fn export(&mut self, object: ObjectId, shape: &Shape, token: Token) -> Result<(), Error>;

    /// Makes the kernel delete the exported capability. If it was the last capability to the object, its memory is
    /// free.
    fn unexport(&mut self, object: ObjectId);

    /// Makes the kernel create a remote copy, under the root for this object, which it creates if there is none; and
    /// delivers it to the receiver for which `request` of the core `requester` is meant.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::Kernel`] if the kernel refuses, and with [`Error::NoReceiver`] if nobody can receive it;
    /// then nothing has changed.
    fn import(
        &mut self,
        object: ObjectId,
        shape: &Shape,
        rights: Rights,
        requester: (Core, RequestId),
    ) -> Result<(), Error>;

    /// Makes a copy of the exported capability on the owner's own core, and delivers it to the receiver for which
    /// `request` of the core `requester` is meant.
    ///
    /// # Errors
    ///
    /// Fails as [`import`](Self::import).
    fn hand_over(&mut self, object: ObjectId, rights: Rights, requester: (Core, RequestId)) -> Result<(), Error>;

    /// Makes the kernel delete the root, all copies below it and everything made from them, including objects made
    /// meanwhile and exported capabilities that it meets (of objects that are [given up](Export::given_up)).
    /// [`Input::Deleted`] follows.
    fn delete(&mut self, object: ObjectId);

    /// Makes the kernel delete the root if nothing lies below it.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::InUse`] if something does.
    fn close(&mut self, object: ObjectId) -> Result<(), Error>;

    /// Makes the kernel delete borrowed memory and its root if nothing was made from it.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::InUse`] if something was.
    fn give_back(&mut self, object: ObjectId) -> Result<(), Error>;
}

/// The state of one core's monitor.
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
    /// Returns the monitor of `core`, one of `cores`, with empty tables; `None` if there is no such core.
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

    /// Processes `input`.
    ///
    /// # Errors
    ///
    /// Returns a [`Fault`] if the input is one that no correct monitor or kernel would send. It was counted, and is
    /// done with.
    pub fn step(&mut self, input: Input, effects: &mut impl Effects) -> Result<(), Fault> {
        let done = match input {
            Input::Send { token, send } => {
                if let Err(error) = self.send(token, &send, effects) {
                    effects.reply(token, Err(error));
                }
                Ok(())
            }
            Input::Revoke { token, object } => {
                self.revoke(token, object, effects);
                Ok(())
            }
            Input::GiveBack { token, object } => {
                let result = self.give_back(object, effects);
                effects.reply(token, result);
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

    fn message(&mut self, from: Core, message: Message, effects: &mut impl Effects) -> Result<(), FaultKind> {
        if !self.cores.has(from) || from == self.core {
            return Err(FaultKind::UnknownCore);
        }
        if self.losses.has(from) {
            // The message was on its way when its sender stopped. The state between the two cores has been cleaned up.
            return Ok(());
        }
        match message {
            Message::Ask { object, to, rights, request } => self.asked(from, object, to, rights, request, effects),
            Message::Reply { object, to, request, result } => {
                self.handle_reply(from, object, to, request, result, effects)
            }
            Message::Grant { object, shape, rights, count, requester, request } => {
                self.granted(from, object, &shape, rights, count, (requester, request), effects)
            }
            Message::Taken { object, count, requester, request, result } => {
                self.taken(from, object, count, (requester, request), result, effects)
            }
            Message::Release { object, count } => self.released(from, object, count, effects),
            Message::Withdraw { object, count } => self.withdraw(from, object, count, effects),
            Message::Withdrawn { object, count, tainted } => self.withdrawn(from, object, count, tainted, effects),
            Message::Gone { core, tainted } => self.gone(from, core, tainted, effects),
        }
    }

    /// Sends a message, unless to a core that has stopped.
    pub(crate) fn send_to(&self, to: Core, message: Message, effects: &mut impl Effects) {
        if !self.losses.has(to) {
            effects.send(to, message);
        }
    }

    /// Fails unless a copy can go from here to `to`.
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
            Sent::Remote(object) => self.send_remote(token, object, send.to, send.rights, effects),
        }
    }

    /// Returns the core of this monitor.
    pub fn core(&self) -> Core {
        self.core
    }

    /// Returns the number of invalid inputs.
    pub fn faults(&self) -> u64 {
        self.faults
    }

    /// Returns the exported objects of this core.
    pub fn exports(&self) -> impl Iterator<Item = (ObjectId, &Export)> {
        self.exports.iter()
    }

    /// Returns the cores that may have copies of an object of this core.
    pub fn holders(&self, object: ObjectId) -> &[Holder] {
        self.exports.holders(object)
    }

    /// Returns the remote objects of which there are copies here.
    pub fn copies(&self) -> impl Iterator<Item = &Copy> {
        self.copies.iter()
    }

    /// Returns the number of pending requests of clients.
    pub fn requests(&self) -> usize {
        self.requests.len()
    }

    /// Returns the other cores that have to send a message, or to stop, before the operations under way here continue:
    /// those for which a client of this core waits, and those that this core withdraws because another one does. The
    /// monitor looks among these for cores that may have stopped.
    pub fn awaited(&self) -> Cores {
        let sent = self.requests.purposes().fold(Cores::NONE, |sum, purpose| match purpose {
            Purpose::Send { object, to } => sum.with(to).with(object.owner),
            // These objects are among those that are being withdrawn.
            Purpose::Revoke { .. } => sum,
        });
        let withdrawn = self.exports.iter().filter(|(_, export)| export.withdrawing && !export.given_up);
        let all = withdrawn.fold(sent, |sum, (object, export)| {
            let holders = self.exports.holders(object).iter();
            holders.fold(sum.and(self.losses.unsettled(export.tainted)), |sum, holder| sum.with(holder.core))
        });
        all.without(Cores::NONE.with(self.core))
    }

    /// Replies to all clients that wait for the end of a withdrawal.
    pub(crate) fn reply_to_revokes(&mut self, ended: ObjectId, result: Result<(), Error>, effects: &mut impl Effects) {
        let waits = |purpose: &Purpose| matches!(*purpose, Purpose::Revoke { object } if object == ended);
        while let Some(token) = self.requests.take(waits) {
            effects.reply(token, result);
        }
    }
}
