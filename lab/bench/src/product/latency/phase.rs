//! Relation between the system counter and the count of retired instructions.
//!
//! On a machine that counts instructions, virtual time is the number of instructions (a nanosecond each) plus the
//! skipped idle time. The system counter shows it in steps of 16 ns; the performance monitors show the instructions
//! alone. While the machine never idles, the two differ by a constant, the *offset*: `time = instructions + offset`.
//! Each pair of readings says where the offset lies to within one step; readings at many places within a step leave one
//! value. With it, a deadline in ticks of the counter is an exact number of instructions, and the time until a
//! program's instruction can be counted exactly.

/// Nanoseconds, and so instructions, of one tick: the counter of the emulated machine has 62.5 MHz.
pub const TICK: u64 = 16;

/// Number of pairs of readings. They lie an odd number of instructions apart, or two do, so that sixteen see every
/// place in a step.
const READINGS: u32 = 256;

/// Offset modulo 2³²: the count of instructions has 32 bits on some processors, and so has everything here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    offset: u32,
}

/// A range in which the offset lies.
struct Range {
    first: u32,
    length: u32,
}

impl Range {
    /// Returns the range given by one pair of readings: the counter showed `ticks` when `count` instructions had been
    /// counted.
    const fn of(count: u32, ticks: u64) -> Range {
        Range { first: (ticks as u32).wrapping_mul(TICK as u32).wrapping_sub(count), length: TICK as u32 }
    }

    /// Returns the intersection of two nearby ranges; `None` if it is empty.
    const fn both(&self, other: &Range) -> Option<Range> {
        // Differences of 32 bits: the range that begins later is ahead of the other.
        let ahead = other.first.wrapping_sub(self.first) as i32;
        let (first, start) = if ahead > 0 { (other.first, ahead) } else { (self.first, 0) };
        let (own_end, other_end) = (self.length as i32, ahead.wrapping_add(other.length as i32));
        let end = if other_end < own_end { other_end } else { own_end };
        if end > start { Some(Range { first, length: (end - start) as u32 }) } else { None }
    }
}

impl Phase {
    /// Finds the offset; `None` if the readings contradict each other or leave more than one value, because the machine
    /// does not count instructions or was interrupted in between.
    pub fn find() -> Option<Phase> {
        Self::from_readings((0..READINGS).map(readings))
    }

    /// Returns the offset that all readings allow.
    fn from_readings(readings: impl Iterator<Item = (u32, u64)>) -> Option<Phase> {
        let mut ranges = readings.map(|(count, ticks)| Range::of(count, ticks));
        let first = ranges.next()?;
        let range = ranges.try_fold(first, |range, next| range.both(&next))?;
        (range.length == 1).then_some(Phase { offset: range.first })
    }

    /// Returns the instructions retired between a deadline and a reading of the count, which itself does not count.
    /// Negative if the reading was before the deadline.
    pub const fn difference(&self, deadline: u64, count: u64) -> i32 {
        let at_deadline = (deadline as u32).wrapping_mul(TICK as u32).wrapping_sub(self.offset);
        (count as u32).wrapping_sub(at_deadline).wrapping_sub(1) as i32
    }

    /// Returns this difference, at least 0.
    pub fn latency(&self, deadline: u64, count: u64) -> u32 {
        self.difference(deadline, count).max(0) as u32
    }
}

/// Reads the count and, one instruction later, the counter. The count is that of the second reading.
#[cfg(all(target_arch = "aarch64", target_os = "none"))]
fn readings(number: u32) -> (u32, u64) {
    let (count, ticks): (u64, u64);
    // SAFETY: reads two registers that the kernel lets programs read. Every other time there is one instruction more.
    unsafe {
        core::arch::asm!(
            "tbz {number:w}, #0, 2f",
            "nop",
            "2:",
            "mrs {count}, pmevcntr0_el0",
            "mrs {ticks}, cntvct_el0",
            number = in(reg) number,
            count = out(reg) count,
            ticks = out(reg) ticks,
            options(nomem, nostack)
        );
    }
    ((count as u32).wrapping_add(1), ticks)
}

/// Returns nothing useful: on the host there is nothing to read.
#[cfg(not(all(target_arch = "aarch64", target_os = "none")))]
fn readings(_: u32) -> (u32, u64) {
    (0, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns readings of a machine with this offset, from this count on.
    fn machine(offset: u32, from: u32) -> impl Iterator<Item = (u32, u64)> {
        (0..READINGS).map(move |number| {
            let count = from.wrapping_add(number * 20).wrapping_add(number.div_ceil(2));
            // As far as 32 bits go, and beyond: whole ticks.
            (count, (u64::from(count) + u64::from(offset)) / TICK)
        })
    }

    #[test]
    fn one_offset_is_left() {
        for offset in [0, 1, 15, 16, 17, 1_000_003] {
            assert_eq!(Phase::from_readings(machine(offset, 12_345)), Some(Phase { offset }), "{offset}");
        }
    }

    #[test]
    fn contradictions_are_noticed() {
        let interrupted =
            machine(5, 0).map(|(count, ticks)| if count > 1000 { (count, ticks + 3) } else { (count, ticks) });
        assert_eq!(Phase::from_readings(interrupted), None);
        assert_eq!(Phase::from_readings(core::iter::repeat_n((7, 0), 9)), None, "more than one value is left");
        assert_eq!(Phase::from_readings(core::iter::empty()), None);
    }

    #[test]
    fn a_deadline_is_a_number_of_instructions() {
        // Tick 100 is 1,600 ns, which is instruction 1,595: the reading that is instruction 1,600 comes after four
        // others.
        let phase = Phase { offset: 5 };
        assert_eq!(phase.latency(100, 1600), 4);
        // The count has wrapped, the counter has not.
        let deadline = ((1_u64 << 32) + 160) / TICK;
        assert_eq!(phase.latency(deadline, 200), 200 - 160 + 5 - 1);
        // A reading before the deadline.
        assert_eq!((phase.difference(100, 1590), phase.latency(100, 1590)), (-6, 0));
    }
}
