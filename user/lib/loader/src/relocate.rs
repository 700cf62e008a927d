//! Fills frames with a program's contents, moved to where they lie.
//!
//! Most pages have nothing to relocate and go to their frames as they are. The others pass through a page on the stack.

use tench_abi::CapAddress;
use tench_abi::memory::PAGE_SIZE;

use crate::program::{Program, Words};
use crate::space::{Builder, LoadError};

const PAGE: u64 = PAGE_SIZE as u64;

/// What is left to relocate of a program that is being loaded, from the lowest address up.
#[derive(Clone, Debug)]
pub struct Relocating<'a> {
    words: Words<'a>,
    bias: u64,
}

impl<'a> Relocating<'a> {
    /// All of a program's relocations.
    pub fn new(program: &Program<'a>) -> Relocating<'a> {
        Relocating { words: program.relocations.words(), bias: program.bias }
    }

    /// The address of the next word.
    fn next(&self) -> Option<u64> {
        self.words.address().map(|address| address.wrapping_add(self.bias))
    }

    /// Whether a word below `end` is left to relocate.
    pub fn changes_below(&self, end: u64) -> bool {
        self.next().is_some_and(|next| next < end)
    }

    /// Relocates what lies in `bytes`, which are for `address`. Words that lie further down must have been relocated.
    pub fn apply(&mut self, address: u64, bytes: &mut [u8]) {
        while let Some(offset) = self.next().and_then(|next| usize::try_from(next.checked_sub(address)?).ok()) {
            let Some(place) = bytes.get_mut(offset..).and_then(|rest| rest.first_chunk_mut()) else { return };
            let Some(word) = self.words.next() else { return };
            let value = word.value.unwrap_or(u64::from_le_bytes(*place));
            *place = value.wrapping_add(self.bias).to_le_bytes();
        }
    }

    /// Writes into a frame, from `offset` on, what a program has for `address`.
    pub fn fill(
        &mut self,
        builder: &mut impl Builder,
        (frame, size_bits): (CapAddress, u32),
        mut offset: u64,
        mut address: u64,
        mut bytes: &[u8],
    ) -> Result<(), LoadError> {
        while !bytes.is_empty() {
            let end = address + bytes.len() as u64;
            // Up to the page with the next word to relocate.
            let plain = self.next().map_or(end, |next| end.min((next & !(PAGE - 1)).max(address)));
            let relocated = end.min((plain & !(PAGE - 1)) + PAGE);
            let mut page = [0; PAGE_SIZE];
            let part = if plain > address {
                let (part, _) = bytes.split_at((plain - address) as usize);
                part
            } else {
                let part = &mut page[..(relocated - address) as usize];
                part.copy_from_slice(&bytes[..part.len()]);
                self.apply(address, part);
                part
            };
            builder.fill(frame, size_bits, offset, part)?;
            bytes = &bytes[part.len()..];
            address += part.len() as u64;
            offset += part.len() as u64;
        }
        Ok(())
    }
}
