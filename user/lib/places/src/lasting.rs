//! Places for what outlasts the process that made it, such as files.
//!
//! [`Places`](crate::Places) come back when the process ends that has them. These stay taken. If they counted for
//! nobody from then on, a program could start one child after another, each of which takes half of what is free and
//! ends, until nothing is free. So they count for the family, whoever of it lives, by the same rule ([`allows`]). When
//! the last process of the family has ended, they are nobody's.
//!
//! ```text
//! families   family ──▶ its places, and since when it has some      owner   family, since when: what each place is marked with
//! ```
//! Numbers of families are used again. What is left of one that has ended is not taken for that of the next with its
//! number, because that one has some since later.
//!
//! A family of [guests](power::is_of_guests) ends when a program wants it to: that starts a process on another core and
//! ends it, as often as it likes, and each time that was a family. Nobody knows here who has sent it and whether that
//! one lives. So all guests together get what one family gets, and what those have left that have ended counts for the
//! others. Of that part each family of guests gets what a family gets of everything: a client of such a family may take
//! one more place while that has fewer than guests may have more in all. Whoever of whom nothing is known is of one of
//! them, [`COMMON`], which never ends.
//!
//! ```text
//! 1,024 places   a family 512   all guests 512: the first 256, the second 128, …
//! ```

use alloc::collections::BTreeMap;

use tench_abi::power::{self, Client};

use crate::allows;

/// The family for which whoever counts of whom nothing is known. No process has it in its badge. It is one of guests.
pub const COMMON: u64 = power::family_of(0, power::GUESTS);

/// Whose a place is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    family: u64,
    since: u64,
}

/// What a family has.
#[derive(Clone, Copy, Debug)]
struct Held {
    /// A number that is used once, so that its places are known from those that were left by another one of its number.
    since: u64,
    count: usize,
}

/// How many places each family has.
#[derive(Clone, Debug)]
pub struct Lasting {
    limit: usize,
    taken: usize,
    /// How many of these guests have, or have left.
    guests: usize,
    /// Only families that have some.
    families: BTreeMap<u64, Held>,
    /// The next number of those that are used once.
    next: u64,
}

impl Lasting {
    /// So many places, all free.
    pub const fn new(limit: usize) -> Lasting {
        Lasting { limit, taken: 0, guests: 0, families: BTreeMap::new(), next: 0 }
    }

    /// Returns how many places there are.
    pub const fn limit(&self) -> usize {
        self.limit
    }

    /// Returns how many places are taken, with those that are nobody's.
    pub const fn taken(&self) -> usize {
        self.taken
    }

    /// Returns how many places count for a family.
    pub fn held(&self, family: u64) -> usize {
        self.families.get(&family).map_or(0, |held| held.count)
    }

    /// Returns whether a client may take one more.
    pub fn may_take(&self, client: Client) -> bool {
        self.may_take_all(client, 1)
    }

    /// Returns whether a client may take so many more, one after another. None are always possible.
    pub fn may_take_all(&self, client: Client, count: usize) -> bool {
        // Each is harder to get than the one before.
        let Some(before) = count.checked_sub(1) else { return true };
        let (own, taken) = (self.held(client.family) + before, self.taken + before);
        if power::is_of_guests(client.family) {
            // What guests may have is half of what others do not have.
            let part = self.limit.saturating_sub(self.taken - self.guests).div_ceil(2);
            return allows(own, self.guests + before, part);
        }
        allows(own, taken, self.limit)
    }

    /// A client has one more, whether it [may](Self::may_take) or not. Returns whose it is.
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

    /// A place is free again.
    pub fn give_back(&mut self, owner: Owner) {
        self.give_back_all(owner, 1);
    }

    /// So many places of one owner are free again.
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

    /// The last process of a family has ended. What the family has stays taken, and is nobody's; if it was one of
    /// guests, all guests'.
    pub fn family_ended(&mut self, family: u64) {
        if family != COMMON {
            self.families.remove(&family);
        }
    }

    /// Panics unless places are taken by these owners, some of whose families may have ended.
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
