//! Process builders: from a request to a running process.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use tench::memory::{self as own_memory, Made};
use tench::server::delete_in_parts;
use tench_abi::layout::slot;
use tench_abi::memory::PAGE_SIZE;
use tench_abi::power::Client;
use tench_abi::{CapAddress, Powers, Rights};
use tench_boot::Content;
use tench_loader::addresses::{Addresses, Randomness, StackSize};
use tench_loader::fault::Layout;
use tench_loader::information::{Description, TEXT_SIZE};
use tench_loader::{LoadError, Machine, Process, Program, Schedule, Shown, Source, Window};
use tench_mem_interface::Mem;
use tench_procs::catalogue::File;
use tench_procs_interface::protocol::{Defect, Error, MAX_LOADED, MAX_STACK, Strings};
use tench_protocol::{Any, Arrived};
use tench_sys::{Cap, Endpoint, Error as KernelError, Notification, OWN_CSPACE};

use crate::memory::{Account, ProcessMemory};
use crate::services::PersistentState;

/// Endpoint at which requests and faults arrive.
pub const SERVICE: Cap<Endpoint> = Cap::new(slot::SERVICE);
/// Preemption points that the kernel passes in one part of deleting a process's objects: some 60,000 instructions, for
/// which a request that arrives meanwhile waits.
const PART: u64 = 48;
/// Time slices in a second.
const SLICES_PER_SECOND: u64 = 100;

/// A process builder: everything with which a process is to start.
#[derive(Default)]
pub struct ProcessBuilder {
    /// Program from the boot archive.
    program: Option<&'static File<'static>>,
    /// Program that the parent hands over.
    content: Option<Box<Handed>>,
    /// First argument: the name under which the program was requested.
    name: String,
    arguments: Vec<u8>,
    environment: Vec<u8>,
    /// Capabilities given by the parent: for each, the slot in the new process, and this server's slot that holds it.
    given: Vec<(CapAddress, CapAddress)>,
    /// Bytes of the main thread's stack; 0 for the usual size.
    stack_size: u64,
    supervision: Option<Supervision>,
}

/// A program's file that a parent hands over. Its memory is charged to the process that is to run it.
struct Handed {
    content: Content,
    account: Account,
}

impl Handed {
    /// Frees the file and everything else on the account.
    fn take_back(mut self) {
        // A file's size is bounded, and so is this loop.
        while !self.account.take_back() {}
    }
}

/// Policy by which a server is restarted.
#[derive(Clone)]
pub struct Supervision {
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

/// Data kept for a running process.
pub struct RunningProcess {
    /// Kernel objects of the process.
    pub process: Process,
    /// Layout of its address space.
    pub layout: Layout,
    /// Source of its objects' memory.
    memory: ProcessMemory,
    /// File of its program, parts of which are mapped into it, if its parent handed the file over.
    _content: Option<Content>,
    /// Endpoint at which it serves.
    service: Option<Service>,
    /// Servers to which this server gave it capabilities, by slot.
    pub connected: Vec<(CapAddress, &'static str)>,
    /// Notification that an interrupt signals instead of killing the process, if it wants that; held in a slot of this
    /// server.
    interrupt: Option<Cap<Notification>>,
    /// Ticks that its threads had used when it was stopped.
    used: u64,
}

/// The endpoint at which a process serves.
pub enum Service {
    /// The endpoint was given by the parent.
    Given(CapAddress),
    /// The endpoint was made when the server was restarted.
    Made(Made<Endpoint>),
}

impl Service {
    pub const fn endpoint(&self) -> Cap<Endpoint> {
        match self {
            Service::Given(slot) => Cap::new(*slot),
            Service::Made(made) => made.cap(),
        }
    }

    /// Deletes this server's capability to the endpoint, when [all others are gone](Self::revoke_part).
    pub fn close(self) {
        match self {
            Service::Given(slot) => delete_in_parts(slot),
            Service::Made(made) => drop(made),
        }
    }

    /// Revokes some of the capabilities derived from this one. Returns whether none is left: then nobody will ever
    /// receive there, and the kernel refuses present and future senders. If the capability is not the original, whoever
    /// holds the original decides that.
    pub fn revoke_part(&self) -> bool {
        OWN_CSPACE.revoke_part_at(self.endpoint().address(), PART) != Err(KernelError::Unfinished)
    }
}

impl RunningProcess {
    /// Returns the ticks that its threads have used.
    pub fn ticks(&self) -> u64 {
        self.process.address_space().account().map_or(0, |account| account.ticks)
    }

