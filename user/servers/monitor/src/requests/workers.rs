//! Workers: threads that make slow calls, so that the monitor's main thread never waits for a server.
//!
//! A worker is started when no other is idle, and stays. When a process has ended, the calls that workers make for it
//! are cancelled: a server drops the waits of a process of whose end it is told, and the worker, which goes on, would
//! wait for ever.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use tench::sync::{Condvar, Mutex};
use tench::thread;
use tench_abi::layout::slot;
use tench_abi::object::ThreadState;
use tench_monitor::message::Words;
use tench_sys::{Cap, Notification, SchedulingContext, Thread};

use crate::Result;
use crate::requests::processes;
use crate::requests::services::{Request, Services};
use crate::slots::Caps;

/// Size of a worker's stack in bytes.
const STACK: usize = 32 * 1024;

/// A worker's task.
pub enum Task<T> {
    /// A call to a server of this core.
    Serve(Box<Request>),
    /// A call to this core's process server or memory server.
    Processes(processes::Task),
    /// A task of the monitor's own.
    Own(T),
}

/// The client of a task: the server's number, and the badge with which it is called.
pub type Client = (u64, u64);

/// A task of the monitor's own, which a higher layer defines.
pub trait OwnTask: Send + 'static {
    /// Carries out the task, and returns the result. Only workers call this, since it can take long.
    fn carry_out(&self) -> Words;
}

/// State shared by a worker and the main thread.
struct Worker<T> {
    task: Mutex<Option<Task<T>>>,
    given: Condvar,
    call: Call,
}

/// State of a worker's call, shared by the worker and the main thread.
#[derive(Default)]
pub struct Call {
    /// Set while the worker is in a call that can be cancelled. What it touches until the call is over is already
    /// mapped, so that no page fault is cancelled instead.
    pub is_calling: AtomicBool,
    /// Set if the task is cancelled.
    pub is_cancelled: AtomicBool,
}

/// State shared by all workers and the main thread.
pub struct Shared {
    /// The servers of this core.
    pub services: Arc<Services>,
    /// Workers that are done, with their results.
    done: Mutex<Vec<(usize, Product)>>,
    /// Wakes the main thread.
    wake: Cap<Notification>,
}

/// Result of a task: the reply, and its capabilities.
pub struct Product {
    pub words: Words,
    /// Capabilities of the reply, owned by whoever takes them out.
    pub caps: Caps,
}

impl From<Words> for Product {
    fn from(words: Words) -> Product {
        Product { words, caps: Caps::new() }
    }
}

/// A worker's job: the party that gets the reply, the client, and whether it can block for ever.
type Job<O> = (O, Client, bool);

/// A worker, as the main thread sees it. `O` is the party that gets the reply.
struct Member<O, T> {
    worker: Arc<Worker<T>>,
    thread: Cap<Thread>,
    /// Scheduling context of the worker; `used` is the time that it had used at the last check.
    context: Cap<SchedulingContext>,
    used: u64,
    job: Option<Job<O>>,
}

/// The workers.
pub struct Pool<O, T> {
    shared: Arc<Shared>,
    members: Vec<Member<O, T>>,
    limit: usize,
    /// The monitor's own priority, which the workers have.
    priority: u8,
}

impl<O, T: OwnTask> Pool<O, T> {
    /// Returns a pool without workers, which starts at most `limit`. Called before the monitor serves anybody: while it
    /// serves, it has its client's priority.
    pub fn new(limit: usize, services: Arc<Services>, wake: Cap<Notification>) -> Result<Pool<O, T>> {
        let priority = Cap::<Thread>::new(slot::THREAD).query()?.priority as u8;
        let shared = Arc::new(Shared { services, done: Mutex::new(Vec::new()), wake });
        Ok(Pool { shared, members: Vec::new(), limit, priority })
    }

    /// Returns an idle or a new worker.
    fn idle(&mut self) -> Option<usize> {
        self.members.iter().position(|member| member.job.is_none()).or_else(|| self.add())
    }

