//! What the tasks of a session have: threads, endpoints, reply objects, and who waits in which.
//!
//! A task's place is used again by the next task with its identifier, and by later sessions: its thread, endpoint,
//! notification and reply object are made once, when they are first needed, and stay until the process ends.
//!
//! # One reply object for each place is enough
//!
//! A task that waits to receive needs an empty one, a task that waits for a reply is held in one, and no task does
//! both. A task that receives without waiting takes one for the sender, who from then on waits for a reply.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use tench::sync::Mutex;
use tench::sys::{Cap, CapAddress, Endpoint, Notification, Reply, SchedulingContext, Thread};
use tench::thread;

use crate::table::{Meeting, PRIORITIES, Table};
use crate::{MAX_TASKS, Tid};

/// A task's function.
pub type Function = Box<dyn FnOnce() + Send>;

/// A capability that is made later; 0 until then.
#[derive(Debug)]
pub struct Later(AtomicU32);

impl Later {
    /// Not made yet.
    pub const fn none() -> Later {
        Later(AtomicU32::new(0))
    }

    /// Whether it was made.
    pub fn is_made(&self) -> bool {
        self.0.load(Relaxed) != 0
    }

    /// Keeps it.
    pub fn set<T>(&self, cap: Cap<T>) {
        self.0.store(cap.address().0, Relaxed);
    }

    /// Forgets it.
    pub fn clear(&self) {
        self.0.store(0, Relaxed);
    }

    /// The capability.
    #[inline]
    pub fn get<T>(&self) -> Cap<T> {
        Cap::new(CapAddress(self.0.load(Relaxed)))
    }
}

/// What the tasks with one identifier have, one after another.
pub struct Place {
    /// Where its messages arrive.
    pub endpoint: Later,
    /// Where it waits for something that is no message.
    pub notification: Later,
    /// Its thread, and
    pub thread: Later,
    /// what that runs on; none if it has no thread.
    pub scheduling: Later,
    /// What its thread is to run next.
    pub function: Mutex<Option<Function>>,
    /// While it waits for a reply: the number of the reply object that holds it.
    held: AtomicU32,
    /// While it waits to receive: the number of the reply object with which it does.
    waits_with: AtomicU32,
    /// While it sends: room for the reply.
    room: AtomicU32,
}

impl Place {
    /// Nothing is made yet.
    const fn empty() -> Place {
        Place {
            endpoint: Later::none(),
            notification: Later::none(),
            thread: Later::none(),
            scheduling: Later::none(),
            function: Mutex::new(None),
            held: AtomicU32::new(0),
            waits_with: AtomicU32::new(0),
            room: AtomicU32::new(0),
        }
    }
}

/// Entries of the list that says which thread is which task.
const OWNERS: usize = 256;

/// Everything about the tasks of this process. There is one session at a time.
pub struct Session {
    /// Who exists, who waits for whom.
    pub table: Table,
    /// Kernel priority of tasks of priority 0.
    pub base: AtomicU32,
    /// Highest priority of a task.
    pub top: AtomicU32,
    places: [Place; MAX_TASKS],
    replies: [Later; MAX_TASKS],
    /// Numbers of the reply objects that hold nobody, and of how many there are.
    free: [AtomicU32; MAX_TASKS],
    free_count: AtomicU32,
    /// By the number of a thread modulo the length: the number, and the identifier of its tasks and 1.
    owners: [AtomicU64; OWNERS],
}

pub static SESSION: Session = Session {
    table: Table::new(PRIORITIES as u32),
    base: AtomicU32::new(0),
    top: AtomicU32::new(0),
    places: [const { Place::empty() }; MAX_TASKS],
    replies: [const { Later::none() }; MAX_TASKS],
    free: [const { AtomicU32::new(0) }; MAX_TASKS],
    free_count: AtomicU32::new(0),
    owners: [const { AtomicU64::new(0) }; OWNERS],
};

impl Session {
    /// What belongs to an identifier.
    #[inline]
    pub fn place(&self, tid: Tid) -> &Place {
        &self.places[tid.0 as usize % MAX_TASKS]
    }

