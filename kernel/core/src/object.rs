//! References to kernel objects, and the small objects themselves.
//!
//! Objects lie in memory that user space supplied. [`Kernel::get`](crate::Kernel::get) turns a [`Ref`] into a
//! reference. The call borrows the kernel's token mutably, so two references into kernel state cannot exist at once.

use core::marker::PhantomData;
use core::num::NonZeroUsize;

use tench_abi::memory::MAX_SCATTERED;

use crate::account::Account;
use crate::budget::Budget;
use crate::heap::Node;
use crate::slot::SlotRef;
use crate::thread::Thread;

/// A reference to a live kernel object, by its kernel virtual address.
///
/// Invariant: a `Ref` is stored only where finalising the object clears it (docs/invariants.md, "References").
pub struct Ref<T> {
    address: NonZeroUsize,
    marker: PhantomData<fn() -> T>,
}

impl<T> Ref<T> {
    /// Returns the reference to the object at `address`, or `None` for address 0.
    ///
    /// # Safety
    /// An object of type `T` lives at `address`.
    #[inline(always)]
    pub const unsafe fn at(address: usize) -> Option<Ref<T>> {
        match NonZeroUsize::new(address) {
            Some(address) => Some(Ref { address, marker: PhantomData }),
            None => None,
        }
    }

    /// Returns the reference to the object at `address`, which is not 0.
    ///
    /// # Safety
    /// An object of type `T` lives at `address`, which is not 0.
    #[inline(always)]
    pub const unsafe fn at_unchecked(address: usize) -> Ref<T> {
        // SAFETY: not 0 (caller).
        Ref { address: unsafe { NonZeroUsize::new_unchecked(address) }, marker: PhantomData }
    }

    /// Returns the object's kernel virtual address.
    #[inline(always)]
    pub const fn address(self) -> usize {
        self.address.get()
    }
}

impl<T> Clone for Ref<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Ref<T> {}
impl<T> PartialEq for Ref<T> {
    fn eq(&self, other: &Self) -> bool {
        self.address == other.address
    }
}
impl<T> Eq for Ref<T> {}
impl<T> core::fmt::Debug for Ref<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "@{:#x}", self.address)
    }
}

/// A rendezvous point for messages: a queue of senders or a queue of receivers, never both.
///
/// `head` is 0 (no thread waits), the address of the first sender (the root of a [heap](crate::heap)), or the address
/// of the first receiver plus 1, so that the fast path tests one bit to find a receiver. `tail` is the address of the
/// last receiver, or of the sender behind which the next sender of the same rank is linked, or 0 if there is none. It
/// has no meaning while `head` is 0.
#[derive(Default)]
#[repr(C, align(32))]
pub struct Endpoint {
    /// Head of the queue, encoded as described for the type.
    pub head: usize,
    /// Tail of the queue, as described for the type.
    pub tail: usize,
    /// [Number](crate::Arch::number) of the thread that serves the endpoint and is helped by the first sender; 0 for
    /// none ([`queue::server`](crate::endpoint::queue::server)).
    pub server: u32,
    /// Number of senders that help, by [height](crate::helping::heights): 0, 1, and 2 or more.
    pub helpers: [u32; 3],
}

/// A reply object. It holds at most one caller, which waits for the reply.
#[derive(Default)]
#[repr(C, align(32))]
pub struct Reply {
    /// The caller. Its state is `AwaitingReply` of this object.
    pub caller: Option<Ref<Thread>>,
    /// The thread to which the object is bound, or else the one that received with it last or waits to receive with it.
    pub claimed: Option<Ref<Thread>>,
    /// Set if `claimed` is a binding, which outlasts a receive.
    pub bound: bool,
}

/// A word of signals with a queue of waiting threads.
#[derive(Default)]
#[repr(C, align(64))]
pub struct Notification {
    /// Signals not yet received.
    pub word: u64,
    /// First waiting thread (state `Waiting`).
    pub head: Option<Ref<Thread>>,
    /// Last waiting thread.
    pub tail: Option<Ref<Thread>>,
    /// The bound thread: a signal also ends its wait in `Receive`.
    pub bound: Option<Ref<Thread>>,
    /// First interrupt line bound to this notification, as its number plus 1; 0 if none. See `State::interrupts`.
    pub first_interrupt: u16,
    /// Bitmap of the interrupt lines to unmask when `word` is taken: those lines with [`InterruptLine::automatic`] that
    /// fired while no thread waited. While a bit is set, `word` is not 0.
    pub held: u16,
}

/// The right to processor time: a priority, a time slice, and a budget in each period.
#[derive(Default)]
#[repr(C, align(256))]
pub struct SchedulingContext {
    /// Priority, 0 to 255.
    pub priority: u8,
    /// Highest priority that the context can authorise.
    pub ceiling: u8,
    /// Set while the budget is used up: no thread runs on the context until its next refill.
    pub is_used_up: bool,
    /// Set once a caller has configured the context. Before that, its slice of 0 is only the initial value
    /// ([`configure`](crate::scheduling_context::configure)).
    pub is_configured: bool,
    /// Ticks until the next thread of equal priority runs; 0 for no limit.
    pub slice: u64,
    /// Ticks consumed in all.
    pub consumed: u64,
    /// The thread to which the context is bound. Threads that it waits for run on the context, too
    /// ([`helping`](crate::helping)).
    pub owner: Option<Ref<Thread>>,
    /// Part of `consumed` that has been added to the owner's account, or was consumed before the context was bound.
    pub accounted: u64,
    /// Part of `consumed` that has been taken off the budget.
    pub charged: u64,
    /// Ticks that may be consumed, and when.
    pub budget: Budget,
    /// The context's node in the timer queue, where it waits for its next refill.
    pub refill: Node,
}

