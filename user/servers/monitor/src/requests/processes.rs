//! Operations on processes of this core for processes of any core.
//!
//! The process server sees the requesting process and its powers: process numbers are valid everywhere, and each core
//! vouches for the powers of its own processes. So the process server itself decides what is permitted, as it does for
//! processes of its own core.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::time::Duration;

use tench::{memory, time};
use tench_abi::layout::slot;
use tench_abi::power::Client;
use tench_mem_interface::Mem;
use tench_monitor::message::{Outcome, Strings, Words, ended};
use tench_monitor::requests::remote_request::{Operation, RemoteRequest};
use tench_monitor_interface::protocol::{Condition, Error, MAX_NAME, Memory, Process};
use tench_procs_interface::protocol::{Error as ProcsError, State, Status, Strings as List};
use tench_procs_interface::{Failure, Procs};
use tench_protocol::{ArrayString, Encode};
use tench_sys::{Cap, CapAddress, Endpoint, Kind, Message, OWN_CSPACE, Received, Rights};

/// Maximum time for which a cancelled wait may go on.
const PATIENCE: Duration = Duration::from_secs(1);

/// A worker's task.
#[derive(Clone, Debug)]
pub enum Task {
    /// A remote request.
    Do(RemoteRequest),
    /// Admission of a process of another core, with this badge, to start processes here, up to this priority.
    Admit(u64, u8),
    /// Question for the ceiling of a process of this core, for a start on another.
    Vouch(u64),
    /// Removal of one way in which this process of another core can do so.
    Forget(u64),
}

impl Task {
    /// Returns the client for which the task is done.
    pub const fn requester(&self) -> Client {
        match self {
            Task::Do(request) => request.requester,
            Task::Admit(badge, _) => Client::of_badge(*badge),
            Task::Vouch(process) | Task::Forget(process) => Client::alone(*process),
        }
    }

    /// Returns whether the task can block for ever.
    pub const fn waits(&self) -> bool {
        matches!(self, Task::Do(request) if request.operation.waits())
    }
}

/// Carries out a task, and returns the reply. Only workers call this, since it can take long.
pub fn carry_out(task: &Task, is_cancelled: &AtomicBool) -> Words {
    let result = match task {
        Task::Do(request) => ask(request, is_cancelled),
        Task::Admit(badge, ceiling) => with_authority(|procs| procs.admit(*badge, *ceiling)).map(|()| words(&())),
        Task::Forget(process) => with_authority(|procs| procs.forget(*process)).map(|()| words(&())),
        Task::Vouch(process) => match vouch(*process) {
            // What such a process starts on another core would escape its memory limit.
            Ok((.., true)) => Err(Error::Limited),
            Ok((_, ceiling, false)) => Ok(words(&ceiling)),
            Err(why) => Err(why),
        },
    };
    result.unwrap_or_else(|error| ended(Outcome::Refused, error as u64))
}

fn ask(request: &RemoteRequest, is_cancelled: &AtomicBool) -> Result<Words, Error> {
    match request.operation {
        Operation::Memory => {
            let totals = Mem::STANDARD.totals().map_err(|_| Error::Internal)?;
            Ok(words(&Memory { total: totals.total, free: totals.free }))
        }
        Operation::Spawn => {
            as_guest(request, || with_procs(request.badge(), |procs| Ok(words(&spawn(procs, text(request)?)?))))
        }
        Operation::Wait => {
            with_procs(request.badge(), |procs| Ok(words(&describe(&wait(procs, request.subject, is_cancelled)?))))
        }
    }
}

/// Runs an operation that starts something in the name of a process; one of another core is admitted meanwhile.
fn as_guest<T>(request: &RemoteRequest, start: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let Some(ceiling) = request.ceiling else { return start() };
    with_authority(|procs| procs.admit(request.badge(), ceiling))?;
    let started = start();
    with_authority(|procs| procs.forget(request.requester.process))?;
    started
}

/// Returns the text of a request that has some.
fn text(request: &RemoteRequest) -> Result<&Strings, Error> {
    request.text.as_deref().ok_or(Error::BadStrings)
}

/// Waits for the end of a process, and checks periodically whether the wait was cancelled.
fn wait(procs: Procs, process: u64, is_cancelled: &AtomicBool) -> Result<Status, Error> {
    loop {
        match procs.wait_until(process, time::deadline(PATIENCE)) {
            // The reply to a cancelled request is dropped.
            Err(Failure::Refused(ProcsError::TimedOut)) if is_cancelled.load(Ordering::Relaxed) => {
                return Err(Error::Full);
            }
            Err(Failure::Refused(ProcsError::TimedOut)) => {}
            result => return result.map_err(procs_error),
        }
    }
}

