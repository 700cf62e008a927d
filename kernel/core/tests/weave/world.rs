//! The objects that the operations under test share, and the operations.
//!
//! ```text
//!   RAM_MEDIUM ─ pool (untyped, not zero)     shared objects, made of it as far as an operation needs them
//!              ├ thread A, thread B, …        the actors, in the driver's CSpace and address space
//!   RAM                                       most of the waiting threads, and of an account's members
//!   LARGE_DEVICE ─ device ─ frame             mapped into `TABLE`, 130 pages: three steps
//! ```
//! Sizes are such that each operation passes two to four preemption points, and all orders of two can be tried. The
//! operation that deletes the most, "revoke all", passes more than ten; so it leaves the objects in `RAM`.

use tench_abi::layout::{UNBIND, WATERMARK, slot};
use tench_abi::memory::MapFlags;
use tench_abi::object::Statistic;
use tench_abi::{Kind, Operation};
use tench_arch_host::Machine;
use tench_arch_host::machine::{ARCHIVE, LARGE_DEVICE, RAM, RAM_MEDIUM, at};
use tench_arch_host::memory::RAM_START;
use tench_arch_host::weave::Call;
use tench_kernel::object::Ref;
use tench_kernel::thread::Thread;

/// Parts of the world beyond the objects that always exist.
pub mod part {
    /// A node with contents.
    pub const NODE: u32 = 1;
    /// A thread whose bindings are the last capabilities to their objects.
    pub const THREAD: u32 = 2;
    /// A device frame, mapped in a table.
    pub const MAPPING: u32 = 4;
    /// An endpoint with copies and badges.
    pub const COPIES: u32 = 8;
    /// An endpoint with senders.
    pub const QUEUE: u32 = 16;
    /// A frame that contains instructions.
    pub const CODE: u32 = 32;
    /// An address space with an account of many threads, the actors among them.
    pub const ACCOUNT: u32 = 64;
    /// A waiter at the notification of the part [`THREAD`].
    pub const NOTIFIED: u32 = 128 | THREAD;
    /// A node for the shared objects, made of memory that no operation uses.
    pub const APART: u32 = 256;
    /// Senders at the fault endpoint of the part [`THREAD`].
    pub const FAULTS: u32 = 512 | THREAD;
    /// An untyped with exported capabilities between others that can be deleted.
    pub const EXPORTS: u32 = 1024;
    /// An exported copy of the frame of [`FRAMES`].
    pub const MARKED: u32 = 4096 | FRAMES;
    /// A frame with copies.
    pub const FRAMES: u32 = 8192;
    /// A node with an exported capability.
    pub const IN_NODE: u32 = 2048;
    /// A scattered mapping of the frame of [`MAPPING`], and an empty one in another table.
    pub const SCATTERED: u32 = 16384 | MAPPING;
}

/// Addresses of capabilities in the driver's CSpace.
pub mod slots {
    /// Untyped memory of which everything else is made.
    pub const POOL: u64 = 128;
    /// Untyped in the pool with five endpoints.
    pub const INNER: u64 = 129;
    /// The five endpoints.
    pub const INNER_ENDPOINTS: u64 = 130;
    /// Untyped memory of a device.
    pub const DEVICE: u64 = 135;
    /// The first MiB of the device.
    pub const FRAME: u64 = 136;
    /// Table of level 3.
    pub const TABLE: u64 = 137;
    /// The frame's first 130 pages in the table.
    pub const MAPPING: u64 = 138;
    /// Frame with instructions.
    pub const CODE: u64 = 139;
    /// Node of 256 slots.
    pub const NODE: u64 = 140;
    /// Thread that does not run.
    pub const THREAD: u64 = 141;
    /// Endpoint with copies.
    pub const ENDPOINT: u64 = 142;
    /// Endpoint with senders.
    pub const QUEUE: u64 = 143;
    /// Root table with an account.
    pub const ROOT: u64 = 144;
    /// Table of level 2.
    pub const UPPER: u64 = 145;
    /// Four untypeds with an endpoint each, followed by the endpoints.
    pub const SMALL: u64 = 146;
    /// The actors' threads.
    pub const ACTORS: u64 = 154;
    /// The actors' scheduling contexts.
    pub const TIMES: u64 = 157;
    /// Waiting threads: two senders, a waiter, and from the fifth on two senders at the fault endpoint.
    pub const WAITERS: u64 = 160;
    /// Scheduling contexts of the waiting threads, used one after the other.
    pub const WAITER_TIMES: u64 = 166;
    /// Notification and endpoint until they are bound.
    pub const BINDINGS: u64 = 172;
    /// 12 empty slots for new objects.
    pub const NEW: u64 = 176;
    /// Empty slot for mappings.
    pub const NEW_MAPPING: u64 = 196;
    /// Empty slots for copies.
    pub const NEW_COPY: u64 = 197;
    /// Copies and badges of the endpoint.
    pub const COPIES: u64 = 200;
    /// The shared objects, from [`POOL`] to [`UPPER`], if they lie apart.
    pub const APART: u64 = 4 * 256 + POOL;
    /// Empty slots that no operation under test uses: this one, and the next.
    pub const SPARE: u64 = 220;
    /// Frame with copies.
    pub const SHARED: u64 = 100;
    /// Copies of that frame.
    pub const SHARES: u64 = 101;
    /// Untyped with frames.
    pub const LENDER: u64 = 188;
    /// Five frames of that untyped. The second and the fourth are exported.
    pub const LENT: u64 = 189;
    /// Node with an exported capability.
    pub const KEEPER: u64 = 195;
    /// The node with the members of the account.
    pub const MEMBER_NODE: u64 = 218;
    /// Second table of level 3.
    pub const SECOND_TABLE: u64 = 120;
    /// Scattered mapping in the table.
    pub const SCATTERED: u64 = 121;
    /// Empty scattered mapping in the second table.
    pub const CLONE: u64 = 122;
    /// The members, in that node.
    pub const MEMBERS: u64 = 3 * 256;
}

