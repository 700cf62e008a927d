//! The monitor: a process on each core; together, the monitors make the cores one system. Behaviour:
//! docs/manual/cores.md.
//!
//! ```text
//! server        the main thread, which waits for everything at once, and tells the wings what has come; the requests
//!    │          of local programs (server/interface), and what they begin (server/requests)
//!    ▼
//! cores/        the other cores: what starts one, the way to it, and how much it may use here
//!    │  start         memory, kernel and init for another core, and starting it
//!    │  peers         all other cores: when their messages are read, and which still run; their channels
//!    │                (peers/channels), and what comes for them from workers and the ledger (peers/exchange,
//!    │                peers/memory, peers/errands)
//!    │  peer          another core, and (peer/asked) the requests from and to it
//!    │  channel       the channel to another core's monitor, and the doorbell that wakes it
//!    │  links         channels between two further cores
//!    │  liveness      the liveness timer: reminds the monitor to check that other cores still reply
//!    │  boot          layout of the block with which a core starts        (library)
//!    │  share         division of memory among cores at the start         (library)
//!    │  portions      limits on how much of this core others may use      (library)
//!    ▼
//! transfer/     what leaves its core: capabilities, and memory that cores give each other
//!    │  home          this core's side: the dispatcher, the endpoints and the ledger
//!    │  capabilities  sending capabilities to processes of any core
//!    │  tasks         what workers do about capabilities and memory
//!    │  endpoints     endpoints held for other cores, and proxies of theirs; (endpoints/machine) their system calls
//!    │  signals       notifications of other cores
//!    │  dirty_flag    a wrapper with a dirty flag
//!    │  exchange      the ledger of capabilities that left their core     (library)
//!    │  attachments   memory that goes with a message                     (library)
//!    │  proxies       the ledger of endpoints and notifications           (library)
//!    │  grant         how much memory a core gives another                (library)
//!    ▼
//! work/         requests of programs to other cores, and of other cores to servers and processes here
//!    │  forward       receives requests of local programs to servers of the first core and to endpoints of other cores
//!    │  local         names that are local to this core
//!    │  dispatcher    assigns workers, and tells whom to reply to when a worker is done
//!    │  workers       threads that make slow calls
//!    │  errands       requests to start something on another core
//!    │  processes     starting, awaiting, admitting and vouching for processes
//!    │  services      the servers of this core, as other cores reach them
//!    │  names         which names are local to each core                  (library)
//!    │  remote_request  requests about processes between monitors         (library)
//!    │  requesters    which processes have used which servers             (library)
//!    ▼
//! message       messages between monitors                                 (library)
//! slots         slots for the capabilities of messages
//! kernel        the kernel's capability, and the heap reserve
//! ```
//! Each uses those below it, never one above; a test refuses that (`tools/tench/tests/source/layers.rs`). What a lower
//! wing does for a higher one is passed to it as a type or a callback: a worker's task about capabilities is known to
//! the dispatcher as an [`OwnTask`](work::workers::OwnTask) only.

#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

mod kernel;
mod server;
mod slots;

mod cores {
    pub mod channel;
    pub mod links;
    pub mod liveness;
    pub mod peer;
    pub mod peers;
    pub mod start;
}

mod transfer {
    pub mod capabilities;
    pub mod dirty_flag;
    pub mod endpoints;
    pub mod home;
    pub mod signals;
    pub mod tasks;
}

mod work {
    pub mod dispatcher;
    pub mod errands;
    pub mod forward;
    pub mod local;
    pub mod processes;
    pub mod services;
    pub mod workers;
}

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
