//! The options of the command line.

use alloc::format;
use alloc::string::String;
use core::time::Duration;

use tench_options::{Command, Entry, Options as Words, help};

use crate::Unit;

/// Usage of the program.
const USAGE: &str = "usage: cyclic [OPTION...]
Threads want to run at regular times; says how late they do, until a number of turns, a time, or Ctrl-C.
";

/// The options.
const ENTRIES: &[Entry] = &[
    Entry::valued(Some('t'), "threads", "N", "threads that measure (1)"),
    Entry::valued(Some('p'), "priority", "N", "priority of the first; each next one has one less (the ceiling)"),
    Entry::valued(Some('i'), "interval", "US", "microseconds between the first one's times (1000)"),
    Entry::valued(Some('d'), "distance", "US", "how much longer the interval of each next one is (500)"),
    Entry::valued(Some('r'), "reserve", "US", "microseconds reserved in each interval; gives the priority"),
    Entry::valued(Some('l'), "loops", "N", "turns of each thread (no end)"),
    Entry::valued(Some('D'), "duration", "TIME", "ends after 500ms, 10s, 2m (no end)"),
    Entry::valued(Some('h'), "histogram", "N", "counts how often a thread was how late, up to N units"),
    Entry::valued(Some('w'), "bucket", "N", "units that are counted together (1)"),
    Entry::valued(None, "svg", "FILE", "draws the histogram; -: on standard output, instead of text"),
    Entry::valued(Some('b'), "break", "N", "ends with status 1 when a thread is more than N units late"),
    Entry::flag(Some('q'), "quiet", "says nothing before the end"),
    Entry::flag(Some('N'), "nanoseconds", "the unit is the nanosecond; without it, the microsecond"),
    Entry::flag(None, "instructions", "the unit is the instruction (./tench run --icount)"),
    Entry::flag(None, "help", "prints this"),
];

/// Maximum number of threads.
pub const MAX_THREADS: u64 = 32;
/// Shortest and longest interval in microseconds.
pub const INTERVALS: (u64, u64) = (50, 60_000_000);
/// Maximum number of times per second that all threads together may want to run. As they have a higher priority than
/// the shell, they must leave time for it.
pub const MAX_RATE: u64 = 20_000;
/// Maximum number of buckets of a histogram.
pub const MAX_BUCKETS: u64 = 20_000;
/// Maximum number of units of lateness that can be asked for.
const MAX_UNITS: u64 = 1_000_000_000;

/// The parameters of a measurement and of its report. Times without a unit in their type are nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Number of threads.
    pub threads: u64,
    /// Priority of the first thread.
    pub priority: u8,
    /// Interval of the first thread.
    pub interval: u64,
    /// Difference between the intervals of one thread and the next.
    pub distance: u64,
    /// Budget that each thread reserves in each of its intervals. The reservation then determines its priority.
    pub reserve: Option<u64>,
    /// Number of turns of each thread; 0 for no end.
    pub loops: u64,
    /// Duration of the measurement.
    pub duration: Option<Duration>,
    /// Width and number of a histogram's buckets.
    pub histogram: Option<(u64, usize)>,
    /// Path of the file in which the histogram is drawn.
    pub svg: Option<String>,
    /// Maximum lateness of a thread.
    pub limit: Option<u64>,
    /// Set to print nothing before the end.
    pub quiet: bool,
    /// Unit of lateness.
    pub unit: Unit,
}

impl Options {
    /// Returns the interval of a thread, in nanoseconds.
    pub const fn interval_of(&self, thread: u64) -> u64 {
        self.interval + self.distance * thread
    }

    /// Returns the priority of a thread.
    pub const fn priority_of(&self, thread: u64) -> u8 {
        self.priority - thread as u8
    }

    /// Parses the words after the program's name, for a program of this ceiling. The error is a line for the user.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>, ceiling: u8) -> Result<Command<Options>, String> {
        let words = Words::parse(words, ENTRIES)?;
        if words.has("help") {
            return Ok(Command::Help(format!("{USAGE}{}", help(ENTRIES))));
        }
        if let Some(argument) = words.arguments.first() {
            return Err(format!("'{argument}' is not understood; there are only options, which --help lists"));
        }
        let unit = match (words.has("nanoseconds"), words.has("instructions")) {
            (true, true) => return Err("--nanoseconds and --instructions exclude each other".into()),
            (true, false) => Unit::Nanoseconds,
            (false, true) => Unit::Instructions,
            (false, false) => Unit::Microseconds,
        };
        let threads = words.number("threads", 1..=MAX_THREADS.min(u64::from(ceiling)))?.unwrap_or(1);
        // The last thread's priority must not be 0, with which it would run only when no other thread wants to.
        let priority = words.number("priority", threads..=u64::from(ceiling))?.unwrap_or(u64::from(ceiling));
        if words.has("priority") && words.has("reserve") {
            return Err("--priority and --reserve exclude each other: a reservation gives the priority".into());
        }
        let microseconds = |name, least, otherwise| -> Result<u64, String> {
            Ok(words.number(name, least..=INTERVALS.1)?.unwrap_or(otherwise) * 1000)
        };
        let options = Options {
            threads,
            priority: priority as u8,
            interval: microseconds("interval", INTERVALS.0, 1000)?,
            distance: microseconds("distance", 0, 500)?,
            reserve: words.number("reserve", 1..=INTERVALS.1)?.map(|microseconds| microseconds * 1000),
            loops: words.number("loops", 0..=u64::MAX)?.unwrap_or(0),
            duration: words.time("duration")?,
            histogram: buckets(&words, unit)?,
            svg: words.value("svg").map(String::from),
            limit: words.number("break", 0..=MAX_UNITS)?.map(|limit| limit * unit.nanoseconds()),
            quiet: words.has("quiet"),
            unit,
        };
        if options.svg.is_some() && options.histogram.is_none() {
            return Err("--svg draws the histogram; --histogram N says how far it goes".into());
        }
        if options.svg.as_deref() == Some("") {
            return Err("--svg takes the name of a file, or - for standard output".into());
        }
        let rate: u64 = (0..threads).map(|thread| 1_000_000_000 / options.interval_of(thread)).sum();
        if rate > MAX_RATE {
            return Err(format!(
                "these threads want to run {rate} times a second; allowed are {MAX_RATE}: take a longer --interval or --distance"
            ));
        }
        Ok(Command::Do(options))
    }
}

