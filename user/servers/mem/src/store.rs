//! The store: the ledger together with slots and capabilities, and the arrays behind it, which grow between requests.
//!
//! ```text
//! region (init's untyped)
//!   └─ block      an untyped of exactly the block, kept here
//!        └─ the client's untyped, of the same memory, sent with the reply
//! ```
//! Revoking the block deletes the client's untyped and everything made of it, wherever that is.
//!
//! Slots are of two sorts. Those for the server's own objects, which stay, are in the first two nodes: some 230 of 450
//! are in use when there are as many blocks as possible. All others are for clients' blocks and objects in slabs: their
//! nodes are added on demand, and freed when they are empty.
//!
//! If the kernel refuses a call, or memory runs out, the request fails with a named error, and ledger, slots and
//! capabilities are as before. A test lets each step of each request fail (`tests/exhaustion.rs`).

use arrayvec::ArrayVec;
use tench_abi::object::{NODE_BITS, NODE_SLOTS};
use tench_abi::power::Client;
use tench_abi::{CapAddress, Error as KernelError, Kind};
use tench_extents::Node;
use tench_mem_interface::protocol::{ABROAD, Error, MIN_BLOCK_BITS};
use tench_procs_interface::pid;
use tench_quota::allows;

use crate::accounts::Account;
use crate::blocks::{Block, Entry};
use crate::ledger::{Ledger, Need, Region, Request};
use crate::machine::{Machine, STEP_BITS, Step, Use};

/// Number of free slots, besides those of the node itself, at which a node is freed: enough that it is not needed again
/// at once.
const SPARE_SLOTS: usize = NODE_SLOTS / 2;
/// Preemption points that the kernel passes for one request that deletes: some 120,000 instructions, for which other
/// requests wait. A small process has less, so that its end takes one request.
const PART: u64 = 96;
/// Cost of a block's ledger entries, in preemption points.
const BLOCK_COST: u64 = 2;
/// First node of slots for clients' blocks. Those before it are for the server's own objects.
const FIRST_NODE: u32 = 2;
/// Entries of the root, as the loader makes it.
const ROOT_ENTRIES: usize = 64;
// A block has the number of its slot.
const _: () = assert!(ROOT_ENTRIES * NODE_SLOTS <= 1 << u16::BITS);
/// The free slots of all nodes.
pub type SlotMap = tench_slots::SlotMap<ROOT_ENTRIES>;
/// Log2 of the memory for the arrays' first steps, one for each array, and their page tables.
const FIRST_BITS: u32 = STEP_BITS + 2;
/// Number of objects made of that memory: three frames and five page tables.
const FIRST_OBJECTS: usize = 8;

/// The ledger with a machine's arrays.
type LedgerOf<M> = Ledger<<M as Machine>::Array<Node>, <M as Machine>::Array<Entry>, <M as Machine>::Array<Account>>;

/// The ledger, with slots and capabilities.
pub struct Store<M: Machine> {
    /// The ledger of free and used memory.
    pub ledger: LedgerOf<M>,
    /// Free slots for clients' blocks and objects in slabs.
    pub slots: SlotMap,
    /// Free slots for the server's own objects.
    pub own: SlotMap,
    /// The kernel as the store uses it.
    pub machine: M,
    /// For each added node, the slot under which the ledger has its block. The capability itself is in the root.
    nodes: [CapAddress; ROOT_ENTRIES],
}

