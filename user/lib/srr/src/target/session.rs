//! The resources of a session's tasks: threads, endpoints, reply objects, and which reply objects hold which tasks.
//!
//! A task's resources are reused by the next task with its identifier, and by later sessions: its endpoint,
//! notification and reply object are made once, when they are first needed, and stay until the process ends. Its thread
//! is replaced when its stack is used up, and the old one is freed.
//!
//! # One reply object for each identifier is enough
//!
//! A task that waits to receive needs an empty one, a task that waits for a reply is held in one, and no task does
//! both. A task that receives without waiting takes one for the sender, which from then on waits for a reply.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use tench::sync::Mutex;
use tench::sys::{Cap, CapAddress, Endpoint, Notification, Reply, SchedulingContext, Thread};
use tench::thread::{self, RawThread};

use crate::table::{Meeting, PRIORITIES, Table};
use crate::{MAX_TASKS, Tid};

/// A task's function.
pub type Function = Box<dyn FnOnce() + Send>;

/// A capability that is made later; 0 until then.
#[derive(Debug)]
pub struct Later(AtomicU32);

impl Later {
    /// Returns a capability that is not made yet.
    pub const fn none() -> Later {
        Later(AtomicU32::new(0))
    }

    /// Returns whether the capability was made.
    pub fn is_made(&self) -> bool {
        self.0.load(Relaxed) != 0
    }

    /// Sets the capability.
    pub fn set<T>(&self, cap: Cap<T>) {
        self.0.store(cap.address().0, Relaxed);
    }

    /// Clears the capability.
    pub fn clear(&self) {
        self.0.store(0, Relaxed);
    }

    /// Returns the capability.
    #[inline]
    pub fn get<T>(&self) -> Cap<T> {
        Cap::new(CapAddress(self.0.load(Relaxed)))
    }
}

/// Resources of the successive tasks with one identifier.
pub struct TaskResources {
    /// Endpoint of the task's messages.
    pub endpoint: Later,
    /// Notification on which the task waits for everything else.
    pub notification: Later,
    /// The task's thread.
    pub thread: Later,
    /// The thread's scheduling context; none if there is no thread, or one that has ended.
    pub scheduling: Later,
    /// The thread's memory. Only the session's caller uses it.
    pub memory: Mutex<Option<RawThread>>,
    /// The function that the thread is to run next.
    pub function: Mutex<Option<Function>>,
    /// Number of the reply object that holds the task, while it waits for a reply.
    held: AtomicU32,
    /// Number of the reply object with which the task receives, while it waits to receive.
    waits_with: AtomicU32,
    /// Length of the reply buffer in bytes, while the task sends.
    capacity: AtomicU32,
}

impl TaskResources {
    /// Returns empty resources.
    const fn empty() -> TaskResources {
        TaskResources {
            endpoint: Later::none(),
            notification: Later::none(),
            thread: Later::none(),
            scheduling: Later::none(),
            memory: Mutex::new(None),
            function: Mutex::new(None),
            held: AtomicU32::new(0),
            waits_with: AtomicU32::new(0),
            capacity: AtomicU32::new(0),
        }
    }
}

/// Number of entries of the table from threads to tasks.
const OWNERS: usize = 256;

/// State of the tasks of this process. There is one session at a time.
pub struct Session {
    /// The task table.
    pub table: Table,
    /// Kernel priority of tasks of priority 0.
    pub base: AtomicU32,
    /// Highest priority of a task.
    pub top: AtomicU32,
    tasks: [TaskResources; MAX_TASKS],
    replies: [Later; MAX_TASKS],
    /// Numbers of the reply objects that hold nobody, and the count of these.
    free: [AtomicU32; MAX_TASKS],
    free_count: AtomicU32,
    /// By the number of a thread modulo the length: that number, and the identifier of its tasks plus 1.
    owners: [AtomicU64; OWNERS],
}

pub static SESSION: Session = Session {
    table: Table::new(PRIORITIES as u32),
    base: AtomicU32::new(0),
    top: AtomicU32::new(0),
    tasks: [const { TaskResources::empty() }; MAX_TASKS],
    replies: [const { Later::none() }; MAX_TASKS],
    free: [const { AtomicU32::new(0) }; MAX_TASKS],
    free_count: AtomicU32::new(0),
    owners: [const { AtomicU64::new(0) }; OWNERS],
};

