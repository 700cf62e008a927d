//! Files and directories by name.
//!
//! Every node has a number. A directory knows its entries; a file knows its contents and how often it is open. A file
//! without a name stays as long as it is open. Directories that contain files of the boot archive are as fixed as
//! these. Both know when they were changed last; the server sets the time ([`Tree::now`]) at each request.
//!
//! A process may change what it made, and with the power `files` everything else that is not of the archive
//! ([`Requester`]).

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Bound;

use tench_files_interface::protocol::{Error, How, Kind, MAX_PATH, Status};
use tench_protocol::{ArrayVec, Caller, Powers};
use tench_quota::Client;
use tench_quota::lasting::{Lasting, Owner};
use tench_stream::protocol::Error as StreamError;
use tench_sys::Instant;

use crate::contents::{Blocks, Contents, Space};

/// Number of a node.
pub type Node = u64;
/// The root directory.
pub const ROOT: Node = 0;
/// Maximum number of directories on the longest path, the root included.
const MAX_DEPTH: usize = MAX_PATH / 2 + 1;

/// A process that wants to change something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requester {
    /// The process, and its family.
    pub client: Client,
    /// Set if it may change what others made, and make something in directories that are not open to everybody.
    pub is_entitled: bool,
}

impl Requester {
    /// Returns the requester with these powers.
    pub const fn new(caller: Caller, powers: Powers) -> Requester {
        Requester { client: caller, is_entitled: powers.contains(Powers::FILES) }
    }

    /// Checks that the requester may change what `maker` made. Fails with `NotAllowed` if not.
    fn check_maker(self, maker: Option<Maker>) -> Result<(), Error> {
        let is_own = maker.is_some_and(|maker| maker.process == self.client.process);
        if self.is_entitled || is_own { Ok(()) } else { Err(Error::NotAllowed) }
    }
}

/// The maker of a file or directory.
#[derive(Clone, Copy, Debug)]
struct Maker {
    process: u64,
    /// The owner to whose quota it counts.
    owner: Owner,
}

/// A file.
#[derive(Debug)]
struct File {
    contents: Contents,
    /// Number of times that it is open.
    opens: u32,
    /// Set if it has a name.
    linked: bool,
    /// Maker of the file; `None` for files of the archive.
    maker: Option<Maker>,
    /// Time of the last change of its contents.
    modified: Instant,
    /// Number of changes since it was made.
    changes: u64,
}

/// A directory.
#[derive(Debug, Default)]
struct Directory {
    entries: BTreeMap<Box<str>, Node>,
    /// Maker of the directory; a directory without one cannot be moved or removed.
    maker: Option<Maker>,
    /// Set if everybody may make something in it.
    is_everybodys: bool,
    /// Time of the last change of its entries.
    modified: Instant,
}

#[derive(Debug)]
enum Thing {
    File(File),
    Directory(Directory),
}

/// Result of following a path: the directories on the way, and the last name, unless the path ends with `.`, `..` or
/// the root.
struct Walk<'a> {
    way: ArrayVec<Node, MAX_DEPTH>,
    name: Option<&'a str>,
}

impl Walk<'_> {
    /// Returns the directory in which the last name is to be found, or which the path itself means.
    fn directory(&self) -> Node {
        self.way.last().copied().unwrap_or(ROOT)
    }
}

/// The files and directories.
#[derive(Debug)]
pub struct Tree {
    nodes: BTreeMap<Node, Thing>,
    next: Node,
    /// Quota of nodes that processes made.
    made: Lasting,
    /// Memory of the files.
    pub space: Space,
    /// The current time, which changes record. It begins as 0, the time of what the server finds when it starts.
    pub now: Instant,
    /// Ticks of `now` per second.
    frequency: u64,
}

impl Tree {
    /// Returns an empty root directory, with room for `most` files and directories and `blocks` blocks of contents.
    /// The clock has `frequency` ticks per second.
    pub fn new(most: usize, blocks: usize, frequency: u64) -> Tree {
        let root = Thing::Directory(Directory::default());
        Tree {
            nodes: BTreeMap::from([(ROOT, root)]),
            next: 1,
            made: Lasting::new(most),
            space: Space::new(blocks),
            now: Instant::default(),
            frequency,
        }
    }

