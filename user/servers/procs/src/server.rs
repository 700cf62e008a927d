//! The server's state, and its request and fault loop.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use tench::memory;
use tench::server::Watch;
use tench_abi::fault::Report;
use tench_abi::fault::reply::STOP;
use tench_abi::layout::slot;
use tench_abi::power::identity;
use tench_abi::{CapAddress, Powers};
use tench_loader::addresses::{self, Randomness};
use tench_loader::fault::{Fault, OwnReport};
use tench_loader::information::TEXT_SIZE;
use tench_loader::{LoadError, Window, objects};
use tench_mem_interface::Mem;
use tench_mem_interface::protocol::NO_QUOTA;
use tench_procs::records::{self, Condition, Record, Records};
use tench_procs::supervisor::State::Up;
use tench_procs::supervisor::Supervisor;
use tench_procs_interface::Procs;
use tench_procs_interface::pid;
use tench_procs_interface::protocol::{
    CAPABILITIES_PER_REPLY, Capability, Defect, Error, MAX_APPEND, MAX_FILE, MAX_NAME, MAX_SERVICE, OwnFault,
    ProcsService, State, Status, Strings,
};
use tench_protocol::{Any, Arrived, Bytes, Caller, Event, Flow, Given, Later, List, Sent, Text};
use tench_quota::pace::Pace;
use tench_sys::{Cap, Endpoint, Error as KernelError, Instant, Kernel, Message, Notification, Received};

use crate::boot::{self, Boot};
use crate::ending::{Reaper, Waiter};
use crate::memory::Account;
use crate::report;
use crate::services::{Connecting, Outcome, Plan, open_account};
use crate::spawn::{ProcessBuilder, RunningProcess, Service, Supervision, stack_size};
use crate::waiting::Waited;

/// Bytes of heap that a request may need that adds something: for a record, twice the texts that a process is started
/// with, and the description of its address space.
const GROWTH: usize = records::GROWTH + 3 * TEXT_SIZE;
/// Bytes of heap that any other request may need until it gets its reply. They are always kept in reserve, so that a
/// process can end when there is no memory left.
const BRIEFLY: usize = records::BRIEFLY + (8 << 10);

/// Nanoseconds of a [pause](Pace) between expired waits that are ended; this bounds their cost to two percent of the
/// processor.
const PAUSE: u64 = 1_000_000;

/// Data kept for a process that has not ended.
pub enum Kept {
    /// The process has not started.
    Preparing(ProcessBuilder),
    /// The process runs or is suspended.
    Running(Box<RunningProcess>),
    /// The process has been stopped and is being destroyed.
    Ending(Box<RunningProcess>, Condition),
    /// The start has failed; waiters on the endpoint at which the process would have served are being removed.
    NotStarted(Option<Service>),
}

/// A process's record.
pub type ProcessRecord = Record<Kept>;

/// The server's state.
pub struct Server {
    pub(crate) boot: Boot,
    pub(crate) records: Records<Kept, Waiter>,
    /// Ended waits, whose replies are to be sent.
    pub(crate) due_replies: Vec<(Waiter, Waited)>,
    /// Tells which reply objects still hold a waiting thread.
    pub(crate) watch: Watch,
    /// Limits how many expired waits are ended at a time.
    pub(crate) pace: Pace,
    pub(crate) window: Window,
    /// The loader's CSpace range: the address at which a process's capability nodes are installed while it is loaded.
    pub(crate) cspace_range: u32,
    pub(crate) random: Randomness,
    pub(crate) mem: Mem,
    pub(crate) core: u64,
    /// Requests the remaining parts of ending processes.
    pub(crate) reaper: Reaper,
    /// The monitor's process on a further core, without which the core stops.
    pub(crate) link: Option<u64>,
    /// Servers that are restarted when they end.
    pub(crate) supervisor: Supervisor<Plan, Connecting>,
    /// Ended waits for servers, with their outcomes.
    pub(crate) connections: Vec<(Outcome, Connecting)>,
    /// Slot in which a capability is made before it is sent.
    pub(crate) outgoing: CapAddress,
}

