//! Requests of the name server.

use tench::abi::layout::slot;
use tench::memory::{self, Error as MemoryError, Window};
use tench::server::{Kept, Watch};
use tench_names::kept::Journal;
use tench_names::table::{GROWTH, Table, badge_for, check_power};
use tench_names_interface::Names;
use tench_names_interface::protocol::{Error, MAX_NAME, NamesService};
use tench_protocol::{Arrived, Caller, Event, Given, Later, Pending, Powers, Replies, Sent, Text};
use tench_sys::{Cap, CapAddress, Endpoint, Kind, OWN_CSPACE, Wait};

/// Maximum number of threads that can wait for names.
const MAX_WAITERS: usize = 256;
/// Bytes of memory for the names, if the system description gives none.
const MEMORY: u64 = 256 * 1024;

/// A thread that waits for a name.
struct Waiter {
    /// Badge of the capability that it gets.
    badge: u64,
    pending: Pending<Sent<Endpoint, Given>, Error>,
}

/// Number of waits that are checked when a request finds no room, or a process has ended.
const LOOKS: usize = 8;

/// The server's state.
pub struct Server {
    /// Registered names, each with the number of its journal entry.
    table: Table<u32, Waiter>,
    journal: Journal<Window>,
    kept: Kept,
    /// Tells which reply objects still hold a waiting thread.
    watch: Watch,
    /// Slot in which a capability is made before it is sent.
    outgoing: CapAddress,
}

impl Server {
    /// Returns a server with the names that its predecessor had.
    pub fn new() -> Result<Server, MemoryError> {
        memory::serve_without_faults(2 * GROWTH)?;
        let (kept, window) = Kept::open(MEMORY, slot::KEPT_NODES)?;
        let mut journal = Journal::new(window, kept.slots());
        let mut table = Table::new(journal.count() as usize, MAX_WAITERS);
        for number in 0..journal.used() {
            let found = OWN_CSPACE.identify_at(kept.slot(number)).map_or(Kind::Null, |found| found.kind);
            let known = journal.entry(number).filter(|_| found == Kind::Endpoint);
            // An entry without its capability, or vice versa, was not complete; its registrant got no reply.
            let is_known = known.is_some_and(|entry| table.register(&entry.name, entry.owner, number).is_ok());
            if !is_known {
                journal.clear(number);
                if found != Kind::Null {
                    // The slot is not empty.
                    let _ = OWN_CSPACE.delete_at(kept.slot(number));
                }
            }
        }
        Ok(Server { table, journal, kept, watch: Watch::new()?, outgoing: memory::take_slot()? })
    }

    /// Serves requests for ever.
    pub fn serve(&mut self) -> ! {
        let mut port = tench::server::port(1, 1);
        loop {
            if port.next(Wait::FOREVER) == Event::Request {
                port.carry_out(|request, context, reply| Names::dispatch(self, request, context, reply));
            }
        }
    }

    /// Makes the capability of an entry for a process, to be sent with the reply: as it was registered; but if it was
    /// registered without a badge, with this one, so that the server of that name knows its client.
    fn endpoint(&self, number: u32, badge: u64) -> Sent<Endpoint, Given> {
        // If the last receiver offered no slot, its capability is still here.
        let _ = OWN_CSPACE.delete_at(self.outgoing);
        let registered = Cap::<Endpoint>::new(self.kept.slot(number));
        // If the server has ended there is nothing to copy, and no capability is sent.
        let _ = match registered.identify() {
            Ok(found) if found.badge == 0 => registered.mint_to(self.outgoing, found.rights, badge),
            _ => registered.copy_to(self.outgoing),
        };
        Sent::new(Cap::new(self.outgoing))
    }

    /// Frees an entry.
    fn discard(&mut self, number: u32) {
        self.journal.clear(number);
        // The slot is not empty, unless the server has ended.
        let _ = OWN_CSPACE.delete_at(self.kept.slot(number));
    }
}

