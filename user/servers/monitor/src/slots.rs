//! Slots into which capabilities arrive with messages, and which whoever takes these out has from then on.

use tench::memory;
use tench::server::{delete_in_parts, delete_more};
use tench_abi::message::MAX_CAPS;
use tench_protocol::ArrayVec;
use tench_sys::CapAddress;

/// Capabilities of a message, each in a slot of its own.
pub type Caps = ArrayVec<CapAddress, MAX_CAPS>;

/// Deletes capabilities, and gives their slots back. Of what takes longer than a moment a part is left, which goes bit
/// by bit when [others arrive](Arrivals::take).
pub fn discard(caps: &[CapAddress]) {
    caps.iter().for_each(|cap| delete_in_parts(*cap));
}

/// Empty slots for what the next message carries. There are fewer if what came before is still being deleted, and there
/// are no others.
pub struct Arrivals(Caps);

impl Arrivals {
    /// Takes as many as a message can carry.
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

    /// To be offered to the kernel.
    pub fn slots(&self) -> &[CapAddress] {
        &self.0
    }

    /// Takes out what has arrived, which is in the first of the slots, and takes others in the place of these. `None`
    /// if there may have been more for which there was no slot; then nothing of it is left. If something has arrived, a
    /// part of what is left to be deleted is.
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
