//! `./tench run` with a file or a pipe as its standard input: what a person would have typed.
//!
//! Each line is typed when the shell prompts, or when the guest has been quiet for a while: then a program is reading,
//! or a command takes long and the line waits for it. The end of the input ends the session: Ctrl-D for a program that
//! reads, `poweroff 0` for the shell. Unlike a script (`--script`), such input knows no directives.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use miette::{IntoDiagnostic, Result, WrapErr, miette};

use crate::process;
use crate::screen::Screen;
use crate::script::{End, POWER_OFF, PROMPT};

/// Time without output after which the guest counts as reading.
const QUIET: Duration = Duration::from_secs(1);
/// Ctrl-D.
const END_OF_INPUT: u8 = 4;

/// Something that a reading thread has got.
enum Event {
    /// Bytes that the guest printed.
    Printed(Vec<u8>),
    /// The guest closed its output.
    GuestEnded,
    /// A line of the input, with return at its end.
    Line(Vec<u8>),
    /// The end of the input.
    InputEnded,
}

/// Runs the guest with lines from `input`. Shows what the guest prints with `show`. A guest that prints nothing for
/// `silence` after the input's end is stopped.
///
/// # Errors
/// The guest cannot be started or waited for.
pub fn run(
    command: &mut Command,
    input: impl Read + Send + 'static,
    silence: Duration,
    mut show: impl FnMut(&[u8]),
) -> Result<End> {
    process::show(command);
    let mut guest = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .into_diagnostic()
        .wrap_err_with(|| process::cannot_start(command))?;
    let output = guest.stdout.take().ok_or_else(|| miette!("the guest has no output"))?;
    let keyboard = guest.stdin.take().ok_or_else(|| miette!("the guest has no input"))?;
    let (sender, events) = mpsc::channel();
    read_output(output, sender.clone());
    // One line at a time, so that the input's end is not seen long before the guest is.
    let (next, wanted) = mpsc::channel();
    read_input(input, wanted, sender);
    let mut session = Session { screen: Screen::default(), prompt_is_new: true, keyboard, next, input: Input::None };
    let stopped = session.play(&events, silence, &mut show);
    if stopped {
        // It may have ended at this moment, which is as good.
        let _ = guest.kill();
    }
    let status = guest.wait().into_diagnostic().wrap_err("cannot wait for the guest")?;
    Ok(match status.code() {
        _ if stopped => End::Stopped(format!("it printed nothing for {} s", silence.as_secs())),
        Some(code) => End::Exited(code as u8),
        None => End::Stopped(format!("the emulator ended by itself ({status})")),
    })
}

/// Sends what the guest prints. The thread ends with the guest.
fn read_output(mut output: impl Read + Send + 'static, events: Sender<Event>) {
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = output.read(&mut buffer) {
            if events.send(Event::Printed(buffer[..count].to_vec())).is_err() {
                return;
            }
        }
        let _ = events.send(Event::GuestEnded);
    });
}

/// Sends a line of the input each time that one is wanted. The thread ends with the input or the session.
fn read_input(input: impl Read + Send + 'static, wanted: Receiver<()>, events: Sender<Event>) {
    thread::spawn(move || {
        let mut input = BufReader::new(input);
        for () in wanted {
            let mut line = Vec::new();
            let event = match input.read_until(b'\n', &mut line) {
                Ok(1..) => {
                    // The last line may have no end; it is meant all the same.
                    line.pop_if(|last| *last == b'\n');
                    line.push(b'\r');
                    Event::Line(line)
                }
                Ok(0) | Err(_) => Event::InputEnded,
            };
            if events.send(event).is_err() {
                return;
            }
        }
    });
}

/// How far the input has been read.
enum Input {
    /// No line has been asked for since the last was typed.
    None,
    /// A line has been asked for.
    Wanted,
    /// This line can be typed.
    Line(Vec<u8>),
    /// There are no more lines.
    Ended,
    /// The command that ends the machine has been typed.
    PoweredOff,
}

struct Session<K: Write> {
    screen: Screen,
    /// Set while the prompt on the screen, if there is one, has not been used yet.
    prompt_is_new: bool,
    keyboard: K,
    next: Sender<()>,
    input: Input,
}

