//! The system description as `init` reads it: the programs of the image, and the resources of each.
//!
//! The source is `systems/NAME.toml`. The host tool checks it and stores it in the boot archive as [`ARCHIVE_PATH`], in
//! the compact form of this crate; `init` and the process server read it there. `init` runs before there is a heap, so
//! everything here borrows from the archive's bytes and allocates nothing; only [`write`](System::write), which the
//! host tool uses, needs a heap (feature `write`).
//!
//! ```text
//! Header                      magic, version, number of programs, shares of memory, in postcard's encoding
//! Program × number            in start order, in postcard's encoding
//! ```
//! [`System::parse`] reads all of it once, so that later functions cannot meet a malformed record.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

#[cfg(feature = "write")]
extern crate alloc;

mod capability;
mod share;
mod strings;
#[cfg(test)]
mod tests;

pub use capability::{Capabilities, Capability, Device, FORMS};
use serde::{Deserialize, Serialize};
pub use share::{MAX_SHARES, MAX_WEIGHT, SIZES, Share, Shares};
pub use strings::{Iter as StringsIter, Strings};
use tench_abi::Powers;
pub use tench_abi::process::DEFAULT_PRIORITY;

/// Quota of a program that may have as much memory as its parent.
pub const NO_QUOTA: u64 = u64::MAX;
/// Path of the description in the boot archive.
pub const ARCHIVE_PATH: &str = "etc/system";

const MAGIC: u32 = u32::from_le_bytes(*b"TSYS");
const VERSION: u32 = 7;

#[derive(Serialize, Deserialize)]
struct Header<'a> {
    magic: u32,
    version: u32,
    programs: u32,
    #[serde(borrow)]
    shares: Shares<'a>,
}

/// Error for bytes that are no system description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl core::fmt::Display for Malformed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("not a system description of this version; rebuild the image")
    }
}

impl core::error::Error for Malformed {}

/// Cores on which a program is started. Each has an `init` of its own, which reads the same description.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cores {
    /// The first core.
    #[default]
    First,
    /// Every core.
    Every,
    /// Every core, if there are several.
    Several,
    /// The core with this number, if there is one.
    Only(u8),
}

impl Cores {
    /// Names of the values that a description does not give as numbers, in order.
    pub const NAMES: [(&'static str, Cores); 3] =
        [("first", Cores::First), ("every", Cores::Every), ("several", Cores::Several)];

    /// Returns whether core `core` of `count` is among them.
    pub const fn contain(self, core: u64, count: u64) -> bool {
        match self {
            Cores::First => core == 0,
            Cores::Every => true,
            Cores::Several => count > 1,
            Cores::Only(number) => core == number as u64,
        }
    }
}

/// One program of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program<'a> {
    /// Name of the program for users and other programs.
    pub name: &'a str,
    /// Path of its ELF file in the boot archive.
    pub path: &'a str,
    /// Priority of its main thread.
    pub priority: u8,
    /// Highest priority that it may assign.
    pub ceiling: u8,
    /// Size of the main thread's stack in bytes, a multiple of the page size; 0 for the default.
    pub stack_size: u64,
    /// Maximum number of bytes of memory; all ones for no limit.
    pub quota: u64,
    /// Set if `init` starts the program.
    pub start: bool,
    /// Cores on which `init` starts it.
    pub cores: Cores,
    /// Set if the program gets an endpoint of its own in `slot::SERVICE`, which others can name in `service:`.
    pub server: bool,
    /// Maximum number of restarts within a minute when it ends; 0 for none.
    pub restart: u32,
    /// Delay before its first restart in milliseconds; doubles with each further restart within a minute.
    pub restart_delay: u32,
    /// Size in bytes of its persistent memory, a power of two; 0 for none.
    pub keep: u64,
    /// Number of nodes of 256 slots of its persistent capabilities.
    pub keep_nodes: u32,
    /// Arguments after the program's name.
    #[serde(borrow)]
    pub arguments: Strings<'a>,
    /// Environment: entries of the form `NAME=value`.
    #[serde(borrow)]
    pub environment: Strings<'a>,
    /// Powers of its capabilities to servers, as [`Powers`].
    pub powers: u16,
    /// Capabilities besides those of every process.
    #[serde(borrow)]
    pub capabilities: Capabilities<'a>,
}

/// A checked system description.
#[derive(Clone, Copy, Debug)]
pub struct System<'a> {
    records: &'a [u8],
    count: u32,
    shares: Shares<'a>,
}

