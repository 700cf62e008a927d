//! Names of files: what a generated link shows, and the paths of what processes have mapped.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::vec::Vec;

use tench_linux_files::{Class, Errno, Found, Generated, Kind, NodeId, Target, Tree};
use tench_linux_memory::ObjectId;

use super::{What, view};
use crate::caller::{Caller, Result};
use crate::descriptors::Place;
use crate::{Machine, System};

/// Stands behind the path of a file that has none any more.
pub(crate) const DELETED: &[u8] = b" (deleted)";

impl<M: Machine> System<M> {
    /// Returns the path of a file that was found, without links on its way. What a generated link leads to has one of
    /// its paths; without any, it has the given one.
    pub(crate) fn path_to(&self, found: &Found, node: NodeId, given: &[u8]) -> Vec<u8> {
        let entry = found.is_named().then(|| self.tree.path_of_entry(Tree::ROOT, found.parent, &found.name)).flatten();
        entry.or_else(|| self.some_path(node)).unwrap_or_else(|| given.to_vec())
    }

    /// Returns a path of a file of the tree, or what stands for that if it was made without one.
    fn some_path(&self, node: NodeId) -> Option<Vec<u8>> {
        let nameless = match self.tree.node(node).kind {
            Kind::Regular(object) => self.path_of_nameless(object),
            _ => None,
        };
        nameless.or_else(|| self.tree.paths_of(&BTreeSet::from([node])).remove(&node))
    }

    /// Returns what stands for the path of contents that were made without one.
    pub(crate) fn path_of_nameless(&self, object: ObjectId) -> Option<Vec<u8>> {
        Some([b"/", self.memory.objects.get(object).name()?, DELETED].concat())
    }

    /// Returns the name of a node that somebody has opened at a place: a path, or what stands for it.
    pub(crate) fn name_of(&self, node: NodeId, place: Option<&Place>) -> Vec<u8> {
        let number = self.tree.inode(node);
        let entry = self.tree.node(node);
        match &entry.kind {
            Kind::Generated(_) => view::path(node),
            Kind::Directory(_) => self.tree.path_of(Tree::ROOT, node).unwrap_or_else(|| b"/ (deleted)".to_vec()),
            Kind::Fifo(_) if entry.links() == 0 && place.is_none() => format!("pipe:[{number}]").into_bytes(),
            Kind::Special(special) if self.specials.is_socket(*special) => format!("socket:[{number}]").into_bytes(),
            Kind::Special(special) if self.specials.shown_name(*special).is_some() => {
                self.specials.shown_name(*special).unwrap_or_default().into()
            }
            Kind::Socket if entry.links() == 0 && place.is_none() => format!("socket:[{number}]").into_bytes(),
            _ => {
                let is_there = |place: &&Place| self.tree.leads_to(place.directory, &place.name, node);
                let path_of = |place: &Place| self.tree.path_of_entry(Tree::ROOT, place.directory, &place.name);
                let path = place.filter(is_there).and_then(path_of).or_else(|| self.some_path(node));
                let last = || [place.and_then(path_of).unwrap_or_else(|| b"/".to_vec()), DELETED.to_vec()].concat();
                path.unwrap_or_else(last)
            }
        }
    }
}

impl<M: Machine> Caller<'_, M> {
    /// Returns what a link shows.
    ///
    /// # Errors
    /// `EINVAL` if the node is none, `ENOENT` if what the link leads to does not exist any more.
    pub(crate) fn link_text(&self, node: NodeId) -> Result<Vec<u8>> {
        match &self.system.tree.node(node).kind {
            Kind::Generated(Class::Link) => {}
            Kind::Generated(_) => return Err(Errno::EINVAL),
            _ => return self.system.tree.link_target(node).map(<[u8]>::to_vec),
        }
        let view = self.view();
        Ok(match view.target(node)? {
            Target::Path(path) => path,
            Target::Node(target) => {
                let open_file = match What::of(node) {
                    Some(What::Descriptor(owner, number)) => view.description(owner, number),
                    _ => None,
                };
                self.system.name_of(target, open_file.and_then(|file| file.place.as_ref()))
            }
        })
    }
}
