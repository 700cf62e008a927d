//! What is known about each process, living or ended.
//!
//! Ending a process needs no memory that stays: its place among the ended is made when it is prepared. What else a
//! request allocates is bounded, [`GROWTH`] by one that adds something and [`BRIEFLY`] by any, so that the server can see
//! to it before that there is so much; a test counts.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use tench_mem_client::protocol::NO_QUOTA;
use tench_procs_client::protocol::{Error, State};

/// Processes that can exist at a time.
pub const MAX_LIVING: usize = 1024;
/// Records of ended processes that are kept; the oldest is forgotten first.
pub const MAX_ENDED: usize = 4096;
/// Threads that can wait for one process.
pub const MAX_WAITERS: usize = 256;

/// Bytes of heap that [`Records::prepare`] or [`Records::wait`] may need, beside arrays that may grow and say if they
/// cannot.
pub const GROWTH: usize = 12 << 10;
/// Bytes of heap that any request may need until it is answered.
pub const BRIEFLY: usize = 24 << 10;

/// How a process ended or what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Its state.
    pub state: State,
    /// What belongs to the state: exit code or kind of fault, otherwise 0.
    pub detail: u64,
}

impl Condition {
    /// A status to which nothing belongs.
    pub const fn plain(state: State) -> Condition {
        Condition { state, detail: 0 }
    }
}

/// A process. `K` is what the server keeps while it lives, `R` what it takes to answer somebody later.
pub struct Record<K, R> {
    /// The path or name by which it was started.
    pub name: String,
    /// The process that started it; 0 for `init`.
    pub parent: u64,
    /// What it does.
    pub status: Condition,
    /// Priority of its main thread.
    pub priority: u8,
    /// Highest priority that it may give.
    pub ceiling: u8,
    /// Whether it may manage processes that are not its descendants.
    pub manager: bool,
    /// Bytes of memory that it may have.
    pub quota: u64,
    /// Bytes of its program.
    pub size: u64,
    /// Kernel objects, of a process that this server started and that has not ended.
    pub kernel: Option<K>,
    waiters: Vec<(u64, R)>,
}

/// Everything that ends with a process.
pub struct Ended<K, R> {
    /// What the server kept.
    pub kernel: Option<K>,
    /// Those who waited for its end.
    pub waiters: Vec<R>,
    /// Replies to its own threads that nobody waits for any more.
    pub abandoned: Vec<R>,
}

/// All records.
pub struct Records<K, R> {
    /// By process identifier; identifiers are never used twice.
    records: Vec<Option<Box<Record<K, R>>>>,
    /// Living processes by path and by base name.
    names: BTreeMap<String, BTreeSet<u64>>,
    living: usize,
    /// Ended processes, the oldest first.
    ended: VecDeque<u64>,
}

impl<K, R> Default for Records<K, R> {
    fn default() -> Self {
        Records { records: Vec::new(), names: BTreeMap::new(), living: 0, ended: VecDeque::new() }
    }
}

impl<K, R> Records<K, R> {
    /// Makes a record with the next process identifier, in state `Preparing`.
    pub fn prepare(&mut self, name: &str, parent: u64, kernel: Option<K>) -> Result<u64, Error> {
        if self.living >= MAX_LIVING {
            return Err(Error::TooManyProcesses);
        }
        // Arrays that grow for ever, and the place where this process will be when it has ended.
        self.records.try_reserve(2).map_err(|_| Error::OutOfMemory)?;
        self.ended.try_reserve(self.living + 1).map_err(|_| Error::OutOfMemory)?;
        if self.records.is_empty() {
            self.records.push(None); // 0 is no process
        }
        let (priority, ceiling) = self.get(parent).map_or((0, 0), |parent| (parent.priority, parent.ceiling));
        let quota = self.get(parent).map_or(NO_QUOTA, |parent| parent.quota);
        let pid = self.records.len() as u64;
        self.records.push(Some(Box::new(Record {
            name: String::from(name),
            parent,
            status: Condition::plain(State::Preparing),
            priority,
            ceiling,
            manager: false,
            quota,
            size: 0,
            kernel,
            waiters: Vec::new(),
        })));
        self.living += 1;
        for key in keys(name) {
            self.names.entry(String::from(key)).or_default().insert(pid);
        }
        Ok(pid)
    }

    /// The record of a process.
    pub fn get(&self, pid: u64) -> Result<&Record<K, R>, Error> {
        self.records.get(pid as usize).and_then(Option::as_deref).ok_or(Error::NoSuchProcess)
    }

    /// The record of a process.
    pub fn get_mut(&mut self, pid: u64) -> Result<&mut Record<K, R>, Error> {
        self.records.get_mut(pid as usize).and_then(Option::as_deref_mut).ok_or(Error::NoSuchProcess)
    }

    /// The record with the next higher number.
    pub fn next(&self, after: u64) -> Option<(u64, &Record<K, R>)> {
        let first = usize::try_from(after).ok()?.checked_add(1)?;
        let rest = self.records.get(first..)?;
        rest.iter().enumerate().find_map(|(n, record)| Some(((first + n) as u64, record.as_deref()?)))
    }

