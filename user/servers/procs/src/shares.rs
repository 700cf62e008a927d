//! What processes in preparation take of this server, of which each family has a share: memory for texts, and slots for capabilities.

use tench_places::{Client, Places};
use tench_procs_client::protocol::Error;

/// Bytes of one place for texts with which processes are prepared.
pub const TEXT_UNIT: usize = 1024;
/// Places for such texts, of all preparations. A family can have half of them: as much as it takes to prepare two thousand processes with
/// short ones. A process that runs needs none.
pub const TEXT_PLACES: usize = 4096;
/// Places for capabilities that processes in preparation were given, of all preparations. A family can have half of them.
pub const GIVEN_PLACES: usize = 1024;

/// What one process has of them.
#[derive(Clone, Copy, Default)]
pub struct Held {
    texts: usize,
    given: usize,
}

impl Held {
    /// Whether that is nothing.
    pub const fn is_nothing(self) -> bool {
        self.texts == 0 && self.given == 0
    }
}

/// All of them.
pub struct Shares {
    texts: Places,
    given: Places,
}

impl Default for Shares {
    fn default() -> Self {
        Shares { texts: Places::new(TEXT_PLACES), given: Places::new(GIVEN_PLACES) }
    }
}

/// Takes places until there are so many. Fails with `refusal` if the family has no more.
fn take(places: &mut Places, client: Client, held: &mut usize, wanted: usize, refusal: Error) -> Result<(), Error> {
    while *held < wanted {
        if !places.may_take(client) {
            return Err(refusal);
        }
        places.take(client);
        *held += 1;
    }
    Ok(())
}

impl Shares {
    /// A process's texts will have so many bytes.
    pub fn hold_texts(&mut self, client: Client, held: &mut Held, bytes: usize) -> Result<(), Error> {
        take(&mut self.texts, client, &mut held.texts, bytes.div_ceil(TEXT_UNIT), Error::TooMuchText)
    }

    /// A process will have been given so many capabilities.
    pub fn hold_given(&mut self, client: Client, held: &mut Held, count: usize) -> Result<(), Error> {
        take(&mut self.given, client, &mut held.given, count, Error::TooManyCapabilities)
    }

    /// A process is not in preparation any more.
    pub fn release(&mut self, process: u64, held: &mut Held) {
        let Held { texts, given } = core::mem::take(held);
        self.texts.give_back_all(process, texts);
        self.given.give_back_all(process, given);
    }

    /// Panics unless they are taken by these.
    pub fn check_invariants(&self, held: impl Iterator<Item = Held> + Clone) {
        self.texts.check_invariants();
        self.given.check_invariants();
        assert_eq!(self.texts.taken(), held.clone().map(|held| held.texts).sum::<usize>());
        assert_eq!(self.given.taken(), held.map(|held| held.given).sum::<usize>());
    }
}
