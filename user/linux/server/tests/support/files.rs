//! Tench's file server on the host: its real tree and byte streams, without messages.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use tench_files::ends::{Ends, Outcome};
use tench_files::tree::{Requester, Tree};
use tench_files_interface::protocol::{Error, How, Status, Usage};
use tench_linux::mounts::errand::{self, Errand, FileServer, Finding};
use tench_linux_files::Errno;
use tench_quota::Client;
use tench_stream::protocol::{Error as StreamError, MAX_DATA};
use tench_sys::Instant;

/// The instance, as the server knows it.
const OWN: Requester = Requester { client: Client::alone(5), is_entitled: false };
/// Another program, which may change all files.
pub const OTHER: Requester = Requester { client: Client::alone(6), is_entitled: true };
/// Number of blocks that files' contents may have.
const BLOCKS: usize = 512;

/// A file server, and the errands that wait for it.
#[derive(Clone, Debug)]
pub struct Files {
    pub ends: Rc<RefCell<Ends<()>>>,
    pub errands: VecDeque<(u64, Errand)>,
    /// Set if there is no memory for the thread that does errands.
    pub is_short: bool,
}

impl Default for Files {
    fn default() -> Files {
        let mut tree = Tree::new(100, BLOCKS, 1_000_000_000);
        tree.add_archive_file("bin/hello", b"hello program").unwrap();
        tree.add_archive_file("share/text/motd", b"welcome").unwrap();
        tree.add_common_directory("tmp").unwrap();
        Files { ends: Rc::new(RefCell::new(Ends::new(tree))), errands: VecDeque::new(), is_short: false }
    }
}

/// An open file.
pub struct Open {
    end: u64,
    ends: Rc<RefCell<Ends<()>>>,
}

impl Drop for Open {
    fn drop(&mut self) {
        let closed = self.ends.borrow_mut().close(self.end, |()| ());
        assert!(closed.is_ok(), "an end was closed already");
    }
}

impl Files {
    /// Opens a file for a program.
    pub fn open_for(&self, by: Requester, path: &str, how: How) -> Result<Open, Error> {
        let end = self.ends.borrow_mut().open(by, path, how)?;
        Ok(Open { end, ends: Rc::clone(&self.ends) })
    }

    /// Lets another program replace a file's contents, or make the file.
    pub fn put(&mut self, path: &str, bytes: &[u8]) {
        let mut file = self.open_for(OTHER, path, How::Write).unwrap();
        self.write_all(&mut file, 0, bytes);
    }

    /// Writes bytes from an offset on.
    pub fn write_all(&mut self, file: &mut Open, offset: u64, bytes: &[u8]) {
        for (index, part) in bytes.chunks(MAX_DATA).enumerate() {
            self.write(file, offset + (index * MAX_DATA) as u64, part).unwrap();
        }
    }

    /// Returns the contents of a file.
    pub fn contents(&mut self, path: &str) -> Result<Vec<u8>, Error> {
        let mut file = self.open_for(OTHER, path, How::Read)?;
        let mut bytes = vec![0; 4 << 20];
        let count = self.read(&mut file, 0, &mut bytes).unwrap();
        bytes.truncate(count);
        Ok(bytes)
    }

    /// Lets time go on, so that each request has a time of its own.
    fn tick(&self) {
        let tree = &mut self.ends.borrow_mut().tree;
        tree.now = Instant::from_ticks(tree.now.ticks() + 1000);
    }

    /// Does the next errand. Returns the errand's number and result.
    pub fn do_errand(&mut self) -> Option<(u64, Result<Finding, Errno>)> {
        let (number, errand) = self.errands.pop_front()?;
        Some((number, errand::run(self, errand)))
    }
}

fn stream<T>(outcome: Outcome<T>) -> Result<T, Errno> {
    let Outcome::Now(result) = outcome else { panic!("requests to files never wait") };
    result.map_err(errand::errno_of_stream)
}

impl FileServer for Files {
    type File = Open;

    fn status(&mut self, path: &str) -> Result<Status, Errno> {
        self.ends.borrow().tree.status(path).map_err(errand::errno)
    }

    fn next(&mut self, directory: &str, after: &str) -> Result<Option<(String, Status)>, Errno> {
        match self.ends.borrow().tree.next(directory, after) {
            Ok((status, name)) => Ok(Some((name.to_owned(), status))),
            Err(Error::NoMoreEntries) => Ok(None),
            Err(error) => Err(errand::errno(error)),
        }
    }

    fn open(&mut self, path: &str, writes: bool) -> Result<Open, Errno> {
        self.open_for(OWN, path, if writes { How::Update } else { How::Read }).map_err(errand::errno)
    }

    fn create(&mut self, path: &str) -> Result<(), Errno> {
        self.tick();
        self.open_for(OWN, path, How::CreateNew).map(drop).map_err(errand::errno)
    }

    fn read(&mut self, file: &mut Open, offset: u64, into: &mut [u8]) -> Result<usize, Errno> {
        let mut ends = self.ends.borrow_mut();
        ends.seek(file.end, offset).map_err(errand::errno_of_stream)?;
        let mut done = 0;
        while done < into.len() {
            let data = stream(ends.read(file.end, MAX_DATA.min(into.len() - done)))?;
            if data.is_empty() {
                break;
            }
            into[done..done + data.len()].copy_from_slice(&data);
            done += data.len();
        }
        Ok(done)
    }

    fn write(&mut self, file: &mut Open, offset: u64, bytes: &[u8]) -> Result<usize, Errno> {
        self.tick();
        let mut ends = self.ends.borrow_mut();
        ends.seek(file.end, offset).map_err(errand::errno_of_stream)?;
        let part = &bytes[..bytes.len().min(MAX_DATA)];
        stream(ends.write(file.end, part)).map(|()| part.len())
    }

    fn resize(&mut self, file: &mut Open, size: u64) -> Result<(), Errno> {
        self.tick();
        let result: Result<(), StreamError> = self.ends.borrow_mut().truncate(file.end, size);
        result.map_err(errand::errno_of_stream)
    }

    fn make_directory(&mut self, path: &str) -> Result<(), Errno> {
        self.tick();
        self.ends.borrow_mut().tree.make_directory(OWN, path).map_err(errand::errno)
    }

    fn remove(&mut self, path: &str) -> Result<(), Errno> {
        self.tick();
        self.ends.borrow_mut().tree.remove(OWN, path).map_err(errand::errno)
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), Errno> {
        self.tick();
        self.ends.borrow_mut().tree.rename(OWN, from, to).map_err(errand::errno)
    }

    fn usage(&mut self) -> Result<Usage, Errno> {
        Ok(self.ends.borrow().usage())
    }
}
