//! Slabs: memory in the manner of seL4's untyped objects, given in bundles. What for: docs/manual/policies.md.
//!
//! Somebody sets slabs up; from then on every process can ask for bundles. The memory server makes the objects, chooses
//! the slab by its policy, and keeps the books, which can be compared with the kernel's.

use tench_abi::message::MAX_WORDS;
use tench_abi::{CapAddress, Kind};
use tench_protocol::{call, call_words};
use tench_sys::{Cap, CapNode, Endpoint, Message};

use crate::{Failure, Mem};

tench_protocol::codes! {
    /// What can be asked about slabs.
    pub enum Label {
        /// **Set up** slabs. Words: log2 of the size of each, the largest first; those after a word of 0 are for static
        /// objects. Answers the number of slabs.
        /// Errors: `OutOfMemory`, `BadSize`, `TooManyBlocks`, `SlabsInUse` (there are some).
        SetUp = 32;
        /// **Take down** the slabs: their memory is free again. Errors: `NoSlabs`, `SlabsInUse` (objects live in them).
        TakeDown = 33;
        /// **Grant** a bundle, whole or not at all. Words: lifetime (0 dynamic, 1 static), slot of the first object in
        /// the client's space (0: the objects stay with the server), then descriptors ([`Descriptor`]). With a slot, one
        /// capability: the root of that space; the objects' capabilities are copied there, side by side.
        /// Answers the bundle's number, then [`Figures`].
        /// The objects count against the client's quota.
        /// Errors: `OutOfMemory`, `QuotaExceeded`, `BadSize`, `NoSlabs`, `TooManyBlocks`, `NoSuchSlot`.
        Grant = 34;
        /// **Free** a bundle: its objects are deleted. Words: its number. Answers [`Figures`].
        /// Errors: `NoSuchBundle`.
        Free = 35;
        /// **Books** of a slab. Words: its number. Answers physical address, log2 of its size, watermark, live objects,
        /// bytes in them, bytes lost to alignment, bytes lost to the watermark, resets. Errors: `NoSuchSlab`.
        Books = 36;
        /// **The kernel's** account of a slab. Words: its number. Answers watermark, live objects, bytes in them.
        /// Errors: `NoSuchSlab`.
        Kernel = 37;
        /// **Policy**. Words: 0 to ask, or 1 + a policy's code; whether the watermark rule is lifted. To set it begins
        /// counting anew. Answers the policy's code and whether the rule is lifted. Errors: `BadRequest`, `SlabsInUse` (lifting the rule, or not,
        /// while objects live).
        Policy = 38;
        /// **Record** requests as a trace, from now on. Words: 1 to begin anew, 0 to stop. Answers the bytes recorded.
        Record = 39;
        /// **Read** what was recorded. Words: offset in bytes. Answers the number of bytes, then the bytes.
        ReadTrace = 40;
        /// **Figures**. Answers [`Figures`]. Errors: `NoSlabs`.
        Figures = 41;
    }
}

/// Descriptors in a bundle, which has at most 256 objects.
pub const MAX_DESCRIPTORS: usize = 32;
/// Bytes of a trace in one answer.
pub const TRACE_BYTES: usize = (MAX_WORDS - 1) * 8;
/// Trace that is recorded at most, in bytes.
pub const MAX_TRACE: usize = 1 << 17;

/// Objects of one kind and size, side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// What they are.
    pub kind: Kind,
    /// Size as `UntypedRetype` understands it.
    pub size: u32,
    /// How many.
    pub count: u32,
}

impl Descriptor {
    /// As it travels.
    pub const fn word(self) -> u64 {
        self.kind as u64 | (self.size as u64) << 8 | (self.count as u64) << 32
    }

    /// From how it travels.
    pub fn from_word(word: u64) -> Option<Descriptor> {
        let kind = Kind::from_code(word & 0xff)?;
        Some(Descriptor { kind, size: (word >> 8) as u32 & 0x00ff_ffff, count: (word >> 32) as u32 })
    }

