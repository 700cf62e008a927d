//! The kernel's state, and the token through which it is reached.

use tench_abi::object::PRIORITIES;

use crate::Arch;
use crate::object::{InterruptLine, Ref};
use crate::slot::{SLOT_SHIFT, Slot, SlotRef};
use crate::thread::Thread;
use crate::timers::Timers;

/// Interrupt lines that a kernel can serve.
pub const INTERRUPTS: usize = 320;
/// Address-space identifiers that a machine can have at most: 1 to 65,535; 0 is the empty space.
pub const ASIDS: usize = 1 << 16;

/// A reading of the counter that no machine lives to see.
pub const NEVER: u64 = u64::MAX;

/// A queue of threads, linked through [`Thread::next`].
#[derive(Clone, Copy, Default)]
pub struct Queue {
    /// First.
    pub head: Option<Ref<Thread>>,
    /// Last.
    pub tail: Option<Ref<Thread>>,
}

/// What a kernel counts about itself.
#[derive(Clone, Copy, Default)]
pub struct Statistics {
    /// Deepest use of a kernel stack, in bytes.
    pub deepest_stack: u64,
    /// Windows passed.
    pub windows: u64,
    /// Windows at which another thread was switched to.
    pub preemptions: u64,
    /// Interrupts taken.
    pub interrupts: u64,
    /// Thread switches outside the fast path.
    pub switches: u64,
    /// Retired instructions from the kernel's entry to the first user instruction.
    pub boot_instructions: u64,
    /// Ticks spent idle.
    pub idle_ticks: u64,
    /// Interrupts taken while another was being handled.
    pub nested_interrupts: u64,
    /// Most interrupts under way at once, if there were ever two.
    pub deepest_nesting: u32,
}

/// All state of one core's kernel. Invariants: docs/invariants.md.
#[repr(C)]
pub struct State<A> {
    /// How long interrupts were off. First, so that the assembly reaches it.
    #[cfg(feature = "watch")]
    pub watch: crate::watch::Watch,
    /// The running thread. Valid while the kernel runs: every entry but those of fast paths writes it, and so
    /// does whatever lets a thread go on that may be in a window.
    pub current: Ref<Thread>,
    /// The thread that runs when nothing else can.
    pub idle: Ref<Thread>,
    /// Highest priority with a ready thread, or -1.
    pub highest_ready: i32,
    /// A thread that should run before `current` became ready.
    pub reschedule: bool,
    /// Interrupt handlers entered and not left; switching waits for 0.
    pub nesting: u32,
    /// Whether the time slice of the running priority is being timed.
    pub slice_end: u64,
    /// When the budget on which the running thread runs ends; `NEVER` if it has none.
    pub budget_end: u64,
    /// When the running thread's time was last charged.
    pub charged_until: u64,
    /// Ready threads that do not run, by priority.
    pub ready: [Queue; PRIORITIES],
    /// Which of them are not empty.
    pub ready_bitmap: [u64; PRIORITIES / 64],
    /// Who waits for a time.
    pub timers: Timers,
    /// Senders that have begun to wait at an endpoint since boot: their order among equals.
    pub arrivals: u64,
    /// Root of the derivation tree: a slot's number, 0 if empty.
    pub derivation: u32,
    /// The last slot in the order of derivation, 0 if there is none.
    pub derivation_tail: u32,
    /// Capabilities deleted since boot. What a revocation deleted is a difference of it.
    pub removed: u64,
    /// Thread whose registers are in the floating-point unit.
    pub float_owner: Option<Ref<Thread>>,
    /// Interrupt lines.
    pub interrupts: [InterruptLine; INTERRUPTS],
    /// Which identifiers are in use.
    pub asids: [u64; ASIDS / 64],
    /// Which words of `asids` are full, so that the search for a free identifier is short.
    pub asids_full: [u64; ASIDS / 64 / 64],
    /// Identifiers in use by one space each.
    pub asids_used: usize,
    /// The root of whose space something may be cached under [`SHARED`](crate::table::SHARED); 0 if there is none.
    pub shared_space: usize,
    /// Physical address and size of the device tree.
    pub device_tree: (u64, u64),
    /// Counters.
    pub statistics: Statistics,
    /// The machine.
    pub arch: A,
}

/// The token: whoever holds `&mut Kernel` may change kernel state, and nobody else.
///
/// It is a handle, not the state itself: each access derives a reference afresh. So when a holder is suspended in a
/// window and another thread enters the kernel with a token of its own, no two references exist.
pub struct Kernel<A: Arch> {
    state: core::ptr::NonNull<State<A>>,
}

impl<A: Arch> Kernel<A> {
    /// The token for a kernel's state.
    ///
    /// # Safety
    /// `state` is valid for the life of the token; every other token for it is suspended in a window or in the code
    /// that called this (an interrupt that arrived in a window).
    #[inline(always)]
    pub unsafe fn from_state(state: core::ptr::NonNull<State<A>>) -> Kernel<A> {
        Kernel { state }
    }

    /// The state.
    #[inline(always)]
    pub fn state(&mut self) -> &mut State<A> {
        // SAFETY: the token is borrowed mutably for as long as the reference lives, and tokens exclude each other
        // (contract of `from_state`).
        unsafe { self.state.as_mut() }
    }

    /// The machine.
    #[inline(always)]
    pub fn arch(&mut self) -> &mut A {
        &mut self.state().arch
    }

    /// The object that `object` names.
    #[inline(always)]
    pub fn get<T>(&mut self, object: Ref<T>) -> &mut T {
        // SAFETY: a `Ref` names a live object of its type (its invariant), objects do not overlap each other nor
        // `State`, and the token is borrowed for as long as the reference lives.
        unsafe { &mut *(object.address() as *mut T) }
    }

    /// The slot that `slot` names.
    #[inline(always)]
    pub fn slot(&mut self, slot: SlotRef) -> &mut Slot {
        let address = self.arch().locate(slot.number(), SLOT_SHIFT);
        // SAFETY: a `SlotRef` names a slot in a live node or thread; the token is borrowed meanwhile.
        unsafe { &mut *(address as *mut Slot) }
    }

    /// The slot at a kernel virtual address, which must be that of a slot.
    #[inline(always)]
    pub fn slot_at(&mut self, address: usize) -> Option<SlotRef> {
        SlotRef::new(self.arch().number(address, SLOT_SHIFT))
    }

    /// The running thread.
    #[inline(always)]
    pub fn current(&mut self) -> Ref<Thread> {
        self.state().current
    }

    /// Physical address of a kernel virtual one.
    #[inline(always)]
    pub fn physical(&mut self, address: usize) -> u64 {
        (address - self.arch().base()) as u64
    }
}