impl<M: Machine> Store<M> {
    /// Returns a store with these regions, whose capabilities are in node 1, from its beginning on. The slots of node 0
    /// are free from `first_free` on.
    pub fn new(mut machine: M, first_free: CapAddress, regions: &[Region]) -> Result<Store<M>, KernelError> {
        let (mut own, slots) = empty_slots(first_free, regions.len());
        let mut first = First::new(&mut machine, &mut own, regions)?;
        // The frames come before the page tables, which are smaller: so all are aligned.
        let mut steps = [first.step()?, first.step()?, first.step()?];
        let (upper, middle) = (first.table(1)?, first.table(2)?);
        for step in &mut steps {
            step.table = Some(first.table(3)?);
        }
        let made = first.made;
        machine.prepare(upper, middle)?;
        let (mut extents, mut blocks, mut accounts) =
            (machine.array(Use::Extents), machine.array(Use::Blocks), machine.array(Use::Accounts));
        machine.grow(&mut extents, &steps[0], Node::EMPTY)?;
        machine.grow(&mut blocks, &steps[1], Entry::EMPTY)?;
        machine.grow(&mut accounts, &steps[2], Account::EMPTY)?;
        let mut ledger = Ledger::new(extents, blocks, accounts);
        for region in regions {
            // A region that is too small for a block is ignored.
            let _ = ledger.add(*region);
        }
        // Objects made before the ledger existed are entered now.
        for (slot, address, size_bits) in made {
            let limit = address + (1 << size_bits);
            let anywhere = Request::anywhere(pid::MEM, pid::MEM, u64::from(size_bits));
            ledger
                .allocate(&Request { base: address, limit, ..anywhere }, slot)
                .map_err(|_| KernelError::OutOfMemory)?;
        }
        let mut store = Store { ledger, slots, own, machine, nodes: [CapAddress::NULL; ROOT_ENTRIES] };
        store.add_slots().ok_or(KernelError::OutOfMemory)?;
        Ok(store)
    }

    // ── Growing ──────────────────────────────────────────────────────────────────────────────────────────────────────

    /// Lets everything grow that will soon be short. If there is no memory for that, the rest is used up first, and
    /// then requests fail. Calls do not nest: growth takes its own memory from the reserve.
    pub fn refill(&mut self) {
        while let Some(need) = self.ledger.need() {
            // The extents' own flag prevents a nested refill.
            if need == Need::Extents && !self.ledger.begin_refill() {
                return;
            }
            let grown = self.grow(need);
            if need == Need::Extents {
                self.ledger.end_refill();
            }
            if grown.is_none() {
                return;
            }
        }
        if self.slots.count() == 0 {
            // Without a slot the request is refused.
            let _ = self.add_slots();
        }
    }

    /// Makes sure, as far as there is memory, that `count` adjacent slots can be taken.
    pub fn ensure_slots(&mut self, count: usize) {
        while !self.slots.has_run(count) && self.add_slots().is_some() {
            self.refill();
        }
    }

    /// Lets one of the arrays grow.
    fn grow(&mut self, need: Need) -> Option<()> {
        let wants_table = match need {
            Need::Extents => self.machine.wants_table(self.ledger.extents_storage()),
            Need::Blocks => self.machine.wants_table(self.ledger.blocks_storage()),
            Need::Accounts => self.machine.wants_table(self.ledger.accounts_storage()),
        };
        let (mapping, frame) = (self.own.take()?, self.object(Kind::Frame, u64::from(STEP_BITS)));
        let table = if wants_table { self.object(Kind::PageTable, 3).map(Some) } else { Some(None) };
        let grown = match (frame, table) {
            (Some(frame), Some(table)) => {
                let step = Step { frame, table, mapping };
                let machine = &mut self.machine;
                match need {
                    Need::Extents => machine.grow(self.ledger.extents_storage(), &step, Node::EMPTY),
                    Need::Blocks => machine.grow(self.ledger.blocks_storage(), &step, Entry::EMPTY),
                    Need::Accounts => machine.grow(self.ledger.accounts_storage(), &step, Account::EMPTY),
                }
                .ok()
            }
            _ => None,
        };
        if grown.is_none() {
            self.own.free(mapping);
            for object in [frame, table.flatten()].into_iter().flatten() {
                // The object is unused: a step is made whole or not at all.
                self.free_object(object);
            }
        }
        grown
    }

