//! Requests carried out.

use tench::memory;
use tench_names::table::Table;
use tench_names_client::Names;
use tench_names_client::protocol::{Error, MAX_NAME, NamesService};
use tench_protocol::{Arrived, Caller, Event, Later, Pending, Replies, Sent, Text};
use tench_sys::{Cap, Endpoint, OWN_SPACE, Wait};

/// Names that can be registered.
const MAX_NAMES: usize = 1024;
/// Threads that can wait for names.
const MAX_WAITERS: usize = 256;

/// The server's state.
pub struct Server {
    table: Table<Cap<Endpoint>, Pending<Sent<Endpoint>, Error>>,
}

impl Server {
    /// A server that knows no names.
    pub const fn new() -> Server {
        Server { table: Table::new(MAX_NAMES, MAX_WAITERS) }
    }

    /// Answers requests for ever.
    pub fn serve(&mut self) -> ! {
        let mut port = tench::server::port(1);
        loop {
            if let Event::Request(request) = port.next(Wait::FOREVER) {
                port.carry_out(&request, |request, context, answer| Names::dispatch(self, request, context, answer));
            }
        }
    }
}

impl NamesService for Server {
    fn register(
        &mut self,
        caller: Caller,
        replies: &mut Replies,
        name: Text<'_, MAX_NAME>,
        endpoint: Arrived<'_, Endpoint>,
    ) -> Result<(), Error> {
        let waiters = self.table.register(&name, caller.0, endpoint.cap())?;
        let cap = endpoint.keep();
        for waiter in waiters {
            // Who gave up meanwhile is answered nothing.
            let _ = replies.answer(waiter, &Ok(Sent::new(cap)));
        }
        Ok(())
    }

    fn look_up(&mut self, name: Text<'_, MAX_NAME>) -> Result<Sent<Endpoint>, Error> {
        self.table.look_up(&name).map(Sent::new)
    }

    fn wait_for(
        &mut self,
        caller: Caller,
        later: Later<'_, Sent<Endpoint>, Error>,
        name: Text<'_, MAX_NAME>,
    ) -> Result<Option<Sent<Endpoint>>, Error> {
        match self.table.look_up(&name) {
            Ok(cap) => Ok(Some(Sent::new(cap))),
            Err(Error::Unknown) if self.table.may_wait() => {
                self.table.wait(&name, caller.0, later.keep().map_err(|_| Error::Full)?);
                Ok(None)
            }
            Err(Error::Unknown) => Err(Error::Full),
            Err(error) => Err(error),
        }
    }

    fn unregister(&mut self, caller: Caller, name: Text<'_, MAX_NAME>) -> Result<(), Error> {
        discard(self.table.unregister(&name, caller.0)?);
        Ok(())
    }

    fn next(&mut self, name: Text<'_, MAX_NAME>) -> Result<(Text<'_, MAX_NAME>, u64), Error> {
        let (next, owner) = self.table.next(&name).ok_or(Error::Unknown)?;
        Ok((Text::new(next).ok_or(Error::Unknown)?, owner))
    }

    fn process_ended(&mut self, replies: &mut Replies, process: u64) -> Result<(), Error> {
        let (caps, waiters) = self.table.process_ended(process);
        caps.into_iter().for_each(discard);
        waiters.into_iter().for_each(|waiter| replies.forget(waiter));
        Ok(())
    }
}

/// Deletes a capability and gives its slot back.
fn discard(cap: Cap<Endpoint>) {
    if OWN_SPACE.delete_at(cap.address()).is_ok() {
        memory::free_slot(cap.address());
    }
}
