//! Starting of the emulator.

use std::ffi::OsString;
use std::process::Command;

use miette::{IntoDiagnostic, Result, miette};

use crate::prepare::BootFiles;
use crate::toolchain;

/// Settings of the emulated machine.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Number of processor cores.
    pub cores: u32,
    /// Size of memory, as QEMU writes it.
    pub memory: String,
    /// Processor model.
    pub cpu: String,
    /// Set if time is the number of instructions.
    pub icount: bool,
    /// How slow a machine is that counts instructions: each takes two to the power of this many nanoseconds.
    pub shift: u8,
    /// Set if an idle machine that counts instructions waits in real time for the next deadline. Otherwise its time
    /// advances to the deadline at once.
    pub idles: bool,
    /// Set if the machine waits for a debugger.
    pub gdb: bool,
    /// Seed of the random numbers that the machine gives the system at its start, in its device tree.
    pub seed: u64,
    /// Type of the machine with its settings, as QEMU writes it.
    pub board: &'static str,
    /// Time that the real-time clock shows, as QEMU writes it.
    pub clock: &'static str,
    /// Set if the guest can end the emulator with a status, through semihosting.
    pub semihosting: bool,
    /// Path of a plug-in and its arguments, as QEMU writes them, if it is to have one.
    pub plugin: Option<OsString>,
}

/// Seed of tests and experiments, so that each of their runs is the same.
const SEED: u64 = 1;

/// The real-time clock of tests and experiments: each machine starts at the same time, which goes on with its counter.
const SAME_CLOCK: &str = "base=2026-01-01T00:00:00,clock=vm";
/// The real-time clock that shows the host's time.
pub const CLOCK_OF_HOST: &str = "base=utc,clock=host";

impl Default for Machine {
    fn default() -> Machine {
        Machine {
            cores: 1,
            memory: "1G".into(),
            cpu: "cortex-a72".into(),
            icount: false,
            shift: 0,
            idles: false,
            gdb: false,
            seed: SEED,
            board: "virt,gic-version=3",
            clock: SAME_CLOCK,
            semihosting: true,
            plugin: None,
        }
    }
}

/// Connection of the machine's serial port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serial {
    /// To a person at a terminal: Ctrl-C reaches the guest, Ctrl-A x quits, Ctrl-A c is the emulator's own console.
    Terminal,
    /// To standard input and output as they are.
    Pipe,
}

/// Bytes of memory before the RAM disk: half of the machine's, and at most this.
const BEFORE_DISK: u64 = 128 << 20;
/// Bytes of memory that the system needs beside its RAM disk, at least.
const BESIDE_DISK: u64 = 16 << 20;

/// Returns the number of bytes that a size means, as QEMU writes it, or nothing if QEMU is to say what is wrong.
fn bytes(size: &str) -> Option<u64> {
    let digits = size.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let shift = match size[digits.len()..].to_ascii_uppercase().as_str() {
        "K" => 10,
        "" | "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

impl Machine {
    /// Fails if the machine does not have enough memory for the RAM disk.
    pub fn check(&self, files: &BootFiles) -> Result<()> {
        let disk = std::fs::metadata(&files.ram_disk).into_diagnostic()?.len();
        self.check_size(disk)
    }

    fn check_size(&self, disk: u64) -> Result<()> {
        let Some(memory) = bytes(&self.memory) else { return Ok(()) };
        let room = (memory - BEFORE_DISK.min(memory / 2)).saturating_sub(BESIDE_DISK);
        if disk <= room {
            return Ok(());
        }
        let needed = disk + BESIDE_DISK + BEFORE_DISK;
        Err(miette!(
            help = format!("--memory {}M is enough to start it", needed.div_ceil(1 << 20)),
            "the image has {} MiB, and a machine with --memory {} has room for {}",
            disk.div_ceil(1 << 20),
            self.memory,
            room >> 20
        ))
    }

    /// Returns the command that boots these files. The guest ends it: through semihosting, which makes its status the
    /// command's, or else through the machine's firmware, with status 0.
    pub fn command(&self, files: &BootFiles, serial: Serial) -> Command {
        let mut command = Command::new(toolchain::QEMU);
        command.args(["-machine", self.board, "-cpu", &self.cpu, "-smp", &self.cores.to_string()]);
        command.args(["-seed", &self.seed.to_string(), "-rtc", self.clock]);
        command.args(["-m", &self.memory, "-display", "none", "-nodefaults", "-no-reboot"]);
        if self.semihosting {
            command.args(["-semihosting-config", "enable=on,target=native"]);
        }
        command.arg("-kernel").arg(&files.image).arg("-initrd").arg(&files.ram_disk);
        match serial {
            Serial::Terminal => command.args(["-serial", "mon:stdio"]),
            Serial::Pipe => command.args(["-monitor", "none", "-serial", "stdio"]),
        };
        if self.icount {
            let sleep = if self.idles { "on" } else { "off" };
            command.args(["-icount", &format!("shift={},sleep={sleep}", self.shift)]);
        } else {
            // A thread for each core; with instructions as the clock, they run in turn.
            command.args(["-accel", "tcg,thread=multi"]);
        }
        if let Some(plugin) = &self.plugin {
            command.arg("-plugin").arg(plugin);
        }
        if self.gdb {
            command.args(["-s", "-S"]);
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_that_is_too_large_for_the_machine_is_refused() {
        let machine = |memory: &str| Machine { memory: memory.into(), ..Machine::default() };
        let check = |memory: &str, disk: u64| machine(memory).check_size(disk).map_err(|error| error.to_string());
        assert_eq!(check("1G", 800 << 20), Ok(()));
        assert_eq!(check("128M", 48 << 20), Ok(()));
        let expected = "the image has 49 MiB, and a machine with --memory 128M has room for 48";
        assert_eq!(check("128M", (48 << 20) + 1), Err(expected.into()));
        assert!(check("64", 48 << 20).is_err() && check("65536k", 48 << 20).is_err());
        assert!(check("193", 48 << 20).is_ok(), "the advice is enough");
        assert_eq!(check("much", 1 << 40), Ok(()), "the emulator says what is wrong with that");
    }
}
