//! Supervision: which servers run, and what follows when one ends.
//!
//! ```text
//!  add ──▶ runs ── stopped ──▶ is taken apart ── ended ──▶ down ── due ──▶ is started (by the requests' layer)
//!            ▲                                      │                           │
//!            └──────────────────────── restarted ───┼───────────────────────────┘
//!                                                   └──▶ given up
//! ```
//! Meanwhile, clients that have lost their capabilities to the server wait ([`connections`]), and the ends of processes
//! of which it is to be told are noted ([`listeners`]). Of the table of processes, this layer knows [`Processes`] only.

mod connections;
mod listeners;
mod patient;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use tench::memory;
use tench_abi::CapAddress;
use tench_abi::layout::slot;
use tench_abi::power::Client;
use tench_loader::LoadError;
use tench_procs::supervision::supervisor::{Policy, Started, State, Supervisor, Verdict};
use tench_procs_interface::pid::Shown;
use tench_procs_interface::protocol::{Error, State as ProcessState};
use tench_sys::{Cap, Endpoint, Instant, Kernel};

use crate::boot::Boot;
use crate::spawn::{Connection, PersistentState, ProcessBuilder, Terms};

use self::connections::{Connecting, Outcome};
pub use self::listeners::{LISTENERS, Life};
pub use self::patient::say;

/// Seconds over which a server's ends are counted.
const WINDOW: u64 = 60;
/// Servers to which every process gets a capability.
const FOR_ALL: [(&str, CapAddress); 4] =
    [("mem", slot::MEM), ("names", slot::NAMES), ("console", slot::CONSOLE), ("files", slot::FILES)];

/// The part of the table of processes that this layer knows.
pub trait Processes {
    /// Returns the badge of a process's capabilities to servers. Fails with `NoSuchProcess` if there is no record.
    fn badge(&self, process: u64) -> Result<u64, Error>;

    /// Returns the state of a process, also of the process `ended`, whose record may be gone.
    fn life(&self, process: u64, ended: Client) -> Life;
}

/// How a server is to be restarted.
pub struct Restarts {
    /// The server's well-known name.
    pub name: String,
    /// Maximum number of restarts within a minute.
    pub attempts: u32,
    /// Milliseconds before the first restart.
    pub delay: u32,
    /// Bytes of memory that persist.
    pub keep: u64,
    /// Nodes of slots that persist.
    pub nodes: u32,
}

/// Everything needed to restart a server.
#[derive(Default)]
pub struct Plan {
    /// Program, arguments and capabilities, without the endpoint.
    pub builder: ProcessBuilder,
    /// State that it finds again.
    pub kept: Option<PersistentState>,
    /// The terms of its first start, which hold for each. The number is that of its last process.
    pub terms: Terms,
    /// The endpoint at which it serves, while it runs.
    pub endpoint: Option<Cap<Endpoint>>,
}

/// All supervised servers.
pub struct Supervision {
    boot: Boot,
    supervisor: Supervisor<Plan, Connecting>,
    /// Ended waits for servers, with their outcomes.
    connections: Vec<(Outcome, Connecting)>,
    /// The monitor's process: a further core stops without it.
    link: Option<u64>,
    /// Slot in which a capability is made before it is sent.
    outgoing: CapAddress,
}

impl Supervision {
    /// Returns a supervision without servers. Until a server is added, its endpoint is the one that `init` has passed.
    pub fn new(boot: Boot) -> Result<Supervision, LoadError> {
        let outgoing = memory::take_slot().map_err(|_| LoadError::OutOfMemory)?;
        Ok(Supervision { boot, supervisor: Supervisor::default(), connections: Vec::new(), link: None, outgoing })
    }

    /// Returns the unbadged endpoint of a server, while it runs.
    pub fn endpoint(&self, name: &str) -> Option<Cap<Endpoint>> {
        match self.supervisor.get(name) {
            Some(service) => service.plan.endpoint,
            None => self.boot.service(name),
        }
    }

    /// Returns the servers to which every process gets a capability, except the one of this name: a server gets no
    /// capability to itself.
    pub fn servers_except(&self, own: &str) -> Vec<Connection> {
        let others = FOR_ALL.into_iter().filter(|(name, _)| *name != own);
        others.map(|(name, slot)| Connection { slot, name, endpoint: self.endpoint(name) }).collect()
    }

    /// Returns the console for a report about a process, which the console itself cannot print.
    pub fn console_for(&self, process: u64) -> Option<Cap<Endpoint>> {
        self.endpoint("console").filter(|_| self.supervisor.state("console") != Some(State::Up(process)))
    }

    /// Prints on the console, or on the kernel's early output.
    pub fn say(&self, text: &str) {
        say(self.endpoint("console"), text);
    }

    /// Checks that no supervised server has this name. Fails with `Exists` otherwise.
    pub fn check_new(&self, name: &str) -> Result<(), Error> {
        if self.supervisor.state(name).is_some() { Err(Error::Exists) } else { Ok(()) }
    }

