//! The cache lines that the kernel touches while interrupts are off, as the emulator's plug-in reports them
//! (`tools/meter`):
//!
//! ```text
//! data LINES BEGIN END         an interval; for each kind the worst comes first
//! by LINES ADDRESS             how many of its lines were first touched by this instruction
//! code LINES BEGIN END         the same for instructions
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use miette::{IntoDiagnostic, Result, WrapErr, miette};

use super::measure::Measured;
use crate::symbols::Symbols;

/// Key of the figure: the number of data lines touched in the interval that touches most.
pub const LINES_WORST: &str = "lines_worst";
/// Number of instructions that are shown of each interval.
const SHOWN: usize = 3;

/// Interval.
#[derive(Debug, Default, PartialEq, Eq)]
struct Interval {
    is_data: bool,
    lines: u64,
    begin: u64,
    end: u64,
    /// Numbers of lines with the instructions that first touched them.
    by: Vec<(u64, u64)>,
}

/// Takes the figures from the plug-in's report, and shows the worst intervals with their symbols.
pub fn take(file: &Path, symbols: &mut Symbols, (name, prefix): (&str, &str), measured: &mut Measured) -> Result<()> {
    let text = std::fs::read_to_string(file).into_diagnostic().wrap_err("the plug-in's report")?;
    let intervals = parse(&text).ok_or_else(|| miette!("the plug-in's report is not one: {}", file.display()))?;
    let mut names = |address: u64| frames(symbols, address);
    for interval in &intervals {
        eprintln!("{name}: {}", interval.describe(&mut names));
    }
    let worst = intervals.iter().find(|interval| interval.is_data);
    let worst = worst.ok_or_else(|| miette!("the plug-in has seen no interval with interrupts off"))?;
    measured.figure(format!("{prefix}{LINES_WORST}"), worst.lines as f64);
    Ok(())
}

/// Returns the functions at an address, from the innermost outwards.
fn frames(symbols: &mut Symbols, address: u64) -> Vec<String> {
    // A line without an address begins a new report.
    symbols.explain("");
    let lines = symbols.explain(&format!("  at {address:#x}"));
    lines
        .iter()
        .map(|line| line.trim())
        .map(|line| line.strip_prefix("inlined into ").unwrap_or(line).to_owned())
        .collect()
}

/// Returns the intervals of a report; `None` if it is malformed.
fn parse(text: &str) -> Option<Vec<Interval>> {
    let number = |word: &str| match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    };
    let mut intervals: Vec<Interval> = Vec::new();
    for line in text.lines() {
        match line.split(' ').collect::<Vec<_>>()[..] {
            [kind @ ("data" | "code"), lines, begin, end] => intervals.push(Interval {
                is_data: kind == "data",
                lines: number(lines)?,
                begin: number(begin)?,
                end: number(end)?,
                by: Vec::new(),
            }),
            ["by", lines, address] => intervals.last_mut()?.by.push((number(lines)?, number(address)?)),
            _ => return None,
        }
    }
    Some(intervals)
}

impl Interval {
    /// Returns words about the interval, with the functions that touched most of its lines.
    fn describe(&self, names: &mut impl FnMut(u64) -> Vec<String>) -> String {
        let what = if self.is_data { "data" } else { "instructions" };
        let mut place = |address: u64| format!("{address:#x} ({})", path(&names(address)));
        let (begin, end) = (place(self.begin), place(self.end));
        let mut functions = BTreeMap::<String, u64>::new();
        for (lines, address) in &self.by {
            *functions.entry(path(&names(*address))).or_default() += lines;
        }
        let mut functions: Vec<(String, u64)> = functions.into_iter().collect();
        functions.sort_by_key(|(_, lines)| std::cmp::Reverse(*lines));
        let mut text = format!("{} lines of {what}, from {begin} to {end}", self.lines);
        for (function, lines) in functions.iter().take(SHOWN) {
            text += &format!("\n  {lines:>6} in {function}");
        }
        text
    }
}

/// Returns the innermost function at an address, and the one that it was inlined into, without their places.
fn path(frames: &[String]) -> String {
    let name = |frame: &String| frame.split(" (").next().unwrap_or_default().to_owned();
    match frames {
        [] => "an unknown function".to_owned(),
        [only] => name(only),
        [innermost, .., outermost] => format!("{}, inlined into {}", name(innermost), name(outermost)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "data 5 0x10 0x20\nby 1 0x10\nby 2 0x14\nby 2 0x18\ncode 2 0x30 0x40\nby 2 0x30\n";

    #[test]
    fn a_report_is_read_and_a_malformed_one_refused() {
        let intervals = parse(REPORT).unwrap();
        assert_eq!((intervals[0].lines, intervals[0].begin, intervals[0].end), (5, 0x10, 0x20));
        assert_eq!(intervals[0].by, [(1, 0x10), (2, 0x14), (2, 0x18)]);
        assert!(intervals[0].is_data && !intervals[1].is_data);
        for bad in ["by 1 0x10", "data 5 0x10", "data x 0x10 0x20", "words 5 0x10 0x20", "data 5 0x1g 0x20"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_functions_that_touch_most_are_named_first() {
        let mut names = |address: u64| match address {
            0x10 => vec!["entry (a.rs:1)".to_owned()],
            0x14 | 0x18 => vec!["search (b.rs:2)".to_owned(), "make (b.rs:9)".to_owned()],
            _ => Vec::new(),
        };
        let text = parse(REPORT).unwrap()[0].describe(&mut names);
        let expected = "5 lines of data, from 0x10 (entry) to 0x20 (an unknown function)\n       4 in search, inlined into make\n       1 in entry";
        assert_eq!(text, expected);
    }
}
