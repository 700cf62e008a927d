//! References to kernel objects, and the small objects themselves.
//!
//! Objects lie in memory that user space supplied. A [`Ref`] names one; [`Kernel::get`](crate::Kernel::get) turns it
//! into a reference, and because that borrows the kernel's token mutably, two references into kernel state cannot
//! exist at once.

use core::marker::PhantomData;
use core::num::NonZeroUsize;

use crate::account::Account;
use crate::budget::Budget;
use crate::heap::Node;
use crate::slot::SlotRef;
use crate::thread::Thread;

/// Names a live kernel object by its kernel virtual address.
///
/// Invariant: a `Ref` is stored only where finalising the object clears it (docs/invariants.md, "References").
pub struct Ref<T> {
    address: NonZeroUsize,
    marker: PhantomData<fn() -> T>,
}

impl<T> Ref<T> {
    /// The reference to the object at `address`; `None` for address 0.
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

    /// The same, for an address that cannot be 0.
    ///
    /// # Safety
    /// An object of type `T` lives at `address`, which is not 0.
    #[inline(always)]
    pub const unsafe fn at_unchecked(address: usize) -> Ref<T> {
        // SAFETY: not 0 (caller).
        Ref { address: unsafe { NonZeroUsize::new_unchecked(address) }, marker: PhantomData }
    }

