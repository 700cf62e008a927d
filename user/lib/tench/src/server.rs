//! What a server receives with: slots and reply objects of this process; and what it keeps when it is started again.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use tench_abi::layout::slot;
use tench_abi::object::{NODE_BITS, SLOT_SIZE};
use tench_abi::{CapAddress, Kind, Rights};
use tench_protocol::{Factory, Pending, Port, Rejection, Replies, Slots};
use tench_sys::{Cap, CapNode, Endpoint, Error, Frame, MapFlags, Message, OWN_SPACE, Reply, Wait};

use crate::memory::{self, Window};
use crate::sync::Mutex;
use crate::thread;

/// Where the main thread of a server receives: at [`SERVICE`](slot::SERVICE), with requests that carry at most `caps`
/// capabilities. A program that was given no endpoint there says so and ends: otherwise it would ask for requests for
/// ever. From now on whoever waits there helps the calling thread, whose own calls go `depth` servers deep meanwhile:
/// 1, if it calls the memory server alone.
pub fn port(caps: usize, depth: u64) -> Port {
    let service = Cap::<Endpoint>::new(slot::SERVICE);
    if !can_receive(service) {
        crate::eprintln!("this program serves others at an endpoint that its parent gives it, and it was given none");
        crate::exit(1);
    }
    // Refused only if a thread of this server does so already; then that one goes on being helped.
    let _ = thread::current_thread().serve(service, depth);
    let replies = Replies::new(Cap::new(slot::REPLY), Factory { make, delete, refuse });
    Port::new(service, replies, slots(caps))
}

/// Refuses whoever waits in a reply object, in which usually nobody does.
fn refuse(reply: Cap<Reply>) {
    let mut message = Message::new(0);
    let _ = Rejection::NotAllowed.write(&mut message);
    let _ = reply.reply(&message);
}

/// Slots of this process for requests that carry at most `count` capabilities.
pub const fn slots(count: usize) -> Slots {
    Slots { take: || memory::take_slot().ok(), delete: delete_in_parts, delete_more, count }
}

/// Slots in which something is being deleted: what clients sent, and what takes long. Each request that brings a
/// capability deletes a part. So nobody waits for all of it, and what a process leaves here goes at the latest with its
/// memory.
static PENDING: Mutex<VecDeque<CapAddress>> = Mutex::new(VecDeque::new());

/// Windows that the kernel passes for one part of that: some 30,000 instructions.
const PART: u64 = 24;

/// Deletes what lies in a slot, of which nobody knows how much it is, and gives the slot back. What takes longer than a
/// moment is done in parts, with later requests.
pub fn delete_in_parts(slot: CapAddress) {
    delete_part(slot, 0);
}

/// Deletes a part, and gives the slot back if that was the last. What went with its owner's memory is not there any
/// more.
fn delete_part(slot: CapAddress, windows: u64) {
    match OWN_SPACE.delete_part_at(slot, windows) {
        Err(Error::Unfinished) => remember(slot),
        // It stays there, and so does its slot.
        Err(Error::ForeignCopies) => {}
        _ => memory::free_slot(slot),
    }
}

/// What lies in a slot is deleted later, or now if there is no memory to remember it.
fn remember(slot: CapAddress) {
    let mut pending = PENDING.lock();
    if pending.try_reserve(1).is_ok() {
        pending.push_back(slot);
        return;
    }
    drop(pending);
    let _ = OWN_SPACE.delete_at(slot);
    memory::free_slot(slot);
}

/// Deletes a part of what [could not be deleted at once](delete_in_parts). Whoever receives capabilities without a
/// [`Port`] calls this for each message that brings some: so there is never more left than lies in memory of clients.
pub fn delete_more() {
    let next = PENDING.lock().pop_front();
    if let Some(slot) = next {
        delete_part(slot, PART);
    }
}

/// Whether a capability is one to an endpoint at which its holder may receive.
fn can_receive(service: Cap<Endpoint>) -> bool {
    service.identify().is_ok_and(|found| found.kind == Kind::Endpoint && found.rights.contains(Rights::READ))
}

/// Reply objects that were made and are not used. They are used again, so that there are never more than once had to be
/// at the same time: the memory of one that is deleted would come back only with the server's end.
static IDLE: Mutex<Vec<Cap<Reply>>> = Mutex::new(Vec::new());

