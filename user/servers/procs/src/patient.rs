//! Calls with a timeout, to servers that may have died.

use core::time::Duration;

use tench::time;
use tench_protocol::Transport;
use tench_sys::{Cap, CapAddress, Endpoint, Error, Message, Received};

/// Timeout of a call. Servers reply at once unless they have died or are kept busy; then they are called again later.
const PATIENCE: Duration = Duration::from_millis(20);

/// A server that is called with a timeout. No capabilities are sent to it.
#[derive(Clone, Copy)]
pub struct Patient(pub Cap<Endpoint>);

impl Transport for Patient {
    fn call(self, request: &Message, _: &[CapAddress], reply: &mut Received) -> Result<(), Error> {
        self.0.call_until(time::deadline(PATIENCE), request, &[], reply)
    }
}
