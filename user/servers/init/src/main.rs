//! The first process. What it does, step by step: docs/manual/servers.md.
//!
//! ```text
//! main       entry point, failure, waiting for faults
//! early      output before there is a console
//! pool       slots and memory for what init makes
//! boot       the boot archive, mapped
//! devices    frames and interrupts of devices     (the device tree is read by the library)
//! servers    loading mem and procs, asking procs to start the others
//! ```
//! It has no heap: the memory server, which would have to give the memory, is its own child.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![cfg_attr(not(target_os = "none"), allow(dead_code))]

mod boot;
mod devices;
mod early;
mod failure;
mod pool;
mod servers;

use tench_abi::boot::{BootInfo, MAGIC, VERSION};
use tench_sys::{Cap, Endpoint, Wait};

use crate::early::print;
use crate::failure::Failure;

/// What the kernel jumps to, on a stack of its own.
///
/// # Safety
/// `info` is the address of the boot information.
#[cfg(target_os = "none")]
#[unsafe(no_mangle)]
unsafe extern "C" fn _start(info: *const BootInfo) -> ! {
    early::set_up_thread();
    // SAFETY: the kernel has mapped the page for as long as the process lives, and nobody writes to it.
    match run(unsafe { &*info }) {
        Err(failure) => early::stop(format_args!("init: {failure}\n")),
    }
}

/// On the host there is nothing to start.
#[cfg(not(target_os = "none"))]
fn main() {}

/// Starts everything, and then waits for what must not happen.
fn run(info: &BootInfo) -> Result<core::convert::Infallible, Failure> {
    if info.magic != MAGIC || info.version != VERSION {
        return Err(Failure::Text("the kernel's boot information is of another version; rebuild the image"));
    }
    let faults = servers::start(info)?;
    wait(faults)
}

/// Waits for faults of the two servers that init itself has loaded. Nothing can go on without them.
fn wait(faults: Cap<Endpoint>) -> Result<core::convert::Infallible, Failure> {
    loop {
        let message = faults.receive(Wait::FOREVER).map_err(|error| Failure::Kernel("waiting for faults", error))?;
        if message.is_fault() {
            let name = servers::name_of(message.badge());
            let (address, instruction, syndrome) = (message.word(1), message.word(2), message.word(3));
            print(format_args!(
                "{name}: fault of class {} with address {address:#x} at instruction {instruction:#x}, syndrome \
                 {syndrome:#x}\n  at {instruction:#x} in {name}\n",
                message.label()
            ));
            return Err(Failure::Ended(name));
        }
    }
}

/// Ends the machine with what went wrong.
#[cfg(target_os = "none")]
#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    early::stop(format_args!("init: {info}\n"))
}
