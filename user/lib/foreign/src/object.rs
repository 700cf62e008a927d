//! Names: cores, sets of cores, objects, requests.

use core::num::NonZeroU64;

use tench_abi::Rights;

/// Most cores that there can be.
pub const MAX_CORES: usize = 64;

/// A core, by its number: below [`MAX_CORES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Core(u8);

impl Core {
    /// The core of this number, if there can be one.
    pub const fn new(number: u8) -> Option<Core> {
        if (number as usize) < MAX_CORES { Some(Core(number)) } else { None }
    }

    /// Its number, as a place in an array.
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
    /// No core.
    pub const NONE: Cores = Cores(0);

    /// The first `count` cores.
    pub const fn first(count: u8) -> Cores {
        if count as usize >= MAX_CORES { Cores(u64::MAX) } else { Cores((1 << count) - 1) }
    }

    /// Whether `core` is among them.
    pub const fn has(self, core: Core) -> bool {
        self.0 & 1 << core.0 != 0
    }

    /// Whether all of `others` are among them.
    pub const fn covers(self, others: Cores) -> bool {
        others.0 & !self.0 == 0
    }

    /// These and `core`.
    #[must_use]
    pub const fn with(self, core: Core) -> Cores {
        Cores(self.0 | 1 << core.0)
    }

    /// These and `others`.
    #[must_use]
    pub const fn and(self, others: Cores) -> Cores {
        Cores(self.0 | others.0)
    }

    /// These but `others`.
    #[must_use]
    pub const fn without(self, others: Cores) -> Cores {
        Cores(self.0 & !others.0)
    }

    /// One after the other, by number.
    pub fn iter(self) -> impl Iterator<Item = Core> {
        let mut left = self.0;
        core::iter::from_fn(move || {
            let bit = NonZeroU64::new(left)?.trailing_zeros();
            left &= left - 1;
            Some(Core(bit as u8))
        })
    }
}

/// Names an object that left its core. The owner gives the name when it sends the object for the first time, and never
/// gives it again: a place in its table is used anew under the next generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId {
    /// The core in whose derivation tree the original lies. It orders everything about the object.
    pub owner: Core,
    /// The place in the owner's table: below 2²⁴.
    pub number: u32,
    /// How often that place was used before.
    pub generation: u32,
}

impl ObjectId {
    /// As one word: generation, number (24 bits), owner (8 bits).
    pub const fn to_word(self) -> u64 {
        (self.generation as u64) << 32 | ((self.number & 0xff_ffff) as u64) << 8 | self.owner.0 as u64
    }

    /// The name that `word` is, if its owner can be a core.
    pub const fn from_word(word: u64) -> Option<ObjectId> {
        match Core::new(word as u8) {
            Some(owner) => {
                Some(ObjectId { owner, number: (word >> 8) as u32 & 0xff_ffff, generation: (word >> 32) as u32 })
            }
            None => None,
        }
    }
}

/// What can leave its core. The numbers are those of [`tench_abi::Kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Memory that can be retyped. It is lent, to one core at a time.
    Untyped = tench_abi::Kind::Untyped as u8,
    /// Memory that can be mapped. Copies may be on all cores.
    Frame = tench_abi::Kind::Frame as u8,
    /// An endpoint; copies on other cores are proxies.
    Endpoint = tench_abi::Kind::Endpoint as u8,
}

impl Kind {
    /// The kind of this number, if it can leave its core.
    pub const fn new(number: u8) -> Option<Kind> {
        match number {
            n if n == Kind::Untyped as u8 => Some(Kind::Untyped),
            n if n == Kind::Frame as u8 => Some(Kind::Frame),
            n if n == Kind::Endpoint as u8 => Some(Kind::Endpoint),
            _ => None,
        }
    }
}

/// What an object is: all that its owner's kernel knows it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shape {
    /// Its type.
    pub kind: Kind,
    /// Its address in physical memory.
    pub base: u64,
    /// Its size in bytes, not 0.
    pub bytes: u64,
    /// Of an endpoint, the badge of the capability that was sent: each badge is an object of its own, because each can
    /// be revoked alone. Otherwise 0.
    pub badge: u64,
}

impl Shape {
    /// Whether it is a piece of memory at all.
    pub const fn is_valid(&self) -> bool {
        self.bytes != 0 && self.base.checked_add(self.bytes).is_some()
    }

    /// Whether `other` may have been made of this: this is untyped memory, and all of `other` lies in it.
    pub const fn contains(&self, other: &Shape) -> bool {
        matches!(self.kind, Kind::Untyped)
            && self.base <= other.base
            && other.base.saturating_add(other.bytes) <= self.base.saturating_add(self.bytes)
    }
}

/// What a monitor calls a request of a local client. Each is answered once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// What a core calls a request of its own in messages to others: place in its table and generation of that place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A capability that a client wants to have sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sent {
    /// To an object of this core.
    Own(Shape),
    /// To a foreign object.
    Foreign(ObjectId),
}

/// What a request to send says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Send {
    /// Which capability.
    pub what: Sent,
    /// To which core.
    pub to: Core,
    /// With which rights. The kernel has seen that the client's own capability has them. Untyped memory has none.
    pub rights: Rights,
}
