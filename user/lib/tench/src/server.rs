//! Slots, reply objects and persistent state of a server.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use tench_abi::layout::slot;
use tench_abi::object::{NODE_BITS, SLOT_SIZE};
use tench_abi::{CapAddress, Kind, Rights};
use tench_protocol::{Factory, Held, Port, Rejection, Replies, Slots};
use tench_sys::{Cap, CapNode, Endpoint, Error, Frame, MapFlags, Message, OWN_CSPACE, Reply, Wait};

use crate::memory::{self, Window};
use crate::sync::{Mutex, inheriting};
use crate::thread;

/// Returns the port of a server's main thread: it receives at [`SERVICE`](slot::SERVICE), with requests that carry at
/// most `caps` capabilities. A program without an endpoint there prints a message and ends; otherwise it would try to
/// receive for ever. From now on callers that wait at the endpoint help the calling thread, whose own calls meanwhile
/// go `depth` servers deep: 1, if it calls only the memory server.
pub fn port(caps: usize, depth: u64) -> Port {
    let service = Cap::<Endpoint>::new(slot::SERVICE);
    if !can_receive(service) {
        crate::eprintln!("this program serves others at an endpoint that its parent gives it, and it was given none");
        crate::exit(1);
    }
    inheriting::give_way();
    // This fails only if a thread of this server serves the endpoint already; then that thread goes on being helped.
    let _ = thread::current_thread().serve(service, depth);
    let replies = Replies::new(Cap::new(slot::REPLY), Factory { make, delete, refuse });
    Port::new(service, replies, slots(caps))
}

/// Refuses the caller held in a reply object, which usually is empty.
fn refuse(reply: Cap<Reply>) {
    let mut message = Message::new(0);
    let _ = Rejection::NotAllowed.write(&mut message);
    let _ = reply.reply(&message);
}

/// Returns slots of this process for requests that carry at most `count` capabilities.
pub const fn slots(count: usize) -> Slots {
    Slots { take: || memory::take_slot().ok(), delete: delete_in_parts, delete_more, count }
}

/// Slots whose capabilities are still being deleted: capabilities from clients whose deletion takes long. Each request
/// with a capability deletes a part, so nobody waits for all of it. Objects of a process are deleted at the latest when
/// its memory is taken back.
static PENDING: Mutex<VecDeque<CapAddress>> = Mutex::new(VecDeque::new());

/// Number of preemption points in one such part: some 30,000 instructions.
const PART: u64 = 24;

/// Deletes the capability in a slot, which may take arbitrarily long, and frees the slot. A deletion that takes longer
/// than a moment is done in parts, with later requests.
pub fn delete_in_parts(slot: CapAddress) {
    delete_part(slot, 0);
}

/// Deletes a part, and frees the slot if it was the last. A capability that went with its owner's memory no longer
/// exists.
fn delete_part(slot: CapAddress, preemption_points: u64) {
    match OWN_CSPACE.delete_part_at(slot, preemption_points) {
        Err(Error::Unfinished) => remember(slot),
        // The capability stays in its slot.
        Err(Error::RemoteCopies) => {}
        _ => memory::free_slot(slot),
    }
}

/// Queues a slot for later deletion, or deletes its capability now if there is no memory to queue it.
fn remember(slot: CapAddress) {
    let mut pending = PENDING.lock();
    if pending.try_reserve(1).is_ok() {
        pending.push_back(slot);
        return;
    }
    drop(pending);
    let _ = OWN_CSPACE.delete_at(slot);
    memory::free_slot(slot);
}

/// Deletes a part of the [queued capabilities](delete_in_parts). A server that receives capabilities without a [`Port`]
/// calls this for each message that brings some, so that the queued objects never exceed what lies in clients' memory.
pub fn delete_more() {
    let next = PENDING.lock().pop_front();
    if let Some(slot) = next {
        delete_part(slot, PART);
    }
}

/// Returns whether a capability is to an endpoint at which its holder may receive.
fn can_receive(service: Cap<Endpoint>) -> bool {
    service.identify().is_ok_and(|found| found.kind == Kind::Endpoint && found.rights.contains(Rights::READ))
}

/// Unused reply objects. They are reused, so that there are never more than were needed at the same time: the memory of
/// a deleted one would be freed only at the server's end.
static IDLE: Mutex<Vec<Cap<Reply>>> = Mutex::new(Vec::new());

/// Returns an empty reply object.
fn make() -> Result<Cap<Reply>, Error> {
    if let Some(idle) = IDLE.lock().pop() {
        return Ok(idle);
    }
    memory::make::<Reply>(0).map(memory::Made::leak).map_err(|_| Error::OutOfMemory)
}

/// Releases a reply object.
fn delete(reply: Cap<Reply>) {
    let mut idle = IDLE.lock();
    if idle.try_reserve(1).is_ok() {
        idle.push(reply);
        return;
    }
    drop(idle);
    if OWN_CSPACE.delete_at(reply.address()).is_ok() {
        memory::free_slot(reply.address());
    }
}

/// Bits signalled to the bound notification that a [`Watch`] received.
static MISSED: AtomicU64 = AtomicU64::new(0);

/// Returns the bits of the bound notification that [`Watch`]es received since the last call. In a process in which
/// several threads have a bound notification, their bits cannot be told apart.
pub fn missed_signals() -> u64 {
    MISSED.swap(0, Ordering::Relaxed)
}