use slots as p;

const CSPACE: u64 = at(slot::CSPACE);
const VSPACE: u64 = at(slot::VSPACE);
const KERNEL: u64 = at(slot::KERNEL);
/// Number of copies of the endpoint, and of the frame: enough for two preemption points.
const COPIES: u64 = 18;
/// Number of threads of the account besides the actors: enough for two preemption points. The first two lie where the
/// actors do.
const MEMBERS: u64 = 11;
/// Log2 of the pool's size.
const POOL_BITS: u64 = 18;
/// The pool's physical address: that of `RAM_MEDIUM`.
const POOL_ADDRESS: u64 = RAM_START + (4 << 20);
/// Number of pages of the mapping.
const PAGES: u64 = 130;

/// Value in the registers of a thread whose operation was forgotten.
pub const FORGOTTEN: u64 = 0xdead;

/// A function that makes a part.
type Maker = fn(&mut Machine);

/// The kernel and its objects, and the threads that will make calls.
pub struct World {
    pub machine: Machine,
    pub actors: Vec<Ref<Thread>>,
}

impl World {
    /// Returns a world with these parts and `actors` actors.
    pub fn new(parts: u32, actors: usize) -> World {
        let mut machine = Machine::new();
        let m = &mut machine;
        m.call(Operation::SchedulingConfigure, &[at(slot::SCHEDULING), 100, 255, 0]).ok();
        m.retype(RAM_MEDIUM, Kind::Untyped, POOL_BITS, 1, p::POOL).ok();
        soil(m);
        m.retype(p::POOL, Kind::Untyped, 12, 1, p::INNER).ok();
        m.retype(p::INNER, Kind::Endpoint, 0, 5, p::INNER_ENDPOINTS).ok();
        m.retype(p::POOL, Kind::Untyped, 8, 4, p::SMALL).ok();
        for i in 0..4 {
            m.retype(p::SMALL + i, Kind::Endpoint, 0, 1, p::SMALL + 4 + i).ok();
        }
        let makers: [(u32, Maker); 13] = [
            (part::NODE, make_node),
            (part::THREAD, make_thread),
            (part::MAPPING, make_mapping),
            (part::COPIES, make_copies),
            (part::QUEUE, make_queue),
            (part::CODE, make_code),
            (part::NOTIFIED & !part::THREAD, make_notified),
            (part::FAULTS & !part::THREAD, make_faults),
            (part::EXPORTS, make_exports),
            (part::FRAMES, make_frames),
            (part::MARKED & !part::FRAMES, make_marked),
            (part::IN_NODE, make_export_in_node),
            (part::SCATTERED & !part::MAPPING, make_scattered),
        ];
        for (part, make) in makers {
            if parts & part != 0 {
                make(m);
            }
        }
        let root = if parts & part::ACCOUNT != 0 { make_account(m) } else { VSPACE };
        // Register values of a thread that was made to forget its operation.
        let first = m.first;
        m.buffer(first).registers.x.fill(FORGOTTEN);
        let actors = (0..actors as u64).map(|i| make_actor(m, i, root)).collect();
        if parts & part::APART != 0 {
            put_apart(m);
        }
        World { machine, actors }
    }
}

