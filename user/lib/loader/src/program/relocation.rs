//! The relocations of a position-independent program, all of one kind: words that hold an address relative to the
//! linked position of the program.
//!
//! A file stores them in two forms. The *compact* one (`RELR`) is a sequence of words: an even one is the address of a
//! word to relocate; the other 63 bits of an odd one say which of the next 63 words are to be relocated, too. The
//! values are in place. The *long* one (`RELA`) has three words for each: address, kind, and value. In both, addresses
//! have to ascend, so that a program can be relocated page by page while it is loaded.

use elf::abi::R_AARCH64_RELATIVE;
use tench_abi::memory::MapFlags;
use tench_procs_interface::protocol::Defect;

use super::Segment;

/// Size in bytes of an entry of the compact form.
pub const RELR_SIZE: usize = 8;
/// Size in bytes of an entry of the long form.
pub const RELA_SIZE: usize = 24;
/// Size in bytes of a relocated word.
pub const WORD: u64 = 8;
/// Number of words that an odd entry of the compact form covers.
const WORDS_PER_MAP: u64 = 63;

/// A word to relocate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Linked address of the word.
    pub address: u64,
    /// Linked value of the word; `None` if it is in place.
    pub value: Option<u64>,
}

/// All relocations of a program.
#[derive(Clone, Copy, Debug, Default)]
pub struct Relocations<'a> {
    relr: &'a [u8],
    rela: &'a [u8],
}

impl<'a> Relocations<'a> {
    /// Returns the relocations in two tables, of the compact and of the long form.
    pub(super) const fn new(relr: &'a [u8], rela: &'a [u8]) -> Relocations<'a> {
        Relocations { relr, rela }
    }

    /// Checks that all relocations can be carried out.
    pub(super) fn check(&self, segments: &[Segment<'_>]) -> Result<(), Defect> {
        for entry in self.rela.chunks_exact(RELA_SIZE) {
            let word = |index: usize| entry[index..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            // The upper half would be a symbol.
            if word(8) != u64::from(R_AARCH64_RELATIVE) {
                return Err(Defect::UnknownRelocation);
            }
        }
        let mut next = 0;
        let mut segment: Option<&Segment<'_>> = None;
        for relocation in self.words() {
            let address = relocation.address;
            if address < next || !address.is_multiple_of(WORD) {
                return Err(Defect::BadRelocation);
            }
            if segment.is_none_or(|segment| !segment.has_word(address)) {
                let found = segments.iter().find(|segment| segment.has_word(address));
                let found = found.ok_or(Defect::RelocationOutside)?;
                if !found.flags.contains(MapFlags::WRITE) {
                    return Err(Defect::RelocationOfConstant);
                }
                segment = Some(found);
            }
            next = address + WORD;
        }
        Ok(())
    }

    /// Returns an iterator over the words to relocate, in ascending order of addresses if they have been checked.
    pub fn words(&self) -> Words<'a> {
        let compact = Compact { entries: self.relr, map: 0, map_address: 0, next_map: 0 };
        let mut words = Words { compact, next_compact: None, long: Long { entries: self.rela }, next_long: None };
        words.next_compact = words.compact.next();
        words.next_long = words.long.next();
        words
    }
}

/// Iterator over the addresses in the compact form.
#[derive(Clone, Debug)]
struct Compact<'a> {
    entries: &'a [u8],
    /// Remaining bits of an odd entry, and the address of the word for its lowest bit.
    map: u64,
    map_address: u64,
    /// Address of the word for the lowest bit of the next odd entry.
    next_map: u64,
}

impl Iterator for Compact<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        while self.map == 0 {
            let (entry, rest) = self.entries.split_first_chunk::<RELR_SIZE>()?;
            self.entries = rest;
            let entry = u64::from_le_bytes(*entry);
            if entry & 1 == 0 {
                self.next_map = entry.wrapping_add(WORD);
                return Some(entry);
            }
            self.map = entry >> 1;
            self.map_address = self.next_map;
            self.next_map = self.next_map.wrapping_add(WORDS_PER_MAP * WORD);
        }
        let address = self.map_address.wrapping_add(u64::from(self.map.trailing_zeros()) * WORD);
        self.map &= self.map - 1;
        Some(address)
    }
}

/// Iterator over the long form.
#[derive(Clone, Debug)]
struct Long<'a> {
    entries: &'a [u8],
}

impl Iterator for Long<'_> {
    type Item = Relocation;

    fn next(&mut self) -> Option<Relocation> {
        let (entry, rest) = self.entries.split_first_chunk::<RELA_SIZE>()?;
        self.entries = rest;
        let word = |index: usize| entry[index..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        Some(Relocation { address: word(0), value: Some(word(16)) })
    }
}

/// Iterator over [`Relocations`]: both forms, merged.
#[derive(Clone, Debug)]
pub struct Words<'a> {
    compact: Compact<'a>,
    next_compact: Option<u64>,
    long: Long<'a>,
    next_long: Option<Relocation>,
}

impl Iterator for Words<'_> {
    type Item = Relocation;

    fn next(&mut self) -> Option<Relocation> {
        match (self.next_compact, self.next_long) {
            (Some(address), long) if long.is_none_or(|long| address <= long.address) => {
                self.next_compact = self.compact.next();
                Some(Relocation { address, value: None })
            }
            (_, long) => {
                self.next_long = self.long.next();
                long
            }
        }
    }
}
