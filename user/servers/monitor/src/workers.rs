//! Threads that make calls which take time, so that the monitor's main thread never waits for a server.
//!
//! A worker is started when no other is idle, and stays. Whoever started a process that is gone cancels what a worker
//! does for it: a server forgets those who wait when it hears that their process has ended, and the worker, which lives
//! on, would wait for ever.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use tench::sync::{Condvar, Mutex};
use tench::thread;
use tench_abi::object::ThreadState;
use tench_monitor::message::Words;
use tench_sys::{Cap, Notification, SchedulingContext, Thread};

use crate::capabilities;
use crate::processes;
use crate::services::{Request, Services};
use crate::slots::Caps;

/// Bytes of a worker's stack.
const STACK: usize = 32 * 1024;

/// What a worker does.
pub enum Task {
    /// Asks a server of this core.
    Serve(Box<Request>),
    /// Asks this core's process server or memory server.
    Processes(processes::Task),
    /// Something about capabilities.
    Capabilities(capabilities::Task),
}

/// For whom a worker works: the server's number, and the badge with which it is asked.
pub type Client = (u64, u64);

/// A worker, as it and the main thread see it.
pub struct Worker {
    task: Mutex<Option<Task>>,
    given: Condvar,
    /// It is in a call that can be cancelled: what it touches until the call is over is there, so that no page fault is
    /// cancelled instead.
    pub is_calling: AtomicBool,
    /// What it does is wanted no more.
    pub is_cancelled: AtomicBool,
}

/// What workers and the main thread share.
pub struct Shared {
    /// The servers of this core.
    pub services: Arc<Services>,
    /// Who is done, and the answer.
    done: Mutex<Vec<(usize, Product)>>,
    /// Wakes the main thread.
    wake: Cap<Notification>,
}

/// What comes of a worker's work: the answer, and capabilities that are part of it.
pub struct Product {
    /// The answer.
    pub words: Words,
    /// Whoever takes it out has them from then on.
    pub caps: Caps,
}

impl From<Words> for Product {
    fn from(words: Words) -> Product {
        Product { words, caps: Caps::new() }
    }
}

/// What a worker does: who is to be answered, for whom it is, and whether it can take for ever.
type Job<O> = (O, Client, bool);

/// A worker as the main thread knows it. `O` is who is to be answered.
struct Member<O> {
    worker: Arc<Worker>,
    thread: Cap<Thread>,
    /// What it runs on, and how much of that it had used when it was looked at last.
    context: Cap<SchedulingContext>,
    used: u64,
    job: Option<Job<O>>,
}

/// The workers.
pub struct Pool<O> {
    shared: Arc<Shared>,
    members: Vec<Member<O>>,
    limit: usize,
}

impl<O> Pool<O> {
    /// At most so many workers; none at first.
    pub fn new(limit: usize, services: Arc<Services>, wake: Cap<Notification>) -> Pool<O> {
        let shared = Arc::new(Shared { services, done: Mutex::new(Vec::new()), wake });
        Pool { shared, members: Vec::new(), limit }
    }

    /// A worker that is idle, or a new one.
    fn idle(&mut self) -> Option<usize> {
        self.members.iter().position(|member| member.job.is_none()).or_else(|| self.add())
    }

    /// Whether a worker is idle, or one more can be started.
    pub fn has_room(&mut self) -> bool {
        self.idle().is_some()
    }

    /// Lets a worker do something, which can take for ever or not. Answers who asked, if all workers are at work and no
    /// more can be started.
    pub fn start(&mut self, origin: O, client: Client, task: Task, takes_long: bool) -> Result<(), O> {
        let idle = self.idle();
        let Some(member) = idle.and_then(|place| self.members.get_mut(place)) else { return Err(origin) };
        member.job = Some((origin, client, takes_long));
        member.worker.is_cancelled.store(false, Ordering::Relaxed);
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
        let worker = Arc::new(Worker {
            task: Mutex::new(None),
            given: Condvar::new(),
            is_calling: AtomicBool::new(false),
            is_cancelled: AtomicBool::new(false),
        });
        let (own, shared) = (Arc::clone(&worker), Arc::clone(&self.shared));
        let builder = thread::Builder::new().stack_size(STACK).name("worker");
        let handle = builder.spawn(move || own.work(number, &shared)).ok()?;
        let (thread, context) = (handle.thread()?, handle.scheduling()?);
        // It never ends.
        handle.detach();
        self.members.push(Member { worker, thread, context, used: 0, job: None });
        Some(number)
    }

    /// Takes out who is to be answered, for whom it was done and whether it could take for ever, and the answer.
    /// `charge` is told for whom how many ticks were used.
    pub fn finished(&mut self, charge: impl FnOnce(&O, u64)) -> Option<(O, Client, bool, Product)> {
        let (number, product) = self.shared.done.lock().pop()?;
        let member = self.members.get_mut(number)?;
        let (origin, client, took_long) = member.job.take()?;
        if let Ok(now) = member.context.query() {
            charge(&origin, now.consumed - core::mem::replace(&mut member.used, now.consumed));
        }
        Some((origin, client, took_long, product))
    }

    /// Who waits for what is being done for a client, so that who has gone can be taken out.
    pub fn origins(&mut self, client: impl Fn(Client) -> bool) -> impl Iterator<Item = (&mut O, &AtomicBool)> {
        self.members.iter_mut().filter_map(move |member| {
            let (origin, ..) = member.job.as_mut().filter(|(_, of, _)| client(*of))?;
            Some((origin, &member.worker.is_cancelled))
        })
    }

    /// Ends what is done for whom. Answers whether nothing is done any more; otherwise it is to be called again.
    pub fn cancel(&mut self, for_whom: impl Fn(&O, Client) -> bool) -> bool {
        let mut is_over = true;
        let is_it = |member: &&Member<O>| member.job.as_ref().is_some_and(|(origin, of, _)| for_whom(origin, *of));
        for member in self.members.iter().filter(is_it) {
            is_over = false;
            member.worker.is_cancelled.store(true, Ordering::Relaxed);
            let waits = |state| matches!(state, ThreadState::Sending | ThreadState::AwaitingReply);
            let is_waiting = member.thread.query().is_ok_and(|thread| waits(thread.state));
            if is_waiting && member.worker.is_calling.load(Ordering::Acquire) {
                // The call ends with `Aborted`.
                let _ = member.thread.suspend();
                let _ = member.thread.resume();
            }
        }
        is_over
    }
}

impl Worker {
    /// Does one thing after another.
    fn work(&self, number: usize, shared: &Shared) {
        let mut room = crate::services::Room::new();
        loop {
            let mut task = self.given.wait_while(self.task.lock(), |task| task.is_none());
            let Some(next) = task.take() else { continue };
            drop(task);
            let product = match next {
                Task::Serve(request) => shared.services.serve(*request, self, &mut room),
                Task::Processes(task) => processes::carry_out(&task, &self.is_cancelled).into(),
                Task::Capabilities(task) => capabilities::carry_out(&task).into(),
            };
            shared.done.lock().push((number, product));
            // It is there as long as this process.
            let _ = shared.wake.signal();
        }
    }
}
