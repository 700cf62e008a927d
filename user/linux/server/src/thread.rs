//! Threads of processes.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::time::Duration;

pub use tench::abi::fault::{FloatRegisters, Registers};
use tench_linux_calls::Trace;
use tench_linux_calls::numbers::schedule;
use tench_linux_files::Errno;
use tench_linux_memory::{Hardware, ObjectId, Page};

use crate::Machine;
use crate::filters::Filter;
use crate::identity::Identity;
use crate::instance::Interrupted;
use crate::signals::ThreadSignals;
use crate::tracing::Tracing;
use crate::waiting::Waiting;

/// Parts of a turn of the usual length.
pub const WHOLE_TURN: u32 = 1024;

/// Returns how long the turn of a thread is with a priority, as `nice` has it: each step beyond 0 makes it a fifth
/// shorter. Below 0 it is as long as at 0, so that Linux programs have no longer turns than others.
pub fn turn(nice: i32) -> u32 {
    (0..nice).fold(WHOLE_TURN, |parts, _| parts * 4 / 5)
}

/// Wishes of a thread for how it is scheduled. They are recorded, and decide who of those that wait for a word is woken
/// first; all threads run in turns all the same, so that none has others wait that are not of its instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scheduling {
    /// `SCHED_OTHER` or another policy.
    pub policy: u32,
    /// Priority with `SCHED_FIFO` and `SCHED_RR`; 0 with others.
    pub priority: u32,
    /// The children of the thread are scheduled in the usual way.
    pub is_reset: bool,
}

impl Scheduling {
    /// Returns whether a thread without power may let it be scheduled so. Its limits let it have no priority.
    pub const fn may_become(self, new: Scheduling) -> bool {
        let is_higher = new.priority > self.priority || new.priority > 0 && new.policy != self.policy;
        let was_idle = self.policy == schedule::IDLE && new.policy != schedule::IDLE;
        let is_kept = self.is_reset && !new.is_reset;
        !is_higher && !was_idle && !is_kept
    }

    /// Returns how a child of the thread is scheduled.
    pub fn inherited(self) -> Scheduling {
        match self {
            Scheduling { is_reset: true, priority: 1.., .. } => Scheduling::default(),
            _ => Scheduling { is_reset: false, ..self },
        }
    }
}

/// The system calls that a thread may make.
#[derive(Clone, Debug, Default)]
pub enum Filtering {
    /// All calls.
    #[default]
    None,
    /// Calls that read, write, end the thread or return from a signal handler.
    Strict,
    /// Calls that filters allow.
    By(Arc<Filter>),
}

/// Why a thread does not run while signals are delivered to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// The thread's call or fault is being served, or waits. An answer lets it go on.
    Waits,
    /// The machine has stopped the thread.
    Stopped,
}

/// Activity of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The thread runs, or its call is being served.
    Runs,
    /// The thread's call waits.
    Waits,
    /// The thread has ended. It was its process's first one, and others are left.
    Ended,
}

/// The way in which a thread makes its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entrance {
    /// By exceptions, which the kernel turns into messages.
    Exceptions,
    /// By exceptions, or by messages that the program sends.
    Messages,
    /// By exceptions that the kernel lets the program handle as upcalls, from which the program sends messages.
    Upcalls {
        /// Address of the handler.
        entry: u64,
        /// The page in which the handler finds the interrupted registers.
        buffer: Page,
    },
}

/// A thread of a process.
#[derive(Debug)]
pub struct Thread<M: Machine> {
    /// Number of the thread.
    pub id: u32,
    /// The thread as the machine has it.
    pub machine: M::Thread,
    /// Activity of the thread.
    pub state: State,
    /// Set if the program has sent the present call: the thread's registers are out of reach until it has the reply.
    pub sends: bool,
    /// The object with the page of [`Entrance::Upcalls`].
    pub buffer: Option<ObjectId>,
    /// The registers with which it goes on, if it was stopped while it ran.
    pub stopped_at: Option<Registers>,
    /// The call that waits or is made again.
    pub waiting: Option<Waiting>,
    /// The line of the call that waits, if calls are traced.
    pub trace: Option<Trace>,
    /// Signals.
    pub signals: ThreadSignals,
    /// How much it lets others run in its place: from -20 to 19.
    pub nice: i32,
    /// The priority of its input and output, as `ioprio_set` has it. Nothing depends on it.
    pub io_priority: u16,
    /// How it wants to be scheduled beside others.
    pub scheduling: Scheduling,
    /// Users, groups and capabilities.
    pub identity: Identity,
    /// The system calls that it may make.
    pub filtering: Filtering,
    /// How another thread traces it, if one does.
    pub tracing: Option<Box<Tracing>>,
    /// The call that was interrupted last while the thread was traced. (It takes no memory when many stop at once.)
    pub interrupted: Option<Interrupted>,
    /// The name, at first that of its program.
    pub name: [u8; 16],
    /// The signal for the end of the process's parent; 0 for none.
    pub end_of_parent: u32,
    /// Address of a word that becomes zero when the thread ends, for others to see; 0 for none.
    pub clear_at_end: u64,
    /// Address of the list of locks that are marked when the thread ends without having released them; 0 for none.
    pub robust_list: u64,
}

