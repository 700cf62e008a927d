//! The meaning of messages, signals and replies, specified as plainly as possible.
//!
//! Objects and threads are numbers, queues are vectors, and every rule is stated once. Nothing here is fast. Which of
//! several ready threads of the highest priority runs is the kernel's choice; [`World::candidates`] returns what it may
//! choose from.

mod endings;
mod signals;

use std::collections::BTreeMap;

use tench_abi::message::{MAX_CAPS, MAX_WORDS, REGISTER_WORDS};
use tench_abi::object::Rights;
use tench_abi::{Error, Tag};

use crate::helping::Standing;

/// The object of a capability, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// An endpoint.
    Endpoint(usize),
    /// A notification.
    Notification(usize),
    /// A reply object.
    Reply(usize),
}

/// A capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capability {
    /// The object that it names.
    pub object: Object,
    /// The operations that it allows.
    pub rights: Rights,
    /// Badge of the capability.
    pub badge: u64,
}

/// The state of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Ready: runs when it has a scheduling context and its turn.
    Ready,
    /// Suspended until it is resumed.
    Suspended,
    /// Waits to send a message.
    Sending {
        /// The endpoint.
        endpoint: usize,
        /// Badge of the capability through which it sends.
        badge: u64,
        /// Set if it calls.
        call: bool,
    },
    /// Waits to receive a message.
    Receiving {
        /// The endpoint.
        endpoint: usize,
        /// The reply object that will hold a caller.
        reply: usize,
    },
    /// Waits for a reply.
    AwaitingReply {
        /// The reply object that holds it.
        reply: usize,
    },
    /// Waits for a signal.
    Waiting {
        /// The notification.
        notification: usize,
    },
}

/// A thread.
#[derive(Clone, Debug)]
pub struct Thread {
    /// State of the thread.
    pub doing: Doing,
    /// Registers `x0`..`x12` of its last system call, or the results.
    pub x: [u64; 13],
    /// The words in its IPC buffer.
    pub words: Vec<u64>,
    /// Capabilities to send: address, and true to move instead of copy.
    pub send_caps: [(u64, bool); MAX_CAPS],
    /// Slots in which it receives capabilities.
    pub receive_slots: [u64; MAX_CAPS],
    /// Set if it has an IPC buffer at all.
    pub has_ipc_buffer: bool,
    /// The scheduling context that is bound to it.
    pub own: Option<usize>,
    /// Upper limit of the priority on its own context: it finishes what it has begun for a thread that can no longer
    /// help.
    pub cap: Option<u64>,
    /// Time at which its wait ends.
    pub deadline: Option<u64>,
    /// Time at which the wait would have ended in which it received the message that it works on.
    pub alarm: Option<u64>,
    /// Set when the alarm's time has passed.
    pub is_alarmed: bool,
    /// Set if it waits without helping, because otherwise it would wait for itself or a height would be too great.
    pub is_helpless: bool,
    /// The reply object that is bound to it.
    pub bound_reply: Option<usize>,
    /// The reply object with which it has received last, if that is not the bound one.
    pub other_reply: Option<usize>,
    /// Set if it sets callers in that reply object aside.
    pub is_deferred: bool,
    /// The notification that is bound to it.
    pub bound_notification: Option<usize>,
    /// The endpoint that it serves.
    pub serves: Option<usize>,
    /// Declared depth: the number of other servers, one behind the other, for which the thread waits while it serves.
    pub depth: u8,
}

/// A reply object.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    /// The thread that waits in it.
    pub caller: Option<usize>,
}

/// The state of the model.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// Threads by number.
    pub threads: Vec<Thread>,
    /// Priorities of scheduling contexts.
    pub priorities: Vec<u64>,
    /// The context and priority on which each thread runs.
    pub standings: Vec<Standing>,
    /// Threads that wait at each endpoint, in the order of their arrival.
    pub endpoints: Vec<Vec<usize>>,
    /// For each notification, the signals not yet received, and the threads that wait for them.
    pub notifications: Vec<(u64, Vec<usize>)>,
    /// Reply objects by number.
    pub replies: Vec<Reply>,
    /// Doorbell lines of the core.
    pub lines: Vec<Line>,
    /// The CSpace that all threads share.
    pub cspace: BTreeMap<u64, Capability>,
    /// Slots that exist.
    pub slots: std::ops::Range<u64>,
    /// The system counter.
    pub now: u64,
}

/// A doorbell line of the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// The notification that it signals, and the bits.
    pub signals: Option<(usize, u64)>,
    /// Set if taking the signal acknowledges the line.
    pub automatic: bool,
    /// Set if the line was notified and has not interrupted since.
    pub is_pending: bool,
    /// Set if the line is unmasked.
    pub is_let_in: bool,
}

