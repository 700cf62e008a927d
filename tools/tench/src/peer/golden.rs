//! Recorded output on Linux of the programs of `tests/linux`, and of scripts for programs of Debian's packages, and the
//! lines that Tench may print instead.
//!
//! `tests/linux/golden.toml` lists the programs and scripts and, by line, each difference with its reason. A file
//! `tests/linux/golden/NAME.txt` begins with the kernel; then comes what was printed, and, as Tench's shell
//! says it, the status unless that is 0.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use miette::{Result, WrapErr, miette};
use serde::Deserialize;

use crate::script::Patience;
use crate::transcript;
use crate::workspace::{self, Workspace};

const LIST: &str = "tests/linux/golden.toml";
const DIRECTORY: &str = "tests/linux/golden";
/// The slowest machine on which a script may run: the emulator allows no slower one.
const MAX_SHIFT: u8 = 10;
/// Beginning of the names of scripts that run whole suites of tests.
const SUITE: &str = "suite-";
/// Beginning of the line with the kernel.
const KERNEL: &str = "# ";

/// The list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Golden {
    #[serde(rename = "program", default)]
    programs: Vec<Program>,
    #[serde(rename = "script", default)]
    scripts: Vec<Script>,
    #[serde(rename = "difference", default)]
    differences: Vec<Difference>,
}

/// A program whose output is compared.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Name of the file in `tests/linux`, without `.c`.
    pub name: String,
    /// Arguments after the name.
    #[serde(default)]
    pub arguments: Vec<String>,
}

/// A command that runs programs of Debian's packages, mostly by a script of `tests/linux/scripts`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    pub name: String,
    /// Packages with the programs, by name; what these need is added.
    pub packages: Vec<String>,
    /// Files and directories of the packages that are taken, as paths from the root; without any, all are.
    #[serde(default)]
    pub files: Vec<String>,
    /// Path of the program that runs, and its arguments.
    pub command: Vec<String>,
    /// Set if it takes too long for each run of the tests.
    #[serde(default)]
    pub long: bool,
    /// A suite of `tests/linux/suites.toml` whose tests are in `/suite`.
    pub suite: Option<String>,
    /// How slow the machine is: an instruction takes two to the power of this many nanoseconds.
    #[serde(default)]
    pub shift: u8,
    /// Set if the personality does not report missing system calls, because the programs try all calls.
    #[serde(default)]
    quiet: bool,
    /// Number of capabilities that the personality can hold, if its programs are more than it can have otherwise.
    slots: Option<u64>,
    /// A directory of Tench's files, and the place where the programs see it: what Linux has there in memory.
    mount: Option<String>,
}

impl Script {
    fn problem(&self) -> Option<String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@+%".contains(c);
        if self.packages.is_empty() {
            Some("`packages` is empty; name those with the programs that it runs".to_owned())
        } else if !self.command.first().is_some_and(|program| program.starts_with('/')) {
            Some("`command` must begin with the path of a program, such as \"/bin/sh\"".to_owned())
        } else if self.shift > MAX_SHIFT {
            Some(format!("`shift` is {}; at most {MAX_SHIFT} is allowed", self.shift))
        } else {
            let bad = self.command.iter().find(|word| word.is_empty() || !word.chars().all(plain))?;
            let help = "letters, digits and -_./=:,@+% are allowed; put the rest into a script";
            Some(format!("the word {bad:?} of `command` would have to be quoted: {help}"))
        }
    }
}

/// An entry of the list, which runs on Linux and on Tench.
#[derive(Clone, Debug)]
pub enum Subject {
    Program(Program),
    Script(Script),
}

impl Subject {
    pub fn name(&self) -> &str {
        match self {
            Subject::Program(program) => &program.name,
            Subject::Script(script) => &script.name,
        }
    }

    /// Returns how slow the machine is on which it runs.
    pub fn shift(&self) -> u8 {
        match self {
            Subject::Program(_) => 0,
            Subject::Script(script) => script.shift,
        }
    }

