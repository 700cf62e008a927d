//! Fair-share quota for entries that outlast the process that made them, such as files.
//!
//! Entries of [`Quota`](crate::Quota) are freed when their process ends. These stay. If they counted for nobody from
//! then on, a program could start one child after another, each of which takes half of the free entries and ends, until
//! none is free. So they count for the family, whichever of its processes live, by the same rule ([`allows`]). When the
//! last process of the family has ended, they belong to nobody.
//!
//! ```text
//! families   family ──▶ its entries, and a unique number      owner   family and unique number: the mark of each entry
//! ```
//! Family numbers are reused. The entries left by a family that has ended are not taken for those of the next with its
//! number, because that one has another unique number.
//!
//! A family of [guests](power::is_of_guests) ends when a program wants it to: the program starts a process on another
//! core and ends it, as often as it likes, and each time that was a family. The server does not know which program that
//! was, or whether it lives. So all guests together get what one family gets, and entries left by guests that have
//! ended count for the others. Of that share each family of guests gets what a family gets of the whole: a client of
//! such a family may take one more entry while its family has fewer than guests may have more in all. A client without
//! a known family belongs to one of them, [`COMMON`], which never ends.
//!
//! ```text
//! 1,024 entries   a family 512   all guests 512: the first 256, the second 128, …
//! ```

use alloc::collections::BTreeMap;

use tench_abi::power::{self, Client};

use crate::allows;

/// The family of clients without a known family. No process has it in its badge. It is one of guests.
pub const COMMON: u64 = power::family_of(0, power::GUESTS);

/// Owner of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    family: u64,
    since: u64,
}

/// The share of a family.
#[derive(Clone, Copy, Debug)]
struct Held {
    /// A unique number, which distinguishes its entries from those left by an earlier family with the same number.
    since: u64,
    count: usize,
}

/// Number of entries of each family.
#[derive(Clone, Debug)]
pub struct Lasting {
    limit: usize,
    taken: usize,
    /// Number of those that guests have, or have left.
    guests: usize,
    /// Families with entries.
    families: BTreeMap<u64, Held>,
    /// The next unique number.
    next: u64,
}

impl Lasting {
    /// Returns a quota of `limit` entries, all free.
    pub const fn new(limit: usize) -> Lasting {
        Lasting { limit, taken: 0, guests: 0, families: BTreeMap::new(), next: 0 }
    }

    /// Returns the number of entries.
    pub const fn limit(&self) -> usize {
        self.limit
    }

    /// Returns the number of entries in use, including those that belong to nobody.
    pub const fn taken(&self) -> usize {
        self.taken
    }

    /// Returns the number of entries that count for a family.
    pub fn held(&self, family: u64) -> usize {
        self.families.get(&family).map_or(0, |held| held.count)
    }

    /// Returns whether a client may take one more entry.
    pub fn may_take(&self, client: Client) -> bool {
        self.may_take_all(client, 1)
    }

    /// Returns whether a client may take `count` more entries, one after another. 0 is always possible.
    pub fn may_take_all(&self, client: Client, count: usize) -> bool {
        // Each is harder to get than the one before.
        let Some(before) = count.checked_sub(1) else { return true };
        let (own, taken) = (self.held(client.family) + before, self.taken + before);
        if power::is_of_guests(client.family) {
            // The guests' share is half of what others do not have.
            let part = self.limit.saturating_sub(self.taken - self.guests).div_ceil(2);
            return allows(own, self.guests + before, part);
        }
        allows(own, taken, self.limit)
    }

    /// Gives a client one more entry, whether it [may](Self::may_take) take it or not. Returns the entry's owner.
    pub fn take(&mut self, client: Client) -> Owner {
        let family = client.family;
        let held = self.families.entry(family).or_insert_with(|| {
            self.next += 1;
            Held { since: self.next, count: 0 }
        });
        held.count += 1;
        self.taken += 1;
        self.guests += usize::from(power::is_of_guests(family));
        Owner { family, since: held.since }
    }

    /// Frees an entry.
    pub fn give_back(&mut self, owner: Owner) {
        self.give_back_all(owner, 1);
    }

    /// Frees `count` entries of one owner.
    pub fn give_back_all(&mut self, owner: Owner, count: usize) {
        self.taken -= count;
        if power::is_of_guests(owner.family) {
            self.guests -= count;
        }
        if let Some(held) = self.families.get_mut(&owner.family)
            && held.since == owner.since
        {
            held.count -= count;
            if held.count == 0 {
                self.families.remove(&owner.family);
            }
        }
    }

    /// Ends a family after its last process has ended. Its entries stay in use and belong to nobody; those of a family
    /// of guests belong to all guests.
    pub fn family_ended(&mut self, family: u64) {
        if family != COMMON {
            self.families.remove(&family);
        }
    }

    /// Panics unless the entries in use have these owners, some of whose families may have ended.
    pub fn check_invariants(&self, owners: &[Owner]) {
        assert_eq!(owners.len(), self.taken, "what is taken is somebody's or was");
        for (family, held) in &self.families {
            assert!(held.count > 0, "a family that has nothing is not remembered");
            assert!(held.since <= self.next, "a number is used once");
            let owner = Owner { family: *family, since: held.since };
            assert_eq!(owners.iter().filter(|other| **other == owner).count(), held.count, "family {family:#x}");
        }
        assert!(owners.iter().all(|owner| owner.since <= self.next));
        let of_guests = owners.iter().filter(|owner| power::is_of_guests(owner.family)).count();
        assert_eq!(of_guests, self.guests, "what guests have or have left counts for guests");
    }
}
