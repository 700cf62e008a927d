//! The heap: `alloc` for Rust programs and `malloc` for C programs.
//!
//! ```text
//!   region 0             region 1              region 2, for one large allocation
//!   ├ bins ┤▒▒│  │▒│  ┤  ├▒▒│      │▒│    ┤    ├▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒┤
//!    live 2               live 2                live 1
//! ```
//! The allocator is talc (boundary tags, bins by size). It manages regions of addresses. Each new region doubles the
//! heap, so that few requests go to the system; a large allocation gets a region of its own. A region is made only if
//! there is memory for all of it (`memory::commitment`), so that a request for too much fails at once. Each region
//! counts its allocations. A region without allocations is returned with its memory, unless it is small and the only
//! such region: a program that allocates and frees in turn does not call the system each time. The first region stays,
//! because the bins lie in it.
//!
//! A program that must not run out of memory keeps a reserve ([`reserve`]): then its allocations in the middle of an
//! operation succeed, and a region is not returned if the reserve lies in it.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::NonNull;

use talc::{OomHandler, Span, Talc};
use tench_abi::memory::PAGE_SIZE;

use crate::memory::{give_heap, take_heap};
use crate::sync::Mutex;

/// Size of the first region in bytes.
const FIRST: usize = 32 * 1024;
/// Heap size in bytes from which on a new region enlarges the heap by a quarter instead of doubling it.
const USUAL: usize = 4 << 20;
/// Size in bytes from which on an allocation gets a region of its own.
const LARGE: usize = 1 << 20;
/// Memory in bytes that the allocator needs for its bins and tags.
const OVERHEAD: usize = 2048;
/// Alignment of the reserve in bytes.
const ALIGNMENT: usize = 16;
/// Maximum number of regions.
const MAX_REGIONS: usize = 128;

/// A region of the heap.
#[derive(Clone, Copy)]
struct Region {
    start: usize,
    size: usize,
    /// The region as the allocator knows it.
    span: Span,
    /// Number of allocations in it.
    live: usize,
}

/// The regions, in ascending order of their addresses.
struct Regions {
    regions: [Region; MAX_REGIONS],
    count: usize,
    /// Size of all regions in bytes.
    total: usize,
    /// Address of the region with the bins.
    first: usize,
    /// Number of regions without allocations.
    spare: usize,
    /// Size of the reserve in bytes.
    reserve: usize,
}

// SAFETY: the spans only describe the memory that the allocator manages; like the allocator, they are not bound to a
// thread.
unsafe impl Send for Regions {}

impl Regions {
    const fn new() -> Regions {
        let none = Region { start: 0, size: 0, span: Span::empty(), live: 0 };
        Regions { regions: [none; MAX_REGIONS], count: 0, total: 0, first: 0, spare: 0, reserve: 0 }
    }

    /// Returns the bytes by which the heap should grow for an allocation, and the least that would suffice.
    fn growth(&self, need: usize) -> Option<(usize, usize)> {
        let least = need.checked_add(OVERHEAD)?.checked_next_multiple_of(PAGE_SIZE)?;
        // When there are many regions, no allocation gets one of its own.
        if need >= LARGE && self.count < MAX_REGIONS / 2 {
            // The first region stays, so it is another one. The allocator asks again for what does not fit into it.
            return Some(if self.count == 0 { (FIRST, PAGE_SIZE) } else { (least, least) });
        }
        let usual = self.total.clamp(FIRST, USUAL.max(self.total / 4));
        Some((least.max(usual.next_multiple_of(PAGE_SIZE)), least))
    }

    /// Takes `wanted` bytes of addresses, or, if there is not enough memory, fewer, but at least `least`.
    fn take(&self, wanted: usize, least: usize) -> Option<(usize, usize)> {
        let regions = self.regions[..self.count].iter().map(|region| (region.start, region.size));
        let mut bytes = wanted;
        loop {
            match take_heap(bytes, regions.clone()) {
                Ok(taken) => return Some(taken),
                Err(_) if bytes == least => return None,
                Err(_) => bytes = (bytes / 2).next_multiple_of(PAGE_SIZE).max(least),
            }
        }
    }

    /// Returns the index of the region that contains an address.
    fn find(&self, address: usize) -> Option<usize> {
        let regions = &self.regions[..self.count];
        let index = regions.partition_point(|region| region.start <= address).checked_sub(1)?;
        (address - regions[index].start < regions[index].size).then_some(index)
    }

    /// Adds a region without allocations.
    fn add(&mut self, start: usize, size: usize, span: Span) {
        let index = self.regions[..self.count].partition_point(|region| region.start < start);
        self.regions.copy_within(index..self.count, index + 1);
        self.regions[index] = Region { start, size, span, live: 0 };
        if self.count == 0 {
            self.first = start;
        }
        self.count += 1;
        self.total += size;
        self.spare += 1;
    }

