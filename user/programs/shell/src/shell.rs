//! The shell itself: what it consists of, where what it writes goes, and how a line is carried out.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};

use tench_procs_client::pid;

use crate::commands::{self, Command, Failure, Outcome};
use crate::editor::Editor;
use crate::jobs::Jobs;
use crate::parse::{self, Pipeline};
use crate::suggest;
use crate::system::{How, Process, Refusal, Stream, System, Unwritten};

/// What the shell shows when it waits for a line. The host tool's script mode looks for it.
pub const PROMPT: &str = "tench> ";
/// Where programs lie.
const PROGRAMS: &str = "bin";
/// What the first shell shows when it starts.
const GREETING: &str = "etc/motd";
/// Output is sent on when so much of it has come together; one message to the console holds it.
const OUTPUT_CHUNK: usize = 400;

/// Where what commands write goes; to the terminal unless something else is said.
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
    /// Nothing more can be written there.
    is_output_broken: bool,
    is_first: bool,
    pub(crate) is_leaving: bool,
    /// What stands behind `;` is not carried out any more.
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
    /// A shell on a system.
    pub fn new(system: &'s mut dyn System) -> Shell<'s> {
        let own_pid = system.own_pid();
        let parent = system.process(own_pid).map_or(pid::INIT, |process| process.parent);
        let is_first = pid::place(parent).1 == pid::INIT;
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

    /// Reads and carries out lines until there are no more.
    pub fn run(&mut self) {
        if self.is_first {
            // A system without a greeting has none.
            let _ = self.greet();
        }
        while !self.is_leaving {
            self.report_jobs();
            self.read_and_execute();
        }
        self.flush();
    }

    fn greet(&mut self) -> Result<(), Refusal> {
        let file = self.system.open(GREETING, How::Read)?;
        while let Ok(bytes) = self.system.read_stream(file)
            && !bytes.is_empty()
        {
            self.system.write(&bytes);
        }
        self.system.close(file);
        Ok(())
    }

    /// Carries out one line.
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

    /// Carries out commands and runs programs, and says what went wrong.
    pub fn carry_out(&mut self, pipeline: &Pipeline) {
        if let Err((command, failure)) = self.run_pipeline(pipeline) {
            self.complain(command, &failure);
        }
    }

    /// Says what went wrong.
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
            // There is no other place to say that this failed.
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

    /// Sends on what was written.
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

    /// Lets commands write elsewhere.
    pub(crate) fn set_sinks(&mut self, sinks: Sinks) {
        self.flush();
        self.sinks = sinks;
        self.is_output_broken = false;
    }

    /// Whether what is written appears on the terminal.
    pub const fn writes_on_terminal(&self) -> bool {
        self.sinks.output.is_none()
    }

    /// Whether writing more is of any use.
    pub const fn can_write(&self) -> bool {
        !self.is_output_broken
    }

    /// Goes to a new line if something has left the terminal in the middle of one.
    pub(crate) fn start_line(&mut self) {
        self.flush();
        if !self.system.is_at_line_start() {
            self.system.write(b"\n");
        }
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

    /// All processes.
    pub fn processes(&mut self) -> Vec<Process> {
        let mut after = 0;
        let mut processes = Vec::new();
        while let Some(process) = self.system.next_process(after) {
            after = process.pid;
            processes.push(process);
        }
        processes
    }

    /// The programs.
    pub fn programs(&mut self) -> Vec<String> {
        // Without a file server there are none to be found.
        let entries = self.system.entries(PROGRAMS).unwrap_or_default();
        entries.into_iter().filter(|entry| !entry.is_directory).map(|entry| entry.name).collect()
    }

    /// What to say about a word that is neither command nor program.
    pub(crate) fn unknown(&mut self, name: &str) -> Failure {
        let programs = self.programs();
        let known = commands::all().map(|command| command.name).chain(programs.iter().map(String::as_str));
        Failure::Refused(match suggest::nearest(name, known) {
            Some(near) => format!("no command or program {name}; did you mean {near}?"),
            None => format!("no command or program {name}; help lists the commands, ls bin the programs"),
        })
    }
}