impl<'a> System<'a> {
    /// Checks `bytes` (the file [`ARCHIVE_PATH`]) from beginning to end.
    pub fn parse(bytes: &'a [u8]) -> Result<System<'a>, Malformed> {
        let (header, records) = postcard::take_from_bytes::<Header<'_>>(bytes).map_err(|_| Malformed)?;
        if header.magic != MAGIC || header.version != VERSION || !header.shares.is_well_formed() {
            return Err(Malformed);
        }
        let mut rest = records;
        for _ in 0..header.programs {
            let (program, after) = postcard::take_from_bytes::<Program<'_>>(rest).map_err(|_| Malformed)?;
            if !(program.arguments.is_well_formed()
                && program.environment.is_well_formed()
                && program.capabilities.is_well_formed()
                && Powers::from_bits(program.powers).is_some())
            {
                return Err(Malformed);
            }
            rest = after;
        }
        if !rest.is_empty() {
            return Err(Malformed);
        }
        Ok(System { records, count: header.programs, shares: header.shares })
    }

    /// Returns how memory is divided among the cores.
    pub const fn shares(&self) -> Shares<'a> {
        self.shares
    }

    /// Returns the programs, those to be started in the order in which `init` has to start them.
    pub fn programs(&self) -> Programs<'a> {
        Programs { rest: self.records, left: self.count }
    }

    /// Returns the program with this name.
    pub fn find(&self, name: &str) -> Option<Program<'a>> {
        self.programs().find(|program| program.name == name)
    }

    /// Returns the program whose ELF file is at this path of the archive.
    pub fn find_path(&self, path: &str) -> Option<Program<'a>> {
        self.programs().find(|program| program.path == path)
    }

    /// Returns these programs and shares in the encoding that [`parse`](Self::parse) reads.
    #[cfg(feature = "write")]
    pub fn write(programs: &[Program], shares: Shares) -> alloc::vec::Vec<u8> {
        let header = Header { magic: MAGIC, version: VERSION, programs: programs.len() as u32, shares };
        let mut bytes = postcard::to_allocvec(&header).expect("memory is the only limit");
        for program in programs {
            bytes.extend(postcard::to_allocvec(program).expect("memory is the only limit"));
        }
        bytes
    }
}

impl Program<'_> {
    /// Returns the powers of its capabilities to servers.
    pub const fn powers(&self) -> Powers {
        Powers::from_bits_truncate(self.powers)
    }

    /// Returns whether it is a server that runs on the first core only: elsewhere the monitor replies in its place.
    pub fn is_absent_elsewhere(&self) -> bool {
        self.server && matches!(self.cores, Cores::First)
    }

    /// Returns whether it is a server that runs on each core, if there are several: then its name refers to that of the
    /// same core.
    pub fn is_on_each_core(&self) -> bool {
        self.server && matches!(self.cores, Cores::Every | Cores::Several)
    }
}

/// Iterator over the programs of a [`System`].
#[derive(Clone, Debug)]
pub struct Programs<'a> {
    rest: &'a [u8],
    left: u32,
}

impl<'a> Iterator for Programs<'a> {
    type Item = Program<'a>;

    fn next(&mut self) -> Option<Program<'a>> {
        self.left = self.left.checked_sub(1)?;
        let (program, rest) = postcard::take_from_bytes(self.rest).ok()?;
        self.rest = rest;
        Some(program)
    }
}
