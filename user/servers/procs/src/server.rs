//! Requests and faults, one after another.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use tench::memory;
use tench_abi::CapAddress;
use tench_abi::fault::Report;
use tench_abi::fault::answer::STOP;
use tench_abi::layout::slot;
use tench_abi::message::MAX_CAPS;
use tench_console_client::Console;
use tench_loader::fault::{Fault, OwnReport};
use tench_loader::information::TEXT_SIZE;
use tench_loader::{LoadError, Window};
use tench_mem_client::Mem;
use tench_mem_client::protocol::NO_QUOTA;
use tench_names_client::Names;
use tench_procs::records::{self, Record, Records, Status};
use tench_procs_client::protocol::{Error, FLAG_MANAGER, FaultKind, Label, List, MAX_NAME, RegionKind, State, pid};
use tench_protocol::{DONE, Replies};
use tench_sys::{Cap, Endpoint, Error as Refusal, Message, Reader, Received, Reply, Wait, offer_slots};
use tench_system::DEFAULT_PRIORITY;

use crate::boot::{Boot, OwnSpace};
use crate::report;
use crate::spawn::{Living, Loader, Preparation, SERVICE, discard, stack_size};

/// Spare reply objects that are kept.
const MAX_SPARE: usize = 64;
/// Bytes of heap that a request may need that adds something: for a record, the texts that a process is started with,
/// twice, and what is known of its address space.
const GROWTH: usize = records::GROWTH + 3 * TEXT_SIZE;
/// Bytes of heap that any other request may need until it is answered: always kept in reserve, so that a process can end
/// when there is no memory left.
const BRIEFLY: usize = records::BRIEFLY + (8 << 10);

/// What is kept of a process that has not ended.
pub enum Kept {
    /// Before its start.
    Preparing(Preparation),
    /// After its start.
    Living(Box<Living>),
}

/// A process's record.
pub type ProcessRecord = Record<Kept, Cap<Reply>>;
/// The answer to a request, or `None` if it is answered later or never.
pub type Answer = Result<Option<Message>, Error>;

/// The server's state.
pub struct Server {
    pub(crate) boot: Boot,
    pub(crate) records: Records<Kept, Cap<Reply>>,
    replies: Replies<MAX_SPARE>,
    window: Window,
    mem: Mem,
    names: Option<Cap<Endpoint>>,
    console: Option<Cap<Endpoint>>,
    /// Empty slots for capabilities that come with the next request.
    incoming: Vec<CapAddress>,
}

impl Server {
    /// A server that knows of the processes that `init` has started itself.
    pub fn new(boot: Boot) -> Result<Server, LoadError> {
        memory::serve_without_faults(GROWTH + BRIEFLY).map_err(|_| LoadError::OutOfMemory)?;
        let mem = boot.service("mem").ok_or(LoadError::Kernel(Refusal::InvalidCapability))?;
        let mut records = Records::default();
        for (number, name, parent) in
            [(pid::INIT, "init", 0), (pid::MEM, "mem", pid::INIT), (pid::PROCS, "procs", pid::INIT)]
        {
            let entry = boot.system.find(name);
            let made = records.prepare(entry.map_or(name, |entry| entry.path), parent, None);
            if made == Ok(number)
                && let Ok(record) = records.get_mut(number)
            {
                record.status = Status::plain(State::Running);
                record.priority = entry.map_or(u8::MAX, |entry| entry.priority);
                record.ceiling = entry.map_or(u8::MAX, |entry| entry.ceiling);
                record.manager = number == pid::INIT;
            }
        }
        Ok(Server {
            boot,
            records,
            replies: Replies::new(Cap::new(slot::REPLY)),
            window: Window::new(&mut OwnSpace)?,
            mem: Mem::at(mem),
            names: boot.service("names"),
            console: boot.service("console"),
            incoming: Vec::new(),
        })
    }

