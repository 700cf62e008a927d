//! Clients of a server that is restarted get another capability to it, for which they may have to wait.

use tench_abi::Rights;
use tench_abi::power::Client;
use tench_procs::supervision::supervisor::State;
use tench_procs_interface::protocol::Error;
use tench_protocol::{Given, Later, Pending, Replies, Sent};
use tench_sys::{Endpoint, OWN_CSPACE};

use super::{Processes, Supervision};

/// A thread that waits for a server that is being restarted.
pub type Connecting = Pending<Sent<Endpoint, Given>, Error>;

/// Outcome of a wait for a server.
pub enum Outcome {
    /// The server of this name runs: the process of this number gets a capability to it.
    Runs(&'static str, u64),
    /// The server will not be restarted.
    GivenUp,
    /// The waiting process has ended.
    Ended,
}

impl Supervision {
    /// Returns a capability with this badge to the server of this name, for a client that has lost its own. If the
    /// server is down, the client waits until it runs.
    pub fn reconnect(
        &mut self,
        client: Client,
        badge: u64,
        later: Later<'_, Sent<Endpoint, Given>, Error>,
        name: &str,
    ) -> Result<Option<Sent<Endpoint, Given>>, Error> {
        match self.supervisor.state(name) {
            Some(State::Up(_)) if self.endpoint(name).is_some() => self.mint(name, badge).map(Some),
            // A server that is being destroyed counts as down.
            Some(State::Up(_) | State::Down(_)) => {
                let service = self.supervisor.find(name).ok_or(Error::GivenUp)?;
                if service.wait(client, || later.keep().ok()) { Ok(None) } else { Err(Error::Full) }
            }
            Some(State::GivenUp) | None => Err(Error::GivenUp),
        }
    }

    /// Mints a capability to a server that is sent with the reply, with this badge.
    pub fn mint(&self, name: &str, badge: u64) -> Result<Sent<Endpoint, Given>, Error> {
        let server = self.endpoint(name).ok_or(Error::GivenUp)?;
        // If the last receiver offered no slot, its capability is still here.
        let _ = OWN_CSPACE.delete_at(self.outgoing);
        let rights = Rights::WRITE | Rights::CALL | Rights::GRANT;
        server.mint_to(self.outgoing, rights, badge).map(Sent::new).map_err(|_| Error::Internal)
    }

    /// Replies to those who waited for a server.
    pub fn reply_to_connections(&mut self, replies: &mut Replies, processes: &impl Processes) {
        for (outcome, waiter) in core::mem::take(&mut self.connections) {
            match outcome {
                Outcome::Ended => replies.forget(waiter),
                // A waiter that has given up meanwhile gets no reply.
                Outcome::Runs(name, process) => {
                    let cap = processes.badge(process).and_then(|badge| self.mint(name, badge));
                    let _ = replies.send(waiter, &cap);
                }
                Outcome::GivenUp => drop(replies.send(waiter, &Err(Error::GivenUp))),
            }
        }
    }
}