/// A reply object, which is empty.
fn make() -> Result<Cap<Reply>, Error> {
    if let Some(idle) = IDLE.lock().pop() {
        return Ok(idle);
    }
    memory::make::<Reply>(0).map(memory::Made::leak).map_err(|_| Error::OutOfMemory)
}

/// A reply object is not needed any more.
fn delete(reply: Cap<Reply>) {
    let mut idle = IDLE.lock();
    if idle.try_reserve(1).is_ok() {
        idle.push(reply);
        return;
    }
    drop(idle);
    if OWN_SPACE.delete_at(reply.address()).is_ok() {
        memory::free_slot(reply.address());
    }
}

/// What was signalled and taken by a [`Watch`].
static MISSED: AtomicU64 = AtomicU64::new(0);

/// The bits of the bound notification that were received by [`Watch`]es since this was asked last. Of a process in
/// which several threads have one, nobody knows whose they were.
pub fn missed_signals() -> u64 {
    MISSED.swap(0, Ordering::Relaxed)
}

/// Finds out whether those whom a server has not answered yet still wait. Somebody who waits can give up, at its own
/// deadline, or because the thread has ended; the server hears nothing of it.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// Where nobody ever sends.
    quiet: Cap<Endpoint>,
}

impl Watch {
    /// Makes what it takes.
    pub fn new() -> Result<Watch, memory::Error> {
        Ok(Watch { quiet: memory::make::<Endpoint>(0)?.leak() })
    }

    /// Whether nobody waits any more for the answer to a request. (The kernel says of a reply object whether somebody
    /// waits in it when somebody tries to receive with it, here where there is nothing to receive. A thread with a
    /// bound notification can lose a signal of it to this: it looks afterwards at what the signal would have told it,
    /// or [which it was](missed_signals).)
    pub fn has_gone<T, E>(&self, pending: &Pending<T, E>) -> bool {
        self.is_empty(pending.reply())
    }

    /// The same for somebody who waits in a reply object.
    pub fn is_empty(&self, reply: Cap<Reply>) -> bool {
        let tried = self.quiet.try_receive(Wait::FOREVER.with_reply(reply));
        if let Ok(received) = &tried {
            // Nobody sends here.
            MISSED.fetch_or(received.badge(), Ordering::Relaxed);
        }
        !matches!(tried, Err(Error::ReplyInUse))
    }
}

/// Memory and slots that stay when this server ends and is started again. At first the memory is zeros and the slots
/// are empty; afterwards they are as the server's predecessor left them, which may be in the middle of anything.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    first: CapAddress,
    nodes: u32,
}

impl Kept {
    /// What the process server gave: slots and memory; if it gave nothing, as many nodes of 256 slots and as many
    /// bytes, which do not stay.
    pub fn open(bytes: u64, nodes: u32) -> Result<(Kept, Window), memory::Error> {
        let frame = given(slot::KEPT_MEMORY, Kind::Frame);
        let frame =
            frame.map_or_else(|| memory::make::<Frame>(u64::from(bytes.ilog2())).map(memory::Made::leak), Ok)?;
        let window = Window::new(frame, frame.identify()?.size_bits, MapFlags::READ | MapFlags::WRITE)?;
        // The last entries of the root, so that the library's own nodes find theirs.
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

    /// How many slots.
    pub const fn slots(&self) -> u32 {
        self.nodes << NODE_BITS
    }

    /// The slot of this number, less than [`slots`](Self::slots).
    pub const fn slot(&self, number: u32) -> CapAddress {
        CapAddress(self.first.0 + number % self.slots())
    }
}

/// Memory that stays when a server ends, in words. Each is written at once; between two writes the server may end.
pub trait Lasting {
    /// Words.
    fn size(&self) -> usize;
    /// Reads a word.
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

/// Words whose writer ends after so many writes, whatever it believes: for tests of what is kept.
#[derive(Clone, Debug)]
pub struct Fragile {
    /// The words.
    pub words: Vec<u64>,
    /// Writes that still happen.
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

/// What lies in a slot, if it is of this kind.
fn given<T>(slot: CapAddress, kind: Kind) -> Option<Cap<T>> {
    OWN_SPACE.identify_at(slot).ok().filter(|found| found.kind == kind).map(|_| Cap::new(slot))
}
