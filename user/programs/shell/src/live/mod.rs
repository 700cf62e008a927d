//! The real system: servers and kernel.

mod cores;
mod description;
mod keys;
mod streams;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use tench::console::Console;
use tench::console::protocol::{Error as ConsoleError, Mode};
use tench::io::Error;
use tench::mem::protocol::MAX_EXTENTS;
use tench::mem::{Account, Extent, Mem, Totals};
use tench::names::Names;
use tench::procs::protocol::{Error as ProcsError, Strings};
use tench::procs::{Capability, Procs, Spawn, Standing};
use tench::reserve::{Reservation, Reserve};
use tench::sys::abi::Powers;
use tench::sys::abi::layout::slot;
use tench::sys::abi::object::{IrqOffIntervals, Statistic};
use tench::sys::{Cap, CapAddress, Error as KernelError, Instant, Kernel, OWN_CSPACE};
use tench::{again, fs, memory, process};
use tench_files_interface::protocol::Error as FilesError;
use tench_files_interface::{Failure as FilesFailure, Files};
use tench_shell::effective_settings::{self, EffectiveSettings};
use tench_shell::parse::Standard;
use tench_shell::system::{
    Entry, How, Input, Name, OnKey, Process, Settings, Stream, System, SystemError, Terminal, Unwritten, Waited,
};

use tench_shell::words_of;
use tench_system::System as Description;

use cores::Wait;
use keys::Keys;

const CONSOLE: Console<Standing> = Console::STANDARD;
const PROCS: Procs = Procs::STANDARD;
/// Why a shell that does not own the terminal cannot lend it.
const NOT_LENT: &str = "the terminal is not this shell's, and only its own shell lends it; leave this one with exit, and \
    start the program there";

/// Servers and kernel.
pub struct Live {
    pid: u64,
    kernel: Cap<Kernel>,
    /// Notifications that the console signals, from the first use on.
    keys: Option<Keys>,
    /// Processes in preparation.
    preparing: Vec<Preparing>,
    /// The system description, from the first use on; the inner `None` if there is none.
    description: Option<Option<Description<'static>>>,
}

/// A process in preparation.
struct Preparing {
    spawn: Spawn,
    /// For each standard stream, set if the process was given it.
    given: [bool; 3],
}

impl Live {
    /// Connects to the system.
    pub fn new() -> Live {
        Live {
            pid: process::id(),
            kernel: Cap::new(slot::KERNEL),
            keys: None,
            preparing: Vec::new(),
            description: None,
        }
    }

    fn take_prepared(&mut self, pid: u64) -> Option<Preparing> {
        let index = self.preparing.iter().position(|preparing| preparing.spawn.process() == pid)?;
        Some(self.preparing.remove(index))
    }
}

/// Prepares a program: from the boot archive or, if it is called by a path, from a file that this shell reads. `None`
/// if there is no such program.
fn prepare(procs: Procs, program: &str) -> Result<Option<Spawn>, SystemError> {
    match procs.prepare(program) {
        Err(tench::procs::Failure::Refused(ProcsError::NoSuchProgram)) => {}
        prepared => return Ok(Some(prepared?)),
    }
    if !program.contains('/') {
        return Ok(None);
    }
    match fs::prepare(procs, program) {
        Err(Error::Files(FilesFailure::Refused(FilesError::NoSuchFile | FilesError::NotADirectory))) => Ok(None),
        prepared => Ok(Some(prepared.map_err(|error| SystemError(format!("{program}: {error}")))?)),
    }
}

/// Gives a process in preparation an end of a stream as one of its standard streams.
fn give(spawn: &Spawn, index: usize, stream: Stream) -> Result<(), SystemError> {
    let shared = streams::share(stream, spawn.process())?;
    let moved = spawn.move_in(shared, streams::STANDARD[index]);
    if moved.is_err() {
        // The end closes with the process, which is discarded.
        let _ = OWN_CSPACE.delete_at(shared);
    }
    memory::free_slot(shared);
    Ok(moved?)
}

/// Converts the result of reading from the console.
fn input_of(read: Result<usize, tench::console::Failure>, buffer: [u8; 1]) -> Input {
    match read {
        Ok(1..) => Input::Byte(buffer[0]),
        Err(tench::console::Failure::Refused(ConsoleError::Interrupted)) => Input::Interrupted,
        Ok(0) | Err(_) => Input::End,
    }
}

