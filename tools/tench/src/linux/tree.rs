//! The tree into which files are put, one after the other, as a system that unpacks them would do.

use std::collections::BTreeMap;

use tench_linux_packed::{Attributes, Entry, Kind, is_valid_path};

/// Number of symbolic links that a path may lead through.
const MAX_LINKS: u32 = 40;

/// A type of file, with what a file of that type has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Directory,
    Regular(Vec<u8>),
    Link(Vec<u8>),
    Character(u32),
    Block(u32),
    Fifo,
}

#[derive(Debug)]
struct Node {
    attributes: Attributes,
    content: Content,
}

/// A tree of files.
#[derive(Debug, Default)]
pub struct Tree {
    nodes: Vec<Node>,
    /// Nodes by the paths that lead to them from the root through no symbolic link.
    paths: BTreeMap<Vec<u8>, usize>,
}

/// A reason why a file cannot be put into a tree.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Problem {
    #[error("the path {0} has `..` in it, and could lead outside")]
    Outside(String),
    #[error("the path {0} is too long: names have at most 255 bytes, paths 4095")]
    TooLong(String),
    #[error("{0} is no directory, so nothing can lie in it")]
    NotADirectory(String),
    #[error("{0} is a directory already, and something else here; if that is from another tree, name this one first")]
    IsDirectory(String),
    #[error("the path {0} leads through too many symbolic links")]
    TooManyLinks(String),
    #[error("{of} does not exist, so {path} cannot be another name for it")]
    NoSuchFile { path: String, of: String },
    #[error("the symbolic link {0} leads nowhere: its path is empty or has more than 4095 bytes")]
    BadLink(String),
}

fn text(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

/// Returns the names of a path from the root.
fn names(path: &[u8]) -> Result<Vec<&[u8]>, Problem> {
    let names: Vec<&[u8]> = path.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b".")).collect();
    if names.contains(&&b".."[..]) {
        return Err(Problem::Outside(text(path)));
    }
    Ok(names)
}

/// Returns the path of a name in a directory.
fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() { name.to_vec() } else { [directory, b"/", name].concat() }
}

impl Tree {
    /// Puts a file at a path from the root. Directories on the way are made if they do not exist, and symbolic links
    /// are followed. A file replaces another; a directory is joined with the one that is there.
    pub fn add(&mut self, path: &[u8], attributes: Attributes, content: Content) -> Result<(), Problem> {
        let names = names(path)?;
        // Nothing is recorded of the root.
        let Some((name, above)) = names.split_last() else { return Ok(()) };
        let place = join(&self.directory(above, path)?, name);
        if let Content::Link(target) = &content
            && (target.is_empty() || target.len() > tench_linux_packed::MAX_PATH)
        {
            return Err(Problem::BadLink(text(path)));
        }
        let existing = self.paths.get(&place).copied();
        match (existing.map(|node| &self.nodes[node].content), &content) {
            (Some(Content::Directory), Content::Directory) => {
                existing.into_iter().for_each(|node| self.nodes[node].attributes = attributes);
                Ok(())
            }
            // A package may say `/bin` where that leads to `/usr/bin`.
            (Some(Content::Link(_)), Content::Directory) => self.directory(&names, path).map(drop),
            (Some(Content::Directory), _) => Err(Problem::IsDirectory(text(&place))),
            _ => self.insert(place, Node { attributes, content }),
        }
    }

