//! What is said about a fault, and where.

use alloc::format;
use core::time::Duration;

use tench::time;
use tench_abi::layout::slot;
use tench_console_client::Console;
use tench_console_client::protocol::MAX_TEXT;
use tench_loader::fault::Fault;
use tench_procs_client::protocol::FaultKind;
use tench_protocol::wire::Registers;
use tench_protocol::{Failure, Transport};
use tench_sys::{Cap, CapAddress, Endpoint, Error, Kernel, Message, Received, Wait, Words};

/// How long the console may take to accept a line. It answers at once unless it is what has died.
const PATIENCE: Duration = Duration::from_millis(100);

/// Reports a fault of a process and answers what it was.
pub fn fault(console: Option<Cap<Endpoint>>, name: &str, pid: u64, fault: &Fault) -> FaultKind {
    let base = name.rsplit('/').next().unwrap_or(name);
    let instruction = fault.layout.linked(fault.report.instruction);
    say(console, &format!("{base} (pid {pid}): {fault}\n  at {instruction:#x} in {base}\n"));
    fault.kind()
}

/// A server that is waited for a limited time.
#[derive(Clone, Copy)]
pub struct Patient(pub Cap<Endpoint>);

impl Transport for Patient {
    fn call_registers(self, label: u64, words: &Registers) -> Result<Words, Error> {
        let answer = self.call(&Message::with_words(label, &words.words[..words.length]), &[])?;
        let mut words = [0; 8];
        words.iter_mut().zip(answer.words()).for_each(|(place, word)| *place = *word);
        Ok(Words { tag: answer.tag(), badge: answer.badge(), words })
    }

    fn call(self, request: &Message, _: &[CapAddress]) -> Result<Received, Error> {
        self.0.call_with(request, Wait::until(time::deadline(PATIENCE)))
    }
}

/// Prints on the console, or, if that does not answer, on the kernel's early output.
pub fn say(console: Option<Cap<Endpoint>>, text: &str) {
    let printed = console.is_some_and(|console| {
        text.as_bytes().chunks(MAX_TEXT).all(|part| {
            // Another answer than success is no reason to say it twice.
            !matches!(Console::at(Patient(console)).put(part), Err(Failure::Lost(_)))
        })
    });
    if !printed {
        // Where this is refused too there is nobody to tell.
        let _ = Cap::<Kernel>::new(slot::KERNEL).print(text.as_bytes());
    }
}