    /// Makes an object for the server itself.
    fn object(&mut self, kind: Kind, size: u64) -> Option<CapAddress> {
        let bits = u64::from(kind.object_bits(size)?);
        let request = Request::anywhere(pid::MEM, pid::MEM, bits);
        let slot = self.own.take()?;
        match self.make(&request, kind, size, slot) {
            Ok(_) => Some(slot),
            Err(_) => {
                self.own.free(slot);
                None
            }
        }
    }

    /// Frees an object of the server itself.
    fn free_object(&mut self, slot: CapAddress) {
        // If the kernel refused the deletion, the memory would stay on the server's account.
        if self.release(slot, &mut { PART }).is_ok() {
            self.own.free(slot);
        }
    }

    /// Adds a node of slots, once there are entries for the blocks in them.
    fn add_slots(&mut self) -> Option<()> {
        let index = self.slots.next_node();
        if index as usize >= ROOT_ENTRIES {
            return None;
        }
        while self.ledger.blocks_storage().as_ref().len() < (index as usize + 1) * NODE_SLOTS {
            self.grow(Need::Blocks)?;
        }
        let slot = self.object(Kind::CapNode, u64::from(NODE_BITS))?;
        if self.machine.install_node(index, slot).is_err() {
            self.free_object(slot);
            return None;
        }
        // The capability is in the root now; the block stays in the ledger under its slot.
        self.nodes[index as usize] = slot;
        self.slots.add_node().map(drop)
    }

    /// Frees nodes of slots that are no longer needed.
    fn give_slots_back(&mut self) {
        while let Some(index) = self.slots.last_node_if_free() {
            let slot = self.nodes[index as usize];
            let is_needed = index <= FIRST_NODE || self.slots.count() < NODE_SLOTS + SPARE_SLOTS;
            if is_needed || self.machine.remove_node(index, slot).is_err() {
                return;
            }
            self.slots.remove_last_node();
            self.free_object(slot);
        }
    }

    /// Checks a family's fair-share quota of slots, for `slots` more: it may have fewer than are left, even before the
    /// last one. So no family gets all of them.
    fn check_share(&self, account: u64, family: u64, slots: usize) -> Result<(), Error> {
        let before = slots.saturating_sub(1);
        let own = self.ledger.share(account, family) as usize + before;
        if allows(own, before, self.unused_slots()) { Ok(()) } else { Err(Error::TooManyBlocks) }
    }

    /// Charges objects in slabs, and their bytes, to a client, which owns slots for them from now on. Fails with
    /// `QuotaExceeded` or `TooManyBlocks`.
    pub fn charge(&mut self, client: Client, bytes: u64, objects: u16) -> Result<(), Error> {
        self.check_share(client.process, client.family, objects.into())?;
        self.ledger.charge(client, bytes, objects)
    }

    /// Returns the number of free slots for clients' blocks and objects, if there is memory for the nodes.
    fn unused_slots(&self) -> usize {
        self.slots.count() + ROOT_ENTRIES.saturating_sub(self.slots.next_node() as usize) * NODE_SLOTS
    }

    // ── Blocks ───────────────────────────────────────────────────────────────────────────────────────────────────────

    /// Allocates a block for a client: its untyped is made in `outgoing`, to be sent with the reply.
    pub fn give(&mut self, request: &Request, outgoing: CapAddress) -> Result<(CapAddress, Given), Error> {
        self.check_share(request.account, request.family, 1)?;
        self.refill();
        let (slot, block) = self.allocate(request)?;
        let bits = u64::from(block.size_bits);
        let made = match self.machine.retype(slot, Kind::Untyped, bits, 0, outgoing) {
            // If the last client offered no slot, its untyped is still here; its memory is on its account all the same.
            Err(KernelError::SlotOccupied) => {
                self.machine.delete(outgoing).and_then(|()| self.machine.retype(slot, Kind::Untyped, bits, 0, outgoing))
            }
            made => made,
        };
        if made.is_err() {
            // Nothing was made of it.
            let _ = self.machine.delete(slot);
            self.forget(slot);
            self.slots.free(slot);
            return Err(Error::Internal);
        }
        Ok((slot, block))
    }