impl NamesService for Server {
    fn register(
        &mut self,
        caller: Caller,
        powers: Powers,
        replies: &mut Replies,
        name: Text<'_, MAX_NAME>,
        endpoint: Arrived<'_, Endpoint>,
    ) -> Result<(), Error> {
        check_power(&name, powers)?;
        if let Some(number) = self.table.own(&name, caller.process) {
            // The process may have registered the name before without a reply, if this server was restarted meanwhile.
            self.table.unregister(&name, caller.process)?;
            self.discard(number);
        }
        reserve()?;
        self.table.check_register(&name, caller)?;
        let number = self.journal.free_entry().ok_or(Error::Full)?;
        endpoint.cap().copy_to(self.kept.slot(number)).map_err(|_| Error::Full)?;
        self.journal.write(number, caller, &name);
        for (_, Waiter { badge, pending }) in self.table.register(&name, caller, number)? {
            // A waiter that has given up meanwhile gets no reply.
            let _ = replies.send(pending, &Ok(self.endpoint(number, badge)));
        }
        Ok(())
    }

    fn look_up(
        &mut self,
        caller: Caller,
        powers: Powers,
        name: Text<'_, MAX_NAME>,
    ) -> Result<Sent<Endpoint, Given>, Error> {
        self.table.look_up(&name).map(|number| self.endpoint(number, badge_for(&name, caller, powers)))
    }

    fn wait_for(
        &mut self,
        caller: Caller,
        powers: Powers,
        mut later: Later<'_, Sent<Endpoint, Given>, Error>,
        name: Text<'_, MAX_NAME>,
    ) -> Result<Option<Sent<Endpoint, Given>>, Error> {
        let badge = badge_for(&name, caller, powers);
        match self.table.look_up(&name) {
            Ok(number) => return Ok(Some(self.endpoint(number, badge))),
            Err(Error::Unknown) => {}
            Err(error) => return Err(error),
        }
        reserve()?;
        if !self.table.may_wait(caller) {
            let watch = self.watch;
            // If no thread of the family has given up, others may wait in the name of an ended process, whose family
            // nobody checks.
            for family in [Some(caller.family), None] {
                if !self.table.may_wait(caller) {
                    for waiter in self.table.take_out(family, LOOKS, |waiter| watch.has_gone(&waiter.pending)) {
                        later.others().forget(waiter.pending);
                    }
                }
            }
        }
        if !self.table.may_wait(caller) {
            return Err(Error::Full);
        }
        let pending = later.keep().map_err(|_| Error::Full)?;
        self.table.wait(&name, caller, Waiter { badge, pending });
        Ok(None)
    }

    fn unregister(&mut self, caller: Caller, name: Text<'_, MAX_NAME>) -> Result<(), Error> {
        let number = self.table.unregister(&name, caller.process)?;
        self.discard(number);
        Ok(())
    }

    fn next(&mut self, name: Text<'_, MAX_NAME>) -> Result<(Text<'_, MAX_NAME>, u64), Error> {
        let (next, owner) = self.table.next(&name).ok_or(Error::Unknown)?;
        Ok((Text::new(next).ok_or(Error::Unknown)?, owner))
    }

    fn process_ended(&mut self, replies: &mut Replies, process: u64) -> Result<Option<u64>, Error> {
        let (numbers, waiters) = self.table.process_ended(process);
        numbers.into_iter().for_each(|number| self.discard(number));
        waiters.into_iter().for_each(|waiter| replies.forget(waiter.pending));
        // Requests in its name, or in that of a process that ended before, may have come since and been given up.
        let watch = self.watch;
        for waiter in self.table.take_out(None, LOOKS, |waiter| watch.has_gone(&waiter.pending)) {
            replies.forget(waiter.pending);
        }
        // It may have ended before a capability could be sent to it.
        let _ = OWN_CSPACE.delete_at(self.outgoing);
        Ok(self.table.question(process))
    }

    fn process_lives(&mut self, process: u64) -> Result<Option<u64>, Error> {
        self.table.process_lives(process);
        Ok(self.table.question(process))
    }
}

/// Makes sure that there is memory for one more name, or one more waiting thread; as much again stays for processes
/// that end.
fn reserve() -> Result<(), Error> {
    memory::reserve_heap(2 * GROWTH).map_err(|_| Error::Full)
}