    /// Answers requests for ever.
    pub fn serve(&mut self) {
        let mut answer = None;
        loop {
            self.offer();
            let wait = self.replies.wait(Wait::FOREVER);
            let received = match &answer {
                Some(answer) => SERVICE.reply_receive(answer, wait),
                None => SERVICE.receive(wait),
            };
            answer = received.ok().and_then(|message| self.answer(&message));
        }
    }

    /// Offers slots for capabilities. With fewer slots, fewer arrive.
    fn offer(&mut self) {
        while self.incoming.len() < MAX_CAPS
            && let Ok(slot) = memory::take_slot()
        {
            self.incoming.push(slot);
        }
        offer_slots(&self.incoming);
    }

    /// The answer to a message, if there is one now.
    fn answer(&mut self, message: &Received) -> Option<Message> {
        if message.is_fault() {
            return self.fault(message);
        }
        // Capabilities arrive in the first of the slots; whoever keeps one has the slot, too.
        let mut caps: Vec<CapAddress> = message.caps().to_vec();
        self.incoming.retain(|slot| !caps.contains(slot));
        let answer = self.carry_out(message, &mut caps);
        caps.into_iter().for_each(discard);
        answer.unwrap_or_else(|error| Some(Message::new(error as u64)))
    }

    fn carry_out(&mut self, message: &Received, caps: &mut Vec<CapAddress>) -> Answer {
        let caller = message.badge();
        let label = Label::from_code(message.label()).ok_or(Error::BadRequest)?;
        let reader = &mut message.reader();
        if adds(label) && memory::reserve_heap(GROWTH + BRIEFLY).is_err() {
            return Err(Error::OutOfMemory);
        }
        match label {
            Label::Prepare => self.prepare(caller, text(reader)?),
            Label::Append => self.append(caller, word(reader)?, reader),
            Label::Give => self.give(caller, word(reader)?, reader, caps),
            Label::Limit => self.limit(caller, word(reader)?, word(reader)?),
            Label::Configure => self.configure(caller, word(reader)?, reader),
            Label::Start => self.start(caller, word(reader)?),
            Label::Abandon => self.abandon(caller, word(reader)?),
            Label::Exit => self.exit(caller, word(reader)?),
            Label::Fault => self.own_fault(caller, reader),
            Label::Kill => self.kill(caller, word(reader)?),
            Label::Wait => self.wait(caller, word(reader)?),
            Label::Suspend => self.suspend(caller, word(reader)?),
            Label::Resume => self.resume(caller, word(reader)?),
            Label::Status => self.status(word(reader)?),
            Label::Next => self.next(word(reader)?),
            Label::Find => self.find(word(reader)?, text(reader)?),
            Label::Capabilities => self.capabilities(caller, word(reader)?, word(reader)?),
            Label::File => self.file(word(reader)?),
            Label::ReadFile => self.read_file(word(reader)?, text(reader)?),
        }
    }

    fn prepare(&mut self, caller: u64, name: &str) -> Answer {
        if name.len() > MAX_NAME {
            return Err(Error::TextTooLong);
        }
        let file = self.boot.archive.find_program(name).ok_or(Error::NoSuchProgram)?;
        let path = file.path.to_string();
        let entry = self.boot.system.find_path(&path);
        let preparation = Preparation::new(path.clone(), name, entry.as_ref());
        let process = self.records.prepare(&path, caller, Some(Kept::Preparing(preparation)))?;
        let record = self.records.get_mut(process)?;
        record.priority = entry.map_or(DEFAULT_PRIORITY, |entry| entry.priority);
        record.ceiling = entry.map_or(DEFAULT_PRIORITY, |entry| entry.ceiling);
        record.quota = record.quota.min(entry.map_or(NO_QUOTA, |entry| entry.quota));
        Ok(done(&[process]))
    }

    /// The preparation of a process that `caller` prepares.
    fn preparation(&mut self, caller: u64, process: u64) -> Result<&mut Preparation, Error> {
        match &mut self.records.preparing(caller, process)?.kernel {
            Some(Kept::Preparing(preparation)) => Ok(preparation),
            _ => Err(Error::WrongState),
        }
    }

