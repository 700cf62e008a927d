//! The shell: its state, its output, and how it runs a line.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};

use tench_procs_interface::pid;

use crate::commands::{self, Command, Failure, Outcome};
use crate::editor::Editor;
use crate::jobs::Jobs;
use crate::parse::{self, Pipeline};
use crate::suggest;
use crate::system::{How, Process, Stream, System, SystemError, Unwritten};

/// Prompt of the shell. The host tool's script mode looks for it.
pub const PROMPT: &str = "tench> ";
/// Directory of the programs.
const PROGRAMS: &str = "bin";
/// File that the first shell shows when it starts.
const GREETING: &str = "etc/motd";
/// Buffered output is sent when it reaches this many bytes; one message to the console holds as many.
const OUTPUT_CHUNK: usize = 400;

/// Brings the terminal back into its usual state, whatever a program to which it was lent has left: ends an unfinished
/// sequence; leaves another screen, without moving the cursor if there is none; sets modes, margins, colours and the
/// character set to their defaults; lines wrap, the cursor is visible, and neither the mouse nor pasted text is
/// reported.
const RESTORE: &str = concat!(
    "\x18\x1b\\\x1b7\x1b[?1049l",
    "\x1b[!p\x1b[0m\x0f\x1b[?7h\x1b[?25h",
    "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l",
);

/// Targets of the output of commands; by default the terminal.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sinks {
    pub output: Option<Stream>,
    pub errors: Option<Stream>,
}

/// The shell.
pub struct Shell<'s> {
    /// The system around it.
    pub system: &'s mut dyn System,
    pub(crate) editor: Editor,
    pub(crate) jobs: Jobs,
    out: Vec<u8>,
    sinks: Sinks,
    /// Set if output cannot be written any more.
    is_output_broken: bool,
    is_first: bool,
    pub(crate) is_leaving: bool,
    /// Set if what follows `;` is not to be run.
    pub(crate) is_line_given_up: bool,
}

impl Write for Shell<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.out.extend_from_slice(text.as_bytes());
        if self.out.len() >= OUTPUT_CHUNK {
            self.flush();
        }
        Ok(())
    }
}

