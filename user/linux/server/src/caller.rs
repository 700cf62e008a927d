//! A process that makes a system call.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::RefCell;

use tench_linux_calls::{Memory as TracedMemory, Trace};
use tench_linux_files::{Errno, MAX_PATH};
use tench_linux_memory::{Memory, Space};

use crate::{Machine, Process, System};

/// The end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The process goes on with this in `x0`.
    Return(u64),
    /// The process runs another program.
    Run {
        /// Address of the first instruction.
        entry: u64,
        /// Stack pointer.
        stack: u64,
    },
    /// The process has ended with this code.
    Exit(u8),
    /// The process has been ended by a signal.
    Kill(u32),
}

/// The result of a call: what it returns, or an error.
pub type Result<T = u64> = core::result::Result<T, Errno>;

impl From<Result> for Outcome {
    fn from(result: Result) -> Outcome {
        Outcome::Return(result.unwrap_or_else(|error| i64::from(-error.into_raw()).cast_unsigned()))
    }
}

/// A process that makes a call, and the system.
#[derive(Debug)]
pub struct Caller<'a, M: Machine> {
    /// The system.
    pub system: &'a mut System<M>,
    /// The process.
    pub process: &'a mut Process<M>,
}

/// The memory of a traced process.
struct Traced<'a, M: Machine>(RefCell<(&'a mut Memory<M>, &'a mut Space<M>)>);

impl<M: Machine> TracedMemory for Traced<'_, M> {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let (memory, space) = &mut *self.0.borrow_mut();
        space.read(memory, address, into)
    }
}

impl<M: Machine> Caller<'_, M> {
    /// Makes a call.
    pub fn call(&mut self, number: u64, arguments: [u64; 6]) -> Outcome {
        self.system.update_time();
        if !self.system.traces {
            return self.dispatch(number, arguments);
        }
        let trace = Trace::begin(number, arguments, &self.traced());
        let outcome = self.dispatch(number, arguments);
        let line = match outcome {
            Outcome::Return(result) => trace.end(result, &self.traced()),
            Outcome::Run { .. } => trace.end(0, &self.traced()),
            Outcome::Exit(_) | Outcome::Kill(_) => trace.end_without_return(),
        };
        self.system.memory.hardware.report(&line);
        outcome
    }

    fn traced(&mut self) -> Traced<'_, M> {
        Traced(RefCell::new((&mut self.system.memory, &mut self.process.space)))
    }

    /// Reads bytes of the process.
    pub fn read(&mut self, address: u64, length: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).map_err(|_| Errno::ENOMEM)?;
        bytes.resize(length, 0);
        let count = self.process.space.read(&mut self.system.memory, address, &mut bytes);
        if count < length { Err(Errno::EFAULT) } else { Ok(bytes) }
    }

    /// Reads a record of the process.
    pub fn read_record<const N: usize>(&mut self, address: u64) -> Result<[u8; N]> {
        let mut record = [0; N];
        let count = self.process.space.read(&mut self.system.memory, address, &mut record);
        if count < N { Err(Errno::EFAULT) } else { Ok(record) }
    }

    /// Writes bytes to the process.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<()> {
        let count = self.process.space.write(&mut self.system.memory, address, bytes);
        if count < bytes.len() { Err(Errno::EFAULT) } else { Ok(()) }
    }

    /// Writes bytes to the process, unless the address is 0.
    pub fn write_if_wanted(&mut self, address: u64, bytes: &[u8]) -> Result<()> {
        if address == 0 { Ok(()) } else { self.write(address, bytes) }
    }

    /// Reads a string of the process, which ends with a zero within so many bytes.
    pub fn read_string(&mut self, address: u64, limit: usize) -> Result<Option<Vec<u8>>> {
        let mut string = Vec::new();
        while string.len() < limit {
            let place = address.checked_add(string.len() as u64).ok_or(Errno::EFAULT)?;
            // Not across a page, behind which nothing need be.
            let rest = 4096 - (place % 4096) as usize;
            let mut chunk = vec![0; rest.min(256).min(limit - string.len())];
            let count = self.process.space.read(&mut self.system.memory, place, &mut chunk);
            if count == 0 {
                return Err(Errno::EFAULT);
            }
            if let Some(end) = chunk[..count].iter().position(|byte| *byte == 0) {
                string.extend_from_slice(&chunk[..end]);
                return Ok(Some(string));
            }
            string.extend_from_slice(&chunk[..count]);
        }
        Ok(None)
    }

    /// Reads a path of the process.
    pub fn read_path(&mut self, address: u64) -> Result<Vec<u8>> {
        self.read_string(address, MAX_PATH + 1)?.ok_or(Errno::ENAMETOOLONG)
    }

    /// Reports something that is missing in the personality.
    pub fn report_missing(&mut self, what: &str) {
        let name = String::from_utf8_lossy(self.process.name.split(|byte| *byte == 0).next().unwrap_or(&[]));
        let line = alloc::format!("linux: {name}: {what}");
        self.system.memory.hardware.report(&line);
    }
}
