//! The file server: pipes, and files in memory over those of the boot archive. What it does: docs/manual/streams.md.
//!
//! ```text
//! server     requests carried out, and those who waited answered
//! ends       who has which end of what              (library, with pipe, tree and contents)
//! ```
//! The server is nobody's client but for `mem`, which never waits for it.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

mod server;

tench::entry!(main);

/// Answers requests for ever.
fn main() {
    match server::Server::new() {
        Ok(mut server) => server.serve(),
        Err(error) => panic!("starting the file server: {error}"),
    }
}
