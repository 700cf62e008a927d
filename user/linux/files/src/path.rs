//! Paths.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::ops::Range;

use crate::access::Credentials;
use crate::generated::{Class, Generated, Nothing, Target};
use crate::node::{Kind, Node};
use crate::{Errno, NodeId, Tree};

/// The longest name in bytes.
pub const MAX_NAME: usize = 255;
/// The longest path in bytes.
pub const MAX_PATH: usize = 4095;
/// Number of symbolic links that a path may lead through.
const MAX_LINKS: u32 = 40;

/// Ways to treat a symbolic link with the last name of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Last {
    /// The path goes on through the link.
    Follow,
    /// The path ends at the link, unless a slash follows.
    Keep,
    /// The path ends at the entry with the name, whatever that is and whether or not a slash follows.
    Name,
    /// The path goes on through the link, unless a slash follows.
    FollowWithoutSlash,
}

impl Last {
    /// Returns whether the path goes on through a link.
    const fn follows(self, slash: bool) -> bool {
        match self {
            Last::Follow => true,
            Last::Keep => slash,
            Last::Name => false,
            Last::FollowWithoutSlash => !slash,
        }
    }
}

/// Where a path leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The directory of the last name.
    pub parent: NodeId,
    /// The last name, which may be too long for an entry; `.`, `..` or empty (the root, or the end of a generated link)
    /// if the path ends so.
    pub name: Box<[u8]>,
    /// The node, if there is one.
    pub node: Option<NodeId>,
    /// A slash follows the last name, so that it can only be that of a directory.
    pub slash: bool,
}

impl Found {
    /// Returns the node, if there is one.
    ///
    /// # Errors
    /// `ENAMETOOLONG` if there cannot be one.
    pub fn entry(&self) -> Result<Option<NodeId>, Errno> {
        if self.name.len() > MAX_NAME { Err(Errno::ENAMETOOLONG) } else { Ok(self.node) }
    }

    /// Returns the node.
    ///
    /// # Errors
    /// `ENOENT` if there is none, `ENAMETOOLONG` if there cannot be one.
    pub fn existing(&self) -> Result<NodeId, Errno> {
        self.entry()?.ok_or(Errno::ENOENT)
    }

    /// Returns whether the last name is one that an entry can have, and not `.`, `..` or the root.
    pub fn is_named(&self) -> bool {
        !matches!(&*self.name, b"" | b"." | b"..")
    }
}

/// The names of a path that are still to be walked.
struct Rest<'a> {
    /// The path, or that of the last link that it leads through, and how much of it was walked.
    path: Cow<'a, [u8]>,
    walked: usize,
    /// The paths that go on behind it, in reverse order.
    behind: Vec<(Cow<'a, [u8]>, usize)>,
    /// A slash follows the last name.
    slash: bool,
}

impl<'a> Rest<'a> {
    fn of(path: &'a [u8]) -> Rest<'a> {
        Rest { slash: path.ends_with(b"/"), path: Cow::Borrowed(path), walked: 0, behind: Vec::new() }
    }

    /// Takes the next name: where it is in the path.
    fn next(&mut self) -> Option<Range<usize>> {
        loop {
            let left = &self.path[self.walked..];
            if let Some(skipped) = left.iter().position(|byte| *byte != b'/') {
                let start = self.walked + skipped;
                let length = left[skipped..].iter().position(|byte| *byte == b'/');
                self.walked = length.map_or(self.path.len(), |length| start + length);
                return Some(start..self.walked);
            }
            (self.path, self.walked) = self.behind.pop()?;
        }
    }

    /// Returns whether there is no further name.
    fn is_over(&self) -> bool {
        let has_name = |(path, walked): (&[u8], usize)| path[walked..].iter().any(|byte| *byte != b'/');
        let behind = self.behind.iter().map(|(path, walked)| (&**path, *walked));
        !core::iter::once((&*self.path, self.walked)).chain(behind).any(has_name)
    }

    /// Walks the path of a link before what is left.
    fn enter(&mut self, path: Cow<'a, [u8]>) {
        if self.is_over() {
            self.slash |= path.ends_with(b"/");
        }
        self.behind.push((core::mem::replace(&mut self.path, path), self.walked));
        self.walked = 0;
    }
}

/// Where a link leads.
enum Followed<'a> {
    Path(Cow<'a, [u8]>),
    Node(NodeId),
}

/// As [`Found`], with the last name as a part of a path.
struct Lead<'a> {
    parent: NodeId,
    name: Cow<'a, [u8]>,
    node: Option<NodeId>,
    slash: bool,
}