impl Server {
    /// Returns a server that knows of the processes that `init` has started without it.
    pub fn new(boot: Boot, mut random: Randomness) -> Result<Server, LoadError> {
        memory::serve_without_faults(GROWTH + BRIEFLY).map_err(|_| LoadError::OutOfMemory)?;
        let mem = boot.service("mem").ok_or(LoadError::Kernel(KernelError::InvalidCapability))?;
        let core = Cap::<Kernel>::new(slot::KERNEL).machine()?.core;
        let mut records = Records::of_core(core);
        let here = |number| pid::pid_base(core) | number;
        for (number, process) in [pid::INIT, pid::MEM, pid::PROCS].map(here).into_iter().zip(boot::first_processes()) {
            let is_init = number == here(pid::INIT);
            let parent = Caller::alone(if is_init { 0 } else { here(pid::INIT) });
            let made = records.prepare(process.path, parent, Powers::empty(), None);
            if made == Ok(number)
                && let Ok(record) = records.get_mut(number)
            {
                (record.priority, record.ceiling) = (process.priority, process.ceiling);
                record.powers = if is_init { Powers::all() } else { Powers::empty() };
                let _ = records.set_state(number, State::Running);
            }
        }
        Ok(Server {
            boot,
            records,
            due_replies: Vec::new(),
            watch: Watch::new().map_err(|_| LoadError::OutOfMemory)?,
            pace: Pace::new(PAUSE, tench::time::frequency()),
            window: Window::new(&mut tench_boot::OwnSpace, addresses::window(&mut random.sequence()))?,
            cspace_range: objects::cspace_range()?,
            random,
            mem: Mem::at(mem),
            core,
            reaper: Reaper::start(core).ok_or(LoadError::OutOfMemory)?,
            link: None,
            supervisor: Supervisor::default(),
            connections: Vec::new(),
            outgoing: memory::take_slot().map_err(|_| LoadError::OutOfMemory)?,
        })
    }

    /// Serves requests and faults for ever.
    pub fn serve(&mut self) -> ! {
        let mut port = tench::server::port(1, 2);
        loop {
            if port.next(self.next_wait()) == Event::Request {
                port.carry_out(|request, context, reply| {
                    if request.is_fault() {
                        self.fault_message(request, reply);
                        Flow::Reply
                    } else if self.is_reaper(request.badge()) {
                        self.reap(reply);
                        Flow::Reply
                    } else {
                        Procs::dispatch(self, request, context, reply)
                    }
                });
            }
            self.restart_servers();
            self.expire();
            self.reply_to_waiters(&mut port.replies);
        }
    }

    /// Returns the process builder of a process that `caller` prepares.
    fn builder(&mut self, caller: u64, process: u64) -> Result<&mut ProcessBuilder, Error> {
        self.records.check_parent(caller)?;
        match &mut self.records.preparing(caller, process)?.kernel {
            Some(Kept::Preparing(builder)) => Ok(builder),
            _ => Err(Error::WrongState),
        }
    }

    /// Charges the quota for a capability that a process in preparation is to find in `slot`. Returns the process
    /// builder.
    fn charge_given(&mut self, caller: Caller, process: u64, slot: CapAddress) -> Result<&mut ProcessBuilder, Error> {
        reserve()?;
        let count = self.builder(caller.process, process)?.given_with(slot)?;
        self.records.hold_given(process, count)?;
        self.builder(caller.process, process)
    }

    /// Makes room for a program's file on the account of a process, which is in preparation from then on.
    fn ensure_capacity(&mut self, process: u64, name: &str, room: usize) -> Result<(), LoadError> {
        let mem = self.mem;
        let record = self.records.get_mut(process).map_err(|_| LoadError::Kernel(KernelError::InvalidArgument))?;
        open_account(mem, process, record.parent, record.quota)?;
        let builder = ProcessBuilder::of_content(name, Account { client: record.client(), mem }, room)?;
        record.kernel = Some(Kept::Preparing(builder));
        Ok(())
    }

    /// Removes the record of a process that did not start.
    pub(crate) fn discard_record(&mut self, process: u64) {
        let Ok(client) = self.records.get(process).map(Record::client) else { return };
        let Some(ended) = self.records.discard(process) else { return };
        match ended.kernel {
            Some(Kept::Preparing(builder)) => builder.abandon(),
            Some(Kept::NotStarted(Some(service))) => service.close(),
            _ => {}
        }
        // The process may have been given streams.
        self.notify_servers(client);
        self.due_replies.extend(ended.waiters.into_iter().map(|waiter| (waiter, Waited::For(process))));
        self.due_replies.extend(ended.abandoned.into_iter().map(|waiter| (waiter, Waited::ForNobody)));
    }

    /// Ends the process of a thread that has faulted; the reply stops the thread.
    fn fault_message(&mut self, message: &Received, reply: &mut Message) {
        let report = Report {
            class: message.word(0),
            address: message.word(1),
            instruction: message.word(2),
            syndrome: message.word(3),
        };
        // If this server knows no such process, the thread is stopped all the same.
        let _ = self.faulted(identity(message.badge()), report, None);
        reply.restart(STOP);
    }

