//! Typed requests to the name server.

use tench_abi::CapAddress;
use tench_abi::layout::slot;
use tench_protocol::{call, call_words};
use tench_sys::{Cap, Endpoint, Message, Received, offer_slots};

use crate::Failure;
use crate::protocol::{Label, MAX_NAME};

/// The name server.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    endpoint: Cap<Endpoint>,
}

impl Names {
    /// The name server as every process finds it.
    pub const STANDARD: Names = Names { endpoint: Cap::new(slot::NAMES) };

    /// The name server behind an endpoint.
    pub const fn at(endpoint: Cap<Endpoint>) -> Names {
        Names { endpoint }
    }

    /// Registers an endpoint under a name. Whoever looks the name up gets a copy of this capability, so it is usually
    /// one that allows no more than to call.
    pub fn register(self, name: &str, endpoint: Cap<Endpoint>) -> Result<(), Failure> {
        let mut request = request(Label::Register, name);
        request.copy_cap(endpoint);
        call(self.endpoint, &request).map(drop)
    }

    /// The endpoint that is registered under a name; the capability goes to the empty slot `slot`.
    pub fn look_up(self, name: &str, slot: CapAddress) -> Result<Cap<Endpoint>, Failure> {
        self.take(&request(Label::LookUp, name), slot)
    }

    /// The same, but waits until the name is registered.
    pub fn wait_for(self, name: &str, slot: CapAddress) -> Result<Cap<Endpoint>, Failure> {
        self.take(&request(Label::Await, name), slot)
    }

    fn take(self, request: &Message, slot: CapAddress) -> Result<Cap<Endpoint>, Failure> {
        offer_slots(&[slot]);
        let reply = call(self.endpoint, request);
        // What is not offered cannot arrive by surprise.
        offer_slots(&[]);
        match *reply?.caps() {
            [cap] => Ok(Cap::new(cap)),
            _ => Err(Failure::Malformed),
        }
    }

    /// Forgets a name that this process registered.
    pub fn unregister(self, name: &str) -> Result<(), Failure> {
        call(self.endpoint, &request(Label::Unregister, name)).map(drop)
    }

    /// The first name after `name` in alphabetical order (from the beginning: after the empty name) and the process
    /// that registered it, or `Unknown`. The name is written into `buffer`.
    pub fn next<'a>(self, name: &str, buffer: &'a mut [u8; MAX_NAME]) -> Result<(&'a str, u64), Failure> {
        let reply: Received = call(self.endpoint, &request(Label::Next, name))?;
        let mut reader = reply.reader();
        let process = reader.word().ok_or(Failure::Malformed)?;
        let found = reader.text().ok_or(Failure::Malformed)?;
        let place = buffer.get_mut(..found.len()).ok_or(Failure::Malformed)?;
        place.copy_from_slice(found);
        Ok((core::str::from_utf8(place).map_err(|_| Failure::Malformed)?, process))
    }

    /// A process has ended. Needs the capability without a badge.
    pub fn process_ended(self, process: u64) -> Result<(), Failure> {
        call_words(self.endpoint, Label::ProcessEnded as u64, [process, 0, 0, 0]).map(drop)
    }
}

/// A request about a name. One that is too long is cut to one byte too many, which the server refuses.
fn request(label: Label, name: &str) -> Message {
    let bytes = name.as_bytes();
    let mut message = Message::new(label as u64);
    message.push_text(bytes.get(..MAX_NAME + 1).unwrap_or(bytes));
    message
}
