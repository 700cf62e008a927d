//! A small world whose threads make random system calls: threads of several priorities, with and without IPC buffer,
//! in two address spaces and one CSpace, with handlers for their faults.
//!
//! The CSpace's node of 256 slots is entry 0 and entry 1 of its root, so that a capability can lie in slot 0: the
//! manager puts it at address 256.

use tench_abi::fault::Class;
use tench_abi::layout::slot;
use tench_abi::{Error, Kind, Operation, Rights};
use tench_arch_host::Machine;
use tench_arch_host::machine::at;
use tench_kernel::object::Ref;
use tench_kernel::scheduler;
use tench_kernel::thread::Thread;

/// Priorities of the threads.
const PRIORITIES: [u64; 7] = [20, 20, 30, 30, 40, 50, 60];
/// The thread without an IPC buffer.
const WITHOUT_BUFFER: usize = 3;
/// First of the slots into which threads receive capabilities.
pub const RECEIVE: u64 = 200;
/// Number of these slots.
pub const RECEIVE_SLOTS: u64 = 8;
/// First of the slots in which threads make capabilities. The first two hold exported ones, the next
/// two frames that are mapped.
pub const WORK: u64 = 210;
/// Number of these slots.
pub const WORK_SLOTS: u64 = 12;

/// The capability in slot 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zero {
    Nothing,
    Endpoint,
    Notification,
    Reply,
}

/// A thread. Both capabilities are the manager's.
#[derive(Clone, Copy, Debug)]
pub struct Actor {
    pub thread: Ref<Thread>,
    pub capability: u64,
    pub time: u64,
}

/// The objects by kind, as the manager names them.
pub struct Objects {
    pub endpoints: [u64; 3],
    pub notifications: [u64; 3],
    pub replies: [u64; 4],
    /// The root of the threads' CSpace.
    pub root: u64,
}

/// Addresses in the threads' CSpace that a system call may name.
#[derive(Default)]
pub struct Addresses {
    /// Capabilities to endpoints with all rights to call.
    pub callable: Vec<u64>,
    /// Capabilities from which one can receive.
    pub receivable: Vec<u64>,
    /// Capabilities to notifications and doorbells that one can signal.
    pub signallable: Vec<u64>,
    /// Capabilities to reply objects.
    pub replies: Vec<u64>,
    /// Capabilities to frames, and to tables of pages.
    pub frames: Vec<u64>,
    pub tables: Vec<u64>,
    /// Scattered mappings.
    pub scattered: Vec<u64>,
    /// Capabilities to threads.
    pub threads: Vec<u64>,
    /// All of these, capabilities of other kinds and with fewer rights, and addresses without a capability.
    pub all: Vec<u64>,
}

pub struct World {
    pub machine: Machine,
    pub actors: Vec<Actor>,
    pub objects: Objects,
    pub addresses: Addresses,
    next: u64,
}

impl World {
    pub fn new(zero: Zero) -> World {
        let mut m = Machine::new();
        m.call(Operation::SchedulingConfigure, &[at(slot::SCHEDULING), 255, 255, 0]).ok();
        let root = m.make(Kind::CapNode, 2);
        let (node, copy) = (m.make(Kind::CapNode, 8), m.take_free());
        m.call(Operation::Copy, &[0, node, 0, copy]).ok();
        m.call(Operation::NodeInstall, &[root, 0, node]).ok();
        m.call(Operation::NodeInstall, &[root, 1, copy]).ok();
        let objects = Objects {
            endpoints: std::array::from_fn(|_| m.make(Kind::Endpoint, 0)),
            notifications: std::array::from_fn(|_| m.make(Kind::Notification, 0)),
            replies: std::array::from_fn(|_| m.make(Kind::Reply, 0)),
            root,
        };
        let mut world = World { machine: m, actors: Vec::new(), objects, addresses: Addresses::default(), next: 1 };
        world.capabilities();
        world.memory();
        world.put_at_0(zero);
        let spaces = [at(slot::VSPACE), world.machine.make(Kind::PageTable, 0)];
        for (i, priority) in PRIORITIES.into_iter().enumerate() {
            world.actor(i, priority, spaces[i % 2]);
        }
        world.threads();
        world.bind();
        world.machine.call(Operation::ThreadSuspend, &[at(slot::THREAD)]);
        world.machine.check();
        world
    }

    /// Puts a copy of a capability of the manager's into the threads' CSpace. Returns its address there.
    fn put(&mut self, source: u64, rights: Rights, badge: u64) -> u64 {
        let address = self.next;
        self.next += 1;
        self.put_at(address, source, rights, badge);
        self.addresses.all.push(address);
        address
    }

    fn put_at(&mut self, address: u64, source: u64, rights: Rights, badge: u64) {
        let arguments = [0, source, self.objects.root, address, rights.bits().into(), badge];
        self.machine.call(Operation::Mint, &arguments).ok();
    }

