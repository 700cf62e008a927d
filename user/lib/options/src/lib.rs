//! Command-line options in the usual forms: `-q`, `-t 3`, `-t3`, `--threads 3`, `--threads=3`.
//!
//! A program has a table of [`Entry`], from which come the parsing, the help, and the errors, each of which says what
//! is allowed. A word that is not an option is an argument; `--` ends the options. A program whose options determine
//! all that it does begins with [`start`].

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

mod command;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::RangeInclusive;
use core::time::Duration;

pub use command::{Command, start};

/// An option of a program.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Letter of the option, after one `-`.
    pub short: Option<char>,
    /// Name of the option, after `--`.
    pub long: &'static str,
    /// Name of its value in the help; empty for an option without a value.
    pub value: &'static str,
    /// Description of the option in the help.
    pub help: &'static str,
}

impl Entry {
    /// Returns an option without a value.
    pub const fn flag(short: Option<char>, long: &'static str, help: &'static str) -> Entry {
        Entry { short, long, value: "", help }
    }

    /// Returns an option with a value.
    pub const fn valued(short: Option<char>, long: &'static str, value: &'static str, help: &'static str) -> Entry {
        Entry { short, long, value, help }
    }

    const fn takes_value(&self) -> bool {
        !self.value.is_empty()
    }
}

/// The parsed command line.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    /// Names of options and their values, as given.
    given: Vec<(&'static str, &'a str)>,
    /// Arguments, in order.
    pub arguments: Vec<&'a str>,
}

impl<'a> Options<'a> {
    /// Parses the words after the program's name. The error is a line for the user.
    pub fn parse(words: impl IntoIterator<Item = &'a str>, entries: &'static [Entry]) -> Result<Options<'a>, String> {
        let mut options = Options { given: Vec::new(), arguments: Vec::new() };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            if word == "--" {
                options.arguments.extend(words);
                break;
            } else if let Some(name) = word.strip_prefix("--") {
                options.take_long(name, entries, &mut words)?;
            } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
                options.take_short(letters, entries, &mut words)?;
            } else {
                options.arguments.push(word);
            }
        }
        Ok(options)
    }

    /// Parses `name`, `name=value`, or `name` with its value in the next word.
    fn take_long(
        &mut self,
        name: &'a str,
        entries: &'static [Entry],
        words: &mut impl Iterator<Item = &'a str>,
    ) -> Result<(), String> {
        let (name, joined) = name.split_once('=').map_or((name, None), |(name, value)| (name, Some(value)));
        let Some(entry) = entries.iter().find(|entry| entry.long == name) else {
            return Err(format!("there is no option --{name}; --help lists them"));
        };
        let value = match (entry.takes_value(), joined) {
            (false, None) => "",
            (false, Some(_)) => return Err(format!("--{name} takes no value")),
            (true, Some(value)) => value,
            (true, None) => words.next().ok_or_else(|| missing(entry))?,
        };
        self.given.push((entry.long, value));
        Ok(())
    }

    /// Parses letters of options without a value, then perhaps one with a value, which is the rest or the next word.
    fn take_short(
        &mut self,
        letters: &'a str,
        entries: &'static [Entry],
        words: &mut impl Iterator<Item = &'a str>,
    ) -> Result<(), String> {
        for (place, letter) in letters.char_indices() {
            let Some(entry) = entries.iter().find(|entry| entry.short == Some(letter)) else {
                return Err(format!("there is no option -{letter}; --help lists them"));
            };
            if entry.takes_value() {
                let rest = &letters[place + letter.len_utf8()..];
                let value = if rest.is_empty() { words.next().ok_or_else(|| missing(entry))? } else { rest };
                self.given.push((entry.long, value));
                break;
            }
            self.given.push((entry.long, ""));
        }
        Ok(())
    }

    /// Returns whether an option was given.
    pub fn has(&self, long: &str) -> bool {
        self.given.iter().any(|given| given.0 == long)
    }

    /// Returns the last value of an option.
    pub fn value(&self, long: &str) -> Option<&'a str> {
        self.given.iter().rev().find(|given| given.0 == long).map(|given| given.1)
    }

    /// Returns an option's number, which must be in a range.
    pub fn number(&self, long: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, String> {
        let Some(text) = self.value(long) else { return Ok(None) };
        match text.parse() {
            Ok(value) if range.contains(&value) => Ok(Some(value)),
            _ => Err(format!("--{long} takes a number from {} to {}, not '{text}'", range.start(), range.end())),
        }
    }

    /// Returns an option's time: see [`time`].
    pub fn time(&self, long: &str) -> Result<Option<Duration>, String> {
        let Some(text) = self.value(long) else { return Ok(None) };
        match time(text) {
            Some(value) => Ok(Some(value)),
            None => Err(format!("--{long} takes a time such as 2s, 500ms or 1m, not '{text}'")),
        }
    }
}

