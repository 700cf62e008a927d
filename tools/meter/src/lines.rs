//! The cache lines that the kernel touches while interrupts are off.
//!
//! An *interrupts-off interval* is what the kernel's latency tracer takes for one: it begins with an exception, with
//! the masking at the end of a preemption point, or behind `wfi`, and ends with `eret`, with the unmasking at a
//! preemption point, or with `wfi`. The first interval of a core is boot, and does not count.
//!
//! No figure is too small: a line with two addresses counts twice, a line that is zeroed or cleaned by an instruction
//! of its own counts again if it is also read, and the lines of a block of instructions that was left early count.

use std::collections::HashMap;
use std::fmt::Write;

/// Number of intervals that a report has of data lines.
const REPORTED: usize = 12;
/// An interval is left out if another has this many times as many lines.
const FRACTION: usize = 4;
/// Log2 of a line's size.
const LINE_BITS: u32 = 6;

/// Lines, each with the address of the instruction that first touched it.
type Touched = HashMap<u64, u64>;

/// Interval.
#[derive(Debug, PartialEq, Eq)]
struct Interval {
    /// Address of the interval's first instruction.
    begin: u64,
    /// Address of its last.
    end: u64,
    /// Addresses of the instructions that first touched a line, one for each line.
    by: Vec<u64>,
}

/// The intervals with the most lines, by the instruction that touched the most in them: so a loop that touches many
/// lines does not hide the others.
#[derive(Debug, Default)]
struct Worst(HashMap<u64, Interval>);

/// Lines of one core.
#[derive(Default)]
pub struct Core {
    has_booted: bool,
    /// Address of the first instruction of the interval under way.
    begin: Option<u64>,
    data: Touched,
    code: Touched,
    /// Number of lines in this interval whose address is unknown.
    unnamed: u64,
    worst_data: Worst,
    worst_code: Worst,
}

impl Core {
    /// Records that adjacent instructions of the kernel are about to be executed.
    pub fn executes(&mut self, address: u64, bytes: u64) {
        self.begin.get_or_insert(address);
        for line in lines(address, bytes) {
            self.code.entry(line).or_insert(address);
        }
    }

    /// Records that an instruction of the kernel has read or written memory.
    pub fn accesses(&mut self, instruction: u64, address: u64, bytes: u64) {
        if self.begin.is_some() {
            for line in lines(address, bytes) {
                self.data.entry(line).or_insert(instruction);
            }
        }
    }

    /// Records that an instruction is about to zero or clean a line that it does not name.
    pub fn touches_a_line(&mut self, instruction: u64) {
        // No line has such a number.
        self.data.insert(u64::MAX - self.unnamed, instruction);
        self.unnamed += 1;
    }

    /// Records that interrupts are about to be let in by this instruction.
    pub fn ends(&mut self, address: u64) {
        let begin = self.begin.take();
        if let (Some(begin), true) = (begin, self.has_booted) {
            self.worst_data.keep(begin, address, &self.data);
            self.worst_code.keep(begin, address, &self.code);
        }
        self.has_booted |= begin.is_some();
        self.data.clear();
        self.code.clear();
        self.unnamed = 0;
    }

    /// Writes the worst intervals as text.
    pub fn report(&self) -> String {
        self.worst_data.text("data", REPORTED) + &self.worst_code.text("code", 1)
    }

    /// Returns whether an interval is under way.
    pub fn is_off(&self) -> bool {
        self.begin.is_some()
    }
}

impl Worst {
    /// Returns the number of lines of the worst interval.
    fn most(&self) -> usize {
        self.0.values().map(Interval::lines).max().unwrap_or(0)
    }