    fn capabilities(&mut self) {
        let all = Rights::READ.union(Rights::WRITE).union(Rights::CALL).union(Rights::GRANT);
        let call = Rights::WRITE.union(Rights::CALL);
        for (i, endpoint) in (0..).zip(self.objects.endpoints) {
            let full = self.put(endpoint, all, 0);
            let (granting, calling) =
                (self.put(endpoint, call.union(Rights::GRANT), 16 + i), self.put(endpoint, call, 0));
            self.addresses.callable.extend([full, granting, granting, calling]);
            self.addresses.receivable.push(full);
        }
        // Most messages meet at the first endpoint.
        let first = [self.addresses.callable[1], self.addresses.receivable[0]];
        self.addresses.callable.extend([first[0]; 6]);
        self.addresses.receivable.extend([first[1]; 4]);
        for rights in [Rights::WRITE, Rights::READ, Rights::CALL, Rights::READ.union(Rights::CALL), Rights::GRANT] {
            self.put(self.objects.endpoints[0], rights, 0);
        }
        for (i, notification) in (0..).zip(self.objects.notifications) {
            let full = self.put(notification, all, 0);
            let badged = self.put(notification, Rights::WRITE, 6 << i);
            self.addresses.signallable.extend([full, badged]);
            self.addresses.receivable.push(full);
        }
        for rights in [Rights::READ, Rights::CALL] {
            self.put(self.objects.notifications[1], rights, 0);
        }
        for core in [0, 2] {
            let doorbell = self.machine.take_free();
            let control = at(slot::INTERRUPT_CONTROL);
            self.machine.call(Operation::InterruptDoorbell, &[control, core, 3, doorbell]).ok();
            let full = self.put(doorbell, all, 0);
            self.put(doorbell, Rights::READ, 0);
            self.addresses.signallable.push(full);
        }
        // Callers in the third are deferred; the fourth must not be used.
        for (reply, rights) in self.objects.replies.into_iter().zip([all, call, Rights::WRITE, Rights::READ]) {
            let reply = self.put(reply, rights, 0);
            self.addresses.replies.push(reply);
        }
        self.put(self.objects.replies[0], Rights::WRITE, 0);
        let frame = self.machine.make(Kind::Frame, 12);
        self.put(frame, all, 0);
        self.put(at(slot::THREAD), Rights::READ, 0);
        // An empty slot, an entry without a node, indices beyond the root, and slot 0 by both of its addresses.
        self.addresses.all.extend([190, 2 << 8, (3 << 8) + 1, 4 << 8, 1 << 16, 1 << 32, u64::MAX, 0, 0, 256]);
        let again: Vec<u64> = self.addresses.callable.iter().take(2).map(|address| address + 256).collect();
        self.addresses.all.extend(again);
    }

    /// Makes frames of several pages, tables of pages in an address space and outside of one, and scattered mappings.
    fn memory(&mut self) {
        let all = Rights::READ.union(Rights::WRITE).union(Rights::EXECUTE);
        let m = &mut self.machine;
        let frames = [m.make(Kind::Frame, 12), m.make(Kind::Frame, 14), m.make(Kind::Frame, 16)];
        let levels: [u64; 4] = std::array::from_fn(|level| m.make(Kind::PageTable, level as u64));
        (1..4).for_each(|level| _ = m.call(Operation::PageTableMap, &[levels[level], levels[level - 1], 3]).ok());
        let tables = [levels[3], m.make(Kind::PageTable, 3)];
        for (frame, table) in [(frames[1], tables[0]), (frames[2], tables[1])] {
            let mapping = m.take_free();
            m.call(Operation::FrameScatter, &[frame, table, mapping]).ok();
            m.call(Operation::Move, &[0, mapping, self.objects.root, self.next]).ok();
            self.addresses.scattered.push(self.next);
            self.addresses.all.push(self.next);
            self.next += 1;
        }
        for frame in frames {
            let (full, readable) = (self.put(frame, all, 0), self.put(frame, Rights::READ, 0));
            self.put(frame, Rights::WRITE, 0);
            self.addresses.frames.extend([full, full, readable]);
        }
        for table in tables {
            let full = self.put(table, Rights::READ.union(Rights::WRITE), 0);
            self.put(table, Rights::READ, 0);
            self.addresses.tables.push(full);
        }
        for place in [WORK, WORK + 1] {
            let (frame, root) = (self.machine.make(Kind::Frame, 12), self.objects.root);
            self.machine.call(Operation::Move, &[0, frame, root, place]).ok();
            self.machine.call(Operation::KernelExport, &[at(slot::KERNEL), root, place]).ok();
        }
        for place in [WORK + 2, WORK + 3] {
            let (frame, mapping, root) =
                (self.machine.make(Kind::Frame, 12), self.machine.take_free(), self.objects.root);
            let entry = 20 + place - WORK;
            self.machine.call(Operation::FrameMap, &[frame, tables[0], entry, 1, 0, 3, mapping]).ok();
            self.machine.call(Operation::Move, &[0, frame, root, place]).ok();
        }
        self.put(levels[2], Rights::READ.union(Rights::WRITE), 0);
        self.put(self.objects.root, Rights::READ.union(Rights::WRITE), 0);
    }

