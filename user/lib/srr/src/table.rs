//! The task table: existing tasks, their waits, and decisions about primitives.
//!
//! Every decision that R4's kernel takes from a task descriptor is taken here, and nothing else: the table neither
//! moves messages nor switches tasks. On the target the kernel's endpoints do that, on the host a simulated scheduler;
//! both use this table.
//!
//! ```text
//!            create                send to one that does not receive
//!   Free ─────────────▶ Ready ────────────────────────────────────────▶ SendWait(receiver)
//!     ▲                 │ ▲ ▲ ╲                                             │        │
//!     │       exit      │ │ │  ╲  send to one that receives                 │        │ receiver takes
//!     └─────────────────┘ │ │   ╲───────────────────────▶ ReplyWait ◀───────┼────────┘ the message
//!                         │ └────────────── reply ────────────┘             │
//!         message arrives │ └──────────────── receiver ends (-2) ───────────┘
//!                 ReceiveWait ◀── receive with nobody in the queue (from Ready)
//!                 EventWait   ◀── await_event (from Ready); back when the event comes
//! ```
//!
//! Only one task runs at a time, and none is switched away from while it changes the table: an event may preempt a task
//! in its own code, but not one in the library (`target/outside.rs`). So the cells below need no lock; they are atomic
//! only so that threads can share a table without unsafe code.

use core::fmt;
use core::sync::atomic::{AtomicU16, AtomicU32, Ordering::Relaxed};

use crate::{EVENTS, Error};

/// Maximum number of tasks at the same time. (R4 has 48.)
pub const MAX_TASKS: usize = 64;

/// Number of priorities of tasks, from 0 (lowest).
pub const PRIORITIES: usize = 256;

/// A task identifier. A new task gets the lowest free one, so identifiers are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Tid(pub u32);

impl fmt::Display for Tid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// State of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No task has this identifier.
    Free,
    /// The task runs or is ready to.
    Ready,
    /// The task has sent to this task, which has not received the message yet.
    SendWait(Tid),
    /// The task waits for a message.
    ReceiveWait,
    /// The task's message was received, and it waits for the reply.
    ReplyWait,
    /// The task waits for an event.
    EventWait,
}

impl State {
    /// Returns the state as one word, so that it changes atomically.
    const fn pack(self) -> u32 {
        match self {
            State::Free => 0,
            State::Ready => 1,
            State::ReceiveWait => 2,
            State::ReplyWait => 3,
            State::EventWait => 5,
            State::SendWait(receiver) => 4 | receiver.0 << 3,
        }
    }

    /// Returns the state that a word encodes.
    const fn unpack(word: u32) -> State {
        match word & 7 {
            0 => State::Free,
            1 => State::Ready,
            2 => State::ReceiveWait,
            3 => State::ReplyWait,
            5 => State::EventWait,
            _ => State::SendWait(Tid(word >> 3)),
        }
    }
}

/// Immediate effect of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meeting {
    /// The receiver was waiting: it has the message and is ready; the sender waits for the reply.
    Delivered,
    /// Message and sender wait in the receiver's queue.
    Queued,
}

/// Immediate effect of a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// A sender is in the queue.
    Waiting,
    /// The queue is empty: the receiver waits.
    Nobody,
}

/// One task.
#[derive(Debug)]
struct Entry {
    state: AtomicU32,
    /// The creator's identifier plus 1; 0 for the first task.
    parent: AtomicU32,
    priority: AtomicU32,
    /// Number of senders in this task's queue.
    queued: AtomicU32,
}

/// All tasks of one session. See the module's documentation.
#[derive(Debug)]
pub struct Table {
    entries: [Entry; MAX_TASKS],
    /// Number of `Ready` tasks of each priority.
    ready: [AtomicU16; PRIORITIES],
    /// Number of priorities that tasks may have.
    priorities: AtomicU32,
    /// For each event, the waiting task's identifier plus 1; 0 for none.
    waiters: [AtomicU32; EVENTS as usize],
}

impl Table {
    /// Returns a table without tasks, in which tasks may have the `priorities` lowest priorities.
    pub const fn new(priorities: u32) -> Table {
        Table {
            entries: [const {
                Entry {
                    state: AtomicU32::new(0),
                    parent: AtomicU32::new(0),
                    priority: AtomicU32::new(0),
                    queued: AtomicU32::new(0),
                }
            }; MAX_TASKS],
            ready: [const { AtomicU16::new(0) }; PRIORITIES],
            waiters: [const { AtomicU32::new(0) }; EVENTS as usize],
            priorities: AtomicU32::new(if priorities < PRIORITIES as u32 { priorities } else { PRIORITIES as u32 }),
        }
    }

