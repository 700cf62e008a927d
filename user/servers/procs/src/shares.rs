//! What processes in preparation take of this server, of which each family has a share: memory for texts, and slots for
//! capabilities.

use tench_places::{Client, Places};
use tench_procs_client::protocol::Error;

/// Bytes of one place for texts with which processes are prepared.
pub const TEXT_UNIT: usize = 1024;
/// Places for such texts, of all preparations. A family can have half of them: as much as it takes to prepare two
/// thousand processes with short ones. A process that runs needs none.
pub const TEXT_PLACES: usize = 4096;
/// Places for capabilities that processes in preparation were given, of all preparations. A family can have half of
/// them.
pub const GIVEN_PLACES: usize = 1024;

/// What one process has of them.
#[derive(Clone, Copy, Default)]
pub struct Held {
    texts: usize,
    given: usize,
}

impl Held {
    /// Returns whether nothing is held.
    pub const fn is_nothing(self) -> bool {
        self.texts == 0 && self.given == 0
    }
}

/// The places of all preparations.
pub struct Shares {
    texts: Places,
    given: Places,
}

impl Default for Shares {
    fn default() -> Self {
        Shares { texts: Places::new(TEXT_PLACES), given: Places::new(GIVEN_PLACES) }
    }
}

/// Takes places until there are so many. Fails with `refusal`, and takes none, if the family has no more.
fn take(places: &mut Places, client: Client, held: &mut usize, wanted: usize, refusal: Error) -> Result<(), Error> {
    let more = wanted.saturating_sub(*held);
    if !places.may_take_all(client, more) {
        return Err(refusal);
    }
    (0..more).for_each(|_| places.take(client));
    *held += more;
    Ok(())
}

impl Shares {
    /// Takes places for `bytes` of a process's texts in all.
    pub fn hold_texts(&mut self, client: Client, held: &mut Held, bytes: usize) -> Result<(), Error> {
        take(&mut self.texts, client, &mut held.texts, bytes.div_ceil(TEXT_UNIT), Error::TooMuchText)
    }

    /// Takes places for `count` capabilities in all.
    pub fn hold_given(&mut self, client: Client, held: &mut Held, count: usize) -> Result<(), Error> {
        take(&mut self.given, client, &mut held.given, count, Error::TooManyCapabilities)
    }

    /// Gives back what a process held in preparation.
    pub fn release(&mut self, process: u64, held: &mut Held) {
        let Held { texts, given } = core::mem::take(held);
        self.texts.give_back_all(process, texts);
        self.given.give_back_all(process, given);
    }

    /// Panics if `held` does not add up to what is taken.
    pub fn check_invariants(&self, held: impl Iterator<Item = Held> + Clone) {
        self.texts.check_invariants();
        self.given.check_invariants();
        assert_eq!(self.texts.taken(), held.clone().map(|held| held.texts).sum::<usize>());
        assert_eq!(self.given.taken(), held.map(|held| held.given).sum::<usize>());
    }
}
