//! Number of slots that the processes of each family have together, for blocks and for objects in slabs.
//!
//! Slots have fair-share quotas per family, as resources of other servers do ([`tench_quota`]): a program gets no more
//! of them by starting others, and none by requesting both kinds. There is an entry for each possible family, so that
//! counting needs no allocation and no search.

use alloc::boxed::Box;
use alloc::vec;

use tench_abi::power::{FAMILIES, family_number};

use crate::accounts::Account;

/// Size of the table in bytes.
pub const SIZE: usize = FAMILIES as usize * size_of::<u16>();

/// Number of slots by family. Families are those of one core.
pub struct Families(Box<[u16]>);

impl Default for Families {
    fn default() -> Families {
        Families(vec![0; FAMILIES as usize].into_boxed_slice())
    }
}

impl Families {
    /// Assigns an account to its process's family: its slots count for that from now on. An account stays in the first
    /// family that it was assigned to.
    pub fn join(&mut self, account: &mut Account, family: u64) {
        if account.family == 0 {
            account.family = family_number(family) as u16;
            self.add(account, account.slots());
        }
    }

    /// Adds to the slots of an account.
    pub fn add(&mut self, account: &Account, slots: u64) {
        self.change(account, |of_family| of_family + slots as u16);
    }

    /// Subtracts from the slots of an account.
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

    /// Returns how many slots count for an account in a family: those of the whole family, or, if it has none, its own.
    pub fn share(&self, account: Option<&Account>, family: u64) -> u64 {
        let (known, own) = account.map_or((0, 0), |account| (account.family, account.slots()));
        let family = if known == 0 { family_number(family) as usize } else { known.into() };
        let of_family = self.0.get(family).filter(|_| family != 0).map_or(0, |slots| u64::from(*slots));
        // The account's own slots are included if it is known to be of that family.
        if known == 0 { of_family + own } else { of_family }
    }

    /// Panics if a family's slots differ from the sum over its accounts.
    pub fn check_invariants<'a>(&self, accounts: impl Iterator<Item = &'a Account>) {
        let mut counted = vec![0; self.0.len()];
        accounts.for_each(|account| counted[usize::from(account.family)] += account.slots() as u16);
        counted[0] = 0;
        assert_eq!(*self.0, *counted, "a family has the slots of its accounts");
    }
}
