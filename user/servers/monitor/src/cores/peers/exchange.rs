//! The ledger's output for other cores: events, replies, and attachments of messages.

use tench::println;
use tench_monitor::message::MONITOR;
use tench_monitor::transfer::attachments::ATTACHMENT;
use tench_monitor_interface::protocol::{Error, State};
use tench_protocol::Port;

use super::Peers;
use crate::kernel::is_out_of_memory;
use crate::transfer::capabilities::{self, Completion, TransferRequest};
use crate::transfer::endpoints::{Attachment, Outgoing};
use crate::transfer::home::Home;
use crate::transfer::tasks::{Task, Work};

impl Peers {
    /// Sends the ledger's events and replies. Returns whether there was nothing at all.
    #[inline]
    pub fn exchange(&mut self, home: &mut Home, port: &mut Port) -> bool {
        // Most of a monitor's work does not concern capabilities. (Whatever else causes work here leaves the first flag
        // unset.)
        if self.is_ledger_quiet && !home.ledger.is_dirty() {
            return true;
        }
        self.exchange_all(home, port);
        self.is_ledger_quiet
    }

    #[inline(never)]
    fn exchange_all(&mut self, home: &mut Home, port: &mut Port) {
        home.ledger.clear_dirty();
        let has_own = self.links.waiting() > 0 || !self.returned.is_empty();
        self.is_ledger_quiet = home.ledger.is_quiet() && home.rounds.is_over() && !has_own;
        if self.is_ledger_quiet {
            return;
        }
        if !home.ledger.is_idle() {
            // If there is no memory, the rest of the reserve is used.
            let _ = is_out_of_memory();
        }
        for (work, task) in home.rounds.pass(&mut home.ledger).into_iter().flatten() {
            // If no worker is free, the task comes again.
            let _ = home.dispatcher.work(work, task);
        }
        self.close_lost(home, port);
        while let Some((object, slot, link)) = home.ledger.deletion() {
            // The frame of the channel is about to be deleted, so nothing may read it any more.
            let peer = link.and_then(|core| self.get(core.index() as u64));
            peer.into_iter().for_each(|peer| peer.close(home, port));
            if home.dispatcher.work(Work::Deletion(object), Task::Delete(slot)).is_err() {
                home.ledger.postpone(object);
                break;
            }
        }
        home.pass_endpoints();
        self.link(home, port);
        let own = capabilities::reply_to_waiters(&mut home.ledger, port);
        own.links.into_iter().for_each(|(to, other, result)| self.links.sent(to, other, result));
        self.report_grants(own.grown, home);
        own.attachments.into_iter().for_each(|(number, result)| self.attachment_done(number, result, home));
        for peer in &mut self.all {
            peer.say(&mut home.ledger);
        }
    }

    /// Closes the channels of cores that have stopped, or accept nothing.
    fn close_lost(&mut self, home: &mut Home, port: &mut Port) {
        let has_lost = home.ledger.has_lost();
        for peer in self.all.iter_mut().filter(|_| has_lost) {
            let has_stopped = capabilities::core(peer.core).is_some_and(|core| home.ledger.is_closed(core));
            if has_stopped && (peer.channel.is_some() || peer.is_awaited() || matches!(peer.state, State::Broken)) {
                peer.close(home, port);
                if self.machine.core == 0 && matches!(peer.state, State::Stopped) {
                    println!("monitor: core {} has stopped", peer.core);
                }
            }
        }
        while let Some(core) = home.ledger.overflowed() {
            self.get(core.index() as u64).into_iter().for_each(|peer| peer.close(home, port));
        }
    }

    /// Sends the attachments for which messages wait.
    pub fn send_attachments(&mut self, home: &mut Home) {
        let own = self.machine.core;
        while let Some(Attachment { core, number, slot, from }) = home.endpoints.next_attachment() {
            let who = Completion::Message(number);
            match (self.get(core), capabilities::core(core)) {
                (Some(peer), Some(to)) => {
                    let (from, word) = ((own, from), ATTACHMENT | number);
                    peer.admit(TransferRequest::new(who, slot, from, (to, MONITOR), word), &mut home.ledger);
                }
                _ => home.ledger.refuse(Some(who), slot, Error::NotConnected),
            }
        }
    }

    /// Handles an attachment that has arrived or failed: if it was the last of its message, the message is sent now.
    fn attachment_done(&mut self, number: u64, result: Result<(), Error>, home: &mut Home) {
        let Some((core, message)) = home.endpoints.attachment_done(number, result) else { return };
        let watch = self.watch;
        // All cores to which something was sent are known.
        let Some(peer) = self.get(core) else { return };
        match message {
            Outgoing::Reply(number, words) => return peer.reply(number, &words),
            Outgoing::Request(None, words) => return home.endpoints.not_sent(core, &words),
            // An ended process makes no requests: the server may have been told of its end already.
            Outgoing::Request(Some(waiting), words) if waiting.has_gone(watch) => {
                home.endpoints.not_sent(core, &words);
                home.endpoints.refuse(waiting);
            }
            Outgoing::Request(Some(waiting), words) => peer.forward(waiting, words, &mut home.endpoints),
        }
        self.make_up_for_missed(home);
    }
}
