//! A kernel's state as a number that is equal for states that are equal up to renaming: that differ in where objects
//! and capabilities lie, and in nothing that a program could tell or a later call depends on.
//!
//! The state is read as a graph. Objects and capabilities are its nodes, whatever names one of them from another is an
//! edge. Each node has a colour: at first what it holds besides names, then, round by round, its colour and those of
//! its neighbours by edge. After [`ROUNDS`] the sum over all nodes is the answer. A name of what does not live is an
//! edge to nothing, with a colour of its own.
//!
//! What is left out: registers and memory of programs (but for the tags of messages under way, and whether a receiver's
//! deadline is to be its alarm), statistics, identifiers, the shape of the derivation tree, and all that lies outside
//! of the memory in question. Two states that differ and cannot be told by the colours would be merged; for so few
//! objects of a kind as there are in a small universe that takes a collision of 64 bits.

use std::mem::offset_of;
use std::ops::Range;

use tench_abi::object::{REPLY_BITS, SLOT_SIZE};
use tench_abi::{Kind, Tag};
use tench_kernel::endpoint::queue;
use tench_kernel::heap::Node;
use tench_kernel::kernel::NEVER;
use tench_kernel::object::{Endpoint, Notification, PageTable, Ref, Reply, SchedulingContext};
use tench_kernel::slot::flag;
use tench_kernel::thread::{BINDINGS, THREAD_OFFSET, Thread, ThreadState, slow};
use tench_kernel::{Cap, Kernel, SlotRef, derivation};

use crate::host::Host;

/// Rounds of colouring: more than any two nodes are apart that matter to each other.
const ROUNDS: usize = 5;
/// The colour of what does not live.
const NOTHING: u64 = 0x5bd1_e995_9d1f_3a77;
/// The colour of what lies outside.
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
const GRANULE: u32 = REPLY_BITS;

/// A name that one node has for another. Both are places in the list of colours.
struct Edge {
    from: usize,
    to: usize,
    label: u64,
}

/// The graph. The first two colours belong to no node: they are those of [`NOTHING`] and [`OUTSIDE`].
struct Graph<'a> {
    ours: &'a Range<usize>,
    /// Slots are at their own addresses, threads at that of the `Thread`, all else at that of the object.
    addresses: Vec<usize>,
    colours: Vec<u64>,
    /// For each granule of `ours` the place of the node there; 0: there is none.
    places: Vec<u16>,
    /// Places of threads.
    threads: Vec<usize>,
    edges: Vec<Edge>,
}

