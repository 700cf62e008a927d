//! What is known about each process, living or ended.
//!
//! ```text
//!  places: 8,192, a process's is its number modulo 8,192        numbers in order ─► next
//!  ┌───┬───┬───┬───┬─ ─ ─┐                                      (parent, number) ─► children, preparations
//!  │   │ ● │ ● │   │     │  a number whose place is taken       path, base name ──► living processes
//!  └───┴───┴───┴───┴─ ─ ─┘  is passed over for ever             waits ───────────► who waits (waits.rs)
//! ```
//! So a number leads to its record in constant time, no number is used twice, and memory is bounded: what lives and
//! what is remembered fills five eighths of the places. Everything else is an ordered set: each request takes O(log n)
//! steps for each process or wait that it concerns.
//!
//! Ending a process needs no memory that stays: its place among the ended is made when it is prepared. What else a
//! request allocates is bounded, [`GROWTH`] by one that adds something and [`BRIEFLY`] by any, so that the server can
//! see to it before that there is so much; a test counts.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use tench_abi::Powers;
use tench_abi::power::{self, Client};
use tench_abi::process::DEFAULT_PRIORITY;
use tench_mem_client::protocol::NO_QUOTA;
use tench_places::{Places, allows};
use tench_procs_client::pid;
use tench_procs_client::protocol::{Error, State};

use crate::guests::Guests;
use crate::shares::{Held, Shares};
use crate::waits::Waits;

/// Processes that can exist at a time. A family can have half of them: one thousand, beside the servers.
pub const MAX_LIVING: usize = 2048;
/// Records of ended processes that are kept; the oldest is forgotten first.
pub const MAX_ENDED: usize = 4096;
/// Threads that can wait for one process, which the families share whose they are ([`allows`]), and threads of one
/// process that can wait.
pub const MAX_WAITERS: usize = 256;
/// Generations over which a process manages its descendants.
pub const MAX_GENERATIONS: usize = 32;

/// Places for records: a power of two, more than there are records.
const PLACES: usize = 8192;
const _: () = assert!(PLACES.is_power_of_two() && PLACES > MAX_LIVING + MAX_ENDED);
// However many live, there is a number for one more family.
const _: () = assert!(MAX_LIVING as u64 + 1 < power::GUESTS);

/// Bytes of heap that [`Records::prepare`] or [`Records::wait`] may need, beside the array of the ended, which may grow
/// and says if it cannot.
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

/// A process. `K` is what the server keeps while it lives.
pub struct Record<K> {
    /// The path or name by which it was started.
    pub name: String,
    /// The process that started it; 0 for `init`. It may have ended, and be forgotten.
    pub parent: u64,
    /// Priority of its main thread.
    pub priority: u8,
    /// Highest priority that it may give.
    pub ceiling: u8,
    /// What its capabilities to servers permit beyond what everybody's do.
    pub powers: Powers,
    /// Bytes of memory that it may have.
    pub quota: u64,
    /// Bytes of its program.
    pub size: u64,
    /// Ticks that it had used when it ended.
    pub ticks: u64,
    /// Kernel objects, of a process that this server started and that has not ended.
    pub kernel: Option<K>,
    number: u64,
    /// Its [family](power::family): that of the first of its ancestors, or of itself, that somebody started who manages
    /// all. Its badge says which. A family has no more processes than are left for others ([`Places`]), however it
    /// divides them among parents and children.
    family: u64,
    status: Condition,
    /// It has been stopped, or its start has failed, and it is taken apart: whatever is asked in its name is refused.
    pub is_ending: bool,
    /// It is one of those that the load counts.
    counts: bool,
    /// What it takes of the server in preparation.
    held: Held,
    /// Who may manage it: its parent, that one's parent and so on. They may be forgotten.
    ancestors: Box<[u64]>,
}

impl<K> Record<K> {
    /// What it does.
    pub const fn status(&self) -> Condition {
        self.status
    }

    /// It and its family.
    pub const fn client(&self) -> Client {
        Client { process: self.number, family: self.family }
    }

