//! The process server: makes processes and ends them. What it does: docs/manual/servers.md.
//!
//! ```text
//! boot       the boot archive and the other servers, as init gave them
//! memory     slots and memory of one process, on its own account
//! spawn      from a request to a running process
//! server     requests and faults, one after another
//! ending     ending processes, in parts
//! waiting    who waits for that, and is told
//! services   starting servers, also again when they end
//! inspect    requests that only look
//! patient    the way to servers that may be what has died
//! report     what is said about a fault
//! catalogue  which programs there are, found by name   (library)
//! records    what is known about each process        (library)
//! waits      who waits for which process              (library)
//! shares     what families share in preparations      (library)
//! supervisor which servers are started again, and when (library)
//! ```
//! The server is nobody's client but for `mem`, `names`, `console` and `files`, none of which ever waits for it.

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

/// Answers requests for ever.
fn main() {
    // Whoever loads this server has given it random numbers of its own.
    let mut random = Randomness::from_words(tench::process::info().map_or([0; 4], |info| info.random));
    match boot::Boot::open(&mut random).and_then(|boot| server::Server::new(boot, random)) {
        Ok(mut server) => server.serve(),
        Err(error) => panic!("starting the process server: {error}"),
    }
}
