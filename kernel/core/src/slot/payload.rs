//! Payloads: what capabilities say besides their head, with a type for each kind.
//!
//! A payload is stored in three numbers ([`Raw`]), which only its type packs and unpacks. [`Cap::payload`] decodes any
//! capability, for code that deals with all kinds; an operation that knows the kind uses the type itself.

use core::mem::offset_of;

use tench_abi::Kind;
use tench_abi::object::NODE_BITS;

use super::{Cap, SlotRef, flag};
use crate::Arch;
use crate::mapping::Mapping;
use crate::mapping::scattered::Scattered;
use crate::object::Ref;

/// Bit of [`Raw::small`] of a node that can be a second-level node: kind, size and liveness are checked once. No other
/// kind sets this bit, so an address look-up tests nothing else.
pub(super) const SECOND_LEVEL: u32 = 1 << 31;
/// Bit of [`Raw::small`] of a reply object whose callers are not deferred: kind, `WRITE`, `CALL` and liveness are
/// checked once. No other kind sets this bit, so a reply on a fast path tests nothing else.
pub(super) const REPLYABLE: u32 = 1 << 30;
/// Bit of [`Raw::small`] of untyped memory and frames: the memory belongs to another core. Copies have it, too.
const BORROWED: u32 = 1;
/// Bit of [`Raw::small`] of untyped memory, and of the second word of a frame: the capability is exported, and a
/// deletion has met it.
const REVOKE_REQUESTED: u32 = 2;
/// Bit of the second word of a frame that is exported. Copies do not have it.
const EXPORTED: u64 = 1;

/// A packed payload.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Raw {
    /// The part next to the head.
    pub(crate) small: u32,
    /// The part behind the object's address. A badge is the first word.
    pub(crate) words: [u64; 2],
}

/// A decoded payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// None: an empty slot, a thread, a scheduling context, a reply object, an interrupt, a doorbell.
    Nothing,
    /// Untyped memory.
    Untyped(Marks, Sharing),
    /// Memory that is being prepared.
    Reservation(Reservation),
    /// A node, with log2 of the number of its slots.
    Node(u32),
    /// A node or thread that is being deleted.
    Ending(Ending),
    /// A frame.
    Frame(Sharing),
    /// A page table, with its level.
    PageTable(u32),
    /// Adjacent entries of a page table.
    Mapping(Mapping),
    /// Entries anywhere in a page table.
    Scattered(Scattered),
    /// An endpoint, a notification or the kernel, with the capability's badge.
    Badge(u64),
}

/// How far into untyped memory objects have been made: no object ends above both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// End of the objects that were made at the watermark, as an offset.
    pub watermark: u64,
    /// Highest end of the others, as an offset.
    pub placed: u64,
}

/// How memory is shared with other cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// The memory belongs to another core.
    pub borrowed: bool,
    /// The capability is exported.
    pub exported: bool,
    /// The capability is exported, and a deletion has met it.
    pub revoke_requested: bool,
}

/// Memory that a retype reserves while it prepares it. Its capability is that of untyped memory in deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Kernel virtual address of the thread that prepares it, so no other thread's reservation looks the same.
    pub owner: usize,
    /// Number of bytes.
    pub length: usize,
}

/// A node or thread whose last capability is being deleted, with all that it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Progress of the deletion ([`delete`](crate::delete)).
    pub progress: u64,
    /// Next and previous zombie in its ring; `None` if that is this one.
    pub ring: [Option<SlotRef>; 2],
}

impl Marks {
    /// Decodes the payload of a capability to untyped memory.
    #[inline(always)]
    pub const fn of(cap: &Cap) -> Marks {
        let [watermark, placed] = cap.words;
        Marks { watermark, placed }
    }

    /// Writes the marks into a capability, and leaves how the memory is shared.
    #[inline(always)]
    pub const fn write(self, cap: &mut Cap) {
        cap.words = [self.watermark, self.placed];
    }

    /// Returns the higher mark.
    #[inline(always)]
    pub fn end(self) -> u64 {
        self.watermark.max(self.placed)
    }
}

impl Reservation {
    /// Returns the capability that reserves memory from `object` on, with these `flags`. Its size is 0, so that it
    /// comes after all untyped memory that contains it, even if that is split meanwhile.
    pub const fn cap(self, object: usize, flags: u8) -> Cap {
        let words = [self.owner as u64, self.length as u64];
        Cap { kind: Kind::Untyped, rights: 0, size_bits: 0, flags: flag::ZOMBIE | flags, small: 0, object, words }
    }