impl Session {
    /// Returns the resources of an identifier.
    #[inline]
    pub fn task(&self, tid: Tid) -> &TaskResources {
        &self.tasks[tid.0 as usize % MAX_TASKS]
    }

    /// Returns the endpoint of a task's messages.
    #[inline]
    pub fn endpoint(&self, tid: Tid) -> Cap<Endpoint> {
        self.task(tid).endpoint.get()
    }

    /// Returns the notification on which a task waits for everything else.
    #[inline]
    pub fn notification(&self, tid: Tid) -> Cap<Notification> {
        self.task(tid).notification.get()
    }

    /// Returns a task's thread.
    pub fn thread(&self, tid: Tid) -> Cap<Thread> {
        self.task(tid).thread.get()
    }

    /// Returns the scheduling context of a task's thread.
    pub fn scheduling(&self, tid: Tid) -> Cap<SchedulingContext> {
        self.task(tid).scheduling.get()
    }

    /// Returns the calling task.
    ///
    /// # Panics
    /// Panics if the caller is no task.
    #[inline]
    pub fn me(&self) -> Tid {
        let thread = thread::current_id() as u64;
        let owner = self.owners[thread as usize % OWNERS].load(Relaxed);
        match (owner as u32 & 0xff).checked_sub(1) {
            Some(tid) if owner >> 8 == thread => Tid(tid),
            _ => panic!("only tasks can do this; see tench_srr::run"),
        }
    }

    /// Records that the calling thread runs the tasks with an identifier. Returns whether that was possible: another
    /// thread's entry may be in the way.
    pub fn own(&self, tid: Tid) -> bool {
        let thread = thread::current_id() as u64;
        let owner = &self.owners[thread as usize % OWNERS];
        let free = owner.load(Relaxed) == 0;
        if free {
            owner.store((thread << 8) | (u64::from(tid.0) + 1), Relaxed);
        }
        free
    }

    /// Removes the record of the calling thread.
    pub fn disown(&self) {
        self.owners[thread::current_id() % OWNERS].store(0, Relaxed);
    }

    /// Adds a reply object.
    pub fn add_reply(&self, tid: Tid, cap: Cap<Reply>) {
        self.replies[tid.0 as usize % MAX_TASKS].set(cap);
        self.give_reply(tid.0);
    }

    /// Returns a reply object by its number.
    #[inline]
    pub fn reply(&self, number: u32) -> Cap<Reply> {
        self.replies[number as usize % MAX_TASKS].get()
    }

    /// Takes an empty reply object. There is one: see the module's documentation.
    #[inline]
    pub fn take_reply(&self) -> u32 {
        let Some(count) = self.free_count.load(Relaxed).checked_sub(1) else {
            unreachable!("there are as many reply objects as tasks");
        };
        self.free_count.store(count, Relaxed);
        self.free[count as usize % MAX_TASKS].load(Relaxed)
    }

    /// Returns a reply object, which is empty or about to be.
    #[inline]
    pub fn give_reply(&self, number: u32) {
        let count = self.free_count.load(Relaxed);
        self.free[count as usize % MAX_TASKS].store(number, Relaxed);
        self.free_count.store(count + 1, Relaxed);
    }

    /// Records that a task receives with this reply object, and perhaps waits.
    #[inline]
    pub fn wait_with(&self, tid: Tid, number: u32) {
        self.task(tid).waits_with.store(number, Relaxed);
    }

    /// Records that `sender` waits in this reply object.
    #[inline]
    pub fn hold(&self, sender: Tid, number: u32) {
        self.task(sender).held.store(number, Relaxed);
    }

    /// Prepares a send of `sender`. If the receiver waits, it is known already which reply object will hold the sender.
    #[inline]
    pub fn expect_reply(&self, sender: Tid, receiver: Tid, meeting: Meeting, capacity: usize) {
        self.task(sender).capacity.store(capacity.min(crate::MAX_MESSAGE) as u32, Relaxed);
        if meeting == Meeting::Delivered {
            self.hold(sender, self.task(receiver).waits_with.load(Relaxed));
        }
    }

    /// Returns the reply object in which a task waits, and the length of its reply buffer.
    #[inline]
    pub fn held(&self, sender: Tid) -> (u32, usize) {
        let task = self.task(sender);
        (task.held.load(Relaxed), task.capacity.load(Relaxed) as usize)
    }
}