    fn append(&mut self, caller: u64, process: u64, reader: &mut Reader<'_>) -> Answer {
        let preparation = self.preparation(caller, process)?;
        let list = List::from_code(word(reader)?).ok_or(Error::BadRequest)?;
        preparation.append(list, reader.text().ok_or(Error::BadRequest)?)?;
        Ok(done(&[]))
    }

    fn give(&mut self, caller: u64, process: u64, reader: &mut Reader<'_>, caps: &mut Vec<CapAddress>) -> Answer {
        let preparation = self.preparation(caller, process)?;
        let slots = reader.rest();
        if slots.is_empty() || slots.len() != caps.len() {
            return Err(Error::BadSlot);
        }
        for slot in slots {
            let to = u32::try_from(*slot).map_err(|_| Error::BadSlot)?;
            preparation.give(CapAddress(to), caps[0])?;
            caps.remove(0);
        }
        Ok(done(&[]))
    }

    fn configure(&mut self, caller: u64, process: u64, reader: &mut Reader<'_>) -> Answer {
        let mut next = || word(reader);
        let (priority, ceiling, stack, flags) = (next()?, next()?, next()?, next()?);
        let (limit, manager) = self.records.get(caller).map_or((0, false), |record| (record.ceiling, record.manager));
        let stack = stack_size(stack)?;
        if priority > ceiling || ceiling > u64::from(limit) {
            return Err(Error::PriorityTooHigh);
        }
        if flags & FLAG_MANAGER != 0 && !manager {
            return Err(Error::NotAllowed);
        }
        self.preparation(caller, process)?.set_stack_size(stack);
        let record = self.records.get_mut(process)?;
        record.priority = priority as u8;
        record.ceiling = ceiling as u8;
        record.manager = flags & FLAG_MANAGER != 0;
        Ok(done(&[]))
    }

    /// Sets how much memory a process may have: at most as much as the caller itself.
    fn limit(&mut self, caller: u64, process: u64, bytes: u64) -> Answer {
        self.records.check_manage(caller, process)?;
        if self.records.get(caller).is_ok_and(|record| bytes > record.quota) {
            return Err(Error::NotAllowed);
        }
        let record = self.records.get_mut(process)?;
        if record.status.state.has_ended() {
            return Err(Error::WrongState);
        }
        record.quota = bytes;
        // One that is not loaded yet has no account; it gets this quota with it.
        if record.status.state != State::Preparing {
            self.mem.set_quota(process, bytes).map_err(|_| Error::OutOfMemory)?;
        }
        Ok(done(&[]))
    }

    fn start(&mut self, caller: u64, process: u64) -> Answer {
        self.preparation(caller, process)?;
        let quota = self.records.get(process)?.quota;
        if quota != NO_QUOTA && self.mem.set_quota(process, quota).is_err() {
            return Err(Error::OutOfMemory);
        }
        let servers = self.servers();
        let loader = Loader { boot: &self.boot, mem: self.mem, window: self.window, servers: &servers };
        let Some(Kept::Preparing(mut preparation)) = self.records.get_mut(process)?.kernel.take() else {
            return Err(Error::WrongState);
        };
        let started = preparation.load(&loader, process).and_then(|(mut living, size, frequency)| {
            let record = self.records.get(process).map_err(|_| Refusal::InvalidArgument)?;
            living.serves_at(preparation.take_service());
            match living.start(process, record.priority, record.ceiling, frequency) {
                Ok(()) => Ok((living, size)),
                Err(error) => {
                    living.end();
                    Err(LoadError::Kernel(error))
                }
            }
        });
        preparation.abandon();
        match started {
            Ok((living, size)) => {
                let record = self.records.get_mut(process)?;
                record.kernel = Some(Kept::Living(Box::new(living)));
                record.status = Status::plain(State::Running);
                record.size = size;
                Ok(done(&[process]))
            }
            Err(error) => {
                self.discard_record(process);
                match error {
                    LoadError::Defect(defect) => {
                        Ok(Some(Message::with_words(Error::BadProgram as u64, &[defect as u64])))
                    }
                    LoadError::OutOfMemory => Err(Error::OutOfMemory),
                    LoadError::Kernel(error) => {
                        report::say(self.console, &format!("procs: starting process {process}: {error}\n"));
                        Err(Error::Internal)
                    }
                }
            }
        }
    }

