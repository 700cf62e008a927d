//! Data that the server keeps for a process until it has ended, beside its record.

use alloc::boxed::Box;

use tench_abi::Powers;
use tench_abi::power::Client;
use tench_procs::table::{Condition, Record, Records};
use tench_procs_interface::protocol::Error;

use crate::spawn::{ProcessBuilder, Remains, RunningProcess, Terms};
use crate::supervision::{Life, Processes, Restarts};

use super::Server;
use super::waiting::Waiter;

/// Data kept for a process that has not ended.
pub enum Kept {
    /// The process has not started. It may be a server that is to be restarted when it ends.
    Preparing(ProcessBuilder, Option<Restarts>),
    /// The process runs or is suspended.
    Running(Box<RunningProcess>),
    /// The process has been stopped, or could not be started, and is being destroyed.
    Ending(Remains, Condition),
}

/// A process's record.
pub type ProcessRecord = Record<Kept>;

/// The table of processes.
pub type ProcessTable = Records<Kept, Waiter>;

/// Returns the badge of a process's capabilities to servers.
pub const fn badge_of(record: &ProcessRecord) -> u64 {
    record.client().badge(record.powers)
}

/// Returns the terms on which a process is started, as its record says.
pub const fn terms_of(record: &ProcessRecord) -> Terms {
    Terms {
        process: record.client().process,
        badge: badge_of(record),
        parent: record.parent,
        quota: record.quota,
        priority: record.priority,
        ceiling: record.ceiling,
    }
}

/// Returns the process builder of a process that `caller` prepares.
pub fn builder_of(records: &mut ProcessTable, caller: u64, process: u64) -> Result<&mut ProcessBuilder, Error> {
    records.check_parent(caller)?;
    match &mut records.preparing(caller, process)?.kernel {
        Some(Kept::Preparing(builder, _)) => Ok(builder),
        _ => Err(Error::WrongState),
    }
}

impl Server {
    /// Returns a running process that `caller` may manage. Of another core, nobody may manage the monitor: it could not
    /// reply.
    pub(super) fn managed(&self, caller: u64, powers: Powers, process: u64) -> Result<&RunningProcess, Error> {
        self.records.check_manage(caller, powers, process)?;
        if self.supervision.link() == Some(process) && self.records.is_foreign(caller) {
            return Err(Error::Essential);
        }
        let record = self.records.get(process)?;
        match &record.kernel {
            Some(Kept::Running(running)) => Ok(running),
            None if !record.has_ended() => Err(Error::Essential),
            _ => Err(Error::WrongState),
        }
    }
}

impl Processes for ProcessTable {
    fn badge(&self, process: u64) -> Result<u64, Error> {
        self.get(process).map(badge_of)
    }

    /// Looks up whether others of the process's family run when a server is told, not when the process ends: so
    /// with the last process of a family of which a server is told, it learns that the family has ended.
    fn life(&self, process: u64, ended: Client) -> Life {
        let known = self.get(process).ok();
        match known.filter(|record| !record.has_ended()) {
            Some(record) if process != ended.process => Life::Lives(record.client().family),
            None if self.is_foreign(process) => Life::Elsewhere,
            _ => {
                let own = (process == ended.process).then_some(ended);
                let family = own.or_else(|| known.map(ProcessRecord::client)).map_or(0, |client| client.family);
                Life::Ended(self.family_that_ended(family))
            }
        }
    }
}
