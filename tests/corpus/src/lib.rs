//! Programs that must be refused, one for each mistake, each with the reason that it must be given.
//!
//! They are made here from two good programs by one change each, so that the change shows what is wrong and nothing
//! else is. The loader's tests read them on the host. In the boot archive of the named cases they lie in the directory
//! `broken`, and the process server has to refuse each; `tests/scenarios/broken.txt` shows how that looks.
//!
//! ```text
//! elf        writes ELF files, right ones and wrong ones
//! good       the good programs
//! mistakes   what is wrong with the others
//! ```

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

pub mod elf;
pub mod good;
mod mistakes;

use alloc::vec::Vec;

use tench_procs_client::protocol::Defect;

/// Where the files lie in the boot archive.
pub const DIRECTORY: &str = "broken";

/// A file that is no program.
pub struct Mistake {
    /// The file's name.
    pub name: &'static str,
    /// Why it must be refused.
    pub defect: Defect,
    /// Makes it.
    make: fn() -> Vec<u8>,
}

impl Mistake {
    /// The file.
    pub fn file(&self) -> Vec<u8> {
        (self.make)()
    }
}

/// All mistakes, by kind. No two have a name in common.
pub fn mistakes() -> impl Iterator<Item = &'static Mistake> {
    mistakes::ALL.iter().flat_map(|some| some.iter())
}

/// The good programs by name: all end with a breakpoint.
pub fn good() -> [(&'static str, Vec<u8>); 3] {
    [
        ("good-fixed", good::fixed().write()),
        ("good-movable", good::Movable::new().write()),
        ("good-second-page", good::second_page().write()),
    ]
}