/// Moves the shared objects to a node of their own in the driver's CSpace.
fn put_apart(m: &mut Machine) {
    m.retype(RAM_MEDIUM, Kind::CapNode, 8, 1, p::NEW).ok();
    m.call(Operation::NodeInstall, &[0, 4, p::NEW]).ok();
    for i in 0..=p::UPPER - p::POOL {
        m.call(Operation::Move, &[0, p::POOL + i, 0, p::APART + i]);
    }
}

/// Returns a call with the addresses that hold if the shared objects lie apart.
pub fn apart(mut call: Call) -> Call {
    let named: &[usize] = match call.operation {
        Operation::Delete | Operation::Revoke => &[1],
        Operation::FrameMap => &[0, 1],
        Operation::ThreadFaults => &[0, 2],
        _ => &[0],
    };
    for i in named {
        if (p::POOL..=p::UPPER).contains(&call.arguments[*i]) {
            call.arguments[*i] += p::APART - p::POOL;
        }
    }
    call
}

/// Fills the pool with words that are not zero.
fn soil(m: &mut Machine) {
    let start = m.cap(p::POOL).object as u64 - m.host().memory.base() as u64;
    m.host().memory.fill(start, 1 << POOL_BITS, |offset| 0x5a5a_0000_0000_a5a5 ^ offset);
}

/// Makes a node of 256 slots that holds the last capabilities to an endpoint, a notification, a reply object and a
/// thread.
fn make_node(m: &mut Machine) {
    m.retype(p::POOL, Kind::CapNode, 8, 1, p::NODE).ok();
    fill_node(m, p::NODE, &[Kind::Endpoint, Kind::Notification, Kind::Reply, Kind::Thread]);
}

/// Makes one object of each kind in a node, from its slot 0 on.
fn fill_node(m: &mut Machine, node: u64, kinds: &[Kind]) {
    m.call(Operation::NodeInstall, &[0, 2, node]).ok();
    for (i, kind) in kinds.iter().enumerate() {
        m.retype(p::POOL, *kind, 0, 1, 2 * 256 + i as u64).ok();
    }
    m.call(Operation::NodeRemove, &[0, 2, node]).ok();
}

/// Marks a thread's kernel stack as used down to here, in bytes from the stack's end.
fn use_stack(m: &mut Machine, thread: u64, down_to: u64) {
    let start = m.cap(thread).object as u64 - m.host().memory.base() as u64;
    m.host().memory.write(start + down_to, 1);
}

/// Makes a thread whose CSpace is a node that no other thread has.
fn make_thread(m: &mut Machine) {
    m.retype(p::POOL, Kind::Thread, 0, 1, p::THREAD).ok();
    use_stack(m, p::THREAD, 2504);
    m.retype(p::POOL, Kind::CapNode, 8, 1, p::BINDINGS).ok();
    fill_node(m, p::BINDINGS, &[Kind::Endpoint, Kind::Reply]);
    m.call(Operation::ThreadConfigure, &[p::THREAD, p::BINDINGS, VSPACE, 0, 0]).ok();
    m.call(Operation::Delete, &[0, p::BINDINGS]).ok();
}

/// Makes a frame of device memory, and maps its first pages in a table.
fn make_mapping(m: &mut Machine) {
    m.retype(LARGE_DEVICE, Kind::Untyped, 21, 1, p::DEVICE).ok();
    m.retype(p::DEVICE, Kind::Frame, 20, 1, p::FRAME).ok();
    m.retype(p::POOL, Kind::PageTable, 3, 1, p::TABLE).ok();
    m.retype(p::POOL, Kind::PageTable, 2, 1, p::UPPER).ok();
    let flags = (MapFlags::READ | MapFlags::WRITE).bits();
    m.call(Operation::FrameMap, &[p::FRAME, p::TABLE, 0, PAGES, 0, flags, p::MAPPING]).ok();
}

