//! Starting another program.

use alloc::format;
use alloc::vec::Vec;

use tench_linux_calls::numbers::{AT_FDCWD, at, permission};
use tench_linux_files::{Class, Errno, Kind, Last, NodeId};
use tench_linux_memory::ObjectId;

use crate::caller::{Caller, Outcome, Result};
use crate::descriptors::Place;
use crate::exec::{self, Image, MAX_STRINGS, Start};
use crate::generated::{DELETED, Viewer};
use crate::identity::Identity;
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

/// A program's file, as a call names it.
#[derive(Clone, Copy)]
struct Named<'a> {
    /// The directory from which the path leads; with an empty path, the file.
    from: NodeId,
    path: &'a [u8],
    /// With an empty path, where the file was found.
    place: Option<&'a Place>,
    /// How a link at the end of the path is treated.
    last: Last,
    /// The path that the program is told, by which the interpreter of a script finds it, too.
    shown: &'a [u8],
    /// Set if that path leads nowhere once another program runs.
    is_lost: bool,
}

/// A program that was loaded for a process.
struct LoadedProgram<M: Machine> {
    image: Image<M>,
    path: Vec<u8>,
    node: NodeId,
    /// The identity of the process that runs it.
    identity: Identity,
    /// The process may look into its memory, also through others of its user.
    is_readable: bool,
}

