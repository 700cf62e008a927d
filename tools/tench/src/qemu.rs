//! Starting of the emulator.

use std::ffi::OsString;
use std::process::Command;

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
    /// Set if an idle machine that counts instructions waits in real time for the next deadline. Otherwise its time
    /// advances to the deadline at once.
    pub idles: bool,
    /// Set if the machine waits for a debugger.
    pub gdb: bool,
    /// Seed of the random numbers that the machine gives the system at its start, in its device tree.
    pub seed: u64,
    /// Type of the machine with its settings, as QEMU writes it.
    pub board: &'static str,
    /// Set if the guest can end the emulator with a status, through semihosting.
    pub semihosting: bool,
    /// Path of a plug-in and its arguments, as QEMU writes them, if it is to have one.
    pub plugin: Option<OsString>,
}

/// Seed of tests and experiments, so that each of their runs is the same.
const SEED: u64 = 1;

impl Default for Machine {
    fn default() -> Machine {
        Machine {
            cores: 1,
            memory: "1G".into(),
            cpu: "cortex-a72".into(),
            icount: false,
            idles: false,
            gdb: false,
            seed: SEED,
            board: "virt,gic-version=3",
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

impl Machine {
    /// Returns the command that boots these files. The guest ends it: through semihosting, which makes its status the
    /// command's, or else through the machine's firmware, with status 0.
    pub fn command(&self, files: &BootFiles, serial: Serial) -> Command {
        let mut command = Command::new(toolchain::QEMU);
        command.args(["-machine", self.board, "-cpu", &self.cpu, "-smp", &self.cores.to_string()]);
        command.args(["-seed", &self.seed.to_string()]);
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
            command.args(["-icount", &format!("shift=0,sleep={sleep}")]);
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
