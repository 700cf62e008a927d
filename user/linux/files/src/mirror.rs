//! Mirrors: directories and files of the tree that show those of a file server outside of it, their *originals*.
//!
//! Other programs change the originals without notice. So a path leads through a mirrored directory only if its entry
//! was [compared](crate::Generated::compare) with the original first, and the contents of a file here are those of the
//! original only as long as the original has the same [version](Mirror::version). The tree has mirrors only of
//! originals that somebody has looked at.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;

use tench_linux_memory::{Hardware, Memory, ObjectId};

use crate::directory::Directory;
use crate::node::{Kind, NodeId, Time};
use crate::tree::Tree;

/// A version of the contents of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// Number of changes of the file.
    pub changes: u64,
    /// Time of the last change, in units of the file server. It tells the file from another one that has got the same
    /// number, as after a restart of the server.
    pub modified: u64,
}

/// A mirror: the state of its original as far as it is known, and what the mirror has of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirror {
    /// Number of the original at the file server.
    pub original: u64,
    /// The version of the original whose contents the file has here; nothing if its contents are not those of the
    /// original.
    pub version: Option<Version>,
    /// Number of the mount in which the mirror lies.
    pub mount: u32,
    /// The directory that has the mirror's entry, and the name there. A mount point has itself here, and an empty name.
    pub place: (NodeId, Box<[u8]>),
    /// Number of changes of the contents here that are not written to the original yet.
    pub unwritten: u32,
    /// Set if the original is not at its place any more: it was removed, or other programs have renamed it. Then the
    /// directory of the place may not exist any more, either.
    pub is_lost: bool,
}

/// Status of an original, as the file server has just reported it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Number of the original at the file server.
    pub original: u64,
    /// Set if the original is a directory, and not a regular file.
    pub is_directory: bool,
    /// Permissions of the mirror.
    pub permissions: u32,
    /// Size of a file in bytes.
    pub size: u64,
    /// The version of a file's contents.
    pub version: Version,
    /// Time of the last change.
    pub modified: Time,
}

impl Tree {
    /// Makes an empty directory the mount point of the mount with this number: a mirror of the directory `original`.
    pub fn mount(&mut self, node: NodeId, original: u64, mount: u32) {
        let place = (node, Box::from(&b""[..]));
        let mirror = Mirror { original, version: None, mount, place, unwritten: 0, is_lost: false };
        self.node_mut(node).mirror = Some(Box::new(mirror));
    }

    /// Returns the mirror that a node is, if it is one.
    pub fn mirror_of(&self, node: NodeId) -> Option<&Mirror> {
        if node.is_generated() { None } else { self.node(node).mirror.as_deref() }
    }

    /// Updates an entry of a mirrored directory to its original's status; removes the entry if the original does not
    /// exist.
    pub fn compare_entry<H: Hardware>(
        &mut self,
        memory: &mut Memory<H>,
        directory: NodeId,
        name: &[u8],
        seen: Option<&Seen>,
    ) {
        let Some(present) = self.node(directory).directory().map(|directory| directory.get(name)) else { return };
        let is_same = |node: NodeId| {
            let is_directory = self.node(node).is_directory();
            let original = self.mirror_of(node).map(|mirror| mirror.original);
            seen.is_some_and(|seen| original == Some(seen.original) && is_directory == seen.is_directory)
        };
        match (present, seen) {
            (Some(node), Some(seen)) if is_same(node) => self.note_seen(memory, node, seen),
            (present, seen) => {
                if present.is_some() {
                    self.lose_entry(memory, directory, name);
                }
                // A directory that has been removed meanwhile gets no entries.
                if let Some(seen) = seen.filter(|_| self.node(directory).links > 0) {
                    self.make_mirror(memory, directory, name, seen);
                }
            }
        }
    }

    /// Updates all entries of a mirrored directory to those of its original.
    pub fn compare_entries<H: Hardware>(
        &mut self,
        memory: &mut Memory<H>,
        directory: NodeId,
        seen: &BTreeMap<Box<[u8]>, Seen>,
    ) {
        let Some(present) = self.node(directory).directory() else { return };
        let gone: BTreeSet<Box<[u8]>> =
            present.named().map(|(name, _)| name.into()).filter(|name| !seen.contains_key(name)).collect();
        for name in gone {
            self.lose_entry(memory, directory, &name);
        }
        for (name, seen) in seen {
            self.compare_entry(memory, directory, name, Some(seen));
        }
    }

