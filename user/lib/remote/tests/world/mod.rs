//! A world of some cores with their monitors, kernels, channels and clients, in which one event happens at a time.
#![allow(dead_code, reason = "each test uses a part of it")]

pub mod judge;
pub mod kernel;
pub mod random;
pub mod script;

use std::collections::VecDeque;
use std::sync::Arc;

use kernel::{Kernel, Name};
use script::{Mistake, Op, Script};
use tench_abi::Rights;
use tench_remote::{
    Core, Cores, Effects, Error, Input, Kind, Machine, Message, ObjectId, RequestId, Send, Sent, Shape, Token,
};

pub fn core(number: u8) -> Core {
    Core::new(number).unwrap()
}

/// A message on its way, with information that no monitor could have.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tagged {
    pub message: Message,
    /// For a grant: the object, and how often it had been revoked when the grant was sent.
    pub granted: Option<(Name, u16)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Waits {
    No,
    /// Waits for the reply to a transfer request.
    ForSend,
    /// Waits for the reply to the revocation of this object, after which its own revocation begins anew.
    ForRevoke(Name),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Thread {
    /// Number of operations done.
    pub done: u16,
    /// Number of requests made.
    pub asked: u16,
    pub waits: Waits,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub machines: Vec<Arc<Machine>>,
    pub kernels: Vec<Arc<Kernel>>,
    /// Channels from one core to another, at index `from * cores + to`.
    pub channels: Vec<VecDeque<Tagged>>,
    pub threads: Vec<Thread>,
    /// Bit set of the objects that were made already.
    pub made: u64,
    /// Number of completed revocations of each object.
    pub revoked: Vec<u16>,
    /// Bit set of the cores that have stopped.
    pub lost: u64,
    /// For each core, bit set of the losses of which it has heard.
    pub heard: Vec<u64>,
    pub stalled: Option<u8>,
    pub hostile: Option<u8>,
    /// The first violation found.
    pub wrong: Option<&'static str>,
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A thread performs its next operation.
    Run(u8),
    /// A thread lacks what it needs for its next operation, and skips it.
    Skip(u8),
    /// A message arrives: the one at this index of the channel from one core to another.
    Deliver(u8, u8, u8),
    /// The kernel of a core has deleted a remote object.
    Deleted(u8, Name),
    /// The kernel of a core finds that a remote object is unused.
    Unused(u8, Name),
    /// A core stops.
    Lose(u8),
    /// A core hears that another has stopped.
    Hear(u8, u8),
    /// A core stalls: it does nothing more.
    Stall(u8),
}

impl World {
    pub fn new(script: &Script) -> World {
        let cores = script.cores as usize;
        let mut kernels = vec![Kernel::default(); cores];
        for &(at, name) in &script.start {
            kernels[at as usize].add(name, script.objects[name as usize].shape, None, None);
        }
        let machine = |at| Arc::new(Machine::new(core(at), script.cores, &script.limits).unwrap());
        World {
            machines: (0..script.cores).map(machine).collect(),
            kernels: kernels.into_iter().map(Arc::new).collect(),
            channels: vec![VecDeque::new(); cores * cores],
            threads: vec![Thread { done: 0, asked: 0, waits: Waits::No }; script.threads.len()],
            made: script.start.iter().fold(0, |made, &(_, name)| made | 1 << name),
            revoked: vec![0; script.objects.len()],
            lost: 0,
            heard: vec![0; cores],
            stalled: None,
            hostile: script.hostile,
            wrong: None,
        }
    }

    /// Returns whether a core still acts.
    pub fn runs(&self, at: u8) -> bool {
        self.lives(at) && self.stalled != Some(at) && self.hostile != Some(at)
    }

    /// Returns whether a core's capabilities count.
    pub fn lives(&self, at: u8) -> bool {
        self.lost & 1 << at == 0 && self.hostile != Some(at)
    }

    /// Returns how often `name`, or an object from which it was made, was revoked.
    fn revocations(&self, script: &Script, name: Name) -> u16 {
        (0..).zip(&self.revoked).filter(|&(other, _)| script.is_below(name, other)).map(|(_, count)| count).sum()
    }

    /// Lists all events that can happen next.
    pub fn events(&self, script: &Script, events: &mut Vec<Event>) {
        if self.wrong.is_some() {
            return;
        }
        for (index, (at, _)) in (0..).zip(&script.threads) {
            if self.runs(*at) && self.can_run(script, index as usize) {
                events.push(Event::Run(index));
            } else if script.impatient && self.runs(*at) && self.next_op(script, index as usize).is_some() {
                events.push(Event::Skip(index));
            }
        }
        for from in 0..script.cores {
            for to in (0..script.cores).filter(|&to| self.runs(to)) {
                let channel = &self.channels[(from * script.cores + to) as usize];
                let deliverable = if script.mistake == Some(Mistake::AnyOrder) { channel.len() } else { 1 };
                let deliverable = deliverable.min(channel.len()) as u8;
                events.extend((0..deliverable).map(|index| Event::Deliver(from, to, index)));
            }
        }
        for at in (0..script.cores).filter(|&at| self.runs(at)) {
            for node in &self.kernels[at as usize].nodes {
                if node.deleting {
                    events.push(Event::Deleted(at, node.name));
                } else if self.is_unused(at, node) {
                    events.push(Event::Unused(at, node.name));
                }
            }
            let unheard = self.lost & !self.heard[at as usize];
            events.extend((0..script.cores).filter(|&lost| unheard & 1 << lost != 0).map(|lost| Event::Hear(at, lost)));
        }
        events.extend(script.loses.iter().filter(|&&at| self.lives(at)).map(|&at| Event::Lose(at)));
        if let (None, Some((at, _))) = (self.stalled, &script.stalls) {
            events.push(Event::Stall(*at));
        }
    }

    fn is_unused(&self, at: u8, node: &kernel::Node) -> bool {
        let held = |object| {
            let mut copies = self.machines[at as usize].copies();
            copies.any(|copy| copy.object == object && copy.stage == tench_remote::Stage::Held)
        };
        node.copies == 0 && node.root.is_some_and(held) && !self.kernels[at as usize].has_children(node.name)
    }

    /// Returns a thread's next operation, if it does not wait for a reply.
    fn next_op(&self, script: &Script, index: usize) -> Option<Op> {
        let thread = &self.threads[index];
        script.threads[index].1.get(thread.done as usize).filter(|_| thread.waits == Waits::No).copied()
    }

    pub fn can_run(&self, script: &Script, index: usize) -> bool {
        let Some(op) = self.next_op(script, index) else { return false };
        let kernel = &self.kernels[script.threads[index].0 as usize];
        let has = |name| kernel.get(name).filter(|node| node.copies > 0);
        match op {
            Op::Send(name, _) => has(name).is_some(),
            Op::Revoke(name) => has(name).is_some_and(|node| node.root.is_none()),
            Op::Delete(name) => has(name).is_some() && !kernel.has_children(name),
            Op::Copy(name) => has(name).is_some_and(|node| node.copies < 3),
            Op::GiveBack(name) => has(name).is_some_and(|node| node.root.is_some()),
            Op::Retype(of, name) => {
                self.made & 1 << name == 0 && kernel.can_retype(of, &script.objects[name as usize].shape)
            }
        }
    }

    /// Performs an event.
    pub fn happen(&mut self, script: &Script, event: Event) {
        match event {
            Event::Run(index) => self.run(script, index as usize),
            Event::Skip(index) => self.threads[index as usize].done += 1,
            Event::Deliver(from, to, index) => {
                let channel = &mut self.channels[(from * script.cores + to) as usize];
                let Some(Tagged { message, granted }) = channel.remove(index as usize) else { return };
                self.step(script, to, Input::Message { from: core(from), message }, granted);
            }
            Event::Deleted(at, name) => {
                let kernel = Arc::make_mut(&mut self.kernels[at as usize]);
                let object = kernel.get(name).and_then(|node| node.root);
                let met = kernel.finish_deleting(name);
                let given_up = |object: &ObjectId| {
                    let mut exports = self.machines[at as usize].exports();
                    exports.any(|(other, export)| other == *object && export.given_up)
                };
                if !met.iter().all(given_up) {
                    self.wrong = Some("an exported capability was deleted that stands for something");
                }
                if let Some(object) = object.filter(|_| script.mistake != Some(Mistake::EarlyDeleted)) {
                    self.step(script, at, Input::Deleted { object }, None);
                }
            }
            Event::Unused(at, name) => {
                let object = self.kernels[at as usize].get(name).and_then(|node| node.root);
                if let Some(object) = object {
                    self.step(script, at, Input::Unused { object }, None);
                }
            }
            Event::Lose(at) => {
                self.lost |= 1 << at;
                for from in 0..script.cores {
                    self.channels[(from * script.cores + at) as usize].clear();
                }
            }
            Event::Hear(at, lost) => {
                self.heard[at as usize] |= 1 << lost;
                self.step(script, at, Input::Lost { core: core(lost) }, None);
                if script.mistake == Some(Mistake::Unsettled) {
                    for from in (0..script.cores).filter(|&from| from != at && from != lost) {
                        let message = Message::Gone { core: core(lost), tainted: Cores::NONE };
                        self.step(script, at, Input::Message { from: core(from), message }, None);
                    }
                }
            }
            Event::Stall(at) => self.stalled = Some(at),
        }
    }

    fn run(&mut self, script: &Script, index: usize) {
        let (at, ops) = &script.threads[index];
        let kernel = Arc::make_mut(&mut self.kernels[*at as usize]);
        let thread = &mut self.threads[index];
        let Some(&op) = ops.get(thread.done as usize) else { return };
        let token = Token((index as u64) << 16 | u64::from(thread.asked));
        let input = match op {
            Op::Copy(name) => {
                thread.done += 1;
                kernel.get_mut(name).unwrap().copies += 1;
                return;
            }
            Op::Delete(name) => {
                thread.done += 1;
                return kernel.delete_copy(name);
            }
            Op::Retype(of, name) => {
                thread.done += 1;
                self.made |= 1 << name;
                return kernel.add(name, script.objects[name as usize].shape, Some(of), None);
            }
            Op::Revoke(name) => match kernel.remote_copies(name) {
                None => {
                    thread.done += 1;
                    return kernel.revoke(name, 1);
                }
                Some(object) => {
                    let met = kernel.nodes.iter().find(|node| node.exported == Some(object)).unwrap().name;
                    thread.waits = Waits::ForRevoke(met);
                    Input::Revoke { token, object }
                }
            },
            Op::GiveBack(name) => {
                thread.waits = Waits::ForSend;
                Input::GiveBack { token, object: kernel.get(name).unwrap().root.unwrap() }
            }
            Op::Send(name, to) => {
                let node = kernel.get(name).unwrap();
                thread.waits = Waits::ForSend;
                let what = node.root.map_or(Sent::Own(node.shape), Sent::Remote);
                let rights = if node.shape.kind == Kind::Untyped { Rights::empty() } else { Rights::READ };
                Input::Send { token, send: Send { what, to: core(to), rights } }
            }
        };
        thread.asked += 1;
        self.step(script, *at, input, None);
    }

    pub fn step(&mut self, script: &Script, at: u8, input: Input, granted: Option<(Name, u16)>) {
        let mut machine = self.machines[at as usize].clone();
        let mut executor = Executor { world: self, script, at, granted, early: Vec::new() };
        let result = Arc::make_mut(&mut machine).step(input, &mut executor);
        let early = executor.early;
        self.machines[at as usize] = machine;
        let is_honest = match input {
            // The owner passes on the receiver's result.
            Input::Message { message: Message::Reply { to, .. }, from } => {
                !script.is_hostile(to) && !script.is_hostile(from)
            }
            Input::Message { from, .. } => !script.is_hostile(from),
            _ => true,
        };
        if result.is_err() && script.mistake.is_none() && is_honest {
            self.wrong = Some("a message of an honest monitor was taken for a fault");
        }
        for input in early {
            self.step(script, at, input, None);
        }
    }

    fn reply(&mut self, script: &Script, at: u8, token: Token, result: Result<(), Error>) {
        let index = (token.0 >> 16) as usize;
        let thread = &mut self.threads[index];
        let waits = std::mem::replace(&mut thread.waits, Waits::No);
        if waits == Waits::No || u64::from(thread.asked) != (token.0 & 0xffff) + 1 {
            self.wrong = Some("a request got two replies");
        }
        match waits {
            Waits::ForRevoke(name) if result.is_ok() => {
                self.revoked[name as usize] += 1;
                let survives = |node: &kernel::Node| script.is_below(node.name, name);
                let others = (0..script.cores).filter(|&other| other != at && self.lives(other));
                if others.map(|other| &self.kernels[other as usize]).any(|kernel| kernel.nodes.iter().any(survives)) {
                    self.wrong = Some("a capability survives its revocation");
                }
            }
            // The rest happens when the memory around it has been withdrawn.
            Waits::ForRevoke(_) if result == Err(Error::MemoryWithdrawn) => {}
            Waits::No => {}
            Waits::ForSend | Waits::ForRevoke(_) => self.threads[index].done += 1,
        }
    }
}

/// The executor of a monitor's effects on its world.
struct Executor<'a> {
    world: &'a mut World,
    script: &'a Script,
    at: u8,
    /// The grant that is being received.
    granted: Option<(Name, u16)>,
    /// Inputs that a deliberate mistake adds after this step.
    early: Vec<Input>,
}

