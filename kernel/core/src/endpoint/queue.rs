//! The queues of an endpoint: which threads wait there, and in which order.
//!
//! Senders wait in the order of their priorities, first in, first out within one; receivers, which are alike to whoever
//! sends, first in, first out. A waiting thread is unlinked in constant or logarithmic time, whatever ends its wait.

use core::mem::offset_of;

use crate::endpoint::Endpoint;
use crate::heap::{self, Node};
use crate::helping::heights::MAX_HEIGHT;
use crate::object::Ref;
use crate::thread::{Thread, ThreadState, blocker};
use crate::{Arch, Kernel, helping};

/// The kind of threads that wait at an endpoint, with the first of them.
pub enum Waiting {
    /// No thread waits.
    Nobody,
    /// Senders wait; this is the first.
    Sender(Ref<Thread>),
    /// Receivers wait; this is the first.
    Receiver(Ref<Thread>),
}

/// Returns the first thread that waits at an endpoint.
#[inline(always)]
pub fn waiting<A: Arch>(k: &mut Kernel<A>, endpoint: Ref<Endpoint>) -> Waiting {
    let head = k.get(endpoint).head;
    // SAFETY: the head of a queue is a live thread (a thread leaves its queue before it is deleted).
    match unsafe { Ref::at(head & !1) } {
        None => Waiting::Nobody,
        Some(thread) if head & 1 != 0 => Waiting::Receiver(thread),
        Some(thread) => Waiting::Sender(thread),
    }
}

/// Returns the sender whose message is received next.
#[inline(always)]
pub fn first_sender<A: Arch>(k: &mut Kernel<A>, endpoint: Ref<Endpoint>) -> Option<Ref<Thread>> {
    if let Waiting::Sender(thread) = waiting(k, endpoint) { Some(thread) } else { None }
}

/// Queues a thread as a receiver at an endpoint without senders.
pub fn enqueue_receiver<A: Arch>(k: &mut Kernel<A>, endpoint: Ref<Endpoint>, thread: Ref<Thread>) {
    let queue = k.get(endpoint);
    let tail = if queue.head == 0 {
        queue.head = thread.address() | 1;
        None
    } else {
        // SAFETY: a queue that is not empty has a live last thread.
        unsafe { Ref::<Thread>::at(queue.tail) }
    };
    queue.tail = thread.address();
    if let Some(last) = tail {
        k.get(last).next = Some(thread);
    }
    let t = k.get(thread);
    t.next = None;
    t.previous = tail;
}

/// Takes a receiver out of its queue.
pub fn unqueue_receiver<A: Arch>(k: &mut Kernel<A>, endpoint: Ref<Endpoint>, thread: Ref<Thread>) {
    let t = k.get(thread);
    let (next, previous) = (t.next.take(), t.previous.take());
    (t.fast_reply, t.receive_reply) = (None, None);
    match previous {
        Some(previous) => k.get(previous).next = next,
        None => k.get(endpoint).head = next.map_or(0, |next| next.address() | 1),
    }
    match next {
        Some(next) => k.get(next).previous = previous,
        None => k.get(endpoint).tail = previous.map_or(0, Ref::address),
    }
}

/// Returns the heap node of a sender.
#[inline(always)]
fn sending_node(thread: Ref<Thread>) -> Ref<Node> {
    // SAFETY: the field of a live thread.
    unsafe { Ref::at_unchecked(thread.address() + offset_of!(Thread, sending)) }
}

/// Returns the root of the heap of senders.
#[inline(always)]
fn senders<A: Arch>(k: &mut Kernel<A>, endpoint: Ref<Endpoint>) -> u32 {
    match first_sender(k, endpoint) {
        Some(first) => heap::number(k, sending_node(first)),
        None => heap::EMPTY,
    }
}

/// Sets the root of the heap of senders.
#[inline(always)]
fn set_senders<A: Arch>(k: &mut Kernel<A>, endpoint: Ref<Endpoint>, root: u32) {
    let first = heap::node(k, root).map_or(0, |node| node.address() - offset_of!(Thread, sending));
    k.get(endpoint).head = first;
    note_senders(k, endpoint);
}

