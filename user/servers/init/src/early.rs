//! Output before there is a console, and the stop.

use core::fmt;

use tench_abi::layout::{address, slot};
use tench_sys::{Cap, Kernel, ThreadBlock};

const KERNEL: Cap<Kernel> = Cap::new(slot::KERNEL);

/// The main thread's thread block. Only that thread uses it: init has no other.
struct MainThread(ThreadBlock);

// SAFETY: init has one thread.
unsafe impl Sync for MainThread {}

static MAIN_THREAD: MainThread = MainThread(ThreadBlock::new());

/// Makes the IPC buffer usable.
pub fn set_up_thread() {
    let block = &MAIN_THREAD.0;
    block.ipc_buffer.set(address::IPC_BUFFERS as usize);
    block.thread.set(slot::THREAD);
    block.stack_bottom.set((address::STACK_TOP - address::STACK_SIZE) as usize);
    block.stack_top.set(address::STACK_TOP as usize);
    // SAFETY: the kernel has mapped the IPC buffer there before it started this thread.
    unsafe { block.install() };
}

/// Writes with `KernelPrint`.
struct Output;

impl fmt::Write for Output {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        KERNEL.print(text.as_bytes()).map_err(|_| fmt::Error)
    }
}

/// Prints; if the kernel refuses that, there is nowhere left to print.
pub fn print(text: fmt::Arguments<'_>) {
    let _ = fmt::Write::write_fmt(&mut Output, text);
}

/// Prints the reason, and powers the machine off with status 1. On a further core only this core stops: the core that
/// has started it notices the silence, and reports that.
pub fn stop(why: &dyn fmt::Display) -> ! {
    match KERNEL.machine() {
        Ok(machine) if machine.core > 0 => print(format_args!("init of core {}: {why}\n", machine.core)),
        _ => print(format_args!("init: {why}\n")),
    }
    KERNEL.power_off(1);
    loop {
        core::hint::spin_loop();
    }
}
