//! Sessions with a guest over its serial port: types lines when the shell prompts, and reads the output.
//!
//! The same engine serves `run --script`, scenarios, the named cases and experiments; the latter two type nothing. A
//! guest is any command whose standard input and output are the serial port, which is how the tests of this module fake
//! one.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use miette::{IntoDiagnostic, Result, WrapErr, miette};

use crate::process;
use crate::screen::Screen;

/// Prompt of the shell when it waits for a command.
pub const PROMPT: &str = "tench> ";
/// Command that ends a guest that a script leaves running.
pub const POWER_OFF: &str = "poweroff 0";
/// Number of lines that a report about a stuck guest shows.
const LAST_LINES: usize = 24;

/// A step of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Waits for the prompt, types this and return.
    Line(String),
    /// Waits for a line that contains this, or for it in the unfinished line.
    Expect(String),
    /// Types this at once, without return.
    Type(Vec<u8>),
}

/// Reads a script: a line for each command; `@expect TEXT` waits for TEXT, `@type TEXT` types without waiting for the
/// prompt (`^C` is Ctrl-C, `^[` escape, `^M` return, `^^` a caret); empty lines and lines that begin with `#` are
/// skipped.
pub fn parse(text: &str) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        steps.push(
            match line.strip_prefix('@').map(|directive| directive.split_once(' ').unwrap_or((directive, ""))) {
                None => Step::Line(line.to_owned()),
                Some(("expect", text)) if !text.is_empty() => Step::Expect(text.to_owned()),
                Some(("type", text)) if !text.is_empty() => Step::Type(keys(text)),
                Some((word, _)) => {
                    let help = "allowed: @expect TEXT, @type TEXT, or a command for the shell";
                    return Err(miette!(help = help, "line {} of the script has @{word}", index + 1));
                }
            },
        );
    }
    Ok(steps)
}

/// Returns the bytes that the keys written as `text` send.
fn keys(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut characters = text.bytes();
    while let Some(byte) = characters.next() {
        match byte {
            b'^' => match characters.next() {
                Some(b'^') | None => bytes.push(b'^'),
                Some(letter) => bytes.push(letter.to_ascii_uppercase() & 0x1f),
            },
            _ => bytes.push(byte),
        }
    }
    bytes
}

/// Limits on waiting for a guest.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Maximum time without any output.
    pub silence: Duration,
    /// Maximum time in all.
    pub total: Duration,
}

impl Patience {
    /// Makes limits that allow any duration as long as something is printed at least this often.
    pub fn silence(seconds: u64) -> Patience {
        Patience { silence: Duration::from_secs(seconds), total: Duration::MAX }
    }
}

/// End of a session with a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The guest powered off with this status.
    Exited(u8),
    /// The guest was stopped because it was silent, or ran, for too long; or the emulator was ended by a signal.
    Stopped(String),
}

/// Result of a session.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// End of the session.
    pub end: End,
    /// Every line that the guest's terminal showed.
    pub lines: Vec<String>,
    /// Index of the line with the power-off that the script lacked. It may have been typed ahead: only its echo shows
    /// what came before it.
    pub powered_off_at: Option<usize>,
}

impl Outcome {
    /// Returns the last lines on the guest's terminal.
    pub fn last_screen(&self) -> String {
        let first = self.lines.len().saturating_sub(LAST_LINES);
        self.lines[first..].iter().map(|line| format!("  | {line}\n")).collect()
    }
}

/// Runs a session. Each completed line is given to `on_line`, which returns lines to add after it.
pub fn run(
    command: &mut Command,
    steps: &[Step],
    patience: Patience,
    mut on_line: impl FnMut(&str) -> Vec<String>,
) -> Result<Outcome> {
    let mut session = Session::start(command, steps)?;
    let typing = !steps.is_empty();
    let mut lines = Vec::new();
    let mut record = |line: String, lines: &mut Vec<String>| {
        let added = on_line(&line);
        lines.push(line);
        lines.extend(added);
    };
    let started = Instant::now();
    let stopped = loop {
        let left = patience.total.saturating_sub(started.elapsed());
        match session.output.recv_timeout(patience.silence.min(left)) {
            Ok(bytes) => {
                let completed = session.screen.show(&bytes);
                session.progress(&completed);
                completed.into_iter().for_each(|line| record(line, &mut lines));
            }
            Err(RecvTimeoutError::Disconnected) => break None,
            Err(RecvTimeoutError::Timeout) if left <= patience.silence => {
                break Some(format!("it was still running after {} s", patience.total.as_secs()));
            }
            Err(RecvTimeoutError::Timeout) => {
                break Some(format!("it printed nothing for {} s", patience.silence.as_secs()));
            }
        }
    };
    let unfinished = session.screen.current();
    if !unfinished.is_empty() {
        record(unfinished, &mut lines);
    }
    let powered_off = session.powered_off && typing;
    let end = session.finish(stopped)?;
    let echo = format!("{PROMPT}{POWER_OFF}");
    let powered_off_at = lines.iter().rposition(|line| powered_off && line.starts_with(&echo));
    Ok(Outcome { end, lines, powered_off_at })
}

