//! Files and directories. Their semantics: `docs/manual/streams.md`.

use alloc::string::String;
use alloc::vec::Vec;

use tench_files_interface::Files;
use tench_files_interface::protocol::{Error as FilesError, How, Status};
use tench_procs_interface::protocol::MAX_APPEND;
use tench_procs_interface::{Procs, Spawn};
use tench_protocol::{Failure, again};

use crate::io::{End, Error, Read, Write};

/// Opens a file.
pub fn open_as(path: &str, how: How) -> Result<End, Error> {
    End::requested(|slot| again(|| Files::STANDARD.open(path, how, slot)).map(drop).map_err(Error::Files))
}

/// Opens a file for reading.
pub fn open(path: &str) -> Result<End, Error> {
    open_as(path, How::Read)
}

/// Creates a file, or empties it, and opens it for writing.
pub fn create(path: &str) -> Result<End, Error> {
    open_as(path, How::Write)
}

/// Opens a file for appending, and creates it if it does not exist.
pub fn append(path: &str) -> Result<End, Error> {
    open_as(path, How::Append)
}

/// Returns the contents of a file.
pub fn read(path: &str) -> Result<Vec<u8>, Error> {
    let mut file = open(path)?;
    let mut all = Vec::new();
    let mut part = [0; tench_stream::protocol::MAX_DATA];
    loop {
        match file.read(&mut part)? {
            0 => return Ok(all),
            count => all.extend_from_slice(&part[..count]),
        }
    }
}

/// Creates a process builder for the program in a file, which this process reads and transfers to a process server.
pub fn prepare(procs: Procs, path: &str) -> Result<Spawn, Error> {
    let mut file = open(path)?;
    let spawn = procs.prepare_of(path, file.info()?.size).map_err(Error::Procs)?;
    let handed = hand_over(&mut file, &spawn);
    if handed.is_err() {
        spawn.abandon();
    }
    handed.map(|()| spawn)
}

fn hand_over(file: &mut End, to: &Spawn) -> Result<(), Error> {
    let mut part = [0; MAX_APPEND];
    loop {
        match file.read(&mut part)? {
            0 => return Ok(()),
            count => to.write(&part[..count]).map_err(Error::Procs)?,
        }
    }
}

/// Replaces the contents of a file, which it creates if needed, by these bytes.
pub fn write(path: &str, bytes: &[u8]) -> Result<(), Error> {
    create(path)?.write(bytes)
}

/// Returns the status of the file or directory at a path.
pub fn status(path: &str) -> Result<Status, Error> {
    again(|| Files::STANDARD.status(path)).map_err(Error::Files)
}

/// Makes a directory.
pub fn make_directory(path: &str) -> Result<(), Error> {
    again(|| Files::STANDARD.make_directory(path)).map_err(Error::Files)
}

/// Removes a file or an empty directory.
pub fn remove(path: &str) -> Result<(), Error> {
    again(|| Files::STANDARD.remove(path)).map_err(Error::Files)
}

/// Renames a file or directory.
pub fn rename(from: &str, to: &str) -> Result<(), Error> {
    again(|| Files::STANDARD.rename(from, to)).map_err(Error::Files)
}

/// Returns an iterator over the entries of a directory, by name.
pub fn entries(directory: &str) -> Entries<'_> {
    Entries { directory, last: String::new(), has_failed: false }
}

/// Iterator over the [entries] of a directory. Entries made or removed meanwhile may or may not be among them.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    directory: &'a str,
    last: String,
    has_failed: bool,
}

impl Iterator for Entries<'_> {
    type Item = Result<(String, Status), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        match again(|| Files::STANDARD.next(self.directory, &self.last)) {
            Ok((status, name)) => {
                self.last = String::from(name.as_str());
                Some(Ok((self.last.clone(), status)))
            }
            Err(Failure::Refused(FilesError::NoMoreEntries)) => None,
            Err(failure) => {
                self.has_failed = true;
                Some(Err(Error::Files(failure)))
            }
        }
    }
}