/// Makes two scattered mappings of the frame. The first has every third of the last entries of its table.
fn make_scattered(m: &mut Machine) {
    m.retype(p::POOL, Kind::PageTable, 3, 1, p::SECOND_TABLE).ok();
    m.call(Operation::FrameScatter, &[p::FRAME, p::TABLE, p::SCATTERED]).ok();
    m.call(Operation::FrameScatter, &[p::FRAME, p::SECOND_TABLE, p::CLONE]).ok();
    let flags = (MapFlags::READ | MapFlags::WRITE).bits();
    for page in 0..60 {
        m.call(Operation::MappingSet, &[p::SCATTERED, 512 - 3 * (page + 1), 1, page << 12, flags]).ok();
    }
}

/// Makes an endpoint with copies, every third with a badge.
fn make_copies(m: &mut Machine) {
    m.retype(p::POOL, Kind::Endpoint, 0, 1, p::ENDPOINT).ok();
    for i in 0..COPIES {
        let badge = if i % 3 == 0 { i + 1 } else { 0 };
        m.call(Operation::Mint, &[0, p::ENDPOINT, 0, p::COPIES + i, u64::MAX, badge]).ok();
    }
}

/// Makes frames, two of them exported.
fn make_exports(m: &mut Machine) {
    m.retype(p::POOL, Kind::Untyped, 15, 1, p::LENDER).ok();
    m.retype(p::LENDER, Kind::Frame, 12, 5, p::LENT).ok();
    for address in [p::LENT + 1, p::LENT + 3] {
        m.call(Operation::KernelExport, &[KERNEL, 0, address]).ok();
    }
}

/// Makes a frame with copies.
fn make_frames(m: &mut Machine) {
    m.retype(p::POOL, Kind::Frame, 12, 1, p::SHARED).ok();
    for i in 0..COPIES {
        m.call(Operation::Copy, &[0, p::SHARED, 0, p::SHARES + i]).ok();
    }
}

/// Exports a copy of the frame.
fn make_marked(m: &mut Machine) {
    m.call(Operation::KernelExport, &[KERNEL, 0, p::SHARES + 4]).ok();
}

/// Makes a node of 256 slots that holds an exported frame, and an endpoint.
fn make_export_in_node(m: &mut Machine) {
    m.retype(p::POOL, Kind::CapNode, 8, 1, p::KEEPER).ok();
    m.call(Operation::NodeInstall, &[0, 2, p::KEEPER]).ok();
    m.retype(p::POOL, Kind::Frame, 12, 1, 2 * 256 + 9).ok();
    m.retype(p::POOL, Kind::Endpoint, 0, 1, 2 * 256 + 10).ok();
    m.call(Operation::KernelExport, &[KERNEL, 0, 2 * 256 + 9]).ok();
    m.call(Operation::NodeRemove, &[0, 2, p::KEEPER]).ok();
}

/// Makes an endpoint with two senders.
fn make_queue(m: &mut Machine) {
    m.retype(p::POOL, Kind::Endpoint, 0, 1, p::QUEUE).ok();
    for i in 0..2 {
        make_waiter(m, i, &Call::new(Operation::Send, &[p::QUEUE]));
    }
}

/// Makes a waiter at the thread's notification, to which there is no other capability.
fn make_notified(m: &mut Machine) {
    m.retype(p::POOL, Kind::Notification, 0, 1, p::BINDINGS).ok();
    make_waiter(m, 2, &Call::new(Operation::Receive, &[p::BINDINGS]));
    m.call(Operation::ThreadBind, &[p::THREAD, 0, 0, p::BINDINGS]).ok();
    m.call(Operation::Delete, &[0, p::BINDINGS]).ok();
}

/// Makes senders at the thread's fault endpoint, to which there is no other capability.
fn make_faults(m: &mut Machine) {
    m.retype(p::POOL, Kind::Endpoint, 0, 1, p::BINDINGS + 1).ok();
    for i in 0..2 {
        make_waiter(m, 4 + i, &Call::new(Operation::Send, &[p::BINDINGS + 1]));
    }
    m.call(Operation::ThreadFaults, &[p::THREAD, 0, p::BINDINGS + 1, 0, 0]).ok();
    m.call(Operation::Delete, &[0, p::BINDINGS + 1]).ok();
}

/// Makes a thread of low priority that makes a call and waits.
fn make_waiter(m: &mut Machine, i: u64, call: &Call) {
    let (address, time) = (p::WAITERS + i, p::WAITER_TIMES + i);
    let memory = if i == 0 { RAM_MEDIUM } else { RAM };
    let thread = make_running(m, memory, address, time, VSPACE, 50);
    let first = m.first;
    m.call_as(thread, call.operation, &call.arguments);
    assert!(m.waits(thread) && m.current() == first, "it waits");
}

