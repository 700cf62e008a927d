//! Layout of the memory block with which a core is started.
//!
//! ```text
//!  0          channel         2^CHANNEL_BITS bytes, shared with the core that starts this one
//!  …          boot page       tench_abi::boot::CoreBoot
//!  …          kernel          the image, and behind it what the kernel zeroes itself
//!  …          init            header and segments
//!  end        the rest        memory of the new core
//! ```
//! The block is naturally aligned and no larger than what the kernel maps in pages for itself, so the kernel's own
//! mapping covers all of it.

use tench_abi::memory::PAGE_SIZE;

/// Log2 of the block's size.
pub const BLOCK_BITS: u32 = 21;
/// Log2 of the size of the channel between two monitors.
pub const CHANNEL_BITS: u32 = 14;

/// Position in an arm64 `Image` of its size in memory and its magic number.
const IMAGE_SIZE: core::ops::Range<usize> = 16..24;
const IMAGE_MAGIC: (core::ops::Range<usize>, &[u8]) = (56..60, b"ARM\x64");

/// Offsets in the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The boot page.
    pub page: usize,
    /// The kernel's image.
    pub kernel: usize,
    /// `init`.
    pub init: usize,
    /// Start of the free rest.
    pub rest: usize,
}

impl Layout {
    /// Returns the layout for these two files of the boot archive. `None` if the first is not a kernel, or if they are
    /// too large.
    pub fn new(kernel: &[u8], init: &[u8]) -> Option<Layout> {
        let (magic, expected) = IMAGE_MAGIC;
        if kernel.get(magic)? != expected {
            return None;
        }
        let memory = u64::from_le_bytes(kernel.get(IMAGE_SIZE)?.try_into().ok()?);
        let pages = |bytes: usize| bytes.checked_next_multiple_of(PAGE_SIZE);
        let page = 1 << CHANNEL_BITS;
        let at = page + PAGE_SIZE;
        let init_at = at.checked_add(pages(usize::try_from(memory).ok()?.max(kernel.len()))?)?;
        let rest = init_at.checked_add(pages(init.len())?)?;
        (rest <= 1 << BLOCK_BITS).then_some(Layout { page, kernel: at, init: init_at, rest })
    }

    /// Returns the rest of the block as naturally aligned powers of two: offset and log2 of the size.
    pub fn free_blocks(&self) -> impl Iterator<Item = (usize, u32)> + use<> {
        let mut at = self.rest;
        core::iter::from_fn(move || {
            let left = (1usize << BLOCK_BITS) - at;
            let bits = left.checked_ilog2()?.min(at.trailing_zeros());
            at += 1 << bits;
            Some((at - (1 << bits), bits))
        })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec;
    use std::vec::Vec;

    use super::*;

    fn image(bytes: usize, memory: u64) -> Vec<u8> {
        let mut image = vec![0; bytes];
        image[16..24].copy_from_slice(&memory.to_le_bytes());
        image[56..60].copy_from_slice(b"ARM\x64");
        image
    }

    #[test]
    fn all_parts_have_pages_of_their_own() {
        let layout = Layout::new(&image(5000, 0x5_0001), &[0; 4097]).unwrap();
        assert_eq!(layout, Layout { page: 0x4000, kernel: 0x5000, init: 0x5_6000, rest: 0x5_8000 });
        let blocks: Vec<_> = layout.free_blocks().collect();
        assert_eq!(blocks[..3], [(0x5_8000, 15), (0x6_0000, 17), (0x8_0000, 19)]);
        assert_eq!(blocks.iter().map(|(_, bits)| 1 << bits).sum::<usize>(), (1 << BLOCK_BITS) - layout.rest);
    }

    #[test]
    fn files_that_are_no_kernel_or_too_large_are_refused() {
        assert_eq!(Layout::new(b"short", &[]), None);
        assert_eq!(Layout::new(&vec![0; 4096], &[]), None);
        assert_eq!(Layout::new(&image(100, u64::MAX), &[]), None);
        assert_eq!(Layout::new(&image(100, 1 << BLOCK_BITS), &[]), None);
        let all = (1 << BLOCK_BITS) - 0x5000;
        assert_eq!(Layout::new(&image(100, all), &[]).map(|layout| layout.free_blocks().count()), Some(0));
    }
}
