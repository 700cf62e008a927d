//! The name server: endpoints by name. What it does: docs/manual/servers.md; its table: `table.rs`.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

mod server;

tench::entry!(main);

/// Answers requests for ever.
fn main() {
    match server::Server::new() {
        Ok(mut server) => server.serve(),
        Err(error) => panic!("starting the name server: {error}"),
    }
}