    /// Divides a block in two. The kernel checks that no object lies across the middle. Returns the slot of the upper
    /// half, and the lower block.
    pub fn divide(&mut self, client: u64, number: u16) -> Result<(CapAddress, Block), Error> {
        self.check_share(client, 0, 1)?;
        self.refill();
        let (slot, _) = self.ledger.block(client, number)?;
        let upper = self.slots.take().ok_or(Error::TooManyBlocks)?;
        let divided = self.ledger.check_divide(slot, upper).and_then(|()| {
            self.machine.split(slot, upper).map_err(|error| match error {
                KernelError::Overlap => Error::NotDivided,
                _ => Error::Internal,
            })
        });
        if let Err(error) = divided {
            self.slots.free(upper);
            return Err(error);
        }
        Ok((upper, self.ledger.divide(slot, upper)?))
    }

    /// Allocates a block, and makes untyped memory of it.
    pub fn allocate(&mut self, request: &Request) -> Result<(CapAddress, Given), Error> {
        let slot = self.slots.take().ok_or(Error::TooManyBlocks)?;
        match self.make(request, Kind::Untyped, request.size_bits.max(u64::from(MIN_BLOCK_BITS)), slot) {
            Ok(given) => Ok((slot, given)),
            Err(error) => {
                self.slots.free(slot);
                Err(error)
            }
        }
    }

    /// Makes an object of a block. If that fails, ledger and slot are as before.
    fn make(&mut self, request: &Request, kind: Kind, size: u64, slot: CapAddress) -> Result<Given, Error> {
        let Block { address, size_bits, .. } = self.ledger.allocate(request, slot)?;
        let made = match self.ledger.region_of(address) {
            Some(region) => self
                .machine
                .retype(region.slot, kind, size, address - region.address, slot)
                .map_err(|_| Error::Internal),
            None => Err(Error::Internal),
        };
        if let Err(error) = made {
            self.forget(slot);
            return Err(error);
        }
        Ok(Given { address, size_bits })
    }

    /// Removes a block from the ledger of which nothing could be made. Its account may have been opened for it.
    fn forget(&mut self, slot: CapAddress) {
        if let Ok(block) = self.ledger.release(slot) {
            self.ledger.close_unused(block.account);
        }
    }

    /// Frees a block with everything made of it, or does a part of that.
    pub fn free(&mut self, slot: CapAddress) -> Result<(), Error> {
        self.free_block(slot, &mut { PART })?;
        self.give_slots_back();
        Ok(())
    }

    fn free_block(&mut self, slot: CapAddress, left: &mut u64) -> Result<(), Error> {
        self.release(slot, left)?;
        self.slots.free(slot);
        Ok(())
    }

    /// Deletes a slot's capability with everything derived from it, and frees its block. At most `left` preemption
    /// points may be passed.
    fn release(&mut self, slot: CapAddress, left: &mut u64) -> Result<(), Error> {
        let passed = self.machine.revoke(slot, *left).map_err(|error| match error {
            KernelError::RemoteCopies => Error::Abroad,
            KernelError::Unfinished => Error::Unfinished,
            _ => Error::Internal,
        })?;
        *left = left.saturating_sub(passed + BLOCK_COST);
        self.machine.delete(slot).map_err(|_| Error::Internal)?;
        self.ledger.release(slot).map(drop)
    }

    /// Frees slots that were taken from [`slots`](Self::slots) and are empty.
    pub fn free_slots(&mut self, slots: impl IntoIterator<Item = CapAddress>) {
        slots.into_iter().for_each(|slot| self.slots.free(slot));
        self.give_slots_back();
    }

    /// Adds a region; its capability is moved from a slot.
    pub fn add(&mut self, from: CapAddress, address: u64, size_bits: u32) -> Result<(), Error> {
        self.refill();
        let slot = self.own.take().ok_or(Error::TooManyBlocks)?;
        let added = self.machine.take_in(from, slot).map_err(|_| Error::Internal).and_then(|()| {
            self.ledger.add(Region { address, size_bits, slot }).inspect_err(|_| {
                // The memory goes back to its sender with its last capability.
                let _ = self.machine.delete(slot);
            })
        });
        if added.is_err() {
            self.own.free(slot);
        }
        added
    }

