//! Starting another program.

use alloc::vec::Vec;

use tench_linux_calls::numbers::AT_FDCWD;
use tench_linux_files::{Errno, Kind, Last, NodeId, Tree};
use tench_linux_memory::ObjectId;

use crate::caller::{Caller, Outcome, Result};
use crate::exec::{Image, MAX_STRINGS, Start};
use crate::generated::Viewer;
use crate::signals::Stack;
use crate::spaces::Used;
use crate::{Machine, System};

/// The longest argument or variable, in bytes.
const MAX_STRING: usize = 128 * 1024;
/// The longest first line of a script.
const MAX_LINE: usize = 256;
/// The most scripts that name each other.
const MAX_SCRIPTS: usize = 5;
/// Bytes of strings that a call takes without asking for room.
const FEW_STRINGS: usize = 64 * 1024;
/// How often strings are there at most while a program is loaded, with what they take as vectors.
const COPIES: usize = 6;
/// Size of a pointer in bytes.
const POINTER: usize = 8;

/// The program that runs a script.
struct Interpreter {
    path: Vec<u8>,
    argument: Option<Vec<u8>>,
}

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

    /// Loads a program, or the one that is named in the first line of a script. Returns its path, too.
    ///
    /// # Errors
    /// - `ELOOP`: scripts name each other.
    /// - Those of [`Image::load`] and of finding the file.
    pub fn load(
        &mut self,
        directory: NodeId,
        path: &[u8],
        arguments: &[Vec<u8>],
        environment: &[Vec<u8>],
    ) -> Result<(Image<M>, Vec<u8>)> {
        self.load_for(Viewer::nobody(), directory, path, arguments, environment)
    }

    /// Loads a program for a process, which names it.
    fn load_for(
        &mut self,
        viewer: Viewer<'_, M>,
        directory: NodeId,
        path: &[u8],
        arguments: &[Vec<u8>],
        environment: &[Vec<u8>],
    ) -> Result<(Image<M>, Vec<u8>)> {
        let (mut path, mut arguments) = (path.to_vec(), arguments.to_vec());
        for _ in 0..MAX_SCRIPTS {
            let view = viewer.with(&self.descriptions);
            let found = self.tree.walk_with(&view, (Tree::ROOT, directory), &path, Last::Follow)?;
            let node = self.tree.existing(&found)?;
            let object = self.program(node)?;
            let Some(Interpreter { path: interpreter, argument }) = self.script(object)? else {
                let image = self.load_image(directory, object, &path, &arguments, environment)?;
                return Ok((image, self.path_to(&found, node, &path)));
            };
            // In place of its name, the script's path.
            let rest = arguments.split_off(arguments.len().min(1));
            arguments = [Some(interpreter.clone()), argument, Some(path)].into_iter().flatten().chain(rest).collect();
            path = interpreter;
        }
        Err(Errno::ELOOP)
    }

    /// Returns the program in the first line of a script, and its argument.
    fn script(&mut self, object: ObjectId) -> Result<Option<Interpreter>> {
        let mut line = [0; MAX_LINE];
        let length = self.memory.objects.read(&mut self.memory.hardware, object, 0, &mut line);
        let Some(rest) = line[..length].strip_prefix(b"#!") else { return Ok(None) };
        let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        let is_blank = |byte: &u8| *byte == b' ' || *byte == b'\t';
        let line = rest[..end].trim_ascii();
        let split = line.iter().position(|byte| is_blank(byte) || *byte == 0).unwrap_or(line.len());
        if split == 0 {
            return Err(Errno::ENOEXEC);
        }
        let argument = line[split..].trim_ascii();
        let argument = (!argument.is_empty()).then(|| argument.to_vec());
        Ok(Some(Interpreter { path: line[..split].to_vec(), argument }))
    }

    fn load_image(
        &mut self,
        directory: NodeId,
        object: ObjectId,
        path: &[u8],
        arguments: &[Vec<u8>],
        environment: &[Vec<u8>],
    ) -> Result<Image<M>> {
        let places = (Tree::ROOT, directory);
        let trampoline = self.trampoline;
        let mut random = [0; 16];
        self.memory.hardware.random(&mut random);
        let start = Start { path, arguments, environment, random, trampoline };
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
    /// Reads an array of strings, which may have so many bytes together, of which they leave some.
    fn read_strings(&mut self, address: u64, left: &mut usize) -> Result<Vec<Vec<u8>>> {
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
            let string = self.read_string(string, MAX_STRING)?.ok_or(Errno::E2BIG)?;
            *left = left.checked_sub(string.len() + 1 + POINTER).ok_or(Errno::E2BIG)?;
            let taken = MAX_STRINGS - *left;
            if taken > FEW_STRINGS {
                self.system.memory.check_room(COPIES * taken)?;
            }
            strings.push(string);
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
        let mut left = MAX_STRINGS;
        let mut arguments = self.read_strings(arguments, &mut left)?;
        let environment = self.read_strings(environment, &mut left)?;
        if arguments.is_empty() {
            arguments.push(Vec::new());
        }
        let (image, program) = {
            let viewer = Viewer { own: Some(&*self.process), others: Some(&*self.others) };
            self.system.load_for(viewer, from, &path, &arguments, &environment)?
        };
        self.replace_space(Used::new(image.space, image.heap));
        self.process.layout = image.layout;
        self.process.thread_mut().set_name(path.rsplit(|byte| *byte == b'/').next().unwrap_or(&path));
        self.process.program = program;
        self.process.signals.reset();
        self.process.thread_mut().signals.stack = Stack::NONE;
        let mut next = 0;
        while let Some((number, descriptor)) = self.process.descriptors.next(next) {
            next = number + 1;
            if descriptor.closes_on_exec {
                self.close(number.into())?;
            }
        }
        Ok(Outcome::Run { entry: image.entry, stack: image.stack })
    }
}