    /// Decodes the payload of a capability, if it reserves memory.
    #[inline(always)]
    pub const fn of(cap: &Cap) -> Option<Reservation> {
        if cap.flags & flag::ZOMBIE == 0 || !matches!(cap.kind, Kind::Untyped) {
            return None;
        }
        let [owner, length] = cap.words;
        Some(Reservation { owner: owner as usize, length: length as usize })
    }

    /// Changes the number of bytes that a capability reserves.
    pub const fn shorten(cap: &mut Cap, length: usize) {
        cap.words[1] = length as u64;
    }
}

impl Ending {
    /// Decodes the payload of a zombie.
    pub const fn of(cap: &Cap) -> Ending {
        let [progress, ring] = cap.words;
        Ending { progress, ring: [SlotRef::new(ring as u32), SlotRef::new((ring >> 32) as u32)] }
    }

    /// Records how far the deletion has come.
    pub const fn set_progress(cap: &mut Cap, progress: u64) {
        cap.words[0] = progress;
    }

    /// Records the next and the previous zombie of a ring.
    pub const fn set_ring(cap: &mut Cap, next: SlotRef, previous: SlotRef) {
        cap.words[1] = next.number() as u64 | (previous.number() as u64) << 32;
    }
}

impl Sharing {
    /// Decodes the payload of a capability to untyped memory or a frame. Whether a frame is exported is read from
    /// the mark in the payload alone; there is another mark in the flags ([`Cap::is_exported`]).
    const fn of(cap: &Cap) -> Sharing {
        let exported = match cap.kind {
            Kind::Frame => cap.words[1] & EXPORTED != 0,
            _ => cap.is_exported(),
        };
        Sharing { borrowed: cap.is_borrowed(), exported, revoke_requested: cap.is_revoke_requested() }
    }
}

impl Cap {
    /// Decodes the payload.
    pub fn payload(&self) -> Payload {
        match self.kind {
            Kind::Untyped => match Reservation::of(self) {
                Some(reservation) => Payload::Reservation(reservation),
                None => Payload::Untyped(Marks::of(self), Sharing::of(self)),
            },
            Kind::CapNode | Kind::Thread if self.flags & flag::ZOMBIE != 0 => Payload::Ending(Ending::of(self)),
            Kind::CapNode => Payload::Node(self.small & !SECOND_LEVEL),
            Kind::Frame => Payload::Frame(Sharing::of(self)),
            Kind::PageTable => Payload::PageTable(self.small),
            Kind::Mapping => match Scattered::of(self) {
                Some(scattered) => Payload::Scattered(scattered),
                None => Payload::Mapping(Mapping::of(self)),
            },
            Kind::Endpoint | Kind::Notification | Kind::Kernel => Payload::Badge(self.words[0]),
            Kind::Null
            | Kind::Thread
            | Kind::SchedulingContext
            | Kind::Reply
            | Kind::Interrupt
            | Kind::InterruptControl
            | Kind::Doorbell => Payload::Nothing,
        }
    }

    /// Returns the same capability to another object.
    #[inline(always)]
    pub const fn at(self, object: usize) -> Cap {
        Cap { object, ..self }
    }

    /// Returns the packed payload.
    #[inline(always)]
    pub(crate) const fn raw(&self) -> Raw {
        Raw { small: self.small, words: self.words }
    }

    /// Returns the capability with another packed payload.
    #[inline(always)]
    pub(crate) const fn with(self, raw: Raw) -> Cap {
        Cap { small: raw.small, words: raw.words, ..self }
    }

    /// Changes the small part of the packed payload.
    #[inline(always)]
    pub(crate) const fn set_small(&mut self, small: u32) {
        self.small = small;
    }

    /// Changes the second word of the packed payload.
    #[inline(always)]
    pub(crate) const fn set_second_word(&mut self, word: u64) {
        self.words[1] = word;
    }

    /// Returns the capability with these flags, and without the marks of an exported one, which copies do not have.
    #[inline(always)]
    pub(crate) const fn copy_with(self, flags: u8) -> Cap {
        Cap { flags, words: [self.words[0], 0], ..self }
    }

    /// Returns the badge of a capability to an endpoint, a notification or the kernel.
    #[inline(always)]
    pub const fn badge(&self) -> u64 {
        self.words[0]
    }

    /// Returns the badge; 0 for kinds that have none.
    #[inline(always)]
    pub const fn badge_if_any(&self) -> u64 {
        if matches!(self.kind, Kind::Endpoint | Kind::Notification | Kind::Kernel) { self.badge() } else { 0 }
    }

    /// Sets the badge of a capability to an endpoint, a notification or the kernel.
    pub const fn set_badge(&mut self, badge: u64) {
        self.words[0] = badge;
    }

