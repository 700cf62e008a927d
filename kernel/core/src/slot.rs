//! Capability slots of 64 bytes, one cache line each.

pub mod payload;

use core::mem::offset_of;
use core::num::NonZeroU32;

use tench_abi::object::NODE_BITS;
use tench_abi::{Kind, Rights};

pub use payload::{Named, Payload};
use payload::{REPLYABLE, SECOND_LEVEL};

/// Log2 of a slot's size in bytes.
pub const SLOT_SHIFT: u32 = 6;

/// A reference to a slot, by the [number](crate::Arch::number) of its address in units of its size.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct SlotRef(NonZeroU32);

impl SlotRef {
    /// Returns the reference with this number; `None` for 0.
    #[inline(always)]
    pub const fn new(number: u32) -> Option<SlotRef> {
        match NonZeroU32::new(number) {
            Some(n) => Some(SlotRef(n)),
            None => None,
        }
    }

    /// Returns the slot's number.
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
    /// An endpoint that can be called: kind, `WRITE` and `CALL` are checked once, when the capability is made.
    pub const CALLABLE: u8 = 1;
    /// An endpoint that can be received from: kind and `READ` are checked once.
    pub const RECEIVABLE: u8 = 2;
    /// Made by retype: revoking it deletes all other capabilities to the object.
    pub const ORIGINAL: u8 = 4;
    /// Made by minting a badge: revoking it deletes all other capabilities with that badge.
    pub const BADGE_ORIGIN: u8 = 8;
    /// The slot lies inside a thread object and is one of its bindings; or the capability is exported
    /// ([`Cap::is_exported`](super::Cap::is_exported)). Both need more work when they are deleted, and deletion tests
    /// only this bit.
    pub const EMBEDDED: u8 = 16;
    /// Untyped, frame: device memory. Retyping does not zero it.
    pub const DEVICE: u8 = 32;
    /// Untyped, frame: ordinary memory whose contents are kept (the boot archive). Retyping does not zero it.
    pub const PRESERVED: u8 = 64;
    /// The object is being deleted, or memory is being prepared: the capability can only be deleted, not used.
    pub const ZOMBIE: u8 = 128;
}

/// The content of a slot: a capability. What it says besides this head depends on its kind ([`payload`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Cap {
    /// The type.
    pub kind: Kind,
    /// The rights, as bits of [`Rights`].
    pub rights: u8,
    /// Log2 of the object's size in bytes; 0 for objects without memory.
    pub size_bits: u8,
    /// Bits of [`flag`].
    pub flags: u8,
    /// First part of the [payload](payload::Raw).
    small: u32,
    /// Kernel virtual address of the object (for a mapping, of its frame); or the number of an interrupt line or a
    /// doorbell; or 0 for an object of which there is only one.
    pub object: usize,
    /// Second and third part of the [payload](payload::Raw).
    words: [u64; 2],
}

impl Cap {
    /// The content of an empty slot.
    pub const NULL: Cap =
        Cap { kind: Kind::Null, rights: 0, size_bits: 0, flags: 0, small: 0, object: 0, words: [0; 2] };

    /// Returns a capability with all rights.
    pub const fn new(kind: Kind, object: usize, size_bits: u8) -> Cap {
        let mut cap = Cap {
            kind,
            rights: Rights::all().bits(),
            size_bits,
            flags: flag::ORIGINAL,
            small: 0,
            object,
            words: [0; 2],
        };
        cap.update_flags();
        cap
    }

    /// Recomputes the flags that follow from kind, rights, size and `ZOMBIE`. To be called whenever one of these
    /// changes.
    pub const fn update_flags(&mut self) {
        self.flags &= !(flag::CALLABLE | flag::RECEIVABLE);
        let is_alive = self.flags & flag::ZOMBIE == 0;
        let call = Rights::WRITE.bits() | Rights::CALL.bits();
        let calls = is_alive && self.rights & call == call;
        match self.kind {
            Kind::CapNode => {
                self.small &= !SECOND_LEVEL;
                if self.small == NODE_BITS && is_alive {
                    self.small |= SECOND_LEVEL;
                }
            }
            Kind::Reply => self.small = if calls { REPLYABLE } else { 0 },
            Kind::Endpoint => {
                if calls {
                    self.flags |= flag::CALLABLE;
                }
                if is_alive && self.rights & Rights::READ.bits() != 0 {
                    self.flags |= flag::RECEIVABLE;
                }
            }
            _ => {}
        }
    }

    /// Returns kind, rights, size and flags as one number, from the lowest byte on: 0 if the slot is empty.
    #[inline(always)]
    pub fn head(&self) -> u32 {
        const { assert!(offset_of!(Cap, kind) == 0 && offset_of!(Cap, flags) == 3) };
        // SAFETY: the first four bytes of a valid reference.
        u32::from_le(unsafe { core::ptr::from_ref(self).cast::<u32>().read() })
    }

    /// Returns whether the capability is of this kind, has these rights, and is not being deleted.
    #[inline(always)]
    pub fn is_usable(&self, kind: Kind, rights: Rights) -> bool {
        let rights = u32::from(rights.bits()) << 8;
        let mask = 0xff | rights | u32::from(flag::ZOMBIE) << 24;
        self.head() & mask == kind as u32 | rights
    }

    /// Returns whether the capability has all of `rights`.
    pub const fn allows(&self, rights: Rights) -> bool {
        self.rights & rights.bits() == rights.bits()
    }

    /// Returns the size of the object in bytes; 0 for objects without memory.
    pub const fn size(&self) -> usize {
        if self.size_bits == 0 { 0 } else { 1 << self.size_bits }
    }
}

/// A slot: a capability and its links in the derivation tree ([`derivation`](crate::derivation)).
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Slot {
    /// The capability.
    pub cap: Cap,
    /// Links of the tree; all zero in an empty slot.
    pub links: Links,
}

/// The links of a slot in tree and list, as slot numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Links {
    /// Largest end address of any object in the subtree of this slot, including its own.
    pub max_end: usize,
    /// Parent in the tree.
    pub parent: u32,
    /// Left child, which comes before this slot in order.
    pub left: u32,
    /// Right child, which comes after this slot in order.
    pub right: u32,
    /// Previous slot in order.
    pub previous: u32,
    /// Next slot in order.
    pub next: u32,
    /// Colour for the balance of the tree.
    pub colour: u16,
    /// 1 if the node is one of a [run](crate::tree::runs) and not the last: the slot behind it holds the next. Else 0.
    /// (With a truth value, the compiler copies links byte by byte.)
    pub continues: u16,
}

const _: () = assert!(size_of::<Slot>() == tench_abi::object::SLOT_SIZE && size_of::<Slot>() == 1 << SLOT_SHIFT);