    /// Reports a fault, and ends the process.
    fn faulted(&mut self, process: u64, report: Report, own: Option<OwnReport>) -> Result<(), Error> {
        let Ok(Record { kernel: Some(Kept::Running(running)), name, .. }) = self.records.get(process) else {
            return Err(Error::NoSuchProcess);
        };
        // The console cannot report its own end.
        let console = self.service("console").filter(|_| self.supervisor.state("console") != Some(Up(process)));
        let kind = report::fault(console, name, process, &Fault { report, layout: &running.layout, own });
        self.end_process(process, Condition { state: State::Faulted, detail: kind as u64 }, process)
    }

    /// Kills a process, if `caller` may. Returns whether the caller is to get its reply now.
    fn kill_for(
        &mut self,
        client: Caller,
        powers: Powers,
        process: u64,
        keep: &mut dyn FnMut() -> Option<Waiter>,
    ) -> Result<bool, Error> {
        let caller = client.process;
        self.records.check_manage(caller, powers, process)?;
        let how = Condition::plain(State::Killed);
        match self.records.get(process)?.kernel {
            Some(Kept::Preparing(_)) => {
                self.discard_record(process);
                return Ok(true);
            }
            Some(Kept::Ending(..) | Kept::NotStarted(_)) => self.hasten(process, caller),
            // A process that kills itself gets its reply at once: its threads are suspended or gone, and another
            // process that it gave its capability to must not wait in the server's reply object.
            _ if process == caller => {
                self.managed(caller, powers, process)?;
                return self.end_process(process, how, caller).map(|()| true);
            }
            _ => {
                self.managed(caller, powers, process)?;
                self.end_process(process, how, caller)?;
            }
        }
        let has_ended = self.records.get(process).is_ok_and(ProcessRecord::has_ended);
        Ok(has_ended || !self.wait_for_kill(client, process, keep))
    }

    /// Returns a running process that `caller` may manage.
    fn managed(&self, caller: u64, powers: Powers, process: u64) -> Result<&RunningProcess, Error> {
        self.records.check_manage(caller, powers, process)?;
        let record = self.records.get(process)?;
        match &record.kernel {
            Some(Kept::Running(running)) => Ok(running),
            None if !record.has_ended() => Err(Error::Essential),
            _ => Err(Error::WrongState),
        }
    }
}

impl ProcsService for Server {
    fn create(&mut self, caller: Caller, powers: Powers, program: Text<'_, MAX_NAME>) -> Result<u64, Error> {
        reserve()?;
        // Process builders of an ended process would belong to nobody.
        self.records.check_parent(caller.process)?;
        let file = self.boot.catalogue.find_program(&program).ok_or(Error::NoSuchProgram)?;
        let builder = ProcessBuilder::new(file, &program);
        self.records.prepare(&file.path, caller, powers, Some(Kept::Preparing(builder)))
    }

    fn create_of(&mut self, caller: Caller, powers: Powers, name: Text<'_, MAX_NAME>, size: u64) -> Result<u64, Error> {
        reserve()?;
        self.records.check_parent(caller.process)?;
        records::check_name(&name)?;
        let room = usize::try_from(size).ok().filter(|room| *room <= MAX_FILE).ok_or(Error::TooLarge)?;
        let process = self.records.prepare(&name, caller, powers, None)?;
        match self.ensure_capacity(process, &name, room) {
            Ok(()) => Ok(process),
            Err(error) => {
                self.discard_record(process);
                Err(if error == LoadError::OutOfMemory { Error::OutOfMemory } else { Error::Internal })
            }
        }
    }

    fn write(&mut self, caller: Caller, process: u64, content: Bytes<'_, MAX_APPEND>) -> Result<(), Error> {
        let window = self.window;
        self.builder(caller.process, process)?.write(window, &content)
    }

    fn append(&mut self, caller: Caller, process: u64, to: Strings, text: Bytes<'_, MAX_APPEND>) -> Result<(), Error> {
        reserve()?;
        let length = self.builder(caller.process, process)?.text_after(text.len())?;
        self.records.hold_texts(process, length)?;
        self.builder(caller.process, process)?.append(to, &text)
    }

    fn lend(&mut self, caller: Caller, process: u64, slot: CapAddress, cap: Arrived<'_, Any>) -> Result<(), Error> {
        self.charge_given(caller, process, slot)?.give(slot, cap);
        Ok(())
    }

