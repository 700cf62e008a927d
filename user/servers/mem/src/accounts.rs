//! Accounts: how much each client has, in order of their numbers.
//!
//! The accounts are sorted in one array and found by binary search. A new process has a higher number than all before
//! it, so its account is opened at the end.
//!
//! A limit counts for a process and all its descendants together. An account names the next account above it that has a
//! limit, and that one contains the sum of all below: so an allocation is checked against each limit above, and only
//! against those.
//!
//! ```text
//!   shell ◄─────── (no limit: nobody names it)
//!   a  quota 4 M, used 1 M, below 3 M   ◄──┬── b  used 1 M               b and c may have 0 more: 4 M are used in all
//!                                          └── c  quota 3 M, used 2 M ◄──── d  used 0
//! ```
//! The account of an ended process stays as long as others name it, with its limit: nobody gets more memory through a
//! parent's end.

use crate::blocks::Head;
use tench_mem_interface::protocol::{Error, NO_QUOTA};

/// Maximum number of limits above an account.
pub const MAX_DEPTH: u16 = 32;

/// A client's account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// Number of the account: the client's badge.
    pub number: u64,
    /// Bytes of its blocks.
    pub used: u64,
    /// Bytes of its objects in slabs. Their memory is on the server's own account.
    pub objects: u64,
    /// Maximum number of bytes in blocks and objects together.
    pub quota: u64,
    /// Number of its blocks.
    pub blocks: u64,
    /// Number of slots of its objects in slabs.
    pub object_slots: u16,
    /// Number of the process's family, once known; otherwise 0.
    pub family: u16,
    /// List of its blocks.
    pub head: Head,
    /// The next account above with a limit, which applies to this one, too.
    pub above: Option<u64>,
    /// Number of limits above.
    pub depth: u16,
    /// Number of accounts that name this one in `above`.
    pub members: u64,
    /// Bytes of those accounts, and of those below them.
    pub below: u64,
    /// Set when the process has ended.
    pub has_ended: bool,
}

impl Account {
    /// An unused entry of the array.
    pub const EMPTY: Account = Account::new(0);

    /// Returns an account without blocks and without limit.
    pub const fn new(number: u64) -> Account {
        Account {
            number,
            used: 0,
            objects: 0,
            quota: NO_QUOTA,
            blocks: 0,
            object_slots: 0,
            family: 0,
            head: Head::EMPTY,
            above: None,
            depth: 0,
            members: 0,
            below: 0,
            has_ended: false,
        }
    }
}

impl Account {
    /// Returns the bytes that the client itself has.
    pub const fn own(&self) -> u64 {
        self.used.saturating_add(self.objects)
    }

    /// Returns how many bytes more its own limit leaves for it and all below.
    pub const fn left(&self) -> u64 {
        if self.quota == NO_QUOTA {
            return NO_QUOTA;
        }
        self.quota.saturating_sub(self.own()).saturating_sub(self.below)
    }

    /// Returns how many slots it has, for blocks and for objects.
    pub const fn slots(&self) -> u64 {
        self.blocks + self.object_slots as u64
    }

    /// Returns whether nothing is charged to it.
    pub const fn is_empty(&self) -> bool {
        self.blocks == 0 && self.objects == 0
    }
}

/// The accounts.
pub struct Accounts<S> {
    storage: S,
    count: usize,
    /// Index of the last account used, as a hint: a request looks the same one up several times.
    recent: usize,
}

impl<S: AsRef<[Account]> + AsMut<[Account]>> Accounts<S> {
    /// Returns a table without accounts.
    pub const fn new(storage: S) -> Accounts<S> {
        Accounts { storage, count: 0, recent: 0 }
    }

    /// Returns the storage, to let it grow.
    pub const fn storage(&mut self) -> &mut S {
        &mut self.storage
    }

    /// Returns the number of open accounts.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Returns whether none is open.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns how many accounts can still be opened.
    pub fn free_entries(&self) -> usize {
        self.storage.as_ref().len() - self.count
    }

    /// Returns the accounts in order of their numbers.
    pub fn all(&self) -> &[Account] {
        &self.storage.as_ref()[..self.count]
    }

    fn search(&self, number: u64) -> Result<usize, usize> {
        let all = self.all();
        if all.get(self.recent).is_some_and(|account| account.number == number) {
            return Ok(self.recent);
        }
        all.binary_search_by_key(&number, |account| account.number)
    }

    /// Returns an open account.
    pub fn get(&self, number: u64) -> Option<&Account> {
        self.search(number).ok().map(|index| &self.all()[index])
    }

    /// Returns an open account, to change it.
    pub fn get_mut(&mut self, number: u64) -> Option<&mut Account> {
        let index = self.search(number).ok()?;
        self.storage.as_mut().get_mut(index)
    }

    /// Returns an account, opened if need be; `None` if there is no room for it.
    pub fn open(&mut self, number: u64) -> Option<&mut Account> {
        let index = match self.search(number) {
            Ok(index) => index,
            Err(index) => {
                let storage = self.storage.as_mut();
                if self.count == storage.len() {
                    return None;
                }
                storage.copy_within(index..self.count, index + 1);
                storage[index] = Account::new(number);
                self.count += 1;
                index
            }
        };
        self.recent = index;
        self.storage.as_mut().get_mut(index)
    }

