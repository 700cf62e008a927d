//! The table of processes, running or ended.
//!
//! ```text
//!  8,192 entries; a process has number modulo 8,192             numbers in order ─► next
//!  ┌───┬───┬───┬───┬─ ─ ─┐                                      (parent, number) ─► children, process builders
//!  │   │ ● │ ● │   │     │  a number whose entry is taken       path, base name ──► running processes
//!  └───┴───┴───┴───┴─ ─ ─┘  is skipped for ever                 waits ───────────► waiting threads (waits.rs)
//! ```
//! So a number leads to its record in constant time, no number is used twice, and memory is bounded: running and
//! remembered processes together fill at most three quarters of the entries. Every other index is an ordered set: each
//! request takes O(log n) steps for each process or wait that it concerns.
//!
//! Ending a process needs no lasting memory: its entry among the ended is allocated when it is prepared. Any other
//! allocation of a request is bounded, by [`GROWTH`] for a request that adds something and by [`BRIEFLY`] for any, so
//! that the server can make sure beforehand that there is enough; a test counts.

pub mod guests;
mod invariants;
pub mod shares;
pub mod waits;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use tench_abi::Powers;
use tench_abi::power::{self, Client};
use tench_abi::process::DEFAULT_PRIORITY;
use tench_mem_interface::protocol::NO_QUOTA;
use tench_procs_interface::pid;
use tench_procs_interface::protocol::{Error, State};
use tench_quota::{Quota, allows};

use self::guests::Guests;
use self::shares::{Held, Shares};
use self::waits::Waits;

/// Maximum number of processes that have not ended. A family can have half of them: one thousand, beside the servers.
pub const MAX_LIVE: usize = 2048;
/// Maximum number of records of ended processes that are kept; the oldest is removed first.
pub const MAX_ENDED: usize = 4096;
/// Maximum number of threads that can wait for one process, shared fairly among their families ([`allows`]); also the
/// maximum number of waiting threads of one process.
pub const MAX_WAITERS: usize = 256;
/// Maximum number of generations over which a process manages its descendants.
pub const MAX_GENERATIONS: usize = 32;

/// Number of table entries: a power of two, greater than the number of records.
const TABLE_SIZE: usize = 8192;
const _: () = assert!(TABLE_SIZE.is_power_of_two() && TABLE_SIZE > MAX_LIVE + MAX_ENDED);
// However many processes run, there is a number for one more family.
const _: () = assert!(MAX_LIVE as u64 + 1 < power::GUESTS);

/// Bytes of heap that [`Records::prepare`] or [`Records::wait`] may need, beside the array of ended processes, whose
/// growth may fail with an error.
pub const GROWTH: usize = 12 << 10;
/// Bytes of heap that any request may need until it gets its reply.
pub const BRIEFLY: usize = 24 << 10;

/// State of a process, with its detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The process's state.
    pub state: State,
    /// Exit code or kind of fault, in the states that have one; otherwise 0.
    pub detail: u64,
}

impl Condition {
    /// Returns a condition without detail.
    pub const fn plain(state: State) -> Condition {
        Condition { state, detail: 0 }
    }
}

/// A process. `K` is what the server keeps until the process has ended.
pub struct Record<K> {
    /// The path or name by which it was started.
    pub name: String,
    /// Number of its parent; 0 for `init`. The parent may have ended, and its record may be gone.
    pub parent: u64,
    /// Priority of its main thread.
    pub priority: u8,
    /// Highest priority that it may assign.
    pub ceiling: u8,
    /// Rights that its capabilities to servers give it beyond those of every process.
    pub powers: Powers,
    /// Memory quota in bytes.
    pub quota: u64,
    /// Size of its program in bytes.
    pub size: u64,
    /// Ticks of processor time that it had used when it ended.
    pub ticks: u64,
    /// Kernel objects of a process that this server started and that has not ended.
    pub kernel: Option<K>,
    number: u64,
    /// [Family](power::family) of the process: that of the nearest process, itself or an ancestor, that was started
    /// with the power to manage all processes. The process's badge contains the family. The number of processes of a
    /// family is limited by a fair-share quota ([`Quota`]), however they are divided among parents and children.
    family: u64,
    status: Condition,
    /// Set when the process has been stopped, or its start has failed, and it is being destroyed: requests in its name
    /// are refused.
    pub is_ending: bool,
    /// Set if the process is counted in the load.
    counts: bool,
    /// Resources of the server that it holds while it is a process builder.
    held: Held,
    /// Processes that may manage it: its parent, grandparent and so on. Their records may be gone.
    ancestors: Box<[u64]>,
}

