//! The files of Linux processes.
//!
//! A [`Tree`] has nodes: directories, regular files, symbolic links, devices. A regular file's contents are an
//! [object](tench_linux_memory::Object), so that it can be mapped. [Paths](Tree::walk) lead to nodes. An entry may also
//! lead to a directory that is not in the tree, whose contents are [made up](Generated).
//!
//! Files have owners and permissions. [`Credentials`] say what these forbid; on the way of a path they are checked
//! here, and otherwise by who calls.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

mod access;
mod change;
mod directory;
mod generated;
mod mirror;
mod node;
mod open;
mod path;
mod pipe;
mod tree;

pub use access::Credentials;
pub use change::Rename;
pub use directory::Entry;
pub use generated::{Class, Generated, Nothing, Target};
pub use mirror::{Mirror, Seen, Version};
pub use node::{Attributes, Device, Kind, Node, NodeId, Time};
pub use path::{Found, Last, MAX_NAME, MAX_PATH};
pub use pipe::Pipe;
pub use tench_linux_calls::Errno;
pub use tree::{NewNode, Tree};
