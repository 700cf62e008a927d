//! Memory that a client shares with its server, for what exceeds a message.
//!
//! ```text
//! client                                       server
//! attach_buffer(bytes) ── once ──────────────▶ makes a frame, maps it, and sends a copy of its capability
//! write(&[u8])  ─ copies into the buffer ─▶ message: offset, length ─▶ Shared:    copies out of it, checked
//! read(&mut [u8]) ◀─ copies out of it ───── answer ◀──────────────── SharedMut: copies into it, checked
//! ```
//! The frame is the server's: a client that takes its memory back, or dies, cannot take away what the server reads. The
//! other side may change the memory at any time, so nobody has references into it: bytes are copied, and what was
//! checked is the copy. Buffers belong to callers, so a server that shares memory gives each client a capability with a
//! badge of its own.

use core::fmt::Debug;
use core::marker::PhantomData;

use tench_sys::{Cap, Error, Frame};

use crate::port::Caller;
use crate::transport::Transport;
use crate::wire::{Decode, Encode, Sink, Source};

/// Memory that somebody else sees, too. Offsets and lengths are inside it.
pub trait Memory {
    /// Bytes.
    fn size(&self) -> usize;
    /// Copies bytes out of it.
    fn read(&self, offset: usize, to: &mut [u8]);
    /// Copies bytes into it.
    fn write(&self, offset: usize, from: &[u8]);
}

/// The memory that a server shares with its callers, one buffer each.
pub trait Attachments: Debug {
    /// Makes a buffer of at least so many bytes for a caller, in the place of the one that it had. Answers the frame
    /// and log2 of its size.
    ///
    /// # Errors
    /// There is no memory, or the server gives no such buffer: too large, or one too many.
    fn attach(&mut self, caller: Caller, bytes: u64) -> Result<(Cap<Frame>, u64), Error>;

    /// The buffer of a caller.
    fn memory(&self, caller: Caller) -> Option<&dyn Memory>;
}

/// The buffer of a caller, where there are any.
pub fn memory_of<'a>(attachments: &'a Option<&mut dyn Attachments>, caller: Caller) -> Option<&'a dyn Memory> {
    attachments.as_ref().and_then(|attachments| attachments.memory(caller))
}

/// A part of a buffer, as it travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its first byte.
    pub offset: usize,
    /// Bytes.
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
    /// Reads one that lies inside a memory.
    fn inside(from: &mut Source<'_>, memory: &dyn Memory) -> Option<Region> {
        let region = Region::decode(from)?;
        let end = region.offset.checked_add(region.length)?;
        (end <= memory.size()).then_some(region)
    }

    /// Of so many bytes from `at` on, as many as are there.
    fn part(self, at: usize, bytes: usize) -> Region {
        let at = at.min(self.length);
        Region { offset: self.offset + at, length: bytes.min(self.length - at) }
    }
}

/// Bytes in shared memory that a request names: [`Shared`] or [`SharedMut`].
pub struct Piece<'a, Access> {
    memory: &'a dyn Memory,
    region: Region,
    access: PhantomData<Access>,
}

/// What is done with the bytes that the client wrote.
pub enum Read {}

/// What is done with the room that the client has left.
pub enum Write {}

/// Bytes of the client's in shared memory. They may change until they are copied.
pub type Shared<'a> = Piece<'a, Read>;

/// Room for bytes for the client, in shared memory.
pub type SharedMut<'a> = Piece<'a, Write>;

impl<Access> Clone for Piece<'_, Access> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Access> Copy for Piece<'_, Access> {}

impl<'a, Access> Piece<'a, Access> {
    /// Reads which bytes, and checks that they are inside the memory.
    pub fn decode(from: &mut Source<'_>, memory: &'a dyn Memory) -> Option<Self> {
        Some(Piece { memory, region: Region::inside(from, memory)?, access: PhantomData })
    }

    /// Bytes.
    pub const fn len(&self) -> usize {
        self.region.length
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.region.length == 0
    }

    /// Where they are.
    pub const fn region(&self) -> Region {
        self.region
    }
}

impl Shared<'_> {
    /// Copies what there is from byte `at` on, as much as there is room for. Answers how many bytes.
    pub fn read(&self, at: usize, to: &mut [u8]) -> usize {
        let part = self.region.part(at, to.len());
        self.memory.read(part.offset, &mut to[..part.length]);
        part.length
    }
}

impl SharedMut<'_> {
    /// Copies bytes there from byte `at` on, as many as there is room for. Answers how many.
    pub fn write(&self, at: usize, from: &[u8]) -> usize {
        let part = self.region.part(at, from.len());
        self.memory.write(part.offset, &from[..part.length]);
        part.length
    }
}

/// A way to a server that shares memory with it.
pub trait Shares: Transport {
    /// Uses the memory, of which nobody else on this side uses anything meanwhile.
    fn share<T>(self, with: impl FnOnce(&dyn Memory) -> T) -> T;
}

/// The client's side of one request: what of the memory is in use.
pub struct Room<'a> {
    memory: &'a dyn Memory,
    used: usize,
}

impl<'a> Room<'a> {
    /// All of it is free.
    pub const fn new(memory: &'a dyn Memory) -> Room<'a> {
        Room { memory, used: 0 }
    }

    /// Room for so many bytes, if there is.
    pub fn reserve(&mut self, length: usize) -> Option<Region> {
        let end = self.used.checked_add(length).filter(|end| *end <= self.memory.size())?;
        let region = Region { offset: self.used, length };
        self.used = end;
        Some(region)
    }

    /// Puts bytes there, if there is room.
    pub fn put(&mut self, bytes: &[u8]) -> Option<Region> {
        let region = self.reserve(bytes.len())?;
        self.memory.write(region.offset, bytes);
        Some(region)
    }

    /// Takes bytes from where there was room for as many.
    pub fn take(&self, region: Region, to: &mut [u8]) {
        self.memory.read(region.offset, to);
    }
}