impl<K> Record<K> {
    /// Returns the process's condition.
    pub const fn status(&self) -> Condition {
        self.status
    }

    /// Returns the process and its family.
    pub const fn client(&self) -> Client {
        Client { process: self.number, family: self.family }
    }

    /// Returns whether the process has ended.
    pub const fn has_ended(&self) -> bool {
        self.status.state.has_ended()
    }
}

/// Everything that is released when a process ends.
pub struct Ended<K, R> {
    /// Data that the server kept for the process.
    pub kernel: Option<K>,
    /// Threads that waited for its end.
    pub waiters: Vec<R>,
    /// Replies to its own threads, which no longer wait.
    pub abandoned: Vec<R>,
}

/// The table of processes. `R` is what it takes to reply to a waiter later.
pub struct Records<K, R> {
    entries: Vec<Option<Box<Record<K>>>>,
    /// The last number assigned.
    last: u64,
    /// Core of these processes.
    core: u64,
    /// Number of running processes, without `init` and its children.
    load: usize,
    /// Numbers of all records.
    known: BTreeSet<u64>,
    /// All records, by their parents' numbers.
    children: BTreeSet<(u64, u64)>,
    /// Process builders, by their parents' numbers.
    preparing: BTreeSet<(u64, u64)>,
    /// Processes that have not ended, by path and by base name.
    names: BTreeMap<String, BTreeSet<u64>>,
    /// Quota of processes that have not ended, by family.
    live: Quota,
    shares: Shares,
    /// The last family number assigned, to a local family and to a family of guests.
    last_families: [u64; 2],
    /// The local family of each family of another core that has started processes here that have not ended. All guests
    /// of a core count as one family of it: otherwise a program would begin another family with each trip to a core and
    /// back.
    guests: BTreeMap<u64, u64>,
    /// The inverse of `guests`: the origin of each local family of guests.
    hosts: BTreeMap<u64, u64>,
    /// Processes of other cores that may start processes here.
    pub visitors: Guests,
    /// Ended processes, oldest first.
    ended: VecDeque<u64>,
    waits: Waits<R>,
}

impl<K, R> Default for Records<K, R> {
    fn default() -> Self {
        Records::of_core(0)
    }
}

/// Returns the table index of a process.
const fn index_of(pid: u64) -> usize {
    (pid % TABLE_SIZE as u64) as usize
}

/// Returns the record of a process.
fn entry_of<K>(entries: &mut [Option<Box<Record<K>>>], pid: u64) -> Result<&mut Record<K>, Error> {
    entries[index_of(pid)].as_deref_mut().filter(|record| record.number == pid).ok_or(Error::NoSuchProcess)
}

impl<K, R> Records<K, R> {
    /// Returns an empty table for a core, whose numbers begin with its [base](pid::pid_base).
    pub fn of_core(core: u64) -> Records<K, R> {
        Records {
            entries: (0..TABLE_SIZE).map(|_| None).collect(),
            last: pid::pid_base(core),
            core,
            load: 0,
            known: BTreeSet::new(),
            children: BTreeSet::new(),
            preparing: BTreeSet::new(),
            names: BTreeMap::new(),
            live: Quota::new(MAX_LIVE),
            shares: Shares::default(),
            last_families: [0; 2],
            guests: BTreeMap::new(),
            hosts: BTreeMap::new(),
            visitors: Guests::default(),
            ended: VecDeque::new(),
            waits: Waits::default(),
        }
    }

