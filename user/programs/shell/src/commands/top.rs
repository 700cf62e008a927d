//! `top`: repeatedly shows which processes use the processor.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write;

use tench_abi::object::Statistic;
use tench_procs_interface::pid::Shown;

use super::processes::{memory, state};
use super::{Action, Call, Command, Failure, Outcome};
use crate::completion::Candidates;
use crate::format::{Bytes, Side, Table, Time};
use crate::shell::Shell;
use crate::system::{Input, Process, Terminal};

/// The command of this file.
pub const COMMANDS: &[Command] = &[Command {
    name: "top",
    usage: "[-d SECONDS] [-n COUNT]",
    summary: "show again and again who uses the processor",
    help: "CPU is the share of the processor since the picture before, in the first picture since the machine was started. \
           Processes with the largest share come first. -d is the time between pictures, 1 second unless it is said, -n \
           how many pictures there are. q or Ctrl-C ends it, a space shows the next picture at once. Without a terminal, and \
           with -n 1, the pictures are plain text, one after the other, with all processes.",
    arguments: Candidates::Nothing,
    action: Action::Anywhere(top),
}];

/// Number of processes in a picture on a terminal, which has at least 24 lines.
const ROWS: usize = 20;
/// Maximum number of seconds between pictures: a day.
const MOST_SECONDS: u64 = 86_400;
/// Switches to another screen, without a cursor; and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// Moves to the beginning of the screen; deletes the rest of a line, and of all lines.
const HOME: &str = "\x1b[H";
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_REST: &str = "\x1b[J";

/// Options of `top`: contents and frequency of the pictures.
struct Wanted {
    /// Milliseconds between pictures.
    millis: u64,
    count: Option<u64>,
}

/// Figures of the last picture.
#[derive(Default)]
struct Before {
    ticks: u64,
    idle: u64,
    processes: BTreeMap<u64, u64>,
}

fn top(shell: &mut Shell<'_>, call: &Call<'_>) -> Outcome {
    let wanted = wanted(call.arguments)?;
    let has_screen =
        shell.writes_on_terminal() && wanted.count != Some(1) && shell.system.take_terminal() == Terminal::Ours;
    if has_screen {
        shell.print(format_args!("{ENTER}"));
    }
    show(shell, &wanted, has_screen);
    if has_screen {
        shell.print(format_args!("{LEAVE}"));
    }
    Ok(())
}

/// Parses the options.
fn wanted(arguments: &[String]) -> Result<Wanted, Failure> {
    let mut wanted = Wanted { millis: 1000, count: None };
    let mut words = arguments.iter();
    while let Some(option) = words.next() {
        let value = words.next();
        let missing = || Failure::Usage(format!("a number is missing after {option}"));
        match option.as_str() {
            "-d" => wanted.millis = parse_seconds(value.ok_or_else(missing)?)?,
            "-n" => {
                let text = value.ok_or_else(missing)?;
                let count = text.parse().ok().filter(|count| *count > 0);
                let wrong = || Failure::Usage(format!("COUNT is a number from 1 on, not {text}"));
                wanted.count = Some(count.ok_or_else(wrong)?);
            }
            _ if option.starts_with('-') => return Err(Failure::Usage(format!("there is no option {option}"))),
            _ => return Err(Failure::Usage(format!("it takes only options, but {option} was given"))),
        }
    }
    Ok(wanted)
}

/// Returns the milliseconds in `2`, `0.5`, `1.25`.
fn parse_seconds(text: &str) -> Result<u64, Failure> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    let millis = whole.parse::<u64>().ok().filter(|whole| *whole <= MOST_SECONDS).and_then(|whole| {
        let thousandths: String = fraction.chars().chain("000".chars()).take(3).collect();
        Some(whole * 1000 + thousandths.parse::<u64>().ok()?)
    });
    let is_possible = is_number(whole) && is_number(fraction);
    millis
        .filter(|millis| is_possible && (100..=MOST_SECONDS * 1000).contains(millis))
        .ok_or_else(|| Failure::Usage(format!("SECONDS is a number from 0.1 to {MOST_SECONDS}, not {text}")))
}

