//! The memory server: hands out untyped memory, and takes it back. What it does: docs/manual/servers.md.
//!
//! ```text
//! main      entry point and loop
//! server    requests carried out
//! kernel    what the books' store (in the library) asks of the kernel
//! own       arrays that grow in place: nobody gives memory to the one who gives memory
//! slabs     slab mode: bundles of objects, of slabs with watermarks
//! heap      a heap of fixed size, for slab mode
//! thread    the main thread's block
//! ```
//! The server asks nobody anything, not even to print: whatever it called could be waiting for memory. A panic ends it
//! with a fault, which `init` reports.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![cfg_attr(not(target_os = "none"), allow(dead_code))]

extern crate alloc;

#[cfg(target_os = "none")]
mod heap;
mod kernel;
mod own;
mod server;
mod slabs;
#[cfg(target_os = "none")]
mod thread;

use tench_abi::layout::slot;
#[cfg(target_os = "none")]
use tench_abi::process::Info;
use tench_protocol::DONE;
use tench_sys::{Cap, Endpoint, Message, Received, Thread, Wait};

use crate::server::Server;

/// Where requests arrive.
const SERVICE: Cap<Endpoint> = Cap::new(slot::SERVICE);

/// What the loader jumps to, on a stack of its own.
///
/// # Safety
/// `information` is the address of the process information.
#[cfg(target_os = "none")]
#[unsafe(no_mangle)]
unsafe extern "C" fn _start(information: *const Info) -> ! {
    // SAFETY: the loader has mapped the page for as long as the process lives, and nobody writes to it.
    let information = unsafe { &*information };
    // SAFETY: this is what it was told.
    unsafe { thread::set_up(information) };
    own::set_start(information.dynamic);
    heap::set_up();
    serve()
}

/// On the host there is nothing to serve.
#[cfg(not(target_os = "none"))]
fn main() {}

/// Answers requests for ever.
fn serve() -> ! {
    let mut server = match Server::new() {
        Ok(server) => server,
        Err(error) => panic!("taking over the memory: {error}"),
    };
    // Whoever waits for memory helps the server. (Nobody else serves the endpoint, so it is not refused.)
    let _ = Cap::<Thread>::new(slot::THREAD).serve(SERVICE, 0);
    let (mut request, mut answer) = (Received::new(), Message::new(DONE));
    let mut received = SERVICE.receive_into(Wait::FOREVER, &mut request);
    loop {
        if let Err(error) = received {
            // Only an answer that the kernel refuses leads here, and there is none such.
            panic!("receiving: {error}");
        }
        server.answer(&request, &mut answer);
        received = SERVICE.reply_receive_into(&answer, Wait::FOREVER, &mut request);
    }
}

/// Ends the server with a fault.
#[cfg(target_os = "none")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: an undefined instruction ends the process here; nothing after it is executed.
    unsafe { core::arch::asm!("udf #0", options(noreturn, nomem, nostack)) }
}
