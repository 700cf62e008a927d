//! The monitor: one on each core, which together make the cores one system. What it does: docs/manual/cores.md.
//!
//! ```text
//! start         memory, kernel and init for another core, and starting it
//! channel       the channel to another core's monitor, and the bell that wakes it
//! attention     reminds of looking whether other cores still answer
//! peer          another core, and (peer/asked) what was asked of it and what it asks
//! forward       receives what local programs ask servers of the first core, and endpoints of other cores
//! local         names that this core has for itself
//! endpoints     those: what is held for other cores, and proxies of what they hold; (endpoints/machine) the system calls for it
//! signals       notifications of other cores
//! slots         for capabilities that messages carry
//! services      the servers of this core, as those of other cores reach them
//! processes     starting, awaiting, killing and listing processes
//! capabilities  sending them to processes of any core
//! links         channels between any two further cores
//! marked        what remembers whether it was touched
//! desk          who gets a worker, and who is answered when it is done
//! workers       threads that make calls which take time
//! server        takes in what local programs (server/interface) and other monitors ask, also about capabilities (server/trade),
//!               and what programs here want to start on other cores (server/errands)
//! message       what monitors say to each other            (library)
//! names         which names each core has for itself (library)
//! portions      how much of this core others may have (library)
//! exchange      the books of capabilities that left their core (library)
//! ```

#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

mod attention;
mod capabilities;
mod channel;
mod desk;
mod endpoints;
mod forward;
mod links;
mod local;
mod marked;
mod peer;
mod processes;
mod server;
mod services;
mod signals;
mod slots;
mod start;
mod workers;

use tench_sys::Error;

tench::entry!(main);

/// Starts the other cores, if this is the first, and answers requests for ever.
fn main() {
    match server::Server::new() {
        Ok(mut server) => server.serve(),
        Err(error) => panic!("starting the monitor: {error}"),
    }
}

/// What is not about requests.
type Result<T> = core::result::Result<T, Error>;

/// Memory that is not there, in the kernel's words.
fn no_memory<E>(_: E) -> Error {
    Error::OutOfMemory
}
