//! The name server maps names to endpoints. Its interface and policy: docs/manual/servers.md; its table: `table.rs`.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

mod server;

tench::entry!(main);

/// Serves requests for ever.
fn main() {
    match server::Server::new() {
        Ok(mut server) => server.serve(),
        Err(error) => panic!("starting the name server: {error}"),
    }
}
