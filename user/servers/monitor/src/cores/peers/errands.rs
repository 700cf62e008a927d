//! [Errands](crate::work::errands): requests to start something on another core, from here to there and from there.

use tench_abi::power::identity;
use tench_channel::Request as Number;
use tench_monitor::message::{Outcome, decode_result, encode_reply, ended};
use tench_monitor_interface::protocol::Error;
use tench_protocol::Port;
use tench_sys::Error as KernelError;

use super::Peers;
use crate::transfer::home::Home;
use crate::work::dispatcher::result;
use crate::work::errands::Errand;

impl Peers {
    /// Handles the process server's reply: the ceiling, or that it does not know the process.
    pub fn run(&mut self, errand: Errand, words: &[u64], port: &mut Port) {
        let ceiling = match result::<u8>(words) {
            Ok(ceiling) => ceiling,
            Err(why) => return errand.refuse(port, why),
        };
        let Some(peer) = self.get(errand.core()) else {
            return errand.refuse(port, Error::NotConnected);
        };
        match errand {
            Errand::Spawn(request, requester) => {
                let mut kept = Some(requester);
                let asked = peer.ask(&request.with_ceiling(ceiling), || kept.take().ok_or(KernelError::Aborted));
                kept.into_iter().zip(asked.err()).for_each(|(requester, why)| requester.refuse(port, why));
            }
            Errand::Endpoint(_, badge, pending) => peer.processes(badge, ceiling, pending, port),
        }
    }

    /// Replies to a core after the process server here has admitted one of its processes, or has not.
    pub fn admitted(&mut self, core: u64, number: Number, badge: u64, words: &[u64], home: &mut Home) {
        let reply = match decode_result(words) {
            Ok((Outcome::Replied, _)) => match home.endpoints.processes(badge, core) {
                Ok(made) => encode_reply(0, &[made], &[]),
                Err(_) => {
                    home.endpoints.put_back(identity(badge));
                    ended(Outcome::Busy, 0)
                }
            },
            _ => words.iter().copied().collect(),
        };
        if let Some(peer) = self.get(core) {
            peer.reply(number, &reply);
        }
    }
}
