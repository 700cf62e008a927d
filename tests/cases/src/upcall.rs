//! Tests of upcalls: a thread handles its own faults.

use core::sync::atomic::{AtomicU64, Ordering};

use tench::abi::fault::{Class, reply};
use tench::abi::object::ThreadState;
use tench::sys::block::read_registers;
use tench::sys::thread::upcall_return;
use tench::sys::{Cap, Endpoint, Message, Wait, ipc::BOUND_REPLY};

use crate::assembly;
use crate::case::{Case, Outcome};
use crate::stage::{HIGH, Stage};
use crate::worker::{Equipment, Worker, patience};

pub const CASES: &[Case] = &[
    Case::new("UPC0001", "an upcall is told what happened, and goes on with other registers", page_fault),
    Case::new("UPC0002", "an upcall handles an exception on a stack of its own", exception),
    Case::new("UPC0003", "an upcall handles foreign system calls", foreign),
    Case::new("UPC0004", "a fault in an upcall goes to the endpoint", double_fault),
    Case::new("UPC0005", "without an IPC buffer a fault goes to the endpoint", without_buffer),
];

/// Values that the handler recorded: class, address, instruction, and the address of a variable of its own.
static FOUND: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];

/// Handles a fault: skips the instruction, with 77 in `x0`. A foreign system call returns the sum of its arguments.
unsafe extern "C" fn handle(class: u64, address: u64, instruction: u64, _syndrome: u64) -> ! {
    let here = 0u64;
    let own = core::ptr::from_ref(&here).expose_provenance() as u64;
    for (place, value) in FOUND.iter().zip([class, address, instruction, own]) {
        place.store(value, Ordering::SeqCst);
    }
    if let Some(mut registers) = read_registers() {
        if class == Class::ForeignCall as u64 {
            registers.x[0] += registers.x[1] + registers.x[2];
        } else {
            registers.x[0] = 77;
            registers.pc += 4;
        }
        // SAFETY: the thread goes on behind the instruction that faulted.
        unsafe { upcall_return(&registers) };
    }
    loop {
        core::hint::spin_loop();
    }
}

/// A handler that faults itself.
unsafe extern "C" fn fault_again(_: u64, _: u64, _: u64, _: u64) -> ! {
    // SAFETY: the fault goes to the endpoint.
    unsafe { assembly::undefined(0) };
    loop {
        core::hint::spin_loop();
    }
}

/// Type of a handler as the kernel sees it.
type Handler = unsafe extern "C" fn(u64, u64, u64, u64) -> !;

/// Spawns a worker whose faults of a class are upcalls.
fn self_reliant<F: FnOnce() -> u64 + Copy + 'static>(
    stage: &mut Stage,
    (class, handler, stack): (Class, Handler, usize),
    endpoint: Option<Cap<Endpoint>>,
    body: F,
) -> Outcome<Worker<u64>> {
    let worker = stage.spawn_with(Equipment { start: false, ..Equipment::at(HIGH) }, body)?;
    // SAFETY: the handler never returns, and the stack, if one is named, has no other user.
    unsafe { worker.thread.faults_upcall(class, endpoint, handler as *const () as usize, stack) }?;
    worker.thread.resume()?;
    Ok(worker)
}

/// Returns what the handler was given.
fn found() -> [u64; 4] {
    [0, 1, 2, 3].map(|index| FOUND[index].load(Ordering::SeqCst))
}

fn page_fault(stage: &mut Stage) -> Outcome {
    let handler = (Class::PageFault, handle as Handler, 0);
    let worker = self_reliant(stage, handler, None, || {
        // SAFETY: the fault is handled.
        let first = unsafe { assembly::load(24) };
        // SAFETY: as above.
        first + unsafe { assembly::load(32) }
    })?;
    equal!(worker.join()?, 154);
    equal!(found()[..3], [Class::PageFault as u64, 32, assembly::load as *const () as u64]);
    Ok(())
}

fn exception(stage: &mut Stage) -> Outcome {
    let (bottom, top) = (stage.worker_memory[7].0.address() as u64, stage.worker_memory[7].0.end());
    let handler = (Class::Exception, handle as Handler, top);
    // SAFETY: the fault is handled.
    let worker = self_reliant(stage, handler, None, || unsafe { assembly::undefined(0) })?;
    equal!(worker.join()?, 77);
    equal!(found()[..3], [Class::Exception as u64, 0, assembly::undefined as *const () as u64]);
    check!(found()[3] > bottom && found()[3] < top as u64);
    Ok(())
}

fn foreign(stage: &mut Stage) -> Outcome {
    let handler = (Class::ForeignCall, handle as Handler, 0);
    // SAFETY: the call is handled.
    let worker = self_reliant(stage, handler, None, || unsafe { assembly::foreign(1, 20, 300) })?;
    equal!(worker.join()?, 321);
    equal!(found()[..3], [Class::ForeignCall as u64, 0, assembly::foreign as *const () as u64]);
    Ok(())
}

fn double_fault(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let handler = (Class::Exception, fault_again as Handler, 0);
    // SAFETY: the fault is handled.
    let worker = self_reliant(stage, handler, Some(endpoint), || unsafe { assembly::undefined(0) })?;
    let received = endpoint.receive(Wait::until(patience()))?;
    check!(received.is_fault());
    BOUND_REPLY.reply(&Message::new(reply::STOP))?;
    equal!(worker.state()?, ThreadState::Faulted);
    Ok(())
}

fn without_buffer(stage: &mut Stage) -> Outcome {
    let endpoint = stage.endpoint()?;
    let bare = Equipment { start: false, buffer: false, ..Equipment::at(HIGH) };
    // SAFETY: the fault goes to the endpoint.
    let worker = stage.spawn_with(bare, || unsafe { assembly::undefined(0) })?;
    let entry = handle as *const () as usize;
    // SAFETY: the handler never returns.
    unsafe { worker.thread.faults_upcall(Class::Exception, Some(endpoint), entry, 0) }?;
    worker.thread.resume()?;
    check!(endpoint.receive(Wait::until(patience()))?.is_fault());
    BOUND_REPLY.reply(&Message::new(reply::STOP))?;
    Ok(())
}
