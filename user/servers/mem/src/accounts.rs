//! Who has how much: accounts in order of their numbers.
//!
//! The accounts lie sorted in one array: found by halving, and a process that is new has a higher number than all
//! before it, so its account is opened at the end.

use crate::blocks::Head;
use tench_mem_client::protocol::NO_QUOTA;

/// What a client has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its number: the client's badge.
    pub number: u64,
    /// Bytes of its blocks.
    pub used: u64,
    /// Bytes of its objects in slabs. Their memory is on the server's own account.
    pub objects: u64,
    /// Bytes that may be in use, in blocks and objects together.
    pub quota: u64,
    /// Blocks in use.
    pub blocks: u64,
    /// The blocks.
    pub head: Head,
}

impl Account {
    /// A place in the array that no account has.
    pub const EMPTY: Account = Account::new(0);

    /// An account without blocks and without limit.
    pub const fn new(number: u64) -> Account {
        Account { number, used: 0, objects: 0, quota: NO_QUOTA, blocks: 0, head: Head::EMPTY }
    }
}

impl Account {
    /// Whether it may have so many bytes more.
    pub fn allows(&self, bytes: u64) -> bool {
        let used = self.used.saturating_add(self.objects);
        used.checked_add(bytes).is_some_and(|used| used <= self.quota)
    }

    /// Whether nothing is on it.
    pub const fn is_empty(&self) -> bool {
        self.blocks == 0 && self.objects == 0
    }
}

/// The accounts.
pub struct Accounts<S> {
    storage: S,
    count: usize,
    /// Where the account is, perhaps, that was opened last: a request looks for the same one several times.
    recent: usize,
}

impl<S: AsRef<[Account]> + AsMut<[Account]>> Accounts<S> {
    /// No accounts.
    pub const fn new(storage: S) -> Accounts<S> {
        Accounts { storage, count: 0, recent: 0 }
    }

    /// The storage, to let it grow.
    pub const fn storage(&mut self) -> &mut S {
        &mut self.storage
    }

    /// Accounts that are open.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether none is open.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Accounts that can still be opened.
    pub fn room(&self) -> usize {
        self.storage.as_ref().len() - self.count
    }

    /// The accounts in order of their numbers.
    pub fn all(&self) -> &[Account] {
        &self.storage.as_ref()[..self.count]
    }

    fn place(&self, number: u64) -> Result<usize, usize> {
        let all = self.all();
        if all.get(self.recent).is_some_and(|account| account.number == number) {
            return Ok(self.recent);
        }
        all.binary_search_by_key(&number, |account| account.number)
    }

    /// An account that is open.
    pub fn get(&self, number: u64) -> Option<&Account> {
        self.place(number).ok().map(|place| &self.all()[place])
    }

    /// The same, to change it.
    pub fn get_mut(&mut self, number: u64) -> Option<&mut Account> {
        let place = self.place(number).ok()?;
        self.storage.as_mut().get_mut(place)
    }

    /// An account, opened if need be; `None` if there is no room for it.
    pub fn open(&mut self, number: u64) -> Option<&mut Account> {
        let place = match self.place(number) {
            Ok(place) => place,
            Err(place) => {
                let storage = self.storage.as_mut();
                if self.count == storage.len() {
                    return None;
                }
                storage.copy_within(place..self.count, place + 1);
                storage[place] = Account::new(number);
                self.count += 1;
                place
            }
        };
        self.recent = place;
        self.storage.as_mut().get_mut(place)
    }

    /// Forgets an account if nothing is said in it: it has neither blocks nor objects, and no limit.
    pub fn close(&mut self, number: u64) {
        if self.get(number).is_some_and(|account| account.is_empty() && account.quota == NO_QUOTA) {
            self.remove(number);
        }
    }

    /// Forgets an account, on which nothing is.
    pub fn remove(&mut self, number: u64) {
        if let Ok(place) = self.place(number) {
            self.storage.as_mut().copy_within(place + 1..self.count, place);
            self.count -= 1;
        }
    }

    /// The account with the lowest number above `after`.
    pub fn next(&self, after: u64) -> Option<&Account> {
        let place = self.place(after.checked_add(1)?).unwrap_or_else(|place| place);
        self.all().get(place)
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
        assert_eq!((accounts.room(), accounts.get(7)), (1, None));
    }
}
