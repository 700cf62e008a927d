//! Numbers of processes. No two processes of the machine have the same, on whichever cores they run: the core stands
//! above, and below it what its process server calls the process. Processes of the first core have the numbers that
//! they had before there were others.

use core::fmt;

/// On its core: `init`, which the kernel starts.
pub const INIT: u64 = 1;
/// On its core: the memory server, which `init` starts.
pub const MEM: u64 = 2;
/// On its core: the process server, which `init` starts.
pub const PROCS: u64 = 3;

/// Bits of a process's number that say which it is on its core.
pub const CORE_SHIFT: u32 = tench_abi::power::CORE_SHIFT;

/// Before the number of the first process of a core.
pub const fn first(core: u64) -> u64 {
    core << CORE_SHIFT
}

/// The core of a process with this number, and its number there.
pub const fn place(process: u64) -> (u64, u64) {
    (process >> CORE_SHIFT, process & ((1 << CORE_SHIFT) - 1))
}

/// A process's number as people read and write it: with the core before it, if that is not the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown(pub u64);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match place(self.0) {
            (0, process) => process.fmt(f),
            (core, process) => write!(f, "{core}:{process}"),
        }
    }
}

/// The number that people write so: `7`, or `1:7` for that of core 1.
pub fn parse(text: &str) -> Option<u64> {
    let (core, process) = text.split_once(':').unwrap_or(("0", text));
    let number = |digits: &str| digits.parse::<u32>().ok().filter(|_| !digits.starts_with('+'));
    Some(first(u64::from(number(core)?)) | u64::from(number(process)?))
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::ToString;

    use super::*;

    #[test]
    fn numbers_are_read_as_they_are_shown() {
        for (process, text) in [(0, "0"), (7, "7"), (1 << 32 | 7, "1:7"), (63 << 32 | 0xffff_ffff, "63:4294967295")] {
            assert_eq!(Shown(process).to_string(), text);
            assert_eq!(parse(text), Some(process));
            let (core, number) = place(process);
            assert_eq!(first(core) | number, process);
        }
        assert_eq!(parse("0:7"), Some(7));
        for text in ["", ":", "1:", ":7", "1:2:3", "x", "1:x", "-1", "+1", "1:+7", "4294967296", "1:4294967296", " 1"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
