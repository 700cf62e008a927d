//! The one timer queue: threads that wait with a deadline, and the running time slice.
//!
//! The queue is a leftist heap through the threads themselves: entering, leaving from anywhere and finding the next
//! deadline take O(log n) steps or fewer, and no memory. A node's *rank* is the distance to the nearest missing child;
//! the right child's rank is at most the left child's, so a right spine has at most log2(n + 1) nodes.

use tench_abi::Error;

use crate::object::Ref;
use crate::thread::{Thread, slow};
use crate::{Arch, Kernel, endpoint, inherit, scheduler};

/// Threads whose deadlines have passed that are woken with interrupts off, before others are let in.
const BATCH: usize = 2;

/// A thread's links in the queue. Threads are named by address / 64 relative to the base; 0 is nobody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct TimerLinks {
    /// Parent.
    pub parent: u32,
    /// Left child.
    pub left: u32,
    /// Right child.
    pub right: u32,
    /// Rank; 0 while the thread is not queued.
    pub rank: u32,
}

/// The thread with this number.
#[inline]
fn named<A: Arch>(k: &mut Kernel<A>, number: u32) -> Option<Ref<Thread>> {
    if number == 0 {
        return None;
    }
    let address = k.arch().base() + ((number as usize) << 6);
    // SAFETY: numbers in the queue are those of live threads (a thread leaves the queue before it goes).
    unsafe { Ref::at(address) }
}

/// A thread's number.
#[inline]
fn number<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) -> u32 {
    ((thread.address() - k.arch().base()) >> 6) as u32
}

/// Rank of a possibly missing node.
#[inline]
fn rank<A: Arch>(k: &mut Kernel<A>, node: u32) -> u32 {
    named(k, node).map_or(0, |thread| k.get(thread).timer.rank)
}

/// Deadline of a node.
#[inline]
fn deadline<A: Arch>(k: &mut Kernel<A>, node: u32) -> u64 {
    named(k, node).map_or(u64::MAX, |thread| k.get(thread).deadline)
}

/// Sets a node's parent, if the node exists.
fn set_parent<A: Arch>(k: &mut Kernel<A>, node: u32, parent: u32) {
    if let Some(thread) = named(k, node) {
        k.get(thread).timer.parent = parent;
    }
}

/// Restores the order of children and the rank of each node from `node` up, as far as anything changes.
fn repair<A: Arch>(k: &mut Kernel<A>, mut node: u32) {
    while let Some(thread) = named(k, node) {
        let links = k.get(thread).timer;
        let (left, right) = (rank(k, links.left), rank(k, links.right));
        let t = &mut k.get(thread).timer;
        if left < right {
            t.left = links.right;
            t.right = links.left;
        }
        let rank = left.min(right) + 1;
        if rank == links.rank && left >= right {
            return;
        }
        t.rank = rank;
        node = links.parent;
    }
}

/// Joins two heaps into one; answers its root.
fn merge<A: Arch>(k: &mut Kernel<A>, mut a: u32, mut b: u32) -> u32 {
    let mut root = 0;
    let mut above = 0;
    loop {
        if a == 0 || b == 0 {
            let rest = a | b;
            attach_right(k, above, rest, &mut root);
            break;
        }
        if deadline(k, b) < deadline(k, a) {
            core::mem::swap(&mut a, &mut b);
        }
        attach_right(k, above, a, &mut root);
        above = a;
        a = named(k, above).map_or(0, |thread| k.get(thread).timer.right);
    }
    // Ranks change along the path just walked only; above it nothing is there.
    while let Some(thread) = named(k, above) {
        let links = k.get(thread).timer;
        let (left, right) = (rank(k, links.left), rank(k, links.right));
        let t = &mut k.get(thread).timer;
        if left < right {
            t.left = links.right;
            t.right = links.left;
        }
        t.rank = left.min(right) + 1;
        above = links.parent;
    }
    root
}

/// Makes `node` the right child of `above`, or the root if there is nothing above.
fn attach_right<A: Arch>(k: &mut Kernel<A>, above: u32, node: u32, root: &mut u32) {
    set_parent(k, node, above);
    match named(k, above) {
        Some(thread) => k.get(thread).timer.right = node,
        None => *root = node,
    }
}

