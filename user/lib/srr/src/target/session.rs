//! The tasks of a session, and their threads.
//!
//! A task's resources are reused by the next task with its identifier, and by later sessions: its endpoint and reply
//! objects are made once, when they are first needed, and stay until the process ends. Its thread is replaced when its
//! stack is used up, and the old one is freed.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

use tench::sync::Mutex;
use tench::sys::{Cap, CapAddress, Endpoint, Reply, SchedulingContext};

use crate::table::Table;
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
    #[inline]
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

/// Where the thread of a task is whose turn it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The thread waits at the task's endpoint with its bound reply object, or is about to.
    Endpoint,
    /// The thread waits there with its spare reply object, because another thread waits in the bound one.
    EndpointWithSpare,
    /// The thread waits for a reply, in this reply object of another task.
    Hook(Cap<Reply>),
    /// The task of an event has preempted the thread.
    Preempted,
    /// The turn of a preempted thread has come again.
    Continuing,
}

impl Place {
    /// Returns the place as one word, so that it changes atomically.
    #[inline]
    const fn pack(self) -> u64 {
        match self {
            Place::Endpoint => 0,
            Place::EndpointWithSpare => 1,
            Place::Hook(reply) => 2 | (reply.address().0 as u64) << 3,
            Place::Preempted => 3,
            Place::Continuing => 4,
        }
    }

    /// Returns the place that a word encodes.
    #[inline]
    const fn unpack(word: u64) -> Place {
        match word & 7 {
            0 => Place::Endpoint,
            1 => Place::EndpointWithSpare,
            2 => Place::Hook(Cap::new(CapAddress((word >> 3) as u32))),
            3 => Place::Preempted,
            _ => Place::Continuing,
        }
    }
}

/// A buffer on which another task works while its owner waits.
#[derive(Debug)]
pub struct Buffer {
    start: AtomicPtr<u8>,
    length: AtomicUsize,
}

impl Buffer {
    const fn none() -> Buffer {
        Buffer { start: AtomicPtr::new(core::ptr::null_mut()), length: AtomicUsize::new(0) }
    }

    /// Lends bytes to other tasks for reading, until the calling task continues.
    #[inline]
    pub fn lend(&self, bytes: &[u8]) {
        self.start.store(bytes.as_ptr().cast_mut(), Relaxed);
        self.length.store(bytes.len(), Relaxed);
    }

    /// Lends bytes to other tasks for writing, until the calling task continues.
    #[inline]
    pub fn lend_mut(&self, bytes: &mut [u8]) {
        self.start.store(bytes.as_mut_ptr(), Relaxed);
        self.length.store(bytes.len(), Relaxed);
    }

    /// Copies bytes out of the buffer, as many as fit. Returns their number.
    ///
    /// # Safety
    /// A task must have lent these bytes, and wait.
    #[inline]
    pub unsafe fn read(&self, into: &mut [u8]) -> usize {
        let length = into.len().min(self.length.load(Relaxed));
        // SAFETY: the caller guarantees that the buffer is readable, and `into` is borrowed by the running task alone.
        unsafe { into.as_mut_ptr().copy_from_nonoverlapping(self.start.load(Relaxed), length) };
        length
    }
}

/// The state of a task besides the table's, and the resources of the successive tasks with one identifier.
///
/// The size is a power of two, so that one instruction finds a task.
#[repr(align(128))]
pub struct Task {
    /// Address of the thread's block, by which a thread is recognised; 0 if there is no thread.
    pub block: AtomicUsize,
    /// Endpoint at which the thread waits for its turn.
    pub endpoint: Later,
    /// The thread's bound reply object.
    pub bound: Later,
    /// Identifier of the task whose thread waits in the bound reply object ([`Place::Hook`]), or [`NOBODY`].
    guest: AtomicU32,
    /// A reply object in which nobody ever waits.
    pub spare: Later,
    /// Set while the task is in a primitive, or has none of its own code to run yet: no event takes over from it.
    pub inside: AtomicBool,
    /// A [`Place`].
    place: AtomicU64,
    /// The task was preempted, and its turn has not come again.
    pub preempted: AtomicBool,
    /// By how much the thread's priority is above that of tasks that have preempted nobody.
    pub level: AtomicU32,
    /// The message to be sent, while the task stands in the receiver's queue.
    pub outgoing: Buffer,
    /// The buffer for the message or reply for which the task waits.
    pub incoming: Buffer,
    /// The sender of a received message.
    pub sender: AtomicU32,
    /// Length of the received message or reply in bytes; [`ABORTED`] for a send that cannot be completed.
    pub length: AtomicUsize,
    /// The thread's scheduling context; none if there is no thread, or one that is about to end.
    pub scheduling: Later,
    /// The function that the thread is to run next.
    pub function: Mutex<Option<Function>>,
}

const _: () = assert!(size_of::<Task>() == 128);

/// A [`Task::length`] that means that the send cannot be completed.
pub const ABORTED: usize = usize::MAX;

impl Task {
    /// Returns the state of an identifier that was never used.
    const fn new() -> Task {
        Task {
            block: AtomicUsize::new(0),
            endpoint: Later::none(),
            bound: Later::none(),
            guest: AtomicU32::new(NOBODY),
            spare: Later::none(),
            inside: AtomicBool::new(true),
            place: AtomicU64::new(Place::Endpoint.pack()),
            preempted: AtomicBool::new(false),
            level: AtomicU32::new(0),
            outgoing: Buffer::none(),
            incoming: Buffer::none(),
            sender: AtomicU32::new(0),
            length: AtomicUsize::new(0),
            scheduling: Later::none(),
            function: Mutex::new(None),
        }
    }

