//! Handling a thread's own faults and foreign system calls.
//!
//! When a thread with a handler faults, it continues in the handler of its own process, which sees and may change its
//! registers; then it goes on where it was. Self-paging, tracing, and programs of other systems are built this way. A
//! fault inside a handler goes to the process server, like a fault of a thread without handlers. So a handler must not
//! touch memory that comes on demand, unless [`make_present`](crate::memory::make_present) has populated it before.
//!
//! The library itself handles page faults, on a separate stack of each thread: it populates memory that comes on
//! demand. A handler of the program gets only the page faults that the library cannot resolve; without one, they end
//! the process with a report.

use core::sync::atomic::{AtomicPtr, Ordering};

use tench_abi::Kind;
use tench_abi::fault::{Class, Registers, Report};
use tench_abi::layout::slot;
use tench_procs_interface::Procs;
use tench_procs_interface::protocol::{FaultKind, OwnFault, Region as Part, RegionKind};
use tench_sys::block::{Staged, read_registers};
use tench_sys::thread::{upcall_resume, upcall_return};
use tench_sys::{Cap, Endpoint, Error, OWN_CSPACE, Thread};

use crate::memory::{self, Outcome};
use crate::paging::{Kind as For, Region, Verdict};
use crate::{eprintln, process, thread};

/// A fault handler, which may change the registers with which the thread goes on. The program counter is that of the
/// faulting instruction, or, for a foreign system call, of the one after it.
pub type Handler = fn(&Report, &mut Registers);

/// The handler of each class, for all threads that have enabled it.
static HANDLERS: [AtomicPtr<()>; Class::COUNT] = [const { AtomicPtr::new(core::ptr::null_mut()) }; Class::COUNT];

/// Sets the process's handler for a class of faults, and enables it for the running thread.
///
/// `stack` is the top of a stack on which the handler runs, for this thread alone, or 0. If memory comes on demand, 0
/// means the stack on which the thread's page faults are handled (12 KiB), which is always mapped: one upcall runs at a
/// time. Otherwise, and in threads that this library has not made, it means the stack in use when the fault happens; a
/// handler for faults of the stack itself needs one of its own then.
///
/// # Safety
/// The handler must leave registers with which the thread can go on, and must take no lock that the interrupted code
/// may hold; `stack` must be 0 or the end of mapped memory that nothing else uses.
pub unsafe fn handle(class: Class, handler: Handler, stack: usize) -> Result<(), Error> {
    HANDLERS[class as usize].store(handler as *mut (), Ordering::Release);
    // Where memory comes on demand, the mapped part of the stack in use may end just below.
    let stack = if stack == 0 { thread::fault_stack() } else { stack };
    // SAFETY: `enter` handles an upcall, and the caller guarantees the stack.
    unsafe { thread::current_thread().faults_upcall(class, server_for(class), enter as *const () as usize, stack) }
}

/// Restores the default handling of a class of faults of the running thread: page faults go to the library, others to
/// the process server.
pub fn stop_handling(class: Class) -> Result<(), Error> {
    if class == Class::PageFault && thread::fault_stack() != 0 {
        HANDLERS[class as usize].store(core::ptr::null_mut(), Ordering::Release);
        // SAFETY: the stack is this thread's.
        return unsafe { handle_page_faults(thread::current_thread(), thread::fault_stack()) };
    }
    thread::current_thread().faults_to(class, server_for(class))
}

/// Makes this library handle page faults of a thread.
///
/// # Safety
/// `stack` must be the end of memory that is always mapped, that nothing else uses, and that is large enough.
pub(crate) unsafe fn handle_page_faults(of: Cap<Thread>, stack: usize) -> Result<(), Error> {
    let server = Some(Cap::new(slot::PROCS));
    // SAFETY: `enter` handles an upcall, and the caller guarantees the stack.
    unsafe { of.faults_upcall(Class::PageFault, server, enter as *const () as usize, stack) }
}

/// Returns the endpoint for a class of faults that the program does not handle: the process server, if the thread
/// cannot go on.
fn server_for(class: Class) -> Option<Cap<Endpoint>> {
    if Class::STOPPING.contains(&class) { server() } else { None }
}

/// Returns the process server, if there is one.
fn server() -> Option<Cap<Endpoint>> {
    let found = OWN_CSPACE.identify_at(slot::PROCS);
    found.is_ok_and(|found| found.kind == Kind::Endpoint).then_some(Cap::new(slot::PROCS))
}

