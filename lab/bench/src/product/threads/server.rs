//! A lock server, and its client.

use alloc::collections::VecDeque;
use alloc::string::String;

use tench::sys::Wait;
use tench_protocol::{Context, Event, Flow, Later, Pending, Port, interface};

use super::{Locks, problem};
use crate::support::Child;

/// Number of locks.
const LOCKS: usize = 65;
/// Priority of the server: servers' priorities are above their clients'.
const PRIORITY: u8 = 130;

/// A service of fair locks: requests are granted in order.
#[interface(client = LockClient, version = 1)]
pub trait LockService {
    /// Takes a lock, and waits for it if need be.
    /// Errors: `NoSuchLock`, `OutOfMemory`.
    #[method(1)]
    fn lock(&mut self, later: Later<'_, (), Error>, index: u64) -> Result<Option<()>, Error>;

    /// Releases a lock. Errors: `NoSuchLock`, `NotHeld`.
    #[method(2)]
    fn unlock(&mut self, index: u64) -> Result<(), Error>;

    /// Replies the number of waiters for a lock. Errors: `NoSuchLock`.
    #[method(3)]
    fn waiting(&mut self, index: u64) -> Result<u64, Error>;
}

tench_protocol::codes! {
    /// Reasons for which a request is refused.
    pub enum Error {
        /// There is no such lock.
        NoSuchLock = 1, "no such lock";
        /// No client holds the lock.
        NotHeld = 2, "nobody holds the lock";
        /// Too many clients wait.
        OutOfMemory = 3, "too many wait";
    }
}

/// A lock.
#[derive(Default)]
struct Lock {
    held: bool,
    waiting: VecDeque<Pending<(), Error>>,
}

/// State of the server.
struct Table {
    locks: [Lock; LOCKS],
    /// Client that has been handed a lock, and must get a reply.
    granted: Option<Pending<(), Error>>,
}

impl Table {
    fn get(&mut self, index: u64) -> Result<&mut Lock, Error> {
        usize::try_from(index).ok().and_then(|index| self.locks.get_mut(index)).ok_or(Error::NoSuchLock)
    }
}

impl LockService for Table {
    fn lock(&mut self, later: Later<'_, (), Error>, index: u64) -> Result<Option<()>, Error> {
        let lock = self.get(index)?;
        if !lock.held {
            lock.held = true;
            return Ok(Some(()));
        }
        lock.waiting.push_back(later.keep().map_err(|_| Error::OutOfMemory)?);
        Ok(None)
    }

    fn unlock(&mut self, index: u64) -> Result<(), Error> {
        let lock = self.get(index)?;
        if !lock.held {
            return Err(Error::NotHeld);
        }
        let next = lock.waiting.pop_front();
        lock.held = next.is_some();
        self.granted = next;
        Ok(())
    }

    fn waiting(&mut self, index: u64) -> Result<u64, Error> {
        self.get(index).map(|lock| lock.waiting.len() as u64)
    }
}

/// Runs the server's process, which serves until it is killed.
pub fn serve() -> Result<(), String> {
    let mut table = Table { locks: core::array::from_fn(|_| Lock::default()), granted: None };
    let mut port: Port = tench::server::port(0, 1);
    loop {
        if port.next(Wait::FOREVER) == Event::Request {
            port.carry_out(|request, context: &mut Context<'_>, reply| -> Flow {
                LockClient::dispatch(&mut table, request, context, reply)
            });
            if let Some(granted) = table.granted.take() {
                port.finish(granted, &Ok(()));
            }
        }
    }
}

/// A running server.
pub struct Server {
    process: Child,
    client: LockClient,
}

impl Server {
    /// Starts the server.
    pub fn start() -> Result<Server, String> {
        let process = Child::start("threads-server", PRIORITY)?;
        let client = LockClient::at(process.endpoint());
        Ok(Server { process, client })
    }

    /// Returns the server's locks.
    pub const fn locks(&self) -> Remote {
        Remote(self.client)
    }

    /// Returns the number of waiters for the first lock.
    pub fn waiting(&self) -> Result<u64, String> {
        self.client.waiting(0).map_err(problem("the server"))
    }

    /// Checks that no thread waits any more, and releases the one lock that is still held: the turn after the last.
    pub fn check(&self, threads: usize) -> Result<(), String> {
        for index in 0..=threads as u64 {
            if self.client.waiting(index).map_err(problem("the server"))? != 0 {
                return Err("somebody still waits".into());
            }
            // Between two runs all locks are free.
            let _ = self.client.unlock(index);
        }
        Ok(())
    }

    /// Ends the server.
    pub fn stop(self) -> Result<(), String> {
        self.process.stop()
    }
}

/// The server's locks, as a client uses them.
#[derive(Clone, Copy)]
pub struct Remote(LockClient);

impl Locks for Remote {
    fn lock(&self, index: usize) {
        if let Err(failure) = self.0.lock(index as u64) {
            panic!("a lock was not taken: {failure}");
        }
    }

    fn unlock(&self, index: usize) {
        if let Err(failure) = self.0.unlock(index as u64) {
            panic!("a lock was not given up: {failure}");
        }
    }
}
