//! Random operations on files, compared with what the Linux under these tests does in a directory of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags};
use tench_linux_calls::numbers::open;
use tench_linux_files::{Errno, Last, NewNode, NodeId, Rename, Time, Tree};
use tench_linux_memory::{Hardware, Memory, Objects, Page, Place, Pool, Rights};
use tench_random::Random;

/// A machine without memory: the contents of files are not what is tested here.
#[derive(Debug)]
struct Nothing;

impl Hardware for Nothing {
    type Root = ();
    type Table = ();
    fn can_allocate(&mut self, _: usize) -> bool {
        true
    }
    fn grow(&mut self, _: u32) -> bool {
        false
    }
    fn bytes(&mut self, _: Page) -> &mut [u8; 4096] {
        unreachable!("there are no pages")
    }
    fn copy(&mut self, _: Place, _: Place, _: usize) {}
    fn make_root(&mut self) -> Result<(), Errno> {
        Err(Errno::ENOMEM)
    }
    fn make_table(&mut self, (): &mut (), _: u64) -> Result<(), Errno> {
        Err(Errno::ENOMEM)
    }
    fn map(&mut self, (): &mut (), _: usize, _: &[Page], _: Rights) -> Result<(), Errno> {
        Err(Errno::ENOMEM)
    }
    fn unmap(&mut self, (): &mut (), _: usize, _: usize) {}
    fn share(&mut self, (): &mut (), (): &mut (), _: std::ops::Range<usize>) -> Result<(), Errno> {
        Err(Errno::ENOMEM)
    }
    fn drop_table(&mut self, (): &mut (), (): ()) {}
    fn drop_root(&mut self, (): ()) {}
}

/// The result of an operation, as both report it.
type Outcome = Result<(), i32>;

fn ours<T>(result: Result<T, Errno>) -> Outcome {
    result.map(drop).map_err(Errno::into_raw)
}

fn theirs<T>(result: rustix::io::Result<T>) -> Outcome {
    result.map(drop).map_err(|error| error.raw_os_error())
}

/// The nodes of a tree, by paths: type, number of links, target, and a number for each node.
type Listing = BTreeMap<Vec<u8>, (u32, u32, Vec<u8>, usize)>;

struct Both {
    tree: Tree,
    memory: Memory<Nothing>,
    /// The root of the tree here, and there.
    root: OwnedFd,
    /// Directories that are used as working directories: here, and there.
    places: Vec<(NodeId, OwnedFd)>,
    random: Random,
    log: Vec<String>,
}

/// Number of directories above the one in which the operations begin. A path of three names that leads through forty
/// links of three names each cannot leave them all.
const DEPTH: usize = 130;

/// Names of entries. The last is too long.
const NAMES: [&str; 7] = ["a", "b", "c", "d", ".", "..", "long"];

impl Both {
    fn new(seed: u64, directory: &Path) -> Both {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let root = rustix::fs::open(directory, flags, Mode::empty()).unwrap();
        let mut tree = Tree::new(Time::default());
        let mut memory = Memory { pool: Pool::new(), objects: Objects::new(), hardware: Nothing };
        let path = "n/".repeat(DEPTH);
        let place = tree.make_directories(&mut memory, path.as_bytes()).unwrap();
        tree.share(place);
        std::fs::create_dir_all(directory.join(&path)).unwrap();
        let there = rustix::fs::openat(&root, &*path, flags, Mode::empty()).unwrap();
        let places = vec![(place, there)];
        Both { tree, memory, root, places, random: Random::new(seed), log: Vec::new() }
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random.below(limit)
    }

    /// Returns a path.
    fn path(&mut self) -> String {
        let mut path = String::new();
        let count = 1 + self.below(3);
        for index in 0..count {
            if index > 0 {
                path.push('/');
            }
            let choice = if self.below(12) == 0 { 4 + self.below(3) } else { self.below(4) };
            match NAMES[choice as usize] {
                "long" => path.push_str(&"x".repeat(255 + self.below(2) as usize)),
                name => path.push_str(name),
            }
        }
        match self.below(14) {
            0 => path.push('/'),
            1 => path.push_str("//"),
            2 => path.clear(),
            _ => {}
        }
        path
    }

    /// Returns a place: its number here, and a copy of the descriptor there.
    fn place(&mut self) -> (NodeId, OwnedFd) {
        let index = self.below(self.places.len() as u64) as usize;
        let (node, directory) = &self.places[index];
        (*node, rustix::io::dup(directory).unwrap())
    }

    fn walk(&self, from: NodeId, path: &str, last: Last) -> Result<tench_linux_files::Found, Errno> {
        self.tree.walk(Tree::ROOT, from, path.as_bytes(), last)
    }

