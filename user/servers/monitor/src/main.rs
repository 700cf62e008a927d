//! The monitor: a process on each core; together, the monitors make the cores one system. Behaviour:
//! docs/manual/cores.md.
//!
//! ```text
//! server        the main thread: waits for everything at once, and passes what comes to the layers below;
//!    │          (server/interface) the requests of local programs, (server/requests) how each is begun
//!    ▼
//! cores/        the other cores: how they are started, the channels to them, and how much of this core they may use
//!    │  start         starting a core: its memory, kernel and init, and the boot archive they come from
//!    │  peers         all other cores: when their messages are read, and which cores still run; their channels
//!    │                (peers/channels), and what is sent to them: events of the ledger (peers/exchange), memory
//!    │                (peers/memory), and requests for their process servers (peers/processes)
//!    │  peer          one other core, and (peer/asked) the requests to it and from it
//!    │  channel       the channel to another core's monitor, and the doorbell that wakes it
//!    │  links         channels between two further cores, which the first core makes
//!    │  liveness      the liveness timer: reminds the monitor to check that other cores still reply
//!    │  boot          layout of the block with which a core starts        (library)
//!    │  share         division of memory among cores at the start         (library)
//!    │  portions      limits on the processor time others use here        (library)
//!    ▼
//! transfer/     what other cores get: capabilities, and memory that cores give each other
//!    │  home          what most messages need: the dispatcher, the endpoints and the ledger of this core
//!    │  capabilities  sending capabilities to processes of any core: system calls around the ledger
//!    │  tasks         tasks of workers about capabilities and memory
//!    │  endpoints     endpoints held for other cores, and proxies of theirs; (endpoints/machine) their system calls
//!    │  signals       signals from and to notifications of other cores
//!    │  dirty_flag    a wrapper that knows whether the ledger was accessed
//!    │  exchange      the ledger of capabilities that left their core     (library)
//!    │  attachments   memory that goes with a message                     (library)
//!    │  proxies       the ledger of endpoints and notifications           (library)
//!    │  grant         how much memory a core gives another                (library)
//!    ▼
//! requests/     requests of programs to other cores, and of other cores to servers and processes here
//!    │  forward       receives requests of local programs to servers of the first core and to endpoints of other cores
//!    │  local         replies about names that are local to this core
//!    │  dispatcher    assigns workers, and knows who gets the reply when a worker is done
//!    │  workers       threads that make slow calls
//!    │  processes     admitting processes at the process server, and vouching for them
//!    │  services      the servers of this core, as other cores reach them
//!    │  names         which names are local to each core                  (library)
//!    │  requesters    which processes have used which servers             (library)
//!    ▼
//! message       messages between monitors; (message/carried) capabilities in them, (message/line) events about
//!               capabilities                                              (library)
//! slots         slots for the capabilities of messages
//! kernel        the kernel's capability, and the heap reserve
//! ```
//! A layer uses only those below it; a test refuses anything else (`tools/tench/tests/source/layers.rs`). What a lower
//! layer does for a higher one is passed to it as a type or a callback: the dispatcher knows a task about capabilities
//! only as an [`OwnTask`](requests::workers::OwnTask).

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

mod requests {
    pub mod dispatcher;
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
