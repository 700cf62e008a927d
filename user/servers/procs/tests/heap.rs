//! Tests that the heap reserved by the server suffices for any one request to the records.

use tench_abi::Powers;
use tench_counting::{Counting, peak};
use tench_procs::table::{BRIEFLY, Condition, GROWTH, MAX_ENDED, MAX_LIVE, MAX_WAITERS, Records};
use tench_procs_interface::protocol::{MAX_NAME, State};
use tench_quota::Client;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Approximate size of what the server keeps for a process builder: texts and lists.
type Kept = [u64; 24];

/// Returns the bytes of the array of ended processes, which grows to a bound and reports if it cannot.
fn arrays(records: u64) -> usize {
    let grown = |length: u64, size: usize| (length as usize).next_power_of_two() * size * 2 + 64;
    grown(records.min((MAX_ENDED + MAX_LIVE) as u64 + 2), 8)
}

/// Returns a long name. Every fourth is the same and the others differ, so that names have one process or many.
fn name(number: u64) -> String {
    let base = if number.is_multiple_of(4) { "same".into() } else { format!("other{number}") };
    format!("bin/{base:x<width$}", width = MAX_NAME - 4)
}

#[test]
fn no_request_needs_more_than_is_kept_in_reserve() {
    let mut records = Records::<Kept, u64>::default();
    let mut most = (0, 0);
    let mut live = Vec::new();
    for number in 0..3 * MAX_LIVE as u64 {
        if live.len() == MAX_LIVE {
            // The first half ends. Some have as many waiters as are allowed.
            for process in live.drain(..MAX_LIVE / 2) {
                let (ended, bytes) = peak(|| {
                    let ended = records.record_end(process, Condition::plain(State::Exited)).unwrap();
                    // Its waiters have not had their replies yet.
                    (ended, records.look_for_gone(|_| false))
                });
                most.1 = most.1.max(bytes);
                drop(ended);
            }
        }
        let name = name(number);
        let (process, bytes) =
            peak(|| records.prepare(&name, Client::alone(0), Powers::empty(), Some([0; 24])).unwrap());
        most.0 = most.0.max(bytes.saturating_sub(arrays(process)));
        live.push(process);
        for wait in 0..if number % 64 == 0 { MAX_WAITERS as u64 } else { 1 } {
            // Sometimes its own threads wait for it, so that both ends of a wait are in the same process.
            let other = live[(number + 7 * wait) as usize % live.len()];
            let waiter = if number % 128 == 0 { process } else { other };
            let (_, bytes) = peak(|| {
                let gone = records.remove_gone(process, Client::alone(waiter), |_| false);
                if records.has_capacity(process, Client::alone(waiter)) {
                    records.wait(process, Client::alone(waiter), Some(wait % 7), wait);
                }
                gone
            });
            most.0 = most.0.max(bytes);
        }
    }
    records.check_invariants();
    println!("adds {} ends {}", most.0, most.1);
    assert!(most.0 <= GROWTH && most.0 > GROWTH / 8, "{} bytes for one that adds", most.0);
    assert!(most.1 <= BRIEFLY && most.1 > BRIEFLY / 8, "{} bytes for one that ends", most.1);
}
