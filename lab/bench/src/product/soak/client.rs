//! The kinds of soak clients, and what they have in common.

use alloc::format;
use alloc::string::String;

use tench::abi::Powers;
use tench::mem::Failure as MemFailure;
use tench::mem::protocol::Error as MemError;
use tench::procs::{Failure, Procs};
use tench::{memory, println};
use tench_random::Random;

use super::{memory as space, requests};

/// Result of a client; the error is something that must not happen, which memory exhaustion is not.
pub type Outcome<T = ()> = Result<T, &'static str>;

/// Body of a client of a kind, which makes a number of steps.
pub type Kind = fn(&mut Random, u64) -> Outcome;

/// Every kind, by name.
pub const KINDS: &[(&str, Kind)] = &[
    ("blocks", requests::blocks),
    ("hog", requests::hog),
    ("bundles", requests::bundles),
    ("names", requests::names),
    ("spawn", requests::spawn),
    ("regions", space::regions),
    ("frames", space::frames),
    ("heap", space::heap),
];

/// Maximum number of a client's steps.
const MAX_STEPS: u64 = 400;
/// Exit code of a client that found an error. A successful one ends with its number of steps above these eight bits.
const WRONG: i32 = 3;

/// Starts a client.
pub fn start(kind: &str, seed: u64, quota: Option<u64>, priority: u8) -> Result<u64, Failure> {
    let spawn = Procs::STANDARD.prepare("bench")?;
    let mut digits = [0; 20];
    // These kinds choose addresses, and the memory policy.
    let powers = if matches!(kind, "blocks" | "bundles") { Powers::MEMORY } else { Powers::empty() };
    let prepared = ["soak-client", kind, decimal(seed, &mut digits)]
        .into_iter()
        .try_for_each(|argument| spawn.argument(argument))
        .and_then(|()| spawn.configure(priority, priority, 0, powers))
        .and_then(|()| quota.map_or(Ok(()), |bytes| spawn.limit(bytes)));
    match prepared {
        Ok(()) => spawn.start(),
        Err(failure) => {
            spawn.abandon();
            Err(failure)
        }
    }
}

/// Formats a number without the heap: a client may have no memory left.
fn decimal(number: u64, digits: &mut [u8; 20]) -> &str {
    let (mut rest, mut first) = (number, digits.len());
    loop {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    core::str::from_utf8(&digits[first..]).unwrap_or("0")
}

/// Runs a client: does what its arguments say, and ends the process.
pub fn run() -> Result<(), String> {
    let mut arguments = tench::args().skip(2);
    let name = arguments.next().unwrap_or("");
    let (_, kind) =
        KINDS.iter().find(|(kind, _)| *kind == name).ok_or_else(|| format!("no client is called {name}"))?;
    let seed = arguments.next().and_then(|text| text.parse().ok()).ok_or("a client needs a seed")?;
    let mut random = Random::new(seed);
    let steps = 1 + random.below(MAX_STEPS);
    match kind(&mut random, steps) {
        Ok(()) => tench::exit((steps as i32) << 8),
        Err(wrong) => {
            println!("soak: client {name} {seed}: {wrong}");
            tench::exit(WRONG)
        }
    }
}

/// Returns whether the memory server refused for lack of memory.
pub const fn is_short(failure: &MemFailure) -> bool {
    matches!(failure, MemFailure::Refused(MemError::OutOfMemory | MemError::QuotaExceeded | MemError::TooManyBlocks))
}

/// Returns what was made, or none if memory was short.
pub fn made<T>(result: Result<T, memory::Error>, wrong: &'static str) -> Outcome<Option<T>> {
    match result {
        Ok(made) => Ok(Some(made)),
        Err(memory::Error::Memory(failure)) if is_short(&failure) => Ok(None),
        Err(memory::Error::NoSlots) => Ok(None),
        // The address space's metadata could not grow.
        Err(memory::Error::NoAddresses) => Ok(None),
        Err(_) => Err(wrong),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_people_write_them() {
        for number in [0, 7, 10, 999, 1_000, u64::MAX] {
            assert_eq!(decimal(number, &mut [0; 20]), format!("{number}"));
        }
    }
}
