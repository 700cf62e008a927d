//! The scheduler: fixed priorities, first in first out within a priority, constant time.
//!
//! Invariants: the running thread is in no ready queue; every other thread that is `Ready`, has a scheduling context
//! and whose account is not suspended is in the queue of its priority; `highest_ready` is the highest priority with a
//! non-empty queue, or -1. So a direct switch between caller and receiver needs no queue operation.
//!
//! There is no periodic tick. A time slice is timed only while another thread of the running priority is ready, a
//! budget only while a thread runs on it.

use crate::kernel::Queue;
use crate::object::Ref;
use crate::thread::{Thread, ThreadState, blocker};
use crate::{Arch, Kernel, depletion, float, step, timers};

/// Returns the priority of the running thread; -1 for the idle thread, and for a thread that has lost its processor
/// time.
fn running_priority<A: Arch>(k: &mut Kernel<A>) -> i32 {
    let current = k.current();
    i32::from(k.get(current).priority)
}

/// Returns whether a thread may run: it waits for nothing, has processor time, and its account is not suspended.
/// (Priority -1 stands for the last two.)
pub fn runnable<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> bool {
    let t = k.get(thread);
    matches!(t.state, ThreadState::Ready) && t.priority >= 0
}

/// Makes a thread that is in no queue `Ready`, and queues it behind its equals.
pub fn make_ready<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    k.get(thread).state = ThreadState::Ready;
    if k.get(thread).priority >= 0 && thread != k.current() {
        enqueue(k, thread);
    }
}

/// Makes a thread `Ready` that continues in place of the running thread, which begins to wait. It runs on the same
/// context, so it goes before its equals.
pub fn go_on_with<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    k.get(thread).state = ThreadState::Ready;
    if k.get(thread).priority >= 0 && thread != k.current() {
        enqueue_first(k, thread);
    }
}

/// Appends a thread that is in no queue to the ready queue of its priority.
pub fn enqueue<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    debug_assert!(!k.get(thread).queued, "a thread is in one queue");
    append(k, thread);
    if i32::from(k.get(thread).priority) == running_priority(k) {
        start_slice(k);
    }
}

/// Appends a thread that is in no queue to the ready queue of its priority, without timing a slice.
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

/// Puts a preempted thread before its equals. It keeps the rest of its time slice: with a new slice each time, a thread
/// that is interrupted often enough would keep its equals from running for ever.
#[inline(always)]
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

/// Records the first thread of the queue of `priority`, which was empty.
fn mark_ready<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, priority: u8) {
    let s = k.state();
    s.ready[priority as usize].head = Some(thread);
    s.ready_bitmap[priority as usize >> 6] |= 1 << (priority & 63);
    s.highest_ready = s.highest_ready.max(i32::from(priority));
}

/// Takes a thread out of the ready queue, if it is in one.
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
#[inline(always)]
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

/// Returns the ticks of the slice that a thread begins or continues; 0 if its context has no slice.
#[inline(always)]
fn slice_of<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> u64 {
    let t = k.get(thread);
    let left = core::mem::take(&mut t.slice_left);
    let slice = t.scheduling.map_or(0, |scheduling| k.get(scheduling).slice);
    if left == 0 { slice } else { left.min(slice) }
}

/// Times the running thread's slice again if `thread` is the running thread, whose priority has changed. Without equals
/// at the new priority no slice is timed.
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

/// Sends the running thread behind its equals at the next switch, if there are any.
pub fn rotate<A: Arch>(k: &mut Kernel<A>) {
    let priority = running_priority(k);
    let s = k.state();
    s.slice_end = 0;
    if s.highest_ready >= priority && priority >= 0 {
        s.reschedule = true;
    }
}

/// Returns whether another thread should run now.
#[inline(always)]
pub fn should_switch<A: Arch>(k: &mut Kernel<A>) -> bool {
    let current = k.current();
    let t = k.get(current);
    let (state, priority) = (t.state, t.priority);
    let s = k.state();
    s.reschedule || s.highest_ready > i32::from(priority) || !matches!(state, ThreadState::Ready) || priority < 0
}

/// Returns the thread that runs when the kernel is left. In the common case it is the thread that entered, which takes
/// a few comparisons.
#[inline(always)]
pub fn leave<A: Arch>(k: &mut Kernel<A>) -> Ref<Thread> {
    if should_switch(k) { switch::<A, true>(k) } else { k.current() }
}