impl Executor<'_> {
    fn kernel(&mut self) -> &mut Kernel {
        Arc::make_mut(&mut self.world.kernels[self.at as usize])
    }
}

impl Effects for Executor<'_> {
    fn send(&mut self, to: Core, message: Message) {
        let kernel = &self.world.kernels[self.at as usize];
        let granted = match message {
            Message::Grant { object, .. } => kernel.nodes.iter().find(|node| node.exported == Some(object)),
            _ => None,
        };
        let granted = granted.map(|node| (node.name, self.world.revocations(self.script, node.name)));
        match (self.script.mistake, message) {
            (Some(Mistake::NotWaiting), Message::Withdraw { object, count }) => {
                self.early.push(Input::Message {
                    from: to,
                    message: Message::Withdrawn { object, count, tainted: Default::default() },
                });
            }
            (Some(Mistake::NotWaiting), Message::Withdrawn { .. }) => return,
            (Some(Mistake::Unsettled), Message::Gone { .. }) => return,
            _ => {}
        }
        let to = to.index() as u8;
        if self.world.lives(to) {
            let channel = &mut self.world.channels[(self.at * self.script.cores + to) as usize];
            channel.push_back(Tagged { message, granted });
            if channel.len() > self.script.limits.messages(self.script.cores as usize) {
                self.world.wrong = Some("more messages are under way than there can be");
            }
        }
    }

    fn reply(&mut self, token: Token, result: Result<(), Error>) {
        self.world.reply(self.script, self.at, token, result);
    }

    fn export(&mut self, object: ObjectId, shape: &Shape, token: Token) -> Result<(), Error> {
        let (_, ops) = &self.script.threads[(token.0 >> 16) as usize];
        let thread = &self.world.threads[(token.0 >> 16) as usize];
        let Some(&Op::Send(name, _)) = ops.get(thread.done as usize) else {
            self.world.wrong = Some("an exported capability was made for a request that is none");
            return Err(Error::Kernel);
        };
        if self.script.objects[name as usize].shape != *shape {
            self.world.wrong = Some("an exported capability was made of another object");
        }
        self.kernel().export(name, object)
    }

    fn unexport(&mut self, object: ObjectId) {
        if let Err(wrong) = self.kernel().unexport(object) {
            self.world.wrong = Some(wrong);
        }
    }

    fn import(&mut self, object: ObjectId, shape: &Shape, _: Rights, _: (Core, RequestId)) -> Result<(), Error> {
        if self.script.is_hostile(object.owner) {
            // A kernel imports no memory for retyping that others have, here or elsewhere: two roots do not overlap
            // unless one was lent by this core.
            let is_known = self.script.objects.iter().any(|object| kernel::overlap(&object.shape, shape));
            return if is_known && shape.kind == Kind::Untyped { Err(Error::Kernel) } else { Ok(()) };
        }
        let Some((name, revocations)) = self.granted else {
            self.world.wrong = Some("a copy came out of nowhere");
            return Err(Error::Kernel);
        };
        if revocations != self.world.revocations(self.script, name) {
            self.world.wrong = Some("a copy appears that was sent before the reply to its revocation");
        }
        let kernel = self.kernel();
        match kernel.get_mut(name) {
            Some(node) if node.root == Some(object) => node.copies += 1,
            Some(_) => self.world.wrong = Some("a copy came to its owner"),
            None => kernel.add(name, *shape, None, Some(object)),
        }
        Ok(())
    }

    fn hand_over(&mut self, object: ObjectId, _: Rights, _: (Core, RequestId)) -> Result<(), Error> {
        let kernel = self.kernel();
        let node = kernel.nodes.iter_mut().find(|node| node.exported == Some(object)).ok_or(Error::Kernel)?;
        node.copies += 1;
        Ok(())
    }

    fn delete(&mut self, object: ObjectId) {
        if self.script.is_hostile(object.owner) {
            return self.early.push(Input::Deleted { object });
        }
        let node = self.kernel().nodes.iter_mut().find(|node| node.root == Some(object));
        match node {
            Some(node) if !node.deleting => node.deleting = true,
            _ => self.world.wrong = Some("what is not there is to be deleted"),
        }
        if self.script.mistake == Some(Mistake::EarlyDeleted) {
            // The current step comes first.
            self.early.push(Input::Deleted { object });
        }
    }

    fn close(&mut self, object: ObjectId) -> Result<(), Error> {
        if self.script.is_hostile(object.owner) {
            return Ok(());
        }
        self.kernel().close(object, 0)
    }

    fn give_back(&mut self, object: ObjectId) -> Result<(), Error> {
        self.kernel().close(object, 1)
    }
}
