//! Entries of generated directories, and targets of links.

use alloc::format;
use alloc::vec::Vec;

use tench_linux_calls::numbers::capability;
use tench_linux_files::{Class, Credentials, Errno, Generated, NodeId, Target, Tree};

use super::fixed::{self, FIXED, Made};
use super::process::{ENTRIES, Entry, index_of};
use super::{Owner, What};
use crate::Machine;
use crate::descriptors::{Description, Descriptions};
use crate::mounts::{Mounts, Need};
use crate::process::Process;
use crate::processes::Processes;

/// Position of the first process in `/proc`, whose number is 0, behind the fixed entries. Linux has the same.
const FIRST_PROCESS: u64 = 256;
/// Position of the first entry of other directories, behind `.` and `..`.
const FIRST: u64 = 2;

/// A process that looks at generated files, and all others.
#[derive(Debug)]
pub(crate) struct Viewer<'a, M: Machine> {
    /// The process that looks.
    pub own: Option<&'a Process<M>>,
    /// The others.
    pub others: Option<&'a Processes<M>>,
}

impl<M: Machine> Clone for Viewer<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Machine> Copy for Viewer<'_, M> {}

impl<M: Machine> Viewer<'_, M> {
    /// Returns the viewer's root directory.
    pub(crate) fn root(&self) -> NodeId {
        self.own.map_or(Tree::ROOT, |own| own.root)
    }
}

/// Everything that generated directories and links depend on.
#[derive(Debug)]
pub(crate) struct View<'a, M: Machine> {
    /// The processes.
    pub viewer: Viewer<'a, M>,
    /// All open files.
    pub descriptions: &'a Descriptions,
    /// The mounts.
    pub mounts: &'a Mounts,
}

/// An entry of a generated directory.
#[derive(Debug)]
pub(crate) struct Found {
    /// Position of the entry.
    pub position: u64,
    /// Name.
    pub name: Vec<u8>,
    /// Node.
    pub node: NodeId,
}

impl<'a, M: Machine> Viewer<'a, M> {
    /// Returns whether the process is traced by one that does not have the power to trace all.
    pub fn is_traced_without_power(&self) -> bool {
        let tracing = self.own.and_then(|own| own.thread().tracing.as_ref());
        let tracer = tracing.and_then(|tracing| Some((self.others?.find(tracing.tracer_process)?, tracing.tracer)));
        tracer.is_some_and(|(process, id)| {
            let identity = process.thread_of(id).map_or_else(|| process.identity(), |thread| &thread.identity);
            !identity.has(capability::SYS_PTRACE)
        })
    }

    /// Returns a viewer who sees no processes.
    pub const fn nobody() -> Viewer<'a, M> {
        Viewer { own: None, others: None }
    }

    /// Adds the open files and the mounts.
    pub const fn with(self, descriptions: &'a Descriptions, mounts: &'a Mounts) -> View<'a, M> {
        View { viewer: self, descriptions, mounts }
    }

    /// Returns a process by its number.
    pub fn by_id(&self, id: u32) -> Option<&'a Process<M>> {
        self.own.filter(|own| own.id == id).or_else(|| self.others?.find(id))
    }

    /// Returns a node's process, unless it does not exist any more.
    pub fn process(&self, owner: Owner) -> Option<&'a Process<M>> {
        self.by_id(owner.id).filter(|process| process.round == owner.round)
    }

    /// Returns all processes, by their numbers.
    pub fn processes(&self) -> Vec<&'a Process<M>> {
        let others = self.others.into_iter().flat_map(Processes::iter);
        let mut all: Vec<_> = others.chain(self.own).collect();
        all.sort_unstable_by_key(|process| process.id);
        all
    }
}

/// Returns the threads of a process; of one that has ended, its number.
pub(crate) fn threads<M: Machine>(process: &Process<M>) -> impl Iterator<Item = u32> {
    let ended = process.has_ended().then_some(process.id);
    process.threads.iter().map(|thread| thread.id).chain(ended)
}

