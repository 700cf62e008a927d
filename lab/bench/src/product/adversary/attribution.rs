//! Attribution of each path's longest interrupts-off interval to a workload.
//!
//! The kernel keeps a path's longest interval, but not its cause. So all paths are read after each workload: what has
//! grown grew in it, or while the objects it left behind were revoked. Nothing is reset, so the kernel's figures are
//! those of all workloads together.
//!
//! The readings are system calls, and the ticker runs beside them. Where one of their intervals is its path's longest,
//! it counts for the workload before or after that reading.

use alloc::string::String;

use tench::abi::object::{IrqOffIntervals, entry_path};

use super::problem;
use crate::support::KERNEL;

/// Attribution to the time before any workload: starting the ticker, and the first reading.
pub const BEFORE: &str = "before the first workload";
/// Attribution to the time after all workloads.
pub const AFTER: &str = "after the last workload";

/// Longest interval of a path.
#[derive(Clone, Copy)]
struct Longest {
    /// Length in retired instructions.
    length: u64,
    workload: &'static str,
}

/// Attributions of all paths.
pub struct Attribution([Longest; entry_path::LIMIT as usize]);

impl Attribution {
    /// Makes the attributions for a kernel that has measured nothing yet.
    pub const fn new() -> Attribution {
        Attribution([Longest { length: 0, workload: BEFORE }; entry_path::LIMIT as usize])
    }

    /// Reads every path; `workload` is the workload that ran since the last reading.
    pub fn read(&mut self, workload: &'static str) -> Result<(), String> {
        (0..entry_path::LIMIT).filter(|path| entry_path::name(*path).is_some()).try_for_each(|path| {
            self.read_path(path, workload)?;
            Ok(())
        })
    }

    /// Reads one path. Returns the kernel's measurement of it, and the workload in which its longest interval happened.
    pub fn read_path(&mut self, path: u64, workload: &'static str) -> Result<(IrqOffIntervals, &'static str), String> {
        let measured = KERNEL.irq_off_intervals(path).map_err(problem("the kernel's measuring"))?;
        Ok((measured, self.attribute(path, measured.longest, workload)))
    }

    /// Records that the path's longest interval has this length now. Returns the workload in which it happened.
    fn attribute(&mut self, path: u64, length: u64, workload: &'static str) -> &'static str {
        let longest = &mut self.0[path as usize];
        if length > longest.length {
            *longest = Longest { length, workload };
        }
        longest.workload
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_belongs_to_the_workload_in_which_it_last_grew() {
        let mut attribution = Attribution::new();
        assert_eq!(attribution.attribute(5, 100, "a"), "a");
        assert_eq!(attribution.attribute(5, 100, "b"), "a", "what is as long came later");
        assert_eq!(attribution.attribute(5, 101, "c"), "c");
        assert_eq!(attribution.attribute(entry_path::LIMIT - 1, 7, "b"), "b", "each path has a workload of its own");
        assert_eq!(attribution.attribute(5, 101, "b"), "c");
    }

    #[test]
    fn a_path_that_was_never_taken_has_no_workload() {
        assert_eq!(Attribution::new().attribute(0, 0, "a"), BEFORE);
    }
}
