//! [Errands](crate::requests::errands), requests to start something on another core: sending them, and replying to
//! those of other cores.

use tench_abi::power::identity;
use tench_channel::Request as Number;
use tench_monitor::message::{Outcome, decode_result, encode_reply, ended, operation};
use tench_monitor_interface::protocol::Error;
use tench_protocol::Port;
use tench_quota::Client;

use super::Peers;
use crate::cores::peer::{Asked, asked};
use crate::requests::dispatcher::result;
use crate::requests::errands::Errand;
use crate::transfer::home::Home;

impl Peers {
    /// Sends the request on, or refuses it, after the local process server has replied with the requester's ceiling, or
    /// with the reason why there is none.
    pub fn run(&mut self, errand: Errand, words: &[u64], home: &mut Home, port: &mut Port) {
        let ceiling = match result::<u8>(words) {
            Ok(ceiling) => ceiling,
            Err(why) => return errand.refuse(port, why),
        };
        let Some(peer) = self.get(errand.core()) else {
            return errand.refuse(port, Error::NotConnected);
        };
        match errand {
            Errand::Spawn(request, requester) => {
                let request = request.with_ceiling(ceiling);
                peer.send_or_refuse(
                    request.operation as u16,
                    &request.encode(),
                    asked(&request, requester),
                    home,
                    port,
                );
            }
            Errand::Endpoint(_, badge, pending) => {
                let asked = Asked::Endpoint(Client::of_badge(badge), pending);
                peer.send_or_refuse(operation::PROCESSES, &[badge, u64::from(ceiling)], asked, home, port);
            }
        }
    }

    /// Replies to a core after the local process server has admitted, or refused, one of that core's processes.
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
