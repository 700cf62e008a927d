//! Guests are processes of other cores that may start processes here; each has a ceiling for their priority.
//!
//! The ceiling of a local process is in its record; that of a process of another core is known to the process server
//! there. The monitors transmit it when they export a capability to this server to such a process, and report when that
//! is gone. No other process of another core can start anything here: requests with a leftover copy are refused.

use alloc::collections::BTreeMap;

use tench_procs_interface::protocol::Error;
use tench_quota::{Client, Quota};

/// Maximum number of guests.
pub const MAX_GUESTS: usize = 2048;

/// A process of another core.
struct Guest {
    ceiling: u8,
    /// Number of capabilities through which the guest may start something.
    ways: u64,
}

/// The table of guests.
pub struct Guests {
    known: BTreeMap<u64, Guest>,
    quota: Quota,
}

impl Default for Guests {
    fn default() -> Guests {
        Guests { known: BTreeMap::new(), quota: Quota::new(MAX_GUESTS) }
    }
}

impl Guests {
    /// Lets a process start others, with priorities up to a ceiling, until it has [left](Self::leave) as many times.
    /// Fails with `Full` if its family has too many guests here.
    pub fn admit(&mut self, client: Client, ceiling: u8) -> Result<(), Error> {
        if let Some(guest) = self.known.get_mut(&client.process) {
            guest.ceiling = ceiling;
            guest.ways += 1;
            return Ok(());
        }
        if !self.quota.may_take(client) {
            return Err(Error::Full);
        }
        self.quota.take(client);
        self.known.insert(client.process, Guest { ceiling, ways: 1 });
        Ok(())
    }

    /// Returns the highest priority that a process may assign, if it may start any.
    pub fn ceiling(&self, process: u64) -> Option<u8> {
        self.known.get(&process).map(|guest| guest.ceiling)
    }

    /// Removes one of the ways in which a process can start others here. Returns whether it was the last.
    pub fn leave(&mut self, process: u64) -> bool {
        let Some(guest) = self.known.get_mut(&process) else { return true };
        guest.ways -= 1;
        if guest.ways > 0 {
            return false;
        }
        self.known.remove(&process);
        self.quota.give_back(process);
        true
    }

    /// Panics if an invariant does not hold.
    pub fn check_invariants(&self) {
        self.quota.check_invariants();
        assert_eq!(self.quota.taken(), self.known.len());
        assert!(self.known.values().all(|guest| guest.ways > 0));
    }
}
