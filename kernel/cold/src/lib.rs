//! The kernel's rarely used operations on AArch64, optimised for size.
//!
//! The level of optimisation is that of the crate in which a generic function is instantiated, and the profiles say `z`
//! for this one. The table of operations leads here by the name of a symbol
//! ([`Arch::perform_cold`](tench_kernel::Arch)), because the machine's crate cannot depend on this one.

#![no_std]
#![deny(missing_docs)]

#[cfg(target_os = "none")]
mod cold {
    use tench_abi::Error;
    use tench_arch_aarch64::Machine;
    use tench_kernel::entry::Outcome;
    use tench_kernel::thread::Thread;
    use tench_kernel::{Kernel, Ref, cold};

    /// Performs a rarely used operation.
    #[unsafe(no_mangle)]
    fn tench_perform_cold(k: &mut Kernel<Machine>, thread: Ref<Thread>) -> Result<Outcome, Error> {
        cold::perform(k, thread)
    }
}
