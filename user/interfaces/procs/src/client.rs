//! Conveniences on top of the requests.

use tench_abi::layout::slot;
use tench_abi::{CapAddress, Powers};
use tench_protocol::transport::Until;
use tench_protocol::{Any, ArrayVec};
use tench_sys::{Cap, Error as KernelError, Instant};

use crate::Failure;
use crate::protocol::{Defect, Error, MAX_APPEND, Procs, Status, Strings};

impl Procs {
    /// The process server, in the slot where every process finds it.
    pub const STANDARD: Procs = Procs::at(Cap::new(slot::PROCS));

    /// Prepares a process from the program of this path or base name. The process does not run before [`Spawn::start`].
    pub fn prepare(self, program: &str) -> Result<Spawn, Failure> {
        Ok(Spawn { procs: self, process: self.create(program)?, extra: 0 })
    }

    /// Prepares a process from a program's file that the caller has read, of at most `size` bytes, and hands over with
    /// [`Spawn::write`]. The name is shown to others.
    pub fn prepare_of(self, name: &str, size: u64) -> Result<Spawn, Failure> {
        Ok(Spawn { procs: self, process: self.create_of(name, size)?, extra: 0 })
    }

    /// Starts a program with these arguments (after its name) and nothing else: in one request, unless they are too
    /// long for that.
    pub fn spawn(self, program: &str, arguments: &[&str]) -> Result<u64, Failure> {
        let strings = || core::iter::once(program).chain(arguments.iter().copied());
        if !program.contains('\0') && strings().map(|string| string.len() + 1).sum::<usize>() <= MAX_APPEND {
            let strings: ArrayVec<u8, MAX_APPEND> = strings().flat_map(|string| string.bytes().chain([0])).collect();
            return self.run(&strings);
        }
        let spawn = self.prepare(program)?;
        match arguments.iter().try_for_each(|argument| spawn.argument(argument)) {
            Ok(()) => spawn.start(),
            Err(failure) => {
                spawn.abandon();
                Err(failure)
            }
        }
    }

    /// Waits until a process has ended, at most until the deadline. If the server is kept from replying then, the
    /// kernel ends the wait a few milliseconds later.
    /// Errors: as `wait_limited`.
    pub fn wait_until(self, process: u64, deadline: Instant) -> Result<Status, Failure> {
        match Procs::at(Until::with_margin(self.way(), deadline)).wait_limited(process, deadline) {
            Err(Failure::Lost(KernelError::TimedOut)) => Err(Failure::Refused(Error::TimedOut)),
            result => result,
        }
    }

    /// Kills every process of this path or base name, including those that are started meanwhile, and returns how many.
    /// A process that ends by itself is no error. If one may not be killed, the others still are, and then that error
    /// is returned. A caller of this name ends in its turn.
    pub fn kill_all(self, name: &str) -> Result<u64, Failure> {
        let (mut after, mut killed, mut refused) = (0, 0, None);
        loop {
            after = match self.find(name, after) {
                Ok(process) => process,
                Err(Failure::Refused(Error::NoSuchProcess)) => break,
                Err(failure) => return Err(failure),
            };
            match self.kill(after) {
                Ok(()) => killed += 1,
                Err(Failure::Refused(Error::NoSuchProcess | Error::WrongState)) => {}
                Err(failure) => refused = Some(failure),
            }
        }
        refused.map_or(Ok(killed), Err)
    }
}

/// A process in preparation. Dropping this value has no effect on it; see [`abandon`](Self::abandon).
#[derive(Clone, Copy, Debug)]
pub struct Spawn {
    procs: Procs,
    process: u64,
    extra: u32,
}

impl Spawn {
    /// Returns the process's number.
    pub const fn process(&self) -> u64 {
        self.process
    }

    /// Appends to the file of its program, if that is handed over.
    pub fn write(&self, content: &[u8]) -> Result<(), Failure> {
        content.chunks(MAX_APPEND).try_for_each(|part| self.procs.write(self.process, part))
    }

    /// Appends an argument.
    pub fn argument(&self, argument: &str) -> Result<(), Failure> {
        self.strings(Strings::Arguments, argument.as_bytes())?;
        self.strings(Strings::Arguments, &[0])
    }

    /// Appends an environment entry, `NAME=value`.
    pub fn environment(&self, entry: &str) -> Result<(), Failure> {
        self.strings(Strings::Environment, entry.as_bytes())?;
        self.strings(Strings::Environment, &[0])
    }

    /// Appends to a list of strings; each string in `text` ends with a zero byte.
    pub fn strings(&self, to: Strings, text: &[u8]) -> Result<(), Failure> {
        text.chunks(MAX_APPEND).try_for_each(|part| self.procs.append(self.process, to, part))
    }

    /// Gives the process a copy of a capability, in the next of the slots from `EXTRA` on, and returns that slot.
    pub fn give(&mut self, cap: impl Into<CapAddress>) -> Result<CapAddress, Failure> {
        let slot = CapAddress(slot::EXTRA.0 + self.extra);
        self.give_in(cap, slot)?;
        self.extra += 1;
        Ok(slot)
    }

    /// Gives the process a copy of a capability, in this slot.
    pub fn give_in(&self, cap: impl Into<CapAddress>, slot: CapAddress) -> Result<(), Failure> {
        self.procs.lend(self.process, slot, Cap::<Any>::new(cap.into()))
    }

    /// Moves a capability to the process, into this slot. An endpoint moved to `SERVICE` is revoked when the server
    /// ends: its clients are refused from then on instead of waiting for ever.
    pub fn move_in(&self, cap: impl Into<CapAddress>, slot: CapAddress) -> Result<(), Failure> {
        self.procs.give_away(self.process, slot, Cap::<Any>::new(cap.into()))
    }

    /// Sets priority, ceiling, bytes of stack (0 for the usual size), and powers.
    pub fn configure(&self, priority: u8, ceiling: u8, stack: u64, powers: Powers) -> Result<(), Failure> {
        self.procs.set_up(self.process, priority, ceiling, stack, u64::from(powers.bits()))
    }

    /// Limits the process's memory, in bytes.
    pub fn limit(&self, bytes: u64) -> Result<(), Failure> {
        self.procs.limit(self.process, bytes)
    }

    /// Sets how many slots for capabilities the process can have.
    pub fn set_slots(&self, slots: u64) -> Result<(), Failure> {
        self.procs.set_slots(self.process, slots)
    }

    /// Loads the program and runs it. Returns the process's number.
    pub fn start(self) -> Result<u64, Failure> {
        self.start_or_defect().map_err(|(failure, _)| failure)
    }

    /// Starts the process as [`start`](Self::start) does; if the program's file is at fault, also returns its defect.
    pub fn start_or_defect(self) -> Result<u64, (Failure, Option<Defect>)> {
        match self.procs.start(self.process) {
            Ok(None) => Ok(self.process),
            Ok(Some(defect)) => Err((Failure::Refused(Error::BadProgram), Some(defect))),
            Err(failure) => Err((failure, None)),
        }
    }

    /// Discards the process in preparation.
    pub fn abandon(self) {
        // If this is refused, there is nothing to discard.
        let _ = self.procs.abandon(self.process);
    }
}
