//! What a client may see and choose besides its own blocks: with the power `memory` everything, otherwise its own
//! account, and how much memory there is and how much of it is free, because without that no program could tell how
//! much it may plan for.

use tench_extents::Node;
use tench_mem_client::protocol::{Error, MIN_BLOCK_BITS, Within};
use tench_protocol::{Caller, Powers};

use crate::accounts::Account;
use crate::blocks::Entry;
use crate::books::{Books, Totals};

/// Returns whether somebody may have a block of a size there. Fails with `NotAllowed` where addresses are chosen
/// without the power for it: who asks for a page at a multiple of 1 MiB is told 20 bits of its address by getting it.
pub fn check_choice(powers: Powers, size_bits: u32, within: &Within) -> Result<(), Error> {
    let is_ordinary = (within.base, within.limit) == (0, 0) && within.align_bits <= size_bits.max(MIN_BLOCK_BITS);
    if is_ordinary || powers.contains(Powers::MEMORY) { Ok(()) } else { Err(Error::NotAllowed) }
}

/// Returns what somebody is told of all memory.
pub fn totals(powers: Powers, all: Totals) -> Totals {
    if powers.contains(Powers::MEMORY) { all } else { Totals { total: all.total, free: all.free, ..Totals::default() } }
}

/// Returns the account with the lowest number above `after` that somebody may see. Fails with `NoSuchAccount` if there
/// is none.
pub fn next_account<E, B, A>(
    books: &Books<E, B, A>,
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
        books.next_account(after)
    } else {
        books.account(caller.process).filter(|account| account.number > after)
    };
    found.ok_or(Error::NoSuchAccount)
}