/// A test of whether callers to whom a server has not yet replied still wait. A caller can stop waiting, at its own
/// deadline or because its thread has ended, without the server being told.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// An endpoint to which nobody ever sends.
    quiet: Cap<Endpoint>,
}

impl Watch {
    /// Returns a new watch.
    pub fn new() -> Result<Watch, memory::Error> {
        Ok(Watch { quiet: memory::make::<Endpoint>(0)?.leak() })
    }

    /// Returns whether the caller of a pending request no longer waits. (The kernel reports whether a reply object
    /// holds a caller when a thread tries to receive with it, here at an endpoint without senders. A thread with a
    /// bound notification can lose a signal to this: it has to check afterwards for the event that the signal would
    /// have reported, or ask [which signal it was](missed_signals).)
    pub fn has_gone(&self, pending: &impl Held) -> bool {
        self.is_empty(pending.reply())
    }

    /// Returns whether a reply object holds no caller.
    pub fn is_empty(&self, reply: Cap<Reply>) -> bool {
        let tried = self.quiet.try_receive(Wait::FOREVER.with_reply(reply));
        if let Ok(received) = &tried {
            // Nobody sends to this endpoint, so this is a signal.
            MISSED.fetch_or(received.badge(), Ordering::Relaxed);
        }
        !matches!(tried, Err(Error::ReplyInUse))
    }
}

/// Persistent state: memory and slots that stay when this server ends and is started again. At first the memory is zero
/// and the slots are empty; afterwards they are as the server's predecessor left them, possibly in the middle of an
/// update.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    first: CapAddress,
    nodes: u32,
}

impl Kept {
    /// Opens the persistent slots and memory that the process server gave. If it gave none, makes as many nodes of 256
    /// slots and as many bytes, which do not persist.
    pub fn open(bytes: u64, nodes: u32) -> Result<(Kept, Window), memory::Error> {
        let frame = given(slot::KEPT_MEMORY, Kind::Frame);
        let frame =
            frame.map_or_else(|| memory::make::<Frame>(u64::from(bytes.ilog2())).map(memory::Made::leak), Ok)?;
        let window = Window::new(frame, frame.identify()?.size_bits, MapFlags::READ | MapFlags::WRITE)?;
        // The last entries of the root, away from those of the library's own nodes.
        let root = Cap::<CapNode>::new(slot::CSPACE);
        let entries = 1u32 << root.identify()?.size_bits.saturating_sub(SLOT_SIZE.trailing_zeros());
        let place = |node: u32| CapAddress(slot::KEPT_CAPABILITIES.0 + node);
        let is_given = |node: u32| given::<CapNode>(place(node), Kind::CapNode).is_some();
        let found = (0..slot::KEPT_NODES).take_while(|node| is_given(*node)).count() as u32;
        let nodes = if found > 0 { found } else { nodes };
        for node in 0..nodes {
            let made = || memory::make::<CapNode>(u64::from(NODE_BITS)).map(memory::Made::leak);
            let cap = given(place(node), Kind::CapNode).map_or_else(made, Ok)?;
            root.install_node(entries - nodes + node, cap)?;
        }
        Ok((Kept { first: CapAddress::new(entries - nodes, 0), nodes }, window))
    }

    /// Returns the number of slots.
    pub const fn slots(&self) -> u32 {
        self.nodes << NODE_BITS
    }

    /// Returns slot `number`, which must be less than [`slots`](Self::slots).
    pub const fn slot(&self, number: u32) -> CapAddress {
        CapAddress(self.first.0 + number % self.slots())
    }
}

/// Persistent memory of a server, in words. Each word is written at once; the server may end between two writes.
pub trait Lasting {
    /// Returns the number of words.
    fn size(&self) -> usize;
    /// Returns a word.
    fn read(&self, index: usize) -> u64;
    /// Writes a word.
    fn write(&mut self, index: usize, word: u64);
}

impl Lasting for Window {
    fn size(&self) -> usize {
        Window::size(self) / 8
    }

    fn read(&self, index: usize) -> u64 {
        self.read64(index * 8)
    }

    fn write(&mut self, index: usize, word: u64) {
        self.write64(index * 8, word);
    }
}

impl<M: Lasting> Lasting for &mut M {
    fn size(&self) -> usize {
        M::size(self)
    }

    fn read(&self, index: usize) -> u64 {
        M::read(self, index)
    }

    fn write(&mut self, index: usize, word: u64) {
        M::write(self, index, word);
    }
}

/// Memory whose writer fails after a given number of writes without noticing, for tests of persistent state.
#[derive(Clone, Debug)]
pub struct Fragile {
    /// The words.
    pub words: Vec<u64>,
    /// Number of writes that still take effect.
    pub left: usize,
}

impl Lasting for Fragile {
    fn size(&self) -> usize {
        self.words.len()
    }

    fn read(&self, index: usize) -> u64 {
        self.words[index]
    }

    fn write(&mut self, index: usize, word: u64) {
        if self.left > 0 {
            self.left -= 1;
            self.words[index] = word;
        }
    }
}

/// Returns the capability in a slot, if it is of this kind.
fn given<T>(slot: CapAddress, kind: Kind) -> Option<Cap<T>> {
    OWN_CSPACE.identify_at(slot).ok().filter(|found| found.kind == kind).map(|_| Cap::new(slot))
}
