//! Threads that make one system call, or repeat one operation.
//!
//! They live in this program's address space, own nothing and use no stack, so they can be deleted at any moment. Each
//! runs a few instructions, with all their data in registers:
//!
//! ```text
//!   once      x0..x12 and x10: the system call; x20: its own thread, which it then suspends
//!   ticker    x21: ticks between two deadlines; x22: the notification that it waits for
//!   touch     x21: an address to read from, as long as it is resumed
//!   foreign   a foreign system call, as long as it is resumed
//!   relay     x21: where it receives, with its bound reply object; x22: where it then calls
//!   float     x21: how often it uses the floating-point unit and lets others run
//! ```
//! A thread that cannot go on executes an undefined instruction, which stops it.

use alloc::string::String;
use core::mem::offset_of;

use tench::abi::Operation;
use tench::abi::fault::Registers;
use tench::abi::layout::slot;
use tench::abi::message::{IpcBuffer, MAX_CAPS};
use tench::memory::{Made, make};
use tench::sys::thread::{Binding, Bindings};
use tench::sys::{Cap, CapNode, Error, Frame, Notification, PageTable, Reply, SchedulingContext, Thread};

use super::{Arena, problem};

#[cfg(target_os = "none")]
core::arch::global_asm!(
    ".pushsection .text.adversary, \"ax\"",
    ".balign 4",
    ".global adversary_once",
    "adversary_once:",
    "svc #1",
    "mov x0, x20",
    "mov x1, #0",
    "mov x10, #{SUSPEND}",
    "svc #1",
    "udf #0",
    ".global adversary_ticker",
    "adversary_ticker:",
    "mrs x12, cntvct_el0",
    "add x12, x12, x21",
    "mov x0, x22",
    "mov x1, #{DEADLINE}",
    "mov x10, #{RECEIVE}",
    "svc #1",
    "cmp x0, #{TIMED_OUT}",
    "b.eq adversary_ticker",
    "udf #0",
    ".global adversary_touch",
    "adversary_touch:",
    "ldr x0, [x21]",
    "b adversary_touch",
    ".global adversary_foreign",
    "adversary_foreign:",
    "svc #0",
    "b adversary_foreign",
    ".global adversary_relay",
    "adversary_relay:",
    "mov x0, x21",
    "mov x1, #0",
    "mov x10, #{RECEIVE}",
    "svc #1",
    "mov x0, x22",
    "mov x1, #0",
    "mov x10, #{CALL}",
    "svc #1",
    "udf #0",
    ".global adversary_float",
    "adversary_float:",
    ".inst 0x9e6702a0", // fmov d0, x21
    "mov x10, #{YIELD}",
    "svc #1",
    ".inst 0x9e660015", // fmov x21, d0
    "subs x21, x21, #1",
    "b.ne adversary_float",
    "udf #0",
    ".popsection",
    SUSPEND = const Operation::ThreadSuspend as u64,
    RECEIVE = const Operation::Receive as u64,
    CALL = const Operation::Call as u64,
    YIELD = const Operation::Yield as u64,
    DEADLINE = const tench::abi::Tag::DEADLINE,
    TIMED_OUT = const tench::abi::Error::TimedOut as u64,
);

#[cfg(target_os = "none")]
unsafe extern "C" {
    fn adversary_once();
    fn adversary_ticker();
    fn adversary_touch();
    fn adversary_foreign();
    fn adversary_relay();
    fn adversary_float();
}

/// Code that a thread runs.
#[derive(Clone, Copy)]
pub enum Code {
    /// Makes one system call.
    Once,
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
            Code::Once => adversary_once,
            Code::Ticker => adversary_ticker,
            Code::Touch => adversary_touch,
            Code::Foreign => adversary_foreign,
            Code::Relay => adversary_relay,
            Code::Float => adversary_float,
        };
        code as *const () as u64
    }

    /// Returns nothing useful: on the host no thread runs.
    #[cfg(not(target_os = "none"))]
    fn address(self) -> u64 {
        self as u64
    }
}

/// A thread under this program's control.
#[derive(Clone, Copy)]
pub struct Victim {
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
    /// Address CSpace of the thread.
    pub table: Cap<PageTable>,
    /// IPC buffer of the thread: its frame and address.
    pub buffer: Option<(Cap<Frame>, u64)>,
}

