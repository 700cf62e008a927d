//! Memory that a client shares with its server, for data that exceeds a message.
//!
//! ```text
//! client                                       server
//! attach_buffer(bytes) ── once ──────────────▶ makes a frame, maps it, and sends a copy of its capability
//! write(&[u8])  ─ copies into the buffer ─▶ message: offset, length ─▶ Shared:    copies out of it, checked
//! read(&mut [u8]) ◀─ copies out of it ───── reply ◀───────────────── SharedMut: copies into it, checked
//! ```
//! The frame is the server's: a client that takes its memory back, or ends, cannot take away what the server reads. The
//! other side may change the memory at any time, so there are no references into it: bytes are copied, and checks apply
//! to the copy. Buffers belong to callers, so a server that shares memory gives each client a capability with a badge
//! of its own.

use core::fmt::Debug;
use core::marker::PhantomData;

use tench_sys::{Cap, Error, Frame};

use crate::port::Caller;
use crate::transport::Transport;
use crate::wire::{Decode, Encode, Sink, Source};

/// Memory shared with another process. Offsets and lengths must be inside it.
pub trait Memory {
    /// Returns the size in bytes.
    fn size(&self) -> usize;
    /// Copies bytes out of the memory.
    fn read(&self, offset: usize, to: &mut [u8]);
    /// Copies bytes into the memory.
    fn write(&self, offset: usize, from: &[u8]);
}

/// The memory that a server shares with its callers, one buffer each.
pub trait Attachments: Debug {
    /// Makes a buffer of at least `bytes` bytes for a caller, in place of its old one. Returns the frame and log2 of
    /// its size.
    ///
    /// # Errors
    /// Fails if there is no memory, or if the server refuses the buffer: too large, or one too many.
    fn attach(&mut self, caller: Caller, bytes: u64) -> Result<(Cap<Frame>, u64), Error>;

    /// Returns the buffer of a caller.
    fn memory(&self, caller: Caller) -> Option<&dyn Memory>;
}

/// Returns the buffer of a caller, if the server has buffers.
pub fn memory_of<'a>(attachments: &'a Option<&mut dyn Attachments>, caller: Caller) -> Option<&'a dyn Memory> {
    attachments.as_ref().and_then(|attachments| attachments.memory(caller))
}

/// A part of a buffer, as encoded in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Offset of its first byte.
    pub offset: usize,
    /// Length in bytes.
    pub length: usize,
}

impl Encode for Region {
    const WORDS: usize = 2;

    #[inline]
    fn encode(&self, to: &mut impl Sink) {
        to.word(self.offset as u64);
        to.word(self.length as u64);
    }
}

impl Decode<'_> for Region {
    #[inline]
    fn decode(from: &mut Source<'_>) -> Option<Region> {
        Some(Region { offset: usize::decode(from)?, length: usize::decode(from)? })
    }
}

impl Region {
    /// Reads a region, which must lie inside a memory.
    fn inside(from: &mut Source<'_>, memory: &dyn Memory) -> Option<Region> {
        let region = Region::decode(from)?;
        let end = region.offset.checked_add(region.length)?;
        (end <= memory.size()).then_some(region)
    }

    /// Returns the part of the region from `at` on, of at most `bytes` bytes.
    fn part(self, at: usize, bytes: usize) -> Region {
        let at = at.min(self.length);
        Region { offset: self.offset + at, length: bytes.min(self.length - at) }
    }
}

/// Bytes in shared memory that a request refers to: [`Shared`] or [`SharedMut`].
pub struct SharedSlice<'a, Access> {
    memory: &'a dyn Memory,
    region: Region,
    access: PhantomData<Access>,
}

/// Access to bytes that the client wrote.
pub enum Read {}

/// Access to room that the client provides.
pub enum Write {}

/// Bytes of the client in shared memory. They may change until they are copied.
pub type Shared<'a> = SharedSlice<'a, Read>;

/// Room for bytes for the client, in shared memory.
pub type SharedMut<'a> = SharedSlice<'a, Write>;

impl<Access> Clone for SharedSlice<'_, Access> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Access> Copy for SharedSlice<'_, Access> {}

impl<'a, Access> SharedSlice<'a, Access> {
    /// Reads the region, and checks that it is inside the memory.
    pub fn decode(from: &mut Source<'_>, memory: &'a dyn Memory) -> Option<Self> {
        Some(SharedSlice { memory, region: Region::inside(from, memory)?, access: PhantomData })
    }

    /// Returns the length in bytes.
    pub const fn len(&self) -> usize {
        self.region.length
    }

    /// Returns whether the length is 0.
    pub const fn is_empty(&self) -> bool {
        self.region.length == 0
    }

    /// Returns the region.
    pub const fn region(&self) -> Region {
        self.region
    }
}

impl Shared<'_> {
    /// Copies the bytes from `at` on into `to`, as many as fit. Returns their number.
    pub fn read(&self, at: usize, to: &mut [u8]) -> usize {
        let part = self.region.part(at, to.len());
        self.memory.read(part.offset, &mut to[..part.length]);
        part.length
    }
}

impl SharedMut<'_> {
    /// Copies bytes to the region from byte `at` on, as many as fit. Returns their number.
    pub fn write(&self, at: usize, from: &[u8]) -> usize {
        let part = self.region.part(at, from.len());
        self.memory.write(part.offset, &from[..part.length]);
        part.length
    }
}

/// A connection to a server with which it shares memory.
pub trait Shares: Transport {
    /// Calls `with` on the memory, which nothing else on this side uses meanwhile.
    fn share<T>(self, with: impl FnOnce(&dyn Memory) -> T) -> T;
}

/// The client's side of one request: the used part of the memory.
pub struct Allocator<'a> {
    memory: &'a dyn Memory,
    used: usize,
}

impl<'a> Allocator<'a> {
    /// Returns the memory with all of it free.
    pub const fn new(memory: &'a dyn Memory) -> Allocator<'a> {
        Allocator { memory, used: 0 }
    }

    /// Reserves room for `length` bytes, if there is enough.
    pub fn reserve(&mut self, length: usize) -> Option<Region> {
        let end = self.used.checked_add(length).filter(|end| *end <= self.memory.size())?;
        let region = Region { offset: self.used, length };
        self.used = end;
        Some(region)
    }

    /// Copies bytes into free room, if there is enough.
    pub fn put(&mut self, bytes: &[u8]) -> Option<Region> {
        let region = self.reserve(bytes.len())?;
        self.memory.write(region.offset, bytes);
        Some(region)
    }

    /// Copies bytes out of a region, which must have the length of `to`.
    pub fn take(&self, region: Region, to: &mut [u8]) {
        self.memory.read(region.offset, to);
    }
}