/// If there is a deadline, the wait that the thread has just begun ends at it.
#[inline]
pub fn wait_until<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, deadline: Option<u64>) {
    if let Some(deadline) = deadline {
        insert(k, thread, deadline);
    }
}

/// Enters a thread into the queue.
fn insert<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>, deadline: u64) {
    let t = k.get(thread);
    t.slow |= slow::DEADLINE;
    t.deadline = deadline;
    t.timer = TimerLinks { rank: 1, ..TimerLinks::default() };
    let node = number(k, thread);
    let root = k.state().timers;
    let root = merge(k, root, node);
    k.state().timers = root;
    if root == node {
        program(k);
    }
}

/// Takes a thread out of the queue.
pub fn remove<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    let t = k.get(thread);
    if t.slow & slow::DEADLINE == 0 {
        return;
    }
    t.slow &= !slow::DEADLINE;
    let links = core::mem::take(&mut t.timer);
    let node = number(k, thread);
    set_parent(k, links.left, 0);
    set_parent(k, links.right, 0);
    let rest = merge(k, links.left, links.right);
    set_parent(k, rest, links.parent);
    match named(k, links.parent) {
        Some(parent) => {
            let p = &mut k.get(parent).timer;
            if p.left == node {
                p.left = rest;
            } else {
                p.right = rest;
            }
            repair(k, links.parent);
        }
        None => {
            k.state().timers = rest;
            program(k);
        }
    }
}

/// Asks the machine for an interrupt at whichever comes first: the next deadline or the end of the time slice.
pub fn program<A: Arch>(k: &mut Kernel<A>) {
    let root = k.state().timers;
    let first = if root == 0 { None } else { Some(deadline(k, root)) };
    let slice = match k.state().slice_end {
        0 => None,
        end => Some(end),
    };
    let next = match (first, slice) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    k.arch().set_timer(next);
}

/// The thread that waits for the first deadline, if that has passed.
#[inline]
fn due<A: Arch>(k: &mut Kernel<A>, now: u64) -> Option<Ref<Thread>> {
    let root = k.state().timers;
    named(k, root).filter(|thread| k.get(*thread).deadline <= now)
}

/// The timer interrupt: ends waits whose deadline has passed, and the time slice if it is over. Answers whether it is
/// done. If not, more deadlines have passed than one batch: it is called again, with interrupts let in between.
#[must_use]
pub fn expire<A: Arch>(k: &mut Kernel<A>) -> bool {
    let now = k.arch().now();
    let mut left = BATCH;
    while let Some(thread) = due(k, now) {
        if left == 0 {
            return false;
        }
        let inherited = inherit::heir(k, thread).is_some_and(|heir| k.get(heir).slow & slow::INHERITS != 0);
        endpoint::cancel(k, thread, Error::TimedOut);
        // What its heir inherits from the others is worked out then, which takes as long as all the rest.
        left = if inherited { 0 } else { left - 1 };
    }
    let end = k.state().slice_end;
    if end != 0 && end <= now {
        scheduler::rotate(k);
    }
    program(k);
    true
}

/// Panics unless the queue is a leftist heap of threads that wait with a deadline. For tests.
pub fn check_invariants<A: Arch>(k: &mut Kernel<A>) -> usize {
    let root = k.state().timers;
    check_below(k, root, 0, 0)
}

/// Checks a subtree; answers how many threads it holds.
fn check_below<A: Arch>(k: &mut Kernel<A>, node: u32, parent: u32, earliest: u64) -> usize {
    let Some(thread) = named(k, node) else { return 0 };
    let (links, deadline, flags) = (k.get(thread).timer, k.get(thread).deadline, k.get(thread).slow);
    assert!(flags & slow::DEADLINE != 0, "a queued thread has the deadline flag");
    assert!(links.parent == parent, "a child names its parent");
    assert!(deadline >= earliest, "no child is due before its parent");
    let (left, right) = (rank(k, links.left), rank(k, links.right));
    assert!(left >= right && links.rank == right + 1, "ranks are leftist");
    1 + check_below(k, links.left, node, deadline) + check_below(k, links.right, node, deadline)
}
