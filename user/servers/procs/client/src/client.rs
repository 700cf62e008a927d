//! Typed requests to the process server.

use tench_abi::fault::Report;
use tench_abi::layout::slot;
use tench_abi::{CapAddress, Kind, Rights};
use tench_protocol::{Failure as AnyFailure, call, call_words};
use tench_sys::{Cap, Endpoint, Message, Reader, Received};

use crate::Failure;
use crate::protocol::{
    CAPABILITIES_PER_ANSWER, Defect, Error, FLAG_MANAGER, FaultKind, Label, List, MAX_APPEND, MAX_NAME, RegionKind,
    State, WORDS_PER_CAPABILITY,
};

/// The process server.
#[derive(Clone, Copy, Debug)]
pub struct Procs {
    endpoint: Cap<Endpoint>,
}

/// What is known about a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Its identifier.
    pub process: u64,
    /// What it does.
    pub state: State,
    /// What belongs to the state: exit code, or number of a [`FaultKind`].
    pub detail: u64,
    /// The process that started it.
    pub parent: u64,
    /// Priority of its main thread.
    pub priority: u64,
    /// Ticks of processor time of its main thread.
    pub ticks: u64,
    /// Bytes of its program.
    pub size: u64,
    name: [u8; MAX_NAME],
    name_length: usize,
}

impl Status {
    /// The path or name by which it was started.
    pub fn name(&self) -> &str {
        core::str::from_utf8(&self.name[..self.name_length]).unwrap_or("?")
    }

    /// Its exit code, if it has ended by itself.
    pub const fn exit_code(&self) -> Option<u64> {
        if matches!(self.state, State::Exited) { Some(self.detail) } else { None }
    }

    /// The fault that ended it.
    pub const fn fault(&self) -> Option<FaultKind> {
        if matches!(self.state, State::Faulted) { FaultKind::from_code(self.detail) } else { None }
    }

    fn read(process: u64, reader: &mut Reader<'_>) -> Option<Status> {
        let mut word = || reader.word();
        let mut status = Status {
            process,
            state: State::from_code(word()?)?,
            detail: word()?,
            parent: word()?,
            priority: word()?,
            ticks: word()?,
            size: word()?,
            name: [0; MAX_NAME],
            name_length: 0,
        };
        let name = reader.text()?;
        status.name.get_mut(..name.len())?.copy_from_slice(name);
        status.name_length = name.len();
        Some(status)
    }
}

/// A capability in a process's space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capability {
    /// Where it lies.
    pub address: CapAddress,
    /// What it is for.
    pub kind: Kind,
    /// What it allows.
    pub rights: Rights,
    /// Log2 of the object's size in bytes.
    pub size_bits: u32,
    /// Its badge.
    pub badge: u64,
    /// Physical address of memory, number of an interrupt, otherwise 0.
    pub object: u64,
}

impl Procs {
    /// The process server as every process finds it.
    pub const STANDARD: Procs = Procs { endpoint: Cap::new(slot::PROCS) };

    /// The process server behind an endpoint.
    pub const fn at(endpoint: Cap<Endpoint>) -> Procs {
        Procs { endpoint }
    }

    fn ask(self, label: Label, words: [u64; 4]) -> Result<[u64; 8], Failure> {
        call_words(self.endpoint, label as u64, words)
    }

    /// Prepares a process from the program of this path or base name. It does not run before [`Spawn::start`].
    pub fn prepare(self, program: &str) -> Result<Spawn, Failure> {
        let mut request = Message::new(Label::Prepare as u64);
        request.push_text(cut(program));
        let reply = call(self.endpoint, &request)?;
        Ok(Spawn { procs: self, process: reply.word(0), extra: 0 })
    }

    /// Starts a program with these arguments (besides its name) and nothing else.
    pub fn spawn(self, program: &str, arguments: &[&str]) -> Result<u64, Failure> {
        let spawn = self.prepare(program)?;
        match arguments.iter().try_for_each(|argument| spawn.argument(argument)) {
            Ok(()) => spawn.start(),
            Err(failure) => {
                spawn.abandon();
                Err(failure)
            }
        }
    }

    /// Ends the calling process. Returns only if the process server is not there.
    pub fn exit(self, code: u64) -> Failure {
        match self.ask(Label::Exit, [code, 0, 0, 0]) {
            Ok(_) => Failure::Malformed,
            Err(failure) => failure,
        }
    }

    /// Ends the calling process as after a fault: what it was, and which part of the address space, of how many bytes, the
    /// address belongs to, if the process made that itself. Returns only if the process server is not there.
    pub fn fault(self, report: &Report, kind: FaultKind, region: Option<(RegionKind, u64, u64)>) -> Failure {
        let Report { class, address, instruction, syndrome } = *report;
        let (region, start, size) = region.map_or((0, 0, 0), |(kind, start, size)| (kind as u64, start, size));
        let words = [class, address, instruction, syndrome, kind as u64, region, start, size];
        let mut message = Message::new(Label::Fault as u64);
        for word in words {
            message.push(word);
        }
        match call::<Error>(self.endpoint, &message) {
            Ok(_) => Failure::Malformed,
            Err(failure) => failure,
        }
    }

