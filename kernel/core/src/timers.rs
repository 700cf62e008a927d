//! The timer queues, and the one hardware timer. It serves threads that wait with a deadline, scheduling contexts that
//! wait for their next refill, the running time slice, and the running budget.
//!
//! There is a queue for each *class* of priorities, so that the deadlines of many unimportant threads delay no
//! important thread:
//!
//! ```text
//!   class 3   priorities 192 to 255   ┐ expired first, all that is due, a batch at a time, interrupts on between;
//!   class 2   128 to 191, if it runs  ┘ equal deadlines in the order of priorities
//!   class 1    64 to 127              ┐ below the running thread, woken threads could not run: one batch, then a pause
//!   class 0     0 to  63              ┘ PAUSE times as long as the batch took, or until no thread is ready
//! ```
//! A thread's class is that of its priority when its wait began, or of its own context's priority if that is higher. So
//! a server's alarm is as urgent as the server, whichever client it works for.
//!
//! A thread that receives with a deadline may declare the deadline its *alarm*, because it has something of its own to
//! do at that time. If it receives a request first and works for the caller, the deadline stays in the queue: when the
//! alarm expires, the thread works at its own priority ([`helping`]) until it receives again.

use core::mem::offset_of;

use tench_abi::Error;

use crate::heap::{self, EMPTY, Holder, Node};
use crate::kernel::NEVER;
use crate::object::Ref;
use crate::scheduling_context::SchedulingContext;
use crate::thread::{Thread, ThreadState, blocker};
use crate::{Arch, Kernel, depletion, endpoint, helping, scheduler};

/// Number of classes of priorities, each with a queue.
pub const CLASSES: usize = 4;
/// Log2 of the number of priorities in a class.
const CLASS_BITS: u32 = 6;
/// Maximum number of nodes expired in one interrupts-off interval.
const BATCH: usize = 2;
/// Pause after a batch of lower classes, as a multiple of the time that the batch took: this bounds their share of the
/// processor.
const PAUSE: u64 = 32;

/// The timer queues.
#[derive(Clone, Copy)]
pub struct Timers {
    roots: [u32; CLASSES],
    /// The key of each root; [`NEVER`] for an empty heap.
    first: [u64; CLASSES],
    /// Classes below this are paused until `paused_until`. If 0, none is, and `paused_until` is [`NEVER`].
    paused: usize,
    paused_until: u64,
    /// The next time at which something expires: the lowest of `first`, or the end of the pause.
    next: u64,
}

impl Timers {
    /// Empty queues.
    pub const EMPTY: Timers =
        Timers { roots: [EMPTY; CLASSES], first: [NEVER; CLASSES], paused: 0, paused_until: NEVER, next: NEVER };

    /// Returns the roots of the heaps, for tests.
    pub const fn roots(&self) -> [u32; CLASSES] {
        self.roots
    }

    /// Recomputes `next`.
    fn look_ahead(&mut self) {
        self.next = self.first.into_iter().fold(NEVER, u64::min);
        if self.paused != 0 {
            self.look_past_pause();
        }
    }

    /// Recomputes `next` while classes are paused.
    #[cold]
    fn look_past_pause(&mut self) {
        let due = |(class, first): (usize, u64)| if class < self.paused { first.max(self.paused_until) } else { first };
        self.next = self.first.into_iter().enumerate().map(due).fold(NEVER, u64::min);
    }

    /// Pauses the classes below `classes` until a time.
    fn pause(&mut self, classes: usize, until: u64) {
        (self.paused, self.paused_until) = (classes, until);
        self.look_ahead();
    }
}

/// Returns the class of a priority. Priority -1 is in the lowest class.
fn class_of(priority: i16) -> usize {
    usize::from(priority.max(0) as u8 >> CLASS_BITS)
}

/// Inserts a node that is in no queue.
fn insert<A: Arch>(k: &mut Kernel<A>, node: Ref<Node>, time: u64, priority: i16) {
    let class = class_of(priority);
    let n = k.get(node);
    n.key = time;
    n.order = u32::from(!(priority.max(0) as u8));
    n.class = class as u8;
    if k.state().timers.roots[class] == EMPTY {
        let root = heap::insert(k, EMPTY, node);
        set_earlier_root(k, class, root, time);
    } else {
        insert_among(k, node);
    }
}

/// Inserts a node into a queue that is not empty.
#[inline(never)]
fn insert_among<A: Arch>(k: &mut Kernel<A>, node: Ref<Node>) {
    let Node { class, key, .. } = *k.get(node);
    let class = usize::from(class) % CLASSES;
    let root = k.state().timers.roots[class];
    let root = heap::insert(k, root, node);
    if root == heap::number(k, node) {
        set_earlier_root(k, class, root, key);
    }
}

