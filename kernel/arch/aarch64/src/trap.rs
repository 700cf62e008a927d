//! Traps: the exception vectors, and the ways back to user mode.
//!
//! While a thread runs in user mode, the kernel's stack pointer is the address of its [`Thread`], whose first field is
//! the place for its registers. So the entry stores them relative to the stack pointer, and the stack below is empty.
//!
//! ```text
//!  svc #1, x10 = 0 or 1 ─► save what a call preserves ─► fast::… ─► hand_off ─► partner in user mode
//!         └ otherwise ────► system_call ─┐                 └ no ─► system_call
//!  interrupt, fault ──────► save all ────┴─► Rust ─► resume(thread that the scheduler chose)
//! ```
//! The assembly saves, restores and branches, nothing more. Offsets come from `offset_of!`.

use core::mem::offset_of;
use core::ptr::NonNull;

use tench_abi::Operation;
use tench_abi::fault::{Class, Registers, Report};
use tench_abi::message::{IpcBuffer, MAX_WORDS, REGISTER_WORDS};
use tench_abi::object::entry_path;
use tench_kernel::latency_tracer::{self, LatencyTracer};
use tench_kernel::slot::Slot;
use tench_kernel::thread::{FaultTarget, Thread};
use tench_kernel::{Kernel, Ref, State, entry, fast, scheduler};

use crate::Machine;
use crate::exceptions::class;
use crate::leave::{conclude, conclude_for_good, resume, words};

core::arch::global_asm!(
    include_str!("trap.S"),
    SP = const offset_of!(Registers, sp),
    PC = const offset_of!(Registers, pc),
    FLAGS = const offset_of!(Registers, flags),
    POINTER = const offset_of!(Registers, thread_pointer),
    FULL = const offset_of!(Thread, full_restore),
    KERNEL_SP = const offset_of!(Thread, kernel_stack_pointer),
    HAS_UPCALLS = const offset_of!(Thread, has_upcalls),
    TARGETS = const offset_of!(Thread, fault_targets),
    FAULT = const offset_of!(Thread, fault),
    UPCALL_REGISTERS = const offset_of!(Thread, upcall_registers),
    BUFFER_FAULT = const offset_of!(IpcBuffer, fault) as isize - offset_of!(IpcBuffer, registers) as isize,
    RUNNING = const offset_of!(IpcBuffer, upcall_running) as isize - offset_of!(IpcBuffer, registers) as isize,
    PAGE_FAULT = const Class::PageFault as u64,
    FOREIGN_CALL = const Class::ForeignCall as u64,
    DATA_ABORT = const class::DATA_ABORT,
    SVC = const class::SVC,
    UPCALL_RETURN = const Operation::UpcallReturn as u64,
    COPY = const Operation::Copy as u64,
    DELETE = const Operation::Delete as u64,
    FRAME_MAP = const Operation::FrameMap as u64,
    MAPPING_SET = const Operation::MappingSet as u64,
    READ_REGISTERS = const Operation::ThreadReadRegisters as u64,
    WRITE_REGISTERS = const Operation::ThreadWriteRegisters as u64,
    FAST_LIMIT = const Operation::ThreadWriteRegisters as u64 + 1,
    MEASURING = const latency_tracer::MEASURING as usize,
    START = const TRACER + offset_of!(LatencyTracer, start),
    PATH = const TRACER + offset_of!(LatencyTracer, path),
    ADDRESS = const TRACER + offset_of!(LatencyTracer, address),
    USER_INTERRUPT = const entry_path::USER_INTERRUPT,
    KERNEL_INTERRUPT = const entry_path::KERNEL_INTERRUPT,
);

/// Offset of the latency tracer in the kernel's state.
#[cfg(feature = "latency-tracer")]
const TRACER: usize = offset_of!(State<Machine>, latency_tracer);
/// Unused: this kernel does not measure.
#[cfg(not(feature = "latency-tracer"))]
const TRACER: usize = 0;

const _: () = assert!(offset_of!(Thread, registers) == 0 && offset_of!(Registers, x) == 0);
// The assembly stores a report in pairs, and finds an upcall by its class.
const _: () =
    assert!(size_of::<Report>() == 32 && offset_of!(Report, instruction) == 16 && size_of::<FaultTarget>() == 16);