    fn make_mirror<H: Hardware>(&mut self, memory: &mut Memory<H>, directory: NodeId, name: &[u8], seen: &Seen) {
        let kind = if seen.is_directory {
            Kind::Directory(Directory::new(directory))
        } else {
            Kind::Regular(memory.objects.make(seen.size, &[]))
        };
        let node = self.add(kind, seen.permissions);
        self.enter(directory, name, node);
        if seen.is_directory {
            // The directory's own entry `.`.
            self.node_mut(node).links += 1;
        }
        self.become_mirror(memory, node, (directory, name), seen);
    }

    /// Makes a node with an entry in a mirrored directory the mirror of an original.
    pub fn become_mirror<H: Hardware>(
        &mut self,
        memory: &mut Memory<H>,
        node: NodeId,
        (directory, name): (NodeId, &[u8]),
        seen: &Seen,
    ) {
        // An empty file has no contents that would have to be read.
        let version = (seen.size == 0).then_some(seen.version);
        let (original, place) = (seen.original, (directory, name.into()));
        let Some(mount) = self.mirror_of(directory).map(|mirror| mirror.mount) else { return };
        let mirror = Mirror { original, version, mount, place, unwritten: 0, is_lost: false };
        self.node_mut(node).mirror = Some(Box::new(mirror));
        self.note_seen(memory, node, seen);
    }

    /// Updates a mirror to the present status of its original. If the contents here are not those of the original any
    /// more, the file gets a new object of the right length, whose bytes are read when they are needed; mappings keep
    /// the old object. But contents with changes that are not written to the original yet stay.
    pub fn note_seen<H: Hardware>(&mut self, memory: &mut Memory<H>, id: NodeId, seen: &Seen) {
        let node = self.node_mut(id);
        let attributes = &mut node.attributes;
        attributes.permissions = seen.permissions;
        (attributes.accessed, attributes.modified, attributes.changed) = (seen.modified, seen.modified, seen.modified);
        let (Kind::Regular(object), Some(mirror)) = (&node.kind, &mut node.mirror) else { return };
        if mirror.version == Some(seen.version) || mirror.unwritten > 0 {
            return;
        }
        if mirror.version.is_some() || memory.objects.get(*object).length() != seen.size {
            mirror.version = (seen.size == 0).then_some(seen.version);
            let new = memory.objects.make(seen.size, &[]);
            self.set_contents(memory, id, new);
        }
    }

    /// Makes an object the contents of a regular file, which takes over the caller's use of the object.
    pub fn set_contents<H: Hardware>(&mut self, memory: &mut Memory<H>, id: NodeId, new: ObjectId) {
        if let Kind::Regular(object) = &mut self.node_mut(id).kind {
            let old = core::mem::replace(object, new);
            memory.objects.release(&mut memory.pool, old);
        }
    }

    /// Removes an entry whose original is gone, with all entries below it. Nodes that are in use stay without a name.
    pub fn lose_entry<H: Hardware>(&mut self, memory: &mut Memory<H>, directory: NodeId, name: &[u8]) {
        let mut way: Vec<(NodeId, Box<[u8]>)> = vec![(directory, name.into())];
        while let Some((directory, name)) = way.last() {
            let Some(node) = self.node(*directory).directory().and_then(|directory| directory.get(name)) else {
                way.pop();
                continue;
            };
            let below = self.node(node).directory().and_then(|below| below.named().next());
            if let Some((name, _)) = below {
                let name = name.into();
                way.push((node, name));
                continue;
            }
            let _ = self.leave(*directory, name);
            let lost = self.node_mut(node);
            if let Some(mirror) = &mut lost.mirror {
                mirror.is_lost = true;
            }
            if lost.is_directory() {
                self.end_directory(memory, node);
            } else {
                self.end_if_unused(memory, node);
            }
            way.pop();
        }
    }

    /// Frees the contents of all mirrors that nothing else uses, such as a mapping; they are read again when they are
    /// needed. Contents of lost originals stay, as they could not be read again. Returns whether there were any to
    /// free.
    pub fn forget_contents<H: Hardware>(&mut self, memory: &mut Memory<H>) -> bool {
        let mut forgotten = Vec::new();
        for (index, node) in &mut self.nodes {
            let (Kind::Regular(object), Some(mirror)) = (&node.kind, &mut node.mirror) else { continue };
            let object = memory.objects.get(*object);
            if !mirror.is_lost && object.users() == 1 && object.pages().next().is_some() {
                mirror.version = None;
                forgotten.push((NodeId(index as u64), object.length()));
            }
        }
        for (node, length) in &forgotten {
            let new = memory.objects.make(*length, &[]);
            self.set_contents(memory, *node, new);
        }
        !forgotten.is_empty()
    }
}