    /// Returns the command by which Tench runs the subject's command.
    pub fn runner(&self) -> String {
        let (quiet, slots, mount) = match self {
            Subject::Script(script) => (script.quiet, script.slots, script.mount.as_deref()),
            Subject::Program(_) => (false, None, None),
        };
        let mount = mount.map_or_else(String::new, |mount| format!(" --mount {mount}"));
        let slots = slots.map_or_else(String::new, |slots| format!("run --slots {slots} "));
        let quiet = if quiet { " --quiet" } else { "" };
        format!("{slots}linux{quiet}{mount}")
    }

    /// Returns how long to wait for it on either side, if that is longer than for others.
    pub fn patience(&self) -> Option<Patience> {
        (self.is_long() || self.name().starts_with(SUITE))
            .then_some(Patience { silence: Duration::from_secs(900), total: Duration::from_secs(4 * 3600) })
    }

    /// Returns whether it takes too long for each run of the tests.
    pub fn is_long(&self) -> bool {
        matches!(self, Subject::Script(script) if script.long)
    }
}

/// A line that Tench prints otherwise.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Difference {
    #[serde(alias = "script")]
    program: String,
    /// Number of the line in the recorded file, from 1.
    line: usize,
    /// Text of that line; without one, Tench's comes before the line.
    linux: Option<String>,
    /// Line that Tench prints, if it prints one.
    tench: Option<String>,
    reason: String,
}

impl Golden {
    /// Reads the list.
    pub fn load(workspace: &Workspace) -> Result<Golden> {
        Golden::parse(&workspace::read_text(&workspace.root.join(LIST))?)
    }

    fn parse(text: &str) -> Result<Golden> {
        let golden: Golden = toml::from_str(text).map_err(|error| miette!("{LIST}: {error}"))?;
        let mut names: Vec<String> = golden.subjects().iter().map(|one| one.name().to_owned()).collect();
        names.sort();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(miette!("{LIST}: two entries have the name {}", twice[0]));
        }
        for script in &golden.scripts {
            if let Some(problem) = script.problem() {
                return Err(miette!("{LIST}: the script {}: {problem}", script.name));
            }
        }
        for Difference { program, line, linux, tench, reason } in &golden.differences {
            let problem = if !names.contains(program) {
                "no [[program]] and no [[script]] has this name"
            } else if reason.is_empty() {
                "its reason is missing"
            } else if linux == tench {
                "`linux` and `tench` are the same; each is a line, or left out where there is none"
            } else {
                continue;
            };
            return Err(miette!("{LIST}: the difference in line {line} of {program}: {problem}"));
        }
        Ok(golden)
    }

    /// Returns every program and every script.
    pub fn subjects(&self) -> Vec<Subject> {
        let programs = self.programs.iter().cloned().map(Subject::Program);
        programs.chain(self.scripts.iter().cloned().map(Subject::Script)).collect()
    }

    /// Returns the names of all packages that scripts name.
    pub fn packages(&self) -> BTreeSet<String> {
        self.scripts.iter().flat_map(|script| script.packages.iter().cloned()).collect()
    }

    /// Returns the programs and scripts of these names, or all if there are none.
    pub fn choose(&self, names: &[String]) -> Result<Vec<Subject>> {
        let all = self.subjects();
        if names.is_empty() {
            return Ok(all);
        }
        let find = |name: &String| {
            let allowed = || all.iter().map(Subject::name).collect::<Vec<_>>().join(", ");
            let found = all.iter().find(|one| one.name() == name).cloned();
            found.ok_or_else(|| {
                miette!(help = format!("allowed: {}", allowed()), "{LIST} has no program or script {name}")
            })
        };
        names.iter().map(find).collect()
    }

    /// Returns the path of a program's recorded file.
    pub fn path(workspace: &Workspace, name: &str) -> PathBuf {
        workspace.root.join(DIRECTORY).join(name).with_extension("txt")
    }

    /// Returns what a program is to print on Tench.
    pub fn expected(&self, workspace: &Workspace, name: &str) -> Result<Vec<String>> {
        let lines = recorded(workspace, name)?;
        self.apply(name, lines).wrap_err_with(|| format!("{LIST} does not fit {DIRECTORY}/{name}.txt"))
    }

    /// Replaces the lines in which Tench differs.
    fn apply(&self, name: &str, mut lines: Vec<String>) -> Result<Vec<String>> {
        let mut differences: Vec<&Difference> = self.differences.iter().filter(|one| one.program == name).collect();
        // From the last on, so that the numbers of those to come stay right.
        differences.sort_by_key(|one| std::cmp::Reverse(one.line));
        for Difference { line, linux, tench, .. } in differences {
            // The first line, which has the kernel, is not among them.
            let at = line.wrapping_sub(2);
            let is_there = match linux {
                Some(text) => lines.get(at) == Some(text),
                None => at <= lines.len(),
            };
            if !is_there {
                let found = lines.get(at).map_or("nothing", String::as_str);
                let said = linux.as_deref().unwrap_or("a line");
                return Err(miette!("line {line} is said to be `{said}`, and is `{found}`"));
            }
            lines.splice(at..at + usize::from(linux.is_some()), tench.clone());
        }
        Ok(lines)
    }
}