/// Registers at a fatal exception, in the order in which the assembly stores them.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct FatalFrame {
    /// `x0`..`x30`.
    pub x: [u64; 31],
    /// Stack pointer.
    pub sp: u64,
    /// Program counter.
    pub pc: u64,
    /// Saved processor state.
    pub state: u64,
    /// Syndrome.
    pub syndrome: u64,
    /// Faulting address.
    pub address: u64,
}

/// Returns this core's kernel state.
#[inline(always)]
fn state() -> NonNull<State<Machine>> {
    let address: *mut State<Machine>;
    // SAFETY: reads a register that only `install` writes.
    unsafe { core::arch::asm!("mrs {}, tpidr_el1", out(reg) address, options(nomem, nostack, preserves_flags, pure)) };
    // SAFETY: `install` was called with a valid reference before any trap can happen.
    unsafe { NonNull::new_unchecked(address) }
}

/// Sets this core's kernel state.
///
/// # Safety
/// The state lives for ever, and its present token is gone when the first trap makes another.
pub unsafe fn install(state: NonNull<State<Machine>>) {
    // SAFETY: the register is the kernel's own.
    unsafe { core::arch::asm!("msr tpidr_el1, {}", in(reg) state.as_ptr(), options(nomem, nostack)) };
}

/// Returns the token. Each trap makes one, and so does the idle loop; the vectors ensure that only one is in use at a
/// time.
#[inline(always)]
pub fn token() -> &'static mut Kernel<Machine> {
    // SAFETY: a trap from user mode finds no other token in use, and an interrupt at a preemption point finds that
    // token's holder suspended there.
    unsafe { Kernel::from_state(state()) }
}

/// Returns the thread whose stack pointer the vectors pass.
#[inline(always)]
pub(crate) fn thread(address: usize) -> Ref<Thread> {
    // SAFETY: the vectors pass the kernel stack pointer of user mode, which is the address of a live thread.
    unsafe { Ref::at_unchecked(address) }
}

/// Returns the slot that one fast path passes to another.
#[inline(always)]
fn slot(address: usize) -> Ref<Slot> {
    // SAFETY: the address is that of a slot in the running thread's CSpace, found in this system call.
    unsafe { Ref::at_unchecked(address) }
}

/// Returns the token after setting the running thread, for every entry except most fast paths.
#[inline(always)]
pub(crate) fn enter(address: usize) -> &'static mut Kernel<Machine> {
    let kernel = token();
    kernel.state().current = thread(address);
    kernel
}

/// Continues with the thread at `next`, which runs on a budget, uses the floating-point unit or makes a step.
#[unsafe(no_mangle)]
unsafe extern "C" fn tench_begin(next: usize, _: u64, old: usize) -> ! {
    scheduler::begin(token(), thread(next));
    // SAFETY: a fast path chose `next` for the thread at `old`.
    unsafe { resume(thread(next), old) }
}

/// Goes on in another function, with the same arguments, if a branch of this assembly is taken; if not, this condition
/// holds. `x3` is the [shape](fast::SHAPE) of the message's tag.
macro_rules! go_on_if {
    ($branch:expr, $address:ident, $tag:ident, $old:ident, $x3:ident($shape:tt), else $condition:expr) => {
        // SAFETY: the function takes the arguments of this one, and gives up its stack. The condition is what the
        // assembly tests.
        unsafe {
            core::arch::asm!($branch, in("x0") $address, in("x1") $tag, in("x2") $old, $x3("x3") $shape,
                options(nostack));
            core::hint::assert_unchecked($condition);
        }
    };
}

// The assembly's constants.
const _: () = assert!(fast::SHAPE == 0xffff && REGISTER_WORDS == 8 && MAX_WORDS == 64 && fast::names_reply(1 << 13));

