//! How many slots the processes of each family have together, for blocks and for objects in slabs.
//!
//! They are shared by family, as places are in other servers ([`tench_places`]): a program gets no more of them by
//! starting others, and none by asking for both. There is a number for each family that there can be, so that counting
//! needs no memory and no search.

use alloc::boxed::Box;
use alloc::vec;

use tench_abi::power::{FAMILIES, family_number};

use crate::accounts::Account;

/// Bytes of the table.
pub const SIZE: usize = FAMILIES as usize * size_of::<u16>();

/// Slots by the number of the family. Families are those of one core.
pub struct Families(Box<[u16]>);

impl Default for Families {
    fn default() -> Families {
        Families(vec![0; FAMILIES as usize].into_boxed_slice())
    }
}

impl Families {
    /// An account is that of a process of a family, from now on: its slots count for that. It stays in the first family
    /// that it was in.
    pub fn join(&mut self, account: &mut Account, family: u64) {
        if account.family == 0 {
            account.family = family_number(family) as u16;
            self.add(account, account.slots());
        }
    }

    /// An account has so many slots more.
    pub fn add(&mut self, account: &Account, slots: u64) {
        self.change(account, |of_family| of_family + slots as u16);
    }

    /// An account has so many slots less.
    pub fn remove(&mut self, account: &Account, slots: u64) {
        self.change(account, |of_family| of_family - slots as u16);
    }

    fn change(&mut self, account: &Account, change: impl FnOnce(u16) -> u16) {
        if account.family != 0
            && let Some(slots) = self.0.get_mut(usize::from(account.family))
        {
            *slots = change(*slots);
        }
    }

    /// Returns how many slots count for an account in a family: those of the whole family, or, if it is of none, its
    /// own.
    pub fn share(&self, account: Option<&Account>, family: u64) -> u64 {
        let (known, own) = account.map_or((0, 0), |account| (account.family, account.slots()));
        let family = if known == 0 { family_number(family) as usize } else { known.into() };
        let of_family = self.0.get(family).filter(|_| family != 0).map_or(0, |slots| u64::from(*slots));
        // Its own are among them if it is known to be of that family.
        if known == 0 { of_family + own } else { of_family }
    }

    /// Panics if some account's slots do not count for its family.
    pub fn check_invariants<'a>(&self, accounts: impl Iterator<Item = &'a Account>) {
        let mut counted = vec![0; self.0.len()];
        accounts.for_each(|account| counted[usize::from(account.family)] += account.slots() as u16);
        counted[0] = 0;
        assert_eq!(*self.0, *counted, "a family has the slots of its accounts");
    }
}