    fn make(&mut self) -> (Outcome, Outcome) {
        let ((from, at), path) = (self.place(), self.path());
        let kind = self.below(4);
        self.log.push(format!("make {kind} {path}"));
        let found = self.walk(from, &path, Last::Name);
        let target = self.path();
        let new = match kind {
            0 | 1 => NewNode::Directory,
            2 => NewNode::Link(target.as_bytes()),
            _ => NewNode::Fifo,
        };
        let mut make = |found| self.tree.make(&mut self.memory, &found, new, 0o644);
        // Linux looks at a link's path first.
        let here = if kind == 2 && target.is_empty() { Err(Errno::ENOENT) } else { found.and_then(&mut make) };
        let there = match kind {
            0 | 1 => theirs(rustix::fs::mkdirat(&at, &*path, Mode::from_raw_mode(0o644))),
            2 => theirs(rustix::fs::symlinkat(&*target, &at, &*path)),
            _ => theirs(rustix::fs::mknodat(&at, &*path, FileType::Fifo, Mode::from_raw_mode(0o644), 0)),
        };
        self.log.push(format!("  to {target}"));
        (ours(here), there)
    }

    fn open(&mut self) -> (Outcome, Outcome) {
        let ((from, at), path) = (self.place(), self.path());
        let mut flags = OFlags::NONBLOCK;
        let all = [
            (OFlags::CREATE, open::CREAT),
            (OFlags::EXCL, open::EXCL),
            (OFlags::DIRECTORY, open::DIRECTORY),
            (OFlags::NOFOLLOW, open::NOFOLLOW),
            (OFlags::TRUNC, open::TRUNC),
            (OFlags::RDWR, open::RDWR),
            (OFlags::PATH, open::PATH),
        ];
        let mut own = open::NONBLOCK;
        for (flag, number) in all {
            if self.below(4) == 0 {
                flags |= flag;
                own |= number;
            }
        }
        // Linux 6.1 and later ones differ in what this means.
        if own & open::CREAT != 0 {
            flags -= OFlags::DIRECTORY;
            own &= !open::DIRECTORY;
        }
        // Without a file to be made, this has no meaning.
        if own & open::CREAT == 0 {
            flags -= OFlags::EXCL;
            own &= !open::EXCL;
        }
        self.log.push(format!("open {path} {flags:?}"));
        let here = self.tree.open(&mut self.memory, (Tree::ROOT, from), path.as_bytes(), own, 0o644);
        let there = rustix::fs::openat(&at, &*path, flags, Mode::from_raw_mode(0o644));
        let outcomes = (ours(here), theirs(there.as_ref().map_err(|error| *error)));
        if let Ok(node) = here {
            let is_directory = self.tree.node(node).directory().is_some();
            match there {
                Ok(file) if is_directory && self.places.len() < 5 => self.places.push((node, file)),
                _ => self.tree.release(&mut self.memory, node),
            }
        }
        outcomes
    }

    fn leave_place(&mut self) -> (Outcome, Outcome) {
        if self.places.len() > 1 {
            let index = 1 + self.below(self.places.len() as u64 - 1) as usize;
            let (node, _) = self.places.swap_remove(index);
            self.tree.release(&mut self.memory, node);
        }
        (Ok(()), Ok(()))
    }

    fn remove(&mut self) -> (Outcome, Outcome) {
        let ((from, at), path) = (self.place(), self.path());
        let is_directory = self.below(2) == 0;
        self.log.push(format!("remove {path} {is_directory}"));
        let found = self.walk(from, &path, Last::Name);
        let here = found.and_then(|found| {
            if is_directory {
                self.tree.remove_directory(&mut self.memory, &found)
            } else {
                self.tree.unlink(&mut self.memory, &found)
            }
        });
        let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        (ours(here), theirs(rustix::fs::unlinkat(&at, &*path, flags)))
    }

    fn link(&mut self) -> (Outcome, Outcome) {
        let ((from, at), old, new) = (self.place(), self.path(), self.path());
        let follows = self.below(2) == 0;
        self.log.push(format!("link {old} {new} {follows}"));
        let (last, flags) =
            if follows { (Last::Follow, AtFlags::SYMLINK_FOLLOW) } else { (Last::Keep, AtFlags::empty()) };
        let here = self.tree.find((Tree::ROOT, from), old.as_bytes(), last).and_then(|node| {
            let found = self.walk(from, &new, Last::Name)?;
            self.tree.link(node, &found)
        });
        (ours(here), theirs(rustix::fs::linkat(&at, &*old, &at, &*new, flags)))
    }