    /// Returns the number of a family without members, perhaps of guests. Numbers are assigned in rotation, so that
    /// none is reused soon after its last process has ended.
    fn new_family(&mut self, is_of_guests: bool) -> u64 {
        let first = if is_of_guests { power::GUESTS } else { 0 };
        // There are more numbers than families with members, so this loop ends.
        loop {
            let last = &mut self.last_families[usize::from(is_of_guests)];
            *last = *last % (power::GUESTS - 1) + 1;
            let family = power::family_of(self.core, first + *last);
            if self.live.held_by_family(family) == 0 {
                return family;
            }
        }
    }

    /// Returns the family of a process that `parent` starts with a capability of these powers; and, if the parent is of
    /// another core, the family of that core for which the returned one stands.
    fn family_below(&mut self, parent: Client, powers: Powers) -> (u64, Option<u64>) {
        if let Ok(record) = self.get(parent.process) {
            let is_apart = record.powers.contains(Powers::PROCESSES);
            return (if is_apart { self.new_family(false) } else { record.family }, None);
        }
        if !self.is_foreign(parent.process) || powers.contains(Powers::PROCESSES) {
            return (self.new_family(false), None);
        }
        // Everything that a family of another core starts here is one family, too.
        let origin = match power::is_of_guests(parent.family) {
            true => power::family_of(pid::split_pid(parent.process).0, power::GUESTS),
            false => parent.family,
        };
        let known = self.guests.get(&origin).copied();
        (known.unwrap_or_else(|| self.new_family(true)), Some(origin))
    }

    /// Adds a record in state `Preparing`, with a process identifier higher than any before. It has no powers, and the
    /// usual priority or its parent's ceiling, if that is lower. `powers` are those of the parent's capability. Fails
    /// with `NoSuchProcess` if the parent is of another core and unknown here.
    pub fn prepare(&mut self, name: &str, parent: Client, powers: Powers, kernel: Option<K>) -> Result<u64, Error> {
        let ceiling = self.may_give(parent.process);
        if ceiling.is_none() && self.is_foreign(parent.process) {
            return Err(Error::NoSuchProcess);
        }
        let (family, origin) = self.family_below(parent, powers);
        let parent = parent.process;
        // Reserves the entries in which this process, and every other that has not ended, will be when it ends.
        self.ended.try_reserve(self.live.taken() + 1).map_err(|_| Error::OutOfMemory)?;
        let mut pid = self.last + 1;
        // There are more entries than records, so this loop ends.
        while self.entries[index_of(pid)].is_some() {
            pid += 1;
        }
        let known = self.get(parent).ok();
        if !self.live.may_take(Client { process: pid, family }) {
            return Err(Error::TooManyProcesses);
        }
        let quota = known.map_or(NO_QUOTA, |parent| parent.quota);
        let priority = ceiling.unwrap_or(u8::MAX).min(DEFAULT_PRIORITY);
        let above = known.map_or(&[][..], |parent| &parent.ancestors);
        let ancestors = core::iter::once(parent).chain(above.iter().copied()).take(MAX_GENERATIONS).collect();
        let record = Record {
            name: String::from(name),
            parent,
            priority,
            ceiling: priority,
            powers: Powers::empty(),
            quota,
            size: 0,
            ticks: 0,
            kernel,
            number: pid,
            family,
            status: Condition::plain(State::Preparing),
            is_ending: false,
            counts: false,
            held: Held::default(),
            ancestors,
        };
        self.last = pid;
        self.entries[index_of(pid)] = Some(Box::new(record));
        self.live.take(Client { process: pid, family });
        if let Some(origin) = origin {
            self.guests.insert(origin, family);
            self.hosts.insert(family, origin);
        }
        self.known.insert(pid);
        self.children.insert((parent, pid));
        self.preparing.insert((parent, pid));
        for key in keys(name) {
            self.names.entry(String::from(key)).or_default().insert(pid);
        }
        Ok(pid)
    }

