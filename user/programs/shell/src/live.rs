//! The system that is really there: servers and kernel.
//!
//! Ctrl-C while a program runs: the console, which then edits lines itself, signals a notification. A thread of its own
//! waits for it, because the main thread waits for the program's end. It kills the program, or, if the main thread only
//! waits for a process that is none of its business, ends that wait by suspending and resuming the main thread.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use tench::console::Console;
use tench::console::protocol::{Error as ConsoleError, Mode};
use tench::mem::protocol::MAX_EXTENTS;
use tench::mem::{Account, Extent, Mem, Totals};
use tench::names::Names;
use tench::procs::protocol::{Error as ProcsError, MAX_FILE_TEXT};
use tench::procs::{Capability, Procs, Spawn, Standing, Status};
use tench::sys::abi::layout::slot;
use tench::sys::abi::object::Statistic;
use tench::sys::thread::yield_now;
use tench::sys::{Cap, CapAddress, Error, Instant, Kernel, Notification, Thread};
use tench::{again, memory, process, thread};
use tench_shell::system::{End, File, Input, Name, OnInterrupt, Process, Refusal, System, Waited};

const CONSOLE: Console<Standing> = Console::STANDARD;
const PROCS: Procs = Procs::STANDARD;

/// What Ctrl-C is about: a process to kill, or one of the following.
static TARGET: AtomicU64 = AtomicU64::new(NOTHING);
/// Nothing: no process has this number.
const NOTHING: u64 = 0;
/// The wait of the main thread.
const OWN_WAIT: u64 = u64::MAX;

/// Servers and kernel.
pub struct Live {
    pid: u64,
    kernel: Cap<Kernel>,
    /// What the console signals on Ctrl-C, once that was needed.
    interrupt: Option<Cap<Notification>>,
}

impl Live {
    /// Finds out what is there.
    pub fn new() -> Live {
        Live { pid: process::id(), kernel: Cap::new(slot::KERNEL), interrupt: None }
    }

    /// What the console has to signal on Ctrl-C. The first time, starts the thread that waits for it; without memory
    /// for that, programs run all the same, and Ctrl-C does nothing.
    fn interrupt(&mut self) -> Option<Cap<Notification>> {
        if self.interrupt.is_none() {
            let notification = memory::make::<Notification>(0).ok()?.leak();
            let thread = thread::Builder::new().spawn(move || obey(notification)).ok()?;
            drop(thread);
            self.interrupt = Some(notification);
        }
        self.interrupt
    }
}

/// Does what Ctrl-C asks for, again and again.
fn obey(interrupt: Cap<Notification>) {
    while interrupt.wait().is_ok() {
        match TARGET.load(Ordering::Acquire) {
            NOTHING => {}
            OWN_WAIT => {
                let main = Cap::<Thread>::new(slot::THREAD);
                // A thread that has been suspended can be resumed.
                let _ = main.suspend().and_then(|()| main.resume());
            }
            // It may just have ended by itself.
            process => drop(PROCS.kill(process)),
        }
    }
}

fn process_of(status: &Status) -> Process {
    Process {
        pid: status.process,
        parent: status.parent,
        state: status.state,
        detail: status.detail,
        priority: status.priority,
        ticks: status.ticks,
        size: status.size,
        name: status.name.as_str().into(),
    }
}

/// Gives a prepared process its arguments and the shell's own environment.
fn pass_on(spawn: &Spawn, arguments: &[String]) -> Result<(), Refusal> {
    for argument in arguments {
        spawn.argument(argument)?;
    }
    for entry in process::env() {
        spawn.environment(entry)?;
    }
    Ok(())
}

impl System for Live {
    fn write(&mut self, text: &[u8]) {
        // There is no other place to say that this failed.
        let _ = CONSOLE.write(text);
    }

    fn is_at_line_start(&mut self) -> bool {
        !CONSOLE.is_mid_line().unwrap_or(false)
    }

    fn read(&mut self) -> Input {
        // One byte at a time, so that what is typed ahead is there for the program that it is meant for.
        let mut buffer = [0];
        match CONSOLE.read(&mut buffer) {
            Ok(1..) => Input::Byte(buffer[0]),
            Err(tench::console::Failure::Refused(ConsoleError::Interrupted)) => Input::Interrupted,
            Ok(0) | Err(_) => Input::End,
        }
    }

