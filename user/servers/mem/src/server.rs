//! Requests: the ledger decides what is possible, and the kernel carries it out.

use arrayvec::ArrayVec;
use tench_abi::layout::slot;
use tench_mem::ledger::{MAX_REGIONS, Region, Request};
use tench_mem::store::Store;
use tench_mem::view;
use tench_mem_interface::protocol::{
    ABROAD, Account, Audit, Error, Extent, Granted, InUse, MAX_EXTENTS, Mem, MemService, Totals, Within,
};
use tench_mem_interface::slabs::Slabs as SlabsClient;
use tench_protocol::{Arrived, Caller, Context, Factory, Given, List, Powers, Rejection, Replies, Sent};
use tench_sys::ipc::BOUND_REPLY;
use tench_sys::{Cap, CapAddress, Error as KernelError, Kind, Message, OWN_CSPACE, Received, Untyped, offer_slots};

use crate::kernel::Kernel;
use crate::slabs::{Both, Slabs};

/// Capability to the kernel, which tells the physical address of memory.
pub const KERNEL: Cap<tench_sys::Kernel> = Cap::new(slot::KERNEL);
/// The node with the regions, which `init` fills.
const REGIONS_NODE: u32 = 1;

/// Preemption points that the kernel passes in one part of deleting what a client has sent: few, because other clients
/// wait meanwhile.
const INCOMING_PART: u64 = 24;

/// The server's state.
pub struct Server {
    store: Store<Kernel>,
    slabs: Slabs,
    /// Slot in which a client's untyped capability is made before it is sent.
    outgoing: CapAddress,
    /// Slot in which a client's capability arrives.
    incoming: CapAddress,
    /// Set while the content of `incoming` is partly deleted.
    is_deleting: bool,
}

impl Server {
    /// Enters the regions that `init` has put into their node into the ledger.
    pub fn new() -> Result<Server, KernelError> {
        let mut store = Store::new(Kernel::new(), slot::FIRST_FREE, &regions())?;
        let outgoing = store.own.take().ok_or(KernelError::NoSuchSlot)?;
        let incoming = store.own.take().ok_or(KernelError::NoSuchSlot)?;
        offer_slots(&[incoming]);
        Ok(Server { store, slabs: Slabs::new(), outgoing, incoming, is_deleting: false })
    }

    /// Handles a request, and writes the reply.
    pub fn serve(&mut self, request: &Received, reply: &mut Message) {
        let mut replies = Replies::new(BOUND_REPLY, Factory::NONE);
        let mut context = Context::new(request.badge(), &mut replies);
        let is_of_slabs = (request.label() >> 32) as u16 == SlabsClient::INTERFACE;
        // No request is replied to later.
        let _ = if is_of_slabs {
            let mut both = Both { slabs: &mut self.slabs, store: &mut self.store };
            SlabsClient::dispatch(&mut both, request, &mut context, reply)
        } else {
            Mem::dispatch(self, request, &mut context, reply)
        };
        if self.is_deleting && Rejection::BadArguments.is(reply) {
            // A capability may be missing because no slot was on offer.
            let _ = Rejection::Busy.write(reply);
        }
        if self.is_deleting || !request.caps().is_empty() {
            self.delete_incoming();
        }
    }

    /// Deletes what a client has sent, which is needed only during its request. If that is the last capability to
    /// something large, deletes a part: each following request does another part, and no capability arrives meanwhile.
    #[cold]
    fn delete_incoming(&mut self) {
        self.is_deleting = OWN_CSPACE.delete_part_at(self.incoming, INCOMING_PART) == Err(KernelError::Unfinished);
        if !self.is_deleting {
            // An offer stands until capabilities arrive.
            offer_slots(&[self.incoming]);
        }
    }

    /// Returns a block for a client; its capability is sent with the reply.
    fn block(&mut self, request: &Request) -> Result<(Granted, Sent<Untyped, Given>), Error> {
        let (slot, block) = self.store.give(request, self.outgoing)?;
        let granted = Granted { number: slot.0 as u16, size_bits: block.size_bits };
        Ok((granted, Sent::new(Cap::new(self.outgoing))))
    }
}

impl MemService for Server {
    fn give(
        &mut self,
        Caller { process: client, family }: Caller,
        powers: Powers,
        size_bits: u32,
        within: Within,
    ) -> Result<(Granted, Sent<Untyped, Given>), Error> {
        view::check_choice(powers, size_bits, &within)?;
        // The block of a client that has ended would never be freed.
        if !self.store.ledger.is_served(client) {
            return Err(Error::Ended);
        }
        let Within { align_bits, base, limit } = within;
        let anywhere = Request::anywhere(client, client, u64::from(size_bits));
        self.block(&Request { family, align_bits: u64::from(align_bits), base, limit, ..anywhere })
    }

