//! Signals of a process: what it wants to happen at each, which it blocks, and which have come.

pub mod frame;
mod queue;

use alloc::vec;
use alloc::vec::Vec;

use tench_linux_calls::records::{sigaction, u64_at};

use crate::filters::ARCHITECTURE;

pub use queue::Queue;

/// Number of signals.
pub const SIGNALS: usize = 64;

/// Numbers of signals that the personality sends or treats in a special way.
#[allow(missing_docs, reason = "these are Linux's names without SIG; its manual pages explain them")]
pub mod number {
    pub const HUP: u32 = 1;
    pub const INT: u32 = 2;
    pub const QUIT: u32 = 3;
    pub const ILL: u32 = 4;
    pub const TRAP: u32 = 5;
    pub const BUS: u32 = 7;
    pub const FPE: u32 = 8;
    pub const KILL: u32 = 9;
    pub const SEGV: u32 = 11;
    pub const PIPE: u32 = 13;
    pub const ALRM: u32 = 14;
    pub const CHLD: u32 = 17;
    pub const CONT: u32 = 18;
    pub const STOP: u32 = 19;
    pub const TSTP: u32 = 20;
    pub const TTIN: u32 = 21;
    pub const TTOU: u32 = 22;
    pub const URG: u32 = 23;
    pub const XCPU: u32 = 24;
    pub const XFSZ: u32 = 25;
    pub const VTALRM: u32 = 26;
    pub const PROF: u32 = 27;
    pub const WINCH: u32 = 28;
    pub const IO: u32 = 29;
    pub const SYS: u32 = 31;
    pub const RT_MIN: u32 = 32;
}

/// Flags of an action.
#[allow(missing_docs, reason = "these are Linux's names without SA_; its manual pages explain them")]
pub mod action_flag {
    pub const NOCLDSTOP: u64 = 1;
    pub const NOCLDWAIT: u64 = 2;
    pub const RESTORER: u64 = 0x0400_0000;
    pub const ONSTACK: u64 = 0x0800_0000;
    pub const RESTART: u64 = 0x1000_0000;
    pub const NODEFER: u64 = 0x4000_0000;
    pub const RESETHAND: u64 = 0x8000_0000;
}

/// A set of signals, as programs have it: bit 0 is signal 1.
pub type Set = u64;

/// Returns the set that consists of one signal.
pub const fn only(signal: u32) -> Set {
    1 << (signal - 1)
}

/// Signals that can be neither blocked nor handled nor ignored.
pub const UNBLOCKABLE: Set = only(number::KILL) | only(number::STOP);
/// Signals that stop a process, unless it says otherwise.
pub(crate) const STOPPING: Set = only(number::STOP) | only(number::TSTP) | only(number::TTIN) | only(number::TTOU);
/// Signals that do nothing, unless the process says otherwise.
const HARMLESS: Set = only(number::CHLD) | only(number::CONT) | only(number::URG) | only(number::WINCH);
/// A signal that was sent, with what its receiver can learn about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// Number of the signal.
    pub signal: u32,
    /// Why it was sent: `si_code`.
    pub code: i32,
    /// Further facts.
    pub cause: Cause,
}

/// Facts about a signal beside its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Nothing.
    None,
    /// A process sent it, perhaps with a value.
    Process {
        /// The process.
        id: u32,
        /// The process's user.
        user: u32,
        /// The value.
        value: u64,
    },
    /// A child has ended, stopped or gone on.
    Child {
        /// The child.
        id: u32,
        /// The child's user.
        user: u32,
        /// The child's exit code, or a signal.
        status: i32,
    },
    /// A timer was due.
    Timer {
        /// The timer.
        id: u32,
        /// The value that the process has given to it.
        value: u64,
    },
    /// A filter has refused a system call.
    Call {
        /// Address after the instruction that made the call.
        instruction: u64,
        /// Number of the call.
        number: u32,
        /// The data of the filter's result.
        data: u32,
    },
    /// Something has happened to an open file.
    File {
        /// The file descriptor by which the signal was requested.
        descriptor: u32,
        /// The events, as `poll` has them.
        events: u32,
    },
    /// An instruction could not be executed.
    Fault {
        /// The address that it accessed, or its own.
        address: u64,
    },
}

