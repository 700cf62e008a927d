//! Reads the boot archive and loads programs into new processes.
//!
//! ```text
//! archive      the tar file in which programs lie
//! program      an ELF file, checked
//! addresses    where the parts of an address space lie, chosen at random
//! relocate     the contents of a program that lies elsewhere than it was linked
//! information  what a program is told when it starts
//! pages        arithmetic of pages, frames and tables
//! space        the address space of a new process, built through the trait `Builder`
//! machine      the `Builder` that makes system calls, and the process's other kernel objects
//! objects      a process's memory, and the slots for its objects
//! holes        which of that memory is unused
//! fault        textual descriptions of faults of processes
//! ```
//! `init` loads the memory server and the process server with it, the process server everything else. Nothing here
//! needs a heap, because `init` has none.

#![no_std]
#![deny(missing_docs)]

pub mod addresses;
pub mod archive;
pub mod fault;
pub mod holes;
pub mod information;
pub mod machine;
pub mod objects;
pub mod pages;
pub mod program;
pub mod relocate;
pub mod space;

pub use addresses::{Addresses, StackSize};
pub use archive::Archive;
pub use machine::{Machine, Process, ROOT_BITS, Resources, Schedule, Shown, Window, root_bits};
pub use objects::{Objects, Source};
pub use program::Program;
pub use space::{Builder, LoadError};