    /// Returns the record of a process.
    pub fn get(&self, pid: u64) -> Result<&Record<K>, Error> {
        self.entries[index_of(pid)].as_deref().filter(|record| record.number == pid).ok_or(Error::NoSuchProcess)
    }

    /// Returns the record of a process.
    pub fn get_mut(&mut self, pid: u64) -> Result<&mut Record<K>, Error> {
        entry_of(&mut self.entries, pid)
    }

    /// Starts a process in preparation, or suspends or resumes one that has not ended.
    pub fn set_state(&mut self, pid: u64, state: State) -> Result<(), Error> {
        let record = self.get_mut(pid)?;
        if record.has_ended() || !matches!(state, State::Running | State::Suspended) {
            return Err(Error::WrongState);
        }
        record.status = Condition::plain(state);
        let parent = record.parent;
        let counts = state == State::Running && parent != 0 && pid::split_pid(parent).1 != pid::INIT;
        let counted = core::mem::replace(&mut record.counts, counts);
        self.load = self.load + usize::from(counts) - usize::from(counted);
        self.preparing.remove(&(parent, pid));
        self.release_shares(pid);
        Ok(())
    }

    /// Returns the number of running processes (neither suspended nor ended), without `init` and the children of any
    /// core's `init`.
    pub const fn load(&self) -> usize {
        self.load
    }

    /// Returns whether this number belongs to a process of another core.
    pub const fn is_foreign(&self, pid: u64) -> bool {
        pid != 0 && pid::split_pid(pid).0 != self.core
    }

    /// Returns `family` if none of its processes is in preparation or runs, and otherwise 0, which is no family. (A new
    /// family may have the number meanwhile.)
    pub fn family_that_ended(&self, family: u64) -> u64 {
        if self.live.held_by_family(family) == 0 { family } else { 0 }
    }

    /// Returns the record with the next higher number.
    pub fn next(&self, after: u64) -> Option<(u64, &Record<K>)> {
        let pid = *self.known.range(after.checked_add(1)?..).next()?;
        Some((pid, self.get(pid).ok()?))
    }

    /// Returns the child of `parent` with the next higher number.
    pub fn child(&self, parent: u64, after: u64) -> Option<u64> {
        let first = (parent, after.checked_add(1)?);
        self.children.range(first..=(parent, u64::MAX)).next().map(|(_, pid)| *pid)
    }

    /// Returns the process of this path or base name with the next higher number that has not ended.
    pub fn find(&self, name: &str, after: u64) -> Option<u64> {
        let key = name.trim_start_matches('/');
        self.names.get(key)?.range(after.checked_add(1)?..).next().copied()
    }

    /// Checks that `caller`, with a capability of these powers, may kill, suspend, resume and inspect `pid`: a process
    /// may manage itself and its descendants over [`MAX_GENERATIONS`], or with the power for it all processes. It does
    /// not matter which of the processes between them have ended.
    pub fn check_manage(&self, caller: u64, powers: Powers, pid: u64) -> Result<(), Error> {
        let record = self.get(pid)?;
        let is_own = || caller != 0 && (caller == pid || record.ancestors.contains(&caller));
        let may = powers.contains(Powers::PROCESSES) || is_own();
        if may { Ok(()) } else { Err(Error::NotAllowed) }
    }

    /// Returns the record of a process that `caller` prepares.
    pub fn preparing(&mut self, caller: u64, pid: u64) -> Result<&mut Record<K>, Error> {
        let record = self.get_mut(pid)?;
        if record.parent != caller {
            return Err(Error::NotYours);
        }
        if record.status.state != State::Preparing || record.is_ending {
            return Err(Error::WrongState);
        }
        Ok(record)
    }

