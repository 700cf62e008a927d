//! The task table: existing tasks, their waits, the queues in which they stand, and decisions about primitives.
//!
//! This is R4's scheduler. Every decision that R4's kernel takes from a task descriptor or a queue is taken here, and
//! nothing else: the table neither moves messages nor switches tasks. On the target threads of the kernel do that, on
//! the host threads of the host; both use this table.
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
//! One ready task runs; the others stand in a queue for each priority, unless there is only one. A task that becomes
//! ready by [`create`] or [`send`] is queued by the caller of these functions, which may let it run at once instead
//! ([`hand_over`]).
//!
//! Only one task runs at a time, and none is switched away from while it changes the table: an event may preempt a task
//! in its own code, but not one in the library (`target/events.rs`). So the cells below need no lock; they are atomic
//! only so that threads can share a table without unsafe code.
//!
//! [`create`]: Table::create
//! [`send`]: Table::send
//! [`hand_over`]: Table::hand_over

use core::fmt;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

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

/// A queue of tasks, linked by [`Entry::next`].
#[derive(Debug)]
struct Queue {
    /// The first task's identifier plus 1; 0 if the queue is empty.
    first: AtomicU32,
    /// The last task's identifier plus 1, if the queue is not empty.
    last: AtomicU32,
}

impl Queue {
    const fn new() -> Queue {
        Queue { first: AtomicU32::new(0), last: AtomicU32::new(0) }
    }

    /// Returns whether nobody stands in the queue.
    #[inline]
    fn is_empty(&self) -> bool {
        self.first.load(Relaxed) == 0
    }
}

/// The ready tasks that do not run, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Front(u32);

impl Front {
    /// No task is ready.
    const EMPTY: Front = Front(0);

    /// Returns the word for tasks that stand in queues, with this highest priority.
    const fn queued(priority: u32) -> Front {
        Front((priority + 1) << 8)
    }

    /// Returns the word for a single task, which stands in no queue.
    #[inline]
    const fn single(tid: Tid, priority: u32) -> Front {
        Front(Front::queued(priority).0 + tid.0 + 1)
    }

    /// Returns the highest priority plus 1; 0 if no task is ready.
    #[inline]
    const fn highest(self) -> u32 {
        self.0 >> 8
    }

    /// Returns the single ready task, or `None` if no task is ready or the ready tasks stand in queues.
    #[inline]
    fn only(self) -> Option<Tid> {
        linked(self.0 & 0xff)
    }
}

const _: () = assert!(MAX_TASKS < 0xff);

/// Returns the task to which a link leads: its identifier plus 1, or 0 for none.
#[inline]
fn linked(link: u32) -> Option<Tid> {
    link.checked_sub(1).map(Tid)
}

/// One task.
#[derive(Debug)]
#[repr(align(32))]
struct Entry {
    state: AtomicU32,
    /// The creator's identifier plus 1; 0 for the first task.
    parent: AtomicU32,
    priority: AtomicU32,
    /// Identifier plus 1 of the next task in the queue in which this one stands; 0 for none. A ready task stands in the
    /// queue of its priority, a sender in that of its receiver.
    next: AtomicU32,
    /// Tasks whose messages this one has not received yet.
    senders: Queue,
}

/// Number of words with a bit for each priority.
const WORDS: usize = PRIORITIES / 64;