    /// Its kernel virtual address.
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

/// Where threads meet to pass messages: senders, or a queue of receivers, never both.
///
/// `head` is 0 (nobody waits), the address of the sender that comes first (the root of a [heap](crate::heap)), or the
/// address of the first receiver plus 1: the fast path asks "is a receiver there" by one bit. `tail` is the address of
/// the last receiver, or that of the sender behind whom the next of the same place is linked, 0 if there is none; it
/// has no meaning while `head` is 0.
#[derive(Default)]
#[repr(C, align(32))]
pub struct Endpoint {
    /// See above.
    pub head: usize,
    /// See above.
    pub tail: usize,
    /// The [number](crate::Arch::number) of the thread that serves it, and is helped by the first of the senders; 0 for
    /// none ([`queue::server`](crate::endpoint::queue::server)).
    pub server: u32,
    /// How many of the senders help, by [height](crate::helping::heights): 0, 1, and more.
    pub helpers: [u32; 3],
}

/// Holds at most one caller, who waits for the reply.
#[derive(Default)]
#[repr(C, align(32))]
pub struct Reply {
    /// The caller; its state is `AwaitingReply` of this object.
    pub caller: Option<Ref<Thread>>,
    /// The thread to which it is bound, or which has received with it last, or waits to.
    pub claimed: Option<Ref<Thread>>,
    /// Whether `claimed` is a binding that outlasts a receive.
    pub bound: bool,
}

/// A word of signals, and those who wait for it.
#[derive(Default)]
#[repr(C, align(64))]
pub struct Notification {
    /// Signals not yet received.
    pub word: u64,
    /// First waiting thread (state `Waiting`).
    pub head: Option<Ref<Thread>>,
    /// Last waiting thread.
    pub tail: Option<Ref<Thread>>,
    /// The thread whose receives this notification ends too.
    pub bound: Option<Ref<Thread>>,
    /// First interrupt that signals this notification, as its number plus 1; 0 if none. See `State::interrupts`.
    pub first_interrupt: u16,
    /// Lines that are let in again when `word` is taken, a bit for each: of those that are acknowledged so
    /// ([`InterruptLine::automatic`]), the ones that have fired when nobody waited. While there are any, `word` is not
    /// 0.
    pub held: u16,
}

/// The right to processor time: at which priority, how long at a stretch, and how much in each period.
#[derive(Default)]
#[repr(C, align(256))]
pub struct SchedulingContext {
    /// 0 to 255.
    pub priority: u8,
    /// Highest priority that it can authorise.
    pub ceiling: u8,
    /// Whether its budget is used up: nobody runs on it, and it waits for its next refill.
    pub is_used_up: bool,
    /// Whether somebody has said what it is. Before that, its slice is none by accident
    /// ([`configure`](crate::scheduling::configure)).
    pub is_configured: bool,
    /// Ticks until the next thread of equal priority runs; 0: until it waits.
    pub slice: u64,
    /// Ticks consumed.
    pub consumed: u64,
    /// The thread to which it is bound. Whom that waits for runs on it, too ([`helping`](crate::helping)).
    pub owner: Option<Ref<Thread>>,
    /// What of `consumed` is in its owner's account already, or was used before it was bound.
    pub accounted: u64,
    /// What of `consumed` the budget knows already.
    pub charged: u64,
    /// How much may be consumed, and when.
    pub budget: Budget,
    /// Its place in the timer queue, where it waits for its next refill.
    pub refill: Node,
}

/// What the kernel knows about one interrupt line.
#[derive(Clone, Copy, Default)]
pub struct InterruptLine {
    /// The notification to signal.
    pub notification: Option<Ref<Notification>>,
    /// What is OR-ed into its word.
    pub badge: u64,
    /// Next line of the same notification, as its number plus 1; 0 for the last.
    pub next: u16,
    /// Previous line of the same notification, likewise; 0 for the first.
    pub previous: u16,
    /// Whether a capability for it exists.
    pub taken: bool,
    /// Whether to take its signal acknowledges it. Then it is one of those that can be rung, which have bits in
    /// [`Notification::held`].
    pub automatic: bool,
}

/// A page table: what the hardware walks, and the kernel's books about each entry.
///
/// `books[i]` is 0 (entry free), the slot of the [`Mapping`](tench_abi::Kind::Mapping) that covers entry `i` (its
/// number shifted left by one), or the slot-sized number of the child table shifted left by one, plus 1.
#[repr(C, align(8192))]
pub struct PageTable {
    /// The hardware's entries.
    pub entries: [u64; 512],
    /// See above.
    pub books: [u32; 512],
    /// 0 (root) to 3.
    pub level: u8,
    /// Root: the address-space identifier, never 0 while the table lives.
    pub asid: u16,
    /// Where this table hangs: the parent's address, 0 if nowhere.
    pub parent: usize,
    /// And the entry there.
    pub index: u16,
    /// Entries in use.
    pub used: u16,
    /// While the table is being deleted: entries below this are free.
    pub cleared: u16,
    /// Root: threads that live in the space.
    pub residents: u32,
    /// Root: what its process's threads have in common.
    pub account: Account,
}

const _: () = assert!(size_of::<PageTable>() == 1 << tench_abi::object::PAGE_TABLE_BITS);
const _: () = assert!(size_of::<Endpoint>() == 1 << tench_abi::object::ENDPOINT_BITS);
const _: () = assert!(size_of::<Reply>() == 1 << tench_abi::object::REPLY_BITS);
const _: () = assert!(size_of::<Notification>() == 1 << tench_abi::object::NOTIFICATION_BITS);
const _: () = assert!(size_of::<SchedulingContext>() == 1 << tench_abi::object::SCHEDULING_CONTEXT_BITS);

/// What a slot number in [`PageTable::books`] stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Book {
    /// The entry is free.
    Free,
    /// A page that the kernel mapped for the first process; no capability stands for it, and it stays with the table.
    /// Its memory never becomes an object of the kernel's.
    Boot,
    /// A mapping covers it. If this is the mapping's first entry its capability lies in this slot; otherwise it lay
    /// there once.
    Mapping(SlotRef),
    /// A child table hangs in it, whose address has this [number](crate::Arch::number) in units of a slot's size.
    Table(u32),
}

/// Returns the number in a packed word. Its highest bit is dropped by packing, and equal to the one below.
const fn number_in(word: u32) -> u32 {
    (word as i32 >> 1) as u32
}

impl Book {
    /// Unpacks.
    #[inline]
    pub const fn unpack(word: u32) -> Book {
        match word {
            0 => Book::Free,
            1 => Book::Boot,
            w if w & 1 != 0 => Book::Table(number_in(w)),
            w => match SlotRef::new(number_in(w)) {
                Some(slot) => Book::Mapping(slot),
                None => Book::Free,
            },
        }
    }

    /// Packs.
    #[inline]
    pub const fn pack(self) -> u32 {
        match self {
            Book::Free => 0,
            Book::Boot => 1,
            Book::Mapping(slot) => slot.number() << 1,
            Book::Table(number) => number << 1 | 1,
        }
    }
}
