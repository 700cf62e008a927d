//! Attacks by threads that make single steps, as a debugger has its program make them.

use tench::abi::fault::{Class, reply};
use tench::memory::make;
use tench::sys::{Endpoint, Message, Wait, ipc::BOUND_REPLY, thread::yield_now};
use tench::thread::Builder;

use super::{Attack, said};
use crate::case::{Failure, Outcome};

pub const ATTACKS: &[Attack] =
    &[Attack::new("steps", "a thread that makes single steps, and gives way after each, stops no others", steps)
        .endless()];

/// Stack size in bytes.
const STACK: usize = 16 << 10;

/// Lets a thread make single steps for ever, many of them into a call after which others run.
fn steps() -> Outcome {
    let endpoint = make::<Endpoint>(0)?.leak();
    let stepped = said(Builder::new().stack_size(STACK).spawn(|| {
        loop {
            yield_now();
        }
    }))?;
    let Some(thread) = stepped.thread() else { return Err(Failure::new("it has no thread")) };
    thread.faults_to(Class::Exception, Some(endpoint))?;
    let registers = thread.read_registers(true)?;
    // SAFETY: the thread goes on where it was.
    unsafe { thread.step(&registers, true) }?;
    loop {
        endpoint.receive(Wait::FOREVER)?;
        let registers = thread.read_registers(false)?;
        // SAFETY: as above.
        unsafe { thread.step(&registers, false) }?;
        BOUND_REPLY.reply(&Message::new(reply::RESUME))?;
    }
}
