//! Calls with a timeout, to servers that may have died.

use core::time::Duration;

use tench::time;
use tench_abi::layout::slot;
use tench_console_interface::Console;
use tench_console_interface::protocol::MAX_TEXT;
use tench_protocol::{Failure, Transport};
use tench_sys::{Cap, CapAddress, Endpoint, Error, Kernel, Message, Received};

/// Timeout of a call. Servers reply at once unless they have died or are kept busy; then they are called again later.
const PATIENCE: Duration = Duration::from_millis(20);
/// Timeout of writing text. The console may have accepted it, so it appears twice if the reply comes later than that.
const PATIENCE_WITH_TEXT: Duration = Duration::from_millis(250);

/// A server that is called with a timeout. No capabilities are sent to it.
#[derive(Clone, Copy)]
pub struct Patient(pub Cap<Endpoint>);

impl Transport for Patient {
    fn call(self, request: &Message, _: &[CapAddress], reply: &mut Received) -> Result<(), Error> {
        self.0.call_until(time::deadline(PATIENCE), request, &[], reply)
    }
}

/// A server that is called with the timeout of text.
#[derive(Clone, Copy)]
struct PatientWithText(Cap<Endpoint>);

impl Transport for PatientWithText {
    fn call(self, request: &Message, _: &[CapAddress], reply: &mut Received) -> Result<(), Error> {
        self.0.call_until(time::deadline(PATIENCE_WITH_TEXT), request, &[], reply)
    }
}

/// Prints on the console or, if that does not reply, on the kernel's early output.
pub fn say(console: Option<Cap<Endpoint>>, text: &str) {
    let printed = console.is_some_and(|console| {
        text.as_bytes().chunks(MAX_TEXT).all(|part| {
            // An error reply is no reason to print the text twice.
            !matches!(Console::at(PatientWithText(console)).put(part), Err(Failure::Lost(_)))
        })
    });
    if !printed {
        // If this is refused too, there is nowhere left to print.
        let _ = Cap::<Kernel>::new(slot::KERNEL).print(text.as_bytes());
    }
}
