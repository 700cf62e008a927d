//! Client side of slabs. Purpose: docs/manual/policies.md.

use tench_abi::layout::slot;
use tench_abi::{CapAddress, Kind};
use tench_protocol::List;
use tench_sys::{Cap, CapNode};

use crate::Failure;
pub mod protocol;

pub use protocol::{Bundle, Figures, KernelAccount, LedgerEntry, MAX_DESCRIPTORS, Slabs, TRACE_BYTES};

/// Maximum size of a recorded trace, in bytes.
pub const MAX_TRACE: usize = 1 << 17;

/// Objects of one kind and size, in adjacent slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// Kind of the objects.
    pub kind: Kind,
    /// Size as `UntypedRetype` takes it.
    pub size: u32,
    /// Number of objects.
    pub count: u32,
}

impl Descriptor {
    /// Returns the descriptor as a word of a message.
    pub const fn word(self) -> u64 {
        self.kind as u64 | (self.size as u64) << 8 | (self.count as u64) << 32
    }

    /// Returns the descriptor of a word.
    pub fn from_word(word: u64) -> Option<Descriptor> {
        let kind = Kind::from_code(word & 0xff)?;
        Some(Descriptor { kind, size: (word >> 8) as u32 & 0x00ff_ffff, count: (word >> 32) as u32 })
    }

    /// Returns the size of one object in bytes, if there can be such an object.
    pub fn object_size(self) -> Option<u64> {
        Some(1 << self.kind.object_bits(u64::from(self.size))?)
    }
}

/// Lifetime of the objects of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// The objects exist until they are freed.
    Dynamic,
    /// The objects exist for ever.
    Static,
}

impl Slabs {
    /// The slabs of the memory server, in the slot where every process finds it.
    pub const STANDARD: Slabs = Slabs::at(Cap::new(slot::MEM));

    /// Requests a bundle. With `destination`, copies of the objects' capabilities go there: a root, and the first of as
    /// many empty slots of one node as there are objects.
    pub fn ask(
        self,
        lifetime: Lifetime,
        descriptors: &[Descriptor],
        destination: Option<(Cap<CapNode>, CapAddress)>,
    ) -> Result<Bundle, Failure> {
        let is_static = lifetime == Lifetime::Static;
        let mut words = List::<u64, MAX_DESCRIPTORS>::new();
        for descriptor in descriptors {
            words.try_push(descriptor.word()).map_err(|_| Failure::Refused(crate::Error::BadSize))?;
        }
        match destination {
            Some((cspace, first)) => self.grant_to(is_static, first, &words, cspace),
            None => self.grant(is_static, &words),
        }
    }

    /// Reads the recorded trace from an offset on. Returns the number of bytes; 0 at the end.
    pub fn read_trace(self, offset: u64, buffer: &mut [u8; TRACE_BYTES]) -> Result<usize, Failure> {
        let part = self.read_part(offset)?;
        buffer[..part.len()].copy_from_slice(&part);
        Ok(part.len())
    }
}
