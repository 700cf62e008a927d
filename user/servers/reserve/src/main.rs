//! The reservation server does admission control. Its behaviour: docs/manual/time.md; its decisions: `table.rs`.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

mod server;

tench::entry!(main);

/// Registers the server's name, and serves requests for ever.
fn main() {
    match server::Server::new() {
        Ok(mut server) => server.serve(),
        Err(failure) => panic!("starting the reservation server: {failure}"),
    }
}
