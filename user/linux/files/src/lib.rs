//! The files of Linux processes.
//!
//! A [`Tree`] has nodes: directories, regular files, symbolic links, devices. A regular file's contents are an
//! [object](tench_linux_memory::Object), so that it can be mapped. [Paths](Tree::walk) lead to nodes.
//!
//! Everything belongs to the super-user, as whom the programs run: permissions are recorded and shown, but forbid
//! nothing.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

mod change;
mod directory;
mod node;
mod open;
mod path;
mod pipe;
mod tree;

pub use change::Rename;
pub use directory::Entry;
pub use node::{Attributes, Device, Kind, Node, NodeId, Time};
pub use path::{Found, Last, MAX_NAME, MAX_PATH};
pub use pipe::Pipe;
pub use tench_linux_calls::Errno;
pub use tree::{NewNode, Tree};