fn owner<M: Machine>(process: &Process<M>) -> Owner {
    Owner { id: process.id, round: process.round }
}

/// Returns a number that is written as Linux writes it.
fn number(name: &[u8]) -> Option<u32> {
    let text = core::str::from_utf8(name).ok()?;
    let is_plain = name.iter().all(u8::is_ascii_digit) && (name.len() == 1 || name.first() != Some(&b'0'));
    text.parse().ok().filter(|_| is_plain)
}

impl<'a, M: Machine> View<'a, M> {
    /// Returns the open file of a process's descriptor.
    pub fn description(&self, owner: Owner, number: u32) -> Option<&'a Description> {
        let descriptor = self.viewer.process(owner)?.descriptors.get(number.into()).ok()?;
        Some(self.descriptions.find(descriptor.description))
    }

    /// Checks that a file, which somebody wants to run, has the contents of its original.
    ///
    /// # Errors
    /// Those of [`Mounts::need_contents`].
    pub fn check_contents(&self, tree: &Tree, node: NodeId) -> Result<(), Errno> {
        let own = self.viewer.own.map(|own| own.thread().id);
        own.map_or(Ok(()), |thread| self.mounts.need_contents(tree, thread, node))
    }

    /// Checks that the caller may inspect a process's memory.
    ///
    /// # Errors
    /// `EACCES`
    pub fn check_inspection(&self, owner: Owner) -> Result<(), Errno> {
        let Some(own) = self.viewer.own.filter(|own| own.id != owner.id) else { return Ok(()) };
        let Some(process) = self.viewer.process(owner) else { return Ok(()) };
        let may = own.thread().identity.may_inspect(process.identity(), process.is_dumpable);
        if may { Ok(()) } else { Err(Errno::EACCES) }
    }

    /// Returns the entries of a directory from a position on, in order.
    ///
    /// # Errors
    /// `ENOTDIR` if the node is no directory, `ENOENT` if its process does not exist any more.
    pub fn entries(&self, directory: NodeId, from: u64) -> Result<Vec<Found>, Errno> {
        let what = What::of(directory).filter(|what| what.class() == Class::Directory).ok_or(Errno::ENOTDIR)?;
        let mut all = Vec::new();
        let mut add = |position: u64, name: Vec<u8>, node: NodeId| {
            if position >= from {
                all.push(Found { position, name, node });
            }
        };
        add(0, b".".to_vec(), directory);
        add(1, b"..".to_vec(), self.parent(directory));
        let at = |index: usize| FIRST + index as u64;
        let decimal = |number: u32| format!("{number}").into_bytes();
        match what {
            What::Fixed(index) => {
                for (index, fixed) in fixed::children(index) {
                    add(at(index), fixed.name.into(), What::Fixed(index).node());
                }
                if index == fixed::PROC {
                    for process in self.viewer.processes() {
                        let node = What::Process(owner(process)).node();
                        add(FIRST_PROCESS + u64::from(process.id), decimal(process.id), node);
                    }
                }
            }
            What::Process(owner) => {
                self.viewer.process(owner).ok_or(Errno::ENOENT)?;
                for (index, line) in ENTRIES.iter().enumerate() {
                    add(at(index), line.name.into(), What::Entry(owner, index).node());
                }
            }
            What::Thread(owner, thread) => {
                self.viewer.process(owner).ok_or(Errno::ENOENT)?;
                for (index, line) in ENTRIES.iter().enumerate().filter(|(_, line)| line.entry.is_of_threads()) {
                    add(at(index), line.name.into(), What::ThreadEntry(owner, thread, index).node());
                }
            }
            What::Entry(owner, index) => {
                let process = self.viewer.process(owner).ok_or(Errno::ENOENT)?;
                let node = |number| match ENTRIES[index].entry {
                    Entry::Threads => What::Thread(owner, number).node(),
                    Entry::Descriptors => What::Descriptor(owner, number).node(),
                    _ => What::DescriptorFacts(owner, number).node(),
                };
                let numbers: Vec<u32> = match ENTRIES[index].entry {
                    Entry::Threads => threads(process).collect(),
                    _ => process.descriptors.all().map(|(number, _)| number).collect(),
                };
                for number in numbers {
                    add(FIRST + u64::from(number), decimal(number), node(number));
                }
            }
            What::Descriptor(..) | What::DescriptorFacts(..) | What::ThreadEntry(..) => return Err(Errno::ENOTDIR),
        }
        Ok(all)
    }

    fn find(&self, directory: NodeId, name: &[u8]) -> Option<What> {
        Some(match What::of(directory)? {
            What::Fixed(parent) => {
                let fixed = fixed::children(parent).find(|(_, fixed)| fixed.name.as_bytes() == name);
                match fixed {
                    Some((index, _)) => What::Fixed(index),
                    None if parent == fixed::PROC => What::Process(owner(self.viewer.by_id(number(name)?)?)),
                    None => return None,
                }
            }
            What::Process(owner) => {
                self.viewer.process(owner)?;
                What::Entry(owner, ENTRIES.iter().position(|line| line.name.as_bytes() == name)?)
            }
            What::Thread(owner, thread) => {
                self.viewer.process(owner)?;
                let is_it = |line: &super::process::Line| line.name.as_bytes() == name && line.entry.is_of_threads();
                What::ThreadEntry(owner, thread, ENTRIES.iter().position(is_it)?)
            }
            What::Entry(owner, index) => {
                let process = self.viewer.process(owner)?;
                let number = number(name)?;
                match ENTRIES[index].entry {
                    Entry::Threads => What::Thread(owner, threads(process).find(|thread| *thread == number)?),
                    entry => {
                        process.descriptors.get(number.into()).ok()?;
                        match entry {
                            Entry::Descriptors => What::Descriptor(owner, number),
                            _ => What::DescriptorFacts(owner, number),
                        }
                    }
                }
            }
            What::Descriptor(..) | What::DescriptorFacts(..) | What::ThreadEntry(..) => return None,
        })
    }
}

