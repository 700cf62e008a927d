//! The memory server allocates and frees untyped memory. Its interface and policy: docs/manual/servers.md.
//!
//! ```text
//! main      entry point and loop
//! server    requests
//! kernel    system calls for the ledger's store (in the library)
//! own       the server's own arrays, which grow in place
//! slabs     slab mode: bundles of objects, of slabs with watermarks
//! heap      a heap of fixed size, for slab mode
//! thread    the main thread's thread block
//! ```
//! The server is nobody's client, not even for printing: any server that it called could be waiting for memory. A panic
//! ends it with a fault, which `init` reports.

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

/// Endpoint at which requests arrive.
const SERVICE: Cap<Endpoint> = Cap::new(slot::SERVICE);

/// Entry point. The loader jumps here, on a stack of its own.
///
/// # Safety
/// `information` must be the address of the process information.
#[cfg(target_os = "none")]
#[unsafe(no_mangle)]
unsafe extern "C" fn _start(information: *const Info) -> ! {
    // SAFETY: the loader has mapped the page for as long as the process lives, and nobody writes to it.
    let information = unsafe { &*information };
    // SAFETY: this is the information passed at the start.
    unsafe { thread::set_up(information) };
    own::set_start(information.dynamic);
    heap::set_up();
    serve()
}

/// Does nothing: on the host there is nothing to serve.
#[cfg(not(target_os = "none"))]
fn main() {}

/// Serves requests for ever.
fn serve() -> ! {
    let mut server = match Server::new() {
        Ok(server) => server,
        Err(error) => panic!("taking over the memory: {error}"),
    };
    // Clients that wait for memory donate their time and priority to the server. (No other thread serves the endpoint,
    // so this is not refused.)
    let _ = Cap::<Thread>::new(slot::THREAD).serve(SERVICE, 0);
    let (mut request, mut reply) = (Received::new(), Message::new(DONE));
    let mut received = SERVICE.receive_into(Wait::FOREVER, &mut request);
    loop {
        if let Err(error) = received {
            // Only a reply that the kernel refuses leads here, and there is none such.
            panic!("receiving: {error}");
        }
        server.serve(&request, &mut reply);
        received = SERVICE.reply_receive_into(&reply, Wait::FOREVER, &mut request);
    }
}

/// Ends the server with a fault.
#[cfg(target_os = "none")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: an undefined instruction ends the process here; nothing after it is executed.
    unsafe { core::arch::asm!("udf #0", options(noreturn, nomem, nostack)) }
}
