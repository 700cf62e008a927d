//! The kernel's state, and the token that gives access to it.

use core::marker::PhantomPinned;

use tench_abi::object::{LINES, PRIORITIES};

use crate::Arch;
use crate::interrupt::InterruptLine;
use crate::object::Ref;
use crate::slot::{SLOT_SHIFT, Slot, SlotRef};
use crate::thread::Thread;
use crate::timers::Timers;

/// Maximum number of address-space identifiers of a machine: 1 to 65,535, and 0 for the empty space.
pub const ASIDS: usize = 1 << 16;

/// Counter reading that stands for "never".
pub const NEVER: u64 = u64::MAX;

/// A queue of threads, linked through [`Thread::next`].
#[derive(Clone, Copy, Default)]
pub struct Queue {
    /// First thread.
    pub head: Option<Ref<Thread>>,
    /// Last thread.
    pub tail: Option<Ref<Thread>>,
}

/// Counters that a kernel keeps about itself.
#[derive(Clone, Copy, Default)]
pub struct Statistics {
    /// Deepest use of a kernel stack, in bytes.
    pub deepest_stack: u64,
    /// Preemption points passed.
    pub preemption_points: u64,
    /// Preemption points at which the kernel switched to another thread.
    pub preemptions: u64,
    /// Interrupts taken.
    pub interrupts: u64,
    /// Thread switches outside the fast path.
    pub switches: u64,
    /// Instructions retired from the kernel's entry to the first user instruction.
    pub boot_instructions: u64,
    /// Ticks spent idle.
    pub idle_ticks: u64,
    /// Interrupts taken inside another interrupt's handler.
    pub nested_interrupts: u64,
    /// Maximum number of interrupt handlers active at once; 0 if they have never been nested.
    pub deepest_nesting: u32,
}

/// All state of one core's kernel. Its invariants are in docs/invariants.md.
#[repr(C)]
pub struct State<A> {
    /// Latency tracer: how long interrupts were off. First field, so that the assembly finds it.
    #[cfg(feature = "latency-tracer")]
    pub latency_tracer: crate::latency_tracer::LatencyTracer,
    /// The running thread. Valid inside the kernel: every entry except those of fast paths writes it, and so does every
    /// path that resumes a thread which may be at a preemption point.
    pub current: Ref<Thread>,
    /// The thread that runs when no other can.
    pub idle: Ref<Thread>,
    /// Highest priority with a ready thread, or -1.
    pub highest_ready: i32,
    /// Set when a thread became ready that should run before `current`.
    pub reschedule: bool,
    /// Number of active interrupt handlers. The kernel switches threads only at 0.
    pub nesting: u32,
    /// Counter reading at which the running thread's time slice ends; 0 if the slice is not timed.
    pub slice_end: u64,
    /// Counter reading at which the budget of the running thread's scheduling context ends; `NEVER` without a budget.
    pub budget_end: u64,
    /// Counter reading up to which the running thread's time has been charged.
    pub charged_until: u64,
    /// Ready queues by priority. The running thread is in none.
    pub ready: [Queue; PRIORITIES],
    /// Bitmap of the non-empty ready queues.
    pub ready_bitmap: [u64; PRIORITIES / 64],
    /// Deadlines and refills that are waited for.
    pub timers: Timers,
    /// Number of senders that have begun to wait at an endpoint since boot; orders senders of equal priority.
    pub arrivals: u64,
    /// Root of the derivation tree, as a slot number; 0 if the tree is empty.
    pub derivation: u32,
    /// Last slot in derivation order, as a slot number; 0 if there is none.
    pub derivation_tail: u32,
    /// Number of capabilities deleted since boot. A revocation reports a difference of two readings.
    pub removed: u64,
    /// The thread whose registers are in the floating-point unit.
    pub float_owner: Option<Ref<Thread>>,
    /// Interrupt lines.
    pub interrupts: [InterruptLine; LINES],
    /// Bitmap of the address-space identifiers in use.
    pub asids: [u64; ASIDS / 64],
    /// Bitmap of the full words of `asids`, which shortens the search for a free identifier.
    pub asids_full: [u64; ASIDS / 64 / 64],
    /// Number of identifiers that belong to exactly one address space.
    pub asids_used: usize,
    /// Root table of the address space with possible TLB entries under [`SHARED`](crate::page_table::SHARED); 0 if
    /// there is none.
    pub shared_space: usize,
    /// Physical address and size of the device tree, in bytes.
    pub device_tree: (u64, u64),
    /// Counters.
    pub statistics: Statistics,
    /// The architecture's state.
    pub arch: A,
}

/// The token that permits access: only the holder of `&mut Kernel` may change kernel state.
///
/// The token lies over the state, so that the reference is the state's address. When a holder is suspended at a
/// preemption point and another thread enters the kernel, that thread has a token of its own for the same state; the
/// two are never used at the same time. `PhantomPinned` permits that: of references to such a type the compiler does
/// not assume that they are the only ones.
#[repr(transparent)]
pub struct Kernel<A: Arch> {
    state: State<A>,
    shared: PhantomPinned,
}

impl<A: Arch> Kernel<A> {
    /// Returns the token for a kernel's state.
    ///
    /// # Safety
    /// `state` is valid for the life of the token. Every other token for it is suspended, at a preemption point or in
    /// the code that called this function (for an interrupt that arrived at a preemption point).
    #[inline(always)]
    pub unsafe fn from_state<'state>(state: core::ptr::NonNull<State<A>>) -> &'state mut Kernel<A> {
        // SAFETY: the token has the state's layout; the rest is the caller's contract.
        unsafe { state.cast().as_mut() }
    }

    /// Returns the state.
    #[inline(always)]
    pub fn state(&mut self) -> &mut State<A> {
        &mut self.state
    }

    /// Returns the architecture's state.
    #[inline(always)]
    pub fn arch(&mut self) -> &mut A {
        &mut self.state().arch
    }

    /// Returns the object that `object` refers to.
    #[inline(always)]
    pub fn get<T>(&mut self, object: Ref<T>) -> &mut T {
        // SAFETY: a `Ref` names a live object of its type (its invariant), objects do not overlap each other nor
        // `State`, and the token is borrowed for as long as the reference lives.
        unsafe { &mut *(object.address() as *mut T) }
    }

    /// Returns the slot that `slot` refers to.
    #[inline(always)]
    pub fn slot(&mut self, slot: SlotRef) -> &mut Slot {
        let address = self.arch().locate(slot.number(), SLOT_SHIFT);
        // SAFETY: a `SlotRef` names a slot in a live node or thread; the token is borrowed meanwhile.
        unsafe { &mut *(address as *mut Slot) }
    }

    /// Returns the reference to the slot at a kernel virtual address, which must be that of a slot.
    #[inline(always)]
    pub fn slot_at(&mut self, address: usize) -> Option<SlotRef> {
        SlotRef::new(self.arch().number(address, SLOT_SHIFT))
    }

    /// Returns the running thread.
    #[inline(always)]
    pub fn current(&mut self) -> Ref<Thread> {
        self.state().current
    }

    /// Returns the physical address of a kernel virtual address.
    #[inline(always)]
    pub fn physical(&mut self, address: usize) -> u64 {
        (address - self.arch().base()) as u64
    }
}
