//! Canonical numbers: a kernel's state as a number that is equal for states that are equal up to renaming, that is,
//! that differ only in where objects and capabilities lie, and in nothing that a program could tell or a later call
//! depends on.
//!
//! The state is read as a graph. Objects and capabilities are its nodes; each reference from one to another is an edge.
//! Each node has a colour: at first what it holds besides references, then, round by round, its colour and those of its
//! neighbours by edge. After a fixed number of rounds the sum over all nodes is the number. A reference to a dead
//! object is an edge to nothing, with a colour of its own.
//!
//! The number leaves out: registers and memory of programs (but for the tags of messages under way, and the flag that a
//! receiver's deadline is to be its alarm), statistics, identifiers, the shape of the derivation tree, and all that
//! lies outside of the memory in question. Two different states that the colours do not tell apart would be merged;
//! with as few objects of a kind as a small universe has, that takes a collision of 64 bits.

use std::mem::offset_of;
use std::ops::Range;

use tench_abi::object::{REPLY_BITS, SLOT_SIZE};
use tench_abi::{Kind, Tag};
use tench_kernel::endpoint::Endpoint;
use tench_kernel::endpoint::queue;
use tench_kernel::heap::Node;
use tench_kernel::kernel::NEVER;
use tench_kernel::mapping::scattered::{self, Scattered};
use tench_kernel::notification::Notification;
use tench_kernel::object::Ref;
use tench_kernel::page_table::{PageTable, ShadowEntry};
use tench_kernel::reply::Reply;
use tench_kernel::scheduling_context::SchedulingContext;
use tench_kernel::slot::payload::Sharing;
use tench_kernel::slot::{Payload, flag};
use tench_kernel::thread::{BINDINGS, THREAD_OFFSET, Thread, ThreadState, blocker};
use tench_kernel::{Cap, Kernel, SlotRef};

use crate::host::Host;

/// Number of rounds of colouring: more than the distance between any two nodes whose relation matters.
const ROUNDS: usize = 5;
/// The colour of dead objects.
const NOTHING: u64 = 0x5bd1_e995_9d1f_3a77;
/// The colour of everything outside of the memory in question.
const OUTSIDE: u64 = 0x27d4_eb2f_1656_67c5;