    /// Returns the number of files and directories that are not fixed, including those that have no name any more.
    pub const fn made(&self) -> usize {
        self.made.taken()
    }

    /// Notes that the last process of a family has ended: what they made and wrote stays, and counts to no quota.
    pub fn family_ended(&mut self, family: u64) {
        self.made.family_ended(family);
        self.space.family_ended(family);
    }

    /// Adds a file of the boot archive, with the directories on its path. Fails if its path is invalid or taken.
    pub fn add_archive_file(&mut self, path: &str, contents: &'static [u8]) -> Result<(), Error> {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        let directory = self.add_fixed_directory(directory)?;
        check_path(path)?;
        if name.is_empty() || matches!(name, "." | "..") || self.directory(directory)?.entries.contains_key(name) {
            return Err(Error::Exists);
        }
        let contents = Contents::Archive(contents);
        let file = File { contents, opens: 0, linked: true, maker: None, modified: self.now, changes: 0 };
        self.add(directory, name, Thing::File(file))?;
        Ok(())
    }

    /// Adds a fixed directory, with those on its path.
    pub fn add_fixed_directory(&mut self, path: &str) -> Result<Node, Error> {
        let mut at = ROOT;
        for name in path.split('/').filter(|name| !matches!(*name, "" | ".")) {
            check_path(name)?;
            at = match self.directory(at)?.entries.get(name) {
                Some(node) => *node,
                None => self.add(at, name, Thing::Directory(Directory::default()))?,
            };
            self.directory(at)?;
        }
        Ok(at)
    }

    /// Adds a fixed directory in which everybody may make something, with those on its path.
    pub fn add_common_directory(&mut self, path: &str) -> Result<Node, Error> {
        let node = self.add_fixed_directory(path)?;
        self.directory_mut(node)?.is_everybodys = true;
        Ok(node)
    }

    fn add(&mut self, directory: Node, name: &str, thing: Thing) -> Result<Node, Error> {
        let node = self.next;
        self.entries(directory)?.insert(name.into(), node);
        self.nodes.insert(node, thing);
        self.next += 1;
        Ok(node)
    }

    fn directory(&self, node: Node) -> Result<&Directory, Error> {
        match self.nodes.get(&node) {
            Some(Thing::Directory(directory)) => Ok(directory),
            Some(Thing::File(_)) => Err(Error::NotADirectory),
            None => Err(Error::NoSuchFile),
        }
    }

    fn directory_mut(&mut self, node: Node) -> Result<&mut Directory, Error> {
        match self.nodes.get_mut(&node) {
            Some(Thing::Directory(directory)) => Ok(directory),
            Some(Thing::File(_)) => Err(Error::NotADirectory),
            None => Err(Error::NoSuchFile),
        }
    }

    /// Returns the entries of a directory for a change, which is recorded.
    fn entries(&mut self, directory: Node) -> Result<&mut BTreeMap<Box<str>, Node>, Error> {
        let now = self.now;
        let directory = self.directory_mut(directory)?;
        directory.modified = now;
        Ok(&mut directory.entries)
    }