impl<'a> Graph<'a> {
    /// A graph without nodes.
    fn new(ours: &'a Range<usize>) -> Graph<'a> {
        Graph {
            ours,
            addresses: vec![0; 2],
            colours: vec![NOTHING, OUTSIDE],
            places: vec![0; (ours.len() >> GRANULE) + 1],
            threads: Vec::new(),
            edges: Vec::with_capacity(256),
        }
    }

    /// The place of the node at an address, which is made if there was none.
    fn node(&mut self, address: usize) -> usize {
        if let Some(place) = self.find(address) {
            return place;
        }
        let place = self.addresses.len();
        self.addresses.push(address);
        self.colours.push(0);
        if self.ours.contains(&address) {
            let granule = &mut self.places[(address - self.ours.start) >> GRANULE];
            assert_eq!(*granule, 0, "two nodes in one granule at {address:#x}");
            *granule = u16::try_from(place).expect("a small universe has few nodes");
        }
        place
    }

    /// The place of a node. Those outside of `ours`, slots of others, are few.
    fn find(&self, address: usize) -> Option<usize> {
        if self.ours.contains(&address) {
            let place = usize::from(self.places[(address - self.ours.start) >> GRANULE]);
            return (place != 0 && self.addresses[place] == address).then_some(place);
        }
        let is_it = |other: &&usize| **other == address;
        self.outside().find(|(_, other)| is_it(other)).map(|(place, _)| place)
    }

    /// The nodes outside of `ours`.
    fn outside(&self) -> impl Iterator<Item = (usize, &usize)> {
        self.addresses.iter().enumerate().skip(2).filter(|(_, address)| !self.ours.contains(address))
    }

    /// Adds what a node holds besides names.
    fn colour(&mut self, node: usize, words: &[u64]) {
        self.colours[node] = mix(self.colours[node], mix_all(words));
    }

    /// Adds a name. 0 names nothing.
    fn edge(&mut self, from: usize, label: u64, address: usize) {
        if address != 0 {
            let nothing = usize::from(!self.ours.contains(&address));
            let to = self.find(address).unwrap_or(nothing);
            self.edges.push(Edge { from, to, label });
        }
    }

    /// Adds the name of an object.
    fn name<T>(&mut self, from: usize, label: u64, object: Option<Ref<T>>) {
        self.edge(from, label, object.map_or(0, Ref::address));
    }

    /// Colours until nothing is to be told any more.
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

/// The address by which an object is known here.
fn address_of(cap: &Cap) -> usize {
    if cap.kind == Kind::Thread { cap.object + THREAD_OFFSET } else { cap.object }
}

/// Whether an object has a node; the others are told by their capabilities.
fn has_node(cap: &Cap) -> bool {
    !matches!(cap.kind, Kind::Untyped | Kind::Mapping | Kind::Null)
}

/// All capabilities that lie in `ours` or stand for something there, in the order of the derivation tree.
pub fn capabilities(k: &mut Kernel<Host>, ours: &Range<usize>) -> Vec<(SlotRef, Cap)> {
    let mut found = Vec::with_capacity(64);
    // Objects lie in the order of their addresses, so what is ours is the tree's end, in which the list is walked
    // backwards.
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

/// The number of a state. Only objects in `ours` count. `fixed` says of a slot's address whether it can be told from
/// others, and as what; objects that lie in `placed` can be told by where.
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

/// What a capability is besides its object.
fn capability(graph: &mut Graph<'_>, node: usize, cap: &Cap, placed: &Range<usize>, base: usize) {
    let head = u64::from(cap.kind as u8) | u64::from(cap.rights) << 8 | u64::from(cap.size_bits) << 16;
    let head = head | u64::from(cap.flags) << 24 | u64::from(cap.aux) << 32;
    let (mut badge, mut extra) = (cap.badge, cap.extra);
    match cap.kind {
        Kind::Mapping => {
            graph.edge(node, 1, badge as usize);
            badge = 0;
        }
        Kind::Untyped if derivation::is_reservation(cap) => badge = badge.wrapping_sub(base as u64),
        Kind::Untyped => {}
        Kind::CapNode if cap.flags & flag::ZOMBIE != 0 => extra = 1,
        _ => {}
    }
    graph.colour(node, &[head, badge, extra]);
    if has_node(cap) {
        graph.edge(node, 2, address_of(cap));
    } else if cap.kind == Kind::Mapping {
        graph.edge(node, 3, cap.object);
    } else if placed.contains(&cap.object) {
        graph.colour(node, &[(cap.object - placed.start) as u64]);
    }
}

/// What an object holds.
fn object(graph: &mut Graph<'_>, k: &mut Kernel<Host>, cap: &Cap, placed: &Range<usize>) {
    let Some(node) = graph.find(address_of(cap)) else { return };
    let place = if placed.contains(&cap.object) { (cap.object - placed.start) as u64 } else { u64::MAX };
    graph.colour(node, &[place]);
    /// The object of a capability.
    fn at<T>(cap: &Cap) -> Option<Ref<T>> {
        // SAFETY: a capability names a live object of its kind; each call says the type that goes with it.
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

/// A time, relative to now.
fn until(now: u64, time: u64) -> u64 {
    if time == NEVER { NEVER } else { time.wrapping_sub(now) }
}

/// When a node in a timer queue is due.
fn due(now: u64, node: &Node) -> u64 {
    if node.is_queued() { until(now, node.key) ^ u64::from(node.class) << 56 } else { NEVER }
}

/// The slots of a node or thread belong to it. Those of a root and of a thread can be told from each other.
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
    // How its message looks, if it is one, and what else a wait keeps in mind.
    let tag = t.registers.x[1];
    let message = match state {
        2 => [tag, t.badge, u64::from(t.may_grant), t.sending.key >> 48],
        // Whether the deadline is to be its alarm.
        3 if t.slow & slow::DEADLINE != 0 => [tag & Tag::ALARM, 0, 0, 0],
        _ => [0; 4],
    };
    let purpose = if sends || state == 4 { t.purpose as u64 + 1 } else { 0 };
    let flags = [t.queued, t.parked, t.aside, t.kernel_stack_pointer != 0, t.message_area != 0, t.sending.is_queued()];
    let flags = flags.into_iter().fold(0, |sum, flag| sum << 1 | u64::from(flag));
    let deadline = if t.slow & slow::DEADLINE != 0 { due(now, &t.timer) } else { NEVER };
    let offset = t.message_area as u64 & 0xfff;
    let entries = t.fault_targets.map(|target| target.entry);
    let standing = [
        t.priority as u64,
        u64::from(t.height),
        u64::from(t.depth),
        u64::from(t.slow),
        t.cap as u64,
        t.base.priority as u64,
    ];
    let rest = [state, purpose, flags, deadline, offset, t.slice_left, t.space_slots as u64, u64::from(t.base.slow)];
    graph.colour(node, &standing);
    graph.colour(node, &rest);
    graph.colour(node, &message);
    graph.colour(node, &entries);
    graph.edge(node, 100, partner);
    graph.edge(node, 101, t.space_root & !1);
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
    if t.queued || state == 3 || state == 5 || sends {
        graph.name(node, 110, t.next);
        graph.name(node, 111, t.previous);
    }
    graph.name(node, 112, t.membership.account);
    slots(graph, node, thread.address() + offset_of!(Thread, bindings), BINDINGS);
}

fn context(graph: &mut Graph<'_>, k: &mut Kernel<Host>, node: usize, context: Ref<SchedulingContext>) {
    let now = k.arch().time;
    let c = k.get(context);
    // What nobody has configured counts as a tick, whether it has been bound since or not.
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
    // How many help follows from who waits.
    let Endpoint { head, tail, server: _, helpers: _ } = *k.get(endpoint);
    let server = queue::server(k, endpoint);
    graph.edge(node, 130 + (head as u64 & 1), head & !1);
    if head != 0 {
        graph.edge(node, 132, tail);
    }
    graph.name(node, 133, server);
    // Of senders, who comes before whom.
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
    graph.colour(node, &[u64::from(t.residents), t.account.time]);
    graph.edge(node, 160, t.parent);
    graph.name(node, 161, t.account.first);
}

/// What the kernel itself holds.
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
    // Everything is seen in their light.
    let sum = mix_all(&times);
    graph.colours[2..].iter_mut().for_each(|colour| *colour = mix(*colour, sum));
}

/// The living threads in `ours` that are not being deleted.
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
