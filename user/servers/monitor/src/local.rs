//! Answers what is asked about names that each core has for itself ([`tench_monitor::names`]), in the place of the name
//! server.
//!
//! A thread that receives in that one's place answers at once, or keeps who waits for a name until somebody registers
//! it. Whoever waits has one of the places of those who wait for other cores.

use alloc::boxed::Box;
use alloc::vec::Vec;

use tench::memory;
use tench::server::Watch;
use tench_monitor::names::{Listed, OwnNames, Subject, subject};
use tench_names::table::{badge_for, check_power};
use tench_names_client::Names;
use tench_names_client::protocol::{Error, MAX_NAME, NamesService};
use tench_protocol::replies::write;
use tench_protocol::wire::Source as Reader;
use tench_protocol::{
    Arrived, Caller, Code, Context, DONE, Encode, Factory, Flow, Given, Later, Powers, Replies, Sent, Text,
};
use tench_sys::{Cap, CapAddress, Endpoint, Message, OWN_SPACE, Received, Reply, Rights};

use crate::endpoints::has_no_room;
use crate::forward::{Inbox, LIMIT, Waiting};
use crate::slots::discard;
use crate::{Result, no_memory};

/// Waits that are checked when a request finds no place.
const LOOKS: usize = 8;

/// The names of this core: each stands for the slot with its server's capability.
pub struct Local {
    names: OwnNames<CapAddress, Waiting>,
}

/// Who lists names: the stand-in's number, and the name after which the next is wanted.
pub type Listing = (u64, Box<str>);

/// A request at hand.
struct Question<'a> {
    names: &'a mut OwnNames<CapAddress, Waiting>,
    inbox: &'a Inbox,
    /// Where a capability for somebody is made before it leaves.
    outgoing: CapAddress,
}

/// What becomes of a request.
pub enum Answered {
    /// It was answered.
    Now,
    /// Whoever asks waits for this name.
    Waits,
}

impl Local {
    /// These names stay here.
    pub const fn new(names: Vec<&'static str>) -> Local {
        Local { names: OwnNames::new(names, LIMIT) }
    }

    /// Registers a server here, by a capability with which everybody may call it.
    pub fn register(&mut self, name: &str, process: u64, service: Cap<Endpoint>) -> Result<()> {
        let slot = memory::take_slot().map_err(no_memory)?;
        service.mint_to(slot, Rights::WRITE | Rights::CALL | Rights::GRANT, 0)?;
        // Nobody waits yet.
        self.names.table.register(name, Caller::alone(process), slot).map(drop).map_err(no_memory)
    }

    /// Whether a request to the name server is about a name that stays here.
    pub fn has(&self, request: &Received) -> bool {
        matches!(subject(request.label(), request.words()), Some(Subject::Name(name)) if self.names.has(name))
    }

    /// Answers such a request, which waits in a reply object.
    pub fn answer(&mut self, request: &Received, inbox: &Inbox, outgoing: CapAddress, reply: Cap<Reply>) -> Answered {
        let (mut message, mut replies) = (Message::new(DONE), Replies::new(reply, Factory::NONE));
        let mut context = Context::new(request.badge(), &mut replies);
        let mut question = Question { names: &mut self.names, inbox, outgoing };
        match Names::dispatch(&mut question, request, &mut context, &mut message) {
            Flow::Later => Answered::Waits,
            Flow::Answer => {
                // Who asked may have gone, or have no slot for it.
                let _ = reply.reply(&message);
                let _ = OWN_SPACE.delete_at(outgoing);
                Answered::Now
            }
        }
    }

    /// Keeps somebody who waits for the name of a request.
    pub fn keep(&mut self, request: &Received, waiting: Waiting) {
        if let Some(Subject::Name(name)) = subject(request.label(), request.words()) {
            self.names.table.wait(name, waiting.asker, waiting);
        }
    }

    /// Takes out those of a family who wait, but have gone without a word. Looks at a few, and at others the next time.
    pub fn take_out(&mut self, family: u64, watch: Watch) -> Vec<Waiting> {
        self.names.table.take_out(Some(family), LOOKS, |waiting| waiting.has_gone(watch))
    }

    /// A process has ended: its names are free. Answers those of it who waited.
    pub fn process_ended(&mut self, process: u64) -> Vec<Waiting> {
        let (slots, waiting) = self.names.table.process_ended(process);
        discard(&slots);
        waiting
    }

    /// What the name server has answered to somebody who lists names: what he is to be told instead, or after which
    /// name the next is to be asked for.
    pub fn listed(&self, after: &str, label: u64, words: &[u64]) -> core::result::Result<Option<Message>, Box<str>> {
        let kept = core::cell::Cell::new(0);
        let there = match label {
            DONE => Reader::new(words, &[], &kept).text(MAX_NAME),
            label if label == Error::Unknown.code() => None,
            _ => return Ok(None),
        };
        match self.names.listed(after, there) {
            Listed::Here(name, owner) => {
                let mut message = Message::new(DONE);
                let found = Text::<MAX_NAME>::new(name).map(|name| (name, owner)).ok_or(Error::Unknown);
                write(&found, &mut message);
                Ok(Some(message))
            }
            Listed::Further => Err(there.unwrap_or_default().into()),
            Listed::There => Ok(None),
        }
    }
}