/// The result of a call: an error, or what happens to the registers. The code that delivers a message writes it.
type Outcome = Result<Then, Error>;

/// The effect of a successful call on its thread's registers.
#[derive(PartialEq, Eq)]
enum Then {
    /// Clears all of them.
    Clear,
    /// Leaves them: they are written already, or will be later.
    Leave,
}

impl World {
    /// Returns the threads one of which must run now. The list is empty if none can.
    pub fn candidates(&self) -> Vec<usize> {
        let priority = |i: &usize| self.priority(*i);
        let able: Vec<usize> = (0..self.threads.len())
            .filter(|i| self.threads[*i].doing == Doing::Ready && priority(i).is_some())
            .collect();
        let highest = able.iter().map(priority).max().flatten();
        able.into_iter().filter(|i| priority(i) == highest).collect()
    }

    /// Makes a system call as thread `me`, which has set its registers in `x`.
    pub fn call(&mut self, me: usize, operation: tench_abi::Operation) {
        use tench_abi::Operation as Op;
        let outcome = match operation {
            Op::Call => self.send(me, true, true),
            Op::Send => self.send(me, false, true),
            Op::TrySend => self.send(me, false, false),
            Op::Receive => self.receive(me, true),
            Op::TryReceive => self.receive(me, false),
            Op::ReplyReceive => self.reply_receive(me),
            Op::Reply => self.reply(me),
            Op::Signal => self.signal_call(me),
            Op::Yield => Ok(Then::Clear),
            other => panic!("{other} is not a message"),
        };
        match outcome {
            Ok(Then::Clear) => self.set_result(me, 0),
            Ok(Then::Leave) => {}
            Err(error) => self.set_result(me, error as u64),
        }
        self.update_standings();
    }

    /// Clears the result registers of a thread, and sets the code.
    fn set_result(&mut self, thread: usize, code: u64) {
        self.threads[thread].x[..11].fill(0);
        self.threads[thread].x[0] = code;
    }

    /// Returns the capability that `x[register]` names.
    fn named(&self, me: usize, register: usize) -> Result<Capability, Error> {
        self.cspace.get(&self.threads[me].x[register]).copied().ok_or(Error::InvalidCapability)
    }

    fn tag(&self, me: usize) -> Tag {
        Tag(self.threads[me].x[1])
    }

    /// Returns the deadline, if the tag says that there is one.
    fn deadline(&self, me: usize) -> Option<u64> {
        (self.tag(me).0 & Tag::DEADLINE != 0).then_some(self.threads[me].x[12])
    }

    /// Returns true if the deadline of a thread's receive is to be its alarm if it receives before.
    fn wants_alarm(&self, thread: usize) -> bool {
        self.tag(thread).0 & Tag::ALARM != 0
    }

    /// Fails if a message cannot be sent at all.
    fn check_message(&self, me: usize, may_grant: bool) -> Result<(), Error> {
        let tag = self.tag(me);
        if tag.length() > MAX_WORDS || tag.caps() > MAX_CAPS {
            return Err(Error::MessageTooLong);
        }
        if (tag.length() > REGISTER_WORDS || tag.caps() > 0) && !self.threads[me].has_ipc_buffer {
            return Err(Error::NoIpcBuffer);
        }
        if tag.caps() > 0 && !may_grant {
            return Err(Error::MissingRights);
        }
        Ok(())
    }

    /// Specifies `Call`, `Send` and `TrySend`.
    fn send(&mut self, me: usize, call: bool, blocking: bool) -> Outcome {
        let capability = self.named(me, 0)?;
        let Object::Endpoint(endpoint) = capability.object else { return Err(Error::WrongType) };
        let needed = if call { Rights::WRITE | Rights::CALL } else { Rights::WRITE };
        if !capability.rights.contains(needed) {
            return Err(Error::MissingRights);
        }
        if !call && self.serving(endpoint).is_some() {
            return Err(Error::CallsOnly);
        }
        let may_grant = capability.rights.contains(Rights::GRANT);
        self.check_message(me, may_grant)?;
        let receiver = self.endpoints[endpoint].first().copied().filter(|first| self.receives(*first));
        if receiver.is_none() && !blocking {
            return Err(Error::WouldBlock);
        }
        let deadline = self.deadline(me);
        match receiver {
            Some(receiver) => {
                let Doing::Receiving { reply, .. } = self.threads[receiver].doing else { unreachable!() };
                let until = self.threads[receiver].deadline.filter(|_| self.wants_alarm(receiver));
                self.stop_waiting(receiver);
                self.deliver(me, receiver, capability.badge);
                if call {
                    self.wait_until(me, deadline);
                    self.hold(me, receiver, reply);
                } else {
                    self.limit_unhelped(receiver, me);
                }
                self.set_alarm(receiver, until);
            }
            None => {
                self.threads[me].doing = Doing::Sending { endpoint, badge: capability.badge, call };
                self.wait_until(me, deadline);
                self.endpoints[endpoint].push(me);
                self.join(me);
            }
        }
        Ok(if call || receiver.is_none() { Then::Leave } else { Then::Clear })
    }