    /// Whether it has ended.
    pub const fn has_ended(&self) -> bool {
        self.status.state.has_ended()
    }
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

/// All records. `R` is what it takes to answer somebody later.
pub struct Records<K, R> {
    places: Vec<Option<Box<Record<K>>>>,
    /// The last number given.
    last: u64,
    /// Of which core these are the processes.
    core: u64,
    /// Those that run, without `init` and what it has started.
    load: usize,
    /// Numbers of all records.
    known: BTreeSet<u64>,
    /// All records by their parents' numbers.
    children: BTreeSet<(u64, u64)>,
    /// The same for those in preparation.
    preparing: BTreeSet<(u64, u64)>,
    /// Living processes by path and by base name.
    names: BTreeMap<String, BTreeSet<u64>>,
    /// The living, by family.
    living: Places,
    shares: Shares,
    /// How many numbers of families were given last time round; and of families of guests.
    last_families: [u64; 2],
    /// Families of other cores that have started living processes here, and what family those are. All guests of a core
    /// count as one family of it: otherwise a program would begin one more with each way there and back.
    guests: BTreeMap<u64, u64>,
    /// The same, by the family here.
    hosts: BTreeMap<u64, u64>,
    /// Processes of other cores that may start others here.
    pub visitors: Guests,
    /// Ended processes, the oldest first.
    ended: VecDeque<u64>,
    waits: Waits<R>,
}

impl<K, R> Default for Records<K, R> {
    fn default() -> Self {
        Records::of_core(0)
    }
}

/// The place of a process.
const fn place(pid: u64) -> usize {
    (pid % PLACES as u64) as usize
}

impl<K, R> Records<K, R> {
    /// Those of a core, which begin with its [first](pid::first) number.
    pub fn of_core(core: u64) -> Records<K, R> {
        Records {
            places: (0..PLACES).map(|_| None).collect(),
            last: pid::first(core),
            core,
            load: 0,
            known: BTreeSet::new(),
            children: BTreeSet::new(),
            preparing: BTreeSet::new(),
            names: BTreeMap::new(),
            living: Places::new(MAX_LIVING),
            shares: Shares::default(),
            last_families: [0; 2],
            guests: BTreeMap::new(),
            hosts: BTreeMap::new(),
            visitors: Guests::default(),
            ended: VecDeque::new(),
            waits: Waits::default(),
        }
    }

    /// Returns a family of which nobody lives, perhaps one of guests. Numbers are used in turn, so that none is used
    /// again soon after its last process has ended.
    fn new_family(&mut self, is_of_guests: bool) -> u64 {
        let first = if is_of_guests { power::GUESTS } else { 0 };
        // There are more numbers than families with living processes, so this ends.
        loop {
            let last = &mut self.last_families[usize::from(is_of_guests)];
            *last = *last % (power::GUESTS - 1) + 1;
            let family = power::family_of(self.core, first + *last);
            if self.living.held_by_family(family) == 0 {
                return family;
            }
        }
    }

    /// Returns the family of a process that `parent` starts with a capability of these powers; and, if the parent is of
    /// another core, the family there for which it is one.
    fn family_below(&mut self, parent: Client, powers: Powers) -> (u64, Option<u64>) {
        if let Ok(record) = self.get(parent.process) {
            let is_apart = record.powers.contains(Powers::PROCESSES);
            return (if is_apart { self.new_family(false) } else { record.family }, None);
        }
        if !self.is_foreign(parent.process) || powers.contains(Powers::PROCESSES) {
            return (self.new_family(false), None);
        }
        // All that a family of another core starts here is one family, too.
        let origin = match power::is_of_guests(parent.family) {
            true => power::family_of(pid::place(parent.process).0, power::GUESTS),
            false => parent.family,
        };
        let known = self.guests.get(&origin).copied();
        (known.unwrap_or_else(|| self.new_family(true)), Some(origin))
    }