    fn give_away(
        &mut self,
        caller: Caller,
        process: u64,
        slot: CapAddress,
        cap: Arrived<'_, Any, Given>,
    ) -> Result<(), Error> {
        self.charge_given(caller, process, slot)?.give(slot, cap);
        Ok(())
    }

    fn set_up(
        &mut self,
        Caller { process: caller, .. }: Caller,
        powers: Powers,
        process: u64,
        priority: u8,
        ceiling: u8,
        stack: u64,
        given: u64,
    ) -> Result<(), Error> {
        let stack = stack_size(stack)?;
        if priority > ceiling || ceiling > self.records.ceiling(caller) {
            return Err(Error::PriorityTooHigh);
        }
        // Nobody holds an unknown power.
        let given = u16::try_from(given).ok().and_then(Powers::from_bits).ok_or(Error::NotAllowed)?;
        if !powers.contains(given) {
            return Err(Error::NotAllowed);
        }
        self.builder(caller, process)?.set_stack_size(stack);
        let record = self.records.get_mut(process)?;
        record.priority = priority;
        record.ceiling = ceiling;
        record.powers = given;
        Ok(())
    }

    fn supervise(
        &mut self,
        process: u64,
        name: Text<'_, MAX_SERVICE>,
        attempts: u32,
        delay: u32,
        keep: u64,
        nodes: u32,
    ) -> Result<(), Error> {
        reserve()?;
        if self.supervisor.state(&name).is_some() {
            return Err(Error::Exists);
        }
        let Some(Kept::Preparing(builder)) = &mut self.records.get_mut(process)?.kernel else {
            return Err(Error::WrongState);
        };
        builder.supervise(Supervision { name: String::from(&*name), attempts, delay, keep, nodes })
    }

    fn stop_without(&mut self, process: u64) -> Result<(), Error> {
        if self.records.get(process)?.has_ended() {
            return Err(Error::WrongState);
        }
        self.link = Some(process);
        Ok(())
    }

    fn start(&mut self, caller: Caller, process: u64) -> Result<Option<Defect>, Error> {
        reserve()?;
        self.builder(caller.process, process)?;
        self.start_prepared(process)
    }

    fn exit(&mut self, caller: Caller, code: u64) -> Result<(), Error> {
        self.end_process(caller.process, Condition { state: State::Exited, detail: code }, caller.process)
    }

    fn kill(
        &mut self,
        caller: Caller,
        powers: Powers,
        later: Later<'_, (), Error>,
        process: u64,
    ) -> Result<Option<()>, Error> {
        let mut later = Some(later);
        let mut keep = || later.take()?.keep().ok().map(Waiter::Kill);
        Ok(self.kill_for(caller, powers, process, &mut keep)?.then_some(()))
    }

    fn on_interrupt(&mut self, caller: Caller, signal: Arrived<'_, Notification>) -> Result<(), Error> {
        match &mut self.records.get_mut(caller.process)?.kernel {
            Some(Kept::Running(running)) => running.on_interrupt(signal.keep()),
            _ => return Err(Error::WrongState),
        }
        Ok(())
    }

    fn interrupt(
        &mut self,
        caller: Caller,
        powers: Powers,
        later: Later<'_, bool, Error>,
        process: u64,
    ) -> Result<Option<bool>, Error> {
        self.records.check_manage(caller.process, powers, process)?;
        if let Some(Kept::Running(running)) = &mut self.records.get_mut(process)?.kernel
            && running.interrupt()
        {
            return Ok(Some(false));
        }
        let mut later = Some(later);
        let mut keep = || later.take()?.keep().ok().map(Waiter::Interrupt);
        Ok(self.kill_for(caller, powers, process, &mut keep)?.then_some(true))
    }

    fn wait(&mut self, caller: Caller, later: Later<'_, Status, Error>, process: u64) -> Result<Option<Status>, Error> {
        self.wait_for(caller, later, process, None)
    }

    fn wait_limited(
        &mut self,
        caller: Caller,
        later: Later<'_, Status, Error>,
        process: u64,
        deadline: Instant,
    ) -> Result<Option<Status>, Error> {
        self.wait_for(caller, later, process, Some(deadline))
    }

    fn status(&mut self, process: u64) -> Result<Status, Error> {
        self.describe(process)
    }

    fn next(&mut self, after: u64) -> Result<Status, Error> {
        self.describe_next(after)
    }

    fn child(&mut self, parent: u64, after: u64) -> Result<u64, Error> {
        self.records.child(parent, after).ok_or(Error::NoSuchProcess)
    }

