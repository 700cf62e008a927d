//! Programs that must be refused, one for each mistake, each with the reason for the refusal.
//!
//! They are made from two valid programs by one change each, which is the mistake. The loader's tests read them on the
//! host. In the boot archive of the named cases they are in the directory `broken`, and the process server must refuse
//! each; `tests/scenarios/broken.txt` shows the messages.
//!
//! ```text
//! elf        writes valid and invalid ELF files
//! good       the valid programs
//! mistakes   the mistakes of the others
//! ```

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

pub mod elf;
pub mod good;
mod mistakes;

use alloc::vec::Vec;

use tench_procs_interface::protocol::Defect;

/// Directory of the files in the boot archive.
pub const DIRECTORY: &str = "broken";

/// A file that is not a valid program.
pub struct Mistake {
    /// Name of the file.
    pub name: &'static str,
    /// Reason for which it must be refused.
    pub defect: Defect,
    /// Makes the file's contents.
    make: fn() -> Vec<u8>,
}

impl Mistake {
    /// Returns the file's contents.
    pub fn file(&self) -> Vec<u8> {
        (self.make)()
    }
}

/// Returns all mistakes, by kind. No two have the same name.
pub fn mistakes() -> impl Iterator<Item = &'static Mistake> {
    mistakes::ALL.iter().flat_map(|some| some.iter())
}

/// Returns the valid programs by name: all end with a breakpoint.
pub fn good() -> [(&'static str, Vec<u8>); 3] {
    [
        ("good-fixed", good::fixed().write()),
        ("good-movable", good::Movable::new().write()),
        ("good-second-page", good::second_page().write()),
    ]
}