impl<'a> Named<'a> {
    /// Returns a file at a path from a directory.
    fn at(from: NodeId, path: &'a [u8]) -> Named<'a> {
        Named { from, path, place: None, last: Last::Follow, shown: path, is_lost: false }
    }
}

impl<M: Machine> System<M> {
    /// Returns the contents of a program's file, which somebody wants to run.
    ///
    /// # Errors
    /// `EACCES` if it is no regular file or may not be executed, `ELOOP` if it is a link.
    pub fn program(&self, node: NodeId, identity: &Identity) -> Result<ObjectId> {
        let node = self.tree.node(node);
        let may = || identity.for_files().may(&node.attributes, false, permission::EXECUTE);
        match node.kind {
            Kind::Regular(object) if may() => Ok(object),
            Kind::Link(_) | Kind::Generated(Class::Link) => Err(Errno::ELOOP),
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
        let named = Named::at(directory, path);
        let loaded = self.load_for(Viewer::nobody(), directory, named, arguments, environment)?;
        Ok((loaded.image, loaded.path))
    }

    /// Loads a program for a process with a working directory, which names it.
    fn load_for(
        &mut self,
        viewer: Viewer<'_, M>,
        directory: NodeId,
        named: Named<'_>,
        arguments: &[Vec<u8>],
        environment: &[Vec<u8>],
    ) -> Result<LoadedProgram<M>> {
        let own = viewer.own.map_or(&Identity::SUPER_USER, |own| &own.thread().identity);
        let (mut shown, mut arguments) = (named.shown.to_vec(), arguments.to_vec());
        let (mut node, mut path) = self.find_named(viewer, named)?;
        for _ in 0..MAX_SCRIPTS {
            let object = self.program(node, own)?;
            let Some(Interpreter { path: program, argument }) = self.script(object)? else {
                let is_bound = own.has_no_new_privileges || viewer.is_traced_without_power();
                let (identity, told) = self.after_program(node, own, is_bound);
                let mut random = [0; 16];
                self.memory.hardware.random(&mut random);
                let (shown, trampoline, arguments) = (named.shown, self.trampoline, &arguments[..]);
                let start = Start { path: shown, arguments, environment, random, identity: told, trampoline };
                let image = self.load_image(viewer, directory, object, &start)?;
                let attributes = &self.tree.node(node).attributes;
                let is_readable = own.for_files().may(attributes, false, permission::READ)
                    && told.users[0] == told.users[1]
                    && told.groups[0] == told.groups[1];
                return Ok(LoadedProgram { image, path, node, identity, is_readable });
            };
            if named.is_lost {
                return Err(Errno::ENOENT);
            }
            // In place of its name, the script's path.
            let rest = arguments.split_off(arguments.len().min(1));
            arguments = [Some(program.clone()), argument, Some(shown)].into_iter().flatten().chain(rest).collect();
            (node, path) = self.find_named(viewer, Named::at(directory, &program))?;
            shown = program;
        }
        Err(Errno::ELOOP)
    }

    /// Returns the identity after a program's file was run, and what the program is told of that. One that is bound
    /// gains no privileges.
    fn after_program(&self, node: NodeId, own: &Identity, is_bound: bool) -> (Identity, exec::Identity) {
        const SET_GROUP: u32 = permission::SET_GROUP | permission::GROUP_EXECUTE;
        let attributes = &self.tree.node(node).attributes;
        let (user, group) = (
            (attributes.permissions & permission::SET_USER != 0).then_some(attributes.user),
            (attributes.permissions & SET_GROUP == SET_GROUP).then_some(attributes.group),
        );
        let bound = Identity { has_no_new_privileges: is_bound, ..own.clone() };
        let (mut new, distrusts) = bound.after_program(user, group);
        new.has_no_new_privileges = own.has_no_new_privileges;
        let [users, groups] = [new.user, new.group].map(|ids| [ids.real, ids.effective]);
        (new, exec::Identity { users, groups, distrusts })
    }

    /// Returns the name of a program that a call has named by its file.
    fn own_name<'a>(&'a self, node: NodeId, path: &'a [u8]) -> &'a [u8] {
        let node = self.tree.node(node);
        if let Kind::Regular(object) = node.kind
            && let Some(name) = self.memory.objects.get(object).name()
        {
            return name;
        }
        let path = if node.links() == 0 { path.strip_suffix(DELETED).unwrap_or(path) } else { path };
        last_name(path)
    }

    /// Returns the file that a call names, and its path.
    fn find_named(&self, viewer: Viewer<'_, M>, named: Named<'_>) -> Result<(NodeId, Vec<u8>)> {
        let view = viewer.with(&self.descriptions, &self.mounts);
        if named.path.is_empty() {
            view.check_contents(&self.tree, named.from)?;
            return Ok((named.from, self.name_of(named.from, named.place)));
        }
        let found = self.tree.walk_with(&view, (viewer.root(), named.from), named.path, named.last)?;
        let node = self.tree.existing(&found)?;
        view.check_contents(&self.tree, node)?;
        Ok((node, self.path_to(&found, node, named.shown)))
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

    /// Loads a program's file, with what it is told.
    fn load_image(
        &mut self,
        viewer: Viewer<'_, M>,
        directory: NodeId,
        object: ObjectId,
        start: &Start<'_>,
    ) -> Result<Image<M>> {
        let own = viewer.own.map_or(&Identity::SUPER_USER, |own| &own.thread().identity);
        let places = (viewer.root(), directory);
        let System { memory, tree, descriptions, mounts, .. } = self;
        let view = viewer.with(descriptions, mounts);
        Image::load(memory, object, start, |path| {
            let node = tree.find_with(&view, places, path, Last::Follow)?;
            view.check_contents(tree, node)?;
            let node = tree.node(node);
            let may = || own.for_files().may(&node.attributes, false, permission::EXECUTE);
            match node.kind {
                Kind::Regular(object) if may() => Ok(object),
                _ => Err(Errno::EACCES),
            }
        })
    }
}

/// Returns the last name of a path.
fn last_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// Returns the path that a program is told: the one by which it was named, or one that leads through its descriptor.
fn shown_path(directory: u64, path: &[u8]) -> Vec<u8> {
    let directory = (directory as u32).cast_signed();
    if directory == AT_FDCWD || path.first() == Some(&b'/') {
        return path.to_vec();
    }
    let slash: &[u8] = if path.is_empty() { b"" } else { b"/" };
    [format!("/dev/fd/{directory}").as_bytes(), slash, path].concat()
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
        self.execveat(AT_FDCWD as u64, path, [arguments, environment], 0)
    }

    /// Runs another program in the process, whose path leads from a directory; with an empty path and `AT_EMPTY_PATH`,
    /// the descriptor is that of the program's file.
    pub fn execveat(&mut self, directory: u64, path: u64, strings: [u64; 2], flags: u64) -> Outcome {
        match self.run(directory, path, strings, flags as u32) {
            Ok(outcome) => outcome,
            Err(error) => Err(error).into(),
        }
    }

    fn run(&mut self, directory: u64, path: u64, [arguments, environment]: [u64; 2], flags: u32) -> Result<Outcome> {
        let path = self.read_path(path)?;
        if path.is_empty() && flags & at::EMPTY_PATH == 0 {
            return Err(Errno::ENOENT);
        }
        let mut left = MAX_STRINGS;
        let mut arguments = self.read_strings(arguments, &mut left)?;
        let environment = self.read_strings(environment, &mut left)?;
        if arguments.is_empty() {
            arguments.push(Vec::new());
        }
        if flags & !(at::SYMLINK_NOFOLLOW | at::EMPTY_PATH) != 0 {
            return Err(Errno::EINVAL);
        }
        let shown = shown_path(directory, &path);
        let is_lost = shown != path && self.process.descriptors.get(directory)?.closes_on_exec;
        let from = match path.first() {
            Some(b'/') => self.process.root,
            _ => self.directory(directory, path.is_empty())?,
        };
        let place = self.descriptor(directory).ok().and_then(|id| self.system.descriptions.find(id).place.clone());
        let last = if flags & at::SYMLINK_NOFOLLOW != 0 { Last::Keep } else { Last::Follow };
        let named = Named { from, path: &path, place: place.as_ref(), last, shown: &shown, is_lost };
        let loaded = {
            let viewer = Viewer { own: Some(&*self.process), others: Some(&*self.others) };
            self.system.load_for(viewer, self.process.directory, named, &arguments, &environment)?
        };
        let LoadedProgram { image, path: program, node, identity, is_readable } = loaded;
        self.replace_space(Used::new(image.space, image.heap));
        self.space().0.allowance = self.process.limits.allowance();
        self.process.layout = image.layout;
        let name = if path.is_empty() { self.system.own_name(node, &program) } else { last_name(&path) };
        self.process.thread_mut().set_name(name);
        self.process.program = program;
        let is_another = identity.is_another_than(self.identity());
        self.process.is_dumpable = is_readable && !is_another;
        if is_another {
            self.process.thread_mut().end_of_parent = 0;
            self.process.personality = 0;
        }
        self.process.thread_mut().identity = identity;
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
