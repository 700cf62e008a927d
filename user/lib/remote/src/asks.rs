//! Number of unconfirmed copies that the owner has sent on for each requesting core, by receiver.
//!
//! A core has no more requests under way than its table has entries. A core that exceeded that would fill the channels
//! of third cores.

use alloc::vec;
use alloc::vec::Vec;

use crate::error::Error;
use crate::object::Core;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Asks {
    cores: usize,
    /// The numbers, by requester and receiver.
    counts: Vec<u32>,
    limit: usize,
}

impl Asks {
    /// Returns an empty table. Each of `cores` may request `limit` copies at a time.
    pub fn new(cores: u8, limit: usize) -> Asks {
        let cores = cores as usize;
        Asks { cores, counts: vec![0; cores * cores], limit }
    }

    fn count(&mut self, requester: Core, to: Core) -> Option<&mut u32> {
        if to.index() < self.cores { self.counts.get_mut(requester.index() * self.cores + to.index()) } else { None }
    }

    pub fn check_capacity(&self, requester: Core) -> Result<(), Error> {
        let mut all = self.counts.iter().skip(requester.index() * self.cores).take(self.cores);
        let sum = all.try_fold(0_usize, |sum, &count| sum.checked_add(count as usize));
        if sum.is_some_and(|sum| sum < self.limit) { Ok(()) } else { Err(Error::TooManyRequests) }
    }

    /// Counts one more copy.
    pub fn add(&mut self, requester: Core, to: Core) {
        if let Some(count) = self.count(requester, to) {
            *count = count.saturating_add(1);
        }
    }

    /// Counts one copy less. Returns whether there was one.
    pub fn remove(&mut self, requester: Core, to: Core) -> bool {
        self.count(requester, to).is_some_and(|count| match count.checked_sub(1) {
            Some(less) => {
                *count = less;
                true
            }
            None => false,
        })
    }

    /// Forgets copies sent to `lost`, which will not be confirmed, and requests of `lost`, which will get no reply.
    pub fn forget(&mut self, lost: Core) {
        for other in 0..self.cores {
            for index in [other * self.cores + lost.index(), lost.index() * self.cores + other] {
                if let Some(count) = self.counts.get_mut(index) {
                    *count = 0;
                }
            }
        }
    }
}
