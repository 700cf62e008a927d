//! An instance: the processes with everything that they share. Here calls and faults come in, and threads go on.
//!
//! ```text
//!   call, fault ──▶ Caller ──▶ Outcome ──▶ conclude ──▶ answer, wait, run, end
//!                                             ▲
//!   input, time, other calls ──▶ settle ──────┘  calls made again, signals delivered
//! ```
//! A call that has to wait is made again when what it waits for may have happened. Signals reach a process when its
//! call is over, while it waits, or, if it runs, at once.

mod ending;
mod entering;
mod restarting;
mod signalling;
mod tracing;

pub use restarting::Interrupted;

pub(crate) use ending::{child_code, end_code};

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use tench_linux_files::{Errno, Tree};
use tench_linux_memory::{Access, Denied};

use crate::caller::{Caller, Outcome};
use crate::descriptors::Descriptors;
use crate::exec::Image;
use crate::mounts::errand::Finding;
use crate::process::{Process, Status};
use crate::processes::Processes;
use crate::signals::{Cause, Info, number};
use crate::spaces::Used;
use crate::terminals::TerminalId;
use crate::thread::{FloatRegisters, Registers, Rest, State, Thread};
use crate::tracing::Point;
use crate::waiting::Alarm;
use crate::{Machine, System};

/// Number of the first process.
pub(crate) const FIRST: u32 = 1;

/// Size of an instruction.
const INSTRUCTION: u64 = 4;

/// Something that a thread could not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An access to memory.
    Access {
        /// The address.
        address: u64,
        /// The kind of access.
        access: Access,
        /// Address of the instruction.
        instruction: u64,
    },
    /// An access to a misaligned address by an instruction that needs alignment, such as an atomic one.
    Misaligned {
        /// The address.
        address: u64,
        /// Address of the instruction.
        instruction: u64,
    },
    /// An instruction that does not exist, or that programs may not execute.
    Instruction(u64),
    /// A breakpoint (`brk`) at an address.
    Breakpoint(u64),
    /// The end of a single step before the instruction at an address.
    Step(u64),
}

/// An instance.
#[derive(Debug)]
pub struct Instance<M: Machine> {
    /// Everything that the processes share.
    pub system: System<M>,
    /// The processes.
    pub processes: Processes<M>,
    /// How the first process has ended.
    status: Option<Status>,
    /// The fault that has ended the first process.
    fault: Option<Fault>,
}

impl<M: Machine> Instance<M> {
    /// Returns an instance without processes.
    pub const fn new(system: System<M>) -> Instance<M> {
        Instance { system, processes: Processes::new(), status: None, fault: None }
    }

    /// Starts the first process, whose standard streams are those outside.
    ///
    /// # Errors
    /// Those of loading the program.
    pub fn start(&mut self, path: &[u8], arguments: &[Vec<u8>], environment: &[Vec<u8>]) -> Result<(), Errno> {
        let (image, path) = self.system.load(Tree::ROOT, path, arguments, environment)?;
        let made = self.system.memory.hardware.make_thread(image.space.root(), FIRST);
        let thread = match made {
            Ok(thread) => Thread::new(FIRST, thread),
            Err(error) => {
                image.space.end(&mut self.system.memory);
                return Err(error);
            }
        };
        let mut descriptors = Descriptors::default();
        self.system.open_streams(&mut descriptors)?;
        // For its working directory and its root.
        self.system.tree.share(Tree::ROOT);
        self.system.tree.share(Tree::ROOT);
        let Image { space, entry, stack, heap, layout } = image;
        let space = self.system.spaces.add(Used::new(space, heap));
        let mut process = Process::new(thread, space, descriptors);
        process.set_program(&path);
        process.terminal = Some(TerminalId::Console);
        (process.layout, process.started) = (layout, self.system.tree.now);
        self.processes.add(Box::new(process));
        if let Some(process) = self.processes.take(FIRST) {
            self.run(process, &first_registers(entry, stack), Rest::Stopped);
        }
        Ok(())
    }

    /// Makes a thread's call.
    pub fn call(&mut self, thread: u32, number: u64, arguments: &[u64; 6]) {
        let Some(mut process) = self.processes.take_thread(thread) else { return };
        if process.thread().sends {
            self.forget_call(&mut process);
        }
        let outcome = self.caller(&mut process).call(number, arguments);
        self.conclude(process, outcome);
        self.settle();
    }

    fn caller<'a>(&'a mut self, process: &'a mut Process<M>) -> Caller<'a, M> {
        Caller { system: &mut self.system, process, others: &mut self.processes }
    }

    /// Makes an access of a thread possible, or sends it a signal.
    pub fn fault(&mut self, thread: u32, fault: Fault) {
        while self.has_to_try_again(thread, fault) {}
        self.settle();
    }

