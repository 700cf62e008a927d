//! The primitives on the host.
//!
//! Each task is a thread of the host, of which one at a time runs: the task that is `running`. Each primitive changes
//! the table, queues its caller behind its equals if it is still ready, and switches to the first task of the highest
//! priority. So the order of events depends on nothing but the program.

use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::cell::RefCell;
use core::fmt;
use core::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::thread_local;

use crate::table::{Meeting, PRIORITIES, State, Table};
use crate::{CLOCK_EVENT, Ending, Error, MAX_MESSAGE, MAX_TASKS, Terminal, Tid};

/// A task's function.
type Function = Box<dyn FnOnce() + Send>;

/// Data of the simulated kernel about a task, besides its entry in the table.
#[derive(Default)]
struct Task {
    /// The task's message, while it is in `SendWait`.
    message: Vec<u8>,
    /// Maximum length of a reply, while the task sends.
    capacity: usize,
    /// The received message and its sender, for when the task continues in `receive`.
    received: Option<(Tid, Vec<u8>)>,
    /// The reply, or the error, for when the task continues in `send`.
    replied: Option<Result<Vec<u8>, Error>>,
}

/// The simulated kernel.
struct Kernel {
    table: Table,
    tasks: Vec<Task>,
    /// The running task; none before the session begins and after it has ended.
    running: Option<Tid>,
    ended: bool,
    /// Payload of a task's panic.
    panic: Option<Box<dyn Any + Send>>,
    /// Number of ticks that have passed. Tasks take no time, so time passes only when none can run.
    ticks: u64,
    terminal: Box<dyn Terminal>,
    threads: Vec<JoinHandle<()>>,
}

/// A session, shared by its threads.
struct Session {
    kernel: Mutex<Kernel>,
    /// By task: the task is running, or the session has ended.
    turns: Vec<Condvar>,
    /// The session has ended.
    end: Condvar,
}

/// Payload that unwinds a thread whose session has ended. Tasks never see it.
struct Ended;

/// Payload that unwinds a thread whose task calls [`exit`]. Tasks never see it.
struct Exited;

thread_local! {
    /// Session and task of this thread.
    static CURRENT: RefCell<Option<(Arc<Session>, Tid)>> = const { RefCell::new(None) };
}

/// Returns session and task of this thread.
fn current() -> (Arc<Session>, Tid) {
    CURRENT.with_borrow(Clone::clone).expect("only tasks can do this; see `run`")
}

impl Kernel {
    /// Chooses the next running task.
    fn schedule(&mut self) {
        self.table.check_invariants();
        self.running = self.table.take_next();
        if self.running.is_none() {
            self.ticks += u64::from(self.table.event_comes(CLOCK_EVENT).is_some());
            self.running = self.table.take_next();
        }
        self.ended |= self.running.is_none();
    }

    /// Delivers the message of `sender` to `receiver`.
    fn deliver(&mut self, sender: Tid, receiver: Tid) {
        let message = mem::take(&mut self.tasks[sender.0 as usize].message);
        self.tasks[receiver.0 as usize].received = Some((sender, message));
    }

    /// Performs `Send`, up to the point where the sender waits.
    fn send(&mut self, sender: Tid, receiver: Tid, message: &[u8], capacity: usize) -> Result<(), Error> {
        if message.len() > MAX_MESSAGE {
            return Err(Error::MessageTooLong);
        }
        let meeting = self.table.send(sender, receiver)?;
        let task = &mut self.tasks[sender.0 as usize];
        task.message = message.to_vec();
        task.capacity = capacity;
        if meeting == Meeting::Delivered {
            self.deliver(sender, receiver);
            self.table.queue(receiver);
        }
        Ok(())
    }

    /// Performs `Receive`, up to the point where the receiver may have to wait.
    fn receive(&mut self, receiver: Tid) {
        if let Some(sender) = self.table.receive(receiver) {
            self.deliver(sender, receiver);
        }
    }

    /// Performs `Reply`.
    fn reply(&mut self, sender: Tid, message: &[u8]) -> Result<usize, Error> {
        if message.len() > MAX_MESSAGE {
            return Err(Error::MessageTooLong);
        }
        self.table.reply(sender)?;
        let task = &mut self.tasks[sender.0 as usize];
        let length = message.len().min(task.capacity);
        task.replied = Some(Ok(message[..length].to_vec()));
        Ok(length)
    }

    /// Performs `Exit`.
    fn exit(&mut self, tid: Tid) {
        let Kernel { table, tasks, .. } = self;
        tasks[tid.0 as usize] = Task::default();
        table.exit(tid, |sender| tasks[sender.0 as usize].replied = Some(Err(Error::Incomplete)));
    }
}

impl Session {
    /// Locks the simulated kernel. A task that panicked has changed it only as the primitives do.
    fn kernel(&self) -> MutexGuard<'_, Kernel> {
        self.kernel.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the threads concerned by a change of the running task.
    fn wake(&self, kernel: &Kernel) {
        match kernel.running {
            Some(tid) => self.turns[tid.0 as usize].notify_one(),
            None => {
                self.turns.iter().for_each(Condvar::notify_all);
                self.end.notify_all();
            }
        }
    }

    /// Waits until a task is running.
    fn await_turn<'a>(&'a self, mut kernel: MutexGuard<'a, Kernel>, tid: Tid) -> MutexGuard<'a, Kernel> {
        while kernel.running != Some(tid) {
            if kernel.ended {
                drop(kernel);
                resume_unwind(Box::new(Ended));
            }
            kernel = self.turns[tid.0 as usize].wait(kernel).unwrap_or_else(PoisonError::into_inner);
        }
        kernel
    }
}

