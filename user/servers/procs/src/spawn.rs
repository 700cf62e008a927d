//! From a request to a running process.

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
use tench_mem_client::Mem;
use tench_procs::catalogue::File;
use tench_procs_client::protocol::{Defect, Error, MAX_LOADED, MAX_STACK, Strings};
use tench_protocol::{Any, Arrived};
use tench_sys::{Cap, Endpoint, Error as Refusal, Notification, OWN_SPACE};

use crate::memory::{Account, ProcessMemory};
use crate::services::Keepsake;

/// Where requests and faults arrive.
pub const SERVICE: Cap<Endpoint> = Cap::new(slot::SERVICE);
/// Windows that the kernel passes for one part of deleting what a process had: some 60,000 instructions, which whoever
/// asks for something meanwhile waits.
const PART: u64 = 48;
/// Time slices in a second.
const SLICES_PER_SECOND: u64 = 100;

/// What a process is to start with.
#[derive(Default)]
pub struct Preparation {
    /// Its program, if that is one of the boot archive.
    program: Option<&'static File<'static>>,
    /// Its program, if its parent hands it over.
    content: Option<Box<Handed>>,
    /// Its first argument: the program as it was asked for.
    name: String,
    arguments: Vec<u8>,
    environment: Vec<u8>,
    /// Capabilities that its parent gave along: the slot for each, and where this server has it.
    given: Vec<(CapAddress, CapAddress)>,
    /// Bytes of its main thread's stack; 0: as usual.
    stack_size: u64,
    /// How it is started again.
    supervision: Option<Supervision>,
}

/// A program's file that a parent hands over. Its memory is on the account of the process whose program it is.
struct Handed {
    content: Content,
    account: Account,
}

impl Handed {
    /// Gives up what was prepared: everything that is on the account is taken back.
    fn take_back(mut self) {
        // A file is bounded in size, and so is this.
        while !self.account.take_back() {}
    }
}

/// How a server is started again.
#[derive(Clone)]
pub struct Supervision {
    /// What everybody calls it.
    pub name: String,
    /// How often within a minute.
    pub attempts: u32,
    /// Milliseconds until the first time.
    pub delay: u32,
    /// Bytes of memory that stay.
    pub keep: u64,
    /// Nodes of slots that stay.
    pub nodes: u32,
}

/// What this server keeps of a process that runs.
pub struct Living {
    /// Its kernel objects.
    pub process: Process,
    /// What lies where in it.
    pub layout: Layout,
    /// Where its objects' memory comes from.
    memory: ProcessMemory,
    /// The file of its program, parts of which it is shown, if its parent has handed that over.
    _content: Option<Content>,
    /// Where it serves others.
    service: Option<Service>,
    /// The servers that it got capabilities to from this one, by slot.
    pub connected: Vec<(CapAddress, &'static str)>,
    /// What an interrupt signals instead of killing it, if it wants that; it lies in a slot of this server's.
    interrupt: Option<Cap<Notification>>,
    /// Ticks that its threads had used when it was stopped.
    used: u64,
}

/// Where a server receives.
pub enum Service {
    /// What its parent gave.
    Given(CapAddress),
    /// What was made when it was started again.
    Made(Made<Endpoint>),
}

impl Service {
    /// The endpoint.
    pub const fn endpoint(&self) -> Cap<Endpoint> {
        match self {
            Service::Given(slot) => Cap::new(*slot),
            Service::Made(made) => made.cap(),
        }
    }

    /// Gives back the capability to it, when [all others are gone](Self::revoke_part).
    pub fn close(self) {
        match self {
            Service::Given(slot) => delete_in_parts(slot),
            Service::Made(made) => drop(made),
        }
    }

    /// Deletes a part of the capabilities that others have to it. Answers whether none is left: then nobody will ever
    /// answer there, and who waits is refused, and who comes. If the capability is no original, somebody else decides
    /// that.
    pub fn revoke_part(&self) -> bool {
        OWN_SPACE.revoke_part_at(self.endpoint().address(), PART) != Err(Refusal::Unfinished)
    }
}

impl Living {
    /// Ticks that its threads have used.
    pub fn ticks(&self) -> u64 {
        self.process.address_space().account().map_or(0, |account| account.ticks)
    }

    /// Stops it: none of its threads runs any more. It is to be taken apart.
    pub fn stop(&mut self) {
        // If it has no account, it has not run yet.
        let _ = self.process.address_space().suspend_account(true);
        self.used = self.ticks();
        if let Some(signal) = self.interrupt.take() {
            delete_in_parts(signal.address());
        }
    }

