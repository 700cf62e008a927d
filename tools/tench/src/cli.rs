//! The command line of `./tench`. Doc comments here are its help texts.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::build::Kernel;

/// Builds, boots, tests and measures Tench.
#[derive(Parser)]
#[command(name = "tench", bin_name = "./tench", version, disable_help_subcommand = true)]
pub struct Cli {
    /// Print the commands that are run.
    #[arg(short, long, global = true)]
    pub verbose: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Build the system and boot it.
    ///
    /// The terminal belongs to the guest: line editing and Ctrl-C reach it, Ctrl-A x quits.
    Run(RunOptions),
    /// Run the tests, on the host and on the target.
    Test(TestOptions),
    /// Check the code without running it: format, lints, documentation, and the tree's own rules.
    Check,
    /// Measure: run experiments and compare their figures.
    Lab(LabOptions),
    /// Replay allocation traces on this machine, under any policy.
    #[command(subcommand)]
    Memlab(MemlabCommand),
    /// Run a static program for Linux on Debian's kernel, in the same emulated machine.
    ///
    /// The kernel comes from Debian's archive and is kept, and so do the packages with programs that scripts of
    /// tests/linux run. The command's status is the program's.
    LinuxPeer(LinuxPeerOptions),
    /// Write the C headers and the pages of the manual that are generated from interfaces.
    Interfaces(InterfacesOptions),
    /// Say what is installed, what is missing, and what to do about it.
    Doctor,
}

#[derive(Args)]
pub struct RunOptions {
    /// Number of processor cores of the machine.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub cores: u32,
    /// Description in systems/ to boot.
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub system: String,
    /// Type the lines of FILE (- is standard input) into the shell, and end with the guest's status.
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// Put a file of this machine into the boot archive (programs under bin/ unless PATH says otherwise).
    #[arg(long, value_name = "HOSTFILE[:PATH]")]
    pub with: Vec<String>,
    /// Put a tree of files of this machine into the image, for Linux programs: a directory, a Debian package or a tar
    /// file. Later ones add to earlier ones and replace their files.
    #[arg(long, value_name = "DIR|FILE.deb|FILE.tar")]
    pub linux: Vec<PathBuf>,
    /// Count instructions instead of time, so that every run is the same.
    #[arg(long)]
    pub icount: bool,
    /// Kernel to boot. All kernels are equal, but `non-preemptible` never lets interrupts in during long operations,
    /// and the measuring ones measure interrupts-off intervals.
    #[arg(long, value_name = "NAME", default_value = "usual")]
    pub kernel: Kernel,
    /// Seed of the random numbers that choose the addresses in each process; a fresh one is shown.
    #[arg(long, value_name = "N", value_parser = seed)]
    pub seed: Option<u64>,
    /// Wait for a debugger before the first instruction.
    #[arg(long)]
    pub gdb: bool,
    /// Memory of the machine, as QEMU writes it.
    #[arg(long, value_name = "SIZE", default_value = "1G")]
    pub memory: String,
    /// Processor of the machine: cortex-a72, max, or another that QEMU knows.
    #[arg(long, default_value = "cortex-a72")]
    pub cpu: String,
    /// With --script or piped input: seconds without output after which the guest counts as hung.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: u64,
}

/// Parses a seed.
fn seed(text: &str) -> Result<u64, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|_| format!("a seed is a number from 0 to {}, or 0x and hexadecimal digits", u64::MAX))
}

#[derive(Args)]
pub struct TestOptions {
    /// Run the tests with this in their names: host, crash, cases, seed, scenario/NAME, lab/NAME, mutants/NAME, or a
    /// part of one.
    pub filter: Option<String>,
    /// Run the long tests as well: host/long/NAME and mutants/NAME.
    #[arg(long)]
    pub long: bool,
    /// Run at most N tests at once, each of which uses a processor (default: as many as there are processors).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    pub jobs: Option<u8>,
    /// List the tests instead of running them.
    #[arg(long)]
    pub list: bool,
    /// Write the guest's output into tests/scenarios/ instead of comparing.
    #[arg(long)]
    pub bless: bool,
}