    /// The servers that every process reaches.
    fn servers(&self) -> Vec<(CapAddress, &'static str, Cap<Endpoint>)> {
        let known = [("mem", slot::MEM), ("names", slot::NAMES), ("console", slot::CONSOLE)];
        known.into_iter().filter_map(|(name, to)| Some((to, name, self.boot.service(name)?))).collect()
    }

    fn abandon(&mut self, caller: u64, process: u64) -> Answer {
        self.preparation(caller, process)?;
        self.discard_record(process);
        Ok(done(&[]))
    }

    /// Removes the record of a process that did not start.
    fn discard_record(&mut self, process: u64) {
        let Some(ended) = self.records.discard(process) else { return };
        if let Some(Kept::Preparing(preparation)) = ended.kernel {
            preparation.abandon();
        }
        for reply in ended.waiters {
            let _ = reply.reply(&Message::new(Error::NoSuchProcess as u64));
            self.release(reply);
        }
    }

    fn exit(&mut self, caller: u64, code: u64) -> Answer {
        self.end(caller, Status { state: State::Exited, detail: code })?;
        Ok(None)
    }

    fn kill(&mut self, caller: u64, process: u64) -> Answer {
        self.records.check_manage(caller, process)?;
        match &self.records.get(process)?.kernel {
            Some(Kept::Living(_)) => {}
            Some(Kept::Preparing(_)) => return Err(Error::WrongState),
            None if self.records.get(process)?.status.state.has_ended() => return Err(Error::WrongState),
            None => return Err(Error::Essential),
        }
        self.end(process, Status::plain(State::Killed))?;
        // Who has killed itself is not there to be answered.
        Ok(if process == caller { None } else { done(&[]) })
    }

    /// A thread has faulted: its process ends. There is nothing to answer, unless this server knows of no such process.
    fn fault(&mut self, message: &Received) -> Option<Message> {
        let report = Report {
            class: message.word(0),
            address: message.word(1),
            instruction: message.word(2),
            syndrome: message.word(3),
        };
        match self.faulted(message.badge(), report, None) {
            Ok(()) => None,
            Err(_) => Some(Message::new(STOP)),
        }
    }

    /// A process found no remedy for its own fault, and ends.
    fn own_fault(&mut self, caller: u64, reader: &mut Reader) -> Answer {
        let mut words = [0; 8];
        for place in &mut words {
            *place = word(reader)?;
        }
        let [class, address, instruction, syndrome, kind, region, start, size] = words;
        let kind = FaultKind::from_code(kind).ok_or(Error::BadRequest)?;
        let region = RegionKind::from_code(region).map(|region| (region, start, size));
        let report = Report { class, address, instruction, syndrome };
        self.faulted(caller, report, Some(OwnReport { kind, region }))?;
        Ok(None)
    }

    /// Reports a fault, and ends the process.
    fn faulted(&mut self, process: u64, report: Report, own: Option<OwnReport>) -> Result<(), Error> {
        let Ok(Record { kernel: Some(Kept::Living(living)), name, .. }) = self.records.get(process) else {
            return Err(Error::NoSuchProcess);
        };
        // The console cannot report its own end.
        let console = self.console.filter(|_| !name.ends_with("console"));
        let kind = report::fault(console, name, process, &Fault { report, layout: &living.layout, own });
        self.end(process, Status { state: State::Faulted, detail: kind as u64 })
    }