/// Enters the simulated kernel for the calling task. `begin` is the immediate part of the primitive; when the task runs
/// again, `finish` makes the result.
fn enter<T, R>(begin: impl FnOnce(&mut Kernel, Tid) -> T, finish: impl FnOnce(&mut Task, T) -> R) -> R {
    let (session, tid) = current();
    let mut kernel = session.kernel();
    let begun = begin(&mut kernel, tid);
    if kernel.table.state(tid) == State::Ready {
        kernel.table.queue(tid);
    }
    kernel.schedule();
    session.wake(&kernel);
    let mut kernel = session.await_turn(kernel, tid);
    finish(&mut kernel.tasks[tid.0 as usize], begun)
}

/// Makes a task and its thread, which waits until it is running.
fn spawn(
    session: &Arc<Session>,
    kernel: &mut Kernel,
    parent: Option<Tid>,
    priority: i32,
    function: Function,
) -> Result<Tid, Error> {
    let tid = kernel.table.create(parent, priority)?;
    let child = session.clone();
    let thread = thread::Builder::new().name(format!("task {tid}")).spawn(move || live(&child, tid, function));
    match thread {
        Ok(thread) => {
            kernel.threads.push(thread);
            kernel.table.queue(tid);
            Ok(tid)
        }
        Err(_) => {
            kernel.table.exit(tid, |_| ());
            Err(Error::OutOfTasks)
        }
    }
}

/// Runs a task from beginning to end.
fn live(session: &Arc<Session>, tid: Tid, function: Function) {
    CURRENT.set(Some((session.clone(), tid)));
    let end = catch_unwind(AssertUnwindSafe(|| {
        drop(session.await_turn(session.kernel(), tid));
        function();
    }));
    let mut kernel = session.kernel();
    match end {
        Err(payload) if payload.is::<Ended>() => return,
        Err(payload) if !payload.is::<Exited>() => {
            kernel.panic.get_or_insert(payload);
            kernel.running = None;
            kernel.ended = true;
        }
        _ => {
            kernel.exit(tid);
            kernel.schedule();
        }
    }
    session.wake(&kernel);
}

pub fn run(terminal: Box<dyn Terminal>, priority: i32, first: Function) -> Result<Ending, Error> {
    let session = Arc::new(Session {
        kernel: Mutex::new(Kernel {
            table: Table::new(PRIORITIES as u32),
            tasks: (0..MAX_TASKS).map(|_| Task::default()).collect(),
            running: None,
            ended: false,
            panic: None,
            ticks: 0,
            terminal,
            threads: Vec::new(),
        }),
        turns: (0..MAX_TASKS).map(|_| Condvar::new()).collect(),
        end: Condvar::new(),
    });
    let mut kernel = session.kernel();
    spawn(&session, &mut kernel, None, priority, first)?;
    kernel.schedule();
    session.wake(&kernel);
    while !kernel.ended {
        kernel = session.end.wait(kernel).unwrap_or_else(PoisonError::into_inner);
    }
    let threads = mem::take(&mut kernel.threads);
    drop(kernel);
    for thread in threads {
        // `live` catches every end of a task.
        let _ = thread.join();
    }
    let mut kernel = session.kernel();
    match kernel.panic.take() {
        Some(payload) => {
            drop(kernel);
            resume_unwind(payload)
        }
        None => Ok(Ending { waiting: kernel.table.len() }),
    }
}

pub fn create(priority: i32, function: Function) -> Result<Tid, Error> {
    let (session, _) = current();
    enter(|kernel, tid| spawn(&session, kernel, Some(tid), priority, function), |_, child| child)
}

pub fn max_priority() -> i32 {
    PRIORITIES as i32 - 1
}

pub fn my_tid() -> Tid {
    enter(|_, tid| tid, |_, tid| tid)
}

pub fn my_parent_tid() -> Option<Tid> {
    enter(|kernel, tid| kernel.table.parent(tid), |_, parent| parent)
}

pub fn yield_now() {
    enter(|_, _| (), |_, ()| ());
}

pub fn exit() -> ! {
    resume_unwind(Box::new(Exited))
}

pub fn send(receiver: Tid, message: &[u8], reply: &mut [u8]) -> Result<usize, Error> {
    let capacity = reply.len();
    enter(
        |kernel, tid| kernel.send(tid, receiver, message, capacity),
        |task, begun| {
            begun?;
            let received = task.replied.take().unwrap_or(Err(Error::Incomplete))?;
            reply[..received.len()].copy_from_slice(&received);
            Ok(received.len())
        },
    )
}

pub fn receive(message: &mut [u8]) -> (Tid, usize) {
    enter(
        |kernel, tid| kernel.receive(tid),
        |task, ()| {
            let (sender, text) = task.received.take().unwrap_or_default();
            let length = text.len().min(message.len());
            message[..length].copy_from_slice(&text[..length]);
            (sender, length)
        },
    )
}

pub fn reply(sender: Tid, message: &[u8]) -> Result<usize, Error> {
    enter(|kernel, _| kernel.reply(sender, message), |_, length| length)
}

pub fn await_event(event: i32) -> Result<u64, Error> {
    enter(|kernel, tid| kernel.table.await_event(tid, event), |_, result| result).map(|()| ticks())
}

pub fn ticks() -> u64 {
    current().0.kernel().ticks
}

pub fn idle_share() -> u32 {
    if ticks() == 0 { 0 } else { 1000 }
}

pub fn print(text: fmt::Arguments<'_>) {
    let text = format!("{text}");
    current().0.kernel().terminal.write(&text);
}

pub fn wait_key() {
    current().0.kernel().terminal.wait_key();
}