impl Lead<'_> {
    /// See [`Found::entry`].
    fn entry(&self) -> Result<Option<NodeId>, Errno> {
        if self.name.len() > MAX_NAME { Err(Errno::ENAMETOOLONG) } else { Ok(self.node) }
    }
}

impl Tree {
    /// Returns where a path leads from a directory, or from `root` if it begins with a slash. Generated directories are
    /// empty.
    ///
    /// # Errors
    /// Those of [`walk_with`](Self::walk_with).
    pub fn walk(&self, root: NodeId, from: NodeId, path: &[u8], last: Last) -> Result<Found, Errno> {
        self.walk_with(&Nothing, (root, from), path, last)
    }

    /// Returns where a path leads from a directory, or from `root` if it begins with a slash.
    ///
    /// # Errors
    /// - `ENOENT`: the path is empty, or a directory on its way does not exist.
    /// - `ENOTDIR`: something on its way is no directory.
    /// - `ELOOP`: it leads through too many symbolic links.
    /// - `ENAMETOOLONG`: the path is too long, or a name that is not its last.
    /// - `EACCES`: a directory may not be searched, or a link may not be followed.
    /// - Those of [`Generated`].
    pub fn walk_with(
        &self,
        generated: &dyn Generated,
        (root, from): (NodeId, NodeId),
        path: &[u8],
        last: Last,
    ) -> Result<Found, Errno> {
        let Lead { parent, name, node, slash } = self.lead(generated, (root, from), path, last)?;
        Ok(Found { parent, name: (&*name).into(), node, slash })
    }