    /// Kills a process.
    pub fn kill(self, process: u64) -> Result<(), Failure> {
        self.ask(Label::Kill, [process, 0, 0, 0]).map(drop)
    }

    /// Waits until a process has ended.
    pub fn wait(self, process: u64) -> Result<Status, Failure> {
        self.status_of(Label::Wait, process)
    }

    /// What is known about a process.
    pub fn status(self, process: u64) -> Result<Status, Failure> {
        self.status_of(Label::Status, process)
    }

    fn status_of(self, label: Label, process: u64) -> Result<Status, Failure> {
        let reply: Received = call(self.endpoint, &Message::with_words(label as u64, &[process]))?;
        Status::read(process, &mut reply.reader()).ok_or(Failure::Malformed)
    }

    /// What is known about the process with the next higher number, or `NoSuchProcess`.
    pub fn next(self, after: u64) -> Result<Status, Failure> {
        let reply: Received = call(self.endpoint, &Message::with_words(Label::Next as u64, &[after]))?;
        let mut reader = reply.reader();
        let process = reader.word().ok_or(Failure::Malformed)?;
        Status::read(process, &mut reader).ok_or(Failure::Malformed)
    }

    /// The living process of this path or base name with the next higher number, or `NoSuchProcess`.
    pub fn find(self, name: &str, after: u64) -> Result<u64, Failure> {
        let mut request = Message::with_words(Label::Find as u64, &[after]);
        request.push_text(cut(name));
        Ok(call(self.endpoint, &request)?.word(0))
    }

    /// Limits the bytes of memory that a process may have.
    pub fn limit(self, process: u64, bytes: u64) -> Result<(), Failure> {
        self.ask(Label::Limit, [process, bytes, 0, 0]).map(drop)
    }

    /// Suspends a process's main thread.
    pub fn suspend(self, process: u64) -> Result<(), Failure> {
        self.ask(Label::Suspend, [process, 0, 0, 0]).map(drop)
    }

    /// Lets a suspended process go on.
    pub fn resume(self, process: u64) -> Result<(), Failure> {
        self.ask(Label::Resume, [process, 0, 0, 0]).map(drop)
    }

    /// Capabilities of a process from an address on, in order, and where to go on (`NULL`: that was all).
    pub fn capabilities(
        self,
        process: u64,
        from: CapAddress,
        found: &mut [Option<Capability>; CAPABILITIES_PER_ANSWER],
    ) -> Result<CapAddress, Failure> {
        let request = Message::with_words(Label::Capabilities as u64, &[process, u64::from(from.0)]);
        let reply: Received = call(self.endpoint, &request)?;
        let (next, rest) = reply.words().split_first().ok_or(Failure::Malformed)?;
        *found = [None; CAPABILITIES_PER_ANSWER];
        for (place, words) in found.iter_mut().zip(rest.chunks_exact(WORDS_PER_CAPABILITY)) {
            *place = Some(capability(words).ok_or(Failure::Malformed)?);
        }
        Ok(CapAddress(*next as u32))
    }

    /// Path and size of the boot archive's file number `index`, or `NoSuchFile`. The path is written into `buffer`.
    pub fn file(self, index: u64, buffer: &mut [u8; MAX_NAME]) -> Result<(&str, u64), Failure> {
        let reply: Received = call(self.endpoint, &Message::with_words(Label::File as u64, &[index]))?;
        let mut reader = reply.reader();
        let size = reader.word().ok_or(Failure::Malformed)?;
        let path = reader.text().ok_or(Failure::Malformed)?;
        let place = buffer.get_mut(..path.len()).ok_or(Failure::Malformed)?;
        place.copy_from_slice(path);
        Ok((core::str::from_utf8(place).map_err(|_| Failure::Malformed)?, size))
    }

    /// Reads a file of the boot archive from `offset` on. Answers how many bytes were read; 0 is the end.
    pub fn read_file(self, path: &str, offset: u64, buffer: &mut [u8]) -> Result<usize, Failure> {
        let mut done = 0;
        while done < buffer.len() {
            let mut request = Message::with_words(Label::ReadFile as u64, &[offset + done as u64]);
            request.push_text(cut(path));
            let reply: Received = call(self.endpoint, &request)?;
            let mut reader = reply.reader();
            reader.word().ok_or(Failure::Malformed)?;
            let text = reader.text().ok_or(Failure::Malformed)?;
            if text.is_empty() {
                break;
            }
            let count = text.len().min(buffer.len() - done);
            buffer[done..done + count].copy_from_slice(&text[..count]);
            done += count;
        }
        Ok(done)
    }
}

