//! The books with what they stand for: slots and capabilities; and the arrays behind them, which grow between requests.

use arrayvec::ArrayVec;
use tench_abi::layout::slot;
use tench_abi::object::{NODE_BITS, NODE_SLOTS};
use tench_extents::Node;
use tench_mem::accounts::Account;
use tench_mem::blocks::{Block, Entry};
use tench_mem::books::{Books, MAX_REGIONS, Need, Region, Request};
use tench_mem_client::protocol::{Error, MIN_BLOCK_BITS};
use tench_procs_client::protocol::pid;
use tench_slots::SlotMap;
use tench_sys::{Cap, CapAddress, CapNode, Error as Refusal, Kind, OWN_SPACE, PageTable, Place, Untyped};

use crate::own::{Grown, SLOTS_PER_STEP, STEP_BITS, Step, Tables, Use};

/// The root of the own space.
const ROOT: Cap<CapNode> = Cap::new(slot::CSPACE);
/// The node with the regions, which `init` fills.
const REGIONS_NODE: u32 = 1;
/// Slots that are kept for growing: a node of slots, a step of each array, and one for the request at hand.
const RESERVED_SLOTS: usize = 1 + 3 * SLOTS_PER_STEP + 1;
/// Log2 of the memory that the first steps come from: one for each array, and the tables for them.
const FIRST_BITS: u32 = STEP_BITS + 2;
/// Objects made of it: three frames and five tables.
const FIRST_OBJECTS: usize = 8;
/// Entries of the root, as the loader makes it.
const ROOT_ENTRIES: usize = 64;

/// The books, and what they are about.
pub struct Store {
    /// The books.
    pub books: Books<Grown<Node>, Grown<Entry>, Grown<Account>>,
    /// Empty slots.
    pub slots: SlotMap,
    tables: Tables,
}

impl Store {
    /// Takes the regions that `init` has put into their node into the books.
    pub fn new() -> Result<Store, Refusal> {
        let mut slots = SlotMap::new();
        slots.add_range(slot::FIRST_FREE, CapAddress::new(REGIONS_NODE, 0));
        // The node with the regions is there, and none of its slots is free.
        slots.add_node();
        while slots.take_run(NODE_SLOTS).is_some() {}
        let regions = regions();
        let mut first = First::new(&mut slots, &regions)?;
        let (mut extents, mut blocks, mut accounts) =
            (Grown::new(Use::Extents), Grown::new(Use::Blocks), Grown::new(Use::Accounts));
        // The frames come before the tables, which are smaller: so all are aligned.
        let steps = [first.step()?, first.step()?, first.step()?];
        let tables = Tables::new(first.table(1)?, first.table(2)?)?;
        for (index, mut step) in steps.into_iter().enumerate() {
            step.table = Some(first.table(3)?);
            match index {
                0 => extents.grow(tables, &step, Node::EMPTY)?,
                1 => blocks.grow(tables, &step, Entry::EMPTY)?,
                _ => accounts.grow(tables, &step, Account::EMPTY)?,
            }
        }
        let made = first.made;
        let mut books = Books::new(extents, blocks, accounts);
        for region in &regions {
            // A region that is too small for a block is left alone.
            let _ = books.add(*region);
        }
        // What was made before there were books is entered now.
        for (slot, address, size_bits) in made {
            let limit = address + (1 << size_bits);
            let anywhere = Request::anywhere(pid::MEM, pid::MEM, u64::from(size_bits));
            books.allocate(&Request { base: address, limit, ..anywhere }, slot).map_err(|_| Refusal::OutOfMemory)?;
        }
        Ok(Store { books, slots, tables })
    }

    /// Lets everything grow that will soon be short. Where there is no memory for it, what is left is used up first, and
    /// then requests are refused. It does not nest: what it takes itself, it takes from what was kept in reserve.
    pub fn refill(&mut self) {
        while let Some(need) = self.books.need() {
            if self.grow(need).is_none() {
                return;
            }
        }
        if self.slots.count() < RESERVED_SLOTS {
            // Without more slots those that are left are used up.
            let _ = self.add_slots();
        }
    }

    /// Sees to it, as far as there is memory for it, that `count` slots side by side can be taken besides those in
    /// reserve.
    pub fn ensure_slots(&mut self, count: usize) {
        let is_enough = |slots: &SlotMap| slots.count() >= RESERVED_SLOTS + count && slots.has_run(count);
        while !is_enough(&self.slots) && self.add_slots().is_some() {
            self.refill();
        }
    }

    /// Lets one of the arrays grow.
    fn grow(&mut self, need: Need) -> Option<()> {
        let wants_table = match need {
            Need::Extents => self.books.extents_storage().wants_table(),
            Need::Blocks => self.books.blocks_storage().wants_table(),
            Need::Accounts => self.books.accounts_storage().wants_table(),
        };
        let (mapping, frame) = (self.slots.take()?, self.object(Kind::Frame, u64::from(STEP_BITS)));
        let table = if wants_table { self.object(Kind::PageTable, 3).map(Some) } else { Some(None) };
        let grown = match (frame, table) {
            (Some(frame), Some(table)) => {
                let step = Step { frame: Cap::new(frame), table: table.map(Cap::new), mapping };
                let tables = self.tables;
                match need {
                    Need::Extents => self.books.extents_storage().grow(tables, &step, Node::EMPTY),
                    Need::Blocks => self.books.blocks_storage().grow(tables, &step, Entry::EMPTY),
                    Need::Accounts => self.books.accounts_storage().grow(tables, &step, Account::EMPTY),
                }
                .ok()
            }
            _ => None,
        };
        if grown.is_none() {
            self.slots.free(mapping);
            for object in [frame, table.flatten()].into_iter().flatten() {
                // What is still in use, because only part of the step was made, stays.
                let _ = self.free(object);
            }
        }
        grown
    }