    /// Removes a region without allocations.
    fn remove(&mut self, index: usize) -> Region {
        let region = self.regions[index];
        self.regions.copy_within(index + 1..self.count, index);
        self.count -= 1;
        self.total -= region.size;
        self.spare -= 1;
        region
    }

    /// Counts an allocation.
    fn allocated(&mut self, address: usize) {
        if let Some(index) = self.find(address) {
            self.regions[index].live += 1;
            if self.regions[index].live == 1 {
                self.spare -= 1;
            }
        }
    }

    /// Counts a freed allocation. Returns the index of a region that is to be returned, if any.
    fn freed(&mut self, address: usize) -> Option<usize> {
        let index = self.find(address)?;
        let region = &mut self.regions[index];
        region.live -= 1;
        if region.live > 0 {
            return None;
        }
        self.spare += 1;
        let is_enough = self.spare > 1 || region.size > USUAL;
        (is_enough && region.start != self.first && self.has_reserve_besides(index)).then_some(index)
    }

    /// Returns whether the reserve fits into another region without allocations.
    fn has_reserve_besides(&self, index: usize) -> bool {
        let others = || self.regions[..self.count].iter().enumerate().filter(|(other, _)| *other != index);
        self.reserve == 0 || others().any(|(_, other)| other.live == 0 && other.size >= self.reserve + OVERHEAD)
    }
}

impl OomHandler for Regions {
    fn handle_oom(talc: &mut Talc<Self>, layout: Layout) -> Result<(), ()> {
        if talc.oom_handler.count == MAX_REGIONS {
            return Err(());
        }
        let need = layout.size().checked_add(layout.align()).ok_or(())?;
        let (wanted, least) = talc.oom_handler.growth(need).ok_or(())?;
        let (start, size) = talc.oom_handler.take(wanted, least).ok_or(())?;
        let base = core::ptr::with_exposed_provenance_mut::<u8>(start);
        // SAFETY: the memory is new, readable and writable, and nothing else refers to it.
        let span = unsafe { talc.claim(Span::new(base, base.wrapping_add(size))) }?;
        talc.oom_handler.add(start, size, span);
        Ok(())
    }
}

/// The allocator behind a lock.
struct Heap {
    talc: Mutex<Talc<Regions>>,
}

// SAFETY: talc returns distinct, aligned, large enough memory until it is freed, and the lock lets one thread at a time
// use the allocator.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let mut talc = self.talc.lock();
        // SAFETY: the caller guarantees that the size is not zero.
        let Ok(pointer) = (unsafe { talc.malloc(layout) }) else { return core::ptr::null_mut() };
        talc.oom_handler.allocated(pointer.addr().get());
        pointer.as_ptr()
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let Some(pointer) = NonNull::new(pointer) else { return };
        let mut talc = self.talc.lock();
        // SAFETY: the caller guarantees that this allocator returned the memory, with this layout.
        unsafe { talc.free(pointer, layout) };
        if let Some(region) = talc.oom_handler.freed(pointer.addr().get()) {
            let region = talc.oom_handler.remove(region);
            // SAFETY: the span is the one that the allocator returned for this region, which has no allocations.
            unsafe { talc.truncate(region.span, Span::empty()) };
            give_heap(region.start, region.size);
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let Some(old) = NonNull::new(pointer) else { return pointer };
        if new_size <= layout.size() {
            // SAFETY: as in `dealloc`; the new size is not zero.
            unsafe { self.talc.lock().shrink(old, layout, new_size) };
            return pointer;
        }
        // SAFETY: as in `dealloc`; the new size is larger.
        if unsafe { self.talc.lock().grow_in_place(old, layout, new_size) }.is_ok() {
            return pointer;
        }
        // SAFETY: the caller guarantees that the new size is not zero and fits the alignment.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        // SAFETY: as above.
        let new = unsafe { self.alloc(new_layout) };
        if !new.is_null() {
            // SAFETY: both are allocated, do not overlap, and are at least as large as the old allocation.
            unsafe { core::ptr::copy_nonoverlapping(pointer, new, layout.size()) };
            // SAFETY: as in `dealloc`.
            unsafe { self.dealloc(pointer, layout) };
        }
        new
    }
}

/// Reserves heap memory so that `bytes` bytes can be allocated in small parts, until another reserve is set. Returns
/// whether there was enough memory; otherwise an earlier reserve stays.
pub fn reserve(bytes: usize) -> bool {
    let Ok(layout) = Layout::from_size_align(bytes.max(1), ALIGNMENT) else { return false };
    let mut talc = HEAP_ALLOCATOR.talc.lock();
    // SAFETY: the size is not zero.
    let Ok(pointer) = (unsafe { talc.malloc(layout) }) else { return false };
    talc.oom_handler.reserve = bytes;
    // SAFETY: the memory came from `malloc` just above, with this layout. Its region is not returned, whatever else is
    // in it.
    unsafe { talc.free(pointer, layout) };
    true
}