    /// Removes all tasks, and changes the number of priorities.
    pub fn reset(&self, priorities: u32) {
        for entry in &self.entries {
            entry.state.store(State::Free.pack(), Relaxed);
            entry.queued.store(0, Relaxed);
        }
        for ready in &self.ready {
            ready.store(0, Relaxed);
        }
        for waiter in &self.waiters {
            waiter.store(0, Relaxed);
        }
        self.priorities.store(priorities.min(PRIORITIES as u32), Relaxed);
    }

    /// Returns the entry of an identifier that a task named, if such a task exists.
    fn existing(&self, tid: Tid) -> Result<&Entry, Error> {
        let entry = self.entries.get(tid.0 as usize).ok_or(Error::NoSuchTask)?;
        if entry.state.load(Relaxed) == State::Free.pack() { Err(Error::NoSuchTask) } else { Ok(entry) }
    }

    /// Returns the entry of a task that is known to exist.
    fn entry(&self, tid: Tid) -> &Entry {
        &self.entries[tid.0 as usize % MAX_TASKS]
    }

    /// Changes a state, and updates the number of ready tasks.
    fn change(&self, tid: Tid, state: State) {
        let entry = self.entry(tid);
        let ready = &self.ready[entry.priority.load(Relaxed) as usize % PRIORITIES];
        if entry.state.load(Relaxed) == State::Ready.pack() {
            ready.store(ready.load(Relaxed) - 1, Relaxed);
        }
        if state == State::Ready {
            ready.store(ready.load(Relaxed) + 1, Relaxed);
        }
        entry.state.store(state.pack(), Relaxed);
    }

    /// Returns the state of a task.
    pub fn state(&self, tid: Tid) -> State {
        self.existing(tid).map_or(State::Free, |entry| State::unpack(entry.state.load(Relaxed)))
    }

    /// Returns the priority with which a task was created.
    pub fn priority(&self, tid: Tid) -> u32 {
        self.entry(tid).priority.load(Relaxed)
    }

    /// Returns the creator of a task; `None` for the first. The creator may have ended, and its identifier may have
    /// been reused.
    pub fn parent(&self, tid: Tid) -> Option<Tid> {
        self.entry(tid).parent.load(Relaxed).checked_sub(1).map(Tid)
    }

    /// Returns the number of tasks.
    pub fn len(&self) -> usize {
        self.entries.iter().filter(|entry| entry.state.load(Relaxed) != State::Free.pack()).count()
    }

    /// Returns whether there are no tasks.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether another task of this task's priority is ready. If not, queueing the task behind its equals has
    /// no effect.
    pub fn has_ready_equals(&self, tid: Tid) -> bool {
        self.ready[self.priority(tid) as usize % PRIORITIES].load(Relaxed) > 1
    }

    /// Returns whether a task's queue is not empty.
    pub fn has_senders(&self, tid: Tid) -> bool {
        self.entry(tid).queued.load(Relaxed) > 0
    }

    /// Creates a ready task with the lowest free identifier.
    /// Errors: `InvalidPriority`, `OutOfTasks`.
    pub fn create(&self, parent: Option<Tid>, priority: i32) -> Result<Tid, Error> {
        let priority = u32::try_from(priority).map_err(|_| Error::InvalidPriority)?;
        if priority >= self.priorities.load(Relaxed) {
            return Err(Error::InvalidPriority);
        }
        let free = |entry: &Entry| entry.state.load(Relaxed) == State::Free.pack();
        let tid = Tid(self.entries.iter().position(free).ok_or(Error::OutOfTasks)? as u32);
        let entry = self.entry(tid);
        entry.parent.store(parent.map_or(0, |parent| parent.0 + 1), Relaxed);
        entry.priority.store(priority, Relaxed);
        entry.queued.store(0, Relaxed);
        self.change(tid, State::Ready);
        Ok(tid)
    }

    /// Makes `sender` send to `receiver`, and wait.
    /// Errors: `NoSuchTask`.
    pub fn send(&self, sender: Tid, receiver: Tid) -> Result<Meeting, Error> {
        let entry = self.existing(receiver)?;
        if entry.state.load(Relaxed) == State::ReceiveWait.pack() {
            self.change(receiver, State::Ready);
            self.change(sender, State::ReplyWait);
            Ok(Meeting::Delivered)
        } else {
            entry.queued.store(entry.queued.load(Relaxed) + 1, Relaxed);
            self.change(sender, State::SendWait(receiver));
            Ok(Meeting::Queued)
        }
    }