impl<K: Write> Session<K> {
    /// Plays until the guest ends. Returns true if it was silent for too long.
    fn play(&mut self, events: &Receiver<Event>, silence: Duration, show: &mut impl FnMut(&[u8])) -> bool {
        let mut quiet = Duration::ZERO;
        loop {
            if matches!(self.input, Input::None) {
                self.input = Input::Wanted;
                let _ = self.next.send(());
            }
            match events.recv_timeout(QUIET) {
                Ok(Event::Printed(bytes)) => {
                    quiet = Duration::ZERO;
                    show(&bytes);
                    self.prompt_is_new |= !self.screen.show(&bytes).is_empty();
                    self.proceed(false);
                }
                Ok(Event::Line(line)) => {
                    self.input = Input::Line(line);
                    self.proceed(false);
                }
                Ok(Event::InputEnded) => {
                    (self.input, quiet) = (Input::Ended, Duration::ZERO);
                    self.proceed(false);
                }
                Ok(Event::GuestEnded) | Err(RecvTimeoutError::Disconnected) => return false,
                Err(RecvTimeoutError::Timeout) => {
                    quiet += QUIET;
                    let has_ended = matches!(self.input, Input::Ended | Input::PoweredOff);
                    if has_ended && quiet >= silence {
                        return true;
                    }
                    self.proceed(true);
                }
            }
        }
    }

    /// Types what comes next, if the shell prompts or the guest `is_quiet`.
    fn proceed(&mut self, is_quiet: bool) {
        let is_prompted = self.prompt_is_new && self.screen.current() == PROMPT;
        match &mut self.input {
            Input::Line(line) if is_prompted || is_quiet => {
                let line = std::mem::take(line);
                self.input = Input::None;
                self.send(&line);
            }
            Input::Ended if is_prompted => {
                self.input = Input::PoweredOff;
                self.send(format!("{POWER_OFF}\r").as_bytes());
            }
            Input::Ended if is_quiet => self.send(&[END_OF_INPUT]),
            _ => {}
        }
    }

    /// Types bytes. Errors are ignored: a guest that has just ended does not listen any more, which its output shows.
    fn send(&mut self, bytes: &[u8]) {
        self.prompt_is_new = false;
        let _ = self.keyboard.write_all(bytes).and_then(|()| self.keyboard.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shell in place of a guest: it echoes, and knows `poweroff`, `read` (until Ctrl-D) and `hang`.
    const FAKE: &str = r#"
        byte() { c=$(dd bs=1 count=1 2>/dev/null | od -An -tu1 | tr -d ' '); [ -n "$c" ]; }
        next() { line=; while byte; do
            case $c in 13) printf '\r\n'; return 0;; 4) return 1;; esac
            line=$line$(printf "\\$(printf %o "$c")")
            printf "\\$(printf %o "$c")"; done; exit 9; }
        printf 'booting\r\ntench> '
        while :; do next || continue; set -- $line
            case $1 in
                poweroff) printf 'bye\r\n'; exit "$2";;
                read) while next; do printf 'read %s\r\n' "$line"; done; printf 'end\r\n';;
                hang) exec sleep 60;;
            esac; printf 'tench> '; done
    "#;

    fn play(input: &'static str, silence: u64) -> (End, String) {
        let mut shown = Vec::new();
        let command = &mut Command::new("sh");
        let end = run(command.args(["-c", FAKE]), input.as_bytes(), Duration::from_secs(silence), |bytes| {
            shown.extend_from_slice(bytes);
        });
        (end.unwrap(), String::from_utf8(shown).unwrap().replace('\r', ""))
    }

    #[test]
    fn lines_are_typed_at_prompts_and_the_status_is_the_guests() {
        let (end, shown) = play("hello\npoweroff 3\nnever\n", 20);
        assert_eq!(shown, "booting\ntench> hello\ntench> poweroff 3\nbye\n");
        assert_eq!(end, End::Exited(3));
    }

    #[test]
    fn the_end_of_the_input_ends_the_session() {
        assert_eq!(play("", 20), (End::Exited(0), "booting\ntench> poweroff 0\nbye\n".into()));
        let shown = "booting\ntench> hello\ntench> poweroff 0\nbye\n";
        assert_eq!(play("hello", 20), (End::Exited(0), shown.into()));
    }

    #[test]
    fn a_program_that_reads_gets_lines_and_the_end() {
        let (end, shown) = play("read\none\n", 20);
        assert!(shown.ends_with("read one\nend\ntench> poweroff 0\nbye\n"), "{shown}");
        assert_eq!(end, End::Exited(0));
    }

    #[test]
    fn a_guest_that_never_ends_is_stopped() {
        assert_eq!(play("hang\n", 2).0, End::Stopped("it printed nothing for 2 s".into()));
    }
}