    /// As [`fault`](Self::fault), without what follows from it. Returns whether there was no page for the access, and
    /// there may be one now.
    fn has_to_try_again(&mut self, thread: u32, fault: Fault) -> bool {
        let Some(mut process) = self.processes.take_thread(thread) else { return false };
        if process.thread().sends {
            self.forget_call(&mut process);
        }
        let (signal, code, address) = match fault {
            Fault::Access { address, access, .. } => {
                let System { memory, spaces, .. } = &mut self.system;
                match spaces.get(process.space).space.fault(memory, address, access) {
                    Ok(()) => {
                        self.conclude(process, Outcome::Resume);
                        return false;
                    }
                    // SEGV_MAPERR, SEGV_ACCERR, BUS_ADRERR
                    Err(Denied::NoArea) => (number::SEGV, 1, address),
                    Err(Denied::NoRight) => (number::SEGV, 2, address),
                    Err(Denied::BeyondEnd) => (number::BUS, 2, address),
                    Err(Denied::NoMemory) => return self.end_for(process),
                }
            }
            // BUS_ADRALN
            Fault::Misaligned { address, .. } => (number::BUS, 1, address),
            // ILL_ILLOPC
            Fault::Instruction(address) => (number::ILL, 1, address),
            // TRAP_BRKPT
            Fault::Breakpoint(address) => (number::TRAP, 1, address),
            Fault::Step(address) => {
                // If not, the tracer wants it no more.
                if Self::has_made_step(&mut process) {
                    self.caller(&mut process).account_for_fault();
                    process.force(Info::of_step(address));
                }
                self.conclude(process, Outcome::Resume);
                return false;
            }
        };
        if process.id == FIRST {
            self.fault = Some(fault);
        }
        self.caller(&mut process).account_for_fault();
        process.force(Info { signal, code, cause: Cause::Fault { address } });
        self.conclude(process, Outcome::Resume);
        false
    }

    /// Takes input from outside; nothing if there will be no more.
    pub fn input(&mut self, bytes: &[u8]) {
        self.system.input(bytes);
        for signal in self.system.terminals.console.discipline.take_signals() {
            self.signal_foreground(signal.number());
        }
        self.settle();
    }

    /// Takes the finding of an errand.
    pub fn take_finding(&mut self, number: u64, finding: Result<Finding, Errno>) {
        self.system.take_finding(number, finding);
        self.settle();
    }

    /// Sends the signal of Ctrl-C, which the console has taken, to the processes that use the terminal.
    pub fn interrupt(&mut self) {
        self.signal_foreground(number::INT);
        self.settle();
    }

    fn signal_foreground(&mut self, signal: u32) {
        let foreground = self.system.terminals.console.discipline.foreground();
        for process in self.processes.iter_mut().filter(|process| Some(process.group) == foreground) {
            self.system.send(process, Info::from_system(signal));
        }
    }

    /// Returns when [`pass_time`](Self::pass_time) is due: time since the machine started.
    pub fn deadline(&self) -> Option<Duration> {
        self.system.waiters.next_deadline()
    }

    /// Ends the waits that have lasted long enough, and sends the signals for which it is time.
    pub fn pass_time(&mut self) {
        let now = self.system.memory.hardware.monotonic();
        while let Some((alarm, whose)) = self.system.waiters.take_due(now) {
            match alarm {
                Alarm::Wait => self.system.waiters.make_ready(whose),
                Alarm::Signal => self.sound(whose, now),
                Alarm::Timer => self.system.pass_timer(whose, now),
                Alarm::SignalTimer => self.sound_timer(whose, now),
                Alarm::Look => self.look(whose),
            }
        }
        self.settle();
    }

    /// Sends the signal of a process's timer that is due.
    fn sound_timer(&mut self, name: u32, now: Duration) {
        let Some((process, id)) = self.system.timers.get(name) else { return };
        if let Some(process) = self.processes.get(process) {
            self.system.sound_timer(process, id, now);
        }
    }

    /// Looks at the timers of a process that count how long it runs.
    fn look(&mut self, id: u32) {
        let Some(mut process) = self.processes.take(id) else { return };
        process.running.look = None;
        self.system.look(&mut process, &self.processes);
        self.processes.put(process);
    }

    /// Returns how the first process has ended, with its last fault if that has ended it. All others have ended, too.
    pub fn status(&self) -> Option<(Status, Option<Fault>)> {
        let status = self.status?;
        Some((status, self.fault.filter(|_| matches!(status, Status::Killed(_)))))
    }

    /// Lets the present thread of a process go on, wait or end after its call or fault.
    #[inline(always)]
    fn conclude(&mut self, process: Box<Process<M>>, outcome: Outcome) {
        match outcome {
            Outcome::Return(result) if !process.is_due() => self.answer(process, Some(result)),
            outcome => self.conclude_otherwise(process, outcome),
        }
    }

    /// Answers the call or fault of the present thread of a process, to which no signal has come.
    #[inline(always)]
    fn answer(&mut self, mut process: Box<Process<M>>, result: Option<u64>) {
        let thread = process.thread_mut();
        thread.signals.restore_blocked();
        self.system.memory.hardware.answer(&mut thread.machine, result);
        self.processes.put(process);
    }