/// Makes a ready thread in the driver's CSpace.
fn make_running(m: &mut Machine, memory: u64, address: u64, time: u64, root: u64, priority: u64) -> Ref<Thread> {
    m.retype(memory, Kind::Thread, 0, 1, address).ok();
    m.retype(memory, Kind::SchedulingContext, 0, 1, time).ok();
    m.call(Operation::SchedulingConfigure, &[time, priority, priority, 0]).ok();
    let frame = at(slot::IPC_BUFFER);
    m.call(Operation::ThreadConfigure, &[address, CSPACE, root, frame, 0]).ok();
    m.call(Operation::ThreadBind, &[address, time, 0, 0]).ok();
    m.call(Operation::ThreadResume, &[address]).ok();
    m.thread_at(address)
}

/// Makes sixteen pages to be mapped as instructions.
fn make_code(m: &mut Machine) {
    m.retype(ARCHIVE, Kind::Frame, 16, 1, p::CODE).ok();
}

/// Makes a root table with an account of many threads. Returns its address.
fn make_account(m: &mut Machine) -> u64 {
    m.retype(p::POOL, Kind::PageTable, 0, 1, p::ROOT).ok();
    m.call(Operation::AccountOpen, &[p::ROOT, KERNEL]).ok();
    m.retype(RAM, Kind::CapNode, 8, 1, p::MEMBER_NODE).ok();
    m.call(Operation::NodeInstall, &[0, 3, p::MEMBER_NODE]).ok();
    m.retype(RAM_MEDIUM, Kind::Thread, 0, 2, p::MEMBERS).ok();
    m.retype(RAM, Kind::Thread, 0, MEMBERS - 2, p::MEMBERS + 2).ok();
    for i in 0..MEMBERS {
        m.call(Operation::ThreadConfigure, &[p::MEMBERS + i, CSPACE, p::ROOT, 0, 0]).ok();
    }
    p::ROOT
}

/// Makes a thread that makes calls, of the driver's priority.
fn make_actor(m: &mut Machine, i: u64, root: u64) -> Ref<Thread> {
    let thread = make_running(m, RAM_MEDIUM, p::ACTORS + i, p::TIMES + i, root, 100);
    use_stack(m, p::ACTORS + i, 1504);
    thread
}

/// An operation under test.
#[derive(Clone, Copy)]
pub struct Subject {
    /// Name of the operation in the tables.
    pub name: &'static str,
    /// The parts of the world that it needs.
    pub parts: u32,
    /// The one of its calls that passes preemption points; `None` if none does.
    pub points: Option<Operation>,
    /// The calls, made by actor `i`; the other actor is [`other`]`(i)`.
    pub calls: fn(u64) -> Vec<Call>,
    /// Calls that have the effect that the operation leaves when it fails after its first preemption point.
    pub remains: Option<fn(u64) -> Vec<Call>>,
}

impl Subject {
    /// Returns the operation's remaining effect, as a subject of its own.
    pub fn remainder(&self) -> Option<Subject> {
        self.remains.map(|calls| Subject { calls, remains: None, ..*self })
    }
}

/// Returns the number of the other actor.
const fn other(i: u64) -> u64 {
    if i == 0 { 1 } else { 0 }
}

fn one(operation: Operation, arguments: &[u64]) -> Vec<Call> {
    vec![Call::new(operation, arguments)]
}

fn retype(from: u64, kind: Kind, size: u64, count: u64, placement: u64) -> Vec<Call> {
    one(Operation::UntypedRetype, &[from, kind as u64, size, count, placement, 0, p::NEW])
}

fn map(frame: u64, first: u64, count: u64, flags: MapFlags) -> Vec<Call> {
    let flags = (MapFlags::READ | flags).bits();
    one(Operation::FrameMap, &[frame, p::TABLE, first, count, 0, flags, p::NEW_MAPPING])
}

/// Returns calls with the effect of a retype that found the third slot taken: the objects from the fourth on, and the
/// watermark.
fn retype_rest(from: u64, kind: Kind, size: u64, count: u64, placement: u64) -> Vec<Call> {
    let mut calls = retype(from, kind, size, count, placement);
    calls.extend((0..3).map(|i| Call::new(Operation::Delete, &[0, p::NEW + i])));
    calls
}

/// Declares subjects.
macro_rules! subjects {
    (@) => { None };
    (@ $remains:expr) => { Some($remains) };
    ($($name:literal, $parts:expr, $points:expr, $calls:expr $(, or $remains:expr)?;)*) => {
        &[$(Subject {
            name: $name,
            parts: $parts,
            points: $points,
            calls: $calls,
            remains: subjects!(@ $($remains)?),
        }),*]
    };
}

