//! The process server creates and destroys processes. Its interface and policy: docs/manual/servers.md.
//!
//! ```text
//! boot       the boot archive and the other servers' endpoints, as init passed them
//! memory     slots and memory of one process, charged to its own account
//! spawn      builds a process from a request and runs it
//! server     the request and fault loop
//! ending     destroys processes, in parts
//! waiting    threads that wait for the end of a process, and their replies
//! services   starts servers, and restarts them when they end
//! inspect    read-only requests
//! patient    calls with a timeout, to servers that may have died
//! report     fault messages
//! catalogue  the programs of the boot archive, by name    (library)
//! records    the table of processes                       (library)
//! waits      which thread waits for which process         (library)
//! shares     quotas of families for process builders      (library)
//! supervisor which servers are restarted, and when        (library)
//! ```
//! The server is a client of `mem`, `names`, `console` and `files` only; none of them ever waits for it.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

mod boot;
mod ending;
mod inspect;
mod memory;
mod patient;
mod report;
mod server;
mod services;
mod spawn;
mod waiting;

use tench_loader::addresses::Randomness;

tench::entry!(main);

/// Serves requests for ever.
fn main() {
    // The loader has given this server random numbers of its own.
    let mut random = Randomness::from_words(tench::process::info().map_or([0; 4], |info| info.random));
    match boot::Boot::open(&mut random).and_then(|boot| server::Server::new(boot, random)) {
        Ok(mut server) => server.serve(),
        Err(error) => panic!("starting the process server: {error}"),
    }
}
