//! Capability slots: one 64-byte line each.

use core::num::NonZeroU32;

use tench_abi::object::NODE_BITS;
use tench_abi::{Kind, Rights};

/// Log2 of a slot's bytes.
pub const SLOT_SHIFT: u32 = 6;

/// Names a slot by the [number](crate::Arch::number) of its address in units of its size.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct SlotRef(NonZeroU32);

impl SlotRef {
    /// The slot with this number; `None` for 0.
    #[inline(always)]
    pub const fn new(number: u32) -> Option<SlotRef> {
        match NonZeroU32::new(number) {
            Some(n) => Some(SlotRef(n)),
            None => None,
        }
    }

    /// Its number.
    #[inline(always)]
    pub const fn number(self) -> u32 {
        self.0.get()
    }
}

impl core::fmt::Debug for SlotRef {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "slot#{:x}", self.0)
    }
}

/// Bits of [`Cap::flags`].
pub mod flag {
    /// An endpoint that may be called: kind, `WRITE` and `CALL` checked once, when the capability is made.
    pub const CALLABLE: u8 = 1;
    /// An endpoint that may be received from: kind and `READ` checked once.
    pub const RECEIVABLE: u8 = 2;
    /// Made by retype: revoking it deletes all other capabilities to the object.
    pub const ORIGINAL: u8 = 4;
    /// Made by minting a badge: revoking it deletes all other capabilities with that badge.
    pub const BADGE_ORIGIN: u8 = 8;
    /// The slot lies inside a thread object and is one of its bindings; or the capability is the stand-in of copies on
    /// other cores ([`Cap::is_exported`](super::Cap::is_exported)). Either does not go without more ado, and whatever
    /// deletes asks only for this.
    pub const EMBEDDED: u8 = 16;
    /// Untyped, frame: device memory. Retyping does not zero it.
    pub const DEVICE: u8 = 32;
    /// Untyped, frame: ordinary memory whose contents are kept (the boot archive). Retyping does not zero it.
    pub const PRESERVED: u8 = 64;
    /// The object is being deleted, or memory is being prepared; the capability cannot be used, only deleted.
    pub const ZOMBIE: u8 = 128;
}

/// Set in [`Cap::aux`] of a node that can be a second-level node: kind, size and that it is alive, checked once. No
/// other kind sets this bit, so that looking an address up tests nothing else.
pub const SECOND_LEVEL: u32 = 1 << 31;

/// Set in [`Cap::aux`] of a frame or untyped that belongs to another core. Copies have it too.
pub const BORROWED: u32 = 1;
/// Set in [`Cap::extra`] of a frame or endpoint that is a stand-in. Copies do not have it.
pub const EXPORTED: u64 = 1;
/// Set in the same place, of an untyped in [`Cap::aux`], when somebody wanted to delete a stand-in.
pub const WANTED: u32 = 2;

/// What a slot holds.
///
/// | kind        | `object`                      | `badge`                  | `aux`                | `extra`         |
/// |-------------|-------------------------------|--------------------------|----------------------|-----------------|
/// | Untyped     | kernel virtual address        | watermark                | [`BORROWED`], [`WANTED`] | highest placed |
/// | CapNode     | kernel virtual address        | –                        | log2 of slots, [`SECOND_LEVEL`] | zombie: progress|
/// | Frame       | kernel virtual address        | –                        | [`BORROWED`]         | [`EXPORTED`], [`WANTED`] |
/// | PageTable   | kernel virtual address        | –                        | level                | –               |
/// | Mapping     | address of its *frame*        | address of the table     | first, count << 16   | offset, flags   |
/// | Endpoint    | address                       | badge                    | –                    | [`EXPORTED`], [`WANTED`] |
/// | Notification | address                      | badge                    | –                    | –               |
/// | Interrupt   | number                        | –                        | –                    | –               |
/// | Kernel      | 0                             | badge, with powers       | –                    | –               |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Cap {
    /// The type.
    pub kind: Kind,
    /// The rights, as bits of [`Rights`].
    pub rights: u8,
    /// Log2 of the object's size in bytes; 0 for objects without memory.
    pub size_bits: u8,
    /// See [`flag`].
    pub flags: u8,
    /// See above.
    pub aux: u32,
    /// See above.
    pub object: usize,
    /// See above.
    pub badge: u64,
    /// See above.
    pub extra: u64,
}