    /// Returns the object's address and the badge of a capability to an endpoint or a notification, read together.
    #[inline(always)]
    pub fn object_and_badge<A: Arch>(&self) -> (usize, u64) {
        const { assert!(offset_of!(Cap, words) == offset_of!(Cap, object) + 8) };
        // SAFETY: the two fields are adjacent, as asserted above.
        let [object, badge] = unsafe { A::pair::<Cap, { offset_of!(Cap, object) }>(self) };
        (object as usize, badge)
    }

    /// Returns the number of slots of a node.
    #[inline(always)]
    pub const fn slots(&self) -> usize {
        1 << (self.small & 31)
    }

    /// Returns whether a capability is to a node that can be a second-level node.
    #[inline(always)]
    pub const fn is_second_level(&self) -> bool {
        self.small & SECOND_LEVEL != 0
    }

    /// Returns whether a capability is to a reply object whose callers are not deferred, and can be used.
    #[inline(always)]
    pub const fn is_replyable(&self) -> bool {
        self.small & REPLYABLE != 0
    }

    /// Returns the level of a page table.
    #[inline(always)]
    pub const fn level(&self) -> u32 {
        self.small
    }

    /// Returns the capability to a node of `1 << number` slots, or to a page table of level `number`.
    #[inline(always)]
    pub const fn with_number(mut self, number: u32) -> Cap {
        let is_second_level = matches!(self.kind, Kind::CapNode) && number == NODE_BITS;
        self.small = if is_second_level { number | SECOND_LEVEL } else { number };
        self
    }

    /// Returns whether the object was imported from another core.
    pub const fn is_borrowed(&self) -> bool {
        matches!(self.kind, Kind::Untyped | Kind::Frame) && self.small & BORROWED != 0
    }

    /// Returns the capability, marked as one to memory that was imported from another core.
    pub const fn borrowed(mut self) -> Cap {
        self.small = BORROWED;
        self
    }

    /// Returns whether the capability is exported. For an untyped, `EMBEDDED` alone says so, since untyped memory is
    /// never bound to a thread.
    pub const fn is_exported(&self) -> bool {
        self.flags & flag::EMBEDDED != 0
            && match self.kind {
                Kind::Untyped => true,
                Kind::Frame => self.words[1] & EXPORTED != 0,
                _ => false,
            }
    }

    /// Marks a capability to untyped memory or a frame as exported or not, without a request to revoke it.
    pub const fn set_exported(&mut self, exported: bool) {
        self.flags = if exported { self.flags | flag::EMBEDDED } else { self.flags & !flag::EMBEDDED };
        match self.kind {
            Kind::Untyped => self.small &= !REVOKE_REQUESTED,
            _ => self.words[1] = if exported { EXPORTED } else { 0 },
        }
    }

    /// Marks an exported capability as "revoke requested".
    pub const fn request_revoke(&mut self) {
        match self.kind {
            Kind::Untyped => self.small |= REVOKE_REQUESTED,
            _ => self.words[1] |= REVOKE_REQUESTED as u64,
        }
    }

    /// Returns whether the capability is exported and revoke is requested.
    pub const fn is_revoke_requested(&self) -> bool {
        self.is_exported()
            && match self.kind {
                Kind::Untyped => self.small & REVOKE_REQUESTED != 0,
                _ => self.words[1] & REVOKE_REQUESTED as u64 != 0,
            }
    }
}

/// A type of kernel object that capabilities name.
///
/// # Safety
/// As long as a slot holds a capability of `KIND`, a live object of this type lies `OFFSET` bytes behind the
/// address in the capability, which is not 0.
pub unsafe trait Named {
    /// Kind of the capabilities to such objects.
    const KIND: Kind;
    /// Offset of the object from that address.
    const OFFSET: usize = 0;
}

impl Cap {
    /// Returns the object, if the capability is of the kind that names such objects. The capability is in a slot, or a
    /// copy of one that has been there since the last preemption point.
    #[inline(always)]
    pub fn named<T: Named>(&self) -> Option<Ref<T>> {
        // SAFETY: the kind has just been compared.
        if self.kind as u8 == T::KIND as u8 { Some(unsafe { self.known() }) } else { None }
    }

    /// Returns the object of a capability whose kind has been compared.
    ///
    /// # Safety
    /// The capability is of the kind that names such objects.
    #[inline(always)]
    pub unsafe fn known<T: Named>(&self) -> Ref<T> {
        // SAFETY: the contract of `Named`. Whoever holds a copy of a capability passes no preemption point with it.
        unsafe { Ref::at_unchecked(self.object + T::OFFSET) }
    }
}