/// Sets the root of a class's heap and its key, which is earlier than that of the root before.
fn set_earlier_root<A: Arch>(k: &mut Kernel<A>, class: usize, root: u32, first: u64) {
    let timers = &mut k.state().timers;
    if timers.paused != 0 {
        core::hint::cold_path();
        return set_root(k, class, root, first);
    }
    (timers.roots[class], timers.first[class]) = (root, first);
    if first < timers.next {
        timers.next = first;
        program(k);
    }
}

/// Takes a node out of its queue.
fn remove<A: Arch>(k: &mut Kernel<A>, node: Ref<Node>) {
    let class = usize::from(k.get(node).class) % CLASSES;
    let before = k.state().timers.roots[class];
    let root = heap::remove(k, before, node);
    if root != before {
        let first = heap::node(k, root).map_or(NEVER, |node| k.get(node).key);
        set_root(k, class, root, first);
    }
}

/// Sets the root of a class's heap and its key.
fn set_root<A: Arch>(k: &mut Kernel<A>, class: usize, root: u32, first: u64) {
    let timers = &mut k.state().timers;
    (timers.roots[class], timers.first[class]) = (root, first);
    let before = timers.next;
    timers.look_ahead();
    if timers.next != before {
        program(k);
    }
}

/// Returns the node of a thread.
fn of_thread(thread: Ref<Thread>) -> Ref<Node> {
    // SAFETY: the field of a live thread.
    unsafe { Ref::at_unchecked(thread.address() + offset_of!(Thread, timer)) }
}

/// Returns the node of a scheduling context.
fn of_context(context: Ref<SchedulingContext>) -> Ref<Node> {
    // SAFETY: the field of a live scheduling context.
    unsafe { Ref::at_unchecked(context.address() + offset_of!(SchedulingContext, refill)) }
}

/// Sets the deadline of the wait that the thread has just begun, if there is one.
pub fn wait_until<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, deadline: Option<u64>) {
    if let Some(deadline) = deadline {
        arm(k, thread, deadline);
    }
}

/// Sets the time at which a thread's wait ends. Clears the thread's alarm.
#[inline(never)]
pub fn arm<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, deadline: u64) {
    if k.get(thread).blockers & blocker::DEADLINE != 0 {
        return arm_again(k, thread, deadline);
    }
    let t = k.get(thread);
    t.blockers |= blocker::DEADLINE;
    let priority = t.priority.max(t.base.priority);
    insert(k, of_thread(thread), deadline, priority);
}

/// Sets the time for a thread that has an alarm set.
#[cold]
#[inline(never)]
fn arm_again<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, deadline: u64) {
    disarm(k, thread);
    arm(k, thread, deadline);
}

/// Clears a thread's deadline or alarm, if there is one.
pub fn disarm<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    let t = k.get(thread);
    if t.blockers & blocker::DEADLINE != 0 {
        t.blockers &= !(blocker::DEADLINE | blocker::ALARM);
        remove(k, of_thread(thread));
    }
}

/// Clears the deadline of a thread whose wait ends. An alarm stays.
pub fn end_wait<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    if k.get(thread).blockers & (blocker::DEADLINE | blocker::ALARM) == blocker::DEADLINE {
        disarm(k, thread);
    }
}

/// Sets the time of a scheduling context's next refill.
pub fn await_refill<A: Arch>(k: &mut Kernel<A>, context: Ref<SchedulingContext>, time: u64) {
    let c = k.get(context);
    c.refill.holder = Holder::Context;
    let priority = i16::from(c.priority);
    insert(k, of_context(context), time, priority);
}

/// Clears the time of a scheduling context's next refill, if there is one.
pub fn forget_refill<A: Arch>(k: &mut Kernel<A>, context: Ref<SchedulingContext>) {
    if k.get(context).refill.is_queued() {
        remove(k, of_context(context));
    }
}

/// Programs the hardware timer for the earliest of the next deadline or refill, the end of the time slice and the end
/// of the budget.
pub fn program<A: Arch>(k: &mut Kernel<A>) {
    let end = k.state().budget_end;
    let next = next_without_budget(k).min(end);
    k.arch().set_timer(Some(next));
}

/// Programs the hardware timer for a thread without a budget, or whose budget is timed next.
pub fn program_without_budget<A: Arch>(k: &mut Kernel<A>) {
    let next = next_without_budget(k);
    k.arch().set_timer(Some(next));
}

