//! A thread that does errands at Tench's file server, so that only the calls that need the errands wait for the server.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use tench::files::Files;
use tench::files::protocol::{How, Status, Usage};
use tench::fs;
use tench::io::{self, End, Read};
use tench::memory::take_slot;
use tench::stream::protocol::MAX_DATA;
use tench::sync::{Mutex, Semaphore};
use tench::sys::{Cap, Notification, Rights};
use tench::thread::Builder;
use tench_linux::mounts::errand::{self, Errand, FileServer, Finding};
use tench_linux_files::Errno;
use tench_protocol::{Failure, again};

/// The bit of the notification that this thread signals.
pub const BIT: u64 = 8;

/// Size of the thread's stack in bytes.
const STACK: usize = 32 * 1024;

/// Number of an errand, and its result.
type Numbered = (u64, Result<Finding, Errno>);

/// State that the personality's main thread and the worker's thread share.
struct Shared {
    /// Released once for each errand.
    waiting: Semaphore,
    errands: Mutex<VecDeque<(u64, Errand)>>,
    findings: Mutex<Vec<Numbered>>,
    /// Signalled for each finding.
    arrived: Cap<Notification>,
}

impl Shared {
    fn do_errands(&self) {
        loop {
            self.waiting.acquire();
            let Some((number, errand)) = self.errands.lock().pop_front() else { continue };
            self.finding(number, errand::run(&mut Server, errand));
        }
    }

    fn finding(&self, number: u64, finding: Result<Finding, Errno>) {
        self.findings.lock().push((number, finding));
        let signalled = self.arrived.signal();
        debug_assert!(signalled.is_ok(), "the notification lives as long as the process");
    }
}

/// The main thread's access to the thread that does errands.
pub struct Worker {
    /// The notification that ends the personality's waits for messages.
    arrived: Cap<Notification>,
    /// Set when the first mount is made: most instances have none.
    shared: Option<Arc<Shared>>,
}

impl core::fmt::Debug for Worker {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Worker").field("arrived", &self.arrived).finish_non_exhaustive()
    }
}

impl Worker {
    /// Returns a worker that signals [`BIT`] of a notification.
    pub const fn new(arrived: Cap<Notification>) -> Worker {
        Worker { arrived, shared: None }
    }

    /// Starts the thread, unless it runs already.
    pub fn start(&mut self) -> Result<(), tench::memory::Error> {
        if self.shared.is_some() {
            return Ok(());
        }
        let arrived = self.arrived.mint_to(take_slot()?, Rights::WRITE, BIT)?;
        let (errands, findings) = (Mutex::new(VecDeque::new()), Mutex::new(Vec::new()));
        let shared = Arc::new(Shared { waiting: Semaphore::new(0), errands, findings, arrived });
        let other = Arc::clone(&shared);
        Builder::new().name("files").stack_size(STACK).spawn(move || other.do_errands())?.detach();
        self.shared = Some(shared);
        Ok(())
    }

    /// Gives an errand to the thread, which must have been started.
    pub fn send(&self, number: u64, errand: Errand) {
        let Some(shared) = &self.shared else { return debug_assert!(false, "the thread was started") };
        shared.errands.lock().push_back((number, errand));
        let released = shared.waiting.release();
        debug_assert!(
            released.is_ok(),
            "each thread has one errand at a time, and there are fewer threads than a semaphore counts"
        );
    }

    /// Takes the findings that have arrived.
    pub fn take_findings(&self) -> Vec<Numbered> {
        self.shared.as_ref().map_or(Vec::new(), |shared| core::mem::take(&mut *shared.findings.lock()))
    }
}

/// The standard file server, to which every program has a capability.
pub struct Server;

fn errno(error: io::Error) -> Errno {
    match error {
        io::Error::Files(Failure::Refused(refusal)) => errand::errno(refusal),
        io::Error::Stream(Failure::Refused(refusal)) => errand::errno_of_stream(refusal),
        io::Error::Memory(_) => Errno::ENOMEM,
        _ => Errno::EIO,
    }
}

impl FileServer for Server {
    type File = End;

    fn status(&mut self, path: &str) -> Result<Status, Errno> {
        fs::status(path).map_err(errno)
    }

    fn next(&mut self, directory: &str, after: &str) -> Result<Option<(String, Status)>, Errno> {
        match again(|| Files::STANDARD.next(directory, after)) {
            Ok((status, name)) => Ok(Some((String::from(name.as_str()), status))),
            Err(Failure::Refused(tench::files::Error::NoMoreEntries)) => Ok(None),
            Err(failure) => Err(errno(io::Error::Files(failure))),
        }
    }

    fn open(&mut self, path: &str, writes: bool) -> Result<End, Errno> {
        fs::open_as(path, if writes { How::Update } else { How::Read }).map_err(errno)
    }

    fn create(&mut self, path: &str) -> Result<(), Errno> {
        fs::open_as(path, How::CreateNew).map(drop).map_err(errno)
    }

    fn read(&mut self, file: &mut End, offset: u64, into: &mut [u8]) -> Result<usize, Errno> {
        file.seek(offset).map_err(errno)?;
        let mut done = 0;
        while done < into.len() {
            match file.read(&mut into[done..]).map_err(errno)? {
                0 => break,
                count => done += count,
            }
        }
        Ok(done)
    }

    fn write(&mut self, file: &mut End, offset: u64, bytes: &[u8]) -> Result<usize, Errno> {
        file.seek(offset).map_err(errno)?;
        let part = &bytes[..bytes.len().min(MAX_DATA)];
        file.stream().write(part).map(|()| part.len()).map_err(|failure| errno(io::Error::Stream(failure)))
    }

    fn resize(&mut self, file: &mut End, size: u64) -> Result<(), Errno> {
        file.truncate(size).map_err(errno)
    }

    fn make_directory(&mut self, path: &str) -> Result<(), Errno> {
        fs::make_directory(path).map_err(errno)
    }

    fn remove(&mut self, path: &str) -> Result<(), Errno> {
        fs::remove(path).map_err(errno)
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), Errno> {
        fs::rename(from, to).map_err(errno)
    }

    fn usage(&mut self) -> Result<Usage, Errno> {
        again(|| Files::STANDARD.usage()).map_err(|failure| errno(io::Error::Files(failure)))
    }
}
