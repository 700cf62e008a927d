//! Who runs: fixed priorities, first in first out within one, found in constant time.
//!
//! Invariants: the running thread is in no ready queue; every other thread that is `Ready`, has a scheduling context
//! and is not parked is in the queue of its priority; `highest_ready` is the highest priority with a non-empty queue,
//! or -1. So switching directly between two threads that call and answer needs no queue operation.
//!
//! There is no periodic tick. A time slice is timed only while another thread of the running priority is ready, a
//! budget only while somebody runs on it.

use crate::kernel::Queue;
use crate::object::Ref;
use crate::thread::{Thread, ThreadState, slow};
use crate::{Arch, Kernel, depletion, timers};

/// Priority of the running thread; -1 for the idle thread, and for one whose time was taken away.
#[inline]
fn running_priority<A: Arch>(k: &mut Kernel<A>) -> i32 {
    let current = k.current();
    i32::from(k.get(current).priority)
}

/// Whether a thread may run: it waits for nothing, has processor time, and is not parked (both: a priority).
#[inline]
pub fn runnable<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> bool {
    let t = k.get(thread);
    matches!(t.state, ThreadState::Ready) && t.priority >= 0
}

/// Lets a thread run when its turn comes: sets it `Ready` and queues it behind its equals. It is in no queue.
#[inline]
pub fn make_ready<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    k.get(thread).state = ThreadState::Ready;
    if k.get(thread).priority >= 0 && thread != k.current() {
        enqueue(k, thread);
    }
}

/// The running thread waits, and this one goes on for it, on its time: it need not wait for its equals.
#[inline]
pub fn go_on_with<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    k.get(thread).state = ThreadState::Ready;
    if k.get(thread).priority >= 0 && thread != k.current() {
        enqueue_first(k, thread);
    }
}

/// Appends a thread that is in no queue to the ready queue of its priority.
#[inline]
pub fn enqueue<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    debug_assert!(!k.get(thread).queued, "a thread is in one queue");
    append(k, thread);
    if i32::from(k.get(thread).priority) == running_priority(k) {
        start_slice(k);
    }
}

/// Appends a thread that is in no queue.
#[inline]
fn append<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    let t = k.get(thread);
    t.queued = true;
    t.next = None;
    let priority = t.priority as u8;
    let tail = k.state().ready[priority as usize].tail;
    k.get(thread).previous = tail;
    match tail {
        Some(last) => k.get(last).next = Some(thread),
        None => mark_ready(k, thread, priority),
    }
    k.state().ready[priority as usize].tail = Some(thread);
}

/// Puts a thread that was switched away from against its will before its equals. What is left of its time slice stays
/// its own: otherwise one that is interrupted often enough would keep its equals from running for ever.
fn enqueue_first<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    let slice_end = k.state().slice_end;
    if slice_end != 0 {
        let now = k.arch().now();
        k.get(thread).slice_left = slice_end.saturating_sub(now).max(1);
    }
    let t = k.get(thread);
    t.queued = true;
    t.previous = None;
    let priority = t.priority as u8;
    let head = k.state().ready[priority as usize].head;
    k.get(thread).next = head;
    match head {
        Some(first) => {
            k.get(first).previous = Some(thread);
            k.state().ready[priority as usize].head = Some(thread);
        }
        None => {
            mark_ready(k, thread, priority);
            k.state().ready[priority as usize].tail = Some(thread);
        }
    }
}

/// Records that the queue of `priority` has its first thread.
fn mark_ready<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, priority: u8) {
    let s = k.state();
    s.ready[priority as usize].head = Some(thread);
    s.ready_bitmap[priority as usize >> 6] |= 1 << (priority & 63);
    s.highest_ready = s.highest_ready.max(i32::from(priority));
}

/// Takes a thread out of the ready queue, if it is in it.
pub fn dequeue<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    let t = k.get(thread);
    if !t.queued {
        return;
    }
    t.queued = false;
    let (next, previous, priority) = (t.next.take(), t.previous.take(), t.priority as u8);
    match previous {
        Some(previous) => k.get(previous).next = next,
        None => k.state().ready[priority as usize].head = next,
    }
    match next {
        Some(next) => k.get(next).previous = previous,
        None => k.state().ready[priority as usize].tail = previous,
    }
    if next.is_none() && previous.is_none() {
        mark_empty(k, priority);
    }
}

