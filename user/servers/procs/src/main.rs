//! The process server: makes processes and ends them. What it does: docs/manual/servers.md.
//!
//! ```text
//! boot       the boot archive and the other servers, as init gave them
//! memory     slots and memory of one process, on its own account
//! spawn      from a request to a running process
//! server     requests and faults, one after another
//! services   starting servers, also again when they end
//! inspect    requests that only look
//! patient    the way to servers that may be what has died
//! report     what is said about a fault
//! records    what is known about each process        (library)
//! supervisor which servers are started again, and when (library)
//! ```
//! The server is nobody's client but for `mem`, `names` and `console`, none of which ever waits for it.

#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

mod boot;
mod inspect;
mod memory;
mod patient;
mod report;
mod server;
mod services;
mod spawn;

tench::entry!(main);

/// Answers requests for ever.
fn main() {
    match boot::Boot::open().and_then(server::Server::new) {
        Ok(mut server) => server.serve(),
        Err(error) => panic!("starting the process server: {error}"),
    }
}
