//! Handling one's own faults and foreign system calls.
//!
//! A thread that has said so continues, when it faults, in a handler of its own process, which sees and may change its
//! registers, and then goes on where it was: self-paging, tracing, and programs of other systems are built so. A fault
//! inside a handler goes to the process server, like a fault of a thread without handlers.

use core::sync::atomic::{AtomicPtr, Ordering};

use tench_abi::Kind;
use tench_abi::fault::{Class, Registers, Report};
use tench_abi::layout::slot;
use tench_sys::block::{Staged, read_registers};
use tench_sys::thread::upcall_return;
use tench_sys::{Cap, Endpoint, Error, OWN_SPACE};

use crate::{eprintln, process, thread};

/// Handles a fault: may change the registers with which the thread goes on. The program counter is that of the faulting
/// instruction, or for a foreign system call of the one after it.
pub type Handler = fn(&Report, &mut Registers);

/// The handler of each class, for all threads that have enabled it.
static HANDLERS: [AtomicPtr<()>; Class::COUNT] = [const { AtomicPtr::new(core::ptr::null_mut()) }; Class::COUNT];

/// Makes `handler` the process's for a class of faults, and the running thread use it.
///
/// `stack` is where the handler runs: 0 for the stack in use when the fault happens, otherwise the top of a stack for
/// this thread alone. A handler for faults of the stack itself needs one.
///
/// # Safety
/// The handler leaves registers with which the thread can go on, and takes no lock that the interrupted code may hold;
/// `stack` is 0 or the end of mapped memory that nothing else uses.
pub unsafe fn handle(class: Class, handler: Handler, stack: usize) -> Result<(), Error> {
    HANDLERS[class as usize].store(handler as *mut (), Ordering::Release);
    // SAFETY: `enter` handles an upcall, and the caller answers for the stack.
    unsafe { thread::current_thread().faults_upcall(class, server(), enter as *const () as usize, stack) }
}

/// Lets faults of a class of the running thread go to the process server again.
pub fn stop_handling(class: Class) -> Result<(), Error> {
    thread::current_thread().faults_to(class, server())
}

/// The process server, if there is one.
fn server() -> Option<Cap<Endpoint>> {
    let found = OWN_SPACE.identify_at(slot::PROCS);
    found.is_ok_and(|found| found.kind == Kind::Endpoint).then_some(Cap::new(slot::PROCS))
}

/// Where the kernel lets a faulting thread continue. All its registers lie in the message area.
extern "C" fn enter(class: u64, address: u64, instruction: u64, syndrome: u64) -> ! {
    // A page fault can happen while the interrupted code writes a message; the handler may send some itself. A foreign
    // system call happens only where the program makes one.
    let staged = if class == Class::PageFault as u64 { Staged::save() } else { None };
    let pointer = HANDLERS.get(class as usize).map_or(core::ptr::null_mut(), |place| place.load(Ordering::Acquire));
    if let (false, Some(mut registers)) = (pointer.is_null(), read_registers()) {
        // SAFETY: only `handle` stores there, and only handlers.
        let handler = unsafe { core::mem::transmute::<*mut (), Handler>(pointer) };
        handler(&Report { class, address, instruction, syndrome }, &mut registers);
        if let Some(staged) = staged {
            staged.restore();
        }
        // SAFETY: this is an upcall, and `handle`'s caller answers for what the handler leaves.
        let error = unsafe { upcall_return(&registers) };
        eprintln!("{}: the kernel refused to end an upcall: {error}", process::name());
    }
    process::exit(101)
}