    /// Keeps the files and directories at some paths from the root, with all that lies below, and the directories above
    /// them. Returns the first path at which nothing is.
    pub fn keep<'a>(&mut self, wanted: &'a [String]) -> Option<&'a str> {
        let is_below = |path: &[u8], above: &[u8]| {
            path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        };
        let missing = wanted.iter().find(|path| !self.paths.contains_key(path.trim_matches('/').as_bytes()));
        let wanted: Vec<&[u8]> = wanted.iter().map(|path| path.trim_matches('/').as_bytes()).collect();
        self.paths.retain(|path, _| wanted.iter().any(|one| is_below(path, one) || is_below(one, path)));
        missing.map(String::as_str)
    }

    /// Gives a file another name.
    pub fn link(&mut self, path: &[u8], of: &[u8]) -> Result<(), Problem> {
        let missing = || Problem::NoSuchFile { path: text(path), of: text(of) };
        let source = self.place(of)?.ok_or_else(missing)?;
        let node = self.paths.get(&source).copied().ok_or_else(missing)?;
        if self.nodes[node].content == Content::Directory {
            return Err(Problem::IsDirectory(text(of)));
        }
        let place = self.place(path)?.ok_or_else(missing)?;
        let existing = self.paths.get(&place).map(|node| &self.nodes[*node].content);
        if existing == Some(&Content::Directory) {
            return Err(Problem::IsDirectory(text(path)));
        }
        self.check_length(&place)?;
        self.paths.insert(place, node);
        Ok(())
    }

    /// Returns where a path leads whose last name is not followed, or nothing for the root.
    fn place(&mut self, path: &[u8]) -> Result<Option<Vec<u8>>, Problem> {
        let names = names(path)?;
        let Some((name, above)) = names.split_last() else { return Ok(None) };
        Ok(Some(join(&self.directory(above, path)?, name)))
    }

    fn check_length(&self, place: &[u8]) -> Result<(), Problem> {
        if is_valid_path(place) { Ok(()) } else { Err(Problem::TooLong(text(place))) }
    }

    fn insert(&mut self, place: Vec<u8>, node: Node) -> Result<(), Problem> {
        self.check_length(&place)?;
        self.nodes.push(node);
        self.paths.insert(place, self.nodes.len() - 1);
        Ok(())
    }

    /// Returns the path of a directory without symbolic links, and makes what does not exist of it. `path` is for the
    /// error.
    fn directory(&mut self, names: &[&[u8]], path: &[u8]) -> Result<Vec<u8>, Problem> {
        let mut rest: Vec<Vec<u8>> = names.iter().rev().map(|name| name.to_vec()).collect();
        let (mut here, mut links) = (Vec::new(), 0);
        while let Some(name) = rest.pop() {
            if name == b".." {
                // The root is above itself.
                let end = here.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
                here.truncate(end);
                continue;
            }
            let place = join(&here, &name);
            match self.paths.get(&place).map(|node| &self.nodes[*node].content) {
                Some(Content::Directory) => here = place,
                Some(Content::Link(target)) => {
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(Problem::TooManyLinks(text(path)));
                    }
                    if target.starts_with(b"/") {
                        here.clear();
                    }
                    let more = target.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
                    rest.extend(more.rev().map(<[u8]>::to_vec));
                }
                Some(_) => return Err(Problem::NotADirectory(text(&place))),
                None => {
                    let attributes = Attributes { permissions: 0o755, ..Attributes::default() };
                    self.insert(place.clone(), Node { attributes, content: Content::Directory })?;
                    here = place;
                }
            }
        }
        Ok(here)
    }

    /// Returns all files, in the order of their paths. The first name of a file has its contents.
    pub fn entries(&self) -> Vec<Entry<'_>> {
        let mut first: BTreeMap<usize, &[u8]> = BTreeMap::new();
        let mut entries = Vec::new();
        for (path, index) in &self.paths {
            let Node { attributes, content } = &self.nodes[*index];
            let earlier = *first.entry(*index).or_insert(path);
            let kind = match content {
                _ if earlier != path => Kind::Same(earlier),
                Content::Directory => Kind::Directory,
                Content::Regular(contents) => Kind::Regular(contents),
                Content::Link(target) => Kind::Link(target),
                Content::Character(device) => Kind::Character(*device),
                Content::Block(device) => Kind::Block(*device),
                Content::Fifo => Kind::Fifo,
            };
            entries.push(Entry { path, attributes: *attributes, kind });
        }
        entries
    }
}