/// Gives a prepared process its arguments and the shell's own environment.
fn pass_on(spawn: &Spawn, arguments: &[String], effective: &EffectiveSettings<'_>) -> Result<(), SystemError> {
    for argument in arguments {
        spawn.argument(argument)?;
    }
    if arguments.is_empty() {
        spawn.strings(Strings::Arguments, effective.arguments)?;
    }
    for entry in process::env() {
        spawn.environment(entry)?;
    }
    if process::env().next().is_none() {
        spawn.strings(Strings::Environment, effective.environment)?;
    }
    Ok(())
}

/// Sets how a prepared process runs, unless the defaults are wanted.
fn configure(spawn: &Spawn, effective: &EffectiveSettings<'_>, powers: Powers) -> Result<(), SystemError> {
    if let Some(bytes) = effective.quota {
        spawn.limit(bytes)?;
    }
    if let Some(slots) = effective.slots {
        spawn.set_slots(slots)?;
    }
    if !effective.is_usual() || !powers.is_empty() {
        spawn.configure(effective.priority, effective.ceiling, effective.stack, powers)?;
    }
    Ok(())
}

/// Returns the powers of the shell's capability to a server.
fn own_powers() -> Powers {
    OWN_CSPACE.identify_at(slot::PROCS).map_or(Powers::empty(), |found| Powers::of_badge(found.badge))
}

/// Names the missing power, if that is why the kernel has refused something.
fn for_want_of<T>(power: Powers, result: Result<T, KernelError>) -> Result<T, SystemError> {
    result.map_err(|error| match own_powers().contains(power) {
        true => error.into(),
        false => SystemError(format!("this takes the power `{}`, which this shell does not have", words_of(power))),
    })
}

impl System for Live {
    fn write(&mut self, text: &[u8]) {
        // There is no other place to report that this failed.
        match streams::own(1) {
            Some(stream) => drop(streams::write(stream, text)),
            None => drop(CONSOLE.write(text)),
        }
    }

    fn is_at_line_start(&mut self) -> bool {
        streams::own(1).is_some() || !CONSOLE.is_mid_line().unwrap_or(false)
    }

    fn read(&mut self) -> Input {
        // One byte at a time, so that what is typed ahead is there for the program for which it is meant.
        if let Some(stream) = streams::own(0) {
            return streams::read(stream, 1)
                .ok()
                .and_then(|bytes| bytes.first().copied())
                .map_or(Input::End, Input::Byte);
        }
        let mut buffer = [0];
        input_of(CONSOLE.read(&mut buffer), buffer)
    }

    fn read_until(&mut self, deadline: u64) -> Option<Input> {
        let mut buffer = [0];
        match CONSOLE.read_until(&mut buffer, Instant::from_ticks(deadline)) {
            Ok(None) => None,
            Ok(Some(count)) => Some(input_of(Ok(count), buffer)),
            Err(failure) => Some(input_of(Err(failure), buffer)),
        }
    }

    fn take_terminal(&mut self) -> Terminal {
        if streams::own(0).is_some() {
            return Terminal::None;
        }
        let is_ours = CONSOLE.set_foreground(self.pid, None).is_ok();
        if is_ours && CONSOLE.set_mode(Mode::Raw).is_ok() { Terminal::Ours } else { Terminal::Others }
    }

    fn own_pid(&self) -> u64 {
        self.pid
    }

    fn process(&mut self, pid: u64) -> Result<Process, SystemError> {
        cores::status(pid)
    }

    fn next_process(&mut self, after: u64) -> Option<Process> {
        cores::next(after)
    }

    fn memory_of(&mut self, pid: u64) -> Option<u64> {
        cores::memory_of(pid)
    }

    fn powers(&self) -> Powers {
        own_powers()
    }

