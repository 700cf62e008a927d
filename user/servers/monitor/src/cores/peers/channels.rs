//! Channels to other cores: each core is started with one to the first core, which makes all others on request.

use tench::println;
use tench_abi::layout::slot;
use tench_channel::Side;
use tench_mem_interface::Mem;
use tench_monitor::cores::boot::BLOCK_BITS;
use tench_monitor::cores::share::divide;
use tench_monitor::message::operation;
use tench_monitor_interface::protocol::{Error, State};
use tench_protocol::Port;
use tench_remote::Core;
use tench_sys::{Cap, CapAddress, Error as KernelError, OWN_CSPACE};
use tench_system::System;

use super::Peers;
use crate::cores::channel;
use crate::cores::links;
use crate::cores::peer::Peer;
use crate::cores::start::{Files, Starter, first_frame, start_one};
use crate::kernel::{KERNEL, is_off};
use crate::transfer::capabilities::{self, Ledger};
use crate::transfer::home::Home;
use crate::transfer::tasks::{Task, Work};
use crate::{Result, no_memory};

impl Peers {
    /// Starts the other cores. A core that cannot be started is reported, and the others go on.
    pub fn start(&mut self, files: &Files, system: &System<'_>, ledger: &mut Ledger) -> Result<()> {
        let starter = Starter::new(self.machine, &files.archive, files.range)?;
        let free = Mem::STANDARD.totals().map_err(no_memory)?.free;
        let shares = divide(free, self.machine.cores, 1 << BLOCK_BITS, system.shares());
        for (core, share) in (1..self.machine.cores).zip(shares.into_iter().skip(1)) {
            let peer = start_one(&starter, core, share);
            if !matches!(peer.state, State::Starting) {
                println!("monitor: core {core} was not started: {}", peer.state);
            }
            match (capabilities::core(core), &peer.channel) {
                (Some(core), Some(_)) => ledger.connect(core),
                (Some(core), None) => ledger.lose(core),
                (None, _) => {}
            }
            self.all.push(peer);
        }
        Ok(())
    }

    /// Opens the channel to the first core, in the frame with which this core was started, and announces that it runs.
    pub fn connect(&mut self, ledger: &mut Ledger) -> Result<()> {
        let mut channel = channel::open(first_frame(slot::EXTRA)?, Side::Second, 0)?;
        channel.event(operation::HELLO, &[]).map_err(|_| KernelError::Aborted)?;
        let mut first = Peer::new(0);
        (first.channel, first.state) = (Some(channel), State::Running);
        self.all.push(first);
        capabilities::core(0).into_iter().for_each(|core| ledger.connect(core));
        Ok(())
    }

    /// Makes sure that there is a channel to a core, or that one has been requested.
    #[inline]
    pub fn reach(&mut self, core: u64, home: &mut Home) -> core::result::Result<(), Error> {
        if self.all.iter().any(|peer| peer.core == core) { Ok(()) } else { self.reach_out(core, home) }
    }

    /// Requests a channel to a core that has none yet, unless it is this core.
    #[cold]
    fn reach_out(&mut self, core: u64, home: &mut Home) -> core::result::Result<(), Error> {
        if core >= self.machine.cores {
            return Err(Error::NoSuchCore);
        }
        let name = capabilities::core(core).ok_or(Error::NoSuchCore)?;
        if core == self.machine.core {
            return Ok(());
        }
        if self.machine.core == 0 || home.ledger.is_closed(name) {
            return Err(if is_off(core) { Error::Stopped } else { Error::NotConnected });
        }
        self.all.push(Peer::awaited(core));
        home.ledger.want(name);
        Ok(())
    }

    /// Requests channels, makes them for others, and opens those that come.
    pub(super) fn link(&mut self, home: &mut Home, port: &mut Port) {
        while let Some(core) = home.ledger.wanted() {
            let _ = self.reach(core.index() as u64, home);
        }
        while let Some((one, other)) = home.ledger.link() {
            self.links.want(one, other);
        }
        for _ in 0..self.links.waiting() {
            let Some(pair) = self.links.next() else { break };
            // A stopped core gets no channel, and its own request is void.
            if home.ledger.is_closed(pair.0) || home.ledger.is_closed(pair.1) {
                continue;
            }
            match (self.is_up(pair.0) && self.is_up(pair.1)).then(|| self.links.transfer_request(pair)) {
                Some(Ok(request)) => {
                    if let Some(peer) = self.get(pair.0.index() as u64) {
                        peer.admit(request, &mut home.ledger);
                    }
                }
                Some(Err(_)) | None => self.links.postpone(pair),
            }
        }
        while let Some(transfer) = home.ledger.own_transfer() {
            if transfer.word == links::MEMORY {
                // If there is no worker, the memory goes back.
                let slot = transfer.slot;
                let base = OWN_CSPACE.locate_at(KERNEL, slot).map_or(0, |found| found.address);
                if home.dispatcher.work(Work::Donation(slot, base), Task::Donate(slot)).is_err() {
                    home.ledger.discard(slot);
                }
                continue;
            }
            match links::read(&transfer) {
                Some((core, is_second)) => self.open(core, is_second, transfer.slot, home, port),
                None => home.ledger.discard(transfer.slot),
            }
        }
    }

    fn is_up(&self, core: Core) -> bool {
        let peer = self.all.iter().find(|peer| peer.core == core.index() as u64);
        peer.is_some_and(|peer| matches!(peer.state, State::Running))
    }

    /// Opens the channel to a core in a slot's frame.
    fn open(&mut self, core: Core, is_second: bool, slot: CapAddress, home: &mut Home, port: &mut Port) {
        let (number, side) = (core.index() as u64, if is_second { Side::Second } else { Side::First });
        let is_known = self.all.iter().any(|peer| peer.core == number && !peer.is_awaited());
        let channel =
            if is_known { Err(KernelError::SlotOccupied) } else { channel::open(Cap::new(slot), side, number) };
        let Ok(channel) = channel else {
            // Without memory for the channel, the monitor gives it up.
            home.ledger.discard(slot);
            let awaited = self.get(number).filter(|peer| peer.is_awaited());
            return awaited.into_iter().for_each(|peer| peer.close(home, port));
        };
        home.ledger.keep_link(slot, core);
        home.ledger.connect(core);
        if self.get(number).is_none() {
            self.all.push(Peer::awaited(number));
        }
        if let Some(peer) = self.get(number) {
            peer.open(channel, home, port);
        }
    }
}