    /// Makes a record with a process identifier higher than any before, in state `Preparing`. It has no powers, and the
    /// usual priority or its parent's ceiling, if that is lower. `powers` are those with which the parent asks. Fails
    /// with `NoSuchProcess` if that is a process of another core of which nothing is known.
    pub fn prepare(&mut self, name: &str, parent: Client, powers: Powers, kernel: Option<K>) -> Result<u64, Error> {
        let ceiling = self.may_give(parent.process);
        if ceiling.is_none() && self.is_foreign(parent.process) {
            return Err(Error::NoSuchProcess);
        }
        let (family, origin) = self.family_below(parent, powers);
        let parent = parent.process;
        // The place where this process, and every other that lives, will be when it has ended.
        self.ended.try_reserve(self.living.taken() + 1).map_err(|_| Error::OutOfMemory)?;
        let mut pid = self.last + 1;
        // There are more places than records can be, so this ends.
        while self.places[place(pid)].is_some() {
            pid += 1;
        }
        let known = self.get(parent).ok();
        if !self.living.may_take(Client { process: pid, family }) {
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
        self.places[place(pid)] = Some(Box::new(record));
        self.living.take(Client { process: pid, family });
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

    /// The record of a process.
    pub fn get(&self, pid: u64) -> Result<&Record<K>, Error> {
        self.places[place(pid)].as_deref().filter(|record| record.number == pid).ok_or(Error::NoSuchProcess)
    }

    /// The record of a process.
    pub fn get_mut(&mut self, pid: u64) -> Result<&mut Record<K>, Error> {
        self.places[place(pid)].as_deref_mut().filter(|record| record.number == pid).ok_or(Error::NoSuchProcess)
    }

    /// A process in preparation runs, or one that has not ended is suspended or goes on.
    pub fn set_state(&mut self, pid: u64, state: State) -> Result<(), Error> {
        let record = self.get_mut(pid)?;
        if record.has_ended() || !matches!(state, State::Running | State::Suspended) {
            return Err(Error::WrongState);
        }
        record.status = Condition::plain(state);
        let parent = record.parent;
        let counts = state == State::Running && parent != 0 && pid::place(parent).1 != pid::INIT;
        let counted = core::mem::replace(&mut record.counts, counts);
        self.load = self.load + usize::from(counts) - usize::from(counted);
        self.preparing.remove(&(parent, pid));
        self.release_shares(pid);
        Ok(())
    }

    /// How many processes run, neither suspended nor ended, without `init` and what any core's `init` has started.
    pub const fn load(&self) -> usize {
        self.load
    }

    /// Whether a process with this number is one of another core.
    pub const fn is_foreign(&self, pid: u64) -> bool {
        pid != 0 && pid::place(pid).0 != self.core
    }

    /// Returns a family if no process of it is prepared or runs, and otherwise 0, which is none. (A new one may have
    /// its number meanwhile.)
    pub fn family_that_ended(&self, family: u64) -> u64 {
        if self.living.held_by_family(family) == 0 { family } else { 0 }
    }

    /// The record with the next higher number.
    pub fn next(&self, after: u64) -> Option<(u64, &Record<K>)> {
        let pid = *self.known.range(after.checked_add(1)?..).next()?;
        Some((pid, self.get(pid).ok()?))
    }

    /// The process that `parent` started with the next higher number.
    pub fn child(&self, parent: u64, after: u64) -> Option<u64> {
        let first = (parent, after.checked_add(1)?);
        self.children.range(first..=(parent, u64::MAX)).next().map(|(_, pid)| *pid)
    }

    /// The living process of this path or base name with the next higher number.
    pub fn find(&self, name: &str, after: u64) -> Option<u64> {
        let key = name.trim_start_matches('/');
        self.names.get(key)?.range(after.checked_add(1)?..).next().copied()
    }

    /// Whether `caller`, with a capability of these powers, may kill, suspend, resume and inspect `pid`: itself, its
    /// descendants of [`MAX_GENERATIONS`], or all. It does not matter who of those between them has ended.
    pub fn check_manage(&self, caller: u64, powers: Powers, pid: u64) -> Result<(), Error> {
        let record = self.get(pid)?;
        let is_own = || caller != 0 && (caller == pid || record.ancestors.contains(&caller));
        let may = powers.contains(Powers::PROCESSES) || is_own();
        if may { Ok(()) } else { Err(Error::NotAllowed) }
    }

    /// The record of a process that `caller` prepares.
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

    /// The texts of a process in preparation will have so many bytes. Fails with `TooMuchText` if its family has no
    /// places for that.
    pub fn hold_texts(&mut self, pid: u64, bytes: usize) -> Result<(), Error> {
        let record = self.places[place(pid)].as_deref_mut().filter(|record| record.number == pid);
        let record = record.ok_or(Error::NoSuchProcess)?;
        self.shares.hold_texts(record.client(), &mut record.held, bytes)
    }

    /// Takes places for `count` capabilities given to a process in preparation. Fails with `TooManyCapabilities` if its
    /// family has no places for that.
    pub fn hold_given(&mut self, pid: u64, count: usize) -> Result<(), Error> {
        let record = self.places[place(pid)].as_deref_mut().filter(|record| record.number == pid);
        let record = record.ok_or(Error::NoSuchProcess)?;
        self.shares.hold_given(record.client(), &mut record.held, count)
    }

    /// A process is not in preparation any more.
    fn release_shares(&mut self, pid: u64) {
        if let Some(record) = self.places[place(pid)].as_deref_mut().filter(|record| record.number == pid) {
            self.shares.release(pid, &mut record.held);
        }
    }

    /// A process in preparation is about to start. Its parent may have been given a limit since it was prepared, and a
    /// process has no more memory than its parent may have. Returns how much it may have.
    pub fn settle_quota(&mut self, pid: u64) -> Result<u64, Error> {
        let parent = self.get(pid)?.parent;
        let most = self.get(parent).map_or(NO_QUOTA, |parent| parent.quota);
        let record = self.get_mut(pid)?;
        record.quota = record.quota.min(most);
        Ok(record.quota)
    }

    /// A process is taken apart from now on, whether it has run or not: whatever is asked in its name is refused, and
    /// one in preparation is not its parent's any more.
    pub fn begin_end(&mut self, pid: u64) -> Result<(), Error> {
        let record = self.get_mut(pid)?;
        record.is_ending = true;
        let parent = record.parent;
        self.preparing.remove(&(parent, pid));
        Ok(())
    }

    /// The first of the processes that `parent` prepares and has not started.
    pub fn prepared_by(&self, parent: u64) -> Option<u64> {
        self.preparing.range((parent, 0)..=(parent, u64::MAX)).next().map(|(_, pid)| *pid)
    }

    /// Whether a process exists and neither has ended nor is being taken apart: only such a one can be a parent or wait
    /// for something. Of those of another core that core's monitor knows.
    pub fn check_living(&self, pid: u64) -> Result<(), Error> {
        match self.get(pid) {
            Ok(record) if record.has_ended() || record.is_ending => Err(Error::WrongState),
            Err(error) if !self.is_foreign(pid) => Err(error),
            _ => Ok(()),
        }
    }

    /// Whether a process can prepare others, and start them: it [lives](Self::check_living), and of one of another core
    /// it is known what it may give them.
    pub fn check_parent(&self, pid: u64) -> Result<(), Error> {
        self.check_living(pid)?;
        self.may_give(pid).map(drop).ok_or(Error::NoSuchProcess)
    }

    /// Makes room for one more thread of `caller` that waits for `pid`, if there is none, by taking out those whose
    /// threads do not wait any more, without having said so: `has_gone` says which.
    pub fn make_room(&mut self, pid: u64, caller: Client, has_gone: impl FnMut(&R) -> bool) -> Vec<R> {
        if self.has_room(pid, caller) { Vec::new() } else { self.waits.give_back(pid, caller, has_gone) }
    }

    /// Looks at a few of those who wait, and at others the next time. Takes out those whose threads do not wait any
    /// more, without having said so: `has_gone` says which.
    pub fn look_for_gone(&mut self, has_gone: impl FnMut(&R) -> bool) -> Vec<R> {
        self.waits.look(has_gone)
    }

    /// Whether one more thread may wait.
    pub fn has_room(&self, pid: u64, caller: Client) -> bool {
        let own = self.waits.count_between(pid, caller.family, MAX_WAITERS);
        allows(own, self.waits.count_for(pid, MAX_WAITERS), MAX_WAITERS)
            && self.waits.count_of(caller.process) < MAX_WAITERS
            && self.waits.may_wait(caller)
    }

    /// Returns the highest priority that a process may give, if it is one that may start others: of one of another core
    /// what its core [says](Guests).
    fn may_give(&self, pid: u64) -> Option<u8> {
        let record = self.get(pid);
        record.map_or_else(|_| self.visitors.ceiling(pid), |record| Some(record.ceiling))
    }

    /// Returns the highest priority that `caller` may give: its ceiling.
    pub fn ceiling(&self, caller: u64) -> u8 {
        self.may_give(caller).unwrap_or(0)
    }

    /// Lets a thread of `waiter` wait for the end of a process that has not ended.
    pub fn wait(&mut self, pid: u64, waiter: Client, deadline: Option<u64>, reply: R) {
        self.waits.begin(pid, waiter, deadline, reply);
    }

    /// The earliest deadline of a wait, which is 0 while somebody's time has come.
    pub fn next_deadline(&self) -> Option<u64> {
        self.waits.next_deadline()
    }

    /// Takes out somebody who has waited until `now` or less: the processes of those who wait have turns.
    pub fn pop_expired(&mut self, now: u64) -> Option<R> {
        self.waits.pop_expired(now)
    }

    /// Ends a process. Its record stays.
    pub fn end(&mut self, pid: u64, status: Condition) -> Result<Ended<K, R>, Error> {
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

    /// Removes a record that never became a process.
    pub fn discard(&mut self, pid: u64) -> Option<Ended<K, R>> {
        if self.get(pid).ok()?.has_ended() {
            return None;
        }
        let ended = self.close(pid);
        self.forget(pid);
        Some(ended)
    }

    /// What the end of a process takes out of the sets of the living.
    fn close(&mut self, pid: u64) -> Ended<K, R> {
        self.release_shares(pid);
        let Some(mut record) = self.places[place(pid)].take() else {
            return Ended { kernel: None, waiters: Vec::new(), abandoned: Vec::new() };
        };
        let kernel = record.kernel.take();
        self.load -= usize::from(core::mem::take(&mut record.counts));
        self.preparing.remove(&(record.parent, pid));
        self.forget_name(pid, &record.name);
        self.living.give_back(pid);
        if self.living.held_by_family(record.family) == 0
            && let Some(origin) = self.hosts.remove(&record.family)
        {
            self.guests.remove(&origin);
        }
        self.places[place(pid)] = Some(record);
        Ended { kernel, waiters: self.waits.target_ended(pid), abandoned: self.waits.waiter_ended(pid) }
    }

    /// The record of an ended process goes.
    fn forget(&mut self, pid: u64) {
        if let Some(record) = self.places[place(pid)].take() {
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

    /// Panics if an invariant does not hold.
    pub fn check_invariants(&self) {
        let mut numbers = BTreeSet::new();
        let (mut children, mut preparing, mut living) = (BTreeSet::new(), BTreeSet::new(), 0);
        let mut families = BTreeMap::new();
        let mut load = 0;
        for (index, record) in self.places.iter().enumerate().filter_map(|(n, one)| Some((n, one.as_ref()?))) {
            let pid = &record.number;
            assert_eq!(place(*pid), index);
            assert!(
                *pid > pid::first(self.core)
                    && *pid <= self.last
                    && (record.parent < *pid || self.is_foreign(record.parent))
            );
            assert_eq!(record.ancestors.first(), Some(&record.parent));
            assert!(record.ancestors.len() <= MAX_GENERATIONS);
            numbers.insert(*pid);
            children.insert((record.parent, *pid));
            living += usize::from(!record.has_ended());
            load += usize::from(record.counts);
            assert!(record.held.is_nothing() || record.status.state == State::Preparing);
            assert!(!record.counts || record.status.state == State::Running);
            *families.entry(record.family).or_insert(0) += usize::from(!record.has_ended());
            if record.status.state == State::Preparing && !record.is_ending {
                preparing.insert((record.parent, *pid));
            }
            let is_named = keys(&record.name).all(|key| self.names.get(key).is_some_and(|pids| pids.contains(pid)));
            assert_eq!(is_named, !record.has_ended());
        }
        assert_eq!(self.known, numbers);
        assert_eq!(self.load, load);
        assert_eq!(self.children, children);
        assert_eq!(self.preparing, preparing);
        self.living.check_invariants();
        self.visitors.check_invariants();
        self.shares.check_invariants(self.places.iter().flatten().map(|record| record.held));
        assert_eq!(self.living.taken(), living);
        assert!(families.iter().all(|(family, count)| self.living.held_by_family(*family) == *count));
        assert!(families.keys().all(|family| power::family(*family) == *family), "a badge can say which family");
        assert!(self.hosts.keys().all(|family| self.living.held_by_family(*family) > 0));
        assert!(self.hosts.iter().all(|(family, origin)| self.guests.get(origin) == Some(family)));
        assert_eq!(self.hosts.len(), self.guests.len());
        assert_eq!(self.ended.len(), numbers.len() - living);
        assert!(living <= MAX_LIVING && self.ended.len() <= MAX_ENDED);
        assert!(self.ended.iter().all(|&pid| self.get(pid).is_ok_and(Record::has_ended)));
        for (name, pids) in &self.names {
            assert!(!pids.is_empty());
            for &pid in pids {
                let record = self.get(pid).expect("a name belongs to a process");
                assert!(keys(&record.name).any(|key| key == name));
            }
        }
        self.waits.check_invariants(|pid| self.check_living(pid).is_ok());
    }
}

/// Checks what a parent calls a program that is none of the boot archive: it is shown to others, on the terminal too.
/// Fails with `BadName` if there is nothing to show or a control character in it.
pub fn check_name(name: &str) -> Result<(), Error> {
    let is_shown = !name.is_empty() && !name.contains(char::is_control);
    if is_shown { Ok(()) } else { Err(Error::BadName) }
}

/// What a process can be found by: the path without a leading `/`, and the base name.
fn keys(name: &str) -> impl Iterator<Item = &str> {
    let path = name.trim_start_matches('/');
    let base = path.rsplit('/').next().filter(|&base| base != path);
    core::iter::once(path).chain(base)
}
