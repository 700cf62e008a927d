//! Starting another program.

use alloc::vec::Vec;

use tench_linux_calls::numbers::AT_FDCWD;
use tench_linux_files::{Errno, Kind, Last, NodeId, Tree};
use tench_linux_memory::ObjectId;

use crate::caller::{Caller, Outcome, Result};
use crate::exec::{Image, Start};
use crate::process::{ACTION, NO_SIGNAL_STACK};
use crate::{Machine, System};

/// The longest argument or variable, in bytes.
const MAX_STRING: usize = 128 * 1024;
/// The most arguments or variables.
const MAX_STRINGS: usize = 16 * 1024;

impl<M: Machine> System<M> {
    /// Returns the contents of a program's file.
    ///
    /// # Errors
    /// `EACCES` if it is no regular file or nobody may execute it.
    pub fn program(&self, node: NodeId) -> Result<ObjectId> {
        let node = self.tree.node(node);
        match node.kind {
            Kind::Regular(object) if node.attributes.permissions & 0o111 != 0 => Ok(object),
            _ => Err(Errno::EACCES),
        }
    }

    /// Loads a program.
    ///
    /// # Errors
    /// Those of [`Image::load`] and of finding the file.
    pub fn load(
        &mut self,
        directory: NodeId,
        path: &[u8],
        arguments: &[Vec<u8>],
        environment: &[Vec<u8>],
    ) -> Result<Image<M>> {
        let places = (Tree::ROOT, directory);
        let node = self.tree.find(places, path, Last::Follow)?;
        let object = self.program(node)?;
        let mut random = [0; 16];
        self.memory.hardware.random(&mut random);
        let start = Start { path, arguments, environment, random };
        let System { memory, tree, .. } = self;
        Image::load(memory, object, &start, |path| {
            let node = tree.node(tree.find(places, path, Last::Follow)?);
            match node.kind {
                Kind::Regular(object) if node.attributes.permissions & 0o111 != 0 => Ok(object),
                _ => Err(Errno::EACCES),
            }
        })
    }
}

impl<M: Machine> Caller<'_, M> {
    /// Reads an array of strings.
    fn read_strings(&mut self, address: u64) -> Result<Vec<Vec<u8>>> {
        let mut strings = Vec::new();
        if address == 0 {
            return Ok(strings);
        }
        loop {
            let place = address.checked_add(8 * strings.len() as u64).ok_or(Errno::EFAULT)?;
            let string = u64::from_le_bytes(self.read_record(place)?);
            if string == 0 {
                return Ok(strings);
            }
            if strings.len() == MAX_STRINGS {
                return Err(Errno::E2BIG);
            }
            strings.push(self.read_string(string, MAX_STRING)?.ok_or(Errno::E2BIG)?);
        }
    }

    /// Runs another program in the process.
    pub fn execve(&mut self, path: u64, arguments: u64, environment: u64) -> Outcome {
        match self.run(path, arguments, environment) {
            Ok(outcome) => outcome,
            Err(error) => Err(error).into(),
        }
    }

    fn run(&mut self, path: u64, arguments: u64, environment: u64) -> Result<Outcome> {
        let (from, path) = self.path(AT_FDCWD as u64, path)?;
        let mut arguments = self.read_strings(arguments)?;
        let environment = self.read_strings(environment)?;
        if arguments.is_empty() {
            arguments.push(Vec::new());
        }
        let image = self.system.load(from, &path, &arguments, &environment)?;
        let old = core::mem::replace(&mut self.process.space, image.space);
        old.end(&mut self.system.memory);
        (self.process.heap, self.process.heap_end) = (image.heap, image.heap);
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(&path).to_vec();
        self.process.set_name(&name);
        self.process.program = path;
        self.process.clear_at_end = 0;
        self.process.signal_stack = NO_SIGNAL_STACK;
        for action in &mut self.process.actions {
            // What is ignored stays ignored.
            if u64::from_le_bytes(*action.first_chunk().unwrap_or(&[0; 8])) != 1 {
                *action = [0; ACTION];
            }
        }
        let closed = self.process.descriptors.all().filter(|(_, descriptor)| descriptor.closes_on_exec);
        let closed: Vec<u32> = closed.map(|(number, _)| number).collect();
        for number in closed {
            self.close(number.into())?;
        }
        Ok(Outcome::Run { entry: image.entry, stack: image.stack })
    }
}
