//! Servers: starting them, starting them again when they end, telling them who has ended.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use tench::memory::{self, Made};
use tench_abi::layout::slot;
use tench_abi::object::NODE_BITS;
use tench_abi::power::Client;
use tench_abi::{CapAddress, Powers};
use tench_clock_client::Clock;
use tench_console_client::Console;
use tench_files_client::Files;
use tench_loader::LoadError;
use tench_mem_client::Mem;
use tench_mem_client::protocol::NO_QUOTA;
use tench_names_client::Names;
use tench_procs::records::Condition;
use tench_procs::supervisor::{Policy, Started, State, Verdict};
use tench_procs_client::pid::Shown;
use tench_procs_client::protocol::{Defect, Error, State as ProcessState};
use tench_protocol::{Failure, Given, Later, Pending, Replies, Sent};
use tench_sys::{Cap, CapNode, Endpoint, Error as Refusal, Frame, Instant, Kernel, OWN_SPACE, Rights};

use crate::patient::Patient;
use crate::report;
use crate::server::{Kept, ProcessRecord, Server};
use crate::spawn::{Loader, Preparation, Service, Supervision};

/// Seconds in which a server's ends are counted.
const WINDOW: u64 = 60;
/// Processes of which a server may ask when one has ended; of the others it asks when the next has. The file server
/// closes 2,048 ends in half as many answers.
const QUESTIONS: usize = 64;
/// Requests that empty the clock: 1,024 waits, 16 at a time.
const CLOCK_PARTS: usize = 64;

/// Somebody who waits for a server that is being started again.
pub type Connecting = Pending<Sent<Endpoint, Given>, Error>;

/// What becomes of somebody who waits for a server.
pub enum Outcome {
    /// The server of this name runs: this process gets a capability to it.
    Runs(&'static str, u64),
    /// The server is not started again.
    GivenUp,
    /// Whoever waited has ended.
    Ended,
}

/// What is known of a process.
enum Life {
    /// It is prepared or runs, and is of this family.
    Lives(u64),
    /// It has ended. No process lives of this family; 0: none is known of which that is so.
    Ended(u64),
    /// It is another core's.
    Elsewhere,
}

/// Servers that forget processes which have ended.
#[derive(Clone, Copy)]
enum Listener {
    Names,
    Console,
    Clock,
    Files,
}

impl Listener {
    const ALL: [Listener; 4] = [Listener::Names, Listener::Console, Listener::Clock, Listener::Files];

    /// What everybody calls it.
    const fn name(self) -> &'static str {
        match self {
            Listener::Names => "names",
            Listener::Console => "console",
            Listener::Clock => "clock",
            Listener::Files => "files",
        }
    }

    /// Tells it that a process has ended. It has a limited time to answer, because it may be about to end itself.
    /// Answers whether it has.
    fn tell(self, server: Cap<Endpoint>, process: u64, life: impl Fn(u64) -> Life) -> bool {
        let patient = Patient(server);
        match self {
            Listener::Names => tell_names(Names::at(patient), process, life),
            Listener::Console => !matches!(Console::at(patient).process_ended(process), Err(Failure::Lost(_))),
            Listener::Clock => tell_clock(Clock::at(patient), process),
            Listener::Files => tell_files(Files::at(patient), process, life),
        }
    }
}

/// Tells the clock until it has no more to forget. If others keep waiting with the ended process's capability, the rest
/// ends with its deadlines.
fn tell_clock(clock: Clock<Patient>, process: u64) -> bool {
    for _ in 0..CLOCK_PARTS {
        match clock.process_ended(process) {
            Ok(true) => {}
            Err(Failure::Lost(_)) => return false,
            Ok(false) | Err(_) => break,
        }
    }
    true
}

/// Tells the name server, which may ask in turn whether others live that have registered their first names.
fn tell_names(names: Names<Patient>, process: u64, life: impl Fn(u64) -> Life) -> bool {
    tell(process, |about| match life(about) {
        Life::Lives(_) => Some(names.process_lives(about)),
        Life::Ended(_) => Some(names.process_ended(about)),
        Life::Elsewhere => None,
    })
}

/// Tells the file server, which may ask in turn whether others live that were given streams or have opened their first,
/// or for the same once more, if it has not closed everything yet.
fn tell_files(files: Files<Patient>, process: u64, life: impl Fn(u64) -> Life) -> bool {
    tell(process, |about| match life(about) {
        Life::Lives(family) => Some(files.process_lives(about, family)),
        Life::Ended(family) => Some(files.process_ended(about, family)),
        Life::Elsewhere => None,
    })
}

