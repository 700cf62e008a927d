//! The table of names, their registrants, and the threads that wait for names.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Bound;

use tench_names_interface::protocol::{Error, MAX_NAME};
use tench_protocol::{Caller, Powers};
use tench_quota::cursors::{Cursors, EVERYBODY, look};
use tench_quota::unconfirmed::Unconfirmed;
use tench_quota::{Client, Quota, allows};

/// Bytes of heap that [`Table::register`] or [`Table::wait`] may need, or any other request until it gets its reply,
/// with at most 1024 names and 256 waiting threads. A test counts.
pub const GROWTH: usize = 24 << 10;

/// Registration of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<C> {
    /// The process that registered it.
    pub owner: u64,
    /// The registered capability.
    pub cap: C,
}

/// A thread that waits for a name.
struct Waiter<R> {
    name: String,
    client: Client,
    reply: R,
}

/// The table. `C` is a capability, `R` what it takes to reply to a waiter later.
pub struct Table<C, R> {
    names: BTreeMap<String, Entry<C>>,
    waiters: Vec<Waiter<R>>,
    /// For each family, where [`take_out`](Self::take_out) continues.
    cursors: Cursors<usize>,
    /// Quota of names, by process and family.
    quota: Quota,
    /// Processes with names that have not been confirmed to run.
    unconfirmed: Unconfirmed,
    max_names: usize,
    max_waiters: usize,
}

impl<C: Copy, R> Table<C, R> {
    /// Returns an empty table for `max_names` names and `max_waiters` waiting threads.
    pub const fn new(max_names: usize, max_waiters: usize) -> Table<C, R> {
        Table {
            names: BTreeMap::new(),
            waiters: Vec::new(),
            cursors: Cursors::new(),
            quota: Quota::new(max_names),
            unconfirmed: Unconfirmed::new(),
            max_names,
            max_waiters,
        }
    }

    /// Checks that a process may register a capability under this name.
    pub fn check_register(&self, name: &str, owner: Client) -> Result<(), Error> {
        self.check_name(name)?;
        if self.quota.may_take(owner) { Ok(()) } else { Err(Error::Full) }
    }

    /// Checks that the name is valid and free.
    fn check_name(&self, name: &str) -> Result<(), Error> {
        check_name(name)?;
        if self.names.contains_key(name) { Err(Error::Taken) } else { Ok(()) }
    }

    /// Returns the capability that this process has registered under this name.
    pub fn own(&self, name: &str, process: u64) -> Option<C> {
        self.names.get(name).filter(|entry| entry.owner == process).map(|entry| entry.cap)
    }

    /// Registers a name, and returns its waiters (process, reply), in the order of their arrival. The owner's quota is
    /// not checked here, only whether there is room: [`check_register`](Self::check_register) decides whether it may
    /// have one more.
    pub fn register(&mut self, name: &str, owner: Client, cap: C) -> Result<Vec<(u64, R)>, Error> {
        self.check_name(name)?;
        if self.names.len() >= self.max_names {
            return Err(Error::Full);
        }
        if self.quota.held(owner.process) == 0 {
            self.unconfirmed.note(owner.process);
        }
        self.quota.take(owner);
        self.names.insert(name.to_owned(), Entry { owner: owner.process, cap });
        let waited = self.waiters.extract_if(.., |waiter| waiter.name == name);
        Ok(waited.map(|waiter| (waiter.client.process, waiter.reply)).collect())
    }

    /// Returns the capability of a name.
    pub fn look_up(&self, name: &str) -> Result<C, Error> {
        check_name(name)?;
        self.names.get(name).map(|entry| entry.cap).ok_or(Error::Unknown)
    }

    /// Returns whether one more thread of a client may wait.
    pub fn may_wait(&self, client: Client) -> bool {
        let own = self.waiters.iter().filter(|waiter| waiter.client.family == client.family).count();
        allows(own, self.waiters.len(), self.max_waiters)
    }