/// Chooses another thread and makes it current: queue, time accounting, address space, thread pointer, floating point,
/// budget. The caller continues with the thread that is returned. `LEAVES` says that the running thread has nothing
/// left to do in the kernel.
#[inline(never)]
pub fn switch<A: Arch, const LEAVES: bool>(k: &mut Kernel<A>) -> Ref<Thread> {
    debug_assert!(k.state().nesting == 0, "nobody else runs before the outermost interrupt's handler is left");
    let current = k.current();
    let flags = k.get(current).blockers;
    if flags & (blocker::FLOAT | blocker::BUDGETED) != 0 {
        if flags & blocker::FLOAT != 0 {
            float::stop(k);
            if !runnable(k, current) {
                k.get(current).blockers &= !blocker::FLOAT;
            }
        }
        if flags & blocker::BUDGETED != 0 {
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
    if k.get(next).blockers & blocker::TO_BEGIN != 0 {
        begin(k, next);
    }
    next
}

/// Prepares the kernel for a thread that runs next and has one of the blockers [`TO_BEGIN`](blocker::TO_BEGIN): times
/// its budget, and switches on the floating-point unit and single steps.
pub fn begin<A: Arch>(k: &mut Kernel<A>, next: Ref<Thread>) {
    let flags = k.get(next).blockers;
    if flags & blocker::FLOAT != 0 {
        float::go_on_if_there(k, next);
    }
    if flags & blocker::BUDGETED != 0 {
        depletion::start_timing(k, next);
    }
    if flags & blocker::STEP != 0 {
        step::begin(k);
    }
}

/// Preempts the running thread in favour of a thread that is the only ready one of its priority.
#[inline(always)]
pub fn preempt<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    charge_to(k, thread);
    enqueue_first(k, thread);
    k.state().slice_end = 0;
}

/// Ends the turn of the running thread, which begins to wait, in favour of a thread that is the only ready one of its
/// priority.
pub fn end_turn<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    charge_to(k, thread);
    k.state().slice_end = 0;
}

/// Ends the turn of the idle thread in favour of the only ready thread.
pub fn end_idleness<A: Arch>(k: &mut Kernel<A>, idle: Ref<Thread>) {
    charge_to(k, idle);
    k.state().statistics.switches += 1;
}

/// Returns the first thread of a priority, if there is nothing to [`begin`] before it runs.
pub fn first_unlimited<A: Arch>(k: &mut Kernel<A>, priority: i16) -> Option<Ref<Thread>> {
    let first = k.state().ready[priority as u8 as usize].head?;
    if k.get(first).blockers & blocker::TO_BEGIN == 0 { Some(first) } else { None }
}

/// Queues the running thread behind its equals and makes `first`, the first of them ([`first_unlimited`]), the running
/// thread, which is returned.
#[inline(always)]
pub fn exchange_with_first<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, first: Ref<Thread>) -> Ref<Thread> {
    let priority = k.get(thread).priority as u8;
    let t = k.get(first);
    t.queued = false;
    let second = t.next.take();
    let t = k.get(thread);
    t.queued = true;
    t.next = None;
    // The queue stays non-empty, so bitmap and `highest_ready` stay true.
    let (head, previous) = match second {
        Some(second) => {
            k.get(second).previous = None;
            let last = k.state().ready[priority as usize].tail;
            if let Some(last) = last {
                k.get(last).next = Some(thread);
            }
            (second, last)
        }
        None => (thread, None),
    };
    k.get(thread).previous = previous;
    k.state().ready[priority as usize] = Queue { head: Some(head), tail: Some(thread) };
    charge_to(k, thread);
    begin_slice_of(k, first);
    // The thread may continue at a preemption point, where the kernel reads `current`.
    k.state().current = first;
    first
}

/// Ends the turn of the running thread, which begins to wait, in favour of the first thread of the highest priority,
/// which is returned. The caller then lets it [`begin`], if that is needed.
#[inline(always)]
pub fn leave_to_first<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> Ref<Thread> {
    charge_to(k, thread);
    let next = take_highest(k);
    k.state().current = next;
    next
}

/// Removes and returns the first thread of the highest non-empty queue; the idle thread if all are empty.
#[inline(always)]
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

/// Times the slice of a thread that has equals waiting: a new slice, or the rest of an interrupted one. The caller then
/// times the thread's budget, if it has one.
#[inline(always)]
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
/// The fast path switches threads without charging: a chain of calls is charged to the thread that runs at the next
/// switch outside the fast path.
pub fn charge<A: Arch>(k: &mut Kernel<A>) {
    let current = k.current();
    charge_to(k, current);
}

/// Charges the time since the last charge to the scheduling context of `thread`, which is running. `State::current` may
/// not name it yet.
#[inline(always)]
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

/// Charges the time of thread `from`, and loads the state of thread `to` except its general registers.
fn change_current<A: Arch>(k: &mut Kernel<A>, from: Ref<Thread>, to: Ref<Thread>) {
    charge(k);
    k.state().statistics.switches += 1;
    hand_to(k, from, to);
}

/// Makes another thread the running one, where neither time accounting nor floating point is affected.
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
