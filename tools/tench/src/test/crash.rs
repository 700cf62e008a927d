//! What people see when the kernel itself goes wrong: a kernel that cannot boot, and one with a broken instruction.
//!
//! Both must power off with the status of a kernel's failure, and name the functions on the way there.

use std::time::Duration;

use miette::{Result, miette};

use super::Target;
use super::report::Report;
use crate::elf::{self, Executable};
use crate::image;
use crate::prepare::{self, BootFiles};
use crate::qemu::{Machine, Serial};
use crate::script::{self, End, Outcome, Patience};
use crate::workspace;

/// The description that is booted.
pub const SYSTEM: &str = "default";
const PATIENCE: Patience = Patience { silence: Duration::from_secs(20), total: Duration::from_secs(60) };
/// The guest's status after a failure of the kernel.
const STATUS: u8 = 101;
/// The first function in Rust.
const FUNCTION: &str = "tench_boot";
/// What no processor executes.
const UNDEFINED: [u8; 4] = [0; 4];

/// A way to make the kernel fail.
struct Crash {
    name: &'static str,
    /// Damages the boot files.
    damage: fn(&Executable, u64, &BootFiles) -> Result<()>,
    /// What the report must contain, in this order.
    expected: &'static [&'static str],
}

const CRASHES: [Crash; 2] = [
    Crash {
        name: "crash/panic",
        damage: |_, _, files| workspace::write_file(&files.ram_disk, &[0; 8192]),
        expected: &[
            "panic: kernel: cannot boot: the RAM disk does not begin with a header",
            "boot.rs:",
            "tench_boot (",
        ],
    },
    Crash {
        name: "crash/exception",
        damage: |kernel, function, files| {
            let mut kernel = kernel.clone();
            let segment = kernel.segments.iter_mut().find_map(|segment| {
                let offset = function.checked_sub(segment.virtual_address)? as usize;
                segment.content.get_mut(offset..offset + UNDEFINED.len())
            });
            segment.ok_or_else(|| miette!("{FUNCTION} lies in no segment"))?.copy_from_slice(&UNDEFINED);
            workspace::write_file(&files.image, &image::kernel(&kernel)?)
        },
        expected: &["panic: kernel: exception", "tench_boot (", "x0 ", "x28 ", "state "],
    },
];

pub fn run(target: &Target, report: &mut Report) -> Result<()> {
    for crash in &CRASHES {
        report.running(crash.name);
        let (system, build) = target.get(SYSTEM)?;
        let files = prepare::prepare(target.workspace, build, &system, "crash", &[])?;
        let path = build.kernel(&system)?;
        (crash.damage)(&Executable::read(path)?, elf::function(path, FUNCTION)?, &files)?;
        let mut symbols = build.symbols(target.workspace, &system)?;
        let mut command = Machine::default().command(&files, Serial::Pipe);
        let outcome = script::run(&mut command, &[], PATIENCE, |line| symbols.explain(line))?;
        match judge(crash.expected, &outcome) {
            None => report.passed(crash.name),
            Some(problem) => {
                report.failed(crash.name, &format!("{problem}; what was on the terminal:\n{}", outcome.last_screen()));
            }
        }
    }
    Ok(())
}

/// What is wrong with a report.
fn judge(expected: &[&str], outcome: &Outcome) -> Option<String> {
    if !matches!(outcome.end, End::Exited(STATUS)) {
        return Some(format!("the guest did not end with status {STATUS}: {:?}", outcome.end));
    }
    let mut lines = outcome.lines.iter();
    let missing = expected.iter().find(|text| !lines.any(|line| line.contains(**text)));
    missing.map(|text| format!("the report lacks \"{text}\""))
}