    /// Sets how many bytes the texts of a process in preparation take. Fails with `TooMuchText` if that exceeds its
    /// family's quota.
    pub fn hold_texts(&mut self, pid: u64, bytes: usize) -> Result<(), Error> {
        let record = entry_of(&mut self.entries, pid)?;
        self.shares.hold_texts(record.client(), &mut record.held, bytes)
    }

    /// Sets how many capabilities have been given to a process in preparation. Fails with `TooManyCapabilities` if that
    /// exceeds its family's quota.
    pub fn hold_given(&mut self, pid: u64, count: usize) -> Result<(), Error> {
        let record = entry_of(&mut self.entries, pid)?;
        self.shares.hold_given(record.client(), &mut record.held, count)
    }

    /// Releases the quotas that a process held in preparation.
    fn release_shares(&mut self, pid: u64) {
        if let Ok(record) = entry_of(&mut self.entries, pid) {
            self.shares.release(pid, &mut record.held);
        }
    }

    /// Fixes and returns the memory quota of a process that is about to start. Its parent may have been given a limit
    /// since the process was prepared, and a process has no more memory than its parent may have.
    pub fn fix_quota(&mut self, pid: u64) -> Result<u64, Error> {
        let parent = self.get(pid)?.parent;
        let most = self.get(parent).map_or(NO_QUOTA, |parent| parent.quota);
        let record = self.get_mut(pid)?;
        record.quota = record.quota.min(most);
        Ok(record.quota)
    }

    /// Marks a process as being destroyed, whether it has run or not: requests in its name are refused from now on, and
    /// a process in preparation no longer belongs to its parent.
    pub fn mark_ending(&mut self, pid: u64) -> Result<(), Error> {
        let record = self.get_mut(pid)?;
        record.is_ending = true;
        let parent = record.parent;
        self.preparing.remove(&(parent, pid));
        Ok(())
    }

    /// Returns the first process that `parent` has prepared and not started.
    pub fn prepared_by(&self, parent: u64) -> Option<u64> {
        self.preparing.range((parent, 0)..=(parent, u64::MAX)).next().map(|(_, pid)| *pid)
    }

    /// Checks that a process exists, has not ended and is not being destroyed: only such a process can be a parent or
    /// wait for something. Processes of another core pass; that core's monitor knows their state.
    pub fn check_live(&self, pid: u64) -> Result<(), Error> {
        match self.get(pid) {
            Ok(record) if record.has_ended() || record.is_ending => Err(Error::WrongState),
            Err(error) if !self.is_foreign(pid) => Err(error),
            _ => Ok(()),
        }
    }

    /// Checks that a process can prepare and start others: it passes [`check_live`](Self::check_live), and if it is
    /// of another core, its ceiling is known.
    pub fn check_parent(&self, pid: u64) -> Result<(), Error> {
        self.check_live(pid)?;
        self.may_give(pid).map(drop).ok_or(Error::NoSuchProcess)
    }

    /// Makes room for one more thread of `caller` that waits for `pid`, if there is none, by removing waiters whose
    /// threads have stopped waiting without notice, as `has_gone` reports.
    pub fn remove_gone(&mut self, pid: u64, caller: Client, has_gone: impl FnMut(&R) -> bool) -> Vec<R> {
        if self.has_capacity(pid, caller) { Vec::new() } else { self.waits.give_back(pid, caller, has_gone) }
    }

    /// Removes, from a few waits, those whose threads have stopped waiting without notice, as `has_gone` reports. The
    /// next call checks other waits.
    pub fn look_for_gone(&mut self, has_gone: impl FnMut(&R) -> bool) -> Vec<R> {
        self.waits.look(has_gone)
    }

    /// Returns whether one more thread may wait.
    pub fn has_capacity(&self, pid: u64, caller: Client) -> bool {
        let own = self.waits.count_between(pid, caller.family, MAX_WAITERS);
        allows(own, self.waits.count_for(pid, MAX_WAITERS), MAX_WAITERS)
            && self.waits.count_of(caller.process) < MAX_WAITERS
            && self.waits.may_wait(caller)
    }

