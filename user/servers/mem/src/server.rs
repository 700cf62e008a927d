//! Requests carried out: the books say what is possible, the kernel does it.
//!
//! ```text
//! region (init's untyped)
//!   └─ block      an untyped of exactly the block, kept here
//!        └─ the client's untyped, of the same memory; it left with the reply
//! ```
//! Revoking the block deletes the client's untyped and everything made of it, wherever that has gone.

use tench_abi::message::MAX_WORDS;
use tench_mem::blocks::Block;
use tench_mem::books::Request;
use tench_mem_client::protocol::{Error, FREE, Label, MAX_EXTENTS, USED};
use tench_mem_client::slabs;
use tench_protocol::DONE;
use tench_sys::{Cap, CapAddress, Error as Refusal, Kind, Message, OWN_SPACE, Place, Received, Untyped, offer_slots};

use crate::slabs::Slabs;
use crate::store::Store;

/// The badge of those who may do everything.
const AUTHORITY: u64 = 0;

/// The server's state.
pub struct Server {
    store: Store,
    slabs: Slabs,
    /// Where a client's untyped is made before it leaves.
    outgoing: CapAddress,
    /// Where a client's capability arrives.
    incoming: CapAddress,
}

impl Server {
    /// Takes the regions that `init` has put into their node into the books.
    pub fn new() -> Result<Server, Refusal> {
        let mut store = Store::new()?;
        let outgoing = store.slots.take().ok_or(Refusal::NoSuchSlot)?;
        let incoming = store.slots.take().ok_or(Refusal::NoSuchSlot)?;
        offer_slots(&[incoming]);
        Ok(Server { store, slabs: Slabs::new(), outgoing, incoming })
    }

    /// The answer to a request.
    pub fn answer(&mut self, request: &Received) -> Message {
        let answer = self.carry_out(request).unwrap_or_else(|error| Message::new(error as u64));
        if !request.caps().is_empty() {
            // What a client sent along is needed no longer than its request.
            let _ = OWN_SPACE.delete_at(self.incoming);
        }
        offer_slots(&[self.incoming]);
        answer
    }

    fn carry_out(&mut self, request: &Received) -> Result<Message, Error> {
        let client = request.badge();
        if request.is_fault() {
            return Err(Error::BadRequest);
        }
        if let Some(label) = slabs::Label::from_code(request.label()) {
            return self.slabs.carry_out(&mut self.store, client, label, request);
        }
        let label = Label::from_code(request.label()).ok_or(Error::BadRequest)?;
        let authority = || if client == AUTHORITY { Ok(()) } else { Err(Error::NotAllowed) };
        match (label, request.words()) {
            (Label::Allocate, &[size_bits]) => self.allocate(&Request::anywhere(client, client, size_bits)),
            (Label::Allocate, &[size_bits, align_bits, base, limit, ..]) => {
                let anywhere = Request::anywhere(client, client, size_bits);
                self.allocate(&Request { align_bits, base, limit, ..anywhere })
            }
            (Label::AllocateFor, &[account, size_bits, ..]) => {
                authority()?;
                self.allocate(&Request::anywhere(client, account, size_bits))
            }
            (Label::Free, &[address, ..]) => {
                let (slot, block) = self.store.books.block(client, address)?;
                self.store.free(slot)?;
                Ok(done(&[block.size()]))
            }
            (Label::Divide, &[address, ..]) => self.divide(client, address),
            (Label::CloseAccount, &[account, ..]) => {
                authority()?;
                self.close(account)
            }
            (Label::SetQuota, &[account, bytes, ..]) => {
                authority()?;
                self.store.refill();
                self.store.books.set_quota(account, bytes)?;
                Ok(done(&[]))
            }
            (Label::Totals, _) => {
                let totals = self.store.books.totals();
                Ok(done(&[totals.total, totals.free, totals.largest, totals.blocks, totals.accounts]))
            }
            (Label::NextAccount, &[after, ..]) => {
                let account = self.store.books.next_account(after).ok_or(Error::NoSuchAccount)?;
                Ok(done(&[account.number, account.used, account.quota, account.blocks]))
            }
            (Label::Extents, &[from, ..]) => Ok(self.extents(from)),
            _ => Err(Error::BadRequest),
        }
    }

    /// A block for a client; its capability leaves with the answer.
    fn allocate(&mut self, request: &Request) -> Result<Message, Error> {
        self.store.refill();
        let (slot, block) = self.store.allocate(request)?;
        if let Err(error) = self.lend(slot, block) {
            self.store.forget(slot);
            return Err(error);
        }
        let mut answer = done(&[block.address, u64::from(block.size_bits)]);
        answer.move_cap(self.outgoing);
        Ok(answer)
    }

    /// Makes the client's untyped, of the whole block.
    fn lend(&self, slot: CapAddress, block: Block) -> Result<(), Error> {
        let untyped = Cap::<Untyped>::new(slot);
        let bits = u64::from(block.size_bits);
        let lend = || untyped.retype_many(Kind::Untyped, bits, 1, Place::At(0), OWN_SPACE, self.outgoing);
        let made = match lend() {
            // A client that offered no slot has left its untyped here; its memory is on its account all the same.
            Err(Refusal::SlotOccupied) => OWN_SPACE.delete_at(self.outgoing).and_then(|_| lend()),
            made => made,
        };
        made.map(drop).map_err(|_| Error::Internal)
    }

    /// Makes two blocks of one. The kernel looks that nothing lies across.
    fn divide(&mut self, client: u64, address: u64) -> Result<Message, Error> {
        self.store.refill();
        let (slot, _) = self.store.books.block(client, address)?;
        let upper = self.store.slots.take().ok_or(Error::TooManyBlocks)?;
        let divided = self.store.books.check_divide(slot, upper).and_then(|()| {
            Cap::<Untyped>::new(slot).split(upper).map_err(|refusal| match refusal {
                Refusal::Overlap => Error::NotDivided,
                _ => Error::Internal,
            })
        });
        if let Err(error) = divided {
            self.store.slots.free(upper);
            return Err(error);
        }
        Ok(done(&[u64::from(self.store.books.divide(slot, upper)?.size_bits)]))
    }

    /// Takes back everything that is on an account.
    fn close(&mut self, account: u64) -> Result<Message, Error> {
        let objects = self.slabs.close(&mut self.store, account)?;
        Ok(done(&[objects + self.store.close(account)?]))
    }

    /// What lies from an address on.
    fn extents(&self, from: u64) -> Message {
        let mut words = [0; MAX_WORDS];
        let mut count = 0;
        let extents = self.store.books.extents(from).take(MAX_EXTENTS);
        for (place, (address, size, account)) in words.chunks_exact_mut(4).zip(extents) {
            let state = if account.is_some() { USED } else { FREE };
            place.copy_from_slice(&[address, size, state, account.unwrap_or(0)]);
            count += 1;
        }
        done(&words[..count * 4])
    }
}

/// An answer that all went well, with these words.
pub fn done(words: &[u64]) -> Message {
    Message::with_words(DONE, words)
}