#[cfg_attr(target_os = "none", global_allocator)]
#[cfg_attr(not(target_os = "none"), allow(dead_code))]
static HEAP_ALLOCATOR: Heap = Heap { talc: Mutex::new(Talc::new(Regions::new())) };

#[cfg(test)]
mod tests {
    use super::*;

    /// Grows by `need`, and returns the number of bytes added.
    fn grow(regions: &mut Regions, need: usize) -> usize {
        let (wanted, _) = regions.growth(need).unwrap();
        regions.add((regions.count + 1) << 32, wanted, Span::empty());
        wanted
    }

    #[test]
    fn regions_double_the_heap_up_to_the_usual_size() {
        let mut regions = Regions::new();
        assert_eq!(regions.growth(100), Some((FIRST, PAGE_SIZE)));
        let sizes: Vec<usize> = (0..11).map(|_| grow(&mut regions, 8) >> 10).collect();
        assert_eq!(sizes, [32, 32, 64, 128, 256, 512, 1024, 2048, 4096, 4096, 4096]);
        while regions.count < 100 {
            grow(&mut regions, 8);
        }
        assert!(regions.total > 100 << 30, "a quarter each time: no program runs out of regions");
    }

    #[test]
    fn a_thousand_small_allocations_grow_the_heap_once() {
        let (wanted, _) = Regions::new().growth(8).unwrap();
        // A C program's four bytes have a header, and take 48.
        assert!(wanted >= OVERHEAD + 512 * 48);
    }

    #[test]
    fn large_allocations_get_regions_of_their_own() {
        let mut regions = Regions::new();
        assert_eq!(grow(&mut regions, LARGE), FIRST, "the first region stays");
        let size = LARGE + PAGE_SIZE;
        assert_eq!(regions.growth(LARGE), Some((size, size)));
        assert_eq!(regions.growth(usize::MAX), None);
        grow(&mut regions, 256 << 20);
        assert_eq!(regions.growth(100), Some((64 << 20 | 0x3000, PAGE_SIZE)));
        while regions.count < MAX_REGIONS / 2 {
            grow(&mut regions, LARGE);
        }
        assert!(regions.growth(LARGE).unwrap().0 > 64 << 20, "not all of them: there would be too many");
    }

    #[test]
    fn a_region_is_freed_with_its_last_allocation_if_another_is_spare() {
        let mut regions = Regions::new();
        for start in [0x1000_0000, 0x3000_0000, 0x2000_0000] {
            regions.add(start, FIRST, Span::empty());
        }
        assert_eq!((regions.find(0x2000_0000), regions.find(0x2000_8000), regions.find(5)), (Some(1), None, None));
        for address in [0x1000_0000, 0x2000_0000, 0x2000_0010, 0x3000_7fff] {
            regions.allocated(address);
        }
        assert_eq!(regions.spare, 0);
        assert_eq!(regions.freed(0x2000_0000), None);
        assert_eq!(regions.freed(0x2000_0010), None, "one stays");
        assert_eq!(regions.freed(0x3000_7fff), Some(2));
        assert_eq!(regions.remove(2).start, 0x3000_0000);
        assert_eq!(regions.freed(0x1000_0000), None, "the bins stay");
        assert_eq!((regions.count, regions.total, regions.spare), (2, 2 * FIRST, 2));
        // A large region does not stay.
        regions.add(0x5000_0000, USUAL + PAGE_SIZE, Span::empty());
        regions.allocated(0x5000_0000);
        assert_eq!(regions.freed(0x5000_0000), Some(2));
    }

    #[test]
    fn a_region_that_holds_the_reserve_stays() {
        let mut regions = Regions::new();
        regions.reserve = FIRST / 2;
        for start in [0x1000_0000, 0x2000_0000, 0x3000_0000] {
            regions.add(start, FIRST, Span::empty());
            regions.allocated(start);
        }
        assert_eq!(regions.freed(0x2000_0000), None, "the reserve may lie in it");
        assert_eq!(regions.freed(0x3000_0000), Some(2), "the reserve fits into the other one");
        regions.remove(2);
        regions.reserve = FIRST;
        regions.add(0x4000_0000, USUAL + PAGE_SIZE, Span::empty());
        regions.allocated(0x4000_0000);
        assert_eq!(regions.freed(0x4000_0000), None, "the other one is too small");
    }

    #[test]
    fn without_memory_there_is_none() {
        assert!(!reserve(1));
        // SAFETY: the layout's size is not zero.
        let pointer = unsafe { HEAP_ALLOCATOR.alloc(Layout::new::<u64>()) };
        assert!(pointer.is_null());
    }
}