    /// Sets the deadline of a thread's wait, if it has one. The thread has no alarm then.
    fn wait_until(&mut self, thread: usize, deadline: Option<u64>) {
        self.threads[thread].deadline = deadline;
        if deadline.is_some() {
            self.threads[thread].alarm = None;
        }
    }

    /// Ends the effects of a thread's previous request, after it has replied or before it receives. If it works for no
    /// caller now, its limit on the priority ends, too.
    fn start_afresh(&mut self, thread: usize) {
        let works = self.caller(thread).is_some();
        let t = &mut self.threads[thread];
        t.is_alarmed = false;
        t.cap = t.cap.filter(|_| works);
    }

    /// Returns true if a thread waits to receive.
    fn receives(&self, thread: usize) -> bool {
        matches!(self.threads[thread].doing, Doing::Receiving { .. })
    }

    /// Sets a thread's alarm, if its receive set one and a message came before. Only a thread that now works on a
    /// request keeps it.
    fn set_alarm(&mut self, thread: usize, until: Option<u64>) {
        if self.caller(thread).is_some() || self.threads[thread].cap.is_some() {
            self.threads[thread].alarm = until;
        }
    }

    /// Makes `caller` wait for `server`'s reply, in `reply`; the server works for the caller.
    fn hold(&mut self, caller: usize, server: usize, reply: usize) {
        self.replies[reply].caller = Some(caller);
        self.threads[caller].doing = Doing::AwaitingReply { reply };
        if self.works_for(caller) == Some(server) {
            self.join(caller);
            self.work_for(server, caller);
        }
    }

    /// Ends a thread's use of a reply object as that with which it has received last.
    fn lose_reply(&mut self, thread: usize, reply: usize) {
        let t = &mut self.threads[thread];
        if t.other_reply == Some(reply) {
            (t.other_reply, t.is_deferred) = (None, false);
            self.rejoin(thread);
        }
    }

    /// Makes a thread receive with a reply object. No other thread uses that object then, unless it is bound to it.
    fn receive_with(&mut self, me: usize, (reply, may_help): (usize, bool)) {
        for thread in (0..self.threads.len()).filter(|thread| *thread != me) {
            self.lose_reply(thread, reply);
        }
        let t = &mut self.threads[me];
        t.other_reply = Some(reply).filter(|reply| t.bound_reply != Some(*reply));
        t.is_deferred = t.other_reply.is_some() && !may_help;
    }

    /// Returns the reply object for a receive, and whether a caller in it may help.
    fn reply_for(&self, me: usize) -> Result<(usize, bool), Error> {
        let (reply, may_help) = if self.tag(me).0 & Tag::REPLY != 0 {
            let capability = self.named(me, 11)?;
            let Object::Reply(reply) = capability.object else { return Err(Error::WrongType) };
            if !capability.rights.contains(Rights::WRITE) {
                return Err(Error::MissingRights);
            }
            (reply, capability.rights.contains(Rights::CALL))
        } else {
            (self.threads[me].bound_reply.ok_or(Error::NoReplyObject)?, true)
        };
        let others = self.threads.iter().enumerate().any(|(i, thread)| {
            let waits = matches!(thread.doing, Doing::Receiving { reply: with, .. } if with == reply);
            i != me && (thread.bound_reply == Some(reply) || waits)
        });
        if others { Err(Error::ReplyInUse) } else { Ok((reply, may_help)) }
    }

    /// Returns the object from which `x0` allows to receive.
    fn source(&self, me: usize) -> Result<Object, Error> {
        let capability = self.named(me, 0)?;
        if let Object::Reply(_) = capability.object {
            return Err(Error::WrongType);
        }
        if !capability.rights.contains(Rights::READ) {
            return Err(Error::MissingRights);
        }
        Ok(capability.object)
    }

    /// Specifies `Receive` and `TryReceive`.
    fn receive(&mut self, me: usize, blocking: bool) -> Outcome {
        match self.source(me)? {
            Object::Endpoint(endpoint) => {
                let reply = self.reply_for(me)?;
                if self.replies[reply.0].caller.is_some() {
                    return Err(Error::ReplyInUse);
                }
                self.receive_from(me, endpoint, reply, blocking)
            }
            Object::Notification(notification) => self.wait(me, notification, blocking),
            Object::Reply(_) => unreachable!(),
        }
    }

