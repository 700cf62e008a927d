//! The file server's interface.
//!
//! A path names a file or directory from the root on, with or without a leading `/`; `.` is the directory itself, `..`
//! its parent.

use tench_protocol::{ArrayString, Caller, Given, Powers, Replies, Sent, Text, Words, interface};
use tench_sys::Endpoint;

/// Pipes and files. The returned capabilities are ends of byte streams, for requests of the interface
/// [stream](stream.md); they belong to the caller, and are closed when it ends.
///
/// Every process may read everything, make files and directories in `/tmp` and in directories that were made with the
/// power `files`, and change what it made itself: write, remove, rename. Anything else needs the power `files`, and
/// files of the boot archive cannot be changed at all.
#[interface(client = Files, version = 4)]
pub trait FilesService {
    /// Makes a pipe. Returns the end to read from, and the end to write to. The capabilities go to the empty slots on
    /// offer.
    /// Errors: `Full`.
    #[method(1)]
    fn pipe(&mut self, caller: Caller) -> Result<(Sent<Endpoint, Given>, Sent<Endpoint, Given>), Error>;

    /// Opens a file. The capability goes to the empty slot on offer.
    /// Errors: `BadPath`, `NoSuchFile`, `NotADirectory` (on the way), `IsDirectory`, `ReadOnly` (to write a file of the
    /// boot archive), `NotAllowed`, `Exists` (`CreateNew`), `NoSpace`, `Full`.
    #[method(2)]
    fn open(
        &mut self,
        caller: Caller,
        powers: Powers,
        path: Text<'_, MAX_PATH>,
        how: How,
    ) -> Result<Sent<Endpoint, Given>, Error>;