impl Home {
    /// This program's CSpace and address space, without an IPC buffer.
    pub const OWN: Home = Home { cspace: Cap::new(slot::CSPACE), table: Cap::new(slot::VSPACE), buffer: None };
}

impl Victim {
    /// Configures a thread from capabilities to fresh objects. It does not run.
    pub fn set_up(self, priority: u64, home: Home) -> Result<Victim, Error> {
        self.scheduling.configure(priority, priority, 0, None)?;
        self.thread.configure(home.cspace, home.table, home.buffer)?;
        self.thread.bind(Bindings { scheduling: Binding::To(self.scheduling), ..Bindings::KEEP })?;
        Ok(self)
    }

    /// Starts this code, with these registers from `x0` on, and `x20` to `x22`.
    pub fn start(self, code: Code, x: &[u64], saved: [u64; 3]) -> Result<(), Error> {
        let mut registers = Registers::ZERO;
        registers.pc = code.address();
        registers.x[..x.len()].copy_from_slice(x);
        registers.x[20..23].copy_from_slice(&saved);
        // SAFETY: the code uses only memory that its registers name, and no stack.
        unsafe { self.thread.write_registers(&registers, true) }
    }

    /// Lets the thread make a system call and suspend itself.
    pub fn call(self, operation: Operation, arguments: &[u64]) -> Result<(), Error> {
        let mut x = [0; 13];
        x[..arguments.len()].copy_from_slice(arguments);
        x[10] = operation as u64;
        self.start(Code::Once, &x, [u64::from(self.thread.address().0), 0, 0])
    }
}

impl Arena {
    /// Makes a thread of this priority.
    pub fn victim(&mut self, priority: u64, home: Home) -> Result<Victim, Error> {
        let victim = Victim { thread: self.make(0)?, scheduling: self.make(0)? };
        victim.set_up(priority, home)
    }

    /// Makes a thread with an IPC buffer that this program can write to, and a reply object. The buffer's number is
    /// below `BUFFERS`.
    pub fn correspondent(&mut self, priority: u64, buffer: usize) -> Result<Victim, Error> {
        let home = Home { buffer: Some((self.buffers[buffer].frame(), 0)), ..Home::OWN };
        let victim = self.victim(priority, home)?;
        let reply = self.make::<Reply>(0)?;
        victim.thread.bind(Bindings { reply: Binding::To(reply), ..Bindings::KEEP })?;
        Ok(victim)
    }

    /// Writes which capabilities the thread with this IPC buffer sends, and where it receives.
    pub fn write_ipc_buffer(&self, buffer: usize, send: [u32; MAX_CAPS], receive: [u32; MAX_CAPS]) {
        let address = self.buffers[buffer].address();
        let fields = [(offset_of!(IpcBuffer, send_caps), send), (offset_of!(IpcBuffer, receive_slots), receive)];
        for (offset, caps) in fields {
            for (index, cap) in caps.into_iter().enumerate() {
                let pointer = core::ptr::with_exposed_provenance_mut::<u32>(address + offset + index * 4);
                // SAFETY: the page is mapped as long as `self` lives, and there are no references into it.
                unsafe { pointer.write_volatile(cap) };
            }
        }
    }
}

/// Ticks between two deadlines of the ticker; nothing else here takes a multiple of that.
const TICKS: u64 = 617;
/// Priority of the ticker: above all others.
const PRIORITY: u64 = 145;

/// A thread that is woken by the timer, again and again, as long as this value lives.
pub struct Ticker {
    // Dropped in this order: the thread first.
    _thread: Made<Thread>,
    _scheduling: Made<SchedulingContext>,
    _notification: Made<Notification>,
}

impl Ticker {
    /// Starts the ticker.
    pub fn start() -> Result<Ticker, String> {
        let thread = make::<Thread>(0).map_err(problem("a thread"))?;
        let scheduling = make::<SchedulingContext>(0).map_err(problem("a scheduling context"))?;
        let notification = make::<Notification>(0).map_err(problem("a notification"))?;
        let victim = Victim { thread: thread.cap(), scheduling: scheduling.cap() };
        let waits_for = u64::from(notification.cap().address().0);
        let started =
            victim.set_up(PRIORITY, Home::OWN).and_then(|v| v.start(Code::Ticker, &[], [0, TICKS, waits_for]));
        started.map_err(problem("the ticker"))?;
        Ok(Ticker { _thread: thread, _scheduling: scheduling, _notification: notification })
    }
}
