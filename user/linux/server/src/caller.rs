//! A thread that makes a system call.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::time::Duration;

use tench_linux_calls::{Memory as TracedMemory, Sysno, Trace};
use tench_linux_files::{Errno, MAX_PATH};
use tench_linux_memory::{Memory, ObjectId, Space};

use crate::generated::{View, Viewer};
use crate::processes::Processes;
use crate::thread::Entrance;
use crate::waiting::{Interruption, Key, Waiting};
use crate::{Machine, Process, System};

/// The end of a call or fault. Its tag is a word, so that it is copied in words.
#[derive(Clone, Debug)]
#[repr(u64)]
pub enum Outcome {
    /// The process goes on with this in `x0`.
    Return(u64),
    /// The process goes on.
    Resume,
    /// The call waits.
    Wait,
    /// The process runs another program.
    Run {
        /// Address of the first instruction.
        entry: u64,
        /// Stack pointer.
        stack: u64,
    },
    /// The thread makes its calls in another way from now on.
    Enter(Box<Entering>),
    /// The thread stops for its tracer before the call.
    Stop,
    /// As this, and the thread is traced.
    Traced(Box<Outcome>),
    /// The thread goes on after all others that can run.
    Yield,
    /// The thread has ended with this code.
    EndThread(u8),
    /// The process has ended with this code.
    Exit(u8),
}

/// A thread's change to another way of making calls.
#[derive(Clone, Debug)]
pub struct Entering {
    /// The new way.
    pub entrance: Entrance,
    /// The object with the page for upcalls, and its address.
    pub buffer: Option<(ObjectId, u64)>,
}

/// The result of a call: what it returns, or an error.
pub type Result<T = u64> = core::result::Result<T, Errno>;

/// The most bytes that a call takes for itself without asking for [room](Memory::check_room).
pub(crate) const MAX_SMALL: usize = 64 * 1024;

/// Stands for the result of a call that waits. Linux uses this number, too, and does not show it to programs.
pub(crate) const WAITS: Errno = Errno::ERESTARTSYS;

impl From<Result> for Outcome {
    fn from(result: Result) -> Outcome {
        match result {
            Err(WAITS) => Outcome::Wait,
            result => Outcome::Return(result.unwrap_or_else(|error| i64::from(-error.into_raw()).cast_unsigned())),
        }
    }
}

/// A thread that makes a call, and the system.
#[derive(Debug)]
pub struct Caller<'a, M: Machine> {
    /// The system.
    pub system: &'a mut System<M>,
    /// The process, whose present thread makes the call.
    pub process: &'a mut Process<M>,
    /// All other processes.
    pub others: &'a mut Processes<M>,
}

/// The memory of a traced process.
struct Traced<'a, M: Machine>(RefCell<(&'a mut Memory<M>, &'a mut Space<M>)>);

impl<M: Machine> TracedMemory for Traced<'_, M> {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let (memory, space) = &mut *self.0.borrow_mut();
        space.read(memory, address, into)
    }
}

/// Returns the memory of a process, for a trace.
fn traced<'a, M: Machine>(system: &'a mut System<M>, process: &Process<M>) -> Traced<'a, M> {
    let System { memory, spaces, .. } = system;
    Traced(RefCell::new((memory, &mut spaces.get(process.space).space)))
}

