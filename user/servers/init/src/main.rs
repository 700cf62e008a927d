//! The first process. Its steps: docs/manual/servers.md.
//!
//! ```text
//! main       entry point, failure
//! early      output before there is a console
//! pool       slots and memory for what init makes
//! boot       the boot archive, mapped
//! devices    frames and interrupts of devices     (the device tree is read by the library)
//! servers    loads mem and procs, makes procs start the others
//! watch      waits for faults of these two
//! ```
//! It has no heap: the memory server, which would have to provide the memory, is its own child.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![cfg_attr(not(target_os = "none"), allow(dead_code))]

mod boot;
mod devices;
mod early;
mod failure;
mod pool;
mod servers;
mod watch;

use tench_abi::boot::{BootInfo, MAGIC, VERSION};
use tench_abi::layout::slot;
use tench_sys::{Cap, Thread};

use crate::failure::Failure;

/// Entry point. The kernel jumps here, on a stack of its own.
///
/// # Safety
/// `info` must be the address of the boot information.
#[cfg(target_os = "none")]
#[unsafe(no_mangle)]
unsafe extern "C" fn _start(info: *const BootInfo) -> ! {
    early::set_up_thread();
    // SAFETY: the kernel has mapped the page for as long as the process lives, and nobody writes to it.
    match run(unsafe { &*info }) {
        Err(failure) => early::stop(&failure),
    }
}

/// Does nothing: on the host there is nothing to start.
#[cfg(not(target_os = "none"))]
fn main() {}

/// Starts everything, and then does nothing: a thread of its own waits for faults of the first servers.
fn run(info: &BootInfo) -> Result<core::convert::Infallible, Failure> {
    if info.magic != MAGIC || info.version != VERSION {
        return Err(Failure::Text("the kernel's boot information is of another version; rebuild the image"));
    }
    servers::start(info)?;
    let own = Cap::<Thread>::new(slot::THREAD);
    loop {
        own.suspend().map_err(|error| Failure::Kernel("waiting for ever", error))?;
    }
}

/// Stops the machine with the reason.
#[cfg(target_os = "none")]
#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    early::stop(info)
}
