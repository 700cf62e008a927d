//! The measured programs, in assembly, and the control page of each.
//!
//! Between the two readings of the counter there must be nothing but the measured path, and the cost of a reading must
//! be known; a compiler promises neither. So each actor (a thread that takes part in a measurement) runs one of these
//! loops:
//!
//! ```text
//! once for each round:
//!     load x0..x12 from the control page
//!     x26 = counter                 ── "before"
//!     movz xzr, #BEGIN              (does nothing; tells outside tools that a path begins)
//!     THE INSTRUCTION               svc #1, or one that faults, or one that makes a device interrupt
//!     movz xzr, #END
//!     x27 = counter                 ── "after"
//!     store before, after, x0, x10 in the control page
//!     write 0 to the device register that the control page names, if it names one
//!     make the system calls that undo the operation, as many as the control page says
//! suspend itself
//! ```
//! A path that ends in another thread is the difference between one actor's *before* and the other's *after*: both run
//! the same few instructions around it. The loops use no stack and no address of their own, so a copy of them runs
//! anywhere. `x19` is the address of the control page, the only argument of a program.

use core::mem::offset_of;

/// Maximum number of system calls that undo a round.
pub const MAX_UNDO: usize = 8;
/// Maximum number of records of an actor.
pub const MAX_RECORDS: usize = 96;

/// `x0`..`x12` of a system call.
pub type Arguments = [u64; 13];

/// Control page of a loop: its arguments and its records.
#[repr(C)]
pub struct Control {
    /// Rounds left.
    pub rounds: u64,
    /// Capability of the actor's own thread, to be suspended at the end.
    pub thread: u64,
    /// Address of a device register that is set to 0 after each round, or 0.
    pub quiet: u64,
    /// Address of the IPC buffer, for the programs that handle an upcall.
    pub buffer: u64,
    /// Bytes by which an upcall handler advances the program counter.
    pub skip: u64,
    /// All error codes of the undoing system calls, or-ed.
    pub undo_errors: u64,
    /// Number of system calls that undo a round.
    pub undo_count: u64,
    /// Arguments of the measured system call.
    pub measured: Arguments,
    /// Arguments of the system calls that undo a round.
    pub undo: [Arguments; MAX_UNDO],
    /// Number of records written so far.
    pub written: u64,
    /// Records of the rounds.
    pub records: [RawRecord; MAX_RECORDS],
}

/// Two readings of the counter, and two registers after the second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RawRecord {
    /// Counter before the instruction.
    pub before: u64,
    /// Counter after it.
    pub after: u64,
    /// `x0`: an error code, after a system call.
    pub code: u64,
    /// `x10`: the badge, after a receive.
    pub badge: u64,
}

const _: () = assert!(size_of::<Control>() <= tench::abi::memory::PAGE_SIZE);
// `ldp` reaches 504 bytes.
const _: () = assert!(offset_of!(Control, measured) + size_of::<Arguments>() <= 504);

#[cfg_attr(not(all(target_arch = "aarch64", target_os = "none")), allow(unused_macros))]
/// Defines a loop around one instruction, which may be followed by others on the same line.
macro_rules! program {
    ($name:literal, $instruction:literal) => {
        concat!(
            ".global ",
            $name,
            "\n",
            $name,
            ":\n",
            "    ldr x20, [x19, #{ROUNDS}]\n",
            "    add x21, x19, #{RECORDS}\n",
            "1:  ldp x0, x1, [x19, #{MEASURED}]\n",
            "    ldp x2, x3, [x19, #{MEASURED} + 16]\n",
            "    ldp x4, x5, [x19, #{MEASURED} + 32]\n",
            "    ldp x6, x7, [x19, #{MEASURED} + 48]\n",
            "    ldp x8, x9, [x19, #{MEASURED} + 64]\n",
            "    ldp x10, x11, [x19, #{MEASURED} + 80]\n",
            "    ldr x12, [x19, #{MEASURED} + 96]\n",
            "    mrs x26, pmevcntr0_el0\n",
            "    movz xzr, #{BEGIN}\n",
            "    ",
            $instruction,
            "\n",
            "    movz xzr, #{END}\n",
            "    mrs x27, pmevcntr0_el0\n",
            "    stp x26, x27, [x21], #16\n",
            "    stp x0, x10, [x21], #16\n",
            "    ldr x28, [x19, #{QUIET}]\n",
            "    cbz x28, 2f\n",
            "    str wzr, [x28]\n",
            "2:  sub x20, x20, #1\n",
            "    cbz x20, bench_finish\n",
            "    ldr x22, [x19, #{UNDO_COUNT}]\n",
            "    add x23, x19, #{UNDO}\n",
            "3:  cbz x22, 1b\n",
            "    ldp x0, x1, [x23, #0]\n",
            "    ldp x2, x3, [x23, #16]\n",
            "    ldp x4, x5, [x23, #32]\n",
            "    ldp x6, x7, [x23, #48]\n",
            "    ldp x8, x9, [x23, #64]\n",
            "    ldp x10, x11, [x23, #80]\n",
            "    ldr x12, [x23, #96]\n",
            "    svc #1\n",
            "    ldr x24, [x19, #{UNDO_ERRORS}]\n",
            "    orr x24, x24, x0\n",
            "    str x24, [x19, #{UNDO_ERRORS}]\n",
            "    add x23, x23, #{ARGUMENTS_SIZE}\n",
            "    sub x22, x22, #1\n",
            "    b 3b\n",
        )
    };
}