/// Records that the queue of `priority` has become empty.
fn mark_empty<A: Arch>(k: &mut Kernel<A>, priority: u8) {
    let s = k.state();
    s.ready_bitmap[priority as usize >> 6] &= !(1 << (priority & 63));
    if s.highest_ready == i32::from(priority) {
        s.highest_ready = -1;
        for word in (0..s.ready_bitmap.len()).rev() {
            let bits = s.ready_bitmap[word];
            if bits != 0 {
                s.highest_ready = (word as i32) * 64 + 63 - bits.leading_zeros() as i32;
                break;
            }
        }
    }
}

/// Begins to time the running thread's slice, unless it is timed already or has none.
fn start_slice<A: Arch>(k: &mut Kernel<A>) {
    if k.state().slice_end != 0 {
        return;
    }
    let current = k.current();
    let slice = slice_of(k, current);
    if slice != 0 {
        let now = k.arch().now();
        k.state().slice_end = now.saturating_add(slice);
        timers::program(k);
    }
}

/// Ticks of the slice that begins for a thread, or goes on; 0 if it has none.
#[inline]
fn slice_of<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> u64 {
    let t = k.get(thread);
    let left = core::mem::take(&mut t.slice_left);
    let slice = t.scheduling.map_or(0, |scheduling| k.get(scheduling).slice);
    if left == 0 { slice } else { left.min(slice) }
}

/// A thread's priority has changed. If it runs, its slice is that of another priority, or it has no equals there and so
/// none.
pub fn time_again<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    if thread != k.current() {
        return;
    }
    let priority = running_priority(k);
    k.state().slice_end = 0;
    if priority >= 0 && k.state().ready[priority as usize].head.is_some() {
        start_slice(k);
    }
}

/// The running thread goes behind its equals at the next switch, if there are any.
pub fn rotate<A: Arch>(k: &mut Kernel<A>) {
    let priority = running_priority(k);
    let s = k.state();
    s.slice_end = 0;
    if s.highest_ready >= priority && priority >= 0 {
        s.reschedule = true;
    }
}

/// Whether another thread should run now.
#[inline]
pub fn should_switch<A: Arch>(k: &mut Kernel<A>) -> bool {
    let current = k.current();
    let t = k.get(current);
    let (state, priority) = (t.state, t.priority);
    let s = k.state();
    s.reschedule || s.highest_ready > i32::from(priority) || !matches!(state, ThreadState::Ready) || priority < 0
}

/// Who runs when the kernel is left. The common answer, the thread that entered, takes a few comparisons.
#[inline]
pub fn leave<A: Arch>(k: &mut Kernel<A>) -> Ref<Thread> {
    if should_switch(k) { switch::<A, true>(k) } else { k.current() }
}

/// Chooses another thread and makes it current: queue, time account, address space, thread pointer, floating point,
/// budget. Whoever calls this continues with the thread it answers. `LEAVES`: the running thread has nothing left to do
/// in the kernel.
#[inline(never)]
pub fn switch<A: Arch, const LEAVES: bool>(k: &mut Kernel<A>) -> Ref<Thread> {
    debug_assert!(k.state().nesting == 0, "nobody else runs before the outermost interrupt's handler is left");
    let current = k.current();
    let flags = k.get(current).slow;
    if flags & (slow::FLOAT | slow::BUDGETED) != 0 {
        if flags & slow::FLOAT != 0 {
            k.get(current).slow &= !slow::FLOAT;
            k.arch().float_enable(false);
        }
        if flags & slow::BUDGETED != 0 {
            depletion::pause(k, current, LEAVES);
        }
    }
    let rotate = core::mem::take(&mut k.state().reschedule);
    if runnable(k, current) {
        if rotate {
            append(k, current);
        } else {
            enqueue_first(k, current);
        }
    }
    let next = take_highest(k);
    if next != current {
        change_current(k, current, next);
    }
    if k.get(next).slow & slow::BUDGETED != 0 {
        depletion::begin(k, next);
    }
    next
}

/// The running thread makes room for one of a priority that nobody else has who is ready.
#[inline]
pub fn preempt<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    charge_to(k, thread);
    enqueue_first(k, thread);
    k.state().slice_end = 0;
}

/// The running thread waits now, and one runs whose priority nobody else has who is ready.
#[inline]
pub fn end_turn<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    charge_to(k, thread);
    k.state().slice_end = 0;
}

/// The idle thread makes room for the only one who is ready.
#[inline]
pub fn end_idleness<A: Arch>(k: &mut Kernel<A>, idle: Ref<Thread>) {
    charge_to(k, idle);
    k.state().statistics.switches += 1;
}

