//! Processes of any core: the process server handles those of the shell's own core, the monitor those of others.

use tench::names::Names;
use tench::procs::pid::{pid_base, split_pid};
use tench::procs::protocol::{Error as ProcsError, State};
use tench::procs::{Failure as ProcsFailure, Procs, Status};
use tench::sync::Mutex;
use tench::sys::abi::layout::slot;
use tench::sys::abi::process::DEFAULT_PRIORITY;
use tench::sys::{Cap, Endpoint, Error, Kernel, SchedulingContext};
use tench::{again, memory, process};
use tench_monitor_interface::protocol::{Condition, Error as MonitorError, Process as Remote};
use tench_monitor_interface::{Failure as MonitorFailure, Monitor};
use tench_shell::system::{End, Process, SystemError};

const PROCS: Procs = Procs::STANDARD;

/// The monitor, once it was found. A machine with one core has none.
static MONITOR: Mutex<Option<Monitor>> = Mutex::new(None);

/// Result of waiting for one process.
pub enum Wait {
    /// The process has ended; `None` if so many have ended since that its record is gone.
    Ended(Option<End>),
    /// A key has ended the wait.
    Aborted,
    /// The wait was refused.
    Refused(SystemError),
}

/// Returns whether a process is of the shell's own core.
pub fn is_here(pid: u64) -> bool {
    split_pid(pid).0 == split_pid(process::id()).0
}

fn monitor() -> Result<Monitor, SystemError> {
    let mut known = MONITOR.lock();
    if let Some(monitor) = *known {
        return Ok(monitor);
    }
    let one_core = || SystemError(MonitorError::NoSuchCore.text().into());
    // A shell without the kernel's capability finds out by looking for a monitor.
    if Cap::<Kernel>::new(slot::KERNEL).machine().is_ok_and(|machine| machine.cores == 1) {
        return Err(one_core());
    }
    let slot = memory::take_slot()?;
    match again(|| Names::STANDARD.look_up(Monitor::NAME, slot)) {
        Ok(endpoint) => Ok(*known.insert(Monitor::at(endpoint))),
        Err(_) => {
            memory::free_slot(slot);
            Err(one_core())
        }
    }
}

/// Looks the monitor up, so that later calls do not have to.
pub fn prepare(pids: &[u64]) {
    if pids.iter().any(|pid| !is_here(*pid)) {
        let _ = monitor();
    }
}

fn of_here(status: &Status) -> Process {
    Process {
        pid: status.process,
        parent: status.parent,
        state: status.state,
        detail: status.detail,
        priority: status.priority,
        ticks: status.ticks,
        size: status.size,
        memory: None,
        name: status.name.as_str().into(),
    }
}

fn of_another(remote: &Remote) -> Process {
    Process {
        pid: remote.process,
        parent: remote.parent,
        state: state(remote.state),
        detail: remote.detail,
        priority: remote.priority,
        ticks: remote.ticks,
        size: remote.size,
        memory: Some(remote.memory),
        name: remote.name.as_str().into(),
    }
}

const fn state(condition: Condition) -> State {
    match condition {
        Condition::Preparing => State::Preparing,
        Condition::Running => State::Running,
        Condition::Suspended => State::Suspended,
        Condition::Exited => State::Exited,
        Condition::Killed => State::Killed,
        Condition::Faulted => State::Faulted,
    }
}

/// Returns a process.
pub fn status(pid: u64) -> Result<Process, SystemError> {
    if is_here(pid) { Ok(of_here(&PROCS.status(pid)?)) } else { Ok(of_another(&monitor()?.status(pid)?)) }
}

