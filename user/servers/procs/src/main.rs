//! The process server creates and destroys processes. Its interface and policy: docs/manual/servers.md.
//!
//! ```text
//! requests     the request and fault loop; starts, ends, waits and inspection
//!    ▼
//! supervision  which servers run and are restarted; what they are told; clients that wait for a restart
//!    ▼
//! spawn        builds one process, runs it, and takes it apart
//!
//! table        the table of processes, which requests keep: records, waits, quotas; without system calls
//! boot         the boot archive and the other servers' endpoints, as init passed them
//! ```
//! A layer uses those below it, never one above; a test refuses that (`tools/tench/tests/source/layers.rs`).
//! The server is a client of `mem`, `names`, `console` and `files` only; none of them ever waits for it.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

mod boot;
mod requests;
mod spawn;
mod supervision;

use tench_loader::addresses::Randomness;

tench::entry!(main);

/// Serves requests for ever.
fn main() {
    // The loader has given this server random numbers of its own.
    let mut random = Randomness::from_words(tench::process::info().map_or([0; 4], |info| info.random));
    match boot::Boot::open(&mut random).and_then(|boot| requests::Server::new(boot, random)) {
        Ok(mut server) => server.serve(),
        Err(error) => panic!("starting the process server: {error}"),
    }
}
