//! The first instructions of a program, and the return values of its `main`.
//!
//! No linker script is needed: the linker's default layout puts code, constants, constants that contain addresses, and
//! data in pages of their own. Programs are position-independent, and the loader has already applied the relocations.
//!
//! A program links only what it uses, so the main thread's stack depends on that. If the program uses the memory
//! manager (for its heap, threads, kernel objects or mapped memory), the stack comes on demand, and the program's file
//! has a note that says so. Otherwise neither the manager nor the handling of page faults is linked, and the loader
//! maps the whole stack. The linker decides, when it drops the sections to which nothing refers:
//!
//! ```text
//! memory::lock ──▶ tench_on_demand, a group of two sections      in section    tells
//!                  ├ distance to `start_on_demand`               tench_start   `_start`, which looks there
//!                  └ OWN_STACK                                   .note.tench   the loader
//! ```

use alloc::string::{String, ToString};
use core::fmt::Display;

use crate::eprintln;

/// Return value of `main`.
pub trait Termination {
    /// Returns the exit code; prints an error.
    fn report(self) -> i32;
}

impl Termination for () {
    fn report(self) -> i32 {
        0
    }
}

impl Termination for i32 {
    fn report(self) -> i32 {
        self
    }
}

impl<T: Termination, E: Display> Termination for Result<T, E> {
    fn report(self) -> i32 {
        match self {
            Ok(value) => value.report(),
            Err(error) => {
                eprintln!("{}: {error}", crate::process::name());
                1
            }
        }
    }
}

/// Returns the text of an error, for a `main` whose errors have several types.
pub fn text(error: impl Display) -> String {
    error.to_string()
}

/// Exit code of a program for whose main thread there was no memory for a stack.
pub const NO_STACK: i32 = 102;

#[cfg(target_os = "none")]
mod start {
    use tench_abi::layout::{address, slot};
    use tench_abi::process::note;
    use tench_sys::{Cap, ThreadBlock};

    use crate::memory::{self, Anonymous};
    use crate::{eprintln, process, thread, upcall};

    unsafe extern "Rust" {
        /// Defined by [`entry!`](crate::entry), or by the C runtime.
        safe fn tench_main() -> i32;
    }

    /// The main thread's block. Only that thread uses it.
    struct MainThread(ThreadBlock);

    // SAFETY: only the main thread reaches it, through its thread pointer.
    unsafe impl Sync for MainThread {}

    static MAIN_THREAD: MainThread = MainThread(ThreadBlock::new());

    // The group, and the head of its section, which is always linked: an empty section would have no end either.
    core::arch::global_asm!(
        ".pushsection tench_start, \"a\", %progbits",
        ".balign 4",
        "tench_start_head: .word 0",
        ".popsection",
        ".pushsection tench_start, \"aG\", %progbits, tench_on_demand",
        ".balign 4",
        "tench_on_demand:",
        ".word {start_on_demand} - .",
        ".popsection",
        ".pushsection .note.tench, \"aG\", %note, tench_on_demand",
        ".balign 4",
        ".word {name_size}, 4, {kind}",
        ".asciz \"Tench\"",
        ".balign 4",
        ".word {flags}",
        ".popsection",
        start_on_demand = sym start_on_demand,
        name_size = const note::NAME.len(),
        kind = const note::KIND,
        flags = const note::OWN_STACK,
    );

    /// Entry point of the process: `x0` is the address of the information block, and the stack pointer is set. A frame
    /// record of zeros ends every backtrace here.
    #[unsafe(no_mangle)]
    #[unsafe(naked)]
    extern "C" fn _start() -> ! {
        core::arch::naked_asm!(
            "mov x29, xzr",
            "mov x30, xzr",
            "adrp x1, tench_start_head",
            "add x1, x1, :lo12:tench_start_head",
            "adrp x2, __stop_tench_start",
            "add x2, x2, :lo12:__stop_tench_start",
            "add x1, x1, #4",
            "cmp x1, x2",
            "b.eq 0f",
            "ldrsw x2, [x1]",
            "add x1, x1, x2",
            "b {start}",
            "0: mov x1, xzr",
            "b {start}",
            start = sym start,
        )
    }

    /// Sets up the main thread and runs `main`. If the loader leaves the stack to the program, `on_demand` makes it.
    /// (The loader gives basic servers, which do without demand paging, a whole one all the same.)
    extern "C" fn start(information: usize, on_demand: Option<extern "C" fn(usize) -> !>) -> ! {
        // SAFETY: this is the address that the loader passed.
        unsafe { process::set_block(information) };
        // The first process has no such information: the kernel puts its things at fixed addresses.
        let (bottom, top, ipc_buffer) = match process::info() {
            Some(info) => (info.stack_bottom, info.stack_top, info.ipc_buffer),
            None => (address::STACK_TOP - address::STACK_SIZE, address::STACK_TOP, address::IPC_BUFFERS),
        };
        let block = &MAIN_THREAD.0;
        block.ipc_buffer.set(ipc_buffer as usize);
        block.thread.set(slot::THREAD);
        block.stack_bottom.set(bottom as usize);
        block.stack_top.set(top as usize);
        block.runtime.set(thread::main_record());
        // SAFETY: the loader has mapped the IPC buffer there, and this is the only thread.
        unsafe { block.install() };
        match (process::own_stack(), on_demand) {
            (Some(size), Some(start_on_demand)) => start_on_demand(size),
            _ => process::exit(tench_main()),
        }
    }

    /// Makes a stack of `size` bytes that comes on demand, and runs `main` on it.
    extern "C" fn start_on_demand(size: usize) -> ! {
        memory::enable_demand();
        match Anonymous::stack(size) {
            Ok(stack) => {
                let block = &MAIN_THREAD.0;
                block.stack_bottom.set(stack.address());
                block.stack_top.set(stack.end());
                let top = stack.end();
                // The stack stays as long as the process.
                core::mem::forget(stack);
                // SAFETY: `top` is the end of a new stack, and this function has nothing to return to.
                unsafe { continue_at(top) }
            }
            Err(error) => {
                eprintln!("{}: there is no stack: {error}", process::name());
                process::exit(super::NO_STACK)
            }
        }
    }

    /// Continues in [`run_on_demand`] on another stack.
    ///
    /// # Safety
    /// `top` must be the end of a stack that nothing else uses, and a multiple of 16.
    #[unsafe(naked)]
    unsafe extern "C" fn continue_at(top: usize) -> ! {
        core::arch::naked_asm!("mov sp, x0", "mov x29, xzr", "mov x30, xzr", "b {}", sym run_on_demand)
    }

    /// Sets up the handling of page faults on the initial stack, and runs `main`. Until then no page fault happens: a
    /// part of the new stack is already populated, and the memory manager, which touches the stack further down, is not
    /// called.
    extern "C" fn run_on_demand() -> ! {
        // SAFETY: the main thread has left the initial stack, and only its page faults use that stack from now on.
        if let Err(error) = unsafe { upcall::handle_page_faults(Cap::new(slot::THREAD), thread::main_fault_stack()) } {
            eprintln!("{}: the kernel refused to let it handle page faults: {error}", process::name());
            process::exit(101)
        }
        process::exit(tench_main())
    }

    /// Prints the panic with a backtrace, and ends the process with exit code 101.
    #[panic_handler]
    fn panic(info: &core::panic::PanicInfo) -> ! {
        crate::backtrace::panic(info)
    }
}
