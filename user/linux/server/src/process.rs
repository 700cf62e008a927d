//! Processes.

use alloc::vec::Vec;

use tench_linux_files::NodeId;
use tench_linux_memory::{Hardware, Space};

use crate::descriptors::Descriptors;
use crate::exec::Image;

/// Number of signals.
pub const SIGNALS: usize = 64;
/// Size of the record of a signal's action in bytes.
pub const ACTION: usize = 32;

/// Size of the record of a signal stack in bytes.
pub const SIGNAL_STACK: usize = 24;
/// The record of no signal stack: its flags say so.
pub const NO_SIGNAL_STACK: [u8; SIGNAL_STACK] = {
    let mut record = [0; SIGNAL_STACK];
    record[8] = 2;
    record
};

/// A process.
#[derive(Debug)]
pub struct Process<H: Hardware> {
    /// Number of the process.
    pub id: u32,
    /// Memory of the process.
    pub space: Space<H>,
    /// Descriptors of the process.
    pub descriptors: Descriptors,
    /// The directory from which relative paths lead.
    pub directory: NodeId,
    /// Permissions that new files do not get.
    pub mask: u32,
    /// Where the heap begins.
    pub heap: u64,
    /// Where the heap ends, to the byte.
    pub heap_end: u64,
    /// The action for each signal, as the process has set it.
    pub actions: Vec<[u8; ACTION]>,
    /// The signals that are blocked.
    pub blocked: u64,
    /// The stack on which handlers run that want one of their own, as the process has set it.
    pub signal_stack: [u8; SIGNAL_STACK],
    /// The name of its program.
    pub name: [u8; 16],
    /// Address of a word that becomes zero when the thread ends.
    pub clear_at_end: u64,
    /// Path of its program.
    pub program: Vec<u8>,
}

impl<H: Hardware> Process<H> {
    /// Returns the first process, which runs a program in a directory.
    pub fn first(image: Image<H>, program: &[u8], descriptors: Descriptors, directory: NodeId) -> Process<H> {
        let mut process = Process {
            id: 1,
            space: image.space,
            descriptors,
            directory,
            mask: 0o22,
            heap: image.heap,
            heap_end: image.heap,
            actions: alloc::vec![[0; ACTION]; SIGNALS],
            blocked: 0,
            signal_stack: NO_SIGNAL_STACK,
            name: [0; 16],
            clear_at_end: 0,
            program: program.to_vec(),
        };
        process.set_name(program.rsplit(|byte| *byte == b'/').next().unwrap_or(program));
        process
    }

    /// Sets the name, of which 15 bytes count.
    pub fn set_name(&mut self, name: &[u8]) {
        let length = name.len().min(15);
        self.name = [0; 16];
        self.name[..length].copy_from_slice(&name[..length]);
    }
}
