//! Operations on one of many capabilities.
//!
//! All are to notifications, each the only one to its object, so the kernel's tree of capabilities has as many nodes.
//! After each operation everything is as before.

use alloc::string::String;
use alloc::vec::Vec;

use tench::abi::object::{NODE_SLOTS, NOTIFICATION_BITS};
use tench::memory::take_slot;
use tench::sys::{Cap, CapAddress, Error, Kind, Notification, OWN_CSPACE, Placement, Rights, Untyped};
use tench_random::Random;

use super::{MANY, MEASURED, SPARE, Space, cost_of, memory, report};
use crate::support::problem;

/// Numbers of capabilities.
const SIZES: [usize; 5] = [100, 1000, 10_000, 100_000, MANY];
/// Log2 of the memory for the notifications, with room for one more than [`MANY`].
const OBJECTS_BITS: u32 = 26;
const _: () = assert!((MANY + 1) << NOTIFICATION_BITS <= 1 << OBJECTS_BITS);

/// Many capabilities.
struct Crowd<'a> {
    space: &'a Space,
    /// Memory of the objects: number `i` lies at offset `i` times its size.
    objects: Cap<Untyped>,
    count: usize,
    /// An empty slot of this program.
    slot: CapAddress,
    random: Random,
}

/// The slots of a measured operation.
#[derive(Clone, Copy)]
struct Picked {
    /// Number of one of the notifications.
    number: usize,
    /// Slot of its capability.
    full: CapAddress,
    /// An empty slot of the same CSpace.
    empty: CapAddress,
}

impl Crowd<'_> {
    /// Makes `count` notifications from number `first` on, in one node.
    fn make(&self, first: usize, count: usize) -> Result<(), Error> {
        let place = Placement::At((first as u64) << NOTIFICATION_BITS);
        let (root, address) = (self.space.root, Space::address_of(first));
        self.objects.retype_many(Kind::Notification, 0, count as u64, place, root, address)?;
        Ok(())
    }

    /// Makes more notifications, until there are `count`.
    fn grow(&mut self, count: usize) -> Result<(), Error> {
        while self.count < count {
            let some = (count - self.count).min(NODE_SLOTS - self.count % NODE_SLOTS);
            self.make(self.count, some)?;
            self.count += some;
        }
        Ok(())
    }

    /// Measures an operation on random notifications.
    fn figure(
        &mut self,
        key: &str,
        mut operation: impl FnMut(&Self, Picked) -> Result<u64, Error>,
    ) -> Result<(), String> {
        let mut costs = Vec::with_capacity(MEASURED);
        for _ in 0..MEASURED {
            let (number, spare) = (self.random.index(self.count), MANY + self.random.index(SPARE));
            let picked = Picked { number, full: Space::address_of(number), empty: Space::address_of(spare) };
            costs.push(operation(self, picked).map_err(problem(key))?);
        }
        report(key, self.count, &costs);
        Ok(())
    }

    /// Measures the operations on capabilities.
    fn capabilities(&mut self) -> Result<(), String> {
        let root = self.space.root;
        self.figure("identify", |_, at| cost_of(|| root.identify_at(at.full)))?;
        self.figure("copy", |_, at| {
            let cost = cost_of(|| root.copy_from(at.empty, root, at.full));
            root.delete_at(at.empty)?;
            cost
        })?;
        self.figure("move", |_, at| {
            let cost = cost_of(|| root.move_from(at.empty, root, at.full));
            root.move_from(at.full, root, at.empty)?;
            cost
        })?;
        for (key, badge) in [("mint", 0), ("mint_badge", 77)] {
            self.figure(key, |_, at| {
                let cost = cost_of(|| root.mint_from(at.empty, root, at.full, Rights::WRITE, badge));
                root.delete_at(at.empty)?;
                cost
            })?;
        }
        self.figure("delete_copy", |_, at| {
            root.copy_from(at.empty, root, at.full)?;
            cost_of(|| root.delete_at(at.empty))
        })
    }

    /// Measures the operations that make objects, and delete them or what was derived from them.
    fn objects(&mut self) -> Result<(), String> {
        let root = self.space.root;
        self.figure("revoke_one", |_, at| {
            root.copy_from(at.empty, root, at.full)?;
            cost_of(|| root.revoke_at(at.full))
        })?;
        self.figure("delete_object", |crowd, at| {
            let cost = cost_of(|| root.delete_at(at.full));
            crowd.make(at.number, 1)?;
            cost
        })?;
        let (objects, slot) = (self.objects, self.slot);
        let place = Placement::At((MANY as u64) << NOTIFICATION_BITS);
        self.figure("retype_signal_delete", |_, _| {
            cost_of(|| {
                objects.retype_many(Kind::Notification, 0, 1, place, OWN_CSPACE, slot)?;
                let notification = Cap::<Notification>::new(slot);
                notification.signal()?;
                notification.delete()
            })
        })
    }
}

/// Measures beside each number of capabilities, and deletes them all.
pub fn measure(space: &Space) -> Result<(), String> {
    let slot = take_slot().map_err(problem("a slot"))?;
    let mut crowd = Crowd { space, objects: memory(OBJECTS_BITS)?, count: 0, slot, random: Random::new(1) };
    for count in SIZES {
        crowd.grow(count).map_err(problem("making notifications"))?;
        crowd.capabilities()?;
        crowd.objects()?;
    }
    let deleted = crowd.objects.revoke().map_err(problem("revoking"))?;
    if deleted == MANY as u64 { Ok(()) } else { Err(alloc::format!("{deleted} of {MANY} were deleted")) }
}