    /// Makes `receiver` receive. If its queue is not empty, the caller has to [`take`](Self::take) a message.
    pub fn receive(&self, receiver: Tid) -> Arrival {
        if self.entry(receiver).queued.load(Relaxed) > 0 {
            Arrival::Waiting
        } else {
            self.change(receiver, State::ReceiveWait);
            Arrival::Nobody
        }
    }

    /// Makes `receiver` take the message of `sender` out of its queue.
    pub fn take(&self, receiver: Tid, sender: Tid) {
        let entry = self.entry(receiver);
        entry.queued.store(entry.queued.load(Relaxed).saturating_sub(1), Relaxed);
        self.change(sender, State::ReplyWait);
    }

    /// Records a reply to `tid`, which becomes ready.
    /// Errors: `NoSuchTask`, `Incomplete`.
    pub fn reply(&self, tid: Tid) -> Result<(), Error> {
        if self.existing(tid)?.state.load(Relaxed) != State::ReplyWait.pack() {
            return Err(Error::Incomplete);
        }
        self.change(tid, State::Ready);
        Ok(())
    }

    /// Makes `tid` wait for an event.
    /// Errors: `NoSuchEvent`, `EventTaken`.
    pub fn await_event(&self, tid: Tid, event: i32) -> Result<(), Error> {
        let index = usize::try_from(event).map_err(|_| Error::NoSuchEvent)?;
        let waiter = self.waiters.get(index).ok_or(Error::NoSuchEvent)?;
        if waiter.load(Relaxed) != 0 {
            return Err(Error::EventTaken);
        }
        waiter.store(tid.0 + 1, Relaxed);
        self.change(tid, State::EventWait);
        Ok(())
    }

    /// Records an event: the task that waits for it becomes ready.
    pub fn event_comes(&self, event: i32) -> Option<Tid> {
        let tid = self.waiters.get(usize::try_from(event).ok()?)?.swap(0, Relaxed).checked_sub(1).map(Tid)?;
        self.change(tid, State::Ready);
        Some(tid)
    }

    /// Returns whether any task waits for an event.
    pub fn awaits_events(&self) -> bool {
        self.waiters.iter().any(|waiter| waiter.load(Relaxed) != 0)
    }

    /// Ends a task. The senders in its queue become ready; the caller has to tell them that their send is
    /// [`Incomplete`](Error::Incomplete), in the order of the queue, which the table does not know.
    pub fn exit(&self, tid: Tid) {
        self.change(tid, State::Free);
        for sender in (0..MAX_TASKS as u32).map(Tid) {
            if self.state(sender) == State::SendWait(tid) {
                self.change(sender, State::Ready);
            }
        }
    }

    /// Checks the invariants between any two primitives.
    ///
    /// # Panics
    /// Panics if one does not hold.
    pub fn check_invariants(&self) {
        let mut queued = [0; MAX_TASKS];
        let mut ready = [0; PRIORITIES];
        for tid in (0..MAX_TASKS as u32).map(Tid) {
            match self.state(tid) {
                State::Ready => ready[self.priority(tid) as usize] += 1,
                State::SendWait(receiver) => {
                    assert_ne!(self.state(receiver), State::Free, "task {tid} sends to nobody");
                    assert_ne!(
                        self.state(receiver),
                        State::ReceiveWait,
                        "task {receiver} waits for what task {tid} sends"
                    );
                    queued[receiver.0 as usize] += 1;
                }
                State::EventWait => {
                    let waits = self.waiters.iter().filter(|waiter| waiter.load(Relaxed) == tid.0 + 1).count();
                    assert_eq!(waits, 1, "task {tid} waits for one event");
                }
                State::Free | State::ReceiveWait | State::ReplyWait => {}
            }
        }
        for tid in (0..MAX_TASKS as u32).map(Tid).filter(|tid| self.state(*tid) != State::Free) {
            let account = self.entry(tid).queued.load(Relaxed);
            assert_eq!(queued[tid.0 as usize], account, "senders in the queue of task {tid}");
        }
        for waiter in self.waiters.iter().filter_map(|waiter| waiter.load(Relaxed).checked_sub(1)) {
            assert_eq!(self.state(Tid(waiter)), State::EventWait, "an event knows who waits for it");
        }
        for (priority, count) in ready.into_iter().enumerate() {
            assert_eq!(count, self.ready[priority].load(Relaxed), "ready tasks of priority {priority}");
        }
    }
}