/// Who lists names by a request.
pub fn listing(service: u64, request: &Received) -> Option<Listing> {
    match subject(request.label(), request.words()) {
        Some(Subject::After(after)) => Some((service, after.into())),
        _ => None,
    }
}

/// The words of a request for the name after another.
pub fn next_after(name: &str) -> Option<Message> {
    let mut message = Message::new(Names::NEXT);
    Text::<MAX_NAME>::new(name)?.encode(&mut message);
    Some(message)
}

impl Question<'_> {
    /// A capability for a process, as the name server makes it: with this badge, if it was registered without one.
    fn endpoint(&self, slot: CapAddress, badge: u64) -> Sent<Endpoint, Given> {
        // Somebody who offered no slot has left his capability here.
        let _ = OWN_SPACE.delete_at(self.outgoing);
        let registered = Cap::<Endpoint>::new(slot);
        // Of a server that has ended there is nothing to copy, and nothing arrives.
        let _ = match registered.identify() {
            Ok(found) if found.badge == 0 => registered.mint_to(self.outgoing, found.rights, badge),
            _ => registered.copy_to(self.outgoing),
        };
        Sent::new(Cap::new(self.outgoing))
    }

    fn forget(&mut self, name: &str, process: u64) -> core::result::Result<(), Error> {
        let slot = self.names.table.unregister(name, process)?;
        discard(&[slot]);
        Ok(())
    }
}

impl NamesService for Question<'_> {
    fn register(
        &mut self,
        caller: Caller,
        powers: Powers,
        _: &mut Replies,
        name: Text<'_, MAX_NAME>,
        endpoint: Arrived<'_, Endpoint>,
    ) -> core::result::Result<(), Error> {
        check_power(&name, powers)?;
        if self.names.table.own(&name, caller.process).is_some() {
            self.forget(&name, caller.process)?;
        }
        self.names.table.check_register(&name, caller)?;
        let slot = memory::take_slot().map_err(|_| Error::Full)?;
        if has_no_room() || endpoint.cap().copy_to(slot).is_err() {
            memory::free_slot(slot);
            return Err(Error::Full);
        }
        let waited = self.names.table.register(&name, caller, slot).inspect_err(|_| discard(&[slot]))?;
        for (_, waiting) in waited {
            let mut message = Message::new(DONE);
            let badge = badge_for(&name, waiting.asker, waiting.powers);
            write::<_, Error>(&Ok(self.endpoint(slot, badge)), &mut message);
            self.inbox.finish(waiting, &message);
        }
        Ok(())
    }

    fn look_up(
        &mut self,
        caller: Caller,
        powers: Powers,
        name: Text<'_, MAX_NAME>,
    ) -> core::result::Result<Sent<Endpoint, Given>, Error> {
        self.names.table.look_up(&name).map(|slot| self.endpoint(slot, badge_for(&name, caller, powers)))
    }

    /// Whoever waits is [kept](Local::keep) by whoever has the reply object.
    fn wait_for(
        &mut self,
        caller: Caller,
        powers: Powers,
        _: Later<'_, Sent<Endpoint, Given>, Error>,
        name: Text<'_, MAX_NAME>,
    ) -> core::result::Result<Option<Sent<Endpoint, Given>>, Error> {
        match self.names.table.look_up(&name) {
            Ok(slot) => Ok(Some(self.endpoint(slot, badge_for(&name, caller, powers)))),
            Err(Error::Unknown) if has_no_room() => Err(Error::Full),
            Err(Error::Unknown) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn unregister(&mut self, caller: Caller, name: Text<'_, MAX_NAME>) -> core::result::Result<(), Error> {
        self.forget(&name, caller.process)
    }

    fn next(&mut self, name: Text<'_, MAX_NAME>) -> core::result::Result<(Text<'_, MAX_NAME>, u64), Error> {
        let (next, owner) = self.names.table.next(&name).ok_or(Error::Unknown)?;
        Ok((Text::new(next).ok_or(Error::Unknown)?, owner))
    }

    fn process_ended(&mut self, _: &mut Replies, process: u64) -> core::result::Result<Option<u64>, Error> {
        let (slots, waiting) = self.names.table.process_ended(process);
        discard(&slots);
        waiting.into_iter().for_each(|waiting| self.inbox.forget(waiting));
        Ok(None)
    }

    fn process_lives(&mut self, _: u64) -> core::result::Result<Option<u64>, Error> {
        Ok(None)
    }
}