/// Mixes two words into one.
fn mix(a: u64, b: u64) -> u64 {
    let z = (a ^ b.rotate_left(29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_add(b).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Mixes words, in their order.
fn mix_all(words: &[u64]) -> u64 {
    words.iter().fold(words.len() as u64, |sum, word| mix(sum, *word))
}

/// Log2 of the smallest object's size: no two nodes lie nearer to each other.
const UNIT_BITS: u32 = REPLY_BITS;

/// A reference from one node to another. Both are indices in the list of colours.
struct Edge {
    from: usize,
    to: usize,
    label: u64,
}

/// The graph. The first two colours belong to no node: they are [`NOTHING`] and [`OUTSIDE`].
struct Graph<'a> {
    ours: &'a Range<usize>,
    /// Addresses of the nodes: slots by their own address, threads by that of the `Thread`, other objects by the
    /// object's.
    addresses: Vec<usize>,
    colours: Vec<u64>,
    /// For each unit of `ours` the index of the node there, or 0.
    indices: Vec<u16>,
    /// Indices of threads.
    threads: Vec<usize>,
    edges: Vec<Edge>,
}

impl<'a> Graph<'a> {
    /// Returns a graph without nodes.
    fn new(ours: &'a Range<usize>) -> Graph<'a> {
        Graph {
            ours,
            addresses: vec![0; 2],
            colours: vec![NOTHING, OUTSIDE],
            indices: vec![0; (ours.len() >> UNIT_BITS) + 1],
            threads: Vec::new(),
            edges: Vec::with_capacity(256),
        }
    }

    /// Returns the index of the node at an address, and makes the node if there was none.
    fn node(&mut self, address: usize) -> usize {
        if let Some(index) = self.find(address) {
            return index;
        }
        let index = self.addresses.len();
        self.addresses.push(address);
        self.colours.push(0);
        if self.ours.contains(&address) {
            let unit = &mut self.indices[(address - self.ours.start) >> UNIT_BITS];
            assert_eq!(*unit, 0, "two nodes in one unit at {address:#x}");
            *unit = u16::try_from(index).expect("a small universe has few nodes");
        }
        index
    }

    /// Returns the index of a node. The nodes outside of `ours` (slots of others) are few.
    fn find(&self, address: usize) -> Option<usize> {
        if self.ours.contains(&address) {
            let index = usize::from(self.indices[(address - self.ours.start) >> UNIT_BITS]);
            return (index != 0 && self.addresses[index] == address).then_some(index);
        }
        let is_it = |other: &&usize| **other == address;
        self.outside().find(|(_, other)| is_it(other)).map(|(index, _)| index)
    }

    /// Returns the nodes outside of `ours`.
    fn outside(&self) -> impl Iterator<Item = (usize, &usize)> {
        self.addresses.iter().enumerate().skip(2).filter(|(_, address)| !self.ours.contains(address))
    }

    /// Mixes words that a node holds besides references into its colour.
    fn colour(&mut self, node: usize, words: &[u64]) {
        self.colours[node] = mix(self.colours[node], mix_all(words));
    }

    /// Adds a reference. Address 0 refers to nothing.
    fn edge(&mut self, from: usize, label: u64, address: usize) {
        if address != 0 {
            let nothing = usize::from(!self.ours.contains(&address));
            let to = self.find(address).unwrap_or(nothing);
            self.edges.push(Edge { from, to, label });
        }
    }

    /// Adds a reference to an object.
    fn name<T>(&mut self, from: usize, label: u64, object: Option<Ref<T>>) {
        self.edge(from, label, object.map_or(0, Ref::address));
    }

    /// Runs the rounds of colouring. Returns the sum.
    fn number(mut self) -> u64 {
        let mut next = vec![0; self.colours.len()];
        for _ in 0..ROUNDS {
            for (next, colour) in next.iter_mut().zip(&self.colours) {
                *next = mix(*colour, 1);
            }
            for edge in &self.edges {
                let (from, to) = (self.colours[edge.from], self.colours[edge.to]);
                next[edge.from] = next[edge.from].wrapping_add(mix(edge.label, to));
                next[edge.to] = next[edge.to].wrapping_add(mix(!edge.label, from));
            }
            (next[0], next[1]) = (NOTHING, OUTSIDE);
            std::mem::swap(&mut self.colours, &mut next);
        }
        self.colours[2..].iter().fold(0, |sum, colour| sum.wrapping_add(mix(*colour, 2)))
    }
}

/// Returns the address by which the graph knows a capability's object.
fn address_of(cap: &Cap) -> usize {
    if cap.kind == Kind::Thread { cap.object + THREAD_OFFSET } else { cap.object }
}

/// Returns true if a capability's object has a node; other objects are represented by their capabilities.
fn has_node(cap: &Cap) -> bool {
    !matches!(cap.kind, Kind::Untyped | Kind::Mapping | Kind::Null)
}

/// Returns all capabilities that lie in `ours` or refer to objects there, in the order of the derivation tree.
pub fn capabilities(k: &mut Kernel<Host>, ours: &Range<usize>) -> Vec<(SlotRef, Cap)> {
    let mut found = Vec::with_capacity(64);
    // Objects are ordered by address, so ours come last in the tree, whose list is walked backwards.
    let mut at = SlotRef::new(k.state().derivation_tail);
    while let Some(slot) = at {
        let s = k.slot(slot);
        let (cap, previous) = (s.cap, s.links.previous);
        if cap.object >= ours.start && cap.object < ours.end {
            found.push((slot, cap));
        } else if cap.object < ours.start && cap.kind != Kind::Null {
            break;
        }
        at = SlotRef::new(previous);
    }
    found.reverse();
    found
}

/// Returns the number of a state. Only objects in `ours` count. `fixed` returns an identity for the address of a slot
/// that can be told from others; objects that lie in `placed` can be told apart by their address.
pub fn canonical(
    k: &mut Kernel<Host>,
    ours: &Range<usize>,
    placed: &Range<usize>,
    fixed: impl Fn(usize) -> Option<u64>,
) -> u64 {
    let caps = capabilities(k, ours);
    let base = k.arch().memory.base();
    let mut graph = Graph::new(ours);
    for (slot, cap) in &caps {
        graph.node(base + ((slot.number() as usize) << 6));
        if has_node(cap) {
            let node = graph.node(address_of(cap));
            if cap.kind == Kind::Thread && !graph.threads.contains(&node) {
                graph.threads.push(node);
            }
        }
    }
    let mut last = 0;
    for (slot, cap) in &caps {
        let at = base + ((slot.number() as usize) << 6);
        let Some(node) = graph.find(at) else { continue };
        capability(&mut graph, node, cap, placed, base);
        graph.colour(node, &[fixed(at).unwrap_or(u64::MAX)]);
        if has_node(cap) && cap.object != last {
            last = cap.object;
            object(&mut graph, k, cap, placed);
        }
    }
    kernel(&mut graph, k);
    graph.number()
}

/// Returns how memory is shared, as a number.
fn number(sharing: Sharing) -> u64 {
    let Sharing { borrowed, exported, revoke_requested } = sharing;
    u64::from(borrowed) | u64::from(exported) << 1 | u64::from(revoke_requested) << 2
}

/// Adds to the graph what a capability holds besides its object.
fn capability(graph: &mut Graph<'_>, node: usize, cap: &Cap, placed: &Range<usize>, base: usize) {
    let head = u64::from(cap.kind as u8) | u64::from(cap.rights) << 8 | u64::from(cap.size_bits) << 16;
    let head = head | u64::from(cap.flags) << 24;
    let about = match cap.payload() {
        Payload::Nothing => [0; 3],
        Payload::Untyped(marks, sharing) => [marks.watermark, marks.placed, number(sharing)],
        Payload::Reservation(reservation) => {
            [reservation.owner.wrapping_sub(base) as u64, reservation.length as u64, 0]
        }
        Payload::Ending(ending) if cap.kind == Kind::CapNode => [ending.progress, 1, 0],
        Payload::Ending(ending) => {
            let [next, previous] = ending.ring.map(|slot| slot.map_or(0, SlotRef::number));
            [ending.progress, next.into(), previous.into()]
        }
        Payload::Frame(sharing) => [number(sharing), 0, 0],
        Payload::Node(number) | Payload::PageTable(number) => [number.into(), 0, 0],
        Payload::Badge(badge) => [badge, 0, 0],
        Payload::Mapping(mapping) => {
            graph.edge(node, 1, mapping.table);
            let entries = mapping.first as u64 | (mapping.count as u64) << 16;
            let offset = (mapping.memory - cap.object) as u64;
            [entries, offset, mapping.flags.bits() | u64::from(mapping.protecting) << 32]
        }
        Payload::Scattered(mapping) => {
            graph.edge(node, 1, mapping.table);
            let ending = u64::from(Scattered::usable(cap).is_none()) << 32 | scattered::end(cap) as u64;
            [mapping.number.into(), mapping.count as u64, 1 << 40 | ending]
        }
    };
    graph.colour(node, &[head, about[0], about[1], about[2]]);
    if has_node(cap) {
        graph.edge(node, 2, address_of(cap));
    } else if cap.kind == Kind::Mapping {
        graph.edge(node, 3, cap.object);
    } else if placed.contains(&cap.object) {
        graph.colour(node, &[(cap.object - placed.start) as u64]);
    }
}

/// Adds to the graph what an object holds.
fn object(graph: &mut Graph<'_>, k: &mut Kernel<Host>, cap: &Cap, placed: &Range<usize>) {
    let Some(node) = graph.find(address_of(cap)) else { return };
    let index = if placed.contains(&cap.object) { (cap.object - placed.start) as u64 } else { u64::MAX };
    graph.colour(node, &[index]);
    /// Returns the object of a capability.
    fn at<T>(cap: &Cap) -> Option<Ref<T>> {
        // SAFETY: a capability names a live object of its kind; each call names the type that goes with it.
        unsafe { Ref::at(address_of(cap)) }
    }
    match cap.kind {
        Kind::Thread => at(cap).into_iter().for_each(|object| thread(graph, k, node, object)),
        Kind::SchedulingContext => at(cap).into_iter().for_each(|object| context(graph, k, node, object)),
        Kind::Endpoint => at(cap).into_iter().for_each(|object| endpoint(graph, k, node, object)),
        Kind::Reply => at(cap).into_iter().for_each(|object| reply(graph, k, node, object)),
        Kind::Notification => at(cap).into_iter().for_each(|object| notification(graph, k, node, object)),
        Kind::PageTable => at(cap).into_iter().for_each(|object| table(graph, k, node, object)),
        Kind::CapNode => slots(graph, node, cap.object, cap.slots()),
        _ => {}
    }
}

/// Returns a time relative to now.
fn until(now: u64, time: u64) -> u64 {
    if time == NEVER { NEVER } else { time.wrapping_sub(now) }
}

/// Returns when a node in a timer queue is due.
fn due(now: u64, node: &Node) -> u64 {
    if node.is_queued() { until(now, node.key) ^ u64::from(node.class) << 56 } else { NEVER }
}

/// Adds the slots of a CNode or thread, which belong to it. Those of a root CNode and of a thread can be told from each
/// other.
fn slots(graph: &mut Graph<'_>, node: usize, first: usize, count: usize) {
    for (i, address) in (first..).step_by(SLOT_SIZE).take(count).enumerate() {
        if graph.find(address).is_some() {
            let label = if count <= BINDINGS { 10 + i as u64 } else { 9 };
            graph.edge(node, label, address);
        }
    }
}

fn thread(graph: &mut Graph<'_>, k: &mut Kernel<Host>, node: usize, thread: Ref<Thread>) {
    let now = k.arch().time;
    let t = k.get(thread);
    let (state, partner) = match t.state {
        ThreadState::Ready => (0, 0),
        ThreadState::Suspended => (1, 0),
        ThreadState::Sending(endpoint) => (2, endpoint.address()),
        ThreadState::Receiving(endpoint) => (3, endpoint.address()),
        ThreadState::AwaitingReply(reply) => (4, reply.address()),
        ThreadState::Waiting(notification) => (5, notification.address()),
        ThreadState::Faulted => (6, 0),
    };
    let sends = state == 2;
    // The thread's message, if it sends one, and what else its wait remembers.
    let tag = t.registers.x[1];
    let message = match state {
        2 => [tag, t.badge, u64::from(t.may_grant), t.sending.key >> 48],
        // The flag that the deadline is to be its alarm.
        3 if t.blockers & blocker::DEADLINE != 0 => [tag & Tag::ALARM, 0, 0, 0],
        _ => [0; 4],
    };
    let purpose = if sends || state == 4 { t.purpose as u64 + 1 } else { 0 };
    let flags = [
        t.queued,
        t.account_suspended,
        t.deferred,
        t.kernel_stack_pointer != 0,
        t.ipc_buffer != 0,
        t.sending.is_queued(),
    ];
    let flags = flags.into_iter().fold(0, |sum, flag| sum << 1 | u64::from(flag));
    let deadline = if t.blockers & blocker::DEADLINE != 0 { due(now, &t.timer) } else { NEVER };
    let offset = t.ipc_buffer as u64 & 0xfff;
    let entries = t.fault_targets.map(|target| target.entry);
    let standing = [
        t.priority as u64,
        u64::from(t.height),
        u64::from(t.depth),
        u64::from(t.blockers),
        t.cap as u64,
        t.base.priority as u64,
    ];
    let rest =
        [state, purpose, flags, deadline, offset, t.slice_left, t.cspace_slots as u64, u64::from(t.base.blockers)];
    graph.colour(node, &standing);
    graph.colour(node, &rest);
    graph.colour(node, &message);
    graph.colour(node, &entries);
    graph.edge(node, 100, partner);
    thread_links(graph, node, t, state);
    slots(graph, node, thread.address() + offset_of!(Thread, bindings), BINDINGS);
}

/// Adds the objects that a thread names; `state` is the number of its state.
fn thread_links(graph: &mut Graph<'_>, node: usize, t: &Thread, state: u64) {
    graph.edge(node, 101, t.cspace_root & !1);
    graph.name(node, 102, t.scheduling);
    graph.name(node, 103, t.base.context);
    graph.name(node, 104, t.bound_reply);
    graph.name(node, 105, t.other_reply);
    if state == 3 {
        graph.name(node, 106, t.receive_reply);
        graph.name(node, 107, t.fast_reply);
    }
    graph.name(node, 108, t.notification);
    graph.name(node, 109, t.served);
    if t.queued || state == 3 || state == 5 || state == 2 {
        graph.name(node, 110, t.next);
        graph.name(node, 111, t.previous);
    }
    graph.name(node, 112, t.membership.account);
}

fn context(graph: &mut Graph<'_>, k: &mut Kernel<Host>, node: usize, context: Ref<SchedulingContext>) {
    let now = k.arch().time;
    let c = k.get(context);
    // The slice of a context that was never configured counts as one tick, even if the context has been bound since.
    let slice = if c.is_configured { c.slice } else { 1 };
    let head = [u64::from(c.priority), u64::from(c.ceiling), u64::from(c.is_used_up), slice];
    graph.colour(node, &head);
    graph.colour(node, &[c.consumed - c.accounted.min(c.consumed), c.budget.budget, c.budget.period]);
    for refill in c.budget.refills() {
        graph.colour(node, &[until(now, refill.time), refill.amount]);
    }
    graph.colour(node, &[due(now, &c.refill), c.consumed.wrapping_sub(c.charged)]);
    graph.name(node, 120, c.owner);
}

fn endpoint(graph: &mut Graph<'_>, k: &mut Kernel<Host>, node: usize, endpoint: Ref<Endpoint>) {
    // The number of helpers follows from the waiters.
    let Endpoint { head, tail, server: _, helpers: _ } = *k.get(endpoint);
    let server = queue::server(k, endpoint);
    graph.edge(node, 130 + (head as u64 & 1), head & !1);
    if head != 0 {
        graph.edge(node, 132, tail);
    }
    graph.name(node, 133, server);
    // For senders, the order of their arrival.
    let arrivals: Vec<(usize, u64)> = graph
        .threads
        .iter()
        .filter_map(|node| {
            // SAFETY: the address of a live thread.
            let thread = unsafe { Ref::<Thread>::at(graph.addresses[*node]) }?;
            let t = k.get(thread);
            (t.state == ThreadState::Sending(endpoint)).then_some((*node, t.sending.key))
        })
        .collect();
    for (sender, key) in &arrivals {
        let before = arrivals.iter().filter(|(_, other)| other < key).count();
        graph.colour(*sender, &[before as u64]);
    }
}

fn reply(graph: &mut Graph<'_>, k: &mut Kernel<Host>, node: usize, reply: Ref<Reply>) {
    let Reply { caller, claimed, bound } = *k.get(reply);
    graph.colour(node, &[u64::from(bound)]);
    graph.name(node, 140, caller);
    graph.name(node, 141, claimed);
}

fn notification(graph: &mut Graph<'_>, k: &mut Kernel<Host>, node: usize, notification: Ref<Notification>) {
    let n = k.get(notification);
    graph.colour(node, &[n.word, u64::from(n.held), u64::from(n.first_interrupt)]);
    graph.name(node, 150, n.head);
    if n.head.is_some() {
        graph.name(node, 151, n.tail);
    }
    graph.name(node, 152, n.bound);
}

fn table(graph: &mut Graph<'_>, k: &mut Kernel<Host>, node: usize, table: Ref<PageTable>) {
    let t = k.get(table);
    let account = [u64::from(t.account.open), u64::from(t.account.suspended), u64::from(t.account.count)];
    graph.colour(node, &[u64::from(t.level), u64::from(t.used), u64::from(t.index), u64::from(t.cleared)]);
    graph.colour(node, &account);
    // What mappings without entries of their own show lies in the table alone.
    let entries = t.shadows.iter().zip(&t.entries).enumerate();
    for (index, (shadow, entry)) in entries.filter(|(_, (shadow, _))| is_scattered(**shadow)) {
        graph.colour(node, &[index as u64, u64::from(*shadow), *entry]);
    }
    graph.colour(node, &[u64::from(t.residents), t.account.time]);
    graph.edge(node, 160, t.parent);
    graph.name(node, 161, t.account.first);
}

/// Returns whether an entry with this shadow entry is set in a scattered mapping.
fn is_scattered(shadow: u32) -> bool {
    matches!(ShadowEntry::unpack(shadow), ShadowEntry::Scattered(_))
}

/// Adds to the graph what the kernel itself holds.
fn kernel(graph: &mut Graph<'_>, k: &mut Kernel<Host>) {
    let now = k.arch().time;
    let s = k.state();
    let (current, highest) = (s.current, s.highest_ready);
    let times = [until(now, s.slice_end), until(now, s.budget_end), u64::from(s.reschedule), highest as u64];
    let heads: Vec<usize> = s.ready.iter().filter_map(|queue| queue.head.map(Ref::address)).collect();
    for (address, label) in heads.into_iter().map(|head| (head, 170)).chain([(current.address(), 171)]) {
        if let Some(node) = graph.find(address) {
            graph.colour(node, &[label]);
        }
    }
    // The kernel's times affect every node, so they are mixed into each colour.
    let sum = mix_all(&times);
    graph.colours[2..].iter_mut().for_each(|colour| *colour = mix(*colour, sum));
}

/// Returns the live threads in `ours` that are not being deleted.
pub fn threads(k: &mut Kernel<Host>, ours: &Range<usize>) -> Vec<Ref<Thread>> {
    let caps = capabilities(k, ours);
    let mut threads: Vec<Ref<Thread>> = caps
        .iter()
        .filter(|(_, cap)| cap.kind == Kind::Thread && cap.flags & flag::ZOMBIE == 0)
        // SAFETY: a thread capability names a live thread object.
        .filter_map(|(_, cap)| unsafe { Ref::at(address_of(cap)) })
        .collect();
    threads.dedup();
    threads
}
