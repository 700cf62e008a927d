//! What a server receives with: slots and reply objects of this process.

use tench_abi::layout::slot;
use tench_protocol::{Factory, Port, Replies, Slots};
use tench_sys::{Cap, Endpoint, Error, OWN_SPACE, Reply};

use crate::memory;

/// Where the main thread of a server receives: at [`SERVICE`](slot::SERVICE), with requests that carry at most `caps`
/// capabilities.
pub fn port(caps: usize) -> Port {
    let slots = Slots { take: || memory::take_slot().ok(), count: caps };
    let replies = Replies::new(Cap::new(slot::REPLY), Factory { make, delete });
    Port::new(Cap::<Endpoint>::new(slot::SERVICE), replies, slots)
}

/// A new reply object.
fn make() -> Result<Cap<Reply>, Error> {
    memory::make::<Reply>(0).map(memory::Made::leak).map_err(|_| Error::OutOfMemory)
}

/// Deletes a reply object that is not needed any more. Its memory comes back when the process ends.
fn delete(reply: Cap<Reply>) {
    if OWN_SPACE.delete_at(reply.address()).is_ok() {
        memory::free_slot(reply.address());
    }
}