    /// Stops the process: none of its threads runs any more. It is to be destroyed.
    pub fn stop(&mut self) {
        // A process without an account has not run yet.
        let _ = self.process.address_space().suspend_account(true);
        self.used = self.ticks();
        if let Some(signal) = self.interrupt.take() {
            delete_in_parts(signal.address());
        }
    }

    /// Does one part of destroying a stopped process. Returns whether everything that it had is gone.
    pub fn clear_part(&mut self) -> bool {
        if let Some(service) = self.service.take_if(|service| service.revoke_part()) {
            service.close();
        }
        self.service.is_none() && self.memory.close_part()
    }

    /// Returns the ticks that its threads had used when it was stopped.
    pub const fn used(&self) -> u64 {
        self.used
    }

    /// Sets the notification that the next interrupt signals.
    pub fn on_interrupt(&mut self, signal: Cap<Notification>) {
        if let Some(before) = self.interrupt.replace(signal) {
            delete_in_parts(before.address());
        }
    }

    /// Signals the notification set for an interrupt, and clears it. Returns whether there was one.
    pub fn interrupt(&mut self) -> bool {
        let Some(signal) = self.interrupt.take() else { return false };
        let was_signalled = signal.signal().is_ok();
        delete_in_parts(signal.address());
        was_signalled
    }

    /// Returns the endpoint at which it serves.
    pub fn service(&self) -> Option<Cap<Endpoint>> {
        self.service.as_ref().map(Service::endpoint)
    }
}

/// A process that is built; only its memory is still kept separately.
struct Built {
    process: Process,
    layout: Layout,
    connected: Vec<(CapAddress, &'static str)>,
    /// Size of its program in bytes.
    size: u64,
    /// Frequency of the counter, as told to the process.
    frequency: u64,
}

/// Resources for loading, besides the process builder.
pub struct Loader<'a> {
    /// The memory server, with full authority.
    pub mem: Mem,
    /// Window in which frames are filled.
    pub window: Window,
    /// Memory that is mapped into processes instead of copied.
    pub shown: &'a Shown,
    /// The loader's CSpace range, at which a process's nodes are installed while it is loaded.
    pub cspace_range: u32,
    /// Source of random addresses.
    pub random: &'a mut Randomness,
    /// The other servers to which every process gets capabilities, without badges: slot, name, endpoint.
    pub servers: &'a [(CapAddress, &'static str, Option<Cap<Endpoint>>)],
    /// Persistent state of the server that is restarted.
    pub kept: Option<&'a PersistentState>,
}

/// Parses a program that was handed over. Its size is bounded, because this server does nothing else while it loads
/// one.
fn handed_over(file: &[u8]) -> Result<Program<'_>, Defect> {
    let program = Program::parse(file)?;
    if program.size() > MAX_LOADED { Err(Defect::TooLarge) } else { Ok(program) }
}

/// Returns a valid stack size: whole pages, or 0 for the usual size.
pub fn stack_size(bytes: u64) -> Result<u64, Error> {
    match bytes {
        0..=MAX_STACK => Ok(bytes.next_multiple_of(PAGE_SIZE as u64)),
        _ => Err(Error::StackTooLarge),
    }
}

/// Returns whether a parent may give a capability in this slot.
fn may_be_given(to: CapAddress) -> bool {
    let extra = slot::EXTRA.0..slot::EXTRA.0 + slot::EXTRA_COUNT;
    let named = [slot::NAMES, slot::CONSOLE, slot::FILES, slot::KERNEL, slot::INTERRUPT_CONTROL, slot::SERVICE];
    let streams = [slot::STDIN, slot::STDOUT, slot::STDERR];
    extra.contains(&to.0) || named.contains(&to) || streams.contains(&to)
}

impl ProcessBuilder {
    /// Returns the builder of a process whose program is from the boot archive and was requested as `name`.
    pub fn new(program: &'static File<'static>, name: &str) -> ProcessBuilder {
        ProcessBuilder { program: Some(program), name: String::from(name), ..ProcessBuilder::default() }
    }

