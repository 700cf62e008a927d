//! The ways back to user mode from a fast path: to the partner of a message, to the caller, or to another thread.
//!
//! Only the way to the caller without results returns, to the assembly. The others give up the stack: what they need is
//! in registers and in the two threads.

use core::mem::offset_of;

use tench_abi::Operation;
use tench_abi::fault::{Registers, Report};
use tench_abi::message::REGISTER_WORDS;
use tench_kernel::latency_tracer::{self, edge};
use tench_kernel::thread::Thread;
use tench_kernel::{Ref, fast};

use crate::trap::token;

/// How many words the messages of a fast path have.
pub mod words {
    /// None.
    pub const NONE: u8 = 0;
    /// As many as fit into registers.
    pub const SHORT: u8 = 1;
    /// Any number.
    pub const ANY: u8 = 2;
    /// Mostly none, else as many as fit into registers.
    pub const FEW: u8 = 5;
    /// Those of a foreign system call, from other registers.
    pub const FOREIGN: u8 = 3;
    /// More than fit into registers.
    pub const LONG: u8 = 4;
}

/// Expands to instructions that save the stack pointer and program counter of the thread in `x2`, which leaves.
macro_rules! save_return {
    () => {
        "mrs x16, sp_el0\nmrs x17, elr_el1\nstp x16, x17, [x2, #{SP}]"
    };
}

/// Continues with the partner of a fast message with `WORDS` words: address space, thread pointer, message, registers,
/// user mode.
///
/// # Safety
/// `handoff` came from [`fast`] for the thread at `old`, whose registers were saved by the entry of this trap.
#[inline(always)]
pub unsafe fn hand_off<const WORDS: u8>(handoff: fast::Handoff, old: usize) -> ! {
    // SAFETY: leaves the kernel for user mode with the state of a live thread. The stack below `old` is abandoned,
    // since it is not needed any more.
    unsafe {
        core::arch::asm!(
            ".if {WORDS} != {FOREIGN}",
            save_return!(),
            ".endif",
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
            ".if {WORDS} == {SHORT} || {WORDS} == {ANY} || {WORDS} == {FEW}",
            "and x16, x1, #0xff",
            ".if {WORDS} != {SHORT}",
            "cbz x16, 2f",
            ".endif",
            ".if {WORDS} == {ANY}",
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
            ".if {WORDS} == {SHORT} || {WORDS} == {ANY} || {WORDS} == {FEW}",
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
            FEW = const words::FEW,
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

/// Expands to instructions that load what a system call preserves from the thread in a register, and clear `x4`..`x18`.
macro_rules! leave_as_entered {
    ($thread:literal) => {
        concat!(
            concat!("mov sp, ", $thread, "\n"),
            concat!("ldp x19, x20, [", $thread, ", #152]\n"),
            concat!("ldp x21, x22, [", $thread, ", #168]\n"),
            concat!("ldp x23, x24, [", $thread, ", #184]\n"),
            concat!("ldp x25, x26, [", $thread, ", #200]\n"),
            concat!("ldp x27, x28, [", $thread, ", #216]\n"),
            concat!("ldp x29, x30, [", $thread, ", #232]\n"),
            "mov x4, #0\nmov x5, #0\nmov x6, #0\nmov x7, #0\nmov x8, #0\n",
            "mov x9, #0\nmov x10, #0\nmov x11, #0\nmov x12, #0\nmov x13, #0\n",
            "mov x14, #0\nmov x15, #0\nmov x16, #0\nmov x17, #0\nmov x18, #0\n",
        )
    };
}

/// Returns to the thread that made this system call, after a success with these results in `x1`..`x3`.
///
/// # Safety
/// The thread at `old` made the system call, and nothing but `x19`..`x30` may differ from its state at the call.
#[inline(always)]
unsafe fn hand_back_results([first, second, third]: [u64; 3], old: usize) -> ! {
    // SAFETY: `ELR_EL1`, `SP_EL0` and `SPSR_EL1` are as the exception set them; compiled code may have used the
    // registers that a call preserves, which the entry has saved.
    unsafe {
        core::arch::asm!(leave_as_entered!("x16"), "mov x0, #0", "eret",
            in("x16") old, in("x1") first, in("x2") second, in("x3") third, options(noreturn, nostack))
    }
}

/// Continues with `next`, whose registers are saved in it, after a system call of the thread at `old`.
///
/// # Safety
/// As for [`hand_back_results`], and the results of `old` have been written.
#[inline(always)]
pub unsafe fn resume(next: Ref<Thread>, old: usize) -> ! {
    // SAFETY: the entry saved everything that a system call preserves; `next` is live, not running, and able to run.
    unsafe {
        core::arch::asm!(
            save_return!(),
            "mrs x16, tpidr_el0",
            "str x16, [x2, #{POINTER}]",
            "ldr x16, [x0, #{SPACE}]",
            "msr ttbr0_el1, x16",
            "ldr x16, [x0, #{POINTER}]",
            "msr tpidr_el0, x16",
            "b tench_resume",
            in("x0") next.address(),
            in("x2") old,
            SP = const offset_of!(Registers, sp),
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

/// As [`conclude`], for a function that was entered from another one: the stack and the preserved registers are not as
/// the assembly left them, so it does not return.
///
/// # Safety
/// As for [`conclude`].
#[inline(always)]
pub unsafe fn conclude_for_good<const OPERATION: u64, const WORDS: u8>(
    fast: fast::Fast,
    address: u64,
    tag: u64,
    old: usize,
) -> ! {
    // SAFETY: the caller's contract.
    let code = unsafe { conclude::<OPERATION, WORDS>(fast, address, tag, old) };
    // SAFETY: the assembly takes the thread, and loads what a system call preserves.
    unsafe { core::arch::asm!("b tench_hand_back", in("x0") code, in("x2") old, options(noreturn, nostack)) }
}

/// Leaves in the way that a fast path has chosen, or returns the `x0` with which the caller continues.
///
/// # Safety
/// `fast` is the result for this trap's system call, number `OPERATION`, of the thread at `old`, with these `x0` and
/// `x1`.
#[inline(always)]
pub unsafe fn conclude<const OPERATION: u64, const WORDS: u8>(
    fast: fast::Fast,
    address: u64,
    tag: u64,
    old: usize,
) -> u64 {
    match fast {
        // SAFETY: the hand-off is for this trap's thread.
        fast::Fast::HandOff(handoff) => unsafe {
            latency_tracer::end_interval(token(), edge::HAND_OFF);
            hand_off::<WORDS>(handoff, old)
        },
        fast::Fast::Return(code) => {
            latency_tracer::end_interval(token(), edge::HAND_BACK);
            code
        }
        // SAFETY: the results are for this trap's thread.
        fast::Fast::Results(results) => unsafe {
            latency_tracer::end_interval(token(), edge::HAND_BACK);
            hand_back_results(results, old)
        },
        // SAFETY: as above.
        fast::Fast::Resume(next) => unsafe { resume(next, old) },
        // SAFETY: the function takes the thread that runs next, and this one.
        fast::Fast::Begin(next) => unsafe {
            core::arch::asm!("b tench_begin", in("x0") next.address(), in("x2") old, options(noreturn, nostack))
        },
        fast::Fast::Float(slot) if OPERATION == Operation::Call as u64 => {
            go_on_in!("tench_call_float", address, tag, old, slot)
        }
        fast::Fast::Float(slot) => go_on_in!("tench_reply_receive_float", address, tag, old, slot),
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
