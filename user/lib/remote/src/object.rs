//! Names: cores, sets of cores, objects, requests.

use core::num::NonZeroU64;

use tench_abi::Rights;

/// Maximum number of cores.
pub const MAX_CORES: usize = 64;

/// A core, identified by its number, below [`MAX_CORES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Core(u8);

impl Core {
    /// Returns the core with this number, if it is in range.
    pub const fn new(number: u8) -> Option<Core> {
        if (number as usize) < MAX_CORES { Some(Core(number)) } else { None }
    }

    /// Returns the core's number, as an array index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    pub(crate) const fn number(self) -> u8 {
        self.0
    }
}

/// A set of cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cores(pub u64);

impl Cores {
    /// The empty set.
    pub const NONE: Cores = Cores(0);

    /// Returns the set of the first `count` cores.
    pub const fn first(count: u8) -> Cores {
        if count as usize >= MAX_CORES { Cores(u64::MAX) } else { Cores((1 << count) - 1) }
    }

    /// Returns whether `core` is in the set.
    pub const fn has(self, core: Core) -> bool {
        self.0 & 1 << core.0 != 0
    }

    /// Returns whether all of `others` are in the set.
    pub const fn covers(self, others: Cores) -> bool {
        others.0 & !self.0 == 0
    }

    /// Returns the set with `core` added.
    #[must_use]
    pub const fn with(self, core: Core) -> Cores {
        Cores(self.0 | 1 << core.0)
    }

    /// Returns the union with `others`.
    #[must_use]
    pub const fn and(self, others: Cores) -> Cores {
        Cores(self.0 | others.0)
    }

    /// Returns the set without `others`.
    #[must_use]
    pub const fn without(self, others: Cores) -> Cores {
        Cores(self.0 & !others.0)
    }

    /// Returns an iterator over the cores, by number.
    pub fn iter(self) -> impl Iterator<Item = Core> {
        let mut left = self.0;
        core::iter::from_fn(move || {
            let bit = NonZeroU64::new(left)?.trailing_zeros();
            left &= left - 1;
            Some(Core(bit as u8))
        })
    }
}

/// Name of an exported object. The owner assigns the name when it first sends the object, and never reuses it: an entry
/// in its table is reused under the next generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId {
    /// The core in whose derivation tree the original lies. It serialises all operations on the object.
    pub owner: Core,
    /// Index in the owner's table: below 2²⁴.
    pub number: u32,
    /// Number of earlier uses of that entry.
    pub generation: u32,
}

impl ObjectId {
    /// Returns the name as one word: generation, number (24 bits), owner (8 bits).
    pub const fn to_word(self) -> u64 {
        (self.generation as u64) << 32 | ((self.number & 0xff_ffff) as u64) << 8 | self.owner.0 as u64
    }

    /// Returns the name that `word` encodes, if its owner can be a core.
    pub const fn from_word(word: u64) -> Option<ObjectId> {
        match Core::new(word as u8) {
            Some(owner) => {
                Some(ObjectId { owner, number: (word >> 8) as u32 & 0xff_ffff, generation: (word >> 32) as u32 })
            }
            None => None,
        }
    }
}

/// Kind of an object that can be exported: memory, in either form. The numbers are those of [`tench_abi::Kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Memory that can be retyped. It is lent to one core at a time.
    Untyped = tench_abi::Kind::Untyped as u8,
    /// Memory that can be mapped. Copies may be on all cores.
    Frame = tench_abi::Kind::Frame as u8,
}

impl Kind {
    /// Returns the kind with this number, if it can be exported.
    pub const fn new(number: u8) -> Option<Kind> {
        match number {
            n if n == Kind::Untyped as u8 => Some(Kind::Untyped),
            n if n == Kind::Frame as u8 => Some(Kind::Frame),
            _ => None,
        }
    }
}

/// Shape of an object: everything that identifies it to its owner's kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shape {
    /// Type of the object.
    pub kind: Kind,
    /// Physical address of the object.
    pub base: u64,
    /// Size of the object in bytes, not 0.
    pub bytes: u64,
}

impl Shape {
    /// Returns whether this is a valid range of memory.
    pub const fn is_valid(&self) -> bool {
        self.bytes != 0 && self.base.checked_add(self.bytes).is_some()
    }

    /// Returns whether `other` may have been made from this: this is untyped memory that contains all of `other`.
    pub const fn contains(&self, other: &Shape) -> bool {
        matches!(self.kind, Kind::Untyped)
            && self.base <= other.base
            && other.base.saturating_add(other.bytes) <= self.base.saturating_add(self.bytes)
    }
}

/// A monitor's name of a request of a local client. Each gets one reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// A core's name of its own request in messages to others: index in its table and generation of that entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A capability that a client wants to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sent {
    /// A capability to an object of this core.
    Own(Shape),
    /// A capability to a remote object.
    Remote(ObjectId),
}

/// A transfer request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Send {
    /// The capability.
    pub what: Sent,
    /// The receiving core.
    pub to: Core,
    /// Rights of the copy. The kernel has checked that the client's own capability has them. Untyped memory has none.
    pub rights: Rights,
}
