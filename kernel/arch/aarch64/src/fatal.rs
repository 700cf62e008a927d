//! Fatal errors: a panic, or an exception in the kernel; and machines that it does not know.
//!
//! Prints the registers and a backtrace as bare addresses, for which the host tool finds names. Then the machine powers
//! off with a status for this. On a core that another core has started, only that core stops, and the others continue.

use core::fmt::Write;

use crate::early::Console;
use crate::trap::FatalFrame;
use crate::{BASE, power, start};

/// Exit status after a kernel panic or fault.
pub const STATUS: u8 = 101;
/// Maximum number of stack frames shown.
const DEPTH: usize = 32;

/// Reports a panic.
pub fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let mut out = Console;
    let _ = writeln!(out, "\npanic: kernel: {}", info.message());
    if let Some(place) = info.location() {
        let _ = writeln!(out, "  in {}:{}:{}", place.file(), place.line(), place.column());
    }
    let (here, frame): (usize, usize);
    // SAFETY: reads the program counter and the frame pointer.
    unsafe {
        core::arch::asm!("adr {}, .", "mov {}, x29", out(reg) here, out(reg) frame, options(nomem, nostack, preserves_flags));
    }
    // The first address of a report is the current one; all others are return addresses.
    let _ = writeln!(out, "  at {here:#x}");
    backtrace(frame);
    power::off(STATUS)
}

/// Says why the kernel cannot run on a machine, with the board's name if that is known, and powers off.
pub fn refuse(board: Option<&str>, reason: &str) -> ! {
    let board = board.unwrap_or("of unknown type");
    let _ = writeln!(
        Console,
        "\ntench: cannot boot on this machine ({board}): {reason}\n\
         tench: start it with ./tench run, or QEMU with -machine virt,gic-version=3"
    );
    power::off(STATUS)
}

/// Reports an exception in the kernel, or one of an unused kind. While the machine is being switched off, an exception
/// only means that the machine lacks a way to do it.
pub fn exception(frame: &FatalFrame, vector: u64) -> ! {
    power::go_on();
    let mut out = Console;
    let _ = writeln!(
        out,
        "\npanic: kernel: exception through vector {vector}: syndrome {:#x} address {:#x}",
        frame.syndrome, frame.address
    );
    if start::is_below_boot_stack(frame.address) {
        let _ = writeln!(out, "  the stack on which the kernel boots is too small");
    }
    let _ = writeln!(out, "  at {:#x}", frame.pc);
    for (i, value) in frame.x.iter().enumerate() {
        let end = if i % 4 == 3 { '\n' } else { ' ' };
        let _ = write!(out, "x{i:<2} {value:016x}{end}");
    }
    let _ = writeln!(out, "sp  {:016x}\nstate {:#x}", frame.sp, frame.state);
    backtrace(frame.x[29] as usize);
    power::off(STATUS)
}

/// Prints the return addresses of the frame records, which lie in kernel memory at rising addresses.
fn backtrace(mut frame: usize) {
    let mut out = Console;
    for _ in 0..DEPTH {
        if frame < BASE || frame % 16 != 0 {
            return;
        }
        // SAFETY: an aligned address in the kernel's half that a chain of frame records leads to. If the chain is
        // damaged this faults; the vectors report that on the emergency stack, and end.
        let next = unsafe { (frame as *const usize).read_volatile() };
        // SAFETY: as above.
        let caller = unsafe { (frame as *const usize).add(1).read_volatile() };
        if caller == 0 {
            return;
        }
        let _ = writeln!(out, "  at {caller:#x}");
        if next <= frame {
            return;
        }
        frame = next;
    }
}
