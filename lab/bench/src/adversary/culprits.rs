//! In which deed each path's longest stretch happened.
//!
//! The kernel keeps a path's longest stretch, but not whose doing it was. So all paths are read after each deed: what
//! has grown grew in it, or while what it left behind was revoked. Nothing is reset, so the kernel's figures are those
//! of all deeds together.
//!
//! The readings are system calls, and the ticker runs beside them. Where one of those stretches is its path's longest,
//! it counts for the deed before or behind that reading.

use alloc::string::String;

use tench::abi::object::{Stretches, stretch};

use super::problem;
use crate::KERNEL;

/// What is not a deed: starting the ticker, and the first reading.
pub const BEFORE: &str = "before the first deed";
/// And ending it.
pub const AFTER: &str = "after the last deed";

/// What is known of a path.
#[derive(Clone, Copy)]
struct Longest {
    /// In retired instructions.
    length: u64,
    deed: &'static str,
}

/// The deeds of all paths.
pub struct Culprits([Longest; stretch::LIMIT as usize]);

impl Culprits {
    /// Those of a kernel that has measured nothing yet.
    pub const fn new() -> Culprits {
        Culprits([Longest { length: 0, deed: BEFORE }; stretch::LIMIT as usize])
    }

    /// Reads every path; `deed` is what was done since they were last read.
    pub fn read(&mut self, deed: &'static str) -> Result<(), String> {
        (0..stretch::LIMIT).filter(|path| stretch::name(*path).is_some()).try_for_each(|path| {
            self.read_path(path, deed)?;
            Ok(())
        })
    }

    /// Reads one path. Answers what the kernel measured of it, and the deed in which its longest stretch happened.
    pub fn read_path(&mut self, path: u64, deed: &'static str) -> Result<(Stretches, &'static str), String> {
        let measured = KERNEL.stretches(path).map_err(problem("the kernel's measuring"))?;
        Ok((measured, self.blame(path, measured.longest, deed)))
    }

    /// The path's longest stretch has this length now. Answers the deed in which it happened.
    fn blame(&mut self, path: u64, length: u64, deed: &'static str) -> &'static str {
        let longest = &mut self.0[path as usize];
        if length > longest.length {
            *longest = Longest { length, deed };
        }
        longest.deed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_of_the_deed_in_which_it_last_grew() {
        let mut culprits = Culprits::new();
        assert_eq!(culprits.blame(5, 100, "a"), "a");
        assert_eq!(culprits.blame(5, 100, "b"), "a", "what is as long came later");
        assert_eq!(culprits.blame(5, 101, "c"), "c");
        assert_eq!(culprits.blame(stretch::LIMIT - 1, 7, "b"), "b", "each path has a deed of its own");
        assert_eq!(culprits.blame(5, 101, "b"), "c");
    }

    #[test]
    fn a_path_that_was_never_taken_is_of_no_deed() {
        assert_eq!(Culprits::new().blame(0, 0, "a"), BEFORE);
    }
}