    fn find(&mut self, name: Text<'_, MAX_NAME>, after: u64) -> Result<u64, Error> {
        self.records.find(&name, after).ok_or(Error::NoSuchProcess)
    }

    fn suspend(&mut self, caller: Caller, powers: Powers, process: u64) -> Result<(), Error> {
        let space = self.managed(caller.process, powers, process)?.process.address_space();
        self.records.set_state(process, State::Suspended)?;
        space.suspend_account(true).map_err(|_| Error::Internal)
    }

    fn resume(&mut self, caller: Caller, powers: Powers, process: u64) -> Result<(), Error> {
        let space = self.managed(caller.process, powers, process)?.process.address_space();
        if self.records.get(process)?.status().state != State::Suspended {
            return Err(Error::WrongState);
        }
        self.records.set_state(process, State::Running)?;
        space.suspend_account(false).map_err(|_| Error::Internal)
    }

    fn capabilities(
        &mut self,
        caller: Caller,
        powers: Powers,
        process: u64,
        from: CapAddress,
    ) -> Result<(CapAddress, List<Capability, CAPABILITIES_PER_REPLY>), Error> {
        self.list_capabilities(caller.process, powers, process, from)
    }

    fn abandon(&mut self, caller: Caller, process: u64) -> Result<(), Error> {
        self.builder(caller.process, process)?;
        self.discard_record(process);
        Ok(())
    }

    fn limit(
        &mut self,
        Caller { process: caller, .. }: Caller,
        powers: Powers,
        process: u64,
        bytes: u64,
    ) -> Result<(), Error> {
        self.records.check_manage(caller, powers, process)?;
        if self.records.get(caller).is_ok_and(|record| bytes > record.quota) {
            return Err(Error::NotAllowed);
        }
        let record = self.records.get_mut(process)?;
        // The account of a process that is being destroyed may be closed already, and once reopened would never be
        // closed again.
        if record.has_ended() || record.is_ending {
            return Err(Error::WrongState);
        }
        record.quota = bytes;
        // A process that is not loaded yet gets this quota when it is loaded.
        if record.status().state != State::Preparing {
            self.mem.set_quota(process, bytes).map_err(|_| Error::OutOfMemory)?;
        }
        Ok(())
    }

    fn reconnect(
        &mut self,
        caller: Caller,
        later: Later<'_, Sent<Endpoint, Given>, Error>,
        slot: CapAddress,
    ) -> Result<Option<Sent<Endpoint, Given>>, Error> {
        reserve()?;
        self.connect_again(caller, later, slot)
    }

    fn server(&mut self, name: Text<'_, MAX_NAME>) -> Result<Sent<Endpoint, Given>, Error> {
        self.service(&name).ok_or(Error::NotRunning)?;
        self.mint(&name, 0)
    }

    fn powers(&mut self, process: u64) -> Result<u64, Error> {
        self.records.check_live(process)?;
        Ok(u64::from(self.records.get(process)?.powers.bits()))
    }

    fn forget(&mut self, process: u64) -> Result<(), Error> {
        if self.records.get(process).is_ok() {
            // The process is of this core, so this server knows when it ends.
            return Ok(());
        }
        if self.records.visitors.leave(process) {
            self.forget_foreign(process);
        }
        Ok(())
    }

    fn vouch(&mut self, process: u64) -> Result<(u64, u8, bool), Error> {
        self.records.check_live(process)?;
        let record = self.records.get(process)?;
        Ok((record.client().family, record.ceiling, record.quota != NO_QUOTA))
    }

    fn admit(&mut self, client: u64, ceiling: u8) -> Result<(), Error> {
        reserve()?;
        let client = Caller::of_badge(client);
        if pid::split_pid(client.process).0 == self.core {
            return Err(Error::NotAllowed);
        }
        self.records.visitors.admit(client, ceiling)
    }

    fn load(&mut self) -> Result<u64, Error> {
        Ok(self.records.load() as u64)
    }

    fn fault(&mut self, caller: Caller, fault: OwnFault) -> Result<(), Error> {
        let region = fault.region.map(|region| (region.kind, region.start, region.size));
        self.faulted(caller.process, fault.report(), Some(OwnReport { kind: fault.kind, region }))
    }
}

/// Makes sure that there is memory for a request that adds lasting data. All other requests are carried out in any
/// case.
pub fn reserve() -> Result<(), Error> {
    memory::reserve_heap(GROWTH + BRIEFLY).map_err(|_| Error::OutOfMemory)
}
