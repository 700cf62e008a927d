//! A test of machines that differ from the usual one.
//!
//! A machine may serve no semihosting, and may call its firmware by either instruction. There the emulator must end by
//! itself when the guest powers off, after `poweroff` as after a panic, and nothing may be reported about the ways to
//! power off that the machine lacks.
//!
//! On a machine without a real-time clock nobody knows the date, and everything else works.
//!
//! On a machine that the kernel cannot use, it must say what it has found, what it needs and what to do, and power off
//! without a report of a panic.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use miette::{Result, miette};

use super::Target;
use super::report::Report;
use crate::prepare::BootFiles;
use crate::process;
use crate::qemu::{Machine, Serial};
use crate::script::{self, End, Outcome, Patience, Step};
use crate::toolchain;
use crate::workspace;

/// System description that is booted.
pub const SYSTEM: &str = "fixtures";
/// The one that is booted with programs for Linux.
pub const SYSTEM_FOR_LINUX: &str = "default";
const PATIENCE: Patience = Patience { silence: Duration::from_secs(20), total: Duration::from_secs(60) };

/// Damage to what the machine is started with.
enum Damage {
    None,
    /// The RAM disk has this content.
    RamDisk(&'static [u8]),
    /// The kernel begins with this instruction, before what it begins with otherwise.
    FirstInstruction(u32),
    /// These words of the device tree are replaced by others of the same length.
    DeviceTree(&'static [(&'static str, &'static str)]),
}

/// A machine, and what must happen on it.
struct Unusual {
    name: &'static str,
    board: &'static str,
    semihosting: bool,
    cores: u32,
    damage: Damage,
    /// Set if the programs of `tests/linux` are there.
    has_linux: bool,
    /// The lines that are typed.
    typed: &'static [&'static str],
    status: u8,
    /// Lines that must be on the terminal, in this order. Those about a panic must not be there otherwise.
    expected: &'static [&'static str],
}

/// Beginning of a report about a panic or an exception.
const PANIC: &str = "panic: kernel:";
/// The usual board.
const USUAL: &str = "virt,gic-version=3";
/// Board whose firmware is called by `smc`.
const SECURE_MONITOR: &str = "virt,gic-version=3,virtualization=on";
/// Commands that stop the second core by a panic of its kernel, and show that.
const STOP: &[&str] = &["cores run 1 end-kernel", "cores", "poweroff 3"];
const STOPPED: &[&str] = &["monitor: core 1 has stopped", "1 of 2 cores run"];

/// Status of a kernel that has refused a machine, and its advice.
const REFUSED: u8 = 101;
const ADVICE: &str = "start it with ./tench run, or QEMU with -machine virt,gic-version=3";

impl Unusual {
    /// Returns a machine on which things are typed.
    const fn powers_off(name: &'static str, board: &'static str, semihosting: bool, cores: u32) -> Unusual {
        let (typed, expected): (&[&str], &[&str]) =
            if cores > 1 { (STOP, STOPPED) } else { (&["poweroff 3"], &["tench> poweroff 3"]) };
        let status = if semihosting { 3 } else { 0 };
        Unusual { name, board, semihosting, cores, damage: Damage::None, has_linux: false, typed, status, expected }
    }

    /// Returns a machine that the kernel refuses.
    const fn refused(
        name: &'static str,
        board: &'static str,
        damage: Damage,
        expected: &'static [&'static str],
    ) -> Unusual {
        let typed = &[];
        Unusual { name, board, semihosting: true, cores: 1, damage, has_linux: false, typed, status: REFUSED, expected }
    }
}

