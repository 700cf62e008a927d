//! Replies to requests about names that are local to each core ([`tench_monitor::requests::names`]), in place of the
//! name server.
//!
//! The thread that receives in the name server's place replies at once, or queues the requester until the name is
//! registered. A queued requester counts to the quota of those that wait for other cores.

use alloc::boxed::Box;
use alloc::vec::Vec;

use tench::memory;
use tench::server::Watch;
use tench_monitor::requests::names::{Listed, OwnNames, Subject, subject};
use tench_monitor_interface::Monitor;
use tench_names::table::{badge_for, check_power};
use tench_names_interface::Names;
use tench_names_interface::protocol::{Error, MAX_NAME, NamesService};
use tench_protocol::replies::write;
use tench_protocol::wire::Source as Reader;
use tench_protocol::{
    Arrived, Caller, Code, Context, DONE, Encode, Factory, Flow, Given, Later, Powers, Replies, Sent, Text,
};
use tench_sys::{Cap, CapAddress, Endpoint, Message, OWN_CSPACE, Received, Reply, Rights};
use tench_system::{Program, System};

use crate::kernel::is_out_of_memory;
use crate::requests::forward::{Inbox, LIMIT, Waiting};
use crate::slots::discard;
use crate::{Result, no_memory};

/// The name server, as the system description calls it.
const NAMES: &str = "names";
/// Number of waits that are checked when a request finds no room.
const LOOKS: usize = 8;

/// The names of this core, each with the slot of its server's capability.
pub struct Local {
    names: OwnNames<CapAddress, Waiting>,
}

/// A listing of names: the number of the server replaced, and the name after which the next is requested.
pub type Listing = (u64, Box<str>);

/// The request being handled.
struct Question<'a> {
    names: &'a mut OwnNames<CapAddress, Waiting>,
    inbox: &'a Inbox,
    /// Slot in which a capability is made before it is sent.
    outgoing: CapAddress,
}

/// Outcome of a request.
pub enum LocalOutcome {
    /// The reply has been sent.
    Now,
    /// The requester waits for the name.
    Waits,
}

impl Local {
    /// Returns a table in which these names are local.
    pub const fn new(names: Vec<&'static str>) -> Local {
        Local { names: OwnNames::new(names, LIMIT) }
    }

    /// Registers a local server, with a capability that everybody may call.
    pub fn register(&mut self, name: &str, process: u64, service: Cap<Endpoint>) -> Result<()> {
        let slot = memory::take_slot().map_err(no_memory)?;
        service.mint_to(slot, Rights::WRITE | Rights::CALL | Rights::GRANT, 0)?;
        // No requester waits yet.
        self.names.table.register(name, Caller::alone(process), slot).map(drop).map_err(no_memory)
    }

    /// Returns whether a request to the name server is about a local name.
    pub fn has(&self, request: &Received) -> bool {
        matches!(subject(request.label(), request.words()), Some(Subject::Name(name)) if self.names.has(name))
    }

    /// Replies to such a request, which waits in a reply object.
    pub fn serve(
        &mut self,
        request: &Received,
        inbox: &Inbox,
        outgoing: CapAddress,
        reply: Cap<Reply>,
    ) -> LocalOutcome {
        let (mut message, mut replies) = (Message::new(DONE), Replies::new(reply, Factory::NONE));
        let mut context = Context::new(request.badge(), &mut replies);
        let mut question = Question { names: &mut self.names, inbox, outgoing };
        match Names::dispatch(&mut question, request, &mut context, &mut message) {
            Flow::Later => LocalOutcome::Waits,
            Flow::Reply => {
                // The requester may have given up, or have no slot for it.
                let _ = reply.reply(&message);
                let _ = OWN_CSPACE.delete_at(outgoing);
                LocalOutcome::Now
            }
        }
    }

    /// Queues a requester that waits for a name.
    pub fn keep(&mut self, request: &Received, waiting: Waiting) {
        if let Some(Subject::Name(name)) = subject(request.label(), request.words()) {
            self.names.table.wait(name, waiting.requester, waiting);
        }
    }

    /// Removes waits of a family that have ended without notice. Checks a few, and others the next time.
    pub fn take_out(&mut self, family: u64, watch: Watch) -> Vec<Waiting> {
        self.names.table.take_out(Some(family), LOOKS, |waiting| waiting.has_gone(watch))
    }

    /// Frees the names of an ended process. Returns its waits.
    pub fn process_ended(&mut self, process: u64) -> Vec<Waiting> {
        let (slots, waiting) = self.names.table.process_ended(process);
        discard(&slots);
        waiting
    }

    /// Merges the name server's reply to a listing with the local names. Returns the changed reply if there is one, or
    /// fails with the name after which the name server is to be asked for the next.
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

/// Returns the listing that a request asks for.
pub fn listing(service: u64, request: &Received) -> Option<Listing> {
    match subject(request.label(), request.words()) {
        Some(Subject::After(after)) => Some((service, after.into())),
        _ => None,
    }
}

/// Returns a request for the name after another.
pub fn next_after(name: &str) -> Option<Message> {
    let mut message = Message::new(Names::NEXT);
    Text::<MAX_NAME>::new(name)?.encode(&mut message);
    Some(message)
}

impl Question<'_> {
    /// Makes a capability for a process, as the name server does: with this badge, if it was registered without one.
    fn endpoint(&self, slot: CapAddress, badge: u64) -> Sent<Endpoint, Given> {
        // If the last receiver offered no slot, its capability is still here.
        let _ = OWN_CSPACE.delete_at(self.outgoing);
        let registered = Cap::<Endpoint>::new(slot);
        // If the server has ended there is nothing to copy, and no capability is sent.
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
        if is_out_of_memory() || endpoint.cap().copy_to(slot).is_err() {
            memory::free_slot(slot);
            return Err(Error::Full);
        }
        let waited = self.names.table.register(&name, caller, slot).inspect_err(|_| discard(&[slot]))?;
        for (_, waiting) in waited {
            let mut message = Message::new(DONE);
            let badge = badge_for(&name, waiting.requester, waiting.powers);
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

    /// The caller, who has the reply object, [queues](Local::keep) the requester.
    fn wait_for(
        &mut self,
        caller: Caller,
        powers: Powers,
        _: Later<'_, Sent<Endpoint, Given>, Error>,
        name: Text<'_, MAX_NAME>,
    ) -> core::result::Result<Option<Sent<Endpoint, Given>>, Error> {
        match self.names.table.look_up(&name) {
            Ok(slot) => Ok(Some(self.endpoint(slot, badge_for(&name, caller, powers)))),
            Err(Error::Unknown) if is_out_of_memory() => Err(Error::Full),
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

/// Returns the names of the servers for which `are` holds.
pub fn servers(system: &System<'static>, are: fn(&Program<'static>) -> bool) -> Vec<&'static str> {
    system.programs().filter(are).map(|program| program.name).collect()
}

/// Returns the names that are local to a further core, and the name server's number. `absent` are the servers that run
/// on the first core only.
pub fn own_names(system: &System<'static>, absent: &[&str]) -> (Option<u64>, Vec<&'static str>) {
    let names = absent.iter().position(|name| *name == NAMES).map(|number| number as u64);
    let mut own = servers(system, Program::is_on_each_core);
    if !own.contains(&Monitor::NAME) {
        // The description may call the monitor anything: each core has one.
        own.push(Monitor::NAME);
    }
    (names, own)
}
