//! Rules for what a client may see and choose besides its own blocks. With the power `memory` that is everything.
//! Otherwise it is the client's own account, the total memory and the free memory, which every program needs for
//! planning.

use tench_extents::Node;
use tench_mem_interface::protocol::{Error, MIN_BLOCK_BITS, Within};
use tench_protocol::{Caller, Powers};

use crate::accounts::Account;
use crate::blocks::Entry;
use crate::ledger::{Ledger, Totals};

/// Checks that a caller may choose where its block is. Fails with `NotAllowed` if the choice needs the power `memory`:
/// a client that gets a page at a multiple of 1 MiB learns 20 bits of its address.
pub fn check_choice(powers: Powers, size_bits: u32, within: &Within) -> Result<(), Error> {
    let is_ordinary = (within.base, within.limit) == (0, 0) && within.align_bits <= size_bits.max(MIN_BLOCK_BITS);
    if is_ordinary || powers.contains(Powers::MEMORY) { Ok(()) } else { Err(Error::NotAllowed) }
}

/// Returns the part of the totals that a caller may see.
pub fn totals(powers: Powers, all: Totals) -> Totals {
    if powers.contains(Powers::MEMORY) { all } else { Totals { total: all.total, free: all.free, ..Totals::default() } }
}

/// Returns the account with the lowest number above `after` that a caller may see. Fails with `NoSuchAccount` if there
/// is none.
pub fn next_account<E, B, A>(
    ledger: &Ledger<E, B, A>,
    caller: Caller,
    powers: Powers,
    after: u64,
) -> Result<&Account, Error>
where
    E: AsRef<[Node]> + AsMut<[Node]>,
    B: AsRef<[Entry]> + AsMut<[Entry]>,
    A: AsRef<[Account]> + AsMut<[Account]>,
{
    let found = if powers.contains(Powers::MEMORY) {
        ledger.next_account(after)
    } else {
        ledger.account(caller.process).filter(|account| account.number > after)
    };
    found.ok_or(Error::NoSuchAccount)
}
