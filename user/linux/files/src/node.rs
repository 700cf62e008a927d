//! Nodes of the tree.

use alloc::boxed::Box;

use tench_linux_calls::numbers::file_type;
use tench_linux_memory::ObjectId;

use crate::directory::Directory;
use crate::generated::Class;
use crate::mirror::Mirror;
use crate::pipe::Pipe;

/// Name of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) u64);

/// A moment, counted from the beginning of 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    /// Whole seconds.
    pub seconds: i64,
    /// Nanoseconds beyond them, less than 10⁹.
    pub nanoseconds: u32,
}

/// The number of a device, as a program sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device(pub u32);

/// The type of a node, with what a node of that type has.
#[derive(Debug)]
pub enum Kind {
    /// A regular file.
    Regular(ObjectId),
    /// A directory.
    Directory(Directory),
    /// A symbolic link, with the path to which it leads.
    Link(Box<[u8]>),
    /// A device of which programs read and write characters.
    Character(Device),
    /// A device of which programs read and write blocks.
    Block(Device),
    /// A pipe.
    Fifo(Pipe),
    /// A socket with a name.
    Socket,
    /// Something without a name that is no file, with a number by which others know it.
    Special(u32),
    /// A node that is not in the tree.
    Generated(Class),
}

impl Kind {
    /// Returns the type's bits in a mode.
    pub const fn file_type(&self) -> u32 {
        match self {
            Kind::Regular(_) => file_type::REGULAR,
            Kind::Directory(_) => file_type::DIRECTORY,
            Kind::Link(_) => file_type::LINK,
            Kind::Character(_) => file_type::CHARACTER,
            Kind::Block(_) => file_type::BLOCK,
            Kind::Fifo(_) => file_type::FIFO,
            Kind::Socket => file_type::SOCKET,
            Kind::Special(_) => 0,
            Kind::Generated(Class::Directory) => file_type::DIRECTORY,
            Kind::Generated(Class::Link) => file_type::LINK,
            Kind::Generated(Class::File) => file_type::REGULAR,
        }
    }
}

/// Records about a node beside its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Permissions: the lower 12 bits of the mode.
    pub permissions: u32,
    /// The owner.
    pub user: u32,
    /// The owner's group.
    pub group: u32,
    /// When the contents were last read.
    pub accessed: Time,
    /// When the contents were last changed.
    pub modified: Time,
    /// When the contents or these attributes were last changed.
    pub changed: Time,
}

/// A file or directory.
#[derive(Debug)]
pub struct Node {
    /// Number as programs see it, which no other node has had: a file that is mapped, and has ended here, is not
    /// mistaken for another one. It is 0 for generated nodes.
    pub(crate) inode: u64,
    /// Type and contents.
    pub kind: Kind,
    /// Records beside that.
    pub attributes: Attributes,
    /// Facts about the original that the node shows, if it is in a mount.
    pub mirror: Option<Box<Mirror>>,
    /// Number of entries in directories. A directory counts its own entry `.` and its children's `..` too.
    pub(crate) links: u32,
    /// Number of open descriptions, working directories and others that keep the node without an entry.
    pub(crate) users: u32,
}

impl Node {
    /// Returns the number of entries that lead here.
    pub const fn links(&self) -> u32 {
        self.links
    }

    /// Returns the number of those who keep the node without an entry.
    pub const fn users(&self) -> u32 {
        self.users
    }

    /// Returns the mode: type and permissions.
    pub const fn mode(&self) -> u32 {
        self.kind.file_type() | self.attributes.permissions
    }

    /// Returns whether the node is a directory, of the tree or a generated one.
    pub const fn is_directory(&self) -> bool {
        matches!(self.kind, Kind::Directory(_) | Kind::Generated(Class::Directory))
    }

    /// Returns the directory, if the node is one of the tree.
    pub const fn directory(&self) -> Option<&Directory> {
        match &self.kind {
            Kind::Directory(directory) => Some(directory),
            _ => None,
        }
    }

    pub(crate) const fn directory_mut(&mut self) -> Option<&mut Directory> {
        match &mut self.kind {
            Kind::Directory(directory) => Some(directory),
            _ => None,
        }
    }
}
