//! Servers that may be started again.

use tench_protocol::transport::Short;
use tench_protocol::wire::Registers;
use tench_protocol::{Failure, Transport};
use tench_sys::{Cap, CapAddress, Endpoint, Error, Instant, Kind, Message, OWN_SPACE, Received, Words};

use crate::Procs;

/// The way to a server that the process server gave in a well-known slot. When the server is started again, the
/// capability is gone; the first call that finds that gets a new one and ends with [`Failure::Restarted`].
#[derive(Clone, Copy, Debug)]
pub struct Standing(pub CapAddress);

impl Standing {
    const fn endpoint(self) -> Cap<Endpoint> {
        Cap::new(self.0)
    }

    fn is_empty(self) -> bool {
        OWN_SPACE.identify_at(self.0).is_ok_and(|found| found.kind == Kind::Null)
    }

    /// Gets the capability anew, if it is gone.
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
    fn call(self, request: &Message, offered: &[CapAddress], answer: &mut Received) -> Result<(), Error> {
        Transport::call(self.endpoint(), request, offered, answer)
    }

    fn call_until(
        self,
        deadline: Instant,
        request: &Message,
        offered: &[CapAddress],
        answer: &mut Received,
    ) -> Result<(), Error> {
        self.endpoint().call_until(deadline, request, offered, answer)
    }

    #[cold]
    fn failed<E>(self, error: Error) -> Failure<E> {
        let may_be_gone = matches!(error, Error::Aborted | Error::InvalidCapability);
        if may_be_gone && self.reconnect() { Failure::Restarted } else { Failure::Lost(error) }
    }
}
