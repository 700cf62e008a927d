//! Starting, awaiting, killing and listing processes of this core for processes of any core.
//!
//! The process server sees who asks: for a process of this core its number, for another's its number and core with
//! [`FOREIGN`](pid::FOREIGN). So it decides itself who may do what, as it does for those of its own core.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::time::Duration;

use tench::{memory, time};
use tench_abi::layout::slot;
use tench_mem_client::Mem;
use tench_monitor::message::{Malformed, Outcome, Strings, Words, decode_about, decode_asker, ended, operation};
use tench_monitor_client::protocol::{Condition, Error, MAX_NAME, Memory, Process, first};
use tench_procs_client::protocol::{Error as Refused, State, Status, Strings as List, pid};
use tench_procs_client::{Failure, Procs};
use tench_protocol::{ArrayString, Encode};
use tench_sys::{Cap, CapAddress, Endpoint, Kind, Message, OWN_SPACE, Received, Rights};

/// How long a wait goes on that nobody wants any more.
const PATIENCE: Duration = Duration::from_secs(1);

/// What is to be done.
#[derive(Clone, Debug)]
pub enum What {
    /// Starts a program.
    Spawn(Box<Strings>),
    /// Waits for the end of a process.
    Wait(u64),
    /// Kills a process.
    Kill(u64),
    /// Looks at the next process.
    Next(u64),
    /// Looks at the memory.
    Memory,
}

/// What is to be done on a core, for whom.
#[derive(Clone, Debug)]
pub struct Task {
    /// The core.
    pub core: u64,
    /// Who asks, as this core's process server is to see it.
    pub asker: u64,
    /// What is to be done.
    pub what: What,
}

impl What {
    /// The operation and the words by which another monitor is asked for it.
    pub fn encode(&self, asker: u64) -> (u16, Words) {
        let about = |process| [asker, process].into_iter().collect();
        match self {
            What::Spawn(strings) => (operation::SPAWN, strings.encode(asker)),
            What::Wait(process) => (operation::WAIT, about(*process)),
            What::Kill(process) => (operation::KILL, about(*process)),
            What::Next(process) => (operation::NEXT, about(*process)),
            What::Memory => (operation::MEMORY, [asker].into_iter().collect()),
        }
    }

    /// What another monitor asks for, and who asks there.
    pub fn decode(operation: u16, words: &[u64]) -> Result<(u64, What), Malformed> {
        Ok(match operation {
            operation::SPAWN => {
                Strings::decode(words).map(|(asker, strings)| (asker, What::Spawn(Box::new(strings))))?
            }
            operation::WAIT => decode_about(words).map(|(asker, process)| (asker, What::Wait(process)))?,
            operation::KILL => decode_about(words).map(|(asker, process)| (asker, What::Kill(process)))?,
            operation::NEXT => decode_about(words).map(|(asker, process)| (asker, What::Next(process)))?,
            _ => (decode_asker(words)?, What::Memory),
        })
    }
}

/// How a process of another core is known to this core's process server.
pub const fn foreign(core: u64, process: u64) -> u64 {
    pid::FOREIGN | first(core) | process
}

/// Does it, and answers what became of it. Only workers call this: it can take long.
pub fn carry_out(task: &Task, is_cancelled: &AtomicBool) -> Words {
    let result = match &task.what {
        What::Memory => memory_of(),
        _ => with_procs(task.asker, |procs| ask(procs, task, is_cancelled)),
    };
    result.unwrap_or_else(|error| ended(Outcome::Refused, error as u64))
}

fn ask(procs: Procs, task: &Task, is_cancelled: &AtomicBool) -> Result<Words, Error> {
    match &task.what {
        What::Spawn(strings) => Ok(words(&(first(task.core) | spawn(procs, strings)?))),
        What::Wait(process) => Ok(words(&describe(task.core, &wait(procs, *process, is_cancelled)?))),
        What::Next(after) => Ok(words(&describe(task.core, &procs.next(*after).map_err(refusal)?))),
        What::Kill(process) => procs.kill(*process).map(|()| words(&())).map_err(refusal),
        What::Memory => memory_of(),
    }
}

/// Waits for the end of a process, and looks now and then whether that is still wanted.
fn wait(procs: Procs, process: u64, is_cancelled: &AtomicBool) -> Result<Status, Error> {
    loop {
        match procs.wait_until(process, time::deadline(PATIENCE)) {
            // If it is wanted no more, nobody hears this.
            Err(Failure::Refused(Refused::TimedOut)) if is_cancelled.load(Ordering::Relaxed) => {
                return Err(Error::Full);
            }
            Err(Failure::Refused(Refused::TimedOut)) => {}
            answer => return answer.map_err(refusal),
        }
    }
}