use Operation as O;

/// Every operation that passes preemption points, in all the ways in which it does.
pub const WITH_PREEMPTION_POINTS: &[Subject] = subjects! {
    "retype 3 frames", 0, Some(O::UntypedRetype), |_| retype(p::POOL, Kind::Frame, 12, 3, WATERMARK),
        or |_| retype_rest(p::POOL, Kind::Frame, 12, 3, WATERMARK);
    "retype 12 endpoints", 0, Some(O::UntypedRetype), |_| retype(p::POOL, Kind::Endpoint, 0, 12, WATERMARK),
        or |_| retype_rest(p::POOL, Kind::Endpoint, 0, 12, WATERMARK);
    "retype 7 untypeds at an offset", 0, Some(O::UntypedRetype), |_| retype(p::POOL, Kind::Untyped, 12, 7, 0x2_c000),
        or |_| retype_rest(p::POOL, Kind::Untyped, 12, 7, 0x2_c000);
    "retype of the inner untyped", 0, Some(O::UntypedRetype), |_| retype(p::INNER, Kind::Notification, 0, 7, WATERMARK),
        or |_| retype_rest(p::INNER, Kind::Notification, 0, 7, WATERMARK);
    "children", 0, Some(O::UntypedChildren), |_| one(O::UntypedChildren, &[p::POOL]);
    "delete a mapped frame", part::MAPPING, Some(O::Delete), |_| one(O::Delete, &[0, p::FRAME]);
    "delete a mapping", part::MAPPING, Some(O::Delete), |_| one(O::Delete, &[0, p::MAPPING]);
    "delete a node", part::NODE, Some(O::Delete), |_| one(O::Delete, &[0, p::NODE]);
    "delete a thread", part::THREAD, Some(O::Delete), |_| one(O::Delete, &[0, p::THREAD]);
    "delete a table", part::MAPPING, Some(O::Delete), |_| one(O::Delete, &[0, p::TABLE]);
    "delete an endpoint", part::QUEUE, Some(O::Delete), |_| one(O::Delete, &[0, p::QUEUE]);
    "revoke the pool", 0, Some(O::Revoke), |_| one(O::Revoke, &[0, p::POOL]);
    "revoke the inner untyped", 0, Some(O::Revoke), |_| one(O::Revoke, &[0, p::INNER]);
    "revoke an endpoint", part::COPIES, Some(O::Revoke), |_| one(O::Revoke, &[0, p::ENDPOINT]);
    "revoke a mapped frame", part::MAPPING, Some(O::Revoke), |_| one(O::Revoke, &[0, p::FRAME]);
    "revoke a frame", part::FRAMES, Some(O::Revoke), |_| one(O::Revoke, &[0, p::SHARED]);
    "revoke past exported capabilities", part::EXPORTS, Some(O::Revoke), |_| one(O::Revoke, &[0, p::LENDER]);
    "revoke a frame past an exported copy", part::MARKED, Some(O::Revoke), |_| one(O::Revoke, &[0, p::SHARED]);
    "delete a node with an exported capability", part::IN_NODE, Some(O::Delete), |_| one(O::Delete, &[0, p::KEEPER]);
    "revoke all, both threads too", 0, Some(O::Revoke), |_| one(O::Revoke, &[0, RAM_MEDIUM]);
    "map", part::MAPPING, Some(O::FrameMap), |_| map(p::FRAME, 200, PAGES, MapFlags::WRITE);
    "map instructions", part::MAPPING | part::CODE, Some(O::FrameMap), |_| map(p::CODE, 320, 8, MapFlags::EXECUTE);
    "protect", part::MAPPING, Some(O::MappingProtect), |_| one(O::MappingProtect, &[p::MAPPING, MapFlags::READ.bits()]);
    "protect, uncached", part::MAPPING, Some(O::MappingProtect),
        |_| one(O::MappingProtect, &[p::MAPPING, (MapFlags::READ | MapFlags::UNCACHED).bits()]);
    "delete a scattered mapping", part::SCATTERED, Some(O::Delete), |_| one(O::Delete, &[0, p::SCATTERED]);
    "clone a scattered mapping", part::SCATTERED, Some(O::MappingClone),
        |_| one(O::MappingClone, &[p::SCATTERED, p::CLONE, 320, 192, MapFlags::READ.bits(), 1]);
    "ask an account", part::ACCOUNT, Some(O::AccountQuery), |_| one(O::AccountQuery, &[p::ROOT]);
    "suspend an account", part::ACCOUNT, Some(O::AccountSuspend), |_| one(O::AccountSuspend, &[p::ROOT, 1]);
    "let an account go on", part::ACCOUNT, Some(O::AccountSuspend), |_| one(O::AccountSuspend, &[p::ROOT, 0]);
    "configure a thread", part::THREAD, Some(O::ThreadConfigure),
        |_| one(O::ThreadConfigure, &[p::THREAD, CSPACE, VSPACE, 0, 0]);
    "unbind a notification", part::NOTIFIED, Some(O::ThreadBind), |_| one(O::ThreadBind, &[p::THREAD, 0, 0, UNBIND]);
    "direct faults elsewhere", part::FAULTS, Some(O::ThreadFaults),
        |_| one(O::ThreadFaults, &[p::THREAD, 0, p::INNER_ENDPOINTS, 0x1000, 0]),
        or |_| one(O::ThreadFaults, &[p::THREAD, 0, 0, 0, 0]);
    "ask a thread", part::THREAD, Some(O::ThreadQuery), |_| one(O::ThreadQuery, &[p::THREAD]);
    "ask for the deepest stack", 0, Some(O::KernelQuery),
        |_| one(O::KernelQuery, &[KERNEL, Statistic::DeepestStack as u64]);
    "print", 0, Some(O::KernelPrint), |_| one(O::KernelPrint, &[KERNEL, 40]);
};