impl<M: Machine> Generated for View<'_, M> {
    fn get(&self, directory: NodeId, name: &[u8]) -> Result<Option<NodeId>, Errno> {
        match What::of(directory) {
            Some(What::Process(owner)) if self.viewer.process(owner).is_none() => Err(Errno::ESRCH),
            _ => Ok(self.find(directory, name).map(What::node)),
        }
    }

    fn parent(&self, directory: NodeId) -> NodeId {
        parent(directory).unwrap_or(Tree::ROOT)
    }

    fn compare(&self, directory: NodeId, name: &[u8]) -> Result<(), Errno> {
        // Before there are processes, the path of the first one's program was brought up to date.
        let Some(own) = self.viewer.own else { return Ok(()) };
        // A server has only names that are text.
        if core::str::from_utf8(name).is_err() {
            return Ok(());
        }
        self.mounts.need(own.thread().id, Need::Entry(directory, name.into()))
    }

    fn searcher(&self) -> Option<Credentials<'_>> {
        let identity = &self.viewer.own?.thread().identity;
        if identity.has(Credentials::SEARCH) { None } else { Some(identity.for_files()) }
    }

    fn user(&self) -> Option<u32> {
        self.viewer.own.map(|own| own.thread().identity.user.files)
    }

    fn may_search(&self, directory: NodeId, who: &Credentials<'_>) -> bool {
        match What::of(directory) {
            Some(What::Entry(owner, index)) if ENTRIES[index].entry == Entry::Descriptors => {
                let is_own = self.viewer.own.is_some_and(|own| own.id == owner.id);
                is_own
                    || self.viewer.process(owner).is_some_and(|process| {
                        let user = if process.is_dumpable { process.identity().user.effective } else { 0 };
                        user == who.user
                    })
            }
            Some(What::Entry(owner, index)) if ENTRIES[index].entry == Entry::DescriptorFacts => {
                self.check_inspection(owner).is_ok()
            }
            _ => true,
        }
    }

    fn target(&self, link: NodeId) -> Result<Target, Errno> {
        if let Some(What::Entry(owner, _) | What::ThreadEntry(owner, ..) | What::Descriptor(owner, _)) = What::of(link)
        {
            self.check_inspection(owner)?;
        }
        let entry = |owner, index: usize| {
            let process = self.viewer.process(owner).filter(|process| !process.has_ended()).ok_or(Errno::ENOENT)?;
            match ENTRIES[index].entry {
                Entry::Directory => Ok(Target::Node(process.directory)),
                Entry::Root => Ok(Target::Node(process.root)),
                _ => Ok(Target::Path(process.program.clone())),
            }
        };
        match What::of(link) {
            Some(What::Fixed(index)) => {
                let own = self.viewer.own.map(|own| own.id).ok_or(Errno::ENOENT);
                Ok(Target::Path(match FIXED[index].made {
                    Made::Link(path) => path.into(),
                    Made::Own => format!("{}", own?).into_bytes(),
                    _ => {
                        let thread = self.viewer.own.map_or(0, |own| own.thread().id);
                        format!("{}/task/{thread}", own?).into_bytes()
                    }
                }))
            }
            Some(What::Entry(owner, index) | What::ThreadEntry(owner, _, index)) => entry(owner, index),
            Some(What::Descriptor(owner, number)) => {
                self.description(owner, number).map(|open| Target::Node(open.node)).ok_or(Errno::ENOENT)
            }
            _ => Err(Errno::EINVAL),
        }
    }
}

