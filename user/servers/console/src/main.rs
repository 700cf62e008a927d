//! The console server drives the serial port, with a terminal in front of it. Its interface and policy:
//! docs/manual/servers.md; the terminal: `terminal.rs`.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

mod server;
mod uart;

tench::entry!(main);

/// Sets the serial port up, and serves requests and interrupts for ever.
fn main() {
    match server::Server::new() {
        Ok(mut server) => server.serve(),
        Err(error) => panic!("setting up the serial port: {error}"),
    }
}