    /// Bytes of one object, if there can be such an object.
    pub fn object_size(self) -> Option<u64> {
        Some(1 << self.kind.object_bits(u64::from(self.size))?)
    }
}

/// How long the objects of a bundle live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// Until they are freed.
    Dynamic,
    /// For ever.
    Static,
}

/// Sums over all slabs, after a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Bytes in live objects.
    pub live: u64,
    /// Live objects.
    pub objects: u64,
    /// Bytes lost to the watermark rule.
    pub watermark_loss: u64,
    /// Bytes lost to alignment.
    pub align_loss: u64,
    /// Slab resets since the policy was set.
    pub resets: u64,
    /// Retypes that failed since then.
    pub failed_retypes: u64,
    /// Bundles that found no room since then.
    pub out_of_memory: u64,
    /// Bytes of the bundles that were granted since then.
    pub requested: u64,
    /// Free bytes below the highest object of each slab.
    pub gaps: u64,
}

/// Words of [`Figures`].
const FIGURES: usize = 9;

impl Figures {
    /// From the words of an answer.
    fn from_words(words: &[u64]) -> Option<Figures> {
        let [live, objects, watermark_loss, align_loss, resets, failed_retypes, out_of_memory, requested, gaps] =
            *words.first_chunk::<FIGURES>()?;
        Some(Figures {
            live,
            objects,
            watermark_loss,
            align_loss,
            resets,
            failed_retypes,
            out_of_memory,
            requested,
            gaps,
        })
    }

    /// As they travel.
    pub const fn words(self) -> [u64; FIGURES] {
        [
            self.live,
            self.objects,
            self.watermark_loss,
            self.align_loss,
            self.resets,
            self.failed_retypes,
            self.out_of_memory,
            self.requested,
            self.gaps,
        ]
    }
}

/// The server's books of a slab.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Books {
    /// Physical address.
    pub address: u64,
    /// Log2 of its size in bytes.
    pub size_bits: u32,
    /// Bytes below the watermark.
    pub watermark: u64,
    /// Live objects.
    pub objects: u64,
    /// Bytes in them.
    pub live: u64,
    /// Bytes lost to alignment.
    pub align_loss: u64,
    /// Bytes lost to the watermark rule.
    pub watermark_loss: u64,
    /// How often it became empty.
    pub resets: u64,
}

/// The kernel's account of a slab.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelAccount {
    /// Bytes below the watermark.
    pub watermark: u64,
    /// Live objects.
    pub objects: u64,
    /// Bytes in them.
    pub live: u64,
}

/// A bundle that was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// Its number, by which it is freed.
    pub number: u64,
    /// The slabs afterwards.
    pub figures: Figures,
}

/// The slabs of the memory server.
#[derive(Clone, Copy, Debug)]
pub struct Slabs {
    endpoint: Cap<Endpoint>,
}

impl Slabs {
    /// Those of the memory server that every process finds.
    pub const STANDARD: Slabs = Slabs { endpoint: Mem::STANDARD.endpoint };

    fn words(self, label: Label, words: [u64; 4]) -> Result<[u64; 8], Failure> {
        call_words(self.endpoint, label as u64, words)
    }

    /// Sets up slabs of these sizes (log2, the largest first) for dynamic and for static objects. Answers their number.
    pub fn set_up(self, dynamic: &[u8], statics: &[u8]) -> Result<u64, Failure> {
        let mut words = [0; MAX_WORDS];
        let separator = (!statics.is_empty()).then_some(&0);
        let sizes = dynamic.iter().chain(separator).chain(statics);
        let count = sizes.clone().count();
        if count > MAX_WORDS {
            return Err(Failure::Refused(crate::Error::BadSize));
        }
        for (word, size) in words.iter_mut().zip(sizes) {
            *word = u64::from(*size);
        }
        Ok(call(self.endpoint, &Message::with_words(Label::SetUp as u64, &words[..count]))?.word(0))
    }