    fn rename(&mut self) -> (Outcome, Outcome) {
        let ((from, at), (to, to_at), old, new) = (self.place(), self.place(), self.path(), self.path());
        let (how, flags) = match self.below(4) {
            0 => (Rename::KeepExisting, RenameFlags::NOREPLACE),
            1 => (Rename::Exchange, RenameFlags::EXCHANGE),
            _ => (Rename::Replace, RenameFlags::empty()),
        };
        self.log.push(format!("rename {old} {new} {how:?}"));
        let places = self.walk(from, &old, Last::Name).and_then(|old| Ok((old, self.walk(to, &new, Last::Name)?)));
        let here = places.and_then(|(old, new)| self.tree.rename(&mut self.memory, &old, &new, how));
        (ours(here), theirs(rustix::fs::renameat_with(&at, &*old, &to_at, &*new, flags)))
    }

    fn step(&mut self) {
        let (here, there) = match self.below(12) {
            0..4 => self.make(),
            4..7 => self.open(),
            7 => self.leave_place(),
            8 => self.remove(),
            9 => self.link(),
            _ => self.rename(),
        };
        assert_eq!(here, there, "ours, then Linux's, after {:#?}", self.log.iter().rev().take(4).collect::<Vec<_>>());
        self.tree.check().unwrap();
    }

    /// Lists the tree here.
    fn list_here(&self, directory: NodeId, path: &[u8], nodes: &mut BTreeMap<u64, usize>, all: &mut Listing) {
        for entry in self.tree.node(directory).directory().unwrap().entries(directory, 2) {
            let node = self.tree.node(entry.node);
            let path = [path, b"/", entry.name].concat();
            let target = self.tree.link_target(entry.node).unwrap_or(&[]).to_vec();
            let count = nodes.len();
            let number = *nodes.entry(self.tree.inode(entry.node)).or_insert(count);
            all.insert(path.clone(), (node.kind.file_type(), node.links(), target, number));
            if node.directory().is_some() {
                self.list_here(entry.node, &path, nodes, all);
            }
        }
    }

    /// Lists the tree there, in the order of the one here, so that nodes get the same numbers.
    fn list_there(&self, here: &Listing) -> Listing {
        let mut nodes = BTreeMap::new();
        let mut all = Listing::new();
        for path in in_order(here) {
            let relative = CString::new(&path[1..]).unwrap();
            let status = rustix::fs::statat(&self.root, &relative, AtFlags::SYMLINK_NOFOLLOW).unwrap();
            let target = rustix::fs::readlinkat(&self.root, &relative, Vec::new());
            let target = target.map_or(Vec::new(), CString::into_bytes);
            let count = nodes.len();
            let number = *nodes.entry(status.st_ino).or_insert(count);
            all.insert(path, (status.st_mode & 0o170_000, status.st_nlink as u32, target, number));
        }
        all
    }

    /// Returns the names in the directories of a listing there.
    fn names_there(&self, here: &Listing) -> BTreeSet<Vec<u8>> {
        let directories = here.iter().filter(|(_, (kind, ..))| *kind == 0o40_000).map(|(path, _)| path.clone());
        let mut names = BTreeSet::new();
        for path in directories.chain([Vec::new()]) {
            let relative = CString::new([b".", &path[..]].concat()).unwrap();
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let directory = rustix::fs::openat(&self.root, &relative, flags, Mode::empty()).unwrap();
            for entry in Dir::new(directory).unwrap() {
                let entry = entry.unwrap();
                let name = entry.file_name().to_bytes();
                if name != b"." && name != b".." {
                    names.insert([&path[..], b"/", name].concat());
                }
            }
        }
        names
    }

    fn compare(&self) {
        let mut here = Listing::new();
        self.list_here(Tree::ROOT, b"", &mut BTreeMap::new(), &mut here);
        let there = self.list_there(&here);
        let renumbered = renumber(&here);
        assert_eq!(renumbered, there);
        assert_eq!(here.keys().cloned().collect::<BTreeSet<_>>(), self.names_there(&here));
    }
}

fn in_order(listing: &Listing) -> Vec<Vec<u8>> {
    listing.keys().cloned().collect()
}

/// Numbers the nodes in the order of their first paths.
fn renumber(listing: &Listing) -> Listing {
    let mut numbers = BTreeMap::new();
    let renumbered = listing.iter().map(|(path, (kind, links, target, number))| {
        let count = numbers.len();
        let number = *numbers.entry(*number).or_insert(count);
        (path.clone(), (*kind, *links, target.clone(), number))
    });
    renumbered.collect()
}

#[test]
fn operations_do_what_linux_does() {
    for seed in 0..20 {
        // In memory, if the machine has such a file system: others count links of directories differently.
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
        let directory = tempfile::tempdir_in(parent).unwrap();
        let mut both = Both::new(seed, directory.path());
        for step in 0..600 {
            both.step();
            if step % 20 == 0 {
                both.compare();
            }
        }
        both.compare();
    }
}
