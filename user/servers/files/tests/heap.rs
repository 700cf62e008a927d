//! Tests that the heap reserved by the server suffices for any one request.

use tench_counting::{Counting, peak};
use tench_files::ends::{Ends, GROWTH, Outcome};
use tench_files::tree::{Requester, Tree};
use tench_files_interface::protocol::{How, MAX_PATH};
use tench_quota::Client;
use tench_stream::protocol::MAX_DATA;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A waiting thread's reply, as large as on the target.
type Reply = [u64; 2];

/// Number of requests that wait at the ends of a process.
const WAITING: usize = 200;

/// Returns a requester that may change everything.
const fn entitled(process: u64) -> Requester {
    Requester { client: Client::alone(process), is_entitled: true }
}

fn path(number: u64) -> String {
    format!("{number:x>width$}", width = MAX_PATH)
}

#[test]
fn no_request_needs_more_than_is_kept_in_reserve() {
    let mut ends = Ends::<Reply>::new(Tree::new(2048, 4096, 1));
    let mut most = 0;
    let mut count = |bytes: usize| most = most.max(bytes);
    for number in 0..1000 {
        let path = path(number);
        let (end, bytes) = peak(|| ends.open(entitled(number % 40), &path, How::Write).unwrap());
        count(bytes);
        // The write crosses the end of a block, so that two are needed.
        ends.seek(end, 8192 * number - number).unwrap();
        count(peak(|| assert!(matches!(ends.write(end, &[1; MAX_DATA]), Outcome::Now(Ok(()))))).1);
        count(peak(|| ends.tree.rename(entitled(1), &path, &format!("{path:.200}")).unwrap()).1);
        if number % 3 > 0 {
            count(peak(|| ends.close(end, |_| ()).unwrap()).1);
        }
    }
    for process in 100..103 {
        let (reader, writer) = ends.pipe(Client::alone(process)).unwrap();
        for number in 0..WAITING as u64 {
            let end = ends.share(reader, process + 100).unwrap();
            assert_eq!(ends.read(end, 1), Outcome::Wait);
            count(peak(|| ends.wait_to_read(end, 1, [number, 0])).1);
        }
        count(peak(|| _ = ends.write(writer, &[1; MAX_DATA])).1);
        while let (Some(_), bytes) = peak(|| ends.next_due()) {
            count(bytes);
        }
        while matches!(ends.write(writer, &[1; MAX_DATA]), Outcome::Now(Ok(()))) {}
        for number in 0..WAITING as u64 {
            assert_eq!(ends.write(writer, &[1; MAX_DATA]), Outcome::Wait);
            count(peak(|| ends.wait_to_write(writer, &[1; MAX_DATA], [number, 1])).1);
        }
        let (refused, bytes) = peak(|| {
            let mut refused = 0;
            ends.process_ended(process, process, |_| refused += 1);
            refused
        });
        assert_eq!(refused, WAITING);
        count(bytes);
        while ends.orphan(1) == Some(process) {
            count(peak(|| ends.process_ended(process, process, |_| ())).1);
        }
        count(peak(|| ends.process_lives(Client::alone(process + 100), |_| ())).1);
        while ends.orphan(1) == Some(process + 100) {
            count(peak(|| ends.process_ended(process + 100, process + 100, |_| ())).1);
        }
    }
    ends.check_invariants();
    assert!(most <= GROWTH && most > GROWTH / 4, "{most} bytes");
}