    /// Takes the slabs down.
    pub fn take_down(self) -> Result<(), Failure> {
        self.words(Label::TakeDown, [0; 4]).map(drop)
    }

    /// Asks for a bundle. With `destination`, copies of the objects' capabilities go there: a root and the first of as
    /// many empty slots of one node as there are objects.
    pub fn grant(
        self,
        lifetime: Lifetime,
        descriptors: &[Descriptor],
        destination: Option<(Cap<CapNode>, CapAddress)>,
    ) -> Result<Bundle, Failure> {
        let mut words = [0; MAX_DESCRIPTORS + 2];
        if descriptors.len() > MAX_DESCRIPTORS {
            return Err(Failure::Refused(crate::Error::BadSize));
        }
        words[0] = lifetime as u64;
        words[1] = destination.map_or(0, |(_, first)| u64::from(first.0));
        for (word, descriptor) in words[2..].iter_mut().zip(descriptors) {
            *word = descriptor.word();
        }
        let mut request = Message::with_words(Label::Grant as u64, &words[..descriptors.len() + 2]);
        if let Some((space, _)) = destination {
            request.copy_cap(space);
        }
        let reply = call(self.endpoint, &request)?;
        let [number, figures @ ..] = reply.words() else { return Err(Failure::Malformed) };
        Ok(Bundle { number: *number, figures: Figures::from_words(figures).ok_or(Failure::Malformed)? })
    }

    /// Frees a bundle.
    pub fn free(self, number: u64) -> Result<Figures, Failure> {
        self.ask_figures(&Message::with_words(Label::Free as u64, &[number]))
    }

    /// Sums over all slabs.
    pub fn figures(self) -> Result<Figures, Failure> {
        self.ask_figures(&Message::new(Label::Figures as u64))
    }

    fn ask_figures(self, request: &Message) -> Result<Figures, Failure> {
        Figures::from_words(call(self.endpoint, request)?.words()).ok_or(Failure::Malformed)
    }

    /// The server's books of a slab.
    pub fn books(self, number: u64) -> Result<Books, Failure> {
        let words = self.words(Label::Books, [number, 0, 0, 0])?;
        let [address, size_bits, watermark, objects, live, align_loss, watermark_loss, resets] = words;
        let size_bits = size_bits as u32;
        Ok(Books { address, size_bits, watermark, objects, live, align_loss, watermark_loss, resets })
    }

    /// The kernel's account of a slab.
    pub fn kernel(self, number: u64) -> Result<KernelAccount, Failure> {
        let [watermark, objects, live, ..] = self.words(Label::Kernel, [number, 0, 0, 0])?;
        Ok(KernelAccount { watermark, objects, live })
    }

    /// The policy's code, and whether the watermark rule is lifted.
    pub fn policy(self) -> Result<(u64, bool), Failure> {
        let [code, lifted, ..] = self.words(Label::Policy, [0; 4])?;
        Ok((code, lifted != 0))
    }

    /// Changes the policy.
    pub fn set_policy(self, code: u64, lifted: bool) -> Result<(), Failure> {
        self.words(Label::Policy, [code + 1, u64::from(lifted), 0, 0]).map(drop)
    }

    /// Begins or ends recording. Answers the bytes recorded.
    pub fn record(self, on: bool) -> Result<u64, Failure> {
        Ok(self.words(Label::Record, [u64::from(on), 0, 0, 0])?[0])
    }

    /// What was recorded, from an offset on. Answers the bytes read; 0 at the end.
    pub fn read_trace(self, offset: u64, buffer: &mut [u8; TRACE_BYTES]) -> Result<usize, Failure> {
        let reply = call(self.endpoint, &Message::with_words(Label::ReadTrace as u64, &[offset]))?;
        let [length, words @ ..] = reply.words() else { return Err(Failure::Malformed) };
        let length = usize::try_from(*length).map_err(|_| Failure::Malformed)?;
        if length > words.len() * 8 {
            return Err(Failure::Malformed);
        }
        for (bytes, word) in buffer.chunks_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        Ok(length)
    }
}
