//! Requests carried out: the books say what is possible, the kernel does it.
//!
//! ```text
//! region (init's untyped)
//!   └─ block      an untyped of exactly the block, kept here
//!        └─ the client's untyped, of the same memory; it left with the reply
//! ```
//! Revoking the block deletes the client's untyped and everything made of it, wherever that has gone.

use alloc::vec::Vec;

use tench_abi::object::NODE_BITS;
use tench_mem::MAX_BLOCKS;
use tench_mem::books::{Block, Books, Region};
use tench_mem_client::protocol::{Error, Label};
use tench_procs_client::protocol::pid;
use tench_protocol::DONE;
use tench_sys::{Cap, CapAddress, Error as Refusal, Kind, Message, OWN_SPACE, Place, Received, Untyped};

use crate::slots::{REGIONS_NODE, Slots};

/// Log2 of the bytes of a node of 256 slots.
const NODE_SIZE_BITS: u64 = NODE_BITS as u64 + tench_abi::object::SLOT_SIZE.ilog2() as u64;
/// The badge of those who may do everything.
const AUTHORITY: u64 = 0;

/// The server's state.
pub struct Server {
    books: Books,
    slots: Slots,
    /// The regions' capabilities, by number.
    regions: Vec<Cap<Untyped>>,
    /// Where a client's untyped is made before it leaves.
    outgoing: CapAddress,
}

impl Server {
    /// Takes the regions that `init` has put into their node into the books.
    pub fn new() -> Server {
        let mut slots = Slots::new();
        let outgoing = slots.take().unwrap_or_default();
        let mut server = Server { books: Books::new(MAX_BLOCKS), slots, regions: Vec::new(), outgoing };
        for number in 0.. {
            let untyped = Cap::<Untyped>::new(CapAddress::new(REGIONS_NODE, number));
            let Ok(info) = untyped.query() else { break };
            // A region that is too small for a block is left alone.
            if server.books.add(Region { address: info.address, size_bits: info.size_bits }).is_ok() {
                server.regions.push(untyped);
            }
            if number == 255 {
                break;
            }
        }
        server
    }

    /// The answer to a request.
    pub fn answer(&mut self, request: &Received) -> Message {
        match self.carry_out(request) {
            Ok(answer) => answer,
            Err(error) => Message::new(error as u64),
        }
    }

    fn carry_out(&mut self, request: &Received) -> Result<Message, Error> {
        let client = request.badge();
        let label = Label::from_code(request.label()).filter(|_| !request.is_fault()).ok_or(Error::BadRequest)?;
        let authority = || if client == AUTHORITY { Ok(()) } else { Err(Error::NotAllowed) };
        match (label, request.words()) {
            (Label::Allocate, &[size_bits, ..]) => self.allocate(client, client, size_bits),
            (Label::AllocateFor, &[account, size_bits, ..]) => {
                authority()?;
                self.allocate(client, account, size_bits)
            }
            (Label::Free, &[address, ..]) => {
                let block = self.books.block(client, address)?;
                self.free(block)?;
                Ok(done(&[block.size()]))
            }
            (Label::CloseAccount, &[account, ..]) => {
                authority()?;
                self.close(account)
            }
            (Label::SetQuota, &[account, bytes, ..]) => {
                authority()?;
                self.books.set_quota(account, bytes);
                Ok(done(&[]))
            }
            (Label::Totals, _) => {
                let totals = self.books.totals();
                Ok(done(&[totals.total, totals.free, totals.largest, totals.blocks, totals.accounts]))
            }
            (Label::NextAccount, &[after, ..]) => {
                let (number, account) = self.books.next_account(after).ok_or(Error::NoSuchAccount)?;
                Ok(done(&[number, account.used, account.quota, account.blocks]))
            }
            _ => Err(Error::BadRequest),
        }
    }

    /// A block for a client; its capability leaves with the answer.
    fn allocate(&mut self, holder: u64, account: u64, size_bits: u64) -> Result<Message, Error> {
        self.refill_slots();
        let slot = self.slots.take().ok_or(Error::TooManyBlocks)?;
        let block = match self.books.allocate(holder, account, size_bits, slot.0) {
            Ok(block) => block,
            Err(error) => {
                self.slots.give_back(slot);
                return Err(error);
            }
        };
        let made = self.make(block, Kind::Untyped, u64::from(block.size_bits)).and_then(|()| self.lend(block));
        if let Err(error) = made {
            self.forget(block);
            return Err(error);
        }
        let mut answer = done(&[block.address, u64::from(block.size_bits)]);
        answer.move_cap(self.outgoing);
        Ok(answer)
    }

    /// Makes an object of a block's memory, with its capability in the block's slot.
    fn make(&self, block: Block, kind: Kind, size: u64) -> Result<(), Error> {
        let (number, region) = self.books.region_of(block.address).ok_or(Error::Internal)?;
        let place = Place::At(block.address - region.address);
        let slot = CapAddress(block.slot);
        self.regions[number].retype_many(kind, size, 1, place, OWN_SPACE, slot).map_err(|_| Error::Internal)?;
        Ok(())
    }

    /// Makes the client's untyped, of the whole block.
    fn lend(&self, block: Block) -> Result<(), Error> {
        let untyped = Cap::<Untyped>::new(CapAddress(block.slot));
        let bits = u64::from(block.size_bits);
        let lend = || untyped.retype_many(Kind::Untyped, bits, 1, Place::At(0), OWN_SPACE, self.outgoing);
        let made = match lend() {
            // A client that offered no slot has left its untyped here; its memory is on its account all the same.
            Err(Refusal::SlotOccupied) => OWN_SPACE.delete_at(self.outgoing).and_then(|_| lend()),
            made => made,
        };
        made.map(drop).map_err(|_| Error::Internal)
    }

    /// Takes a block back of which not everything could be made.
    fn forget(&mut self, block: Block) {
        let slot = CapAddress(block.slot);
        // If the slot is empty there is nothing to delete, and the books know the block.
        let _ = OWN_SPACE.delete_at(slot);
        let _ = self.books.release(block.address);
        self.slots.give_back(slot);
    }

    /// Takes a block back, and with it everything that was made of it.
    fn free(&mut self, block: Block) -> Result<(), Error> {
        let slot = CapAddress(block.slot);
        OWN_SPACE.revoke_at(slot).map_err(|_| Error::Internal)?;
        OWN_SPACE.delete_at(slot).map_err(|_| Error::Internal)?;
        self.books.release(block.address)?;
        self.slots.give_back(slot);
        Ok(())
    }

    fn close(&mut self, account: u64) -> Result<Message, Error> {
        let mut bytes = 0;
        for block in self.books.blocks_of(account) {
            self.free(block)?;
            bytes += block.size();
        }
        self.books.close(account);
        Ok(done(&[bytes]))
    }

    /// Adds a node of slots when few are left. Where there is no memory for it, the slots that are left are used up.
    fn refill_slots(&mut self) {
        if !self.slots.wants_node() {
            return;
        }
        let Some(slot) = self.slots.take() else { return };
        let Ok(block) = self.books.allocate(pid::MEM, pid::MEM, NODE_SIZE_BITS, slot.0) else {
            return self.slots.give_back(slot);
        };
        let made = self.make(block, Kind::CapNode, u64::from(NODE_BITS));
        if made.is_err() || self.slots.add_node(slot).is_err() {
            self.forget(block);
        }
    }
}

/// An answer that all went well, with these words.
fn done(words: &[u64]) -> Message {
    Message::with_words(DONE, words)
}
