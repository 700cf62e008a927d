//! Operations of one thread beside many.
//!
//! The many wait to send at one endpoint, at mixed priorities and with a deadline each, so all are in one queue and in
//! the timer's. Whoever is received from sends again as soon as it runs. The experiment has a priority above theirs,
//! and one below to let them run:
//!
//! ```text
//!   receive    above   the first of the queue becomes ready, and runs later
//!   ready      above   a thread is resumed, and does not run
//!   send       below   a thread is resumed, runs and sends: it waits among the others by its priority
//!   sleep      below   the same, waiting for the timer only
//! ```

use alloc::string::String;
use alloc::vec::Vec;

use tench::abi::layout::slot;
use tench::abi::object::{SCHEDULING_CONTEXT_BITS, THREAD_BITS, ThreadState};
use tench::abi::{Operation, Tag};
use tench::memory::{self, take_slot};
use tench::sys::{
    Cap, CapAddress, Endpoint, Error, Instant, Kind, Notification, OWN_CSPACE, Placement, SchedulingContext, Thread,
    Untyped, Wait,
};
use tench_random::Random;

use super::{MEASURED, Space, cost_of, report};
use crate::bare_threads::{BareThread, Code, Home};
use crate::support::problem;

/// Numbers of threads.
const SIZES: [usize; 4] = [100, 1000, 10_000, MANY];
/// Maximum number of threads.
const MANY: usize = 100_000;
/// Log2 of the memory for threads, and for their scheduling contexts, with room for one more than [`MANY`].
const THREADS_BITS: u32 = 29;
const CONTEXTS_BITS: u32 = 25;
const _: () = assert!((MANY + 1) << THREAD_BITS <= 1 << THREADS_BITS);
const _: () = assert!((MANY + 1) << SCHEDULING_CONTEXT_BITS <= 1 << CONTEXTS_BITS);

/// Lowest priority of the many, and the number of their priorities.
const LOWEST: u64 = 10;
const PRIORITIES: u64 = 90;
/// Priorities of the experiment.
const BELOW: u64 = LOWEST - 1;
const ABOVE: u64 = LOWEST + PRIORITIES;

/// Number of random threads of which it is checked that they wait.
const CHECKED: usize = 100;
/// Number of threads received from until they run again.
const BATCH: usize = 10;

/// Many threads.
struct Crowd {
    threads: Cap<Untyped>,
    contexts: Cap<Untyped>,
    count: usize,
    /// Slots of a new thread and of its scheduling context.
    slots: [CapAddress; 2],
    /// Endpoint at which they send.
    endpoint: Cap<Endpoint>,
    /// A notification that nobody signals.
    never: Cap<Notification>,
    random: Random,
}

/// Sets the experiment's own priority. With [`BELOW`], all ready threads of the crowd run before this returns.
fn run_at(priority: u64) -> Result<(), Error> {
    let own = Cap::<SchedulingContext>::new(slot::SCHEDULING);
    let info = own.query()?;
    own.configure(priority, info.ceiling, info.slice, None)
}

impl Crowd {
    /// Makes thread number `i`, with its capabilities in this program's slots. It does not run.
    fn make(&self, i: usize, priority: u64) -> Result<BareThread, Error> {
        let [thread, scheduling] = self.slots;
        let place = |bits| Placement::At((i as u64) << bits);
        self.threads.retype_many(Kind::Thread, 0, 1, place(THREAD_BITS), OWN_CSPACE, thread)?;
        let kind = Kind::SchedulingContext;
        self.contexts.retype_many(kind, 0, 1, place(SCHEDULING_CONTEXT_BITS), OWN_CSPACE, scheduling)?;
        BareThread { thread: Cap::new(thread), scheduling: Cap::new(scheduling) }.set_up(priority, Home::OWN)
    }

    /// Returns a random priority of the crowd.
    fn priority(&mut self) -> u64 {
        LOWEST + self.random.below(PRIORITIES)
    }

    /// Returns a random instant in the distant future.
    fn deadline(&mut self) -> u64 {
        Instant::now().after(1 << 40).ticks() + self.random.below(1 << 30)
    }

    /// Returns the registers of a thread that sends.
    fn sender(&mut self) -> [u64; 3] {
        [Tag::DEADLINE, u64::from(self.endpoint.address().0), self.deadline()]
    }

    /// Makes more threads, until there are `count`, and lets them send. Fails with `WrongState` if one does not wait.
    fn grow(&mut self, space: &Space, count: usize) -> Result<(), Error> {
        run_at(ABOVE)?;
        for i in self.count..count {
            let priority = self.priority();
            let BareThread { thread, scheduling } = self.make(i, priority)?;
            BareThread { thread, scheduling }.start(Code::Again, &[], self.sender())?;
            space.root.move_from(Space::address_of(2 * i), OWN_CSPACE, thread.address())?;
            space.root.move_from(Space::address_of(2 * i + 1), OWN_CSPACE, scheduling.address())?;
        }
        self.count = count;
        run_at(BELOW)?;
        (0..CHECKED).try_for_each(|_| self.check(space))
    }

