//! Capabilities to servers that may be restarted.

use tench_protocol::transport::Short;
use tench_protocol::wire::Registers;
use tench_protocol::{Failure, Transport};
use tench_sys::{Cap, CapAddress, Endpoint, Error, Instant, Kind, Message, OWN_CSPACE, Received, Words};

use crate::Procs;

/// A capability to a server, in a well-known slot, from the process server. A restart of the server revokes it; the
/// first call that finds it gone gets a new one and fails with [`Failure::Restarted`].
#[derive(Clone, Copy, Debug)]
pub struct Standing(pub CapAddress);

impl Standing {
    const fn endpoint(self) -> Cap<Endpoint> {
        Cap::new(self.0)
    }

    fn is_empty(self) -> bool {
        OWN_CSPACE.identify_at(self.0).is_ok_and(|found| found.kind == Kind::Null)
    }

    /// Gets a new capability, if the old one is gone. Returns whether the slot holds one now.
    fn reconnect(self) -> bool {
        // Another thread may have been faster.
        self.is_empty() && (Procs::STANDARD.reconnect(self.0, self.0).is_ok() || !self.is_empty())
    }
}

impl Transport for Standing {
    #[inline(always)]
    fn call_registers(self, label: u64, words: &Registers) -> Result<Words, Error> {
        self.endpoint().call_registers(label, words)
    }

    #[inline(always)]
    fn call_short(self, label: u64, request: &Registers, caps: usize, offered: &[CapAddress]) -> Result<Short, Error> {
        Transport::call_short(self.endpoint(), label, request, caps, offered)
    }

    #[inline(always)]
    fn call(self, request: &Message, offered: &[CapAddress], reply: &mut Received) -> Result<(), Error> {
        Transport::call(self.endpoint(), request, offered, reply)
    }

    fn call_until(
        self,
        deadline: Instant,
        request: &Message,
        offered: &[CapAddress],
        reply: &mut Received,
    ) -> Result<(), Error> {
        self.endpoint().call_until(deadline, request, offered, reply)
    }

    #[cold]
    fn failed<E>(self, error: Error) -> Failure<E> {
        let may_be_gone = matches!(error, Error::Aborted | Error::InvalidCapability);
        if may_be_gone && self.reconnect() { Failure::Restarted } else { Failure::Lost(error) }
    }
}
