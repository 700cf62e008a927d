//! The thread of a process, and its calls and faults, which come as messages.

use alloc::format;
use alloc::string::String;

use tench::abi::fault::{Access as KernelAccess, Class, ForeignCall, Registers, Report, reply};
use tench::abi::layout::slot;
use tench::memory::{Made, make};
use tench::sys::thread::{Binding, Bindings};
use tench::sys::{Cap, CapNode, Endpoint, Message, Received, Reply, SchedulingContext, Thread, Wait};
use tench_linux::{Caller, Outcome, Process, System};
use tench_linux_memory::{Access, Denied};

use crate::machine::Kernel;

/// Log2 of the number of slots of a process's CSpace, which stay empty.
const SLOTS: u64 = 8;

/// The kernel's objects for a thread.
struct Objects {
    thread: Made<Thread>,
    scheduling: Made<SchedulingContext>,
    cspace: Made<CapNode>,
    endpoint: Made<Endpoint>,
    reply: Made<Reply>,
}

impl Objects {
    fn new(process: &Process<Kernel>) -> Result<Objects, tench::memory::Error> {
        let objects = Objects {
            thread: make(0)?,
            scheduling: make(0)?,
            cspace: make(SLOTS)?,
            endpoint: make(0)?,
            reply: make(0)?,
        };
        let authority = Cap::<SchedulingContext>::new(slot::SCHEDULING);
        let own = authority.query()?;
        let priority = own.priority.saturating_sub(1);
        objects.scheduling.cap().configure(priority, priority, own.slice, Some(authority))?;
        let thread = objects.thread.cap();
        objects.configure(process)?;
        thread.bind(Bindings { scheduling: Binding::To(objects.scheduling.cap()), ..Bindings::KEEP })?;
        for class in Class::STOPPING {
            thread.faults_to(class, Some(objects.endpoint.cap()))?;
        }
        Ok(objects)
    }

    /// Gives the thread the process's memory.
    fn configure(&self, process: &Process<Kernel>) -> Result<(), tench::sys::Error> {
        self.thread.cap().configure(self.cspace.cap(), process.space.root().table(), None)
    }

    /// Lets the thread run from an instruction on.
    fn start(&self, entry: u64, stack: u64) -> Result<(), tench::sys::Error> {
        let registers = Registers { pc: entry, sp: stack, ..Registers::ZERO };
        // SAFETY: the thread has an address space of its own.
        unsafe { self.thread.cap().write_registers(&registers, true) }
    }
}

/// Runs a process until it ends. Returns its code.
///
/// # Errors
/// Says what the kernel refuses.
pub fn run(system: &mut System<Kernel>, process: &mut Process<Kernel>, entry: u64, stack: u64) -> Result<i32, String> {
    let objects = Objects::new(process).map_err(|error| format!("its thread cannot be made: {error}"))?;
    let refused = |error| format!("the kernel refuses what its thread needs: {error}");
    objects.start(entry, stack).map_err(refused)?;
    let wait = Wait::FOREVER.with_reply(objects.reply.cap());
    let mut received = objects.endpoint.cap().receive(wait).map_err(refused)?;
    loop {
        received = match answer(system, process, &received) {
            Next::Reply(label, result) => {
                let message = Message::with_words(label, &[result]);
                objects.endpoint.cap().reply_receive(&message, wait).map_err(refused)?
            }
            Next::Run { entry, stack } => {
                objects.thread.cap().suspend().map_err(refused)?;
                objects.configure(process).map_err(refused)?;
                objects.start(entry, stack).map_err(refused)?;
                objects.endpoint.cap().receive(wait).map_err(refused)?
            }
            Next::End(code) => return Ok(code),
        };
    }
}

/// The answer to a message.
enum Next {
    /// The reply with this label lets the thread go on, perhaps with this result.
    Reply(u64, u64),
    /// The thread runs another program.
    Run { entry: u64, stack: u64 },
    /// The process has ended with this code.
    End(i32),
}

/// Does what a message asks for.
fn answer(system: &mut System<Kernel>, process: &mut Process<Kernel>, received: &Received) -> Next {
    let mut words = [0; 8];
    for (word, value) in words.iter_mut().zip(received.words()) {
        *word = *value;
    }
    if received.label() & 0xffff == Class::ForeignCall as u64 {
        let call = ForeignCall::of_message(received.label(), &words);
        let mut caller = Caller { system, process };
        return match caller.call(call.number, call.arguments) {
            Outcome::Return(result) => Next::Reply(reply::RESULT, result),
            Outcome::Run { entry, stack } => Next::Run { entry, stack },
            Outcome::Exit(code) => Next::End(code.into()),
            Outcome::Kill(signal) => end_by_signal(process, signal, ""),
        };
    }
    let report = Report::of_message(received.label(), &words);
    if report.class == Class::PageFault as u64 {
        let access = match report.access() {
            KernelAccess::Read => Access::Read,
            KernelAccess::Write => Access::Write,
            KernelAccess::Execute => Access::Execute,
        };
        return match process.space.fault(&mut system.memory, report.address, access) {
            Ok(()) => Next::Reply(reply::RESUME, 0),
            Err(denied) => {
                let doing = match access {
                    Access::Read => "reads",
                    Access::Write => "writes",
                    Access::Execute => "executes",
                };
                let what = format!(": it {doing} {:#x} at {:#x}", report.address, report.instruction);
                end_by_signal(process, denied_signal(denied), &what)
            }
        };
    }
    let what = format!(": its instruction at {:#x} does not exist", report.instruction);
    end_by_signal(process, ILLEGAL_INSTRUCTION, &what)
}

const ILLEGAL_INSTRUCTION: u32 = 4;

/// Returns the signal of a denied access.
const fn denied_signal(denied: Denied) -> u32 {
    match denied {
        Denied::NoArea | Denied::NoRight => 11,
        Denied::BeyondEnd | Denied::NoMemory => 7,
    }
}

/// Ends a process by a signal, and reports that.
fn end_by_signal(process: &Process<Kernel>, signal: u32, what: &str) -> Next {
    let name = process.name.split(|byte| *byte == 0).next().unwrap_or(&[]);
    let signal_name = tench_linux_calls::names::signal(signal).unwrap_or("RT");
    tench::eprintln!("linux: {} ended by SIG{signal_name}{what}", String::from_utf8_lossy(name));
    Next::End(128 + signal.cast_signed())
}
