//! Results of workers' tasks about capabilities, and memory that cores give each other.

use alloc::vec::Vec;

use tench_channel::Request as Number;
use tench_monitor::message::line::Growth;
use tench_monitor::message::{MONITOR, Outcome, ended};
use tench_monitor_interface::protocol::Error;
use tench_protocol::Port;
use tench_sys::CapAddress;

use super::Peers;
use crate::cores::links;
use crate::requests::dispatcher::{Requester, refusal};
use crate::transfer::capabilities::{self, Completion, Grown, TransferRequest};
use crate::transfer::home::Home;
use crate::transfer::tasks::{self, Task, Work};

impl Peers {
    /// Handles a worker's result.
    pub fn worked(&mut self, work: Work, words: &[u64], home: &mut Home, port: &mut Port) {
        match (work, words) {
            (Work::Growth(from, requester, bytes), words) => {
                self.ask_for_memory((from, requester, bytes), words, home, port)
            }
            (Work::MemoryGrant(core, number), words) => self.give_memory(core, number, words, home),
            (Work::Recall(granter, who), &[address, bytes]) => {
                home.ledger.recall(granter, address, bytes, Completion::Done(who));
            }
            (Work::Recall(_, who), _) => port.finish(who, &Err(Error::NoSuchBlock)),
            (work, words) => {
                let Some(own) = capabilities::core(self.machine.core) else { return };
                if let Some((core, number, reply)) = tasks::finish(&mut home.ledger, own, work, words)
                    && let Some(peer) = self.get(core)
                {
                    peer.reply(number, &reply);
                }
            }
        }
    }

    /// Requests memory from a core for a local requester, once the amount of free memory here is known.
    fn ask_for_memory(&mut self, growth: (u64, Requester, u64), words: &[u64], home: &mut Home, port: &mut Port) {
        let (from, requester, bytes) = growth;
        match (words, self.get(from)) {
            (&[free], Some(peer)) => peer.grow(requester, &Growth { bytes, free }, home, port),
            (_, None) => port.finish_waiter(requester, &refusal(Error::NotConnected)),
            _ => port.finish_waiter(requester, &refusal(Error::Internal)),
        }
    }

    /// Gives memory to a core that has requested it. The words are a block's slot, address and size, or the reason why
    /// there is none.
    fn give_memory(&mut self, core: u64, number: Number, words: &[u64], home: &mut Home) {
        let cap_address = |slot: u64| u32::try_from(slot).ok().map(CapAddress);
        let own = (self.machine.core, MONITOR);
        let (Some(to), Some(peer)) = (capabilities::core(core), self.get(core)) else { return };
        match *words {
            [slot, address, bytes] if let Some(slot) = cap_address(slot) => {
                let who = Completion::Grown { core, number, block: (address, bytes) };
                peer.admit(TransferRequest::new(who, slot, own, (to, MONITOR), links::MEMORY), &mut home.ledger);
            }
            [why] => peer.reply(number, &ended(Outcome::Refused, why)),
            _ => peer.reply(number, &ended(Outcome::Refused, Error::Internal as u64)),
        }
    }

    /// Tells other cores whether they got memory, and frees memory that has come back.
    pub(super) fn report_grants(&mut self, grown: Vec<Grown>, home: &mut Home) {
        for (core, number, (address, bytes), result) in grown {
            let words = match result {
                Ok(()) => [Outcome::Replied as u64, bytes].into_iter().collect(),
                Err(why) => ended(Outcome::Refused, why as u64),
            };
            if result.is_err() {
                self.returned.push(address);
            }
            if let Some(peer) = self.get(core) {
                peer.reply(number, &words);
            }
        }
        self.returned.extend(core::iter::from_fn(|| home.ledger.returned()));
        while let Some(address) = self.returned.pop() {
            if home.dispatcher.work(Work::Return, Task::Return(address)).is_err() {
                self.returned.push(address);
                return;
            }
        }
    }
}