impl Cap {
    /// An empty slot's content.
    pub const NULL: Cap =
        Cap { kind: Kind::Null, rights: 0, size_bits: 0, flags: 0, aux: 0, object: 0, badge: 0, extra: 0 };

    /// A capability with all rights.
    pub const fn new(kind: Kind, object: usize, size_bits: u8) -> Cap {
        let mut cap = Cap {
            kind,
            rights: Rights::all().bits(),
            size_bits,
            flags: flag::ORIGINAL,
            aux: 0,
            object,
            badge: 0,
            extra: 0,
        };
        cap.settle();
        cap
    }

    /// Recomputes what is derived from kind, rights, size and whether it is a zombie. Called whenever one changes.
    pub const fn settle(&mut self) {
        self.flags &= !(flag::CALLABLE | flag::RECEIVABLE);
        if matches!(self.kind, Kind::CapNode) {
            self.aux &= !SECOND_LEVEL;
            if self.aux == NODE_BITS && self.flags & flag::ZOMBIE == 0 {
                self.aux |= SECOND_LEVEL;
            }
        }
        if matches!(self.kind, Kind::Endpoint) && self.flags & flag::ZOMBIE == 0 {
            let call = Rights::WRITE.bits() | Rights::CALL.bits();
            if self.rights & call == call {
                self.flags |= flag::CALLABLE;
            }
            if self.rights & Rights::READ.bits() != 0 {
                self.flags |= flag::RECEIVABLE;
            }
        }
    }

    /// Whether it is the stand-in of copies on other cores. Untyped memory is never bound to a thread.
    pub const fn is_exported(&self) -> bool {
        self.flags & flag::EMBEDDED != 0
            && match self.kind {
                Kind::Untyped => true,
                Kind::Frame | Kind::Endpoint => self.extra & EXPORTED != 0,
                _ => false,
            }
    }

    /// Marks a stand-in that somebody wanted to delete.
    pub const fn want(&mut self) {
        match self.kind {
            Kind::Untyped => self.aux |= WANTED,
            _ => self.extra |= WANTED as u64,
        }
    }

    /// Whether it is a stand-in that somebody wanted to delete.
    pub const fn is_wanted(&self) -> bool {
        self.is_exported()
            && match self.kind {
                Kind::Untyped => self.aux & WANTED != 0,
                _ => self.extra & WANTED as u64 != 0,
            }
    }

    /// Whether its object belongs to another core.
    pub const fn is_borrowed(&self) -> bool {
        matches!(self.kind, Kind::Untyped | Kind::Frame) && self.aux & BORROWED != 0
    }

    /// Whether all of `rights` are there.
    pub const fn allows(&self, rights: Rights) -> bool {
        self.rights & rights.bits() == rights.bits()
    }

    /// Slots of a node.
    pub const fn slots(&self) -> usize {
        1 << (self.aux & 31)
    }

    /// Bytes of the object; 0 for objects without memory.
    pub const fn size(&self) -> usize {
        if self.size_bits == 0 { 0 } else { 1 << self.size_bits }
    }
}

/// A slot: a capability and its place in the derivation tree. See [`derivation`](crate::derivation).
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Slot {
    /// The capability.
    pub cap: Cap,
    /// Links of the tree; all zero in an empty slot.
    pub links: Links,
}

/// A slot's links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Links {
    /// Largest end of any object in the subtree below and including this slot.
    pub max_end: usize,
    /// Parent in the tree.
    pub parent: u32,
    /// Left child: comes before.
    pub left: u32,
    /// Right child: comes after.
    pub right: u32,
    /// Previous slot in order.
    pub previous: u32,
    /// Next slot in order.
    pub next: u32,
    /// Balance of the tree.
    pub colour: u32,
}

const _: () = assert!(size_of::<Slot>() == tench_abi::object::SLOT_SIZE && size_of::<Slot>() == 1 << SLOT_SHIFT);