/// Says something of a process to a server, and then of each about which it asks. Answers whether it was there.
fn tell<E>(process: u64, say: impl Fn(u64) -> Option<Result<Option<u64>, Failure<E>>>) -> bool {
    let mut about = process;
    for _ in 0..=QUESTIONS {
        about = match say(about) {
            Some(Ok(Some(other))) => other,
            Some(Err(Failure::Lost(_))) => return false,
            Some(Ok(None) | Err(_)) | None => break,
        };
    }
    true
}

/// What it takes to start a server again.
pub struct Plan {
    preparation: Preparation,
    parent: u64,
    priority: u8,
    ceiling: u8,
    powers: Powers,
    quota: u64,
    /// What stays when it ends.
    kept: Option<Keepsake>,
}

/// What stays when a server ends.
pub struct Keepsake {
    /// Memory.
    pub memory: Made<Frame>,
    /// Nodes of slots.
    pub nodes: Vec<Made<CapNode>>,
}

impl Server {
    /// The endpoint of a server, without a badge, as long as it runs.
    pub fn service(&self, name: &str) -> Option<Cap<Endpoint>> {
        match self.supervisor.state(name) {
            Some(State::Up(process)) => match &self.records.get(process).ok()?.kernel {
                Some(Kept::Living(living)) => living.service(),
                _ => None,
            },
            Some(State::Down(_) | State::GivenUp) => None,
            None => self.boot.service(name),
        }
    }

    /// The servers that every process reaches.
    fn servers(&self) -> Vec<(CapAddress, &'static str, Option<Cap<Endpoint>>)> {
        let known = [("mem", slot::MEM), ("names", slot::NAMES), ("console", slot::CONSOLE), ("files", slot::FILES)];
        known.into_iter().map(|(name, to)| (to, name, self.service(name))).collect()
    }

