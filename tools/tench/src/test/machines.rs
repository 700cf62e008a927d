//! A test of machines that differ from the usual one.
//!
//! A machine may serve no semihosting, and may call its firmware by either instruction. There the emulator must end by
//! itself when the guest powers off, after `poweroff` as after a panic, and nothing may be reported about the ways to
//! power off that the machine lacks.

use std::time::Duration;

use miette::Result;

use super::Target;
use super::report::Report;
use crate::prepare::BootFiles;
use crate::qemu::{Machine, Serial};
use crate::script::{self, End, Outcome, Patience, Step};
use crate::workspace;

/// System description that is booted.
pub const SYSTEM: &str = "peers";
const PATIENCE: Patience = Patience { silence: Duration::from_secs(20), total: Duration::from_secs(60) };

/// A machine, and what must happen on it.
struct Unusual {
    name: &'static str,
    board: &'static str,
    semihosting: bool,
    cores: u32,
    /// Damages the boot files.
    damage: fn(&BootFiles) -> Result<()>,
    /// The lines that are typed.
    typed: &'static [&'static str],
    status: u8,
    /// Lines that must be on the terminal, in this order. Those about a panic must not be there otherwise.
    expected: &'static [&'static str],
}

/// Panics of the kernel, and what it says when an exception is reported.
const PANIC: &str = "panic: kernel:";
/// Board whose firmware is called by `smc`.
const SECURE_MONITOR: &str = "virt,gic-version=3,virtualization=on";
/// Commands that stop the second core by a panic of its kernel, and show that.
const STOP: &[&str] = &["cores run 1 end-kernel", "cores", "poweroff 3"];
const STOPPED: &[&str] = &["monitor: core 1 has stopped", "1 of 2 cores run"];

const MACHINES: [Unusual; 4] = [
    Unusual {
        name: "machines/without-semihosting",
        board: "virt,gic-version=3",
        semihosting: false,
        cores: 1,
        damage: |_| Ok(()),
        typed: &["poweroff 3"],
        status: 0,
        expected: &["tench> poweroff 3"],
    },
    Unusual {
        name: "machines/panic-without-semihosting",
        board: "virt,gic-version=3",
        semihosting: false,
        cores: 1,
        damage: |files| workspace::write_file(&files.ram_disk, &[0; 8192]),
        typed: &[],
        status: 0,
        expected: &[PANIC, "tench_boot ("],
    },
    Unusual {
        name: "machines/secure-monitor",
        board: SECURE_MONITOR,
        semihosting: true,
        cores: 2,
        damage: |_| Ok(()),
        typed: STOP,
        status: 3,
        expected: STOPPED,
    },
    Unusual {
        name: "machines/secure-monitor-without-semihosting",
        board: SECURE_MONITOR,
        semihosting: false,
        cores: 2,
        damage: |_| Ok(()),
        typed: STOP,
        status: 0,
        expected: STOPPED,
    },
];

impl Unusual {
    fn run(&self, target: &Target, report: &Report) -> Result<()> {
        let (system, build) = target.get(SYSTEM)?;
        let files = target.prepare(build, &system, &[])?;
        (self.damage)(&files)?;
        let mut symbols = build.symbols(target.workspace, &system)?;
        let Unusual { board, semihosting, cores, .. } = *self;
        let machine = Machine { board, semihosting, cores, ..Machine::default() };
        let steps: Vec<Step> = self.typed.iter().map(|line| Step::Line((*line).to_owned())).collect();
        let mut command = machine.command(&files, Serial::Pipe);
        let outcome = script::run(&mut command, &steps, PATIENCE, |line| symbols.explain(line))?;
        match self.judge(&outcome) {
            None => report.passed(self.name),
            Some(problem) => {
                report.failed(self.name, &format!("{problem}; what was on the terminal:\n{}", outcome.last_screen()));
            }
        }
        Ok(())
    }

    /// Returns what is wrong with how the machine ran and ended.
    fn judge(&self, outcome: &Outcome) -> Option<String> {
        if outcome.end != End::Exited(self.status) {
            return Some(format!("the emulator did not end with status {}: {:?}", self.status, outcome.end));
        }
        let mut lines = outcome.lines.iter();
        let missing = self.expected.iter().find(|text| !lines.any(|line| line.contains(**text)));
        if let Some(text) = missing {
            return Some(format!("the terminal lacks \"{text}\""));
        }
        let panics = outcome.lines.iter().filter(|line| line.contains(PANIC)).count();
        let expected = self.expected.iter().filter(|line| line.contains(PANIC)).count();
        (panics != expected).then(|| format!("the kernel reported {panics} panics, not {expected}"))
    }
}

pub fn run(target: &Target, report: &Report) -> Result<()> {
    MACHINES.iter().try_for_each(|machine| machine.run(target, report))
}