    /// Removes waits, of a family or of all, whose threads have stopped waiting without notice, as `has_gone` reports.
    /// Checks at most `looks`, and others the next time.
    pub fn take_out(&mut self, family: Option<u64>, looks: usize, has_gone: impl FnMut(&R) -> bool) -> Vec<R> {
        let number = family.unwrap_or(EVERYBODY);
        let is_meant = |waiter: &Waiter<R>| family.is_none_or(|family| waiter.client.family == family);
        let from = self.cursors.take(number);
        let waiters = self.waiters.iter().filter(|waiter| is_meant(waiter)).map(|waiter| &waiter.reply);
        let (gone, next) = look(from, looks, waiters, has_gone);
        self.cursors.put(number, next);
        let mut index = 0..;
        let is_gone =
            |waiter: &mut Waiter<R>| is_meant(waiter) && index.next().is_some_and(|index| gone.contains(&index));
        self.waiters.extract_if(.., is_gone).map(|waiter| waiter.reply).collect()
    }

    /// Adds a thread that waits for an unknown name.
    pub fn wait(&mut self, name: &str, client: Client, reply: R) {
        self.waiters.push(Waiter { name: name.to_owned(), client, reply });
    }

    /// Removes a name, and returns its capability.
    pub fn unregister(&mut self, name: &str, process: u64) -> Result<C, Error> {
        check_name(name)?;
        match self.names.get(name) {
            None => Err(Error::Unknown),
            Some(entry) if entry.owner != process => Err(Error::NotYours),
            Some(entry) => {
                let cap = entry.cap;
                self.names.remove(name);
                self.quota.give_back(process);
                if self.quota.held(process) == 0 {
                    self.unconfirmed.forget(process);
                }
                Ok(cap)
            }
        }
    }

    /// Returns the first name after `name` in alphabetical order, and its registrant.
    pub fn next(&self, name: &str) -> Option<(&str, u64)> {
        let range = (Bound::Excluded(name), Bound::Unbounded);
        self.names.range::<str, _>(range).next().map(|(name, entry)| (name.as_str(), entry.owner))
    }

    /// Removes an ended process's names and waits. Returns the freed capabilities and replies.
    pub fn process_ended(&mut self, process: u64) -> (Vec<C>, Vec<R>) {
        let mut caps = Vec::new();
        if self.quota.held(process) > 0 {
            caps.extend(self.names.values().filter(|entry| entry.owner == process).map(|entry| entry.cap));
            self.names.retain(|_, entry| entry.owner != process);
            caps.iter().for_each(|_| self.quota.give_back(process));
            self.unconfirmed.forget(process);
        }
        let gone = self.waiters.extract_if(.., |waiter| waiter.client.process == process);
        (caps, gone.map(|waiter| waiter.reply).collect())
    }

    /// Returns a process with names, of the same core as `process`, of which that core's process server is to be asked
    /// whether it runs.
    pub fn question(&self, process: u64) -> Option<u64> {
        self.unconfirmed.next(process)
    }

    /// Notes that a process runs, so that its end will be reported.
    pub fn process_lives(&mut self, process: u64) {
        self.unconfirmed.forget(process);
    }

    /// Panics if an invariant does not hold.
    pub fn check_invariants(&self) {
        self.quota.check_invariants();
        assert!(self.names.len() <= self.max_names && self.waiters.len() <= self.max_waiters);
        assert_eq!(self.quota.taken(), self.names.len());
        assert!(
            self.unconfirmed.iter().all(|process| self.quota.held(process) > 0),
            "who has nothing is not asked about"
        );
        for entry in self.names.values() {
            let all = self.names.values().filter(|other| other.owner == entry.owner).count();
            assert_eq!(self.quota.held(entry.owner), all);
        }
    }
}

/// Returns whether a name is the system's: one without a `/`.
pub fn is_system(name: &str) -> bool {
    !name.contains('/')
}

/// Checks that a client with these powers may register a name. Fails with `NotAllowed` if the name is the system's and
/// the power is missing.
pub fn check_power(name: &str, powers: Powers) -> Result<(), Error> {
    if is_system(name) && !powers.contains(Powers::NAMES) { Err(Error::NotAllowed) } else { Ok(()) }
}

/// Returns the badge of a capability to what is registered under a name, for a client that looked it up: only the
/// system's servers learn the client's powers.
pub fn badge_for(name: &str, caller: Caller, powers: Powers) -> u64 {
    caller.badge(if caller == Caller::AUTHORITY || !is_system(name) { Powers::empty() } else { powers })
}

/// Checks that a name is valid.
fn check_name(name: &str) -> Result<(), Error> {
    let good = !name.is_empty() && name.len() <= MAX_NAME && !name.contains(char::is_control);
    if good { Ok(()) } else { Err(Error::BadName) }
}
