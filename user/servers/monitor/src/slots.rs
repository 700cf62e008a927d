//! Slots for the capabilities that arrive with messages. Whoever takes them out owns them.

use tench::memory;
use tench::server::{delete_in_parts, delete_more};
use tench_abi::message::MAX_CAPS;
use tench_protocol::ArrayVec;
use tench_sys::CapAddress;

/// Capabilities of a message, each in a slot of its own.
pub type Caps = ArrayVec<CapAddress, MAX_CAPS>;

/// Deletes capabilities, and frees their slots. A deletion that takes long is only begun; its rest is done in parts
/// when [others arrive](Arrivals::take).
pub fn discard(caps: &[CapAddress]) {
    caps.iter().for_each(|cap| delete_in_parts(*cap));
}

/// Empty slots for the next message's capabilities. There are fewer if earlier ones are still being deleted and no
/// other slots are free.
pub struct Arrivals(Caps);

impl Arrivals {
    /// Takes as many slots as a message can have capabilities.
    pub fn new() -> Option<Arrivals> {
        let mut arrivals = Arrivals(Caps::new());
        arrivals.fill();
        arrivals.0.is_full().then_some(arrivals)
    }

    fn fill(&mut self) {
        while !self.0.is_full()
            && let Ok(slot) = memory::take_slot()
        {
            self.0.push(slot);
        }
    }

    /// Returns the slots to be offered to the kernel.
    pub fn slots(&self) -> &[CapAddress] {
        &self.0
    }

    /// Takes out arrived capabilities, which are in the first of the slots, and replaces those slots. Returns `None` if
    /// there may have been more capabilities than slots; then none of them is left. If something has arrived, also does
    /// a part of the pending deletions.
    pub fn take(&mut self, arrived: &[CapAddress]) -> Option<Caps> {
        if arrived.is_empty() && self.0.is_full() {
            return Some(Caps::new());
        }
        delete_more();
        let is_whole = self.0.is_full() || arrived.len() < self.0.len();
        let taken: Caps = self.0.drain(..arrived.len().min(self.0.len())).collect();
        if !is_whole {
            discard(&taken);
        }
        self.fill();
        is_whole.then_some(taken)
    }
}

impl Drop for Arrivals {
    fn drop(&mut self) {
        discard(&self.0);
    }
}