/// Starts a program; if that fails, nothing is left of it.
fn spawn(procs: Procs, strings: &Strings) -> Result<u64, Error> {
    let (name, arguments) = strings.parts();
    let spawn = procs.prepare(name).map_err(procs_error)?;
    if let Err(failure) = spawn.strings(List::Arguments, arguments) {
        spawn.abandon();
        return Err(procs_error(failure));
    }
    spawn.start().map_err(procs_error)
}

/// Returns the facts about a process of this core that other cores need: its family, the highest priority that it may
/// assign, and whether its memory is limited. Fails if the process has ended.
pub fn vouch(process: u64) -> Result<(u64, u8, bool), Error> {
    with_authority(|procs| procs.vouch(process))
}

/// Calls the process server with full authority.
fn with_authority<T>(ask: impl FnOnce(Procs) -> Result<T, Failure>) -> Result<T, Error> {
    ask(Procs::at(authority().ok_or(Error::Internal)?)).map_err(procs_error)
}

/// Calls the process server with a badge.
fn with_procs<T>(badge: u64, ask: impl FnOnce(Procs) -> Result<T, Error>) -> Result<T, Error> {
    let (authority, slot) = (authority().ok_or(Error::Internal)?, memory::take_slot().map_err(|_| Error::Full)?);
    let minted = authority.mint_to(slot, Rights::WRITE | Rights::CALL | Rights::GRANT, badge);
    let result = minted.map_err(|_| Error::Internal).and_then(|endpoint| ask(Procs::at(endpoint)));
    let _ = OWN_CSPACE.delete_at(slot);
    memory::free_slot(slot);
    result
}

/// Returns the endpoints that the system description gives the monitor: the process server's, and then those at which
/// absent servers would receive.
pub fn endpoints() -> impl Iterator<Item = Cap<Endpoint>> {
    let count = tench::process::info().map_or(0, |info| info.extra_count).min(u64::from(slot::EXTRA_COUNT)) as u32;
    let slots = (slot::EXTRA.0..slot::EXTRA.0 + count).map(CapAddress);
    let is_endpoint = |slot: &CapAddress| OWN_CSPACE.identify_at(*slot).is_ok_and(|found| found.kind == Kind::Endpoint);
    slots.filter(is_endpoint).map(Cap::new)
}

/// Returns the unbadged endpoint of the process server. It is looked up once.
pub fn authority() -> Option<Cap<Endpoint>> {
    static KNOWN: AtomicU32 = AtomicU32::new(0);
    let known = KNOWN.load(Ordering::Relaxed);
    if known != 0 {
        return Some(Cap::new(CapAddress(known)));
    }
    let found = endpoints().next()?;
    KNOWN.store(found.address().0, Ordering::Relaxed);
    Some(found)
}

/// Gets the unbadged endpoint of a server into an empty slot.
pub fn server(name: &str, slot: CapAddress) -> Option<Cap<Endpoint>> {
    Procs::at(authority()?).server(name, slot).ok()
}

/// Returns a value's words as a successful reply.
fn words(value: &impl Encode) -> Words {
    let mut message = Message::new(0);
    value.encode(&mut message);
    let arrived = Received::from_message(&message, 0);
    [Outcome::Replied as u64].into_iter().chain(arrived.words().iter().copied()).collect()
}

/// Returns a process's description.
fn describe(status: &Status) -> Process {
    let state = match status.state {
        State::Preparing => Condition::Preparing,
        State::Running => Condition::Running,
        State::Suspended => Condition::Suspended,
        State::Exited => Condition::Exited,
        State::Killed => Condition::Killed,
        State::Faulted => Condition::Faulted,
    };
    let Status { process, parent, detail, priority, ticks, size, .. } = *status;
    let name = ArrayString::<MAX_NAME>::from(&status.name).unwrap_or_default();
    Process { process, parent, state, detail, priority, ticks, size, name }
}

/// Converts an error of the process server.
fn procs_error(failure: Failure) -> Error {
    let Failure::Refused(error) = failure else { return Error::Internal };
    match error {
        ProcsError::NoSuchProcess => Error::NoSuchProcess,
        ProcsError::WrongState => Error::WrongState,
        ProcsError::NoSuchProgram => Error::NoSuchProgram,
        ProcsError::BadProgram => Error::BadProgram,
        ProcsError::OutOfMemory => Error::OutOfMemory,
        ProcsError::TooManyProcesses => Error::TooManyProcesses,
        ProcsError::TextTooLong => Error::TextTooLong,
        ProcsError::NotAllowed => Error::NotAllowed,
        ProcsError::Essential => Error::Essential,
        ProcsError::Full => Error::Full,
        _ => Error::Internal,
    }
}
