//! The state of this core that most messages from other cores concern.

use alloc::sync::Arc;

use tench_monitor::transfer::proxies;
use tench_monitor_interface::protocol::Error;
use tench_sys::{Cap, Error as KernelError, Machine, Notification};

use crate::Result;
use crate::requests::forward::Inbox;
use crate::requests::services::Services;
use crate::transfer::capabilities::{self, Ledger, Rounds};
use crate::transfer::endpoints::Endpoints;
use crate::transfer::signals::Signals;
use crate::transfer::tasks::Dispatcher;

/// The dispatcher of slow work, the endpoints that other cores reach, and the ledger of capabilities that left their
/// core, which are passed together.
pub struct Home {
    pub dispatcher: Dispatcher,
    /// Requests of local programs to other cores, and of other cores to endpoints here.
    pub endpoints: Endpoints,
    /// Ledger of capabilities that left their core.
    pub ledger: Ledger,
    pub rounds: Rounds,
}

impl Home {
    /// Returns the state of a core whose programs' requests arrive in the inbox. Workers and threads signal `wake`.
    pub fn new(
        machine: &Machine,
        inbox: Inbox,
        services: Arc<Services>,
        signals: Signals,
        wake: Cap<Notification>,
    ) -> Result<Home> {
        let endpoints = Endpoints::open(machine.core, inbox, Arc::clone(&services), signals)?;
        let dispatcher = Dispatcher::new(machine.core, services, wake)?;
        let ledger = capabilities::open(machine.core, machine.cores).ok_or(KernelError::NoSuchCore)?;
        Ok(Home { dispatcher, endpoints, ledger, rounds: Rounds::new() })
    }

    /// Sends endpoints to processes of other cores, and makes proxies of those that have come.
    pub fn pass_endpoints(&mut self) {
        while let Some(mut transfer) = self.ledger.leaving() {
            let to = transfer.to;
            let is_closed = self.ledger.is_closed(to);
            let sent = match transfer.slot.take_if(|_| !is_closed) {
                Some(slot) => self.endpoints.send_one(slot, to.index() as u64).map_err(|why| match why {
                    proxies::Error::NotSendable => Error::NotSendable,
                    proxies::Error::Full => Error::TooManyObjects,
                    proxies::Error::Gone => Error::BeingRevoked,
                }),
                None => Err(Error::CoreLost),
            };
            self.ledger.sent(transfer, sent);
        }
        while let Some((from, reservation, receiver, carried)) = self.ledger.arriving() {
            let core = from.index() as u64;
            let made = match receiver {
                Some(receiver) => self.endpoints.receive_one(&carried, core, receiver).ok(),
                None => {
                    self.endpoints.refuse_one(&carried, core);
                    None
                }
            };
            self.ledger.arrived(from, reservation, made);
        }
    }

    /// Tells the process server which processes of other cores have lost one of their capabilities to it.
    pub fn report_parted(&mut self) {
        while let Some(process) = self.endpoints.parted() {
            if !self.dispatcher.forget(process) {
                self.endpoints.put_back(process);
                break;
            }
        }
    }
}