impl<M: Machine> Thread<M> {
    /// Returns a thread that is about to run.
    pub fn new(id: u32, machine: M::Thread) -> Thread<M> {
        Thread {
            id,
            machine,
            state: State::Runs,
            sends: false,
            buffer: None,
            stopped_at: None,
            waiting: None,
            trace: None,
            signals: ThreadSignals::default(),
            nice: 0,
            io_priority: 0,
            scheduling: Scheduling::default(),
            identity: Identity::SUPER_USER,
            filtering: Filtering::None,
            tracing: None,
            interrupted: None,
            name: [0; 16],
            end_of_parent: 0,
            clear_at_end: 0,
            robust_list: 0,
        }
    }

    /// Returns whether the thread has stopped for its tracer.
    pub fn is_trapped(&self) -> bool {
        self.tracing.as_ref().is_some_and(|tracing| tracing.stop.is_some())
    }

    /// Sets the name, of which 15 bytes count.
    pub fn set_name(&mut self, name: &[u8]) {
        let length = name.len().min(15);
        self.name = [0; 16];
        self.name[..length].copy_from_slice(&name[..length]);
    }
}

/// Threads as the machine below has them. One runs, waits for the answer to a call or fault, or is stopped.
pub trait Threads: Hardware {
    /// A thread.
    type Thread: core::fmt::Debug;

    /// Makes a stopped thread in an address space, whose calls and faults come with a number.
    ///
    /// # Errors
    /// `ENOMEM`
    fn make_thread(&mut self, root: &Self::Root, number: u32) -> Result<Self::Thread, Errno>;

    /// Ends a thread, whatever it does.
    fn end_thread(&mut self, thread: Self::Thread);

    /// Answers a call or fault: the thread goes on, perhaps with a result in `x0`. The thread that is being served may
    /// go on a little later.
    fn answer(&mut self, thread: &mut Self::Thread, result: Option<u64>);

    /// Answers a call at once, with a result in `x0`: the thread goes on after all others that can run.
    fn give_way(&mut self, thread: &mut Self::Thread, result: u64);

    /// Lets a thread whose call or fault is being served wait for the answer while others are served.
    fn keep(&mut self, thread: &mut Self::Thread);

    /// Forgets that a thread waits for a reply: it has sent its call, and does not wait any more.
    fn forget(&mut self, thread: &mut Self::Thread);

    /// Stops a thread, whatever it does. A call that nobody has served yet is made again when the thread goes on; one
    /// that is being served is over. One that was answered has its result.
    fn stop(&mut self, thread: &mut Self::Thread);

    /// Returns the registers of a thread that waits or is stopped.
    fn registers(&mut self, thread: &Self::Thread) -> Registers;

    /// Returns the floating-point registers of a thread that waits or is stopped.
    fn float_registers(&mut self, thread: &Self::Thread) -> FloatRegisters;

    /// Sets the registers of a thread that waits.
    fn set_registers(&mut self, thread: &mut Self::Thread, registers: &Registers);

    /// Lets a thread that waits or is stopped execute one instruction, from these registers on, and then raise the
    /// exception of a step. If it waits, it goes on once it is answered.
    fn step(&mut self, thread: &mut Self::Thread, registers: &Registers, rest: Rest);

    /// Sets the floating-point registers of a thread that waits or is stopped.
    fn set_float_registers(&mut self, thread: &mut Self::Thread, registers: &FloatRegisters);

    /// Moves a stopped thread to another address space.
    fn move_thread(&mut self, thread: &mut Self::Thread, root: &Self::Root);

    /// Sets how a stopped thread makes its calls. Returns the address of the capability with which the program sends
    /// them.
    ///
    /// # Errors
    /// `ENOMEM`: nothing is changed.
    fn set_entrance(&mut self, thread: &mut Self::Thread, root: &Self::Root, entrance: Entrance) -> Result<u64, Errno>;

    /// Sets how long a thread runs while others wait for their turn, in parts of [`WHOLE_TURN`] of the usual time.
    fn set_turn(&mut self, thread: &mut Self::Thread, parts: u32);

    /// Returns how long a thread has run.
    fn used(&mut self, thread: &Self::Thread) -> Duration;

    /// Lets a stopped thread run with these registers.
    fn run(&mut self, thread: &mut Self::Thread, registers: &Registers);
}
