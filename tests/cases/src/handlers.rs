//! Tests of faults in handlers: while a fault or a foreign system call is handled in the process, no other can be.
//!
//! ```text
//!   handler of …         accesses …                               and
//!   any class            memory that is present                   goes on
//!   any class            memory on demand that was populated      goes on
//!   any class            memory on demand                         the process ends: page fault in a fault handler
//!   any class            an address that is never mapped          the process ends, with the kind of fault
//! ```
//! Each is a process of its own, because most of them end the process.

use alloc::format;
use core::hint::black_box;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tench::abi::fault::{Class, Registers, Report};
use tench::abi::memory::PAGE_SIZE;
use tench::memory::{self, Anonymous};
use tench::procs::protocol::{FaultKind, State};
use tench::thread::Builder;
use tench::upcall;

use crate::assembly;
use crate::case::{Case, Failure, Outcome};
use crate::faults::play_child;
use crate::stage::Stage;

pub const CASES: &[Case] = &[
    Case::new("UPC0006", "a page fault in a handler of any class ends the process with a report", nested),
    Case::new("UPC0007", "a handler may touch what is there and what was made present", present),
    Case::new("UPC0008", "a handler runs where the stack in use ends", at_the_end),
    Case::new("UPC0009", "a handler that overflows its stack ends the process", overflow),
    Case::new("UPC0010", "a handler that faults for other reasons ends the process, and says why", other_reasons),
    Case::new("UPC0011", "a program's own handler gets the page faults without remedy, and no others", own_handler),
    Case::new("UPC0012", "after a handler of page faults memory comes on demand as before", handed_back),
];

/// Names of the classes for which a handler is tested; the handler goes on behind the faulting instruction.
const CLASSES: [(&str, Class); 3] =
    [("exception", Class::Exception), ("foreign", Class::ForeignCall), ("page", Class::PageFault)];

/// Address to which the handler writes, and how often the handler ran.
static TARGET: AtomicUsize = AtomicUsize::new(0);
static HANDLED: AtomicU64 = AtomicU64::new(0);

/// Goes on behind the instruction.
fn skip(report: &Report, registers: &mut Registers) {
    HANDLED.fetch_add(1, Ordering::Relaxed);
    if report.class != Class::ForeignCall as u64 {
        registers.pc += 4;
    }
}

/// Stores a word, then goes on behind the instruction.
fn store(report: &Report, registers: &mut Registers) {
    let pointer = core::ptr::with_exposed_provenance_mut::<u64>(TARGET.load(Ordering::Relaxed));
    // SAFETY: the address is one that the child has for itself, or the store faults.
    unsafe { pointer.write_volatile(HANDLED.load(Ordering::Relaxed)) };
    skip(report, registers);
}

/// Uses all of its stack and more, then goes on behind the instruction.
fn sink(report: &Report, registers: &mut Registers) {
    HANDLED.store(descend(1 << 20) as u64, Ordering::Relaxed);
    skip(report, registers);
}

/// Executes an undefined instruction, then goes on behind the instruction.
fn stumble(report: &Report, registers: &mut Registers) {
    // SAFETY: the instruction faults, which ends this process.
    HANDLED.store(unsafe { assembly::undefined(0) }, Ordering::Relaxed);
    skip(report, registers);
}

/// Uses about a kibibyte of stack for each level.
#[inline(never)]
fn descend(levels: usize) -> usize {
    let block = black_box([levels; 128]);
    if levels == 0 { block[0] } else { descend(levels - 1) + usize::from(block[5] == 0) }
}

/// Raises a fault of a class.
fn provoke(class: Class) {
    match class {
        // SAFETY: the handler, which the caller has set, skips the load.
        Class::PageFault => unsafe { assembly::load(16) },
        // SAFETY: as above.
        Class::Exception => unsafe { assembly::undefined(0) },
        // SAFETY: the handler replies to the call.
        Class::ForeignCall => unsafe { assembly::foreign(1, 2, 3) },
        // No fault is raised: see the cases of `budget`.
        Class::Timeout => 0,
    };
}

/// Raises a fault with a handler for it. Returns whether the handler ran.
fn with_handler(class: Class, handler: upcall::Handler) -> Option<bool> {
    // SAFETY: the handlers of this file skip the instruction, and take no lock.
    unsafe { upcall::handle(class, handler, 0) }.ok()?;
    let before = HANDLED.load(Ordering::Relaxed);
    provoke(class);
    upcall::stop_handling(class).ok()?;
    Some(HANDLED.load(Ordering::Relaxed) == before + 1)
}

