//! The server at which threads meet.

use alloc::string::String;
use alloc::vec::Vec;

use tench::sys::Wait;
use tench::thread;
use tench_protocol::{Event, Later, Pending, interface};

/// Maximum number of threads that can wait together.
const CAPACITY: usize = 64;

/// A service that replies each number plus one.
#[interface(client = Meeting, version = 1)]
pub trait MeetingService {
    /// Replies at once.
    #[method(1)]
    fn at_once(&mut self, number: u64) -> Result<u64, Error>;

    /// Replies after yielding to all threads of the same priority, so that others call while one is served.
    #[method(3)]
    fn in_turn(&mut self, number: u64) -> Result<u64, Error>;

    /// Replies when `threads` callers wait, the last one first. Errors: `Full`.
    #[method(2)]
    fn together(&mut self, later: Later<'_, u64, Error>, number: u64, threads: u64) -> Result<Option<u64>, Error>;
}

tench_protocol::codes! {
    /// Reasons for which a request is refused.
    pub enum Error {
        /// Too many callers wait.
        Full = 1, "too many threads wait";
    }
}

/// The waiting callers.
struct Table {
    waiting: Vec<(u64, Pending<u64, Error>)>,
    /// Number of callers to wait for.
    threads: usize,
}

impl MeetingService for Table {
    fn at_once(&mut self, number: u64) -> Result<u64, Error> {
        Ok(number + 1)
    }

    fn in_turn(&mut self, number: u64) -> Result<u64, Error> {
        thread::yield_now();
        Ok(number + 1)
    }

    fn together(&mut self, later: Later<'_, u64, Error>, number: u64, threads: u64) -> Result<Option<u64>, Error> {
        if self.waiting.len() >= CAPACITY {
            return Err(Error::Full);
        }
        self.threads = threads as usize;
        self.waiting.push((number, later.keep().map_err(|_| Error::Full)?));
        Ok(None)
    }
}

/// Runs the server's process, which serves until it is killed.
pub fn serve() -> Result<(), String> {
    let mut table = Table { waiting: Vec::with_capacity(CAPACITY), threads: 0 };
    let mut port = tench::server::port(0, 1);
    loop {
        if port.next(Wait::FOREVER) == Event::Request {
            port.carry_out(|request, context, reply| Meeting::dispatch(&mut table, request, context, reply));
        }
        if table.waiting.len() >= table.threads {
            while let Some((number, pending)) = table.waiting.pop() {
                port.finish(pending, &Ok(number + 1));
            }
        }
    }
}
