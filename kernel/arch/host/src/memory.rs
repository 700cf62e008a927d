//! Physical memory: one buffer.
//!
//! ```text
//!  physical   0 ─ ─ ─ ─ ─ ─ ─ DEVICE ─ ─ ─ RAM_START ══════════ RAM_START + size ─ ─ ─ LARGE_DEVICE
//!                              not backed              the buffer                       not backed
//! ```
//! The kernel never accesses device memory, so none is backed.
//!
//! The buffer records which of its pages may hold anything but zeros. The kernel writes to objects, which it has filled
//! with zeros before, and to IPC buffers, which [`Machine::mark_ipc_buffers`](crate::Machine::mark_ipc_buffers) marks.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};

use tench_abi::memory::PAGE_SIZE;

/// Physical address of the first byte of RAM.
pub const RAM_START: u64 = 0x4000_0000;
/// Virtual alignment of the buffer: up to this size, objects in the buffer are aligned as they are physically.
const ALIGNMENT: usize = 1 << 21;

/// The buffer, from [`RAM_START`] on.
pub struct Memory {
    allocation: *mut u8,
    layout: Layout,
    start: usize,
    size: usize,
    /// One bit for each page; set if the page may hold anything but zeros.
    written: Vec<u64>,
}

impl Memory {
    /// Returns `size` bytes of zeros. The host touches its pages only when they are used, so a large size costs
    /// nothing.
    pub fn new(size: usize) -> Memory {
        #[cfg(miri)]
        raise_addresses();
        // The allocator returns untouched pages only for small alignments, so the code aligns the buffer itself.
        let layout = Layout::from_size_align(size + ALIGNMENT, 16).expect("size fits the address space");
        // SAFETY: the layout's size is not zero.
        let allocation = unsafe { alloc_zeroed(layout) };
        if allocation.is_null() {
            handle_alloc_error(layout);
        }
        let start = allocation.expose_provenance().next_multiple_of(ALIGNMENT);
        let written = vec![0; size.div_ceil(PAGE_SIZE).div_ceil(64)];
        Memory { allocation, layout, start, size, written }
    }

    /// Returns the kernel virtual address of physical address 0.
    pub fn base(&self) -> usize {
        self.start.wrapping_sub(RAM_START as usize)
    }

    /// Returns the size of RAM in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns true if the kernel virtual addresses `address..address + length` are RAM.
    pub fn contains(&self, address: usize, length: usize) -> bool {
        address >= self.start && length <= self.size && address - self.start <= self.size - length
    }

    /// Returns the word at a physical address.
    pub fn read(&self, physical: u64) -> u64 {
        let address = self.base().wrapping_add(physical as usize);
        assert!(self.contains(address, 8) && address.is_multiple_of(8), "no RAM at {physical:#x}");
        let pointer: *const u64 = std::ptr::with_exposed_provenance(address);
        // SAFETY: the address lies in the buffer and is aligned (asserted).
        unsafe { pointer.read_volatile() }
    }

    /// Writes the word at a physical address.
    pub fn write(&mut self, physical: u64, word: u64) {
        let address = self.base().wrapping_add(physical as usize);
        assert!(self.contains(address, 8) && address.is_multiple_of(8), "no RAM at {physical:#x}");
        self.mark(address, 8);
        let pointer: *mut u64 = std::ptr::with_exposed_provenance_mut(address);
        // SAFETY: as in `read`; a mutable borrow of the memory implies the kernel's token, or that no kernel runs.
        unsafe { pointer.write_volatile(word) }
    }

    /// Fills `length` bytes at a physical address with words; `word` returns the word at an offset in bytes.
    pub fn fill(&mut self, physical: u64, length: usize, word: impl Fn(u64) -> u64) {
        let address = self.base().wrapping_add(physical as usize);
        assert!(address.is_multiple_of(8) && length.is_multiple_of(8), "no words: {physical:#x} + {length:#x}");
        self.mark(address, length);
        let pointer: *mut u64 = std::ptr::with_exposed_provenance_mut(address);
        // SAFETY: the range lies in the buffer (asserted by `mark`) and is aligned (asserted). As in `write`, the
        // borrow implies that no kernel accesses it meanwhile.
        let words = unsafe { std::slice::from_raw_parts_mut(pointer, length / 8) };
        words.iter_mut().zip((0..).step_by(8)).for_each(|(place, offset)| *place = word(offset));
    }

    /// Fills part of the buffer with zeros.
    pub fn zero(&mut self, address: usize, length: usize) {
        assert!(self.contains(address, length), "zeroing outside of RAM: {address:#x} + {length:#x}");
        self.mark(address, length);
        let pointer: *mut u8 = std::ptr::with_exposed_provenance_mut(address);
        // SAFETY: the range lies in the buffer (asserted).
        unsafe { pointer.write_bytes(0, length) }
    }

    /// Marks the pages of a range as possibly written.
    pub fn mark(&mut self, address: usize, length: usize) {
        assert!(self.contains(address, length), "no RAM at {address:#x}");
        let offset = address - self.start;
        for page in offset / PAGE_SIZE..(offset + length).div_ceil(PAGE_SIZE) {
            self.written[page / 64] |= 1 << (page % 64);
        }
    }

    /// Marks the pages in the first `length` bytes that hold anything but zeros.
    pub fn mark_found(&mut self, length: usize) {
        for page in (self.start..self.start + length).step_by(PAGE_SIZE) {
            if !self.is_zero(page) {
                self.mark(page, PAGE_SIZE);
            }
        }
    }

    /// Returns true if a page holds nothing but zeros.
    pub fn is_zero(&self, page: usize) -> bool {
        let physical = (page - self.base()) as u64;
        (physical..physical + PAGE_SIZE as u64).step_by(8).all(|address| self.read(address) == 0)
    }

    /// Unmarks those pages of a range that hold nothing but zeros: code that writes there marks them again.
    pub fn unmark_zeros(&mut self, address: usize, length: usize) {
        for page in (address..address + length).step_by(PAGE_SIZE) {
            if self.contains(page, PAGE_SIZE) && self.is_zero(page) {
                self.unmark(page);
            }
        }
    }

    fn unmark(&mut self, page: usize) {
        let number = (page - self.start) / PAGE_SIZE;
        self.written[number / 64] &= !(1 << (number % 64));
    }

    /// Returns the kernel virtual addresses of the pages that may hold anything but zeros, in order.
    pub fn written(&self) -> Vec<usize> {
        let mut pages = Vec::new();
        for (i, word) in self.written.iter().enumerate() {
            let mut rest = *word;
            while rest != 0 {
                pages.push(self.start + (i * 64 + rest.trailing_zeros() as usize) * PAGE_SIZE);
                rest &= rest - 1;
            }
        }
        pages
    }

    /// Fills a page with zeros and unmarks it.
    pub fn clear(&mut self, page: usize) {
        self.zero(page, PAGE_SIZE);
        self.unmark(page);
    }
}

/// Leaks an allocation as large as physical addresses are high, once. The kernel expects that RAM has higher virtual
/// addresses than physical ones; Miri gives out addresses from the first on.
#[cfg(miri)]
fn raise_addresses() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| std::mem::forget(Vec::<u8>::with_capacity(RAM_START as usize)));
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, freed once.
        unsafe { dealloc(self.allocation, self.layout) }
    }
}