/// Returns the width in nanoseconds and the number of a histogram's buckets.
fn buckets(words: &Words<'_>, unit: Unit) -> Result<Option<(u64, usize)>, String> {
    let width = words.number("bucket", 1..=MAX_UNITS)?;
    let Some(limit) = words.number("histogram", 1..=MAX_UNITS)? else {
        return match width {
            Some(_) => Err("--bucket divides a histogram; --histogram N says how far it goes".into()),
            None => Ok(None),
        };
    };
    let width = width.unwrap_or(1);
    let count = limit.div_ceil(width);
    if count > MAX_BUCKETS {
        let least = limit.div_ceil(MAX_BUCKETS);
        return Err(format!(
            "a histogram has at most {MAX_BUCKETS} buckets, not {count}; --bucket {least} makes them wide enough"
        ));
    }
    Ok(Some((width * unit.nanoseconds(), count as usize)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CEILING: u8 = 180;

    fn parsed(line: &str) -> Result<Options, String> {
        match Options::parse(line.split_whitespace(), CEILING)? {
            Command::Do(options) => Ok(options),
            Command::Help(text) => Err(text),
        }
    }

    #[test]
    fn the_default_is_one_endless_thread_at_the_ceiling() {
        let options = Options {
            threads: 1,
            priority: 180,
            interval: 1_000_000,
            distance: 500_000,
            reserve: None,
            loops: 0,
            duration: None,
            histogram: None,
            svg: None,
            limit: None,
            quiet: false,
            unit: Unit::Microseconds,
        };
        assert_eq!(parsed(""), Ok(options));
    }

    #[test]
    fn all_options_are_parsed() {
        let line = "-t 3 -p 90 -i 200 -d 50 -l 1000 -D 2s -h 100 -w 4 --svg - -b 60 -q";
        let options = parsed(line).unwrap();
        let expected = Options {
            threads: 3,
            priority: 90,
            interval: 200_000,
            distance: 50_000,
            reserve: None,
            loops: 1000,
            duration: Some(Duration::from_secs(2)),
            histogram: Some((4000, 25)),
            svg: Some("-".into()),
            limit: Some(60_000),
            quiet: true,
            unit: Unit::Microseconds,
        };
        assert_eq!(options, expected);
        assert_eq!((options.interval_of(2), options.priority_of(2)), (300_000, 88));
        let options = parsed("-N --histogram 1000 --break 500").unwrap();
        assert_eq!((options.histogram, options.limit, options.unit), (Some((1, 1000)), Some(500), Unit::Nanoseconds));
        assert_eq!(parsed("-r 250 -t 2").unwrap().reserve, Some(250_000));
        assert_eq!(parsed("--instructions").unwrap().unit, Unit::Instructions);
        assert_eq!(parsed("-h 10 -w 4").unwrap().histogram, Some((4000, 3)), "the last bucket may reach further");
        assert!(parsed("-t 32 -p 32 -d 2000").is_ok(), "the last one has priority 1");
    }

    #[test]
    fn the_help_has_every_option() {
        let text = parsed("-q --help").unwrap_err();
        assert!(text.starts_with("usage: cyclic") && !text.ends_with('\n'));
        assert!(ENTRIES.iter().all(|entry| text.contains(entry.long) && text.contains(entry.help)));
        assert!(text.lines().all(|line| line.chars().count() <= 110));
    }

    #[test]
    fn every_mistake_has_one_helpful_line() {
        let mistakes = [
            ("10", "'10' is not understood"),
            ("-t 0", "--threads takes a number from 1 to 32, not '0'"),
            ("-t 33", "--threads takes a number from 1 to 32, not '33'"),
            ("-p 181", "--priority takes a number from 1 to 180, not '181'"),
            ("-t 3 -p 2", "--priority takes a number from 3 to 180, not '2'"),
            ("-i 49", "--interval takes a number from 50 to 60000000"),
            ("-d -1", "--distance takes a number from 0 to"),
            ("-t 2 -i 50 -d 0", "want to run 40000 times a second; allowed are 20000"),
            ("-D 0", "--duration takes a time such as"),
            ("-h 0", "--histogram takes a number from 1"),
            ("-h 20001", "at most 20000 buckets, not 20001; --bucket 2 makes them"),
            ("-w 2", "--histogram N says how far"),
            ("--svg -", "--histogram N says how far"),
            ("--svg= -h 5", "--svg takes the name of a file"),
            ("-N --instructions", "exclude each other"),
            ("-r 0", "--reserve takes a number from 1 to 60000000"),
            ("-r 100 -p 100", "a reservation gives the priority"),
            ("--foo", "there is no option --foo"),
        ];
        for (line, part) in mistakes {
            let error = parsed(line).unwrap_err();
            assert!(error.contains(part) && !error.contains('\n'), "{line}: {error}");
        }
        assert!(
            Options::parse(["-t", "5"], 4).unwrap_err().contains("from 1 to 4"),
            "each needs a priority of its own"
        );
    }
}
