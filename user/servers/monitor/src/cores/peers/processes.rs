//! Requests of programs for the process server of another core: sending them, and replying to those of other cores.

use tench_abi::power::identity;
use tench_channel::Request as Number;
use tench_monitor::message::{Outcome, decode_result, encode_reply, ended, operation};
use tench_monitor_interface::protocol::Error;
use tench_protocol::Port;
use tench_quota::Client;

use super::Peers;
use crate::cores::peer::Asked;
use crate::requests::dispatcher::result;
use crate::requests::processes::EndpointRequest;
use crate::transfer::home::Home;

impl Peers {
    /// Sends the request on, or refuses it, after the local process server has replied with the requester's ceiling, or
    /// with the reason why there is none.
    pub fn request_processes(&mut self, request: EndpointRequest, words: &[u64], home: &mut Home, port: &mut Port) {
        let EndpointRequest { core, badge, pending } = request;
        let (ceiling, peer) = match (result::<u8>(words), self.get(core)) {
            (Ok(ceiling), Some(peer)) => (ceiling, peer),
            (Err(why), _) => return port.finish(pending, &Err(why)),
            (Ok(_), None) => return port.finish(pending, &Err(Error::NotConnected)),
        };
        let asked = Asked::Endpoint(Client::of_badge(badge), pending);
        peer.send_or_refuse(operation::PROCESSES, &[badge, u64::from(ceiling)], asked, home, port);
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
