//! The kernel's capability, and the reserve of heap for a request, which every part of the monitor needs.

use tench::memory;
use tench_abi::layout::slot;
use tench_abi::object::CorePower;
use tench_sys::{Cap, Kernel};

/// Capability to the kernel.
pub const KERNEL: Cap<Kernel> = Cap::new(slot::KERNEL);

/// Bytes of heap reserved for what a client's request and a batch of other monitors' messages add to the ledgers.
pub const GROWTH: usize = 64 * 1024;

/// Returns whether there is too little memory for the ledgers to grow.
pub fn is_out_of_memory() -> bool {
    memory::reserve_heap(GROWTH).is_err()
}

/// Returns whether a core is off; false if the firmware does not tell.
pub fn is_off(core: u64) -> bool {
    KERNEL.core_power(core) == Ok(CorePower::Off)
}