    /// The living process of this path or base name with the next higher number.
    pub fn find(&self, name: &str, after: u64) -> Option<u64> {
        let key = name.trim_start_matches('/');
        self.names.get(key)?.range(after.checked_add(1)?..).next().copied()
    }

    /// Whether `caller` may kill, suspend, resume and inspect `pid`: itself, its descendants, or all if it manages.
    pub fn check_manage(&self, caller: u64, pid: u64) -> Result<(), Error> {
        self.get(pid)?;
        if self.get(caller).is_ok_and(|record| record.manager) {
            return Ok(());
        }
        let mut ancestor = pid;
        while ancestor > caller {
            // A parent has a lower number than its children, so this ends.
            ancestor = self.get(ancestor).map_or(0, |record| record.parent.min(ancestor - 1));
        }
        if ancestor == caller && caller != 0 { Ok(()) } else { Err(Error::NotAllowed) }
    }

    /// The record of a process that `caller` prepares.
    pub fn preparing(&mut self, caller: u64, pid: u64) -> Result<&mut Record<K, R>, Error> {
        let record = self.get_mut(pid)?;
        if record.parent != caller {
            return Err(Error::NotYours);
        }
        if record.status.state != State::Preparing {
            return Err(Error::WrongState);
        }
        Ok(record)
    }

    /// Processes that `parent` prepares and has not started.
    pub fn prepared_by(&self, parent: u64) -> Vec<u64> {
        let mut found = Vec::new();
        let mut pid = parent;
        while let Some((next, record)) = self.next(pid) {
            if record.parent == parent && record.status.state == State::Preparing {
                found.push(next);
            }
            pid = next;
        }
        found
    }

    /// How a process ended, or `None` if one more thread may wait for that: there is room for it.
    pub fn check_wait(&mut self, pid: u64) -> Result<Option<Condition>, Error> {
        let record = self.get_mut(pid)?;
        if record.status.state.has_ended() {
            return Ok(Some(record.status));
        }
        if record.waiters.len() >= MAX_WAITERS {
            return Err(Error::Full);
        }
        record.waiters.try_reserve(1).map_err(|_| Error::OutOfMemory)?;
        Ok(None)
    }

    /// Lets `waiter`'s thread wait for the end of a process that has not ended.
    pub fn wait(&mut self, pid: u64, waiter: u64, reply: R) {
        if let Ok(record) = self.get_mut(pid) {
            record.waiters.push((waiter, reply));
        }
    }

    /// Ends a process. Its record stays.
    pub fn end(&mut self, pid: u64, status: Condition) -> Result<Ended<K, R>, Error> {
        let record = self.get_mut(pid)?;
        if record.status.state.has_ended() {
            return Err(Error::WrongState);
        }
        record.status = status;
        let kernel = record.kernel.take();
        let waiters = core::mem::take(&mut record.waiters).into_iter().map(|(_, reply)| reply).collect();
        let name = record.name.clone();
        self.forget_name(pid, &name);
        self.living -= 1;
        self.ended.push_back(pid);
        if self.ended.len() > MAX_ENDED
            && let Some(oldest) = self.ended.pop_front()
        {
            self.records[oldest as usize] = None;
        }
        let mut abandoned = Vec::new();
        for record in self.records.iter_mut().flatten() {
            abandoned.extend(record.waiters.extract_if(.., |(waiter, _)| *waiter == pid).map(|(_, reply)| reply));
        }
        Ok(Ended { kernel, waiters, abandoned })
    }

    /// Removes a record that never became a process.
    pub fn discard(&mut self, pid: u64) -> Option<Ended<K, R>> {
        let ended = self.end(pid, Condition::plain(State::Killed)).ok()?;
        self.ended.retain(|&other| other != pid);
        self.records[pid as usize] = None;
        Some(ended)
    }

    fn forget_name(&mut self, pid: u64, name: &str) {
        for key in keys(name) {
            if let Some(pids) = self.names.get_mut(key) {
                pids.remove(&pid);
                if pids.is_empty() {
                    self.names.remove(key);
                }
            }
        }
    }

    /// Panics if an invariant does not hold.
    pub fn check_invariants(&self) {
        let living = |record: &&Record<K, R>| !record.status.state.has_ended();
        let records = || self.records.iter().flatten().map(|record| &**record);
        assert_eq!(records().filter(living).count(), self.living);
        assert_eq!(records().count() - self.living, self.ended.len());
        assert!(self.ended.iter().all(|&pid| self.get(pid).is_ok_and(|record| record.status.state.has_ended())));
        assert!(records().all(|record| !record.status.state.has_ended() || record.waiters.is_empty()));
        for (name, pids) in &self.names {
            assert!(!pids.is_empty());
            for &pid in pids {
                let record = self.get(pid).ok().filter(living).expect("a name belongs to a living process");
                assert!(keys(&record.name).any(|key| key == name));
            }
        }
    }
}

/// What a process can be found by: the path without a leading `/`, and the base name.
fn keys(name: &str) -> impl Iterator<Item = &str> {
    let path = name.trim_start_matches('/');
    let base = path.rsplit('/').next().filter(|&base| base != path);
    core::iter::once(path).chain(base)
}
