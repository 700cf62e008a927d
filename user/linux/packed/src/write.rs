//! Packing.

use alloc::vec::Vec;

use tench_abi::memory::PAGE_SIZE;

use crate::{Entry, HEAD, Kind, MAGIC, MAX_SIZE, Stored, StoredKind};

/// Error for files that are too large together, with their size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge(pub u64);

impl core::fmt::Display for TooLarge {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (size, most) = (self.0.div_ceil(1 << 20), MAX_SIZE >> 20);
        write!(f, "the files have {size} MiB together, and {most} MiB are allowed")
    }
}

impl core::error::Error for TooLarge {}

/// Packs entries, which are in the order of their paths.
///
/// # Errors
/// Fails with their size if that is more than [`MAX_SIZE`].
pub fn write(entries: &[Entry<'_>]) -> Result<Vec<u8>, TooLarge> {
    let mut index = Vec::new();
    let mut next = 0;
    for entry in entries {
        let kind = match entry.kind {
            Kind::Directory => StoredKind::Directory,
            Kind::Regular(contents) => {
                let first = next;
                next += contents.len().div_ceil(PAGE_SIZE) as u64;
                // If this is cut off, there is too much all the more.
                StoredKind::Regular(u32::try_from(first).unwrap_or(u32::MAX), contents.len() as u64)
            }
            Kind::Link(target) => StoredKind::Link(target),
            Kind::Same(path) => StoredKind::Same(path),
            Kind::Character(device) => StoredKind::Character(device),
            Kind::Block(device) => StoredKind::Block(device),
            Kind::Fifo => StoredKind::Fifo,
        };
        let stored = Stored { path: entry.path, attributes: entry.attributes, kind };
        // Nothing in an entry has an encoding that could fail.
        index.extend(postcard::to_allocvec(&stored).unwrap_or_default());
    }
    let start = (HEAD + index.len()).next_multiple_of(PAGE_SIZE);
    let size = start as u64 + next * PAGE_SIZE as u64;
    if size > MAX_SIZE {
        return Err(TooLarge(size));
    }
    let mut bytes = Vec::with_capacity(size as usize);
    bytes.extend(MAGIC);
    [entries.len() as u64, index.len() as u64, size].iter().for_each(|word| bytes.extend(word.to_le_bytes()));
    bytes.extend(index);
    for entry in entries {
        if let Kind::Regular(contents) = entry.kind {
            bytes.resize(bytes.len().next_multiple_of(PAGE_SIZE), 0);
            bytes.extend(contents);
        }
    }
    bytes.resize(size as usize, 0);
    Ok(bytes)
}
