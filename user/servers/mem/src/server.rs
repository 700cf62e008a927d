//! Requests carried out: the books say what is possible, the kernel does it.

use arrayvec::ArrayVec;
use tench_abi::layout::slot;
use tench_abi::message::MAX_WORDS;
use tench_mem::books::{MAX_REGIONS, Region, Request};
use tench_mem::store::Store;
use tench_mem_client::protocol::{Error, FREE, Label, MAX_EXTENTS, USED};
use tench_mem_client::slabs;
use tench_protocol::DONE;
use tench_sys::{Cap, CapAddress, Error as Refusal, Message, OWN_SPACE, Received, Untyped, offer_slots};

use crate::kernel::Kernel;
use crate::slabs::Slabs;

/// The badge of those who may do everything.
const AUTHORITY: u64 = 0;
/// The node with the regions, which `init` fills.
const REGIONS_NODE: u32 = 1;

/// The server's state.
pub struct Server {
    store: Store<Kernel>,
    slabs: Slabs,
    /// Where a client's untyped is made before it leaves.
    outgoing: CapAddress,
    /// Where a client's capability arrives.
    incoming: CapAddress,
}

impl Server {
    /// Takes the regions that `init` has put into their node into the books.
    pub fn new() -> Result<Server, Refusal> {
        let mut store = Store::new(Kernel::new(), slot::FIRST_FREE, &regions())?;
        let outgoing = store.own.take().ok_or(Refusal::NoSuchSlot)?;
        let incoming = store.own.take().ok_or(Refusal::NoSuchSlot)?;
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
            (Label::Divide, &[address, ..]) => {
                let lower = self.store.divide(client, address)?;
                Ok(done(&[u64::from(lower.size_bits)]))
            }
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
                Ok(done(&[account.number, account.used, account.quota, account.blocks, account.objects]))
            }
            (Label::Extents, &[from, ..]) => Ok(self.extents(from)),
            (Label::Audit, _) => self.audit(),
            _ => Err(Error::BadRequest),
        }
    }

    /// A block for a client; its capability leaves with the answer.
    fn allocate(&mut self, request: &Request) -> Result<Message, Error> {
        let block = self.store.give(request, self.outgoing)?;
        let mut answer = done(&[block.address, u64::from(block.size_bits)]);
        answer.move_cap(self.outgoing);
        Ok(answer)
    }

    /// Takes back everything that is on an account.
    fn close(&mut self, account: u64) -> Result<Message, Error> {
        let objects = self.slabs.close(&mut self.store, account)?;
        Ok(done(&[objects + self.store.close(account)?]))
    }

    /// The books beside the kernel's account.
    fn audit(&self) -> Result<Message, Error> {
        let totals = self.store.books.totals();
        let (mut bytes, mut objects) = (0, 0);
        for region in self.store.books.regions() {
            let made = Cap::<Untyped>::new(region.slot).children().map_err(|_| Error::Internal)?;
            bytes += made.bytes;
            objects += made.objects;
        }
        Ok(done(&[totals.total - totals.free, totals.blocks, bytes, objects]))
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

/// An answer that all went well, with these words.
pub fn done(words: &[u64]) -> Message {
    Message::with_words(DONE, words)
}
