//! What must be as it was when an attack is over.

use core::fmt::Debug;

use tench::console::protocol::{Console, Mode};
use tench::mem::Mem;
use tench::procs::{Procs, pid};
use tench_monitor_client::Monitor;
use tench_monitor_client::protocol::Exchanged;

use super::super::Books as Here;
use super::said;
use crate::case::Outcome;

/// Servers that nobody may end, nor start again.
const SERVERS: [&str; 5] = ["names", "clock", "console", "files", "reserve"];
/// The second core, if there is one.
const OTHER: u64 = 1;
/// Bytes by which the free memory of the other core may differ: what its process server remembers of processes.
const REMEMBERED: u64 = 256 << 10;

/// See the head of the file.
#[derive(Debug)]
pub struct Books {
    here: Here,
    /// The numbers of the servers.
    servers: [u64; SERVERS.len()],
    /// Processes that have not ended.
    living: usize,
    /// The terminal's mode and who reads.
    terminal: (Mode, u64),
    /// What the monitor keeps, and how much of the other core's memory is free.
    elsewhere: Option<(Exchanged, u64)>,
}

impl PartialEq for Books {
    fn eq(&self, other: &Books) -> bool {
        let there = match (self.elsewhere, other.elsewhere) {
            (Some((one, free)), Some((two, rest))) => one == two && free.abs_diff(rest) <= REMEMBERED,
            (one, two) => one == two,
        };
        let own = |books: &Books| (books.servers, books.living, books.terminal);
        there && own(self) == own(other) && self.here == other.here
    }
}

impl Books {
    /// What servers keep for somebody, and nothing that they keep for themselves to be used again: it may not be more,
    /// not even once.
    pub fn held(&self) -> impl PartialEq + Debug + use<> {
        (self.here.names, self.here.files, self.servers, self.living, self.terminal)
    }

    /// As they are now.
    pub fn read(monitor: Option<Monitor>) -> Outcome<Books> {
        let mut here = Here::read()?;
        // What this program and the process server have for themselves, they may have more of; it counts as free here,
        // so that nothing else is hidden by it.
        here.totals.free += used(tench::process::id())? + used(pid::PROCS)?;
        here.totals.blocks = 0;
        here.accounts.retain(|account| account.0 != pid::PROCS);
        let mut servers = [0; SERVERS.len()];
        for (number, name) in servers.iter_mut().zip(SERVERS) {
            *number = Procs::STANDARD.find(name, 0)?;
        }
        let (mode, reader, _) = said(Console::STANDARD.state())?;
        let elsewhere = match monitor {
            Some(monitor) => Some((said(monitor.exchanged())?, said(monitor.memory(OTHER))?.free)),
            None => None,
        };
        Ok(Books { here, servers, living: living(), terminal: (mode, reader), elsewhere })
    }
}

/// Bytes on a process's account.
pub fn used(process: u64) -> Outcome<u64> {
    let account = Mem::STANDARD.next_account(process - 1)?;
    equal!(account.process, process);
    Ok(account.used)
}

fn living() -> usize {
    let mut after = 0;
    let all = core::iter::from_fn(|| {
        let status = Procs::STANDARD.next(after).ok()?;
        after = status.process;
        Some(status.state)
    });
    all.filter(|state| !state.has_ended()).count()
}
