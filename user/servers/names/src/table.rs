//! Names, whom they belong to, and who waits for them.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Bound;

use tench_names_client::protocol::{Error, MAX_NAME};

/// Bytes of heap that [`Table::register`] or [`Table::wait`] may need, or any other request until it is answered, with
/// at most 1024 names and 256 waiting threads. A test counts.
pub const GROWTH: usize = 24 << 10;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<C> {
    /// The process that registered it.
    pub owner: u64,
    /// The capability that it stands for.
    pub cap: C,
}

/// Somebody who waits for a name.
struct Waiter<R> {
    name: String,
    process: u64,
    reply: R,
}

/// The table. `C` is a capability, `R` what it takes to answer somebody later.
pub struct Table<C, R> {
    names: BTreeMap<String, Entry<C>>,
    waiters: Vec<Waiter<R>>,
    max_names: usize,
    max_waiters: usize,
}

impl<C: Copy, R> Table<C, R> {
    /// An empty table for `max_names` names and `max_waiters` waiting threads.
    pub const fn new(max_names: usize, max_waiters: usize) -> Table<C, R> {
        Table { names: BTreeMap::new(), waiters: Vec::new(), max_names, max_waiters }
    }

    /// Whether a capability could be registered under this name.
    pub fn check_register(&self, name: &str) -> Result<(), Error> {
        check_name(name)?;
        if self.names.contains_key(name) {
            return Err(Error::Taken);
        }
        if self.names.len() >= self.max_names {
            return Err(Error::Full);
        }
        Ok(())
    }

    /// What a process has registered under this name itself.
    pub fn own(&self, name: &str, process: u64) -> Option<C> {
        self.names.get(name).filter(|entry| entry.owner == process).map(|entry| entry.cap)
    }

    /// Registers a name, and answers who waited for it, in the order in which they came.
    pub fn register(&mut self, name: &str, owner: u64, cap: C) -> Result<Vec<R>, Error> {
        self.check_register(name)?;
        self.names.insert(name.to_owned(), Entry { owner, cap });
        Ok(self.waiters.extract_if(.., |waiter| waiter.name == name).map(|waiter| waiter.reply).collect())
    }

    /// What a name stands for.
    pub fn look_up(&self, name: &str) -> Result<C, Error> {
        check_name(name)?;
        self.names.get(name).map(|entry| entry.cap).ok_or(Error::Unknown)
    }

    /// Whether somebody more may wait.
    pub const fn may_wait(&self) -> bool {
        self.waiters.len() < self.max_waiters
    }

    /// Lets somebody wait for a name that is unknown.
    pub fn wait(&mut self, name: &str, process: u64, reply: R) {
        self.waiters.push(Waiter { name: name.to_owned(), process, reply });
    }

    /// Forgets a name, and answers the capability that it stood for.
    pub fn unregister(&mut self, name: &str, process: u64) -> Result<C, Error> {
        check_name(name)?;
        match self.names.get(name) {
            None => Err(Error::Unknown),
            Some(entry) if entry.owner != process => Err(Error::NotYours),
            Some(entry) => {
                let cap = entry.cap;
                self.names.remove(name);
                Ok(cap)
            }
        }
    }

    /// The first name after `name` in alphabetical order, and who registered it.
    pub fn next(&self, name: &str) -> Option<(&str, u64)> {
        let range = (Bound::Excluded(name), Bound::Unbounded);
        self.names.range::<str, _>(range).next().map(|(name, entry)| (name.as_str(), entry.owner))
    }

    /// Forgets what a process registered and what it waited for. Answers capabilities and replies that are free now.
    pub fn process_ended(&mut self, process: u64) -> (Vec<C>, Vec<R>) {
        let caps = self.names.values().filter(|entry| entry.owner == process).map(|entry| entry.cap).collect();
        self.names.retain(|_, entry| entry.owner != process);
        let ended = self.waiters.extract_if(.., |waiter| waiter.process == process);
        (caps, ended.map(|waiter| waiter.reply).collect())
    }
}

/// Whether a name is one.
fn check_name(name: &str) -> Result<(), Error> {
    let good = !name.is_empty() && name.len() <= MAX_NAME && !name.contains(char::is_control);
    if good { Ok(()) } else { Err(Error::BadName) }
}
