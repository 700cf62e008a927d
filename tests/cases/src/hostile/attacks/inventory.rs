//! Accounts and states that must be as before when an attack is over.

use core::fmt::Debug;

use tench::console::protocol::{Console, Mode};
use tench::mem::Mem;
use tench::procs::{Procs, pid};
use tench_monitor_interface::Monitor;
use tench_monitor_interface::protocol::Exchanged;

use super::super::Inventory as Here;
use super::said;
use crate::case::Outcome;

/// Servers that no attack may end or have restarted.
const SERVERS: [&str; 5] = ["names", "clock", "console", "files", "reserve"];
/// The second core, if there is one.
const OTHER: u64 = 1;
/// Bytes by which the other core's free memory may differ: its process server remembers processes.
const REMEMBERED: u64 = 256 << 10;

/// Accounts and states that must be as before.
#[derive(Debug)]
pub struct Inventory {
    here: Here,
    /// Process numbers of the servers.
    servers: [u64; SERVERS.len()],
    /// Number of running processes.
    live: usize,
    /// The terminal's mode, and the process that reads.
    terminal: (Mode, u64),
    /// The monitor's state, and the free memory of the other core.
    elsewhere: Option<(Exchanged, u64)>,
}

impl PartialEq for Inventory {
    fn eq(&self, other: &Inventory) -> bool {
        let there = match (self.elsewhere, other.elsewhere) {
            (Some((one, free)), Some((two, rest))) => one == two && free.abs_diff(rest) <= REMEMBERED,
            (one, two) => one == two,
        };
        let own = |inventory: &Inventory| (inventory.servers, inventory.live, inventory.terminal);
        there && own(self) == own(other) && self.here == other.here
    }
}

impl Inventory {
    /// Returns what servers hold for clients, without what they keep for reuse: it must not grow, not even once.
    pub fn held(&self) -> impl PartialEq + Debug + use<> {
        (self.here.names, self.here.files, self.servers, self.live, self.terminal)
    }

    /// Reads the present accounts and states.
    pub fn read(monitor: Option<Monitor>) -> Outcome<Inventory> {
        let mut here = Here::read()?;
        // This program's and the process server's own memory may grow; it counts as free here, so that it hides nothing
        // else.
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
        Ok(Inventory { here, servers, live: live_processes(), terminal: (mode, reader), elsewhere })
    }
}

/// Returns the bytes on a process's account.
pub fn used(process: u64) -> Outcome<u64> {
    let account = Mem::STANDARD.next_account(process - 1)?;
    equal!(account.process, process);
    Ok(account.used)
}

fn live_processes() -> usize {
    let mut after = 0;
    let all = core::iter::from_fn(|| {
        let status = Procs::STANDARD.next(after).ok()?;
        after = status.process;
        Some(status.state)
    });
    all.filter(|state| !state.has_ended()).count()
}