/// Returns the time of the next deadline or refill, or the end of the time slice.
fn next_without_budget<A: Arch>(k: &mut Kernel<A>) -> u64 {
    let s = k.state();
    let next = s.timers.next;
    if s.slice_end == 0 { next } else { next.min(s.slice_end) }
}

/// Returns the first node of the highest class in which one is due. `next` has passed, so that class is not paused:
/// paused classes are the lowest, and `next` leaves them out until the end of the pause.
fn first_due<A: Arch>(k: &mut Kernel<A>, now: u64) -> Option<(usize, Ref<Node>)> {
    let timers = &k.state().timers;
    let class = (0..CLASSES).rev().find(|class| timers.first[*class] <= now)?;
    let root = timers.roots[class];
    heap::node(k, root).map(|node| (class, node))
}

/// Takes the first node of a class out of its queue. The caller programs the hardware timer in the end.
fn take_first<A: Arch>(k: &mut Kernel<A>, class: usize, node: Ref<Node>) {
    let root = heap::remove_first(k, node);
    let first = heap::node(k, root).map_or(NEVER, |node| k.get(node).key);
    let timers = &mut k.state().timers;
    (timers.roots[class], timers.first[class]) = (root, first);
    timers.look_ahead();
}

/// Returns the class of the thread that will run when the interrupt handler returns.
fn class_of_next<A: Arch>(k: &mut Kernel<A>) -> usize {
    let current = k.current();
    let priority = k.get(current).priority;
    class_of(priority.max(k.state().highest_ready as i16))
}

/// Ends the pause when no thread is ready: expiring deadlines then delays no thread.
pub fn end_pause<A: Arch>(k: &mut Kernel<A>) {
    if k.state().timers.paused != 0 {
        k.state().timers.pause(0, NEVER);
        program(k);
    }
}

/// Handles the timer interrupt: ends waits whose deadline has passed, the time slice if it is over, and budgets.
/// Returns `false` if more than one batch is due: the caller then lets interrupts in and calls again.
#[must_use]
pub fn expire<A: Arch>(k: &mut Kernel<A>) -> bool {
    let now = k.arch().now();
    if !expire_due(k, now) {
        return false;
    }
    let end = k.state().slice_end;
    if end != 0 && end <= now {
        scheduler::rotate(k);
    }
    if k.state().budget_end <= now {
        depletion::ended(k);
    }
    program(k);
    true
}

/// Ends waits whose deadline has passed, at most one batch. Returns whether none are left to be ended now.
fn expire_due<A: Arch>(k: &mut Kernel<A>, now: u64) -> bool {
    let mut left = BATCH;
    while k.state().timers.next <= now {
        let timers = &mut k.state().timers;
        if timers.paused_until <= now {
            core::hint::cold_path();
            timers.pause(0, NEVER);
        }
        let Some((class, node)) = first_due(k, now) else { break };
        if left == 0 {
            let running = class_of_next(k);
            if class >= running {
                return false;
            }
            let end = k.arch().now();
            k.state().timers.pause(running, end.saturating_add((end - now) * PAUSE));
            break;
        }
        take_first(k, class, node);
        left = if expire_one(k, node) { 0 } else { left - 1 };
    }
    true
}

/// Expires a node that is in no queue any more. Returns whether that took as long as a whole batch.
fn expire_one<A: Arch>(k: &mut Kernel<A>, node: Ref<Node>) -> bool {
    if k.get(node).holder == Holder::Context {
        // SAFETY: the node of a context lies in a live context, which leaves the queue before it is deleted.
        let context = unsafe { Ref::at_unchecked(node.address() - offset_of!(SchedulingContext, refill)) };
        depletion::replenish(k, context);
        return true;
    }
    // SAFETY: the node lies in a live thread, which leaves the queue before it is deleted.
    let thread = unsafe { Ref::<Thread>::at_unchecked(node.address() - offset_of!(Thread, timer)) };
    let t = k.get(thread);
    let flags = t.blockers;
    t.blockers = flags & !(blocker::DEADLINE | blocker::ALARM);
    if flags & blocker::ALARM != 0 {
        t.blockers |= blocker::ALARMED;
        helping::hurry(k, thread);
        return true;
    }
    let may_help = matches!(t.state, ThreadState::Sending(_) | ThreadState::AwaitingReply(_));
    endpoint::cancel(k, thread, Error::TimedOut);
    // The thread that it helped then works for another, which takes as long as the rest of a batch.
    may_help
}
