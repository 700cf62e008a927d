//! Starts the programs of the system description: `mem` and `procs` with the loader, the others through `procs`.

use core::fmt::Write as _;
use core::sync::atomic::{AtomicU64, Ordering};

use arrayvec::{ArrayString, ArrayVec};
use tench_abi::boot::{BootInfo, MAX_UNTYPED, MemoryKind};
use tench_abi::layout::slot;
use tench_abi::{CapAddress, Kind, Powers, Rights};
use tench_loader::addresses::{self, Addresses, Randomness, StackSize};
use tench_loader::information::Description;
use tench_loader::{Machine, Process, Program, ROOT_BITS, Resources, Schedule, Window};
use tench_procs_interface::Procs;
use tench_procs_interface::pid;
use tench_procs_interface::protocol::Strings;
use tench_sys::{Cap, Endpoint, Kernel, Machine as MachineInfo, OWN_CSPACE, Placement};
use tench_system::{Capability, NO_QUOTA, Program as Entry};

use crate::boot::Boot;
use crate::devices::Devices;
use crate::failure::Failure;
use crate::pool::{Pool, untyped_capability};
use crate::watch;

/// Maximum number of servers in a description.
const MAX_SERVERS: usize = 64;
/// Maximum size of the process server's arguments, in bytes.
const MAX_ARGUMENTS: usize = 1024;
/// Time slices in a second.
const SLICES_PER_SECOND: u64 = 100;
/// Slots for what is made after all memory has been given away: frames and interrupts of devices.
const LATE_SLOTS: u32 = 160;

/// Returns the name of a process that init has loaded itself.
pub const fn name_of(process: u64) -> &'static str {
    match process {
        pid::MEM => "mem",
        pid::PROCS => "procs",
        _ => "init",
    }
}

/// Distance of `mem` and `procs` from their link addresses.
static MOVED: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Returns that distance for a process that init has loaded itself.
fn moved(process: u64) -> &'static AtomicU64 {
    &MOVED[usize::from(process == pid::PROCS)]
}

/// Returns the link address of an address in such a process.
pub fn linked(process: u64, address: u64) -> u64 {
    address.wrapping_sub(moved(process).load(Ordering::Relaxed))
}

/// Endpoint at which a server receives.
struct Service {
    server: &'static str,
    /// The capability to hand out.
    copy: Cap<Endpoint>,
    /// The original capability. The process server gets it with the server, so that it can be revoked when the server
    /// ends.
    original: Cap<Endpoint>,
}

/// State of the start.
struct Starter<'a> {
    info: &'a BootInfo,
    pool: Pool,
    boot: Boot,
    devices: Devices<'a>,
    /// For the address layout of the processes that init loads, and the process server's own random numbers.
    random: Randomness,
    /// Endpoints of the servers.
    endpoints: ArrayVec<Service, MAX_SERVERS>,
    /// Endpoint at which mem and procs report faults; without a badge.
    faults: Cap<Endpoint>,
    /// The number of this core, and how many there are.
    machine: MachineInfo,
    /// Frame shared with the core that has started this one, once it is made.
    channel: Option<CapAddress>,
}

/// Starts everything.
pub fn start(info: &BootInfo) -> Result<(), Failure> {
    let mut pool = Pool::new(info);
    let boot = Boot::open(info, &mut pool)?;
    let faults = make_endpoint(&mut pool, "init")?;
    watch::start(&mut pool, faults)?;
    let devices = Devices::new(info);
    let machine = Cap::<Kernel>::new(slot::KERNEL).machine();
    let machine = machine.map_err(|error| Failure::Kernel("asking which core this is", error))?;
    let random = Randomness::of_core(devices.seed(), machine.core);
    let endpoints = ArrayVec::new();
    let mut starter = Starter { info, pool, boot, devices, random, endpoints, faults, machine, channel: None };
    starter.make_endpoints()?;
    starter.load_first()?;
    starter.start_others()
}

/// Makes an endpoint.
fn make_endpoint(pool: &mut Pool, name: &'static str) -> Result<Cap<Endpoint>, Failure> {
    let slot = pool.slot().map_err(|error| Failure::Load(name, error))?;
    pool.make(Kind::Endpoint, 0, slot).map_err(|error| Failure::Load(name, error))?;
    Ok(Cap::new(slot))
}

