//! Calls to this core's process server with full authority, about processes that use the process servers of other
//! cores: those of other cores are admitted, and the ceilings of its own are asked for. Their requests are passed on by
//! [`services`](crate::requests::services). Also the question for the memory server's totals.

use core::sync::atomic::{AtomicU32, Ordering};

use tench_abi::layout::slot;
use tench_mem_interface::Mem;
use tench_monitor::message::{Outcome, Words, ended};
use tench_monitor_interface::protocol::{Error, Memory};
use tench_procs_interface::protocol::Error as ProcsError;
use tench_procs_interface::{Failure, Procs};
use tench_protocol::{Encode, Given, Pending, Sent};
use tench_sys::{Cap, CapAddress, Endpoint, Kind, Message, OWN_CSPACE, Received};

/// A request for the process server of another core, for a process of this one with the badge. It is sent with the
/// highest priority that the process may assign, for which a worker asks this core's process server, since the process
/// might lie.
pub struct EndpointRequest {
    /// The addressed core.
    pub core: u64,
    pub badge: u64,
    pub pending: Pending<Sent<Endpoint, Given>, Error>,
}

/// Returns whether a request to a process server with this label can block for ever: it waits for the end of a process
/// or the restart of a server.
pub const fn waits(label: u64) -> bool {
    matches!(label, Procs::WAIT | Procs::WAIT_LIMITED | Procs::RECONNECT)
}

/// A worker's task.
#[derive(Clone, Debug)]
pub enum Task {
    /// Question for the memory server's totals.
    Memory,
    /// Admission of a process of another core, with this badge, to start processes here, up to this priority.
    Admit(u64, u8),
    /// Question for the ceiling of a process of this core, which wants to use another core's process server.
    Vouch(u64),
    /// Removal of one of the capabilities by which this process of another core can do so.
    Forget(u64),
}

/// Carries out a task, and returns the reply. Only workers call this, since it can take long.
pub fn carry_out(task: &Task) -> Words {
    let result = match task {
        Task::Memory => match Mem::STANDARD.totals() {
            Ok(totals) => Ok(words(&Memory { total: totals.total, free: totals.free })),
            Err(_) => Err(Error::Internal),
        },
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

/// Returns the facts about a process of this core that other cores need: its family, the highest priority that it may
/// assign, and whether its memory is limited. Fails if the process has ended.
pub fn vouch(process: u64) -> Result<(u64, u8, bool), Error> {
    with_authority(|procs| procs.vouch(process))
}

/// Calls the process server with full authority.
fn with_authority<T>(ask: impl FnOnce(Procs) -> Result<T, Failure>) -> Result<T, Error> {
    ask(Procs::at(authority().ok_or(Error::Internal)?)).map_err(procs_error)
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

/// Converts an error of the process server.
fn procs_error(failure: Failure) -> Error {
    let Failure::Refused(error) = failure else { return Error::Internal };
    match error {
        ProcsError::NoSuchProcess => Error::NoSuchProcess,
        ProcsError::WrongState => Error::WrongState,
        ProcsError::OutOfMemory => Error::OutOfMemory,
        ProcsError::NotAllowed => Error::NotAllowed,
        ProcsError::Full => Error::Full,
        _ => Error::Internal,
    }
}