    /// Does a part of taking apart what has been stopped. Answers whether everything that it had is gone.
    pub fn clear_part(&mut self) -> bool {
        if let Some(service) = self.service.take_if(|service| service.revoke_part()) {
            service.close();
        }
        self.service.is_none() && self.memory.close_part()
    }

    /// Ticks that its threads had used when it was stopped.
    pub const fn used(&self) -> u64 {
        self.used
    }

    /// The next interrupt signals this.
    pub fn on_interrupt(&mut self, signal: Cap<Notification>) {
        if let Some(before) = self.interrupt.replace(signal) {
            delete_in_parts(before.address());
        }
    }

    /// Signals what is to be signalled, which is forgotten then. Answers whether that was possible.
    pub fn interrupt(&mut self) -> bool {
        let Some(signal) = self.interrupt.take() else { return false };
        let is_told = signal.signal().is_ok();
        delete_in_parts(signal.address());
        is_told
    }

    /// Where it serves others.
    pub fn service(&self) -> Option<Cap<Endpoint>> {
        self.service.as_ref().map(Service::endpoint)
    }
}

/// A process of which nothing but its memory is to be kept together any more.
struct Built {
    process: Process,
    layout: Layout,
    connected: Vec<(CapAddress, &'static str)>,
    /// Bytes of its program.
    size: u64,
    /// Of the counter, as it was told.
    frequency: u64,
}

/// What loading needs besides the preparation.
pub struct Loader<'a> {
    /// The memory server, with authority.
    pub mem: Mem,
    /// Where frames are filled.
    pub window: Window,
    /// What processes are shown instead of copied.
    pub shown: &'a Shown,
    /// Where their nodes hang while they are loaded.
    pub shelf: u32,
    /// Where the addresses come from.
    pub random: &'a mut Randomness,
    /// The other servers that every process reaches, without badges: slot, name, endpoint.
    pub servers: &'a [(CapAddress, &'static str, Option<Cap<Endpoint>>)],
    /// What a server kept when it ended.
    pub kept: Option<&'a Keepsake>,
}

/// A program that was handed over. Its size is bounded, because this server does nothing else while it loads a program.
fn handed_over(file: &[u8]) -> Result<Program<'_>, Defect> {
    let program = Program::parse(file)?;
    if program.size() > MAX_LOADED { Err(Defect::TooLarge) } else { Ok(program) }
}

/// Stack size that is possible: whole pages, or 0 for the usual one.
pub fn stack_size(bytes: u64) -> Result<u64, Error> {
    match bytes {
        0..=MAX_STACK => Ok(bytes.next_multiple_of(PAGE_SIZE as u64)),
        _ => Err(Error::StackTooLarge),
    }
}

/// Whether a parent may give a capability in this slot.
fn may_be_given(to: CapAddress) -> bool {
    let extra = slot::EXTRA.0..slot::EXTRA.0 + slot::EXTRA_COUNT;
    let named = [slot::NAMES, slot::CONSOLE, slot::FILES, slot::KERNEL, slot::INTERRUPT_CONTROL, slot::SERVICE];
    let streams = [slot::STDIN, slot::STDOUT, slot::STDERR];
    extra.contains(&to.0) || named.contains(&to) || streams.contains(&to)
}

impl Preparation {
    /// A process of a program of the boot archive for which somebody asked as `name`.
    pub fn new(program: &'static File<'static>, name: &str) -> Preparation {
        Preparation { program: Some(program), name: String::from(name), ..Preparation::default() }
    }

    /// A process of a program that its parent calls `name` and hands over, in at most `room` bytes, on the process's
    /// account.
    pub fn of_content(name: &str, mut account: Account, room: usize) -> Result<Preparation, LoadError> {
        match Content::new(room, |size_bits, slot| account.block(size_bits, slot)) {
            Ok(content) => {
                let content = Some(Box::new(Handed { content, account }));
                Ok(Preparation { content, name: String::from(name), ..Preparation::default() })
            }
            Err(error) => {
                while !account.take_back() {}
                Err(error)
            }
        }
    }

    /// Appends to the program's file. Fails with `WrongState` if that lies in the boot archive, with `TooLarge` if it
    /// would be larger than was said.
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

    /// Bytes of its texts when so many have been appended. Fails with `TextTooLong` if a process is told no more.
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

    /// How many capabilities it has been given when one more lies in this slot. Fails with `BadSlot` if none may, or
    /// one does.
    pub fn given_with(&self, to: CapAddress) -> Result<usize, Error> {
        if may_be_given(to) && !self.has(to) { Ok(self.given.len() + 1) } else { Err(Error::BadSlot) }
    }