    /// Returns the builder of a process whose program its parent calls `name` and hands over, in at most `room` bytes,
    /// charged to the process's account.
    pub fn of_content(name: &str, mut account: Account, room: usize) -> Result<ProcessBuilder, LoadError> {
        match Content::new(room, |size_bits, slot| account.block(size_bits, slot)) {
            Ok(content) => {
                let content = Some(Box::new(Handed { content, account }));
                Ok(ProcessBuilder { content, name: String::from(name), ..ProcessBuilder::default() })
            }
            Err(error) => {
                while !account.take_back() {}
                Err(error)
            }
        }
    }

    /// Appends to the program's file. Fails with `WrongState` if the file is in the boot archive, with `TooLarge` if it
    /// would exceed the announced size.
    pub fn write(&mut self, window: Window, bytes: &[u8]) -> Result<(), Error> {
        let content = &mut self.content.as_mut().ok_or(Error::WrongState)?.content;
        if bytes.len() > content.left() {
            return Err(Error::TooLarge);
        }
        content.append(window, bytes).map_err(|_| Error::Internal)
    }

    /// Sets the size of the stack.
    pub fn set_stack_size(&mut self, bytes: u64) {
        self.stack_size = bytes;
    }

    /// Returns the size of the texts after `appended` more bytes. Fails with `TextTooLong` if that exceeds the maximum
    /// for a process.
    pub fn text_after(&self, appended: usize) -> Result<usize, Error> {
        let length = self.arguments.len() + self.environment.len() + appended;
        if length > TEXT_SIZE { Err(Error::TextTooLong) } else { Ok(length) }
    }

    /// Appends text to a list.
    pub fn append(&mut self, to: Strings, text: &[u8]) -> Result<(), Error> {
        let strings = match to {
            Strings::Arguments => &mut self.arguments,
            Strings::Environment => &mut self.environment,
        };
        strings.try_reserve(text.len()).map_err(|_| Error::OutOfMemory)?;
        strings.extend_from_slice(text);
        Ok(())
    }

    /// Returns the number of given capabilities when one more is added in this slot. Fails with `BadSlot` if the slot
    /// is not allowed or taken.
    pub fn given_with(&self, to: CapAddress) -> Result<usize, Error> {
        if may_be_given(to) && !self.has(to) { Ok(self.given.len() + 1) } else { Err(Error::BadSlot) }
    }

    /// Takes over an arrived capability, for a slot in which one [may be given](Self::given_with).
    pub fn give<How>(&mut self, to: CapAddress, cap: Arrived<'_, Any, How>) {
        self.given.push((to, cap.keep().address()));
    }

    fn has(&self, to: CapAddress) -> bool {
        self.given.iter().any(|(given, _)| *given == to)
    }

    /// Removes and returns the capability with which the process will serve.
    pub fn take_service(&mut self) -> Option<CapAddress> {
        let index = self.given.iter().position(|(to, _)| *to == slot::SERVICE)?;
        Some(self.given.swap_remove(index).1)
    }

    /// Sets the endpoint at which the process will serve.
    pub fn serve_at(&mut self, endpoint: Cap<Endpoint>) {
        self.given.push((slot::SERVICE, endpoint.address()));
    }

    /// Returns the path of the program.
    pub fn path(&self) -> &str {
        self.program.map_or("", |program| &program.path)
    }

    /// Makes the process a server that is restarted. Its program must be from the boot archive: a file that was handed
    /// over lives no longer than its process.
    pub fn supervise(&mut self, supervision: Supervision) -> Result<(), Error> {
        if self.content.is_some() {
            return Err(Error::WrongState);
        }
        if !self.has(slot::SERVICE) {
            return Err(Error::BadSlot);
        }
        self.supervision = Some(supervision);
        Ok(())
    }

    /// Returns how the process is restarted, if it is.
    pub const fn supervision(&self) -> Option<&Supervision> {
        self.supervision.as_ref()
    }

    /// Discards the process builder.
    pub fn abandon(self) {
        self.given.into_iter().for_each(|(_, from)| delete_in_parts(from));
        self.content.into_iter().for_each(|handed| handed.take_back());
    }

    /// Loads the program into a process with this badge. The process does not run yet.
    pub fn load(
        &mut self,
        loader: &mut Loader<'_>,
        pid: u64,
        badge: u64,
    ) -> Result<(RunningProcess, u64, u64), LoadError> {
        let mut memory =
            ProcessMemory::new(Account { client: Client::of_badge(badge), mem: loader.mem }, loader.cspace_range);
        match self.build(loader, &mut memory, pid, badge) {
            Ok(Built { process, layout, connected, size, frequency }) => {
                let _content = self.content.take().map(|handed| handed.content);
                Ok((
                    RunningProcess {
                        process,
                        layout,
                        memory,
                        _content,
                        service: None,
                        connected,
                        interrupt: None,
                        used: 0,
                    },
                    size,
                    frequency,
                ))
            }
            Err(error) => {
                memory.close();
                Err(error)
            }
        }
    }