    fn put_at_0(&mut self, zero: Zero) {
        let all = Rights::READ.union(Rights::WRITE).union(Rights::CALL).union(Rights::GRANT);
        let (source, badge) = match zero {
            Zero::Nothing => return,
            Zero::Endpoint => (self.objects.endpoints[0], 99),
            Zero::Notification => (self.objects.notifications[1], 1 << 40),
            Zero::Reply => (self.objects.replies[0], 0),
        };
        assert_eq!(self.machine.call(Operation::Copy, &[0, source, self.objects.root, 0]).err(), Error::NoSuchSlot);
        self.put_at(256, source, all, badge);
    }

    /// Makes a thread that is ready.
    fn actor(&mut self, i: usize, priority: u64, space: u64) {
        let m = &mut self.machine;
        let (capability, time) = (m.make(Kind::Thread, 0), m.make(Kind::SchedulingContext, 0));
        let (reply, frame) = (m.make(Kind::Reply, 0), m.make(Kind::Frame, 12));
        let slice = if i == 1 || i == 2 { 40 } else { 0 };
        m.call(Operation::SchedulingConfigure, &[time, priority, priority, slice]).ok();
        let buffer = if i == WITHOUT_BUFFER { 0 } else { frame };
        m.call(Operation::ThreadConfigure, &[capability, self.objects.root, space, buffer, 0]).ok();
        m.call(Operation::ThreadBind, &[capability, time, reply, 0]).ok();
        m.call(Operation::ThreadResume, &[capability]).ok();
        let thread = m.thread_at(capability);
        m.thread(thread).registers.thread_pointer = 0x1000 + i as u64;
        self.actors.push(Actor { thread, capability, time });
        if i < 2 {
            let all = Rights::WRITE.union(Rights::CALL);
            self.put(reply, all, 0);
        }
    }

    /// Gives the threads capabilities to each other, and to a thread that cannot run.
    fn threads(&mut self) {
        let all = Rights::READ.union(Rights::WRITE);
        let unconfigured = self.machine.make(Kind::Thread, 0);
        let threads: Vec<u64> = self.actors.iter().map(|actor| actor.capability).chain([unconfigured]).collect();
        for thread in threads {
            let full = self.put(thread, all, 0);
            self.addresses.threads.push(full);
        }
        for rights in [Rights::READ, Rights::WRITE] {
            let limited = self.put(self.actors[0].capability, rights, 0);
            self.addresses.threads.push(limited);
        }
    }

    /// Binds notifications, an interrupt line and fault handlers, and declares a server.
    fn bind(&mut self) {
        let calling = Rights::WRITE.union(Rights::CALL);
        let handlers = self.objects.endpoints.map(|endpoint| {
            let (plain, badged) = (self.machine.take_free(), self.machine.take_free());
            let mint = |badge, to| [0, endpoint, 0, to, calling.bits().into(), badge];
            self.machine.call(Operation::Mint, &mint(0, plain)).ok();
            self.machine.call(Operation::Mint, &mint(77, badged)).ok();
            [plain, badged]
        });
        let m = &mut self.machine;
        for (i, actor) in self.actors.iter().enumerate() {
            for class in Class::ALL {
                let (handler, entry) = match (i + class as usize) % 5 {
                    0 => (0, 0),
                    1 => (handlers[1][0], 0),
                    2 => (0, 0x4000 + i as u64),
                    _ => (handlers[0][i % 2], 0),
                };
                m.call(Operation::ThreadFaults, &[actor.capability, class as u64, handler, entry, 0]).ok();
            }
        }
        m.call(Operation::ThreadBind, &[self.actors[5].capability, 0, 0, self.objects.notifications[0]]).ok();
        m.call(Operation::ThreadServe, &[self.actors[6].capability, self.objects.endpoints[0]]).ok();
        let line = m.take_free();
        m.call(Operation::InterruptGet, &[at(slot::INTERRUPT_CONTROL), 3, 2, line]).ok();
        m.call(Operation::InterruptBind, &[line, self.objects.notifications[2]]).ok();
    }

    /// Runs `work` as the manager, which is suspended otherwise.
    pub fn manage(&mut self, work: impl FnOnce(&mut Machine)) {
        let first = self.machine.first;
        scheduler::make_ready(self.machine.kernel(), first);
        self.machine.reschedule();
        assert!(self.machine.current() == first, "no thread has a higher priority");
        work(&mut self.machine);
        self.machine.call(Operation::ThreadSuspend, &[at(slot::THREAD)]);
    }
}
