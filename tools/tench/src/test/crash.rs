//! A test of the reports when an essential part fails: a kernel that cannot boot, one with a broken instruction, one
//! that fills its stack, and a process server with a broken instruction, which dies while `init` still waits for it.
//!
//! All must power off: the kernel with the status of its failures and a backtrace, `init` with status 1.
//!
//! A program of the host that was put into the archive (`run --with`) fails as well: the report has its functions.
//!
//! Then a kernel, a monitor, a memory server and a process server fail on another core while it runs. Only that core
//! stops, the others go on, and processes that wait for it are notified.

use std::time::Duration;

use miette::{Result, miette};

use super::Target;
use super::report::Report;
use crate::elf::{self, Executable};
use crate::image;
use crate::prepare::BootFiles;
use crate::qemu::{Machine, Serial};
use crate::script::{self, End, Outcome, Patience, Step};
use crate::workspace;

/// System description that is booted, and that of a machine with several cores.
pub const SYSTEM: &str = "default";
pub const SYSTEM_OF_SEVERAL: &str = "fixtures";
const PATIENCE: Patience = Patience { silence: Duration::from_secs(20), total: Duration::from_secs(60) };
/// Guest's status after a failure of the kernel.
const STATUS: u8 = 101;
/// Guest's status after a failure of an essential server.
const SERVER_STATUS: u8 = 1;
/// Name of the first function in Rust.
const FUNCTION: &str = "tench_boot";
/// An undefined instruction.
const UNDEFINED: [u8; 4] = [0; 4];
/// A loop that fills the stack: `stp xzr, xzr, [sp, #-16]!` and a branch to it.
const ENDLESS: [u8; 8] = [0xff, 0x7f, 0xbf, 0xa9, 0xff, 0xff, 0xff, 0x17];

/// A way to make the kernel fail.
struct Crash {
    name: &'static str,
    /// Damages the boot files, given the kernel, its function, and the process server.
    damage: fn(&Executable, u64, &Executable, &BootFiles) -> Result<()>,
    status: u8,
    /// Lines that the report must contain, in this order.
    expected: &'static [&'static str],
}

const CRASHES: [Crash; 4] = [
    Crash {
        name: "crash/panic",
        status: STATUS,
        damage: |_, _, _, files| workspace::write_file(&files.ram_disk, &[0; 8192]),
        expected: &[
            "panic: kernel: cannot boot: the RAM disk does not begin with a header",
            "boot.rs:",
            "tench_boot (",
        ],
    },
    Crash {
        name: "crash/exception",
        status: STATUS,
        damage: |kernel, function, _, files| replace(kernel, function, &UNDEFINED, files),
        expected: &["panic: kernel: exception", "tench_boot (", "x0 ", "x28 ", "state "],
    },
    Crash {
        name: "crash/boot-stack",
        status: STATUS,
        damage: |kernel, function, _, files| replace(kernel, function, &ENDLESS, files),
        expected: &["panic: kernel: exception", "the stack on which the kernel boots is too small", "tench_boot ("],
    },
    Crash {
        name: "crash/server",
        status: SERVER_STATUS,
        damage: |_, _, procs, files| {
            let mut disk = workspace::read_file(&files.ram_disk)?;
            let entry = procs.entry;
            let code = procs.segments.iter().find_map(|segment| {
                let offset = entry.checked_sub(segment.virtual_address)? as usize;
                (offset < segment.content.len()).then_some((&segment.content, offset))
            });
            let (code, offset) = code.ok_or_else(|| miette!("the process server begins in no segment"))?;
            let place = disk.windows(code.len()).position(|part| part == *code);
            let place = place.ok_or_else(|| miette!("the RAM disk does not hold the process server"))?;
            disk[place + offset..][..UNDEFINED.len()].copy_from_slice(&UNDEFINED);
            workspace::write_file(&files.ram_disk, &disk)
        },
        expected: &["procs: fault of class", "init: procs has ended, and nothing can go on without it"],
    },
];

