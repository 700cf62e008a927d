//! Processes, one at a time: prepared, loaded, started, stopped and taken apart.
//!
//! ```text
//!  prepare            load                start
//!  ProcessBuilder ──▶ RunningProcess ──▶ it runs ── stop ──▶ Remains ── cleared in parts ──▶ nothing
//!        ▲                 │ fails ────── fails ───────────────▲
//!        └─────────────────┴─ of a server: the same builder, with a new endpoint, for the next start
//! ```
//! This layer knows neither the records of processes nor why one is started: [`Terms`] and [`Surroundings`] say
//! everything that differs between two starts of a builder.

mod builder;
mod memory;
mod persistent;
mod running;

use alloc::boxed::Box;
use alloc::vec::Vec;

use tench_abi::layout::slot;
use tench_abi::power::Client;
use tench_abi::{CapAddress, Powers, Rights};
use tench_boot::Content;
use tench_loader::addresses::{self, Addresses, Randomness, StackSize};
use tench_loader::fault::Layout;
use tench_loader::information::Description;
use tench_loader::{LoadError, Machine, Process, Program, ROOT_BITS, Shown, Source, Window, objects};
use tench_mem_interface::Mem;
use tench_mem_interface::protocol::{Error as MemoryError, NO_QUOTA};
use tench_procs_interface::pid;
use tench_procs_interface::protocol::{Defect, Error, MAX_LOADED};
use tench_protocol::Failure;
use tench_sys::{Cap, Endpoint, Error as KernelError, OWN_CSPACE};

pub use self::builder::{ProcessBuilder, stack_size};
use self::memory::{Account, ProcessMemory};
pub use self::persistent::PersistentState;
pub use self::running::{Remains, RunningProcess, Service};

/// Endpoint at which requests and faults arrive.
pub const SERVICE: Cap<Endpoint> = Cap::new(slot::SERVICE);

/// The terms on which a process is started.
#[derive(Clone, Copy, Default)]
pub struct Terms {
    /// Number of the process.
    pub process: u64,
    /// Badge of its capabilities to servers: its number, family and powers.
    pub badge: u64,
    /// The process to which its memory also counts.
    pub parent: u64,
    /// Memory quota in bytes.
    pub quota: u64,
    /// Priority of its main thread.
    pub priority: u8,
    /// Highest priority that it may assign.
    pub ceiling: u8,
}

/// A server to which processes get a capability.
pub struct Connection {
    /// Slot of the capability in the process.
    pub slot: CapAddress,
    /// The server's name.
    pub name: &'static str,
    /// The server's endpoint, without a badge, if it runs.
    pub endpoint: Option<Cap<Endpoint>>,
}

/// Everything that a process gets beside what its builder holds.
pub struct Surroundings<'a> {
    /// Servers to which it gets capabilities in slots that its builder leaves free.
    pub servers: Vec<Connection>,
    /// Persistent state of the server that is restarted.
    pub kept: Option<&'a PersistentState>,
}

/// Resources with which processes are built.
pub struct Spawner {
    /// The memory server, with full authority.
    mem: Mem,
    /// Window in which frames are filled.
    window: Window,
    /// Memory of the boot archive, which is mapped into processes instead of copied.
    shown: &'static Shown,
    /// The loader's CSpace range, at which a process's nodes are installed while it is loaded.
    cspace_range: u32,
    /// Source of random addresses.
    random: Randomness,
}

impl Spawner {
    /// Returns a spawner for programs of this archive.
    pub fn new(mem: Mem, shown: &'static Shown, mut random: Randomness) -> Result<Spawner, LoadError> {
        let window = Window::new(&mut tench_boot::OwnSpace, addresses::window(&mut random.sequence()))?;
        Ok(Spawner { mem, window, shown, cspace_range: objects::cspace_range()?, random })
    }