    /// As [`walk_with`](Self::walk_with), without a copy of the name.
    fn lead<'a>(
        &'a self,
        generated: &dyn Generated,
        (root, from): (NodeId, NodeId),
        path: &'a [u8],
        last: Last,
    ) -> Result<Lead<'a>, Errno> {
        if path.is_empty() {
            return Err(Errno::ENOENT);
        }
        if path.len() > MAX_PATH {
            return Err(Errno::ENAMETOOLONG);
        }
        let searcher = generated.searcher();
        let mut here = if path[0] == b'/' { root } else { from };
        let mut rest = Rest::of(path);
        let mut links = 0;
        while let Some(place) = rest.next() {
            let is_last = rest.is_over();
            let node = self.step((generated, searcher.as_ref()), (root, here), &rest.path[place.clone()], is_last)?;
            if let Some(node) = node
                && (!is_last || last.follows(rest.slash))
                && let Some(target) = self.target(generated, (here, node), is_last)?
            {
                links += 1;
                if links > MAX_LINKS {
                    return Err(Errno::ELOOP);
                }
                match target {
                    Followed::Path(target) => {
                        if target.starts_with(b"/") {
                            here = root;
                        }
                        rest.enter(target);
                    }
                    Followed::Node(node) if is_last => {
                        let name = Cow::Borrowed(&[][..]);
                        return Ok(Lead { parent: here, name, node: Some(node), slash: rest.slash });
                    }
                    Followed::Node(node) => here = node,
                }
                continue;
            }
            if is_last {
                let name = match rest.path {
                    Cow::Borrowed(path) => Cow::Borrowed(&path[place]),
                    Cow::Owned(path) => Cow::Owned(path[place].to_vec()),
                };
                return Ok(Lead { parent: here, name, node, slash: rest.slash });
            }
            here = node.ok_or(Errno::ENOENT)?;
        }
        Ok(Lead { parent: here, name: Cow::Borrowed(&[]), node: Some(here), slash: true })
    }

    /// Returns the node with a name in a directory.
    fn step(
        &self,
        (generated, searcher): (&dyn Generated, Option<&Credentials<'_>>),
        (root, here): (NodeId, NodeId),
        name: &[u8],
        is_last: bool,
    ) -> Result<Option<NodeId>, Errno> {
        let node = self.node(here);
        let directory = match &node.kind {
            Kind::Directory(directory) => Some(directory),
            Kind::Generated(Class::Directory) => None,
            _ => return Err(Errno::ENOTDIR),
        };
        if let Some(searcher) = searcher {
            self.check_search(generated, here, searcher)?;
        }
        // The last name is looked up by the caller, who may find something else to be wrong first.
        if name.len() > MAX_NAME && !is_last {
            return Err(Errno::ENAMETOOLONG);
        }
        Ok(match (name, directory) {
            (b".", _) => Some(here),
            (b"..", _) if here == root => Some(root),
            (b"..", Some(directory)) => Some(directory.parent),
            (b"..", None) => Some(generated.parent(here)),
            (_, Some(directory)) => {
                if node.mirror.is_some() && name.len() <= MAX_NAME {
                    generated.compare(here, name)?;
                }
                directory.get(name)
            }
            (_, None) => generated.get(here, name)?,
        })
    }

    /// Returns where a node in a directory leads, if it is a link.
    fn target(
        &self,
        generated: &dyn Generated,
        (directory, node): (NodeId, NodeId),
        is_last: bool,
    ) -> Result<Option<Followed<'_>>, Errno> {
        let link = self.node(node);
        Ok(match &link.kind {
            Kind::Link(path) => {
                if is_last {
                    self.check_follow(generated, directory, link)?;
                }
                Some(Followed::Path(Cow::Borrowed(path)))
            }
            Kind::Generated(Class::Link) => Some(match generated.target(node)? {
                Target::Path(path) => Followed::Path(Cow::Owned(path)),
                Target::Node(node) => Followed::Node(node),
            }),
            _ => None,
        })
    }

    /// Returns the node to which a path leads. Generated directories are empty.
    ///
    /// # Errors
    /// Those of [`find_with`](Self::find_with).
    pub fn find(&self, places: (NodeId, NodeId), path: &[u8], last: Last) -> Result<NodeId, Errno> {
        self.find_with(&Nothing, places, path, last)
    }

    /// Returns the node to which a path leads.
    ///
    /// # Errors
    /// - `ENOENT`: there is none.
    /// - `ENOTDIR`: it is no directory, but a slash follows.
    /// - Those of [`walk`](Self::walk).
    pub fn find_with(
        &self,
        generated: &dyn Generated,
        places: (NodeId, NodeId),
        path: &[u8],
        last: Last,
    ) -> Result<NodeId, Errno> {
        let lead = self.lead(generated, places, path, last)?;
        self.existing_entry(lead.entry()?, lead.slash)
    }

    /// Returns the node that was found.
    ///
    /// # Errors
    /// - `ENOENT`: there is none.
    /// - `ENOTDIR`: it is no directory, but a slash follows.
    pub fn existing(&self, found: &Found) -> Result<NodeId, Errno> {
        self.existing_entry(found.entry()?, found.slash)
    }

    fn existing_entry(&self, node: Option<NodeId>, slash: bool) -> Result<NodeId, Errno> {
        let node = node.ok_or(Errno::ENOENT)?;
        if slash && !self.node(node).is_directory() { Err(Errno::ENOTDIR) } else { Ok(node) }
    }

    /// Returns the path that a name in a directory of the tree has, or had. The directory need not exist any more; for
    /// one that does not, returns nothing.
    pub fn path_of_entry(&self, root: NodeId, parent: NodeId, name: &[u8]) -> Option<Vec<u8>> {
        self.nodes.get(parent.0 as usize)?;
        let mut path = self.path_of(root, parent)?;
        if path.last() != Some(&b'/') {
            path.push(b'/');
        }
        path.extend_from_slice(name);
        Some(path)
    }

    /// Returns one of the paths of each of these nodes that has one.
    pub fn paths_of(&self, wanted: &BTreeSet<NodeId>) -> BTreeMap<NodeId, Vec<u8>> {
        let mut paths = BTreeMap::new();
        for (index, node) in &self.nodes {
            let Some(directory) = node.directory() else { continue };
            if paths.len() == wanted.len() {
                break;
            }
            let found: Vec<_> = directory.named().filter(|(_, node)| wanted.contains(node)).collect();
            for (name, node) in found {
                if let Some(path) = self.path_of_entry(Tree::ROOT, NodeId(index as u64), name) {
                    paths.insert(node, path);
                }
            }
        }
        paths
    }

    /// Returns whether an entry leads to a node. The directory need not exist any more.
    pub fn leads_to(&self, parent: NodeId, name: &[u8], node: NodeId) -> bool {
        let parent = self.nodes.get(parent.0 as usize);
        parent.and_then(Node::directory).is_some_and(|directory| directory.get(name) == Some(node))
    }

    /// Returns the path of a directory of the tree, or `None` if it was removed or lies outside of `root`. One longer
    /// than [a path may be](MAX_PATH) lacks its beginning: directories can lie in each other without end.
    pub fn path_of(&self, root: NodeId, directory: NodeId) -> Option<Vec<u8>> {
        let mut names = Vec::new();
        let (mut here, mut length) = (directory, 0);
        while here != root && length <= MAX_PATH {
            let parent = self.node(here).directory()?.parent;
            let name = self.node(parent).directory()?.name_of(here)?;
            length += 1 + name.len();
            names.push(name);
            here = parent;
        }
        let mut path = Vec::new();
        for name in names.iter().rev() {
            path.push(b'/');
            path.extend_from_slice(name);
        }
        if path.is_empty() {
            path.push(b'/');
        }
        Some(path)
    }
}