/// Writes a kernel in which other code stands at the beginning of a function.
fn replace(kernel: &Executable, function: u64, code: &[u8], files: &BootFiles) -> Result<()> {
    let mut kernel = kernel.clone();
    let place = kernel.segments.iter_mut().find_map(|segment| {
        let offset = function.checked_sub(segment.virtual_address)? as usize;
        segment.content.get_mut(offset..offset + code.len())
    });
    place.ok_or_else(|| miette!("{FUNCTION} lies in no segment"))?.copy_from_slice(code);
    workspace::write_file(&files.image, &image::kernel(&kernel)?)
}

/// A way to make another core fail while it runs.
struct Further {
    name: &'static str,
    /// Program that is damaged, or none for the kernel of further cores.
    program: Option<&'static str>,
    /// Prefix of the damaged function's name, as the compiler writes it.
    function: &'static str,
    /// Command that makes the second core call that function for the first time.
    command: &'static str,
    /// Lines that must be on the terminal, in this order.
    expected: &'static [&'static str],
}

const FURTHER: [Further; 4] = [
    Further {
        name: "crash/other-kernel",
        program: None,
        function: "_ZN12tench_kernel13kernel_object9power_off",
        command: "cores run 1 end-kernel",
        expected: &[
            "panic: kernel: exception",
            "monitor: core 1 has stopped",
            "cores: that core has stopped",
            "1 of 2 cores run",
        ],
    },
    Further {
        name: "crash/other-monitor",
        program: Some("monitor"),
        function: "_ZN13tench_monitor8requests10dispatcher19Dispatcher$LT$W$GT$10memory_for",
        command: "cores memory 1",
        expected: &[
            "monitor (pid 1:4): undefined instruction",
            "procs: bin/monitor (pid 1:4) ended by a fault; core 1 stops",
            "monitor: core 1 has stopped",
            "cores: that core has stopped",
            "1 of 2 cores run",
        ],
    },
    Further {
        name: "crash/other-memory-server",
        program: Some("mem"),
        function: "_ZN9tench_mem6ledger23Ledger$LT$E$C$B$C$A$GT$6divide",
        command: "cores run 1 divide-memory",
        expected: &[
            "mem: fault of class",
            "Ledger",
            "init of core 1: mem has ended, and nothing can go on without it",
            "monitor: core 1 has stopped",
            "cores: that core has stopped",
            "1 of 2 cores run",
        ],
    },
    Further {
        name: "crash/other-process-server",
        program: Some("procs"),
        function: "_ZN11tench_procs8requests6ending47_$LT$impl$u20$tench_procs..requests..Server$GT$8kill_for",
        command: "cores kill 1:5",
        expected: &[
            "procs: fault of class",
            "kill_for",
            "init of core 1: procs has ended, and nothing can go on without it",
            "monitor: core 1 has stopped",
            "cores: that core has stopped",
            "1 of 2 cores run",
        ],
    },
];

impl Further {
    /// Makes the function undefined in the RAM disk.
    fn damage(&self, target: &Target, files: &BootFiles) -> Result<()> {
        let (system, build) = target.get(SYSTEM_OF_SEVERAL)?;
        let program = self.program.map(|name| system.programs.iter().find(|program| program.name == name));
        let path = match program {
            None => build.kernel(&system)?,
            Some(program) => build.program(&program.ok_or_else(|| miette!("there is no {}", self.name))?.origin)?,
        };
        let found = elf::functions(path, self.function)?;
        let [(rest, size)] = &found[..] else {
            return Err(miette!("{} has {} such functions", self.name, found.len()));
        };
        let address = elf::function(path, &format!("{}{rest}", self.function))?;
        // Reads it as linked, whether it can be moved or not.
        let file = Executable::read_kernel(path)?;
        let code = file.segments.iter().find_map(|segment| {
            let offset = address.checked_sub(segment.virtual_address)? as usize;
            segment.content.get(offset..offset + *size as usize)
        });
        let code = code.ok_or_else(|| miette!("{} lies in no segment", self.function))?;
        let mut disk = workspace::read_file(&files.ram_disk)?;
        let place = disk.windows(code.len()).position(|part| part == code);
        let place = place.ok_or_else(|| miette!("the RAM disk does not hold {}", self.function))?;
        disk[place..][..UNDEFINED.len()].copy_from_slice(&UNDEFINED);
        workspace::write_file(&files.ram_disk, &disk)
    }

