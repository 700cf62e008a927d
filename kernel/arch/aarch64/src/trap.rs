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
use tench_abi::message::{IpcBuffer, REGISTER_WORDS};
use tench_abi::object::entry_path;
use tench_kernel::latency_tracer::{self, LatencyTracer, edge};
use tench_kernel::slot::Slot;
use tench_kernel::thread::{FaultTarget, Thread};
use tench_kernel::{Kernel, Ref, State, entry, fast, scheduler};

use crate::Machine;
use crate::exceptions::class;

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
    MAPPING_SET = const Operation::MappingSet as u64,
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
pub fn install(state: &'static mut State<Machine>) {
    // SAFETY: the register is the kernel's own, and the state is borrowed for ever.
    unsafe { core::arch::asm!("msr tpidr_el1, {}", in(reg) core::ptr::from_mut(state), options(nomem, nostack)) };
}

/// Returns the token. Each trap makes one, and so does the idle loop; the vectors ensure that only one is in use at a
/// time.
#[inline(always)]
pub fn token() -> Kernel<Machine> {
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

/// Returns the token after setting the running thread, for every entry but the fast paths'.
#[inline(always)]
pub(crate) fn enter(address: usize) -> Kernel<Machine> {
    let mut kernel = token();
    kernel.state().current = thread(address);
    kernel
}

/// How many words the messages of a fast path have.
pub(crate) mod words {
    /// None.
    pub const NONE: u8 = 0;
    /// As many as fit into registers.
    pub const SHORT: u8 = 1;
    /// Any number.
    pub const ANY: u8 = 2;
    /// Those of a foreign system call, from other registers.
    pub const FOREIGN: u8 = 3;
    /// More than fit into registers.
    pub const LONG: u8 = 4;
}

/// Continues with the partner of a fast message with `WORDS` words: address space, thread pointer, message, registers,
/// user mode.
///
/// # Safety
/// `handoff` came from [`fast`] for the thread at `old`, whose registers were saved by the entry of this trap.
#[inline(always)]
pub(crate) unsafe fn hand_off<const WORDS: u8>(handoff: fast::Handoff, old: usize) -> ! {
    // SAFETY: leaves the kernel for user mode with the state of a live thread. The stack below `old` is abandoned,
    // since it is not needed any more.
    unsafe {
        core::arch::asm!(
            "mrs x16, tpidr_el0",
            "str x16, [x2, #{POINTER}]",
            "ldr x16, [x8, #{SPACE}]",
            "msr ttbr0_el1, x16",
            "mov sp, x8",
            ".if {WORDS} == {FOREIGN}",
            "ldp x3, x4, [x2]",
            "ldp x5, x6, [x2, #16]",
            "ldp x7, x8, [x2, #32]",
            "ldr x9, [x2, #{INSTRUCTION}]",
            "ldr x2, [x2, #64]",
            ".else",
            ".if {WORDS} == {SHORT} || {WORDS} == {ANY}",
            "and x16, x1, #0xff",
            ".if {WORDS} == {ANY}",
            "cbz x16, 2f",
            "mov x17, #{REGISTERS}",
            "cmp x16, x17",
            "csel x16, x16, x17, lo",
            ".endif",
            ".endif",
            ".if {WORDS} != {NONE}",
            "ldp x4, x5, [x2, #32]",
            "ldp x6, x7, [x2, #48]",
            "ldp x8, x9, [x2, #64]",
            "ldp x2, x3, [x2, #16]",
            ".endif",
            ".if {WORDS} == {SHORT} || {WORDS} == {ANY}",
            "adr x17, 2f",
            "add x17, x17, x16, lsl #2",
            "br x17",
            ".endif",
            ".if {WORDS} != {LONG}",
            "2:",
            "mov x2, #0",
            "mov x3, #0",
            "mov x4, #0",
            "mov x5, #0",
            "mov x6, #0",
            "mov x7, #0",
            "mov x8, #0",
            "mov x9, #0",
            ".endif",
            ".endif",
            "ldp x17, x16, [sp, #{SP}]",
            "msr sp_el0, x17",
            "msr elr_el1, x16",
            "ldr x16, [sp, #{POINTER}]",
            "msr tpidr_el0, x16",
            "msr spsr_el1, xzr",
            "ldp x19, x20, [sp, #152]",
            "ldp x21, x22, [sp, #168]",
            "ldp x23, x24, [sp, #184]",
            "ldp x25, x26, [sp, #200]",
            "ldp x27, x28, [sp, #216]",
            "ldp x29, x30, [sp, #232]",
            "mov x0, #0",
            "mov x11, #0",
            "mov x12, #0",
            "mov x13, #0",
            "mov x14, #0",
            "mov x15, #0",
            "mov x16, #0",
            "mov x17, #0",
            "mov x18, #0",
            "eret",
            in("x8") handoff.next.address(),
            in("x2") old,
            in("x1") handoff.tag,
            in("x10") handoff.badge,
            WORDS = const WORDS,
            NONE = const words::NONE,
            SHORT = const words::SHORT,
            LONG = const words::LONG,
            ANY = const words::ANY,
            FOREIGN = const words::FOREIGN,
            REGISTERS = const REGISTER_WORDS,
            INSTRUCTION = const offset_of!(Thread, fault) + offset_of!(Report, instruction),
            SPACE = const offset_of!(Thread, space_register),
            SP = const offset_of!(Registers, sp),
            POINTER = const offset_of!(Registers, thread_pointer),
            options(noreturn, nostack)
        )
    }
}

/// Returns to the thread that made this system call; `code` is its `x0`.
///
/// # Safety
/// The thread at `old` made the system call, and nothing but `x19`..`x30` may differ from its state at the call.
#[inline(always)]
unsafe fn hand_back(code: u64, old: usize) -> ! {
    // SAFETY: the entry left `ELR_EL1`, `SP_EL0` and `SPSR_EL1` as the exception set them; compiled code may have used
    // the preserved registers, which the entry has saved.
    unsafe {
        core::arch::asm!(
            "mov sp, x2",
            "ldp x19, x20, [x2, #152]",
            "ldp x21, x22, [x2, #168]",
            "ldp x23, x24, [x2, #184]",
            "ldp x25, x26, [x2, #200]",
            "ldp x27, x28, [x2, #216]",
            "ldp x29, x30, [x2, #232]",
            "mov x1, #0",
            "mov x2, #0",
            "mov x3, #0",
            "mov x4, #0",
            "mov x5, #0",
            "mov x6, #0",
            "mov x7, #0",
            "mov x8, #0",
            "mov x9, #0",
            "mov x10, #0",
            "mov x11, #0",
            "mov x12, #0",
            "mov x13, #0",
            "mov x14, #0",
            "mov x15, #0",
            "mov x16, #0",
            "mov x17, #0",
            "mov x18, #0",
            "eret",
            in("x0") code,
            in("x2") old,
            options(noreturn, nostack)
        )
    }
}

/// Continues with `next`, whose registers are saved in it, after a system call of the thread at `old`.
///
/// # Safety
/// As for [`hand_back`], and the results of `old` have been written.
#[inline(always)]
unsafe fn resume(next: Ref<Thread>, old: usize) -> ! {
    // SAFETY: the entry saved everything that a system call preserves; `next` is live, not running, and able to run.
    unsafe {
        core::arch::asm!(
            "mrs x16, tpidr_el0",
            "str x16, [x2, #{POINTER}]",
            "ldr x16, [x0, #{SPACE}]",
            "msr ttbr0_el1, x16",
            "ldr x16, [x0, #{POINTER}]",
            "msr tpidr_el0, x16",
            "b tench_resume",
            in("x0") next.address(),
            in("x2") old,
            SPACE = const offset_of!(Thread, space_register),
            POINTER = const offset_of!(Registers, thread_pointer),
            options(noreturn, nostack)
        )
    }
}

/// Continues in the function for another kind of message or signal. Each kind has a function of its own, so that it
/// does not pay for the registers that others need.
macro_rules! go_on_in {
    ($function:literal, $address:ident, $tag:ident, $old:ident $(, $slot:ident)?) => {
        // SAFETY: the function takes the arguments of this one, and perhaps the slot that it has found.
        unsafe {
            core::arch::asm!(concat!("b ", $function), in("x0") $address, in("x1") $tag, in("x2") $old,
                $(in("x3") $slot.address(),)? options(noreturn, nostack))
        }
    };
}

/// Leaves in the way that a fast path has chosen.
///
/// # Safety
/// `fast` is the result for this trap's system call, number `OPERATION`, of the thread at `old`, with these `x0` and
/// `x1`.
#[inline(always)]
unsafe fn conclude<const OPERATION: u64, const WORDS: u8>(fast: fast::Fast, address: u64, tag: u64, old: usize) -> ! {
    match fast {
        // SAFETY: the hand-off is for this trap's thread.
        fast::Fast::HandOff(handoff) => unsafe {
            latency_tracer::end_interval(&mut token(), edge::HAND_OFF);
            hand_off::<WORDS>(handoff, old)
        },
        // SAFETY: the code is for this trap's thread.
        fast::Fast::Return(code) => unsafe {
            latency_tracer::end_interval(&mut token(), edge::HAND_BACK);
            hand_back(code, old)
        },
        // SAFETY: as above.
        fast::Fast::Resume(next) => unsafe { resume(next, old) },
        // SAFETY: the function takes the thread that runs next, and this one.
        fast::Fast::Begin(next) => unsafe {
            core::arch::asm!("b tench_begin", in("x0") next.address(), in("x2") old, options(noreturn, nostack))
        },
        fast::Fast::Named => go_on_in!("tench_reply_receive_named", address, tag, old),
        fast::Fast::Other(slot) if OPERATION == Operation::Call as u64 => {
            go_on_in!("tench_call_special", address, tag, old, slot)
        }
        fast::Fast::Other(slot) if OPERATION == Operation::Signal as u64 => {
            go_on_in!("tench_fast_notify", address, tag, old, slot)
        }
        fast::Fast::Other(slot) if OPERATION == Operation::ReplyReceive as u64 => {
            go_on_in!("tench_reply_receive_special", address, tag, old, slot)
        }
        fast::Fast::Other(slot) => go_on_in!("tench_fast_receive_message", address, tag, old, slot),
        // SAFETY: the entry saved everything but `x0`, `x1`, `x10`, which are passed to the slow path here.
        fast::Fast::Slow => unsafe {
            core::arch::asm!("b tench_slow_call_after_fast", in("x0") address, in("x1") tag, in("x2") old, in("x10") OPERATION,
                options(noreturn, nostack))
        },
    }
}

/// Continues with the thread at `next`, which runs on a budget or uses the floating-point unit.
#[unsafe(no_mangle)]
unsafe extern "C" fn tench_begin(next: usize, _: u64, old: usize) -> ! {
    scheduler::begin(&mut token(), thread(next));
    // SAFETY: a fast path chose `next` for the thread at `old`.
    unsafe { resume(thread(next), old) }
}

/// Defines the four functions of an operation that sends a message: without words, with words in registers, with more,
/// and with more than words. They are entered with the caller's `x0`, `x1` and thread.
macro_rules! messages {
    (
        $operation:ident, $path:ident, $special_path:ident, $empty:ident, $words:ident = $words_name:literal,
        $long:ident = $long_name:literal, $special:ident = $special_name:literal
    ) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $empty(address: u64, tag: u64, old: usize) -> ! {
            if tag & fast::SHAPE != 0 {
                go_on_in!($words_name, address, tag, old)
            }
            let fast = fast::$path::<_, false>(&mut token(), thread(old), address, tag);
            // SAFETY: this is the trap's thread and system call.
            unsafe { conclude::<{ Operation::$operation as u64 }, { words::NONE }>(fast, address, tag, old) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $words(address: u64, tag: u64, old: usize) -> ! {
            if fast::is_long(tag) {
                go_on_in!($long_name, address, tag, old)
            }
            let fast = fast::$path::<_, false>(&mut token(), thread(old), address, tag);
            // SAFETY: this is the trap's thread and system call.
            unsafe { conclude::<{ Operation::$operation as u64 }, { words::SHORT }>(fast, address, tag, old) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $long(address: u64, tag: u64, old: usize) -> ! {
            if fast::is_special(tag) {
                go_on_in!($special_name, address, tag, old)
            }
            let fast = fast::$path::<_, true>(&mut token(), thread(old), address, tag);
            // SAFETY: this is the trap's thread and system call.
            unsafe { conclude::<{ Operation::$operation as u64 }, { words::LONG }>(fast, address, tag, old) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $special(address: u64, tag: u64, old: usize) -> ! {
            let fast = fast::$special_path(&mut token(), thread(old), address, tag);
            // SAFETY: this is the trap's thread and system call.
            unsafe { conclude::<{ Operation::$operation as u64 }, { words::ANY }>(fast, address, tag, old) }
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
    tench_reply_receive_specially = "tench_reply_receive_specially"
);

/// Fast path of a less common `ReplyReceive`, entered likewise.
#[unsafe(no_mangle)]
unsafe extern "C" fn tench_reply_receive_special(address: u64, tag: u64, old: usize, slot: usize) -> ! {
    let fast = fast::special::reply_receive(&mut token(), thread(old), self::slot(slot), tag);
    // SAFETY: this is the trap's thread and system call.
    unsafe { conclude::<{ Operation::ReplyReceive as u64 }, { words::ANY }>(fast, address, tag, old) }
}

/// Fast path of `ReplyReceive` with a named reply object, entered likewise.
#[unsafe(no_mangle)]
unsafe extern "C" fn tench_reply_receive_named(address: u64, tag: u64, old: usize) -> ! {
    let fast = fast::reply_receive_named(&mut token(), thread(old), address, tag);
    // SAFETY: this is the trap's thread and system call.
    unsafe { conclude::<{ Operation::ReplyReceive as u64 }, { words::SHORT }>(fast, address, tag, old) }
}

/// Fast path of `Call` to a server that uses the floating-point unit, entered likewise.
#[unsafe(no_mangle)]
unsafe extern "C" fn tench_call_special(address: u64, tag: u64, old: usize, slot: usize) -> ! {
    let fast = fast::special::call(&mut token(), thread(old), self::slot(slot), tag);
    // SAFETY: this is the trap's thread and system call.
    unsafe { conclude::<{ Operation::Call as u64 }, { words::ANY }>(fast, address, tag, old) }
}

/// Fast path of `Signal`, entered likewise.
#[unsafe(no_mangle)]
unsafe extern "C" fn tench_fast_signal(address: u64, tag: u64, old: usize) -> ! {
    let fast = fast::signal(&mut token(), thread(old), address);
    // SAFETY: this is the trap's thread and system call.
    unsafe { conclude::<{ Operation::Signal as u64 }, { words::NONE }>(fast, address, tag, old) }
}

/// Fast path of `Signal` to an object other than a notification, entered likewise.
#[unsafe(no_mangle)]
unsafe extern "C" fn tench_fast_notify(address: u64, tag: u64, old: usize, slot: usize) -> ! {
    let fast = fast::notify(&mut token(), self::slot(slot));
    // SAFETY: this is the trap's thread and system call.
    unsafe { conclude::<{ Operation::Signal as u64 }, { words::NONE }>(fast, address, tag, old) }
}

/// Fast path of `Receive`, entered likewise.
#[unsafe(no_mangle)]
unsafe extern "C" fn tench_fast_receive(address: u64, tag: u64, old: usize) -> ! {
    let fast = fast::receive(&mut token(), thread(old), address, tag);
    // SAFETY: this is the trap's thread and system call.
    unsafe { conclude::<{ Operation::Receive as u64 }, { words::NONE }>(fast, address, tag, old) }
}

/// Fast path of `Receive` from an object other than a notification, entered likewise.
#[unsafe(no_mangle)]
unsafe extern "C" fn tench_fast_receive_message(address: u64, tag: u64, old: usize, slot: usize) -> ! {
    let fast = fast::receive_message(&mut token(), thread(old), self::slot(slot), tag);
    // SAFETY: this is the trap's thread and system call.
    unsafe { conclude::<{ Operation::Receive as u64 }, { words::NONE }>(fast, address, tag, old) }
}

/// Fast path of `Yield`, entered likewise.
#[unsafe(no_mangle)]
unsafe extern "C" fn tench_fast_yield(address: u64, tag: u64, old: usize) -> ! {
    let fast = fast::give_way(&mut token(), thread(old));
    // SAFETY: this is the trap's thread and system call.
    unsafe { conclude::<{ Operation::Yield as u64 }, { words::NONE }>(fast, address, tag, old) }
}

/// Fast path of `MappingSet`, entered likewise.
#[unsafe(no_mangle)]
unsafe extern "C" fn tench_fast_set_entry(address: u64, first: u64, old: usize) -> ! {
    let fast = fast::set_entry(&mut token(), thread(old), address, first);
    // SAFETY: this is the trap's thread and system call.
    unsafe { conclude::<{ Operation::MappingSet as u64 }, { words::NONE }>(fast, address, first, old) }
}

/// Handles any system call, with all arguments saved. Returns the thread with which to continue.
#[unsafe(no_mangle)]
extern "C" fn tench_system_call(address: usize) -> usize {
    let next = entry::system_call(&mut enter(address)).address();
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
    entry::user_interrupt(&mut enter(address)).address()
}

/// Handles an interrupt at a preemption point.
#[unsafe(no_mangle)]
extern "C" fn tench_kernel_interrupt() {
    let mut kernel = token();
    check_stack(kernel.current());
    entry::kernel_interrupt(&mut kernel);
}

/// Ends the interrupts-off interval before the kernel is left for user mode through `tench_resume`.
#[cfg(feature = "latency-tracer")]
#[unsafe(no_mangle)]
extern "C" fn tench_trace_resume() {
    latency_tracer::end_interval(&mut token(), edge::RESUME);
}

/// Ends the interrupts-off interval at the end of an interrupt in the kernel.
#[cfg(feature = "latency-tracer")]
#[unsafe(no_mangle)]
extern "C" fn tench_trace_return() {
    latency_tracer::end_interval(&mut token(), edge::KERNEL_INTERRUPT);
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