    /// Where a task's messages arrive.
    #[inline]
    pub fn endpoint(&self, tid: Tid) -> Cap<Endpoint> {
        self.place(tid).endpoint.get()
    }

    /// Where a task waits for something that is no message.
    #[inline]
    pub fn notification(&self, tid: Tid) -> Cap<Notification> {
        self.place(tid).notification.get()
    }

    /// A task's thread.
    pub fn thread(&self, tid: Tid) -> Cap<Thread> {
        self.place(tid).thread.get()
    }

    /// What a task's thread runs on.
    pub fn scheduling(&self, tid: Tid) -> Cap<SchedulingContext> {
        self.place(tid).scheduling.get()
    }

    /// The calling task.
    ///
    /// # Panics
    /// If the caller is no task.
    #[inline]
    pub fn me(&self) -> Tid {
        let thread = thread::current_id() as u64;
        let owner = self.owners[thread as usize % OWNERS].load(Relaxed);
        match (owner as u32 & 0xff).checked_sub(1) {
            Some(tid) if owner >> 8 == thread => Tid(tid),
            _ => panic!("only tasks can do this; see tench_srr::run"),
        }
    }

    /// Makes the calling thread that of an identifier. Answers whether that could be noted: another thread may be in
    /// the way.
    pub fn own(&self, tid: Tid) -> bool {
        let thread = thread::current_id() as u64;
        let owner = &self.owners[thread as usize % OWNERS];
        let free = owner.load(Relaxed) == 0;
        if free {
            owner.store((thread << 8) | (u64::from(tid.0) + 1), Relaxed);
        }
        free
    }

    /// Forgets whose thread the calling one is.
    pub fn disown(&self) {
        self.owners[thread::current_id() % OWNERS].store(0, Relaxed);
    }

    /// Adds a reply object.
    pub fn add_reply(&self, tid: Tid, cap: Cap<Reply>) {
        self.replies[tid.0 as usize % MAX_TASKS].set(cap);
        self.give_reply(tid.0);
    }

    /// A reply object, by its number.
    #[inline]
    pub fn reply(&self, number: u32) -> Cap<Reply> {
        self.replies[number as usize % MAX_TASKS].get()
    }

    /// Takes an empty reply object. There is one: see the head of this file.
    #[inline]
    pub fn take_reply(&self) -> u32 {
        let Some(count) = self.free_count.load(Relaxed).checked_sub(1) else {
            unreachable!("there are as many reply objects as tasks");
        };
        self.free_count.store(count, Relaxed);
        self.free[count as usize % MAX_TASKS].load(Relaxed)
    }

    /// Gives a reply object back, which is empty or about to be.
    #[inline]
    pub fn give_reply(&self, number: u32) {
        let count = self.free_count.load(Relaxed);
        self.free[count as usize % MAX_TASKS].store(number, Relaxed);
        self.free_count.store(count + 1, Relaxed);
    }

    /// A task receives with this reply object, and perhaps waits.
    #[inline]
    pub fn wait_with(&self, tid: Tid, number: u32) {
        self.place(tid).waits_with.store(number, Relaxed);
    }

    /// `sender` waits in this reply object.
    #[inline]
    pub fn hold(&self, sender: Tid, number: u32) {
        self.place(sender).held.store(number, Relaxed);
    }

    /// `sender` is about to send. If the receiver waits, it is known already which reply object will hold the sender.
    #[inline]
    pub fn expect_reply(&self, sender: Tid, receiver: Tid, meeting: Meeting, room: usize) {
        self.place(sender).room.store(room.min(crate::MAX_MESSAGE) as u32, Relaxed);
        if meeting == Meeting::Delivered {
            self.hold(sender, self.place(receiver).waits_with.load(Relaxed));
        }
    }

    /// In which reply object a task waits, and with how much room for the reply.
    #[inline]
    pub fn held(&self, sender: Tid) -> (u32, usize) {
        let place = self.place(sender);
        (place.held.load(Relaxed), place.room.load(Relaxed) as usize)
    }
}