    /// Keeps this interval if it has more lines than those before it.
    fn keep(&mut self, begin: u64, end: u64, touched: &Touched) {
        if touched.len() * FRACTION <= self.most() {
            return;
        }
        let mut by: Vec<u64> = touched.values().copied().collect();
        by.sort_unstable();
        let runs = by.chunk_by(|one, next| one == next);
        let Some(most) = runs.max_by_key(|run| run.len()).map(|run| run[0]) else { return };
        if self.0.get(&most).is_none_or(|kept| kept.lines() < by.len()) {
            self.0.insert(most, Interval { begin, end, by });
        }
    }

    /// Returns the lines of the report for at most so many intervals, the worst first.
    fn text(&self, what: &str, reported: usize) -> String {
        let is_left = |interval: &Interval| interval.lines() * FRACTION > self.most();
        let mut intervals: Vec<(&u64, &Interval)> = self.0.iter().filter(|(_, interval)| is_left(interval)).collect();
        intervals.sort_by_key(|(most, interval)| (std::cmp::Reverse(interval.lines()), **most));
        intervals.iter().take(reported).map(|(_, interval)| interval.text(what)).collect()
    }
}

impl Interval {
    /// Returns the number of cache lines.
    fn lines(&self) -> usize {
        self.by.len()
    }

    /// Returns the lines of the report, each with a number of cache lines: of the interval, and of each instruction.
    fn text(&self, what: &str) -> String {
        let mut text = format!("{what} {} {:#x} {:#x}\n", self.lines(), self.begin, self.end);
        for same in self.by.chunk_by(|one, next| one == next) {
            let _ = writeln!(text, "by {} {:#x}", same.len(), same[0]);
        }
        text
    }
}

/// Returns the numbers of the lines in which these bytes lie.
fn lines(address: u64, bytes: u64) -> impl Iterator<Item = u64> {
    (address >> LINE_BITS)..=(address.saturating_add(bytes.saturating_sub(1)) >> LINE_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a core that has booted.
    fn core() -> Core {
        let mut core = Core::default();
        core.executes(0, 4);
        core.ends(0);
        core
    }

    #[test]
    fn the_interval_with_the_most_lines_is_reported_with_who_touched_them() {
        let mut core = core();
        for (begin, data) in [(0x1000, &[0x40_u64, 0x7f, 0x80][..]), (0x2000, &[0x40, 0x80, 0xc0]), (0x3000, &[0x40])] {
            core.executes(begin, 8);
            data.iter().for_each(|address| core.accesses(begin + 4, *address, 1));
            core.ends(begin + 8);
        }
        let data =
            "data 3 0x2000 0x2008\nby 3 0x2004\ndata 2 0x1000 0x1008\nby 2 0x1004\ndata 1 0x3000 0x3008\nby 1 0x3004\n";
        assert_eq!(core.worst_data.text("data", 3), data);
        assert!(core.report().ends_with("\ncode 1 0x1000 0x1008\nby 1 0x1000\n"));
    }

    #[test]
    fn what_crosses_a_line_touches_both() {
        let mut core = core();
        core.executes(0x103c, 8);
        core.accesses(0x1040, 0x7c, 8);
        core.ends(0x1040);
        assert_eq!((core.worst_data.most(), core.worst_code.most()), (2, 2));
    }

    #[test]
    fn lines_without_an_address_all_count() {
        let mut core = core();
        core.executes(0x1000, 4);
        (0..5).for_each(|_| core.touches_a_line(0x1000));
        core.ends(0x1004);
        core.executes(0x1000, 4);
        (0..4).for_each(|_| core.touches_a_line(0x1000));
        core.ends(0x1004);
        assert_eq!(core.worst_data.0[&0x1000].by, [0x1000; 5]);
    }

    #[test]
    fn neither_boot_nor_what_lies_between_intervals_counts() {
        let mut core = Core::default();
        core.executes(0x1000, 640);
        core.ends(0x1000);
        core.accesses(0x1000, 0x40, 8);
        assert!(!core.is_off());
        core.ends(0x1004);
        assert_eq!((core.worst_data.most(), core.worst_code.most()), (0, 0));
    }
}