impl<M: Machine> crate::Caller<'_, M> {
    /// Returns the path of a generated directory; nothing if its process does not exist any more.
    pub(crate) fn generated_path(&self, directory: NodeId) -> Option<Vec<u8>> {
        let exists = match What::of(directory)?.owner() {
            Some(owner) => self.viewer().process(owner).is_some(),
            None => true,
        };
        exists.then(|| path(directory))
    }
}

/// Returns the generated directory in which a generated node lies; nothing if that is the root.
fn parent(node: NodeId) -> Option<NodeId> {
    let parent = match What::of(node)? {
        What::Fixed(index) if FIXED[index].parent == index => return None,
        What::Fixed(index) => What::Fixed(FIXED[index].parent),
        What::Process(_) => What::Fixed(fixed::PROC),
        What::Entry(owner, _) => What::Process(owner),
        What::Descriptor(owner, _) => What::Entry(owner, index_of(Entry::Descriptors)),
        What::DescriptorFacts(owner, _) => What::Entry(owner, index_of(Entry::DescriptorFacts)),
        What::Thread(owner, _) => What::Entry(owner, index_of(Entry::Threads)),
        What::ThreadEntry(owner, thread, _) => What::Thread(owner, thread),
    };
    Some(parent.node())
}

/// Returns the path of a generated node.
pub(crate) fn path(node: NodeId) -> Vec<u8> {
    let mut path = parent(node).map(path).unwrap_or_default();
    path.push(b'/');
    path.extend(match What::of(node) {
        Some(What::Fixed(index)) => FIXED[index].name.into(),
        Some(What::Process(owner)) => format!("{}", owner.id).into_bytes(),
        Some(What::Entry(_, index) | What::ThreadEntry(_, _, index)) => ENTRIES[index].name.into(),
        Some(What::Descriptor(_, value) | What::DescriptorFacts(_, value) | What::Thread(_, value)) => {
            format!("{value}").into_bytes()
        }
        None => Vec::new(),
    });
    path
}
