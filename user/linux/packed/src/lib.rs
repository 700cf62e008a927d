//! A tree of files for Linux programs, in one piece: the host tool packs it, and the personality reads it in place.
//!
//! ```text
//! MAGIC · number of entries · bytes of the index · bytes of everything      four words of 64 bits, little endian
//! Stored × number                                                           the index, in postcard's encoding
//! contents of regular files                                                 each from a page on, zeros between them
//! ```
//! Entries are in the order of the bytes of their paths, so that a directory comes before what lies in it. Paths lead
//! from the root, and through no symbolic link. [`Packed::parse`] reads the whole index once, so that later functions
//! cannot meet a malformed entry.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

#[cfg(feature = "write")]
extern crate alloc;

mod defect;
#[cfg(feature = "write")]
mod write;

pub use defect::Defect;
use serde::{Deserialize, Serialize};
use tench_abi::memory::PAGE_SIZE;
#[cfg(feature = "write")]
pub use write::{TooLarge, write};

/// The first bytes, which include the version of the form.
pub const MAGIC: [u8; 8] = *b"tenchlx1";
/// Maximum size in bytes of everything: the loader has page tables for a little more.
pub const MAX_SIZE: u64 = 96 << 20;
/// The longest name in bytes.
pub const MAX_NAME: usize = 255;
/// The longest path in bytes.
pub const MAX_PATH: usize = 4095;
/// Size of the head in bytes.
const HEAD: usize = 32;
/// The bits that permissions can have.
const PERMISSIONS: u32 = 0o7777;

/// A file, or something else with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Path from the root, without a slash at its beginning or end.
    pub path: &'a [u8],
    /// Permissions, owner and time.
    pub attributes: Attributes,
    /// The type, with what an entry of that type has.
    pub kind: Kind<'a>,
}

/// Records about a file beside its contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attributes {
    /// Permissions: the lower 12 bits of the mode.
    pub permissions: u32,
    /// The owner.
    pub user: u32,
    /// The owner's group.
    pub group: u32,
    /// When the contents were last changed, in seconds since the beginning of 1970.
    pub modified: i64,
}

/// The type of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind<'a> {
    /// A directory.
    Directory,
    /// A regular file with these contents.
    Regular(&'a [u8]),
    /// A symbolic link to this path.
    Link(&'a [u8]),
    /// Another name for what lies at this path, which is that of an entry before.
    Same(&'a [u8]),
    /// A device of which programs read and write characters, with its number.
    Character(u32),
    /// A device of which programs read and write blocks, with its number.
    Block(u32),
    /// A pipe with a name.
    Fifo,
}

/// An entry as it is stored.
#[derive(Serialize, Deserialize)]
struct Stored<'a> {
    path: &'a [u8],
    attributes: Attributes,
    #[serde(borrow)]
    kind: StoredKind<'a>,
}

/// The type of an entry as it is stored.
#[derive(Serialize, Deserialize)]
enum StoredKind<'a> {
    Directory,
    /// Contents: their first page, counted from the first one behind the index, and their length in bytes.
    Regular(u32, u64),
    Link(&'a [u8]),
    Same(&'a [u8]),
    Character(u32),
    Block(u32),
    Fifo,
}

/// A packed tree of files.
#[derive(Clone, Copy, Debug)]
pub struct Packed<'a> {
    index: &'a [u8],
    count: u64,
    contents: &'a [u8],
}

impl<'a> Packed<'a> {
    /// Reads a packed tree. Bytes behind it are ignored.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn parse(bytes: &'a [u8]) -> Result<Packed<'a>, Defect> {
        if !bytes.starts_with(&MAGIC) {
            return Err(Defect::NotPacked);
        }
        let head = bytes.get(..HEAD).ok_or(Defect::CutOff)?;
        let word = |index: usize| head[8 * index..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        let size = usize::try_from(word(3)).map_err(|_| Defect::CutOff)?;
        let all = bytes.get(..size).ok_or(Defect::CutOff)?;
        let index_end = usize::try_from(word(2)).ok().and_then(|length| HEAD.checked_add(length));
        let index_end = index_end.ok_or(Defect::CutOff)?;
        let index = all.get(HEAD..index_end).ok_or(Defect::CutOff)?;
        let contents = index_end.checked_next_multiple_of(PAGE_SIZE).and_then(|start| all.get(start..)).unwrap_or(&[]);
        let packed = Packed { index, count: word(1), contents };
        packed.check()?;
        Ok(packed)
    }

    /// Checks all entries.
    fn check(&self) -> Result<(), Defect> {
        let (mut rest, mut last) = (self.index, &[][..]);
        for _ in 0..self.count {
            let (entry, after) = self.entry(rest)?;
            if !is_valid_path(entry.path) {
                return Err(Defect::BadPath);
            }
            if entry.path <= last {
                return Err(Defect::OutOfOrder);
            }
            match entry.kind {
                Kind::Link(target) if target.is_empty() || target.len() > MAX_PATH => return Err(Defect::BadLink),
                Kind::Same(other) if other >= entry.path || !is_valid_path(other) => return Err(Defect::BadLink),
                _ => {}
            }
            if entry.attributes.permissions & !PERMISSIONS != 0 {
                return Err(Defect::BadEntry);
            }
            (rest, last) = (after, entry.path);
        }
        if rest.is_empty() { Ok(()) } else { Err(Defect::BadEntry) }
    }

    /// Returns the entry at the beginning of a part of the index, and the rest.
    fn entry(&self, index: &'a [u8]) -> Result<(Entry<'a>, &'a [u8]), Defect> {
        let (stored, rest) = postcard::take_from_bytes::<Stored<'a>>(index).map_err(|_| Defect::BadEntry)?;
        let kind = match stored.kind {
            StoredKind::Directory => Kind::Directory,
            StoredKind::Regular(page, length) => Kind::Regular(self.contents_at(page, length)?),
            StoredKind::Link(target) => Kind::Link(target),
            StoredKind::Same(path) => Kind::Same(path),
            StoredKind::Character(device) => Kind::Character(device),
            StoredKind::Block(device) => Kind::Block(device),
            StoredKind::Fifo => Kind::Fifo,
        };
        Ok((Entry { path: stored.path, attributes: stored.attributes, kind }, rest))
    }

    fn contents_at(&self, page: u32, length: u64) -> Result<&'a [u8], Defect> {
        let length = usize::try_from(length).map_err(|_| Defect::ContentsOutside)?;
        if length == 0 {
            return Ok(&[]);
        }
        let start = (page as usize).checked_mul(PAGE_SIZE);
        let contents = start.and_then(|start| self.contents.get(start..)?.get(..length));
        contents.ok_or(Defect::ContentsOutside)
    }

    /// Returns an iterator over all entries, in the order of their paths.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'a>> + use<'a> {
        let (packed, mut rest) = (*self, self.index);
        core::iter::from_fn(move || {
            // The index was checked, so this fails at its end only.
            let (entry, after) = packed.entry(rest).ok()?;
            rest = after;
            Some(entry)
        })
    }
}

/// Returns whether an entry can have a path: from the root, without a slash at its end, of names that are neither `.`
/// nor `..` nor too long.
pub fn is_valid_path(path: &[u8]) -> bool {
    let is_name = |name: &[u8]| !matches!(name, b"" | b"." | b"..") && name.len() <= MAX_NAME && !name.contains(&0);
    path.len() <= MAX_PATH && path.split(|byte| *byte == b'/').all(is_name)
}