impl<M: Machine> Caller<'_, M> {
    /// Makes a call.
    #[inline(always)]
    pub fn call(&mut self, number: u64, arguments: &[u64; 6]) -> Outcome {
        if self.system.inspects_calls {
            return self.call_inspected(number, arguments);
        }
        self.call_untraced(number, arguments)
    }

    #[inline(always)]
    pub(crate) fn call_untraced(&mut self, number: u64, arguments: &[u64; 6]) -> Outcome {
        let Some(call) = usize::try_from(number).ok().and_then(Sysno::new) else {
            return Err(Errno::ENOSYS).into();
        };
        if let Some(number) = self.own_number(call) {
            return Outcome::Return(number);
        }
        match self.system.calls_left.checked_sub(1) {
            Some(left) => self.system.calls_left = left,
            None => {
                if let Err(error) = self.admit(call) {
                    return Err(error).into();
                }
            }
        }
        let outcome = self.dispatch(call, arguments);
        if self.process.thread().waiting.is_some() {
            self.note_wait(number, arguments, &outcome);
        }
        outcome
    }

    /// Notes which call waits, or that the one that has waited is over.
    #[cold]
    pub(crate) fn note_wait(&mut self, number: u64, arguments: &[u64; 6], outcome: &Outcome) {
        let thread = self.process.thread_mut();
        if let (Outcome::Wait, Some(waiting)) = (outcome, &mut thread.waiting) {
            (waiting.number, waiting.arguments) = (number, *arguments);
        } else {
            // However the call is over: its descriptor may have been closed meanwhile.
            self.system.locks.end_wait(thread.id);
            self.system.ipc.end_wait(thread.id);
            if let Some(waiting) = thread.waiting.take() {
                self.system.terminals.end_reads(thread.id, &waiting.keys);
            }
        }
    }

    /// Makes a call that may be filtered or traced, unless its thread is to stop for its tracer first.
    #[cold]
    fn call_inspected(&mut self, number: u64, arguments: &[u64; 6]) -> Outcome {
        let thread = self.process.thread();
        let stops = thread.tracing.as_ref().is_some_and(|tracing| tracing.watches_calls);
        if stops && !thread.sends && thread.waiting.is_none() {
            return Outcome::Stop;
        }
        self.call_after_stop(number, arguments)
    }

    /// Makes a call that may be filtered or traced.
    pub(crate) fn call_after_stop(&mut self, number: u64, arguments: &[u64; 6]) -> Outcome {
        let outcome = match self.filter(number, arguments) {
            Some(outcome) => outcome,
            None if self.system.traces => self.call_traced(number, arguments),
            None => self.call_unfiltered(number, arguments),
        };
        let thread = self.process.thread();
        // The registers of one that sends its calls are out of reach.
        if thread.tracing.is_some() && !thread.sends { Outcome::Traced(Box::new(outcome)) } else { outcome }
    }

    /// Makes a call that may have to do with mounts.
    fn call_unfiltered(&mut self, number: u64, arguments: &[u64; 6]) -> Outcome {
        if self.system.mounts.is_empty() {
            self.call_untraced(number, arguments)
        } else {
            self.call_with_mounts(number, arguments)
        }
    }

    /// Makes a call, and reports it when it is over.
    #[cold]
    fn call_traced(&mut self, number: u64, arguments: &[u64; 6]) -> Outcome {
        if self.process.thread().trace.is_none() {
            let trace = Trace::begin(number, *arguments, &traced(self.system, self.process));
            self.process.thread_mut().trace = Some(trace);
        }
        let outcome = self.call_unfiltered(number, arguments);
        match &outcome {
            Outcome::Wait | Outcome::Stop | Outcome::Traced(_) => {}
            Outcome::Return(result) => self.end_trace(Some(*result)),
            Outcome::Run { .. } | Outcome::Enter(_) | Outcome::Yield => self.end_trace(Some(0)),
            Outcome::Resume | Outcome::EndThread(_) | Outcome::Exit(_) => self.end_trace(None),
        }
        outcome
    }

    /// Reports a call that is over, if calls are traced: with its result, or as one that does not return.
    pub(crate) fn end_trace(&mut self, result: Option<u64>) {
        let Some(trace) = self.process.thread_mut().trace.take() else { return };
        let line = match result {
            Some(result) => trace.end(result, &traced(self.system, self.process)),
            None => trace.end_without_return(),
        };
        // Who it is goes without saying if there is nobody else.
        let is_one_of_several = self.others.count_threads() > 1;
        let id = self.process.thread().id;
        let line = if is_one_of_several { alloc::format!("[pid {id:5}] {line}") } else { line };
        self.system.memory.hardware.report(&line);
    }

    /// Returns what is known of the call since it began to wait.
    pub(crate) fn waiting(&self) -> Option<&Waiting> {
        self.process.thread().waiting.as_ref()
    }

    /// Returns what is known of the call that waits, to be changed.
    pub(crate) fn waiting_mut(&mut self) -> Option<&mut Waiting> {
        self.process.thread_mut().waiting.as_mut()
    }

    /// Returns who looks at generated files.
    pub(crate) const fn viewer(&self) -> Viewer<'_, M> {
        Viewer { own: Some(self.process), others: Some(self.others) }
    }

    /// Returns what generated directories contain.
    pub(crate) const fn view(&self) -> View<'_, M> {
        self.viewer().with(&self.system.descriptions, &self.system.mounts)
    }

    /// Lets the call wait until something happens, at the longest until a time: it is made again then. Returns what the
    /// call is to return. What it has done so far stays known.
    pub(crate) fn wait(&mut self, keys: &[Key], deadline: Option<Duration>, interruption: Interruption) -> Errno {
        if !self.system.mounts.is_empty() {
            // Whatever it could not learn of a file server does not matter, if it waits for something else.
            let _ = self.system.mounts.take_wanted();
        }
        let thread = self.process.thread_mut();
        let (id, place) = (thread.id, &mut thread.waiting);
        let before = place.take();
        let mut keys = keys.to_vec();
        keys.sort_unstable();
        keys.dedup();
        if let Some(before) = &before
            && before.keys != keys
        {
            // Its descriptor may have another file by now.
            let is_left = |key: &&Key| keys.binary_search(key).is_err();
            let left: Vec<Key> = before.keys.iter().filter(is_left).copied().collect();
            self.system.terminals.end_reads(id, &left);
        }
        *place = Some(match before {
            Some(before) => {
                Waiting { number: 0, arguments: [0; 6], messages: 0, keys, deadline, interruption, ..before }
            }
            None => Waiting { keys, deadline, interruption, ..Waiting::default() },
        });
        WAITS
    }

    /// Lets a long call, which has done so much, go on when others have been served. Returns what it is to return.
    pub(crate) fn let_others_be_served(&mut self, done: u64) -> Errno {
        let now = self.system.memory.hardware.monotonic();
        let error = self.wait(&[], Some(now), Interruption::Final);
        if let Some(waiting) = self.waiting_mut() {
            waiting.done = done;
        }
        error
    }

    /// Says whether the call, which waits, does so until the clock with the date shows a time.
    pub(crate) fn wait_by_date(&mut self, is_by_date: bool) {
        if let Some(waiting) = self.waiting_mut() {
            waiting.is_by_date = is_by_date;
        }
    }

    /// Returns how much of the call had been done when it began to wait.
    pub(crate) fn done(&self) -> u64 {
        self.waiting().map_or(0, |waiting| waiting.done)
    }

    /// Returns until when the call waits, if it has waited before.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.waiting().and_then(|waiting| waiting.deadline)
    }

    /// Returns the memory of the process, and what all memory consists of.
    pub(crate) fn space(&mut self) -> (&mut Space<M>, &mut Memory<M>) {
        let System { memory, spaces, .. } = &mut *self.system;
        (&mut spaces.get(self.process.space).space, memory)
    }

    /// Copies bytes of the process until one cannot be read. Returns their number.
    pub(crate) fn copy_from(&mut self, address: u64, into: &mut [u8]) -> usize {
        self.system.read(self.process.space, address, into)
    }

    /// Copies bytes to the process until one cannot be written. Returns their number.
    pub(crate) fn copy_to(&mut self, address: u64, bytes: &[u8]) -> usize {
        self.system.write(self.process.space, address, bytes)
    }

    /// Reads bytes of the process.
    pub fn read(&mut self, address: u64, length: usize) -> Result<Vec<u8>> {
        if length > MAX_SMALL {
            self.system.memory.check_room(length)?;
        }
        let mut bytes = vec![0; length];
        let count = self.copy_from(address, &mut bytes);
        if count < length { Err(Errno::EFAULT) } else { Ok(bytes) }
    }

    /// Reads a record of the process.
    pub fn read_record<const N: usize>(&mut self, address: u64) -> Result<[u8; N]> {
        let mut record = [0; N];
        let count = self.copy_from(address, &mut record);
        if count < N { Err(Errno::EFAULT) } else { Ok(record) }
    }

    /// Writes bytes to the process.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<()> {
        let count = self.copy_to(address, bytes);
        if count < bytes.len() { Err(Errno::EFAULT) } else { Ok(()) }
    }

    /// Writes bytes to the process, unless the address is 0.
    pub fn write_if_wanted(&mut self, address: u64, bytes: &[u8]) -> Result<()> {
        if address == 0 { Ok(()) } else { self.write(address, bytes) }
    }

    /// Reads a string of the process, which ends with a zero within so many bytes.
    pub fn read_string(&mut self, address: u64, limit: usize) -> Result<Option<Vec<u8>>> {
        let (space, memory) = self.space();
        let mut string = Vec::new();
        let has_ended = space.read_string(memory, address, limit, &mut string)?;
        Ok(has_ended.then_some(string))
    }

    /// Reads a path of the process.
    pub fn read_path(&mut self, address: u64) -> Result<Vec<u8>> {
        self.read_string(address, MAX_PATH + 1)?.ok_or(Errno::ENAMETOOLONG)
    }

    /// Reports something that is missing in the personality.
    pub fn report_missing(&mut self, what: &str) {
        let name = String::from_utf8_lossy(self.process.thread().name.split(|byte| *byte == 0).next().unwrap_or(&[]));
        let line = alloc::format!("linux: {name}: {what}");
        self.system.report(&line);
    }
}
