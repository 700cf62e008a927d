//! The dispatcher of slow work: assigns workers, queues what has none, and tells whom to reply to when a worker is
//! done.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;

use tench_channel::Request as Number;
use tench_monitor::message::{Malformed, Outcome, Words, decode_result, ended};
use tench_monitor_interface::protocol::Error;
use tench_protocol::replies::write;
use tench_protocol::wire::{Encode, Source};
use tench_protocol::{Decode, Pending, Waiter};
use tench_quota::{Client as Asks, Quota};
use tench_sys::{Cap, Notification};

use crate::requests::processes::{self, EndpointRequest};
use crate::requests::services::{Request, Services};
use crate::requests::workers::{Client, OwnTask, Pool, Product, Task};

/// Maximum number of workers of a monitor.
const WORKERS: usize = 128;
/// Maximum number of workers in calls that can block for ever. The others are for short calls, such as killing a
/// process that is waited for.
const MAX_BLOCKED: usize = 112;
/// Pseudo client of the tasks that no process's end cancels.
const OWN: Client = (u64::MAX, 0);

/// A local requester. Its reply is made from the words of a worker or of another monitor.
pub type Requester = Waiter<[u64]>;

/// Returns the requester of a pending request.
pub fn requester<T: Encode + for<'a> Decode<'a>>(pending: Pending<T, Error>) -> Requester {
    pending.waiter(|words, message| write(&result::<T>(words), message))
}

/// Returns the words that refuse a request.
pub fn refusal(why: Error) -> Words {
    ended(Outcome::Refused, why as u64)
}

/// Decodes the words of a reply. Words from another monitor are checked, not trusted.
pub fn result<T: Encode + for<'a> Decode<'a>>(words: &[u64]) -> Result<T, Error> {
    let (outcome, words) = decode_result(words).map_err(|_| Error::Broken)?;
    match outcome {
        Outcome::Replied => {
            let kept = core::cell::Cell::new(0);
            let mut source = Source::new(words, &[], &kept);
            T::decode(&mut source).filter(|_| source.is_done()).ok_or(Error::Broken)
        }
        Outcome::Refused => Err(words.first().and_then(|code| Error::from_code(*code)).unwrap_or(Error::Broken)),
        Outcome::Busy => Err(Error::Full),
        _ => Err(Error::Internal),
    }
}

/// The purpose of a task of the monitor's own, which a higher layer defines.
pub trait Purpose: Sized {
    /// The task.
    type Task: OwnTask;

    /// Returns the core to which the task's time is charged, if another core requested it.
    fn payer(&self) -> Option<u64>;
}

/// The party that gets the reply when a worker is done.
pub enum Origin<W> {
    /// Another core, for this request.
    Peer(u64, Number),
    /// Another core, for the process server's endpoint for a process with this badge.
    Guest(u64, Number, u64),
    /// A local requester.
    Here(Requester),
    /// A local requester whose request goes to another core's process server afterwards.
    Processes(EndpointRequest),
    /// The monitor itself, for this purpose.
    Own(W),
    /// Nobody: the result is dropped.
    Nobody,
}

/// The dispatcher.
pub struct Dispatcher<W: Purpose> {
    pub core: u64,
    pool: Pool<Origin<W>, W::Task>,
    /// Quota of the workers that may block for ever.
    quota: Quota,
    /// Reports of ended processes that have to wait for the cancelled work of these processes.
    postponed: VecDeque<(u64, Number, Request)>,
}

impl<W: Purpose> Dispatcher<W> {
    /// Returns the dispatcher of this core.
    pub fn new(core: u64, services: Arc<Services>, wake: Cap<Notification>) -> crate::Result<Dispatcher<W>> {
        let (pool, quota) = (Pool::new(WORKERS, services, wake)?, Quota::new(MAX_BLOCKED));
        Ok(Dispatcher { core, pool, quota, postponed: VecDeque::new() })
    }

    /// Makes a worker call a server for a process of another core. Returns the refusal if there is no worker.
    pub fn serve(&mut self, core: u64, number: Number, request: Request) -> Result<(), Outcome> {
        if request.ended_client().is_some() {
            self.postponed.push_back((core, number, request));
            return Ok(());
        }
        let (client, takes_long) = (request.client(), request.waits());
        // If it is not begun, it is dropped with its capabilities.
        self.start(Origin::Peer(core, number), client, Task::Serve(Box::new(request)), takes_long)
    }

    /// Makes a worker get this core's use of memory for another core. (The function has its name in the executable:
    /// tests find it by that name, to make it fail on one core.)
    #[inline(never)]
    pub fn memory_for(&mut self, core: u64, number: Number) -> Result<(), Outcome> {
        self.start_task(Origin::Peer(core, number), processes::Task::Memory)
    }