fn memory_of() -> Result<Words, Error> {
    let totals = Mem::STANDARD.totals().map_err(|_| Error::Internal)?;
    Ok(words(&Memory { total: totals.total, free: totals.free }))
}

/// Starts a program; if that fails, nothing of it is left.
fn spawn(procs: Procs, strings: &Strings) -> Result<u64, Error> {
    let (name, arguments) = strings.parts();
    let spawn = procs.prepare(name).map_err(refusal)?;
    if let Err(failure) = spawn.strings(List::Arguments, arguments) {
        spawn.abandon();
        return Err(refusal(failure));
    }
    spawn.start().map_err(refusal)
}

/// The process server, asked as somebody.
fn with_procs<T>(asker: u64, ask: impl FnOnce(Procs) -> Result<T, Error>) -> Result<T, Error> {
    let (authority, slot) = (authority().ok_or(Error::Internal)?, memory::take_slot().map_err(|_| Error::Full)?);
    let minted = authority.mint_to(slot, Rights::WRITE | Rights::CALL | Rights::GRANT, asker);
    let result = minted.map_err(|_| Error::Internal).and_then(|endpoint| ask(Procs::at(endpoint)));
    let _ = OWN_SPACE.delete_at(slot);
    memory::free_slot(slot);
    result
}

/// The endpoints that the system description gives the monitor: the process server's, and then where absent servers would receive.
pub fn endpoints() -> impl Iterator<Item = Cap<Endpoint>> {
    let count = tench::process::info().map_or(0, |info| info.extra_count).min(u64::from(slot::EXTRA_COUNT)) as u32;
    let places = (slot::EXTRA.0..slot::EXTRA.0 + count).map(CapAddress);
    let is_endpoint =
        |place: &CapAddress| OWN_SPACE.identify_at(*place).is_ok_and(|found| found.kind == Kind::Endpoint);
    places.filter(is_endpoint).map(Cap::new)
}

/// The process server without a badge. It is looked for once.
fn authority() -> Option<Cap<Endpoint>> {
    static KNOWN: AtomicU32 = AtomicU32::new(0);
    let known = KNOWN.load(Ordering::Relaxed);
    if known != 0 {
        return Some(Cap::new(CapAddress(known)));
    }
    let found = endpoints().next()?;
    KNOWN.store(found.address().0, Ordering::Relaxed);
    Some(found)
}

/// The words of a value, as an answer.
fn words(value: &impl Encode) -> Words {
    let mut message = Message::new(0);
    value.encode(&mut message);
    let arrived = Received::from_message(&message, 0);
    [Outcome::Answered as u64].into_iter().chain(arrived.words().iter().copied()).collect()
}

/// A process, with numbers that no process of another core has.
fn describe(core: u64, status: &Status) -> Process {
    let state = match status.state {
        State::Preparing => Condition::Preparing,
        State::Running => Condition::Running,
        State::Suspended => Condition::Suspended,
        State::Exited => Condition::Exited,
        State::Killed => Condition::Killed,
        State::Faulted => Condition::Faulted,
    };
    let parent = match status.parent {
        0 => 0,
        foreign if foreign & pid::FOREIGN != 0 => foreign & !pid::FOREIGN,
        own => first(core) | own,
    };
    let name = ArrayString::<MAX_NAME>::from(&status.name).unwrap_or_default();
    Process { process: first(core) | status.process, parent, state, detail: status.detail, ticks: status.ticks, name }
}

/// Why the process server refuses.
fn refusal(failure: Failure) -> Error {
    let Failure::Refused(error) = failure else { return Error::Internal };
    match error {
        Refused::NoSuchProcess => Error::NoSuchProcess,
        Refused::WrongState => Error::WrongState,
        Refused::NoSuchProgram => Error::NoSuchProgram,
        Refused::BadProgram => Error::BadProgram,
        Refused::OutOfMemory => Error::OutOfMemory,
        Refused::TooManyProcesses => Error::TooManyProcesses,
        Refused::TextTooLong => Error::TextTooLong,
        Refused::NotAllowed => Error::NotAllowed,
        Refused::Essential => Error::Essential,
        Refused::Full => Error::Full,
        _ => Error::Internal,
    }
}
