//! Servers: how they are started, restarted when they end, and told which processes have ended.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use tench::memory::{self, Made};
use tench_abi::layout::slot;
use tench_abi::object::NODE_BITS;
use tench_abi::power::Client;
use tench_abi::{CapAddress, Powers};
use tench_clock_interface::Clock;
use tench_console_interface::Console;
use tench_files_interface::Files;
use tench_loader::LoadError;
use tench_mem_interface::Mem;
use tench_mem_interface::protocol::NO_QUOTA;
use tench_names_interface::Names;
use tench_procs::records::Condition;
use tench_procs::supervisor::{Policy, Started, State, Verdict};
use tench_procs_interface::pid::Shown;
use tench_procs_interface::protocol::{Defect, Error, State as ProcessState};
use tench_protocol::{Failure, Given, Later, Pending, Replies, Sent};
use tench_sys::{Cap, CapNode, Endpoint, Error as KernelError, Frame, Instant, Kernel, OWN_CSPACE, Rights};

use crate::patient::Patient;
use crate::report;
use crate::server::{Kept, ProcessRecord, Server};
use crate::spawn::{Loader, ProcessBuilder, Service, Supervision};

/// Seconds over which a server's ends are counted.
const WINDOW: u64 = 60;
/// Maximum number of further processes about which a server may ask when told that one has ended; it asks about the
/// rest at the next end. The file server closes 2,048 ends of pipes in half as many replies.
const QUESTIONS: usize = 64;
/// Number of requests that empty the clock: 1,024 waits, 16 at a time.
const CLOCK_PARTS: usize = 64;

/// A thread that waits for a server that is being restarted.
pub type Connecting = Pending<Sent<Endpoint, Given>, Error>;

/// Outcome of a wait for a server.
pub enum Outcome {
    /// The server of this name runs: the process of this number gets a capability to it.
    Runs(&'static str, u64),
    /// The server will not be restarted.
    GivenUp,
    /// The waiting process has ended.
    Ended,
}

/// State of a process, as told to a server.
enum Life {
    /// The process is prepared or runs, and belongs to this family.
    Lives(u64),
    /// The process has ended. The number is that of a family without members, or 0 if none is known to be so.
    Ended(u64),
    /// The process is of another core.
    Elsewhere,
}

/// Servers that free what they hold for processes that have ended.
#[derive(Clone, Copy)]
enum Listener {
    Names,
    Console,
    Clock,
    Files,
}

impl Listener {
    const ALL: [Listener; 4] = [Listener::Names, Listener::Console, Listener::Clock, Listener::Files];

    /// Returns the server's name.
    const fn name(self) -> &'static str {
        match self {
            Listener::Names => "names",
            Listener::Console => "console",
            Listener::Clock => "clock",
            Listener::Files => "files",
        }
    }

