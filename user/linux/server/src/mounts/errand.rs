//! Errands: operations that a file server outside of the instance does for calls.
//!
//! An errand names files by their paths at the server, and takes several requests: it opens a file, reads or writes it,
//! and closes it again, so that no errand leaves an open file at the server. Before and after an errand reads or
//! changes a file, it checks that the path still leads to the same file.

use alloc::string::String;
use alloc::vec::Vec;

use tench_files_interface::protocol::{Error as Refusal, Kind, Status, Usage};
use tench_linux_files::Errno;
use tench_stream::protocol::Error as StreamRefusal;

use crate::caller::Result;

/// Maximum number of entries that one errand lists, so that they take little memory.
pub const AT_ONCE: usize = 64;

/// The path of a file, and the number of the file that is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// Path of the file.
    pub path: String,
    /// Number of the file at the server.
    pub original: u64,
}

/// Kind of the node that is to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removed {
    /// A file.
    File,
    /// An empty directory.
    Directory,
}

/// An operation on the files of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Errand {
    /// Reads the status of the file or directory at a path, if there is one.
    Look(String),
    /// Lists the entries of a directory after a name: at most [this many](AT_ONCE).
    List(String, String),
    /// Reads a file from an offset on, until the buffer is full or the file ends.
    Read(Name, u64, Vec<u8>),
    /// Writes bytes to a file, from an offset on.
    Write(Name, u64, Vec<u8>),
    /// Sets the size of a file.
    Resize(Name, u64),
    /// Makes a file at least this large. A file that is large enough counts as changed, too.
    Enlarge(Name, u64),
    /// Checks that the file at a path may be written, whichever file that is.
    CheckWrite(String),
    /// Makes a file at a path where there is nothing yet.
    Create(String),
    /// Makes a directory.
    MakeDirectory(String),
    /// Removes a file, or an empty directory.
    Remove(String, Removed),
    /// Gives a file or directory another path. As on Linux, a directory replaces an empty one there.
    Rename(String, String),
    /// Counts the resources that all files use.
    Count,
}

/// Result of an errand that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Status of the file or directory at the path, if there is one.
    Status(Option<Status>),
    /// Entries of the directory.
    Entries(Vec<(String, Status)>),
    /// Bytes of the file, fewer than were requested if the file ends, and the file's status before.
    Bytes(Vec<u8>, Status),
    /// The file was changed.
    Changed {
        /// Status of the file after the change.
        status: Status,
        /// The file's number of changes before, if nobody else has changed it meanwhile.
        before: Option<u64>,
        /// Number of bytes that were written.
        count: usize,
    },
    /// Resources that all files use.
    Usage(Usage),
    /// Success of an errand that has nothing to report.
    Done,
}

/// A file server, as errands use it.
pub trait FileServer {
    /// An open file.
    type File;

    /// Returns the status of the file or directory at a path.
    ///
    /// # Errors
    /// [`errno`]
    fn status(&mut self, path: &str) -> Result<Status>;

    /// Returns the first entry of a directory after a name, if there is one.
    ///
    /// # Errors
    /// [`errno`]
    fn next(&mut self, directory: &str, after: &str) -> Result<Option<(String, Status)>>;

    /// Opens a file for reading, or for reading and writing.
    ///
    /// # Errors
    /// [`errno`]
    fn open(&mut self, path: &str, writes: bool) -> Result<Self::File>;

    /// Creates a file, and closes it.
    ///
    /// # Errors
    /// [`errno`]
    fn create(&mut self, path: &str) -> Result<()>;

    /// Reads from an offset on, until `into` is full or the file ends. Returns the number of bytes.
    ///
    /// # Errors
    /// [`errno_of_stream`]
    fn read(&mut self, file: &mut Self::File, offset: u64, into: &mut [u8]) -> Result<usize>;

    /// Writes bytes from an offset on, which the server counts as one change: all bytes, or as many as one request can
    /// take. Returns their number.
    ///
    /// # Errors
    /// [`errno_of_stream`], if none was written.
    fn write(&mut self, file: &mut Self::File, offset: u64, bytes: &[u8]) -> Result<usize>;

