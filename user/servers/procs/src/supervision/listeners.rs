//! Servers are told which processes have ended, so that they free what they hold for these.

use tench_abi::power::Client;
use tench_clock_interface::Clock;
use tench_console_interface::Console;
use tench_files_interface::Files;
use tench_names_interface::Names;
use tench_procs::supervision::supervisor::State;
use tench_protocol::Failure;
use tench_sys::{Cap, Endpoint};

use super::patient::Patient;
use super::{Processes, Supervision};

/// Servers that free what they hold for processes that have ended, in the order in which they are told.
pub const LISTENERS: [&str; 4] = ["names", "console", "clock", "files"];
/// Maximum number of further processes about which a server may ask when told that one has ended; it asks about the
/// rest at the next end. The file server closes 2,048 ends of pipes in half as many replies.
const QUESTIONS: usize = 64;
/// Number of requests that empty the clock: 1,024 waits, 16 at a time.
const CLOCK_PARTS: usize = 64;

/// State of a process, as told to a server.
pub enum Life {
    /// The process is prepared or runs, and belongs to this family.
    Lives(u64),
    /// The process has ended. The number is that of a family without members, or 0 if none is known to be so.
    Ended(u64),
    /// The process is of another core.
    Elsewhere,
}

/// Tells a server that a process has ended. The call has a timeout, because the server may be about to end itself.
/// Returns whether the server replied.
fn notify(name: &str, server: Cap<Endpoint>, process: u64, life: impl Fn(u64) -> Life) -> bool {
    let patient = Patient(server);
    match name {
        "names" => notify_names(Names::at(patient), process, life),
        "console" => !matches!(Console::at(patient).process_ended(process), Err(Failure::Lost(_))),
        "clock" => notify_clock(Clock::at(patient), process),
        _ => notify_files(Files::at(patient), process, life),
    }
}

/// Tells the clock until it has nothing left to free. If other processes keep waiting with the ended process's
/// capability, these waits end with their deadlines.
fn notify_clock(clock: Clock<Patient>, process: u64) -> bool {
    for _ in 0..CLOCK_PARTS {
        match clock.process_ended(process) {
            Ok(true) => {}
            Err(Failure::Lost(_)) => return false,
            Ok(false) | Err(_) => break,
        }
    }
    true
}

/// Tells the name server, which may ask in turn whether other processes still run that have registered their first
/// names.
fn notify_names(names: Names<Patient>, process: u64, life: impl Fn(u64) -> Life) -> bool {
    notify_states(process, |subject| match life(subject) {
        Life::Lives(_) => Some(names.process_lives(subject)),
        Life::Ended(_) => Some(names.process_ended(subject)),
        Life::Elsewhere => None,
    })
}

/// Tells the file server, which may ask in turn whether other processes still run that were given streams or have
/// opened their first. It asks about the same process again if it has not closed everything yet.
fn notify_files(files: Files<Patient>, process: u64, life: impl Fn(u64) -> Life) -> bool {
    notify_states(process, |subject| match life(subject) {
        Life::Lives(family) => Some(files.process_lives(subject, family)),
        Life::Ended(family) => Some(files.process_ended(subject, family)),
        Life::Elsewhere => None,
    })
}

/// Sends a server the state of a process, and then of each process about which it asks. Returns whether the server
/// replied.
fn notify_states<E>(process: u64, say: impl Fn(u64) -> Option<Result<Option<u64>, Failure<E>>>) -> bool {
    let mut subject = process;
    for _ in 0..=QUESTIONS {
        subject = match say(subject) {
            Some(Ok(Some(other))) => other,
            Some(Err(Failure::Lost(_))) => return false,
            Some(Ok(None) | Err(_)) | None => break,
        };
    }
    true
}

impl Supervision {
    /// Tells a server that a process has ended: now, or when the server runs again. Returns whether the server runs but
    /// did not reply, and is to be [told again](Self::tell_again).
    pub fn tell(&mut self, name: &str, ended: Client, processes: &impl Processes) -> bool {
        if self.try_tell(name, ended, processes) {
            return false;
        }
        self.supervisor.find(name).is_some_and(|service| {
            service.miss(ended);
            matches!(service.state(), State::Up(_))
        })
    }

    /// Tells a running server of an ended process that it missed, because it did not reply in time. Returns whether it
    /// was told now, or `None` if no server has missed anything.
    pub fn tell_again(&mut self, processes: &impl Processes) -> Option<bool> {
        let (name, ended) = self.supervisor.missed()?;
        let was_told = self.try_tell(name, ended, processes);
        if !was_told && let Some(service) = self.supervisor.find(name) {
            service.miss(ended);
        }
        Some(was_told)
    }

    /// Tells a server of the end of a process, if the server runs. Returns whether it was told.
    fn try_tell(&self, name: &str, ended: Client, processes: &impl Processes) -> bool {
        let life = |process| processes.life(process, ended);
        self.endpoint(name).is_some_and(|server| notify(name, server, ended.process, life))
    }
}