    fn give_for(
        &mut self,
        caller: Caller,
        account: u64,
        family: u64,
        size_bits: u32,
    ) -> Result<(Granted, Sent<Untyped, Given>), Error> {
        self.block(&Request { family, ..Request::anywhere(caller.process, account, u64::from(size_bits)) })
    }

    fn free_part(&mut self, caller: Caller, number: u16) -> Result<u64, Error> {
        let (slot, block) = self.store.ledger.block(caller.process, number)?;
        self.store.free(slot)?;
        Ok(block.size())
    }

    fn divide(&mut self, caller: Caller, number: u16) -> Result<Granted, Error> {
        let (upper, half) = self.store.divide(caller.process, number)?;
        Ok(Granted { number: upper.0 as u16, size_bits: half.size_bits })
    }

    fn totals(&mut self, powers: Powers) -> Result<Totals, Error> {
        let totals = view::totals(powers, self.store.ledger.totals());
        Ok(Totals {
            total: totals.total,
            free: totals.free,
            largest: totals.largest,
            blocks: totals.blocks,
            accounts: totals.accounts,
        })
    }

    fn next_account(&mut self, caller: Caller, powers: Powers, after: u64) -> Result<Account, Error> {
        let found = view::next_account(&self.store.ledger, caller, powers, after)?;
        Ok(Account {
            process: found.number,
            used: found.used,
            quota: self.store.ledger.limit(found),
            blocks: found.blocks,
            objects: found.objects,
        })
    }

    fn set_quota(&mut self, account: u64, bytes: u64) -> Result<(), Error> {
        self.store.refill();
        self.store.ledger.set_quota(account, bytes)
    }

    fn open_account(&mut self, account: u64, parent: u64, bytes: u64) -> Result<(), Error> {
        self.store.refill();
        self.store.ledger.open_below(account, parent, bytes)
    }

    fn close_account_part(&mut self, account: u64) -> Result<(), Error> {
        self.slabs.close(&mut self.store, account)?;
        self.store.close(account)
    }

    fn describe(&mut self, from: u64) -> Result<List<Extent, MAX_EXTENTS>, Error> {
        let extents = self.store.ledger.extents(from).take(MAX_EXTENTS);
        Ok(extents.map(|(address, size, account)| Extent { address, size, account }).collect())
    }

    fn abroad(&mut self, after: u16) -> Result<Granted, Error> {
        let (slot, block) = self.store.ledger.next_of(ABROAD, after).ok_or(Error::NoSuchBlock)?;
        Ok(Granted { number: slot.0 as u16, size_bits: block.size_bits })
    }

    fn reclaim_part(&mut self, number: u16) -> Result<u64, Error> {
        self.store.reclaim(number)
    }

    fn number(&mut self, caller: Caller, address: u64) -> Result<u16, Error> {
        let number = self.store.ledger.number_at(address).ok_or(Error::NoSuchBlock)?;
        self.store.ledger.block(caller.process, number).map(|_| number)
    }

    fn find(&mut self, holder: u64, number: u16) -> Result<Extent, Error> {
        let (_, block) = self.store.ledger.block(holder, number)?;
        Ok(Extent { address: block.address, size: block.size(), account: Some(block.account) })
    }

    fn add(&mut self, memory: Arrived<'_, Untyped, Given>) -> Result<(), Error> {
        let found = memory.cap().locate(KERNEL).map_err(|_| Error::Internal)?;
        self.store.add(memory.cap().address(), found.address, found.size_bits)
    }

    fn audit(&mut self) -> Result<Audit, Error> {
        let totals = self.store.ledger.totals();
        let mut kernel = InUse::default();
        for region in self.store.ledger.regions() {
            let made = Cap::<Untyped>::new(region.slot).children().map_err(|_| Error::Internal)?;
            kernel.bytes += made.bytes;
            kernel.blocks += made.objects;
        }
        Ok(Audit { ledger: InUse { bytes: totals.total - totals.free, blocks: totals.blocks }, kernel })
    }
}

/// Returns the regions that `init` has put into their node.
fn regions() -> ArrayVec<Region, MAX_REGIONS> {
    let slots = (0..MAX_REGIONS as u32).map(|number| CapAddress::new(REGIONS_NODE, number));
    slots
        .map_while(|slot| {
            let found = Cap::<Untyped>::new(slot).locate(KERNEL).ok().filter(|found| found.kind == Kind::Untyped)?;
            Some(Region { address: found.address, size_bits: found.size_bits, slot })
        })
        .collect()
}
