//! The way to servers that may be what has died: none of them is waited for longer than a moment.

use core::time::Duration;

use tench::time;
use tench_protocol::Transport;
use tench_sys::{Cap, CapAddress, Endpoint, Error, Message, Received};

/// How long an answer may take. Servers answer at once unless they are what has died, or kept busy; then they are asked
/// again later.
const PATIENCE: Duration = Duration::from_millis(20);

/// A server that is waited for a limited time. It sends no capabilities.
#[derive(Clone, Copy)]
pub struct Patient(pub Cap<Endpoint>);

impl Transport for Patient {
    fn call(self, request: &Message, _: &[CapAddress], answer: &mut Received) -> Result<(), Error> {
        self.0.call_until(time::deadline(PATIENCE), request, &[], answer)
    }
}
