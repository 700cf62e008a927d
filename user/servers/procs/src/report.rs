//! Fault messages, and where they are printed.

use alloc::format;

use tench_abi::layout::slot;
use tench_console_interface::Console;
use tench_console_interface::protocol::MAX_TEXT;
use tench_loader::fault::Fault;
use tench_procs_interface::pid::Shown;
use tench_procs_interface::protocol::FaultKind;
use tench_protocol::Failure;
use tench_sys::{Cap, Endpoint, Kernel};

use crate::patient::Patient;

/// Reports a fault of a process and returns its kind.
pub fn fault(console: Option<Cap<Endpoint>>, name: &str, pid: u64, fault: &Fault) -> FaultKind {
    let base = name.rsplit('/').next().unwrap_or(name);
    let instruction = fault.layout.linked(fault.report.instruction);
    say(console, &format!("{base} (pid {}): {fault}\n  at {instruction:#x} in {base}\n", Shown(pid)));
    fault.kind()
}

/// Prints on the console or, if that does not reply, on the kernel's early output.
pub fn say(console: Option<Cap<Endpoint>>, text: &str) {
    let printed = console.is_some_and(|console| {
        text.as_bytes().chunks(MAX_TEXT).all(|part| {
            // An error reply is no reason to print the text twice.
            !matches!(Console::at(Patient(console)).put(part), Err(Failure::Lost(_)))
        })
    });
    if !printed {
        // If this is refused too, there is nowhere left to print.
        let _ = Cap::<Kernel>::new(slot::KERNEL).print(text.as_bytes());
    }
}
