//! The texts of generated files, in the format of Linux 6.1.
//!
//! Each is a function of plain numbers and names, which whoever has processes and memory collects: see
//! [`Process`], [`Map`], [`System`]. What Tench's personality does not measure is zero there, as Linux says it for what
//! is switched off.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

mod limits;
mod maps;
mod mounts;
mod process;
mod smaps;
mod system;
mod text;

pub use limits::{Limit, limits};
pub use maps::{Map, maps};
pub use mounts::{Mount, mount_information, mounts};
pub use process::{Layout, Memory, Process, Signals, State, Times};
pub use smaps::{Owner, Page, Residence, Use, smaps, smaps_rollup};
pub use system::{Device, Processor, System, devices, file_systems, swaps};
pub use text::identifier;