    /// Returns the builder of a process whose program its parent calls `name` and hands over, in at most `room` bytes,
    /// charged to the process's account, which is opened.
    pub fn receive(&self, name: &str, room: usize, terms: &Terms) -> Result<ProcessBuilder, LoadError> {
        self.open_account(terms)?;
        let mut account = self.account(terms);
        match Content::new(room, |size_bits, slot| account.block(size_bits, slot)) {
            Ok(content) => Ok(ProcessBuilder::of_content(name, content, account)),
            Err(error) => {
                while !account.take_back() {}
                Err(error)
            }
        }
    }

    /// Appends to the file of a program that is handed over. Fails with `WrongState` if the file is in the boot
    /// archive, with `TooLarge` if it would exceed the announced size.
    pub fn write(&self, builder: &mut ProcessBuilder, bytes: &[u8]) -> Result<(), Error> {
        let content = builder.content().ok_or(Error::WrongState)?;
        if bytes.len() > content.left() {
            return Err(Error::TooLarge);
        }
        content.append(self.window, bytes).map_err(|_| Error::Internal)
    }

    /// Changes the memory quota of a process that has been loaded.
    pub fn set_quota(&self, process: u64, bytes: u64) -> Result<(), Error> {
        self.mem.set_quota(process, bytes).map_err(|_| Error::OutOfMemory)
    }

    /// Returns how many bytes of memory a process uses, if it has an account.
    pub fn memory(&self, process: u64) -> Result<Option<u64>, Error> {
        // The memory server's own account has the same number on every core.
        let account = if pid::split_pid(process).1 == pid::MEM { pid::MEM } else { process };
        match self.mem.next_account(account - 1) {
            Ok(found) => Ok((found.process == account).then_some(found.used)),
            Err(Failure::Refused(MemoryError::NoSuchAccount)) => Ok(None),
            Err(_) => Err(Error::Internal),
        }
    }

    /// Opens the account of a process, if it has a memory limit: its use also counts for its parent. An account that is
    /// open gets the new limit.
    fn open_account(&self, terms: &Terms) -> Result<(), LoadError> {
        let Terms { process, parent, quota, .. } = *terms;
        let limited = quota == NO_QUOTA || self.mem.open_account(process, parent, quota).is_ok();
        if limited { Ok(()) } else { Err(LoadError::OutOfMemory) }
    }

    fn account(&self, terms: &Terms) -> Account {
        Account { client: Client::of_badge(terms.badge), mem: self.mem }
    }

    /// Loads a prepared process and starts it. If this fails, what was built remains, to be cleared.
    pub fn run(
        &mut self,
        builder: &mut ProcessBuilder,
        service: Option<Service>,
        terms: &Terms,
        around: &Surroundings<'_>,
    ) -> Result<Box<RunningProcess>, (LoadError, Remains)> {
        let endpoint = service.as_ref().map(Service::endpoint);
        match self.load(builder, endpoint, terms, around) {
            Ok(mut running) => {
                running.service = service;
                match running.start(terms) {
                    Ok(()) => Ok(Box::new(running)),
                    Err(error) => Err((LoadError::Kernel(error), Box::new(running).stop())),
                }
            }
            Err(error) => Err((error, Remains::of_service(service))),
        }
    }

    /// Loads a prepared process, on an account of its own. It does not run yet.
    fn load(
        &mut self,
        builder: &mut ProcessBuilder,
        endpoint: Option<Cap<Endpoint>>,
        terms: &Terms,
        around: &Surroundings<'_>,
    ) -> Result<RunningProcess, LoadError> {
        self.open_account(terms)?;
        let mut memory = ProcessMemory::new(self.account(terms), self.cspace_range);
        let built = self.build(builder, &mut memory, terms).and_then(|(process, layout, size)| {
            let connected = connect(&process, builder, endpoint, terms.badge, around)?;
            Ok((process, layout, size, connected))
        });
        match built {
            Ok((process, layout, size, connected)) => {
                let _content = builder.content.take().map(|handed| handed.content);
                let (service, interrupt) = (None, None);
                Ok(RunningProcess { process, layout, size, memory, _content, service, connected, interrupt })
            }
            Err(error) => {
                memory.close();
                Err(error)
            }
        }
    }

