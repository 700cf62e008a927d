//! Files that the host tool packed, and programs among all files.

use alloc::vec::Vec;

use tench_linux_files::{Device, Errno, Kind as NodeKind, Last, NewNode, NodeId, Time, Tree};
use tench_linux_packed::{Attributes, Entry, Kind, Packed};

use crate::identity::Identity;
use crate::{Machine, System};

/// Directories in which programs are searched that are named without one.
pub const SEARCHED: &[u8] = b"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Why packed files cannot be added: the path of the first that cannot, and the error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAdded {
    /// Path of the file.
    pub path: Vec<u8>,
    /// Reason why it cannot be added.
    pub error: Errno,
}

/// The directory of an entry.
struct Place {
    directory: &'static [u8],
    node: NodeId,
}

impl<M: Machine> System<M> {
    /// Adds packed files to those that the system has already. A directory is joined with the one that is there, an
    /// empty one gives way to something else, and the system's devices, links and generated directories stay.
    ///
    /// # Errors
    /// Names the first file that cannot be added.
    pub fn add_packed(&mut self, packed: &Packed<'static>) -> core::result::Result<(), NotAdded> {
        let named = |entry: &Entry<'_>, error| NotAdded { path: entry.path.to_vec(), error };
        let mut last = Place { directory: b"", node: Tree::ROOT };
        for entry in packed.entries() {
            self.add_entry(&entry, &mut last).map_err(|error| named(&entry, error))?;
        }
        // Each entry has changed its directory.
        for entry in packed.entries().filter(|entry| entry.kind == Kind::Directory) {
            let node = self.tree.find((Tree::ROOT, Tree::ROOT), entry.path, Last::Keep);
            set_attributes(&mut self.tree, node.map_err(|error| named(&entry, error))?, &entry.attributes);
        }
        Ok(())
    }

    /// Adds an entry. `last` is where the one before was added: most are in the same directory.
    fn add_entry(&mut self, entry: &Entry<'static>, last: &mut Place) -> Result<(), Errno> {
        let System { tree, memory, .. } = self;
        let slash = entry.path.iter().rposition(|byte| *byte == b'/');
        let (directory, name) = slash.map_or((&[][..], entry.path), |at| (&entry.path[..at], &entry.path[at + 1..]));
        if directory != last.directory {
            let node = tree.find((Tree::ROOT, Tree::ROOT), directory, Last::Keep);
            *last = Place { directory, node: if directory.is_empty() { Tree::ROOT } else { node? } };
        }
        let mut place = tree.walk(Tree::ROOT, last.node, name, Last::Name)?;
        if let Some(node) = place.entry()? {
            match (&tree.node(node).kind, entry.kind) {
                (NodeKind::Directory(_), Kind::Directory) => return Ok(()),
                (NodeKind::Character(_) | NodeKind::Link(_) | NodeKind::Generated(_), _) => return Ok(()),
                _ => tree.remove_directory(memory, &place)?,
            }
            place.node = None;
        }
        let new = match entry.kind {
            Kind::Directory => NewNode::Directory,
            Kind::Regular(contents) => NewNode::Regular(contents),
            Kind::Link(target) => NewNode::Link(target),
            Kind::Same(path) => {
                let node = tree.find((Tree::ROOT, Tree::ROOT), path, Last::Keep)?;
                return tree.link(node, &place);
            }
            Kind::Character(device) => NewNode::Character(Device(device)),
            Kind::Block(device) => NewNode::Block(Device(device)),
            Kind::Fifo => NewNode::Fifo,
        };
        let node = tree.make(memory, &place, new, entry.attributes.permissions)?;
        set_attributes(tree, node, &entry.attributes);
        Ok(())
    }

    /// Returns the path of a program that is named as in a shell: its path from the root or, if it has no slash in it,
    /// a name in one of the [directories](SEARCHED) for programs. Returns nothing if there is no such program.
    pub fn find_program(&self, name: &[u8]) -> Option<Vec<u8>> {
        let is_program = |path: &Vec<u8>| {
            let node = self.tree.find((Tree::ROOT, Tree::ROOT), path, Last::Follow);
            node.is_ok_and(|node| self.program(node, &Identity::SUPER_USER).is_ok())
        };
        if name.contains(&b'/') {
            return Some(from_root(name)).filter(is_program);
        }
        let searched = SEARCHED.split(|byte| *byte == b':');
        searched.map(|directory| [directory, b"/", name].concat()).find(is_program)
    }
}

/// Returns a path with a slash at its beginning.
pub fn from_root(path: &[u8]) -> Vec<u8> {
    if path.starts_with(b"/") { path.to_vec() } else { [b"/", path].concat() }
}

fn set_attributes(tree: &mut Tree, node: NodeId, attributes: &Attributes) {
    let time = Time { seconds: attributes.modified, nanoseconds: 0 };
    if node.is_generated() {
        return;
    }
    let recorded = &mut tree.node_mut(node).attributes;
    recorded.permissions = attributes.permissions;
    (recorded.user, recorded.group) = (attributes.user, attributes.group);
    (recorded.accessed, recorded.modified, recorded.changed) = (time, time, time);
}
