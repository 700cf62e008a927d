//! The monitor's interface: requests of local programs.

use tench_monitor::message::{MONITOR, operation};
use tench_monitor_interface::protocol::{Core, Error, Exchanged, Memory, MonitorService, State, pid_base};
use tench_protocol::{Any, Arrived, Caller, Given, Later, Powers, Sent};
use tench_sys::{Cap, Endpoint, Instant, Untyped};

use super::Server;
use super::requests::{ensure_capacity, send};
use crate::cores::peer::Asked;
use crate::requests::dispatcher::requester;
use crate::requests::processes::EndpointRequest;
use crate::slots::discard;
use crate::transfer::capabilities::{self, Completion, Taken};
use crate::transfer::tasks::{Task, Work};

/// Number of waiting threads that are checked when another begins to wait.
const LOOKS: usize = 8;

impl MonitorService for Server {
    fn cores(&mut self) -> Result<(u64, u64), Error> {
        Ok((self.machine.cores, self.machine.core))
    }

    fn core(&mut self, core: u64) -> Result<Core, Error> {
        if core == self.machine.core {
            return Ok(Core { state: State::Here, memory: 0, start: 0 });
        }
        let is_off = capabilities::core(core).is_some_and(|name| self.home.ledger.stop(name));
        Ok(match self.peers.existing(core)? {
            // A core that nobody awaits is checked only here. If a core could not be started, the reason is known.
            Some(peer) if is_off && (peer.channel.is_some() || peer.is_awaited()) => {
                Core { state: State::Stopped, memory: peer.memory, start: peer.start }
            }
            Some(peer) => Core { state: peer.state, memory: peer.memory, start: peer.start },
            None => Core { state: if is_off { State::Stopped } else { State::Unconnected }, memory: 0, start: 0 },
        })
    }

    fn ping(&mut self, later: Later<'_, u64, Error>, core: u64) -> Result<Option<u64>, Error> {
        self.peers.reach(core, &mut self.home)?;
        let peer = self.peers.existing(core)?.ok_or(Error::NotConnected)?;
        send(peer, operation::PING, &[], later.replies(), |pending| Asked::Ping(Instant::now(), pending))?;
        Ok(None)
    }

    fn memory(&mut self, later: Later<'_, Memory, Error>, core: u64) -> Result<Option<Memory>, Error> {
        self.ask_memory(core, later)
    }

    fn give(
        &mut self,
        caller: Caller,
        later: Later<'_, (), Error>,
        process: u64,
        word: u64,
        capability: Arrived<'_, Any>,
    ) -> Result<Option<()>, Error> {
        self.offer(caller, later, (process, word), capability)
    }

    fn lend(
        &mut self,
        caller: Caller,
        later: Later<'_, (), Error>,
        process: u64,
        word: u64,
        memory: Arrived<'_, Untyped, Given>,
    ) -> Result<Option<()>, Error> {
        self.offer(caller, later, (process, word), memory)
    }

    fn take(&mut self, caller: Caller, mut later: Later<'_, Taken, Error>) -> Result<Option<Taken>, Error> {
        if caller.process == MONITOR {
            return Err(Error::NotAllowed);
        }
        ensure_capacity()?;
        if self.home.ledger.has_receivers() {
            // Threads of ended processes tell nobody that they no longer wait.
            let looks = if self.home.ledger.may_wait(caller) { LOOKS } else { usize::MAX };
            let watch = self.watch;
            self.may_have_missed = true;
            let gone = self.home.ledger.forget(looks, |who| who.has_gone(watch));
            gone.into_iter().for_each(|who| who.forget(later.others()));
        }
        let who = Completion::Transfer(later.keep().map_err(|_| Error::Full)?);
        self.home.ledger.take(caller, who);
        Ok(None)
    }

    fn revoke(
        &mut self,
        caller: Caller,
        later: Later<'_, (), Error>,
        capability: Arrived<'_, Any>,
    ) -> Result<Option<()>, Error> {
        ensure_capacity()?;
        let who = Completion::Done(later.keep().map_err(|_| Error::Full)?);
        self.home.ledger.revoke(
            pid_base(self.machine.core) | caller.badge(Powers::empty()),
            capability.cap().address(),
            who,
        );
        Ok(None)
    }

    fn recall(&mut self, caller: Caller, later: Later<'_, (), Error>, block: u16) -> Result<Option<()>, Error> {
        ensure_capacity()?;
        let who = later.keep().map_err(|_| Error::Full)?;
        let granter = pid_base(self.machine.core) | caller.badge(Powers::empty());
        // A worker asks where the block is.
        if let Err(Work::Recall(_, who)) =
            self.home.dispatcher.work(Work::Recall(granter, who), Task::Find(caller.process, block))
        {
            self.refused.push(requester(who));
        }
        Ok(None)
    }

    fn give_back(&mut self, address: u64) -> Result<(), Error> {
        self.home.ledger.give_back(address)
    }

    fn exchanged(&mut self) -> Result<Exchanged, Error> {
        let (exports, copies, transfers) = self.home.ledger.count();
        let [exports, copies, transfers] = [exports, copies, transfers].map(|count| count as u64);
        let (endpoints, proxies) = self.home.endpoints.count();
        let [endpoints, proxies] = [endpoints, proxies].map(|count| count as u64);
        Ok(Exchanged { exports, copies, transfers, faults: self.home.ledger.faults(), endpoints, proxies })
    }

    fn processes(
        &mut self,
        caller: Caller,
        powers: Powers,
        later: Later<'_, Sent<Endpoint, Given>, Error>,
        core: u64,
    ) -> Result<Option<Sent<Endpoint, Given>>, Error> {
        if caller.process == MONITOR {
            return Err(Error::NotAllowed);
        }
        ensure_capacity()?;
        let badge = caller.badge(powers) | pid_base(self.machine.core);
        if core != self.machine.core {
            self.peers.reach(core, &mut self.home)?;
            if !self.home.dispatcher.has_capacity() {
                return Err(Error::Full);
            }
            let pending = later.keep().map_err(|_| Error::Full)?;
            self.home.dispatcher.vouch(caller.process, EndpointRequest { core, badge, pending });
            return Ok(None);
        }
        let made = self.home.endpoints.own_processes(badge).map_err(|_| Error::Full)?;
        // If the last receiver offered no slot, its capability is still here.
        discard(&[core::mem::replace(&mut self.outgoing, made)]);
        Ok(Some(Sent::new(Cap::new(self.outgoing))))
    }

    fn grow(&mut self, _: Caller, later: Later<'_, u64, Error>, from: u64, bytes: u64) -> Result<Option<u64>, Error> {
        ensure_capacity()?;
        self.peers.reach(from, &mut self.home)?;
        if from == self.machine.core {
            return Err(Error::NoRicher);
        }
        let requester = requester(later.keep().map_err(|_| Error::Full)?);
        if let Err(Work::Growth(_, requester, _)) =
            self.home.dispatcher.work(Work::Growth(from, requester, bytes), Task::Free)
        {
            self.refused.push(requester);
        }
        Ok(None)
    }
}
