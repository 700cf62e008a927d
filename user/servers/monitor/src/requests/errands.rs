//! Errands: requests of local processes to start something on another core. The request to the other core's monitor
//! contains the requester's ceiling, for which a worker asks this core's process server, since the requester might lie.

use tench_monitor::requests::remote_request::RemoteRequest;
use tench_monitor_interface::protocol::Error;
use tench_protocol::{Given, Pending, Port, Sent};
use tench_sys::Endpoint;

use crate::requests::dispatcher::{Requester, refusal};

/// The capability to a process server.
pub type ToProcesses = Sent<Endpoint, Given>;

/// A request to start something on another core.
pub enum Errand {
    /// A program is to be started.
    Spawn(RemoteRequest, Requester),
    /// The process server of a core is requested, for a process with this badge.
    Endpoint(u64, u64, Pending<ToProcesses, Error>),
}

impl Errand {
    /// Refuses the request.
    pub fn refuse(self, port: &mut Port, why: Error) {
        match self {
            Errand::Spawn(_, requester) => port.finish_waiter(requester, &refusal(why)),
            Errand::Endpoint(.., pending) => port.finish(pending, &Err(why)),
        }
    }

    /// Returns the core that the request is for.
    pub const fn core(&self) -> u64 {
        match self {
            Errand::Spawn(request, _) => request.core(),
            Errand::Endpoint(core, ..) => *core,
        }
    }
}
