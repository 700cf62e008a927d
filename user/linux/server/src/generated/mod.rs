//! `/proc` and `/sys`: files that are made up when somebody looks.
//!
//! The tree has nothing of them but the two names in its root. A node's name says what it is ([`What`]), so that
//! processes need not care, and nothing is left of a node that nobody has open. [`View`] says what directories
//! contain and where links lead; the contents of files are made when they are read from their beginning.
//!
//! ```text
//!   /proc ── self, thread-self, cpuinfo …     Fixed: a line of FIXED
//!    │  └─── sys/kernel/osrelease …
//!    └ PID ── stat, maps …                    Entry: a line of PROCESS
//!       ├──── fd/N, fdinfo/N                  Descriptor, DescriptorFacts
//!       └──── task/TID ── stat, comm …        Thread, ThreadEntry
//! ```

mod contents;
mod described;
mod fixed;
mod ipc;
mod links;
mod memory;
mod pages;
mod process;
mod status;
mod view;
mod write;

use tench_linux_files::{Class, NodeId};

use fixed::FIXED;
pub(crate) use links::DELETED;
use process::ENTRIES;
pub(crate) use view::{View, Viewer};

/// Number of the file system of `/proc`, as programs see it.
pub(crate) const PROC_DEVICE: u32 = 21;
/// Number of the file system of `/sys`.
pub(crate) const SYS_DEVICE: u32 = 22;

/// A process, as a node's name has it: its number, and how often numbers had begun anew when it was made, so that
/// nobody takes another process for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// Number of the process.
    pub id: u32,
    /// How often numbers had begun anew.
    pub round: u16,
}

/// A generated node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A line of [`FIXED`].
    Fixed(usize),
    /// The directory of a process.
    Process(Owner),
    /// A line of [`ENTRIES`] in a process's directory.
    Entry(Owner, usize),
    /// The link that stands for a descriptor.
    Descriptor(Owner, u32),
    /// The file that describes a descriptor.
    DescriptorFacts(Owner, u32),
    /// The directory of a thread.
    Thread(Owner, u32),
    /// A line of [`ENTRIES`] in a thread's directory.
    ThreadEntry(Owner, u32, usize),
}

/// Positions of the parts of a number, from the round up.
const ID: u32 = 16;
const VALUE: u32 = 32;
const INDEX: u32 = 52;
const TAG: u32 = 58;

impl What {
    /// Returns what a node of the root is.
    pub fn of(node: NodeId) -> Option<What> {
        let number = node.number_of_generated()?;
        let owner = Owner { id: (number >> ID) as u32 & 0xffff, round: number as u16 };
        let value = (number >> VALUE) as u32 & 0xf_ffff;
        let index = (number >> INDEX) as usize & 0x3f;
        Some(match number >> TAG {
            0 => What::Fixed(value as usize),
            1 => What::Process(owner),
            2 => What::Entry(owner, index),
            3 => What::Descriptor(owner, value),
            4 => What::DescriptorFacts(owner, value),
            5 => What::Thread(owner, value),
            _ => What::ThreadEntry(owner, value, index),
        })
    }

    /// Returns the node's name in the tree.
    pub fn node(self) -> NodeId {
        let (tag, owner, value, index) = match self {
            What::Fixed(index) => (0, None, index as u32, 0),
            What::Process(owner) => (1, Some(owner), 0, 0),
            What::Entry(owner, index) => (2, Some(owner), 0, index),
            What::Descriptor(owner, value) => (3, Some(owner), value, 0),
            What::DescriptorFacts(owner, value) => (4, Some(owner), value, 0),
            What::Thread(owner, value) => (5, Some(owner), value, 0),
            What::ThreadEntry(owner, value, index) => (6, Some(owner), value, index),
        };
        let owner = owner.map_or(0, |owner| u64::from(owner.id) << ID | u64::from(owner.round));
        NodeId::generated(self.class(), tag << TAG | (index as u64) << INDEX | u64::from(value) << VALUE | owner)
    }

    /// Returns the node's type.
    pub fn class(self) -> Class {
        match self {
            What::Fixed(index) => FIXED[index].made.class(),
            What::Process(_) | What::Thread(..) => Class::Directory,
            What::Entry(_, index) | What::ThreadEntry(_, _, index) => ENTRIES[index].entry.class(),
            What::Descriptor(..) => Class::Link,
            What::DescriptorFacts(..) => Class::File,
        }
    }

    /// Returns the process to which the node belongs.
    pub fn owner(self) -> Option<Owner> {
        match self {
            What::Fixed(_) => None,
            What::Process(owner)
            | What::Entry(owner, _)
            | What::Descriptor(owner, _)
            | What::DescriptorFacts(owner, _)
            | What::Thread(owner, _)
            | What::ThreadEntry(owner, ..) => Some(owner),
        }
    }

    /// Returns whether the node lies in `/sys`.
    pub fn is_in_sys(self) -> bool {
        match self {
            What::Fixed(index) => fixed::is_below(index, fixed::SYS),
            _ => false,
        }
    }

    /// Returns whether the node is a setting of the system, which can be opened only as its permissions say.
    pub fn is_setting(self) -> bool {
        match self {
            What::Fixed(index) => fixed::is_below(index, fixed::SYS) || fixed::is_below(index, fixed::SETTINGS),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn a_node_says_what_it_is() {
        let owner = Owner { id: 32_767, round: 65_535 };
        let fixed = (0..FIXED.len()).map(What::Fixed);
        let own = (0..ENTRIES.len()).flat_map(|index| [What::Entry(owner, index), What::ThreadEntry(owner, 7, index)]);
        let others = [0, 9, (1 << 20) - 1].into_iter().flat_map(|value| {
            [What::Descriptor(owner, value), What::DescriptorFacts(owner, value), What::Thread(owner, value)]
        });
        let all: Vec<What> = fixed.chain(own).chain(others).chain([What::Process(owner)]).collect();
        for what in &all {
            assert_eq!(What::of(what.node()), Some(*what));
        }
        let mut numbers: Vec<u64> = all.iter().map(|what| tench_linux_files::Tree::number(what.node())).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), all.len(), "each has a number of its own");
        assert_eq!(What::of(tench_linux_files::Tree::ROOT), None);
    }
}
