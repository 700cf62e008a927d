//! Tests that the heap reserved by the server suffices for any one request to the queue.

use tench_clock::GROWTH;
use tench_counting::{Counting, peak};
use tench_quota::Client;
use tench_quota::queue::Queue;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn no_request_needs_more_than_is_kept_in_reserve() {
    let mut queue = Queue::<u64>::new(1024);
    let mut most = 0;
    for number in 0..1024 {
        let (_, bytes) = peak(|| queue.push(number * 7919 % 1024, Client::alone(3), number));
        most = most.max(bytes);
    }
    most = most.max(peak(|| queue.pop_expired(10)).1);
    most = most.max(peak(|| queue.take_out_some(3, 8, |number| number % 2 == 0)).1);
    while queue.held(3) > 0 {
        most = most.max(peak(|| queue.process_ended(3, 16).len()).1);
    }
    assert!(most <= GROWTH && most > GROWTH / 8, "{most} bytes");
}