impl Info {
    /// Size of the record of a signal in bytes: `siginfo_t`.
    pub const SIZE: usize = 128;

    /// Returns a signal that a process sends by `kill`.
    pub const fn from_process(signal: u32, id: u32, user: u32) -> Info {
        Info { signal, code: 0, cause: Cause::Process { id, user, value: 0 } }
    }

    /// Returns the signal at the end of a single step before the instruction at an address.
    pub const fn of_step(address: u64) -> Info {
        const TRACE: i32 = 2;
        Info { signal: number::TRAP, code: TRACE, cause: Cause::Fault { address } }
    }

    /// Returns a signal that the system sends.
    pub const fn from_system(signal: u32) -> Info {
        const KERNEL: i32 = 0x80;
        Info { signal, code: KERNEL, cause: Cause::None }
    }

    /// Returns the record, as programs read it.
    pub fn record(&self) -> [u8; Info::SIZE] {
        let mut record = [0; Info::SIZE];
        let mut put = |offset: usize, word: u32| record[offset..offset + 4].copy_from_slice(&word.to_le_bytes());
        put(0, self.signal);
        put(8, self.code.cast_unsigned());
        match self.cause {
            Cause::None => {}
            Cause::Process { id, user, value } => {
                put(16, id);
                put(20, user);
                put(24, value as u32);
                put(28, (value >> 32) as u32);
            }
            Cause::Child { id, user, status } => {
                put(16, id);
                put(20, user);
                put(24, status.cast_unsigned());
            }
            Cause::Timer { id, value } => {
                put(16, id);
                put(24, value as u32);
                put(28, (value >> 32) as u32);
            }
            Cause::Call { instruction, number, data } => {
                put(4, data);
                put(16, instruction as u32);
                put(20, (instruction >> 32) as u32);
                put(24, number);
                put(28, ARCHITECTURE);
            }
            Cause::File { descriptor, events } => {
                put(16, events);
                put(24, descriptor);
            }
            Cause::Fault { address } => {
                put(16, address as u32);
                put(20, (address >> 32) as u32);
            }
        }
        record
    }
}

/// The action that a process wants at a signal, as it has set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action(pub [u8; sigaction::SIZE]);

impl Action {
    /// The action that every signal has at first.
    pub const DEFAULT: Action = Action([0; sigaction::SIZE]);

    /// Returns the address of the handler; 0 for the default, 1 if the signal is ignored.
    pub fn handler(&self) -> u64 {
        u64_at(&self.0, sigaction::HANDLER)
    }

    /// Returns the [flags](action_flag).
    pub fn flags(&self) -> u64 {
        u64_at(&self.0, sigaction::FLAGS)
    }

    /// Returns the address at which a handler ends, if the program has its own.
    pub fn restorer(&self) -> Option<u64> {
        (self.flags() & action_flag::RESTORER != 0).then(|| u64_at(&self.0, sigaction::RESTORER))
    }

    /// Returns the signals that are blocked while the handler runs.
    pub fn mask(&self) -> Set {
        u64_at(&self.0, sigaction::MASK)
    }

    /// Returns whether the signal is ignored because the process says so.
    pub fn ignores(&self) -> bool {
        self.handler() == 1
    }
}

/// Effect of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// The process ends.
    End,
    /// The process stops.
    Stop,
    /// A handler runs.
    Handle(Action),
}

/// The stack on which handlers run that want one of their own, as the process has set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack(pub [u8; Stack::SIZE]);

impl Stack {
    /// Size of the record in bytes: `stack_t`.
    pub const SIZE: usize = 24;
    /// Offset of the flag.
    pub const FLAG: usize = 8;
    /// The flag of no stack.
    pub const DISABLED: u32 = 2;
    /// No stack.
    pub const NONE: Stack = {
        let mut record = [0; Stack::SIZE];
        record[8] = Stack::DISABLED as u8;
        Stack(record)
    };