/// Log2 of a thread's alignment in bytes.
const THREAD_SHIFT: u32 = align_of::<Thread>().trailing_zeros();

/// Returns the thread that serves an endpoint.
#[inline(always)]
pub fn server<A: Arch>(k: &mut Kernel<A>, endpoint: Ref<Endpoint>) -> Option<Ref<Thread>> {
    let number = k.get(endpoint).server;
    if number == 0 {
        return None;
    }
    let address = k.arch().locate(number, THREAD_SHIFT);
    // SAFETY: an endpoint's server is a live thread (the binding is deleted before the thread is).
    unsafe { Ref::at(address) }
}

/// Sets the thread that serves an endpoint.
pub fn set_server<A: Arch>(k: &mut Kernel<A>, endpoint: Ref<Endpoint>, server: Option<Ref<Thread>>) {
    let number = server.map_or(0, |server| k.arch().number(server.address(), THREAD_SHIFT));
    k.get(endpoint).server = number;
}

/// Returns the index in [`Endpoint::helpers`] for senders of a height.
#[inline(always)]
const fn class(height: u8) -> usize {
    if height < 2 { height as usize } else { 2 }
}

/// Returns the height that a server of this depth has because of the senders at its endpoint: greater than that of each
/// sender that helps.
pub fn height_above<A: Arch>(k: &mut Kernel<A>, endpoint: Ref<Endpoint>, depth: u8) -> u8 {
    match k.get(endpoint).helpers {
        [0, 0, 0] => 0,
        [_, 0, 0] => 1,
        [_, _, 0] => 2,
        _ => height_by_sender(2, depth),
    }
}

/// Returns the height that one sender gives to a server of this depth. Senders of height 2 and 3 are counted together;
/// but none of height 3 helps a server whose depth is not 0.
pub fn height_by_sender(height: u8, depth: u8) -> u8 {
    if height < 2 { height + 1 } else { MAX_HEIGHT - depth.min(1) }
}

/// Counts a sender that helps under its new height.
pub fn change_height<A: Arch>(k: &mut Kernel<A>, endpoint: Ref<Endpoint>, before: u8, after: u8) {
    let helpers = &mut k.get(endpoint).helpers;
    helpers[class(before)] -= 1;
    helpers[class(after)] += 1;
}

/// Ends the help of a sender, which keeps waiting.
pub fn stop_helping<A: Arch>(k: &mut Kernel<A>, endpoint: Ref<Endpoint>, thread: Ref<Thread>) {
    let height = k.get(thread).height;
    k.get(endpoint).helpers[class(height)] -= 1;
    k.get(thread).blockers |= blocker::HELPLESS;
    requeue(k, endpoint, thread);
}

/// Records in an endpoint's server whether senders wait there: if so, it takes no fast path.
#[inline(always)]
pub fn note_senders<A: Arch>(k: &mut Kernel<A>, endpoint: Ref<Endpoint>) {
    let Some(server) = server(k, endpoint) else { return };
    let is_waited_for = first_sender(k, endpoint).is_some();
    let t = k.get(server);
    if is_waited_for {
        t.blockers |= blocker::HELPED;
        t.fast_reply = None;
    } else {
        t.blockers &= !blocker::HELPED;
    }
}

/// Bits of a sender's key below the rank: the order of arrival.
const ARRIVAL_BITS: u32 = 48;
/// Mask of those bits.
const ARRIVAL: u64 = (1 << ARRIVAL_BITS) - 1;

