//! Capabilities in messages: expected, received and sent.

use core::cell::Cell;
use core::marker::PhantomData;

use tench_sys::cap::Object;
use tench_sys::{Cap, CapAddress, Kind, OWN_CSPACE};

use crate::wire::{Decode, Encode, Sink, Source};

/// Function that returns the kind of the capability in a slot; `None` if the slot is empty.
pub type KindOf = fn(CapAddress) -> Option<Kind>;

/// Returns the kind of a capability of this process.
pub fn own_kind_of(cap: CapAddress) -> Option<Kind> {
    OWN_CSPACE.identify_at(cap).ok().map(|found| found.kind)
}

/// Transfer mode: in a request, a copy of the client's capability; in a reply, a copy of the server's.
pub enum Lent {}

/// Transfer mode: a capability that leaves its slot, in a request or a reply.
pub enum Given {}

/// A capability received with a request. The server has it until it replies to the request, or [keeps](Self::keep) it.
#[derive(Debug)]
pub struct Arrived<'a, T, How = Lent> {
    cap: Cap<T>,
    index: usize,
    kept: &'a Cell<u8>,
    how: PhantomData<How>,
}

impl<T, How> Arrived<'_, T, How> {
    /// Returns the capability.
    pub const fn cap(&self) -> Cap<T> {
        self.cap
    }

    /// Keeps the capability; the server has to free its slot.
    pub fn keep(self) -> Cap<T> {
        self.kept.set(self.kept.get() | 1 << self.index);
        self.cap
    }
}

/// A capability of any kind.
#[derive(Debug)]
pub enum Any {}

/// Kind of capability that an interface expects.
pub trait Expected {
    /// Returns whether a capability is of this kind, according to `kind_of`.
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

/// A capability to send: [`Lent`] or [`Given`].
#[derive(Debug)]
pub struct Sent<T, How = Lent> {
    cap: Cap<T>,
    how: PhantomData<How>,
}

impl<T, How> Sent<T, How> {
    /// Returns the capability to send.
    pub const fn new(cap: Cap<T>) -> Sent<T, How> {
        Sent { cap, how: PhantomData }
    }

    /// Returns the capability, at its receiver.
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

/// A client trusts the server about the kind of its capability; the kernel refuses to use it as another kind.
impl<T, How> Decode<'_> for Sent<T, How> {
    fn decode(from: &mut Source<'_>) -> Option<Self> {
        from.cap().map(|(cap, _)| Sent::new(Cap::new(cap)))
    }
}
