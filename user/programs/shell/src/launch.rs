//! Launching of a pipeline as processes.
//!
//! First comes everything that can fail for a reason that the user can mend: missing commands, programs or files. Then
//! the processes are connected, and only then does the first of them run. If anything fails, what was prepared is
//! discarded and every end of a stream is closed, so that nothing is left behind.
//!
//! The shell itself runs the commands of a pipeline, once its programs run; a command reads nothing, so there is no
//! input at its place in the pipeline.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::mem::take;

use tench_abi::Powers;
use tench_procs_interface::pid::{self, Shown};

use crate::commands::{self, Action, Call, Command, CoreChoice, Failure, Wanted, words_of};
use crate::jobs::{Job, Member};
use crate::parse::{Errors, Pipeline, Stage, Standard, Target};
use crate::shell::{Shell, Sinks};
use crate::system::{How, OnKey, Settings, Stream, Waited, base_name};

/// Kind of a stage.
enum Step<'a> {
    Command(&'static Command, &'a [String]),
    Program { words: &'a [String], pid: u64, borrows: bool },
}

/// A failure, and the command in which it happened.
pub(crate) type Trouble = (Option<&'static Command>, Failure);

/// State of a pipeline before its first process runs.
#[derive(Default)]
struct Prepared<'a> {
    steps: Vec<Step<'a>>,
    /// Targets of the output and errors of commands, for each step.
    sinks: Vec<Sinks>,
    /// Processes in preparation.
    waiting: Vec<u64>,
    /// Processes that run.
    started: Vec<u64>,
    /// Ends of streams that the shell holds.
    held: Vec<Stream>,
}

impl Prepared<'_> {
    /// Returns the process that is to be lent the terminal.
    fn borrower(&self) -> Option<u64> {
        self.steps.iter().find_map(|step| match step {
            Step::Program { pid, borrows: true, .. } => Some(*pid),
            _ => None,
        })
    }

    /// Returns the programs.
    fn members(&self) -> Vec<Member> {
        let member = |step: &Step<'_>| match step {
            Step::Command(..) => None,
            Step::Program { words, pid, .. } => {
                Some(Member::new(*pid, words.first().map_or("", |word| base_name(word))))
            }
        };
        self.steps.iter().filter_map(member).collect()
    }
}

/// Returns whether the words are a name and `--help`.
fn asks_for_help(stage: &Stage) -> bool {
    matches!(&stage.words[..], [_, option] if option == "--help")
}

/// Refuses to lend the terminal to a program that would not be the only one in the foreground and read from it.
fn check_lending(pipeline: &Pipeline, stage: &Stage) -> Result<(), Failure> {
    let what = if pipeline.stages.len() > 1 {
        "the terminal is lent to one program; run it without |"
    } else if pipeline.background {
        "the terminal is lent in the foreground; run the program without &"
    } else if stage.input.is_some() {
        "the terminal is lent to a program that reads from it; run it without <"
    } else {
        return Ok(());
    };
    Err(Failure::Usage(what.into()))
}