/// Entry point of upcalls. The faulting thread's registers lie in the IPC buffer, and so may a message that it was
/// about to send; resolving a page fault leaves both as they are.
extern "C" fn enter(class: u64, address: u64, instruction: u64, syndrome: u64) -> ! {
    let report = Report { class, address, instruction, syndrome };
    let is_page_fault = report.class == Class::PageFault as u64;
    let outcome = if is_page_fault { memory::handle_fault(&report) } else { None };
    let error = if matches!(outcome, Some(Outcome::Populated)) {
        // SAFETY: this is an upcall, and the memory that the instruction needs is mapped now.
        unsafe { upcall_resume() }
    } else {
        call_handler(&report, outcome)
    };
    eprintln!("{}: the kernel refused to end an upcall: {error}", process::name());
    process::exit(101)
}

/// Calls the program's handler, and ends the upcall; without a handler, ends the process with a report that names the
/// library's outcome. Returns only on failure.
///
/// Its locals take more than a kibibyte of stack, which the path that resolves a fault needs for other things.
#[inline(never)]
fn call_handler(report: &Report, outcome: Option<Outcome>) -> Error {
    // A page fault, or the end of a budget, can come while the interrupted code writes a message, and the handler may
    // send messages itself. A foreign system call comes only where the program makes one.
    let is_anywhere = report.class == Class::PageFault as u64 || report.class == Class::Timeout as u64;
    let staged = if is_anywhere { Staged::save() } else { None };
    let place = HANDLERS.get(report.class as usize);
    let pointer = place.map_or(core::ptr::null_mut(), |place| place.load(Ordering::Acquire));
    if pointer.is_null() {
        end(report, outcome);
    }
    let Some(mut registers) = read_registers() else { return Error::NoIpcBuffer };
    // SAFETY: only `handle` stores there, and only handlers.
    let handler = unsafe { core::mem::transmute::<*mut (), Handler>(pointer) };
    handler(report, &mut registers);
    if let Some(staged) = staged {
        staged.restore();
    }
    // SAFETY: this is an upcall, and the caller of `handle` guarantees the registers that the handler leaves.
    unsafe { upcall_return(&registers) }
}

/// Ends the process with a report of an unresolvable fault.
fn end(report: &Report, outcome: Option<Outcome>) -> ! {
    let is_page_fault = report.class == Class::PageFault as u64;
    let (kind, region) = if is_page_fault { why(outcome) } else { (FaultKind::Other, None) };
    let part =
        region.and_then(|region| Some(Part { kind: name(region.kind)?, start: region.start, size: region.size }));
    // This returns only on failure.
    if let Err(failure) = Procs::STANDARD.fault(OwnFault::new(report, kind, part)) {
        eprintln!("{}: {kind} at {:#x}, and {failure}", process::name(), report.address);
    }
    process::exit(101)
}

/// Returns the cause and the region of a page fault that the library did not resolve.
fn why(outcome: Option<Outcome>) -> (FaultKind, Option<Region>) {
    match outcome {
        Some(Outcome::Refused(verdict)) => match verdict {
            Verdict::Null => (FaultKind::NullDereference, None),
            Verdict::Guard(region) => (FaultKind::GuardPage, Some(region)),
            Verdict::Rights(region) => (FaultKind::RightsViolation, Some(region)),
            Verdict::NotPopulated(region) | Verdict::Mapped(region, _) | Verdict::Lazy(region) => {
                (FaultKind::NeverAllocated, Some(region))
            }
            Verdict::NotAllocated => (FaultKind::NeverAllocated, None),
        },
        Some(Outcome::NoMemory(region)) => (FaultKind::OutOfMemory, Some(region)),
        // The fault happened in the manager itself. A populated page is not reported.
        Some(Outcome::Populated) | None => (FaultKind::NeverAllocated, None),
    }
}

/// Returns the process server's name for a region; `None` for regions that it made itself and knows better.
const fn name(kind: For) -> Option<RegionKind> {
    match kind {
        For::Anonymous => Some(RegionKind::Anonymous),
        For::Heap => Some(RegionKind::Heap),
        For::Stack => Some(RegionKind::Stack),
        For::Guard => Some(RegionKind::Guard),
        For::Frame => Some(RegionKind::Frame),
        For::Foreign => None,
    }
}