/// Operations that pass no preemption point, and some calls one after the other.
pub const WITHOUT_PREEMPTION_POINTS: &[Subject] = subjects! {
    "retype a frame", 0, None, |_| retype(p::POOL, Kind::Frame, 12, 1, WATERMARK);
    "take a slot", 0, None, |_| one(O::Copy, &[0, p::INNER_ENDPOINTS, 0, p::NEW + 2]);
    "take the mapping's slot", 0, None, |_| one(O::Copy, &[0, p::INNER_ENDPOINTS, 0, p::NEW_MAPPING]);
    "move the pool", 0, None, |_| one(O::Move, &[0, p::POOL, 0, p::NEW_COPY]);
    "split the inner untyped", 0, None, |_| one(O::UntypedSplit, &[p::INNER, 0, p::NEW_COPY]);
    "split the pool", 0, None, |_| one(O::UntypedSplit, &[p::POOL, 0, p::NEW_COPY]);
    "delete an endpoint", 0, None, |_| one(O::Delete, &[0, p::INNER_ENDPOINTS + 1]);
    "delete the pool's capability", 0, None, |_| one(O::Delete, &[0, p::POOL]);
    "delete the inner untyped's capability", 0, None, |_| one(O::Delete, &[0, p::INNER]);
    "copy an endpoint", part::COPIES, None, |_| one(O::Copy, &[0, p::ENDPOINT, 0, p::NEW_COPY]);
    "mint", part::COPIES, None, |_| one(O::Mint, &[0, p::COPIES + 1, 0, p::NEW_COPY, u64::MAX, 99]);
    "move the endpoint", part::COPIES, None, |_| one(O::Move, &[0, p::ENDPOINT, 0, p::NEW_COPY]);
    "export the frame", part::FRAMES, None, |_| one(O::KernelExport, &[KERNEL, 0, p::SHARED]);
    "export a copy", part::FRAMES, None, |_| one(O::KernelExport, &[KERNEL, 0, p::SHARES + 1]);
    "export the code", part::CODE, None, |_| one(O::KernelExport, &[KERNEL, 0, p::CODE]);
    "lend some of the pool", 0, None, |_| vec![
        Call::new(O::UntypedRetype, &[p::POOL, Kind::Untyped as u64, 12, 1, 0x3_8000, 0, p::NEW_COPY]),
        Call::new(O::KernelExport, &[KERNEL, 0, p::NEW_COPY])];
    "lend some of the pool and borrow a page back", 0, None, |_| vec![
        Call::new(O::UntypedRetype, &[p::POOL, Kind::Untyped as u64, 13, 1, 0x3_8000, 0, p::NEW_COPY]),
        Call::new(O::KernelExport, &[KERNEL, 0, p::NEW_COPY]),
        Call::new(O::KernelImport, &[KERNEL, Kind::Frame as u64, POOL_ADDRESS + 0x3_8000, 12, 15, 0, p::NEW + 2])];
    "borrow a frame", 0, None, |_| one(O::KernelImport,
        &[KERNEL, Kind::Frame as u64, RAM_START + (12 << 20), 12, 15, 0, p::NEW + 2]);
    "take a mark away", part::EXPORTS, None, |_| one(O::KernelUnexport, &[KERNEL, 0, p::LENT + 1]);
    "export a frame in front", part::EXPORTS, None, |_| one(O::KernelExport, &[KERNEL, 0, p::LENT]);
    "export a frame behind", part::EXPORTS, None, |_| one(O::KernelExport, &[KERNEL, 0, p::LENT + 4]);
    "delete an exported capability", part::EXPORTS, None, |_| one(O::Delete, &[0, p::LENT + 1]);
    "revoke an exported capability", part::EXPORTS, None, |_| one(O::Revoke, &[0, p::LENT + 3]);
    "take the mark in the node away", part::IN_NODE, None, |_| vec![
        Call::new(O::NodeInstall, &[0, 1, p::KEEPER]), Call::new(O::KernelUnexport, &[KERNEL, 0, 256 + 9])];
    "take a copy's mark away", part::MARKED, None, |_| one(O::KernelUnexport, &[KERNEL, 0, p::SHARES + 4]);
    "who has the frame", part::MARKED, None, |_| one(O::KernelHolders, &[KERNEL, 0, p::SHARED]);
    "who has a badge", part::COPIES, None, |_| one(O::KernelHolders, &[KERNEL, 0, p::COPIES + 6]);
    "copy the frame", part::MAPPING, None, |_| one(O::Copy, &[0, p::FRAME, 0, p::NEW_COPY]);
    "move the frame", part::MAPPING, None, |_| one(O::Move, &[0, p::FRAME, 0, p::NEW_COPY]);
    "move the mapping", part::MAPPING, None, |_| one(O::Move, &[0, p::MAPPING, 0, p::NEW_COPY]);
    "move the new mapping", part::MAPPING, None, |_| one(O::Move, &[0, p::NEW_MAPPING, 0, p::NEW_COPY]);
    "set a page in the middle", part::SCATTERED, None, |_| one(O::MappingSet,
        &[p::SCATTERED, 360, 1, 0, MapFlags::READ.bits()]);
    "move the scattered mapping", part::SCATTERED, None, |_| one(O::Move, &[0, p::SCATTERED, 0, p::NEW_COPY]);
    "map one page in the middle", part::MAPPING, None, |_| one(O::FrameMap,
        &[p::FRAME, p::TABLE, 300, 1, 0, MapFlags::READ.bits(), p::NEW_COPY]);
    "unmap", part::MAPPING, None, |_| vec![
        Call::new(O::PageTableMap, &[p::TABLE, p::UPPER, 7]), Call::new(O::PageTableUnmap, &[p::TABLE])];
    "copy the node", part::NODE, None, |_| one(O::Copy, &[0, p::NODE, 0, p::NEW_COPY]);
    "move the node", part::NODE, None, |_| one(O::Move, &[0, p::NODE, 0, p::NEW_COPY]);
    "install the node", part::NODE, None, |_| one(O::NodeInstall, &[0, 1, p::NODE]);
    "receive from the senders", part::QUEUE, None, |_| one(O::TryReceive, &[p::QUEUE]);
    "resume the thread", part::THREAD, None, |_| one(O::ThreadResume, &[p::THREAD]);
    "bind time to the thread", part::THREAD, None, |i| one(O::ThreadBind, &[p::THREAD, p::TIMES + i, 0, 0]);
    "delete the other's thread", 0, None, |i| one(O::Delete, &[0, p::ACTORS + other(i)]);
    "delete the own thread", 0, None, |i| one(O::Delete, &[0, p::ACTORS + i]);
    "suspend the other", 0, None, |i| one(O::ThreadSuspend, &[p::ACTORS + other(i)]);
    "suspend the other for a while", 0, None, |i| vec![
        Call::new(O::ThreadSuspend, &[p::ACTORS + other(i)]), Call::new(O::ThreadResume, &[p::ACTORS + other(i)])];
    "make the other forget", 0, None, |i| vec![
        Call::new(O::ThreadSuspend, &[p::ACTORS + other(i)]), Call::new(O::ThreadWriteRegisters, &[p::ACTORS + other(i), 1])];
    "suspend itself", 0, None, |i| one(O::ThreadSuspend, &[p::ACTORS + i]);
};
