//! The loop that receives faults and requests.

use tench::abi::fault::{Report, reply};
use tench::memory;
use tench::server::slots;
use tench::sys::ipc::BOUND_REPLY;
use tench::sys::{Cap, Endpoint, Message, PageTable, Received, Wait};
use tench::thread::current_thread;
use tench_protocol::{Arrived, Caller, Event, Factory, Flow, Port, Replies};

use crate::frames::Frames;
use crate::pager::Pager;
use crate::protocol::{Error, PagerClient, PagerService, Statistics};

/// Decisions of a pager's owner.
pub trait Policy {
    /// Returns whether a client may see the pages of another.
    fn may_fork(&mut self, client: u64, from: u64) -> bool;

    /// Called when a client has touched memory that it may not touch, or for which there is no page. Its thread stops.
    fn refused(&mut self, client: u64, report: &Report, error: Error);
}

/// A pager with its endpoint.
pub struct Server<P> {
    endpoint: Cap<Endpoint>,
    pager: Pager<Frames>,
    policy: P,
    stopped: bool,
}

impl<P: Policy> Server<P> {
    /// Returns a server that receives at `endpoint`.
    pub fn new(endpoint: Cap<Endpoint>, pager: Pager<Frames>, policy: P) -> Server<P> {
        Server { endpoint, pager, policy, stopped: false }
    }

    /// Serves until it is told to stop, or until nobody can reach it any more. Returns the pager.
    pub fn run(mut self) -> Pager<Frames> {
        let mut port = Port::new(self.endpoint, Replies::new(BOUND_REPLY, Factory::NONE), slots(1));
        // Threads that wait for a page help the pager, and through it the memory server. This fails if a thread serves
        // the endpoint already.
        let _ = current_thread().serve(self.endpoint, 1);
        while !self.stopped {
            if port.next(Wait::FOREVER) != Event::Request {
                break;
            }
            port.carry_out(|request, context, reply| {
                if request.is_fault() {
                    self.fault(request, reply)
                } else {
                    PagerClient::dispatch(&mut self, request, context, reply)
                }
            });
        }
        // The thread continues without the endpoint, which can be deleted.
        let _ = current_thread().stop_serving();
        port.close().into_iter().for_each(memory::free_slot);
        self.pager
    }

    /// Handles a fault, and writes the reply.
    fn fault(&mut self, message: &Received, reply: &mut Message) -> Flow {
        let report = Report::of_message(message.tag().label(), &core::array::from_fn(|index| message.word(index)));
        let client = Caller::of_badge(message.badge());
        reply.restart(match self.pager.fault(client, &report) {
            Ok(()) => reply::RESUME,
            Err(error) => {
                self.policy.refused(client.process, &report, error);
                reply::STOP
            }
        });
        Flow::Reply
    }
}

impl<P: Policy> PagerService for Server<P> {
    fn attach(&mut self, caller: Caller, address: u64, table: Arrived<'_, PageTable>) -> Result<(), Error> {
        self.pager.attach(caller, address, table.cap()).map_err(|(error, _)| error)?;
        table.keep();
        Ok(())
    }

    fn detach(&mut self, caller: Caller, address: u64) -> Result<(), Error> {
        drop_table(self.pager.detach(caller.process, address)?);
        Ok(())
    }

    fn fork(&mut self, caller: Caller, address: u64, from: u64) -> Result<u64, Error> {
        if !self.policy.may_fork(caller.process, from) {
            return Err(Error::NotAllowed);
        }
        self.pager.share(from, caller.process, address)
    }

    fn forget(&mut self, client: u64) -> Result<(), Error> {
        self.pager.forget(client).into_iter().for_each(drop_table);
        Ok(())
    }

    fn statistics(&mut self) -> Result<Statistics, Error> {
        Ok(self.pager.statistics())
    }

    fn stop(&mut self) -> Result<(), Error> {
        self.stopped = true;
        Ok(())
    }
}

/// Deletes a client's table.
fn drop_table(table: Cap<PageTable>) {
    // If the client has ended, the table is gone.
    let _ = table.delete();
    memory::free_slot(table.address());
}
