//! Synchronous exceptions in user mode other than Tench's own system calls: faults, foreign system calls, and the first
//! use of the floating-point unit.

use tench_abi::fault::{Class, Report};
use tench_abi::object::entry_path;
use tench_kernel::latency_tracer::{self, edge};
use tench_kernel::thread::Thread;
use tench_kernel::{Arch, Kernel, Ref, entry, fast, float, step};

use crate::Machine;
use crate::leave::{hand_off, words};
use crate::trap::{enter, thread, token};

/// Exception classes in the syndrome register.
pub mod class {
    /// The floating-point unit, which is off, was used.
    pub const FLOAT: u64 = 0x07;
    /// A system call.
    pub const SVC: u64 = 0x15;
    /// No instruction could be fetched.
    pub const INSTRUCTION_ABORT: u64 = 0x20;
    /// A step, or the attempt of a thread that runs while another one's steps are on.
    pub const STEP: u64 = tench_abi::fault::STEP_CLASS;
    /// Memory could not be accessed.
    pub const DATA_ABORT: u64 = 0x24;
}

/// Handles a foreign system call of the thread at `old`, with all its registers saved.
#[unsafe(no_mangle)]
unsafe extern "C" fn tench_foreign_call(old: usize, syndrome: u64) -> ! {
    let kernel = token();
    latency_tracer::entered(kernel, entry_path::FOREIGN_CALL);
    let report = foreign_call(kernel, thread(old), syndrome);
    match fast::faults::foreign_call(kernel, thread(old), report) {
        // SAFETY: the hand-off is for this trap's thread.
        Some(handoff) => unsafe {
            latency_tracer::end_interval(token(), edge::HAND_OFF);
            hand_off::<{ words::FOREIGN }>(handoff, old)
        },
        // SAFETY: the stack is given up. All registers have been saved.
        None => unsafe {
            core::arch::asm!("mov sp, x0", "b tench_exception_after_fast", in("x0") old, in("x1") syndrome,
                options(noreturn, nostack))
        },
    }
}

/// Returns the report of a foreign system call of a thread whose registers have been saved.
#[inline(always)]
fn foreign_call(k: &mut Kernel<Machine>, thread: Ref<Thread>, syndrome: u64) -> Report {
    let instruction = k.get(thread).registers.pc.wrapping_sub(Machine::CALL_BYTES);
    Report { class: Class::ForeignCall as u64, address: 0, instruction, syndrome: syndrome & 0xffff }
}

/// Handles a synchronous exception in user mode other than one of Tench's own system calls.
#[unsafe(no_mangle)]
extern "C" fn tench_exception(address: usize, syndrome: u64) -> usize {
    let kernel = enter(address);
    let fault_address: u64;
    // SAFETY: reads a register that describes this exception.
    unsafe { core::arch::asm!("mrs {}, far_el1", out(reg) fault_address, options(nomem, nostack, preserves_flags)) };
    let current = kernel.current();
    let instruction = kernel.get(current).registers.pc;
    let foreign = syndrome >> 26 == class::SVC;
    latency_tracer::entered(kernel, if foreign { entry_path::FOREIGN_CALL } else { entry_path::FAULT });
    let next = match syndrome >> 26 {
        class::FLOAT => float::trap(kernel),
        class::SVC => {
            let report = foreign_call(kernel, current, syndrome);
            entry::exception(kernel, Class::ForeignCall, report)
        }
        class::INSTRUCTION_ABORT if entry::space_was_missing(kernel) => current,
        class::INSTRUCTION_ABORT | class::DATA_ABORT => entry::exception(
            kernel,
            Class::PageFault,
            Report { class: Class::PageFault as u64, address: fault_address, instruction, syndrome },
        ),
        class::STEP if !step::end(kernel) => current,
        // For these the address register holds the value of an earlier fault, perhaps another program's, so it is not
        // reported.
        _ => entry::exception(
            kernel,
            Class::Exception,
            Report { class: Class::Exception as u64, address: 0, instruction, syndrome },
        ),
    };
    next.address()
}