/// The first thread of a priority, if it can be switched to without timing a budget.
#[inline]
pub fn first_unlimited<A: Arch>(k: &mut Kernel<A>, priority: i16) -> Option<Ref<Thread>> {
    let first = k.state().ready[priority as u8 as usize].head?;
    if k.get(first).slow & slow::BUDGETED == 0 { Some(first) } else { None }
}

/// The running thread goes behind its equals, the first of which, [`first_unlimited`], is answered and runs.
#[inline]
pub fn exchange_with_first<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, first: Ref<Thread>) -> Ref<Thread> {
    let priority = k.get(thread).priority as u8;
    let Some(last) = k.state().ready[priority as usize].tail else { return thread };
    let t = k.get(first);
    t.queued = false;
    let second = t.next.take();
    let t = k.get(thread);
    t.queued = true;
    t.next = None;
    // The queue never becomes empty: what the scheduler knows of it stays true.
    let (head, previous) = match second {
        Some(second) => {
            k.get(second).previous = None;
            k.get(last).next = Some(thread);
            (second, Some(last))
        }
        None => (thread, None),
    };
    k.get(thread).previous = previous;
    k.state().ready[priority as usize] = Queue { head: Some(head), tail: Some(thread) };
    charge_to(k, thread);
    begin_slice_of(k, first);
    // It may go on in a window, where the kernel asks who it is.
    k.state().current = first;
    first
}

/// The running thread waits now, and the first of the highest priority, which is answered, runs. If it has a budget,
/// that is still to be timed.
#[inline(always)]
pub fn leave_to_first<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Ref<Thread> {
    charge_to(k, thread);
    let next = take_highest(k);
    k.state().current = next;
    next
}

/// Removes and answers the first thread of the highest non-empty queue; the idle thread if there is none.
fn take_highest<A: Arch>(k: &mut Kernel<A>) -> Ref<Thread> {
    let highest = k.state().highest_ready;
    if highest < 0 {
        k.state().slice_end = 0;
        timers::end_pause(k);
        return k.state().idle;
    }
    let priority = highest as u8;
    let Some(thread) = k.state().ready[priority as usize].head else { return k.state().idle };
    let t = k.get(thread);
    t.queued = false;
    let next = t.next.take();
    t.previous = None;
    k.state().ready[priority as usize].head = next;
    match next {
        Some(next) => {
            k.get(next).previous = None;
            begin_slice_of(k, thread);
        }
        None => {
            k.state().ready[priority as usize].tail = None;
            k.state().slice_end = 0;
            mark_empty(k, priority);
        }
    }
    thread
}

/// Times the slice of a thread that has equals waiting: a new one, or what is left of one that was interrupted. Its
/// budget, if it has one, is timed right afterwards.
fn begin_slice_of<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    let slice = slice_of(k, thread);
    if slice == 0 {
        k.state().slice_end = 0;
        return;
    }
    let now = k.arch().now();
    k.state().slice_end = now.saturating_add(slice);
    timers::program_without_budget(k);
}

/// Charges the time since the last charge to the running thread's scheduling context.
///
/// The fast path switches threads without this: a call chain is charged to whoever is running at the next slow switch.
pub fn charge<A: Arch>(k: &mut Kernel<A>) {
    let current = k.current();
    charge_to(k, current);
}

/// The same for the thread that runs, where that is not written down yet.
#[inline]
fn charge_to<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    let now = k.arch().now();
    let s = k.state();
    let elapsed = now.wrapping_sub(s.charged_until);
    s.charged_until = now;
    match k.get(thread).scheduling {
        Some(scheduling) => k.get(scheduling).consumed += elapsed,
        None => k.state().statistics.idle_ticks += elapsed,
    }
}

/// Charges the one thread, and loads what belongs to the other besides its general registers.
#[inline]
fn change_current<A: Arch>(k: &mut Kernel<A>, from: Ref<Thread>, to: Ref<Thread>) {
    charge(k);
    k.state().statistics.switches += 1;
    hand_to(k, from, to);
}

/// Makes another thread the running one, where neither time nor floating point need to be looked after.
#[inline]
pub fn hand_to<A: Arch>(k: &mut Kernel<A>, from: Ref<Thread>, to: Ref<Thread>) {
    debug_assert!(k.state().nesting == 0, "nobody else runs before the outermost interrupt's handler is left");
    let pointer = k.arch().thread_pointer();
    k.get(from).registers.thread_pointer = pointer;
    let t = k.get(to);
    let (space, pointer) = (t.space_register, t.registers.thread_pointer);
    k.arch().load_space(space);
    k.arch().set_thread_pointer(pointer);
    k.state().current = to;
}
