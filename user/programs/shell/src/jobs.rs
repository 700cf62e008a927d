//! Jobs: numbered pipelines of programs that were started with `&` or suspended with Ctrl-Z.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use tench_procs_interface::protocol::State;

use crate::shell::Shell;
use crate::system::{BROKEN, End, System};

/// A program of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Number of its process.
    pub pid: u64,
    /// Name of the program.
    pub name: String,
    /// State of its process.
    pub fate: Fate,
}

/// State of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The process runs.
    Running,
    /// The process is suspended.
    Suspended,
    /// The process ended like this; `None` if so many have ended since that its record is gone.
    Ended(Option<End>),
}

/// A job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Number of the job; 0 if it has none yet.
    pub number: u64,
    /// The pipeline as it was typed.
    pub text: String,
    /// Programs of the job.
    pub members: Vec<Member>,
    /// Set if its program is lent the terminal while it is in the foreground.
    pub borrows: bool,
}

impl Member {
    /// Returns a program whose process was just started.
    pub fn new(pid: u64, name: &str) -> Member {
        Member { pid, name: name.into(), fate: Fate::Running }
    }

    const fn has_ended(&self) -> bool {
        matches!(self.fate, Fate::Ended(_))
    }
}

impl Job {
    /// Returns its processes that have not ended.
    pub fn live(&self) -> Vec<u64> {
        self.members.iter().filter(|member| !member.has_ended()).map(|member| member.pid).collect()
    }

    /// Returns whether all of its processes have ended.
    pub fn has_ended(&self) -> bool {
        self.members.iter().all(Member::has_ended)
    }

    /// Updates the state of its processes.
    pub fn refresh(&mut self, system: &mut dyn System) {
        for member in self.members.iter_mut().filter(|member| !member.has_ended()) {
            member.fate = match system.process(member.pid) {
                Ok(process) if process.end().is_some() => Fate::Ended(process.end()),
                Ok(process) if process.state == State::Suspended => Fate::Suspended,
                Ok(_) => Fate::Running,
                Err(_) => Fate::Ended(None),
            };
        }
    }

    /// Sets how its processes ended, in their order.
    pub fn set_ends(&mut self, ends: &[Option<End>]) {
        for (member, end) in self.members.iter_mut().filter(|member| !member.has_ended()).zip(ends) {
            member.fate = Fate::Ended(*end);
        }
    }

    /// Returns its state in words: that of its last program, once all have ended, and failures of the others.
    pub fn state(&self) -> String {
        if !self.has_ended() {
            let runs = self.members.iter().any(|member| member.fate == Fate::Running);
            return if runs { "running" } else { "suspended" }.into();
        }
        let Some((last, others)) = self.members.split_last() else { return String::new() };
        let state = match last.fate {
            Fate::Ended(Some(end)) => end.to_string(),
            _ => "ended".into(),
        };
        let failures: Vec<String> = failures(others).map(|(name, end)| format!("{name} {end}")).collect();
        if failures.is_empty() || last.fate == Fate::Ended(Some(End::Killed)) {
            return state;
        }
        format!("{state} ({})", failures.join(", "))
    }

    /// Returns what is reported when it has ended in the foreground: nothing if all went well.
    pub fn complaints(&self) -> Vec<String> {
        let Some((last, others)) = self.members.split_last() else { return Vec::new() };
        match last.fate {
            // They were killed together.
            Fate::Ended(Some(End::Killed)) => Vec::from([format!("[{}]", End::Killed)]),
            Fate::Ended(Some(end)) if others.is_empty() && end != End::Exited(0) => Vec::from([format!("[{end}]")]),
            _ => {
                let of_last = match last.fate {
                    Fate::Ended(Some(end)) if end != End::Exited(0) => Some((last.name.as_str(), end)),
                    _ => None,
                };
                failures(others).chain(of_last).map(|(name, end)| format!("[{name}: {end}]")).collect()
            }
        }
    }
}

/// Returns failures of programs that others follow. A write to a pipe without a reader is their normal end.
fn failures(members: &[Member]) -> impl Iterator<Item = (&str, End)> {
    members.iter().filter_map(|member| match member.fate {
        Fate::Ended(Some(end)) if !matches!(end, End::Exited(0 | BROKEN)) => Some((member.name.as_str(), end)),
        _ => None,
    })
}

/// All jobs, in the order of their numbers.
#[derive(Debug, Default)]
pub struct Jobs(Vec<Job>);

impl Jobs {
    /// Adds a job. Returns its number: one more than the highest.
    pub fn add(&mut self, job: Job) -> u64 {
        let number = self.0.last().map_or(1, |last| last.number + 1);
        self.0.push(Job { number, ..job });
        number
    }

    /// Puts back a job that was taken out.
    pub fn put_back(&mut self, job: Job) {
        let index = self.0.partition_point(|other| other.number < job.number);
        self.0.insert(index, job);
    }

    /// Returns the numbers of all jobs.
    pub fn numbers(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|job| job.number)
    }

    /// Returns a job.
    pub fn get(&self, number: u64) -> Option<&Job> {
        self.0.iter().find(|job| job.number == number)
    }

    /// Removes and returns a job.
    pub fn take(&mut self, number: u64) -> Option<Job> {
        let index = self.0.iter().position(|job| job.number == number)?;
        Some(self.0.remove(index))
    }

    /// Removes the job of which this is the only process, because its end has been reported.
    pub fn forget_only(&mut self, pid: u64) {
        self.0.retain(|job| !matches!(job.members.as_slice(), [only] if only.pid == pid));
    }
}

impl Shell<'_> {
    /// Updates and returns all jobs; those that have ended are removed.
    pub fn refresh_jobs(&mut self) -> Vec<Job> {
        for job in &mut self.jobs.0 {
            job.refresh(self.system);
        }
        let all = self.jobs.0.clone();
        self.jobs.0.retain(|job| !job.has_ended());
        all
    }

    /// Reports which jobs have ended.
    pub(crate) fn report_jobs(&mut self) {
        if self.jobs.0.is_empty() {
            return;
        }
        let ended: Vec<Job> = self.refresh_jobs().into_iter().filter(Job::has_ended).collect();
        if !ended.is_empty() {
            self.start_line();
        }
        for job in ended {
            self.say(format_args!("[{}] {}: {}", job.number, job.text, job.state()));
        }
    }
}