/// All tasks of one session. See the module's documentation.
#[derive(Debug)]
pub struct Table {
    entries: [Entry; MAX_TASKS],
    /// The [`Front`] of the ready tasks that do not run. Most often there is only one, and not for long, so it enters
    /// no queue until there is another.
    front: AtomicU32,
    /// By priority, the ready tasks that do not run, if there are several.
    ready: [Queue; PRIORITIES],
    /// A bit for each priority whose queue is not empty.
    occupied: [AtomicU64; WORDS],
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
                    next: AtomicU32::new(0),
                    senders: Queue::new(),
                }
            }; MAX_TASKS],
            ready: [const { Queue::new() }; PRIORITIES],
            occupied: [const { AtomicU64::new(0) }; WORDS],
            front: AtomicU32::new(Front::EMPTY.0),
            waiters: [const { AtomicU32::new(0) }; EVENTS as usize],
            priorities: AtomicU32::new(if priorities < PRIORITIES as u32 { priorities } else { PRIORITIES as u32 }),
        }
    }

    /// Removes all tasks, and changes the number of priorities.
    pub fn reset(&self, priorities: u32) {
        for entry in &self.entries {
            entry.state.store(State::Free.pack(), Relaxed);
        }
        for ready in &self.ready {
            ready.first.store(0, Relaxed);
        }
        for word in &self.occupied {
            word.store(0, Relaxed);
        }
        self.set_front(Front::EMPTY);
        for waiter in &self.waiters {
            waiter.store(0, Relaxed);
        }
        self.priorities.store(priorities.min(PRIORITIES as u32), Relaxed);
    }

    /// Returns the entry of an identifier that a task named, and its packed state, if such a task exists.
    #[inline]
    fn existing(&self, tid: Tid) -> Result<(&Entry, u32), Error> {
        let entry = self.entries.get(tid.0 as usize).ok_or(Error::NoSuchTask)?;
        let state = entry.state.load(Relaxed);
        if state == State::Free.pack() { Err(Error::NoSuchTask) } else { Ok((entry, state)) }
    }

    /// Returns the entry of a task that is known to exist.
    #[inline]
    fn entry(&self, tid: Tid) -> &Entry {
        &self.entries[tid.0 as usize % MAX_TASKS]
    }

    /// Changes a state.
    #[inline]
    fn change(&self, tid: Tid, state: State) {
        self.entry(tid).state.store(state.pack(), Relaxed);
    }

    /// Returns the ready tasks that do not run.
    #[inline]
    fn front(&self) -> Front {
        Front(self.front.load(Relaxed))
    }

    /// Changes the ready tasks that do not run.
    #[inline]
    fn set_front(&self, front: Front) {
        self.front.store(front.0, Relaxed);
    }

    /// Appends a task to a queue.
    #[inline]
    fn append(&self, queue: &Queue, tid: Tid) {
        self.entry(tid).next.store(0, Relaxed);
        if queue.is_empty() {
            queue.first.store(tid.0 + 1, Relaxed);
        } else {
            self.entry(Tid(queue.last.load(Relaxed) - 1)).next.store(tid.0 + 1, Relaxed);
        }
        queue.last.store(tid.0 + 1, Relaxed);
    }

    /// Removes the first task from a queue.
    #[inline]
    fn remove_first(&self, queue: &Queue) -> Option<Tid> {
        let first = linked(queue.first.load(Relaxed))?;
        queue.first.store(self.entry(first).next.load(Relaxed), Relaxed);
        Some(first)
    }

    /// Returns the tasks in a queue, in order.
    fn members(&self, queue: &Queue) -> impl Iterator<Item = Tid> {
        core::iter::successors(linked(queue.first.load(Relaxed)), |tid| linked(self.entry(*tid).next.load(Relaxed)))
    }

    /// Returns the queue of ready tasks with this priority, whose occupied bit is set.
    fn occupy(&self, priority: u32) -> &Queue {
        let word = &self.occupied[priority as usize / 64 % WORDS];
        word.store(word.load(Relaxed) | 1 << (priority % 64), Relaxed);
        if self.front().highest() <= priority {
            self.set_front(Front::queued(priority));
        }
        &self.ready[priority as usize % PRIORITIES]
    }

    /// Queues a ready task behind its equals.
    #[inline]
    pub fn queue(&self, tid: Tid) {
        if self.front() == Front::EMPTY {
            self.set_front(Front::single(tid, self.priority(tid)));
        } else {
            self.queue_among_others(tid);
        }
    }

    /// As [`queue`](Self::queue), when another task is ready.
    #[inline(never)]
    fn queue_among_others(&self, tid: Tid) {
        self.dissolve_only();
        self.append(self.occupy(self.priority(tid)), tid);
    }

    /// Moves a single ready task into its queue, because another is about to join it.
    fn dissolve_only(&self) {
        if let Some(only) = self.front().only() {
            self.set_front(Front::EMPTY);
            self.append(self.occupy(self.priority(only)), only);
        }
    }

    /// Queues a preempted task before its equals.
    pub fn queue_first(&self, tid: Tid) {
        self.dissolve_only();
        let queue = self.occupy(self.priority(tid));
        if queue.is_empty() {
            return self.append(queue, tid);
        }
        self.entry(tid).next.store(queue.first.load(Relaxed), Relaxed);
        queue.first.store(tid.0 + 1, Relaxed);
    }

    /// Takes the task that runs next out of its queue: the first of those with the highest priority.
    #[inline]
    pub fn take_next(&self) -> Option<Tid> {
        let Some(only) = self.front().only() else { return self.take_queued() };
        self.set_front(Front::EMPTY);
        Some(only)
    }

    /// Takes the task that runs next, as [`take_next`](Self::take_next) does, unless a single task is ready.
    #[inline(never)]
    fn take_queued(&self) -> Option<Tid> {
        let priority = self.front().highest().checked_sub(1)?;
        let queue = &self.ready[priority as usize % PRIORITIES];
        let first = self.remove_first(queue);
        if queue.is_empty() {
            let index = priority as usize / 64 % WORDS;
            let word = &self.occupied[index];
            word.store(word.load(Relaxed) & !(1 << (priority % 64)), Relaxed);
            self.set_front(self.front_from(index));
        }
        first
    }

    /// Returns the front of the queues. Those whose bits lie behind the word `last` are empty.
    fn front_from(&self, last: usize) -> Front {
        for index in (0..=last).rev() {
            let bits = self.occupied[index].load(Relaxed);
            if bits != 0 {
                return Front::queued(index as u32 * 64 + 63 - bits.leading_zeros());
            }
        }
        Front::EMPTY
    }

    /// Returns the task that runs next if `tid`, which stands in no queue, has just become ready and nobody runs.
    #[inline]
    pub fn hand_over(&self, tid: Tid) -> Tid {
        if self.front().highest() <= self.priority(tid) {
            return tid;
        }
        self.exchange(tid).unwrap_or(tid)
    }

    /// Ends a primitive of the running task, if it is still ready: queues it behind its equals. Returns the task that
    /// runs next, if that is another.
    #[inline]
    pub fn give_way(&self, tid: Tid) -> Option<Tid> {
        if self.front().highest() <= self.priority(tid) {
            return None;
        }
        self.exchange(tid)
    }

    /// Queues a ready task behind its equals, and takes the task that runs next, which is another.
    #[inline]
    fn exchange(&self, tid: Tid) -> Option<Tid> {
        let Some(only) = self.front().only() else {
            self.queue_among_others(tid);
            return self.take_queued();
        };
        self.set_front(Front::single(tid, self.priority(tid)));
        Some(only)
    }

    /// Returns whether a task of higher priority than this one is ready.
    pub fn is_outranked(&self, tid: Tid) -> bool {
        self.front().highest() > self.priority(tid) + 1
    }

    /// Returns the state of a task.
    pub fn state(&self, tid: Tid) -> State {
        self.existing(tid).map_or(State::Free, |(_, state)| State::unpack(state))
    }

    /// Returns the priority with which a task was created.
    #[inline]
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

    /// Creates a ready task with the lowest free identifier, which the caller has to [`queue`](Self::queue).
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
        entry.senders.first.store(0, Relaxed);
        self.change(tid, State::Ready);
        Ok(tid)
    }

    /// Makes `sender` send to `receiver`, and wait. A receiver that has waited becomes ready, and the caller has to
    /// [`queue`](Self::queue) it or [hand over](Self::hand_over) to it.
    /// Errors: `NoSuchTask`.
    #[inline]
    pub fn send(&self, sender: Tid, receiver: Tid) -> Result<Meeting, Error> {
        let (entry, state) = self.existing(receiver)?;
        if state == State::ReceiveWait.pack() {
            entry.state.store(State::Ready.pack(), Relaxed);
            self.change(sender, State::ReplyWait);
            Ok(Meeting::Delivered)
        } else {
            self.append(&entry.senders, sender);
            self.change(sender, State::SendWait(receiver));
            Ok(Meeting::Queued)
        }
    }

    /// Makes `receiver` receive: from the first sender in its queue, which from then on waits for the reply and is
    /// returned, or else it waits.
    #[inline]
    pub fn receive(&self, receiver: Tid) -> Option<Tid> {
        let Some(sender) = self.remove_first(&self.entry(receiver).senders) else {
            self.change(receiver, State::ReceiveWait);
            return None;
        };
        self.change(sender, State::ReplyWait);
        Some(sender)
    }

    /// Records a reply to `tid`, which becomes ready.
    /// Errors: `NoSuchTask`, `Incomplete`.
    #[inline]
    pub fn reply(&self, tid: Tid) -> Result<(), Error> {
        let (entry, state) = self.existing(tid)?;
        if state != State::ReplyWait.pack() {
            return Err(Error::Incomplete);
        }
        entry.state.store(State::Ready.pack(), Relaxed);
        self.queue(tid);
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
        self.queue(tid);
        Some(tid)
    }

    /// Returns whether any task waits for an event.
    pub fn awaits_events(&self) -> bool {
        self.waiters.iter().any(|waiter| waiter.load(Relaxed) != 0)
    }

    /// Ends a task. The senders in its queue become ready, in its order; the caller is told of each, so that their send
    /// is [`Incomplete`](Error::Incomplete).
    pub fn exit(&self, tid: Tid, mut abort: impl FnMut(Tid)) {
        self.change(tid, State::Free);
        while let Some(sender) = self.remove_first(&self.entry(tid).senders) {
            self.change(sender, State::Ready);
            self.queue(sender);
            abort(sender);
        }
    }

    /// Checks the invariants between any two primitives.
    ///
    /// # Panics
    /// Panics if one does not hold.
    pub fn check_invariants(&self) {
        let mut queued = [0; MAX_TASKS];
        let mut highest = 0;
        for (priority, queue) in (0..).zip(&self.ready) {
            let occupied = self.occupied[priority as usize / 64].load(Relaxed) >> (priority % 64) & 1 != 0;
            assert_eq!(occupied, !queue.is_empty(), "ready tasks of priority {priority}");
            for tid in self.members(queue) {
                assert_eq!((self.state(tid), self.priority(tid)), (State::Ready, priority), "task {tid} is queued");
                queued[tid.0 as usize] += 1;
                highest = priority + 1;
            }
        }
        if let Some(only) = self.front().only() {
            assert_eq!((self.state(only), highest), (State::Ready, 0), "task {only} is the only ready one");
            queued[only.0 as usize] += 1;
            highest = self.priority(only) + 1;
        }
        assert_eq!(self.front().highest(), highest, "the highest priority of ready tasks");
        let tids = || (0..MAX_TASKS as u32).map(Tid).filter(|tid| self.state(*tid) != State::Free);
        for receiver in tids() {
            for sender in self.members(&self.entry(receiver).senders) {
                assert_eq!(self.state(sender), State::SendWait(receiver), "task {sender} is queued");
                queued[sender.0 as usize] += 1;
            }
        }
        for tid in tids() {
            let times = queued[tid.0 as usize];
            match self.state(tid) {
                State::Ready => assert!(times <= 1, "task {tid} is queued once"),
                State::SendWait(receiver) => {
                    assert_eq!(times, 1, "task {tid} is queued");
                    assert_ne!(
                        self.state(receiver),
                        State::ReceiveWait,
                        "task {receiver} waits for what task {tid} sends"
                    );
                }
                State::EventWait => {
                    let waits = self.waiters.iter().filter(|waiter| waiter.load(Relaxed) == tid.0 + 1).count();
                    assert_eq!(waits, 1, "task {tid} waits for one event");
                }
                State::Free | State::ReceiveWait | State::ReplyWait => {}
            }
        }
        let running = tids().filter(|tid| self.state(*tid) == State::Ready && queued[tid.0 as usize] == 0).count();
        assert!(running <= 1, "all ready tasks but the running one are queued");
        for waiter in self.waiters.iter().filter_map(|waiter| waiter.load(Relaxed).checked_sub(1)) {
            assert_eq!(self.state(Tid(waiter)), State::EventWait, "an event knows who waits for it");
        }
    }
}