    fn prepare(&mut self, core: u64, words: &[String], settings: Settings) -> Result<Option<u64>, SystemError> {
        let Some((program, arguments)) = words.split_first() else { return Ok(None) };
        let Some(spawn) = prepare(cores::procs(core)?, program)? else { return Ok(None) };
        let preparing = Preparing { spawn, given: [false; 3] };
        let said = self.description.get_or_insert_with(description::read).as_ref();
        let said = said.and_then(|system| effective_settings::find(system, program));
        let effective = effective_settings::resolve(said, settings, cores::highest_priority());
        let settled =
            configure(&spawn, &effective, settings.powers).and_then(|()| pass_on(&spawn, arguments, &effective));
        if let Err(refusal) = settled {
            spawn.abandon();
            return Err(refusal);
        }
        self.preparing.push(preparing);
        Ok(Some(spawn.process()))
    }

    fn least_loaded(&mut self) -> Result<u64, SystemError> {
        cores::least_loaded()
    }

    fn give(&mut self, pid: u64, standard: Standard, stream: Stream) -> Result<(), SystemError> {
        let index = standard as usize;
        let Some(preparing) = self.preparing.iter_mut().find(|preparing| preparing.spawn.process() == pid) else {
            return Err(SystemError(format!("process {pid} is not being prepared")));
        };
        preparing.given[index] = true;
        give(&preparing.spawn, index, stream)
    }

    fn start(&mut self, pid: u64) -> Result<(), SystemError> {
        let Some(preparing) = self.take_prepared(pid) else { return Ok(()) };
        let Preparing { spawn, given } = &preparing;
        for index in (0..given.len()).filter(|index| !given[*index]) {
            if let Some(stream) = streams::own(index)
                && let Err(refusal) = give(spawn, index, stream)
            {
                spawn.abandon();
                return Err(refusal);
            }
        }
        match spawn.start_or_defect() {
            Ok(_) => Ok(()),
            Err((failure, None)) => Err(failure.into()),
            Err((failure, Some(defect))) => Err(SystemError(format!("{failure}: {defect}"))),
        }
    }

    fn abandon(&mut self, pid: u64) {
        if let Some(preparing) = self.take_prepared(pid) {
            preparing.spawn.abandon();
        }
    }

    fn set_foreground(&mut self, pids: &[u64], reader: u64, on_key: OnKey) {
        if self.keys.is_none() {
            self.keys = Keys::new();
        }
        cores::prepare(pids);
        keys::set(pids, on_key);
        // A shell whose terminal belongs to another process waits as well, but without keys.
        if CONSOLE.set_foreground(reader, self.keys.map(|keys| keys.interrupt)).is_ok() {
            if let Some(keys) = self.keys.filter(|_| on_key == OnKey::Handle) {
                // If this fails, Ctrl-Z is an ordinary character.
                let _ = again(|| CONSOLE.set_suspend_signal(keys.suspend));
            }
            let _ = CONSOLE.set_mode(Mode::Canonical);
        }
    }

    fn lend(&mut self, pid: u64) -> Result<(), SystemError> {
        again(|| CONSOLE.lend(pid)).map_err(|failure| match failure {
            tench::console::Failure::Refused(ConsoleError::NotYours) => SystemError(NOT_LENT.into()),
            failure => failure.into(),
        })
    }

    fn wait(&mut self, pids: &[u64]) -> Result<Waited, SystemError> {
        let mut ends = Vec::with_capacity(pids.len());
        let mut outcome: Result<(), SystemError> = Ok(());
        for &pid in pids {
            if keys::is_stopped() {
                break;
            }
            match cores::wait(pid) {
                Wait::Ended(end) => ends.push(end),
                Wait::Aborted => break,
                Wait::Refused(refusal) => {
                    outcome = Err(refusal);
                    break;
                }
            }
        }
        let on_key = keys::clear();
        outcome?;
        Ok(match on_key {
            Some(OnKey::Handle) if ends.len() == pids.len() && keys::is_interrupted() => Waited::EndedEarly(ends),
            _ if ends.len() == pids.len() => Waited::Ended(ends),
            Some(OnKey::Handle) => Waited::Suspended,
            _ => Waited::Interrupted,
        })
    }

    fn kill(&mut self, pid: u64) -> Result<(), SystemError> {
        cores::kill(pid)
    }

    fn suspend(&mut self, pid: u64) -> Result<(), SystemError> {
        cores::suspend(pid)
    }

    fn resume(&mut self, pid: u64) -> Result<(), SystemError> {
        cores::resume(pid)
    }

