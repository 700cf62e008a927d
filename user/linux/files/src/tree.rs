//! The tree of nodes.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use slab::Slab;
use tench_linux_memory::{Errno, Hardware, Memory, ObjectId};

use crate::directory::Directory;
use crate::generated::stand_in;
use crate::node::{Attributes, Kind, Node, NodeId, Time};
use crate::pipe::Pipe;

/// A node to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewNode<'a> {
    /// A regular file with these contents at first.
    Regular(&'static [u8]),
    /// A directory.
    Directory,
    /// A symbolic link to this path.
    Link(&'a [u8]),
    /// A device of which programs read and write characters.
    Character(crate::Device),
    /// A device of which programs read and write blocks.
    Block(crate::Device),
    /// A pipe.
    Fifo,
    /// A socket with a name.
    Socket,
}

/// All files and directories.
#[derive(Debug)]
pub struct Tree {
    pub(crate) nodes: Slab<Node>,
    /// Number of the node that was made last, as programs see it.
    last_inode: u64,
    /// The nodes that have ended since somebody asked, if somebody wants to know.
    ended: Option<Vec<NodeId>>,
    /// The present time, which is recorded for what happens.
    pub now: Time,
}

impl Tree {
    /// The root.
    pub const ROOT: NodeId = NodeId(0);

    /// Returns a tree that consists of an empty root.
    pub fn new(now: Time) -> Tree {
        let mut tree = Tree { nodes: Slab::new(), last_inode: 0, ended: None, now };
        let root = tree.add(Kind::Directory(Directory::new(Tree::ROOT)), 0o755);
        let node = tree.node_mut(root);
        node.links = 2;
        // It has no entry, and stays.
        node.users = 1;
        tree
    }

    /// Returns a node.
    ///
    /// # Panics
    /// Panics if it has ended: whoever has its name is one of its users.
    pub fn node(&self, id: NodeId) -> &Node {
        match self.nodes.get(id.0 as usize) {
            Some(node) => node,
            None => match stand_in(id) {
                Some(node) => node,
                None => panic!("a node ended before its user"),
            },
        }
    }

    /// Returns a node of the tree, to be changed.
    ///
    /// # Panics
    /// As [`node`](Self::node), and if the node is a generated one.
    pub fn node_mut(&mut self, id: NodeId) -> &mut Node {
        match self.nodes.get_mut(id.0 as usize) {
            Some(node) => node,
            None => panic!("a node ended before its user"),
        }
    }

    /// Returns a number that no other node has at the time.
    pub fn number(id: NodeId) -> u64 {
        id.number_of_generated().unwrap_or(id.0) + 1
    }

    /// Makes room for further nodes.
    ///
    /// # Errors
    /// `ENOMEM`
    pub fn prepare<H: Hardware>(&mut self, memory: &mut Memory<H>, count: usize) -> Result<(), Errno> {
        tench_linux_memory::prepare(&mut self.nodes, count, |bytes| memory.check_room(bytes))
    }

    /// Returns a node's number, as a program sees it.
    pub fn inode(&self, id: NodeId) -> u64 {
        match self.nodes.get(id.0 as usize) {
            Some(node) => node.inode,
            None => Tree::number(id),
        }
    }

    /// Adds a node without an entry.
    pub(crate) fn add(&mut self, kind: Kind, permissions: u32) -> NodeId {
        let (accessed, modified, changed) = (self.now, self.now, self.now);
        let attributes = Attributes { permissions, user: 0, group: 0, accessed, modified, changed };
        self.last_inode += 1;
        let node = Node { inode: self.last_inode, kind, attributes, mirror: None, links: 0, users: 0 };
        NodeId(self.nodes.insert(node) as u64)
    }

    /// Makes a pipe without a name, with one user.
    pub fn make_pipe(&mut self) -> NodeId {
        let id = self.add(Kind::Fifo(Pipe::default()), 0o600);
        self.share(id);
        id
    }

    /// Makes a regular file without an entry, with one user. It is the last user of the object.
    pub fn make_regular(&mut self, object: ObjectId, permissions: u32) -> NodeId {
        let id = self.add(Kind::Regular(object), permissions);
        self.share(id);
        id
    }

    /// Makes something without a name that is no file, with one user.
    pub fn make_special(&mut self, number: u32) -> NodeId {
        let id = self.add(Kind::Special(number), 0o600);
        self.share(id);
        id
    }

    /// Returns the pipe that a node is, to be changed.
    pub fn pipe_mut(&mut self, id: NodeId) -> Option<&mut Pipe> {
        match self.nodes.get_mut(id.0 as usize) {
            Some(Node { kind: Kind::Fifo(pipe), .. }) => Some(pipe),
            _ => None,
        }
    }

    /// Adds a user to a node, who keeps it even if it has no entry any more.
    pub fn share(&mut self, id: NodeId) {
        match self.nodes.get_mut(id.0 as usize) {
            Some(node) => node.users += 1,
            // Nobody counts the users of generated nodes.
            None => debug_assert!(id.is_generated(), "a node ended before its user"),
        }
    }

    /// Removes a user from a node.
    pub fn release<H: Hardware>(&mut self, memory: &mut Memory<H>, id: NodeId) {
        match self.nodes.get_mut(id.0 as usize) {
            Some(node) => node.users -= 1,
            None => return debug_assert!(id.is_generated(), "a node ended before its user"),
        }
        self.end_if_unused(memory, id);
    }

    /// Ends a node without entries and users.
    pub(crate) fn end_if_unused<H: Hardware>(&mut self, memory: &mut Memory<H>, id: NodeId) {
        let mut next = Some(id);
        while let Some(id) = next.take() {
            let node = self.node(id);
            if node.links != 0 || node.users != 0 {
                return;
            }
            if let Kind::Regular(object) = node.kind {
                memory.objects.release(&mut memory.pool, object);
            }
            let ended = self.nodes.remove(id.0 as usize);
            if let Some(all) = &mut self.ended {
                all.push(id);
            }
            if let Kind::Directory(Directory { parent, keeps_parent: true, .. }) = ended.kind {
                self.node_mut(parent).users -= 1;
                next = Some(parent);
            }
        }
    }

    /// Ends a directory that has no entry any more, unless somebody uses it.
    pub(crate) fn end_directory<H: Hardware>(&mut self, memory: &mut Memory<H>, id: NodeId) {
        let node = self.node_mut(id);
        // Its own entry `.`.
        node.links -= 1;
        let is_used = node.users > 0;
        if let Some(directory) = node.directory_mut().filter(|_| is_used) {
            directory.keeps_parent = true;
            let parent = directory.parent;
            self.share(parent);
        }
        self.end_if_unused(memory, id);
    }

    /// Says whether it is to be remembered which nodes end.
    pub fn keep_ended(&mut self, keeps: bool) {
        match keeps {
            true if self.ended.is_some() => {}
            true => self.ended = Some(Vec::new()),
            false => self.ended = None,
        }
    }

    /// Takes the nodes that have ended since this was asked last, if they are [remembered](Self::keep_ended). Their
    /// names may be those of other nodes when the next one is made.
    pub fn take_ended(&mut self) -> Vec<NodeId> {
        self.ended.as_mut().map(core::mem::take).unwrap_or_default()
    }

    /// Records that a node's contents have changed.
    pub fn touch(&mut self, id: NodeId) {
        let now = self.now;
        let attributes = &mut self.node_mut(id).attributes;
        (attributes.modified, attributes.changed) = (now, now);
    }

    /// Returns all regular files, with the objects that they consist of.
    pub fn regular_files(&self) -> impl Iterator<Item = (NodeId, ObjectId)> {
        self.nodes.iter().filter_map(|(index, node)| match node.kind {
            Kind::Regular(object) => Some((NodeId(index as u64), object)),
            _ => None,
        })
    }

    /// Returns all nodes.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().map(|(_, node)| node)
    }

    /// Checks that each node has as many entries as it says, and that directories are a tree.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn check(&self) -> Result<(), &'static str> {
        let mut links = BTreeMap::<u64, u32>::new();
        for (index, node) in &self.nodes {
            let Some(directory) = node.directory() else { continue };
            let own = NodeId(index as u64);
            if node.links == 0 {
                if !directory.is_empty() {
                    return Err("a removed directory has entries");
                }
                continue;
            }
            *links.entry(own.0).or_default() += 1;
            for child in directory.nodes().filter(|child| !child.is_generated()) {
                *links.entry(child.0).or_default() += 1;
                if let Some(below) = self.node(child).directory() {
                    *links.entry(own.0).or_default() += 1;
                    if below.parent != own {
                        return Err("a directory names another parent");
                    }
                }
            }
        }
        // The root counts as if it had an entry.
        *links.entry(Tree::ROOT.0).or_default() += 1;
        for (index, node) in &self.nodes {
            if node.links != links.remove(&(index as u64)).unwrap_or(0) {
                return Err("a node has another number of entries than it says");
            }
            if node.links == 0 && node.users == 0 {
                return Err("a node without users has not ended");
            }
        }
        if links.is_empty() { Ok(()) } else { Err("an entry leads to a node that has ended") }
    }
}