    /// Checks that a random thread waits to send.
    fn check(&mut self, space: &Space) -> Result<(), Error> {
        let [slot, _] = self.slots;
        let address = Space::address_of(2 * self.random.index(self.count));
        OWN_CSPACE.copy_from(slot, space.root, address)?;
        let state = Cap::<Thread>::new(slot).query().map(|info| info.state);
        OWN_CSPACE.delete_at(slot)?;
        if state? == ThreadState::Sending { Ok(()) } else { Err(Error::WrongState) }
    }

    /// Measures the making of a thread, which is deleted at once.
    fn making(&mut self) -> Result<u64, Error> {
        let priority = self.priority();
        let cost = cost_of(|| self.make(self.count, priority));
        self.slots.into_iter().try_for_each(|slot| OWN_CSPACE.delete_at(slot).map(drop))?;
        cost
    }

    /// Measures receiving from some threads, and lets them send again.
    fn receiving(&mut self, costs: &mut Vec<u64>) -> Result<(), Error> {
        run_at(ABOVE)?;
        for _ in 0..BATCH {
            costs.push(cost_of(|| self.endpoint.receive(Wait::FOREVER))?);
        }
        run_at(BELOW)
    }

    /// Measures the resuming of a suspended thread of a random priority, which is suspended again. The experiment runs
    /// at priority `own` meanwhile.
    fn resuming(&mut self, thread: BareThread, own: u64) -> Result<u64, Error> {
        let priority = self.priority();
        thread.scheduling.configure(priority, priority, 0, None)?;
        run_at(own)?;
        let cost = cost_of(|| thread.thread.resume());
        thread.thread.suspend()?;
        cost
    }

    /// Measures a thread that sends. With [`ABOVE`], it only becomes ready.
    fn sending(&mut self, thread: BareThread, own: u64) -> Result<u64, Error> {
        thread.prepare(Code::Again, &[], self.sender())?;
        self.resuming(thread, own)
    }

    /// Measures a thread that waits for the timer.
    fn sleeping(&mut self, thread: BareThread) -> Result<u64, Error> {
        let mut x = [0; 13];
        (x[0], x[1], x[10]) = (u64::from(self.never.address().0), Tag::DEADLINE, Operation::Receive as u64);
        x[12] = self.deadline();
        thread.prepare(Code::Once, &x, [u64::from(thread.thread.address().0), 0, 0])?;
        self.resuming(thread, BELOW)
    }

    /// Prints a figure of [`MEASURED`] operations.
    fn figure(&mut self, key: &str, mut operation: impl FnMut(&mut Self) -> Result<u64, Error>) -> Result<(), String> {
        let costs = (0..MEASURED).map(|_| operation(self)).collect::<Result<Vec<_>, _>>().map_err(problem(key))?;
        report(key, self.count, &costs);
        Ok(())
    }

    /// Measures everything beside the threads that there are.
    fn figures(&mut self) -> Result<(), String> {
        self.figure("make_thread", Self::making)?;
        let mut costs = Vec::with_capacity(MEASURED);
        while costs.len() < MEASURED {
            self.receiving(&mut costs).map_err(problem("receive"))?;
        }
        report("receive", self.count, &costs);
        let priority = self.priority();
        let thread = self.make(self.count, priority).map_err(problem("another thread"))?;
        self.figure("send", |crowd| crowd.sending(thread, BELOW))?;
        self.figure("sleep", |crowd| crowd.sleeping(thread))?;
        self.figure("ready", |crowd| crowd.sending(thread, ABOVE))?;
        let deleted = thread.thread.delete().and_then(|_| thread.scheduling.delete());
        deleted.map(drop).map_err(problem("deleting it"))
    }
}

/// Measures beside each number of threads. They end with the experiment.
pub fn measure(space: &Space) -> Result<(), String> {
    let slot = || take_slot().map_err(problem("a slot"));
    let (endpoint, never) = (memory::make::<Endpoint>(0), memory::make::<Notification>(0));
    let mut crowd = Crowd {
        threads: super::memory(THREADS_BITS)?,
        contexts: super::memory(CONTEXTS_BITS)?,
        count: 0,
        slots: [slot()?, slot()?],
        endpoint: endpoint.map_err(problem("an endpoint"))?.leak(),
        never: never.map_err(problem("a notification"))?.leak(),
        random: Random::new(2),
    };
    for count in SIZES {
        crowd.grow(space, count).map_err(problem("making threads"))?;
        crowd.figures()?;
    }
    Ok(())
}