    fn run(&self, target: &Target, report: &Report) -> Result<()> {
        let (system, build) = target.get(SYSTEM_OF_SEVERAL)?;
        let files = target.prepare(build, &system, &[])?;
        self.damage(target, &files)?;
        let mut symbols = build.symbols(target.workspace, &system, &files)?;
        let machine = Machine { icount: true, cores: 2, ..Machine::default() };
        let mut command = machine.command(&files, Serial::Pipe);
        let steps = [self.command, "cores"].map(|line| Step::Line(line.to_owned()));
        let outcome = script::run(&mut command, &steps, PATIENCE, |line| symbols.explain(line))?;
        match judge(0, self.expected, &outcome) {
            None => report.passed(self.name),
            Some(problem) => {
                report.failed(self.name, &format!("{problem}; what was on the terminal:\n{}", outcome.last_screen()));
            }
        }
        Ok(())
    }
}

pub fn run(target: &Target, report: &Report) -> Result<()> {
    for crash in &CRASHES {
        let (system, build) = target.get(SYSTEM)?;
        let files = target.prepare(build, &system, &[])?;
        let path = build.kernel(&system)?;
        let procs = system.programs.iter().find(|program| program.name == "procs");
        let procs = procs.ok_or_else(|| miette!("{SYSTEM} has no process server"))?;
        let procs = Executable::read(build.program(&procs.origin)?)?;
        (crash.damage)(&Executable::read_kernel(path)?, elf::function(path, FUNCTION)?, &procs, &files)?;
        let mut symbols = build.symbols(target.workspace, &system, &files)?;
        let mut command = Machine::default().command(&files, Serial::Pipe);
        let outcome = script::run(&mut command, &[], PATIENCE, |line| symbols.explain(line))?;
        match judge(crash.status, crash.expected, &outcome) {
            None => report.passed(crash.name),
            Some(problem) => {
                report.failed(crash.name, &format!("{problem}; what was on the terminal:\n{}", outcome.last_screen()));
            }
        }
    }
    from_host(target, report)?;
    FURTHER.iter().try_for_each(|further| further.run(target, report))
}

/// Runs a program that the system has no other way to know: the program `fault`, under a name of its own.
fn from_host(target: &Target, report: &Report) -> Result<()> {
    let name = "crash/program-of-the-host";
    let (system, build) = target.get(SYSTEM)?;
    let program = system.programs.iter().find(|program| program.name == "fault");
    let program = program.ok_or_else(|| miette!("{SYSTEM} has no program `fault`"))?;
    let with = format!("{}:far/stranger", build.program(&program.origin)?.display());
    let files = target.prepare(build, &system, &[with])?;
    let mut symbols = build.symbols(target.workspace, &system, &files)?;
    let mut command = Machine::default().command(&files, Serial::Pipe);
    let steps = [Step::Line("far/stranger code".to_owned())];
    let outcome = script::run(&mut command, &steps, PATIENCE, |line| symbols.explain(line))?;
    match judge(0, &["stranger (pid ", " in stranger", "write_to_code (user/programs/fault/main.c:"], &outcome) {
        None => report.passed(name),
        Some(problem) => {
            report.failed(name, &format!("{problem}; what was on the terminal:\n{}", outcome.last_screen()));
        }
    }
    Ok(())
}

/// Returns what is wrong with a report.
fn judge(status: u8, expected: &[&str], outcome: &Outcome) -> Option<String> {
    if !matches!(outcome.end, End::Exited(ended) if ended == status) {
        return Some(format!("the guest did not end with status {status}: {:?}", outcome.end));
    }
    let mut lines = outcome.lines.iter();
    let missing = expected.iter().find(|text| !lines.any(|line| line.contains(**text)));
    missing.map(|text| format!("the report lacks \"{text}\""))
}