    /// As [`conclude`](Self::conclude), in all other cases than that of a call that returns.
    fn conclude_otherwise(&mut self, process: Box<Process<M>>, outcome: Outcome) {
        let result = match outcome {
            Outcome::Return(result) => Some(result),
            Outcome::Resume => None,
            Outcome::Wait => return self.wait(process),
            Outcome::Run { entry, stack } => return self.run_program(process, entry, stack),
            Outcome::Stop => {
                let registers = self.system.memory.hardware.registers(&process.thread().machine);
                return self.trap(process, Point::Entry, registers, Rest::Waits);
            }
            Outcome::Traced(outcome) => return self.conclude_traced(process, *outcome),
            Outcome::Enter(entering) => return self.enter(process, &entering),
            Outcome::Yield => return self.give_way(process),
            Outcome::EndThread(code) => return self.end_thread(process, Status::Exited(code)),
            Outcome::Exit(code) => return self.end(process, Status::Exited(code)),
        };
        if !process.is_due() {
            return self.answer(process, result);
        }
        if process.thread().sends {
            return self.go_on_after_message(process, result.unwrap_or(0));
        }
        let mut registers = self.system.memory.hardware.registers(&process.thread().machine);
        if let Some(result) = result {
            registers.x[0] = result;
        }
        self.go_on(process, registers, Rest::Waits);
    }

    /// Lets all other threads run before the present one of a process goes on.
    fn give_way(&mut self, mut process: Box<Process<M>>) {
        if process.is_due() {
            return self.conclude_otherwise(process, Outcome::Return(0));
        }
        let thread = process.thread_mut();
        thread.signals.restore_blocked();
        self.system.memory.hardware.give_way(&mut thread.machine, 0);
        self.processes.put(process);
    }

    /// Lets a call wait.
    fn wait(&mut self, mut process: Box<Process<M>>) {
        let is_due = process.is_due();
        let thread = process.thread_mut();
        thread.state = State::Waits;
        if let Some(waiting) = &thread.waiting {
            self.system.waiters.add(thread.id, waiting);
        }
        self.system.memory.hardware.keep(&mut thread.machine);
        if is_due {
            self.system.signalled.push_back(process.id);
        }
        self.processes.put(process);
    }

    /// Runs a new program, which has the memory of its process already.
    fn run_program(&mut self, mut process: Box<Process<M>>, entry: u64, stack: u64) {
        let System { memory, spaces, .. } = &mut self.system;
        memory.hardware.stop(&mut process.thread_mut().machine);
        let root = spaces.get(process.space).space.root();
        memory.hardware.move_thread(&mut process.thread_mut().machine, root);
        self.system.set_buffer(process.thread_mut(), None);
        let System { memory, .. } = &mut self.system;
        let thread = &mut process.thread_mut().machine;
        memory.hardware.set_float_registers(thread, &FloatRegisters { q: [0; 32], status: 0, control: 0 });
        self.begin_traced(process, first_registers(entry, stack));
    }

    /// Stops the present thread of a process. Returns its registers.
    fn stop_thread(&mut self, process: &mut Process<M>) -> Registers {
        let hardware = &mut self.system.memory.hardware;
        let thread = &mut process.thread_mut().machine;
        hardware.stop(thread);
        hardware.registers(thread)
    }

    /// Lets the present thread of a process run, which is at rest.
    fn run(&mut self, mut process: Box<Process<M>>, registers: &Registers, rest: Rest) {
        let thread = process.thread_mut();
        thread.state = State::Runs;
        thread.signals.restore_blocked();
        let hardware = &mut self.system.memory.hardware;
        match rest {
            Rest::Stopped => hardware.run(&mut thread.machine, registers),
            Rest::Waits => {
                hardware.set_registers(&mut thread.machine, registers);
                hardware.answer(&mut thread.machine, None);
            }
        }
        self.processes.put(process);
    }

    /// Makes calls again and delivers signals until nothing of that is left to do.
    #[inline]
    fn settle(&mut self) {
        if self.system.waiters.has_ready() || !self.system.signalled.is_empty() {
            self.settle_all();
        }
    }

    fn settle_all(&mut self) {
        while self.status.is_none() {
            // What a thread waits for comes before a signal that comes with it.
            if let Some(thread) = self.system.waiters.take_ready() {
                self.make_again(thread);
            } else if let Some(process) = self.system.signalled.pop_front() {
                self.attend(process);
            } else {
                break;
            }
        }
    }

    /// Makes a thread's call again that has waited.
    fn make_again(&mut self, thread: u32) {
        // What is no thread stands for files.
        let Some(mut process) = self.processes.take_thread(thread) else {
            self.hang_up();
            return self.signal_owners();
        };
        if process.thread().state != State::Waits || process.is_stopped {
            return self.processes.put(process);
        }
        let Some(waiting) = &process.thread().waiting else { return self.processes.put(process) };
        self.system.waiters.remove(thread, waiting);
        let (number, arguments) = (waiting.number, waiting.arguments);
        process.thread_mut().state = State::Runs;
        let outcome = self.caller(&mut process).call(number, &arguments);
        self.conclude(process, outcome);
    }
}

/// Returns the registers with which a program begins.
fn first_registers(entry: u64, stack: u64) -> Registers {
    Registers { pc: entry, sp: stack, ..Registers::ZERO }
}
