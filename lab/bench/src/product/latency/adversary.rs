//! The load that makes the longest system calls there are.
//!
//! | operation | size in one system call |
//! |---|---|
//! | zeroing | a frame of 8 MiB |
//! | retype and revoke | an untyped with 1,024 pages, each with the metadata of a mapping: 256 at a time, and all at once |
//! | full nodes | a CSpace of four nodes whose 1,024 slots are all in use, deleted with its last capability |
//! | large mappings | 512 pages: map, protect, and a frame that is deleted with eight such mappings |
//! | long messages | 64 words and four capabilities |
//!
//! Everything is made anew in each round.

use alloc::boxed::Box;
use alloc::string::String;

use tench::abi::layout::slot;
use tench::abi::memory::{PAGE_BITS, TABLE_ENTRIES};
use tench::abi::message::{MAX_CAPS, MAX_WORDS};
use tench::abi::object::{NODE_BITS, NODE_SLOTS};
use tench::abi::{CapAddress, Kind};
use tench::memory::{self, Made, make, take_slots};
use tench::sys::{
    Cap, CapNode, Endpoint, Frame, MapFlags, Message, OWN_CSPACE, PageTable, Placement, Untyped, Wait, offer_slots,
};

use super::load::{Body, Load, Signal};
use super::{PRIORITY, problem};

/// Log2 of the memory that is made and unmade: 8 MiB.
const MEMORY_BITS: u64 = 23;
/// Number of nodes of the deleted CSpace, and of pages of the tree.
const NODES: usize = 4;
const PAGES: usize = NODES * NODE_SLOTS;
/// Number of mappings of one frame.
const MAPPINGS: usize = 8;
/// Number of messages in a round.
const MESSAGES: usize = 16;

const WRITABLE: MapFlags = MapFlags::READ.union(MapFlags::WRITE);
type Outcome = Result<(), tench::abi::Error>;

/// Resources of the load.
struct Adversary {
    /// Memory for large objects.
    memory: Made<Untyped>,
    /// Memory for a CSpace of its own.
    nodes: Made<Untyped>,
    root: CapAddress,
    /// First of adjacent slots.
    slots: CapAddress,
    /// Tables in which the frame is mapped. They are installed nowhere, which suffices for mapping.
    tables: [Made<PageTable>; MAPPINGS],
    endpoint: Made<Endpoint>,
}

/// Starts the load.
pub fn start() -> Result<Load, String> {
    let what = "what the adversary needs";
    let table = || make::<PageTable>(3).map_err(problem(what));
    let tables = [table()?, table()?, table()?, table()?, table()?, table()?, table()?, table()?];
    let adversary = Adversary {
        memory: make::<Untyped>(MEMORY_BITS).map_err(problem(what))?,
        nodes: make::<Untyped>(u64::from(NODE_BITS) + 6 + 3).map_err(problem(what))?,
        root: memory::take_slot().map_err(problem(what))?,
        slots: take_slots(NODE_SLOTS).map_err(problem(what))?,
        tables,
        endpoint: make::<Endpoint>(0).map_err(problem(what))?,
    };
    let endpoint = adversary.endpoint.cap();
    let receiver: Body = Box::new(move |_| receive(endpoint));
    let body: Body = Box::new(move |signal| adversary.run(&signal));
    Load::start(alloc::vec![(PRIORITY + 10, receiver), (PRIORITY, body)])
}

/// Receives messages with capabilities until one has none.
fn receive(endpoint: Cap<Endpoint>) -> Result<u64, String> {
    let first = take_slots(MAX_CAPS).map_err(problem("slots"))?;
    let slots: [CapAddress; MAX_CAPS] = core::array::from_fn(|index| CapAddress(first.0 + index as u32));
    let mut count = 0;
    loop {
        offer_slots(&slots);
        let received = endpoint.receive(Wait::FOREVER).map_err(problem("receiving"))?;
        if received.caps().is_empty() {
            return Ok(count);
        }
        count += 1;
        for cap in received.caps() {
            OWN_CSPACE.delete_at(*cap).map_err(problem("deleting what came"))?;
        }
    }
}

