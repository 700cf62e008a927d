//! The monitor: a process on each core; together, the monitors make the cores one system. Behaviour:
//! docs/manual/cores.md.
//!
//! ```text
//! start         memory, kernel and init for another core, and starting it
//! channel       the channel to another core's monitor, and the doorbell that wakes it
//! liveness      the liveness timer: reminds the monitor to check that other cores still reply
//! peer          another core, and (peer/asked) the requests from and to it
//! forward       receives requests of local programs to servers of the first core and to endpoints of other cores
//! local         names that are local to this core
//! endpoints     endpoints held for other cores, and proxies of theirs; (endpoints/machine) the system calls for them
//! signals       notifications of other cores
//! slots         slots for the capabilities of messages
//! services      the servers of this core, as other cores reach them
//! processes     starting, awaiting, killing and listing processes
//! capabilities  sending capabilities to processes of any core
//! links         channels between two further cores
//! dirty_flag    a wrapper with a dirty flag
//! dispatcher    the dispatcher: assigns workers, and tells whom to reply to when a worker is done
//! workers       threads that make slow calls
//! server        handles requests of local programs (server/interface) and of other monitors, also about capabilities
//!               (server/trade), and programs that are to start on other cores (server/errands)
//! message       messages between monitors                          (library)
//! names         the names that are local to each core              (library)
//! portions      limits on how much of this core others may use     (library)
//! exchange      the ledger of capabilities that left their core    (library)
//! ```

#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

mod capabilities;
mod channel;
mod dirty_flag;
mod dispatcher;
mod endpoints;
mod errands;
mod forward;
mod kernel;
mod links;
mod liveness;
mod local;
mod peer;
mod processes;
mod server;
mod services;
mod signals;
mod slots;
mod start;
mod tasks;
mod workers;

use tench_sys::Error;

tench::entry!(main);

/// Starts the other cores, if this is the first, and serves requests for ever.
fn main() {
    match server::Server::new() {
        Ok(mut server) => server.serve(),
        Err(error) => panic!("starting the monitor: {error}"),
    }
}

/// Result of operations that are not requests.
type Result<T> = core::result::Result<T, Error>;

/// Converts lack of memory to the kernel's error.
fn no_memory<E>(_: E) -> Error {
    Error::OutOfMemory
}