    /// Returns the addresses of the stack, if there is one.
    pub fn range(&self) -> Option<core::ops::Range<u64>> {
        let is_disabled = self.0[8] == Stack::DISABLED as u8;
        let start = u64_at(&self.0, 0);
        let end = start.checked_add(u64_at(&self.0, 16))?;
        (!is_disabled).then_some(start..end)
    }
}

/// The signals of a process, all of whose threads take them.
#[derive(Clone, Debug)]
pub struct Signals {
    /// Actions that the process wants.
    actions: Vec<Action>,
    /// Signals that have come for the process, and that any thread may take.
    pub pending: Queue,
}

/// The signals of a thread.
#[derive(Clone, Debug)]
pub struct ThreadSignals {
    /// The signals that are blocked.
    pub blocked: Set,
    /// The signals that are to be blocked again, after a call has changed them until one comes.
    pub saved: Option<Set>,
    /// The stack of handlers that want one.
    pub stack: Stack,
    /// Signals that have come for this thread.
    pub pending: Queue,
}

impl Default for Signals {
    fn default() -> Signals {
        Signals { actions: vec![Action::DEFAULT; SIGNALS], pending: Queue::new() }
    }
}

impl Default for ThreadSignals {
    fn default() -> ThreadSignals {
        ThreadSignals { blocked: 0, saved: None, stack: Stack::NONE, pending: Queue::new() }
    }
}

impl ThreadSignals {
    /// Returns the signals of a thread that this one makes: none have come.
    pub fn inherited(&self) -> ThreadSignals {
        ThreadSignals { pending: Queue::new(), saved: None, ..*self }
    }

    /// Blocks again what a call has changed until a signal comes.
    pub fn restore_blocked(&mut self) {
        self.blocked = self.saved.take().unwrap_or(self.blocked);
    }

    /// Returns whether a signal does not come through, now or once the present call is over.
    pub fn blocks(&self, signal: u32) -> bool {
        (self.blocked | self.saved.unwrap_or(0)) & only(signal) != 0
    }
}

impl Signals {
    /// Returns the signals of a process that has ended.
    pub const fn none() -> Signals {
        Signals { actions: Vec::new(), pending: Queue::new() }
    }

    /// Returns the signals of a child: the same actions, and none that have come.
    pub fn inherited(&self) -> Signals {
        Signals { actions: self.actions.clone(), pending: Queue::new() }
    }

    /// Forgets what belongs to a program when the process starts another one. What is ignored stays so.
    pub fn reset(&mut self) {
        for action in &mut self.actions {
            if !action.ignores() {
                *action = Action::DEFAULT;
            }
        }
    }

    /// Returns the action for a signal.
    pub fn action(&self, signal: u32) -> Action {
        self.actions.get(signal as usize - 1).copied().unwrap_or(Action::DEFAULT)
    }

    /// Sets the action for a signal. If the process ignores the signal then, those that have come are to be dropped.
    pub fn set_action(&mut self, signal: u32, action: Action) {
        self.actions[signal as usize - 1] = action;
    }

    /// Returns whether nothing happens at a signal.
    pub fn is_ignored(&self, signal: u32) -> bool {
        let action = self.action(signal);
        action.ignores() || action.handler() == 0 && only(signal) & HARMLESS != 0
    }

    /// Returns what happens at a signal, if anything does. A handler that is to run once only is forgotten.
    pub fn dispose(&mut self, signal: u32) -> Option<Disposition> {
        if self.is_ignored(signal) {
            return None;
        }
        let action = self.action(signal);
        if action.flags() & action_flag::RESETHAND != 0 && action.handler() > 1 {
            self.actions[signal as usize - 1] = Action::DEFAULT;
        }
        Some(match action.handler() {
            0 if only(signal) & STOPPING != 0 => Disposition::Stop,
            0 => Disposition::End,
            _ => Disposition::Handle(action),
        })
    }
}
