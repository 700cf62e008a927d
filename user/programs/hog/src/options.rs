//! The options of the command line.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use tench_options::{Command, Entry, Options as Words, help};

use crate::Load;

/// Usage of the program.
const USAGE: &str = "usage: hog [OPTION...] cpu|ipc|memory|interrupts|all...
Uses the machine, for a time or until Ctrl-C, and says how much it did. Memory that it took it gives back.
  cpu         calculates
  ipc         calls a server of its own, with 64 words and four capabilities, and as many words back
  memory      maps, touches and unmaps memory; makes frames of untyped memory and revokes them
  interrupts  waits for deadlines, each as soon as possible, and signals itself
";

/// The options.
const ENTRIES: &[Entry] = &[
    Entry::valued(Some('t'), "threads", "N", "threads for each kind of load (1)"),
    Entry::valued(
        Some('p'),
        "priority",
        "N",
        "priority of the threads; with interrupts one more (100, or the ceiling)",
    ),
    Entry::valued(Some('s'), "share", "PERCENT", "how much of the time all threads work together (100)"),
    Entry::valued(Some('D'), "duration", "TIME", "ends after 500ms, 10s, 2m (no end)"),
    Entry::flag(None, "help", "prints this"),
];

/// Maximum number of threads of a kind.
pub const MAX_THREADS: u64 = 16;
/// The default priority, which is that of programs.
const PRIORITY: u8 = 100;

/// The parameters of the loads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Kinds of load, each once.
    pub loads: Vec<Load>,
    /// Number of threads of each kind.
    pub threads: u64,
    /// Priority of the threads.
    pub priority: u8,
    /// The highest priority that this program may give.
    pub ceiling: u8,
    /// Share of the time in percent.
    pub share: u64,
    /// Duration.
    pub duration: Option<Duration>,
}

impl Options {
    /// Returns the priority of a thread with this load. A thread that waits for a moment would not get it behind others
    /// that never wait, so one that does nothing else gets a higher priority, if it may.
    pub fn priority_of(&self, load: Load) -> u8 {
        match load {
            Load::Interrupts => self.priority.saturating_add(1).min(self.ceiling),
            _ => self.priority,
        }
    }

    /// Parses the words after the program's name, for a program of this ceiling. The error is a line for the user.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>, ceiling: u8) -> Result<Command<Options>, String> {
        let words = Words::parse(words, ENTRIES)?;
        if words.has("help") {
            return Ok(Command::Help(format!("{USAGE}{}", help(ENTRIES))));
        }
        let mut loads = Vec::new();
        for argument in &words.arguments {
            match Load::ALL.into_iter().find(|load| load.name() == *argument) {
                Some(load) => loads.push(load),
                None if *argument == "all" => loads.extend(Load::ALL),
                None => return Err(format!("'{argument}' is no load; there are cpu, ipc, memory, interrupts and all")),
            }
        }
        loads.sort_unstable();
        loads.dedup();
        if loads.is_empty() {
            return Err("what load? cpu, ipc, memory, interrupts or all; --help says more".to_string());
        }
        let ceiling = ceiling.max(1);
        let priority = words.number("priority", 1..=u64::from(ceiling))?;
        Ok(Command::Do(Options {
            loads,
            threads: words.number("threads", 1..=MAX_THREADS)?.unwrap_or(1),
            priority: priority.map_or(PRIORITY.min(ceiling), |priority| priority as u8),
            ceiling,
            share: words.number("share", 1..=100)?.unwrap_or(100),
            duration: words.time("duration")?,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options, String> {
        match Options::parse(line.split_whitespace(), 118)? {
            Command::Do(options) => Ok(options),
            Command::Help(text) => Err(text),
        }
    }

    #[test]
    fn a_load_is_enough() {
        let options =
            Options { loads: [Load::Cpu].into(), threads: 1, priority: 100, ceiling: 118, share: 100, duration: None };
        assert_eq!(parsed("cpu"), Ok(options));
        assert!(matches!(Options::parse(["cpu"], 50), Ok(Command::Do(options)) if options.priority == 50));
    }

    #[test]
    fn all_options_are_parsed() {
        let options = parsed("memory -t 3 -p 118 cpu memory -s 30 -D 2s").unwrap();
        let expected = Options {
            loads: [Load::Cpu, Load::Memory].into(),
            threads: 3,
            priority: 118,
            ceiling: 118,
            share: 30,
            duration: Some(Duration::from_secs(2)),
        };
        assert_eq!(options, expected);
        assert_eq!((options.priority_of(Load::Cpu), options.priority_of(Load::Interrupts)), (118, 118));
        let options = parsed("cpu all").unwrap();
        assert_eq!(options.loads, Load::ALL);
        assert_eq!((options.priority_of(Load::Ipc), options.priority_of(Load::Interrupts)), (100, 101));
    }

    #[test]
    fn the_help_has_every_load_and_option() {
        let text = parsed("--help").unwrap_err();
        assert!(Load::ALL.iter().all(|load| text.contains(load.name())));
        assert!(ENTRIES.iter().all(|entry| text.contains(entry.long) && text.contains(entry.help)));
        assert!(text.lines().all(|line| line.chars().count() <= 110));
    }

    #[test]
    fn every_mistake_has_one_helpful_line() {
        let mistakes = [
            ("", "what load? cpu, ipc, memory, interrupts or all"),
            ("disk", "'disk' is no load; there are cpu"),
            ("cpu -t 17", "--threads takes a number from 1 to 16, not '17'"),
            ("cpu -p 119", "--priority takes a number from 1 to 118, not '119'"),
            ("cpu -p 0", "--priority takes a number from 1 to 118, not '0'"),
            ("cpu -s 0", "--share takes a number from 1 to 100"),
            ("cpu -s 101", "--share takes a number from 1 to 100"),
            ("cpu -D soon", "--duration takes a time such as"),
            ("cpu -x", "there is no option -x"),
        ];
        for (line, part) in mistakes {
            let error = parsed(line).unwrap_err();
            assert!(error.contains(part) && !error.contains('\n'), "{line}: {error}");
        }
    }
}
