//! The clock server provides delays. Its interface and policy: docs/manual/servers.md.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

mod rtc;
mod server;

tench::entry!(main);

/// Registers the server's name, and serves requests for ever.
fn main() {
    match server::Server::new() {
        Ok(mut server) => server.serve(),
        Err(failure) => panic!("registering the clock server: {failure}"),
    }
}
