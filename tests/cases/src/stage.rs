//! The resources of a case: memory, slots and objects for its exclusive use.

use alloc::format;

use tench::abi::layout::slot;
use tench::abi::object::{NODE_BITS, NODE_SLOTS};
use tench::mem::Mem;
use tench::memory::{self, Pages};
use tench::sys::cap::Object;
use tench::sys::ipc::BOUND_REPLY;
use tench::sys::{
    Cap, CapAddress, CapNode, Endpoint, Error, Identity, Instant, Kernel, Kind, Message, Notification, OWN_CSPACE,
    Placement, Reply, Rights, Untyped, Wait, raw,
};

use crate::case::{Case, Failure, Outcome};
use crate::worker::MAX_WORKERS;

/// Interrupt line of the real-time clock, which no server uses.
pub const RTC_LINE: u64 = 34;
/// Log2 of the bytes of a case's memory: room for a frame of 2 MiB beside everything else.
const POOL_BITS: u32 = 23;
/// Root index of the node with a case's slots: the user library fills the root from the front.
pub const NODE_INDEX: u32 = 62;
/// Root index of an empty entry.
pub const EMPTY_INDEX: u32 = 63;
/// Priority of the main thread (systems/tests.toml).
pub const PRIORITY: u64 = 120;
/// Priority of threads that run before the main thread.
pub const HIGH: u64 = 130;
/// Priority of threads that run when the main thread waits.
pub const LOW: u64 = 110;

/// The resources of a case.
pub struct Stage {
    /// All memory of the case.
    pub pool: Cap<Untyped>,
    /// Stacks and IPC buffers for workers.
    pub worker_memory: [(Pages, Pages); MAX_WORKERS],
    /// Number of workers of this case.
    pub workers: usize,
    next_slot: u32,
    /// An endpoint to which no thread sends.
    silence: Cap<Endpoint>,
}

impl Stage {
    /// Allocates the resources that all cases share.
    pub fn new() -> Outcome<Stage> {
        let node = memory::make::<CapNode>(u64::from(NODE_BITS))?.leak();
        let root = Cap::<CapNode>::new(slot::CSPACE);
        root.install_node(NODE_INDEX, node)?;
        let slot = memory::take_slot()?;
        let pool = Mem::STANDARD.allocate(POOL_BITS, slot)?.untyped;
        let mut worker_memory = [const { None }; MAX_WORKERS];
        for memory in &mut worker_memory {
            *memory = Some((Pages::with_guard(16384)?, Pages::new(4096)?));
        }
        let worker_memory = worker_memory.map(|memory| memory.unwrap_or_else(|| unreachable!("all of them were made")));
        let silence = memory::make::<Endpoint>(0)?.leak();
        Ok(Stage { pool, worker_memory, workers: 0, next_slot: 0, silence })
    }

    /// Runs a case, and takes back what it used.
    pub fn play(&mut self, case: &Case) -> Outcome {
        let outcome = (case.run)(self);
        let cleared = self.clear().and_then(|()| self.work_for_nobody());
        outcome.and(cleared)
    }

    /// Ends the requests that a case has received and not replied to. Otherwise the main thread would keep the priority
    /// of a caller that has gone until it receives again, and hostile clients at its own priority would keep it from
    /// running.
    fn work_for_nobody(&self) -> Outcome {
        // The caller may still be waiting.
        let _ = BOUND_REPLY.reply(&Message::new(0));
        equal!(self.silence.receive(Wait::until(Instant::from_ticks(0))).err(), Some(Error::TimedOut));
        Ok(())
    }