/// Defines the four functions of an operation that sends a message: without words, with words in registers, with more,
/// and with more than words. They are entered with the caller's `x0`, `x1` and thread, and all but the first with the
/// tag's [shape](fast::SHAPE).
macro_rules! messages {
    (
        $operation:ident, $path:ident, $special_path:ident, $empty:ident, $words:ident = $words_name:literal,
        $long:ident = $long_name:literal, $special:ident = $special_name:literal $(, named = $named:literal)?
    ) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $empty(address: u64, tag: u64, old: usize) -> u64 {
            go_on_if!(concat!("ands x3, x1, #0xffff\nb.ne ", $words_name), address, tag, old, out(_),
                else tag & fast::SHAPE == 0);
            let fast = fast::$path::<_, false>(token(), thread(old), address, tag);
            // SAFETY: this is the trap's thread and system call.
            unsafe { conclude::<{ Operation::$operation as u64 }, { words::NONE }>(fast, address, tag, old) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $words(address: u64, tag: u64, old: usize, shape: u64) -> ! {
            go_on_if!(concat!("cmp x3, #8\nb.hi ", $long_name), address, tag, old, in(shape), else !fast::is_long(tag));
            let fast = fast::$path::<_, false>(token(), thread(old), address, tag);
            // SAFETY: this is the trap's thread and system call.
            unsafe { conclude_for_good::<{ Operation::$operation as u64 }, { words::SHORT }>(fast, address, tag, old) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $long(address: u64, tag: u64, old: usize, shape: u64) -> ! {
            $(
                go_on_if!(concat!("tbnz x3, #13, ", $named), address, tag, old, in(shape),
                    else !fast::names_reply(tag));
            )?
            go_on_if!(concat!("cmp x3, #64\nb.hi ", $special_name), address, tag, old, in(shape),
                else !fast::is_special(tag));
            let fast = fast::$path::<_, true>(token(), thread(old), address, tag);
            // SAFETY: this is the trap's thread and system call.
            unsafe { conclude_for_good::<{ Operation::$operation as u64 }, { words::LONG }>(fast, address, tag, old) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $special(address: u64, tag: u64, old: usize) -> ! {
            let fast = fast::$special_path(token(), thread(old), address, tag);
            // SAFETY: this is the trap's thread and system call.
            unsafe { conclude_for_good::<{ Operation::$operation as u64 }, { words::ANY }>(fast, address, tag, old) }
        }
    };
}

messages!(
    Call,
    call,
    call_specially,
    tench_fast_call,
    tench_call_words = "tench_call_words",
    tench_call_long = "tench_call_long",
    tench_call_specially = "tench_call_specially"
);
messages!(
    ReplyReceive,
    reply_receive,
    reply_receive_specially,
    tench_fast_reply_receive,
    tench_reply_receive_words = "tench_reply_receive_words",
    tench_reply_receive_long = "tench_reply_receive_long",
    tench_reply_receive_specially = "tench_reply_receive_specially",
    named = "tench_reply_receive_named"
);

/// Fast path of `Call` between users of the floating-point unit, entered likewise.
#[unsafe(no_mangle)]
unsafe extern "C" fn tench_call_float(address: u64, tag: u64, old: usize, slot: usize) -> ! {
    let fast = fast::float_users::call(token(), thread(old), self::slot(slot), tag);
    // SAFETY: this is the trap's thread and system call.
    unsafe { conclude_for_good::<{ Operation::Call as u64 }, { words::FEW }>(fast, address, tag, old) }
}

/// Fast path of `ReplyReceive` between users of the floating-point unit, entered likewise.
#[unsafe(no_mangle)]
unsafe extern "C" fn tench_reply_receive_float(address: u64, tag: u64, old: usize, slot: usize) -> ! {
    let fast = fast::float_users::reply_receive(token(), thread(old), self::slot(slot), tag);
    // SAFETY: this is the trap's thread and system call.
    unsafe { conclude_for_good::<{ Operation::ReplyReceive as u64 }, { words::FEW }>(fast, address, tag, old) }
}

/// Fast path of a less common `ReplyReceive`, entered likewise.
#[unsafe(no_mangle)]
unsafe extern "C" fn tench_reply_receive_special(address: u64, tag: u64, old: usize, slot: usize) -> ! {
    let fast = fast::special::reply_receive(token(), thread(old), self::slot(slot), tag);
    // SAFETY: this is the trap's thread and system call.
    unsafe { conclude_for_good::<{ Operation::ReplyReceive as u64 }, { words::ANY }>(fast, address, tag, old) }
}

/// Fast path of `ReplyReceive` with a named reply object, entered likewise.
#[unsafe(no_mangle)]
unsafe extern "C" fn tench_reply_receive_named(address: u64, tag: u64, old: usize, shape: u64) -> ! {
    let fast = fast::named::reply_receive(token(), thread(old), address, (tag, shape));
    // SAFETY: this is the trap's thread and system call.
    unsafe { conclude_for_good::<{ Operation::ReplyReceive as u64 }, { words::FEW }>(fast, address, tag, old) }
}

/// Fast path of `Call` to a server that uses the floating-point unit, entered likewise.
#[unsafe(no_mangle)]
unsafe extern "C" fn tench_call_special(address: u64, tag: u64, old: usize, slot: usize) -> ! {
    let fast = fast::special::call(token(), thread(old), self::slot(slot), tag);
    // SAFETY: this is the trap's thread and system call.
    unsafe { conclude_for_good::<{ Operation::Call as u64 }, { words::ANY }>(fast, address, tag, old) }
}

/// Fast path of `Signal`, entered likewise.
#[unsafe(no_mangle)]
unsafe extern "C" fn tench_fast_signal(address: u64, tag: u64, old: usize) -> u64 {
    let fast = fast::signals::signal(token(), thread(old), address);
    // SAFETY: this is the trap's thread and system call.
    unsafe { conclude::<{ Operation::Signal as u64 }, { words::NONE }>(fast, address, tag, old) }
}

/// Fast path of `Signal` to an object other than a notification, entered likewise.
#[unsafe(no_mangle)]
unsafe extern "C" fn tench_fast_notify(address: u64, tag: u64, old: usize, slot: usize) -> ! {
    let fast = fast::signals::notify(token(), self::slot(slot));
    // SAFETY: this is the trap's thread and system call.
    unsafe { conclude_for_good::<{ Operation::Signal as u64 }, { words::NONE }>(fast, address, tag, old) }
}

/// Fast path of `Receive`, entered likewise.
#[unsafe(no_mangle)]
unsafe extern "C" fn tench_fast_receive(address: u64, tag: u64, old: usize) -> u64 {
    let fast = fast::signals::receive(token(), thread(old), address, tag);
    // SAFETY: this is the trap's thread and system call.
    unsafe { conclude::<{ Operation::Receive as u64 }, { words::NONE }>(fast, address, tag, old) }
}

/// Fast path of `Receive` from an object other than a notification, entered likewise.
#[unsafe(no_mangle)]
unsafe extern "C" fn tench_fast_receive_message(address: u64, tag: u64, old: usize, slot: usize) -> ! {
    let fast = fast::receive_message(token(), thread(old), self::slot(slot), tag);
    // SAFETY: this is the trap's thread and system call.
    unsafe { conclude_for_good::<{ Operation::Receive as u64 }, { words::NONE }>(fast, address, tag, old) }
}

/// Fast path of `Yield`, entered likewise.
#[unsafe(no_mangle)]
unsafe extern "C" fn tench_fast_yield(address: u64, tag: u64, old: usize) -> u64 {
    let fast = fast::give_way(token(), thread(old));
    // SAFETY: this is the trap's thread and system call.
    unsafe { conclude::<{ Operation::Yield as u64 }, { words::NONE }>(fast, address, tag, old) }
}

/// Fast path of `Copy`, entered likewise.
#[unsafe(no_mangle)]
unsafe extern "C" fn tench_fast_copy(cspace: u64, source: u64, old: usize) -> u64 {
    let fast = fast::capabilities::copy(token(), thread(old), cspace, source);
    // SAFETY: this is the trap's thread and system call.
    unsafe { conclude::<{ Operation::Copy as u64 }, { words::NONE }>(fast, cspace, source, old) }
}

/// Fast path of `Delete`, entered likewise.
#[unsafe(no_mangle)]
unsafe extern "C" fn tench_fast_delete(cspace: u64, address: u64, old: usize) -> u64 {
    let fast = fast::capabilities::delete(token(), thread(old), cspace, address);
    // SAFETY: this is the trap's thread and system call.
    unsafe { conclude::<{ Operation::Delete as u64 }, { words::NONE }>(fast, cspace, address, old) }
}

/// Fast path of `FrameMap`, entered likewise.
#[unsafe(no_mangle)]
unsafe extern "C" fn tench_fast_map(frame: u64, table: u64, old: usize) -> u64 {
    let fast = fast::mappings::map(token(), thread(old), frame, table);
    // SAFETY: this is the trap's thread and system call.
    unsafe { conclude::<{ Operation::FrameMap as u64 }, { words::NONE }>(fast, frame, table, old) }
}

/// Fast path of `MappingSet`, entered likewise.
#[unsafe(no_mangle)]
unsafe extern "C" fn tench_fast_set_entry(address: u64, first: u64, old: usize) -> u64 {
    let fast = fast::mappings::set_entry(token(), thread(old), address, first);
    // SAFETY: this is the trap's thread and system call.
    unsafe { conclude::<{ Operation::MappingSet as u64 }, { words::NONE }>(fast, address, first, old) }
}

/// Fast path of `ThreadReadRegisters`, entered likewise, but with the running thread set: code that stops a thread
/// reads it.
#[unsafe(no_mangle)]
unsafe extern "C" fn tench_fast_read_registers(address: u64, flags: u64, old: usize) -> u64 {
    let fast = fast::threads::read_registers(enter(old), thread(old), address, flags);
    // SAFETY: this is the trap's thread and system call.
    unsafe { conclude::<{ Operation::ThreadReadRegisters as u64 }, { words::NONE }>(fast, address, flags, old) }
}

/// Fast path of `ThreadWriteRegisters`, entered likewise, but with the running thread set: the scheduler reads it.
#[unsafe(no_mangle)]
unsafe extern "C" fn tench_fast_write_registers(address: u64, flags: u64, old: usize) -> u64 {
    let fast = fast::threads::write_registers(enter(old), thread(old), address, flags);
    // SAFETY: this is the trap's thread and system call.
    unsafe { conclude::<{ Operation::ThreadWriteRegisters as u64 }, { words::NONE }>(fast, address, flags, old) }
}

/// Handles any system call, with all arguments saved. Returns the thread with which to continue.
#[unsafe(no_mangle)]
extern "C" fn tench_system_call(address: usize) -> usize {
    let next = entry::system_call(enter(address)).address();
    check_stack(thread(address));
    next
}

/// Stops the machine if an operation has overflowed its kernel stack: the memory below is damaged.
#[inline(always)]
fn check_stack(thread: Ref<Thread>) {
    if !tench_kernel::thread::canary_intact(thread) {
        crate::fatal::stack_overflow(thread.address());
    }
}

/// Handles an interrupt in user mode.
#[unsafe(no_mangle)]
extern "C" fn tench_user_interrupt(address: usize) -> usize {
    entry::user_interrupt(enter(address)).address()
}

/// Handles an interrupt at a preemption point.
#[unsafe(no_mangle)]
extern "C" fn tench_kernel_interrupt() {
    let kernel = token();
    check_stack(kernel.current());
    entry::kernel_interrupt(kernel);
}

/// Ends the interrupts-off interval before the kernel is left for user mode through `tench_resume`.
#[cfg(feature = "latency-tracer")]
#[unsafe(no_mangle)]
extern "C" fn tench_trace_resume() {
    latency_tracer::end_interval(token(), latency_tracer::edge::RESUME);
}

/// Ends the interrupts-off interval at the end of an interrupt in the kernel.
#[cfg(feature = "latency-tracer")]
#[unsafe(no_mangle)]
extern "C" fn tench_trace_return() {
    latency_tracer::end_interval(token(), latency_tracer::edge::KERNEL_INTERRUPT);
}

/// Handles an exception that must not happen in a kernel.
#[unsafe(no_mangle)]
extern "C" fn tench_fatal(frame: &FatalFrame, vector: u64) -> ! {
    crate::fatal::exception(frame, vector)
}

unsafe extern "C" {
    /// Switches threads in the kernel; see trap.S.
    pub fn tench_switch(from: usize, to: usize);
    /// Leaves the kernel for a thread; see trap.S.
    pub fn tench_resume(thread: usize) -> !;
}
