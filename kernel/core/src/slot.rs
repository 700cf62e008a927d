//! Capability slots of 64 bytes, one cache line each.

use core::mem::offset_of;
use core::num::NonZeroU32;

use tench_abi::object::NODE_BITS;
use tench_abi::{Kind, Rights};

use crate::Arch;

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

/// Bit of [`Cap::aux`] of a node that can be a second-level node: kind, size and liveness are checked once. No other
/// kind sets this bit, so an address look-up tests nothing else.
pub const SECOND_LEVEL: u32 = 1 << 31;

/// Bit of [`Cap::aux`] of a reply object whose callers are not deferred: kind, `WRITE`, `CALL` and liveness are checked
/// once. No other kind sets this bit, so a reply on a fast path tests nothing else.
pub const REPLYABLE: u32 = 1 << 30;

/// Bit of [`Cap::aux`] of a frame or untyped that was imported: the memory belongs to another core. Copies have it,
/// too.
pub const BORROWED: u32 = 1;
/// Bit of [`Cap::extra`] of a frame that is exported. Copies do not have it.
pub const EXPORTED: u64 = 1;
/// Bit for "revoke requested": a deletion has met this exported capability. In [`Cap::extra`]; for an untyped in
/// [`Cap::aux`].
pub const REVOKE_REQUESTED: u32 = 2;

/// The content of a slot: a capability. Addresses are kernel virtual.
///
/// | kind         | `object`        | `badge`            | `aux`                           | `extra`                  |
/// |--------------|-----------------|--------------------|---------------------------------|--------------------------|
/// | Untyped      | address         | watermark          | [`BORROWED`], [`REVOKE_REQUESTED`]        | highest placed           |
/// | CapNode      | address         | –                  | log2 of slots, [`SECOND_LEVEL`] | zombie: progress         |
/// | Frame        | address         | –                  | [`BORROWED`]                    | [`EXPORTED`], [`REVOKE_REQUESTED`] |
/// | PageTable    | address         | –                  | level                           | –                        |
/// | Mapping      | frame's address | table's address    | first, count << 16              | offset, flags            |
/// | Endpoint     | address         | badge              | –                               | –                        |
/// | Notification | address         | badge              | –                               | –                        |
/// | Reply        | address         | –                  | [`REPLYABLE`]                  | –                        |
/// | Interrupt    | number          | –                  | –                               | –                        |
/// | Kernel       | 0               | badge, with powers | –                               | –                        |
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
    /// Meaning by kind, as in the table.
    pub aux: u32,
    /// Address or number of the object, as in the table.
    pub object: usize,
    /// Meaning by kind, as in the table.
    pub badge: u64,
    /// Meaning by kind, as in the table.
    pub extra: u64,
}

impl Cap {
    /// The content of an empty slot.
    pub const NULL: Cap =
        Cap { kind: Kind::Null, rights: 0, size_bits: 0, flags: 0, aux: 0, object: 0, badge: 0, extra: 0 };

    /// Returns a capability with all rights.
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
                self.aux &= !SECOND_LEVEL;
                if self.aux == NODE_BITS && is_alive {
                    self.aux |= SECOND_LEVEL;
                }
            }
            Kind::Reply => self.aux = if calls { REPLYABLE } else { 0 },
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

    /// Returns the fields `object` and `badge`, read at once.
    #[inline(always)]
    pub fn object_and_badge<A: Arch>(&self) -> (usize, u64) {
        const { assert!(offset_of!(Cap, badge) == offset_of!(Cap, object) + 8) };
        // SAFETY: the two fields lie there.
        let [object, badge] = unsafe { A::pair::<Cap, { offset_of!(Cap, object) }>(self) };
        (object as usize, badge)
    }

    /// Returns whether the capability is exported. For an untyped, `EMBEDDED` alone says so, since untyped memory is
    /// never bound to a thread.
    pub const fn is_exported(&self) -> bool {
        self.flags & flag::EMBEDDED != 0
            && match self.kind {
                Kind::Untyped => true,
                Kind::Frame => self.extra & EXPORTED != 0,
                _ => false,
            }
    }

    /// Marks an exported capability as "revoke requested".
    pub const fn request_revoke(&mut self) {
        match self.kind {
            Kind::Untyped => self.aux |= REVOKE_REQUESTED,
            _ => self.extra |= REVOKE_REQUESTED as u64,
        }
    }

    /// Returns whether the capability is exported and revoke is requested.
    pub const fn is_revoke_requested(&self) -> bool {
        self.is_exported()
            && match self.kind {
                Kind::Untyped => self.aux & REVOKE_REQUESTED != 0,
                _ => self.extra & REVOKE_REQUESTED as u64 != 0,
            }
    }

    /// Returns whether the object was imported from another core.
    pub const fn is_borrowed(&self) -> bool {
        matches!(self.kind, Kind::Untyped | Kind::Frame) && self.aux & BORROWED != 0
    }

    /// Returns whether the capability has all of `rights`.
    pub const fn allows(&self, rights: Rights) -> bool {
        self.rights & rights.bits() == rights.bits()
    }

    /// Returns the number of slots of a node.
    pub const fn slots(&self) -> usize {
        1 << (self.aux & 31)
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