    /// Follows a path up to its last name.
    fn walk<'a>(&self, path: &'a str) -> Result<Walk<'a>, Error> {
        check_path(path)?;
        let mut walk = Walk { way: ArrayVec::from_iter([ROOT]), name: None };
        for component in path.split('/').filter(|component| !matches!(*component, "" | ".")) {
            if let Some(name) = walk.name.take() {
                let node = *self.directory(walk.directory())?.entries.get(name).ok_or(Error::NoSuchFile)?;
                self.directory(node)?;
                walk.way.try_push(node).map_err(|_| Error::BadPath)?;
            }
            if component != ".." {
                walk.name = Some(component);
            } else if walk.way.len() > 1 {
                walk.way.pop();
            }
        }
        Ok(walk)
    }

    /// Returns the node at the end of a walk.
    fn target(&self, walk: &Walk<'_>) -> Result<Node, Error> {
        let Some(name) = walk.name else { return Ok(walk.directory()) };
        self.directory(walk.directory())?.entries.get(name).copied().ok_or(Error::NoSuchFile)
    }

    /// Returns the node at a path. A path that ends with `/` means a directory.
    fn find(&self, path: &str) -> Result<Node, Error> {
        let node = self.target(&self.walk(path)?)?;
        if path.ends_with('/') {
            self.directory(node)?;
        }
        Ok(node)
    }

    fn describe(&self, node: Node) -> Result<Status, Error> {
        let (kind, size, modified, changes) = match self.nodes.get(&node).ok_or(Error::NoSuchFile)? {
            Thing::Directory(directory) => (Kind::Directory, directory.entries.len() as u64, directory.modified, 0),
            Thing::File(file) => match &file.contents {
                Contents::Archive(bytes) => (Kind::ArchiveFile, bytes.len() as u64, file.modified, file.changes),
                Contents::Memory(_) => (Kind::File, file.contents.size(), file.modified, file.changes),
            },
        };
        Ok(Status { kind, size, identity: node, modified: self.nanoseconds(modified), changes })
    }

    /// Returns a time in nanoseconds from the machine's start. Only times that are asked for are converted, because
    /// that takes divisions.
    fn nanoseconds(&self, time: Instant) -> u64 {
        tench_sys::time::duration(time.ticks(), self.frequency).as_nanos() as u64
    }

    /// Returns the status of the node at a path.
    pub fn status(&self, path: &str) -> Result<Status, Error> {
        self.describe(self.find(path)?)
    }

    /// Returns the entry of a directory with the first name after another.
    pub fn next(&self, directory: &str, after: &str) -> Result<(Status, &str), Error> {
        let directory = self.directory(self.find(directory)?)?;
        let after = (Bound::Excluded(after), Bound::Unbounded);
        let (name, node) = directory.entries.range::<str, _>(after).next().ok_or(Error::NoMoreEntries)?;
        Ok((self.describe(*node)?, name))
    }

    /// Charges one more node to a client.
    fn charge(&mut self, client: Client) -> Result<Option<Maker>, Error> {
        if !self.made.may_take(client) {
            return Err(Error::NoSpace);
        }
        Ok(Some(Maker { process: client.process, owner: self.made.take(client) }))
    }

    /// Removes a node's charge from its maker's quota, if it had one.
    fn give_back(&mut self, maker: Option<Maker>) {
        maker.into_iter().for_each(|maker| self.made.give_back(maker.owner));
    }

    /// Checks that the requester may make something in a directory. Fails with `NotAllowed` if not.
    fn check_add(&self, by: Requester, directory: Node) -> Result<(), Error> {
        let Directory { maker, is_everybodys, .. } = self.directory(directory)?;
        if *is_everybodys { Ok(()) } else { by.check_maker(*maker) }
    }

    /// Opens a file. The caller has to close it.
    pub fn open(&mut self, by: Requester, path: &str, how: How) -> Result<Node, Error> {
        let walk = self.walk(path)?;
        let node = match self.target(&walk) {
            Ok(_) if how == How::CreateNew => return Err(Error::Exists),
            Ok(node) => node,
            Err(Error::NoSuchFile) if matches!(how, How::Write | How::Append | How::CreateNew) => {
                let name = walk.name.filter(|_| !path.ends_with('/')).ok_or(Error::IsDirectory)?;
                self.check_add(by, walk.directory())?;
                let maker = self.charge(by.client)?;
                let contents = Contents::Memory(Blocks::default());
                let file = File { contents, opens: 0, linked: true, maker, modified: self.now, changes: 0 };
                self.add(walk.directory(), name, Thing::File(file))?
            }
            Err(error) => return Err(error),
        };
        let Some(Thing::File(file)) = self.nodes.get_mut(&node) else { return Err(Error::IsDirectory) };
        if path.ends_with('/') {
            return Err(Error::NotADirectory);
        }
        match &mut file.contents {
            Contents::Archive(_) if how != How::Read => return Err(Error::ReadOnly),
            Contents::Memory(_) if how != How::Read => by.check_maker(file.maker)?,
            Contents::Archive(_) | Contents::Memory(_) => {}
        }
        match &mut file.contents {
            Contents::Memory(blocks) if how == How::Write => {
                // Truncating to nothing always succeeds.
                let _ = blocks.truncate(0, &mut self.space);
                file.modified = self.now;
                file.changes += 1;
            }
            Contents::Archive(_) | Contents::Memory(_) => {}
        }
        file.opens += 1;
        Ok(node)
    }

    /// Closes a file that was opened.
    pub fn close(&mut self, node: Node) {
        let Some(Thing::File(file)) = self.nodes.get_mut(&node) else { return };
        file.opens -= 1;
        self.forget_unused(node);
    }

    /// Removes a file that has no name and is not open.
    fn forget_unused(&mut self, node: Node) {
        let Some(Thing::File(file)) = self.nodes.get(&node) else { return };
        if file.linked || file.opens > 0 {
            return;
        }
        if let Some(Thing::File(File { contents: Contents::Memory(blocks), maker, .. })) = self.nodes.remove(&node) {
            blocks.free(&mut self.space);
            self.give_back(maker);
        }
    }

    /// Returns the contents of an open file.
    pub fn contents(&self, node: Node) -> Option<&Contents> {
        match self.nodes.get(&node)? {
            Thing::File(file) => Some(&file.contents),
            Thing::Directory(_) => None,
        }
    }

    /// Writes bytes at a position of an open file: all of them, or none. Blocks that this takes count to `client`'s
    /// family. Fails with `NotForWriting` if the file cannot be changed.
    pub fn write(&mut self, node: Node, position: u64, bytes: &[u8], client: Client) -> Result<(), StreamError> {
        let Some(Thing::File(File { contents: Contents::Memory(blocks), modified, changes, .. })) =
            self.nodes.get_mut(&node)
        else {
            return Err(StreamError::NotForWriting);
        };
        blocks.write(position, bytes, client, &mut self.space)?;
        if !bytes.is_empty() {
            *modified = self.now;
            *changes += 1;
        }
        Ok(())
    }

    /// Sets an open file's size. Fails with `NotForWriting` if the file cannot be changed.
    pub fn truncate(&mut self, node: Node, size: u64) -> Result<(), StreamError> {
        let Some(Thing::File(File { contents: Contents::Memory(blocks), modified, changes, .. })) =
            self.nodes.get_mut(&node)
        else {
            return Err(StreamError::NotForWriting);
        };
        blocks.truncate(size, &mut self.space)?;
        *modified = self.now;
        *changes += 1;
        Ok(())
    }

    /// Makes a directory. If it was made with the power for it, everybody may make something in it; otherwise only its
    /// maker.
    pub fn make_directory(&mut self, by: Requester, path: &str) -> Result<(), Error> {
        let walk = self.walk(path)?;
        match self.target(&walk) {
            Ok(_) => Err(Error::Exists),
            Err(Error::NoSuchFile) => {
                // A path that does not exist has a last name.
                let name = walk.name.ok_or(Error::Exists)?;
                self.check_add(by, walk.directory())?;
                let maker = self.charge(by.client)?;
                let entries = BTreeMap::new();
                let directory = Directory { entries, maker, is_everybodys: by.is_entitled, modified: self.now };
                self.add(walk.directory(), name, Thing::Directory(directory))?;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Checks that the requester may move or remove a node, and that it is not fixed.
    fn check_movable(&self, by: Requester, node: Node) -> Result<(), Error> {
        match self.nodes.get(&node) {
            None => Err(Error::NoSuchFile),
            Some(Thing::Directory(Directory { maker: None, .. })) => Err(Error::ReadOnly),
            Some(Thing::File(File { contents: Contents::Archive(_), .. })) => Err(Error::ReadOnly),
            Some(Thing::Directory(directory)) => by.check_maker(directory.maker),
            Some(Thing::File(file)) => by.check_maker(file.maker),
        }
    }

    /// Removes the directory entry at the end of a walk.
    fn unlink(&mut self, walk: &Walk<'_>) -> Result<Node, Error> {
        let name = walk.name.ok_or(Error::BadPath)?;
        self.entries(walk.directory())?.remove(name).ok_or(Error::NoSuchFile)
    }

    /// Removes a file, or an empty directory.
    pub fn remove(&mut self, by: Requester, path: &str) -> Result<(), Error> {
        let walk = self.walk(path)?;
        let node = self.find(path)?;
        self.check_movable(by, node)?;
        if self.directory(node).is_ok_and(|directory| !directory.entries.is_empty()) {
            return Err(Error::NotEmpty);
        }
        let node = self.unlink(&walk)?;
        self.without_name(node);
        Ok(())
    }

    /// Handles a node that has lost its name.
    fn without_name(&mut self, node: Node) {
        match self.nodes.get_mut(&node) {
            Some(Thing::File(file)) => {
                file.linked = false;
                self.forget_unused(node);
            }
            Some(Thing::Directory(directory)) => {
                // A directory without a maker is not removed.
                let maker = directory.maker;
                self.nodes.remove(&node);
                self.give_back(maker);
            }
            None => {}
        }
    }

    /// Moves a file or directory to another path.
    pub fn rename(&mut self, by: Requester, from: &str, to: &str) -> Result<(), Error> {
        let (from_walk, to_walk) = (self.walk(from)?, self.walk(to)?);
        let node = self.find(from)?;
        self.check_movable(by, node)?;
        if from_walk.name.is_none() {
            // Such a name cannot be removed from its directory.
            return Err(Error::BadPath);
        }
        let is_directory = self.directory(node).is_ok();
        if !is_directory && to.ends_with('/') {
            return Err(Error::NotADirectory);
        }
        if to_walk.way.contains(&node) {
            return Err(Error::IntoItself);
        }
        match self.target(&to_walk) {
            Ok(same) if same == node => return Ok(()),
            Ok(other) if self.directory(other).is_ok() => return Err(Error::IsDirectory),
            Ok(_) if is_directory => return Err(Error::NotADirectory),
            Ok(other) => {
                self.check_add(by, to_walk.directory())?;
                self.check_movable(by, other)?;
                let other = self.unlink(&to_walk)?;
                self.without_name(other);
            }
            Err(Error::NoSuchFile) => self.check_add(by, to_walk.directory())?,
            Err(error) => return Err(error),
        }
        // The existing node is no directory, so it has a name.
        let name = to_walk.name.ok_or(Error::IsDirectory)?;
        let node = self.unlink(&from_walk)?;
        self.entries(to_walk.directory())?.insert(name.into(), node);
        Ok(())
    }

    /// Panics if an invariant does not hold. `opens` returns how often a file is open.
    pub fn check_invariants(&self, opens: impl Fn(Node) -> u32) {
        let mut linked = BTreeMap::from([(ROOT, 1)]);
        let directories = self.nodes.values().filter_map(|thing| match thing {
            Thing::Directory(directory) => Some(directory),
            Thing::File(_) => None,
        });
        for node in directories.flat_map(|directory| directory.entries.values()) {
            assert!(self.nodes.contains_key(node), "an entry without a node");
            *linked.entry(*node).or_insert(0) += 1;
        }
        let (mut blocks, mut made) = (Vec::new(), Vec::new());
        for (node, thing) in &self.nodes {
            let names = linked.get(node).copied().unwrap_or(0);
            match thing {
                Thing::File(file) => {
                    assert_eq!(file.opens, opens(*node), "how often file {node} is open");
                    assert_eq!(names, u32::from(file.linked), "names of file {node}");
                    assert!(file.linked || file.opens > 0, "file {node} is of no use");
                    if let Contents::Memory(contents) = &file.contents {
                        blocks.extend(contents.check_invariants());
                        made.extend(file.maker.map(|maker| maker.owner));
                    }
                }
                Thing::Directory(directory) => {
                    assert_eq!(names, 1, "names of directory {node}");
                    made.extend(directory.maker.map(|maker| maker.owner));
                }
            }
        }
        assert!(blocks.len() <= self.space.most() && made.len() <= self.made.limit());
        self.space.check_invariants(&blocks);
        self.made.check_invariants(&made);
    }
}

/// Checks that a path is valid.
fn check_path(path: &str) -> Result<(), Error> {
    let is_path = (1..=MAX_PATH).contains(&path.len()) && !path.chars().any(char::is_control);
    if is_path { Ok(()) } else { Err(Error::BadPath) }
}
