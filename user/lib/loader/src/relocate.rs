//! Filling frames with a program's contents, relocated.
//!
//! Most pages have nothing to relocate and are copied to their frames as they are. The others are relocated in a page
//! on the stack.

use tench_abi::CapAddress;
use tench_abi::memory::PAGE_SIZE;

use crate::program::{Program, Relocation, Words};
use crate::space::{Builder, LoadError};

const PAGE: u64 = PAGE_SIZE as u64;

/// Remaining relocations of a program that is being loaded, in ascending order of addresses.
#[derive(Clone, Debug)]
pub struct Relocating<'a> {
    words: Words<'a>,
    bias: u64,
    /// The first remaining relocation, with the address of its word in the process.
    next: Option<Relocation>,
}

impl<'a> Relocating<'a> {
    /// Returns all of a program's relocations.
    pub fn new(program: &Program<'a>) -> Relocating<'a> {
        let mut relocating = Relocating { words: program.relocations.words(), bias: program.bias, next: None };
        relocating.advance();
        relocating
    }

    /// Advances to the next relocation.
    fn advance(&mut self) {
        let next = self.words.next();
        self.next = next.map(|next| Relocation { address: next.address.wrapping_add(self.bias), ..next });
    }

    /// Returns whether a word below `end` remains to be relocated.
    pub fn changes_below(&self, end: u64) -> bool {
        self.next.is_some_and(|next| next.address < end)
    }

    /// Relocates the words in `bytes`, which are contents for `address`. Words at lower addresses must have been
    /// relocated.
    pub fn apply(&mut self, address: u64, bytes: &mut [u8]) {
        while let Some(word) = self.next {
            let Some(offset) = word.address.checked_sub(address) else { return };
            let Some(place) = bytes.get_mut(offset as usize..).and_then(|rest| rest.first_chunk_mut()) else { return };
            let value = word.value.unwrap_or(u64::from_le_bytes(*place));
            *place = value.wrapping_add(self.bias).to_le_bytes();
            self.advance();
        }
    }

    /// Writes a program's contents for `address` into a frame, from `offset` on.
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
            let plain = self.next.map_or(end, |next| end.min((next.address & !(PAGE - 1)).max(address)));
            let part_end = if plain > address { plain } else { end.min((address & !(PAGE - 1)) + PAGE) };
            let (part, rest) = bytes.split_at((part_end - address) as usize);
            if plain > address {
                builder.fill(frame, size_bits, offset, part)?;
            } else {
                self.fill_relocated(builder, (frame, size_bits), offset, address, part)?;
            }
            bytes = rest;
            address = part_end;
            offset += part.len() as u64;
        }
        Ok(())
    }

    /// Writes at most a page with words to relocate. A separate function, so that only such pages cost the page on the
    /// stack.
    #[inline(never)]
    fn fill_relocated(
        &mut self,
        builder: &mut impl Builder,
        (frame, size_bits): (CapAddress, u32),
        offset: u64,
        address: u64,
        bytes: &[u8],
    ) -> Result<(), LoadError> {
        let mut page = [0; PAGE_SIZE];
        let part = &mut page[..bytes.len()];
        part.copy_from_slice(bytes);
        self.apply(address, part);
        builder.fill(frame, size_bits, offset, part)
    }
}