    /// Returns the status of the file or directory at a path.
    /// Errors: `BadPath`, `NoSuchFile`, `NotADirectory`.
    #[method(3)]
    fn status(&mut self, path: Text<'_, MAX_PATH>) -> Result<Status, Error>;

    /// Returns the entry of a directory with the first name after another in the order of their bytes (for the first of
    /// all: after the empty name), and its name.
    /// Errors: `BadPath`, `NoSuchFile`, `NotADirectory`, `NoMoreEntries`.
    #[method(4)]
    fn next(
        &mut self,
        directory: Text<'_, MAX_PATH>,
        after: Text<'_, MAX_PATH>,
    ) -> Result<(Status, ArrayString<MAX_PATH>), Error>;

    /// Makes a directory. If it was made with the power `files`, everybody may make something in it; otherwise only its
    /// maker.
    /// Errors: `BadPath`, `NoSuchFile` (on the way), `NotADirectory`, `Exists`, `NotAllowed`, `NoSpace`.
    #[method(5)]
    fn make_directory(&mut self, caller: Caller, powers: Powers, path: Text<'_, MAX_PATH>) -> Result<(), Error>;

    /// Removes a file, or an empty directory. An open file stays without a name until it is closed.
    /// Errors: `BadPath`, `NoSuchFile`, `NotADirectory`, `ReadOnly`, `NotAllowed`, `NotEmpty`.
    #[method(6)]
    fn remove(&mut self, caller: Caller, powers: Powers, path: Text<'_, MAX_PATH>) -> Result<(), Error>;

    /// Moves a file or directory to another path. A file that exists there is removed.
    /// Errors: `BadPath`, `NoSuchFile`, `NotADirectory`, `IsDirectory` (a directory exists there), `ReadOnly`,
    /// `NotAllowed`, `IntoItself`, `NoSpace`.
    #[method(7)]
    fn rename(
        &mut self,
        caller: Caller,
        powers: Powers,
        from: Text<'_, MAX_PATH>,
        to: Text<'_, MAX_PATH>,
    ) -> Result<(), Error>;

    /// Returns how much of each resource is in use.
    #[method(8)]
    fn usage(&mut self) -> Result<Usage, Error>;

    /// Reports that a process has ended: its ends of streams are closed, and its waits removed. `family` is its family
    /// if no process of that runs any more, and otherwise 0: files of a family count to no quota when its last process
    /// has ended. Returns another process of the same core, if the server must know whether that one runs: one that was
    /// given an end by a process that has ended, or has opened its first. If that process has ended, this is to be
    /// reported in the same way; otherwise with `process_lives`. One request closes a limited number of ends: if there
    /// are more, it returns the process itself.
    #[method(9, authority)]
    fn process_ended(&mut self, replies: &mut Replies, process: u64, family: u64) -> Result<Option<u64>, Error>;

    /// Reports that a process of a family runs and keeps what it was given, up to a limit. Returns the same as
    /// `process_ended`.
    #[method(10, authority)]
    fn process_lives(&mut self, replies: &mut Replies, process: u64, family: u64) -> Result<Option<u64>, Error>;
}

tench_protocol::codes! {
    /// Mode in which a file is opened.
    pub enum How {
        /// Reading, from its beginning.
        Read = 1;
        /// Writing, from its beginning; the file is created, or emptied.
        Write = 2;
        /// Writing, each time at its end; the file is created if it does not exist.
        Append = 3;
        /// Reading and writing, from its beginning.
        Update = 4;
        /// Reading and writing a file that does not exist yet.
        CreateNew = 5;
    }
}

tench_protocol::codes! {
    /// Kind of a node.
    pub enum Kind {
        /// A file that can be written.
        File = 1;
        /// A file of the boot archive, which can only be read.
        ArchiveFile = 2;
        /// A directory.
        Directory = 3;
    }
}

/// Status of a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Words)]
pub struct Status {
    /// Kind of the node.
    pub kind: Kind,
    /// Size of a file in bytes; number of entries of a directory.
    pub size: u64,
    /// A number that is unique as long as the node exists.
    pub identity: u64,
    /// Time of the last change, in nanoseconds from the machine's start, rounded down; 0 if the node has not changed
    /// since the file server was started. A file changes when it is made, when at least one byte is written to it, when
    /// its size is set, and when it is opened with `Write`, even if its bytes remain the same; files of the boot
    /// archive never do. A directory changes when it is made, and when an entry of it is made, removed, or renamed:
    /// within it, into it or out of it.
    pub modified: u64,
    /// Number of requests that have changed a file, as above, since it was made: while this number is the same, so are
    /// the file's contents. 0 for directories.
    pub changes: u64,
}

/// Resources of the file server in use, and their maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Words)]
pub struct Usage {
    /// Bytes of memory with contents of files.
    pub bytes: u64,
    /// Maximum of `bytes`, if the machine has as much memory.
    pub most_bytes: u64,
    /// Files and directories that can be written, including those that have no name any more.
    pub nodes: u64,
    /// Pipes.
    pub pipes: u64,
    /// Capabilities to ends of pipes and files.
    pub ends: u64,
    /// Waiting requests.
    pub waiting: u64,
}

/// Maximum length of a path in bytes.
pub const MAX_PATH: usize = 240;

tench_protocol::codes! {
    /// Why a request was refused.
    pub enum Error {
        /// The path is empty, or a name in it contains control characters.
        BadPath = 1, "this is no path: it has 1 to 240 bytes of UTF-8 without control characters";
        /// There is no such file or directory.
        NoSuchFile = 2, "there is no such file or directory";
        /// A file is where the path needs a directory.
        NotADirectory = 3, "a file lies where the path needs a directory";
        /// A directory is where a file is needed.
        IsDirectory = 4, "this is a directory";
        /// The file or directory is one of the boot archive.
        ReadOnly = 5, "files and directories of the boot archive can only be read; write to another path, such as /tmp";
        /// A file or directory exists there already.
        Exists = 6, "something lies there already";
        /// The directory is not empty.
        NotEmpty = 7, "the directory is not empty; remove what lies in it first";
        /// A directory would lie in itself.
        IntoItself = 8, "a directory cannot be moved into itself";
        /// The directory has no entry after that one.
        NoMoreEntries = 9, "the directory has no more entries";
        /// The memory for files is used up.
        NoSpace = 10, "no space is left for files; remove one";
        /// Too many ends of streams are open, of this process or of all.
        Full = 11, "too many pipes and files are open; close one";
        /// Another process made it, or the directory is not everybody's.
        NotAllowed = 12, "only its maker, or a program started with the power files, may change this; write under /tmp";
    }
}