/// Returns the process with the next higher number, on its core or the next that has one. Cores that do not reply are
/// skipped.
pub fn next(after: u64) -> Option<Process> {
    let mut after = after;
    loop {
        let found = if is_here(after) {
            PROCS.next(after).ok().as_ref().map(of_here)
        } else {
            monitor().ok()?.next(after).ok().as_ref().map(of_another)
        };
        if found.is_some() {
            return found;
        }
        // Without a monitor there is one core.
        let (count, _) = monitor().ok()?.cores().ok()?;
        let core = split_pid(after).0 + 1;
        if core >= count {
            return None;
        }
        after = pid_base(core);
    }
}

/// The capability to the process server of another core. Dropping it discards what is prepared there.
pub struct Elsewhere(Cap<Endpoint>);

impl Drop for Elsewhere {
    fn drop(&mut self) {
        // The slot is not empty: nobody else deletes its content.
        let _ = self.0.delete();
        memory::free_slot(self.0.address());
    }
}

/// Returns the process server of a core.
pub fn procs(core: u64) -> Result<(Procs, Option<Elsewhere>), SystemError> {
    if core == split_pid(process::id()).0 {
        return Ok((PROCS, None));
    }
    let (monitor, slot) = (monitor()?, memory::take_slot()?);
    let found = monitor.processes(core, slot).inspect_err(|_| memory::free_slot(slot))?;
    Ok((Procs::at(found), Some(Elsewhere(found))))
}

/// Returns the highest priority that the shell may assign, on any core: its own ceiling.
pub fn highest_priority() -> u8 {
    let own = Cap::<SchedulingContext>::new(slot::SCHEDULING).query();
    own.map_or(DEFAULT_PRIORITY, |info| info.ceiling.min(u64::from(u8::MAX)) as u8)
}

/// Returns the core on which the fewest processes run; the first if there are several.
pub fn least_loaded() -> Result<u64, SystemError> {
    match monitor() {
        Ok(monitor) => Ok(monitor.least_loaded()?),
        Err(_) => Ok(split_pid(process::id()).0),
    }
}

/// Waits for the end of a process. A key may end the wait.
pub fn wait(pid: u64) -> Wait {
    if is_here(pid) {
        return match super::keys::interruptible(|| PROCS.wait(pid)) {
            Ok(status) => Wait::Ended(End::of(status.state, status.detail)),
            Err(ProcsFailure::Lost(Error::Aborted)) => Wait::Aborted,
            Err(ProcsFailure::Refused(ProcsError::NoSuchProcess)) => Wait::Ended(None),
            Err(failure) => Wait::Refused(failure.into()),
        };
    }
    let monitor = match monitor() {
        Ok(monitor) => monitor,
        Err(refusal) => return Wait::Refused(refusal),
    };
    match super::keys::interruptible(|| monitor.wait(pid)) {
        Ok(remote) => Wait::Ended(End::of(state(remote.state), remote.detail)),
        Err(MonitorFailure::Lost(Error::Aborted)) => Wait::Aborted,
        Err(MonitorFailure::Refused(MonitorError::NoSuchProcess)) => Wait::Ended(None),
        Err(failure) => Wait::Refused(failure.into()),
    }
}

/// Kills a process.
pub fn kill(pid: u64) -> Result<(), SystemError> {
    if is_here(pid) { Ok(PROCS.kill(pid)?) } else { Ok(monitor()?.kill(pid)?) }
}

/// Suspends a process.
pub fn suspend(pid: u64) -> Result<(), SystemError> {
    if is_here(pid) { Ok(PROCS.suspend(pid)?) } else { Ok(monitor()?.suspend(pid)?) }
}

/// Resumes a process.
pub fn resume(pid: u64) -> Result<(), SystemError> {
    if is_here(pid) { Ok(PROCS.resume(pid)?) } else { Ok(monitor()?.resume(pid)?) }
}

/// Ends a process as Ctrl-C does.
pub fn interrupt(pid: u64) -> Result<(), SystemError> {
    // Whether it was killed or told to end makes no difference to a waiter.
    if is_here(pid) { Ok(PROCS.interrupt(pid).map(drop)?) } else { Ok(monitor()?.interrupt(pid).map(drop)?) }
}