/// Returns what a session shows of a program.
pub fn printed(mut lines: Vec<String>, status: u8) -> Vec<String> {
    lines.extend((status != 0).then(|| format!("[exited with {status}]")));
    lines
}

/// Returns the content of a recorded file.
pub fn file(kernel: &str, printed: &[String]) -> String {
    let lines = std::iter::once(format!("{KERNEL}{kernel}")).chain(printed.iter().cloned());
    lines.map(|line| line + "\n").collect()
}

/// Returns what a program printed on Linux when that was recorded.
fn recorded(workspace: &Workspace, name: &str) -> Result<Vec<String>> {
    let path = Golden::path(workspace, name);
    if !path.is_file() {
        return Err(miette!(
            help = format!("./tench linux-peer --record {name}"),
            "what {name} prints on Linux is not recorded"
        ));
    }
    let text = workspace::read_text(&path)?;
    match text.split_once('\n') {
        Some((first, rest)) if first.starts_with(KERNEL) => Ok(rest.lines().map(str::to_owned).collect()),
        _ => Err(miette!(
            help = format!("./tench linux-peer --record {name}"),
            "{} is damaged: its first line must name the kernel",
            workspace.relative(&path)
        )),
    }
}

/// Compares what was just printed on Linux with what is recorded by that name; returns the first difference.
pub fn compare(workspace: &Workspace, name: &str, printed: &[String]) -> Result<Option<String>> {
    let recorded = recorded(workspace, name)?;
    let [recorded, printed] =
        [&recorded[..], printed].map(|lines| lines.iter().map(String::as_str).collect::<Vec<_>>());
    Ok(transcript::compare(&recorded, &printed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn golden(differences: &str) -> Result<Golden> {
        Golden::parse(&format!("[[program]]\nname = \"a\"\n{differences}"))
    }

    fn difference(rest: &str) -> String {
        format!("[[difference]]\nprogram = \"a\"\nreason = \"it is so\"\n{rest}\n")
    }

    fn lines(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn lines_are_replaced_added_and_left_out() {
        let all = [
            difference("line = 2\nlinux = \"one\"\ntench = \"ONE\""),
            difference("line = 3\nlinux = \"two\""),
            difference("line = 4\ntench = \"between\""),
            difference("line = 5\ntench = \"last\""),
        ];
        let golden = golden(&all.concat()).unwrap();
        assert_eq!(golden.apply("a", lines("one two three")).unwrap(), lines("ONE between three last"));
        assert_eq!(golden.apply("b", lines("one two three")).unwrap(), lines("one two three"));
    }

    #[test]
    fn a_difference_that_does_not_fit_is_an_error() {
        let fits = |rest: &str| golden(&difference(rest)).unwrap().apply("a", lines("one two")).is_ok();
        assert!(fits("line = 3\nlinux = \"two\"\ntench = \"2\"") && fits("line = 4\ntench = \"three\""));
        for bad in ["line = 2\nlinux = \"two\"", "line = 4\nlinux = \"three\"", "line = 1\nlinux = \"# x\""] {
            assert!(!fits(bad), "{bad}");
        }
        for bad in ["line = 5\ntench = \"four\"", "line = 0\ntench = \"none\""] {
            assert!(!fits(bad), "{bad}");
        }
    }

    #[test]
    fn mistakes_in_the_list_are_named() {
        let message = |text: &str| golden(text).unwrap_err().to_string();
        let unknown = difference("line = 2\ntench = \"x\"").replace("\"a\"", "\"b\"");
        assert!(message(&unknown).contains("line 2 of b: no [[program]] and no [[script]] has this name"));
        let silent = difference("line = 2\ntench = \"x\"").replace("it is so", "");
        assert!(message(&silent).contains("its reason is missing"));
        assert!(message(&difference("line = 2")).contains("are the same"));
        assert!(message(&difference("lines = 2")).contains("unknown field `lines`"));
        let message = golden("").unwrap().choose(&["c".into()]).unwrap_err();
        assert_eq!(message.to_string(), format!("{LIST} has no program or script c"));
        assert_eq!(message.help().unwrap().to_string(), "allowed: a");
    }

    #[test]
    fn mistakes_in_a_script_are_named() {
        let script = |rest: &str| format!("[[script]]\nname = \"s\"\n{rest}\n");
        let good = script("packages = [\"dash\"]\ncommand = [\"/bin/dash\", \"/test/s.sh\"]");
        let golden = golden(&good).unwrap();
        assert_eq!(golden.subjects().iter().map(Subject::name).collect::<Vec<_>>(), ["a", "s"]);
        assert_eq!(golden.packages().into_iter().collect::<Vec<_>>(), ["dash"]);
        assert_eq!(golden.subjects().iter().map(Subject::runner).collect::<Vec<_>>(), ["linux", "linux"]);
        let quiet = super::tests::golden(&format!("{good}quiet = true\n")).unwrap();
        assert_eq!(quiet.subjects()[1].runner(), "linux --quiet");
        let mounted = super::tests::golden(&format!("{good}mount = \"tmp=/mnt\"\n")).unwrap();
        assert_eq!(mounted.subjects()[1].runner(), "linux --mount tmp=/mnt");
        let large = super::tests::golden(&format!("{good}quiet = true\nslots = 65536\n")).unwrap();
        assert_eq!(large.subjects()[1].runner(), "run --slots 65536 linux --quiet");
        let message = |text: &str| super::tests::golden(text).unwrap_err().to_string();
        assert!(message(&good.replace("\"s\"", "\"a\"")).ends_with("two entries have the name a"));
        assert!(message(&good.replace("[\"dash\"]", "[]")).contains("the script s: `packages` is empty"));
        assert!(message(&good.replace("\"/bin/dash\"", "\"dash\"")).contains("begin with the path of a program"));
        assert!(message(&script("packages = [\"a\"]\ncommand = []")).contains("begin with the path of a program"));
        let slow = good.replace("[\"dash\"]", "[\"dash\"]\nshift = 11");
        assert!(message(&slow).ends_with("the script s: `shift` is 11; at most 10 is allowed"));
        for word in ["a b", "$x", "it's", ""] {
            let text = message(&good.replace("/test/s.sh", word));
            assert!(text.contains(&format!("the word {word:?} of `command` would have to be quoted")), "{text}");
        }
        assert!(message(&script("packages = [\"a\"]")).contains("missing field `command`"));
        assert!(message(&good.replace("packages", "package")).contains("unknown field `package`"));
    }

    #[test]
    fn what_is_recorded_is_read_again() {
        let root = tempfile::tempdir().unwrap();
        let workspace = Workspace { root: root.path().to_owned(), target: root.path().join("target") };
        let golden = golden("").unwrap();
        let message = golden.expected(&workspace, "a").unwrap_err().help().unwrap().to_string();
        assert_eq!(message, "./tench linux-peer --record a");
        let printed = printed(lines("one two"), 7);
        let path = Golden::path(&workspace, "a");
        workspace::write_file(&path, file("linux 6.1", &printed).as_bytes()).unwrap();
        assert_eq!(golden.expected(&workspace, "a").unwrap(), ["one", "two", "[exited with 7]"]);
        assert_eq!(compare(&workspace, "a", &printed).unwrap(), None);
        assert!(compare(&workspace, "a", &lines("one 2")).unwrap().is_some());
        workspace::write_file(&path, b"one\n").unwrap();
        assert!(golden.expected(&workspace, "a").unwrap_err().to_string().contains("its first line"));
    }
}
