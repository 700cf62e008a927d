//! The shell itself: prompt, dispatch, programs in the foreground and in the background.

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};

use crate::commands::{self, Call, Failure, Outcome};
use crate::completion::{self, Candidates, Sources};
use crate::editor::{Editor, Event};
use crate::parse;
use crate::suggest;
use crate::system::{End, File, Input, OnInterrupt, Process, System, Waited, base_name};

/// What the shell shows when it waits for a line. The host tool's script mode looks for it.
pub const PROMPT: &str = "tench> ";
/// Where the programs of the boot archive lie.
const PROGRAMS: &str = "bin/";
/// What the first shell shows when it starts.
const GREETING: &str = "etc/motd";
/// Output is sent on when so much of it has come together; one message to the console holds it.
const OUTPUT_CHUNK: usize = 400;

/// A program that was started with `&`.
struct Job {
    pid: u64,
    name: String,
}

/// What reading a line gave.
enum Line {
    Text(String),
    Interrupted,
    /// Ctrl-D.
    End,
    /// Nobody will type anything any more.
    Gone,
}

/// The shell.
pub struct Shell<'s> {
    /// The system around it.
    pub system: &'s mut dyn System,
    editor: Editor,
    jobs: Vec<Job>,
    out: Vec<u8>,
    /// The files of the boot archive, which never changes, once they were needed.
    files: Option<Rc<[File]>>,
    is_first: bool,
    is_leaving: bool,
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
        let parent = system.process(own_pid).map_or(0, |process| process.parent);
        let is_first = system.process(parent).map_or(true, |process| process.base_name() == "init");
        Shell {
            system,
            editor: Editor::new(PROMPT),
            jobs: Vec::new(),
            out: Vec::new(),
            files: None,
            is_first,
            is_leaving: false,
        }
    }

    /// Reads and carries out lines until there are no more.
    pub fn run(&mut self) {
        if self.is_first {
            // A system without a greeting has none.
            let _ = commands::print_file(self, GREETING);
        }
        while !self.is_leaving {
            self.report_jobs();
            match self.read_line() {
                Line::Text(line) => self.execute(&line),
                Line::Interrupted => {}
                Line::End => self.end_of_input(),
                Line::Gone => self.is_leaving = true,
            }
        }
        self.flush();
    }

    /// Carries out one line.
    pub fn execute(&mut self, line: &str) {
        match parse::parse(line) {
            Ok(parsed) => self.dispatch(&parsed.words, parsed.background),
            Err(mistake) => self.say(format_args!("{mistake}")),
        }
        self.flush();
    }

    /// Carries out a command or runs a program, and says what went wrong.
    pub fn dispatch(&mut self, words: &[String], background: bool) {
        let Some((name, arguments)) = words.split_first() else { return };
        let Some(command) = commands::find(name) else {
            if let Err(failure) = self.run_program(words, None, background) {
                self.complain(None, &failure);
            }
            return;
        };
        let outcome = if background && !command.takes_background {
            Err(Failure::Usage("only programs can run in the background".into()))
        } else {
            (command.run)(self, &Call { arguments, background })
        };
        if let Err(failure) = outcome {
            self.complain(Some(command), &failure);
        }
    }

    fn complain(&mut self, command: Option<&commands::Command>, failure: &Failure) {
        match (command, failure) {
            (Some(command), Failure::Usage(text)) => {
                self.say(format_args!("{}: {text}; usage: {}", command.name, command.usage_line()));
            }
            (Some(command), Failure::Refused(text)) => self.say(format_args!("{}: {text}", command.name)),
            (None, Failure::Usage(text) | Failure::Refused(text)) => self.say(format_args!("{text}")),
        }
    }

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
        if !self.out.is_empty() {
            self.system.write(&self.out);
            self.out.clear();
        }
    }

    /// Goes to a new line if something has left the terminal in the middle of one.
    fn start_line(&mut self) {
        self.flush();
        if !self.system.is_at_line_start() {
            self.system.write(b"\n");
        }
    }

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

    fn end_of_input(&mut self) {
        if let Err(failure) = self.leave() {
            self.complain(None, &failure);
        }
    }

    // ── Lines ────────────────────────────────────────────────────────────────────────────────────────────────────────

    fn read_line(&mut self) -> Line {
        let has_terminal = self.system.take_terminal();
        self.start_line();
        if !has_terminal {
            return self.read_finished_line();
        }
        let mut out = Vec::new();
        self.editor.begin(&mut out);
        loop {
            if !out.is_empty() {
                self.system.write(&out);
                out.clear();
            }
            let byte = match self.system.read() {
                Input::Byte(byte) => byte,
                Input::Interrupted => return Line::Interrupted,
                Input::End => return Line::Gone,
            };
            let line = match self.editor.feed(byte, &mut out) {
                Event::Nothing => continue,
                Event::Complete => {
                    let completion = completion::complete(&self.editor.before_cursor(), &mut Words(self));
                    self.editor.complete(&completion, &mut out);
                    continue;
                }
                Event::Line(line) => Line::Text(line),
                Event::Interrupted => Line::Interrupted,
                Event::End => Line::End,
            };
            self.system.write(&out);
            return line;
        }
    }

    /// Reads a line from a terminal that belongs to somebody else and edits itself.
    fn read_finished_line(&mut self) -> Line {
        self.system.write(PROMPT.as_bytes());
        let mut bytes = Vec::new();
        loop {
            match self.system.read() {
                Input::Byte(b'\n') => return Line::Text(String::from_utf8_lossy(&bytes).into_owned()),
                Input::Byte(byte) => bytes.push(byte),
                Input::Interrupted => return Line::Interrupted,
                Input::End => return Line::Gone,
            }
        }
    }

    /// Earlier lines.
    pub fn history(&self) -> Vec<String> {
        self.editor.history().map(String::from).collect()
    }

    // ── Programs ─────────────────────────────────────────────────────────────────────────────────────────────────────

    /// Runs a program, in the foreground until it ends.
    pub fn run_program(&mut self, words: &[String], quota: Option<u64>, background: bool) -> Outcome {
        self.flush();
        let Some(pid) = self.system.spawn(words, quota)? else { return Err(self.unknown(words)) };
        let name = words.first().map_or("", |word| base_name(word));
        if background {
            self.jobs.push(Job { pid, name: name.into() });
            self.say(format_args!("[{pid}] {name}"));
            return Ok(());
        }
        match self.system.wait(pid, OnInterrupt::Kill)? {
            Waited::Ended(End::Exited(0)) | Waited::Interrupted => {}
            Waited::Ended(end) => {
                self.start_line();
                self.say(format_args!("[{end}]"));
            }
        }
        Ok(())
    }

    /// What to say about a word that is neither command nor program.
    fn unknown(&mut self, words: &[String]) -> Failure {
        let name = words.first().map_or("", String::as_str);
        let programs = self.programs();
        let known = commands::all().map(|command| command.name).chain(programs.iter().map(String::as_str));
        Failure::Refused(match suggest::nearest(name, known) {
            Some(near) => format!("no command or program {name}; did you mean {near}?"),
            None => format!("no command or program {name}; help lists the commands, ls bin the programs"),
        })
    }

    /// Says which programs in the background have ended.
    fn report_jobs(&mut self) {
        let jobs = core::mem::take(&mut self.jobs);
        let mut is_first_report = true;
        for job in jobs {
            match self.system.process(job.pid).map(|process| process.end()) {
                Ok(None) => self.jobs.push(job),
                Ok(Some(end)) => {
                    if core::mem::take(&mut is_first_report) {
                        self.start_line();
                    }
                    self.say(format_args!("[{}] {} {end}", job.pid, job.name));
                }
                // So many others have ended since that its record is gone.
                Err(_) => {}
            }
        }
    }

    /// Does not report the end of a program again.
    pub fn forget_job(&mut self, pid: u64) {
        self.jobs.retain(|job| job.pid != pid);
    }

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

    // ── Files ────────────────────────────────────────────────────────────────────────────────────────────────────────

    /// The files of the boot archive.
    pub fn files(&mut self) -> Rc<[File]> {
        if let Some(files) = &self.files {
            return files.clone();
        }
        let files: Rc<[File]> = (0..).map_while(|index| self.system.file(index)).collect();
        self.files = Some(files.clone());
        files
    }

    /// The programs of the boot archive.
    pub fn programs(&mut self) -> Vec<String> {
        let files = self.files();
        let names = files.iter().filter_map(|file| file.path.strip_prefix(PROGRAMS));
        names.filter(|name| !name.contains('/')).map(String::from).collect()
    }
}

/// What there is to complete with.
struct Words<'a, 's>(&'a mut Shell<'s>);

impl Sources for Words<'_, '_> {
    fn arguments(&self, command: &str) -> Option<Candidates> {
        commands::find(command).map(|command| command.arguments)
    }

    fn words(&mut self, kind: Candidates) -> Vec<String> {
        match kind {
            Candidates::Commands => commands::all().map(|command| command.name.into()).collect(),
            Candidates::Programs => self.0.programs(),
            Candidates::Processes => {
                let living = self.0.processes().into_iter().filter(|process| process.end().is_none());
                living.map(|process| process.base_name().into()).collect()
            }
            Candidates::Files => self.0.files().iter().map(|file| file.path.clone()).collect(),
            Candidates::Nothing | Candidates::CommandLine | Candidates::Directories => Vec::new(),
        }
    }
}
