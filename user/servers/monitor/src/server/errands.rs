//! The main thread's part in [errands](crate::work::errands).

use tench_abi::power::identity;
use tench_channel::Request as Number;
use tench_monitor::message::MONITOR;
use tench_monitor::message::{Outcome, decode_result, encode_reply, ended};
use tench_monitor_interface::protocol::Error;
use tench_protocol::Caller;
use tench_protocol::Port;
use tench_sys::Error as KernelError;

use super::Server;
use crate::work::dispatcher::result;
use crate::work::errands::Errand;

impl Server {
    /// Makes a worker ask for the ceiling of a local process that wants to start something on another core.
    pub(super) fn send_off(
        &mut self,
        core: u64,
        requester: Caller,
        keep: impl FnOnce() -> Result<Errand, KernelError>,
    ) -> Result<(), Error> {
        if requester.process == MONITOR {
            return Err(Error::NotAllowed);
        }
        self.reach(core)?;
        if !self.dispatcher.has_capacity() {
            return Err(Error::Full);
        }
        self.dispatcher.vouch(requester.process, keep().map_err(|_| Error::Full)?);
        Ok(())
    }

    /// Handles the process server's reply: the ceiling, or that it does not know the process.
    pub(super) fn run(&mut self, errand: Errand, words: &[u64], port: &mut Port) {
        let ceiling = match result::<u8>(words) {
            Ok(ceiling) => ceiling,
            Err(why) => return errand.refuse(port, why),
        };
        let core = errand.core();
        let Some(peer) = self.peers.iter_mut().find(|peer| peer.core == core) else {
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
    pub(super) fn admitted(&mut self, core: u64, number: Number, badge: u64, words: &[u64]) {
        let reply = match decode_result(words) {
            Ok((Outcome::Replied, _)) => match self.endpoints.processes(badge, core) {
                Ok(made) => encode_reply(0, &[made], &[]),
                Err(_) => {
                    self.endpoints.put_back(identity(badge));
                    ended(Outcome::Busy, 0)
                }
            },
            _ => words.iter().copied().collect(),
        };
        if let Some(peer) = self.peers.iter_mut().find(|peer| peer.core == core) {
            peer.reply(number, &reply);
        }
    }
}
