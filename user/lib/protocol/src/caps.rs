//! Capabilities in messages: what is expected, what arrives, and what is sent.

use core::cell::Cell;
use core::marker::PhantomData;

use tench_sys::cap::Object;
use tench_sys::{Cap, CapAddress, Kind, OWN_SPACE};

use crate::wire::{Decode, Encode, Sink, Source};

/// What a capability in a slot is for; `None` if the slot is empty.
pub type KindOf = fn(CapAddress) -> Option<Kind>;

/// What a capability of this process is for.
pub fn own_kind_of(cap: CapAddress) -> Option<Kind> {
    OWN_SPACE.identify_at(cap).ok().map(|found| found.kind)
}

/// In a request: a copy of the client's capability. In an answer: a copy of the server's.
pub enum Lent {}

/// In a request or an answer: a capability that leaves its slot.
pub enum Given {}

/// A capability that came with a request. The server has it until the request is answered, or [keeps](Self::keep) it.
#[derive(Debug)]
pub struct Arrived<'a, T, How = Lent> {
    cap: Cap<T>,
    index: usize,
    kept: &'a Cell<u8>,
    how: PhantomData<How>,
}

impl<T, How> Arrived<'_, T, How> {
    /// The capability.
    pub const fn cap(&self) -> Cap<T> {
        self.cap
    }

    /// Keeps it; its slot is the server's to free.
    pub fn keep(self) -> Cap<T> {
        self.kept.set(self.kept.get() | 1 << self.index);
        self.cap
    }
}

/// A capability of any kind.
#[derive(Debug)]
pub enum Any {}

/// What a capability in an interface may be for.
pub trait Expected {
    /// Whether a capability is for that, when `kind_of` knows what it is for.
    fn is_at(cap: CapAddress, kind_of: KindOf) -> bool;
}

impl<T: Object> Expected for T {
    fn is_at(cap: CapAddress, kind_of: KindOf) -> bool {
        kind_of(cap) == Some(T::KIND)
    }
}

impl Expected for Any {
    fn is_at(_: CapAddress, _: KindOf) -> bool {
        true
    }
}

impl<'a, T: Expected, How> Decode<'a> for Arrived<'a, T, How> {
    fn decode(from: &mut Source<'a>) -> Option<Self> {
        let (cap, index) = from.cap()?;
        T::is_at(cap, from.kind_of).then_some(Arrived { cap: Cap::new(cap), index, kept: from.kept, how: PhantomData })
    }
}

/// A capability that is sent: [`Lent`] or [`Given`].
#[derive(Debug)]
pub struct Sent<T, How = Lent> {
    cap: Cap<T>,
    how: PhantomData<How>,
}

impl<T, How> Sent<T, How> {
    /// Sends this one.
    pub const fn new(cap: Cap<T>) -> Sent<T, How> {
        Sent { cap, how: PhantomData }
    }

    /// The capability, with whom it arrived at.
    pub const fn cap(self) -> Cap<T> {
        self.cap
    }
}

impl<T> Encode for Sent<T, Lent> {
    const WORDS: usize = 0;
    const CAPS: usize = 1;

    fn encode(&self, to: &mut impl Sink) {
        to.lend(self.cap.address());
    }
}

impl<T> Encode for Sent<T, Given> {
    const WORDS: usize = 0;
    const CAPS: usize = 1;

    fn encode(&self, to: &mut impl Sink) {
        to.give(self.cap.address());
    }
}

/// Who asks trusts the server as to what its capability is for; using it as something else is refused by the kernel.
impl<T, How> Decode<'_> for Sent<T, How> {
    fn decode(from: &mut Source<'_>) -> Option<Self> {
        from.cap().map(|(cap, _)| Sent::new(Cap::new(cap)))
    }
}
