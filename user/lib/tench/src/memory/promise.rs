//! Whether the heap may have more addresses.
//!
//! Its memory comes on demand, so it could have addresses for more than there is, and the process would end when it
//! touches them. But whoever asks the heap expects to be told: `malloc` answers null. So each region of the heap is a
//! promise: the heap gets a further one only if the memory server could give, now, what all of them together still
//! lack. That is asked when the heap grows, and not reserved there, so another process can be faster where no quota
//! protects this one; and what the process holds ready itself is not counted, so that a refusal can come early. Memory
//! that is meant to be larger than what there is, and touched here and there, is [`Anonymous`](super::Anonymous).

use tench_abi::memory::PAGE_SIZE;
use tench_mem_client::Mem;

use super::manager::LAZY_SIZE;
use super::with_paging;
use crate::process;

/// Of so many bytes on demand, one is for page tables and books.
const SHARE: u64 = 32;
/// Bytes of blocks of memory that are in use in part.
const BLOCKS: u64 = 128 * 1024;

/// What memory on demand can take.
const fn need(bytes: u64) -> u64 {
    bytes.saturating_add(bytes / SHARE).saturating_add(BLOCKS)
}

/// Whether there is memory for `more` bytes besides the heap's regions (first address and bytes of each).
pub fn can_be_kept(more: u64, regions: impl Iterator<Item = (usize, usize)> + Clone) -> bool {
    let on_demand = || regions.clone().filter(|(_, size)| *size as u64 >= LAZY_SIZE);
    let promised: u64 = on_demand().map(|(_, size)| size as u64).sum();
    if promised == 0 && more < LAZY_SIZE {
        // Nothing is promised; the memory is found now or not at all.
        return true;
    }
    let kept = || on_demand().map(|(start, size)| found(start, size)).sum();
    !super::comes_on_demand() || is_there(promised, more, kept)
}

/// Whether there is memory for what is promised, less what is kept already, and more. Apart from the above, whose stack
/// every growth of a small heap would need otherwise.
#[inline(never)]
fn is_there(promised: u64, more: u64, kept: impl FnOnce() -> u64) -> bool {
    let server = Mem::STANDARD;
    let (Ok(account), Ok(totals)) = (server.next_account(process::id() - 1), server.totals()) else {
        // It will not give memory either.
        return true;
    };
    let available = account.quota.saturating_sub(account.used).min(totals.free);
    if need(promised.saturating_add(more)) <= available {
        return true;
    }
    // Only now it matters how much of them is there already.
    need((promised - kept()).saturating_add(more)) <= available
}

/// Bytes of a region that have been found. The manager is locked for this region alone.
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
    fn small_regions_are_no_promise() {
        let small = [(0x1000, 32 << 10), (0x10_0000, 64 << 10)];
        assert!(can_be_kept(LAZY_SIZE - 4096, small.into_iter()));
    }

    #[test]
    fn tables_and_blocks_are_counted() {
        assert_eq!(need(0), BLOCKS);
        assert_eq!(need(64 << 20), (66 << 20) + BLOCKS);
        assert_eq!(need(u64::MAX), u64::MAX);
    }
}
