//! The first instructions of a program, and what its `main` may return.
//!
//! No linker script is needed: the linker's own layout puts a program at `0x20_0000`
//! ([`PROGRAM`](tench_abi::layout::address::PROGRAM)), with code, constants and data in pages of their own.

use core::fmt::Display;

use crate::eprintln;

/// What `main` may return.
pub trait Termination {
    /// The exit code; prints an error.
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

#[cfg(target_os = "none")]
mod start {
    use tench_abi::layout::{address, slot};
    use tench_procs_client::protocol::pid;
    use tench_sys::{Cap, ThreadBlock};

    use crate::{memory, process, thread, upcall};

    unsafe extern "Rust" {
        /// Defined by [`entry!`](crate::entry), or by the C runtime.
        safe fn tench_main() -> i32;
    }

    /// The main thread's block. Only that thread uses it.
    struct MainThread(ThreadBlock);

    // SAFETY: only the main thread reaches it, through its thread pointer.
    unsafe impl Sync for MainThread {}

    static MAIN_THREAD: MainThread = MainThread(ThreadBlock::new());

    /// Where the process begins: `x0` is the address of the information block, the stack pointer is set. A frame record
    /// of zeros ends every backtrace here.
    #[unsafe(no_mangle)]
    #[unsafe(naked)]
    extern "C" fn _start() -> ! {
        core::arch::naked_asm!("mov x29, xzr", "mov x30, xzr", "b {}", sym start)
    }

    /// Sets up the main thread, and runs `main`.
    extern "C" fn start(information: usize) -> ! {
        // SAFETY: this is the address that the loader passed.
        unsafe { process::set_block(information) };
        let (bottom, top) = match process::info() {
            Some(info) => (info.stack_bottom, info.stack_top),
            None => (address::STACK_TOP - address::STACK_SIZE, address::STACK_TOP),
        };
        let block = &MAIN_THREAD.0;
        block.message_area.set(address::MESSAGE_AREAS as usize);
        block.thread.set(slot::THREAD);
        block.stack_bottom.set(bottom as usize);
        block.stack_top.set(top as usize);
        block.runtime.set(thread::main_record());
        // SAFETY: the loader has mapped the message area there, and this is the only thread.
        unsafe { block.install() };
        handle_page_faults();
        process::exit(tench_main())
    }

    /// Lets memory come on demand, in a process that others serve: those that serve everybody do without.
    fn handle_page_faults() {
        if process::id() > pid::PROCS {
            // SAFETY: the stack is the main thread's, for this.
            let handled = unsafe { upcall::handle_page_faults(Cap::new(slot::THREAD), thread::main_fault_stack()) };
            if handled.is_ok() {
                memory::enable_demand();
            }
        }
    }

    /// Prints why and where, and ends the process with exit code 101.
    #[panic_handler]
    fn panic(info: &core::panic::PanicInfo) -> ! {
        crate::backtrace::panic(info)
    }
}