/// A process in preparation. Nothing happens to it when this value is dropped; see [`abandon`](Self::abandon).
#[derive(Clone, Copy, Debug)]
pub struct Spawn {
    procs: Procs,
    process: u64,
    extra: u32,
}

impl Spawn {
    /// Its identifier.
    pub const fn process(&self) -> u64 {
        self.process
    }

    /// Adds an argument.
    pub fn argument(&self, argument: &str) -> Result<(), Failure> {
        self.strings(List::Arguments, argument.as_bytes())?;
        self.strings(List::Arguments, &[0])
    }

    /// Adds an environment entry, `NAME=value`.
    pub fn environment(&self, entry: &str) -> Result<(), Failure> {
        self.strings(List::Environment, entry.as_bytes())?;
        self.strings(List::Environment, &[0])
    }

    /// Appends to a list; each string in `text` ends with a zero byte.
    pub fn strings(&self, list: List, text: &[u8]) -> Result<(), Failure> {
        for part in text.chunks(MAX_APPEND) {
            let mut request = Message::with_words(Label::Append as u64, &[self.process, list as u64]);
            request.push_text(part);
            call(self.procs.endpoint, &request)?;
        }
        Ok(())
    }

    /// Passes a copy of a capability along in the next of the slots from `EXTRA` on, and answers which.
    pub fn give(&mut self, cap: impl Into<CapAddress>) -> Result<CapAddress, Failure> {
        let place = CapAddress(slot::EXTRA.0 + self.extra);
        self.give_in(cap, place)?;
        self.extra += 1;
        Ok(place)
    }

    /// Passes a copy of a capability along in a certain slot.
    pub fn give_in(&self, cap: impl Into<CapAddress>, slot: CapAddress) -> Result<(), Failure> {
        let mut request = Message::with_words(Label::Give as u64, &[self.process, u64::from(slot.0)]);
        request.copy_cap(cap);
        call(self.procs.endpoint, &request).map(drop)
    }

    /// Gives a capability away, in a certain slot. What a server receives at, moved to `SERVICE`, ends with the server:
    /// its clients are refused from then on instead of waiting for ever.
    pub fn move_in(&self, cap: impl Into<CapAddress>, slot: CapAddress) -> Result<(), Failure> {
        let mut request = Message::with_words(Label::Give as u64, &[self.process, u64::from(slot.0)]);
        request.move_cap(cap);
        call(self.procs.endpoint, &request).map(drop)
    }

    /// Sets priority, ceiling, bytes of stack (0: as usual), and whether it may manage all processes.
    pub fn configure(&self, priority: u8, ceiling: u8, stack: u64, manager: bool) -> Result<(), Failure> {
        let flags = if manager { FLAG_MANAGER } else { 0 };
        let words = [self.process, u64::from(priority), u64::from(ceiling), stack, flags];
        call(self.procs.endpoint, &Message::with_words(Label::Configure as u64, &words)).map(drop)
    }

    /// Limits the bytes of memory that it may have.
    pub fn limit(&self, bytes: u64) -> Result<(), Failure> {
        self.procs.limit(self.process, bytes)
    }

    /// Loads the program and lets it run. Answers its identifier.
    pub fn start(self) -> Result<u64, Failure> {
        self.procs.ask(Label::Start, [self.process, 0, 0, 0])?;
        Ok(self.process)
    }

    /// As [`start`](Self::start); if the program's file is at fault, also says what is wrong with it.
    pub fn start_or_defect(self) -> Result<u64, (Failure, Option<Defect>)> {
        let request = Message::with_words(Label::Start as u64, &[self.process]);
        let reply = self.procs.endpoint.call(&request).map_err(|error| (AnyFailure::Lost(error), None))?;
        match reply.label() {
            tench_protocol::DONE => Ok(self.process),
            code => {
                let failure = Error::from_code(code).map_or(AnyFailure::Malformed, AnyFailure::Refused);
                let defect =
                    Defect::from_code(reply.word(0)).filter(|_| failure == AnyFailure::Refused(Error::BadProgram));
                Err((failure, defect))
            }
        }
    }

    /// Gives the preparation up.
    pub fn abandon(self) {
        // There is nothing to give up if it is refused.
        let _ = self.procs.ask(Label::Abandon, [self.process, 0, 0, 0]);
    }
}

/// The bytes of a name. One that is too long is cut to one byte too many, which the server refuses.
fn cut(name: &str) -> &[u8] {
    name.as_bytes().get(..MAX_NAME + 1).unwrap_or(name.as_bytes())
}

/// A capability as an answer describes it.
fn capability(words: &[u64]) -> Option<Capability> {
    let &[address, kind, rights, size_bits, badge, object] = words else { return None };
    Some(Capability {
        address: CapAddress(address as u32),
        kind: Kind::from_code(kind)?,
        rights: Rights::from_bits_truncate(rights as u8),
        size_bits: size_bits as u32,
        badge,
        object,
    })
}
