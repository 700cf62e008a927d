//! External pagers at work, and what dead and hostile ones can do: `pager`.
//!
//! ```text
//!   pager                  starts pagers of each conduct, and says what becomes of them, their clients and the rest
//!     pager serve CONDUCT    a pager with one client, which it starts
//!       pager client TASK      touches memory that its pager provides
//! ```
//! A client that its pager leaves alone stands still, and that is all: the watcher goes on, pagers and clients started
//! meanwhile work, and the client can be killed like any process.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

mod client;
mod serve;
mod watch;

use alloc::boxed::Box;

tench::entry!(main);

/// Why something could not be done.
type Problem = Box<dyn core::error::Error>;

/// What pagers do with faults.
const CONDUCTS: [&str; 5] = ["silent", "stop", "lie", "babble", "die"];

fn main() -> Result<(), Problem> {
    let mut arguments = tench::args().skip(1);
    match (arguments.next(), arguments.next()) {
        (None, _) => watch::run(),
        (Some("serve"), Some("honest")) => serve::honest("work"),
        (Some("serve"), Some("strict")) => serve::honest("stray"),
        (Some("serve"), Some(conduct)) => serve::hostile(conduct),
        (Some("client"), Some(task)) => client::run(task),
        _ => Err("usage: pager".into()),
    }
}