    /// Starts a process in preparation; if it does not start, its record is gone. Answers what is wrong with its file.
    pub fn start_prepared(&mut self, process: u64) -> Result<Option<Defect>, Error> {
        let Some(Kept::Preparing(mut preparation)) = self.records.get_mut(process)?.kernel.take() else {
            return Err(Error::WrongState);
        };
        let service = preparation.take_service();
        if let Some(service) = service {
            preparation.serve_at(Cap::new(service));
        }
        let supervision = preparation.supervision().cloned();
        let kept = match self.reserve(supervision.as_ref()) {
            Ok(kept) => kept,
            Err(error) => {
                preparation.abandon();
                self.discard_record(process);
                return Err(error);
            }
        };
        let started = self.launch(process, &mut preparation, service.map(Service::Given), kept.as_ref());
        match (started, supervision) {
            (Ok(()), Some(supervision)) => self.supervise_start(process, preparation, supervision, kept).map(|()| None),
            (Ok(()), None) => {
                preparation.abandon();
                Ok(None)
            }
            (Err(error), _) => {
                preparation.abandon();
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

    /// Makes what stays when a server ends, if it is one that is started again, and the only one of its name.
    fn reserve(&self, supervision: Option<&Supervision>) -> Result<Option<Keepsake>, Error> {
        let Some(supervision) = supervision else { return Ok(None) };
        if self.supervisor.state(&supervision.name).is_some() {
            return Err(Error::Exists);
        }
        keep(supervision.keep, supervision.nodes).map_err(|_| Error::OutOfMemory)
    }

    /// A server has been started that is started again when it ends.
    fn supervise_start(
        &mut self,
        process: u64,
        preparation: Preparation,
        supervision: Supervision,
        kept: Option<Keepsake>,
    ) -> Result<(), Error> {
        let record = self.records.get(process)?;
        let (parent, priority, ceiling) = (record.parent, record.priority, record.ceiling);
        let (powers, quota) = (record.powers, record.quota);
        let plan = Plan { preparation, parent, priority, ceiling, powers, quota, kept };
        let frequency = tench::time::frequency();
        let delay = u64::from(supervision.delay) * frequency / 1000;
        let policy = Policy { attempts: supervision.attempts, delay, window: WINDOW * frequency };
        // A server's name is needed for ever: it is never forgotten.
        self.supervisor.add(supervision.name.leak(), plan, policy, process).map_err(|_| Error::Exists)
    }

    /// Loads a process and lets it run. What it serves at is in the preparation, and leaves it. If that fails, what is
    /// left of the process is in its record, and [to be given up](Self::give_up).
    fn launch(
        &mut self,
        process: u64,
        preparation: &mut Preparation,
        service: Option<Service>,
        kept: Option<&Keepsake>,
    ) -> Result<(), LoadError> {
        let gone = |_| LoadError::Kernel(Refusal::InvalidArgument);
        let quota = self.records.settle_quota(process).map_err(gone)?;
        let record = self.records.get(process).map_err(gone)?;
        let (badge, parent) = (record.client().badge(record.powers), record.parent);
        let servers = self.servers();
        let mut loader = Loader {
            mem: self.mem,
            window: self.window,
            shown: self.boot.shown,
            shelf: self.shelf,
            random: &mut self.random,
            servers: &servers,
            kept,
        };
        let loaded =
            open_account(self.mem, process, parent, quota).and_then(|()| preparation.load(&mut loader, process, badge));
        let _ = preparation.take_service();
        let (mut living, size, frequency) = match loaded {
            Ok(loaded) => loaded,
            Err(error) => {
                self.records.get_mut(process).map_err(gone)?.kernel = Some(Kept::NotStarted(service));
                return Err(error);
            }
        };
        living.serves_at(service);
        let record = self.records.get_mut(process).map_err(gone)?;
        if let Err(error) = living.start(process, record.priority, record.ceiling, frequency) {
            living.stop();
            record.kernel = Some(Kept::Ending(Box::new(living), Condition::plain(ProcessState::Killed)));
            return Err(LoadError::Kernel(error));
        }
        record.kernel = Some(Kept::Living(Box::new(living)));
        record.size = size;
        self.records.set_state(process, ProcessState::Running).map_err(gone)
    }

    /// Says something on the console, or on the kernel's early output.
    fn say(&self, text: &str) {
        report::say(self.service("console"), text);
    }

    /// A process has ended: the servers forget it. One that does not run is told when it does.
    pub fn tell_servers(&mut self, ended: Client) {
        Listener::ALL.into_iter().for_each(|listener| self.tell_one(listener, ended));
    }

    /// Tells one of them now, or when it runs again.
    fn tell_one(&mut self, listener: Listener, ended: Client) {
        if !self.tells(listener, ended)
            && let Some(service) = self.supervisor.find(listener.name())
        {
            service.miss(ended);
            if matches!(service.state(), State::Up(_)) {
                let priority = self.records.get(ended.process).map_or(0, |record| record.priority);
                self.tell_later(priority);
            }
        }
    }

    /// Tells a server that runs of a process that it was not told of, because it did not answer in time. Answers
    /// whether it was told now; nothing if there is no such server.
    pub fn tell_again(&mut self) -> Option<bool> {
        let (name, ended) = self.supervisor.missed()?;
        let listener = Listener::ALL.into_iter().find(|listener| listener.name() == name)?;
        let was_told = self.tells(listener, ended);
        if !was_told && let Some(service) = self.supervisor.find(name) {
            service.miss(ended);
        }
        Some(was_told)
    }

    /// Tells a server of the end of a process, if it runs. Returns whether it was told.
    fn tells(&self, listener: Listener, ended: Client) -> bool {
        let life = |process| self.life(process, ended);
        self.service(listener.name()).is_some_and(|server| listener.tell(server, ended.process, life))
    }

    /// A process has ended: if it is a server, it may be started again.
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

    /// The monitor of a further core has ended. Nobody reaches this core any more, and nobody here the servers of the
    /// first: programs would wait for them for ever. So the core stops; the first core's monitor hears nothing of it
    /// any more, and says so.
    fn stop_core(&self, process: u64, how: &str) {
        let (core, number) = (own_core(), Shown(process));
        let name = self.records.get(process).map_or("", |record| record.name.as_str());
        self.say(&format!("procs: {name} (pid {number}) {how}; core {core} stops, which nobody could reach\n"));
        // Returns only if this server is not given the kernel; then the core goes on without anybody's seeing it.
        let _ = Cap::<Kernel>::new(slot::KERNEL).power_off(1);
    }

    /// Returns what is known of a process, or of that which has `ended`, whose record may be gone. Whether others of a
    /// family live is looked up when a server is told, and not when the process ended: whichever of them it is told of
    /// last, it hears then that the family has ended.
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

    /// Starts servers whose time has come.
    #[inline]
    pub fn restart_servers(&mut self) {
        while let Some(name) = self.supervisor.due(Instant::now().ticks()) {
            match self.restart(name) {
                Ok(Some(Started { waiters, missed })) => {
                    let runs = |(client, waiter): (Client, _)| (Outcome::Runs(name, client.process), waiter);
                    self.connections.extend(waiters.into_iter().map(runs));
                    for listener in Listener::ALL.into_iter().filter(|listener| listener.name() == name) {
                        missed.iter().for_each(|ended| self.tell_one(listener, *ended));
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

    /// Starts a server again, as a new process.
    fn restart(&mut self, name: &'static str) -> Result<Option<Started<Connecting>>, LoadError> {
        let Some(service) = self.supervisor.find(name) else { return Ok(None) };
        let Plan { parent, priority, ceiling, powers, quota, .. } = service.plan;
        let mut preparation = core::mem::take(&mut service.plan.preparation);
        let kept = service.plan.kept.take();
        let started = self.relaunch(
            &mut preparation,
            kept.as_ref(),
            |record| {
                (record.priority, record.ceiling, record.powers, record.quota) = (priority, ceiling, powers, quota);
            },
            parent,
        );
        if let Some(service) = self.supervisor.find(name) {
            service.plan.preparation = preparation;
            service.plan.kept = kept;
        }
        Ok(self.supervisor.started(name, started?))
    }

    /// Makes a record and an endpoint, and launches.
    fn relaunch(
        &mut self,
        preparation: &mut Preparation,
        kept: Option<&Keepsake>,
        set: impl FnOnce(&mut crate::server::ProcessRecord),
        parent: u64,
    ) -> Result<u64, LoadError> {
        let full = |_| LoadError::OutOfMemory;
        let endpoint = memory::make::<Endpoint>(0).map_err(|_| LoadError::OutOfMemory)?;
        let process =
            self.records.prepare(preparation.path(), Client::alone(parent), Powers::empty(), None).map_err(full)?;
        self.records.get_mut(process).map(set).map_err(full)?;
        preparation.serve_at(endpoint.cap());
        let launched = self.launch(process, preparation, Some(Service::Made(endpoint)), kept);
        if launched.is_err() {
            self.give_up(process);
        }
        launched.map(|()| process)
    }

    /// A process's capability to a server, if it had one from here and that is gone because the server was started
    /// again.
    pub fn connect_again(
        &mut self,
        client: Client,
        later: Later<'_, Sent<Endpoint, Given>, Error>,
        slot: CapAddress,
    ) -> Result<Option<Sent<Endpoint, Given>>, Error> {
        let caller = client.process;
        let Some(Kept::Living(living)) = &self.records.get(caller)?.kernel else { return Err(Error::WrongState) };
        let (_, name) = *living.connected.iter().find(|(to, _)| *to == slot).ok_or(Error::BadSlot)?;
        match self.supervisor.state(name) {
            Some(State::Up(_)) if self.service(name).is_some() => self.mint(name, caller).map(Some),
            // One that is being taken apart is as good as down.
            Some(State::Up(_) | State::Down(_)) => {
                let service = self.supervisor.find(name).ok_or(Error::GivenUp)?;
                if service.wait(client, || later.keep().ok()) { Ok(None) } else { Err(Error::Full) }
            }
            Some(State::GivenUp) | None => Err(Error::GivenUp),
        }
    }

    /// A capability to a server that leaves with the answer, for a process, with its powers; without a badge for number
    /// 0.
    pub fn mint(&self, name: &str, process: u64) -> Result<Sent<Endpoint, Given>, Error> {
        let server = self.service(name).ok_or(Error::GivenUp)?;
        // A process that offered no slot has left its capability here.
        let _ = OWN_SPACE.delete_at(self.outgoing);
        let rights = Rights::WRITE | Rights::CALL | Rights::GRANT;
        let badge = match process {
            0 => 0,
            _ => self.records.get(process).map(|record| record.client().badge(record.powers))?,
        };
        server.mint_to(self.outgoing, rights, badge).map(Sent::new).map_err(|_| Error::Internal)
    }

    /// Answers those who waited for a server.
    pub fn answer_connections(&mut self, replies: &mut Replies) {
        for (outcome, waiter) in core::mem::take(&mut self.connections) {
            match outcome {
                Outcome::Ended => replies.forget(waiter),
                // Who gave up meanwhile is answered nothing.
                Outcome::Runs(name, process) => drop(replies.answer(waiter, &self.mint(name, process))),
                Outcome::GivenUp => drop(replies.answer(waiter, &Err(Error::GivenUp))),
            }
        }
    }
}

/// Opens the account of a process, if there is a limit for it: what counts for its parent counts for it, too. One that
/// is open stays, with this limit.
pub fn open_account(mem: Mem, process: u64, parent: u64, quota: u64) -> Result<(), LoadError> {
    let limited = quota == NO_QUOTA || mem.open_account(process, parent, quota).is_ok();
    if limited { Ok(()) } else { Err(LoadError::OutOfMemory) }
}

/// Makes what stays when a server ends: memory of so many bytes, and slots.
fn keep(bytes: u64, nodes: u32) -> Result<Option<Keepsake>, memory::Error> {
    if bytes == 0 {
        return Ok(None);
    }
    let memory = memory::make::<Frame>(u64::from(bytes.ilog2()))?;
    let make = |_| memory::make::<CapNode>(u64::from(NODE_BITS));
    Ok(Some(Keepsake { memory, nodes: (0..nodes).map(make).collect::<Result<_, _>>()? }))
}

/// Which core this is.
fn own_core() -> u64 {
    Cap::<Kernel>::new(slot::KERNEL).machine().map_or(0, |machine| machine.core)
}