impl Shell<'_> {
    /// Runs a pipeline: until it has ended, unless it is for the background.
    pub(crate) fn run_pipeline(&mut self, pipeline: &Pipeline) -> Result<(), Trouble> {
        let Some(name) = pipeline.stages.first().and_then(|stage| stage.words.first()) else { return Ok(()) };
        if let Some(command) = commands::find(name)
            && let Action::Pipeline(run) = command.action
            && !asks_for_help(&pipeline.stages[0])
        {
            let mut rest = pipeline.clone();
            rest.stages[0].words.remove(0);
            if rest.stages[0].words.is_empty() {
                return Err((Some(command), Failure::Usage("the command is missing".into())));
            }
            run(self, &rest);
            return Ok(());
        }
        self.flush();
        let mut prepared = Prepared::default();
        let outcome = self
            .prepare(pipeline, &mut prepared)
            .and_then(|()| self.lend(&prepared))
            .and_then(|()| self.start(&mut prepared));
        if let Err(trouble) = outcome {
            self.give_up(&mut prepared);
            return Err(trouble);
        }
        if pipeline.background {
            self.leave_in_background(pipeline, &prepared);
        } else {
            self.see_through(pipeline, &mut prepared);
        }
        Ok(())
    }

    // ── Before anything runs ─────────────────────────────────────────────────────────────────────────────────────────

    fn prepare<'a>(&mut self, pipeline: &'a Pipeline, prepared: &mut Prepared<'a>) -> Result<(), Trouble> {
        for stage in &pipeline.stages {
            let step = self.step(pipeline, stage)?;
            if let Step::Program { pid, .. } = step {
                prepared.waiting.push(pid);
            }
            prepared.steps.push(step);
        }
        prepared.sinks.resize(prepared.steps.len(), Sinks::default());
        for (index, stage) in pipeline.stages.iter().enumerate() {
            self.redirect(index, stage, prepared).map_err(|failure| (None, failure))?;
        }
        Ok(())
    }

    /// Determines what a stage is, and prepares its process.
    fn step<'a>(&mut self, pipeline: &Pipeline, stage: &'a Stage) -> Result<Step<'a>, Trouble> {
        let Some((name, arguments)) = stage.words.split_first() else { return Err((None, self.unknown(""))) };
        let here = pid::split_pid(self.system.own_pid()).0;
        let Some(command) = commands::find(name) else {
            let pid = self.program(None, here, &stage.words, Settings::default())?;
            return Ok(Step::Program { words: &stage.words, pid, borrows: false });
        };
        if asks_for_help(stage)
            && let Some(help) = commands::find("help")
        {
            return Ok(Step::Command(help, &stage.words[..1]));
        }
        let usage = |text: &str| Err((Some(command), Failure::Usage(text.into())));
        let is_alone = pipeline.stages.len() == 1;
        match command.action {
            Action::Pipeline(_) => usage("it stands at the beginning, before everything that is timed"),
            Action::Program => {
                let with = |failure| (Some(command), failure);
                let wanted = commands::program_of(arguments).map_err(with)?;
                let core = match wanted.core {
                    None => here,
                    Some(CoreChoice::Core(core)) => core,
                    Some(CoreChoice::Any) => self.system.least_loaded().map_err(|refusal| with(refusal.into()))?,
                };
                self.check_powers(wanted.settings.powers).map_err(with)?;
                if wanted.borrows {
                    check_lending(pipeline, stage).map_err(with)?;
                }
                let Wanted { words, borrows, settings, .. } = wanted;
                let pid = self.program(Some(command), core, words, settings)?;
                Ok(Step::Program { words, pid, borrows })
            }
            _ if pipeline.background => usage("only programs can run in the background"),
            Action::Alone(_) if !is_alone => usage("it needs the shell for itself, without |"),
            Action::Alone(_) | Action::Anywhere(_) => Ok(Step::Command(command, arguments)),
        }
    }

    fn program(
        &mut self,
        command: Option<&'static Command>,
        core: u64,
        words: &[String],
        settings: Settings,
    ) -> Result<u64, Trouble> {
        match self.system.prepare(core, words, settings) {
            Ok(Some(pid)) => Ok(pid),
            Ok(None) => Err((command, self.unknown(words.first().map_or("", String::as_str)))),
            Err(refusal) => Err((command, refusal.into())),
        }
    }

    /// Refuses to pass on powers that this shell lacks, and names those that it has.
    fn check_powers(&self, wanted: Powers) -> Result<(), Failure> {
        let own = self.system.powers();
        let missing = words_of(wanted.difference(own));
        if missing.is_empty() {
            return Ok(());
        }
        let held = if own.is_empty() { "no powers".into() } else { words_of(own) };
        Err(Failure::Refused(format!("this shell cannot pass on {missing}; it has {held}")))
    }

    /// Opens the files and makes the pipe of a stage. Every end is recorded as held as soon as it exists.
    fn redirect(&mut self, index: usize, stage: &Stage, prepared: &mut Prepared<'_>) -> Result<(), Failure> {
        if let Some(path) = &stage.input {
            let stream = self.open(path, How::Read, prepared)?;
            self.connect(index, Standard::Input, stream, prepared)?;
            self.release(stream, prepared);
        }
        let mut output = None;
        if let Some(target) = &stage.output {
            output = Some(self.open_target(target, prepared)?);
        }
        if index + 1 < prepared.steps.len() {
            let (reader, writer) = self.system.pipe()?;
            prepared.held.extend([reader, writer]);
            self.connect(index + 1, Standard::Input, reader, prepared)?;
            self.release(reader, prepared);
            output = Some(writer);
        }
        if let Some(stream) = output {
            self.connect(index, Standard::Output, stream, prepared)?;
        }
        let errors = match &stage.errors {
            None => None,
            Some(Errors::ToOutput) => output,
            Some(Errors::To(target)) => Some(self.open_target(target, prepared)?),
        };
        if let Some(stream) = errors {
            self.connect(index, Standard::Errors, stream, prepared)?;
        }
        // A program has its own ends now. Those of a command are closed after it has run.
        if matches!(prepared.steps[index], Step::Program { .. }) {
            let sinks = take(&mut prepared.sinks[index]);
            self.release_sinks(sinks, prepared);
        }
        Ok(())
    }

    fn open(&mut self, path: &str, how: How, prepared: &mut Prepared<'_>) -> Result<Stream, Failure> {
        let opened = self.system.open(path, how);
        let stream = opened.map_err(|refusal| Failure::Refused(format!("{path}: {}", refusal.0)))?;
        prepared.held.push(stream);
        Ok(stream)
    }

    fn open_target(&mut self, target: &Target, prepared: &mut Prepared<'_>) -> Result<Stream, Failure> {
        self.open(&target.path, if target.append { How::Append } else { How::Replace }, prepared)
    }

    /// Gives a stage an end of a stream.
    fn connect(
        &mut self,
        index: usize,
        standard: Standard,
        stream: Stream,
        prepared: &mut Prepared<'_>,
    ) -> Result<(), Failure> {
        let sinks = &mut prepared.sinks[index];
        match standard {
            Standard::Input => {}
            Standard::Output => sinks.output = Some(stream),
            Standard::Errors => sinks.errors = Some(stream),
        }
        match prepared.steps[index] {
            Step::Program { pid, .. } => Ok(self.system.give(pid, standard, stream)?),
            Step::Command(..) => Ok(()),
        }
    }

    /// Closes an end that the shell holds.
    fn release(&mut self, stream: Stream, prepared: &mut Prepared<'_>) {
        prepared.held.retain(|held| *held != stream);
        self.system.close(stream);
    }

    fn release_sinks(&mut self, sinks: Sinks, prepared: &mut Prepared<'_>) {
        for stream in prepared.held.extract_if(.., |held| [sinks.output, sinks.errors].contains(&Some(*held))) {
            self.system.close(stream);
        }
    }

    // ── Running ──────────────────────────────────────────────────────────────────────────────────────────────────────

    /// Lends the terminal to the program for which that was asked: before it runs, so that it has it from the start.
    fn lend(&mut self, prepared: &Prepared<'_>) -> Result<(), Trouble> {
        let Some(pid) = prepared.borrower() else { return Ok(()) };
        self.system.set_foreground(&[pid], pid, OnKey::Handle);
        self.system.lend(pid).map_err(|refusal| (commands::find("run"), refusal.into()))
    }

    fn start(&mut self, prepared: &mut Prepared<'_>) -> Result<(), Trouble> {
        while !prepared.waiting.is_empty() {
            let pid = prepared.waiting.remove(0);
            self.system.start(pid).map_err(|refusal| (None, refusal.into()))?;
            prepared.started.push(pid);
        }
        Ok(())
    }

    /// Discards everything.
    fn give_up(&mut self, prepared: &mut Prepared<'_>) {
        for pid in prepared.waiting.drain(..) {
            self.system.abandon(pid);
        }
        for pid in prepared.started.drain(..) {
            // It may have ended by itself.
            let _ = self.system.kill(pid);
        }
        for stream in prepared.held.drain(..) {
            self.system.close(stream);
        }
    }

    fn leave_in_background(&mut self, pipeline: &Pipeline, prepared: &Prepared<'_>) {
        let pids: Vec<String> = prepared.started.iter().map(|pid| Shown(*pid).to_string()).collect();
        let (text, members) = (pipeline.text.clone(), prepared.members());
        let number = self.jobs.add(Job { number: 0, text, members, borrows: false });
        let noun = if pids.len() == 1 { "process" } else { "processes" };
        self.say(format_args!("[{number}] {} ({noun} {})", pipeline.text, pids.join(", ")));
    }

    /// Runs the commands, and waits for the programs.
    fn see_through(&mut self, pipeline: &Pipeline, prepared: &mut Prepared<'_>) {
        let borrows = prepared.borrower().is_some();
        if !prepared.started.is_empty() && !borrows {
            // In a pipeline, only the first program can have the terminal as its input.
            let reads = |stage: &Stage| stage.input.is_none();
            let reader = match (prepared.steps.first(), pipeline.stages.first()) {
                (Some(Step::Program { pid, .. }), Some(stage)) if reads(stage) => *pid,
                _ => self.system.own_pid(),
            };
            self.system.set_foreground(&prepared.started, reader, OnKey::Handle);
        }
        let members = prepared.members();
        let sinks = take(&mut prepared.sinks);
        for (step, sinks) in take(&mut prepared.steps).iter().zip(sinks) {
            let Step::Command(command, arguments) = step else { continue };
            self.set_sinks(sinks);
            let (Action::Anywhere(run) | Action::Alone(run)) = command.action else { continue };
            if let Err(failure) = run(self, &Call { arguments }) {
                self.complain(Some(command), &failure);
            }
            self.set_sinks(Sinks::default());
            self.release_sinks(sinks, prepared);
        }
        if !prepared.started.is_empty() {
            self.wait_for(Job { number: 0, text: pipeline.text.clone(), members, borrows });
        }
    }

    /// Waits for a job in the foreground, and reports how it ended. A suspended one becomes or remains numbered.
    pub(crate) fn wait_for(&mut self, mut job: Job) {
        let waited = self.system.wait(&job.live());
        if job.borrows {
            self.restore_terminal();
        }
        // Ctrl-C is meant for the whole line.
        self.is_line_given_up |= matches!(waited, Ok(Waited::EndedEarly(_)));
        match waited {
            Ok(Waited::Ended(ends) | Waited::EndedEarly(ends)) => {
                job.set_ends(&ends);
                let complaints = job.complaints();
                // So is a kill from elsewhere.
                self.is_line_given_up |= complaints.iter().any(|complaint| complaint == "[killed]");
                if !complaints.is_empty() {
                    self.start_line();
                }
                for complaint in complaints {
                    self.say(format_args!("{complaint}"));
                }
            }
            Ok(Waited::Suspended) => {
                self.is_line_given_up = true;
                self.start_line();
                let text = job.text.clone();
                let number = if job.number == 0 {
                    self.jobs.add(job)
                } else {
                    let number = job.number;
                    self.jobs.put_back(job);
                    number
                };
                self.say(format_args!("[{number}] {text}: suspended; fg %{number} or bg %{number} lets it go on"));
            }
            Ok(Waited::Interrupted) => self.is_line_given_up = true,
            Err(refusal) => self.complain(None, &refusal.into()),
        }
    }
}
