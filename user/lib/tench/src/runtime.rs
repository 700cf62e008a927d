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
    use tench_sys::ThreadBlock;

    use crate::process;

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
        // SAFETY: the loader has mapped the message area there, and this is the only thread.
        unsafe { block.install() };
        process::exit(tench_main())
    }

    /// Prints why and where, and ends the process with exit code 101.
    #[panic_handler]
    fn panic(info: &core::panic::PanicInfo) -> ! {
        crate::backtrace::panic(info)
    }
}
