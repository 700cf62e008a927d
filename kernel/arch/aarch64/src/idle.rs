//! The kernel's state, and the idle thread, which runs when no other can.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;

use tench_abi::object::entry_path;
use tench_kernel::latency_tracer::{self, edge};
use tench_kernel::thread::{OBJECT_SIZE, STACK_BOTTOM, THREAD_OFFSET, Thread};
use tench_kernel::{State, entry};

use crate::{Machine, trap};

/// Zero-initialised memory that one core uses through one reference, aligned as a thread object must be.
#[repr(C, align(4096))]
pub struct Static<T>(UnsafeCell<MaybeUninit<T>>);

const _: () = assert!(align_of::<Static<()>>() == OBJECT_SIZE);

// SAFETY: each is taken once, by the one core that boots.
unsafe impl<T> Sync for Static<T> {}

impl<T> Static<T> {
    /// Returns its address.
    pub fn get(&self) -> *mut T {
        self.0.get().cast()
    }
}

/// The kernel's state.
pub static STATE: Static<State<Machine>> = Static(UnsafeCell::new(MaybeUninit::zeroed()));
/// The idle thread's object.
pub static IDLE: Static<[u8; OBJECT_SIZE]> = Static(UnsafeCell::new(MaybeUninit::zeroed()));

// The two ends of the stack in a thread's object, for the test that compares it with a bound on its use.
core::arch::global_asm!(
    ".global tench_thread_stack_bottom, tench_thread_stack_top",
    ".set tench_thread_stack_bottom, {}",
    ".set tench_thread_stack_top, {}",
    const STACK_BOTTOM,
    const THREAD_OFFSET,
);

/// Size in bytes of the registers that `tench_switch` saves on a kernel stack.
const SWITCH_FRAME: usize = 96;
/// Offset of the return address among them.
const SWITCH_RETURN: usize = 88;

/// Sets up the idle thread's kernel stack as if the thread had been switched away from at the beginning of its loop.
///
/// # Safety
/// `idle` is an initialised thread object that has never run.
pub unsafe fn prepare(idle: usize) {
    let frame = idle + THREAD_OFFSET - SWITCH_FRAME;
    let entry: extern "C" fn() -> ! = idle_loop;
    // SAFETY: inside the object's stack.
    unsafe { ((frame + SWITCH_RETURN) as *mut usize).write(entry as usize) };
    let thread = (idle + THREAD_OFFSET) as *mut Thread;
    // SAFETY: an initialised thread.
    unsafe { (&raw mut (*thread).kernel_stack_pointer).write(frame) };
}

/// Waits for interrupts, and for a thread to become ready.
extern "C" fn idle_loop() -> ! {
    loop {
        let kernel = trap::token();
        latency_tracer::end_interval(kernel, edge::PREEMPTION_POINT);
        // SAFETY: waits until an interrupt is pending; interrupts are masked, so it stays pending until it is handled
        // below.
        unsafe { core::arch::asm!("wfi", options(nomem, nostack)) };
        let here: extern "C" fn() -> ! = idle_loop;
        latency_tracer::begin_interval(kernel, entry_path::IDLE, here as usize);
        entry::idle(kernel);
    }
}