    fn capabilities(&mut self, pid: u64) -> Result<Vec<Capability>, SystemError> {
        if !cores::is_here(pid) {
            return Err(SystemError("capabilities of another core's processes are not shown".into()));
        }
        let mut capabilities = Vec::new();
        let mut from = CapAddress::NULL;
        loop {
            let (next, found) = PROCS.capabilities(pid, from)?;
            capabilities.extend(found);
            from = next;
            if from == CapAddress::NULL {
                return Ok(capabilities);
            }
        }
    }

    fn memory(&mut self) -> Result<Totals, SystemError> {
        Ok(Mem::STANDARD.totals()?)
    }

    fn extents(&mut self, from: u64) -> Result<Vec<Extent>, SystemError> {
        let mut found = [Extent::default(); MAX_EXTENTS];
        let count = Mem::STANDARD.extents(from, &mut found)?;
        Ok(found[..count].to_vec())
    }

    fn next_account(&mut self, after: u64) -> Option<Account> {
        Mem::STANDARD.next_account(after).ok()
    }

    fn next_name(&mut self, after: &str) -> Option<Name> {
        let (name, pid) = again(|| Names::STANDARD.next(after)).ok()?;
        Some(Name { pid, name: name.as_str().into() })
    }

    fn next_reservation(&mut self, after: u64) -> Result<Option<Reservation>, SystemError> {
        // The server may have been restarted, so it is looked up each time.
        let slot = memory::take_slot()?;
        let found = Names::STANDARD.look_up(Reserve::NAME, slot).map_err(SystemError::from);
        let next = found.and_then(|server| Ok(Reserve::at(server).next(after)?));
        // The slot is not empty, if the name is registered.
        let _ = OWN_CSPACE.delete_at(slot);
        memory::free_slot(slot);
        next
    }

    fn entries(&mut self, directory: &str) -> Result<Vec<Entry>, SystemError> {
        streams::entries(directory)
    }

    fn entry(&mut self, path: &str) -> Result<Entry, SystemError> {
        streams::entry(path)
    }

    fn make_directory(&mut self, path: &str) -> Result<(), SystemError> {
        streams::change(|| Files::STANDARD.make_directory(path))
    }

    fn remove(&mut self, path: &str) -> Result<(), SystemError> {
        streams::change(|| Files::STANDARD.remove(path))
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), SystemError> {
        streams::change(|| Files::STANDARD.rename(from, to))
    }

    fn pipe(&mut self) -> Result<(Stream, Stream), SystemError> {
        streams::pipe()
    }

    fn open(&mut self, path: &str, how: How) -> Result<Stream, SystemError> {
        streams::open(path, how)
    }

    fn read_stream(&mut self, stream: Stream) -> Result<Vec<u8>, SystemError> {
        streams::read(stream, usize::MAX)
    }

    fn write_stream(&mut self, stream: Stream, bytes: &[u8]) -> Result<(), Unwritten> {
        streams::write(stream, bytes)
    }

    fn close(&mut self, stream: Stream) {
        streams::close(stream);
    }

    fn ticks(&mut self) -> u64 {
        Instant::now().ticks()
    }

    fn ticks_per_second(&mut self) -> u64 {
        process::info().map_or(1, |info| info.counter_frequency)
    }

    fn wall_clock(&mut self) -> Result<Duration, SystemError> {
        Ok(tench::time::wall_clock()?)
    }

    fn instructions(&mut self) -> u64 {
        // A shell that may not query the kernel counts none.
        self.kernel.query(Statistic::Instructions).unwrap_or(0)
    }

    fn statistic(&mut self, which: Statistic) -> Result<u64, SystemError> {
        for_want_of(Powers::COUNTERS, self.kernel.query(which))
    }

    fn irq_off_intervals(&mut self, path: u64) -> Result<IrqOffIntervals, SystemError> {
        for_want_of(Powers::COUNTERS, self.kernel.irq_off_intervals(path))
    }

    fn power_off(&mut self, status: u8) -> SystemError {
        // Output that cannot be shown is no reason to stay on.
        let _ = CONSOLE.drain();
        let error = self.kernel.power_off(status);
        for_want_of::<()>(Powers::POWER, Err(error)).err().unwrap_or(error.into())
    }
}