const MACHINES: [Unusual; 12] = [
    Unusual::powers_off("machines/without-semihosting", USUAL, false, 1),
    Unusual::powers_off("machines/secure-monitor", SECURE_MONITOR, true, 2),
    Unusual::powers_off("machines/secure-monitor-without-semihosting", SECURE_MONITOR, false, 2),
    Unusual {
        name: "machines/panic-without-semihosting",
        board: USUAL,
        semihosting: false,
        cores: 1,
        damage: Damage::RamDisk(&[0; 8192]),
        has_linux: false,
        typed: &[],
        status: 0,
        expected: &[PANIC, "tench_boot ("],
    },
    Unusual {
        name: "machines/without-clock",
        board: USUAL,
        semihosting: true,
        cores: 1,
        damage: Damage::DeviceTree(&[("arm,pl031", "new,clock")]),
        has_linux: true,
        typed: &["date", "linux linux/time", "poweroff 3"],
        status: 3,
        expected: &[
            "date: nobody knows the date here: the machine has no real-time clock that was set",
            "hours since 1970: 0",
            "a new file is of now: 1",
        ],
    },
    Unusual::refused(
        "machines/old-interrupt-controller",
        "virt,gic-version=2",
        Damage::None,
        &["(linux,dummy-virt): it has a GICv2 interrupt controller, and Tench needs a GICv3", ADVICE],
    ),
    Unusual::refused(
        "machines/unknown-interrupt-controller",
        USUAL,
        Damage::DeviceTree(&[("arm,gic-v3", "new,gic-v9"), ("linux,dummy-virt", "acme,other-board")]),
        &["(acme,other-board): its device tree names no interrupt controller that Tench knows", ADVICE],
    ),
    Unusual::refused(
        "machines/unknown-timer",
        USUAL,
        Damage::DeviceTree(&[("arm,armv8-timer", "new,other-timer"), ("arm,armv7-timer", "new,other-timer")]),
        &["its device tree names no timer that Tench knows", ADVICE],
    ),
    Unusual::refused(
        "machines/other-timer-line",
        USUAL,
        // The private line 11, which is 27 of all, becomes 12.
        Damage::DeviceTree(&[("\0\0\0\u{1}\0\0\0\u{b}", "\0\0\0\u{1}\0\0\0\u{c}")]),
        &["its virtual timer has another interrupt line than 27", ADVICE],
    ),
    Unusual::refused("machines/no-ram-disk", USUAL, Damage::RamDisk(&[]), &["it has no RAM disk (-initrd)", ADVICE]),
    Unusual::refused(
        "machines/no-device-tree",
        USUAL,
        // mov x0, #0
        Damage::FirstInstruction(0xd280_0000),
        &["(of unknown type): the boot loader passed no device tree", ADVICE],
    ),
    Unusual::refused(
        "machines/something-else-than-a-device-tree",
        USUAL,
        // mov x0, #0x40200000, where the kernel is
        Damage::FirstInstruction(0xd2a8_0400),
        &["(of unknown type): what the boot loader passed is no device tree", ADVICE],
    ),
];

impl Damage {
    /// Applies the damage. Returns the device tree, if the machine gets another than its own.
    fn apply(&self, board: &str, files: &BootFiles) -> Result<Option<PathBuf>> {
        match self {
            Damage::None => Ok(None),
            Damage::RamDisk(content) => workspace::write_file(&files.ram_disk, content).map(|()| None),
            Damage::FirstInstruction(instruction) => {
                let mut image = workspace::read_file(&files.image)?;
                let (first, rest) = image.split_at_mut(4);
                // The branch moves into the unused word behind it, which is an instruction nearer to its target.
                let branch = u32::from_le_bytes([first[0], first[1], first[2], first[3]]) - 1;
                first.copy_from_slice(&instruction.to_le_bytes());
                rest[..4].copy_from_slice(&branch.to_le_bytes());
                workspace::write_file(&files.image, &image).map(|()| None)
            }
            Damage::DeviceTree(words) => {
                let path = files.image.with_file_name("device-tree");
                let mut command = Command::new(toolchain::QEMU);
                command.args(["-machine", &format!("{board},dumpdtb={}", path.display())]);
                command.args(["-cpu", "cortex-a72", "-m", "1G", "-display", "none", "-nodefaults"]);
                // It says that it has done so.
                process::run(command.stderr(Stdio::null()))?;
                let mut tree = workspace::read_file(&path)?;
                for (word, other) in *words {
                    let found = |tree: &[u8]| tree.windows(word.len()).position(|part| part == word.as_bytes());
                    found(&tree).ok_or_else(|| miette!("the device tree does not name {word}"))?;
                    while let Some(place) = found(&tree) {
                        tree[place..][..word.len()].copy_from_slice(other.as_bytes());
                    }
                }
                workspace::write_file(&path, &tree)?;
                Ok(Some(path))
            }
        }
    }
}

impl Unusual {
    fn run(&self, target: &Target, report: &Report) -> Result<()> {
        let (system, build) = target.get(if self.has_linux { SYSTEM_FOR_LINUX } else { SYSTEM })?;
        let with = if self.has_linux { target.linux_programs()? } else { Vec::new() };
        let files = target.prepare(build, &system, &with)?;
        let tree = self.damage.apply(self.board, &files)?;
        let mut symbols = build.symbols(target.workspace, &system, &files)?;
        let Unusual { board, semihosting, cores, .. } = *self;
        let machine = Machine { board, semihosting, cores, ..Machine::default() };
        let steps: Vec<Step> = self.typed.iter().map(|line| Step::Line((*line).to_owned())).collect();
        let mut command = machine.command(&files, Serial::Pipe);
        if let Some(tree) = tree {
            command.arg("-dtb").arg(tree);
        }
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
