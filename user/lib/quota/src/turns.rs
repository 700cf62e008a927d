//! Turns: members of groups, each of which waits for a time, and after that for its turn.
//!
//! [`Queue`](crate::queue::Queue) has two of these: one in which the families are the members of one group, and one in
//! which each family is a group of its processes.
//!
//! ```text
//! heads     group, deadline, arrival, member       members that wait for a time
//! called    group, number of the call, member      members that wait for their turn; no member is in both
//! ```

use alloc::collections::BTreeSet;

use crate::queue::NEVER;

/// A deadline, and the number of the wait that has it.
pub type Head = (u64, u64);

/// Members of groups.
pub struct Turns {
    heads: BTreeSet<(u64, u64, u64, u64)>,
    called: BTreeSet<(u64, u64, u64)>,
    calls: u64,
}

impl Turns {
    /// Returns an empty set.
    pub const fn new() -> Turns {
        Turns { heads: BTreeSet::new(), called: BTreeSet::new(), calls: 0 }
    }

    /// Returns the earliest time for which a member of a group waits, and that member.
    pub fn first(&self, group: u64) -> Option<(Head, u64)> {
        let first = self.heads.range((group, 0, 0, 0)..).next().filter(|first| first.0 == group);
        first.map(|&(_, deadline, arrival, member)| ((deadline, arrival), member))
    }

    /// Returns the member of a group whose turn it is, and the number of its call.
    fn next(&self, group: u64) -> Option<(u64, u64)> {
        let next = self.called.range((group, 0, 0)..).next().filter(|next| next.0 == group);
        next.map(|&(_, call, member)| (call, member))
    }

    /// Returns whether a member of a group waits for its turn.
    pub fn is_any_called(&self, group: u64) -> bool {
        self.next(group).is_some()
    }

    /// Makes a member wait for a time.
    pub fn wait(&mut self, group: u64, (deadline, arrival): Head, member: u64) {
        self.heads.insert((group, deadline, arrival, member));
    }

    /// Ends a member's wait for this time. Returns whether it waited for it, and not for its turn.
    pub fn stop_waiting(&mut self, group: u64, (deadline, arrival): Head, member: u64) -> bool {
        self.heads.remove(&(group, deadline, arrival, member))
    }

    /// Makes a member wait for its turn, after all of its group that already do.
    pub fn call(&mut self, group: u64, member: u64) {
        self.calls += 1;
        self.called.insert((group, self.calls, member));
    }

    /// Makes the member of a group with the earliest time wait for its turn if that time has come. Returns whether it
    /// had.
    pub fn call_first(&mut self, group: u64, now: u64) -> bool {
        let has_come = self.first(group).is_some_and(|((deadline, _), _)| deadline <= now && deadline != NEVER);
        if has_come && let Some(member) = self.take_first(group) {
            self.call(group, member);
        }
        has_come
    }

    /// Removes the member of a group with the earliest time.
    pub fn take_first(&mut self, group: u64) -> Option<u64> {
        let (head, member) = self.first(group)?;
        self.stop_waiting(group, head, member);
        Some(member)
    }

    /// Removes the member of a group whose turn it is.
    pub fn take_next(&mut self, group: u64) -> Option<u64> {
        let (call, member) = self.next(group)?;
        self.called.remove(&(group, call, member));
        Some(member)
    }

    /// Removes a member, which waits for this time or for its turn. Finding one that waits for its turn takes a step
    /// for each of its group.
    pub fn remove(&mut self, group: u64, head: Option<Head>, member: u64) {
        if head.is_some_and(|head| self.stop_waiting(group, head, member)) {
            return;
        }
        let of_group = self.called.range((group, 0, 0)..=(group, u64::MAX, u64::MAX));
        if let Some(&called) = of_group.into_iter().find(|called| called.2 == member) {
            self.called.remove(&called);
        }
    }

    /// Returns all members, for checks: group, member, and the time for which it waits if it has not been called.
    pub fn all(&self) -> impl Iterator<Item = (u64, u64, Option<Head>)> {
        let heads =
            self.heads.iter().map(|&(group, deadline, arrival, member)| (group, member, Some((deadline, arrival))));
        heads.chain(self.called.iter().map(|&(group, _, member)| (group, member, None)))
    }
}