    fn take_terminal(&mut self) -> bool {
        let is_ours = CONSOLE.set_foreground(self.pid, None).is_ok();
        is_ours && CONSOLE.set_mode(Mode::Raw).is_ok()
    }

    fn own_pid(&self) -> u64 {
        self.pid
    }

    fn process(&mut self, pid: u64) -> Result<Process, Refusal> {
        Ok(process_of(&PROCS.status(pid)?))
    }

    fn next_process(&mut self, after: u64) -> Option<Process> {
        PROCS.next(after).ok().as_ref().map(process_of)
    }

    fn spawn(&mut self, words: &[String], quota: Option<u64>) -> Result<Option<u64>, Refusal> {
        let Some((program, arguments)) = words.split_first() else { return Ok(None) };
        let spawn = match PROCS.prepare(program) {
            Err(tench::procs::Failure::Refused(ProcsError::NoSuchProgram)) => return Ok(None),
            prepared => prepared?,
        };
        let limited = quota.map_or(Ok(()), |bytes| Ok(spawn.limit(bytes)?));
        if let Err(refusal) = limited.and_then(|()| pass_on(&spawn, arguments)) {
            spawn.abandon();
            return Err(refusal);
        }
        match spawn.start_or_defect() {
            Ok(pid) => Ok(Some(pid)),
            Err((failure, None)) => Err(failure.into()),
            Err((failure, Some(defect))) => Err(Refusal(format!("{failure}: {defect}"))),
        }
    }

    fn wait(&mut self, pid: u64, on_interrupt: OnInterrupt) -> Result<Waited, Refusal> {
        let interrupt = self.interrupt();
        // The thread that obeys Ctrl-C has the same priority: if it was woken for the program before, it is its turn
        // now, and finds nothing to do.
        yield_now();
        let (target, foreground) = match on_interrupt {
            OnInterrupt::Kill => (pid, pid),
            OnInterrupt::StopWaiting => (OWN_WAIT, self.pid),
        };
        TARGET.store(target, Ordering::Release);
        // A shell whose terminal belongs to another waits as well, but for Ctrl-C.
        let _ = CONSOLE.set_foreground(foreground, interrupt).and_then(|()| CONSOLE.set_mode(Mode::Canonical));
        let waited = PROCS.wait(pid);
        TARGET.store(NOTHING, Ordering::Release);
        match waited {
            Ok(status) => End::of(status.state, status.detail).map(Waited::Ended).ok_or(Refusal("it goes on".into())),
            Err(tench::procs::Failure::Lost(Error::Aborted)) => Ok(Waited::Interrupted),
            Err(failure) => Err(failure.into()),
        }
    }

    fn kill(&mut self, pid: u64) -> Result<(), Refusal> {
        Ok(PROCS.kill(pid)?)
    }

    fn suspend(&mut self, pid: u64) -> Result<(), Refusal> {
        Ok(PROCS.suspend(pid)?)
    }

    fn resume(&mut self, pid: u64) -> Result<(), Refusal> {
        Ok(PROCS.resume(pid)?)
    }

    fn capabilities(&mut self, pid: u64) -> Result<Vec<Capability>, Refusal> {
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

    fn memory(&mut self) -> Result<Totals, Refusal> {
        Ok(Mem::STANDARD.totals()?)
    }

    fn extents(&mut self, from: u64) -> Result<Vec<Extent>, Refusal> {
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

    fn file(&mut self, index: u64) -> Option<File> {
        let (path, size) = PROCS.file(index).ok()?;
        Some(File { path: path.as_str().into(), size })
    }

    fn read_file(&mut self, path: &str, offset: u64) -> Result<Vec<u8>, Refusal> {
        let mut bytes = vec![0; MAX_FILE_TEXT];
        let count = PROCS.read_file(path, offset, &mut bytes)?;
        bytes.truncate(count);
        Ok(bytes)
    }

    fn ticks(&mut self) -> u64 {
        Instant::now().ticks()
    }

    fn ticks_per_second(&mut self) -> u64 {
        process::info().map_or(1, |info| info.counter_frequency)
    }

    fn instructions(&mut self) -> u64 {
        tench::sys::time::instructions()
    }

    fn statistic(&mut self, which: Statistic) -> Result<u64, Refusal> {
        Ok(self.kernel.query(which)?)
    }

    fn power_off(&mut self, status: u8) -> Refusal {
        // What cannot be shown is not worth staying on for.
        let _ = CONSOLE.drain();
        self.kernel.power_off(status).into()
    }
}