    /// Sets the size, which the server counts as one change.
    ///
    /// # Errors
    /// [`errno_of_stream`]
    fn resize(&mut self, file: &mut Self::File, size: u64) -> Result<()>;

    /// Makes a directory.
    ///
    /// # Errors
    /// [`errno`]
    fn make_directory(&mut self, path: &str) -> Result<()>;

    /// Removes a file or an empty directory.
    ///
    /// # Errors
    /// [`errno`]
    fn remove(&mut self, path: &str) -> Result<()>;

    /// Gives a file or directory another path.
    ///
    /// # Errors
    /// [`errno`]
    fn rename(&mut self, from: &str, to: &str) -> Result<()>;

    /// Returns how much of its resources the server uses.
    ///
    /// # Errors
    /// [`errno`]
    fn usage(&mut self) -> Result<Usage>;
}

/// Returns Linux's error for a refusal of the file server.
pub const fn errno(refusal: Refusal) -> Errno {
    match refusal {
        Refusal::BadPath | Refusal::IntoItself => Errno::EINVAL,
        Refusal::NoSuchFile | Refusal::NoMoreEntries => Errno::ENOENT,
        Refusal::NotADirectory => Errno::ENOTDIR,
        Refusal::IsDirectory => Errno::EISDIR,
        Refusal::ReadOnly => Errno::EROFS,
        Refusal::Exists => Errno::EEXIST,
        Refusal::NotEmpty => Errno::ENOTEMPTY,
        Refusal::NoSpace => Errno::ENOSPC,
        Refusal::Full => Errno::ENFILE,
        Refusal::NotAllowed => Errno::EACCES,
    }
}

/// Returns Linux's error for a refusal that concerns an open file.
pub const fn errno_of_stream(refusal: StreamRefusal) -> Errno {
    match refusal {
        StreamRefusal::Closed => Errno::ESTALE,
        StreamRefusal::NoSpace => Errno::ENOSPC,
        StreamRefusal::TooLarge => Errno::EFBIG,
        StreamRefusal::Full => Errno::ENFILE,
        StreamRefusal::Broken
        | StreamRefusal::NotForReading
        | StreamRefusal::NotForWriting
        | StreamRefusal::NotAFile => Errno::EIO,
    }
}

/// Does an errand.
///
/// # Errors
/// Those of the server, and `ESTALE` if the path does not lead to the file that is meant.
pub fn run<S: FileServer>(server: &mut S, errand: Errand) -> Result<Finding> {
    match errand {
        Errand::Look(path) => look(server, &path).map(Finding::Status),
        Errand::List(path, after) => list(server, &path, &after).map(Finding::Entries),
        Errand::Read(name, offset, buffer) => read(server, &name, offset, buffer),
        Errand::Write(name, offset, bytes) => {
            change(server, &name, |server, file, _| write(server, file, offset, &bytes))
        }
        Errand::Resize(name, size) => {
            change(server, &name, |server, file, _| server.resize(file, size).map(|()| RESIZED))
        }
        Errand::Enlarge(name, size) => {
            change(server, &name, |server, file, before| server.resize(file, size.max(before.size)).map(|()| RESIZED))
        }
        Errand::CheckWrite(path) => server.open(&path, true).map(|_| Finding::Done),
        Errand::Create(path) => {
            server.create(&path)?;
            server.status(&path).map(|status| Finding::Status(Some(status)))
        }
        Errand::MakeDirectory(path) => {
            server.make_directory(&path)?;
            server.status(&path).map(|status| Finding::Status(Some(status)))
        }
        Errand::Remove(path, what) => remove(server, &path, what).map(|()| Finding::Done),
        Errand::Rename(from, to) => rename(server, &from, &to).map(|()| Finding::Done),
        Errand::Count => server.usage().map(Finding::Usage),
    }
}