    /// An object for the server itself.
    fn object(&mut self, kind: Kind, size: u64) -> Option<CapAddress> {
        let bits = u64::from(kind.object_bits(size)?);
        let request = Request::anywhere(pid::MEM, pid::MEM, bits);
        let (slot, _) = self.allocate_as(&request, kind, size).ok()?;
        Some(slot)
    }

    /// Adds a node of slots, once there are entries for the blocks in them.
    fn add_slots(&mut self) -> Option<()> {
        let index = self.slots.next_node();
        while self.books.blocks_storage().as_ref().len() < (index as usize + 1) * NODE_SLOTS {
            self.grow(Need::Blocks)?;
        }
        if index as usize >= ROOT_ENTRIES {
            return None;
        }
        let slot = self.object(Kind::CapNode, u64::from(NODE_BITS))?;
        if ROOT.install_node(index, Cap::new(slot)).is_err() {
            let _ = self.free(slot);
            return None;
        }
        // The capability lies in the root now; the block stays in the books under its slot, which is used no more.
        self.slots.add_node().map(drop)
    }

    /// Takes a block from the books, and makes untyped memory of it.
    pub fn allocate(&mut self, request: &Request) -> Result<(CapAddress, Block), Error> {
        self.allocate_as(request, Kind::Untyped, request.size_bits.max(u64::from(MIN_BLOCK_BITS)))
    }

    fn allocate_as(&mut self, request: &Request, kind: Kind, size: u64) -> Result<(CapAddress, Block), Error> {
        let slot = self.slots.take().ok_or(Error::TooManyBlocks)?;
        let block = self.books.allocate(request, slot).inspect_err(|_| self.slots.free(slot))?;
        let made = match self.books.region_of(block.address) {
            Some(region) => {
                let untyped = Cap::<Untyped>::new(region.slot);
                let place = Place::At(block.address - region.address);
                untyped.retype_many(kind, size, 1, place, OWN_SPACE, slot).map_err(|_| Error::Internal)
            }
            None => Err(Error::Internal),
        };
        if let Err(error) = made {
            self.forget(slot);
            return Err(error);
        }
        Ok((slot, block))
    }

    /// Takes a block back of which not everything could be made.
    pub fn forget(&mut self, slot: CapAddress) {
        // If the slot is empty there is nothing to delete, and the books know the block.
        let _ = OWN_SPACE.delete_at(slot);
        if self.books.release(slot).is_ok() {
            self.slots.free(slot);
        }
    }

    /// Takes a block back, and with it everything that was made of it.
    pub fn free(&mut self, slot: CapAddress) -> Result<(), Error> {
        OWN_SPACE.revoke_at(slot).map_err(|_| Error::Internal)?;
        OWN_SPACE.delete_at(slot).map_err(|_| Error::Internal)?;
        self.books.release(slot)?;
        self.slots.free(slot);
        Ok(())
    }

    /// Takes back all blocks of an account, and forgets it. Answers the bytes.
    pub fn close(&mut self, account: u64) -> Result<u64, Error> {
        let mut bytes = 0;
        while let Some((slot, block)) = self.books.first_of(account) {
            self.free(slot)?;
            bytes += block.size();
        }
        self.books.close(account);
        Ok(bytes)
    }
}

/// The regions that `init` has put into their node.
fn regions() -> ArrayVec<Region, MAX_REGIONS> {
    let slots = (0..MAX_REGIONS as u32).map(|number| CapAddress::new(REGIONS_NODE, number));
    slots
        .map_while(|slot| {
            let account = Cap::<Untyped>::new(slot).query().ok()?;
            Some(Region { address: account.address, size_bits: account.size_bits, slot })
        })
        .collect()
}

/// Makes the first objects, one after another at the beginning of a region.
struct First<'a> {
    slots: &'a mut SlotMap,
    region: Region,
    used: u64,
    made: ArrayVec<(CapAddress, u64, u32), FIRST_OBJECTS>,
}

impl<'a> First<'a> {
    /// In the smallest region that is large enough: the last one, because the largest comes first.
    fn new(slots: &'a mut SlotMap, regions: &[Region]) -> Result<First<'a>, Refusal> {
        let region = regions.iter().rfind(|region| region.size_bits >= FIRST_BITS).ok_or(Refusal::OutOfMemory)?;
        Ok(First { slots, region: *region, used: 0, made: ArrayVec::new() })
    }

    fn make(&mut self, kind: Kind, size: u64) -> Result<CapAddress, Refusal> {
        let bits = kind.object_bits(size).ok_or(Refusal::InvalidArgument)?;
        let slot = self.slots.take().ok_or(Refusal::NoSuchSlot)?;
        let untyped = Cap::<Untyped>::new(self.region.slot);
        untyped.retype_many(kind, size, 1, Place::At(self.used), OWN_SPACE, slot)?;
        self.made.try_push((slot, self.region.address + self.used, bits)).map_err(|_| Refusal::NoSuchSlot)?;
        self.used += 1 << bits;
        Ok(slot)
    }

    fn table(&mut self, level: u64) -> Result<Cap<PageTable>, Refusal> {
        self.make(Kind::PageTable, level).map(Cap::new)
    }

    /// A step without a table.
    fn step(&mut self) -> Result<Step, Refusal> {
        let frame = Cap::new(self.make(Kind::Frame, u64::from(STEP_BITS))?);
        let mapping = self.slots.take().ok_or(Refusal::NoSuchSlot)?;
        Ok(Step { frame, table: None, mapping })
    }
}