    /// Opens the account of a process below another's, with a limit for it and all below it. A limit as high as the one
    /// above is none of its own. What is charged to the account already counts above from now on, whatever the limits.
    /// Fails with `TooManyBlocks` if there is no room, or with `TooDeep`.
    pub fn open_below(&mut self, number: u64, parent: u64, quota: u64) -> Result<(), Error> {
        let parent = self.get(parent).filter(|parent| parent.number != number);
        let above = parent.and_then(|parent| if parent.quota == NO_QUOTA { parent.above } else { Some(parent.number) });
        let next = above.and_then(|above| self.get(above));
        let (depth, limit) = next.map_or((0, NO_QUOTA), |above| (above.depth + 1, above.quota));
        // Below the last limit there is room for accounts without a limit of their own.
        if depth > MAX_DEPTH || depth == MAX_DEPTH && quota < limit {
            return Err(Error::TooDeep);
        }
        let account = self.open(number).ok_or(Error::TooManyBlocks)?;
        if account.above.is_none() && account.members == 0 {
            (account.above, account.depth) = (above, depth);
            let own = account.own();
            if let Some(above) = above.and_then(|above| self.get_mut(above)) {
                above.members += 1;
            }
            self.for_each_above(number, |above| above.below += own);
        }
        if quota < limit {
            self.get_mut(number).into_iter().for_each(|account| account.quota = quota);
        }
        Ok(())
    }

    /// Calls `visit` with each account above one.
    fn for_each_above(&mut self, number: u64, mut visit: impl FnMut(&mut Account)) {
        let mut next = self.get(number).and_then(|account| account.above);
        while let Some(account) = next.and_then(|next| self.get_mut(next)) {
            visit(account);
            next = account.above;
        }
    }

    /// Returns how many bytes more an account may have: the minimum of what its limit leaves and each above it.
    pub fn left(&self, account: &Account) -> u64 {
        let (mut left, mut next) = (account.left(), account.above);
        while let Some(above) = next.and_then(|next| self.get(next)) {
            (left, next) = (left.min(above.left()), above.above);
        }
        left
    }

    /// Adds bytes charged to an account to the sums of those above it.
    pub fn grown(&mut self, number: u64, bytes: u64) {
        self.for_each_above(number, |above| above.below += bytes);
    }

    /// Subtracts bytes freed on an account from the sums of those above it.
    pub fn shrunk(&mut self, number: u64, bytes: u64) {
        self.for_each_above(number, |above| above.below = above.below.saturating_sub(bytes));
    }

    /// Removes an account that has neither blocks nor objects, no limit, and none above.
    pub fn close(&mut self, number: u64) {
        let says_nothing = |account: &Account| {
            account.is_empty() && account.quota == NO_QUOTA && account.above.is_none() && account.members == 0
        };
        if self.get(number).is_some_and(says_nothing) {
            self.forget(number);
        }
    }

    /// Removes the empty account of an ended process, as soon as no other account names it.
    pub fn remove(&mut self, number: u64) {
        let Some(account) = self.get_mut(number) else { return };
        account.has_ended = true;
        let mut next = number;
        let is_over = |account: &&Account| account.has_ended && account.members == 0 && account.is_empty();
        while let Some(account) = self.get(next).filter(is_over) {
            let above = account.above;
            self.forget(next);
            let Some(account) = above.and_then(|above| self.get_mut(above)) else { return };
            account.members -= 1;
            next = account.number;
        }
    }

    fn forget(&mut self, number: u64) {
        if let Ok(index) = self.search(number) {
            self.storage.as_mut().copy_within(index + 1..self.count, index);
            self.count -= 1;
        }
    }

    /// Returns the account with the lowest number above `after`.
    pub fn next(&self, after: u64) -> Option<&Account> {
        let index = self.search(after.checked_add(1)?).unwrap_or_else(|index| index);
        self.all().get(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_found_by_number() {
        let mut accounts = Accounts::new([Account::EMPTY; 4]);
        for number in [7, 3, 9, u64::MAX] {
            assert_eq!(accounts.open(number).map(|account| account.number), Some(number));
        }
        assert!(accounts.open(5).is_none(), "there is no room");
        assert_eq!(accounts.open(9).map(|account| account.number), Some(9));
        accounts.get_mut(3).unwrap().blocks = 1;
        for number in [3, 7, 8] {
            accounts.close(number);
        }
        for account in accounts.all() {
            assert_eq!(accounts.get(account.number), Some(account));
        }
        assert_eq!(accounts.all().iter().map(|account| account.number).collect::<std::vec::Vec<_>>(), [3, 9, u64::MAX]);
        assert_eq!(accounts.next(0).map(|account| account.number), Some(3));
        assert_eq!(accounts.next(3).map(|account| account.number), Some(9));
        assert!(accounts.next(u64::MAX).is_none());
        assert_eq!((accounts.free_entries(), accounts.get(7)), (1, None));
    }
}
