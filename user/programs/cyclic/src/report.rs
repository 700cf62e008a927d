//! The report: lines and tables of text.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use crate::histogram::{Histogram, Quantile};
use crate::statistics::Figures;
use crate::{Options, Unit};

/// Placeholder for an unknown number.
const UNKNOWN: &str = "-";
/// The quantiles that are reported, in thousandths, with their names.
const PARTS: [(u64, &str); 4] = [(500, "50 %"), (900, "90 %"), (990, "99 %"), (999, "99.9 %")];

/// Returns a thread's line.
pub fn line(options: &Options, thread: u64, figures: &Figures) -> String {
    let unit = options.unit;
    let shown = |value: Option<u64>| match value {
        Some(value) => format!("{}", unit.count(value)),
        None => UNKNOWN.into(),
    };
    // The priority of a reservation changes when others come.
    let priority = options.reserve.map_or_else(|| format!("{}", options.priority_of(thread)), |_| UNKNOWN.into());
    let has_run = |value| shown((figures.cycles > 0).then_some(value));
    format!(
        "T:{thread:2} P:{:>3} I:{:6} C:{:7} Min:{:>6} Act:{:>6} Avg:{:>6} Max:{:>6} Overruns:{:4}",
        priority,
        options.interval_of(thread) / 1000,
        figures.cycles,
        has_run(figures.least),
        has_run(figures.last),
        shown(figures.mean()),
        has_run(figures.most),
        figures.overruns
    )
}

/// Returns the lines of all threads, the first on top.
pub fn lines(options: &Options, figures: &[Figures]) -> String {
    let lines: Vec<String> = (0..).zip(figures).map(|(thread, figures)| line(options, thread, figures)).collect();
    lines.join("\n")
}

/// Returns the histograms of all threads side by side: a line for each bucket that is not empty, then the total, the
/// number of values beyond the last bucket, and the quantiles. Lines that belong to no bucket begin with `#`.
pub fn table(unit: Unit, histograms: &[&Histogram]) -> String {
    let mut text = String::new();
    let width = histograms.first().map_or(1, |histogram| histogram.width());
    let mut row = |name: &str, cells: &mut dyn Iterator<Item = String>| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{name:>12}");
        for cell in cells {
            let _ = write!(text, " {cell:>9}");
        }
        text.push('\n');
    };
    row(&format!("# {}", unit.name()), &mut (0..histograms.len()).map(|thread| format!("T{thread}")));
    let used = histograms.iter().map(|histogram| histogram.used()).max().unwrap_or(0);
    for bucket in 0..used {
        let count = |histogram: &&Histogram| histogram.counts().get(bucket).copied().unwrap_or(0);
        if histograms.iter().any(|histogram| count(histogram) > 0) {
            let from = unit.count(bucket as u64 * width);
            row(&format!("{from}"), &mut histograms.iter().map(|histogram| format!("{}", count(histogram))));
        }
    }
    row("# all", &mut histograms.iter().map(|histogram| format!("{}", histogram.total())));
    row("# beyond", &mut histograms.iter().map(|histogram| format!("{}", histogram.beyond())));
    for (part, name) in PARTS {
        let cell = |histogram: &&Histogram| match histogram.quantile(part, 1000) {
            Quantile::Below(end) => format!("<{}", unit.count(end)),
            Quantile::Beyond => "beyond".into(),
            Quantile::Unknown => UNKNOWN.into(),
        };
        row(&format!("# {name}"), &mut histograms.iter().map(cell));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use tench_options::Command;

    fn options(line: &str) -> Options {
        match Options::parse(line.split_whitespace(), 180) {
            Ok(Command::Do(options)) => options,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn a_line_says_everything() {
        let figures = Figures { cycles: 1000, overruns: 2, least: 3_999, last: 4_000, most: 12_345, sum: 5_000_000 };
        assert_eq!(
            line(&options("-t 2"), 1, &figures),
            "T: 1 P:179 I:  1500 C:   1000 Min:     3 Act:     4 Avg:     5 Max:    12 Overruns:   2"
        );
        assert_eq!(
            line(&options("-N"), 0, &figures),
            "T: 0 P:180 I:  1000 C:   1000 Min:  3999 Act:  4000 Avg:  5000 Max: 12345 Overruns:   2"
        );
        assert_eq!(
            lines(&options("-t 2"), &[Figures::default(); 2]),
            "T: 0 P:180 I:  1000 C:      0 Min:     - Act:     - Avg:     - Max:     - Overruns:   0\n\
             T: 1 P:179 I:  1500 C:      0 Min:     - Act:     - Avg:     - Max:     - Overruns:   0"
        );
    }

    #[test]
    fn a_table_has_only_what_is_there() {
        let (mut one, mut two) = (Histogram::new(1000, 8), Histogram::new(1000, 8));
        [3_000, 3_999, 5_100, 5_900].into_iter().for_each(|value| one.record(value));
        [6_000, 9_000].into_iter().for_each(|value| two.record(value));
        let expected = "        # µs        T0        T1
           3         2         0
           5         2         0
           6         0         1
       # all         4         2
    # beyond         0         1
      # 50 %        <4        <7
      # 90 %        <6    beyond
      # 99 %        <6    beyond
    # 99.9 %        <6    beyond
";
        assert_eq!(table(Unit::Microseconds, &[&one, &two]), expected);
        let empty = Histogram::new(1, 8);
        let text = table(Unit::Nanoseconds, &[&empty]);
        assert_eq!(text.lines().count(), 7);
        assert!(text.contains("# ns") && text.contains("# 50 %         -"));
    }
}
