//! Fair-share quotas of families for the server's resources that process builders hold: memory for texts, and slots for
//! capabilities.

use tench_procs_interface::protocol::Error;
use tench_quota::{Client, Quota};

/// Unit of the quota for texts, in bytes.
pub const TEXT_UNIT: usize = 1024;
/// Units for the texts of all process builders. A family can hold half of them, enough to prepare two thousand
/// processes with short texts. A running process holds none.
pub const MAX_TEXT_UNITS: usize = 4096;
/// Number of capabilities that all process builders together can have been given. A family can hold half of them.
pub const MAX_GIVEN: usize = 1024;

/// Resources that one process builder holds.
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

/// The quotas for all process builders.
pub struct Shares {
    texts: Quota,
    given: Quota,
}

impl Default for Shares {
    fn default() -> Self {
        Shares { texts: Quota::new(MAX_TEXT_UNITS), given: Quota::new(MAX_GIVEN) }
    }
}

/// Raises what a process builder holds to `wanted`. Fails with `refusal`, and takes nothing, if its family has no more.
fn take(quota: &mut Quota, client: Client, held: &mut usize, wanted: usize, refusal: Error) -> Result<(), Error> {
    let more = wanted.saturating_sub(*held);
    if !quota.may_take_all(client, more) {
        return Err(refusal);
    }
    (0..more).for_each(|_| quota.take(client));
    *held += more;
    Ok(())
}

impl Shares {
    /// Charges `bytes` of a process's texts in all.
    pub fn hold_texts(&mut self, client: Client, held: &mut Held, bytes: usize) -> Result<(), Error> {
        take(&mut self.texts, client, &mut held.texts, bytes.div_ceil(TEXT_UNIT), Error::TooMuchText)
    }

    /// Charges `count` capabilities in all.
    pub fn hold_given(&mut self, client: Client, held: &mut Held, count: usize) -> Result<(), Error> {
        take(&mut self.given, client, &mut held.given, count, Error::TooManyCapabilities)
    }

    /// Releases what a process builder holds.
    pub fn release(&mut self, process: u64, held: &mut Held) {
        let Held { texts, given } = core::mem::take(held);
        self.texts.give_back_all(process, texts);
        self.given.give_back_all(process, given);
    }

    /// Panics if the sum of `held` differs from what is charged.
    pub fn check_invariants(&self, held: impl Iterator<Item = Held> + Clone) {
        self.texts.check_invariants();
        self.given.check_invariants();
        assert_eq!(self.texts.taken(), held.clone().map(|held| held.texts).sum::<usize>());
        assert_eq!(self.given.taken(), held.map(|held| held.given).sum::<usize>());
    }
}
