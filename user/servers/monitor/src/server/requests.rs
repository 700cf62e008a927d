//! The first steps of requests of local programs: for operations on processes, errands, and transfers.

use tench_monitor::message::MONITOR;
use tench_monitor::requests::remote_request::RemoteRequest;
use tench_monitor_interface::protocol::{Error, pid_base, split_pid};
use tench_protocol::{Arrived, Caller, Decode, Encode, Later, Pending, Powers, Replies};
use tench_quota::Client;
use tench_sys::Error as KernelError;

use super::Server;
use crate::cores::peer::{Asked, Peer, asked};
use crate::kernel::is_out_of_memory;
use crate::requests::dispatcher::{Origin, requester};
use crate::requests::errands::Errand;
use crate::requests::processes;
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
    /// Requests an operation on processes of a core for a local requester, which is kept until the operation is done.
    /// If too many requesters wait, those that have given up are removed.
    pub(super) fn ask<T: Encode + for<'a> Decode<'a>>(
        &mut self,
        request: RemoteRequest,
        mut later: Later<'_, T, Error>,
    ) -> Result<Option<T>, Error> {
        let core = request.core();
        if request.requester == Client::AUTHORITY {
            return Err(Error::NotAllowed);
        }
        self.peers.reach(core, &mut self.home)?;
        if request.operation.waits() && !self.peers.may_wait(core, request.requester, &self.home) {
            let (watch, replies) = (self.watch, later.others());
            self.may_have_missed = true;
            self.home.dispatcher.sweep(watch, replies);
            self.peers.get(core).into_iter().for_each(|peer| peer.sweep(watch, replies));
        }
        if core == self.machine.core {
            let keep = || later.keep().map(requester).map(Origin::Here);
            self.home.dispatcher.ask_here(processes::Task::Do(request), keep)?;
            return Ok(None);
        }
        let peer = self.peers.existing(core)?.ok_or(Error::NotConnected)?;
        let kept = |pending: Pending<T, Error>| asked(&request, requester(pending));
        send(peer, request.operation as u16, &request.encode(), later.replies(), kept)?;
        Ok(None)
    }

    /// Makes a worker ask the process server for the ceiling of a local process, for a start on another core.
    pub(super) fn send_off(
        &mut self,
        core: u64,
        requester: Caller,
        keep: impl FnOnce() -> Result<Errand, KernelError>,
    ) -> Result<(), Error> {
        if requester.process == MONITOR {
            return Err(Error::NotAllowed);
        }
        self.peers.reach(core, &mut self.home)?;
        if !self.home.dispatcher.has_capacity() {
            return Err(Error::Full);
        }
        self.home.dispatcher.vouch(requester.process, keep().map_err(|_| Error::Full)?);
        Ok(())
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