impl Adversary {
    /// Runs the load until it is stopped.
    fn run(self, signal: &Signal) -> Result<u64, String> {
        let mut rounds = 0;
        while !signal.is_over() {
            self.zero().map_err(problem("zeroing"))?;
            self.tree().map_err(problem("a tree of pages"))?;
            self.nodes().map_err(problem("full nodes"))?;
            self.mappings().map_err(problem("mappings"))?;
            self.messages().map_err(problem("messages"))?;
            rounds += 1;
        }
        self.endpoint.cap().send(&Message::new(0), Wait::FOREVER).map_err(problem("the last message"))?;
        Ok(rounds)
    }

    /// Makes a large object of memory that is not zero.
    fn zero(&self) -> Outcome {
        let frame = self.memory.cap().retype::<Frame>(MEMORY_BITS, self.slots)?;
        frame.delete().map(|_| ())
    }

    /// Makes many objects of one untyped, and copies of some of their capabilities, and revokes it.
    fn tree(&self) -> Outcome {
        let cspace = self.cspace()?;
        for node in 0..NODES {
            let first = address(node, 0);
            let count = NODE_SLOTS as u64;
            self.memory.cap().retype_many(
                Kind::Frame,
                u64::from(PAGE_BITS),
                count,
                Placement::Watermark,
                cspace,
                first,
            )?;
        }
        for copy in 0..NODE_SLOTS {
            OWN_CSPACE.copy_from(CapAddress(self.slots.0 + copy as u32), cspace, address(0, copy))?;
        }
        let revoked = self.memory.cap().revoke()?;
        assert_eq!(revoked as usize, PAGES + NODE_SLOTS, "capabilities that a revocation deletes");
        self.discard()
    }

    /// Deletes a CSpace full of copies.
    fn nodes(&self) -> Outcome {
        let cspace = self.cspace()?;
        for node in 0..NODES {
            for index in 0..NODE_SLOTS {
                cspace.copy_from(address(node, index), OWN_CSPACE, self.endpoint.cap().address())?;
            }
        }
        // This is the last capability to the root: everything goes with it.
        OWN_CSPACE.delete_at(self.root)?;
        self.discard()
    }

    /// Makes a CSpace with all its nodes. Slot 0 of a CSpace has no address, so its first node is left out.
    fn cspace(&self) -> Result<Cap<CapNode>, tench::abi::Error> {
        let root = self.nodes.cap().retype::<CapNode>(u64::from(NODE_BITS), self.root)?;
        for node in 0..NODES {
            let made = self.nodes.cap().retype::<CapNode>(u64::from(NODE_BITS), self.slots)?;
            root.install_node(node as u32 + 1, made)?;
        }
        Ok(root)
    }

    /// Deletes the rest of a CSpace.
    fn discard(&self) -> Outcome {
        self.nodes.cap().revoke().map(|_| ())
    }

    /// Maps many pages in one call, and undoes many such calls in one.
    fn mappings(&self) -> Outcome {
        let frame = self.memory.cap().retype::<Frame>(u64::from(PAGE_BITS + TABLE_ENTRIES.ilog2()), self.slots)?;
        for (number, table) in self.tables.iter().enumerate() {
            let slot = CapAddress(self.slots.0 + 1 + number as u32);
            let mapping = frame.map(table.cap(), 0, TABLE_ENTRIES as u64, 0, WRITABLE, slot)?;
            mapping.protect(MapFlags::READ)?;
        }
        frame.delete().map(|_| ())?;
        self.memory.cap().revoke().map(|_| ())
    }

    /// Sends long messages with as many capabilities as there can be.
    fn messages(&self) -> Outcome {
        let mut message = Message::with_words(1, &[7; MAX_WORDS]);
        for _ in 0..MAX_CAPS {
            message.copy_cap(Cap::<Endpoint>::new(slot::PROCS));
        }
        (0..MESSAGES).try_for_each(|_| self.endpoint.cap().send(&message, Wait::FOREVER))
    }
}

/// Returns the address of a slot of the deleted CSpace.
const fn address(node: usize, index: usize) -> CapAddress {
    CapAddress(((node + 1) * NODE_SLOTS + index) as u32)
}