    /// Takes back everything that a case has made, and checks that all of it came back.
    pub fn clear(&mut self) -> Outcome {
        self.pool.revoke()?;
        let account = self.pool.query()?;
        if account.watermark != 0 {
            return Err(Failure::new(format!("{} bytes of memory did not come back", account.watermark)));
        }
        let mut left = None;
        for number in 0..NODE_SLOTS as u32 {
            let address = CapAddress::new(NODE_INDEX, number);
            let found = OWN_CSPACE.identify_at(address)?;
            if found.kind != Kind::Null {
                left = Some(found.kind);
                OWN_CSPACE.delete_at(address)?;
            }
        }
        self.next_slot = 0;
        self.workers = 0;
        match left {
            None => Ok(()),
            Some(kind) => Err(Failure::new(format!("a capability of kind {kind:?} was left behind"))),
        }
    }

    /// Returns an empty slot.
    pub fn slot(&mut self) -> CapAddress {
        self.slots(1)
    }

    /// Returns the first of `count` adjacent empty slots.
    pub fn slots(&mut self, count: u32) -> CapAddress {
        let first = self.next_slot;
        self.next_slot += count;
        assert!(self.next_slot <= NODE_SLOTS as u32, "a case has {NODE_SLOTS} slots");
        CapAddress::new(NODE_INDEX, first)
    }

    /// Returns the address behind the last slot of the case.
    pub const fn last_slot() -> CapAddress {
        CapAddress::new(NODE_INDEX, NODE_SLOTS as u32 - 1)
    }

    /// Makes an object.
    pub fn make<T: Object>(&mut self, size: u64) -> Outcome<Cap<T>> {
        let slot = self.slot();
        Ok(self.pool.retype(size, slot)?)
    }

    /// Makes an object of any kind that can be retyped.
    pub fn make_kind(&mut self, kind: Kind, size: u64) -> Outcome<CapAddress> {
        let slot = self.slot();
        self.pool.retype_many(kind, size, 1, Placement::Watermark, OWN_CSPACE, slot)?;
        Ok(slot)
    }

    /// Makes an endpoint.
    pub fn endpoint(&mut self) -> Outcome<Cap<Endpoint>> {
        self.make(0)
    }

    /// Makes a notification.
    pub fn notification(&mut self) -> Outcome<Cap<Notification>> {
        self.make(0)
    }

    /// Makes a reply object.
    pub fn reply(&mut self) -> Outcome<Cap<Reply>> {
        self.make(0)
    }

    /// Mints a copy with these rights and this badge.
    pub fn mint<T>(&mut self, cap: Cap<T>, rights: Rights, badge: u64) -> Outcome<Cap<T>> {
        let slot = self.slot();
        Ok(cap.mint_to(slot, rights, badge)?)
    }

    /// Makes a copy of a capability.
    pub fn copy<T>(&mut self, cap: Cap<T>) -> Outcome<Cap<T>> {
        let slot = self.slot();
        Ok(cap.copy_to(slot)?)
    }
}

/// The kernel object, for statistics.
pub const KERNEL: Cap<Kernel> = Cap::new(slot::KERNEL);

/// Returns what lies at an address.
pub fn identify(address: CapAddress) -> Result<Identity, Error> {
    OWN_CSPACE.identify_at(address)
}

/// Returns the physical address of memory. The cases have the kernel's capability, which reveals it.
pub fn physical_address<T>(cap: Cap<T>) -> Result<u64, Error> {
    Ok(cap.locate(KERNEL)?.address)
}

/// Returns whether a slot is empty.
pub fn is_empty<T>(cap: Cap<T>) -> bool {
    cap.identify().is_ok_and(|found| found.kind == Kind::Null)
}

/// Makes a system call with the given arguments from `x0` on. Returns `x1` to `x8`.
pub fn system_call(operation: u64, arguments: &[u64]) -> Result<[u64; 8], Error> {
    let mut x = [0; 13];
    x[..arguments.len()].copy_from_slice(arguments);
    // SAFETY: cases name only memory and objects of their own.
    let result = unsafe { raw::anything(operation, &x) };
    match Error::from_code(result[0]) {
        Some(error) => Err(error),
        None => Ok(core::array::from_fn(|index| result[index + 1])),
    }
}