    /// Takes over a capability that has come along, for a slot in which one [may lie](Self::given_with).
    pub fn give<How>(&mut self, to: CapAddress, cap: Arrived<'_, Any, How>) {
        self.given.push((to, cap.keep().address()));
    }

    fn has(&self, to: CapAddress) -> bool {
        self.given.iter().any(|(given, _)| *given == to)
    }

    /// Takes the capability out with which the process will serve others.
    pub fn take_service(&mut self) -> Option<CapAddress> {
        let place = self.given.iter().position(|(to, _)| *to == slot::SERVICE)?;
        Some(self.given.swap_remove(place).1)
    }

    /// Sets where the process will serve others.
    pub fn serve_at(&mut self, endpoint: Cap<Endpoint>) {
        self.given.push((slot::SERVICE, endpoint.address()));
    }

    /// Path of its program.
    pub fn path(&self) -> &str {
        self.program.map_or("", |program| &program.path)
    }

    /// It is a server that is started again, from the boot archive: a file that was handed over lives no longer than
    /// its process.
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

    /// How it is started again, if it is.
    pub const fn supervision(&self) -> Option<&Supervision> {
        self.supervision.as_ref()
    }

    /// Gives up what was prepared.
    pub fn abandon(self) {
        self.given.into_iter().for_each(|(_, from)| delete_in_parts(from));
        self.content.into_iter().for_each(|handed| handed.take_back());
    }

    /// Loads the program into a process with this badge. It does not run yet.
    pub fn load(&mut self, loader: &mut Loader<'_>, pid: u64, badge: u64) -> Result<(Living, u64, u64), LoadError> {
        let mut memory = ProcessMemory::new(Account { client: Client::of_badge(badge), mem: loader.mem }, loader.shelf);
        match self.build(loader, &mut memory, pid, badge) {
            Ok(Built { process, layout, connected, size, frequency }) => {
                let _content = self.content.take().map(|handed| handed.content);
                Ok((
                    Living { process, layout, memory, _content, service: None, connected, interrupt: None, used: 0 },
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

    /// Checks the program, and builds a process of it in this memory.
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
            (None, None) => return Err(LoadError::Kernel(Refusal::InvalidArgument)),
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

    /// Gives a process its capabilities to servers, with a badge, and copies of what its parent gave. Answers which
    /// servers.
    fn connect(
        &self,
        loader: &Loader<'_>,
        badge: u64,
        process: &Process,
    ) -> Result<Vec<(CapAddress, &'static str)>, Refusal> {
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
        // A server does not call itself.
        let connected = loader.servers.iter().filter(|(to, name, _)| *name != own_name && !self.has(*to));
        for (to, _, endpoint) in connected.clone() {
            match endpoint.map_or(Ok(()), |endpoint| process.give_client(*to, endpoint, badge)) {
                // The server has ended: the process does without it, or asks for it again.
                Ok(()) | Err(Refusal::InvalidCapability) => {}
                Err(error) => return Err(error),
            }
        }
        if !self.has(slot::KERNEL) {
            give_kernel(process, badge)?;
        }
        Ok(connected.map(|(to, name, _)| (*to, *name)).collect())
    }
}

impl Living {
    /// From now on, whoever waits for it at `service` is refused when it ends.
    pub fn serves_at(&mut self, service: Option<Service>) {
        self.service = service;
    }

    /// Lets it run.
    pub fn start(&mut self, pid: u64, priority: u8, ceiling: u8, frequency: u64) -> Result<(), Refusal> {
        let slot = own_memory::take_slot().map_err(|_| Refusal::NoSuchSlot)?;
        let faults = SERVICE.mint_to(slot, Rights::WRITE | Rights::CALL, pid);
        let schedule = Schedule { priority, ceiling, slice: frequency / SLICES_PER_SECOND };
        let account = self.process.address_space().open_account(Cap::new(slot::KERNEL));
        let ready = account.and(faults).and_then(|faults| self.process.make_ready(schedule, faults));
        delete_in_parts(slot);
        ready.and_then(|()| self.memory.put_away()).and_then(|()| self.process.start())
    }
}

/// Gives a process a capability to the kernel that permits what its badge says, if that is anything.
fn give_kernel(process: &Process, badge: u64) -> Result<(), Refusal> {
    let powers = Powers::of_badge(badge).intersection(Powers::OF_KERNEL);
    if powers.is_empty() {
        return Ok(());
    }
    let badge = Client::of_badge(badge).badge(powers);
    process.root.mint_from(slot::KERNEL, OWN_SPACE, slot::KERNEL, Rights::all(), badge)
}