    /// Frees a block without an owner, if no other core has a part of it any more.
    pub fn reclaim(&mut self, number: u16) -> Result<u64, Error> {
        let (slot, block) = self.ledger.block(ABROAD, number)?;
        self.free(slot)?;
        self.ledger.close_unused(ABROAD);
        Ok(block.size())
    }

    /// Frees all blocks of an account, and closes it, or does a part of that.
    pub fn close(&mut self, account: u64) -> Result<(), Error> {
        let mut left = PART;
        self.ledger.mark_ended(account);
        while let Some((slot, _)) = self.ledger.first_of(account).filter(|_| account != pid::MEM) {
            if left == 0 {
                return Err(Error::Unfinished);
            }
            match self.free_block(slot, &mut left) {
                Ok(()) => {}
                // Its owner has ended and cannot revoke it; the monitor does that.
                Err(Error::Abroad) if account != ABROAD => {
                    self.ledger.pass(slot, ABROAD)?;
                    // How many preemption points that took is unknown.
                    left = 0;
                }
                Err(error) => return Err(error),
            }
        }
        self.ledger.close(account);
        self.give_slots_back();
        Ok(())
    }
}

/// Description of an allocated block. It is small, because it is passed through several layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    /// Physical address.
    pub address: u64,
    /// Log2 of the size in bytes.
    pub size_bits: u32,
}

/// Returns the free slots: the server's own, and those for clients, of which there are none yet.
fn empty_slots(first_free: CapAddress, regions: usize) -> (SlotMap, SlotMap) {
    let (mut own, mut slots) = (SlotMap::new(), SlotMap::new());
    own.add_range(first_free, CapAddress::new(1, 0));
    own.add_node();
    slots.add_node();
    // The node is empty except for the regions; for clients all of it counts as taken.
    while slots.take().is_some() {}
    for region in 0..regions as u32 {
        own.remove(CapAddress::new(1, region));
    }
    (own, slots)
}

/// Makes the first objects, one after another from the beginning of a region.
struct First<'a, M> {
    machine: &'a mut M,
    slots: &'a mut SlotMap,
    region: Region,
    used: u64,
    made: ArrayVec<(CapAddress, u64, u32), FIRST_OBJECTS>,
}

impl<'a, M: Machine> First<'a, M> {
    /// Starts in the smallest region that is large enough: the last such one, because the largest comes first.
    fn new(machine: &'a mut M, slots: &'a mut SlotMap, regions: &[Region]) -> Result<First<'a, M>, KernelError> {
        let region = regions.iter().rfind(|region| region.size_bits >= FIRST_BITS).ok_or(KernelError::OutOfMemory)?;
        Ok(First { machine, slots, region: *region, used: 0, made: ArrayVec::new() })
    }

    fn make(&mut self, kind: Kind, size: u64) -> Result<CapAddress, KernelError> {
        let bits = kind.object_bits(size).ok_or(KernelError::InvalidArgument)?;
        let slot = self.slots.take().ok_or(KernelError::NoSuchSlot)?;
        self.machine.retype(self.region.slot, kind, size, self.used, slot)?;
        self.made.try_push((slot, self.region.address + self.used, bits)).map_err(|_| KernelError::NoSuchSlot)?;
        self.used += 1 << bits;
        Ok(slot)
    }

    fn table(&mut self, level: u64) -> Result<CapAddress, KernelError> {
        self.make(Kind::PageTable, level)
    }

    /// Returns a step without a page table.
    fn step(&mut self) -> Result<Step, KernelError> {
        let frame = self.make(Kind::Frame, u64::from(STEP_BITS))?;
        let mapping = self.slots.take().ok_or(KernelError::NoSuchSlot)?;
        Ok(Step { frame, table: None, mapping })
    }
}