    /// Makes a worker get this core's use of memory for a local requester. There must be
    /// [capacity](Self::has_capacity).
    pub fn memory(&mut self, requester: Requester) {
        let _ = self.start_task(Origin::Here(requester), processes::Task::Memory);
    }

    /// Returns whether a worker is free or can be started.
    pub fn has_capacity(&mut self) -> bool {
        self.pool.has_capacity()
    }

    /// Makes a worker tell the process server the ceiling of a process of another core. Returns the refusal if there is
    /// no worker.
    pub fn admit(&mut self, core: u64, number: Number, badge: u64, ceiling: u8) -> Result<(), Outcome> {
        self.start_task(Origin::Guest(core, number, badge), processes::Task::Admit(badge, ceiling))
    }

    /// Makes a worker tell the process server that a process of another core has one way fewer to reach it. Returns
    /// whether there is a worker.
    pub fn forget(&mut self, process: u64) -> bool {
        self.start_task(Origin::Nobody, processes::Task::Forget(process)).is_ok()
    }

    /// Makes a worker ask for the ceiling of a local process. There must be [capacity](Self::has_capacity).
    pub fn vouch(&mut self, process: u64, request: EndpointRequest) {
        let _ = self.start_task(Origin::Processes(request), processes::Task::Vouch(process));
    }

    fn start_task(&mut self, origin: Origin<W>, task: processes::Task) -> Result<(), Outcome> {
        self.pool.start(origin, |origin| origin, OWN, Task::Processes(task), false).map_err(|_| Outcome::Busy)
    }

    /// Makes a worker do something for the monitor itself. Returns the purpose if there is no worker.
    pub fn work(&mut self, work: W, task: W::Task) -> Result<(), W> {
        self.pool.start(work, Origin::Own, OWN, Task::Own(task), false)
    }

    /// Cancels a request of another core, where its reply is no longer awaited.
    pub fn cancel(&mut self, core: u64, index: usize) {
        let is_it =
            |origin: &Origin<W>| matches!(origin, Origin::Peer(of, number) if *of == core && number.index() == index);
        // If the request is not over yet, the other core cancels it again.
        let _ = self.pool.cancel(|origin, _| is_it(origin));
    }

    fn start(
        &mut self,
        origin: Origin<W>,
        (service, requester): (u64, Asks),
        task: Task<W::Task>,
        takes_long: bool,
    ) -> Result<(), Outcome> {
        if takes_long && !self.quota.may_take(requester) {
            return Err(Outcome::Busy);
        }
        self.pool
            .start(origin, |origin| origin, (service, requester.process), task, takes_long)
            .map_err(|_| Outcome::Busy)?;
        if takes_long {
            self.quota.take(requester);
        }
        Ok(())
    }

    /// Starts postponed work that can begin now.
    pub fn resume(&mut self) {
        for _ in 0..self.postponed.len() {
            let Some((core, number, request)) = self.postponed.pop_front() else { return };
            let is_over = request.ended_client().is_none_or(|client| self.pool.cancel(|_, of| of == client));
            if !(is_over && self.pool.has_capacity()) {
                self.postponed.push_back((core, number, request));
                continue;
            }
            let client = request.client();
            // There is room, so the task starts.
            let _ = self.start(Origin::Peer(core, number), client, Task::Serve(Box::new(request)), false);
        }
    }

    /// Returns whether work is postponed.
    pub fn is_waiting(&self) -> bool {
        !self.postponed.is_empty()
    }

    /// Removes a finished task, and returns the party that gets the reply, and the result. If another core requested
    /// the task, `charge` is called with that core and the ticks that the task took.
    pub fn finished(&mut self, charge: impl FnOnce(u64, u64)) -> Option<(Origin<W>, Product)> {
        let charge = |origin: &Origin<W>, ticks| {
            let payer = match origin {
                Origin::Peer(core, _) | Origin::Guest(core, ..) => Some(*core),
                Origin::Own(work) => work.payer(),
                Origin::Here(_) | Origin::Processes(_) | Origin::Nobody => None,
            };
            if let Some(core) = payer {
                charge(core, ticks);
            }
        };
        let (origin, (_, requester), was_charged, product) = self.pool.finished(charge)?;
        if was_charged {
            self.quota.give_back(requester);
        }
        Some((origin, product))
    }
}

/// Returns the reply to words that are no valid message.
pub fn malformed(why: Malformed) -> (Outcome, u64) {
    (Outcome::Malformed, why as u64)
}
