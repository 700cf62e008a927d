//! The system: `cpuinfo`, `meminfo`, `stat` and others that lie in `/proc` itself.

use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;

use crate::text::Text;

/// Ticks per second.
const TICKS: u128 = 100;

/// A processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processor {
    /// Features that programs may use, as in the auxiliary vector (`AT_HWCAP`).
    pub features: u64,
    /// The register that says what it is (`MIDR_EL1`).
    pub identification: u32,
    /// Ticks of its counter per second.
    pub frequency: u64,
}

/// Names of the features, by their bits.
const FEATURES: [&str; 32] = [
    "fp", "asimd", "evtstrm", "aes", "pmull", "sha1", "sha2", "crc32", "atomics", "fphp", "asimdhp", "cpuid",
    "asimdrdm", "jscvt", "fcma", "lrcpc", "dcpop", "sha3", "sm3", "sm4", "asimddp", "sha512", "sve", "asimdfhm", "dit",
    "uscat", "ilrcpc", "flagm", "ssbs", "sb", "paca", "pacg",
];

/// Facts about the system.
#[derive(Clone, Copy, Debug)]
pub struct System {
    /// Time since the machine started.
    pub uptime: Duration,
    /// Time from the beginning of 1970 to the machine's start.
    pub start: Duration,
    /// Pages of 4 KiB.
    pub pages: u64,
    /// Pages that nobody uses.
    pub free: u64,
    /// Pages of files.
    pub cached: u64,
    /// Number of processes that were made.
    pub made: u64,
    /// Number of processes that run.
    pub running: u32,
    /// Number of threads.
    pub threads: u32,
    /// Number of the process that was made last.
    pub last: u32,
    /// The processor.
    pub processor: Processor,
}

impl System {
    /// Returns the text of `cpuinfo`.
    pub fn processors(&self) -> Vec<u8> {
        let Processor { features, identification, frequency } = self.processor;
        let mut text = Text::default();
        // Linux derives this from the counter: two instructions for each of its ticks.
        let bogus = frequency / 5000;
        text.add(format_args!("processor\t: 0\nBogoMIPS\t: {}.{:02}\nFeatures\t:", bogus / 100, bogus % 100));
        for name in FEATURES.iter().enumerate().filter(|(bit, _)| features >> bit & 1 != 0).map(|(_, name)| name) {
            text.add(format_args!(" {name}"));
        }
        text.add(format_args!(
            "\nCPU implementer\t: {:#04x}\nCPU architecture: 8\nCPU variant\t: {:#x}\nCPU part\t: {:#05x}\nCPU revision\t: {}\n\n",
            identification >> 24,
            identification >> 20 & 0xf,
            identification >> 4 & 0xfff,
            identification & 0xf,
        ));
        text.0
    }

    /// Returns the text of `meminfo`.
    pub fn memory(&self) -> Vec<u8> {
        let (total, free, cached) = (self.pages, self.free, self.cached.min(self.pages - self.free));
        let used = total - free - cached;
        let lines = [
            ("MemTotal", total),
            ("MemFree", free),
            // Files cannot be read again from anywhere.
            ("MemAvailable", free),
            ("Buffers", 0),
            ("Cached", cached),
            ("SwapCached", 0),
            ("Active", used + cached),
            ("Inactive", 0),
            ("Active(anon)", used + cached),
            ("Inactive(anon)", 0),
            ("Active(file)", 0),
            ("Inactive(file)", 0),
            ("Unevictable", 0),
            ("Mlocked", 0),
            ("SwapTotal", 0),
            ("SwapFree", 0),
            ("Dirty", 0),
            ("Writeback", 0),
            ("AnonPages", used),
            ("Mapped", 0),
            ("Shmem", cached),
            ("KReclaimable", 0),
            ("Slab", 0),
            ("SReclaimable", 0),
            ("SUnreclaim", 0),
            ("KernelStack", 0),
            ("PageTables", 0),
            ("SecPageTables", 0),
            ("NFS_Unstable", 0),
            ("Bounce", 0),
            ("WritebackTmp", 0),
            ("CommitLimit", total),
            ("Committed_AS", used + cached),
            ("VmallocTotal", 0),
            ("VmallocUsed", 0),
            ("VmallocChunk", 0),
            ("Percpu", 0),
        ];
        let mut text = Text::default();
        for (name, pages) in lines {
            text.add(format_args!("{:<15} {:>8} kB\n", format!("{name}:"), pages * 4));
        }
        text.0
    }

    /// Returns the text of `stat`. What programs use is not measured, so all time counts as idle.
    pub fn stat(&self) -> Vec<u8> {
        let ticks = self.uptime.as_millis() * TICKS / 1000;
        let started = self.start.as_secs();
        let mut text = Text::default();
        for name in ["cpu ", "cpu0"] {
            text.add(format_args!("{name} 0 0 0 {ticks} 0 0 0 0 0 0\n"));
        }
        text.add(format_args!("intr 0\nctxt 0\nbtime {started}\nprocesses {}\n", self.made));
        text.add(format_args!("procs_running {}\nprocs_blocked 0\nsoftirq 0 0 0 0 0 0 0 0 0 0 0\n", self.running));
        text.0
    }

    /// Returns the text of `uptime`: since the start, and the idle time.
    pub fn uptime(&self) -> Vec<u8> {
        let (seconds, hundredths) = (self.uptime.as_secs(), self.uptime.subsec_millis() / 10);
        format!("{seconds}.{hundredths:02} {seconds}.{hundredths:02}\n").into_bytes()
    }

    /// Returns the text of `loadavg`. The averages are not measured.
    pub fn load(&self) -> Vec<u8> {
        format!("0.00 0.00 0.00 {}/{} {}\n", self.running, self.threads, self.last).into_bytes()
    }
}

/// A kind of devices.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    /// Major number.
    pub major: u32,
    /// Name.
    pub name: &'static str,
}

/// Returns the text of `devices`, for devices of which programs read and write characters.
pub fn devices(devices: &[Device]) -> Vec<u8> {
    let mut text = Text::default();
    text.add(format_args!("Character devices:\n"));
    for Device { major, name } in devices {
        text.add(format_args!("{major:>3} {name}\n"));
    }
    text.add(format_args!("\nBlock devices:\n"));
    text.0
}

/// Returns the text of `filesystems`, for types that need no device.
pub fn file_systems(types: &[&str]) -> Vec<u8> {
    let mut text = Text::default();
    for name in types {
        text.add(format_args!("nodev\t{name}\n"));
    }
    text.0
}

/// Returns the text of `swaps`, of which there are none.
pub fn swaps() -> Vec<u8> {
    b"Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n".to_vec()
}