impl Starter<'_> {
    /// Makes an endpoint for each server of the description.
    fn make_endpoints(&mut self) -> Result<(), Failure> {
        for program in self.boot.system.programs().filter(|program| program.server) {
            let server = program.name;
            let original = make_endpoint(&mut self.pool, server)?;
            let slot = self.pool.slot().map_err(|error| Failure::Load(server, error))?;
            let copy = original.copy_to(slot).map_err(|error| Failure::Kernel(server, error))?;
            self.endpoints.try_push(Service { server, copy, original }).map_err(|_| Failure::TooMuch("init"))?;
        }
        Ok(())
    }

    /// Returns the endpoint of a server.
    fn endpoint(&self, name: &str) -> Option<Cap<Endpoint>> {
        self.endpoints.iter().find(|service| service.server == name).map(|service| service.copy)
    }

    /// Returns the machine-wide number of a process of this core.
    const fn number(&self, process: u64) -> u64 {
        pid::pid_base(self.machine.core) | process
    }

    fn program(&self, name: &'static str) -> Result<Entry<'static>, Failure> {
        self.boot.system.find(name).ok_or(Failure::Missing(name))
    }

    /// Loads mem and procs, gives the rest of the memory to mem, and starts both.
    fn load_first(&mut self) -> Result<(), Failure> {
        let start = addresses::window(&mut self.random.sequence());
        let window = Window::new(&mut self.pool, start).map_err(|error| Failure::Load("init", error))?;
        let (mem, procs) = (self.program("mem")?, self.program("procs")?);
        let mem_process = self.load(&mem, pid::MEM, window)?;
        let procs_process = self.load(&procs, pid::PROCS, window)?;
        let failed = |error| Failure::Kernel("connecting init with the process server", error);
        let endpoint = self.endpoint("procs").ok_or(Failure::NoServer("init"))?;
        endpoint
            .mint_to(
                slot::PROCS,
                Rights::WRITE | Rights::CALL | Rights::GRANT,
                Powers::all().badge(self.number(pid::INIT)),
            )
            .map_err(failed)?;

        let faults =
            [(&mem, pid::MEM), (&procs, pid::PROCS)].map(|(program, process)| self.badged_faults(program, process));
        let [mem_faults, procs_faults] = faults;
        let (mem_faults, procs_faults) = (mem_faults?, procs_faults?);
        self.pool.reserve_slots(LATE_SLOTS).map_err(|error| Failure::Load("init", error))?;
        self.pool.give_away(mem_process.root)?;
        self.run(&mem, &mem_process, mem_faults)?;
        self.run(&procs, &procs_process, procs_faults)
    }

    /// Loads a program into a new process with its capabilities.
    fn load(&mut self, program: &Entry<'static>, process: u64, window: Window) -> Result<Process, Failure> {
        let name = program.name;
        let file = self.boot.archive.find(program.path).ok_or(Failure::Missing(name))?;
        let loading = |error| Failure::Load(name, error);
        let mut image = Program::parse(file.contents).map_err(|defect| loading(defect.into()))?;
        let mut given: ArrayVec<(CapAddress, CapAddress), { slot::EXTRA_COUNT as usize + 3 }> = ArrayVec::new();
        let extra_count =
            self.capabilities(program, &mut |to, cap| given.try_push((to, cap)).map_err(|_| Failure::TooMuch(name)))?;
        // A server of all others does without memory on demand.
        let stack = StackSize::whole(program.stack_size);
        let addresses = Addresses::choose(&image, stack, &mut self.random.sequence());
        image.move_by(addresses.bias);
        moved(process).store(addresses.bias, Ordering::Relaxed);
        let arguments = self.process_server_arguments(program)?;
        let description = Description {
            pid: self.number(process),
            name: program.path,
            arguments: if process == pid::PROCS { arguments.as_bytes() } else { program.arguments.bytes() },
            environment: program.environment.bytes(),
            extra_count,
            counter_frequency: self.info.counter_frequency,
            addresses,
        };
        let mut machine = Machine::new(&mut self.pool, window, &self.boot.shown);
        let loaded = Process::new(&mut machine, &image, &description, ROOT_BITS).map_err(loading)?;
        let failed = |error| Failure::Kernel(name, error);
        for (to, cap) in given {
            loaded.give(to, cap).map_err(failed)?;
        }
        for (to, server) in STANDARD_SERVERS {
            if let Some(endpoint) = self.endpoint(server).filter(|_| server != name) {
                let badge = program.powers().badge(self.number(process));
                loaded.give_client(to, endpoint, badge).map_err(failed)?;
            }
        }
        Ok(loaded)
    }

    /// Returns the process server's arguments: the processes that exist before it, and the owners of the endpoints that
    /// it is given. Only init reads the system description.
    fn process_server_arguments(&self, procs: &Entry<'static>) -> Result<ArrayString<MAX_ARGUMENTS>, Failure> {
        let mut arguments = ArrayString::new();
        let mut append =
            |text: core::fmt::Arguments<'_>| arguments.write_fmt(text).map_err(|_| Failure::TooMuch(procs.name));
        append(format_args!("process init {0} {0}\0", u8::MAX))?;
        for name in ["mem", "procs"] {
            let Entry { path, priority, ceiling, .. } = self.program(name)?;
            append(format_args!("process {path} {priority} {ceiling}\0"))?;
        }
        for capability in procs.capabilities.iter() {
            if let Capability::Service(server) = capability {
                append(format_args!("service {server}\0"))?;
            }
        }
        Ok(arguments)
    }

    /// Returns the endpoint to which a process reports its faults.
    fn badged_faults(&mut self, program: &Entry<'static>, process: u64) -> Result<Cap<Endpoint>, Failure> {
        let slot = self.pool.slot().map_err(|error| Failure::Load(program.name, error))?;
        let rights = Rights::WRITE | Rights::CALL;
        self.faults.mint_to(slot, rights, process).map_err(|error| Failure::Kernel(program.name, error))
    }

    /// Starts a loaded process.
    fn run(&self, program: &Entry<'static>, process: &Process, faults: Cap<Endpoint>) -> Result<(), Failure> {
        let slice = self.info.counter_frequency / SLICES_PER_SECOND;
        let schedule = Schedule { priority: program.priority, ceiling: program.ceiling, slice };
        let account = process.address_space().open_account(Cap::new(slot::KERNEL));
        let ready = account.and_then(|()| process.make_ready(schedule, faults));
        let started = ready.and_then(|()| process.start());
        started.map_err(|error| Failure::Kernel(program.name, error))
    }

    /// Makes the process server start the other programs.
    fn start_others(&mut self) -> Result<(), Failure> {
        let (core, count) = (self.machine.core, self.machine.cores);
        for program in self.boot.system.programs().filter(|program| program.start && program.cores.contain(core, count))
        {
            if !matches!(program.name, "init" | "mem" | "procs") {
                self.start_one(&program)?;
            }
        }
        Ok(())
    }

    fn start_one(&mut self, program: &Entry<'static>) -> Result<(), Failure> {
        let name = program.name;
        let failed = |failure| Failure::Start(name, failure, None);
        let spawn = Procs::STANDARD.prepare(program.path).map_err(failed)?;
        spawn.strings(Strings::Arguments, program.arguments.bytes()).map_err(failed)?;
        spawn.strings(Strings::Environment, program.environment.bytes()).map_err(failed)?;
        spawn.configure(program.priority, program.ceiling, program.stack_size, program.powers()).map_err(failed)?;
        if program.quota != NO_QUOTA {
            spawn.limit(program.quota).map_err(failed)?;
        }
        self.capabilities(program, &mut |to, cap| {
            let given = if to == slot::SERVICE { spawn.move_in(cap, to) } else { spawn.give_in(cap, to) };
            given.map_err(failed)
        })?;
        self.supervise(program, spawn.process()).map_err(failed)?;
        spawn.start_or_defect().map_err(|(failure, defect)| Failure::Start(name, failure, defect))?;
        Ok(())
    }

    /// Tells the process server how a process in preparation is to be restarted when it ends, and whether it is the
    /// core's link to others. Only init may do so.
    fn supervise(&self, program: &Entry<'static>, process: u64) -> Result<(), tench_procs_interface::Failure> {
        let Some(procs) = self.endpoint("procs").map(Procs::at) else { return Ok(()) };
        if program.server && program.restart > 0 {
            let Entry { name, restart, restart_delay, keep, keep_nodes, .. } = *program;
            procs.supervise(process, name, restart, restart_delay, keep, keep_nodes)?;
        }
        // On a further core, this program replies in place of the first core's servers.
        if program.capabilities.contains(Capability::AbsentServices) {
            procs.set_link(process)?;
        }
        Ok(())
    }

    /// Returns the frame shared with the core that has started this one. It is made at the first call.
    fn channel(&mut self) -> Result<Option<CapAddress>, Failure> {
        let count = (self.info.untyped_count as usize).min(MAX_UNTYPED);
        let mut blocks = self.info.untyped.iter().take(count).enumerate();
        let found = blocks.find(|(_, block)| block.kind == MemoryKind::Channel as u32);
        let Some((number, block)) = found.filter(|_| self.channel.is_none()) else { return Ok(self.channel) };
        let frame = self.pool.slot().map_err(|error| Failure::Load("making the frame of the channel", error))?;
        untyped_capability(number)
            .retype_many(Kind::Frame, u64::from(block.size_bits), 1, Placement::At(0), OWN_CSPACE, frame)
            .map_err(|error| Failure::Kernel("making the frame of the channel", error))?;
        self.channel = Some(frame);
        Ok(self.channel)
    }

    /// Returns a capability to the kernel with the rights that these powers stand for.
    fn kernel_for(&mut self, powers: Powers, name: &'static str) -> Result<CapAddress, Failure> {
        let slot = self.pool.slot().map_err(|error| Failure::Load(name, error))?;
        let minted = Cap::<Kernel>::new(slot::KERNEL).mint_to(slot, Rights::READ, powers.badge(0));
        minted.map(Cap::address).map_err(|error| Failure::Kernel(name, error))
    }

    /// Calls `give` with each capability of a program: the slot for it, and init's slot. Returns how many are in the
    /// slots from `EXTRA` on.
    fn capabilities(
        &mut self,
        program: &Entry<'static>,
        give: &mut dyn FnMut(CapAddress, CapAddress) -> Result<(), Failure>,
    ) -> Result<u64, Failure> {
        let name = program.name;
        if program.server {
            let service = self.endpoints.iter().find(|service| service.server == name);
            give(slot::SERVICE, service.ok_or(Failure::NoServer(name))?.original.address())?;
        }
        let mut extra = 0;
        let mut give_extra = |cap: CapAddress, give: &mut dyn FnMut(CapAddress, CapAddress) -> Result<(), Failure>| {
            if extra >= slot::EXTRA_COUNT {
                return Err(Failure::TooMuch(name));
            }
            extra += 1;
            give(CapAddress(slot::EXTRA.0 + extra - 1), cap)
        };
        for capability in program.capabilities.iter() {
            match capability {
                Capability::Kernel => give(slot::KERNEL, slot::KERNEL)?,
                Capability::InterruptControl => give(slot::INTERRUPT_CONTROL, slot::INTERRUPT_CONTROL)?,
                Capability::Device(device) => give_extra(self.devices.frame(&mut self.pool, device, name)?, give)?,
                Capability::OptionalDevice(device) => match self.devices.frame(&mut self.pool, device, name) {
                    Err(Failure::NoDevice(_)) => {}
                    frame => give_extra(frame?, give)?,
                },
                Capability::Interrupt(device) => {
                    give_extra(self.devices.interrupt(&mut self.pool, device, name)?, give)?;
                }
                Capability::Channel => {
                    if let Some(frame) = self.channel()? {
                        give_extra(frame, give)?;
                    }
                }
                Capability::AbsentServices if self.machine.core == 0 => {}
                Capability::AbsentServices => {
                    for absent in self.boot.system.programs().filter(Entry::is_absent_elsewhere) {
                        let service = self.endpoints.iter().find(|service| service.server == absent.name);
                        give_extra(service.ok_or(Failure::NoServer(name))?.original.address(), give)?;
                    }
                }
                Capability::Archive => {
                    for frame in self.boot.shown.frames() {
                        give_extra(frame.address(), give)?;
                    }
                }
                // All memory goes to the memory server, in a node of its own (`Pool::give_away`).
                Capability::Untyped if name == "mem" => give(slot::KERNEL, self.kernel_for(Powers::MEMORY, name)?)?,
                Capability::Untyped => return Err(Failure::Text("only the memory server can be given all memory")),
                Capability::Service(server) => {
                    let endpoint = self.endpoint(server).ok_or(Failure::NoServer(name))?;
                    give_extra(endpoint.address(), give)?;
                }
            }
        }
        Ok(u64::from(extra))
    }
}

/// Servers to which every process gets capabilities, and the slots for these.
const STANDARD_SERVERS: [(CapAddress, &str); 4] =
    [(slot::PROCS, "procs"), (slot::MEM, "mem"), (slot::NAMES, "names"), (slot::CONSOLE, "console")];
