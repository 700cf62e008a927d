//! The threads' calls and faults, which come as messages, and their answers.

use alloc::format;
use alloc::string::String;
use core::time::Duration;

use tench::abi::fault::{Access as KernelAccess, Class, ForeignCall, Report, STEP_CLASS};
use tench::sys::{Error, Message, Received, Wait};
use tench::time;
use tench_linux::{Fault, Instance, Machine};
use tench_linux_memory::Access;

use crate::machine::Kernel;

/// Serves the processes of an instance until the first one has ended, and with it all others.
///
/// # Errors
/// Says what the kernel refuses.
pub fn run(instance: &mut Instance<Kernel>) -> Result<(), String> {
    let endpoint = instance.system.memory.hardware.endpoint();
    // Both are large, and are used again and again.
    let (mut message, mut received) = (Message::new(0), Received::new());
    while instance.status().is_none() {
        let wait = instance.deadline().map_or(Wait::FOREVER, |due| wait_for(instance, due));
        let kernel = &mut instance.system.memory.hardware;
        let wait = wait.with_reply(kernel.current());
        let result = match kernel.take_answer() {
            Some(answer) => {
                answer.write(&mut message);
                endpoint.reply_receive_into(&message, wait, &mut received)
            }
            None => endpoint.receive_into(wait, &mut received),
        };
        match result {
            Ok(()) if received.is_notification() => {
                let kernel = &mut instance.system.memory.hardware;
                let (event, findings) = (kernel.take_event(received.badge()), kernel.take_findings(received.badge()));
                if event.is_interrupt {
                    instance.interrupt();
                }
                if let Some(bytes) = event.input {
                    instance.input(&bytes);
                }
                for (number, finding) in findings {
                    instance.take_finding(number, finding);
                }
            }
            Ok(()) => serve(instance, &received),
            Err(Error::TimedOut) => {}
            Err(error) => return Err(format!("the kernel refuses to receive: {error}")),
        }
    }
    Ok(())
}

/// Returns how to receive until a time. If it has come, its waits are ended first.
fn wait_for(instance: &mut Instance<Kernel>, due: Duration) -> Wait {
    let kernel = &mut instance.system.memory.hardware;
    if kernel.timer.waits_for(due) {
        return Wait::FOREVER;
    }
    let left = due.saturating_sub(kernel.monotonic());
    if !left.is_zero() {
        return kernel.timer.wait(due, left);
    }
    instance.pass_time();
    // Whoever has sent something is served in between, however much time there is to pass.
    Wait::until(time::deadline(Duration::ZERO))
}

/// The part of a data abort's syndrome that has the cause.
const STATUS: u64 = 0x3f;
/// The cause of an alignment fault.
const MISALIGNED: u64 = 0x21;
/// The part of the syndrome that says what kind of exception it is, and that of a `brk`.
const CLASS: u32 = 26;
const BREAKPOINT: u64 = 0x3c;

/// Does what a message asks for.
fn serve(instance: &mut Instance<Kernel>, received: &Received) {
    let process = received.badge() as u32;
    if !received.is_fault() {
        let mut words = [0; 7];
        for (word, value) in words.iter_mut().zip(received.words()) {
            *word = *value;
        }
        let [number, arguments @ ..] = words;
        return instance.call_by_message(process, number, &arguments);
    }
    if received.label() & 0xffff == Class::ForeignCall as u64
        && let Some(words) = received.words().first_chunk()
    {
        let call = ForeignCall::of_message(received.label(), words);
        return instance.call(process, call.number, &call.arguments);
    }
    let mut words = [0; 8];
    for (word, value) in words.iter_mut().zip(received.words()) {
        *word = *value;
    }
    let report = Report::of_message(received.label(), &words);
    let fault = if report.class == Class::PageFault as u64 {
        let access = match report.access() {
            KernelAccess::Read => Access::Read,
            KernelAccess::Write => Access::Write,
            KernelAccess::Execute => Access::Execute,
        };
        match report.syndrome & STATUS {
            MISALIGNED => Fault::Misaligned { address: report.address, instruction: report.instruction },
            _ => Fault::Access { address: report.address, access, instruction: report.instruction },
        }
    } else if report.syndrome >> CLASS == BREAKPOINT {
        Fault::Breakpoint(report.instruction)
    } else if report.syndrome >> CLASS == STEP_CLASS {
        Fault::Step(report.instruction)
    } else {
        Fault::Instruction(report.instruction)
    };
    instance.fault(process, fault);
}