/// Parses a time of at least a microsecond and at most a hundred days: a number, and `us`, `ms`, `s`, `m` or `h` (the
/// default is seconds).
pub fn time(text: &str) -> Option<Duration> {
    const MOST: u64 = 100 * 86_400 * 1_000_000;
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let microseconds: u64 = match unit {
        "us" => 1,
        "ms" => 1000,
        "" | "s" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        _ => return None,
    };
    let value = number.parse::<u64>().ok()?.checked_mul(microseconds)?;
    (1..=MOST).contains(&value).then(|| Duration::from_micros(value))
}

fn missing(entry: &Entry) -> String {
    format!("--{} needs a value: {}", entry.long, entry.value)
}

/// Returns the help about options, a line for each.
pub fn help(entries: &[Entry]) -> String {
    let name = |entry: &Entry| {
        let short = entry.short.map_or_else(|| String::from("    "), |letter| format!("-{letter}, "));
        let gap = if entry.takes_value() { " " } else { "" };
        format!("{short}--{}{gap}{}", entry.long, entry.value)
    };
    let width = entries.iter().map(|entry| name(entry).chars().count()).max().unwrap_or(0);
    let lines: Vec<String> = entries.iter().map(|entry| format!("  {:width$}  {}", name(entry), entry.help)).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const ENTRIES: &[Entry] = &[
        Entry::valued(Some('t'), "threads", "N", "how many"),
        Entry::flag(Some('q'), "quiet", "say less"),
        Entry::flag(Some('v'), "verbose", "say more"),
        Entry::valued(None, "for", "TIME", "how long"),
    ];

    fn parsed(line: &str) -> Result<Options<'_>, String> {
        Options::parse(line.split_whitespace(), ENTRIES)
    }

    #[test]
    fn an_option_can_be_written_in_several_ways() {
        for line in ["-t 3 -q", "-t3 -q", "-qt3", "-qt 3", "--threads 3 --quiet", "--quiet --threads=3", "-t 9 -t 3 -q"]
        {
            let options = parsed(line).unwrap();
            assert_eq!(options.number("threads", 1..=8), Ok(Some(3)), "{line}");
            assert!(options.has("quiet") && !options.has("verbose") && options.arguments.is_empty(), "{line}");
        }
        let options = parsed("a -q b - -- -t --x").unwrap();
        assert_eq!(options.arguments, ["a", "b", "-", "-t", "--x"]);
        assert_eq!(options.number("threads", 1..=8), Ok(None));
    }

    #[test]
    fn every_mistake_says_what_is_allowed() {
        let mistakes = [
            ("-x", "there is no option -x; --help lists them"),
            ("-qx", "there is no option -x; --help lists them"),
            ("--thread 3", "there is no option --thread; --help lists them"),
            ("-t", "--threads needs a value: N"),
            ("-qt", "--threads needs a value: N"),
            ("--threads", "--threads needs a value: N"),
            ("--quiet=yes", "--quiet takes no value"),
            ("-é", "there is no option -é; --help lists them"),
        ];
        for (line, expected) in mistakes {
            assert_eq!(parsed(line).unwrap_err(), expected, "{line}");
        }
        for bad in ["0", "9", "-1", "x", "3x", "", "99999999999999999999"] {
            let words = vec!["--threads", bad];
            let error = Options::parse(words, ENTRIES).unwrap().number("threads", 1..=8).unwrap_err();
            assert_eq!(error, format!("--threads takes a number from 1 to 8, not '{bad}'"));
        }
    }

    #[test]
    fn times_have_units() {
        let good =
            [("2", 2_000_000), ("2s", 2_000_000), ("5ms", 5000), ("7us", 7), ("1m", 60_000_000), ("2h", 7_200_000_000)];
        for (text, microseconds) in good {
            assert_eq!(time(text), Some(Duration::from_micros(microseconds)), "{text}");
        }
        for bad in [
            "",
            "0",
            "0s",
            "s",
            "-1",
            "1.5",
            "2 s",
            "3x",
            "2400h1",
            "2401h",
            "99999999999999999999",
            "18446744073709551615h",
        ] {
            assert_eq!(time(bad), None, "{bad}");
        }
        let error = parsed("--for 3x").unwrap().time("for").unwrap_err();
        assert_eq!(error, "--for takes a time such as 2s, 500ms or 1m, not '3x'");
        assert_eq!(parsed("--for 3").unwrap().time("for"), Ok(Some(Duration::from_secs(3))));
    }

    #[test]
    fn the_help_is_a_table() {
        let expected = "  -t, --threads N  how many\n  -q, --quiet      say less\n  -v, --verbose    say more\n      --for TIME   how long";
        assert_eq!(help(ENTRIES), expected);
    }
}
