//! The small universe: two address spaces, three threads, two endpoints, a notification, two scheduling contexts, a
//! reply object, a frame, an untyped, and one CSpace in which all of them lie.
//!
//! ```text
//!   T0 ── S0, 100 ── space A0                    T2 ── no context of its own ── space A0
//!   T1 ── S1, 100 ── space A1, has an account         └─ waits at E0 to receive
//! ```
//! T0 and T1 can run. T2 runs on its callers' scheduling contexts, so contexts are donated from the first call on.

use std::ops::Range;

use tench_abi::layout::slot;
use tench_abi::message::{IPC_BUFFER_SIZE, MAX_CAPS};
use tench_abi::object::SLOT_SIZE;
use tench_abi::{Kind, Operation};
use tench_arch_host::image::Regions;
use tench_arch_host::machine::at;
use tench_arch_host::{Machine, canonical};
use tench_kernel::thread::{OBJECT_SIZE, THREAD_OFFSET, Thread};
use tench_kernel::{Cap, Ref};

/// Slots in which the capabilities lie at first.
pub mod slots {
    /// Untyped memory of 16 KiB.
    pub const UNTYPED: u64 = 1;
    /// The node in which all of these slots lie.
    pub const NODE: u64 = 2;
    /// Address spaces.
    pub const SPACES: [u64; 2] = [3, 4];
    /// Threads.
    pub const THREADS: [u64; 3] = [5, 6, 7];
    /// Endpoints. (The second is sent along with messages.)
    pub const ENDPOINTS: [u64; 2] = [8, 9];
    /// The notification.
    pub const NOTIFICATION: u64 = 10;
    /// Scheduling contexts.
    pub const CONTEXTS: [u64; 2] = [11, 12];
    /// A reply object that is bound to no thread.
    pub const REPLY: u64 = 13;
    /// The frame with the IPC buffers.
    pub const FRAME: u64 = 14;
    /// The root of the CSpace.
    pub const ROOT: u64 = 15;
    /// Slot for received capabilities.
    pub const RECEIVED: u64 = 16;
    /// One more than the last slot; two more than the last that is empty.
    pub const END: u64 = 19;
    /// The capability that is sent along with messages.
    pub const SENT: u64 = ENDPOINTS[1];
}

/// Log2 of the untyped's size in bytes.
const UNTYPED_BITS: u64 = 14;

/// A machine with the small universe in it.
pub struct Universe {
    /// The machine.
    pub machine: Machine,
    /// The memory that images contain.
    pub regions: Regions,
    /// Addresses of all its objects.
    pub ours: Range<usize>,
    /// Addresses of its untyped.
    untyped: Range<usize>,
    /// Address of the first slot of its node.
    node: usize,
}

impl Universe {
    /// Makes the universe.
    pub fn new() -> Universe {
        let mut m = Machine::new();
        // All objects of the universe lie behind this one, which is not part of it.
        let _first = m.make(Kind::Endpoint, 0);
        let root = m.make(Kind::CapNode, 1);
        let start = m.cap(root).object;
        let node = m.make(Kind::CapNode, 8);
        let spaces = [0; 2].map(|level| m.make(Kind::PageTable, level));
        let threads = [0; 3].map(|size| m.make(Kind::Thread, size));
        let endpoints = [0; 2].map(|size| m.make(Kind::Endpoint, size));
        let notification = m.make(Kind::Notification, 0);
        let contexts = [0; 2].map(|size| m.make(Kind::SchedulingContext, size));
        let replies = [0; 4].map(|size| m.make(Kind::Reply, size));
        let frame = m.make(Kind::Frame, 12);
        let untyped = m.make(Kind::Untyped, UNTYPED_BITS);
        let objects: Vec<Cap> = (root..=untyped).map(|address| m.cap(address)).collect();

        let named = m.take_free();
        m.call(Operation::Copy, &[0, node, 0, named]).ok();
        m.call(Operation::NodeInstall, &[root, 0, named]).ok();
        m.call(Operation::AccountOpen, &[spaces[1], at(slot::KERNEL)]).ok();
        for context in contexts {
            m.call(Operation::SchedulingConfigure, &[context, 100, 200, 0]).ok();
        }
        // The last thread begins with the context of the first, so that it can wait.
        for (i, thread) in threads.into_iter().enumerate() {
            let (space, offset) = (spaces[i % 2], (i * IPC_BUFFER_SIZE) as u64);
            m.call(Operation::ThreadConfigure, &[thread, root, space, frame, offset]).ok();
            m.call(Operation::ThreadBind, &[thread, if i == 2 { contexts[0] } else { 0 }, replies[i], 0]).ok();
            let thread = m.thread_at(thread);
            let buffer = m.buffer(thread);
            buffer.send_caps[..1].fill(slots::SENT as u32);
            buffer.receive_slots = [0; MAX_CAPS];
            buffer.receive_slots[0] = slots::RECEIVED as u32;
        }
        let mut moved = vec![(untyped, slots::UNTYPED), (node, slots::NODE), (notification, slots::NOTIFICATION)];
        moved.extend(spaces.into_iter().zip(slots::SPACES));
        moved.extend(endpoints.into_iter().zip(slots::ENDPOINTS));
        moved.extend([(replies[3], slots::REPLY), (frame, slots::FRAME)]);
        for (from, to) in moved {
            m.call(Operation::Move, &[0, from, root, to]).ok();
        }
        for reply in &replies[..3] {
            m.call(Operation::Delete, &[0, *reply]).ok();
        }
        let (first, last) = (m.first, m.thread_at(threads[2]));
        m.call(Operation::ThreadResume, &[threads[2]]).ok();
        m.run(last);
        m.call(Operation::Receive, &[slots::ENDPOINTS[0]]);
        m.run(first);
        m.call(Operation::ThreadBind, &[threads[2], u64::MAX]).ok();
        for i in 0..2 {
            m.call(Operation::ThreadBind, &[threads[i], contexts[i]]).ok();
            m.call(Operation::ThreadResume, &[threads[i]]).ok();
        }
        for (from, to) in threads.into_iter().zip(slots::THREADS).chain(contexts.into_iter().zip(slots::CONTEXTS)) {
            m.call(Operation::Move, &[0, from, root, to]).ok();
        }
        m.call(Operation::Move, &[0, root, root, slots::ROOT]).ok();
        m.call(Operation::ThreadSuspend, &[at(slot::THREAD)]);
        m.check();
        Universe::with(m, start, &objects)
    }