    /// Returns whether a worker is idle, or one more can be started.
    pub fn has_capacity(&mut self) -> bool {
        self.idle().is_some()
    }

    /// Gives a worker a task, which may block for ever if `takes_long`. `origin` makes the origin from `what`, which is
    /// returned if all workers are busy and no more can be started.
    pub fn start<W>(
        &mut self,
        what: W,
        origin: impl FnOnce(W) -> O,
        client: Client,
        task: Task<T>,
        takes_long: bool,
    ) -> core::result::Result<(), W> {
        let idle = self.idle();
        let Some(member) = idle.and_then(|place| self.members.get_mut(place)) else { return Err(what) };
        member.job = Some((origin(what), client, takes_long));
        member.worker.call.is_cancelled.store(false, Ordering::Relaxed);
        *member.worker.task.lock() = Some(task);
        member.worker.given.notify_one();
        Ok(())
    }

    /// Starts another worker.
    fn add(&mut self) -> Option<usize> {
        let number = self.members.len();
        if number >= self.limit || self.members.try_reserve(1).is_err() {
            return None;
        }
        let worker = Arc::new(Worker { task: Mutex::new(None), given: Condvar::new(), call: Call::default() });
        let (own, shared) = (Arc::clone(&worker), Arc::clone(&self.shared));
        let builder = thread::Builder::new().stack_size(STACK).priority(self.priority).name("worker");
        let handle = builder.spawn(move || own.work(number, &shared)).ok()?;
        let (thread, context) = (handle.thread()?, handle.scheduling()?);
        // The thread never ends.
        handle.detach();
        self.members.push(Member { worker, thread, context, used: 0, job: None });
        Some(number)
    }

    /// Removes a finished task: the party that gets the reply, the client, whether it could block for ever, and the
    /// result. `charge` gets the origin and the ticks used.
    pub fn finished(&mut self, charge: impl FnOnce(&O, u64)) -> Option<(O, Client, bool, Product)> {
        let (number, product) = self.shared.done.lock().pop()?;
        let member = self.members.get_mut(number)?;
        let (origin, client, took_long) = member.job.take()?;
        if let Ok(now) = member.context.query() {
            charge(&origin, now.consumed - core::mem::replace(&mut member.used, now.consumed));
        }
        Some((origin, client, took_long, product))
    }

    /// Cancels matching tasks. Returns whether none is left; otherwise it has to be called again.
    pub fn cancel(&mut self, for_whom: impl Fn(&O, Client) -> bool) -> bool {
        let mut is_over = true;
        let is_it = |member: &&Member<O, T>| member.job.as_ref().is_some_and(|(origin, of, _)| for_whom(origin, *of));
        for member in self.members.iter().filter(is_it) {
            is_over = false;
            member.worker.call.is_cancelled.store(true, Ordering::Relaxed);
            let waits = |state| matches!(state, ThreadState::Sending | ThreadState::AwaitingReply);
            let is_waiting = member.thread.query().is_ok_and(|thread| waits(thread.state));
            if is_waiting && member.worker.call.is_calling.load(Ordering::Acquire) {
                // The call ends with `Aborted`.
                let _ = member.thread.suspend();
                let _ = member.thread.resume();
            }
        }
        is_over
    }
}

impl<T: OwnTask> Worker<T> {
    /// Carries out one task after another.
    fn work(&self, number: usize, shared: &Shared) {
        let mut buffers = crate::requests::services::CallBuffers::new();
        loop {
            let mut task = self.given.wait_while(self.task.lock(), |task| task.is_none());
            let Some(next) = task.take() else { continue };
            drop(task);
            let product = match next {
                Task::Serve(request) => shared.services.serve(*request, &self.call, &mut buffers),
                Task::Processes(task) => processes::carry_out(&task).into(),
                Task::Own(task) => task.carry_out().into(),
            };
            shared.done.lock().push((number, product));
            // The notification exists as long as this process.
            let _ = shared.wake.signal();
        }
    }
}