    /// Returns the highest priority that a process may assign, if it may start others; for a process of another core,
    /// the ceiling that [`Guests`] holds.
    fn may_give(&self, pid: u64) -> Option<u8> {
        let record = self.get(pid);
        record.map_or_else(|_| self.visitors.ceiling(pid), |record| Some(record.ceiling))
    }

    /// Returns the ceiling of `caller`: the highest priority that it may assign.
    pub fn ceiling(&self, caller: u64) -> u8 {
        self.may_give(caller).unwrap_or(0)
    }

    /// Adds a thread of `waiter` to those that wait for the end of a process, which has not ended.
    pub fn wait(&mut self, pid: u64, waiter: Client, deadline: Option<u64>, reply: R) {
        self.waits.add(pid, waiter, deadline, reply);
    }

    /// Returns the earliest deadline of a wait, or 0 while some wait has expired.
    pub fn next_deadline(&self) -> Option<u64> {
        self.waits.next_deadline()
    }

    /// Removes and returns a wait whose deadline is `now` or earlier. The waiters' processes take turns.
    pub fn pop_expired(&mut self, now: u64) -> Option<R> {
        self.waits.pop_expired(now)
    }

    /// Ends a process. Its record stays.
    pub fn record_end(&mut self, pid: u64, status: Condition) -> Result<Ended<K, R>, Error> {
        let record = self.get_mut(pid)?;
        if record.has_ended() {
            return Err(Error::WrongState);
        }
        record.status = status;
        let ended = self.close(pid);
        self.ended.push_back(pid);
        if self.ended.len() > MAX_ENDED
            && let Some(oldest) = self.ended.pop_front()
        {
            self.forget(oldest);
        }
        Ok(ended)
    }

    /// Removes the record of a process that never ran.
    pub fn discard(&mut self, pid: u64) -> Option<Ended<K, R>> {
        if self.get(pid).ok()?.has_ended() {
            return None;
        }
        let ended = self.close(pid);
        self.forget(pid);
        Some(ended)
    }

    /// Removes a process from the sets of those that have not ended.
    fn close(&mut self, pid: u64) -> Ended<K, R> {
        self.release_shares(pid);
        let Some(mut record) = self.entries[index_of(pid)].take() else {
            return Ended { kernel: None, waiters: Vec::new(), abandoned: Vec::new() };
        };
        let kernel = record.kernel.take();
        self.load -= usize::from(core::mem::take(&mut record.counts));
        self.preparing.remove(&(record.parent, pid));
        self.forget_name(pid, &record.name);
        self.live.give_back(pid);
        if self.live.held_by_family(record.family) == 0
            && let Some(origin) = self.hosts.remove(&record.family)
        {
            self.guests.remove(&origin);
        }
        self.entries[index_of(pid)] = Some(record);
        Ended { kernel, waiters: self.waits.target_ended(pid), abandoned: self.waits.waiter_ended(pid) }
    }

    /// Removes the record of an ended process.
    fn forget(&mut self, pid: u64) {
        if let Some(record) = self.entries[index_of(pid)].take() {
            self.known.remove(&pid);
            self.children.remove(&(record.parent, pid));
        }
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
}

/// Checks the name that a parent gives to a program from outside the boot archive: it is shown to others, also on the
/// terminal. Fails with `BadName` if it is empty or contains a control character.
pub fn check_name(name: &str) -> Result<(), Error> {
    let is_shown = !name.is_empty() && !name.contains(char::is_control);
    if is_shown { Ok(()) } else { Err(Error::BadName) }
}

/// Returns the keys under which a process is found: its path without a leading `/`, and its base name.
fn keys(name: &str) -> impl Iterator<Item = &str> {
    let path = name.trim_start_matches('/');
    let base = path.rsplit('/').next().filter(|&base| base != path);
    core::iter::once(path).chain(base)
}