/// Shows the pictures.
fn show(shell: &mut Shell<'_>, wanted: &Wanted, has_screen: bool) {
    let mut before = Before::default();
    let interval = u128::from(wanted.millis) * u128::from(shell.system.ticks_per_second()) / 1000;
    let interval = u64::try_from(interval).unwrap_or(u64::MAX);
    let mut left = wanted.count;
    loop {
        let text = picture(shell, &mut before, has_screen);
        if has_screen {
            let mut screen = String::from(HOME);
            for line in text.lines() {
                // Writing into memory does not fail.
                let _ = write!(screen, "{line}{CLEAR_LINE}\r\n");
            }
            shell.print(format_args!("{screen}{CLEAR_REST}"));
        } else {
            shell.print(format_args!("{text}"));
        }
        shell.flush();
        left = left.map(|left| left - 1);
        let deadline = before.ticks.saturating_add(interval);
        if left == Some(0) || !shell.can_write() || !goes_on(shell, deadline) {
            return;
        }
        if !has_screen {
            shell.print(format_args!("\n"));
        }
    }
}

/// Waits until it is time for the next picture. Returns false if a key ends the command.
fn goes_on(shell: &mut Shell<'_>, deadline: u64) -> bool {
    loop {
        match shell.system.read_until(deadline) {
            None | Some(Input::Byte(b' ')) => return true,
            Some(Input::Byte(b'q' | b'Q' | 3 | 4) | Input::Interrupted | Input::End) => return false,
            Some(Input::Byte(_)) => {}
        }
    }
}

/// Returns a picture, and updates the figures for the next one.
fn picture(shell: &mut Shell<'_>, before: &mut Before, has_screen: bool) -> String {
    let (ticks, per_second) = (shell.system.ticks(), shell.system.ticks_per_second());
    // A shell without the kernel's capability does not know.
    let idle = shell.system.statistic(Statistic::IdleTicks).ok();
    let live: Vec<Process> = shell.processes().into_iter().filter(|process| process.end().is_none()).collect();
    let span = ticks.saturating_sub(before.ticks).max(1);
    let used =
        |process: &Process| process.ticks.saturating_sub(before.processes.get(&process.pid).copied().unwrap_or(0));
    let mut rows: Vec<(u64, &Process)> = live.iter().map(|process| (used(process), process)).collect();
    rows.sort_by_key(|(used, process)| (core::cmp::Reverse(*used), process.pid));

    let up = Time { ticks, per_second };
    let idle_share =
        idle.map_or_else(String::new, |idle| format!(", {} idle", Share(idle.saturating_sub(before.idle), span)));
    let mut text = format!("up {up}{idle_share}, {} processes", live.len());
    if let Ok(memory) = shell.system.memory() {
        let _ = write!(text, ", {} of {} free", Bytes(memory.free), Bytes(memory.total));
    }
    text.push('\n');
    let right = ["PID", "CPU", "TIME", "MEMORY"].map(|heading| (heading, Side::Right));
    let mut table = Table::new(&[&right[..], &[("STATE", Side::Left), ("NAME", Side::Left)]].concat());
    let shown = if has_screen { ROWS } else { rows.len() };
    for (used, process) in rows.iter().take(shown) {
        table.row([
            Shown(process.pid).to_string(),
            Share(*used, span).to_string(),
            Time { ticks: process.ticks, per_second }.to_string(),
            memory(shell, process),
            state(process),
            process.base_name().into(),
        ]);
    }
    let _ = write!(text, "{table}");
    if rows.len() > shown {
        let _ = writeln!(text, "and {} more", rows.len() - shown);
    }
    let processes = live.iter().map(|process| (process.pid, process.ticks)).collect();
    *before = Before { ticks, idle: idle.unwrap_or(0), processes };
    text
}

/// A part of a whole, in percent.
struct Share(u64, u64);

impl core::fmt::Display for Share {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let thousandths = (u128::from(self.0) * 1000 / u128::from(self.1.max(1))).min(1000);
        write!(f, "{}.{} %", thousandths / 10, thousandths % 10)
    }
}
