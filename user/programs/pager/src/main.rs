//! External pagers at work, and the effects of dead and hostile ones: `pager`.
//!
//! ```text
//!   pager                  starts pagers of each conduct, and reports on them, their clients and the rest
//!     pager serve CONDUCT    a pager with one client, which it starts
//!       pager client TASK      touches memory that its pager provides
//! ```
//! A client whose pager does not serve it stands still, and nothing else happens: the watcher goes on, pagers and
//! clients started meanwhile work, and the client can be killed like any process.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

mod client;
mod serve;
mod watch;

use alloc::boxed::Box;

tench::entry!(main);

/// The error of an operation.
type Problem = Box<dyn core::error::Error>;

/// The ways in which hostile pagers treat faults.
const CONDUCTS: [&str; 5] = ["silent", "stop", "lie", "babble", "die"];

fn main() -> Result<(), Problem> {
    let mut arguments = tench::args().skip(1);
    match (arguments.next(), arguments.next()) {
        (None, _) => watch::run(),
        (Some("serve"), Some("honest")) => serve::honest("work"),
        (Some("serve"), Some("strict")) => serve::honest("stray"),
        (Some("serve"), Some(conduct)) => serve::hostile(conduct),
        (Some("client"), Some(task)) => client::run(task),
        _ if tench::process::help("usage: pager") => Ok(()),
        _ => Err("usage: pager".into()),
    }
}