    /// Finds the memory that belongs to the universe.
    fn with(mut m: Machine, start: usize, objects: &[Cap]) -> Universe {
        let mut ranges = Vec::new();
        let (mut node, mut untyped) = (0, 0..0);
        for cap in objects {
            ranges.push(match cap.kind {
                Kind::Thread => cap.object + THREAD_OFFSET..cap.object + OBJECT_SIZE,
                Kind::CapNode if cap.slots() > 2 => {
                    node = cap.object;
                    node..node + slots::END as usize * SLOT_SIZE
                }
                _ => cap.object..cap.object + cap.size(),
            });
            if cap.kind == Kind::Untyped {
                untyped = cap.object..cap.object + cap.size();
            }
        }
        let end = untyped.end;
        // The derivation tree includes the first process's slots, too.
        for (slot, _) in tench_arch_host::check::Inventory::take(m.kernel()).expect("checked above").slots {
            let address = m.host().memory.base() + ((slot.number() as usize) << 6);
            ranges.push(address..address + SLOT_SIZE);
        }
        let (first, idle) = (m.first.address(), m.kernel().state().idle.address());
        ranges.extend([first, idle].map(|thread| thread..thread + size_of::<Thread>()));
        let regions = Regions::new(&mut m, ranges);
        Universe { machine: m, regions, ours: start..end, untyped, node }
    }

    /// Returns the state's number; see [`canonical`].
    pub fn number(&mut self) -> u64 {
        let (node, end) = (self.node, self.node + slots::END as usize * SLOT_SIZE);
        // The slots of the sent and the received capability are used by their addresses.
        let fixed = |slot: usize| {
            let index = ((slot.wrapping_sub(node)) / SLOT_SIZE) as u64;
            ((node..end).contains(&slot) && [slots::SENT, slots::RECEIVED].contains(&index)).then_some(index)
        };
        canonical::canonical(self.machine.kernel(), &self.ours, &self.untyped, fixed)
    }

    /// Returns the capabilities in the slots, by address, while the node is alive.
    pub fn slots(&mut self) -> Vec<(u64, Cap)> {
        let (node, k) = (self.node, self.machine.kernel());
        let slot =
            |address: u64| k.slot_at(node + address as usize * SLOT_SIZE).map(|slot| (address, k.slot(slot).cap));
        (1..slots::END).filter_map(slot).collect()
    }

    /// Returns the threads that can make a call now: the runnable ones of the highest priority.
    pub fn callers(&mut self) -> Vec<Ref<Thread>> {
        let mut threads = canonical::threads(self.machine.kernel(), &self.ours);
        let k = self.machine.kernel();
        let mut priority = |thread: Ref<Thread>| {
            if tench_kernel::scheduler::runnable(k, thread) { k.get(thread).priority } else { -1 }
        };
        let highest = threads.iter().map(|thread| priority(*thread)).max().unwrap_or(-1);
        threads.retain(|thread| highest >= 0 && priority(*thread) == highest);
        threads
    }

    /// Forgets operations that are suspended in the kernel, as after their threads' registers were written.
    pub fn forget_suspended(&mut self) {
        if self.machine.suspended() > 0 {
            self.machine.forget_suspended();
            for thread in canonical::threads(self.machine.kernel(), &self.ours) {
                self.machine.thread(thread).kernel_stack_pointer = 0;
            }
        }
    }
}

impl Default for Universe {
    fn default() -> Self {
        Self::new()
    }
}