/// Raises a fault near the end of the stack: the pages below have not been touched.
#[inline(never)]
fn near_the_end(class: Class, levels: usize) -> Option<bool> {
    let block = black_box([levels; 32]);
    let ran = with_handler(class, skip)?;
    if levels == 0 || block[7] != levels { Some(ran) } else { near_the_end(class, levels - 1).map(|all| all && ran) }
}

/// Runs the child: `KIND-CLASS`, or `KIND`.
pub fn child(name: &str) -> Option<i32> {
    let memory = Anonymous::new(1 << 20).ok()?;
    TARGET.store(memory.address(), Ordering::Relaxed);
    let (kind, class) = name.split_once('-').unwrap_or((name, "exception"));
    let class = CLASSES.iter().find(|(name, _)| *name == class)?.1;
    let ran = match kind {
        "nested" => with_handler(class, store)?,
        "present" => {
            memory::make_present(memory.address(), 8).ok()?;
            with_handler(class, store)?
        }
        "null" => {
            TARGET.store(8, Ordering::Relaxed);
            with_handler(class, store)?
        }
        "overflow" => with_handler(class, sink)?,
        "thread" => Builder::new().spawn(move || with_handler(class, sink)).ok()?.join()?,
        "stumble" => with_handler(class, stumble)?,
        "end" => near_the_end(class, 200)? && Builder::new().spawn(move || near_the_end(class, 100)).ok()?.join()?,
        "own" => own(memory.address())?,
        "back" => {
            let ran = with_handler(Class::PageFault, skip)?;
            write(memory.address());
            ran && descend(500) == 0
        }
        _ => return None,
    };
    Some(if ran { 0 } else { 2 })
}

/// Writes a word.
fn write(address: usize) {
    // SAFETY: the child has the memory for itself, or the store faults.
    unsafe { core::ptr::with_exposed_provenance_mut::<u64>(address).write_volatile(7) };
}

/// Accesses memory on demand and addresses without remedy in turn, with a handler for the latter.
fn own(address: usize) -> Option<bool> {
    // SAFETY: the handler skips the instruction, and takes no lock.
    unsafe { upcall::handle(Class::PageFault, skip, 0) }.ok()?;
    for page in 0..64 {
        write(address + page * PAGE_SIZE);
        provoke(Class::PageFault);
    }
    upcall::stop_handling(Class::PageFault).ok()?;
    Some(HANDLED.load(Ordering::Relaxed) == 64)
}

/// Starts a child that must end by a fault.
fn faults_with(name: &str, kind: FaultKind) -> Outcome {
    let status = play_child(&["handler", name])?;
    equal!((name, status.state, status.fault()), (name, State::Faulted, Some(kind)));
    Ok(())
}

/// Starts a child that must end successfully.
fn ends_well(name: &str) -> Outcome {
    let status = play_child(&["handler", name])?;
    match status.exit_code() {
        Some(0) => Ok(()),
        _ => Err(Failure::new(format!("{name}: {:?} with {:?}", status.state, status.fault()))),
    }
}

fn nested(_: &mut Stage) -> Outcome {
    CLASSES.iter().try_for_each(|(class, _)| faults_with(&format!("nested-{class}"), FaultKind::InHandler))
}

fn present(_: &mut Stage) -> Outcome {
    CLASSES.iter().try_for_each(|(class, _)| ends_well(&format!("present-{class}")))
}

fn at_the_end(_: &mut Stage) -> Outcome {
    CLASSES.iter().try_for_each(|(class, _)| ends_well(&format!("end-{class}")))
}

fn overflow(_: &mut Stage) -> Outcome {
    for (class, _) in CLASSES {
        // The main thread handles faults on the process's first stack, other classes on a stack of their own.
        faults_with(&format!("overflow-{class}"), FaultKind::GuardPage)?;
        faults_with(&format!("thread-{class}"), FaultKind::InHandler)?;
    }
    Ok(())
}

fn other_reasons(_: &mut Stage) -> Outcome {
    for (class, _) in CLASSES {
        faults_with(&format!("null-{class}"), FaultKind::NullDereference)?;
        faults_with(&format!("stumble-{class}"), FaultKind::UndefinedInstruction)?;
    }
    Ok(())
}

fn own_handler(_: &mut Stage) -> Outcome {
    ends_well("own")
}

fn handed_back(_: &mut Stage) -> Outcome {
    ends_well("back")
}
