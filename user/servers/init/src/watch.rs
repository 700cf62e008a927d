//! A second thread that waits for faults of `mem` and `procs` from the beginning on. The first cannot do so while it
//! calls `procs` to start the others, and would wait for a reply for ever if one of the two ended then.

use core::cell::UnsafeCell;

use tench_abi::fault::Registers;
use tench_abi::layout::slot;
use tench_abi::{CapAddress, Kind};
use tench_loader::{LoadError, Resources};
use tench_sys::thread::{Binding, Bindings};
use tench_sys::{Cap, Endpoint, Reply, SchedulingContext, Thread, ThreadBlock, Wait};

use crate::early::{print, stop};
use crate::failure::Failure;
use crate::pool::Pool;
use crate::servers;

/// Size of its stack in bytes: several times what formatting takes.
const STACK_SIZE: usize = 16 << 10;

/// Memory that the thread alone uses.
#[repr(align(64))]
struct Own {
    stack: UnsafeCell<[u8; STACK_SIZE]>,
    block: ThreadBlock,
}

// SAFETY: only the one thread that `start` makes uses it.
unsafe impl Sync for Own {}

static OWN: Own = Own { stack: UnsafeCell::new([0; STACK_SIZE]), block: ThreadBlock::new() };

/// Starts the thread. It waits at `faults` for ever.
pub fn start(pool: &mut Pool, faults: Cap<Endpoint>) -> Result<(), Failure> {
    let loading = |error: LoadError| Failure::Load("init", error);
    let failed = |error| Failure::Kernel("making a thread that waits for faults", error);
    let mut make = |kind| {
        let slot = pool.slot()?;
        pool.make(kind, 0, slot)?;
        Ok(slot)
    };
    let thread = Cap::<Thread>::new(make(Kind::Thread).map_err(loading)?);
    let scheduling = Cap::<SchedulingContext>::new(make(Kind::SchedulingContext).map_err(loading)?);
    let reply = Cap::<Reply>::new(make(Kind::Reply).map_err(loading)?);
    scheduling.configure(u8::MAX.into(), 0, 0, None).map_err(failed)?;
    thread.configure(Cap::new(slot::CSPACE), Cap::new(slot::VSPACE), None).map_err(failed)?;
    let bindings =
        Bindings { scheduling: Binding::To(scheduling), reply: Binding::To(reply), notification: Binding::Keep };
    thread.bind(bindings).map_err(failed)?;
    let top = OWN.stack.get().addr() + STACK_SIZE;
    let mut registers =
        Registers { sp: top as u64, pc: run as extern "C" fn(u64, u64) -> ! as usize as u64, ..Registers::ZERO };
    (registers.x[0], registers.x[1]) = (u64::from(faults.address().0), u64::from(thread.address().0));
    // SAFETY: `run` takes two numbers and does not return; the stack is its own, and large enough for what it does.
    unsafe { thread.write_registers(&registers, true) }.map_err(failed)
}

/// The thread's function.
extern "C" fn run(faults: u64, thread: u64) -> ! {
    let block = &OWN.block;
    block.thread.set(CapAddress(thread as u32));
    block.stack_bottom.set(OWN.stack.get().addr());
    block.stack_top.set(OWN.stack.get().addr() + STACK_SIZE);
    // SAFETY: there is no IPC buffer (0), and this thread alone uses the block. Fault messages fit in registers.
    unsafe { block.install() };
    stop(&wait(Cap::new(CapAddress(faults as u32))))
}

/// Waits for a fault of the two servers that init itself has loaded. Nothing can go on without them.
fn wait(faults: Cap<Endpoint>) -> Failure {
    loop {
        let message = match faults.receive(Wait::FOREVER) {
            Ok(message) => message,
            Err(error) => return Failure::Kernel("waiting for faults", error),
        };
        if message.is_fault() {
            let name = servers::name_of(message.badge());
            let (address, instruction, syndrome) = (message.word(1), message.word(2), message.word(3));
            let linked = servers::linked(message.badge(), instruction);
            print(format_args!(
                "{name}: fault of class {} with address {address:#x} at instruction {instruction:#x}, syndrome \
                 {syndrome:#x}\n  at {linked:#x} in {name}\n",
                message.label()
            ));
            return Failure::Ended(name);
        }
    }
}
