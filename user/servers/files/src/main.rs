//! The file server provides pipes, and files in memory over those of the boot archive. Its interface and policy:
//! docs/manual/streams.md.
//!
//! ```text
//! server     requests, and replies to waiting threads
//! ends       ends of pipes and files                (library, with pipe, tree and contents)
//! ```
//! The server is a client only of `mem`, which never waits for it.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

mod server;

tench::entry!(main);

/// Serves requests for ever.
fn main() {
    match server::Server::new() {
        Ok(mut server) => server.serve(),
        Err(error) => panic!("starting the file server: {error}"),
    }
}
