//! The first steps of requests of local programs: for a core's use of memory, and for transfers.

use tench_monitor::message::{MONITOR, operation};
use tench_monitor_interface::protocol::{Error, Memory, pid_base, split_pid};
use tench_protocol::{Arrived, Caller, Later, Pending, Powers, Replies};

use super::Server;
use crate::cores::peer::{Asked, Peer};
use crate::kernel::is_out_of_memory;
use crate::requests::dispatcher::requester;
use crate::transfer::capabilities::{self, Completion, TransferRequest};
use crate::transfer::tasks::{self, Work};

/// Reserves memory for the ledgers. A request that fails here is refused before anything is changed.
pub(super) fn ensure_capacity() -> Result<(), Error> {
    if is_out_of_memory() { Err(Error::Full) } else { Ok(()) }
}

/// Sends the current request to another core, and keeps its requester until the reply comes.
pub(super) fn send<T>(
    peer: &mut Peer,
    operation: u16,
    words: &[u64],
    replies: &mut Replies,
    asked: impl FnOnce(Pending<T, Error>) -> Asked,
) -> Result<(), Error> {
    let pending = replies.keep().map_err(|_| Error::Full)?;
    peer.send(operation, words, asked(pending)).map_err(|(asked, why)| {
        asked.return_requester(replies);
        why
    })
}

impl Server {
    /// Requests a core's use of memory for a local requester.
    pub(super) fn ask_memory(&mut self, core: u64, later: Later<'_, Memory, Error>) -> Result<Option<Memory>, Error> {
        self.peers.reach(core, &mut self.home)?;
        if core != self.machine.core {
            let peer = self.peers.existing(core)?.ok_or(Error::NotConnected)?;
            send(peer, operation::MEMORY, &[], later.replies(), |pending: Pending<Memory, Error>| {
                Asked::Words(requester(pending))
            })?;
            return Ok(None);
        }
        if !self.home.dispatcher.has_capacity() {
            return Err(Error::Full);
        }
        self.home.dispatcher.memory(requester(later.keep().map_err(|_| Error::Full)?));
        Ok(None)
    }

    /// Starts the transfer of a request's capability to a process.
    pub(super) fn offer<T, How>(
        &mut self,
        caller: Caller,
        later: Later<'_, (), Error>,
        (process, word): (u64, u64),
        cap: Arrived<'_, T, How>,
    ) -> Result<Option<()>, Error> {
        let (core, number) = split_pid(process);
        let requester = caller.badge(Powers::empty());
        if caller.process == MONITOR {
            return Err(Error::NotAllowed);
        }
        if number == MONITOR {
            return Err(Error::NoSuchProcess);
        }
        ensure_capacity()?;
        self.home.ledger.check(cap.cap().address())?;
        let is_own = core == self.machine.core;
        self.peers.reach(core, &mut self.home)?;
        let to = capabilities::core(core).ok_or(Error::NoSuchCore)?;
        let who = Completion::Done(later.keep().map_err(|_| Error::Full)?);
        let request =
            TransferRequest::new(who, cap.keep().address(), (self.machine.core, requester), (to, process), word);
        if !is_own {
            if let Some(peer) = self.peers.get(core) {
                peer.admit(request, &mut self.home.ledger);
            }
            return Ok(None);
        }
        let look = tasks::look(&self.home.ledger, pid_base(core) | requester, process);
        if let Err(Work::Here(request)) = self.home.dispatcher.work(Work::Here(request), look) {
            request.refuse(&mut self.home.ledger, Error::Full);
        }
        Ok(None)
    }
}