    /// Checks the program, and builds a process from it in this memory. Returns the program's size in bytes, too.
    fn build(
        &mut self,
        builder: &ProcessBuilder,
        memory: &mut ProcessMemory,
        terms: &Terms,
    ) -> Result<(Process, Layout, u64), LoadError> {
        let opened = builder.content.as_ref().map(|handed| handed.content.open()).transpose()?;
        let (mut program, shown) = match (&opened, builder.program) {
            (Some(opened), _) => (handed_over(opened.bytes())?, opened.shown()),
            (None, Some(file)) => (file.program()?.clone(), self.shown),
            (None, None) => return Err(LoadError::Kernel(KernelError::InvalidArgument)),
        };
        let stack = StackSize::of(&program, builder.stack_size);
        let addresses = Addresses::choose(&program, stack, &mut self.random.sequence());
        program.move_by(addresses.bias);
        let extra =
            builder.given.iter().filter(|(to, _)| (slot::EXTRA.0..slot::EXTRA.0 + slot::EXTRA_COUNT).contains(&to.0));
        let description = Description {
            pid: terms.process,
            name: &builder.name,
            arguments: &builder.arguments,
            environment: &builder.environment,
            extra_count: extra.map(|(to, _)| u64::from(to.0 - slot::EXTRA.0 + 1)).max().unwrap_or(0),
            counter_frequency: tench::time::frequency(),
            addresses,
        };
        let mut machine = Machine::new(memory, self.window, shown);
        let process = Process::new(&mut machine, &program, &description, builder.root_bits.max(ROOT_BITS))?;
        Ok((process, Layout::new(&program, &description), program.size()))
    }
}

/// Parses a program that was handed over. Its size is bounded, because this server does nothing else while it loads
/// one.
fn handed_over(file: &[u8]) -> Result<Program<'_>, Defect> {
    let program = Program::parse(file)?;
    if program.size() > MAX_LOADED { Err(Defect::TooLarge) } else { Ok(program) }
}

/// Gives a process copies of what its parent gave, and badged capabilities to the servers. Returns those servers.
fn connect(
    process: &Process,
    builder: &ProcessBuilder,
    endpoint: Option<Cap<Endpoint>>,
    badge: u64,
    around: &Surroundings<'_>,
) -> Result<Vec<(CapAddress, &'static str)>, KernelError> {
    for (to, from) in &builder.given {
        process.give(*to, *from)?;
    }
    if let Some(endpoint) = endpoint {
        process.give(slot::SERVICE, endpoint.address())?;
    }
    if let Some(kept) = around.kept {
        kept.give_to(process)?;
    }
    process.give_client(slot::PROCS, SERVICE, badge)?;
    let connected = around.servers.iter().filter(|server| !builder.has(server.slot));
    for server in connected.clone() {
        match server.endpoint.map_or(Ok(()), |endpoint| process.give_client(server.slot, endpoint, badge)) {
            // The server has ended: the process does without it, or reconnects to it later.
            Ok(()) | Err(KernelError::InvalidCapability) => {}
            Err(error) => return Err(error),
        }
    }
    if !builder.has(slot::KERNEL) {
        give_kernel(process, badge)?;
    }
    Ok(connected.map(|server| (server.slot, server.name)).collect())
}

/// Gives a process a capability to the kernel with the rights that its badge stands for, if it has any.
fn give_kernel(process: &Process, badge: u64) -> Result<(), KernelError> {
    let powers = Powers::of_badge(badge).intersection(Powers::OF_KERNEL);
    if powers.is_empty() {
        return Ok(());
    }
    let badge = Client::of_badge(badge).badge(powers);
    process.root.mint_from(slot::KERNEL, OWN_CSPACE, slot::KERNEL, Rights::all(), badge)
}
