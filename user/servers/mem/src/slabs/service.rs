//! Requests for slabs.

use tench_mem::store::Store;
use tench_mem_interface::protocol::Error;
use tench_mem_interface::slabs::protocol::{
    Bundle as Given, Figures, KernelAccount, LedgerEntry, MAX_DESCRIPTORS, MAX_SLABS, SlabsService, TRACE_BYTES,
};
use tench_protocol::{Arrived, Bytes, Caller, List, Powers};
use tench_slabs::Lifetime;
use tench_sys::{CapAddress, CapNode};

use super::Slabs;
use crate::kernel::Kernel;

/// The slabs, and the store that gives them memory and slots.
pub struct Both<'a> {
    pub slabs: &'a mut Slabs,
    pub store: &'a mut Store<Kernel>,
}

impl SlabsService for Both<'_> {
    fn set_up(&mut self, dynamic: List<u8, MAX_SLABS>, statics: List<u8, MAX_SLABS>) -> Result<u64, Error> {
        self.slabs.set_up(self.store, &dynamic, &statics)
    }

    fn take_down(&mut self) -> Result<(), Error> {
        self.slabs.take_down(self.store)
    }

    fn grant(
        &mut self,
        caller: Caller,
        powers: Powers,
        is_static: bool,
        descriptors: List<u64, MAX_DESCRIPTORS>,
    ) -> Result<Given, Error> {
        let given = self.slabs.grant(self.store, caller, lifetime(is_static), None, &descriptors)?;
        Ok(Given { figures: visible(powers, given.figures), ..given })
    }

    fn grant_to(
        &mut self,
        caller: Caller,
        powers: Powers,
        is_static: bool,
        first: CapAddress,
        descriptors: List<u64, MAX_DESCRIPTORS>,
        cspace: Arrived<'_, CapNode>,
    ) -> Result<Given, Error> {
        let to = Some((cspace.cap(), first));
        let given = self.slabs.grant(self.store, caller, lifetime(is_static), to, &descriptors)?;
        Ok(Given { figures: visible(powers, given.figures), ..given })
    }

    fn free(&mut self, caller: Caller, powers: Powers, number: u64) -> Result<Figures, Error> {
        let state = self.slabs.state()?;
        state
            .bundles
            .get(&number)
            .filter(|bundle| bundle.client.process == caller.process)
            .ok_or(Error::NoSuchBundle)?;
        self.slabs.free(self.store, number)?;
        Ok(visible(powers, self.slabs.figures()?))
    }

    fn ledger(&mut self, number: u64) -> Result<LedgerEntry, Error> {
        self.slabs.ledger(number)
    }

    fn kernel(&mut self, number: u64) -> Result<KernelAccount, Error> {
        self.slabs.kernel(number)
    }

    fn policy(&mut self) -> Result<(u64, bool), Error> {
        let ledger = &self.slabs.state()?.ledger;
        Ok((ledger.policy().code(), ledger.lifted()))
    }

    fn set_policy(&mut self, code: u64, lifted: bool) -> Result<(), Error> {
        self.slabs.set_policy(code, lifted)
    }

    fn record(&mut self, on: bool) -> Result<u64, Error> {
        self.slabs.record(on)
    }

    fn read_part(&mut self, offset: u64) -> Result<Bytes<'_, TRACE_BYTES>, Error> {
        Ok(self.slabs.part_of_trace(offset))
    }

    fn figures(&mut self) -> Result<Figures, Error> {
        self.slabs.figures()
    }
}

/// Converts the protocol's flag to a lifetime.
const fn lifetime(is_static: bool) -> Lifetime {
    if is_static { Lifetime::Static } else { Lifetime::Dynamic }
}

/// Returns the part of the figures over all clients' objects that a caller may see.
fn visible(powers: Powers, figures: Figures) -> Figures {
    if powers.contains(Powers::MEMORY) { figures } else { Figures::default() }
}
