//! Slots into which capabilities arrive with messages, and which whoever takes these out has from then on.

use tench::memory;
use tench_abi::message::MAX_CAPS;
use tench_protocol::ArrayVec;
use tench_sys::{CapAddress, OWN_SPACE};

/// Capabilities of a message, each in a slot of its own.
pub type Caps = ArrayVec<CapAddress, MAX_CAPS>;

/// Deletes capabilities, and gives their slots back.
pub fn discard(caps: &[CapAddress]) {
    for cap in caps {
        // Whoever had it may have revoked it; then the slot is empty.
        let _ = OWN_SPACE.delete_at(*cap);
        memory::free_slot(*cap);
    }
}

/// Empty slots for what the next message carries.
pub struct Arrivals([CapAddress; MAX_CAPS]);

impl Arrivals {
    /// Takes as many as a message can carry.
    pub fn new() -> Option<Arrivals> {
        let mut taken = Caps::new();
        while !taken.is_full() {
            match memory::take_slot() {
                Ok(slot) => taken.push(slot),
                Err(_) => {
                    discard(&taken);
                    return None;
                }
            }
        }
        taken.into_inner().ok().map(Arrivals)
    }

    /// To be offered to the kernel.
    pub const fn slots(&self) -> &[CapAddress] {
        &self.0
    }

    /// Takes out what has arrived, and takes other slots in the place of these. `None` if there are none; then nothing of it is left.
    pub fn take(&mut self, arrived: &[CapAddress]) -> Option<Caps> {
        let mut taken = Caps::new();
        for slot in self.0.iter_mut().take(arrived.len()) {
            let Ok(other) = memory::take_slot() else {
                // Those that are in their places already are empty.
                for slot in arrived {
                    let _ = OWN_SPACE.delete_at(*slot);
                }
                taken.iter().for_each(|slot| memory::free_slot(*slot));
                return None;
            };
            taken.push(core::mem::replace(slot, other));
        }
        Some(taken)
    }
}

impl Drop for Arrivals {
    fn drop(&mut self) {
        discard(&self.0);
    }
}