    /// Specifies `ReplyReceive`.
    fn reply_receive(&mut self, me: usize) -> Outcome {
        let source = self.source(me)?;
        let reply = self.reply_for(me)?;
        self.check_message(me, true)?;
        self.reply_to_caller(me, reply.0);
        if self.current_reply(me) == Some(reply.0) {
            self.start_afresh(me);
        }
        match source {
            Object::Endpoint(endpoint) => self.receive_from(me, endpoint, reply, true),
            Object::Notification(notification) => self.wait(me, notification, true),
            Object::Reply(_) => unreachable!(),
        }
    }

    /// Receives the bound notification's signals, else the first sender's message, else waits.
    fn receive_from(&mut self, me: usize, endpoint: usize, reply: (usize, bool), blocking: bool) -> Outcome {
        let bound = self.threads[me].bound_notification.filter(|bound| self.notifications[*bound].0 != 0);
        let sender = self.senders(endpoint).first().copied();
        if !blocking && bound.is_none() && sender.is_none() {
            return Err(Error::WouldBlock);
        }
        self.receive_with(me, reply);
        let (reply, _) = reply;
        self.start_afresh(me);
        self.threads[me].alarm = None;
        if let Some(bound) = bound {
            self.deliver_signals(me, bound);
            return Ok(Then::Leave);
        }
        let until = self.deadline(me);
        if let Some(sender) = sender {
            let alarm = until.filter(|_| self.wants_alarm(me));
            let Doing::Sending { badge, call, .. } = self.threads[sender].doing else { unreachable!() };
            let deadline = self.threads[sender].deadline;
            self.stop_waiting(sender);
            self.deliver(sender, me, badge);
            if call {
                self.threads[sender].deadline = deadline;
                self.hold(sender, me, reply);
            } else {
                self.limit_unhelped(me, sender);
                self.set_result(sender, 0);
            }
            self.set_alarm(me, alarm);
            return Ok(Then::Leave);
        }
        self.wait_until(me, until);
        self.threads[me].doing = Doing::Receiving { endpoint, reply };
        self.endpoints[endpoint].push(me);
        Ok(Then::Leave)
    }

    /// Specifies `Reply`.
    fn reply(&mut self, me: usize) -> Outcome {
        let reply = if self.threads[me].x[0] == 0 {
            self.threads[me].bound_reply.ok_or(Error::NoReplyObject)?
        } else {
            let capability = self.named(me, 0)?;
            let Object::Reply(reply) = capability.object else { return Err(Error::WrongType) };
            if !capability.rights.contains(Rights::WRITE) {
                return Err(Error::MissingRights);
            }
            reply
        };
        self.check_message(me, true)?;
        if self.replies[reply].caller.is_none() {
            return Err(Error::NoCaller);
        }
        self.reply_to_caller(me, reply);
        if self.current_reply(me) == Some(reply) {
            self.start_afresh(me);
        }
        Ok(Then::Clear)
    }

    /// Replies to the caller in a reply object with `server`'s message.
    fn reply_to_caller(&mut self, server: usize, reply: usize) {
        let Some(caller) = self.replies[reply].caller else { return };
        self.stop_waiting(caller);
        self.deliver(server, caller, 0);
        // Another server may have worked for the caller, and returns to its previous caller with nothing of this one's.
        self.update_standings();
    }

    /// Copies a message from one thread to another, capabilities included.
    fn deliver(&mut self, from: usize, to: usize, badge: u64) {
        let tag = self.tag(from);
        let mut length = tag.length();
        let mut arrived = 0;
        if self.threads[to].has_ipc_buffer {
            for i in REGISTER_WORDS..length {
                self.threads[to].words[i] = self.threads[from].words[i];
            }
            arrived = self.deliver_capabilities(from, to, tag.caps());
        } else {
            length = length.min(REGISTER_WORDS);
        }
        let words = self.threads[from].x;
        let x = &mut self.threads[to].x;
        x[0] = 0;
        x[1] = Tag::new(tag.label(), length).with_caps(arrived).0;
        for i in 2..2 + REGISTER_WORDS {
            x[i] = if i - 2 < length { words[i] } else { 0 };
        }
        x[10] = badge;
    }

    /// Moves or copies capabilities in order, up to the first that cannot be. Returns the number that arrived.
    fn deliver_capabilities(&mut self, from: usize, to: usize, count: usize) -> usize {
        for i in 0..count {
            let ((source, moved), slot) = (self.threads[from].send_caps[i], self.threads[to].receive_slots[i]);
            let Some(capability) = self.cspace.get(&source).copied() else { return i };
            if slot == 0 || !self.slots.contains(&slot) || self.cspace.contains_key(&slot) {
                return i;
            }
            if moved {
                self.cspace.remove(&source);
            }
            self.cspace.insert(slot, capability);
        }
        count
    }
}
