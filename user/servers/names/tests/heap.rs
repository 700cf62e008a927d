//! Tests that the heap reserved by the server suffices for any one request to the table.

use tench_counting::{Counting, peak};
use tench_names::table::{GROWTH, Table};
use tench_names_interface::protocol::MAX_NAME;
use tench_quota::Client;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns a name of the maximum length.
fn name(number: u64) -> String {
    format!("{number:x>width$}", width = MAX_NAME)
}

#[test]
fn no_request_needs_more_than_is_kept_in_reserve() {
    let mut table = Table::<u32, u64>::new(1024, 256);
    let mut most = 0;
    let mut count = |bytes: usize| most = most.max(bytes);
    for number in 0..1024 {
        let name = name(number);
        count(peak(|| table.register(&name, Client::alone(number % 2), 5).unwrap()).1);
    }
    // All wait for the same name, and then it is registered.
    for number in 0..256 {
        let awaited = name(5000);
        let ((), bytes) = peak(|| table.wait(&awaited, Client::alone(number % 2), number));
        count(bytes);
    }
    count(peak(|| table.unregister(&name(0), 0).unwrap()).1);
    let (waiters, bytes) = peak(|| table.register(&name(5000), Client::alone(7), 5).unwrap());
    assert_eq!(waiters.len(), 256);
    count(bytes);
    for number in 0..256 {
        table.wait(&name(6000), Client::alone(0), number);
    }
    let (gone, bytes) = peak(|| table.process_ended(0));
    assert_eq!((gone.0.len(), gone.1.len()), (511, 256));
    count(bytes);
    count(peak(|| table.process_ended(1)).1);
    assert!(most <= GROWTH && most > GROWTH / 8, "{most} bytes");
}