#[cfg(all(target_arch = "aarch64", target_os = "none"))]
core::arch::global_asm!(
    ".section .text.bench_programs, \"ax\"",
    ".balign 16",
    ".global bench_programs",
    "bench_programs:",
    // Nothing between the readings: the cost of reading.
    program!("bench_nothing", ""),
    // A system call.
    program!("bench_call", "svc #1"),
    // A system call, and a floating-point instruction (fadd d0, d0, d0) before the second reading.
    program!("bench_call_float", "svc #1\n .inst 0x1e602800"),
    // A load from an unmapped address.
    program!("bench_load", "ldr x0, [x0]"),
    // A foreign system call.
    program!("bench_foreign_call", "svc #0"),
    // A store to a device register.
    program!("bench_store", "str w1, [x0]"),
    "bench_finish:",
    "    sub x21, x21, #{RECORDS}",
    "    sub x21, x21, x19",
    "    lsr x21, x21, #5",
    "    str x21, [x19, #{WRITTEN}]",
    "4:  ldr x0, [x19, #{THREAD}]",
    "    mov x1, #0",
    "    mov x10, #{SUSPEND}",
    "    svc #1",
    "    b 4b",
    // An upcall: the second record of a round is about the return. `x21` and `x26` return through the IPC buffer.
    ".global bench_upcall",
    "bench_upcall:",
    "    movz xzr, #{END}",
    "    mrs x27, pmevcntr0_el0",
    "    stp x26, x27, [x21], #16",
    "    stp xzr, xzr, [x21], #16",
    "    ldr x28, [x19, #{BUFFER}]",
    "    ldr x22, [x28, #{BUFFER_PC}]",
    "    ldr x23, [x19, #{SKIP}]",
    "    add x22, x22, x23",
    "    str x22, [x28, #{BUFFER_PC}]",
    "    str x21, [x28, #{BUFFER_X} + 21 * 8]",
    "    str xzr, [x28, #{BUFFER_X}]",
    "    mov x10, #{UPCALL_RETURN}",
    "    mrs x26, pmevcntr0_el0",
    "    str x26, [x28, #{BUFFER_X} + 26 * 8]",
    "    movz xzr, #{BEGIN}",
    "    svc #1",
    // The call was refused: no record of the return is written, and the reader detects that.
    "    b bench_finish",
    ".global bench_programs_end",
    "bench_programs_end:",
    ROUNDS = const offset_of!(Control, rounds),
    THREAD = const offset_of!(Control, thread),
    QUIET = const offset_of!(Control, quiet),
    BUFFER = const offset_of!(Control, buffer),
    SKIP = const offset_of!(Control, skip),
    UNDO_ERRORS = const offset_of!(Control, undo_errors),
    UNDO_COUNT = const offset_of!(Control, undo_count),
    MEASURED = const offset_of!(Control, measured),
    UNDO = const offset_of!(Control, undo),
    WRITTEN = const offset_of!(Control, written),
    RECORDS = const offset_of!(Control, records),
    ARGUMENTS_SIZE = const size_of::<Arguments>(),
    BUFFER_X = const offset_of!(tench::abi::message::IpcBuffer, registers),
    BUFFER_PC = const offset_of!(tench::abi::message::IpcBuffer, registers)
        + offset_of!(tench::abi::fault::Registers, pc),
    SUSPEND = const tench::abi::Operation::ThreadSuspend as u64,
    UPCALL_RETURN = const tench::abi::Operation::UpcallReturn as u64,
    BEGIN = const 0xb1,
    END = const 0xe1,
);

/// Loop that an actor runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// No instruction.
    Nothing,
    /// A system call.
    Call,
    /// A system call, with floating point in use.
    CallFloat,
    /// A load from `x0`.
    Load,
    /// A foreign system call.
    ForeignCall,
    /// A store of `w1` to `x0`.
    Store,
}

/// The programs as bytes, and the offsets at which something begins.
#[cfg(all(target_arch = "aarch64", target_os = "none"))]
mod image {
    use super::Program;

    unsafe extern "C" {
        static bench_programs: [u8; 0];
        static bench_programs_end: [u8; 0];
        static bench_nothing: [u8; 0];
        static bench_call: [u8; 0];
        static bench_call_float: [u8; 0];
        static bench_load: [u8; 0];
        static bench_foreign_call: [u8; 0];
        static bench_store: [u8; 0];
        static bench_upcall: [u8; 0];
    }

    pub fn bytes() -> &'static [u8] {
        let (start, end) = (&raw const bench_programs, &raw const bench_programs_end);
        let length = end.addr() - start.addr();
        // SAFETY: the two symbols bound the programs, which are never written.
        unsafe { core::slice::from_raw_parts(start.cast(), length) }
    }

    pub fn address(program: Program) -> usize {
        let place = match program {
            Program::Nothing => &raw const bench_nothing,
            Program::Call => &raw const bench_call,
            Program::CallFloat => &raw const bench_call_float,
            Program::Load => &raw const bench_load,
            Program::ForeignCall => &raw const bench_foreign_call,
            Program::Store => &raw const bench_store,
        };
        place.addr()
    }

    pub fn upcall() -> usize {
        (&raw const bench_upcall).addr()
    }
}

/// Substitute on the host, where there are no programs.
#[cfg(not(all(target_arch = "aarch64", target_os = "none")))]
mod image {
    pub fn bytes() -> &'static [u8] {
        &[]
    }

    pub fn address(_: super::Program) -> usize {
        0
    }

    pub fn upcall() -> usize {
        0
    }
}

pub use image::{bytes, upcall};

impl Program {
    /// Returns the address in this process at which the program begins.
    pub fn address(self) -> usize {
        image::address(self)
    }

    /// Returns the program's offset in [`bytes`].
    pub fn offset(self) -> usize {
        self.address().saturating_sub(bytes().as_ptr().addr())
    }
}