    /// Ends a process, tells the other servers, and answers those who waited for it.
    fn end(&mut self, process: u64, status: Status) -> Result<(), Error> {
        if !matches!(self.records.get(process)?.kernel, Some(Kept::Living(_))) {
            return Err(Error::WrongState);
        }
        for prepared in self.records.prepared_by(process) {
            self.discard_record(prepared);
        }
        let ended = self.records.end(process, status)?;
        if let Some(Kept::Living(living)) = ended.kernel {
            living.end();
        }
        // If such a server is gone, it has nothing to forget.
        if let Some(names) = self.names {
            let _ = Names::at(names).process_ended(process);
        }
        if let Some(console) = self.console {
            let _ = Console::at(console).process_ended(process);
        }
        let answer = self.describe(process);
        for reply in ended.waiters {
            // Who gave up meanwhile is answered nothing.
            let _ = reply.reply(&answer);
            self.release(reply);
        }
        for reply in ended.abandoned {
            self.release(reply);
        }
        Ok(())
    }

    fn wait(&mut self, caller: u64, process: u64) -> Answer {
        if self.records.get(process)?.status.state.has_ended() {
            return Ok(Some(self.describe(process)));
        }
        let reply = self.replies.keep(make_reply).map_err(|_| Error::Full)?;
        match self.records.wait(process, caller, reply) {
            Ok(()) => Ok(None),
            Err((reply, result)) => {
                if let Some(surplus) = self.replies.make_current(reply) {
                    discard(surplus.address());
                }
                result.map(|_| Some(self.describe(process)))
            }
        }
    }

    /// The process that `caller` may manage, if it runs.
    fn managed(&mut self, caller: u64, process: u64) -> Result<(&mut ProcessRecord, Cap<tench_sys::Thread>), Error> {
        self.records.check_manage(caller, process)?;
        let record = self.records.get_mut(process)?;
        match &record.kernel {
            Some(Kept::Living(living)) => {
                let thread = living.process.thread;
                Ok((record, thread))
            }
            None if !record.status.state.has_ended() => Err(Error::Essential),
            _ => Err(Error::WrongState),
        }
    }

    fn suspend(&mut self, caller: u64, process: u64) -> Answer {
        let (record, thread) = self.managed(caller, process)?;
        thread.suspend().map_err(|_| Error::Internal)?;
        record.status = Status::plain(State::Suspended);
        Ok(done(&[]))
    }

    fn resume(&mut self, caller: u64, process: u64) -> Answer {
        let (record, thread) = self.managed(caller, process)?;
        if record.status.state != State::Suspended {
            return Err(Error::WrongState);
        }
        thread.resume().map_err(|_| Error::Internal)?;
        record.status = Status::plain(State::Running);
        Ok(done(&[]))
    }

    /// A reply object is done with.
    fn release(&mut self, reply: Cap<Reply>) {
        if let Some(surplus) = self.replies.release(reply) {
            discard(surplus.address());
        }
    }
}

/// Whether a request adds something that stays. It is refused if there is not enough memory; all others are carried out.
const fn adds(label: Label) -> bool {
    matches!(label, Label::Prepare | Label::Append | Label::Give | Label::Start | Label::Wait)
}

/// The next word of a request.
fn word(reader: &mut Reader<'_>) -> Result<u64, Error> {
    reader.word().ok_or(Error::BadRequest)
}

/// The next text of a request.
fn text<'a>(reader: &mut Reader<'a>) -> Result<&'a str, Error> {
    reader.text().and_then(|text| core::str::from_utf8(text).ok()).ok_or(Error::BadRequest)
}

/// An answer that all went well, with these words.
pub fn done(words: &[u64]) -> Option<Message> {
    Some(Message::with_words(DONE, words))
}

/// A new reply object.
fn make_reply() -> Result<Cap<Reply>, Refusal> {
    memory::make::<Reply>(0).map(|made| made.leak()).map_err(|_| Refusal::OutOfMemory)
}
