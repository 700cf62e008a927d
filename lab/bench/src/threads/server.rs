//! A server of locks, and its client.

use alloc::collections::VecDeque;
use alloc::string::String;

use tench::sys::Wait;
use tench_protocol::{Context, Event, Flow, Later, Pending, Port, interface};

use super::{Locks, problem};
use crate::child::Child;

/// Locks of the server.
const LOCKS: usize = 65;
/// Its priority: that of servers is higher than that of their clients.
const PRIORITY: u8 = 130;

/// Locks that whoever asks first gets first.
#[interface(client = LockClient, version = 1)]
pub trait LockService {
    /// Takes a lock, and waits for it if need be.
    /// Errors: `NoSuchLock`, `OutOfMemory`.
    #[method(1)]
    fn lock(&mut self, later: Later<'_, (), Error>, index: u64) -> Result<Option<()>, Error>;

    /// Gives a lock up.
    /// Errors: `NoSuchLock`, `NotHeld`.
    #[method(2)]
    fn unlock(&mut self, index: u64) -> Result<(), Error>;

    /// How many wait for a lock.
    /// Errors: `NoSuchLock`.
    #[method(3)]
    fn waiting(&mut self, index: u64) -> Result<u64, Error>;
}

tench_protocol::codes! {
    /// Why a request was refused.
    pub enum Error {
        /// There is no such lock.
        NoSuchLock = 1, "no such lock";
        /// Nobody holds the lock.
        NotHeld = 2, "nobody holds the lock";
        /// Too many wait.
        OutOfMemory = 3, "too many wait";
    }
}

/// One lock.
#[derive(Default)]
struct Lock {
    held: bool,
    waiting: VecDeque<Pending<(), Error>>,
}

/// The server's state.
struct Table {
    locks: [Lock; LOCKS],
    /// Whoever has been handed a lock, and is to be answered.
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

/// The server's process: serves until it is killed.
pub fn serve() -> Result<(), String> {
    let mut table = Table { locks: core::array::from_fn(|_| Lock::default()), granted: None };
    let mut port: Port = tench::server::port(0, 1);
    loop {
        if port.next(Wait::FOREVER) == Event::Request {
            port.carry_out(|request, context: &mut Context<'_>, answer| -> Flow {
                LockClient::dispatch(&mut table, request, context, answer)
            });
            if let Some(granted) = table.granted.take() {
                port.finish(granted, &Ok(()));
            }
        }
    }
}

/// A server that runs.
pub struct Server {
    process: Child,
    client: LockClient,
}

impl Server {
    /// Starts it.
    pub fn start() -> Result<Server, String> {
        let process = Child::start("threads-server", PRIORITY)?;
        let client = LockClient::at(process.endpoint());
        Ok(Server { process, client })
    }

    /// Its locks.
    pub const fn locks(&self) -> Remote {
        Remote(self.client)
    }

    /// How many wait for the first lock.
    pub fn waiting(&self) -> Result<u64, String> {
        self.client.waiting(0).map_err(problem("the server"))
    }

    /// Checks that nobody waits any more, and gives up the one lock that is still held: the turn after the last.
    pub fn check(&self, threads: usize) -> Result<(), String> {
        for index in 0..=threads as u64 {
            if self.client.waiting(index).map_err(problem("the server"))? != 0 {
                return Err("threads: somebody still waits".into());
            }
            // Between two runs all are free.
            let _ = self.client.unlock(index);
        }
        Ok(())
    }

    /// Ends it.
    pub fn stop(self) -> Result<(), String> {
        self.process.stop()
    }
}

/// Locks at the server.
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