/// The state of one interrupt line.
#[derive(Clone, Copy, Default)]
pub struct InterruptLine {
    /// The notification to signal.
    pub notification: Option<Ref<Notification>>,
    /// Bits that an interrupt sets in the notification's word.
    pub badge: u64,
    /// Next line of the same notification, as its number plus 1; 0 if this is the last.
    pub next: u16,
    /// Previous line of the same notification, as its number plus 1; 0 if this is the first.
    pub previous: u16,
    /// Set while a capability for the line exists.
    pub taken: bool,
    /// Set if taking the line's signal acknowledges the interrupt. Such a line serves as a doorbell and has a bit in
    /// [`Notification::held`].
    pub automatic: bool,
}

/// A page table: the hardware's entries, and the kernel's shadow entry for each of them.
///
/// `shadows[i]` is 0 (entry free), the slot of the [`Mapping`](tench_abi::Kind::Mapping) that covers entry `i` (its
/// number shifted left by one), or the slot-sized number of the child table shifted left by one, plus 1, or likewise
/// the number of the scattered mapping in which it is set.
#[repr(C, align(8192))]
pub struct PageTable {
    /// The hardware's entries.
    pub entries: [u64; 512],
    /// The shadow entries, encoded as described for the type.
    pub shadows: [u32; 512],
    /// Level, 0 (root) to 3.
    pub level: u8,
    /// Address-space identifier, never 0 while the table lives. Root tables only.
    pub asid: u16,
    /// Address of the parent table in which this table is installed; 0 if it is not installed.
    pub parent: usize,
    /// Index of the parent's entry.
    pub index: u16,
    /// Entries in use.
    pub used: u16,
    /// Progress of the table's deletion: entries below this index are free.
    pub cleared: u16,
    /// Number of threads in the address space. Root tables only.
    pub residents: u32,
    /// By its number minus 1, the number of the slot of each scattered mapping in the table; 0 for none.
    pub scattered: [u32; MAX_SCATTERED],
    /// Account of the process whose address space this is. Root tables only.
    pub account: Account,
}

const _: () = assert!(size_of::<PageTable>() == 1 << tench_abi::object::PAGE_TABLE_BITS);
const _: () = assert!(size_of::<Endpoint>() == 1 << tench_abi::object::ENDPOINT_BITS);
const _: () = assert!(size_of::<Reply>() == 1 << tench_abi::object::REPLY_BITS);
const _: () = assert!(size_of::<Notification>() == 1 << tench_abi::object::NOTIFICATION_BITS);
const _: () = assert!(size_of::<SchedulingContext>() == 1 << tench_abi::object::SCHEDULING_CONTEXT_BITS);

/// A decoded shadow entry, from [`PageTable::shadows`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShadowEntry {
    /// The entry is free.
    Free,
    /// A page that the kernel mapped for the first process. No capability names it, and it stays as long as the table.
    /// Its memory never becomes a kernel object.
    Boot,
    /// Covered by a mapping. Its capability lies in this slot if this is the mapping's first entry; otherwise it lay
    /// there once.
    Mapping(SlotRef),
    /// Set in the scattered mapping with this number in the table, 1 to [`MAX_SCATTERED`].
    Scattered(u32),
    /// A child table, whose address has this [number](crate::Arch::number) in units of a slot's size.
    Table(u32),
}

/// Returns the number in a packed word. Packing drops its highest bit, which equals the one below.
const fn number_in(word: u32) -> u32 {
    (word as i32 >> 1) as u32
}

impl ShadowEntry {
    /// Decodes a packed shadow entry.
    pub const fn unpack(word: u32) -> ShadowEntry {
        match word {
            0 => ShadowEntry::Free,
            1 => ShadowEntry::Boot,
            // A table has more than one slot's alignment, so no table has such a number.
            w if w & 1 != 0 && w >> 1 <= MAX_SCATTERED as u32 => ShadowEntry::Scattered(w >> 1),
            w if w & 1 != 0 => ShadowEntry::Table(number_in(w)),
            w => match SlotRef::new(number_in(w)) {
                Some(slot) => ShadowEntry::Mapping(slot),
                None => ShadowEntry::Free,
            },
        }
    }

    /// Encodes a shadow entry.
    pub const fn pack(self) -> u32 {
        match self {
            ShadowEntry::Free => 0,
            ShadowEntry::Boot => 1,
            ShadowEntry::Mapping(slot) => slot.number() << 1,
            ShadowEntry::Table(number) | ShadowEntry::Scattered(number) => number << 1 | 1,
        }
    }
}