    /// Gives the task the message or reply for which it waits: as many bytes as fit. Returns their number.
    ///
    /// # Safety
    /// The task must have lent its buffer, and wait.
    #[inline]
    pub unsafe fn give(&self, bytes: &[u8]) -> usize {
        let length = bytes.len().min(self.incoming.length.load(Relaxed));
        self.length.store(length, Relaxed);
        // SAFETY: the caller guarantees that the buffer is writable and that its owner does not use it meanwhile; the
        // running task's own bytes lie elsewhere, as the owner alone has borrowed the buffer.
        unsafe { self.incoming.start.load(Relaxed).copy_from_nonoverlapping(bytes.as_ptr(), length) };
        length
    }

    /// Returns the task whose thread waits in the bound reply object.
    #[inline]
    pub fn guest(&self) -> Option<Tid> {
        let guest = self.guest.load(Relaxed);
        if guest == NOBODY { None } else { Some(Tid(guest)) }
    }

    /// Records the task whose thread waits in the bound reply object.
    #[inline]
    pub fn set_guest(&self, guest: Option<Tid>) {
        self.guest.store(guest.map_or(NOBODY, |tid| tid.0), Relaxed);
    }

    /// Returns the endpoint at which the thread waits for its turn.
    #[inline]
    pub fn endpoint(&self) -> Cap<Endpoint> {
        self.endpoint.get()
    }

    /// Returns the spare reply object.
    pub fn spare(&self) -> Cap<Reply> {
        self.spare.get()
    }

    /// Returns the scheduling context of the thread.
    pub fn scheduling(&self) -> Cap<SchedulingContext> {
        self.scheduling.get()
    }

    /// Returns where the thread is.
    #[inline]
    pub fn place(&self) -> Place {
        Place::unpack(self.place.load(Relaxed))
    }

    /// Changes where the thread is, at once. Returns where it was.
    pub fn replace_place(&self, place: Place) -> Place {
        Place::unpack(self.place.swap(place.pack(), Relaxed))
    }

    /// Records where the thread is.
    #[inline]
    pub fn set_place(&self, place: Place) {
        self.place.store(place.pack(), Relaxed);
    }
}

/// The value that stands for no task where an identifier is stored.
pub const NOBODY: u32 = u32::MAX;

/// State of the tasks of this process. There is one session at a time.
pub struct Session {
    /// The scheduler.
    pub table: Table,
    tasks: [Task; MAX_TASKS],
    /// Reply objects of threads that have ended.
    loose: [Later; MAX_TASKS],
    /// Identifier of the task whose turn it is, or [`NOBODY`] while all wait.
    pub running: AtomicU32,
    /// An event came while the running task was in a primitive.
    pub pending: AtomicBool,
    /// The session is over.
    pub over: AtomicBool,
    /// Kernel priority of tasks that have preempted nobody.
    pub base: AtomicU32,
    /// The highest [`Task::level`].
    pub top: AtomicU32,
    /// Notification for which the session's caller waits.
    pub caller: Later,
}

pub static SESSION: Session = Session {
    table: Table::new(0),
    tasks: [const { Task::new() }; MAX_TASKS],
    loose: [const { Later::none() }; MAX_TASKS],
    running: AtomicU32::new(NOBODY),
    pending: AtomicBool::new(false),
    over: AtomicBool::new(false),
    base: AtomicU32::new(0),
    top: AtomicU32::new(0),
    caller: Later::none(),
};

impl Session {
    /// Returns the task with an identifier.
    #[inline]
    pub fn task(&self, tid: Tid) -> &Task {
        &self.tasks[tid.0 as usize % MAX_TASKS]
    }

    /// Returns the task whose turn it is.
    #[inline]
    pub fn running(&self) -> Option<Tid> {
        let tid = self.running.load(Relaxed);
        if tid < MAX_TASKS as u32 { Some(Tid(tid)) } else { None }
    }

    /// Returns the task that a thread runs, whether or not it is its turn.
    pub fn find(&self, block: usize) -> Option<Tid> {
        let index = self.tasks.iter().position(|task| task.block.load(Relaxed) == block)?;
        Some(Tid(index as u32))
    }

    /// Takes a reply object of a thread that has ended, if there is one.
    pub fn take_loose(&self) -> Option<Cap<Reply>> {
        let loose = self.loose.iter().find(|loose| loose.is_made())?;
        let reply = loose.get();
        loose.clear();
        Some(reply)
    }

    /// Ends the wait in the reply object `held`, in which nobody waits from now on.
    pub fn release(&self, held: Cap<Reply>) {
        if let Some(owner) = self.tasks.iter().find(|task| task.bound.get() == held) {
            owner.set_guest(None);
        } else if let Some(place) = self.loose.iter().find(|loose| !loose.is_made()) {
            place.set(held);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_one_word() {
        let hooks = [0, 1, u32::MAX].map(|address| Place::Hook(Cap::new(CapAddress(address))));
        let others = [Place::Endpoint, Place::EndpointWithSpare, Place::Preempted, Place::Continuing];
        for place in hooks.into_iter().chain(others) {
            assert_eq!(Place::unpack(place.pack()), place);
        }
    }
}
