//! What a server receives with: slots and reply objects of this process; and what it keeps when it is started again.

use tench_abi::layout::slot;
use tench_abi::object::{NODE_BITS, SLOT_SIZE};
use tench_abi::{CapAddress, Kind};
use tench_protocol::{Factory, Port, Replies, Slots};
use tench_sys::{Cap, CapNode, Endpoint, Error, Frame, MapFlags, OWN_SPACE, Reply};

use crate::memory::{self, Window};

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

/// Memory and slots that stay when this server ends and is started again. At first the memory is zeros and the slots are
/// empty; afterwards they are as the server's predecessor left them, which may be in the middle of anything.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    first: CapAddress,
}

impl Kept {
    /// Slots that are kept.
    pub const SLOTS: u32 = 1 << NODE_BITS;

    /// What the process server gave: slots and memory; if it gave nothing, as much that does not stay.
    pub fn open(bytes: u64) -> Result<(Kept, Window), memory::Error> {
        let frame = given(slot::KEPT_MEMORY, Kind::Frame);
        let frame =
            frame.map_or_else(|| memory::make::<Frame>(u64::from(bytes.ilog2())).map(memory::Made::leak), Ok)?;
        let window = Window::new(frame, frame.identify()?.size_bits, MapFlags::READ | MapFlags::WRITE)?;
        let node = given(slot::KEPT_CAPABILITIES, Kind::CapNode);
        let node = node.map_or_else(|| memory::make::<CapNode>(u64::from(NODE_BITS)).map(memory::Made::leak), Ok)?;
        // The last entry of the root, so that the library's own nodes find theirs.
        let root = Cap::<CapNode>::new(slot::CSPACE);
        let entries = 1u32 << root.identify()?.size_bits.saturating_sub(SLOT_SIZE.trailing_zeros());
        root.install_node(entries - 1, node)?;
        Ok((Kept { first: CapAddress::new(entries - 1, 0) }, window))
    }

    /// The slot of this number, less than [`SLOTS`](Self::SLOTS).
    pub const fn slot(&self, number: u32) -> CapAddress {
        CapAddress(self.first.0 + number % Self::SLOTS)
    }
}

/// What lies in a slot, if it is of this kind.
fn given<T>(slot: CapAddress, kind: Kind) -> Option<Cap<T>> {
    OWN_SPACE.identify_at(slot).ok().filter(|found| found.kind == kind).map(|_| Cap::new(slot))
}