#[derive(Args)]
pub struct LabOptions {
    /// Experiments to run, or `list`.
    #[arg(value_name = "list | NAME")]
    pub names: Vec<String>,
    /// Run every experiment.
    #[arg(long, conflicts_with = "names")]
    pub all: bool,
    /// Compare with lab/baseline/NAME.json, exactly.
    #[arg(long)]
    pub check: bool,
    /// Write lab/baseline/NAME.json.
    #[arg(long, conflicts_with = "check")]
    pub record: bool,
    /// Print result.json instead of the table.
    #[arg(long)]
    pub json: bool,
    /// For `soak` and `spawn-kill`: go on for this many instructions, and report what happened meanwhile.
    #[arg(long, value_name = "N", conflicts_with_all = ["check", "record"])]
    pub instructions: Option<u64>,
    /// With `--instructions`: seed of the random numbers.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "instructions")]
    pub seed: u64,
}

#[derive(Args)]
pub struct LinuxPeerOptions {
    /// A program of tests/linux by its name, or a file of this machine; and its arguments. With --record or --check:
    /// names from tests/linux/golden.toml, or none for all; with --record-figures or --check-figures, of experiments.
    #[arg(value_name = "PROGRAM", trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<String>,
    /// Write what programs print on Linux into tests/linux/golden/.
    #[arg(long)]
    pub record: bool,
    /// Compare what programs print on Linux with tests/linux/golden/.
    #[arg(long, conflicts_with = "record")]
    pub check: bool,
    /// Write tests/linux/packages.toml: the versions that Debian has now of the packages that are named.
    #[arg(long, conflicts_with_all = ["record", "check", "words"])]
    pub packages: bool,
    /// Measure on Linux for the experiments that compare with it, and write lab/linux/NAME.json.
    #[arg(long, conflicts_with_all = ["record", "check", "packages"])]
    pub record_figures: bool,
    /// Measure on Linux for the experiments that compare with it, and compare with lab/linux/NAME.json.
    #[arg(long, conflicts_with_all = ["record", "check", "packages", "record_figures"])]
    pub check_figures: bool,
    /// Further parameters for the kernel, such as "nokaslr mitigations=off".
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub parameters: String,
}

#[derive(Args)]
pub struct InterfacesOptions {
    /// Write nothing: status 1 if a file differs from what its interface generates.
    #[arg(long)]
    pub check: bool,
}

#[derive(Subcommand)]
pub enum MemlabCommand {
    /// Replay a trace and say what was lost.
    Replay(ReplayOptions),
    /// List the policies.
    Policies,
}

#[derive(Args)]
pub struct ReplayOptions {
    /// The trace: `alloc COUNT SIZE`, `free NUMBER` or `failed` a line; see docs/manual/traces.md.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Policy that chooses the slab to which an object goes: one of `./tench memlab policies`.
    #[arg(long, value_name = "POLICY")]
    pub policy: Option<String>,
    /// Sizes of the slabs in bytes, one a line, instead of the reference's.
    #[arg(long, value_name = "FILE")]
    pub slabs: Option<PathBuf>,
    /// Let objects go to any free range of a slab, not only above its watermark.
    #[arg(long)]
    pub lifted: bool,
    /// Print one line of JSON.
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// Asks a command and those below it for help; the words before are those of the commands above it.
    fn ask(command: &clap::Command, words: &[&str]) {
        let asked = Cli::command().try_get_matches_from(words.iter().chain(&["--help"]));
        let reply = asked.expect_err("it does nothing else");
        assert_eq!((reply.exit_code(), reply.use_stderr()), (0, false), "{words:?}");
        assert!(reply.to_string().contains("Usage: ./tench"), "{words:?}");
        for below in command.get_subcommands() {
            ask(below, &[words, &[below.get_name()]].concat());
        }
    }

    #[test]
    fn every_command_has_help_which_is_no_error() {
        ask(&Cli::command(), &["./tench"]);
    }
}
