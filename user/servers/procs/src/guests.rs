//! Processes of other cores that may start processes here, and the highest priority that each may give to those.
//!
//! What a process of this core may give its record says. Of one of another core the process server there knows that.
//! The monitors pass it on when they make a capability to this server for such a process, or start something in its
//! name, and say when each of these is over. Nobody else starts anything here: what is made with a copy that is left is
//! refused.

use alloc::collections::BTreeMap;

use tench_places::{Client, Places};
use tench_procs_client::protocol::Error;

/// Guests that there can be.
pub const MAX_GUESTS: usize = 2048;

/// A process of another core.
struct Guest {
    ceiling: u8,
    /// Capabilities and requests with which it may start something.
    ways: u64,
}

/// All of them.
pub struct Guests {
    known: BTreeMap<u64, Guest>,
    places: Places,
}

impl Default for Guests {
    fn default() -> Guests {
        Guests { known: BTreeMap::new(), places: Places::new(MAX_GUESTS) }
    }
}

impl Guests {
    /// Lets a process start others, with priorities up to a ceiling, until it [leaves](Self::leave) as often. Fails
    /// with `Full` if its family has too many guests here.
    pub fn admit(&mut self, client: Client, ceiling: u8) -> Result<(), Error> {
        if let Some(guest) = self.known.get_mut(&client.process) {
            guest.ceiling = ceiling;
            guest.ways += 1;
            return Ok(());
        }
        if !self.places.may_take(client) {
            return Err(Error::Full);
        }
        self.places.take(client);
        self.known.insert(client.process, Guest { ceiling, ways: 1 });
        Ok(())
    }

    /// Returns the highest priority that a process may give, if it may start any.
    pub fn ceiling(&self, process: u64) -> Option<u8> {
        self.known.get(&process).map(|guest| guest.ceiling)
    }

    /// A process has one way less to start others here. Returns whether that was the last.
    pub fn leave(&mut self, process: u64) -> bool {
        let Some(guest) = self.known.get_mut(&process) else { return true };
        guest.ways -= 1;
        if guest.ways > 0 {
            return false;
        }
        self.known.remove(&process);
        self.places.give_back(process);
        true
    }

    /// Panics if an invariant does not hold.
    pub fn check_invariants(&self) {
        self.places.check_invariants();
        assert_eq!(self.places.taken(), self.known.len());
        assert!(self.known.values().all(|guest| guest.ways > 0));
    }
}
