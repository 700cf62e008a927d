//! Fatal errors: a panic, or an exception in the kernel; and machines that it does not know.
//!
//! Prints the registers and a backtrace as bare addresses, for which the host tool finds names. Then the machine powers
//! off with a status for this. On a core that another core has started, only that core stops, and the others continue.
//!
//! Reports have a stack of their own. What fails may have used up its own, below which lies the memory of others.

use core::panic::Location;

use tench_kernel::thread::{OBJECT_SIZE, THREAD_OFFSET};

use crate::early::Part::{self, Decimal, Hexadecimal, Register, Text};
use crate::early::say;
use crate::trap::FatalFrame;
use crate::{BASE, power, start};

/// Exit status after a kernel panic or fault.
pub const STATUS: u8 = 101;
/// Maximum number of return addresses shown.
const DEPTH: usize = 32;

/// Reports a panic: its place in the source, where the condition and the words are. Whatever looked at the message
/// here would keep all of Rust's formatting in the kernel, even for messages that need none.
#[inline(always)]
pub fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    report(&[Text("a check in the code has failed")], info.location())
}

/// Reports a failure of the function that calls this.
#[track_caller]
#[cold]
pub fn stop(message: &[Part<'_>]) -> ! {
    report(message, Some(Location::caller()))
}

/// Reports that an operation has overflowed the kernel stack of the thread at an address.
#[track_caller]
#[cold]
pub fn stack_overflow(thread: usize) -> ! {
    stop(&[Text("the kernel stack of "), Hexadecimal(thread as u64), Text(" has overflowed")])
}

/// A failure: words, its place in the source, the instruction, and the stack pointer.
struct Failure<'a> {
    message: &'a [Part<'a>],
    place: Option<&'a Location<'a>>,
    here: usize,
    stack: usize,
}

/// Reports a failure in a place of the source.
#[inline(always)]
fn report(message: &[Part<'_>], place: Option<&Location<'_>>) -> ! {
    let (here, stack): (usize, usize);
    // SAFETY: reads the program counter and the stack pointer. The link register is said to change: else a function
    // that never returns would not put it on the stack, where the backtrace looks for it.
    unsafe {
        core::arch::asm!("adr {}, .", "mov {}, sp", out(reg) here, out(reg) stack, out("lr") _,
            options(nomem, nostack, preserves_flags));
    }
    tench_fail(&Failure { message, place, here, stack })
}

/// Reports a failure, on the stack for that.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn tench_fail(failure: &Failure<'_>) -> ! {
    // SAFETY: the stack in use stays as it is, the failure on it too. Nothing returns to it, and no report fails, so
    // the other one is empty.
    unsafe {
        core::arch::asm!("adrp x1, tench_fatal_stack_top", "add x1, x1, :lo12:tench_fatal_stack_top", "mov sp, x1",
            "b {}", sym tench_report, in("x0") failure, options(noreturn))
    }
}

/// Prints a failure and the calls that led to it, and powers off.
#[unsafe(no_mangle)]
extern "C" fn tench_report(failure: &Failure<'_>) -> ! {
    say(&[Text("\npanic: kernel: ")]);
    say(failure.message);
    if let Some(place) = failure.place {
        let (line, column) = (u64::from(place.line()), u64::from(place.column()));
        say(&[Text("\n  in "), Text(place.file()), Text(":"), Decimal(line), Text(":"), Decimal(column)]);
    }
    // The first address of a report is the current one; all others are return addresses.
    say(&[Text("\n  at "), Hexadecimal(failure.here as u64), Text("\n")]);
    backtrace(failure.stack);
    power::off(STATUS)
}

/// Says why the kernel cannot run on a machine, with the board's name if that is known, and powers off.
pub fn refuse(board: Option<&str>, reason: &str) -> ! {
    say(&[
        Text("\ntench: cannot boot on this machine ("),
        Text(board.unwrap_or("of unknown type")),
        Text("): "),
        Text(reason),
        Text("\ntench: start it with ./tench run, or QEMU with -machine virt,gic-version=3\n"),
    ]);
    power::off(STATUS)
}

/// Reports an exception in the kernel, or one of an unused kind. While the machine is being switched off, an exception
/// only means that the machine lacks a way to do it.
pub fn exception(frame: &FatalFrame, vector: u64) -> ! {
    power::go_on();
    say(&[
        Text("\npanic: kernel: exception through vector "),
        Decimal(vector),
        Text(": syndrome "),
        Hexadecimal(frame.syndrome),
        Text(" address "),
        Hexadecimal(frame.address),
    ]);
    if start::is_below_boot_stack(frame.address) {
        say(&[Text("\n  the stack on which the kernel boots is too small")]);
    }
    say(&[Text("\n  at "), Hexadecimal(frame.pc), Text("\n")]);
    for (number, value) in (0..).zip(frame.x) {
        let name = if number < 10 { "  " } else { " " };
        let end = if number % 4 == 3 { "\n" } else { " " };
        say(&[Text("x"), Decimal(number), Text(name), Register(value), Text(end)]);
    }
    say(&[Text("sp  "), Register(frame.sp), Text("\nstate "), Hexadecimal(frame.state), Text("\n")]);
    let link = frame.x[30] as usize;
    if is_return_address(link) {
        say(&[Text("  at "), Hexadecimal(link as u64), Text("\n")]);
    }
    backtrace(frame.sp as usize);
    power::off(STATUS)
}

/// Prints the words on the kernel stack from `stack` on that can be return addresses. The kernel keeps no frame
/// records, which would cost instructions in every system call, so what an earlier call has left there can be among
/// them.
fn backtrace(stack: usize) {
    if stack < BASE || !stack.is_multiple_of(16) {
        return;
    }
    let end = start::boot_stack_end(stack).unwrap_or((stack & !(OBJECT_SIZE - 1)) + THREAD_OFFSET);
    let mut shown = 0;
    for address in (stack..end).step_by(size_of::<usize>()) {
        // SAFETY: an aligned address of the stack in use, or what the stack pointer was set to by mistake. If nothing
        // is there this faults; the vectors report that on the emergency stack, and end.
        let word = unsafe { (address as *const usize).read_volatile() };
        if is_return_address(word) {
            say(&[Text("  at "), Hexadecimal(word as u64), Text("\n")]);
            shown += 1;
            if shown == DEPTH {
                return;
            }
        }
    }
}

/// Returns whether a word is the address of an instruction of the kernel that comes after a call.
fn is_return_address(word: usize) -> bool {
    if !start::is_in_text(word) || !word.is_multiple_of(4) {
        return false;
    }
    // SAFETY: an instruction of the kernel's text, which begins with a jump.
    let before = unsafe { ((word - 4) as *const u32).read_volatile() };
    before & 0xfc00_0000 == CALL || before & 0xffff_fc1f == CALL_REGISTER
}

/// The instruction `bl`, without its distance.
const CALL: u32 = 0x9400_0000;
/// The instruction `blr`, without its register.
const CALL_REGISTER: u32 = 0xd63f_0000;