/// A running guest, and the progress of the script.
struct Session<'s> {
    guest: Child,
    output: Receiver<Vec<u8>>,
    screen: Screen,
    steps: &'s [Step],
    /// Set while the prompt on the screen has not been used yet.
    prompt_is_new: bool,
    /// Set if a program in the background wrote behind an unused prompt.
    prompt_is_lost: bool,
    /// Set if keys were typed since the last line, so that text behind a prompt may be their echo.
    keys_typed: bool,
    powered_off: bool,
}

impl<'s> Session<'s> {
    fn start(command: &mut Command, steps: &'s [Step]) -> Result<Session<'s>> {
        process::show(command);
        let mut guest = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .into_diagnostic()
            .wrap_err_with(|| process::cannot_start(command))?;
        let mut serial = guest.stdout.take().ok_or_else(|| miette!("the guest has no output"))?;
        let (sender, output) = mpsc::channel();
        // Ends by itself when the guest closes its end.
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = serial.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        let typing = !steps.is_empty();
        Ok(Session {
            guest,
            output,
            screen: Screen::default(),
            steps,
            prompt_is_new: true,
            prompt_is_lost: false,
            keys_typed: false,
            powered_off: !typing,
        })
    }

    /// Takes the steps that the screen now allows. `completed` are the lines that have just been completed.
    fn progress(&mut self, completed: &[String]) {
        for line in completed {
            self.prompt_is_lost |= self.prompt_is_new && !self.keys_typed && line.starts_with(PROMPT);
            self.prompt_is_new = true;
        }
        let mut seen = completed;
        loop {
            let current = self.screen.current();
            match self.steps.first() {
                Some(Step::Expect(text)) => {
                    let place = seen.iter().position(|line| line.contains(text));
                    match place {
                        Some(place) => seen = &seen[place + 1..],
                        None if current.contains(text) => {}
                        None => return,
                    }
                }
                Some(Step::Type(bytes)) => {
                    self.keys_typed = true;
                    self.send(bytes);
                }
                Some(Step::Line(line)) if self.is_prompted(&current) => self.send_line(line),
                None if !self.powered_off && self.is_prompted(&current) => {
                    self.powered_off = true;
                    self.send_line(POWER_OFF);
                    return;
                }
                Some(Step::Line(_)) | None => return,
            }
            self.steps = &self.steps[1..];
        }
    }

    fn is_prompted(&self, current: &str) -> bool {
        self.prompt_is_lost || self.prompt_is_new && current == PROMPT
    }

    fn send_line(&mut self, line: &str) {
        (self.prompt_is_new, self.prompt_is_lost, self.keys_typed) = (false, false, false);
        self.send(format!("{line}\r").as_bytes());
    }

    /// Sends bytes. Errors are ignored: a guest that has just ended does not listen any more, which its output shows.
    fn send(&mut self, bytes: &[u8]) {
        if let Some(serial) = &mut self.guest.stdin {
            let _ = serial.write_all(bytes).and_then(|()| serial.flush());
        }
    }

    fn finish(&mut self, stopped: Option<String>) -> Result<End> {
        if stopped.is_some() {
            // It may have ended at this moment, which is as good.
            let _ = self.guest.kill();
        }
        let status = self.guest.wait().into_diagnostic().wrap_err("cannot wait for the guest")?;
        Ok(match (stopped, status.code()) {
            (Some(reason), _) => End::Stopped(reason),
            (None, Some(code)) => End::Exited(code as u8),
            (None, None) => End::Stopped(format!("the emulator ended by itself ({status})")),
        })
    }
}

impl Drop for Session<'_> {
    /// Ends the emulator with its session, whatever went wrong.
    fn drop(&mut self) {
        if !matches!(self.guest.try_wait(), Ok(Some(_))) {
            let _ = self.guest.kill();
            let _ = self.guest.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shell that echoes, in place of a guest: it knows `echo`, `poweroff`, `hang`, `die`, `read` and `late`, which
    /// prints behind the next prompt, as a program in the background does.
    const FAKE: &str = r#"
        prompt() { printf 'tench> '; }
        next() { line=; while c=$(dd bs=1 count=1 2>/dev/null | od -An -tu1 | tr -d ' '); do
            case $c in 13) return 0;; '') exit 9;; 3) line='^C'; return 0;; esac
            line=$line$(printf "\\$(printf %o "$c")")
            printf "\\$(printf %o "$c")"; done; }
        printf 'booting\r\n'; prompt
        while next; do printf '\r\n'; set -- $line; word=$1; [ $# -gt 0 ] && shift
            case $word in
                echo) printf '%s\r\n' "$*";;
                poweroff) printf 'bye\r\n'; exit "$1";;
                hang) exec sleep 60;;
                die) kill -9 $$;;
                late) prompt; printf '%s\r\n' "$*"; continue;;
                read) printf 'name? '; next; printf '\r\nhello %s\r\n' "$line";;
                *) printf 'unknown %s\r\n' "$word";;
            esac; prompt; done
    "#;

    fn play(script: &str, patience: Patience) -> Outcome {
        let steps = parse(script).unwrap();
        run(Command::new("sh").args(["-c", FAKE]), &steps, patience, |_| Vec::new()).unwrap()
    }

    fn lines(outcome: &Outcome) -> Vec<&str> {
        outcome.lines.iter().map(String::as_str).collect()
    }

    #[test]
    fn each_line_is_typed_at_its_prompt() {
        let outcome = play("echo one\n# a comment\n\necho tench> \npoweroff 7\necho never\n", Patience::silence(20));
        assert_eq!(outcome.end, End::Exited(7));
        let expected =
            ["booting", "tench> echo one", "one", "tench> echo tench>", "tench>", "tench> poweroff 7", "bye"];
        assert_eq!(lines(&outcome), expected);
        assert_eq!(outcome.powered_off_at, None);
    }

    #[test]
    fn a_script_that_does_not_power_off_is_ended() {
        let outcome = play("echo one\n", Patience::silence(20));
        assert_eq!(outcome.end, End::Exited(0));
        assert_eq!(lines(&outcome), ["booting", "tench> echo one", "one", "tench> poweroff 0", "bye"]);
        assert_eq!(outcome.powered_off_at, Some(3));
    }

    #[test]
    fn expecting_and_typing_without_a_prompt() {
        let outcome = play("read\n@expect name?\n@type World^M\necho x\n", Patience::silence(20));
        assert_eq!(outcome.end, End::Exited(0));
        assert!(lines(&outcome).contains(&"name? World"));
        assert!(lines(&outcome).contains(&"hello World"));
    }

    #[test]
    fn a_prompt_is_seen_behind_which_somebody_else_writes() {
        let outcome = play("late tick\necho one\npoweroff 3\n", Patience::silence(5));
        assert_eq!(outcome.end, End::Exited(3));
        // The shell's line begins where the other's ended, without a prompt.
        assert_eq!(lines(&outcome)[1..5], ["tench> late tick", "tench> tick", "echo one", "one"]);
    }

    #[test]
    fn a_hanging_guest_is_stopped_and_its_last_screen_kept() {
        let outcome = play("echo one\nhang\n", Patience { silence: Duration::from_millis(1500), total: Duration::MAX });
        assert_eq!(outcome.end, End::Stopped("it printed nothing for 1 s".into()));
        assert!(outcome.last_screen().ends_with("  | one\n  | tench> hang\n"));
    }

    #[test]
    fn a_guest_that_never_ends_is_stopped() {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do echo busy; sleep 0.05; done"]);
        let patience = Patience { silence: Duration::from_secs(20), total: Duration::from_millis(500) };
        let outcome = run(&mut command, &[], patience, |_| Vec::new()).unwrap();
        assert!(matches!(outcome.end, End::Stopped(reason) if reason.starts_with("it was still running")));
    }

    #[test]
    fn a_killed_emulator_is_no_success() {
        assert!(matches!(play("die\n", Patience::silence(20)).end, End::Stopped(_)));
    }

    #[test]
    fn lines_can_be_added_after_a_line() {
        let mut command = Command::new("printf");
        command.arg("a\\r\\nb\\r\\nrest");
        let outcome = run(&mut command, &[], Patience::silence(20), |line| vec![format!("{line}{line}")]).unwrap();
        assert_eq!(lines(&outcome), ["a", "aa", "b", "bb", "rest", "restrest"]);
        assert_eq!(outcome.end, End::Exited(0));
    }

    #[test]
    fn scripts_are_understood() {
        let steps = parse("ls\n@type ab^C^[[A^^\n@expect x y\n").unwrap();
        let typed = b"ab\x03\x1b[A^".to_vec();
        assert_eq!(steps, [Step::Line("ls".into()), Step::Type(typed), Step::Expect("x y".into())]);
        for bad in ["@", "@wait x", "@expect", "@type "] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