/// Queues a thread as a sender at an endpoint without receivers.
///
/// Senders wait in the order of their priorities. A sender of the same rank as the one that came before it is linked
/// behind that sender; only the first of such a *run* is in the heap. So as long as all have the same priority,
/// arriving and leaving take constant time.
pub fn enqueue_sender<A: Arch>(k: &mut Kernel<A>, endpoint: Ref<Endpoint>, thread: Ref<Thread>) {
    let s = k.state();
    s.arrivals += 1;
    let arrivals = s.arrivals;
    let key = key_of(arrivals, k.get(thread));
    let queue = k.get(endpoint);
    let (head, tail) = (queue.head, core::mem::replace(&mut queue.tail, thread.address()));
    let t = k.get(thread);
    (t.sending.key, t.next, t.previous) = (key, None, None);
    let height = t.height;
    if helping::can_help(k, thread) {
        k.get(endpoint).helpers[class(height)] += 1;
    }
    if head == 0 {
        let root = heap::insert(k, heap::EMPTY, sending_node(thread));
        set_senders(k, endpoint, root);
    // SAFETY: `tail` is 0 or the sender that came last, a live thread that waits.
    } else if let Some(last) = unsafe { Ref::<Thread>::at(tail) }
        && k.get(last).sending.key >> ARRIVAL_BITS == key >> ARRIVAL_BITS
    {
        k.get(last).next = Some(thread);
        k.get(thread).previous = Some(last);
    } else {
        enter_senders(k, endpoint, thread);
    }
}

/// Returns a sender's key: the lowest comes first. A sender that does not help comes last, since
/// its priority may come from another sender that waits here.
#[inline(always)]
fn key_of(arrival: u64, t: &Thread) -> u64 {
    let priority = if t.blockers & blocker::HELPLESS != 0 { -1 } else { t.priority };
    let rank = (i16::from(u8::MAX) + 1 - priority) as u64;
    rank << ARRIVAL_BITS | arrival & ARRIVAL
}

/// Inserts the first sender of a run into the heap.
fn enter_senders<A: Arch>(k: &mut Kernel<A>, endpoint: Ref<Endpoint>, thread: Ref<Thread>) {
    let root = senders(k, endpoint);
    let root = heap::insert(k, root, sending_node(thread));
    set_senders(k, endpoint, root);
}

/// Takes a sender out of its queue.
fn unqueue_sender<A: Arch>(k: &mut Kernel<A>, endpoint: Ref<Endpoint>, thread: Ref<Thread>) {
    let t = k.get(thread);
    let (next, previous) = (t.next.take(), t.previous.take());
    if k.get(endpoint).tail == thread.address() {
        k.get(endpoint).tail = previous.map_or(0, Ref::address);
    }
    if let Some(next) = next {
        k.get(next).previous = previous;
    }
    if let Some(previous) = previous {
        k.get(previous).next = next;
        return;
    }
    let root = senders(k, endpoint);
    let mut root = heap::remove(k, root, sending_node(thread));
    if let Some(next) = next {
        root = heap::insert(k, root, sending_node(next));
    }
    set_senders(k, endpoint, root);
}

/// Moves a sender to the rank of its new priority. It keeps its order of arrival among equals. A sender that reports
/// its used-up budget keeps its place: it does not help, so a change of the first sender would go unnoticed.
pub fn requeue<A: Arch>(k: &mut Kernel<A>, endpoint: Ref<Endpoint>, thread: Ref<Thread>) {
    let t = k.get(thread);
    if t.blockers & blocker::FAULT_REPORTED == blocker::FAULT_REPORTED {
        return;
    }
    unqueue_sender(k, endpoint, thread);
    let t = k.get(thread);
    t.sending.key = key_of(t.sending.key, t);
    enter_senders(k, endpoint, thread);
}

/// Takes a sending or receiving thread out of its endpoint's queue.
pub fn leave<A: Arch>(k: &mut Kernel<A>, thread: Ref<Thread>) {
    match k.get(thread).state {
        ThreadState::Sending(endpoint) => leave_as_sender(k, endpoint, thread),
        ThreadState::Receiving(endpoint) => unqueue_receiver(k, endpoint, thread),
        _ => {}
    }
}

/// Takes a sending thread out of its endpoint's queue.
pub fn leave_as_sender<A: Arch>(k: &mut Kernel<A>, endpoint: Ref<Endpoint>, thread: Ref<Thread>) {
    let height = k.get(thread).height;
    if helping::can_help(k, thread) {
        k.get(endpoint).helpers[class(height)] -= 1;
    }
    unqueue_sender(k, endpoint, thread);
    k.get(thread).blockers &= !blocker::HELPLESS;
}
