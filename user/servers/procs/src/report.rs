//! What is said about a fault, and where.

use alloc::format;
use alloc::string::String;
use core::time::Duration;

use tench::time;
use tench_abi::layout::slot;
use tench_console_client::protocol::{Label, MAX_TEXT};
use tench_loader::fault::Fault;
use tench_procs_client::protocol::FaultKind;
use tench_sys::{Cap, Endpoint, Kernel, Message, Wait};

/// How long the console may take to accept a line. It answers at once unless it is what has died.
const PATIENCE: Duration = Duration::from_millis(100);

/// Reports a fault of a process and answers what it was.
pub fn fault(console: Option<Cap<Endpoint>>, name: &str, pid: u64, fault: &Fault) -> FaultKind {
    let base = name.rsplit('/').next().unwrap_or(name);
    say(console, &format!("{base} (pid {pid}): {fault}\n  at {:#x} in {base}\n", fault.report.instruction));
    fault.kind()
}

/// Prints on the console, or, if that does not answer, on the kernel's early output.
pub fn say(console: Option<Cap<Endpoint>>, text: &String) {
    let printed = console.is_some_and(|console| {
        text.as_bytes().chunks(MAX_TEXT).all(|part| {
            let mut message = Message::new(Label::Write as u64);
            message.push_text(part);
            console.call_with(&message, Wait::until(time::deadline(PATIENCE))).is_ok()
        })
    });
    if !printed {
        // Where this is refused too there is nobody to tell.
        let _ = Cap::<Kernel>::new(slot::KERNEL).print(text.as_bytes());
    }
}
