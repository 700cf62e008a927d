//! Processes of any core, by the process servers of their cores.

use alloc::collections::BTreeMap;

use tench::names::Names;
use tench::procs::pid::{pid_base, split_pid};
use tench::procs::protocol::Error as ProcsError;
use tench::procs::{Failure as ProcsFailure, Procs, Status};
use tench::sync::Mutex;
use tench::sys::abi::layout::slot;
use tench::sys::abi::process::DEFAULT_PRIORITY;
use tench::sys::{Cap, Error, Kernel, SchedulingContext};
use tench::{again, memory, process};
use tench_monitor_interface::Monitor;
use tench_monitor_interface::protocol::Error as MonitorError;
use tench_shell::system::{End, Process, SystemError};

const PROCS: Procs = Procs::STANDARD;

/// The monitor, once it was found. A machine with one core has none.
static MONITOR: Mutex<Option<Monitor>> = Mutex::new(None);
/// The process servers of other cores that were needed so far.
static OTHERS: Mutex<BTreeMap<u64, Procs>> = Mutex::new(BTreeMap::new());

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

/// Gets the process servers of these processes, so that later calls do not have to.
pub fn prepare(pids: &[u64]) {
    pids.iter().for_each(|pid| drop(procs(split_pid(*pid).0)));
}

fn described(status: &Status) -> Process {
    Process {
        pid: status.process,
        parent: status.parent,
        state: status.state,
        detail: status.detail,
        priority: status.priority,
        ticks: status.ticks,
        size: status.size,
        name: status.name.as_str().into(),
    }
}

/// Returns the process server of a core.
pub fn procs(core: u64) -> Result<Procs, SystemError> {
    if core == split_pid(process::id()).0 {
        return Ok(PROCS);
    }
    let mut others = OTHERS.lock();
    if let Some(procs) = others.get(&core) {
        return Ok(*procs);
    }
    let (monitor, slot) = (monitor()?, memory::take_slot()?);
    let procs = Procs::at(monitor.processes(core, slot).inspect_err(|_| memory::free_slot(slot))?);
    others.insert(core, procs);
    Ok(procs)
}

/// Makes a request to the process server of a process's core.
fn on<T>(pid: u64, request: impl FnOnce(Procs) -> Result<T, ProcsFailure>) -> Result<T, SystemError> {
    let (core, _) = split_pid(pid);
    request(procs(core)?).map_err(|failure| refusal(core, failure))
}

/// Returns why a request to the process server of a core failed.
pub fn refusal(core: u64, failure: ProcsFailure) -> SystemError {
    let why = monitor().ok().and_then(|monitor| monitor.why_unreachable(core, &failure));
    why.map_or_else(|| failure.into(), SystemError::from)
}

/// Returns a process.
pub fn status(pid: u64) -> Result<Process, SystemError> {
    on(pid, |procs| Ok(described(&procs.status(pid)?)))
}

/// Returns how many bytes of memory a process uses, if its core tells.
pub fn memory_of(pid: u64) -> Option<u64> {
    on(pid, |procs| procs.memory(pid)).ok().flatten()
}

/// Returns the process with the next higher number, on its core or the next that has one. Cores that do not reply are
/// skipped.
pub fn next(after: u64) -> Option<Process> {
    let mut after = after;
    loop {
        if let Ok(found) = on(after, |procs| procs.next(after)) {
            return Some(described(&found));
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

/// Returns the highest priority that the shell may assign, on any core: its own ceiling.
pub fn highest_priority() -> u8 {
    let own = Cap::<SchedulingContext>::new(slot::SCHEDULING).query();
    own.map_or(DEFAULT_PRIORITY, |info| info.ceiling.min(u64::from(u8::MAX)) as u8)
}

/// Returns the core on which the fewest processes run; the first if there are several. Cores that do not reply are
/// skipped.
///
/// All started processes count, whether they work or wait. So processes that are started one after another are spread
/// evenly, before any of them has used the processor; how busy servers are, and how much each program will do, cannot
/// be known before.
pub fn least_loaded() -> Result<u64, SystemError> {
    let own = split_pid(process::id()).0;
    let Ok(monitor) = monitor() else { return Ok(own) };
    let (count, _) = monitor.cores()?;
    let loads = (0..count).filter_map(|core| Some((procs(core).ok()?.load().ok()?, core)));
    Ok(loads.min().map_or(own, |(_, core)| core))
}

/// Waits for the end of a process. A key may end the wait.
pub fn wait(pid: u64) -> Wait {
    let core = split_pid(pid).0;
    let procs = match procs(core) {
        Ok(procs) => procs,
        Err(why) => return Wait::Refused(why),
    };
    match super::keys::interruptible(|| procs.wait(pid)) {
        Ok(status) => Wait::Ended(End::of(status.state, status.detail)),
        Err(ProcsFailure::Lost(Error::Aborted)) => Wait::Aborted,
        Err(ProcsFailure::Refused(ProcsError::NoSuchProcess)) => Wait::Ended(None),
        Err(failure) => Wait::Refused(refusal(core, failure)),
    }
}

/// Kills a process.
pub fn kill(pid: u64) -> Result<(), SystemError> {
    on(pid, |procs| procs.kill(pid))
}

/// Suspends a process.
pub fn suspend(pid: u64) -> Result<(), SystemError> {
    on(pid, |procs| procs.suspend(pid))
}

/// Resumes a process.
pub fn resume(pid: u64) -> Result<(), SystemError> {
    on(pid, |procs| procs.resume(pid))
}

/// Ends a process as Ctrl-C does.
pub fn interrupt(pid: u64) -> Result<(), SystemError> {
    // Whether it was killed or told to end makes no difference to a waiter.
    on(pid, |procs| procs.interrupt(pid).map(drop))
}
