//! Conversion of counter readings to figures.

use alloc::vec::Vec;

use super::programs::RawRecord;

/// Number of rounds before those that count: the kernel's own caches (owners of the floating-point unit, reply objects
/// in place) are as they will stay after two.
pub const WARM_UP: usize = 4;

/// Returns the instructions between two readings. The counter has 32 bits on some processors.
const fn difference(from: u64, to: u64) -> u64 {
    to.wrapping_sub(from) & u32::MAX as u64
}

/// Returns the passages from each *before* of an actor to its own *after*: system calls that return to their caller,
/// and round trips.
pub fn own(records: &[RawRecord]) -> Vec<u64> {
    records.iter().skip(WARM_UP).map(|record| difference(record.before, record.after)).collect()
}

/// Returns the passages from each *before* of `from` to the first *after* of `to` that follows it, if no other reading
/// lies between the two.
pub fn across(from: &[RawRecord], to: &[RawRecord]) -> Vec<u64> {
    let Some(first) = from.first().or(to.first()) else { return Vec::new() };
    // Readings are ordered by their differences from one reading, half of the range before it and half after.
    let order = |count: u64| difference(first.before.wrapping_sub(1 << 31), count);
    let mut readings: Vec<(u64, Option<bool>)> = Vec::new();
    for record in from {
        readings.extend([(order(record.before), Some(true)), (order(record.after), None)]);
    }
    for record in to {
        readings.extend([(order(record.before), None), (order(record.after), Some(false))]);
    }
    readings.sort_unstable();
    let passages = readings.windows(2).filter_map(|pair| match pair {
        [(start, Some(true)), (end, Some(false))] => Some(end - start),
        _ => None,
    });
    passages.skip(WARM_UP).collect()
}

/// Returns the cost of a path: the smallest of its passages, without the cost of the readings; `None` if there are
/// none. The flag says whether all were equal, as they are unless something interrupts.
pub fn cost(passages: &[u64], readings: u64) -> Option<(u64, bool)> {
    let (least, most) = (passages.iter().min()?, passages.iter().max()?);
    Some((least.saturating_sub(readings), least == most))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an actor's records with these readings.
    fn actor(times: &[(u64, u64)]) -> Vec<RawRecord> {
        times
            .iter()
            .map(|(before, after)| RawRecord { before: *before, after: *after, ..RawRecord::default() })
            .collect()
    }

    /// Returns the records of a client that calls every 100 instructions, and of a server that replies; the paths take
    /// 30 and 40.
    fn conversation(start: u64) -> (Vec<RawRecord>, Vec<RawRecord>) {
        let rounds = (0..10).map(|round| start.wrapping_add(round * 100));
        let client: Vec<_> = rounds.clone().map(|at| (at, at.wrapping_add(75))).collect();
        let server: Vec<_> = rounds.map(|at| (at.wrapping_sub(65), at.wrapping_add(30))).collect();
        (actor(&client), actor(&server))
    }

    #[test]
    fn ways_there_and_back_are_told_apart() {
        for start in [1000, u64::from(u32::MAX) - 300, u64::MAX - 300] {
            let (client, server) = conversation(start);
            let client: Vec<_> = client
                .iter()
                .map(|r| RawRecord { before: r.before & 0xffff_ffff, after: r.after & 0xffff_ffff, ..*r })
                .collect();
            let server: Vec<_> = server
                .iter()
                .map(|r| RawRecord { before: r.before & 0xffff_ffff, after: r.after & 0xffff_ffff, ..*r })
                .collect();
            assert_eq!(across(&client, &server), [30; 6], "{start}");
            assert_eq!(across(&server, &client), [40; 5], "{start}");
            assert_eq!(own(&client), [75; 6]);
        }
    }

    #[test]
    fn readings_with_other_work_between_them_are_no_passage() {
        let (client, mut server) = conversation(1000);
        server.truncate(8);
        // The last two calls find no server.
        assert_eq!(across(&client, &server), [30; 4]);
        assert_eq!(across(&[], &server), []);
    }

    #[test]
    fn the_least_counts_and_inequality_is_reported() {
        assert_eq!(cost(&[], 3), None);
        assert_eq!(cost(&[93, 93], 3), Some((90, true)));
        assert_eq!(cost(&[93, 190, 93], 3), Some((90, false)));
        assert_eq!(cost(&[1], 3), Some((0, true)));
    }
}