impl<'s> Shell<'s> {
    /// Returns a shell on a system.
    pub fn new(system: &'s mut dyn System) -> Shell<'s> {
        let own_pid = system.own_pid();
        let parent = system.process(own_pid).map_or(pid::INIT, |process| process.parent);
        let is_first = pid::split_pid(parent).1 == pid::INIT;
        Shell {
            system,
            editor: Editor::new(PROMPT),
            jobs: Jobs::default(),
            out: Vec::new(),
            sinks: Sinks::default(),
            is_output_broken: false,
            is_first,
            is_leaving: false,
            is_line_given_up: false,
        }
    }

    /// Reads and runs lines until there are no more.
    pub fn run(&mut self) {
        if self.is_first {
            // The greeting is optional.
            let _ = self.greet();
        }
        while !self.is_leaving {
            self.report_jobs();
            self.read_and_execute();
        }
        self.flush();
    }

    fn greet(&mut self) -> Result<(), SystemError> {
        let file = self.system.open(GREETING, How::Read)?;
        while let Ok(bytes) = self.system.read_stream(file)
            && !bytes.is_empty()
        {
            self.system.write(&bytes);
        }
        self.system.close(file);
        Ok(())
    }

    /// Runs one line.
    pub fn execute(&mut self, line: &str) {
        match parse::parse(line) {
            Ok(pipelines) => {
                self.is_line_given_up = false;
                for pipeline in pipelines {
                    if !self.is_line_given_up && !self.is_leaving {
                        self.carry_out(&pipeline);
                    }
                }
            }
            Err(mistake) => self.say(format_args!("{mistake}")),
        }
        self.flush();
    }

    /// Runs a pipeline of commands and programs, and reports failures.
    pub fn carry_out(&mut self, pipeline: &Pipeline) {
        if let Err((command, failure)) = self.run_pipeline(pipeline) {
            self.complain(command, &failure);
        }
    }

    /// Reports a failure.
    pub(crate) fn complain(&mut self, command: Option<&Command>, failure: &Failure) {
        let text = match (command, failure) {
            (Some(command), Failure::Usage(text)) => {
                format!("{}: {text}; usage: {}\n", command.name, command.usage_line())
            }
            (Some(command), Failure::Refused(text)) => format!("{}: {text}\n", command.name),
            (None, Failure::Usage(text) | Failure::Refused(text)) => format!("{text}\n"),
        };
        self.flush();
        match self.sinks.errors {
            // There is no other place to report that this failed.
            Some(stream) => drop(self.system.write_stream(stream, text.as_bytes())),
            None => self.system.write(text.as_bytes()),
        }
    }

    // ── Output ───────────────────────────────────────────────────────────────────────────────────────────────────────

    /// Writes a line.
    pub fn say(&mut self, text: fmt::Arguments<'_>) {
        // Writing into memory does not fail.
        let _ = writeln!(self, "{text}");
    }

    /// Writes text as it is.
    pub fn print(&mut self, text: fmt::Arguments<'_>) {
        let _ = self.write_fmt(text);
    }

    /// Sends the buffered output.
    pub fn flush(&mut self) {
        if self.out.is_empty() {
            return;
        }
        let out = core::mem::take(&mut self.out);
        match self.sinks.output {
            None => self.system.write(&out),
            Some(_) if self.is_output_broken => {}
            Some(stream) => {
                let written = self.system.write_stream(stream, &out);
                self.is_output_broken = written.is_err();
                if let Err(Unwritten::Refused(refusal)) = written {
                    self.complain(None, &Failure::Refused(format!("writing ended: {}", refusal.0)));
                }
            }
        }
        self.out = out;
        self.out.clear();
    }

    /// Redirects the output of commands.
    pub(crate) fn set_sinks(&mut self, sinks: Sinks) {
        self.flush();
        self.sinks = sinks;
        self.is_output_broken = false;
    }

    /// Returns whether output appears on the terminal.
    pub const fn writes_on_terminal(&self) -> bool {
        self.sinks.output.is_none()
    }

    /// Returns whether more output can be written.
    pub const fn can_write(&self) -> bool {
        !self.is_output_broken
    }

    /// Starts a new line if the terminal's cursor is in the middle of one.
    pub(crate) fn start_line(&mut self) {
        self.flush();
        if !self.system.is_at_line_start() {
            self.system.write(b"\n");
        }
    }

    /// Restores the terminal after it was lent. The console takes the sequences for text, so what the shell shows next
    /// is on a new line.
    pub(crate) fn restore_terminal(&mut self) {
        self.flush();
        self.system.write(RESTORE.as_bytes());
    }

    // ── Its end ──────────────────────────────────────────────────────────────────────────────────────────────────────

    /// Leaves the shell, unless it is the first.
    pub fn leave(&mut self) -> Outcome {
        if self.is_first {
            return Err(Failure::Refused(
                "nothing is behind the first shell; poweroff switches the machine off".into(),
            ));
        }
        self.is_leaving = true;
        Ok(())
    }

    // ── What there is ────────────────────────────────────────────────────────────────────────────────────────────────

    /// Returns all processes.
    pub fn processes(&mut self) -> Vec<Process> {
        let mut after = 0;
        let mut processes = Vec::new();
        while let Some(process) = self.system.next_process(after) {
            after = process.pid;
            processes.push(process);
        }
        processes
    }

    /// Returns the names of the programs.
    pub fn programs(&mut self) -> Vec<String> {
        // Without a file server there are none.
        let entries = self.system.entries(PROGRAMS).unwrap_or_default();
        entries.into_iter().filter(|entry| !entry.is_directory).map(|entry| entry.name).collect()
    }

    /// Returns the message about a word that is neither command nor program.
    pub(crate) fn unknown(&mut self, name: &str) -> Failure {
        let programs = self.programs();
        let known = commands::all().map(|command| command.name).chain(programs.iter().map(String::as_str));
        Failure::Refused(match suggest::nearest(name, known) {
            Some(near) => format!("no command or program {name}; did you mean {near}?"),
            None => format!("no command or program {name}; help lists the commands, ls bin the programs"),
        })
    }
}