/// Returns the status of the file or directory at a path, if there is one. At an impossible path there is none.
fn look<S: FileServer>(server: &mut S, path: &str) -> Result<Option<Status>> {
    match server.status(path) {
        Ok(status) => Ok(Some(status)),
        Err(Errno::ENOENT | Errno::ENOTDIR | Errno::EINVAL) => Ok(None),
        Err(error) => Err(error),
    }
}

fn list<S: FileServer>(server: &mut S, path: &str, after: &str) -> Result<Vec<(String, Status)>> {
    let mut entries = Vec::<(String, Status)>::new();
    while entries.len() < AT_ONCE {
        let after = entries.last().map_or(after, |(name, _)| name);
        let Some(entry) = server.next(path, after)? else { break };
        entries.push(entry);
    }
    Ok(entries)
}

/// Returns the status of a file, if its path leads to it.
fn status_of<S: FileServer>(server: &mut S, name: &Name) -> Result<Status> {
    let status = look(server, &name.path)?.ok_or(Errno::ESTALE)?;
    let is_it = status.identity == name.original && status.kind != Kind::Directory;
    if is_it { Ok(status) } else { Err(Errno::ESTALE) }
}

/// Removes a file or an empty directory, if it is of the kind that is to be removed.
fn remove<S: FileServer>(server: &mut S, path: &str, what: Removed) -> Result<()> {
    match (server.status(path)?.kind == Kind::Directory, what) {
        (true, Removed::File) => Err(Errno::EISDIR),
        (false, Removed::Directory) => Err(Errno::ENOTDIR),
        _ => server.remove(path),
    }
}

/// Gives a file or directory another path. The server replaces no directory, so an empty one at the new path is removed
/// first, and made again if the renaming fails.
fn rename<S: FileServer>(server: &mut S, from: &str, to: &str) -> Result<()> {
    let is_directory = |server: &mut S, path: &str| Ok(server.status(path)?.kind == Kind::Directory);
    match server.rename(from, to) {
        Err(Errno::EISDIR) if is_directory(server, from)? && is_directory(server, to)? => {}
        result => return result,
    }
    server.remove(to)?;
    let result = server.rename(from, to);
    if result.is_err() {
        server.make_directory(to)?;
    }
    result
}

fn read<S: FileServer>(server: &mut S, name: &Name, offset: u64, mut buffer: Vec<u8>) -> Result<Finding> {
    let before = status_of(server, name)?;
    let mut file = server.open(&name.path, false)?;
    let count = server.read(&mut file, offset, &mut buffer)?;
    buffer.truncate(count);
    drop(file);
    status_of(server, name)?;
    Ok(Finding::Bytes(buffer, before))
}

/// Changes that an errand has made to a file, and the bytes that it has written.
struct Done {
    changes: u64,
    count: usize,
}

/// A change that writes no bytes.
const RESIZED: Done = Done { changes: 1, count: 0 };

/// Writes bytes by as many requests as that takes. Fails if the first request fails; if a later one does, the bytes
/// before it count as written.
fn write<S: FileServer>(server: &mut S, file: &mut S::File, offset: u64, bytes: &[u8]) -> Result<Done> {
    let mut done = Done { changes: 0, count: 0 };
    while done.count < bytes.len() {
        match server.write(file, offset + done.count as u64, &bytes[done.count..]) {
            Ok(count) => done = Done { changes: done.changes + 1, count: done.count + count },
            Err(_) if done.count > 0 => break,
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Changes a file by a function, which gets the status that the file had before.
fn change<S: FileServer>(
    server: &mut S,
    name: &Name,
    how: impl FnOnce(&mut S, &mut S::File, &Status) -> Result<Done>,
) -> Result<Finding> {
    status_of(server, name)?;
    let mut file = server.open(&name.path, true)?;
    // Another file may have come to the path before it was opened.
    let before = status_of(server, name)?;
    let Done { changes, count } = how(server, &mut file, &before)?;
    drop(file);
    let status = status_of(server, name)?;
    let is_exclusive = status.changes == before.changes + changes;
    Ok(Finding::Changed { status, before: is_exclusive.then_some(before.changes), count })
}
