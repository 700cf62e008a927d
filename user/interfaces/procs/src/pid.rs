//! Process numbers. They are unique in the machine: the high bits are the core, the low bits the number that the core's
//! process server has assigned. So processes of the first core have the numbers that they would have on a single core.

use core::fmt;

/// Number of `init` on its core. The kernel starts it.
pub const INIT: u64 = 1;
/// Number of the memory server on its core. `init` starts it.
pub const MEM: u64 = 2;
/// Number of the process server on its core. `init` starts it.
pub const PROCS: u64 = 3;

/// Number of low bits of a process's number, which identify it on its core.
pub const CORE_SHIFT: u32 = tench_abi::power::CORE_SHIFT;

/// Returns the base of a core's process numbers, one less than the first of them.
pub const fn pid_base(core: u64) -> u64 {
    core << CORE_SHIFT
}

/// Splits a process number into the core and the number on that core.
pub const fn split_pid(process: u64) -> (u64, u64) {
    (process >> CORE_SHIFT, process & ((1 << CORE_SHIFT) - 1))
}

/// A process's number as people read and write it: prefixed by the core, unless that is the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown(pub u64);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match split_pid(self.0) {
            (0, process) => process.fmt(f),
            (core, process) => write!(f, "{core}:{process}"),
        }
    }
}

/// Parses a number as people write it: `7`, or `1:7` for process 7 of core 1.
pub fn parse(text: &str) -> Option<u64> {
    let (core, process) = text.split_once(':').unwrap_or(("0", text));
    let number = |digits: &str| digits.parse::<u32>().ok().filter(|_| !digits.starts_with('+'));
    Some(pid_base(u64::from(number(core)?)) | u64::from(number(process)?))
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
            let (core, number) = split_pid(process);
            assert_eq!(pid_base(core) | number, process);
        }
        assert_eq!(parse("0:7"), Some(7));
        for text in ["", ":", "1:", ":7", "1:2:3", "x", "1:x", "-1", "+1", "1:+7", "4294967296", "1:4294967296", " 1"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