    /// Tells the server that a process has ended. The call has a timeout, because the server may be about to end
    /// itself. Returns whether the server replied.
    fn notify(self, server: Cap<Endpoint>, process: u64, life: impl Fn(u64) -> Life) -> bool {
        let patient = Patient(server);
        match self {
            Listener::Names => notify_names(Names::at(patient), process, life),
            Listener::Console => !matches!(Console::at(patient).process_ended(process), Err(Failure::Lost(_))),
            Listener::Clock => notify_clock(Clock::at(patient), process),
            Listener::Files => notify_files(Files::at(patient), process, life),
        }
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

/// Everything needed to restart a server.
pub struct Plan {
    builder: ProcessBuilder,
    parent: u64,
    priority: u8,
    ceiling: u8,
    powers: Powers,
    quota: u64,
    kept: Option<PersistentState>,
}

/// A server's persistent state: memory and slots that survive its end.
pub struct PersistentState {
    pub memory: Made<Frame>,
    /// Capability nodes.
    pub nodes: Vec<Made<CapNode>>,
}

impl Server {
    /// Returns the unbadged endpoint of a server, while it runs.
    pub fn service(&self, name: &str) -> Option<Cap<Endpoint>> {
        match self.supervisor.state(name) {
            Some(State::Up(process)) => match &self.records.get(process).ok()?.kernel {
                Some(Kept::Running(running)) => running.service(),
                _ => None,
            },
            Some(State::Down(_) | State::GivenUp) => None,
            None => self.boot.service(name),
        }
    }

    /// Returns the servers to which every process gets a capability.
    fn servers(&self) -> Vec<(CapAddress, &'static str, Option<Cap<Endpoint>>)> {
        let known = [("mem", slot::MEM), ("names", slot::NAMES), ("console", slot::CONSOLE), ("files", slot::FILES)];
        known.into_iter().map(|(name, to)| (to, name, self.service(name))).collect()
    }

    /// Starts a process in preparation; if this fails, its record is removed. Returns the defect of its file, if that
    /// is the cause.
    pub fn start_prepared(&mut self, process: u64) -> Result<Option<Defect>, Error> {
        let Some(Kept::Preparing(mut builder)) = self.records.get_mut(process)?.kernel.take() else {
            return Err(Error::WrongState);
        };
        let service = builder.take_service();
        if let Some(service) = service {
            builder.serve_at(Cap::new(service));
        }
        let supervision = builder.supervision().cloned();
        let kept = match self.reserve(supervision.as_ref()) {
            Ok(kept) => kept,
            Err(error) => {
                builder.abandon();
                self.discard_record(process);
                return Err(error);
            }
        };
        let started = self.launch(process, &mut builder, service.map(Service::Given), kept.as_ref());
        match (started, supervision) {
            (Ok(()), Some(supervision)) => self.supervise_start(process, builder, supervision, kept).map(|()| None),
            (Ok(()), None) => {
                builder.abandon();
                Ok(None)
            }
            (Err(error), _) => {
                builder.abandon();
                self.give_up(process);
                match error {
                    LoadError::Defect(defect) => Ok(Some(defect)),
                    LoadError::OutOfMemory => Err(Error::OutOfMemory),
                    LoadError::Kernel(error) => {
                        self.say(&format!("procs: starting process {}: {error}\n", Shown(process)));
                        Err(Error::Internal)
                    }
                }
            }
        }
    }

    /// Allocates the persistent state of a server, if it is to be restarted and is the only one of its name.
    fn reserve(&self, supervision: Option<&Supervision>) -> Result<Option<PersistentState>, Error> {
        let Some(supervision) = supervision else { return Ok(None) };
        if self.supervisor.state(&supervision.name).is_some() {
            return Err(Error::Exists);
        }
        keep(supervision.keep, supervision.nodes).map_err(|_| Error::OutOfMemory)
    }

    /// Puts a started server under supervision.
    fn supervise_start(
        &mut self,
        process: u64,
        builder: ProcessBuilder,
        supervision: Supervision,
        kept: Option<PersistentState>,
    ) -> Result<(), Error> {
        let record = self.records.get(process)?;
        let (parent, priority, ceiling) = (record.parent, record.priority, record.ceiling);
        let (powers, quota) = (record.powers, record.quota);
        let plan = Plan { builder, parent, priority, ceiling, powers, quota, kept };
        let frequency = tench::time::frequency();
        let delay = u64::from(supervision.delay) * frequency / 1000;
        let policy = Policy { attempts: supervision.attempts, delay, window: WINDOW * frequency };
        // A server's name is kept for ever, so leaking it is right.
        self.supervisor.add(supervision.name.leak(), plan, policy, process).map_err(|_| Error::Exists)
    }

    /// Loads a process and runs it. The endpoint at which it serves leaves the process builder. If this fails, what was
    /// built stays in its record, [to be destroyed](Self::give_up).
    fn launch(
        &mut self,
        process: u64,
        builder: &mut ProcessBuilder,
        service: Option<Service>,
        kept: Option<&PersistentState>,
    ) -> Result<(), LoadError> {
        let gone = |_| LoadError::Kernel(KernelError::InvalidArgument);
        let quota = self.records.fix_quota(process).map_err(gone)?;
        let record = self.records.get(process).map_err(gone)?;
        let (badge, parent) = (record.client().badge(record.powers), record.parent);
        let servers = self.servers();
        let mut loader = Loader {
            mem: self.mem,
            window: self.window,
            shown: self.boot.shown,
            cspace_range: self.cspace_range,
            random: &mut self.random,
            servers: &servers,
            kept,
        };
        let loaded =
            open_account(self.mem, process, parent, quota).and_then(|()| builder.load(&mut loader, process, badge));
        let _ = builder.take_service();
        let (mut running, size, frequency) = match loaded {
            Ok(loaded) => loaded,
            Err(error) => {
                self.records.get_mut(process).map_err(gone)?.kernel = Some(Kept::NotStarted(service));
                return Err(error);
            }
        };
        running.serves_at(service);
        let record = self.records.get_mut(process).map_err(gone)?;
        if let Err(error) = running.start(process, record.priority, record.ceiling, frequency) {
            running.stop();
            record.kernel = Some(Kept::Ending(Box::new(running), Condition::plain(ProcessState::Killed)));
            return Err(LoadError::Kernel(error));
        }
        record.kernel = Some(Kept::Running(Box::new(running)));
        record.size = size;
        self.records.set_state(process, ProcessState::Running).map_err(gone)
    }

    /// Prints on the console, or on the kernel's early output.
    fn say(&self, text: &str) {
        report::say(self.service("console"), text);
    }

    /// Tells the servers that a process has ended. A server that does not run is told when it runs again.
    pub fn notify_servers(&mut self, ended: Client) {
        Listener::ALL.into_iter().for_each(|listener| self.notify_server(listener, ended));
    }

    /// Tells one server now, or when it runs again.
    fn notify_server(&mut self, listener: Listener, ended: Client) {
        if !self.try_notify(listener, ended)
            && let Some(service) = self.supervisor.find(listener.name())
        {
            service.miss(ended);
            if matches!(service.state(), State::Up(_)) {
                let priority = self.records.get(ended.process).map_or(0, |record| record.priority);
                self.notify_later(priority);
            }
        }
    }

    /// Tells a running server of an ended process that it missed, because it did not reply in time. Returns whether it
    /// was told now, or `None` if no server has missed anything.
    pub fn notify_again(&mut self) -> Option<bool> {
        let (name, ended) = self.supervisor.missed()?;
        let listener = Listener::ALL.into_iter().find(|listener| listener.name() == name)?;
        let was_notified = self.try_notify(listener, ended);
        if !was_notified && let Some(service) = self.supervisor.find(name) {
            service.miss(ended);
        }
        Some(was_notified)
    }

    /// Tells a server of the end of a process, if the server runs. Returns whether it was told.
    fn try_notify(&self, listener: Listener, ended: Client) -> bool {
        let life = |process| self.life(process, ended);
        self.service(listener.name()).is_some_and(|server| listener.notify(server, ended.process, life))
    }

    /// Restarts an ended process later, if it is a supervised server.
    pub fn supervise_end(&mut self, process: u64, how: Condition) {
        let (verdict, gone) = self.supervisor.ended(process, Instant::now().ticks());
        self.connections.extend(gone.into_iter().map(|waiter| (Outcome::Ended, waiter)));
        let how = match how.state {
            ProcessState::Killed => "was killed",
            ProcessState::Faulted => "ended by a fault",
            _ => "has ended",
        };
        match verdict {
            Verdict::NotSupervised if self.link == Some(process) => self.stop_core(process, how),
            Verdict::NotSupervised => {}
            Verdict::Again(name) => {
                self.say(&format!("procs: {name} (pid {}) {how}; it is started again\n", Shown(process)))
            }
            Verdict::GivenUp(name, in_vain) => {
                self.connections.extend(in_vain.into_iter().map(|(_, waiter)| (Outcome::GivenUp, waiter)));
                self.say(&format!(
                    "procs: {name} (pid {}) {how}, too often in a minute; it is not started again\n",
                    Shown(process)
                ));
            }
        }
    }

    /// Stops the core if `process` is its monitor, on a further core. Without a monitor, nobody reaches this core, and
    /// its programs would wait for the first core's servers for ever. The first core's monitor notices the silence and
    /// reports it.
    fn stop_core(&self, process: u64, how: &str) {
        let (core, number) = (own_core(), Shown(process));
        let name = self.records.get(process).map_or("", |record| record.name.as_str());
        self.say(&format!("procs: {name} (pid {number}) {how}; core {core} stops, which nobody could reach\n"));
        // This call returns only if the server holds no kernel capability; then the core goes on without a monitor.
        let _ = Cap::<Kernel>::new(slot::KERNEL).power_off(1);
    }

    /// Returns the state of a process, also of the process `ended`, whose record may be gone. Whether others of its
    /// family run is looked up when a server is told, not when the process ends: so with the last process of a family
    /// of which a server is told, it learns that the family has ended.
    fn life(&self, process: u64, ended: Client) -> Life {
        let known = self.records.get(process).ok();
        match known.filter(|record| !record.has_ended()) {
            Some(record) if process != ended.process => Life::Lives(record.client().family),
            None if self.records.is_foreign(process) => Life::Elsewhere,
            _ => {
                let own = (process == ended.process).then_some(ended);
                let family = own.or_else(|| known.map(ProcessRecord::client)).map_or(0, |client| client.family);
                Life::Ended(self.records.family_that_ended(family))
            }
        }
    }

    /// Restarts the servers whose time has come.
    #[inline]
    pub fn restart_servers(&mut self) {
        while let Some(name) = self.supervisor.due(Instant::now().ticks()) {
            match self.restart(name) {
                Ok(Some(Started { waiters, missed })) => {
                    let runs = |(client, waiter): (Client, _)| (Outcome::Runs(name, client.process), waiter);
                    self.connections.extend(waiters.into_iter().map(runs));
                    for listener in Listener::ALL.into_iter().filter(|listener| listener.name() == name) {
                        missed.iter().for_each(|ended| self.notify_server(listener, *ended));
                    }
                }
                Ok(None) => {}
                Err(error) => {
                    let in_vain = self.supervisor.not_started(name, Instant::now().ticks());
                    self.connections.extend(in_vain.into_iter().map(|(_, waiter)| (Outcome::GivenUp, waiter)));
                    self.say(&format!("procs: starting {name} again: {error}\n"));
                }
            }
        }
    }

    /// Restarts a server, as a new process.
    fn restart(&mut self, name: &'static str) -> Result<Option<Started<Connecting>>, LoadError> {
        let Some(service) = self.supervisor.find(name) else { return Ok(None) };
        let Plan { parent, priority, ceiling, powers, quota, .. } = service.plan;
        let mut builder = core::mem::take(&mut service.plan.builder);
        let kept = service.plan.kept.take();
        let started = self.relaunch(
            &mut builder,
            kept.as_ref(),
            |record| {
                (record.priority, record.ceiling, record.powers, record.quota) = (priority, ceiling, powers, quota);
            },
            parent,
        );
        if let Some(service) = self.supervisor.find(name) {
            service.plan.builder = builder;
            service.plan.kept = kept;
        }
        Ok(self.supervisor.started(name, started?))
    }

    /// Makes a record and an endpoint, and launches the server.
    fn relaunch(
        &mut self,
        builder: &mut ProcessBuilder,
        kept: Option<&PersistentState>,
        set: impl FnOnce(&mut crate::server::ProcessRecord),
        parent: u64,
    ) -> Result<u64, LoadError> {
        let full = |_| LoadError::OutOfMemory;
        let endpoint = memory::make::<Endpoint>(0).map_err(|_| LoadError::OutOfMemory)?;
        let process =
            self.records.prepare(builder.path(), Client::alone(parent), Powers::empty(), None).map_err(full)?;
        self.records.get_mut(process).map(set).map_err(full)?;
        builder.serve_at(endpoint.cap());
        let launched = self.launch(process, builder, Some(Service::Made(endpoint)), kept);
        if launched.is_err() {
            self.give_up(process);
        }
        launched.map(|()| process)
    }

    /// Replaces a process's capability to a server, if this server gave it one that a restart has revoked. If the
    /// server is down, the caller waits until it runs.
    pub fn connect_again(
        &mut self,
        client: Client,
        later: Later<'_, Sent<Endpoint, Given>, Error>,
        slot: CapAddress,
    ) -> Result<Option<Sent<Endpoint, Given>>, Error> {
        let caller = client.process;
        let Some(Kept::Running(running)) = &self.records.get(caller)?.kernel else { return Err(Error::WrongState) };
        let (_, name) = *running.connected.iter().find(|(to, _)| *to == slot).ok_or(Error::BadSlot)?;
        match self.supervisor.state(name) {
            Some(State::Up(_)) if self.service(name).is_some() => self.mint(name, caller).map(Some),
            // A server that is being destroyed counts as down.
            Some(State::Up(_) | State::Down(_)) => {
                let service = self.supervisor.find(name).ok_or(Error::GivenUp)?;
                if service.wait(client, || later.keep().ok()) { Ok(None) } else { Err(Error::Full) }
            }
            Some(State::GivenUp) | None => Err(Error::GivenUp),
        }
    }

    /// Mints a capability to a server that is sent with the reply, for a process, with its powers; without a badge for
    /// number 0.
    pub fn mint(&self, name: &str, process: u64) -> Result<Sent<Endpoint, Given>, Error> {
        let server = self.service(name).ok_or(Error::GivenUp)?;
        // If the last receiver offered no slot, its capability is still here.
        let _ = OWN_CSPACE.delete_at(self.outgoing);
        let rights = Rights::WRITE | Rights::CALL | Rights::GRANT;
        let badge = match process {
            0 => 0,
            _ => self.records.get(process).map(|record| record.client().badge(record.powers))?,
        };
        server.mint_to(self.outgoing, rights, badge).map(Sent::new).map_err(|_| Error::Internal)
    }

    /// Replies to those who waited for a server.
    pub fn reply_to_connections(&mut self, replies: &mut Replies) {
        for (outcome, waiter) in core::mem::take(&mut self.connections) {
            match outcome {
                Outcome::Ended => replies.forget(waiter),
                // A waiter that has given up meanwhile gets no reply.
                Outcome::Runs(name, process) => drop(replies.send(waiter, &self.mint(name, process))),
                Outcome::GivenUp => drop(replies.send(waiter, &Err(Error::GivenUp))),
            }
        }
    }
}

/// Opens the account of a process, if it has a memory limit: its use also counts for its parent. An account that is
/// open gets the new limit.
pub fn open_account(mem: Mem, process: u64, parent: u64, quota: u64) -> Result<(), LoadError> {
    let limited = quota == NO_QUOTA || mem.open_account(process, parent, quota).is_ok();
    if limited { Ok(()) } else { Err(LoadError::OutOfMemory) }
}

/// Allocates persistent state: this many bytes of memory and nodes of slots.
fn keep(bytes: u64, nodes: u32) -> Result<Option<PersistentState>, memory::Error> {
    if bytes == 0 {
        return Ok(None);
    }
    let memory = memory::make::<Frame>(u64::from(bytes.ilog2()))?;
    let make = |_| memory::make::<CapNode>(u64::from(NODE_BITS));
    Ok(Some(PersistentState { memory, nodes: (0..nodes).map(make).collect::<Result<_, _>>()? }))
}

/// Returns the number of this core.
fn own_core() -> u64 {
    Cap::<Kernel>::new(slot::KERNEL).machine().map_or(0, |machine| machine.core)
}
