//! Files and directories. What they are: `docs/manual/streams.md`.

use alloc::string::String;
use alloc::vec::Vec;

use tench_files_client::Files;
use tench_files_client::protocol::{Error as Refusal, How, Status};
use tench_protocol::{Failure, again};

use crate::io::{End, Error, Read, Write};

/// Opens a file.
pub fn open_as(path: &str, how: How) -> Result<End, Error> {
    End::answered(|slot| again(|| Files::STANDARD.open(path, how, slot)).map(drop).map_err(Error::Files))
}

/// Opens a file to read it.
pub fn open(path: &str) -> Result<End, Error> {
    open_as(path, How::Read)
}

/// Makes a file, or makes it empty, to write it.
pub fn create(path: &str) -> Result<End, Error> {
    open_as(path, How::Write)
}

/// Opens a file to write behind what is there, or makes it.
pub fn append(path: &str) -> Result<End, Error> {
    open_as(path, How::Append)
}

/// Everything in a file.
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

/// Makes a file of these bytes instead of what is there.
pub fn write(path: &str, bytes: &[u8]) -> Result<(), Error> {
    create(path)?.write(bytes)
}

/// What lies at a path.
pub fn status(path: &str) -> Result<Status, Error> {
    again(|| Files::STANDARD.status(path)).map_err(Error::Files)
}

/// Makes a directory.
pub fn make_directory(path: &str) -> Result<(), Error> {
    again(|| Files::STANDARD.make_directory(path)).map_err(Error::Files)
}

/// Removes a file, or a directory with nothing in it.
pub fn remove(path: &str) -> Result<(), Error> {
    again(|| Files::STANDARD.remove(path)).map_err(Error::Files)
}

/// Gives a file or directory another path.
pub fn rename(from: &str, to: &str) -> Result<(), Error> {
    again(|| Files::STANDARD.rename(from, to)).map_err(Error::Files)
}

/// The entries of a directory, by name.
pub fn entries(directory: &str) -> Entries<'_> {
    Entries { directory, last: String::new(), has_failed: false }
}

/// Iterator over the [entries] of a directory. What is made or removed meanwhile may be among them or not.
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
            Err(Failure::Refused(Refusal::NoMoreEntries)) => None,
            Err(failure) => {
                self.has_failed = true;
                Some(Err(Error::Files(failure)))
            }
        }
    }
}
