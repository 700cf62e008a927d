//! What a case works with: memory, slots and objects that nobody else has.

use alloc::format;

use tench::abi::layout::slot;
use tench::abi::object::{NODE_BITS, NODE_SLOTS};
use tench::mem::Mem;
use tench::memory::{self, Pages};
use tench::sys::cap::Object;
use tench::sys::ipc::BOUND_REPLY;
use tench::sys::{
    Cap, CapAddress, CapNode, Endpoint, Error, Identity, Instant, Kernel, Kind, Message, Notification, OWN_SPACE,
    Place, Reply, Rights, Untyped, Wait, raw,
};

use crate::case::{Case, Failure, Outcome};
use crate::worker::PLACES;

/// The interrupt line of the real-time clock, which no server uses.
pub const RTC_LINE: u64 = 34;
/// Log2 of the memory for a case: room for a frame of 2 MiB beside everything else.
const POOL_BITS: u32 = 23;
/// Where the node with a case's slots hangs in the root: the user library fills the root from the front.
pub const NODE_INDEX: u32 = 62;
/// An entry of the root with nothing in it.
pub const EMPTY_INDEX: u32 = 63;
/// Priority of the main thread (systems/tests.toml).
pub const PRIORITY: u64 = 120;
/// Runs before the main thread.
pub const HIGH: u64 = 130;
/// Runs when the main thread waits.
pub const LOW: u64 = 110;

/// See the head of the file.
pub struct Stage {
    /// All memory of a case.
    pub pool: Cap<Untyped>,
    /// Stacks and message areas for workers.
    pub places: [(Pages, Pages); PLACES],
    /// Workers of this case.
    pub workers: usize,
    next_slot: u32,
    /// Nobody sends here.
    silence: Cap<Endpoint>,
}

impl Stage {
    /// Takes what all cases share.
    pub fn new() -> Outcome<Stage> {
        let node = memory::make::<CapNode>(u64::from(NODE_BITS))?.leak();
        let root = Cap::<CapNode>::new(slot::CSPACE);
        root.install_node(NODE_INDEX, node)?;
        let place = memory::take_slot()?;
        let pool = Mem::STANDARD.allocate(POOL_BITS, place)?.untyped;
        let mut places = [const { None }; PLACES];
        for place in &mut places {
            *place = Some((Pages::with_guard(16384)?, Pages::new(4096)?));
        }
        let places = places.map(|place| place.unwrap_or_else(|| unreachable!("all places were made")));
        let silence = memory::make::<Endpoint>(0)?.leak();
        Ok(Stage { pool, places, workers: 0, next_slot: 0, silence })
    }

    /// Carries a case out, and takes back what it used.
    pub fn play(&mut self, case: &Case) -> Outcome {
        let outcome = (case.run)(self);
        let cleared = self.clear().and_then(|()| self.work_for_nobody());
        outcome.and(cleared)
    }

    /// Ends what a case has received and not answered. Until the main thread receives again, it would stay at the
    /// priority of a caller that has gone, and hostile clients at its own priority would keep it from running.
    fn work_for_nobody(&self) -> Outcome {
        // The caller may still wait.
        let _ = BOUND_REPLY.reply(&Message::new(0));
        equal!(self.silence.receive(Wait::until(Instant::from_ticks(0))).err(), Some(Error::TimedOut));
        Ok(())
    }

    /// Takes everything back that a case has made, and looks that it came back.
    pub fn clear(&mut self) -> Outcome {
        self.pool.revoke()?;
        let account = self.pool.query()?;
        if account.watermark != 0 {
            return Err(Failure::new(format!("{} bytes of memory did not come back", account.watermark)));
        }
        let mut left = None;
        for number in 0..NODE_SLOTS as u32 {
            let address = CapAddress::new(NODE_INDEX, number);
            let found = OWN_SPACE.identify_at(address)?;
            if found.kind != Kind::Null {
                left = Some(found.kind);
                OWN_SPACE.delete_at(address)?;
            }
        }
        self.next_slot = 0;
        self.workers = 0;
        match left {
            None => Ok(()),
            Some(kind) => Err(Failure::new(format!("a capability of kind {kind:?} was left behind"))),
        }
    }

    /// An empty slot.
    pub fn slot(&mut self) -> CapAddress {
        self.slots(1)
    }

    /// Empty slots side by side.
    pub fn slots(&mut self, count: u32) -> CapAddress {
        let first = self.next_slot;
        self.next_slot += count;
        assert!(self.next_slot <= NODE_SLOTS as u32, "a case has {NODE_SLOTS} slots");
        CapAddress::new(NODE_INDEX, first)
    }

    /// The address behind the last slot of the case.
    pub const fn last_slot() -> CapAddress {
        CapAddress::new(NODE_INDEX, NODE_SLOTS as u32 - 1)
    }

    /// An object.
    pub fn make<T: Object>(&mut self, size: u64) -> Outcome<Cap<T>> {
        let place = self.slot();
        Ok(self.pool.retype(size, place)?)
    }

    /// An object of any kind that can be made.
    pub fn make_kind(&mut self, kind: Kind, size: u64) -> Outcome<CapAddress> {
        let place = self.slot();
        self.pool.retype_many(kind, size, 1, Place::Watermark, OWN_SPACE, place)?;
        Ok(place)
    }

    /// An endpoint.
    pub fn endpoint(&mut self) -> Outcome<Cap<Endpoint>> {
        self.make(0)
    }

    /// A notification.
    pub fn notification(&mut self) -> Outcome<Cap<Notification>> {
        self.make(0)
    }

    /// A reply object.
    pub fn reply(&mut self) -> Outcome<Cap<Reply>> {
        self.make(0)
    }

    /// A copy with these rights and this badge.
    pub fn mint<T>(&mut self, cap: Cap<T>, rights: Rights, badge: u64) -> Outcome<Cap<T>> {
        let place = self.slot();
        Ok(cap.mint_to(place, rights, badge)?)
    }

    /// A copy.
    pub fn copy<T>(&mut self, cap: Cap<T>) -> Outcome<Cap<T>> {
        let place = self.slot();
        Ok(cap.copy_to(place)?)
    }
}

/// The kernel, for statistics.
pub const KERNEL: Cap<Kernel> = Cap::new(slot::KERNEL);

/// What lies at an address.
pub fn identify(address: CapAddress) -> Result<Identity, Error> {
    OWN_SPACE.identify_at(address)
}

/// Where memory lies. The cases have the kernel's capability, which tells it.
pub fn place<T>(cap: Cap<T>) -> Result<u64, Error> {
    Ok(cap.locate(KERNEL)?.address)
}

/// Whether a slot is empty.
pub fn is_empty<T>(cap: Cap<T>) -> bool {
    cap.identify().is_ok_and(|found| found.kind == Kind::Null)
}

/// A system call with arguments as they are, from `x0` on. Answers `x1` to `x8`.
pub fn system_call(operation: u64, arguments: &[u64]) -> Result<[u64; 8], Error> {
    let mut x = [0; 13];
    x[..arguments.len()].copy_from_slice(arguments);
    // SAFETY: cases name only what is theirs.
    let answer = unsafe { raw::anything(operation, &x) };
    match Error::from_code(answer[0]) {
        Some(error) => Err(error),
        None => Ok(core::array::from_fn(|index| answer[index + 1])),
    }
}