    /// Allocates the persistent state of a server, if it is to be restarted and is the only one of its name.
    pub fn allocate(&self, restarts: Option<&Restarts>) -> Result<Option<PersistentState>, Error> {
        let Some(restarts) = restarts else { return Ok(None) };
        self.check_new(&restarts.name)?;
        PersistentState::allocate(restarts.keep, restarts.nodes).map_err(|_| Error::OutOfMemory)
    }

    /// Puts a started server under supervision.
    pub fn add(&mut self, restarts: Restarts, plan: Plan) -> Result<(), Error> {
        let frequency = tench::time::frequency();
        let delay = u64::from(restarts.delay) * frequency / 1000;
        let policy = Policy { attempts: restarts.attempts, delay, window: WINDOW * frequency };
        let process = plan.terms.process;
        // A server's name is kept for ever, so leaking it is right.
        self.supervisor.add(restarts.name.leak(), plan, policy, process).map_err(|_| Error::Exists)
    }

    /// Notes which process is the monitor: a further core stops when it ends.
    pub const fn set_link(&mut self, process: u64) {
        self.link = Some(process);
    }

    /// Returns the monitor's process.
    pub const fn link(&self) -> Option<u64> {
        self.link
    }

    /// Notes that a process has been stopped. If it is a supervised server, nobody gets a capability to it any more.
    pub fn stopped(&mut self, process: u64) {
        if let Some(service) = self.supervisor.of_process(process) {
            service.plan.endpoint = None;
        }
    }

    /// Decides what follows from the end of the process `name`: if it is a supervised server, it is restarted later.
    pub fn ended(&mut self, process: u64, name: &str, how: ProcessState) {
        let (verdict, gone) = self.supervisor.ended(process, Instant::now().ticks());
        self.connections.extend(gone.into_iter().map(|waiter| (Outcome::Ended, waiter)));
        let how = match how {
            ProcessState::Killed => "was killed",
            ProcessState::Faulted => "ended by a fault",
            _ => "has ended",
        };
        match verdict {
            Verdict::NotSupervised if self.link == Some(process) && own_core() != 0 => {
                self.stop_core(process, name, how)
            }
            Verdict::NotSupervised => {}
            Verdict::Again(name) => {
                self.say(&format!("procs: {name} (pid {}) {how}; it is started again\n", Shown(process)))
            }
            Verdict::GivenUp(name, in_vain) => {
                self.refuse(in_vain);
                self.say(&format!(
                    "procs: {name} (pid {}) {how}, too often in a minute; it is not started again\n",
                    Shown(process)
                ));
            }
        }
    }

    /// Refuses those who have waited in vain for a server.
    fn refuse(&mut self, in_vain: Vec<(Client, Connecting)>) {
        self.connections.extend(in_vain.into_iter().map(|(_, waiter)| (Outcome::GivenUp, waiter)));
    }

    /// Stops the core if `process` is its monitor, on a further core. Without a monitor, nobody reaches this core, and
    /// its programs would wait for the first core's servers for ever. The first core's monitor notices the silence and
    /// reports it.
    fn stop_core(&self, process: u64, name: &str, how: &str) {
        let (core, number) = (own_core(), Shown(process));
        self.say(&format!("procs: {name} (pid {number}) {how}; core {core} stops, which nobody could reach\n"));
        // This call returns only if the server holds no kernel capability; then the core goes on without a monitor.
        let _ = Cap::<Kernel>::new(slot::KERNEL).power_off(1);
    }

    /// Returns the earliest time at which a server is to be started, in ticks.
    #[inline]
    pub const fn next_deadline(&self) -> Option<u64> {
        self.supervisor.next_deadline()
    }

    /// Returns a server whose time to be started has come, and takes out its plan.
    #[inline]
    pub fn due(&mut self) -> Option<(&'static str, Plan)> {
        let name = self.supervisor.due(Instant::now().ticks())?;
        Some((name, core::mem::take(&mut self.supervisor.find(name)?.plan)))
    }

    /// Puts back the plan of a server that runs again, as the process in its terms, or could not be started. Returns
    /// the processes of whose ends it has not been told.
    pub fn restarted(&mut self, name: &'static str, plan: Plan, started: Result<(), LoadError>) -> Vec<Client> {
        let process = plan.terms.process;
        if let Some(service) = self.supervisor.find(name) {
            service.plan = plan;
        }
        if let Err(error) = started {
            let in_vain = self.supervisor.not_started(name, Instant::now().ticks());
            self.refuse(in_vain);
            self.say(&format!("procs: starting {name} again: {error}\n"));
            return Vec::new();
        }
        let Some(Started { waiters, missed }) = self.supervisor.started(name, process) else { return Vec::new() };
        let runs = |(client, waiter): (Client, _)| (Outcome::Runs(name, client.process), waiter);
        self.connections.extend(waiters.into_iter().map(runs));
        missed
    }
}

/// Returns the number of this core.
fn own_core() -> u64 {
    Cap::<Kernel>::new(slot::KERNEL).machine().map_or(0, |machine| machine.core)
}
