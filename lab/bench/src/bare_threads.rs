//! Bare threads: kernel objects without a process, which make one system call, or repeat one operation.
//!
//! They live in the measuring program's address space, own nothing and use no stack, so they can be deleted at any
//! moment. Each runs a few instructions, with all their data in registers:
//!
//! ```text
//!   once      x0..x12 and x10: the system call; x20: its own thread, which it then suspends
//!   again     x20: the tag of a message without words, x21: where it sends it, again and again; x22: the deadline
//!   ticker    x21: ticks between two deadlines; x22: the notification that it waits for
//!   touch     x21: an address to read from, as long as it is resumed
//!   foreign   a foreign system call, as long as it is resumed
//!   relay     x21: where it receives, with its bound reply object; x22: where it then calls
//!   float     x21: how often it uses the floating-point unit and lets others run
//! ```
//! A thread that cannot go on executes an undefined instruction, which stops it.

use tench::abi::Operation;
use tench::abi::fault::Registers;
use tench::abi::layout::slot;
use tench::sys::thread::{Binding, Bindings};
use tench::sys::{Cap, CapNode, Error, Frame, PageTable, SchedulingContext, Thread};

#[cfg(target_os = "none")]
core::arch::global_asm!(
    ".pushsection .text.bare_threads, \"ax\"",
    ".balign 4",
    ".global bare_once",
    "bare_once:",
    "svc #1",
    "mov x0, x20",
    "mov x1, #0",
    "mov x10, #{SUSPEND}",
    "svc #1",
    "udf #0",
    ".global bare_again",
    "bare_again:",
    "mov x0, x21",
    "mov x1, x20",
    "mov x10, #{SEND}",
    "mov x12, x22",
    "svc #1",
    "cbz x0, bare_again",
    "udf #0",
    ".global bare_ticker",
    "bare_ticker:",
    "mrs x12, cntvct_el0",
    "add x12, x12, x21",
    "mov x0, x22",
    "mov x1, #{DEADLINE}",
    "mov x10, #{RECEIVE}",
    "svc #1",
    "cmp x0, #{TIMED_OUT}",
    "b.eq bare_ticker",
    "udf #0",
    ".global bare_touch",
    "bare_touch:",
    "ldr x0, [x21]",
    "b bare_touch",
    ".global bare_foreign",
    "bare_foreign:",
    "svc #0",
    "b bare_foreign",
    ".global bare_relay",
    "bare_relay:",
    "mov x0, x21",
    "mov x1, #0",
    "mov x10, #{RECEIVE}",
    "svc #1",
    "mov x0, x22",
    "mov x1, #0",
    "mov x10, #{CALL}",
    "svc #1",
    "udf #0",
    ".global bare_float",
    "bare_float:",
    ".inst 0x9e6702a0", // fmov d0, x21
    "mov x10, #{YIELD}",
    "svc #1",
    ".inst 0x9e660015", // fmov x21, d0
    "subs x21, x21, #1",
    "b.ne bare_float",
    "udf #0",
    ".popsection",
    SUSPEND = const Operation::ThreadSuspend as u64,
    SEND = const Operation::Send as u64,
    RECEIVE = const Operation::Receive as u64,
    CALL = const Operation::Call as u64,
    YIELD = const Operation::Yield as u64,
    DEADLINE = const tench::abi::Tag::DEADLINE,
    TIMED_OUT = const tench::abi::Error::TimedOut as u64,
);

#[cfg(target_os = "none")]
unsafe extern "C" {
    fn bare_once();
    fn bare_again();
    fn bare_ticker();
    fn bare_touch();
    fn bare_foreign();
    fn bare_relay();
    fn bare_float();
}

/// Code that a thread runs.
#[derive(Clone, Copy)]
pub enum Code {
    /// Makes one system call.
    Once,
    /// Sends messages without words.
    Again,
    /// Waits for the timer for ever.
    Ticker,
    /// Reads an address that it may not.
    Touch,
    /// Makes foreign system calls.
    Foreign,
    /// Receives, and calls another thread.
    Relay,
    /// Uses the floating-point unit.
    Float,
}

impl Code {
    /// Returns the code's address.
    #[cfg(target_os = "none")]
    fn address(self) -> u64 {
        let code = match self {
            Code::Once => bare_once,
            Code::Again => bare_again,
            Code::Ticker => bare_ticker,
            Code::Touch => bare_touch,
            Code::Foreign => bare_foreign,
            Code::Relay => bare_relay,
            Code::Float => bare_float,
        };
        code as *const () as u64
    }

    /// Returns nothing useful: on the host no thread runs.
    #[cfg(not(target_os = "none"))]
    fn address(self) -> u64 {
        self as u64
    }
}

/// A thread under the measuring program's control.
#[derive(Clone, Copy)]
pub struct BareThread {
    /// The thread.
    pub thread: Cap<Thread>,
    /// Scheduling context of the thread.
    pub scheduling: Cap<SchedulingContext>,
}

/// CSpace, address space and IPC buffer of a thread.
#[derive(Clone, Copy)]
pub struct Home {
    /// CSpace of the thread.
    pub cspace: Cap<CapNode>,
    /// Address space of the thread.
    pub table: Cap<PageTable>,
    /// IPC buffer of the thread: its frame and address.
    pub buffer: Option<(Cap<Frame>, u64)>,
}

impl Home {
    /// The measuring program's CSpace and address space, without an IPC buffer.
    pub const OWN: Home = Home { cspace: Cap::new(slot::CSPACE), table: Cap::new(slot::VSPACE), buffer: None };
}

impl BareThread {
    /// Configures a thread from capabilities to fresh objects. It does not run.
    pub fn set_up(self, priority: u64, home: Home) -> Result<BareThread, Error> {
        self.scheduling.configure(priority, priority, 0, None)?;
        self.thread.configure(home.cspace, home.table, home.buffer)?;
        self.thread.bind(Bindings { scheduling: Binding::To(self.scheduling), ..Bindings::KEEP })?;
        Ok(self)
    }

    /// Starts this code, with these registers from `x0` on, and `x20` to `x22`.
    pub fn start(self, code: Code, x: &[u64], saved: [u64; 3]) -> Result<(), Error> {
        self.write_registers(code, x, saved, true)
    }

    /// Prepares a suspended thread for this code, with the same registers. It runs when it is resumed.
    pub fn prepare(self, code: Code, x: &[u64], saved: [u64; 3]) -> Result<(), Error> {
        self.write_registers(code, x, saved, false)
    }

    /// Sets the thread's registers, and with `resume` lets it run.
    fn write_registers(self, code: Code, x: &[u64], saved: [u64; 3], resume: bool) -> Result<(), Error> {
        let mut registers = Registers::ZERO;
        registers.pc = code.address();
        registers.x[..x.len()].copy_from_slice(x);
        registers.x[20..23].copy_from_slice(&saved);
        // SAFETY: the code uses only memory that its registers name, and no stack.
        unsafe { self.thread.write_registers(&registers, resume) }
    }

    /// Lets the thread make a system call and suspend itself.
    pub fn call(self, operation: Operation, arguments: &[u64]) -> Result<(), Error> {
        let mut x = [0; 13];
        x[..arguments.len()].copy_from_slice(arguments);
        x[10] = operation as u64;
        self.start(Code::Once, &x, [u64::from(self.thread.address().0), 0, 0])
    }
}