    /// Checks the program, and builds a process from it in this memory.
    fn build(
        &self,
        loader: &mut Loader<'_>,
        memory: &mut ProcessMemory,
        pid: u64,
        badge: u64,
    ) -> Result<Built, LoadError> {
        let opened = self.content.as_ref().map(|handed| handed.content.open()).transpose()?;
        let (mut program, shown) = match (&opened, self.program) {
            (Some(opened), _) => (handed_over(opened.bytes())?, opened.shown()),
            (None, Some(file)) => (file.program()?.clone(), loader.shown),
            (None, None) => return Err(LoadError::Kernel(KernelError::InvalidArgument)),
        };
        let stack = StackSize::of(&program, self.stack_size);
        let addresses = Addresses::choose(&program, stack, &mut loader.random.sequence());
        program.move_by(addresses.bias);
        let extra =
            self.given.iter().filter(|(to, _)| (slot::EXTRA.0..slot::EXTRA.0 + slot::EXTRA_COUNT).contains(&to.0));
        let description = Description {
            pid,
            name: &self.name,
            arguments: &self.arguments,
            environment: &self.environment,
            extra_count: extra.map(|(to, _)| u64::from(to.0 - slot::EXTRA.0 + 1)).max().unwrap_or(0),
            counter_frequency: tench::time::frequency(),
            addresses,
        };
        let mut machine = Machine::showing(memory, loader.window, shown);
        let process = Process::new(&mut machine, &program, &description)?;
        let connected = self.connect(loader, badge, &process)?;
        let layout = Layout::new(&program, &description);
        Ok(Built { process, layout, connected, size: program.size(), frequency: description.counter_frequency })
    }

    /// Gives a process badged capabilities to the servers, and copies of what its parent gave. Returns those servers.
    fn connect(
        &self,
        loader: &Loader<'_>,
        badge: u64,
        process: &Process,
    ) -> Result<Vec<(CapAddress, &'static str)>, KernelError> {
        for (to, from) in &self.given {
            process.give(*to, *from)?;
        }
        if let Some(kept) = loader.kept {
            process.give(slot::KEPT_MEMORY, kept.memory.cap())?;
            for (number, node) in (0..).zip(&kept.nodes) {
                process.give(CapAddress(slot::KEPT_CAPABILITIES.0 + number), node.cap())?;
            }
        }
        process.give_client(slot::PROCS, SERVICE, badge)?;
        let own_name = self.supervision().map_or("", |supervision| &supervision.name);
        // A server gets no capability to itself.
        let connected = loader.servers.iter().filter(|(to, name, _)| *name != own_name && !self.has(*to));
        for (to, _, endpoint) in connected.clone() {
            match endpoint.map_or(Ok(()), |endpoint| process.give_client(*to, endpoint, badge)) {
                // The server has ended: the process does without it, or reconnects to it later.
                Ok(()) | Err(KernelError::InvalidCapability) => {}
                Err(error) => return Err(error),
            }
        }
        if !self.has(slot::KERNEL) {
            give_kernel(process, badge)?;
        }
        Ok(connected.map(|(to, name, _)| (*to, *name)).collect())
    }
}

impl RunningProcess {
    /// Sets the endpoint at which the process serves: when it ends, threads that wait there are refused.
    pub fn serves_at(&mut self, service: Option<Service>) {
        self.service = service;
    }

    /// Runs the process.
    pub fn start(&mut self, pid: u64, priority: u8, ceiling: u8, frequency: u64) -> Result<(), KernelError> {
        let slot = own_memory::take_slot().map_err(|_| KernelError::NoSuchSlot)?;
        let faults = SERVICE.mint_to(slot, Rights::WRITE | Rights::CALL, pid);
        let schedule = Schedule { priority, ceiling, slice: frequency / SLICES_PER_SECOND };
        let account = self.process.address_space().open_account(Cap::new(slot::KERNEL));
        let ready = account.and(faults).and_then(|faults| self.process.make_ready(schedule, faults));
        delete_in_parts(slot);
        ready.and_then(|()| self.memory.put_away()).and_then(|()| self.process.start())
    }
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
