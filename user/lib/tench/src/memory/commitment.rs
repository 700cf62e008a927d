//! Commitments: whether the heap may have more addresses.
//!
//! The heap's memory comes on demand, so the heap could have more addresses than there is memory, and the process would
//! end when it touches them. But a failing allocation should be reported: `malloc` returns null. So each region of the
//! heap is a commitment: the heap gets a further one only if the memory server could give, now, all memory that the
//! regions together still lack. This is checked when the heap grows, but not reserved, so another process can be faster
//! where no quota protects this one; and memory that the process itself holds free is not counted, so the check can
//! fail early. Memory that is meant to be larger than the memory there is, and touched here and there, is
//! [`Anonymous`](super::Anonymous).

use tench_abi::memory::PAGE_SIZE;
use tench_mem_interface::Mem;

use super::manager::LAZY_SIZE;
use super::with_paging;
use crate::process;

/// Number of bytes on demand for which one byte of page tables and metadata is counted.
const SHARE: u64 = 32;
/// Bytes counted for partly used blocks of memory.
const BLOCKS: u64 = 128 * 1024;

/// Returns the memory in bytes that memory on demand can take.
const fn need(bytes: u64) -> u64 {
    bytes.saturating_add(bytes / SHARE).saturating_add(BLOCKS)
}

/// Returns whether there is memory for `more` bytes besides the heap's regions (first address and size of each).
pub fn is_possible(more: u64, regions: impl Iterator<Item = (usize, usize)> + Clone) -> bool {
    let on_demand = || regions.clone().filter(|(_, size)| *size as u64 >= LAZY_SIZE);
    let committed: u64 = on_demand().map(|(_, size)| size as u64).sum();
    if committed == 0 && more < LAZY_SIZE {
        // Nothing is committed; the memory is populated now or not at all.
        return true;
    }
    let kept = || on_demand().map(|(start, size)| found(start, size)).sum();
    !super::comes_on_demand() || is_there(committed, more, kept)
}

/// Returns whether there is memory for `more` bytes and for what is committed, less what is populated already. Separate
/// from the function above, so that growing a small heap does not need this one's stack.
#[inline(never)]
fn is_there(committed: u64, more: u64, kept: impl FnOnce() -> u64) -> bool {
    let server = Mem::STANDARD;
    let (Ok(account), Ok(totals)) = (server.next_account(process::id() - 1), server.totals()) else {
        // Then the memory server will not give memory either.
        return true;
    };
    let available = account.quota.saturating_sub(account.used).min(totals.free);
    if need(committed.saturating_add(more)) <= available {
        return true;
    }
    // Only now is it worth counting how much of it is populated already.
    need((committed - kept()).saturating_add(more)) <= available
}

/// Returns the number of populated bytes of a region. The manager is locked for this region alone.
fn found(start: usize, size: usize) -> u64 {
    with_paging(|paging, _| {
        let pages = (start..start + size).step_by(PAGE_SIZE);
        pages.filter(|page| paging.shown(*page as u64).is_some()).count() as u64 * PAGE_SIZE as u64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_regions_are_not_committed() {
        let small = [(0x1000, 32 << 10), (0x10_0000, 64 << 10)];
        assert!(is_possible(LAZY_SIZE - 4096, small.into_iter()));
    }

    #[test]
    fn tables_and_blocks_are_counted() {
        assert_eq!(need(0), BLOCKS);
        assert_eq!(need(64 << 20), (66 << 20) + BLOCKS);
        assert_eq!(need(u64::MAX), u64::MAX);
    }
}
